"""The family: chain CRF, semi-Markov CRF, dynamic CRF and hierarchical HMM, as shapes of one engine.

Each model says which topology its labels have and which blocks of weights feed it; inference, learning, files and
tables are those of :class:`HSCRF`. The *nested SemiCRF* needs no class: it is an HSCRF whose bottom level persists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hscrf._engine import FAMILY, Key, Plan
from hscrf.estimator import (
    HSCRF,
    as_seed,
    check_lengths,
    check_steps,
    cut,
    encode_labels,
    lengths_of,
    unchanged_on_failure,
)
from hscrf.features import (
    PART,
    Block,
    ConstantBlock,
    Duration,
    Encoder,
    End,
    Init,
    Known,
    Observations,
    PairBlock,
    Sparse,
    Token,
    Trans,
    family_cells,
    family_events,
    fit_block,
    of_columns,
    of_names,
    offsets_of,
    own_events,
)
from hscrf.inference import Marginals
from hscrf.labels import InfeasibleError, Labels
from hscrf.objective import LANES, Scorer, Workers, pack_evidence, pack_labels
from hscrf.potentials import Potentials
from hscrf.topology import Topology

__all__ = [
    "HHMM",
    "Categorical",
    "ChainCRF",
    "DynamicCRF",
    "Gaussian",
    "Pair",
    "SemiCRF",
    "hhmm_potentials",
    "semi_crf_as_hscrf",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Self = TypeVar("Self", bound="HHMM")


# -- one level -------------------------------------------------------------------------------------------------------


class ChainCRF(HSCRF):
    """Linear-chain conditional random field: one label for each time step.

    The labels of a sequence are a plain list, ``"?"`` or None where unknown. Without ``features``, every feature of a
    step and every pair of neighbouring labels has weights, as in CRFsuite; ``edges`` adds weights for the first and
    the last label. BIO tags are states like any other. Other arguments as in :class:`HSCRF`.

    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]]] * 2
    >>> model = ChainCRF().fit(X, [["D", "N", "V"], ["D", "?", "V"]])
    >>> model.predict(X[:1])[0].column("label")
    ['D', 'N', 'V']
    >>> model.predict(X[:1], evidence=[["?", "?", "D"]])[0].column("label")[-1]
    'D'
    """

    scheme = "plain"

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        features: Sequence[Any] | None = None,
        edges: bool = False,
        c1: float = 0.0,
        c2: float = 1.0,
        solver: Any = "lbfgs",
        min_count: int = 1,
        pairs: str = "seen",
        transitions: str = "all",
        standardize: bool = True,
        n_jobs: int = 1,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            topology,
            features=features,
            c1=c1,
            c2=c2,
            solver=solver,
            min_count=min_count,
            pairs=pairs,
            transitions=transitions,
            standardize=standardize,
            n_jobs=n_jobs,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
        )
        self.edges = edges

    def _encode_labels(self, Y: Sequence[Any], lengths: Sequence[int]) -> tuple[Topology, list[Labels]]:
        topology, labels = super()._encode_labels(Y, lengths)
        if topology.depth != 2 or not topology.unit_bottom:
            raise ValueError(f"{topology} is no chain, expected one level below the root with segments of length 1")
        return topology, labels

    def _specifications(self) -> Sequence[Any]:
        if self.features is not None:
            return self.features
        edges = [Init("root"), End("root")] if self.edges else []
        return [Token(self.topology_.levels[1]), Trans("root"), *edges]


class SemiCRF(HSCRF):
    """Semi-Markov conditional random field: one level of segments, with features of their lengths and contents.

    The labels of a sequence are a list of BIO tags (or what ``scheme`` says) or of half-open segments
    ``(start, stop, label)``. ``max_duration`` limits the length of segments, for all labels or by label; None takes
    the longest of training. If labels are missing there, that is unknown: then there is no limit, and lengths have no
    weights. Other arguments as in :class:`HSCRF`.

    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]]] * 2
    >>> model = SemiCRF().fit(X, [["B-NP", "I-NP", "O"], [(0, 2, "NP"), (2, 3, "O")]])
    >>> model.predict(X[:1])[0].segments("label")
    [(0, 2, 'NP'), (2, 3, 'O')]
    >>> model.topology_.max_duration[1].tolist()
    [2, 2]
    """

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        features: Sequence[Any] | None = None,
        max_duration: int | Mapping[str, int] | None = None,
        c1: float = 0.0,
        c2: float = 1.0,
        solver: Any = "lbfgs",
        scheme: str = "bio",
        min_count: int = 1,
        pairs: str = "seen",
        transitions: str = "all",
        standardize: bool = True,
        n_jobs: int = 1,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            topology,
            features=features,
            c1=c1,
            c2=c2,
            solver=solver,
            scheme=scheme,
            min_count=min_count,
            pairs=pairs,
            transitions=transitions,
            standardize=standardize,
            n_jobs=n_jobs,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
        )
        self.max_duration = max_duration

    def _encode_labels(self, Y: Sequence[Any], lengths: Sequence[int]) -> tuple[Topology, list[Labels]]:
        level = next(iter(Y[0])) if isinstance(Y[0], Mapping) else "label"
        # the duration asks for a limit: the longest segment, if it is known
        topology, labels = encode_labels(Y, lengths, self.topology, self.scheme, self.features or [Duration(level)])
        if topology.depth != 2:
            raise ValueError(f"{topology} has {topology.depth - 1} levels below the root, expected one")
        if self.max_duration is not None:
            arguments = topology.to_dict()
            arguments["max_duration"] = {topology.levels[1]: self.max_duration}
            topology = Topology.from_dict(arguments)
            labels = [within(y, topology, n) for n, y in enumerate(labels)]
        return topology, labels


def within(labels: Labels, topology: Topology, n: int) -> Labels:
    """The same labels over a narrower topology."""
    try:
        return replace(labels, topology=topology)._checked()
    except InfeasibleError as error:
        raise InfeasibleError(f"Y[{n}]: {error}") from None


# -- blocks ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FactorBlock(Block):
    """Weights of a factor, spread over an array with more cells: its cell c has the score of the factor's index[c].

    The factor is one level of a DynamicCRF, or two, and the array is that of their product. A factor that is the
    same at every time is repeated where the array has a time axis.
    """

    factor: Block
    key: Key
    shape: tuple[int, ...]
    index: Ints  # (cells,)
    levels: tuple[str, ...]
    states: tuple[str, ...]  # of the factor

    @property
    def timed(self) -> bool:  # type: ignore[override]
        return self.factor.timed or self.key[0] not in FAMILY

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.factor.size

    @cached_property
    def members(self) -> Any:
        """Sparse (cells, factor's cells): which cells a factor's cell is spread over."""
        from scipy.sparse import csr_matrix

        cells = self.index.size
        width = int(np.prod(self.factor.shape))
        return csr_matrix((np.ones(cells), self.index, np.arange(cells + 1)), shape=(cells, width))

    def add(self, weights: Floats, seen: Observations, out: Floats) -> None:
        steps = seen.steps if self.factor.timed else 1
        scores = np.zeros((steps, *self.factor.shape) if self.factor.timed else self.factor.shape)
        self.factor.add(weights, seen, scores)
        flat = out.reshape(len(out), -1)
        flat += scores.reshape(steps, -1)[:, self.index]

    def pull(self, counts: Floats, seen: Observations, gradient: Floats) -> None:
        flat = counts.reshape(len(counts), -1)
        if not self.factor.timed:
            flat = flat.sum(axis=0, keepdims=True)
        shape = (len(flat), *self.factor.shape) if self.factor.timed else self.factor.shape
        self.factor.pull((flat @ self.members).reshape(shape), seen, gradient)

    def describe(self, encoder: Encoder) -> list[tuple[str, tuple[int, ...]]]:
        return self.factor.describe(encoder)

    def locate(self, topology: Topology, place: tuple[int, ...]) -> tuple[str, str, str]:
        part = self.key[0] if len(self.levels) == 1 else "pair"
        own = place[1:] if part in FAMILY else place  # the first is the root
        return " & ".join(self.levels), part, " > ".join(self.states[s] for s in own)


@dataclass(frozen=True)
class MomentBlock(Block):
    """Weights (2 F + 1, S) for numeric columns, their squares and a constant: log-densities of diagonal Gaussians."""

    key: Key
    shape: tuple[int, ...]  # (S,)
    features: int
    timed = True

    @property
    def size(self) -> int:  # type: ignore[override]
        return (2 * self.features + 1) * self.shape[0]

    def add(self, weights: Floats, seen: Observations, out: Floats) -> None:
        z = of_columns(seen)
        linear, square, constant = self.split(weights)
        out += z @ linear + z**2 @ square + constant

    def pull(self, counts: Floats, seen: Observations, gradient: Floats) -> None:
        z = of_columns(seen)
        linear, square, constant = self.split(gradient)
        linear += z.T @ counts
        square += (z**2).T @ counts
        constant += counts.sum(axis=0)

    def split(self, flat: Floats) -> tuple[Floats, Floats, Floats]:
        """Views (F, S), (F, S) and (S,): of columns, of squares, constant."""
        table = flat.reshape(-1, *self.shape)
        return table[: self.features], table[self.features : -1], table[-1]

    def describe(self, encoder: Encoder) -> list[tuple[str, tuple[int, ...]]]:
        names = [*encoder.columns, *(f"{name} squared" for name in encoder.columns), "constant"]
        return [(name, (s,)) for name in names for s in range(self.shape[0])]


# -- several levels without nesting ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """The labels of two levels at the same step; ``observed``: with the features of that step."""

    level: str
    other: str
    observed: bool = False


class DynamicCRF(HSCRF):
    """Dynamic (factorial) conditional random field: several labels for each time step, at levels that do not nest.

    The labels of a sequence are a dict from level to a list of labels, ``"?"`` where unknown. Inference is exact, on
    the combinations of labels: ``combinations="seen"`` takes those of training if no label is missing there,
    ``"all"`` all that the ``children`` of the ``topology``, if one is given, allow. A step costs their number squared.
    Weights are those of the factors: ``features`` is a list of ``Token(level)``, ``Init(level)``, ``Trans(level)`` and
    ``End(level)``, all by the level itself, and ``Pair(level, other)``; None takes tokens and transitions of every
    level and pairs of neighbouring levels. Other arguments as in :class:`HSCRF`.

    What ``predict`` returns are :class:`Labels` over ``levels_`` in which every segment has one step; ``evidence`` may
    know any label of any level. ``topology_`` is the flat topology of the combinations, ``combinations_`` (P, levels).

    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]]] * 2
    >>> Y = [{"chunk": ["B", "I", "O"], "tag": ["D", "N", "V"]}] * 2
    >>> model = DynamicCRF().fit(X, Y)
    >>> model.predict(X[:1])[0].column("tag")
    ['D', 'N', 'V']
    >>> model.predict(X[:1], evidence=[{"chunk": ["?", "O", "?"]}])[0].column("tag")[1]
    'V'
    """

    scheme = "plain"
    _feature_classes = (Token, Init, Trans, End, Pair)

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        features: Sequence[Any] | None = None,
        combinations: str = "seen",
        c1: float = 0.0,
        c2: float = 1.0,
        solver: Any = "lbfgs",
        min_count: int = 1,
        pairs: str = "seen",
        transitions: str = "all",
        standardize: bool = True,
        n_jobs: int = 1,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            topology,
            features=features,
            c1=c1,
            c2=c2,
            solver=solver,
            min_count=min_count,
            pairs=pairs,
            transitions=transitions,
            standardize=standardize,
            n_jobs=n_jobs,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
        )
        self.combinations = combinations

    # labels by level <-> labels of combinations

    def _encode_labels(self, Y: Sequence[Any], lengths: Sequence[int]) -> tuple[Topology, list[Labels]]:
        if self.combinations not in ("seen", "all"):
            raise ValueError(f"combinations is {self.combinations!r}, expected 'seen' or 'all'")
        self.levels_ = levels_of(Y) if self.topology is None else self.topology
        by_level = [self._by_level(y, n, "Y") for n, y in enumerate(Y)]
        states = np.concatenate([y.states[1:] for y in by_level], axis=1).T  # (N, levels)
        if self.combinations == "seen" and (states >= 0).all():
            self.combinations_ = np.unique(states, axis=0).astype(np.int64)
        else:
            self.combinations_ = legal_combinations(self.levels_)
        topology = flat_topology("combination", self.levels_, self.combinations_)
        return topology, [self._combined(topology, y, n, "Y") for n, y in enumerate(by_level)]

    def _by_level(self, y: Any, n: int, what: str) -> Labels:
        """Labels of every level, each segment of one step."""
        try:
            return step_labels(self.levels_, y)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{what}[{n}]: {error}") from None

    def _combined(self, topology: Topology, y: Labels, n: int, what: str) -> Labels:
        """Which combinations agree with the labels of every level."""
        agree = np.ones((y.length, len(self.combinations_)), dtype=bool)
        for d, level in enumerate(self.levels_.levels[1:], start=1):
            member = self.combinations_[:, d - 1]
            agree &= (y.states[d] < 0)[:, None] | (y.states[d][:, None] == member)
            if y.allowed and level in y.allowed:
                agree &= y.allowed[level][:, member]
        found = agree.sum(axis=1)
        if not found.all():
            t = int(found.argmin())
            told = {level: y.column(level)[t] for level in self.levels_.levels[1:]}
            raise InfeasibleError(f"{what}[{n}]: no combination that the model knows agrees with {told} at {t}")
        states, ends = one_step_rows(y.length, 2)
        states[1] = np.where(found == 1, agree.argmax(axis=1), -1)
        return Labels(topology, states, ends, None if (found == 1).all() else {topology.levels[1]: agree})

    def _separate(self, labels: Labels) -> Labels:
        """Labels of every level from complete labels of combinations."""
        states, ends = one_step_rows(labels.length, self.levels_.depth)
        states[1:] = self.combinations_[labels.states[1]].T
        return Labels(self.levels_, states, ends, score=labels.score)

    def _evidence(self, evidence: Sequence[Any], seen: Observations, name: str = "evidence") -> list[Labels]:
        lengths = np.diff(seen.offsets).tolist()
        if len(evidence) != len(lengths):
            raise ValueError(f"X has {len(lengths)} sequences but {name} has {len(evidence)}")
        by_level = [
            Labels.unknown(self.levels_, length) if y is None else self._by_level(y, n, name)
            for n, (y, length) in enumerate(zip(evidence, lengths, strict=True))
        ]
        check_steps(seen, by_level, name)
        return [self._combined(self.topology_, y, n, name) for n, y in enumerate(by_level)]

    # factored weights

    def _specifications(self) -> Sequence[Any]:
        if self.features is not None:
            return self.features
        levels = self.levels_.levels[1:]
        own = [spec for level in levels for spec in (Token(level), Trans(level))]
        return own + [Pair(one, other) for one, other in pairwise(levels)]

    def _fit_blocks(self, encoder: Encoder, seen: Observations, labels: Sequence[Labels]) -> list[Block]:
        return [self._fit_factor(spec, encoder, seen, labels) for spec in self._specifications()]

    def _fit_factor(self, spec: Any, encoder: Encoder, seen: Observations, labels: Sequence[Labels]) -> FactorBlock:
        """The block of one factor over its own flat topology, spread over the combinations."""
        if getattr(spec, "average", False):
            raise ValueError(f"{spec} averages over segments, but here every segment has one step")
        levels = (spec.level, spec.other) if isinstance(spec, Pair) else (spec.level,)
        member, topology = self._factor(levels)
        known = factor_labels(labels, member)
        key = ("token", 1) if isinstance(spec, (Token, Pair)) else (PART[type(spec)], 0)
        if isinstance(spec, Pair) and not spec.observed:
            cells = np.unique(known.states[1] if self.transitions == "seen" and known.complete(1) else member)
            factor: Block = ConstantBlock(key, (1, topology.n_states[1]), cells.astype(np.int64))
        else:
            ours = Token(topology.levels[1]) if key[0] == "token" else replace(spec, level="root")
            factor = fit_block(ours, topology, encoder, seen, known, self.pairs, self.transitions)
        shape: tuple[int, ...] = (member.size,) if key[0] == "token" else (1, member.size)
        if key[0] == "trans":
            shape = (1, member.size, member.size)
            member = (member[:, None] * topology.n_states[1] + member).ravel()
        constant = not factor.timed and key[0] in FAMILY
        return FactorBlock(factor, key, (1, *shape) if constant else shape, member, levels, topology.states[1])

    def _factor(self, levels: tuple[str, ...]) -> tuple[Ints, Topology]:
        """The state of a factor in each combination (P,), and the flat topology of its states."""
        which = [self.levels_.level(level) for level in levels]
        if 0 in which:
            raise ValueError("a factor names 'root', which all levels share; expected a level below it")
        sizes = [self.levels_.n_states[d] for d in which]
        member = np.ravel_multi_index([self.combinations_[:, d - 1] for d in which], sizes).astype(np.int64)
        table = np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)
        return member, flat_topology(" & ".join(levels), self.levels_, table, which)

    # the doors

    def _decode(self, plan: Plan, values: dict[Any, Floats], loss: str) -> tuple[Floats, list[Labels]]:
        best, found = super()._decode(plan, values, loss)
        return best, [self._separate(labels) for labels in found]

    def predict_marginals(self, X: Sequence[Any], evidence: Sequence[Any] | None = None) -> list[Marginals]:
        """Posterior probabilities of each sequence; ``state`` has every level and, as "combination", all at once."""
        return [self._marginals_by_level(found) for found in super().predict_marginals(X, evidence)]

    def _marginals_by_level(self, found: Marginals) -> Marginals:
        state, ending = dict(found.state), dict(found.ending)
        for d, level in enumerate(self.levels_.levels[1:], start=1):
            indicator = self.combinations_[:, d - 1][:, None] == np.arange(self.levels_.n_states[d])
            state[level] = found.state["combination"] @ indicator.astype(np.float64)
            ending[level] = found.ending["combination"]
        return replace(found, state=state, ending=ending)

    def sample(
        self, X: Sequence[Any], n: int = 1, random_state: Any = None, evidence: Sequence[Any] | None = None
    ) -> list[list[Labels]]:
        """Draw n labellings of each sequence from the posterior."""
        return [[self._separate(y) for y in draws] for draws in super().sample(X, n, random_state, evidence)]

    def _to_score(self, X: Sequence[Any], Y: Sequence[Any]) -> tuple[Observations, list[Labels]]:
        check_lengths(X, Y)
        seen, labels = self.encoder_.pack(X), [self._by_level(y, n, "Y") for n, y in enumerate(Y)]
        check_steps(seen, labels)
        return seen, labels

    def learned_topology(self, threshold: float = 0.0) -> Topology:
        """There is none: the levels of this model do not nest."""
        raise ValueError("the levels of a DynamicCRF do not nest, so there is no topology to learn")

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = super()._content()
        return {**header, "levels": self.levels_.to_dict()}, {**arrays, "combinations": self.combinations_}

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, Any], functions: Mapping[str, Any]) -> None:
        super()._restore(header, arrays, functions)
        self.levels_ = Topology.from_dict(header["levels"])
        self.topology = self.levels_ if header["topology_given"] else None
        self.combinations_ = np.array(arrays["combinations"])


def levels_of(Y: Sequence[Any]) -> Topology:
    """All labels of all levels."""
    if isinstance(Y[0], Labels):
        return Y[0].topology
    names: dict[str, set[str]] = {}
    for n, y in enumerate(Y):
        if not isinstance(y, Mapping):
            raise ValueError(f"Y[{n}] is a {type(y).__name__}, expected a dict from level to a list of labels")
        for level, column in y.items():
            if n > 0 and level not in names:
                raise ValueError(f"Y[{n}] has a level {level!r}, but Y[0] has only {', '.join(map(repr, names))}")
            names.setdefault(level, set()).update(tag for tag in column if tag is not None and tag != "?")
    for level, states in names.items():
        if not states:
            raise ValueError(f"level {level!r} has no known label, so its states are unknown: give a topology")
    return Topology({level: sorted(states) for level, states in names.items()})


def one_step_rows(length: int, depth: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """States and ends (depth, T) of a root of one state over segments of one step, whose states are unknown."""
    states, ends = np.full((depth, length), -1, dtype=np.int32), np.ones((depth, length), dtype=np.int8)
    states[0], ends[0, :-1] = 0, 0
    return states, ends


def step_labels(topology: Topology, y: Any) -> Labels:
    """Labels in which every segment has one step, from a dict of columns; levels not named are unknown."""
    if isinstance(y, Labels):
        if y.topology != topology:
            raise ValueError(f"labels of {y.topology} with other states than the model's {topology}")
        if (y.ends[1:] == 0).any():
            raise ValueError("labels with segments that go on, but here every segment has one step")
        return y
    if not isinstance(y, Mapping):
        raise ValueError(f"labels are a {type(y).__name__}, expected a dict from level to a list of labels")
    lengths = {level: len(column) for level, column in y.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"levels differ in length: {lengths}")
    states, ends = one_step_rows(next(iter(lengths.values())), topology.depth)
    for level, column in y.items():
        d = topology.level(level)
        codes = {tag: -1 if tag is None or tag == "?" else topology.state(d, tag) for tag in set(column)}
        states[d] = [codes[tag] for tag in column]
    return Labels(topology, states, ends)


def legal_combinations(levels: Topology) -> Ints:
    """All combinations (P, levels) whose neighbours the topology lets be parent and child."""
    table = np.arange(levels.n_states[1])[:, None]
    for d in range(1, levels.depth - 1):
        row, child = np.nonzero(levels.children[d][table[:, -1]])
        table = np.column_stack([table[row], child])
    return table.astype(np.int64)


def flat_topology(name: str, levels: Topology, table: Ints, which: Sequence[int] | None = None) -> Topology:
    """One level whose states are combinations (P, K) of the states of some levels, joined by ``&``."""
    columns = range(1, levels.depth) if which is None else which
    escaped = [[state.replace("\\", r"\\").replace("&", r"\&") for state in levels.states[d]] for d in columns]
    names = [" & ".join(of[s] for of, s in zip(escaped, row, strict=True)) for row in table.tolist()]
    return Topology({name: names})


def factor_labels(labels: Sequence[Labels], member: Ints) -> Known:
    """Packed labels of a factor: known where all combinations that are possible there agree on it."""
    packed = pack_labels(labels)
    states = np.where(packed.states[1] >= 0, member[packed.states[1]], -1)
    for n, y in enumerate(labels):
        if y.allowed:
            sets = next(iter(y.allowed.values()))
            lowest = np.where(sets, member, member.max() + 1).min(axis=1)
            highest = np.where(sets, member, -1).max(axis=1)
            states[packed.offsets[n] : packed.offsets[n + 1]] = np.where(lowest == highest, lowest, -1)
    rows = np.stack([np.zeros_like(states), states]).astype(np.int32)
    return Known(rows, packed.ends, packed.offsets)


# -- the generative model ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Categorical:
    """Emission of one of some symbols."""

    symbols: tuple[Any, ...]
    probability: Floats  # (S, symbols)


@dataclass(frozen=True)
class Gaussian:
    """Emission of a row of numbers, independent and normal given the state."""

    mean: Floats  # (S, F)
    variance: Floats  # (S, F)


class HHMM(HSCRF):
    """Hierarchical hidden Markov model with shared states (Fine et al. 1998; Bui et al. 2004).

    A parent s starts its first child u with probability ``init_[level][s, u]``; when a child u ends, the parent goes
    on to v with ``trans_[level][s, u, v]`` or ends with ``end_[level][s, u]``, which sum to one. States of the bottom
    level live one step and emit a symbol or a row of numbers. The root ends with the sequence, whose length is given:
    one level is then an ordinary HMM. With ``root_ends`` the root ends by chance as the other levels do, and the
    model is a distribution over sequences of all lengths. A root of several classes has the probabilities ``root_``.

    Parameters
    ----------
    topology : as in HSCRF; needed if a level has no labels at all. Durations cannot be limited.
    emission : "categorical" (X holds lists of symbols) or "gaussian" (2-D arrays); None looks at X.
    smoothing : added to each count of an event (Laplace); EM then climbs the likelihood times the Dirichlet prior.
    root_ends : see above.
    max_iter, tol : EM stops after so many steps, or when the objective gains less than tol per time step.
    min_variance : no variance of a Gaussian falls below, in units of the data.
    scheme, n_jobs, random_state, warm_start : as in HSCRF; a warm start goes on from the present parameters.

    Complete labels are counted; otherwise EM starts from what is known of them and from chance. ``coef_`` are the
    logarithms of the probabilities: the model is an HSCRF with these weights, so all other methods are HSCRF's.

    >>> X = [["a", "a", "b", "c"], ["a", "b", "c"]]
    >>> Y = [{"phrase": ["P", "P", "P", "Q"], "tag": ["x", "x", "y", "z"]}, {"phrase": ["P", "P", "Q"]}]
    >>> model = HHMM(smoothing=0.01, random_state=0).fit(X, Y)
    >>> model.predict([["a", "b", "b", "c"]])[0].tree()
    [('P', ['x', 'y', 'y']), ('Q', ['z'])]
    """

    features = None

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        emission: str | None = None,
        smoothing: float = 0.1,
        root_ends: bool = False,
        max_iter: int = 100,
        tol: float = 1e-5,
        min_variance: float = 1e-6,
        scheme: str | Mapping[str, str] = "plain",
        n_jobs: int = 1,
        random_state: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.topology = topology
        self.emission = emission
        self.smoothing = smoothing
        self.root_ends = root_ends
        self.max_iter = max_iter
        self.tol = tol
        self.min_variance = min_variance
        self.scheme = scheme
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start

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
        """A model with given probabilities: tables by the parent's level, as ``init_``, ``trans_`` and ``end_``.

        ``end`` without the root means that the root does not end by chance. Other arguments are the constructor's.
        """
        check_generative(topology)
        model = cls(topology, root_ends="root" in end, **arguments)
        model.topology_, model.encoder_ = topology, encoder_for(emission)
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

    def fit(self: Self, X: Sequence[Any], Y: Sequence[Any] | None = None) -> Self:  # type: ignore[override]
        """Learn from sequences X and their labels Y: complete, partial, or none at all.

        ``history_`` holds the log-likelihood of every step, and the objective: with the prior.
        """
        with unchanged_on_failure(self), Workers(self.n_jobs) as workers:
            going_on = self.warm_start and hasattr(self, "coef_")
            seen, labels = self._go_on(X, Y) if going_on else self._begin(X, Y)
            complete = labels is not None and all(y.is_complete for y in labels)
            scorer = Scorer(self.topology_, self.blocks_)
            weights = self.coef_ if going_on else self._start(scorer, seen, labels, complete)
            self._climb(Expectation(scorer, seen, labels, workers), weights, complete)
        return self

    def _begin(self, X: Sequence[Any], Y: Sequence[Any] | None) -> tuple[Observations, list[Labels] | None]:
        """Learn the frame of the model and pack the data in it."""
        encoder, labels = EmissionEncoder(), None
        seen = encoder.fit_pack(X, self.emission)
        if Y is not None:
            check_lengths(X, Y)
            topology, labels = self._encode_labels(Y, lengths_of(seen))
            check_steps(seen, labels)
        elif self.topology is not None:
            topology = self.topology
        else:
            raise ValueError("there are no labels, so the states are unknown: give a topology")
        check_generative(topology)
        self.topology_, self.encoder_ = topology, encoder
        self.blocks_ = self._new_blocks()
        return seen, labels

    def _go_on(self, X: Sequence[Any], Y: Sequence[Any] | None) -> tuple[Observations, list[Labels] | None]:
        seen = self.encoder_.pack(X)
        return seen, None if Y is None else self._evidence(Y, seen, "Y")

    def _new_blocks(self) -> list[Block]:
        """A block for each table of probabilities, of all that the topology allows, and last the emission's."""
        topology = self.topology_
        blocks: list[Block] = []
        if topology.n_states[0] > 1:
            every = np.arange(topology.n_states[0])
            constant = ConstantBlock(("start", 0), (1, every.size), every)
            blocks.append(FactorBlock(constant, ("start", 0), (every.size,), every, ("root",), topology.states[0]))
        for d in range(topology.depth - 1):
            for part in FAMILY:
                if part != "end" or d > 0 or self.root_ends:
                    cells, shape = family_cells(topology, (part, d))
                    blocks.append(ConstantBlock((part, d), (1, *shape), cells))
        return [*blocks, emission_block(self.encoder_, topology)]

    def _start(self, scorer: Scorer, seen: Observations, labels: Sequence[Labels] | None, complete: bool) -> Floats:
        """Parameters to begin with: the labels that are known, and chance where there are none."""
        even = self._maximise(np.ones(scorer.size), np.zeros(scorer.size))
        if complete:
            return even
        rng = np.random.default_rng(as_seed(self.random_state))
        statistics = rng.exponential(size=scorer.size)
        token = self._pieces(statistics)[-1][1]
        if seen.dense is not None:
            token[:] = scattered_moments(seen.dense, self.topology_.n_states[-1], rng)
        else:
            met = np.bincount(of_names(seen).indices, minlength=len(self.encoder_.names))
            token *= np.repeat(met / met.mean(), self.topology_.n_states[-1])
        if labels is not None:
            scorer.pull(known_counts(scorer, pack_labels(labels)), seen, statistics)
        return self._maximise(statistics, even)

    def _climb(self, expect: Expectation, weights: Floats, complete: bool) -> None:
        """EM: never lowers the objective; complete labels need one step. Ctrl-C keeps the parameters so far."""
        max_iter = 1 if complete else self.max_iter
        self.history_: list[dict[str, Any]] = []
        self.converged_ = complete
        self.stop_reason_ = "the labels are complete" if complete else f"max_iter={max_iter} steps done"
        try:
            for step in range(max_iter + 1):
                log_likelihood, statistics = expect(weights)
                objective = log_likelihood + self._log_prior(weights)
                self.coef_, self.loss_, self.n_iter_ = weights, -objective, step
                self.history_.append({"iteration": step, "log_likelihood": log_likelihood, "objective": objective})
                if step == max_iter:
                    break
                if step and objective - self.history_[-2]["objective"] < self.tol * expect.steps:
                    self.converged_ = True
                    self.stop_reason_ = f"the objective gained less than tol={self.tol:g} per time step"
                    break
                weights = self._maximise(statistics, weights)
        except KeyboardInterrupt:
            self.converged_, self.stop_reason_ = False, "interrupted"

    def _log_prior(self, weights: Floats) -> float:
        """Log density of the Dirichlet priors, up to a constant."""
        if not self.smoothing:
            return 0.0
        tables = [w for block, w in self._pieces(weights) if not isinstance(block, MomentBlock)]
        return self.smoothing * float(np.concatenate(tables).sum())

    def _maximise(self, statistics: Floats, former: Floats) -> Floats:
        """The M step: the most likely parameters for expected counts; what was never met keeps its former value."""
        *tables, (emission, moments) = self._pieces(statistics)
        counts = {block.key: dense(block, piece + self.smoothing) for block, piece in tables}
        before = {block.key: dense(block, np.exp(piece)) for block, piece in self._pieces(former)[:-1]}
        found = {key: proportions(counts[key], before[key]) for key in counts if key[0] in ("start", "init")}
        for d in range(self.topology_.depth - 1):
            trans, end = ("trans", d), ("end", d)
            if end in counts:  # what follows a child: a sibling, or the end of the parent
                events, past = (np.concatenate([of[trans], of[end][..., None]], axis=-1) for of in (counts, before))
                shares = proportions(events, past)
                found[trans], found[end] = shares[..., :-1], shares[..., -1]
            else:
                found[trans] = proportions(counts[trans], before[trans])
        weights = former.copy()
        *pieces, (_, last) = self._pieces(weights)
        for block, piece in pieces:
            piece[:] = log(found[block.key].ravel()[constant_of(block).cells])
        if isinstance(emission, MomentBlock):
            self._fit_gaussians(emission, moments, last)
        else:
            table = (moments + self.smoothing).reshape(-1, self.topology_.n_states[-1]).T
            last[:] = log(proportions(table, np.exp(last).reshape(table.shape[::-1]).T)).T.ravel()
        return weights

    def _fit_gaussians(self, block: MomentBlock, moments: Floats, weights: Floats) -> None:
        """Mean and variance of each state of which anything was seen, written over its former weights."""
        linear, square, count = block.split(moments)
        seen = count > 0
        mean = linear[:, seen] / count[seen]
        scale = self.encoder_.scale[:, None]
        variance = np.maximum((square[:, seen] / count[seen] - mean**2) * scale**2, self.min_variance)
        weights.reshape(-1, count.size)[:, seen] = natural_parameters(self.encoder_, mean * scale, variance)

    # the doors of a generative model

    def log_likelihood(self, X: Sequence[Any], Y: Sequence[Any] | None = None) -> Floats:
        """Log probability of the observations of each sequence (n,), together with their labels if given."""
        if Y is not None:
            check_lengths(X, Y)

        def run(plan: Plan, values: dict[Any, Floats]) -> tuple[Floats, Floats]:
            found = plan.log_partition(values)
            return np.zeros_like(found), found  # -inf is an answer

        self._check_fitted()
        seen = self.encoder_.pack(X)
        known = None if Y is None else self._evidence(Y, seen, "Y")
        return np.concatenate(self._chunks(seen, known, run, "Y"))

    def generate(
        self, n: int = 1, length: int | None = None, random_state: Any = None
    ) -> tuple[list[Any], list[Labels]]:
        """Draw n new sequences and their labels from the model.

        Without ``root_ends``, a sequence stops as soon as it has ``length`` steps and all levels below the root end:
        with one level after ``length`` steps, with more perhaps a little later.
        """
        self._check_fitted()
        if (length is None) != self.root_ends:
            told = "the root ends by chance: give no length" if self.root_ends else "give a length"
            raise ValueError(f"length is {length} and root_ends is {self.root_ends}; {told}")
        rng = np.random.default_rng(as_seed(random_state))
        tables = self.root_, list(self.init_.values()), self._events()
        Y = [self._walk(rng, length, *tables) for _ in range(n)]
        emission = self.emission_
        return [emit(rng, emission, y.states[-1]) for y in Y], Y

    def _walk(
        self,
        rng: np.random.Generator,
        length: int | None,
        root: Floats,
        init: Sequence[Floats],
        events: Sequence[Floats],
    ) -> Labels:
        """Labels of one new sequence, from left to right."""
        topology, depth = self.topology_, self.topology_.depth
        stack = [pick(rng, root)] + [0] * (depth - 1)
        states: list[list[int]] = []
        ends: list[list[int]] = []
        d = 0  # the levels below start anew
        while True:
            for parent in range(d, depth - 1):
                stack[parent + 1] = pick(rng, init[parent][stack[parent]])
            states.append(stack.copy())
            d = depth - 1  # ends here: does its parent go on?
            while d > 0:
                over = d == 1 and length is not None and len(states) >= length
                child = topology.n_states[d] if over else pick(rng, events[d - 1][stack[d - 1], stack[d]])
                if child < topology.n_states[d]:
                    stack[d] = child
                    break
                d -= 1
            ends.append([int(level >= d) for level in range(depth)])
            if d == 0:
                return Labels(topology, np.array(states).T, np.array(ends).T)

    def _events(self) -> list[Floats]:
        """Of each parent's level, probabilities (S, U, U + 1) of what follows a child: a sibling, or the end."""
        end = self.end_
        return [
            np.concatenate([table, end.get(level, 1 - table.sum(axis=-1))[..., None]], axis=-1)
            for level, table in self.trans_.items()
        ]

    # parameters

    def _pieces(self, flat: Floats) -> list[tuple[Block, Floats]]:
        """Each block and its part of a vector as long as the weights."""
        bounds = np.cumsum([0, *(block.size for block in self.blocks_)]).tolist()
        return [(block, flat[a:b]) for block, (a, b) in zip(self.blocks_, pairwise(bounds), strict=True)]

    def _probabilities(self, part: str) -> dict[str, Floats]:
        self._check_fitted()
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
        """What the states of the bottom level emit."""
        self._check_fitted()
        block, weights = self._pieces(self.coef_)[-1]
        if isinstance(block, MomentBlock):
            linear, square, _ = block.split(weights)
            variance, scale = -0.5 / square, self.encoder_.scale
            return Gaussian((linear * variance).T * scale + self.encoder_.mean, variance.T * scale**2)
        names = tuple(self.encoder_.names)
        return Categorical(names, np.exp(weights.reshape(len(names), -1)).T)


