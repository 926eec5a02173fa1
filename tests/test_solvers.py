"""Solvers on objectives whose optimum is known otherwise."""

import copy
import dataclasses
import io
import tracemalloc
from collections import deque

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression

import hscrf
from hscrf.arrays import generator
from hscrf.datasets.nested import make_nested
from hscrf.errors import FileFormatError
from hscrf.files.container import read_container, write_container
from hscrf.solvers.choice import dump_solver, solver_of
from hscrf.solvers.course import Monitor
from hscrf.solvers.lbfgs import LBFGS, _times_inverse_hessian
from hscrf.solvers.perceptron import Perceptron
from hscrf.solvers.sgd import SGD

EXACT = LBFGS(tol=1e-9, delta=0.0)
SKLEARN_L1 = {"l1_ratio": 1} if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8) else {"penalty": "l1"}


class Quadratic:
    """Half a squared distance under a full matrix; each row is a part."""

    def __init__(self, n=6, seed=0):
        rng = np.random.default_rng(seed)
        self.rows, self.target = rng.normal(size=(3 * n, n)), rng.normal(size=n)
        self.size, self.n_parts = n, 3 * n

    def __call__(self, weights):
        return self.part(weights, np.arange(self.n_parts))

    def part(self, weights, which):
        away = self.rows[which] @ (weights - self.target)
        return 0.5 * away @ away, self.rows[which].T @ away


class Logistic:
    """Logistic regression without intercept; y is -1 or 1."""

    def __init__(self, n=200, size=10, seed=0, gap=0.0):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=size) * (np.arange(size) % 2)
        self.x = rng.normal(size=(n, size))
        margin = self.x @ truth
        self.y = np.sign(margin) if gap else np.where(rng.random(n) < 1 / (1 + np.exp(-margin)), 1.0, -1.0)
        keep = np.abs(margin) >= gap
        self.x, self.y = self.x[keep], self.y[keep]
        self.size, self.n_parts, self.calls = size, int(keep.sum()), 0

    def __call__(self, weights):
        self.calls += 1
        return self.part(weights, np.arange(self.n_parts))

    def part(self, weights, which):
        x, y = self.x[which], self.y[which]
        margin = y * (x @ weights)
        return np.logaddexp(0, -margin).sum(), -x.T @ (y / (1 + np.exp(margin)))

    def mistakes(self, weights, which):
        x, y = self.x[which], self.y[which]
        wrong = y * (x @ weights) <= 0
        return 2 * np.abs(x[wrong] @ weights).sum(), -2 * x[wrong].T @ y[wrong]


class Failing:
    """Another objective that raises, or returns something else, at one of its calls."""

    def __init__(self, objective, at, outcome):
        self.objective, self.at, self.outcome, self.calls = objective, at, outcome, 0
        self.size, self.n_parts, self.seen = objective.size, objective.n_parts, []

    def count(self, weights, value):
        self.calls += 1
        if self.calls == self.at:
            if isinstance(self.outcome, BaseException):
                raise self.outcome
            return self.outcome, value[1]
        self.seen.append((value[0], weights.copy()))
        return value

    def __call__(self, weights):
        return self.count(weights, self.objective(weights))

    def part(self, weights, which):
        return self.count(weights, self.objective.part(weights, which))

    def mistakes(self, weights, which):
        return self.count(weights, self.objective.mistakes(weights, which))


def penalised(objective, weights, c1, c2):
    return objective(weights)[0] + c1 * np.abs(weights).sum() + c2 * weights @ weights


# ------------------------------------------------------------------------------
# The optimum


class Banana:
    """Rosenbrock's function: a bent valley, in which line searches must shorten or lengthen steps."""

    size, calls = 8, 0

    def __call__(self, weights):
        self.calls += 1
        x, y = weights[:-1], weights[1:]
        gradient = np.zeros(self.size)
        gradient[:-1] = -400 * x * (y - x * x) - 2 * (1 - x)
        gradient[1:] += 200 * (y - x * x)
        return float((100 * (y - x * x) ** 2 + (1 - x) ** 2).sum()), gradient


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_bent_valley(size):
    """Whatever the scale, with little more than one evaluation for each step."""

    class Scaled(Banana):
        def __call__(self, weights):
            loss, gradient = super().__call__(weights)
            return size * loss, size * gradient

    objective = Scaled()
    result = LBFGS(tol=1e-9 * size, delta=0.0).minimize(objective, np.zeros(8))
    np.testing.assert_allclose(result.weights, np.ones(8), rtol=0, atol=1e-8)
    assert result.converged
    assert objective.calls < 1.5 * result.n_iter


