"""Some sequences, independent of others: their loss and its gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.engine import Batch, Evidence
from hscrf.errors import InfeasibleError
from hscrf.fillers import expanded, shown, summed
from hscrf.labels.events import event_cells
from hscrf.labels.packed import PackedLabels
from hscrf.objective.margin import Costs, add_costs, costs_of_steps, hidden_costs
from hscrf.objective.scorer import Scorer
from hscrf.observations.packed import Observations
from hscrf.potentials import FAMILY, Key
from hscrf.topology import Topology

SHARPNESS = 4  # power of the posteriors in soft errors


class Chunk:
    """Packed observations of some sequences, their labels, and a weight for each.

    The labels are complete (``PackedLabels``) or partial (``Evidence``: closed, packed). Both are of the engine's
    hidden states (:mod:`hscrf.fillers`). ``evaluate`` gives the weighted sum of log Z(free) - log Z(labels) and its
    gradient: the transpose of the scores applied to (expected counts - counts of the labels). Complete labels need no
    inference for their own term.

    With ``costs`` of wrong states it is the softmax-margin loss (Gimpel and Smith 2010). Each configuration in Z(free)
    is multiplied by exp(cost) of its wrong states, so the labels must outscore it by its cost.

    A chunk does not depend on other chunks. It can be pickled, and gives the same bits in every process of a machine.
    Errors number its sequences from 0.
    """

    def __init__(
        self,
        scorer: Scorer,
        observations: Observations,
        labels: PackedLabels | Evidence,
        weights: Floats | None = None,
        costs: Costs | None = None,
        free: Batch | None = None,
    ) -> None:
        self.scorer = scorer
        self.observations = observations
        self.labels = labels
        self.weights = None if weights is None or (weights == 1).all() else weights
        self.costs = {d: hidden_costs(scorer.topology, d, table) for d, table in (costs or {}).items()}
        self.free = free or Batch(scorer.topology, observations.offsets)
        self.bound = Batch(scorer.topology, observations.offsets, labels) if isinstance(labels, Evidence) else None
        self._observed: LabelCounts | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the user's sequences if no block reads them: packed observations are far smaller."""
        state = {**self.__dict__, "_observed": None}
        if not any(block.reads_raw for block in self.scorer.blocks):
            state["observations"] = replace(self.observations, raw=())
        return state

    @property
    def observed(self) -> LabelCounts:
        """The counts of complete labels, made once: before Python 3.12, ``cached_property`` blocks threads."""
        if self._observed is None:
            assert isinstance(self.labels, PackedLabels)
            self._observed = self._counts_of(self.labels)
        return self._observed

    def _counts_of(self, known: PackedLabels) -> LabelCounts:
        shapes = self.scorer.shapes(self.observations.steps)
        return LabelCounts(expanded(self.scorer.topology), shapes, known, self.weights)

    def _values(self, weights: Floats, factors: Sequence[float] | None = None) -> dict[Key, Floats]:
        """The scores of all sequences, with the costs of wrong states added."""
        values = self.scorer.values(weights, self.observations, factors)
        if self.costs:
            add_costs(values, costs_of_steps(self.costs, self.labels))
        return values

    def evaluate(self, weights: Floats) -> tuple[float, Floats]:
        """The loss at these weights, and its gradient."""
        gradient = np.zeros(self.scorer.size)
        return self.add_to(gradient, weights), gradient

    def add_to(self, gradient: Floats, weights: Floats) -> float:
        """The loss at these weights; its gradient is added to the array given."""
        loss, counts = self.loss_and_counts(weights)
        self.scorer.pull(counts, self.observations, gradient)
        return loss

    def loss_and_counts(
        self, weights: Floats, factors: Sequence[float] | None = None
    ) -> tuple[float, dict[Key, Floats]]:
        """The loss, and expected counts minus those of the labels; ``factors`` multiply the weights of each block."""
        values = self._values(weights, factors)
        result = self.free.expectations(values, self.weights)
        loss, counts = self._total(result.log_z), result.counts
        if self.bound is None:
            loss -= self.observed.score(values)
            self.observed.add_to(counts, -1.0)
        else:
            known = self.bound.expectations(values, self.weights)
            self._check(known.log_z)
            loss -= self._total(known.log_z)
            counts = {key: counts[key] - known.counts[key] for key in counts}
        return loss, counts

    def soft_errors(self, weights: Floats) -> Floats:
        """Return the number of wrong labels of each sequence, times its weight, if the most probable ones are chosen.

        Each step counts its wrong states and, at levels whose segments last, its wrong borders; costs do not count. To
        make the number smooth, the guess at a step is divided among its states, in proportion to powers of their
        posteriors. Unknown labels are never wrong.
        """
        wrong = np.zeros(self.observations.steps)
        topology = self.scorer.topology
        found = self.free.expectations(self.scorer.values(weights, self.observations))
        for d, posterior in enumerate(found.state):
            shares = summed(topology, d, posterior) ** SHARPNESS
            shares /= shares.sum(axis=1, keepdims=True)
            wrong += 1 - self._right(shares, d)
            if d > 0 and not (topology.unit_bottom and d == topology.depth - 1):
                wrong += 1 - self._right_border(found.ending[d], d)
        sums = np.add.reduceat(wrong, self.observations.offsets[:-1])
        return sums if self.weights is None else self.weights * sums

    def _right(self, shares: Floats, d: int) -> Floats:
        """The share (N,) of the allowed states of a level in the shares (N, S) of all states."""
        if isinstance(self.labels, PackedLabels):
            return shares[np.arange(len(shares)), shown(self.scorer.topology, self.labels.states)[d]]
        allowed = self.labels.allowed[d]
        if allowed is None:
            return shares.sum(axis=1)
        return shares.sum(axis=1, where=summed(self.scorer.topology, d, allowed.astype(np.float64)) > 0)

    def _right_border(self, ending: Floats, d: int) -> Floats:
        """The share (N,) that a guess by the posterior of an end of level d (N,) gives to the labelled end."""
        ends, on = ending.clip(0, 1) ** SHARPNESS, (1 - ending).clip(0, 1) ** SHARPNESS
        share = ends / (ends + on)
        if isinstance(self.labels, PackedLabels):
            return np.where(self.labels.ends[d] == 1, share, 1 - share)
        may_end, may_go_on = self.labels.may_end[d], self.labels.may_go_on[d]
        return np.where(may_end & may_go_on, 1.0, np.where(may_end, share, 1 - share))

    def mistakes(self, weights: Floats) -> tuple[float, Floats]:
        """Return the margin of the best configurations over the best ones that have the labels, and its gradient.

        With costs, the best configurations have the largest sum of score and cost, and the margin includes the costs.
        """
        gradient = np.zeros(self.scorer.size)
        distance, counts = self.mistake_counts(weights)
        if counts is not None:
            self.scorer.pull(counts, self.observations, gradient)
        return distance, gradient

    def mistake_counts(
        self, weights: Floats, factors: Sequence[float] | None = None
    ) -> tuple[float, dict[Key, Floats] | None]:
        """The same margin, and the counts of the best minus those of the labels; None if they are the same."""
        values = self._values(weights, factors)
        best, distance = self._best(self.free, values)
        if self.bound is None:
            assert isinstance(self.labels, PackedLabels)
            right = self.labels
        else:
            right, score = self._best(self.bound, values)
        if np.array_equal(best.states, right.states) and np.array_equal(best.ends, right.ends):
            return 0.0, None
        truth = self.observed if self.bound is None else self._counts_of(right)
        counts = {key: np.zeros(shape) for key, shape in self.scorer.shapes(self.observations.steps).items()}
        self._counts_of(best).add_to(counts)
        truth.add_to(counts, -1.0)
        return distance - (truth.score(values) if self.bound is None else score), counts

    def _best(self, batch: Batch, values: dict[Key, Floats]) -> tuple[PackedLabels, float]:
        """The best configurations, and the weighted sum of their scores."""
        states, ends, score = batch.best(values)
        self._check(score)
        return PackedLabels(states, ends, self.observations.offsets), self._total(score)

    def _total(self, log_z: Floats) -> float:
        return float(log_z.sum() if self.weights is None else self.weights @ log_z)

    def _check(self, log_z: Floats) -> None:
        impossible = np.flatnonzero(log_z == -np.inf)
        if impossible.size:
            problem = "no configuration agrees with the labels"
            raise InfeasibleError(problem).of_sequence(int(impossible[0]), "sequence")


