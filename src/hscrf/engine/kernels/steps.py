"""Bottoms without a table of segments, unit or Markov: their leaves start, go on and end step by step."""

import numpy as np

from hscrf.engine.kernels.arithmetic import (
    HIGH,
    LINEAR,
    LOW,
    bar_if,
    both,
    one,
    padded,
    plus,
    probability,
    sum_up,
    times,
    zero,
)
from hscrf.engine.kernels.compile import inlined, unsigned
from hscrf.engine.kernels.lanes import (
    FOUR,
    higher,
    is_best,
    lane_max,
    lane_min,
    load,
    lower_above,
    place,
    prefetch,
    smaller,
    spread,
    store,
)
from hscrf.engine.kernels.layout import (
    COUNT,
    DOWN,
    DOWN_BAR,
    FIRST,
    GOES_ON_BAR,
    POSTERIOR,
    STATE,
    STOP,
    TOKEN,
    TOKENS,
    UP,
    UP_BAR,
)
from hscrf.engine.kernels.row_trie import at
from hscrf.engine.kernels.trie import cell, end_leaves, shape_of


@inlined
def fetch_tokens(layer, pot, s, t):
    """Have the tokens of time t, or their counts, in the cache when they are needed: processors do not guess them."""
    for level in range(1, layer.level_at.shape[1] - 1):
        node = layer.level_at[s, level]
        row = unsigned(cell(layer, TOKEN, node, t) - layer.node[STATE, node])
        for k in range(unsigned(0), unsigned(layer.node[TOKEN + 1, node]), unsigned(8)):
            prefetch(pot, row + k)


@inlined
def multiply_tokens(mode, layer, pot, s, t, work, last):
    """Fill TOKENS of the nodes of levels 1 .. last: the product, down from the top, of the tokens at t."""
    root = layer.level_at[s, 0]
    work.node[TOKENS, 0] = one(mode)
    for level in range(last):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            above = work.node[TOKENS, node - root]
            kid, first = unsigned(layer.node[FIRST, node]), unsigned(layer.node[FIRST, node] - root)
            passed = t * layer.node[TOKEN + 1, kid]
            for k in range(unsigned(layer.node[COUNT, node])):
                at = unsigned(layer.node[TOKEN, kid + k] + passed)
                work.node[TOKENS, first + k] = times(mode, above, pot[at])


@inlined
def count_tokens(layer, grad, s, node, t, work):
    """Add POSTERIOR of the children of a node to the counts of their tokens at t; that of the node is their sum."""
    root = layer.level_at[s, 0]
    kid, first = unsigned(layer.node[FIRST, node]), unsigned(layer.node[FIRST, node] - root)
    passed = t * layer.node[TOKEN + 1, kid]
    total = 0.0
    for k in range(unsigned(layer.node[COUNT, node])):
        posterior = work.node[POSTERIOR, first + k]
        grad[unsigned(layer.node[TOKEN, kid + k] + passed)] += posterior
        total += posterior
    work.node[POSTERIOR, node - root] = total


@inlined
def rescale(work, leaf, n, step, scale):
    """LINEAR: scale UP of the leaves if it has left the comfortable range; note its factor and its log scale.

    Return its smallest positive value after that.
    """
    up, high, low = place(work.node, UP, leaf), spread(0.0), spread(1.0)
    for k in range(unsigned(0), padded(n), FOUR):
        value = load(work.node, up + k)
        high, low = higher(high, value), lower_above(low, value, spread(0.0))
    largest, smallest = lane_max(high), lane_min(low)
    work.gain[step] = 1.0
    work.scale[step + 1] = scale
    if largest > 0.0 and not LOW < largest < HIGH:
        gain = 1.0 / largest
        work.gain[step] = gain
        work.scale[step + 1] = scale + np.log(largest)
        for k in range(n):
            work.node[UP, leaf + k] *= gain
        smallest *= gain
    return smallest


@inlined
def enter_leaves(mode, work, leaf, n, step):
    """Keep DOWN of the leaves as ``enter``, and make UP of them: DOWN * TOKENS.

    Return the smallest positive value of DOWN (LINEAR).
    """
    down, up, tokens = place(work.node, DOWN, leaf), place(work.node, UP, leaf), place(work.node, TOKENS, leaf)
    kept, low, keeps = place(work.enter, step, 0), spread(1.0), work.enter.shape[0] > 0
    for k in range(unsigned(0), padded(n), FOUR):
        value = load(work.node, down + k)
        if keeps:
            store(value, work.enter, kept + k)
        store(both(mode, value, load(work.node, tokens + k)), work.node, up + k)
        if mode is LINEAR:
            low = lower_above(low, value, spread(0.0))
    return lane_min(low)


@inlined
def keep_leaves(work, leaf, n, step):
    """Keep UP of the leaves."""
    up, kept = place(work.node, UP, leaf), at(work, step, leaf)
    for k in range(unsigned(0), padded(n), FOUR):
        store(load(work.node, up + k), work.up, kept + k)


