"""Small fixed bundles of sequences, made ready to be met again and again by learners that take a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.objective.chunk import Chunk
from hscrf.potentials import Key

Explained = Callable[[Callable[[], Floats], Ints], AbstractContextManager[None]]
Moves = Sequence[tuple[Floats, Sequence[float]]]


class Bundle:
    """A few sequences: their loss, and steps along its gradient that touch only the weights of their features.

    Weights come as a vector and a factor for each block of them. What ``loss`` or ``mistakes`` found is opaque;
    ``move`` adds the gradient to vectors, times a factor for each block.
    """

    def __init__(self, chunk: Chunk, which: Ints, explained: Explained) -> None:
        self.chunk = chunk
        self.which = which
        self.explained = explained

    def __len__(self) -> int:
        return self.which.size

    def loss(self, base: Floats, factors: Floats) -> tuple[float, dict[Key, Floats]]:
        """The loss, and what ``move`` needs of its gradient."""
        with self.explained(lambda: self._weights(base, factors), self.which):
            return self.chunk.surplus(base, factors.tolist())

    def mistakes(self, base: Floats, factors: Floats) -> tuple[float, dict[Key, Floats] | None]:
        """By how much the best labels outscore the true ones, and what ``move`` needs; None if there is no mistake."""
        with self.explained(lambda: self._weights(base, factors), self.which):
            return self.chunk.best_surplus(base, factors.tolist())

    def move(self, found: dict[Key, Floats], moves: Moves) -> None:
        """Add the gradient to each vector, times its factors."""
        self.chunk.scorer.move(found, self.chunk.observations, *moves)

    def _weights(self, base: Floats, factors: Floats) -> Floats:
        weights = base.copy()
        for (_, piece), factor in zip(self.chunk.scorer.pieces(weights), factors, strict=True):
            piece *= factor
        return weights


def bundled(lengths: Ints, order: Ints, size: int, kinds: NDArray[np.bool_]) -> list[Ints]:
    """Bundles of at most ``size`` sequences of one kind and of like lengths; equal lengths stay in the order given.

    >>> [which.tolist() for which in bundled(np.array([3, 9, 3, 2]), np.arange(4), 2, np.ones(4, bool))]
    [[3, 0], [2, 1]]
    """
    found = []
    for kind in (False, True):
        own = order[kinds[order] == kind]
        own = own[np.argsort(lengths[own], kind="stable")]
        found += [own[begin : begin + size] for begin in range(0, own.size, size)]
    return found