def test_quadratic():
    objective = Quadratic()
    result = EXACT.minimize(objective, np.zeros(6))
    np.testing.assert_allclose(result.weights, objective.target, atol=1e-7)
    assert result.converged
    assert result.n_iter == len(result.history) > 0


@pytest.mark.parametrize("c2", [0.01, 1.0, 30.0])
def test_l2_agrees_with_sklearn(c2):
    objective = Logistic()
    result = EXACT.minimize(objective, np.zeros(10), c2=c2)
    other = LogisticRegression(C=1 / (2 * c2), fit_intercept=False, tol=1e-10, max_iter=10_000)
    np.testing.assert_allclose(result.weights, other.fit(objective.x, objective.y).coef_[0], atol=1e-5)
    assert result.loss == pytest.approx(penalised(objective, result.weights, 0, c2), rel=1e-12)


@pytest.mark.parametrize("c1", [0.1, 5.0, 20.0])
def test_l1_agrees_with_sklearn(c1):
    objective = Logistic()
    result = EXACT.minimize(objective, np.zeros(10), c1=c1)
    other = LogisticRegression(
        **SKLEARN_L1, C=1 / c1, solver="liblinear", fit_intercept=False, tol=1e-10, max_iter=10_000
    ).fit(objective.x, objective.y)
    np.testing.assert_allclose(result.weights, other.coef_[0], atol=1e-4)
    np.testing.assert_array_equal(result.weights == 0, other.coef_[0] == 0)
    assert result.loss == pytest.approx(penalised(objective, result.weights, c1, 0), rel=1e-12)


@pytest.mark.parametrize("start", [0.0, 1.0, -3.0])
def test_elastic_net_meets_the_optimality_conditions(start):
    objective = Logistic(size=40)
    result = EXACT.minimize(objective, np.full(40, start), c1=4.0, c2=0.5)
    slope = objective(result.weights)[1] + 2 * 0.5 * result.weights
    held = result.weights == 0
    assert 0 < held.sum() < 40
    assert (np.abs(slope[held]) <= 4.0 + 1e-6).all()
    np.testing.assert_allclose(slope[~held], -4.0 * np.sign(result.weights[~held]), atol=1e-4)


@pytest.mark.parametrize(("c1", "c2"), [(0.0, 1.0), (2.0, 0.0), (2.0, 0.5)])
def test_a_penalty_for_each_weight_is_the_same_as_other_units(c1, c2):
    """u c1 |w| + u^2 c2 w^2 is c1 |v| + c2 v^2 of v = u w."""
    objective, scaled, unit = Logistic(), Logistic(), np.where(np.arange(10) < 5, 3.0, 1.0)
    scaled.x = scaled.x / unit
    best = EXACT.minimize(scaled, np.zeros(10), c1, c2)
    result = EXACT.minimize(objective, np.zeros(10), c1 * unit, c2 * unit**2)
    np.testing.assert_allclose(result.weights, best.weights / unit, atol=1e-5)
    assert result.loss == pytest.approx(best.loss, rel=1e-9)
    close = SGD(epochs=60).minimize(objective, np.zeros(10), c1 * unit, c2 * unit**2, random_state=0)
    assert close.loss == pytest.approx(best.loss, rel=2e-3)
    with pytest.raises(ValueError, match=r"c2 is .*-0.5.*, expected a finite number"):
        LBFGS().minimize(objective, np.zeros(10), c2=-0.5 * unit)


def test_a_large_l1_penalty_leaves_nothing():
    result = LBFGS().minimize(Logistic(), np.ones(10), c1=1e4)
    np.testing.assert_array_equal(result.weights, 0)
    assert result.converged


def test_loss_goes_down_in_every_iteration():
    for c1 in (0.0, 2.0):
        losses = [entry["loss"] for entry in EXACT.minimize(Logistic(), np.zeros(10), c1=c1).history]
        assert (np.diff(losses) <= 0).all()


def test_a_warm_start_has_little_to_do():
    first = LBFGS().minimize(Logistic(), np.zeros(10), c2=1.0)
    again = LBFGS().minimize(Logistic(), first.weights, c2=1.0)
    assert again.n_iter < first.n_iter
    assert again.loss <= first.loss


