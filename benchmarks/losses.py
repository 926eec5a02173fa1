"""The loss of a model that is not fitted: what ``fit`` hands to a solver, for scripts that measure evaluations."""

from hscrf.estimator.frame import data_of
from hscrf.objective.workers import Workers


def objective_of(model, X, Y=None, workers=None, client=None):
    """The loss of data, or of shards, as a function of the weights; the model learns its features from them."""
    packed, _ = model._learn(data_of(X, Y, None, client))
    return model._loss(packed, None, workers or Workers())
