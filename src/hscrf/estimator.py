"""HSCRF: fit and predict nested labels, scikit-learn style."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from hscrf import features as feature_module
from hscrf import inference, metrics, solvers
from hscrf._engine import MAX, Plan
from hscrf._files import FileFormatError, read_container, write_container
from hscrf.features import Block, default_specifications, fit_blocks
from hscrf.inference import Marginals
from hscrf.labels import InfeasibleError, Labels, is_segments, read_labels
from hscrf.objective import CHUNK, Likelihood, Scorer, Workers, pack_evidence, pack_labels, refuse
from hscrf.observations import Encoder, Observations
from hscrf.potentials import PARTS, Potentials
from hscrf.topology import Topology

__all__ = ["HSCRF", "load"]

Floats = NDArray[np.float64]
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
    _feature_classes: tuple[type, ...] = tuple(feature_module.PART)

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
        return encode_labels(Y, lengths, self.topology, self.scheme, self.features)

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
                length = int(seen.offsets[n + 1] - seen.offsets[n])
                refuse(self.topology_, length, known[n] if known else None, f"{name if known else 'X'}[{n}]")
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
            parts: dict[str, dict[str, Floats]] = {part: {} for part in PARTS}
            for (name, d), values in scorer.values(self.coef_, part).items():
                parts[name][self.topology_.levels[d]] = values
            found.append(Potentials(self.topology_, part.steps, **parts))
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


def load(path: str | os.PathLike[str], functions: Mapping[str, Callable[..., Any]] | None = None) -> Any:
    """Read a model that ``save`` wrote. Nothing in the file is executed.

    A model with segment functions needs them again, by name: ``functions={"name": function}``.
    """
    header, arrays = read_container(path)
    if header.get("kind") != "model":
        raise FileFormatError(f"{os.fspath(path)} is a {header.get('kind', 'file')!s}, expected a model")
    classes: dict[str, Any] = {cls.__name__: cls for cls in [HSCRF, *subclasses(HSCRF)]}
    if header.get("class") not in classes:
        raise FileFormatError(f"{os.fspath(path)} holds a {header.get('class')}, expected one of {', '.join(classes)}")
    try:
        parameters = dict(header["parameters"])
        if isinstance(parameters.get("solver"), Mapping):
            parameters["solver"] = load_options(parameters["solver"], SOLVERS, functions or {})
        if parameters.get("features") is not None:
            known = {c.__name__: c for c in classes[header["class"]]._feature_classes}
            parameters["features"] = [load_options(entry, known, functions or {}) for entry in parameters["features"]]
        model = classes[header["class"]](**parameters)
        model._restore(header, arrays, functions or {})
    except (KeyError, TypeError) as error:
        raise FileFormatError(f"{os.fspath(path)} is not a complete model: {error}") from None
    return model


def subclasses(cls: type) -> list[type]:
    """All classes below a class; the family presets register by being imported."""
    from importlib import import_module

    import_module("hscrf.hhmm")  # and with it the other families
    found: list[type] = []
    sub: type
    for sub in cls.__subclasses__():
        found += [sub, *subclasses(sub)]
    return found


# -- specifications, solvers and blocks in files ---------------------------------------------------------------------


SOLVERS = {cls.__name__: cls for cls in (solvers.LBFGS, solvers.SGD, solvers.Perceptron)}


def dump_options(options: Any) -> dict[str, Any]:
    """A specification or solver as JSON: its type and its fields, functions by name."""
    entry = {item.name: getattr(options, item.name) for item in fields(options)}
    for name, value in entry.items():
        if callable(value):
            entry[name] = {"function": getattr(value, "__name__", "function")}
    return {"type": type(options).__name__, **entry}


def load_options(entry: Mapping[str, Any], classes: Mapping[str, type], functions: Mapping[str, Any]) -> Any:
    values = {name: value for name, value in entry.items() if name != "type"}
    for name, value in values.items():
        if isinstance(value, Mapping):
            values[name] = find_function(value["function"], functions)
    return classes[entry["type"]](**values)


def dump_block(block: Block, name: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """A block as JSON; its arrays go into ``arrays`` under names of their own."""
    entry: dict[str, Any] = {"type": type(block).__name__}
    for item in fields(block):  # type: ignore[arg-type]
        value = getattr(block, item.name)
        if isinstance(value, Block):
            value = dump_block(value, f"{name}.{item.name}", arrays)
        elif isinstance(value, np.ndarray):
            arrays[f"{name}.{item.name}"] = value
            value = {"array": f"{name}.{item.name}"}
        elif callable(value):
            value = {"function": getattr(value, "__name__", "function")}
        entry[item.name] = value
    return entry


def load_block(entry: Mapping[str, Any], arrays: Mapping[str, Any], functions: Mapping[str, Any]) -> Block:
    cls = {c.__name__: c for c in Block.__subclasses__()}[entry["type"]]
    values: dict[str, Any] = {}
    for name, value in entry.items():
        if name == "type":
            continue
        if isinstance(value, Mapping) and "type" in value:
            value = load_block(value, arrays, functions)
        elif isinstance(value, Mapping) and "array" in value:
            value = np.array(arrays[value["array"]])
        elif isinstance(value, Mapping) and "function" in value:
            value = find_function(value["function"], functions)
        elif isinstance(value, list):
            value = tuple(value)
        values[name] = value
    return cls(**values)


def check_function_names(blocks: Sequence[Block]) -> None:
    """A file knows segment functions by their names, which must tell them apart."""
    functions: dict[str, Any] = {}
    for block in blocks:
        if isinstance(block, feature_module.SegmentBlock):
            name = getattr(block.function, "__name__", "function")
            if functions.setdefault(name, block.function) != block.function:
                raise ValueError(f"two segment functions are both named {name!r}, expected a name for each")


def find_function(name: str, functions: Mapping[str, Any]) -> Any:
    if name not in functions:
        raise ValueError(
            f"the model uses the segment function {name!r}: give it as load(path, functions={{{name!r}: ...}})"
        )
    return functions[name]


class Checkpoint:
    """Weights and history of a training run in a file."""

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        self.path = path
        self.fingerprint = fingerprint

    def write(self, weights: Floats, history: list[dict[str, Any]]) -> None:
        header = {"kind": "checkpoint", "fingerprint": self.fingerprint, "history": history}
        write_container(self.path, header, {"weights": weights})

    def resume(self, weights: Floats) -> Floats:
        """The weights in the file if there is one, else those given."""
        if not os.path.exists(self.path):
            return weights
        header, arrays = read_container(self.path)
        if header.get("kind") != "checkpoint" or header.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"{os.fspath(self.path)} is not a checkpoint of this model on this data; remove it or name another"
            )
        return np.array(arrays["weights"])


@contextmanager
def unchanged_on_failure(model: HSCRF) -> Iterator[None]:
    """Whatever goes wrong while fitting, the model stays what it was."""
    former = model.__dict__.copy()
    try:
        yield
    except BaseException:
        model.__dict__ = former
        raise


# -- labels ----------------------------------------------------------------------------------------------------------


def check_lengths(X: Sequence[Any], Y: Sequence[Any]) -> None:
    for name, given in (("X", X), ("Y", Y)):
        if not hasattr(given, "__len__"):
            raise ValueError(f"{name} is a {type(given).__name__}, expected a list of sequences")
    if len(X) != len(Y):
        raise ValueError(f"X has {len(X)} sequences but Y has {len(Y)}")


def check_specifications(features: Sequence[Any] | None, classes: tuple[Any, ...]) -> None:
    for k, spec in enumerate(features or ()):
        if not isinstance(spec, classes):
            raise ValueError(f"features[{k}] is {spec!r}, expected one of {', '.join(c.__name__ for c in classes)}")
        if not isinstance(spec.penalty, (int, float, np.number)) or not 0 <= spec.penalty < np.inf:
            raise ValueError(f"features[{k}]: penalty is {spec.penalty!r}, expected a finite number of at least 0")


def lengths_of(seen: Observations) -> list[int]:
    return np.diff(seen.offsets).tolist()


def check_steps(seen: Observations, labels: Sequence[Labels], name: str = "Y") -> None:
    for n, (steps, y) in enumerate(zip(lengths_of(seen), labels, strict=True)):
        if steps != y.length:
            raise ValueError(f"X[{n}] has {steps} steps but {name}[{n}] has {y.length}")


def encode_labels(
    Y: Sequence[Any],
    lengths: Sequence[int],
    topology: Topology | None,
    scheme: Any,
    specifications: Sequence[Any] | None,
) -> tuple[Topology, list[Labels]]:
    """Labels of all sequences over one topology, which is learned from them unless it is given or they bring it."""
    if topology is None and isinstance(Y[0], Labels):
        topology = Y[0].topology
    if topology is not None:
        return topology, [as_labels(y, n, lengths[n], topology, scheme) for n, y in enumerate(Y)]
    loose = loose_topology(Y, scheme, specifications)
    labels = [as_labels(y, n, lengths[n], loose, scheme) for n, y in enumerate(Y)]
    tight = tighten(loose, labels, specifications)
    return tight, [replace(y, topology=tight) for y in labels]


def as_labels(y: Any, n: int, length: int, topology: Topology, scheme: Any, name: str = "Y") -> Labels:
    """One sequence's labels; a list of strings is the only level, a dict holds columns or segments by level.

    What segments leave out is unknown, to the end of the sequence of ``length`` steps.
    """
    if isinstance(y, Labels) and y.topology != topology:
        raise ValueError(f"{name}[{n}] has {y.topology} with other states or rules than the model's {topology}")
    columns: Any = y if isinstance(y, Mapping) else {topology.levels[1]: y}
    try:
        if isinstance(y, Labels):
            y.check()
            return y
        return read_labels(topology, columns, scheme, length)
    except InfeasibleError as error:
        raise InfeasibleError(f"{name}[{n}]: {error}") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}[{n}]{first_failure(columns, topology, scheme)}: {error}") from None


def first_failure(columns: Mapping[str, Any], topology: Topology, scheme: Any) -> str:
    """Where the first label is that cannot be read by itself, such as an unknown state; empty if they all can."""
    for level, column in columns.items():
        if level in topology.levels[1:] and not isinstance(column, str) and not is_segments(column):
            for t, tag in enumerate(column):
                try:
                    Labels.from_columns(topology, {level: [tag]}, scheme=scheme)
                except ValueError:
                    return f" at step {t}"
    return ""


def loosened(topology: Topology) -> Topology:
    """The same states without rules."""
    arguments = topology.to_dict()
    lasting = None if topology.unit_bottom else {topology.levels[-1]: None}
    return Topology(arguments["levels"], root=arguments["root"], max_duration=lasting)


def loose_topology(Y: Sequence[Any], scheme: Any, specifications: Sequence[Any] | None) -> Topology:
    """All states of all levels, every parent with every child."""
    columns = Y[0] if isinstance(Y[0], Mapping) else {"label": Y[0]}
    names = {level: set() for level in columns if level != "root"}  # type: ignore[var-annotated]
    classes: set[str] = set()
    for n, y in enumerate(Y):
        for level, column in (y if isinstance(y, Mapping) else {"label": y}).items():
            if level == "root":
                classes.add(column if isinstance(column, str) else column[0])
            elif level not in names:
                raise ValueError(f"Y[{n}] has a level {level!r}, but Y[0] has only {', '.join(map(repr, names))}")
            else:
                names[level] |= plain_states(column, scheme if isinstance(scheme, str) else scheme.get(level, "plain"))
    bottom = list(names)[-1]
    lasting = (scheme if isinstance(scheme, str) else scheme.get(bottom, "plain")) != "plain" or any(
        is_segments(y[bottom]) for y in Y if isinstance(y, Mapping) and bottom in y
    )
    lasting |= any(spec.level == bottom and needs_table(spec) for spec in specifications or ())
    levels = {level: sorted(states) for level, states in names.items()}
    for level, states in levels.items():
        if not states:
            raise ValueError(f"level {level!r} has no known label, so its states are unknown: give a topology")
    return Topology(levels, root=sorted(classes) or None, max_duration={bottom: None} if lasting else None)


def plain_states(column: Any, scheme: str) -> set[str]:
    if is_segments(column):
        for item in column:
            if len(item) != 3:
                raise ValueError(f"{item!r} is neither a label nor a segment (start, stop, state)")
        return {state for _, _, state in column}
    tags = {tag for tag in column if tag is not None and tag != "?" and tag == tag}
    return tags if scheme == "plain" else {tag.split("-", 1)[-1] for tag in tags}


def needs_table(spec: Any) -> bool:
    """Does a specification need a longest duration."""
    return isinstance(spec, (feature_module.Duration, feature_module.Segment)) or getattr(spec, "average", False)


def tighten(topology: Topology, labels: Sequence[Labels], specifications: Sequence[Any] | None) -> Topology:
    """Keep only children that occur, if no label is missing; limit durations to the longest where a table is needed."""
    known = pack_labels(labels)
    arguments = topology.to_dict()
    if all(y.is_complete for y in labels):
        arguments["children"] = {}
        for d in range(topology.depth - 1):
            found = np.unique(np.stack([known.states[d], known.states[d + 1]], axis=1), axis=0)
            kids: dict[str, list[str]] = {}
            for s, u in found.tolist():
                kids.setdefault(topology.states[d][s], []).append(topology.states[d + 1][u])
            arguments["children"][topology.levels[d]] = kids
    for spec in specifications or ():
        d = topology.level(spec.level)
        if d > 0 and needs_table(spec) and not (known.ends[d] < 0).any():
            bounds = np.concatenate([[-1], np.flatnonzero(known.ends[d] == 1)])
            arguments["max_duration"][spec.level] = int(np.diff(bounds).max())
    return Topology.from_dict(arguments)


def as_seed(random_state: Any) -> Any:
    """A seed for numpy's Generator from what scikit-learn users give."""
    return (
        random_state.integers(2**31)
        if isinstance(random_state, np.random.Generator)
        else (random_state.randint(2**31) if isinstance(random_state, np.random.RandomState) else random_state)
    )


