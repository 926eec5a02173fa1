"""Dynamic conditional random field: several labels for each time step, at levels that do not nest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Random
from hscrf.estimator.answers import Answer
from hscrf.estimator.frame import Frame
from hscrf.estimator.hscrf import HSCRF
from hscrf.families.combinations import (
    CombinationStatistics,
    FactorFeatures,
    combined,
    in_steps,
    labels_by_level,
    one_step_rows,
)
from hscrf.families.factors import Pair
from hscrf.features.specifications import End, Init, Specification, Token, Trans
from hscrf.inference import Marginals, Posterior
from hscrf.inference.temperatures import tempered_marginals
from hscrf.labels.columns import Scheme
from hscrf.labels.labels import Labels
from hscrf.labels.reading import over
from hscrf.labels.scoring import widened
from hscrf.objective.margin import Costs, equal_costs
from hscrf.observations.encoder import ObservationEncoder
from hscrf.solvers import Solver
from hscrf.topology import Topology


class DynamicCRF(HSCRF):
    """Dynamic (factorial) conditional random field: several labels for each time step, at levels that do not nest.

    The labels of a sequence are a dict from level to a list of labels, ``"?"`` where unknown. Inference is exact, over
    the combinations of labels. The cost of a step is their number squared. ``predict`` returns :class:`Labels` over
    ``levels_`` in which every segment has one step. ``evidence`` may fix any label of any level.

    Parameters
    ----------
    topology : Topology, optional
        The levels and their states. ``children`` limits the combinations; ``successors`` limits which labels of a level
        may follow each other. None learns the states from the labels.
    features : list of specifications, optional
        ``Token``, ``Init``, ``Trans`` and ``End`` of a level, and ``Pair(level, other)``. None takes tokens and
        transitions of every level and pairs of neighbouring levels.
    combinations : {"seen", "all"}
        "seen": the combinations of training, if no label is missing there. "all": all that the topology allows.
    c1, c2, margin, solver, min_count, pairs, transitions, standardize, n_jobs, random_state, warm_start, verbose,
    missing
        As in :class:`HSCRF`.

    Attributes
    ----------
    levels_ : Topology
        The levels and their states.
    topology_ : Topology
        The flat topology of the combinations.
    combinations_ : ndarray of shape (P, levels)
        The states of each combination. Other attributes are those of :class:`HSCRF`.

    Examples
    --------
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]]] * 2
    >>> Y = [{"chunk": ["B", "I", "O"], "tag": ["D", "N", "V"]}] * 2
    >>> model = DynamicCRF().fit(X, Y)
    >>> model.predict(X[:1])[0].column("tag")
    ['D', 'N', 'V']
    >>> model.predict(X[:1], evidence=[{"chunk": ["?", "O", "?"]}])[0].column("tag")[1]
    'V'
    """

    _feature_classes = (Token, Init, Trans, End, Pair)

    _plain_c2 = 1.0

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        features: Sequence[Any] | None = None,
        combinations: str = "seen",
        c1: float = 0.0,
        c2: float | str = 1.0,
        margin: float | Mapping[str, float | Mapping[str, float]] = 0.0,
        solver: str | Solver = "lbfgs",
        min_count: int = 1,
        pairs: str = "seen",
        transitions: str = "all",
        standardize: bool = True,
        n_jobs: int = 1,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        missing: str = "indicator",
    ) -> None:
        super().__init__(
            topology,
            features=features,
            c1=c1,
            c2=c2,
            margin=margin,
            solver=solver,
            scheme="plain",
            min_count=min_count,
            pairs=pairs,
            transitions=transitions,
            standardize=standardize,
            n_jobs=n_jobs,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
            missing=missing,
        )
        self.combinations = combinations

    # labels by level, and labels of combinations

    def _statistics(self, scheme: Scheme) -> CombinationStatistics:
        if self.combinations not in ("seen", "all"):
            raise ValueError(f"combinations is {self.combinations!r}, expected 'seen' or 'all'")
        return CombinationStatistics(self.topology, self.combinations)

    def _adopt(self, frame: Frame) -> None:
        super()._adopt(frame)
        statistics: Any = frame.statistics
        self.levels_, self.combinations_ = statistics.levels(), statistics.table()

    def _costs(self) -> Costs:
        """The cost of a wrong combination: the sum of the costs of its wrong states."""
        table = np.zeros((len(self.combinations_),) * 2)
        for d, cost in equal_costs(self.levels_, self.margin).items():
            own = self.combinations_[:, d - 1]
            table += cost[own[:, None], own]
        return {1: table}

    def _separate(self, labels: Labels) -> Labels:
        """Labels of every level from complete labels of combinations."""
        states, ends = one_step_rows(labels.length, self.levels_.depth)
        states[1:] = self.combinations_[labels.states[1]].T
        return Labels(self.levels_, states, ends, score=labels.score)

    def _known(self, evidence: Sequence[Any], lengths: Sequence[int], name: str) -> list[Labels]:
        known = self.levels_, self.combinations_, self.topology_
        return [
            combined(*known, labels_by_level(self.levels_, y, n, length, name), n, name)
            for n, (y, length) in enumerate(zip(evidence, lengths, strict=True))
        ]

    # factored weights

    def _default_features(self) -> Sequence[Specification]:
        levels = self.levels_.levels[1:]
        own: list[Specification] = [spec for level in levels for spec in (Token(level), Trans(level))]
        return own + [Pair(one, other) for one, other in pairwise(levels)]

    def _feature_statistics(self, encoder: ObservationEncoder) -> FactorFeatures:
        options = (encoder, self.pairs, self.transitions)
        return FactorFeatures(self.specifications(), self.levels_, self.combinations_, *options)

    # predictions

    def predict_marginals(self, X: Any, evidence: Any = None, *, lengths: Any = None) -> list[Marginals]:
        """Return the posterior probabilities of each sequence.

        Parameters
        ----------
        X : list of sequences
        evidence : list of labels, optional
        lengths : list of int, optional
            As in :meth:`HSCRF.predict`.

        Returns
        -------
        list of Marginals
            ``state`` has every level, and "combination" for the combinations.
        """
        found = map(self._marginals_by_level, super().predict_marginals(X, evidence, lengths=lengths))
        return [tempered_marginals(marginals, self.temperature_) for marginals in found]

    def ask_posteriors(self, X: Any, evidence: Any, answer: Answer) -> list[Any]:
        """Answers about posteriors whose labels and marginals are those of all levels."""
        return super().ask_posteriors(X, evidence, lambda found, n: answer(PosteriorByLevel(found, self), n))

    def _marginals_by_level(self, found: Marginals) -> Marginals:
        state, ending = dict(found.state), dict(found.ending)
        for d, level in enumerate(self.levels_.levels[1:], start=1):
            indicator = self.combinations_[:, d - 1][:, None] == np.arange(self.levels_.n_states[d])
            state[level] = found.state["combination"] @ indicator.astype(np.float64)
            ending[level] = found.ending["combination"]
        names = dict(zip(self.levels_.levels[1:], self.levels_.states[1:], strict=True))
        return replace(found, state=state, ending=ending, names=names)

    def _hidden_states(self, d: int) -> tuple[int, NDArray[np.bool_]]:
        return 1, np.arange(self.levels_.n_states[d])[:, None] == self.combinations_[:, d - 1]

    _shown = _separate

    def _read_to_score(self, given: Sequence[Any], lengths: Sequence[int]) -> list[Labels]:
        wide = widened(self.levels_, given, "plain")
        return [
            in_steps(y) if isinstance(y, Labels) else labels_by_level(wide, y, n, length, "Y")
            for n, (y, length) in enumerate(zip(given, lengths, strict=True))
        ]

    def _possible(self, y: Labels, n: int) -> Labels | None:
        if y.topology.levels != self.levels_.levels:
            raise ValueError(f"Y[{n}] has {y.topology}, but the model has {self.levels_}")
        try:
            return combined(self.levels_, self.combinations_, self.topology_, over([y], self.levels_)[0], n, "Y")
        except ValueError:  # a state or a combination that the model does not have
            return None

    def _shown_levels(self) -> Topology:
        return self.levels_

    def learned_topology(self, threshold: float = 0.0) -> Topology:
        """Raise an error: the levels of this model do not nest.

        Parameters
        ----------
        threshold : float
            Not used.

        Returns
        -------
        Topology
            Never.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError("the levels of a DynamicCRF do not nest, so there is no topology to learn")

    def content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the content of a model file; part of the contract of models.

        Returns
        -------
        header : dict
            For JSON.
        arrays : dict of str to ndarray
        """
        header, arrays = super().content()
        return {**header, "levels": self.levels_.to_json()}, {**arrays, "combinations": self.combinations_}

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, Any], functions: Mapping[str, Any]) -> None:
        """Set the attributes of the model from the content of a file.

        Parameters
        ----------
        header : dict
        arrays : dict of str to ndarray
        functions : dict of str to callable
            Segment functions by name.
        """
        super().restore(header, arrays, functions)
        self.levels_ = Topology.from_dict(header["levels"])
        self.topology = self.levels_ if header["topology_given"] else None
        self.combinations_ = np.array(arrays["combinations"])


class PosteriorByLevel(Posterior):
    """A posterior over combinations whose labels and marginals are those of every level."""

    def __init__(self, combined: Posterior, model: DynamicCRF) -> None:
        super().__init__(combined.potentials, combined.evidence)
        self.model = model

    @cached_property
    def marginals(self) -> Marginals:
        """Posterior probabilities of the states of each level."""
        return self.model._marginals_by_level(Posterior(self.potentials, self.evidence).marginals)

    def decode(self) -> Labels:
        """Return the best labels by level."""
        return self.model._separate(super().decode())

    def k_best(self, k: int) -> list[Labels]:
        """Return the k best labellings by level."""
        return [self.model._separate(labels) for labels in super().k_best(k)]

    def sample(self, n: int = 1, random_state: Random = None) -> list[Labels]:
        """Draw n labellings by level."""
        return [self.model._separate(labels) for labels in super().sample(n, random_state)]
