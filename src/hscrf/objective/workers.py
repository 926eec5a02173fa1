"""Threads that work on chunks of sequences."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.objective.blas import one_blas_thread
from hscrf.objective.kernels import add_and_clear
from hscrf.objective.tree import TreeSum

Item = TypeVar("Item")
Result = TypeVar("Result")

CHUNK = 8192  # packed steps that are worked on at a time
STRANDS = 8  # items of a shard are dealt to this many partial sums
AHEAD = 4  # results for each thread that may wait to be taken


class Workers:
    """Maps a function over items on ``n_jobs`` threads, results in order; kernels release the interpreter's lock.

    Used as a context it holds BLAS to one thread, so that only these threads work.
    """

    def __init__(self, n_jobs: int = 1) -> None:
        if n_jobs != -1 and not n_jobs >= 1:
            raise ValueError(f"n_jobs is {n_jobs!r}, expected the number of threads, or -1 for one per core")
        self.n_jobs = n_jobs = (os.cpu_count() or 1) if n_jobs == -1 else n_jobs
        self.pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None
        self.blas = one_blas_thread()
        self.spare: list[Floats] = []  # vectors of zeros that sums have used

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results of the function in the order of the items."""
        return list(self.each(function, items))

    def each(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The same one by one, so that each result can be done with before the next; few wait to be taken."""
        if self.pool is None:
            yield from map(function, items)
            return
        begun: deque[Future[Result]] = deque()
        try:
            for item in items:
                begun.append(self.pool.submit(function, item))
                if len(begun) > AHEAD * self.n_jobs:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            for future in begun:
                future.cancel()

    def sum(
        self, add: Callable[[Item, Floats], float], shards: Sequence[Sequence[Item]], size: int
    ) -> tuple[float, Floats]:
        """Sum a number and a vector over the items of shards: ``add`` adds an item's to the vector, returns its number.

        The items of a shard are dealt to partial sums, which are added in order; shards are added in a binary tree over
        their numbers: the same bits for any number of threads.
        """

        def run(strand: Sequence[Item]) -> tuple[float, Floats]:
            vector = self._zeros(size)
            return sum((add(item, vector) for item in strand), start=0.0), vector

        deals = [[items[k::STRANDS] for k in range(min(STRANDS, len(items)))] for items in shards]
        found = self.each(run, chain.from_iterable(deals))
        tree = TreeSum()
        for strands in deals or [[]]:
            total, vector = next(found) if strands else (0.0, np.zeros(size))
            for number, partial in islice(found, len(strands) - 1 if strands else 0):
                total += number
                add_and_clear(vector, partial)
                self.spare.append(partial)
            tree.add(total, vector)
        return tree.total()

    def _zeros(self, size: int) -> Floats:
        """A vector that was used before, if there is one: new memory costs more than to write zeros."""
        try:
            vector = self.spare.pop()
        except IndexError:
            return np.zeros(size)
        return vector if vector.size == size else np.zeros(size)

    def __enter__(self) -> Workers:
        self.blas.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self.blas.__exit__(None, None, None)
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)


def cut_chunks(
    lengths: Ints, order: Ints | None = None, kinds: NDArray[Any] | None = None, size: int | None = None
) -> list[Ints]:
    """Cut sequences, in the given order, into chunks of at most ``size`` steps (or one sequence) of one kind.

    ``size`` is ``CHUNK`` unless it is given.

    The cut depends on the data alone, so that sums over chunks have the same bits for any number of threads.
    """
    order = np.arange(len(lengths)) if order is None else order
    most = CHUNK if size is None else size
    chunks: list[list[int]] = []
    filled = 0
    for k, n in enumerate(order.tolist()):
        length = int(lengths[n])
        other_kind = kinds is not None and k > 0 and kinds[n] != kinds[order[k - 1]]
        if not chunks or filled + length > most or other_kind:
            chunks.append([])
            filled = 0
        chunks[-1].append(n)
        filled += length
    return [np.array(chunk, dtype=np.int64) for chunk in chunks]
