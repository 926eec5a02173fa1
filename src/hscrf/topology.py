"""The state hierarchy: its levels, their states, and which children, successors and durations each state may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import sealed
from hscrf.limits import UNLIMITED, Limits, duration_limits, limits_by_level, named_limits, open_rows
from hscrf.names import State, checked_state_names, unknown_name

Relation = Mapping[str, Mapping[State, Sequence[State]]]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Topology:
    """Levels from top to bottom, their states, and the children, successors and durations that each state may have.

    States are strings or other hashables, such as integers, and stay what they are; ``"?"``, None, NaN and -1 mean
    unknown. Level 0, named ``"root"``, is added by itself: one dummy state, or the sequence classes in ``root``.
    Parents not named in ``children`` may have every child; states not named in ``successors`` may be followed
    by every state of their level under the same parent, themselves included. ``min_duration`` and
    ``max_duration`` limit a level or single states, None meaning no limit; the bottom level has length 1
    unless ``max_duration`` names it. ``fillers`` names states, one or several a level, that remember which other state
    came last before them under the same parent (:mod:`hscrf.fillers`); labels show nothing of it.

    ``open_duration`` names levels (``{"phrase": True}``) or states of a level (``{"phrase": ["NP"]}``) whose longest
    duration L is not a limit: segments may be longer, and each step beyond L scores the part ``tail`` of
    :class:`hscrf.Potentials`.

    >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V", "J"]},
    ...                     children={"phrase": {"NP": ["N", "J"]}}, max_duration={"phrase": 15})
    >>> topology
    Topology(root 1 > phrase 2 > tag 3)
    >>> topology.children[1].astype(int).tolist()
    [[1, 0, 1], [1, 1, 1]]
    >>> topology.max_duration[1].tolist(), topology.unit_bottom
    ([15, 15], True)
    """

    levels: tuple[str, ...]  # D names, "root" first
    states: tuple[tuple[State, ...], ...]  # state names of each level
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
        _check_level_names(levels)
        named = {"root": ["root"] if root is None else root, **levels}
        put = partial(object.__setattr__, self)
        put("levels", tuple(named))
        put("states", tuple(checked_state_names(level, states) for level, states in named.items()))
        put("children", _child_tables(self, children or {}))
        put("successors", _successor_tables(self, successors or {}))
        shortest, longest = duration_limits(self, min_duration or {}, max_duration or {})
        put("min_duration", shortest)
        put("max_duration", longest)
        put("open_duration", open_rows(self, open_duration or {}, max_duration or {}))
        put("fillers", _filler_rows(self, fillers or {}))

    @property
    def depth(self) -> int:
        """Number of levels, the root included."""
        return len(self.levels)

    @cached_property
    def n_states(self) -> tuple[int, ...]:
        """Number of states of each level."""
        return tuple(map(len, self.states))

    @cached_property
    def unit_bottom(self) -> bool:
        """Whether every segment of the bottom level has length one."""
        return bool((self.max_duration[-1] == 1).all() and not self.open_duration[-1].any())

    def has_limits(self, level: int) -> bool:
        """Whether durations of the level are limited; False for a unit bottom, which the engine treats apart."""
        return self._limited[level]

    @cached_property
    def _limited(self) -> tuple[bool, ...]:
        limits = zip(self.min_duration, self.max_duration, strict=True)
        found = [bool((shortest > 1).any() or (longest < UNLIMITED).any()) for shortest, longest in limits]
        return (*found[:-1], found[-1] and not self.unit_bottom)

    def level(self, name: str | int) -> int:
        """Return the index of a level given by name or index.

        >>> Topology({"tag": ["N", "V"]}).level("tag")
        1
        """
        if isinstance(name, str) and name in self.levels:
            return self.levels.index(name)
        if isinstance(name, (int, np.integer)) and 0 <= name < self.depth:
            return int(name)
        raise ValueError(unknown_name("level", name, self.levels))

    def state(self, level: str | int, name: State) -> int:
        """Return the index of a state within its level.

        >>> Topology({"tag": ["N", "V"]}).state("tag", "V")
        1
        """
        d = self.level(level)
        try:
            return self._state_index[d][name]
        except (KeyError, TypeError):
            kind = f"state of level {self.levels[d]!r}"
            raise ValueError(unknown_name(kind, name, self.states[d])) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the constructor's arguments as lists and dicts of names and ints.

        ``Topology.from_dict(topology.to_dict()) == topology``; levels keep their order as the dict's keys.
        """
        named: dict[str, Any] = {"fillers": self.filler_names} if self.remembers else {}
        if self.open_levels:
            named["open_duration"] = {self.levels[d]: self._open_names(d) for d in self.open_levels}
        return {
            "levels": {self.levels[d]: list(self.states[d]) for d in range(1, self.depth)},
            "children": _restricted_rows(self, self.children, 0, 1),
            "successors": _restricted_rows(self, self.successors[1:], 1, 0),
            "root": None if self.states[0] == ("root",) else list(self.states[0]),
            "min_duration": named_limits(self, self.min_duration, 1),
            "max_duration": self._named_maxima(),
            **named,
        }

    @classmethod
    def from_dict(cls, arguments: Mapping[str, Any]) -> Topology:
        """Build a topology from what :meth:`to_dict` or :meth:`to_json` returned."""
        names = arguments.get("names")
        topology = cls(**{name: value for name, value in arguments.items() if name != "names"})
        return topology if names is None else topology._renamed(names)

    def to_json(self) -> dict[str, Any]:
        """Return what JSON can hold and :meth:`from_dict` reads: :meth:`to_dict`, if all states are strings.

        Otherwise states are numbered, and ``names`` tells the name of each: strings, integers, floats, true or false.

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
        """Return this topology with other fillers; an empty dict takes all memory away.

        >>> Topology({"phrase": ["NP", "O"]}).remembering({"phrase": "O"}).filler_names
        {'phrase': ['O']}
        """
        return self.with_fields(fillers=_filler_rows(self, fillers)) if fillers or self.remembers else self

    @cached_property
    def open_levels(self) -> tuple[int, ...]:
        """The levels with segments that may be longer than their ``max_duration``."""
        return tuple(d for d, row in enumerate(self.open_duration) if row.any())

    def longest_legal(self, d: int) -> NDArray[np.int64]:
        """The longest legal duration (S_d,) of each state: ``max_duration``, or UNLIMITED where that is open.

        >>> levels, opened = {"part": ["exon", "intron"]}, {"part": ["intron"]}
        >>> Topology(levels, max_duration={"part": 9}, open_duration=opened).longest_legal(1) > 9
        array([False,  True])
        """
        return np.where(self.open_duration[d], UNLIMITED, self.max_duration[d])

    def opened(self, levels: Sequence[str]) -> Topology:
        """Return this topology with open durations of some levels besides those that are open already.

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

        >>> Topology({"action": ["walk", "sit"]}).limited({"action": 9}).max_duration[1].tolist()
        [9, 9]
        """
        arguments = self.to_dict()
        return Topology.from_dict({**arguments, "max_duration": {**arguments["max_duration"], **max_duration}})

    def shortened(self, length: int) -> Topology:
        """Return this topology with limits of at most so many steps; no limit stays none, the shortest stay legal.

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
    def _state_index(self) -> tuple[dict[State, int], ...]:
        return tuple({name: s for s, name in enumerate(states)} for states in self.states)

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


