"""Measures of predictions: by time step, segment, boundary and sequence; as conlleval counts; as papers report.

Every function takes the true labels first, then the predicted ones, in any form that ``fit`` takes. These are
:class:`Labels`, dicts of columns or segments, tables and arrays. Levels and states are compared by name. ``scheme``
describes how columns are written; "auto" looks at them. :func:`scorer` gives the measures to scikit-learn's model
selection. Steps unknown in the truth are left out of measures by time step; measures of segments need them known.
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
