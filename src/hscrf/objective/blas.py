"""One thread for BLAS while our own threads are at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_former: list[tuple[Any, int]] = []  # libraries and the threads they had before the first hold
_holds = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold the BLAS libraries of this process to one thread; the last of several holds, in any threads, ends it.

    Products of a few thousand numbers gain nothing from more threads, and idle BLAS threads spin beside ours.
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
