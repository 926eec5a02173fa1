"""One time step of the trie: down by init and across by trans at once, then up by end; and the reverse of each.

All runs of a bundle take it together. ``groups`` and ``rows`` hold what a parent and its children do in a run that goes
alone and in many side by side.
"""

from hscrf.engine.kernels import groups, rows
from hscrf.engine.kernels.arithmetic import zero
from hscrf.engine.kernels.compile import inlined, unsigned
from hscrf.engine.kernels.lanes import larger
from hscrf.engine.kernels.layout import BEGIN, COUNT, END, FIRST, INIT, STOP, TRANS
from hscrf.engine.kernels.structure import at, at_down, cell, shape_of
from hscrf.engine.kernels.tokens import count_endings, fill, meet, meet_back


@inlined
def changes(layer, level, t):
    """May a node of a level end at t and a sibling follow it. Leaves that are alive need not be allowed to end."""
    leaves = level == layer.level_at.shape[1] - 2
    return layer.may_cross[level, t] and (not leaves or layer.may_end[level, t])


@inlined
def closes(layer, work, level, t, closing):
    """May a node of a level end at t with one of its children; ``closing``: is that the last step of any run."""
    depth = layer.level_at.shape[1] - 2
    may_end = closing if work.apart and level == 0 else layer.may_end[level, t]
    return may_end and (level < depth - 1 or layer.may_end[depth, t])


@inlined
def descend(mode, layer, pot, s, runs, t, step, beginning, span, work):
    """Fill ``down`` at t, the mass of each node that starts there; that of leaves of length one goes to ``up``.

    The top's is given; ``beginning``: does it start in any row.
    """
    depth, root, _, _ = shape_of(layer, s)
    for level in range(1, depth + 1):
        across = step > 0 and changes(layer, level, t - 1)
        lives = level == depth and layer.unit
        for node in range(layer.level_at[s, level - 1], layer.level_at[s, level]):
            kid, n = layer.node[FIRST, node] - root, layer.node[COUNT, node]
            init, trans = unsigned(cell(layer, INIT, node, t)), unsigned(cell(layer, TRANS, node, t - 1))
            parent = work.down, at_down(work, step, node - root), beginning or level > 1
            before = work.up, at(work, larger(step - 1, 0), kid), n if across else 0
            target = work.up, at(work, step, kid)
            if not lives:
                target = work.down, at_down(work, step, kid)
            if work.alone:
                groups.product(mode, pot, init, trans, n, parent, before, target)
            else:
                rows.product(mode, pot, init, trans, n, parent, before, target, span)
        if layer.borders and not lives:
            begin = at_down(work, step, layer.level_at[s, level] - root)
            meet(mode, layer, pot, BEGIN, s, level, runs, t, work.down, begin, span, work)


@inlined
def descend_back(mode, layer, pot, grad, s, runs, first_row, t, step, beginning, span, work):
    """Reverse of ``descend`` at t: from ``down_bar`` of the leaves to ``up_bar`` of every node at t - 1."""
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth, 0, -1):
        if layer.borders and (level < depth or not layer.unit):
            x = layer.level_at[s, level] - root
            places = work.down, at_down(work, step, x), work.down_bar, at(work, 0, x)
            meet_back(mode, layer, pot, grad, BEGIN, s, level, runs, first_row, t, *places, span, work)
        across = step > 0 and changes(layer, level, t - 1)
        for node in range(layer.level_at[s, level - 1], layer.level_at[s, level]):
            kid, n = layer.node[FIRST, node] - root, layer.node[COUNT, node]
            init, above = unsigned(cell(layer, INIT, node, t)), at_down(work, step, node - root)
            trans, before = unsigned(cell(layer, TRANS, node, t - 1)), at(work, larger(step - 1, 0), kid)
            bars, bar = at(work, 0, kid), at(work, 0, node - root)
            if work.alone:
                groups.init_back(mode, pot, grad, init, n, work.down, above, work.down_bar, bars, bar)
            elif beginning or level > 1:
                rows.init_back(pot, grad, init, n, work.down, above, work.down_bar, bars, bar, span)
            if not across:
                fill(work.up_bar, bars, n, zero(mode), span, work)
            elif work.alone:
                groups.product_back(mode, pot, grad, trans, n, work.up, before, work.down_bar, work.up_bar, bars)
            else:
                pairs = pairs_of(work, node - root)
                rows.product_back(pot, trans, n, work.down_bar, work.up_bar, bars, span)
                rows.add_pairs(n, work.up, before, work.down_bar, bars, work.pairs, pairs, span)
                if layer.node[TRANS + 1, node] > 0:
                    rows.count_pairs(pot, grad, trans, n, work.pairs, pairs)


@inlined
def pairs_of(work, x):
    """Where the pairs of children of a node lie in ``pairs``."""
    return unsigned(x) * unsigned(work.group)


@inlined
def count_all_pairs(layer, pot, grad, s, work):
    """Count what a bundle of several rows has gathered for tables that do not change in time."""
    _, root, bottom, _ = shape_of(layer, s)
    for node in range(root, bottom):
        n, trans = layer.node[COUNT, node], unsigned(layer.node[TRANS, node])
        if layer.node[TRANS + 1, node] == 0:
            rows.count_pairs(pot, grad, trans, n, work.pairs, pairs_of(work, node - root))


@inlined
def ascend(mode, layer, pot, s, runs, t, step, closing, span, work):
    """Fill ``up`` of the inner nodes at t from that of the leaves."""
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth - 1, -1, -1):
        may_end = closes(layer, work, level, t, closing)
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            kid, n = layer.node[FIRST, node] - root, layer.node[COUNT, node] if may_end else 0
            where, up, above = unsigned(cell(layer, END, node, t)), at(work, step, kid), at(work, step, node - root)
            if work.alone:
                groups.end(mode, pot, where, n, work.up, up, above)
            else:
                rows.end(mode, pot, where, n, work.up, up, above, span)
        if layer.borders and level > 0 and may_end:
            begin = at(work, step, layer.level_at[s, level] - root)
            meet(mode, layer, pot, STOP, s, level, runs, t, work.up, begin, span, work)


@inlined
def ascend_back(mode, layer, pot, counts, s, runs, first_row, t, step, closing, span, work):
    """Reverse of ``ascend``: ``up_bar`` holds what comes from ``descend_back`` and the top's; complete it downwards."""
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth):
        if not closes(layer, work, level, t, closing):
            continue
        x = layer.level_at[s, level] - root
        if level > 0:
            number = layer.level_at[s, level + 1] - layer.level_at[s, level]
            count_endings(mode, counts, level, x, number, runs, first_row, t, step, span, work)
        if layer.borders and level > 0:
            places = work.up, at(work, step, x), work.up_bar, at(work, 0, x)
            meet_back(mode, layer, pot, counts.pot, STOP, s, level, runs, first_row, t, *places, span, work)
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            kid, n = layer.node[FIRST, node] - root, layer.node[COUNT, node]
            where, up = unsigned(cell(layer, END, node, t)), at(work, step, kid)
            bar, bars = at(work, 0, node - root), at(work, 0, kid)
            if work.alone:
                groups.end_back(mode, pot, counts.pot, where, n, work.up, up, work.up_bar, bar, bars)
            else:
                rows.end_back(pot, counts.pot, where, n, work.up, up, work.up_bar, bar, bars, span)
