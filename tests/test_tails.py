"""Open longest durations: explicit durations up to L, and one weight for each further step."""

import numpy as np
import pytest

import hscrf
from comparing import batch_of, in_logarithms, same_expectations
from fitting import loss_of
from hscrf.engine.compiled import Compiled
from hscrf.engine.lengthened import Lengthened, has_recursion
from hscrf.errors import InfeasibleError
from hscrf.inference.posterior import values_of
from hscrf.labels.induction import explicit_duration

CLOSE = {"rtol": 1e-8, "atol": 1e-9}
LEVELS = {"a": ["p", "q"], "b": ["x", "y", "z"]}


def topology_of(rng, longest, above=None, levels=LEVELS):
    """The bottom is open at ``longest``, all of it or one state; ``above`` limits the level above it."""
    limits = {"b": longest} if above is None else {"b": longest, "a": above}
    return hscrf.Topology(levels, max_duration=limits, open_duration={"b": True if rng.integers(2) else ["y"]})


def potentials_of(rng, topology, length, scale=1.0):
    sizes, names = topology.n_states, topology.levels
    parts = {part: {} for part in ("token", "start", "stop", "init", "trans", "end")}
    for d, level in enumerate(names):
        if d:
            parts |= {
                p: {**parts[p], level: scale * rng.normal(size=(length, sizes[d]))} for p in ("token", "start", "stop")
            }
        if d + 1 < len(names):
            parts["init"][level], parts["end"][level] = rng.normal(size=(2, 1, sizes[d], sizes[d + 1]))
            parts["trans"][level] = rng.normal(size=(1, sizes[d], sizes[d + 1], sizes[d + 1]))
    longest = int(topology.max_duration[-1].max())
    duration, tail = {"b": rng.normal(size=(longest, sizes[-1]))}, {"b": rng.uniform(-1.0, 0.5, sizes[-1])}
    return hscrf.Potentials(topology, length, duration=duration, tail=tail, **parts)


def evidence_of(rng, p, density):
    truth = hscrf.sample(p, 1, rng)[0]
    states, ends = (np.where(rng.random(given.shape) < density, given, -1) for given in (truth.states, truth.ends))
    return hscrf.Labels(p.topology, states, ends)


def written_out(batch):
    """The core on the same model, with the durations of all lengths in a table."""
    return Lengthened(Compiled, batch.topology, batch.offsets, batch.evidence)


CASES = [(above, density, seed) for above in (None, 17) for density in (None, 0.05, 0.4, 1.0) for seed in range(2)]


@pytest.mark.parametrize(("above", "density", "seed"), CASES)
def test_recursion_is_the_table_of_all_durations(poisoned, above, density, seed):
    rng = np.random.default_rng([seed, above or 0, int(100 * (density or 0))])
    topology = topology_of(rng, int(rng.integers(1, 9)), above)
    p = potentials_of(rng, topology, int(rng.integers(30, 60)), rng.choice([0.3, 1.0, 5.0]))
    batch = batch_of(p, None if density is None else evidence_of(rng, p, density))
    values, twin = values_of(p), written_out(batch)
    assert has_recursion(batch.topology, values)
    same_expectations(twin.expectations(values), batch.expectations(values), **CLOSE)
    np.testing.assert_allclose(batch.log_partition(values), twin.log_partition(values), **CLOSE)
    np.testing.assert_allclose(batch.best(values)[2], twin.best(values)[2], **CLOSE)
    scores = [[one[0] for one in engine.k_best(values, 8)] for engine in (batch, twin)]
    np.testing.assert_allclose(scores[0], scores[1], **CLOSE)
    assert in_logarithms(batch, values) == 0


@pytest.mark.parametrize("above", [None, 400])
def test_long_known_segments_stay_in_scaled_numbers(core, above):
    """Inside a long known segment nothing else is possible: its mass must not leave the range of numbers."""
    rng = np.random.default_rng(0)
    p = potentials_of(rng, topology_of(rng, 5, above), 300, scale=6.0)
    truth = hscrf.Labels.from_segments(
        p.topology, {"a": [(0, 300, "p")], "b": [(0, 20, "y"), (20, 290, "y"), (290, 300, "y")]}, 300
    )
    batch, values = batch_of(p, truth), values_of(p)
    found = batch.expectations(values)
    np.testing.assert_allclose(found.log_z, hscrf.score(p, truth), rtol=1e-10)
    np.testing.assert_allclose(found.counts["tail", 2], [0, 15 + 265 + 5, 0], rtol=1e-9)
    assert in_logarithms(batch, values) == 0


