"""How strongly a model joins parents and children: its weights, or the probabilities of an HHMM."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats
from hscrf.estimator.contract import Labeller, Model
from hscrf.estimator.weights import strongest_copies
from hscrf.features.blocks import ConstantBlock
from hscrf.topology import Topology


def strengths(model_or_topology: Model | Topology) -> tuple[Topology, list[Floats]]:
    """The topology, and tables (S_d, S_{d+1}) of how strongly a parent has a child; -inf where it may not."""
    topology = topology_of(model_or_topology)
    tables = []
    for d in range(topology.depth - 1):
        init, trans, end = family_tables(model_or_topology, topology, d)
        tables.append(np.maximum.reduce([init, trans.max(axis=1), trans.max(axis=2), end]))
    return topology, tables


def family_tables(model_or_topology: Model | Topology, topology: Topology, d: int) -> tuple[Floats, Floats, Floats]:
    """Weights of init (S, U), trans (S, U, U) and end (S, U) for parents at level d; -inf where there is none.

    Of an HHMM they are probabilities. What a topology allows has weight one; so has what the topology of a model
    allows if the model has no such weights.
    """
    child = topology.children[d]
    follows = child[:, :, None] & child[:, None, :] & topology.successors[d + 1]
    weights = {} if isinstance(model_or_topology, Topology) else _family_weights(model_or_topology, d)
    if not weights:
        init, trans = np.where(child, 1.0, -np.inf), np.where(follows, 1.0, -np.inf)
        return init, trans, init
    none = np.full(child.shape, -np.inf)
    return weights.get("init", none), weights.get("trans", np.full(follows.shape, -np.inf)), weights.get("end", none)


def topology_of(model: Labeller | Topology) -> Topology:
    """The topology itself, or that of a fitted model."""
    if isinstance(model, Topology):
        return model
    if not hasattr(model, "topology_"):
        raise ValueError(f"the {type(model).__name__} has no topology_; expected a fitted model or a Topology")
    return model.topology_


def _family_weights(model: Model, d: int) -> dict[str, Floats]:
    """Constant weights of init and end (S, U), trans (S, U, U), for parents at level d; -inf where there is none."""
    from hscrf.families.hhmm.model import HHMM  # loaded already if there is a model

    found: dict[str, Floats] = {}
    for block, weights in model.weighted_blocks():
        if isinstance(block, ConstantBlock) and block.key[1] == d:
            table = np.full(int(np.prod(block.shape)), -np.inf)
            table[block.cells] = weights
            if isinstance(model, HHMM):
                table[table > -np.inf] = np.exp(table[table > -np.inf])
            found[block.key[0]] = strongest_copies(model.topology_, d, table.reshape(block.shape[1:]))
    return found


def above(table: Floats, threshold: float) -> NDArray[np.bool_]:
    """Where a weight exceeds the threshold."""
    return np.isfinite(table) & (table > threshold)


def measure_of(model: Model) -> str:
    """The name of what the lines of a picture show: the weights of a model, or the probabilities of an HHMM."""
    from hscrf.families.hhmm.model import HHMM

    return "probability" if isinstance(model, HHMM) else "weight"


def levels_with_transitions(model_or_topology: Model | Topology, threshold: float = 0.0) -> list[str]:
    """The levels, top to bottom, at which some state follows another by a weight above the threshold.

    If there are none, those at which some state follows itself.
    """
    topology = topology_of(model_or_topology)
    tables = [family_tables(model_or_topology, topology, d - 1)[1] for d in range(1, topology.depth)]
    arrows = [above(table, threshold) for table in tables]
    others = [found & ~np.eye(found.shape[-1], dtype=bool) for found in arrows]
    chosen = others if any(found.any() for found in others) else arrows
    return [level for level, found in zip(topology.levels[1:], chosen, strict=True) if found.any()]
