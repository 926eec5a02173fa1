"""The best way back through sequences that have walked side by side."""

import numpy as np

from hscrf.engine.kernels.arithmetic import padded
from hscrf.engine.kernels.bundles import forward
from hscrf.engine.kernels.compile import inlined, kernel, part, unsigned
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
from hscrf.engine.kernels.row_trie import at, at_down
from hscrf.engine.kernels.tracing import record
from hscrf.engine.kernels.trie import shape_of


@inlined
def best_of(layer, pot, parent, place, stride, root, step, r, work):
    """The child u of a parent with the highest up[u] + pot at a step, the first of equals, and that value.

    The potential of the first child lies at a place, those of the others a stride apart.
    """
    first, q = layer.node[FIRST, parent], unsigned(work.rows)
    up, p, best, picked = at(work, step, first - root) + unsigned(r), unsigned(place), -np.inf, first
    for u in range(first, first + layer.node[COUNT, parent]):
        value = work.up[up] + pot[p]
        if value > best:
            best, picked = value, u
        up, p = up + q, p + unsigned(stride)
    return picked, best


@inlined
def leaf_below(layer, pot, node, bottom, root, step, r, work):
    """The leaf with which a node that ends at a step does so best."""
    while node < bottom:
        node, _ = best_of(layer, pot, node, layer.node[END, node], 1, root, step, r, work)
    return node


@part
def walk_back(layer, pot, s, begin, steps, r, states, ends, work):
    """Write the best configuration of row r of a bundle, a sequence from ``begin`` on.

    Of equals the one is taken that ``tracing.incoming`` has first.
    """
    depth, root, bottom, _ = shape_of(layer, s)
    for level in range(1, depth + 1):
        ends[level, begin + steps - 1] = 1
    leaf = leaf_below(layer, pot, root, bottom, root, steps - 1, r, work)
    for step in range(steps - 1, -1, -1):
        record(layer, 0, depth, leaf, begin + step, begin + step, states)
        if step == 0:
            break
        node, level, row = leaf, depth, unsigned(r)
        goes_on = -np.inf if layer.unit else work.up[at(work, step - 1, leaf - root) + row]
        while True:
            parent = layer.node[PARENT, node]
            k = node - layer.node[FIRST, parent]
            width = padded(layer.node[COUNT, parent])
            before, value = best_of(layer, pot, parent, layer.node[TRANS, parent] + k, width, root, step - 1, r, work)
            above = -np.inf
            if level > 1:
                above = work.down[at_down(work, step, parent - root) + row] + pot[layer.node[INIT, parent] + k]
            if level == depth and goes_on > larger(value, above):
                break
            if value >= above:
                for k in range(level, depth + 1):
                    ends[k, begin + step - 1] = 1
                leaf = leaf_below(layer, pot, before, bottom, root, step - 1, r, work)
                break
            node, level = parent, level - 1


@kernel
def trace_bundles(mode, layer, values, leaves, bundles, runs, states, ends, lossy, score, work):
    """Write the best configuration of every sequence in a bundle, and its mass without that of the top by itself.

    states, ends (D, N) and score (sequences,); MAX writes nothing into ``lossy``.
    """
    for k in range(bundles.shape[0]):
        bundle = bundles[k]
        own = runs[bundle[RUN] : bundle[RUN_END]]
        forward(mode, layer, values, leaves, None, True, bundle, own, work, score[:0], lossy)
        for r in range(own.shape[0]):
            begin, steps = bundle[FROM] + own[r, AHEAD], own[r, UNTIL] - bundle[FROM]
            value = work.up[at(work, steps - 1, 0) + unsigned(r)]
            score[own[r, SEQUENCE]] = value
            if value > -np.inf:
                walk_back(layer, values.pot, bundle[TOP], begin, steps, r, states, ends, work)
