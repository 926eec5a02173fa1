"""Exact inference on one sequence: log_partition, marginals, decode, k_best, sample, entropy, score."""

from __future__ import annotations

from typing import Any

import numpy as np

from hscrf.arrays import Random
from hscrf.fillers import expanded, hidden
from hscrf.inference.posterior import Marginals, Posterior, check_fit, values_of
from hscrf.labels.labels import Labels
from hscrf.potentials import Potentials, explicit_lengths
from hscrf.topology import UNLIMITED


def log_partition(potentials: Potentials, evidence: Labels | None = None) -> float:
    """Return the log of the total mass of all configurations that agree with the evidence.

    Parameters
    ----------
    potentials : Potentials
        Log-potentials of one sequence.
    evidence : Labels, optional
        Known states and ends. None means that nothing is known.

    Returns
    -------
    float
        log Z, in nats.

    Raises
    ------
    InfeasibleError
        If no configuration agrees with the evidence.

    Examples
    --------
    >>> from hscrf import Potentials, Topology
    >>> p = Potentials(Topology({"tag": ["N", "V"]}), 3)
    >>> round(np.exp(log_partition(p)))
    8
    """
    return Posterior(potentials, evidence).log_partition


def marginals(potentials: Potentials, evidence: Labels | None = None) -> Marginals:
    """Return posterior probabilities of states, ends and segments, and the expected counts.

    The counts are the gradient of :func:`log_partition` with respect to the potentials.

    Parameters
    ----------
    potentials, evidence
        As in :func:`log_partition`.

    Returns
    -------
    Marginals

    Raises
    ------
    InfeasibleError
        If no configuration agrees with the evidence.

    Examples
    --------
    >>> from hscrf import Potentials, Topology
    >>> p = Potentials(Topology({"tag": ["N", "V"]}), 3)
    >>> marginals(p).state["tag"].tolist()
    [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    """
    return Posterior(potentials, evidence).marginals


def decode(potentials: Potentials, evidence: Labels | None = None) -> Labels:
    """Return the best configuration that agrees with the evidence; its log score is ``.score``.

    A fixed rule breaks ties, backwards from the last step. It prefers the state that comes first in the topology, then
    the shortest segment of the lowest level, then a boundary at the fewest levels.

    Parameters
    ----------
    potentials, evidence
        As in :func:`log_partition`.

    Returns
    -------
    Labels

    Raises
    ------
    InfeasibleError
        If no configuration agrees with the evidence.

    Examples
    --------
    >>> from hscrf import Potentials, Topology
    >>> p = Potentials(Topology({"tag": ["N", "V"]}), 3, token={"tag": [[1, 0], [0, 2], [0, 0.5]]})
    >>> decode(p).column("tag"), decode(p).score
    (['N', 'V', 'V'], 3.5)
    """
    return Posterior(potentials, evidence).decode()


def k_best(potentials: Potentials, k: int, evidence: Labels | None = None) -> list[Labels]:
    """Return the k best configurations, the best first; fewer if there are fewer.

    After one pass as in :func:`decode`, the work grows with k and the length, not with the number of states.

    Parameters
    ----------
    potentials, evidence
        As in :func:`log_partition`.
    k : int
        The number of configurations.

    Returns
    -------
    list of Labels

    Raises
    ------
    InfeasibleError
        If no configuration agrees with the evidence.
    """
    return Posterior(potentials, evidence).k_best(k)


def sample(
    potentials: Potentials, n: int = 1, random_state: Random = None, evidence: Labels | None = None
) -> list[Labels]:
    """Draw n exact and independent samples from the posterior.

    Parameters
    ----------
    potentials, evidence
        As in :func:`log_partition`.
    n : int
        The number of samples.
    random_state : int, numpy Generator or None
        A seed or a generator.

    Returns
    -------
    list of Labels

    Raises
    ------
    InfeasibleError
        If no configuration agrees with the evidence.
    """
    return Posterior(potentials, evidence).sample(n, random_state)


def entropy(potentials: Potentials, evidence: Labels | None = None) -> float:
    """Return the entropy of the posterior over configurations: log Z minus the expected score.

    Parameters
    ----------
    potentials, evidence
        As in :func:`log_partition`.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    InfeasibleError
        If no configuration agrees with the evidence.
    """
    return Posterior(potentials, evidence).entropy()


def score(potentials: Potentials, labels: Labels) -> float:
    """Return the log score of one complete configuration; -inf if a potential forbids it.

    Parameters
    ----------
    potentials : Potentials
        Log-potentials of one sequence.
    labels : Labels
        Complete labels of the same topology and length.

    Returns
    -------
    float

    Raises
    ------
    InfeasibleError
        If the labels break a rule of the topology.
    ValueError
        If the labels are incomplete, or have another topology or length.
    """
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
