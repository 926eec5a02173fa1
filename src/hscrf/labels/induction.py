"""Learn a topology from labels: the states, the children of each state, the longest durations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import LabelError
from hscrf.hierarchy import Hierarchy, in_order
from hscrf.labels.cells import WITH_PARENT
from hscrf.labels.columns import Scheme
from hscrf.labels.given import given_labels, steps_of
from hscrf.labels.labels import Labels
from hscrf.labels.packed import PackedLabels, known_lengths, pack_labels
from hscrf.labels.reading import by_level, is_segments, over, read_many
from hscrf.labels.schemes import scheme_of, schemes_in
from hscrf.topology import Topology

Pairs = dict[str, Counter[tuple[Any, str]]]  # by the parent's level: how many runs have this (parent, child)
CHILDREN = ("auto", "seen", "all")
ENOUGH = 20  # known children count as all from 20 runs on, if at most 1 run in 20 is of a child seen only once
LONG = 100  # steps: a level with longer segments gets open durations, if they are enabled
SHARE = 0.75  # share of the segments of an opened level whose durations are explicit
LEAST = 50  # steps: explicit durations reach at least to this length


def learn_topology(Y: Any, scheme: Scheme = "auto") -> Topology:
    """Learn the topology that ``fit`` would learn from labels.

    Parameters
    ----------
    Y : sequences of labels
        As ``fit`` takes them.
    scheme : str or dict
        "plain", "bio" or "bioes", for all levels or as a dict by level. "auto" looks at the labels.

    Returns
    -------
    Topology
        The states of all levels, and the children of each parent if no label is missing.

    Examples
    --------
    >>> learn_topology([{"phrase": ["B-NP", "I-NP", "O"], "tag": ["D", "N", "V"]}])
    Topology(root 1 > phrase 2 > tag 3)
    """
    given = given_labels(Y)
    statistics = LabelStatistics(None, schemes_in(given, scheme))
    statistics.update(given, [steps_of(y) for y in given])
    return statistics.topology()


def explicit_duration(lengths: Mapping[int, int]) -> int:
    """The longest explicit duration L of an opened level, from the number of segments of each length.

    The length that 3 in 4 segments do not exceed, at least 50 steps.

    >>> explicit_duration({20: 5, 130: 4, 600: 1})
    130
    """
    enough, seen = SHARE * sum(lengths.values()), 0
    for length in sorted(lengths):
        seen += lengths[length]
        if seen >= enough:
            return max(length, LEAST)
    return LEAST


def encode_labels(
    Y: Sequence[Any],
    lengths: Sequence[int],
    topology: Topology | None,
    scheme: Scheme,
    limited: Collection[str] = (),
    children: str = "auto",
) -> tuple[Topology, list[Labels]]:
    """Labels of all sequences over one topology: the given one, that of the Labels in Y, or one learned from Y.

    ``limited`` names the levels that need a longest duration, ``children`` is the rule of :class:`LabelStatistics`.
    """
    statistics = LabelStatistics(topology, scheme, limited, children=children)
    labels = statistics.update(Y, lengths)
    topology = statistics.topology()
    return topology, statistics.over(labels, topology)


@dataclass
class LabelStatistics:
    """The statistics of labels that a topology is learned from: states, classes, children and durations.

    The labels may come in parts: one after the other to :meth:`update` of one object, or to several objects, perhaps
    in several processes, which are then merged. Order and grouping do not change the result: every field and
    :meth:`topology` are the same as after one update with all the labels.

    All parts must have the same levels. These are ``levels``, or else the levels of the first sequence. So an object
    whose first sequence may lack a level needs ``levels``. ``given`` is a fixed topology: none is learned. Labels
    bring their topology; if they are mixed with columns or segments, all parts need it as ``given``. ``limited`` names
    the levels that need a longest duration.

    ``children`` selects the children that a parent may have:

    - ``"all"``: every state of the next level.
    - ``"seen"``: those that occur below it, where both labels are known.
    - ``"auto"`` (default): as "seen" where no label of the two levels is missing. Where labels are missing, parents
      with enough known children are as "seen", the others as "all".

    A parent has enough known children if they form at least 20 runs, and if at most 5 % of these runs have a pair of
    parent and child that occurs only once. The runs below all parents of a level are counted together first. If these
    are not enough, each parent needs enough runs of its own.

    With "seen" and "auto", a parent without any known child may have every child, and a state that is never seen below
    a known parent may be below every parent.

    >>> one, other = LabelStatistics(), LabelStatistics()
    >>> first = one.update([{"phrase": ["NP", "NP"], "tag": ["D", "N"]}], [2])
    >>> second = other.update([{"phrase": ["VP"], "tag": ["V"]}], [1], offset=1)
    >>> topology = one.merge(other).topology()
    >>> topology
    Topology(root 1 > phrase 2 > tag 3)
    >>> topology.children[1].astype(int).tolist()
    [[1, 1, 0], [0, 0, 1]]
    >>> over(second, topology)[0].tree()
    [('VP', ['V'])]
    """

    given: Topology | None = None
    scheme: Scheme = "plain"
    limited: Collection[str] = ()
    levels: Sequence[str] | None = None  # below the root, from top to bottom
    children: str = "auto"  # one of CHILDREN
    opened: Collection[str] = ()  # limited levels that get open durations where segments are long

    first: int | None = field(default=None, init=False)  # lowest number of the sequences noted
    states: dict[str, set[str]] = field(default_factory=dict, init=False)  # names by level
    classes: set[str] = field(default_factory=set, init=False)  # names of the root's states
    classless: bool = field(default=False, init=False)  # whether the class of some sequence is unknown
    persists: bool = field(default=False, init=False)  # whether segments of the bottom may have several steps
    missing: set[str] = field(default_factory=set, init=False)  # levels below the root with an unknown state
    families: Pairs = field(default_factory=dict, init=False)  # by the parent's level; a class may be None, unknown
    durations: dict[str, Counter[int]] = field(default_factory=dict, init=False)  # known ones, by limited level
    unmeasured: set[str] = field(default_factory=set, init=False)  # limited levels with an unknown end

    def __post_init__(self) -> None:
        self.limited, self.opened = frozenset(self.limited), frozenset(self.opened)
        self.levels = None if self.levels is None else tuple(self.levels)
        if self.children not in CHILDREN:
            raise ValueError(f"children is {self.children!r}, expected 'auto', 'seen' or 'all'")

    def update(self, Y: Sequence[Any], lengths: Sequence[int], offset: int = 0) -> list[Labels]:
        """Add the labels of a part of the data to the statistics, and return them as Labels.

        They are over a topology without rules, with the states found so far; :func:`over` puts them over the final one.
        Errors call the first sequence ``Y[offset]``.
        """
        if len(Y) == 0:
            return []
        topology = self.collect(Y, offset)
        labels = read_many(Y, lengths, topology, self.scheme, offset=offset)
        self.note(labels)
        return labels

    def collect(self, Y: Sequence[Any], offset: int = 0) -> Topology:
        """Collect the names of levels, states and classes, and return a topology to read these labels over.

        A caller with a reader of its own calls this, reads the labels, and passes them to :meth:`note`.
        """
        if self.given is None and self.first is None and isinstance(Y[0], Labels):
            self.given = Y[0].topology
        if self.given is not None:
            return self.given
        for n, y in enumerate(Y, start=offset):
            if y is None:
                problem = "there are no labels; expected those of each sequence, or a topology to read them over"
                raise LabelError(problem).of_sequence(n)
            if self.first is None:
                self._begin(y, n)
            self._collect(y, n)
        self.first = offset if self.first is None else min(self.first, offset)
        return self._reading_topology()

    def note(self, labels: Sequence[Labels]) -> None:
        """Add labels that were read over the topology of :meth:`collect` to the statistics."""
        if self.given is not None or not labels:
            return
        known, topology = pack_labels(labels), labels[0].topology
        self.classless |= not self.classes or bool((known.states[0] < 0).any())
        self.missing |= {level for level, row in zip(topology.levels, known.states, strict=True) if (row < 0).any()}
        self.missing.discard("root")
        self._note_children(topology, known)
        self._note_durations(topology, known)

    def merge(self, other: LabelStatistics) -> LabelStatistics:
        """Add the statistics of another object, and return this one; the other stays unchanged."""
        if any(getattr(self, name) != getattr(other, name) for name in ("scheme", "limited", "children", "opened")):
            raise ValueError("label statistics with another scheme, other limited levels or children cannot be merged")
        if other.given is None and other.first is None:
            return self
        if self.given is None and self.first is None:
            self.given = other.given
        if self.given != other.given:
            raise ValueError("parts of the labels have different topologies, or only some have one: give one to all")
        if self.given is None:
            self._merge(other)
        return self

    def topology(self) -> Topology:
        """Return the topology of all labels so far.

        States are in the order of their names. The option ``children`` selects the allowed children. A segment of a
        limited level lasts at most as long as its longest segment, unless an end is missing there; an opened one may
        last longer, see :func:`explicit_duration`.
        """
        if self.given is not None:
            return self.given
        if self.first is None:
            raise ValueError("there are no labels, so the states are unknown: give a topology")
        loose = self.loose_topology()
        arguments = loose.to_dict()
        arguments["children"] = {level: self._kids(level, loose) for level in loose.levels[:-1]}
        for level in self._named(self.limited):
            if level not in self.unmeasured:
                arguments["max_duration"][level] = max(self.durations[level], default=0)
        for level in {*self._named(self.opened)} & {loose.levels[-1]}:  # the cost of inference grows with L only
            found = self.durations.get(level, Counter())
            if level not in self.unmeasured and max(found, default=0) > LONG:
                arguments["max_duration"][level] = explicit_duration(found)
                arguments.setdefault("open_duration", {})[level] = True
        return Topology.from_dict(arguments)

    def over(self, labels: Sequence[Labels], topology: Topology) -> list[Labels]:
        """Labels that :meth:`update` returned, over the topology of all the data."""
        return over(labels, topology)

    def memory(self) -> dict[str, Any]:
        """Return the learned statistics as JSON, for :meth:`recall`."""
        return {"topology": self.topology().to_json()}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Take over the topology that another object has learned."""
        self.given = Topology.from_dict(memory["topology"])

    def loose_topology(self) -> Topology:
        """All states of all levels without rules: every parent may have every child."""
        for level in self.levels or ():
            if not self.states[level]:
                raise ValueError(f"level {level!r} has no known label, so its states are unknown: give a topology")
        return self._without_rules(in_order(self.classes))

    def _begin(self, y: Any, n: int) -> None:
        """Take the levels from the first sequence, and let the bottom persist if its scheme or limit needs it."""
        if self.levels is None:
            self.levels = tuple(level for level in by_level(y) if level != "root")
        if not self.levels:
            raise LabelError("there is no level below the root; expected at least one").of_sequence(n)
        self.first = n
        self.states = {level: set() for level in self.levels}
        bottom = self.levels[-1]
        is_limited = bottom in self.limited or len(self.levels) in self.limited
        self.persists = is_limited or scheme_of(self.scheme, bottom) != "plain"

    def _named(self, levels: Collection[Any]) -> list[str]:
        """Names of levels, which may be given by index too, without the root."""
        known = Hierarchy(("root", *(self.levels or ())), ())
        return [known.levels[known.level(level)] for level in levels if known.level(level) > 0]

    def _collect(self, y: Any, n: int) -> None:
        """Collect the names in the labels of one sequence."""
        if isinstance(y, Labels):
            raise ValueError(f"Y[{n}] has {y.topology}, but Y[{self.first}] has none: give a topology")
        columns = by_level(y)
        for level, column in columns.items():
            if level != "root" and level not in self.states:
                known = ", ".join(map(repr, self.states))
                problem = f"Y[{n}] has a level {level!r}, but Y[{self.first}] has only {known}"
                raise ValueError(f"{problem}; expected all levels there, top first, None where a level is unknown")
            try:
                names = names_in_column(column, "plain" if level == "root" else scheme_of(self.scheme, level))
            except (ValueError, TypeError) as error:
                raise LabelError(str(error), level=level).of_sequence(n) from None
            found = self.classes if level == "root" else self.states[level]
            found |= names
        lowest = columns.get(self.levels[-1], ())  # type: ignore[index]
        self.persists |= len(lowest) > 0 and is_segments(lowest)

    def _reading_topology(self) -> Topology:
        """All states found so far, without rules, to read a part over.

        Other parts may name other classes. So if there is only one so far, a second one is added: the class of a
        sequence that names none is then read as unknown, not as that one.
        """
        classes = in_order(self.classes)
        return self._without_rules([*classes, f"not {classes[0]}"] if len(classes) == 1 else classes)

    def _without_rules(self, classes: Sequence[str]) -> Topology:
        for level, names in self.states.items():
            check_distinct_texts(level, names)
        levels = {level: in_order(self.states[level]) or ["unseen"] for level in self.levels or ()}
        lasting = {list(levels)[-1]: None} if self.persists else None
        return Topology(levels, root=classes or None, max_duration=lasting)

    def _note_children(self, topology: Topology, known: PackedLabels) -> None:
        names: list[Any] = [(*states, "?") for states in topology.states]
        names[0] = (*topology.states[0], None) if self.classes else (None, None)
        for d, level in enumerate(topology.levels[:-1]):
            found = count_runs(known.states[d : d + 2], known.offsets, names[d], names[d + 1])
            self.families.setdefault(level, Counter()).update(found)

    def _note_durations(self, topology: Topology, known: PackedLabels) -> None:
        for level in self._named(self.limited):
            ends = known.ends[topology.level(level)]
            if ((ends < 0) & (ends != WITH_PARENT)).any():
                self.unmeasured.add(level)
            found = zip(*np.unique(known_lengths(ends, known.offsets), return_counts=True), strict=True)
            lengths = Counter({int(length): int(n) for length, n in found})
            self.durations.setdefault(level, Counter()).update(lengths)

    def open_parents(self) -> dict[str, list[str]]:
        """The states that may have every child because labels are missing, by level; see ``children``."""
        if self.given is not None or self.children != "auto":
            return {}
        loose = self.loose_topology()
        found = {}
        for d, level in enumerate(loose.levels[:-1]):
            kids = self._kids(level, loose)
            found[level] = [name for name in loose.states[d] if name not in kids] if loose.n_states[d] > 1 else []
        return {level: names for level, names in found.items() if names}

    def _kids(self, level: str, topology: Topology) -> dict[str, list[str]]:
        """The children of each state of a level that may not have all of them; see ``children``."""
        if self.children == "all":
            return {}
        d = topology.level(level)
        own: dict[str, Counter[str]] = {}
        for (parent, child), runs in self.families[level].items():
            if parent is not None:
                own.setdefault(parent, Counter())[child] += runs
            elif len(self.classes) <= 1:  # the root has one state, whether it is named or not
                own.setdefault(topology.states[0][0], Counter())[child] += runs
        lonely = set(topology.states[d + 1]).difference(*own.values())
        unknown = len(self.classes) > 1 and self.classless if d == 0 else level in self.missing
        if self.children == "auto" and (unknown or topology.levels[d + 1] in self.missing):
            every = Counter({(parent, child): n for parent, runs in own.items() for child, n in runs.items()})
            if not shows_enough(every):
                own = {parent: runs for parent, runs in own.items() if shows_enough(runs)}
        return {parent: [*runs, *lonely] for parent, runs in own.items()}

    def _merge(self, other: LabelStatistics) -> None:
        self.levels = other.levels if self.levels is None else self.levels
        if self.levels != other.levels:
            raise ValueError(f"parts of the labels have the levels {self.levels} and {other.levels}; give all the same")
        self.first = min(first for first in (self.first, other.first) if first is not None)
        for level, found in other.states.items():
            self.states.setdefault(level, set()).update(found)
        for level, runs in other.families.items():
            self.families.setdefault(level, Counter()).update(runs)
        self.classes |= other.classes
        self.missing |= other.missing
        self.unmeasured |= other.unmeasured
        for level, lengths in other.durations.items():
            self.durations.setdefault(level, Counter()).update(lengths)
        self.classless |= other.classless
        self.persists |= other.persists


