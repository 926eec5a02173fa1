"""Exact inference on one sequence."""

from hscrf.inference.verbs import Marginals, decode, entropy, k_best, log_partition, marginals, sample, score

__all__ = ["Marginals", "decode", "entropy", "k_best", "log_partition", "marginals", "sample", "score"]
