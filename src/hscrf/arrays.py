"""Types of arrays, and small functions that every room needs."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Random: TypeAlias = "int | np.random.Generator | np.random.RandomState | None"  # text: numpy.random loads when used


def ranges(begin: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The counts[0] numbers from begin[0] on, then the counts[1] numbers from begin[1] on, and so on."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if ends.size else 0) + np.repeat(begin - ends + counts, counts)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The different values of an array in ascending order: ``np.unique``, whose hash table is slow for many values.

    >>> distinct(np.array([3, 1, 3, 2, 1])).tolist()
    [1, 2, 3]
    """
    ordered = np.sort(values, axis=None, kind="stable")  # fast where parts of the array are in order
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: ordered.size]]


def generator(random_state: Random) -> np.random.Generator:
    """A generator from a ``random_state``: a seed, a generator, or None for a fresh one.

    A given generator is used directly and advances. A RandomState gives the seed of a new one.

    >>> int(generator(7).integers(100))
    94
    """
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        expected = "expected a whole number of at least 0, a generator or None"
        raise ValueError(f"random_state is {random_state!r}; {expected}") from None


def whole_number(value: Any, name: str, least: int) -> int:
    """The value as an integer; raise ValueError, with the name of the argument, unless it is one of at least ``least``.

    >>> whole_number(3, "n", least=1)
    3
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} is {value!r}, expected a whole number of at least {least}")
    return int(value)


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """Make the array read-only and return it."""
    array.setflags(write=False)
    return array
