"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Ints, Random
from hscrf.solvers.course import (
    Monitor,
    Objective,
    Penalty,
    Result,
    Run,
    StopRun,
    at_least,
    check_penalties,
    penalty_of,
    supervise,
)
from hscrf.solvers.epochs import (
    MiniBatch,
    batch_size,
    bundle_order,
    bundles_of,
    checked_loss,
    kept_on_interrupt,
    penalty_by_group,
    restore,
    resumed_state,
    seed_of,
    shuffled,
    state_of,
    with_loss,
)
from hscrf.solvers.scaled_weights import ScaledWeights

MOST = 8  # default sequences in a batch
SAMPLE = 500  # sequences for trying a rate
TRUNCATIONS = 16  # times in an epoch that L1 is applied


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent on small batches, with averaging.

    Parameters
    ----------
    epochs : int
        Stop after this many passes over the data.
    batch : int, optional
        Sequences of a step. None takes 1 to 8, depending on the number of sequences.
    rate : float, optional
        Learning rate. None tries several rates for one pass over up to 500 sequences and takes the best.
    decay : float
        The rate at time t, in epochs, is ``rate / (1 + decay * t)``.
    average : bool
        Whether to average the iterates since epoch 1, 2, 4, 8, ...: at least the last half of them.
    delta : float
        Stop when the loss changes by less than this fraction of itself from one epoch to the next.

    Notes
    -----
    Sequences of similar length form the batches. The batches are fixed; their order is drawn anew in each epoch. A step
    changes only the weights of features in the batch; L2 shrinks all others by a common factor. L1 is a soft
    threshold (truncated gradient), applied 16 times an epoch. Weights that it sets to zero at the end are exactly zero
    in the result.

    A loss in the history is a sum over batches, each at the weights before its step. A gradient norm in the history is
    a mean over the epoch, computed from the distance that the weights moved. The loss of the result is exact.
    """

    epochs: int = 20
    batch: int | None = None
    rate: float | None = None
    decay: float = 0.3
    average: bool = True
    delta: float = 1e-5

    def __post_init__(self) -> None:
        at_least(self, epochs=1, decay=0, delta=0, **({} if self.batch is None else {"batch": 1}))
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
        """Minimise the penalised loss from the given weights.

        Parameters
        ----------
        objective : Objective
            Loss without penalties, and its gradient, for any subset of the sequences.
        weights : ndarray (n_weights,)
            Start.
        c1, c2 : float or ndarray (n_weights,)
            Factors of the L1 and L2 penalties, of all weights or of each one.
        monitor : Monitor, optional
            What happens after each epoch.
        random_state : int, Generator or None
            Determines batches and their order.

        Returns
        -------
        Result
            Weights, loss, history, and the reason why the run stopped.
        """
        check_penalties(c1, c2)
        run = Run(objective, weights, monitor)
        seed = seed_of(run, self, random_state)
        result = supervise(run, lambda: self._epochs(objective, run, c1, c2, seed))
        return with_loss(result, lambda w: objective(w)[0] + penalty_of(w, c1, c2))

    def _epochs(self, objective: Objective, run: Run, c1: Penalty, c2: Penalty, seed: int) -> None:
        size = batch_size(self.batch, objective.n_parts, MOST)
        bundles, groups = bundles_of(objective, shuffled(objective.n_parts, seed, 0), size, c2)
        descent = Stochastic(self, bundles, groups, min(size, objective.n_parts), objective.n_parts, c1, c2)
        moving, first, loss = ScaledWeights(run.weights, groups, self.average), 0, np.inf
        state = resumed_state(run, self)
        if state is not None:
            restore(moving, state)
            run.resume(state)
            first, loss, descent.rate = int(state["epoch"]), float(state["loss"]), float(state["rate"])
        elif self.rate is None:
            descent.rate = _calibrated(descent, moving.base, bundle_order(bundles, seed, 0))
        for epoch in range(first, self.epochs):
            former = loss
            with kept_on_interrupt(run, lambda: descent.answer(moving)):
                loss, norm = descent.epoch(moving, epoch, bundle_order(bundles, seed, epoch + 1))
            weights = descent.answer(moving)
            run.keep(weights, loss)
            numbers = {"epoch": epoch + 1, "loss": loss, "rate": descent.rate}
            run.step(weights, loss, norm, partial(state_of, self, seed, moving, **numbers))
            if epoch and abs(former - loss) <= self.delta * abs(loss):
                raise StopRun(f"the loss changed by less than delta={self.delta:g} in an epoch", True)
        raise StopRun(f"all {self.epochs} epochs done", False)


class Stochastic:
    """Steps of stochastic gradient descent on the bundles of n sequences."""

    def __init__(
        self,
        options: SGD,
        bundles: Sequence[MiniBatch],
        groups: Sequence[slice],
        size: int,
        n: int,
        c1: Penalty,
        c2: Penalty,
    ) -> None:
        self.options, self.bundles, self.groups, self.n, self.c1, self.c2 = options, bundles, groups, n, c1, c2
        self.size = size  # of a bundle; also for smaller bundles, so that their steps are smaller
        self.decays = 2 * penalty_by_group(c2, groups) / n
        self.every = -(-len(bundles) // TRUNCATIONS) if np.any(c1) else 0
        self.rate = 1.0 if options.rate is None else options.rate

    def answer(self, moving: ScaledWeights) -> Floats:
        """The weights so far."""
        if np.any(self.c1):
            return np.where(moving.base == 0, 0.0, moving.mean)
        return moving.mean

    def epoch(self, moving: ScaledWeights, epoch: int, order: Ints) -> tuple[float, float]:
        """One pass over all bundles: the penalised loss, and the norm of the gradient."""
        if epoch & (epoch - 1) == 0:
            moving.restart()  # at epochs 0, 1, 2, 4, 8, ...
        before, moved, total = moving.base.copy(), 0.0, 0.0
        counted = epoch > 0 or self.options.epochs == 1
        for place, k in enumerate(order.tolist()):
            rate = self.rate / (1 + self.options.decay * (epoch + place / len(order)))
            total += checked_loss(self.step(moving, self.bundles[k], rate), f"iteration {epoch + 1}")
            moved += rate
            self.truncate(moving, place, len(order), rate)
            if counted:
                moving.count()
        moving.settle()
        norm = self.n / moved * float(np.linalg.norm(moving.base - before))
        return total + penalty_of(moving.base, self.c1, self.c2), norm

    def step(self, moving: ScaledWeights, bundle: MiniBatch, rate: float) -> float:
        """One step on a bundle; its loss before the step, without penalties."""
        loss, found = bundle.loss(moving.base, moving.scale)
        moving.shrink(1 - np.minimum(1.0, rate * self.decays))
        bundle.move(found, moving.moves(-rate / self.size))
        return loss

    def truncate(self, moving: ScaledWeights, place: int, last: int, rate: float) -> None:
        """The soft threshold of L1, now and then, for all steps since the last one."""
        if self.every and (place % self.every == self.every - 1 or place == last - 1):
            steps = place % self.every + 1
            weights = moving.current
            size = np.maximum(np.abs(weights) - steps * rate * self.c1 / self.n, 0.0)
            moving.replace(np.copysign(size, weights) * (size > 0))


def _calibrated(descent: Stochastic, start: Floats, order: Ints) -> float:
    """The power of two that gives the lowest loss after one pass over a sample, searched up and down from 1."""
    sample: list[MiniBatch] = []
    for k in order.tolist():
        if sum(map(len, sample)) >= SAMPLE:
            break
        sample.append(descent.bundles[k])
    rate, loss = 1.0, _trial(descent, start, sample, 1.0)
    for factor in (2.0, 0.5):
        for _ in range(30):
            tried = _trial(descent, start, sample, rate * factor)
            if tried >= loss and (np.isfinite(loss) or factor > 1):
                break
            rate, loss = rate * factor, tried
    return rate


def _trial(descent: Stochastic, start: Floats, sample: Sequence[Any], rate: float) -> float:
    """The penalised loss of a sample after one pass over it; infinite where it diverges."""
    moving = ScaledWeights(start, descent.groups, average=False)
    try:
        with np.errstate(all="ignore"):
            for place, bundle in enumerate(sample):
                descent.step(moving, bundle, rate)
                descent.truncate(moving, place, len(sample), rate)
            moving.settle()
            loss = sum(bundle.loss(moving.base, moving.scale)[0] for bundle in sample)
            share = sum(map(len, sample)) / descent.n
            loss += share * penalty_of(moving.base, descent.c1, descent.c2)
    except (ValueError, ArithmeticError):
        return np.inf
    return float(loss) if np.isfinite(loss) else np.inf
