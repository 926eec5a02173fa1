"""Labels of levels that do not nest, as labels of one level whose states are their combinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.errors import Cell, InfeasibleError, LabelError, SequenceError, a_type
from hscrf.families.factors import FactorBlock
from hscrf.features.blocks import Block, ConstantBlock
from hscrf.features.occurrences import Occurrences
from hscrf.features.specifications import Specification
from hscrf.hierarchy import in_order
from hscrf.labels.given import is_unknown
from hscrf.labels.labels import Labels
from hscrf.labels.packed import PackedLabels, pack_labels
from hscrf.labels.reading import over
from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.packed import Observations
from hscrf.potentials import FAMILY
from hscrf.topology import Topology


class CombinationStatistics:
    """The statistics of labels for a DynamicCRF: the states of each level, and those that occur together.

    Parts may be given one after the other, or to several objects that are then merged.
    """

    def __init__(self, given: Topology | None, combinations: str) -> None:
        self.given = given
        self.combinations = combinations
        self.states: dict[str, set[str]] = {}  # names by level
        self.together: set[tuple[str, ...]] = set()  # names of the states of one step
        self.complete = True  # no label is missing

    def update(self, Y: Sequence[Any], lengths: Sequence[int], offset: int = 0) -> list[Labels]:
        """Add the labels of a part of the data; return them by level, each segment of one step."""
        if self.given is None and not self.states and len(Y) and isinstance(Y[0], Labels):
            self.given = Y[0].topology
        if self.given is None:
            for n, y in enumerate(Y, start=offset):
                self._collect(y, n)
        levels = self.levels(noted="unseen")
        labels = [
            labels_by_level(levels, y, n, length, "Y")
            for n, (y, length) in enumerate(zip(Y, lengths, strict=True), offset)
        ]
        states = np.concatenate([y.states[1:] for y in labels], axis=1).T  # (N, levels)
        self.complete &= bool((states >= 0).all())
        if self.complete:
            names = levels.states[1:]
            self.together |= {
                tuple(of[s] for of, s in zip(names, row, strict=True)) for row in np.unique(states, axis=0).tolist()
            }
        return labels

    def _collect(self, y: Any, n: int) -> None:
        """Collect the names of levels and states of one sequence."""
        if not isinstance(y, Mapping):
            raise ValueError(f"Y[{n}] is {a_type(y)}, expected a dict from level to a list of labels")
        first = not self.states
        for level, column in y.items():
            if level not in self.states and not first:
                known = ", ".join(map(repr, self.states))
                raise ValueError(f"Y[{n}] has a level {level!r}, but the first sequence has only {known}")
            self.states.setdefault(level, set()).update(tag for tag in column if not is_unknown(tag))

    def merge(self, other: CombinationStatistics) -> CombinationStatistics:
        """Add the statistics of another object from later parts, and return this one."""
        if not self.states and self.given is None:
            self.given, self.states = other.given, {level: set() for level in other.states}
        if self.given != other.given or (self.states.keys() != other.states.keys() and other.states):
            raise ValueError("parts of the labels have different levels or topologies, expected the same in all")
        for level, names in other.states.items():
            self.states[level] |= names
        self.together |= other.together
        self.complete &= other.complete
        return self

    def levels(self, noted: str | None = None) -> Topology:
        """The topology of the levels; a level without known labels has the state ``noted``; None raises an error."""
        if self.given is not None:
            return self.given
        for level, states in self.states.items():
            if not states and noted is None:
                raise ValueError(f"level {level!r} has no known label, so its states are unknown: give a topology")
        return Topology({level: in_order(states) or [str(noted)] for level, states in self.states.items()})

    def table(self) -> Ints:
        """The combinations (P, levels): those that occur, or all legal ones if "all" is set or labels are missing."""
        levels = self.levels()
        if self.combinations != "seen" or not self.complete:
            return legal_combinations(levels)
        rows = [[levels.state(d, name) for d, name in enumerate(names, start=1)] for names in self.together]
        return np.array(sorted(rows), dtype=np.int64)

    def topology(self) -> Topology:
        """One level whose states are the combinations."""
        return flat_topology("combination", self.levels(), self.table())

    def memory(self) -> dict[str, Any]:
        """The learned statistics as JSON, for :meth:`recall`."""
        return {"levels": self.levels().to_json(), "table": self.table().tolist(), "complete": self.complete}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Take over the levels and combinations that another object has learned."""
        self.given, self.complete = Topology.from_dict(memory["levels"]), memory["complete"]
        names = self.given.states[1:]
        self.together = {tuple(of[s] for of, s in zip(names, row, strict=True)) for row in memory["table"]}

    def over(self, labels: Sequence[Labels], topology: Topology) -> list[Labels]:
        """Labels of combinations from the labels by level that ``update`` returned."""
        levels, table = self.levels(), self.table()
        moved = labels if self.given is not None else over(labels, levels)
        return [combined(levels, table, topology, y, n, "Y") for n, y in enumerate(moved)]


