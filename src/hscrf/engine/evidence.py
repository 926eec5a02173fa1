"""Known labels of a packed batch, in the engine's form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.fillers import hidden_sets
from hscrf.labels.cells import WITH_PARENT
from hscrf.labels.labels import Labels
from hscrf.labels.packed import PackedLabels, pack_labels
from hscrf.topology import Topology


@dataclass(frozen=True)
class Evidence:
    """Known labels of a packed batch of N steps, closed under the hierarchy's rules."""

    may_end: NDArray[np.bool_]  # (D, N)
    may_go_on: NDArray[np.bool_]  # (D, N)
    may_follow: NDArray[np.bool_]  # (D, N) may a segment end at t under a parent that goes on
    allowed: tuple[NDArray[np.bool_] | None, ...]  # per level (N, S) of hidden states, or None: every state

    @classmethod
    def none(cls, topology: Topology, offsets: Ints) -> Evidence:
        """No labels: every level ends at the last step, the root only there."""
        may_end = np.ones((topology.depth, offsets[-1]), dtype=bool)
        may_end[0] = False
        may_end[0, offsets[1:] - 1] = True
        may_go_on = np.ones_like(may_end)
        may_go_on[:, offsets[1:] - 1] = False
        if topology.unit_bottom:
            may_go_on[-1] = False
        return cls(may_end, may_go_on, np.ones_like(may_end), (None,) * topology.depth)

    @classmethod
    def of(cls, closed: Sequence[Labels]) -> Evidence:
        """Labels of several sequences that :meth:`Labels.closed` gave, one after the other."""
        topology = closed[0].topology
        sets = [np.concatenate([y.allowed[level] for y in closed]) for level in topology.levels]  # type: ignore[index]
        return cls.of_packed(topology, pack_labels(closed), sets)

    @classmethod
    def of_packed(cls, topology: Topology, known: PackedLabels, sets: Sequence[NDArray[np.bool_]]) -> Evidence:
        """Labels of several sequences that :func:`hscrf.labels.packed.close_packed` gave."""
        ends, allowed = known.ends, tuple(None if own.all() else own for own in sets)
        found = hidden_sets(topology, allowed, known.states, ends, known.offsets)
        return cls(ends != 0, ends != 1, ends != WITH_PARENT, found)

    def take(self, steps: Ints) -> Evidence:
        """The evidence of some of the packed steps."""
        allowed = tuple(None if sets is None else sets[steps] for sets in self.allowed)
        return Evidence(self.may_end[:, steps], self.may_go_on[:, steps], self.may_follow[:, steps], allowed)
