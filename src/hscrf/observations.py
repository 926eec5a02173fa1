"""What users observe, packed: feature dicts, strings, arrays, sparse matrices, tables, of ragged lengths.

:class:`Encoder` learns names and scales from training data; :class:`Observations` are all sequences in one place, a few
bytes for each feature.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf._engine import ranges

__all__ = ["Encoder", "Observations"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
        """Some of the steps, each at most once; neighbours are shared, not copied."""
        entries: Any
        if rows[-1] - rows[0] == len(rows) - 1:
            indptr = self.indptr[rows[0] : rows[-1] + 2]
            entries, indptr = slice(indptr[0], indptr[-1]), indptr - indptr[0]
        else:
            entries, counts = entries_of(self, rows)
            indptr = np.concatenate([[0], np.cumsum(counts)])
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

    def add_scores(self, pair_at: Ints, pair_cell: NDArray[np.int32], weights: Floats, out: Floats) -> None:
        from hscrf import _kernels

        x = (self.indptr, self.indices, self.data)
        _kernels.score_rows(*x, pair_at, pair_cell, weights, out)

    def pull_counts(self, pair_at: Ints, pair_cell: NDArray[np.int32], counts: Floats, gradient: Floats) -> None:
        from hscrf import _kernels

        x = (self.indptr, self.indices, self.data)
        _kernels.pull_rows(*x, pair_at, pair_cell, counts, gradient)


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

    def add_scores(self, pair_at: Ints, pair_cell: NDArray[np.int32], weights: Floats, out: Floats) -> None:
        from hscrf import _kernels

        x = (self.names, self.begin, self.rows, self.data)
        _kernels.score_columns(*x, pair_at, pair_cell, weights, out, np.empty((1, out.shape[1])))

    def pull_counts(self, pair_at: Ints, pair_cell: NDArray[np.int32], counts: Floats, gradient: Floats) -> None:
        from hscrf import _kernels

        x, counts = (self.names, self.begin, self.rows, self.data), np.ascontiguousarray(counts)
        _kernels.pull_columns(*x, pair_at, pair_cell, counts, gradient, np.empty((1, counts.shape[1])))


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


def of_names(seen: Observations) -> Sparse:
    """The named features by step, which the encoder has made."""
    assert isinstance(seen.sparse, Sparse)
    return seen.sparse


def of_columns(seen: Observations) -> Floats:
    """The numeric columns, which the encoder has made."""
    assert seen.dense is not None
    return seen.dense


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
    if not hasattr(X, "__len__"):
        raise ValueError(f"X is a {type(X).__name__}, expected a list of sequences")
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
        try:
            rows = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X[{n}] is no table of numbers ({error}): text belongs in feature dicts or strings"
            ) from None
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


def entries_of(x: Sparse, steps: Ints) -> tuple[Ints, Ints]:
    """The entries of some steps one after the other, and how many each has."""
    counts = np.diff(x.indptr)[steps]
    return ranges(x.indptr[steps], counts), counts
