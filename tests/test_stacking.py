"""Stacking: windows, cross-fitting, the CRF on top, parameters, files."""

from importlib.metadata import version

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

import hscrf
from hscrf import HSCRF, LBFGS, ChainCRF, DynamicCRF
from hscrf.errors import FileFormatError
from hscrf.features import Score, StartScore
from hscrf.stacking import StackedCRF, Windows, windows
from hscrf.stacking.scores import make_folds

QUICK = {"window": 1, "cv": 2}
CRF = HSCRF(solver=LBFGS(max_iter=15))
TREES_ARE_TRUSTED = tuple(map(int, version("skops").split(".")[:2])) < (0, 13)  # by skops itself


class Memory:
    """A classifier that memorises its training steps and is uniform on others."""

    def fit(self, rows, codes):
        self.classes_ = np.unique(codes)
        self.rows, self.codes = np.asarray(rows), codes
        return self

    def predict_proba(self, rows):
        table = np.full((len(rows), self.classes_.size), 1 / self.classes_.size)
        for row, found in zip(np.asarray(rows), table, strict=True):
            same = np.flatnonzero((self.rows == row).all(axis=1))
            if same.size:
                found[:] = self.classes_ == self.codes[same[0]]
        return table

    def get_params(self, deep=True):
        return {}

    def set_params(self, **params):
        return self


def numbers(n=8, seed=0):
    """Sequences of numbers that tell the state by their sign, with labels at two levels."""
    random = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        upper = np.repeat(random.integers(0, 2, size=3), 3)
        lower = random.integers(0, 2, size=9)
        noise = random.normal(scale=0.4, size=(9, 2))
        X.append(np.stack([2 * upper - 1, 2 * lower - 1], axis=1) + noise)
        Y.append({"up": [f"u{k}" for k in upper], "low": [f"l{k}" for k in lower]})
    return X, Y


# ------------------------------------------------------------------------------
# Windows


def test_windows_of_numbers_by_hand():
    random = np.random.default_rng(0)
    X = [random.normal(size=(length, 3)) for length in (1, 2, 7)]
    for window in (0, 1, 4):
        for x, wide in zip(X, windows(X, window), strict=True):
            last = len(x) - 1
            for t, row in enumerate(wide):
                expected = [x[min(max(t + k, 0), last)] for k in range(-window, window + 1)]
                np.testing.assert_array_equal(row, np.concatenate(expected))


def test_windows_of_sparse_rows_are_those_of_numbers_but_for_the_ends():
    random = np.random.default_rng(1)
    x = random.integers(0, 2, size=(6, 4)).astype(float)
    (wide,) = windows([scipy.sparse.csr_matrix(x)], 2)
    padded = np.vstack([np.zeros((2, 4)), x, np.zeros((2, 4))])
    expected = np.hstack([padded[k : k + 6] for k in range(5)])
    np.testing.assert_array_equal(wide.toarray(), expected)


def test_windows_of_names():
    assert windows([[{"a": 1.0}, {"b": 2.0}]], 1) == [[{"0:a": 1.0, "1:b": 2.0}, {"-1:a": 1.0, "0:b": 2.0}]]
    assert windows([[["a", "c"], []]], 1) == [[["0:a", "0:c"], ["-1:a", "-1:c"]]]


def test_windows_is_a_transformer():
    step = clone(Windows(2))
    assert step.get_params() == {"window": 2}
    X = [np.ones((3, 1))]
    np.testing.assert_array_equal(step.fit_transform(X)[0], np.ones((3, 5)))
    for bad in (-1, 1.5, True, "2"):
        with pytest.raises(ValueError, match=r"window is .*, expected a whole number"):
            Windows(bad).fit(X)


# ------------------------------------------------------------------------------
# Learning


def test_scores_in_training_come_from_classifiers_that_have_not_seen_the_sequence():
    """A classifier that memorises is useless on new data; cross-fitting must show that to the CRF."""
    X, Y = numbers(10)
    seen = {}

    class Spy(HSCRF):
        def fit(self, X, Y, **options):
            seen["X"] = X
            return super().fit(X, Y, **options)

    crf = Spy(solver=LBFGS(max_iter=5))
    model = StackedCRF(crf, Memory(), window=1, cv=5, passthrough=False).fit(X, Y)
    for x in seen["X"]:
        for step in x:
            assert step["score:up=u0"] == pytest.approx(np.log(0.5))
    after = model._observe(X)
    assert max(step["score:up=u0"] for x in after for step in x) == pytest.approx(np.log(0.995))


def test_no_group_is_in_two_folds():
    groups = [0, 0, 1, 1, 2, 2]
    for held in make_folds(3, 6, groups, None):
        assert len({groups[n] for n in held}) == 1
    held = np.concatenate(make_folds(4, 6, None, 0))
    assert sorted(held) == list(range(6))
    assert len(make_folds(5, 3, None, 0)) == 3
    assert len(make_folds(GroupKFold(3), 6, groups, None)) == 3


