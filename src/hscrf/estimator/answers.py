"""Questions about single sequences that their posteriors answer: for all kinds of models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hscrf.arrays import Random, generator
from hscrf.errors import InfeasibleError
from hscrf.inference import Marginals, Posterior
from hscrf.labels.labels import Labels
from hscrf.observations.readers import check_several
from hscrf.potentials import Potentials

Answer = Callable[[Posterior, int], Any]  # from a posterior and the number of its sequence


class PosteriorAnswers:
    """Marginals, potentials, entropies and samples of sequences; subclasses define ``ask_posteriors``."""

    def ask_posteriors(self, X: Any, evidence: Any, answer: Answer) -> list[Any]:
        """Return an answer about the posterior of each sequence; posteriors are made in chunks and not kept.

        Parameters
        ----------
        X : list of sequences
        evidence : list of labels or None
            Known labels of each sequence.
        answer : callable
            ``answer(posterior, n)`` of the posterior of sequence n.

        Returns
        -------
        list
            The answers, in the order of the sequences.
        """
        raise NotImplementedError

    def posterior(self, X: Sequence[Any], evidence: Sequence[Any] | None = None) -> list[Posterior]:
        """Return the posterior of each sequence, encoded and scored once for several computations.

        Each has ``decode()``, ``marginals``, ``entropy()``, ``sample(n)``, ``k_best(k)`` and ``log_partition``.

        Parameters
        ----------
        X, evidence
            As in :meth:`predict`.

        Returns
        -------
        list of Posterior
        """
        return self.ask_posteriors(X, evidence, lambda posterior, n: posterior)

    def predict_marginals(self, X: Sequence[Any], evidence: Sequence[Any] | None = None) -> list[Marginals]:
        """Return the posterior probabilities of states, ends and segments of each sequence.

        Parameters
        ----------
        X, evidence
            As in :meth:`predict`.

        Returns
        -------
        list of Marginals
        """
        return self.ask_posteriors(X, evidence, lambda posterior, n: posterior.marginals)

    def potentials(self, X: Sequence[Any]) -> list[Potentials]:
        """Return the log-potentials of each sequence, for the functions of :mod:`hscrf.inference`.

        Parameters
        ----------
        X : list of sequences

        Returns
        -------
        list of Potentials
        """
        return self.ask_posteriors(X, None, lambda posterior, n: posterior.potentials)

    def entropy(self, X: Sequence[Any], evidence: Sequence[Any] | None = None) -> list[float]:
        """Return the entropy in nats of the posterior of each sequence: the uncertainty of the model.

        Parameters
        ----------
        X, evidence
            As in :meth:`predict`.

        Returns
        -------
        list of float
        """
        return self.ask_posteriors(X, evidence, lambda posterior, n: posterior.entropy())

    def sample(
        self, X: Sequence[Any], n: int = 1, random_state: Random = None, evidence: Sequence[Any] | None = None
    ) -> list[list[Labels]]:
        """Draw n labellings of each sequence from the posterior; each sequence has a random generator of its own.

        Parameters
        ----------
        X : list of sequences
        n : int
            The number of labellings of each sequence.
        random_state : int, numpy Generator or None
            A seed or a generator.
        evidence : list of labels, optional
            As in :meth:`predict`.

        Returns
        -------
        list of list of Labels
        """
        check_several(X)
        seeds = generator(random_state).integers(2**63, size=len(X))
        return self.ask_posteriors(X, evidence, lambda posterior, k: posterior.sample(n, seeds[k]))


def answers_of(posteriors: Iterable[tuple[int, Posterior]], answer: Answer, name: str) -> list[Any]:
    """The answers of posteriors, each with the number of its sequence, which errors name."""
    found = []
    for n, posterior in posteriors:
        try:
            found.append(answer(posterior, n))
        except InfeasibleError as error:
            raise error.of_sequence(n, name) from None
    return found
