"""Leaves: they live through a step or, with a table, end there as segments."""

from hscrf.engine.kernels import groups, rows
from hscrf.engine.kernels.arithmetic import (
    FAINTEST,
    LINEAR,
    both,
    either,
    none,
    one,
    padded,
    probabilities,
    times,
    zero,
)
from hscrf.engine.kernels.compile import as_written, inlined, part, unsigned
from hscrf.engine.kernels.lanes import FOUR, add, lane_sum, larger, load, smaller, spread, store, where_above
from hscrf.engine.kernels.layout import (
    CHILD_BASE,
    CHILD_REACH,
    CHILD_SKIP,
    COUNT,
    FIRST,
    NOWHERE,
    OF_PARENTS,
    PARENT,
    STATE,
    STOP,
    TOKEN,
    WEIGHT,
)
from hscrf.engine.kernels.scales import unscale
from hscrf.engine.kernels.structure import at, at_down, cell, entered_at, lines_of, place_of, shape_of, starting_leaves
from hscrf.engine.kernels.tokens import (
    count_endings,
    count_tokens,
    fill,
    meet,
    meet_back,
    multiply_tokens,
    scatter_counts,
)

# ------------------------------------------------------------------------------
# Without a table


@inlined
def first_token(layer, bottom, t):
    """Where the token of the first leaf lies at t; those of the next ones follow."""
    return unsigned(t) * unsigned(layer.node.shape[1]) + unsigned(bottom)


@inlined
def token_of(mode, layer, leaves, s, leaf, token, r, work):
    """What a leaf is multiplied by in four rows, or alone the four leaves from leaf + r on."""
    if work.alone:
        return load(work.met, unsigned(leaf - layer.level_at[s, 0]) + r)
    if not work.apart:
        return spread(leaves.tokens[token])
    own, above = (
        unsigned(layer.node[STATE, leaf] * work.rows),
        at(work, 0, layer.node[PARENT, leaf] - layer.level_at[s, 0]),
    )
    return both(mode, load(work.own, own + r), load(work.met, above + r))


@inlined
def live(mode, layer, leaves, s, t, step, span, work):
    """Leaves that start at t, or go on from t - 1, live through t."""
    depth, root, bottom, stop = shape_of(layer, s)
    q, token, x = unsigned(work.rows), first_token(layer, bottom, t), bottom - root + work.alive_at
    up, before = at(work, step, x), at(work, larger(step - 1, 0), x)
    goes_on = not layer.unit and step > 0 and layer.may_cross[depth + 1, t - 1]
    source, started, _ = starting_leaves(layer, s, step, work)
    count, low, high = lines_of(work, stop - bottom, span)
    if work.alone and not layer.unit:
        store(none(mode), work.up, up + unsigned(stop - bottom))  # nothing comes from there, but vectors reach it
    for leaf in range(bottom, bottom + count):
        for r in range(low, high, FOUR):
            value = load(source, started + r)
            if goes_on:
                value = either(mode, value, load(work.up, before + r))
            own = token_of(mode, layer, leaves, s, leaf, token, r, work)
            store(both(mode, value, own), work.up, up + r)
        up, before, started, token = up + q, before + q, started + q, token + unsigned(1)


@inlined
def end_leaves(mode, layer, pot, s, runs, t, step, span, work):
    """Leaves that are alive at t and end there meet their last step, where they have potentials of it."""
    depth, root, bottom, stop = shape_of(layer, s)
    if layer.borders and not layer.unit:
        here, end = at(work, step, bottom - root + work.alive_at), at(work, step, bottom - root)
        count, low, high = lines_of(work, stop - bottom, span)
        if work.alone:
            store(none(mode), work.up, end + unsigned(stop - bottom))  # which vectors reach
        for _ in range(count):
            for r in range(low, high, FOUR):
                store(load(work.up, here + r), work.up, end + r)
            here, end = here + span[0], end + span[0]
        end = at(work, step, bottom - root)
        meet(mode, layer, pot, STOP, s, depth, runs, t, work.up, end, span, work)


@inlined
def end_leaves_back(mode, layer, pot, counts, s, runs, first_row, t, step, span, work):
    """Reverse of ``end_leaves``: ``up_bar`` becomes that of leaves that are alive; and who ends."""
    depth, root, bottom, stop = shape_of(layer, s)
    if not layer.unit and layer.may_end[depth, t]:
        x = bottom - root
        count_endings(mode, counts, depth, x, stop - bottom, runs, first_row, t, step, span, work)
        if layer.borders:
            places = work.up, at(work, step, x), work.up_bar, at(work, 0, x)
            meet_back(mode, layer, pot, counts.pot, STOP, s, depth, runs, first_row, t, *places, span, work)


