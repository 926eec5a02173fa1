"""The best way back through a run, or through sequences that have walked side by side; what ``tracing`` lists first."""

import numpy as np

from hscrf.engine.kernels.arithmetic import padded
from hscrf.engine.kernels.compile import as_written, inlined, kernel, part, unsigned
from hscrf.engine.kernels.lanes import larger
from hscrf.engine.kernels.layout import (
    AHEAD,
    COUNT,
    END,
    FIRST,
    FROM,
    INIT,
    PARENT,
    RUN,
    RUN_END,
    SEQUENCE,
    STEPS,
    TOP,
    TRANS,
    UNTIL,
)
from hscrf.engine.kernels.runs import forward, forward_run
from hscrf.engine.kernels.structure import at, at_down, cell, shape_of
from hscrf.engine.kernels.tracing import pass_tokens_to, reaches, record, value_of_segment
from hscrf.engine.kernels.trie import changes

NOBODY = -1  # the leaf of a sequence without any configuration


@inlined
def best_of(layer, pot, parent, place, stride, up, work):
    """The child u of a parent with the highest up[u] + pot, the first of equals, and that value.

    ``up`` of the first child, and its potential, lie at given places, the potentials of the others a stride apart.
    """
    first, p, q = layer.node[FIRST, parent], unsigned(place), unsigned(work.rows)
    picked, best = first, -np.inf
    for u in range(first, first + layer.node[COUNT, parent]):
        value = work.up[up] + pot[p]
        picked = u if value > best else picked
        best = larger(value, best)
        up, p = up + q, p + unsigned(stride)
    return picked, best


@part
def leaf_below(layer, pot, s, node, level, t, step, r, work):
    """The leaf with which a node of a level that ends at t does so best."""
    root = layer.level_at[s, 0]
    for _ in range(level + 1, layer.level_at.shape[1] - 1):
        up = at(work, step, layer.node[FIRST, node] - root) + unsigned(r)
        node, _ = best_of(layer, pot, node, cell(layer, END, node, t), 1, up, work)
    return node


@part
def start_of(mode, layer, pot, leaves, table, s, i, leaf, t, work):
    """Where the best segment of a leaf that ends at t starts, the latest of equals; without a table, at t itself."""
    picked = t
    if table is not None:
        best = -np.inf
        pass_tokens_to(mode, layer, pot, leaves, s, i, t, work)
        for begin in range(t, work.since[t - i] - 1, -1):
            if reaches(layer, begin, t):
                value = value_of_segment(layer, leaves, table, s, i, leaf, begin, t, work)
                if value > best:
                    picked, best = begin, value
    return picked


@inlined
def leaf_before(layer, pot, table, top, s, leaf, t, step, r, ends, work):
    """The leaf that is alive, or ends, at t - 1 if this one is there at t; note what ends in between.

    It has started at t, or goes on.
    """
    depth, root, _, _ = shape_of(layer, s)
    node, level, row = leaf, depth, unsigned(r)
    while True:
        parent = layer.node[PARENT, node]
        first = layer.node[FIRST, parent]
        before, across, above = node, -np.inf, -np.inf
        if changes(layer, level, t - 1):
            place, width = cell(layer, TRANS, parent, t - 1) + node - first, padded(layer.node[COUNT, parent])
            up = at(work, step - 1, first - root) + row
            before, across = best_of(layer, pot, parent, place, np.int64(width), up, work)
        if level > 1:
            above = work.down[at_down(work, step, parent - root) + row]
            above += pot[cell(layer, INIT, parent, t) + node - first]
        if level == depth and table is None and not layer.unit and layer.may_cross[depth + 1, t - 1]:
            starts = work.down[at_down(work, step, leaf - root) + row]
            if work.up[at(work, step - 1, leaf - root + work.alive_at) + row] > starts:
                return leaf
        if across >= above:
            # the sibling ``before`` ends at t - 1, and so do all levels below
            note_ends(top + level, top + depth, t - 1, ends)
            return leaf_below(layer, pot, s, before, level, t - 1, step - 1, r, work)
        node, level = parent, level - 1


