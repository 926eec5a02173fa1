"""The whole model in plain NumPy, in logarithms: the recursion of docs/theory.md, to be read together with it.

Read the modules in this order:

- ``layers``: stacks of states, links between them, admissible segments.
- ``recursion``: one walk for forward, backward and best scores.
- ``counts``: posteriors of all events.
- ``paths``: the best, the k best and samples.

:class:`hscrf.engine.Batch` uses :class:`Reference` if the compiled core is missing. Tests compare it with the core.
"""

from hscrf.engine.reference.engine import Reference

__all__ = ["Reference"]
