"""Hashes of feature names, 64 bits each."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.observations import kernels
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
    >>> (found.hashes[[0, 2]] == hash_names(["a"])).all(), found.indptr.tolist()
    (np.True_, [0, 2, 2, 3])
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
