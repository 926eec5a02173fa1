"""Identities for any numbers: Z three ways, gradients, sums to one, reductions to classical models."""

import dataclasses
import os
from collections import Counter

import numpy as np
import pytest

import enumeration as twin
import hscrf
from comparing import on_engines
from drawing import MIXES, changed, draw_evidence, draw_model, log_sum, mixes_of, parts_of, states_of
from test_twin import to_potentials, to_topology

CLOSE = {"rtol": 1e-9, "atol": 1e-11}
LENGTHS = {"compiled": 7, "reference": 5}  # steps of a sequence: the reference is slow
OPTIONS = [{"sparse": True}, {"classes": 2}, {"forbidden": 0.02}, {"longest": 3}, {"constant": True}]
SOME = [*mixes_of(2, 3), *mixes_of(4)[::2]]
FEW = [*mixes_of(2, 3), *mixes_of(4)[::5]]  # for the slow reference
pytestmark = pytest.mark.usefixtures("engine")  # all of it holds for both engines
each_mix = on_engines(["kinds"], [(kinds,) for kinds in SOME], [(kinds,) for kinds in FEW])
each_deep_mix = on_engines(
    ["kinds"], [(kinds,) for kinds in SOME if len(kinds) > 1], [(kinds,) for kinds in FEW if len(kinds) > 1]
)
with_and_without = pytest.mark.parametrize("evidence", [False, True], ids=["free", "evidence"])


def draw(kinds, evidence, length=None, **options):
    """A model of this mix, and consistent evidence if asked for; options vary from mix to mix."""
    number = MIXES.index(kinds)
    length = length or LENGTHS[os.environ["HSCRF_ENGINE"]]
    rng = np.random.default_rng([number, evidence])
    p = draw_model(rng, kinds, length, **(options or OPTIONS[number % len(OPTIONS)]))
    return rng, p, draw_evidence(rng, p) if evidence else None


def moved_along(p, ways, step):
    """Copy potentials and move some of their arrays a step along a direction."""
    parts = parts_of(p)
    for (part, level), way in ways.items():
        parts[part] = {**parts[part], level: parts[part][level] + step * way}
    return hscrf.Potentials(p.topology, p.length, **parts)


def frequencies_agree(found, expected, n):
    """Within five standard errors; what is impossible never happens."""
    error = np.sqrt(np.maximum(expected * (1 - expected), 0) / n)
    np.testing.assert_array_less(np.abs(found - expected), 5 * error + 5 / n)
    assert (found[expected == 0] == 0).all()


# ------------------------------------------------------------------------------------------- Z three ways


@each_mix
@with_and_without
def test_the_masses_of_the_segments_over_any_step_add_up_to_z(kinds, evidence):
    """The paper's Z in general: at every level and time exactly one segment covers it."""
    _, p, labels = draw(kinds, evidence)
    posterior = hscrf.marginals(p, labels)
    np.testing.assert_allclose(posterior.log_partition, hscrf.log_partition(p, labels), **CLOSE)
    for level in p.topology.levels:
        segments = posterior.segment(level)  # (T, L, S)
        start, length = np.indices(segments.shape[:2])
        for t in range(p.length):
            covers = (start <= t) & (t <= start + length)
            np.testing.assert_allclose(segments[covers].sum(), 1, **CLOSE)
            np.testing.assert_allclose(segments[covers].sum(axis=0), posterior.state[level][t], **CLOSE)
            stops = start + length == t
            np.testing.assert_allclose(segments[stops].sum(), posterior.ending[level][t], **CLOSE)


@pytest.mark.parametrize("kinds", [("markov", "unit"), ("segmental", "markov"), ("markov", "segmental")])
@pytest.mark.parametrize("level", ["a", "b"])
def test_a_segment_posterior_is_a_ratio_of_partition_functions(kinds, level):
    """Clamp each segment in turn, sum over those that cover a step: Z once more, by evidence alone."""
    _, p, _ = draw(kinds, False, length=4, classes=2)
    log_z = hscrf.log_partition(p)
    posterior = hscrf.marginals(p).segment(level)
    log_mass = np.full(posterior.shape, -np.inf)
    for start, width, state in np.argwhere(posterior > 0):
        name = p.topology.states[p.topology.level(level)][state]
        known = hscrf.Labels.from_segments(p.topology, {level: [(start, start + width + 1, name)]}, length=p.length)
        log_mass[start, width, state] = hscrf.log_partition(p, known)
    np.testing.assert_allclose(np.exp(log_mass - log_z), posterior, **CLOSE)
    start, width = np.indices(posterior.shape[:2])
    for t in range(p.length):
        np.testing.assert_allclose(log_sum(log_mass[(start <= t) & (t <= start + width)]), log_z, **CLOSE)


