"""Runs: all that may happen under one top state from one start, forward and backward, and all runs of a layer."""

import numpy as np

from hscrf.engine.kernels.arithmetic import LINEAR, TINY, bar_if, bar_of, one, zero
from hscrf.engine.kernels.compile import as_written, kernel, part, unsigned
from hscrf.engine.kernels.lanes import smaller
from hscrf.engine.kernels.layout import BASE, CHILD_BASE, DOWN, DOWN_BAR, NODE_ROWS, NOWHERE, UP, UP_BAR
from hscrf.engine.kernels.row_trie import at, at_down
from hscrf.engine.kernels.segmental import extend_segments, sum_segments_back, when
from hscrf.engine.kernels.steps import extend_step, extend_step_back, fetch_tokens, recall
from hscrf.engine.kernels.trie import ascend, ascend_back, descend, descend_back, shape_of


@part
def forward_run(mode, layer, values, child, i, s, steps, work):
    """Walk one run; fill the work space. ``up`` of the top at step l is its scaled mass over i..i + l.

    Return the smallest positive number met (LINEAR only: below ``TINY`` the run is not to be trusted).
    """
    _, root, bottom, stop = shape_of(layer, s)
    low = 1.0
    work.scale[0] = 0.0
    for row in range(NODE_ROWS):
        for x in range(stop - root, stop - root + 4):
            work.node[row, x] = 0.0  # nothing comes from beyond the last leaf
    for j in range(i, i + steps):
        descend(mode, layer, values.pot, s, i, j - 1, work)
        if child is None:
            fetch_tokens(layer, values.pot, s, j + 1)
            low = smaller(low, extend_step(mode, layer, values, s, i, j, work))
        else:
            low = smaller(low, extend_segments(mode, layer, values, child, s, i, j, work))
        ascend(mode, layer, values.pot, s, j, work)
        ended, started = at(work, j - i, 0), at_down(work, j - i, 0)
        work.up[ended] = work.node[UP, 0]
        for x in range(unsigned(1), unsigned(bottom - root)):
            work.up[ended + x] = work.node[UP, x]
            work.down[started + x] = work.node[DOWN, x]
    return low


@as_written
def walk_forward(mode, layer, values, child, i, s, steps, work):
    """``forward_run`` for Python."""
    forward_run(mode, layer, values, child, i, s, steps, work)


@part
def backward_run(mode, layer, values, child, counts, i, s, steps, work):
    """Reverse of ``forward_run``: from the bars of the top to the expected counts of everything in the run.

    They stand where its masses were, in ``up``.
    """
    _, root, bottom, stop = shape_of(layer, s)
    leaf, n = unsigned(bottom - root), unsigned(stop - bottom)
    if child is not None:
        for k in range(n):
            for column in range(work.enter_bar.shape[1]):
                work.enter_bar[k, column] = zero(mode)
    for j in range(i + steps - 1, i - 2, -1):
        if child is None:
            fetch_tokens(layer, counts.pot, s, j - 1)
        if j >= i:
            recall(mode, layer, values.pot, child, s, i, j, work)
        if j + 1 < i + steps:
            started = at_down(work, j + 1 - i, 0)
            work.node[DOWN, 0] = one(mode) if j < i else zero(mode)
            for x in range(unsigned(1), leaf):
                work.node[DOWN, x] = work.down[started + x]
            if child is not None:
                column = when(work, j + 1 - i)
                for k in range(n):
                    work.node[DOWN, leaf + k] = work.enter[k, column]
                    work.node[DOWN_BAR, leaf + k] = bar_if(mode, work.enter[k, column], work.enter_bar[k, column])
            elif layer.starts:
                for k in range(n):
                    work.node[DOWN, leaf + k] = work.enter[j + 1 - i, k]
            descend_back(mode, layer, values.pot, counts.pot, s, i, j, work)
        else:
            for x in range(stop - root):
                work.node[UP_BAR, x] = zero(mode)
        if j >= i:
            work.node[UP_BAR, 0] = work.up[at(work, j - i, 0)]
            ascend_back(mode, layer, values.pot, counts, s, j, work)
            if child is None:
                extend_step_back(mode, layer, values, counts, s, i, j, steps, work)
            elif layer.table[j, CHILD_BASE] != NOWHERE:
                sum_segments_back(mode, layer, values, child, counts, s, i, j, work)


@part
def walk_all(mode, layer, values, child, counts, offsets, post, mass, lossy, work):
    """Walk all runs of a layer: log mass (S, columns) of its top segments, unless it is empty; lossy (sequences,).

    Unless ``counts`` is None, turn the posteriors ``post`` (S, columns) of the top segments into expected counts of all
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
                low = forward_run(mode, layer, values, child, i, s, reach, work)
                lossy[n] |= low < TINY
                for k in range(reach):
                    column, top, bar = layer.table[i + k, BASE] + k, at(work, k, 0), zero(mode)
                    if layer.table[i + k, BASE] != NOWHERE:
                        value = work.up[top]
                        if mass.size > 0:
                            mass[s, column] = np.log(value) + work.scale[k + 1] if mode is LINEAR else value
                        if counts is not None:
                            bar = bar_of(mode, value, post[s, column])
                    work.up[top] = bar
                if counts is not None:
                    backward_run(mode, layer, values, child, counts, i, s, reach, work)


@as_written
def sweep(mode, layer, values, child, counts, offsets, post, mass, lossy, work):
    """``walk_all`` for Python, where the bottom has no table."""
    walk_all(mode, layer, values, child, counts, offsets, post, mass, lossy, work)


@kernel
def sweep_segments(mode, layer, values, child, counts, offsets, post, mass, lossy, work):
    """``walk_all`` for Python, where the bottom has a table: loops over starts are worth the time to compile them."""
    walk_all(mode, layer, values, child, counts, offsets, post, mass, lossy, work)


@part
def has_posterior(layer, i, s, reach, post):
    """Has any segment of s from i a posterior."""
    for k in range(reach):
        base = layer.table[i + k, BASE]
        if base != NOWHERE and post[s, base + k] > 0.0:
            return True
    return False
