"""The walk back from the end of a run to its start, item by item: for draws, and for the k best."""

import numpy as np

from hscrf.engine.kernels.arithmetic import LINEAR, one, padded, times, zero
from hscrf.engine.kernels.compile import as_written, inlined, part, unsigned
from hscrf.engine.kernels.layout import (
    CHILD_BASE,
    CHILD_REACH,
    COUNT,
    END,
    FIRST,
    INIT,
    PARENT,
    STATE,
    TRANS,
)
from hscrf.engine.kernels.leaves import factors_of, pass_tokens
from hscrf.engine.kernels.runs import forward_run
from hscrf.engine.kernels.structure import at, at_down, cell, entered_at, shape_of

# An item of the walk is (kind, node, time): the node ends there, lives there, starts there, or starts with the run.
# Its candidates are the items that may come next on the way back.
ENDS, LIVES, STARTS, FRESH = 0, 1, 2, 3
LOST = np.inf


@part
def put(weight, where, k, value, kind, node, t):
    weight[k] = value
    where[k, 0] = kind
    where[k, 1] = node
    where[k, 2] = t
    return k + 1


@part
def value_of_end(mode, layer, table, s, i, node, t, work):
    """The value of a node that ends at t."""
    depth, root, bottom, _ = shape_of(layer, s)
    if node >= bottom and table is None and not layer.may_end[depth, t]:
        return zero(mode)
    return work.up[at(work, t - i, node - root)]


@inlined
def reaches(layer, t, j):
    """May a segment of the bottom that starts at t end at j."""
    return t + layer.columns[t, CHILD_REACH] > j


@part
def pass_tokens_to(mode, layer, pot, leaves, s, i, t, work):
    """Have the tokens of Markov levels above segments that end at t at hand, see ``value_of_segment``."""
    if layer.between:
        pass_tokens(mode, layer, pot, leaves, s, t, (0, t - work.since[t - i] + 1), work)


@inlined
def value_of_segment(layer, leaves, table, s, i, leaf, begin, t, work):
    """A leaf that lives from ``begin`` to t, if the bottom has a table."""
    columns, bottom = table.size // leaves.states, layer.level_at[s, layer.level_at.shape[1] - 2]
    value = table[unsigned(layer.node[STATE, leaf] * columns + layer.columns[t, CHILD_BASE] + t - begin)]
    entered = work.entered[entered_at(work, leaf - bottom, begin - i)]
    if layer.between:
        entered += work.factor[factors_of(layer, leaves, s, layer.node[PARENT, leaf]) + unsigned(t - begin)]
    return value + entered


@part
def incoming_segments(mode, layer, pot, leaves, table, s, i, node, t, work, weight, where):
    """``incoming`` for a leaf that lives at t, if the bottom has a table: the starts of its segment."""
    k = 0
    if table is not None:
        pass_tokens_to(mode, layer, pot, leaves, s, i, t, work)
        for begin in range(t, work.since[t - i] - 1, -1):
            if reaches(layer, begin, t):
                value = value_of_segment(layer, leaves, table, s, i, node, begin, t, work)
                k = put(weight, where, k, value, STARTS, node, begin)
    return k


@part
def incoming(mode, layer, values, leaves, table, s, i, kind, node, t, work, weight, where):
    """List the candidates of an item: weight (C,), where (C, 3) their kind, node and time. LINEAR has no table.

    A candidate's weight is its own value times that of the step. The order breaks ties: siblings in the topology's
    order, a start before going on, the shortest segment first, the level's own transition before its parent's start.
    """
    pot = values.pot
    depth, root, bottom, _ = shape_of(layer, s)
    parent = layer.node[PARENT, node]
    k = 0
    if kind == ENDS and node >= bottom:
        k = put(weight, where, k, one(mode), LIVES, node, t)
    elif kind == ENDS:
        place = cell(layer, END, node, t)
        for last in range(layer.node[FIRST, node], layer.node[FIRST, node] + layer.node[COUNT, node]):
            value = value_of_end(mode, layer, table, s, i, last, t, work)
            k = put(weight, where, k, times(mode, value, pot[place + k]), ENDS, last, t)
    elif kind == LIVES and table is None:
        value = one(mode) if layer.unit else work.down[at_down(work, t - i, node - root)]
        k = put(weight, where, k, value, STARTS, node, t)
        if not layer.unit and t > i and layer.may_cross[depth + 1, t - 1]:
            k = put(weight, where, k, work.up[at(work, t - 1 - i, node - root + work.alive_at)], LIVES, node, t - 1)
    elif kind == LIVES:
        k = incoming_segments(mode, layer, pot, leaves, table, s, i, node, t, work, weight, where)
    elif t == i:
        k = put(weight, where, k, one(mode), FRESH, node, t)
    else:  # the node starts at t
        level = level_of(layer, s, node)
        first = layer.node[FIRST, parent]
        if layer.may_cross[level, t - 1]:
            place = cell(layer, TRANS, parent, t - 1) + node - first
            row = np.int64(padded(layer.node[COUNT, parent]))
            for u in range(layer.node[COUNT, parent]):
                value = value_of_end(mode, layer, table, s, i, first + u, t - 1, work)
                k = put(weight, where, k, times(mode, value, pot[place + u * row]), ENDS, first + u, t - 1)
        if level > 1:
            value = work.down[at_down(work, t - i, parent - root)]
            value = times(mode, value, pot[cell(layer, INIT, parent, t) + node - first])
            k = put(weight, where, k, value, STARTS, parent, t)
    return k


