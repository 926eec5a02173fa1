"""Threads for chunks of sequences: the cuts, the order of summation, and one thread for BLAS."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import chain, islice
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.observations.packed import SHARD

Item = TypeVar("Item")
Result = TypeVar("Result")

STRANDS = 8  # partial sums of a shard
AHEAD = 4  # results for each thread that may wait to be taken


class Cuts(NamedTuple):
    """Steps of a shard and of a chunk: the bits of a sum over data depend on these, not on threads or processes."""

    shard: int = SHARD
    chunk: int = 8192


CUTS = Cuts()


class Workers:
    """Maps a function over items on ``n_jobs`` threads, results in order; kernels release the interpreter's lock.

    Used as a context it holds BLAS to one thread, so that only these threads work.
    """

    def __init__(self, n_jobs: int = 1, strands: int = STRANDS) -> None:
        if n_jobs != -1 and not n_jobs >= 1:
            raise ValueError(f"n_jobs is {n_jobs!r}, expected the number of threads, or -1 for one per core")
        self.n_jobs = n_jobs = (os.cpu_count() or 1) if n_jobs == -1 else n_jobs
        self.strands = strands  # items of a shard are dealt to this many partial sums
        self.pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None
        self.blas = one_blas_thread()
        self.spare: list[Floats] = []  # vectors of zeros that sums have used

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results of the function in the order of the items."""
        return list(self.each(function, items))

    def each(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield the results of :meth:`map` one by one; only a few are computed ahead."""
        if self.pool is None:
            yield from map(function, items)
            return
        begun: deque[Future[Result]] = deque()
        try:
            for item in items:
                begun.append(self.pool.submit(function, item))
                if len(begun) > AHEAD * self.n_jobs:
                    yield result_of(begun.popleft())
            while begun:
                yield result_of(begun.popleft())
        finally:
            for future in begun:
                future.cancel()

    def sum(
        self, add: Callable[[Item, Floats], float], shards: Sequence[Sequence[Item]], size: int
    ) -> tuple[float, Floats]:
        """Sum a number and a vector over the items of shards; ``add`` adds an item's vector and returns its number.

        The items of a shard are distributed to partial sums, which are added in order. Shards are added in a binary
        tree over their numbers. So the bits are the same for any number of threads.
        """

        def run(strand: Sequence[Item]) -> tuple[float, Floats]:
            vector = self._zeros(size)
            return sum((add(item, vector) for item in strand), start=0.0), vector

        deals = [[items[k :: self.strands] for k in range(min(self.strands, len(items)))] for items in shards]
        found = self.each(run, chain.from_iterable(deals))
        tree = TreeSum()
        for strands in deals or [[]]:
            total, vector = next(found) if strands else (0.0, np.zeros(size))
            for number, partial in islice(found, len(strands) - 1 if strands else 0):
                total += number
                vector += partial
                partial[:] = 0.0
                self.spare.append(partial)
            tree.add(total, vector)
        return tree.total()

    def _zeros(self, size: int) -> Floats:
        """A vector of zeros, reused if possible: new memory costs more than writing zeros."""
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
    lengths: Ints, order: Ints | None = None, kinds: NDArray[Any] | None = None, size: int = CUTS.chunk
) -> list[Ints]:
    """Cut sequences, in the given order, into chunks of at most ``size`` steps (or one sequence) of one kind.

    The cut depends on the data alone, so that sums over chunks have the same bits for any number of threads.
    """
    order = np.arange(len(lengths)) if order is None else order
    chunks: list[list[int]] = []
    filled = 0
    for k, n in enumerate(order.tolist()):
        length = int(lengths[n])
        other_kind = kinds is not None and k > 0 and kinds[n] != kinds[order[k - 1]]
        if not chunks or filled + length > size or other_kind:
            chunks.append([])
            filled = 0
        chunks[-1].append(n)
        filled += length
    return [np.array(chunk, dtype=np.int64) for chunk in chunks]


# -- one order of summation: a binary tree over the numbers of the shards


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
        """The sum of all items; there must be at least one."""
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


# -- one thread for BLAS while our own threads are at work

_lock = Lock()
_former: list[tuple[Any, int]] = []  # libraries and the threads they had before the first hold
_holds = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold the BLAS libraries of this process to one thread; the last of several holds, in any threads, ends it.

    Products of a few thousand numbers gain nothing from more threads, and idle BLAS threads take time from ours.
    """
    global _holds
    with _lock:
        if _holds == 0:
            _former[:] = [(library, library.num_threads) for library in _libraries()]
            _set_threads([(library, 1) for library, _ in _former])
        _holds += 1
    try:
        yield
    finally:
        with _lock:
            _holds -= 1
            if _holds == 0:
                _set_threads(_former)


def _set_threads(wanted: list[tuple[Any, int]]) -> None:
    for library, n in wanted:
        library.set_num_threads(n)


@cache
def _libraries() -> list[Any]:
    """Handles of the BLAS libraries that are loaded, numpy's among them; found once, for it takes 0.1 ms."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def result_of(future: Future[Result]) -> Result:
    """Wait for a result; raise KeyboardInterrupt if one comes meanwhile.

    If a signal comes while ``Future.result`` releases its lock, Python raises a RuntimeError instead.
    """
    try:
        return future.result()
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
