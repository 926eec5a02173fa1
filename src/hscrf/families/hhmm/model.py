"""The hierarchical hidden Markov model: probabilities learned by counting or EM, on the same engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from hscrf.arrays import Floats, Random, generator
from hscrf.engine.cost import report_cost
from hscrf.estimator.checks import check_lengths, check_options, check_steps, packed_lengths, unchanged_on_failure
from hscrf.estimator.parameters import SequenceEstimator
from hscrf.estimator.predictor import Predictor
from hscrf.estimator.scored import Scored
from hscrf.families.factors import FactorBlock
from hscrf.families.hhmm.checks import check_components, check_generative, check_normalised
from hscrf.families.hhmm.em import Expectation, Maximisation, constant_of, dense, known_counts
from hscrf.families.hhmm.emissions import (
    Categorical,
    EmissionEncoder,
    Gaussian,
    emission_block,
    emission_encoder,
    emission_of,
    emission_weights,
    emit,
    log,
    next_events,
    scattered_moments,
    walk,
)
from hscrf.features.blocks import Block, ConstantBlock
from hscrf.labels.events import family_cells
from hscrf.labels.given import given_labels
from hscrf.labels.induction import encode_labels
from hscrf.labels.labels import Labels
from hscrf.labels.packed import pack_labels
from hscrf.labels.schemes import schemes_in
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import Workers
from hscrf.observations.packed import Observations, of_names
from hscrf.observations.readers import cut_apart
from hscrf.potentials import FAMILY, Key, Potentials
from hscrf.progress import waiting
from hscrf.topology import Topology

Self = TypeVar("Self", bound="HHMM")
FITTED = ("coef_", "loss_", "n_iter_", "history_", "converged_", "stop_reason_")  # what one start of EM finds


class HHMM(SequenceEstimator, Predictor):
    """Hierarchical hidden Markov model with shared states (Fine et al. 1998; Bui et al. 2004).

    A parent s starts its first child u with probability ``init_[level][s, u]``. When a child u ends, the parent goes on
    to v with ``trans_[level][s, u, v]`` or ends with ``end_[level][s, u]``, which sum to one. States of the bottom
    level last one step and emit a symbol or a row of numbers. ``coef_`` are the logarithms of the probabilities: the
    model predicts as an HSCRF with these weights. Complete labels are counted; otherwise EM starts from known labels
    and random parameters.

    Parameters
    ----------
    topology : Topology, optional
        Needed if a level has no labels. Durations cannot be limited.
    n_components : int, optional
        Instead of a topology, the number of states 0, 1, ... of one level, "state".
    emission : {"categorical", "gaussian"}, optional
        Lists of symbols or 2-D arrays; None: detected from X. A symbol that was not in training is no observation.
    smoothing : float
        Added to each count of an event (Laplace); EM then maximises the likelihood times the Dirichlet prior.
    root_ends : bool
        Whether the root has end probabilities like other levels. Otherwise the length of the sequence is given.
    max_iter, tol : int, float
        EM stops after ``max_iter`` steps, or when the objective gains less than tol per time step.
    n_init, min_variance : int, float
        The number of random starts of EM (the best one is kept); the smallest variance of a Gaussian.
    scheme, n_jobs, random_state, warm_start, verbose
        As in :class:`HSCRF`; a warm start continues from the present parameters.

    Examples
    --------
    >>> X = [["a", "a", "b", "c"], ["a", "b", "c"]]
    >>> Y = [{"phrase": ["P", "P", "P", "Q"], "tag": ["x", "x", "y", "z"]}, {"phrase": ["P", "P", "Q"]}]
    >>> model = HHMM(smoothing=0.01, random_state=0).fit(X, Y)
    >>> model.predict([["a", "b", "b", "c"]])[0].tree()
    [('P', ['x', 'y', 'y']), ('Q', ['z'])]
    """

    _encoder_class = EmissionEncoder
    encoder_: EmissionEncoder

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        n_components: int | None = None,
        emission: str | None = None,
        smoothing: float = 0.1,
        root_ends: bool = False,
        max_iter: int = 100,
        tol: float = 1e-5,
        n_init: int = 1,
        min_variance: float = 1e-6,
        scheme: str | Mapping[str, str] = "plain",
        n_jobs: int = 1,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.topology = topology
        self.n_components = n_components
        self.emission = emission
        self.smoothing = smoothing
        self.root_ends = root_ends
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.min_variance = min_variance
        self.scheme = scheme
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    @classmethod
    def from_parameters(
        cls: type[Self],
        topology: Topology,
        init: Mapping[str, Any],
        trans: Mapping[str, Any],
        end: Mapping[str, Any],
        emission: Categorical | Gaussian,
        root: Any = None,
        **arguments: Any,
    ) -> Self:
        """Return a model with given probabilities.

        Parameters
        ----------
        topology : Topology
        init, trans, end : dict of str to array
            Tables by the parent's level, as ``init_``, ``trans_`` and ``end_``. ``end`` without the root means that
            the length of sequences is not modelled.
        emission : Categorical or Gaussian
        root : array (S_0,), optional
            Probabilities of the sequence classes.
        **arguments
            Of the constructor.

        Returns
        -------
        HHMM
        """
        check_generative(topology)
        model = cls(topology, root_ends="root" in end, **arguments)
        model.topology_, model.encoder_ = topology, emission_encoder(emission)
        model.blocks_ = model._new_blocks()
        tables: dict[Key, Any] = {("start", 0): root}
        for part, given in (("init", init), ("trans", trans), ("end", end)):
            tables.update({(part, topology.level(level)): table for level, table in given.items()})
        weights = [model._log_table(block, tables.get(block.key)) for block in model.blocks_[:-1]]
        model.coef_ = np.concatenate([*weights, emission_weights(model.encoder_, topology, emission)])
        check_normalised(model)
        model.loss_, model.converged_, model.n_iter_ = float("nan"), False, 0
        model.stop_reason_, model.history_ = "the parameters were given", []
        return model

    def _log_table(self, block: Block, given: Any) -> Floats:
        """The weights of one block from its table of probabilities."""
        constant = constant_of(block)
        table = np.asarray([] if given is None else given, dtype=np.float64)
        if table.shape != constant.shape[1:]:
            name = f"{block.key[0]}[{self.topology_.levels[block.key[1]]!r}]"
            raise ValueError(f"{name} has shape {table.shape}, expected {constant.shape[1:]}")
        return log(table.ravel()[constant.cells])

    # learning

    def fit(self: Self, X: Any, Y: Any = None, *, lengths: Any = None) -> Self:
        """Learn from sequences X and their labels Y: complete, partial, or none at all.

        Parameters
        ----------
        X, Y, lengths
            As in :meth:`HSCRF.fit`. Y may be None.

        Returns
        -------
        self
        """
        check_options(self.get_params(deep=False))
        check_components(self.n_components, self.topology)
        X, Y = cut_apart(lengths, ("X", X), ("Y", Y))
        with unchanged_on_failure(self), Workers(self.n_jobs) as workers:
            warm = self.warm_start and hasattr(self, "coef_")
            with waiting("packing", self.verbose):
                if warm:
                    observations = self.encoder_.pack(X)
                    labels = None if Y is None else self.read_evidence(Y, observations, "Y")
                else:
                    observations, labels = self._learn_frame(X, Y)
            complete = labels is not None and all(y.is_complete for y in labels)
            scorer = Scorer(self.topology_, self.blocks_)
            report_cost(self, packed_lengths(observations))
            with waiting("training", self.verbose):
                expect = Expectation(scorer, observations, labels, workers)
                if warm:
                    self._run_em(expect, self.coef_, complete)
                else:
                    self._run_starts(expect, partial(self._start, scorer, observations, labels, complete), complete)
            self.temperature_, self.recipe_ = {}, None
        return self

    def _learn_frame(self, X: Sequence[Any], Y: Sequence[Any] | None) -> tuple[Observations, list[Labels] | None]:
        """Learn the frame of the model and pack the data in it."""
        if not self.smoothing >= 0:
            raise ValueError(f"smoothing is {self.smoothing!r}, expected a number of at least 0")
        encoder, labels, wanted = EmissionEncoder(), None, self._given_topology()
        observations = encoder.fit_pack(X, self.emission)
        if Y is not None:
            given = given_labels(Y, () if wanted is None else wanted.levels[1:])
            check_lengths(X, given)
            self.scheme_ = schemes_in(given, self.scheme, wanted)
            topology, labels = encode_labels(given, packed_lengths(observations), wanted, self.scheme_)
            check_steps(observations, labels)
        elif wanted is not None:
            topology = wanted
        else:
            raise ValueError("there are no labels, so the states are unknown: give a topology or n_components")
        check_generative(topology)
        self.topology_, self.encoder_ = topology, encoder
        self.blocks_ = self._new_blocks()
        return observations, labels

    def _given_topology(self) -> Topology | None:
        """The given topology, or the flat one of ``n_components``."""
        if self.n_components is not None:
            return Topology({"state": range(self.n_components)})
        return None if self.topology is None else self.topology.remembering({})

    def _new_blocks(self) -> list[Block]:
        """A block for each table of probabilities, with the cells that the topology allows, then the emission."""
        topology = self.topology_
        blocks: list[Block] = []
        if topology.n_states[0] > 1:
            every, names = np.arange(topology.n_states[0]), tuple(map(str, topology.states[0]))
            constant = ConstantBlock(("start", 0), (1, every.size), every)
            blocks.append(FactorBlock(constant, ("start", 0), (every.size,), every, ("root",), names))
        for d in range(topology.depth - 1):
            for part in FAMILY:
                if part != "end" or d > 0 or self.root_ends:
                    cells, shape = family_cells(topology, (part, d))
                    blocks.append(ConstantBlock((part, d), (1, *shape), cells))
        return [*blocks, emission_block(self.encoder_, topology)]

    def _run_starts(self, expect: Expectation, start: Callable[[np.random.Generator], Floats], complete: bool) -> None:
        """EM from several starts; the one with the best objective is kept."""
        rng = generator(self.random_state)
        best: dict[str, Any] = {}
        for _ in range(1 if complete else self.n_init):
            self._run_em(expect, start(rng), complete)
            if not best or self.loss_ < best["loss_"]:
                best = {name: getattr(self, name) for name in FITTED}
            if self.stop_reason_ == "interrupted":
                best["stop_reason_"], best["converged_"] = self.stop_reason_, False
                break
        self.__dict__.update(best)

    def _start(
        self,
        scorer: Scorer,
        observations: Observations,
        labels: Sequence[Labels] | None,
        complete: bool,
        rng: np.random.Generator,
    ) -> Floats:
        """The first parameters: from the known labels, and random where there are none."""
        maximise = self._maximisation()
        even = maximise(np.ones(scorer.size), np.zeros(scorer.size))
        if complete:
            return even
        statistics = rng.exponential(size=scorer.size)
        token = self._pieces(statistics)[-1][1]
        if observations.dense is not None:
            token[:] = scattered_moments(observations.dense, self.topology_.n_states[-1], rng)
        else:
            met = np.bincount(of_names(observations).indices, minlength=len(self.encoder_.names))
            token *= np.repeat(met / met.mean(), self.topology_.n_states[-1])
        if labels is not None:
            scorer.pull(known_counts(scorer, pack_labels(labels)), observations, statistics)
        return maximise(statistics, even)

    def _run_em(self, expect: Expectation, weights: Floats, complete: bool) -> None:
        """Run EM, which never lowers the objective; complete labels need one step. Ctrl-C keeps the last parameters."""
        max_iter, maximise = 1 if complete else self.max_iter, self._maximisation()
        self.history_: list[dict[str, Any]] = []
        self.converged_ = complete
        self.stop_reason_ = "the labels are complete" if complete else f"max_iter={max_iter} steps done"
        try:
            for step in range(max_iter + 1):
                log_likelihood, statistics = expect(weights)
                objective = log_likelihood + maximise.log_prior(weights)
                self.coef_, self.loss_, self.n_iter_ = weights, -objective, step
                self.history_.append({"iteration": step, "log_likelihood": log_likelihood, "objective": objective})
                if step == max_iter:
                    break
                if step and objective - self.history_[-2]["objective"] < self.tol * expect.steps:
                    self.converged_ = True
                    self.stop_reason_ = f"the objective gained less than tol={self.tol:g} per time step"
                    break
                weights = maximise(statistics, weights)
        except KeyboardInterrupt:
            self.converged_, self.stop_reason_ = False, "interrupted"

    def _maximisation(self) -> Maximisation:
        return Maximisation(Scorer(self.topology_, self.blocks_), self.encoder_, self.smoothing, self.min_variance)

    # -- a generative model

    def log_likelihood(self, X: Any, Y: Any = None, *, lengths: Any = None) -> Floats:
        """Return the log probability of the observations of each sequence, together with their labels if given.

        Parameters
        ----------
        X, Y, lengths
            As in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n,)
        """
        X, Y = cut_apart(lengths, ("X", X), ("Y", Y))

        def answer(scored: Scored) -> Floats:
            return scored.batch.log_partition(scored.values)

        return np.array(self.ask(X, None, answer)) if Y is None else self.ask_possible(X, Y, answer)

    def score(self, X: Any, Y: Any = None, *, lengths: Any = None, client: Any = None) -> float:
        """Return the share of time steps with the right state at every level; without Y, the log-likelihood of all X.

        Parameters
        ----------
        X, Y, lengths, client
            As in :meth:`fit`; ``client`` is not used.

        Returns
        -------
        float
        """
        if Y is None:
            return float(self.log_likelihood(X, lengths=lengths).sum())
        return super().score(X, Y, lengths=lengths)

    def generate(
        self, n: int = 1, length: int | None = None, random_state: Random = None
    ) -> tuple[list[Any], list[Labels]]:
        """Draw n new sequences and their labels from the model.

        Parameters
        ----------
        n, random_state
            The number of sequences, and a seed.
        length : int, optional
            Needed without ``root_ends``: a sequence stops when it has this length and all levels below the root end.

        Returns
        -------
        X : list of sequences
        Y : list of Labels
        """
        self.check_fitted()
        if (length is None) != self.root_ends:
            told = "the model draws the length: give none" if self.root_ends else "give a length"
            raise ValueError(f"length is {length} and root_ends is {self.root_ends}; {told}")
        rng = generator(random_state)
        tables = self.root_, list(self.init_.values()), next_events(self.trans_, self.end_)
        Y = [walk(self.topology_, rng, length, *tables) for _ in range(n)]
        emission = self.emission_
        return [emit(rng, emission, y.states[-1]) for y in Y], Y

    def _pieces(self, flat: Floats) -> list[tuple[Block, Floats]]:
        """Each block and its part of a vector as long as the weights."""
        return Scorer(self.topology_, self.blocks_).pieces(flat)

    def _probabilities(self, part: str) -> dict[str, Floats]:
        self.check_fitted()
        names = self.topology_.levels
        return {names[b.key[1]]: dense(b, np.exp(w)) for b, w in self._pieces(self.coef_) if b.key[0] == part}

    @property
    def root_(self) -> Floats:
        """Probabilities (S_0,) of the sequence classes."""
        return self._probabilities("start").get("root", np.ones(1))

    @property
    def init_(self) -> dict[str, Floats]:
        """By level (S, U): a parent s starts with child u."""
        return self._probabilities("init")

    @property
    def trans_(self) -> dict[str, Floats]:
        """By level (S, U, U): after child u, a parent s goes on to v."""
        return self._probabilities("trans")

    @property
    def end_(self) -> dict[str, Floats]:
        """By level (S, U): after child u, a parent s ends; without the root unless ``root_ends``."""
        return self._probabilities("end")

    @property
    def emission_(self) -> Categorical | Gaussian:
        """The distributions of the observations, given the states of the bottom level."""
        self.check_fitted()
        return emission_of(*self._pieces(self.coef_)[-1], self.encoder_)


def hhmm_potentials(model: HHMM, x: Any) -> Potentials:
    """The log-probabilities of an HHMM as the potentials of one sequence: log Z is its log-likelihood."""
    return model.potentials([x])[0]
