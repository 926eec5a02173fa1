"""Every compiled function of the library.

One layer of the model (DESIGN: *levels are layers*) is a set of **runs**. The run of top state ``s`` and start ``i``
walks over ``j = i, i + 1, ...`` and carries the mass of everything that may happen under ``s`` since ``i``. Its chain
state is a *leaf*: a stack of states from just below the top down to the layer's bottom; leaves and the inner nodes
above them form a trie, numbered level by level, the top itself being node ``level_at[s, 0]``.

    enter[j, leaf]   a leaf starts at j                 (``descend``: across by ``trans``, down by ``init``)
    leaf[j, leaf]    a leaf is alive, or ends, at j     (``extend``: tokens, or a sum over child segments)
    up[node]         the node ends at j                 (``ascend``: up by ``end``)

The same code runs in three arithmetics, told apart by ``mode``: LINEAR (sums of products, each row of a run scaled),
LOG (log-sum-exp) and MAX (the best instead of the sum). The backward pass is the reverse-mode derivative of the
forward pass: ``*_bar`` holds d log Z / d value, so value x bar is a posterior probability.

LINEAR loses nothing: a value is either exactly zero because it is impossible, or at least ``TINY`` relative to its
row; a run in which this fails reports it, and the caller takes LOG instead.

Times are rows of the packed batch, so one call serves many sequences. All potentials of a layer lie in one flat
array; a node holds the address and the stride in time (0: constant) of each of its potentials.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

LINEAR, LOG, MAX = 0, 1, 2
TINY = 1e-140  # products of two such numbers are still normal floats
LOW, HIGH = 1e-20, 1e20  # a row is rescaled when its largest value leaves this range

# Sums of non-negative products may be reordered and fused: no infinities ever reach these loops.
LINEAR_ONLY = {"reassoc", "contract"}


class Layer(NamedTuple):
    """Structure, evidence and addresses of one layer: levels ``top .. top + depth``, N packed time steps."""

    level_at: np.ndarray  # (S_top, depth + 2) first node of each level of the trie of each top state
    parent: np.ndarray  # (nodes,)
    first: np.ndarray  # (nodes,) first child; children are consecutive
    count: np.ndarray  # (nodes,) number of children
    state: np.ndarray  # (nodes,)
    token: np.ndarray  # (nodes, 2) address and stride of each potential
    start: np.ndarray
    stop: np.ndarray
    init: np.ndarray  # addresses of the node's children's block
    trans: np.ndarray
    end: np.ndarray
    may_end: np.ndarray  # (depth + 1, N) evidence: may level top + k end at t
    may_cross: np.ndarray  # (depth + 2, N) may levels top + 1 .. top + k - 1 all go on after t
    base: np.ndarray  # (N,) first row of the top's segments that start at t, -1 if none may
    reach: np.ndarray  # (N, S_top) longest admissible segment of the top state from t
    child_base: np.ndarray  # (N,) the same for the bottom's segments, if it has a table of them
    child_width: np.ndarray  # (N,) number of rows of each start
    segmental: bool  # the bottom has a table of segments
    unit: bool  # the bottom has length one


class Values(NamedTuple):
    """The numbers of a layer: logarithms, or in LINEAR scaled exponentials."""

    pot: np.ndarray  # flat, see ``Layer``
    peak: np.ndarray  # (N,) LINEAR: log scale of all tokens at t together
    child: np.ndarray  # (rows, S) segments of the bottom, if it has a table
    shift: np.ndarray  # (rows,) LINEAR: their log scale
    log_child: np.ndarray  # (rows, S) the same in logarithms


class Counts(NamedTuple):
    """Expected counts: the gradient of log Z, shaped like the values."""

    pot: np.ndarray
    ending: np.ndarray  # (depth + 1, N) posterior that a Markov level ends at t
    child: np.ndarray


class Scratch(NamedTuple):
    """Work space of one run: W steps, n leaves, m nodes."""

    enter: np.ndarray  # (W + 1, n)
    enter_bar: np.ndarray  # (W + 1, n)
    leaf: np.ndarray  # (W, n)
    leaf_bar: np.ndarray  # (n,)
    scale: np.ndarray  # (W + 1,) log scale of enter[j], and of leaf[j - 1]
    gain: np.ndarray  # (W,) what the leaf row was multiplied by when it was rescaled
    since: np.ndarray  # (W,) earliest start of a child segment that ends at j
    up: np.ndarray  # (m,)
    down: np.ndarray  # (m,)
    up_bar: np.ndarray  # (m,)
    down_bar: np.ndarray  # (m,)
    tokens: np.ndarray  # (m,) product of the tokens of a node and its Markov ancestors
    clock: np.ndarray  # (2,) the times that ``up`` and ``down`` belong to, for ``incoming``


@njit(cache=True, nogil=True)
def make_scratch(steps, leaves, nodes, backward):
    bars = steps + 1 if backward else 0
    return Scratch(
        np.empty((steps + 1, leaves)),
        np.empty((bars, leaves)),
        np.empty((steps, leaves)),
        np.empty(leaves),
        np.empty(steps + 1),
        np.empty(steps),
        np.empty(steps, np.int64),
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes),
        np.full(2, -1),
    )


@njit(cache=True, nogil=True)
def zero(mode):
    return 0.0 if mode == LINEAR else -np.inf


@njit(cache=True, nogil=True)
def one(mode):
    return 1.0 if mode == LINEAR else 0.0


@njit(cache=True, nogil=True)
def times(mode, a, b):
    return a * b if mode == LINEAR else a + b


@njit(cache=True, nogil=True)
def plus(mode, a, b):
    if mode == LINEAR:
        return a + b
    if a < b:
        a, b = b, a
    if mode == MAX or b == -np.inf:
        return a
    return a + np.log1p(np.exp(b - a))


@njit(cache=True, nogil=True)
def probability(mode, a, b):
    """Posterior of an event from its value and its bar."""
    return a * b if mode == LINEAR else np.exp(a + b)


@njit(cache=True, nogil=True, fastmath=LINEAR_ONLY)
def linear_product(matrix, x, out):
    """out[v] = sum_u x[u] matrix[u, v]; matrix flat (n * n,). Four rows at a time keep the sums in registers."""
    n = x.size
    out[:] = 0.0
    u = 0
    while u + 4 <= n:
        x0, x1, x2, x3 = x[u], x[u + 1], x[u + 2], x[u + 3]
        row0 = matrix[u * n : (u + 1) * n]
        row1 = matrix[(u + 1) * n : (u + 2) * n]
        row2 = matrix[(u + 2) * n : (u + 3) * n]
        row3 = matrix[(u + 3) * n : (u + 4) * n]
        for v in range(n):
            out[v] += x0 * row0[v] + x1 * row1[v] + x2 * row2[v] + x3 * row3[v]
        u += 4
    while u < n:
        x0 = x[u]
        row0 = matrix[u * n : (u + 1) * n]
        for v in range(n):
            out[v] += x0 * row0[v]
        u += 1


@njit(cache=True, nogil=True, fastmath=LINEAR_ONLY)
def linear_product_back(matrix, x, out_bar, x_bar, counts):
    """x_bar[u] = sum_v matrix[u, v] out_bar[v]; counts += posteriors of the pairs (u, v)."""
    n = x.size
    for u in range(n):
        weight = x[u]
        row = matrix[u * n : (u + 1) * n]
        count = counts[u * n : (u + 1) * n]
        total = 0.0
        for v in range(n):
            pair = row[v] * out_bar[v]
            total += pair
            count[v] += weight * pair
        x_bar[u] = total


@njit(cache=True, nogil=True)
def product(mode, matrix, x, out):
    """out[v] = sum over siblings u of x[u] * matrix[u, v], in any arithmetic."""
    if mode == LINEAR:
        linear_product(matrix, x, out)
        return
    n = x.size
    out[:] = -np.inf
    for u in range(n):
        if x[u] > -np.inf:
            for v in range(n):
                out[v] = plus(mode, out[v], x[u] + matrix[u * n + v])


@njit(cache=True, nogil=True)
def product_back(mode, matrix, x, out_bar, x_bar, counts):
    """Reverse of ``product``."""
    if mode == LINEAR:
        linear_product_back(matrix, x, out_bar, x_bar, counts)
        return
    n = x.size
    for u in range(n):
        x_bar[u] = -np.inf
        for v in range(n):
            pair = matrix[u * n + v] + out_bar[v]
            if pair > -np.inf:
                x_bar[u] = plus(mode, x_bar[u], pair)
                counts[u * n + v] += np.exp(x[u] + pair)


@njit(cache=True, nogil=True)
def smallest(values, so_far):
    """The smallest positive value, or so_far."""
    for value in values:
        if 0.0 < value < so_far:
            so_far = value
    return so_far


@njit(cache=True, nogil=True)
def leaf_count(layer, s):
    depth = layer.level_at.shape[1] - 2
    return layer.level_at[s, depth + 1] - layer.level_at[s, depth]


@njit(cache=True, nogil=True)
def cell(address, node, t):
    return address[node, 0] + t * address[node, 1]


@njit(cache=True, nogil=True)
def ascend(mode, layer, pot, s, j, leaf, up):
    """Fill ``up`` at j: the mass of each node that ends there; return that of the top. Cost O(nodes)."""
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    bottom = layer.level_at[s, depth]
    for k in range(leaf_count(layer, s)):
        node = bottom + k
        value = zero(mode)
        if layer.segmental:
            value = leaf[k]
        elif layer.may_end[depth, j]:
            value = times(mode, leaf[k], pot[cell(layer.stop, node, j)])
        up[node - root] = value
    for level in range(depth - 1, -1, -1):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            total = zero(mode)
            if layer.may_end[level, j]:
                at = cell(layer.end, node, j)
                first = layer.first[node] - root
                # the node ends at j with last child k
                for k in range(layer.count[node]):
                    total = plus(mode, total, times(mode, up[first + k], pot[at + k]))
                if level > 0:
                    total = times(mode, total, pot[cell(layer.stop, node, j)])
            up[node - root] = total
    return up[0]


@njit(cache=True, nogil=True)
def ascend_back(mode, layer, pot, counts, s, j, up, up_bar):
    """Reverse of ``ascend``: ``up_bar`` holds bars from ``descend_back`` and the top's; completes it downwards."""
    grad = counts.pot
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    for level in range(depth):
        if not layer.may_end[level, j]:
            continue
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            bar = up_bar[node - root]
            if level > 0:
                posterior = probability(mode, up[node - root], bar)
                counts.ending[level, j] += posterior
                grad[cell(layer.stop, node, j)] += posterior
                bar = times(mode, bar, pot[cell(layer.stop, node, j)])
            at = cell(layer.end, node, j)
            first = layer.first[node] - root
            for k in range(layer.count[node]):
                pair = times(mode, bar, pot[at + k])
                grad[at + k] += probability(mode, up[first + k], pair)
                up_bar[first + k] = plus(mode, up_bar[first + k], pair)


