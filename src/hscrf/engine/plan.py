"""From potentials to runs: lays a packed batch of sequences out as layers and drives the kernels over them.

A *level* is explicit when its segments need a table (the root; every level with durations, a segment part or
limits); other levels are Markov and are folded into the layer above them. A *layer* reaches from one explicit level
down to the next, or to the bottom. ``Plan`` holds what does not depend on the numbers: tries, addresses, admissible
segments. Its methods take the numbers: a dict from (part, level index) to arrays whose time axis is packed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, ranges
from hscrf.engine.evidence import Evidence
from hscrf.engine.kernels.arithmetic import LINEAR, LOG, MAX, SMALLEST
from hscrf.engine.kernels.exponentials import exponentiate, shift_rows
from hscrf.engine.kernels.layout import BASE, CHILD_BASE, Counts, Layer, Segments, Values, make_scratch
from hscrf.engine.kernels.runs import sweep
from hscrf.engine.kernels.tables import add_persist, add_persist_back, find_reach, find_rows
from hscrf.engine.kernels.tracing import trace
from hscrf.engine.tries import Trie, build_families, build_trie, places_of
from hscrf.potentials import FAMILY, OWN, Arrays, Key
from hscrf.topology import Topology

Mode = bool | None
SPREAD = 300.0  # scaled numbers may be multiplied by exp(-SPREAD) between two checks and stay normal floats
ABSENT = np.empty((0, 0))


@dataclass(frozen=True)
class Block:
    """Where one part of one level lies in the flat array of a layer."""

    key: Key
    begin: int
    rows: int  # 1 (constant or absent), N, or N + 1 for tokens
    width: int
    given: bool  # is there an array to read from and to count for
    columns: NDArray[np.int64] | None  # which columns of the array are kept, -1 for padding; None: all
    forbidden: NDArray[np.bool_] | None  # (rows or 1, width) -inf here

    def view(self, flat: Floats) -> Floats:
        return flat[self.begin : self.begin + self.rows * self.width].reshape(self.rows, self.width)

    @property
    def stride(self) -> int:
        return self.width if self.rows > 1 else 0


class SegmentTable(NamedTuple):
    """Admissible segments of an explicit level as rows, by their last step j and then by their length.

    Row base[j] + l holds the segment that ends at j and starts l steps earlier, l = skip[j] .. skip[j] + width[j] - 1:
    a sum over the starts of one end reads memory in order. Some of them may be inadmissible.
    """

    base: NDArray[np.int64]  # (N,) may be negative where some are skipped
    skip: NDArray[np.int64]  # (N,)
    width: NDArray[np.int64]  # (N,) 0 where no segment may end
    reach: NDArray[np.int64]  # (N, S) longest admissible segment of each state from t, 0 if none may start
    most: NDArray[np.int64]  # (N,) of these
    least: NDArray[np.int64]  # (N,)
    rows: int

    def rows_of(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of all segments that end at these steps, in order."""
        return ranges((self.base + self.skip)[steps], self.width[steps])


class LayerPlan(NamedTuple):
    top: int
    bottom: int
    layer: Any  # _kernels.Layer
    blocks: tuple[Block, ...]
    size: int  # of the flat array