# -- decoding and weights --------------------------------------------------------------------------------------------


def cut(offsets: NDArray[np.int64]) -> list[range]:
    """Consecutive sequences in chunks of about CHUNK steps."""
    chunks, begin = [], 0
    for n in range(1, len(offsets)):
        if n == len(offsets) - 1 or offsets[n + 1] - offsets[begin] > CHUNK:
            chunks.append(range(begin, n))
            begin = n
    return chunks


def expected_gain(plan: Plan, values: dict[Any, Floats], loss: str) -> tuple[Plan, dict[Any, Floats]]:
    """A plan whose best configuration has the most right steps, or segments, to be expected."""
    topology = plan.topology
    if loss == "step":
        found = plan.expectations(values)
        gains = {("token", d): found.state[d] for d in range(topology.depth)}
    else:
        unit = topology.depth - (1 if topology.unit_bottom else 0)
        every = Plan(topology, plan.offsets, plan.shapes, plan.evidence, explicit=range(unit))
        found = every.expectations(values)
        gains = {("segment", d): every.by_start(d, found.segments[d]) for d in range(unit)}
        if topology.unit_bottom:
            gains["token", unit] = found.state[unit]
    shapes = {key: table.shape for key, table in gains.items()}
    return Plan(topology, plan.offsets, shapes, plan.evidence), gains


