"""One run of a solver: its history, the best weights, and the reason why it stops."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

import numpy as np

from hscrf.arrays import Floats, Ints, Random
from hscrf.progress import Waiting, is_live

Value = tuple[float, Floats]
Penalty = float | Floats  # of all weights, or of each
INTERRUPTED = "interrupted"  # the reason of a run that Ctrl-C ended
RARELY = 10.0  # seconds between lines on streams that cannot overwrite a line
CHECKPOINT_EVERY = 10  # iterations
CHECKPOINT_AFTER = 10.0  # seconds, if that is sooner


class Loss(Protocol):
    """A loss over data, without penalties."""

    @property
    def size(self) -> int:
        """Number of weights."""

    def __call__(self, weights: Floats) -> Value:
        """Loss over all data, and its gradient."""


class Objective(Loss, Protocol):
    """A loss that can be evaluated sequence by sequence."""

    @property
    def n_parts(self) -> int:
        """Number of sequences."""

    def part(self, weights: Floats, which: Ints) -> Value:
        """Loss over some sequences, and its gradient."""

    def mistakes(self, weights: Floats, which: Ints) -> Value:
        """Return how much the best labels outscore the true ones, and the subgradient; for the perceptron only."""


@dataclass(frozen=True)
class Result:
    """The result of a solver, and the reason why it stopped."""

    weights: Floats
    loss: float  # penalised, at these weights; nan if the run was interrupted before anything was evaluated
    converged: bool  # a stopping rule was met: neither out of iterations nor interrupted
    n_iter: int
    reason: str
    history: list[dict[str, Any]]  # for each iteration: its number, loss, gradient_norm, seconds, score (or None)
    kept: int | None = None  # the iteration whose weights these are, if development data chose it
    state: Mapping[str, Any] | None = None  # for resuming, if the solver has a state and checkpoints are on


@dataclass(frozen=True)
class Monitor:
    """Actions after each iteration: evaluate development data, stop early, save a checkpoint, show progress.

    Without ``evaluate`` the best weights are those with the lowest loss; with it, those with the highest value.
    """

    evaluate: Callable[[Floats], float] | None = None  # weights -> value on development data, higher is better
    patience: int | None = None  # stop after this many evaluations without a better value
    checkpoint: Callable[..., None] | None = None  # given weights, history and, by some solvers, a state to go on from
    verbose: int = 0  # 0: silent; 1: one live line, or a line now and then; 2: a line per iteration
    stream: TextIO | None = None  # standard error if None
    report: Callable[[dict[str, Any]], None] | None = None  # given each entry of the history
    done: int = 0  # iterations of the run that this one resumes; they count too
    state: Mapping[str, Any] | None = None  # state of that run, for solvers that resume it with the same bits
    checkpoint_every: int = CHECKPOINT_EVERY  # iterations; one more, of the best weights, is made at the end

    def __post_init__(self) -> None:
        at_least(self, verbose=0, done=0, checkpoint_every=1)
        if self.patience is not None:
            at_least(self, patience=1)
            if self.evaluate is None:
                raise ValueError("patience counts evaluations on development data, but evaluate is None")


class Solver(Protocol):
    """Interface of ``LBFGS``, ``SGD`` and ``Perceptron``."""

    def minimize(
        self,
        objective: Objective,
        weights: Floats,
        c1: Penalty = 0.0,
        c2: Penalty = 0.0,
        monitor: Monitor | None = None,
        random_state: Random = None,
    ) -> Result:
        """Minimise the penalised loss from the given weights."""


class StopRun(Exception):
    """Raised anywhere in a run to end it."""

    def __init__(self, reason: str, converged: bool) -> None:
        super().__init__(reason)
        self.reason, self.converged = reason, converged


class Progress:
    """Shows the course of a run: one live line, a line per iteration, or nothing."""

    def __init__(self, verbose: int, stream: TextIO | None, pause: float = RARELY) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.lines = verbose >= 2
        self.live = verbose == 1 and is_live(self.stream)
        self.rare = verbose == 1 and not self.live
        self.pause = pause  # seconds between two rare lines
        self.said = time.perf_counter()  # when a rare line was shown last
        self.width = 0
        self.first = Waiting("training", self.stream, plain=True) if verbose == 1 else None

    def begin(self) -> None:
        """The first evaluation begins."""
        if self.first is not None:
            self.first.__enter__()

    def begun(self) -> None:
        """The first evaluation is over, or the run is."""
        if self.first is not None:
            self.first.__exit__()
            self.first = None

    def show(self, entry: dict[str, Any]) -> None:
        """Show an entry of the history."""
        self.begun()
        line = (
            f"iteration {entry['iteration']}  loss {entry['loss']:.2f}  "
            f"|g| {entry['gradient_norm']:.1e}  {entry['seconds']:.1f} s"
        )
        self.write(line if entry["score"] is None else f"{line}  dev {entry['score']:.4g}")

    def write(self, line: str) -> None:
        """Write a line, or replace the live one."""
        if self.live:
            self.stream.write("\r" + line.ljust(self.width))
            self.width = len(line)
        elif self.lines or (self.rare and time.perf_counter() - self.said > self.pause):
            self.said = time.perf_counter()
            self.stream.write(line + "\n")
        if self.live or self.lines or self.rare:
            self.stream.flush()

    def close(self, reason: str) -> None:
        """End the live line and show the reason of the stop."""
        self.begun()
        if self.live and self.width:
            self.stream.write("\n")
            self.width = 0
        self.write(f"stopped: {reason}")
        if self.live:
            self.stream.write("\n")


class Run:
    """The state of a run so far."""

    def __init__(self, objective: Loss, weights: Floats, monitor: Monitor | None) -> None:
        self.start = time.perf_counter()
        self.monitor = Monitor() if monitor is None else monitor
        self.progress = Progress(self.monitor.verbose, self.monitor.stream)
        self.weights = _checked(weights, objective.size)  # with the lowest loss, or the latest
        self.loss = np.nan
        self.best: tuple[float, float, Floats] | None = None  # value on development data, loss, weights
        self.waited = 0  # evaluations since then
        self.kept: int | None = None  # the iteration of the best
        self.history: list[dict[str, Any]] = []
        self.state: dict[str, Any] | None = None  # to go on from, if the solver gives one
        self.stated = 0  # iterations of this run before that state
        self.saved = self.start  # when a checkpoint was made last
        self.progress.begin()
        if self.monitor.done:
            self.progress.write(f"resumed at iteration {self.monitor.done}")

    @property
    def iteration(self) -> int:
        """The current iteration: 0 until the loss has been evaluated once."""
        return 0 if np.isnan(self.loss) else len(self.history) + 1

    def keep(self, weights: Floats, loss: float) -> None:
        """Take these weights, whatever their loss."""
        self.weights, self.loss = weights.copy(), loss

    def offer(self, weights: Floats, loss: float) -> None:
        """Keep these weights, which the caller must not change, if their loss is the lowest so far."""
        if not loss > self.loss:  # true also while self.loss is nan
            self.weights, self.loss = weights, loss

    def step(
        self, weights: Floats, loss: float, gradient_norm: float, state: Callable[[], dict[str, Any]] | None = None
    ) -> None:
        """An iteration is done; raises ``StopRun`` when the development data show no improvement for too long.

        ``state`` gives what the solver needs to go on from here, if a checkpoint is to hold it.
        """
        number = self.monitor.done + len(self.history) + 1
        seconds = time.perf_counter() - self.start
        entry = {"iteration": number, "loss": loss, "gradient_norm": gradient_norm, "seconds": seconds}
        self.history.append({**entry, "score": None})
        if self.monitor.evaluate is not None:
            self.history[-1]["score"] = self.evaluate(weights, loss)
        if self.monitor.checkpoint is not None and state is not None:
            self.state, self.stated = {**state(), **self.standing()}, len(self.history)
        self.progress.show(self.history[-1])
        if self.monitor.report is not None:
            self.monitor.report(self.history[-1])
        if number % self.monitor.checkpoint_every == 0 or time.perf_counter() - self.saved >= CHECKPOINT_AFTER:
            self.save(weights, self.state)
            self.saved = time.perf_counter()
        if self.monitor.patience is not None and self.waited >= self.monitor.patience:
            raise StopRun(f"no improvement on the development set for {self.waited} evaluations", True)

    def evaluate(self, weights: Floats, loss: float) -> float:
        """The value on development data; the best so far is kept."""
        assert self.monitor.evaluate is not None
        value = float(self.monitor.evaluate(weights))
        self.waited += 1
        if value > (-np.inf if self.best is None else self.best[0]):
            self.best, self.waited = (value, loss, weights.copy()), 0
            self.kept = self.history[-1]["iteration"]
        return value

    def save(self, weights: Floats, state: dict[str, Any] | None) -> None:
        """Make a checkpoint, if any are wanted."""
        if self.monitor.checkpoint is not None:
            if state is None:
                self.monitor.checkpoint(weights.copy(), list(self.history))
            else:
                self.monitor.checkpoint(weights.copy(), self.history[: self.stated], state)

    def standing(self) -> dict[str, Any]:
        """The results on development data so far."""
        if self.best is None:
            return {}
        value, loss, weights = self.best
        return {"waited": self.waited, "kept": self.kept, "value": value, "best_loss": loss, "best": weights}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Restore the results on development data of the run that this one resumes."""
        self.state = dict(state)
        self.weights, self.loss = np.array(state["base"]), float(state["loss"])
        if "best" in state and self.monitor.evaluate is not None:
            self.best = float(state["value"]), float(state["best_loss"]), np.array(state["best"])
            self.waited, self.kept = int(state["waited"]), state["kept"]

    def result(self, reason: str, converged: bool) -> Result:
        """Return the result with the best weights."""
        loss, weights = (self.loss, self.weights) if self.best is None else self.best[1:]
        self.progress.close(reason)
        self.save(weights, self.state if reason == INTERRUPTED else None)
        return Result(weights, float(loss), converged, len(self.history), reason, self.history, self.kept, self.state)


