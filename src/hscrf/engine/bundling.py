"""Which runs walk side by side, see ``kernels.runs``: starts of a segmental level, or whole sequences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints, ranges
from hscrf.engine.kernels.layout import (
    AHEAD,
    BLOCK,
    COUNT,
    END,
    INIT,
    SINCE,
    STEPS,
    TRANS,
    UNTIL,
    Layer,
)

SPARSE = 4  # a bundle of starts is worth its rows if at least one in so many is alive, over all steps of its blocks
FEW = 8  # if less than one in so many would be left alone they go along: alone they need kernels of their own
LONG = 64  # from this length of segments on, more rows are worth the steps in which not all of them are alive
MANY = 32  # so many sequences walk side by side, or half of them if they would keep more than CACHED numbers
FULL = 1.5  # bundles of sequences need two rows of three alive: tokens must be turned for them
CACHED, ROOM = 2**19, 2**16  # ROOM: numbers that one sequence may keep
# Multiply-adds of all runs of a layer. Bundles of fewer save less than a millisecond, and need kernels of their own,
# which take seconds to compile: see ``benchmarks/rows.py``.
WORTH = 2**16


class Bundling(NamedTuple):
    """The bundles of a layer, and the runs that go alone."""

    rows: int
    bundles: Ints  # (n, 5)
    runs: Ints  # (m, 5)
    apart: bool  # are the runs whole sequences, each with its own time
    lone: Layer | None  # with the runs that go alone, None if there are none

    @property
    def steps(self) -> int:
        """Those of the longest bundle."""
        return int(self.bundles[:, STEPS].max(initial=0))


# ------------------------------------------------------------------------------
# Starts of a segmental level


def rows_for(layer: Layer, longest: int, segmental: bool) -> int:
    """How many starts of a level with segments up to ``longest`` walk side by side, 0 if none should.

    A window of R starts takes R + longest - 1 steps, and wide groups of children keep the lanes full without rows. The
    rule is that of ``benchmarks/rows.py``.
    """
    widest = int(layer.node[COUNT].max())
    if longest < widest / (4 if segmental else 2):
        return 0
    return 32 if longest >= LONG and not segmental else 16


def windows(layer: Layer, offsets: Ints, segmental: bool) -> Bundling | None:
    """Bundles of consecutive starts; those in which few are alive at a time are left to go alone."""
    rows = rows_for(layer, int(layer.reach.max(initial=0)), segmental)
    if not rows:
        return None
    top, since = np.nonzero(layer.reach.T)
    until = since + layer.reach[since, top]
    sequence = np.searchsorted(offsets, since, side="right") - 1
    group = (top * offsets.size + sequence) * (len(layer.reach) // rows + 1) + (since - offsets[sequence]) // rows
    runs = np.column_stack([since, until, -since, sequence, np.zeros_like(since)])
    return gather(layer, rows, SPARSE, rows if segmental else BLOCK, top, group, runs, False)


# ------------------------------------------------------------------------------
# Sequences


def sequences(layer: Layer, offsets: Ints) -> Bundling | None:
    """Bundles of whole sequences of like length, if they share all tables and nothing is known of their ends."""
    first, lengths = offsets[:-1], np.diff(offsets)
    if lengths.size * FULL < BLOCK or layer.node[[INIT + 1, TRANS + 1, END + 1]].any():
        return None
    nodes = int((layer.level_at[:, -1] - layer.level_at[:, 0]).max())
    rows = MANY if lengths.mean() * nodes * MANY <= CACHED else MANY // 2
    whole = (layer.reach[first] > 0) & (are_free(layer, offsets) & (lengths * nodes <= ROOM))[:, None]
    order = np.argsort(lengths, kind="stable")
    top, place = np.nonzero(whole[order].T)
    sequence = order[place]
    group = top * (lengths.size // rows + 1) + (np.arange(top.size) - np.searchsorted(top, top)) // rows
    longest = np.searchsorted(group, group, side="right") - 1
    clock = first[sequence[longest]]  # a bundle has the time of its longest sequence
    runs = np.column_stack([clock, clock + lengths[sequence], -clock, sequence, first[sequence] - clock])
    return gather(layer, rows, FULL, BLOCK, top, group, runs, True)


def are_free(layer: Layer, offsets: Ints) -> NDArray[np.bool_]:
    """Of which sequences (n,) no end below the top is known, except the last."""
    depth = layer.level_at.shape[1] - 2
    follows = np.logical_and.reduce(layer.may_cross[1 : depth + (1 if layer.unit else 2)])
    follows[offsets[1:] - 1] = True
    return np.logical_and.reduceat(follows & layer.may_end[1:].all(axis=0), offsets[:-1])


# ------------------------------------------------------------------------------
# Both


def gather(
    layer: Layer, rows: int, sparse: float, block: int, top: Ints, group: Ints, runs: Ints, apart: bool
) -> Bundling | None:
    """Bundles of the runs of each group, which stand together; where not one in ``sparse`` is alive they go alone."""
    since, until = runs[:, SINCE], runs[:, UNTIL]
    begin = np.flatnonzero(np.diff(group, prepend=-1))
    if not begin.size:
        return None
    end = np.append(begin[1:], since.size)
    alive, steps = np.add.reduceat(until - since, begin), until[end - 1] - since[begin]
    if alive @ pairs_of(layer)[top[begin]] < WORTH:
        return None
    kept = alive * sparse >= rows_computed(block, begin, end, since, until)
    if not kept.any():
        return None
    if alive[~kept].sum() * FEW < alive.sum():
        kept[:] = True
    begin, end = begin[kept], end[kept]
    first = since[begin]
    bundles = np.column_stack([top[begin], first, steps[kept], begin, end])
    bundles = bundles[np.argsort(first, kind="stable")]  # top states that write to the same places after each other
    left = layer.reach.copy()
    taken = ranges(begin, end - begin)
    left[since[taken] + runs[taken, AHEAD], top[taken]] = 0
    lone = layer._replace(reach=left) if left.any() else None
    return Bundling(rows, bundles, runs, apart, lone)


def pairs_of(layer: Layer) -> Ints:
    """How many pairs of siblings there are below each top state."""
    return np.add.reduceat(layer.node[COUNT] ** 2, layer.level_at[:, 0])


def rows_computed(block: int, begin: Ints, end: Ints, since: Ints, until: Ints) -> Ints:
    """How many numbers of a node are computed for each bundle: a block lives from its first start to its last end."""
    blocks = -(-(end - begin) // block)
    first = ranges(np.zeros_like(begin), blocks) * block + np.repeat(begin, blocks)
    last = np.minimum(first + block, np.repeat(end, blocks)) - 1
    return np.add.reduceat(block * (until[last] - since[first]), np.cumsum(blocks) - blocks)
