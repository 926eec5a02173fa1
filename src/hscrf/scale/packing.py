"""Pack sources into shards on disk, in two passes.

The first pass reads the text, learns the frame, and packs the sequences with provisional numbers. The second converts
them to their final form and writes the shards. Either pass may be divided among several processes. The shards have the
same bits as those of one process: frames are merged in the order of the sources, and the lengths of all sequences
determine the cuts.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from hscrf.estimator.checks import warn_of_typos
from hscrf.estimator.contract import Learner
from hscrf.estimator.frame import Frame
from hscrf.labels.packed import SegmentLengths
from hscrf.observations.encoder import Numbers
from hscrf.observations.packed import shard_bounds
from hscrf.observations.sieve import Sieve
from hscrf.progress import waiting
from hscrf.scale.first_pass import (
    FirstPassSettings,
    Learned,
    Stretch,
    count_hashes,
    learn,
    new_frame,
    widest,
    write_counts,
)
from hscrf.scale.problems import Problems
from hscrf.scale.second_pass import PlacedError, ShardDraft, ShardSettings, Slice, WrittenShard, measure, write_finished
from hscrf.scale.sizes import Sizes
from hscrf.scale.sources import Source, stretches_of
from hscrf.scale.spool import SpoolFile, remove
from hscrf.scale.tasks import TaskRunner
from hscrf.topology import Topology


class Packer:
    """Packs sources for one model into a folder.

    Bad sequences raise an error that names file and line or, with ``skip``, are left out and counted.

    Parameters
    ----------
    model : Learner
    sources : sequence of Source
    folder : str
    skip : bool
    runner : TaskRunner
        The processes that do the work.
    sizes : Sizes
    """

    def __init__(
        self, model: Learner, sources: Sequence[Source], folder: str, skip: bool, runner: TaskRunner, sizes: Sizes
    ) -> None:
        self.model, self.sources, self.folder, self.sizes = model, sources, folder, sizes
        self.runner = runner
        self.problems = Problems(skip)
        own = model if self.runner.size == 1 else clone(model)  # other processes need no weights
        self.settings = FirstPassSettings(own, folder, skip, sizes)

    def run(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Write all shards; return their manifest: a header and arrays, which hold the settled frame too."""
        with waiting("packing", self.model.verbose) as line:
            several = self._stretches()
            try:
                learned, frame, numbers = self._learn(several, line)
            except Disagreement as found:
                if len(several) == 1:
                    raise found.error from None
                learned, frame, numbers = self._learn([Stretch(0, 0, self.sources)], line)  # its error names the place
            return self._write(learned, frame, numbers, line)

    # -- first pass

    def _stretches(self) -> list[Stretch]:
        """The sources as tasks for the runner."""
        sources = [source.absolute() for source in self.sources] if self.runner.is_remote else self.sources
        found = stretches_of(sources, self.runner.size, self.sizes.reading)
        return [Stretch(k, first, own) for k, (first, own) in enumerate(found)]

    def _learn(self, stretches: Sequence[Stretch], line: Any) -> tuple[list[Learned], Frame, list[Numbers]]:
        """Learn from all sources, and keep their sequences packed.

        Returns the results of each stretch, the merged frame, and for each stretch the numbers of its names in it.
        """
        learned = list(self._learned(stretches, line))
        scheme = self._scheme(learned)
        if any(own.frame is not None and own.scheme != scheme for own in learned):
            self.settings = replace(self.settings, scheme=scheme)
            learned = self._learn_again([own.scheme == scheme for own in learned], stretches, learned, line)
        if not any(own.many for own in learned):
            frame, numbers = self._merged(learned, scheme)
            if not self._has_many(frame):
                return learned, frame, numbers
        for own in learned:
            remove(own.pieces)
        self.settings = replace(self.settings, scheme=scheme, sieve=self._sieve(stretches, line))
        return self._learn(stretches, line)

    def _learned(self, stretches: Sequence[Stretch], line: Any) -> Iterator[Learned]:
        for own in self.runner.map(learn, stretches, self.folder, self.settings):
            if line is not None:
                line.count += len(own.lengths)
            yield own

    def _scheme(self, learned: Sequence[Learned]) -> Any:
        """The scheme of the labels of all stretches."""
        found: Any = None
        for own in learned:
            if own.scheme is not None:
                found = own.scheme if found is None else widest(found, own.scheme)
        return found

    def _learn_again(
        self, done: Sequence[bool], stretches: Sequence[Stretch], learned: Sequence[Learned], line: Any
    ) -> list[Learned]:
        """Learn again from the unfinished stretches."""
        for own, is_done in zip(learned, done, strict=True):
            if not is_done:
                remove(own.pieces)
        rest = self._learned([own for own, is_done in zip(stretches, done, strict=True) if not is_done], line)
        return [own if is_done else next(rest) for own, is_done in zip(learned, done, strict=True)]

    def _merged(self, learned: Sequence[Learned], scheme: Any) -> tuple[Frame, list[Numbers]]:
        """The frame of all stretches, and the numbers in it of the names of each."""
        if all(own.frame is None for own in learned):
            raise ValueError(f"there is no sequence in {len(self.sources)} sources, expected at least one")
        frame = new_frame(replace(self.settings, sieve=None), scheme)
        numbers: list[Numbers] = []
        for own in learned:
            if own.frame is None:
                numbers.append(np.zeros(0, dtype=np.int32))
                continue
            try:
                found = frame.merge(own.frame)
            except ValueError as error:
                for one in learned:
                    remove(one.pieces)
                raise Disagreement(error) from None
            assert found is not None
            numbers.append(found)
            own.frame.encoder.names = {}  # the topology and encoder are known now
        return frame, numbers

    def _has_many(self, frame: Frame) -> bool:
        return len(frame.encoder.names) > self.sizes.names and self.settings.sieve is None and self.model.min_count > 1

    def _sieve(self, stretches: Sequence[Stretch], line: Any) -> str:
        """Count all names by their hashes, to find rare ones; return the file of the counts."""
        if line is not None:
            line.what, line.count = "counting names", 0
        sieve = Sieve(self.model.min_count, self.sizes.slots)
        for path in self.runner.map(count_hashes, stretches, self.folder, self.settings):
            sieve.merge(np.load(path, mmap_mode="r"))
            os.unlink(path)
        if line is not None:
            line.what = "packing"
        return write_counts(sieve.counts, self.folder, "sieve.npy")

    # -- second pass

    def _write(
        self, learned: Sequence[Learned], frame: Frame, numbers: Sequence[Numbers], line: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        for own in learned:
            self.problems.add(own.problems)
        drafts = drafts_of(learned, self.sizes.cuts.shard)
        good = np.concatenate([own.lengths[own.good] for own in learned])
        runner = self.runner if int(good.sum()) >= self.sizes.writing else TaskRunner()
        if frame.encoder.has_columns and frame.encoder.standardize:
            for moments in runner.map(measure, drafts, self.folder):
                frame.encoder.measure(moments)
        frame.settle(int(good.max()))
        topology = frame.topology
        assert topology is not None
        settings = self._shard_settings(frame, numbers)
        entries: list[dict[str, Any]] = []
        counts, lengths = [np.zeros(n, dtype=np.int64) for n in topology.n_states], []
        for draft, written in zip(drafts, self._written(runner, drafts, settings), strict=True):
            for bad in written.bad:
                self.problems.note(self._placed(bad))
            if written.entry:
                first = entries[-1]["first"] + entries[-1]["count"] if entries else 0
                entries.append({**written.entry, "first": first})
                counts = [one + other for one, other in zip(counts, written.counts, strict=True)]
                lengths.append(written.lengths)
            after = drafts[draft.number + 1].slices[0].piece if draft.number + 1 < len(drafts) else None
            remove(own.piece for own in draft.slices if own.piece is not after)
            if line is not None:
                line.what = f"writing shard {draft.number + 1} of {len(drafts)}"
        if not entries:
            told = f"all {self.problems.count} sequences are bad, expected a good one"
            raise ValueError(f"{told}; the first problem is: {self.problems.messages[0]}")
        for path in filter(None, [*settings.numbers, self.settings.sieve]):
            os.unlink(path)
        if self.model.topology is None and not next(own.given for own in learned if own.frame is not None):
            warn_of_typos(topology, counts)
        frame_header, frame_arrays = dump_frame(frame)
        complete = all(entry["complete"] == entry["count"] for entry in entries)
        header = {"kind": "shards", "shards": entries, "complete": complete, "scheme": frame.scheme}
        header |= {"skipped": self.problems.count, "told": self.problems.messages, **frame_header}
        arrays = {"lengths": np.concatenate(lengths), "labelled": np.array([n.any() for n in counts]), **frame_arrays}
        return header, arrays

    def _written(
        self, runner: TaskRunner, drafts: Sequence[ShardDraft], settings: ShardSettings
    ) -> Iterator[WrittenShard]:
        try:
            yield from runner.map(write_finished, drafts, self.folder, settings)
        except PlacedError as bad:
            raise self._placed(bad) from None

    def _placed(self, bad: PlacedError) -> Exception:
        """The problem of a sequence with its file and line."""
        return self.sources[bad.source].error(bad.place, bad.error)

    def _shard_settings(self, frame: Frame, numbers: Sequence[Numbers]) -> ShardSettings:
        """The settings for the processes that write shards; the final numbers of names are in files."""
        bare = Frame(frame.encoder.without_names(), frame.statistics, frame.scheme)
        bare.topology, bare.narrowed = frame.topology, frame.narrowed
        paths: list[str | None] = []
        for k, own in enumerate(numbers):
            final = frame.encoder.final_numbers(own)
            same = np.array_equal(final, np.arange(final.size))
            paths.append(None if same else os.path.join(self.folder, f"numbers-{k:06d}.npy"))
            if paths[-1] is not None:
                np.save(paths[-1], final)
        return ShardSettings(bare, paths, self.folder, self.settings.skip, self.sizes.cuts.chunk)


class Disagreement(Exception):
    """Stretches differ in columns, levels or other properties that all sequences must share."""

    def __init__(self, error: ValueError) -> None:
        super().__init__(error)
        self.error = error


def drafts_of(learned: Sequence[Learned], shard: int) -> list[ShardDraft]:
    """Cut the sequences of all stretches into shards, as :func:`shard_bounds` does; empty shards are left out."""
    good = np.concatenate([own.good for own in learned])
    before = np.append(0, np.cumsum(good))  # good sequences before each
    lengths = np.concatenate([own.lengths for own in learned]).tolist()
    bounds = [(int(before[a]), int(before[b])) for a, b in shard_bounds(lengths, shard)]
    pieces = [(piece, k) for k, own in enumerate(learned) for piece in own.pieces]
    begins = np.append(0, np.cumsum([piece.count for piece, _ in pieces])).tolist()
    found: list[ShardDraft] = []
    for begin, stop in (bound for bound in bounds if bound[0] < bound[1]):
        which = range(bisect_right(begins, begin) - 1, bisect_left(begins, stop))
        slices = [slice_of(*pieces[k], begin - begins[k], stop - begins[k]) for k in which]
        found.append(ShardDraft(len(found), slices))
    return found


def slice_of(piece: SpoolFile, stretch: int, begin: int, stop: int) -> Slice:
    """The part of a piece between two positions, which may lie outside of it."""
    return Slice(piece, max(begin, 0), min(stop, piece.count), stretch)


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
    """The settings of a model that packed data depend on."""
    apart = {"c1", "c2", "margin", "solver", "pairs", "transitions", "n_jobs", "random_state", "warm_start", "verbose"}
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in apart}
    topology = given.pop("topology", None)
    settings = {name: repr(value) for name, value in given.items()}
    return {"class": type(model).__name__, "topology": topology and topology.to_json(), **settings}
