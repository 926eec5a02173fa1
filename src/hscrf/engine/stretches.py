"""Sequences whose upper levels are known, cut into stretches that do not depend on each other.

If all states and ends of the levels 0 .. k of a sequence are known, the segments of level k are independent given these
labels. Then log Z is the score of the known labels, plus the log Z of the levels below each segment. So each segment is
a short sequence of a smaller topology, whose root is the state of the segment and whose states are the descendants of
that state. Segments of one state form one batch. The cost is that of these segments and states, and the sequences are
computed side by side, as without evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints, ranges
from hscrf.engine.evidence import Evidence
from hscrf.engine.expectations import Expectations
from hscrf.labels.closure import only_state
from hscrf.labels.events import event_cells, segment_bounds
from hscrf.labels.packed import PackedLabels
from hscrf.potentials import FAMILY, Arrays, Key, is_timed
from hscrf.topology import Topology


class CountingEngine(Protocol):
    """An engine that also returns how many sequences needed logarithms."""

    def sums(self, values: Arrays) -> tuple[Floats, int]: ...

    def counts(self, values: Arrays, weights: Floats | None) -> tuple[Expectations, int]: ...


Make = Callable[[Topology, Ints, Evidence | None], CountingEngine]


@dataclass(frozen=True)
class StretchGroup:
    """Stretches below one state of a level; or, with ``top`` 0, whole sequences with too few known labels."""

    top: int  # the level of the stretches, the root of their topology
    columns: tuple[Ints, ...]  # per level of the whole topology: the states that are left; none above the top
    begin: int  # its steps in the concatenation of all groups
    end: int
    owners: Ints  # the sequence of each stretch
    engine: CountingEngine
    places: dict[tuple[Key, tuple[int, ...]], Any] = field(default_factory=dict)

    def has(self, key: Key) -> bool:
        """Whether an array is needed here: scores of the top level's own segments belong to the known labels."""
        part, d = key
        return d > self.top or (d == self.top and (part in FAMILY or d == 0))

    def take(self, key: Key, table: Floats, timed: bool) -> Floats:
        """Its entries of an array whose steps, if any, are in the order of the groups."""
        place = self._place(key, table.shape, timed)
        return np.ascontiguousarray(table[place]) if timed else table.take(place)

    def put(self, key: Key, found: Floats, timed: bool, total: Floats) -> None:
        """Reverse of ``take``: set its numbers where there are steps, else add them."""
        place = self._place(key, total.shape, timed)
        if timed:
            total[place] = found
        else:
            total.reshape(-1)[place] += found

    def _place(self, key: Key, shape: tuple[int, ...], timed: bool) -> Any:
        """The places of its entries: an index of steps and states, or flat indices. Computed once for each shape."""
        if (key, shape) not in self.places:
            part, d = key
            below = (self.columns[d + 1],) * (len(shape) - 2) if part in FAMILY else ()
            states = (*map(np.arange, shape[1 : -1 - len(below)]), self.columns[d], *below)
            if not timed:
                mesh = np.ix_(np.arange(shape[0]), *states)
                place: Any = np.ravel_multi_index(np.broadcast_arrays(*mesh), shape)
            elif len(shape) == 2:
                place = slice(self.begin, self.end), slice(None) if states[0].size == shape[1] else states[0]
            else:
                place = np.ix_(np.arange(self.begin, self.end), *states)
            self.places[key, shape] = place
        return self.places[key, shape]

    def values(self, tables: Mapping[Key, tuple[Floats, bool]]) -> dict[Key, Floats]:
        """Its own arrays."""
        return {
            (key[0], key[1] - self.top): self.take(key, table, timed)
            for key, (table, timed) in tables.items()
            if self.has(key)
        }