@inlined
def go_on(mode, work, leaf, n, step):
    """Leaves alive at the step before meet TOKENS, too: add them to UP."""
    before = at(work, step - 1, leaf)
    if mode is LINEAR or is_best(mode):
        up, tokens = place(work.node, UP, leaf), place(work.node, TOKENS, leaf)
        for k in range(unsigned(0), padded(n), FOUR):
            alive = load(work.up, before + k), load(work.node, tokens + k)
            store(sum_up(mode, load(work.node, up + k), *alive), work.node, up + k)
    else:
        for k in range(n):
            value = work.up[before + k] + work.node[TOKENS, leaf + k]
            work.node[UP, leaf + k] = plus(mode, work.node[UP, leaf + k], value)


@inlined
def extend_step(mode, layer, values, s, i, j, work):
    """Fill UP of the leaves at j when the bottom has no table: it starts at j, or (not unit) goes on from j - 1.

    Return the smallest positive value that starts at j or is left after that (LINEAR).
    """
    depth, root, bottom, stop = shape_of(layer, s)
    multiply_tokens(mode, layer, values.pot, s, j, work, depth)
    leaf, n, step = unsigned(bottom - root), unsigned(stop - bottom), j - i
    low = enter_leaves(mode, work, leaf, n, step)
    if not layer.unit and step > 0 and layer.may_cross[depth + 1, j - 1]:
        go_on(mode, work, leaf, n, step)
    if mode is LINEAR:
        low = smaller(low, rescale(work, leaf, n, step, work.scale[step] + values.peak[j]))
    else:
        work.gain[step] = one(mode)
    if work.nodes > work.starting + 1:
        keep_leaves(work, leaf, n, step)
    end_leaves(mode, layer, values.pot, s, j, work)
    return low


@inlined
def recall(mode, layer, pot, child, s, i, j, work):
    """Make UP, and TOKENS if the bottom has no table, belong to j again."""
    depth, root, bottom, stop = shape_of(layer, s)
    leaf, n, step = unsigned(bottom - root), unsigned(stop - bottom), j - i
    ended = at(work, step, 0)
    for x in range(leaf):
        work.node[UP, x] = work.up[ended + x]
    if child is None:
        multiply_tokens(mode, layer, pot, s, j, work, depth)
    if layer.unit:
        gain = work.gain[step]
        for k in range(n):
            value = times(mode, work.enter[step, k], work.node[TOKENS, leaf + k])
            work.node[UP, leaf + k] = times(mode, value, gain)
    else:
        for k in range(n):
            work.node[UP, leaf + k] = work.up[ended + leaf + k]
    if child is None:
        end_leaves(mode, layer, pot, s, j, work)


@inlined
def extend_step_back(mode, layer, values, counts, s, i, j, steps, work):
    """Reverse of ``extend_step``: from UP_BAR of the leaves at j to DOWN_BAR; TOKENS are there, see ``recall``."""
    depth, root, bottom, stop = shape_of(layer, s)
    leaf, n, step = unsigned(bottom - root), unsigned(stop - bottom), j - i
    gain, ended = work.gain[step], 0.0
    if not layer.unit:
        for k in range(n):
            ended += probability(mode, work.node[UP, leaf + k], work.node[UP_BAR, leaf + k])
        if not layer.may_end[depth, j]:
            for k in range(n):
                work.node[UP_BAR, leaf + k] = zero(mode)
    if layer.stops:
        for x in range(bottom - root, stop - root):
            where = cell(layer, STOP, root + x, j)
            counts.pot[where] += probability(mode, work.node[UP, x], work.node[UP_BAR, x])
            work.node[UP_BAR, x] = times(mode, work.node[UP_BAR, x], values.pot[where])
    if layer.unit:
        for k in range(n):
            bar = times(mode, times(mode, work.node[UP_BAR, leaf + k], work.node[TOKENS, leaf + k]), gain)
            bar = bar_if(mode, work.enter[step, k], bar)
            posterior = probability(mode, work.enter[step, k], bar)
            work.node[DOWN_BAR, leaf + k] = bar
            work.node[POSTERIOR, leaf + k] = posterior
            ended += posterior
    else:
        goes_on, alive = j + 1 < i + steps and layer.may_cross[depth + 1, j], at(work, step, leaf)
        for k in range(n):
            bar = work.node[UP_BAR, leaf + k]
            if goes_on:
                bar = plus(mode, bar, work.node[GOES_ON_BAR, leaf + k])
            bar = bar_if(mode, work.up[alive + k], bar)
            work.node[POSTERIOR, leaf + k] = probability(mode, work.up[alive + k], bar)
            bar = times(mode, times(mode, bar, work.node[TOKENS, leaf + k]), gain)
            work.node[DOWN_BAR, leaf + k] = bar_if(mode, work.enter[step, k], bar)
            work.node[GOES_ON_BAR, leaf + k] = bar
    counts.ending[depth, j] += ended
    for level in range(depth - 1, -1, -1):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            count_tokens(layer, counts.pot, s, node, j, work)