class Expectation:
    """The E step: log-likelihood of packed data with their labels, and expected sufficient statistics (weights,).

    The statistics are the transpose of the scores applied to the engine's expected counts.
    """

    def __init__(self, scorer: Scorer, seen: Observations, labels: Sequence[Labels] | None, workers: Workers) -> None:
        self.scorer = scorer
        self.workers = workers
        self.steps = seen.steps
        self.chunks = [self._chunk(which, seen.take(which), labels) for which in cut(seen.offsets)]

    def _chunk(self, which: range, seen: Observations, labels: Sequence[Labels] | None) -> Any:
        evidence = None if labels is None else pack_evidence(labels, which)
        plan = Plan(self.scorer.topology, seen.offsets, self.scorer.shapes(seen.steps), evidence)
        return which, seen.by_columns(), plan

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        lanes = [self.chunks[k::LANES] for k in range(min(LANES, len(self.chunks)))]
        total, statistics = 0.0, np.zeros(self.scorer.size)
        for value, pulled in self.workers.map(lambda lane: self._run(weights, lane), lanes):
            total += value
            statistics += pulled
        return total, statistics

    def _run(self, weights: Floats, chunks: Sequence[tuple[range, Observations, Plan]]) -> tuple[float, Floats]:
        total, statistics = 0.0, np.zeros(self.scorer.size)
        for which, seen, plan in chunks:
            result = plan.expectations(self.scorer.values(weights, seen))
            bad = np.flatnonzero(result.log_z == -np.inf)
            if bad.size:
                raise InfeasibleError(f"X[{which[int(bad[0])]}] and its labels have probability zero in this model")
            total += float(result.log_z.sum())
            self.scorer.pull(result.counts, seen, statistics)
        return total, statistics


