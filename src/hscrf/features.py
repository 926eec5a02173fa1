"""From observations to potentials: blocks that turn weights into scores, and counts into gradients.

A *block specification* (``Token``, ``Start``, ``Stop``, ``Duration``, ``Segment``, ``Init``, ``Trans``, ``End``) says
which part of which level is fed by what. Fitted to training data it becomes a *block*: a linear map from its weights
to one array of log-potentials (``add``), with its transpose from expected counts to the gradient (``pull``).
Its ``penalty`` tells how many times as strongly as others its weights are penalised: evidence that is summed over long
segments, say that of a whole activity, wants more than evidence of single steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf._engine import Key, build_families
from hscrf.observations import Encoder, Observations, Sparse, entries_of, of_columns, of_names
from hscrf.topology import UNLIMITED, Topology

__all__ = ["Duration", "End", "Init", "Segment", "Start", "Stop", "Token", "Trans"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


# -- specifications ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Token:
    """Features of every step of a segment, summed over it, or averaged (then the level needs a longest duration)."""

    level: str
    average: bool = False
    penalty: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class Start:
    """Features of the first step of a segment."""

    level: str
    penalty: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class Stop:
    """Features of the last step of a segment."""

    level: str
    penalty: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class Duration:
    """Weights for the length l of a segment.

    ``"gamma"``: log l and l, the sufficient statistics of a gamma density; ``"bins"``: one weight for lengths
    1, 2, 3-4, 5-8, 9-16 and so on; ``"each"``: one weight for every length.
    """

    level: str
    kind: str = "gamma"
    penalty: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        if self.kind not in ("gamma", "bins", "each"):
            raise ValueError(f"Duration kind is {self.kind!r}, expected 'gamma', 'bins' or 'each'")


@dataclass(frozen=True)
class Segment:
    """A function ``f(z, start, stop)`` of the observations z of a sequence and a half-open segment: a vector."""

    level: str
    function: Callable[[Any, int, int], Any]
    penalty: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class Init:
    """A parent and its first child, by the parent's level; ``observed``: with the features of that step."""

    level: str
    observed: bool = False
    penalty: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class Trans:
    """Two neighbouring children of a parent, by its level; ``observed``: with the features of the first's last step."""

    level: str
    observed: bool = False
    penalty: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class End:
    """A parent and its last child, by the parent's level; ``observed``: with the features of that step."""

    level: str
    observed: bool = False
    penalty: float = field(default=1.0, kw_only=True)


Specification = Token | Start | Stop | Duration | Segment | Init | Trans | End
PART = {Token: "token", Start: "start", Stop: "stop", Duration: "duration", Segment: "segment"} | {
    Init: "init",
    Trans: "trans",
    End: "end",
}


def default_specifications(topology: Topology) -> list[Specification]:
    """Token features at every level with a choice; weights for first, neighbouring and last children everywhere."""
    specifications: list[Specification] = []
    for d, level in enumerate(topology.levels):
        if topology.n_states[d] > 1:
            specifications.append(Token(level))
        if topology.has_limits(d) and topology.max_duration[d].max() < UNLIMITED:
            specifications.append(Duration(level))
        if d + 1 < topology.depth and topology.n_states[d + 1] > 1:
            specifications += [Init(level), Trans(level), End(level)]
    return specifications


# -- blocks --------------------------------------------------------------------------------------------------------