class Stretches:
    """The sequences of a batch in parts; ``useful`` if any sequence could be cut. Open durations are not cut."""

    def __init__(self, topology: Topology, offsets: Ints, evidence: Evidence, make: Make) -> None:
        self.topology, self.offsets = topology, offsets
        self.known, levels = known_upper_labels(topology, offsets, evidence)
        self.useful = bool((levels > 0).any()) and not topology.open_levels
        if not self.useful:
            return
        self.sequence = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))  # of each step
        self.groups: list[StretchGroup] = []
        order: list[Ints] = []
        for top, state, start, length, owners in self._stretches(levels):
            steps, (own, columns) = ranges(start, length), below(topology, top, state)
            begin = self.groups[-1].end if self.groups else 0
            bounds = np.concatenate([[0], np.cumsum(length)])
            engine = make(own, bounds, rest_of(evidence, own, bounds, steps, top, columns))
            self.groups.append(StretchGroup(top, columns, begin, begin + steps.size, owners, engine))
            order.append(steps)
        self.order = np.concatenate(order)
        self.back = np.argsort(self.order)
        self.cells: dict[Key, tuple[tuple[int, ...], Ints, Ints]] = {}

    def _stretches(self, levels: Ints) -> Iterator[tuple[int, int | None, Ints, Ints, Ints]]:
        """Top, state, starts, lengths and owners of the stretches of each group."""
        rest = np.flatnonzero(levels < 1)
        if rest.size:
            yield 0, None, self.offsets[rest], np.diff(self.offsets)[rest], rest
        for top in np.unique(levels[levels > 0]).tolist():
            start, stop = segment_bounds(self.known, top)
            here = levels[self.sequence[start]] == top
            start, stop = start[here], stop[here]
            states = self.known.states[top][stop]
            for state in np.unique(states).tolist():
                some = states == state
                yield top, state, start[some], (stop - start + 1)[some], self.sequence[start[some]]

    # -- results ----------------------------------------------------------------------------------------------------

    def sums(self, values: Arrays) -> tuple[Floats, int] | None:
        """Log Z of each sequence; None if some sequence has no configuration."""
        log_z, tables, logs = self._score(values), self._ordered(values), 0
        for group in self.groups if np.isfinite(log_z).all() else ():
            found, in_logarithms = group.engine.sums(group.values(tables))
            log_z += np.bincount(group.owners, found, log_z.size)
            logs += in_logarithms
        return (log_z, min(logs, log_z.size)) if np.isfinite(log_z).all() else None

    def counts(self, values: Arrays, weights: Floats | None) -> tuple[Expectations, int] | None:
        """Log Z, counts and posteriors; None if some sequence has no configuration."""
        log_z, tables, logs = self._score(values), self._ordered(values), 0
        found: list[tuple[StretchGroup, Expectations]] = []
        for group in self.groups if np.isfinite(log_z).all() else ():
            some = None if weights is None else np.ascontiguousarray(weights[group.owners])
            expected, in_logarithms = group.engine.counts(group.values(tables), some)
            log_z += np.bincount(group.owners, expected.log_z, log_z.size)
            logs += in_logarithms
            found.append((group, expected))
        if not np.isfinite(log_z).all():
            return None
        each = np.ones(log_z.size) if weights is None else weights
        state = [self._states(d, found, each) for d in range(self.topology.depth)]
        ending = [self._endings(d, found, each) for d in range(self.topology.depth)]
        counts = {
            key: state[key[1]] if key[0] == "token" else self._counts(key, table, found, each)
            for key, table in values.items()
        }
        return Expectations(log_z, counts, state, ending, {}), min(logs, log_z.size)

    def _ordered(self, values: Arrays) -> dict[Key, tuple[Floats, bool]]:
        """The arrays that groups need, their steps in the order of the groups; and whether they have steps."""
        return {
            key: (table.take(self.order, axis=0), True) if is_timed(key, table) else (table, False)
            for key, table in values.items()
            if any(group.has(key) for group in self.groups)
        }

    def _known(self, key: Key, shape: tuple[int, ...]) -> tuple[Ints, Ints]:
        """The cells of the known events in an array of some shape, and the sequence of each cell."""
        if key not in self.cells or self.cells[key][0] != shape:
            cells, steps = event_cells(self.topology, {key: shape}, self.known, key)
            self.cells[key] = shape, cells, self.sequence[steps]
        return self.cells[key][1:]

    def _score(self, values: Arrays) -> Floats:
        """The score (n,) of the known labels."""
        log_z = np.zeros(self.offsets.size - 1)
        for key, table in values.items():
            part, d = key
            if part in ("duration", "segment"):
                start, stop = segment_bounds(self.known, d)
                too_long = stop - start >= table.shape[part == "segment"]
                if too_long.any():
                    return np.full(log_z.size, -np.inf)
            cells, owners = self._known(key, table.shape)
            if cells.size:
                log_z += np.bincount(owners, table.reshape(-1)[cells], log_z.size)
        return log_z

    def _counts(self, key: Key, table: Floats, found: list[tuple[StretchGroup, Expectations]], each: Floats) -> Floats:
        """The counts of an array: of all groups, and of the known labels."""
        timed, total = is_timed(key, table), np.zeros(table.shape)
        for group, expected in found:
            if group.has(key):
                group.put(key, expected.counts[key[0], key[1] - group.top], timed, total)
        if timed:
            total = total.take(self.back, axis=0)
        cells, owners = self._known(key, table.shape)
        if timed:
            total.reshape(-1)[cells] += each[owners]
        elif cells.size:
            total += np.bincount(cells, each[owners], total.size).reshape(total.shape)
        return total

    def _states(self, d: int, found: list[tuple[StretchGroup, Expectations]], each: Floats) -> Floats:
        """The posteriors (N, S) of the states of a level."""
        key, total = ("token", d), np.zeros((self.order.size, self.topology.n_states[d]))
        for group, expected in found:
            if group.has(key):
                group.put(key, expected.state[d - group.top], True, total)
        total = total.take(self.back, axis=0)
        cells, owners = self._known(key, total.shape)
        total.reshape(-1)[cells] = each[owners]
        return total

    def _endings(self, d: int, found: list[tuple[StretchGroup, Expectations]], each: Floats) -> Floats:
        """The posteriors (N,) of the ends of a level."""
        total = np.zeros(self.order.size)
        for group, expected in found:
            if group.has(("token", d)):
                total[group.begin : group.end] = expected.ending[d - group.top]
        total = total.take(self.back)
        _, stop = segment_bounds(self.known, d)
        total[stop] = each[self.sequence[stop]]
        return total