class EmissionEncoder(Encoder):
    """Packs what the states emit: one symbol for each step, or a row of numbers."""

    names: dict[Any, int]

    def fit_pack(self, X: Sequence[Any], emission: str | None = None) -> Observations:
        """Learn from X and pack it."""
        if emission not in (None, "categorical", "gaussian"):
            raise ValueError(f"emission is {emission!r}, expected 'categorical', 'gaussian' or None")
        if emission == "gaussian" or (emission is None and not holds_symbols(X)):
            seen = super().fit_pack(X)
            if seen.dense is None:
                raise ValueError("X holds lists of features; expected one symbol or a row of numbers for each step")
            return seen
        self.kind = "symbols"
        symbols = flat_symbols(X)
        found = np.unique(symbols).tolist() if isinstance(symbols, np.ndarray) else dict.fromkeys(symbols)
        self.names = {symbol: k for k, symbol in enumerate(found)}
        return self.pack(X)

    def pack(self, X: Sequence[Any]) -> Observations:
        """Pack new observations; a symbol that was not seen in training is a step without observation."""
        if self.kind != "symbols":
            return super().pack(X)
        symbols = flat_symbols(X)
        if isinstance(symbols, np.ndarray):
            codes = self._codes(symbols)
        else:
            codes = np.array([self.names.get(symbol, -1) for symbol in symbols], dtype=np.int32)
        indptr = np.concatenate([[0], np.cumsum(codes >= 0)]).astype(np.int64)
        return Observations(offsets_of(X), Sparse(indptr, codes[codes >= 0], np.empty(0), len(self.names)), None, X)

    def _codes(self, symbols: NDArray[Any]) -> NDArray[np.int32]:
        """Numbers (N,) of integer symbols, -1 for unknown ones."""
        known = {symbol: k for symbol, k in self.names.items() if not isinstance(symbol, str)}
        if not known:
            return np.full(symbols.size, -1, dtype=np.int32)
        names, codes = np.array(list(known)), np.array(list(known.values()))
        order = np.argsort(names)
        at = order[np.minimum(np.searchsorted(names, symbols, sorter=order), names.size - 1)]
        return np.where(names[at] == symbols, codes[at], -1).astype(np.int32)


