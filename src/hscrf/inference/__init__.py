"""Exact inference on one sequence."""

from hscrf.inference.posterior import Marginals, Posterior
from hscrf.inference.verbs import decode, entropy, k_best, log_partition, marginals, sample, score

__all__ = ["Marginals", "Posterior", "decode", "entropy", "k_best", "log_partition", "marginals", "sample", "score"]
