"""Random models of any length, for tests that compare the package with itself or with a classical recursion.

The kind of each level below the root is "unit" (the bottom only), "markov" or "segmental".
"""

import itertools

import numpy as np

import hscrf


def mixes_of(*depths):
    """All mixes of kinds of the levels below the root."""
    return [
        (*upper, bottom)
        for depth in depths
        for upper in itertools.product(("markov", "segmental"), repeat=depth - 2)
        for bottom in ("unit", "markov", "segmental")
    ]


MIXES = mixes_of(2, 3, 4)


def states_of(level, size):
    return [f"{level}{k}" for k in range(size)]


def draw_topology(rng, kinds, size=2, classes=1, sparse=False, longest=None):
    """Levels a, b, c, ... of ``size`` states; ``longest`` limits the segmental ones."""
    names = [chr(97 + k) for k in range(len(kinds))]
    levels = {name: states_of(name, size) for name in names}
    limits = {name: longest for name, kind in zip(names, kinds, strict=True) if kind == "segmental"}
    if kinds[-1] != "unit":
        limits.setdefault(names[-1], None)
    children, successors = {}, {}
    if sparse:  # the last state loses its first child, and may not follow itself
        for above, below in itertools.pairwise(names):
            children[above] = {levels[above][-1]: levels[below][1:]}
            successors[above] = {levels[above][-1]: levels[above][:-1]}
    root = [f"class{k}" for k in range(classes)] if classes > 1 else None
    return hscrf.Topology(levels, children, successors, root, max_duration=limits)


def draw_potentials(rng, topology, kinds, length, scale=1.0, forbidden=0.0, longest=None, constant=False):
    """Every part of every level, time-varying unless ``constant``; segmental levels have both of their tables."""

    def draw(*shape, forbid=forbidden):
        values = scale * rng.standard_normal(shape)
        values[rng.random(shape) < forbid] = -np.inf
        return values

    longest = longest or length
    sizes, names = topology.n_states, topology.levels
    parts = {part: {} for part in ("token", "start", "stop", "duration", "segment", "init", "trans", "end")}
    for d, name in enumerate(names):
        for part in ("token", "start", "stop"):
            parts[part][name] = draw(length, sizes[d], forbid=forbidden if d else 0.0)
        if d > 0 and kinds[d - 1] == "segmental":
            parts["duration"][name] = draw(longest, sizes[d])
            parts["segment"][name] = draw(length, longest, sizes[d])
    rows = 1 if constant else length
    for d, name in enumerate(names[:-1]):
        parts["init"][name] = draw(rows, sizes[d], sizes[d + 1])
        parts["trans"][name] = draw(rows, sizes[d], sizes[d + 1], sizes[d + 1])
        parts["end"][name] = draw(rows, sizes[d], sizes[d + 1])
    return hscrf.Potentials(topology, length, **parts)


def draw_model(rng, kinds, length, *, size=2, classes=1, sparse=False, longest=None, **options):
    topology = draw_topology(rng, kinds, size, classes, sparse, longest)
    return draw_potentials(rng, topology, kinds, length, longest=longest, **options)


def draw_evidence(rng, p, density=0.25):
    """Some cells of a posterior sample, and sets of two states that contain the true one."""
    truth = hscrf.sample(p, 1, rng)[0]
    states = np.where(rng.random(truth.states.shape) < density, truth.states, -1)
    ends = np.where(rng.random(truth.ends.shape) < density, truth.ends, -1)
    level = p.topology.levels[-1]
    allowed = rng.random((p.length, p.topology.n_states[-1])) < 0.5
    allowed[np.arange(p.length), truth.states[-1]] = True
    return hscrf.Labels(p.topology, states, ends, {level: allowed})


def parts_of(p):
    """The arrays of potentials as a dict of dicts, to make a variant of."""
    parts = {}
    for part, level, values in p.parts():
        parts.setdefault(part, {})[level] = values
    return parts


def changed(p, part, level, values):
    """The same potentials with one array replaced."""
    parts = parts_of(p)
    parts[part] = {**parts.get(part, {}), level: values}
    return hscrf.Potentials(p.topology, p.length, **parts)


def log_sum(values, axis=None):
    """Plain log-sum-exp; -inf where every term is."""
    values = np.asarray(values, dtype=float)
    top = np.max(values, axis=axis, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(values - safe), axis=axis, keepdims=True)) + safe
    return np.squeeze(total, axis=axis) if axis is not None else float(total.reshape(()))


def hide(rng, labels, share):
    """Labels in which this share of the states is unknown, and the same share of the ends."""
    states = np.where(rng.random(labels.states.shape) < share, -1, labels.states)
    ends = np.where(rng.random(labels.ends.shape) < share, -1, labels.ends)
    return hscrf.Labels(labels.topology, states, ends)
