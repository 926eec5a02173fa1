"""The values of a segment function for all segments of a data set."""

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
