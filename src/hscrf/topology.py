"""The state hierarchy: its levels, their states, and which children, successors and durations each state may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.hierarchy import (
    UNLIMITED,
    Hierarchy,
    Limits,
    Relation,
    State,
    check_level_names,
    checked_state_names,
    child_tables,
    duration_limits,
    filler_rows,
    named_limits,
    open_rows,
    restricted_rows,
    successor_tables,
)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Topology(Hierarchy):
    """Levels from top to bottom, their states, and the children, successors and durations that each state may have.

    States are strings or other hashables, such as integers. ``"?"``, None, NaN and -1 mean unknown. The constructor
    adds level 0, named ``"root"``.

    Parameters
    ----------
    levels : dict of str to list of states
        The states of each level, from top to bottom.
    children : dict of str to dict, optional
        By level: the children that a parent may have. Other parents may have every state of the next level.
    successors : dict of str to dict, optional
        By level: the states that may follow a state under the same parent. Any state may follow other states.
    root : list of states, optional
        Classes of whole sequences. None means one dummy state.
    min_duration, max_duration : dict of str to int, dict or None, optional
        Limits of a level, or of its states by name; None means no limit. Segments of the bottom level have length 1
        unless ``max_duration`` names it.
    fillers : dict of str to state or list of states, optional
        By level: states that remember the last other state before them under the same parent (:mod:`hscrf.fillers`).
        Labels do not show the memory.
    open_duration : dict of str to True or list of states, optional
        Levels or states whose longest duration L is not a limit. Segments may be longer; each step beyond L scores the
        part ``tail`` of :class:`hscrf.Potentials`.

    Examples
    --------
    >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V", "J"]},
    ...                     children={"phrase": {"NP": ["N", "J"]}}, max_duration={"phrase": 15})
    >>> topology
    Topology(root 1 > phrase 2 > tag 3)
    >>> topology.children[1].astype(int).tolist()
    [[1, 0, 1], [1, 1, 1]]
    >>> topology.max_duration[1].tolist(), topology.unit_bottom
    ([15, 15], True)
    """

    children: tuple[NDArray[np.bool_], ...]  # D - 1 tables (S_d, S_{d+1})
    successors: tuple[NDArray[np.bool_], ...]  # D tables (S_d, S_d); nothing follows the root
    min_duration: tuple[NDArray[np.int64], ...]  # D rows (S_d,), 1 by default
    max_duration: tuple[NDArray[np.int64], ...]  # D rows (S_d,), UNLIMITED by default
    fillers: tuple[NDArray[np.bool_], ...]  # D rows (S_d,): the states that remember
    open_duration: tuple[NDArray[np.bool_], ...]  # D rows (S_d,): states whose segments may be longer than max_duration

    def __init__(
        self,
        levels: Mapping[str, Sequence[State]],
        children: Relation | None = None,
        successors: Relation | None = None,
        root: Sequence[State] | None = None,
        min_duration: Limits | None = None,
        max_duration: Limits | None = None,
        fillers: Mapping[str, State | Sequence[State]] | None = None,
        open_duration: Mapping[str, bool | Sequence[State]] | None = None,
    ) -> None:
        check_level_names(levels)
        named = {"root": ["root"] if root is None else root, **levels}
        put = partial(object.__setattr__, self)
        put("levels", tuple(named))
        put("states", tuple(checked_state_names(level, states) for level, states in named.items()))
        put("children", child_tables(self, children or {}))
        put("successors", successor_tables(self, successors or {}))
        shortest, longest = duration_limits(self, min_duration or {}, max_duration or {})
        put("min_duration", shortest)
        put("max_duration", longest)
        put("open_duration", open_rows(self, open_duration or {}, max_duration or {}, longest))
        put("fillers", filler_rows(self, fillers or {}))

    @cached_property
    def unit_bottom(self) -> bool:
        """Whether every segment of the bottom level has length one."""
        return bool((self.max_duration[-1] == 1).all() and not self.open_duration[-1].any())

    def has_limits(self, level: int) -> bool:
        """Return whether durations of a level are limited; False for a bottom level of unit length.

        Parameters
        ----------
        level : int
            The index of the level.

        Returns
        -------
        bool
        """
        return self._limited[level]

    @cached_property
    def _limited(self) -> tuple[bool, ...]:
        limits = zip(self.min_duration, self.max_duration, strict=True)
        found = [bool((shortest > 1).any() or (longest < UNLIMITED).any()) for shortest, longest in limits]
        return (*found[:-1], found[-1] and not self.unit_bottom)

    def to_dict(self) -> dict[str, Any]:
        """Return the constructor's arguments as lists and dicts of names and ints.

        ``Topology.from_dict(topology.to_dict()) == topology``; levels keep their order as the dict's keys.

        Returns
        -------
        dict
        """
        named: dict[str, Any] = {"fillers": self.filler_names} if self.remembers else {}
        if self.open_levels:
            named["open_duration"] = {self.levels[d]: self._open_names(d) for d in self.open_levels}
        return {
            "levels": {self.levels[d]: list(self.states[d]) for d in range(1, self.depth)},
            "children": restricted_rows(self, self.children, 0, 1),
            "successors": restricted_rows(self, self.successors[1:], 1, 0),
            "root": None if self.states[0] == ("root",) else list(self.states[0]),
            "min_duration": named_limits(self, self.min_duration, 1),
            "max_duration": self._named_maxima(),
            **named,
        }

    @classmethod
    def from_dict(cls, arguments: Mapping[str, Any]) -> Topology:
        """Build a topology from the result of :meth:`to_dict` or :meth:`to_json`.

        Parameters
        ----------
        arguments : dict

        Returns
        -------
        Topology
        """
        names = arguments.get("names")
        topology = cls(**{name: value for name, value in arguments.items() if name != "names"})
        return topology if names is None else topology._renamed(names)

    def to_json(self) -> dict[str, Any]:
        """Return a dict for JSON that :meth:`from_dict` reads: that of :meth:`to_dict`, if all states are strings.

        Otherwise states are numbered, and ``names`` holds their names: strings, integers, floats, true or false.

        Returns
        -------
        dict

        Raises
        ------
        ValueError
            If a state is neither a string nor a number.

        Examples
        --------
        >>> Topology({"tag": [3, 5]}).to_json()["names"]
        {'root': ['root'], 'tag': [3, 5]}
        """
        if all(isinstance(name, str) for names in self.states for name in names):
            return self.to_dict()
        names = {level: list(states) for level, states in zip(self.levels, self.states, strict=True)}
        for level, states in names.items():
            for name in states:
                if not isinstance(name, (str, int, float)):
                    raise ValueError(
                        f"level {level!r} has the state {name!r}, a {type(name).__name__}; a file can hold strings and "
                        "numbers only"
                    )
        numbers = {level: [str(s) for s in range(len(states))] for level, states in names.items()}
        return {**self._renamed(numbers).to_dict(), "names": names}

    def _renamed(self, names: Mapping[str, Sequence[State]]) -> Topology:
        """The same topology with other names of its states."""
        if list(names) != list(self.levels) or tuple(map(len, names.values())) != self.n_states:
            raise ValueError(f"names do not fit {self}; expected one for each state of each level")
        return self.with_fields(states=tuple(checked_state_names(level, states) for level, states in names.items()))

    def with_fields(self, **fields: Any) -> Topology:
        """Return this topology with some fields replaced; nothing is checked.

        Parameters
        ----------
        **fields
            New values by the names of the attributes.

        Returns
        -------
        Topology
        """
        other = object.__new__(type(self))
        for name in (item.name for item in dataclass_fields(self)):
            object.__setattr__(other, name, fields[name] if name in fields else getattr(self, name))
        return other

    @cached_property
    def remembers(self) -> bool:
        """Whether any state is a filler that remembers."""
        return any(row.any() for row in self.fillers)

    @property
    def filler_names(self) -> dict[str, list[State]]:
        """The fillers of each level that has any."""
        rows = zip(self.levels, self.states, self.fillers, strict=True)
        return {level: [names[s] for s in np.flatnonzero(row)] for level, names, row in rows if row.any()}

    def remembering(self, fillers: Mapping[str, State | Sequence[State]]) -> Topology:
        """Return this topology with other fillers; an empty dict removes all fillers.

        Parameters
        ----------
        fillers : dict of str to state or list of states

        Returns
        -------
        Topology

        Examples
        --------
        >>> Topology({"phrase": ["NP", "O"]}).remembering({"phrase": "O"}).filler_names
        {'phrase': ['O']}
        """
        return self.with_fields(fillers=filler_rows(self, fillers)) if fillers or self.remembers else self

    @cached_property
    def open_levels(self) -> tuple[int, ...]:
        """The levels with segments that may be longer than their ``max_duration``."""
        return tuple(d for d, row in enumerate(self.open_duration) if row.any())

    def longest_legal(self, d: int) -> NDArray[np.int64]:
        """Return the longest legal duration of each state: ``max_duration``, or UNLIMITED where that is open.

        Parameters
        ----------
        d : int
            The index of the level.

        Returns
        -------
        ndarray of shape (S_d,)

        Examples
        --------
        >>> levels, opened = {"part": ["exon", "intron"]}, {"part": ["intron"]}
        >>> Topology(levels, max_duration={"part": 9}, open_duration=opened).longest_legal(1) > 9
        array([False,  True])
        """
        return np.where(self.open_duration[d], UNLIMITED, self.max_duration[d])

    def opened(self, levels: Sequence[str]) -> Topology:
        """Return this topology with open durations at more levels.

        Parameters
        ----------
        levels : list of str

        Returns
        -------
        Topology

        Examples
        --------
        >>> Topology({"action": ["walk", "sit"]}, max_duration={"action": 9}).opened(["action"]).open_levels
        (1,)
        """
        arguments = self.to_dict()
        named = {self.levels[self.level(level)]: True for level in levels}
        return Topology.from_dict({**arguments, "open_duration": {**arguments.get("open_duration", {}), **named}})

    def _open_names(self, d: int) -> bool | list[State]:
        row = self.open_duration[d]
        return bool(row.all()) or [self.states[d][s] for s in np.flatnonzero(row)]

    def limited(self, max_duration: Limits) -> Topology:
        """Return this topology with other longest durations of some levels.

        Parameters
        ----------
        max_duration : dict of str to int, dict or None
            As in the constructor.

        Returns
        -------
        Topology

        Examples
        --------
        >>> Topology({"action": ["walk", "sit"]}).limited({"action": 9}).max_duration[1].tolist()
        [9, 9]
        """
        arguments = self.to_dict()
        return Topology.from_dict({**arguments, "max_duration": {**arguments["max_duration"], **max_duration}})

    def shortened(self, length: int) -> Topology:
        """Return this topology with every limit cut to a length; limits stay at least ``min_duration``.

        Parameters
        ----------
        length : int
            The longest sequence. Durations without a limit stay without one.

        Returns
        -------
        Topology

        Examples
        --------
        >>> Topology({"action": ["walk"]}, max_duration={"action": 10**9}).shortened(90).max_duration[1].tolist()
        [90]
        """
        cut: dict[str, Any] = {}
        for level, names, low, high in zip(self.levels, self.states, self.min_duration, self.max_duration, strict=True):
            if ((high > length) & (high < UNLIMITED)).any():
                least = np.where(high < UNLIMITED, np.maximum(np.minimum(high, length), low), high).tolist()
                cut[level] = {s: None if n == UNLIMITED else n for s, n in zip(names, least, strict=True)}
        return self.limited(cut) if cut else self

    def _named_maxima(self) -> dict[str, Any]:
        """Upper limits by name: a persisting bottom is always named, a unit bottom never."""
        limits: dict[str, Any] = named_limits(self, self.max_duration, UNLIMITED)
        if self.unit_bottom:
            del limits[self.levels[-1]]
        else:
            limits.setdefault(self.levels[-1], None)
        return limits

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        arrays = (*self.children, *self.successors, *self.min_duration, *self.max_duration, *self.fillers)
        arrays += self.open_duration
        return self.levels, self.states, tuple(array.tobytes() for array in arrays)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology):
            return NotImplemented
        return self is other or self._content == other._content

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self._content)

    def __repr__(self) -> str:
        sizes = (f"{level} {size}" for level, size in zip(self.levels, self.n_states, strict=True))
        return f"Topology({' > '.join(sizes)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)
