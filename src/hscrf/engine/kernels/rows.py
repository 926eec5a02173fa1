"""One parent and its children in many rows at once: the value of child k in row r lies at k * rows + r.

Each number of a table serves eight rows, and each value of a row four children. The sums and products are those of
LINEAR or MAX; what goes backward is LINEAR. ``span`` is the number of rows of a bundle, and the first and the end of
those that are computed: whole blocks of eight, or all rows where leaves are segments.
"""

from hscrf.engine.kernels.arithmetic import both, none, padded, sum_up
from hscrf.engine.kernels.compile import inlined, part, unsigned
from hscrf.engine.kernels.lanes import (
    FOUR,
    add,
    lane_sum,
    lane_sums,
    load,
    multiply,
    multiply_add,
    quotient,
    smaller,
    spread,
    store,
    where_above,
)

EIGHT, TWELVE, SIXTEEN = unsigned(8), unsigned(12), unsigned(16)


@part
def fill(values, at, n, span, value):
    """The same number in all rows of n nodes."""
    rows, low, high = span
    for x in range(at, at + unsigned(n) * rows, rows):
        for r in range(low, high, FOUR):
            store(spread(value), values, x + r)


@inlined
def begin_sums(mode, pot, at, a, b):
    """The parent starts: four children in eight rows, above * init."""
    p0, p1 = spread(pot[at]), spread(pot[at + unsigned(1)])
    p2, p3 = spread(pot[at + unsigned(2)]), spread(pot[at + unsigned(3)])
    first = both(mode, a, p0), both(mode, a, p1), both(mode, a, p2), both(mode, a, p3)
    second = both(mode, b, p0), both(mode, b, p1), both(mode, b, p2), both(mode, b, p3)
    return first, second


@part
def product(mode, pot, init, trans, n, parent, before, target, span):
    """target[v] = down * init[v] + sum over u of up[u] * trans[u, v] of n siblings.

    ``parent`` is the array ``down``, where the parent lies in it, and whether it may start; ``before`` is ``up``, where
    the first sibling lies in it, and how many may end: n, or 0.
    """
    down, above, starting = parent
    up, x, crossing = before
    out, y = target
    (rows, low, high), width = span, padded(n)
    for r in range(low, high, EIGHT):
        for v in range(unsigned(0), width, FOUR):
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = none(mode)
            if starting:
                a, b = load(down, above + r), load(down, above + r + FOUR)
                (a0, a1, a2, a3), (b0, b1, b2, b3) = begin_sums(mode, pot, init + v, a, b)
            p, s = trans + v, x + r
            for _ in range(unsigned(crossing)):
                c, d = load(up, s), load(up, s + FOUR)
                p0, p1 = spread(pot[p]), spread(pot[p + unsigned(1)])
                p2, p3 = spread(pot[p + unsigned(2)]), spread(pot[p + unsigned(3)])
                a0, b0 = sum_up(mode, a0, c, p0), sum_up(mode, b0, d, p0)
                a1, b1 = sum_up(mode, a1, c, p1), sum_up(mode, b1, d, p1)
                a2, b2 = sum_up(mode, a2, c, p2), sum_up(mode, b2, d, p2)
                a3, b3 = sum_up(mode, a3, c, p3), sum_up(mode, b3, d, p3)
                p, s = p + width, s + rows
            t0 = y + v * rows + r
            t1, t2, t3 = t0 + rows, t0 + rows + rows, t0 + rows + rows + rows
            store(a0, out, t0)
            store(b0, out, t0 + FOUR)
            store(a1, out, t1)
            store(b1, out, t1 + FOUR)
            store(a2, out, t2)
            store(b2, out, t2 + FOUR)
            store(a3, out, t3)
            store(b3, out, t3 + FOUR)


