"""Sequences that are encoded and scored once, for all methods of a predictor."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.engine import Batch, Evidence
from hscrf.estimator.answers import Answer, answers_of
from hscrf.fillers import expanded, summed
from hscrf.inference import Marginals, Posterior
from hscrf.labels.labels import Labels
from hscrf.labels.packed import closed_labels
from hscrf.objective.scorer import Scorer
from hscrf.observations.packed import Observations
from hscrf.topology import Topology

SHORT, RECENT = 256, 128  # most steps, and most batches, in the cache
_recent: dict[tuple[int, bytes], Batch] = {}  # by topology and offsets, in the order of their last use
_lock = Lock()


def batch_of(topology: Topology, offsets: Ints) -> Batch:
    """A batch without evidence; short ones are cached by their lengths, with their plans."""
    if offsets[-1] > SHORT:
        return Batch(topology, offsets)
    key = id(topology), offsets.tobytes()
    with _lock:
        batch = _recent.pop(key, None)
        if batch is None or batch.topology is not expanded(topology):
            batch = Batch(topology, offsets)
        _recent[key] = batch
        if len(_recent) > RECENT:
            del _recent[next(iter(_recent))]
    return batch


class Scored:
    """A chunk of a data set: numbers of its sequences, their potentials, and their known labels.

    ``known`` are the labels of the whole data set, or None; ``name`` is their name in errors.
    """

    def __init__(
        self,
        scorer: Scorer,
        weights: Floats,
        observations: Observations,
        numbers: Ints,
        known: Sequence[Labels] | None,
        name: str,
    ) -> None:
        part = observations if numbers.size == observations.offsets.size - 1 else observations.take(numbers)
        self.scorer = scorer
        self.topology = scorer.topology
        self.values = scorer.values(weights, part)
        self.offsets = part.offsets
        self.numbers = numbers
        self.known = None if known is None else [known[n] for n in numbers]
        self.name = "X" if known is None else name
        self._batch: Batch | None = None

    @property
    def batch(self) -> Batch:
        """The sequences as the engine takes them, made once: before Python 3.12, ``cached_property`` blocks threads."""
        if self._batch is None:
            self._batch = self._new_batch()
        return self._batch

    def _new_batch(self) -> Batch:
        if self.known is None:
            return batch_of(self.topology, self.offsets)
        evidence = Evidence.of(closed_labels(self.known, self.numbers, self.name))
        return Batch(self.topology, self.offsets, evidence)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """First packed step and end of each sequence."""
        return list(zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True))

    def posterior(self, k: int) -> Posterior:
        """The k-th sequence by itself."""
        begin, stop = self.offsets[k : k + 2].tolist()
        own = {key: table[begin:stop] if key in self.scorer.timed else table for key, table in self.values.items()}
        return Posterior.of_values(self.topology, stop - begin, own, None if self.known is None else self.known[k])

    def marginals(self) -> list[Marginals]:
        """The marginals of each sequence; their counts are computed on demand."""
        result = self.batch.expectations(self.values)
        self.require(result.log_z)
        levels = self.topology.levels
        states = [summed(self.topology, d, table) for d, table in enumerate(result.state)]
        found = []
        for k, (a, b) in enumerate(self.spans):
            state = {level: table[a:b] for level, table in zip(levels, states, strict=True)}
            ending = {level: row[a:b] for level, row in zip(levels, result.ending, strict=True)}
            found.append(Marginals(float(result.log_z[k]), state, ending, self.posterior(k)))
        return found

    def each(self, answer: Answer) -> list[Any]:
        """The answers of all posteriors, each with the number of its sequence."""
        return answers_of(((n, self.posterior(k)) for k, n in enumerate(self.numbers.tolist())), answer, self.name)

    def require(self, mass: Floats) -> None:
        """Raise for the first sequence without any configuration: its log mass is -inf."""
        if mass.min() == -np.inf:
            k = int(mass.argmin())
            raise self.posterior(k).infeasible().of_sequence(int(self.numbers[k]), self.name)
