"""Labels over a topology: read from columns or segments, one sequence or many at once, or moved from another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import sealed
from hscrf.errors import LabelError, SequenceError, several
from hscrf.labels.columns import (
    Scheme,
    blank,
    common_length,
    ends_of_runs,
    fill_columns,
    fill_root,
    open_runs,
    schemes_of,
)
from hscrf.labels.labels import Labels
from hscrf.labels.rules import check_packed
from hscrf.topology import Topology


def read_labels(topology: Topology, given: Mapping[str, Any], scheme: Scheme, length: int) -> Labels:
    """Labels of each level from its column or its segments; the root may be the name of a class."""
    columns = {level: column for level, column in given.items() if not is_segments(column)}
    segments = {level: given[level] for level in given if level not in columns}
    if all(level == "root" and isinstance(column, str) for level, column in columns.items()):
        return Labels.from_segments(topology, given, length)
    if not segments:
        return Labels.from_columns(topology, columns, scheme=scheme)
    rows = {topology.level(level): column for level, column in columns.items()}
    labelled = common_length(topology, rows)
    if labelled != length:
        raise ValueError(
            f"level {next(iter(columns))!r} has {several(labelled, 'label')} for {several(length, 'step')}"
        )
    held = Labels.from_segments(topology, segments, length)
    states, ends = held.states.copy(), held.ends.copy()
    fill_root(topology, rows.pop(0, None), states, ends)
    fill_columns(topology, rows, schemes_of(topology, scheme), "runs", states, ends, set(map(topology.level, segments)))
    both = Labels(topology, states, ends)
    both.check()
    return both


def is_segments(column: Any) -> bool:
    """Whether labels of a level are segments, not one label for each step; an empty list is a list of segments.

    >>> is_segments([(0, 2, "NP")]), is_segments(["NP", "NP"]), is_segments("NP"), is_segments([])
    (True, False, False, True)
    """
    return not isinstance(column, str) and (len(column) == 0 or isinstance(column[0], (tuple, list)))


def by_level(y: Any, only: str = "label") -> Mapping[str, Any]:
    """Labels by level; a bare list is the only level."""
    return y if isinstance(y, Mapping) else {only: y}


def as_labels(y: Any, n: int, length: int, topology: Topology, scheme: Scheme, name: str = "Y") -> Labels:
    """Labels of one sequence; a list is the only level, a dict holds columns or segments by level.

    What segments leave out is unknown, to the end of the sequence of ``length`` steps. Errors name the sequence, as in
    ``Y[3]``, and the step of a label that cannot be read.
    """
    if isinstance(y, Labels) and y.topology != topology:
        if y.topology.remembering({}) != topology.remembering({}):  # labels do not depend on what fillers remember
            raise ValueError(f"{name}[{n}] has {y.topology} with other states or rules than the model's {topology}")
        y = replace(y, topology=topology)
    try:
        if isinstance(y, Labels):
            y.check()
            return y
        columns = by_level(y, topology.levels[1])
        if columns and not any(map(len, columns.values())):
            raise LabelError("the labels of all levels are empty; expected labels or segments, '?' where unknown")
        return read_labels(topology, columns, scheme, length)
    except SequenceError as error:
        raise error.of_sequence(n, name) from None
    except (ValueError, TypeError) as error:
        raise LabelError(str(error)).of_sequence(n, name) from None


# -- many sequences: the columns of a level are read as one


def read_many(
    Y: Sequence[Any], lengths: Sequence[int], topology: Topology, scheme: Scheme, name: str = "Y", offset: int = 0
) -> list[Labels]:
    """What :func:`as_labels` reads of each sequence; the first has the number ``offset``.

    Columns of the same levels are read as one column. If that is impossible or fails, sequences are read one
    by one, so that errors name the sequence and the step.
    """
    found = _read_columns(Y, topology, scheme)
    if found is not None:
        return found
    return [
        as_labels(y, n, length, topology, scheme, name)
        for n, (y, length) in enumerate(zip(Y, lengths, strict=True), start=offset)
    ]


def _read_columns(Y: Sequence[Any], topology: Topology, scheme: Scheme) -> list[Labels] | None:
    """Labels of sequences that are all columns of the same levels, if they can be read."""
    given = _columns(Y, topology)
    if given is None:
        return None
    lengths = [len(column) for column in next(iter(given.values()))]
    if any(list(map(len, columns)) != lengths for columns in given.values()) or 0 in lengths:
        return None
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    states, ends = blank(topology, int(offsets[-1]))
    last = offsets[1:] - 1
    ends[0] = 0
    ends[0, last] = 1
    if topology.n_states[0] == 1:
        states[0] = 0
    try:
        rows = {topology.level(level): list(chain.from_iterable(columns)) for level, columns in given.items()}
        fill_columns(topology, rows, schemes_of(topology, scheme), "runs", states, ends, last=last)
        whole = Labels.unchecked(topology, states, ends)
        check_packed(whole)
    except (ValueError, TypeError):
        return None
    sealed(states)
    sealed(ends)
    return [Labels.unchecked(topology, states[:, a:b], ends[:, a:b]) for a, b in pairwise(offsets.tolist())]


def _columns(Y: Sequence[Any], topology: Topology) -> dict[str, list[Any]] | None:
    """The columns of each level; None unless all sequences have columns of the same levels below the root."""
    if all(isinstance(y, list | tuple) for y in Y):
        given = {topology.levels[1]: list(Y)}
    elif all(isinstance(y, Mapping) and y.keys() == Y[0].keys() for y in Y):
        given = {level: [y[level] for y in Y] for level in Y[0]}
    else:
        return None
    columns = list(chain.from_iterable(given.values()))
    if "root" in given or not columns:
        return None
    if not all(isinstance(column, list | tuple) and not is_segments(column) for column in columns):
        return None
    return given


# -- labels read over the states of a part of the data, moved to the topology of all the data


def over(labels: Iterable[Labels], topology: Topology) -> list[Labels]:
    """Put labels that ``LabelStatistics.update`` returned over the topology of all the data.

    States keep their names. The result is the same as if the labels had been read over that topology. A sequence that
    names no class has the only class, or an unknown one if there are several. If only other parts have segments of the
    bottom level with several steps, equal labels in a row under one parent become one segment here.
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
