"""What a model's weights say of parents and children."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats
from hscrf.features.blocks import ConstantBlock
from hscrf.topology import Topology


def strengths(model_or_topology: Any) -> tuple[Topology, list[Floats]]:
    """The topology, and tables (S_d, S_{d+1}) of how strongly a parent has a child; -inf where it may not."""
    topology = topology_of(model_or_topology)
    tables = []
    for d in range(topology.depth - 1):
        init, trans, end = family_tables(model_or_topology, topology, d)
        tables.append(np.maximum.reduce([init, trans.max(axis=1), trans.max(axis=2), end]))
    return topology, tables


def family_tables(model_or_topology: Any, topology: Topology, d: int) -> tuple[Floats, Floats, Floats]:
    """Weights of init (S, U), trans (S, U, U) and end (S, U) for parents at level d; -inf where there is none.

    What a topology allows has weight one; so has what a model's topology allows if the model has no such weights.
    """
    child = topology.children[d]
    follows = child[:, :, None] & child[:, None, :] & topology.successors[d + 1]
    weights = {} if isinstance(model_or_topology, Topology) else _family_weights(model_or_topology, d)
    if not weights:
        init, trans = np.where(child, 1.0, -np.inf), np.where(follows, 1.0, -np.inf)
        return init, trans, init
    none = np.full(child.shape, -np.inf)
    return weights.get("init", none), weights.get("trans", np.full(follows.shape, -np.inf)), weights.get("end", none)


def topology_of(model: Any) -> Topology:
    if isinstance(model, Topology):
        return model
    if not hasattr(model, "topology_"):
        raise ValueError(f"the {type(model).__name__} has no topology_; expected a fitted model or a Topology")
    topology: Topology = model.topology_
    return topology


def weighted_blocks(model: Any) -> list[tuple[Any, Floats]]:
    """The model's feature blocks, each with its weights."""
    topology_of(model)
    bounds = np.cumsum([0, *(block.size for block in model.blocks_)]).tolist()
    return [(block, model.coef_[a:b]) for block, (a, b) in zip(model.blocks_, pairwise(bounds), strict=True)]


def _family_weights(model: Any, d: int) -> dict[str, Floats]:
    """Constant weights of init and end (S, U), trans (S, U, U), for parents at level d; -inf where there is none."""
    found: dict[str, Floats] = {}
    for block, weights in weighted_blocks(model):
        if isinstance(block, ConstantBlock) and block.key[1] == d:
            table = np.full(int(np.prod(block.shape)), -np.inf)
            table[block.cells] = weights
            found[block.key[0]] = table.reshape(block.shape[1:])
    return found


def above(table: Floats, threshold: float) -> NDArray[np.bool_]:
    return np.isfinite(table) & (table > threshold)
