"""Probabilities that are as often right as they say: a temperature for each level, from development data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hscrf.estimator.confidence import hidden_states, with_confidence
from hscrf.estimator.nested import SequenceEstimator
from hscrf.fillers import summed
from hscrf.inference import Marginals
from hscrf.inference.temperatures import Temperature, fitted_temperatures, tempered_labels, tempered_marginals
from hscrf.labels.labels import Labels
from hscrf.observations.readers import cut_apart

if TYPE_CHECKING:
    from hscrf.estimator.scored import Scored
    from hscrf.topology import Topology

Self = TypeVar("Self", bound="Calibrated")


class Calibrated(SequenceEstimator):
    """What a predictor does with temperatures; classes below it predict."""

    temperature_: Mapping[str, Temperature] = MappingProxyType({})  # by level; empty before ``calibrate``

    if TYPE_CHECKING:  # what a predictor has
        ask: Callable[[Any, Any, Callable[[Any], Iterable[Any]]], list[Any]]
        _decode: Callable[[str, Any], list[Labels]]
        pack_to_score: Callable[[Any, Any], tuple[Any, list[Labels]]]
        check_fitted: Callable[[], None]
        topology_: Topology

    def predict_marginals(self, X: Any, evidence: Any = None, *, lengths: Any = None) -> list[Marginals]:
        """Posterior probabilities of states, endings and segments of each sequence; ``lengths`` as in predict.

        After :meth:`calibrate`, those of states are at the temperatures of their levels.
        """
        X, evidence = cut_apart(lengths, ("X", X), ("evidence", evidence))
        found = self.ask(X, evidence, self._marginals)
        return [tempered_marginals(marginals, self.temperature_) for marginals in found]

    def _marginals(self, scored: Scored) -> list[Marginals]:
        """The marginals of each sequence of a chunk; their counts wait until they are asked for."""
        result = scored.batch.expectations(scored.values)
        scored.require(result.log_z)
        levels = self.topology_.levels
        states = [summed(self.topology_, d, table) for d, table in enumerate(result.state)]
        found = []
        for k, (a, b) in enumerate(scored.spans):
            state = {level: table[a:b] for level, table in zip(levels, states, strict=True)}
            ending = {level: row[a:b] for level, row in zip(levels, result.ending, strict=True)}
            found.append(Marginals(float(result.log_z[k]), state, ending, scored.posterior(k)))
        return found

    def calibrate(self: Self, X: Any, Y: Any, *, lengths: Any = None) -> Self:
        """Fit a temperature for each level, so that reported probabilities are as often right as they say.

        A temperature changes only what :meth:`predict_marginals` reports of states and what
        :meth:`Labels.confidence` reports of segments: p becomes proportional to p ** (1 / temperature). The joint
        distribution, ``posterior``, ``log_likelihood`` and the labels that are decoded stay what they are. Another
        ``fit`` forgets the temperatures; files keep them.

        Parameters
        ----------
        X, Y : sequences and their labels
            Development data that the model was not fitted to. Labels may be partial.
        lengths : list of int or None
            As in :meth:`predict`.

        Returns
        -------
        The model itself. ``temperature_`` has a pair ``(state, segment)`` for each level: the temperature of the states
        of steps, and that of whether predicted segments exist. 1 means no change, more than 1 that the model was too
        sure of itself.

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
        """The level of the model that a predicted level d comes from, and which of its states are each state of d."""
        return hidden_states(self.topology_, d)
