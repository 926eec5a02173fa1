"""Compiled averages over segments, and their transpose."""

from hscrf.engine.kernels.compile import kernel


@kernel
def average_tokens(scores, table):
    """Add to table (N, L, S) the mean of scores (N, S) over each segment; past the end it does not matter."""
    for i in range(table.shape[0]):
        for s in range(table.shape[2]):
            total = 0.0
            for k in range(min(table.shape[1], table.shape[0] - i)):
                total += scores[i + k, s]
                table[i, k, s] += total / (k + 1)


@kernel
def average_tokens_back(table, scores):
    """Reverse of ``average_tokens``: add the counts (N, L, S) of segments to those of their steps (N, S)."""
    for i in range(table.shape[0]):
        for s in range(table.shape[2]):
            total = 0.0
            for k in range(min(table.shape[1], table.shape[0] - i) - 1, -1, -1):
                total += table[i, k, s] / (k + 1)
                scores[i + k, s] += total
