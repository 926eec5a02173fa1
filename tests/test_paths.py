"""The same numbers by every path: stacks or tables, scaled or logarithmic; and the full range of potentials."""

import itertools

import numpy as np
import pytest

import hscrf
from comparing import batch_of, in_logarithms, like_the_reference, on_engines, same_expectations
from drawing import MIXES, changed, draw_evidence, draw_model, log_sum, parts_of
from hscrf.engine import Batch, Evidence
from hscrf.engine.compiled import segmental_levels
from hscrf.inference.posterior import values_of

CLOSE = {"rtol": 1e-9, "atol": 1e-9}
T = 200
LONG = {"compiled": 500, "reference": 100}  # steps: the reference is slow, and works in logarithms at any length


def finite(posterior, rtol=1e-6):
    """No NaN and no infinity anywhere, and probabilities are probabilities."""
    assert np.isfinite(posterior.log_partition)
    for _, _, counts in posterior.counts.parts():
        assert np.isfinite(counts).all()
        assert (counts >= 0).all()
    for level, state in posterior.state.items():
        np.testing.assert_allclose(state.sum(axis=1), 1, rtol=rtol)
        np.testing.assert_array_less(posterior.ending[level], 1 + rtol)


# --------------------------------------------------------------------------------------- stacks and tables


def as_tables(p, levels):
    """The same model with the persist of some Markov levels written out as segment tables."""
    parts = parts_of(p)
    parts.setdefault("segment", {})
    for level in levels:
        token, start, stop = (parts[part].pop(level) for part in ("token", "start", "stop"))
        table = np.full((p.length, p.length, token.shape[1]), -np.inf)
        for i in range(p.length):
            table[i, : p.length - i] = np.cumsum(token[i:], axis=0) + start[i] + stop[i:]
        parts["segment"][level] = table
    return hscrf.Potentials(p.topology, p.length, **parts)


@pytest.mark.parametrize("kinds", [kinds for kinds in MIXES if len(kinds) > 1 and "segmental" not in kinds])
@pytest.mark.parametrize("evidence", [False, True], ids=["free", "evidence"])
def test_stacks_and_segment_tables_give_the_same_numbers(engine, kinds, evidence):
    rng = np.random.default_rng(len(kinds))
    length = T if engine == "compiled" else 30
    p = draw_model(rng, kinds, length, size=5 - len(kinds), sparse=True)
    labels = draw_evidence(rng, p, 0.05) if evidence else None
    levels = [level for level, kind in zip(p.topology.levels[1:], kinds, strict=True) if kind == "markov"]
    q = as_tables(p, levels)
    assert sum(segmental_levels(p.topology, values_of(p))) == 1  # all Markov levels were folded
    assert sum(segmental_levels(q.topology, values_of(q))) == 1 + len(levels)
    one, other = hscrf.marginals(p, labels), hscrf.marginals(q, labels)
    np.testing.assert_allclose(other.log_partition, one.log_partition, **CLOSE)
    np.testing.assert_allclose(hscrf.log_partition(q, labels), hscrf.log_partition(p, labels), **CLOSE)
    for level in p.topology.levels:
        np.testing.assert_allclose(other.state[level], one.state[level], **CLOSE)
        np.testing.assert_allclose(other.ending[level], one.ending[level], **CLOSE)
    for part in ("init", "trans", "end"):
        for level, counts in one.counts[part].items():
            np.testing.assert_allclose(other.counts[part][level], counts, **CLOSE, err_msg=f"{part}[{level}]")
    for level in levels:  # the table's counts are segments, whose starts and stops are the stacks' counts
        table = other.counts.segment[level]
        np.testing.assert_allclose(table.sum(axis=1), one.counts.start[level], **CLOSE)
        stops = np.array([sum(table[i, j - i] for i in range(j + 1)) for j in range(length)])
        np.testing.assert_allclose(stops, one.counts.stop[level], **CLOSE)
    best = hscrf.decode(p, labels)
    np.testing.assert_allclose(hscrf.decode(q, labels).score, best.score, **CLOSE)
    np.testing.assert_allclose(hscrf.score(q, best), best.score, **CLOSE)


