"""Prediction, scores, tables and files of a trained model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from hscrf import metrics
from hscrf.arrays import Floats, Ints
from hscrf.engine import Batch
from hscrf.engine.cost import report_cost
from hscrf.errors import several
from hscrf.estimator.calibration import Calibrated
from hscrf.estimator.checks import check_lengths, check_steps, packed_lengths
from hscrf.estimator.contract import Store
from hscrf.estimator.saving import content_of, restore_model
from hscrf.estimator.scored import Scored
from hscrf.estimator.weights import topology_from_weights
from hscrf.features.blocks import Block
from hscrf.features.specifications import SPECIFICATIONS
from hscrf.files.blocks import check_function_names
from hscrf.files.container import write_container
from hscrf.fillers import expanded, shown
from hscrf.inference.decoding import check_loss, expected_gains
from hscrf.labels.columns import Scheme
from hscrf.labels.given import given_labels
from hscrf.labels.labels import Labels
from hscrf.labels.scoring import allowed_labels, as_evidence, labels_to_score, possible_labels
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import Workers, cut_chunks
from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.packed import Observations
from hscrf.observations.readers import cut_apart
from hscrf.potentials import Key
from hscrf.progress import waiting
from hscrf.streaming import Stream
from hscrf.streaming.scoring import StepScorer
from hscrf.streaming.stream import Shown
from hscrf.topology import Topology
from hscrf.versions import pandas_for

if TYPE_CHECKING:
    from pandas import DataFrame

FEW = 256  # up to this number of packed steps, one thread evaluates one chunk, and BLAS keeps its threads


class Predictor(Calibrated):
    """A model that has been trained or loaded; subclasses add learning.

    It needs ``topology_``, ``encoder_`` (names and scales of observations), ``blocks_`` (which weight belongs to which
    potential) and ``coef_`` (the weights). Each method encodes and scores each sequence once, in chunks, on ``n_jobs``
    threads; the result does not depend on their number.
    """

    topology: Topology | None
    scheme: Scheme
    n_jobs: int
    verbose: int = 0

    topology_: Topology
    encoder_: ObservationEncoder
    blocks_: list[Block]
    coef_: Floats
    loss_: float
    converged_: bool
    n_iter_: int
    stop_reason_: str
    history_: list[dict[str, Any]]
    scheme_: Scheme
    recipe_: Any = None  # how the shell reads files for this model, where `hscrf fit` made it
    mean_lengths_: dict[str, float]
    sizes_: dict[str, float]
    c2_: float
    factors_: dict[str, float]
    penalties_: list[dict[str, Any]]
    penalty_reason_: str

    if TYPE_CHECKING:
        get_params: Callable[..., dict[str, Any]]  # of scikit-learn's base class, which learners inherit too

    _encoder_class: type[ObservationEncoder] = ObservationEncoder
    _feature_classes: tuple[type, ...] = SPECIFICATIONS

    @overload
    def predict(
        self, X: Store, evidence: None = None, loss: str = ..., *, folder: Any, client: Any = None
    ) -> list[str]: ...

    @overload
    def predict(
        self, X: Any, evidence: Any = None, loss: str = "sequence", *, confidence: bool = False, lengths: Any = None
    ) -> list[Labels]: ...

    def predict(
        self,
        X: Any,
        evidence: Any = None,
        loss: str = "sequence",
        *,
        confidence: bool = False,
        lengths: Any = None,
        folder: Any = None,
        client: Any = None,
    ) -> list[Labels] | list[str]:
        """Return the best labels of each sequence that are consistent with the evidence.

        Parameters
        ----------
        X : list of sequences or Shards
            The labels of :class:`hscrf.scale.Shards` are written to files in ``folder``.
        evidence : list of labels, optional
            Known labels of each sequence, partial or None.
        loss : {"sequence", "step", "segment"}
            "sequence": the most probable labelling. "step" and "segment": the valid nested labelling with the largest
            expected number of right states of steps, or of right segments, by a second decoding over marginals.
            "segment" takes O(T L S) memory, L the longest duration. "step" warns where tags delimit segments.
        confidence : bool
            Whether to add the exact posterior probability of each segment, for :meth:`Labels.confidence`. It takes one
            pass over the sequence for each segment of a level without durations, one pass for a level with durations.
        lengths : list of int, optional
            The steps of each sequence, if X and the evidence are tables of all sequences below each other.
        folder, client : path, Dask client, optional
            For shards: where files are written, and whose workers predict.

        Returns
        -------
        list of Labels; for shards, list of file names
        """
        self.check_fitted()
        check_loss(loss, self._shown_levels(), self.found_scheme())
        if not isinstance(X, list) and isinstance(X, Store):  # isinstance is slow for a protocol
            if evidence is not None:
                raise ValueError("evidence is given, but X are Shards, which are labelled without evidence")
            if confidence:
                raise ValueError("confidence is True, but X are Shards, whose files hold labels only")
            return X.on_cluster(client).predict_by(self, folder, loss)
        X, evidence = cut_apart(lengths, ("X", X), ("evidence", evidence))
        if confidence:
            return self._confident(X, evidence, loss)
        return self.ask(X, evidence, partial(self._decode, loss))

    def stream(self, lag: int = 20, *, marginals: bool = False) -> Stream:
        """Label a sequence step by step while it arrives.

        Parameters
        ----------
        lag : int
            The labels of a step are returned this number of steps later. A longer lag gives better labels.
        marginals : bool
            Whether to compute the probabilities of all states too.

        Returns
        -------
        hscrf.streaming.Stream
        """
        self.check_fitted()
        scorer = StepScorer(Scorer(self.topology_, self.blocks_), self.coef_, self.encoder_)
        return Stream(scorer, expanded(self.topology_), self._shown_stacks, lag, marginals)

    def _shown_stacks(self, states: Ints) -> Shown:
        """The states that users see, from those of the engine (D, n)."""
        own = shown(self.topology_, states.astype(np.int32))
        labels = self._shown(Labels.unchecked(self.topology_, own, np.ones(states.shape, np.int8)))
        return Shown(labels.topology, labels.states, labels.topology.levels == self.topology_.levels)

    def log_likelihood(self, X: Any, Y: Any, *, lengths: Any = None) -> Floats:
        """Return the log probability of the labels of each sequence; for partial labels, of all labellings that agree.

        Parameters
        ----------
        X, Y, lengths
            Sequences and labels as in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n,)
            -inf for labels that the model holds impossible, such as a state that was not in training.
        """
        X, Y = cut_apart(lengths, ("X", X), ("Y", Y))

        def answer(scored: Scored) -> Floats:
            bound = scored.batch.log_partition(scored.values)
            free = Batch(scored.topology, scored.offsets).log_partition(scored.values)
            return np.subtract(bound, free, out=np.full(len(bound), -np.inf), where=bound > -np.inf)

        return self.ask_possible(X, Y, answer)

    def ask_possible(self, X: Sequence[Any], Y: Sequence[Any], answer: Callable[[Scored], Floats]) -> Floats:
        """Return the answers (n,) about labels that the model allows, -inf for others."""
        self.check_fitted()
        observations, labels = self.pack_to_score(X, Y)
        allowed, known = allowed_labels(labels, self.topology_, self._possible)
        self._report_cost(observations)
        with waiting("scoring", self.verbose):
            values = np.array(self._in_chunks(observations, known, answer, "Y"))
        return np.where(allowed, values, -np.inf)

    def _possible(self, y: Labels, n: int) -> Labels | None:
        """Labels of the model's topology; None if it forbids them."""
        return possible_labels(y, self.topology_, n)

    def score(self, X: Any, Y: Any = None, *, lengths: Any = None, client: Any = None) -> float:
        """Return the share of time steps with the right state at every level at once; unknown steps are left out.

        A state, or a child under its parent, that did not occur in training counts as wrong; it is not an error. For
        other measures see :func:`hscrf.metrics.scorer`.

        Parameters
        ----------
        X, Y, lengths, client
            As in :meth:`fit`; :class:`hscrf.scale.Shards` as X have labels of their own.

        Returns
        -------
        float
        """
        self.check_fitted()
        if isinstance(X, Store):
            return X.on_cluster(client).scorer_for(self)(self.coef_)
        X, Y = cut_apart(lengths, ("X", X), ("Y", Y))
        observations, labels = self.pack_to_score(X, Y)
        self._report_cost(observations)
        with waiting("scoring", self.verbose):
            return self._accuracy(observations, labels, self.coef_)

    def _accuracy(self, observations: Observations, labels: Sequence[Labels], weights: Floats) -> float:
        return metrics.joint_accuracy(labels, self.label(observations, weights))

    def label(self, observations: Observations, weights: Floats, loss: str = "sequence") -> list[Labels]:
        """Return the best labels of packed sequences at some weights; part of the contract of models.

        Parameters
        ----------
        observations : Observations
            Sequences that ``encoder_`` has packed.
        weights : array (weights,)
        loss : str
            As in :meth:`predict`.

        Returns
        -------
        list of Labels
        """
        return self._in_chunks(observations, None, partial(self._decode, loss), weights=weights)

    def pack_to_score(self, X: Sequence[Any], Y: Sequence[Any]) -> tuple[Observations, list[Labels]]:
        """Pack observations, and read labels; part of the contract of models.

        The labels may break rules of the topology and have other states.

        Parameters
        ----------
        X, Y
            Sequences and their labels.

        Returns
        -------
        tuple of Observations and list of Labels
        """
        given = self._given(Y)
        check_lengths(X, given)
        observations = self.encoder_.pack(X).shared()  # development data are scored again and again
        labels = self._read_to_score(given, packed_lengths(observations))
        check_steps(observations, labels)
        return observations, labels

    def _read_to_score(self, given: Sequence[Any], lengths: Sequence[int]) -> list[Labels]:
        return labels_to_score(given, lengths, self.topology_, self.found_scheme())

    def _given(self, Y: Any, name: str = "Y") -> list[Any]:
        """Labels given by the user, in the form that the reader takes."""
        return given_labels(Y, self._shown_levels().levels[1:], name)

    def _shown_levels(self) -> Topology:
        """The levels of predicted labels."""
        return self.topology_

    def found_scheme(self) -> Scheme:
        """Return the scheme of label columns: the one found in training, or the given one."""
        return getattr(self, "scheme_", self.scheme)

    # -- one pass over the data ----------------------------------------------------------------------------------------

    def read_evidence(
        self, evidence: Sequence[Any] | None, observations: Observations, name: str = "evidence"
    ) -> list[Labels] | None:
        """Return evidence as Labels of the model's topology; None means that nothing is known."""
        if evidence is None:
            return None
        evidence = self._given(evidence, name)
        lengths = packed_lengths(observations)
        if len(evidence) != len(lengths):
            raise ValueError(f"X has {several(len(lengths), 'sequence')} but {name} has {len(evidence)}")
        labels = [self._known(y, n, length, name) for n, (y, length) in enumerate(zip(evidence, lengths, strict=True))]
        check_steps(observations, labels, name)
        return labels

    def _known(self, y: Any, n: int, length: int, name: str) -> Labels:
        """The evidence of one sequence."""
        return as_evidence(y, n, length, self.topology_, self.found_scheme(), name)

    def ask(
        self,
        X: Sequence[Any],
        evidence: Sequence[Any] | None,
        answer: Callable[[Scored], Iterable[Any]],
        name: str = "evidence",
    ) -> list[Any]:
        """Return an answer for each sequence: sequences are encoded and scored in chunks on the model's threads."""
        self.check_fitted()
        with waiting("packing", self.verbose):
            observations = self.encoder_.pack(X)
            known = self.read_evidence(evidence, observations, name)
        self._report_cost(observations)
        with waiting("predicting", self.verbose):
            return self._in_chunks(observations, known, answer, name)

    def _report_cost(self, observations: Observations) -> None:
        """Report the estimated cost of a prediction if the model is verbose."""
        if self.verbose:
            report_cost(self, packed_lengths(observations), learning=False)

    def _in_chunks(
        self,
        observations: Observations,
        known: Sequence[Labels] | None,
        answer: Callable[[Scored], Iterable[Any]],
        name: str = "evidence",
        weights: Floats | None = None,
    ) -> list[Any]:
        scorer = Scorer(self.topology_, self.blocks_)
        weights = self.coef_ if weights is None else weights

        def work(numbers: Ints) -> Iterable[Any]:
            return answer(Scored(scorer, weights, observations, numbers, known, name))

        if observations.steps <= FEW:
            return list(work(np.arange(observations.offsets.size - 1)))
        with Workers(self.n_jobs) as workers:
            return list(chain.from_iterable(workers.map(work, cut_chunks(np.diff(observations.offsets)))))

    def _decode(self, loss: str, scored: Scored) -> list[Labels]:
        """The best labels of each sequence of a chunk."""
        values = scored.values if loss == "sequence" else self._gains(scored, loss)
        states, ends, best = scored.batch.best(values)
        scored.require(best)
        states = shown(self.topology_, states)
        states.flags.writeable = ends.flags.writeable = False
        return [
            self._shown(Labels.unchecked(self.topology_, states[:, a:b], ends[:, a:b], value))
            for (a, b), value in zip(scored.spans, best.tolist(), strict=True)
        ]

    def _gains(self, scored: Scored, loss: str) -> dict[Key, Floats]:
        return expected_gains(self.topology_, scored.batch, scored.values, loss)

    def _shown(self, labels: Labels) -> Labels:
        """Labels as the user sees them, from complete labels of the model's topology."""
        return labels

    @property
    def classes_(self) -> list[Any]:
        """The states of a model of one level; several levels have ``topology_.states``."""
        if not hasattr(self, "topology_") or self._shown_levels().depth != 2:
            raise AttributeError(f"this {type(self).__name__} has no classes_: see topology_.states")
        return list(self._shown_levels().states[1])

    @property
    def weights_(self) -> DataFrame:
        """All weights as a DataFrame: level, part, feature, states (named, joined by " > ") and weight.

        Where fillers remember, a column ``after`` names what the filler remembers before a transition or an end: "" if
        nothing came before it, missing where no filler is concerned.
        """
        self.check_fitted()
        pandas = pandas_for("the table of weights_")
        rows = []
        for block, weights in self.weighted_blocks():
            for (name, place), weight in zip(block.describe(self.encoder_), weights.tolist(), strict=True):
                level, part, states = block.locate(self.topology_, place)
                after = [block.remembered(self.topology_, place)] if self.topology_.remembers else []
                rows.append((level, part, name, states, *after, weight))
        after = ["after"] if self.topology_.remembers else []
        return pandas.DataFrame(rows, columns=["level", "part", "feature", "states", *after, "weight"])

    def weighted_blocks(self) -> list[tuple[Block, Floats]]:
        """Return each block of features with its weights."""
        return Scorer(self.topology_, self.blocks_).pieces(self.coef_)

    def learned_topology(self, threshold: float = 0.0) -> Topology:
        """Return the topology with only those children and successors whose weights exceed the threshold.

        A child belongs to a parent if any of its init, trans or end weights there exceeds it; v follows u if their
        trans weight under some parent does. A pair without a weight (``transitions="seen"``) counts as zero. A parent
        without such children keeps its strongest; levels without such weights do not change.

        Parameters
        ----------
        threshold : float

        Returns
        -------
        Topology
        """
        self.check_fitted()
        return topology_from_weights(self.topology_, self.weighted_blocks(), threshold)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file: arrays and JSON with a checksum, never pickle.

        Parameters
        ----------
        path : str or path
        """
        self.check_fitted()
        check_function_names(self.blocks_)
        write_container(path, *self.content())

    def content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the content of a model file: a header for JSON, and arrays; part of the contract of models."""
        return content_of(self)

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, Any], functions: Mapping[str, Any]) -> None:
        """Set the attributes of the model from the content of a file."""
        restore_model(self, header, arrays, functions)

    def check_fitted(self) -> None:
        """Raise scikit-learn's NotFittedError unless the model is trained or loaded."""
        if not hasattr(self, "coef_") or not hasattr(self, "blocks_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first, or hscrf.load a model")
