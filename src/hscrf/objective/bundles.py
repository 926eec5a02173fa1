"""Small fixed bundles of sequences, prepared for repeated use by stochastic solvers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.engine import Batch
from hscrf.objective.chunk import Chunk
from hscrf.objective.scorer import Scorer
from hscrf.observations.packed import Observations
from hscrf.potentials import Key

if TYPE_CHECKING:
    from hscrf.objective.sharded import Shard

Explained = Callable[[Callable[[], Floats], Ints], AbstractContextManager[None]]
Moves = Sequence[tuple[Floats, Sequence[float]]]


class Bundle:
    """A few sequences: their loss, and steps along its gradient that touch only the weights of their features.

    Weights come as a vector and a factor for each block of them. The second result of ``loss`` and ``mistakes`` is
    opaque: ``move`` uses it to add the gradient to vectors, times a factor for each block.
    """

    def __init__(self, chunk: Chunk, which: Ints, explained: Explained) -> None:
        self.chunk = chunk
        self.which = which
        self.explained = explained

    def __len__(self) -> int:
        return self.which.size

    def loss(self, base: Floats, factors: Floats) -> tuple[float, dict[Key, Floats]]:
        """Return the loss, and the part of its gradient that ``move`` needs."""
        with self.explained(lambda: self._weights(base, factors), self.which):
            return self.chunk.loss_and_counts(base, factors.tolist())

    def mistakes(self, base: Floats, factors: Floats) -> tuple[float, dict[Key, Floats] | None]:
        """Return the margin of the best labels over the true ones, and the data for ``move``; None if no mistake."""
        with self.explained(lambda: self._weights(base, factors), self.which):
            return self.chunk.mistake_counts(base, factors.tolist())

    def move(self, found: dict[Key, Floats], moves: Moves) -> None:
        """Add the gradient to each vector, times its factors."""
        self.chunk.scorer.move(found, self.chunk.observations, *moves)

    def _weights(self, base: Floats, factors: Floats) -> Floats:
        weights = base.copy()
        for (_, piece), factor in zip(self.chunk.scorer.pieces(weights), factors, strict=True):
            piece *= factor
        return weights


class Bundles(Sequence[Bundle]):
    """All sequences of a loss in fixed bundles, each within a shard.

    The bundles of a shard are made together, when the first of them is needed. If the shards are in memory (``stays``),
    all bundles are kept, otherwise those of the shard that was used last. ``spans`` gives the bundles of each shard.
    """

    def __init__(self, shards: Sequence[Shard], order: Ints, size: int, explained: Explained, stays: bool) -> None:
        self.shards, self.explained, self.stays = shards, explained, stays
        self.size = size
        self.orders = by_shard(shards, order)
        self.starts = [0]
        for shard, own in zip(shards, self.orders, strict=True):
            self.starts.append(self.starts[-1] + shard.count_bundles(own, size))
        self.made: dict[int, list[Bundle]] = {}

    @property
    def spans(self) -> list[tuple[int, int]]:
        """First bundle and end of each shard."""
        return list(zip(self.starts[:-1], self.starts[1:], strict=True))

    def __len__(self) -> int:
        return self.starts[-1]

    @overload
    def __getitem__(self, k: int) -> Bundle: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Bundle]: ...
    def __getitem__(self, k: int | slice) -> Bundle | Sequence[Bundle]:
        if isinstance(k, slice):
            return [self[n] for n in range(*k.indices(len(self)))]
        home = bisect_right(self.starts, k) - 1
        if home not in self.made:
            if not self.stays:
                self.made.clear()
            shard = self.shards[home]
            batches: dict[bytes, Batch] = {}
            self.made[home] = [
                Bundle(shard.bundle(which, batches), which, self.explained)
                for which in shard.deal(self.orders[home], self.size)
            ]
        return self.made[home][k - self.starts[home]]


def by_shard(shards: Sequence[Shard], order: Ints) -> list[Ints]:
    """The numbers of sequences that lie in each shard, in the order given."""
    homes = np.searchsorted([shard.first for shard in shards], order, side="right") - 1
    grouped = np.argsort(homes, kind="stable")
    bounds = np.searchsorted(homes[grouped], np.arange(1, len(shards)))
    return np.split(order[grouped], bounds)


def shared_batch(batches: dict[bytes, Batch], scorer: Scorer, observations: Observations) -> Batch:
    """A batch of sequences with these lengths; observations with the same lengths in the same order share it."""
    key = observations.offsets.tobytes()
    return batches.setdefault(key, Batch(scorer.topology, observations.offsets))


def count_of_bundles(sequences: int, complete: int, size: int) -> int:
    """The number of bundles that :func:`bundled` makes, given the numbers of sequences of both kinds.

    >>> count_of_bundles(sequences=5, complete=1, size=3)
    3
    """
    return -(-complete // size) - (-(sequences - complete) // size)


def bundled(lengths: Ints, order: Ints, size: int, kinds: NDArray[np.bool_]) -> list[Ints]:
    """Bundles of at most ``size`` sequences of one kind and of like lengths; equal lengths stay in the order given.

    >>> [which.tolist() for which in bundled(np.array([3, 9, 3, 2]), np.arange(4), 2, np.ones(4, bool))]
    [[3, 0], [2, 1]]
    """
    found = []
    for kind in (False, True):
        own = order[kinds[order] == kind]
        own = own[np.argsort(lengths[own], kind="stable")]
        found += [own[begin : begin + size] for begin in range(0, own.size, size)]
    return found
