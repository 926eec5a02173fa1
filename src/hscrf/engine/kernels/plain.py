"""The lanes in Python, with a tuple for four floats: what ``vectors`` computes, open to a debugger."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Four = tuple[float, float, float, float]


def _flat(array: NDArray[np.float64], index: int) -> NDArray[np.float64]:
    """The memory of the four numbers from an index on."""
    if not array.flags.c_contiguous:
        raise ValueError(f"an array with strides {array.strides} does not lie in memory row by row")
    if not 0 <= index <= array.size - 4:
        raise IndexError(f"four numbers from {index} on are not in an array of {array.size}")
    return array.reshape(-1)[index : index + 4]


def load(array: NDArray[np.float64], index: int) -> Four:
    a, b, c, d = _flat(array, index).tolist()
    return a, b, c, d


def store(value: Four, array: NDArray[np.float64], index: int) -> None:
    _flat(array, index)[:] = value


def spread(value: float) -> Four:
    return (float(value),) * 4


def _each(function: Any, *values: Four) -> Four:
    a, b, c, d = (function(*lane) for lane in zip(*values, strict=True))
    return a, b, c, d


def add(a: Four, b: Four) -> Four:
    return _each(lambda x, y: x + y, a, b)


def multiply(a: Four, b: Four) -> Four:
    return _each(lambda x, y: x * y, a, b)


def multiply_add(a: Four, b: Four, c: Four) -> Four:
    return _each(lambda x, y, z: x * y + z, a, b, c)


multiply_add_at_once = multiply_add


def quotient(a: Four, b: Four) -> Four:
    return _each(lambda x, y: x / y if y else np.inf, a, b)


def higher(a: Four, b: Four) -> Four:
    return _each(lambda x, y: x if x > y else y, a, b)


def lower_above(a: Four, b: Four, bound: Four) -> Four:
    return _each(lambda x, y, z: y if z < y < x else x, a, b, bound)


def where_above(a: Four, bound: Four, b: Four, c: Four) -> Four:
    return _each(lambda w, x, y, z: y if w > x else z, a, bound, b, c)


def larger(a: float, b: float) -> float:
    return a if a > b else b


def smaller(a: float, b: float) -> float:
    return a if a < b else b


def place(table: NDArray[np.float64], row: int, column: int) -> int:
    return int(row) * table.shape[1] + int(column)


def lanes(value: Four) -> Four:
    return value


def pack(a: float, b: float, c: float, d: float) -> Four:
    return a, b, c, d


def lane_sum(value: Four) -> float:
    a, b, c, d = value
    return (a + c) + (b + d)


def lane_max(value: Four) -> float:
    return max(value)


def lane_min(value: Four) -> float:
    return min(value)


def lane_sums(a: Four, b: Four, c: Four, d: Four) -> Four:
    return _each(lambda w, x, y, z: (w + x) + (y + z), *zip(a, b, c, d, strict=True))


def turn(a: Four, b: Four, c: Four, d: Four) -> tuple[Four, ...]:
    return tuple(zip(a, b, c, d, strict=True))


def prefetch(array: NDArray[np.float64], index: int) -> None:
    """There is nothing to do: the numbers are read when they are needed."""


def is_best(mode: int | None) -> bool:
    """Is this MAX, an integer that is no truth value."""
    return mode is not None and not isinstance(mode, bool)
