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
    store,
)
from hscrf.engine.kernels.layout import SEQUENCE
from hscrf.engine.kernels.structure import at, at_down, entered_at, place_of

# Where faint segments stand for fainter ones (``engine.passes``: FAINTEST, SAFE), FLOOR stands for what has started and
# is fainter. Many times LIFTED * FAINTEST, and many times FLOOR, are less than the last digit of SAFE.
LIFTED, FLOOR = 1e50, 1e-120


@part
def rescale(nodes, step, least, first, last, runs, span, work, lossy):
    """Multiply the leaves of rows whose highest has left the range by a power of two; were there any such rows?

    A run, alive in rows first .. last, in which something possible is less than ``least`` makes its sequence lossy.
    Where that is more than TINY, faint segments stand for fainter ones, which no gain makes true.
    """
    (q, begin_row, end_row), rescaled = span, False
    begin, stop = at(work, step, nodes[0]), at(work, step, nodes[1])
    if work.alone:
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
    """Multiply one row of some nodes."""
    for x in range(begin, stop, rows):
        values[x] *= factor


# ------------------------------------------------------------------------------
# With a table: what has started and may still end as a segment


@inlined
def note_gains(step, span, work):
    """The sum of all gains up to a step is that up to the one before, before its own are added."""
    here = unsigned(step) * span[0]
    if work.alone:
        work.total_gain[here] = work.total_gain[here - unsigned(1)] if step > 0 else 0.0
    else:
        for r in range(here, here + span[0], FOUR):
            store(load(work.total_gain, r - span[0]) if step > 0 else spread(0.0), work.total_gain, r)


@part
def enter_again(leaves, leaf, n, step, stage, r, living, work):
    """Put what has started, and may end after a step, on the scale of another step, the stage.

    If the run has ended, nothing is left of it. Where faint segments stand for fainter ones, so does FLOOR. Return the
    least of it above zero, and the highest.
    """
    low, high, q = HIGH, 0.0, unsigned(work.rows)
    floor = FLOOR if leaves.least > TINY else 0.0
    now, factor = work.total_gain[unsigned(stage) * q + r] if stage >= 0 else 0.0, 1.0
    belongs = now  # what the factor belongs to
    for begin in range(larger(0, step - leaves.longest + 1), step + 1):
        before = work.total_gain[unsigned(begin - 1) * q + r] if begin > 0 else 0.0
        if before != belongs:  # gains are rare
            belongs, factor = before, math.ldexp(1.0, int(now - before))
        started, here = at_down(work, begin, leaf) + r, entered_at(work, 0, begin) + r
        for _ in range(n):
            value = work.down[started] if living else 0.0
            if value > 0.0:
                value = larger(value * factor, floor)
                low, high = smaller(low, value), larger(high, value)
            work.entered[here] = value
            started, here = started + q, here + unsigned(work.by_leaf)
    return low, high


@part
def rescale_entered(leaves, leaf, n, step, first, last, span, work):
    """The leaves of a step were rescaled, so is what has started. Is a run first .. last lossy?

    So it is if something is less than ``least``, or so high that it would lift faint segments to what is trusted.
    """
    lossy = False
    for r in range(span[1], span[2]):
        here = unsigned(step) * span[0] + r
        if work.gain[here] != 1.0:
            work.total_gain[here] += math.log2(work.gain[here])
            low, high = enter_again(leaves, leaf, n, step, step, r, first <= r < last, work)
            lossy |= high > LIFTED or (leaves.least == TINY and low < TINY)
    return lossy


@part
def unscale(leaves, leaf, n, step, steps, span, work):
    """Make values and bars belong to the time before the leaves of a step were rescaled."""
    begin, end = step, smaller(steps, step + leaves.longest)
    if work.alone:
        begin, end = larger(0, step - leaves.longest + 1), step + 1
    for r in range(span[1], span[2]):
        gain = work.gain[unsigned(step) * span[0] + r]
        if gain != 1.0:
            enter_again(leaves, leaf, n, step, step - 1, r, True, work)
            for k in range(n):
                for t in range(begin, end):
                    work.segment_bar[entered_at(work, k, t) + r] *= gain
