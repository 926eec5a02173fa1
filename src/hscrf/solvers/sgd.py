"""Stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hscrf.arrays import Floats, Ints, Random, generator
from hscrf.solvers.course import (
    Monitor,
    Objective,
    Penalty,
    Result,
    Run,
    Stop,
    Value,
    at_least,
    check_finite,
    check_penalties,
    penalty_of,
    supervise,
)
from hscrf.solvers.epochs import batches, kept_on_interrupt, shuffled, with_loss


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent on small batches, with averaging.

    A step subtracts the mean gradient of a batch times ``rate / (1 + decay * t)``, t in epochs. A ``rate`` of None is
    calibrated: several rates are tried for one pass over up to 500 sequences, and the best is taken. The average covers
    the iterates since epoch 1, 2, 4, 8, ...: at least the last half of them. L1 is a soft threshold after each step;
    what it holds at zero in the end is zero in the result.

    The losses in the history are sums over batches, each at the weights before its step; the loss of the result is
    exact. Stops when the loss changes by less than ``delta`` of itself from one epoch to the next, or after all epochs.
    """

    epochs: int = 20
    batch: int = 8
    rate: float | None = None
    decay: float = 1.0
    average: bool = True
    delta: float = 1e-5

    def __post_init__(self) -> None:
        at_least(self, epochs=1, batch=1, decay=0, delta=0)
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
        """Start at ``weights`` and reduce the penalised loss; ``random_state`` decides the order of the sequences."""
        check_penalties(c1, c2)
        run = Run(objective, weights, monitor)
        stochastic = Stochastic(self, objective, run.weights, c1, c2)
        rng = generator(random_state)
        result = supervise(run, lambda: self._epochs(stochastic, run, rng))
        return with_loss(result, lambda w: objective(w)[0] + stochastic.penalty(w))

    def _epochs(self, stochastic: Stochastic, run: Run, rng: np.random.Generator) -> None:
        stochastic.rate = _calibrated(stochastic, rng) if self.rate is None else self.rate
        loss = np.inf
        for epoch in range(self.epochs):
            before = loss
            with kept_on_interrupt(run, stochastic):
                loss, norm = stochastic.epoch(epoch, shuffled(stochastic.objective, rng))
            weights = stochastic.weights
            run.keep(weights, loss)
            run.step(weights, loss, norm)
            if epoch and abs(before - loss) <= self.delta * abs(loss):
                raise Stop(f"the loss changed by less than delta={self.delta:g} in an epoch", True)
        raise Stop(f"all {self.epochs} epochs done", False)


class Stochastic:
    """The state of stochastic gradient descent: the current weights and their average."""

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
        """What the penalties add to the loss."""
        return penalty_of(weights, self.c1, self.c2)

    def epoch(self, epoch: int, order: Ints) -> tuple[float, float]:
        """One pass over all sequences; the penalised loss and the gradient norm, summed over its batches."""
        if epoch & (epoch - 1) == 0:
            self.n_mean = 0  # the average starts afresh at 1, 2, 4, 8, ...
        total, direction = 0.0, np.zeros_like(self.current)
        for start, which in enumerate(batches(order, self.options.batch)):
            elapsed = epoch + start * self.options.batch / self.n
            rate = self.rate / (1 + self.options.decay * elapsed)
            loss, gradient = self.step(which, rate, f"iteration {epoch + 1}")
            total += loss
            direction += gradient
            if epoch or self.options.epochs == 1:
                self.add_to_mean()
        return total + self.penalty(self.current), float(np.linalg.norm(direction + 2 * self.c2 * self.current))

    def step(self, which: Ints, rate: float, where: str) -> Value:
        """One step on a batch; its loss and gradient before the step, without penalties."""
        loss, gradient = check_finite(self.objective.part(self.current, which), where)
        self.current *= 1 - np.minimum(1.0, rate * 2 * self.c2 / self.n)
        self.current -= (rate / len(which)) * gradient
        if np.any(self.c1):
            size = np.maximum(np.abs(self.current) - rate * self.c1 / self.n, 0.0)
            self.current = np.copysign(size, self.current)
        return loss, gradient

    def add_to_mean(self) -> None:
        """Add the current weights to their average."""
        self.n_mean += 1
        if self.n_mean == 1:
            self.mean[:] = 0.0
        self.mean += (self.current - self.mean) / self.n_mean


def _calibrated(stochastic: Stochastic, rng: np.random.Generator) -> float:
    """The power of two that gives the lowest loss after one pass over a sample, searched up and down from 1."""
    sample = shuffled(stochastic.objective, rng)[:500]
    rate, loss = 1.0, _trial(stochastic, sample, 1.0)
    for factor in (2.0, 0.5):
        for _ in range(30):
            tried = _trial(stochastic, sample, rate * factor)
            if tried >= loss and (np.isfinite(loss) or factor > 1):
                break
            rate, loss = rate * factor, tried
    return rate


def _trial(stochastic: Stochastic, sample: Ints, rate: float) -> float:
    """The penalised loss of a sample after one pass over it; infinite where it diverges."""
    copy = Stochastic(stochastic.options, stochastic.objective, stochastic.current, stochastic.c1, stochastic.c2)
    try:
        with np.errstate(all="ignore"):
            for which in batches(sample, stochastic.options.batch):
                copy.step(which, rate, "calibration")
            loss = float(copy.objective.part(copy.current, sample)[0])
            loss += copy.penalty(copy.current) * len(sample) / copy.n
    except (ValueError, ArithmeticError):
        return np.inf
    return loss if np.isfinite(loss) else np.inf
