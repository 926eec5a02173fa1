"""Bottoms with a table of segments: a leaf that ends at j is a sum over the starts of its segment."""

import numpy as np

from hscrf.engine.kernels.arithmetic import FAINT, LINEAR, SMALLEST, TINY, one, plus, probability, times, zero
from hscrf.engine.kernels.compile import inlined, part, unsigned
from hscrf.engine.kernels.exponentials import raise_all
from hscrf.engine.kernels.lanes import FOUR, add, larger, load, multiply, multiply_add, place, smaller, spread, store
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
from hscrf.engine.kernels.steps import keep_leaves, multiply_tokens, rescale
from hscrf.engine.kernels.trie import cell, shape_of


@inlined
def reaches(layer, t, j):
    """May a child segment that starts at t end at j."""
    return t + layer.table[t, CHILD_REACH] > j


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
def weigh(layer, values, child, i, j, work):
    """LINEAR: fill weight[lag] with the log scale of entering at j - lag and living till j; return the largest.

    ``raise_all`` turns these into factors.
    """
    base = layer.table[j, CHILD_BASE]
    largest = -np.inf
    peaks = 0.0
    for lag in range(j - work.since[j - i] + 1):
        t = j - lag
        peaks += values.peak[t]
        work.weight[lag] = -np.inf
        if reaches(layer, t, j):
            work.weight[lag] = work.scale[t - i] + child.shift[base + lag] + peaks
            largest = larger(largest, work.weight[lag])
    return largest


@part
def sum_segments(mode, layer, values, child, s, i, j, work):
    """Fill UP of the leaves from the child segments t..j that end at j. Cost O(L leaves).

    The Markov ancestors' tokens over t..j are a running product as t goes back, and so is their scale.
    """
    depth, root, bottom, stop = shape_of(layer, s)
    base = layer.table[j, CHILD_BASE]
    count = j - work.since[j - i] + 1
    n = stop - bottom
    scale = 0.0
    if mode is LINEAR:
        scale = weigh(layer, values, child, i, j, work)
        if scale == -np.inf:
            return 1.0
        raise_all(work.weight, count, scale)
    if mode is LINEAR and depth == 1 and n == child.mass.shape[1]:  # every state is a child of the top, in order
        lags = layer.table[j, CHILD_SKIP], count
        add_linear_segments(work.enter, j - i, child.mass, base, work.weight, lags, work.node, bottom - root)
    else:
        begin_tokens(mode, layer, s, work)
        for lag in range(count):
            t = j - lag
            pass_tokens(mode, layer, values.pot, s, t, work)
            if reaches(layer, t, j):
                for node in range(layer.level_at[s, depth - 1], bottom):
                    factor = work.node[PASSED, node - root]
                    if mode is LINEAR:
                        factor *= work.weight[lag]
                    add_segment(mode, layer, child.mass, base + lag, node, root, bottom, factor, t - i, work)
    if mode is LINEAR:
        return rescale(work, unsigned(bottom - root), unsigned(n), j - i, scale)
    return 1.0


@part
def add_linear_segments(enter, step, child, base, weight, lags, node, first):
    """UP[k] += sum over lag of enter[step - lag, k] * child[base + lag, k] * weight[lag], for all states k in order."""
    n, k, up = unsigned(child.shape[1]), unsigned(0), place(node, UP, first)
    while k + FOUR <= n:
        sums = load(node, up + k)
        for lag in range(*lags):
            value = multiply(load(enter, place(enter, step - lag, k)), load(child, place(child, base + lag, k)))
            sums = multiply_add(value, spread(weight[lag]), sums)
        store(sums, node, up + k)
        k += FOUR
    while k < n:
        for lag in range(*lags):
            node[UP, unsigned(first) + k] += enter[step - lag, k] * child[base + lag, k] * weight[lag]
        k += unsigned(1)


@part
def add_linear_segments_back(enter, enter_bar, step, child, child_post, base, weight, lags, node, first):
    """Reverse of ``add_linear_segments``."""
    n, bars = unsigned(child.shape[1]), place(node, UP_BAR, first)
    for lag in range(*lags):
        k, factor = unsigned(0), spread(weight[lag])
        entered, line = place(enter, step - lag, 0), place(child, base + lag, 0)
        while k + FOUR <= n:
            pair = multiply(multiply(load(child, line + k), factor), load(node, bars + k))
            store(add(load(enter_bar, entered + k), pair), enter_bar, entered + k)
            value = multiply_add(load(enter, entered + k), pair, load(child_post, line + k))
            store(value, child_post, line + k)
            k += FOUR
        while k < n:
            pair1 = child[base + lag, k] * weight[lag] * node[UP_BAR, unsigned(first) + k]
            enter_bar[step - lag, k] += pair1
            child_post[base + lag, k] += enter[step - lag, k] * pair1
            k += unsigned(1)


