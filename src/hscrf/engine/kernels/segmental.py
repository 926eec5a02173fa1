"""Bottoms with a table of segments: a leaf that ends at j is a sum over the starts of its segment.

A start t is told by its lag, j - t. Everything that a sum needs lies in memory by lag: the segments of a state that end
at j, what has entered, latest first, and a factor for each parent of leaves.
"""

import numpy as np

from hscrf.engine.kernels.arithmetic import (
    FAINT,
    LINEAR,
    SMALLEST,
    TINY,
    both,
    none,
    one,
    plus,
    probability,
    sum_up,
    times,
    zero,
)
from hscrf.engine.kernels.compile import inlined, part, unsigned
from hscrf.engine.kernels.exponentials import raise_all
from hscrf.engine.kernels.lanes import (
    FOUR,
    add,
    is_best,
    lane_max,
    lane_sum,
    larger,
    load,
    multiply,
    multiply_add,
    place,
    smaller,
    spread,
    store,
)
from hscrf.engine.kernels.layout import (
    CHILD_BASE,
    CHILD_REACH,
    CHILD_SKIP,
    COUNT,
    DOWN,
    FIRST,
    PARENT,
    PASSED,
    POSTERIOR,
    STATE,
    TOKEN,
    TOKENS,
    UP,
    UP_BAR,
)
from hscrf.engine.kernels.steps import multiply_tokens, rescale
from hscrf.engine.kernels.trie import cell, shape_of


@inlined
def reaches(layer, t, j):
    """May a child segment that starts at t end at j."""
    return t + layer.table[t, CHILD_REACH] > j


@inlined
def when(work, step):
    """The column of ``enter`` and ``enter_bar`` of a step; the next columns are those of the steps before it."""
    return work.enter.shape[1] - 1 - step


# ------------------------------------------------------------------------------
# Factors


@part
def begin_tokens(mode, layer, s, work):
    """Start the running products, kept in PASSED, of the tokens of the bottom's parents."""
    depth, root, bottom, _ = shape_of(layer, s)
    for node in range(layer.level_at[s, depth - 1], bottom):
        work.node[PASSED, node - root] = one(mode)


@part
def pass_tokens(mode, layer, pot, s, t, work):
    """Multiply PASSED of the bottom's parents by their tokens, and their Markov ancestors', at t."""
    depth, root, bottom, _ = shape_of(layer, s)
    if depth > 1:
        multiply_tokens(mode, layer, pot, s, t, work, depth - 1)
        for node in range(layer.level_at[s, depth - 1], bottom):
            x = node - root
            passed = times(mode, work.node[PASSED, x], work.node[TOKENS, x])
            if mode is LINEAR and passed < SMALLEST and work.node[PASSED, x] > 0.0 and work.node[TOKENS, x] > 0.0:
                passed = SMALLEST  # only the impossible is zero
            work.node[PASSED, x] = passed


@part
def weigh(mode, layer, values, child, i, j, work):
    """Fill the first line of ``factor`` by lag: one where a segment from there may end at j, else zero.

    LINEAR: times what has entered there, and the segment, are to be multiplied by to have one scale; return its
    logarithm, -inf if no segment may end.
    """
    base, count = layer.table[j, CHILD_BASE], j - work.since[j - i] + 1
    if mode is not LINEAR:
        for lag in range(count):
            work.factor[lag] = one(mode) if reaches(layer, j - lag, j) else zero(mode)
        return 0.0
    largest, peaks = -np.inf, 0.0
    for lag in range(count):
        t = j - lag
        peaks += values.peak[t]
        work.factor[lag] = -np.inf
        if reaches(layer, t, j):
            work.factor[lag] = work.scale[t - i] + child.shift[base + lag] + peaks
            largest = larger(largest, work.factor[lag])
    if largest > -np.inf:
        raise_all(work.factor, 0, count, largest)
        for lag in range(count):
            if work.factor[lag] < SMALLEST and reaches(layer, j - lag, j):
                work.factor[lag] = SMALLEST
    return largest


@inlined
def line_of(layer, s, parent, work):
    """Where the factors of a parent of leaves begin: under the top itself, the first line; else one each."""
    depth = layer.level_at.shape[1] - 2
    if depth == 1:
        return unsigned(0)
    return unsigned((parent - layer.level_at[s, depth - 1] + 1) * work.scale.size)