class LabelCounts:
    """Counts of packed complete labels, in the form of expected counts.

    For each array of potentials: the flat indices of the cells that occur, each once, and how often each occurs. An
    occurrence counts as much as its sequence weighs.
    """

    def __init__(
        self,
        topology: Topology,
        shapes: Mapping[Key, tuple[int, ...]],
        known: PackedLabels,
        weights: Floats | None = None,
    ) -> None:
        each = None if weights is None else np.repeat(weights, np.diff(known.offsets))
        self.cells: dict[Key, tuple[Ints, Floats]] = {}
        for key, shape in shapes.items():
            cells, steps = event_cells(topology, shapes, known, key)
            amounts = np.ones(len(cells)) if each is None else each[steps]
            if key[0] in ("duration", "tail") or (key[0] in FAMILY and shape[0] == 1):  # the same cell at many steps
                totals = np.bincount(cells, amounts).astype(np.float64)
                cells = np.flatnonzero(totals)
                amounts = totals[cells]
            self.cells[key] = cells, amounts

    def score(self, values: Mapping[Key, Floats]) -> float:
        """The weighted sum of the log scores of the labels."""
        return sum(float(amounts @ values[key].reshape(-1)[cells]) for key, (cells, amounts) in self.cells.items())

    def add_to(self, counts: dict[Key, Floats], factor: float = 1.0) -> None:
        """Add these counts, times a factor, to arrays of their shapes."""
        for key, (cells, amounts) in self.cells.items():
            table = np.ascontiguousarray(counts[key])
            table.reshape(-1)[cells] += factor * amounts
            counts[key] = table