# -- known labels -----------------------------------------------------------------------------------------------------


def known_upper_labels(topology: Topology, offsets: Ints, evidence: Evidence) -> tuple[PackedLabels, Ints]:
    """The labels of the upper levels that are known in whole sequences, and the lowest such level of each.

    Where that is the root, or no level (-1), all labels count as unknown. The bottom is never one of them. Labels that
    break a rule of the topology do not count as known.
    """
    lengths = np.diff(offsets)
    ends = (evidence.may_end & ~evidence.may_go_on).astype(np.int8)
    states = np.full(ends.shape, -1, dtype=np.int32)
    levels = np.full(lengths.size, -1)
    for d in range(topology.depth - 1):
        allowed, size = evidence.allowed[d], topology.n_states[d]
        own = np.full(ends.shape[1], 0 if size == 1 else -1) if allowed is None else only_state(allowed)
        fits = (own >= 0) & (evidence.may_end[d] != evidence.may_go_on[d])
        fits &= is_legal(topology, d, own, states, ends, evidence.may_follow, offsets)
        whole = (levels == d - 1) & np.logical_and.reduceat(fits, offsets[:-1])
        if not whole.any():
            break
        states[d] = np.where(np.repeat(whole, lengths), own, -1)
        levels[whole] = d
    states[:, np.repeat(levels < 1, lengths)] = -1
    return PackedLabels(states, ends, offsets), levels


