"""One parent and its children: init, trans and end, and their derivatives."""

import numpy as np

from hscrf.engine.kernels.arithmetic import LINEAR, both, either, none, padded, plus, sum_up
from hscrf.engine.kernels.compile import inlined, part, unsigned
from hscrf.engine.kernels.lanes import (
    FOUR,
    add,
    is_best,
    lane_max,
    lane_sum,
    lane_sums,
    lanes,
    larger,
    load,
    multiply,
    multiply_add,
    place,
    spread,
    store,
)
from hscrf.engine.kernels.layout import DOWN, DOWN_BAR, UP, UP_BAR


@part
def init(mode, pot, at, node, above, first, n):
    """DOWN[v] of the children of a node that starts: above * init[v]."""
    factor, down = spread(above), place(node, DOWN, first)
    for v in range(unsigned(0), padded(n), FOUR):
        store(both(mode, factor, load(pot, unsigned(at) + v)), node, down + v)


@inlined
def count_pairs(pot, grad, row, weight, after):
    """Four pairs of a row, trans * after; add weight times them to their counts."""
    pair = multiply(load(pot, row), after)
    store(multiply_add(weight, pair, load(grad, row)), grad, row)
    return pair


@part
def linear_init_back(pot, grad, at, node, above, first, n):
    weight, bar, at = spread(above), place(node, DOWN_BAR, first), unsigned(at)
    sums = spread(0.0)
    for v in range(unsigned(0), padded(n), FOUR):
        sums = add(sums, count_pairs(pot, grad, at + v, weight, load(node, bar + v)))
    return lane_sum(sums)


@part
def dense_end(mode, pot, at, node, first, n):
    """The sum of UP[u] * end[u] in LINEAR or MAX."""
    up, sums = place(node, UP, first), none(mode)
    for v in range(unsigned(0), padded(n), FOUR):
        sums = sum_up(mode, sums, load(pot, unsigned(at) + v), load(node, up + v))
    return lane_sum(sums) if mode is LINEAR else lane_max(sums)


@part
def linear_end_back(pot, grad, at, node, bar, first, n):
    factor, up, up_bar, at = spread(bar), place(node, UP, first), place(node, UP_BAR, first), unsigned(at)
    for v in range(unsigned(0), padded(n), FOUR):
        pair = multiply(factor, load(pot, at + v))
        store(multiply_add(load(node, up + v), pair, load(grad, at + v)), grad, at + v)
        store(add(load(node, up_bar + v), pair), node, up_bar + v)


@inlined
def spread_each(node, x):
    """UP of the four nodes from x on, each of them four times."""
    a, b, c, d = lanes(load(node, place(node, UP, x)))
    return spread(a), spread(b), spread(c), spread(d)


@part
def dense_product(mode, pot, at, node, first, n):
    """DOWN[v] += sum_u UP[u] trans[u, v] of n siblings in LINEAR or MAX, four rows at a time."""
    first, n, w = unsigned(first), unsigned(n), padded(n)
    down, row0, u = place(node, DOWN, first), unsigned(at), unsigned(0)
    while u + FOUR <= n:
        x0, x1, x2, x3 = spread_each(node, first + u)
        row1, row2, row3 = row0 + w, row0 + w + w, row0 + w + w + w
        for v in range(unsigned(0), w, FOUR):
            even = sum_up(mode, load(node, down + v), x0, load(pot, row0 + v))
            odd = both(mode, x1, load(pot, row1 + v))
            even = sum_up(mode, even, x2, load(pot, row2 + v))
            odd = sum_up(mode, odd, x3, load(pot, row3 + v))
            store(either(mode, even, odd), node, down + v)
        row0, u = row3 + w, u + FOUR
    while u < n:
        x0 = spread(node[UP, first + u])
        for v in range(unsigned(0), w, FOUR):
            store(sum_up(mode, load(node, down + v), x0, load(pot, row0 + v)), node, down + v)
        row0, u = row0 + w, u + unsigned(1)


