"""The reference engine: the methods of :class:`hscrf.engine.Batch`, computed layer by layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.engine.evidence import Evidence
from hscrf.engine.expectations import Expectations
from hscrf.engine.reference.counts import ExpectedSums, count_own, outside
from hscrf.engine.reference.layers import Layer, Segments
from hscrf.engine.reference.paths import Choose, PathSegment, best, draw, trace_all
from hscrf.engine.reference.recursion import ROOM, Leaves, Runs, blocks, make_leaves, total, walk
from hscrf.potentials import Arrays
from hscrf.topology import Topology

Paths = tuple[NDArray[np.int32], NDArray[np.int8], Floats]


class Reference:
    """Sequences of one topology; the methods are those of :class:`hscrf.engine.Batch`."""

    def __init__(self, topology: Topology, offsets: Ints, evidence: Evidence | None, room: int = ROOM) -> None:
        self.topology, self.offsets, self.room = topology, offsets, room
        self.evidence = evidence or Evidence.none(topology, offsets)

    def log_partition(self, values: Arrays) -> Floats:
        """Log Z (n,) of each sequence."""
        return self._model(values, ()).log_z(None)[:, 0]

    def expectations(
        self, values: Arrays, weights: Floats | None = None, explicit: Sequence[int] | None = None
    ) -> Expectations:
        """Log Z of each sequence, and the weighted counts and posteriors of all."""
        model = self._model(values, explicit or ())
        sizes, steps = self.topology.n_states, model.steps
        weight = np.ones(len(self.offsets) - 1) if weights is None else weights
        counts = {key: np.zeros(array.shape) for key, array in values.items()}
        states, ending = [np.zeros((steps, size)) for size in sizes], [np.zeros(steps) for _ in sizes]
        found = ExpectedSums(np.repeat(weight, np.diff(self.offsets)), counts, states, ending)
        log_z = model.log_z(None)[:, 0]
        posterior = {0: model.posterior_of_root(log_z)}
        for layer in model.layers:
            top, walked = model.segments[layer.top], model.runs.get(layer.top)
            below = outside(layer, model.leaves(layer), top, posterior[layer.top], walked, found, self.room)
            if below is not None:
                posterior[layer.bottom] = below
        for d, segments in model.segments.items():
            count_own(segments, d, posterior[d], found, values)
        tables = {}
        for d in explicit or ():
            segments = model.segments[d]
            tables[d] = np.zeros((steps, int(segments.lag.max(initial=0)) + 1, sizes[d]))
            tables[d][segments.first, segments.lag] = posterior[d] * found.weight[segments.first, None]
        return Expectations(log_z, counts, states, ending, tables)

    def best(self, values: Arrays) -> Paths:
        """States and ends (D, N) of the best configuration of each sequence, and its score (n,)."""
        states, ends, scores = self._paths(values, 1, 1, best)
        return states[0], ends[0], scores[:, 0]

    def k_best(self, values: Arrays, k: int) -> list[tuple[float, NDArray[np.int32], NDArray[np.int8]]]:
        """The k best configurations of a single sequence, fewer if there are fewer: score, states and ends (D, N)."""
        states, ends, scores = self._paths(values, k, k, best)
        found = zip(scores[0].tolist(), states, ends, strict=True)
        return [one for one in found if one[0] > -np.inf]

    def draw(self, values: Arrays, draws: int, rng: np.random.Generator) -> Paths:
        """States and ends (draws, D, N) of exact samples from the posterior of each sequence, and log Z (n,)."""
        states, ends, log_z = self._paths(values, draws, None, draw(rng))
        return states, ends, log_z[:, 0]

    def _model(self, values: Arrays, explicit: Sequence[int]) -> ReferenceModel:
        return ReferenceModel(self.topology, self.offsets, self.evidence, values, explicit, self.room)

    def _paths(self, values: Arrays, paths: int, ways: int | None, choose: Choose) -> Paths:
        """Paths back from the root: path r takes the r-th best way, or a draw."""
        model = self._model(values, ())
        log_z = model.log_z(ways)
        states = np.zeros((paths, self.topology.depth, model.steps), dtype=np.int32)
        ends = np.zeros(states.shape, dtype=np.int8)
        root, parts = model.segments[0], []
        for number, (first, lag) in enumerate(zip(root.first.tolist(), root.lag.tolist(), strict=True)):
            sequence = int(np.searchsorted(self.offsets, first))
            for path in range(paths):
                if log_z[sequence, path if ways else 0] > -np.inf:
                    state, rank = choose(model.masses[0][number], path)
                    parts.append(PathSegment(path, state, first, lag, rank))
                    states[path, 0, first : first + lag + 1] = state
                    ends[path, :, first + lag] = 1
        for layer in model.layers:
            parts = trace_all(layer, model.leaves(layer), parts, ways, choose, states, ends) if parts else []
        return states, ends, log_z


class ReferenceModel:
    """One set of potentials: its layers and, after :meth:`log_z`, the log masses of all segments.

    A level is *explicit* if its segments are listed: the root, a level with durations, limits or segment scores, a
    bottom of unit length, and requested levels. All others are Markov.
    """

    def __init__(
        self,
        topology: Topology,
        offsets: Ints,
        evidence: Evidence,
        values: Arrays,
        explicit: Sequence[int],
        room: int = ROOM,
    ) -> None:
        self.offsets, self.values, self.steps, self.room = offsets, values, int(offsets[-1]), room
        bottom = topology.depth - 1
        own = [
            d
            for d in range(topology.depth)
            if d in (0, *explicit)
            or ("duration", d) in values
            or ("segment", d) in values
            or topology.has_limits(d)
            or (d == bottom and topology.unit_bottom)
        ]
        self.segments = {d: Segments(topology, d, evidence, offsets, values) for d in own}
        below = own[1:] if own[-1] == bottom else [*own[1:], bottom]
        self.layers = [
            Layer(topology, a, b, b not in own, evidence, self.steps, values) for a, b in zip(own, below, strict=False)
        ]
        self.masses: dict[int, Floats] = {}  # explicit level -> (segments, states, ways)
        self.runs: dict[int, Runs] = {}  # of layers whose runs were computed together, by their top level

    def log_z(self, ways: int | None) -> Floats:
        """Log Z (n, 1) of each sequence, or its best scores (n, ways); fills ``masses`` from the lowest level up."""
        bottom = self.layers[-1].bottom
        if bottom in self.segments:
            own = self.segments[bottom].persist(self.values, bottom)[:, :, None]
            self.masses[bottom] = np.pad(own, ((0, 0), (0, 0), (0, (ways or 1) - 1)), constant_values=-np.inf)
        for layer in reversed(self.layers):
            self.masses[layer.top] = self._inside(layer, ways)
        found = np.full((self.offsets.size - 1, ways or 1), -np.inf)
        root = self.masses[0]
        found[self._sequences()] = total(root, ways, 1)
        return found

    def _inside(self, layer: Layer, ways: int | None) -> Floats:
        """Log masses of the segments of a layer's top level: everything inside, and the scores of the segments."""
        segments = self.segments[layer.top]
        mass = np.full((segments.first.size + 1, layer.state[layer.top].size, ways or 1), -np.inf)
        leaves = self.leaves(layer)
        for rows in blocks(layer, segments.length, self.room):
            runs = walk(layer, leaves, segments.start[rows], segments.length[rows], None, ways)
            within = runs.ends[layer.top]
            if rows.size == segments.start.size:
                self.runs[layer.top] = runs
            mass[segments.at[rows][:, : within.shape[1]]] = within
        return mass[:-1] + segments.persist(self.values, layer.top)[:, :, None]

    def leaves(self, layer: Layer) -> Leaves:
        """The links and scores of the leaves of a layer."""
        return make_leaves(layer, self.segments.get(layer.bottom), self.masses.get(layer.bottom, np.empty((0, 0, 0))))

    def _sequences(self) -> Ints:
        """The sequences of the root's segments."""
        return np.searchsorted(self.offsets, self.segments[0].first)

    def posterior_of_root(self, log_z: Floats) -> Floats:
        """The posterior (segments, states) of the root's states."""
        scale = log_z[self._sequences()][:, None]
        return np.exp(
            np.where(scale > -np.inf, self.masses[0][:, :, 0] - np.where(scale > -np.inf, scale, 0.0), -np.inf)
        )