class Expectations(NamedTuple):
    """Log Z of each sequence and the posteriors of everything."""

    log_z: Floats  # (sequences,)
    counts: dict[Key, Floats]  # like the values given
    state: list[Floats]  # per level (N, S)
    ending: list[Floats]  # per level (N,)
    segments: dict[int, Floats]  # per explicit level (rows, S)


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
        self.forced = tuple(explicit)
        self.explicit = [d for d in range(topology.depth) if self._is_explicit(d)]
        self.tables = {d: self._segment_table(d) for d in self.explicit}
        tops = [d for d in self.explicit if d < topology.depth - 1]
        self.layers = [self._layer(a, b) for a, b in zip(tops, [*tops[1:], topology.depth - 1], strict=True)]

    def _is_explicit(self, d: int) -> bool:
        if d == 0:
            return True
        if d == self.topology.depth - 1 and self.topology.unit_bottom:
            return False
        timed = ("duration", d) in self.shapes or ("segment", d) in self.shapes
        return timed or self.topology.has_limits(d) or d in self.forced

    def _segment_table(self, d: int) -> SegmentTable:

        longest = self.topology.max_duration[d].copy()
        for part, axis in (("duration", 0), ("segment", 1)):
            if (part, d) in self.shapes:
                longest = np.minimum(longest, self.shapes[part, d][axis])
        sets = self.evidence.allowed[d]
        allowed = np.ones((1, longest.size), dtype=bool) if sets is None else sets
        may_start = np.empty(self.steps, dtype=bool)
        may_start[1:] = self.evidence.may_end[d, :-1]
        may_start[self.offsets[:-1]] = True
        reach = np.empty((self.steps, longest.size), dtype=np.int64)
        base, skip, width, most, least = np.empty((5, self.steps), dtype=np.int64)
        find_reach(self.offsets, allowed, may_start, self.evidence.may_go_on[d], longest, reach, most, least)
        rows = find_rows(self.offsets, most, self.evidence.may_end[d], base, skip, width)
        return SegmentTable(base, skip, width, reach, most, least, rows)

    def _layer(self, top: int, bottom: int) -> LayerPlan:

        trie = build_trie(self.topology, top, bottom)
        segmental = bottom in self.tables
        blocks, size = self._blocks(top, bottom, segmental)
        addresses = {block.key: block for block in blocks}
        depth = bottom - top
        may_cross = np.ones((depth + 2, self.steps), dtype=bool)
        for k in range(1, depth + 1):
            np.logical_and(may_cross[k], self.evidence.may_go_on[top + k], out=may_cross[k + 1])
        parts = ("token", "start", "stop", "init", "trans", "end")
        places = [self._addresses(trie, part, addresses) for part in parts]
        child = self.tables.get(bottom)
        table = np.zeros((self.steps, 4), dtype=np.int64)
        table[:, BASE] = self.tables[top].base
        if child is not None:
            table[:, CHILD_BASE:] = np.column_stack([child.base, child.most, child.skip])
        layer = Layer(
            trie.level_at,
            np.vstack([trie.parent, trie.first, trie.count, trie.state, *places]),
            np.ascontiguousarray(self.evidence.may_end[top : bottom + 1]),
            may_cross,
            self.tables[top].reach,
            table,
            any(block.given for block in blocks if block.key[0] == "start"),
            any(block.given for block in blocks if block.key[0] == "stop"),
            bottom == self.topology.depth - 1 and self.topology.unit_bottom,
        )
        return LayerPlan(top, bottom, layer, tuple(blocks), size)

    def _blocks(self, top: int, bottom: int, segmental: bool) -> tuple[list[Block], int]:
        """Lay out the parts of the Markov levels and of the families of a layer, one after the other."""
        blocks: list[Block] = []
        begin = 0

        def put(key: Key, rows: int, width: int, given: bool, columns: Any = None, forbidden: Any = None) -> None:
            nonlocal begin
            blocks.append(Block(key, begin, rows, width, given, columns, forbidden))
            begin += rows * width

        for d in range(top + 1, bottom + 1):
            states = self.topology.n_states[d]
            markov = not (segmental and d == bottom)
            sets = self.evidence.allowed[d]
            if markov:
                put(("token", d), self.steps + 1, states, True, forbidden=None if sets is None else ~sets)
            for part in ("start", "stop"):
                given = markov and (part, d) in self.shapes
                put((part, d), self.steps if given else 1, states, given)
        for d in range(top, bottom):
            families = build_families(self.topology, d)
            for part in ("init", "trans", "end"):
                given = (part, d) in self.shapes
                rows = self.shapes[part, d][0] if given else 1
                columns, legal = families.pairs, families.legal_pairs
                if part == "trans":
                    columns, legal = families.triples, families.legal_triples
                put((part, d), rows, columns.size, given, columns, None if legal.all() else ~legal[None])
        return blocks, begin

    def _addresses(self, trie: Trie, part: str, blocks: Mapping[Key, Block]) -> NDArray[np.int64]:
        """Address and stride of a part for each node; nodes without the part have zeros."""
        table = np.zeros((2, trie.state.size), dtype=np.int64)
        for (name, d), block in blocks.items():
            if name == part:
                nodes, within = places_of(self.topology, trie, part, d)
                table[0, nodes] = block.begin + within
                table[1, nodes] = block.stride
        return table

    # -- numbers ---------------------------------------------------------------------------------------------

    def log_partition(self, values: Arrays) -> Floats:
        """Log Z of each sequence."""
        tables, lossy = self._inside(LINEAR, values)
        if lossy.all():
            return self._log_z(LOG, self._inside(LOG, values)[0][0])
        log_z = self._log_z(LINEAR, tables[0])
        if lossy.any():
            bad = np.flatnonzero(lossy)
            plan, part = self.select(bad, values)
            log_z[bad] = plan._log_z(LOG, plan._inside(LOG, part)[0][0])
        return log_z

    def expectations(self, values: Arrays) -> Expectations:
        """Log Z and all posteriors; a sequence that the scaled arithmetic cannot hold is done in logarithms."""
        result, lossy = self._expectations(LINEAR, values)
        if not lossy.any():
            return result
        if lossy.all():
            return self._expectations(LOG, values)[0]
        merged = self._empty(range(self.topology.depth))
        for mode, which in ((LINEAR, np.flatnonzero(~lossy)), (LOG, np.flatnonzero(lossy))):
            plan, part = self.select(which, values)
            merged = self._merge(merged, which, plan, plan._expectations(mode, part)[0])
        return merged

    def trace(self, mode: Mode, values: Arrays, draws: int, rng: np.random.Generator) -> tuple[Any, Any, Floats]:
        """States and ends (draws, D, N) of the best configuration (MAX) or of posterior draws (LOG), and log Z."""

        single = self.topology.n_states[0] == 1  # a lone root state needs no choice, so no inside pass
        tables, lossy = self._inside(mode, values, down_to=1 if single else 0)
        states = np.zeros((draws, self.topology.depth, self.steps), dtype=np.int32)
        ends = np.zeros(states.shape, dtype=np.int8)
        ends[:, 0, self.offsets[1:] - 1] = 1
        rows = self._root_rows()
        log_z = np.where(rows < 0, -np.inf, 0.0)
        if not single:
            log_z = self._log_z(mode, tables[0])
            roots = tables[0][rows]
            for draw in range(draws):
                picked = roots.argmax(axis=1) if mode is MAX else draw_rows(roots, rng)
                states[draw, 0] = np.repeat(picked, np.diff(self.offsets))
        for plan in self.layers:
            if not (log_z > -np.inf).all():  # there is nothing to walk back through
                break
            segments = segments_of(states[:, plan.top], ends[:, plan.top])
            numbers = self._numbers(mode, plan, values, tables, lossy)
            steps = int((segments[:, 2] - segments[:, 1]).max()) + 1
            work = make_scratch(plan.layer, numbers[1], steps, False)
            room = steps + work.node.shape[1] + 2
            weight, where = np.empty(room), np.empty((room, 3), dtype=np.int64)
            out = (states, ends, work, np.empty(steps), np.empty(len(segments)))
            trace(mode, plan.layer, *numbers, plan.top, segments, rng, *out, weight, where)
            if single and plan.top == 0:
                mass = np.full((self.tables[0].rows, 1), -np.inf)
                mass[rows, 0] = out[-1][::draws]
                self._add_persist(0, values, mass)
                log_z = self._log_z(mode, mass)
        return states, ends, log_z

    def select(self, sequences: NDArray[np.int64], values: Arrays) -> tuple[Plan, dict[Key, Floats]]:
        """The plan and the numbers of some of the sequences."""
        steps = self.steps_of(sequences)
        lengths = np.diff(self.offsets)[sequences]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        part = {key: array[steps] if self._is_timed(key) else array for key, array in values.items()}
        shapes = {key: array.shape for key, array in part.items()}
        return Plan(self.topology, offsets, shapes, self.evidence.take(steps), self.forced), part

    def by_start(self, d: int, posterior: Floats) -> Floats:
        """The rows of an explicit level as an array (N, L, S) by start and length."""
        table = self.tables[d]
        dense = np.zeros((self.steps, int((table.skip + table.width).max()), posterior.shape[1]))
        last = np.repeat(np.arange(self.steps), table.width)
        length = np.arange(table.rows) - table.base[last]
        dense[last - length, length] = posterior
        return dense

    def steps_of(self, sequences: NDArray[np.int64]) -> NDArray[np.int64]:
        return ranges(self.offsets[sequences], np.diff(self.offsets)[sequences])

    def _is_timed(self, key: Key) -> bool:
        """Has the array a packed time axis."""
        return key[0] != "duration" and (key[0] not in FAMILY or self.shapes[key][0] == self.steps)

    def _root_rows(self) -> NDArray[np.int64]:
        """The row of the root's segment over each whole sequence, -1 if none is admissible."""
        table = self.tables[0]
        last, lengths = self.offsets[1:] - 1, np.diff(self.offsets)
        return np.where(table.skip[last] + table.width[last] == lengths, table.base[last] + lengths - 1, -1)

    def _log_z(self, mode: Mode, root: Floats) -> Floats:
        """Sum (or the best) over the root's states; -inf where the sequence has no admissible root."""
        rows = self._root_rows()
        values = np.full((rows.size, root.shape[1]), -np.inf)
        values[rows >= 0] = root[rows[rows >= 0]]
        best = values.max(axis=1)
        if mode is MAX or values.shape[1] == 1:
            return best
        safe = np.where(best > -np.inf, best, 0.0)
        with np.errstate(divide="ignore"):
            return safe + np.log(np.exp(values - safe[:, None]).sum(axis=1))

    def _inside(self, mode: Mode, values: Arrays, down_to: int = 0) -> tuple[dict[int, Floats], NDArray[np.bool_]]:
        """Log masses, own persist included, of all admissible segments of the explicit levels >= down_to."""
        tables: dict[int, Floats] = {}
        lossy = np.zeros(self.offsets.size - 1, dtype=bool)
        bottom = self.topology.depth - 1
        if bottom in self.tables:
            tables[bottom] = np.zeros((self.tables[bottom].rows, self.topology.n_states[bottom]))
            self._add_persist(bottom, values, tables[bottom])
        for plan in reversed(self.layers):
            if plan.top < down_to:
                break
            numbers = self._numbers(mode, plan, values, tables, lossy)
            if numbers is None:
                break
            mass = np.zeros((self.tables[plan.top].rows, self.topology.n_states[plan.top]))
            scale = np.zeros_like(mass)
            self._sweep(mode, plan, numbers, None, ABSENT, mass, scale, lossy)
            tables[plan.top] = self._finish(mode, plan.top, values, mass, scale)
        return tables, lossy

    def _sweep(self, mode: Mode, plan: LayerPlan, numbers: Any, counts: Any, post: Any, *out: Any) -> None:
        """Walk all runs of a layer, also backward if there are counts to fill."""

        steps = int(self.tables[plan.top].most.max())
        work = make_scratch(plan.layer, numbers[1], steps, counts is not None)
        sweep(mode, plan.layer, *numbers, counts, self.offsets, post, *out, work, np.empty(steps))

    def _finish(self, mode: Mode, d: int, values: Arrays, mass: Floats, scale: Floats) -> Floats:
        """Log masses with the level's own persist, from what the runs left."""
        if mode is LINEAR:
            with np.errstate(divide="ignore"):
                np.log(mass, out=mass)
            mass += scale
        self._add_persist(d, values, mass)
        return mass

    def _add_persist(self, d: int, values: Arrays, table: Floats) -> None:

        base, skip, width, reach, _, least, _ = self.tables[d]
        rows = (base, skip, width, reach, least, self.topology.min_duration[d])
        own = [np.ascontiguousarray(values.get((part, d), ABSENT)).reshape(-1, table.shape[1]) for part in OWN]
        add_persist(*rows, *own, table, np.empty((1, table.shape[1])))

    def _numbers(
        self, mode: Mode, plan: LayerPlan, values: Arrays, tables: Mapping[int, Floats], lossy: NDArray[np.bool_]
    ) -> Any:
        """The values of a layer and the segments of its bottom (None without a table) in the given arithmetic.

        LINEAR: sequences whose tokens differ too much are marked as lossy; if other potentials do, all are, and there
        are no values.
        """

        flat = np.empty(plan.size)
        peak = np.zeros(self.steps)
        reached = 0.0  # by the factors between a leaf that ends and the next that starts
        for block in plan.blocks:
            view = block.view(flat)
            self._fill(block, values, view)
            if mode is LINEAR and block.key[0] == "token":
                view = view[:-1]
                highest = np.empty(self.steps)
                lowest = shift_rows(view, view, highest)
                peak += highest
                limit = -SPREAD / (plan.bottom - plan.top)
                if lowest < limit:
                    steps = ((view < limit) & (view > -np.inf)).any(axis=1)
                    lossy |= np.logical_or.reduceat(steps, self.offsets[:-1])
            elif mode is LINEAR:
                reached += max(-lowest_finite(view), view.max(initial=0.0))
        child = tables.get(plan.bottom)
        if mode is not LINEAR:
            return Values(flat, peak), None if child is None else Segments(child, peak)
        if reached > SPREAD:
            lossy[:] = True
            return None
        exponentiate(flat)
        return Values(flat, peak), None if child is None else Segments(*to_linear(child))

    def _fill(self, block: Block, values: Arrays, view: Floats) -> None:
        """Write the log-potentials of a block."""
        part, d = block.key
        if part == "token":
            view[-1] = 0.0
            view = view[:-1]
            view[:] = values.get(block.key, 0.0)
            # the durations and segments of a unit bottom are tokens too
            if ("duration", d) in values:
                view += values["duration", d][0]
            if ("segment", d) in values:
                view += values["segment", d][:, 0]
        elif not block.given:
            view[:] = 0.0
        elif block.columns is None:
            view[:] = values[block.key]
        else:
            np.take(values[block.key].reshape(block.rows, -1), block.columns, axis=1, out=view, mode="clip")
        if block.forbidden is not None:
            np.putmask(view, np.broadcast_to(block.forbidden, view.shape), -np.inf)

    def _empty(self, levels: Sequence[int]) -> Expectations:
        """Zero counts and posteriors; at other levels than these, room for those of tokens and states is not made."""
        return Expectations(
            np.zeros(self.offsets.size - 1),
            {key: np.zeros(shape) for key, shape in self.shapes.items() if key[0] != "token" or key[1] in levels},
            [np.zeros((self.steps if d in levels else 0, size)) for d, size in enumerate(self.topology.n_states)],
            [np.zeros(self.steps) for _ in self.topology.levels],
            {d: np.zeros((table.rows, table.reach.shape[1])) for d, table in self.tables.items()},
        )

    def _expectations(self, mode: Mode, values: Arrays) -> tuple[Expectations, NDArray[np.bool_]]:
        """Inside up to the layer below the root, then outside from the root down."""

        single = self.topology.n_states[0] == 1  # a lone root state has posterior one: no inside pass is needed
        tables, lossy = self._inside(mode, values, down_to=1 if single else 0)
        result = self._empty(self.explicit)
        if lossy.all():
            return result, lossy
        roots = self._root_rows()
        possible = roots >= 0
        if single:
            result.segments[0][roots[possible]] = 1.0
        else:
            result.log_z[:] = self._log_z(mode, tables[0])
            finite = result.log_z > -np.inf
            result.segments[0][roots[finite]] = np.exp(tables[0][roots[finite]] - result.log_z[finite, None])
        for plan in self.layers:
            numbers = self._numbers(mode, plan, values, tables, lossy)
            if numbers is None:
                return result, lossy
            ending = np.zeros((plan.bottom - plan.top + 1, self.steps))
            counts = Counts(np.zeros(plan.size), ending, result.segments.get(plan.bottom, ABSENT))
            post = result.segments[plan.top]
            mass = np.zeros_like(post)
            scale = np.zeros_like(post)
            self._sweep(mode, plan, numbers, counts, post, mass, scale, lossy)
            if plan.top == 0 and single:
                if mode is LOG:
                    mass[post == 0.0] = -np.inf
                result.log_z[:] = self._log_z(mode, self._finish(mode, 0, values, mass, scale))
            self._collect(plan, counts, result)
        for d in self.explicit:
            self._add_persist_back(d, result)
        return result, lossy

    def _collect(self, plan: LayerPlan, counts: Any, result: Expectations) -> None:
        """Move the counts of a layer from the flat array to the parts they belong to."""
        segmental = plan.bottom in self.tables
        for k in range(1, plan.bottom - plan.top + (0 if segmental else 1)):
            result.ending[plan.top + k] = counts.ending[k]
        for block in plan.blocks:
            part, d = block.key
            view = block.view(counts.pot)
            if part == "token":
                if segmental:  # counted as differences in time
                    np.cumsum(view, axis=0, out=view)
                result.state[d] = view[:-1]
                self._count_tokens(d, result)
            elif block.given and block.columns is not None:
                kept = block.columns >= 0
                result.counts[block.key].reshape(block.rows, -1)[:, block.columns[kept]] = view[:, kept]
            elif block.given:
                result.counts[block.key] = view

    def _count_tokens(self, d: int, result: Expectations) -> None:
        """The state posteriors of a Markov level are its token counts; a unit bottom has other parts like them."""
        state = result.state[d]
        if ("token", d) in self.shapes:
            result.counts["token", d] = state
        if ("duration", d) in result.counts:
            result.counts["duration", d][0] = state.sum(axis=0)
        if ("segment", d) in result.counts:
            result.counts["segment", d][:, 0] = state

    def _add_persist_back(self, d: int, result: Expectations) -> None:

        table = self.tables[d]
        post, found = result.segments[d], (result.state[d], result.ending[d])
        own = [result.counts.get((part, d), ABSENT).reshape(-1, post.shape[1]) for part in OWN[1:]]
        alive = np.empty((1, post.shape[1]))
        add_persist_back(table.base, table.skip, table.width, post, *found, *own, alive)
        if ("token", d) in result.counts:
            result.counts["token", d] = result.state[d]

    def _merge(self, whole: Expectations, which: NDArray[np.int64], plan: Plan, part: Expectations) -> Expectations:
        """Put the results of some sequences, run on their own plan, into those of the whole batch."""
        steps = self.steps_of(which)
        whole.log_z[which] = part.log_z
        for key, counts in part.counts.items():
            if self._is_timed(key):
                whole.counts[key][steps] = counts
            else:
                whole.counts[key][:] += counts
        for d in range(self.topology.depth):
            whole.state[d][steps] = part.state[d]
            whole.ending[d][steps] = part.ending[d]
        for d, table in self.tables.items():
            whole.segments[d][table.rows_of(steps)] = part.segments[d]
        return whole


