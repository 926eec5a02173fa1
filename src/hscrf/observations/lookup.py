"""The numbers of names, found by their hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.observations.hashing import Hashes, hash_items
from hscrf.observations.kernels import find_names, find_strings, store_names
from hscrf.observations.packed import Sparse


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
        store_names(hashes, self.hashes, self.numbers)

    def pack(self, X: Sequence[Any], kind: str, refuse: bool = False) -> Sparse:
        """The known names of feature dicts or strings; with ``refuse`` a missing value is an error."""
        try:
            found = find_strings(X, self.hashes, self.numbers) if kind == "strings" else None
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
        n = find_names(hashes, indptr, data, self.hashes, self.numbers, begin, found, values)
        return Sparse(begin, found[:n], values[:n], self.size)
