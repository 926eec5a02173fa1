"""Compiled work on vectors as long as the weights: each pass over memory does all that it can."""

from hscrf.engine.kernels.compile import kernel


@kernel
def add_and_multiply(result, factor, vector, scale, other):
    """Set result to scale * (result + factor * vector), and return its product with another vector."""
    total = 0.0
    for k in range(result.size):
        value = scale * (result[k] + factor * vector[k])
        result[k] = value
        total += value * other[k]
    return total
