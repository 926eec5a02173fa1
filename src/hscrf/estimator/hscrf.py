"""HSCRF: fit and predict nested labels, scikit-learn style."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from hscrf import inference, metrics, solvers
from hscrf.arrays import Floats
from hscrf.engine.evidence import pack_evidence
from hscrf.engine.kernels.arithmetic import MAX
from hscrf.engine.plan import Plan
from hscrf.errors import FileFormatError
from hscrf.estimator.blocks import check_function_names, dump_block, dump_options, load_block
from hscrf.estimator.checkpoint import Checkpoint
from hscrf.estimator.checks import as_seed, check_lengths, check_specifications, check_steps, lengths_of
from hscrf.estimator.container import write_container
from hscrf.estimator.decoding import expected_gain
from hscrf.estimator.weights import carry_over, named_weights, topology_from_weights
from hscrf.features.blocks import Block
from hscrf.features.fitting import fit_blocks
from hscrf.features.specifications import PART, default_specifications
from hscrf.inference.conflicts import refuse
from hscrf.inference.verbs import Marginals
from hscrf.labels.induction import encode_labels, loosened
from hscrf.labels.labels import Labels
from hscrf.labels.packed import pack_labels
from hscrf.labels.reading import as_labels
from hscrf.objective.likelihood import Likelihood
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import Workers, cut
from hscrf.observations.encoder import Encoder
from hscrf.observations.packed import Observations
from hscrf.potentials import Potentials
from hscrf.topology import Topology

Self = TypeVar("Self", bound="HSCRF")


class HSCRF(BaseEstimator):
    """Hierarchical semi-Markov conditional random field.

    Parameters
    ----------
    topology : the state hierarchy; None learns it from the labels (states, and who has whom if nothing is missing).
    features : block specifications (``hscrf.Token`` and so on); None takes sensible ones for every level.
    c1, c2 : penalties c1 * sum |w| + c2 * sum w^2, as in CRFsuite; the perceptron knows none. Features may be penalised
        more or less than others: ``Token("activity", penalty=10)`` has ten times as much of both.
    solver : "lbfgs", "sgd", "perceptron", or a solver object with its options.
    scheme : how label columns are written, "plain", "bio" or "bioes", or a dict by level; Labels need none.
    min_count : named features that occur less often are left out.
    pairs : "seen" gives weights only to pairs of a named feature and a state that occur in training, "all" to all.
    transitions : "all" gives init, trans and end weights to whatever the topology allows, so that training can speak
        against what it never saw; "seen" only to what occurs, as in CRFsuite: the rest then scores 0, neither for
        nor against.
    standardize : numeric columns are centred and scaled inside the model.
    n_jobs : threads, -1 for one a core; the result does not depend on it.
    random_state : seed of stochastic solvers and of the start for levels without labels.
    warm_start : a second ``fit`` starts from the weights of the first.
    verbose : 0 silent, 1 a live progress line on terminals, 2 a line per iteration.

    Attributes
    ----------
    topology_, coef_ (weights,), converged_, n_iter_, stop_reason_, history_, loss_

    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]]] * 3
    >>> Y = [{"phrase": ["NP", "NP", "VP"], "tag": ["D", "N", "V"]}] * 3
    >>> model = HSCRF().fit(X, Y)
    >>> model.predict(X[:1])[0].tree()
    [('NP', ['D', 'N']), ('VP', ['V'])]
    """

    _encoder_class = Encoder
    _feature_classes: tuple[type, ...] = tuple(PART)

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        features: Sequence[Any] | None = None,
        c1: float = 0.0,
        c2: float = 1.0,
        solver: Any = "lbfgs",
        scheme: str | Mapping[str, str] = "plain",
        min_count: int = 1,
        pairs: str = "seen",
        transitions: str = "all",
        standardize: bool = True,
        n_jobs: int = 1,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.topology = topology
        self.features = features
        self.c1 = c1
        self.c2 = c2
        self.solver = solver
        self.scheme = scheme
        self.min_count = min_count
        self.pairs = pairs
        self.transitions = transitions
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    # -- learning ----------------------------------------------------------------------------------------------------

    def fit(
        self: Self,
        X: Sequence[Any],
        Y: Sequence[Any],
        sample_weight: Any = None,
        development: tuple[Sequence[Any], Sequence[Any]] | None = None,
        patience: int = 10,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from sequences X and their labels Y, complete or partial.

        ``development`` = (X, Y) stops when its score has not improved for ``patience`` iterations and keeps the best
        model. ``checkpoint`` names a file that is written as training goes on and resumed from if it exists.
        Ctrl-C keeps the best weights so far.
        """
        with unchanged_on_failure(self), Workers(self.n_jobs) as workers:
            objective, weights = self._objective(X, Y, sample_weight, workers)
            saver = Checkpoint(checkpoint, self._fingerprint(objective)) if checkpoint is not None else None
            monitor = self._monitor(development, patience, saver)
            weights = saver.resume(weights) if saver else weights
            solver = solvers.solver_of(self.solver)
            result = solver.minimize(objective, weights, *self._penalties(), monitor, self.random_state)
        self.coef_ = result.weights
        self.loss_, self.converged_, self.n_iter_ = result.loss, result.converged, result.n_iter
        self.stop_reason_, self.history_ = result.reason, result.history
        return self

    def _objective(
        self, X: Sequence[Any], Y: Sequence[Any], sample_weight: Any, workers: Workers
    ) -> tuple[Likelihood, Floats]:
        """Learn the frame of the model, pack the data in it: the loss to minimise, and the weights to start from."""
        check_lengths(X, Y)
        check_specifications(self.features, self._feature_classes)
        if not isinstance(self.topology, Topology | None):
            raise ValueError(f"topology is a {type(self.topology).__name__}, expected a Topology or None")
        solvers.solver_of(self.solver)  # before any work
        encoder = Encoder(self.min_count, self.standardize)
        seen = encoder.fit_pack(X)
        topology, labels = self._encode_labels(Y, lengths_of(seen))
        check_steps(seen, labels)
        former, self.topology_ = getattr(self, "topology_", None), topology
        blocks = self._fit_blocks(encoder, seen, labels)
        weights = self._first_weights(encoder, blocks, labels, former)
        self.encoder_, self.blocks_ = encoder, blocks
        scorer = Scorer(self.topology_, blocks)
        return Likelihood(scorer, seen, labels, sample_weight, workers), weights

    def _encode_labels(self, Y: Sequence[Any], lengths: Sequence[int]) -> tuple[Topology, list[Labels]]:
        limited = {spec.level for spec in self.features or () if spec.needs_limit}
        return encode_labels(Y, lengths, self.topology, self.scheme, limited)

    def _specifications(self) -> Sequence[Any]:
        return default_specifications(self.topology_) if self.features is None else self.features

    def _fit_blocks(self, encoder: Encoder, seen: Observations, labels: Sequence[Labels]) -> list[Block]:
        known = pack_labels(labels)
        return fit_blocks(self._specifications(), self.topology_, encoder, seen, known, self.pairs, self.transitions)

    def _first_weights(
        self, encoder: Encoder, blocks: Sequence[Block], labels: Sequence[Labels], former: Topology | None
    ) -> Floats:
        """Zeros; the former weights for a warm start; random if a level has no labels at all (a symmetric saddle)."""
        size = sum(block.size for block in blocks)
        if self.warm_start and hasattr(self, "coef_") and former is not None:
            old = named_weights(self._weighted_blocks(), self.encoder_, former)
            return carry_over(old, blocks, encoder, self.topology_)
        known = pack_labels(labels)
        latent = [d for d, n in enumerate(self.topology_.n_states) if n > 1 and (known.states[d] < 0).all()]
        if not latent:
            return np.zeros(size)
        return 0.1 * np.random.default_rng(as_seed(self.random_state)).normal(size=size)

    def _penalties(self) -> tuple[solvers.Penalty, solvers.Penalty]:
        """c1 and c2 of all weights, or of each of them where the features have penalties of their own."""
        factors = [spec.penalty for spec in self._specifications()]
        if all(factor == 1.0 for factor in factors):
            return self.c1, self.c2
        each = np.repeat(factors, [block.size for block in self.blocks_])
        return self.c1 * each, self.c2 * each

    def _monitor(self, development: Any, patience: int, saver: Checkpoint | None) -> solvers.Monitor:
        evaluate = None
        if development is not None:
            evaluate = partial(self._development_score, *self._to_score(*development))
        return solvers.Monitor(
            evaluate, patience if development else None, saver.write if saver else None, verbose=self.verbose
        )

    def _development_score(self, seen: Observations, labels: Sequence[Labels], weights: Floats) -> float:
        self.coef_ = weights
        return metrics.joint_accuracy(labels, self._predict(seen))

    def _fingerprint(self, objective: Likelihood) -> str:
        """What a checkpoint must agree with: the same weights in the same order, penalties and labels."""
        arrays: dict[str, NDArray[Any]] = {}
        blocks = [dump_block(block, f"block{k}", arrays) for k, block in enumerate(self.blocks_)]
        names = [*self.encoder_.names, *self.encoder_.columns]
        penalties = [self.c1, self.c2, [float(spec.penalty) for spec in self._specifications()]]
        frame = [self.topology_.to_dict(), names, blocks, objective.offsets.tolist(), penalties]
        digest = hashlib.sha256(json.dumps(frame).encode())
        known = pack_labels(objective.labels)
        for array in (*arrays.values(), known.states, known.ends, objective.sample_weight):
            digest.update(array.tobytes())
        return digest.hexdigest()

    # -- prediction --------------------------------------------------------------------------------------------------

    def predict(self, X: Sequence[Any], evidence: Sequence[Any] | None = None, loss: str = "sequence") -> list[Labels]:
        """The best labels of each sequence; what the evidence knows stays, the rest follows.

        ``loss="sequence"`` gives the most probable labelling; ``"step"`` and ``"segment"`` the valid nested labelling
        with the most right states per step, or right segments, to be expected (a second decoding, over marginals).
        Segments take O(T L S) memory a sequence, L the longest duration: T where there is no limit.
        """
        if loss not in ("sequence", "step", "segment"):
            raise ValueError(f"loss is {loss!r}, expected 'sequence', 'step' or 'segment'")
        self._check_fitted()
        seen = self.encoder_.pack(X)
        known = None if evidence is None else self._evidence(evidence, seen)
        return self._predict(seen, known, loss)

    def _predict(
        self, seen: Observations, known: Sequence[Labels] | None = None, loss: str = "sequence"
    ) -> list[Labels]:
        run = partial(self._decode, loss=loss)
        return [labels for chunk in self._chunks(seen, known, run) for labels in chunk]

    def _decode(self, plan: Plan, values: dict[Any, Floats], loss: str) -> tuple[Floats, list[Labels]]:
        if loss != "sequence":
            plan, values = expected_gain(plan, values, loss)
        (states,), (ends,), best = plan.trace(MAX, values, 1, np.random.default_rng(0))
        states.flags.writeable = ends.flags.writeable = False
        return best, [
            Labels._found(self.topology_, states[:, a:b], ends[:, a:b], score)
            for a, b, score in zip(plan.offsets[:-1].tolist(), plan.offsets[1:].tolist(), best.tolist(), strict=True)
        ]

    def _chunks(
        self,
        seen: Observations,
        known: Sequence[Labels] | None,
        run: Callable[[Plan, dict[Any, Floats]], tuple[Floats, Any]],
        name: str = "evidence",
    ) -> list[Any]:
        """Run a function on a plan and its potentials for chunks of the sequences, on the model's threads.

        It returns a log mass of each sequence, which tells whether there is any configuration, and what we want.
        """
        scorer = Scorer(self.topology_, self.blocks_)

        def work(which: range) -> Any:
            part = seen.take(which)
            bound = None if known is None else pack_evidence(known, which, name)
            plan = Plan(self.topology_, part.offsets, scorer.shapes(part.steps), bound)
            mass, found = run(plan, scorer.values(self.coef_, part))
            if (mass == -np.inf).any():
                n = which[int((mass == -np.inf).argmax())]
                one = seen.take([n])
                potentials = Potentials.from_arrays(self.topology_, one.steps, scorer.values(self.coef_, one))
                refuse(potentials, known[n] if known else None, name, n)
            return found

        with Workers(self.n_jobs) as workers:
            return workers.map(work, cut(seen.offsets))

    def _evidence(self, evidence: Sequence[Any], seen: Observations, name: str = "evidence") -> list[Labels]:
        """Evidence as Labels of the model's topology; None stands for nothing known."""
        lengths = lengths_of(seen)
        if len(evidence) != len(lengths):
            raise ValueError(f"X has {len(lengths)} sequences but {name} has {len(evidence)}")
        labels = [
            Labels.unknown(self.topology_, length)
            if y is None
            else as_labels(y, n, length, self.topology_, self.scheme, name)
            for n, (y, length) in enumerate(zip(evidence, lengths, strict=True))
        ]
        check_steps(seen, labels, name)
        return labels

    def potentials(self, X: Sequence[Any]) -> list[Potentials]:
        """The log-potentials of each sequence, for the functions of ``hscrf.inference``."""
        self._check_fitted()
        seen = self.encoder_.pack(X)
        scorer = Scorer(self.topology_, self.blocks_)
        found = []
        for n in range(len(X)):
            part = seen.take([n])
            found.append(Potentials.from_arrays(self.topology_, part.steps, scorer.values(self.coef_, part)))
        return found

    def predict_marginals(self, X: Sequence[Any], evidence: Sequence[Any] | None = None) -> list[Marginals]:
        """Posterior probabilities of states, endings and segments of each sequence."""
        return self._each(inference.marginals, X, evidence)

    def entropy(self, X: Sequence[Any], evidence: Sequence[Any] | None = None) -> list[float]:
        """Entropy in nats of the posterior of each sequence: how unsure the model is."""
        return self._each(inference.entropy, X, evidence)

    def _each(self, verb: Callable[..., Any], X: Sequence[Any], evidence: Sequence[Any] | None) -> list[Any]:
        potentials = self.potentials(X)
        known = [None] * len(X) if evidence is None else self._evidence(evidence, self.encoder_.pack(X))
        return [verb(p, y) for p, y in zip(potentials, known, strict=True)]

    def sample(
        self, X: Sequence[Any], n: int = 1, random_state: Any = None, evidence: Sequence[Any] | None = None
    ) -> list[list[Labels]]:
        """Draw n labellings of each sequence from the posterior."""
        rng = np.random.default_rng(as_seed(random_state))
        return self._each(lambda p, y: inference.sample(p, n, rng, y), X, evidence)

    def log_likelihood(self, X: Sequence[Any], Y: Sequence[Any]) -> Floats:
        """Log probability of the labels of each sequence (n,); for partial labels, of all that agree with them."""
        check_lengths(X, Y)
        self._check_fitted()

        def run(plan: Plan, values: dict[Any, Floats]) -> tuple[Floats, Floats]:
            return (plan.log_partition(values),) * 2

        seen = self.encoder_.pack(X)
        bound, free = self._chunks(seen, self._evidence(Y, seen, "Y"), run, "Y"), self._chunks(seen, None, run)
        return np.concatenate(bound) - np.concatenate(free)

    def score(self, X: Sequence[Any], Y: Sequence[Any]) -> float:
        """Fraction of time steps with the right state at every level at once; unknown steps are left out.

        Labels that the topology forbids, such as a child never seen under its parent, are wrong, not an error.
        """
        self._check_fitted()
        seen, labels = self._to_score(X, Y)
        return metrics.joint_accuracy(labels, self._predict(seen))

    def _to_score(self, X: Sequence[Any], Y: Sequence[Any]) -> tuple[Observations, list[Labels]]:
        """Packed observations and labels that need not keep the topology's rules."""
        check_lengths(X, Y)
        seen = self.encoder_.pack(X)
        loose = loosened(self.topology_)
        labels = [
            y if isinstance(y, Labels) else as_labels(y, n, length, loose, self.scheme)
            for n, (y, length) in enumerate(zip(Y, lengths_of(seen), strict=True))
        ]
        check_steps(seen, labels)
        return seen, labels

    # -- insight -----------------------------------------------------------------------------------------------------

    @property
    def weights_(self) -> Any:
        """All weights as a DataFrame: level, part, feature, states (named, joined by " > ") and weight."""
        import pandas

        self._check_fitted()
        rows = []
        for block, weights in self._weighted_blocks():
            for (name, place), weight in zip(block.describe(self.encoder_), weights.tolist(), strict=True):
                level, part, states = block.locate(self.topology_, place)
                rows.append((level, part, name, states, weight))
        return pandas.DataFrame(rows, columns=["level", "part", "feature", "states", "weight"])

    def _weighted_blocks(self) -> list[tuple[Block, Floats]]:
        bounds = np.cumsum([0, *(block.size for block in self.blocks_)])
        pieces = [self.coef_[a:b] for a, b in pairwise(bounds)]
        return list(zip(self.blocks_, pieces, strict=True))

    def learned_topology(self, threshold: float = 0.0) -> Topology:
        """The topology that the weights speak for: children and successors whose weights exceed the threshold.

        A child belongs to a parent if any of its init, trans or end weights there does; v follows u if their trans
        weight under some parent does. A pair without a weight (``transitions="seen"``) counts as zero. A parent that
        would be left without children keeps its strongest; levels without such weights stay as they are.
        """
        self._check_fitted()
        return topology_from_weights(self.topology_, self._weighted_blocks(), threshold)

    # -- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file: arrays and JSON with a checksum, never pickle."""
        self._check_fitted()
        check_function_names(self.blocks_)
        write_container(path, *self._content())

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file holds: a header for JSON, and arrays."""
        settings, arrays = self.encoder_.state()
        header: dict[str, Any] = {
            "kind": "model",
            "class": type(self).__name__,
            "parameters": self._saved_parameters(),
            "topology": self.topology_.to_dict(),
            "topology_given": self.topology is not None,
            "encoder": settings,
            "training": {
                "loss": self.loss_,
                "converged": bool(self.converged_),
                "n_iter": self.n_iter_,
                "stop_reason": self.stop_reason_,
                "history": self.history_,
            },
        }
        arrays = {"coef": self.coef_, **arrays}
        header["blocks"] = [dump_block(block, f"block{k}", arrays) for k, block in enumerate(self.blocks_)]
        return header, arrays

    def _saved_parameters(self) -> dict[str, Any]:
        """Constructor arguments that JSON can hold; a given topology lives on in what was learned."""
        kept = self.get_params(deep=False)
        kept["topology"] = None
        if kept.get("features") is not None:
            kept["features"] = [dump_options(spec) for spec in kept["features"]]
        if "solver" in kept and not isinstance(kept["solver"], str):
            kept["solver"] = dump_options(kept["solver"]) if is_dataclass(kept["solver"]) else "lbfgs"
        if not isinstance(kept.get("random_state"), (int, type(None))):
            kept["random_state"] = None
        return kept

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, Any], functions: Mapping[str, Any]) -> None:
        self.topology_ = Topology.from_dict(header["topology"])
        self.topology = self.topology_ if header["topology_given"] else None
        self.encoder_ = self._encoder_class.restore(header["encoder"], arrays)
        self.blocks_ = [load_block(entry, arrays, functions) for entry in header["blocks"]]
        self.coef_ = np.array(arrays["coef"])
        if self.coef_.size != sum(block.size for block in self.blocks_):
            raise FileFormatError(f"the model has {self.coef_.size} weights, which do not fit its features")
        training = header["training"]
        self.loss_, self.converged_, self.n_iter_ = training["loss"], training["converged"], training["n_iter"]
        self.stop_reason_, self.history_ = training["stop_reason"], training["history"]

    def _check_fitted(self) -> None:
        if not hasattr(self, "coef_") or not hasattr(self, "blocks_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first, or hscrf.load a model")


@contextmanager
def unchanged_on_failure(model: HSCRF) -> Iterator[None]:
    """Whatever goes wrong while fitting, the model stays what it was."""
    former = model.__dict__.copy()
    try:
        yield
    except BaseException:
        model.__dict__ = former
        raise
