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
    NOWHERE,
    OF_PARENTS,
    PARENT,
    PASSED,
    PAST,
    PEAKS,
    POSTERIOR,
    STATE,
    TOKEN,
    TOKENS,
    UP,
    UP_BAR,
    WEIGHT,
)
from hscrf.engine.kernels.steps import keep_leaves, multiply_tokens, rescale
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


@inlined
def line_of(work, k):
    """Where line k of ``factor`` begins."""
    return unsigned(k * work.scale.size)


@part
def weigh(mode, values, child, column, lags, i, j, work):
    """Fill the line WEIGHT by lag: what is to be multiplied with what has entered and its segment to have one scale.

    Only LINEAR has scales; return the logarithm of the common one, -inf if no segment may end at j.
    """
    weight = line_of(work, WEIGHT)
    if mode is not LINEAR:
        for lag in range(unsigned(lags[0]), unsigned(lags[1])):
            work.factor[weight + lag] = one(mode)
        return 0.0
    past = line_of(work, PAST) + unsigned(when(work, j - i))
    largest = -np.inf
    for lag in range(lags[0], lags[1]):
        value = work.factor[past + unsigned(lag)] + child.shift[column + lag]
        work.factor[weight + unsigned(lag)] = value
        largest = larger(largest, value)
    if largest == -np.inf:
        return largest
    raise_all(work.factor, weight + unsigned(lags[0]), weight + unsigned(lags[1]), largest)
    for lag in range(lags[0], lags[1]):
        if work.factor[weight + unsigned(lag)] < SMALLEST and child.shift[column + lag] > -np.inf:
            work.factor[weight + unsigned(lag)] = SMALLEST  # only the impossible is zero
    return largest + work.factor[line_of(work, PEAKS) + unsigned(j - i)] + values.peak[j]


@inlined
def enter_scale(values, i, j, work):
    """LINEAR: note the scale of what enters at j, as ``weigh`` needs it."""
    step, peaks = j - i, line_of(work, PEAKS)
    passed = 0.0 if step == 0 else work.factor[peaks + unsigned(step - 1)] + values.peak[j - 1]
    work.factor[peaks + unsigned(step)] = passed
    work.factor[line_of(work, PAST) + unsigned(when(work, step))] = work.scale[step] - passed


@inlined
def factors_of(layer, s, parent, work):
    """Where the factors of a parent of leaves begin: under the top itself they are the weights; else it has a line."""
    depth = layer.level_at.shape[1] - 2
    if depth == 1:
        return line_of(work, WEIGHT)
    return line_of(work, OF_PARENTS + parent - layer.level_at[s, depth - 1])


