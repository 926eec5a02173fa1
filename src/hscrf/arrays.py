"""Names for arrays, and the little that is done to them everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def ranges(begin: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """begin[0], begin[0] + 1, ... as many as counts[0], then those of begin[1], and so on."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if ends.size else 0) + np.repeat(begin - ends + counts, counts)


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself, which nobody can write to any more."""
    array.setflags(write=False)
    return array
