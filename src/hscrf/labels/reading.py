"""Labels of one sequence from whatever holds them: Labels, columns, segments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hscrf.errors import LabelError, SequenceError, several
from hscrf.labels.columns import common_length, fill_columns, fill_root, schemes_of
from hscrf.labels.labels import Labels
from hscrf.topology import Topology


def read_labels(topology: Topology, given: Mapping[str, Any], scheme: Any, length: int) -> Labels:
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


def by_level(y: Any) -> Mapping[str, Any]:
    """Labels by level; a bare list is the only level, ``"label"``."""
    return y if isinstance(y, Mapping) else {"label": y}


def as_labels(y: Any, n: int, length: int, topology: Topology, scheme: Any, name: str = "Y") -> Labels:
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
        columns = y if isinstance(y, Mapping) else {topology.levels[1]: y}
        if columns and not any(map(len, columns.values())):
            raise LabelError("the labels of all levels are empty; expected labels or segments, '?' where unknown")
        return read_labels(topology, columns, scheme, length)
    except SequenceError as error:
        raise error.of_sequence(n, name) from None
    except (ValueError, TypeError) as error:
        raise LabelError(str(error)).of_sequence(n, name) from None
