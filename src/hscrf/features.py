"""From observations to potentials: packing what users have, and blocks that turn weights into scores and back.

A *block specification* (``Token``, ``Start``, ``Stop``, ``Duration``, ``Segment``, ``Init``, ``Trans``, ``End``) says
which part of which level is fed by what. Fitted to training data it becomes a *block*: a linear map from its weights
to one array of log-potentials (``add``), with its transpose from expected counts to the gradient (``pull``).
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf._engine import Key, build_families, ranges
from hscrf.topology import UNLIMITED, Topology

__all__ = ["Duration", "End", "Init", "Segment", "Start", "Stop", "Token", "Trans"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


# -- observations --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sparse:
    """Named features of N steps as a compressed row matrix; ``data`` is empty if every value is one."""

    indptr: Ints  # (N + 1,)
    indices: NDArray[np.int32]
    data: Floats
    size: int  # number of features

    def keep(self, mask: NDArray[np.bool_]) -> Sparse:
        """Only the features of the mask, numbered anew."""
        entries = mask[self.indices]
        number = np.cumsum(mask) - 1
        counts = np.add.reduceat(np.append(entries, 0), self.indptr[:-1]) * (np.diff(self.indptr) > 0)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        indices = number[self.indices[entries]].astype(np.int32)
        return Sparse(indptr, indices, self.data[entries] if self.data.size else self.data, int(mask.sum()))

    def take(self, rows: Ints) -> Sparse:
        """Some of the steps; neighbours are shared, not copied."""
        entries: Any = slice(self.indptr[rows[0]], self.indptr[rows[-1] + 1])
        if rows[-1] - rows[0] != len(rows) - 1:
            entries, _ = entries_of(self, rows)
        indptr = np.concatenate([[0], np.cumsum(np.diff(self.indptr)[rows])])
        return Sparse(indptr, self.indices[entries], self.data[entries] if self.data.size else self.data, self.size)

    def by_columns(self) -> Columns:
        """The same by features: slower to make, faster to use again and again."""
        order = np.argsort(self.indices, kind="stable")
        names, counts = np.unique(self.indices, return_counts=True)
        steps = len(self.indptr) - 1
        number = np.arange(steps, dtype=np.uint16 if steps <= 1 << 16 else np.int32)
        rows = np.repeat(number, np.diff(self.indptr))[order]
        begin = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return Columns(names, begin, rows, self.data[order] if self.data.size else self.data)

    def add_scores(self, pairs: PairBlock, weights: Floats, out: Floats) -> None:
        from hscrf import _kernels

        x = (self.indptr, self.indices, self.data)
        _kernels.score_rows(*x, pairs.pair_at, pairs.pair_cell, weights, out)

    def pull_counts(self, pairs: PairBlock, counts: Floats, gradient: Floats) -> None:
        from hscrf import _kernels

        x = (self.indptr, self.indices, self.data)
        _kernels.pull_rows(*x, pairs.pair_at, pairs.pair_cell, counts, gradient)


@dataclass(frozen=True)
class Columns:
    """Named features of some steps by feature: the steps of names[k] are rows[begin[k] : begin[k + 1]].

    A pass over it meets each weight once, in order, and only the scores of the steps at random: those of a few
    thousand steps stay in the cache, where all weights would not.
    """

    names: NDArray[np.int32]  # (K,) the features that occur
    begin: NDArray[np.int32]  # (K + 1,)
    rows: NDArray[np.integer[Any]]  # as few bytes as will do: training reads all of it in every iteration
    data: Floats

    def add_scores(self, pairs: PairBlock, weights: Floats, out: Floats) -> None:
        from hscrf import _kernels

        x = (self.names, self.begin, self.rows, self.data)
        _kernels.score_columns(*x, pairs.pair_at, pairs.pair_cell, weights, out)

    def pull_counts(self, pairs: PairBlock, counts: Floats, gradient: Floats) -> None:
        from hscrf import _kernels

        x = (self.names, self.begin, self.rows, self.data)
        _kernels.pull_columns(*x, pairs.pair_at, pairs.pair_cell, counts, gradient)


@dataclass(frozen=True)
class Observations:
    """Packed observations of several sequences: named features, numeric columns, or both."""

    offsets: Ints  # (sequences + 1,)
    sparse: Sparse | Columns | None
    dense: Floats | None  # (N, F)
    raw: Sequence[Any] = field(repr=False)  # what the user gave, for segment functions

    @property
    def steps(self) -> int:
        return int(self.offsets[-1])

    def take(self, which: Sequence[int] | Ints) -> Observations:
        """Some of the sequences."""
        which = np.asarray(which)
        lengths = np.diff(self.offsets)[which]
        rows = ranges(self.offsets[which], lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        neighbours = rows[-1] - rows[0] == len(rows) - 1
        dense = self.dense
        if dense is not None:
            dense = dense[rows[0] : rows[-1] + 1] if neighbours else dense[rows]
        sparse = None if self.sparse is None else of_names(self).take(rows)
        return Observations(offsets, sparse, dense, [self.raw[n] for n in which])

    def by_columns(self) -> Observations:
        """The same, made ready to be scored again and again."""
        return self if self.sparse is None else replace(self, sparse=of_names(self).by_columns())


class Encoder:
    """Learns feature names and scales from training data and packs observations by them.

    Observations of one sequence: a list of dicts (numbers keep their value, strings become ``name=value``), a list of
    lists of strings, a 2-D array, a scipy sparse matrix, or a DataFrame. Names seen in training fewer than
    ``min_count`` times, or not at all, are left out.
    """

    def __init__(self, min_count: int = 1, standardize: bool = True) -> None:
        self.min_count = min_count
        self.standardize = standardize
        self.names: dict[str, int] = {}
        self.columns: list[str] = []
        self.mean: Floats = np.empty(0)
        self.scale: Floats = np.empty(0)
        self.kind = ""

    def fit_pack(self, X: Sequence[Any]) -> Observations:
        """Learn from X and pack it."""
        self.kind = kind_of(X)
        if self.kind == "dense":
            rows, self.columns = stack_dense(X)
            self.mean = rows.mean(axis=0) if self.standardize else np.zeros(rows.shape[1])
            spread = rows.std(axis=0) if self.standardize else np.ones(rows.shape[1])
            self.scale = np.where(spread > 1e-12 * np.abs(rows).max(axis=0), spread, 1.0)  # a constant stays zero
            return Observations(offsets_of(X), None, (rows - self.mean) / self.scale, X)
        if self.kind == "matrix":
            sparse = stack_matrices(X)
            self.names = {str(k): k for k in range(sparse.size)}
            return Observations(offsets_of(X), self._frequent(sparse), None, X)
        names: defaultdict[str, int] = defaultdict()
        names.default_factory = names.__len__
        indices, indptr, data = pack_items(X, self.kind, names.__getitem__, array("i"))
        self.names = dict(names)
        check_names(X, self.names)
        return Observations(offsets_of(X), self._frequent(Sparse(indptr, indices, data, len(names))), None, X)

    def _frequent(self, sparse: Sparse) -> Sparse:
        """Drop names that are too rare."""
        if self.min_count <= 1:
            return sparse
        frequent = np.bincount(sparse.indices, minlength=sparse.size) >= self.min_count
        kept = [name for name, k in self.names.items() if frequent[k]]
        self.names = {name: k for k, name in enumerate(kept)}
        return sparse.keep(frequent)

    def pack(self, X: Sequence[Any]) -> Observations:
        """Pack new observations; unknown names are ignored."""
        kind = kind_of(X)
        if kind != self.kind and not {kind, self.kind} <= {"dicts", "strings"}:
            raise ValueError(f"X holds {KINDS[kind]}, but the model was trained on {KINDS[self.kind]}")
        if kind == "dense":
            rows, columns = stack_dense(X)
            if rows.shape[1] != len(self.columns):
                raise ValueError(f"X has {rows.shape[1]} columns, but the model was trained on {len(self.columns)}")
            if columns != self.columns and unnamed(len(columns)) not in (columns, self.columns):
                raise ValueError(f"X has the columns {columns}, but the model was trained on {self.columns}")
            return Observations(offsets_of(X), None, (rows - self.mean) / self.scale, X)
        if kind == "matrix":
            return Observations(offsets_of(X), self._known_columns(stack_matrices(X)), None, X)
        hashes, indptr, data = pack_items(X, kind, hash, array("q"))
        unknown = len(self.names)
        sparse = Sparse(indptr, self.lookup.find(hashes), data, unknown + 1)
        mask = np.arange(unknown + 1) < unknown
        return Observations(offsets_of(X), sparse.keep(mask), None, X)

    @cached_property
    def lookup(self) -> Lookup:
        return Lookup(self.names)

    def __getstate__(self) -> dict[str, Any]:
        """Without the lookup: another process hashes names in another way."""
        return {name: value for name, value in self.__dict__.items() if name != "lookup"}

    def _known_columns(self, sparse: Sparse) -> Sparse:
        mask = np.zeros(sparse.size, dtype=bool)
        known = np.array([int(name) for name in self.names], dtype=np.int64)
        if known.size and known.max() >= sparse.size:
            raise ValueError(f"X has {sparse.size} columns, but the model was trained on at least {known.max() + 1}")
        mask[known] = True
        return sparse.keep(mask)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """JSON-able settings, and arrays, from which :meth:`restore` makes the same encoder."""
        settings = {
            "min_count": self.min_count,
            "standardize": self.standardize,
            "kind": self.kind,
            "names": list(self.names),
            "columns": list(self.columns),
        }
        return settings, {"mean": self.mean, "scale": self.scale}

    @classmethod
    def restore(cls, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Encoder:
        encoder = cls(settings["min_count"], settings["standardize"])
        encoder.kind = settings["kind"]
        encoder.names = {name: k for k, name in enumerate(settings["names"])}
        encoder.columns = list(settings["columns"])
        encoder.mean, encoder.scale = arrays["mean"], arrays["scale"]
        return encoder


class Lookup:
    """Finds the numbers of names by their hashes, in a table that holds no strings: two misses of the cache at most.

    Two names are taken for the same if their hashes, 64 random bits in each process, agree: for a million names looked
    up among a million, the odds of one mistake are 1 in 18 million.
    """

    def __init__(self, names: Mapping[str, int]) -> None:
        from hscrf import _kernels

        size = 1 << (2 * len(names)).bit_length()
        self.hashes = np.zeros(size, dtype=np.int64)
        self.numbers = np.full(size, -1, dtype=np.int32)
        self.unknown = len(names)
        given = np.fromiter(map(hash, names), dtype=np.int64, count=len(names))
        _kernels.store_names(given, self.hashes, self.numbers)

    def find(self, hashes: Ints) -> NDArray[np.int32]:
        """The number of each name, ``unknown`` if there is none."""
        from hscrf import _kernels

        found = np.empty(len(hashes), dtype=np.int32)
        _kernels.find_names(hashes, self.hashes, self.numbers, self.unknown, found)
        return found


KINDS = {
    "dicts": "feature dicts",
    "strings": "lists of feature strings",
    "dense": "numeric arrays",
    "matrix": "sparse matrices",
}


def kind_of(X: Sequence[Any]) -> str:
    """What the observations are: dicts, strings, dense or matrix; checked on the first non-empty sequence."""
    if len(X) == 0:
        raise ValueError("X is empty, expected at least one sequence")
    for n, x in enumerate(X):
        if length_of(x) == 0:
            raise ValueError(f"X[{n}] is empty, expected at least one time step")
    first = X[0]
    if hasattr(first, "tocsr"):
        return "matrix"
    if isinstance(first, np.ndarray) or hasattr(first, "iloc"):
        return "dense"
    item = first[0]
    if isinstance(item, Mapping):
        return "dicts"
    if isinstance(item, str):
        raise ValueError("X[0][0] is a string, expected a feature dict or a list of feature strings for each step")
    if isinstance(item, np.ndarray) or (isinstance(item, Sequence) and len(item) and not isinstance(item[0], str)):
        return "dense"
    if isinstance(item, Iterable):
        return "strings"
    raise ValueError(f"X[0][0] is a {type(item).__name__}, expected a feature dict, strings or numbers")


def length_of(x: Any) -> int:
    return int(x.shape[0]) if hasattr(x, "shape") else len(x)


def offsets_of(X: Sequence[Any]) -> Ints:
    return np.concatenate([[0], np.cumsum([length_of(x) for x in X])]).astype(np.int64)


def stack_dense(X: Sequence[Any]) -> tuple[Floats, list[str]]:
    """All rows below each other, and column names; NaN and wrong widths are named with their sequence."""
    columns = [str(name) for name in X[0].columns] if hasattr(X[0], "columns") else None
    arrays: list[Floats] = []
    for n, x in enumerate(X):
        rows = np.asarray(x, dtype=np.float64)
        if rows.ndim != 2:
            raise ValueError(f"X[{n}] has {rows.ndim} axes, expected 2: (steps, features)")
        if arrays and rows.shape[1] != arrays[0].shape[1]:
            raise ValueError(f"X[{n}] has {rows.shape[1]} columns but X[0] has {arrays[0].shape[1]}")
        if columns and hasattr(x, "columns") and columns != [str(name) for name in x.columns]:
            raise ValueError(f"X[{n}] has the columns {[str(name) for name in x.columns]} but X[0] has {columns}")
        bad = np.argwhere(~np.isfinite(rows))
        if bad.size:
            t, k = map(int, bad[0])
            raise ValueError(f"X[{n}] is {rows[t, k]} at step {t}, column {k}, expected a finite number")
        arrays.append(rows)
    return np.concatenate(arrays), columns or unnamed(arrays[0].shape[1])


def unnamed(size: int) -> list[str]:
    """Names of columns that have none."""
    return [f"x{k}" for k in range(size)]


def stack_matrices(X: Sequence[Any]) -> Sparse:
    from scipy.sparse import vstack

    for n, x in enumerate(X):
        if x.shape[1] != X[0].shape[1]:
            raise ValueError(f"X[{n}] has {x.shape[1]} columns but X[0] has {X[0].shape[1]}")
    matrix = vstack([x.tocsr() for x in X], format="csr")
    if not np.isfinite(matrix.data).all():
        step = int(np.searchsorted(matrix.indptr, np.flatnonzero(~np.isfinite(matrix.data))[0], side="right")) - 1
        n = int(np.searchsorted(offsets_of(X), step, side="right")) - 1
        raise ValueError(f"X[{n}] is not finite at step {step - offsets_of(X)[n]}, expected finite numbers")
    data = np.empty(0) if (matrix.data == 1).all() else matrix.data.astype(np.float64)
    return Sparse(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), data, matrix.shape[1])


def pack_items(
    X: Sequence[Any], kind: str, number: Callable[[str], int], packed: Any
) -> tuple[NDArray[Any], Ints, Floats]:
    """Pack feature dicts or strings as they are read: a few bytes a feature, whatever the dicts weigh.

    Returns a number for each entry, kept in the array ``packed``, where each step begins, and the values.
    """
    values, counts = array("d"), array("q")
    for n, x in enumerate(X):
        names = read_dicts(x, n, counts, values) if kind == "dicts" else read_strings(x, n, counts)
        try:
            packed.extend(map(number, names))
        except TypeError:  # not hashable, so no string
            check_strings(x, n)
            raise
    data = np.frombuffer(values, dtype=np.float64) if len(values) else np.empty(0)
    if (data == 1).all():
        data = np.empty(0)
    indptr = np.concatenate([[0], np.cumsum(np.frombuffer(counts, dtype=np.int64))])
    return np.frombuffer(packed, dtype=packed.typecode) if len(packed) else np.empty(0, packed.typecode), indptr, data


def read_strings(x: Sequence[Any], n: int, counts: Any) -> Iterable[str]:
    """Names of the features of one sequence; their numbers by step appended."""
    if not set(map(type, x)) <= {list, tuple}:
        for t, item in enumerate(x):
            if isinstance(item, (str, Mapping)) or not isinstance(item, Iterable):
                raise ValueError(f"X[{n}][{t}] is {item!r}, expected a list of feature strings")
        x = [list(item) for item in x]
    counts.extend(map(len, x))
    return chain.from_iterable(x)


def read_dicts(x: Sequence[Any], n: int, counts: Any, values: Any) -> Iterable[str]:
    names: list[str] = []
    for t, item in enumerate(x):
        before = len(names)
        names += read_dict(item, n, t, values)
        counts.append(len(names) - before)
    return names


def check_names(X: Sequence[Any], names: Mapping[Any, int]) -> None:
    """Raise for a feature that is not a string, and say where it is."""
    if not set(map(type, names)) <= {str}:
        for n, x in enumerate(X):
            check_strings(x, n)


def check_strings(x: Sequence[Any], n: int) -> None:
    for t, item in enumerate(x):
        for name in item:
            if not isinstance(name, str):
                raise ValueError(f"X[{n}][{t}] holds the feature {name!r}, expected a string")


def read_dict(item: Any, n: int, t: int, values: Any) -> list[str]:
    """Names of the features of one step, their values appended: a string is part of the name, False is absent."""
    if not isinstance(item, Mapping):
        raise ValueError(f"X[{n}][{t}] is a {type(item).__name__}, expected a feature dict as in X[0][0]")
    names = []
    for name, value in item.items():
        if isinstance(value, str):
            names.append(f"{name}={value}")
            values.append(1.0)
        elif value is not False and value is not None:
            try:
                amount = float(value)
            except (TypeError, ValueError):
                kind = type(value).__name__
                raise ValueError(f"X[{n}][{t}][{name!r}] is a {kind}, expected a string, number or bool") from None
            if not np.isfinite(amount):
                raise ValueError(f"X[{n}][{t}][{name!r}] is {amount}, expected a finite number")
            names.append(name)
            values.append(amount)
    return names


# -- specifications ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Token:
    """Features of every step of a segment, summed over it, or averaged (then the level needs a longest duration)."""

    level: str
    average: bool = False


@dataclass(frozen=True)
class Start:
    """Features of the first step of a segment."""

    level: str


@dataclass(frozen=True)
class Stop:
    """Features of the last step of a segment."""

    level: str


@dataclass(frozen=True)
class Duration:
    """Weights for the length l of a segment.

    ``"gamma"``: log l and l, the sufficient statistics of a gamma density; ``"bins"``: one weight for lengths
    1, 2, 3-4, 5-8, 9-16 and so on; ``"each"``: one weight for every length.
    """

    level: str
    kind: str = "gamma"

    def __post_init__(self) -> None:
        if self.kind not in ("gamma", "bins", "each"):
            raise ValueError(f"Duration kind is {self.kind!r}, expected 'gamma', 'bins' or 'each'")


@dataclass(frozen=True)
class Segment:
    """A function ``f(z, start, stop)`` of the observations z of a sequence and a half-open segment: a vector."""

    level: str
    function: Callable[[Any, int, int], Any]


@dataclass(frozen=True)
class Init:
    """A parent and its first child, by the parent's level; ``observed``: with the features of that step."""

    level: str
    observed: bool = False