HHMM._encoder_class = EmissionEncoder


def holds_symbols(X: Sequence[Any]) -> bool:
    """Does X hold sequences of strings or integers, rather than of rows of numbers."""
    if len(X) == 0:
        raise ValueError("X is empty, expected at least one sequence")
    first = X[0]
    if isinstance(first, np.ndarray):
        return first.ndim == 1 and first.dtype.kind in "iuU"
    if hasattr(first, "tocsr") or hasattr(first, "iloc") or len(first) == 0:
        return False
    item = first[0]
    return isinstance(item, (str, int, np.integer)) or (
        isinstance(item, Sequence) and len(item) == 1 and isinstance(item[0], str)
    )


def flat_symbols(X: Sequence[Any]) -> NDArray[Any] | list[Any]:
    """The symbols of all sequences: an array if all are arrays of integers, else a list of strings and integers."""
    for n, x in enumerate(X):
        if len(x) == 0:
            raise ValueError(f"X[{n}] is empty, expected at least one time step")
    if all(isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.size == len(x) for x in X):
        return np.concatenate([x.ravel() for x in X])
    return [symbol_of(item, n, t) for n, x in enumerate(X) for t, item in enumerate(x)]


def symbol_of(item: Any, n: int, t: int) -> str | int:
    """One symbol, alone or in a list of one."""
    if isinstance(item, (list, tuple, np.ndarray)) and len(item) == 1:
        item = item[0]
    if isinstance(item, str):
        return str(item)
    if isinstance(item, (int, np.integer)):
        return int(item)
    raise ValueError(f"X[{n}][{t}] is {item!r}, expected one symbol: a string or an integer")