@njit(cache=True, nogil=True)
def descend(mode, layer, pot, s, j, up, down, fresh, last):
    """Fill ``down`` at j + 1, levels 1 .. last: the mass of each node that starts there; ``fresh``: the top does.

    Cost O(sum over sibling groups of their size squared).
    """
    root = layer.level_at[s, 0]
    down[0] = one(mode) if fresh else zero(mode)
    for level in range(1, last + 1):
        across = not fresh and layer.may_cross[level, j]
        for node in range(layer.level_at[s, level - 1], layer.level_at[s, level]):
            first = layer.first[node] - root
            n = layer.count[node]
            group = down[first : first + n]
            if across:
                # under the node, u ends at j and v starts at j + 1
                at = cell(layer.trans, node, j)
                product(mode, pot[at : at + n * n], up[first : first + n], group)
            else:
                group[:] = zero(mode)
            above = down[node - root]
            at = cell(layer.init, node, j + 1)
            for k in range(n):
                # or the node itself starts at j + 1 with first child k
                value = plus(mode, group[k], times(mode, above, pot[at + k]))
                group[k] = times(mode, value, pot[cell(layer.start, layer.first[node] + k, j + 1)])


@njit(cache=True, nogil=True)
def descend_back(mode, layer, pot, grad, s, j, up, up_bar, down, down_bar, fresh):
    """Reverse of ``descend``: from ``down_bar`` of the leaves to ``up_bar`` of every node at j."""
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    for level in range(depth, 0, -1):
        across = not fresh and layer.may_cross[level, j]
        for node in range(layer.level_at[s, level - 1], layer.level_at[s, level]):
            first = layer.first[node] - root
            n = layer.count[node]
            bars = down_bar[first : first + n]
            at = cell(layer.init, node, j + 1)
            above = down[node - root]
            above_bar = zero(mode)
            for k in range(n):
                where = cell(layer.start, layer.first[node] + k, j + 1)
                grad[where] += probability(mode, down[first + k], bars[k])
                bars[k] = times(mode, bars[k], pot[where])
                pair = times(mode, bars[k], pot[at + k])
                grad[at + k] += probability(mode, above, pair)
                above_bar = plus(mode, above_bar, pair)
            down_bar[node - root] = above_bar
            if fresh:
                continue
            if across:
                at = cell(layer.trans, node, j)
                block = slice(at, at + n * n)
                group = slice(first, first + n)
                product_back(mode, pot[block], up[group], bars, up_bar[group], grad[block])
            else:
                up_bar[first : first + n] = zero(mode)


