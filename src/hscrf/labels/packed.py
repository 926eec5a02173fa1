"""Labels of several sequences one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.labels.labels import Labels


@dataclass(frozen=True)
class Known:
    """Packed labels: states and ends (D, N), -1 where unknown."""

    states: NDArray[np.int32]
    ends: NDArray[np.int8]
    offsets: Ints

    def complete(self, *levels: int) -> bool:
        return all((self.states[d] >= 0).all() and (self.ends[d] >= 0).all() for d in levels)


def pack_labels(labels: Sequence[Labels]) -> Known:
    """States and ends of several sequences one after the other."""
    offsets = np.concatenate([[0], np.cumsum([y.length for y in labels])]).astype(np.int64)
    states = np.concatenate([y.states for y in labels], axis=1)
    ends = np.concatenate([y.ends for y in labels], axis=1)
    return Known(states, ends, offsets)
