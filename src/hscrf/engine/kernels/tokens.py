"""What nodes meet at a step, one by one: their tokens, and their starts and stops; and who ends there.

Starts of one sequence, side by side, meet the same in all rows; tokens of their whole stacks are multiplied beforehand
(``leaves.stack_tokens``). A run alone multiplies them step by step. Sequences side by side have their own: states lie
innermost in memory and rows in a bundle, so they are turned.
"""

import numpy as np

from hscrf.engine.kernels import rows
from hscrf.engine.kernels.arithmetic import both, one, padded, probability, times
from hscrf.engine.kernels.compile import inlined, part, unsigned
from hscrf.engine.kernels.lanes import (
    FOUR,
    add,
    lane_sum,
    load,
    multiply,
    prefetch,
    smaller,
    spread,
    store,
    turn,
)
from hscrf.engine.kernels.layout import AHEAD, COUNT, FIRST, PARENT, STATE, TOKEN, UNTIL
from hscrf.engine.kernels.structure import at, cell, shape_of


@inlined
def fill(values, at, n, value, span, work):
    """The same number for n nodes."""
    if work.alone:
        for x in range(at, at + unsigned(n)):
            values[x] = value
    else:
        rows.fill(values, at, n, span, value)


# ------------------------------------------------------------------------------
# A run alone


@inlined
def fetch_tokens(layer, pot, s, t):
    """Have the tokens of time t, or their counts, in the cache when they are needed: processors do not guess them."""
    for level in range(1, layer.level_at.shape[1] - 1):
        node = layer.level_at[s, level]
        row = unsigned(cell(layer, TOKEN, node, t) - layer.node[STATE, node])
        for k in range(unsigned(0), unsigned(layer.node[TOKEN + 1, node]), unsigned(8)):
            prefetch(pot, row + k)


@inlined
def multiply_tokens(mode, layer, pot, s, t, lowest, work):
    """Fill ``met`` of the nodes of levels 1 .. lowest: the product, down from the top, of the tokens at t."""
    root = layer.level_at[s, 0]
    work.met[0] = one(mode)
    for level in range(lowest):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            above = work.met[node - root]
            kid, first = unsigned(layer.node[FIRST, node]), unsigned(layer.node[FIRST, node] - root)
            passed = t * layer.node[TOKEN + 1, kid]
            for k in range(unsigned(layer.node[COUNT, node])):
                work.met[first + k] = times(mode, above, pot[unsigned(layer.node[TOKEN, kid + k] + passed)])


@inlined
def count_tokens(layer, counts, s, t, work):
    """Reverse of ``multiply_tokens``: add ``posterior`` of the leaves to the counts of their tokens and all above."""
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth - 1, -1, -1):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            kid, first = unsigned(layer.node[FIRST, node]), unsigned(layer.node[FIRST, node] - root)
            passed, total = t * layer.node[TOKEN + 1, kid], 0.0
            for k in range(unsigned(layer.node[COUNT, node])):
                posterior = work.posterior[first + k]
                counts.pot[unsigned(layer.node[TOKEN, kid + k] + passed)] += posterior
                total += posterior
            work.posterior[node - root] = total
    if layer.unit:  # and each has ended there
        counts.ending[depth, t] += work.posterior[0]


# ------------------------------------------------------------------------------
# Sequences side by side

FETCHED = 6  # processors do not guess which tokens so many sequences will need: they are asked for these steps ahead


@inlined
def own_time(runs, r, t):
    """The time of row r when it is t for its bundle: after its end its last, beyond the last row that of the last."""
    run = runs[smaller(r, runs.shape[0] - 1)]
    return smaller(t, run[UNTIL] - 1) + run[AHEAD]


@inlined
def block_of(layer, kind, s, level):
    """Where the TOKENs of a level, or its BEGINs or STOPs, lie at time 0, and how many a time has.

    Their stride is the number of states; 0: there are none.
    """
    node = layer.level_at[s, level]
    return layer.node[kind, node] - layer.node[STATE, node], layer.node[kind + 1, node]