class Block:
    """A linear map from ``size`` weights to the array of log-potentials ``key`` = (part, level index).

    ``shape`` is that array's shape for one step (time axis left out) or, if ``timed`` is False, as it is.
    """

    key: Key
    size: int
    shape: tuple[int, ...]
    timed: bool

    def add(self, weights: Floats, seen: Observations, out: Floats) -> None:
        """Add the scores of the observations to the array of their steps."""
        raise NotImplementedError

    def pull(self, counts: Floats, seen: Observations, gradient: Floats) -> None:
        """Transpose of ``add``: add to the gradient what the counts of these steps pull on each weight."""
        raise NotImplementedError

    def describe(self, encoder: Encoder) -> list[tuple[str, tuple[int, ...]]]:
        """For each weight the feature's name and the place in the array (its states)."""
        raise NotImplementedError

    def locate(self, topology: Topology, place: tuple[int, ...]) -> tuple[str, str, str]:
        """Level, part and states of a place by name; the parent's state first if it has children."""
        part, d = self.key
        levels = [d] + [d + 1] * (len(place) - 1)
        states = " > ".join(topology.states[level][s] for level, s in zip(levels, place, strict=True))
        return topology.levels[d], part, states


@dataclass(frozen=True)
class ConstantBlock(Block):
    """One weight for each of some cells of a table that is the same at every time."""

    key: Key
    shape: tuple[int, ...]  # (1, S, U) or (1, S, U, U)
    cells: Ints  # flat index of each weight's cell
    timed = False

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.cells.size

    def add(self, weights: Floats, seen: Observations, out: Floats) -> None:
        out.reshape(-1)[self.cells] += weights

    def pull(self, counts: Floats, seen: Observations, gradient: Floats) -> None:
        gradient += counts.reshape(-1)[self.cells]

    def describe(self, encoder: Encoder) -> list[tuple[str, tuple[int, ...]]]:
        places = np.stack(np.unravel_index(self.cells, self.shape[1:]), axis=1)
        return [("", tuple(place)) for place in places.tolist()]


@dataclass(frozen=True)
class DurationBlock(Block):
    """Weights (K, S) for functions of the length of a segment: basis (L, K)."""

    key: Key
    kind: str
    longest: int
    states: int
    timed = False

    @cached_property
    def basis(self) -> Floats:
        length = np.arange(1, self.longest + 1, dtype=np.float64)
        if self.kind == "gamma":
            return np.stack([np.log(length), length / self.longest], axis=1)
        group = np.ceil(np.log2(length)) if self.kind == "bins" else length - 1
        return (group[:, None] == np.arange(group.max() + 1)).astype(np.float64)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.longest, self.states)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.basis.shape[1] * self.states

    def add(self, weights: Floats, seen: Observations, out: Floats) -> None:
        out += self.basis @ weights.reshape(-1, self.states)

    def pull(self, counts: Floats, seen: Observations, gradient: Floats) -> None:
        gradient += (self.basis.T @ counts).ravel()

    def describe(self, encoder: Encoder) -> list[tuple[str, tuple[int, ...]]]:
        names = ["log length", f"length / {self.longest}"]
        if self.kind == "bins":
            names = [f"length {2 ** max(k - 1, 0) + (k > 0)} to {2**k}" for k in range(self.basis.shape[1])]
        elif self.kind == "each":
            names = [f"length {k + 1}" for k in range(self.longest)]
        return [(name, (s,)) for name in names for s in range(self.states)]


@dataclass(frozen=True)
class PairBlock(Block):
    """A weight for each of some pairs of a named feature and a cell: feature f has pair_at[f] .. pair_at[f + 1]."""

    key: Key
    shape: tuple[int, ...]
    pair_at: Ints  # (features + 1,)
    pair_cell: NDArray[np.int32]
    timed = True

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.pair_cell.size

    def add(self, weights: Floats, seen: Observations, out: Floats) -> None:
        assert seen.sparse is not None
        seen.sparse.add_scores(self.pair_at, self.pair_cell, weights, out.reshape(seen.steps, -1))

    def pull(self, counts: Floats, seen: Observations, gradient: Floats) -> None:
        assert seen.sparse is not None
        seen.sparse.pull_counts(self.pair_at, self.pair_cell, counts.reshape(seen.steps, -1), gradient)

    def describe(self, encoder: Encoder) -> list[tuple[str, tuple[int, ...]]]:
        features = np.repeat(np.arange(self.pair_at.size - 1), np.diff(self.pair_at)).tolist()
        places = np.stack(np.unravel_index(self.pair_cell, self.shape), axis=1).tolist()
        names = list(encoder.names)
        return [(names[f], tuple(place)) for f, place in zip(features, places, strict=True)]


