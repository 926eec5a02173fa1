"""Which labels contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hscrf.errors import InfeasibleError
from hscrf.labels.labels import Labels


def infeasible(length: int, evidence: Labels | None, possible: Callable[[Labels | None], bool]) -> InfeasibleError:
    """The error for a sequence without any configuration; it says which labels contradict each other.

    ``possible`` tells whether any configuration agrees with some evidence.
    """
    if evidence is None or not possible(None):
        what = f"{length} steps" + ("" if evidence is None else ", whatever the evidence")
        return InfeasibleError(f"the potentials and the topology allow no configuration of {what}")
    core = [describe(evidence, cell) for cell in conflict(evidence, possible)]
    return InfeasibleError(f"no segmentation agrees with the evidence: {' and '.join(core)}")


def conflict(evidence: Labels, possible: Callable[[Labels | None], bool]) -> list[Cell]:
    """A smallest set of labels that contradict each other: none of them can be left out.

    Labels are tried in the order of time; halving finds each member in O(log n) inferences.
    """
    cells = known_cells(evidence)
    core: list[Any] = []
    low, high = 0, len(cells)
    while high > 0:
        # the shortest prefix that, with the core, is impossible; its last label belongs to the core
        low = 0
        while low < high:
            middle = (low + high) // 2
            if possible(only(evidence, cells[:middle] + core)):
                low = middle + 1
            else:
                high = middle
        if low == 0:
            break
        core.append(cells[low - 1])
        high = low - 1
    return core[::-1]


Cell = tuple[int, str, int]  # time, "state", "end" or "set", level


def known_cells(labels: Labels) -> list[Cell]:
    """Every known state, ending indicator and set of allowed states, in the order of time."""
    cells: list[Cell] = []
    for d, level in enumerate(labels.topology.levels):
        cells += [(int(t), "state", d) for t in np.flatnonzero(labels.states[d] >= 0)]
        cells += [(int(t), "end", d) for t in np.flatnonzero(labels.ends[d] >= 0)]
        if labels.allowed and level in labels.allowed:
            cells += [(int(t), "set", d) for t in np.flatnonzero(~labels.allowed[level].all(axis=1))]
    return sorted(cells)


def only(labels: Labels, cells: list[Cell]) -> Labels:
    """The labels with nothing but some cells known."""
    states = np.full_like(labels.states, -1)
    ends = np.full_like(labels.ends, -1)
    allowed = {level: np.ones_like(sets) for level, sets in (labels.allowed or {}).items()}
    for t, kind, d in cells:
        if kind == "state":
            states[d, t] = labels.states[d, t]
        elif kind == "end":
            ends[d, t] = labels.ends[d, t]
        else:
            level = labels.topology.levels[d]
            allowed[level][t] = labels.allowed[level][t]  # type: ignore[index]
    return Labels(labels.topology, states, ends, allowed or None)


def describe(labels: Labels, cell: Cell) -> str:
    t, kind, d = cell
    level, names = labels.topology.levels[d], labels.topology.states[d]
    if kind == "state":
        return f"level {level!r} is {names[labels.states[d, t]]!r} at {t}"
    if kind == "end":
        return f"level {level!r} {'ends' if labels.ends[d, t] else 'goes on'} at {t}"
    kept = [names[s] for s in np.flatnonzero(labels.allowed[level][t])]  # type: ignore[index]
    return f"level {level!r} is one of {kept} at {t}"
