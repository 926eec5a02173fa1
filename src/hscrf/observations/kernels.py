"""Work on named features: sums of their weights, the transposes, and lookup of names by their hashes.

Compiled (``core/src/features.h``, ``packing.h`` and ``names.h``), or in NumPy where the core is missing. ``plain``
documents each function.
"""

from typing import Any

from hscrf.native import core
from hscrf.observations import plain

kernels: Any = core or plain
