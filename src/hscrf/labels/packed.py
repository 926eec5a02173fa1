"""Packed labels of several sequences, the lengths of their known segments, and the neighbours of their fillers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints, ranges, sealed
from hscrf.errors import InfeasibleError
from hscrf.fillers import hidden, usual_fillers
from hscrf.labels.cells import WITH_PARENT
from hscrf.labels.closure import closure
from hscrf.labels.labels import Labels
from hscrf.labels.rules import check_packed
from hscrf.topology import Topology

WORTH = 0.05  # nats per run from which memory pays; author names have 0.2 or more, chunks 0.02 or less
BORDER = -1  # the neighbour of a filler that is the first or the last child
UNKNOWN = -2  # an unknown neighbour

Neighbours = tuple[Any, Any, Any, Any]  # filler, parent, state before and state after; None for a border


@dataclass(frozen=True)
class PackedLabels:
    """Packed labels: states and ends (D, N), -1 where unknown."""

    states: NDArray[np.int32]
    ends: NDArray[np.int8]
    offsets: Ints
    allowed: tuple[NDArray[np.bool_], ...] | None = None  # possible states (N, S) of each level; None: not computed

    def complete(self, *levels: int) -> bool:
        """Return whether all states and ends of these levels are known."""
        return all((self.states[d] >= 0).all() and (self.ends[d] >= 0).all() for d in levels)

    def complete_sequences(self) -> NDArray[np.bool_]:
        """Whether each sequence (n,) is completely known."""
        known = (self.states >= 0).all(axis=0) & (self.ends >= 0).all(axis=0)
        return np.logical_and.reduceat(known, self.offsets[:-1])

    def hidden(self, topology: Topology) -> PackedLabels:
        """The same labels with the engine's hidden states; -1 where the copy is unknown."""
        return replace(self, states=hidden(topology, self.states, self.ends, self.offsets))

    def take(self, which: Ints) -> PackedLabels:
        """Some of the sequences."""
        lengths = np.diff(self.offsets)[which]
        steps = ranges(self.offsets[which], lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return PackedLabels(self.states[:, steps], self.ends[:, steps], offsets)


def pack_possible(labels: Sequence[Labels]) -> PackedLabels:
    """The same as :func:`pack_labels`, and the states that nesting leaves possible where labels are missing.

    If labels contradict each other, all states are possible.
    """
    known = pack_labels(labels)
    partial = np.flatnonzero(~known.complete_sequences())
    if not partial.size:
        return known
    allowed = [np.ones((known.states.shape[1], size), dtype=bool) for size in labels[0].topology.n_states]
    try:
        _, sets = _close_together([labels[n] for n in partial.tolist()])
    except InfeasibleError:
        return replace(known, allowed=tuple(allowed))
    steps = ranges(known.offsets[partial], np.diff(known.offsets)[partial])
    for table, found in zip(allowed, sets, strict=True):
        table[steps] = found
    return replace(known, allowed=tuple(allowed))


Sets: TypeAlias = dict[str, NDArray[np.bool_]]  # possible states (N, S) by level


def pack_sets(labels: Sequence[Labels]) -> Sets:
    """The allowed sets of the labels, packed: one sequence after the other."""
    levels = dict.fromkeys(level for y in labels for level in y.allowed or ())
    sizes = dict(zip(labels[0].topology.levels, labels[0].topology.n_states, strict=True))
    return {
        level: np.concatenate([(y.allowed or {}).get(level, np.ones((y.length, sizes[level]), bool)) for y in labels])
        for level in levels
    }


def close_packed(topology: Topology, known: PackedLabels, sets: Sets) -> tuple[PackedLabels, list[NDArray[np.bool_]]]:
    """Close the labels of all sequences at once: packed labels, and the possible states (N, S) of each level.

    The result is that of :meth:`Labels.closed` for each sequence: every level ends at the last step of a sequence, so
    no conclusion crosses that step. The step in an InfeasibleError is counted from the start of the first sequence.
    """
    last = known.offsets[1:] - 1
    inside = np.ones(known.states.shape[1], dtype=bool)
    inside[last] = False
    if (known.ends[:, last] == 0).any() or (known.ends[0] == 1)[inside].any():
        raise InfeasibleError("a sequence goes on after its last step, or ends before it")
    packed = Labels.unchecked(topology, known.states, known.ends, allowed=sets)
    check_packed(packed)
    states, ends, closed = closure(packed, last)
    check_packed(Labels.unchecked(topology, states, ends, allowed=dict(zip(topology.levels, closed, strict=True))))
    return PackedLabels(states, ends, known.offsets), closed


def pack_labels(labels: Sequence[Labels]) -> PackedLabels:
    """States and ends of several sequences one after the other."""
    offsets = np.concatenate([[0], np.cumsum([y.length for y in labels])]).astype(np.int64)
    states = np.concatenate([y.states for y in labels], axis=1)
    ends = np.concatenate([y.ends for y in labels], axis=1)
    return PackedLabels(states, ends, offsets)


def closed_labels(labels: Sequence[Labels], numbers: Iterable[int], name: str = "Y") -> list[Labels]:
    """Close the labels of sequences; errors name the sequence by its number."""
    if len(labels) > 1:
        with suppress(InfeasibleError):  # then one by one, to find the sequence
            return _split_by_sequence(labels, *_close_together(labels))
    closed = []
    for y, n in zip(labels, numbers, strict=True):
        try:
            closed.append(y.closed())
        except InfeasibleError as error:
            raise error.of_sequence(int(n), name) from None
    return closed


def _close_together(labels: Sequence[Labels]) -> tuple[PackedLabels, list[NDArray[np.bool_]]]:
    return close_packed(labels[0].topology, pack_labels(labels), pack_sets(labels))


def _split_by_sequence(
    labels: Sequence[Labels], known: PackedLabels, sets: Sequence[NDArray[np.bool_]]
) -> list[Labels]:
    """The closed labels of each sequence, from those of all."""
    states, ends, sets = sealed(known.states), sealed(known.ends), [sealed(table) for table in sets]
    found = []
    for y, a, b in zip(labels, known.offsets[:-1].tolist(), known.offsets[1:].tolist(), strict=True):
        own = {level: table[a:b] for level, table in zip(y.topology.levels, sets, strict=True)}
        found.append(Labels.unchecked(y.topology, states[:, a:b], ends[:, a:b], y.score, own))
    return found


# -- lengths of segments


class SegmentLengths:
    """Steps and number of the known segments of each level, counted part by part.

    Only segments whose first and last steps are known count. The counts are whole numbers, so parts that are counted
    apart and merged give exactly what one pass gives.

    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]})
    >>> columns = {"phrase": ["NP", "NP", "VP"], "tag": ["D", "N", "V"]}
    >>> lengths = SegmentLengths()
    >>> lengths.update([Labels.from_columns(topology, columns)])
    >>> lengths.means()
    {'root': 3.0, 'phrase': 1.5, 'tag': 1.0}
    """

    def __init__(self, counts: Mapping[str, Sequence[int]] | None = None) -> None:
        self.counts: dict[str, list[int]] = {level: list(pair) for level, pair in (counts or {}).items()}

    def update(self, labels: Sequence[Labels]) -> None:
        """Count the segments of one more part of the data."""
        if not labels:
            return
        known = pack_labels(labels)
        for level, ends in zip(labels[0].topology.levels, known.ends, strict=True):
            found = known_lengths(ends, known.offsets)
            self._add(level, int(found.sum()), found.size)

    def merge(self, other: SegmentLengths) -> None:
        """Add the counts of another part of the data."""
        for level, (steps, segments) in other.counts.items():
            self._add(level, steps, segments)

    def means(self) -> dict[str, float]:
        """The mean length of the known segments of each level; 1 where none is known."""
        return {level: steps / segments if segments else 1.0 for level, (steps, segments) in self.counts.items()}

    def _add(self, level: str, steps: int, segments: int) -> None:
        held = self.counts.setdefault(level, [0, 0])
        held[0] += steps
        held[1] += segments


def known_segments(ends: NDArray[Any], offsets: Ints) -> tuple[Ints, Ints]:
    """Starts and stops of the segments of one level whose borders and inside are known, in packed sequences.

    An end that depends on the parent counts as no end: a run of one filler is one segment.
    """
    ends = np.where(ends == WITH_PARENT, np.int8(0), ends)
    ends[offsets[1:] - 1] = 1  # all segments end at the last step of a sequence
    stop = np.flatnonzero(ends == 1) + 1
    start = np.append(0, stop[:-1])
    doubts = np.append(0, np.cumsum(ends < 0))
    known = doubts[start] == doubts[stop]
    return start[known], stop[known]


def known_lengths(ends: NDArray[Any], offsets: Ints) -> Ints:
    """Lengths of the segments that :func:`known_segments` finds."""
    start, stop = known_segments(ends, offsets)
    return stop - start


# -- neighbours of fillers


class FillerNeighbours:
    """Counts of what comes before and after fillers named "O", part by part of the data.

    A filler that remembers the state before it costs hidden states. It pays where that state says much about the one
    after the filler: in author names, a surname comes after ``forename O``. In chunks of sentences it says little. The
    measure is the mutual information of the state before a filler and what comes after it, given the parent, in nats
    for each run of equal states of the level (fillers and others).

    Only fillers with known neighbours count; a missing label or border leaves them out. The counts are whole numbers,
    so parts that are counted apart and merged give exactly what one pass gives.

    >>> columns = [{"part": ["a", "O", "a"]}, {"part": ["b", "O", "b"]}]
    >>> topology = Topology({"part": ["a", "b", "O"]})
    >>> found = FillerNeighbours()
    >>> found.update([Labels.from_columns(topology, row) for row in columns * 10])
    >>> round(found.information("part"), 2), found.worth_it(topology)
    (0.22, {'part': ['O']})
    """

    def __init__(self) -> None:
        self.counts: dict[str, Counter[Neighbours]] = {}
        self.runs: Counter[str] = Counter()  # known runs of equal states of levels with fillers

    def update(self, labels: Sequence[Labels]) -> None:
        """Count the fillers of one more part of the data."""
        found = usual_fillers(labels[0].topology) if labels else {}
        if not found:
            return
        topology, known = labels[0].topology, pack_labels(labels)
        parents_end = np.zeros(known.offsets[-1], dtype=np.int8)
        parents_end[known.offsets[1:] - 1] = 1
        for d, level in enumerate(topology.levels[1:], start=1):
            if level in found:
                self._count(topology, d, known.states[d - 1 : d + 1], parents_end, found[level][0])
            ends = np.where(known.ends[d] == WITH_PARENT, parents_end, known.ends[d])
            parents_end = np.where(parents_end == 1, parents_end, ends)

    def merge(self, other: FillerNeighbours) -> None:
        """Add the counts of another part of the data."""
        for level, counts in other.counts.items():
            self.counts.setdefault(level, Counter()).update(counts)
        self.runs.update(other.runs)

    def information(self, level: str) -> float:
        """Nats, for each run of the level, that the state before a filler tells about what comes after it.

        Even independent neighbours show some information by chance: on average half the degrees of freedom, divided by
        the runs. This is subtracted.
        """
        tables: dict[tuple[Any, Any], Counter[tuple[Any, Any]]] = {}
        for (filler, parent, *pair), n in self.counts.get(level, Counter()).items():
            tables.setdefault((filler, parent), Counter())[tuple(pair)] += n
        return sum(map(_surplus, tables.values())) / max(self.runs[level], 1)

    def worth_it(self, topology: Topology) -> dict[str, list[Any]]:
        """The fillers of a topology for which memory pays, by level."""
        return {level: names for level, names in usual_fillers(topology).items() if self.information(level) >= WORTH}

    def remembering(self, topology: Topology, fillers: Any) -> Topology:
        """The topology with the fillers of an option: None, names by level, or "auto" for those that are worth it."""
        if fillers != "auto":
            return topology.remembering(fillers or {})
        return topology if topology.remembers else topology.remembering(self.worth_it(topology))

    def _count(
        self, topology: Topology, d: int, states: NDArray[np.int32], parents_end: NDArray[np.int8], filler: Any
    ) -> None:
        """Count the runs of one level; ``states`` (2, N) are those of the parents and its own."""
        (parents, own), level = states, topology.levels[d]
        start = np.flatnonzero(np.append(True, (own[1:] != own[:-1]) | (parents_end[:-1] != 0)))
        of_run = own[start]
        between = parents_end[start[1:] - 1]  # whether the parent ends before each run but the first
        left = np.append(BORDER, neighbours(of_run[:-1], between))
        right = np.append(neighbours(of_run[1:], between), BORDER)
        self.runs[level] += int((of_run >= 0).sum())
        here = (of_run == topology.states[d].index(filler)) & (left != UNKNOWN) & (right != UNKNOWN)
        keys = np.stack([parents[start], left, right])[:, here]
        above, names = (*topology.states[d - 1], None), (*topology.states[d], None)  # the last one: of -1
        found, counts = np.unique(keys, axis=1, return_counts=True)
        counted = self.counts.setdefault(level, Counter())
        for (parent, one, other), n in zip(found.T.tolist(), counts.tolist(), strict=True):
            counted[filler, above[parent], names[one], names[other]] += n


def neighbours(states: Ints, parents_end: NDArray[np.int8]) -> Ints:
    """The states of neighbouring runs, by whether the parent ends between the two: 1, 0, or less if unknown."""
    return np.where(parents_end == 1, BORDER, np.where((parents_end == 0) & (states >= 0), states, UNKNOWN))


def _surplus(pairs: Counter[tuple[Any, Any]]) -> float:
    """The mutual information of pairs in nats, times their number, minus the mean of independent pairs."""
    before, after = Counter[Any](), Counter[Any]()
    for (one, other), n in pairs.items():
        before[one] += n
        after[other] += n
    total = sum(before.values())
    found = sum(n * np.log(n * total / (before[one] * after[other])) for (one, other), n in pairs.items())
    return float(found) - (len(before) - 1) * (len(after) - 1) / 2
