"""Starts of segments and sequences that are computed together give the same numbers as separate runs."""

import numpy as np
import pytest

import hscrf
from comparing import batch_of, in_logarithms, like_the_reference, on_engines, reference_of, same_expectations
from drawing import draw_evidence, draw_model, parts_of
from hscrf.engine import Batch, Evidence
from hscrf.engine.tally import COUNTER
from hscrf.inference.posterior import values_of

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
CLOSE = {"rtol": 1e-9, "atol": 1e-10}


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


@on_engines(["kinds"], [(kinds,) for kinds in [*MIXES, *MARKOV]], [(kinds,) for kinds in MIXES[::2]])
def test_a_sequence_does_not_feel_its_neighbours(engine, kinds):
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


# ------------------------------------------------------------------------------
# Starts


@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
@pytest.mark.parametrize("length", [1, 2, 8, 9, 17, 40])
def test_windows_of_starts(poisoned, kinds, length):
    """Eight starts walk side by side: lengths around multiples of it, and few children or many."""
    rng = np.random.default_rng([length, len(kinds)])
    options = {"size": int(rng.integers(2, 7)) if len(kinds) < 3 else 2, "sparse": length % 2 == 0}
    p = draw_model(rng, kinds, length, longest=9, constant=length % 3 == 2, **options)
    assert in_logarithms(batch_of(p), values_of(p)) == 0
    like_the_reference(batch_of(p), values_of(p), **CLOSE)


@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
@pytest.mark.parametrize("seed", range(3))
def test_evidence_leaves_fewer_starts(poisoned, kinds, seed):
    rng = np.random.default_rng([seed, len(kinds)])
    p = draw_model(rng, kinds, 33, size=2, longest=12, sparse=seed % 2 == 0, classes=1 + seed % 2)
    like_the_reference(batch_of(p, draw_evidence(rng, p, [0.02, 0.1, 0.4][seed % 3])), values_of(p), **CLOSE)


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
def test_potentials_of_any_size(core, kinds, scale):
    """Rows are rescaled, or done again in logarithms: the numbers stay those of the reference."""
    rng = np.random.default_rng(int(scale))
    p = draw_model(rng, kinds, 60, size=3, longest=25, scale=scale, constant=True)
    like_the_reference(batch_of(p), values_of(p), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("away", [100.0, 250.0, 350.0, 400.0, 450.0, 600.0])
@pytest.mark.parametrize(("length", "longest"), [(8, 6), (24, 20)])
def test_children_far_fainter_than_those_of_other_parents(core, length, longest, away):
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
    like_the_reference(batch_of(p), values_of(p), rtol=1e-8, atol=1e-9)


# ------------------------------------------------------------------------------
# Sequences


@pytest.mark.parametrize("longest", [None, 4], ids=["unit", "segmental"])
@pytest.mark.parametrize("count", [3, 8])
def test_one_sequence_needs_logarithms_alone(core, longest, count):
    """Two states have far higher scores in one sequence, until two others that never follow them do."""
    topology = hscrf.Topology({"a": ["w", "x", "y", "z"]}, max_duration={"a": longest} if longest else None)
    rng, length = np.random.default_rng(0), 20
    token, trans = rng.standard_normal((count * length, 4)), rng.standard_normal((1, 1, 4, 4))
    trans[:, :, :2, 2:] = trans[:, :, 2:, :2] = -np.inf
    token[length, 2:] -= 800.0
    token[length + 10, :2] -= 1600.0
    batch, values = Batch(topology, np.arange(count + 1) * length), {("token", 1): token, ("trans", 0): trans}
    assert in_logarithms(batch, values) == 1
    like_the_reference(batch, values, **CLOSE)


@pytest.mark.parametrize("kinds", MARKOV, ids="-".join)
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 16, 17, 40])
def test_bundles_of_sequences(poisoned, kinds, count):
    lengths = np.random.default_rng([count, len(kinds)]).integers(1, 30, size=count)
    like_the_reference(*packed(lengths_of_one_topology(kinds, lengths)), **CLOSE)


@pytest.mark.parametrize("kinds", MARKOV, ids="-".join)
@pytest.mark.parametrize(
    "options",
    [{"size": 1}, {"size": 5}, {"size": 7}, {"size": 11}, {"size": 13}, {"sparse": True}, {"classes": 3}],
    ids=str,
)
def test_groups_of_any_width_and_several_roots(poisoned, kinds, options):
    if len(kinds) > 2 and options.get("size", 0) > 5:
        options = {"size": 6}  # the reference lists all stacks
    like_the_reference(*packed(lengths_of_one_topology(kinds, [4, 17, 1, 9, 9, 9, 3, 8, 2], **options)), **CLOSE)


