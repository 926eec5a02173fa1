"""StackedCRF: a CRF over the scores of any classifier."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from hscrf.arrays import Floats, whole_number
from hscrf.errors import a_type
from hscrf.estimator.answers import Answer, PosteriorAnswers
from hscrf.estimator.hscrf import HSCRF
from hscrf.families.dynamic import DynamicCRF
from hscrf.features.specifications import Score, StartScore
from hscrf.inference import Marginals
from hscrf.inference.temperatures import Temperature
from hscrf.labels.columns import Scheme
from hscrf.labels.given import given_labels
from hscrf.labels.induction import loose_topology
from hscrf.labels.labels import Labels
from hscrf.labels.schemes import schemes_in
from hscrf.labels.scoring import labels_to_score, widened
from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.packed import Observations, of_names
from hscrf.observations.readers import check_several, cut_apart
from hscrf.stacking.neighbours import csr_of, window_matrix
from hscrf.stacking.scores import LevelScores, cross_fitted, fitted, make_folds, targets_of
from hscrf.topology import Topology

Self = TypeVar("Self", bound="StackedCRF")


class StackedCRF(BaseEstimator, PosteriorAnswers):
    """A CRF whose observations are the scores of a classifier of single steps.

    A classifier for each level learns the states of steps from windows of neighbouring steps, wherever these are known.
    Its log-probabilities become observations of the CRF, which adds nesting, order and boundaries. In training they are
    cross-fitted: those of a sequence come from classifiers that were not fitted to it. For prediction the classifiers
    are fitted again to everything. Stacking helps where a linear model of single steps is too weak, as with sensors.

    Each score is a feature of its own state only, with one weight for each state (:class:`hscrf.features.Score`). So
    few sequences are enough to learn these weights.

    Parameters
    ----------
    crf : HSCRF, ChainCRF, SemiCRF or None
        The model on top, unfitted. None takes ``HSCRF()``. It is cloned, not changed.
    classifier : estimator of scikit-learn or None
        Anything with ``fit`` and ``predict_proba``. None takes 200 extremely randomised trees. Its input is an array of
        numbers, or a sparse matrix where features have names.
    window : int
        The number of neighbours on each side in the input of the classifier, see :func:`hscrf.stacking.windows`.
    cv : int or splitter of scikit-learn
        Folds of sequences for cross-fitting.
    groups : sequence or None
        The group of each training sequence, such as the person or the document: no group is in two folds.
    passthrough : bool
        Whether the observations themselves are features of the CRF too. On two sets of sensors the mean of segment F1
        and accuracy of steps was higher without them: 83.5 against 80.4 (kitchen), 45.6 against 45.1 (CAD-120).
    random_state : int or None
        The seed for folds of sequences. The classifier has a seed of its own.

    Attributes
    ----------
    crf_ : HSCRF
        The fitted model on top.
    scores_ : list of LevelScores
        The classifier of each level, with its classes.
    encoder_ : ObservationEncoder
        Names and scales of the observations.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from hscrf import datasets
    >>> X, Y = datasets.make_activities(12, n_activities=1, random_state=0)
    >>> model = StackedCRF(HSCRF(), LogisticRegression(), window=2, cv=3).fit(X[:10], Y[:10])
    >>> model.predict(X[10:])[0].topology.levels
    ('root', 'activity', 'trajectory')
    """

    def __init__(
        self,
        crf: Any = None,
        classifier: Any = None,
        *,
        window: int = 5,
        cv: Any = 5,
        groups: Any = None,
        passthrough: bool = False,
        random_state: Any = None,
    ) -> None:
        self.crf = crf
        self.classifier = classifier
        self.window = window
        self.cv = cv
        self.groups = groups
        self.passthrough = passthrough
        self.random_state = random_state

    crf_: HSCRF
    scores_: list[LevelScores]
    encoder_: ObservationEncoder

    def fit(
        self: Self,
        X: Any,
        Y: Any,
        groups: Any = None,
        *,
        lengths: Any = None,
        development: Any = None,
        **options: Any,
    ) -> Self:
        """Learn the classifiers and the CRF from sequences X and their labels Y, complete or partial.

        Parameters
        ----------
        X : list of sequences
        Y : sequences of labels
            As :meth:`HSCRF.fit` takes them.
        groups : sequence or None
            The group of each sequence; replaces the constructor's.
        lengths : list of int or None
            The steps of each sequence, where X and Y are stacks of all sequences.
        development : pair (X, Y) or None
            As in :meth:`HSCRF.fit`.
        **options
            Other arguments of the CRF's ``fit``, such as ``sample_weight``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If arguments are wrong, or no state is known in the labels.
        """
        self._check_arguments()
        X, Y = cut_apart(lengths, ("X", X), ("Y", Y))
        check_several(X)
        crf, classifier = self._parts()
        encoder = ObservationEncoder()
        packed = encoder.fit_pack(X)
        labels, delimited = self._read(Y, np.diff(packed.offsets).tolist(), crf)
        targets = targets_of(labels, delimited)
        if not targets:
            raise ValueError("Y has no known state, expected labels that a classifier can learn")
        rows = window_matrix(packed, self.window)
        folds = make_folds(self.cv, len(X), self.groups if groups is None else groups, self.random_state)
        columns: dict[str, Floats] = {}
        for target in targets:
            columns.update(cross_fitted(classifier, rows, packed.offsets, target, folds))
        for target in targets:
            target.scores.model = fitted(classifier, rows, target.codes)
        scores = [target.scores for target in targets]
        self._add_features(crf, scores)
        self.encoder_, self.scores_ = encoder, scores
        if development is not None:
            options["development"] = (self._observe(development[0]), development[1])
        self.crf_ = crf.fit(self._described(packed, columns), Y, **options)
        return self

    def _check_arguments(self) -> None:
        whole_number(self.window, "window", least=0)
        if self.crf is not None and (not isinstance(self.crf, HSCRF) or isinstance(self.crf, DynamicCRF)):
            raise ValueError(f"crf is {a_type(self.crf)}, expected an HSCRF, a ChainCRF or a SemiCRF")
        if self.classifier is not None and not hasattr(self.classifier, "predict_proba"):
            raise ValueError(f"classifier is {self.classifier!r}, expected an estimator with predict_proba")

    def _parts(self) -> tuple[Any, Any]:
        """A new CRF, and the classifier that is cloned for each fold."""
        from sklearn.base import clone
        from sklearn.ensemble import ExtraTreesClassifier

        crf = HSCRF() if self.crf is None else clone(self.crf)
        if self.classifier is None:
            return crf, ExtraTreesClassifier(200, min_samples_leaf=2, random_state=0)
        return crf, self.classifier

    def _read(self, Y: Any, lengths: Sequence[int], crf: Any) -> tuple[list[Labels], list[str]]:
        """The labels of all sequences, and the levels whose tags delimit segments."""
        given = given_labels(Y, () if crf.topology is None else crf.topology.levels[1:])
        if len(given) != len(lengths):
            raise ValueError(f"X has {len(lengths)} sequences but Y has {len(given)}")
        known = [y.topology for y in given if isinstance(y, Labels)]
        topology = crf.topology or (known[0] if known else None)
        kinds = schemes_in(given, crf.scheme, topology)
        if topology is None:
            topology = loose_topology([y for y in given if y is not None], kinds)
        labels = labels_to_score(given, lengths, widened(topology, given, kinds), kinds)
        for n, (y, length) in enumerate(zip(labels, lengths, strict=True)):
            if y.length != length:
                raise ValueError(f"X[{n}] has {length} steps but Y[{n}] has {y.length}")
        by_level = kinds if isinstance(kinds, Mapping) else dict.fromkeys(topology.levels[1:], kinds)
        return labels, [level for level, kind in by_level.items() if kind in ("bio", "bioes")]

    def _add_features(self, crf: Any, scores: Sequence[LevelScores]) -> None:
        """Add each score as a feature of its own state."""
        added = [Score(own.level) for own in scores] + [StartScore(own.level) for own in scores if own.delimited]
        crf.features = [*(["default"] if crf.features is None else crf.features), *added]

    def _observe(self, X: Any) -> list[list[dict[str, float]]]:
        """Observations with the scores of the classifiers that were fitted to all training data."""
        packed = self.encoder_.pack(X)
        rows = window_matrix(packed, self.window)
        columns: dict[str, Floats] = {}
        for own in self.scores_:
            columns.update(own.columns(own.probabilities(own.model, rows)))
        return self._described(packed, columns)

    def _described(self, packed: Observations, columns: Mapping[str, Floats]) -> list[list[dict[str, float]]]:
        """Feature dicts of all sequences: scores, a constant and, unless they are left out, the observations."""
        names, table = list(columns), np.stack(list(columns.values()), axis=1).tolist()
        steps = [{"bias": 1.0, **dict(zip(names, row, strict=True))} for row in table]
        if self.passthrough:
            for step, own in zip(steps, self._named(packed), strict=True):
                step.update(own)
        return [steps[a:b] for a, b in pairwise(packed.offsets.tolist())]

    def _named(self, packed: Observations) -> list[dict[str, float]]:
        """The observations of each step by name."""
        if packed.dense is not None:
            columns = [f"x:{name}" for name in self.encoder_.columns]
            return [dict(zip(columns, row, strict=True)) for row in packed.dense.tolist()]
        names = [f"x:{name}" for name in self.encoder_.names]
        matrix = csr_of(of_names(packed))
        at, data = matrix.indices.tolist(), matrix.data.tolist()
        return [{names[at[k]]: data[k] for k in range(a, b)} for a, b in pairwise(matrix.indptr.tolist())]

    # -- prediction: the CRF's, on observations with scores

    def predict(
        self,
        X: Any,
        evidence: Any = None,
        loss: str = "sequence",
        *,
        lengths: Any = None,
        **options: Any,
    ) -> list[Labels]:
        """Return the best labels of each sequence, as :meth:`HSCRF.predict`.

        Parameters
        ----------
        X, evidence, loss, lengths, **options
            As in :meth:`HSCRF.predict`.

        Returns
        -------
        list of Labels
        """
        X, evidence = cut_apart(lengths, ("X", X), ("evidence", evidence))
        return self._fitted().predict(self._observe(X), evidence, loss, **options)

    def predict_marginals(self, X: Any, evidence: Any = None, *, lengths: Any = None) -> list[Marginals]:
        """Return the posterior probabilities of each sequence, as :meth:`HSCRF.predict_marginals`.

        Parameters
        ----------
        X, evidence, lengths
            As in :meth:`HSCRF.predict`.

        Returns
        -------
        list of Marginals
        """
        X, evidence = cut_apart(lengths, ("X", X), ("evidence", evidence))
        return self._fitted().predict_marginals(self._observe(X), evidence)

    def ask_posteriors(self, X: Any, evidence: Any, answer: Answer) -> list[Any]:
        """The answers of the model on top."""
        return self._fitted().ask_posteriors(self._observe(X), evidence, answer)

    def log_likelihood(self, X: Any, Y: Any, *, lengths: Any = None) -> Floats:
        """Return the log probability of the labels of each sequence.

        Parameters
        ----------
        X, Y, lengths
            As in :meth:`HSCRF.log_likelihood`.

        Returns
        -------
        ndarray of shape (n,)
        """
        X, Y = cut_apart(lengths, ("X", X), ("Y", Y))
        return self._fitted().log_likelihood(self._observe(X), Y)

    def score(self, X: Any, Y: Any, *, lengths: Any = None) -> float:
        """Return the share of time steps with the right state at every level at once.

        Parameters
        ----------
        X, Y, lengths
            As in :meth:`HSCRF.score`.

        Returns
        -------
        float
        """
        X, Y = cut_apart(lengths, ("X", X), ("Y", Y))
        return self._fitted().score(self._observe(X), Y)

    def calibrate(self: Self, X: Any, Y: Any, *, lengths: Any = None) -> Self:
        """Fit a temperature for each level to development data, as :meth:`HSCRF.calibrate`.

        Parameters
        ----------
        X, Y, lengths
            As in :meth:`HSCRF.calibrate`.

        Returns
        -------
        self
        """
        X, Y = cut_apart(lengths, ("X", X), ("Y", Y))
        self._fitted().calibrate(self._observe(X), Y)
        return self

    @property
    def topology_(self) -> Topology:
        """The topology of the model on top."""
        return self._fitted().topology_

    @property
    def temperature_(self) -> Mapping[str, Temperature]:
        """The temperatures of the model on top."""
        return self._fitted().temperature_

    @property
    def classes_(self) -> list[Any]:
        """The states of a model of one level."""
        return self._fitted().classes_

    @property
    def scheme_(self) -> Scheme:
        """How label columns are written, as training found it."""
        return self._fitted().found_scheme()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, without pickle; see :func:`hscrf.stacking.load`.

        Parameters
        ----------
        path : str or path
        """
        from hscrf.stacking.files import save

        self._fitted()
        save(self, path)

    def _fitted(self) -> HSCRF:
        if not hasattr(self, "crf_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this StackedCRF is not fitted yet: call fit first, or hscrf.load a model")
        return self.crf_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "crf_")
