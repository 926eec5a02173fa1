"""Single cells of labels, as errors name them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import Cell
from hscrf.topology import Topology

WITH_PARENT = -2
"""An unknown end with one constraint: the segment ends there only if its parent does."""


def state_cell(topology: Topology, d: int, t: int, state: int) -> Cell:
    """Level d is in a state at t."""
    return Cell(topology.levels[d], t, f"is {topology.states[d][state]!r}")


def end_cell(topology: Topology, d: int, t: int, ends: int) -> Cell:
    """Describe an end cell: level d ends at t, goes on, or ends if and only if its parent does."""
    if ends == WITH_PARENT:
        return Cell(topology.levels[d], t, f"ends only with {topology.levels[d - 1]!r}")
    return Cell(topology.levels[d], t, "ends" if ends else "goes on")


def set_cell(topology: Topology, d: int, t: int, allowed: NDArray[np.bool_]) -> Cell:
    """Level d is in one of the allowed states (S_d,) at t."""
    return Cell(topology.levels[d], t, f"is one of {[topology.states[d][s] for s in np.flatnonzero(allowed)]}")