def test_memory_of_one_still_converges():
    objective = Quadratic()
    for c1 in (0.0, 1e-12):
        result = LBFGS(memory=1, tol=1e-8, delta=0).minimize(objective, np.zeros(6), c1=c1)
        np.testing.assert_allclose(result.weights, objective.target, atol=1e-6)


@pytest.mark.parametrize("scaled", [False, True])
def test_the_two_loops_multiply_by_the_matrix_of_bfgs(scaled):
    """The update of the inverse Hessian as a dense matrix (Nocedal and Wright 2006, equation 7.16)."""
    rng, size = np.random.default_rng(0), 7
    hessian = np.diag(rng.uniform(1, 9, size=size))
    steps = rng.normal(size=(3, size))
    pairs = deque((step, hessian @ step, float(step @ hessian @ step)) for step in steps)
    scales = rng.uniform(0.1, 5, size=size) if scaled else None
    _, change, product = pairs[-1]
    diagonal = np.ones(size) if scales is None else scales
    inverse = np.diag(diagonal) * product / (change @ (diagonal * change))
    for step, change, product in pairs:
        turn = np.eye(size) - np.outer(change, step) / product
        inverse = turn.T @ inverse @ turn + np.outer(step, step) / product
    vector = rng.normal(size=size)
    np.testing.assert_allclose(_times_inverse_hessian(vector, pairs, scales), inverse @ vector, rtol=1e-10)


def test_unequal_penalties_are_no_obstacle():
    """Penalties that differ a thousandfold, one of them 0, and data that say little: without scales it takes 168
    iterations."""
    problem, c2 = Quadratic(20), np.geomspace(0.1, 100, 20)
    problem.rows *= 0.05
    c2[3] = 0.0
    result = EXACT.minimize(problem, np.zeros(20), c2=c2)
    matrix = problem.rows.T @ problem.rows
    best = np.linalg.solve(matrix + 2 * np.diag(c2), matrix @ problem.target)
    np.testing.assert_allclose(result.weights, best, rtol=1e-5, atol=1e-8)
    assert result.n_iter < 60


def test_frequencies_are_no_obstacle():
    """Weights of rare and frequent features: without scales it takes more than 1,000 iterations."""
    problem = Quadratic(20)
    problem.rows *= np.geomspace(0.1, 10, 20)
    problem.frequencies = lambda: (problem.rows**2).sum(axis=0)
    result = EXACT.minimize(problem, np.zeros(20), c2=0.01)
    matrix = problem.rows.T @ problem.rows
    best = np.linalg.solve(matrix + 0.02 * np.eye(20), matrix @ problem.target)
    np.testing.assert_allclose(result.weights, best, rtol=1e-5, atol=1e-5)
    assert result.n_iter < 700


def test_lbfgs_keeps_no_vectors_but_its_memory_and_those_at_work():
    """Besides the pairs: weights and gradient, the direction, and the next weights; not those of the start."""
    held = []

    class Valley:
        size = 100_000
        steep = np.linspace(1.0, 50.0, size)

        def __call__(self, weights):
            held.append(tracemalloc.get_traced_memory()[0])
            return 0.5 * float(weights @ (self.steep * weights)), self.steep * weights

    given = np.ones(Valley.size)
    LBFGS(max_iter=3).minimize(Valley(), given)  # loads what it needs
    tracemalloc.start()
    try:
        LBFGS(memory=2, max_iter=8).minimize(Valley(), given)
    finally:
        tracemalloc.stop()
    assert max(held) / given.nbytes < 2 * 2 + 4.5


@pytest.mark.parametrize(("c1", "c2"), [(0.0, 1.0), (0.0, 0.0), (0.0, 30.0), (5.0, 0.5)])
def test_sgd_comes_close(c1, c2):
    objective = Logistic()
    best = EXACT.minimize(objective, np.zeros(10), c1=c1, c2=c2)
    result = SGD(epochs=60).minimize(objective, np.zeros(10), c1=c1, c2=c2, random_state=0)
    assert result.loss == pytest.approx(best.loss, rel=2e-3)
    assert result.loss == pytest.approx(penalised(objective, result.weights, c1, c2), rel=1e-12)
    np.testing.assert_allclose(result.weights, best.weights, atol=0.15)


def test_averaging_beats_the_last_iterate():
    objective = Logistic(n=1000)
    losses = [
        SGD(epochs=4, batch=1, rate=0.5, decay=0.0, average=average)
        .minimize(objective, np.zeros(10), random_state=0)
        .loss
        for average in (True, False)
    ]
    assert losses[0] < losses[1]


