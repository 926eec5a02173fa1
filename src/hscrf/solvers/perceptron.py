"""The averaged structured perceptron."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Ints, Random
from hscrf.solvers.course import Monitor, Objective, Penalty, Result, Run, StopRun, at_least, supervise
from hscrf.solvers.epochs import (
    batch_size,
    bundle_order,
    bundles_of,
    checked_loss,
    kept_on_interrupt,
    restore,
    resumed_state,
    seed_of,
    shuffled,
    state_of,
    with_loss,
)
from hscrf.solvers.scaled_weights import ScaledWeights

MOST = 16  # default sequences in a batch


@dataclass(frozen=True)
class Perceptron:
    """The averaged structured perceptron (Collins 2002). It needs best labels only, no probabilities.

    Parameters
    ----------
    epochs : int
        Stop after this many passes over the data. An epoch without a mistake stops the run earlier.
    batch : int, optional
        Sequences that are decoded with the same weights before the correction. None takes 1 to 16, depending on the
        number of sequences.
    average : bool
        Whether to average the weights of all steps.

    Notes
    -----
    Sequences of similar length form the batches. The batches are fixed; their order is drawn anew in each epoch. The
    penalties c1 and c2 are not used: averaging keeps the weights small. A loss in the history is a sum over batches,
    each at the weights before its correction.
    """

    epochs: int = 10
    batch: int | None = None
    average: bool = True

    def __post_init__(self) -> None:
        at_least(self, epochs=1, **({} if self.batch is None else {"batch": 1}))

    def minimize(
        self,
        objective: Objective,
        weights: Floats,
        c1: Penalty = 0.0,
        c2: Penalty = 0.0,
        monitor: Monitor | None = None,
        random_state: Random = None,
    ) -> Result:
        """Correct mistakes from the given weights on.

        Parameters
        ----------
        objective : Objective
            Mistakes of any subset of the sequences.
        weights : ndarray (n_weights,)
            Start.
        c1, c2 : float
            Not used: the perceptron has no penalties.
        monitor : Monitor, optional
            What happens after each epoch.
        random_state : int, Generator or None
            Determines batches and their order.

        Returns
        -------
        Result
            Weights, loss, history, and the reason why the run stopped.
        """
        run = Run(objective, weights, monitor)
        seed = seed_of(run, self, random_state)
        result = supervise(run, lambda: self._epochs(objective, run, seed))
        everything = np.arange(objective.n_parts)
        return with_loss(result, lambda w: objective.mistakes(w, everything)[0])

    def _epochs(self, objective: Objective, run: Run, seed: int) -> None:
        size = batch_size(self.batch, objective.n_parts // 2, MOST)
        bundles, groups = bundles_of(objective, shuffled(objective.n_parts, seed, 0), size)
        moving, first = ScaledWeights(run.weights, groups, self.average), 0
        state = resumed_state(run, self)
        if state is not None:
            restore(moving, state)
            run.resume(state)
            first = int(state["epoch"])
        for epoch in range(first, self.epochs):
            before = moving.base.copy()
            with kept_on_interrupt(run, lambda: moving.mean):
                order = bundle_order(bundles, seed, epoch + 1)
                loss, mistakes = self._epoch(moving, bundles, order, f"iteration {epoch + 1}")
            weights, norm = moving.mean, float(np.linalg.norm(moving.base - before))
            run.keep(weights, loss)
            run.step(weights, loss, norm, partial(state_of, self, seed, moving, epoch=epoch + 1, loss=loss))
            if not mistakes:
                raise StopRun("an epoch without mistakes", True)
        raise StopRun(f"all {self.epochs} epochs done", False)

    def _epoch(self, moving: ScaledWeights, bundles: Any, order: Ints, where: str) -> tuple[float, int]:
        """One pass over all bundles: the sum of their losses, and how many had mistakes."""
        total, mistakes = 0.0, 0
        for k in order.tolist():
            loss, found = bundles[k].mistakes(moving.base, moving.scale)
            total += checked_loss(loss, where)
            if found is not None:
                bundles[k].move(found, moving.moves(-1.0))
                mistakes += 1
            moving.count()
        return total, mistakes
