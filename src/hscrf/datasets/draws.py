"""Random durations and counts."""

from __future__ import annotations

import numpy as np


def draw_duration(random: np.random.Generator, mean: float) -> int:
    """A duration in steps, at least 1: gamma of shape 16, far from geometric."""
    return max(1, round(random.gamma(16.0, mean / 16.0)))


def draw_number(random: np.random.Generator, what: str, given: int | tuple[int, int]) -> int:
    """The number given, or one drawn from the closed range given."""
    low, high = (given, given) if isinstance(given, (int, np.integer)) else given
    if not 1 <= low <= high:
        raise ValueError(f"{what} is {given!r}; expected a positive number or a range (low, high) of them")
    return int(random.integers(low, high + 1))
