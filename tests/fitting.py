"""Blocks fitted to training data at once, the loss that a model minimises, and its search for penalties."""

import hscrf
from hscrf.estimator.frame import data_of
from hscrf.features.occurrences import Occurrences
from hscrf.objective.workers import Workers
from hscrf.solvers.penalties import Search


def fit_blocks(specifications, topology, encoder, observations, known, pairs="seen", transitions="all"):
    """A block for each specification."""
    frame = Occurrences(topology, encoder, specifications, pairs, transitions)
    frame.update(observations, known)
    return [spec.fit(frame) for spec in specifications]


def loss_of(model, X, Y, sample_weight, workers):
    """The loss of data from which a model learns its frame, and the weights to start from."""
    packed, weights = model._learn(data_of(X, Y))
    return model._loss(packed, sample_weight, workers), weights


def attempts(data, *penalties):
    """The trials of a short search for penalties on some data."""
    model = hscrf.HSCRF()
    objective, weights = loss_of(model, data, None, None, Workers())
    search = Search(objective, model._weighting(), 0.0, weights, random_state=3, solver=hscrf.LBFGS(max_iter=2))
    return [search.attempt(c2, {}) for c2 in penalties]
