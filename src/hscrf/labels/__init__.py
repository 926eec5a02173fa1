"""Labels of sequences, complete or partial, and readers of labels."""

from hscrf.errors import InfeasibleError
from hscrf.labels.labels import Labels
from hscrf.labels.learning import learn_topology
from hscrf.topology import Topology

__all__ = ["InfeasibleError", "Labels", "Topology", "learn_topology"]
