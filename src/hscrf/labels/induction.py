"""The topology that labels need: states, who contains whom, how long they last."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hscrf.labels.labels import Labels
from hscrf.labels.packed import pack_labels
from hscrf.labels.reading import as_labels, is_segments
from hscrf.topology import Topology


def encode_labels(
    Y: Sequence[Any],
    lengths: Sequence[int],
    topology: Topology | None,
    scheme: Any,
    limited: Collection[str] = (),
) -> tuple[Topology, list[Labels]]:
    """Labels of all sequences over one topology, which is learned from them unless it is given or they bring it.

    ``limited`` names the levels that need a longest duration.
    """
    if topology is None and isinstance(Y[0], Labels):
        topology = Y[0].topology
    if topology is not None:
        return topology, [as_labels(y, n, lengths[n], topology, scheme) for n, y in enumerate(Y)]
    loose = loose_topology(Y, scheme, limited)
    labels = [as_labels(y, n, lengths[n], loose, scheme) for n, y in enumerate(Y)]
    tight = tighten(loose, labels, limited)
    return tight, [replace(y, topology=tight) for y in labels]


def loosened(topology: Topology) -> Topology:
    """The same states without rules."""
    arguments = topology.to_dict()
    lasting = None if topology.unit_bottom else {topology.levels[-1]: None}
    return Topology(arguments["levels"], root=arguments["root"], max_duration=lasting)


def loose_topology(Y: Sequence[Any], scheme: Any, limited: Collection[str] = ()) -> Topology:
    """All states of all levels, every parent with every child."""
    columns = Y[0] if isinstance(Y[0], Mapping) else {"label": Y[0]}
    names = {level: set() for level in columns if level != "root"}  # type: ignore[var-annotated]
    classes: set[str] = set()
    for n, y in enumerate(Y):
        for level, column in (y if isinstance(y, Mapping) else {"label": y}).items():
            if level == "root":
                classes.add(column if isinstance(column, str) else column[0])
            elif level not in names:
                raise ValueError(f"Y[{n}] has a level {level!r}, but Y[0] has only {', '.join(map(repr, names))}")
            else:
                names[level] |= plain_states(column, scheme if isinstance(scheme, str) else scheme.get(level, "plain"))
    bottom = list(names)[-1]
    lasting = (scheme if isinstance(scheme, str) else scheme.get(bottom, "plain")) != "plain" or any(
        is_segments(y[bottom]) for y in Y if isinstance(y, Mapping) and bottom in y
    )
    lasting |= bottom in limited
    levels = {level: sorted(states) for level, states in names.items()}
    for level, states in levels.items():
        if not states:
            raise ValueError(f"level {level!r} has no known label, so its states are unknown: give a topology")
    return Topology(levels, root=sorted(classes) or None, max_duration={bottom: None} if lasting else None)


def plain_states(column: Any, scheme: str) -> set[str]:
    if is_segments(column):
        for item in column:
            if len(item) != 3:
                raise ValueError(f"{item!r} is neither a label nor a segment (start, stop, state)")
        return {state for _, _, state in column}
    tags = {tag for tag in column if tag is not None and tag != "?" and tag == tag}
    return tags if scheme == "plain" else {tag.split("-", 1)[-1] for tag in tags}


def tighten(topology: Topology, labels: Sequence[Labels], limited: Collection[str] = ()) -> Topology:
    """Keep only children that occur, if no label is missing; limit durations to the longest where a table is needed."""
    known = pack_labels(labels)
    arguments = topology.to_dict()
    if all(y.is_complete for y in labels):
        arguments["children"] = {}
        for d in range(topology.depth - 1):
            found = np.unique(np.stack([known.states[d], known.states[d + 1]], axis=1), axis=0)
            kids: dict[str, list[str]] = {}
            for s, u in found.tolist():
                kids.setdefault(topology.states[d][s], []).append(topology.states[d + 1][u])
            arguments["children"][topology.levels[d]] = kids
    for level in limited:
        d = topology.level(level)
        if d > 0 and not (known.ends[d] < 0).any():
            bounds = np.concatenate([[-1], np.flatnonzero(known.ends[d] == 1)])
            arguments["max_duration"][level] = int(np.diff(bounds).max())
    return Topology.from_dict(arguments)
