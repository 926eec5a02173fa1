"""Leaves in many rows: they live through a step or, with a table, end there as segments."""

from hscrf.engine.kernels.arithmetic import LINEAR, both, either, one, times, zero
from hscrf.engine.kernels.compile import as_written, inlined, part, unsigned
from hscrf.engine.kernels.lanes import FOUR, add, lane_sum, larger, load, multiply, smaller, spread, store, where_above
from hscrf.engine.kernels.layout import CHILD_BASE, CHILD_REACH, CHILD_SKIP, NOWHERE, PARENT, STATE, TOKEN
from hscrf.engine.kernels.row_scales import unscale
from hscrf.engine.kernels.row_tokens import count_endings, scatter_counts
from hscrf.engine.kernels.row_trie import at, at_down
from hscrf.engine.kernels.rows import add_products, fill, segments, segments_back, sum_of_products
from hscrf.engine.kernels.trie import cell, shape_of

# ------------------------------------------------------------------------------
# Without a table


@inlined
def first_token(leaves, leaf, t):
    """Where the token of a leaf lies at t; those of the next ones follow."""
    return unsigned(t) * unsigned(leaves.number) + unsigned(leaf)


@inlined
def token_of(mode, leaves, apart, token, own, above, r, work):
    """What a leaf is multiplied by in four rows: the token of its stack, or its own and the product of all above it."""
    if apart is None:
        return spread(leaves.tokens[token])
    return both(mode, load(work.own, own + r), load(work.met, above + r))


@inlined
def live(mode, layer, leaves, apart, s, leaf, t, step, span, work):
    """Leaves that start at t, or go on from t - 1, live through t."""
    depth, root, bottom, stop = shape_of(layer, s)
    q, token = unsigned(work.rows), first_token(leaves, leaf, t)
    up, before = at(work, step, bottom - root), at(work, larger(step - 1, 0), bottom - root)
    goes_on = not layer.unit and step > 0 and layer.may_cross[depth + 1, t - 1]
    for x in range(bottom, stop):
        own, above = unsigned(layer.node[STATE, x]) * q, at(work, 0, layer.node[PARENT, x] - root)
        for r in range(span[1], span[2], FOUR):
            value = load(work.up, up + r)
            if goes_on:
                value = either(mode, value, load(work.up, before + r))
            store(both(mode, value, token_of(mode, leaves, apart, token, own, above, r, work)), work.up, up + r)
        up, before, token = up + q, before + q, token + unsigned(1)


@inlined
def live_back(layer, leaves, apart, counts, s, leaf, runs, alive, t, step, steps, span, work):
    """Reverse of ``live``: from ``up_bar`` of the leaves at t to ``down_bar``; and their posteriors.

    A unit bottom ends wherever it lives, which is counted with its tokens.
    """
    depth, root, bottom, stop = shape_of(layer, s)
    q, token, nothing = unsigned(work.rows), first_token(leaves, leaf, t), spread(0.0)
    up, bars, gain = at(work, step, bottom - root), at(work, 0, bottom - root), unsigned(step) * unsigned(work.rows)
    may_end, rescaled = layer.may_end[depth, t], work.rescaled[step]
    goes_on = not layer.unit and step + 1 < steps and layer.may_cross[depth + 1, t]
    if apart is not None:
        fill(work.found, unsigned(0), leaves.states, span, 0.0)
    if not layer.unit and may_end:
        count_leaves_that_end(layer, apart, counts, bottom - root, stop - root, runs, alive, t, step, span, work)
    for x in range(bottom, stop):
        own, above = unsigned(layer.node[STATE, x]) * q, at(work, 0, layer.node[PARENT, x] - root)
        total = nothing
        for r in range(span[1], span[2], FOUR):
            value = load(work.up, up + r)
            bar = load(work.up_bar, bars + r) if may_end else nothing
            if goes_on:
                bar = add(bar, load(work.goes_on_bar, bars + r))
            bar = where_above(value, nothing, bar, nothing)
            posterior = multiply(value, bar)
            if apart is None:
                total = add(total, posterior)
            else:
                store(add(load(work.found, own + r), posterior), work.found, own + r)
                store(posterior, work.posterior, bars + r)
            bar = multiply(bar, token_of(LINEAR, leaves, apart, token, own, above, r, work))
            if rescaled:
                bar = multiply(bar, load(work.gain, gain + r))
            store(bar, work.down_bar, bars + r)
            if not layer.unit:
                store(bar, work.goes_on_bar, bars + r)
        if apart is None:
            leaves.counts[token] += lane_sum(total)
        up, bars, token = up + q, bars + q, token + unsigned(1)
    if apart is not None:
        scatter_counts(layer, counts, s, runs, alive, t, span, work)


