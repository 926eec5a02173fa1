"""Check labels against the rules of the hierarchy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hscrf.arrays import sealed
from hscrf.errors import Cell, InfeasibleError, several
from hscrf.labels.cells import end_cell, set_cell, state_cell

if TYPE_CHECKING:
    from hscrf.labels.labels import Labels
    from hscrf.topology import Topology


def _last_step_ends(labels: Labels) -> None:
    hit = first_true(labels.ends[:, -1] == 0)
    if hit:
        cell = _end(labels, hit[0], labels.length - 1)
        raise InfeasibleError(f"{cell}, but the sequence ends there", cells=[cell])


def _root_goes_on(labels: Labels) -> None:
    hit = first_true(labels.ends[0, :-1] == 1)
    if hit:
        cell = _end(labels, 0, hit[0])
        raise InfeasibleError(f"{cell}, but the sequence ends at {labels.length - 1}", cells=[cell])


def _ends_nest(labels: Labels) -> None:
    above = np.logical_or.accumulate(labels.ends == 1, axis=0)
    hit = first_true(above[:-1] & (labels.ends[1:] == 0))
    if hit:
        d, t = hit
        upper, lower = _end(labels, int((labels.ends[:, t] == 1).argmax()), t), _end(labels, d + 1, t)
        raise InfeasibleError(f"{upper}, but {lower.level!r} goes on there", cells=[upper, lower])


def _unit_bottom_ends(labels: Labels) -> None:
    hit = first_true(labels.ends[-1] == 0)
    if labels.topology.unit_bottom and hit:
        cell = _end(labels, labels.topology.depth - 1, hit[0])
        raise InfeasibleError(f"{cell}, but its segments have length 1", cells=[cell])


def _segments_keep_their_state(labels: Labels) -> None:
    before, after = labels.states[:, :-1], labels.states[:, 1:]
    hit = first_true((labels.ends[:, :-1] == 0) & (before >= 0) & (after >= 0) & (before != after))
    if hit:
        d, t = hit
        cell = _end(labels, d, t)
        raise InfeasibleError(
            f"{cell}, but changes from {_name(labels, d, t)} to {_name(labels, d, t + 1)} at {t + 1}",
            cells=[cell, _state(labels, d, t), _state(labels, d, t + 1)],
        )


def _children_fit(labels: Labels) -> None:
    levels = labels.topology.levels
    for d, table in enumerate(labels.topology.children):
        parent, child = labels.states[d], labels.states[d + 1]
        hit = first_true((parent >= 0) & (child >= 0) & ~table[parent, child])
        if hit:
            t = hit[0]
            raise InfeasibleError(
                f"{levels[d + 1]} {_name(labels, d + 1, t)} at {t} is not a child of {levels[d]} {_name(labels, d, t)}",
                cells=[_state(labels, d + 1, t), _state(labels, d, t)],
            )


def _successors_fit(labels: Labels) -> None:
    for d, table in enumerate(labels.topology.successors[1:], start=1):
        before, after = labels.states[d, :-1], labels.states[d, 1:]
        same_parent = (labels.ends[d, :-1] == 1) & (labels.ends[d - 1, :-1] == 0)
        hit = first_true(same_parent & (before >= 0) & (after >= 0) & ~table[before, after])
        if hit:
            t = hit[0]
            raise InfeasibleError(
                f"level {labels.topology.levels[d]!r}: {_name(labels, d, t + 1)} at {t + 1} may not follow "
                f"{_name(labels, d, t)}",
                cells=[
                    _state(labels, d, t + 1),
                    _state(labels, d, t),
                    _end(labels, d, t),
                    _end(labels, d - 1, t),
                ],
            )


def _durations_fit(labels: Labels) -> None:
    for d in filter(labels.topology.has_limits, range(1, labels.topology.depth)):
        start, stop, state = complete_segments(labels.states[d], labels.ends[d])
        low, high = labels.topology.min_duration[d][state], labels.topology.longest_legal(d)[state]
        hit = first_true((stop - start < low) | (stop - start > high))
        if hit:
            k = hit[0]
            raise InfeasibleError(
                f"{labels.topology.levels[d]} {labels.topology.states[d][state[k]]!r} from {start[k]} to "
                f"{stop[k]} lasts {several(stop[k] - start[k], 'step')}; expected {_range(low[k], high[k])}",
                cells=_segment_cells(labels, d, int(start[k]), int(stop[k])),
            )


def _allowed_sets_fit(labels: Labels) -> None:
    for name, allowed in (labels.allowed or {}).items():
        d = labels.topology.level(name)
        empty = first_true(~allowed.any(axis=1))
        if empty:
            cells = [set_cell(labels.topology, d, empty[0], allowed[empty[0]])]
            raise InfeasibleError(f"level {name!r} is allowed no state at {empty[0]}", cells=cells)
        state = labels.states[d]
        hit = first_true((state >= 0) & ~allowed[np.arange(labels.length), state])
        if hit:
            cell, others = _state(labels, d, hit[0]), set_cell(labels.topology, d, hit[0], allowed[hit[0]])
            raise InfeasibleError(f"{cell}, which is not allowed", cells=[cell, others])


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
RULES_OF_MANY = tuple(rule for rule in RULES if rule is not _root_goes_on)
"""Rules that can be checked on packed sequences. All levels of a sequence end at its last step."""


def check_packed(labels: Labels) -> None:
    """Raise an error if the labels of several sequences, one after the other, break a rule."""
    for rule in RULES_OF_MANY:
        rule(labels)


def _name(labels: Labels, d: int, t: int) -> str:
    return repr(labels.topology.states[d][labels.states[d, t]])


def _state(labels: Labels, d: int, t: int) -> Cell:
    return state_cell(labels.topology, d, t, int(labels.states[d, t]))


def _end(labels: Labels, d: int, t: int) -> Cell:
    return end_cell(labels.topology, d, t, int(labels.ends[d, t]))


def _segment_cells(labels: Labels, d: int, start: int, stop: int) -> list[Cell]:
    """The cells that determine a segment of level d: its state, the end before it, where it goes on, its end."""
    known = start + int((labels.states[d, start:stop] >= 0).argmax())
    return [_state(labels, d, known), *(_end(labels, d, t) for t in range(max(start - 1, 0), stop))]


def _range(low: int, high: int) -> str:
    if high == np.iinfo(np.int64).max:
        return f"at least {low}"
    return f"at most {high}" if low == 1 else f"{low} to {high}"


def complete_segments(
    states: NDArray[np.int32], ends: NDArray[np.int8]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Start, stop and state of the segments of one level, from its rows (T,), whose state and ends are all known."""
    stop = np.flatnonzero(ends == 1) + 1
    if not stop.size:
        return stop, stop, stop
    start = np.append(0, stop[:-1])
    state = np.maximum.reduceat(states[: stop[-1]], start)
    doubts = np.append(0, np.cumsum(ends < 0))
    known = (doubts[start] == doubts[stop]) & (state >= 0)
    return start[known], stop[known], state[known]


