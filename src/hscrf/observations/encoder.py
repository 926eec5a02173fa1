"""Learns feature names and scales from training data, and packs observations by them."""

from __future__ import annotations

import copy
import warnings
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.errors import several
from hscrf.observations.columns import INDICATOR, Rows, Table, percent, read_rows, shortened_list, unnamed
from hscrf.observations.lookup import Lookup, hash_names
from hscrf.observations.moments import Moments
from hscrf.observations.packed import SHARD, Observations, Sparse, of_columns, of_names
from hscrf.observations.readers import (
    KINDS,
    check_names,
    is_of_lists,
    kind_of,
    lengths_of,
    offsets_of,
    pack_items,
    stack_matrices,
)
from hscrf.observations.sieve import Sieve, Sieved, without_rare

Numbers = NDArray[np.int32]  # (names,) numbers of names in another encoder

MISSING = ("indicator", "refuse")  # treatments of missing numbers


class ObservationEncoder:
    """Learns feature names and scales from training data and packs observations by them.

    Observations of one sequence are a list of dicts, a list of lists of strings, a 2-D array, a scipy sparse matrix, or
    a DataFrame. In dicts, numbers keep their value and strings become ``name=value``. Names that occur in training
    fewer than ``min_count`` times, or not at all, are left out.

    The columns of arrays and DataFrames are treated one by one: numbers are standardised, text becomes ``name=value``.
    A missing number (None, NaN) contributes nothing. A column with missing numbers in training has an indicator, which
    is 1 where the number is missing and 0 elsewhere. ``missing="refuse"`` makes missing numbers an error.

    Learning takes one pass (``fit_pack``) or several parts. ``update`` learns from a part. ``merge`` adds the names and
    statistics of another encoder that learned from later parts. ``settle`` ends learning. Parts in order give the
    result of one pass: names in order of appearance, their counts, and, up to rounding, means and scales.
    """

    def __init__(self, min_count: int = 1, standardize: bool = True, missing: str = "indicator") -> None:
        if missing not in MISSING:
            raise ValueError(f"missing is {missing!r}, expected {' or '.join(map(repr, MISSING))}")
        self.min_count = min_count
        self.standardize = standardize
        self.missing = missing
        self.shard = SHARD  # steps whose moments are computed together
        self._forget()

    @property
    def refuses(self) -> bool:
        """Whether a missing number is an error."""
        return self.missing == "refuse"

    @property
    def has_names(self) -> bool:
        """Whether there are named features, which may be fewer or more at each step."""
        return self.kind != "dense"

    @property
    def has_columns(self) -> bool:
        """Whether there are numeric columns."""
        return self.kind in ("dense", "table")

    def _forget(self) -> None:
        self.names: dict[str, int] = {}
        self.given: list[str] = []  # the columns of arrays and DataFrames
        self.texts: list[int] = []  # which of them hold text
        self.columns: list[str] = []  # the others and, once settled, the indicators of those that may be missing
        self.steps = 0  # of training
        self.holes: Ints = np.zeros(0, dtype=np.int64)  # (numeric columns,) number of missing values in each
        self.mean: Floats = np.empty(0)
        self.scale: Floats = np.empty(0)
        self.kind = ""
        self.settled = False
        self.counts: Ints = np.zeros(0, dtype=np.int64)  # (names,) number of occurrences; empty once settled
        self.frequent: NDArray[np.bool_] | None = None  # (names,) of all names met in training, those that were kept
        self.sieve: Sieve | None = None  # drops names that are known to be rare
        self.moments: Moments | None = None  # of numeric columns to be standardised; None once settled
        self.measures = True  # whether ``update`` computes moments; if not, ``measure`` receives them
        self.n_names = 0  # once settled
        self.__dict__.pop("lookup", None)

    # -- learning

    def fit_pack(self, X: Sequence[Any]) -> Observations:
        """Learn from X alone and pack it."""
        self._forget()
        return self.settle(self.update(X))[0]

    def update(self, X: Sequence[Any]) -> Observations:
        """Learn from one more part and pack it provisionally; :meth:`settle` packs it in the final form."""
        kind = kind_of(X)
        self._check_learning(kind)
        offsets = offsets_of(X)
        dense = sparse = None
        if kind == "dense":
            check_names_of(X, self.given, "earlier parts have")
            rows = read_rows(X, self.texts if self.kind else None, self.refuses)
            lengths = lengths_of(X)
            measured = self.standardize and self.measures
            self._learn_columns(rows, Moments.in_shards(rows.numbers, lengths, self.shard) if measured else None)
            dense = rows.numbers
            if rows.texts:
                kind, sparse = "table", self._update_names([rows.names()], "strings")
        elif kind == "matrix":
            sparse = stack_matrices(X)
            names = {str(k): k for k in range(sparse.size)}
            self._check_width(len(names))
            self._learn_names(names, count_names(sparse))
        else:
            sparse = self._update_names(X, kind)
        self.kind = kind
        self.steps += int(offsets[-1])
        return Observations(offsets, sparse, dense, X).shared()

    def _update_names(self, X: Sequence[Any], kind: str) -> Sparse:
        """Learn the names in feature dicts or strings, and number them."""
        found = self._growing()
        indices, indptr, data = pack_items(X, kind, found.__getitem__, array("i"), self.refuses)
        check_names(X, found)
        sparse = Sparse(indptr, indices, data, len(found))
        sparse = sparse if self.sieve is None else without_rare(sparse)
        self._learn_names(dict(found), count_names(sparse))
        return sparse

    def _growing(self) -> dict[str, int]:
        """The names known so far; an unknown name gets the next number when it is looked up."""
        if self.sieve is not None:
            return Sieved(self.names, self.sieve)
        found: defaultdict[str, int] = defaultdict(None, self.names)
        found.default_factory = found.__len__
        return found

    def measure(self, moments: Moments) -> None:
        """Merge moments of numeric columns that were computed elsewhere, from later data."""
        self.moments = moments if self.moments is None else self.moments.merged(moments)

    def merge(self, other: ObservationEncoder) -> Numbers:
        """Merge another encoder: names that only it has come last, counts are added.

        Returns the numbers (names,) that its names have here.
        """
        numbers: list[int] = []
        settings = [(encoder.min_count, encoder.standardize, encoder.missing) for encoder in (self, other)]
        if settings[0] != settings[1]:
            raise ValueError("the encoders differ in min_count, standardize or missing, expected the same settings")
        if not other.kind:
            return np.array(numbers, dtype=np.int32)
        other._check_learning(other.kind)
        self._check_learning(other.kind)
        if other.has_columns:
            if self.kind:
                check_columns(other.given, self.given, "earlier parts have")
                self._check_texts(other.texts)
            self._add_columns(other.given, other.texts, other.holes, other.moments)
        if other.has_names:
            if other.kind == "matrix":
                self._check_width(len(other.names))
            names = dict(self.names)
            numbers = [names.setdefault(name, len(names)) for name in other.names]
            counts = np.zeros(len(names), dtype=np.int64)
            counts[numbers] = other.counts
            self._learn_names(names, counts)
        self.kind = other.kind
        self.steps += other.steps
        return np.array(numbers, dtype=np.int32)

    def settle(self, *observations: Observations) -> list[Observations]:
        """End learning: rare names are dropped, the others numbered anew, and the scale of numeric columns is fixed.

        Returns the observations, which ``update`` of this encoder has packed, in the final numbering and scale.
        """
        if not self.kind or self.settled:
            raise ValueError("the encoder is settled or has learned nothing, expected one that learns")
        self.settled = True
        counts, self.counts = self.counts, np.zeros(0, dtype=np.int64)
        if self.has_columns:
            self._fix_scale()
        if self.has_names and self.min_count > 1:
            self.frequent = counts >= self.min_count
            kept = [name for name, k in self.names.items() if self.frequent[k]]
            self.names = {name: k for k, name in enumerate(kept)}
        self.n_names = len(self.names)
        return [self.final(part) for part in observations]

    def final(self, observations: Observations, numbers: Numbers | None = None) -> Observations:
        """Observations that ``update`` has packed, in the numbering and scale of the settled encoder.

        If an encoder that was merged into this one has packed them, ``numbers`` are its :meth:`final_numbers`.
        """
        if self.has_columns:
            observations = replace(observations, dense=self._standardized(of_columns(observations)))
        if not self.has_names:
            return observations
        sparse = of_names(observations)
        if numbers is not None:
            sparse = without_rare(replace(sparse, indices=numbers[sparse.indices], size=self.n_names))
        elif self.frequent is not None:  # names that came later are not in this part
            sparse = sparse.keep(self.frequent[: sparse.size])
        return replace(observations, sparse=replace(sparse, size=self.n_names))

    def final_numbers(self, numbers: Numbers) -> Numbers:
        """The numbers in the settled encoder of names that had these numbers before; -1 for rare names."""
        if self.frequent is None:
            return numbers
        new = np.where(self.frequent, np.cumsum(self.frequent) - 1, -1).astype(np.int32)
        found: Numbers = new[numbers]
        return found

    def without_names(self) -> ObservationEncoder:
        """A copy without names, for processes that only convert observations to their final form."""
        found = copy.copy(self)
        found.names, found.frequent, found.sieve = {}, None, None
        return found

    def _check_learning(self, kind: str) -> None:
        """Only an encoder that is not settled can learn, and only from observations of one kind."""
        if self.settled:
            raise ValueError("the encoder is settled, expected one that still learns")
        if self.kind and kind != self.kind and {kind, self.kind} != {"dense", "table"}:
            raise ValueError(f"X holds {KINDS[kind]}, but earlier parts hold {KINDS[self.kind]}")

    def _check_width(self, width: int) -> None:
        if self.kind and width != len(self.names):
            raise ValueError(f"X has {several(width, 'column')}, but earlier parts have {len(self.names)}")

    def _learn_names(self, names: dict[str, int], counts: Ints) -> None:
        """Store all names known now, and add how often each occurs in the new part."""
        counts[: self.counts.size] += self.counts
        self.names, self.counts = names, counts

    def _learn_columns(self, rows: Rows, moments: Moments | None) -> None:
        if self.kind:
            check_columns(rows.columns, self.given, "earlier parts have")
        self._add_columns(rows.columns, rows.texts, np.isnan(rows.numbers).sum(axis=0), moments)

    def _check_texts(self, texts: list[int]) -> None:
        if texts != self.texts:
            k = min(set(texts) ^ set(self.texts))
            one, other = ("text", "numbers") if k in texts else ("numbers", "text")
            raise ValueError(f"column {self.given[k]!r} holds {one}, but {other} in earlier parts")

    def _add_columns(self, given: list[str], texts: list[int], holes: Ints, moments: Moments | None) -> None:
        self.given, self.texts = self.given or list(given), list(texts)
        self.columns = self._numeric
        self.holes = self.holes + holes if self.holes.size else holes
        self.moments = moments if self.moments is None or moments is None else self.moments.merged(moments)

    @property
    def _numeric(self) -> list[str]:
        """The given columns that hold numbers."""
        return [name for k, name in enumerate(self.given) if k not in self.texts]

    @property
    def indicated(self) -> Ints:
        """The numeric columns that have an indicator."""
        return np.flatnonzero(self.holes)

    def _fix_scale(self) -> None:
        """Fix means and scales; indicators stay as they are."""
        self.columns = self._numeric + [INDICATOR.format(self._numeric[k]) for k in self.indicated]
        self.mean, self.scale = np.zeros(len(self.columns)), np.ones(len(self.columns))
        if self.moments is not None:
            size = self.moments.mean.size
            self.mean[:size], self.scale[:size], self.moments = self.moments.mean, self.moments.scale(), None

    # -- packing

    def pack(self, X: Sequence[Any]) -> Observations:
        """Pack new observations; unknown names are ignored."""
        kind = kind_of(X)
        if kind == "dense" and self.kind == "dicts" and isinstance(X[0], Table):  # columns of tables in older models
            X, kind = [list(x) for x in X], "dicts"
        if kind == "dense" and self.kind == "strings" and is_of_lists(X):
            kind = "strings"  # anything but a string is an unknown name
        if kind != self.kind and not ({kind, self.kind} <= {"dicts", "strings"} or (kind == "dense" and self.texts)):
            raise ValueError(f"X holds {KINDS[kind]}, but the model was trained on {KINDS[self.kind]}")
        if kind == "dense":
            return self._pack_rows(X)
        if kind == "matrix":
            return Observations(offsets_of(X), self._known_columns(stack_matrices(X)), None, X)
        return Observations(offsets_of(X), self.lookup.pack(X, kind, self.refuses), None, X)

    def _pack_rows(self, X: Sequence[Any]) -> Observations:
        check_names_of(X, self.given, "the model was trained on")
        rows = read_rows(X, self.texts, self.refuses)
        check_columns(rows.columns, self.given, "the model was trained on")
        rows = rows._replace(columns=self.given)
        sparse = self.lookup.pack([rows.names()], "strings") if self.texts else None
        return Observations(offsets_of(X), sparse, self._standardized(rows.numbers), X)

    @cached_property
    def lookup(self) -> Lookup:
        """The numbers of the names by their hashes; made when first used."""
        return Lookup(hash_names(self.names))

    def _standardized(self, rows: Floats) -> Floats:
        """Numbers (N, F) centred and scaled, 0 where one is missing; then the indicators."""
        size = rows.shape[1]
        found = (rows - self.mean[:size]) / self.scale[:size]
        missing = np.isnan(rows)
        if not missing.any() and not self.holes.any():
            return found
        new = np.flatnonzero(missing.any(axis=0) & (self.holes == 0))
        if new.size:
            told = f"column{'s' * (new.size > 1)} {', '.join(repr(self.columns[k]) for k in new)}"
            problem = f"numbers are missing in {told}, but none were missing in training"
            warnings.warn(f"{problem}: they add nothing to the score", stacklevel=2)
        found[missing] = 0.0
        return np.hstack([found, missing[:, self.indicated]])

    def _known_columns(self, sparse: Sparse) -> Sparse:
        mask = np.zeros(sparse.size, dtype=bool)
        known = np.array([int(name) for name in self.names], dtype=np.int64)
        if known.size and known.max() >= sparse.size:
            raise ValueError(
                f"X has {several(sparse.size, 'column')}, but the model was trained on at least {known.max() + 1}"
            )
        mask[known] = True
        return sparse.keep(mask)

    def missing_shares(self) -> list[str]:
        """The columns with missing numbers in training, grouped by their shares of missing numbers."""
        shares = {self._numeric[k]: percent(self.holes[k] / max(self.steps, 1)) for k in self.indicated}
        return [
            f"{share} missing in {shortened_list([name for name in shares if shares[name] == share])}"
            for share in dict.fromkeys(shares.values())
        ]

    # -- files and other processes

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lookup: another process builds it faster than it unpickles it."""
        return {name: value for name, value in self.__dict__.items() if name != "lookup"}

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """JSON-able settings, and arrays, from which :meth:`restore` makes the same settled encoder."""
        settings = {
            "min_count": self.min_count,
            "standardize": self.standardize,
            "missing": self.missing,
            "kind": self.kind,
            "names": list(self.names),
            "columns": list(self.columns),
            "given": list(self.given),
            "texts": list(self.texts),
            "steps": self.steps,
            "holes": self.holes.tolist(),
        }
        return settings, {"mean": self.mean, "scale": self.scale}

    @classmethod
    def restore(cls, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> ObservationEncoder:
        """The encoder whose :meth:`state` this is."""
        encoder = cls(settings["min_count"], settings["standardize"], settings.get("missing", cls().missing))
        encoder.kind = settings["kind"]
        encoder.names = {name: k for k, name in enumerate(settings["names"])}
        encoder.columns = list(settings["columns"])
        encoder.given = list(settings.get("given", encoder.columns))
        encoder.texts = list(settings.get("texts", ()))
        encoder.steps = settings.get("steps", 0)
        encoder.holes = np.array(settings.get("holes", [0] * len(encoder.given)), dtype=np.int64)
        encoder.mean, encoder.scale = arrays["mean"], arrays["scale"]
        encoder.settled = True
        return encoder


def count_names(sparse: Sparse) -> Ints:
    """The number of entries of each feature."""
    return np.bincount(sparse.indices, minlength=sparse.size).astype(np.int64, copy=False)


def check_names_of(X: Sequence[Any], known: list[str], who: str) -> None:
    """Compare the names of columns, if there are any on both sides, before any cell is read."""
    for x in X:
        if known and hasattr(x, "columns"):
            check_columns([str(name) for name in x.columns], known, who)


def check_columns(given: list[str], known: list[str], who: str) -> None:
    """Columns must agree in number and, where both sides name them, in their names."""
    named = unnamed(len(given)) != given and unnamed(len(known)) != known
    lost, new = ([name for name in one if name not in other] for one, other in ((known, given), (given, known)))
    if named and len(lost) + len(new) == 1:
        told = f"lacks the column {lost[0]!r}" if lost else f"has the column {new[0]!r}"
        raise ValueError(f"X {told}, but {who} {known}")
    if len(given) != len(known):
        raise ValueError(f"X has {several(len(given), 'column')}, but {who} {len(known)}")
    if given != known and named:
        order = "" if lost else " in another order"
        raise ValueError(f"X has the columns {given}{order}, but {who} {known}")
