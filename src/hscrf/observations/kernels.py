"""Work on named features: sums of their weights, the transposes, and lookup of names by their hashes.

Compiled (``core/src/features.h``, ``packing.h`` and ``names.h``), or in NumPy where the core is missing. ``plain``
documents each function.
"""

from typing import Any

from hscrf.native import core
from hscrf.observations import plain

__all__ = [
    "divide_entries",
    "find_names",
    "find_strings",
    "gather_counts",
    "hash_names",
    "list_pairs",
    "mark_cells",
    "pull_frequent",
    "pull_pairs",
    "pull_rows",
    "pull_rows_twice",
    "score_frequent",
    "score_pairs",
    "score_rows",
    "spread_weights",
    "store_names",
]

chosen: Any = core or plain

divide_entries = chosen.divide_entries
find_names = chosen.find_names
find_strings = chosen.find_strings
gather_counts = chosen.gather_counts
hash_names = chosen.hash_names
list_pairs = chosen.list_pairs
mark_cells = chosen.mark_cells
pull_frequent = chosen.pull_frequent
pull_pairs = chosen.pull_pairs
pull_rows = chosen.pull_rows
pull_rows_twice = chosen.pull_rows_twice
score_frequent = chosen.score_frequent
score_pairs = chosen.score_pairs
score_rows = chosen.score_rows
spread_weights = chosen.spread_weights
store_names = chosen.store_names