def first_true(mask: NDArray[np.bool_] | np.bool_) -> tuple[int, ...] | None:
    """Index of the first true cell, None if there is none."""
    if not mask.any():
        return None
    return tuple(map(int, np.unravel_index(int(mask.argmax()), mask.shape)))


def checked_cells(
    topology: Topology,
    values: ArrayLike,
    what: str,
    least: int,
    sizes: Sequence[int],
    dtype: type[np.signedinteger[Any]],
) -> NDArray[np.signedinteger[Any]]:
    """A read-only copy (D, T) of integers from the least to sizes[d] - 1."""
    raw = np.asarray(values)
    if raw.ndim != 2 or len(raw) != topology.depth:
        raise ValueError(f"{what} has shape {raw.shape}; expected ({topology.depth}, T), a row for each level")
    if raw.shape[1] == 0:
        raise ValueError(f"{what} is an empty sequence; expected at least one time step")
    if raw.dtype.kind not in "iub":
        raise ValueError(f"{what} has dtype {raw.dtype}; expected integers")
    wrong = first_true((raw < least) | (raw >= np.array(sizes)[:, None]))
    if wrong:
        d, t = wrong
        raise ValueError(
            f"{what} of level {topology.levels[d]!r} is {raw[d, t]} at {t}; expected {least} to {sizes[d] - 1}"
        )
    return sealed(raw.astype(dtype))


def checked_sets(
    topology: Topology, allowed: Mapping[str, ArrayLike] | None, length: int
) -> dict[str, NDArray[np.bool_]] | None:
    """Read-only copies of the allowed sets, by level name."""
    if allowed is None:
        return None
    sets = {}
    for name, values in allowed.items():
        d, raw = topology.level(name), np.asarray(values)
        expected = (length, topology.n_states[d])
        if raw.shape != expected or raw.dtype != bool:
            raise ValueError(f"allowed[{name!r}] is {raw.dtype} {raw.shape}; expected bool {expected}")
        sets[topology.levels[d]] = sealed(raw.copy())
    return sets


def same_sets(one: Mapping[str, NDArray[np.bool_]], other: Mapping[str, NDArray[np.bool_]]) -> bool:
    """Return whether two mappings have equal sets of allowed states."""
    return one.keys() == other.keys() and all(np.array_equal(one[level], other[level]) for level in one)
