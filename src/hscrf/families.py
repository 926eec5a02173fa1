"""The family: chain CRF, semi-Markov CRF, dynamic CRF and hierarchical HMM, as shapes of one engine.

Each model says which topology its labels have and which blocks of weights feed it; inference, learning, files and
tables are those of :class:`HSCRF`. The *nested SemiCRF* needs no class: it is an HSCRF whose bottom level persists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hscrf import metrics
from hscrf._engine import FAMILY, Key, Plan
from hscrf.estimator import HSCRF, as_labels, as_seed, check_lengths, check_steps, cut, encode_labels
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
    observed_block,
    of_columns,
    offsets_of,
    own_events,
)
from hscrf.inference import Marginals
from hscrf.labels import InfeasibleError, Labels
from hscrf.objective import LANES, Scorer, Workers, pack_evidence, pack_labels, rows_of
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
            standardize=standardize,
            n_jobs=n_jobs,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
        )
        self.edges = edges

    def _encode_labels(self, Y: Sequence[Any]) -> tuple[Topology, list[Labels]]:
        topology, labels = super()._encode_labels(Y)
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
    the longest of training, which complete labels tell. Other arguments as in :class:`HSCRF`.

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
            standardize=standardize,
            n_jobs=n_jobs,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
        )
        self.max_duration = max_duration

    def _encode_labels(self, Y: Sequence[Any]) -> tuple[Topology, list[Labels]]:
        level = next(iter(Y[0])) if isinstance(Y[0], Mapping) else "label"
        # the duration asks for a limit: the longest segment, if it is known
        topology, labels = encode_labels(Y, self.topology, self.scheme, self.features or [Duration(level)])
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

    @property
    def timed(self) -> bool:  # type: ignore[override]
        return self.factor.timed or self.key[0] not in FAMILY

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.factor.size

    @property
    def name(self) -> tuple[Any, ...]:
        return (*super().name, self.levels, *self.factor.name)

    @cached_property
    def members(self) -> Any:
        """Sparse (cells, factor's cells): which cells a factor's cell is spread over."""
        from scipy.sparse import csr_matrix

        cells = self.index.size
        width = int(np.prod(self.factor.shape))
        return csr_matrix((np.ones(cells), self.index, np.arange(cells + 1)), shape=(cells, width))

    def add(self, weights: Floats, seen: Observations, rows: Ints, out: Floats) -> None:
        steps = len(rows) if self.factor.timed else 1
        scores = np.zeros((steps, *self.factor.shape) if self.factor.timed else self.factor.shape)
        self.factor.add(weights, seen, rows, scores)
        flat = out.reshape(len(out), -1)
        flat += scores.reshape(steps, -1)[:, self.index]

    def pull(self, counts: Floats, seen: Observations, rows: Ints, gradient: Floats) -> None:
        flat = counts.reshape(len(counts), -1)
        if not self.factor.timed:
            flat = flat.sum(axis=0, keepdims=True)
        shape = (len(flat), *self.factor.shape) if self.factor.timed else self.factor.shape
        self.factor.pull((flat @ self.members).reshape(shape), seen, rows, gradient)

    def describe(self, encoder: Encoder) -> list[tuple[str, tuple[int, ...]]]:
        return self.factor.describe(encoder)


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

    def add(self, weights: Floats, seen: Observations, rows: Ints, out: Floats) -> None:
        z = of_columns(seen)[rows]
        linear, square, constant = self.split(weights)
        out += z @ linear + z**2 @ square + constant

    def pull(self, counts: Floats, seen: Observations, rows: Ints, gradient: Floats) -> None:
        z = of_columns(seen)[rows]
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
    >>> model.predict(X[:1], evidence=[{"chunk": ["?", "O", "?"]}])[0].column("tag")
    ['D', 'V', 'V']
    """

    scheme = "plain"

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
            standardize=standardize,
            n_jobs=n_jobs,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
        )
        self.combinations = combinations

    # labels by level <-> labels of combinations

    def _encode_labels(self, Y: Sequence[Any]) -> tuple[Topology, list[Labels]]:
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

    def _evidence(self, evidence: Sequence[Any], seen: Observations) -> list[Labels]:
        lengths = np.diff(seen.offsets).tolist()
        if len(evidence) != len(lengths):
            raise ValueError(f"X has {len(lengths)} sequences but evidence has {len(evidence)}")
        known = [Labels.unknown(self.levels_, length) if y is None else y for y, length in zip(evidence, lengths)]  # noqa: B905
        by_level = [self._by_level(y, n, "evidence") for n, y in enumerate(known)]
        check_steps(seen, by_level, "evidence")
        return [self._combined(self.topology_, y, n, "evidence") for n, y in enumerate(by_level)]

    # factored weights

    def _specifications(self) -> Sequence[Any]:
        if self.features is not None:
            return self.features
        levels = self.levels_.levels[1:]
        own = [spec for level in levels for spec in (Token(level), Trans(level))]
        return own + [Pair(one, other) for one, other in zip(levels, levels[1:])]  # noqa: B905

    def _fit_blocks(self, encoder: Encoder, seen: Observations, labels: Sequence[Labels]) -> list[Block]:
        return [self._fit_factor(spec, encoder, seen, labels) for spec in self._specifications()]

    def _fit_factor(self, spec: Any, encoder: Encoder, seen: Observations, labels: Sequence[Labels]) -> FactorBlock:
        """The block of one factor over its own flat topology, spread over the combinations."""
        if not isinstance(spec, (Token, Init, Trans, End, Pair)) or getattr(spec, "average", False):
            raise ValueError(f"{spec} is no factor of steps; expected Token, Init, Trans, End or Pair")
        levels = (spec.level, spec.other) if isinstance(spec, Pair) else (spec.level,)
        member, topology = self._factor(levels)
        known = factor_labels(labels, member)
        key = ("token", 1) if isinstance(spec, (Token, Pair)) else (PART[type(spec)], 0)
        if isinstance(spec, Pair) and not spec.observed:
            cells = np.unique(known.states[1] if self.pairs == "seen" and known.complete(1) else member)
            factor: Block = ConstantBlock(key, (1, topology.n_states[1]), cells.astype(np.int64))
        else:
            ours = Token(topology.levels[1]) if key[0] == "token" else replace(spec, level="root")
            factor = fit_block(ours, topology, encoder, seen, known, self.pairs)  # type: ignore[arg-type]
        many, few = len(member), topology.n_states[1]
        index, shape = member, (many,) if key[0] == "token" else (1, many)
        if key[0] == "trans":
            index, shape = (member[:, None] * few + member).ravel(), (1, many, many)
        constant = not factor.timed and key[0] in FAMILY
        return FactorBlock(factor, key, (1, *shape) if constant else shape, index, levels)

    def _factor(self, levels: tuple[str, ...]) -> tuple[Ints, Topology]:
        """The state of a factor in each combination (P,), and the flat topology of its states."""
        which = [self.levels_.level(level) for level in levels]
        if 0 in which:
            raise ValueError("a factor names 'root', which all levels share; expected a level below it")
        sizes = [self.levels_.n_states[d] for d in which]
        member = np.ravel_multi_index([self.combinations_[:, d - 1] for d in which], sizes).astype(np.int64)
        table = np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)
        return member, flat_topology(" & ".join(levels), self.levels_, table, which)

    def _place(self, block: Block, place: tuple[int, ...]) -> tuple[str, str, str]:
        assert isinstance(block, FactorBlock)
        part = block.key[0] if len(block.levels) == 1 else "pair"
        names = self._factor(block.levels)[1].states[1]
        if part in FAMILY:
            place = place[1:]  # the first is the root
        return " & ".join(block.levels), part, " > ".join(names[s] for s in place)

    # the doors

    def _decode(self, plan: Plan, values: dict[Any, Floats], loss: str) -> list[Labels]:
        return [self._separate(labels) for labels in super()._decode(plan, values, loss)]

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

    def score(self, X: Sequence[Any], Y: Sequence[Any]) -> float:
        """Fraction of time steps with the right label at every level at once; unknown steps are left out."""
        check_lengths(X, Y)
        self._check_fitted()
        return metrics.joint_accuracy([self._by_level(y, n, "Y") for n, y in enumerate(Y)], self.predict(X))

    def learned_topology(self, threshold: float = 0.0) -> Topology:
        """There is none: the levels of this model do not nest."""
        raise ValueError("the levels of a DynamicCRF do not nest, so there is no topology to learn")

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = super()._content()
        return {**header, "levels": self.levels_.to_dict()}, {**arrays, "combinations": self.combinations_}

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, Any], functions: Mapping[str, Any]) -> None:
        super()._restore(header, arrays, functions)
        self.topology = self.levels_ = Topology.from_dict(header["levels"])
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
    names = [
        " & ".join(levels.states[d][s].replace("\\", "\\\\").replace("&", "\\&") for d, s in zip(columns, row))  # noqa: B905
        for row in table.tolist()
    ]
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
    """Emission of a row of numbers, independent normal given the state."""

    mean: Floats  # (S, F)
    variance: Floats  # (S, F)