@part
def add_segment(mode, layer, mass, line, node, root, bottom, factor, entered, work):
    """Add the segments of all children of a node to UP: entered * child * factor."""
    first = layer.node[FIRST, node]
    for leaf in range(first, first + layer.node[COUNT, node]):
        value = times(mode, work.enter[entered, leaf - bottom], mass[line, layer.node[STATE, leaf]])
        work.node[UP, leaf - root] = plus(mode, work.node[UP, leaf - root], times(mode, value, factor))


@part
def sum_segments_back(mode, layer, values, child, counts, s, i, j, work):
    """Reverse of ``sum_segments``: the bars of ``enter`` at every t, posteriors of the segments and of the tokens."""
    depth, root, bottom, stop = shape_of(layer, s)
    base = layer.table[j, CHILD_BASE]
    count = j - work.since[j - i] + 1
    if mode is LINEAR:
        weigh(layer, values, child, i, j, work)
        raise_all(work.weight, count, work.scale[j - i + 1])
        n = stop - bottom
        if depth == 1 and n == child.mass.shape[1]:
            lags, rows = (
                (layer.table[j, CHILD_SKIP], count),
                (work.enter, work.enter_bar, j - i, child.mass, counts.child),
            )
            add_linear_segments_back(*rows, base, work.weight, lags, work.node, bottom - root)
            return
    begin_tokens(mode, layer, s, work)
    for lag in range(count):
        t = j - lag
        pass_tokens(mode, layer, values.pot, s, t, work)
        if not reaches(layer, t, j):
            continue
        for node in range(layer.level_at[s, depth - 1], bottom):
            factor = work.node[PASSED, node - root]
            if mode is LINEAR:
                factor *= work.weight[lag]
            work.node[POSTERIOR, node - root] = add_segment_back(
                mode, layer, child.mass, counts.child, base + lag, node, root, bottom, factor, t - i, work
            )
        if depth > 1:
            add_token_counts(layer, counts.pot, s, t, j, work)


@part
def add_segment_back(mode, layer, mass, post, line, node, root, bottom, factor, entered, work):
    """Reverse of ``add_segment``, the leaves' bars being in UP_BAR; return the posterior of these segments."""
    first = layer.node[FIRST, node]
    total = 0.0
    for leaf in range(first, first + layer.node[COUNT, node]):
        k, state = leaf - bottom, layer.node[STATE, leaf]
        pair = times(mode, times(mode, mass[line, state], factor), work.node[UP_BAR, leaf - root])
        work.enter_bar[entered, k] = plus(mode, work.enter_bar[entered, k], pair)
        posterior = probability(mode, work.enter[entered, k], pair)
        post[line, state] += posterior
        total += posterior
    return total


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


@part
def lost_segments(layer, values, child, s, i, j, work):
    """LINEAR: had a leaf, before it was rescaled, a sum too small to trust, although some segment could end at j?"""
    _, root, bottom, stop = shape_of(layer, s)
    least = larger(TINY, FAINT * work.gain[j - i])
    suspect = False
    for x in range(bottom - root, stop - root):
        suspect |= work.node[UP, x] < least
    if not suspect:
        return False
    begin_tokens(LINEAR, layer, s, work)
    for lag in range(j - work.since[j - i] + 1):
        pass_tokens(LINEAR, layer, values.pot, s, j - lag, work)
        if not reaches(layer, j - lag, j):
            continue
        for leaf in range(bottom, stop):
            row = layer.table[j, CHILD_BASE] + lag
            entered = work.enter[j - lag - i, leaf - bottom] > 0.0
            entered = entered and work.node[PASSED, layer.node[PARENT, leaf] - root] > 0.0
            if entered and work.node[UP, leaf - root] < least and child.mass[row, layer.node[STATE, leaf]] > 0.0:
                return True
    return False


@part
def extend_segments(mode, layer, values, child, s, i, j, work):
    """``extend_step`` for a bottom that has a table."""
    depth, root, bottom, stop = shape_of(layer, s)
    step, low = j - i, 1.0
    for x in range(bottom - root, stop - root):
        value = work.node[DOWN, x]
        work.enter[step, x + root - bottom] = value
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
        if mode is LINEAR and lost_segments(layer, values, child, s, i, j, work):
            low = 0.0
    keep_leaves(work, bottom - root, stop - bottom, step)
    return low
