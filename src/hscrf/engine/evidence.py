"""What is known of a packed batch, in the engine's form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import InfeasibleError
from hscrf.labels.labels import Labels
from hscrf.topology import Topology


@dataclass(frozen=True)
class Evidence:
    """What is known of a packed batch of N steps, closed under the hierarchy's rules."""

    may_end: NDArray[np.bool_]  # (D, N)
    may_go_on: NDArray[np.bool_]  # (D, N)
    allowed: tuple[NDArray[np.bool_] | None, ...]  # per level (N, S), or None: every state

    @classmethod
    def none(cls, topology: Topology, offsets: NDArray[np.int64]) -> Evidence:
        """Nothing but the frame: every level ends at the last step, the root only there."""
        may_end = np.ones((topology.depth, offsets[-1]), dtype=bool)
        may_end[0] = False
        may_end[0, offsets[1:] - 1] = True
        may_go_on = np.ones_like(may_end)
        may_go_on[:, offsets[1:] - 1] = False
        if topology.unit_bottom:
            may_go_on[-1] = False
        return cls(may_end, may_go_on, (None,) * topology.depth)

    def take(self, steps: NDArray[np.int64]) -> Evidence:
        """The evidence of some of the packed steps."""
        allowed = tuple(None if sets is None else sets[steps] for sets in self.allowed)
        return Evidence(self.may_end[:, steps], self.may_go_on[:, steps], allowed)


def pack_evidence(labels: Sequence[Labels], which: Iterable[int], name: str = "Y") -> Evidence:
    """Closed labels of some sequences as the engine takes them."""
    closed = [close(labels[n], n, name) for n in which]
    ends = np.concatenate([y.ends for y in closed], axis=1)
    allowed = []
    for level in labels[0].topology.levels:
        sets = np.concatenate([y.allowed[level] for y in closed])  # type: ignore[index]
        allowed.append(None if sets.all() else sets)
    return Evidence(ends != 0, ends != 1, tuple(allowed))


def close(labels: Labels, n: int, name: str) -> Labels:
    try:
        return labels.closed()
    except InfeasibleError as error:
        raise error.of_sequence(n, name) from None


def closed_evidence(labels: Labels) -> Evidence:
    closed = labels.closed()
    allowed = tuple(closed.allowed[level] for level in labels.topology.levels)  # type: ignore[index]
    sets = tuple(None if table.all() else table for table in allowed)
    return Evidence(closed.ends != 0, closed.ends != 1, sets)
