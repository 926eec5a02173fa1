"""Linear maps from weights to log-potentials, and their transposes from counts to gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.features.bounds import (
    LONGEST,
    LONGEST_EACH,
    LONGEST_TIMED,
    check_cells,
    check_inside,
    check_key,
    check_longest,
    check_offsets,
    check_same,
    table_shape,
)
from hscrf.features.segments import SegmentFunction, SegmentTable, average_tokens, average_tokens_back
from hscrf.fillers import child_name, memory_name
from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.packed import Observations, Pairs, of_columns, of_names
from hscrf.potentials import FAMILY, Key
from hscrf.topology import Topology

OBSERVED = ("token", "start", "stop", *FAMILY)  # parts that the features of a step may feed


class Block:
    """A linear map A from ``size`` weights w to the array of log-potentials ``key`` = (part, level index).

    The scores are A w, the gradient is the transpose of A times the counts. ``shape`` is that array's shape for one
    step (time axis left out) or, if ``timed`` is False, as it is.
    """

    key: Key
    size: int
    shape: tuple[int, ...]
    timed: bool
    reads_raw: bool = False  # whether it reads the user's sequences, not only packed observations

    def add(self, weights: Floats, observations: Observations, out: Floats, factor: float = 1.0) -> None:
        """Add the scores of the observations, times a factor, to the array of their steps."""
        raise NotImplementedError

    def pull(self, counts: Floats, observations: Observations, gradient: Floats, factor: float = 1.0) -> None:
        """Transpose of ``add``: add to the gradient of each weight the counts of these steps."""
        raise NotImplementedError

    def pull_twice(
        self, counts: Floats, observations: Observations, first: Floats, factor: float, second: Floats, other: float
    ) -> None:
        """``pull`` into two vectors, each with a factor of its own."""
        self.pull(counts, observations, first, factor)
        self.pull(counts, observations, second, other)

    def describe(self, encoder: ObservationEncoder) -> list[tuple[str, tuple[int, ...]]]:
        """Return for each weight the feature's name and the place in the array (its states)."""
        raise NotImplementedError

    def check(self, topology: Topology, names: int | None, columns: int | None) -> None:
        """Raise a ``ValueError`` that begins with the field unless the block is sound.

        A sound block fits the topology and observations of that number of named features and numeric columns (None: the
        observations are of another kind). Its fields have the types they are declared with.
        """
        raise NotImplementedError

    def locate(self, topology: Topology, place: tuple[int, ...]) -> tuple[str, str, str]:
        """Level, part and states of a place by name; the parent's state first if it has children."""
        part, d = self.key
        children = [child_name(topology, d + 1, s) for s in place[1:]]
        return topology.levels[d], part, " > ".join([str(topology.states[d][place[0]]), *children])

    def remembered(self, topology: Topology, place: tuple[int, ...]) -> str | None:
        """The state that the child before a transition or an end remembers, "" if none; None if it has no memory."""
        return memory_name(topology, self.key[1] + 1, place[1]) if len(place) > 1 else None


@dataclass(frozen=True)
class ConstantBlock(Block):
    """One weight for each of some cells of a table that is the same at every time.

    score[cells[k]] = w[k]; gradient[k] = counts[cells[k]].
    """

    key: Key
    shape: tuple[int, ...]  # (1, S, U) or (1, S, U, U)
    cells: Ints  # flat index of each weight's cell
    timed = False

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.cells.size

    def add(self, weights: Floats, observations: Observations, out: Floats, factor: float = 1.0) -> None:
        out.reshape(-1)[self.cells] += factor * weights

    def pull(self, counts: Floats, observations: Observations, gradient: Floats, factor: float = 1.0) -> None:
        gradient += factor * counts.reshape(-1)[self.cells]

    def check(self, topology: Topology, names: int | None, columns: int | None) -> None:
        check_key(self.key, topology)
        check_same("shape", self.shape, (1, *table_shape(topology, self.key)))
        check_cells("cells", self.cells, self.shape)

    def describe(self, encoder: ObservationEncoder) -> list[tuple[str, tuple[int, ...]]]:
        places = np.stack(np.unravel_index(self.cells, self.shape[1:]), axis=1)
        return [("", tuple(place)) for place in places.tolist()]


