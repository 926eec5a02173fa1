"""Labels: what is known of the states and ends of a sequence, and where labels come from."""

from hscrf.errors import InfeasibleError
from hscrf.labels.given import topology_of
from hscrf.labels.labels import Labels
from hscrf.topology import Topology

Topology._learn = topology_of

__all__ = ["InfeasibleError", "Labels", "Topology"]
