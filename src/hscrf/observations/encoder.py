"""Learns feature names and scales from training data, and packs observations by them."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.observations.hashing import hash_names
from hscrf.observations.lookup import Lookup
from hscrf.observations.moments import Moments
from hscrf.observations.packed import Observations, Sparse, of_columns, of_names
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
from hscrf.observations.sieve import Sieve, Sieved, without_rare


class Encoder:
    """Learns feature names and scales from training data and packs observations by them.

    Observations of one sequence: a list of dicts (numbers keep their value, strings become ``name=value``), a list of
    lists of strings, a 2-D array, a scipy sparse matrix, or a DataFrame. Names that occur in training fewer than
    ``min_count`` times, or not at all, are left out.

    It learns at once (``fit_pack``) or part by part: ``update`` learns from a part, ``merge`` takes over what another
    encoder has learned from later parts, ``settle`` ends learning. Parts in order give what one pass over all of them
    gives: names in order of appearance, their counts, and, up to rounding, means and scales.
    """

    def __init__(self, min_count: int = 1, standardize: bool = True) -> None:
        self.min_count = min_count
        self.standardize = standardize
        self._forget()

    def _forget(self) -> None:
        self.names: dict[str, int] = {}
        self.columns: list[str] = []
        self.mean: Floats = np.empty(0)
        self.scale: Floats = np.empty(0)
        self.kind = ""
        self.settled = False
        self.counts: Ints = np.zeros(0, dtype=np.int64)  # (names,) how often each occurs; empty once settled
        self.frequent: NDArray[np.bool_] | None = None  # (names,) of all names met in training, those that were kept
        self.sieve: Sieve | None = None  # holds back names that are known to be rare
        self.moments: Moments | None = None  # of numeric columns to be standardised; None once settled
        self.__dict__.pop("lookup", None)

    # -- learning

    def fit_pack(self, X: Sequence[Any]) -> Observations:
        """Learn from X alone and pack it."""
        self._forget()
        return self.settle(self.update(X))[0]

    def update(self, X: Sequence[Any]) -> Observations:
        """Learn from one more part and pack it by what is known so far: :meth:`settle` packs it for good."""
        kind = kind_of(X)
        self._check_learning(kind)
        if kind == "dense":
            rows, columns = stack_dense(X)
            offsets = offsets_of(X)
            lengths = np.diff(offsets).tolist()
            self._learn_columns(columns, Moments.in_shards(rows, lengths) if self.standardize else None)
            packed = Observations(offsets, None, rows, X)
        elif kind == "matrix":
            sparse = stack_matrices(X)
            names = {str(k): k for k in range(sparse.size)}
            self._check_width(len(names))
            self._learn_names(names, count_names(sparse))
            packed = Observations(offsets_of(X), sparse, None, X)
        else:
            found = self._growing()
            indices, indptr, data = pack_items(X, kind, found.__getitem__, array("i"))
            check_names(X, found)
            sparse = Sparse(indptr, indices, data, len(found))
            sparse = sparse if self.sieve is None else without_rare(sparse)
            self._learn_names(dict(found), count_names(sparse))
            packed = Observations(offsets_of(X), sparse, None, X)
        self.kind = kind
        return packed.shared()

    def _growing(self) -> dict[str, int]:
        """The names known so far, and a number for each new one that is asked for."""
        if self.sieve is not None:
            return Sieved(self.names, self.sieve)
        found: defaultdict[str, int] = defaultdict(None, self.names)
        found.default_factory = found.__len__
        return found

    def merge(self, other: Encoder) -> None:
        """Take over what another encoder has learned: its names come after those known here, its counts are added."""
        if (self.min_count, self.standardize) != (other.min_count, other.standardize):
            raise ValueError("the encoders differ in min_count or standardize, expected the same settings")
        if not other.kind:
            return
        other._check_learning(other.kind)
        self._check_learning(other.kind)
        if other.kind == "dense":
            self._learn_columns(other.columns, other.moments)
        else:
            if other.kind == "matrix":
                self._check_width(len(other.names))
            names = dict(self.names)
            numbers = [names.setdefault(name, len(names)) for name in other.names]
            counts = np.zeros(len(names), dtype=np.int64)
            counts[numbers] = other.counts
            self._learn_names(names, counts)
        self.kind = other.kind

    def settle(self, *observations: Observations) -> list[Observations]:
        """End learning: rare names are dropped, the others numbered anew, and the scale of numeric columns is fixed.

        Returns the observations, which ``update`` of this encoder has packed, in the final numbering and scale.
        """
        if not self.kind or self.settled:
            raise ValueError("the encoder is settled or has learned nothing, expected one that learns")
        self.settled = True
        counts, self.counts = self.counts, np.zeros(0, dtype=np.int64)
        if self.kind == "dense":
            self._fix_scale()
        elif self.min_count > 1:
            self.frequent = counts >= self.min_count
            kept = [name for name, k in self.names.items() if self.frequent[k]]
            self.names = {name: k for k, name in enumerate(kept)}
        return [self.final(part) for part in observations]

    def final(self, observations: Observations) -> Observations:
        """Observations that ``update`` has packed, in the numbering and scale of the settled encoder."""
        if self.kind == "dense":
            return replace(observations, dense=self._standardized(of_columns(observations)))
        sparse = of_names(observations)
        if self.frequent is None:
            return replace(observations, sparse=replace(sparse, size=len(self.names)))
        known = self.frequent[: sparse.size]  # names that came later are not in this part
        return replace(observations, sparse=replace(sparse.keep(known), size=len(self.names)))

    def _check_learning(self, kind: str) -> None:
        """Only an encoder that is not settled can learn, and only from observations of one kind."""
        if self.settled:
            raise ValueError("the encoder is settled, expected one that still learns")
        if self.kind and kind != self.kind:
            raise ValueError(f"X holds {KINDS[kind]}, but earlier parts hold {KINDS[self.kind]}")

    def _check_width(self, width: int) -> None:
        if self.kind and width != len(self.names):
            raise ValueError(f"X has {width} columns, but earlier parts have {len(self.names)}")

    def _learn_names(self, names: dict[str, int], counts: Ints) -> None:
        """All names known now, and how often each occurs in the part that is new."""
        counts[: self.counts.size] += self.counts
        self.names, self.counts = names, counts

    def _learn_columns(self, columns: list[str], moments: Moments | None) -> None:
        if self.kind:
            check_columns(columns, self.columns, "earlier parts have")
        self.columns = self.columns or list(columns)
        self.moments = moments if self.moments is None or moments is None else self.moments.merged(moments)

    def _fix_scale(self) -> None:
        self.mean, self.scale = np.zeros(len(self.columns)), np.ones(len(self.columns))
        if self.moments is not None:
            self.mean, self.scale, self.moments = self.moments.mean, self.moments.scale(), None

    # -- packing

    def pack(self, X: Sequence[Any]) -> Observations:
        """Pack new observations; unknown names are ignored."""
        kind = kind_of(X)
        if kind != self.kind and not {kind, self.kind} <= {"dicts", "strings"}:
            raise ValueError(f"X holds {KINDS[kind]}, but the model was trained on {KINDS[self.kind]}")
        if kind == "dense":
            rows, columns = stack_dense(X)
            check_columns(columns, self.columns, "the model was trained on")
            return Observations(offsets_of(X), None, self._standardized(rows), X)
        if kind == "matrix":
            return Observations(offsets_of(X), self._known_columns(stack_matrices(X)), None, X)
        return Observations(offsets_of(X), self.lookup.pack(X, kind), None, X)

    @cached_property
    def lookup(self) -> Lookup:
        return Lookup(hash_names(self.names))

    def _standardized(self, rows: Floats) -> Floats:
        return (rows - self.mean) / self.scale

    def _known_columns(self, sparse: Sparse) -> Sparse:
        mask = np.zeros(sparse.size, dtype=bool)
        known = np.array([int(name) for name in self.names], dtype=np.int64)
        if known.size and known.max() >= sparse.size:
            raise ValueError(f"X has {sparse.size} columns, but the model was trained on at least {known.max() + 1}")
        mask[known] = True
        return sparse.keep(mask)

    # -- files and other processes

    def __getstate__(self) -> dict[str, Any]:
        """Without the lookup, which another process makes faster than it reads it."""
        return {name: value for name, value in self.__dict__.items() if name != "lookup"}

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """JSON-able settings, and arrays, from which :meth:`restore` makes the same settled encoder."""
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
        """The encoder whose :meth:`state` this is."""
        encoder = cls(settings["min_count"], settings["standardize"])
        encoder.kind = settings["kind"]
        encoder.names = {name: k for k, name in enumerate(settings["names"])}
        encoder.columns = list(settings["columns"])
        encoder.mean, encoder.scale = arrays["mean"], arrays["scale"]
        encoder.settled = True
        return encoder


def count_names(sparse: Sparse) -> Ints:
    """How many entries each feature has."""
    return np.bincount(sparse.indices, minlength=sparse.size).astype(np.int64, copy=False)


def check_columns(given: list[str], known: list[str], who: str) -> None:
    """Columns must agree in number and, where both sides name them, in their names."""
    if len(given) != len(known):
        raise ValueError(f"X has {len(given)} columns, but {who} {len(known)}")
    if given != known and unnamed(len(given)) not in (given, known):
        raise ValueError(f"X has the columns {given}, but {who} {known}")