@njit(cache=True, nogil=True)
def multiply_tokens(mode, layer, pot, s, t, tokens, last):
    """Fill ``tokens`` of the nodes of levels 1 .. last: the product down from the top of the tokens at t."""
    root = layer.level_at[s, 0]
    tokens[0] = one(mode)
    for level in range(1, last + 1):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            above = tokens[layer.parent[node] - root]
            tokens[node - root] = times(mode, above, pot[cell(layer.token, node, t)])


@njit(cache=True, nogil=True)
def rescale(row, scale):
    """Scale a LINEAR row if it has left the comfortable range; return its factor and its new log scale."""
    largest = 0.0
    for value in row:
        largest = max(largest, value)
    if largest == 0.0 or LOW < largest < HIGH:
        return 1.0, scale
    factor = 1.0 / largest
    for k in range(row.size):
        row[k] *= factor
    return factor, scale + np.log(largest)


@njit(cache=True, nogil=True)
def extend_step(mode, layer, values, s, i, j, work):
    """Fill the leaf row of j when the bottom has no table: it starts at j, or (not unit) goes on from j - 1."""
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    first = layer.level_at[s, depth] - root
    enter, row = work.enter[j - i], work.leaf[j - i, : leaf_count(layer, s)]
    goes_on = not layer.unit and j > i and layer.may_cross[depth + 1, j - 1]
    multiply_tokens(mode, layer, values.pot, s, j, work.tokens, depth)
    for k in range(row.size):
        value = enter[k]
        if goes_on:
            value = plus(mode, value, work.leaf[j - i - 1, k])
        row[k] = times(mode, value, work.tokens[first + k])
    work.gain[j - i] = one(mode)
    work.scale[j - i + 1] = work.scale[j - i]
    if mode == LINEAR:
        work.gain[j - i], work.scale[j - i + 1] = rescale(row, work.scale[j - i] + values.peak[j])


