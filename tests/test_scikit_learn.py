"""scikit-learn's base class: nested arguments, HTML, metadata routing, and its own checks of estimators."""

import pickle

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

import hscrf
import toy
from hscrf import HSCRF, LBFGS, SGD, Segment, Token
from hscrf.datasets import make_nested
from hscrf.io import TokenFeatures
from hscrf.stacking import Windows

FAMILY = [hscrf.HSCRF, hscrf.ChainCRF, hscrf.SemiCRF, hscrf.DynamicCRF, hscrf.HHMM]
X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=a"], ["w=dog"]]] * 3
Y = [["D", "N", "V"], ["D", "N"]] * 3


@pytest.mark.parametrize("family", FAMILY)
def test_models_are_estimators_of_scikit_learn(family):
    model = family(n_jobs=2)
    assert isinstance(model, BaseEstimator)
    assert repr(model) == f"{family.__name__}(n_jobs=2)"
    assert family.__name__ in model._repr_html_()
    assert not model.__sklearn_tags__().input_tags.two_d_array


def test_options_of_the_solver_are_arguments():
    given = hscrf.LBFGS(max_iter=7)
    model = hscrf.ChainCRF(solver=given)
    assert model.get_params()["solver__max_iter"] == 7
    assert "solver__max_iter" not in model.get_params(deep=False)
    assert clone(model).set_params(solver__max_iter=2).solver == hscrf.LBFGS(max_iter=2)
    assert given.max_iter == 7
    assert hscrf.ChainCRF(solver="sgd").set_params(solver__epochs=2).solver == hscrf.SGD(epochs=2)
    both = hscrf.ChainCRF().set_params(solver__epochs=2, solver=hscrf.SGD())
    assert both.solver == hscrf.SGD(epochs=2)
    with pytest.raises(ValueError, match="Invalid parameter 'max_iters' for solver LBFGS"):
        model.set_params(solver__max_iters=2)
    with pytest.raises(ValueError, match="Invalid parameter 'solver'"):
        hscrf.HHMM().set_params(solver__max_iter=2)


def test_a_search_over_options_of_the_solver():
    search = GridSearchCV(hscrf.ChainCRF(), {"solver__max_iter": [1, 30]}, cv=2).fit(X, Y)
    assert search.best_params_["solver__max_iter"] in (1, 30)
    pipeline = make_pipeline(Windows(1), hscrf.ChainCRF())
    assert clone(pipeline).set_params(chaincrf__solver__max_iter=3)[-1].solver.max_iter == 3
    assert "Windows" in pipeline._repr_html_()
    assert isinstance(TokenFeatures(), BaseEstimator)


def test_sample_weights_are_routed_through_a_search():
    weight = np.array([3.0, 1.0] * 3)
    with sklearn.config_context(enable_metadata_routing=True):
        model = hscrf.ChainCRF(solver=hscrf.LBFGS(max_iter=5)).set_fit_request(sample_weight=True)
        search = GridSearchCV(model, {"c2": [0.1]}, cv=2).fit(X, Y, sample_weight=weight)
    alone = hscrf.ChainCRF(solver=hscrf.LBFGS(max_iter=5), c2=0.1).fit(X, Y, sample_weight=weight)
    assert (search.best_estimator_.coef_ == alone.coef_).all()
    assert not (alone.coef_ == hscrf.ChainCRF(solver=hscrf.LBFGS(max_iter=5), c2=0.1).fit(X, Y).coef_).all()


@pytest.mark.parametrize("family", [hscrf.HSCRF, hscrf.SemiCRF, hscrf.HHMM])
def test_models_of_columns_have_their_number(family, tmp_path):
    model = family()
    rows = [np.arange(9.0).reshape(3, 3) + n for n in range(4)]
    with pytest.raises(AttributeError, match="has no n_features_in_"):
        model.n_features_in_  # noqa: B018
    model.fit(rows, [["B-a", "I-a", "B-b"]] * 4)
    assert model.n_features_in_ == 3
    model.save(tmp_path / "model")
    assert hscrf.load(tmp_path / "model").n_features_in_ == 3
    search = GridSearchCV(hscrf.ChainCRF(), {"c2": [1.0]}, cv=2).fit(rows, [["a", "a", "b"]] * 4)
    assert search.n_features_in_ == 3
    assert not hasattr(hscrf.ChainCRF().fit(X, Y), "n_features_in_")