def encoder_for(emission: Categorical | Gaussian) -> EmissionEncoder:
    """An encoder for given parameters; numbers are centred and scaled so that densities keep their digits."""
    encoder = EmissionEncoder()
    if isinstance(emission, Categorical):
        encoder.kind = "symbols"
        encoder.names = {symbol: k for k, symbol in enumerate(emission.symbols)}
        return encoder
    mean, variance = np.asarray(emission.mean, dtype=np.float64), np.asarray(emission.variance, dtype=np.float64)
    encoder.kind = "dense"
    encoder.mean = mean.mean(axis=0)
    encoder.scale = np.sqrt(variance.mean(axis=0) + mean.var(axis=0))
    encoder.columns = [f"x{k}" for k in range(encoder.mean.size)]
    return encoder


def emission_block(encoder: Encoder, topology: Topology) -> Block:
    """Weights for every symbol in every state of the bottom level, or for the moments of every column."""
    states = topology.n_states[-1]
    key = ("token", topology.depth - 1)
    if encoder.kind != "symbols":
        return MomentBlock(key, (states,), len(encoder.columns))
    symbols = len(encoder.names)
    every = np.tile(np.arange(states, dtype=np.int32), symbols)
    return PairBlock(key, (states,), np.arange(symbols + 1) * states, every)