@njit(cache=True, nogil=True)
def extend_step_back(mode, layer, values, counts, s, i, j, steps, work):
    """Reverse of ``extend_step`` and of the leaves' part of ``ascend``: ``enter_bar`` of j from ``up_bar``."""
    pot, grad = values.pot, counts.pot
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    bottom = layer.level_at[s, depth]
    goes_on = not layer.unit and j + 1 < i + steps and layer.may_cross[depth + 1, j]
    multiply_tokens(mode, layer, pot, s, j, work.tokens, depth)
    posts = work.down_bar
    for k in range(layer.level_at[s, depth + 1] - bottom):
        node = bottom + k
        bar = zero(mode)
        if layer.may_end[depth, j]:
            posterior = probability(mode, work.up[node - root], work.up_bar[node - root])
            counts.ending[depth, j] += posterior
            grad[cell(layer.stop, node, j)] += posterior
            bar = times(mode, work.up_bar[node - root], pot[cell(layer.stop, node, j)])
        if goes_on:
            bar = plus(mode, bar, work.enter_bar[j + 1 - i, k])
        posts[node - root] = probability(mode, work.leaf[j - i, k], bar)
        grad[cell(layer.token, node, j)] += posts[node - root]
        work.enter_bar[j - i, k] = times(mode, times(mode, bar, work.tokens[node - root]), work.gain[j - i])
    for level in range(depth - 1, 0, -1):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            total = sum_children(layer, node, root, posts)
            posts[node - root] = total
            grad[cell(layer.token, node, j)] += total


@njit(cache=True, nogil=True)
def sum_children(layer, node, root, values):
    first = layer.first[node] - root
    return values[first : first + layer.count[node]].sum()


@njit(cache=True, nogil=True)
def reaches(layer, t, j):
    """May a child segment that starts at t end at j."""
    return layer.child_base[t] >= 0 and t + layer.child_width[t] > j


@njit(cache=True, nogil=True)
def pass_tokens(mode, layer, pot, s, t, work, passed):
    """Multiply ``passed`` of the bottom's parents by their tokens (and their ancestors') at t."""
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    multiply_tokens(mode, layer, pot, s, t, work.tokens, depth - 1)
    for node in range(layer.level_at[s, depth - 1], layer.level_at[s, depth]):
        passed[node - root] = times(mode, passed[node - root], work.tokens[node - root])


@njit(cache=True, nogil=True)
def sum_segments(mode, layer, values, s, i, j, work):
    """Fill the leaf row of j from the child segments t..j that end there. Cost O(L leaves).

    The Markov ancestors' tokens over t..j are a running product as t goes back, and so is their scale.
    """
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    since = work.since[j - i]
    row = work.leaf[j - i, : leaf_count(layer, s)]
    row[:] = zero(mode)
    scale = 0.0
    if mode == LINEAR:
        scale = -np.inf
        peaks = 0.0
        for t in range(j, since - 1, -1):
            peaks += values.peak[t]
            if reaches(layer, t, j):
                shift = values.shift[layer.child_base[t] + j - t]
                scale = max(scale, work.scale[t - i] + shift + peaks)
        if scale == -np.inf:
            work.scale[j - i + 1] = work.scale[j - i]
            return
    parents = range(layer.level_at[s, depth - 1], layer.level_at[s, depth])
    passed = work.up_bar  # free in the forward pass
    for node in parents:
        passed[node - root] = one(mode)
    peaks = 0.0
    for t in range(j, since - 1, -1):
        peaks += values.peak[t]
        if depth > 1:
            pass_tokens(mode, layer, values.pot, s, t, work, passed)
        if not reaches(layer, t, j):
            continue
        line = layer.child_base[t] + j - t
        weight = 0.0
        if mode == LINEAR:
            weight = np.exp(work.scale[t - i] + values.shift[line] + peaks - scale)
        for node in parents:
            first = layer.first[node] - layer.level_at[s, depth]
            n = layer.count[node]
            add_segment(
                mode,
                times(mode, passed[node - root], weight),
                work.enter[t - i, first : first + n],
                values.child[line],
                layer.state[layer.first[node] : layer.first[node] + n],
                row[first : first + n],
            )
    work.scale[j - i + 1] = scale
    if mode == LINEAR:
        _, work.scale[j - i + 1] = rescale(row, scale)