def test_l1_makes_sgd_sparse():
    result = SGD().minimize(Logistic(), np.zeros(10), c1=20.0, random_state=0)
    assert 0 < (result.weights == 0).sum() < 10


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_calibration_finds_a_rate_at_any_scale(scale):
    objective = Logistic()
    objective.x *= scale
    start = objective(np.zeros(10))[0]
    result = SGD(epochs=10).minimize(objective, np.zeros(10), random_state=0)
    assert result.loss < 0.8 * start


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_sgd_of_few_epochs(epochs):
    objective = Logistic()
    result = SGD(epochs=epochs).minimize(objective, np.zeros(10), random_state=0)
    assert result.n_iter == epochs
    assert result.loss < objective(np.zeros(10))[0]


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("batch", [1, 7])
def test_perceptron_on_separable_data(average, batch):
    objective = Logistic(gap=0.5)
    solver = Perceptron(epochs=200, batch=batch, average=average)
    result = solver.minimize(objective, np.zeros(10), random_state=0)
    assert result.converged
    assert result.reason == "an epoch without mistakes"
    assert result.n_iter < 200
    accuracy = (np.sign(objective.x @ result.weights) == objective.y).mean()
    assert accuracy > 0.97 if average else accuracy == 1.0


def test_the_perceptron_average_is_the_mean_of_its_iterates():
    objective = Failing(Logistic(n=30), at=-1, outcome=None)
    result = Perceptron(epochs=1).minimize(objective, np.zeros(10), random_state=0)
    iterates = [weights for _, weights in objective.seen[1:30]]  # as seen by the next part
    last = Perceptron(epochs=1, average=False).minimize(Logistic(n=30), np.zeros(10), random_state=0).weights
    np.testing.assert_allclose(result.weights, np.mean([*iterates, last], axis=0), atol=1e-12)


def test_the_perceptron_runs_out_of_epochs_and_knows_no_penalties():
    result = Perceptron(epochs=3).minimize(Logistic(), np.zeros(10), random_state=0)
    assert (result.converged, result.n_iter, result.reason) == (False, 3, "all 3 epochs done")
    same = Perceptron(epochs=3).minimize(Logistic(), np.zeros(10), c1=1.0, c2=1.0, random_state=0)
    np.testing.assert_array_equal(same.weights, result.weights)


# ------------------------------------------------------------------------------
# Repetition


@pytest.mark.parametrize("solver", [LBFGS(), SGD(epochs=3), Perceptron(epochs=3)], ids=lambda s: type(s).__name__)
def test_the_same_seed_gives_the_same_bits(solver):
    first, second = (solver.minimize(Logistic(), np.zeros(10), random_state=7) for _ in range(2))
    assert first.weights.tobytes() == second.weights.tobytes()
    assert first.loss == second.loss


def test_one_function_reads_every_kind_of_seed():
    """A seed and a generator of that seed give the same stream, a RandomState one of its own."""
    going = np.random.default_rng(7)
    assert generator(going) is going
    assert generator(7).random() == going.random()
    seed = np.random.RandomState(7).randint(2**31 - 1)
    assert generator(np.random.RandomState(7)).random() == np.random.default_rng(seed).random()
    assert generator(None).random() != generator(None).random()


def test_models_and_data_read_seeds_as_solvers_do(short_model):
    model, X = short_model
    seeds = [lambda: 7, lambda: np.random.default_rng(7), lambda: np.random.RandomState(7)]
    seeds.append(lambda: generator(np.random.RandomState(7)))
    drawn = [
        [(y.states.tobytes(), y.ends.tobytes()) for y in model.sample(X[:1], 20, random_state=seed())[0]]
        for seed in seeds
    ]
    tables = [make_nested(1, length=30, random_state=seed())[0][0].tobytes() for seed in seeds]
    for found in (drawn, tables):
        assert found[0] == found[1] != found[2] == found[3]


def test_seeds_of_every_kind():
    states = (7, np.random.default_rng(7), np.random.RandomState(7), None)
    one, two, three, _ = (SGD(epochs=2).minimize(Logistic(), np.zeros(10), random_state=s).weights for s in states)
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, three)


@pytest.mark.parametrize("solver", [LBFGS(), SGD(epochs=2), Perceptron(epochs=2)], ids=lambda s: type(s).__name__)
def test_the_start_is_left_as_it_was(solver):
    start = np.ones(10)
    result = solver.minimize(Logistic(), start, random_state=0)
    np.testing.assert_array_equal(start, 1.0)
    assert result.weights is not start


