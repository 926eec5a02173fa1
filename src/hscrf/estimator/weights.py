"""Weights by name: carried over to another model, read as a topology."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hscrf.arrays import Floats
from hscrf.features.blocks import Block, ConstantBlock
from hscrf.fillers import copies_of
from hscrf.labels.events import family_cells
from hscrf.observations.encoder import ObservationEncoder
from hscrf.topology import Topology


def named_weights(
    blocks: list[tuple[Block, Floats]], encoder: ObservationEncoder, topology: Topology
) -> dict[Any, float]:
    """Weights by part, level, kind of block, feature and names of states."""
    named = {}
    for block, weights in blocks:
        for name, weight in zip(weight_names(block, encoder, topology), weights.tolist(), strict=True):
            named[name] = weight
    return named


def weight_names(block: Block, encoder: ObservationEncoder, topology: Topology) -> list[Any]:
    """Return the name of each weight of a block: kind, feature, level, part, states and memory."""
    return [
        (type(block), feature, *block.locate(topology, place), block.remembered(topology, place))
        for feature, place in block.describe(encoder)
    ]


def carry_over(
    former: dict[Any, float], blocks: Sequence[Block], encoder: ObservationEncoder, topology: Topology
) -> Floats:
    """Former weights where the same feature and states of the same part still exist, else zero."""
    return np.array(
        [former.get(name, 0.0) for block in blocks for name in weight_names(block, encoder, topology)], dtype=float
    )


def strongest_copies(topology: Topology, d: int, table: Floats) -> Floats:
    """Weights of parents and children, (S, U) or (S, U, U): for each child the largest one of its hidden copies."""
    copies = copies_of(topology)
    if copies is not None:
        for axis in range(1, table.ndim):
            table = np.maximum.reduceat(table, copies.begin[d + 1], axis=axis)
    return table


def topology_from_weights(topology: Topology, blocks: list[tuple[Block, Floats]], threshold: float) -> Topology:
    """Return the topology with only the children and successors whose weights exceed the threshold."""
    strength = [np.full(table.shape, -np.inf) for table in topology.children]  # strongest weight of a child there
    follows = [np.full(table.shape, -np.inf) for table in topology.successors]
    for block, weights in blocks:
        part, d = block.key
        if part not in ("init", "trans", "end") or not isinstance(block, ConstantBlock):
            continue
        table = np.full(block.shape[1:], -np.inf)
        table.reshape(-1)[family_cells(topology, block.key)[0]] = 0.0
        table.reshape(-1)[block.cells] = weights
        table = strongest_copies(topology, d, table)
        if part == "trans":
            follows[d + 1] = np.maximum(follows[d + 1], table.max(axis=0))
            table = np.maximum(table.max(axis=1), table.max(axis=2))
        strength[d] = np.maximum(strength[d], table)
    arguments = topology.to_dict()
    names = topology.states
    for d, table in enumerate(strength):
        if (table == -np.inf).all():  # no weights concern these children
            continue
        kept = (table > threshold) & topology.children[d]
        best = np.where(topology.children[d], table, -np.inf)
        kept[np.arange(len(table)), best.argmax(axis=1)] = True
        kept[best.argmax(axis=0), np.arange(kept.shape[1])] = True
        arguments["children"][topology.levels[d]] = {
            names[d][s]: [names[d + 1][u] for u in np.flatnonzero(row)] for s, row in enumerate(kept)
        }
    for d in range(1, topology.depth):
        if (follows[d] == -np.inf).all():
            continue
        kept = (follows[d] > threshold) & topology.successors[d]
        arguments["successors"][topology.levels[d]] = {
            names[d][u]: [names[d][v] for v in np.flatnonzero(row)] for u, row in enumerate(kept)
        }
    return Topology.from_dict(arguments)
