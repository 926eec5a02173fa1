"""From weights to log-potentials, from counts to gradients, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from hscrf.arrays import Floats
from hscrf.features.blocks import Block
from hscrf.observations.packed import Observations
from hscrf.potentials import FAMILY, Key
from hscrf.topology import Topology


class Scorer:
    """Turns weights into the log-potentials of packed observations, block by block."""

    def __init__(self, topology: Topology, blocks: Sequence[Block]) -> None:
        self.topology = topology
        self.blocks = blocks
        bounds = np.cumsum([0, *(block.size for block in blocks)])
        self.slices = [slice(a, b) for a, b in pairwise(bounds)]
        self.size = int(bounds[-1])

    def shapes(self, steps: int) -> dict[Key, tuple[int, ...]]:
        """Shapes of all arrays for a number of steps; several blocks may feed one array."""
        shapes: dict[Key, tuple[int, ...]] = {}
        timed = {block.key for block in self.blocks if block.timed}
        for block in self.blocks:
            shape = (steps, *block.shape) if block.timed else block.shape
            if block.key in timed and block.key[0] in FAMILY:
                shape = (steps, *shape[1:])
            shapes[block.key] = shape
        return shapes

    def values(self, weights: Floats, seen: Observations) -> dict[Key, Floats]:
        """Log-potentials of all steps of the observations."""
        values = {key: np.zeros(shape) for key, shape in self.shapes(seen.steps).items()}
        for block, piece in zip(self.blocks, self.slices, strict=True):
            out = values[block.key]
            if block.timed or out.shape == block.shape:
                block.add(weights[piece], seen, out)
            else:  # a constant table beside one that varies in time
                constant = np.zeros(block.shape)
                block.add(weights[piece], seen, constant)
                out += constant
        return values

    def pull(self, counts: dict[Key, Floats], seen: Observations, gradient: Floats) -> None:
        """Add to the gradient with respect to the weights, from counts of all steps of the observations."""
        for block, piece in zip(self.blocks, self.slices, strict=True):
            block.pull(counts_for(block, counts), seen, gradient[piece])


def counts_for(block: Block, counts: dict[Key, Floats]) -> Floats:
    """The counts of a block's array, summed over time for a constant table."""
    found = counts[block.key]
    if not block.timed and found.shape != block.shape:
        return found.sum(axis=0, keepdims=True)
    return found
