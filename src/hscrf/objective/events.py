"""The counts of complete labels, as the few cells that are not zero."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.features.events import family_events
from hscrf.labels.packed import Known
from hscrf.potentials import FAMILY, Key, explicit_lengths
from hscrf.topology import UNLIMITED, Topology


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


def events(topology: Topology, shapes: Mapping[Key, tuple[int, ...]], known: Known, key: Key) -> tuple[Ints, Ints]:
    """Flat indices into an array of the events of one part of complete labels, and the packed steps they happen at.

    ``shapes`` are those of all arrays. A segment of an open state counts as one of the longest explicit duration, and
    as an event of ``tail`` for each step beyond it.
    """
    part, d = key
    shape = shapes[key]
    if part in FAMILY:
        steps, cells, _ = family_events(topology, known, key)
        return (steps * int(np.prod(shape[1:])) + cells if shape[0] > 1 else cells), steps
    states = topology.n_states[d]
    if part == "token":
        steps = np.arange(known.states.shape[1])
        return steps * states + known.states[d], steps
    stop = np.flatnonzero(known.ends[d] == 1)
    start = np.concatenate([[0], stop[:-1] + 1])
    state, length = known.states[d][stop].astype(np.int64), stop - start
    if part in ("duration", "segment", "tail") and d in topology.open_levels:
        longest = np.where(topology.open_duration[d], explicit_lengths(topology, d, shapes), UNLIMITED)[state]
        beyond = np.maximum(length + 1 - longest, 0)
        length = length - beyond
        if part == "tail":
            return np.repeat(state, beyond), np.repeat(start, beyond)
    if part == "duration":
        return length * states + state, start
    if part == "segment":
        return (start * shape[1] + length) * states + state, start
    at = start if part == "start" else stop
    return at * states + state, at
