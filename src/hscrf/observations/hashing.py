"""Names as 64 bits each: strings go into one text at a time, which a kernel reads without a look at any of them."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

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


class Hashed(NamedTuple):
    """The hashes of the names of some steps, where each step begins, and the values, if any is not one."""

    hashes: Hashes
    indptr: Ints
    data: Floats


def hash_items(X: Sequence[Any], kind: str) -> Iterator[Hashed]:
    """The names of all steps, piece by piece; ``TypeError`` for all but lists of lists of lists of strings.

    >>> [piece] = hash_items([[["a", "b"], []], [["a"]]], "strings")
    >>> (piece.hashes[[0, 2]] == hash_names(["a"])).all(), piece.indptr.tolist()
    (np.True_, [0, 2, 2, 3])
    """
    if kind != "strings" or not is_of_lists(X):
        raise TypeError(f"X holds {kind}, expected lists of strings in lists")
    steps = chain.from_iterable(X)
    while piece := list(islice(steps, PIECE)):
        if not is_of_lists(piece):
            raise TypeError("a step of X is no list")
        counts = np.fromiter(map(len, piece), dtype=np.int64, count=len(piece))
        yield Hashed(hash_steps(piece, counts), begins_of(counts), np.empty(0))


def hash_anything(X: Sequence[Any], kind: str, refuse: bool = False) -> Hashed:
    """The same for steps of any form, all at once; a name that is no string has Python's own hash."""
    names: defaultdict[str, int] = defaultdict(None)
    names.default_factory = names.__len__
    numbers, indptr, data = pack_items(X, kind, names.__getitem__, array("i"), refuse)
    return Hashed(hash_names(names)[numbers], indptr, data)


def hash_names(names: Collection[Any]) -> Hashes:
    """The hash of each name; Python's own for one that is no string."""
    kept = [name if isinstance(name, str) else "" for name in names]
    hashes = hash_steps([kept], np.array([len(kept)]))
    for k, name in enumerate(names):
        if not isinstance(name, str):
            hashes[k] = hash(name) & ALL
    return hashes


def hash_steps(steps: Sequence[Sequence[str]], counts: Ints) -> Hashes:
    """The hashes of the names of some steps, given their number for each; ``TypeError`` if one is not a string."""
    hashes = np.empty(int(counts.sum()), dtype=np.uint64)
    text = BETWEEN.join(chain(map(BETWEEN.join, steps), END)).encode(errors="surrogatepass")
    if hash_text(np.frombuffer(text, dtype=np.uint8), counts, hashes) + 8 != len(text):
        return _hashes_of_torn(list(chain.from_iterable(steps)))
    return hashes


def _hashes_of_torn(names: Sequence[str]) -> Hashes:
    """The hashes of names some of which hold what stands between names; Python's own for those."""
    hashes = hash_steps([["" if BETWEEN in name else name for name in names]], np.array([len(names)]))
    for k, name in enumerate(names):
        if BETWEEN in name:
            hashes[k] = hash(name) & ALL
    return hashes
