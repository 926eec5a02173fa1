"""Reuse of memory from one chunk to the next."""

from __future__ import annotations

import contextlib
import ctypes
import os
from functools import cache

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # as malloc.h numbers them
LARGEST = 32 << 20  # bytes; larger blocks are returned to the system at once


@cache
def keep_memory() -> bool:
    """Let the C library reuse the memory of one chunk for the next; return whether a setting was changed.

    Dask starts workers with MALLOC_TRIM_THRESHOLD_, so that free memory returns to the system at once. Then glibc also
    requests every array of a chunk from the system, which clears the pages: that takes a third of an evaluation. At
    most 64 MB of free memory are kept, the default of glibc.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return False
    with contextlib.suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        return bool(mallopt(MMAP_THRESHOLD, LARGEST) and mallopt(TRIM_THRESHOLD, 2 * LARGEST))
    return False
