"""Runs side by side: the same numbers as from runs that go alone, and as from an enumeration."""

import numpy as np
import pytest

import enumeration as twin
import hscrf
import test_twin
from drawing import draw_evidence, draw_model, parts_of
from hscrf.engine import Batch, Evidence, bundling, plan, space
from hscrf.engine.kernels.arithmetic import LINEAR, LOG
from hscrf.engine.kernels.layout import SEQUENCE
from hscrf.engine.passes import outside
from hscrf.inference import Posterior
from hscrf.inference.posterior import values_of
from test_paths import same_expectations

MIXES = [
    ("segmental", "unit"),
    ("segmental", "markov"),
    ("segmental", "segmental"),
    ("segmental", "markov", "unit"),
    ("markov", "segmental", "unit"),
    ("segmental", "segmental", "unit"),
    ("segmental", "segmental", "segmental"),
]
MARKOV = [("unit",), ("markov",), ("markov", "unit"), ("markov", "markov"), ("markov", "markov", "unit")]
ROWS = 16


@pytest.fixture
def together(monkeypatch):
    """Every start that can goes into a bundle, however few of them there are."""
    monkeypatch.setattr(bundling, "rows_for", lambda *_: ROWS)
    monkeypatch.setattr(bundling, "SPARSE", 1_000)
    monkeypatch.setattr(bundling, "FULL", 1_000)
    monkeypatch.setattr(bundling, "ROOM", 2**40)


@pytest.fixture(autouse=True)
def small_models_too(monkeypatch):
    """Bundles are worth their kernels, however small the model is."""
    monkeypatch.setattr(bundling, "WORTH", 0)


@pytest.fixture
def poisoned(monkeypatch):
    """Work space is full of NaN: what is used without being written shows."""
    make = space.Space.array

    def full_of_nan(self, name, shape, dtype=np.float64):
        array = make(self, name, shape, dtype)
        array.fill(np.nan if dtype is np.float64 else 1)
        return array

    monkeypatch.setattr(space.Space, "array", full_of_nan)


def same_as_alone(p, labels=None, rtol=1e-9, atol=1e-10):
    """Log Z, counts and the best by bundles, in the arithmetic that has them, and in LOG, in which runs go alone."""
    values, batch = values_of(p), Posterior(p, labels).batch
    plan = batch.plan(values)
    assert any(layer.bundling is not None for layer in plan.layers)
    scaled, lossy = outside(plan, LINEAR, values)
    assert not lossy.any()
    same_expectations(outside(plan, LOG, values)[0], scaled, rtol=rtol, atol=atol)
    np.testing.assert_allclose(batch.log_partition(values), scaled.log_z, rtol=rtol, atol=atol)
    best = hscrf.decode(p, labels)
    np.testing.assert_allclose(hscrf.score(p, best), best.score, rtol=rtol)
    return best.score


@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
@pytest.mark.parametrize("length", [1, 2, ROWS, ROWS + 1, 40])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "varying"])
def test_windows_of_starts(together, poisoned, monkeypatch, kinds, length, constant):
    rng = np.random.default_rng([length, len(kinds)])
    options = {"size": int(rng.integers(2, 7)) if len(kinds) < 3 else 3, "sparse": length % 2 == 0}
    p = draw_model(rng, kinds, length, longest=9, constant=constant, **options)
    best = same_as_alone(p)
    monkeypatch.setattr(bundling, "rows_for", lambda *_: 0)
    np.testing.assert_allclose(hscrf.decode(p).score, best, rtol=1e-9)


@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
@pytest.mark.parametrize("seed", range(6))
def test_evidence_leaves_fewer_rows(together, poisoned, kinds, seed):
    rng = np.random.default_rng([seed, len(kinds)])
    p = draw_model(rng, kinds, 45, size=3, longest=12, sparse=seed % 2 == 0, classes=1 + seed % 2)
    same_as_alone(p, draw_evidence(rng, p, [0.02, 0.1, 0.4][seed % 3]))


