"""Labels: what is known of the states and ends of a sequence, and where labels come from."""

from hscrf.errors import InfeasibleError
from hscrf.labels.labels import Labels

__all__ = ["InfeasibleError", "Labels"]
