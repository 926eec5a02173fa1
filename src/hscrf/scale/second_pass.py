"""The second pass of packing: convert sequences of the first pass to the final form of a shard."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hscrf.arrays import Ints
from hscrf.errors import SequenceError
from hscrf.estimator.checks import count_states
from hscrf.estimator.frame import Frame, Part
from hscrf.labels.packed import pack_labels
from hscrf.observations.moments import Moments
from hscrf.scale.arrays import joined_observations
from hscrf.scale.memory import keep_memory
from hscrf.scale.shardfile import write_shard
from hscrf.scale.spool import PlacedPart, SpoolFile
from hscrf.scale.tasks import is_stopped

T = TypeVar("T")


class Slice(NamedTuple):
    """Some sequences of a piece, and the number of the stretch that it belongs to."""

    piece: SpoolFile
    begin: int
    stop: int
    stretch: int


@dataclass(frozen=True)
class ShardDraft:
    """The sequences of a shard that is to be written."""

    number: int
    slices: Sequence[Slice]


@dataclass(frozen=True)
class ShardSettings:
    """The settings that all shards of a packing share."""

    frame: Frame  # settled, without names
    numbers: Sequence[str | None]  # for each stretch the file of the final numbers of its names, if they change
    folder: str
    skip: bool  # whether bad sequences are left out
    chunk: int  # steps of a chunk


class PlacedError(Exception):
    """A bad sequence: the number of its source, its place in the source, and the problem."""

    def __init__(self, source: int, place: Any, error: SequenceError) -> None:
        super().__init__(source, place, error)
        self.source, self.place, self.error = source, place, error


@dataclass
class WrittenShard:
    """A shard that was written; without an entry if none of its sequences is good."""

    entry: dict[str, Any] = field(default_factory=dict)  # its entry in the manifest
    counts: list[Ints] = field(default_factory=list)  # steps of each state of each level
    lengths: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    bad: list[PlacedError] = field(default_factory=list)  # sequences that were left out


def measure(draft: ShardDraft) -> Moments:
    """The moments of the numeric columns of a shard, before scaling."""
    return Moments.of(np.concatenate([own.piece.columns(own.begin, own.stop) for own in draft.slices]))


def write_finished(draft: ShardDraft, settings: ShardSettings) -> WrittenShard:
    """Write a shard; the first bad sequence is a :class:`PlacedError`, unless bad ones are left out."""
    keep_memory()
    return WrittenShard() if is_stopped(settings.folder, draft.number) else ShardWriter(draft, settings).run()


class ShardWriter:
    """Writes one shard."""

    def __init__(self, draft: ShardDraft, settings: ShardSettings) -> None:
        self.draft, self.settings = draft, settings
        self.path = os.path.join(settings.folder, f"{draft.number:06d}.shard")
        self.bad: list[PlacedError] = []

    def run(self) -> WrittenShard:
        """Write the shard and return its entry."""
        topology = self.settings.frame.topology
        assert topology is not None
        parts = list(self._final())
        if not parts:
            return WrittenShard(bad=self.bad)
        whole = Part(
            joined_observations([own.part.observations for own in parts]), [y for own in parts for y in own.part.labels]
        )
        placed = PlacedPart(
            whole, *(np.concatenate(places) for places in zip(*(own[1:] for own in parts), strict=True))
        )
        written = self._without_bad(placed, self._write)
        if written is None:
            return WrittenShard(bad=self.bad)
        placed, (digest, chunks) = written
        labels, lengths = placed.part.labels, np.diff(placed.part.observations.offsets)
        entry = {
            "file": os.path.basename(self.path),
            "digest": digest,
            "count": len(labels),
            "steps": int(lengths.sum()),
        }
        entry |= {"chunks": chunks, "complete": int(pack_labels(labels).complete_sequences().sum())}
        return WrittenShard(entry, count_states(topology, labels), lengths, self.bad)

    def _final(self) -> Iterator[PlacedPart]:
        """The sequences of each slice in their final form."""
        for own in self.draft.slices:
            placed = own.piece.read(own.begin, own.stop)
            file = self.settings.numbers[own.stretch]
            numbers = None if file is None else np.load(file, mmap_mode="r")
            found = self._without_bad(placed, partial(self._finished, numbers))
            if found is not None:
                yield found[1]

    def _finished(self, numbers: Any, placed: PlacedPart) -> PlacedPart:
        """Sequences in their final form, from the final numbers of their names."""
        return placed._replace(part=self.settings.frame.final(placed.part, numbers))

    def _write(self, placed: PlacedPart) -> tuple[str, int]:
        """Write sequences in their final form; return the checksum of the file and its number of chunks."""
        topology = self.settings.frame.topology
        assert topology is not None
        return write_shard(
            self.path, placed.part, topology, placed.source, placed.place, self.settings.skip, self.settings.chunk
        )

    def _without_bad(self, placed: PlacedPart, attempt: Callable[[PlacedPart], T]) -> tuple[PlacedPart, T] | None:
        """The sequences for which the attempt succeeds, and its result; None if all are bad."""
        while True:
            try:
                return placed, attempt(placed)
            except SequenceError as error:
                n = error.sequence
                if n is None:
                    raise
                self.bad.append(PlacedError(int(placed.source[n]), tuple(placed.place[n].tolist()), error))
                if not self.settings.skip:
                    raise self.bad[-1] from None
                if len(placed.part.labels) == 1:
                    return None
                placed = placed.without(n)
