"""A cost for each wrong state, which softmax-margin adds to the scores in training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hscrf.arrays import Floats
from hscrf.engine import Evidence
from hscrf.fillers import spread
from hscrf.labels.packed import PackedLabels
from hscrf.potentials import Key
from hscrf.topology import Topology

Costs = Mapping[int, Floats]  # by level index: (right states, states); zero on the diagonal
Margin = float | Mapping[str, float | Mapping[str, float]]


def equal_costs(topology: Topology, margin: Margin) -> Costs:
    """Costs that are equal for all wrong states of a level; given as one cost for all levels, or by level.

    A level may also have a cost for each right state: the cost of missing it. Missing a state that is not named costs
    nothing.
    """
    by_level = margin if isinstance(margin, Mapping) else dict.fromkeys(topology.levels, margin)
    costs = {}
    for level, cost in by_level.items():
        d = topology.level(level)
        row = np.zeros(topology.n_states[d])
        if isinstance(cost, Mapping):
            for state, own in cost.items():
                row[topology.state(d, state)] = own
        else:
            row[:] = cost
        if row.any() and topology.n_states[d] > 1:
            costs[d] = row[:, None] * (1.0 - np.eye(row.size))
    return costs


def hidden_costs(topology: Topology, d: int, costs: Floats) -> Floats:
    """Costs (H, H) of hidden states, from those (S, S) of states; a copy of the right state costs nothing."""
    return spread(topology, "token", d, spread(topology, "token", d, costs).T).T


def costs_of_steps(costs: Costs, labels: PackedLabels | Evidence) -> dict[int, Floats]:
    """The cost (N, S) of each state at each step of packed labels, by level; none where all states are right.

    Where several states are right, a wrong state has the lowest of its costs against them.
    """
    if isinstance(labels, PackedLabels):
        return {d: table[labels.states[d]] for d, table in costs.items()}
    found = {}
    for d, table in costs.items():
        sets = labels.allowed[d]
        if sets is not None:
            cost = np.full(sets.shape, np.inf)
            for state, row in enumerate(table):
                np.minimum(cost, row, out=cost, where=sets[:, state, None])
            found[d] = cost
    return found


def add_costs(values: dict[Key, Floats], costs: Mapping[int, Floats]) -> None:
    """Add costs (N, S) to the token scores. Right states cost nothing, so the scores of the labels do not change."""
    for d, cost in costs.items():
        values["token", d] = values["token", d] + cost if ("token", d) in values else cost
