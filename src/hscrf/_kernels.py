"""Every compiled function of the library.

One layer of the model (DESIGN: *levels are layers*) is a set of **runs**. The run of top state ``s`` and start ``i``
walks over ``j = i, i + 1, ...`` and carries the mass of everything that may happen under ``s`` since ``i``. Its chain
state is a *leaf*: a stack of states from just below the top down to the layer's bottom; leaves and the inner nodes
above them form a trie, numbered level by level, the top itself being node ``level_at[s, 0]``.

    enter[j, leaf]   a leaf starts at j                 (``descend``: across by ``trans``, down by ``init``)
    leaf[j, leaf]    a leaf is alive at j               (``extend_step``: tokens; ``sum_segments``: child segments)
    up[node]         the node ends at j                 (``ascend``: up by ``end``)

The same code runs in three arithmetics, told apart by ``mode``: LINEAR (sums of products, each row of a run scaled),
LOG (log-sum-exp) and MAX (the best instead of the sum). The backward pass is the reverse-mode derivative of the
forward pass: ``*_bar`` holds d log Z / d value, so value x bar is a posterior probability.

LINEAR loses nothing: a value is either exactly zero because it is impossible, or at least ``TINY`` relative to its
row; a run in which this fails reports it, and the caller takes LOG instead.

Times are rows of the packed batch, so one call serves many sequences. All potentials of a layer lie in one flat
array; a node holds the address and the stride in time (0: constant) of each of its potentials.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hscrf._vectors import (
    FOUR,
    add,
    higher,
    lane_sum,
    lane_sums,
    lanes,
    load,
    lower_above,
    multiply,
    multiply_add,
    prefetch,
    spread,
    store,
)

LINEAR, LOG, MAX = None, False, True  # None is a type of its own: its branches are settled when compiling
TINY = 1e-140  # products of two such numbers are still normal floats
SMALLEST = 1e-300  # stands for what is possible but too small to matter
FAINT = 1e-290  # a sum below this may owe more than its last digits to such
LOW, HIGH = 1e-20, 1e20  # a row is rescaled when its largest value leaves this range

# What Python calls; what only other kernels call; and what is inlined because a call at every step would cost more than
# the work. Sums may be reordered and fused. There is no NaN: infinities are only ever -inf, and none is subtracted.
# No kernel makes an array, so none needs to count references to them (``_nrt``): that took more than half of the time
# of small models, and threads waited for each other's counts.
jit: Any = njit  # compiled functions have no types that a checker could follow
common: Any = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz", "nnan"}, "_nrt": False}
kernel = jit(cache=True, **common)
part = jit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **common)
inlined = jit(no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True, **common)


# Numba checks signed indices for being negative, which keeps loops from being vectorised. So offsets in hot loops are
# unsigned: ``array[offset + k]``.
unsigned = np.uint64


class Layer(NamedTuple):
    """Structure, evidence and addresses of one layer: levels ``top .. top + depth``, N packed time steps.

    Few arrays with named columns rather than many arrays: each one is passed by value through every call, and the
    time to compile grows with their number.
    """

    level_at: np.ndarray  # (S_top, depth + 2) first node of each level of the trie of each top state
    node: np.ndarray  # (16, nodes) structure, then address and stride of each potential: rows PARENT .. END
    may_end: np.ndarray  # (depth + 1, N) evidence: may level top + k end at t
    may_cross: np.ndarray  # (depth + 2, N) may levels top + 1 .. top + k - 1 all go on after t
    reach: np.ndarray  # (N, S_top) longest admissible segment of the top state from t
    table: np.ndarray  # (N, 4) rows of segments, see BASE .. CHILD_SKIP
    starts: bool  # is there any start potential (else they are all one)
    stops: bool
    unit: bool  # the bottom has length one


PARENT, FIRST, COUNT, STATE = 0, 1, 2, 3  # rows of Layer.node; children are consecutive from FIRST
TOKEN, BEGIN, STOP = 4, 6, 8
INIT, TRANS, END = 10, 12, 14  # the block of the node's children
# Columns of Layer.table: the row of the one-step segment that ends at j, for the top and for the bottom, NOWHERE if no
# segment may end; the segment that starts l steps earlier lies l rows further. The longest bottom segment from t. How
# many of the shortest that end at j have no row, because none starts there: the row of one step may be negative.
BASE, CHILD_BASE, CHILD_REACH, CHILD_SKIP = 0, 1, 2, 3
NOWHERE = -(2**60)


class Values(NamedTuple):
    """The numbers of a layer: logarithms, or in LINEAR scaled exponentials."""

    pot: np.ndarray  # flat, see ``Layer``
    peak: np.ndarray  # (N,) LINEAR: log scale of all tokens at t together


class Segments(NamedTuple):
    """The segments of a bottom that has a table of them.

    Else None stands for them: like ``mode`` a type of its own, so that models without durations compile only what
    they need.
    """

    mass: np.ndarray  # (rows, S)
    shift: np.ndarray  # (rows,) LINEAR: their log scale; no possible segment is exactly zero


class Counts(NamedTuple):
    """Expected counts: the gradient of log Z, shaped like the values."""

    pot: np.ndarray
    ending: np.ndarray  # (depth + 1, N) posterior that a Markov level ends at t
    child: np.ndarray


class Scratch(NamedTuple):
    """Work space of one run: W steps, n leaves, m nodes, m - n of them inner ones."""

    enter: np.ndarray  # (W + 1, n) leaves that start at each step
    leaf: np.ndarray  # (W + 1, n) leaves alive at each step; none if the bottom has unit length, see ``recall``
    inner: np.ndarray  # (2, W + 1, m - n) inner nodes that end (UP) and that start (DOWN) at each step
    bar: np.ndarray  # (W + 1, n) the bars of ``enter``; without a table one row, that of the step after, if not unit
    scale: np.ndarray  # (W + 1,) log scale of ``enter`` at j, and of ``leaf`` at j - 1
    gain: np.ndarray  # (W + 1,) what the leaf row was multiplied by when it was rescaled
    weight: np.ndarray  # (W + 1,) LINEAR: scale of the child segments that end at j, by length
    since: np.ndarray  # (W + 1,) earliest start of a child segment that ends at j
    node: np.ndarray  # (7, m + 4) UP .. PASSED: values of the nodes at the current step


UP, DOWN, UP_BAR, DOWN_BAR, TOKENS, POSTERIOR, PASSED = 0, 1, 2, 3, 4, 5, 6  # of Scratch.node


def make_scratch(layer, child, steps, backward):
    """Work space for any run of a layer up to a number of steps."""
    depth = layer.level_at.shape[1] - 2
    leaves = int((layer.level_at[:, depth + 1] - layer.level_at[:, depth]).max())
    leaves += -leaves % 4  # vectors may reach beyond the last
    inner = int((layer.level_at[:, depth] - layer.level_at[:, 0]).max())
    return Scratch(
        np.empty((steps + 1, leaves)),
        np.empty((0 if layer.unit else steps + 1, leaves)),
        np.empty((2, steps + 1, inner)),
        np.empty((0 if layer.unit or not backward else 1 if child is None else steps + 1, leaves)),
        np.empty(steps + 1),
        np.empty(steps + 1),
        np.empty(steps + 1),
        np.empty(steps + 1, dtype=np.int64),
        np.empty((7, inner + leaves + 4)),
    )


@inlined
def zero(mode):
    return 0.0 if mode is None else -np.inf


@inlined
def one(mode):
    return 1.0 if mode is None else 0.0


@inlined
def times(mode, a, b):
    return a * b if mode is None else a + b


@inlined
def plus(mode, a, b):
    if mode is None:
        return a + b
    if a < b:
        a, b = b, a
    if mode or b == -np.inf:
        return a
    return a + np.log1p(np.exp(b - a))


@inlined
def probability(mode, a, b):
    """Posterior of an event from its value and its bar."""
    return a * b if mode is None else np.exp(a + b)


@inlined
def padded(n):
    """Length of a row of n potentials: the engine pads it to a multiple of four with impossible ones."""
    return (unsigned(n) + unsigned(3)) & ~unsigned(3)


@inlined
def place(node, row, x):
    """Index of node[row, x] in flat memory."""
    return unsigned(row) * unsigned(node.shape[1]) + unsigned(x)


@inlined
def add_row(target, row, source, line, factor=1.0):
    """target[row] += factor * source[line] of two tables with as many columns, neither of them padded."""
    n, k, times_factor = unsigned(target.shape[1]), unsigned(0), spread(factor)
    at, where = place(target, row, 0), place(source, line, 0)
    while k + FOUR <= n:
        store(multiply_add(times_factor, load(source, where + k), load(target, at + k)), target, at + k)
        k += FOUR
    while k < n:
        target[row, k] += factor * source[line, k]
        k += unsigned(1)


# Sums over the n children from ``first`` on of one node. In LINEAR four at a time: what lies behind the last child is
# multiplied by the padding, which is zero, and so neither counts nor changes.


@part
def linear_init(pot, at, node, above, first, n):
    factor, down = spread(above), place(node, DOWN, first)
    for v in range(unsigned(0), padded(n), FOUR):
        store(multiply(factor, load(pot, unsigned(at) + v)), node, down + v)


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
def linear_end(pot, at, node, first, n):
    up, sums = place(node, UP, first), spread(0.0)
    for v in range(unsigned(0), padded(n), FOUR):
        sums = multiply_add(load(pot, unsigned(at) + v), load(node, up + v), sums)
    return lane_sum(sums)


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
def linear_product(pot, at, node, first, n):
    """DOWN[v] += sum_u UP[u] trans[u, v] of n siblings, four rows at a time."""
    first, n, w = unsigned(first), unsigned(n), padded(n)
    down, row0, u = place(node, DOWN, first), unsigned(at), unsigned(0)
    while u + FOUR <= n:
        x0, x1, x2, x3 = spread_each(node, first + u)
        row1, row2, row3 = row0 + w, row0 + w + w, row0 + w + w + w
        for v in range(unsigned(0), w, FOUR):
            even = multiply_add(x0, load(pot, row0 + v), load(node, down + v))
            odd = multiply(x1, load(pot, row1 + v))
            even = multiply_add(x2, load(pot, row2 + v), even)
            odd = multiply_add(x3, load(pot, row3 + v), odd)
            store(add(even, odd), node, down + v)
        row0, u = row3 + w, u + FOUR
    while u < n:
        x0 = spread(node[UP, first + u])
        for v in range(unsigned(0), w, FOUR):
            store(multiply_add(x0, load(pot, row0 + v), load(node, down + v)), node, down + v)
        row0, u = row0 + w, u + unsigned(1)


@part
def best_product(pot, at, node, first, n):
    """DOWN[v] = max(DOWN[v], max_u UP[u] + trans[u, v]) of n siblings."""
    at, first, n, w = unsigned(at), unsigned(first), unsigned(n), padded(n)
    for u in range(n):
        value, row = node[UP, first + u], at + u * w
        if value > -np.inf:
            for v in range(n):
                node[DOWN, first + v] = max(value + pot[row + v], node[DOWN, first + v])


@part
def log_product(pot, at, node, first, n):
    """DOWN[v] = log(exp DOWN[v] + sum_u exp(UP[u] + trans[u, v])) of n siblings."""
    at, first, n, w = unsigned(at), unsigned(first), unsigned(n), padded(n)
    for v in range(n):
        before = best = node[DOWN, first + v]
        for u in range(n):
            best = max(best, node[UP, first + u] + pot[at + u * w + v])
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
def init(mode, pot, at, node, above, first, n):
    """DOWN[v] of the children of a node that starts: above * init[v]."""
    if mode is None:
        linear_init(pot, at, node, above, first, n)
        return
    at, first = unsigned(at), unsigned(first)
    for k in range(unsigned(n)):
        node[DOWN, first + k] = above + pot[at + k]


@inlined
def init_back(mode, pot, grad, at, node, above, first, n):
    """Reverse of ``init``: from DOWN_BAR of the children to the counts and the bar of the node, which is returned."""
    if mode is None:
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
    if mode is None:
        return linear_end(pot, at, node, first, n)
    at, first = unsigned(at), unsigned(first)
    value = -np.inf
    for k in range(unsigned(n)):
        value = plus(mode, value, node[UP, first + k] + pot[at + k])
    return value


@inlined
def end_back(mode, pot, grad, at, node, bar, first, n):
    """Reverse of ``end``: add to the counts and to UP_BAR of the children."""
    if mode is None:
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
    if mode is None:
        linear_product(pot, at, node, first, n)
    elif mode:
        best_product(pot, at, node, first, n)
    else:
        log_product(pot, at, node, first, n)


@inlined
def product_back(mode, pot, grad, at, node, first, n):
    """Reverse of ``product``: UP_BAR of u from DOWN_BAR of v, and the counts of the pairs."""
    if mode is None:
        linear_product_back(pot, grad, at, node, first, n)
    else:
        for u in range(n):
            row = unsigned(at) + unsigned(u) * padded(n)
            node[UP_BAR, first + u] = init_back(mode, pot, grad, row, node, node[UP, first + u], first, n)


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
    """Fill UP of the inner nodes at j, the mass of each that ends there, from the leaves'; return that of the top.

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
    return work.node[UP, 0]


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


