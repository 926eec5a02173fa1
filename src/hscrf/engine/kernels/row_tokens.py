"""Tokens of sequences side by side: states lie innermost in memory and rows in a bundle, so they are turned.

So are their starts and stops. Those of starts of one sequence are the same in all rows.
"""

import numpy as np

from hscrf.engine.kernels.arithmetic import both, one, padded
from hscrf.engine.kernels.compile import inlined, part, unsigned
from hscrf.engine.kernels.lanes import (
    FOUR,
    add,
    lane_sum,
    larger,
    load,
    multiply,
    prefetch,
    smaller,
    spread,
    store,
    turn,
)
from hscrf.engine.kernels.layout import AHEAD, PARENT, STATE, TOKEN, UNTIL
from hscrf.engine.kernels.rows import fill
from hscrf.engine.kernels.trie import cell, shape_of

FETCHED = 6  # processors do not guess which tokens so many sequences will need: they are asked for these steps ahead


@inlined
def own_time(runs, r, t):
    """The time of row r when it is t for its bundle: after its end its last, beyond the last row that of the last."""
    run = runs[smaller(r, runs.shape[0] - 1)]
    return smaller(t, run[UNTIL] - 1) + run[AHEAD]


@inlined
def block_of(layer, part, s, level):
    """Where the tokens of a level, or its starts or stops, lie at time 0, and how many a time has."""
    node = layer.level_at[s, level]
    return layer.node[part, node] - layer.node[STATE, node], layer.node[part + 1, node]


@inlined
def times_of(runs, r, t, first, width):
    """Where the tokens of a level lie for four rows."""
    one, two = first + own_time(runs, r, t) * width, first + own_time(runs, r + 1, t) * width
    three, four = first + own_time(runs, r + 2, t) * width, first + own_time(runs, r + 3, t) * width
    return unsigned(one), unsigned(two), unsigned(three), unsigned(four)


@part
def gather_level(pot, first, width, runs, t, ahead, own, span):
    """own[state, row]: the tokens of one level at t."""
    q, ahead = span[0], unsigned(ahead * width)
    for r in range(np.int64(span[1]), np.int64(span[2]), 4):
        a, b, c, d = times_of(runs, r, t, first, width)
        for v in range(unsigned(0), padded(width), FOUR):
            turned = turn(load(pot, a + v), load(pot, b + v), load(pot, c + v), load(pot, d + v))
            at = v * q + unsigned(r)
            prefetch(pot, a + v + ahead)
            prefetch(pot, b + v + ahead)
            prefetch(pot, c + v + ahead)
            prefetch(pot, d + v + ahead)
            store(turned[0], own, at)
            store(turned[1], own, at + q)
            store(turned[2], own, at + q + q)
            store(turned[3], own, at + q + q + q)


@part
def gather_tokens(mode, layer, pot, s, runs, t, ahead, span, work):
    """Fill ``own`` of the bottom's states at t, and ``met`` of the inner nodes: their tokens and those above them."""
    depth, root, _, _ = shape_of(layer, s)
    q, low, high = span
    fill(work.met, unsigned(0), 1, span, one(mode))
    for level in range(1, depth + 1):
        first, width = block_of(layer, TOKEN, s, level)
        gather_level(pot, first, width, runs, t, ahead, work.own, span)
        if level < depth:
            for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
                x, own = unsigned(node - root) * q, unsigned(layer.node[STATE, node]) * q
                above = unsigned(layer.node[PARENT, node] - root) * q
                for r in range(low, high, FOUR):
                    store(both(mode, load(work.met, above + r), load(work.own, own + r)), work.met, x + r)


@part
def scatter_level(grad, first, width, runs, alive, t, own, span):
    """Reverse of ``gather_level``: add own[state, row] of the rows that are alive to the counts of the tokens at t."""
    q, end, ahead = span[0], runs.shape[0], unsigned(FETCHED * width)
    for r in range(alive - alive % 4, end, 4):
        a, b, c, d = times_of(runs, r, t, first, width)
        whole = unsigned(width - width % 4) if alive <= r and r + 4 <= end else unsigned(0)
        for v in range(unsigned(0), whole, FOUR):
            at = v * q + unsigned(r)
            turned = turn(load(own, at), load(own, at + q), load(own, at + q + q), load(own, at + q + q + q))
            store(add(turned[0], load(grad, a + v)), grad, a + v)
            store(add(turned[1], load(grad, b + v)), grad, b + v)
            store(add(turned[2], load(grad, c + v)), grad, c + v)
            store(add(turned[3], load(grad, d + v)), grad, d + v)
        for row in range(larger(r, alive), smaller(r + 4, end)):
            at = unsigned(first + (t + runs[row, AHEAD]) * width)
            for v in range(unsigned(0), unsigned(width), unsigned(8)):
                prefetch(grad, at + v - ahead)
            for v in range(whole, unsigned(width)):
                grad[at + v] += own[v * q + unsigned(row)]