@part
def pass_all_tokens(mode, layer, pot, s, i, j, work):
    """Fill the factors of all parents: the first line, and the parent's tokens, with those above, from t to j."""
    depth, root, bottom, _ = shape_of(layer, s)
    if depth == 1:
        return
    begin_tokens(mode, layer, s, work)
    for lag in range(j - work.since[j - i] + 1):
        pass_tokens(mode, layer, pot, s, j - lag, work)
        for parent in range(layer.level_at[s, depth - 1], bottom):
            factor = times(mode, work.node[PASSED, parent - root], work.factor[lag])
            if mode is LINEAR and factor < SMALLEST and work.node[PASSED, parent - root] * work.factor[lag] > 0.0:
                factor = SMALLEST
            work.factor[line_of(layer, s, parent, work) + unsigned(lag)] = factor


# ------------------------------------------------------------------------------
# One leaf


@part
def sum_past(mode, work, entered, mass, column, factor, lags):
    """Sum over lags, four at a time, what entered, times its segment, times its factor; and the lag where it stopped.

    ``entered``, ``column`` and ``factor`` say where those of lag 0 lie.
    """
    k, end = unsigned(lags[0]), unsigned(lags[1])
    total = zero(mode)
    if mode is LINEAR or is_best(mode):
        sums = none(mode)
        while k + FOUR <= end:
            value = both(mode, load(work.enter, entered + k), load(mass, column + k))
            sums = sum_up(mode, sums, value, load(work.factor, factor + k))
            k += FOUR
        total = lane_sum(sums) if mode is LINEAR else lane_max(sums)
    return total, k


@part
def sum_segments(mode, layer, values, child, s, i, j, work):
    """Fill UP of the leaves from the child segments t..j that end at j. Cost O(L leaves)."""
    _, root, bottom, stop = shape_of(layer, s)
    scale = weigh(mode, layer, values, child, i, j, work)
    if scale == -np.inf:
        return 1.0
    pass_all_tokens(mode, layer, values.pot, s, i, j, work)
    lags = layer.table[j, CHILD_SKIP], j - work.since[j - i] + 1
    for leaf in range(bottom, stop):
        state, factor = layer.node[STATE, leaf], line_of(layer, s, layer.node[PARENT, leaf], work)
        entered, column = place(work.enter, leaf - bottom, when(work, j - i)), layer.table[j, CHILD_BASE]
        total, k = sum_past(mode, work, entered, child.mass, place(child.mass, state, column), factor, lags)
        for lag in range(np.int64(k), lags[1]):
            value = times(mode, work.enter[leaf - bottom, when(work, j - i) + lag], child.mass[state, column + lag])
            total = plus(mode, total, times(mode, value, work.factor[factor + unsigned(lag)]))
        work.node[UP, leaf - root] = total
    if mode is LINEAR:
        return rescale(work, unsigned(bottom - root), unsigned(stop - bottom), j - i, scale)
    return 1.0


@part
def sum_past_back(work, entered, mass, post, column, factor, seen, lags, bar):
    """Reverse of ``sum_past`` in LINEAR, ``bar`` being that of the sum; return the lag where it stopped.

    Add the posteriors of the segments to ``post`` and, under Markov parents, to the line at ``seen``.
    """
    k, end, bars = unsigned(lags[0]), unsigned(lags[1]), spread(bar)
    while k + FOUR <= end:
        pair = multiply(multiply(load(mass, column + k), load(work.factor, factor + k)), bars)
        started = load(work.enter, entered + k)
        store(add(load(work.enter_bar, entered + k), pair), work.enter_bar, entered + k)
        store(multiply_add(started, pair, load(post, column + k)), post, column + k)
        if factor > unsigned(0):
            store(multiply_add(started, pair, load(work.factor, seen + k)), work.factor, seen + k)
        k += FOUR
    return k


