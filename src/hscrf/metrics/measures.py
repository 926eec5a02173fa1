"""Accuracy, confusion, segments and boundaries of one level or of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.metrics.cells import Cells, cells_of, chosen_level, known_cells, level_names, mean_of, pairs_of, ratio


@dataclass(frozen=True)
class Score:
    """Counts of segments, and the ratios they give; a ratio of nothing is 0, as in conlleval.

    >>> score = Score(correct=2, predicted=4, support=3)
    >>> score.precision, round(score.recall, 3), round(score.f1, 3)
    (0.5, 0.667, 0.571)
    """

    correct: int  # found with the right start, stop and state
    predicted: int
    support: int  # in the truth

    @property
    def precision(self) -> float:
        """Share of the predicted segments that are right."""
        return ratio(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        """Share of the true segments that were found."""
        return ratio(self.correct, self.support)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return ratio(2 * self.correct, self.predicted + self.support)

    def to_dict(self) -> dict[str, float]:
        """Return ratios and counts as plain numbers."""
        ratios = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {**ratios, "support": self.support, "predicted": self.predicted, "correct": self.correct}


@dataclass(frozen=True)
class SegmentScores(Score):
    """The micro average over all labels, and the score of each."""

    per_label: dict[Any, Score] = field(default_factory=dict)


@overload
def accuracy(
    y_true: Sequence[Any], y_pred: Sequence[Any], level: None = None, scheme: Any = ...
) -> dict[str, float]: ...
@overload
def accuracy(y_true: Sequence[Any], y_pred: Sequence[Any], level: str | int, scheme: Any = ...) -> float: ...
def accuracy(
    y_true: Sequence[Any], y_pred: Sequence[Any], level: str | int | None = None, scheme: Any = "auto"
) -> dict[str, float] | float:
    """Return the share of time steps with the right state: of one level, or of every level by name.

    Steps unknown in the truth are left out; nan means that none is known. A dummy root is not listed.

    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]})
    >>> truth = [Labels.from_columns(topology, {"phrase": ["NP", "NP", "O"], "tag": ["N", "?", "V"]})]
    >>> guess = [Labels.from_columns(topology, {"phrase": ["NP", "O", "O"], "tag": ["N", "V", "V"]})]
    >>> accuracy(truth, guess, "tag")
    1.0
    >>> {level: round(share, 3) for level, share in accuracy(truth, guess).items()}
    {'phrase': 0.667, 'tag': 1.0}
    """
    pairs = pairs_of(y_true, y_pred, scheme)
    if level is not None:
        return step_accuracy(cells_of(pairs, level))
    return {name: step_accuracy(cells_of(pairs, name)) for name in level_names(pairs)}


def joint_accuracy(y_true: Sequence[Any], y_pred: Sequence[Any], scheme: Any = "auto") -> float:
    """Return the share of time steps with the right state at all levels, of those known at all levels.

    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]})
    >>> truth = [Labels.from_columns(topology, {"phrase": ["NP", "O"], "tag": ["N", "V"]})]
    >>> guess = [Labels.from_columns(topology, {"phrase": ["NP", "NP"], "tag": ["N", "V"]})]
    >>> joint_accuracy(truth, guess)
    0.5
    """
    pairs = pairs_of(y_true, y_pred, scheme)
    if not pairs:
        return float("nan")
    levels = [cells_of(pairs, name) for name in level_names(pairs)]
    known = np.all([cells.true >= 0 for cells in levels], axis=0)
    right = np.all([cells.true == cells.pred for cells in levels], axis=0)
    return mean_of(right[known])


def confusion(
    y_true: Sequence[Any], y_pred: Sequence[Any], level: str | int | None = None, scheme: Any = "auto"
) -> tuple[Ints, tuple[Any, ...]]:
    """Return how many time steps of each true state (rows) got each state (columns), and the states' names.

    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"tag": ["N", "V"]})
    >>> truth = [Labels.from_columns(topology, {"tag": ["N", "N", "V", "?"]})]
    >>> guess = [Labels.from_columns(topology, {"tag": ["N", "V", "V", "V"]})]
    >>> matrix, names = confusion(truth, guess, "tag")
    >>> matrix.tolist(), names
    ([[1, 1], [0, 1]], ('N', 'V'))
    """
    pairs = pairs_of(y_true, y_pred, scheme)
    cells = cells_of(pairs, chosen_level(pairs, level))
    size, known = len(cells.names), cells.true >= 0
    counts = np.bincount(cells.true[known] * size + cells.pred[known], minlength=size * size)
    return counts.reshape(size, size), cells.names


def segment_scores(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    level: str | int | None = None,
    ignore: Iterable[Any] = ("O",),
    scheme: Any = "auto",
) -> SegmentScores:
    """Count the segments of one level that have the right start, stop and state, as conlleval does.

    The total is micro averaged; labels in ``ignore`` are no segments. A level whose segments have unit
    length counts every time step. Without a level, the only one is meant.

    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"phrase": ["NP", "VP", "O"]}, max_duration={"phrase": None})
    >>> truth = [Labels.from_columns(topology, {"phrase": ["NP", "NP", "VP", "O", "NP"]})]
    >>> guess = [Labels.from_columns(topology, {"phrase": ["NP", "NP", "NP", "O", "NP"]})]
    >>> scores = segment_scores(truth, guess, "phrase")
    >>> scores.precision, round(scores.recall, 3), scores.per_label["VP"]
    (0.5, 0.333, Score(correct=0, predicted=0, support=1))
    """
    pairs = pairs_of(y_true, y_pred, scheme)
    return score_segments(known_cells(pairs, chosen_level(pairs, level)), ignore)


def boundary_f1(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    level: str | int | None = None,
    tolerance: int = 0,
    scheme: Any = "auto",
) -> float:
    """Return the F1 of the times where a new segment begins within a sequence, whatever its state.

    A predicted boundary is right within ``tolerance`` steps of a true one; each is matched at most once,
    and as many as can be. A filler such as O has the boundaries of its parent, so that a wrong one above counts below
    it too. Without any boundary on either side the result is 1.

    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"phrase": ["NP", "O"]}, max_duration={"phrase": None})
    >>> truth = [Labels.from_columns(topology, {"phrase": ["NP", "NP", "O", "O"]})]
    >>> guess = [Labels.from_columns(topology, {"phrase": ["NP", "O", "O", "O"]})]
    >>> boundary_f1(truth, guess, "phrase"), boundary_f1(truth, guess, "phrase", tolerance=1)
    (0.0, 1.0)
    """
    if tolerance < 0:
        raise ValueError(f"tolerance is {tolerance}; expected a number of steps, 0 or more")
    pairs = pairs_of(y_true, y_pred, scheme)
    return score_boundaries(known_cells(pairs, chosen_level(pairs, level)), tolerance)


def exact_match(
    y_true: Sequence[Any], y_pred: Sequence[Any], level: str | int | None = None, scheme: Any = "auto"
) -> float:
    """Return the share of sequences whose states and boundaries are all right, at one level or at all.

    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"tag": ["N", "V"]})
    >>> truth = [Labels.from_columns(topology, {"tag": tags}) for tags in (["N", "V"], ["N"])]
    >>> guess = [Labels.from_columns(topology, {"tag": tags}) for tags in (["N", "V"], ["V"])]
    >>> exact_match(truth, guess)
    0.5
    """
    pairs = pairs_of(y_true, y_pred, scheme)
    if not pairs:
        return float("nan")
    names = level_names(pairs) if level is None else [level]
    return mean_of(np.all([right_sequences(known_cells(pairs, name)) for name in names], axis=0))


def step_accuracy(cells: Cells) -> float:
    known = cells.true >= 0
    return mean_of((cells.true == cells.pred)[known])


def tag_accuracy(cells: Cells, outside: Iterable[Any] = ("O",)) -> float:
    """Share of the steps whose BIO tag is right: the state, and whether a segment begins; ``outside`` has no begin."""
    begins = []
    for ends in (cells.true_ends, cells.pred_ends):
        begins.append(np.append(1, ends[:-1]) == 1)
    no_prefix = np.isin(cells.true, [cells.names.index(name) for name in outside if name in cells.names])
    return mean_of((cells.true == cells.pred) & (no_prefix | (begins[0] == begins[1])))


def score_segments(cells: Cells, ignore: Iterable[Any]) -> SegmentScores:
    size, skipped = len(cells.names), set(ignore)
    true_key, true_state = _segments(cells.true, cells.true_ends)
    pred_key, pred_state = _segments(cells.pred, cells.pred_ends)
    _, i, j = np.intersect1d(true_key, pred_key, assume_unique=True, return_indices=True)
    both = true_state[i][true_state[i] == pred_state[j]]
    counts = (np.bincount(state, minlength=size).tolist() for state in (both, pred_state, true_state))
    rows = zip(cells.names, *counts, strict=True)
    return total_of({name: Score(*row) for name, *row in rows if name not in skipped and any(row)})


def _segments(states: Ints, ends: NDArray[np.int8]) -> tuple[Ints, Ints]:
    """A number for the start and stop of each segment, and its state."""
    stop = np.flatnonzero(ends) + 1
    start = np.append(0, stop)[:-1]
    return start * (len(states) + 1) + stop, states[start]


def total_of(table: dict[Any, Score]) -> SegmentScores:
    """The micro average over a table of labels."""
    correct = sum(score.correct for score in table.values())
    predicted = sum(score.predicted for score in table.values())
    return SegmentScores(correct, predicted, sum(score.support for score in table.values()), table)


def score_boundaries(cells: Cells, tolerance: int) -> float:
    matched = total = 0
    start = 0
    for stop in cells.stops.tolist():
        true = np.flatnonzero(cells.true_ends[start : stop - 1]).tolist()
        pred = np.flatnonzero(cells.pred_ends[start : stop - 1]).tolist()
        matched += _matches(true, pred, tolerance)
        total += len(true) + len(pred)
        start = stop
    return 2 * matched / total if total else 1.0


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


def right_sequences(cells: Cells) -> NDArray[np.bool_]:
    """Which sequences (n,) have every state and end of the level right."""
    wrong = (cells.true != cells.pred) | (cells.true_ends != cells.pred_ends)
    return np.diff(np.append(0, np.cumsum(wrong))[cells.stops], prepend=0) == 0
