"""Bundles: runs of one top state that walk through time side by side, each in its own row.

The recursion is that of ``runs``. Where a run has a number a bundle has a row of them, and all rows share their tables.
Runs are starts of one sequence, or whole sequences (``apart``) that share no time: each has its own tokens, and so far
as the structure is concerned the time of a bundle is that of its longest. Runs have their rows in the order in which
they start, which is that in which they end, so those that are alive at a time lie together. A row is computed at every
step of its bundle: before its run starts all is impossible there, and what is computed after its run has ended stays
finite, as rows are rescaled, and is never used: its bars are zero.

    rows            one parent and its children: products and sums over children, for many rows at once
    row_trie        one time step of the trie: up by ``end``, across by ``trans``, down by ``init``
    row_leaves      leaves live through a step or, with a table, end as segments
    row_tokens      apart: tokens are read, and counted, row by row
    row_scales      LINEAR: rows that leave the comfortable range are brought back
"""

from hscrf.engine.kernels.arithmetic import LINEAR, one, zero
from hscrf.engine.kernels.compile import inlined, kernel, part, unsigned
from hscrf.engine.kernels.layout import (
    AHEAD,
    BASE,
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
from hscrf.engine.kernels.row_tokens import FETCHED, gather_tokens, own_time
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
def in_table(layer, run, s, t):
    """Where the segment of a run and its top state s that ends at t lies in the flat table, -1 if none may end."""
    base = layer.table[t + run[AHEAD], BASE]
    if base == NOWHERE:
        return -1
    return (base + t + run[SHIFT]) * layer.level_at.shape[0] + s


@part
def forward(mode, layer, values, leaves, table, apart, bundle, runs, work, mass, scale, lossy):
    """Walk a bundle through time; fill the work space, and mass and scale of the top's segments."""
    s, begin, steps = bundle[TOP], bundle[FROM], bundle[STEPS]
    first, last, since = 0, 0, begin
    for step in range(steps):
        t, top = begin + step, at_down(work, step, 0)
        first, born = skip_ended(runs, first, t), last
        last = count_born(runs, last, t)
        fill(work.down, top, work.rows, zero(mode))
        for r in range(born, last):
            work.down[top + unsigned(r)] = one(mode)
            work.scale[r] = 0.0
        descend(mode, layer, values.pot, leaves, s, t, step, last > born, work)
        if table is not None:
            since = sum_segments(mode, layer, leaves, table, s, t, step, since, work)
        else:
            if apart is not None:
                gather_tokens(mode, layer, values.pot, s, runs, t, FETCHED, work)
            live(mode, layer, leaves, apart, s, bundle[LEAF], t, step, work)
        if mode is LINEAR:
            keep_scale(layer, leaves, table, apart, s, t, step, first, last, runs, work, lossy)
        ascend(mode, layer, values.pot, apart, s, t, step, runs[first, UNTIL] == t + 1, work)
        for r in range(unsigned(first), unsigned(last)):
            where = in_table(layer, runs[r], s, t)
            if where >= 0:
                mass[unsigned(where)] = work.up[at(work, step, 0) + r]
                scale[unsigned(where)] = work.scale[r]


@inlined
def keep_scale(layer, leaves, table, apart, s, t, step, first, last, runs, work, lossy):
    """LINEAR: note the scale of each row, and look after it from time to time."""
    _, root, bottom, stop = shape_of(layer, s)
    if apart is not None:
        for r in range(work.rows):
            work.scale[r] += leaves.peak[own_time(runs, r, t)]
    else:
        for r in range(unsigned(work.rows)):
            work.scale[r] += leaves.peak[t]
    work.rescaled[step] = False
    if step % leaves.every == 0:
        nodes = bottom - root, stop - root
        work.rescaled[step] = rescale(nodes, step, leaves.least, first, last, runs, work, lossy)
        if table is not None:
            low = rescale_entered(leaves, nodes, step, work) if work.rescaled[step] else leaves.least
            lossy[runs[0, SEQUENCE]] |= low < leaves.least


@part
def backward(layer, values, leaves, table, apart, counts, bundle, runs, work, post):
    """Reverse of ``forward``: from the posteriors of the top's segments to the expected counts of all in the bundle."""
    s, begin, steps = bundle[TOP], bundle[FROM], bundle[STEPS]
    fill(work.up_bar, unsigned(0), work.up_bar.size, 0.0)
    fill(work.down_bar, unsigned(0), work.down_bar.size, 0.0)
    first = last = runs.shape[0]
    for step in range(steps - 1, -1, -1):
        t = begin + step
        while first > 0 and runs[first - 1, UNTIL] > t:
            first -= 1
        read_bars(layer, s, t, step, first, last, runs, work, post)
        ascend_back(layer, values.pot, counts, apart, s, runs, first, t, step, runs[first, UNTIL] == t + 1, work)
        if table is not None:
            sum_segments_back(layer, leaves, table, s, t, step, steps, work)
        else:
            if apart is not None:
                gather_tokens(LINEAR, layer, values.pot, s, runs, t, -FETCHED, work)
            live_back(layer, leaves, apart, counts, s, bundle[LEAF], runs, first, t, step, steps, work)
        born = last
        while last > 0 and runs[last - 1, SINCE] == t:
            last -= 1
        descend_back(layer, values.pot, counts.pot, leaves, s, t, step, last < born, work)
    count_all_pairs(layer, values.pot, counts.pot, s, work)


@inlined
def read_bars(layer, s, t, step, first, last, runs, work, post):
    """The top's bars: the posteriors of its segments that end at t, by their masses."""
    fill(work.up_bar, unsigned(0), work.rows, 0.0)
    for r in range(unsigned(first), unsigned(last)):
        where = in_table(layer, runs[r], s, t)
        if where >= 0:
            work.up_bar[r] = post[unsigned(where)]
    for r in range(unsigned(work.rows)):
        value = work.up[at(work, step, 0) + r]
        work.up_bar[r] = work.up_bar[r] / value if value > 0.0 else 0.0


@part
def has_posterior(layer, bundle, runs, post):
    """Has any segment of a bundle a posterior."""
    first = last = 0
    for t in range(bundle[FROM], bundle[FROM] + bundle[STEPS]):
        first, last = skip_ended(runs, first, t), count_born(runs, last, t)
        for r in range(first, last):
            where = in_table(layer, runs[r], bundle[TOP], t)
            if where >= 0 and post[where] > 0.0:
                return True
    return False


@kernel
def sweep_bundles(mode, layer, values, leaves, table, apart, counts, bundles, runs, post, mass, scale, lossy, work):
    """Walk all bundles of a layer, see ``runs.sweep``; post, mass and scale are flat here.

    ``table`` holds the segments of the bottom, flat, or is None; ``apart`` is True if runs are sequences, else None. As
    with ``mode``, None has a type of its own: what a kind of runs does not need is not compiled for it.
    In LINEAR ``counts`` is empty where there are none to fill, rather than None: learning needs both, from one kernel.
    """
    for k in range(bundles.shape[0]):
        bundle = bundles[k]
        own = runs[bundle[RUN] : bundle[RUN_END]]
        if counts is not None and counts.pot.size > 0 and not has_posterior(layer, bundle, own, post):
            continue
        forward(mode, layer, values, leaves, table, apart, bundle, own, work, mass, scale, lossy)
        if counts is not None and counts.pot.size > 0:
            backward(layer, values, leaves, table, apart, counts, bundle, own, work, post)
