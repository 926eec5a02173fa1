"""Packed observations of several sequences, a few bytes for each feature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints, ranges
from hscrf.observations.kernels import kernels

MANY = 16  # with more features for each entry, only those that occur are counted
OFTEN = 6  # a feature with at least this many entries is frequent
SPARSE = 8  # adding one pair takes as long as adding this many cells of a table
LARGEST = 1 << 20  # most numbers in a table of the weights of frequent features
SHARD = 1 << 19  # steps of a shard, about half a million
Found = TypeVar("Found")
Pairs = tuple[Ints, NDArray[np.int32]]  # where the pairs of each feature begin (features + 1,), and their cells


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

    def take(self, rows: slice | Ints) -> Sparse:
        """Some of the steps, each at most once; those of a slice are shared, not copied."""
        entries: Any
        if isinstance(rows, slice):
            indptr = self.indptr[rows.start : rows.stop + 1]
            entries, indptr = slice(indptr[0], indptr[-1]), indptr - indptr[0]
        else:
            entries, counts = entries_of(self, rows)
            indptr = np.concatenate([[0], np.cumsum(counts)])
        return Sparse(indptr, self.indices[entries], self.data[entries] if self.data.size else self.data, self.size)

    def squared(self) -> Sparse:
        """The same features with the squares of their values."""
        return replace(self, data=self.data**2)

    def divided(self) -> Divided:
        """The same features in two parts: making them takes time, but each use is faster."""
        if MANY * self.indices.size < self.size:  # few steps: an array of all features would be larger
            present, indices = np.unique(self.indices, return_inverse=True)
            found = Sparse(self.indptr, indices.astype(np.int32), self.data, present.size).divided()
            return replace(found, names=present[found.names], rare=present[found.rare])
        counts = np.bincount(self.indices, minlength=self.size).astype(np.int32)
        names = np.flatnonzero(counts >= OFTEN).astype(np.int32)
        entries, steps = int(counts[names].sum()), self.indptr.size - 1
        counts[names] = 0
        places = np.cumsum(counts, dtype=np.int32)
        places -= counts
        places[names] = -1 - np.arange(names.size, dtype=np.int32)
        left = self.indices.size - entries
        found = Divided(
            names,
            np.empty(steps + 1, dtype=np.int32),
            np.empty(entries, dtype=smallest(names.size)),
            np.empty(left, dtype=np.int32),
            np.empty(left, dtype=smallest(steps)),
            np.empty_like(self.data),
            listed={},
        )
        out = (found.begin, found.found, found.rare, found.rows, found.data)
        kernels.divide_entries(self.indptr, self.indices, self.data, places, *out)
        return found

    def add_scores(self, pairs: Pairs, weights: Floats, out: Floats, factor: float = 1.0) -> None:
        """Add to out (N, cells) the scores of the features of each step, times a factor."""
        kernels.score_rows(self.indptr, self.indices, self.data, *pairs, weights, factor, out)

    def pull_counts(self, pairs: Pairs, counts: Floats, gradient: Floats, factor: float = 1.0) -> None:
        """Transpose of ``add_scores``: add the gradient of counts (N, cells) for each weight, times a factor."""
        kernels.pull_rows(self.indptr, self.indices, self.data, *pairs, np.ascontiguousarray(counts), gradient, factor)

    def pull_twice(
        self, pairs: Pairs, counts: Floats, first: Floats, factor: float, second: Floats, other: float
    ) -> None:
        """``pull_counts`` into two vectors, each with a factor of its own, in one pass."""
        entries = self.indptr, self.indices, self.data
        kernels.pull_rows_twice(*entries, *pairs, np.ascontiguousarray(counts), first, factor, second, other)


@dataclass(frozen=True)
class Divided:
    """Named features of some steps in two parts: the frequent ones by step, the rare ones by feature.

    The weights of frequent features are copied into a table. A pass over the steps reads it in random order, which is
    fast because the table fits in the processor's cache. A pass over the rare features reads each weight once, in
    order.
    """

    names: NDArray[np.int32]  # (H,) the features with at least ``OFTEN`` entries
    begin: NDArray[np.int32]  # (N + 1,) where the entries of each step begin
    found: NDArray[np.integer[Any]]  # (E,) numbers of features among the names, in the smallest integer type
    rare: NDArray[np.int32]  # (R,) the features of all other entries, in order
    rows: NDArray[np.integer[Any]]  # (R,) and their steps
    data: Floats  # (E + R,) or empty, if every value is one
    listed: dict[Any, Any] | None = field(default=None, repr=False, compare=False, kw_only=True)  # by ``_kept``

    def __getstate__(self) -> dict[str, Any]:
        """Without lists, which belong to pairs of this process."""
        return {**self.__dict__, "listed": None if self.listed is None else {}}

    def add_scores(self, pairs: Pairs, weights: Floats, out: Floats, factor: float = 1.0) -> None:
        """Add the scores of the features of each step, as :meth:`Sparse.add_scores` does."""
        (table, width), values = self._table(pairs, out.shape[1]), self.data[: self.found.size]
        if table.size:
            kernels.spread_weights(self.names, *pairs, weights, factor, table, out.shape[1], width)
            kernels.score_frequent(self.begin, self.found, values, self.names.size, table, width, out)
        else:
            entries = self.begin.astype(np.int64), self.names[self.found], values
            kernels.score_rows(*entries, *pairs, weights, factor, out)
        kernels.score_pairs(*self._rare_pairs(pairs, out.shape[1]), weights, factor, out.reshape(-1))

    def pull_counts(self, pairs: Pairs, counts: Floats, gradient: Floats, factor: float = 1.0) -> None:
        """Add the gradient of counts (N, cells), as :meth:`Sparse.pull_counts` does."""
        counts = np.ascontiguousarray(counts)
        (table, width), values = self._table(pairs, counts.shape[1]), self.data[: self.found.size]
        if table.size:
            kernels.pull_frequent(self.begin, self.found, values, self.names.size, counts, table, width)
            kernels.gather_counts(self.names, *pairs, table, counts.shape[1], width, gradient, factor)
        else:
            entries = self.begin.astype(np.int64), self.names[self.found], values
            kernels.pull_rows(*entries, *pairs, counts, gradient, factor)
        kernels.pull_pairs(*self._rare_pairs(pairs, counts.shape[1]), counts.reshape(-1), gradient, factor)

    def squared(self) -> Divided:
        """The same features with the squares of their values."""
        return replace(self, data=self.data**2, listed=None)

    def _rare_pairs(self, pairs: Pairs, width: int) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
        """Pairs of rare features: their numbers, their cells in an array (N, width), and values; kept if wanted."""

        def found() -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
            size, data = count_pairs(self.rare, pairs[0]), self.data[self.found.size :]
            numbers, cells = np.empty((2, size), dtype=np.int32)
            values = np.empty(size if data.size else 0)
            kernels.list_pairs(self.rare, self.rows, data, *pairs, width, numbers, cells, values)
            return numbers, cells, values

        return self._kept("rare", pairs, found)

    def _table(self, pairs: Pairs, cells: int) -> tuple[Floats, int]:
        """An empty table for the weights of the frequent features, and the number of cells of a group.

        The table has no entries if most of them would be zero: then each pair is added by itself.
        """
        width = 4 if cells <= 4 else 8
        size = (cells + -cells % width) * self.names.size
        frequent = self._kept("frequent", pairs, lambda: count_pairs(self.names, pairs[0]))
        dense = SPARSE * frequent > cells * self.names.size
        return np.empty(size if dense and size <= LARGEST else 0), width

    def _kept(self, what: str, pairs: Pairs, find: Callable[[], Found]) -> Found:
        """The result of ``find()`` for some pairs; it is kept if this object keeps results."""
        if self.listed is None:
            return find()
        key = what, id(pairs[1])
        if key not in self.listed:
            self.listed[key] = pairs, find()  # while the pairs are kept, their id stays valid
        found: Found = self.listed[key][1]
        return found


def count_pairs(names: NDArray[np.int32], begins: Ints) -> int:
    """How many pairs some features have."""
    return int((begins[names + 1] - begins[names]).sum())


@dataclass(frozen=True)
class DataSet:
    """The sequences that observations were taken from, and the tables that were computed of all of them."""

    offsets: Ints  # (sequences + 1,)
    raw: Sequence[Any]
    tables: dict[Any, Any] = field(default_factory=dict)


class Origin(NamedTuple):
    """The data set that observations were taken from, and the numbers of their sequences in it."""

    data: DataSet
    which: Ints


@dataclass(frozen=True)
class Observations:
    """Packed observations of several sequences: named features or numeric columns.

    Observations that are ``shared`` belong to a data set: subsets share the tables of segment functions
    with them. A pickle contains these sequences only.
    """

    offsets: Ints  # (sequences + 1,)
    sparse: Sparse | Divided | None
    dense: Floats | None  # (N, F)
    raw: Sequence[Any] = field(repr=False)  # the user's sequences, for segment functions
    origin: Origin | None = field(default=None, repr=False, compare=False)
    tables: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)  # of these sequences

    @property
    def steps(self) -> int:
        """Number of steps of all sequences."""
        return int(self.offsets[-1])

    def take(self, which: Sequence[int] | Ints) -> Observations:
        """Some of the sequences."""
        which = np.asarray(which)
        rows = rows_of(self.offsets, which)
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[which])])
        dense = None if self.dense is None else self.dense[rows]
        sparse = None if self.sparse is None else of_names(self).take(rows)
        origin = None if self.origin is None else Origin(self.origin.data, self.origin.which[which])
        return Observations(offsets, sparse, dense, [self.raw[n] for n in which], origin)

    def shared(self) -> Observations:
        """The same as a data set: each table is computed once for all subsets.

        For training data, whose sequences are taken again and again. The tables stay as long as the observations.
        """
        return replace(self, origin=self.alone(), tables={})

    def alone(self) -> Origin:
        """These sequences as a data set of their own."""
        return Origin(DataSet(self.offsets, self.raw), np.arange(len(self.offsets) - 1))

    def divided(self) -> Observations:
        """The same, prepared for repeated scoring."""
        return self if self.sparse is None else replace(self, sparse=of_names(self).divided())

    def squared(self) -> Observations:
        """The same with the squares of all values; tables of segment functions stay."""
        sparse, dense = self.sparse, self.dense
        if sparse is not None and sparse.data.size:
            sparse = sparse.squared()
        return replace(self, sparse=sparse, dense=None if dense is None else dense**2)

    def __getstate__(self) -> dict[str, Any]:
        """Without the data set and without tables, which may be far larger than these sequences."""
        return {**self.__dict__, "origin": None, "tables": {}}


def of_names(observations: Observations) -> Sparse:
    """The named features by step, as the encoder packed them."""
    assert isinstance(observations.sparse, Sparse)
    return observations.sparse


def of_columns(observations: Observations) -> Floats:
    """The numeric columns, as the encoder packed them."""
    assert observations.dense is not None
    return observations.dense


def rows_of(offsets: Ints, which: Ints) -> slice | Ints:
    """The steps of some sequences: a slice if they are neighbours in order."""
    if (np.diff(which) == 1).all():
        return slice(int(offsets[which[0]]), int(offsets[which[-1] + 1]))
    return ranges(offsets[which], np.diff(offsets)[which])


def smallest(size: int) -> type[np.integer[Any]]:
    """The smallest integer type for numbers below a size: training reads all of them in every iteration."""
    return np.uint16 if size <= 1 << 16 else np.int32


def entries_of(x: Sparse, steps: Ints) -> tuple[Ints, Ints]:
    """The entries of some steps one after the other, and the number of entries of each step."""
    counts = np.diff(x.indptr)[steps]
    return ranges(x.indptr[steps], counts), counts


def shard_bounds(lengths: Sequence[int], most: int = SHARD) -> list[tuple[int, int]]:
    """First sequence and end of each shard: sequences of at most ``most`` steps, or one that is longer.

    Data in memory and on disk are cut at the same places, so sums over them have the same bits.

    >>> shard_bounds([SHARD - 10, 10, 1, 2 * SHARD])
    [(0, 2), (2, 3), (3, 4)]
    """
    bounds, begin, filled = [], 0, 0
    for n, length in enumerate(lengths):
        if n > begin and filled + length > most:
            bounds.append((begin, n))
            begin, filled = n, 0
        filled += length
    return [*bounds, (begin, len(lengths))]
