"""From logarithms to scaled exponentials: the highest of each row is taken off, then all are exponentiated."""

import math

import numpy as np

from hscrf.engine.kernels.arithmetic import place
from hscrf.engine.kernels.compile import inlined, kernel, ordered_kernel, unsigned
from hscrf.engine.kernels.lanes import FOUR, add, higher, lanes, load, lower_above, spread, store


@kernel
def shift_rows(table, out, shift):
    """out = table - shift, the highest value of each row (0 where the whole row is impossible).

    Return the lowest possible value of out, at most zero.
    """
    n, low, lowest = unsigned(table.shape[1]), spread(0.0), 0.0
    for row in range(table.shape[0]):
        highest, at, target = highest_of(table, row), place(table, row, 0), place(out, row, 0)
        if highest == -np.inf:
            highest = 0.0
        shift[row] = highest
        minus, k = spread(-highest), unsigned(0)
        while k + FOUR <= n:
            value = add(load(table, at + k), minus)
            store(value, out, target + k)
            low = lower_above(low, value, spread(-np.inf))
            k += FOUR
        while k < n:
            out[row, k] = table[row, k] - highest
            if -np.inf < out[row, k] < lowest:
                lowest = out[row, k]
            k += unsigned(1)
    return min(lowest, min(lanes(low)))


@inlined
def highest_of(table, row):
    """The highest value of a row."""
    n, at, k, high = unsigned(table.shape[1]), place(table, row, 0), unsigned(0), spread(-np.inf)
    while k + FOUR <= n:
        high, k = higher(high, load(table, at + k)), k + FOUR
    highest = max(lanes(high))
    while k < n:
        highest, k = max(highest, table[row, k]), k + unsigned(1)
    return highest


# exp(x) = 2^k exp(r) with |r| <= log(2) / 2, where the series is right to the last bit. Adding ROUND leaves the integer
# k in the low bits of a float. log(2) has two parts, so that k times the first is exact.
LOG2_E, LOG_2, LOG_2_REST, ROUND = 1 / math.log(2.0), 0.693145751953125, 1.4286068203094172e-06, 1.5 * 2.0**52
SERIES = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))
LOWEST = -708.0  # exp of anything lower is taken for zero


@ordered_kernel
def exponentiate(values):
    """Replace values (n,), at most 709, by their exponentials. Vectorised, so four times as fast as numpy's on AVX2."""
    for i in range(unsigned(values.size)):
        x = max(values[i], LOWEST)
        shifted = x * LOG2_E + ROUND
        k = shifted - ROUND
        r = x - k * LOG_2 - k * LOG_2_REST
        total = 0.0
        for term in SERIES:
            total = total * r + term
        power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
        values[i] = 0.0 if values[i] < LOWEST else total * power
