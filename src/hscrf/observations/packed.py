"""Observations of several sequences in one place, a few bytes for each feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints, ranges
from hscrf.observations.kernels import pull_columns, pull_rows, score_columns, score_rows


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

        x = (self.indptr, self.indices, self.data)
        score_rows(*x, pair_at, pair_cell, weights, out)

    def pull_counts(self, pair_at: Ints, pair_cell: NDArray[np.int32], counts: Floats, gradient: Floats) -> None:

        x = (self.indptr, self.indices, self.data)
        pull_rows(*x, pair_at, pair_cell, counts, gradient)


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

        x = (self.names, self.begin, self.rows, self.data)
        score_columns(*x, pair_at, pair_cell, weights, out, np.empty((1, out.shape[1])))

    def pull_counts(self, pair_at: Ints, pair_cell: NDArray[np.int32], counts: Floats, gradient: Floats) -> None:

        x, counts = (self.names, self.begin, self.rows, self.data), np.ascontiguousarray(counts)
        pull_columns(*x, pair_at, pair_cell, counts, gradient, np.empty((1, counts.shape[1])))


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


def entries_of(x: Sparse, steps: Ints) -> tuple[Ints, Ints]:
    """The entries of some steps one after the other, and how many each has."""
    counts = np.diff(x.indptr)[steps]
    return ranges(x.indptr[steps], counts), counts