@inlined
def fetch_tokens(layer, pot, s, t):
    """Have the tokens of time t, or their counts, in the cache when they are needed: nothing else foresees it."""
    for level in range(1, layer.level_at.shape[1] - 1):
        node = layer.level_at[s, level]
        row = unsigned(cell(layer, TOKEN, node, t) - layer.node[STATE, node])
        for k in range(unsigned(0), unsigned(layer.node[TOKEN + 1, node]), unsigned(8)):
            prefetch(pot, row + k)


@inlined
def multiply_tokens(mode, layer, pot, s, t, work, last):
    """Fill TOKENS of the nodes of levels 1 .. last: the product, down from the top, of the tokens at t."""
    root = layer.level_at[s, 0]
    work.node[TOKENS, 0] = one(mode)
    for level in range(last):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            above = work.node[TOKENS, node - root]
            kid, first = unsigned(layer.node[FIRST, node]), unsigned(layer.node[FIRST, node] - root)
            passed = t * layer.node[TOKEN + 1, kid]
            for k in range(unsigned(layer.node[COUNT, node])):
                at = unsigned(layer.node[TOKEN, kid + k] + passed)
                work.node[TOKENS, first + k] = times(mode, above, pot[at])


@inlined
def count_tokens(layer, grad, s, node, t, work):
    """Add POSTERIOR of the children of a node to the counts of their tokens at t; that of the node is their sum."""
    root = layer.level_at[s, 0]
    kid, first = unsigned(layer.node[FIRST, node]), unsigned(layer.node[FIRST, node] - root)
    passed = t * layer.node[TOKEN + 1, kid]
    total = 0.0
    for k in range(unsigned(layer.node[COUNT, node])):
        posterior = work.node[POSTERIOR, first + k]
        grad[unsigned(layer.node[TOKEN, kid + k] + passed)] += posterior
        total += posterior
    work.node[POSTERIOR, node - root] = total


