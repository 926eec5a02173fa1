"""The first pass over a stretch of sources: it learns a frame and stores the packed sequences.

Stretches are worked on by this process, by others, or by the workers of a cluster; the frames are merged afterwards.
"""

from __future__ import annotations

import contextlib
import copy
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.estimator.checks import warn_of_tags
from hscrf.estimator.contract import Learner
from hscrf.estimator.frame import Frame, Part
from hscrf.labels.columns import Scheme
from hscrf.labels.given import given_labels
from hscrf.labels.labels import Labels
from hscrf.labels.schemes import schemes_in
from hscrf.observations.columns import read_rows
from hscrf.observations.readers import kind_of, length_of, pack_items
from hscrf.observations.sieve import Sieve, hash_name
from hscrf.scale.problems import Problems, without_bad
from hscrf.scale.sizes import Sizes
from hscrf.scale.sources import Source, SourceSequence
from hscrf.scale.spool import Spool, SpoolFile, remove
from hscrf.scale.tasks import is_stopped

RANKS = ("plain", "bio", "bioes")


@dataclass(frozen=True)
class FirstPassSettings:
    """The settings that all stretches of a packing share."""

    model: Learner
    folder: str
    skip: bool  # whether bad sequences are left out
    sizes: Sizes
    scheme: Any = None  # None: detected from the first labels
    sieve: str | None = None  # the file of a sieve that drops rare names


@dataclass(frozen=True)
class Stretch:
    """Neighbouring sources, the first of which has the number ``first`` among all."""

    number: int
    first: int
    sources: Sequence[Source]


@dataclass
class Learned:
    """The results of the first pass over a stretch."""

    frame: Frame | None  # None: there is no good sequence, or there are too many names
    scheme: Any
    pieces: list[SpoolFile]
    lengths: Ints  # (n,) steps of each sequence, bad ones included
    good: NDArray[np.bool_]  # (n,)
    problems: Problems
    given: bool  # whether the first labels are Labels, which have a topology
    many: bool = False  # whether there are too many names to store all


class SourceBatch(NamedTuple):
    """Sequences that are packed together, with the numbers of their sources."""

    items: list[SourceSequence]
    sources: list[int]


class OtherScheme(Exception):
    """Later labels are written in another scheme than the first ones."""

    def __init__(self, scheme: Any) -> None:
        super().__init__(scheme)
        self.scheme = scheme


def learn(stretch: Stretch, settings: FirstPassSettings) -> Learned:
    """Learn from a stretch, and keep its sequences packed."""
    scheme = settings.scheme
    while True:
        learner = StretchLearner(stretch, settings, scheme)
        try:
            return learner.run()
        except OtherScheme as other:
            remove(learner.spool.pieces)
            scheme = other.scheme


class StretchLearner:
    """Learn from one stretch by one scheme, or by that of its first labels.

    Bad sequences raise an error that names file and line or, with ``skip``, are left out and counted.
    """

    def __init__(self, stretch: Stretch, settings: FirstPassSettings, scheme: Any) -> None:
        self.stretch, self.settings, self.model = stretch, settings, settings.model
        self.scheme = scheme
        self.problems = Problems(settings.skip)
        self.frame: Frame | None = None
        self.first: SourceSequence | None = None  # the first good sequence, which others must agree with
        self.spool = Spool(settings.folder, stretch.number)

    def run(self) -> Learned:
        """Learn from the whole stretch and return the result."""
        lengths, good = array("q"), array("b")
        many = False
        for batch in self._batches():
            if is_stopped(self.settings.folder, self.stretch.number):
                break
            part, kept = self._update(batch)
            lengths.extend(length_of(item.x) for item in batch.items)
            good.extend(n in {*kept} for n in range(len(batch.items)))
            names = 0 if self.frame is None else len(self.frame.encoder.names)
            many = names > self.settings.sizes.names and self.settings.sieve is None and self.model.min_count > 1
            if many:
                break
            if part is not None:
                self.spool.add(part, [batch.sources[n] for n in kept], [batch.items[n].place for n in kept])
        if self.frame is not None:
            self.frame.encoder.sieve = None
        given = self.first is not None and isinstance(self.first.y, Labels)
        flags = np.array(good, dtype=bool)
        numbers = np.array(lengths, dtype=np.int64)
        frame = None if many else self.frame
        return Learned(frame, self.scheme, self.spool.pieces, numbers, flags, self.problems, given, many)

    def _batches(self) -> Iterator[SourceBatch]:
        """The sequences in batches."""
        batch, held, most = SourceBatch([], []), 0, 0
        for item, source in sequences(self.stretch, self.problems):
            sizes = self.settings.sizes
            most = most or (sizes.batch if is_named(item.x) else sizes.cuts.shard)
            if held >= most:
                yield batch
                batch, held = SourceBatch([], []), 0
            batch.items.append(item)
            batch.sources.append(source)
            held += length_of(item.x)
        if batch.items:
            yield batch

    def _update(self, batch: SourceBatch) -> tuple[Part | None, list[int]]:
        """Learn from a batch; return it packed, and the sequences that it contains."""
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
                kept = without_bad(
                    kept, lambda n: self._problem(batch.items[n]), lambda n, e: self._refuse(batch, n, e), error
                )
        return None, []

    def _part(self, items: Sequence[SourceSequence]) -> Part:
        model = self.model
        Y = given_labels([item.y for item in items], () if model.topology is None else model.topology.levels[1:])
        if any(y is None for y in Y):
            raise ValueError("there are no labels to learn from")
        self._check_scheme(Y)
        if self.frame is None:
            self.frame = new_frame(self.settings, self.scheme)
        part = self.frame.update([item.x for item in items], Y)
        self.first = self.first or items[0]
        return part

    def _check_scheme(self, Y: Sequence[Any]) -> None:
        """Take the scheme of the first labels; raise OtherScheme if later labels need a wider one."""
        seen = schemes_in(Y, self.model.scheme, self.model.topology)
        if self.scheme is None:
            self.scheme = seen
            if self.stretch.number == 0:
                warn_of_tags(Y, seen, self.model)
        wider = widest(self.scheme, seen)
        if wider != self.scheme:
            raise OtherScheme(wider)

    def _problem(self, item: SourceSequence) -> Exception | None:
        """The problem of one sequence, checked together with the first good one, if any."""
        probe = StretchLearner(self.stretch, self.settings, self.scheme)
        former = [] if self.first is None else [self.first]
        try:
            probe._part([*former, item])
        except (ValueError, TypeError) as error:
            return error
        except OtherScheme:
            return None
        self.first = self.first or item
        return None

    def _refuse(self, batch: SourceBatch, n: int, problem: Exception) -> None:
        source = self.stretch.sources[batch.sources[n] - self.stretch.first]
        self.problems.refuse(source.error(batch.items[n].place, problem))


