"""Labels: what is known of the states and ends of a sequence, and where labels come from."""

from hscrf.errors import InfeasibleError
from hscrf.labels.labels import Labels
from hscrf.labels.learning import learn_topology
from hscrf.topology import Topology

__all__ = ["InfeasibleError", "Labels", "Topology", "learn_topology"]