def test_samples_have_the_posterior():
    rng = np.random.default_rng(3)
    p = potentials_of(rng, topology_of(rng, 2), 12, scale=0.5)
    draws = hscrf.sample(p, 4000, 1)
    states = np.mean([np.eye(3)[y.states[2]] for y in draws], axis=0)
    np.testing.assert_allclose(states, hscrf.marginals(p).state["b"], rtol=0, atol=0.05)
    longest = np.mean([max(stop - start for start, stop, _ in y.segments("b")) > 2 for y in draws])
    assert 0.1 < longest < 1.0


@pytest.mark.parametrize("above", [None, 6])
def test_samples_of_long_sequences_have_the_posterior(core, above):
    """So long that scaled numbers leave their range many times, with segments beyond their explicit durations."""
    rng = np.random.default_rng(5)
    p = potentials_of(rng, topology_of(rng, 2, above), 300)
    n, found = 500, hscrf.marginals(p)
    draws = hscrf.sample(p, n, 1)
    assert max(stop - start for y in draws for start, stop, _ in y.segments("b")) > 3
    for d, level in enumerate(p.topology.levels):
        seen = np.mean([np.eye(p.topology.n_states[d])[y.states[d]] for y in draws], axis=0)
        error = np.sqrt(np.maximum(found.state[level] * (1 - found.state[level]), 0) / n)
        np.testing.assert_array_less(np.abs(seen - found.state[level]), 5 * error + 5 / n)


def test_open_at_one_step_with_a_tail_of_zero_is_markov(engine):
    rng = np.random.default_rng(4)
    topology = hscrf.Topology(LEVELS, max_duration={"b": 1}, open_duration={"b": True})
    token = {"b": rng.normal(size=(9, 3)), "a": rng.normal(size=(9, 2))}
    opened = hscrf.Potentials(topology, 9, token=token)
    markov = hscrf.Potentials(hscrf.Topology(LEVELS, max_duration={"b": None}), 9, token=token)
    np.testing.assert_allclose(hscrf.log_partition(opened), hscrf.log_partition(markov), rtol=1e-12)
    np.testing.assert_allclose(hscrf.marginals(opened).ending["b"], hscrf.marginals(markov).ending["b"], rtol=1e-9)


def test_longer_segments_are_legal_where_durations_are_open():
    columns = {"part": ["A"] * 7 + ["B"] * 2}
    closed = hscrf.Topology({"part": ["A", "B"]}, max_duration={"part": 3})
    with pytest.raises(InfeasibleError, match="lasts 7 steps; expected at most 3"):
        hscrf.Labels.from_columns(closed, columns).check()
    opened = closed.opened(["part"])
    labels = hscrf.Labels.from_columns(opened, columns)
    labels.check()
    p = hscrf.Potentials(opened, 9, duration={"part": [[0, 0], [1, 0], [2, 4]]}, tail={"part": [-0.5, 1]})
    assert hscrf.score(p, labels) == pytest.approx(2 - 4 * 0.5)
    assert hscrf.marginals(p).segment("part").shape == (9, 9, 2)  # all lengths have a place
    assert hscrf.marginals(p, labels).segment("part")[0, 6, 0] == pytest.approx(1.0)


def test_topology_keeps_what_is_open():
    topology = hscrf.Topology(LEVELS, max_duration={"a": 4, "b": 9}, open_duration={"a": ["q"], "b": True})
    arguments = topology.to_dict()
    assert arguments["open_duration"] == {"a": ["q"], "b": True}
    assert hscrf.Topology.from_dict(topology.to_json()) == topology
    assert topology.longest_legal(1)[0] == 4
    del arguments["open_duration"]  # as older files are
    assert hscrf.Topology.from_dict(arguments).open_levels == ()
    assert hscrf.Topology.from_dict(arguments) != topology
    assert not hscrf.Topology({"b": ["x"]}, max_duration={"b": 1}, open_duration={"b": True}).unit_bottom


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"open_duration": {"b": True}}, "state 'x' of level 'b', which has no max_duration; expected one"),
        ({"open_duration": {"a": ["q"]}, "max_duration": {"a": {"p": 3}}}, "state 'q' of level 'a'"),
        ({"open_duration": {"b": "x"}, "max_duration": {"b": 3}}, "is 'x'; expected True, False or a list of states"),
        ({"open_duration": {"b": ["v"]}, "max_duration": {"b": 3}}, "'v'"),
    ],
)
def test_mistakes_in_open_durations(options, message):
    with pytest.raises(ValueError, match=message):
        hscrf.Topology(LEVELS, **options)