@inlined
def live_back(mode, layer, leaves, counts, s, runs, first_row, t, step, steps, span, work):
    """Reverse of ``live``: from ``up_bar`` of the leaves at t to ``down_bar``; and their posteriors.

    A unit bottom ends wherever it lives, which is counted with its tokens.
    """
    depth, root, bottom, stop = shape_of(layer, s)
    q, token, nothing = unsigned(work.rows), first_token(layer, bottom, t), none(mode)
    up, bars, started = at(work, step, bottom - root + work.alive_at), at(work, 0, bottom - root), unsigned(0)
    may_end, gain = layer.may_end[depth, t], place_of(work, step) * q
    goes_on = not layer.unit and step + 1 < steps and layer.may_cross[depth + 1, t]
    rescaled = mode is LINEAR and work.rescaled[place_of(work, step)]
    if work.apart:
        rows.fill(work.found, unsigned(0), padded(leaves.states), span, 0.0)
        rows.fill(work.posterior, unsigned(0), bottom - root, span, 0.0)
    if not layer.unit:
        started = at_down(work, step, bottom - root)
    count, low, high = lines_of(work, stop - bottom, span)
    for leaf in range(bottom, bottom + count):
        total, own, above = (
            spread(0.0),
            unsigned(layer.node[STATE, leaf]) * q,
            at(work, 0, layer.node[PARENT, leaf] - root),
        )
        for r in range(low, high, FOUR):
            value = load(work.up, up + r)
            bar = load(work.up_bar, bars + r) if may_end else nothing
            if goes_on:
                bar = either(mode, bar, load(work.goes_on_bar, bars + r))
            bar = where_above(value, nothing, bar, nothing)
            posterior = probabilities(mode, value, bar)
            if work.alone:
                store(posterior, work.posterior, bars + r)
            elif not work.apart:
                total = add(total, posterior)
            else:
                store(add(load(work.found, own + r), posterior), work.found, own + r)
                store(add(load(work.posterior, above + r), posterior), work.posterior, above + r)
            bar = both(mode, bar, token_of(mode, layer, leaves, s, leaf, token, r, work))
            if rescaled:
                bar = both(mode, bar, spread(work.gain[gain]) if work.alone else load(work.gain, gain + r))
            if not layer.unit:
                store(bar, work.goes_on_bar, bars + r)
                bar = where_above(load(work.down, started + r), nothing, bar, nothing)
            store(bar, work.down_bar, bars + r)
        if not work.alone and not work.apart:
            leaves.counts[token] += lane_sum(total)
        up, bars, started, token = up + q, bars + q, started + q, token + unsigned(1)
    if work.alone:
        count_tokens(layer, counts, s, t, work)
    elif work.apart:
        scatter_counts(layer, counts, s, runs, first_row, t, span, work)


@as_written
def stack_tokens(mode, layer, pot, tokens):
    """Fill tokens (N, nodes), of leaves: the product of the tokens of a leaf and of all above it."""
    depth = layer.level_at.shape[1] - 2
    for t in range(tokens.shape[0]):
        for s in range(layer.level_at.shape[0]):
            for leaf in range(layer.level_at[s, depth], layer.level_at[s, depth + 1]):
                value, node = one(mode), leaf
                while layer.node[PARENT, node] >= 0:
                    value = times(mode, value, pot[cell(layer, TOKEN, node, t)])
                    node = layer.node[PARENT, node]
                tokens[t, leaf] = value


@as_written
def unstack_counts(layer, grad, ending, counts):
    """Reverse of ``stack_tokens``: add the posteriors (N, nodes) of leaves to the counts of all tokens of their stacks.

    A unit bottom ends wherever it lives.
    """
    depth = layer.level_at.shape[1] - 2
    for t in range(counts.shape[0]):
        for s in range(layer.level_at.shape[0]):
            for leaf in range(layer.level_at[s, depth], layer.level_at[s, depth + 1]):
                node = leaf
                while layer.node[PARENT, node] >= 0:
                    grad[cell(layer, TOKEN, node, t)] += counts[t, leaf]
                    node = layer.node[PARENT, node]
                if layer.unit:
                    ending[depth, t] += counts[t, leaf]