def named_weights(blocks: list[tuple[Block, Floats]], encoder: Encoder, topology: Topology) -> dict[Any, float]:
    """Weights by part, level, kind of block, feature and names of states."""
    named = {}
    for block, weights in blocks:
        for name, weight in zip(weight_names(block, encoder, topology), weights.tolist(), strict=True):
            named[name] = weight
    return named


def weight_names(block: Block, encoder: Encoder, topology: Topology) -> list[Any]:
    return [(type(block), feature, *block.locate(topology, place)) for feature, place in block.describe(encoder)]


def carry_over(former: dict[Any, float], blocks: Sequence[Block], encoder: Encoder, topology: Topology) -> Floats:
    """Former weights where the same feature and states of the same part still exist, else zero."""
    return np.array(
        [former.get(name, 0.0) for block in blocks for name in weight_names(block, encoder, topology)], dtype=float
    )


def topology_from_weights(topology: Topology, blocks: list[tuple[Block, Floats]], threshold: float) -> Topology:
    strength = [np.full(table.shape, -np.inf) for table in topology.children]  # strongest weight of a child there
    follows = [np.full(table.shape, -np.inf) for table in topology.successors]
    for block, weights in blocks:
        part, d = block.key
        if part not in ("init", "trans", "end") or not isinstance(block, feature_module.ConstantBlock):
            continue
        table = np.full(block.shape[1:], -np.inf)
        table.reshape(-1)[feature_module.family_cells(topology, block.key)[0]] = 0.0
        table.reshape(-1)[block.cells] = weights
        if part == "trans":
            follows[d + 1] = np.maximum(follows[d + 1], table.max(axis=0))
            table = np.maximum(table.max(axis=1), table.max(axis=2))
        strength[d] = np.maximum(strength[d], table)
    arguments = topology.to_dict()
    names = topology.states
    for d, table in enumerate(strength):
        if (table == -np.inf).all():  # no weights speak of these children
            continue
        kept = (table > threshold) & topology.children[d]
        best = np.where(topology.children[d], table, -np.inf)
        kept[np.arange(len(table)), best.argmax(axis=1)] = True
        kept[best.argmax(axis=0), np.arange(kept.shape[1])] = True
        arguments["children"][topology.levels[d]] = {
            names[d][s]: [names[d + 1][u] for u in np.flatnonzero(row)] for s, row in enumerate(kept)
        }
    for d in range(1, topology.depth):
        if (follows[d] == -np.inf).all():
            continue
        kept = (follows[d] > threshold) & topology.successors[d]
        arguments["successors"][topology.levels[d]] = {
            names[d][u]: [names[d][v] for v in np.flatnonzero(row)] for u, row in enumerate(kept)
        }
    return Topology.from_dict(arguments)
