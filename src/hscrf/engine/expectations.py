"""The results of the engine."""

from __future__ import annotations

from typing import NamedTuple

from hscrf.arrays import Floats
from hscrf.potentials import Key


class Expectations(NamedTuple):
    """Log Z of each sequence, and posteriors multiplied by the weights of the sequences."""

    log_z: Floats  # (sequences,)
    counts: dict[Key, Floats]  # like the values given
    state: list[Floats]  # per level (N, S)
    ending: list[Floats]  # per level (N,)
    segments: dict[int, Floats]  # per requested level (N, L, S), by first step and length - 1