@inlined
def rescale(work, leaf, n, step, scale):
    """LINEAR: scale UP of the leaves if it has left the comfortable range; note its factor and its log scale.

    Return its smallest positive value after that.
    """
    up, high, low = place(work.node, UP, leaf), spread(0.0), spread(1.0)
    for k in range(unsigned(0), padded(n), FOUR):
        value = load(work.node, up + k)
        high, low = higher(high, value), lower_above(low, value, spread(0.0))
    largest, smallest = max(lanes(high)), min(lanes(low))
    work.gain[step] = 1.0
    work.scale[step + 1] = scale
    if largest > 0.0 and not LOW < largest < HIGH:
        gain = 1.0 / largest
        work.gain[step] = gain
        work.scale[step + 1] = scale + np.log(largest)
        for k in range(n):
            work.node[UP, leaf + k] *= gain
        smallest *= gain
    return smallest


@inlined
def enter_leaves(mode, work, leaf, n, step):
    """Keep DOWN of the leaves as ``enter``, and make UP of them: DOWN * TOKENS.

    Return the smallest positive value of DOWN (LINEAR).
    """
    if mode is None:
        down, up, tokens = place(work.node, DOWN, leaf), place(work.node, UP, leaf), place(work.node, TOKENS, leaf)
        kept, low = place(work.enter, step, 0), spread(1.0)
        for k in range(unsigned(0), padded(n), FOUR):
            value = load(work.node, down + k)
            store(value, work.enter, kept + k)
            store(multiply(value, load(work.node, tokens + k)), work.node, up + k)
            low = lower_above(low, value, spread(0.0))
        return min(lanes(low))
    for k in range(n):
        work.enter[step, k] = work.node[DOWN, leaf + k]
        work.node[UP, leaf + k] = work.node[DOWN, leaf + k] + work.node[TOKENS, leaf + k]
    return 1.0


@inlined
def extend_step(mode, layer, values, s, i, j, work):
    """Fill UP of the leaves at j when the bottom has no table: it starts at j, or (not unit) goes on from j - 1.

    Return the smallest positive value that starts at j or is left after that (LINEAR).
    """
    depth, root, bottom, stop = shape_of(layer, s)
    multiply_tokens(mode, layer, values.pot, s, j, work, depth)
    leaf, n, step = unsigned(bottom - root), unsigned(stop - bottom), j - i
    low = enter_leaves(mode, work, leaf, n, step)
    if not layer.unit and step > 0 and layer.may_cross[depth + 1, j - 1]:
        for k in range(n):
            value = times(mode, work.leaf[step - 1, k], work.node[TOKENS, leaf + k])
            work.node[UP, leaf + k] = plus(mode, work.node[UP, leaf + k], value)
    if mode is None:
        low = min(low, rescale(work, leaf, n, step, work.scale[step] + values.peak[j]))
    else:
        work.gain[step] = 0.0
    if not layer.unit:
        for k in range(n):
            work.leaf[step, k] = work.node[UP, leaf + k]
    end_leaves(mode, layer, values.pot, s, j, work)
    return low


@inlined
def recall(mode, layer, pot, child, s, i, j, work):
    """Make UP, and TOKENS if the bottom has no table, belong to j again."""
    depth, root, bottom, stop = shape_of(layer, s)
    leaf, n, step = unsigned(bottom - root), unsigned(stop - bottom), j - i
    for x in range(bottom - root):
        work.node[UP, x] = work.inner[UP, step, x]
    if child is None:
        multiply_tokens(mode, layer, pot, s, j, work, depth)
    if layer.unit:
        gain = work.gain[step]
        for k in range(n):
            value = times(mode, work.enter[step, k], work.node[TOKENS, leaf + k])
            work.node[UP, leaf + k] = times(mode, value, gain)
    else:
        for k in range(n):
            work.node[UP, leaf + k] = work.leaf[step, k]
    if child is None:
        end_leaves(mode, layer, pot, s, j, work)


@inlined
def bar_if(mode, value, bar):
    """The bar of a value; zero if that is impossible, for what would follow may be infinitely better than the rest."""
    return bar if value > zero(mode) else zero(mode)


@inlined
def extend_step_back(mode, layer, values, counts, s, i, j, steps, work):
    """Reverse of ``extend_step``: from UP_BAR of the leaves at j to DOWN_BAR; TOKENS are there, see ``recall``."""
    depth, root, bottom, stop = shape_of(layer, s)
    leaf, n, step = unsigned(bottom - root), unsigned(stop - bottom), j - i
    gain, ended = work.gain[step], 0.0
    if not layer.unit:
        for k in range(n):
            ended += probability(mode, work.node[UP, leaf + k], work.node[UP_BAR, leaf + k])
        if not layer.may_end[depth, j]:
            for k in range(n):
                work.node[UP_BAR, leaf + k] = zero(mode)
    if layer.stops:
        for x in range(bottom - root, stop - root):
            where = cell(layer, STOP, root + x, j)
            counts.pot[where] += probability(mode, work.node[UP, x], work.node[UP_BAR, x])
            work.node[UP_BAR, x] = times(mode, work.node[UP_BAR, x], values.pot[where])
    if layer.unit:
        for k in range(n):
            bar = times(mode, times(mode, work.node[UP_BAR, leaf + k], work.node[TOKENS, leaf + k]), gain)
            bar = bar_if(mode, work.enter[step, k], bar)
            posterior = probability(mode, work.enter[step, k], bar)
            work.node[DOWN_BAR, leaf + k] = bar
            work.node[POSTERIOR, leaf + k] = posterior
            ended += posterior
    else:
        goes_on = j + 1 < i + steps and layer.may_cross[depth + 1, j]
        for k in range(n):
            bar = work.node[UP_BAR, leaf + k]
            if goes_on:
                bar = plus(mode, bar, work.bar[0, k])
            bar = bar_if(mode, work.leaf[step, k], bar)
            work.node[POSTERIOR, leaf + k] = probability(mode, work.leaf[step, k], bar)
            bar = times(mode, times(mode, bar, work.node[TOKENS, leaf + k]), gain)
            work.node[DOWN_BAR, leaf + k] = bar_if(mode, work.enter[step, k], bar)
            work.bar[0, k] = bar
    counts.ending[depth, j] += ended
    for level in range(depth - 1, -1, -1):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            count_tokens(layer, counts.pot, s, node, j, work)