@part
def pass_all_tokens(mode, layer, pot, s, j, lags, work):
    """Fill the factors of all parents: weights, times the tokens of the parent and of those above it from t to j."""
    depth, root, bottom, _ = shape_of(layer, s)
    if depth == 1:
        return
    begin_tokens(mode, layer, s, work)
    for lag in range(lags[1]):
        pass_tokens(mode, layer, pot, s, j - lag, work)
        if lag >= lags[0]:
            weight = work.factor[line_of(work, WEIGHT) + unsigned(lag)]
            for parent in range(layer.level_at[s, depth - 1], bottom):
                passed = work.node[PASSED, parent - root]
                factor = times(mode, passed, weight)
                if mode is LINEAR and factor < SMALLEST and passed > 0.0 and weight > 0.0:
                    factor = SMALLEST
                work.factor[factors_of(layer, s, parent, work) + unsigned(lag)] = factor


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
    lags, column = (layer.table[j, CHILD_SKIP], j - work.since[j - i] + 1), layer.table[j, CHILD_BASE]
    scale = weigh(mode, values, child, column, lags, i, j, work)
    if scale == -np.inf:
        return 1.0
    pass_all_tokens(mode, layer, values.pot, s, j, lags, work)
    for leaf in range(bottom, stop):
        state, factor = layer.node[STATE, leaf], factors_of(layer, s, layer.node[PARENT, leaf], work)
        entered = place(work.enter, leaf - bottom, when(work, j - i))
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

    Add the posteriors of the segments to ``post`` and, unless that is 0, to the line at ``seen``.
    """
    k, end, bars = unsigned(lags[0]), unsigned(lags[1]), spread(bar)
    while k + FOUR <= end:
        pair = multiply(multiply(load(mass, column + k), load(work.factor, factor + k)), bars)
        started = load(work.enter, entered + k)
        store(add(load(work.enter_bar, entered + k), pair), work.enter_bar, entered + k)
        store(multiply_add(started, pair, load(post, column + k)), post, column + k)
        if seen > unsigned(0):
            store(multiply_add(started, pair, load(work.factor, seen + k)), work.factor, seen + k)
        k += FOUR
    return k


@part
def sum_segments_back(mode, layer, values, child, counts, s, i, j, work):
    """Reverse of ``sum_segments``: the bars of ``enter`` at every t, posteriors of the segments and of the tokens."""
    depth, root, bottom, stop = shape_of(layer, s)
    lags, column = (layer.table[j, CHILD_SKIP], j - work.since[j - i] + 1), layer.table[j, CHILD_BASE]
    if weigh(mode, values, child, column, lags, i, j, work) == -np.inf:
        return
    pass_all_tokens(mode, layer, values.pot, s, j, lags, work)
    parents, first = bottom - layer.level_at[s, depth - 1], when(work, j - i)
    if depth > 1:
        for parent in range(layer.level_at[s, depth - 1], bottom):
            seen = factors_of(layer, s, parent + parents, work)
            for lag in range(unsigned(lags[0]), unsigned(lags[1])):
                work.factor[seen + lag] = 0.0
    for leaf in range(bottom, stop):
        state, parent, x = layer.node[STATE, leaf], layer.node[PARENT, leaf], leaf - bottom
        factor, seen = factors_of(layer, s, parent, work), unsigned(0)
        if depth > 1:
            seen = factors_of(layer, s, parent + parents, work)
        bar, k = times(mode, work.node[UP_BAR, leaf - root], work.gain[j - i]), unsigned(lags[0])
        if mode is LINEAR:
            places = place(child.mass, state, column), factor, seen
            k = sum_past_back(work, place(work.enter, x, first), child.mass, counts.child, *places, lags, bar)
        for lag in range(np.int64(k), lags[1]):
            pair = times(mode, times(mode, child.mass[state, column + lag], work.factor[factor + unsigned(lag)]), bar)
            work.enter_bar[x, first + lag] = plus(mode, work.enter_bar[x, first + lag], pair)
            posterior = probability(mode, work.enter[x, first + lag], pair)
            counts.child[state, column + lag] += posterior
            if depth > 1:
                work.factor[seen + unsigned(lag)] += posterior
    if depth > 1:
        for lag in range(lags[0], lags[1]):
            for parent in range(layer.level_at[s, depth - 1], bottom):
                seen = factors_of(layer, s, parent + parents, work)
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
            state, factor = layer.node[STATE, leaf], factors_of(layer, s, layer.node[PARENT, leaf], work)
            for lag in range(layer.table[j, CHILD_SKIP], j - work.since[j - i] + 1):
                possible = work.enter[leaf - bottom, when(work, j - i) + lag] > 0.0
                possible = possible and work.factor[factor + unsigned(lag)] > 0.0
                if possible and child.mass[state, column + lag] > 0.0:
                    return True
    return False


@part
def extend_segments(mode, layer, values, child, s, i, j, work):
    """``extend_step`` for a bottom that has a table."""
    _, root, bottom, stop = shape_of(layer, s)
    step, low = j - i, 1.0
    for x in range(bottom - root, stop - root):
        value = work.node[DOWN, x]
        work.enter[x + root - bottom, when(work, step)] = value
        if 0.0 < value < low:
            low = value
        work.node[UP, x] = zero(mode)
    if mode is LINEAR:
        enter_scale(values, i, j, work)
    since = work.since[step - 1] if step > 0 else i
    while since < j and not reaches(layer, since, j):
        since += 1
    work.since[step] = since
    work.gain[step] = one(mode)
    work.scale[step + 1] = work.scale[step]
    if layer.table[j, CHILD_BASE] != NOWHERE:
        low = smaller(low, sum_segments(mode, layer, values, child, s, i, j, work))
        if mode is LINEAR and lost_segments(layer, child, s, i, j, work):
            low = 0.0
    keep_leaves(work, bottom - root, stop - bottom, step)
    return low
