"""The averaged structured perceptron."""

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
    at_least,
    check_finite,
    supervise,
)
from hscrf.solvers.epochs import batches, kept_on_interrupt, shuffled, with_loss


@dataclass(frozen=True)
class Perceptron:
    """The averaged structured perceptron (Collins 2002): needs the best labels only, no probabilities.

    Stops when an epoch makes no mistake, or after all epochs. It has no penalties: c1 and c2 are not used; averaging
    keeps the weights small. The losses in the history are sums over batches, each at the weights before its correction.
    """

    epochs: int = 10
    batch: int = 1
    average: bool = True

    def __post_init__(self) -> None:
        at_least(self, epochs=1, batch=1)

    def minimize(
        self,
        objective: Objective,
        weights: Floats,
        c1: Penalty = 0.0,
        c2: Penalty = 0.0,
        monitor: Monitor | None = None,
        random_state: Random = None,
    ) -> Result:
        """Start at ``weights`` and correct mistakes; ``random_state`` decides the order of the sequences."""
        run = Run(objective, weights, monitor)
        corrections = Corrections(self, objective, run.weights)
        rng = generator(random_state)
        result = supervise(run, lambda: self._epochs(corrections, run, rng))
        everything = np.arange(objective.n_parts)
        return with_loss(result, lambda w: objective.mistakes(w, everything)[0])

    def _epochs(self, corrections: Corrections, run: Run, rng: np.random.Generator) -> None:
        for epoch in range(self.epochs):
            order = shuffled(corrections.objective, rng)
            with kept_on_interrupt(run, corrections):
                loss, norm, mistakes = corrections.epoch(order, f"iteration {epoch + 1}")
            weights = corrections.weights
            run.keep(weights, loss)
            run.step(weights, loss, norm)
            if not mistakes:
                raise Stop("an epoch without mistakes", True)
        raise Stop(f"all {self.epochs} epochs done", False)


class Corrections:
    """The state of the perceptron. The mean of its iterates is ``current - late / n``."""

    def __init__(self, options: Perceptron, objective: Objective, weights: Floats) -> None:
        self.options, self.objective = options, objective
        self.current = weights.copy()
        self.late = np.zeros_like(weights)  # each correction times the number of iterates without it
        self.n = 0  # iterates so far

    @property
    def weights(self) -> Floats:
        """The answer so far."""
        return self.current - self.late / max(self.n, 1) if self.options.average else self.current.copy()

    def epoch(self, order: Ints, where: str) -> tuple[float, float, int]:
        """One pass over all sequences; loss and gradient norm, summed over batches, and the number of corrections."""
        total, mistakes, direction = 0.0, 0, np.zeros_like(self.current)
        for which in batches(order, self.options.batch):
            loss, gradient = check_finite(self.objective.mistakes(self.current, which), where)
            total += loss
            if gradient.any():  # not loss > 0: wrong labels may tie with the true ones
                self.current -= gradient
                self.late -= self.n * gradient
                direction += gradient
                mistakes += 1
            self.n += 1
        return total, float(np.linalg.norm(direction)), mistakes
