"""A batch: log Z of each sequence and counts of all, against one run per sequence."""

import gc
import pickle
import weakref

import numpy as np
import pytest

import hscrf
from drawing import MIXES, draw_evidence, draw_potentials, draw_topology
from hscrf.engine import Batch, Evidence
from hscrf.inference.posterior import values_of

LENGTHS = (5, 1, 7, 3, 6)
SHARED = ("duration", "init", "trans", "end")  # one table for all steps of all sequences
CLOSE = {"rtol": 1e-11, "atol": 1e-12}


def draw_batch(rng, kinds, scale=1.0, classes=1):
    """Potentials of several sequences that share their constant tables, and the same packed."""
    topology = draw_topology(rng, kinds, classes=classes)
    drawn = [draw_potentials(rng, topology, kinds, n, scale, longest=7, constant=True) for n in LENGTHS]
    tables = {part: drawn[0][part] for part in SHARED}
    own = [{part: p[part] for part in ("token", "start", "stop", "segment")} for p in drawn]
    singles = [hscrf.Potentials(topology, n, **parts, **tables) for n, parts in zip(LENGTHS, own, strict=True)]
    packed = {
        part: {level: np.concatenate([p[part][level] for p in singles]) for level in own[0][part]} for part in own[0]
    }
    return singles, values_of(hscrf.Potentials(topology, sum(LENGTHS), **packed, **tables))


def offsets():
    return np.concatenate([[0], np.cumsum(LENGTHS)])


def batch_of(singles, evidence=None):
    closed = None
    if evidence is not None:
        closed = Evidence.of([y.closed() for y in evidence])
    return Batch(singles[0].topology, offsets(), closed)


def expected_counts(singles, weights, evidence=None):
    """Weighted counts of all sequences, each run by itself: packed, or summed for shared tables."""
    runs = [hscrf.marginals(p, None if evidence is None else evidence[n]) for n, p in enumerate(singles)]
    counts = [
        {key: w * table for key, table in values_of(m.counts).items()} for m, w in zip(runs, weights, strict=True)
    ]
    joined = {
        key: sum(c[key] for c in counts) if key[0] in SHARED else np.concatenate([c[key] for c in counts])
        for key in counts[0]
    }
    return np.array([m.log_partition for m in runs]), joined


def check(singles, values, weights, evidence=None):
    found = batch_of(singles, evidence).expectations(values, weights)
    log_z, counts = expected_counts(singles, np.ones(len(LENGTHS)) if weights is None else weights, evidence)
    np.testing.assert_allclose(found.log_z, log_z, **CLOSE)
    assert found.counts.keys() == counts.keys()
    for key, table in counts.items():
        np.testing.assert_allclose(found.counts[key], table, err_msg=str(key), **CLOSE)
    np.testing.assert_allclose(batch_of(singles, evidence).log_partition(values), log_z, **CLOSE)


@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
@pytest.mark.parametrize("classes", [1, 2])
def test_a_batch_is_one_run_a_sequence(engine, kinds, classes):
    rng = np.random.default_rng([len(kinds), classes])
    singles, values = draw_batch(rng, kinds, classes=classes)
    check(singles, values, None)
    check(singles, values, rng.uniform(0.1, 3.0, len(LENGTHS)))


@pytest.mark.parametrize("weights", [[1, -2, 0.5, -0.1, 3], [0, 1, 0, 2, 0], [-1] * 5, [0] * 5, [1e-8, 1e8, 1, 1, 1]])
@pytest.mark.parametrize(
    "kinds", [("markov", "unit"), ("segmental", "markov"), ("segmental", "segmental")], ids="-".join
)
def test_weights_of_any_sign(engine, kinds, weights):
    singles, values = draw_batch(np.random.default_rng(3), kinds)
    check(singles, values, np.array(weights, dtype=float))


@pytest.mark.parametrize("kinds", [("markov", "unit"), ("markov", "segmental"), ("segmental", "unit")], ids="-".join)
def test_evidence_on_some_sequences_only(engine, kinds):
    rng = np.random.default_rng(5)
    singles, values = draw_batch(rng, kinds)
    evidence = [
        draw_evidence(rng, p, 0.4) if n % 2 else hscrf.Labels.unknown(p.topology, p.length)
        for n, p in enumerate(singles)
    ]
    check(singles, values, rng.uniform(0.1, 3.0, len(LENGTHS)), evidence)


