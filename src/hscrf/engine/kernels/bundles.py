"""Bundles: runs of one top state that walk through time side by side, each in its own row.

The recursion is that of ``runs``. Where a run has a number a bundle has a row of them, and all rows share their tables.
Runs are starts of one sequence, or whole sequences (``apart``) that share no time: each has its own tokens, and so far
as the structure is concerned the time of a bundle is that of its longest. Runs have their rows in the order in which
they start, which is that in which they end, so those that are alive at a time lie together. Rows are computed in
blocks, from the step in which the first row of a block is born to that in which its last one ends. Before a run starts
all is impossible in its row, and what is computed after it has ended stays finite, as rows are rescaled, and is never
used: its bars are zero.

    rows            one parent and its children: products and sums over children, for many rows at once
    row_trie        one time step of the trie: up by ``end``, across by ``trans``, down by ``init``
    row_leaves      leaves live through a step or, with a table, end as segments
    row_tokens      apart: tokens are read, and counted, row by row
    row_scales      LINEAR: rows that leave the comfortable range are brought back
"""

import numpy as np

from hscrf.engine.kernels.arithmetic import LINEAR, one, zero
from hscrf.engine.kernels.compile import inlined, kernel, part, unsigned
from hscrf.engine.kernels.exponentials import take_logs
from hscrf.engine.kernels.lanes import FOUR, spread, store
from hscrf.engine.kernels.layout import (
    AHEAD,
    BASE,
    BLOCK,
    FROM,
    LEAF,
    NOWHERE,
    RUN,
    RUN_END,
    SEQUENCE,
    SHIFT,
    SINCE,
    STEPS,
    TOP,
    UNTIL,
)
from hscrf.engine.kernels.row_leaves import live, live_back, sum_segments, sum_segments_back
from hscrf.engine.kernels.row_scales import rescale, rescale_entered
from hscrf.engine.kernels.row_tokens import FETCHED, gather_tokens
from hscrf.engine.kernels.row_trie import ascend, ascend_back, at, at_down, count_all_pairs, descend, descend_back
from hscrf.engine.kernels.rows import fill
from hscrf.engine.kernels.trie import shape_of


@inlined
def count_born(runs, last, t):
    """The end of the runs that have started by t."""
    while last < runs.shape[0] and runs[last, SINCE] <= t:
        last += 1
    return last


@inlined
def skip_ended(runs, first, t):
    """The first of the runs that are alive at t."""
    while first < runs.shape[0] and runs[first, UNTIL] <= t:
        first += 1
    return first


@inlined
def span_of(work, table, first, last):
    """The number of rows, and the first and the end of the blocks in which runs first .. last have theirs.

    With a table all rows are computed: what has started is asked for as long as its segments may end.
    """
    if table is not None:
        return unsigned(work.rows), unsigned(0), unsigned(work.rows)
    return unsigned(work.rows), unsigned(first - first % BLOCK), unsigned(last + -last % BLOCK)


@inlined
def in_table(layer, leaves, s, t, ahead):
    """Where segments of the top state s that end at t lie in the flat table; a run's lies its SHIFT further.

    ``ahead``: how far the run's own time is ahead of that of the bundle. NOWHERE if none may end.
    """
    base = layer.table[t + ahead, BASE]
    return s * leaves.top_columns + base + t if base != NOWHERE else NOWHERE


@part
def forward(mode, layer, values, leaves, table, apart, bundle, runs, work, mass, lossy):
    """Walk a bundle through time; fill the work space and, unless it is empty, the log mass of the top's segments."""
    s, begin, steps = bundle[TOP], bundle[FROM], bundle[STEPS]
    first, last, since, end = 0, 0, begin, unsigned(0)
    for step in range(steps):
        t, top = begin + step, at_down(work, step, 0)
        first, born = skip_ended(runs, first, t), last
        last = count_born(runs, last, t)
        span, ends = span_of(work, table, first, last), runs[first, UNTIL] == t + 1
        if step > 0 and span[2] > end:  # nothing has happened yet in rows that are born now
            fill(work.up, at(work, step - 1, 0), work.nodes, (span[0], end, span[2]), zero(mode))
        end = span[2]
        fill(work.down, top, 1, span, zero(mode))
        for r in range(born, last):
            work.down[top + unsigned(r)] = one(mode)
            work.scale[r] = 0.0
        descend(mode, layer, values.pot, table, apart, s, runs, t, step, last > born, span, work)
        if table is not None:
            since = sum_segments(mode, layer, leaves, table, s, t, step, since, span, work)
        else:
            if apart is not None:
                gather_tokens(mode, layer, values.pot, s, runs, t, FETCHED, span, work)
            live(mode, layer, leaves, apart, s, bundle[LEAF], t, step, span, work)
        if mode is LINEAR:
            keep_scale(layer, leaves, table, apart, s, t, step, first, last, runs, span, work, lossy)
        ascend(mode, layer, values.pot, apart, s, runs, t, step, ends, span, work)
        if mass.size > 0:
            if apart is None:
                write_masses(mode, layer, leaves, s, t, step, first, last, runs, work, mass)
            elif ends:
                write_sequences(mode, layer, leaves, s, t, step, first, last, runs, work, mass)


@inlined
def keep_scale(layer, leaves, table, apart, s, t, step, first, last, runs, span, work, lossy):
    """LINEAR: note the scale of each row, and look after it from time to time."""
    _, root, bottom, stop = shape_of(layer, s)
    if apart is None:
        peak = leaves.peak[t]
        for r in range(span[1], span[2]):
            work.scale[r] += peak
    work.rescaled[step] = False
    if step % leaves.every == 0:
        nodes = bottom - root, stop - root
        work.rescaled[step] = rescale(nodes, step, leaves.least, first, last, runs, span, work, lossy)
        if table is not None and work.rescaled[step]:
            lossy[runs[0, SEQUENCE]] |= rescale_entered(leaves, nodes, step, first, last, span, work)