# ------------------------------------------------------------------------------
# With a table


@part
def sum_segments(mode, layer, pot, leaves, table, s, t, step, since, span, work):
    """Leaves whose segment ends at t, over all its starts. Return the earliest of these, not before ``since``."""
    _, root, bottom, stop = shape_of(layer, s)
    while since < t and since + layer.columns[since, CHILD_REACH] <= t:
        since += 1
    base, columns, n = layer.columns[t, CHILD_BASE], table.size // leaves.states, stop - bottom
    up, lags = at(work, step, bottom - root), (layer.columns[t, CHILD_SKIP], t - since + 1)
    enter(bottom - root, n, step, work)
    if work.alone:
        work.since[step] = since
        store(none(mode), work.up, up + unsigned(n))  # nothing comes from there, but vectors reach it
        if layer.between and base != NOWHERE:
            pass_tokens(mode, layer, pot, leaves, s, t, lags, work)
    if base == NOWHERE:
        fill(work.up, up, n, zero(mode), span, work)
        return since
    for k in range(n):
        line = unsigned(layer.node[STATE, bottom + k] * columns + base)
        here, target = entered_at(work, k, step), at(work, step, bottom - root + k)
        if not work.alone:
            started = work.entered, here, unsigned(work.by_step)
            rows.segments(mode, table, line, lags, started, (work.up, target), span)
        elif not layer.between:
            work.up[target] = groups.segments(mode, table, line, lags, work.entered, here)
        else:
            weigh(mode, layer, leaves, table, line, s, bottom + k, lags, work)
            weights = line_of(leaves, WEIGHT)
            work.up[target] = groups.segments(mode, work.factor, weights, lags, work.entered, here)
    return since


@inlined
def enter(leaf, n, step, work):
    """Note the leaves that start at a step."""
    started, here = at_down(work, step, leaf), entered_at(work, 0, step)
    if work.alone:
        for k in range(n):
            work.entered[entered_at(work, k, step)] = work.down[started + unsigned(k)]
    else:
        for k in range(unsigned(0), unsigned(n * work.rows), FOUR):
            store(load(work.down, started + k), work.entered, here + k)


@part
def sum_segments_back(mode, layer, pot, leaves, table, counts, s, t, step, steps, span, work):
    """Reverse of ``sum_segments``: from the bars of leaves that end at t or later to those that start at t.

    Alone those that end at t spread to all starts. Side by side those that start at t gather from all ends.
    """
    _, root, bottom, stop = shape_of(layer, s)
    if not work.alone:
        for k in range(stop - bottom):
            bars, here = at(work, 0, bottom - root + k), entered_at(work, k, step)
            for r in range(span[1], span[2], FOUR):
                store(load(work.up_bar, bars + r), work.segment_bar, here + r)
    if mode is LINEAR and work.rescaled[step]:
        unscale(leaves, bottom - root, stop - bottom, step, steps, span, work)
    if work.alone:
        spread_bars(mode, layer, pot, leaves, table, counts, s, t, step, work)
    else:
        gather_bars(layer, leaves, table, s, t, step, steps, span, work)


@inlined
def gather_bars(layer, leaves, table, s, t, step, steps, span, work):
    """Side by side: from the bars of leaves that end at t or later to those that start at t."""
    _, root, bottom, stop = shape_of(layer, s)
    ahead, columns = smaller(layer.columns[t, CHILD_REACH], steps - step), table.size // leaves.states
    for k in range(stop - bottom):
        for lag in range(ahead):
            base = layer.columns[t + lag, CHILD_BASE]
            line = layer.node[STATE, bottom + k] * columns + base + lag
            work.places[lag] = line if base != NOWHERE else -1
        here = entered_at(work, k, step)
        started, ends = (work.entered, here), (work.segment_bar, unsigned(work.by_step))
        bars = at(work, 0, bottom - root + k)
        rows.segments_back((table, leaves.counts), (work.places, ahead), started, ends, work.down_bar, bars, span)


# ------------------------------------------------------------------------------
# With a table, alone: a sum over lags reads memory in order


@inlined
def line_of(leaves, k):
    """Where line k of ``factor`` begins."""
    return unsigned(k * leaves.longest)