@pytest.mark.parametrize("seed", range(150))
def test_random_models_by_enumeration(together, seed):
    model, evidence, p, labels = test_twin.draw(3 + seed % 2, 1000 + seed)
    found = hscrf.marginals(p, labels)
    close = {"rtol": 1e-9, "atol": 1e-10}
    np.testing.assert_allclose(found.log_partition, twin.log_partition(model, evidence), **close)
    np.testing.assert_allclose(hscrf.decode(p, labels).score, twin.best_score(model, evidence), **close)
    counts = twin.counts(model, evidence)
    for part, level, values in found.counts.parts():
        np.testing.assert_allclose(values, counts[part][p.topology.level(level)], **close, err_msg=part)
    for d, level in enumerate(p.topology.levels):
        np.testing.assert_allclose(found.ending[level], twin.ending_marginals(model, evidence)[d], **close)


def packed(models):
    """Several models of one topology as a batch, and its values."""
    offsets = np.concatenate([[0], np.cumsum([p.length for p in models])])
    each = [values_of(p) for p in models]
    timed = {key for key in each[0] if key[0] in ("token", "segment", "start", "stop")}
    values = {key: np.concatenate([v[key] for v in each]) if key in timed else each[0][key] for key in each[0]}
    return Batch(models[0].topology, offsets), values


def lengths_of_one_topology(kinds, lengths, scale=1.0, **options):
    rng = np.random.default_rng(7)
    first = draw_model(rng, kinds, max(lengths), **{"size": 3, "longest": 9, "constant": True, **options})
    parts, models = parts_of(first), []
    for length in lengths:
        own = {
            **parts,
            "token": {k: scale * rng.standard_normal((length, v.shape[1])) for k, v in parts["token"].items()},
            **{
                part: {k: rng.standard_normal((length, *v.shape[1:])) for k, v in parts.get(part, {}).items()}
                for part in ("start", "stop", "segment")
            },
        }
        models.append(hscrf.Potentials(first.topology, length, **own))
    return models


