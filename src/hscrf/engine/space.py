"""Memory for what a pass makes and forgets. Each thread keeps its own: new memory costs a page fault every 4 kB."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

LINE, PAGE = 64, 4096  # bytes
MOST = 2**21  # numbers of an array that is kept: 16 MB


class Space(threading.local):
    """Arrays by name, each as large as was ever asked for; they hold whatever was written to them last.

    Two arrays that are in use at the same time must have different names, and none may be given to a caller.
    """

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    def array(self, name: str, shape: int | tuple[int, ...], dtype: Any = np.float64) -> Any:
        """An array of this shape, not filled."""
        size = shape if isinstance(shape, int) else math.prod(shape)
        if size > MOST:
            return fresh(name, shape, dtype)
        held = self.held.get(name)
        if held is None or held.size < size or held.dtype != dtype:
            held = self.held[name] = on_a_border(np.empty, size, dtype)
        return held[:size] if isinstance(shape, int) else held[:size].reshape(shape)


SPACE = Space()
New = Callable[..., Any]  # makes an array from a name and a shape: ``SPACE.array``, or ``fresh``


def fresh(_name: str, shape: int | tuple[int, ...], dtype: Any = np.float64) -> Any:
    """An array of its own, for whoever keeps it."""
    size = math.prod(shape) if isinstance(shape, tuple) else shape
    return on_a_border(np.empty, size, dtype).reshape(shape)


def on_a_border(
    make: Callable[..., Any], size: int, dtype: Any = np.float64, place: int = 0, modulus: int = LINE
) -> Any:
    """An array by ``np.empty`` or ``np.zeros`` whose address has a given remainder.

    By default it begins with a line of the cache: no vector lies on two of them.
    """
    whole = make(size + modulus // np.dtype(dtype).itemsize, dtype)
    first = (place - address_of(whole)) % modulus // whole.itemsize
    return whole[first : first + size]


def zeros_beside(array: Any) -> Any:
    """As many zeros as an array has numbers, half a page from it.

    Processors compare only the low bits of two addresses, those within a page, to see if a load wants what was stored.
    """
    return on_a_border(np.zeros, array.size, place=address_of(array) + PAGE // 2, modulus=PAGE)


def address_of(array: Any) -> int:
    return array.__array_interface__["data"][0]