@dataclass(frozen=True)
class DenseBlock(Block):
    """Weights (F + 1, C) for numeric columns and a constant, and the C cells of the array that they feed."""

    key: Key
    shape: tuple[int, ...]
    cells: Ints  # (C,)
    features: int
    timed = True

    @property
    def size(self) -> int:  # type: ignore[override]
        return (self.features + 1) * self.cells.size

    def add(self, weights: Floats, seen: Observations, out: Floats) -> None:
        table = weights.reshape(-1, self.cells.size)
        out.reshape(seen.steps, -1)[:, self.cells] += of_columns(seen) @ table[:-1] + table[-1]

    def pull(self, counts: Floats, seen: Observations, gradient: Floats) -> None:
        table = gradient.reshape(-1, self.cells.size)
        picked = counts.reshape(seen.steps, -1)[:, self.cells]
        table[:-1] += of_columns(seen).T @ picked
        table[-1] += picked.sum(axis=0)

    def describe(self, encoder: Encoder) -> list[tuple[str, tuple[int, ...]]]:
        places = [tuple(place) for place in np.stack(np.unravel_index(self.cells, self.shape), axis=1).tolist()]
        return [(name, place) for name in [*encoder.columns, "constant"] for place in places]


@dataclass(frozen=True)
class AverageBlock(Block):
    """The features of a token block, averaged over each segment of at most ``longest`` steps."""

    tokens: PairBlock | DenseBlock
    longest: int
    timed = True

    @property
    def key(self) -> Key:  # type: ignore[override]
        return ("segment", self.tokens.key[1])

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.longest, *self.tokens.shape)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.tokens.size

    def add(self, weights: Floats, seen: Observations, out: Floats) -> None:
        from hscrf import _kernels

        scores = np.zeros((seen.steps, *self.tokens.shape))
        self.tokens.add(weights, seen, scores)
        _kernels.average_tokens(scores, out)

    def pull(self, counts: Floats, seen: Observations, gradient: Floats) -> None:
        from hscrf import _kernels

        averaged = np.zeros((seen.steps, *self.tokens.shape))
        _kernels.average_tokens_back(counts, averaged)
        self.tokens.pull(averaged, seen, gradient)

    def describe(self, encoder: Encoder) -> list[tuple[str, tuple[int, ...]]]:
        return [(f"mean of {name}", place) for name, place in self.tokens.describe(encoder)]


@dataclass(frozen=True)
class SegmentBlock(Block):
    """Weights (K, S) for a user's vector of K functions of a segment."""

    key: Key
    function: Callable[[Any, int, int], Any]
    features: int
    longest: int
    states: int
    timed = True

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.longest, self.states)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.features * self.states

    def table(self, seen: Observations) -> Floats:
        """The function of every segment, (N, L, K); computed once for each set of observations."""
        cache = seen.__dict__.setdefault("_segment_tables", {})
        key = (self.function, self.longest)
        if key not in cache:
            table = np.zeros((seen.steps, self.longest, self.features))
            for n, z in enumerate(seen.raw):
                begin, stop = seen.offsets[n], seen.offsets[n + 1]
                for i in range(stop - begin):
                    for j in range(i + 1, min(i + self.longest, stop - begin) + 1):
                        table[begin + i, j - i - 1] = segment_vector(self.function, z, i, j, self.features)
            cache[key] = table
        return cache[key]

    def add(self, weights: Floats, seen: Observations, out: Floats) -> None:
        out += self.table(seen) @ weights.reshape(-1, self.states)

    def pull(self, counts: Floats, seen: Observations, gradient: Floats) -> None:
        table = self.table(seen).reshape(-1, self.features)
        gradient += (table.T @ counts.reshape(-1, self.states)).ravel()

    def describe(self, encoder: Encoder) -> list[tuple[str, tuple[int, ...]]]:
        name = getattr(self.function, "__name__", "segment")
        return [(f"{name}[{k}]", (s,)) for k in range(self.features) for s in range(self.states)]