def emission_weights(encoder: Encoder, topology: Topology, emission: Categorical | Gaussian) -> Floats:
    """The weights of the emission's block from its parameters."""
    states = topology.n_states[-1]
    tables = (emission.probability,) if isinstance(emission, Categorical) else (emission.mean, emission.variance)
    arrays = [np.asarray(table, dtype=np.float64) for table in tables]
    width = len(encoder.names) if isinstance(emission, Categorical) else len(encoder.columns)
    for array in arrays:
        if array.shape != (states, width):
            raise ValueError(f"the emission has a table of shape {array.shape}, expected {(states, width)}")
    if isinstance(emission, Categorical):
        return log(arrays[0]).T.ravel()
    return natural_parameters(encoder, (arrays[0] - encoder.mean).T, arrays[1].T).ravel()


def check_generative(topology: Topology) -> None:
    for d, level in enumerate(topology.levels):
        if topology.has_limits(d):
            raise ValueError(f"level {level!r} has limited durations, which an HHMM cannot respect")
    if not topology.unit_bottom:
        raise ValueError(f"the bottom level {topology.levels[-1]!r} persists, expected segments of length 1")


def check_normalised(model: HHMM) -> None:
    """Raise unless the probabilities of what may happen sum to one."""
    topology = model.topology_
    sums = {"root": model.root_.sum()}
    if isinstance(model.emission_, Categorical):
        sums["emission"] = model.emission_.probability.sum(axis=-1)
    for d, level in enumerate(topology.levels[:-1]):
        sums[f"init[{level!r}]"] = model.init_[level].sum(axis=-1)
        free = topology.children[d]
        if level not in model.end_:  # a child without successors is the last
            free = free & (topology.children[d] @ topology.successors[d + 1].T)
        sums[f"trans[{level!r}] and end[{level!r}]"] = (model.trans_[level].sum(axis=-1) + model.end_.get(level, 0.0))[
            free
        ]
    for name, found in sums.items():
        if not np.allclose(found, 1, rtol=0, atol=1e-6):
            raise ValueError(f"{name} sums to {np.round(found, 6)} over what the topology allows, expected 1")