def test_it_beats_a_linear_model_where_states_are_no_linear_function():
    random = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(24):
        states = np.repeat(random.integers(0, 2, size=5), 4)
        signs = random.choice([-1.0, 1.0], size=(20, 1))
        x = np.hstack([signs, signs * (2 * states[:, None] - 1)]) + random.normal(scale=0.2, size=(20, 2))
        X.append(x)
        Y.append([f"s{k}" for k in states])
    plain = ChainCRF().fit(X[:16], Y[:16]).score(X[16:], Y[16:])
    trees = ExtraTreesClassifier(30, random_state=0)
    stacked = StackedCRF(ChainCRF(), trees, window=0, cv=3).fit(X[:16], Y[:16]).score(X[16:], Y[16:])
    assert stacked > 0.95 > 0.85 > plain


@pytest.mark.parametrize("kind", ["dense", "matrix", "strings", "dicts"])
def test_all_kinds_of_observations(kind):
    X, Y = numbers(8)
    signs = [[[f"{k}:{value > 0}" for k, value in enumerate(row)] for row in x] for x in X]
    given = {
        "dense": X,
        "matrix": [scipy.sparse.csr_matrix((x > 0).astype(float)) for x in X],
        "strings": signs,
        "dicts": [[dict.fromkeys(step, 1.0) for step in x] for x in signs],
    }[kind]
    model = StackedCRF(CRF, LogisticRegression(), **QUICK).fit(given[:6], Y[:6])
    assert model.score(given[6:], Y[6:]) > 0.8
    assert model.predict(given[6:], confidence=True)[0].confidence("up")[0].probability > 0.3


def test_partial_labels_and_evidence():
    X, Y = numbers(8)
    partial = [{"up": y["up"], "low": ["?" if t % 2 else s for t, s in enumerate(y["low"])]} for y in Y]
    model = StackedCRF(CRF, LogisticRegression(), **QUICK).fit(X[:6], partial[:6])
    assert model.score(X[6:], Y[6:]) > 0.7
    known = [{"low": ["l0"] * 9}]
    assert model.predict(X[6:7], evidence=known)[0].column("low") == ["l0"] * 9
    (posterior,) = model.posterior(X[6:7], evidence=known)
    assert posterior.k_best(3)[0] == model.predict(X[6:7], evidence=known)[0]
    nothing = [{"up": ["?"] * 9, "low": ["?"] * 9}] * 6
    with pytest.raises(ValueError, match="level 'up' has no known label"):
        StackedCRF(CRF, LogisticRegression(), **QUICK).fit(X[:6], nothing)


def test_tags_that_delimit_segments_have_scores_of_first_steps():
    X = [[[letter] for letter in "abcab"]] * 6
    Y = [{"phrase": ["B-P", "I-P", "O", "B-P", "B-P"], "tag": list("xyzxy")}] * 6
    model = StackedCRF(CRF, LogisticRegression(), **QUICK).fit(X, Y)
    own = next(scores for scores in model.scores_ if scores.level == "phrase")
    assert own.classes == [("O", False), ("P", False), ("P", True)]
    assert StartScore("phrase") in model.crf_.features
    assert Score("tag") in model.crf_.features
    assert model.predict(X[:1])[0].segments("phrase") == [(0, 2, "P"), (2, 3, "O"), (3, 4, "P"), (4, 5, "P")]
    names = {name for x in model._observe(X[:1]) for step in x for name in step}
    assert {"score:phrase=P", "score:begin:phrase=P", "bias"} <= names
    assert not any(name.startswith("x:") for name in names)
    passing = StackedCRF(CRF, LogisticRegression(), passthrough=True, **QUICK).fit(X, Y)
    assert "x:a" in passing._observe(X[:1])[0][0]
    step = model._observe(X[:1])[0][0]
    assert np.exp(step["score:phrase=P"]) + np.exp(step["score:phrase=O"]) == pytest.approx(1)


def test_each_score_has_one_weight_of_its_own_state():
    X, Y = numbers(8)
    model = StackedCRF(CRF, LogisticRegression(), **QUICK).fit(X, Y)
    rows = model.crf_.weights_
    scores = rows[rows.feature.str.startswith("score:")]
    assert sorted(scores.feature) == ["score:low=l0", "score:low=l1", "score:up=u0", "score:up=u1"]
    assert all(feature.endswith("=" + state) for feature, state in zip(scores.feature, scores.states, strict=True))
    assert (scores.weight > 0).all()


def test_a_class_that_a_fold_lacks_is_improbable_not_an_error():
    X, Y = numbers(6)
    Y = [{"up": ["u0"] * 9, "low": y["low"]} for y in Y]
    Y[0]["up"] = ["u1"] * 9
    model = StackedCRF(CRF, LogisticRegression(), window=0, cv=6).fit(X, Y)
    assert len(model.predict(X)) == 6