def test_an_objective_may_reuse_its_gradient():
    class Reusing(Quadratic):
        buffer = np.zeros(6)

        def part(self, weights, which):
            loss, self.buffer[:] = super().part(weights, which)
            return loss, self.buffer

    for c1 in (0.0, 0.5):
        plain = EXACT.minimize(Quadratic(), np.zeros(6), c1=c1)
        reusing = EXACT.minimize(Reusing(), np.zeros(6), c1=c1)
        np.testing.assert_array_equal(plain.weights, reusing.weights)


# ------------------------------------------------------------------------------
# Reasons to stop


def test_reasons_of_lbfgs():
    for c1 in (0.0, 1.0):
        limited = LBFGS(max_iter=3).minimize(Logistic(), np.zeros(10), c1=c1)
        assert (limited.converged, limited.n_iter, limited.reason) == (False, 3, "max_iter=3 iterations done")
        flat = LBFGS(tol=1e-3, delta=0).minimize(Logistic(), np.zeros(10), c1=c1)
        assert flat.converged
        assert flat.reason == "no entry of the gradient exceeds tol=0.001"
        slow = LBFGS(tol=0, delta=0.1, period=2).minimize(Logistic(), np.zeros(10), c1=c1)
        assert slow.converged
        assert slow.reason == "the loss improved by less than delta=0.1 over 2 iterations"
        losses = [entry["loss"] for entry in slow.history]
        assert losses[-3] - losses[-1] <= 0.1 * losses[-1]


def test_the_gradient_norm_of_the_history_is_that_of_the_penalised_loss():
    objective = Logistic()
    result = LBFGS(max_iter=4).minimize(objective, np.zeros(10), c2=1.0)
    gradient = objective(result.weights)[1] + 2 * result.weights
    assert result.history[-1]["gradient_norm"] == pytest.approx(np.linalg.norm(gradient))
    assert result.history[-1]["loss"] == result.loss
    assert list(result.history[-1]) == ["iteration", "loss", "gradient_norm", "seconds", "score"]


@pytest.mark.parametrize("c1", [0.0, 1.0])
def test_nothing_to_do(c1):
    class Flat(Quadratic):
        def __call__(self, weights):
            return 0.0, np.zeros(6)

    result = LBFGS().minimize(Flat(), np.zeros(6), c1=c1)
    assert (result.converged, result.n_iter, result.history) == (True, 0, [])


@pytest.mark.parametrize("c1", [0.0, 1.0])
def test_the_limit_of_rounding_is_no_error(c1):
    result = LBFGS(tol=0, delta=0, period=10_000, max_iter=10_000).minimize(Logistic(), np.zeros(10), c1=c1, c2=0.1)
    assert result.converged
    assert "the line search found no lower loss" in result.reason
    best = EXACT.minimize(Logistic(), np.zeros(10), c1=c1, c2=0.1)
    assert result.loss == pytest.approx(best.loss, rel=1e-10)


@pytest.mark.parametrize("c1", [0.0, 1.0])
def test_a_wrong_gradient_is_not_called_converged(c1):
    class Uphill(Quadratic):
        def __call__(self, weights):
            loss, gradient = super().__call__(weights)
            return loss, -100 * gradient

    result = LBFGS().minimize(Uphill(), np.zeros(6), c1=c1)
    assert not result.converged
    assert "the line search found no lower loss" in result.reason


def test_sgd_stops_when_the_loss_stands_still():
    result = SGD(epochs=100, delta=0.05).minimize(Logistic(), np.zeros(10), c2=1.0, random_state=0)
    assert result.converged
    assert result.n_iter < 100
    assert result.reason == "the loss changed by less than delta=0.05 in an epoch"


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("c1", [0.0, 1.0])
def test_a_loss_that_is_no_number_is_an_error(value, c1):
    with pytest.raises(ValueError, match=rf"the loss is {value} in iteration \d"):
        LBFGS().minimize(Failing(Logistic(), 4, value), np.zeros(10), c1=c1)
    with pytest.raises(ValueError, match="in iteration 0"):
        LBFGS().minimize(Failing(Logistic(), 1, value), np.zeros(10), c1=c1)


