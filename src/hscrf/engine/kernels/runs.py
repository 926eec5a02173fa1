"""Runs: all that may happen under one top state from one start. They walk through time in bundles, a row for each.

Where a run has a number a bundle has a row of them, and all rows share their tables. There are three kinds of bundles:

    alone           one run: children, not rows, are innermost in memory
    starts          of one sequence, side by side
    apart           whole sequences side by side that share no time: each has its own tokens; so far as the structure is
                    concerned, the time of a bundle is that of its longest

Which of them a kernel walks stands in its work space (``alone``, ``apart``). What a kind does not need is not compiled
for it, see ``grids``. Any run may go alone. Starts with a table have no Markov levels between, and rows by sixteen.
Sequences apart have no table, and their init, trans and end do not change in time. LOG goes alone.

Runs have their rows in the order in which they start, which is that in which they end, so those that are alive at a
time lie together. Rows are computed in blocks, from the step in which the first row of a block is born to that in which
its last one ends. Before a run starts all is impossible in its row. A row whose run has ended is still computed as long
as its block is. It stays finite, as it is rescaled, and what started before is dropped then. Nothing of it counts: its
bars are zero.
"""

import numpy as np

from hscrf.engine.kernels import rows
from hscrf.engine.kernels.arithmetic import LINEAR, TINY, none, one, zero
from hscrf.engine.kernels.compile import as_written, inlined, kernel, part, unsigned
from hscrf.engine.kernels.exponentials import take_logs
from hscrf.engine.kernels.lanes import FOUR, larger, prefetch, store
from hscrf.engine.kernels.layout import (
    AHEAD,
    BASE,
    BLOCK,
    FROM,
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
from hscrf.engine.kernels.leaves import end_leaves, end_leaves_back, live, live_back, sum_segments, sum_segments_back
from hscrf.engine.kernels.scales import extremes, note_gains, rescale, rescale_entered
from hscrf.engine.kernels.structure import at, at_down, entered_at, place_of, shape_of, starting_leaves
from hscrf.engine.kernels.tokens import FETCHED, fetch_tokens, fill, gather_tokens, multiply_tokens
from hscrf.engine.kernels.trie import ascend, ascend_back, count_all_pairs, descend, descend_back


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
    if work.alone or table is not None:
        return unsigned(work.rows), unsigned(0), unsigned(work.rows)
    return unsigned(work.rows), unsigned(first - first % BLOCK), unsigned(last + -last % BLOCK)


@inlined
def in_table(layer, leaves, s, t, ahead):
    """Where segments of the top state s that end at t lie in the flat table; a run's lies its SHIFT further.

    ``ahead``: how far the run's own time is ahead of that of the bundle. NOWHERE if none may end.
    """
    base = layer.columns[t + ahead, BASE]
    return s * leaves.top_columns + base + t if base != NOWHERE else NOWHERE


@part
def forward(mode, layer, values, leaves, table, bundle, runs, work, mass, lossy):
    """Walk a bundle through time; fill the work space and, unless there is none, the log mass of the top's segments.

    ``table`` is read: the masses of the bottom's segments, or None. ``layer.columns`` says where both kinds lie.
    """
    s, begin, steps = bundle[TOP], bundle[FROM], bundle[STEPS]
    first, last, since, until_check = 0, 0, begin, larger(leaves.every, 1)
    computed = unsigned(0)  # the end of the rows that have been computed
    for step in range(steps):
        t, top = begin + step, at_down(work, step, 0)
        first, newborn = skip_ended(runs, first, t), last
        last = count_born(runs, last, t)
        span, closing = span_of(work, table, first, last), runs[first, UNTIL] == t + 1
        if not work.alone and step > 0 and span[2] > computed:  # nothing has happened yet in rows that are born now
            rows.fill(work.up, at(work, step - 1, 0), work.nodes, (span[0], computed, span[2]), zero(mode))
        computed = span[2]
        fill(work.down, top, 1, zero(mode), span, work)
        for r in range(newborn, last):
            work.down[top + unsigned(r)] = one(mode)
            work.scale[r] = 0.0
        descend(mode, layer, values.pot, s, runs, t, step, last > newborn, span, work)
        if table is not None:
            since = sum_segments(mode, layer, values.pot, leaves, table, s, t, step, since, span, work)
        else:
            if work.alone:
                starting, _, beyond = starting_leaves(layer, s, step, work)
                store(none(mode), starting, beyond)  # nothing comes from there, but vectors reach it
                if mode is LINEAR and leaves.every == 0:
                    look_at_starts(layer, s, step, runs, work, lossy)
            read_tokens(mode, layer, values.pot, s, runs, t, 1, span, work)  # after ``meet``, which uses ``own``, too
            live(mode, layer, leaves, s, t, step, span, work)
        if mode is LINEAR:
            add_peaks(leaves, s, t, span, work)
            until_check -= 1
            work.rescaled[place_of(work, step)] = False
            if until_check == 0:
                keep_scale(layer, leaves, s, step, first, last, runs, span, work, lossy)
                until_check = larger(leaves.every, 1)
            if table is not None:
                keep_scale_of_entered(layer, leaves, s, step, first, last, runs, span, work, lossy)
        if table is None:
            end_leaves(mode, layer, values.pot, s, runs, t, step, span, work)
        ascend(mode, layer, values.pot, s, runs, t, step, closing, span, work)
        if mass is not None and mass.size > 0:
            if not work.apart:
                write_masses(mode, layer, leaves, s, t, step, first, last, runs, work, mass)
            elif closing:
                write_sequences(mode, layer, leaves, s, t, step, first, last, runs, work, mass)


@inlined
def read_tokens(mode, layer, pot, s, runs, t, way, span, work):
    """Have the tokens of t at hand, if they are not multiplied beforehand; walking in this way, 1 or -1."""
    if work.alone:
        fetch_tokens(layer, pot, s, t + way)
        multiply_tokens(mode, layer, pot, s, t, layer.level_at.shape[1] - 2, work)
        beyond = layer.level_at[s, layer.level_at.shape[1] - 1] - layer.level_at[s, 0]
        store(none(mode), work.met, unsigned(beyond))  # vectors reach beyond the last leaf
    elif work.apart:
        gather_tokens(mode, layer, pot, s, runs, t, way * FETCHED, span, work)


@inlined
def look_at_starts(layer, s, step, runs, work, lossy):
    """LINEAR, alone, where a step may take a row from end to end: are leaves that start too faint for their tokens?"""
    values, begin, end = starting_leaves(layer, s, step, work)
    _, lowest = extremes(values, begin, end)
    lossy[runs[0, SEQUENCE]] |= lowest < TINY


@inlined
def add_peaks(leaves, s, t, span, work):
    """LINEAR: add the log scale of t to that of each row; sequences side by side have theirs when they end."""
    if not work.apart:
        peak = leaves.peak[leaves.peak_of[s], t]
        for r in range(span[1], span[2]):
            work.scale[r] += peak


@inlined
def keep_scale(layer, leaves, s, step, first, last, runs, span, work, lossy):
    """LINEAR: bring rows back that have left the comfortable range."""
    _, root, bottom, stop = shape_of(layer, s)
    nodes = bottom - root + work.alive_at, stop - root + work.alive_at
    rescaled = rescale(nodes, step, leaves.least, first, last, runs, span, work, lossy)
    work.rescaled[place_of(work, step)] = rescaled


@inlined
def keep_scale_of_entered(layer, leaves, s, step, first, last, runs, span, work, lossy):
    """LINEAR, with a table: what has started has the scale of the leaves."""
    _, root, bottom, stop = shape_of(layer, s)
    note_gains(step, span, work)
    if work.rescaled[step]:
        unsure = rescale_entered(leaves, bottom - root, stop - bottom, step, first, last, span, work)
        lossy[runs[0, SEQUENCE]] |= unsure


@inlined
def write_masses(mode, layer, leaves, s, t, step, first, last, runs, work, mass):
    """Write the log masses of the top's segments that end at t, of all starts."""
    column, top = in_table(layer, leaves, s, t, 0), at(work, step, 0)
    if column == NOWHERE:
        return
    for r in range(unsigned(first), unsigned(last)):
        work.top[r] = work.up[top + r]
    if mode is LINEAR:
        if work.alone:
            work.top[0] = np.log(work.top[0])
        else:
            take_logs(work.top, first, last)
        for r in range(unsigned(first), unsigned(last)):
            work.top[r] += work.scale[r]
    for r in range(unsigned(first), unsigned(last)):
        mass[unsigned(column + runs[r, SHIFT])] = work.top[r]


@inlined
def fetch_segments(layer, leaves, s, t, first, last, runs, table):
    """Have segments that end at t in the cache when they are needed: processors do not guess where they lie."""
    if t >= 0:
        column = in_table(layer, leaves, s, t, 0)
        for k in range(runs[last - 1, SHIFT], runs[first, SHIFT] + 8, 8):
            prefetch(table, unsigned(column + k))


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
                    value += leaves.peak[leaves.peak_of[s], time]
            mass[unsigned(column + runs[r, SHIFT])] = value


@part
def backward(mode, layer, values, leaves, table, counts, bundle, runs, work, post):
    """Reverse of ``forward``: from the posteriors of the top's segments to the expected counts of all in the bundle."""
    s, begin, steps = bundle[TOP], bundle[FROM], bundle[STEPS]
    clear(mode, work.up_bar)
    clear(mode, work.down_bar)
    clear(mode, work.goes_on_bar)
    if not work.alone:
        clear(mode, work.pairs)
    elif table is not None:
        clear_segments(mode, layer, s, steps, work)
    first = last = runs.shape[0]
    for step in range(steps - 1, -1, -1):
        t = begin + step
        while first > 0 and runs[first - 1, UNTIL] > t:
            first -= 1
        span, closing = span_of(work, table, first, last), runs[first, UNTIL] == t + 1
        read_bars(mode, layer, leaves, s, t, step, first, last, closing, runs, span, work, post)
        ascend_back(mode, layer, values.pot, counts, s, runs, first, t, step, closing, span, work)
        if table is not None:
            pot = values.pot
            sum_segments_back(mode, layer, pot, leaves, table, counts, s, t, step, steps, span, work)
        else:
            end_leaves_back(mode, layer, values.pot, counts, s, runs, first, t, step, span, work)
            read_tokens(mode, layer, values.pot, s, runs, t, -1, span, work)
            live_back(mode, layer, leaves, counts, s, runs, first, t, step, steps, span, work)
        end = last
        while last > 0 and runs[last - 1, SINCE] == t:
            last -= 1
        given = s, runs, first, t, step, last < end, span, work
        descend_back(mode, layer, values.pot, counts.pot, *given)
    if not work.alone:
        count_all_pairs(layer, values.pot, counts.pot, s, work)


@inlined
def clear(mode, values):
    """Nothing is in any place of an array; their number is a multiple of four."""
    for k in range(unsigned(0), unsigned(values.size), FOUR):
        store(none(mode), values, k)


@inlined
def clear_segments(mode, layer, s, steps, work):
    """Alone, with a table: no leaf that starts has a bar yet."""
    _, _, bottom, stop = shape_of(layer, s)
    for leaf in range(stop - bottom):
        begin = entered_at(work, leaf, steps - 1)
        for k in range(begin, begin + unsigned(steps)):
            work.segment_bar[k] = zero(mode)


@inlined
def read_bars(mode, layer, leaves, s, t, step, first, last, closing, runs, span, work, post):
    """The top's bars: the posteriors of its segments that end at t, by their masses."""
    fill(work.up_bar, unsigned(0), 1, zero(mode), span, work)
    if work.apart and not closing:
        return
    column, top = in_table(layer, leaves, s, t, 0), at(work, step, 0)
    if not work.alone and not work.apart:
        if column != NOWHERE:
            fetch_segments(layer, leaves, s, t - FETCHED, first, last, runs, post)
            for r in range(unsigned(first), unsigned(last)):
                work.up_bar[r] = post[unsigned(column + runs[r, SHIFT])]
            rows.divide(work.up_bar, work.up, top, span)
        return
    for r in range(unsigned(first), unsigned(last)):
        if work.apart:
            column = in_table(layer, leaves, s, t, runs[r, AHEAD])
        if column != NOWHERE:
            posterior, value = post[unsigned(column + runs[r, SHIFT])], work.up[top + r]
            if posterior > 0.0 and value > zero(mode):
                work.up_bar[r] = posterior / value if mode is LINEAR else np.log(posterior) - value


@part
def has_posterior(layer, leaves, bundle, runs, post):
    """Has any segment of a bundle a posterior."""
    for r in range(runs.shape[0]):
        for t in range(runs[r, SINCE], runs[r, UNTIL]):
            column = in_table(layer, leaves, bundle[TOP], t, runs[r, AHEAD])
            if column != NOWHERE and post[unsigned(column + runs[r, SHIFT])] > 0.0:
                return True
    return False


@part
def walk(mode, layer, values, leaves, table, counts, bundle, runs, post, mass, lossy, work):
    """Walk a bundle forward and, if there are counts to fill and posteriors to begin with, backward."""
    wanted = counts is not None and counts.pot.size > 0
    if wanted and not has_posterior(layer, leaves, bundle, runs, post):
        return
    forward(mode, layer, values, leaves, table, bundle, runs, work, mass, lossy)
    if counts is not None and wanted:
        backward(mode, layer, values, leaves, table, counts, bundle, runs, work, post)


@kernel
def sweep_bundles(mode, layer, values, leaves, table, counts, bundles, runs, post, mass, lossy, work):
    """Walk all bundles of several rows of a layer in LINEAR or MAX; lossy (sequences,).

    Fill the log mass (S, columns) of the top's segments, flat, unless it is empty. Unless ``counts`` is None or empty,
    turn the posteriors ``post``, like it, of these into expected counts of all below; bundles without posterior are
    left out. Runs are walked again for this rather than kept. ``table`` holds the segments of the bottom, flat, or is
    None. In LINEAR ``counts`` is empty where there are none, rather than None: learning needs both, from one kernel.
    Cost: runs x steps x (L leaves + sum of squared group sizes), L = 1 unless the bottom has a table.
    """
    for k in range(bundles.shape[0]):
        bundle = bundles[k]
        own = runs[bundle[RUN] : bundle[RUN_END]]
        walk(mode, layer, values, leaves, table, counts, bundle, own, post, mass, lossy, work)


@part
def make_run(n, i, s, reach, bundle, run):
    """A bundle of the one run of sequence n from i on under s."""
    bundle[TOP], bundle[FROM], bundle[STEPS] = s, i, reach
    run[0, SINCE], run[0, UNTIL], run[0, SHIFT], run[0, SEQUENCE], run[0, AHEAD] = i, i + reach, -i, n, 0


@as_written
def sweep(mode, layer, values, leaves, table, counts, offsets, bundle, run, post, mass, lossy, work):
    """``sweep_bundles`` for runs alone, in any arithmetic; ``bundle`` (5,) and ``run`` (1, 5) are filled here."""
    for n in range(offsets.size - 1):
        for i in range(offsets[n], offsets[n + 1]):
            for s in range(layer.reach.shape[1]):
                reach = layer.reach[i, s]
                if reach > 0:
                    make_run(n, i, s, reach, bundle, run)
                    walk(mode, layer, values, leaves, table, counts, bundle, run, post, mass, lossy, work)


@part
def forward_run(mode, layer, values, leaves, table, i, s, steps, bundle, run, lossy, work):
    """Walk one run in LOG or MAX, which lose nothing, or in LINEAR; lossy (1,)."""
    make_run(0, i, s, steps, bundle, run)
    forward(mode, layer, values, leaves, table, bundle, run, work, None, lossy)


@as_written
def walk_forward(mode, layer, values, leaves, table, i, s, steps, bundle, run, lossy, work):
    """``forward_run`` for Python."""
    forward_run(mode, layer, values, leaves, table, i, s, steps, bundle, run, lossy, work)
