"""Linear-chain conditional random field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hscrf.estimator.hscrf import HSCRF
from hscrf.features.specifications import End, Init, Specification, Token, Trans
from hscrf.solvers import LBFGS, Solver, solver_of
from hscrf.topology import Topology


class ChainCRF(HSCRF):
    """Linear-chain conditional random field: one label for each time step.

    The labels of a sequence are a plain list, ``"?"`` or None where unknown. BIO tags are states like any other.

    Parameters
    ----------
    topology : Topology, optional
        One level of states. None learns it from the labels.
    features : list of specifications, optional
        None gives weights to every feature of a step and every pair of neighbouring labels, as in CRFsuite.
    edges : bool
        Whether the first and the last label have weights too.
    solver : str or solver
        As in :class:`HSCRF`; L-BFGS stops by CRFsuite's rule, ``delta=1e-5``, unless it is given another.
    c1, c2, margin, min_count, pairs, transitions, fillers, standardize, n_jobs, random_state, warm_start, verbose,
    missing
        As in :class:`HSCRF`.

    Attributes
    ----------
    classes_ : list
        The labels. Other attributes are those of :class:`HSCRF`.

    Examples
    --------
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]]] * 2
    >>> model = ChainCRF().fit(X, [["D", "N", "V"], ["D", "?", "V"]])
    >>> model.predict(X[:1])[0].column("label")
    ['D', 'N', 'V']
    >>> model.predict(X[:1], evidence=[["?", "?", "D"]])[0].column("label")[-1]
    'D'
    """

    _plain_c2 = 1.0

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        features: Sequence[Any] | None = None,
        edges: bool = False,
        c1: float = 0.0,
        c2: float | str = 1.0,
        margin: float | Mapping[str, float | Mapping[str, float]] = 0.0,
        solver: str | Solver = "lbfgs",
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
            scheme="plain",
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
        self.edges = edges

    @staticmethod
    def solver_of(solver: str | Solver) -> Solver:
        """Return the solver; L-BFGS without a ``delta`` stops by CRFsuite's rule.

        Parameters
        ----------
        solver : str or solver

        Returns
        -------
        solver
        """
        found = solver_of(solver)
        return replace(found, delta=1e-5) if isinstance(found, LBFGS) and found.delta is None else found

    def _narrowed(self, topology: Topology) -> Topology:
        if topology.depth != 2 or not topology.unit_bottom:
            raise ValueError(f"{topology} is not a chain, expected one level below the root with segments of length 1")
        return topology

    def _default_features(self) -> Sequence[Specification]:
        edges: list[Specification] = [Init("root"), End("root")] if self.edges else []
        return [Token(self.topology_.levels[1]), Trans("root"), *edges]
