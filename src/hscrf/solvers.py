"""Optimisers that know no CRF: they see a loss, its gradient, and pieces of both.

Every solver minimises ``objective + sum(c2 * w^2) + sum(c1 * |w|)`` (CRFsuite's convention: no half). ``minimize``
returns a ``Result`` that says what happened; Ctrl-C ends the run, not the program, and keeps the best weights so far.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TextIO

import numpy as np
from numpy.typing import NDArray

__all__ = ["LBFGS", "SGD", "Monitor", "Objective", "Perceptron", "Result", "Solver", "solver_of"]

Floats = NDArray[np.float64]
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
        _at_least(self, every=1, every_evaluate=1, verbose=0)
        if self.patience is not None:
            _at_least(self, patience=1)
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


# ------------------------------------------------------------------------------
# The course of a run: history, best weights, reasons to stop


class _Stop(Exception):
    """Ends a run from wherever it is."""

    def __init__(self, reason: str, converged: bool) -> None:
        super().__init__(reason)
        self.reason, self.converged = reason, converged


class _Progress:
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


class _Run:
    """What is known of a run so far."""

    def __init__(self, objective: Objective, weights: Floats, monitor: Monitor | None) -> None:
        self.start = time.perf_counter()
        self.monitor = Monitor() if monitor is None else monitor
        self.progress = _Progress(self.monitor.verbose, self.monitor.stream)
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
            raise _Stop(f"no improvement on the development set for {self.waited} evaluations", True)

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


def _supervise(run: _Run, work: Callable[[], None]) -> Result:
    """Do the work, which ends by ``_Stop`` or by Ctrl-C."""
    reason, converged = "nothing to do", True
    try:
        work()
    except _Stop as stop:
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


def _at_least(thing: object, **minimum: float) -> None:
    for name, least in minimum.items():
        value = getattr(thing, name)
        if not value >= least:
            raise ValueError(f"{type(thing).__name__}: {name} is {value}, expected at least {least}")


def penalty_of(weights: Floats, c1: Penalty, c2: Penalty) -> float:
    """What the penalties add to the loss."""
    squares = float((c2 * weights) @ weights)
    return squares + float(np.sum(c1 * np.abs(weights))) if np.any(c1) else squares


def _check_penalties(c1: Penalty, c2: Penalty) -> None:
    for name, value in (("c1", c1), ("c2", c2)):
        if not (np.min(value, initial=0.0) >= 0 and np.max(value, initial=0.0) < np.inf):
            raise ValueError(f"{name} is {value}, expected a finite number of at least 0")


def _check_finite(value: Value, where: str) -> Value:
    """The value with its gradient as float64; raises where either is not finite."""
    loss, gradient = float(value[0]), np.asarray(value[1], dtype=np.float64)
    if not np.isfinite(loss):
        raise ValueError(f"the loss is {loss} in {where}: are all features finite, and is the step not too long?")
    if not np.isfinite(gradient.sum()) and not np.isfinite(gradient).all():
        raise ValueError(f"the gradient is not finite in {where}, although the loss is {loss:g}")
    return loss, gradient


# ------------------------------------------------------------------------------
# All of the data at once


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS: scipy's L-BFGS-B, or OWL-QN (Andrew and Gao 2007) if ``c1 > 0``.

    Stops when no entry of the gradient exceeds ``tol``, or when the loss improved by less than ``delta`` of itself
    over the last ``period`` iterations (CRFsuite's rule), or after ``max_iter`` iterations.

    >>> class Valley:
    ...     size = 2
    ...     def __call__(self, weights):
    ...         away = weights - [3.0, -0.5]
    ...         return away @ away / 2, away
    >>> result = LBFGS().minimize(Valley(), np.zeros(2), c1=1.0)
    >>> result.weights.round(4), result.converged
    (array([2., 0.]), True)
    """

    max_iter: int = 1000
    tol: float = 1e-5
    memory: int = 6
    period: int = 10
    delta: float = 1e-5

    def __post_init__(self) -> None:
        _at_least(self, max_iter=1, tol=0, memory=1, period=1, delta=0)

    def minimize(
        self,
        objective: Objective,
        weights: Floats,
        c1: Penalty = 0.0,
        c2: Penalty = 0.0,
        monitor: Monitor | None = None,
        random_state: Random = None,
    ) -> Result:
        """Start at ``weights`` and go down; nothing here is random."""
        _check_penalties(c1, c2)
        run = _Run(objective, weights, monitor)
        descent = _Descent(self, objective, run, c1, c2)
        return _supervise(run, lambda: _owlqn(descent) if np.any(c1) else _scipy_lbfgs(descent))


