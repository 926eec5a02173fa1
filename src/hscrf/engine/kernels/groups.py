"""One parent and its children in a run that goes alone: children lie next to each other, four of them in a vector.

The same as ``rows``, where rows do. LINEAR and MAX take sums and products of vectors, LOG goes number by number.
"""

import numpy as np

from hscrf.engine.kernels.arithmetic import (
    LINEAR,
    both,
    either,
    none,
    padded,
    plus,
    probability,
    sum_up,
    times,
    zero,
)
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
    spread,
    store,
)


@inlined
def product(mode, pot, init, trans, n, parent, before, target):
    """target[v] = down * init[v] + sum over u of up[u] * trans[u, v] of n siblings; see ``rows.product``."""
    down, above, _ = parent
    up, x, crossing = before
    out, y = target
    start(mode, pot, init, n, down[above], out, y)
    if crossing > 0:
        if mode is LINEAR or is_best(mode):
            dense_product(mode, pot, trans, n, up, x, out, y)
        else:
            log_product(pot, trans, n, up, x, out, y)


@part
def start(mode, pot, init, n, above, out, y):
    """The parent starts: out[v] = above * init[v]."""
    factor = spread(above)
    for v in range(unsigned(0), padded(n), FOUR):
        store(both(mode, factor, load(pot, init + v)), out, y + v)


@inlined
def spread_each(values, x):
    """The four numbers from x on, each of them four times."""
    a, b, c, d = lanes(load(values, x))
    return spread(a), spread(b), spread(c), spread(d)


@part
def dense_product(mode, pot, trans, n, up, x, out, y):
    """out[v] += sum over u of up[u] * trans[u, v] in LINEAR or MAX, four u at a time."""
    n, w, row0, u = unsigned(n), padded(n), trans, unsigned(0)
    while u + FOUR <= n:
        x0, x1, x2, x3 = spread_each(up, x + u)
        row1, row2, row3 = row0 + w, row0 + w + w, row0 + w + w + w
        for v in range(unsigned(0), w, FOUR):
            even = sum_up(mode, load(out, y + v), x0, load(pot, row0 + v))
            odd = both(mode, x1, load(pot, row1 + v))
            even = sum_up(mode, even, x2, load(pot, row2 + v))
            odd = sum_up(mode, odd, x3, load(pot, row3 + v))
            store(either(mode, even, odd), out, y + v)
        row0, u = row3 + w, u + FOUR
    while u < n:
        x0 = spread(up[x + u])
        for v in range(unsigned(0), w, FOUR):
            store(sum_up(mode, load(out, y + v), x0, load(pot, row0 + v)), out, y + v)
        row0, u = row0 + w, u + unsigned(1)


@part
def log_product(pot, trans, n, up, x, out, y):
    """out[v] = log(exp out[v] + sum over u of exp(up[u] + trans[u, v]))."""
    n, w = unsigned(n), padded(n)
    for v in range(n):
        before = best = out[y + v]
        for u in range(n):
            best = larger(best, up[x + u] + pot[trans + u * w + v])
        if best > -np.inf:
            total = np.exp(before - best)
            for u in range(n):
                total += np.exp(up[x + u] + pot[trans + u * w + v] - best)
            out[y + v] = best + np.log(total)


@inlined
def count_pairs(pot, grad, row, weight, after):
    """Four pairs of a row, trans * after; add weight times them to their counts."""
    pair = multiply(load(pot, row), after)
    store(multiply_add(weight, pair, load(grad, row)), grad, row)
    return pair


@part
def row_back(mode, pot, grad, at, n, value, bars, y):
    """The bar of a value whose products with pot[v] have the given bars; and their counts."""
    if mode is LINEAR:
        weight, sums = spread(value), spread(0.0)
        for v in range(unsigned(0), padded(n), FOUR):
            sums = add(sums, count_pairs(pot, grad, at + v, weight, load(bars, y + v)))
        return lane_sum(sums)
    total = -np.inf
    for v in range(n):
        pair = bars[y + v] + pot[at + v]
        grad[at + v] += np.exp(value + pair)
        total = plus(mode, total, pair)
    return total


