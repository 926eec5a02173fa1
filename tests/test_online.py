"""Learners that take a few sequences at a time: bundles, moving weights, and runs resumed after a kill."""

from dataclasses import replace

import numpy as np
import pytest

import hscrf
from hscrf import HSCRF, LBFGS, SGD, ChainCRF, DynamicCRF, Perceptron, Segment, SemiCRF, Token, Trans
from hscrf.datasets.nested import make_nested
from hscrf.objective.bundles import bundled
from hscrf.solvers import epochs
from hscrf.solvers.course import Monitor
from hscrf.solvers.scaled_weights import ScaledWeights
from test_objective import BLOCKS, PLACES, blocks_of, build
from test_solvers import Failing, Logistic

SOLVERS = [SGD(epochs=4, batch=2), Perceptron(epochs=4, batch=2)]
ids = {"ids": lambda solver: type(solver).__name__}


# ------------------------------------------------------------------------------
# Scaled weights


def test_the_mean_of_moving_weights_is_that_of_their_iterates():
    rng = np.random.default_rng(0)
    moving = ScaledWeights(rng.normal(size=6), [slice(0, 2), slice(2, 6)])
    plain, iterates = moving.current, []
    for step in range(60):
        factors, change = np.array([0.5, 0.9]) ** (step % 3), rng.normal(size=6) * (rng.random(6) < 0.4)
        plain = plain * np.repeat(factors, [2, 4]) - 0.3 * change
        moving.shrink(factors)
        for vector, amounts in moving.moves(-0.3):
            vector += np.repeat(amounts, [2, 4]) * change
        if step == 30:
            plain = plain + 1.0
            moving.replace(moving.current + 1.0)
        moving.count()
        iterates.append(plain)
        np.testing.assert_allclose(moving.current, plain, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(moving.mean, np.mean(iterates, axis=0), rtol=1e-8, atol=1e-10)


def test_weights_that_shrink_to_nothing():
    moving = ScaledWeights(np.ones(3), [slice(0, 3)])
    moving.count()
    moving.shrink(np.zeros(1))
    moving.count()
    np.testing.assert_array_equal(moving.current, 0.0)
    np.testing.assert_allclose(moving.mean, 0.5)
    for vector, (amount,) in moving.moves(2.0):
        vector += amount
    np.testing.assert_allclose(moving.current, 2.0)


# ------------------------------------------------------------------------------
# Bundles


def test_bundles_have_one_kind_and_like_lengths():
    rng = np.random.default_rng(0)
    lengths, kinds = rng.integers(1, 30, size=101), rng.random(101) < 0.6
    cuts = bundled(lengths, rng.permutation(101), 8, kinds)
    assert sorted(np.concatenate(cuts).tolist()) == list(range(101))
    assert all(len(set(kinds[which])) == 1 and which.size <= 8 for which in cuts)
    assert sum(which.size < 8 for which in cuts) <= 2
    assert np.mean([np.ptp(lengths[which]) for which in cuts]) < 4


@pytest.mark.parametrize("hidden", [0.0, 0.5], ids=["full", "partial"])
@pytest.mark.parametrize("kind", ["strings", "dicts", "dense"])
@pytest.mark.parametrize("depth", PLACES)
def test_bundles_sum_to_the_whole(depth, kind, hidden):
    """Loss and gradient, into two vectors with factors of their own, of weights that have factors too."""
    loss, w = build(depth, list(blocks_of(*PLACES[depth]).values()), kind, hidden, margin=0.3)
    rng = np.random.default_rng(3)
    scale, one, other = rng.uniform(0.5, 2.0, size=(3, len(loss.groups)))
    sizes = [group.stop - group.start for group in loss.groups]
    for name in ("loss", "mistakes"):
        total, first, second = 0.0, np.zeros(w.size), np.zeros(w.size)
        for bundle in loss.bundles(rng.permutation(loss.n_parts), 3):
            value, found = getattr(bundle, name)(w / np.repeat(scale, sizes), scale)
            total += value
            if found is not None:
                bundle.move(found, [(first, one), (second, other)])
        value, gradient = loss(w) if name == "loss" else loss.mistakes(w, np.arange(loss.n_parts))
        np.testing.assert_allclose(total, value, rtol=1e-9)
        np.testing.assert_allclose(first, np.repeat(one, sizes) * gradient, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(second, np.repeat(other, sizes) * gradient, rtol=1e-8, atol=1e-9)


class WithoutBlocks:
    """A loss whose bundles change all weights in each step; each weight is a group."""

    def __init__(self, loss):
        self.loss, self.size, self.n_parts = loss, loss.size, loss.n_parts
        self.groups = [slice(k, k + 1) for k in range(loss.size)]

    def __call__(self, weights):
        return self.loss(weights)

    def mistakes(self, weights, which):
        return self.loss.mistakes(weights, which)

    def bundles(self, order, size):
        cuts = bundled(np.diff(self.loss.observations.offsets), order, size, self.loss.complete)
        return [epochs.PlainBatch(self.loss, which, self.groups) for which in cuts]


@pytest.mark.parametrize("solver", [SGD(epochs=3, rate=0.2, batch=3), Perceptron(epochs=3, batch=3)], **ids)
@pytest.mark.parametrize("name", BLOCKS)
def test_sparse_steps_are_plain_steps(solver, name):
    """The same run with bundles without blocks; L2 differs from block to block."""
    loss, w = build(3, [blocks_of(*PLACES[3])[name], Token("c")], "dicts", hidden=0.3)
    c2 = np.repeat([0.5, 0.1], [group.stop - group.start for group in loss.groups])
    found = solver.minimize(loss, w, c2=c2, random_state=0)

    other = solver.minimize(WithoutBlocks(loss), w, c2=c2, random_state=0)
    np.testing.assert_allclose(found.weights, other.weights, rtol=1e-8, atol=1e-9)
    for one, two in zip(found.history, other.history, strict=True):
        assert one["loss"] == pytest.approx(two["loss"], rel=1e-9)
        assert one["gradient_norm"] == pytest.approx(two["gradient_norm"], rel=1e-7)


def test_penalties_that_differ_within_a_block():
    loss, w = build(2, [Token("c")], hidden=0.0)
    c2 = np.linspace(0.1, 3.0, w.size)
    best = LBFGS(tol=1e-8, delta=0).minimize(loss, w, c2=c2)
    found = SGD(epochs=400, delta=0).minimize(loss, w, c2=c2, random_state=0)
    assert found.loss == pytest.approx(best.loss, rel=5e-3)


def test_bundles_of_the_same_lengths_share_their_plans():
    X, Y = make_nested(40, (2, 3), length=8, random_state=0)
    model = HSCRF(solver=SGD(epochs=1, batch=4))
    seen = []
    bundles = hscrf.objective.likelihood.Likelihood.bundles

    def noted(self, order, size):
        seen.extend(bundles(self, order, size))
        return seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hscrf.objective.likelihood.Likelihood.bundles", noted)
        model.fit(X, Y)
    assert len(seen) == 10
    assert len({id(bundle.chunk.free) for bundle in seen}) == 1


@pytest.mark.parametrize("solver", SOLVERS, **ids)
def test_contradictions_are_named(solver):
    topology = hscrf.Topology({"c": ["x", "y"]}, successors={"c": {"x": ["y"], "y": ["x"]}})
    X = [[["a"]] * 3] * 4
    Y = [{"c": ["x", "?", "x"]}] * 3 + [{"c": ["x", "x", "?"]}]
    with pytest.raises(hscrf.InfeasibleError, match=r"Y\[3\]"):
        HSCRF(topology, solver=solver, random_state=0).fit(X, Y)


# ------------------------------------------------------------------------------
# Whole fits


def words(X):
    return [[[f"a{row[0]:.0f}", f"b{row[1]:.0f}", f"c{row[2]:.0f}"] for row in x] for x in X]


def partly(Y):
    return [
        {"level1": y.column("level1"), "level2": ["?" if t % 3 else s for t, s in enumerate(y.column("level2"))]}
        for y in Y
    ]


@pytest.fixture(scope="module")
def data():
    X, Y = make_nested(60, (3, 4), length=(8, 20), separation=1.5, random_state=0)
    return words(X), Y


FAMILIES = {
    "nested": (HSCRF, lambda Y: Y, {}),
    "partial": (HSCRF, partly, {}),
    "margin": (HSCRF, lambda Y: Y, {"margin": 0.5}),
    "chain": (ChainCRF, lambda Y: [y.column("level2") for y in Y], {}),
    "semi": (SemiCRF, lambda Y: [y.segments("level1") for y in Y], {}),
    "dynamic": (DynamicCRF, lambda Y: [{d: y.column(d) for d in ("level1", "level2")} for y in Y], {}),
}


@pytest.mark.parametrize(
    ("family", "solver", "c2"),
    [
        *((family, SGD(epochs=20), 0.5) for family in FAMILIES),
        *((family, Perceptron(epochs=20), 0.1) for family in ("nested", "partial", "dynamic")),
    ],
)
def test_every_family_learns_online_as_well_as_by_lbfgs(data, family, solver, c2):
    make, form, options = FAMILIES[family]
    X, Y = data[0][:30], form(data[1][:30])
    options = {"c2": c2, "random_state": 0, **options}
    best, found = (make(solver=own, **options).fit(X, Y) for own in (LBFGS(max_iter=50), solver))
    assert found.score(X, Y) >= best.score(X, Y) - 0.05
    some = replace(solver, epochs=2)
    one, two = (make(solver=some, n_jobs=n, **options).fit(X, Y) for n in (1, 2))
    assert one.coef_.tobytes() == two.coef_.tobytes()
    if isinstance(solver, SGD):
        bound = 1.1 if family == "partial" else 1.05  # the loss of partial labels is not convex
        assert found.loss_ <= bound * best.loss_


@pytest.mark.parametrize("solver", SOLVERS, **ids)
def test_segment_functions_are_evaluated_once(solver):
    X, Y = make_nested(10, (2, 2), length=6, random_state=0)
    seen = []

    def noted(z, start, stop):
        seen.append((id(z), start, stop))
        return [float(z[start:stop].sum())]

    model = HSCRF(features=[Segment("level1", noted), Token("level2"), Trans("level1")], max_duration={"level1": 6})
    model.set_params(solver=solver, random_state=0).fit(X, Y)
    assert len(seen) - 1 == len(set(seen))  # one more call counts the values


# ------------------------------------------------------------------------------
# Going on


@pytest.mark.parametrize("evaluate", [None, lambda weights: -np.abs(weights - 0.2).sum()], ids=["", "development"])
@pytest.mark.parametrize(
    "solver", [SGD(epochs=6), SGD(epochs=6, rate=0.1, average=False), Perceptron(epochs=6, batch=5)], **ids
)
def test_a_run_that_was_cut_short_goes_on_with_the_same_bits(solver, evaluate):
    """Even where the seed is lost: the state remembers it."""
    saved = []
    monitor = Monitor(evaluate, checkpoint=lambda weights, history, *state: saved.append((history, *state)))
    whole = solver.minimize(Logistic(), np.zeros(10), c2=0.3, monitor=monitor, random_state=3)
    calls = Failing(Logistic(), -1, None)
    solver.minimize(calls, np.zeros(10), c2=0.3, monitor=Monitor(evaluate), random_state=3)
    cut = Failing(Logistic(), int(0.85 * calls.calls), KeyboardInterrupt())
    saved.clear()
    solver.minimize(cut, np.zeros(10), c2=0.3, monitor=monitor, random_state=3)
    history, state = saved[-1]
    assert 0 < len(history) < 6
    monitor = Monitor(evaluate, done=len(history), state=state)
    resumed = solver.minimize(Logistic(), np.zeros(10), c2=0.3, monitor=monitor, random_state=None)
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert resumed.loss == whole.loss
    assert resumed.kept == whole.kept
    assert [entry["loss"] for entry in (*history, *resumed.history)] == [entry["loss"] for entry in whole.history]


def test_the_state_of_another_solver_is_not_used():
    saved = []
    monitor = Monitor(checkpoint=lambda weights, history, *state: saved.extend(state))
    cut = Failing(Logistic(), 60, KeyboardInterrupt())
    SGD(epochs=6, batch=8, rate=0.1).minimize(cut, np.zeros(10), monitor=monitor, random_state=0)
    other = SGD(epochs=6, batch=8, rate=0.2)
    fresh = other.minimize(Logistic(), np.zeros(10), random_state=0)
    found = other.minimize(Logistic(), np.zeros(10), monitor=Monitor(state=saved[-1]), random_state=0)
    assert found.weights.tobytes() == fresh.weights.tobytes()


@pytest.mark.parametrize("solver", [SGD(epochs=5), Perceptron(epochs=5)], **ids)
def test_a_fit_that_was_cut_short_goes_on_with_the_same_bits(tmp_path, data, solver):
    X, Y = data
    development = (X[40:], Y[40:])
    options = {"solver": solver, "c2": 0.1}
    whole = HSCRF(**options, random_state=1).fit(X[:40], Y[:40], development=development)
    cut = HSCRF(**options, random_state=1)
    accuracy, calls = cut._accuracy, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return accuracy(*arguments)

    cut._accuracy = interrupted
    cut.fit(X[:40], Y[:40], development=development, checkpoint=tmp_path / "run")
    assert cut.stop_reason_ == "interrupted"
    resumed = HSCRF(**options).fit(X[:40], Y[:40], development=development, checkpoint=tmp_path / "run")
    assert resumed.coef_.tobytes() == whole.coef_.tobytes()
    assert resumed.best_iter_ == whole.best_iter_


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header, arrays: header.update(state=3), "field 'state' is not an object"),
        (lambda header, arrays: arrays.update({"state.base": np.zeros(2)}), "array 'state.base' has 2 numbers"),
    ],
)
def test_states_in_checkpoints_are_checked(tmp_path, data, change, message):
    from hscrf.files.container import read_container, write_container

    X, Y = data[0][:5], data[1][:5]
    model = HSCRF(solver=SGD(epochs=3, rate=0.1), random_state=0)
    model._accuracy = lambda *arguments: (_ for _ in ()).throw(KeyboardInterrupt)
    model.fit(X, Y, development=(X, Y), checkpoint=tmp_path / "run")
    header, arrays = read_container(tmp_path / "run")
    arrays = {name: np.array(array) for name, array in arrays.items()}
    header.setdefault("state", {})
    change(header, arrays)
    write_container(tmp_path / "run", header, arrays)
    with pytest.raises(hscrf.errors.FileFormatError, match=message):
        HSCRF(solver=SGD(epochs=3, rate=0.1)).fit(X, Y, checkpoint=tmp_path / "run")