@pytest.mark.parametrize("solver", [SGD(rate=0.1, batch=8), Perceptron(batch=1)], ids=lambda s: type(s).__name__)
def test_a_batch_that_is_no_number_is_an_error(solver):
    at = 2 * -(-200 // solver.batch)  # the last batch of the second epoch
    with pytest.raises(ValueError, match="the loss is nan in iteration 2"):
        solver.minimize(Failing(Logistic(), at, np.nan), np.zeros(10), random_state=0)


def test_a_gradient_that_is_no_number_is_an_error():
    class Broken(Quadratic):
        def __call__(self, weights):
            return 1.0, np.full(6, np.nan)

    with pytest.raises(ValueError, match="the gradient is not finite in iteration 0"):
        LBFGS().minimize(Broken(), np.zeros(6))


# ------------------------------------------------------------------------------
# Ctrl-C


@pytest.mark.parametrize("c1", [0.0, 1.0])
def test_ctrl_c_keeps_the_best_so_far(c1):
    objective = Failing(Logistic(), 5, KeyboardInterrupt())
    result = LBFGS().minimize(objective, np.zeros(10), c1=c1)
    assert (result.converged, result.reason) == (False, "interrupted")
    losses = [penalised(Logistic(), weights, c1, 0) for _, weights in objective.seen]
    assert len(losses) == 4
    assert result.loss == pytest.approx(min(losses))
    np.testing.assert_array_equal(result.weights, objective.seen[int(np.argmin(losses))][1])


@pytest.mark.parametrize("c1", [0.0, 1.0])
def test_ctrl_c_after_a_step_too_long_keeps_the_better_one(c1):
    class Valley(Quadratic):  # almost straight walls: steps from there overshoot
        def __call__(self, weights):
            away = 5 * (weights - 10 - np.arange(6))
            return np.logaddexp(away, -away).sum(), 5 * np.tanh(away)

    wasted = 0
    for at in range(2, 12):
        objective = Failing(Valley(), at, KeyboardInterrupt())
        result = LBFGS().minimize(objective, np.full(6, 20.0), c1=c1)
        losses = [loss + c1 * np.abs(weights).sum() for loss, weights in objective.seen]
        assert result.loss == pytest.approx(min(losses))
        wasted += min(losses) < losses[-1]
    assert wasted


@pytest.mark.parametrize(
    "solver", [LBFGS(), SGD(rate=0.1, batch=8), Perceptron(batch=1)], ids=lambda s: type(s).__name__
)
def test_ctrl_c_at_once_returns_the_start(solver):
    result = solver.minimize(Failing(Logistic(), 1, KeyboardInterrupt()), np.ones(10), random_state=0)
    np.testing.assert_array_equal(result.weights, 1.0)
    assert np.isnan(result.loss)
    assert (result.n_iter, result.reason) == (0, "interrupted")


@pytest.mark.parametrize("solver", [SGD(rate=0.1, batch=8), Perceptron(batch=1)], ids=lambda s: type(s).__name__)
def test_ctrl_c_in_the_middle_of_an_epoch_keeps_what_was_learned(solver):
    for at in (160 // solver.batch, 300 // solver.batch):
        objective = Failing(Logistic(), at, KeyboardInterrupt())
        result = solver.minimize(objective, np.zeros(10), random_state=0)
        assert result.reason == "interrupted"
        assert (np.sign(Logistic().x @ result.weights) == Logistic().y).mean() > 0.65


def test_ctrl_c_during_calibration_and_during_the_last_evaluation():
    early = SGD().minimize(Failing(Logistic(), 3, KeyboardInterrupt()), np.zeros(10), random_state=0)
    np.testing.assert_array_equal(early.weights, 0.0)
    late = SGD(rate=0.1, epochs=1, batch=8).minimize(
        Failing(Logistic(), 26, KeyboardInterrupt()), np.zeros(10), random_state=0
    )
    assert (late.n_iter, late.converged, late.reason) == (1, False, "interrupted")
    assert np.isfinite(late.loss)


def test_ctrl_c_in_the_monitor():
    def evaluate(weights):
        scores.append(-np.abs(weights - 1).sum())
        if len(scores) == 4:
            raise KeyboardInterrupt
        seen.append(weights.copy())
        return scores[-1]

    scores, seen = [], []
    result = LBFGS().minimize(Logistic(), np.zeros(10), monitor=Monitor(evaluate=evaluate))
    assert result.reason == "interrupted"
    assert result.n_iter == 4
    np.testing.assert_array_equal(result.weights, seen[int(np.argmax(scores[:3]))])


# ------------------------------------------------------------------------------
# The monitor


def scripted(scores):
    """An evaluation that ignores the weights and remembers them."""
    seen = []

    def evaluate(weights):
        seen.append(weights.copy())
        return scores[len(seen) - 1]

    return evaluate, seen


@pytest.mark.parametrize(
    "solver",
    [EXACT, SGD(epochs=50, delta=0), Perceptron(epochs=50)],
    ids=lambda s: type(s).__name__,
)
def test_early_stopping_returns_the_best(solver):
    evaluate, seen = scripted([0.1, 0.5, 0.9, 0.8, 0.9, np.nan, 1.0])
    result = solver.minimize(Logistic(), np.zeros(10), monitor=Monitor(evaluate=evaluate, patience=3), random_state=0)
    assert result.n_iter == 6
    assert result.converged
    assert result.reason == "no improvement on the development set for 3 evaluations"
    np.testing.assert_array_equal(result.weights, seen[2])
    assert [entry["score"] for entry in result.history[:5]] == [0.1, 0.5, 0.9, 0.8, 0.9]


def test_the_loss_is_that_of_the_best_evaluation():
    evaluate, seen = scripted([0.1, 0.2, 0.3, 0.2, 0.1])
    result = LBFGS(max_iter=5).minimize(Logistic(), np.zeros(10), monitor=Monitor(evaluate))
    np.testing.assert_array_equal(result.weights, seen[2])
    assert result.loss == result.history[2]["loss"] > result.history[4]["loss"]


def test_scores_that_are_never_numbers_leave_the_loss_to_decide():
    monitor = Monitor(evaluate=lambda weights: np.nan)
    result = LBFGS(max_iter=5).minimize(Logistic(), np.zeros(10), monitor=monitor)
    assert result.loss == result.history[-1]["loss"]


def test_checkpoints_come_every_few_iterations_and_at_the_end():
    saved = []
    monitor = Monitor(
        checkpoint=lambda weights, history: saved.append((weights, copy.deepcopy(history))), checkpoint_every=3
    )
    result = LBFGS(max_iter=7).minimize(Logistic(), np.zeros(10), monitor=monitor)
    assert [len(history) for _, history in saved] == [3, 6, 7]
    np.testing.assert_array_equal(saved[-1][0], result.weights)
    saved.clear()
    LBFGS().minimize(Failing(Logistic(), 5, KeyboardInterrupt()), np.zeros(10), monitor=monitor)
    assert len(saved) == 2
    assert len(saved[-1][1]) == 3


def shown(verbose, terminal, **options):
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monitor = Monitor(verbose=verbose, stream=stream, **options)
    LBFGS(max_iter=3).minimize(Logistic(), np.zeros(10), monitor=monitor)
    return stream.getvalue()


def test_progress_is_silent_unless_asked_and_on_a_terminal():
    assert shown(0, terminal=True) == ""
    assert shown(1, terminal=False) == ""


def test_progress_rewrites_one_line_on_a_terminal():
    text = shown(1, terminal=True, evaluate=lambda weights: 0.93)
    assert text.count("\n") == 2
    assert text.count("\riteration") == 3
    assert text.endswith("stopped: max_iter=3 iterations done\n")
    assert "dev 0.93" in text


def test_progress_line_by_line():
    lines = shown(2, terminal=False).splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("iteration 2  loss ")
    assert "|g| " in lines[1]
    assert lines[1].endswith(" s")


def test_progress_goes_to_standard_error(capsys):
    LBFGS(max_iter=2).minimize(Logistic(), np.zeros(10), monitor=Monitor(verbose=2))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("iteration 1  loss ")


# ------------------------------------------------------------------------------
# Bad options


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LBFGS(max_iter=0), "LBFGS: max_iter is 0, expected at least 1"),
        (lambda: LBFGS(tol=np.nan), "LBFGS: tol is nan"),
        (lambda: SGD(batch=0), "SGD: batch is 0"),
        (lambda: SGD(rate=-1.0), "SGD: rate is -1.0"),
        (lambda: Perceptron(epochs=0), "Perceptron: epochs is 0"),
        (lambda: Monitor(verbose=-1), "Monitor: verbose is -1"),
        (lambda: Monitor(patience=3), "evaluate is None"),
        (lambda: LBFGS().minimize(Logistic(), np.zeros(9)), r"shape \(9,\), but the objective has 10"),
        (lambda: LBFGS().minimize(Logistic(), np.full(10, np.nan)), "not all finite"),
        (lambda: LBFGS().minimize(Logistic(), np.zeros(10), c1=-1), "c1 is -1, expected"),
        (lambda: SGD().minimize(Logistic(), np.zeros(10), c2=np.nan), "c2 is nan, expected"),
    ],
)
def test_bad_options_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_solvers_by_name():
    assert solver_of("lbfgs") == LBFGS()
    assert solver_of("sgd") == SGD()
    assert solver_of("perceptron") == Perceptron()
    mine = LBFGS(max_iter=3)
    assert solver_of(mine) is mine
    for bad in ("adam", None, 3, LBFGS):
        with pytest.raises(ValueError, match=r"solver is .*, expected 'lbfgs', 'sgd', 'perceptron' or"):
            solver_of(bad)