def lowest_finite(values: Floats) -> float:
    """The lowest value that is not -inf, at most zero."""
    lowest = values.min(initial=0.0)
    return float(lowest if lowest > -np.inf else np.min(values, initial=0.0, where=values > -np.inf))


def to_linear(table: Floats) -> tuple[Floats, Floats]:
    """Rows (rows, S) of logarithms as scaled exponentials and their log scales; only the impossible becomes zero.

    In blocks that stay in the cache.
    """

    linear, shift = np.empty_like(table), np.empty(len(table))
    for begin in range(0, len(table), 4096):
        block = slice(begin, begin + 4096)
        rows, out = table[block], linear[block]
        shift_rows(rows, out, shift[block])
        exponentiate(out.reshape(-1))
        if out.min() < SMALLEST:
            out[(out < SMALLEST) & (rows > -np.inf)] = SMALLEST
    return linear, shift


def draw_rows(log_weights: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """One column of each row, drawn in proportion to exp(log_weights)."""
    noise = rng.gumbel(size=log_weights.shape)
    return np.where(log_weights > -np.inf, log_weights + noise, -np.inf).argmax(axis=1)


def segments_of(states: NDArray[np.int32], ends: NDArray[np.int8]) -> NDArray[np.int64]:
    """Segments (n, 4) of one level as state, first step, last step and draw; equal ones stand together."""
    draw, last = np.nonzero(ends)
    first = np.empty_like(last)
    first[1:] = np.where(draw[1:] == draw[:-1], last[:-1] + 1, 0)
    first[0] = 0
    segments = np.column_stack([states[draw, last], first, last, draw]).astype(np.int64)
    return segments[np.lexsort((draw, segments[:, 0], last, first))]
