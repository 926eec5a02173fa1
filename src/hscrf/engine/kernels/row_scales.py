"""LINEAR in many rows: the highest leaf of every row stays in a comfortable range."""

import math

from hscrf.engine.kernels.arithmetic import HIGH, LOW, TINY
from hscrf.engine.kernels.compile import inlined, part, unsigned
from hscrf.engine.kernels.lanes import FOUR, higher, lanes, larger, load, smaller, spread, where_above
from hscrf.engine.kernels.layout import SEQUENCE
from hscrf.engine.kernels.row_trie import at, at_down

LIFTED = 1e40  # times the faintest segment this is still far below what is trusted, see ``passes.FAINTEST``


@inlined
def lowest(low, value):
    """The lower of the two, if the value is above zero."""
    return where_above(where_above(value, spread(0.0), low, spread(0.0)), value, value, low)


@part
def rescale(nodes, step, least, first, last, runs, span, work, lossy):
    """Multiply the leaves of rows whose highest has left the range by a power of two; were there any such rows?

    A run, alive in rows first .. last, in which something possible is less than ``least`` makes its sequence lossy.
    Where that is more than TINY, faint segments stand for fainter ones, which no gain makes true.
    """
    (q, begin_row, end_row), rescaled = span, False
    begin, stop = at(work, step, nodes[0]), at(work, step, nodes[1])
    for r in range(begin_row, end_row, FOUR):
        high, low = spread(0.0), spread(HIGH)
        for x in range(begin + r, stop + r, q):
            value = load(work.up, x)
            high, low = higher(high, value), lowest(low, value)
        highs, lows = lanes(high), lanes(low)
        for lane in range(4):
            row, gain, highest = r + unsigned(lane), 1.0, highs[lane]
            if highest > 0.0 and not LOW < highest < HIGH:
                _, exponent = math.frexp(highest)
                gain = math.ldexp(1.0, -exponent)
                work.scale[row] += exponent * math.log(2.0)
                multiply_row(work.up, begin + row, stop + row, q, gain)
                rescaled = True
            trusted = gain if least == TINY else smaller(gain, 1.0)
            if lows[lane] * trusted < least and first <= row < last:
                lossy[runs[row, SEQUENCE]] = True
            work.gain[unsigned(step) * q + row] = gain
    return rescaled


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


@part
def rescale_entered(leaves, nodes, step, first, last, span, work):
    """With a table: what has started and may still end as a segment is multiplied, too. Is a run first .. last lossy?

    So it is if something is less than ``least``, or so high that it would lift faint segments to what is trusted.
    """
    lossy, steps = False, (larger(0, step - leaves.longest + 1), step + 1)
    for r in range(span[1], span[2]):
        gain = work.gain[unsigned(step) * span[0] + r]
        if gain != 1.0:
            low, high = multiply_steps(work.down, nodes, steps, r, work, gain)
            unsure = low < leaves.least or (leaves.least > TINY and high > LIFTED)
            lossy |= unsure and first <= r < last
    return lossy


@part
def unscale(leaves, nodes, step, steps, span, work):
    """Make values and bars belong to the time before the leaves of a step were rescaled."""
    earlier, later = (larger(0, step - leaves.longest + 1), step + 1), (step, smaller(steps, step + leaves.longest))
    for r in range(span[1], span[2]):
        gain = work.gain[unsigned(step) * span[0] + r]
        if gain != 1.0:
            multiply_steps(work.down, nodes, earlier, r, work, 1.0 / gain)
            multiply_steps(work.later, nodes, later, r, work, gain)