@inlined
def reaches(layer, t, j):
    """May a child segment that starts at t end at j."""
    return t + layer.table[t, CHILD_REACH] > j


@part
def begin_tokens(mode, layer, s, work):
    """Start the running products, kept in PASSED, of the tokens of the bottom's parents."""
    depth, root, bottom, _ = shape_of(layer, s)
    for node in range(layer.level_at[s, depth - 1], bottom):
        work.node[PASSED, node - root] = one(mode)


@part
def pass_tokens(mode, layer, pot, s, t, work):
    """Multiply PASSED of the bottom's parents by their tokens, and their Markov ancestors', at t."""
    depth, root, bottom, _ = shape_of(layer, s)
    if depth > 1:
        multiply_tokens(mode, layer, pot, s, t, work, depth - 1)
        for node in range(layer.level_at[s, depth - 1], bottom):
            x = node - root
            passed = times(mode, work.node[PASSED, x], work.node[TOKENS, x])
            if mode is None and passed < SMALLEST and work.node[PASSED, x] > 0.0 and work.node[TOKENS, x] > 0.0:
                passed = SMALLEST  # only the impossible is zero
            work.node[PASSED, x] = passed


@part
def weigh(layer, values, child, i, j, work):
    """LINEAR: fill weight[lag] with the log scale of entering at j - lag and living till j; return the largest."""
    base = layer.table[j, CHILD_BASE]
    largest = -np.inf
    peaks = 0.0
    for lag in range(j - work.since[j - i] + 1):
        t = j - lag
        peaks += values.peak[t]
        work.weight[lag] = -np.inf
        if reaches(layer, t, j):
            work.weight[lag] = work.scale[t - i] + child.shift[base + lag] + peaks
            largest = max(largest, work.weight[lag])
    return largest


@part
def unweigh(work, count, scale):
    """From the log scales that ``weigh`` left to factors relative to a scale."""
    for lag in range(count):
        work.weight[lag] = np.exp(work.weight[lag] - scale)


@part
def sum_segments(mode, layer, values, child, s, i, j, work):
    """Fill UP of the leaves from the child segments t..j that end at j. Cost O(L leaves).

    The Markov ancestors' tokens over t..j are a running product as t goes back, and so is their scale.
    """
    depth, root, bottom, stop = shape_of(layer, s)
    base = layer.table[j, CHILD_BASE]
    count = j - work.since[j - i] + 1
    n = stop - bottom
    scale = 0.0
    if mode is None:
        scale = weigh(layer, values, child, i, j, work)
        if scale == -np.inf:
            return 1.0
        unweigh(work, count, scale)
    if mode is None and depth == 1 and n == child.mass.shape[1]:  # every state is a child of the top, in order
        lags = layer.table[j, CHILD_SKIP], count
        add_linear_segments(work.enter, j - i, child.mass, base, work.weight, lags, work.node, bottom - root)
    else:
        begin_tokens(mode, layer, s, work)
        for lag in range(count):
            t = j - lag
            pass_tokens(mode, layer, values.pot, s, t, work)
            if reaches(layer, t, j):
                for node in range(layer.level_at[s, depth - 1], bottom):
                    factor = work.node[PASSED, node - root]
                    if mode is None:
                        factor *= work.weight[lag]
                    add_segment(mode, layer, child.mass, base + lag, node, root, bottom, factor, t - i, work)
    if mode is None:
        return rescale(work, unsigned(bottom - root), unsigned(n), j - i, scale)
    return 1.0


@part
def add_linear_segments(enter, step, child, base, weight, lags, node, first):
    """UP[k] += sum over lag of enter[step - lag, k] * child[base + lag, k] * weight[lag], for all states k in order."""
    n, k, up = unsigned(child.shape[1]), unsigned(0), place(node, UP, first)
    while k + FOUR <= n:
        sums = load(node, up + k)
        for lag in range(*lags):
            value = multiply(load(enter, place(enter, step - lag, k)), load(child, place(child, base + lag, k)))
            sums = multiply_add(value, spread(weight[lag]), sums)
        store(sums, node, up + k)
        k += FOUR
    while k < n:
        for lag in range(*lags):
            node[UP, unsigned(first) + k] += enter[step - lag, k] * child[base + lag, k] * weight[lag]
        k += unsigned(1)


@part
def add_linear_segments_back(enter, enter_bar, step, child, child_post, base, weight, lags, node, first):
    """Reverse of ``add_linear_segments``."""
    n, bars = unsigned(child.shape[1]), place(node, UP_BAR, first)
    for lag in range(*lags):
        k, factor = unsigned(0), spread(weight[lag])
        entered, line = place(enter, step - lag, 0), place(child, base + lag, 0)
        while k + FOUR <= n:
            pair = multiply(multiply(load(child, line + k), factor), load(node, bars + k))
            store(add(load(enter_bar, entered + k), pair), enter_bar, entered + k)
            value = multiply_add(load(enter, entered + k), pair, load(child_post, line + k))
            store(value, child_post, line + k)
            k += FOUR
        while k < n:
            pair1 = child[base + lag, k] * weight[lag] * node[UP_BAR, unsigned(first) + k]
            enter_bar[step - lag, k] += pair1
            child_post[base + lag, k] += enter[step - lag, k] * pair1
            k += unsigned(1)


@part
def add_segment(mode, layer, mass, line, node, root, bottom, factor, entered, work):
    """Add the segments of all children of a node to UP: entered * child * factor."""
    first = layer.node[FIRST, node]
    for leaf in range(first, first + layer.node[COUNT, node]):
        value = times(mode, work.enter[entered, leaf - bottom], mass[line, layer.node[STATE, leaf]])
        work.node[UP, leaf - root] = plus(mode, work.node[UP, leaf - root], times(mode, value, factor))


