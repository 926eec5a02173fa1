"""Threads that work on chunks of sequences."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """Maps a function over items on ``n_jobs`` threads, results in order; kernels release the interpreter's lock."""

    def __init__(self, n_jobs: int = 1) -> None:
        if n_jobs != -1 and not n_jobs >= 1:
            raise ValueError(f"n_jobs is {n_jobs!r}, expected the number of threads, or -1 for one a core")
        self.n_jobs = n_jobs = (os.cpu_count() or 1) if n_jobs == -1 else n_jobs
        self.pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        if self.pool is None:
            return [function(item) for item in items]
        return list(self.pool.map(function, items))

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *failure: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)


CHUNK = 8192  # packed steps that are worked on at a time
LANES = 8  # chunks are dealt to so many gradients, which are then summed in order: the same bits for any n_jobs


def cut(offsets: NDArray[np.int64]) -> list[range]:
    """Consecutive sequences in chunks of about CHUNK steps."""
    chunks, begin = [], 0
    for n in range(1, len(offsets)):
        if n == len(offsets) - 1 or offsets[n + 1] - offsets[begin] > CHUNK:
            chunks.append(range(begin, n))
            begin = n
    return chunks
