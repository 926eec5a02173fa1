"""Factored log-potentials of one sequence: the scores that the engine sums over, and the counts it returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hscrf.fillers import expanded
from hscrf.topology import Topology

OWN = ("token", "start", "stop", "duration", "segment", "tail")  # parts of a level's own segments
FAMILY = ("init", "trans", "end")  # parts of a parent and its children, named by the parent's level
PARTS = OWN + FAMILY
Part = Mapping[str, ArrayLike]
Key = tuple[str, int]  # part, index of the level
Arrays = Mapping[Key, NDArray[np.float64]]
Axis = int | tuple[int, ...] | None  # the size of an axis, the sizes it may have, or None: any of at least 1


class Potentials:
    """Log-potentials of a sequence of ``length`` steps; every part maps level names to arrays and may be left out.

    With S states at the level, U at the level below, T = length:

    ========== ==================== ==================================================================
    token      (T, S)               a segment of s covers t
    start      (T, S)               a segment of s starts at t
    stop       (T, S)               a segment of s has its last step at t
    duration   (L, S)               a segment of s has length l + 1; longer than L is impossible
    segment    (T, L, S)            a segment of s starts at t and has length l + 1; likewise
    tail       (S,)                 each step of a segment of s beyond its longest duration, where that is open
    init       (T or 1, S, U)       parent s starts at t with first child u
    trans      (T or 1, S, U, U)    under parent s, child u has its last step at t and v starts at t + 1
    end        (T or 1, S, U)       parent s has its last step at t, with last child u
    ========== ==================== ==================================================================

    A time axis of length 1 means the same at every time. ``-inf`` forbids. What the topology forbids is forbidden
    whatever the arrays say. A filler that remembers has a place in the arrays for each of its copies
    (:mod:`hscrf.fillers`).

    Where ``open_duration`` of the topology names s, let L be its ``max_duration``, or the length of ``duration`` or
    ``segment`` if that is less. A segment of l > L steps scores ``(l - L) * tail``, and ``duration[L - 1]`` and
    ``segment[t, L - 1]`` in the place of ``duration[l - 1]`` and ``segment[t, l - 1]``.

    >>> topology = Topology({"tag": ["N", "V"]})
    >>> Potentials(topology, 3, token={"tag": [[1, 0], [0, 2], [0, 0]]})
    Potentials(length 3, token: tag)
    """

    token: dict[str, NDArray[np.float64]]
    start: dict[str, NDArray[np.float64]]
    stop: dict[str, NDArray[np.float64]]
    duration: dict[str, NDArray[np.float64]]
    segment: dict[str, NDArray[np.float64]]
    tail: dict[str, NDArray[np.float64]]
    init: dict[str, NDArray[np.float64]]
    trans: dict[str, NDArray[np.float64]]
    end: dict[str, NDArray[np.float64]]

    def __init__(
        self,
        topology: Topology,
        length: int,
        *,
        token: Part | None = None,
        start: Part | None = None,
        stop: Part | None = None,
        duration: Part | None = None,
        segment: Part | None = None,
        tail: Part | None = None,
        init: Part | None = None,
        trans: Part | None = None,
        end: Part | None = None,
    ) -> None:
        if length < 1:
            raise ValueError(f"a sequence has at least one step, but length is {length}")
        self.topology = topology
        self.length = int(length)
        given = (token, start, stop, duration, segment, tail, init, trans, end)
        for part, arrays in zip(PARTS, given, strict=True):
            setattr(self, part, self._checked(part, arrays or {}))

    @classmethod
    def from_arrays(cls, topology: Topology, length: int, arrays: Arrays) -> Potentials:
        """Potentials from arrays by part and index of the level, as the engine has them."""
        parts: dict[str, dict[str, ArrayLike]] = {part: {} for part in PARTS}
        for (part, d), values in arrays.items():
            parts[part][topology.levels[d]] = values
        return cls(topology, length, **parts)

    def _checked(self, part: str, arrays: Part) -> dict[str, NDArray[np.float64]]:
        checked = {}
        for level, array in arrays.items():
            d = self.topology.level(level)
            if part in FAMILY and d == self.topology.depth - 1:
                raise ValueError(f"{part} is indexed by the parent's level, but {level!r} is the bottom")
            if part == "tail" and d not in self.topology.open_levels:
                raise ValueError(f"tail[{level!r}] is given, but open_duration does not name the level")
            values = np.ascontiguousarray(array, dtype=np.float64)
            check_shape(f"{part}[{level!r}]", values.shape, part_shape(self.topology, part, d, self.length))
            check_values(f"{part}[{level!r}]", values)
            checked[self.topology.levels[d]] = values
        return checked

    def parts(self) -> Iterator[tuple[str, str, NDArray[np.float64]]]:
        """All arrays, as (part, level name, array)."""
        for part in PARTS:
            for level, values in getattr(self, part).items():
                yield part, level, values

    def __getitem__(self, part: str) -> dict[str, NDArray[np.float64]]:
        if part not in PARTS:
            raise ValueError(f"unknown part {part!r}; the parts are {', '.join(PARTS)}")
        return getattr(self, part)

    def __repr__(self) -> str:
        present = [f"{part}: {', '.join(self[part])}" for part in PARTS if self[part]]
        return f"Potentials(length {self.length}, {'; '.join(present) or 'all zero'})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Potentials):
            return NotImplemented
        mine = {(part, level): values for part, level, values in self.parts()}
        others = {(part, level): values for part, level, values in other.parts()}
        same_frame = self.topology == other.topology and self.length == other.length and mine.keys() == others.keys()
        return same_frame and all(np.array_equal(values, others[key]) for key, values in mine.items())

    __hash__ = None  # type: ignore[assignment]


def part_shape(topology: Topology, part: str, d: int, length: int) -> tuple[Axis, ...]:
    """The shape that a part of level d must have."""
    topology = expanded(topology)
    states = topology.n_states[d]
    if part == "duration":
        return (None, states)
    if part == "tail":
        return (states,)
    if part == "segment":
        return (length, None, states)
    if part in OWN:
        return (length, states)
    below = topology.n_states[d + 1]
    times = (length, 1)
    return (times, states, below, below) if part == "trans" else (times, states, below)


def explicit_lengths(topology: Topology, d: int, shapes: Mapping[Key, tuple[int, ...]]) -> NDArray[np.int64]:
    """The longest duration (S,) of each state of level d that tables tell; open ones go on beyond it by ``tail``."""
    longest = topology.max_duration[d]
    for part, axis in (("duration", 0), ("segment", 1)):
        if (part, d) in shapes:
            longest = np.minimum(longest, shapes[part, d][axis])
    return longest


def check_shape(name: str, shape: tuple[int, ...], expected: tuple[Axis, ...]) -> None:
    """Raise unless the shape fits."""
    if len(shape) != len(expected) or not all(map(_fits, shape, expected)):
        wanted = ", ".join(map(_axis_words, expected))
        raise ValueError(f"{name} has shape {shape}, expected ({wanted})")


def _fits(size: int, axis: Axis) -> bool:
    if axis is None:
        return size >= 1
    return size in axis if isinstance(axis, tuple) else size == axis


def _axis_words(axis: Axis) -> str:
    if axis is None:
        return "L"
    return " or ".join(map(str, axis)) if isinstance(axis, tuple) else str(axis)


def check_values(name: str, values: NDArray[np.float64]) -> None:
    """Raise if a value is NaN or +inf, and name the first place."""
    bad = ~(values < np.inf)
    if bad.any():
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        raise ValueError(f"{name} is {values[where]} at {list(where)}, expected a finite number or -inf")