@pytest.mark.parametrize("kinds", [("markov", "unit"), ("segmental", "unit"), ("markov", "segmental")], ids="-".join)
@pytest.mark.parametrize("signs", [(1, 1, 1, 1, 1), (1, -1, 1, 1, -1)])
def test_scaled_and_logarithmic_sequences_next_to_each_other(engine, kinds, signs):
    """Tokens of one sequence differ by thousands: only that one is evaluated in logarithms."""
    rng = np.random.default_rng(11)
    singles, values = draw_batch(rng, kinds)
    d = singles[0].topology.depth - 1
    wild = slice(int(offsets()[2]), int(offsets()[3]))
    values["token", d][wild] *= 3000
    own = {level: table.copy() for level, table in singles[2].token.items()}
    own[singles[0].topology.levels[d]] = values["token", d][wild]
    others = {part: singles[2][part] for part in ("start", "stop", "segment", *SHARED)}
    singles[2] = hscrf.Potentials(singles[2].topology, LENGTHS[2], token=own, **others)
    check(singles, values, np.array(signs) * rng.uniform(0.1, 3.0, len(LENGTHS)))


def test_a_sequence_does_not_depend_on_its_neighbours(engine):
    singles, values = draw_batch(np.random.default_rng(2), ("segmental", "markov", "unit"))
    whole = batch_of(singles).log_partition(values)
    for n, p in enumerate(singles):
        np.testing.assert_allclose(hscrf.log_partition(p), whole[n], rtol=1e-13)


def test_a_sequence_without_configuration_has_no_counts(engine):
    singles, values = draw_batch(np.random.default_rng(4), ("markov", "unit"))
    values["token", 2][offsets()[2]] = -np.inf
    found = batch_of(singles).expectations(values, np.array([1.0, 2.0, 3.0, -1.0, 0.5]))
    assert found.log_z[2] == -np.inf
    assert np.isfinite(np.delete(found.log_z, 2)).all()
    assert (found.counts["token", 1][offsets()[2] : offsets()[3]] == 0).all()


def test_a_batch_pickles_without_its_plans(engine):
    singles, values = draw_batch(np.random.default_rng(6), ("segmental", "unit"))
    batch = batch_of(singles)
    expected = batch.expectations(values)
    again = pickle.loads(pickle.dumps(batch))
    assert len(pickle.dumps(batch)) < 3000
    found = again.expectations(values)
    assert np.array_equal(found.log_z, expected.log_z)
    assert all(np.array_equal(found.counts[key], expected.counts[key]) for key in expected.counts)


def test_marginals_leave_nothing_behind():
    """Memory is released without the garbage collector: at a million steps it is half a gigabyte."""
    p = hscrf.Potentials(hscrf.Topology({"tag": ["N", "V"]}), 3)
    found = hscrf.marginals(p)
    ghosts = [weakref.ref(found), weakref.ref(found.posterior), weakref.ref(found.counts)]
    assert found.posterior.marginals.state["tag"] is found.state["tag"], "the posterior keeps the numbers"
    gc.disable()
    try:
        del found
        assert [ghost() for ghost in ghosts] == [None] * 3
    finally:
        gc.enable()


@pytest.mark.parametrize("classes", [1, 2])
@pytest.mark.parametrize("kinds", [("markov", "unit"), ("segmental", "unit")], ids="-".join)
def test_a_sequence_without_configurations_leaves_its_neighbours_alone(engine, kinds, classes):
    rng = np.random.default_rng(5)
    topology = draw_topology(rng, kinds, 2, classes, False, 4)
    one, other = (draw_potentials(rng, topology, kinds, 6, longest=4, constant=True) for _ in range(2))
    values = {
        key: array if key[0] in ("init", "trans", "end", "duration") else np.concatenate([array, values_of(other)[key]])
        for key, array in values_of(one).items()
    }
    bottom = topology.depth - 1
    values["token", bottom][8] = -np.inf  # no state may be there
    batch, alone = Batch(topology, np.array([0, 6, 12])), Batch(topology, np.array([0, 6]))
    own = {key: array[:6] if len(array) == 12 else array for key, array in values.items()}
    states, ends, score = batch.best(values)
    expected = alone.best(own)
    np.testing.assert_array_equal(states[:, :6], expected[0])
    np.testing.assert_array_equal(ends[:, :6], expected[1])
    np.testing.assert_allclose(score, [expected[2][0], -np.inf], rtol=1e-12)
    drawn, _, log_z = batch.draw(values, 2, np.random.default_rng(0))
    np.testing.assert_allclose(log_z, [alone.log_partition(own)[0], -np.inf], rtol=1e-10)
    assert (drawn[:, bottom, :6] >= 0).all()
