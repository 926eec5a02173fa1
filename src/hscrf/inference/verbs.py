"""Exact inference: the verbs log_partition, marginals, decode, k_best, sample, entropy, score."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hscrf.arrays import Floats
from hscrf.engine.kernels.arithmetic import LOG, MAX
from hscrf.inference.conflicts import feasible
from hscrf.inference.single import evidence_of, plan_of, values_of
from hscrf.labels.labels import Labels
from hscrf.potentials import Potentials


@dataclass(frozen=True)
class Marginals:
    """Posterior probabilities of one sequence."""

    log_partition: float
    state: dict[str, Floats]  # level -> (T, S): the level is in state s at t
    ending: dict[str, Floats]  # level -> (T,): a segment of the level has its last step at t
    counts: Potentials  # expected counts, shaped like the potentials: the gradient of log Z
    _potentials: Potentials = field(repr=False)
    _evidence: Labels | None = field(repr=False)

    def segment(self, level: str) -> Floats:
        """Posterior (T, L, S) that a segment of state s starts at t and has length l + 1.

        L is the longest segment that is admissible. Computed on demand for a level without durations: O(T^2 S).
        """
        d = self.counts.topology.level(level)
        plan = plan_of(self._potentials, self._evidence, explicit=(d,) if d else ())
        if d not in plan.tables:  # a bottom of unit length
            return self.state[self.counts.topology.levels[d]][:, None, :]
        return plan.by_start(d, plan.expectations(values_of(self._potentials)).segments[d])


def log_partition(potentials: Potentials, evidence: Labels | None = None) -> float:
    """Log of the total mass of all configurations that agree with the evidence.

    >>> from hscrf import Potentials, Topology
    >>> p = Potentials(Topology({"tag": ["N", "V"]}), 3)
    >>> round(np.exp(log_partition(p)))
    8
    """
    plan = plan_of(potentials, evidence)
    return feasible(float(plan.log_partition(values_of(potentials))[0]), potentials, evidence)


def marginals(potentials: Potentials, evidence: Labels | None = None) -> Marginals:
    """Posterior probabilities of states, endings and segments, and the expected counts.

    The counts are the gradient of :func:`log_partition` with respect to the potentials.
    """
    topology = potentials.topology
    result = plan_of(potentials, evidence).expectations(values_of(potentials))
    feasible(result.log_z[0], potentials, evidence)
    return Marginals(
        float(result.log_z[0]),
        dict(zip(topology.levels, result.state, strict=True)),
        dict(zip(topology.levels, result.ending, strict=True)),
        Potentials.from_arrays(topology, potentials.length, result.counts),
        potentials,
        evidence,
    )


def decode(potentials: Potentials, evidence: Labels | None = None) -> Labels:
    """The best configuration that agrees with the evidence; its log score is ``.score``.

    Ties are broken by a fixed rule, walking back from the last step: the state that comes first in the topology, then
    the shortest segment of the lowest level, and a boundary at as few levels as will do.
    """
    states, ends, best = plan_of(potentials, evidence).trace(MAX, values_of(potentials), 1, np.random.default_rng(0))
    feasible(best[0], potentials, evidence)
    return Labels(potentials.topology, states[0], ends[0], score=float(best[0]))


def sample(
    potentials: Potentials, n: int = 1, random_state: Any = None, evidence: Labels | None = None
) -> list[Labels]:
    """Draw n exact and independent samples from the posterior; random_state as for numpy's ``default_rng``."""
    rng = np.random.default_rng(random_state)
    states, ends, log_z = plan_of(potentials, evidence).trace(LOG, values_of(potentials), n, rng)
    feasible(log_z[0], potentials, evidence)
    return [Labels(potentials.topology, x, e) for x, e in zip(states, ends, strict=True)]


def entropy(potentials: Potentials, evidence: Labels | None = None) -> float:
    """Entropy, in nats, of the posterior over configurations: log Z minus the expected score."""
    posterior = marginals(potentials, evidence)
    expected = 0.0
    for part, level, values in potentials.parts():
        counts = posterior.counts[part][level]
        expected += float((counts[counts > 0] * values[counts > 0]).sum())
    return posterior.log_partition - expected


def score(potentials: Potentials, labels: Labels) -> float:
    """Log score of one complete configuration; -inf if a potential forbids it."""
    evidence_of(potentials, labels)
    topology = potentials.topology
    total = 0.0
    for d, level in enumerate(topology.levels):
        start, stop, state = labels.segment_arrays(d)
        last = stop - 1
        total += own_score(potentials, level, start, last, state)
        if d + 1 < topology.depth:
            total += family_score(potentials, labels, d, start, last, state)
    return total


def own_score(p: Potentials, level: str, start: Any, last: Any, state: Any) -> float:
    """Score of the segments of a level by themselves: the paper's persistence."""
    length = last - start
    total = 0.0
    if level in p.token:
        total += sum(p.token[level][i : j + 1, s].sum() for i, j, s in zip(start, last, state, strict=True))
    if level in p.start:
        total += p.start[level][start, state].sum()
    if level in p.stop:
        total += p.stop[level][last, state].sum()
    for table, index in ((p.duration, (length, state)), (p.segment, (start, length, state))):
        if level in table:
            longest = table[level].shape[-2]
            if (length >= longest).any():
                return -np.inf
            total += table[level][index].sum()
    return float(total)


def family_score(p: Potentials, labels: Labels, d: int, start: Any, last: Any, state: Any) -> float:
    """Score of a level's parents and their children: init, trans and end."""
    level = p.topology.levels[d]
    first, stop, child = labels.segment_arrays(d + 1)
    total = 0.0
    for part, times, kids in (
        (p.init, start, child[np.searchsorted(first, start)]),
        (p.end, last, child[np.searchsorted(stop, last + 1)]),
    ):
        if level in part:
            table = part[level]
            total += table[times if len(table) > 1 else np.zeros_like(times), state, kids].sum()
    if level in p.trans:
        table = p.trans[level]
        inner = np.flatnonzero(~np.isin(stop[:-1], last + 1))  # a child ends, its parent goes on
        parent = labels.states[d, first[inner]]
        when = stop[inner] - 1 if len(table) > 1 else np.zeros_like(inner)
        total += table[when, parent, child[inner], child[inner + 1]].sum()
    return float(total)


def k_best(potentials: Potentials, k: int, evidence: Labels | None = None) -> list[Labels]:
    """The k best configurations in order of their score, fewer if there are not so many.

    Lazy: after one pass as in :func:`decode`, the work grows with k and the length, not with the model.
    """
    from itertools import islice

    from hscrf.engine.kbest import KBest

    best = [
        Labels(potentials.topology, states, ends, score=score)
        for score, states, ends in islice(KBest(plan_of(potentials, evidence), values_of(potentials)), k)
    ]
    if not best:
        feasible(-np.inf, potentials, evidence)
    return best