class FactorFeatures:
    """The pairs of features and states of each factor of a DynamicCRF, over the flat topology of the factor."""

    def __init__(
        self,
        specifications: Sequence[Specification],
        levels: Topology,
        table: Ints,
        encoder: ObservationEncoder,
        pairs: str,
        transitions: str,
    ) -> None:
        self.specifications = specifications
        self.factors = []
        for spec in specifications:
            if spec.needs_limit:
                raise ValueError(f"{spec} averages over segments, but here every segment has one step")
            member, topology = factor_of(levels, table, spec.levels)
            own = replace(spec, level="root" if spec.part in FAMILY else topology.levels[1])
            self.factors.append((member, own, Occurrences(topology, encoder, [own], pairs, transitions)))

    def update(self, observations: Observations, labels: Sequence[Labels]) -> None:
        """Add one more part of the data."""
        for member, _, occurrences in self.factors:
            occurrences.update(observations, factor_labels(labels, member))

    def sizes(self) -> dict[str, float]:
        """Empty: every segment has one step."""
        return {}

    def blocks(self) -> list[Block]:
        """The block of each factor, spread over the combinations."""
        return [
            spread_factor(own.fit(occurrences), own, member, occurrences.topology, spec.levels)
            for spec, (member, own, occurrences) in zip(self.specifications, self.factors, strict=True)
        ]


def spread_factor(
    factor: Block, own: Specification, member: Ints, topology: Topology, levels: tuple[str, ...]
) -> FactorBlock:
    """A factor's block, fitted over its own flat topology, over all combinations."""
    part, d = own.key(topology)
    if isinstance(factor, ConstantBlock) and part == "token":  # states without a combination need no weight
        factor = replace(factor, cells=np.intersect1d(factor.cells, member))
    shape: tuple[int, ...] = (member.size,) if part == "token" else (1, member.size)
    if part == "trans":
        shape = (1, member.size, member.size)
        member = (member[:, None] * topology.n_states[1] + member).ravel()
    shape = (1, *shape) if not factor.timed and part in FAMILY else shape
    return FactorBlock(factor, (part, d), shape, member, levels, topology.states[1])


def factor_of(levels: Topology, table: Ints, names: tuple[str, ...]) -> tuple[Ints, Topology]:
    """The state of a factor in each combination (P,), and the flat topology of its states."""
    which = [levels.level(level) for level in names]
    if 0 in which:
        raise ValueError("a factor names 'root', which all levels share; expected a level below it")
    sizes = [levels.n_states[d] for d in which]
    member = np.ravel_multi_index([table[:, d - 1] for d in which], sizes).astype(np.int64)
    states = np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)
    return member, flat_topology(" & ".join(names), levels, states, which)


def labels_by_level(levels: Topology, y: Any, n: int, length: int, name: str) -> Labels:
    """Labels of every level of one sequence, each segment of one step; errors name the sequence."""
    try:
        return step_labels(levels, y, length)
    except SequenceError as error:
        raise error.of_sequence(n, name) from None
    except (ValueError, TypeError) as error:
        raise LabelError(str(error)).of_sequence(n, name) from None


