"""Everything about a packed batch of sequences but the numbers: layers, tries, addresses, admissible segments.

A *level* is explicit when its segments need a table (the root; every level with durations, a segment part or
limits); other levels are Markov and are folded into the layer above them. A *layer* reaches from one explicit level
down to the next, or to the bottom. The numbers, a dict from (part, level index) to arrays whose time axis is packed,
come with every pass (``passes.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, ranges
from hscrf.engine.bundling import Bundling, sequences, windows
from hscrf.engine.evidence import Evidence
from hscrf.engine.kernels.layout import Layer, Sizes
from hscrf.engine.kernels.tables import find_columns, find_reach
from hscrf.engine.root import columns_of_roots, reach_of_roots, roots_of
from hscrf.engine.space import LINE
from hscrf.engine.tries import Trie, build_families, build_trie, find_kin, places_of, sizes_of
from hscrf.potentials import FAMILY, OWN, Arrays, Key
from hscrf.topology import Topology

BORDER = LINE // 8  # spans begin with a line of the cache, of so many numbers
UNASKED = np.empty(0, dtype=np.int64)
PARTS = ("token", "start", "stop", "init", "trans", "end")  # as rows of ``Layer.node`` go, from TOKEN on


@dataclass(frozen=True)
class Span:
    """Where one part of one level lies in the flat array of a layer."""

    key: Key
    begin: int
    rows: int  # 1 (constant or absent), N, or N + 1 for tokens
    width: int
    given: bool  # is there an array to read from
    columns: NDArray[np.int64] | None  # which columns of the array are kept, -1 for padding; None: all
    forbidden: NDArray[np.bool_] | None  # (rows or 1, width) -inf here

    @property
    def end(self) -> int:
        return self.begin + self.rows * self.width

    @cached_property
    def kept(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where what is kept lies here, and in the array."""
        assert self.columns is not None
        here = np.flatnonzero(self.columns >= 0)
        return here, self.columns[here]

    def view(self, flat: Floats) -> Floats:
        return flat[self.begin : self.end].reshape(self.rows, self.width)

    @property
    def stride(self) -> int:
        """From one time to the next; 0: all times share one row. Starts and stops are of their time, even of one."""
        own = self.given and self.key[0] in ("start", "stop")
        return self.width if self.rows > 1 or own else 0


