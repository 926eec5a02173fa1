"""The compiled core: the extension module ``hscrf._core``, or None if it is missing.

Its C++ sources are in the folder ``core/``. The module contains code for several instruction sets and uses the highest
one that the processor supports. The environment variable ``HSCRF_ISA`` (``baseline``, ``avx2`` or ``avx512``) sets an
upper limit. Without a core everything runs in NumPy: if the package was installed without a compiler, or with
``HSCRF_ENGINE=reference``.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")  # from the lowest to the highest


def load_core() -> tuple[ModuleType | None, str]:
    """Return the extension module and ``""``, or None and the reason why it cannot be used.

    Raises
    ------
    ValueError
        If HSCRF_ISA does not name an instruction set.
    """
    limit = os.environ.get("HSCRF_ISA")
    if limit and limit not in INSTRUCTION_SETS:
        raise ValueError(f"HSCRF_ISA is {limit!r}, expected one of {', '.join(INSTRUCTION_SETS)}")
    if os.environ.get("HSCRF_ENGINE") == "reference":
        return None, "HSCRF_ENGINE is 'reference'"
    if find_spec("hscrf._core") is None:
        return None, "hscrf was installed without it"
    try:
        return import_module("hscrf._core"), ""
    except ImportError as error:  # built for another system
        return None, f"it cannot be loaded: {error}"


core, why_not = load_core()
if core is None and os.environ.get("HSCRF_ENGINE") != "reference":  # whoever chose the reference knows it
    warnings.warn(
        f"hscrf runs without its compiled core, far slower: {why_not}. Install a C++ compiler (GCC or Clang), then "
        "install hscrf again; in a checkout, run: make core",
        RuntimeWarning,
        stacklevel=2,
    )


def describe_core() -> str:
    """Return one line: whether the compiled core is in use, and with which instruction set.

    >>> describe_core()  # doctest: +ELLIPSIS
    'compiled core...'
    """
    if core is None:
        return f"compiled core not in use: {why_not}"
    return f"compiled core, instruction set {core.instruction_set} ({core.compiler})"
