"""scikit-learn's base class: nested arguments, HTML, metadata routing, and its own checks of estimators."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

import hscrf
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
