"""The E step, and the tables that the M step makes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hscrf.arrays import Floats
from hscrf.engine.evidence import pack_evidence
from hscrf.engine.plan import Plan
from hscrf.errors import InfeasibleError
from hscrf.families.factors import FactorBlock
from hscrf.features.blocks import Block, ConstantBlock
from hscrf.features.events import family_events, own_events
from hscrf.labels.labels import Labels
from hscrf.labels.packed import Known
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import LANES, Workers, cut
from hscrf.observations.packed import Observations
from hscrf.potentials import FAMILY, Key


class Expectation:
    """The E step: log-likelihood of packed data with their labels, and expected sufficient statistics (weights,).

    The statistics are the transpose of the scores applied to the engine's expected counts.
    """

    def __init__(self, scorer: Scorer, seen: Observations, labels: Sequence[Labels] | None, workers: Workers) -> None:
        self.scorer = scorer
        self.workers = workers
        self.steps = seen.steps
        self.chunks = [self._chunk(which, seen.take(which), labels) for which in cut(seen.offsets)]

    def _chunk(self, which: range, seen: Observations, labels: Sequence[Labels] | None) -> Any:
        evidence = None if labels is None else pack_evidence(labels, which)
        plan = Plan(self.scorer.topology, seen.offsets, self.scorer.shapes(seen.steps), evidence)
        return which, seen.by_columns(), plan

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        lanes = [self.chunks[k::LANES] for k in range(min(LANES, len(self.chunks)))]
        total, statistics = 0.0, np.zeros(self.scorer.size)
        for value, pulled in self.workers.map(lambda lane: self._run(weights, lane), lanes):
            total += value
            statistics += pulled
        return total, statistics

    def _run(self, weights: Floats, chunks: Sequence[tuple[range, Observations, Plan]]) -> tuple[float, Floats]:
        total, statistics = 0.0, np.zeros(self.scorer.size)
        for which, seen, plan in chunks:
            result = plan.expectations(self.scorer.values(weights, seen))
            bad = np.flatnonzero(result.log_z == -np.inf)
            if bad.size:
                problem = "the sequence and its labels have probability zero in this model"
                raise InfeasibleError(problem).of_sequence(which[int(bad[0])], "X")
            total += float(result.log_z.sum())
            self.scorer.pull(result.counts, seen, statistics)
        return total, statistics


def known_counts(scorer: Scorer, known: Known) -> dict[Key, Floats]:
    """Counts of the events that partial labels tell for sure."""
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
    """Counts as shares of their last axis; where there are none, the former shares."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), former)


def log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(values)
