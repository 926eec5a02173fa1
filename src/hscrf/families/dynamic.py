"""Dynamic conditional random field: several labels for each time step, at levels that do not nest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.engine.plan import Plan
from hscrf.errors import Cell, InfeasibleError
from hscrf.estimator.checks import check_lengths, check_steps
from hscrf.estimator.hscrf import HSCRF
from hscrf.families.factors import FactorBlock, Pair
from hscrf.features.blocks import Block, ConstantBlock
from hscrf.features.fitting import fit_block
from hscrf.features.specifications import PART, End, Init, Token, Trans
from hscrf.inference.verbs import Marginals
from hscrf.labels.labels import Labels
from hscrf.labels.packed import Known, pack_labels
from hscrf.observations.encoder import Encoder
from hscrf.observations.packed import Observations
from hscrf.potentials import FAMILY
from hscrf.topology import Topology


class DynamicCRF(HSCRF):
    """Dynamic (factorial) conditional random field: several labels for each time step, at levels that do not nest.

    The labels of a sequence are a dict from level to a list of labels, ``"?"`` where unknown. Inference is exact, on
    the combinations of labels: ``combinations="seen"`` takes those of training if no label is missing there,
    ``"all"`` all that the ``children`` of the ``topology``, if one is given, allow; its ``successors`` say which labels
    of a level may follow each other from step to step. A step costs their number squared.
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
            cells = [Cell(level, t, f"is {name!r}") for level, name in told.items() if name != "?"]
            problem = f"no combination that the model knows agrees with {told} at {t}"
            raise InfeasibleError(problem, cells=cells).of_sequence(n, what)
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
    follows = np.ones((len(table), len(table)), dtype=bool)
    for d, member in zip(columns, table.T, strict=True):
        follows &= levels.successors[d][np.ix_(member, member)]
    after = {one: [names[q] for q in np.flatnonzero(row)] for one, row in zip(names, follows, strict=True)}
    return Topology({name: names}, successors=None if follows.all() else {name: after})


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