@njit(cache=True, nogil=True, fastmath=LINEAR_ONLY)
def add_linear_segment(factor, enter, child, row):
    for k in range(row.size):
        row[k] += enter[k] * child[k] * factor


@njit(cache=True, nogil=True)
def add_segment(mode, factor, enter, child, state, row):
    """row[k] += enter[k] * child[state[k]] * factor: a segment of each state in ``state``."""
    if mode == LINEAR and state.size == child.size:  # every state is a child, in order
        add_linear_segment(factor, enter, child, row)
    else:
        for k in range(row.size):
            row[k] = plus(mode, row[k], times(mode, times(mode, enter[k], child[state[k]]), factor))


@njit(cache=True, nogil=True)
def sum_segments_back(mode, layer, values, counts, s, i, j, work):
    """Reverse of ``sum_segments``: bars of enter at every t, posteriors of the segments t..j and of the tokens."""
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    parents = range(layer.level_at[s, depth - 1], layer.level_at[s, depth])
    passed = work.up_bar
    posts = work.down_bar
    for node in parents:
        passed[node - root] = one(mode)
    peaks = 0.0
    for t in range(j, work.since[j - i] - 1, -1):
        peaks += values.peak[t]
        if depth > 1:
            pass_tokens(mode, layer, values.pot, s, t, work, passed)
        if not reaches(layer, t, j):
            continue
        line = layer.child_base[t] + j - t
        weight = 0.0
        if mode == LINEAR:
            weight = np.exp(work.scale[t - i] + values.shift[line] + peaks - work.scale[j - i + 1])
        for node in parents:
            first = layer.first[node] - layer.level_at[s, depth]
            n = layer.count[node]
            posts[node - root] = add_segment_back(
                mode,
                times(mode, passed[node - root], weight),
                work.enter[t - i, first : first + n],
                values.child[line],
                layer.state[layer.first[node] : layer.first[node] + n],
                work.leaf_bar[first : first + n],
                work.enter_bar[t - i, first : first + n],
                counts.child[line],
            )
        if depth > 1:
            add_token_counts(layer, counts.pot, s, t, j, posts)


@njit(cache=True, nogil=True, fastmath=LINEAR_ONLY)
def add_linear_segment_back(factor, enter, child, leaf_bar, enter_bar, child_post):
    total = 0.0
    for k in range(enter.size):
        pair = child[k] * factor * leaf_bar[k]
        enter_bar[k] += pair
        post = enter[k] * pair
        child_post[k] += post
        total += post
    return total


@njit(cache=True, nogil=True)
def add_segment_back(mode, factor, enter, child, state, leaf_bar, enter_bar, child_post):
    """Reverse of ``add_segment``; return the posterior of all these segments together."""
    if mode == LINEAR and state.size == child.size:
        return add_linear_segment_back(factor, enter, child, leaf_bar, enter_bar, child_post)
    total = 0.0
    for k in range(enter.size):
        pair = times(mode, times(mode, child[state[k]], factor), leaf_bar[k])
        enter_bar[k] = plus(mode, enter_bar[k], pair)
        post = probability(mode, enter[k], pair)
        child_post[state[k]] += post
        total += post
    return total


@njit(cache=True, nogil=True)
def add_token_counts(layer, grad, s, t, j, posts):
    """The Markov ancestors of a child segment t..j live through it: a difference in time, summed up by the caller.

    One step past the last lies in the spare row that every block of tokens has.
    """
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    for level in range(depth - 1, 0, -1):
        for node in range(layer.level_at[s, level], layer.level_at[s, level + 1]):
            if level < depth - 1:
                posts[node - root] = sum_children(layer, node, root, posts)
            grad[cell(layer.token, node, t)] += posts[node - root]
            grad[cell(layer.token, node, j + 1)] -= posts[node - root]


@njit(cache=True, nogil=True)
def lost_segments(layer, log_child, s, i, j, work):
    """LINEAR: has a leaf a sum too small to trust, although some segment of it could end at j?"""
    bottom = layer.level_at[s, layer.level_at.shape[1] - 2]
    row = work.leaf[j - i, : leaf_count(layer, s)]
    for k in range(row.size):
        if row[k] >= TINY:
            continue
        state = layer.state[bottom + k]
        for t in range(work.since[j - i], j + 1):
            possible = work.enter[t - i, k] > 0.0 and reaches(layer, t, j)
            if possible and log_child[layer.child_base[t] + j - t, state] > -np.inf:
                return True
    return False


