"""Tables over segments: the values of a segment function, and averages over steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.observations.packed import DataSet, rows_of

SegmentFunction = Callable[[Any, int, int], Any]


class SegmentTable:
    """The values (N, L, K) of a segment function, computed for each sequence when first needed.

    Row t, l holds those of the segment of l + 1 steps that starts at step t; zeros if it would leave its sequence.
    """

    def __init__(self, function: SegmentFunction, longest: int, size: int, data: DataSet) -> None:
        self.function = function
        self.longest = longest
        self.data = data
        self.values = np.zeros((int(data.offsets[-1]), longest, size))
        self.done = np.zeros(len(data.offsets) - 1, dtype=bool)

    def of(self, which: Ints) -> Floats:
        """The rows of some sequences; those of neighbours are shared, not copied."""
        for n in which[~self.done[which]].tolist():
            self._fill(n)
        return self.values[rows_of(self.data.offsets, which)]

    def _fill(self, n: int) -> None:
        rows, z = self.values[self.data.offsets[n] : self.data.offsets[n + 1]], self.data.raw[n]
        for start in range(len(rows)):
            for stop in range(start + 1, min(start + self.longest, len(rows)) + 1):
                rows[start, stop - start - 1] = checked_vector(self.function, z, start, stop, rows.shape[2])
        self.done[n] = True


def segment_vector(function: SegmentFunction, z: Any, start: int, stop: int) -> Floats:
    """The values (K,) of a segment function for one segment."""
    return np.atleast_1d(np.asarray(function(z, start, stop), dtype=np.float64))


def checked_vector(function: SegmentFunction, z: Any, start: int, stop: int, size: int) -> Floats:
    """The same; raise unless it has the right size and is finite."""
    vector = segment_vector(function, z, start, stop)
    if vector.shape != (size,) or not np.isfinite(vector).all():
        name = getattr(function, "__name__", "the segment function")
        raise ValueError(f"{name}(z, {start}, {stop}) is {vector.tolist()}, expected {size} finite numbers")
    return vector


# -- averages


def average_tokens(scores: Floats, table: Floats) -> None:
    """Add to table (N, L, S) the mean of scores (N, S) over each segment; entries past the end are arbitrary."""
    total = np.zeros_like(scores)
    for lag in range(min(table.shape[1], len(scores))):
        steps = len(scores) - lag
        total[:steps] += scores[lag:]
        table[:steps, lag] += total[:steps] / (lag + 1)


def average_tokens_back(table: Floats, scores: Floats) -> None:
    """Reverse of ``average_tokens``: add the counts (N, L, S) of segments to those of their steps (N, S)."""
    lasting = np.zeros_like(scores)  # of segments of more than ``lag`` steps
    for lag in reversed(range(min(table.shape[1], len(scores)))):
        steps = len(scores) - lag
        lasting[:steps] += table[:steps, lag] / (lag + 1)
        scores[lag:] += lasting[:steps]
