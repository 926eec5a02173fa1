"""Differences between the compiled core, the reference and the enumeration on random small models."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import pytest

import enumeration as twin
import hscrf
from hscrf.errors import InfeasibleError
from test_twin import to_labels, to_potentials, to_topology

SCALES = (1.0, 1.0, 30.0, 300.0, 3e3)  # factors on potentials of size 0.3 to 3: up to about 1e4
WANTED = 5  # configurations of k-best


class Case(NamedTuple):
    """A model and what is known of it, for the enumeration and for the package."""

    model: twin.Model
    evidence: twin.Evidence | None
    potentials: hscrf.Potentials
    labels: hscrf.Labels | None


def draw_case(seed, depth, cap=1_500):
    """A model of at most ``cap`` configurations, scaled at random; two in three have evidence."""
    rng = np.random.default_rng([depth, seed])
    model = twin.random_model(rng, depth, max_states=3 if depth < 4 else 2, max_length=5 if depth < 5 else 4, cap=cap)
    scale = rng.choice(SCALES)
    scaled = {part: {d: scale * values for d, values in getattr(model, part).items()} for part in twin.PARTS}
    model = dataclasses.replace(model, **scaled)
    evidence = twin.random_evidence(rng, model) if rng.random() < 2 / 3 else None
    topology = to_topology(model)
    return Case(model, evidence, to_potentials(model, topology), to_labels(topology, evidence))


def ask_engine(name, case):
    """Log Z, probabilities and scores by an engine; None if nothing is possible."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HSCRF_ENGINE", name)
        p, labels = case.potentials, case.labels
        try:
            found = hscrf.marginals(p, labels)
        except InfeasibleError:
            return None
        probabilities = {("state", level): values for level, values in found.state.items()}
        probabilities |= {("ending", level): values for level, values in found.ending.items()}
        probabilities |= {(part, level): values for part, level, values in found.counts.parts()}
        scores = [hscrf.decode(p, labels).score, *(y.score for y in hscrf.k_best(p, WANTED, labels))]
        return np.array([found.log_partition, hscrf.log_partition(p, labels)]), probabilities, np.array(scores)


def ask_enumeration(case):
    """The same by listing all configurations."""
    model, evidence, p, _ = case
    log_z = twin.log_partition(model, evidence)
    if log_z == -math.inf:
        return None
    levels = p.topology.levels
    probabilities = dict(zip([("state", x) for x in levels], twin.state_marginals(model, evidence), strict=True))
    probabilities |= zip([("ending", x) for x in levels], twin.ending_marginals(model, evidence), strict=True)
    for part, tables in twin.counts(model, evidence).items():
        probabilities |= {(part, levels[d]): values for d, values in tables.items()}
    best = [c.log_score for c in twin.ranked(model, evidence)[:WANTED]]
    return np.array([log_z, log_z]), probabilities, np.array([best[0], *best])


def differences(one, other):
    """Largest differences of log Z, of probabilities and counts, and of best scores.

    Those of log Z and of scores are relative where these are above 1. Infinite if only one of the two finds anything.
    """
    if one is None or other is None:
        return np.zeros(3) if one is other else np.full(3, np.inf)
    if one[1].keys() != other[1].keys() or one[2].shape != other[2].shape:
        return np.full(3, np.inf)
    sums, scores = (np.max(np.abs(one[k] - other[k]) / np.maximum(1.0, np.abs(other[k]))) for k in (0, 2))
    return np.array([sums, max(np.max(np.abs(one[1][key] - other[1][key]), initial=0.0) for key in one[1]), scores])