def segment_vector(function: Callable[[Any, int, int], Any], z: Any, start: int, stop: int, size: int) -> Floats:
    vector = np.atleast_1d(np.asarray(function(z, start, stop), dtype=np.float64))
    if vector.shape != (size,) or not np.isfinite(vector).all():
        name = getattr(function, "__name__", "the segment function")
        raise ValueError(f"{name}(z, {start}, {stop}) is {vector.tolist()}, expected {size} finite numbers")
    return vector


# -- fitting -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """Packed labels: states and ends (D, N), -1 where unknown."""

    states: NDArray[np.int32]
    ends: NDArray[np.int8]
    offsets: Ints

    def complete(self, *levels: int) -> bool:
        return all((self.states[d] >= 0).all() and (self.ends[d] >= 0).all() for d in levels)


def fit_blocks(
    specifications: Sequence[Specification],
    topology: Topology,
    encoder: Encoder,
    seen: Observations,
    known: Known,
    pairs: str = "seen",
    transitions: str = "all",
) -> list[Block]:
    """Blocks for the training data; ``"seen"`` gives a weight only to what occurs in it.

    ``pairs`` speaks of features and states, ``transitions`` of the constant init, trans and end weights.
    """
    for name, value in (("pairs", pairs), ("transitions", transitions)):
        if value not in ("seen", "all"):
            raise ValueError(f"{name} is {value!r}, expected 'seen' or 'all'")
    return [fit_block(spec, topology, encoder, seen, known, pairs, transitions) for spec in specifications]


def fit_block(
    spec: Specification,
    topology: Topology,
    encoder: Encoder,
    seen: Observations,
    known: Known,
    pairs: str,
    transitions: str,
) -> Block:
    d = topology.level(spec.level)
    states = topology.n_states[d]
    key = (PART[type(spec)], d)
    if isinstance(spec, (Init, Trans, End)):
        if d == topology.depth - 1:
            raise ValueError(f"{type(spec).__name__}({spec.level!r}) names the bottom, expected a parent's level")
        cells, shape = family_cells(topology, key)
        events = family_events(topology, known, key)
        if spec.observed:
            return observed_block(key, shape, cells, encoder, seen, events, pairs)
        if transitions == "seen" and known.complete(d, d + 1):
            cells = np.intersect1d(cells, events.cells)
        return ConstantBlock(key, (1, *shape), cells)
    if isinstance(spec, Duration):
        return DurationBlock(key, spec.kind, longest_of(topology, d, spec), states)
    if isinstance(spec, Segment):
        z = seen.raw[0]
        features = np.atleast_1d(np.asarray(spec.function(z, 0, 1), dtype=np.float64)).size
        return SegmentBlock(key, spec.function, features, longest_of(topology, d, spec), states)
    events = own_events(known, key)
    tokens = observed_block(key, (states,), np.arange(states), encoder, seen, events, pairs)
    if isinstance(spec, Token) and spec.average:
        return AverageBlock(tokens, longest_of(topology, d, spec))
    return tokens


def longest_of(topology: Topology, d: int, spec: Any) -> int:
    """The longest duration of a level, which its segment tables need."""
    if topology.unit_bottom and d == topology.depth - 1:
        return 1
    longest = int(topology.max_duration[d].max())
    if longest == UNLIMITED:
        level = topology.levels[d]
        raise ValueError(f"{spec} needs a longest duration, but level {level!r} has none: give max_duration")
    return longest


class Events(NamedTuple):
    """Where the events of one part are known to happen, and where one may happen of which not all is known."""

    steps: Ints  # (n,) known events
    cells: Ints  # (n,) flat index into the part's array of one step
    open: Ints  # (m,) steps


