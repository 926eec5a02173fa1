"""Batch learning: limited-memory BFGS, and OWL-QN for L1."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Random
from hscrf.solvers.course import (
    Loss,
    Monitor,
    Penalty,
    Result,
    Run,
    StopRun,
    Value,
    at_least,
    check_finite,
    check_penalties,
    penalty_of,
    supervise,
)

DELTA = 1e-3  # share by which the loss must improve over a period, where nothing else is given
TRIALS = 40  # lengths that a search tries
PRECONDITION = 0.75  # power of the penalties by which weights are scaled; chosen by time to quality on six data sets
RARE = 0.2  # power of the frequencies by which weights are scaled; any from 0.15 to 0.3 takes as many iterations
ENOUGH, STEEP = 1e-4, 0.9  # parts of the slope at the start, in Wolfe's conditions

Pairs = deque[tuple[Floats, Floats, float]]  # steps, changes of the gradient, and their products; oldest first
Point = tuple[float, float, float]  # length of a step, and the loss and its slope there
Found = tuple[Floats, float, Floats]  # weights, loss, gradient
Search = Callable[["_Descent", Floats, float, Floats, Pairs], Found | None]


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS (Nocedal and Wright 2006, section 7.2), or OWL-QN (Andrew and Gao 2007) if ``c1 > 0``.

    Parameters
    ----------
    max_iter : int
        Stop after this many iterations.
    tol : float
        Stop when no entry of the gradient exceeds this value.
    memory : int
        Number of past steps that approximate the inverse Hessian.
    period : int
    delta : float or None
        Stop when the loss improved by less than ``delta`` of itself over the last ``period`` iterations. None leaves it
        to the model: 1e-3, but 1e-5 for :class:`ChainCRF`, and 1e-2 for partial labels.

    Notes
    -----
    Held-out quality stops changing before the loss does. With ``delta=1e-3`` it equals that of the optimum
    (``experiments/stopping.py``). CRFsuite uses ``delta=1e-5``.

    The initial inverse Hessian is a diagonal: weights with a stronger L2 penalty take shorter steps, and so do those of
    frequent features, if the objective has a method ``frequencies``. Nested models then converge in less than half of
    the iterations.

    Examples
    --------
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
    delta: float | None = None

    def __post_init__(self) -> None:
        at_least(self, max_iter=1, tol=0, memory=1, period=1, **({} if self.delta is None else {"delta": 0}))

    def minimize(
        self,
        objective: Loss,
        weights: Floats,
        c1: Penalty = 0.0,
        c2: Penalty = 0.0,
        monitor: Monitor | None = None,
        random_state: Random = None,
    ) -> Result:
        """Minimise the penalised loss from the given weights.

        Parameters
        ----------
        objective : Loss
            Loss without penalties, and its gradient.
        weights : ndarray (n_weights,)
            Start.
        c1, c2 : float or ndarray (n_weights,)
            Factors of the L1 and L2 penalties, of all weights or of each one.
        monitor : Monitor, optional
            What happens after each iteration.
        random_state : object
            Not used: the method is deterministic.

        Returns
        -------
        Result
            Weights, loss, history, and the reason why the run stopped.
        """
        check_penalties(c1, c2)
        run = Run(objective, weights, monitor)
        descent = _Descent(self, objective, run, c1, c2)
        return supervise(run, lambda: _descend(descent, _orthant_search if np.any(c1) else _line_search))


class _Descent:
    """The penalised loss of one run of LBFGS, and its stopping rules."""

    def __init__(self, options: LBFGS, objective: Loss, run: Run, c1: Penalty, c2: Penalty) -> None:
        self.options, self.objective, self.run, self.c1, self.c2 = options, objective, run, c1, c2
        self.scales = _scales(objective, c2)
        self.losses: list[float] = []
        self.pull, self.is_sparse = 2 * c2, bool(np.any(c1))

    def evaluate(self, weights: Floats) -> Value:
        """Return the penalised loss, and the gradient of its smooth part (without the L1 term)."""
        loss, gradient = check_finite(self.objective(weights), f"iteration {self.run.iteration}")
        total = self.pull * weights  # of the penalty c2 * sum w^2
        loss += float(total @ weights) / 2
        if self.is_sparse:
            loss += penalty_of(weights, self.c1, 0.0)
        self.run.offer(weights, loss)
        total += gradient
        return loss, total

    def begin(self) -> Found:
        """Weights, loss and gradient at the start; raises ``StopRun`` if the gradient is zero there."""
        start = self.run.weights
        loss, gradient = self.evaluate(start)
        self.losses.append(loss)
        self.stop_if_flat(_pseudo_gradient(start, gradient, self.c1))
        return start, loss, gradient

    def step(self, weights: Floats, loss: float, gradient: Floats) -> None:
        """Record one iteration; ``gradient`` is that of the whole loss (with L1: the pseudo-gradient)."""
        self.losses.append(loss)
        self.run.step(weights, loss, float(np.linalg.norm(gradient)))
        self.stop_if_flat(gradient)
        self.stop_if_slow()
        if len(self.losses) > self.options.max_iter:
            raise StopRun(f"max_iter={self.options.max_iter} iterations done", False)

    def stop_if_flat(self, gradient: Floats) -> None:
        if max(gradient.max(initial=0.0), -gradient.min(initial=0.0)) <= self.options.tol:
            raise StopRun(f"no entry of the gradient exceeds tol={self.options.tol:g}", True)

    def stop_if_slow(self) -> None:
        period, delta = self.options.period, DELTA if self.options.delta is None else self.options.delta
        if len(self.losses) > period and self.losses[-1 - period] - self.losses[-1] <= delta * abs(self.losses[-1]):
            raise StopRun(f"the loss improved by less than delta={delta:g} over {period} iterations", True)

    def stuck(self, gradient: Floats) -> StopRun:
        """Return the stop after a search without a lower loss; the run converged if the gradient is near zero."""
        norm = float(np.linalg.norm(gradient))
        converged = norm <= 1e-6 * max(1.0, abs(self.losses[-1]))
        return StopRun(f"the line search found no lower loss; the gradient norm is {norm:.1e}", converged)


def _descend(descent: _Descent, search: Search) -> None:
    """Repeat steps along quasi-Newton directions; the search sets their lengths. Ends by raising ``StopRun``."""
    weights, loss, gradient = descent.begin()
    pairs: Pairs = deque(maxlen=descent.options.memory)
    while True:
        pseudo = _pseudo_gradient(weights, gradient, descent.c1)
        found = search(descent, weights, loss, pseudo, pairs)
        if found is None and pairs:  # try again without memory: straight down
            pairs.clear()
            found = search(descent, weights, loss, pseudo, pairs)
        if found is None:
            raise descent.stuck(pseudo)
        new, loss, new_gradient = found
        step, change = new - weights, new_gradient - gradient
        product = float(step @ change)
        if product > 1e-12 * (change @ change):
            pairs.append((step, change, product))
        weights, gradient = new, new_gradient
        descent.step(weights, loss, _pseudo_gradient(weights, gradient, descent.c1))


def _pseudo_gradient(weights: Floats, gradient: Floats, c1: Penalty) -> Floats:
    """The one-sided derivative of steepest descent: zero where the L1 term holds a weight at zero."""
    if not np.any(c1):
        return gradient
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - c1, 0.0)
    return np.where(weights == 0, at_zero, gradient + c1 * np.sign(weights))


def _line_search(descent: _Descent, weights: Floats, loss: float, gradient: Floats, pairs: Pairs) -> Found | None:
    """Return a step along the quasi-Newton direction that satisfies Wolfe's conditions; None if there is none.

    The loss must fall by a fraction of what the slope at the start predicts, and the slope at the end must be less
    steep. Each trial length that is too short or too long bounds the next one.
    """
    direction = _times_inverse_hessian(gradient, pairs, descent.scales)
    np.negative(direction, out=direction)
    slope = float(gradient @ direction)
    length = 1.0 if pairs else _first_length(slope)
    short, long = (0.0, loss, slope), None
    for _ in range(TRIALS if slope < 0 else 0):
        new = length * direction
        new += weights
        new_loss, new_gradient = descent.evaluate(new)
        point = length, new_loss, float(new_gradient @ direction)
        if new_loss > loss + ENOUGH * length * slope:
            long = point
        elif point[2] < STEEP * slope:
            short = point
        else:
            return new, new_loss, new_gradient
        length = 4 * length if long is None else _between(short, long)
    return None


def _between(short: Point, long: Point) -> float:
    """Return where the cubic through two points (length, loss, slope) is lowest; the middle if it is near to one."""
    (a, low, fall), (b, high, rise) = short, long
    width = b - a
    bend = fall + rise - 3 * (high - low) / width
    root = math.sqrt(max(bend * bend - fall * rise, 0.0))
    spread = rise - fall + 2 * root
    part = 1 - (rise + root - bend) / spread if spread else 0.5
    return a + width * (part if 0.1 <= part <= 0.9 else 0.5)


def _orthant_search(descent: _Descent, weights: Floats, loss: float, pseudo: Floats, pairs: Pairs) -> Found | None:
    """Backtrack along the quasi-Newton direction inside the orthant; None if the loss does not go down."""
    direction = -_times_inverse_hessian(pseudo, pairs, descent.scales)
    direction[direction * pseudo >= 0] = 0.0
    orthant = np.where(weights == 0, -np.sign(pseudo), np.sign(weights))
    length = 1.0 if pairs else _first_length(float(pseudo @ direction))
    for _ in range(TRIALS):
        new = weights + length * direction
        new[new * orthant <= 0] = 0.0
        promised = float(pseudo @ (new - weights))
        if promised >= 0:
            return None
        new_loss, gradient = descent.evaluate(new)
        if new_loss <= loss + ENOUGH * promised:
            return new, new_loss, gradient
        length *= 0.5
    return None


def _first_length(slope: float) -> float:
    """The length of the first step: one unit in the norm in which weights are scaled."""
    return 1.0 / math.sqrt(-slope) if slope < 0 else 1.0


def _scales(objective: Loss, c2: Penalty) -> Floats | None:
    """The diagonal of the first inverse Hessian, up to a factor; None if it is a multiple of the identity."""
    found: Any = 1.0
    if np.ndim(c2) and np.any(c2) and np.ptp(c2) > 0:
        given = np.asarray(c2)
        found = np.maximum(given, given[given > 0].min()) ** -PRECONDITION
    frequencies = getattr(objective, "frequencies", None)
    if frequencies is not None:
        given = frequencies()
        if given.any():
            found = found * np.maximum(given, given[given > 0].min()) ** -RARE
    return found if np.ndim(found) else None


def _times_inverse_hessian(vector: Floats, pairs: Pairs, scales: Floats | None = None) -> Floats:
    """Return the product of the inverse Hessian and a vector by the two-loop recursion over the pairs."""
    result = vector.copy()
    if not pairs:
        return result if scales is None else result * scales
    factors: list[float] = []
    steps, changes, products = zip(*pairs, strict=True)
    last = changes[-1]
    for k in reversed(range(len(pairs))):
        factors.append(float(steps[k] @ result) / products[k])
        result -= factors[-1] * changes[k]
    result *= products[-1] / float(last @ (last if scales is None else last * scales))
    if scales is not None:
        result *= scales
    for k, factor in enumerate(reversed(factors)):
        result += (factor - float(changes[k] @ result) / products[k]) * steps[k]
    return result
