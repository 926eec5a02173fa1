"""The process that trains: it reads a job from standard input, prints how it goes, and writes a model file."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hscrf.arrays import Floats, Ints, Random
from hscrf.labels.labels import Labels
from hscrf.solvers.choice import solver_of
from hscrf.solvers.course import Monitor, Objective, Penalty, Result, Solver
from hscrf.topology import Topology


@dataclass(frozen=True)
class Job:
    """What to learn: an estimator to start from, sequences, what is known of them, and where the model goes."""

    estimator: Any
    topology: Topology
    X: Sequence[Any]
    Y: Sequence[Labels]
    path: str
    around: bool = False  # whether weights are drawn to those of the estimator, not to zero


def learn(job: Job) -> dict[str, Any]:
    """Fit a model to partial labels, from the weights of the former one, and write it; how it went."""
    estimator, begin = job.estimator, time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warm start from a model with other levels
        solver = estimator.solver
        estimator.set_params(topology=job.topology, warm_start=True, verbose=2)
        if job.around:
            estimator.solver = Around(solver_of(solver))
        estimator.fit(list(job.X), list(job.Y))
    estimator.set_params(verbose=0, solver=solver)
    estimator.save(job.path)
    seconds = time.perf_counter() - begin
    return {"loss": float(estimator.loss_), "iterations": int(estimator.n_iter_), "seconds": round(seconds, 2)}


@dataclass(frozen=True)
class Around:
    """A solver whose penalty draws the weights to those it starts from: what they were learned from is not here.

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
        result = self.solver.minimize(Moved(objective, weights), 0 * weights, c1, c2, monitor, random_state)
        return replace(result, weights=weights + result.weights)


class Moved:
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
    """End when nobody holds the other end of standard input any more: the studio is gone."""
    while os.read(sys.stdin.fileno(), 4096):  # not through the buffer, whose lock the end of the process would wait for
        pass
    os._exit(1)


def main() -> None:
    """Do the job that comes over standard input, and leave the other core time to the person who waits."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)
    job = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_the_studio, daemon=True).start()
    print(json.dumps(learn(job)), flush=True)
