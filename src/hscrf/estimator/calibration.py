"""Posterior probabilities of a model, and their calibration: a temperature for each level, from development data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hscrf.estimator.answers import Answer, PosteriorAnswers
from hscrf.estimator.confidence import hidden_states, with_confidence
from hscrf.estimator.scored import Scored
from hscrf.inference import Marginals
from hscrf.inference.temperatures import Temperature, fitted_temperatures, tempered_labels, tempered_marginals
from hscrf.labels.labels import Labels
from hscrf.observations.readers import cut_apart

if TYPE_CHECKING:
    from hscrf.topology import Topology

Self = TypeVar("Self", bound="Calibrated")


class Calibrated(PosteriorAnswers):
    """The probabilities of a predictor, at the temperatures of its levels; subclasses predict."""

    temperature_: Mapping[str, Temperature] = MappingProxyType({})  # by level; empty before ``calibrate``

    if TYPE_CHECKING:  # what a predictor has
        ask: Callable[[Any, Any, Callable[[Any], Iterable[Any]]], list[Any]]
        _decode: Callable[[str, Any], list[Labels]]
        pack_to_score: Callable[[Any, Any], tuple[Any, list[Labels]]]
        check_fitted: Callable[[], None]
        topology_: Topology

    def predict_marginals(self, X: Any, evidence: Any = None, *, lengths: Any = None) -> list[Marginals]:
        """Return the posterior probabilities of states, ends and segments of each sequence.

        After :meth:`calibrate`, those of states are at the temperatures of their levels.

        Parameters
        ----------
        X, evidence, lengths
            As in :meth:`predict`.

        Returns
        -------
        list of Marginals
        """
        X, evidence = cut_apart(lengths, ("X", X), ("evidence", evidence))
        found = self.ask(X, evidence, Scored.marginals)
        return [tempered_marginals(marginals, self.temperature_) for marginals in found]

    def ask_posteriors(self, X: Any, evidence: Any, answer: Answer) -> list[Any]:
        """Answers by chunks, whose posteriors are not kept."""
        return self.ask(X, evidence, lambda scored: scored.each(answer))

    def calibrate(self: Self, X: Any, Y: Any, *, lengths: Any = None) -> Self:
        """Fit a temperature for each level, so that a share p of the predictions with probability p is right.

        A temperature changes only the probabilities of states in :meth:`predict_marginals` and of segments in
        :meth:`Labels.confidence`: p becomes proportional to p ** (1 / temperature). The joint distribution,
        ``posterior``, ``log_likelihood`` and the decoded labels do not change. Another ``fit`` or ``partial_fit``
        removes the temperatures; files keep them.

        Parameters
        ----------
        X : list of sequences
        Y : list of labels
            Development data that the model was not fitted to. Unknown steps are left out, and predicted segments with
            unknown steps or boundaries.
        lengths : list of int, optional
            As in :meth:`predict`.

        Returns
        -------
        self
            ``temperature_`` has a pair ``(state, segment)`` for each level: of the states of steps, and of the
            existence of predicted segments. 1 means no change; more than 1 means that the model was overconfident.

        Examples
        --------
        >>> from hscrf import ChainCRF
        >>> X = [[["a"], ["b"]], [["a"], ["a"]], [["b"], ["b"]]]
        >>> model = ChainCRF(c2=0.01).fit(X, [["N", "V"], ["N", "N"], ["V", "V"]])
        >>> sure = model.predict_marginals(X[:1])[0].state["label"].max()
        >>> model.calibrate(X, [["N", "N"], ["N", "V"], ["V", "V"]]).temperature_["label"].state > 1
        True
        >>> bool(model.predict_marginals(X[:1])[0].state["label"].max() < sure)
        True
        """
        self.check_fitted()
        X, Y = cut_apart(lengths, ("X", X), ("Y", Y))
        truth = self.pack_to_score(X, Y)[1]
        former, self.temperature_ = self.temperature_, {}
        try:
            found, marginals = self._confident(X, None, "sequence"), self.predict_marginals(X)
            former = fitted_temperatures(truth, found, marginals)
        finally:
            self.temperature_ = former
        return self

    def _confident(self, X: Any, evidence: Any, loss: str) -> list[Labels]:
        """The best labels with the posteriors of their segments, at the temperatures of their levels."""
        found = self.ask(
            X, evidence, lambda scored: with_confidence(self._hidden_states, scored, self._decode(loss, scored))
        )
        if not self.temperature_:
            return found
        marginals = self.predict_marginals(X, evidence)
        return [tempered_labels(y, self.temperature_, m) for y, m in zip(found, marginals, strict=True)]

    def _hidden_states(self, d: int) -> tuple[int, NDArray[np.bool_]]:
        """As :func:`hscrf.estimator.confidence.hidden_states`; models with other hidden levels override it."""
        return hidden_states(self.topology_, d)
