"""Memory for what a pass makes and forgets. Each thread keeps its own: new memory costs a page fault every 4 kB."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

MOST = 2**21  # numbers of an array that is kept: 16 MB


class Space(threading.local):
    """Arrays by name, each as large as was ever asked for; they hold whatever was written to them last.

    Two arrays that are in use at the same time must have different names, and none may be given to a caller.
    """

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    def array(self, name: str, shape: int | tuple[int, ...], dtype: Any = np.float64) -> Any:
        """An array of this shape, not filled."""
        size = math.prod(shape) if isinstance(shape, tuple) else shape
        if size > MOST:
            return np.empty(shape, dtype)
        held = self.held.get(name)
        if held is None or held.size < size or held.dtype != dtype:
            held = self.held[name] = np.empty(size, dtype)
        return held[:size].reshape(shape)


SPACE = Space()
New = Callable[..., Any]  # makes an array from a name and a shape: ``SPACE.array``, or ``fresh``


def fresh(_name: str, shape: int | tuple[int, ...], dtype: Any = np.float64) -> Any:
    """An array of its own, for whoever keeps it."""
    return np.empty(shape, dtype)