@pytest.mark.parametrize("kinds", [*MIXES, *MARKOV], ids="-".join)
def test_a_sequence_does_not_feel_its_neighbours(together, kinds):
    models = lengths_of_one_topology(kinds, [1, 17, 5, 40, 16])
    batch, values = packed(models)
    whole = batch.expectations(values)
    scores = batch.best(values)[2]
    for n, p in enumerate(models):
        own, steps = packed([p]), slice(batch.offsets[n], batch.offsets[n + 1])
        alone = own[0].expectations(own[1])
        np.testing.assert_allclose(whole.log_z[n], alone.log_z[0], rtol=1e-12)
        np.testing.assert_allclose(scores[n], own[0].best(own[1])[2][0], rtol=1e-12)
        for d in range(p.topology.depth):
            np.testing.assert_allclose(whole.state[d][steps], alone.state[d], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(whole.ending[d][steps], alone.ending[d], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "kinds", [("segmental", "unit"), ("segmental", "markov"), ("segmental", "segmental"), ("markov", "unit")]
)
def test_one_sequence_leaves_the_scaled_arithmetic_alone(together, kinds):
    """Tokens of hundreds of nats in one of three sequences: the other two keep their numbers to the last bit."""
    models = lengths_of_one_topology(kinds, [20, 20, 20])
    wild = parts_of(models[1])
    wild["token"] = {**wild["token"], "b": 400.0 * wild["token"]["b"]}
    models[1] = hscrf.Potentials(models[1].topology, 20, **wild)
    batch, values = packed(models)
    assert outside(batch.plan(values), LINEAR, values)[1].tolist() == [False, True, False]
    found = batch.expectations(values)
    for n, p in enumerate(models):
        alone, own = packed([p])
        np.testing.assert_allclose(found.log_z[n], alone.log_partition(own)[0], rtol=1e-12)


@pytest.mark.parametrize("scale", [3.0, 10.0, 30.0, 100.0])
@pytest.mark.parametrize(
    "kinds",
    [
        ("segmental", "unit"),
        ("segmental", "markov"),
        ("segmental", "segmental"),
        ("markov", "unit"),
        ("markov", "markov"),
    ],
)
def test_potentials_of_any_size(together, kinds, scale):
    """Rows are rescaled, looked at at every step, or given to LOG: the numbers stay those of LOG."""
    rng = np.random.default_rng(int(scale))
    p = draw_model(rng, kinds, 60, size=3, longest=25, scale=scale, constant=True)
    values, batch = values_of(p), Posterior(p, None).batch
    expected = outside(batch.plan(values), LOG, values)[0]
    same_expectations(expected, batch.expectations(values), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(batch.log_partition(values), expected.log_z, rtol=1e-10)


def test_narrow_groups_of_long_segments_go_side_by_side_and_wide_ones_alone():
    def plan(children, longest):
        rng = np.random.default_rng(0)
        return Posterior(draw_model(rng, ("segmental", "unit"), 60, size=children, longest=longest), None).batch.plan(
            values_of(draw_model(rng, ("segmental", "unit"), 60, size=children, longest=longest))
        )

    assert plan(4, 30).layers[1].bundling is not None
    assert plan(30, 10).layers[1].bundling is None


def test_all_ends_known_need_no_rows():
    rng = np.random.default_rng(1)
    p = draw_model(rng, ("segmental", "unit"), 60, size=3, longest=20)
    truth = hscrf.decode(p)
    values = values_of(p)
    free, known = Posterior(p, None).batch.plan(values), Posterior(p, truth).batch.plan(values)
    assert free.layers[1].bundling is not None
    assert known.layers[1].bundling is None


def test_the_last_starts_of_a_sequence_go_along():
    """Four starts are left after a window of sixteen: too few by themselves, and too few to go alone."""
    p = draw_model(np.random.default_rng(2), ("segmental", "unit"), 20, size=3, longest=20)
    (_, layer) = Posterior(p, None).batch.plan(values_of(p)).layers
    assert len(layer.bundling.bundles) == 2 * p.topology.n_states[1]
    assert layer.bundling.lone is None


# ------------------------------------------------------------------------------
# Sequences


def sequences_of(found):
    """The sequences of all runs in bundles."""
    return sorted(n for *_, begin, end in found.bundles for n in found.runs[begin:end, SEQUENCE])


def same_in_rows_as_alone(models, evidence=None, rtol=1e-10, atol=1e-11):
    """All a batch gives, with its sequences side by side and with each alone; return which have gone in rows."""
    batch, values = packed(models)
    batch = Batch(batch.topology, batch.offsets, evidence)
    layer = batch.plan(values).layers[0]
    whole, (states, ends, score) = batch.expectations(values), batch.best(values)
    np.testing.assert_allclose(batch.log_partition(values), whole.log_z, rtol=rtol)
    other = Batch(batch.topology, batch.offsets, evidence)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "sequences", lambda *_: None)
        assert other.plan(values).layers[0].bundling is None
        same_expectations(other.expectations(values), whole, rtol=rtol, atol=atol)
        alone = other.best(values)
    np.testing.assert_array_equal(states, alone[0])
    np.testing.assert_array_equal(ends, alone[1])
    np.testing.assert_allclose(score, alone[2], rtol=1e-12)
    return sequences_of(layer.bundling)


@pytest.mark.parametrize("kinds", MARKOV, ids="-".join)
@pytest.mark.parametrize("count", [1, 2, 8, 9, ROWS, ROWS + 1, 40])
def test_bundles_of_sequences(together, poisoned, kinds, count):
    lengths = np.random.default_rng([count, len(kinds)]).integers(1, 30, size=count)
    assert same_in_rows_as_alone(lengths_of_one_topology(kinds, lengths)) == list(range(count))


@pytest.mark.parametrize("kinds", MARKOV, ids="-".join)
@pytest.mark.parametrize("options", [{"size": 1}, {"size": 5}, {"size": 13}, {"sparse": True}, {"classes": 3}], ids=str)
def test_groups_of_any_width_and_several_roots(together, poisoned, kinds, options):
    models = lengths_of_one_topology(kinds, [4, 17, 1, 9, 9, 9], **options)
    assert same_in_rows_as_alone(models) == sorted([*range(len(models))] * options.get("classes", 1))


@pytest.mark.parametrize("kinds", MARKOV, ids="-".join)
def test_known_states_keep_their_rows_and_known_ends_go_alone(together, poisoned, kinds):
    models = lengths_of_one_topology(kinds, [12, 7, 12, 5, 12])
    best = [hscrf.decode(p) for p in models]
    states, ends = [np.full_like(y.states, -1) for y in best], [np.full_like(y.ends, -1) for y in best]
    states[0][-1, 5] = best[0].states[-1, 5]
    states[2][1, [2, 8]] = best[2].states[1, [2, 8]]
    ends[3][1] = best[3].ends[1]
    labels = [hscrf.Labels(*known) for known in zip((p.topology for p in models), states, ends, strict=True)]
    taken = same_in_rows_as_alone(models, Evidence.of([y.closed() for y in labels]))
    assert taken == ([0, 1, 2, 3, 4] if kinds == ("unit",) else [0, 1, 2, 4])


def test_tables_that_change_in_time_go_alone(together):
    p = draw_model(np.random.default_rng(3), ("markov", "unit"), 20, constant=False)
    assert Posterior(p, None).batch.plan(values_of(p)).layers[0].bundling is None


def test_few_sequences_and_very_long_ones_go_alone():
    def taken(lengths):
        batch, values = packed(lengths_of_one_topology(("markov", "unit"), lengths))
        bundling_of_root = batch.plan(values).layers[0].bundling
        return [] if bundling_of_root is None else sequences_of(bundling_of_root)

    assert taken([30]) == []
    assert taken([30] * 5) == []
    assert taken([30] * 8) == list(range(8))
    assert taken([30] * 11) == list(range(11))
    assert taken([30, 9_000] + [30] * 11) == [0, *range(2, 13)]
    assert taken([30] * 16 + [30]) == list(range(17))


# ------------------------------------------------------------------------------
# What is too small


def test_bundles_are_for_what_takes_longer_than_a_call(monkeypatch):
    """Pairs of siblings are counted, of all runs and at all of their steps."""
    segmental = draw_model(np.random.default_rng(4), ("segmental", "unit"), 30, size=3, longest=20)
    alive = sum(min(20, 30 - i) for i in range(30)) * 3 * 3**2
    models = lengths_of_one_topology(("markov", "unit"), [30] * 12)
    batch, values = packed(models)
    together = 12 * 30 * (1 + models[0].topology.n_states[1]) * 3**2  # below the root, and below each of its children

    def bundled(work):
        monkeypatch.setattr(bundling, "WORTH", work)
        plans = Posterior(segmental, None).batch.plan(values_of(segmental)), Batch(batch.topology, batch.offsets)
        return plans[0].layers[1].bundling is not None, plans[1].plan(values).layers[0].bundling is not None

    assert alive < together
    assert bundled(alive) == (True, True)
    assert bundled(alive + 1) == (False, True)
    assert bundled(together + 1) == (False, False)


# ------------------------------------------------------------------------------
# Faint segments


@pytest.mark.parametrize("away", [100.0, 250.0, 350.0, 400.0, 450.0, 600.0])
@pytest.mark.parametrize(("length", "longest"), [(8, 6), (24, 20)])
def test_children_far_fainter_than_those_of_other_parents(together, length, longest, away):
    """The children of one parent are some hundred nats below the other's, which its own segments make up for."""
    topology = hscrf.Topology(
        {"p": ["A", "B"], "c": ["a", "b"]},
        children={"p": {"A": ["a"], "B": ["b"]}},
        max_duration={"p": longest, "c": 3},
    )
    below, above = np.zeros((length, 3, 2)), np.zeros((length, longest, 2))
    below[:, :, 0] = -away
    below[3, 0, 0] -= 90.0
    above[:, :, 0] = 1.5 * away
    p = hscrf.Potentials(topology, length, segment={"c": below, "p": above})
    values, batch = values_of(p), Posterior(p, None).batch
    expected = outside(batch.plan(values), LOG, values)[0]
    np.testing.assert_allclose(batch.log_partition(values), expected.log_z, rtol=1e-12)
    same_expectations(expected, batch.expectations(values, explicit=()), rtol=1e-8, atol=1e-9)
