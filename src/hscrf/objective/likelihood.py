"""The loss of a model on a packed data set in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.engine import Batch, Evidence
from hscrf.labels.labels import Labels
from hscrf.labels.packed import closed_labels, pack_labels
from hscrf.objective.bundles import bundled, count_of_bundles, shared_batch
from hscrf.objective.chunk import Chunk
from hscrf.objective.margin import Costs
from hscrf.objective.scorer import Scorer
from hscrf.objective.sharded import ShardedLoss
from hscrf.objective.workers import CUTS, Cuts, Workers, cut_chunks
from hscrf.observations.packed import Observations, shard_bounds


class Likelihood(ShardedLoss):
    """The loss of packed observations and their labels, all in memory.

    Labels are closed once. ``costs`` of wrong states make it the softmax-margin loss, see :class:`Chunk`.
    """

    def __init__(
        self,
        scorer: Scorer,
        observations: Observations,
        labels: Sequence[Labels],
        sample_weight: Floats | None = None,
        workers: Workers | None = None,
        costs: Costs | None = None,
        cuts: Cuts = CUTS,
    ) -> None:
        sample_weight = checked_weights(sample_weight, len(labels))
        self.data = PackedData(scorer, observations, labels, sample_weight, costs, cuts.chunk)
        lengths = np.diff(observations.offsets).tolist()
        shards = [PackedShard(self.data, np.arange(a, b)) for a, b in shard_bounds(lengths, cuts.shard)]
        super().__init__(scorer, shards, workers)
        self.observations, self.labels, self.costs = observations, labels, costs
        self.sample_weight, self.complete = self.data.sample_weight, self.data.complete
        self.stays, self.is_complete = True, bool(self.complete.all())

    @property
    def chunks(self) -> list[tuple[Ints, Chunk]]:
        """All chunks in their order, each with the numbers of its sequences."""
        return [item for shard in self.shards for item in shard.items]

    def identity(self) -> list[NDArray[Any]]:
        """Identity of these data: lengths, labels and weights."""
        return [self.observations.offsets, self.data.known.states, self.data.known.ends, self.sample_weight]


class PackedData:
    """The data that all shards in memory share."""

    def __init__(
        self,
        scorer: Scorer,
        observations: Observations,
        labels: Sequence[Labels],
        sample_weight: Floats,
        costs: Costs | None,
        chunk_steps: int = CUTS.chunk,
    ) -> None:
        self.scorer = scorer
        self.observations = observations
        self.labels = labels
        self.sample_weight = sample_weight
        self.costs = costs
        self.chunk_steps = chunk_steps
        self.known = pack_labels(labels)
        self.complete = self.known.complete_sequences()
        partial = np.flatnonzero(~self.complete).tolist()
        self.closed = dict(zip(partial, closed_labels([labels[n] for n in partial], partial), strict=True))

    def cut(self, which: Ints) -> list[Ints]:
        """Chunks of some sequences: those with partial labels first."""
        return cut_by_kind(np.diff(self.observations.offsets), self.complete, which, self.chunk_steps)

    def chunk(self, which: Ints, again: bool = False, batches: dict[bytes, Batch] | None = None) -> Chunk:
        """Some sequences by themselves; ``again`` prepares for many evaluations.

        ``batches`` are shared between all that have the same lengths in the same order.
        """
        observations = self.observations.take(which)
        if self.complete[which[0]]:
            labels: Any = self.known.take(which).hidden(self.scorer.topology)
        else:
            labels = Evidence.of([self.closed[n] for n in which])
        if again:
            observations = observations.divided()
        free = None if batches is None else shared_batch(batches, self.scorer, observations)
        return Chunk(self.scorer, observations, labels, self.sample_weight[which], self.costs, free)


class PackedShard:
    """Sequences of a data set in memory that follow each other; see :class:`hscrf.objective.sharded.Shard`."""

    def __init__(self, data: PackedData, which: Ints) -> None:
        self.data = data
        self.first = int(which[0])
        self.count = int(which[-1]) + 1 - self.first
        self.which = which

    def __len__(self) -> int:
        return self.count

    @cached_property
    def items(self) -> list[tuple[Ints, Chunk]]:
        """All chunks; made when first needed, because some solvers use bundles instead."""
        return [(some, self.data.chunk(some, again=True)) for some in self.data.cut(self.which)]

    @property
    def complete(self) -> Ints:
        return self.which[self.data.complete[self.which]]

    def chunk(self, item: tuple[Ints, Chunk]) -> tuple[Ints, Chunk]:
        return item

    def some(self, which: Ints) -> Iterator[tuple[Ints, Chunk]]:
        return ((some, self.data.chunk(some)) for some in self.data.cut(which))

    def deal(self, order: Ints, size: int) -> list[Ints]:
        return bundled(np.diff(self.data.observations.offsets), order, size, self.data.complete)

    def count_bundles(self, order: Ints, size: int) -> int:
        return count_of_bundles(order.size, int(self.data.complete[order].sum()), size)

    def bundle(self, which: Ints, batches: dict[bytes, Batch]) -> Chunk:
        return self.data.chunk(which, batches=batches)

    def subset(self, which: Ints) -> PackedShard:
        return PackedShard(self.data, which)

    def single(self, n: int) -> tuple[Observations, Labels]:
        return self.data.observations.take([n]), self.data.labels[n]


def cut_by_kind(lengths: Ints, complete: Any, which: Ints, size: int) -> list[Ints]:
    """Chunks of some sequences, those whose labels are not complete first; both arrays are of all sequences."""
    order = which[np.argsort(complete[which], kind="stable")]
    return cut_chunks(lengths, order, complete, size)


def checked_weights(sample_weight: Any, size: int) -> Floats:
    """A weight for each sequence; one if none are given."""
    if sample_weight is None:
        return np.ones(size)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight is {sample_weight!r}, expected a number for each sequence") from None
    if weights.shape != (size,):
        raise ValueError(f"sample_weight has shape {weights.shape}, expected ({size},), a weight for each sequence")
    bad = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if bad.size:
        raise ValueError(f"sample_weight[{bad[0]}] is {weights[bad[0]]}, expected a finite number of at least 0")
    return weights