@part
def product_back(mode, pot, grad, trans, n, up, x, down_bar, up_bar, y):
    """Reverse of the sum over u: up_bar[u] = sum over v of trans[u, v] * down_bar[v]; and the counts of the pairs."""
    n, w, row0, u = unsigned(n), padded(n), trans, unsigned(0)
    if mode is LINEAR:
        while u + FOUR <= n:
            x0, x1, x2, x3 = spread_each(up, x + u)
            row1, row2, row3 = row0 + w, row0 + w + w, row0 + w + w + w
            sum0 = sum1 = sum2 = sum3 = spread(0.0)
            for v in range(unsigned(0), w, FOUR):
                after = load(down_bar, y + v)
                sum0 = add(sum0, count_pairs(pot, grad, row0 + v, x0, after))
                sum1 = add(sum1, count_pairs(pot, grad, row1 + v, x1, after))
                sum2 = add(sum2, count_pairs(pot, grad, row2 + v, x2, after))
                sum3 = add(sum3, count_pairs(pot, grad, row3 + v, x3, after))
            store(lane_sums(sum0, sum1, sum2, sum3), up_bar, y + u)
            row0, u = row3 + w, u + FOUR
    while u < n:
        up_bar[y + u] = row_back(mode, pot, grad, row0, n, up[x + u], down_bar, y)
        row0, u = row0 + w, u + unsigned(1)


@inlined
def init_back(mode, pot, grad, init, n, down, above, bars, y, z):
    """Reverse of ``start``: the parent's bar, at z, from those of its children, at y; and the counts."""
    bar = zero(mode)
    if down[above] > zero(mode):
        bar = row_back(mode, pot, grad, init, unsigned(n), down[above], bars, y)
    bars[z] = bar


@part
def end(mode, pot, at, n, up, x, y):
    """up of the parent, at y: the sum over its children u, from x on, of up[u] * end[u]."""
    value = zero(mode)
    if mode is LINEAR or is_best(mode):
        sums = none(mode)
        for u in range(unsigned(0), padded(n), FOUR):
            sums = sum_up(mode, sums, load(pot, at + u), load(up, x + u))
        value = lane_sum(sums) if mode is LINEAR else lane_max(sums)
    else:
        for u in range(unsigned(n)):
            value = plus(mode, value, up[x + u] + pot[at + u])
    up[y] = value


@part
def end_back(mode, pot, grad, at, n, up, x, bars, y, z):
    """Reverse of ``end``: add the parent's bar, at y, times end[u] to those of u, from z on; and count."""
    if mode is LINEAR:
        factor = spread(bars[y])
        for u in range(unsigned(0), padded(n), FOUR):
            pair = multiply(factor, load(pot, at + u))
            store(multiply_add(load(up, x + u), pair, load(grad, at + u)), grad, at + u)
            store(add(load(bars, z + u), pair), bars, z + u)
    else:
        for u in range(unsigned(n)):
            pair = bars[y] + pot[at + u]
            grad[at + u] += np.exp(up[x + u] + pair)
            bars[z + u] = plus(mode, bars[z + u], pair)


@part
def segments(mode, mass, line, lags, entered, x):
    """The sum over lags of what entered so many steps earlier, from x on, times the mass of a segment from there."""
    k, end = unsigned(lags[0]), unsigned(lags[1])
    total = zero(mode)
    if mode is LINEAR or is_best(mode):
        sums = none(mode)
        while k + FOUR <= end:
            sums = sum_up(mode, sums, load(entered, x + k), load(mass, line + k))
            k += FOUR
        total = lane_sum(sums) if mode is LINEAR else lane_max(sums)
    while k < end:
        total = plus(mode, total, times(mode, entered[x + k], mass[line + k]))
        k += unsigned(1)
    return total


@part
def segments_back(mode, mass, line, post, column, lags, entered, entered_bar, x, bar, factor, seen):
    """Reverse of ``segments``, ``bar`` being that of the sum: the bars of what entered, and posteriors of segments.

    The posteriors go to ``post``, from a column on, and to the line ``seen`` of ``factor`` unless that is 0.
    """
    k, end = unsigned(lags[0]), unsigned(lags[1])
    if mode is LINEAR:
        bars = spread(bar)
        while k + FOUR <= end:
            pair, started = multiply(load(mass, line + k), bars), load(entered, x + k)
            store(add(load(entered_bar, x + k), pair), entered_bar, x + k)
            store(multiply_add(started, pair, load(post, column + k)), post, column + k)
            if seen > unsigned(0):
                store(multiply_add(started, pair, load(factor, seen + k)), factor, seen + k)
            k += FOUR
    while k < end:
        pair = times(mode, mass[line + k], bar)
        entered_bar[x + k] = plus(mode, entered_bar[x + k], pair)
        posterior = probability(mode, entered[x + k], pair)
        post[column + k] += posterior
        if seen > unsigned(0):
            factor[seen + k] += posterior
        k += unsigned(1)