class SegmentTable(NamedTuple):
    """Admissible segments of an explicit level as columns, by their last step j and then by their length.

    A table has a line for each state. Column base[j] + l holds the segment that ends at j and starts l steps earlier,
    l = skip[j] .. skip[j] + width[j] - 1: a sum over the starts of one end reads memory in order. Some of them may be
    inadmissible.
    """

    base: NDArray[np.int64]  # (N,) may be negative where some are skipped
    skip: NDArray[np.int64]  # (N,)
    width: NDArray[np.int64]  # (N,) 0 where no segment may end
    reach: NDArray[np.int64]  # (N, S) longest admissible segment of each state from t, 0 if none may start
    most: NDArray[np.int64]  # (N,) of these; empty for the root, of which nobody asks it
    least: NDArray[np.int64]  # like it
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """States and columns."""
        return self.reach.shape[1], self.columns

    def columns_of(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The columns of all segments that end at these steps, in order."""
        return ranges((self.base + self.skip)[steps], self.width[steps])


class LayerPlan(NamedTuple):
    """One layer: its levels, its structure for the kernels, and where its potentials lie in one flat array."""

    top: int
    bottom: int
    layer: Layer
    sizes: Sizes  # of its work space
    tokens: tuple[Span, ...]
    tables: tuple[Span, ...]  # of all else, after the tokens
    size: int  # of the flat array
    gaps: NDArray[np.int64]  # numbers of it between the tables, and after them
    bundling: Bundling | None  # which of its runs walk side by side; None: all go alone
    kin: tuple[NDArray[np.int64], list[NDArray[np.int64]]]  # see ``tries.find_kin``


class Plan:
    """Everything about a packed batch but the numbers.

    ``shapes`` maps (part, level) to the shape of the array that will be given; a constant table has time axis 1.
    ``explicit`` names levels that are to have a table of segments although they would not need one.
    """

    def __init__(
        self,
        topology: Topology,
        offsets: NDArray[np.int64],
        shapes: Mapping[Key, tuple[int, ...]],
        evidence: Evidence | None = None,
        explicit: Sequence[int] = (),
    ) -> None:
        self.topology = topology
        self.offsets = offsets
        self.steps = int(offsets[-1])
        self.shapes = dict(shapes)
        self.evidence = evidence or Evidence.none(topology, offsets)
        self.asked = tuple(explicit)
        self.explicit = [d for d in range(topology.depth) if self._is_explicit(d)]
        self.tables = {d: self._segment_table(d) for d in self.explicit}
        tops = [d for d in self.explicit if d < topology.depth - 1]
        self.layers = [self._layer(a, b) for a, b in zip(tops, [*tops[1:], topology.depth - 1], strict=True)]
        self.root_columns = self._root_columns()
        self.roots = roots_of(self.tables[0].width, self.tables[0].skip, self.tables[0].reach, topology.min_duration[0])

    def is_unit(self, d: int) -> bool:
        """Is this a bottom of one step."""
        return d == self.topology.depth - 1 and self.topology.unit_bottom

    def _is_explicit(self, d: int) -> bool:
        if d == 0:
            return True
        if self.is_unit(d):
            return False
        timed = ("duration", d) in self.shapes or ("segment", d) in self.shapes
        return timed or self.topology.has_limits(d) or d in self.asked

    def _segment_table(self, d: int) -> SegmentTable:
        longest = self.topology.max_duration[d].copy()
        for part, axis in (("duration", 0), ("segment", 1)):
            if (part, d) in self.shapes:
                longest = np.minimum(longest, self.shapes[part, d][axis])
        sets = self.evidence.allowed[d]
        if d == 0:
            reach = reach_of_roots(self.offsets, sets, self.evidence.may_go_on[d], longest)
            base, skip, width, columns = columns_of_roots(self.offsets, reach, self.evidence.may_end[d])
            return SegmentTable(base, skip, width, reach, UNASKED, UNASKED, columns)
        allowed = np.ones((1, longest.size), dtype=bool) if sets is None else sets
        may_start = np.empty(self.steps, dtype=bool)
        may_start[1:] = self.evidence.may_end[d, :-1]
        may_start[self.offsets[:-1]] = True
        reach = np.empty((self.steps, longest.size), dtype=np.int64)
        base, skip, width, most, least = np.empty((5, self.steps), dtype=np.int64)
        find_reach(self.offsets, allowed, may_start, self.evidence.may_go_on[d], longest, reach, most, least)
        columns = int(find_columns(self.offsets, most, self.evidence.may_end[d], base, skip, width))
        return SegmentTable(base, skip, width, reach, most, least, columns)

    def _layer(self, top: int, bottom: int) -> LayerPlan:
        trie = build_trie(self.topology, top, bottom)
        segmental = bottom in self.tables
        tokens, tables, size = self._spans(top, bottom, segmental)
        spans = (*tokens, *tables)
        depth, unit = bottom - top, self.is_unit(bottom)
        borders = any(span.given for span in spans if span.key[0] in ("start", "stop"))
        may_cross = np.ones((depth + 2, self.steps), dtype=bool)
        for k in range(1, depth + 1):
            np.logical_and(may_cross[k], self.evidence.may_go_on[top + k], out=may_cross[k + 1])
        may_cross[1:-1] &= self.evidence.may_follow[top + 1 : bottom + 1]
        child = self.tables.get(bottom)
        table = self.tables[top].base[:, None]
        if child is not None:
            table = np.column_stack([self.tables[top].base, child.base, child.most, child.skip])
        layer = Layer(
            trie.level_at,
            np.vstack([trie.parent, trie.first, trie.count, trie.state, self._addresses(trie, spans)]),
            np.ascontiguousarray(self.evidence.may_end[top : bottom + 1]),
            may_cross,
            self.tables[top].reach,
            table,
            int(borders),
            int(segmental and depth > 1),
            int(unit),
        )
        bundling = None
        if top > 0 and (child is None or depth == 1):
            bundling = windows(layer, self.offsets, child is not None)
        elif top == 0 and child is None:
            bundling = sequences(layer, self.offsets)
        ends = np.array([span.end for span in tables])
        gaps, kin = ranges(ends, -ends % BORDER), find_kin(self.topology, top, bottom)
        sizes = sizes_of(trie, borders, unit)
        return LayerPlan(top, bottom, layer, sizes, tokens, tables, size, gaps, bundling, kin)

    def _spans(self, top: int, bottom: int, segmental: bool) -> tuple[tuple[Span, ...], tuple[Span, ...], int]:
        """Lay out the parts of the Markov levels and of the families of a layer, one after the other, tokens first."""
        spans: list[Span] = []
        begin = 0
        markov = range(top + 1, bottom + (0 if segmental else 1))

        def put(key: Key, rows: int, width: int, given: bool, columns: Any = None, forbidden: Any = None) -> None:
            nonlocal begin
            spans.append(Span(key, begin, rows, width, given, columns, forbidden))
            begin += rows * width + -rows * width % BORDER

        for d in markov:
            sets, parts = self.evidence.allowed[d], OWN if self.is_unit(d) else OWN[:1]  # all a unit has is like tokens
            given = any((part, d) in self.shapes for part in parts)
            put(("token", d), self.steps + 1, self.topology.n_states[d], given, None, None if sets is None else ~sets)
        tokens = len(spans)
        for d in markov:
            for part in ("start", "stop"):
                if (part, d) in self.shapes and not self.is_unit(d):
                    put((part, d), self.steps, self.topology.n_states[d], True)
        for d in range(top, bottom):
            families = build_families(self.topology, d)
            for part in ("init", "trans", "end"):
                given = (part, d) in self.shapes
                rows = self.shapes[part, d][0] if given else 1
                columns, legal = families.pairs, families.legal_pairs
                if part == "trans":
                    columns, legal = families.triples, families.legal_triples
                put((part, d), rows, columns.size, given, columns, None if legal.all() else ~legal[None])
        return tuple(spans[:tokens]), tuple(spans[tokens:]), begin

    def _addresses(self, trie: Trie, spans: Sequence[Span]) -> NDArray[np.int64]:
        """Address and stride (12, nodes) of each part for each node; nodes without the part have zeros."""
        table = np.zeros((2 * len(PARTS), trie.state.size), dtype=np.int64)
        for span in spans:
            part, d = span.key
            row, (nodes, within) = 2 * PARTS.index(part), places_of(self.topology, trie, part, d)
            table[row, nodes] = span.begin + within
            table[row + 1, nodes] = span.stride
        return table

    def select(self, sequences: NDArray[np.int64], values: Arrays) -> tuple[Plan, dict[Key, Floats]]:
        """The plan and the numbers of some of the sequences."""
        steps = self.steps_of(sequences)
        lengths = np.diff(self.offsets)[sequences]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        part = {key: array[steps] if self.is_timed(key) else array for key, array in values.items()}
        shapes = {key: array.shape for key, array in part.items()}
        return Plan(self.topology, offsets, shapes, self.evidence.take(steps), self.asked), part

    def by_start(self, d: int, posterior: Floats) -> Floats:
        """The posteriors (S, columns) of an explicit level as an array (N, L, S) by start and length."""
        table = self.tables[d]
        dense = np.zeros((self.steps, int((table.skip + table.width).max()), len(posterior)))
        last = np.repeat(np.arange(self.steps), table.width)
        length = np.arange(table.columns) - table.base[last]
        dense[last - length, length] = posterior.T
        return dense

    def steps_of(self, sequences: NDArray[np.int64]) -> NDArray[np.int64]:
        """The packed steps of some sequences."""
        return ranges(self.offsets[sequences], np.diff(self.offsets)[sequences])

    def is_timed(self, key: Key) -> bool:
        """Has the array a packed time axis."""
        return key[0] != "duration" and (key[0] not in FAMILY or self.shapes[key][0] == self.steps)

    def _root_columns(self) -> NDArray[np.int64]:
        """The column of the root's segment over each whole sequence, -1 if none is admissible."""
        table = self.tables[0]
        last, lengths = self.offsets[1:] - 1, np.diff(self.offsets)
        return np.where(table.skip[last] + table.width[last] == lengths, table.base[last] + lengths - 1, -1)