@inlined
def count_leaves_that_end(layer, apart, counts, begin, stop, runs, alive, t, step, span, work):
    """Add the posterior that a Markov bottom ends at t."""
    depth = layer.level_at.shape[1] - 2
    for x in range(begin, stop):
        up, bars = at(work, step, x), at(work, 0, x)
        if apart is None:
            counts.ending[depth, t] += sum_of_products(work.up, up, work.up_bar, bars, span)
        else:
            add_products(work.up, up, work.up_bar, bars, work.found, span)
    if apart is not None:
        count_endings(counts.ending, depth, runs, alive, t, work.found, unsigned(0))
        fill(work.found, unsigned(0), 1, span, 0.0)


@as_written
def stack_tokens(mode, layer, pot, tokens):
    """Fill tokens (N, leaves): the product of the tokens of a leaf and of all above it."""
    depth = layer.level_at.shape[1] - 2
    for t in range(tokens.shape[0]):
        k = 0
        for s in range(layer.level_at.shape[0]):
            for leaf in range(layer.level_at[s, depth], layer.level_at[s, depth + 1]):
                value, node = one(mode), leaf
                while layer.node[PARENT, node] >= 0:
                    value = times(mode, value, pot[cell(layer, TOKEN, node, t)])
                    node = layer.node[PARENT, node]
                tokens[t, k] = value
                k += 1


@as_written
def unstack_counts(layer, grad, ending, counts):
    """Reverse of ``stack_tokens``: add the posteriors (N, leaves) to the counts of all tokens of their stacks.

    A unit bottom ends wherever it lives.
    """
    depth = layer.level_at.shape[1] - 2
    for t in range(counts.shape[0]):
        k = 0
        for s in range(layer.level_at.shape[0]):
            for leaf in range(layer.level_at[s, depth], layer.level_at[s, depth + 1]):
                node = leaf
                while layer.node[PARENT, node] >= 0:
                    grad[cell(layer, TOKEN, node, t)] += counts[t, k]
                    node = layer.node[PARENT, node]
                if layer.unit:
                    ending[depth, t] += counts[t, k]
                k += 1


# ------------------------------------------------------------------------------
# With a table


@part
def sum_segments(mode, layer, leaves, table, s, t, step, since, span, work):
    """Leaves whose segment ends at t, over all its starts. Return the earliest of these, not before ``since``."""
    _, root, bottom, stop = shape_of(layer, s)
    while since < t and since + layer.table[since, CHILD_REACH] <= t:
        since += 1
    base, columns, size = layer.table[t, CHILD_BASE], table.size // leaves.states, unsigned(work.starting * work.rows)
    if base == NOWHERE:
        fill(work.up, at(work, step, bottom - root), stop - bottom, span, zero(mode))
        return since
    lags = layer.table[t, CHILD_SKIP], t - since + 1
    for x in range(bottom - root, stop - root):
        line = unsigned(layer.node[STATE, root + x] * columns + base)
        started, target = (work.down, at_down(work, step, x), size), (work.up, at(work, step, x))
        segments(mode, table, line, lags, started, target, span)
    return since


@part
def sum_segments_back(layer, leaves, table, s, t, step, steps, span, work):
    """Reverse of ``sum_segments``: from the bars of leaves that end at t or later to those that start at t."""
    _, root, bottom, stop = shape_of(layer, s)
    for x in range(bottom - root, stop - root):
        bars, later = at(work, 0, x), at_down(work, step, x)
        for r in range(span[1], span[2], FOUR):
            store(load(work.up_bar, bars + r), work.later, later + r)
    if work.rescaled[step]:
        unscale(leaves, (bottom - root, stop - root), step, steps, span, work)
    ahead, size = smaller(layer.table[t, CHILD_REACH], steps - step), unsigned(work.starting * work.rows)
    columns = table.size // leaves.states
    for x in range(bottom - root, stop - root):
        for lag in range(ahead):
            base = layer.table[t + lag, CHILD_BASE]
            line = layer.node[STATE, root + x] * columns + base + lag
            work.lines[lag] = line if base != NOWHERE else -1
        lines, ends = (work.lines, ahead), (work.later, size)
        started = work.down, at_down(work, step, x)
        segments_back((table, leaves.counts), lines, started, ends, work.down_bar, at(work, 0, x), span)
