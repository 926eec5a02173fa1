"""Three arithmetics: sums of products, log-sum-exp, and the best; and where a row lies in flat memory."""

import numpy as np

from hscrf.engine.kernels.compile import inlined, part, unsigned
from hscrf.engine.kernels.lanes import add, higher, is_best, multiply, multiply_add, multiply_add_at_once, spread

# The modes. Each has a type of its own, so Numba compiles them apart and drops the branches that one does not take.
# Kernels ask ``mode is LINEAR`` and ``is_best(mode)``.
LINEAR, LOG, MAX = None, False, 1
TINY = 1e-140  # products of two such numbers are still normal floats
SMALLEST = 1e-300  # stands for what is possible but too small to matter
FAINT = 1e-290  # a sum below this may owe more than its last digits to such
LOW, HIGH = 1e-20, 1e20  # a row is rescaled when its largest value leaves this range


@inlined
def zero(mode):
    return 0.0 if mode is LINEAR else -np.inf


@inlined
def one(mode):
    return 1.0 if mode is LINEAR else 0.0


@inlined
def times(mode, a, b):
    return a * b if mode is LINEAR else a + b


@inlined
def plus(mode, a, b):
    if mode is LINEAR:
        return a + b
    if a < b:
        a, b = b, a
    if is_best(mode) or b == -np.inf:
        return a
    return a + np.log1p(np.exp(b - a))


@inlined
def none(mode):
    """Nothing, four times."""
    return spread(zero(mode))


@inlined
def either(mode, a, b):
    """a + b of four numbers at once, in LINEAR or MAX."""
    return add(a, b) if mode is LINEAR else higher(a, b)


@inlined
def both(mode, a, b):
    """a * b of four numbers at once, in any arithmetic."""
    return multiply(a, b) if mode is LINEAR else add(a, b)


@inlined
def sum_up(mode, total, a, b):
    """total + a * b of four numbers at once, in LINEAR or MAX."""
    if mode is LINEAR:
        return multiply_add(a, b, total)
    # a + b, for which some processors have only those units that compare; mode is one, which no compiler knows
    return higher(total, multiply_add_at_once(a, spread(mode), b))


@inlined
def probability(mode, a, b):
    """Posterior of an event from its value and its bar."""
    return a * b if mode is LINEAR else np.exp(a + b)


@inlined
def padded(n):
    """Length of a row of n potentials: the engine pads it to a multiple of four with impossible ones."""
    return (unsigned(n) + unsigned(3)) & ~unsigned(3)


@inlined
def bar_if(mode, value, bar):
    """The bar of a value; zero if that is impossible, for what would follow may be infinitely better than the rest."""
    return bar if value > zero(mode) else zero(mode)


@part
def bar_of(mode, value, posterior):
    """d log Z / d value of something whose posterior is known."""
    if posterior == 0.0 or value == zero(mode):
        return zero(mode)
    return posterior / value if mode is LINEAR else np.log(posterior) - value
