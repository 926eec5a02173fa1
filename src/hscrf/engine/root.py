"""The root's segments: one over each whole sequence, so their table needs no kernel.

What ``kernels.tables`` does for the segments of any level, ``find_reach``, ``find_columns``, ``add_persist`` and its
reverse, is done here for one segment a sequence, by whole columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints, ranges
from hscrf.engine.kernels.layout import NOWHERE


def reach_of_roots(
    offsets: Ints, allowed: NDArray[np.bool_] | None, may_go_on: NDArray[np.bool_], longest: Ints
) -> NDArray[np.int64]:
    """How many steps a segment of each root state lasts from each step (N, S): whole sequences, or none (0)."""
    first, lengths = offsets[:-1], np.diff(offsets)
    going = may_go_on.copy()
    going[offsets[1:] - 1] = True
    possible = np.logical_and.reduceat(going, first)[:, None] & (lengths[:, None] <= longest)
    if allowed is not None:
        possible &= np.logical_and.reduceat(allowed, first, axis=0)
    reach = np.zeros((offsets[-1], longest.size), dtype=np.int64)
    reach[first] = np.where(possible, lengths[:, None], 0)
    return reach


def columns_of_roots(offsets: Ints, reach: Ints, may_end: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints, int]:
    """Base, skip and width (N,) of the table, see ``plan.SegmentTable``, and how many columns it has."""
    last, lengths = offsets[1:] - 1, np.diff(offsets)
    there = may_end[last] & (reach[offsets[:-1]] > 0).any(axis=1)
    last, before = last[there], lengths[there] - 1
    base = np.full(offsets[-1], NOWHERE, dtype=np.int64)
    skip, width = np.zeros((2, base.size), dtype=np.int64)
    base[last] = np.arange(last.size) - before
    skip[last], width[last] = before, 1
    return base, skip, width, last.size


class Roots(NamedTuple):
    """The root's segments, one for each column of their table."""

    first: Ints  # (columns,) step
    last: Ints
    lag: Ints  # how many steps the one lies before the other
    barred: NDArray[np.bool_] | None  # (S, columns) which are not admissible; None: all are
    rows: int  # steps of all sequences


def roots_of(width: Ints, skip: Ints, reach: Ints, shortest: Ints) -> Roots:
    """The segments of a table."""
    last = np.flatnonzero(width)
    lag = skip[last]
    first = last - lag
    barred = (lag >= reach[first].T) | (lag + 1 < shortest[:, None])
    return Roots(first, last, lag, barred if barred.any() else None, width.size)


def add_persist_of_roots(roots: Roots, own: Sequence[Floats], table: Floats) -> None:
    """Add log persist of every root segment to ``table`` (S, columns); -inf where it is not admissible."""
    token, start, stop, duration, segment = own
    first, last, lag, barred, rows = roots
    if not last.size:
        return
    if token.size:
        borders = np.column_stack([first, last + 1]).ravel()[:-1]  # the sums in between are of other sequences
        table += np.add.reduceat(token[: last[-1] + 1], borders, axis=0)[::2].T
    if start.size:
        table += start[first].T
    if stop.size:
        table += stop[last].T
    if duration.size:
        table += duration[lag].T
    if segment.size:
        table += segment[first * (segment.shape[0] // rows) + lag].T
    if barred is not None:
        table[barred] = -np.inf


def add_persist_of_roots_back(roots: Roots, post: Floats, found: Sequence[Floats], own: Sequence[Floats]) -> None:
    """Reverse of ``add_persist_of_roots``: add the posteriors (S, columns) to states, endings and counts."""
    (state, ending), post = found, post.T
    start, stop, duration, segment = own
    first, last, lag, _, rows = roots
    each = np.repeat(post, lag + 1, axis=0)
    if len(each) == len(state):
        state += each
    else:
        state[ranges(first, lag + 1)] += each
    ending[last] += post.sum(axis=1)
    if start.size:
        start[first] += post
    if stop.size:
        stop[last] += post
    if duration.size:
        np.add.at(duration, lag, post)
    if segment.size:
        segment[first * (segment.shape[0] // rows) + lag] += post
