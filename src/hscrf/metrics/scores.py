"""Counts of segments, and their ratios: precision, recall, F1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hscrf.metrics.cells import ratio


@dataclass(frozen=True)
class Score:
    """Counts of segments, and the ratios of these counts; a ratio with denominator 0 is 0, as in conlleval.

    Parameters
    ----------
    correct : int
        Predicted segments with the right start, stop and state.
    predicted : int
        All predicted segments.
    support : int
        All segments of the truth.

    Attributes
    ----------
    precision, recall, f1 : float

    Examples
    --------
    >>> score = Score(correct=2, predicted=4, support=3)
    >>> score.precision, round(score.recall, 3), round(score.f1, 3)
    (0.5, 0.667, 0.571)
    """

    correct: int
    predicted: int
    support: int

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
        """Return ratios and counts as plain numbers.

        Returns
        -------
        dict of str to float
            With the keys precision, recall, f1, support, predicted and correct.
        """
        ratios = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {**ratios, "support": self.support, "predicted": self.predicted, "correct": self.correct}


@dataclass(frozen=True)
class SegmentScores(Score):
    """The micro average over all labels, and the score of each label.

    Attributes
    ----------
    correct, predicted, support : int
        Counts over all labels, as in :class:`Score`.
    per_label : dict of label to Score
        The counts of each label.
    macro_precision, macro_recall, macro_f1 : float
        Means over labels.
    """

    per_label: dict[Any, Score] = field(default_factory=dict)

    @property
    def macro_precision(self) -> float:
        """Mean of the precision over labels; every label has the same weight."""
        return self._mean("precision")

    @property
    def macro_recall(self) -> float:
        """Mean of the recall over labels."""
        return self._mean("recall")

    @property
    def macro_f1(self) -> float:
        """Mean of the F1 over labels that are in the truth or in the prediction."""
        return self._mean("f1")

    def _mean(self, name: str) -> float:
        values = [getattr(score, name) for score in self.per_label.values()]
        return float(np.mean(values)) if values else 0.0


def total_of(table: dict[Any, Score]) -> SegmentScores:
    """The micro average over a table of labels."""
    correct = sum(score.correct for score in table.values())
    predicted = sum(score.predicted for score in table.values())
    return SegmentScores(correct, predicted, sum(score.support for score in table.values()), table)
