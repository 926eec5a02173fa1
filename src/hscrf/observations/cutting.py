"""Cut data into shards; the cuts depend on the lengths of the sequences alone."""

from __future__ import annotations

from collections.abc import Sequence

SHARD = 1 << 19  # steps of a shard, about half a million


def shard_bounds(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """First sequence and end of each shard: as many sequences as have at most SHARD steps, or one that is longer.

    The same cut wherever the data are, in memory or on disk: sums over them have the same bits.

    >>> shard_bounds([SHARD - 10, 10, 1, 2 * SHARD])
    [(0, 2), (2, 3), (3, 4)]
    """
    bounds, begin, filled = [], 0, 0
    for n, length in enumerate(lengths):
        if n > begin and filled + length > SHARD:
            bounds.append((begin, n))
            begin, filled = n, 0
        filled += length
    return [*bounds, (begin, len(lengths))]
