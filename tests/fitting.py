"""Blocks fitted to training data at once."""

from hscrf.features.occurrences import Occurrences


def fit_blocks(specifications, topology, encoder, observations, known, pairs="seen", transitions="all"):
    """A block for each specification."""
    frame = Occurrences(topology, encoder, specifications, pairs, transitions)
    frame.update(observations, known)
    return [spec.fit(frame) for spec in specifications]
