"""Longest and shortest durations of states, as a topology is given them: checked rows, one for each level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import sealed
from hscrf.names import State

UNLIMITED = int(np.iinfo(np.int64).max)
"""The maximal duration of a state without a limit."""

Limits = Mapping[str, int | Mapping[State, int | None] | None]
Frame = Any  # a topology whose levels and states are known


def limits_by_level(topology: Frame, named: Mapping[str, Any], what: str) -> dict[int, Any]:
    """The same mapping with level indices for names."""
    if not isinstance(named, Mapping):
        raise ValueError(f"{what} is {named!r}; expected a mapping from level name")
    return {topology.level(level): value for level, value in named.items()}


def duration_limits(
    topology: Frame, min_duration: Limits, max_duration: Limits
) -> tuple[tuple[NDArray[np.int64], ...], tuple[NDArray[np.int64], ...]]:
    shortest = _durations(topology, min_duration, 1, "min_duration")
    longest = _durations(topology, max_duration, UNLIMITED, "max_duration")
    bottom = topology.levels[-1]
    if topology.depth - 1 not in map(topology.level, max_duration):
        longest[-1][:] = 1
        if (shortest[-1] > 1).any():
            raise ValueError(
                f"min_duration names {bottom!r}, but the bottom level has length 1; let it persist "
                f"by naming it in max_duration too, as in max_duration={{{bottom!r}: None}}"
            )
    _check_limits(topology, shortest, longest)
    return tuple(map(sealed, shortest)), tuple(map(sealed, longest))


def _durations(topology: Frame, limits: Limits, default: int, what: str) -> list[NDArray[np.int64]]:
    """One row (S_d,) for each level; None and states not named get the default."""
    rows = [np.full(size, default, dtype=np.int64) for size in topology.n_states]
    for d, limit in limits_by_level(topology, limits, what).items():
        if d == 0:
            raise ValueError(f"{what} names 'root', which spans the sequence; expected a level below it")
        named = limit if isinstance(limit, Mapping) else dict.fromkeys(topology.states[d], limit)
        for name, value in named.items():
            rows[d][topology.state(d, name)] = _steps(value, default, f"{what} of {topology.levels[d]} {name!r}")
    return rows


def _steps(value: object, default: int, what: str) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{what} is {value!r}; expected a positive integer or None")
    return min(int(value), UNLIMITED)


def _check_limits(topology: Frame, shortest: Sequence[NDArray[np.int64]], longest: Sequence[NDArray[np.int64]]) -> None:
    for level, names, low, high in zip(topology.levels, topology.states, shortest, longest, strict=True):
        if (low > high).any():
            s = int((low > high).argmax())
            raise ValueError(
                f"state {names[s]!r} of level {level!r} has min_duration {low[s]}; "
                f"expected at most its max_duration {high[s]}"
            )


def open_rows(topology: Frame, opened: Mapping[str, Any], max_duration: Limits) -> tuple[NDArray[np.bool_], ...]:
    rows = [np.zeros(size, dtype=bool) for size in topology.n_states]
    for d, named in limits_by_level(topology, opened, "open_duration").items():
        if isinstance(named, bool):
            rows[d][:] = named
        elif isinstance(named, (list, tuple)):
            rows[d][[topology.state(d, name) for name in named]] = True
        else:
            raise ValueError(
                f"open_duration of level {topology.levels[d]!r} is {named!r}; expected True, False or a list of states"
            )
        endless = rows[d] & (topology.max_duration[d] == UNLIMITED)
        if endless.any() or (rows[d].any() and d not in map(topology.level, max_duration)):
            raise ValueError(
                f"open_duration names state {topology.states[d][int(rows[d].argmax())]!r} of level "
                f"{topology.levels[d]!r}, which has no max_duration; expected one"
            )
    return tuple(map(sealed, rows))


def named_limits(topology: Frame, rows: Sequence[NDArray[np.int64]], default: int) -> dict[str, dict[State, int]]:
    """The durations that differ from the default, by name."""
    limits = {}
    for level, names, row in zip(topology.levels, topology.states, rows, strict=True):
        limited = {names[s]: int(row[s]) for s in np.flatnonzero(row != default)}
        if limited:
            limits[level] = limited
    return limits
