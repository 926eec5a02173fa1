"""Labels that were added after a model was trained: they score 0, and are used only where a person put them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.fillers import copies_of
from hscrf.labels.labels import Labels
from hscrf.potentials import OWN, Potentials
from hscrf.studio.data.knowledge import Knowledge, Level
from hscrf.topology import Topology

New = Mapping[str, Sequence[str]]  # level -> labels that the model does not have


def new_labels(topology: Topology, levels: Sequence[Level]) -> dict[str, list[str]]:
    """The labels of each level that a topology does not have; levels that it does not have are left out.

    >>> new_labels(Topology({"tag": ["N"]}), [Level("phrase", ("NP",)), Level("tag", ("N", "V"))])
    {'tag': ['V']}
    """
    found = {}
    for level in levels:
        if level.name in topology.levels:
            known = set(map(str, topology.states[topology.level(level.name)]))
            added = [label for label in level.labels if label not in known]
            if added:
                found[level.name] = added
    return found


def widened(topology: Topology, new: New) -> Topology:
    """The topology with more labels: no rule restricts what they contain, and what may contain or precede them.

    >>> narrow = Topology({"phrase": ["NP", "VP"], "tag": ["N", "V"]}, children={"phrase": {"NP": ["N"]}})
    >>> widened(narrow, {"phrase": ["PP"], "tag": ["D"]}).children[1].astype(int).tolist()
    [[1, 0, 1], [1, 1, 1], [1, 1, 1]]
    """
    if not new:
        return topology
    arguments = topology.to_dict()
    levels = {name: [*states, *new.get(name, ())] for name, states in arguments["levels"].items()}
    root = arguments["root"] and [*arguments["root"], *new.get("root", ())]
    below = dict(zip(topology.levels, topology.levels[1:], strict=False))
    children = _with(arguments["children"], {parent: new.get(child, ()) for parent, child in below.items()})
    successors = _with(arguments["successors"], new)
    return Topology(**{**arguments, "levels": levels, "root": root, "children": children, "successors": successors})


def _with(rules: Mapping[str, Mapping[Any, list[Any]]] | None, added: New) -> dict[str, dict[Any, list[Any]]]:
    """Rules {level: {state: allowed}} that allow more."""
    return {
        level: {state: [*allowed, *added.get(level, ())] for state, allowed in rows.items()}
        for level, rows in (rules or {}).items()
    }


def lifted(potentials: Potentials, topology: Topology) -> Potentials:
    """Potentials over a widened topology: new labels are the last of their levels and score 0.

    A filler that remembers a new label scores as one that remembers nothing.
    """
    sources = [_sources(potentials.topology, topology, d) for d in range(topology.depth)]
    parts: dict[str, dict[str, NDArray[np.float64]]] = {}
    for part, level, values in potentials.parts():
        d = topology.level(level)
        axes = [sources[d]] if part in OWN else sources[d : d + 2]
        if part == "trans":
            axes = [*axes, axes[-1]]
        found = values
        for axis, source in enumerate(axes, start=values.ndim - len(axes)):
            shape = [1] * values.ndim
            shape[axis] = source.size
            found = np.where(source.reshape(shape) >= 0, np.take(found, np.maximum(source, 0), axis=axis), 0.0)
        parts.setdefault(part, {})[level] = found
    return Potentials(topology, potentials.length, **parts)


def _sources(old: Topology, new: Topology, d: int) -> NDArray[np.int64]:
    """For each hidden state of a level (H,), the one of the narrower topology that it scores as; -1 for new labels."""
    before, after = copies_of(old), copies_of(new)
    states = old.n_states[d]
    if before is None or after is None:
        found = np.arange(new.n_states[d])
        return np.where(found < states, found, -1)
    origin, memory = after.origin[d], after.memory[d]
    place = before.place[d]  # the last column: nothing is remembered
    known = np.where(memory < states, memory, -1)
    rows = np.minimum(origin, states - 1)
    exact = place[rows, known]
    return np.where(origin < states, np.where(exact >= 0, exact, place[rows, -1]), -1)


def gone_labels(topology: Topology, levels: Sequence[Level]) -> dict[str, list[str]]:
    """The labels of each level that a topology has and that are not there any more.

    >>> gone_labels(Topology({"tag": ["N", "V"]}), [Level("tag", ("N",))])
    {'tag': ['V']}
    """
    found = {}
    for level in levels:
        if level.name in topology.levels:
            states = map(str, topology.states[topology.level(level.name)])
            lost = [state for state in states if state not in level.labels]
            if lost:
                found[level.name] = lost
    return found


def restricted(labels: Labels, knowledge: Knowledge, new: New, gone: New | None = None) -> Labels:
    """Restrict labels: new ones only at steps where a person has put them, removed ones nowhere."""
    gone = gone or {}
    if not new and not gone:
        return labels
    topology, allowed = labels.topology, {}
    for name in dict.fromkeys((*new, *gone)):
        added = new.get(name, ())
        table = np.ones((labels.length, topology.n_states[topology.level(name)]), dtype=bool)
        level, said = knowledge.level(name), knowledge.cells[name].label
        for column, label in enumerate(added, start=table.shape[1] - len(added)):
            table[:, column] = said == level.code(label)
        names = [str(state) for state in topology.states[topology.level(name)]]
        table[:, [names.index(label) for label in gone.get(name, ())]] = False
        allowed[name] = table
    return Labels(topology, labels.states, labels.ends, allowed)
