"""The E step and the M step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.engine import Batch, Evidence
from hscrf.errors import InfeasibleError
from hscrf.families.factors import FactorBlock
from hscrf.families.hhmm.emissions import EmissionEncoder, MomentBlock, fit_gaussians, log
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


class Maximisation:
    """The M step: the most likely parameters for expected counts, times a Dirichlet prior.

    Parameters
    ----------
    scorer : Scorer
        The blocks of the model, the emission last.
    encoder : EmissionEncoder
    smoothing : float
        Added to each count of an event.
    min_variance : float
        The smallest variance of a Gaussian.
    """

    def __init__(self, scorer: Scorer, encoder: EmissionEncoder, smoothing: float, min_variance: float) -> None:
        self.scorer, self.encoder = scorer, encoder
        self.smoothing, self.min_variance = smoothing, min_variance

    def __call__(self, statistics: Floats, former: Floats) -> Floats:
        """Return the weights for expected counts; those of events without counts keep their former values."""
        topology = self.scorer.topology
        *tables, (emission, moments) = self.scorer.pieces(statistics)
        counts = {block.key: dense(block, piece + self.smoothing) for block, piece in tables}
        before = {block.key: dense(block, np.exp(piece)) for block, piece in self.scorer.pieces(former)[:-1]}
        found = {key: proportions(counts[key], before[key]) for key in counts if key[0] in ("start", "init")}
        for d in range(topology.depth - 1):
            trans, end = ("trans", d), ("end", d)
            if end in counts:  # what follows a child: a sibling, or the end of the parent
                events, past = (np.concatenate([of[trans], of[end][..., None]], axis=-1) for of in (counts, before))
                shares = proportions(events, past)
                found[trans], found[end] = shares[..., :-1], shares[..., -1]
            else:
                found[trans] = proportions(counts[trans], before[trans])
        weights = former.copy()
        *pieces, (_, last) = self.scorer.pieces(weights)
        for block, piece in pieces:
            piece[:] = log(found[block.key].ravel()[constant_of(block).cells])
        if isinstance(emission, MomentBlock):
            fit_gaussians(emission, moments, last, self.encoder, self.min_variance)
        else:
            table = (moments + self.smoothing).reshape(-1, topology.n_states[-1]).T
            last[:] = log(proportions(table, np.exp(last).reshape(table.shape[::-1]).T)).T.ravel()
        return weights

    def log_prior(self, weights: Floats) -> float:
        """Return the log density of the Dirichlet priors, up to a constant."""
        if not self.smoothing:
            return 0.0
        tables = [w for block, w in self.scorer.pieces(weights) if not isinstance(block, MomentBlock)]
        return self.smoothing * float(np.concatenate(tables).sum())


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