@inlined
def note_ends(first, last, t, ends):
    """All levels from the first to the last end at t."""
    for level in range(first, last + 1):
        ends[level, t] = 1


@part
def last_leaf(layer, pot, top, s, t, step, r, ends, work):
    """The leaf with which a run that ends at t does so best; all levels end there."""
    depth, root, _, _ = shape_of(layer, s)
    note_ends(top + 1, top + depth, t, ends)
    return leaf_below(layer, pot, s, root, 0, t, step, r, work)


@part
def walk_back(mode, layer, pot, leaves, table, top, s, i, steps, states, ends, work):
    """Write the best configuration of the first row of a work space: a run of top state s over some steps from i on."""
    depth, t = layer.level_at.shape[1] - 2, i + steps - 1
    leaf = last_leaf(layer, pot, top, s, t, steps - 1, 0, ends, work)
    while True:
        begin = start_of(mode, layer, pot, leaves, table, s, i, leaf, t, work)
        record(layer, top, depth, leaf, begin, t, states)
        if begin == i:
            break
        leaf, t = leaf_before(layer, pot, table, top, s, leaf, begin, begin - i, 0, ends, work), begin - 1


@part
def walk_back_together(layer, pot, bundle, runs, states, ends, score, leaf, work):
    """Write the best configurations of sequences side by side, and their masses; nothing where that is zero.

    All take a step together: their numbers lie next to each other, and none waits for another. ``leaf`` (rows,) is
    filled here.
    """
    s, first = bundle[TOP], runs.shape[0]
    depth = layer.level_at.shape[1] - 2
    for step in range(bundle[STEPS] - 1, -1, -1):
        while first > 0 and runs[first - 1, UNTIL] > bundle[FROM] + step:
            first -= 1
        for r in range(first, runs.shape[0]):
            t = bundle[FROM] + step + runs[r, AHEAD]
            if runs[r, UNTIL] == bundle[FROM] + step + 1:
                value = work.up[at(work, step, 0) + unsigned(r)]
                score[runs[r, SEQUENCE]], leaf[r] = value, NOBODY
                if value > -np.inf:
                    leaf[r] = last_leaf(layer, pot, 0, s, t, step, r, ends, work)
            elif leaf[r] != NOBODY:
                leaf[r] = leaf_before(layer, pot, None, 0, s, leaf[r], t + 1, step + 1, r, ends, work)
            if leaf[r] != NOBODY:
                record(layer, 0, depth, leaf[r], t, t, states)


@as_written
def trace_best(mode, layer, values, leaves, table, top, segments, bundle, run, lossy, work, states, ends, mass):
    """Write the best configuration of the levels below each top segment, and its mass (n,); nothing where that is zero.

    segments (n, 4) as in ``tracing.trace``; states, ends (D, N).
    """
    for n in range(segments.shape[0]):
        s, i, j, _ = segments[n]
        forward_run(mode, layer, values, leaves, table, i, s, j - i + 1, bundle, run, lossy, work)
        mass[n] = work.up[at(work, j - i, 0)]
        if mass[n] > -np.inf:
            walk_back(mode, layer, values.pot, leaves, table, top, s, i, j - i + 1, states, ends, work)


@kernel
def trace_bundles(mode, layer, values, leaves, bundles, runs, states, ends, lossy, score, leaf, work):
    """Write the best configuration of every sequence in a bundle, and its mass without that of the top by itself.

    states, ends (D, N) and score (sequences,); MAX writes nothing into ``lossy``; leaf (rows,) is filled here.
    """
    for k in range(bundles.shape[0]):
        bundle = bundles[k]
        own = runs[bundle[RUN] : bundle[RUN_END]]
        forward(mode, layer, values, leaves, None, bundle, own, work, None, lossy)
        walk_back_together(layer, values.pot, bundle, own, states, ends, score, leaf, work)
