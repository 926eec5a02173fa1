"""Which labels contradict each other, given the potentials of their sequence."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from hscrf.errors import Cell, InfeasibleError
from hscrf.inference.single import plan_of, values_of
from hscrf.labels.cells import end_cell, set_cell, state_cell
from hscrf.labels.labels import Labels
from hscrf.potentials import Potentials

Fact = tuple[int, str, int]  # time, "state", "end" or "set", level


def feasible(value: float, potentials: Potentials, evidence: Labels | None) -> float:
    """Return a log mass; if it is -inf, raise and name the labels that contradict each other."""
    if value > -np.inf:
        return value
    raise explanation(potentials, evidence)


def refuse(potentials: Potentials, labels: Labels | None, name: str, n: int) -> NoReturn:
    """Raise for a sequence without any possible configuration, and say which of its labels contradict each other.

    The potentials must be those of this sequence: what they forbid is part of the contradiction. The error names
    ``name[n]``, or ``X[n]`` if there are no labels.
    """
    raise explanation(potentials, labels).of_sequence(n, "X" if labels is None else name)


def explanation(potentials: Potentials, evidence: Labels | None) -> InfeasibleError:
    """The error that says why no configuration is possible: which labels contradict each other, if any do."""
    if evidence is None or not is_possible(potentials, None):
        what = f"{potentials.length} steps" + ("" if evidence is None else ", whatever the evidence")
        return InfeasibleError(f"the potentials and the topology allow no configuration of {what}")
    cells = conflict(potentials, evidence)
    problem = f"no segmentation agrees with the evidence: {' and '.join(map(str, cells))}"
    return InfeasibleError(problem, cells=cells)


def is_possible(potentials: Potentials, evidence: Labels | None) -> bool:
    """Whether any configuration agrees with the evidence."""
    try:
        return plan_of(potentials, evidence).log_partition(values_of(potentials))[0] > -np.inf
    except InfeasibleError:
        return False


def conflict(potentials: Potentials, evidence: Labels) -> list[Cell]:
    """Labels that contradict each other, and none that can be left out without resolving the contradiction.

    Labels are tried in the order of time; halving finds each member in O(log n) inferences.
    """
    facts = known_facts(evidence)
    core: list[Fact] = []
    low, high = 0, len(facts)
    while high > 0:
        # the shortest prefix that, with the core, is impossible; its last label belongs to the core
        low = 0
        while low < high:
            middle = (low + high) // 2
            if is_possible(potentials, only(evidence, facts[:middle] + core)):
                low = middle + 1
            else:
                high = middle
        if low == 0:
            break
        core.append(facts[low - 1])
        high = low - 1
    return [cell_of(evidence, fact) for fact in reversed(core)]


def known_facts(labels: Labels) -> list[Fact]:
    """Every known state, ending indicator and set of allowed states, in the order of time."""
    facts: list[Fact] = []
    for d, level in enumerate(labels.topology.levels):
        facts += [(int(t), "state", d) for t in np.flatnonzero(labels.states[d] >= 0)]
        facts += [(int(t), "end", d) for t in np.flatnonzero(labels.ends[d] >= 0)]
        if labels.allowed and level in labels.allowed:
            facts += [(int(t), "set", d) for t in np.flatnonzero(~labels.allowed[level].all(axis=1))]
    return sorted(facts)


def only(labels: Labels, facts: list[Fact]) -> Labels:
    """Labels of which only some facts are known."""
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
        return end_cell(topology, d, t, bool(labels.ends[d, t]))
    return set_cell(topology, d, t, labels.allowed[topology.levels[d]][t])  # type: ignore[index]
