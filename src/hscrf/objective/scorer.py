"""From weights to log-potentials, from counts to gradients, block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np

from hscrf.arrays import Floats
from hscrf.features.blocks import Block
from hscrf.fillers import masked, pulled, spread
from hscrf.observations.packed import Observations
from hscrf.potentials import Key
from hscrf.topology import Topology

Counts = Mapping[Key, Floats]


class Scorer:
    """A linear map from one vector of weights to the log-potentials of packed observations, and its transpose.

    Let b be the blocks, with weights w_b. ``values`` returns for each array of potentials the sum of ``b.add(w_b)``
    over its blocks. ``pull`` adds ``b.pull(counts)`` to the gradient with respect to w_b. Arrays and counts are
    those of the engine: copies of fillers share the scores of their state (:mod:`hscrf.fillers`).
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
        """Shapes of all arrays of the engine for a number of steps."""
        if not self.topology.remembers:
            return self._shapes(steps)
        empty = {key: np.broadcast_to(0.0, shape) for key, shape in self._shapes(steps).items()}
        return {key: values.shape for key, values in self._spread(empty).items()}

    def _shapes(self, steps: int) -> dict[Key, tuple[int, ...]]:
        """Shapes of the arrays that blocks feed; several blocks may feed the same array."""
        return {key: (steps, *shape) for key, shape in self.timed.items()} | self.constant

    def _spread(self, values: Mapping[Key, Floats]) -> dict[Key, Floats]:
        """The engine's arrays from those that blocks feed."""
        return masked(self.topology, {key: spread(self.topology, *key, table) for key, table in values.items()})

    def values(
        self, weights: Floats, observations: Observations, factors: Sequence[float] | None = None
    ) -> dict[Key, Floats]:
        """Log-potentials of all steps of the observations; ``factors`` multiply the weights of each block."""
        values = {key: np.zeros(shape) for key, shape in self._shapes(observations.steps).items()}
        for k, (block, piece) in enumerate(self.pieces(weights)):
            factor, out = 1.0 if factors is None else factors[k], values[block.key]
            if block.timed or out.shape == block.shape:
                block.add(piece, observations, out, factor)
            else:  # a constant table, added to one that varies in time
                constant = np.zeros(block.shape)
                block.add(piece, observations, constant, factor)
                out += constant
        return self._spread(values) if self.topology.remembers else values

    def pull(self, counts: Counts, observations: Observations, gradient: Floats) -> None:
        """Add to the gradient with respect to the weights, from counts of all steps of the observations."""
        counts = self._pulled(counts)
        for block, piece in self.pieces(gradient):
            block.pull(_of_block(counts, block), observations, piece)

    def _pulled(self, counts: Counts) -> Counts:
        """Counts in the shapes that blocks feed: those of copies are added."""
        if not self.topology.remembers:
            return counts
        return {key: pulled(self.topology, *key, table) for key, table in counts.items()}

    def move(self, counts: Counts, observations: Observations, *moves: tuple[Floats, Sequence[float]]) -> None:
        """Add the gradient, as ``pull`` does, to one or two vectors, times a factor for each block."""
        counts = self._pulled(counts)
        for k, (block, piece) in enumerate(zip(self.blocks, self.slices, strict=True)):
            targets = [part for vector, factors in moves for part in (vector[piece], factors[k])]
            pull = block.pull if len(moves) == 1 else block.pull_twice
            pull(_of_block(counts, block), observations, *targets)  # type: ignore[arg-type]


def _of_block(counts: Counts, block: Block) -> Floats:
    """The counts that the gradient of a block depends on."""
    found = counts[block.key]
    if not block.timed and found.shape != block.shape:  # a constant table, added to one that varies in time
        return found.sum(axis=0, keepdims=True)
    return found
