"""Every inference function against an enumeration of all configurations (tests/enumeration.py)."""

from functools import cache

import numpy as np
import pytest

import enumeration as twin
import hscrf

DEPTHS = (2, 3, 4)
CASES = [("compiled", depth, seed) for depth in DEPTHS for seed in range(60)]
CASES += [("reference", depth, seed) for depth in DEPTHS for seed in range(8)]
CLOSE = {"rtol": 1e-9, "atol": 1e-10}


def names(prefix, size):
    return [f"{prefix}{k}" for k in range(size)]


def to_topology(model):
    """The package's topology of a twin's model: levels a, b, c, ... below the root."""
    levels = {chr(96 + d): names(chr(96 + d), size) for d, size in enumerate(model.sizes) if d > 0}
    order = ["root", *levels]
    states = [names("r", model.sizes[0]) if model.sizes[0] > 1 else ["root"], *levels.values()]

    def relation(table, parents, kids):
        return {p: [k for k, yes in zip(kids, row, strict=True) if yes] for p, row in zip(parents, table, strict=True)}

    children = {order[d]: relation(model.children[d], states[d], states[d + 1]) for d in range(len(order) - 1)}
    successors = {order[d]: relation(model.successors[d], states[d], states[d]) for d in range(1, len(order))}

    def limits(tables, none):
        return {
            order[d]: {s: (None if n >= none else int(n)) for s, n in zip(states[d], tables[d], strict=True)}
            for d in range(1, len(order))
        }

    shortest, longest = limits(model.min_duration, 10**9), limits(model.max_duration, twin.NO_LIMIT)
    if (np.asarray(model.max_duration[-1]) == 1).all() and len(order) - 1 not in model.open:
        del longest[order[-1]]
        del shortest[order[-1]]
    root = states[0] if model.sizes[0] > 1 else None
    opened = {order[d]: [s for s, yes in zip(states[d], row, strict=True) if yes] for d, row in model.open.items()}
    return hscrf.Topology(levels, children, successors, root, shortest, longest, open_duration=opened)


def to_potentials(model, topology):
    parts = {part: {topology.levels[d]: values for d, values in getattr(model, part).items()} for part in twin.PARTS}
    return hscrf.Potentials(topology, model.length, **parts)


def to_labels(topology, evidence):
    if evidence is None:
        return None
    allowed = {topology.levels[d]: sets for d, sets in (evidence.allowed or {}).items()}
    return hscrf.Labels(topology, evidence.states, evidence.ends, allowed or None)


@cache  # sums and best ones ask about the same models
def draw(depth, seed, tails=True):
    """A random model and, for two seeds in three, consistent evidence on states, ends and sets."""
    rng = np.random.default_rng([depth, seed])
    model = twin.random_model(rng, depth, tails=tails)
    evidence = twin.random_evidence(rng, model) if seed % 3 else None
    topology = to_topology(model)
    return model, evidence, to_potentials(model, topology), to_labels(topology, evidence)


@pytest.mark.parametrize(("engine", "depth", "seed"), CASES, indirect=["engine"])
def test_sums(engine, depth, seed):
    model, evidence, p, labels = draw(depth, seed)
    found = hscrf.marginals(p, labels)
    np.testing.assert_allclose(hscrf.log_partition(p, labels), twin.log_partition(model, evidence), **CLOSE)
    np.testing.assert_allclose(found.log_partition, twin.log_partition(model, evidence), **CLOSE)
    for d, level in enumerate(p.topology.levels):
        np.testing.assert_allclose(found.state[level], twin.state_marginals(model, evidence)[d], **CLOSE)
        np.testing.assert_allclose(found.ending[level], twin.ending_marginals(model, evidence)[d], **CLOSE)
        segments = found.segment(level)
        expected = twin.segment_posteriors(model, evidence)[d]
        np.testing.assert_allclose(segments, expected[:, : segments.shape[1]], **CLOSE)
        assert expected[:, segments.shape[1] :].sum() == 0
    counts = twin.counts(model, evidence)
    for part, level, values in found.counts.parts():
        np.testing.assert_allclose(values, counts[part][p.topology.level(level)], **CLOSE, err_msg=part)
    np.testing.assert_allclose(hscrf.entropy(p, labels), twin.entropy(model, evidence), rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize(("engine", "depth", "seed"), CASES, indirect=["engine"])
def test_best(engine, depth, seed):
    model, evidence, p, labels = draw(depth, seed)
    ranked = twin.ranked(model, evidence)
    best = hscrf.decode(p, labels)
    np.testing.assert_allclose(best.score, ranked[0].log_score, **CLOSE)
    np.testing.assert_allclose(hscrf.score(p, best), best.score, **CLOSE)
    k = 12
    several = hscrf.k_best(p, k, labels)
    np.testing.assert_allclose([y.score for y in several], [c.log_score for c in ranked[:k]], **CLOSE)
    np.testing.assert_allclose([hscrf.score(p, y) for y in several], [y.score for y in several], **CLOSE)
    assert len({(y.states.tobytes(), y.ends.tobytes()) for y in several}) == len(several)
