"""Factored log-potentials of one sequence: the input of the engine. Expected counts have the same layout."""

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
    """Log-potentials of one sequence, by part and level.

    Every part maps level names to arrays. Parts and levels that are left out are zero. A time axis of length 1 holds
    the same values for every step. ``-inf`` forbids a configuration; so does the topology, whatever the arrays contain.

    Let T be the length, S the number of states of the level, U that of the level below, and L a longest duration.

    Parameters
    ----------
    topology : Topology
        Levels, states and rules.
    length : int
        Number of time steps T.
    token : mapping from level to array (T, S), optional
        A segment of state s covers step t.
    start : mapping from level to array (T, S), optional
        A segment of s starts at t.
    stop : mapping from level to array (T, S), optional
        A segment of s has its last step at t.
    duration : mapping from level to array (L, S), optional
        A segment of s has length l + 1. Longer segments are impossible.
    segment : mapping from level to array (T, L, S), optional
        A segment of s starts at t and has length l + 1. Longer segments are impossible.
    tail : mapping from level to array (S,), optional
        Each step of a segment of s beyond its longest explicit duration, if ``open_duration`` of the topology names s.
    init : mapping from parent level to array (T or 1, S, U), optional
        Parent s starts at t with first child u.
    trans : mapping from parent level to array (T or 1, S, U, U), optional
        Under parent s, child u has its last step at t and child v starts at t + 1.
    end : mapping from parent level to array (T or 1, S, U), optional
        Parent s has its last step at t, with last child u.

    Raises
    ------
    ValueError
        If a level or shape does not fit the topology, or if a value is NaN or +inf.

    Notes
    -----
    Let ``open_duration`` of the topology name state s. Then L is its ``max_duration``, or the length of ``duration`` or
    ``segment`` if that is less. A segment of l > L steps scores ``(l - L) * tail``. It also has the scores
    ``duration[L - 1]`` and ``segment[t, L - 1]`` of the longest explicit duration.

    A filler state that remembers has one entry in the arrays for each of its copies (:mod:`hscrf.fillers`).

    Examples
    --------
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
        """Return potentials from arrays in the engine's layout.

        Parameters
        ----------
        topology : Topology
            Levels, states and rules.
        length : int
            Number of time steps.
        arrays : mapping from (part, index of the level) to array
            Shapes as in the class.

        Returns
        -------
        Potentials
        """
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
        """Iterate over all arrays.

        Yields
        ------
        tuple
            Part, level name and array.
        """
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
    """Return the shape that a part of level d must have."""
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


def is_timed(key: Key, table: NDArray[np.float64]) -> bool:
    """Whether the first axis of an array of potentials is time."""
    return key[0] not in ("duration", "tail") and (key[0] not in FAMILY or len(table) > 1)


def explicit_lengths(topology: Topology, d: int, shapes: Mapping[Key, tuple[int, ...]]) -> NDArray[np.int64]:
    """Return the longest duration (S,) of each state of level d in the tables. Open states continue by ``tail``."""
    longest = topology.max_duration[d]
    for part, axis in (("duration", 0), ("segment", 1)):
        if (part, d) in shapes:
            longest = np.minimum(longest, shapes[part, d][axis])
    return longest


def check_shape(name: str, shape: tuple[int, ...], expected: tuple[Axis, ...]) -> None:
    """Raise ValueError unless the shape fits."""
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
    """Raise ValueError if a value is NaN or +inf; the message names the first place."""
    bad = ~(values < np.inf)
    if bad.any():
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        raise ValueError(f"{name} is {values[where]} at {list(where)}, expected a finite number or -inf")
