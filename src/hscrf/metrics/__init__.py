"""How right a prediction is: per time step, segment, boundary and sequence; and conlleval's counting.

Every function takes labels of two sides, the truth first, in any form that ``fit`` takes (:class:`Labels`, dicts of
columns or segments, tables, arrays), and compares levels and states by name. ``scheme`` says how columns are written;
"auto" looks at them. :func:`scorer` gives the measures to scikit-learn's model selection.
Cells unknown in the truth are left out of measures per time step; measures of segments need them known.
"""

from hscrf.metrics.conll import ConllScores, conlleval, conlleval_text
from hscrf.metrics.measures import (
    Score,
    SegmentScores,
    accuracy,
    boundary_f1,
    confusion,
    exact_match,
    joint_accuracy,
    segment_scores,
)
from hscrf.metrics.reports import report
from hscrf.metrics.scorers import ModelScorer, scorer

__all__ = [
    "ConllScores",
    "ModelScorer",
    "Score",
    "SegmentScores",
    "accuracy",
    "boundary_f1",
    "confusion",
    "conlleval",
    "conlleval_text",
    "exact_match",
    "joint_accuracy",
    "report",
    "scorer",
    "segment_scores",
]
