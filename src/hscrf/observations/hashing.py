"""Names as 64 bits each: strings go into one text at a time, which a kernel reads without a look at any of them."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.observations.kernels import hash_text
from hscrf.observations.readers import begins_of, is_of_lists, pack_items

Hashes = NDArray[np.uint64]

BETWEEN = "\n"  # names in a text
END = ("",) * 9  # so that eight bytes can be read wherever a name begins
PIECE = 1024  # steps whose text is made at a time: it stays in the cache
ALL = (1 << 64) - 1


def hash_items(X: Sequence[Any], kind: str) -> tuple[Hashes, Ints, Floats]:
    """The hashes of all names of feature dicts or strings, where each step begins, and the values, if any is not one.

    >>> hashes, indptr, _ = hash_items([[["a", "b"], []], [["a"]]], "strings")
    >>> (hashes[[0, 2]] == hash_names(["a"])).all(), indptr.tolist()
    (np.True_, [0, 2, 2, 3])
    """
    if kind == "strings" and is_of_lists(X):
        steps = list(chain.from_iterable(X))
        if is_of_lists(steps):
            counts = np.fromiter(map(len, steps), dtype=np.int64, count=len(steps))
            try:
                return hash_steps(steps, counts), begins_of(counts), np.empty(0)
            except TypeError:  # not all of them are strings
                pass
    names: defaultdict[str, int] = defaultdict(None)
    names.default_factory = names.__len__
    numbers, indptr, data = pack_items(X, kind, names.__getitem__, array("i"))
    return hash_names(names)[numbers], indptr, data


def hash_names(names: Collection[Any]) -> Hashes:
    """The hash of each name; Python's own for one that is no string."""
    kept = [name if isinstance(name, str) else "" for name in names]
    hashes = hash_steps([kept], np.array([len(kept)]))
    for k, name in enumerate(names):
        if not isinstance(name, str):
            hashes[k] = hash(name) & ALL
    return hashes


def hash_steps(steps: Sequence[Sequence[str]], counts: Ints) -> Hashes:
    """The hashes of the names of all steps, of which each has so many; ``TypeError`` where one is no string."""
    hashes = np.empty(int(counts.sum()), dtype=np.uint64)
    begin = 0
    for first in range(0, len(steps), PIECE):
        piece, own = steps[first : first + PIECE], counts[first : first + PIECE]
        text = BETWEEN.join(chain(map(BETWEEN.join, piece), END)).encode(errors="surrogatepass")
        stop = begin + int(own.sum())
        if hash_text(np.frombuffer(text, dtype=np.uint8), own, hashes[begin:stop]) + 8 != len(text):
            hashes[begin:stop] = _hashes_of_torn(list(chain.from_iterable(piece)))
        begin = stop
    return hashes


def _hashes_of_torn(names: Sequence[str]) -> Hashes:
    """The hashes of names some of which hold what stands between names; Python's own for those."""
    hashes = hash_steps([["" if BETWEEN in name else name for name in names]], np.array([len(names)]))
    for k, name in enumerate(names):
        if BETWEEN in name:
            hashes[k] = hash(name) & ALL
    return hashes
