"""Exact inference on one sequence: log_partition, marginals, decode, k_best, sample, entropy, score."""

from __future__ import annotations

from typing import Any

import numpy as np

from hscrf.fillers import expanded, hidden
from hscrf.inference.posterior import Marginals, Posterior, check_fit, values_of
from hscrf.labels.labels import Labels
from hscrf.potentials import Potentials, explicit_lengths
from hscrf.topology import UNLIMITED


def log_partition(potentials: Potentials, evidence: Labels | None = None) -> float:
    """Log of the total mass of all configurations that agree with the evidence.

    >>> from hscrf import Potentials, Topology
    >>> p = Potentials(Topology({"tag": ["N", "V"]}), 3)
    >>> round(np.exp(log_partition(p)))
    8
    """
    return Posterior(potentials, evidence).log_partition


def marginals(potentials: Potentials, evidence: Labels | None = None) -> Marginals:
    """Posterior probabilities of states, endings and segments, and the expected counts.

    The counts are the gradient of :func:`log_partition` with respect to the potentials.
    """
    return Posterior(potentials, evidence).marginals


def decode(potentials: Potentials, evidence: Labels | None = None) -> Labels:
    """The best configuration that agrees with the evidence; its log score is ``.score``.

    Ties are broken by a fixed rule, walking back from the last step: the state that comes first in the topology, then
    the shortest segment of the lowest level, and a boundary at as few levels as will do.
    """
    return Posterior(potentials, evidence).decode()


def k_best(potentials: Potentials, k: int, evidence: Labels | None = None) -> list[Labels]:
    """The k best configurations in order of their score, fewer if there are fewer.

    Lazy: after one pass as in :func:`decode`, the work grows with k and the length, not with the model.
    """
    return Posterior(potentials, evidence).k_best(k)


def sample(
    potentials: Potentials, n: int = 1, random_state: Any = None, evidence: Labels | None = None
) -> list[Labels]:
    """Draw n exact and independent samples from the posterior; random_state is a seed or a generator."""
    return Posterior(potentials, evidence).sample(n, random_state)


def entropy(potentials: Potentials, evidence: Labels | None = None) -> float:
    """Entropy, in nats, of the posterior over configurations: log Z minus the expected score."""
    return Posterior(potentials, evidence).entropy()


def score(potentials: Potentials, labels: Labels) -> float:
    """Log score of one complete configuration; -inf if a potential forbids it."""
    check_fit(potentials, labels, "labels")
    labels.check()
    topology = potentials.topology
    states = hidden(topology, labels.states, labels.ends, np.array([0, labels.length]))
    labels = Labels.unchecked(expanded(topology), states, labels.ends)
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
    length, total = last - start, 0.0
    d = p.topology.level(level)
    if d in p.topology.open_levels:  # longer ones count as the longest explicit ones, and some steps more
        engine, shapes = expanded(p.topology), {key: values.shape for key, values in values_of(p).items()}
        longest = np.where(engine.open_duration[d], explicit_lengths(engine, d, shapes), UNLIMITED)[state]
        beyond = np.maximum(length + 1 - longest, 0)
        length = length - beyond
        if level in p.tail:
            total += beyond[beyond > 0] @ p.tail[level][state[beyond > 0]]
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