def constant_of(block: Block) -> ConstantBlock:
    """The table of probabilities behind a block."""
    constant = block.factor if isinstance(block, FactorBlock) else block
    assert isinstance(constant, ConstantBlock)
    return constant


def dense(block: Block, values: Floats) -> Floats:
    """The table of a block, zero where the topology forbids."""
    constant = constant_of(block)
    table = np.zeros(constant.shape[1:])
    table.reshape(-1)[constant.cells] = values
    return table


def log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(values)


def proportions(counts: Floats, former: Floats) -> Floats:
    """Counts as shares of their last axis; where there are none, the former shares."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), former)


def natural_parameters(encoder: Encoder, mean: Floats, variance: Floats) -> Floats:
    """Weights (2 F + 1, S) for encoded columns from means and variances (F, S) of the data less the encoder's mean."""
    scale = encoder.scale[:, None]
    constant = -0.5 * (np.log(2 * np.pi * variance) + mean**2 / variance).sum(axis=0)
    return np.concatenate([mean * scale / variance, -0.5 * scale**2 / variance, constant[None]])


def scattered_moments(z: Floats, states: int, rng: np.random.Generator) -> Floats:
    """Moments of one made-up observation for each state, far from the others, with the variance of all data."""
    from sklearn.cluster import kmeans_plusplus

    if len(z) < states:
        centres = rng.normal(size=(states, z.shape[1]))
    else:
        centres = kmeans_plusplus(z, states, random_state=int(rng.integers(2**31)))[0]
    return np.concatenate([centres.T, centres.T**2 + 1, np.ones((1, states))]).ravel()


