"""One time step of the trie in many rows: up by end, across by trans, down by init; and the reverse of each."""

from hscrf.engine.kernels.compile import inlined, unsigned
from hscrf.engine.kernels.lanes import larger
from hscrf.engine.kernels.layout import BEGIN, COUNT, END, FIRST, INIT, STOP, TRANS
from hscrf.engine.kernels.row_tokens import count_endings, meet, meet_back
from hscrf.engine.kernels.rows import (
    add_pairs,
    add_products,
    count_pairs,
    end,
    end_back,
    fill,
    init_back,
    product,
    product_back,
    sum_of_products,
)
from hscrf.engine.kernels.trie import cell, shape_of


@inlined
def at(work, step, x):
    """Where the rows of a node lie in ``up`` at a step; bars have one step, the first."""
    return ((unsigned(step) & unsigned(work.kept)) * unsigned(work.nodes) + unsigned(x)) * unsigned(work.rows)


@inlined
def at_down(work, step, x):
    """Where the rows of a node lie in ``down`` at a step."""
    return ((unsigned(step) & unsigned(work.kept)) * unsigned(work.starting) + unsigned(x)) * unsigned(work.rows)


@inlined
def pairs_of(work, x):
    """Where the pairs of children of a node lie in ``pairs``."""
    return unsigned(x) * unsigned(work.group)


@inlined
def changes(layer, level, t):
    """May a node of a level end at t and a sibling follow it. Leaves that are alive need not be allowed to end."""
    leaves = level == layer.level_at.shape[1] - 2
    return layer.may_cross[level, t] and (not leaves or layer.may_end[level, t])


@inlined
def closes(layer, apart, level, t, last):
    """May a node of a level end at t with one of its children; ``last``: is that the last step of any sequence."""
    depth = layer.level_at.shape[1] - 2
    may_end = last if apart is not None and level == 0 else layer.may_end[level, t]
    return may_end and (level < depth - 1 or layer.may_end[depth, t])


@inlined
def descend(mode, layer, pot, table, apart, s, runs, t, step, born, span, work):
    """Fill ``down`` at t, the mass of each node that starts there; that of leaves without a table goes to ``up``.

    The top's is given: it starts in the rows of runs that are ``born``.
    """
    depth, root, _, _ = shape_of(layer, s)
    for level in range(1, depth + 1):
        across = step > 0 and changes(layer, level, t - 1)
        for node in range(layer.level_at[s, level - 1], layer.level_at[s, level]):
            kid, n = layer.node[FIRST, node] - root, layer.node[COUNT, node]
            init, trans = unsigned(cell(layer, INIT, node, t)), unsigned(cell(layer, TRANS, node, t - 1))
            parent = work.down, at_down(work, step, node - root), born or level > 1
            before = work.up, at(work, larger(step - 1, 0), kid), n if across else 0
            target = work.up, at(work, step, kid)
            if level < depth or table is not None:
                target = work.down, at_down(work, step, kid)
            product(mode, pot, init, trans, n, parent, before, target, span)
        if layer.starts and level < depth:
            begin = at_down(work, step, layer.level_at[s, level] - root)
            meet(mode, layer, pot, BEGIN, apart, s, level, runs, t, work.down, begin, span, work)


