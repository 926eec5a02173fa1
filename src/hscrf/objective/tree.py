"""One order of summation for everybody: a binary tree over the numbers of the shards."""

from __future__ import annotations

from typing import NamedTuple

from hscrf.arrays import Floats


class Subtree(NamedTuple):
    """The shards ``begin .. stop``, which can be summed apart from all others."""

    begin: int
    stop: int
    height: int


class TreeSum:
    """Sums pairs of a number and a vector in a fixed order: neighbours, then pairs of neighbours, and so on.

    Items come in the order of their numbers. The sum of an aligned subtree may be added in the place of its items: the
    same bits, whoever has summed it. At most log2(n) vectors are kept. Vectors that are given may be overwritten.

    >>> import numpy as np
    >>> tree = TreeSum()
    >>> for k in range(3):
    ...     tree.add(float(k), np.array([10.0 * k]))
    >>> tree.total()
    (3.0, array([30.]))
    """

    def __init__(self) -> None:
        self.waiting: list[tuple[int, float, Floats]] = []  # height, number, vector; heights fall

    def add(self, number: float, vector: Floats, height: int = 0) -> None:
        """Add the next item, or the sum of the next subtree of that height."""
        while self.waiting and self.waiting[-1][0] == height:
            _, left, total = self.waiting.pop()
            total += vector
            number, vector, height = left + number, total, height + 1
        self.waiting.append((height, number, vector))

    def total(self) -> tuple[float, Floats]:
        """The sum of all that was added, which must be something."""
        _, number, vector = self.waiting.pop()
        while self.waiting:
            _, left, total = self.waiting.pop()
            total += vector
            number, vector = left + number, total
        return number, vector


def subtrees(shards: int, wanted: int) -> list[Subtree]:
    """Cut shards into aligned subtrees of one height: at least as many as wanted, if there are as many shards.

    >>> [tuple(subtree) for subtree in subtrees(7, wanted=3)]
    [(0, 2, 1), (2, 4, 1), (4, 6, 1), (6, 7, 1)]
    """
    height = 0
    while 1 << height < shards and -(-shards // (2 << height)) >= wanted:
        height += 1
    return [Subtree(a, min(a + (1 << height), shards), height) for a in range(0, shards, 1 << height)]
