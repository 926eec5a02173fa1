"""Posterior probabilities of given segments, exactly.

The probability that a segment exists is a ratio of two partition functions,

    P(level d has a segment of state s from i to j | evidence) = Z(evidence and this segment) / Z(evidence).

The segment is evidence of five kinds. The level ends before i, does not end from i to j - 1, ends at j, and has the
state s in between. Levels above go on where it goes on, and levels below end where it ends.

A forward pass for each segment costs O(T) for levels without durations, so K segments of a labelling cost O(T K). A
table of all segments costs O(T^2) there, which is more, for K <= T. Levels with durations have that table anyway: one
pass gives all their segments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints, ranges, sealed
from hscrf.engine import Batch, Evidence
from hscrf.labels.labels import Labels
from hscrf.potentials import Key, is_timed
from hscrf.topology import Topology

TOGETHER = 1 << 16  # steps that are evaluated in one batch, unless one sequence has more


@dataclass(frozen=True)
class SegmentQueries:
    """Some segments of one level of a packed batch; ``states`` may allow several states, whose masses are added."""

    level: int
    sequence: Ints  # (K,) the sequence in the batch
    start: Ints  # (K,) first step in that sequence
    stop: Ints  # (K,) half-open
    states: NDArray[np.bool_]  # (K, S) possible states of the segment

    def __len__(self) -> int:
        return self.start.size

    def take(self, part: slice) -> SegmentQueries:
        """Some of them."""
        return SegmentQueries(self.level, self.sequence[part], self.start[part], self.stop[part], self.states[part])


def segment_probabilities(
    batch: Batch, values: Mapping[Key, Floats], queries: SegmentQueries, together: int = TOGETHER
) -> Floats:
    """The posterior probability (K,) of each segment, given the batch's evidence.

    Where segments are evidence in copies of their sequences, about ``together`` steps of copies are evaluated in one
    batch.
    """
    if not len(queries):
        return np.empty(0)
    topology, d = batch.topology, queries.level
    if d == 0 or (topology.unit_bottom and d == topology.depth - 1):
        return _of_steps(batch, values, queries)
    if d in topology.open_levels:
        return _of_ratios(batch, values, queries, together)
    if topology.has_limits(d) or ("duration", d) in values or ("segment", d) in values:
        return _of_tables(batch, values, queries)
    return _of_ratios(batch, values, queries, together)


def _of_steps(batch: Batch, values: Mapping[Key, Floats], queries: SegmentQueries) -> Floats:
    """Segments whose borders are certain: the root, and steps of a unit bottom."""
    state = batch.expectations(values).state[queries.level]
    length = np.ones(len(queries)) if queries.level else np.diff(batch.offsets)[queries.sequence]
    found = (state[batch.offsets[queries.sequence] + queries.start] * queries.states).sum(axis=1)
    return np.where(queries.stop - queries.start == length, np.clip(found, 0.0, 1.0), 0.0)


def _of_tables(batch: Batch, values: Mapping[Key, Floats], queries: SegmentQueries) -> Floats:
    """Segments of a level whose pass has a table of all of them."""
    table = batch.expectations(values, explicit=(queries.level,)).segments[queries.level]  # (N, L, S)
    first, length = batch.offsets[queries.sequence] + queries.start, queries.stop - queries.start
    known = length <= table.shape[1]
    rows = table[first[known], length[known] - 1]
    result = np.zeros(len(queries))
    result[known] = np.clip((rows * queries.states[known]).sum(axis=1), 0.0, 1.0)
    return result


def _of_ratios(batch: Batch, values: Mapping[Key, Floats], queries: SegmentQueries, together: int) -> Floats:
    """Segments of a level without durations: each is evidence in a copy of its sequence."""
    base = batch.evidence or Evidence.none(batch.topology, batch.offsets)
    log_z = batch.log_partition(values)
    lengths = np.diff(batch.offsets)[queries.sequence]
    result = np.empty(len(queries))
    for part in _parts(lengths, together):
        own = queries.take(part)
        offsets = np.append(0, np.cumsum(lengths[part]))
        steps = ranges(batch.offsets[own.sequence], lengths[part])
        evidence = with_segments(base.take(steps), batch.topology, offsets, own)
        copies = {key: table[steps] if is_timed(key, table) else table for key, table in values.items()}
        bound = Batch(batch.topology, offsets, evidence).log_partition(copies)
        free = log_z[own.sequence]
        result[part] = np.exp(np.minimum(np.subtract(bound, free, where=free > -np.inf, out=np.zeros(len(own))), 0.0))
    return result


def with_segments(evidence: Evidence, topology: Topology, offsets: Ints, queries: SegmentQueries) -> Evidence:
    """The evidence with one segment more in each sequence; ``queries.sequence`` is ignored."""
    d, size = queries.level, topology.n_states[queries.level]
    may_end, may_go_on = evidence.may_end.copy(), evidence.may_go_on.copy()
    allowed = list(evidence.allowed)
    sets = np.ones((int(offsets[-1]), size), dtype=bool) if allowed[d] is None else np.array(allowed[d])
    first, last = offsets[:-1] + queries.start, offsets[:-1] + queries.stop - 1
    sets[ranges(first, last + 1 - first)] &= np.repeat(queries.states, queries.stop - queries.start, axis=0)
    allowed[d] = sets
    may_end[: d + 1, ranges(first, last - first)] = False  # this level goes on, and so do those above it
    ends = np.concatenate([last, first[queries.start > 0] - 1])
    may_go_on[d:, ends] = False  # this level ends, and so do those below it
    return Evidence(may_end, may_go_on, evidence.may_follow, tuple(allowed))


def _parts(lengths: Ints, together: int) -> Sequence[slice]:
    """Copies that are evaluated together, in order."""
    number = (np.cumsum(lengths) - 1) // together
    bounds = [0]
    for _, group in groupby(number.tolist()):
        bounds.append(bounds[-1] + len(list(group)))
    return [slice(a, b) for a, b in pairwise(bounds)]


def attached(labels: Labels, posterior: Mapping[str, Floats]) -> Labels:
    """The same labels with posteriors; nothing is checked again."""
    found = Labels.unchecked(labels.topology, labels.states, labels.ends, labels.score)
    found.__dict__["posterior"] = {level: sealed(rows) for level, rows in posterior.items()}
    return found
