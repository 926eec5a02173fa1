"""From observations to potentials: blocks that turn weights into scores, and counts into gradients.

A *block specification* (``Token``, ``Start``, ``Stop``, ``Duration``, ``Segment``, ``Init``, ``Trans``, ``End``)
defines the weights of one part of one level, and the observations that they meet. ``spec.fit(frame)`` returns a
*block* for what occurs in the training data; the frame is an :class:`~hscrf.features.occurrences.Occurrences`. A
block is a linear map from its weights to one array of log-potentials (``add``). Its transpose maps expected counts to
the gradient (``pull``). ``penalty`` is the relative strength of the penalty of its weights. Evidence that is summed
over long segments, such as a whole activity, needs a stronger penalty than evidence of single steps.
"""

from hscrf.features.specifications import Duration, End, Init, Score, Segment, Start, StartScore, Stop, Token, Trans

__all__ = ["Duration", "End", "Init", "Score", "Segment", "Start", "StartScore", "Stop", "Token", "Trans"]
