"""Labels of many sequences read at once: a table of tags for each level, whatever the number of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from hscrf.arrays import sealed
from hscrf.labels.columns import fill_columns, schemes_of
from hscrf.labels.labels import Labels
from hscrf.labels.reading import as_labels, is_segments
from hscrf.labels.rules import RULES_OF_MANY
from hscrf.labels.segments import blank
from hscrf.topology import Topology


def read_many(
    Y: Sequence[Any], lengths: Sequence[int], topology: Topology, scheme: Any, name: str = "Y", offset: int = 0
) -> list[Labels]:
    """What :func:`as_labels` reads of each sequence; the first has the number ``offset``.

    Columns of the same levels are read as one column. Where that does not go, or goes wrong, sequences are read one
    by one, so that errors name the sequence and the step.
    """
    found = _read_columns(Y, topology, scheme)
    if found is not None:
        return found
    return [
        as_labels(y, n, length, topology, scheme, name)
        for n, (y, length) in enumerate(zip(Y, lengths, strict=True), start=offset)
    ]


def _read_columns(Y: Sequence[Any], topology: Topology, scheme: Any) -> list[Labels] | None:
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
        for rule in RULES_OF_MANY:
            rule(whole)
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