def events_of(happens: NDArray[np.bool_], may: NDArray[np.bool_], cells: Ints, known: NDArray[np.bool_]) -> Events:
    steps = np.flatnonzero(happens & known)
    return Events(steps, cells[steps], np.flatnonzero(may & ~(happens & known)))


def own_events(known: Known, key: Key) -> Events:
    """The events of a level's own part: all steps, or the first or last steps of segments.

    Where a state is known, a boundary counts unless it is known that there is none.
    """
    part, d = key
    states, ends = known.states[d].astype(np.int64), known.ends[d]
    may = np.ones(states.size, dtype=bool)
    if part == "stop":
        may = ends != 0
    elif part == "start":
        may = after(ends != 0, known.offsets)
    return events_of(may, may, states, states >= 0)


def after(ends: NDArray[np.bool_], offsets: Ints) -> NDArray[np.bool_]:
    """Does something start here: where it ended one step before, and at the first step of each sequence."""
    starts = np.roll(ends, 1)
    starts[offsets[:-1]] = True
    return starts


def family_cells(topology: Topology, key: Key) -> tuple[Ints, tuple[int, ...]]:
    """Flat indices of the cells that the topology allows, and the shape they index."""
    part, d = key
    families = build_families(topology, d)
    below = topology.n_states[d + 1]
    if part == "trans":
        return families.triples[families.legal_triples], (topology.n_states[d], below, below)
    return families.pairs[families.legal_pairs], (topology.n_states[d], below)


def family_events(topology: Topology, known: Known, key: Key) -> Events:
    """The events of a parent and its children."""
    part, d = key
    above, below = known.states[d].astype(np.int64), known.states[d + 1].astype(np.int64)
    over, done = known.ends[d], known.ends[d + 1]
    width = topology.n_states[d + 1]
    if part == "trans":
        following = np.roll(below, -1)
        cells = (above * width + below) * width + following
        all_known = (above >= 0) & (below >= 0) & (following >= 0)
        inside = np.ones(above.size, dtype=bool)
        inside[known.offsets[1:] - 1] = False
        return events_of(inside & (over == 0) & (done == 1), inside & (over != 1) & (done != 0), cells, all_known)
    happens, may = over == 1, over != 0
    if part == "init":
        happens, may = after(happens, known.offsets), after(may, known.offsets)
    return events_of(happens, may, above * width + below, (above >= 0) & (below >= 0))


def observed_block(
    key: Key,
    shape: tuple[int, ...],
    cells: Ints,
    encoder: Encoder,
    seen: Observations,
    events: Events,
    pairs: str,
) -> PairBlock | DenseBlock:
    """A block for numeric columns, or for pairs of names and cells."""
    if seen.dense is not None:
        return DenseBlock(key, shape, cells, seen.dense.shape[1])
    x = of_names(seen)
    if pairs == "all":
        pair_at = np.arange(x.size + 1) * cells.size
        return PairBlock(key, shape, pair_at, np.tile(cells, x.size).astype(np.int32))
    return PairBlock(key, shape, *seen_pairs(x, cells, events, int(np.prod(shape))))


def seen_pairs(x: Sparse, cells: Ints, events: Events, width: int) -> tuple[Ints, NDArray[np.int32]]:
    """The pairs that occur together; a feature that meets only events of which not all is known has every cell."""
    entries, counts = entries_of(x, events.steps)
    found = np.unique(x.indices[entries].astype(np.int64) * width + np.repeat(events.cells, counts))
    lonely = np.zeros(x.size, dtype=bool)
    lonely[x.indices[entries_of(x, events.open)[0]]] = True
    lonely[found // width] = False
    if lonely.any():
        found = np.union1d(found, (np.flatnonzero(lonely)[:, None] * width + cells).ravel())
    pair_at = np.searchsorted(found, np.arange(x.size + 1) * width)
    return pair_at.astype(np.int64), (found % width).astype(np.int32)
