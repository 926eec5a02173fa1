"""Match true and predicted segments: exactly, within a tolerance, by overlap, or as a sequence of labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Ints, ranges
from hscrf.metrics.cells import Cells, Pairs
from hscrf.metrics.scores import Score, SegmentScores, total_of

Listed = tuple[Ints, Ints, Ints]  # start, stop and state of some segments, in the order of time


# -- exact


def score_segments(cells: Cells, ignore: Iterable[Any]) -> SegmentScores:
    """Count the segments that have the right start, stop and state."""
    true, pred = both_segments(cells, ignore)
    keys = [start * (cells.true.size + 1) + stop for start, stop, _ in (true, pred)]
    _, i, j = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    return scores_of(cells, true[2][i][true[2][i] == pred[2][j]], pred, true)


def count_boundaries(cells: Cells, tolerance: int) -> tuple[int, int]:
    """The number of pairs of boundaries within a tolerance, and the number of boundaries of both sides."""
    matched = total = 0
    start = 0
    for stop in cells.stops.tolist():
        true = np.flatnonzero(cells.true_ends[start : stop - 1]).tolist()
        pred = np.flatnonzero(cells.pred_ends[start : stop - 1]).tolist()
        matched += _matches(true, pred, tolerance)
        total += len(true) + len(pred)
        start = stop
    return matched, total


def _matches(one: list[int], other: list[int], tolerance: int) -> int:
    """The most pairs of two sorted lists that lie within the tolerance, each number used at most once."""
    matched = i = j = 0
    while i < len(one) and j < len(other):
        if abs(one[i] - other[j]) <= tolerance:
            matched, i, j = matched + 1, i + 1, j + 1
        elif one[i] < other[j]:
            i += 1
        else:
            j += 1
    return matched


# -- within a tolerance, by overlap, as a sequence of labels


def score_overlaps(cells: Cells, overlap: float, ignore: Iterable[Any]) -> SegmentScores:
    """F1@IoU of one level; see :func:`overlap_scores`."""
    true, pred = both_segments(cells, ignore)
    best, share = best_overlaps(true, pred)
    near = np.flatnonzero(share >= overlap)
    right = near[np.unique(best[near], return_index=True)[1]]  # the first that is matched to each true segment
    return scores_of(cells, pred[2][right], pred, true)


def best_overlaps(true: Listed, pred: Listed) -> tuple[Ints, Floats]:
    """For each predicted segment the true one of its state that it overlaps most, the first of several, and the share.

    The share is intersection over union, 0 if there is no such segment.
    """
    first = np.searchsorted(true[1], pred[0], side="right")
    counts = np.searchsorted(true[0], pred[1], side="left") - first
    p, t = np.repeat(np.arange(counts.size), counts), ranges(first, counts)  # all pairs that have a step in common
    starts, stops = (true[0][t], pred[0][p]), (true[1][t], pred[1][p])
    shares = (np.minimum(*stops) - np.maximum(*starts)) / (np.maximum(*stops) - np.minimum(*starts))
    shares[true[2][t] != pred[2][p]] = 0.0
    order = np.lexsort((t, -shares, p))
    chosen = order[np.unique(p[order], return_index=True)[1]]
    best, share = np.full(counts.size, -1), np.zeros(counts.size)
    best[p[chosen]], share[p[chosen]] = t[chosen], shares[chosen]
    return best, share


def score_tolerant(cells: Cells, tolerance: int, ignore: Iterable[Any]) -> SegmentScores:
    """Count segments of the right label with start and stop within the tolerance, each matched at most once."""
    right: list[int] = []
    for true, pred in zip(*listed_segments(cells, ignore), strict=True):
        for state in np.intersect1d(true[2], pred[2]).tolist():
            one, other = ([s.tolist() for s in (a[c == state], b[c == state])] for a, b, c in (true, pred))
            right += [state] * matched_within(one, other, tolerance)
    true, pred = both_segments(cells, ignore)
    return scores_of(cells, np.array(right, dtype=np.int64), pred, true)


def scores_of(cells: Cells, right: Ints, pred: Listed, true: Listed) -> SegmentScores:
    """The scores of labels, from the states of the right segments, and all predicted and true segments."""
    counts = (np.bincount(states, minlength=len(cells.names)).tolist() for states in (right, pred[2], true[2]))
    rows = zip(cells.names, *counts, strict=True)
    return total_of({name: Score(*row) for name, *row in rows if any(row)})


def edit_scores(cells: Cells, ignore: Iterable[Any]) -> list[float]:
    """The edit score of each sequence."""
    true, pred = listed_segments(cells, ignore)
    return [_edit(one[2].tolist(), other[2].tolist()) for one, other in zip(true, pred, strict=True)]


def _edit(one: list[int], other: list[int]) -> float:
    longest = max(len(one), len(other))
    return 1 - distance(one, other) / longest if longest else 1.0


def distance(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The Levenshtein distance: the least number of insertions, deletions and substitutions."""
    begin = _equal(one, other)
    one, other = one[begin:], other[begin:]
    stop = _equal(one[::-1], other[::-1])
    one, other = one[: len(one) - stop], other[: len(other) - stop]
    row = np.arange(len(other) + 1)
    symbols, places = np.array(other, dtype=np.int64), np.arange(len(other) + 1)
    for n, symbol in enumerate(one, start=1):
        best = np.minimum(row[1:] + 1, row[:-1] + (symbols != symbol))  # delete, or keep or substitute
        row = np.minimum.accumulate(np.append(n, best) - places) + places  # insert
    return int(row[-1])