@dataclass(frozen=True)
class DurationBlock(Block):
    """Weights (K, S) for functions of the length of a segment: basis (L, K).

    score[l, s] = sum_k basis[l, k] w[k, s]; gradient[k, s] = sum_l basis[l, k] counts[l, s].
    """

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
        return self.widths[self.kind] * self.states

    @property
    def widths(self) -> dict[str, int]:
        """The number K of functions of each kind."""
        return {"gamma": 2, "bins": (self.longest - 1).bit_length() + 1, "each": self.longest}

    def add(self, weights: Floats, observations: Observations, out: Floats, factor: float = 1.0) -> None:
        out += factor * (self.basis @ weights.reshape(-1, self.states))

    def pull(self, counts: Floats, observations: Observations, gradient: Floats, factor: float = 1.0) -> None:
        gradient += factor * (self.basis.T @ counts).ravel()

    def check(self, topology: Topology, names: int | None, columns: int | None) -> None:
        check_key(self.key, topology, ["duration"])
        if self.kind not in self.widths:
            raise ValueError(f"kind is {self.kind!r}, expected {', '.join(map(repr, self.widths))}")
        check_longest(self.longest, topology, self.key[1], LONGEST_EACH if self.kind == "each" else LONGEST)
        check_same("states", self.states, topology.n_states[self.key[1]])

    def describe(self, encoder: ObservationEncoder) -> list[tuple[str, tuple[int, ...]]]:
        names = ["log length", f"length / {self.longest}"]
        if self.kind == "bins":
            names = [f"length {2 ** max(k - 1, 0) + (k > 0)} to {2**k}" for k in range(self.basis.shape[1])]
        elif self.kind == "each":
            names = [f"length {k + 1}" for k in range(self.longest)]
        return [(name, (s,)) for name in names for s in range(self.states)]


@dataclass(frozen=True)
class TailBlock(Block):
    """A weight for each state: the score of ``longest`` steps beyond the longest explicit duration.

    score[s] = w[s] / longest; gradient[s] = counts[s] / longest.
    """

    key: Key
    longest: int
    states: int
    timed = False

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.states,)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.states

    def add(self, weights: Floats, observations: Observations, out: Floats, factor: float = 1.0) -> None:
        out += factor / self.longest * weights

    def pull(self, counts: Floats, observations: Observations, gradient: Floats, factor: float = 1.0) -> None:
        gradient += factor / self.longest * counts

    def check(self, topology: Topology, names: int | None, columns: int | None) -> None:
        check_key(self.key, topology, ["tail"])
        check_longest(self.longest, topology, self.key[1])
        check_same("states", self.states, topology.n_states[self.key[1]])
        if self.key[1] not in topology.open_levels:
            raise ValueError(f"key is of level {topology.levels[self.key[1]]!r}, which has no open durations")

    def describe(self, encoder: ObservationEncoder) -> list[tuple[str, tuple[int, ...]]]:
        return [(f"(length - {self.longest}) / {self.longest}", (s,)) for s in range(self.states)]


