"""From sources to shards on disk: one pass over the text, which learns the frame, and one over what it packed."""

from __future__ import annotations

import contextlib
import copy
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hscrf.arrays import Ints
from hscrf.errors import SequenceError
from hscrf.estimator.checks import count_states, warn_of_tags, warn_of_typos
from hscrf.estimator.contract import Learner
from hscrf.estimator.frame import Frame, Part
from hscrf.labels.given import given_labels, schemes_in
from hscrf.labels.labels import Labels
from hscrf.labels.lengths import SegmentLengths
from hscrf.labels.packed import pack_labels
from hscrf.observations import cutting
from hscrf.observations.columns import read_rows
from hscrf.observations.packed import Observations, Sparse, of_names
from hscrf.observations.readers import kind_of, length_of, pack_items
from hscrf.observations.sieve import Sieve
from hscrf.progress import waiting
from hscrf.scale.shardfile import write_shard
from hscrf.scale.sources import Item, Source
from hscrf.scale.spool import Spool
from hscrf.topology import Topology

BATCH = 1 << 15  # steps of named features that are packed at a time: as dicts they weigh far more than packed
MANY = 10_000_000  # names, of about 150 bytes each, after which rare ones are sought before any is kept
TOLD = 20  # messages about bad sequences that are kept
RANKS = ("plain", "bio", "bioes")


class Batch(NamedTuple):
    """Sequences that are packed together, with the numbers of their sources."""

    items: list[Item]
    sources: list[int]

    @property
    def steps(self) -> int:
        return sum(length_of(item.x) for item in self.items)


class Placed(NamedTuple):
    """Sequences, and for each the number of its source (n,) and its place there (n, 2)."""

    part: Part
    source: Ints
    place: Ints


class OtherScheme(Exception):
    """Labels further on are written in another scheme than those at the beginning."""

    def __init__(self, scheme: Any) -> None:
        super().__init__(scheme)
        self.scheme = scheme


class ManyNames(Exception):
    """There are so many names that rare ones should be left out before any is kept."""


