"""Tables of admissible segments: which there are, what their own potentials add up to, and the counts of these."""

import numpy as np

from hscrf.engine.kernels.arithmetic import add_row
from hscrf.engine.kernels.compile import as_written
from hscrf.engine.kernels.lanes import larger, place, prefetch, smaller
from hscrf.engine.kernels.layout import NOWHERE


@as_written
def find_reach(offsets, allowed, may_start, may_go_on, longest, reach, most, least):
    """Fill reach (N, S): how many steps from t a segment of s may last; and the most and the least of them (N,).

    allowed (N or 1, S), longest (S,).
    """
    last = allowed.shape[0] - 1
    for n in range(offsets.size - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            for s in range(reach.shape[1]):
                if not allowed[smaller(t, last), s]:
                    reach[t, s] = 0
                elif t + 1 == offsets[n + 1] or not may_go_on[t]:
                    reach[t, s] = 1
                else:
                    reach[t, s] = 1 + reach[t + 1, s]
    for t in range(reach.shape[0]):
        most[t], least[t] = 0, offsets[-1]
        for s in range(reach.shape[1]):
            reach[t, s] = smaller(reach[t, s], longest[s]) if may_start[t] else 0
            most[t], least[t] = larger(most[t], reach[t, s]), smaller(least[t], reach[t, s])


@as_written
def find_rows(offsets, longest, may_end, base, skip, width):
    """Fill base, skip and width (N,): the rows of the segments that end at j.

    They start between the oldest and the latest start that reaches j: the last step and the ``skip`` before it are no
    such start. longest (N,) is the longest segment from each start. Return the number of rows.
    """
    rows = 0
    for n in range(offsets.size - 1):
        since = offsets[n]
        for j in range(offsets[n], offsets[n + 1]):
            while since < j and since + longest[since] <= j:
                since += 1
            base[j], skip[j], width[j] = NOWHERE, 0, 0
            if may_end[j] and since + longest[since] > j:
                until = j
                while until + longest[until] <= j:
                    until -= 1
                base[j], skip[j], width[j] = rows - (j - until), j - until, until - since + 1
            rows += width[j]
    return rows


@as_written
def add_persist(base, skip, width, reach, least, shortest, token, start, stop, duration, segment, table, tokens):
    """Add log persist(i, j, s) to ``table`` (rows, S); -inf where the segment is not admissible. Absent parts: empty.

    token, start, stop (N, S); duration (L, S); segment (N L, S); work space tokens (1, S). State s is admissible from i
    for shortest[s] to reach[i, s] steps, at least least[i]. Cost O(rows S); with tokens the rows skipped count, too.
    """
    required, longest = 0, segment.shape[0] // base.size
    for s in range(shortest.size):
        required = larger(required, shortest[s])
    for j in range(base.size):
        tokens[:] = 0.0
        if stop.size and width[j]:
            add_row(tokens, 0, stop, j)
        for k in range(0 if token.size else skip[j], skip[j] + width[j]):
            i, row = j - k, base[j] + k
            if token.size:
                add_row(tokens, 0, token, i)
                if k < skip[j]:
                    continue
            add_row(table, row, tokens, 0)
            if start.size:
                add_row(table, row, start, i)
            if k < duration.shape[0]:
                add_row(table, row, duration, k)
            if k < longest:
                prefetch(segment, place(segment, (i + 4) * longest + k, 0))  # the walk is diagonal
                add_row(table, row, segment, i * longest + k)
            if k >= least[i] or k + 1 < required:
                for s in range(shortest.size):
                    if k >= reach[i, s] or k + 1 < shortest[s]:
                        table[row, s] = -np.inf


@as_written
def add_persist_back(base, skip, width, post, state, ending, start, stop, duration, segment, alive):
    """Reverse of ``add_persist``: add the posteriors (rows, S) of segments to the counts; state and ending always."""
    longest = segment.shape[0] // base.size
    for j in range(base.size):
        if not width[j]:
            continue
        alive[:] = 0.0
        for k in range(skip[j] + width[j] - 1, -1, -1):
            i, row = j - k, base[j] + k
            if k >= skip[j]:
                add_row(alive, 0, post, row)
                if start.size:
                    add_row(start, i, post, row)
                if k < duration.shape[0]:
                    add_row(duration, k, post, row)
                if k < longest:
                    prefetch(segment, place(segment, (i + 4) * longest + k, 0))
                    add_row(segment, i * longest + k, post, row)
            add_row(state, i, alive, 0)
        for s in range(alive.shape[1]):
            ending[j] += alive[0, s]
        if stop.size:
            add_row(stop, j, alive, 0)
