"""Work on vectors as long as the weights: compiled, or in NumPy where the core is missing."""

from hscrf.arrays import Floats
from hscrf.native import core


def add_and_multiply(result: Floats, factor: float, vector: Floats, scale: float, other: Floats) -> float:
    """Set result to scale * (result + factor * vector), and return its product with another vector.

    The core does all of it in one pass over memory.
    """
    if core:
        return core.add_and_multiply(result, factor, vector, scale, other)
    result += factor * vector
    result *= scale
    return float(result @ other)
