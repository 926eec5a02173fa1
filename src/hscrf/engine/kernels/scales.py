"""LINEAR: the highest leaf of every row stays in a comfortable range."""

import math

from hscrf.engine.kernels.arithmetic import HIGH, LOW, TINY
from hscrf.engine.kernels.compile import inlined, part, unsigned
from hscrf.engine.kernels.lanes import (
    FOUR,
    higher,
    lane_max,
    lane_min,
    lanes,
    larger,
    load,
    lower_above,
    smaller,
    spread,
)
from hscrf.engine.kernels.layout import SEQUENCE
from hscrf.engine.kernels.structure import at, at_down, latest, place_of

LIFTED = 1e40  # times the faintest segment this is still far below what is trusted, see ``passes.FAINTEST``


@part
def rescale(alone, nodes, step, least, first, last, runs, span, work, lossy):
    """Multiply the leaves of rows whose highest has left the range by a power of two; were there any such rows?

    A run, alive in rows first .. last, in which something possible is less than ``least`` makes its sequence lossy.
    Where that is more than TINY, faint segments stand for fainter ones, which no gain makes true.
    """
    (q, begin_row, end_row), rescaled = span, False
    begin, stop = at(work, step, nodes[0]), at(work, step, nodes[1])
    if alone is not None:
        highest, lowest = extremes(work.up, begin, stop)
        return bring_back(begin, stop, 0, highest, lowest, step, least, first, last, runs, q, work, lossy)
    for r in range(begin_row, end_row, FOUR):
        high, low = spread(0.0), spread(HIGH)
        for x in range(begin + r, stop + r, q):
            value = load(work.up, x)
            high, low = higher(high, value), lower_above(low, value, spread(0.0))
        highs, lows = lanes(high), lanes(low)
        for lane in range(4):
            given = r + unsigned(lane), highs[lane], lows[lane]
            rescaled |= bring_back(begin, stop, *given, step, least, first, last, runs, q, work, lossy)
    return rescaled


@inlined
def extremes(values, begin, stop):
    """The highest of some numbers that lie next to each other, and the lowest above zero; zeros may follow them."""
    high, low = spread(0.0), spread(HIGH)
    for x in range(begin, stop, FOUR):
        value = load(values, x)
        high, low = higher(high, value), lower_above(low, value, spread(0.0))
    return lane_max(high), lane_min(low)


@inlined
def bring_back(begin, stop, row, highest, lowest, step, least, first, last, runs, q, work, lossy):
    """Multiply the leaves of a row if its highest has left the range; has it? See ``rescale``."""
    gain, row = 1.0, unsigned(row)
    if highest > 0.0 and not LOW < highest < HIGH:
        _, exponent = math.frexp(highest)
        gain = math.ldexp(1.0, -exponent)
        work.scale[row] += exponent * math.log(2.0)
        multiply_row(work.up, begin + row, stop + row, q, gain)
    trusted = gain if least == TINY else smaller(gain, 1.0)
    if lowest * trusted < least and first <= row < last:
        lossy[runs[row, SEQUENCE]] = True
    work.gain[place_of(work, step) * q + row] = gain
    return gain != 1.0


@part
def multiply_row(values, begin, stop, rows, factor):
    """Multiply one row of some nodes; return the least of it above zero, and the highest."""
    low, high = HIGH, 0.0
    for x in range(begin, stop, rows):
        values[x] *= factor
        low, high = smaller(low, values[x] if values[x] > 0.0 else HIGH), larger(high, values[x])
    return low, high


@part
def multiply_steps(values, nodes, steps, row, work, factor):
    """Multiply one row of some nodes at several steps; return the least of it above zero, and the highest."""
    low, high, q = HIGH, 0.0, unsigned(work.rows)
    for step in range(*steps):
        begin, stop = at_down(work, step, nodes[0]) + row, at_down(work, step, nodes[1]) + row
        least, most = multiply_row(values, begin, stop, q, factor)
        low, high = smaller(low, least), larger(high, most)
    return low, high


@inlined
def may_end_later(leaves, step):
    """The steps in which segments start that may end after a step."""
    return larger(0, step - leaves.longest + 1), step + 1


@part
def multiply_entered(values, leaves, n, step, work, factor):
    """Multiply what lies in lines like ``entered``, alone, for segments that may end after a step; see above."""
    low, high = HIGH, 0.0
    begin, end = may_end_later(leaves, step)
    for leaf in range(n):
        first = latest(work, leaf, step)
        least, most = multiply_row(values, first, first + unsigned(end - begin), unsigned(1), factor)
        low, high = smaller(low, least), larger(high, most)
    return low, high


@part
def rescale_entered(alone, leaves, nodes, step, first, last, span, work):
    """With a table: what has started and may still end as a segment is multiplied, too. Is a run first .. last lossy?

    So it is if something is less than ``least``, or so high that it would lift faint segments to what is trusted.
    """
    lossy = False
    for r in range(span[1], span[2]):
        gain = work.gain[unsigned(step) * span[0] + r]
        if gain != 1.0:
            if alone is not None:
                low, high = multiply_entered(work.entered, leaves, nodes[1] - nodes[0], step, work, gain)
            else:
                low, high = multiply_steps(work.down, nodes, may_end_later(leaves, step), r, work, gain)
            unsure = low < leaves.least or (leaves.least > TINY and high > LIFTED)
            lossy |= unsure and first <= r < last
    return lossy


@part
def unscale(leaves, nodes, step, steps, span, work):
    """Make values and bars belong to the time before the leaves of a step were rescaled."""
    later = step, smaller(steps, step + leaves.longest)
    for r in range(span[1], span[2]):
        gain = work.gain[unsigned(step) * span[0] + r]
        if gain != 1.0:
            multiply_steps(work.down, nodes, may_end_later(leaves, step), r, work, 1.0 / gain)
            multiply_steps(work.later, nodes, later, r, work, gain)


@part
def unscale_entered(leaves, n, step, gain, work):
    """``unscale`` of a run alone."""
    multiply_entered(work.entered, leaves, n, step, work, 1.0 / gain)
    multiply_entered(work.entered_bar, leaves, n, step, work, gain)