@pytest.mark.parametrize("kinds", MARKOV, ids="-".join)
def test_known_states_and_known_ends_among_free_sequences(poisoned, kinds):
    models = lengths_of_one_topology(kinds, [12, 7, 12, 5, 12, 12, 12, 12, 12])
    best = [hscrf.decode(p) for p in models]
    states, ends = [np.full_like(y.states, -1) for y in best], [np.full_like(y.ends, -1) for y in best]
    states[0][-1, 5] = best[0].states[-1, 5]
    states[2][1, [2, 8]] = best[2].states[1, [2, 8]]
    ends[3][1] = best[3].ends[1]
    labels = [hscrf.Labels(*known) for known in zip((p.topology for p in models), states, ends, strict=True)]
    batch, values = packed(models)
    evidence = Evidence.of([y.closed() for y in labels])
    like_the_reference(Batch(batch.topology, batch.offsets, evidence), values, **CLOSE)


def test_a_very_long_sequence_among_short_ones(core):
    models = lengths_of_one_topology(("markov", "unit"), [30, 9_000] + [30] * 11)
    batch, values = packed(models)
    whole, scores = batch.log_partition(values), batch.best(values)[2]
    alone = [packed([p]) for p in models]
    np.testing.assert_allclose(whole, [own.log_partition(given)[0] for own, given in alone], rtol=1e-12)
    np.testing.assert_allclose(scores, [own.best(given)[2][0] for own, given in alone], rtol=1e-12)


# ------------------------------------------------------------------------------
# Logarithms


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [60.0, 1e4])
@pytest.mark.parametrize("kinds", MARKOV, ids="-".join)
def test_bundles_in_logarithms(poisoned, kinds, scale, weighted):
    """Tables that scaled numbers cannot hold, impossible events, and weights of both signs."""
    lengths = [4, 17, 1, 9, 9, 9, 3, 8, 2, 12, 12, 12, 12]
    models = lengths_of_one_topology(kinds, lengths, size=5, scale=scale, forbidden=0.02)
    batch, values = packed(models)
    values = {key: array * 400.0 if key[0] == "trans" else array for key, array in values.items()}
    weights = np.where(np.arange(len(lengths)) % 3 == 0, -0.5, 2.0) if weighted else None
    assert in_logarithms(batch, values) == len(lengths)
    expected = reference_of(batch).expectations(values, weights)
    same_expectations(expected, batch.expectations(values, weights), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(batch.log_partition(values), expected.log_z, rtol=1e-12)


@pytest.mark.parametrize("scale", [50.0, 1e4])
@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
def test_starts_side_by_side_in_logarithms(poisoned, kinds, scale):
    """Segments whose masses drift far within their longest duration."""
    rng = np.random.default_rng(int(scale))
    p = draw_model(rng, kinds, 24, size=3, longest=20, scale=scale, forbidden=0.01)
    batch, values = batch_of(p), values_of(p)
    assert in_logarithms(batch, values) == 1
    like_the_reference(batch, values, rtol=1e-9, atol=1e-9)


MASKED = [("unit",), ("markov", "unit"), ("segmental", "markov"), ("segmental", "segmental")]


def with_masks(rng, p, share, score):
    """The potentials of a model in which some transitions have a very low score."""
    values = values_of(p)
    for key, array in values.items():
        if key[0] == "trans":
            values[key] = np.where(rng.random(array.shape) < share, score, array)
    return values


@pytest.mark.parametrize("kinds", MASKED, ids="-".join)
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "varying"])
@pytest.mark.parametrize("score", [-200.0, -1e4])
def test_masks_in_tables_stay_in_scaled_numbers(poisoned, kinds, constant, score):
    """Scores far below zero, where -inf is meant, do not cost logarithms: with counts or log Z alone."""
    rng = np.random.default_rng(len(kinds))
    p = draw_model(rng, kinds, 24, size=3, longest=6, constant=constant)
    batch, values = batch_of(p), with_masks(rng, p, 0.2, score)
    before = COUNTER.total
    assert in_logarithms(batch, values) == 0
    batch.log_partition(values)
    assert COUNTER.total.since(before).in_logarithms == 0
    like_the_reference(batch, values, **CLOSE)


@pytest.mark.parametrize("kinds", MASKED, ids="-".join)
@pytest.mark.parametrize("count", [1, 8])
def test_masks_that_cannot_be_avoided(poisoned, kinds, count):
    """Every transition has a mask, so all labellings with the fewest transitions matter."""
    rng = np.random.default_rng(count)
    p = draw_model(rng, kinds, 8 * count, size=2, longest=6, constant=True)
    values = with_masks(rng, p, 1.0, -1e4)
    batch = Batch(p.topology, np.arange(count + 1) * 8)
    assert in_logarithms(batch, values) == count
    like_the_reference(batch, values, rtol=1e-10, atol=1e-9)
