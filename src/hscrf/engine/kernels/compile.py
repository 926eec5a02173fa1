"""How kernels are compiled, and when the compiled kernel of an earlier process is used again.

Numba's cache on disk watches only the file of the outermost function: after a change in a helper elsewhere it would
go on with the old code. Here the cache of every kernel is stamped with a digest of all kernel files instead.

``compiler`` reaches into Numba, so it serves only the releases that it was tried with (``KNOWN``). Others compile the
same kernels in their own way, which takes longer.
"""

import hashlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import __version__, config, njit

KNOWN = ((0, 62), (0, 68))  # first and last

# Sums may be reordered and fused. There is no NaN: infinities are only ever -inf, and none is subtracted. No kernel
# makes an array, so none needs to count references to them (``_nrt``): that took more than half of the time of small
# models, and threads waited for each other's counts. None raises: a division by zero is infinite, as in NumPy.
COMMON: dict[str, Any] = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz", "nnan"},
    "_nrt": False,
    "error_model": "numpy",
}
# Unless told, Numba forces a part into all of its callers if the first of them is inlined. LLVM knows better.
PARTS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": False}
KERNELS: dict[str, Any] = {"no_cfunc_wrapper": True}
AS_WRITTEN: dict[str, Any] = {}
if KNOWN[0] <= tuple(int(number) for number in __version__.split(".")[:2]) <= KNOWN[1]:
    from hscrf.engine.kernels.compiler import AsWrittenCompiler, KernelCompiler, PartCompiler

    PARTS["pipeline_class"], KERNELS["pipeline_class"] = PartCompiler, KernelCompiler
    AS_WRITTEN["pipeline_class"] = AsWrittenCompiler

jit: Any = njit  # compiled functions have no types that a checker could follow
settings: Any = config

INTERPRETED = bool(settings.DISABLE_JIT)  # NUMBA_DISABLE_JIT=1: kernels are the Python functions themselves

# Numba checks signed indices for being negative, which keeps loops from being vectorised. So offsets in hot loops are
# unsigned: ``array[offset + k]``. Python's own integers need no such care, and never overflow.
unsigned: Any = int if INTERPRETED else np.uint64


def kernel(function: Callable[..., Any], **options: Any) -> Any:
    """Compile what Python calls; kept on disk until any kernel file changes."""
    options = {**KERNELS, **COMMON, **options}
    if INTERPRETED:
        return function
    try:
        compiled = jit(cache=True, **options)(function)
    except RuntimeError:  # there is no folder for a cache
        return jit(**options)(function)
    return compiled if stamped(compiled) else jit(**options)(function)


as_written: Any = partial(kernel, **AS_WRITTEN)  # where LLVM's work on loops is not worth its time
ordered_kernel = partial(kernel, fastmath={"contract"})  # where the order of sums matters
ordered_part = jit(**{**PARTS, **COMMON, "fastmath": {"contract"}})
part = jit(**PARTS, **COMMON)  # what only other kernels call
inlined = jit(**{**PARTS, **COMMON, "forceinline": True})  # where a call at every step would cost more than the work


def stamped(compiled: Any) -> bool:
    """Put the digest of all kernel files in the place of the stamp of one file; False if Numba has no such place."""
    file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if not hasattr(file, "_source_stamp"):
        return False
    file._source_stamp = digest()
    return True


@cache
def digest() -> str:
    """SHA-256 over all kernel files of the package: ``kernels.py`` of any room, and all files of ``kernels/``."""
    package = Path(__file__).resolve().parents[2]
    files = sorted([*package.rglob("kernels.py"), *package.rglob("kernels/*.py")])
    total = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        total.update(f"{file.relative_to(package).as_posix()} {len(content)}\n".encode() + content)
    return total.hexdigest()
