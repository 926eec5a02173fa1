"""The posterior probabilities of predicted segments."""

from __future__ import annotations

from typing import Any, NamedTuple


class SegmentConfidence(NamedTuple):
    """One predicted segment and two posterior probabilities.

    ``probability`` is the posterior probability that this segment exists: it begins exactly at ``start``, stops exactly
    at ``stop`` and has this state. ``label_probability`` is the mean over its steps of the posterior probability that
    the step has this state, with any boundaries: the expected share of its steps whose label is right.

    >>> SegmentConfidence(0, 2, "NP", 0.9, 0.95).probability
    0.9
    """

    start: int
    stop: int  # half-open
    state: Any
    probability: float
    label_probability: float