@part
def sum_segments_back(mode, layer, values, child, counts, s, i, j, work):
    """Reverse of ``sum_segments``: the bars of ``enter`` at every t, posteriors of the segments and of the tokens."""
    depth, root, bottom, stop = shape_of(layer, s)
    weigh(mode, layer, values, child, i, j, work)
    pass_all_tokens(mode, layer, values.pot, s, i, j, work)
    lags, parents = (layer.table[j, CHILD_SKIP], j - work.since[j - i] + 1), bottom - layer.level_at[s, depth - 1]
    line = unsigned(parents * work.scale.size)  # from the factors of a parent to its posteriors
    if depth > 1:
        for parent in range(layer.level_at[s, depth - 1], bottom):
            seen = line_of(layer, s, parent, work) + line
            for lag in range(unsigned(lags[1])):
                work.factor[seen + lag] = 0.0
    for leaf in range(bottom, stop):
        state, factor = layer.node[STATE, leaf], line_of(layer, s, layer.node[PARENT, leaf], work)
        first, column, k = when(work, j - i), layer.table[j, CHILD_BASE], unsigned(lags[0])
        bar = times(mode, work.node[UP_BAR, leaf - root], work.gain[j - i])
        if mode is LINEAR:
            places = place(child.mass, state, column), factor, factor + line
            k = sum_past_back(
                work, place(work.enter, leaf - bottom, first), child.mass, counts.child, *places, lags, bar
            )
        for lag in range(np.int64(k), lags[1]):
            x, at = leaf - bottom, factor + unsigned(lag)
            pair = times(mode, times(mode, child.mass[state, column + lag], work.factor[at]), bar)
            work.enter_bar[x, first + lag] = plus(mode, work.enter_bar[x, first + lag], pair)
            posterior = probability(mode, work.enter[x, first + lag], pair)
            counts.child[state, column + lag] += posterior
            if depth > 1:
                work.factor[at + line] += posterior
    if depth > 1:
        for lag in range(lags[0], lags[1]):
            for parent in range(layer.level_at[s, depth - 1], bottom):
                seen = line_of(layer, s, parent, work) + line
                work.node[POSTERIOR, parent - root] = work.factor[seen + unsigned(lag)]
            add_token_counts(layer, counts.pot, s, j - lag, j, work)


@part
def add_token_counts(layer, grad, s, t, j, work):
    """The Markov ancestors of a child segment t..j live through it: a difference in time, summed up by the caller.

    One step past the last lies in the spare row that every block of tokens has.
    """
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth - 1, 0, -1):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            if level < depth - 1:
                work.node[POSTERIOR, node - root] = 0.0
                for k in range(layer.node[FIRST, node], layer.node[FIRST, node] + layer.node[COUNT, node]):
                    work.node[POSTERIOR, node - root] += work.node[POSTERIOR, k - root]
            posterior = work.node[POSTERIOR, node - root]
            grad[cell(layer, TOKEN, node, t)] += posterior
            grad[cell(layer, TOKEN, node, j + 1)] -= posterior


# ------------------------------------------------------------------------------
# One step


@part
def lost_segments(layer, child, s, i, j, work):
    """LINEAR: had a leaf, before it was rescaled, a sum too small to trust, although some segment could end at j?"""
    _, root, bottom, stop = shape_of(layer, s)
    least, column = larger(TINY, FAINT * work.gain[j - i]), layer.table[j, CHILD_BASE]
    for leaf in range(bottom, stop):
        if work.node[UP, leaf - root] < least:
            state, factor = layer.node[STATE, leaf], line_of(layer, s, layer.node[PARENT, leaf], work)
            for lag in range(layer.table[j, CHILD_SKIP], j - work.since[j - i] + 1):
                possible = work.enter[leaf - bottom, when(work, j - i) + lag] > 0.0
                possible = possible and work.factor[factor + unsigned(lag)] > 0.0
                if possible and child.mass[state, column + lag] > 0.0:
                    return True
    return False


@part
def extend_segments(mode, layer, values, child, s, i, j, work):
    """``extend_step`` for a bottom that has a table."""
    depth, root, bottom, stop = shape_of(layer, s)
    step, low = j - i, 1.0
    for x in range(bottom - root, stop - root):
        value = work.node[DOWN, x]
        work.enter[x + root - bottom, when(work, step)] = value
        if 0.0 < value < low:
            low = value
        work.node[UP, x] = zero(mode)
    since = work.since[step - 1] if step > 0 else i
    while since < j and not reaches(layer, since, j):
        since += 1
    work.since[step] = since
    work.gain[step] = one(mode)
    work.scale[step + 1] = work.scale[step]
    if layer.may_end[depth, j]:
        low = smaller(low, sum_segments(mode, layer, values, child, s, i, j, work))
        if mode is LINEAR and lost_segments(layer, child, s, i, j, work):
            low = 0.0
    for x in range(bottom - root, stop - root):
        work.lived[step, x + root - bottom] = work.node[UP, x]
    return low
