"""Labels of one sequence from whatever holds them: Labels, columns, segments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hscrf.errors import InfeasibleError
from hscrf.labels.columns import cut_below, schemes_of
from hscrf.labels.labels import Labels
from hscrf.topology import Topology


def read_labels(topology: Topology, given: Mapping[str, Any], scheme: Any, length: int) -> Labels:
    """Labels of each level from its column or its segments."""
    columns = {level: column for level, column in given.items() if not is_segments(column)}
    segments = {level: given[level] for level in given if level not in columns}
    if not columns:
        return Labels.from_segments(topology, segments, length)
    labels = Labels.from_columns(topology, columns, scheme=scheme)
    if not segments:
        return labels
    if labels.length != length:
        raise ValueError(f"level {next(iter(columns))!r} has {labels.length} labels for {length} steps")
    both = Labels.from_segments(topology, segments, length)
    states, ends = both.states.copy(), both.ends.copy()
    rows = [topology.level(level) for level in columns]
    states[rows], ends[rows] = labels.states[rows], labels.ends[rows]
    schemes = schemes_of(topology, scheme)
    for d, level in enumerate(topology.levels[1:], start=1):
        if level not in segments:
            cut_below(topology, d, columns.get(level), schemes[d], ends)
    both = Labels(topology, states, ends)
    both.check()
    return both


def is_segments(column: Any) -> bool:
    """Whether labels of a level are segments, not one label for each step."""
    return not isinstance(column, str) and len(column) > 0 and isinstance(column[0], (tuple, list))


def as_labels(y: Any, n: int, length: int, topology: Topology, scheme: Any, name: str = "Y") -> Labels:
    """One sequence's labels; a list of strings is the only level, a dict holds columns or segments by level.

    What segments leave out is unknown, to the end of the sequence of ``length`` steps.
    """
    if isinstance(y, Labels) and y.topology != topology:
        raise ValueError(f"{name}[{n}] has {y.topology} with other states or rules than the model's {topology}")
    columns: Any = y if isinstance(y, Mapping) else {topology.levels[1]: y}
    try:
        if isinstance(y, Labels):
            y.check()
            return y
        return read_labels(topology, columns, scheme, length)
    except InfeasibleError as error:
        raise InfeasibleError(f"{name}[{n}]: {error}") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}[{n}]{first_failure(columns, topology, scheme)}: {error}") from None


def first_failure(columns: Mapping[str, Any], topology: Topology, scheme: Any) -> str:
    """Where the first label is that cannot be read by itself, such as an unknown state; empty if they all can."""
    for level, column in columns.items():
        if level in topology.levels[1:] and not isinstance(column, str) and not is_segments(column):
            for t, tag in enumerate(column):
                try:
                    Labels.from_columns(topology, {level: [tag]}, scheme=scheme)
                except ValueError:
                    return f" at step {t}"
    return ""