def _equal(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The number of first elements that are equal."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def matched_within(one: Sequence[list[int]], other: Sequence[list[int]], tolerance: int) -> int:
    """The most pairs of segments, given as starts and stops in order, whose boundaries differ by at most the tolerance.

    Both lists are disjoint segments in the order of time, so starts and stops grow together, and pairs that cross can
    be uncrossed. A segment that begins, or stops, too early for one segment does so for all later ones.
    """
    matched = i = j = 0
    while i < len(one[0]) and j < len(other[0]):
        start, stop = other[0][j] - one[0][i], other[1][j] - one[1][i]
        early, late = max(start, stop) > tolerance, min(start, stop) < -tolerance
        matched += not (early or late)
        i, j = i + (early or not late), j + (late or not early)
    return matched


def both_segments(cells: Cells, ignore: Iterable[Any]) -> tuple[Listed, Listed]:
    """The true and the predicted segments of all sequences end to end, without those of the ignored labels."""
    skipped = codes_of(cells, ignore)
    sides = []
    for states, ends in ((cells.true, cells.true_ends), (cells.pred, cells.pred_ends)):
        stop = np.flatnonzero(ends) + 1
        start = np.append(0, stop[:-1])[: stop.size]
        kept = ~np.isin(states[start], skipped)
        sides.append((start[kept], stop[kept], states[start][kept]))
    return sides[0], sides[1]


def listed_segments(cells: Cells, ignore: Iterable[Any]) -> tuple[list[Listed], list[Listed]]:
    """The segments of each sequence of both sides, without those of the ignored labels; steps count from 0."""
    firsts = np.append(0, cells.stops[:-1])[: cells.stops.size]
    sides: list[list[Listed]] = []
    for start, stop, state in both_segments(cells, ignore):
        cuts = [0, *np.searchsorted(start, cells.stops).tolist()]
        slices = [slice(a, b) for a, b in pairwise(cuts)]
        own = zip(slices, firsts, strict=True)
        sides.append([(start[at] - first, stop[at] - first, state[at]) for at, first in own])
    return sides[0], sides[1]


def codes_of(cells: Cells, names: Iterable[Any]) -> Ints:
    """The codes of those given labels that occur."""
    return np.array([cells.names.index(name) for name in names if name in cells.names], dtype=np.int64)


def warn_of_single_steps(pairs: Pairs, level: str | int) -> None:
    """Warn that the segments of a level have one step each by its topology, so segment measures count steps."""
    topologies = [y.topology for y in pairs[0]] if pairs else []
    if any(
        t.unit_bottom and t.level(level) == t.depth - 1 for t in topologies if level in (*t.levels, *range(t.depth))
    ):
        warnings.warn(
            f"every segment of level {level!r} has one step, so its segment F1 is the accuracy of its steps; to score "
            f"runs of equal labels, give Labels of a topology with max_duration={{{level!r}: None}}",
            stacklevel=3,
        )