class Packer:
    """Packs sources for one model.

    Bad sequences raise an error that names file and line or, with ``skip``, are left out and counted.
    """

    def __init__(self, model: Learner, sources: Sequence[Source], folder: str, skip: bool = False) -> None:
        self.model, self.sources, self.folder, self.skip = model, sources, folder, skip
        self.scheme: Any = None  # None until the first labels are seen
        self.sieve: Sieve | None = None  # once there are too many names
        self._begin()

    def _begin(self) -> None:
        self.skipped, self.told = 0, []  # type: int, list[str]
        self.frame: Frame | None = None
        self.first: Item | None = None  # the first good sequence, which others must agree with
        self.spool = Spool(self.folder)
        self.lengths: list[Ints] = []

    def run(self) -> tuple[dict[str, Any], dict[str, Any], Frame]:
        """Write all shards; what there is to know of them, as a header and arrays, and the settled frame."""
        with waiting("packing", self.model.verbose) as line:
            while True:
                try:
                    self._learn(line)
                    break
                except OtherScheme as found:
                    self.spool.clear()
                    self._begin()
                    self.scheme = found.scheme
                except ManyNames:
                    self.spool.clear()
                    self._begin()
                    self._count(line)
            if self.frame is None:
                raise ValueError(f"there is no sequence in {len(self.sources)} sources, expected at least one")
            return self._write(line)

    # -- first pass

    def _learn(self, line: Any) -> None:
        """Learn from all sequences, and keep them as they are packed by then."""
        self.number = 0  # of the next sequence
        for k, shard in enumerate(self._shards()):
            for batch in shard:
                part, kept = self._update(batch)
                names = 0 if self.frame is None else len(self.frame.encoder.names)
                if names > MANY and self.sieve is None and self.model.min_count > 1:
                    raise ManyNames
                if part is not None:
                    self.spool.add(k, part, [batch.sources[n] for n in kept], [batch.items[n].place for n in kept])
                    self.number += len(kept)
                    self.lengths.append(np.diff(part.observations.offsets))
                if line is not None:
                    line.count = self.number
            if line is not None:
                line.what = f"packing shard {k + 1}, {self.spool.size / 1e6:.0f} MB"

    def _count(self, line: Any) -> None:
        """Count all names by their hashes, so that the rare ones need not be kept."""
        self.sieve = Sieve(self.model.min_count)
        for done, (item, _) in enumerate(self._sequences(), start=1):
            with contextlib.suppress(ValueError, TypeError):  # bad sequences are found when they are packed
                kind, X = kind_of([item.x]), [item.x]
                if kind == "dense":
                    kind, X = "strings", [read_rows(X).names()]
                self.sieve.update(pack_items(X, kind, hash, array("q"))[0])
            if line is not None:
                line.what, line.count = "counting names", done
        self._begin()

    def _shards(self) -> Iterator[Iterator[Batch]]:
        """The sequences cut into shards, as :func:`shard_bounds` cuts lists, each in batches."""
        stream = self._sequences()
        waiting_one = next(stream, None)
        while waiting_one is not None:
            rest: list[Any] = []
            yield self._batches(waiting_one, stream, rest)
            waiting_one = rest[0] if rest else None

    def _batches(self, first: tuple[Item, int], stream: Iterator[tuple[Item, int]], rest: list[Any]) -> Iterator[Batch]:
        """The sequences of one shard; the first of the next one is put into ``rest``."""
        batch, filled, held = Batch([first[0]], [first[1]]), length_of(first[0].x), length_of(first[0].x)
        small = BATCH if is_named(first[0].x) else cutting.SHARD
        for item, source in stream:
            length = length_of(item.x)
            if filled + length > cutting.SHARD:
                rest.append((item, source))
                break
            if held >= small:
                yield batch
                batch, held = Batch([], []), 0
            batch.items.append(item)
            batch.sources.append(source)
            filled, held = filled + length, held + length
        yield batch

    def _sequences(self) -> Iterator[tuple[Item, int]]:
        for k, source in enumerate(self.sources):
            for item in source.items(self._note if self.skip else None):
                if hasattr(item.x, "__len__") and length_of(item.x):
                    yield item, k
                else:
                    problem = ValueError("the sequence is empty, expected at least one time step")
                    self._refuse(source.error(item.place, problem))

    def _update(self, batch: Batch) -> tuple[Part | None, list[int]]:
        """Learn from a batch; what it is packed as, and which of its sequences are in it."""
        kept = list(range(len(batch.items)))
        while kept:
            former = (
                None if self.frame is None else (copy.copy(self.frame.encoder), copy.deepcopy(self.frame.statistics))
            )
            try:
                return self._part([batch.items[n] for n in kept]), kept
            except OtherScheme:
                raise
            except (ValueError, TypeError) as error:
                if former is None:
                    self.frame = None
                else:
                    assert self.frame is not None
                    self.frame.encoder, self.frame.statistics = former
                kept = self._without_bad(batch, kept, error)
        return None, []

    def _part(self, items: Sequence[Item]) -> Part:
        model = self.model
        Y = given_labels([item.y for item in items], () if model.topology is None else model.topology.levels[1:])
        if any(y is None for y in Y):
            raise ValueError("there are no labels to learn from")
        self._look_at_schemes(Y)
        if self.frame is None:
            self.frame = model.new_frame(self.scheme)
            self.frame.encoder.sieve = self.sieve
        part = self.frame.update([item.x for item in items], Y, self.number)
        self.first = self.first or items[0]
        return part

    def _look_at_schemes(self, Y: Sequence[Any]) -> None:
        """Take the scheme from the first labels; begin again if later ones show another."""
        model = self.model
        seen = schemes_in(Y, model.scheme, model.topology)
        if self.scheme is None:
            self.scheme = seen
            warn_of_tags(Y, seen, model)
        if isinstance(seen, Mapping) and isinstance(self.scheme, Mapping):
            wider = {level: max(self.scheme.get(level, "plain"), kind, key=RANKS.index) for level, kind in seen.items()}
            if {**self.scheme, **wider} != dict(self.scheme):
                raise OtherScheme({**self.scheme, **wider})

    # -- bad sequences

    def _without_bad(self, batch: Batch, kept: list[int], error: Exception) -> list[int]:
        """Find the sequences that make a batch fail, each by itself or beside the first good one."""
        good = []
        for n in kept:
            problem = self._problem(batch.items[n])
            if problem is None:
                good.append(n)
            else:
                self._refuse(self.sources[batch.sources[n]].error(batch.items[n].place, problem))
        if len(good) == len(kept):  # each is good by itself
            raise error
        return good

    def _problem(self, item: Item) -> Exception | None:
        """What is wrong with one sequence, beside the first good one if there is one."""
        probe = Packer(self.model, self.sources, self.folder)
        probe.scheme = self.scheme
        probe.number = 0
        beside = [] if self.first is None else [self.first]
        try:
            probe._part([*beside, item])
        except (ValueError, TypeError) as error:
            return error
        except OtherScheme:
            return None
        self.first = self.first or item
        return None

    def _refuse(self, error: Exception) -> None:
        if not self.skip:
            raise error from None
        self._note(error)

    def _note(self, error: Exception) -> None:
        self.skipped += 1
        if len(self.told) < TOLD:
            self.told.append(str(error))

    # -- second pass

    def _write(self, line: Any) -> tuple[dict[str, Any], dict[str, Any], Frame]:
        frame, model = self.frame, self.model
        assert frame is not None
        longest = int(max(lengths.max() for lengths in self.lengths))
        frame.settle(longest)
        topology = frame.topology
        assert topology is not None
        entries, counts, lengths = [], [np.zeros(n, dtype=np.int64) for n in topology.n_states], []
        first, complete = 0, True
        for k, pieces in enumerate(self.spool.shards()):
            if line is not None:
                line.what = f"writing shard {k + 1} of {len(self.spool)}"
            path = os.path.join(self.folder, f"{k:06d}.shard")
            placed, digest, chunks = self._file(path, self._final(frame, pieces, first), topology)
            part = placed.part
            steps = int(part.observations.offsets[-1])
            whole = int(pack_labels(part.labels).complete_sequences().sum())
            entries.append(
                {"file": os.path.basename(path), "digest": digest, "first": first, "count": len(part.labels)}
                | {"steps": steps, "chunks": chunks, "complete": whole}
            )
            first += len(part.labels)
            counts = [one + other for one, other in zip(counts, count_states(topology, part.labels), strict=True)]
            complete &= whole == len(part.labels)
            lengths.append(np.diff(part.observations.offsets))
        self.spool.clear()
        if model.topology is None and not isinstance(self.first.y if self.first else None, Labels):
            warn_of_typos(topology, counts)
        settings, own = dump_frame(frame)
        header = {"kind": "shards", "shards": entries, "complete": complete, "scheme": frame.scheme}
        header |= {"skipped": self.skipped, "told": self.told, **settings}
        arrays = {"lengths": np.concatenate(lengths), "labelled": np.array([n.any() for n in counts]), **own}
        return header, arrays, frame

    def _final(self, frame: Frame, pieces: Sequence[Any], first: int) -> Placed:
        """The sequences of a shard in their final form, and where they come from."""
        parts: list[Placed] = []
        for piece in pieces:
            part, source, place = piece.read(first + sum(len(done.part.labels) for done in parts))
            placed = Placed(part, source, place)
            while True:
                try:
                    parts.append(placed._replace(part=frame.final(placed.part)))
                    break
                except SequenceError as error:
                    placed = self._without(placed, error)
        labels = [y for placed in parts for y in placed.part.labels]
        whole = Part(joined([placed.part.observations for placed in parts]), labels, first)
        return Placed(whole, *(np.concatenate(places) for places in zip(*(p[1:] for p in parts), strict=True)))

    def _file(self, path: str, placed: Placed, topology: Topology) -> tuple[Placed, str, int]:
        """Write a shard; what was written, its checksum and the number of its chunks."""
        while True:
            try:
                return placed, *write_shard(path, placed.part, topology, placed.source, placed.place, self.skip)
            except SequenceError as error:
                placed = self._without(placed, error)

    def _without(self, placed: Placed, error: SequenceError) -> Placed:
        """The same without the sequence that the error is about, if bad ones are skipped; else raise with its place."""
        if error.sequence is None:
            raise error
        n = error.sequence - placed.part.offset
        self._refuse(self.sources[placed.source[n]].error(tuple(placed.place[n].tolist()), error))
        kept = np.delete(np.arange(len(placed.part.labels)), n)
        if not kept.size:
            raise ValueError(f"no sequence of a shard is good; the last problem was: {error}")
        part = placed.part
        rest = Part(part.observations.take(kept), [part.labels[k] for k in kept.tolist()], part.offset)
        return Placed(rest, placed.source[kept], placed.place[kept])


