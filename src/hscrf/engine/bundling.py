"""Which runs of a segmental level walk side by side, see ``kernels.bundles``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hscrf.arrays import Ints, ranges
from hscrf.engine.kernels.layout import COUNT, STEPS, Layer

SPARSE = 4  # a bundle is worth its rows if at least one in so many is alive, over all its steps
FEW = 8  # if less than one in so many would be left alone they go along: alone they need kernels of their own
LONG = 64  # from this length of segments on, more rows are worth the steps in which not all of them are alive


class Bundling(NamedTuple):
    """The bundles of a layer, and the runs that go alone."""

    rows: int
    bundles: Ints  # (n, 6)
    runs: Ints  # (m, 4)
    leaves: int  # of all top states
    lone: Layer | None  # with these runs only, None if there are none

    @property
    def steps(self) -> int:
        """Those of the longest bundle."""
        return int(self.bundles[:, STEPS].max(initial=0))


def rows_for(layer: Layer, longest: int, segmental: bool) -> int:
    """How many starts of a level with segments up to ``longest`` walk side by side, 0 if none should.

    A window of R starts takes R + longest - 1 steps, and wide groups of children keep the lanes full without rows. The
    rule is that of ``benchmarks/rows.py``.
    """
    widest = int(layer.node[COUNT].max())
    if longest < widest / (4 if segmental else 2):
        return 0
    return 32 if longest >= LONG and not segmental else 16


def first_leaves(layer: Layer) -> Ints:
    """The number of the first leaf of each top state among all leaves, and the number of all (S + 1,)."""
    return np.concatenate([[0], np.cumsum(layer.level_at[:, -1] - layer.level_at[:, -2])])


def windows(layer: Layer, offsets: Ints, segmental: bool) -> Bundling | None:
    """Bundles of consecutive starts; those in which few are alive at a time are left to go alone.

    So are all runs if Markov levels of the layer have potentials of their first or last steps.
    """
    rows = rows_for(layer, int(layer.reach.max(initial=0)), segmental)
    if not rows or layer.starts or layer.stops:
        return None
    reach, leaf = layer.reach, first_leaves(layer)
    top, since = np.nonzero(reach.T)
    until = since + reach[since, top]
    sequence = np.searchsorted(offsets, since, side="right") - 1
    group = (top * offsets.size + sequence) * (len(reach) // rows + 1) + (since - offsets[sequence]) // rows
    begin = np.flatnonzero(np.diff(group, prepend=-1))
    end = np.append(begin[1:], since.size)
    alive, steps = np.add.reduceat(until - since, begin), until[end - 1] - since[begin]
    kept = alive * SPARSE >= steps * rows
    if not kept.any():
        return None
    if alive[~kept].sum() * FEW < alive.sum():
        kept[:] = True
    begin, end = begin[kept], end[kept]
    s, first = top[begin], since[begin]
    bundles = np.column_stack([s, leaf[s], first, steps[kept], begin, end])
    bundles = bundles[np.argsort(first, kind="stable")]  # top states that write to the same places after each other
    runs = np.column_stack([since, until, -since, sequence])
    left = reach.copy()
    taken = ranges(begin, end - begin)
    left[since[taken], top[taken]] = 0
    lone = layer._replace(reach=left) if left.any() else None
    return Bundling(rows, bundles, runs, int(leaf[-1]), lone)
