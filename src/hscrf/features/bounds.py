"""Check that the numbers of a block fit the topology, the observations, and each other.

Each function raises a ``ValueError`` that begins with the field. They check untrusted files, so that
kernels only get arrays in range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.fillers import expanded
from hscrf.potentials import FAMILY, OWN, PARTS, Key
from hscrf.topology import UNLIMITED, Topology

STATES = 1 << 14  # most states of a level; its table of successors has the square of this
LONGEST = 1 << 20  # steps of a table over durations
LONGEST_TIMED = 1 << 16  # steps of a table over durations with a row for every step
LONGEST_EACH = 1 << 14  # steps of a table over durations with a column for every duration


def check_key(key: Key, topology: Topology, parts: Sequence[str] = PARTS) -> None:
    """Raise unless the key is one of these parts at a level that has it."""
    part, d = key
    if part not in parts:
        raise ValueError(f"key is of the part {part!r}, expected {' or '.join(map(repr, parts))}")
    depth = topology.depth - (part in FAMILY)
    if not 0 <= d < depth:
        raise ValueError(f"key is of level {d}, but {part!r} has the levels 0 to {depth - 1}")


def table_shape(topology: Topology, key: Key) -> tuple[int, ...]:
    """The shape of a part's table of weights at one step: its states, or its parents and their hidden children."""
    part, d = key
    if part in OWN:
        return (topology.n_states[d],)
    below = expanded(topology).n_states[d + 1]
    return (topology.n_states[d], below, below) if part == "trans" else (topology.n_states[d], below)


def check_states(field: str, n: int) -> None:
    """Raise if there are more states than any array may have."""
    if n > STATES:
        raise ValueError(f"{field} has {n} states, expected at most {STATES}")


def check_same(field: str, value: Any, expected: Any) -> None:
    """Raise unless a field has the expected value."""
    if value != expected:
        raise ValueError(f"{field} is {value}, expected {expected}")


def check_inside(field: str, cells: NDArray[Any], size: int) -> None:
    """Raise unless an array has one axis, and its numbers are cells of a table."""
    check_same(f"the number of axes of {field}", cells.ndim, 1)
    if cells.size and not (cells.min() >= 0 and cells.max() < size):
        raise ValueError(f"{field} has cells from {cells.min()} to {cells.max()}, but its table has {size}")


def check_cells(field: str, cells: NDArray[Any], shape: Sequence[int]) -> None:
    """Raise unless an array names cells of a table, each at most once."""
    check_inside(field, cells, math.prod(shape))
    if np.unique(cells).size < cells.size:
        raise ValueError(f"{field} has the same cell twice")


def check_offsets(field: str, offsets: NDArray[Any], n: int | None, size: int) -> None:
    """Raise unless n + 1 offsets start at 0, do not fall, and end at the size of what they index."""
    check_same(f"the number of axes of {field}", offsets.ndim, 1)
    if n is None:
        raise ValueError(f"{field} is for named features, but the observations have none")
    check_same(f"the size of {field}", offsets.size, n + 1)
    check_same(f"the first number of {field}", int(offsets[0]), 0)
    check_same(f"the last number of {field}", int(offsets[-1]), size)
    if (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"{field} falls, expected offsets in order")


def check_longest(longest: int, topology: Topology, d: int, most: int = LONGEST) -> None:
    """Raise unless a table over durations ends where the topology's limit does, and fits in memory."""
    limit = int(topology.max_duration[d].max())
    if limit == UNLIMITED:
        raise ValueError(f"longest is {longest}, but the durations of level {topology.levels[d]!r} have no limit")
    check_same("longest", longest, limit)
    if longest > most:
        raise ValueError(f"longest is {longest}, expected at most {most}")
