"""Confidence of predicted segments, in the form of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hscrf.labels.labels import Labels

COLUMN = "{}_confidence"  # the name of a column, by level


def confidence_columns(labels: Labels, levels: Sequence[str]) -> dict[str, list[str]]:
    """Return a column for each level: the probability of the segment that a step belongs to, with six digits.

    Parameters
    ----------
    labels : Labels
        From ``predict(X, confidence=True)``.
    levels : sequence of str
        The levels that are written.

    Returns
    -------
    dict
        The column ``"LEVEL_confidence"`` of each level, a string for each step: what ``Document.extra`` takes.

    Examples
    --------
    >>> from hscrf import SemiCRF
    >>> model = SemiCRF().fit([[["a"], ["b"], ["c"]]] * 2, [["B-NP", "I-NP", "O"]] * 2)
    >>> (labels,) = model.predict([[["a"], ["b"], ["c"]]], confidence=True)
    >>> column = confidence_columns(labels, ["label"])["label_confidence"]
    >>> column[0] == column[1], len(column[0])
    (True, 8)
    """
    return {
        COLUMN.format(level): [
            f"{segment.probability:.6f}"
            for segment in labels.confidence(level)
            for _ in range(segment.start, segment.stop)
        ]
        for level in levels
    }


def confidence_records(labels: Labels, levels: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the segments of each level with their probabilities, as JSON Lines hold them under ``"confidence"``.

    Parameters
    ----------
    labels : Labels
        From ``predict(X, confidence=True)``.
    levels : sequence of str
        The levels to write.

    Returns
    -------
    dict from level to list of dict
        Each segment has ``start``, ``stop`` and ``state``. ``probability`` is that of the whole segment;
        ``label_probability`` is that of the state, averaged over its steps. Both are rounded to six digits.

    Examples
    --------
    >>> from hscrf import ChainCRF
    >>> model = ChainCRF().fit([[["a"], ["b"]]] * 2, [["N", "V"]] * 2)
    >>> (labels,) = model.predict([[["a"], ["b"]]], confidence=True)
    >>> list(confidence_records(labels, ["label"])["label"][0])
    ['start', 'stop', 'state', 'probability', 'label_probability']
    """
    return {
        level: [
            {**segment._asdict(), **{name: round(getattr(segment, name), 6) for name in segment._fields[3:]}}
            for segment in labels.confidence(level)
        ]
        for level in levels
    }
