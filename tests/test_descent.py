"""L-BFGS from a start at the complete sequences, with one weight for each set of equal ones."""

from functools import partial

import numpy as np
import pytest

from fitting import loss_of
from hscrf import HSCRF, LBFGS, Labels
from hscrf.datasets import make_nested
from hscrf.estimator import descent
from hscrf.estimator.weights import weight_names
from hscrf.objective.ties import Tied, tied_sets
from hscrf.objective.workers import Workers
from hscrf.solvers import Monitor
from hscrf.solvers.course import INTERRUPTED, Result

X, Y = make_nested(10, sizes=(2, 3), length=(8, 14), random_state=0)


def partly(complete):
    """The labels of some sequences, and of all others only the upper level."""
    found = []
    for n, y in enumerate(Y):
        states, ends = y.states.copy(), y.ends.copy()
        if n not in complete:
            states[2], ends[2] = -1, -1
        found.append(Labels(y.topology, states, ends))
    return found


def objective_of(labels, **options):
    return loss_of(HSCRF(**options), X, labels, None, Workers())


def test_the_loss_of_the_complete_sequences():
    whole, weights = objective_of(partly({1, 4, 5}))
    weights = np.random.default_rng(0).normal(size=weights.size)
    found, gradient = whole.of_complete()(weights)
    loss, wanted = whole.part(weights, np.array([1, 4, 5]))
    assert found == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("complete", [set(), set(range(10))], ids=["none", "all"])
def test_nothing_to_start_from(complete):
    whole, weights = objective_of(partly(complete))
    assert whole.of_complete() is None
    zeros, options = np.zeros(weights.size), LBFGS(max_iter=3)
    found = descent.descend(options, whole, zeros, 0.0, 1.0, Monitor())
    assert np.array_equal(found.weights, options.minimize(whole, zeros, 0.0, 1.0).weights)


def test_the_start_is_the_fit_of_the_complete_sequences():
    """Features that do not occur in the complete sequences keep zero weights."""
    words = [[{f"{n}": 1.0, "bias": 1.0} for _ in x] for n, x in enumerate(X)]
    whole, weights = loss_of(HSCRF(), words, partly({1, 4, 5}), None, Workers())
    c2 = np.linspace(0.5, 1.0, weights.size)
    found = descent.learned_from(whole.of_complete(), weights, LBFGS(max_iter=500, delta=0.0), 0.0, c2)
    best = LBFGS(max_iter=descent.START).minimize(whole.of_complete(), weights, 0.0, c2)
    complete = whole.of_complete()
    assert complete(found)[0] + c2 @ found**2 == pytest.approx(best.loss, rel=1e-4)
    untouched = complete(np.ones(weights.size))[1] == 0
    assert 0 < untouched.sum() < weights.size
    assert not found[untouched].any()


def test_given_weights_start_where_they_are():
    whole, weights = objective_of(partly({1, 4, 5}))
    own = np.full(weights.size, 0.1)
    options = LBFGS(max_iter=2)
    found = descent.descend(options, whole, own, 0.0, 1.0, Monitor(), own_rule=True)
    assert np.array_equal(found.weights, options.minimize(whole, own, 0.0, 1.0).weights)


def test_the_default_solver_ends_earlier_on_partial_labels():
    labels = partly({1, 4, 5})
    default, own = HSCRF(solver=LBFGS()).fit(X, labels), HSCRF(solver=LBFGS(delta=1e-3)).fit(X, labels)
    assert default.n_iter_ < own.n_iter_
    assert np.array_equal(HSCRF().fit(X, Y).coef_, HSCRF(solver=LBFGS(delta=1e-3)).fit(X, Y).coef_)


def test_it_ends_earlier_without_any_complete_sequence():
    halves = []
    for y in Y:
        states, ends = y.states.copy(), y.ends.copy()
        states[1:, ::2], ends[1:, ::2] = -1, -1
        halves.append(Labels(y.topology, states, ends))
    default, own = HSCRF().fit(X, halves), HSCRF(solver=LBFGS(delta=1e-3)).fit(X, halves)
    assert default.n_iter_ < own.n_iter_


def test_a_level_without_labels_is_learned_as_long_as_others():
    topology, labels = Y[0].topology, partly(set())
    default, own = (
        HSCRF(topology, solver=solver, random_state=0).fit(X, labels) for solver in ("lbfgs", LBFGS(delta=1e-3))
    )
    assert np.array_equal(default.coef_, own.coef_)


def test_a_fit_starts_there(monkeypatch):
    labels = partly({1, 4, 5})
    model = HSCRF(solver=LBFGS(max_iter=1)).fit(X, labels)
    monkeypatch.setattr(descent, "learned_from", lambda complete, weights, *_: weights)
    plain = HSCRF(solver=LBFGS(max_iter=1)).fit(X, labels)
    assert model.history_[0]["loss"] < plain.history_[0]["loss"]
    assert model.n_iter_ == plain.n_iter_ == 1


