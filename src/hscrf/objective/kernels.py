"""Work on vectors as long as the weights: compiled, or in NumPy where the core is missing."""

from hscrf.arrays import Floats
from hscrf.native import core


def add_and_clear(total: Floats, part: Floats) -> None:
    """Add a vector to another, and leave zeros in its place."""
    if core:
        core.add_and_clear(total, part)
    else:
        total += part
        part[:] = 0.0