@part
def scatter_counts(layer, counts, s, runs, alive, t, span, work):
    """Reverse of ``gather_tokens``: count the tokens of leaves, ``found`` by their states, and of all above them."""
    depth, root, bottom, stop = shape_of(layer, s)
    q, low, high = span
    first, width = block_of(layer, TOKEN, s, depth)
    scatter_level(counts.pot, first, width, runs, alive, t, work.found, span)
    fill(work.posterior, unsigned(0), bottom - root, span, 0.0)
    for node in range(stop - 1, root, -1):
        x, above = unsigned(node - root) * q, unsigned(layer.node[PARENT, node] - root) * q
        for r in range(low, high, FOUR):
            store(add(load(work.posterior, above + r), load(work.posterior, x + r)), work.posterior, above + r)
    for level in range(1, depth):
        first, width = block_of(layer, TOKEN, s, level)
        fill(work.found, unsigned(0), width, span, 0.0)
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            x, own = unsigned(node - root) * q, unsigned(layer.node[STATE, node]) * q
            for r in range(low, high, FOUR):
                store(add(load(work.found, own + r), load(work.posterior, x + r)), work.found, own + r)
        scatter_level(counts.pot, first, width, runs, alive, t, work.found, span)
    if layer.unit:  # and each has ended there
        count_endings(counts.ending, depth, runs, alive, t, work.posterior, unsigned(0))


@inlined
def count_endings(ending, level, runs, alive, t, values, at):
    """Add a row of posteriors, at a place, to those that a level ends at t."""
    for row in range(alive, runs.shape[0]):
        ending[level, t + runs[row, AHEAD]] += values[at + unsigned(row)]


# ------------------------------------------------------------------------------
# First and last steps of the Markov levels between the top and the leaves


@part
def meet(mode, layer, pot, part, apart, s, level, runs, t, values, at, span, work):
    """Multiply the values of all nodes of a level, from a place on, by what they meet when they start, or end, at t."""
    q, low, high = span
    first, width = block_of(layer, part, s, level)
    if apart is not None and width > 0:
        gather_level(pot, first, width, runs, t, 0, work.own, span)
    for node in range(layer.level_at[s, level], layer.level_at[s, level + 1] if width > 0 else 0):
        own, factor = unsigned(layer.node[STATE, node]) * q, spread(pot[cell(layer, part, node, t)])
        for r in range(low, high, FOUR):
            if apart is not None:
                factor = load(work.own, own + r)
            store(both(mode, load(values, at + r), factor), values, at + r)
        at += q


@part
def meet_back(layer, pot, grad, part, apart, s, level, runs, alive, t, values, at, bars, here, span, work):
    """Reverse of ``meet``, the values being those after it: multiply the bars, and count."""
    q, low, high = span
    first, width = block_of(layer, part, s, level)
    if apart is not None and width > 0:
        gather_level(pot, first, width, runs, t, 0, work.own, span)
        fill(work.found, unsigned(0), width, span, 0.0)
    for node in range(layer.level_at[s, level], layer.level_at[s, level + 1] if width > 0 else 0):
        where, own = cell(layer, part, node, t), unsigned(layer.node[STATE, node]) * q
        factor, total = spread(pot[where]), spread(0.0)
        for r in range(low, high, FOUR):
            bar = load(bars, here + r)
            posterior = multiply(load(values, at + r), bar)
            if apart is not None:
                factor = load(work.own, own + r)
                store(add(load(work.found, own + r), posterior), work.found, own + r)
            total = add(total, posterior)
            store(multiply(bar, factor), bars, here + r)
        if apart is None:
            grad[where] += lane_sum(total)
        at, here = at + q, here + q
    if apart is not None and width > 0:
        scatter_level(grad, first, width, runs, alive, t, work.found, span)
