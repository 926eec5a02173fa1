"""The loss of a model on a packed data set: log Z(free) - log Z(labels), its gradient, and the perceptron's.

Scores are linear in the weights and log Z has the expected counts as its gradient, so for each block of features the
gradient is its transpose applied to (expected counts - counts of the labels). Complete labels need no inference for
their own term: their counts are constant. Partial labels need a second inference, with the labels as evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.engine.evidence import pack_evidence
from hscrf.engine.kernels.arithmetic import MAX
from hscrf.engine.plan import Expectations, Plan
from hscrf.features.events import family_events
from hscrf.inference.conflicts import refuse
from hscrf.labels.labels import Labels
from hscrf.labels.packed import Known, pack_labels
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import CHUNK, LANES, Workers
from hscrf.observations.packed import Observations
from hscrf.potentials import Key, Potentials
from hscrf.topology import Topology


def label_counts(topology: Topology, shapes: dict[Key, tuple[int, ...]], known: Known) -> dict[Key, Floats]:
    """Counts of packed complete labels, shaped like the values: what expected counts are when all is known."""
    counts = {key: np.zeros(shape) for key, shape in shapes.items()}
    for (part, d), table in counts.items():
        stop = np.flatnonzero(known.ends[d] == 1)
        start = np.concatenate([[0], stop[:-1] + 1])
        state = known.states[d][stop]
        if part == "token":
            table[np.arange(len(table)), known.states[d]] = 1.0
        elif part in ("start", "stop"):
            table[start if part == "start" else stop, state] = 1.0
        elif part == "duration":
            np.add.at(table, (stop - start, state), 1.0)
        elif part == "segment":
            table[start, stop - start, state] = 1.0
        else:
            steps, cells, _ = family_events(topology, known, (part, d))
            flat = table.reshape(len(table), -1)
            np.add.at(flat, (steps if len(table) > 1 else np.zeros_like(steps), cells), 1.0)
    return counts


def checked_weights(sample_weight: Any, size: int) -> Floats:
    """A weight for each of so many sequences; one if none are given."""
    if sample_weight is None:
        return np.ones(size)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (size,):
        raise ValueError(f"sample_weight has shape {weights.shape}, expected ({size},), a weight for each sequence")
    bad = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if bad.size:
        raise ValueError(f"sample_weight[{bad[0]}] is {weights[bad[0]]}, expected a finite number of at least 0")
    return weights


@dataclass(frozen=True)
class Chunk:
    """Some sequences of one weight, what was seen of them, and the plans to run them free and with their labels."""

    which: Ints
    seen: Observations
    weight: float
    free: Plan
    bound: Plan | None  # None if all labels are complete


class Likelihood:
    """Weighted sum over sequences of log Z(free) - log Z(labels), over a packed data set.

    Complete labels cost one inference, partial ones two. The same bits for any number of threads: chunks are fixed
    and summed in order.
    """

    def __init__(
        self,
        scorer: Scorer,
        seen: Observations,
        labels: Sequence[Labels],
        sample_weight: Floats | None = None,
        workers: Workers | None = None,
    ) -> None:
        self.scorer = scorer
        self.seen = seen
        self.labels = labels
        self.size = scorer.size
        self.n_parts = len(labels)
        self.workers = workers or Workers()
        self.offsets = seen.offsets
        self.sample_weight = checked_weights(sample_weight, self.n_parts)
        self.complete = np.array([y.is_complete for y in labels])
        self.chunks = [self._chunk(which) for which in self._split(np.arange(self.n_parts), CHUNK)]
        self.chunks = [replace(chunk, seen=chunk.seen.by_columns()) for chunk in self.chunks]
        self.empirical = self._label_gradient(self.chunks)

    def _split(self, which: Ints, steps: int) -> list[Ints]:
        """Cut sequences into chunks of about so many steps, complete and partial labels and weights apart."""
        order = which[np.lexsort((which, self.sample_weight[which], self.complete[which]))]
        lengths = np.diff(self.offsets)[order]
        kind = self.sample_weight[order] + 1e-9j * self.complete[order]
        chunks: list[list[int]] = []
        filled = 0
        for k, n in enumerate(order):
            if not chunks or filled + lengths[k] > steps or kind[k] != kind[k - 1]:
                chunks.append([])
                filled = 0
            chunks[-1].append(int(n))
            filled += lengths[k]
        return [np.array(chunk) for chunk in chunks]

    def _chunk(self, which: Ints) -> Chunk:
        topology, seen = self.scorer.topology, self.seen.take(which)
        shapes = self.scorer.shapes(seen.steps)
        bound = None
        if not self.complete[which[0]]:
            bound = Plan(topology, seen.offsets, shapes, pack_evidence(self.labels, which))
        free = Plan(topology, seen.offsets, shapes)
        return Chunk(which, seen, float(self.sample_weight[which[0]]), free, bound)

    def _label_gradient(self, chunks: Sequence[Chunk]) -> Floats:
        """Weighted feature counts of the complete labels."""
        gradient = np.zeros(self.size)
        for chunk in chunks:
            if chunk.bound is None:
                known = pack_labels([self.labels[n] for n in chunk.which])
                counts = label_counts(self.scorer.topology, chunk.free.shapes, known)
                self._pull(chunk, counts, gradient)
        return gradient

    def _pull(self, chunk: Chunk, counts: dict[Key, Floats], gradient: Floats) -> None:
        if chunk.weight != 1.0:
            counts = {key: chunk.weight * table for key, table in counts.items()}
        self.scorer.pull(counts, chunk.seen, gradient)

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Loss and gradient over all data."""
        return self._evaluate(weights, self.chunks, self.empirical)

    def part(self, weights: Floats, which: Ints) -> tuple[float, Floats]:
        """Loss and gradient over some sequences."""
        chunks = [self._chunk(part) for part in self._split(np.asarray(which), CHUNK)]
        return self._evaluate(weights, chunks, self._label_gradient(chunks))

    def _evaluate(self, weights: Floats, chunks: Sequence[Chunk], empirical: Floats) -> tuple[float, Floats]:
        lanes = [chunks[k::LANES] for k in range(min(LANES, len(chunks)))]
        loss, gradient = -float(weights @ empirical), -empirical
        for value, pulled in self.workers.map(lambda lane: self._run(weights, lane), lanes):
            loss += value
            gradient += pulled
        return loss, gradient

    def _run(self, weights: Floats, chunks: Sequence[Chunk]) -> tuple[float, Floats]:
        """Loss and gradient of some chunks, one after the other, without the constant part of complete labels."""
        total, gradient = 0.0, np.zeros(self.size)
        for chunk in chunks:
            values = self.scorer.values(weights, chunk.seen)
            result = chunk.free.expectations(values)
            loss, counts = result.log_z.sum(), result.counts
            if chunk.bound is not None:
                known = chunk.bound.expectations(values)
                self._check(known, chunk, weights)
                loss -= known.log_z.sum()
                counts = {key: counts[key] - known.counts[key] for key in counts}
            total += chunk.weight * float(loss)
            self._pull(chunk, counts, gradient)
        return total, gradient

    def _check(self, result: Expectations, chunk: Chunk, weights: Floats) -> None:
        bad = np.flatnonzero(result.log_z == -np.inf)
        if bad.size:
            n = int(chunk.which[bad[0]])
            one = self.seen.take([n])
            values = self.scorer.values(weights, one)
            refuse(Potentials.from_arrays(self.scorer.topology, one.steps, values), self.labels[n], "Y", n)

    def mistakes(self, weights: Floats, which: Ints) -> tuple[float, Floats]:
        """Score of the best configuration minus that of the best one that has the labels, and its gradient."""
        gradient = np.zeros(self.size)
        for part in self._split(np.asarray(which), CHUNK):
            chunk = self._chunk(part)
            values = self.scorer.values(weights, chunk.seen)
            found = best_of(chunk.free, values)
            truth = best_of(chunk.bound, values) if chunk.bound else pack_labels([self.labels[n] for n in part])
            ours, theirs = (label_counts(self.scorer.topology, chunk.free.shapes, y) for y in (found, truth))
            self._pull(chunk, {key: ours[key] - theirs[key] for key in ours}, gradient)
        return float(weights @ gradient), gradient


def best_of(plan: Plan, values: dict[Key, Floats]) -> Known:
    states, ends, _ = plan.trace(MAX, values, 1, np.random.default_rng(0))
    return Known(states[0], ends[0], plan.offsets)
