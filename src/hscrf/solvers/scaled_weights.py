"""Weights that take many small steps, most of which touch few of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hscrf.arrays import Floats

SMALL = 1e-6  # a scale below this is multiplied into its weights


class ScaledWeights:
    """The weights ``scale * base``, with one scale for each group of weights, and the mean of all iterates.

    Shrinking all weights changes only a few scales. A step d of ``base`` is added to ``late`` too, times the sum of the
    scales before it: then the iterates w_1 .. w_n sum to ``summed * base - late``. So neither L2 nor the mean costs
    anything for weights that a step does not touch.
    """

    def __init__(self, weights: Floats, groups: Sequence[slice], average: bool = True) -> None:
        self.base = weights.copy()
        self.groups = groups
        self.scale = np.ones(len(groups))
        self.summed = np.zeros(len(groups))
        self.late = np.zeros_like(weights) if average else None
        self.n = 0  # iterates in the mean

    def spread(self, amounts: Floats) -> Floats:
        """The amount of each weight's group."""
        return np.repeat(amounts, [group.stop - group.start for group in self.groups])

    @property
    def current(self) -> Floats:
        """The latest iterate."""
        return self.spread(self.scale) * self.base

    @property
    def mean(self) -> Floats:
        """The mean of the iterates that were counted; the latest one if none was."""
        if self.late is None or not self.n:
            return self.current
        return (self.spread(self.summed) * self.base - self.late) / self.n

    def moves(self, amount: float) -> list[tuple[Floats, list[float]]]:
        """Vectors and factors by group: a change of the weights, times this amount and its factor, is added to each."""
        steps = amount / self.scale
        if self.late is None:
            return [(self.base, steps.tolist())]
        return [(self.base, steps.tolist()), (self.late, (steps * self.summed).tolist())]

    def shrink(self, factors: Floats) -> None:
        """Multiply the weights of each group by a factor."""
        self.scale *= factors
        if self.scale.min(initial=1.0) < SMALL:
            self.settle()

    def settle(self) -> None:
        """Multiply the scales into the weights."""
        if (self.scale != 1.0).any():
            self.replace(self.current)

    def replace(self, weights: Floats) -> None:
        """Go to any weights; the mean of the iterates so far stays."""
        if self.late is not None:
            self.late += self.spread(self.summed) * (weights - self.base)
        self.base, self.scale = weights, np.ones(len(self.groups))

    def count(self) -> None:
        """Add the latest iterate to the mean."""
        self.n += 1
        self.summed += self.scale

    def restart(self) -> None:
        """Forget all iterates but the latest."""
        self.n = 0
        self.summed[:] = 0.0
        if self.late is not None:
            self.late[:] = 0.0
