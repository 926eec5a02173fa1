"""From weights to log-potentials, from counts to gradients, block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np

from hscrf.arrays import Floats
from hscrf.features.blocks import Block
from hscrf.observations.packed import Observations
from hscrf.potentials import Key
from hscrf.topology import Topology

Counts = Mapping[Key, Floats]


class Scorer:
    """A linear map from one vector of weights to the log-potentials of packed observations, and its transpose.

    With blocks b of weights w_b, ``values`` gives for each array of potentials the sum of ``b.add(w_b)`` over the
    blocks that feed it; ``pull`` adds ``b.pull(counts)`` to the gradient with respect to w_b.
    """

    def __init__(self, topology: Topology, blocks: Sequence[Block]) -> None:
        self.topology = topology
        self.blocks = blocks
        bounds = list(accumulate((block.size for block in blocks), initial=0))
        self.slices = [slice(a, b) for a, b in pairwise(bounds)]
        self.size = bounds[-1]
        self.timed = {block.key: block.shape for block in blocks if block.timed}  # of one step
        self.constant = {block.key: block.shape for block in blocks if block.key not in self.timed}

    def pieces(self, flat: Floats) -> list[tuple[Block, Floats]]:
        """Each block and its part of a vector as long as the weights: a view, not a copy."""
        return [(block, flat[piece]) for block, piece in zip(self.blocks, self.slices, strict=True)]

    def shapes(self, steps: int) -> dict[Key, tuple[int, ...]]:
        """Shapes of all arrays for a number of steps; several blocks may feed one array."""
        return {key: (steps, *shape) for key, shape in self.timed.items()} | self.constant

    def values(
        self, weights: Floats, observations: Observations, factors: Sequence[float] | None = None
    ) -> dict[Key, Floats]:
        """Log-potentials of all steps of the observations; ``factors`` multiply the weights of each block."""
        values = {key: np.zeros(shape) for key, shape in self.shapes(observations.steps).items()}
        for k, (block, piece) in enumerate(self.pieces(weights)):
            factor, out = 1.0 if factors is None else factors[k], values[block.key]
            if block.timed or out.shape == block.shape:
                block.add(piece, observations, out, factor)
            else:  # a constant table beside one that varies in time
                constant = np.zeros(block.shape)
                block.add(piece, observations, constant, factor)
                out += constant
        return values

    def pull(self, counts: Counts, observations: Observations, gradient: Floats) -> None:
        """Add to the gradient with respect to the weights, from counts of all steps of the observations."""
        for block, piece in self.pieces(gradient):
            block.pull(_of_block(counts, block), observations, piece)

    def move(self, counts: Counts, observations: Observations, *moves: tuple[Floats, Sequence[float]]) -> None:
        """The same into one or two vectors, what goes to each block of a vector times a factor of its own."""
        for k, (block, piece) in enumerate(zip(self.blocks, self.slices, strict=True)):
            targets = [part for vector, factors in moves for part in (vector[piece], factors[k])]
            pull = block.pull if len(moves) == 1 else block.pull_twice
            pull(_of_block(counts, block), observations, *targets)  # type: ignore[arg-type]


def _of_block(counts: Counts, block: Block) -> Floats:
    """The counts that a block pulls on."""
    found = counts[block.key]
    if not block.timed and found.shape != block.shape:  # a constant table beside one that varies in time
        return found.sum(axis=0, keepdims=True)
    return found
