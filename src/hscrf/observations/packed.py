"""Observations of several sequences in one place, a few bytes for each feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints, ranges
from hscrf.observations.kernels import (
    count_features,
    pull_columns,
    pull_columns_twice,
    pull_rows,
    pull_rows_twice,
    score_columns,
    score_rows,
    sort_by_feature,
)

MANY = 16  # times as many
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

    def by_columns(self) -> Columns:
        """The same by features: slower to make, faster to use again and again."""
        if MANY * self.indices.size < self.size:
            return self._sorted()
        places = np.zeros(self.size + 1, dtype=np.int32)
        count_features(self.indices, places)
        names = np.flatnonzero(places[1:]).astype(np.int32)
        np.cumsum(places, out=places)
        begin = np.append(places[names], places[-1])
        steps = len(self.indptr) - 1
        rows = np.empty(self.indices.size, dtype=np.uint16 if steps <= 1 << 16 else np.int32)
        data = np.empty_like(self.data)
        sort_by_feature(self.indptr, self.indices, self.data, places, rows, data)
        return Columns(names, begin, rows, data)

    def _sorted(self) -> Columns:
        """``by_columns`` for a few steps, without an array of all features."""
        order = np.argsort(self.indices, kind="stable")
        names = self.indices[order]
        begin = np.flatnonzero(np.append(True, names[1:] != names[:-1])) if names.size else np.zeros(0, dtype=np.int64)
        steps = len(self.indptr) - 1
        rows = np.repeat(np.arange(steps, dtype=np.uint16 if steps <= 1 << 16 else np.int32), np.diff(self.indptr))
        data = self.data[order] if self.data.size else self.data
        return Columns(names[begin], np.append(begin, names.size).astype(np.int32), rows[order], data)

    def both_ways(self) -> BothWays:
        """By steps and by features."""
        return BothWays(self.indptr, self.indices, self.data, self.size, self.by_columns())

    def add_scores(self, pairs: Pairs, weights: Floats, out: Floats, factor: float = 1.0) -> None:
        """Add to out (N, cells) the scores of the features of each step, times a factor."""
        score_rows(self.indptr, self.indices, self.data, *pairs, weights, factor, out)

    def pull_counts(self, pairs: Pairs, counts: Floats, gradient: Floats, factor: float = 1.0) -> None:
        """Transpose of ``add_scores``: add what counts (N, cells) pull on each weight, times a factor."""
        pull_rows(self.indptr, self.indices, self.data, *pairs, counts, gradient, factor)

    def pull_twice(
        self, pairs: Pairs, counts: Floats, first: Floats, factor: float, second: Floats, other: float
    ) -> None:
        """``pull_counts`` into two vectors, each with a factor of its own, in one pass."""
        pull_rows_twice(self.indptr, self.indices, self.data, *pairs, counts, first, factor, second, other)


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

    def add_scores(self, pairs: Pairs, weights: Floats, out: Floats, factor: float = 1.0) -> None:
        x = (self.names, self.begin, self.rows, self.data)
        score_columns(*x, *pairs, weights, factor, out, np.empty((1, out.shape[1])))

    def pull_counts(self, pairs: Pairs, counts: Floats, gradient: Floats, factor: float = 1.0) -> None:
        x, counts = (self.names, self.begin, self.rows, self.data), np.ascontiguousarray(counts)
        pull_columns(*x, *pairs, counts, gradient, factor, np.empty((1, counts.shape[1])))

    def pull_twice(
        self, pairs: Pairs, counts: Floats, first: Floats, factor: float, second: Floats, other: float
    ) -> None:
        x, counts = (self.names, self.begin, self.rows, self.data), np.ascontiguousarray(counts)
        targets = (first, factor, second, other)
        pull_columns_twice(*x, *pairs, counts, *targets, np.empty((1, counts.shape[1])))


@dataclass(frozen=True)
class BothWays(Sparse):
    """Named features of some steps by step and by feature: each way is faster for something."""

    columns: Columns

    def add_scores(self, pairs: Pairs, weights: Floats, out: Floats, factor: float = 1.0) -> None:
        self.columns.add_scores(pairs, weights, out, factor)

    def pull_counts(self, pairs: Pairs, counts: Floats, gradient: Floats, factor: float = 1.0) -> None:
        self.columns.pull_counts(pairs, counts, gradient, factor)

    def pull_twice(
        self, pairs: Pairs, counts: Floats, first: Floats, factor: float, second: Floats, other: float
    ) -> None:
        few = MANY * np.count_nonzero(counts) < counts.size  # those of mistakes: most steps have none
        pull = super().pull_twice if few else self.columns.pull_twice
        pull(pairs, counts, first, factor, second, other)


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

    Observations that are ``shared`` belong to a data set: what is taken from them has the tables of segment functions
    in common with them. Pickled, they stand alone.
    """

    offsets: Ints  # (sequences + 1,)
    sparse: Sparse | Columns | None
    dense: Floats | None  # (N, F)
    raw: Sequence[Any] = field(repr=False)  # what the user gave, for segment functions
    origin: Origin | None = field(default=None, repr=False, compare=False)
    tables: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)  # of these sequences

    @property
    def steps(self) -> int:
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
        """The same as a data set: each table is computed once, and serves all that is taken from it.

        For training data, whose sequences are taken again and again. The tables stay as long as the observations.
        """
        return replace(self, origin=self.alone(), tables={})

    def alone(self) -> Origin:
        """These sequences as a data set of their own."""
        return Origin(DataSet(self.offsets, self.raw), np.arange(len(self.offsets) - 1))

    def by_columns(self) -> Observations:
        """The same, made ready to be scored again and again."""
        return self if self.sparse is None else replace(self, sparse=of_names(self).by_columns())

    def both_ways(self) -> Observations:
        """The same, made ready to be scored again and again and to be pulled on by few counts."""
        return self if self.sparse is None else replace(self, sparse=of_names(self).both_ways())

    def __getstate__(self) -> dict[str, Any]:
        """Without the data set and without tables, which may be far larger than these sequences."""
        return {**self.__dict__, "origin": None, "tables": {}}


def of_names(observations: Observations) -> Sparse:
    """The named features by step, which the encoder has made."""
    assert isinstance(observations.sparse, Sparse)
    return observations.sparse


def of_columns(observations: Observations) -> Floats:
    """The numeric columns, which the encoder has made."""
    assert observations.dense is not None
    return observations.dense


def rows_of(offsets: Ints, which: Ints) -> slice | Ints:
    """The steps of some sequences: a slice if they are neighbours in order."""
    if (np.diff(which) == 1).all():
        return slice(int(offsets[which[0]]), int(offsets[which[-1] + 1]))
    return ranges(offsets[which], np.diff(offsets)[which])


def entries_of(x: Sparse, steps: Ints) -> tuple[Ints, Ints]:
    """The entries of some steps one after the other, and how many each has."""
    counts = np.diff(x.indptr)[steps]
    return ranges(x.indptr[steps], counts), counts
