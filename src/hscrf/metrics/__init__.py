"""How right a prediction is: per time step, segment, boundary and sequence; as conlleval counts; as papers report.

Every function takes labels of two sides, the truth first, in any form that ``fit`` takes (:class:`Labels`, dicts of
columns or segments, tables, arrays), and compares levels and states by name. ``scheme`` says how columns are written;
"auto" looks at them. :func:`scorer` gives the measures to scikit-learn's model selection.
Cells unknown in the truth are left out of measures per time step; measures of segments need them known.
"""

from hscrf.metrics.conll import ConllScores, conlleval, conlleval_text
from hscrf.metrics.measures import (
    accuracy,
    boundary_f1,
    confusion,
    exact_match,
    joint_accuracy,
    segment_scores,
)
from hscrf.metrics.reliability import Calibration, calibration, expected_calibration_error
from hscrf.metrics.reports import report
from hscrf.metrics.scorers import ModelScorer, balanced_weights, scorer, scorers
from hscrf.metrics.scores import Score, SegmentScores
from hscrf.metrics.segmentation import edit_score, mean_class_accuracy, overlap_scores

__all__ = [
    "Calibration",
    "ConllScores",
    "ModelScorer",
    "Score",
    "SegmentScores",
    "accuracy",
    "balanced_weights",
    "boundary_f1",
    "calibration",
    "confusion",
    "conlleval",
    "conlleval_text",
    "edit_score",
    "exact_match",
    "expected_calibration_error",
    "joint_accuracy",
    "mean_class_accuracy",
    "overlap_scores",
    "report",
    "scorer",
    "scorers",
    "segment_scores",
]