def check_distinct_texts(level: str, names: Collection[Any]) -> None:
    """Refuse different states with the same text, such as 1 and "1"."""
    seen: dict[str, Any] = {}
    for name in names:
        other = seen.setdefault(str(name), name)
        if other != name or type(other) is not type(name):
            told = " and ".join(sorted([repr(other), repr(name)]))
            raise LabelError(f"the labels {told} are written alike: expected one type", level=level)


def names_in_column(column: Any, scheme: str) -> set[str]:
    """Names of the states in a column, in segments, or in the class of a root."""
    if isinstance(column, str):
        return {column}
    if is_segments(column):
        for item in column:
            if len(item) != 3:
                kind = type(item).__name__
                raise ValueError(f"{item!r} is not a segment (start, stop, state), and a state is never a {kind}")
        return {state for _, _, state in column}
    tags = {tag for tag in set(column) if tag is not None and tag != "?" and tag == tag}
    if scheme == "plain":
        return tags
    for tag in tags:
        if not isinstance(tag, str):
            raise ValueError(f"the label {tag!r} is not a string, as {scheme} labels are")
    return {tag.split("-", 1)[-1] for tag in tags}


def shows_enough(runs: Counter[Any]) -> bool:
    """Whether the known children of a parent, or of all parents of a level, are likely complete; see ``ENOUGH``.

    The share of runs that occur only once estimates the probability that the next is of a new kind (Good and Turing).

    >>> shows_enough(Counter(walk=15, sit=6)), shows_enough(Counter(walk=15, run=1)), shows_enough(Counter(walk=9))
    (True, False, False)
    """
    return ENOUGH * max(1, sum(n == 1 for n in runs.values())) <= sum(runs.values())