@dataclass(frozen=True)
class PairBlock(Block):
    """A weight for each of some pairs of a named feature and a cell: feature f has pair_at[f] .. pair_at[f + 1].

    With x[t, f] the value of feature f at step t, and over the pairs (f, c) that have a weight:
    score[t, c] = sum_f x[t, f] w[f, c]; gradient[f, c] = sum_t x[t, f] counts[t, c].
    """

    key: Key
    shape: tuple[int, ...]
    pair_at: Ints  # (features + 1,)
    pair_cell: NDArray[np.int32]
    timed = True

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.pair_cell.size

    @property
    def pairs(self) -> Pairs:
        return self.pair_at, self.pair_cell

    def add(self, weights: Floats, observations: Observations, out: Floats, factor: float = 1.0) -> None:
        assert observations.sparse is not None
        observations.sparse.add_scores(self.pairs, weights, out.reshape(observations.steps, -1), factor)

    def pull(self, counts: Floats, observations: Observations, gradient: Floats, factor: float = 1.0) -> None:
        assert observations.sparse is not None
        observations.sparse.pull_counts(self.pairs, counts.reshape(observations.steps, -1), gradient, factor)

    def pull_twice(
        self, counts: Floats, observations: Observations, first: Floats, factor: float, second: Floats, other: float
    ) -> None:
        steps = counts.reshape(observations.steps, -1)
        of_names(observations).pull_twice(self.pairs, steps, first, factor, second, other)

    def check(self, topology: Topology, names: int | None, columns: int | None) -> None:
        check_key(self.key, topology, OBSERVED)
        check_same("shape", self.shape, table_shape(topology, self.key))
        check_offsets("pair_at", self.pair_at, names, self.pair_cell.size)
        check_inside("pair_cell", self.pair_cell, math.prod(self.shape))

    def describe(self, encoder: ObservationEncoder) -> list[tuple[str, tuple[int, ...]]]:
        features = np.repeat(np.arange(self.pair_at.size - 1), np.diff(self.pair_at)).tolist()
        places = np.stack(np.unravel_index(self.pair_cell, self.shape), axis=1).tolist()
        names = list(encoder.names)
        return [(names[f], tuple(place)) for f, place in zip(features, places, strict=True)]


@dataclass(frozen=True)
class DenseBlock(Block):
    """Weights (F + 1, C) for numeric columns and a constant, and the C cells of the array that they feed.

    With x[t, F] = 1: score[t, cells[c]] = sum_f x[t, f] w[f, c]; gradient[f, c] = sum_t x[t, f] counts[t, cells[c]].
    """

    key: Key
    shape: tuple[int, ...]
    cells: Ints  # (C,)
    features: int
    timed = True

    @property
    def size(self) -> int:  # type: ignore[override]
        return (self.features + 1) * self.cells.size

    def add(self, weights: Floats, observations: Observations, out: Floats, factor: float = 1.0) -> None:
        table = weights.reshape(-1, self.cells.size)
        scores = of_columns(observations) @ table[:-1] + table[-1]
        out.reshape(observations.steps, -1)[:, self.cells] += factor * scores

    def pull(self, counts: Floats, observations: Observations, gradient: Floats, factor: float = 1.0) -> None:
        table = gradient.reshape(-1, self.cells.size)
        picked = factor * counts.reshape(observations.steps, -1)[:, self.cells]
        table[:-1] += of_columns(observations).T @ picked
        table[-1] += picked.sum(axis=0)

    def check(self, topology: Topology, names: int | None, columns: int | None) -> None:
        check_key(self.key, topology, OBSERVED)
        check_same("shape", self.shape, table_shape(topology, self.key))
        check_same("features", self.features, columns)
        check_cells("cells", self.cells, self.shape)

    def describe(self, encoder: ObservationEncoder) -> list[tuple[str, tuple[int, ...]]]:
        places = [tuple(place) for place in np.stack(np.unravel_index(self.cells, self.shape), axis=1).tolist()]
        return [(name, place) for name in [*encoder.columns, "constant"] for place in places]


@dataclass(frozen=True)
class MixedBlock(Block):
    """The features of a table with text and numbers: weights of its names, then those of its numeric columns."""

    names: PairBlock
    columns: DenseBlock
    timed = True

    @property
    def key(self) -> Key:  # type: ignore[override]
        return self.names.key

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.names.shape

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.names.size + self.columns.size

    def add(self, weights: Floats, observations: Observations, out: Floats, factor: float = 1.0) -> None:
        self.names.add(weights[: self.names.size], observations, out, factor)
        self.columns.add(weights[self.names.size :], observations, out, factor)

    def pull(self, counts: Floats, observations: Observations, gradient: Floats, factor: float = 1.0) -> None:
        self.names.pull(counts, observations, gradient[: self.names.size], factor)
        self.columns.pull(counts, observations, gradient[self.names.size :], factor)

    def check(self, topology: Topology, names: int | None, columns: int | None) -> None:
        for field, block in (("names", self.names), ("columns", self.columns)):
            try:
                block.check(topology, names, columns)
            except ValueError as error:
                raise ValueError(f"{field}: {error}") from None
        check_same("columns: key", self.columns.key, self.names.key)

    def describe(self, encoder: ObservationEncoder) -> list[tuple[str, tuple[int, ...]]]:
        return [*self.names.describe(encoder), *self.columns.describe(encoder)]


