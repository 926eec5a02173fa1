"""Models within scikit-learn: pipelines, groups, scorers by name, weights, restarts, partial_fit."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import hscrf
from hscrf import metrics


def activities(n=12, length=20, seed=0):
    """Rows of numbers, and two nested levels of labels that they tell."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        act = rng.choice(["x", "y", "z"], size=length, p=[0.6, 0.3, 0.1])
        means = {"x": (0, 0), "y": (2, 0), "z": (0, 2)}
        day = ["a"] * (length // 2) + ["b"] * (length - length // 2)
        told = np.array([(*means[a], 2 * (d == "b")) for a, d in zip(act, day, strict=True)])
        X.append(told + rng.normal(scale=0.4, size=told.shape))
        Y.append({"day": day, "act": act.tolist()})
    return X, Y


X, Y = activities()
FEW = hscrf.LBFGS(max_iter=15)


def test_a_scaler_for_each_sequence_in_a_pipeline():
    scale = FunctionTransformer(lambda X: [StandardScaler().fit_transform(x) for x in X])
    model = make_pipeline(scale, hscrf.HSCRF(solver=FEW, standardize=False)).fit(X, Y)
    assert metrics.scorer("accuracy")(model, X, Y) == pytest.approx(model.score(X, Y))
    assert model.score(X, Y) > 0.9


def test_groups_and_names_of_scorers():
    groups = np.arange(len(X)) // 3
    model = hscrf.HSCRF(solver=FEW)
    plain = cross_val_score(model, X, Y, cv=GroupKFold(3), groups=groups)
    named = cross_val_score(model, X, Y, cv=GroupKFold(3), groups=groups, scoring=metrics.scorer("accuracy"))
    assert plain == pytest.approx(named)
    found = cross_validate(model, X, Y, cv=3, scoring=metrics.scorers("accuracy", "accuracy:act", "segment_f1:day"))
    assert found["test_accuracy:act"].min() >= found["test_accuracy"].min() > 0.8
    assert {"test_accuracy", "test_accuracy:act", "test_segment_f1:day"} <= set(found)
    with pytest.raises(ValueError, match="measure is 'accurate'"):
        metrics.scorers("accurate")


def test_a_search():
    search = GridSearchCV(hscrf.HSCRF(solver=FEW), {"c2": [0.01, 100.0]}, scoring=metrics.scorer("accuracy"), cv=3)
    assert search.fit(X, Y).best_params_ == {"c2": 0.01}


def test_a_column_transformer():
    pandas = pytest.importorskip("pandas")
    tables = [pandas.DataFrame(x, columns=["u", "v", "w"]) for x in X]
    columns = ColumnTransformer([("scaled", StandardScaler(), ["u"]), ("as it is", "passthrough", ["v", "w"])])
    columns.fit(pandas.concat(tables))
    each = FunctionTransformer(lambda X: [columns.transform(x) for x in X])
    assert make_pipeline(each, hscrf.HSCRF(solver=FEW)).fit(tables, Y).score(tables, Y) > 0.9


# -- weights


def test_balanced_weights():
    weights = metrics.balanced_weights(Y, "act")
    counts = {s: sum(y["act"].count(s) for y in Y) for s in "xyz"}
    assert sum(w * len(y["act"]) for w, y in zip(weights, Y, strict=True)) == pytest.approx(sum(counts.values()))
    share = sum(counts.values()) / 3
    assert weights[0] == pytest.approx(np.mean([share / counts[s] for s in Y[0]["act"]]))
    hscrf.HSCRF(solver=FEW).fit(X, Y, sample_weight=weights)
    with pytest.raises(ValueError, match=r"no .*label"):
        metrics.balanced_weights([{"act": ["?"], "day": ["a"]}], "act")


def test_a_margin_for_a_state_finds_more_of_it():
    rng = np.random.default_rng(1)
    noisy = [x + rng.normal(scale=0.9, size=x.shape) for x in X]
    tags = [y["act"] for y in Y]

    def recall(model):
        found = model.fit(noisy, tags).predict(noisy)
        pairs = [(a, b) for y, one in zip(tags, found, strict=True) for a, b in zip(y, one.column(), strict=True)]
        return np.mean([b == "z" for a, b in pairs if a == "z"])

    plain = recall(hscrf.ChainCRF(solver=FEW))
    assert recall(hscrf.ChainCRF(solver=FEW, margin={"label": {"z": 4.0}})) > plain
    equal = hscrf.ChainCRF(solver=FEW, margin={"label": 2.0}).fit(noisy, tags)
    each = hscrf.ChainCRF(solver=FEW, margin={"label": dict.fromkeys("xyz", 2.0)}).fit(noisy, tags)
    np.testing.assert_allclose(equal.coef_, each.coef_, rtol=1e-9, atol=1e-12)


def test_a_margin_by_state_is_kept_in_files(tmp_path):
    model = hscrf.ChainCRF(solver=FEW, margin={"label": {"z": 4.0}}).fit(X, [y["act"] for y in Y])
    model.save(tmp_path / "m.hscrf")
    assert hscrf.load(tmp_path / "m.hscrf").margin == {"label": {"z": 4.0}}
    with pytest.raises(ValueError, match=r"margin\['label'\]\['z'\] is -1"):
        hscrf.ChainCRF(margin={"label": {"z": -1}}).fit(X, [y["act"] for y in Y])
    with pytest.raises(ValueError, match="unknown state"):
        hscrf.ChainCRF(margin={"label": {"q": 1}}).fit(X, [y["act"] for y in Y])


# -- restarts


@pytest.mark.parametrize("seed", [0, 1])  # the last start is the best, the first is
def test_more_starts_of_em_are_never_worse(seed):
    one = hscrf.HHMM(n_components=3, max_iter=8, random_state=seed).fit(X)
    several = hscrf.HHMM(n_components=3, max_iter=8, random_state=seed, n_init=4).fit(X)
    other = hscrf.HHMM(n_components=3, max_iter=8, random_state=seed, n_init=4).fit(X)
    assert several.loss_ <= one.loss_
    assert several.loss_ == pytest.approx(-several.history_[-1]["objective"])
    np.testing.assert_array_equal(several.coef_, other.coef_)
    starts = np.random.default_rng(seed)
    alone = [hscrf.HHMM(n_components=3, max_iter=8, random_state=starts).fit(X).loss_ for _ in range(4)]
    assert several.loss_ == pytest.approx(min(alone))
    for wrong in (0, 1.5, "2"):
        with pytest.raises(ValueError, match="n_init is"):
            hscrf.HHMM(n_components=2, n_init=wrong).fit(X)


# -- chunks


@pytest.mark.parametrize("solver", ["sgd", "perceptron"])
def test_chunks_are_learned_one_after_the_other(solver):
    model = hscrf.HSCRF(solver=solver, random_state=0, c2=0.01)
    for _ in range(4):
        for first in range(0, len(X), 4):
            model.partial_fit(X[first : first + 4], Y[first : first + 4])
    assert model.score(X, Y) > 0.9
    assert model.n_iter_ == 12
    assert [entry["iteration"] for entry in model.history_] == list(range(1, 13))
    before = model.coef_.copy()
    model.partial_fit(X[:4], Y[:4])
    assert not np.array_equal(before, model.coef_)


def test_all_data_in_one_chunk_are_the_epochs_of_fit():
    whole = hscrf.HSCRF(solver=hscrf.SGD(epochs=3, delta=0), random_state=0).fit(X, Y)
    model = hscrf.HSCRF(solver=hscrf.SGD(delta=0), random_state=0, c2=whole.c2)
    model.partial_fit(X, Y)
    model.n_seen_ = 0  # the same sequences again: all of the penalty
    model.partial_fit(X, Y)
    model.n_seen_ = 0
    model.partial_fit(X, Y)
    np.testing.assert_array_equal(whole.coef_, model.coef_)


def test_partial_fit_goes_on_after_fit_and_load(tmp_path):
    model = hscrf.HSCRF(solver="sgd", random_state=0).fit(X, Y)
    model.save(tmp_path / "m.hscrf")
    loaded = hscrf.load(tmp_path / "m.hscrf")
    for one in (model, loaded):
        one.partial_fit(X[:4], Y[:4])
    np.testing.assert_array_equal(model.coef_, loaded.coef_)
    assert model.score(X, Y) > 0.9
    fresh = clone(model).fit(X, Y)
    assert not hasattr(fresh, "online_")


def test_what_partial_fit_refuses():
    with pytest.raises(ValueError, match="expected 'sgd' or 'perceptron'"):
        hscrf.HSCRF().partial_fit(X, Y)
    with pytest.raises(ValueError, match="c2 is 'auto'"):
        hscrf.HSCRF(solver="sgd", c2="auto").partial_fit(X, Y)
    model = hscrf.HSCRF(solver="sgd").partial_fit(X, Y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="unknown"):
        model.partial_fit(X[:1], [{"day": ["c"] * 20, "act": ["x"] * 20}])
    np.testing.assert_array_equal(before, model.coef_)