# ----------------------------------------------------------------------------------------- sums and counts


@each_mix
@with_and_without
def test_marginals_sum_to_one_and_counts_tell_the_same_story(kinds, evidence):
    _, p, labels = draw(kinds, evidence, sparse=True)
    posterior = hscrf.marginals(p, labels)
    counts, levels = posterior.counts, p.topology.levels
    for d, level in enumerate(levels):
        state, ending = posterior.state[level], posterior.ending[level]
        np.testing.assert_allclose(state.sum(axis=1), 1, **CLOSE)
        np.testing.assert_allclose(ending[-1], 1, **CLOSE)
        np.testing.assert_allclose(counts.token[level], state, **CLOSE)
        np.testing.assert_allclose(counts.stop[level].sum(axis=1), ending, **CLOSE)
        np.testing.assert_allclose(counts.start[level][1:].sum(axis=1), ending[:-1], **CLOSE)
        np.testing.assert_allclose(counts.start[level][0], state[0], **CLOSE)
        segments = posterior.segment(level)
        np.testing.assert_allclose(counts.start[level], segments.sum(axis=1), **CLOSE)
        if level in counts.segment:
            width = segments.shape[1]
            np.testing.assert_allclose(counts.segment[level][:, :width], segments, **CLOSE)
            np.testing.assert_allclose(counts.duration[level][:width], segments.sum(axis=0), **CLOSE)
        if d > 0:  # every segment is a first child or follows one, is a last child or is followed
            above = levels[d - 1]
            init, trans, end = counts.init[above], counts.trans[above], counts.end[above]
            follows = np.concatenate([np.zeros_like(state[:1]), trans.sum(axis=(1, 2))[:-1]])
            np.testing.assert_allclose(init.sum(axis=1) + follows, counts.start[level], **CLOSE)
            np.testing.assert_allclose(end.sum(axis=1) + trans.sum(axis=(1, 3)), counts.stop[level], **CLOSE)
            np.testing.assert_allclose(init.sum(axis=2), counts.start[above], **CLOSE)
            np.testing.assert_allclose(end.sum(axis=2), counts.stop[above], **CLOSE)


@each_mix
@with_and_without
def test_counts_are_the_gradient_of_log_z(engine, kinds, evidence):
    """Central differences along a random direction in every part of every level.

    For the reference, which is slow, one direction moves all of them at once.
    """
    rng, p, labels = draw(kinds, evidence, length=5)
    counts = hscrf.marginals(p, labels).counts
    places = [(part, level) for part, level, _ in p.parts()]
    step = 1e-4
    for moved in [[place] for place in places] if engine == "compiled" else [places]:
        ways = {(part, level): rng.standard_normal(p[part][level].shape) for part, level in moved}
        there, back = (hscrf.log_partition(moved_along(p, ways, sign * step), labels) for sign in (1, -1))
        expected = sum((counts[part][level] * way).sum() for (part, level), way in ways.items())
        np.testing.assert_allclose((there - back) / (2 * step), expected, rtol=1e-6, atol=1e-6, err_msg=str(moved))


@each_mix
@with_and_without
def test_the_best_are_part_of_the_whole(kinds, evidence):
    _, p, labels = draw(kinds, evidence)
    log_z, best = hscrf.log_partition(p, labels), hscrf.decode(p, labels)
    assert best.score <= log_z + 1e-9
    scores = [y.score for y in hscrf.k_best(p, 5, labels)]
    assert scores == sorted(scores, reverse=True)
    np.testing.assert_allclose(scores[0], best.score, **CLOSE)
    assert log_sum(scores) <= log_z + 1e-9
    assert hscrf.entropy(p, labels) >= log_z - best.score - 1e-9  # no configuration is likelier than the best


# ------------------------------------------------------------------------------------------------- shifts


@each_mix
@with_and_without
def test_tokens_shift_log_z_by_the_length(kinds, evidence):
    _, p, labels = draw(kinds, evidence)
    posterior = hscrf.marginals(p, labels)
    for level in p.topology.levels:
        for c in (-3.0, 250.0):
            moved = hscrf.marginals(changed(p, "token", level, p.token[level] + c), labels)
            np.testing.assert_allclose(
                moved.log_partition, posterior.log_partition + c * p.length, rtol=1e-11, atol=1e-9
            )
            for part, name, values in posterior.counts.parts():
                np.testing.assert_allclose(moved.counts[part][name], values, rtol=1e-7, atol=1e-9)


