"""Three arithmetics: sums of products, log-sum-exp, and the best; and where a row lies in flat memory."""

import numpy as np

from hscrf.engine.kernels.compile import inlined, unsigned
from hscrf.engine.kernels.lanes import (
    add,
    higher,
    is_best,
    lanes,
    multiply,
    multiply_add,
    multiply_add_at_once,
    pack,
    spread,
)

# The modes. Each has a type of its own, so Numba compiles them apart and drops the branches that one does not take.
# Kernels ask ``mode is LINEAR`` and ``is_best(mode)``.
LINEAR, LOG, MAX = None, False, 1
TINY = 1e-140  # products of two such numbers are still normal floats
FAINTEST = 1e-170  # stands for segments that are possible but fainter, see ``engine.passes``
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
    """a + b of four numbers at once, in any arithmetic."""
    if mode is LINEAR:
        return add(a, b)
    if is_best(mode):
        return higher(a, b)
    (a0, a1, a2, a3), (b0, b1, b2, b3) = lanes(a), lanes(b)
    return pack(plus(mode, a0, b0), plus(mode, a1, b1), plus(mode, a2, b2), plus(mode, a3, b3))


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
def probabilities(mode, a, b):
    """Posteriors of four events from their values and their bars."""
    if mode is LINEAR:
        return multiply(a, b)
    w, x, y, z = lanes(add(a, b))
    return pack(np.exp(w), np.exp(x), np.exp(y), np.exp(z))


@inlined
def padded(n):
    """Length of a row of n potentials: the engine pads it to a multiple of four with impossible ones."""
    return (unsigned(n) + unsigned(3)) & ~unsigned(3)
