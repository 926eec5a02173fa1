"""The whole model in plain NumPy, in logarithms: the recursion of docs/theory.md, written to be read beside it.

Read ``layers`` (stacks of states, links between them, admissible segments), then ``recursion`` (one walk serves
forward, backward and the best), then ``counts`` (posteriors of all events), then ``paths`` (the best, the k best and
samples).
:class:`Reference` serves :class:`hscrf.engine.Batch` where the compiled core is missing, and the tests as a twin.
"""

from hscrf.engine.reference.engine import Reference

__all__ = ["Reference"]
