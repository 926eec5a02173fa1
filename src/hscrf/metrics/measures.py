"""Accuracy, confusion, segments and boundaries of one level or of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints, whole_number
from hscrf.metrics.cells import Cells, cells_of, chosen_level, known_cells, level_names, mean_of, pairs_of
from hscrf.metrics.matching import (
    codes_of,
    count_boundaries,
    score_segments,
    score_tolerant,
    warn_of_single_steps,
)
from hscrf.metrics.scores import SegmentScores


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

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        The truth and the prediction, in any form that ``fit`` takes. Steps unknown in the truth are left out.
    level : str, int or None
        The level. None means every level but a dummy root.
    scheme : str or dict
        How columns are written.

    Returns
    -------
    float or dict of str to float
        A number for one level, or a dict by level; nan if no step is known.

    Examples
    --------
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
    """Return the share of time steps with the right state at all levels.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        The truth and the prediction, in any form that ``fit`` takes. Only steps known at all levels count.
    scheme : str or dict
        How columns are written.

    Returns
    -------
    float
        nan if no step is known at all levels.

    Examples
    --------
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
    """Count the time steps by true state and predicted state.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        The truth and the prediction, in any form that ``fit`` takes. Steps unknown in the truth are left out.
    level : str, int or None
        The level. None means the only one.
    scheme : str or dict
        How columns are written.

    Returns
    -------
    counts : ndarray of shape (S, S)
        The number of steps of each true state (rows) with each predicted state (columns).
    names : tuple
        The names of the S states.

    Examples
    --------
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
    tolerance: int = 0,
) -> SegmentScores:
    """Count the segments of one level that have the right start, stop and state, as conlleval does.

    The total is the micro average; ``macro_f1`` is the mean over labels. If all segments of a level have one step, its
    F1 is the accuracy of steps, and a warning is issued.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        In any form that ``fit`` takes. The level must be known completely on both sides.
    level : str, int or None
        The level. None means the only one.
    ignore : iterable of labels
        Segments of these labels are left out on both sides.
    scheme : str or dict
        How columns are written.
    tolerance : int
        The number of steps by which start and stop may each be wrong. Each segment is matched at most once, and the
        number of matches is the largest possible.

    Returns
    -------
    SegmentScores

    Raises
    ------
    ValueError
        If the tolerance is negative, or labels are unknown or of different lengths.

    Examples
    --------
    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"phrase": ["NP", "VP", "O"]}, max_duration={"phrase": None})
    >>> truth = [Labels.from_columns(topology, {"phrase": ["NP", "NP", "VP", "O", "NP"]})]
    >>> guess = [Labels.from_columns(topology, {"phrase": ["NP", "NP", "NP", "O", "NP"]})]
    >>> scores = segment_scores(truth, guess, "phrase")
    >>> scores.precision, round(scores.recall, 3), scores.per_label["VP"]
    (0.5, 0.333, Score(correct=0, predicted=0, support=1))
    >>> round(segment_scores(truth, guess, "phrase", tolerance=1).recall, 3)
    0.667
    """
    whole_number(tolerance, "tolerance", least=0)
    pairs = pairs_of(y_true, y_pred, scheme)
    chosen = chosen_level(pairs, level)
    warn_of_single_steps(pairs, chosen)
    cells = known_cells(pairs, chosen)
    return score_segments(cells, ignore) if tolerance == 0 else score_tolerant(cells, tolerance, ignore)


def boundary_f1(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    level: str | int | None = None,
    tolerance: int = 0,
    scheme: Any = "auto",
) -> float:
    """Return the F1 of the times where a new segment begins within a sequence, whatever its state.

    A filler such as O has the boundaries of its parent: a wrong boundary of the parent counts at the filler's level
    too.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        In any form that ``fit`` takes. The level must be known completely on both sides.
    level : str, int or None
        The level. None means the only one.
    tolerance : int
        A predicted boundary is right if a true one is at most this number of steps away. Each boundary is matched at
        most once, and the number of matches is the largest possible.
    scheme : str or dict
        How columns are written.

    Returns
    -------
    float
        Between 0 and 1; 1 if neither side has a boundary.

    Raises
    ------
    ValueError
        If the tolerance is negative, or labels are unknown or of different lengths.

    Examples
    --------
    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"phrase": ["NP", "O"]}, max_duration={"phrase": None})
    >>> truth = [Labels.from_columns(topology, {"phrase": ["NP", "NP", "O", "O"]})]
    >>> guess = [Labels.from_columns(topology, {"phrase": ["NP", "O", "O", "O"]})]
    >>> boundary_f1(truth, guess, "phrase"), boundary_f1(truth, guess, "phrase", tolerance=1)
    (0.0, 1.0)
    """
    whole_number(tolerance, "tolerance", least=0)
    pairs = pairs_of(y_true, y_pred, scheme)
    matched, total = count_boundaries(known_cells(pairs, chosen_level(pairs, level)), tolerance)
    return 2 * matched / total if total else 1.0


def exact_match(
    y_true: Sequence[Any], y_pred: Sequence[Any], level: str | int | None = None, scheme: Any = "auto"
) -> float:
    """Return the share of sequences whose states and boundaries are all right, at one level or at all.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        In any form that ``fit`` takes. The levels must be known completely on both sides.
    level : str, int or None
        The level. None means all levels.
    scheme : str or dict
        How columns are written.

    Returns
    -------
    float
        nan without sequences.

    Examples
    --------
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
    """Share of the known steps with the right state."""
    known = cells.true >= 0
    return mean_of((cells.true == cells.pred)[known])


def right_tags(cells: Cells) -> NDArray[np.bool_]:
    """Which steps have the right BIO tag: the right state, and except for O a segment that begins in both or none."""
    begins, others = (np.append(1, ends[:-1]) == 1 for ends in (cells.true_ends, cells.pred_ends))
    found: NDArray[np.bool_] = np.isin(cells.true, codes_of(cells, ("O",))) | (begins == others)
    return found & (cells.true == cells.pred)


def right_sequences(cells: Cells) -> NDArray[np.bool_]:
    """Which sequences (n,) have every state and end of the level right."""
    wrong = (cells.true != cells.pred) | (cells.true_ends != cells.pred_ends)
    return np.diff(np.append(0, np.cumsum(wrong))[cells.stops], prepend=0) == 0
