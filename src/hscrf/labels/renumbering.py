"""Convert labels read over the states of a part of the data to the topology of all the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hscrf.labels.columns import ends_of_runs, open_runs
from hscrf.labels.labels import Labels
from hscrf.topology import Topology


def over(labels: Iterable[Labels], topology: Topology) -> list[Labels]:
    """Put labels that ``LabelStatistics.update`` returned over the topology of all the data.

    States keep their names. The result is the same as if the labels had been read over that topology. A sequence that
    names no class has the only class, or an unknown one if there are several. Segments of the bottom level may be
    longer than one step in other parts only: then equal labels in a row become one segment under one parent.
    """
    found, source, tables = [], None, None
    for y in labels:
        if y.topology is topology or (y.topology is not source and y.topology == topology):
            found.append(y)
            continue
        if y.topology is not source:
            source, tables = y.topology, renumbering(y.topology, topology)
        found.append(_with_rules(y, topology) if tables is None else moved(y, topology, tables))
    return found


def _with_rules(y: Labels, topology: Topology) -> Labels:
    """The same labels over a topology with the same states."""
    if y.allowed is None:
        return Labels.unchecked(topology, y.states, y.ends, y.score)
    return replace(y, topology=topology)


def renumbering(source: Topology, target: Topology) -> list[NDArray[np.int32]] | None:
    """For each level the new numbers (S + 1,) of its states, the last for -1; None if only the rules change."""
    if source.levels != target.levels:
        raise ValueError(f"labels of {source} cannot be put over {target}, which has other levels")
    if source.states == target.states and source.unit_bottom == target.unit_bottom:
        return None
    tables = []
    for names, others in zip(source.states, target.states, strict=True):
        place = {name: s for s, name in enumerate(others)}
        tables.append(np.array([*(place.get(name, -1) for name in names), -1], dtype=np.int32))
    if target.n_states[0] == 1:
        tables[0][:] = 0
    elif source.n_states[0] == 1:  # of no class
        tables[0][:] = -1
    return tables


def moved(labels: Labels, topology: Topology, tables: Sequence[NDArray[np.int32]]) -> Labels:
    """The labels over another topology, with new numbers of states from the tables."""
    states = np.stack([table[row] for table, row in zip(tables, labels.states, strict=True)])
    ends = labels.ends.copy()
    lost = np.argwhere((states[1:] < 0) & (labels.states[1:] >= 0))
    if lost.size:
        d, t = lost[0] + [1, 0]
        name = labels.topology.states[d][labels.states[d, t]]
        raise ValueError(f"{topology} has no state {name!r} of level {topology.levels[d]!r}, which the labels have")
    if labels.topology.unit_bottom and not topology.unit_bottom:
        runs = ends_of_runs(states[-1])
        open_runs(runs, runs == 0, ends[-2])
        ends[-1] = np.where(ends[-1] == 1, runs, ends[-1])
    return Labels(topology, states, ends)