def is_named(x: Any) -> bool:
    """Whether a sequence has named features; what cannot be told is told when it is packed."""
    with contextlib.suppress(ValueError, TypeError, IndexError, KeyError):
        return kind_of([x]) in ("dicts", "strings")
    return True


def joined(parts: Sequence[Observations]) -> Observations:
    """Observations one behind the other."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    raw = [None] * len(lengths)
    columns = [part.dense for part in parts if part.dense is not None]
    dense = np.concatenate(columns) if columns else None
    if parts[0].sparse is None:
        return Observations(offsets, None, dense, raw)
    rows = [of_names(part) for part in parts]
    counts = np.concatenate([np.diff(x.indptr) for x in rows])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    valued = any(x.data.size for x in rows)
    data = np.concatenate([x.data if x.data.size else np.ones(x.indices.size) for x in rows]) if valued else np.empty(0)
    sparse = Sparse(indptr, np.concatenate([x.indices for x in rows]), data, rows[0].size)
    return Observations(offsets, sparse, dense, raw)


# -- frames in files


def dump_frame(frame: Frame) -> tuple[dict[str, Any], dict[str, Any]]:
    """A settled frame as JSON and arrays."""
    assert frame.topology is not None
    settings, arrays = frame.encoder.state()
    header = {"encoder": settings, "topology": frame.topology.to_json(), "statistics": frame.statistics.memory()}
    header["segments"] = frame.lengths.counts
    return header, arrays


def load_frame(header: Mapping[str, Any], arrays: Mapping[str, Any], model: Learner) -> Frame:
    """The settled frame of a model from what :func:`dump_frame` gave."""
    frame = model.new_frame(header["scheme"])
    frame.encoder = type(frame.encoder).restore(header["encoder"], arrays)
    frame.statistics.recall(header["statistics"])
    frame.topology = Topology.from_dict(header["topology"])
    frame.lengths = SegmentLengths(header["segments"])
    return frame


def settings_of(model: Learner) -> dict[str, Any]:
    """What of a model's settings packed data depend on."""
    apart = {"c1", "c2", "margin", "solver", "pairs", "transitions", "n_jobs", "random_state", "warm_start", "verbose"}
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in apart}
    topology = given.pop("topology", None)
    settings = {name: repr(value) for name, value in given.items()}
    return {"class": type(model).__name__, "topology": topology and topology.to_json(), **settings}