@njit(cache=True, nogil=True)
def forward_run(mode, layer, values, i, s, steps, work, mass):
    """Walk one run; fill enter, leaf, scale, gain, since and ``mass[l]``, the scaled mass of the top over i..i + l.

    Return the smallest positive number met (LINEAR only: below ``TINY`` the run is not to be trusted).
    """
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    bottom = layer.level_at[s, depth] - root
    nodes = layer.level_at[s, depth + 1] - root
    low = 1.0
    since = i
    work.scale[0] = 0.0
    descend(mode, layer, values.pot, s, i - 1, work.up, work.down, True, depth)
    for j in range(i, i + steps):
        work.enter[j - i, : nodes - bottom] = work.down[bottom:nodes]
        if not layer.segmental:
            extend_step(mode, layer, values, s, i, j, work)
        else:
            while since < j and not reaches(layer, since, j):
                since += 1
            work.since[j - i] = since
            if layer.may_end[depth, j]:
                sum_segments(mode, layer, values, s, i, j, work)
                if mode == LINEAR and lost_segments(layer, values.log_child, s, i, j, work):
                    low = 0.0
            else:
                work.leaf[j - i] = zero(mode)
                work.scale[j - i + 1] = work.scale[j - i]
        mass[j - i] = ascend(mode, layer, values.pot, s, j, work.leaf[j - i], work.up)
        if j + 1 < i + steps:
            descend(mode, layer, values.pot, s, j, work.up, work.down, False, depth)
        if mode == LINEAR:
            low = smallest(work.leaf[j - i, : nodes - bottom], low)
            low = smallest(work.up[:nodes], low)
            low = smallest(work.down[:nodes], low)
    return low


@njit(cache=True, nogil=True)
def backward_run(mode, layer, values, counts, i, s, steps, work, mass_bar):
    """Reverse of ``forward_run``: from d log Z / d mass to the expected counts of everything in the run."""
    pot, grad = values.pot, counts.pot
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    bottom = layer.level_at[s, depth] - root
    nodes = layer.level_at[s, depth + 1] - root
    work.enter_bar[: steps + 1] = zero(mode)
    for j in range(i + steps - 1, i - 1, -1):
        ascend(mode, layer, pot, s, j, work.leaf[j - i], work.up)
        if j + 1 < i + steps:
            down_to_leaves(mode, layer, pot, s, i, j, work, False)
            descend_back(mode, layer, pot, grad, s, j, work.up, work.up_bar, work.down, work.down_bar, False)
        else:
            work.up_bar[:nodes] = zero(mode)
        work.up_bar[0] = mass_bar[j - i]
        ascend_back(mode, layer, pot, counts, s, j, work.up, work.up_bar)
        if not layer.segmental:
            extend_step_back(mode, layer, values, counts, s, i, j, steps, work)
        elif layer.may_end[depth, j]:
            work.leaf_bar[: nodes - bottom] = work.up_bar[bottom:nodes]
            sum_segments_back(mode, layer, values, counts, s, i, j, work)
    down_to_leaves(mode, layer, pot, s, i, i - 1, work, True)
    descend_back(mode, layer, pot, grad, s, i - 1, work.up, work.up_bar, work.down, work.down_bar, True)


@njit(cache=True, nogil=True)
def down_to_leaves(mode, layer, pot, s, i, j, work, fresh):
    """``down`` and the leaves' ``down_bar`` at j + 1: the leaves' values are known, only inner nodes are redone."""
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    bottom = layer.level_at[s, depth] - root
    nodes = layer.level_at[s, depth + 1] - root
    descend(mode, layer, pot, s, j, work.up, work.down, fresh, depth - 1)
    work.down[bottom:nodes] = work.enter[j + 1 - i, : nodes - bottom]
    work.down_bar[bottom:nodes] = work.enter_bar[j + 1 - i, : nodes - bottom]


@njit(cache=True, nogil=True)
def largest_run(layer):
    """Most steps, leaves and nodes that a run of this layer can have."""
    depth = layer.level_at.shape[1] - 2
    leaves = (layer.level_at[:, depth + 1] - layer.level_at[:, depth]).max()
    nodes = (layer.level_at[:, depth + 1] - layer.level_at[:, 0]).max()
    steps = 1
    for i in range(layer.base.size):
        if layer.base[i] >= 0:
            steps = max(steps, layer.reach[i].max())
    return steps, leaves, nodes


@njit(cache=True, nogil=True)
def inside(mode, layer, values, offsets, mass, scale, lossy):
    """Masses of all top segments of a layer: mass (rows, S), log scale (rows, S); lossy (sequences,).

    Cost: runs x steps x (L leaves + sum of squared group sizes), L = 1 unless the bottom is segmental.
    """
    steps, leaves, nodes = largest_run(layer)
    work = make_scratch(steps, leaves, nodes, False)
    line = np.empty(steps)
    for n in range(offsets.size - 1):
        for i in range(offsets[n], offsets[n + 1]):
            if layer.base[i] < 0:
                continue
            for s in range(layer.reach.shape[1]):
                reach = layer.reach[i, s]
                if reach == 0:
                    continue
                low = forward_run(mode, layer, values, i, s, reach, work, line)
                lossy[n] |= low < TINY
                for k in range(reach):
                    mass[layer.base[i] + k, s] = line[k]
                    scale[layer.base[i] + k, s] = work.scale[k + 1]


