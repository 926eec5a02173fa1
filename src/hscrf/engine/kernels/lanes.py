"""Four numbers at once.

LLVM vectorises loops by itself, but takes a row of 42 numbers sixteen at a time and its last ten one by one, and
checks before every row that no two arrays overlap. In models of many small groups that takes as long as the sums
themselves. Here a kernel says what it means: rows are padded to multiples of four and walked in steps of ``FOUR``.
``benchmarks/lanes.py`` shows what that is worth, also beside LLVM's own packing of scalars, which kernels leave out.
Arrays are taken for flat memory: the item of a table at (row, column) has the index row * columns + column, unsigned.

``vectors`` holds these functions as vector instructions; ``plain`` holds the same in Python, for
``NUMBA_DISABLE_JIT=1``.
"""

from typing import Any

from hscrf.engine.kernels import plain, vectors
from hscrf.engine.kernels.compile import INTERPRETED, unsigned

FOUR = unsigned(4)
form: Any = plain if INTERPRETED else vectors
place, load, store, prefetch = form.place, form.load, form.store, form.prefetch
spread, lanes, pack = form.spread, form.lanes, form.pack
add, multiply, multiply_add, quotient = form.add, form.multiply, form.multiply_add, form.quotient
multiply_add_at_once = form.multiply_add_at_once
higher, lower_above, where_above = form.higher, form.lower_above, form.where_above
lane_sum, lane_sums, lane_max, lane_min = form.lane_sum, form.lane_sums, form.lane_max, form.lane_min
larger, smaller, turn, is_best = form.larger, form.smaller, form.turn, form.is_best