class HHMM(HSCRF):
    """Hierarchical hidden Markov model with shared states (Fine, Singer and Tishby 1998; Bui, Phung and Venkatesh 2004).

    A parent s starts its first child u with probability ``init_[level][s, u]``; when a child u ends, the parent goes
    on to v with ``trans_[level][s, u, v]`` or ends with ``end_[level][s, u]``, which sum to one. States of the bottom
    level live one step and emit a symbol or a row of numbers. The root ends with the sequence, whose length is given:
    one level is then an ordinary HMM. With ``root_ends`` the root ends by chance as the other levels do, and the
    model is a distribution over sequences of all lengths. A root of several classes has the probabilities ``root_``.

    Parameters
    ----------
    topology : as in HSCRF; needed if a level has no labels at all. Durations cannot be limited.
    emission : "categorical" (X holds lists of symbols) or "gaussian" (2-D arrays); None looks at X.
    smoothing : added to each count of an event (Laplace); the likelihood is then that with the Dirichlet prior.
    root_ends : see above.
    max_iter, tol : EM stops after so many steps, or when the objective per time step gains less than tol.
    min_variance : no variance of a Gaussian falls below, in units of the data.
    scheme, n_jobs, random_state, warm_start : as in HSCRF; a warm start goes on from the present parameters.

    Complete labels are counted; otherwise EM starts from what is known of them and from chance. ``coef_`` are the
    logarithms of the probabilities: the model is an HSCRF with these weights, so every other method is HSCRF's.

    >>> X = [["a", "a", "b", "c"], ["a", "b", "c"]]
    >>> Y = [{"phrase": ["P", "P", "P", "Q"], "tag": ["x", "x", "y", "z"]}, {"phrase": ["P", "P", "Q"]}]
    >>> model = HHMM(smoothing=0.01, random_state=0).fit(X, Y)
    >>> model.predict([["a", "b", "b", "c"]])[0].tree()
    [('P', ['x', 'y', 'y']), ('Q', ['z'])]
    """

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

    features = None

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
        model = cls(topology, root_ends="root" in end, **arguments)
        check_generative(topology)
        model.topology_ = topology
        model.encoder_ = encoder_for(emission)
        model.blocks_ = model._new_blocks()
        tables = {
            (part, topology.level(level)): table
            for part, of in (("init", init), ("trans", trans), ("end", end))
            for level, table in of.items()
        }
        if root is not None:
            tables["start", 0] = root
        model.coef_ = np.concatenate([model._log_weights(block, tables, emission) for block in model.blocks_])
        check_normalised(model)
        model.loss_, model.converged_, model.n_iter_ = float("nan"), False, 0
        model.stop_reason_, model.history_ = "parameters were given", []
        return model

    def _log_weights(self, block: Block, tables: Mapping[Key, Any], emission: Categorical | Gaussian) -> Floats:
        """The weights of one block from probabilities."""
        if block.key[0] == "token":
            if isinstance(emission, Categorical):
                return log(np.asarray(emission.probability, dtype=np.float64)).T.ravel()
            shape = (self.topology_.n_states[-1], len(self.encoder_.columns))
            mean, variance = (np.broadcast_to(table, shape) for table in (emission.mean, emission.variance))
            return natural_parameters(self.encoder_, mean.T - self.encoder_.mean[:, None], variance.T)
        if block.key not in tables:
            raise ValueError(f"{block.key[0]}[{self.topology_.levels[block.key[1]]!r}] is missing")
        table = np.asarray(tables[block.key], dtype=np.float64)
        cells = constant_of(block)
        if table.shape != cells.shape[1:]:
            level = self.topology_.levels[block.key[1]]
            raise ValueError(f"{block.key[0]}[{level!r}] has shape {table.shape}, expected {cells.shape[1:]}")
        return log(table.ravel()[cells.cells])

    # -- learning

    def fit(self: Self, X: Sequence[Any], Y: Sequence[Any] | None = None) -> Self:  # type: ignore[override]
        """Learn from sequences X and their labels Y: complete, partial, or none at all.

        ``history_`` holds the log-likelihood, and the objective with its prior, of every step.
        """
        going_on = self.warm_start and hasattr(self, "coef_")
        encoder = self.encoder_ if going_on else EmissionEncoder(self.emission)
        seen = encoder.pack(X) if going_on else encoder.fit_pack(X)
        if not going_on:
            self.topology_ = self._known_topology() if Y is None else self._encode_labels(Y)[0]
            check_generative(self.topology_)
            self.encoder_ = encoder
            self.blocks_ = self._new_blocks()
        labels = None if Y is None else self._evidence(Y, seen)
        scorer = Scorer(self.topology_, self.blocks_, seen)
        workers = Workers(self.n_jobs)
        try:
            step = Expectation(scorer, labels, workers)
            weights = self.coef_ if going_on else self._start(scorer, labels)
            complete = labels is not None and all(y.is_complete for y in labels)
            self._climb(step, weights, 1 if complete else self.max_iter)
        finally:
            workers.close()
        return self

    def _known_topology(self) -> Topology:
        if self.topology is None:
            raise ValueError("there are no labels, so the states are unknown: give a topology")
        return self.topology

    def _new_blocks(self) -> list[Block]:
        """A block for each table of probabilities, all that the topology allows, and one for the emission."""
        topology = self.topology_
        bottom = topology.depth - 1
        blocks: list[Block] = []
        if topology.n_states[0] > 1:
            every = np.arange(topology.n_states[0])
            constant = ConstantBlock(("start", 0), (1, every.size), every)
            blocks.append(FactorBlock(constant, ("start", 0), (every.size,), every, ("root",)))
        for d in range(bottom):
            for part in FAMILY:
                if part != "end" or d > 0 or self.root_ends:
                    cells, shape = family_cells(topology, (part, d))
                    blocks.append(ConstantBlock((part, d), (1, *shape), cells))
        return [*blocks, emission_block(self.encoder_, topology)]

    def _climb(self, step: Expectation, weights: Floats, max_iter: int) -> None:
        """EM: never lowers the objective; Ctrl-C keeps the parameters so far."""
        self.history_: list[dict[str, Any]] = []
        self.converged_, self.stop_reason_ = False, f"max_iter={self.max_iter} steps done"
        try:
            for iteration in range(max_iter + 1):
                log_likelihood, statistics = step(weights)
                objective = log_likelihood + self._log_prior(weights)
                self.coef_, self.loss_, self.n_iter_ = weights, -objective, iteration
                self.history_.append({"iteration": iteration, "log_likelihood": log_likelihood, "objective": objective})
                if iteration and objective - self.history_[-2]["objective"] < self.tol * step.steps:
                    self.converged_ = True
                    self.stop_reason_ = f"the objective gained less than tol={self.tol:g} per time step"
                    break
                if iteration < max_iter:
                    weights = self._maximise(statistics, weights)
        except KeyboardInterrupt:
            self.stop_reason_ = "interrupted"
        if step.complete:
            self.converged_, self.stop_reason_ = True, "the labels are complete"

    def _log_prior(self, weights: Floats) -> float:
        """Log density of the Dirichlet priors, up to a constant."""
        if not self.smoothing:
            return 0.0
        return self.smoothing * sum(
            float(w.sum())
            for block, w in self._pieces(weights)
            if block.key[0] != "token" or isinstance(block, PairBlock)
        )

    def _pieces(self, flat: Floats) -> list[tuple[Block, Floats]]:
        bounds = np.cumsum([0, *(block.size for block in self.blocks_)])
        return [(block, flat[a:b]) for block, a, b in zip(self.blocks_, bounds[:-1], bounds[1:])]  # noqa: B905

    def _maximise(self, statistics: Floats, former: Floats) -> Floats:
        """The M step: the most likely parameters for expected counts; what was never met keeps its former value."""
        counts = {
            block.key: dense(block, piece + self.smoothing)
            for block, piece in self._pieces(statistics)
            if block.key[0] != "token"
        }
        before = {
            block.key: dense(block, np.exp(piece)) for block, piece in self._pieces(former) if block.key[0] != "token"
        }
        found = {key: proportions(counts[key], before[key]) for key in counts if key[0] in ("start", "init")}
        for d in range(self.topology_.depth - 1):
            trans, end = ("trans", d), ("end", d)
            if end not in counts:  # the root does not end by chance
                found[trans] = proportions(counts[trans], before[trans])
                continue
            events, past = (np.concatenate([of[trans], of[end][..., None]], axis=-1) for of in (counts, before))
            shares = proportions(events, past)
            found[trans], found[end] = shares[..., :-1], shares[..., -1]
        weights = former.copy()
        for (block, piece), (_, moments) in zip(self._pieces(weights), self._pieces(statistics)):  # noqa: B905
            if block.key[0] != "token":
                piece[:] = log(found[block.key].ravel()[constant_of(block).cells])
            elif isinstance(block, MomentBlock):
                self._fit_gaussian(block, moments, piece)
            else:
                table = (moments + self.smoothing).reshape(-1, self.topology_.n_states[-1])
                piece[:] = log(proportions(table.T, np.exp(piece).reshape(table.shape).T).T).ravel()
        return weights

    def _fit_gaussian(self, block: MomentBlock, moments: Floats, weights: Floats) -> None:
        """Mean and variance of each state, in place of the former weights if anything was seen of it."""
        linear, square, count = block.split(moments)
        seen = count > 0
        mean = linear[:, seen] / count[seen]
        variance = square[:, seen] / count[seen] - mean**2
        scale = self.encoder_.scale[:, None]
        variance = np.maximum(variance * scale**2, self.min_variance)
        weights.reshape(-1, count.size)[:, seen] = natural_parameters(self.encoder_, mean * scale, variance).reshape(
            -1, int(seen.sum())
        )

    def _start(self, scorer: Scorer, labels: Sequence[Labels] | None) -> Floats:
        """Parameters to begin with: the labels that are known, and chance where there are none."""
        even = self._maximise(np.ones(scorer.size), np.zeros(scorer.size))
        if labels is not None and all(y.is_complete for y in labels):
            return even
        rng = np.random.default_rng(as_seed(self.random_state))
        statistics = rng.exponential(size=scorer.size)
        token = self._pieces(statistics)[-1][1]
        if isinstance(self.blocks_[-1], MomentBlock):
            token[:] = scattered_moments(of_columns(scorer.seen), self.topology_.n_states[-1], rng)
        else:
            met = np.bincount(sparse_of(scorer.seen).indices, minlength=len(self.encoder_.names))
            token.reshape(met.size, -1)[:] *= (met / met.mean())[:, None]
        if labels is not None:
            scorer.pull(known_counts(scorer, pack_labels(labels)), np.arange(scorer.seen.steps), statistics)
        return self._maximise(statistics, even)

    # -- doors of a generative model

    def log_likelihood(self, X: Sequence[Any], Y: Sequence[Any] | None = None) -> Floats:
        """Log probability of the observations of each sequence (n,), together with the labels if they are given."""
        self._check_fitted()
        return np.concatenate(self._chunks(X, Y, lambda plan, values: plan.log_partition(values)))

    def generate(
        self, n: int = 1, length: int | None = None, random_state: Any = None
    ) -> tuple[list[Any], list[Labels]]:
        """Draw n new sequences and their labels from the model.

        Without ``root_ends``, a sequence stops as soon as it has ``length`` steps and all levels below the root end:
        with one level after ``length`` steps, with more perhaps a little later.
        """
        self._check_fitted()
        if (length is None) != self.root_ends:
            told = "the root ends by chance, so give no length" if self.root_ends else "give the length"
            raise ValueError(f"length is {length}, but root_ends is {self.root_ends}: {told}")
        rng = np.random.default_rng(as_seed(random_state))
        Y = [self._walk(rng, length) for _ in range(n)]
        return [self._emit(rng, y.states[-1]) for y in Y], Y

    def _walk(self, rng: np.random.Generator, length: int | None) -> Labels:
        """Labels of one new sequence, from the top down and from left to right."""
        depth = self.topology_.depth
        init, goes_on = self._tables
        stack = [pick(rng, self.root_), *([0] * (depth - 1))]
        states, ends = [], []
        level = 0  # the lowest that goes on
        while level >= 0:
            for d in range(level, depth - 1):  # parents above start their first children
                if d > level or not states:
                    stack[d + 1] = pick(rng, init[d][stack[d]])
            states.append(list(stack))
            for level in range(depth - 2, -2, -1):  # noqa: B007
                if level < 0 or (level == 0 and length is not None and len(states) >= length):
                    level = -1
                    break
                events = goes_on[level][stack[level], stack[level + 1]]
                child = pick(rng, events) if events.sum() > 0 else -1
                if 0 <= child < self.topology_.n_states[level + 1]:
                    stack[level + 1] = child
                    break
            ends.append([int(d > level) for d in range(depth)])
        return Labels(self.topology_, np.array(states).T, np.array(ends).T)

    @cached_property
    def _tables(self) -> tuple[list[Floats], list[Floats]]:
        raise NotImplementedError

    def _emit(self, rng: np.random.Generator, states: NDArray[np.int32]) -> Any:
        emission = self.emission_
        if isinstance(emission, Gaussian):
            return rng.normal(emission.mean[states], np.sqrt(emission.variance[states]))
        return [emission.symbols[pick(rng, emission.probability[s])] for s in states.tolist()]