def test_wrong_arguments():
    X, Y = numbers(4)
    for options, message in (
        ({"crf": DynamicCRF()}, "crf is a DynamicCRF, expected an HSCRF"),
        ({"crf": 3}, "crf is an int, expected an HSCRF"),
        ({"classifier": CRF}, "expected an estimator with predict_proba"),
        ({"window": -1}, "window is -1"),
        ({"cv": 1}, "cv is 1, expected a number of folds"),
        ({"groups": [1, 2]}, "groups has 2 entries, but X has 4 sequences"),
        ({"groups": [1, 1, 1, 1]}, "there is one group"),
    ):
        with pytest.raises(ValueError, match=message):
            StackedCRF(**{"classifier": DummyClassifier(), **options}).fit(X, Y)
    with pytest.raises(ValueError, match="there is one sequence"):
        StackedCRF(classifier=DummyClassifier()).fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match="X has 4 sequences but Y has 3"):
        StackedCRF(classifier=DummyClassifier()).fit(X, Y[:3])
    with pytest.raises(NotFittedError, match="this StackedCRF is not fitted yet"):
        StackedCRF().predict(X)


def test_parameters_by_the_rules_of_scikit_learn():
    model = StackedCRF(HSCRF(c2=0.5), LogisticRegression(C=2.0), window=3, groups=[1, 2])
    copy = clone(model)
    assert copy.get_params()["crf__c2"] == 0.5
    assert copy.get_params()["classifier__C"] == 2.0
    assert copy.crf is not model.crf
    copy.set_params(crf__c2=7.0, classifier__C=1.0, window=1)
    assert (copy.crf.c2, copy.classifier.C, copy.window) == (7.0, 1.0, 1)
    assert model.crf.c2 == 0.5
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        model.set_params(nothing=1)
    with pytest.raises(AttributeError, match="set_params"):
        model.set_params(cv__c2=1)
    X, Y = numbers(4)
    fitted = StackedCRF(CRF, LogisticRegression(), **QUICK).fit(X, Y)
    assert CRF.features is None  # what was given is not changed
    assert fitted.crf_ is not CRF


# ------------------------------------------------------------------------------
# Files


@pytest.mark.parametrize(
    "classifier", [LogisticRegression(), ExtraTreesClassifier(5, random_state=0)], ids=["linear", "trees"]
)
def test_files(tmp_path, classifier):
    X, Y = numbers(8)
    model = StackedCRF(CRF, classifier, passthrough=False, **QUICK).fit(X, Y).calibrate(X, Y)
    model.save(tmp_path / "m")
    if isinstance(classifier, ExtraTreesClassifier) and not TREES_ARE_TRUSTED:
        with pytest.raises(FileFormatError, match=r"not trusted, sklearn\.tree\._tree\.Tree: expected them"):
            hscrf.load(tmp_path / "m")
    again = hscrf.load(tmp_path / "m", trusted=["sklearn.tree._tree.Tree"])
    assert isinstance(again, StackedCRF)
    assert again.predict(X) == model.predict(X)
    assert again.temperature_ == model.temperature_
    np.testing.assert_array_equal(again.log_likelihood(X, Y), model.log_likelihood(X, Y))
    assert again.get_params()["window"] == 1
    assert again.crf.features is None
    assert type(again.classifier) is type(classifier)
    assert again.fit(X, Y).predict(X) == model.predict(X)


def test_files_refuse_types_that_are_not_trusted(tmp_path):
    X, Y = numbers(6)
    StackedCRF(CRF, Memory(), **QUICK).fit(X, Y).save(tmp_path / "m")
    with pytest.raises(FileFormatError, match=r"^m holds a classifier of types .* not trusted, .*Memory.*: expected"):
        hscrf.load(tmp_path / "m")


def test_damaged_files_are_refused(tmp_path):
    from hscrf.files.container import read_container, write_container

    X, Y = numbers(6)
    StackedCRF(CRF, LogisticRegression(), **QUICK).fit(X, Y).save(tmp_path / "m")
    header, arrays = read_container(tmp_path / "m")
    cut = {**arrays, "classifier0": arrays["classifier0"][:100]}
    missing = {name: array for name, array in arrays.items() if name != "classifier1"}
    for head, own, message in (
        (header, cut, "holds a classifier that cannot be read"),
        (header, missing, "it has no array 'classifier1'"),
        ({**header, "parameters": {**header["parameters"], "window": -2}}, arrays, "parameters.window is -2"),
        ({**header, "scores": [{**header["scores"][0], "level": "x"}]}, arrays, "level is 'x'"),
        ({**header, "scores": [{**header["scores"][0], "classes": [["u0", False]]}]}, arrays, "do not fit"),
        ({**header, "crf": 3}, arrays, "crf is 3, expected an object"),
    ):
        write_container(tmp_path / "bad", head, own)
        with pytest.raises(FileFormatError, match=message):
            hscrf.load(tmp_path / "bad")
    HSCRF(solver=LBFGS(max_iter=1)).fit(X, Y).save(tmp_path / "plain")
    with pytest.raises(FileFormatError, match="holds a HSCRF, expected a StackedCRF"):
        hscrf.stacking.load(tmp_path / "plain")
