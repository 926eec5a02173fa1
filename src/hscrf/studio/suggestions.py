"""What a model suggests under fixes: the best labelling, doubts, alternatives; exactly, or for a window first."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hscrf.errors import InfeasibleError
from hscrf.estimator.cost import estimate, timed_levels
from hscrf.inference import Posterior
from hscrf.labels.labels import Labels
from hscrf.potentials import Potentials
from hscrf.studio.conflicts import Group, feasible
from hscrf.studio.evidence import known_segments, labels_of
from hscrf.studio.knowledge import Knowledge, Level, runs_of
from hscrf.topology import Topology

SLOW = 0.25  # seconds of an answer above which a window is answered first
MARGIN = 60  # steps on both sides of a fix that a window takes in
PASSES = 12.0  # an answer in passes that only sum, as the cost of inference counts them
KEPT = 200_000  # steps whose potentials are kept
BYTE = 255


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

    ``observe(n)`` gives what the model sees of sequence n. Suggestions equal ``model.predict(X, evidence=...)``.
    """

    def __init__(self, model: Any, observe: Callable[[int], Any], levels: Sequence[Level]) -> None:
        self.model, self.observe, self.levels = model, observe, levels
        self.topology: Topology = model.topology_
        self._kept: OrderedDict[int, Potentials] = OrderedDict()
        self._guard = threading.Lock()
        self._measured = (0, 0.0)  # steps and seconds of the last answer that compiled nothing
        self.answered = False  # whether the kernels are compiled

    def potentials(self, sequence: int) -> Potentials:
        """The potentials of a sequence."""
        with self._guard:
            if sequence in self._kept:
                self._kept.move_to_end(sequence)
                return self._kept[sequence]
        found: Potentials = self.model.posterior([self.observe(sequence)])[0].potentials
        with self._guard:
            self._kept[sequence] = found
            while len(self._kept) > 1 and sum(p.length for p in self._kept.values()) > KEPT:
                self._kept.popitem(last=False)
        return found

    def is_slow(self, length: int) -> bool:
        """Whether an exact answer for so many steps takes longer than a person likes to wait."""
        steps, seconds = self._measured
        if 0 < length <= 2 * steps:
            return seconds * length / steps > SLOW
        return PASSES * estimate(self.topology, [length], timed_levels(self.model)).seconds() > SLOW

    # -- suggestions

    def suggest(self, sequence: int, knowledge: Knowledge, newest: int = 0) -> Suggestion:
        """The exact suggestion; where fixes contradict each other, the one without the newest of them."""
        begin = time.perf_counter()
        potentials = self.potentials(sequence)
        ready = time.perf_counter()
        try:
            found = self._under(potentials, knowledge)
        except InfeasibleError:
            found = self._without_conflict(potentials, knowledge, newest)
        end = time.perf_counter()
        if not found.conflict and self.answered:  # the first answer may have compiled
            self._measured = (potentials.length, end - ready)
        self.answered = True
        return replace(found, seconds=end - begin)

    def _without_conflict(self, potentials: Potentials, knowledge: Knowledge, newest: int) -> Suggestion:
        """The suggestion without the newest of the fixes that contradict each other."""
        rest, conflict = feasible(knowledge, newest, lambda known: self.possible(potentials, known))
        try:
            return replace(self._under(potentials, rest), conflict=conflict)
        except InfeasibleError:  # the model allows no labelling of so many steps at all
            return unmodelled(knowledge, self.topology, newest)

    def window(
        self, sequence: int, knowledge: Knowledge, touched: tuple[int, int], former: Suggestion
    ) -> Suggestion | None:
        """The suggestion with all pinned that is far from the steps that were touched; None if that is impossible."""
        if former.labels is None:
            return None
        begin = time.perf_counter()
        start, stop = touched
        start, stop = max(start - MARGIN, 0), min(stop + MARGIN, knowledge.length)
        known = labels_of(knowledge, self.topology)
        states, ends = former.labels.states.copy(), former.labels.ends.copy()
        states[:, start:stop] = known.states[:, start:stop]
        ends[:, max(start - 1, 0) : stop] = known.ends[:, max(start - 1, 0) : stop]
        pinned = Labels(self.topology, states, ends)
        try:
            found = self._answer(Posterior(self.potentials(sequence), pinned), knowledge)
        except InfeasibleError:
            return None
        doubt = {level: former.doubt[level].copy() for level in found.doubt}
        for level, row in found.doubt.items():
            doubt[level][start:stop] = row[start:stop]
        seconds = time.perf_counter() - begin
        return replace(found, doubt=doubt, entropy=former.entropy, exact=False, window=(start, stop), seconds=seconds)

    def possible(self, potentials: Potentials, knowledge: Knowledge) -> bool:
        """Whether any configuration agrees with what is known."""
        try:
            posterior = Posterior(potentials, labels_of(knowledge, self.topology))
            return bool(posterior.batch.log_partition(posterior.values)[0] > -np.inf)
        except InfeasibleError:
            return False

    def _under(self, potentials: Potentials, knowledge: Knowledge) -> Suggestion:
        evidence = None if knowledge.empty else labels_of(knowledge, self.topology)
        return self._answer(Posterior(potentials, evidence), knowledge)

    def _answer(self, posterior: Posterior, knowledge: Knowledge) -> Suggestion:
        """Decode and take marginals, of one plan."""
        states, ends, best = posterior.batch.best(posterior.values)
        if best[0] == -np.inf:
            raise InfeasibleError("no segmentation agrees with the fixes")
        labels = Labels._found(self.topology, states, ends, float(best[0]))
        marginals = posterior.marginals
        segments, doubt = {}, {}
        steps = np.arange(labels.length)
        for level in self.levels:
            if level.name not in self.topology.levels:
                segments[level.name] = known_segments(knowledge, level)
                doubt[level.name] = np.full(labels.length, BYTE, dtype=np.uint8)
                continue
            d = self.topology.level(level.name)
            segments[level.name] = shown_segments(labels, d)
            sure = marginals.state[level.name][steps, states[d]]
            doubt[level.name] = np.clip(np.rint(BYTE * (1 - sure)), 0, BYTE).astype(np.uint8)
        return Suggestion(segments, doubt, posterior.entropy() / labels.length, labels=labels)

    # -- alternatives

    def alternatives(self, sequence: int, knowledge: Knowledge, level: str, start: int, stop: int) -> dict[str, float]:
        """For each label the log probability that exactly this segment has it: log Z with it minus log Z without.

        What is fixed of the segment itself is not counted. Impossible labels have -inf.
        """
        potentials = self.potentials(sequence)
        base = knowledge.copy()
        base.cells[level].forget(start, stop)
        total = self._log_z(potentials, base)
        found = {}
        for label in knowledge.level(level).labels:
            if label not in map(str, self.topology.states[self.topology.level(level)]):
                found[label] = -np.inf
                continue
            other = base.copy()
            other.apply("segment", {"level": level, "start": start, "stop": stop, "label": label}, 1)
            found[label] = self._log_z(potentials, other) - total if total > -np.inf else -np.inf
        return found

    def _log_z(self, potentials: Potentials, knowledge: Knowledge) -> float:
        try:
            posterior = Posterior(potentials, labels_of(knowledge, self.topology))
            return float(posterior.batch.log_partition(posterior.values)[0])
        except InfeasibleError:
            return -np.inf


def unmodelled(knowledge: Knowledge, topology: Topology, newest: int = 0) -> Suggestion:
    """What is known by itself, where there is no model yet."""
    _, conflict = feasible(knowledge, newest, lambda known: agrees(known, topology))
    segments = {level.name: known_segments(knowledge, level) for level in knowledge.levels}
    doubt = {level.name: np.full(knowledge.length, BYTE, dtype=np.uint8) for level in knowledge.levels}
    return Suggestion(segments, doubt, None, conflict=conflict)


def agrees(knowledge: Knowledge, topology: Topology) -> bool:
    """Whether what is known keeps the rules of the hierarchy."""
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
    found: dict[str, list[list[int]]] = {}
    for level, segments in after.segments.items():
        old = [] if before is None else [tuple(segment) for segment in before.segments[level]]
        new = set(old)
        ranges: list[list[int]] = []
        for start, stop, label in segments:
            if (start, stop, label) not in new:
                if ranges and ranges[-1][1] == start:
                    ranges[-1][1] = stop
                else:
                    ranges.append([start, stop])
        found[level] = ranges if before is not None else []
    return found
