"""The loss of a model on a packed data set: a list of chunks, and an order of summation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.engine import Batch, Evidence
from hscrf.errors import InfeasibleError
from hscrf.inference.posterior import Posterior
from hscrf.labels.labels import Labels
from hscrf.labels.packed import pack_labels
from hscrf.objective.bundles import Bundle, bundled
from hscrf.objective.chunk import Chunk
from hscrf.objective.margin import Costs
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import Workers, cut
from hscrf.observations.packed import Observations
from hscrf.potentials import Potentials


class Likelihood:
    """Weighted sum over sequences of log Z(free) - log Z(labels), its gradient, and the perceptron's.

    Complete labels cost one inference, partial ones two; labels are closed once. ``costs`` of wrong states make it
    the softmax-margin loss, see :class:`Chunk`. The same bits for any number of
    threads: chunks and partial sums depend on the data alone, and are added in a fixed order.
    """

    def __init__(
        self,
        scorer: Scorer,
        observations: Observations,
        labels: Sequence[Labels],
        sample_weight: Floats | None = None,
        workers: Workers | None = None,
        costs: Costs | None = None,
    ) -> None:
        self.scorer = scorer
        self.observations = observations
        self.labels = labels
        self.size = scorer.size
        self.costs = costs
        self.n_parts = len(labels)
        self.workers = workers or Workers()
        self.sample_weight = checked_weights(sample_weight, self.n_parts)
        self.known = pack_labels(labels)
        self.complete = self.known.complete_sequences()
        partial = np.flatnonzero(~self.complete).tolist()
        self.closed = dict(zip(partial, closed_labels([labels[n] for n in partial], partial), strict=True))

    @cached_property
    def chunks(self) -> list[tuple[Ints, Chunk]]:
        """All sequences in chunks; made when first needed, for some solvers take bundles instead."""
        return [(which, self._chunk(which, again=True)) for which in self._cut(np.arange(self.n_parts))]

    def _cut(self, which: Ints) -> list[Ints]:
        """Chunks of some sequences: those with partial labels first."""
        order = which[np.argsort(self.complete[which], kind="stable")]
        return cut(np.diff(self.observations.offsets), order, self.complete)

    def _chunk(self, which: Ints, again: bool = False, batches: dict[bytes, Batch] | None = None) -> Chunk:
        """Some sequences by themselves; ``again`` makes ready for many evaluations.

        ``batches`` are shared between all that have the same lengths in the same order.
        """
        observations = self.observations.take(which)
        if self.complete[which[0]]:
            labels: Any = self.known.take(which)
        else:
            labels = Evidence.of([self.closed[n] for n in which])
        if again:
            observations = observations.by_columns() if batches is None else observations.both_ways()
        free = None
        if batches is not None:
            fresh = Batch(self.scorer.topology, observations.offsets)
            free = batches.setdefault(observations.offsets.tobytes(), fresh)
        return Chunk(self.scorer, observations, labels, self.sample_weight[which], self.costs, free)

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Loss and gradient over all data."""
        return self._evaluate(weights, self.chunks)

    def log_likelihood(self, weights: Floats) -> float:
        """Weighted sum of the log probabilities of the labels, without costs."""

        def of_chunk(item: tuple[Ints, Chunk]) -> float:
            which, chunk = item
            with self._explained(weights, which):
                return chunk.log_likelihood(weights)

        return sum(self.workers.map(of_chunk, self.chunks))

    def folds(self, parts: Sequence[Ints]) -> list[tuple[Likelihood, Likelihood]]:
        """For each part of the sequences the loss of all others, and its own; they share their chunks.

        Sequences keep their numbers.
        """
        cuts = [[(which, self._chunk(which, again=True)) for which in self._cut(np.sort(part))] for part in parts]
        return [
            (self._of([item for other in cuts if other is not own for item in other]), self._of(own)) for own in cuts
        ]

    def _of(self, chunks: list[tuple[Ints, Chunk]]) -> Likelihood:
        """The same with other chunks."""
        found = copy(self)
        found.chunks = chunks
        return found

    @property
    def groups(self) -> list[slice]:
        """The weights of each block."""
        return self.scorer.slices

    def bundles(self, order: Ints, size: int) -> list[Bundle]:
        """All sequences in fixed bundles of at most ``size``, of like lengths; the order decides among equal ones."""
        batches: dict[bytes, Batch] = {}
        cuts = bundled(np.diff(self.observations.offsets), order, size, self.complete)
        return [Bundle(self._chunk(which, True, batches), which, self._explained) for which in cuts]

    def part(self, weights: Floats, which: Ints) -> tuple[float, Floats]:
        """Loss and gradient over some sequences."""
        return self._evaluate(weights, [(some, self._chunk(some)) for some in self._cut(np.asarray(which))])

    def _evaluate(self, weights: Floats, chunks: Sequence[tuple[Ints, Chunk]]) -> tuple[float, Floats]:
        def add(item: tuple[Ints, Chunk], gradient: Floats) -> float:
            which, chunk = item
            with self._explained(weights, which):
                return chunk.add_to(gradient, weights)

        return self.workers.sum(add, chunks, self.size)

    def mistakes(self, weights: Floats, which: Ints) -> tuple[float, Floats]:
        """Score of the best configuration minus that of the best one that has the labels, and its gradient."""
        total, gradient = 0.0, np.zeros(self.size)
        for some in self._cut(np.asarray(which)):
            with self._explained(weights, some):
                distance, pull = self._chunk(some).mistakes(weights)
            total += distance
            gradient += pull
        return total, gradient

    @contextmanager
    def _explained(self, weights: Floats | Callable[[], Floats], which: Ints) -> Iterator[None]:
        """Say which labels of which sequence of the data set contradict each other."""
        try:
            yield
        except InfeasibleError as error:
            if error.sequence is None:
                raise
            n = int(which[error.sequence])
            values = self.scorer.values(weights() if callable(weights) else weights, self.observations.take([n]))
            potentials = Potentials.from_arrays(self.scorer.topology, self.labels[n].length, values)
            raise Posterior(potentials, self.labels[n]).infeasible().of_sequence(n) from None


def closed_labels(labels: Sequence[Labels], numbers: Iterable[int], name: str = "Y") -> list[Labels]:
    """Closed labels; errors name the sequence by its number."""
    closed = []
    for y, n in zip(labels, numbers, strict=True):
        try:
            closed.append(y.closed())
        except InfeasibleError as error:
            raise error.of_sequence(int(n), name) from None
    return closed


def checked_weights(sample_weight: Any, size: int) -> Floats:
    """A weight for each sequence; one if none are given."""
    if sample_weight is None:
        return np.ones(size)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (size,):
        raise ValueError(f"sample_weight has shape {weights.shape}, expected ({size},), a weight for each sequence")
    bad = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if bad.size:
        raise ValueError(f"sample_weight[{bad[0]}] is {weights[bad[0]]}, expected a finite number of at least 0")
    return weights
