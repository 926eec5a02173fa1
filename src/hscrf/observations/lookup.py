"""Hashes of feature names, 64 bits each, and the numbers of names, found by them."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.observations.kernels import kernels
from hscrf.observations.packed import Sparse
from hscrf.observations.readers import pack_items

Hashes = NDArray[np.uint64]


class Hashed(NamedTuple):
    """The hashes of the names of some steps, where each step begins, and the values, if any is not one."""

    hashes: Hashes
    indptr: Ints
    data: Floats


def hash_items(X: Sequence[Any], kind: str, refuse: bool = False) -> Hashed:
    """The names of all steps, in any form; a missing value is an error if ``refuse`` is set.

    >>> found = hash_items([[["a", "b"], []], [["a"]]], "strings")
    >>> found.hashes[[0, 2]].tolist() == 2 * hash_names(["a"]).tolist(), found.indptr.tolist()
    (True, [0, 2, 2, 3])
    """
    names: defaultdict[str, int] = defaultdict(None)
    names.default_factory = names.__len__
    numbers, indptr, data = pack_items(X, kind, names.__getitem__, array("i"), refuse)
    return Hashed(hash_names(names)[numbers], indptr, data)


def hash_names(names: Collection[Any]) -> Hashes:
    """The hash of each name; Python's own for one that is no string."""
    hashes = np.empty(len(names), dtype=np.uint64)
    kernels.hash_names(list(names), hashes)
    return hashes


class Lookup:
    """Finds the numbers of names by their hashes, in a table without strings: at most two cache misses for a name.

    Names with the same hash of 64 bits are treated as equal. For a million names looked up among a million, the
    probability of a mistake is 1 in 18 million.
    """

    def __init__(self, hashes: Hashes) -> None:
        """The hash of each name, in the order of their numbers."""
        size = 1 << (2 * hashes.size).bit_length()
        self.hashes = np.zeros(size, dtype=np.uint64)
        self.numbers = np.full(size, -1, dtype=np.int32)
        self.size = hashes.size
        kernels.store_names(hashes, self.hashes, self.numbers)

    def pack(self, X: Sequence[Any], kind: str, refuse: bool = False) -> Sparse:
        """The known names of feature dicts or strings; with ``refuse`` a missing value is an error."""
        try:
            found = kernels.find_strings(X, self.hashes, self.numbers) if kind == "strings" else None
        except TypeError:  # a name has no hash; the error below says where it is
            found = None
        if found is None:  # not lists of lists of lists
            return self._find(*hash_items(X, kind, refuse))
        indptr, indices = found
        return Sparse(indptr, indices, np.empty(0), self.size)

    def _find(self, hashes: Hashes, indptr: Ints, data: Floats) -> Sparse:
        """The known names of each row, whose hashes begin at indptr; ``data`` are their values, if any is not one."""
        found = np.empty(len(hashes), dtype=np.int32)
        begin, values = np.empty_like(indptr), np.empty_like(data)
        n = kernels.find_names(hashes, indptr, data, self.hashes, self.numbers, begin, found, values)
        return Sparse(begin, found[:n], values[:n], self.size)
