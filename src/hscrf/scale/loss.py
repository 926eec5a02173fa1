"""The loss of data in shards on disk, read chunk by chunk and summed in the same order as data in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.engine import Batch, Evidence
from hscrf.errors import SequenceError
from hscrf.labels.labels import Labels
from hscrf.labels.packed import closed_labels
from hscrf.objective.bundles import bundled, count_of_bundles, shared_batch
from hscrf.objective.chunk import Chunk
from hscrf.objective.likelihood import cut_by_kind
from hscrf.objective.margin import Costs
from hscrf.objective.scorer import Scorer
from hscrf.objective.sharded import ShardedLoss
from hscrf.objective.workers import CUTS, Workers
from hscrf.observations.packed import Observations
from hscrf.scale.shardfile import RowsCache, ShardFile, ShardRows


@dataclass
class SharedData:
    """The data that all shards of one loss share."""

    scorer: Scorer
    costs: Costs | None = None
    chunk: int = CUTS.chunk  # steps of a chunk
    loaded: RowsCache = field(default_factory=RowsCache)

    def __getstate__(self) -> dict[str, Any]:
        """Without rows: other processes read their own."""
        return {name: value for name, value in self.__dict__.items() if name != "loaded"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "loaded": RowsCache()})


class StoredShard:
    """A shard on disk that is evaluated; see :class:`hscrf.objective.sharded.Shard`. ``which`` makes it a subset."""

    def __init__(
        self, shared: SharedData, file: ShardFile, weights: Floats | None = None, which: Ints | None = None
    ) -> None:
        self.shared, self.file, self.weights, self.which = shared, file, weights, which
        self.first = file.first

    def __len__(self) -> int:
        return self.file.count

    @cached_property
    def items(self) -> Sequence[Any]:
        """Arguments of :meth:`chunk`: numbers of chunks in the file or, in a subset, numbers of their sequences."""
        return range(self.file.chunks) if self.which is None else self._cut(self.which)

    @property
    def complete(self) -> Ints:
        """Numbers of the sequences with complete labels."""
        if not self.file.complete:
            return np.zeros(0, dtype=np.int64)
        which = np.flatnonzero(self._rows().complete) + self.first
        return which if self.which is None else np.intersect1d(which, self.which)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "items"}

    def chunk(self, item: Any) -> tuple[Ints, Chunk]:
        """Return the numbers of the sequences of a chunk, and the chunk."""
        if isinstance(item, int):
            which, observations, labels = self.file.chunk(item)
            return which + self.first, self._made(which, observations, labels)
        which, chunk = self._taken(item)
        chunk.observations = chunk.observations.divided()
        return which, chunk

    def some(self, which: Ints) -> Iterator[tuple[Ints, Chunk]]:
        """Yield chunks of some sequences, for one evaluation."""
        return map(self._taken, self._cut(which))

    def deal(self, order: Ints, size: int) -> list[Ints]:
        """Return the sequences in bundles of similar lengths."""
        rows = self._rows()
        cuts = bundled(np.diff(rows.observations.offsets), order - self.first, size, rows.complete)
        return [some + self.first for some in cuts]

    def count_bundles(self, order: Ints, size: int) -> int:
        """Return the number of bundles, from the manifest if possible."""
        if (
            order.size < self.file.count and 0 < self.file.complete < self.file.count
        ):  # the number depends on which are complete
            return len(self.deal(order, size))
        return count_of_bundles(order.size, min(self.file.complete, order.size), size)

    def bundle(self, which: Ints, batches: dict[bytes, Batch]) -> Chunk:
        """Return a bundle, for many evaluations."""
        _, chunk = self._taken(which)
        chunk.free = shared_batch(batches, self.shared.scorer, chunk.observations)
        return chunk

    def subset(self, which: Ints) -> StoredShard:
        """Return a shard of only these sequences."""
        return StoredShard(self.shared, self.file, self.weights, which)

    def single(self, n: int) -> tuple[Observations, Labels]:
        """Return one sequence and its labels."""
        rows = self._rows()
        return rows.observations.take([n - self.first]), rows.labels(n - self.first, self.shared.scorer.topology)

    def _rows(self) -> ShardRows:
        return self.shared.loaded.of(self.file)

    def _cut(self, which: Ints) -> list[Ints]:
        """Chunks of some sequences, by their numbers in the whole data set."""
        rows = self._rows()
        cuts = cut_by_kind(np.diff(rows.observations.offsets), rows.complete, which - self.first, self.shared.chunk)
        return [some + self.first for some in cuts]

    def _taken(self, numbers: Ints) -> tuple[Ints, Chunk]:
        """A chunk from the rows of the shard."""
        rows, which, topology = self._rows(), numbers - self.first, self.shared.scorer.topology
        if rows.complete[which[0]]:
            labels: Any = rows.known.take(which).hidden(topology)
        else:
            labels = Evidence.of(closed_labels([rows.labels(n, topology) for n in which.tolist()], numbers.tolist()))
        return numbers, self._made(which, rows.observations.take(which), labels)

    def _made(self, which: Ints, observations: Observations, labels: Any) -> Chunk:
        weights = None if self.weights is None else self.weights[which]
        return Chunk(self.shared.scorer, observations, labels, weights, self.shared.costs)


class StoredLoss(ShardedLoss):
    """The loss of shards on disk. Resident memory: the weights, and a chunk and a gradient for each thread."""

    def __init__(
        self,
        scorer: Scorer,
        files: Sequence[ShardFile],
        sample_weight: Floats | None = None,
        workers: Workers | None = None,
        costs: Costs | None = None,
        complete: bool = True,
        places: Any = None,
        chunk: int = CUTS.chunk,
    ) -> None:
        shared = SharedData(scorer, costs, chunk)
        shards = [
            StoredShard(shared, file, None if sample_weight is None else own_weights(sample_weight, file))
            for file in files
        ]
        super().__init__(scorer, shards, workers)
        self.is_complete = complete
        self.places = places  # finds the source of the sequence of an error

    @contextmanager
    def explained(self, weights: Any, which: Ints) -> Iterator[None]:
        """Raise an error about a sequence with its contradicting labels, and with its file and line."""
        with self.placed(), super().explained(weights, which):
            yield

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Raise an error about a sequence with its file and line."""
        try:
            yield
        except SequenceError as error:
            if error.sequence is None or self.places is None:
                raise
            raise self.places(error.sequence, error) from None

    def identity(self) -> list[NDArray[Any]]:
        """Identity of these data: the checksums of the shards, and the weights."""
        digests = "".join(shard.file.digest for shard in self.shards)
        weights = [shard.weights for shard in self.shards if shard.weights is not None]
        return [np.frombuffer(digests.encode(), dtype=np.uint8), *weights]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out threads, and attributes that only the fitting process needs."""
        return {**self.__dict__, "workers": None, "places": None}


def own_weights(sample_weight: Floats, file: ShardFile) -> Floats:
    """The weights of the sequences of a shard."""
    return sample_weight[file.first : file.first + file.count].copy()
