"""Learns feature names and scales from training data, and packs observations by them."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.observations.kernels import find_names, store_names
from hscrf.observations.packed import Observations, Sparse
from hscrf.observations.readers import (
    KINDS,
    check_names,
    kind_of,
    offsets_of,
    pack_items,
    stack_dense,
    stack_matrices,
    unnamed,
)


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

        size = 1 << (2 * len(names)).bit_length()
        self.hashes = np.zeros(size, dtype=np.int64)
        self.numbers = np.full(size, -1, dtype=np.int32)
        self.unknown = len(names)
        given = np.fromiter(map(hash, names), dtype=np.int64, count=len(names))
        store_names(given, self.hashes, self.numbers)

    def find(self, hashes: Ints) -> NDArray[np.int32]:
        """The number of each name, ``unknown`` if there is none."""

        found = np.empty(len(hashes), dtype=np.int32)
        find_names(hashes, self.hashes, self.numbers, self.unknown, found)
        return found