@dataclass(frozen=True)
class AverageBlock(Block):
    """The features of a token block, averaged over each segment of at most ``longest`` steps.

    Row i, l is the segment of l + 1 steps from i on: score[i, l, s] = mean of the token scores[t, s] over its steps t;
    the gradient is that of the token block with counts[t, s] = sum of counts[i, l, s] / (l + 1) over the segments that
    contain t.
    """

    tokens: PairBlock | DenseBlock | MixedBlock
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

    def add(self, weights: Floats, observations: Observations, out: Floats, factor: float = 1.0) -> None:
        scores = np.zeros((observations.steps, *self.tokens.shape))
        self.tokens.add(weights, observations, scores, factor)
        average_tokens(scores, out)

    def pull(self, counts: Floats, observations: Observations, gradient: Floats, factor: float = 1.0) -> None:
        averaged = np.zeros((observations.steps, *self.tokens.shape))
        average_tokens_back(counts, averaged)
        self.tokens.pull(averaged, observations, gradient, factor)

    def check(self, topology: Topology, names: int | None, columns: int | None) -> None:
        try:
            self.tokens.check(topology, names, columns)
            check_key(self.tokens.key, topology, ["token"])
        except ValueError as error:
            raise ValueError(f"tokens: {error}") from None
        check_longest(self.longest, topology, self.key[1], LONGEST_TIMED)

    def describe(self, encoder: ObservationEncoder) -> list[tuple[str, tuple[int, ...]]]:
        return [(f"mean of {name}", place) for name, place in self.tokens.describe(encoder)]


@dataclass(frozen=True)
class SegmentBlock(Block):
    """Weights (K, S) for a user's vector of K functions f of a segment.

    score[i, l, s] = sum_k f_k(z, i, i + l + 1) w[k, s]; gradient[k, s] = sum_il f_k(z, i, i + l + 1) counts[i, l, s].
    """

    key: Key
    function: SegmentFunction
    features: int
    longest: int
    states: int
    timed = True
    reads_raw = True

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.longest, self.states)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.features * self.states

    def table(self, observations: Observations) -> Floats:
        """The function of every segment, (N, L, K); computed once for a data set and all its subsets."""
        key = (self.function, self.longest, self.features)
        if key not in observations.tables:
            data, which = observations.origin or observations.alone()
            if key not in data.tables:  # if several threads compute the table, all use the first one
                data.tables.setdefault(key, SegmentTable(*key, data))
            observations.tables[key] = data.tables[key].of(which)
        return observations.tables[key]

    def add(self, weights: Floats, observations: Observations, out: Floats, factor: float = 1.0) -> None:
        out += factor * (self.table(observations) @ weights.reshape(-1, self.states))

    def pull(self, counts: Floats, observations: Observations, gradient: Floats, factor: float = 1.0) -> None:
        table = self.table(observations).reshape(-1, self.features)
        gradient += factor * (table.T @ counts.reshape(-1, self.states)).ravel()

    def check(self, topology: Topology, names: int | None, columns: int | None) -> None:
        check_key(self.key, topology, ["segment"])
        check_longest(self.longest, topology, self.key[1], LONGEST_TIMED)
        check_same("states", self.states, topology.n_states[self.key[1]])
        if self.features < 0:
            raise ValueError(f"features is {self.features}, expected at least 0")

    def describe(self, encoder: ObservationEncoder) -> list[tuple[str, tuple[int, ...]]]:
        name = getattr(self.function, "__name__", "segment")
        return [(f"{name}[{k}]", (s,)) for k in range(self.features) for s in range(self.states)]
