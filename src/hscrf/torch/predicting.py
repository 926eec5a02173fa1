"""Everything that a tagger does after training: labels, probabilities and scores of sequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from hscrf import metrics
from hscrf.arrays import Floats
from hscrf.errors import SequenceError
from hscrf.estimator.answers import Answer, PosteriorAnswers, answers_of
from hscrf.estimator.confidence import hidden_states, with_confidence
from hscrf.fillers import shown
from hscrf.inference import Posterior
from hscrf.inference.decoding import check_loss, expected_gains
from hscrf.labels.given import given_labels
from hscrf.labels.labels import Labels
from hscrf.labels.scoring import allowed_labels, as_evidence, labels_to_score, possible_labels
from hscrf.observations.readers import length_of
from hscrf.topology import Topology
from hscrf.torch.crf import CRF
from hscrf.torch.inputs import Inputs
from hscrf.torch.options import check_data, check_sequences

TOGETHER = 64  # sequences that are predicted at a time


class NeuralPredictor(PosteriorAnswers):
    """A trained network and layer; :class:`hscrf.torch.Tagger` adds how they learn."""

    device: Any
    n_jobs: int
    topology_: Topology
    inputs_: Inputs
    scheme_: str | Mapping[str, str]
    network_: Any
    crf_: CRF

    def predict(
        self, X: Sequence[Any], evidence: Any = None, loss: str = "sequence", *, confidence: bool = False
    ) -> list[Labels]:
        """Return the best labels of each sequence; labels fixed by the evidence are kept.

        Parameters
        ----------
        X : list of sequences
        evidence : list of labels, optional
            Known labels of each sequence, in any form that ``fit`` takes, or None.
        loss : {"sequence", "step", "segment"}
            Return the most probable labelling, or the one with the highest expected number of right steps or segments.
        confidence : bool
            Whether to add to each predicted segment its posterior probability, for :meth:`Labels.confidence`.

        Returns
        -------
        list of Labels
        """
        self._check_fitted()
        check_loss(loss, self.topology_, self.scheme_)
        if loss == "sequence" and not confidence:
            return self._ask_layer(X, evidence, self.crf_.decode)
        hidden = partial(hidden_states, self.topology_)

        def best(posterior: Posterior, n: int) -> Labels:
            found = posterior.decode() if loss == "sequence" else self._best_expected(posterior, loss)
            return with_confidence(hidden, posterior, [found])[0] if confidence else found

        return self.ask_posteriors(X, evidence, best)

    def _best_expected(self, posterior: Posterior, loss: str) -> Labels:
        gains = expected_gains(self.topology_, posterior.batch, posterior.values, loss)
        states, ends, score = posterior.batch.best(gains)
        return Labels(self.topology_, shown(self.topology_, states), ends, score=float(score[0]))

    def ask_posteriors(self, X: Sequence[Any], evidence: Any, answer: Answer) -> list[Any]:
        """Answers about posteriors."""
        self._check_fitted()
        found = self._ask_layer(X, evidence, self.crf_.posteriors)
        return answers_of(enumerate(found), answer, _asked_name(evidence))

    def log_likelihood(self, X: Sequence[Any], Y: Any) -> Floats:
        """Return the log probability of the labels of each sequence, -inf where the model forbids them.

        Parameters
        ----------
        X : list of sequences
        Y : list of labels
            Complete or partial.

        Returns
        -------
        ndarray of shape (sequences,)
        """
        self._check_fitted()
        check_data(X, Y, None)
        truth = self._read_to_score(given_labels(Y, self.topology_.levels[1:]), X)
        allowed, known = self._possible(truth)

        def log_probability(scores: Any, lengths: Any, evidence: Sequence[Labels]) -> list[float]:
            return (-self.crf_(scores, evidence, lengths=lengths, reduction="none")).tolist()

        return np.where(allowed, self._ask_layer(X, known, log_probability, "Y"), -np.inf)

    def score(self, X: Sequence[Any], Y: Any) -> float:
        """Return the fraction of steps with the right state at every level at once; unknown steps are left out.

        Parameters
        ----------
        X : list of sequences
        Y : list of labels

        Returns
        -------
        float
        """
        self._check_fitted()
        check_data(X, Y, None)
        truth = self._read_to_score(given_labels(Y, self.topology_.levels[1:]), X)
        return float(metrics.joint_accuracy(truth, self.predict(X)))

    # -- one pass over sequences

    def _check_fitted(self) -> None:
        if not hasattr(self, "crf_"):
            raise ValueError("this Tagger is not fitted: call fit, or load a model")

    def _ask_layer(self, X: Sequence[Any], evidence: Any, ask: Any, name: str | None = None) -> list[Any]:
        """Ask the layer about all sequences, in batches of similar lengths; an answer for each.

        ``name`` is the name of the evidence in errors.
        """
        check_sequences(X)
        items = self.inputs_.encode(X)
        known = None if evidence is None else self._evidence(evidence, X)
        self.crf_.n_jobs = self.n_jobs
        found: list[tuple[int, Any]] = []
        with torch.no_grad():
            for which, batch in self._batches(items):
                own = None if known is None else [known[n] for n in which]
                scores, lengths = self._scores(batch)
                with numbered(which, name or _asked_name(evidence)):
                    found += list(zip(which, ask(scores, lengths=lengths, evidence=own), strict=True))
        return [answer for _, answer in sorted(found, key=lambda pair: pair[0])]

    def _batches(self, items: Sequence[Any]) -> Iterator[tuple[list[int], dict[str, Any]]]:
        order = np.argsort([int(item["length"]) for item in items], kind="stable").tolist()
        for k in range(0, len(order), TOGETHER):
            which = order[k : k + TOGETHER]
            yield which, self.inputs_.batch([items[n] for n in which])

    def _scores(self, batch: dict[str, Any]) -> tuple[Any, Any]:
        """Scores (B, T, size) of a batch, and its lengths."""
        moved = {key: tensor.to(self.device) for key, tensor in batch.items() if key != "lengths"}
        return self.network_(moved, batch["lengths"]), batch["lengths"]

    def _evidence(self, evidence: Any, X: Sequence[Any]) -> list[Labels]:
        given = given_labels(evidence, self.topology_.levels[1:], "evidence")
        if len(given) != len(X):
            raise ValueError(f"X has {len(X)} sequences but evidence has {len(given)}")
        found = []
        for n, (y, x) in enumerate(zip(given, X, strict=True)):
            length = length_of(x)
            found.append(as_evidence(y, n, length, self.topology_, self.scheme_))
            if found[-1].length != length:
                raise ValueError(f"X[{n}] has {length} steps but evidence[{n}] has {found[-1].length}")
        return found

    def _read_to_score(self, given: Sequence[Any], X: Sequence[Any], name: str = "Y") -> list[Labels]:
        return labels_to_score(given, [length_of(x) for x in X], self.topology_, self.scheme_, name)

    def _possible(self, truth: Sequence[Labels]) -> tuple[list[bool], list[Labels]]:
        """Which labels the model allows, and the labels over its topology; those that it forbids become unknown."""
        return allowed_labels(truth, self.topology_, lambda y, n: possible_labels(y, self.topology_, n))


@contextmanager
def numbered(which: Sequence[int], name: str) -> Iterator[None]:
    """Errors about a sequence of a batch get the number that it has in the data."""
    try:
        yield
    except SequenceError as error:
        raise error if error.sequence is None else error.of_sequence(which[error.sequence], name) from None


def _asked_name(evidence: Any) -> str:
    """The name of the argument that is the cause if a sequence has no configuration."""
    return "X" if evidence is None else "evidence"
