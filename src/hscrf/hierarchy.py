"""Levels and states by name, and the tables of their children, successors, durations and fillers, all checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import sealed
from hscrf.errors import a_type

State = Any  # a name: a string, or another hashable such as an integer
UNLIMITED = int(np.iinfo(np.int64).max)
"""The maximal duration of a state without a limit."""

Limits = Mapping[str, int | Mapping[State, int | None] | None]
Relation = Mapping[str, Mapping[State, Sequence[State]]]


@dataclass(frozen=True)
class Hierarchy:
    """The names of levels, ``"root"`` first, and of the states of each level, with their indices.

    Attributes
    ----------
    levels : tuple of str
    states : tuple of tuple of states
    """

    levels: tuple[str, ...]  # D names
    states: tuple[tuple[State, ...], ...]  # state names of each level

    @property
    def depth(self) -> int:
        """Number of levels, the root included."""
        return len(self.levels)

    @cached_property
    def n_states(self) -> tuple[int, ...]:
        """Number of states of each level."""
        return tuple(map(len, self.states))

    @cached_property
    def _numbers(self) -> tuple[dict[State, int], ...]:
        """The index of each state, by level."""
        return tuple({name: s for s, name in enumerate(states)} for states in self.states)

    def level(self, name: str | int) -> int:
        """Return the index of a level given by name or index.

        Parameters
        ----------
        name : str or int

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If there is no such level.

        Examples
        --------
        >>> Hierarchy(("root", "tag"), (("root",), ("N", "V"))).level("tag")
        1
        """
        if isinstance(name, str) and name in self.levels:
            return self.levels.index(name)
        if isinstance(name, (int, np.integer)) and 0 <= name < self.depth:
            return int(name)
        raise ValueError(unknown_name("level", name, self.levels))

    def state(self, level: str | int, name: State) -> int:
        """Return the index of a state within its level.

        Parameters
        ----------
        level : str or int
        name : state

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If there is no such level or state.

        Examples
        --------
        >>> Hierarchy(("root", "tag"), (("root",), ("N", "V"))).state("tag", "V")
        1
        """
        d = self.level(level)
        try:
            return self._numbers[d][name]
        except (KeyError, TypeError):
            kind = f"state of level {self.levels[d]!r}"
            raise ValueError(unknown_name(kind, name, self.states[d])) from None


def unknown_name(kind: str, name: object, known: Sequence[State]) -> str:
    """The message for an unknown name: the known name closest to it, and all known names."""
    words = [word for word in known if isinstance(word, str)]
    close = get_close_matches(name, words, n=1) if isinstance(name, str) else []
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    rest = f" and {len(known) - 20} more" if len(known) > 20 else ""
    return f"unknown {kind}: {name!r}{hint}; known are {', '.join(map(repr, known[:20]))}{rest}"


def in_order(names: Iterable[State]) -> list[State]:
    """Names of states in their order; those that cannot be compared are put together by type.

    >>> in_order({3, 1, 2}), in_order({"b", 2, "a"})
    ([1, 2, 3], [2, 'a', 'b'])
    """
    found = list(names)
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda name: (type(name).__name__, repr(name)))


def checked_state_names(level: str, states: Iterable[State]) -> tuple[State, ...]:
    """Check and freeze the state names of one level."""
    if isinstance(states, str):
        raise ValueError(f"level {level!r} is the string {states!r}; expected a list of state names")
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in states)
    if not names:
        raise ValueError(f"level {level!r} is empty; expected at least one state")
    for name in names:
        if not _has_hash(name):
            raise ValueError(f"level {level!r} has the state {name!r}; expected a string or another hashable")
        if name is None or name == "?" or name != name or (name == -1 and not isinstance(name, str)):
            raise ValueError(f"level {level!r} has a state {name!r}, which means unknown; expected another name")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"level {level!r} has the state {twice!r} twice; expected distinct states")
    return names


def _has_hash(name: object) -> bool:
    try:
        hash(name)
    except TypeError:
        return False
    return True


def check_level_names(levels: Mapping[str, Sequence[str]]) -> None:
    """Raise an error unless levels are named by strings, none of them "root"."""
    if not isinstance(levels, Mapping):
        raise ValueError(f"levels is {a_type(levels)}; expected a mapping from level to state names")
    if not levels:
        raise ValueError("levels is empty; expected at least one level below the root")
    if "root" in levels:
        raise ValueError("levels names 'root', which is added by itself; give its classes as root=[...]")
    for level in levels:
        if not isinstance(level, str):
            raise ValueError(f"level name {level!r} is {a_type(level)}; expected a string")


# -- tables of a topology: a row for each state


def limits_by_level(hierarchy: Hierarchy, named: Mapping[str, Any], what: str) -> dict[int, Any]:
    """The same mapping with level indices for names."""
    if not isinstance(named, Mapping):
        raise ValueError(f"{what} is {named!r}; expected a mapping from level name")
    return {hierarchy.level(level): value for level, value in named.items()}


def duration_limits(
    hierarchy: Hierarchy, min_duration: Limits, max_duration: Limits
) -> tuple[tuple[NDArray[np.int64], ...], tuple[NDArray[np.int64], ...]]:
    """Return the checked shortest and longest durations of all states, a row (S_d,) for each level."""
    shortest = _durations(hierarchy, min_duration, 1, "min_duration")
    longest = _durations(hierarchy, max_duration, UNLIMITED, "max_duration")
    bottom = hierarchy.levels[-1]
    if hierarchy.depth - 1 not in map(hierarchy.level, max_duration):
        longest[-1][:] = 1
        if (shortest[-1] > 1).any():
            raise ValueError(
                f"min_duration names {bottom!r}, but the bottom level has length 1; let it persist "
                f"by naming it in max_duration too, as in max_duration={{{bottom!r}: None}}"
            )
    _check_limits(hierarchy, shortest, longest)
    return tuple(map(sealed, shortest)), tuple(map(sealed, longest))


def _durations(hierarchy: Hierarchy, limits: Limits, default: int, what: str) -> list[NDArray[np.int64]]:
    """One row (S_d,) for each level; None and states not named get the default."""
    rows = [np.full(size, default, dtype=np.int64) for size in hierarchy.n_states]
    for d, limit in limits_by_level(hierarchy, limits, what).items():
        if d == 0:
            raise ValueError(f"{what} names 'root', which spans the sequence; expected a level below it")
        named = limit if isinstance(limit, Mapping) else dict.fromkeys(hierarchy.states[d], limit)
        for name, value in named.items():
            rows[d][hierarchy.state(d, name)] = _steps(value, default, f"{what} of {hierarchy.levels[d]} {name!r}")
    return rows


def _steps(value: object, default: int, what: str) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{what} is {value!r}; expected a positive integer or None")
    return min(int(value), UNLIMITED)


def _check_limits(
    hierarchy: Hierarchy, shortest: Sequence[NDArray[np.int64]], longest: Sequence[NDArray[np.int64]]
) -> None:
    for level, names, low, high in zip(hierarchy.levels, hierarchy.states, shortest, longest, strict=True):
        if (low > high).any():
            s = int((low > high).argmax())
            raise ValueError(
                f"state {names[s]!r} of level {level!r} has min_duration {low[s]}; "
                f"expected at most its max_duration {high[s]}"
            )


def open_rows(
    hierarchy: Hierarchy, opened: Mapping[str, Any], max_duration: Limits, longest: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.bool_], ...]:
    """Return the checked states with open durations, a row (S_d,) for each level."""
    rows = [np.zeros(size, dtype=bool) for size in hierarchy.n_states]
    for d, named in limits_by_level(hierarchy, opened, "open_duration").items():
        if isinstance(named, bool):
            rows[d][:] = named
        elif isinstance(named, (list, tuple)):
            rows[d][[hierarchy.state(d, name) for name in named]] = True
        else:
            raise ValueError(
                f"open_duration of level {hierarchy.levels[d]!r} is {named!r}; expected True, False or a list of states"
            )
        endless = rows[d] & (longest[d] == UNLIMITED)
        if endless.any() or (rows[d].any() and d not in map(hierarchy.level, max_duration)):
            raise ValueError(
                f"open_duration names state {hierarchy.states[d][int(rows[d].argmax())]!r} of level "
                f"{hierarchy.levels[d]!r}, which has no max_duration; expected one"
            )
    return tuple(map(sealed, rows))


def named_limits(hierarchy: Hierarchy, rows: Sequence[NDArray[np.int64]], default: int) -> dict[str, dict[State, int]]:
    """The durations that differ from the default, by name."""
    limits = {}
    for level, names, row in zip(hierarchy.levels, hierarchy.states, rows, strict=True):
        limited = {names[s]: int(row[s]) for s in np.flatnonzero(row != default)}
        if limited:
            limits[level] = limited
    return limits


def _table(hierarchy: Hierarchy, rows: Mapping[State, Sequence[State]], source: int, target: int) -> NDArray[np.bool_]:
    """Allowed pairs (S_source, S_target): all pairs in rows that are not named, the given ones in rows that are."""
    table = np.ones((hierarchy.n_states[source], hierarchy.n_states[target]), dtype=bool)
    if not isinstance(rows, Mapping):
        level = hierarchy.levels[source]
        raise ValueError(f"level {level!r} is given {rows!r}; expected a mapping from state to states")
    for name, targets in rows.items():
        if isinstance(targets, str):
            raise ValueError(f"state {name!r} is given the string {targets!r}; expected a list of states")
        row = table[hierarchy.state(source, name)]
        row[:] = False
        row[[hierarchy.state(target, other) for other in targets]] = True
    return table


def child_tables(hierarchy: Hierarchy, children: Relation) -> tuple[NDArray[np.bool_], ...]:
    """Return the checked tables (S_d, S_{d+1}) of allowed children."""
    rows = limits_by_level(hierarchy, children, "children")
    if hierarchy.depth - 1 in rows:
        raise ValueError(f"children names {hierarchy.levels[-1]!r}, the bottom level; expected one above it")
    tables = [_table(hierarchy, rows.get(d, {}), d, d + 1) for d in range(hierarchy.depth - 1)]
    for d, table in enumerate(tables):
        _check_child_table(hierarchy, d, table)
    return tuple(map(sealed, tables))


def _check_child_table(hierarchy: Hierarchy, d: int, table: NDArray[np.bool_]) -> None:
    """Refuse parents without children, and children without parents."""
    barren, orphans = ~table.any(axis=1), ~table.any(axis=0)
    above, below = hierarchy.levels[d], hierarchy.levels[d + 1]
    if barren.any():
        name = hierarchy.states[d][int(barren.argmax())]
        raise ValueError(f"state {name!r} of level {above!r} has no child; expected one in {below!r}")
    if orphans.any():
        name = hierarchy.states[d + 1][int(orphans.argmax())]
        raise ValueError(f"state {name!r} of level {below!r} has no parent; expected one in {above!r}")


def successor_tables(hierarchy: Hierarchy, successors: Relation) -> tuple[NDArray[np.bool_], ...]:
    """Return the checked tables (S_d, S_d) of allowed successors."""
    rows = limits_by_level(hierarchy, successors, "successors")
    if 0 in rows:
        raise ValueError("successors names 'root', which nothing follows; expected a level below it")
    tables = [_table(hierarchy, rows.get(d, {}), d, d) for d in range(hierarchy.depth)]
    tables[0][:] = False
    return tuple(map(sealed, tables))


def filler_rows(hierarchy: Hierarchy, fillers: Mapping[str, Any]) -> tuple[NDArray[np.bool_], ...]:
    """Return the checked states that remember, a row (S_d,) for each level."""
    rows = [np.zeros(size, dtype=bool) for size in hierarchy.n_states]
    for d, named in limits_by_level(hierarchy, fillers, "fillers").items():
        if d == 0:
            raise ValueError("fillers names 'root', which has no siblings; expected a level below it")
        for name in named if isinstance(named, (list, tuple)) else [named]:
            rows[d][hierarchy.state(d, name)] = True
        if rows[d].all():
            raise ValueError(f"all states of level {hierarchy.levels[d]!r} are fillers; expected others to remember")
    return tuple(map(sealed, rows))


def restricted_rows(
    hierarchy: Hierarchy, tables: Sequence[NDArray[np.bool_]], first: int, step: int
) -> dict[str, dict[State, list[State]]]:
    """The rows of a relation that do not allow everything, by name; tables start at level ``first``."""
    relation = {}
    for d, table in enumerate(tables, start=first):
        targets = hierarchy.states[d + step]
        rows = {
            hierarchy.states[d][s]: [targets[v] for v in np.flatnonzero(table[s])]
            for s in np.flatnonzero(~table.all(axis=1))
        }
        if rows:
            relation[hierarchy.levels[d]] = rows
    return relation
