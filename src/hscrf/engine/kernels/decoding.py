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
    TOP,
    TRANS,
    UNTIL,
)
from hscrf.engine.kernels.runs import forward, forward_run
from hscrf.engine.kernels.structure import at, at_down, cell, shape_of
from hscrf.engine.kernels.tracing import pass_tokens_to, reaches, record, value_of_segment
from hscrf.engine.kernels.trie import changes


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


@part
def walk_back(mode, layer, pot, leaves, table, top, s, i, steps, r, states, ends, work):
    """Write the best configuration of row r of a work space: of a run of top state s over so many steps from i on."""
    depth, root, _, _ = shape_of(layer, s)
    t, row = i + steps - 1, unsigned(r)
    for level in range(top + 1, top + depth + 1):
        ends[level, t] = 1
    leaf = leaf_below(layer, pot, s, root, 0, t, steps - 1, r, work)
    while True:
        begin = start_of(mode, layer, pot, leaves, table, s, i, leaf, t, work)
        record(layer, top, depth, leaf, begin, t, states)
        if begin == i:
            break
        # what is there at ``begin`` has started, or is a leaf that goes on
        t, node, level, step = begin - 1, leaf, depth, begin - i
        while True:
            parent = layer.node[PARENT, node]
            first = layer.node[FIRST, parent]
            before, across, above = node, -np.inf, -np.inf
            if changes(layer, level, t):
                place, width = cell(layer, TRANS, parent, t) + node - first, padded(layer.node[COUNT, parent])
                up = at(work, step - 1, first - root) + row
                before, across = best_of(layer, pot, parent, place, width, up, work)
            if level > 1:
                above = work.down[at_down(work, step, parent - root) + row]
                above += pot[cell(layer, INIT, parent, begin) + node - first]
            if level == depth and table is None and not layer.unit and layer.may_cross[depth + 1, t]:
                starts = work.down[at_down(work, step, leaf - root) + row]
                if work.up[at(work, step - 1, leaf - root + work.alive_at) + row] > starts:
                    break
            if across >= above:
                # the sibling ``before`` ends at t, and so do all levels below
                for k in range(top + level, top + depth + 1):
                    ends[k, t] = 1
                leaf = leaf_below(layer, pot, s, before, level, t, step - 1, r, work)
                break
            node, level = parent, level - 1


@as_written
def trace_best(
    mode, layer, values, leaves, table, top, segments, bundle, run, nothing, lossy, work, states, ends, mass
):
    """Write the best configuration of the levels below each top segment, and its mass (n,); nothing where that is zero.

    segments (n, 4) as in ``tracing.trace``; states, ends (D, N).
    """
    for n in range(segments.shape[0]):
        s, i, j, _ = segments[n]
        forward_run(mode, layer, values, leaves, table, i, s, j - i + 1, bundle, run, nothing, lossy, work)
        mass[n] = work.up[at(work, j - i, 0)]
        if mass[n] > -np.inf:
            walk_back(mode, layer, values.pot, leaves, table, top, s, i, j - i + 1, 0, states, ends, work)


@kernel
def trace_bundles(mode, layer, values, leaves, bundles, runs, states, ends, lossy, score, work):
    """Write the best configuration of every sequence in a bundle, and its mass without that of the top by itself.

    states, ends (D, N) and score (sequences,); MAX writes nothing into ``lossy``.
    """
    for k in range(bundles.shape[0]):
        bundle = bundles[k]
        own = runs[bundle[RUN] : bundle[RUN_END]]
        forward(mode, layer, values, leaves, None, bundle, own, work, score[:0], lossy)
        for r in range(own.shape[0]):
            i, steps = bundle[FROM] + own[r, AHEAD], own[r, UNTIL] - bundle[FROM]
            value = work.up[at(work, steps - 1, 0) + unsigned(r)]
            score[own[r, SEQUENCE]] = value
            if value > -np.inf:
                walk_back(mode, layer, values.pot, leaves, None, 0, bundle[TOP], i, steps, r, states, ends, work)
