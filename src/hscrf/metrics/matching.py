"""Match true and predicted segments: exactly, within a tolerance, by overlap, or as a sequence of labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.metrics.cells import Cells, Pairs
from hscrf.metrics.scores import Score, SegmentScores, total_of

Listed = tuple[Ints, Ints, Ints]  # start, stop and state of the segments of one sequence


# -- exact


def score_segments(cells: Cells, ignore: Iterable[Any]) -> SegmentScores:
    """Count the segments that have the right start, stop and state."""
    size = len(cells.names)
    true_key, true_state = _segments(cells.true, cells.true_ends)
    pred_key, pred_state = _segments(cells.pred, cells.pred_ends)
    _, i, j = np.intersect1d(true_key, pred_key, assume_unique=True, return_indices=True)
    both = true_state[i][true_state[i] == pred_state[j]]
    counts = np.array([np.bincount(state, minlength=size) for state in (both, pred_state, true_state)])
    counts[:, codes_of(cells, ignore)] = 0
    return scores_of(cells, counts)


def _segments(states: Ints, ends: NDArray[np.int8]) -> tuple[Ints, Ints]:
    """A number for the start and stop of each segment, and its state."""
    stop = np.flatnonzero(ends) + 1
    start = np.append(0, stop)[:-1]
    return start * (len(states) + 1) + stop, states[start]


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
    """F1@IoU of one level."""
    skipped, size = codes_of(cells, ignore), len(cells.names)
    counts = np.zeros((3, size), dtype=np.int64)  # correct, predicted, support
    for true, pred in zip(*listed_segments(cells, skipped), strict=True):
        np.add.at(counts[0], pred[2][matched_by_overlap(true, pred, overlap)], 1)
        np.add.at(counts[1], pred[2], 1)
        np.add.at(counts[2], true[2], 1)
    return scores_of(cells, counts)


def score_tolerant(cells: Cells, tolerance: int, ignore: Iterable[Any]) -> SegmentScores:
    """Count segments of the right label with start and stop within the tolerance, each matched at most once."""
    skipped, size = codes_of(cells, ignore), len(cells.names)
    counts = np.zeros((3, size), dtype=np.int64)
    for true, pred in zip(*listed_segments(cells, skipped), strict=True):
        for state in np.intersect1d(true[2], pred[2]):
            one, other = ([s.tolist() for s in (a[c == state], b[c == state])] for a, b, c in (true, pred))
            counts[0, state] += matched_within(one, other, tolerance)
        np.add.at(counts[1], pred[2], 1)
        np.add.at(counts[2], true[2], 1)
    return scores_of(cells, counts)


def scores_of(cells: Cells, counts: Ints) -> SegmentScores:
    """The scores of labels from counts (3, S): correct, predicted and support."""
    rows = zip(cells.names, *counts.tolist(), strict=True)
    return total_of({name: Score(*row) for name, *row in rows if any(row)})


def edit_scores(cells: Cells, ignore: Iterable[Any]) -> list[float]:
    """The edit score of each sequence."""
    true, pred = listed_segments(cells, codes_of(cells, ignore))
    return [_edit(one[2].tolist(), other[2].tolist()) for one, other in zip(true, pred, strict=True)]


def _edit(one: list[int], other: list[int]) -> float:
    longest = max(len(one), len(other))
    return 1 - distance(one, other) / longest if longest else 1.0


def distance(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The Levenshtein distance: the least number of insertions, deletions and substitutions."""
    row = np.arange(len(other) + 1)
    symbols, places = np.array(other, dtype=np.int64), np.arange(len(other) + 1)
    for n, symbol in enumerate(one, start=1):
        best = np.minimum(row[1:] + 1, row[:-1] + (symbols != symbol))  # delete, or keep or substitute
        row = np.minimum.accumulate(np.append(n, best) - places) + places  # insert
    return int(row[-1])


def matched_by_overlap(true: Listed, pred: Listed, overlap: float) -> NDArray[np.bool_]:
    """Which predicted segments are right; see :func:`overlap_scores`."""
    right = np.zeros(pred[0].size, dtype=bool)
    taken = np.zeros(true[0].size, dtype=bool)
    for k, (start, stop, state) in enumerate(zip(*pred, strict=True)):
        common = np.minimum(true[1], stop) - np.maximum(true[0], start)
        share = np.where(true[2] == state, common / (np.maximum(true[1], stop) - np.minimum(true[0], start)), 0)
        best = int(share.argmax()) if share.size else -1
        if best >= 0 and share[best] >= overlap and not taken[best]:
            right[k] = taken[best] = True
    return right


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


def listed_segments(cells: Cells, skipped: Ints) -> tuple[list[Listed], list[Listed]]:
    """The segments of each sequence of both sides, without those of the skipped states; steps count from 0."""
    first = np.append(0, cells.stops[:-1])
    sides = []
    for states, ends in ((cells.true, cells.true_ends), (cells.pred, cells.pred_ends)):
        stop = np.flatnonzero(ends) + 1
        start = np.append(0, stop[:-1])[: stop.size]
        state = states[start]
        kept = ~np.isin(state, skipped)
        start, stop, state = start[kept], stop[kept], state[kept]
        cuts = np.searchsorted(start, cells.stops)[:-1]
        parts = (np.split(array, cuts) for array in (start, stop, state))
        sides.append([(a - o, b - o, c) for a, b, c, o in zip(*parts, first, strict=True)] if first.size else [])
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
