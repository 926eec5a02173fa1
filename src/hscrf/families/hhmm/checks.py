"""Check the arguments, the topology and the probabilities of a hierarchical HMM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hscrf.families.hhmm.emissions import Categorical
from hscrf.topology import Topology

if TYPE_CHECKING:
    from hscrf.families.hhmm.model import HHMM


def check_components(n: Any, topology: Topology | None) -> None:
    """Raise unless ``n_components``, if given, is a positive integer and no topology is given."""
    if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise ValueError(f"n_components is {n!r}, expected the number of states")
    if n is not None and topology is not None:
        raise ValueError("there are both n_components and a topology, expected one of them")


def check_generative(topology: Topology) -> None:
    """Raise an error for a topology with durations, which an HHMM cannot have."""
    for d, level in enumerate(topology.levels):
        if topology.has_limits(d):
            raise ValueError(f"level {level!r} has limited durations, which an HHMM cannot have")
    if not topology.unit_bottom:
        raise ValueError(f"the bottom level {topology.levels[-1]!r} persists, expected segments of length 1")


def check_normalised(model: HHMM) -> None:
    """Raise unless the probabilities of alternative events sum to one."""
    topology = model.topology_
    sums = {"root": model.root_.sum()}
    if isinstance(model.emission_, Categorical):
        sums["emission"] = model.emission_.probability.sum(axis=-1)
    for d, level in enumerate(topology.levels[:-1]):
        sums[f"init[{level!r}]"] = model.init_[level].sum(axis=-1)
        free = topology.children[d]
        if level not in model.end_:  # a child without successors is the last
            free = free & (topology.children[d] @ topology.successors[d + 1].T)
        sums[f"trans[{level!r}] and end[{level!r}]"] = (model.trans_[level].sum(axis=-1) + model.end_.get(level, 0.0))[
            free
        ]
    for name, found in sums.items():
        if not np.allclose(found, 1, rtol=0, atol=1e-6):
            raise ValueError(f"{name} sums to {np.round(found, 6)} over what the topology allows, expected 1")
