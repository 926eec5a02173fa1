"""Find names that are too rare to be kept, without storing names."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.errors import a_type
from hscrf.observations.packed import Sparse

SLOTS = 1 << 27  # counters of a byte


class Sieve:
    """Counts names by their hashes, in one pass over the data, so that a second pass need not keep the rare ones.

    Names that share a counter look more frequent, never less frequent. So names that the sieve drops occur fewer
    than ``least`` times. The exact counts decide about the others, so the result does not depend on hashes.

    >>> sieve = Sieve(least=2, slots=1 << 10)
    >>> sieve.update(np.array([hash_name("a"), hash_name("b"), hash_name("a")]))
    >>> sieve.is_rare("a"), sieve.is_rare("b")
    (False, True)
    """

    def __init__(self, least: int, slots: int = SLOTS) -> None:
        self.least = min(least, 255)
        self.mask = slots - 1
        self.counts = np.zeros(slots, dtype=np.uint8)

    def update(self, hashes: Ints) -> None:
        """Count names by their hashes."""
        places, counts = np.unique(hashes & self.mask, return_counts=True)
        self.counts[places] = np.minimum(self.counts[places] + counts, 255)

    def merge(self, counts: NDArray[np.uint8]) -> None:
        """Add the counts of another part of the data."""
        room = 255 - self.counts
        np.add(self.counts, np.minimum(counts, room), out=self.counts)

    def is_rare(self, name: str) -> bool:
        """Whether a name occurs fewer than ``least`` times, for certain."""
        return bool(self.counts[hash_name(name) & self.mask] < self.least)


def hash_name(name: str) -> int:
    """The hash of a name; it is the same in all processes, unlike Python's."""
    if not isinstance(name, str):
        raise TypeError(f"the feature {name!r} is {a_type(name)}, expected a string")
    return crc32(name.encode(errors="surrogatepass"))


class Sieved(dict[str, int]):
    """Numbers of names in order of appearance; -1 for those that a sieve drops."""

    def __init__(self, names: dict[str, int], sieve: Sieve) -> None:
        super().__init__(names)
        self.sieve = sieve

    def __missing__(self, name: Any) -> int:
        if isinstance(name, str) and self.sieve.is_rare(name):
            return -1
        self[name] = number = len(self)
        return number


def without_rare(sparse: Sparse) -> Sparse:
    """Rows without the features that have the number -1."""
    kept = sparse.indices >= 0
    counts = np.concatenate([[0], np.cumsum(kept)])[sparse.indptr]
    data = sparse.data[kept] if sparse.data.size else sparse.data
    return Sparse(counts.astype(np.int64), sparse.indices[kept], data, sparse.size)