def _check_level_names(levels: Mapping[str, Sequence[str]]) -> None:
    if not isinstance(levels, Mapping):
        raise ValueError(f"levels is a {type(levels).__name__}; expected a mapping from level to state names")
    if not levels:
        raise ValueError("levels is empty; expected at least one level below the root")
    if "root" in levels:
        raise ValueError("levels names 'root', which is added by itself; give its classes as root=[...]")
    for level in levels:
        if not isinstance(level, str):
            raise ValueError(f"level name {level!r} is a {type(level).__name__}; expected a string")


def _table(topology: Topology, rows: Mapping[State, Sequence[State]], source: int, target: int) -> NDArray[np.bool_]:
    """Allowed pairs (S_source, S_target): all pairs in rows that are not named, the given ones in rows that are."""
    table = np.ones((topology.n_states[source], topology.n_states[target]), dtype=bool)
    if not isinstance(rows, Mapping):
        level = topology.levels[source]
        raise ValueError(f"level {level!r} is given {rows!r}; expected a mapping from state to states")
    for name, targets in rows.items():
        if isinstance(targets, str):
            raise ValueError(f"state {name!r} is given the string {targets!r}; expected a list of states")
        row = table[topology.state(source, name)]
        row[:] = False
        row[[topology.state(target, other) for other in targets]] = True
    return table