@dataclass(frozen=True)
class Trans:
    """Two neighbouring children of a parent, by its level; ``observed``: with the features of the first's last step."""

    level: str
    observed: bool = False


@dataclass(frozen=True)
class End:
    """A parent and its last child, by the parent's level; ``observed``: with the features of that step."""

    level: str
    observed: bool = False


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
        seen.sparse.add_scores(self, weights, out.reshape(seen.steps, -1))

    def pull(self, counts: Floats, seen: Observations, gradient: Floats) -> None:
        assert seen.sparse is not None
        seen.sparse.pull_counts(self, counts.reshape(seen.steps, -1), gradient)

    def describe(self, encoder: Encoder) -> list[tuple[str, tuple[int, ...]]]:
        features = np.repeat(np.arange(self.pair_at.size - 1), np.diff(self.pair_at)).tolist()
        places = np.stack(np.unravel_index(self.pair_cell, self.shape), axis=1).tolist()
        names = list(encoder.names)
        return [(names[f], tuple(place)) for f, place in zip(features, places, strict=True)]


def of_names(seen: Observations) -> Sparse:
    assert isinstance(seen.sparse, Sparse)  # the encoder has seen to it
    return seen.sparse


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


def of_columns(seen: Observations) -> Floats:
    assert seen.dense is not None
    return seen.dense


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
        return families.triples[~families.forbidden[0]], (topology.n_states[d], below, below)
    return families.pairs, (topology.n_states[d], below)


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


def entries_of(x: Sparse, steps: Ints) -> tuple[Ints, Ints]:
    """The entries of some steps one after the other, and how many each has."""
    counts = np.diff(x.indptr)[steps]
    return ranges(x.indptr[steps], counts), counts