class _Descent:
    """The penalised loss of a run of LBFGS, and the rules that end it."""

    def __init__(self, options: LBFGS, objective: Objective, run: _Run, c1: Penalty, c2: Penalty) -> None:
        self.options, self.objective, self.run, self.c1, self.c2 = options, objective, run, c1, c2
        self.start = run.weights
        self.losses: list[float] = []

    def evaluate(self, weights: Floats) -> Value:
        """The penalised loss, and the gradient of its smooth part (all but the L1 term)."""
        loss, gradient = _check_finite(self.objective(weights), f"iteration {self.run.iteration}")
        loss += penalty_of(weights, self.c1, self.c2)
        self.run.offer(weights, loss)
        return loss, gradient + 2 * self.c2 * weights

    def begin(self) -> Value:
        """Value at the start; raises ``_Stop`` if there is nothing to gain."""
        loss, gradient = self.evaluate(self.start)
        self.losses.append(loss)
        self.stop_if_flat(_pseudo_gradient(self.start, gradient, self.c1))
        return loss, gradient

    def step(self, weights: Floats, loss: float, gradient: Floats) -> None:
        """An iteration is done; ``gradient`` is that of the whole loss (with L1: the pseudo-gradient)."""
        self.losses.append(loss)
        self.run.step(weights, loss, float(np.linalg.norm(gradient)))
        self.stop_if_flat(gradient)
        self.stop_if_slow()
        if len(self.losses) > self.options.max_iter:
            raise _Stop(f"max_iter={self.options.max_iter} iterations done", False)

    def stop_if_flat(self, gradient: Floats) -> None:
        if np.abs(gradient).max(initial=0.0) <= self.options.tol:
            raise _Stop(f"no entry of the gradient exceeds tol={self.options.tol:g}", True)

    def stop_if_slow(self) -> None:
        period, delta = self.options.period, self.options.delta
        if len(self.losses) > period and self.losses[-1 - period] - self.losses[-1] <= delta * abs(self.losses[-1]):
            raise _Stop(f"the loss improved by less than delta={delta:g} over {period} iterations", True)

    def stuck(self, gradient: Floats) -> _Stop:
        """No lower loss could be found: at the limit of rounding that is convergence."""
        norm = float(np.linalg.norm(gradient))
        converged = norm <= 1e-6 * max(1.0, abs(self.losses[-1]))
        return _Stop(f"the line search found no lower loss; the gradient norm is {norm:.1e}", converged)


def _scipy_lbfgs(descent: _Descent) -> None:
    """Ends by ``_Stop``. Scipy's own rules are switched off, except that it ends where the loss stands still."""
    from scipy.optimize import minimize

    last = (descent.start, *descent.begin())  # weights, loss, gradient

    def evaluate(weights: Floats) -> Value:
        nonlocal last
        if not np.array_equal(weights, last[0]):
            last = (weights.copy(), *descent.evaluate(weights))
        return last[1], last[2]

    def callback(weights: Floats) -> None:
        evaluate(weights)  # as a rule the last one
        descent.step(*last)

    limit = 100 * descent.options.max_iter
    options = {"maxcor": descent.options.memory, "maxiter": limit, "maxfun": limit, "ftol": 0.0, "gtol": 0.0}
    minimize(evaluate, last[0], jac=True, method="L-BFGS-B", callback=callback, options=options)
    raise descent.stuck(last[2])


def _owlqn(descent: _Descent) -> None:
    """Orthant-wise limited-memory quasi-Newton; ends by ``_Stop``."""
    weights, (loss, gradient) = descent.start, descent.begin()
    pairs: deque[tuple[Floats, Floats]] = deque(maxlen=descent.options.memory)
    while True:
        pseudo = _pseudo_gradient(weights, gradient, descent.c1)
        found = _orthant_search(descent, weights, loss, pseudo, pairs)
        if found is None and pairs:  # try again without memory: straight down
            pairs.clear()
            found = _orthant_search(descent, weights, loss, pseudo, pairs)
        if found is None:
            raise descent.stuck(pseudo)
        new, loss, new_gradient = found
        step, change = new - weights, new_gradient - gradient
        if step @ change > 1e-12 * (change @ change):
            pairs.append((step, change))
        weights, gradient = new, new_gradient
        descent.step(weights, loss, _pseudo_gradient(weights, gradient, descent.c1))