def _child_tables(topology: Topology, children: Relation) -> tuple[NDArray[np.bool_], ...]:
    rows = limits_by_level(topology, children, "children")
    if topology.depth - 1 in rows:
        raise ValueError(f"children names {topology.levels[-1]!r}, the bottom level; expected one above it")
    tables = [_table(topology, rows.get(d, {}), d, d + 1) for d in range(topology.depth - 1)]
    for d, table in enumerate(tables):
        _check_child_table(topology, d, table)
    return tuple(map(sealed, tables))


def _check_child_table(topology: Topology, d: int, table: NDArray[np.bool_]) -> None:
    """Refuse parents without children, and children without parents."""
    barren, orphans = ~table.any(axis=1), ~table.any(axis=0)
    above, below = topology.levels[d], topology.levels[d + 1]
    if barren.any():
        name = topology.states[d][int(barren.argmax())]
        raise ValueError(f"state {name!r} of level {above!r} has no child; expected one in {below!r}")
    if orphans.any():
        name = topology.states[d + 1][int(orphans.argmax())]
        raise ValueError(f"state {name!r} of level {below!r} has no parent; expected one in {above!r}")


def _successor_tables(topology: Topology, successors: Relation) -> tuple[NDArray[np.bool_], ...]:
    rows = limits_by_level(topology, successors, "successors")
    if 0 in rows:
        raise ValueError("successors names 'root', which nothing follows; expected a level below it")
    tables = [_table(topology, rows.get(d, {}), d, d) for d in range(topology.depth)]
    tables[0][:] = False
    return tuple(map(sealed, tables))


def _filler_rows(topology: Topology, fillers: Mapping[str, Any]) -> tuple[NDArray[np.bool_], ...]:
    rows = [np.zeros(size, dtype=bool) for size in topology.n_states]
    for d, named in limits_by_level(topology, fillers, "fillers").items():
        if d == 0:
            raise ValueError("fillers names 'root', which has no siblings; expected a level below it")
        for name in named if isinstance(named, (list, tuple)) else [named]:
            rows[d][topology.state(d, name)] = True
        if rows[d].all():
            raise ValueError(f"all states of level {topology.levels[d]!r} are fillers; expected others to remember")
    return tuple(map(sealed, rows))


def _restricted_rows(
    topology: Topology, tables: Sequence[NDArray[np.bool_]], first: int, step: int
) -> dict[str, dict[State, list[State]]]:
    """The rows of a relation that do not allow everything, by name; tables start at level ``first``."""
    relation = {}
    for d, table in enumerate(tables, start=first):
        targets = topology.states[d + step]
        rows = {
            topology.states[d][s]: [targets[v] for v in np.flatnonzero(table[s])]
            for s in np.flatnonzero(~table.all(axis=1))
        }
        if rows:
            relation[topology.levels[d]] = rows
    return relation
