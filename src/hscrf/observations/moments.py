"""Mean, variance and largest absolute value of numeric columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from hscrf.arrays import Floats
from hscrf.observations.cutting import shard_bounds


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

    @classmethod
    def in_shards(cls, rows: Floats, lengths: Sequence[int]) -> Moments:
        """The same shard by shard, merged in their order: the bits of data that come in shards."""
        at = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        parts = [cls.of(rows[at[begin] : at[stop]]) for begin, stop in shard_bounds(lengths)]
        return reduce(cls.merged, parts)

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