@inlined
def write_masses(mode, layer, leaves, s, t, step, first, last, runs, work, mass):
    """Write the log masses of the top's segments that end at t, of all starts."""
    column, top = in_table(layer, leaves, s, t, 0), at(work, step, 0)
    if column == NOWHERE:
        return
    for r in range(unsigned(first), unsigned(last)):
        work.top[r] = work.up[top + r]
    if mode is LINEAR:
        take_logs(work.top, first, last)
        for r in range(unsigned(first), unsigned(last)):
            work.top[r] += work.scale[r]
    for r in range(unsigned(first), unsigned(last)):
        mass[unsigned(column + runs[r, SHIFT])] = work.top[r]


@inlined
def write_sequences(mode, layer, leaves, s, t, step, first, last, runs, work, mass):
    """Write the log masses of the sequences that end at t."""
    for r in range(first, last):
        ahead = runs[r, AHEAD]
        column, value = in_table(layer, leaves, s, t, ahead), work.up[at(work, step, 0) + unsigned(r)]
        if runs[r, UNTIL] == t + 1 and column != NOWHERE:
            if mode is LINEAR:
                value = np.log(value) + work.scale[r]
                for time in range(runs[r, SINCE] + ahead, t + ahead + 1):
                    value += leaves.peak[time]
            mass[unsigned(column + runs[r, SHIFT])] = value


@part
def backward(layer, values, leaves, table, apart, counts, bundle, runs, work, post):
    """Reverse of ``forward``: from the posteriors of the top's segments to the expected counts of all in the bundle."""
    s, begin, steps = bundle[TOP], bundle[FROM], bundle[STEPS]
    clear(work.up_bar)
    clear(work.down_bar)
    clear(work.goes_on_bar)
    clear(work.pairs)
    first = last = runs.shape[0]
    for step in range(steps - 1, -1, -1):
        t = begin + step
        while first > 0 and runs[first - 1, UNTIL] > t:
            first -= 1
        span, ends = span_of(work, table, first, last), runs[first, UNTIL] == t + 1
        read_bars(layer, leaves, apart, s, t, step, first, last, ends, runs, span, work, post)
        ascend_back(layer, values.pot, counts, apart, s, runs, first, t, step, ends, span, work)
        if table is not None:
            sum_segments_back(layer, leaves, table, s, t, step, steps, span, work)
        else:
            if apart is not None:
                gather_tokens(LINEAR, layer, values.pot, s, runs, t, -FETCHED, span, work)
            live_back(layer, leaves, apart, counts, s, bundle[LEAF], runs, first, t, step, steps, span, work)
        born = last
        while last > 0 and runs[last - 1, SINCE] == t:
            last -= 1
        descend_back(layer, values.pot, counts.pot, apart, s, runs, first, t, step, last < born, span, work)
    count_all_pairs(layer, values.pot, counts.pot, s, work)


@part
def clear(values):
    """All numbers of an array become zero; their count is a multiple of four."""
    for k in range(unsigned(0), unsigned(values.size), FOUR):
        store(spread(0.0), values, k)


@inlined
def read_bars(layer, leaves, apart, s, t, step, first, last, ends, runs, span, work, post):
    """The top's bars: the posteriors of its segments that end at t, by their masses."""
    fill(work.up_bar, unsigned(0), 1, span, 0.0)
    if apart is not None and not ends:
        return
    column, top = in_table(layer, leaves, s, t, 0), at(work, step, 0)
    for r in range(unsigned(first), unsigned(last)):
        if apart is not None:
            column = in_table(layer, leaves, s, t, runs[r, AHEAD])
        if column != NOWHERE:
            work.up_bar[r] = post[unsigned(column + runs[r, SHIFT])]
    for r in range(span[1], span[2]):
        value = work.up[top + r]
        work.up_bar[r] = work.up_bar[r] / value if value > 0.0 else 0.0


@part
def has_posterior(layer, leaves, apart, bundle, runs, post):
    """Has any segment of a bundle a posterior."""
    first, last, s = 0, 0, bundle[TOP]
    for t in range(bundle[FROM], bundle[FROM] + bundle[STEPS]):
        first, last = skip_ended(runs, first, t), count_born(runs, last, t)
        if apart is None or runs[first, UNTIL] == t + 1:
            for r in range(first, last):
                column = in_table(layer, leaves, s, t, 0 if apart is None else runs[r, AHEAD])
                if column != NOWHERE and post[unsigned(column + runs[r, SHIFT])] > 0.0:
                    return True
    return False


@kernel
def sweep_bundles(mode, layer, values, leaves, table, apart, counts, bundles, runs, post, mass, lossy, work):
    """Walk all bundles of a layer, see ``runs.walk_all``; post and mass are flat here.

    ``table`` holds the segments of the bottom, flat, or is None; ``apart`` is True if runs are sequences, else None. As
    with ``mode``, None has a type of its own: what a kind of runs does not need is not compiled for it.
    In LINEAR ``counts`` is empty where there are none to fill, rather than None: learning needs both, from one kernel.
    """
    for k in range(bundles.shape[0]):
        bundle = bundles[k]
        own = runs[bundle[RUN] : bundle[RUN_END]]
        if counts is not None and counts.pot.size > 0 and not has_posterior(layer, leaves, apart, bundle, own, post):
            continue
        forward(mode, layer, values, leaves, table, apart, bundle, own, work, mass, lossy)
        if counts is not None and counts.pot.size > 0:
            backward(layer, values, leaves, table, apart, counts, bundle, own, work, post)