def supervise(run: Run, work: Callable[[], None]) -> Result:
    """Do the work until it raises ``StopRun`` or Ctrl-C comes, and return the result."""
    reason, converged = "nothing to do", True
    try:
        work()
    except StopRun as stop:
        reason, converged = stop.reason, stop.converged
    except KeyboardInterrupt:
        reason, converged = INTERRUPTED, False
    return run.result(reason, converged)


def _checked(weights: Floats, size: int) -> Floats:
    """Return a checked copy of the starting weights."""
    weights = np.array(weights, dtype=np.float64)
    if weights.shape != (size,):
        raise ValueError(f"the starting weights have shape {weights.shape}, but the objective has {size} weights")
    if not np.isfinite(weights).all():
        raise ValueError("the starting weights are not all finite")
    return weights


def at_least(thing: object, **minimum: float) -> None:
    """Raise unless each attribute named is at least its minimum."""
    for name, least in minimum.items():
        value = getattr(thing, name)
        if not isinstance(value, int | float | np.number) or not value >= least:
            raise ValueError(f"{type(thing).__name__}: {name} is {value!r}, expected at least {least}")


def penalty_of(weights: Floats, c1: Penalty, c2: Penalty) -> float:
    """The penalties c1 * sum |w| + c2 * sum w^2."""
    squares = float((c2 * weights) @ weights) if np.ndim(c2) else float(c2 * (weights @ weights))
    return squares + float(np.sum(c1 * np.abs(weights))) if np.any(c1) else squares


def check_penalties(c1: Penalty, c2: Penalty) -> None:
    """Raise unless both penalties are finite and not negative."""
    for name, value in (("c1", c1), ("c2", c2)):
        if not (np.min(value, initial=0.0) >= 0 and np.max(value, initial=0.0) < np.inf):
            raise ValueError(f"{name} is {value}, expected a finite number of at least 0")


def check_finite(value: Value, where: str) -> Value:
    """The value with its gradient as float64; raises where either is not finite."""
    loss, gradient = float(value[0]), np.asarray(value[1], dtype=np.float64)
    if not np.isfinite(loss):
        raise ValueError(
            f"the loss is {loss} in {where}: check that all features are finite; SGD may need a smaller rate"
        )
    if not np.isfinite(gradient.sum()) and not np.isfinite(gradient).all():
        raise ValueError(f"the gradient is not finite in {where}, although the loss is {loss:g}")
    return loss, gradient
