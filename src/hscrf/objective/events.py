"""The counts of complete labels, as the few cells that are not zero."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.labels.events import events
from hscrf.labels.packed import Known
from hscrf.potentials import FAMILY, Key
from hscrf.topology import Topology


class LabelCounts:
    """Counts of packed complete labels: what expected counts are when all is known.

    For each array of potentials the flat indices of its cells, each once, and how often their events happen, each
    sequence's times its weight.
    """

    def __init__(
        self, topology: Topology, shapes: Mapping[Key, tuple[int, ...]], known: Known, weights: Floats | None = None
    ) -> None:
        each = None if weights is None else np.repeat(weights, np.diff(known.offsets))
        self.cells: dict[Key, tuple[Ints, Floats]] = {}
        for key, shape in shapes.items():
            cells, steps = events(topology, shapes, known, key)
            amounts = np.ones(len(cells)) if each is None else each[steps]
            if key[0] in ("duration", "tail") or (key[0] in FAMILY and shape[0] == 1):  # the same cell at many steps
                totals = np.bincount(cells, amounts).astype(np.float64)
                cells = np.flatnonzero(totals)
                amounts = totals[cells]
            self.cells[key] = cells, amounts

    def score(self, values: Mapping[Key, Floats]) -> float:
        """The weighted sum of the log scores of the labels."""
        return sum(float(amounts @ values[key].reshape(-1)[cells]) for key, (cells, amounts) in self.cells.items())

    def add_to(self, counts: dict[Key, Floats], factor: float = 1.0) -> None:
        """Add these counts, times a factor, to arrays of their shapes."""
        for key, (cells, amounts) in self.cells.items():
            table = np.ascontiguousarray(counts[key])
            table.reshape(-1)[cells] += factor * amounts
            counts[key] = table
