"""DynamicCRF against an enumeration of all label grids, with evidence; and the number of its weights."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone

import hscrf
from hscrf import metrics
from hscrf.families.combinations import labels_by_level
from hscrf.families.dynamic import DynamicCRF
from hscrf.families.factors import Pair
from hscrf.objective.likelihood import Likelihood
from hscrf.objective.scorer import Scorer

LEVELS = {"a": ["a0", "a1"], "b": ["b0", "b1", "b2"], "c": ["c0", "c1"]}
LENGTH = 3
CLOSE = {"rtol": 1e-9, "atol": 1e-10}


def draw_data(rng, n=4, missing=0.0):
    """Feature strings and columns of labels, all labels and features occurring."""
    X, Y = [], []
    for _ in range(n):
        X.append([[f"f{rng.integers(3)}", f"g{rng.integers(2)}"] for _ in range(LENGTH)])
        columns = {level: [str(rng.choice(names)) for _ in range(LENGTH)] for level, names in LEVELS.items()}
        for column in columns.values():
            for t in range(LENGTH):
                if rng.random() < missing:
                    column[t] = "?"
        Y.append(columns)
    return X, Y


def topology():
    return hscrf.Topology(LEVELS)


def fitted(rng, **arguments):
    """A model with random weights for every factor."""
    X, Y = draw_data(rng)
    arguments = {"combinations": "all", "pairs": "all", "solver": hscrf.LBFGS(max_iter=1), **arguments}
    model = DynamicCRF(topology(), **arguments).fit(X, Y)
    model.coef_ = rng.standard_normal(model.coef_.size)
    return model, X, Y


def grids(length=LENGTH):
    """All labellings as tuples of steps, each a dict of level to label."""
    steps = [dict(zip(LEVELS, labels, strict=True)) for labels in itertools.product(*LEVELS.values())]
    return itertools.product(steps, repeat=length)


def grid_score(weights, x, grid):
    """Score of one labelling, from the table of weights alone."""
    total = 0.0
    for t, step in enumerate(grid):
        for level in LEVELS:
            total += sum(weights.get((level, "token", name, step[level]), 0.0) for name in x[t])
            if t + 1 < len(grid):
                total += weights[level, "trans", "", f"{step[level]} > {grid[t + 1][level]}"]
        for one, other in itertools.pairwise(LEVELS):
            total += weights[f"{one} & {other}", "pair", "", f"{step[one]} & {step[other]}"]
    return total


def weight_table(model):
    table = model.weights_
    columns = [table[name] for name in ("level", "part", "feature", "states")]
    return dict(zip(zip(*columns, strict=True), table["weight"], strict=True))


def agrees(grid, evidence):
    return all(
        known == "?" or grid[t][level] == known
        for level, column in (evidence or {}).items()
        for t, known in enumerate(column)
    )


EVIDENCE = [None, {"b": ["?", "b1", "?"]}, {"a": ["a0", "?", "?"], "c": ["?", "c1", "c0"]}]


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("seed", range(3))
def test_equals_enumeration(seed, evidence):
    model, X, _ = fitted(np.random.default_rng(seed))
    weights = weight_table(model)
    listed = [grid for grid in grids() if agrees(grid, evidence)]
    scores = np.array([grid_score(weights, X[0], grid) for grid in listed])
    log_z = np.logaddexp.reduce(scores)
    posterior = np.exp(scores - log_z)

    found = model.predict_marginals(X[:1], [evidence])[0]
    assert found.log_partition == pytest.approx(log_z, rel=1e-10)
    for level, names in LEVELS.items():
        for t, (s, name) in itertools.product(range(LENGTH), enumerate(names)):
            expected = sum(p for p, grid in zip(posterior, listed, strict=True) if grid[t][level] == name)
            assert found.state[level][t, s] == pytest.approx(expected, abs=1e-10)

    best = listed[int(scores.argmax())]
    labels = model.predict(X[:1], [evidence])[0]
    assert labels.score == pytest.approx(scores.max(), rel=1e-10)
    assert {level: labels.column(level) for level in LEVELS} == {
        level: [step[level] for step in best] for level in LEVELS
    }
    if evidence:
        every = np.logaddexp.reduce([grid_score(weights, X[0], grid) for grid in grids()])
        assert model.log_likelihood(X[:1], [evidence])[0] == pytest.approx(log_z - every)


def test_number_of_weights_is_that_of_the_factors():
    model, _, _ = fitted(np.random.default_rng(0))
    features, sizes = 5, [2, 3, 2]
    expected = features * sum(sizes) + sum(s * s for s in sizes) + (2 * 3 + 3 * 2)
    assert model.coef_.size == expected
    assert len(model.combinations_) == 2 * 3 * 2
    product = features * 12 + 12 * 12
    assert expected < product


def test_combinations_and_pairs_that_were_seen():
    rng = np.random.default_rng(1)
    X, Y = draw_data(rng, n=2)
    model = DynamicCRF().fit(X, Y)
    seen = {tuple(step) for y in Y for step in zip(*y.values(), strict=True)}
    names = model.levels_.states[1:]
    found = {tuple(of[s] for of, s in zip(names, row, strict=True)) for row in model.combinations_}
    assert found == seen
    pairs = model.weights_.query("level == 'a & b'")["states"]
    assert set(pairs) == {f"{a} & {b}" for a, b, _ in seen}
    unseen = next(set(itertools.product(*LEVELS.values())) - seen for _ in "x").pop()
    impossible = {level: [label] * LENGTH for level, label in zip(LEVELS, unseen, strict=True)}
    if all(label in of for label, of in zip(unseen, names, strict=True)):
        with pytest.raises(hscrf.InfeasibleError, match=r"evidence\[0\]: no combination"):
            model.predict(X[:1], [impossible])
        assert model.score(X[:1], [impossible]) == 0.0


def test_children_of_a_topology_limit_the_combinations():
    X, Y = [[["f"]] * 2] * 2, [{"a": ["x", "y"], "b": ["u", "?"]}, {"a": ["x", "?"], "b": ["v", "u"]}]
    limited = hscrf.Topology({"a": ["x", "y"], "b": ["u", "v"]}, children={"a": {"y": ["u"]}})
    model = DynamicCRF(limited).fit(X, Y)
    assert model.combinations_.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert model.predict(X[:1], [{"a": ["?", "y"]}])[0].column("b")[1] == "u"


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("observed", [False, True])
def test_gradient(missing, observed):
    rng = np.random.default_rng(3)
    X, Y = draw_data(rng, missing=missing)
    features = [hscrf.Token("a"), hscrf.Token("c"), hscrf.Init("b"), hscrf.End("a", observed)]
    features += [hscrf.Trans("b", observed), Pair("a", "c", observed), Pair("b", "c")]
    model = DynamicCRF(topology(), features=features, pairs="all", solver=hscrf.LBFGS(max_iter=1)).fit(X, Y)
    seen = model.encoder_.pack(X)
    labels = model.read_evidence(Y, seen)
    objective = Likelihood(Scorer(model.topology_, model.blocks_), seen, labels)
    weights = rng.standard_normal(model.coef_.size)
    gradient = objective(weights)[1]
    step = 1e-5 * np.eye(weights.size)
    slopes = [(objective(weights + h)[0] - objective(weights - h)[0]) / 2e-5 for h in step]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-7)


def test_successors_of_a_topology_limit_what_follows():
    rng = np.random.default_rng(1)
    X, Y = draw_data(rng, n=12)
    for y in Y:
        y["a"] = y["a"][:1] * LENGTH
    stays = hscrf.Topology(LEVELS, successors={"a": {"a0": ["a0"], "a1": ["a1"]}})
    options = {"combinations": "all", "pairs": "all", "transitions": "all", "solver": hscrf.LBFGS(max_iter=1)}
    free, bound = (DynamicCRF(levels, **options).fit(X, Y) for levels in (hscrf.Topology(LEVELS), stays))
    free.coef_ = 3 * rng.standard_normal(free.coef_.size)
    names = ["level", "part", "feature", "states"]
    bound.coef_ = (
        free.weights_.set_index(names)["weight"].loc[list(bound.weights_[names].itertuples(index=False))].to_numpy()
    )
    found = bound.predict(X)
    assert any(len(set(y.column("a"))) > 1 for y in free.predict(X))
    assert all(len(set(y.column("a"))) == 1 for y in found)
    told = [{"a": y.column("a")} for y in found]
    assert [y.column("b") for y in free.predict(X, evidence=told)] == [y.column("b") for y in found]
    with pytest.raises(hscrf.InfeasibleError):
        bound.predict(X[:1], evidence=[{"a": ["a0", "?", "a1"]}])


def test_pairs_may_be_penalised_more():
    X, Y = draw_data(np.random.default_rng(0), n=10)
    sizes = []
    for penalty in (1.0, 50.0):
        model = DynamicCRF(features=[hscrf.Token("a"), Pair("a", "b", penalty=penalty)]).fit(X, Y)
        sizes.append([np.abs(weights).sum() for _, weights in model.weighted_blocks()])
    (own, pairs), (same, fewer) = sizes
    assert fewer < 0.2 * pairs
    assert same == pytest.approx(own, rel=0.5)


def test_numeric_observations():
    rng = np.random.default_rng(4)
    labels = [rng.integers(0, 2, (2, 30)) for _ in range(3)]
    X = [(2.0 * y + 0.1 * rng.standard_normal(y.shape)).T for y in labels]
    Y = [{"a": [f"a{k}" for k in y[0]], "b": [f"b{k}" for k in y[1]]} for y in labels]
    model = DynamicCRF(c2=0.01).fit(X, Y)
    assert model.score(X, Y) == 1.0


def test_metrics_samples_and_round_trip(tmp_path):
    rng = np.random.default_rng(5)
    X, Y = draw_data(rng, n=8)
    model = DynamicCRF(c2=1e-3).fit(X, Y)
    found = model.predict(X)
    truth = [labels_by_level(model.levels_, y, n, len(X[n]), "Y") for n, y in enumerate(Y)]
    assert set(metrics.accuracy(truth, found)) == set(LEVELS)
    assert model.score(X, Y) == metrics.joint_accuracy(truth, found)
    assert model.predict(X, evidence=found) == found
    draws = model.sample(X[:1], 3, 0)[0]
    assert all(len(y.column("b")) == LENGTH for y in draws)

    model.save(tmp_path / "m")
    loaded = hscrf.load(tmp_path / "m")
    assert type(loaded) is DynamicCRF
    assert loaded.predict(X) == found
    np.testing.assert_allclose(loaded.log_likelihood(X, Y), model.log_likelihood(X, Y), **CLOSE)
    assert loaded.weights_.equals(model.weights_)
    assert loaded.fit(X, Y).predict(X) == found
    assert clone(model).get_params() == model.get_params()


def test_warm_start_keeps_the_weights_of_each_factor():
    rng = np.random.default_rng(6)
    X, Y = draw_data(rng, n=8)
    model = DynamicCRF(c2=0.1, warm_start=True, solver=hscrf.LBFGS(max_iter=500, delta=1e-12)).fit(X, Y)
    before = model.coef_.copy()
    model.fit(X, Y)
    np.testing.assert_allclose(model.coef_, before, atol=1e-3)
    assert model.n_iter_ <= 2


def test_errors_name_the_thing():
    X, Y = draw_data(np.random.default_rng(7))
    with pytest.raises(ValueError, match="combinations is 'some'"):
        DynamicCRF(combinations="some").fit(X, Y)
    with pytest.raises(ValueError, match=r"Y\[0\] is a list, expected a dict"):
        DynamicCRF().fit(X, [["a0"] * LENGTH] * 4)
    with pytest.raises(ValueError, match=r"features\[0\] is Duration.*expected one of Token, Init, Trans, End, Pair"):
        DynamicCRF(features=[hscrf.Duration("a")]).fit(X, Y)
    with pytest.raises(ValueError, match="do not nest"):
        DynamicCRF().fit(X, Y).learned_topology()
    with pytest.raises(ValueError, match=r"evidence\[0\] at step 0: unknown state"):
        DynamicCRF().fit(X, Y).predict(X[:1], [{"a": ["zz"] * LENGTH}])
