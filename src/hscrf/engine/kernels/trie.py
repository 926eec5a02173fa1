"""One time step of the trie: up by end, across by trans, down by init; and the reverse of each."""

from hscrf.engine.kernels.arithmetic import one, probability, times, zero
from hscrf.engine.kernels.compile import inlined, unsigned
from hscrf.engine.kernels.groups import end, end_back, init, init_back, product, product_back
from hscrf.engine.kernels.layout import BEGIN, COUNT, DOWN, DOWN_BAR, END, FIRST, INIT, STOP, TRANS, UP, UP_BAR


@inlined
def cell(layer, part, node, t):
    """Address of a part of a node at time t."""
    return layer.node[part, node] + t * layer.node[part + 1, node]


@inlined
def shape_of(layer, s):
    """Depth of the layer, the first node of the trie of s, its first leaf and its end."""
    depth = layer.level_at.shape[1] - 2
    return depth, layer.level_at[s, 0], layer.level_at[s, depth], layer.level_at[s, depth + 1]


@inlined
def end_leaves(mode, layer, pot, s, j, work):
    """Turn UP of the leaves of a bottom without a table from those alive at j into those that end there."""
    depth, root, bottom, stop = shape_of(layer, s)
    if not layer.may_end[depth, j]:
        leaf = unsigned(bottom - root)
        for k in range(unsigned(stop - bottom)):
            work.node[UP, leaf + k] = zero(mode)
    elif layer.stops:
        for x in range(bottom - root, stop - root):
            work.node[UP, x] = times(mode, work.node[UP, x], pot[cell(layer, STOP, root + x, j)])


@inlined
def ascend(mode, layer, pot, s, j, work):
    """Fill UP of the inner nodes at j, the mass of each that ends there, from the leaves'.

    Cost O(nodes).
    """
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth - 1, -1, -1):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            value = zero(mode)
            if layer.may_end[level, j]:
                at, first = cell(layer, END, node, j), layer.node[FIRST, node] - root
                value = end(mode, pot, at, work.node, first, layer.node[COUNT, node])
                if level > 0 and layer.stops:
                    value = times(mode, value, pot[cell(layer, STOP, node, j)])
            work.node[UP, node - root] = value


@inlined
def ascend_back(mode, layer, pot, counts, s, j, work):
    """Reverse of ``ascend``: UP_BAR holds what comes from ``descend_back`` and the top's; complete it downwards."""
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth):
        if not layer.may_end[level, j]:
            continue
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            bar = work.node[UP_BAR, node - root]
            if level > 0:
                posterior = probability(mode, work.node[UP, node - root], bar)
                counts.ending[level, j] += posterior
                if layer.stops:
                    counts.pot[cell(layer, STOP, node, j)] += posterior
                    bar = times(mode, bar, pot[cell(layer, STOP, node, j)])
            at, first = cell(layer, END, node, j), layer.node[FIRST, node] - root
            end_back(mode, pot, counts.pot, at, work.node, bar, first, layer.node[COUNT, node])


@inlined
def descend(mode, layer, pot, s, i, j, work):
    """Fill DOWN at j + 1: the mass of each node that starts there; the top itself does if j < i.

    Cost O(sum over sibling groups of their size squared).
    """
    depth, root, _, _ = shape_of(layer, s)
    fresh = j < i
    work.node[DOWN, 0] = one(mode) if fresh else zero(mode)
    for level in range(1, depth + 1):
        across = not fresh and layer.may_cross[level, j]
        for node in range(layer.level_at[s, level - 1], layer.level_at[s, level]):
            kid = layer.node[FIRST, node]
            n = layer.node[COUNT, node]
            # the node itself starts at j + 1
            init(mode, pot, cell(layer, INIT, node, j + 1), work.node, work.node[DOWN, node - root], kid - root, n)
            if across:
                # or, under the node, u ends at j and v starts at j + 1
                product(mode, pot, cell(layer, TRANS, node, j), work.node, kid - root, n)
            if layer.starts:
                for k in range(n):
                    x = kid - root + k
                    work.node[DOWN, x] = times(mode, work.node[DOWN, x], pot[cell(layer, BEGIN, kid + k, j + 1)])


@inlined
def descend_back(mode, layer, pot, grad, s, i, j, work):
    """Reverse of ``descend``: from DOWN_BAR of the leaves at j + 1 to UP_BAR of every node at j."""
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth, 0, -1):
        across = j >= i and layer.may_cross[level, j]
        for node in range(layer.level_at[s, level - 1], layer.level_at[s, level]):
            kid = layer.node[FIRST, node]
            n = layer.node[COUNT, node]
            if layer.starts:
                for k in range(n):
                    where, x = cell(layer, BEGIN, kid + k, j + 1), kid - root + k
                    grad[where] += probability(mode, work.node[DOWN, x], work.node[DOWN_BAR, x])
                    work.node[DOWN_BAR, x] = times(mode, work.node[DOWN_BAR, x], pot[where])
            above = work.node[DOWN, node - root]
            above_bar = zero(mode)
            if above > zero(mode):
                at = cell(layer, INIT, node, j + 1)
                above_bar = init_back(mode, pot, grad, at, work.node, above, kid - root, n)
            work.node[DOWN_BAR, node - root] = above_bar
            if across:
                product_back(mode, pot, grad, cell(layer, TRANS, node, j), work.node, kid - root, n)
            else:
                first = unsigned(kid - root)
                for k in range(unsigned(n)):
                    work.node[UP_BAR, first + k] = zero(mode)