@each_mix
def test_one_for_each_segment_however_they_are_counted(kinds):
    """Starts, stops and durations are as many as the segments; so are inits with transitions, transitions with ends."""
    _, p, _ = draw(kinds, False, classes=2)
    c = 0.7

    def shifted(level, *parts):
        q = p
        for part in parts:
            q = changed(q, part, level, q[part][level] + c)
        return hscrf.log_partition(q)

    for above, level in zip(p.topology.levels, p.topology.levels[1:], strict=False):
        expected = shifted(level, "start")
        np.testing.assert_allclose(shifted(level, "stop"), expected, **CLOSE)
        np.testing.assert_allclose(shifted(above, "init", "trans"), expected, **CLOSE)
        np.testing.assert_allclose(shifted(above, "trans", "end"), expected, **CLOSE)
        for part in ("duration", "segment"):
            if level in p[part]:
                np.testing.assert_allclose(shifted(level, part), expected, **CLOSE)
    for part in ("start", "stop", "init", "end"):  # there is one root
        np.testing.assert_allclose(shifted("root", part), hscrf.log_partition(p) + c, **CLOSE)


# ------------------------------------------------------------------------------------------- dummy levels


def same_inference(p, q, renamed):
    """Levels of p have the same posteriors in q; ``renamed`` maps their names."""
    one, other = hscrf.marginals(p), hscrf.marginals(q)
    np.testing.assert_allclose(other.log_partition, one.log_partition, **CLOSE)
    np.testing.assert_allclose(hscrf.decode(q).score, hscrf.decode(p).score, **CLOSE)
    np.testing.assert_allclose(hscrf.entropy(q), hscrf.entropy(p), **CLOSE)
    for level, new in renamed.items():
        np.testing.assert_allclose(other.state[new], one.state[level], **CLOSE)
        np.testing.assert_allclose(other.ending[new], one.ending[level], **CLOSE)
        segments, again = one.segment(level), other.segment(new)
        width = min(segments.shape[1], again.shape[1])
        np.testing.assert_allclose(again[:, :width], segments[:, :width], **CLOSE)
        assert again[:, width:].sum() + segments[:, width:].sum() == 0
    return one.counts, other.counts


def with_level(p, d, name, states, children, successors, limits=None):
    """The topology of p with one more level at index d."""
    given = p.topology.to_dict()
    items = list(given["levels"].items())
    items.insert(d - 1, (name, states))
    given["levels"] = dict(items)
    given["children"] = {**given["children"], **children}
    given["successors"] = {**given["successors"], **successors}
    given["max_duration"] = {**given["max_duration"], **(limits or {})}
    return hscrf.Topology.from_dict(given)