def is_legal(
    topology: Topology,
    d: int,
    own: Ints,
    states: NDArray[np.int32],
    ends: NDArray[np.int8],
    may_follow: NDArray[np.bool_],
    offsets: Ints,
) -> NDArray[np.bool_]:
    """Whether the states (N,) of a level agree, at each step, with the rules, their ends and the level above."""
    ended, following = ends[d] == 1, np.append(own[1:], own[-1])
    last = np.zeros(own.size, dtype=bool)
    last[offsets[1:] - 1] = True
    fits = np.where(ended, True, (own == following) & ~last)
    stop = np.flatnonzero(ended | last)
    length = np.diff(stop, prepend=-1)
    fits[stop] &= (topology.min_duration[d][own[stop]] <= length) & (length <= topology.max_duration[d][own[stop]])
    fits &= has_descendants(topology, d)[own]
    if d == 0:
        return fits & (ended == last)
    above_ends, above = ends[d - 1] == 1, states[d - 1]
    follows = may_follow[d] & topology.successors[d][own, following]
    fits &= topology.children[d - 1][above, own] & np.where(above_ends, ended, ~ended | follows)
    return fits


def has_descendants(topology: Topology, d: int) -> NDArray[np.bool_]:
    """Whether there is a stack of states, down to the bottom, below each state (S,) of a level."""
    found: NDArray[np.bool_] = np.ones(topology.n_states[-1], dtype=bool)
    for table in reversed(topology.children[d:]):
        found = np.logical_or.reduce(table & found, axis=1)
    return found


# -- the model below one state -----------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def below(topology: Topology, top: int, state: int | None) -> tuple[Topology, tuple[Ints, ...]]:
    """The topology of all states that may be below a state of the level ``top``, and its states of each level.

    Without a state it is the whole topology. No states are left of the levels above the top.
    """
    if state is None:
        return topology, tuple(np.arange(n) for n in topology.n_states)
    kept = [np.array([state])]
    for table in topology.children[top:]:
        kept.append(np.flatnonzero(table[kept[-1]].any(axis=0)))

    def rows(tables: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
        return tuple(table[own] for table, own in zip(tables[top:], kept, strict=True))

    found = topology.with_fields(
        levels=topology.levels[top:],
        states=tuple(tuple(names[s] for s in own) for names, own in zip(topology.states[top:], kept, strict=True)),
        children=tuple(table[np.ix_(*kept[k : k + 2])] for k, table in enumerate(topology.children[top:])),
        successors=tuple(table[np.ix_(own, own)] for table, own in zip(topology.successors[top:], kept, strict=True)),
        min_duration=rows(topology.min_duration),
        max_duration=rows(topology.max_duration),
        open_duration=rows(topology.open_duration),
        fillers=rows(topology.fillers),
    )
    return found, (*(np.zeros(0, dtype=np.int64),) * top, *kept)


def rest_of(
    evidence: Evidence, topology: Topology, offsets: Ints, steps: Ints, top: int, columns: tuple[Ints, ...]
) -> Evidence | None:
    """The known labels below the top level of some stretches; None if there are none."""
    some = evidence.take(steps)
    allowed: list[NDArray[np.bool_] | None] = []
    for sets, own in zip(some.allowed[top:], columns[top:], strict=True):
        kept = None if sets is None else np.ascontiguousarray(sets[:, own])
        allowed.append(None if kept is None or kept.all() else kept)
    flags = [np.ascontiguousarray(rows[top:]) for rows in (some.may_end, some.may_go_on, some.may_follow)]
    nothing = Evidence.none(topology, offsets)
    given = (nothing.may_end, nothing.may_go_on, nothing.may_follow)
    free = all(map(np.array_equal, flags, given)) and all(sets is None for sets in allowed)
    return None if free else Evidence(flags[0], flags[1], flags[2], tuple(allowed))
