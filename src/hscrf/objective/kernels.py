"""Compiled work on vectors as long as the weights."""

from hscrf.engine.kernels.compile import kernel


@kernel
def add_and_clear(total, part):
    """Add a vector to another, and leave zeros in its place."""
    for k in range(total.size):
        total[k] += part[k]
        part[k] = 0.0