@part
def sum_segments_back(mode, layer, values, child, counts, s, i, j, work):
    """Reverse of ``sum_segments``: the bars of ``enter`` at every t, posteriors of the segments and of the tokens."""
    depth, root, bottom, stop = shape_of(layer, s)
    base = layer.table[j, CHILD_BASE]
    count = j - work.since[j - i] + 1
    if mode is None:
        weigh(layer, values, child, i, j, work)
        unweigh(work, count, work.scale[j - i + 1])
        n = stop - bottom
        if depth == 1 and n == child.mass.shape[1]:
            lags, rows = (layer.table[j, CHILD_SKIP], count), (work.enter, work.bar, j - i, child.mass, counts.child)
            add_linear_segments_back(*rows, base, work.weight, lags, work.node, bottom - root)
            return
    begin_tokens(mode, layer, s, work)
    for lag in range(count):
        t = j - lag
        pass_tokens(mode, layer, values.pot, s, t, work)
        if not reaches(layer, t, j):
            continue
        for node in range(layer.level_at[s, depth - 1], bottom):
            factor = work.node[PASSED, node - root]
            if mode is None:
                factor *= work.weight[lag]
            work.node[POSTERIOR, node - root] = add_segment_back(
                mode, layer, child.mass, counts.child, base + lag, node, root, bottom, factor, t - i, work
            )
        if depth > 1:
            add_token_counts(layer, counts.pot, s, t, j, work)


@part
def add_segment_back(mode, layer, mass, post, line, node, root, bottom, factor, entered, work):
    """Reverse of ``add_segment``, the leaves' bars being in UP_BAR; return the posterior of these segments."""
    first = layer.node[FIRST, node]
    total = 0.0
    for leaf in range(first, first + layer.node[COUNT, node]):
        k, state = leaf - bottom, layer.node[STATE, leaf]
        pair = times(mode, times(mode, mass[line, state], factor), work.node[UP_BAR, leaf - root])
        work.bar[entered, k] = plus(mode, work.bar[entered, k], pair)
        posterior = probability(mode, work.enter[entered, k], pair)
        post[line, state] += posterior
        total += posterior
    return total


@part
def add_token_counts(layer, grad, s, t, j, work):
    """The Markov ancestors of a child segment t..j live through it: a difference in time, summed up by the caller.

    One step past the last lies in the spare row that every block of tokens has.
    """
    depth, root, _, _ = shape_of(layer, s)
    for level in range(depth - 1, 0, -1):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            if level < depth - 1:
                work.node[POSTERIOR, node - root] = 0.0
                for k in range(layer.node[FIRST, node], layer.node[FIRST, node] + layer.node[COUNT, node]):
                    work.node[POSTERIOR, node - root] += work.node[POSTERIOR, k - root]
            posterior = work.node[POSTERIOR, node - root]
            grad[cell(layer, TOKEN, node, t)] += posterior
            grad[cell(layer, TOKEN, node, j + 1)] -= posterior


@part
def lost_segments(layer, values, child, s, i, j, work):
    """LINEAR: had a leaf, before it was rescaled, a sum too small to trust, although some segment could end at j?"""
    _, root, bottom, stop = shape_of(layer, s)
    least = max(TINY, FAINT * work.gain[j - i])
    suspect = False
    for x in range(bottom - root, stop - root):
        suspect |= work.node[UP, x] < least
    if not suspect:
        return False
    begin_tokens(LINEAR, layer, s, work)
    for lag in range(j - work.since[j - i] + 1):
        pass_tokens(LINEAR, layer, values.pot, s, j - lag, work)
        if not reaches(layer, j - lag, j):
            continue
        for leaf in range(bottom, stop):
            row = layer.table[j, CHILD_BASE] + lag
            entered = work.enter[j - lag - i, leaf - bottom] > 0.0
            entered = entered and work.node[PASSED, layer.node[PARENT, leaf] - root] > 0.0
            if entered and work.node[UP, leaf - root] < least and child.mass[row, layer.node[STATE, leaf]] > 0.0:
                return True
    return False


@part
def extend_segments(mode, layer, values, child, s, i, j, work):
    """``extend_step`` for a bottom that has a table."""
    depth, root, bottom, stop = shape_of(layer, s)
    step, low = j - i, 1.0
    for x in range(bottom - root, stop - root):
        value = work.node[DOWN, x]
        work.enter[step, x + root - bottom] = value
        if 0.0 < value < low:
            low = value
        work.node[UP, x] = zero(mode)
    since = work.since[step - 1] if step > 0 else i
    while since < j and not reaches(layer, since, j):
        since += 1
    work.since[step] = since
    work.gain[step] = 1.0
    work.scale[step + 1] = work.scale[step]
    if layer.may_end[depth, j]:
        low = min(low, sum_segments(mode, layer, values, child, s, i, j, work))
        if mode is None and lost_segments(layer, values, child, s, i, j, work):
            low = 0.0
    for x in range(bottom - root, stop - root):
        work.leaf[step, x + root - bottom] = work.node[UP, x]
    return low


@part
def forward_run(mode, layer, values, child, i, s, steps, work, mass):
    """Walk one run; fill the rows, scale, gain, since and ``mass[l]``, the scaled mass of the top over i..i + l.

    Return the smallest positive number met (LINEAR only: below ``TINY`` the run is not to be trusted).
    """
    _, root, bottom, stop = shape_of(layer, s)
    low = 1.0
    work.scale[0] = 0.0
    work.node[:, stop - root : stop - root + 4] = 0.0  # nothing comes from beyond the last leaf
    for j in range(i, i + steps):
        descend(mode, layer, values.pot, s, i, j - 1, work)
        if child is None:
            fetch_tokens(layer, values.pot, s, j + 1)
            low = min(low, extend_step(mode, layer, values, s, i, j, work))
        else:
            low = min(low, extend_segments(mode, layer, values, child, s, i, j, work))
        mass[j - i] = ascend(mode, layer, values.pot, s, j, work)
        for x in range(bottom - root):
            work.inner[UP, j - i, x] = work.node[UP, x]
            work.inner[DOWN, j - i, x] = work.node[DOWN, x]
    return low


@kernel
def walk_forward(mode, layer, values, child, i, s, steps, work, mass):
    """``forward_run`` for Python."""
    forward_run(mode, layer, values, child, i, s, steps, work, mass)


@part
def backward_run(mode, layer, values, child, counts, i, s, steps, work, mass_bar):
    """Reverse of ``forward_run``: from d log Z / d mass to the expected counts of everything in the run."""
    depth, root, bottom, stop = shape_of(layer, s)
    leaf, n = unsigned(bottom - root), unsigned(stop - bottom)
    if child is not None:
        for row in range(steps + 1):
            for k in range(n):
                work.bar[row, k] = zero(mode)
    for j in range(i + steps - 1, i - 2, -1):
        if child is None:
            fetch_tokens(layer, counts.pot, s, j - 1)
        if j >= i:
            recall(mode, layer, values.pot, child, s, i, j, work)
        if j + 1 < i + steps:
            for x in range(bottom - root):
                work.node[DOWN, x] = work.inner[DOWN, j + 1 - i, x]
            if layer.starts:
                for k in range(n):
                    work.node[DOWN, leaf + k] = work.enter[j + 1 - i, k]
            if child is not None:
                for k in range(n):
                    work.node[DOWN_BAR, leaf + k] = bar_if(mode, work.enter[j + 1 - i, k], work.bar[j + 1 - i, k])
            descend_back(mode, layer, values.pot, counts.pot, s, i, j, work)
        else:
            for x in range(stop - root):
                work.node[UP_BAR, x] = zero(mode)
        if j >= i:
            work.node[UP_BAR, 0] = mass_bar[j - i]
            ascend_back(mode, layer, values.pot, counts, s, j, work)
            if child is None:
                extend_step_back(mode, layer, values, counts, s, i, j, steps, work)
            elif layer.may_end[depth, j]:
                sum_segments_back(mode, layer, values, child, counts, s, i, j, work)