# ------------------------------------------------------------------------------
# Solvers in model files


class Plain:
    """A solver of one's own that does as L-BFGS does."""

    def minimize(self, objective, weights, c1=0.0, c2=0.0, monitor=None, random_state=None):
        return LBFGS(max_iter=3).minimize(objective, weights, c1, c2, monitor, random_state)


@dataclasses.dataclass
class WithOptions(Plain):
    """The same with an option."""

    speed: int = 3


@dataclasses.dataclass(frozen=True)
class Lookalike(LBFGS):
    """Ours in everything but the class."""


@pytest.fixture(scope="module")
def short_model():
    X, Y = make_nested(4, (2, 3), length=12, random_state=0)
    return hscrf.HSCRF(solver=LBFGS(max_iter=3)).fit(X, Y), X


@pytest.mark.parametrize("solver", ["sgd", LBFGS(memory=3), SGD(rate=0.5, average=False), Perceptron(epochs=2)])
def test_solvers_of_ours_come_back_from_a_file(solver, short_model, tmp_path):
    model = copy.copy(short_model[0]).set_params(solver=solver)
    model.save(tmp_path / "model")
    assert hscrf.load(tmp_path / "model").solver == solver


@pytest.mark.parametrize("solver", [Plain(), WithOptions(), Lookalike()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("family", [hscrf.HSCRF, hscrf.ChainCRF, hscrf.SemiCRF, hscrf.DynamicCRF])
def test_a_model_fitted_by_another_solver_is_saved_and_predicts(family, solver, tmp_path):
    X, Y = [[["a"], ["b"], ["a"]]] * 2, [["B-x", "B-y", "B-x"]] * 2
    if family in (hscrf.HSCRF, hscrf.DynamicCRF):
        Y = [{"tag": y} for y in Y]
    model = family(solver=solver).fit(X, Y)
    model.save(tmp_path / "model")
    name = type(solver).__name__
    with pytest.warns(UserWarning, match=rf"by the solver \S*{name}, .* fit would now use 'lbfgs'") as caught:
        loaded = hscrf.load(tmp_path / "model")
    assert caught[0].filename == __file__  # the warning points at the caller
    assert loaded.solver == "lbfgs"
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert loaded.predict(X) == model.predict(X)
    assert loaded.set_params(solver=solver).fit(X, Y).n_iter_ == model.n_iter_


def test_a_class_that_is_called_as_ours_is_not_ours():
    other = type("LBFGS", (Plain,), {})()
    assert dump_solver(other) == {"other": f"{__name__}.LBFGS"}


def test_an_object_that_is_not_a_solver_is_not_saved(short_model, tmp_path):
    model = copy.copy(short_model[0]).set_params(solver="adam")
    with pytest.raises(ValueError, match="solver is 'adam', expected"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    "entry",
    [
        "adam",
        None,
        ["LBFGS"],
        {"type": "Plain"},
        {"type": ["LBFGS"]},
        {"other": 3},
        {"type": "LBFGS", "max_iter": 0},
        {"type": "SGD", "speed": 1},
        {"type": "SGD", "rate": "fast"},
        {"type": "SGD", "batch": "some"},
    ],
)
def test_a_file_with_a_bad_solver_is_refused(short_model, tmp_path, entry):
    short_model[0].save(tmp_path / "model")
    header, arrays = read_container(tmp_path / "model")
    header["parameters"]["solver"] = entry
    write_container(tmp_path / "model", header, arrays)
    with pytest.raises(FileFormatError, match=r"model is not a valid model: .*solver"):
        hscrf.load(tmp_path / "model")
