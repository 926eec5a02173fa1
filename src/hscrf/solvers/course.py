"""The course of a run: history, best weights, reasons to stop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats

Integers = NDArray[np.int64]
Random = int | np.random.Generator | np.random.RandomState | None
Value = tuple[float, Floats]
Penalty = float | Floats  # of all weights, or of each
INTERRUPTED = "interrupted"


class Objective(Protocol):
    """A loss over data that comes in parts (sequences), without penalties."""

    @property
    def size(self) -> int:
        """Number of weights."""

    @property
    def n_parts(self) -> int:
        """Number of data points."""

    def __call__(self, weights: Floats) -> Value:
        """Loss over all data, and its gradient."""

    def part(self, weights: Floats, which: Integers) -> Value:
        """The same for some of the data."""

    def mistakes(self, weights: Floats, which: Integers) -> Value:
        """Score of the best answers minus score of the true ones, and its subgradient; for the perceptron only."""


@dataclass(frozen=True)
class Result:
    """What a solver found and why it stopped there."""

    weights: Floats
    loss: float  # penalised, at these weights; nan if the run was interrupted before anything was evaluated
    converged: bool  # a stopping rule was met: neither out of iterations nor interrupted
    n_iter: int
    reason: str
    history: list[dict[str, Any]]  # per iteration: iteration, loss, gradient_norm, seconds, score


@dataclass(frozen=True)
class Monitor:
    """What to do once per iteration: judge, stop early, save, show.

    Without ``evaluate`` the best weights are those with the lowest loss; with it, those with the highest score.
    """

    evaluate: Callable[[Floats], float] | None = None  # weights -> score on development data, higher is better
    patience: int | None = None  # stop after so many evaluations without a better score
    checkpoint: Callable[[Floats, list[dict[str, Any]]], None] | None = None  # given the weights and the history
    every: int = 10  # iterations between checkpoints; the last one, of the best weights, is made in any case
    every_evaluate: int = 1  # iterations between evaluations
    verbose: int = 0  # 0: silent; 1: one live line, on terminals only; 2: a line per iteration
    stream: TextIO | None = None  # standard error if None

    def __post_init__(self) -> None:
        at_least(self, every=1, every_evaluate=1, verbose=0)
        if self.patience is not None:
            at_least(self, patience=1)
            if self.evaluate is None:
                raise ValueError("patience counts evaluations on development data, but evaluate is None")


class Solver(Protocol):
    """What ``LBFGS``, ``SGD`` and ``Perceptron`` have in common."""

    def minimize(
        self,
        objective: Objective,
        weights: Floats,
        c1: Penalty = 0.0,
        c2: Penalty = 0.0,
        monitor: Monitor | None = None,
        random_state: Random = None,
    ) -> Result:
        """Start at ``weights`` and go down."""


class Stop(Exception):
    """Ends a run from wherever it is."""

    def __init__(self, reason: str, converged: bool) -> None:
        super().__init__(reason)
        self.reason, self.converged = reason, converged


class Progress:
    """Shows the course of a run: a live line, lines, or nothing."""

    def __init__(self, verbose: int, stream: TextIO | None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.lines = verbose >= 2
        self.live = verbose == 1 and self.stream.isatty()
        self.width = 0

    def show(self, entry: dict[str, Any]) -> None:
        line = (
            f"iteration {entry['iteration']}  loss {entry['loss']:.2f}  "
            f"|g| {entry['gradient_norm']:.1e}  {entry['seconds']:.1f} s"
        )
        self.write(line if entry["score"] is None else f"{line}  dev {entry['score']:.4g}")

    def write(self, line: str) -> None:
        if self.live:
            self.stream.write("\r" + line.ljust(self.width))
            self.width = len(line)
        elif self.lines:
            self.stream.write(line + "\n")
        if self.live or self.lines:
            self.stream.flush()

    def close(self, reason: str) -> None:
        if self.live and self.width:
            self.stream.write("\n")
            self.width = 0
        self.write(f"stopped: {reason}")
        if self.live:
            self.stream.write("\n")


class Run:
    """What is known of a run so far."""

    def __init__(self, objective: Objective, weights: Floats, monitor: Monitor | None) -> None:
        self.start = time.perf_counter()
        self.monitor = Monitor() if monitor is None else monitor
        self.progress = Progress(self.monitor.verbose, self.monitor.stream)
        self.weights = _checked(weights, objective.size)  # with the lowest loss, or the latest
        self.loss = np.nan
        self.best: tuple[float, float, Floats] | None = None  # score on development data, loss, weights
        self.waited = 0  # evaluations since then
        self.history: list[dict[str, Any]] = []

    @property
    def iteration(self) -> int:
        """The iteration that is going on: 0 until something has been evaluated."""
        return 0 if np.isnan(self.loss) else len(self.history) + 1

    def keep(self, weights: Floats, loss: float) -> None:
        self.weights, self.loss = weights.copy(), loss

    def offer(self, weights: Floats, loss: float) -> None:
        if not loss > self.loss:  # also when there is none yet
            self.keep(weights, loss)

    def step(self, weights: Floats, loss: float, gradient_norm: float) -> None:
        """An iteration is done; raises ``_Stop`` where the development data say so."""
        number = len(self.history) + 1
        seconds = time.perf_counter() - self.start
        entry = {"iteration": number, "loss": loss, "gradient_norm": gradient_norm, "seconds": seconds}
        self.history.append({**entry, "score": None})
        if self.monitor.evaluate is not None and number % self.monitor.every_evaluate == 0:
            self.history[-1]["score"] = self.judge(weights, loss)
        self.progress.show(self.history[-1])
        if self.monitor.checkpoint is not None and number % self.monitor.every == 0:
            self.monitor.checkpoint(weights.copy(), list(self.history))
        if self.monitor.patience is not None and self.waited >= self.monitor.patience:
            raise Stop(f"no improvement on the development set for {self.waited} evaluations", True)

    def judge(self, weights: Floats, loss: float) -> float:
        assert self.monitor.evaluate is not None
        score = float(self.monitor.evaluate(weights))
        self.waited += 1
        if score > (-np.inf if self.best is None else self.best[0]):
            self.best, self.waited = (score, loss, weights.copy()), 0
        return score

    def result(self, reason: str, converged: bool) -> Result:
        loss, weights = (self.loss, self.weights) if self.best is None else self.best[1:]
        self.progress.close(reason)
        if self.monitor.checkpoint is not None:
            self.monitor.checkpoint(weights.copy(), list(self.history))
        return Result(weights, float(loss), converged, len(self.history), reason, self.history)


def supervise(run: Run, work: Callable[[], None]) -> Result:
    """Do the work, which ends by ``_Stop`` or by Ctrl-C."""
    reason, converged = "nothing to do", True
    try:
        work()
    except Stop as stop:
        reason, converged = stop.reason, stop.converged
    except KeyboardInterrupt:
        reason, converged = INTERRUPTED, False
    return run.result(reason, converged)


def _checked(weights: Floats, size: int) -> Floats:
    weights = np.array(weights, dtype=np.float64)
    if weights.shape != (size,):
        raise ValueError(f"the starting weights have shape {weights.shape}, but the objective has {size} weights")
    if not np.isfinite(weights).all():
        raise ValueError("the starting weights are not all finite")
    return weights


def at_least(thing: object, **minimum: float) -> None:
    for name, least in minimum.items():
        value = getattr(thing, name)
        if not value >= least:
            raise ValueError(f"{type(thing).__name__}: {name} is {value}, expected at least {least}")


def penalty_of(weights: Floats, c1: Penalty, c2: Penalty) -> float:
    """What the penalties add to the loss."""
    squares = float((c2 * weights) @ weights)
    return squares + float(np.sum(c1 * np.abs(weights))) if np.any(c1) else squares


def check_penalties(c1: Penalty, c2: Penalty) -> None:
    for name, value in (("c1", c1), ("c2", c2)):
        if not (np.min(value, initial=0.0) >= 0 and np.max(value, initial=0.0) < np.inf):
            raise ValueError(f"{name} is {value}, expected a finite number of at least 0")


def check_finite(value: Value, where: str) -> Value:
    """The value with its gradient as float64; raises where either is not finite."""
    loss, gradient = float(value[0]), np.asarray(value[1], dtype=np.float64)
    if not np.isfinite(loss):
        raise ValueError(f"the loss is {loss} in {where}: are all features finite, and is the step not too long?")
    if not np.isfinite(gradient.sum()) and not np.isfinite(gradient).all():
        raise ValueError(f"the gradient is not finite in {where}, although the loss is {loss:g}")
    return loss, gradient
