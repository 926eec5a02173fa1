"""Blocks fitted to training data at once, and the loss that a model minimises."""

from hscrf.estimator.frame import data_of
from hscrf.features.occurrences import Occurrences


def fit_blocks(specifications, topology, encoder, observations, known, pairs="seen", transitions="all"):
    """A block for each specification."""
    frame = Occurrences(topology, encoder, specifications, pairs, transitions)
    frame.update(observations, known)
    return [spec.fit(frame) for spec in specifications]


def loss_of(model, X, Y, sample_weight, workers):
    """The loss of data from which a model learns its frame, and the weights to start from."""
    packed, weights = model._learn(data_of(X, Y))
    return model._loss(packed, sample_weight, workers), weights
