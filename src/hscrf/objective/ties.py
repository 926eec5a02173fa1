"""Weights that stay equal during learning, treated as one.

Features that occur at the same steps with the same values, such as the word, the prefix and the suffix of a word that
occurs once, have the same gradient. If their weights start equal and have the same penalties, they stay equal under
L-BFGS. Let k such weights be equal to w. One weight z = sqrt(k) w stands for them: it has the same norm and the same
penalty, k c2 w^2 = c2 z^2. So the iterates are those of all weights; for words, the vectors are a third as long.
"""

from __future__ import annotations

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.objective.sharded import ShardedLoss


class Tied:
    """A loss as a function of one weight for each set of weights that stay equal.

    ``sets`` are the numbers of the sets of all weights, or of those ``among`` them that are not fixed at zero.
    """

    def __init__(self, objective: ShardedLoss, sets: Ints, among: Ints | None = None) -> None:
        self.objective, self.sets, self.among = objective, sets, among
        self.count = np.sqrt(np.bincount(sets))  # square root of the number of weights in each set
        self.size = self.count.size

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        loss, gradient = self.objective(self.whole(weights))
        return loss, self.joined(gradient)

    @property
    def is_complete(self) -> bool:
        """Whether all labels are known."""
        return self.objective.is_complete

    def of_complete(self) -> Tied | None:
        """The loss of the sequences with complete labels; None if there are none, or no others."""
        found = self.objective.of_complete()
        return None if found is None else Tied(found, self.sets)

    def some(self, which: Ints) -> Tied:
        """The loss as a function of some of these weights; all others are zero."""
        number = np.full(self.size, -1)
        number[which] = np.arange(which.size)
        sets = number[self.sets]
        inside = np.flatnonzero(sets >= 0)
        return Tied(self.objective, sets[inside], inside if self.among is None else self.among[inside])

    def frequencies(self) -> Floats:
        """How often the weights of each set are used: the same number, up to rounding."""
        return self.joined(self.objective.frequencies()) / self.count

    def whole(self, weights: Floats) -> Floats:
        """All weights."""
        each = (weights / self.count).take(self.sets)
        if self.among is None:
            return each
        found = np.zeros(self.objective.size)
        found[self.among] = each
        return found

    def joined(self, vector: Floats) -> Floats:
        """The sum over each set, divided by sqrt(k): both the transpose and the inverse of ``whole``."""
        some = vector if self.among is None else vector[self.among]
        return np.bincount(self.sets, some, self.size) / self.count

    def penalty(self, values: float | Floats, power: float) -> float | Floats:
        """The penalty of each set, from one of all weights that is equal within sets: times sqrt(k) ** power."""
        if np.ndim(values):
            values, each = np.empty(self.size), values
            values[self.sets] = each
        return values * self.count**power if power and np.any(values) else values


def tied_sets(objective: ShardedLoss) -> Ints:
    """The number of the set of each weight: weights of one set always have the same gradient.

    The sets are found from the gradient for random counts. Weights of equal features of the same state have the same
    entry, bit by bit; other weights have other entries.
    """
    rng, pulled = np.random.default_rng(0), np.zeros(objective.size)
    for observations in objective.observed():
        shapes = objective.scorer.shapes(observations.steps)
        counts = {key: rng.standard_normal(shape) for key, shape in shapes.items()}
        objective.scorer.pull(counts, observations, pulled)
    sets, size = np.empty(objective.size, dtype=np.int64), 0
    for piece in objective.groups:
        values, own = np.unique(pulled[piece], return_inverse=True)
        first = np.empty(values.size, dtype=np.int64)
        first[own[::-1]] = np.arange(own.size)[::-1]  # of several assignments the last one stays
        begins = np.zeros(own.size, dtype=np.int64)
        begins[first] = 1
        sets[piece] = size - 1 + np.cumsum(begins)[first[own]]  # in the order of their first weights
        size += values.size
    return sets
