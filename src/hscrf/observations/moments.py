"""Mean, variance and largest absolute value of numeric columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from hscrf.arrays import Floats
from hscrf.observations.packed import SHARD, shard_bounds


@dataclass(frozen=True)
class Moments:
    """Mean, variance and largest absolute value of the known cells of columns; those of two parts can be merged."""

    count: Floats  # (F,) cells that are not missing
    mean: Floats  # (F,)
    variance: Floats  # (F,)
    largest: Floats  # (F,)

    @classmethod
    def of(cls, rows: Floats) -> Moments:
        """The moments of rows (N, F), NaN where a cell is missing."""
        known = ~np.isnan(rows)
        if known.all():
            count = np.full(rows.shape[1], float(len(rows)))
            return cls(count, rows.mean(axis=0), rows.var(axis=0), np.abs(rows).max(axis=0))
        count = known.sum(axis=0, dtype=np.float64)
        divisor = np.maximum(count, 1.0)  # all moments of a column without values are 0
        mean = np.where(known, rows, 0.0).sum(axis=0) / divisor
        distance = np.where(known, rows - mean, 0.0)
        largest = np.abs(np.where(known, rows, 0.0)).max(axis=0)
        return cls(count, mean, (distance**2).sum(axis=0) / divisor, largest)

    @classmethod
    def in_shards(cls, rows: Floats, lengths: Sequence[int], shard: int = SHARD) -> Moments:
        """The same, computed shard by shard and merged in order: the same bits as for data that come in shards."""
        at = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        parts = [cls.of(rows[at[begin] : at[stop]]) for begin, stop in shard_bounds(lengths, shard)]
        return reduce(cls.merged, parts)

    def merged(self, other: Moments) -> Moments:
        """The moments of the cells of both, by Chan's formula."""
        count = self.count + other.count
        divisor = np.maximum(count, 1.0)
        ours, theirs = self.count / divisor, other.count / divisor
        distance = other.mean - self.mean
        return Moments(
            count,
            self.mean + theirs * distance,
            ours * self.variance + theirs * other.variance + ours * theirs * distance**2,
            np.maximum(self.largest, other.largest),
        )

    def scale(self) -> Floats:
        """The standard deviation of each column; one for a column that is constant up to rounding."""
        spread = np.sqrt(self.variance)
        return np.where(spread > 1e-12 * self.largest, spread, 1.0)
