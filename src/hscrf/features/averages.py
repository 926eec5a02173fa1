"""Averages over segments, and their transpose."""

from __future__ import annotations

import numpy as np

from hscrf.arrays import Floats


def average_tokens(scores: Floats, table: Floats) -> None:
    """Add to table (N, L, S) the mean of scores (N, S) over each segment; entries past the end are arbitrary."""
    total = np.zeros_like(scores)
    for lag in range(min(table.shape[1], len(scores))):
        steps = len(scores) - lag
        total[:steps] += scores[lag:]
        table[:steps, lag] += total[:steps] / (lag + 1)


def average_tokens_back(table: Floats, scores: Floats) -> None:
    """Reverse of ``average_tokens``: add the counts (N, L, S) of segments to those of their steps (N, S)."""
    lasting = np.zeros_like(scores)  # of segments of more than ``lag`` steps
    for lag in reversed(range(min(table.shape[1], len(scores)))):
        steps = len(scores) - lag
        lasting[:steps] += table[:steps, lag] / (lag + 1)
        scores[lag:] += lasting[:steps]
