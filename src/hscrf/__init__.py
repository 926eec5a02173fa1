"""Hierarchical semi-Markov conditional random fields: label a sequence at several nested levels at once."""

from hscrf.inference import Marginals, decode, entropy, k_best, log_partition, marginals, sample, score
from hscrf.labels import InfeasibleError, Labels
from hscrf.potentials import Potentials
from hscrf.topology import Topology

__version__ = "0.1.0"

__all__ = [
    "InfeasibleError",
    "Labels",
    "Marginals",
    "Potentials",
    "Topology",
    "decode",
    "entropy",
    "k_best",
    "log_partition",
    "marginals",
    "sample",
    "score",
]
