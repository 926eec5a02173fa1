"""A cost for each wrong state, which softmax-margin adds to the scores in training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hscrf.arrays import Floats
from hscrf.engine import Evidence
from hscrf.labels.packed import Known
from hscrf.potentials import Key
from hscrf.topology import Topology

Costs = Mapping[
    int, Floats
]  # by level index: (S, S), of each state in the place of the right one; zero on the diagonal


def equal_costs(topology: Topology, margin: float | Mapping[str, float]) -> Costs:
    """The same cost for every wrong state of a level: that of all levels, or of each that is named."""
    by_level = margin if isinstance(margin, Mapping) else dict.fromkeys(topology.levels, margin)
    costs = {}
    for level, cost in by_level.items():
        d = topology.level(level)
        if cost and topology.n_states[d] > 1:
            costs[d] = cost * (1.0 - np.eye(topology.n_states[d]))
    return costs


def costs_of_steps(costs: Costs, labels: Known | Evidence) -> dict[int, Floats]:
    """The cost (N, S) of each state at each step of packed labels, by level; none where all states are right.

    Where a set of states is right, another costs what it costs in the place of the one it resembles most.
    """
    if isinstance(labels, Known):
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
    """Add costs (N, S) to the token scores. Those of the labels stay as they are, for what is right costs nothing."""
    for d, cost in costs.items():
        values["token", d] = values["token", d] + cost if ("token", d) in values else cost