@njit(cache=True, nogil=True)
def outside(mode, layer, values, counts, offsets, post, mass, scale, lossy):
    """Expected counts of a layer from the posteriors ``post`` (rows, S) of its top segments.

    The runs are walked again rather than stored; masses and scales are written as by ``inside``.
    """
    steps, leaves, nodes = largest_run(layer)
    work = make_scratch(steps, leaves, nodes, True)
    line = np.empty(steps)
    for n in range(offsets.size - 1):
        for i in range(offsets[n], offsets[n + 1]):
            if layer.base[i] < 0:
                continue
            for s in range(layer.reach.shape[1]):
                reach = layer.reach[i, s]
                rows = slice(layer.base[i], layer.base[i] + reach)
                if reach == 0 or post[rows, s].max() == 0.0:
                    continue
                low = forward_run(mode, layer, values, i, s, reach, work, line)
                lossy[n] |= low < TINY
                for k in range(reach):
                    mass[layer.base[i] + k, s] = line[k]
                    scale[layer.base[i] + k, s] = work.scale[k + 1]
                    bar = zero(mode)
                    if post[layer.base[i] + k, s] > 0.0 and line[k] > zero(mode):
                        if mode == LINEAR:
                            bar = post[layer.base[i] + k, s] / line[k]
                        else:
                            bar = np.log(post[layer.base[i] + k, s]) - line[k]
                    line[k] = bar
                backward_run(mode, layer, values, counts, i, s, reach, work, line)


@njit(cache=True, nogil=True)
def find_reach(offsets, allowed, may_go_on, longest, reach):
    """Fill reach (N, S): how many steps from t a segment of s may last. allowed (N or 1, S), longest (S,)."""
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
        for s in range(reach.shape[1]):
            reach[t, s] = min(reach[t, s], longest[s])


@njit(cache=True, nogil=True)
def add_persist(base, reach, shortest, may_end, token, start, stop, duration, segment, table):
    """Add log persist(i, j, s) to ``table`` (rows, S); -inf where the segment is not admissible. Absent parts: empty.

    token, start, stop (N, S); duration (L, S); segment (N, L, S). Cost O(rows S).
    """
    for i in range(base.size):
        if base[i] < 0:
            continue
        width = reach[i].max()
        for s in range(reach.shape[1]):
            tokens = start[i, s] if start.size else 0.0
            for k in range(width):
                j = i + k
                if k >= reach[i, s]:
                    table[base[i] + k, s] = -np.inf
                    continue
                if token.size:
                    tokens += token[j, s]
                if k + 1 < shortest[s] or not may_end[j]:
                    table[base[i] + k, s] = -np.inf
                    continue
                value = tokens
                if stop.size:
                    value += stop[j, s]
                if duration.size:
                    value += duration[k, s]
                if segment.size:
                    value += segment[i, k, s]
                table[base[i] + k, s] += value


@njit(cache=True, nogil=True)
def add_persist_back(base, reach, post, state, ending, start, stop, duration, segment):
    """Reverse of ``add_persist``: add the posteriors (rows, S) of segments to the counts; state and ending always."""
    for i in range(base.size):
        if base[i] < 0:
            continue
        for s in range(reach.shape[1]):
            alive = 0.0
            for k in range(reach[i, s] - 1, -1, -1):
                j = i + k
                p = post[base[i] + k, s]
                alive += p
                state[j, s] += alive
                ending[j] += p
                if stop.size:
                    stop[j, s] += p
                if duration.size:
                    duration[k, s] += p
                if segment.size:
                    segment[i, k, s] += p
            if start.size:
                start[i, s] += alive


# The walk back from the end of a run to its start, shared by decoding, sampling and the k best. An item is
# (kind, node, time); its candidates are the ways in which its value came about.
UP, LEAF, DOWN, START = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def tune(mode, layer, pot, s, i, work, up_time, down_time):
    """Make ``work.up`` belong to up_time and ``work.down`` to down_time (either -1: not needed)."""
    depth = layer.level_at.shape[1] - 2
    if up_time >= i and work.clock[0] != up_time:
        ascend(mode, layer, pot, s, up_time, work.leaf[up_time - i], work.up)
        work.clock[0] = up_time
    if down_time >= i and work.clock[1] != down_time:
        descend(mode, layer, pot, s, down_time - 1, work.up, work.down, down_time == i, depth)
        work.clock[1] = down_time


