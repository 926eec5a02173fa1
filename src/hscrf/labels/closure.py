"""What follows from known labels because segments nest."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import Cell, InfeasibleError
from hscrf.labels.cells import WITH_PARENT, set_cell, state_cell
from hscrf.labels.rules import first_true

if TYPE_CHECKING:
    from hscrf.labels.columns import Last
    from hscrf.labels.labels import Labels


def end_below(ends: NDArray[np.int8]) -> None:
    """Where a level ends, set the ends of all levels below it."""
    for above, below in pairwise(ends):
        below[above == 1] = 1


def closure(labels: Labels, last: Last = -1) -> tuple[NDArray[np.int32], NDArray[np.int8], list[NDArray[np.bool_]]]:
    """States and ends (D, T) and allowed sets (T, S_d) that follow from labels; ``last`` are last steps of sequences.

    The labels are checked before and after by the caller.
    """
    ends = closed_ends(labels, last)
    sets = closed_sets(labels, ends)
    end_at_changes(ends, sets)
    end_below(ends)
    return np.array([only_state(allowed) for allowed in sets], dtype=np.int32), ends, sets


def closed_ends(labels: Labels, last: Last = -1) -> NDArray[np.int8]:
    """Return the ending indicators (D, T) implied by the known ones, without those that :func:`end_below` sets."""
    ends: NDArray[np.int8] = labels.ends.copy()
    ends[0] = 0
    ends[:, last] = 1
    for below, above in pairwise(ends[::-1]):
        above[below == 0] = 0
    for above, below in pairwise(ends):
        below[(below == WITH_PARENT) & (above == 0)] = 0
    if labels.topology.unit_bottom:
        _end(ends, ends[-1] != 0, len(ends) - 1)
    return ends


def end_at_changes(ends: NDArray[np.int8], sets: list[NDArray[np.bool_]]) -> None:
    """End each level where no state (T, S_d) is allowed on both sides."""
    for d, allowed in enumerate(sets):
        _end(ends, np.append(~(allowed[:-1] & allowed[1:]).any(axis=1), False), d)


def _end(ends: NDArray[np.int8], where: NDArray[np.bool_], d: int) -> None:
    """End level d at some steps (T,), and the levels above as far as each ends only with its parent."""
    while where.any():
        with_parent = where & (ends[d] == WITH_PARENT)
        ends[d][where] = 1
        where, d = with_parent, d - 1


def closed_sets(labels: Labels, ends: NDArray[np.int8]) -> list[NDArray[np.bool_]]:
    """Allowed sets (T, S_d) of every level: one sweep up, one sweep down."""
    sets = [_states_of_labels(labels, d) for d in range(labels.topology.depth)]
    children = labels.topology.children
    for d in reversed(range(labels.topology.depth)):
        if d < len(children):
            sets[d] &= _reachable(sets[d + 1], children[d].T)  # a parent needs an allowed child
        sets[d] = _shared_along_segments(sets[d], ends[d])
        empty = first_true(~sets[d].any(axis=1))
        if empty:
            raise _no_state_left(labels, ends, d, empty[0])
    for d, table in enumerate(children):
        sets[d + 1] &= _reachable(sets[d], table)  # a child needs an allowed parent
    return sets


def _states_of_labels(labels: Labels, d: int) -> NDArray[np.bool_]:
    """The states (T, S_d) that the labels themselves allow."""
    shape = (labels.length, labels.topology.n_states[d])
    name = labels.topology.levels[d]
    asked: NDArray[np.bool_] = (labels.allowed or {}).get(name, np.ones(shape, dtype=bool)).copy()
    known = labels.states[d] >= 0
    asked[known] = np.eye(shape[1], dtype=bool)[labels.states[d, known]]
    return asked


def only_state(allowed: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The state (T,) where exactly one is allowed (T, S), else -1."""
    return np.where(allowed.sum(axis=1) == 1, allowed.argmax(axis=1), -1)


def _reachable(allowed: NDArray[np.bool_], table: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The states (T, S') that the table (S, S') relates to an allowed one (T, S)."""
    if table.all():
        return np.ones((1, table.shape[1]), dtype=bool)
    return allowed.astype(np.float32) @ table.astype(np.float32) > 0


def _shared_along_segments(allowed: NDArray[np.bool_], ends: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Intersect the sets (T, S) of steps that are known to belong to one segment."""
    heads = np.flatnonzero(np.append(True, ends[:-1] != 0))
    shared = np.logical_and.reduceat(allowed, heads, axis=0)
    return np.repeat(shared, np.diff(heads, append=len(ends)), axis=0)


def _no_state_left(labels: Labels, ends: NDArray[np.int8], d: int, t: int) -> InfeasibleError:
    """Return the error for a level d without a possible state at t; it names the labels of that segment."""
    stop = t + 1 + int((ends[d, t:] != 0).argmax())
    span = f"at {t}" if stop == t + 1 else f"from {t} to {stop}, where it goes on"
    cells, words = [], []
    for m in range(d, labels.topology.depth):
        sets = _states_of_labels(labels, m)[t:stop]
        _, times = np.unique(sets, axis=0, return_index=True)
        for i in np.sort(times):
            if not sets[i].all():
                cells.append(_cell_of_labels(labels, m, t + int(i), sets[i]))
                words.append(_cell_text(labels, m, t + int(i), sets[i]))
    level = labels.topology.levels[d]
    problem = f"no state of level {level!r} is possible {span}; the labels are {', '.join(words[:6])}"
    return InfeasibleError(problem, cells=cells)


def _cell_of_labels(labels: Labels, d: int, t: int, allowed: NDArray[np.bool_]) -> Cell:
    state = int(labels.states[d, t])
    return state_cell(labels.topology, d, t, state) if state >= 0 else set_cell(labels.topology, d, t, allowed)


def _cell_text(labels: Labels, d: int, t: int, allowed: NDArray[np.bool_]) -> str:
    names = [repr(labels.topology.states[d][s]) for s in np.flatnonzero(allowed)]
    return f"{labels.topology.levels[d]} {' or '.join(names)} at {t}"
