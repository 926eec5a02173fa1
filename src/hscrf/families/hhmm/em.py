"""The E step, and the tables that the M step makes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.engine import Batch, Evidence
from hscrf.errors import InfeasibleError
from hscrf.families.factors import FactorBlock
from hscrf.features.blocks import Block, ConstantBlock
from hscrf.labels.events import family_events, own_events
from hscrf.labels.labels import Labels
from hscrf.labels.packed import PackedLabels, closed_labels
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import Workers, cut_chunks
from hscrf.observations.packed import Observations
from hscrf.potentials import FAMILY, Key


class Expectation:
    """The E step: log-likelihood of packed data with their labels, and expected sufficient statistics (weights,).

    The statistics are the transpose of the scores applied to the engine's expected counts.
    """

    def __init__(
        self, scorer: Scorer, observations: Observations, labels: Sequence[Labels] | None, workers: Workers
    ) -> None:
        self.scorer = scorer
        self.workers = workers
        self.steps = observations.steps
        closed = None if labels is None else closed_labels(labels, range(len(labels)))
        self.chunks = []
        for which in cut_chunks(np.diff(observations.offsets)):
            part = observations.take(which).divided()
            evidence = None if closed is None else Evidence.of([closed[n] for n in which])
            self.chunks.append((which, part, Batch(scorer.topology, part.offsets, evidence)))

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Return the log-likelihood and the expected counts at these weights."""

        def add(chunk: tuple[Ints, Observations, Batch], statistics: Floats) -> float:
            which, observations, batch = chunk
            result = batch.expectations(self.scorer.values(weights, observations))
            impossible = np.flatnonzero(result.log_z == -np.inf)
            if impossible.size:
                n = int(which[impossible[0]])
                problem = "the sequence and its labels have probability zero in this model"
                raise InfeasibleError(problem).of_sequence(n, "X")
            self.scorer.pull(result.counts, observations, statistics)
            return float(result.log_z.sum())

        return self.workers.sum(add, [self.chunks], self.scorer.size)


def known_counts(scorer: Scorer, known: PackedLabels) -> dict[Key, Floats]:
    """Counts of the events that partial labels determine."""
    counts = {key: np.zeros(shape) for key, shape in scorer.shapes(known.states.shape[1]).items()}
    for key, table in counts.items():
        find = partial(family_events, scorer.topology) if key[0] in FAMILY else own_events
        steps, cells, _ = find(known, key)
        times = np.zeros_like(steps) if key[0] in FAMILY else steps
        np.add.at(table.reshape(len(table), -1), (times, cells), 1.0)
    return counts


def constant_of(block: Block) -> ConstantBlock:
    """The table of probabilities behind a block."""
    constant = block.factor if isinstance(block, FactorBlock) else block
    assert isinstance(constant, ConstantBlock)
    return constant


def dense(block: Block, values: Floats) -> Floats:
    """The table of a block, zero where the topology forbids."""
    constant = constant_of(block)
    table = np.zeros(constant.shape[1:])
    table.reshape(-1)[constant.cells] = values
    return table


def proportions(counts: Floats, former: Floats) -> Floats:
    """Counts divided by their sums over the last axis; the former shares where a sum is zero."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), former)


def log(values: Floats) -> Floats:
    """Return logarithms; -inf for zero, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(values)
