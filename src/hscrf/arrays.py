"""Types of arrays, and small functions that every room needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def ranges(begin: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The counts[0] numbers from begin[0] on, then the counts[1] numbers from begin[1] on, and so on."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if ends.size else 0) + np.repeat(begin - ends + counts, counts)


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """Make the array read-only and return it."""
    array.setflags(write=False)
    return array
