"""HSCRF: fit and predict nested labels, scikit-learn style."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from hscrf import solvers
from hscrf.arrays import Floats
from hscrf.engine.cost import report_cost, reporting_logarithms
from hscrf.estimator.checks import (
    check_durations,
    check_options,
    check_run,
    check_specifications,
    unchanged_on_failure,
    warn_of_weights,
)
from hscrf.estimator.contract import Packed, Store
from hscrf.estimator.descent import descend, first_weights, has_hidden_level
from hscrf.estimator.frame import FeatureStatistics, Frame, Lists, NestedFeatures, Statistics, data_of
from hscrf.estimator.online import partial_fit
from hscrf.estimator.parameters import SequenceEstimator
from hscrf.estimator.predictor import Predictor
from hscrf.estimator.saving import fingerprint_of
from hscrf.estimator.specified import Specified
from hscrf.estimator.weights import named_weights
from hscrf.files.checkpoint import Checkpoint
from hscrf.labels.columns import Scheme, schemes_of
from hscrf.labels.induction import LabelStatistics
from hscrf.labels.packed import FillerNeighbours
from hscrf.objective.margin import Costs, equal_costs
from hscrf.objective.scorer import Scorer
from hscrf.objective.sharded import ShardedLoss
from hscrf.objective.workers import Workers
from hscrf.observations.encoder import ObservationEncoder
from hscrf.progress import waiting
from hscrf.solvers.course import Solver
from hscrf.topology import Topology

Self = TypeVar("Self", bound="HSCRF")


class HSCRF(SequenceEstimator, Specified, Predictor):
    """Hierarchical semi-Markov conditional random field; the user guide explains the defaults.

    Parameters
    ----------
    topology : Topology, optional
        The state hierarchy. None learns it from the labels.
    children : {"auto", "seen", "all"}
        The children of a parent in a learned topology. "seen": those in the known labels. "all": every state of the
        next level. "auto": "seen" where no label is missing or enough are known (see the guide), "all" elsewhere.
    features : list of specifications or "default", optional
        Blocks of weights, such as ``hscrf.Token``. "default" stands for the defaults that the list does not name:
        ``[Token("phrase", penalty=3), "default"]`` changes one of them. None takes the defaults.
    durations : dict of str to {"gamma", "bins", "each"}, optional
        Levels with weights of durations (:class:`hscrf.Duration`). Equal labels in a row are one segment there.
    max_duration : int, or dict of str to int or dict, optional
        Longest durations: ``{"action": 40}``, by state ``{"action": {"wait": 90}}``, or a number for the levels in
        ``durations`` (for all without any). None takes the longest of training where weights need a limit.
    open_duration : bool or "auto"
        Whether segments of levels in ``durations`` may exceed the longest duration L; each step beyond L has one more
        weight. "auto": at the bottom level, without ``max_duration``, if training has a segment of more than 100 steps.
    c1, c2 : float
        Penalties c1 * sum |w| + c2 * sum w^2, as in CRFsuite; ``Token("tag", penalty=10)`` multiplies both by 10. The
        perceptron has none. ``c2="auto"`` chooses c2, and factors of levels and transitions, on held-out folds.
    margin : float, or dict of str to float
        Softmax-margin: cost of each step with a wrong state in training, by level. 0 is maximum likelihood.
    solver : {"lbfgs", "sgd", "perceptron"} or solver
        A name, or a solver object with options.
    scheme : {"auto", "plain", "bio", "bioes"} or dict of str to str
        How label columns are written. "auto": B-x or I-x mean BIO, and E-x or S-x with them BIOES, by level.
    min_count : int
        Named features that occur less often are left out.
    pairs, transitions : {"seen", "all"}
        Whether all pairs of a named feature and a state, and all legal transitions, have weights, or only those that
        occur in training, as in CRFsuite; others then score 0.
    fillers : "auto", None, or dict of str to state or list of states
        States that remember the last other state under their parent, ``{"part": "O"}``. "auto" takes those of the
        topology, or the states named "O" where the training labels show that memory pays (see the guide).
    standardize, warm_start : bool
        Whether numeric columns are centred and scaled; whether ``fit`` starts from the weights of the former one.
    missing : {"indicator", "refuse"}
        A missing number (None or NaN) contributes nothing and has an indicator feature, or it is an error.
    n_jobs, random_state : int, int or None
        Threads, -1 for one per core (the result is the same); seed of stochastic solvers, folds and first weights.
    verbose : int
        0: silent. 1: progress of steps longer than a second, and a warning before expensive ones. 2: every iteration.

    Attributes
    ----------
    topology_, coef_ : Topology, ndarray of shape (weights,)
    converged_, n_iter_, stop_reason_, history_, loss_ : bool, int, str, list of dict, float
    best_iter_, mean_lengths_, sizes_ : int or None, dict of str to float
        The best iteration on development data; mean length of training segments; their size, where penalties need it.
    c2_, factors_, penalties_, penalty_reason_ : float, dict, list, str
        The penalty, its factors by level, the path of the search, and the reason of the choice.

    Examples
    --------
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]]] * 3
    >>> Y = [{"phrase": ["NP", "NP", "VP"], "tag": ["D", "N", "V"]}] * 3
    >>> model = HSCRF().fit(X, Y)
    >>> model.predict(X[:1])[0].tree()
    [('NP', ['D', 'N']), ('VP', ['V'])]
    """

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        children: str = "auto",
        features: Sequence[Any] | None = None,
        durations: Mapping[str, str] | None = None,
        max_duration: int | Mapping[str, int | Mapping[str, int | None] | None] | None = None,
        open_duration: bool | str = "auto",
        c1: float = 0.0,
        c2: float | str = 0.1,
        margin: float | Mapping[str, float | Mapping[str, float]] = 0.0,
        solver: str | Solver = "lbfgs",
        scheme: str | Mapping[str, str] = "auto",
        min_count: int = 1,
        pairs: str = "seen",
        transitions: str = "all",
        fillers: str | Mapping[str, Any] | None = "auto",
        standardize: bool = True,
        warm_start: bool = False,
        missing: str = "indicator",
        n_jobs: int = 1,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.topology = topology
        self.children = children
        self.features = features
        self.durations = durations
        self.max_duration: Any = max_duration
        self.open_duration: Any = open_duration
        self.c1 = c1
        self.c2 = c2
        self.margin = margin
        self.solver = solver
        self.scheme = scheme
        self.min_count = min_count
        self.pairs = pairs
        self.transitions = transitions
        self.fillers = fillers
        self.standardize = standardize
        self.warm_start = warm_start
        self.missing = missing
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    solver_of = staticmethod(solvers.solver_of)  # a family may have a rule of its own for a name

    def fit(
        self: Self,
        X: Any,
        Y: Any = None,
        sample_weight: ArrayLike | None = None,
        development: tuple[Any, Any] | Store | None = None,
        patience: int = 10,
        checkpoint: str | os.PathLike[str] | None = None,
        *,
        groups: Sequence[Any] | None = None,
        lengths: Sequence[int] | None = None,
        client: Any = None,
        callback: Callable[[dict[str, Any]], None] | None = None,
    ) -> Self:
        """Learn from sequences X and their labels Y, complete or partial; Ctrl-C keeps the best weights so far.

        Parameters
        ----------
        X : list of sequences or :class:`hscrf.scale.Shards`
            Shards hold data beyond memory, with their labels; the weights have the same bits.
        Y : list of labels; None for shards
        sample_weight : array-like (n,), optional
            A weight for each sequence in the loss.
        development : pair (X, Y) or shards, optional
            Training stops when its score has not improved for ``patience`` iterations; the best model is kept.
        patience : int
        checkpoint : path, optional
            A file that training writes, and resumes from if it exists.
        groups : array-like (n,), optional
            With ``c2="auto"`` only: sequences of one group (a person, a document) stay in one fold.
        lengths : list of int, optional
            Steps of each sequence, if X and Y are tables of all sequences below each other.
        client, callback : Dask client, callable, optional
            A client whose workers evaluate shards; a function that gets the new entry of ``history_`` in each
            iteration.

        Returns
        -------
        self
        """
        self._check_arguments(groups)
        check_run(development, patience, callback)
        warn_of_weights(sample_weight)
        data = data_of(X, Y, lengths, client)
        with unchanged_on_failure(self), reporting_logarithms(self), Workers(self.n_jobs) as workers:
            packed, weights = self._learn(data)
            objective = self._loss(packed, sample_weight, workers)
            weights = self._choose_penalties(objective, weights, groups)
            saver = Checkpoint(checkpoint, fingerprint_of(self, objective)) if checkpoint is not None else None
            weights = saver.resume(weights) if saver else weights
            monitor = self._monitor(development, patience, saver, client, callback)
            solver, is_given = self.solver_of(self.solver), getattr(self.solver, "delta", None) is not None
            own = is_given or has_hidden_level(self.topology_, packed.labelled_levels())
            result = descend(solver, objective, weights, *self._penalties(), monitor, self.random_state, own_rule=own)
        self._keep(result)
        return self

    def partial_fit(
        self: Self, X: Any, Y: Any, sample_weight: ArrayLike | None = None, *, lengths: Sequence[int] | None = None
    ) -> Self:
        """Learn from one more chunk of data: one epoch of an online solver.

        The first chunk fixes levels, states, features and scales; later chunks add none. Give a ``topology`` if the
        first chunk may lack states. After ``fit`` or loading, all of these are fixed.

        Parameters
        ----------
        X, Y, sample_weight, lengths
            As in :meth:`fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the solver is L-BFGS, which needs all data at once.
        """
        partial_fit(self, X, Y, sample_weight, lengths)
        return self

    def _check_arguments(self, groups: Sequence[Any] | None = None) -> None:
        """Refuse wrong arguments of the constructor before any work."""
        check_options(vars(self))
        if groups is not None and self.c2 != "auto":
            raise ValueError(f"groups are given for the folds of c2='auto', but c2 is {self.c2!r}: expected none")
        if self.c2 == "auto" and isinstance(solvers.solver_of(self.solver), solvers.Perceptron):
            raise ValueError("c2 is 'auto', but the perceptron has no penalties to choose: expected another solver")
        check_specifications(self.features, self._feature_classes)
        check_durations(self.durations, self.max_duration, self.open_duration)

    def _learn(self, data: Store | Lists) -> tuple[Packed, Floats]:
        """Learn the frame and the features; return the data packed in that frame, and the starting weights."""
        former = self._former_weights()
        packed: Packed = data.packed_for(self)
        frame = packed.frame
        self._adopt(frame)
        with waiting("choosing features", self.verbose):
            features = self._feature_statistics(frame.encoder)
            for part in packed.parts():
                features.update(part.observations, part.labels)
            blocks, self.sizes_ = features.blocks(), features.sizes()
        labelled = packed.labelled_levels()
        weights = first_weights(blocks, frame.encoder, self.topology_, labelled, former, self.random_state)
        self.encoder_, self.blocks_ = frame.encoder, blocks
        report_cost(self, packed.lengths)
        return packed, weights

    def _former_weights(self) -> dict[Any, float] | None:
        """The weights of the last fit by name if ``warm_start`` is set, else None."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        return named_weights(self.weighted_blocks(), self.encoder_, self.topology_)

    def _loss(self, packed: Packed, sample_weight: ArrayLike | None, workers: Workers) -> ShardedLoss:
        """The loss of packed data as a function of the weights."""
        scorer, costs = Scorer(self.topology_, self.blocks_), self._costs() if self.margin else None
        return packed.objective(scorer, sample_weight, workers, costs)

    def _keep(self, result: solvers.Result) -> None:
        """Store the result of the solver, and remove attributes of earlier weights."""
        self.coef_, self.temperature_ = result.weights, {}
        self.loss_, self.converged_, self.n_iter_ = result.loss, result.converged, result.n_iter
        self.stop_reason_, self.history_, self.best_iter_ = result.reason, result.history, result.kept
        for name in ("online_", "n_seen_", "recipe_"):
            self.__dict__.pop(name, None)

    def new_frame(self, scheme: Scheme) -> Frame:
        """Return a frame that learns names, scales, states and rules from data; part of the contract of models.

        Parameters
        ----------
        scheme : str or dict of str to str

        Returns
        -------
        Frame
        """
        encoder = ObservationEncoder(self.min_count, self.standardize, self.missing)
        return Frame(encoder, self._statistics(scheme), scheme, self._ruled)

    def _ruled(self, learned: Topology, longest: int, neighbours: FillerNeighbours) -> Topology:
        """The learned topology with the rules of the model; ``longest`` is the length of the longest sequence."""
        return neighbours.remembering(self._narrowed(learned).shortened(longest), self.fillers)

    def _costs(self) -> Costs:
        """The costs of wrong states under the margin, by level of the topology."""
        return equal_costs(self.topology_, self.margin)

    def _adopt(self, frame: Frame) -> None:
        """Store the results of the first pass."""
        assert frame.topology is not None
        if self.scheme != "plain":
            schemes_of(frame.topology, frame.scheme)  # refuses a scheme of a level that is not there
        self.topology_, self.mean_lengths_ = frame.topology, frame.lengths.means()
        self.scheme_ = frame.scheme

    def _statistics(self, scheme: Scheme) -> Statistics:
        """The statistics that the topology is learned from."""
        timed, limits = {*(self.durations or ())}, self.max_duration
        bounded = [spec for spec in self.asked_features() if spec.needs_limit]
        limited = timed | {spec.level for spec in bounded} | {*(limits if isinstance(limits, Mapping) else ())}
        opened = timed if self.open_duration and limits is None else set()
        closed = {spec.level for spec in bounded if spec.part not in ("duration", "tail")}
        return LabelStatistics(self.topology, scheme, limited, None, self.children, opened - closed)

    def _narrowed(self, topology: Topology) -> Topology:
        """The learned or given topology with the rules of this class of models."""
        limits = self.max_duration
        if limits is not None:
            if not isinstance(limits, Mapping):
                limits = dict.fromkeys(self.durations or topology.levels[1:], limits)
            topology = topology.limited(limits)
        return topology.opened([*(self.durations or ())]) if self.open_duration is True else topology

    def _feature_statistics(self, encoder: ObservationEncoder) -> FeatureStatistics:
        """Collects which features occur with which states."""
        return NestedFeatures(self.specifications(), self.topology_, encoder, self.pairs, self.transitions)

    def _monitor(
        self,
        development: tuple[Any, Any] | Store | None,
        patience: int,
        saver: Checkpoint | None,
        client: Any,
        callback: Callable[[dict[str, Any]], None] | None,
    ) -> solvers.Monitor:
        evaluate: Any = None
        if isinstance(development, Store):
            evaluate = development.on_cluster(client).scorer_for(self)
        elif development is not None:
            evaluate = partial(self._accuracy, *self.pack_to_score(*development))
        return solvers.Monitor(
            evaluate,
            patience if development else None,
            saver.write if saver else None,
            verbose=self.verbose,
            report=callback,
            done=len(saver.former) if saver else 0,
            state=saver.state if saver else None,
        )