@part
def product_back(pot, trans, n, down_bar, up_bar, y, span):
    """Reverse of the sum over u: up_bar[u] = sum over v of trans[u, v] * down_bar[v]."""
    (rows, low, high), width = span, padded(n)
    n, one, two = unsigned(n), unsigned(1), unsigned(2)
    for r in range(y + low, y + high, EIGHT):
        for u in range(unsigned(0), n, FOUR):
            u1, u2, u3 = smaller(u + one, n - one), smaller(u + two, n - one), smaller(u + two + one, n - one)
            p0, p1, p2, p3 = trans + u * width, trans + u1 * width, trans + u2 * width, trans + u3 * width
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = spread(0.0)
            s = r
            for v in range(n):
                c, d = load(down_bar, s), load(down_bar, s + FOUR)
                q0, q1, q2, q3 = spread(pot[p0 + v]), spread(pot[p1 + v]), spread(pot[p2 + v]), spread(pot[p3 + v])
                a0, b0 = multiply_add(c, q0, a0), multiply_add(d, q0, b0)
                a1, b1 = multiply_add(c, q1, a1), multiply_add(d, q1, b1)
                a2, b2 = multiply_add(c, q2, a2), multiply_add(d, q2, b2)
                a3, b3 = multiply_add(c, q3, a3), multiply_add(d, q3, b3)
                s += rows
            store(a3, up_bar, r + u3 * rows)
            store(b3, up_bar, r + u3 * rows + FOUR)
            store(a2, up_bar, r + u2 * rows)
            store(b2, up_bar, r + u2 * rows + FOUR)
            store(a1, up_bar, r + u1 * rows)
            store(b1, up_bar, r + u1 * rows + FOUR)
            store(a0, up_bar, r + u * rows)
            store(b0, up_bar, r + u * rows + FOUR)


@part
def add_pairs(n, up, x, down_bar, y, pairs, at, span):
    """Add up[u] * down_bar[v] of n siblings, four rows in each lane, to the pairs (u, v) from a place on."""
    (rows, low, high), width, two = span, padded(n), unsigned(2)
    for u in range(unsigned(0), unsigned(n), two):
        s, line = x + u * rows, at + u * width * FOUR
        other = rows if u + unsigned(1) < unsigned(n) else unsigned(0)
        below = line + (width * FOUR if other > unsigned(0) else unsigned(0))
        for v in range(unsigned(0), width, FOUR):
            t0 = y + v * rows
            t1, t2, t3 = t0 + rows, t0 + rows + rows, t0 + rows + rows + rows
            p, q = line + v * FOUR, below + v * FOUR
            b0, b1, b2, b3 = load(pairs, q), load(pairs, q + FOUR), load(pairs, q + EIGHT), load(pairs, q + TWELVE)
            a0, a1, a2, a3 = load(pairs, p), load(pairs, p + FOUR), load(pairs, p + EIGHT), load(pairs, p + TWELVE)
            for r in range(low, high, FOUR):
                value, next_value = load(up, s + r), load(up, s + other + r)
                c0, c1 = load(down_bar, t0 + r), load(down_bar, t1 + r)
                c2, c3 = load(down_bar, t2 + r), load(down_bar, t3 + r)
                a0, a1 = multiply_add(value, c0, a0), multiply_add(value, c1, a1)
                a2, a3 = multiply_add(value, c2, a2), multiply_add(value, c3, a3)
                b0, b1 = multiply_add(next_value, c0, b0), multiply_add(next_value, c1, b1)
                b2, b3 = multiply_add(next_value, c2, b2), multiply_add(next_value, c3, b3)
            store(b0, pairs, q)
            store(b1, pairs, q + FOUR)
            store(b2, pairs, q + EIGHT)
            store(b3, pairs, q + TWELVE)
            store(a0, pairs, p)
            store(a1, pairs, p + FOUR)
            store(a2, pairs, p + EIGHT)
            store(a3, pairs, p + TWELVE)


@part
def count_pairs(pot, grad, trans, n, pairs, at):
    """Add the posteriors of the pairs, trans times what ``add_pairs`` has gathered, to their counts; forget them."""
    for k in range(trans, trans + unsigned(n) * padded(n), FOUR):
        a, b = load(pairs, at), load(pairs, at + FOUR)
        c, d = load(pairs, at + EIGHT), load(pairs, at + EIGHT + FOUR)
        factor, nothing = load(pot, k), spread(0.0)
        found = where_above(
            factor, nothing, multiply(lane_sums(a, b, c, d), factor), nothing
        )  # a forbidden pair has none
        store(add(load(grad, k), found), grad, k)
        for z in range(FOUR):
            store(spread(0.0), pairs, at + FOUR * z)
        at += SIXTEEN


@part
def init_back(pot, grad, init, n, down, above, bars, y, z, span):
    """Reverse of ``down * init[v]``: the parent's bars, at z, from those of its children, at y; and the counts."""
    rows, low, high = span
    fill(bars, z, 1, span, 0.0)
    for v in range(unsigned(n)):
        factor, total, t = spread(pot[init + v]), spread(0.0), y + v * rows
        for r in range(low, high, FOUR):
            pair = multiply(factor, load(bars, t + r))
            total = multiply_add(load(down, above + r), pair, total)
            store(add(load(bars, z + r), pair), bars, z + r)
        grad[init + v] += lane_sum(total)


