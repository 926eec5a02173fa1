"""Calibration curves, and the expected calibration error of predicted probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints, whole_number
from hscrf.errors import a_type, several
from hscrf.inference.posterior import Marginals
from hscrf.inference.temperatures import judged_segments
from hscrf.labels.given import given_labels
from hscrf.labels.labels import Labels
from hscrf.labels.schemes import schemes_in
from hscrf.labels.scoring import labels_to_score
from hscrf.metrics.cells import chosen_level, pairs_of
from hscrf.topology import Topology


@dataclass(frozen=True)
class Calibration:
    """A calibration curve: predictions in bins of equal width by their probability.

    The expected calibration error follows Guo et al., *On calibration of modern neural networks*, ICML 2017. It is the
    mean over predictions of the distance between the accuracy and the mean probability of their bin.

    Attributes
    ----------
    edges : ndarray of shape (bins + 1,)
        The edges of the bins, from 0 to 1.
    counts : ndarray of shape (bins,)
        The number of predictions.
    confidence : ndarray of shape (bins,)
        The mean probability of the predictions; nan in empty bins.
    accuracy : ndarray of shape (bins,)
        The share of the predictions that are right; nan in empty bins.
    error : float
        The expected calibration error.
    total : int
        The number of all predictions.
    mean_confidence, mean_accuracy : float
        Means over all predictions.
    """

    edges: Floats
    counts: Ints
    confidence: Floats
    accuracy: Floats

    @property
    def total(self) -> int:
        """The number of predictions."""
        return int(self.counts.sum())

    @property
    def mean_confidence(self) -> float:
        """The mean probability of all predictions."""
        return self._mean(self.confidence)

    @property
    def mean_accuracy(self) -> float:
        """The share of all predictions that is right."""
        return self._mean(self.accuracy)

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return self._mean(np.abs(self.confidence - self.accuracy))

    def _mean(self, values: Floats) -> float:
        used = self.counts > 0
        return float((self.counts[used] * values[used]).sum() / self.total) if self.total else float("nan")


def calibration(
    y_true: Sequence[Any],
    predicted: Sequence[Any],
    level: str | int | None = None,
    bins: int = 10,
    ignore: Sequence[Any] = (),
    scheme: Any = "auto",
) -> Calibration:
    """Compare the probabilities of predictions with how often they are right.

    Parameters
    ----------
    y_true : sequences of labels
        The truth, in any form that ``fit`` takes. Unknown steps are left out.
    predicted : list of Marginals, or list of Labels
        From ``predict_marginals``: the most probable state of each step and its probability. From
        ``predict(X, confidence=True)``: each predicted segment and the probability that it exists. It is right if the
        truth has the same segment. Segments count if the truth knows their steps and the boundaries at and in them.
    level : str, int or None
        The level. None means the only one.
    bins : int
        The number of bins between 0 and 1.
    ignore : sequence of labels
        Predictions of these labels are left out.
    scheme : str or dict
        How columns of the truth are written.

    Returns
    -------
    Calibration
        Counts, mean probability and accuracy of each bin; ``error`` is the expected calibration error.

    Raises
    ------
    ValueError
        If numbers or lengths of sequences differ, or there is no such level.

    Examples
    --------
    >>> from hscrf import ChainCRF
    >>> X, Y = [[["a"], ["b"]], [["b"], ["a"]]], [["N", "V"], ["V", "N"]]
    >>> model = ChainCRF().fit(X, Y)
    >>> curve = calibration(Y, model.predict_marginals(X))
    >>> curve.total, curve.mean_accuracy
    (4, 1.0)
    >>> abs(curve.error - (1 - curve.mean_confidence)) < 1e-12
    True
    """
    bins = whole_number(bins, "bins", least=1)
    if predicted and isinstance(predicted[0], Marginals):
        chance, right = _of_steps(y_true, predicted, level, ignore, scheme)
    else:
        chance, right = _of_segments(y_true, predicted, level, ignore, scheme)
    return binned(chance, right, bins)


def expected_calibration_error(
    y_true: Sequence[Any],
    predicted: Sequence[Any],
    level: str | int | None = None,
    bins: int = 10,
    ignore: Sequence[Any] = (),
    scheme: Any = "auto",
) -> float:
    """Return the expected calibration error: the ``error`` of :func:`calibration`.

    Parameters
    ----------
    y_true, predicted, level, bins, ignore, scheme
        As in :func:`calibration`.

    Returns
    -------
    float
        Between 0 and 1; nan if no step is known.

    Examples
    --------
    >>> from hscrf import ChainCRF
    >>> X, Y = [[["a"], ["b"]], [["b"], ["a"]]], [["N", "V"], ["V", "N"]]
    >>> model = ChainCRF().fit(X, Y)
    >>> 0 < expected_calibration_error(Y, model.predict_marginals(X)) < 1
    True
    """
    return calibration(y_true, predicted, level, bins, ignore, scheme).error


def binned(chance: Floats, right: NDArray[np.bool_], bins: int) -> Calibration:
    """Predictions in bins of equal width; 1 belongs to the last bin."""
    edges = np.linspace(0, 1, bins + 1)
    at = np.clip((chance * bins).astype(np.int64), 0, bins - 1)
    counts = np.bincount(at, minlength=bins)
    sums = [np.bincount(at, weights=values.astype(np.float64), minlength=bins) for values in (chance, right)]
    means = [np.divide(total, counts, out=np.full(bins, np.nan), where=counts > 0) for total in sums]
    return Calibration(edges, counts, means[0], means[1])


def _of_steps(
    y_true: Any, predicted: Sequence[Marginals], level: Any, ignore: Sequence[Any], scheme: Any
) -> tuple[Floats, NDArray[np.bool_]]:
    """Probability (n,) of the most probable state of each known step, and whether it is right."""
    name = _level_of(predicted[0], level)
    names = _names(predicted[0], name)
    lengths = [m.state[name].shape[0] for m in predicted]
    truth = _truth(y_true, lengths, name, names, scheme)
    chances, rights = [], []
    for n, (y, marginals) in enumerate(zip(truth, predicted, strict=True)):
        table = marginals.state[name]
        if y.length != len(table):
            raise ValueError(f"y_true[{n}] has {several(y.length, 'step')} but predicted[{n}] has {len(table)}")
        best = table.argmax(axis=1)
        column = y.column(name)
        kept = np.array([c != "?" and names[b] not in ignore for c, b in zip(column, best, strict=True)], dtype=bool)
        rights.append(np.array([names[b] == c for b, c in zip(best, column, strict=True)], dtype=bool)[kept])
        chances.append(table.max(axis=1)[kept])
    return np.clip(np.concatenate(chances), 0.0, 1.0), np.concatenate(rights)


def _truth(y_true: Any, lengths: Sequence[int], level: str, names: Sequence[Any], scheme: Any) -> list[Labels]:
    """The truth of all sequences as Labels that have the level."""
    named = any(isinstance(y, dict | Labels) for y in y_true)  # labels that name their levels
    given = given_labels(y_true, () if named else (level,), "y_true")
    if len(given) != len(lengths):
        raise ValueError(f"y_true has {several(len(given), 'sequence')} but predicted has {len(lengths)}")
    topology = Topology({level: names}, max_duration={level: None})
    own = [y if isinstance(y, Labels) or y is None else _at_level(y, level) for y in given]
    return labels_to_score(own, lengths, topology, schemes_in(own, scheme, topology), "y_true")


def _at_level(y: Any, level: str) -> Any:
    """Labels as a dict that has this level only."""
    if isinstance(y, dict):
        if level not in y:
            raise ValueError(f"y_true has no level {level!r}, only {', '.join(map(repr, y))}")
        return {level: y[level]}
    return {level: y}


def _level_of(marginals: Marginals, level: Any) -> str:
    """The name of a level of marginals; None means the only one."""
    topology = marginals.posterior.topology
    levels = list(marginals.names) or [*topology.levels[topology.n_states[0] == 1 :]]
    if level is None and len(levels) > 1:
        raise ValueError(f"level is None, but there are {', '.join(map(repr, levels))}; expected one of them")
    if level is None:
        return levels[0]
    return level if level in marginals.names else topology.levels[topology.level(level)]


def _names(marginals: Marginals, level: str) -> tuple[Any, ...]:
    topology = marginals.posterior.topology
    return marginals.names.get(level) or topology.states[topology.level(level)]


def _of_segments(
    y_true: Any, predicted: Sequence[Any], level: Any, ignore: Sequence[Any], scheme: Any
) -> tuple[Floats, NDArray[np.bool_]]:
    """Probability (n,) of each predicted segment, and whether the truth has it."""
    for n, y in enumerate(predicted):
        if not isinstance(y, Labels):
            raise ValueError(f"predicted[{n}] is {a_type(y)}; expected Marginals, or Labels with confidence")
    pairs = pairs_of(y_true, predicted, scheme)
    chosen = chosen_level(pairs, level)
    chances: list[float] = []
    rights: list[bool] = []
    for pair, guess in zip(pairs, predicted, strict=True):
        decided, right = judged_segments(pair[0], guess, chosen)
        for segment, counts, found in zip(guess.confidence(chosen), decided, right, strict=True):
            if counts and segment.state not in ignore:
                chances.append(segment.probability)
                rights.append(found)
    return np.array(chances, dtype=np.float64), np.array(rights, dtype=bool)
