"""Find the labels that contradict each other, given the potentials of their sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from hscrf.errors import Cell, InfeasibleError
from hscrf.labels.cells import end_cell, set_cell, state_cell
from hscrf.labels.labels import Labels

Item = TypeVar("Item")
Fact = tuple[int, str, int]  # time, "state", "end" or "set", level


def infeasible(length: int, evidence: Labels | None, possible: Callable[[Labels | None], bool]) -> InfeasibleError:
    """Return the error for steps without a possible configuration: it names contradicting labels, if any.

    ``possible`` returns whether any configuration agrees with some evidence.
    """
    if evidence is None or not possible(None):
        what = f"{length} steps" + ("" if evidence is None else ", whatever the evidence")
        return InfeasibleError(f"the potentials and the topology allow no configuration of {what}")
    cells = conflict(evidence, possible)
    problem = f"no segmentation agrees with the evidence: {' and '.join(map(str, cells))}"
    return InfeasibleError(problem, cells=cells)


def conflict(evidence: Labels, possible: Callable[[Labels | None], bool]) -> list[Cell]:
    """A smallest set of labels that contradict each other: none of them can be left out.

    Labels are tried in the order of time; halving finds each member in O(log n) inferences.
    """
    core = smallest_core(known_facts(evidence), lambda facts: possible(with_facts(evidence, facts)))
    return [cell_of(evidence, fact) for fact in core]


def smallest_core(items: Sequence[Item], possible: Callable[[list[Item]], bool]) -> list[Item]:
    """Return a smallest set of items that is impossible, in their order; none if all of them together are possible.

    Halving finds each member in O(log n) calls of ``possible``.

    >>> smallest_core([1, 2, 3, 4, 5], lambda some: not {2, 4} <= set(some))
    [2, 4]
    """
    core: list[Item] = []
    high = len(items)
    while high > 0:
        # the shortest prefix that, with the core, is impossible; its last item belongs to the core
        low = 0
        while low < high:
            middle = (low + high) // 2
            if possible([*items[:middle], *core]):
                low = middle + 1
            else:
                high = middle
        if low == 0:
            break
        core.append(items[low - 1])
        high = low - 1
    return core[::-1]


def known_facts(labels: Labels) -> list[Fact]:
    """Every known state, ending indicator and set of allowed states, in the order of time."""
    facts: list[Fact] = []
    for d, level in enumerate(labels.topology.levels):
        facts += [(int(t), "state", d) for t in np.flatnonzero(labels.states[d] >= 0)]
        facts += [(int(t), "end", d) for t in np.flatnonzero(labels.ends[d] != -1)]
        if labels.allowed and level in labels.allowed:
            facts += [(int(t), "set", d) for t in np.flatnonzero(~labels.allowed[level].all(axis=1))]
    return sorted(facts)


def with_facts(labels: Labels, facts: list[Fact]) -> Labels:
    """Labels with only some facts known."""
    states = np.full_like(labels.states, -1)
    ends = np.full_like(labels.ends, -1)
    allowed = {level: np.ones_like(sets) for level, sets in (labels.allowed or {}).items()}
    for t, kind, d in facts:
        if kind == "state":
            states[d, t] = labels.states[d, t]
        elif kind == "end":
            ends[d, t] = labels.ends[d, t]
        else:
            level = labels.topology.levels[d]
            allowed[level][t] = labels.allowed[level][t]  # type: ignore[index]
    return Labels(labels.topology, states, ends, allowed or None)


def cell_of(labels: Labels, fact: Fact) -> Cell:
    """The cell of a fact."""
    t, kind, d = fact
    topology = labels.topology
    if kind == "state":
        return state_cell(topology, d, t, int(labels.states[d, t]))
    if kind == "end":
        return end_cell(topology, d, t, int(labels.ends[d, t]))
    return set_cell(topology, d, t, labels.allowed[topology.levels[d]][t])  # type: ignore[index]
