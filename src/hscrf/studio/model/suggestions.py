"""The suggestions of a model under fixes: the best labelling, doubts, alternatives; exact, or for a window first."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np

from hscrf.engine.cost import estimate, timed_levels
from hscrf.errors import InfeasibleError
from hscrf.fillers import shown
from hscrf.inference import Posterior
from hscrf.labels.labels import Labels
from hscrf.potentials import Potentials
from hscrf.studio.data.conflicts import Group, feasible
from hscrf.studio.data.evidence import implied_segments, known_segments, labels_of
from hscrf.studio.data.knowledge import UNKNOWN, Knowledge, Level, runs_of
from hscrf.studio.data.label_edits import Change, edited
from hscrf.studio.model.widening import gone_labels, lifted, new_labels, restricted, widened
from hscrf.topology import Topology

SLOW = 0.01  # seconds: if an exact answer takes longer, people would notice, so a window is answered first
MARGIN = 60  # steps on both sides of a fix that a window takes in
PASSES = 12.0  # cost of an answer, in the summing passes of the cost estimate
KEPT = 200_000  # steps whose potentials are kept
BYTE = 255
SHARED = 4  # from this number of labels on, two shared passes are faster than one for each label
SMALL = 1e-30  # probabilities below it are computed by a pass of their own


@dataclass(frozen=True)
class Suggestion:
    """A labelling of one sequence under its fixes, and how sure the model is."""

    segments: dict[str, list[list[Any]]]  # by level: [start, stop, label], label None if nothing is known
    doubt: dict[str, Any]  # by level (T,) bytes: 255 (1 - probability of the label shown)
    entropy: float | None  # nats a step
    exact: bool = True
    window: tuple[int, int] | None = None
    conflict: list[Group] = field(default_factory=list)
    labels: Labels | None = None  # of the levels that the model has
    seconds: float = 0.0

    def least_sure(self) -> float:
        """The least mean probability over the steps of a segment, 0 without segments.

        A single step would say too little of long segments: the exact place of their borders is hardly ever certain.
        """
        found = []
        for level, doubt in self.doubt.items():
            starts = [start for start, _, _ in self.segments[level]]
            sums = np.add.reduceat(doubt.astype(np.int64), starts)
            found.append(1 - float(np.max(sums / np.diff([*starts, len(doubt)]))) / BYTE)
        return min(found, default=0.0)

    def profile(self) -> list[float]:
        """The share of steps that each label of each level has: what the sequence is made of."""
        if self.labels is None:
            return []
        counts = [
            np.bincount(row, minlength=n)
            for row, n in zip(self.labels.states, self.labels.topology.n_states, strict=True)
        ]
        return (np.concatenate(counts[1:]) / self.labels.length).tolist()


class Suggester:
    """A model and the sequences it is asked about; potentials are made once a sequence and kept.

    ``observe(n)`` returns the observations of sequence n. Suggestions equal ``model.predict(X, evidence=...)``. Labels
    that the model does not have are suggested exactly where a person has put them.
    """

    def __init__(
        self, model: Any, observe: Callable[[int], Any], levels: Sequence[Level], edits: Sequence[Change] = ()
    ) -> None:
        self.model, self.observe, self.levels = model, observe, levels
        renames = [change for change in edits if change["do"] == "rename"]
        known = edited(model.topology_, renames) if renames else model.topology_
        self.margin, self.shared, self.small = MARGIN, SHARED, SMALL
        self.new = new_labels(known, levels)
        self.topology: Topology = widened(known, self.new)
        self.gone = gone_labels(known, levels)
        self._lifts = bool(self.new or renames)
        self._kept: OrderedDict[int, Potentials] = OrderedDict()
        self._guard = threading.Lock()
        self._measured = (0, 0.0)  # steps and processor seconds of the last answer, but not of the first
        self._answered = False  # the first answer also imports modules

    def potentials(self, sequence: int) -> Potentials:
        """The potentials of a sequence."""
        with self._guard:
            if sequence in self._kept:
                self._kept.move_to_end(sequence)
                return self._kept[sequence]
        found: Potentials = self.model.posterior([self.observe(sequence)])[0].potentials
        if self._lifts:
            found = lifted(found, self.topology)
        with self._guard:
            self._kept[sequence] = found
            while len(self._kept) > 1 and sum(p.length for p in self._kept.values()) > KEPT:
                self._kept.popitem(last=False)
        return found

    def is_slow(self, length: int, limit: float = SLOW) -> bool:
        """Whether an exact result for this number of steps takes more than ``limit`` seconds."""
        steps, seconds = self._measured
        if 0 < length <= 2 * steps:
            return seconds * length / steps > limit
        return PASSES * estimate(self.topology, [length], timed_levels(self.model)).seconds() > limit

    # -- suggestions

    def suggest(self, sequence: int, knowledge: Knowledge, newest: int = 0) -> Suggestion:
        """The exact suggestion; where fixes contradict each other, the one without the newest of them."""
        begin = time.perf_counter()
        potentials = self.potentials(sequence)
        ready = time.thread_time()
        try:
            found = self._under(potentials, knowledge)
        except InfeasibleError:
            found = self._without_conflict(potentials, knowledge, newest)
        if not found.conflict and self._answered:
            self._measured = potentials.length, time.thread_time() - ready  # processor time: other work does not count
        self._answered = True
        return replace(found, seconds=time.perf_counter() - begin)

    def _without_conflict(self, potentials: Potentials, knowledge: Knowledge, newest: int) -> Suggestion:
        """The suggestion without the newest of the fixes that contradict each other."""
        rest, conflict = feasible(knowledge, newest, lambda known: self.possible(potentials, known))
        try:
            return replace(self._under(potentials, rest), conflict=conflict)
        except InfeasibleError:  # the model allows no labelling of this length
            return unmodelled(knowledge, self.topology, newest)

    def window(
        self, sequence: int, knowledge: Knowledge, touched: tuple[int, int], former: Suggestion
    ) -> Suggestion | None:
        """The suggestion if all that is far from the touched steps stays as it was; None if that is impossible.

        Only the part between two segments of the top level that stay is decoded: steps beyond them do not change the
        result.
        """
        if former.labels is None:
            return None
        begin = time.perf_counter()
        start, stop = max(touched[0] - self.margin, 0), min(touched[1] + self.margin, knowledge.length)
        known = self.evidence(knowledge)
        states, ends = former.labels.states.copy(), former.labels.ends.copy()
        states[:, start:stop] = known.states[:, start:stop]
        ends[:, max(start - 1, 0) : stop] = known.ends[:, max(start - 1, 0) : stop]
        forgotten = self.topology.fillers[1][former.labels.states[1]]  # a filler's memory lies before it
        first, last = _between_pinned(former.labels.ends[1], start, stop, forgotten)
        part = slice(first, last)
        closing = ends[:, part].copy()
        closing[:, -1] = 1
        try:
            allowed = known.allowed and {name: table[part] for name, table in known.allowed.items()}
            pinned = Labels(self.topology, states[:, part], closing, allowed)
            found, doubt = self._inferred(Posterior(cut(self.potentials(sequence), first, last), pinned))
        except InfeasibleError:
            return None
        states[:, part] = found.states
        ends[1:, part] = found.ends[1:]
        labels = Labels.unchecked(self.topology, states, ends, found.score)
        rows = {level: row.copy() for level, row in former.doubt.items()}
        for level, row in doubt.items():
            rows[level][start:stop] = row[start - first : stop - first]
        seconds = time.perf_counter() - begin
        segments = self._spliced(former.segments, labels, knowledge, first, last)
        return Suggestion(segments, rows, former.entropy, exact=False, window=(start, stop), labels=labels,
                          seconds=seconds)  # fmt: skip

    def possible(self, potentials: Potentials, knowledge: Knowledge) -> bool:
        """Whether any configuration agrees with the known labels."""
        try:
            posterior = Posterior(potentials, self.evidence(knowledge))
            return bool(posterior.batch.log_partition(posterior.values)[0] > -np.inf)
        except InfeasibleError:
            return False

    def _under(self, potentials: Potentials, knowledge: Knowledge) -> Suggestion:
        free = knowledge.empty and not self.new and not self.gone
        evidence = None if free else self.evidence(knowledge)
        return self._answer(Posterior(potentials, evidence), knowledge)

    def evidence(self, knowledge: Knowledge) -> Labels:
        """The known labels as Labels over the topology of the model and of its new labels."""
        return restricted(labels_of(knowledge, self.topology), knowledge, self.new, self.gone)

    def _answer(self, posterior: Posterior, knowledge: Knowledge) -> Suggestion:
        labels, doubt = self._inferred(posterior)
        for level in self.levels:
            if level.name not in doubt:
                doubt[level.name] = np.full(labels.length, BYTE, dtype=np.uint8)
        entropy = max(0.0, posterior.entropy() / labels.length)  # what is certain may be off by a rounding error
        return Suggestion(self._segments(labels, knowledge), doubt, entropy, labels=labels)

    def _inferred(self, posterior: Posterior) -> tuple[Labels, dict[str, Any]]:
        """The best labels, and the doubt of each level (T,) in bytes; both of one plan."""
        states, ends, best = posterior.batch.best(posterior.values)
        if best[0] == -np.inf:
            raise InfeasibleError("no segmentation agrees with the fixes")
        states = shown(self.topology, states)
        labels = Labels.unchecked(self.topology, states, ends, float(best[0]))
        marginals, doubt, steps = posterior.marginals, {}, np.arange(labels.length)
        for level in self.levels:
            if level.name in self.topology.levels:
                sure = marginals.state[level.name][steps, states[self.topology.level(level.name)]]
                doubt[level.name] = np.clip(np.rint(BYTE * (1 - sure)), 0, BYTE).astype(np.uint8)
        return labels, doubt

    def _segments(self, labels: Labels, knowledge: Knowledge) -> dict[str, list[list[Any]]]:
        """The segments to show for each level; for levels that the model does not have, the known ones."""
        return {
            level.name: shown_segments(labels, self.topology.level(level.name))
            if level.name in self.topology.levels
            else known_segments(knowledge, level)
            for level in self.levels
        }

    def _spliced(
        self, former: dict[str, list[list[Any]]], labels: Labels, knowledge: Knowledge, first: int, last: int
    ) -> dict[str, list[list[Any]]]:
        """The segments of labels that differ from the former ones between two borders of the top level alone."""
        part = Labels.unchecked(self.topology, labels.states[:, first:last], labels.ends[:, first:last])
        found = {}
        for level in self.levels:
            if level.name not in self.topology.levels:
                found[level.name] = known_segments(knowledge, level)
                continue
            old = former[level.name]
            head, tail = (bisect_left(old, at, key=itemgetter(0)) for at in (first, last))
            new = shown_segments(part, self.topology.level(level.name))
            found[level.name] = [*old[:head], *([first + i, first + j, s] for i, j, s in new), *old[tail:]]
        return found

    # -- alternatives

    def alternatives(
        self,
        sequence: int,
        knowledge: Knowledge,
        level: str,
        start: int,
        stop: int,
        wanted: Callable[[], bool] = lambda: True,
    ) -> dict[str, float] | None:
        """For each label the log probability that exactly this segment has it: log Z with it minus log Z without.

        Fixes of the segment itself are ignored. Impossible labels have -inf; labels that the model does not have are
        left out. ``wanted`` is called before each pass; if it returns false, the result is None.

        By the chain rule all labels need two passes: one for the probability of the borders, and one for the state of
        the first step given the borders. Labels too improbable for these numbers have a pass of their own, and so have
        all labels of several steps of a unit level, which has no borders.
        """
        potentials = self.potentials(sequence)
        base = knowledge.copy()
        base.cells[level].forget(start, stop)
        labels = [label for label in knowledge.level(level).labels if label not in self.new.get(level, ())]
        if not wanted():
            return None
        total = self._log_z(potentials, base)
        if total == -np.inf:
            return dict.fromkeys(labels, -np.inf)
        found = {}
        if len(labels) >= self.shared and (stop == start + 1 or not knowledge.level(level).unit):
            if not wanted():
                return None
            found = self._by_chain_rule(potentials, base, level, (start, stop), labels, total)
        for label in labels:
            if label not in found:
                if not wanted():
                    return None
                other = base.copy()
                other.apply("segment", {"level": level, "start": start, "stop": stop, "label": label}, 1)
                found[label] = self._log_z(potentials, other) - total
        return {label: found[label] for label in labels}

    def _by_chain_rule(
        self,
        potentials: Potentials,
        base: Knowledge,
        level: str,
        steps: tuple[int, int],
        labels: Sequence[str],
        total: float,
    ) -> dict[str, float]:
        """The log probabilities of the labels of a segment of these steps, without those too small to be exact."""
        bounded = base.copy()
        if not base.level(level).unit:
            bounded.cells[level].put_borders(*steps, 1)
        try:
            marginals = Posterior(potentials, self.evidence(bounded)).marginals
        except InfeasibleError:
            return dict.fromkeys(labels, -np.inf)
        names = list(map(str, self.topology.states[self.topology.level(level)]))
        row = marginals.state[level][steps[0]]
        shares = {label: float(row[names.index(label)]) for label in labels if label in names}
        log_borders = marginals.log_partition - total
        return {label: log_borders + float(np.log(p)) for label, p in shares.items() if p > self.small}

    def _log_z(self, potentials: Potentials, knowledge: Knowledge) -> float:
        try:
            posterior = Posterior(potentials, self.evidence(knowledge))
            return float(posterior.batch.log_partition(posterior.values)[0])
        except InfeasibleError:
            return -np.inf


def unmodelled(knowledge: Knowledge, topology: Topology, newest: int = 0) -> Suggestion:
    """The known labels, and labels that follow from them by nesting, where there is no model yet."""
    rest, conflict = feasible(knowledge, newest, lambda known: agrees(known, topology))
    closed = labels_of(rest, topology).closed()
    segments, doubt = {}, {}
    for level in knowledge.levels:
        implied = level.name in topology.levels
        segments[level.name] = implied_segments(closed, level) if implied else known_segments(knowledge, level)
        open_ = closed.states[topology.level(level.name)] < 0 if implied else np.ones(knowledge.length, dtype=bool)
        doubt[level.name] = np.where(open_, BYTE, 0).astype(np.uint8)
    return Suggestion(segments, doubt, None, conflict=conflict)


def overlaid(former: Suggestion, knowledge: Knowledge) -> Suggestion:
    """A former suggestion overlaid with known labels, shown until the model has answered."""
    segments = {level.name: _over(former.segments[level.name], knowledge, level) for level in knowledge.levels}
    return replace(former, segments=segments, exact=False)


def _over(segments: list[list[Any]], knowledge: Knowledge, level: Level) -> list[list[Any]]:
    cells, names = knowledge.cells[level.name], (*level.labels, None)
    starts = [start for start, _, _ in segments]
    codes = np.repeat([names.index(label) for _, _, label in segments], np.diff([*starts, knowledge.length]))
    breaks = np.zeros(knowledge.length, dtype=bool)
    breaks[starts] = True
    free = cells.label == UNKNOWN
    codes[~free] = cells.label[~free]
    breaks[1:] &= free[1:] | (cells.label_by[1:] != cells.label_by[:-1])  # a fix of several steps is one segment
    breaks |= cells.border[:-1] == 1
    for start, stop, value in runs_of(cells.border):
        if value == 0:  # the segment on the left goes on over the one on the right
            breaks[start:stop] = False
            end = stop + int(np.append(breaks[stop:], True).argmax())
            said = cells.label[start - 1 : end][~free[start - 1 : end]]
            codes[start - 1 : end][free[start - 1 : end]] = said[0] if said.size else codes[start - 1]
    return [[i, j, names[code]] for i, j, code in runs_of(codes, breaks)]


def agrees(knowledge: Knowledge, topology: Topology) -> bool:
    """Whether the known labels keep the rules of the hierarchy."""
    try:
        labels_of(knowledge, topology).closed()
    except InfeasibleError:
        return False
    return True


def shown_segments(labels: Labels, d: int) -> list[list[Any]]:
    """Segments [start, stop, label] of a complete level; of a unit bottom, runs of equal labels under one parent."""
    names = [str(name) for name in labels.topology.states[d]]
    unit = d == labels.topology.depth - 1 and labels.topology.unit_bottom
    row = labels.ends[d - 1 if unit else d]
    breaks = np.append(True, row[:-1] == 1)
    states = labels.states[d]
    if unit:
        return [[i, j, names[s]] for i, j, s in runs_of(states, breaks)]
    starts = np.flatnonzero(breaks)
    stops = np.append(starts[1:], labels.length)
    codes = states[starts]
    return [[i, j, names[s]] for i, j, s in zip(starts.tolist(), stops.tolist(), codes.tolist(), strict=True)]


def changed(before: Suggestion | None, after: Suggestion) -> dict[str, list[list[int]]]:
    """Ranges of steps whose label or borders differ, by level."""
    if before is None:
        return {level: [] for level in after.segments}
    return {level: _changed(before.segments[level], segments) for level, segments in after.segments.items()}


def _changed(old: list[list[Any]], new: list[list[Any]]) -> list[list[int]]:
    head, tail = _alike(old, new), 0
    if head < min(len(old), len(new)):
        tail = _alike(old[:head:-1], new[:head:-1])
    known = {tuple(segment) for segment in old[head : len(old) - tail]}
    ranges: list[list[int]] = []
    for start, stop, label in new[head : len(new) - tail]:
        if (start, stop, label) not in known:
            if ranges and ranges[-1][1] == start:
                ranges[-1][1] = stop
            else:
                ranges.append([start, stop])
    return ranges


def _alike(one: list[list[Any]], other: list[list[Any]]) -> int:
    """How many segments two lists begin with in common."""
    return next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _between_pinned(ends: Any, start: int, stop: int, bound: Any) -> tuple[int, int]:
    """The nearest borders before and after some steps, such that a step on each side lies between.

    ``ends`` (T,) are those of the top level; ``bound`` (T,) marks segments that depend on what is before them, which no
    part may begin with.
    """
    cuts = np.concatenate([[0], np.flatnonzero(ends[:-1] == 1) + 1, [len(ends)]])
    before, after = np.searchsorted(cuts, [start, stop + 1])
    first = max(before - 1, 0)
    while first and bound[cuts[first]]:
        first -= 1
    return int(cuts[first]), int(cuts[min(after, len(cuts) - 1)])


def cut(potentials: Potentials, start: int, stop: int) -> Potentials:
    """The potentials of some steps by themselves."""
    length = stop - start
    parts: dict[str, dict[str, Any]] = {}
    for part, level, values in potentials.parts():
        found = values[:length] if part == "duration" else values if len(values) == 1 else values[start:stop]
        parts.setdefault(part, {})[level] = found[:, :length] if part == "segment" else found
    return Potentials(potentials.topology, length, **parts)
