"""Measures of action segmentation: F1 at an overlap, edit score, mean over classes.

References
----------
- Edit score: C. Lea, A. Reiter, R. Vidal, G. D. Hager. *Segmental spatiotemporal CNNs for fine-grained action
  segmentation*. ECCV 2016.
- F1 at an overlap of 10, 25 and 50 %: C. Lea, M. D. Flynn, R. Vidal, A. Reiter, G. D. Hager. *Temporal convolutional
  networks for action segmentation and detection*. CVPR 2017.
- The set of three measures, with frame-wise accuracy: Y. Abu Farha, J. Gall. *MS-TCN: multi-stage temporal
  convolutional network for action segmentation*. CVPR 2019.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hscrf.arrays import Ints
from hscrf.metrics.cells import Cells, cells_of, chosen_level, known_cells, mean_of, pairs_of
from hscrf.metrics.matching import edit_scores, score_overlaps, warn_of_single_steps
from hscrf.metrics.scores import SegmentScores

OVERLAPS = (0.1, 0.25, 0.5)


def overlap_scores(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    level: str | int | None = None,
    overlap: float = 0.5,
    ignore: Iterable[Any] = ("O",),
    scheme: Any = "auto",
) -> SegmentScores:
    """Count predicted segments that overlap a true one of the same label: segmental F1@IoU.

    The convention of Lea et al. (2017): each predicted segment is compared with the true segment of its label that it
    overlaps most, as measured by intersection over union. It is right if that is at least ``overlap`` and no earlier
    predicted segment was matched to the same true one. Counts are added over sequences.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        In any form that ``fit`` takes. The level must be known completely on both sides.
    level : str, int or None
        The level; None means the only one.
    overlap : float
        The least intersection over union, more than 0 and at most 1. Papers report 0.1, 0.25 and 0.5.
    ignore : iterable of labels
        Background: segments of these labels are left out on both sides.
    scheme : str or dict
        How columns are written.

    Returns
    -------
    SegmentScores
        Its ``f1`` is F1@IoU between 0 and 1; ``per_label`` and ``macro_f1`` as in :func:`segment_scores`.

    Raises
    ------
    ValueError
        If the overlap is out of range, or labels are unknown or of different lengths.

    Examples
    --------
    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"action": ["cut", "mix"]}, max_duration={"action": None})
    >>> truth = [Labels.from_segments(topology, {"action": [(0, 6, "cut"), (6, 10, "mix")]})]
    >>> guess = [Labels.from_segments(topology, {"action": [(0, 3, "cut"), (3, 10, "mix")]})]
    >>> overlap_scores(truth, guess, overlap=0.25).f1, overlap_scores(truth, guess, overlap=0.5).f1
    (1.0, 1.0)
    >>> overlap_scores(truth, guess, overlap=0.55).per_label["cut"]
    Score(correct=0, predicted=1, support=1)
    """
    if not 0 < overlap <= 1:
        raise ValueError(f"overlap is {overlap}; expected a share of more than 0 and at most 1")
    pairs = pairs_of(y_true, y_pred, scheme)
    chosen = chosen_level(pairs, level)
    warn_of_single_steps(pairs, chosen)
    return score_overlaps(known_cells(pairs, chosen), overlap, ignore)


def edit_score(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    level: str | int | None = None,
    ignore: Iterable[Any] = ("O",),
    scheme: Any = "auto",
) -> float:
    """Return the segmental edit score: whether segments have the right order, whatever their boundaries.

    It is one minus the Levenshtein distance between the labels of the true and of the predicted segments, divided by
    the larger number of segments. The result is the mean over sequences (Lea et al. 2016). A sequence without segments
    on either side counts 1.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        In any form that ``fit`` takes. The level must be known completely on both sides.
    level : str, int or None
        The level. None means the only one.
    ignore : iterable of labels
        Background: segments of these labels are left out on both sides.
    scheme : str or dict
        How columns are written.

    Returns
    -------
    float
        Between 0 and 1; nan without sequences.

    Examples
    --------
    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"action": ["cut", "mix"]}, max_duration={"action": None})
    >>> truth = [Labels.from_segments(topology, {"action": [(0, 6, "cut"), (6, 10, "mix")]})]
    >>> found = [(0, 2, "cut"), (2, 3, "mix"), (3, 4, "cut"), (4, 10, "mix")]
    >>> guess = [Labels.from_segments(topology, {"action": found})]
    >>> edit_score(truth, guess)
    0.5
    """
    pairs = pairs_of(y_true, y_pred, scheme)
    return mean_of(np.array(edit_scores(known_cells(pairs, chosen_level(pairs, level)), ignore)))


def mean_class_accuracy(
    y_true: Sequence[Any], y_pred: Sequence[Any], level: str | int | None = None, scheme: Any = "auto"
) -> float:
    """Return the share of right steps of each true class, averaged over the classes.

    Rare classes have the same weight as frequent ones. In :func:`accuracy`, the frame-wise accuracy of papers on action
    segmentation, every step has the same weight.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        In any form that ``fit`` takes. Steps unknown in the truth are left out.
    level : str, int or None
        The level. None means the only one.
    scheme : str or dict
        How columns are written.

    Returns
    -------
    float
        nan if no step is known.

    Examples
    --------
    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"tag": ["N", "V"]})
    >>> truth = [Labels.from_columns(topology, {"tag": ["N", "N", "N", "V"]})]
    >>> guess = [Labels.from_columns(topology, {"tag": ["N", "N", "N", "N"]})]
    >>> mean_class_accuracy(truth, guess)
    0.5
    """
    pairs = pairs_of(y_true, y_pred, scheme)
    total, right = class_counts(cells_of(pairs, chosen_level(pairs, level)))
    return mean_of(right[total > 0] / total[total > 0])


def class_counts(cells: Cells) -> tuple[Ints, Ints]:
    """The known steps (S,) of each true class, and those of them that are right."""
    steps = (cells.true[(cells.true >= 0) & which] for which in (True, cells.true == cells.pred))
    total, right = (np.bincount(states, minlength=len(cells.names)) for states in steps)
    return total, right