def known_counts(scorer: Scorer, known: Known) -> dict[Key, Floats]:
    """Counts of the events that partial labels tell for sure."""
    counts = {key: np.zeros(shape) for key, shape in scorer.shapes(known.states.shape[1]).items()}
    for key, table in counts.items():
        find = partial(family_events, scorer.topology) if key[0] in FAMILY else own_events
        steps, cells, _ = find(known, key)
        times = np.zeros_like(steps) if key[0] in FAMILY else steps
        np.add.at(table.reshape(len(table), -1), (times, cells), 1.0)
    return counts


def emit(rng: np.random.Generator, emission: Categorical | Gaussian, states: NDArray[np.int32]) -> Any:
    """Draw an observation for each state."""
    if isinstance(emission, Gaussian):
        return rng.normal(emission.mean[states], np.sqrt(emission.variance[states]))
    return [emission.symbols[pick(rng, emission.probability[s])] for s in states.tolist()]


def pick(rng: np.random.Generator, probabilities: Floats) -> int:
    """Draw an index."""
    sums = np.cumsum(probabilities)
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))


# -- one model as another ----------------------------------------------------------------------------------------------


def semi_crf_as_hscrf(potentials: Potentials, bottom: str = "step") -> Potentials:
    """A semi-Markov model as three levels: its segments over a dummy bottom level of one state and unit length.

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


def hhmm_potentials(model: HHMM, x: Any) -> Potentials:
    """The log-probabilities of an HHMM as the potentials of one sequence: log Z is its log-likelihood."""
    return model.potentials([x])[0]