@kernel
def sweep(mode, layer, values, child, counts, offsets, post, mass, scale, lossy, work, line):
    """Walk all runs of a layer: mass (rows, S) of its top segments with log scale (rows, S); lossy (sequences,).

    Unless ``counts`` is None, turn the posteriors ``post`` (rows, S) of the top segments into expected counts of all
    below; runs without posterior are left out. Runs are walked again for this rather than kept.
    Cost: runs x steps x (L leaves + sum of squared group sizes), L = 1 unless the bottom has a table.
    """
    for n in range(offsets.size - 1):
        for i in range(offsets[n], offsets[n + 1]):
            for s in range(layer.reach.shape[1]):
                reach = layer.reach[i, s]
                if reach == 0:
                    continue
                if counts is not None and not has_posterior(layer, i, s, reach, post):
                    continue
                low = forward_run(mode, layer, values, child, i, s, reach, work, line)
                lossy[n] |= low < TINY
                for k in range(reach):
                    row = layer.table[i + k, BASE] + k
                    if layer.table[i + k, BASE] != NOWHERE:
                        mass[row, s] = line[k]
                        scale[row, s] = work.scale[k + 1]
                        if counts is not None:
                            line[k] = bar_of(mode, line[k], post[row, s])
                    else:
                        line[k] = zero(mode)
                if counts is not None:
                    backward_run(mode, layer, values, child, counts, i, s, reach, work, line)


@part
def has_posterior(layer, i, s, reach, post):
    """Has any segment of s from i a posterior."""
    for k in range(reach):
        base = layer.table[i + k, BASE]
        if base != NOWHERE and post[base + k, s] > 0.0:
            return True
    return False


@part
def bar_of(mode, value, posterior):
    """d log Z / d value of something whose posterior is known."""
    if posterior == 0.0 or value == zero(mode):
        return zero(mode)
    return posterior / value if mode is None else np.log(posterior) - value


@kernel
def shift_rows(table, out, shift):
    """out = table - shift, the highest value of each row (0 where the whole row is impossible).

    Return the lowest possible value of out, at most zero.
    """
    n, low, lowest = unsigned(table.shape[1]), spread(0.0), 0.0
    for row in range(table.shape[0]):
        highest, at, target = highest_of(table, row), place(table, row, 0), place(out, row, 0)
        if highest == -np.inf:
            highest = 0.0
        shift[row] = highest
        minus, k = spread(-highest), unsigned(0)
        while k + FOUR <= n:
            value = add(load(table, at + k), minus)
            store(value, out, target + k)
            low = lower_above(low, value, spread(-np.inf))
            k += FOUR
        while k < n:
            out[row, k] = table[row, k] - highest
            if -np.inf < out[row, k] < lowest:
                lowest = out[row, k]
            k += unsigned(1)
    return min(lowest, min(lanes(low)))


@inlined
def highest_of(table, row):
    """The highest value of a row."""
    n, at, k, high = unsigned(table.shape[1]), place(table, row, 0), unsigned(0), spread(-np.inf)
    while k + FOUR <= n:
        high, k = higher(high, load(table, at + k)), k + FOUR
    highest = max(lanes(high))
    while k < n:
        highest, k = max(highest, table[row, k]), k + unsigned(1)
    return highest


# exp(x) = 2^k exp(r) with |r| <= log(2) / 2, where the series is right to the last bit. Adding ROUND leaves the integer
# k in the low bits of a float. log(2) has two parts, so that k times the first is exact.
LOG2_E, LOG_2, LOG_2_REST, ROUND = 1 / math.log(2.0), 0.693145751953125, 1.4286068203094172e-06, 1.5 * 2.0**52
SERIES = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))
LOWEST = -708.0  # exp of anything lower is taken for zero


@jit(cache=True, nogil=True, fastmath={"contract"}, _nrt=False)
def exponentiate(values):
    """Replace values (n,), at most 709, by their exponentials. Vectorised, so four times as fast as numpy's on AVX2."""
    for i in range(unsigned(values.size)):
        x = max(values[i], LOWEST)
        shifted = x * LOG2_E + ROUND
        k = shifted - ROUND
        r = x - k * LOG_2 - k * LOG_2_REST
        total = 0.0
        for term in SERIES:
            total = total * r + term
        power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
        values[i] = 0.0 if values[i] < LOWEST else total * power