def count_runs(
    states: NDArray[Any], offsets: NDArray[np.int64], names: Sequence[Any], other_names: Sequence[Any]
) -> Counter[tuple[Any, Any]]:
    """Count the runs of steps with each pair of known states (2, N); the last name of each side is that of -1."""
    begins = np.append(True, (states[:, 1:] != states[:, :-1]).any(axis=0))
    begins[offsets[:-1]] = True
    pairs, counts = np.unique(states[:, begins], axis=1, return_counts=True)
    named = ((names[s], other_names[u]) for s, u in pairs.T.tolist())
    return Counter({pair: n for pair, n in zip(named, counts.tolist(), strict=True) if "?" not in pair})


def loosened(topology: Topology) -> Topology:
    """The same states without rules."""
    arguments = topology.to_dict()
    lasting = None if topology.unit_bottom else {topology.levels[-1]: None}
    return Topology(arguments["levels"], root=arguments["root"], max_duration=lasting)


def loose_topology(Y: Sequence[Any], scheme: Scheme, lasting: bool = False) -> Topology:
    """A topology without rules, of all states that labels name; ``lasting``: segments of the bottom may be long."""
    statistics = LabelStatistics(None, scheme)
    statistics.collect(Y)
    statistics.persists |= lasting
    return statistics.loose_topology()