@njit(cache=True, nogil=True)
def incoming(mode, layer, values, s, i, kind, node, t, work, weight, where):
    """List the candidates of an item in LOG or MAX: weight (C,), where (C, 3) their kind, node and time.

    A candidate's weight is its own value plus that of the step. The order breaks ties: siblings in the topology's
    order, a start before going on, the shortest segment first, the level's own transition before its parent's start.
    """
    pot = values.pot
    depth = layer.level_at.shape[1] - 2
    root = layer.level_at[s, 0]
    bottom = layer.level_at[s, depth]
    count = 0
    if kind == UP and node >= bottom:
        weight[0] = 0.0
        where[0] = (LEAF, node, t)
        return 1
    if kind == UP:
        tune(mode, layer, pot, s, i, work, t, -1)
        at = cell(layer.end, node, t)
        for k in range(layer.count[node]):
            last = layer.first[node] + k
            weight[k] = work.up[last - root] + pot[at + k]
            where[k] = (UP, last, t)
        return layer.count[node]
    if kind == LEAF and not layer.segmental:
        weight[0] = work.enter[t - i, node - bottom]
        where[0] = (DOWN, node, t)
        if layer.unit or t == i or not layer.may_cross[depth + 1, t - 1]:
            return 1
        weight[1] = work.leaf[t - 1 - i, node - bottom]
        where[1] = (LEAF, node, t - 1)
        return 2
    if kind == LEAF:
        passed = work.up_bar
        parent = layer.parent[node]
        for x in range(layer.level_at[s, depth - 1], bottom):
            passed[x - root] = 0.0
        for begin in range(t, work.since[t - i] - 1, -1):
            if depth > 1:
                pass_tokens(mode, layer, pot, s, begin, work, passed)
            if reaches(layer, begin, t):
                value = values.child[layer.child_base[begin] + t - begin, layer.state[node]]
                weight[count] = work.enter[begin - i, node - bottom] + value + passed[parent - root]
                where[count] = (DOWN, node, begin)
                count += 1
        return count
    # kind == DOWN
    parent = layer.parent[node]
    if t == i:
        weight[0] = 0.0
        where[0] = (START, node, t)
        return 1
    tune(mode, layer, pot, s, i, work, t - 1, t)
    level = level_of(layer, s, node)
    if layer.may_cross[level, t - 1]:
        n = layer.count[parent]
        at = cell(layer.trans, parent, t - 1)
        for u in range(n):
            before = layer.first[parent] + u
            weight[u] = work.up[before - root] + pot[at + u * n + node - layer.first[parent]]
            where[u] = (UP, before, t - 1)
        count = n
    if level > 1:
        weight[count] = work.down[parent - root] + pot[cell(layer.init, parent, t) + node - layer.first[parent]]
        where[count] = (DOWN, parent, t)
        count += 1
    return count


@njit(cache=True, nogil=True)
def level_of(layer, s, node):
    level = 0
    while node >= layer.level_at[s, level + 1]:
        level += 1
    return level


@njit(cache=True, nogil=True)
def choose(mode, weight, count, rng):
    """MAX: the first of the best candidates. LOG: one drawn in proportion to exp(weight)."""
    best = 0
    for k in range(1, count):
        if weight[k] > weight[best]:
            best = k
    if mode == MAX or count == 1:
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


@njit(cache=True, nogil=True)
def record(layer, s, top, node, t, j, states):
    """Write the states of a leaf and its ancestors below the top over t..j."""
    level = layer.level_at.shape[1] - 2
    while level > 0:
        states[top + level, t : j + 1] = layer.state[node]
        node = layer.parent[node]
        level -= 1


@njit(cache=True, nogil=True)
def trace(mode, layer, values, top, segments, rng, states, ends):
    """Write one configuration of the levels below each top segment: segments (n, 3) of state, i, j.

    states, ends (draws, D, N); segments belong to draw segments[n, 3]. Consecutive equal segments share a walk.
    """
    steps = 1
    for n in range(segments.shape[0]):
        steps = max(steps, segments[n, 2] - segments[n, 1] + 1)
    depth = layer.level_at.shape[1] - 2
    leaves = (layer.level_at[:, depth + 1] - layer.level_at[:, depth]).max()
    nodes = (layer.level_at[:, depth + 1] - layer.level_at[:, 0]).max()
    work = make_scratch(steps, leaves, nodes, False)
    room = nodes + steps + 2
    weight = np.empty(room)
    where = np.empty((room, 3), np.int64)
    mass = np.empty(steps)
    for n in range(segments.shape[0]):
        s, i, j = segments[n, 0], segments[n, 1], segments[n, 2]
        fresh = n == 0
        for k in range(3):
            fresh |= n > 0 and segments[n, k] != segments[n - 1, k]
        if fresh:
            forward_run(mode, layer, values, i, s, j - i + 1, work, mass)
            work.clock[:] = -1
        draw = segments[n, 3]
        ends[draw, top + 1 : top + depth + 1, i : j + 1] = 0
        ends[draw, top + 1 : top + depth + 1, j] = 1
        kind, node, t = UP, layer.level_at[s, 0], j
        while kind != START:
            count = incoming(mode, layer, values, s, i, kind, node, t, work, weight, where)
            picked = choose(mode, weight, count, rng)
            if kind == LEAF:
                record(layer, s, top, node, where[picked, 2], t, states[draw])
            if kind == DOWN and where[picked, 0] == UP:
                # this level and all below it end at t - 1
                ends[draw, top + level_of(layer, s, node) : top + depth + 1, t - 1] = 1
            kind, node, t = where[picked, 0], where[picked, 1], where[picked, 2]