@each_mix
@pytest.mark.parametrize("limit", [None, 7], ids=["markov", "segmental"])
def test_a_dummy_level_below_the_root_changes_nothing(engine, kinds, limit):
    """The only child of the only root takes over the root's families."""
    _, p, _ = draw(kinds, False, longest=LENGTHS[engine] // 2 + 1)
    topology = with_level(p, 1, "dummy", ["all"], {}, {"dummy": {"all": []}}, {"dummy": limit} if limit else None)
    parts = parts_of(p)
    for part in ("init", "trans", "end"):
        parts[part]["dummy"] = parts[part].pop("root")
    q = hscrf.Potentials(topology, p.length, **parts)
    counts, again = same_inference(p, q, {level: level for level in p.topology.levels})
    np.testing.assert_allclose(again.trans["dummy"], counts.trans["root"], **CLOSE)
    np.testing.assert_allclose(again.init["dummy"], counts.init["root"], **CLOSE)


@each_deep_mix
@pytest.mark.parametrize("limit", [None, 7], ids=["markov", "segmental"])
def test_a_dummy_level_in_the_middle_changes_nothing(engine, kinds, limit):
    """One state between a and b; nothing may follow it, so it lasts as long as its parent."""
    _, p, _ = draw(kinds, False, longest=LENGTHS[engine] // 2 + 1)
    parts = parts_of(p)
    for part in ("init", "trans", "end"):  # what the dummy takes over cannot depend on who is above it
        parts[part]["a"] = np.repeat(parts[part]["a"][:, :1], 2, axis=1)
    p = hscrf.Potentials(p.topology, p.length, **parts)
    topology = with_level(p, 2, "dummy", ["any"], {}, {"dummy": {"any": []}}, {"dummy": limit} if limit else None)
    parts = parts_of(p)
    for part in ("init", "trans", "end"):
        parts[part]["dummy"] = parts[part].pop("a")[:, :1]
    q = hscrf.Potentials(topology, p.length, **parts)
    counts, again = same_inference(p, q, {level: level for level in p.topology.levels})
    np.testing.assert_allclose(again.trans["dummy"].sum(axis=1), counts.trans["a"].sum(axis=1), **CLOSE)


@each_deep_mix
def test_a_copy_of_a_level_changes_nothing(engine, kinds):
    """Each state of a has one child, its copy, which takes over its children."""
    _, p, _ = draw(kinds, False, longest=LENGTHS[engine] // 2 + 1)
    copies = states_of("copy", 2)
    topology = with_level(
        p,
        2,
        "copy",
        copies,
        {"a": {f"a{k}": [copies[k]] for k in range(2)}},
        {"copy": {copy: [] for copy in copies}},
    )
    parts = parts_of(p)
    for part in ("init", "trans", "end"):
        parts[part]["copy"] = parts[part].pop("a")
    q = hscrf.Potentials(topology, p.length, **parts)
    counts, again = same_inference(p, q, {level: level for level in p.topology.levels})
    np.testing.assert_allclose(again.trans["copy"], counts.trans["a"], **CLOSE)


@each_mix
@pytest.mark.parametrize("bottom", ["unit", "one"])
def test_a_dummy_level_at_the_bottom_changes_nothing(engine, kinds, bottom):
    """Either unit steps that only count, or one segment that lasts as long as its parent (the paper's appendix C)."""
    _, p, _ = draw(kinds, False, longest=LENGTHS[engine] // 2 + 1)
    last = p.topology.levels[-1]
    limits = {} if bottom == "unit" else {"dummy": None}
    if kinds[-1] == "unit":
        limits[last] = 1
    alone = {} if bottom == "unit" else {"dummy": {"any": []}}
    topology = with_level(p, p.topology.depth, "dummy", ["any"], {}, alone, limits)
    q = hscrf.Potentials(topology, p.length, **parts_of(p))
    same_inference(p, q, {level: level for level in p.topology.levels})


# ---------------------------------------------------------------------------------------- classical models


def test_depth_two_is_the_linear_chain():
    rng = np.random.default_rng(5)
    length, size = 40, 4
    p = draw_model(rng, ("unit",), length, size=size, forbidden=0.02)
    own = p.token["a"] + p.start["a"] + p.stop["a"]  # (T, S)
    trans, init, end = p.trans["root"][:, 0], p.init["root"][0, 0], p.end["root"][-1, 0]
    root = p.token["root"].sum() + p.start["root"][0, 0] + p.stop["root"][-1, 0]

    forward, backward, best = (np.full((length, size), -np.inf) for _ in range(3))
    forward[0] = best[0] = init + own[0]
    for t in range(1, length):
        forward[t] = log_sum(forward[t - 1][:, None] + trans[t - 1], axis=0) + own[t]
        best[t] = (best[t - 1][:, None] + trans[t - 1]).max(axis=0) + own[t]
    backward[-1] = end
    for t in range(length - 2, -1, -1):
        backward[t] = log_sum(trans[t] + own[t + 1] + backward[t + 1], axis=1)
    log_z = log_sum(forward[-1] + end)

    posterior = hscrf.marginals(p)
    np.testing.assert_allclose(posterior.log_partition, log_z + root, **CLOSE)
    np.testing.assert_allclose(hscrf.decode(p).score, (best[-1] + end).max() + root, **CLOSE)
    np.testing.assert_allclose(posterior.state["a"], np.exp(forward + backward - log_z), **CLOSE)
    pairs = forward[:-1, :, None] + trans[:-1] + (own + backward)[1:, None, :] - log_z
    np.testing.assert_allclose(posterior.counts.trans["root"][:-1, 0], np.exp(pairs), **CLOSE)
    assert (posterior.counts.trans["root"][-1] == 0).all()


@pytest.mark.parametrize("longest", [1, 6, 40])
def test_depth_two_with_a_persisting_bottom_is_the_semi_markov_chain(longest):
    rng = np.random.default_rng(longest)
    length, size = 40, 3
    p = draw_model(rng, ("segmental",), length, size=size, longest=longest, forbidden=0.02)
    trans, init, end = p.trans["root"][:, 0], p.init["root"][0, 0], p.end["root"][-1, 0]
    root = p.token["root"].sum() + p.start["root"][0, 0] + p.stop["root"][-1, 0]

    def persist(i, j):
        own = p.token["a"][i : j + 1].sum(axis=0) + p.start["a"][i] + p.stop["a"][j]
        return own + p.duration["a"][j - i] + p.segment["a"][i, j - i]

    forward, backward = (np.full((length, size), -np.inf) for _ in range(2))  # ends at t; starts at t
    enter, leave = forward.copy(), forward.copy()  # all before a start at t; all after an end at t
    for j in range(length):
        enter[j] = init if j == 0 else log_sum(forward[j - 1][:, None] + trans[j - 1], axis=0)
        begins = range(max(0, j - longest + 1), j + 1)
        forward[j] = log_sum([enter[i] + persist(i, j) for i in begins], axis=0)
    for i in range(length - 1, -1, -1):
        leave[i] = end if i == length - 1 else log_sum(trans[i] + backward[i + 1], axis=1)
        stops = range(i, min(length, i + longest))
        backward[i] = log_sum([leave[j] + persist(i, j) for j in stops], axis=0)
    log_z = log_sum(forward[-1] + end)
    np.testing.assert_allclose(log_sum(init + backward[0]), log_z, **CLOSE)

    posterior = hscrf.marginals(p)
    np.testing.assert_allclose(posterior.log_partition, log_z + root, **CLOSE)
    segments = np.zeros((length, longest, size))
    for i in range(length):
        for j in range(i, min(length, i + longest)):
            segments[i, j - i] = np.exp(enter[i] + persist(i, j) + leave[j] - log_z)
    np.testing.assert_allclose(posterior.segment("a"), segments, **CLOSE)
    np.testing.assert_allclose(posterior.counts.segment["a"], segments, **CLOSE)
    pairs = np.exp(forward[:-1, :, None] + trans[:-1] + backward[1:, None, :] - log_z)
    np.testing.assert_allclose(posterior.counts.trans["root"][:-1, 0], pairs, **CLOSE)


# ------------------------------------------------------------------------------------------------ sampling


@each_mix
@with_and_without
def test_samples_follow_the_marginals_and_the_evidence(engine, kinds, evidence):
    _, p, labels = draw(kinds, evidence)
    n = 1500 if engine == "compiled" else 200
    draws = hscrf.sample(p, n, random_state=1, evidence=labels)
    states, ends = np.array([y.states for y in draws]), np.array([y.ends for y in draws])
    if labels is not None:
        assert ((labels.states == -1) | (states == labels.states)).all()
        assert ((labels.ends == -1) | (ends == labels.ends)).all()
        sets = labels.allowed[p.topology.levels[-1]]
        assert sets[np.arange(p.length), states[:, -1]].all()
    posterior = hscrf.marginals(p, labels)
    for d, level in enumerate(p.topology.levels):
        kept = np.arange(p.topology.n_states[d])
        frequencies_agree((states[:, d, :, None] == kept).mean(axis=0), posterior.state[level], n)
        frequencies_agree(ends[:, d].mean(axis=0), posterior.ending[level], n)


@pytest.mark.parametrize("kinds", [("markov", "unit"), ("segmental", "markov"), ("markov", "segmental")])
def test_whole_configurations_are_as_frequent_as_they_are_likely(engine, kinds):
    _, p, _ = draw(kinds, False, length=3, classes=2)
    n = 4000 if engine == "compiled" else 800
    drawn = Counter((y.states.tobytes(), y.ends.tobytes()) for y in hscrf.sample(p, n, random_state=2))
    log_z = hscrf.log_partition(p)
    for y in hscrf.k_best(p, 20):
        frequency = np.array(drawn[y.states.tobytes(), y.ends.tobytes()] / n)
        frequencies_agree(frequency, np.array(np.exp(y.score - log_z)), n)


@pytest.mark.parametrize("step", [-170.0, -400.0])
def test_draws_where_scaled_arithmetic_gives_up(engine, step):
    """Faint steps, from each state to the next, are the only way. In the first case it is the run that loses them."""
    size, length = 7, 9
    topology = hscrf.Topology({"a": [f"s{k}" for k in range(size)]})
    token = np.zeros((length, size))
    token[0, 1:] = token[-1, :-1] = -np.inf
    trans = np.where(np.eye(size), 0.0, np.where(np.eye(size, k=1), step, -np.inf))
    p = hscrf.Potentials(topology, length, token={"a": token}, trans={"root": trans[None, None]})
    n = 1500 if engine == "compiled" else 300
    states = np.array([y.states[1] for y in hscrf.sample(p, n, random_state=1)])
    frequencies_agree((states[:, :, None] == np.arange(size)).mean(axis=0), hscrf.marginals(p).state["a"], n)


def test_root_classes_are_drawn_too(engine):
    topology = hscrf.Topology({"a": ["x"]}, root=["often", "seldom", "never"])
    p = hscrf.Potentials(topology, 2, start={"root": np.log([[0.7, 0.3, 1e-300], [1, 1, 1]])})
    n = 4000 if engine == "compiled" else 800
    draws = np.array([y.states[0, 0] for y in hscrf.sample(p, n, random_state=5)])
    frequencies_agree(np.bincount(draws, minlength=3) / n, np.array([0.7, 0.3, 0.0]), n)


def test_samples_depend_on_the_seed_alone():
    _, p, _ = draw(("markov", "segmental"), False, length=20, classes=2)
    assert hscrf.sample(p, 5, random_state=3) == hscrf.sample(p, 5, random_state=3)
    assert hscrf.sample(p, 5, random_state=3) != hscrf.sample(p, 5, random_state=4)
    for y in hscrf.sample(p, 5, random_state=3):
        y.check()
        assert y.is_complete


# ------------------------------------------------------------------------------------------------ decoding


@each_mix
def test_the_best_agrees_with_the_evidence_and_with_the_free_best(kinds):
    rng, p, labels = draw(kinds, True)
    free, best = hscrf.decode(p), hscrf.decode(p, labels)
    best.check()
    assert ((labels.states == -1) | (best.states == labels.states)).all()
    assert ((labels.ends == -1) | (best.ends == labels.ends)).all()
    np.testing.assert_allclose(hscrf.score(p, best), best.score, **CLOSE)
    assert best.score <= free.score + 1e-9
    some = np.where(rng.random(free.states.shape) < 0.5, free.states, -1)
    assert hscrf.decode(p, hscrf.Labels(p.topology, some, np.full_like(some, -1))) == free


@pytest.mark.parametrize("kind", [0, 1, 2], ids=["unit", "markov", "segmental"])
@pytest.mark.parametrize("seed", range(8))
def test_ties_go_to_the_first_state_then_to_the_shortest_segment_from_the_end(kind, seed):
    """Integer scores tie exactly; the rule for ties compares the lists of all segments, the last one first."""
    rng = np.random.default_rng([kind, seed])
    limits = np.full(3, [1, twin.NO_LIMIT, 3][kind])
    model = twin.Model(
        5,
        [1, 3],
        children=[np.ones((1, 3), bool)],
        successors=[np.zeros((1, 1), bool), np.ones((3, 3), bool)],
        min_duration=[np.ones(1, int), np.ones(3, int)],
        max_duration=[np.full(1, twin.NO_LIMIT), limits],
    )
    model = dataclasses.replace(
        model,
        token={1: rng.integers(0, 2, (5, 3)).astype(float)},
        trans={0: rng.integers(-1, 1, (1, 1, 3, 3)).astype(float)},
    )
    ranked = twin.ranked(model)
    tied = [c for c in ranked if c.log_score == ranked[0].log_score]
    first = min(tied, key=lambda c: [(state, j - i) for state, i, j in reversed(c.segments[1])])
    best = hscrf.decode(to_potentials(model, to_topology(model)))
    np.testing.assert_array_equal(best.states, first.states)
    np.testing.assert_array_equal(best.ends, first.ends)


@each_mix
@with_and_without
def test_decoding_and_k_best_break_ties_alike(engine, kinds, evidence):
    """They walk back by different code; whole potentials tie where two ways meet."""
    _, p, labels = draw(kinds, evidence, length=3 * LENGTHS[engine])
    whole = {part: {level: np.round(table) for level, table in p[part].items()} for part in parts_of(p)}
    p = hscrf.Potentials(p.topology, p.length, **whole)
    assert hscrf.decode(p, labels) == hscrf.k_best(p, 1, labels)[0]


def test_nothing_but_ties_gives_the_first_states():
    for kinds in MIXES:
        topology = draw_model(np.random.default_rng(0), kinds, 5).topology
        assert (hscrf.decode(hscrf.Potentials(topology, 5)).states == 0).all()
