"""The process that trains: it reads a job from standard input and writes a model file.

Its standard output is one JSON object per line: an entry for each iteration, and the result. Output of libraries
goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TextIO

from hscrf.arrays import Floats, Ints, Random
from hscrf.labels.labels import Labels
from hscrf.potentials import FAMILY
from hscrf.solvers.course import Monitor, Objective, Penalty, Result, Solver
from hscrf.topology import Topology


@dataclass(frozen=True)
class Job:
    """What to learn: an estimator to start from, sequences, their labels, and the file of the model."""

    estimator: Any
    topology: Topology
    X: Sequence[Any]
    Y: Sequence[Labels]
    path: str
    around: bool = False  # whether the penalty pulls weights to those of the estimator, not to zero


Report = Callable[[dict[str, Any]], None]


def learn(job: Job, report: Report | None = None) -> dict[str, Any]:
    """Fit a model to partial labels, from the weights of the former one, and write it; how it went.

    ``report`` is given the entry of each iteration of the solver; an HHMM has no solver and reports nothing.
    """
    estimator, begin = job.estimator, time.perf_counter()
    options = estimator.get_params(deep=False)
    estimator.set_params(topology=job.topology, verbose=0, warm_start=_can_go_on(estimator, job.topology))
    if "features" in options:
        estimator.set_params(features=fitting(options["features"], job.topology))
    if "solver" in options and job.around:
        estimator.set_params(solver=Around(estimator.solver_of(options["solver"])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warm start from a model with other levels
        estimator.fit(list(job.X), list(job.Y), **({"callback": report} if "solver" in options else {}))
    if "solver" in options:
        estimator.set_params(solver=options["solver"])
    estimator.save(job.path)
    seconds = round(time.perf_counter() - begin, 2)
    return {"loss": finite(estimator.loss_), "iterations": int(estimator.n_iter_), "seconds": seconds}


def finite(value: Any) -> float | None:
    """A number for JSON, which has no NaN and no infinity."""
    return float(value) if math.isfinite(value) else None


def _can_go_on(estimator: Any, topology: Topology) -> bool:
    """Whether training may start from the parameters of the estimator: an HHMM needs the same states for that."""
    return "solver" in estimator.get_params(deep=False) or getattr(estimator, "topology_", None) == topology


def fitting(features: Sequence[Any] | None, topology: Topology) -> list[Any] | None:
    """The features whose levels a topology has; those of a parent and its children need a level below.

    >>> from hscrf import Init, Token
    >>> fitting(["default", Token("tag"), Token("phrase"), Init("phrase"), Init("root")], Topology({"phrase": ["NP"]}))
    ['default', Token('phrase'), Init('root')]
    """
    if features is None:
        return None
    parents = topology.levels[:-1]
    return [
        spec
        for spec in features
        if isinstance(spec, str) or spec.level in (parents if spec.part in FAMILY else topology.levels)
    ]


@dataclass(frozen=True)
class Around:
    """A solver whose penalty pulls the weights to the starting weights, whose training data are not here.

    >>> import numpy as np
    >>> from hscrf.solvers import LBFGS
    >>> class Valley:
    ...     size = 1
    ...     def __call__(self, weights):
    ...         return float((weights @ weights) / 2), weights
    >>> Around(LBFGS()).minimize(Valley(), np.array([3.0]), 0.0, 0.5).weights.round(4)
    array([1.5])
    """

    solver: Solver

    def minimize(
        self,
        objective: Objective,
        weights: Floats,
        c1: Penalty = 0.0,
        c2: Penalty = 0.0,
        monitor: Monitor | None = None,
        random_state: Random = None,
    ) -> Result:
        """Minimise over the distance from the first weights."""
        result = self.solver.minimize(ShiftedObjective(objective, weights), 0 * weights, c1, c2, monitor, random_state)
        return replace(result, weights=weights + result.weights)


class ShiftedObjective:
    """An objective whose zero lies at some weights."""

    def __init__(self, objective: Objective, origin: Floats) -> None:
        self.objective, self.origin = objective, origin
        self.bundles = None  # those of the objective have its own zero

    def __getattr__(self, name: str) -> Any:
        return getattr(self.objective, name)

    def __call__(self, weights: Floats) -> Any:
        return self.objective(self.origin + weights)

    def part(self, weights: Floats, which: Ints) -> Any:
        return self.objective.part(self.origin + weights, which)

    def mistakes(self, weights: Floats, which: Ints) -> Any:
        return self.objective.mistakes(self.origin + weights, which)


def _end_with_the_studio() -> None:
    """End the process when standard input is closed: the studio is gone."""
    while os.read(sys.stdin.fileno(), 4096):  # not through the buffer, whose lock the end of the process would wait for
        pass
    os._exit(1)


def main() -> None:
    """Do the job from standard input, at a low priority: a person waits for the answers of the studio."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)
    output = own_output()
    job = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_the_studio, daemon=True).start()

    def send(kind: str, content: dict[str, Any]) -> None:
        output.write(json.dumps({kind: content}) + "\n")

    def report(entry: dict[str, Any]) -> None:
        send("iteration", {"iteration": int(entry["iteration"]), "loss": finite(entry["loss"])})

    send("result", learn(job, report))


def own_output() -> TextIO:
    """The pipe to the studio: what was standard output. Whatever else is printed goes to standard error."""
    found = open(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", buffering=1)  # noqa: SIM115
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return found