@inlined
def times_of(runs, r, t, begin, width):
    """Where the tokens of a level lie for four rows."""
    a, b = begin + own_time(runs, r, t) * width, begin + own_time(runs, r + 1, t) * width
    c, d = begin + own_time(runs, r + 2, t) * width, begin + own_time(runs, r + 3, t) * width
    return unsigned(a), unsigned(b), unsigned(c), unsigned(d)


@part
def gather_level(pot, begin, width, runs, t, ahead, own, span):
    """own[state, row]: the tokens of one level at t."""
    q, ahead = span[0], unsigned(ahead * width)
    for r in range(np.int64(span[1]), np.int64(span[2]), 4):
        a, b, c, d = times_of(runs, r, t, begin, width)
        for v in range(unsigned(0), padded(width), FOUR):
            turned = turn(load(pot, a + v), load(pot, b + v), load(pot, c + v), load(pot, d + v))
            target = v * q + unsigned(r)
            prefetch(pot, a + v + ahead)
            prefetch(pot, b + v + ahead)
            prefetch(pot, c + v + ahead)
            prefetch(pot, d + v + ahead)
            store(turned[0], own, target)
            store(turned[1], own, target + q)
            store(turned[2], own, target + q + q)
            store(turned[3], own, target + q + q + q)


@part
def gather_tokens(mode, layer, pot, s, runs, t, ahead, span, work):
    """Fill ``own`` of the bottom's states at t, and ``met`` of the inner nodes: their tokens and those above them."""
    depth, root, _, _ = shape_of(layer, s)
    q, low, high = span
    rows.fill(work.met, unsigned(0), 1, span, one(mode))
    for level in range(1, depth + 1):
        begin, width = block_of(layer, TOKEN, s, level)
        gather_level(pot, begin, width, runs, t, ahead, work.own, span)
        if level < depth:
            for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
                x, own = unsigned(node - root) * q, unsigned(layer.node[STATE, node]) * q
                above = unsigned(layer.node[PARENT, node] - root) * q
                for r in range(low, high, FOUR):
                    store(both(mode, load(work.met, above + r), load(work.own, own + r)), work.met, x + r)


@part
def scatter_level(grad, begin, width, runs, first_row, t, own, span):
    """Reverse of ``gather_level``: add own[state, row] to the counts of the tokens at t.

    A run that has ended adds zeros, and so do the states that fill the last vector: they belong to the next step.
    """
    q, ahead = span[0], unsigned(FETCHED * width)
    for r in range(first_row - first_row % 4, runs.shape[0], 4):
        a, b, c, d = times_of(runs, r, t, begin, width)
        for v in range(unsigned(0), padded(width), FOUR):
            here = v * q + unsigned(r)
            turned = turn(load(own, here), load(own, here + q), load(own, here + q + q), load(own, here + q + q + q))
            prefetch(grad, a + v - ahead)
            prefetch(grad, b + v - ahead)
            prefetch(grad, c + v - ahead)
            prefetch(grad, d + v - ahead)
            store(add(turned[0], load(grad, a + v)), grad, a + v)
            store(add(turned[1], load(grad, b + v)), grad, b + v)
            store(add(turned[2], load(grad, c + v)), grad, c + v)
            store(add(turned[3], load(grad, d + v)), grad, d + v)


@part
def scatter_counts(layer, counts, s, runs, first_row, t, span, work):
    """Reverse of ``gather_tokens``: count the tokens of leaves, ``found`` by their states, and of all above them.

    ``posterior`` of the inner nodes holds the sums of their leaves.
    """
    depth, root, bottom, _ = shape_of(layer, s)
    q, low, high = span
    begin, width = block_of(layer, TOKEN, s, depth)
    scatter_level(counts.pot, begin, width, runs, first_row, t, work.found, span)
    for node in range(bottom - 1, root, -1):
        x, above = unsigned(node - root) * q, unsigned(layer.node[PARENT, node] - root) * q
        for r in range(low, high, FOUR):
            store(add(load(work.posterior, above + r), load(work.posterior, x + r)), work.posterior, above + r)
    for level in range(1, depth):
        begin, width = block_of(layer, TOKEN, s, level)
        rows.fill(work.found, unsigned(0), padded(width), span, 0.0)
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            x, own = unsigned(node - root) * q, unsigned(layer.node[STATE, node]) * q
            for r in range(low, high, FOUR):
                store(add(load(work.found, own + r), load(work.posterior, x + r)), work.found, own + r)
        scatter_level(counts.pot, begin, width, runs, first_row, t, work.found, span)
    if layer.unit:  # and each has ended there
        add_endings(counts.ending, depth, runs, first_row, t, work.posterior)