def test_a_tail_needs_an_open_level():
    with pytest.raises(ValueError, match=r"tail\['b'\] is given, but open_duration does not name the level"):
        hscrf.Potentials(hscrf.Topology(LEVELS, max_duration={"b": 3}), 2, tail={"b": np.zeros(3)})
    opened = hscrf.Topology(LEVELS, max_duration={"b": 3}, open_duration={"b": True})
    with pytest.raises(ValueError, match=r"tail\['b'\] has shape \(2,\), expected \(3\)"):
        hscrf.Potentials(opened, 2, tail={"b": np.zeros(2)})


# -- learning ----------------------------------------------------------------------------------------------------------


def draw_data(longest, n=6, steps=240, seed=0):
    """Sequences of short A and long B, with noisy observations."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        column = ["B"] * longest
        while len(column) < steps:
            column += ["A"] * int(rng.integers(2, 9)) + ["B"] * int(rng.integers(10, 60))
        column = column[:steps]
        X.append([[label if rng.random() < 0.8 else "AB"[rng.integers(2)]] for label in column])
        Y.append({"part": column})
    return X, Y


def fit(X, Y, **options):
    return hscrf.HSCRF(durations={"part": "gamma"}, solver=hscrf.solvers.LBFGS(max_iter=15), **options).fit(X, Y)


def test_the_rule_for_explicit_durations():
    assert explicit_duration({10: 3, 70: 1}) == 50
    assert explicit_duration({10: 2, 70: 1, 300: 1}) == 70


def test_long_segments_make_durations_open():
    X, Y = draw_data(longest=150)
    model = fit(X, Y)
    assert model.topology_.open_levels == (1,)
    assert model.topology_.max_duration[1].tolist() == [50, 50]
    assert {"duration", "tail"} < set(model.weights_["part"])
    assert model.score(X, Y) > 0.9
    assert fit(X, Y, open_duration=False).topology_.max_duration[1].tolist() == [150, 150]
    assert fit(X, Y, max_duration=160).topology_.open_levels == ()
    assert fit(*draw_data(longest=90)).topology_.open_levels == ()
    given = fit(X, Y, max_duration=20, open_duration=True)
    assert given.topology_.max_duration[1].tolist() == [20, 20]
    assert given.topology_.open_levels == (1,)


def test_open_durations_are_saved(tmp_path):
    X, Y = draw_data(longest=120, n=3)
    model = fit(X, Y)
    model.save(tmp_path / "model")
    loaded = hscrf.load(tmp_path / "model")
    assert loaded.topology_ == model.topology_
    assert [y.column("part") for y in loaded.predict(X)] == [y.column("part") for y in model.predict(X)]


def test_the_gradient_of_a_tail():
    X, Y = draw_data(longest=120, n=2, steps=130)
    model = fit(X, Y)
    objective, _ = loss_of(model, X, Y, None, hscrf.objective.workers.Workers())
    rng = np.random.default_rng(0)
    weights, step = 0.3 * rng.normal(size=model.coef_.size), 1e-6
    gradient = objective(weights)[1]
    for k in range(weights.size - 6, weights.size):  # durations and tails come last
        moved = [objective(weights + sign * step * np.eye(weights.size)[k])[0] for sign in (1, -1)]
        np.testing.assert_allclose((moved[0] - moved[1]) / (2 * step), gradient[k], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"open_duration": 3, "durations": {"part": "gamma"}}, "open_duration is 3, expected True, False or 'auto'"),
        ({"open_duration": True}, "open_duration is True, but durations names no level"),
    ],
)
def test_mistakes_of_the_estimator(options, message):
    with pytest.raises(ValueError, match=message):
        hscrf.HSCRF(**options).fit(*draw_data(20, n=1, steps=20))
