"""The twin itself, against formulas written out by hand and against a filter over all arrays (x, e)."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import enumeration as twin

SEEDS = range(30)


def drawn(seed):
    """A random model of depth 1 to 4 and evidence on it."""
    rng = np.random.default_rng(seed)
    model = twin.random_model(rng, depth=1 + seed % 4)
    return model, twin.random_evidence(rng, model)


def two_levels(rng, length, size, **parts):
    """A model of depth 2 with one root, everything allowed, and start and end effects."""
    everyone = np.ones((size, size), bool)
    return twin.Model(
        length,
        [1, size],
        children=[np.ones((1, size), bool)],
        successors=[None, everyone],
        min_duration=[np.ones(1, int), np.ones(size, int)],
        max_duration=[np.ones(1, int), np.full(size, twin.NO_LIMIT)],
        init={0: rng.standard_normal((length, 1, size))},
        trans={0: rng.standard_normal((length, 1, size, size))},
        end={0: rng.standard_normal((length, 1, size))},
        **parts,
    )


def test_linear_chain_by_the_forward_algorithm():
    rng = np.random.default_rng(0)
    token = rng.standard_normal((5, 3))
    model = two_levels(rng, 5, 3, token={1: token})
    model.max_duration[1] = np.ones(3, int)
    forward = np.exp(model.init[0][0, 0] + token[0])
    for t in range(1, 5):
        forward = forward @ np.exp(model.trans[0][t - 1, 0]) * np.exp(token[t])
    expected = np.log(forward @ np.exp(model.end[0][4, 0]))
    assert len(twin.configurations(model)) == 3**5
    assert twin.log_partition(model) == pytest.approx(expected, rel=1e-12)


def test_semi_markov_chain_by_hand():
    rng = np.random.default_rng(1)
    length, size = 4, 2
    parts = {
        "token": rng.standard_normal((length, size)),
        "start": rng.standard_normal((length, size)),
        "stop": rng.standard_normal((length, size)),
        "duration": rng.standard_normal((3, size)),
        "segment": rng.standard_normal((length, length, size)),
    }
    model = two_levels(rng, length, size, **{name: {1: part} for name, part in parts.items()})
    model.min_duration[1] = np.array([1, 2])
    forward = np.zeros((length, size))
    for j, i in itertools.product(range(length), range(length)):
        for s in range(size):
            if not (1, 2)[s] <= j - i + 1 <= 3:
                continue
            persist = parts["token"][i : j + 1, s].sum() + parts["start"][i, s] + parts["stop"][j, s]
            persist += parts["duration"][j - i, s] + parts["segment"][i, j - i, s]
            if i == 0:
                enter = np.exp(model.init[0][0, 0, s])
            else:
                enter = forward[i - 1] @ np.exp(model.trans[0][i - 1, 0, :, s])
            forward[j, s] += enter * np.exp(persist)
    expected = np.log(forward[-1] @ np.exp(model.end[0][-1, 0]))
    assert twin.log_partition(model) == pytest.approx(expected, rel=1e-12)


def test_one_time_step_is_a_sum_over_stacks():
    rng = np.random.default_rng(2)
    sizes = [2, 3, 2]
    model = twin.Model(
        1,
        sizes,
        children=[np.ones((2, 3), bool), np.ones((3, 2), bool)],
        successors=[None, np.zeros((3, 3), bool), np.zeros((2, 2), bool)],
        min_duration=[np.ones(size, int) for size in sizes],
        max_duration=[np.ones(size, int) for size in sizes],
        token={d: rng.standard_normal((1, size)) for d, size in enumerate(sizes)},
        init={0: rng.standard_normal((1, 2, 3)), 1: rng.standard_normal((1, 3, 2))},
        end={1: rng.standard_normal((1, 3, 2))},
    )
    token = [model.token[d][0] for d in range(3)]
    total = token[0][:, None, None] + token[1][:, None] + token[2]
    total = total + model.init[0][0][:, :, None] + model.init[1][0] + model.end[1][0]
    assert twin.log_partition(model) == pytest.approx(np.log(np.exp(total).sum()), rel=1e-12)
    assert twin.best_score(model) == pytest.approx(total.max(), rel=1e-12)


def is_valid(model, x, e):
    """Whether arrays (x, e) obey the rules of the hierarchy, its topology and its limits on duration."""
    depth, length = x.shape
    if not e[:, -1].all() or e[0, :-1].any():
        return False  # everything ends with the sequence, the root only there
    for t in range(length):
        for d in range(depth - 1):
            if e[d, t] > e[d + 1, t]:
                return False  # the parent ends, so does the child
            if not model.children[d][x[d, t], x[d + 1, t]]:
                return False
            follows = t + 1 < length and e[d + 1, t] and not e[d, t]
            if follows and not model.successors[d + 1][x[d + 1, t], x[d + 1, t + 1]]:
                return False
        if t + 1 < length and any(x[d, t] != x[d, t + 1] for d in range(depth) if not e[d, t]):
            return False  # what goes on keeps its state
    for d in range(1, depth):
        for s, i, j in twin._runs(x[d], e[d]):
            is_open = d in model.open and model.open[d][s]
            longest = model.length if is_open else model.max_duration[d][s]
            if not model.min_duration[d][s] <= j - i + 1 <= longest:
                return False
    return True


def score_of(model, x, e):
    """The log score read off (x, e), event by event; segments past the end of a table are impossible."""
    depth, length = x.shape
    score = 0.0
    for d in range(depth):
        for s, i, j in twin._runs(x[d], e[d]):
            score += twin.persist(model, d, i, j, s)
    for d, t in itertools.product(range(depth - 1), range(length)):
        s, u = x[d, t], x[d + 1, t]
        if t == 0 or e[d, t - 1]:
            score += twin._at(model.init, d, t, s, u)
        if e[d, t]:
            score += twin._at(model.end, d, t, s, u)
        elif e[d + 1, t]:
            score += twin._at(model.trans, d, t, s, u, x[d + 1, t + 1])
    return score


@pytest.mark.parametrize("seed", range(30))
def test_list_is_what_a_filter_over_all_arrays_leaves(seed):
    rng = np.random.default_rng(seed)
    depth, max_length = (2, 4) if seed % 2 else (3, 3)
    model = twin.random_model(rng, depth, max_states=2, max_length=max_length)
    length = model.length
    state_rows = [list(itertools.product(range(size), repeat=length)) for size in model.sizes]
    end_rows = [(*row, 1) for row in itertools.product((0, 1), repeat=length - 1)]
    found = {}
    for ends in itertools.product(end_rows[:1], *[end_rows] * (depth - 1)):
        e = np.array(ends)
        if (np.diff(e, axis=0) < 0).any():
            continue
        for states in itertools.product(*state_rows):
            x = np.array(states)
            if is_valid(model, x, e) and (score := score_of(model, x, e)) > -math.inf:
                found[x.tobytes(), e.tobytes()] = score
    listed = {
        (c.states.astype(int).tobytes(), c.ends.astype(int).tobytes()): c.log_score for c in twin.configurations(model)
    }
    assert len(listed) == len(twin.configurations(model))
    assert listed.keys() == found.keys()
    assert all(listed[key] == pytest.approx(found[key], rel=1e-12, abs=1e-12) for key in found)


@pytest.mark.parametrize("seed", SEEDS)
def test_marginals_sum_to_one_and_fit_together(seed):
    model, evidence = drawn(seed)
    times = range(model.length)
    state = twin.state_marginals(model, evidence)
    ending = twin.ending_marginals(model, evidence)
    for d, segment in enumerate(twin.segment_posteriors(model, evidence)):
        np.testing.assert_allclose(state[d].sum(axis=1), 1, rtol=1e-10)
        assert ending[d][-1] == pytest.approx(1, rel=1e-10)
        covering = [sum(segment[i, j - i] for i in times for j in times if i <= t <= j) for t in times]
        np.testing.assert_allclose(covering, state[d], rtol=1e-10, atol=1e-12)
        stopping = [sum(segment[i, t - i].sum() for i in range(t + 1)) for t in times]
        np.testing.assert_allclose(stopping, ending[d], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_entropy_is_log_partition_minus_expected_score(seed):
    model, evidence = drawn(seed)
    expected_score = 0.0
    for part, levels in twin.counts(model, evidence).items():
        for level, count in levels.items():
            potential = getattr(model, part)[level]
            assert count.shape == potential.shape
            assert (count[potential == -math.inf] == 0).all()
            expected_score += (count[count > 0] * potential[count > 0]).sum()
    expected = twin.log_partition(model, evidence) - expected_score
    assert twin.entropy(model, evidence) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_are_the_gradient(seed):
    model, evidence = drawn(seed)
    rng = np.random.default_rng(seed)
    for part, levels in twin.counts(model, evidence).items():
        for level, count in levels.items():
            direction = rng.standard_normal(count.shape)

            def shifted(step, part=part, level=level, direction=direction):
                tables = {**getattr(model, part), level: getattr(model, part)[level] + step * direction}
                return twin.log_partition(dataclasses.replace(model, **{part: tables}), evidence)

            slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5
            assert slope == pytest.approx((count * direction).sum(), rel=1e-6, abs=1e-7), (part, level)


@pytest.mark.parametrize("seed", SEEDS)
def test_evidence_splits_the_sum(seed):
    model, evidence = drawn(seed)
    rng = np.random.default_rng(seed)
    level, time = rng.integers(model.depth), rng.integers(model.length)
    unknown = np.full((model.depth, model.length), -1)

    def with_cell(name, value):
        cells = unknown.copy()
        cells[level, time] = value
        return twin.log_partition(model, twin.Evidence(**{name: cells}))

    total = twin.log_partition(model)
    by_state = [with_cell("states", s) for s in range(model.sizes[level])]
    by_end = [with_cell("ends", e) for e in (0, 1)]
    assert np.logaddexp.reduce(by_state) == pytest.approx(total, rel=1e-12, abs=1e-12)
    assert np.logaddexp.reduce(by_end) == pytest.approx(total, rel=1e-12, abs=1e-12)
    assert -math.inf < twin.log_partition(model, evidence) <= total + 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_ranking_begins_with_the_best_and_holds_everything(seed):
    model, evidence = drawn(seed)
    scores = [configuration.log_score for configuration in twin.ranked(model, evidence)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == twin.best_score(model, evidence)
    assert np.logaddexp.reduce(scores) == pytest.approx(twin.log_partition(model, evidence), rel=1e-10, abs=1e-10)


def test_segments_tile_the_time_axis():
    model, _ = drawn(3)
    for configuration in twin.configurations(model):
        for level in configuration.segments:
            assert [i for _, i, _ in level] == [0, *(j + 1 for _, _, j in level[:-1])]
            assert level[-1][2] == model.length - 1


def test_models_too_large_say_so():
    model = two_levels(np.random.default_rng(0), 5, 3)
    with pytest.raises(twin.TooManyConfigurations, match="more than 100"):
        twin.log_partition(dataclasses.replace(model, cap=100))


def test_contradictory_evidence_leaves_nothing():
    model = two_levels(np.random.default_rng(0), 3, 2)
    evidence = twin.Evidence(ends=np.array([[-1, -1, 0], [-1, -1, -1]]))
    assert twin.log_partition(model, evidence) == -math.inf
    assert twin.best_score(model, evidence) == -math.inf
    with pytest.raises(twin.Impossible, match="no configuration"):
        twin.counts(model, evidence)


def test_random_models_reach_every_mix():
    models = [twin.random_model(np.random.default_rng(seed), depth=3) for seed in range(100)]
    for part in twin.PARTS:
        present = [level for model in models for level in getattr(model, part)]
        levels = {"tail": {1, 2}}.get(part, set(range(2 if part in ("init", "trans", "end") else 3)))
        assert set(present) == levels
    time_axes = {len(model.trans[0]) == model.length for model in models if 0 in model.trans and model.length > 1}
    assert time_axes == {True, False}
    assert {model.length for model in models} == set(range(1, 6))
    assert {model.sizes[0] for model in models} == {1, 2, 3}
