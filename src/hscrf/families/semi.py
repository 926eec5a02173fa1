"""Semi-Markov conditional random field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hscrf.arrays import Floats
from hscrf.estimator.hscrf import HSCRF
from hscrf.labels.columns import Scheme
from hscrf.labels.induction import LabelStatistics
from hscrf.potentials import Potentials
from hscrf.solvers import Solver
from hscrf.topology import Topology


class SemiCRF(HSCRF):
    """Semi-Markov conditional random field: one level of segments, with features of their lengths and contents.

    The labels of a sequence are a list of tags in the ``scheme``, or of half-open segments ``(start, stop, label)``.

    Parameters
    ----------
    topology : Topology, optional
        One level of states. None learns it from the labels.
    features : list of specifications, optional
        As in :class:`HSCRF`.
    max_duration : int or dict of str to int, optional
        The longest segment, of all labels or by label. None takes the longest of training. If labels are missing there,
        it is unknown: then there is no limit, and lengths have no weights.
    scheme : str
        "bio", "bioes" or "plain".
    c1, c2, margin, solver, min_count, pairs, transitions, fillers, standardize, n_jobs, random_state, warm_start
        As in :class:`HSCRF`.
    verbose, missing
        As in :class:`HSCRF`.

    Attributes
    ----------
    classes_ : list
        The labels. Other attributes are those of :class:`HSCRF`.

    Examples
    --------
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]]] * 2
    >>> model = SemiCRF().fit(X, [["B-NP", "I-NP", "O"], [(0, 2, "NP"), (2, 3, "O")]])
    >>> model.predict(X[:1])[0].segments("label")
    [(0, 2, 'NP'), (2, 3, 'O')]
    >>> model.topology_.max_duration[1].tolist()
    [2, 2]
    """

    _plain_c2 = 1.0

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        features: Sequence[Any] | None = None,
        max_duration: int | Mapping[str, int] | None = None,
        c1: float = 0.0,
        c2: float | str = 1.0,
        margin: float | Mapping[str, float | Mapping[str, float]] = 0.0,
        solver: str | Solver = "lbfgs",
        scheme: str = "bio",
        min_count: int = 1,
        pairs: str = "seen",
        transitions: str = "all",
        fillers: str | Mapping[str, Any] | None = None,
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
            scheme=scheme,
            min_count=min_count,
            pairs=pairs,
            transitions=transitions,
            fillers=fillers,
            standardize=standardize,
            n_jobs=n_jobs,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
            missing=missing,
        )
        self.max_duration = max_duration

    def _statistics(self, scheme: Scheme) -> LabelStatistics:
        limited: set[Any] = {1}  # the only level: its longest segment, if it is known
        if self.features is not None and "default" not in self.features:
            limited = {spec.level for spec in self.asked_features() if spec.needs_limit}
        return LabelStatistics(self.topology, scheme, limited)

    def _narrowed(self, topology: Topology) -> Topology:
        if topology.depth != 2:
            raise ValueError(f"{topology} has {topology.depth - 1} levels below the root, expected one")
        if self.max_duration is None:
            return topology
        return topology.limited({topology.levels[1]: self.max_duration})


def semi_crf_as_hscrf(potentials: Potentials, bottom: str = "step") -> Potentials:
    """Return a semi-Markov model as three levels: its segments over a dummy bottom level of one state and unit length.

    Parameters
    ----------
    potentials : Potentials
        Of a topology whose bottom level persists.
    bottom : str
        The name of the dummy level.

    Returns
    -------
    Potentials

    Examples
    --------
    >>> import numpy as np
    >>> from hscrf import log_partition
    >>> semi = Potentials(Topology({"label": ["A", "B"]}, max_duration={"label": 2}), 3)
    >>> three = semi_crf_as_hscrf(semi)
    >>> three.topology, bool(np.isclose(log_partition(semi), log_partition(three)))
    (Topology(root 1 > label 2 > step 1), True)
    """
    if potentials.topology.unit_bottom:
        raise ValueError(f"{potentials.topology} has a bottom of unit length, expected one that persists")
    arguments = potentials.topology.to_dict()
    arguments["levels"] = {**arguments["levels"], bottom: [bottom]}
    parts: dict[str, dict[str, Floats]] = {}
    for part, level, values in potentials.parts():
        parts.setdefault(part, {})[level] = values
    return Potentials(Topology.from_dict(arguments), potentials.length, **parts)
