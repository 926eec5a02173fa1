"""Labels as people see them: text, tables and trees."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hscrf.topology import Topology
from hscrf.versions import pandas_for

if TYPE_CHECKING:
    from pandas import DataFrame

    from hscrf.labels.labels import Labels

MANY = 20  # items that a line shows


def level_or_only(topology: Topology, level: str | int | None) -> int:
    """The index of a level; without a name, of the only level below the root."""
    if level is None and topology.depth > 2:
        raise ValueError(f"there are the levels {', '.join(map(repr, topology.levels[1:]))}; expected the name of one")
    return 1 if level is None else topology.level(level)


def shown_levels(topology: Topology) -> range:
    """The levels without a dummy root."""
    return range(int(topology.n_states[0] == 1), topology.depth)


def text_of(labels: Labels) -> str:
    """A line for each level: its segments, or one label for each step where segments have one step or are not known."""
    topology = labels.topology
    width = max(len(topology.levels[d]) for d in shown_levels(topology))
    return "\n".join(f"{topology.levels[d]:<{width}}  {_line(labels, d)}" for d in shown_levels(topology))


def _line(labels: Labels, d: int) -> str:
    ends = labels.ends[d, :-1]
    if (labels.states[d] < 0).any() or (ends < 0).any() or ends.all():
        return _some([str(state) for state in labels.column(d)], " ")
    return _some([f"{state} {start}-{stop}" for start, stop, state in labels.segments(d)], ", ")


def _some(items: list[str], between: str) -> str:
    rest = f" ... ({len(items) - MANY} more)" if len(items) > MANY else ""
    return between.join(items[:MANY]) + rest


def frame_of(labels: Labels, scheme: str = "plain") -> DataFrame:
    """A DataFrame with a row for each step and a column for each level, missing where unknown."""
    pandas = pandas_for("a DataFrame of labels")
    topology = labels.topology
    columns = {topology.levels[d]: labels.column(d, scheme if d else "plain") for d in shown_levels(topology)}
    cells = {level: [None if label == "?" else label for label in column] for level, column in columns.items()}
    return pandas.DataFrame(cells).rename_axis("step")


def tree_of(labels: Labels) -> list[Any] | tuple[Any, list[Any]]:
    """Complete labels as a nested list of segments; with several root classes, a pair of the class and the list."""
    topology = labels.topology
    bottom = topology.depth - 1
    _, stop, _ = labels.segment_arrays(bottom)
    nodes: list[Any] = [name if j - i == 1 else (name, j - i) for i, j, name in labels.segments(bottom)]
    for d in reversed(range(bottom)):
        inner, (_, stop, state) = stop, labels.segment_arrays(d)
        cuts = [0, *np.searchsorted(inner, stop, side="right").tolist()]
        names = [topology.states[d][s] for s in state]
        nodes = [(name, nodes[i:j]) for name, (i, j) in zip(names, pairwise(cuts), strict=True)]
    return nodes[0] if topology.n_states[0] > 1 else nodes[0][1]