def new_frame(settings: FirstPassSettings, scheme: Any) -> Frame:
    """A frame that does not compute moments, and drops rare names if the settings have a sieve."""
    frame = settings.model.new_frame(scheme)
    frame.encoder.measures = False
    if settings.sieve is not None:
        frame.encoder.sieve = read_sieve(settings.sieve, settings.model.min_count)
    return frame


def sequences(stretch: Stretch, problems: Problems) -> Iterator[tuple[SourceSequence, int]]:
    """The sequences of a stretch that can be read and are not empty, with the numbers of their sources."""
    for k, source in enumerate(stretch.sources, start=stretch.first):
        for item in source.items(problems.note if problems.skip else None):
            if hasattr(item.x, "__len__") and length_of(item.x):
                yield item, k
            else:
                problem = ValueError("the sequence is empty, expected at least one time step")
                problems.refuse(source.error(item.place, problem))


def is_named(x: Any) -> bool:
    """Whether a sequence has named features, judged before the sequence is packed."""
    with contextlib.suppress(ValueError, TypeError, IndexError, KeyError):
        return kind_of([x]) in ("dicts", "strings")
    return True


def widest(one: Scheme, other: Scheme) -> Scheme:
    """The scheme that includes two schemes of the same levels.

    >>> widest({"phrase": "plain", "tag": "plain"}, {"phrase": "bio"})
    {'phrase': 'bio', 'tag': 'plain'}
    """
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return one
    wider = {level: max(one.get(level, "plain"), kind, key=RANKS.index) for level, kind in other.items()}
    return {**one, **wider}


# -- rare names


def count_hashes(stretch: Stretch, settings: FirstPassSettings) -> str:
    """Count all names of a stretch by their hashes; return the file of the counts."""
    sieve = Sieve(settings.model.min_count, settings.sizes.slots)
    for item, _ in sequences(stretch, Problems(skip=True)):
        with contextlib.suppress(ValueError, TypeError):  # bad sequences are found when they are packed
            kind, X = kind_of([item.x]), [item.x]
            if kind == "dense":
                kind, X = "strings", [read_rows(X).names()]
            sieve.update(pack_items(X, kind, hash_name, array("q"))[0])
    return write_counts(sieve.counts, settings.folder, f"counts-{stretch.number:06d}.npy")


def write_counts(counts: NDArray[np.uint8], folder: str, name: str) -> str:
    """Write the counts of a sieve to a file."""
    path = os.path.join(folder, name)
    np.save(path, counts)
    return path


def read_sieve(path: str, least: int) -> Sieve:
    """A sieve from a file of its counts, which is mapped into memory."""
    counts = np.load(path, mmap_mode="r")
    sieve = Sieve(least, slots=1)
    sieve.mask, sieve.counts = len(counts) - 1, counts
    return sieve
