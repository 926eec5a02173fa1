"""How right a prediction is: per time step, segment, boundary and sequence; and conlleval's counting.

Every function takes two lists of :class:`Labels`, the truth first, and compares levels and states by name.
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

__all__ = [
    "ConllScores",
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
    "segment_scores",
]
