"""Mean, variance and largest absolute value of numeric columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hscrf.arrays import Floats


@dataclass(frozen=True)
class Moments:
    """Mean, variance and largest absolute value of the columns of ``count`` rows; those of two parts can be merged."""

    count: int
    mean: Floats  # (F,)
    variance: Floats  # (F,)
    largest: Floats  # (F,)

    @classmethod
    def of(cls, rows: Floats) -> Moments:
        """The moments of rows (N, F)."""
        return cls(len(rows), rows.mean(axis=0), rows.var(axis=0), np.abs(rows).max(axis=0))

    def merged(self, other: Moments) -> Moments:
        """The moments of the rows of both, by Chan's formula."""
        count = self.count + other.count
        ours, theirs = self.count / count, other.count / count
        distance = other.mean - self.mean
        return Moments(
            count,
            self.mean + theirs * distance,
            ours * self.variance + theirs * other.variance + ours * theirs * distance**2,
            np.maximum(self.largest, other.largest),
        )

    def scale(self) -> Floats:
        """The standard deviation of each column; one for a column that is constant but for rounding."""
        spread = np.sqrt(self.variance)
        return np.where(spread > 1e-12 * self.largest, spread, 1.0)