@inlined
def descend_back(layer, pot, grad, apart, s, runs, alive, t, step, born, span, work):
    """Reverse of ``descend`` at t: from ``down_bar`` of the leaves to ``up_bar`` of every node at t - 1."""
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth, 0, -1):
        if layer.starts and level < depth:
            x = layer.level_at[s, level] - root
            places = work.down, at_down(work, step, x), work.down_bar, at(work, 0, x)
            meet_back(layer, pot, grad, BEGIN, apart, s, level, runs, alive, t, *places, span, work)
        across = step > 0 and changes(layer, level, t - 1)
        for node in range(layer.level_at[s, level - 1], layer.level_at[s, level]):
            kid, n = layer.node[FIRST, node] - root, layer.node[COUNT, node]
            bars = at(work, 0, kid)
            if born or level > 1:
                init, above = unsigned(cell(layer, INIT, node, t)), at_down(work, step, node - root)
                init_back(pot, grad, init, n, work.down, above, work.down_bar, bars, at(work, 0, node - root), span)
            if across:
                trans, before = unsigned(cell(layer, TRANS, node, t - 1)), at(work, step - 1, kid)
                product_back(pot, trans, n, work.down_bar, work.up_bar, bars, span)
                add_pairs(n, work.up, before, work.down_bar, bars, work.pairs, pairs_of(work, node - root), span)
                if layer.node[TRANS + 1, node] > 0:
                    count_pairs(pot, grad, trans, n, work.pairs, pairs_of(work, node - root))
            else:
                fill(work.up_bar, bars, n, span, 0.0)


@inlined
def count_all_pairs(layer, pot, grad, s, work):
    """Count what a bundle has gathered for tables that do not change in time."""
    _, root, bottom, _ = shape_of(layer, s)
    for node in range(root, bottom):
        n, trans = layer.node[COUNT, node], unsigned(layer.node[TRANS, node])
        if layer.node[TRANS + 1, node] == 0:
            count_pairs(pot, grad, trans, n, work.pairs, pairs_of(work, node - root))


@inlined
def ascend(mode, layer, pot, apart, s, runs, t, step, last, span, work):
    """Fill ``up`` of the inner nodes at t from that of the leaves."""
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth - 1, -1, -1):
        may_end = closes(layer, apart, level, t, last)
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            kid, n = layer.node[FIRST, node] - root, layer.node[COUNT, node] if may_end else 0
            where = unsigned(cell(layer, END, node, t))
            end(mode, pot, where, n, work.up, at(work, step, kid), at(work, step, node - root), span)
        if layer.stops and level > 0 and may_end:
            begin = at(work, step, layer.level_at[s, level] - root)
            meet(mode, layer, pot, STOP, apart, s, level, runs, t, work.up, begin, span, work)


@inlined
def ascend_back(layer, pot, counts, apart, s, runs, alive, t, step, last, span, work):
    """Reverse of ``ascend``: ``up_bar`` holds what comes from ``descend_back`` and the top's; complete it downwards."""
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth):
        if not closes(layer, apart, level, t, last):
            continue
        count_endings_of(layer, counts, apart, s, level, runs, alive, t, step, span, work)
        if layer.stops and level > 0:
            x = layer.level_at[s, level] - root
            places = work.up, at(work, step, x), work.up_bar, at(work, 0, x)
            meet_back(layer, pot, counts.pot, STOP, apart, s, level, runs, alive, t, *places, span, work)
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            kid, n = layer.node[FIRST, node] - root, layer.node[COUNT, node]
            where, bar = unsigned(cell(layer, END, node, t)), at(work, 0, node - root)
            end_back(pot, counts.pot, where, n, work.up, at(work, step, kid), work.up_bar, bar, at(work, 0, kid), span)


@inlined
def count_endings_of(layer, counts, apart, s, level, runs, alive, t, step, span, work):
    """Add the posteriors that nodes of a level between the top and the leaves end at t."""
    if level == 0:
        return
    if apart is not None:
        fill(work.found, unsigned(0), 1, span, 0.0)
    for x in range(
        layer.level_at[s, level] - layer.level_at[s, 0], layer.level_at[s, level + 1] - layer.level_at[s, 0]
    ):
        up, bar = at(work, step, x), at(work, 0, x)
        if apart is not None:
            add_products(work.up, up, work.up_bar, bar, work.found, span)
        else:
            counts.ending[level, t] += sum_of_products(work.up, up, work.up_bar, bar, span)
    if apart is not None:
        count_endings(counts.ending, level, runs, alive, t, work.found, unsigned(0))