@as_written
def list_incoming(mode, layer, values, leaves, table, s, i, kind, node, t, work, weight, where):
    """``incoming`` for Python."""
    return incoming(mode, layer, values, leaves, table, s, i, kind, node, t, work, weight, where)


@as_written
def level_of(layer, s, node):
    level = 0
    while node >= layer.level_at[s, level + 1]:
        level += 1
    return level


@part
def choose(mode, weight, count, rng):
    """A candidate drawn in proportion to its weight."""
    best = 0
    for k in range(1, count):
        if weight[k] > weight[best]:
            best = k
    if count == 1:
        return best
    total, highest = 0.0, weight[best]
    for k in range(count):
        if mode is not LINEAR:
            weight[k] = np.exp(weight[k] - highest)
        total += weight[k]
    left = rng.random() * total
    for k in range(count):
        left -= weight[k]
        if left < 0.0:
            return k
    return best


@part
def record(layer, top, depth, node, t, j, states):
    """Write the states of a leaf and its ancestors below the top over t..j."""
    for level in range(depth, 0, -1):
        for step in range(t, j + 1):
            states[top + level, step] = layer.node[STATE, node]
        node = layer.node[PARENT, node]


@as_written
def write_states(layer, top, depth, node, t, j, states):
    """``record`` for Python."""
    record(layer, top, depth, node, t, j, states)


@as_written
def trace(
    mode,
    layer,
    values,
    leaves,
    table,
    top,
    segments,
    bundle,
    run,
    lossy,
    work,
    states,
    ends,
    mass,
    rng,
    weight,
    where,
):
    """Write a draw of the levels below each top segment, and its mass (n,); nothing where that is zero.

    In LOG or, without a table, in LINEAR: LOST is the mass where that loses too much. segments (n, 4) of state, first
    step, last step and draw; states, ends (draws, D, N). Equal ones next to each other share their forward walk.
    """
    depth = layer.level_at.shape[1] - 2
    for n in range(segments.shape[0]):
        s, i, j, draw = segments[n]
        same = n > 0 and segments[n - 1, 0] == s and segments[n - 1, 1] == i and segments[n - 1, 2] == j
        if not same:
            lossy[0] = False
            forward_run(mode, layer, values, leaves, table, i, s, j - i + 1, bundle, run, lossy, work)
        value = work.up[at(work, j - i, 0)]
        mass[n] = np.log(value) + work.scale[0] if mode is LINEAR else value
        if lossy[0]:
            mass[n] = LOST
        if lossy[0] or value == zero(mode):
            continue
        for level in range(top + 1, top + depth + 1):
            ends[draw, level, j] = 1
        put(weight, where, 0, 0.0, ENDS, layer.level_at[s, 0], j)
        picked = 0
        while where[picked, 0] != FRESH:
            kind, node, t = where[picked]
            count = incoming(mode, layer, values, leaves, table, s, i, kind, node, t, work, weight, where)
            picked = choose(mode, weight, count, rng)
            if kind == LIVES:
                record(layer, top, depth, node, where[picked, 2], t, states[draw])
            elif kind == STARTS and where[picked, 0] == ENDS:
                # this level and all below it end at t - 1
                for level in range(top + level_of(layer, s, node), top + depth + 1):
                    ends[draw, level, t - 1] = 1
