"""Convert between fixes of people, by names, and Labels over the topology of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hscrf.labels.labels import Labels
from hscrf.studio.data.knowledge import UNKNOWN, Knowledge, Level, runs_of
from hscrf.topology import Topology


def levels_of(topology: Topology) -> list[Level]:
    """The levels as people see them; the root is one of them if it has classes.

    >>> levels_of(Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]}))
    [Level(name='phrase', labels=('NP', 'O'), unit=False), Level(name='tag', labels=('N', 'V'), unit=True)]
    """
    bottom = topology.depth - 1
    return [
        Level(name, tuple(map(str, states)), d == bottom and topology.unit_bottom)
        for d, (name, states) in enumerate(zip(topology.levels, topology.states, strict=True))
        if d or len(states) > 1
    ]


def labels_of(knowledge: Knowledge, topology: Topology) -> Labels:
    """The known labels as Labels; levels and labels that the topology does not have are left out.

    >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]})
    >>> knowledge = Knowledge(levels_of(topology), 3)
    >>> knowledge.apply("segment", {"level": "phrase", "start": 0, "stop": 2, "label": "NP"}, 1)
    >>> print(labels_of(knowledge, topology))
    phrase  NP NP ?
    tag     ? ? ?
    """
    states = np.full((topology.depth, knowledge.length), -1, dtype=np.int32)
    ends = np.full((topology.depth, knowledge.length), -1, dtype=np.int8)
    for level in knowledge.levels:
        if level.name in topology.levels:
            d = topology.level(level.name)
            place = {str(name): s for s, name in enumerate(topology.states[d])}
            table = np.array([*(place.get(label, -1) for label in level.labels), -1], dtype=np.int32)
            cells = knowledge.cells[level.name]
            states[d] = table[cells.label]
            ends[d, :-1] = cells.border[1:-1]
    if topology.unit_bottom:
        ends[-1] = 1
    ends[:, -1] = 1
    ends[0, :-1] = 0
    if topology.n_states[0] == 1:
        states[0] = 0
    return Labels(topology, states, ends)


def imported(labels: Labels, levels: Sequence[Level]) -> dict[str, Any]:
    """The body of an import event for known Labels."""
    found = {}
    for level in levels:
        if level.name not in labels.topology.levels:
            continue
        d = labels.topology.level(level.name)
        names = labels.topology.states[d]
        known = [[i, j, str(names[s])] for i, j, s in runs_of(labels.states[d]) if s >= 0]
        entry: dict[str, Any] = {"labels": known}
        if not level.unit:
            inner = labels.ends[d, :-1]
            entry["on"] = (np.flatnonzero(inner == 1) + 1).tolist()
            entry["off"] = [[i + 1, j + 1] for i, j, value in runs_of(inner) if value == 0]
        if any(entry.values()):
            found[level.name] = entry
    closed = labels.closed() if found else labels
    return {"levels": found, **({"complete": True} if closed.is_complete else {})}


def without_levels(topology: Topology, left_out: Sequence[str]) -> Topology:
    """The topology without some levels: their parents have their children, and a new bottom lasts.

    >>> rules = {"a": {"x": ["m"]}, "b": {"m": ["p"]}}
    >>> three = Topology({"a": ["x", "y"], "b": ["m", "n"], "c": ["p", "q"]}, children=rules)
    >>> two = without_levels(three, ["b"])
    >>> two, two.children[1].astype(int).tolist()
    (Topology(root 1 > a 2 > c 2), [[1, 0], [1, 1]])
    >>> without_levels(three, ["c"]).unit_bottom
    False
    """
    if not left_out:
        return topology
    arguments = topology.to_dict()
    kept = [d for d, name in enumerate(topology.levels) if name not in left_out]
    names = [topology.levels[d] for d in kept if d]
    children: dict[str, Any] = {}
    for one, other in pairwise(kept):
        table = topology.children[one].astype(int)
        for d in range(one + 1, other):
            table = table @ topology.children[d].astype(int)
        children[topology.levels[one]] = {
            state: [topology.states[other][u] for u in np.flatnonzero(row)]
            for state, row in zip(topology.states[one], table, strict=True)
        }
    limits: Mapping[str, Any] = {
        name: arguments["max_duration"][name] for name in names if name in arguments["max_duration"]
    }
    if names and topology.levels[-1] in left_out:
        limits = {names[-1]: None, **limits}
    return Topology(
        {name: list(topology.states[topology.level(name)]) for name in names},
        children=children,
        successors={k: v for k, v in (arguments["successors"] or {}).items() if k in names},
        root=arguments["root"],
        min_duration={k: v for k, v in (arguments["min_duration"] or {}).items() if k in names},
        max_duration=limits,
        open_duration={k: v for k, v in (arguments.get("open_duration") or {}).items() if k in names},
    )


def known_segments(knowledge: Knowledge, level: Level) -> list[list[Any]]:
    """The known labels of a level as segments that tile the sequence: label None where unknown."""
    cells = knowledge.cells[level.name]
    names = (*level.labels, None)
    breaks = cells.border[:-1] == 1
    return [[i, j, None if s == UNKNOWN else names[s]] for i, j, s in runs_of(cells.label, breaks)]


def implied_segments(closed: Labels, level: Level) -> list[list[Any]]:
    """The same, with labels that follow by nesting.

    >>> topology = Topology({"field": ["author", "date"], "part": ["name", "year"]},
    ...                     children={"field": {"author": ["name"], "date": ["year"]}})
    >>> field, part = levels_of(topology)
    >>> knowledge = Knowledge([field, part], 4)
    >>> knowledge.apply("label", {"level": "part", "start": 0, "stop": 1, "label": "year"}, 1)
    >>> knowledge.apply("boundary", {"level": "field", "at": 1, "on": False}, 2)
    >>> implied_segments(labels_of(knowledge, topology).closed(), field)
    [[0, 2, 'date'], [2, 4, None]]
    """
    topology = closed.topology
    d = topology.level(level.name)
    names = (*map(str, topology.states[d]), None)
    breaks = np.append(True, closed.ends[d - 1 if level.unit else d, :-1] == 1)
    return [[i, j, names[s]] for i, j, s in runs_of(closed.states[d], breaks)]