@inlined
def factors_of(layer, leaves, s, parent):
    """Where the factors of a parent of leaves begin."""
    return line_of(leaves, OF_PARENTS + parent - layer.level_at[s, layer.level_at.shape[1] - 3])


@inlined
def at_least_faint(mode, a, b):
    """a * b. In LINEAR only the impossible is zero."""
    value = times(mode, a, b)
    if mode is LINEAR and value < FAINTEST and a > 0.0 and b > 0.0:
        value = FAINTEST
    return value


@part
def pass_tokens(mode, layer, pot, leaves, s, t, lags, work):
    """Fill the factors of all parents: by lag, the tokens of a parent and of those above it up to t."""
    depth, root, bottom, _ = shape_of(layer, s)
    for lag in range(lags[1]):
        multiply_tokens(mode, layer, pot, s, t - lag, depth - 1, work)
        for parent in range(layer.level_at[s, depth - 1], bottom):
            here, passed = factors_of(layer, leaves, s, parent) + unsigned(lag), work.met[parent - root]
            if lag > 0:
                passed = at_least_faint(mode, passed, work.factor[here - unsigned(1)])
            work.factor[here] = passed


@part
def weigh(mode, layer, leaves, table, line, s, leaf, lags, work):
    """Fill the line WEIGHT: the masses of the segments of a leaf that end now, times the factors of its parent."""
    factors, weights = factors_of(layer, leaves, s, layer.node[PARENT, leaf]), line_of(leaves, WEIGHT)
    for lag in range(unsigned(lags[0]), unsigned(lags[1])):
        work.factor[weights + lag] = at_least_faint(mode, table[line + lag], work.factor[factors + lag])


@inlined
def spread_bars(mode, layer, pot, leaves, table, counts, s, t, step, work):
    """Alone: from the bars of leaves that end at t to those of all that had entered."""
    depth, root, bottom, stop = shape_of(layer, s)
    base, columns, parents = layer.columns[t, CHILD_BASE], table.size // leaves.states, 0
    lags, bars, gain = (layer.columns[t, CHILD_SKIP], t - work.since[step] + 1), at(work, 0, bottom - root), one(mode)
    if mode is LINEAR and work.rescaled[step]:
        gain = work.gain[step]
    if layer.between and base != NOWHERE:
        parents = bottom - layer.level_at[s, depth - 1]
        pass_tokens(mode, layer, pot, leaves, s, t, lags, work)
        for k in range(line_of(leaves, OF_PARENTS + parents), line_of(leaves, OF_PARENTS + 2 * parents)):
            work.factor[k] = 0.0
    for k in range(stop - bottom):
        here, place = entered_at(work, k, step), bars + unsigned(k)
        if base != NOWHERE:
            bar, line = times(mode, work.up_bar[place], gain), unsigned(layer.node[STATE, bottom + k] * columns + base)
            given = leaves.counts, line, lags, work.entered, work.segment_bar, here, bar, work.factor
            if not layer.between:
                groups.segments_back(mode, table, line, *given, unsigned(0))
            else:
                weigh(mode, layer, leaves, table, line, s, bottom + k, lags, work)
                seen = factors_of(layer, leaves, s, layer.node[PARENT, bottom + k] + parents)
                groups.segments_back(mode, work.factor, line_of(leaves, WEIGHT), *given, seen)
        work.down_bar[place] = work.segment_bar[here] if work.entered[here] > zero(mode) else zero(mode)
    if layer.between and base != NOWHERE:
        for lag in range(lags[0], lags[1]):
            for parent in range(layer.level_at[s, depth - 1], bottom):
                seen = factors_of(layer, leaves, s, parent + parents)
                work.posterior[parent - root] = work.factor[seen + unsigned(lag)]
            count_passed(layer, counts.pot, s, t - lag, t, work)


@part
def count_passed(layer, grad, s, t, j, work):
    """The Markov ancestors of a segment t..j live through it: a difference in time, summed up by the caller.

    One step past the last lies in the spare row that every block of tokens has.
    """
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth - 1, 0, -1):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            if level < depth - 1:
                work.posterior[node - root] = 0.0
                for k in range(layer.node[FIRST, node], layer.node[FIRST, node] + layer.node[COUNT, node]):
                    work.posterior[node - root] += work.posterior[k - root]
            posterior = work.posterior[node - root]
            grad[cell(layer, TOKEN, node, t)] += posterior
            grad[cell(layer, TOKEN, node, j + 1)] -= posterior
