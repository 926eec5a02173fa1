"""The loss of data that come in shards: the order in which chunks are evaluated and added, wherever they are kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.engine import Batch
from hscrf.errors import InfeasibleError
from hscrf.inference.posterior import Posterior
from hscrf.labels.labels import Labels
from hscrf.objective.bundles import Bundles
from hscrf.objective.chunk import Chunk
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import Workers
from hscrf.observations.packed import Observations
from hscrf.potentials import Potentials

Self = TypeVar("Self", bound="ShardedLoss")
FEW = 2  # chunks of a part of the data: one of complete and one of partial labels


class Shard(Protocol):
    """Some sequences that follow each other, and their chunks. Sequences have their numbers in the whole data set."""

    first: int  # number of the first sequence

    def __len__(self) -> int:
        """Number of sequences; those that a subset leaves out count too."""

    @property
    def items(self) -> Sequence[Any]:
        """The items of an evaluation in order; :meth:`chunk` turns each into a chunk."""

    @property
    def complete(self) -> Ints:
        """Numbers of the sequences with complete labels."""

    def chunk(self, item: Any) -> tuple[Ints, Chunk]:
        """The numbers of the sequences of a chunk, and the chunk."""

    def some(self, which: Ints) -> Iterator[tuple[Ints, Chunk]]:
        """Chunks of some sequences, for one evaluation."""

    def deal(self, order: Ints, size: int) -> list[Ints]:
        """Its sequences in bundles of at most ``size``, of like lengths; the order decides among equal ones."""

    def count_bundles(self, order: Ints, size: int) -> int:
        """How many bundles ``deal`` gives."""

    def bundle(self, which: Ints, batches: dict[bytes, Batch]) -> Chunk:
        """A bundle, for many evaluations; ``batches`` are shared with others."""

    def subset(self, which: Ints) -> Shard:
        """Only these sequences, in the order of their numbers, for many evaluations."""

    def single(self, n: int) -> tuple[Observations, Labels]:
        """One sequence, and its known labels."""


class ShardedLoss:
    """Weighted sum over sequences of log Z(free) - log Z(labels), its gradient, and the perceptron's.

    Complete labels cost one inference, partial ones two. The same bits for any number of threads, in memory or on disk:
    shards and chunks depend on the data alone, and are added in a fixed order.
    """

    def __init__(self, scorer: Scorer, shards: Sequence[Shard], workers: Workers | None = None) -> None:
        self.scorer = scorer
        self.size = scorer.size
        self.shards: Sequence[Any] = shards  # other stores give them more methods
        self.workers = workers or Workers()
        self.n_parts = sum(map(len, shards))
        self.stays = False  # whether the shards stay in memory
        self.is_complete = True  # whether all labels are known

    @property
    def groups(self) -> list[slice]:
        """The weights of each block."""
        return self.scorer.slices

    def bundles(self, order: Ints, size: int) -> Bundles:
        """All sequences in fixed bundles of at most ``size``, each within a shard; the order deals them out."""
        return Bundles(self.shards, order, size, self.explained, self.stays)

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Loss and gradient over all data."""
        return self._sum(weights, [[(shard, item) for item in shard.items] for shard in self.shards])

    def soft_errors(self, weights: Floats) -> Floats:
        """How many labels of each sequence are wrong (see ``Chunk``), in the place of its number; 0 in all others."""
        found = np.zeros(self.n_parts)

        def of_chunk(pair: tuple[Shard, Any]) -> None:
            shard, item = pair
            which, chunk = shard.chunk(item)
            with self.explained(weights, which):
                found[which] = chunk.soft_errors(weights)

        for shard in self.shards:
            self.workers.map(of_chunk, [(shard, item) for item in shard.items])
        return found

    def folds(self: Self, parts: Sequence[Ints]) -> list[tuple[Self, Self]]:
        """For each part of the sequences the loss of all others, and its own.

        Sequences keep their numbers. The losses share their chunks. If all parts have few chunks, the sequences of all
        others are cut anew, into fewer chunks.
        """
        cuts = [self._subsets(part) for part in parts]
        found = []
        for k, own in enumerate(cuts):
            others = [shard for cut in cuts if cut is not own for shard in cut]
            if all(len(shard.items) <= FEW for shard in others):
                others = self._subsets(np.concatenate([part for j, part in enumerate(parts) if j != k]))
            found.append((self.over(others), self.over(own)))
        return found

    def _subsets(self, which: Ints) -> list[Shard]:
        """Shards of some sequences."""
        return [shard.subset(own) for shard, own in self._by_shard(np.sort(which))]

    def of_complete(self: Self) -> Self | None:
        """The loss of the sequences with complete labels; None if there are none, or no others."""
        if self.is_complete:
            return None
        found = [shard.subset(own) for shard in self.shards if (own := shard.complete).size]
        return self.over(found) if found else None

    def over(self: Self, shards: Sequence[Shard]) -> Self:
        """The same over other shards of the same data."""
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__, shards=shards)
        return found

    def frequencies(self) -> Floats:
        """Return how often each weight is used: a sum over steps of squared values of its feature.

        All cells of an array of potentials count as equally probable. So these numbers are, up to a factor near one,
        the diagonal of the Hessian at zero weights of a model in which all steps are independent.
        """
        found = np.zeros(self.size)
        for observations in self.observed():
            steps = observations.steps
            shapes = self.scorer.shapes(steps).items()
            counts = {key: np.full(shape, steps / math.prod(shape)) for key, shape in shapes}
            self.scorer.pull(counts, observations.squared(), found)
        return np.abs(found)

    def observed(self) -> Iterator[Observations]:
        """Yield the observations of all chunks."""
        for shard in self.shards:
            for item in shard.items:
                yield shard.chunk(item)[1].observations

    def part(self, weights: Floats, which: Ints) -> tuple[float, Floats]:
        """Loss and gradient over some sequences."""

        def add(item: tuple[Ints, Chunk], gradient: Floats) -> float:
            numbers, chunk = item
            with self.explained(weights, numbers):
                return chunk.add_to(gradient, weights)

        return self.workers.sum(add, [list(self._some(which))], self.size)

    def mistakes(self, weights: Floats, which: Ints) -> tuple[float, Floats]:
        """Score of the best configuration minus that of the best one that has the labels, and its gradient."""
        total, gradient = 0.0, np.zeros(self.size)
        for numbers, chunk in self._some(which):
            with self.explained(weights, numbers):
                distance, pull = chunk.mistakes(weights)
            total += distance
            gradient += pull
        return total, gradient

    def _sum(self, weights: Floats, shards: Sequence[Sequence[Any]]) -> tuple[float, Floats]:
        def add(pair: tuple[Shard, Any], gradient: Floats) -> float:
            shard, item = pair
            which, chunk = shard.chunk(item)
            with self.explained(weights, which):
                return chunk.add_to(gradient, weights)

        return self.workers.sum(add, shards, self.size)

    def _some(self, which: Ints) -> Iterator[tuple[Ints, Chunk]]:
        for shard, own in self._by_shard(np.asarray(which)):
            yield from shard.some(own)

    def _by_shard(self, which: Ints) -> Iterator[tuple[Shard, Ints]]:
        """The shards that hold some of the sequences, in the given order, and the sequences in each."""
        if len(self.shards) == 1:
            yield self.shards[0], which
            return
        starts = np.array([shard.first for shard in self.shards])
        homes = np.searchsorted(starts, which, side="right") - 1
        for home in dict.fromkeys(homes.tolist()):
            yield self.shards[home], which[homes == home]

    def _shard_of(self, n: int) -> Shard:
        return next(shard for shard, _ in self._by_shard(np.array([n])))

    @contextmanager
    def explained(self, weights: Floats | Callable[[], Floats], which: Ints) -> Iterator[None]:
        """Return the error with the number of the sequence in the data set and its contradicting labels."""
        try:
            yield
        except InfeasibleError as error:
            if error.sequence is None:
                raise
            n = int(which[error.sequence])
            observations, labels = self._shard_of(n).single(n)
            values = self.scorer.values(weights() if callable(weights) else weights, observations)
            potentials = Potentials.from_arrays(self.scorer.topology, labels.length, values)
            raise Posterior(potentials, labels).infeasible().of_sequence(n) from None
