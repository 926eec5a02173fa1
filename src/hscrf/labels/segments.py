"""Segments, their confidences, and trees; segments and trees are read into states and ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import LabelError
from hscrf.topology import Topology

Segment = tuple[int, int, str]


class SegmentConfidence(NamedTuple):
    """One predicted segment and two posterior probabilities.

    ``probability`` is the posterior probability that this segment exists: it begins exactly at ``start``, stops exactly
    at ``stop`` and has this state. ``label_probability`` is the mean over its steps of the posterior probability that
    the step has this state, with any boundaries: the expected share of its steps whose label is right.

    >>> SegmentConfidence(0, 2, "NP", 0.9, 0.95).probability
    0.9
    """

    start: int
    stop: int  # half-open
    state: Any
    probability: float
    label_probability: float


def sorted_segments(topology: Topology, d: int, segments: Iterable[Any]) -> list[Segment]:
    """The segments of one level in order of time, none overlapping another."""
    level = topology.levels[d]
    triples = sorted((_segment(level, segment) for segment in segments), key=lambda triple: triple[:2])
    for one, other in pairwise(triples):
        if other[0] < one[1]:
            raise ValueError(f"level {level!r}: segment {other} overlaps {one}; expected disjoint segments")
    return triples


def _segment(level: str, segment: Segment) -> Segment:
    try:
        start, stop, state = segment
        start, stop = int(start.__index__()), int(stop.__index__())
    except (TypeError, ValueError, AttributeError):
        raise ValueError(f"level {level!r}: {segment!r} is not a segment; expected (start, stop, state)") from None
    if not 0 <= start < stop:
        raise ValueError(f"level {level!r}: segment {(start, stop, state)}; expected 0 <= start < stop")
    return start, stop, state


def fill_segments(
    topology: Topology, d: int, segments: list[Segment], states: NDArray[np.int32], ends: NDArray[np.int8]
) -> None:
    """Write the segments of level d into its rows (T,)."""
    for segment in segments:
        start, stop, name = segment
        if stop > len(states):
            level = topology.levels[d]
            raise ValueError(f"level {level!r}: segment {segment}; expected stop <= length {len(states)}")
        try:
            states[start:stop] = topology.state(d, name)
        except ValueError as error:
            raise LabelError(str(error), level=topology.levels[d], step=start) from None
        ends[start : stop - 1] = 0
        ends[stop - 1] = 1
        if start > 0:
            ends[start - 1] = 1  # the segment before ends here


def node_of(topology: Topology, d: int, node: Any) -> tuple[str, Any]:
    """State and content of one node; a bare state at the bottom lasts one step."""
    if isinstance(node, str) and d == topology.depth - 1:
        return node, 1
    if isinstance(node, str) or not isinstance(node, Sequence) or len(node) != 2 or not isinstance(node[0], str):
        content = "duration" if d == topology.depth - 1 else "children"
        raise ValueError(f"tree has the node {node!r} at level {topology.levels[d]!r}; expected (state, {content})")
    return node[0], node[1]


def read_nodes(topology: Topology, d: int, nodes: Any, start: int, segments: dict[str, Any]) -> int:
    """Add the segments of level d and below that begin at start; return where the last one stops."""
    if not isinstance(nodes, Sequence) or isinstance(nodes, str) or not nodes:
        raise ValueError(f"tree has {nodes!r} at level {topology.levels[d]!r}; expected a list of nodes")
    for node in nodes:
        name, content = node_of(topology, d, node)
        if d < topology.depth - 1:
            stop = read_nodes(topology, d + 1, content, start, segments)
        else:
            stop = start + _duration(topology, name, content)
        segments[topology.levels[d]].append((start, stop, name))
        start = stop
    return start


def _duration(topology: Topology, name: str, duration: Any) -> int:
    if isinstance(duration, bool) or not isinstance(duration, (int, np.integer)) or duration < 1:
        level = topology.levels[-1]
        raise ValueError(f"tree gives {level} {name!r} the duration {duration!r}; expected a positive integer")
    return int(duration)