@part
def log_product(pot, at, node, first, n):
    """DOWN[v] = log(exp DOWN[v] + sum_u exp(UP[u] + trans[u, v])) of n siblings."""
    at, first, n, w = unsigned(at), unsigned(first), unsigned(n), padded(n)
    for v in range(n):
        before = best = node[DOWN, first + v]
        for u in range(n):
            best = larger(best, node[UP, first + u] + pot[at + u * w + v])
        if best > -np.inf:
            total = np.exp(before - best)
            for u in range(n):
                total += np.exp(node[UP, first + u] + pot[at + u * w + v] - best)
            node[DOWN, first + v] = best + np.log(total)


@part
def linear_product_back(pot, grad, at, node, first, n):
    """UP_BAR[u] = sum_v trans[u, v] DOWN_BAR[v], and the posteriors of the pairs (u, v)."""
    first, n, w = unsigned(first), unsigned(n), padded(n)
    bar, row0, u = place(node, DOWN_BAR, first), unsigned(at), unsigned(0)
    while u + FOUR <= n:
        x0, x1, x2, x3 = spread_each(node, first + u)
        row1, row2, row3 = row0 + w, row0 + w + w, row0 + w + w + w
        sum0 = sum1 = sum2 = sum3 = spread(0.0)
        for v in range(unsigned(0), w, FOUR):
            after = load(node, bar + v)
            sum0 = add(sum0, count_pairs(pot, grad, row0 + v, x0, after))
            sum1 = add(sum1, count_pairs(pot, grad, row1 + v, x1, after))
            sum2 = add(sum2, count_pairs(pot, grad, row2 + v, x2, after))
            sum3 = add(sum3, count_pairs(pot, grad, row3 + v, x3, after))
        store(lane_sums(sum0, sum1, sum2, sum3), node, place(node, UP_BAR, first + u))
        row0, u = row3 + w, u + FOUR
    while u < n:
        node[UP_BAR, first + u] = linear_init_back(pot, grad, row0, node, node[UP, first + u], first, n)
        row0, u = row0 + w, u + unsigned(1)


@inlined
def init_back(mode, pot, grad, at, node, above, first, n):
    """Reverse of ``init``: from DOWN_BAR of the children to the counts and the bar of the node, which is returned."""
    if mode is LINEAR:
        return linear_init_back(pot, grad, at, node, above, first, n)
    at, first = unsigned(at), unsigned(first)
    bar = -np.inf
    for k in range(unsigned(n)):
        pair = node[DOWN_BAR, first + k] + pot[at + k]
        grad[at + k] += np.exp(above + pair)
        bar = plus(mode, bar, pair)
    return bar


@inlined
def end(mode, pot, at, node, first, n):
    """UP of a node that ends with one of its children: the sum of UP[u] * end[u]."""
    if mode is LINEAR:  # by itself: Numba then does not even look at the rest
        return dense_end(mode, pot, at, node, first, n)
    if is_best(mode):
        return dense_end(mode, pot, at, node, first, n)
    at, first = unsigned(at), unsigned(first)
    value = -np.inf
    for k in range(unsigned(n)):
        value = plus(mode, value, node[UP, first + k] + pot[at + k])
    return value


@inlined
def end_back(mode, pot, grad, at, node, bar, first, n):
    """Reverse of ``end``: add to the counts and to UP_BAR of the children."""
    if mode is LINEAR:
        linear_end_back(pot, grad, at, node, bar, first, n)
        return
    at, first = unsigned(at), unsigned(first)
    for k in range(unsigned(n)):
        pair = bar + pot[at + k]
        grad[at + k] += np.exp(node[UP, first + k] + pair)
        node[UP_BAR, first + k] = plus(mode, node[UP_BAR, first + k], pair)


@inlined
def product(mode, pot, at, node, first, n):
    """Add to DOWN of n siblings v the sum over u of up[u] * trans[u, v], in any arithmetic."""
    if mode is LINEAR or is_best(mode):
        dense_product(mode, pot, at, node, first, n)
    else:
        log_product(pot, at, node, first, n)


@inlined
def product_back(mode, pot, grad, at, node, first, n):
    """Reverse of ``product``: UP_BAR of u from DOWN_BAR of v, and the counts of the pairs."""
    if mode is LINEAR:
        linear_product_back(pot, grad, at, node, first, n)
    else:
        for u in range(n):
            row = unsigned(at) + unsigned(u) * padded(n)
            node[UP_BAR, first + u] = init_back(mode, pot, grad, row, node, node[UP, first + u], first, n)
