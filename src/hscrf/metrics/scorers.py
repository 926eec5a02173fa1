"""Measures as scikit-learn takes them: functions of a model, its sequences and their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hscrf.arrays import Floats
from hscrf.metrics.cells import Pairs, chosen_level, is_known, level_names, pairs_of, unzip
from hscrf.metrics.measures import accuracy, boundary_f1, exact_match, joint_accuracy, segment_scores
from hscrf.metrics.segmentation import edit_score, mean_class_accuracy, overlap_scores


@dataclass(frozen=True)
class ModelScorer:
    """A measure of how well a model labels sequences, greater for better; see :func:`scorer`."""

    measure: str
    level: str | int | None = None
    ignore: tuple[Any, ...] = ("O",)
    tolerance: int = 0
    floor: float = -10.0

    def __call__(self, model: Any, X: Any, Y: Any) -> float:
        """The measure of what the model predicts for X, or of how probable it holds Y."""
        if hasattr(model, "steps"):  # a pipeline, whose last step is the model
            X, model = model[:-1].transform(X), model[-1]
        if self.measure == "log_likelihood":
            return self._log_likelihood(model, X, Y)
        return float(MEASURES[self.measure](self, pairs_of(Y, model.predict(X), getattr(model, "scheme_", "auto"))))

    def _log_likelihood(self, model: Any, X: Any, Y: Any) -> float:
        """Nats per step; no sequence counts for less than the floor."""
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
    """Return a scorer for ``GridSearchCV(scoring=...)``, ``cross_val_score`` and the like.

    ``"accuracy"``: share of the time steps whose state is right, at one level, or at all levels at once.
    ``"mean_class_accuracy"``: the mean over the classes of a level. ``"segment_f1"``, ``"segment_precision"``,
    ``"segment_recall"``, ``"segment_macro_f1"``: of the segments of a level (see :func:`segment_scores`; ``ignore``,
    ``tolerance``). ``"f1@10"``, ``"f1@25"``, ``"f1@50"``: of segments that overlap (see :func:`overlap_scores`).
    ``"edit_score"``: of their order. ``"boundary_f1"``: of the places where segments begin (``tolerance``).
    ``"exact_match"``: share of the sequences that are right as a whole, at one level or at all.
    ``"log_likelihood"``: log probability of the labels per time step, in nats; what the model holds impossible, such as
    a state that was not in its training data, counts ``floor`` a step. The level may be left out if there is only one,
    or stand after a colon: ``scorer("segment_f1:chunk")``.

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
    if tolerance < 0:
        raise ValueError(f"tolerance is {tolerance}; expected a number of steps, 0 or more")
    if measure == "log_likelihood" and level is not None:
        raise ValueError(f"level is {level!r}, but the log-likelihood is that of all levels; hide others in the labels")
    return ModelScorer(measure, level, tuple(ignore), tolerance, floor)


def scorers(*names: str) -> dict[str, ModelScorer]:
    """Return scorers by name, for ``cross_validate(scoring=...)`` and searches with several measures.

    Parameters
    ----------
    names : str
        Measures of :func:`scorer`, each with its level after a colon if need be: ``"segment_f1:chunk"``.

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
    """Return weights of sequences under which the states of a level count alike, for ``fit(sample_weight=...)``.

    The weight of a sequence is the mean of those of its steps; a step of state s has n / (S n_s), with n steps in all,
    S states, and n_s steps of state s. A CRF weighs whole sequences: states within one sequence are weighed by the
    ``margin`` of a model.

    Parameters
    ----------
    Y : labels, as ``fit`` takes them
    level : str, optional
        The level whose states are balanced; may be left out if there is only one.

    Returns
    -------
    ndarray of shape (n_sequences,)

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
