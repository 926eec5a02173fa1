"""From observations to potentials: blocks that turn weights into scores, and counts into gradients.

A *block specification* (``Token``, ``Start``, ``Stop``, ``Duration``, ``Segment``, ``Init``, ``Trans``, ``End``) says
which part of which level is fed by what. It fits itself to what occurs in training data (``spec.fit(frame)``, the frame
being :class:`~hscrf.features.occurrences.Occurrences`) and gives a *block*: a linear map from its weights to one array
of log-potentials (``add``), with its transpose from expected counts to the gradient (``pull``).
Its ``penalty`` tells how many times as strongly as others its weights are penalised: evidence that is summed over long
segments, say that of a whole activity, wants more than evidence of single steps.
"""

from hscrf.features.specifications import Duration, End, Init, Score, Segment, Start, StartScore, Stop, Token, Trans

__all__ = ["Duration", "End", "Init", "Score", "Segment", "Start", "StartScore", "Stop", "Token", "Trans"]
