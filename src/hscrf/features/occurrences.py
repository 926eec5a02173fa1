"""Collect the events of training data that specifications need in order to fit themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints, distinct, ranges
from hscrf.features.segments import SegmentFunction, segment_vector
from hscrf.labels.columns import ends_of_runs
from hscrf.labels.events import Events, find_events
from hscrf.labels.packed import PackedLabels, known_segments
from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.kernels import kernels
from hscrf.observations.packed import Observations, Sparse, entries_of, of_columns, of_names
from hscrf.potentials import FAMILY, Key
from hscrf.topology import Topology

if TYPE_CHECKING:
    from hscrf.features.specifications import Specification


WORD = 20.0  # the squared size of the features of one word, in the default template
PIECE = 1 << 14  # segments whose features are added up at a time
LARGEST_TABLE = 1 << 25  # cells of a table of all pairs; more pairs are listed


class OccurrenceRecord(Protocol):
    """The training data that one specification needs, collected part by part."""

    def update(self, observations: Observations, known: PackedLabels) -> None: ...


class Occurrences:
    """The frame that specifications are fitted to: topology, encoder, and what occurs in training data.

    ``pairs`` concerns pairs of a named feature and a state, ``transitions`` the constant init, trans and end weights.
    "seen" gives a weight only to what occurs, "all" to everything that the topology allows. Each specification has a
    record of the data that it needs. ``update`` adds one part of the data to all records. Parts give exactly the result
    of one pass. The encoder must be settled.
    """

    def __init__(
        self,
        topology: Topology,
        encoder: ObservationEncoder,
        specifications: Sequence[Specification],
        pairs: str = "seen",
        transitions: str = "all",
    ) -> None:
        for name, value in (("pairs", pairs), ("transitions", transitions)):
            if value not in ("seen", "all"):
                raise ValueError(f"{name} is {value!r}, expected 'seen' or 'all'")
        self.topology = topology
        self.encoder = encoder
        self.pairs = pairs
        self.transitions = transitions
        found = {spec: spec.record(self) for spec in specifications}
        self.records: dict[Specification, Any] = {spec: record for spec, record in found.items() if record is not None}

    def update(self, observations: Observations, known: PackedLabels) -> None:
        """Add one more part: packed observations, and their known labels."""
        for record in self.records.values():
            record.update(observations, known)


class FeatureCells:
    """The pairs of named features and cells of a part that occur at known events, and those possible elsewhere."""

    def __init__(
        self,
        topology: Topology,
        key: Key,
        cells: Ints,
        width: int,
        chosen: NDArray[np.bool_],
        largest_table: int = LARGEST_TABLE,
    ) -> None:
        self.topology = topology
        self.key = key
        self.cells = cells  # those that may have weights
        self.width = width  # number of all cells
        self.chosen = chosen  # (F,) the selected features
        self.largest_table = largest_table
        self.found: Ints = np.empty(0, dtype=np.int64)  # feature * width + cell, in ascending order
        self.possible: Ints = np.empty(0, dtype=np.int64)  # likewise, of features without an observed pair

    def update(self, observations: Observations, known: PackedLabels) -> None:
        x, events = of_names(observations), find_events(self.topology, known, self.key)
        self.found = union(self.found, self._observed_pairs(x, events))
        for cells, steps in self._open(known, events.open):
            features = distinct(x.indices[entries_of(x, steps)[0]]).astype(np.int64)
            features = features[self.chosen[features]]
            self.possible = union(self.possible, (features[:, None] * self.width + cells).ravel())
        self.possible = self._unobserved_pairs()

    def _open(self, known: PackedLabels, steps: Ints) -> Iterator[tuple[Ints, Ints]]:
        """The cells that are possible at steps where an event is not known, and the steps that share them."""
        part, d = self.key
        allowed = None if known.allowed is None or part in FAMILY else known.allowed[d]
        if allowed is None or not steps.size:
            yield self.cells, steps
            return
        sets, which = np.unique(np.packbits(allowed[steps], axis=1), axis=0, return_inverse=True)
        for k, row in enumerate(np.unpackbits(sets, axis=1, count=self.width)):
            yield np.flatnonzero(row), steps[which.ravel() == k]

    def _unobserved_pairs(self) -> Ints:
        """The possible pairs of features without any observed pair."""
        seen = np.zeros(self.chosen.size, dtype=bool)
        seen[self.found // self.width] = True
        return self.possible[~seen[self.possible // self.width]]

    def _observed_pairs(self, x: Sparse, events: Events) -> Ints:
        """Feature * width + cell of the known events, in ascending order; only of chosen features."""
        size = self.chosen.size * self.width
        if size <= max(self.largest_table, x.indices.size):  # a table of all possible pairs
            seen = np.zeros(size, dtype=bool)
            kernels.mark_cells(x.indptr, x.indices, events.steps, events.cells, self.width, seen)
            seen.reshape(-1, self.width)[~self.chosen] = False
            return np.flatnonzero(seen)
        entries, counts = entries_of(x, events.steps)
        found = distinct(x.indices[entries].astype(np.int64) * self.width + np.repeat(events.cells, counts))
        return found if self.chosen.all() else found[self.chosen[found // self.width]]

    def pairs(self) -> tuple[Ints, NDArray[np.int32]]:
        """The pairs by feature: where those of each begin (F + 1,), and their cells.

        A feature that occurs only at partly known events has the cells that are possible there.
        """
        found = union(self.found, self.possible)
        pair_at = np.searchsorted(found, np.arange(self.chosen.size + 1) * self.width)
        return pair_at.astype(np.int64), (found % self.width).astype(np.int32)


class ConstantCells:
    """The cells of a part that occur at known labels, and whether its levels are completely labelled."""

    def __init__(self, topology: Topology, key: Key) -> None:
        self.topology = topology
        self.key = key
        self.found: Ints = np.empty(0, dtype=np.int64)  # in ascending order
        self.complete = True

    def update(self, observations: Observations, known: PackedLabels) -> None:
        part, d = self.key
        self.complete &= known.complete(*((d, d + 1) if part in FAMILY else (d,)))
        self.found = union(self.found, np.unique(find_events(self.topology, known, self.key).cells))

    def among(self, cells: Ints) -> Ints:
        """The cells that occur at known labels; all cells if labels are missing and none occurs."""
        return np.intersect1d(cells, self.found) if self.complete or self.found.size else cells


class SegmentValues:
    """The number of values of a segment function, found by a call for the first step of the first sequence."""

    def __init__(self, function: SegmentFunction) -> None:
        self.function = function
        self.size: int | None = None

    def update(self, observations: Observations, known: PackedLabels) -> None:
        if self.size is None:
            self.size = segment_vector(self.function, observations.raw[0], 0, 1).size


class SegmentSizes:
    """The mean squared size of the summed features of the known segments of some levels, added up part by part.

    The evidence for a segment is a sum over its steps. Words differ from step to step; the steps of a sensor are alike,
    so their features add up, and a weight of the same size has a far larger effect. This measures the effect for any
    observations: few or many features, small or large numbers, varied or alike. At a bottom of single steps a run of
    equal states counts as a segment. Named features that begin with ``without`` do not count.
    """

    def __init__(self, topology: Topology, levels: Sequence[int], names: Iterable[str], without: str) -> None:
        self.topology = topology
        self.found: dict[int, list[float]] = {d: [0.0, 0.0] for d in levels}  # sum of squares, segments
        left_out = np.array([name.startswith(without) for name in names if levels], dtype=bool)
        self.left_out = left_out if left_out.any() else None

    def update(self, observations: Observations, known: PackedLabels) -> None:
        for d, found in self.found.items():
            single = self.topology.unit_bottom and d == self.topology.depth - 1
            start, stop = known_segments(ends_of_runs(known.states[d]) if single else known.ends[d], known.offsets)
            for k in range(0, start.size, PIECE):
                found[0] += self._squares(observations, start[k : k + PIECE], stop[k : k + PIECE])
            found[1] += start.size

    def factors(self) -> dict[str, float]:
        """The mean of each level in units of a word, at least 1.

        It has three digits, so that the order in which parts were added does not change it.
        """
        means = {d: squares / segments if segments else 0.0 for d, (squares, segments) in self.found.items()}
        return {self.topology.levels[d]: max(1.0, float(f"{mean / WORD:.3g}")) for d, mean in means.items()}

    def _squares(self, x: Observations, start: Ints, stop: Ints) -> float:
        """The sum of the squared sizes of some segments."""
        lengths = stop - start
        steps = ranges(start, lengths)
        total = 0.0
        if x.dense is not None:
            sums = np.add.reduceat(of_columns(x)[steps], np.cumsum(lengths) - lengths, axis=0)
            total += float((sums**2).sum())
        if x.sparse is not None:
            total += self._named(of_names(x), steps, np.repeat(np.arange(start.size), lengths))
        return total

    def _named(self, x: Sparse, steps: Ints, segments: Ints) -> float:
        """The sum of the squared sizes of the named features of steps, which belong to segments."""
        entries, counts = entries_of(x, steps)
        cells = np.repeat(segments, counts) * x.size + x.indices[entries]
        values: Floats = x.data[entries] if x.data.size else np.ones(entries.size)
        if self.left_out is not None:
            kept = ~self.left_out[x.indices[entries]]
            cells, values = cells[kept], values[kept]
        if not cells.size:
            return 0.0
        order = np.argsort(cells, kind="stable")
        cells = cells[order]
        first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
        return float((np.add.reduceat(values[order], first) ** 2).sum())


def union(one: Ints, other: Ints) -> Ints:
    """The union of two ascending arrays without repetitions, in ascending order."""
    if not one.size or not other.size:
        return one if one.size else other
    return distinct(np.concatenate([one, other]))