@pytest.mark.parametrize("forced", [(1,), (2,), (1, 2)])
@pytest.mark.parametrize("bottom", ["unit", "markov", "segmental"])
def test_any_level_may_be_forced_into_a_table(engine, forced, bottom):
    rng = np.random.default_rng(7)
    p = draw_model(
        rng, ("markov", "markov", bottom), 60 if engine == "compiled" else 20, sparse=True, longest=5, classes=2
    )
    labels = draw_evidence(rng, p, 0.05)
    folded = batch_of(p, labels).expectations(values_of(p))
    tabled = batch_of(p, labels).expectations(values_of(p), explicit=forced)
    assert set(forced) <= tabled.segments.keys()
    same_expectations(folded, tabled, **CLOSE)


# ----------------------------------------------------------------------------------- scaled and logarithmic


@pytest.mark.parametrize("seed", range(42))  # each mix twice
def test_scaled_and_logarithmic_arithmetic_agree(core, seed):
    rng = np.random.default_rng(seed)
    kinds = MIXES[seed % len(MIXES)]
    length = int(rng.integers(1, 12)) if seed % 3 else 50
    if length == 50 and len(kinds) == 4:
        length = 30
    options = {"sparse": seed % 2 == 0, "classes": 1 + seed % 2, "forbidden": 0.01 * (seed % 4 == 1)}
    p = draw_model(rng, kinds, length, scale=rng.choice([0.3, 1.0, 3.0]), longest=6, **options)
    labels = draw_evidence(rng, p, 0.1) if seed % 2 else None
    batch, values = batch_of(p, labels), values_of(p)
    assert in_logarithms(batch, values) == 0, "potentials as moderate as these fit into scaled arithmetic"
    like_the_reference(batch, values, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("bottom", ["unit", "markov", "segmental"])
@pytest.mark.parametrize("borders", [True, False], ids=["borders", "no borders"])
@pytest.mark.parametrize("seed", range(8))
def test_groups_of_any_size_next_to_other_memory(poisoned, bottom, borders, seed):
    """Sums take four children at a time; groups of 1 to 9 end anywhere, and neighbours must not mix."""
    rng = np.random.default_rng([seed, len(bottom)])
    kinds = (*("markov",) * (seed % 3), bottom)
    p = draw_model(rng, kinds, 9, size=int(rng.integers(4, 10)), sparse=True, classes=1 + seed % 2, longest=4)
    if not borders:
        p = hscrf.Potentials(p.topology, p.length, **{**parts_of(p), "start": {}, "stop": {}})
    batch, values = batch_of(p, draw_evidence(rng, p, 0.1) if seed % 4 == 3 else None), values_of(p)
    assert in_logarithms(batch, values) == 0
    like_the_reference(batch, values, rtol=1e-9, atol=1e-10)
    if len(kinds) < 3:
        best = hscrf.k_best(p, 3)
        np.testing.assert_allclose([hscrf.score(p, labels) for labels in best], [y.score for y in best], **CLOSE)
        assert hscrf.decode(p) == best[0]


@pytest.mark.parametrize("kinds", [("unit",), ("markov", "segmental"), ("segmental", "unit")])
def test_arrays_may_lie_in_memory_as_they_like(engine, kinds):
    p = draw_model(np.random.default_rng(3), kinds, 12, size=5, longest=4)
    values = values_of(p)
    turned = {key: np.asfortranarray(array) for key, array in values.items()}
    batch = batch_of(p)
    same_expectations(batch.expectations(values), batch.expectations(turned), rtol=1e-12)


def test_known_ends_leave_one_segment_each(engine):
    p = draw_model(np.random.default_rng(5), ("segmental", "unit"), 50, size=3, longest=50)
    ends = np.full((3, 50), -1)
    ends[1] = np.isin(np.arange(50), [9, 19, 49])
    known = hscrf.Labels(p.topology, np.full((3, 50), -1), ends)
    segments = hscrf.marginals(p, known).segment(p.topology.levels[1])
    np.testing.assert_allclose([segments[0, 9].sum(), segments[10, 9].sum(), segments[20, 29].sum()], 1.0, **CLOSE)
    np.testing.assert_allclose(segments.sum(), 3.0, **CLOSE)


# -------------------------------------------------------------------- references: plain recursions in log space


def chain(own, trans, init, end):
    """Log Z, state posteriors (T, S) and pair posteriors (T - 1, S, S) of a chain; own (T, S), trans (T, S, S)."""
    forward, backward = np.full(own.shape, -np.inf), np.full(own.shape, -np.inf)
    forward[0], backward[-1] = init + own[0], end
    for t in range(1, len(own)):
        forward[t] = log_sum(forward[t - 1][:, None] + trans[t - 1], axis=0) + own[t]
    for t in range(len(own) - 2, -1, -1):
        backward[t] = log_sum(trans[t] + own[t + 1] + backward[t + 1], axis=1)
    log_z = log_sum(forward[-1] + end)
    pairs = forward[:-1, :, None] + trans[:-1] + (own + backward)[1:, None, :]
    return log_z, np.exp(forward + backward - log_z), np.exp(pairs - log_z)


def best_chain(own, trans, init, end):
    best = init + own[0]
    for t in range(1, len(own)):
        best = (best[:, None] + trans[t - 1]).max(axis=0) + own[t]
    return (best + end).max()


def semi_markov(persist, trans, init, end):
    """Log Z and segment posteriors (T, L, S) of a semi-Markov chain; persist (T, L, S) by start and length."""
    length, longest, _ = persist.shape
    forward, backward = (np.full((length, persist.shape[2]), -np.inf) for _ in range(2))
    enter, leave = forward.copy(), forward.copy()
    for j in range(length):
        enter[j] = init if j == 0 else log_sum(forward[j - 1][:, None] + trans[j - 1], axis=0)
        begins = range(max(0, j - longest + 1), j + 1)
        forward[j] = log_sum([enter[i] + persist[i, j - i] for i in begins], axis=0)
    for i in range(length - 1, -1, -1):
        leave[i] = end if i == length - 1 else log_sum(trans[i] + backward[i + 1], axis=1)
        stops = range(i, min(length, i + longest))
        backward[i] = log_sum([leave[j] + persist[i, j - i] for j in stops], axis=0)
    log_z = log_sum(forward[-1] + end)
    segments = np.zeros(persist.shape)
    for i in range(length):
        for width in range(min(longest, length - i)):
            segments[i, width] = np.exp(enter[i] + persist[i, width] + leave[i + width] - log_z)
    return log_z, segments


def persist_of(p, level, longest):
    """The persist of a level as one table (T, L, S), limits of the topology included."""
    d = p.topology.level(level)
    table = np.full((p.length, longest, p.topology.n_states[d]), -np.inf)
    for i in range(p.length):
        for width in range(min(longest, p.length - i)):
            j = i + width
            own = p.token[level][i : j + 1].sum(axis=0) + p.start[level][i] + p.stop[level][j]
            own = own + p.duration[level][width] + p.segment[level][i, width]
            fits = (p.topology.min_duration[d] <= width + 1) & (width + 1 <= p.topology.max_duration[d])
            table[i, width] = np.where(fits, own, -np.inf)
    return table


def root_score(p):
    return p.token["root"].sum() + p.start["root"][0, 0] + p.stop["root"][-1, 0]


def product_chain(p):
    """A Markov level over a unit bottom as a chain of pairs (a, b): own (T, S), trans (T, S, S), init, end (S,)."""
    size, below = p.topology.n_states[1:]

    def table(values):  # time-varying, whatever the given time axis
        return np.broadcast_to(values, (p.length, *values.shape[1:]))

    bottom = p.token["b"] + p.start["b"] + p.stop["b"]
    own = p.token["a"][:, :, None] + bottom[:, None, :] + np.log(p.topology.children[1])
    first, last = table(p.init["a"]), table(p.end["a"])
    trans = np.full((p.length, size, below, size, below), -np.inf)
    for t in range(p.length - 1):
        closes = last[t] + p.stop["a"][t][:, None]
        opens = first[t + 1] + p.start["a"][t + 1][:, None]
        across = table(p.trans["root"])[t, 0] + np.log(p.topology.successors[1])
        trans[t] = closes[:, :, None, None] + across[:, None, :, None] + opens[None, None]
        for s in range(size):
            stays = table(p.trans["a"])[t, s] + np.log(p.topology.successors[2])
            trans[t, s, :, s] = np.logaddexp(trans[t, s, :, s], stays)
    init = table(p.init["root"])[0, 0][:, None] + p.start["a"][0][:, None] + first[0]
    end = table(p.end["root"])[-1, 0][:, None] + p.stop["a"][-1][:, None] + last[-1]
    pairs = size * below
    return (
        own.reshape(p.length, pairs),
        trans.reshape(p.length, pairs, pairs),
        init.reshape(pairs),
        end.reshape(pairs),
    )


def hierarchy(p):
    """Log Z and the state posteriors of both levels below the root."""
    with np.errstate(divide="ignore"):
        log_z, pairs, _ = chain(*product_chain(p))
    pairs = pairs.reshape(p.length, *p.topology.n_states[1:])
    return log_z + root_score(p), pairs.sum(axis=2), pairs.sum(axis=1)


def like_chain(p, rtol=1e-9, atol=1e-9):
    trans, init, end = p.trans["root"][:, 0], p.init["root"][0, 0], p.end["root"][-1, 0]
    trans = np.broadcast_to(trans, (p.length, *trans.shape[1:]))
    own = p.token["a"] + p.start["a"] + p.stop["a"]
    log_z, states, pairs = chain(own, trans, init, end)
    posterior = hscrf.marginals(p)
    finite(posterior)
    np.testing.assert_allclose(posterior.log_partition, log_z + root_score(p), rtol=rtol)
    np.testing.assert_allclose(posterior.state["a"], states, rtol=rtol, atol=atol)
    counts = posterior.counts.trans["root"]
    expected = pairs[:, None] if len(counts) > 1 else pairs.sum(axis=0)[None, None]
    np.testing.assert_allclose(counts[: len(expected)], expected, rtol=rtol, atol=atol)
    best = best_chain(own, trans, init, end) + root_score(p)
    np.testing.assert_allclose(hscrf.decode(p).score, best, rtol=rtol)


# ------------------------------------------------------------------------------------------------- range

# Sums of 500 potentials of 1e4 have an absolute rounding error of about 1e-9, in any recursion.
LARGE = {"scale": 1e4}
ROUNDED = {"rtol": 1e-6, "atol": 1e-6}


@pytest.mark.parametrize("forbidden", [0.0, 0.05])
def test_a_chain_of_large_potentials(engine, forbidden):
    p = draw_model(np.random.default_rng(11), ("unit",), LONG[engine], size=6, forbidden=forbidden, **LARGE)
    like_chain(p, **ROUNDED)


@pytest.mark.parametrize("forbidden", [0.0, 0.05])
def test_a_semi_markov_chain_of_large_potentials(engine, forbidden):
    rng = np.random.default_rng(12)
    p = draw_model(rng, ("segmental",), LONG[engine], size=3, longest=8, forbidden=forbidden, **LARGE)
    log_z, segments = semi_markov(
        persist_of(p, "a", 8), p.trans["root"][:, 0], p.init["root"][0, 0], p.end["root"][-1, 0]
    )
    posterior = hscrf.marginals(p)
    finite(posterior)
    np.testing.assert_allclose(posterior.log_partition, log_z + root_score(p), rtol=1e-9)
    np.testing.assert_allclose(hscrf.log_partition(p), log_z + root_score(p), rtol=1e-9)
    np.testing.assert_allclose(posterior.counts.segment["a"], segments, **ROUNDED)


@on_engines(["forbidden", "constant"], list(itertools.product([0.0, 0.01], [False, True])), [(0.01, False)])
def test_a_hierarchy_of_large_potentials(engine, forbidden, constant):
    rng = np.random.default_rng(13)
    p = draw_model(
        rng, ("markov", "unit"), LONG[engine], size=4, sparse=True, forbidden=forbidden, constant=constant, **LARGE
    )
    log_z, upper, lower = hierarchy(p)
    posterior = hscrf.marginals(p)
    finite(posterior)
    np.testing.assert_allclose(posterior.log_partition, log_z, rtol=1e-9)
    np.testing.assert_allclose(hscrf.log_partition(p), log_z, rtol=1e-9)
    np.testing.assert_allclose(posterior.state["a"], upper, **ROUNDED)
    np.testing.assert_allclose(posterior.state["b"], lower, **ROUNDED)


@on_engines(
    ["part", "level"],
    list(itertools.product(["token", "start", "stop", "init", "trans", "end"], ["a", "b"])),
    [("token", "b"), ("trans", "a")],
)
def test_one_large_part_among_moderate_ones(engine, part, level):
    rng = np.random.default_rng(14)
    p = draw_model(rng, ("markov", "unit"), LONG[engine], size=3)
    if part in ("init", "trans", "end"):
        level = {"a": "root", "b": "a"}[level]
    p = changed(p, part, level, p[part][level] * 1e4)
    log_z, upper, lower = hierarchy(p)
    posterior = hscrf.marginals(p)
    finite(posterior)
    np.testing.assert_allclose(posterior.log_partition, log_z, rtol=1e-9)
    np.testing.assert_allclose(hscrf.log_partition(p), log_z, rtol=1e-9)
    np.testing.assert_allclose(posterior.state["a"], upper, **ROUNDED)
    np.testing.assert_allclose(posterior.state["b"], lower, **ROUNDED)


@on_engines(["scale"], [(30.0,), (100.0,), (300.0,), (1000.0,)], [(300.0,)])
def test_between_moderate_and_large(engine, scale):
    """Cases at the limit of the scaled arithmetic."""
    p = draw_model(np.random.default_rng(15), ("markov", "unit"), LONG[engine], size=3, sparse=True, scale=scale)
    log_z, upper, lower = hierarchy(p)
    posterior = hscrf.marginals(p)
    finite(posterior)
    np.testing.assert_allclose(posterior.log_partition, log_z, rtol=1e-9)
    np.testing.assert_allclose(posterior.state["a"], upper, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(posterior.state["b"], lower, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_single_step(engine, kinds, scale):
    """T = 1: one segment a level, so Z is a sum over stacks."""
    p = draw_model(np.random.default_rng(16), kinds, 1, size=3, classes=2, scale=scale)
    levels = p.topology.levels
    log_scores = np.zeros(())
    for d, level in enumerate(levels):  # one axis for the states of each level
        own = sum(p[part][level][0] for part in ("token", "start", "stop"))
        if level in p.segment:
            own = own + p.duration[level][0] + p.segment[level][0, 0]
        log_scores = log_scores[..., None] + own
        if d > 0:
            log_scores = log_scores + p.init[levels[d - 1]][0] + p.end[levels[d - 1]][0]
    posterior = hscrf.marginals(p)
    finite(posterior)
    np.testing.assert_allclose(posterior.log_partition, log_sum(log_scores), rtol=1e-9)
    np.testing.assert_allclose(hscrf.decode(p).score, log_scores.max(), rtol=1e-9)
    probabilities = np.exp(log_scores - log_sum(log_scores))
    for d, level in enumerate(levels):
        others = tuple(axis for axis in range(len(levels)) if axis != d)
        np.testing.assert_allclose(posterior.state[level][0], probabilities.sum(axis=others), **ROUNDED)
        np.testing.assert_allclose(posterior.ending[level], 1, rtol=1e-9)
    for counts in posterior.counts.trans.values():
        assert (counts == 0).all()


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_hard_minimum_durations(engine, scale):
    """No segment may end before its third step: the paper's scale factors are zero there (NOTES E30)."""
    rng = np.random.default_rng(17)
    free = draw_model(rng, ("segmental",), 300, size=3, longest=8, scale=scale)
    given = free.topology.to_dict()
    given["min_duration"] = {"a": {"a0": 3, "a1": 5, "a2": 8}}
    p = hscrf.Potentials(hscrf.Topology.from_dict(given), 300, **parts_of(free))
    log_z, segments = semi_markov(
        persist_of(p, "a", 8), p.trans["root"][:, 0], p.init["root"][0, 0], p.end["root"][-1, 0]
    )
    posterior = hscrf.marginals(p)
    finite(posterior)
    np.testing.assert_allclose(posterior.log_partition, log_z + root_score(p), rtol=1e-9)
    np.testing.assert_allclose(posterior.counts.segment["a"], segments, **ROUNDED)
    assert (posterior.counts.duration["a"][:2] == 0).all()


def test_peaked_durations(engine):
    """Lengths around 60 with a spread of 4: every border in between has a vanishing mass (NOTES E30)."""
    length, longest = 180, 90
    rng = np.random.default_rng(18)
    p = draw_model(rng, ("segmental",), length, size=2, longest=longest)
    peaked = -0.5 * ((np.arange(1, longest + 1)[:, None] - [60, 58]) / [4, 0.5]) ** 2
    p = changed(p, "duration", "a", peaked)
    p = changed(p, "segment", "a", np.zeros((length, longest, 2)))
    log_z, segments = semi_markov(
        persist_of(p, "a", longest), p.trans["root"][:, 0], p.init["root"][0, 0], p.end["root"][-1, 0]
    )
    posterior = hscrf.marginals(p)
    finite(posterior)
    np.testing.assert_allclose(posterior.log_partition, log_z + root_score(p), rtol=1e-9)
    np.testing.assert_allclose(posterior.counts.segment["a"], segments, rtol=1e-8, atol=1e-9)


# --------------------------------------------------------------------------------- mass that must not be lost


def two_components(late, cost=-800.0, kinds=("unit",), length=400, at=200):
    """States 0 and 1 never meet states 2 and 3, which start ``cost`` behind; the first two pay ``late`` at ``at``."""
    rng = np.random.default_rng(19)
    p = draw_model(rng, kinds, length, size=4)
    trans = p.trans["root"].copy()
    trans[:, 0, :2, 2:] = trans[:, 0, 2:, :2] = -np.inf
    p = changed(p, "trans", "root", trans)
    token = p.token["a"].copy()
    token[0, 2:] += cost
    token[at, :2] += late
    return changed(p, "token", "a", token)


@on_engines(
    ["late", "cost"],
    list(itertools.product([0.0, -790.0, -800.0, -1e4, -np.inf], [-100.0, -800.0, -5000.0])),
    [(-np.inf, -100.0), (-800.0, -5000.0)],
)
def test_a_component_far_behind_is_not_forgotten(engine, late, cost):
    like_chain(two_components(late, cost, length=LONG[engine], at=LONG[engine] // 2), rtol=1e-8, atol=1e-9)


@on_engines(["late"], [(-790.0,), (-1e4,), (-np.inf,)], [(-1e4,)])
def test_a_component_that_falls_behind_by_small_steps(engine, late):
    """Each step loses 5 nats, which any one row of scaled numbers holds easily."""
    p = two_components(late, cost=0.0)
    token = p.token["a"].copy()
    token[:200, 2:] -= 5.0
    like_chain(changed(p, "token", "a", token), rtol=1e-8, atol=1e-9)


@on_engines(["late"], [(0.0,), (-790.0,), (-1e4,), (-np.inf,)], [(-1e4,)])
def test_a_segmental_component_far_behind_is_not_forgotten(engine, late):
    p = two_components(late, kinds=("segmental",), length=60, at=30)
    log_z, segments = semi_markov(
        persist_of(p, "a", 60), p.trans["root"][:, 0], p.init["root"][0, 0], p.end["root"][-1, 0]
    )
    posterior = hscrf.marginals(p)
    finite(posterior)
    np.testing.assert_allclose(posterior.log_partition, log_z + root_score(p), rtol=1e-9)
    np.testing.assert_allclose(hscrf.log_partition(p), log_z + root_score(p), rtol=1e-9)
    np.testing.assert_allclose(posterior.counts.segment["a"], segments, rtol=1e-7, atol=1e-9)


@on_engines(["late"], [(0.0,), (-790.0,), (-1e4,), (-np.inf,)], [(-1e4,)])
def test_a_parent_far_behind_is_not_forgotten(engine, late):
    """As above one level higher: a0 never gives way to a1, which starts 800 behind."""
    length = 300 if engine == "compiled" else 60
    p = draw_model(np.random.default_rng(20), ("markov", "unit"), length, size=2)
    trans = p.trans["root"].copy()
    trans[:, 0, 0, 1] = trans[:, 0, 1, 0] = -np.inf
    token = p.token["a"].copy()
    token[0, 1] -= 800.0
    token[length // 2, 0] += late
    p = changed(changed(p, "trans", "root", trans), "token", "a", token)
    log_z, upper, lower = hierarchy(p)
    posterior = hscrf.marginals(p)
    finite(posterior)
    np.testing.assert_allclose(posterior.log_partition, log_z, rtol=1e-9)
    np.testing.assert_allclose(posterior.state["a"], upper, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(posterior.state["b"], lower, rtol=1e-8, atol=1e-9)
    by_tables = hscrf.marginals(as_tables(p, ["a"]))
    np.testing.assert_allclose(by_tables.log_partition, log_z, rtol=1e-9)
    np.testing.assert_allclose(by_tables.state["b"], lower, rtol=1e-8, atol=1e-9)


def test_a_long_wait_for_the_only_way_out(engine):
    """Every step favours a state from which nothing leads to the required end."""
    length = 500
    topology = hscrf.Topology({"a": ["trap", "way", "goal"]})
    trans = np.full((1, 1, 3, 3), -np.inf)
    trans[0, 0, [0, 1, 1, 2], [0, 1, 2, 2]] = 0.0
    p = hscrf.Potentials(
        topology,
        length,
        token={"a": np.tile([10.0, 0.0, -3.0], (length, 1))},
        trans={"root": trans},
        start={"a": np.zeros((length, 3))},
        stop={"a": np.zeros((length, 3))},
        init={"root": np.zeros((1, 1, 3))},
        end={"root": [[[-np.inf, -np.inf, 0.0]]]},
    )
    goal = np.arange(1, length + 1)  # how many steps at the goal
    log_z = log_sum(-3.0 * goal)
    np.testing.assert_allclose(hscrf.log_partition(p), log_z, rtol=1e-9)
    posterior = hscrf.marginals(p)
    finite(posterior)
    np.testing.assert_allclose(posterior.log_partition, log_z, rtol=1e-9)
    at_goal = np.array([log_sum(-3.0 * goal[goal >= length - t]) for t in range(length)])
    np.testing.assert_allclose(posterior.state["a"][:, 2], np.exp(at_goal - log_z), rtol=1e-7, atol=1e-300)


@pytest.mark.parametrize("only_late", [False, True])
def test_what_starts_tiny_is_not_lost_with_its_first_token(engine, only_late):
    """The way u, v is unlikely step by step, below all that a float holds beside w, until w is unlikelier still."""
    topology, never = hscrf.Topology({"a": ["u", "v", "w"]}), -np.inf
    token = np.zeros((8, 3))
    token[0, 0], token[1, 1], token[2:, 2] = -215.0, -290.0, -290.0
    p = hscrf.Potentials(
        topology,
        8,
        token={"a": token},
        init={"root": [[[-100.0, never, 0.0]]]},
        trans={"root": [[[[never, -150.0, never], [never, 0.0, never], [never, never, 0.0]]]]},
        end={"root": [[[never, 0.0, never if only_late else 0.0]]]},
    )
    np.testing.assert_allclose(hscrf.log_partition(p), -755.0, rtol=1e-12)
    posterior = hscrf.marginals(p)
    np.testing.assert_allclose(posterior.log_partition, -755.0, rtol=1e-12)
    np.testing.assert_allclose(posterior.state["a"][-1], [0.0, 1.0, 0.0], atol=1e-12)


def cut_off(kids, gap, length, bottom):
    """States of two parents, or of none: only those of the first can be reached, and each step costs them ``gap``."""
    limits = {"unit": {}, "markov": {"x": None}, "segmental": {"x": 4}}[bottom]
    names = [f"x{k}" for k in range(sum(kids))]
    token = np.where(np.arange(len(names)) < kids[0], -gap, 0.0) * np.ones((length, 1))
    if len(kids) == 1:  # the first state alone
        token[:, 1:] = 0.0
        start, across = np.full((1, 1, len(names)), -np.inf), np.zeros((1, 1, len(names), len(names)))
        start[..., 0], across[..., 0, 1:] = 0.0, -np.inf
        topology = hscrf.Topology({"x": names}, max_duration=limits)
        return hscrf.Potentials(topology, length, token={"x": token}, init={"root": start}, trans={"root": across})
    children = {"y": {"A": names[: kids[0]], "B": names[kids[0] :]}}
    successors = {"y": {"A": ["A"], "B": ["B"]}}
    topology = hscrf.Topology({"y": ["A", "B"], "x": names}, children, successors, max_duration=limits)
    return hscrf.Potentials(topology, length, token={"x": token}, init={"root": np.array([[[0.0, -np.inf]]])})


@pytest.mark.parametrize("bottom", ["unit", "markov", "segmental"])
@pytest.mark.parametrize("kids", [(2,), (5,), (3, 2), (4, 3)], ids=str)
@pytest.mark.parametrize(("gap", "length"), [(5.0, 200), (60.0, 13), (250.0, 3)])
def test_what_cannot_be_reached_may_be_much_better(core, kids, gap, length, bottom):
    p = cut_off(kids, gap, length, bottom)
    like_the_reference(batch_of(p), values_of(p), **CLOSE)


@pytest.mark.parametrize("part", ["start", "stop"])
@pytest.mark.parametrize("level", ["b", "c"])
def test_a_faint_border_that_all_configurations_have(core, part, level):
    """Log Z without counts notices it too: no array of counts is there to show it."""
    topology = hscrf.Topology({"a": ["x"], "b": ["y"], "c": ["z"]}, max_duration={"a": 3, "c": None})
    borders = {border: {name: np.zeros((4, 1)) for name in "bc"} for border in ("start", "stop")}
    borders[part][level] -= 120.0
    p = hscrf.Potentials(topology, 4, **borders)
    like_the_reference(batch_of(p), values_of(p), **CLOSE)


def test_segments_far_below_those_of_other_parents_need_no_logarithms(core):
    children = {"act": {"A": ["a1", "a2"], "B": ["b1", "b2"]}}
    levels = {"act": ["A", "B"], "sub": ["a1", "a2", "b1", "b2"]}
    topology = hscrf.Topology(levels, children=children, max_duration={"act": 60, "sub": 40})
    rng = np.random.default_rng(0)
    token = rng.normal(size=(120, 4)) + np.where(np.arange(120)[:, None] < 60, 8.0, -8.0) * [1, 1, -1, -1]
    durations = {"act": rng.normal(size=(60, 2)), "sub": rng.normal(size=(40, 4))}
    p = hscrf.Potentials(topology, 120, token={"sub": token}, duration=durations)
    assert in_logarithms(batch_of(p), values_of(p)) == 0
    like_the_reference(batch_of(p), values_of(p), **CLOSE)


# ------------------------------------------------------------------- segments that end at some steps only


def agrees_with_logarithms(topology, length, values, evidence=None):
    """All numbers are those of the reference, whether or not scaled arithmetic can hold them."""
    batch = Batch(topology, np.array([0, length]), evidence)
    assert np.isfinite(batch.log_partition(values)).all()
    like_the_reference(batch, values, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("cost", [-12.0, -3.0, 4.0])
@pytest.mark.parametrize("every", [3, 7])
def test_ends_between_which_nothing_can_be_looked_at(core, every, cost):
    topology = hscrf.Topology({"chord": ["C", "F", "G"]}, max_duration={"chord": 12})
    length, rng = 100 * every + 1, np.random.default_rng(every)
    values = {
        ("token", 1): rng.standard_normal((length, 3)),
        ("trans", 0): cost + rng.standard_normal((1, 1, 3, 3)),
    }
    ends = np.zeros((2, length), dtype=np.int8)
    ends[1, ::every] = ends[:, -1] = 1
    known = hscrf.Labels(topology, np.full((2, length), -1), ends)
    agrees_with_logarithms(topology, length, values, Evidence.of([known.closed()]))


@pytest.mark.parametrize("cost", [-3.0, -9.0, -21.0])
def test_what_waits_long_for_its_end(core, cost):
    """Segments that started long ago and cannot end yet keep their mass through later rescalings."""
    limits = {"b": {"short": 1, "long": None}}
    topology = hscrf.Topology({"b": ["short", "long"]}, min_duration={"b": {"long": 298}}, max_duration=limits)
    trans = np.zeros((1, 1, 2, 2))
    trans[0, 0, 0, 0] = cost
    agrees_with_logarithms(topology, 300, {("trans", 0): trans})


def test_runs_that_have_ended_do_no_harm(core):
    shortest, longest = {"b": {"long": 40}}, {"a": 30, "b": {"short": 1, "long": None}}
    topology = hscrf.Topology({"a": ["x"], "b": ["short", "long"]}, min_duration=shortest, max_duration=longest)
    values = {("trans", 1): np.full((1, 1, 2, 2), -21.0), ("duration", 1): np.zeros((30, 1))}
    agrees_with_logarithms(topology, 60, values)


def test_a_high_start_lifts_no_faint_segment(core):
    exact = {"b": {"one": 1, "two": 1, "X": 3, "Y": 3, "Z": 1}}
    topology = hscrf.Topology({"b": list(exact["b"])}, min_duration=exact, max_duration=exact)
    init, trans, token = np.full((1, 1, 5), -np.inf), np.full((1, 1, 5, 5), -np.inf), np.zeros((6, 5))
    init[0, 0, 0], token[2:5, 2] = 0.0, -400 / 3
    trans[0, 0, 0, 1], trans[0, 0, 1, 2], trans[0, 0, 1, 3], trans[0, 0, 2, 4] = 44.0, 95.0, 0.0, 0.0
    agrees_with_logarithms(topology, 6, {("init", 0): init, ("trans", 0): trans, ("token", 1): token})
