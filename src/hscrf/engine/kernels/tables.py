"""Tables of admissible segments: which there are, what their own potentials add up to, and the counts of these."""

import numpy as np

from hscrf.engine.kernels.compile import as_written, inlined, unsigned
from hscrf.engine.kernels.lanes import FOUR, add, lanes, larger, load, pack, place, prefetch, smaller, spread, store
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
def find_columns(offsets, longest, may_end, base, skip, width):
    """Fill base, skip and width (N,): the columns of the segments that end at j.

    They start between the oldest and the latest start that reaches j: the last step and the ``skip`` before it are no
    such start. longest (N,) is the longest segment from each start. Return the number of columns.
    """
    columns = 0
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
                base[j], skip[j], width[j] = columns - (j - until), j - until, until - since + 1
            columns += width[j]
    return columns


@inlined
def add_line(target, line, to, source, row, begin, count):
    """target[line, to + k] += source[row, begin + k] for k < count."""
    at, where, k = place(target, line, to), place(source, row, begin), 0
    while k + 4 <= count:
        here = unsigned(k)
        store(add(load(target, at + here), load(source, where + here)), target, at + here)
        k += 4
    while k < count:
        target[line, to + k] += source[row, begin + k]
        k += 1


@as_written
def add_persist(base, skip, width, reach, least, shortest, token, start, stop, duration, segment, table):
    """Add log persist(i, j, s) to ``table`` (S, columns); -inf where the segment is not admissible. Absent: empty.

    token, start, stop (S, N); duration (S, L); segment (N L, S). State s is admissible from i for shortest[s] to
    reach[i, s] steps, at least least[i]. Cost O(columns S); with tokens the segments skipped count, too.
    """
    required, longest = 0, segment.shape[0] // base.size
    for s in range(shortest.size):
        required = larger(required, shortest[s])
    for j in range(base.size):
        first, end = skip[j], skip[j] + width[j]
        for s in range(shortest.size if width[j] else 0):
            if duration.size:
                add_line(table, s, base[j] + first, duration, s, first, smaller(end, duration.shape[1]) - first)
            if token.size or stop.size:
                total = stop[s, j] if stop.size else 0.0
                for k in range(0 if token.size else first, end):
                    total += token[s, j - k] if token.size else 0.0
                    if k >= first:
                        table[s, base[j] + k] += total
            if start.size:
                for k in range(first, end):
                    table[s, base[j] + k] += start[s, j - k]
            if segment.size:
                for k in range(first, smaller(end, longest)):
                    prefetch(segment, place(segment, (j - k - 4) * longest + k, s))  # the walk is diagonal
                    table[s, base[j] + k] += segment[(j - k) * longest + k, s]
        for k in range(first, end):
            if k >= least[j - k] or k + 1 < required:
                for s in range(shortest.size):
                    if k >= reach[j - k, s] or k + 1 < shortest[s]:
                        table[s, base[j] + k] = -np.inf


@inlined
def add_alive(post, s, column, first, end, state, j):
    """Add to each step the posteriors of the segments that contain it and end at j; return the sum of all.

    Those of lags first .. end lie from a column on. Four starts at a time: sums do not wait for each other.
    """
    alive, k, here, there = 0.0, end, place(post, s, column + end), place(state, s, j - end + 1)
    while k - 4 >= first:
        here, k = here - FOUR, k - 4
        fourth, third, second, earliest = lanes(load(post, here))
        two = earliest + second
        four = two + (third + fourth)
        contained = add(pack(earliest, two, two + third, four), spread(alive))
        store(add(load(state, there), contained), state, there)
        alive, there = alive + four, there + FOUR
    while k > 0:
        k -= 1
        alive += post[s, column + k] if k >= first else 0.0
        state[s, j - k] += alive
    return alive


@as_written
def add_persist_back(base, skip, width, post, state, ending, start, stop, duration, segment):
    """Reverse of ``add_persist``: add the posteriors (S, columns) of segments to the counts; state and ending always.

    state (S, N), ending (N,), the others as there.
    """
    longest = segment.shape[0] // base.size
    for j in range(base.size):
        first, end = skip[j], skip[j] + width[j]
        for s in range(post.shape[0] if width[j] else 0):
            alive = add_alive(post, s, base[j], first, end, state, j)
            ending[j] += alive
            if stop.size:
                stop[s, j] += alive
            if duration.size:
                add_line(duration, s, first, post, s, base[j] + first, smaller(end, duration.shape[1]) - first)
            if start.size:
                for k in range(first, end):
                    start[s, j - k] += post[s, base[j] + k]
            if segment.size:
                for k in range(first, smaller(end, longest)):
                    prefetch(segment, place(segment, (j - k - 4) * longest + k, s))
                    segment[(j - k) * longest + k, s] += post[s, base[j] + k]