def combined(levels: Topology, table: Ints, topology: Topology, y: Labels, n: int, name: str) -> Labels:
    """Which combinations agree with the labels of every level of one sequence."""
    agree = np.ones((y.length, len(table)), dtype=bool)
    for d, level in enumerate(levels.levels[1:], start=1):
        member = table[:, d - 1]
        agree &= (y.states[d] < 0)[:, None] | (y.states[d][:, None] == member)
        if y.allowed and level in y.allowed:
            agree &= y.allowed[level][:, member]
    found = agree.sum(axis=1)
    if not found.all():
        t = int(found.argmin())
        told = {level: y.column(level)[t] for level in levels.levels[1:]}
        cells = [Cell(level, t, f"is {state!r}") for level, state in told.items() if state != "?"]
        problem = f"no combination of the model agrees with {told} at {t}"
        raise InfeasibleError(problem, cells=cells).of_sequence(n, name)
    states, ends = one_step_rows(y.length, 2)
    states[1] = np.where(found == 1, agree.argmax(axis=1), -1)
    return Labels(topology, states, ends, None if (found == 1).all() else {topology.levels[1]: agree})


def one_step_rows(length: int, depth: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """States and ends (depth, T) of a root of one state over segments of one step, whose states are unknown."""
    states, ends = np.full((depth, length), -1, dtype=np.int32), np.ones((depth, length), dtype=np.int8)
    states[0], ends[0, :-1] = 0, 0
    return states, ends


def step_labels(topology: Topology, y: Any, length: int) -> Labels:
    """Labels in which every segment has one step, from a dict of columns; empty and missing levels are unknown."""
    if y is None:
        return Labels(topology, *one_step_rows(length, topology.depth))
    if isinstance(y, Labels):
        if y.topology != topology:
            raise ValueError(f"labels are of {y.topology}, but the model has {topology}")
        if (y.ends[1:] == 0).any():
            raise ValueError("labels have segments of several steps, but here every segment has one step")
        return y
    if not isinstance(y, Mapping):
        raise ValueError(f"labels are {a_type(y)}, expected a dict from level to a list of labels")
    columns = {topology.level(level): column for level, column in y.items() if len(column)}
    if len(set(map(len, columns.values()))) != 1:
        raise ValueError(f"levels differ in length: { {level: len(column) for level, column in y.items()} }")
    states, ends = one_step_rows(len(next(iter(columns.values()))), topology.depth)
    for d, column in columns.items():
        codes: dict[Any, int] = {}
        for t, tag in enumerate(column):
            if tag not in codes:
                codes[tag] = -1 if is_unknown(tag) else state_at(topology, d, tag, t)
        states[d] = [codes[tag] for tag in column]
    return Labels(topology, states, ends)


def in_steps(labels: Labels) -> Labels:
    """The same labels, each segment of one step."""
    return replace(labels, ends=one_step_rows(labels.length, labels.topology.depth)[1])


def state_at(topology: Topology, d: int, tag: Any, t: int) -> int:
    """The number of a state; an unknown one is a LabelError that has its level and step."""
    try:
        return topology.state(d, tag)
    except ValueError as error:
        raise LabelError(str(error), level=topology.levels[d], step=t) from None


def legal_combinations(levels: Topology) -> Ints:
    """All combinations (P, levels) in which each state may be a child of the state above it."""
    table = np.arange(levels.n_states[1])[:, None]
    for d in range(1, levels.depth - 1):
        row, child = np.nonzero(levels.children[d][table[:, -1]])
        table = np.column_stack([table[row], child])
    return table.astype(np.int64)


def flat_topology(name: str, levels: Topology, table: Ints, which: Sequence[int] | None = None) -> Topology:
    """One level whose states are combinations (P, K) of the states of some levels, joined by ``&``."""
    columns = range(1, levels.depth) if which is None else which
    escaped = [[str(state).replace("\\", r"\\").replace("&", r"\&") for state in levels.states[d]] for d in columns]
    names = [" & ".join(of[s] for of, s in zip(escaped, row, strict=True)) for row in table.tolist()]
    follows = np.ones((len(table), len(table)), dtype=bool)
    for d, member in zip(columns, table.T, strict=True):
        follows &= levels.successors[d][np.ix_(member, member)]
    after = {one: [names[q] for q in np.flatnonzero(row)] for one, row in zip(names, follows, strict=True)}
    return Topology({name: names}, successors=None if follows.all() else {name: after})


def factor_labels(labels: Sequence[Labels], member: Ints) -> PackedLabels:
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
    return PackedLabels(rows, packed.ends, packed.offsets)