@kernel
def find_reach(offsets, allowed, may_start, may_go_on, longest, reach, most, least):
    """Fill reach (N, S): how many steps from t a segment of s may last; and the most and the least of them (N,).

    allowed (N or 1, S), longest (S,).
    """
    last = allowed.shape[0] - 1
    for n in range(offsets.size - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            for s in range(reach.shape[1]):
                if not allowed[min(t, last), s]:
                    reach[t, s] = 0
                elif t + 1 == offsets[n + 1] or not may_go_on[t]:
                    reach[t, s] = 1
                else:
                    reach[t, s] = 1 + reach[t + 1, s]
    for t in range(reach.shape[0]):
        most[t], least[t] = 0, offsets[-1]
        for s in range(reach.shape[1]):
            reach[t, s] = min(reach[t, s], longest[s]) if may_start[t] else 0
            most[t], least[t] = max(most[t], reach[t, s]), min(least[t], reach[t, s])


@kernel
def find_rows(offsets, longest, may_end, base, skip, width):
    """Fill base, skip and width (N,): the rows of the segments that end at j.

    They start between the oldest and the latest start that reaches j: the last step and the ``skip`` before it are no
    such start. longest (N,) is the longest segment from each start. Return the number of rows.
    """
    rows = 0
    for n in range(offsets.size - 1):
        since = offsets[n]
        for j in range(offsets[n], offsets[n + 1]):
            while since < j and since + longest[since] <= j:
                since += 1
            base[j], skip[j], width[j] = NOWHERE, 0, 0
            if may_end[j] and since + longest[since] > j:
                until = j
                while until + longest[until] <= j:
                    until -= 1
                base[j], skip[j], width[j] = rows - (j - until), j - until, until - since + 1
            rows += width[j]
    return rows


@kernel
def add_persist(base, skip, width, reach, least, shortest, token, start, stop, duration, segment, table, tokens):
    """Add log persist(i, j, s) to ``table`` (rows, S); -inf where the segment is not admissible. Absent parts: empty.

    token, start, stop (N, S); duration (L, S); segment (N L, S); work space tokens (1, S). State s is admissible from i
    for shortest[s] to reach[i, s] steps, at least least[i]. Cost O(rows S); with tokens the rows skipped count, too.
    """
    required, longest = 0, segment.shape[0] // base.size
    for s in range(shortest.size):
        required = max(required, shortest[s])
    for j in range(base.size):
        tokens[:] = 0.0
        if stop.size and width[j]:
            add_row(tokens, 0, stop, j)
        for k in range(0 if token.size else skip[j], skip[j] + width[j]):
            i, row = j - k, base[j] + k
            if token.size:
                add_row(tokens, 0, token, i)
                if k < skip[j]:
                    continue
            add_row(table, row, tokens, 0)
            if start.size:
                add_row(table, row, start, i)
            if k < duration.shape[0]:
                add_row(table, row, duration, k)
            if k < longest:
                prefetch(segment, place(segment, (i + 4) * longest + k, 0))  # the walk is diagonal
                add_row(table, row, segment, i * longest + k)
            if k >= least[i] or k + 1 < required:
                for s in range(shortest.size):
                    if k >= reach[i, s] or k + 1 < shortest[s]:
                        table[row, s] = -np.inf


@kernel
def add_persist_back(base, skip, width, post, state, ending, start, stop, duration, segment, alive):
    """Reverse of ``add_persist``: add the posteriors (rows, S) of segments to the counts; state and ending always."""
    longest = segment.shape[0] // base.size
    for j in range(base.size):
        if not width[j]:
            continue
        alive[:] = 0.0
        for k in range(skip[j] + width[j] - 1, -1, -1):
            i, row = j - k, base[j] + k
            if k >= skip[j]:
                add_row(alive, 0, post, row)
                if start.size:
                    add_row(start, i, post, row)
                if k < duration.shape[0]:
                    add_row(duration, k, post, row)
                if k < longest:
                    prefetch(segment, place(segment, (i + 4) * longest + k, 0))
                    add_row(segment, i * longest + k, post, row)
            add_row(state, i, alive, 0)
        for s in range(alive.shape[1]):
            ending[j] += alive[0, s]
        if stop.size:
            add_row(stop, j, alive, 0)


# The walk back from the end of a run to its start, shared by decoding, sampling and the k best. An item is
# (kind, node, time); its candidates are the ways in which its value came about.
ENDS, LIVES, STARTS, FRESH = 0, 1, 2, 3


@part
def put(weight, where, k, value, kind, node, t):
    weight[k] = value
    where[k, 0] = kind
    where[k, 1] = node
    where[k, 2] = t
    return k + 1


@part
def value_of_end(layer, pot, child, s, i, node, t, work):
    """UP of a node at t, in LOG or MAX."""
    depth, root, bottom, _ = shape_of(layer, s)
    if node < bottom:
        return work.inner[UP, t - i, node - root]
    if child is not None:
        return work.leaf[t - i, node - bottom]
    if not layer.may_end[depth, t]:
        return -np.inf
    value = pot[cell(layer, STOP, node, t)] if layer.stops else 0.0
    if not layer.unit:
        return value + work.leaf[t - i, node - bottom]
    value += work.enter[t - i, node - bottom]
    while node > root:
        value += pot[cell(layer, TOKEN, node, t)]
        node = layer.node[PARENT, node]
    return value


@part
def incoming_segments(mode, layer, pot, child, s, i, node, t, work, weight, where):
    """``incoming`` for a leaf that lives at t, if the bottom has a table: the starts of its segment."""
    k = 0
    if child is not None:
        _, root, bottom, _ = shape_of(layer, s)
        begin_tokens(mode, layer, s, work)
        for begin in range(t, work.since[t - i] - 1, -1):
            pass_tokens(mode, layer, pot, s, begin, work)
            if reaches(layer, begin, t):
                value = child.mass[layer.table[t, CHILD_BASE] + t - begin, layer.node[STATE, node]]
                value += work.enter[begin - i, node - bottom] + work.node[PASSED, layer.node[PARENT, node] - root]
                k = put(weight, where, k, value, STARTS, node, begin)
    return k


@part
def incoming(mode, layer, values, child, s, i, kind, node, t, work, weight, where):
    """List the candidates of an item in LOG or MAX: weight (C,), where (C, 3) their kind, node and time.

    A candidate's weight is its own value plus that of the step. The order breaks ties: siblings in the topology's
    order, a start before going on, the shortest segment first, the level's own transition before its parent's start.
    """
    pot = values.pot
    depth, root, bottom, _ = shape_of(layer, s)
    parent = layer.node[PARENT, node]
    k = 0
    if kind == ENDS and node >= bottom:
        k = put(weight, where, k, 0.0, LIVES, node, t)
    elif kind == ENDS:
        at = cell(layer, END, node, t)
        for last in range(layer.node[FIRST, node], layer.node[FIRST, node] + layer.node[COUNT, node]):
            value = value_of_end(layer, pot, child, s, i, last, t, work)
            k = put(weight, where, k, value + pot[at + k], ENDS, last, t)
    elif kind == LIVES and child is None:
        k = put(weight, where, k, work.enter[t - i, node - bottom], STARTS, node, t)
        if not layer.unit and t > i and layer.may_cross[depth + 1, t - 1]:
            k = put(weight, where, k, work.leaf[t - 1 - i, node - bottom], LIVES, node, t - 1)
    elif kind == LIVES:
        k = incoming_segments(mode, layer, pot, child, s, i, node, t, work, weight, where)
    elif t == i:
        k = put(weight, where, k, 0.0, FRESH, node, t)
    else:  # the node starts at t
        level = level_of(layer, s, node)
        first = layer.node[FIRST, parent]
        if layer.may_cross[level, t - 1]:
            at = cell(layer, TRANS, parent, t - 1) + node - first
            row = np.int64(padded(layer.node[COUNT, parent]))
            for u in range(layer.node[COUNT, parent]):
                value = value_of_end(layer, pot, child, s, i, first + u, t - 1, work)
                k = put(weight, where, k, value + pot[at + u * row], ENDS, first + u, t - 1)
        if level > 1:
            value = work.inner[DOWN, t - i, parent - root] + pot[cell(layer, INIT, parent, t) + node - first]
            k = put(weight, where, k, value, STARTS, parent, t)
    return k


@kernel
def list_incoming(mode, layer, values, child, s, i, kind, node, t, work, weight, where):
    """``incoming`` for Python."""
    return incoming(mode, layer, values, child, s, i, kind, node, t, work, weight, where)


@kernel
def level_of(layer, s, node):
    level = 0
    while node >= layer.level_at[s, level + 1]:
        level += 1
    return level


@part
def choose(mode, weight, count, rng):
    """MAX: the first of the best candidates. LOG: one drawn in proportion to exp(weight)."""
    best = 0
    for k in range(1, count):
        if weight[k] > weight[best]:
            best = k
    if mode or count == 1:
        return best
    total = 0.0
    for k in range(count):
        total += np.exp(weight[k] - weight[best])
    left = rng.random() * total
    for k in range(count):
        left -= np.exp(weight[k] - weight[best])
        if left < 0.0:
            return k
    return best


@kernel
def record(layer, top, depth, node, t, j, states):
    """Write the states of a leaf and its ancestors below the top over t..j."""
    for level in range(depth, 0, -1):
        for step in range(t, j + 1):
            states[top + level, step] = layer.node[STATE, node]
        node = layer.node[PARENT, node]


@kernel
def trace(mode, layer, values, child, top, segments, rng, states, ends, work, line, mass, weight, where):
    """Write one configuration of the levels below each top segment, and its mass (n,); nothing where that is zero.

    segments (n, 4) of state, first step, last step and draw; states, ends (draws, D, N). Equal segments next to each
    other share their forward walk.
    """
    depth = layer.level_at.shape[1] - 2
    for n in range(segments.shape[0]):
        s, i, j, draw = segments[n]
        same = n > 0 and segments[n - 1, 0] == s and segments[n - 1, 1] == i and segments[n - 1, 2] == j
        if not same:
            forward_run(mode, layer, values, child, i, s, j - i + 1, work, line)
        mass[n] = line[j - i]
        if mass[n] == -np.inf:
            continue
        for level in range(top + 1, top + depth + 1):
            ends[draw, level, j] = 1
        put(weight, where, 0, 0.0, ENDS, layer.level_at[s, 0], j)
        picked = 0
        while where[picked, 0] != FRESH:
            kind, node, t = where[picked]
            count = incoming(mode, layer, values, child, s, i, kind, node, t, work, weight, where)
            picked = choose(mode, weight, count, rng)
            if kind == LIVES:
                record(layer, top, depth, node, where[picked, 2], t, states[draw])
            elif kind == STARTS and where[picked, 0] == ENDS:
                # this level and all below it end at t - 1
                for level in range(top + level_of(layer, s, node), top + depth + 1):
                    ends[draw, level, t - 1] = 1


# From names to numbers: a table of 2^b slots, the first free one after the hash's low bits.


@kernel
def store_names(given, hashes, numbers):
    """Put the number of each hash into an empty table (number -1) that is at most half full."""
    mask = hashes.size - 1
    for k in range(given.size):
        slot = given[k] & mask
        while numbers[slot] >= 0:
            slot = (slot + 1) & mask
        hashes[slot] = given[k]
        numbers[slot] = k


@kernel
def find_names(given, hashes, numbers, unknown, found):
    """The number of each hash, ``unknown`` if it is not in the table."""
    mask = hashes.size - 1
    for k in range(given.size):
        slot = given[k] & mask
        while numbers[slot] >= 0 and hashes[slot] != given[k]:
            slot = (slot + 1) & mask
        found[k] = numbers[slot] if numbers[slot] >= 0 else unknown


SPARSE = 8  # a pair by itself takes as long as so many states of a row


# From features to scores and from counts to gradients. Sparse features are pairs (feature, state) with one weight each:
# feature f has the pairs pair_at[f] .. pair_at[f + 1]. ``data`` is empty if every value is one.


@kernel
def score_rows(indptr, indices, data, pair_at, pair_state, weights, out):
    """Add to out (N, S) the scores of the features of each row. Cost O(entries x pairs of each)."""
    for t in range(out.shape[0]):
        for e in range(indptr[t], indptr[t + 1]):
            value = data[e] if data.size else 1.0
            for q in range(pair_at[indices[e]], pair_at[indices[e] + 1]):
                out[t, pair_state[q]] += value * weights[q]


@kernel
def pull_rows(indptr, indices, data, pair_at, pair_state, counts, gradient):
    """Reverse of ``score_rows``: add to the gradient (pairs,) the counts (N, S) of the rows."""
    for t in range(counts.shape[0]):
        for e in range(indptr[t], indptr[t + 1]):
            value = data[e] if data.size else 1.0
            for q in range(pair_at[indices[e]], pair_at[indices[e] + 1]):
                gradient[q] += value * counts[t, pair_state[q]]


@kernel
def score_columns(names, begin, rows, data, pair_at, pair_state, weights, out, dense):
    """``score_rows`` for entries by feature: those of names[k] are begin[k] .. begin[k + 1].

    The pairs of a feature that has many are spread over a row ``dense`` (1, S), which is added as a whole.
    """
    for k in range(names.size):
        first, last = pair_at[names[k]], pair_at[names[k] + 1]
        if is_dense(last - first, begin[k + 1] - begin[k], dense):
            dense[:] = 0.0
            for q in range(first, last):
                dense[0, pair_state[q]] = weights[q]
            for e in range(begin[k], begin[k + 1]):
                add_row(out, rows[e], dense, 0, data[e] if data.size else 1.0)
            continue
        for q in range(first, last):
            state, weight = pair_state[q], weights[q]
            for e in range(begin[k], begin[k + 1]):
                out[rows[e], state] += weight * data[e] if data.size else weight


@kernel
def pull_columns(names, begin, rows, data, pair_at, pair_state, counts, gradient, dense):
    """``pull_rows`` for entries by feature, see ``score_columns``."""
    for k in range(names.size):
        first, last = pair_at[names[k]], pair_at[names[k] + 1]
        if is_dense(last - first, begin[k + 1] - begin[k], dense):
            dense[:] = 0.0
            for e in range(begin[k], begin[k + 1]):
                add_row(dense, 0, counts, rows[e], data[e] if data.size else 1.0)
            for q in range(first, last):
                gradient[q] += dense[0, pair_state[q]]
            continue
        for q in range(first, last):
            state, value = pair_state[q], 0.0
            for e in range(begin[k], begin[k + 1]):
                value += counts[rows[e], state] * data[e] if data.size else counts[rows[e], state]
            gradient[q] += value


@inlined
def is_dense(pairs, entries, dense):
    """Is it faster to take whole rows of states than each pair by itself."""
    return entries > 2 and SPARSE * pairs > dense.shape[1]


@kernel
def average_tokens(scores, table):
    """Add to table (N, L, S) the mean of scores (N, S) over each segment; past the end it does not matter."""
    for i in range(table.shape[0]):
        for s in range(table.shape[2]):
            total = 0.0
            for k in range(min(table.shape[1], table.shape[0] - i)):
                total += scores[i + k, s]
                table[i, k, s] += total / (k + 1)


@kernel
def average_tokens_back(table, scores):
    """Reverse of ``average_tokens``: add the counts (N, L, S) of segments to those of their steps (N, S)."""
    for i in range(table.shape[0]):
        for s in range(table.shape[2]):
            total = 0.0
            for k in range(min(table.shape[1], table.shape[0] - i) - 1, -1, -1):
                total += table[i, k, s] / (k + 1)
                scores[i + k, s] += total
