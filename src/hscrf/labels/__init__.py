"""Labels of sequences, complete or partial, and readers of labels."""

from hscrf.labels.induction import learn_topology
from hscrf.labels.labels import Labels

__all__ = ["Labels", "learn_topology"]
