"""Find where the events of a part of the potentials occur in packed labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.fillers import copies_of, expanded
from hscrf.labels.packed import PackedLabels
from hscrf.potentials import FAMILY, Key, explicit_lengths
from hscrf.topology import UNLIMITED, Topology


class Events(NamedTuple):
    """Known events of one part, and steps where an event may occur but is not completely known."""

    steps: Ints  # (n,) known events
    cells: Ints  # (n,) flat index into the part's array of one step
    open: Ints  # (m,) steps

    @classmethod
    def of(cls, happens: NDArray[np.bool_], may: NDArray[np.bool_], cells: Ints, known: NDArray[np.bool_]) -> Events:
        """The events of a part, from where they happen and where they may happen."""
        steps = np.flatnonzero(happens & known)
        return cls(steps, cells[steps], np.flatnonzero(may & ~(happens & known)))


def find_events(topology: Topology, known: PackedLabels, key: Key) -> Events:
    """The events of any part, with cells in its table of weights: families by parents and their hidden children."""
    if key[0] not in FAMILY:
        return own_events(known, key)
    if not topology.remembers:
        return family_events(topology, known, key)
    states = known.states.copy()
    states[key[1] + 1] = known.hidden(topology).states[key[1] + 1]
    return family_events(expanded(topology), replace(known, states=states), key)


def own_events(known: PackedLabels, key: Key) -> Events:
    """The events of a level's own part: all steps, or the first or last steps of segments.

    At a known state a boundary counts unless the labels exclude it.
    """
    part, d = key
    states, ends = known.states[d].astype(np.int64), known.ends[d]
    may = np.ones(states.size, dtype=bool)
    if part == "stop":
        may = ends != 0
    elif part == "start":
        may = after(ends != 0, known.offsets)
    return Events.of(may, may, states, states >= 0)


def after(ends: NDArray[np.bool_], offsets: Ints) -> NDArray[np.bool_]:
    """Return where segments start: after each end, and at the first step of each sequence."""
    starts = np.concatenate([ends[:1], ends[:-1]])
    starts[offsets[:-1]] = True
    return starts


def family_cells(topology: Topology, key: Key) -> tuple[Ints, tuple[int, ...]]:
    """Flat indices of the cells of the table of weights that the topology allows, and the shape they index.

    The table is of parents and their hidden children: copies of a parent share their weights.
    """
    part, d = key
    engine, copies = expanded(topology), copies_of(topology)
    legal, below = engine.children[d], engine.n_states[d + 1]
    trans = part == "trans"
    if trans:  # both are children of the parent, and the second may follow the first
        legal = legal[:, :, None] & legal[:, None, :] & engine.successors[d + 1]
    cells = np.flatnonzero(legal)
    width = below * below if trans else below
    if copies is not None:
        parent, child = np.divmod(cells, width)
        kept = copies.begin[d][copies.origin[d][parent]] == parent
        if part == "init" and d + 1 in copies.later:
            kept &= ~copies.later[d + 1][child]
        cells = (copies.origin[d][parent] * width + child)[kept]
    return cells, (topology.n_states[d], *(below, below)[: 1 + trans])


def family_events(topology: Topology, known: PackedLabels, key: Key) -> Events:
    """The events of a parent and its children."""
    part, d = key
    above, below = known.states[d].astype(np.int64), known.states[d + 1].astype(np.int64)
    over, done = known.ends[d], known.ends[d + 1]
    width = topology.n_states[d + 1]
    if part == "trans":
        following = np.concatenate([below[1:], below[:1]])
        cells = (above * width + below) * width + following
        all_known = (above >= 0) & (below >= 0) & (following >= 0)
        inside = np.ones(above.size, dtype=bool)
        inside[known.offsets[1:] - 1] = False
        return Events.of(inside & (over == 0) & (done == 1), inside & (over != 1) & (done != 0), cells, all_known)
    happens, may = over == 1, over != 0
    if part == "init":
        happens, may = after(happens, known.offsets), after(may, known.offsets)
    return Events.of(happens, may, above * width + below, (above >= 0) & (below >= 0))


def event_cells(
    topology: Topology, shapes: Mapping[Key, tuple[int, ...]], known: PackedLabels, key: Key
) -> tuple[Ints, Ints]:
    """Flat indices into an array of the known events of one part, and the packed steps they happen at.

    In each sequence a level is known completely or not at all. ``shapes`` are those of
    all arrays. A segment of an open state counts as one of the longest explicit duration, and as an event of ``tail``
    for each step beyond it.
    """
    part, d = key
    shape = shapes[key]
    if part in FAMILY:
        steps, cells, _ = family_events(topology, known, key)
        return (steps * int(np.prod(shape[1:])) + cells if shape[0] > 1 else cells), steps
    states, own = topology.n_states[d], known.states[d].astype(np.int64)
    if part == "token":
        steps = np.flatnonzero(own >= 0)
        return steps * states + own[steps], steps
    start, stop = segment_bounds(known, d)
    state, length = own[stop], stop - start
    if part in ("duration", "segment", "tail") and d in topology.open_levels:
        longest = np.where(topology.open_duration[d], explicit_lengths(topology, d, shapes), UNLIMITED)[state]
        beyond = np.maximum(length + 1 - longest, 0)
        length = length - beyond
        if part == "tail":
            return np.repeat(state, beyond), np.repeat(start, beyond)
    if part == "duration":
        return length * states + state, start
    if part == "segment":
        return (start * shape[1] + length) * states + state, start
    at = start if part == "start" else stop
    return at * states + state, at


def segment_bounds(known: PackedLabels, d: int) -> tuple[Ints, Ints]:
    """The first and the last step of each segment of a level, in the sequences where it is known."""
    stop = np.flatnonzero(known.ends[d] == 1)
    start = np.concatenate([[0], stop[:-1] + 1])
    here = known.states[d][stop] >= 0
    return start[here], stop[here]