@part
def end(mode, pot, at, n, up, x, y, span):
    """up of the parent, at y: the sum over its children u, from x on, of up[u] * end[u]."""
    rows, low, high = span
    for r in range(low, high, EIGHT):
        a = b = none(mode)
        s = x + r
        for u in range(unsigned(n)):
            factor = spread(pot[at + u])
            a, b = sum_up(mode, a, load(up, s), factor), sum_up(mode, b, load(up, s + FOUR), factor)
            s += rows
        store(a, up, y + r)
        store(b, up, y + r + FOUR)


@part
def end_back(pot, grad, at, n, up, x, bars, y, z, span):
    """Reverse of ``end``: add the parent's bars, at y, times end[u] to those of u, from z on; and count."""
    rows, low, high = span
    for u in range(unsigned(n)):
        factor, total, s, t = spread(pot[at + u]), spread(0.0), x + u * rows, z + u * rows
        for r in range(low, high, FOUR):
            pair = multiply(factor, load(bars, y + r))
            total = multiply_add(load(up, s + r), pair, total)
            store(add(load(bars, t + r), pair), bars, t + r)
        grad[at + u] += lane_sum(total)


@part
def divide(values, by, y, span):
    """Divide the first node of an array by a node of another, row by row; 0 where that is 0."""
    nothing = spread(0.0)
    for r in range(span[1], span[2], FOUR):
        divisor = load(by, y + r)
        store(where_above(divisor, nothing, quotient(load(values, r), divisor), nothing), values, r)


@part
def sum_of_products(a, x, b, y, span):
    """The sum over rows of the products of two nodes."""
    total = spread(0.0)
    for r in range(span[1], span[2], FOUR):
        total = multiply_add(load(a, x + r), load(b, y + r), total)
    return lane_sum(total)


@part
def add_products(a, x, b, y, total, span):
    """Add the products of two nodes, row by row, to the first node of ``total``."""
    for r in range(span[1], span[2], FOUR):
        store(multiply_add(load(a, x + r), load(b, y + r), load(total, r)), total, r)


@part
def segments(mode, mass, line, lags, started, target, span):
    """up of a leaf: the sum over lags of what started so many steps earlier, times the mass of a segment from there.

    The segment of lag 0 lies at ``line`` and the next ones after it; ``started`` is ``entered``, where the leaf lies
    in it, and how far back it lies a step earlier.
    """
    entered, x, size = started
    up, y = target
    for r in range(span[1], span[2], EIGHT):
        a = b = none(mode)
        for lag in range(unsigned(lags[0]), unsigned(lags[1])):
            factor, s = spread(mass[line + lag]), x - lag * size + r
            a, b = sum_up(mode, a, load(entered, s), factor), sum_up(mode, b, load(entered, s + FOUR), factor)
        store(a, up, y + r)
        store(b, up, y + r + FOUR)


@part
def segments_back(table, lines, started, ends, down_bar, y, span):
    """Reverse of ``segments``: the bars of what starts from those of where its segments end; and their posteriors.

    ``table`` is masses and posteriors; ``lines`` says where in it the segment of each lag lies, -1 if there is none,
    and how many lags there are; ``started`` is ``entered`` and where the leaf lies in it; ``ends`` is the bars, at the
    same place for lag 0, and how far on they lie a step later.
    """
    mass, post = table
    line_of, lags = lines
    entered, x = started
    later, size = ends
    nothing = spread(0.0)
    for r in range(x + span[1], x + span[2], SIXTEEN):
        v0, v1 = load(entered, r), load(entered, r + FOUR)
        v2, v3 = load(entered, r + EIGHT), load(entered, r + EIGHT + FOUR)
        a0 = a1 = a2 = a3 = nothing
        at = r
        for lag in range(lags):
            if line_of[lag] >= 0:
                line = unsigned(line_of[lag])
                b0, b1 = load(later, at), load(later, at + FOUR)
                b2, b3 = load(later, at + EIGHT), load(later, at + EIGHT + FOUR)
                factor = spread(mass[line])
                a0, a1 = multiply_add(factor, b0, a0), multiply_add(factor, b1, a1)
                a2, a3 = multiply_add(factor, b2, a2), multiply_add(factor, b3, a3)
                total = multiply_add(v1, b1, multiply(v0, b0))
                total = add(total, multiply_add(v3, b3, multiply(v2, b2)))
                post[line] += mass[line] * lane_sum(total)
            at += size
        place = y + r - x
        store(where_above(v0, nothing, a0, nothing), down_bar, place)
        store(where_above(v1, nothing, a1, nothing), down_bar, place + FOUR)
        store(where_above(v2, nothing, a2, nothing), down_bar, place + EIGHT)
        store(where_above(v3, nothing, a3, nothing), down_bar, place + EIGHT + FOUR)