@inlined
def add_endings(ending, level, runs, first_row, t, values):
    """Add a row of posteriors to those that a level ends at t."""
    for row in range(first_row, runs.shape[0]):
        ending[level, t + runs[row, AHEAD]] += values[unsigned(row)]


# ------------------------------------------------------------------------------
# Ends, and what nodes meet at their first and last steps


@inlined
def count_endings(mode, counts, level, x, number, runs, first_row, t, step, span, work):
    """Add the posteriors that some nodes of a level, from x on, end at t."""
    up, bars = at(work, step, x), at(work, 0, x)
    if work.alone:
        total = 0.0
        for k in range(unsigned(number)):
            total += probability(mode, work.up[up + k], work.up_bar[bars + k])
        counts.ending[level, t] += total
    elif not work.apart:
        for _ in range(number):
            counts.ending[level, t] += rows.sum_of_products(work.up, up, work.up_bar, bars, span)
            up, bars = up + span[0], bars + span[0]
    else:
        rows.fill(work.found, unsigned(0), 1, span, 0.0)
        for _ in range(number):
            rows.add_products(work.up, up, work.up_bar, bars, work.found, span)
            up, bars = up + span[0], bars + span[0]
        add_endings(counts.ending, level, runs, first_row, t, work.found)


@part
def meet(mode, layer, pot, border, s, level, runs, t, values, place, span, work):
    """Multiply the values of all nodes of a level, from a place on, by what they meet when they start, or end, at t."""
    q, low, high = span
    begin, width = block_of(layer, border, s, level)
    if work.apart and width > 0:
        gather_level(pot, begin, width, runs, t, 0, work.own, span)
    for node in range(layer.level_at[s, level], layer.level_at[s, level + 1] if width > 0 else 0):
        factor = pot[cell(layer, border, node, t)]
        if work.alone:
            values[place] = times(mode, values[place], factor)
        else:
            factors, own = spread(factor), unsigned(layer.node[STATE, node]) * q
            for r in range(low, high, FOUR):
                if work.apart:
                    factors = load(work.own, own + r)
                store(both(mode, load(values, place + r), factors), values, place + r)
        place += q


@part
def meet_back(mode, layer, pot, grad, border, s, level, runs, first_row, t, values, place, bars, here, span, work):
    """Reverse of ``meet``, the values being those after it: multiply the bars, and count."""
    q, low, high = span
    begin, width = block_of(layer, border, s, level)
    if work.apart and width > 0:
        gather_level(pot, begin, width, runs, t, 0, work.own, span)
        rows.fill(work.found, unsigned(0), padded(width), span, 0.0)
    for node in range(layer.level_at[s, level], layer.level_at[s, level + 1] if width > 0 else 0):
        where, own = cell(layer, border, node, t), unsigned(layer.node[STATE, node]) * q
        if work.alone:
            grad[where] += probability(mode, values[place], bars[here])
            bars[here] = times(mode, bars[here], pot[where])
        else:
            factor, total = spread(pot[where]), spread(0.0)
            for r in range(low, high, FOUR):
                bar = load(bars, here + r)
                posterior = multiply(load(values, place + r), bar)
                if work.apart:
                    factor = load(work.own, own + r)
                    store(add(load(work.found, own + r), posterior), work.found, own + r)
                total = add(total, posterior)
                store(multiply(bar, factor), bars, here + r)
            if not work.apart:
                grad[where] += lane_sum(total)
        place, here = place + q, here + q
    if work.apart and width > 0:
        scatter_level(grad, begin, width, runs, first_row, t, work.found, span)
