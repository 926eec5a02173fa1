"""Scorers for scikit-learn: functions of a model, its sequences and their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hscrf.arrays import Floats, whole_number
from hscrf.metrics.cells import Pairs, chosen_level, is_known, level_names, pairs_of, unzip
from hscrf.metrics.measures import accuracy, boundary_f1, exact_match, joint_accuracy, segment_scores
from hscrf.metrics.segmentation import edit_score, mean_class_accuracy, overlap_scores


@dataclass(frozen=True)
class ModelScorer:
    """A measure of how well a model labels sequences, greater for better; :func:`scorer` makes one.

    Parameters
    ----------
    measure : str
        The name of the measure.
    level : str, int or None
        The level. None means the only one, or all for measures of all levels.
    ignore : tuple of labels
        Segments of these labels are left out.
    tolerance : int
        The number of steps by which boundaries may be wrong.
    floor : float
        The least log-likelihood of a step that counts.
    """

    measure: str
    level: str | int | None = None
    ignore: tuple[Any, ...] = ("O",)
    tolerance: int = 0
    floor: float = -10.0

    def __call__(self, model: Any, X: Any, Y: Any) -> float:
        """Return the measure of the predictions of a model for X, or the log-likelihood of Y.

        Parameters
        ----------
        model : fitted model, or Pipeline whose last step is one
        X : list of sequences
        Y : sequences of labels

        Returns
        -------
        float
        """
        if hasattr(model, "steps"):  # a pipeline, whose last step is the model
            X, model = model[:-1].transform(X), model[-1]
        if self.measure == "log_likelihood":
            return self._log_likelihood(model, X, Y)
        return float(MEASURES[self.measure](self, pairs_of(Y, model.predict(X), getattr(model, "scheme_", "auto"))))

    def _log_likelihood(self, model: Any, X: Any, Y: Any) -> float:
        """Nats per step; the floor is the least value of a sequence."""
        steps = np.array([x.shape[0] if hasattr(x, "shape") else len(x) for x in X])
        return float(np.maximum(model.log_likelihood(X, Y), self.floor * steps).sum() / steps.sum())

    def _known(self, pairs: Pairs) -> tuple[Any, Any, str | int]:
        """The sequences whose level is completely known in the truth, and the level."""
        level = chosen_level(pairs, self.level)
        return *unzip([pair for pair in pairs if is_known(pair[0], level)]), level

    def _accuracy(self, pairs: Pairs) -> float:
        return joint_accuracy(*unzip(pairs)) if self.level is None else accuracy(*unzip(pairs), self.level)

    def _exact_match(self, pairs: Pairs) -> float:
        levels = level_names(pairs) if self.level is None else [self.level]
        whole = [pair for pair in pairs if all(is_known(pair[0], level) for level in levels)]
        return exact_match(*unzip(whole), self.level)

    def _boundary_f1(self, pairs: Pairs) -> float:
        return boundary_f1(*self._known(pairs), tolerance=self.tolerance)

    def _segments(self, pairs: Pairs, ratio: str) -> float:
        scores = segment_scores(*self._known(pairs), ignore=self.ignore, tolerance=self.tolerance)
        return float(getattr(scores, ratio))

    def _overlaps(self, pairs: Pairs, overlap: float) -> float:
        return overlap_scores(*self._known(pairs), overlap=overlap, ignore=self.ignore).f1

    def _edit(self, pairs: Pairs) -> float:
        return edit_score(*self._known(pairs), ignore=self.ignore)

    def _class_accuracy(self, pairs: Pairs) -> float:
        return mean_class_accuracy(*unzip(pairs), chosen_level(pairs, self.level))


MEASURES: dict[str, Callable[[ModelScorer, Pairs], float]] = {
    "accuracy": ModelScorer._accuracy,
    "exact_match": ModelScorer._exact_match,
    "segment_f1": lambda self, pairs: self._segments(pairs, "f1"),
    "segment_precision": lambda self, pairs: self._segments(pairs, "precision"),
    "segment_recall": lambda self, pairs: self._segments(pairs, "recall"),
    "segment_macro_f1": lambda self, pairs: self._segments(pairs, "macro_f1"),
    "boundary_f1": ModelScorer._boundary_f1,
    "f1@10": lambda self, pairs: self._overlaps(pairs, 0.1),
    "f1@25": lambda self, pairs: self._overlaps(pairs, 0.25),
    "f1@50": lambda self, pairs: self._overlaps(pairs, 0.5),
    "edit_score": ModelScorer._edit,
    "mean_class_accuracy": ModelScorer._class_accuracy,
}


def scorer(
    measure: str,
    level: str | int | None = None,
    *,
    ignore: Iterable[Any] = ("O",),
    tolerance: int = 0,
    floor: float = -10.0,
) -> ModelScorer:
    """Return a scorer for scikit-learn, such as ``GridSearchCV(scoring=...)`` and ``cross_val_score``.

    Parameters
    ----------
    measure : str
        One of the measures below. The level may follow a colon: ``scorer("segment_f1:chunk")``.
    level : str, int or None
        The level. None means the only one, or all levels for "accuracy" and "exact_match".
    ignore : iterable of labels
        Segments of these labels are left out.
    tolerance : int
        The number of steps by which boundaries may be wrong.
    floor : float
        The log-likelihood of a step that the model holds impossible, such as one with an unseen state.

    Returns
    -------
    ModelScorer

    Raises
    ------
    ValueError
        If the measure is unknown, or an argument does not fit it.

    Notes
    -----
    - ``"accuracy"``: the share of time steps whose state is right, at one level or at all levels at once.
    - ``"mean_class_accuracy"``: the mean of the accuracy over the classes of a level.
    - ``"segment_f1"``, ``"segment_precision"``, ``"segment_recall"``, ``"segment_macro_f1"``: of the segments of a
      level, see :func:`segment_scores`.
    - ``"f1@10"``, ``"f1@25"``, ``"f1@50"``: of segments that overlap, see :func:`overlap_scores`.
    - ``"edit_score"``: of the order of segments, see :func:`edit_score`.
    - ``"boundary_f1"``: of the boundaries of segments, see :func:`boundary_f1`.
    - ``"exact_match"``: the share of sequences that are right as a whole, at one level or at all.
    - ``"log_likelihood"``: the log probability of the labels per time step, in nats.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from hscrf import ChainCRF
    >>> X, Y = [[["a"], ["b"]], [["a"], ["c"]], [["a"], ["b"]], [["d"], ["b"]]], ["NV", "NA", "NV", "XV"]
    >>> Y = [list(tags) for tags in Y]
    >>> cross_val_score(ChainCRF(), X, Y, cv=2, scoring=scorer("accuracy")).round(3).tolist()
    [0.75, 0.75]
    """
    known = [*MEASURES, "log_likelihood"]
    measure, colon, named = measure.partition(":")
    if colon and level is not None:
        raise ValueError(f"there are the levels {named!r}, after a colon, and {level!r}; expected one")
    level = named if colon else level
    if measure not in known:
        raise ValueError(f"measure is {measure!r}; expected one of {', '.join(map(repr, known))}")
    whole_number(tolerance, "tolerance", least=0)
    if measure == "log_likelihood" and level is not None:
        raise ValueError(f"level is {level!r}, but the log-likelihood is that of all levels; hide others in the labels")
    return ModelScorer(measure, level, tuple(ignore), tolerance, floor)


def scorers(*names: str) -> dict[str, ModelScorer]:
    """Return scorers by name, for ``cross_validate(scoring=...)`` and searches with several measures.

    Parameters
    ----------
    *names : str
        Measures of :func:`scorer`. The level may follow a colon: ``"segment_f1:chunk"``.

    Returns
    -------
    dict of str to ModelScorer

    Examples
    --------
    >>> scorers("accuracy", "segment_f1:chunk")["segment_f1:chunk"].level
    'chunk'
    """
    return {name: scorer(name) for name in names}


def balanced_weights(Y: Any, level: str | None = None) -> Floats:
    """Return weights of sequences that balance the states of a level, for ``fit(sample_weight=...)``.

    A step of state s has the weight n / (S n_s), with n steps in all, S states, and n_s steps of state s. The weight of
    a sequence is the mean over its steps. A CRF weighs whole sequences; the ``margin`` of a model weighs the states
    within a sequence.

    Parameters
    ----------
    Y : sequences of labels
        In any form that ``fit`` takes.
    level : str, optional
        The level whose states are balanced. None means the only one.

    Returns
    -------
    ndarray of shape (n_sequences,)

    Raises
    ------
    ValueError
        If no label of the level is known.

    Examples
    --------
    >>> balanced_weights([["a", "a", "a"], ["a", "b", "b"]]).round(3).tolist()
    [0.75, 1.25]
    """
    pairs = pairs_of(Y, Y, "auto")
    chosen = chosen_level(pairs, level)
    columns = [[state for state in one.column(chosen, scheme="plain") if state != "?"] for one, _ in pairs]
    counts = Counter(state for column in columns for state in column)
    if not counts:
        raise ValueError(f"no label of level {chosen!r} is known, expected some to balance")
    share = counts.total() / len(counts)
    return np.array([float(np.mean([share / counts[s] for s in column])) if column else 1.0 for column in columns])