def _pseudo_gradient(weights: Floats, gradient: Floats, c1: Penalty) -> Floats:
    """The one-sided derivative of steepest descent: zero where the L1 term holds a weight at zero."""
    if not np.any(c1):
        return gradient
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - c1, 0.0)
    return np.where(weights == 0, at_zero, gradient + c1 * np.sign(weights))


def _orthant_search(
    descent: _Descent, weights: Floats, loss: float, pseudo: Floats, pairs: deque[tuple[Floats, Floats]]
) -> tuple[Floats, float, Floats] | None:
    """Backtrack along the quasi-Newton direction inside the orthant; None if the loss does not go down."""
    direction = -_times_inverse_hessian(pseudo, pairs)
    direction[direction * pseudo >= 0] = 0.0
    orthant = np.where(weights == 0, -np.sign(pseudo), np.sign(weights))
    length = 1.0 if pairs else 1.0 / float(np.linalg.norm(pseudo))
    for _ in range(40):
        new = weights + length * direction
        new[new * orthant <= 0] = 0.0
        promised = float(pseudo @ (new - weights))
        if promised >= 0:
            return None
        new_loss, gradient = descent.evaluate(new)
        if new_loss <= loss + 1e-4 * promised:
            return new, new_loss, gradient
        length *= 0.5
    return None


def _times_inverse_hessian(vector: Floats, pairs: deque[tuple[Floats, Floats]]) -> Floats:
    """The two-loop recursion over (step, change of gradient), oldest first."""
    result = vector.copy()
    factors = []
    for step, change in reversed(pairs):
        factors.append((step @ result) / (step @ change))
        result -= factors[-1] * change
    if pairs:
        step, change = pairs[-1]
        result *= (step @ change) / (change @ change)
    for (step, change), factor in zip(pairs, reversed(factors), strict=True):
        result += (factor - (change @ result) / (step @ change)) * step
    return result