def test_parameters_and_clone():
    estimator = HSCRF(c2=0.3, solver=SGD(epochs=3), features=[Token("tag")], topology=toy.with_topology()[0][1])
    again = clone(estimator)
    assert again.get_params() == estimator.get_params()
    assert again is not estimator
    assert clone(estimator.set_params(c2=7)).c2 == 7
    with pytest.raises(ValueError, match="Invalid parameter 'c3'"):
        estimator.set_params(c3=1)
    shown = " ".join(repr(HSCRF(c2=0.3, solver=SGD(epochs=3))).split())
    assert shown.startswith("HSCRF(c2=0.3, solver=SGD(epochs=3,")
    fitted = HSCRF(solver=LBFGS(max_iter=2)).fit(toy.X, toy.Y)
    assert not hasattr(clone(fitted), "coef_")
    assert fitted.get_params() == clone(fitted).get_params()  # fit left the arguments alone


def test_model_selection():
    solver = LBFGS(max_iter=20)
    search = GridSearchCV(HSCRF(solver=solver), {"c2": [0.1, 1e5]}, cv=3).fit(toy.X, toy.Y)
    assert search.best_params_ == {"c2": 0.1}
    scores = cross_val_score(HSCRF(solver=solver), toy.X, toy.Y, cv=3)
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()
    inputs, labels = make_nested(9, (2, 2), separation=2.0, random_state=0)
    assert cross_val_score(HSCRF(solver=solver), inputs, labels, cv=3).mean() > 0.7


def add_lengths(sequences):
    return [[[*step, f"size={len(step[0])}"] for step in x] for x in sequences]


def test_pipeline():
    pipeline = make_pipeline(FunctionTransformer(add_lengths), HSCRF()).fit(toy.X, toy.Y)
    assert pipeline.score(toy.X, toy.Y) == 1.0
    assert "size=5" in pipeline[-1].encoder_.names
    assert pipeline.predict(toy.X[:1])[0].column("tag") == toy.Y[0]["tag"]
    search = GridSearchCV(make_pipeline(FunctionTransformer(add_lengths), HSCRF()), {"hscrf__min_count": [1, 2]}, cv=2)
    assert search.fit(toy.X, toy.Y).best_score_ > 0.5


@pytest.mark.parametrize("way", ["pickle", "joblib"])
def test_pickle_and_joblib(toy_model, tmp_path, way):
    for one in (
        toy_model,
        HSCRF(solver=LBFGS(max_iter=3), features=[Segment("tag", toy.tag_length)]).fit(toy.X, toy.Y),
    ):
        if way == "pickle":
            again = pickle.loads(pickle.dumps(one))
        else:
            joblib.dump(one, tmp_path / "model")
            again = joblib.load(tmp_path / "model")
        assert again.predict(toy.X) == one.predict(toy.X)
        assert np.array_equal(again.coef_, one.coef_)


class OneStep:
    """A model of sequences that takes a table: each row is a sequence of one step.

    scikit-learn checks estimators with tables only. What it checks of tables themselves, their shapes and values, is
    done here by its own functions, as in its estimators, so that the rest of its checks reach the model.
    """

    @property
    def n_features_in_(self):
        return self._columns

    @n_features_in_.setter
    def n_features_in_(self, columns):  # by validate_data
        self._columns = columns

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.target_tags.required = True, True
        return tags

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y)
        weights = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)}
        return super().fit(list(X[:, None]), [[str(label)] for label in y], **weights)

    def predict(self, X):
        X = validate_data(self, X, reset=False)
        return np.array([float(labels.column()[0]) for labels in super().predict(list(X[:, None]))])

    def score(self, X, y):
        return float((self.predict(X) == y).mean())


class TableCRF(OneStep, hscrf.ChainCRF):
    pass


ONLINE = "partial_fit goes on online, and the solver of the model is L-BFGS, which needs all data at once"
ZEROS = "sequences of weight 0 count for names, scales and states: a warning says so, and the model is fitted"
WHY = {  # the checks that do not hold for these models
    "check_fit_score_takes_y": ONLINE,
    "check_n_features_in_after_fitting": ONLINE,
    "check_all_zero_sample_weights_error": ZEROS,
    "check_sample_weight_equivalence_on_dense_data": ZEROS,
}


@parametrize_with_checks([TableCRF(solver=hscrf.LBFGS(max_iter=5))], expected_failed_checks=lambda _: WHY)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)