def test_any_number_of_threads_gives_the_same_bits():
    one, two = (HSCRF(n_jobs=n, solver=LBFGS(max_iter=5)).fit(X, partly({1, 4, 5})) for n in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)


def test_ctrl_c_at_the_start_leaves_the_model_unchanged(monkeypatch):
    def interrupted(solver, objective, weights, *rest):
        return Result(weights, 1.0, False, 0, INTERRUPTED, [])

    monkeypatch.setattr(LBFGS, "minimize", interrupted)
    model = HSCRF()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, partly({1}))
    assert not hasattr(model, "coef_")


# -- weights that stay equal -------------------------------------------------------------------------------------------

NUMBERS = [(np.abs(10 * x[:, 0]).astype(int) % 7).tolist() for x in X]
WORDS = [[[f"a{n}", f"b{n}", f"c{n}", "every"] for n in some] for some in NUMBERS]  # a, b and c are the same feature
MANY = [[[f"{k}={n}" for k in range(400)] for n in some] for some in NUMBERS]  # enough weights: equal ones are tied


def test_features_of_the_same_steps_share_a_set():
    model = HSCRF()
    whole, _ = loss_of(model, WORDS, partly({1, 4, 5}), None, Workers())
    names = [name for block in model.blocks_ for name in weight_names(block, model.encoder_, model.topology_)]
    kinds = [(kind, str(feature).lstrip("abc"), *rest) for kind, feature, *rest in names]
    sets = tied_sets(whole).tolist()
    assert len(set(zip(kinds, sets, strict=True))) == len(set(kinds)) == len(set(sets)) < len(names)
    assert sorted(set(sets)) == list(range(len(set(sets))))


def test_a_tied_loss_is_the_loss_of_all_weights():
    whole, weights = loss_of(HSCRF(), WORDS, partly({1, 4, 5}), None, Workers())
    tied = Tied(whole, tied_sets(whole))
    some = np.random.default_rng(0).normal(size=tied.size)
    weights = tied.whole(some)
    loss, gradient = tied(some)
    assert loss == whole(weights)[0]
    np.testing.assert_allclose(tied.whole(gradient), whole(weights)[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(tied.joined(weights), some, rtol=1e-12)
    assert weights @ weights == pytest.approx(some @ some, rel=1e-12)
    c1 = np.where(np.arange(weights.size) < whole.groups[0].stop, 0.3, 0.7)  # another penalty for the first block
    assert c1 @ np.abs(weights) == pytest.approx(tied.penalty(c1, 1.0) @ np.abs(some), rel=1e-12)
    assert c1 @ weights**2 == pytest.approx(tied.penalty(c1, 0.0) @ some**2, rel=1e-12)
    assert np.sum(0.3 * np.abs(weights)) == pytest.approx(np.sum(tied.penalty(0.3, 1.0) * np.abs(some)), rel=1e-12)


@pytest.mark.parametrize("c1", [0.0, 0.05])
@pytest.mark.parametrize("complete", [{1, 4, 5}, set(range(10))], ids=["some", "all"])
def test_ties_do_not_change_a_fit(c1, complete):
    whole, weights = loss_of(HSCRF(), WORDS, partly(complete), None, Workers())
    monitor = Monitor(evaluate=lambda found: -whole(found)[0], patience=50)
    run = partial(descent.descend, LBFGS(max_iter=12), whole, weights, c1, 0.1, monitor)
    one, two = run(many=weights.size + 1), run(many=weights.size)
    np.testing.assert_allclose(two.weights, one.weights, rtol=1e-6, atol=1e-7)
    for entry, other in zip(one.history, two.history, strict=True):
        assert (other["loss"], other["score"]) == pytest.approx((entry["loss"], entry["score"]), rel=1e-9)


def test_checkpoints_hold_all_weights(tmp_path):
    file, options = tmp_path / "run.npz", {"checkpoint": tmp_path / "run.npz"}
    first = HSCRF(solver=LBFGS(max_iter=3)).fit(MANY, partly({1, 4, 5}), **options)
    assert file.exists()
    assert first.coef_.size > descent.MANY
    second = HSCRF(solver=LBFGS(max_iter=3)).fit(MANY, partly({1, 4, 5}), **options)
    assert second.coef_.shape == first.coef_.shape
    assert second.loss_ < first.loss_


def test_weights_that_differ_are_not_tied():
    whole, weights = loss_of(HSCRF(), WORDS, partly({1, 4, 5}), None, Workers())
    assert descent.ties_of(whole, weights) is not None
    assert descent.ties_of(whole, np.arange(weights.size, dtype=float)) is None
