"""The rules of the hierarchy that labels keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import InfeasibleError

if TYPE_CHECKING:
    from hscrf.labels.labels import Labels


def _last_step_ends(labels: Labels) -> None:
    hit = first_true(labels.ends[:, -1] == 0)
    if hit:
        level, t = labels.topology.levels[hit[0]], labels.length - 1
        raise InfeasibleError(f"level {level!r} goes on at {t}, but the sequence ends there")


def _root_goes_on(labels: Labels) -> None:
    hit = first_true(labels.ends[0, :-1] == 1)
    if hit:
        raise InfeasibleError(f"level 'root' ends at {hit[0]}, but the sequence ends at {labels.length - 1}")


def _ends_nest(labels: Labels) -> None:
    above = np.logical_or.accumulate(labels.ends == 1, axis=0)
    hit = first_true(above[:-1] & (labels.ends[1:] == 0))
    if hit:
        levels, t = labels.topology.levels, hit[1]
        upper = levels[int((labels.ends[:, t] == 1).argmax())]
        raise InfeasibleError(f"level {upper!r} ends at {t}, but {levels[hit[0] + 1]!r} goes on there")


def _unit_bottom_ends(labels: Labels) -> None:
    hit = first_true(labels.ends[-1] == 0)
    if labels.topology.unit_bottom and hit:
        level = labels.topology.levels[-1]
        raise InfeasibleError(f"level {level!r} goes on at {hit[0]}, but its segments have length 1")


def _segments_keep_their_state(labels: Labels) -> None:
    before, after = labels.states[:, :-1], labels.states[:, 1:]
    hit = first_true((labels.ends[:, :-1] == 0) & (before >= 0) & (after >= 0) & (before != after))
    if hit:
        d, t = hit
        raise InfeasibleError(
            f"level {labels.topology.levels[d]!r} goes on at {t}, but changes from {_state(labels, d, t)} "
            f"to {_state(labels, d, t + 1)} at {t + 1}"
        )


def _children_fit(labels: Labels) -> None:
    levels = labels.topology.levels
    for d, table in enumerate(labels.topology.children):
        parent, child = labels.states[d], labels.states[d + 1]
        hit = first_true((parent >= 0) & (child >= 0) & ~table[parent, child])
        if hit:
            t = hit[0]
            raise InfeasibleError(
                f"{levels[d + 1]} {_state(labels, d + 1, t)} at {t} is no child of {levels[d]} {_state(labels, d, t)}"
            )


def _successors_fit(labels: Labels) -> None:
    for d, table in enumerate(labels.topology.successors[1:], start=1):
        before, after = labels.states[d, :-1], labels.states[d, 1:]
        same_parent = (labels.ends[d, :-1] == 1) & (labels.ends[d - 1, :-1] == 0)
        hit = first_true(same_parent & (before >= 0) & (after >= 0) & ~table[before, after])
        if hit:
            t = hit[0]
            raise InfeasibleError(
                f"level {labels.topology.levels[d]!r}: {_state(labels, d, t + 1)} at {t + 1} may not follow "
                f"{_state(labels, d, t)}"
            )


def _durations_fit(labels: Labels) -> None:
    for d in filter(labels.topology.has_limits, range(1, labels.topology.depth)):
        start, stop, state = _known_segments(labels, d)
        low, high = labels.topology.min_duration[d][state], labels.topology.max_duration[d][state]
        hit = first_true((stop - start < low) | (stop - start > high))
        if hit:
            k = hit[0]
            raise InfeasibleError(
                f"{labels.topology.levels[d]} {labels.topology.states[d][state[k]]!r} from {start[k]} to "
                f"{stop[k]} lasts {stop[k] - start[k]} steps; expected {_range(low[k], high[k])}"
            )


def _allowed_sets_fit(labels: Labels) -> None:
    for name, allowed in (labels.allowed or {}).items():
        d = labels.topology.level(name)
        empty = first_true(~allowed.any(axis=1))
        if empty:
            raise InfeasibleError(f"level {name!r} is allowed no state at {empty[0]}")
        state = labels.states[d]
        hit = first_true((state >= 0) & ~allowed[np.arange(labels.length), state])
        if hit:
            raise InfeasibleError(f"level {name!r} is {_state(labels, d, hit[0])} at {hit[0]}, which is not allowed")


RULES: tuple[Callable[[Labels], None], ...] = (
    _last_step_ends,
    _root_goes_on,
    _ends_nest,
    _unit_bottom_ends,
    _segments_keep_their_state,
    _children_fit,
    _successors_fit,
    _durations_fit,
    _allowed_sets_fit,
)


def _state(labels: Labels, d: int, t: int) -> str:
    return repr(labels.topology.states[d][labels.states[d, t]])


def _range(low: int, high: int) -> str:
    return f"at least {low}" if high == np.iinfo(np.int64).max else f"{low} to {high}"


def _known_segments(labels: Labels, d: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Start, stop and state of the segments of level d whose borders, inside and state are known."""
    ends = labels.ends[d]
    stop = np.flatnonzero(ends == 1) + 1
    if not stop.size:
        return stop, stop, stop
    start = np.append(0, stop[:-1])
    state = np.maximum.reduceat(labels.states[d, : stop[-1]], start)
    doubts = np.append(0, np.cumsum(ends < 0))
    known = (doubts[start] == doubts[stop]) & (state >= 0)
    return start[known], stop[known], state[known]


def first_true(mask: NDArray[np.bool_] | np.bool_) -> tuple[int, ...] | None:
    """Index of the first true cell, None if there is none."""
    if not mask.any():
        return None
    return tuple(map(int, np.unravel_index(int(mask.argmax()), mask.shape)))