# ------------------------------------------------------------------------------
# A few data points at a time


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent on small batches, with averaging.

    A step goes down the mean gradient of a batch by ``rate / (1 + decay * t)``, t in epochs. A ``rate`` of None is
    calibrated: up to 500 data points are passed once with a few rates, and the best is taken. The average covers
    the iterates since epoch 1, 2, 4, 8, ...: at least the last half of them. L1 is a soft threshold after each step;
    what it holds at zero in the end is zero in the result.

    The losses of the history are those met on the way; the result's is exact. Stops when they change by less than
    ``delta`` of themselves from one epoch to the next, or after all epochs.
    """

    epochs: int = 20
    batch: int = 8
    rate: float | None = None
    decay: float = 1.0
    average: bool = True
    delta: float = 1e-5

    def __post_init__(self) -> None:
        _at_least(self, epochs=1, batch=1, decay=0, delta=0)
        if self.rate is not None and not 0 < self.rate < np.inf:
            raise ValueError(f"SGD: rate is {self.rate}, expected a positive number or None")

    def minimize(
        self,
        objective: Objective,
        weights: Floats,
        c1: Penalty = 0.0,
        c2: Penalty = 0.0,
        monitor: Monitor | None = None,
        random_state: Random = None,
    ) -> Result:
        """Start at ``weights`` and go down; the order of the data comes from ``random_state``."""
        _check_penalties(c1, c2)
        run = _Run(objective, weights, monitor)
        stochastic = _Stochastic(self, objective, run.weights, c1, c2)
        rng = _generator(random_state)
        result = _supervise(run, lambda: self._epochs(stochastic, run, rng))
        return _with_loss(result, lambda w: objective(w)[0] + stochastic.penalty(w))

    def _epochs(self, stochastic: _Stochastic, run: _Run, rng: np.random.Generator) -> None:
        stochastic.rate = _calibrated(stochastic, rng) if self.rate is None else self.rate
        loss = np.inf
        for epoch in range(self.epochs):
            before = loss
            with _kept_on_interrupt(run, stochastic):
                loss, norm = stochastic.epoch(epoch, rng.permutation(stochastic.n))
            weights = stochastic.weights
            run.keep(weights, loss)
            run.step(weights, loss, norm)
            if epoch and abs(before - loss) <= self.delta * abs(loss):
                raise _Stop(f"the loss changed by less than delta={self.delta:g} in an epoch", True)
        raise _Stop(f"all {self.epochs} epochs done", False)


class _Stochastic:
    """The moving parts of stochastic gradient descent."""

    def __init__(self, options: SGD, objective: Objective, weights: Floats, c1: Penalty, c2: Penalty) -> None:
        self.options, self.objective, self.c1, self.c2 = options, objective, c1, c2
        self.n = objective.n_parts
        self.current = weights.copy()
        self.mean = np.zeros_like(weights)
        self.n_mean = 0  # iterates in the mean
        self.rate = 1.0

    @property
    def weights(self) -> Floats:
        """The answer so far."""
        if not (self.options.average and self.n_mean):
            return self.current.copy()
        return np.where(self.current == 0, 0.0, self.mean) if np.any(self.c1) else self.mean.copy()

    def penalty(self, weights: Floats) -> float:
        return penalty_of(weights, self.c1, self.c2)

    def epoch(self, epoch: int, order: Integers) -> tuple[float, float]:
        """Pass over all data; the penalised loss and the gradient norm met on the way."""
        if epoch & (epoch - 1) == 0:
            self.n_mean = 0  # the average starts afresh at 1, 2, 4, 8, ...
        total, direction = 0.0, np.zeros_like(self.current)
        for start, which in enumerate(_batches(order, self.options.batch)):
            elapsed = epoch + start * self.options.batch / self.n
            rate = self.rate / (1 + self.options.decay * elapsed)
            loss, gradient = self.step(which, rate, f"iteration {epoch + 1}")
            total += loss
            direction += gradient
            if epoch or self.options.epochs == 1:
                self.add_to_mean()
        return total + self.penalty(self.current), float(np.linalg.norm(direction + 2 * self.c2 * self.current))

    def step(self, which: Integers, rate: float, where: str) -> Value:
        """One step down on a batch; its loss and gradient without penalties."""
        loss, gradient = _check_finite(self.objective.part(self.current, which), where)
        self.current *= 1 - np.minimum(1.0, rate * 2 * self.c2 / self.n)
        self.current -= (rate / len(which)) * gradient
        if np.any(self.c1):
            size = np.maximum(np.abs(self.current) - rate * self.c1 / self.n, 0.0)
            self.current = np.copysign(size, self.current)
        return loss, gradient

    def add_to_mean(self) -> None:
        self.n_mean += 1
        if self.n_mean == 1:
            self.mean[:] = 0.0
        self.mean += (self.current - self.mean) / self.n_mean


def _calibrated(stochastic: _Stochastic, rng: np.random.Generator) -> float:
    """The best rate among powers of two for one pass over a sample, by climbing up and down from 1."""
    sample = rng.permutation(stochastic.n)[:500]
    rate, loss = 1.0, _trial(stochastic, sample, 1.0)
    for factor in (2.0, 0.5):
        for _ in range(30):
            tried = _trial(stochastic, sample, rate * factor)
            if tried >= loss and (np.isfinite(loss) or factor > 1):
                break
            rate, loss = rate * factor, tried
    return rate


def _trial(stochastic: _Stochastic, sample: Integers, rate: float) -> float:
    """Penalised loss of a sample after one pass over it; infinite where it goes astray."""
    copy = _Stochastic(stochastic.options, stochastic.objective, stochastic.current, stochastic.c1, stochastic.c2)
    try:
        with np.errstate(all="ignore"):
            for which in _batches(sample, stochastic.options.batch):
                copy.step(which, rate, "calibration")
            loss = float(copy.objective.part(copy.current, sample)[0])
            loss += copy.penalty(copy.current) * len(sample) / copy.n
    except (ValueError, ArithmeticError):
        return np.inf
    return loss if np.isfinite(loss) else np.inf


@dataclass(frozen=True)
class Perceptron:
    """The averaged structured perceptron (Collins 2002): needs the best answers only, no probabilities.

    Stops when an epoch makes no mistake, or after all epochs. It knows no penalties: c1 and c2 are not used, averaging
    is what keeps its weights small. The losses of the history are those met on the way.
    """

    epochs: int = 10
    batch: int = 1
    average: bool = True

    def __post_init__(self) -> None:
        _at_least(self, epochs=1, batch=1)

    def minimize(
        self,
        objective: Objective,
        weights: Floats,
        c1: Penalty = 0.0,
        c2: Penalty = 0.0,
        monitor: Monitor | None = None,
        random_state: Random = None,
    ) -> Result:
        """Start at ``weights`` and correct mistakes; the order of the data comes from ``random_state``."""
        run = _Run(objective, weights, monitor)
        corrections = _Corrections(self, objective, run.weights)
        rng = _generator(random_state)
        result = _supervise(run, lambda: self._epochs(corrections, run, rng))
        everything = np.arange(objective.n_parts)
        return _with_loss(result, lambda w: objective.mistakes(w, everything)[0])

    def _epochs(self, corrections: _Corrections, run: _Run, rng: np.random.Generator) -> None:
        for epoch in range(self.epochs):
            order = rng.permutation(corrections.objective.n_parts)
            with _kept_on_interrupt(run, corrections):
                loss, norm, mistakes = corrections.epoch(order, f"iteration {epoch + 1}")
            weights = corrections.weights
            run.keep(weights, loss)
            run.step(weights, loss, norm)
            if not mistakes:
                raise _Stop("an epoch without mistakes", True)
        raise _Stop(f"all {self.epochs} epochs done", False)


class _Corrections:
    """The moving parts of the perceptron. The mean of its iterates is ``current - late / n``."""

    def __init__(self, options: Perceptron, objective: Objective, weights: Floats) -> None:
        self.options, self.objective = options, objective
        self.current = weights.copy()
        self.late = np.zeros_like(weights)  # each correction times the number of iterates without it
        self.n = 0  # iterates so far

    @property
    def weights(self) -> Floats:
        """The answer so far."""
        return self.current - self.late / max(self.n, 1) if self.options.average else self.current.copy()

    def epoch(self, order: Integers, where: str) -> tuple[float, float, int]:
        """Pass over all data; the loss and the gradient norm met on the way, and the number of corrections."""
        total, mistakes, direction = 0.0, 0, np.zeros_like(self.current)
        for which in _batches(order, self.options.batch):
            loss, gradient = _check_finite(self.objective.mistakes(self.current, which), where)
            total += loss
            if gradient.any():  # not loss > 0: a wrong answer may tie with the truth
                self.current -= gradient
                self.late -= self.n * gradient
                direction += gradient
                mistakes += 1
            self.n += 1
        return total, float(np.linalg.norm(direction)), mistakes


class _kept_on_interrupt:
    """Keeps the weights in the middle of an epoch when Ctrl-C comes."""

    def __init__(self, run: _Run, moving: _Stochastic | _Corrections) -> None:
        self.run, self.moving = run, moving

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self.run.keep(self.moving.weights, self.run.loss)


def _with_loss(result: Result, evaluate: Callable[[Floats], float]) -> Result:
    """The result with its exact loss, unless Ctrl-C says not to wait for it."""
    if result.reason == INTERRUPTED:
        return result
    try:
        return replace(result, loss=float(evaluate(result.weights)))
    except KeyboardInterrupt:
        return replace(result, reason=INTERRUPTED, converged=False)


def _batches(order: Integers, size: int) -> Iterator[Integers]:
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _generator(random_state: Random) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)


# ------------------------------------------------------------------------------

_SOLVERS: dict[str, Callable[[], Solver]] = {"lbfgs": LBFGS, "sgd": SGD, "perceptron": Perceptron}


def solver_of(solver: str | Solver) -> Solver:
    """The solver of that name with its default options, or the solver itself.

    >>> solver_of("perceptron")
    Perceptron(epochs=10, batch=1, average=True)
    """
    if isinstance(solver, str) and solver in _SOLVERS:
        return _SOLVERS[solver]()
    if not isinstance(solver, (str, type)) and callable(getattr(solver, "minimize", None)):
        return solver
    names = ", ".join(repr(name) for name in _SOLVERS)
    raise ValueError(f"solver is {solver!r}, expected {names} or a solver such as LBFGS(max_iter=100)")
