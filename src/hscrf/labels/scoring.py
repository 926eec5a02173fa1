"""Labels that a model is given: evidence, and labels to compare predictions with.

The latter may break the rules of the topology and have other states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hscrf.errors import LabelError
from hscrf.hierarchy import in_order
from hscrf.labels.columns import Scheme
from hscrf.labels.given import is_unknown
from hscrf.labels.induction import check_distinct_texts, loosened, names_in_column
from hscrf.labels.labels import Labels
from hscrf.labels.reading import as_labels, by_level, is_segments, over
from hscrf.labels.schemes import scheme_of, schemes_to_read
from hscrf.topology import Topology


def as_evidence(y: Any, n: int, length: int, topology: Topology, scheme: Scheme, name: str = "evidence") -> Labels:
    """The evidence of one sequence as labels of a model's topology; given Labels may have other rules."""
    if y is None:
        return Labels.unknown(topology, length)
    if isinstance(y, Labels) and (y.topology.levels, y.topology.states) == (topology.levels, topology.states):
        (y,) = over([y], topology)
    return as_labels(y, n, length, topology, schemes_to_read([y], scheme, topology), name)


def labels_to_score(
    Y: Sequence[Any], lengths: Sequence[int], topology: Topology, scheme: Scheme, name: str = "Y"
) -> list[Labels]:
    """Read labels of each sequence that may break the rules of the topology and have other states."""
    scheme = schemes_to_read(Y, scheme, topology)
    wide = widened(topology, Y, scheme, name)
    return [
        y
        if isinstance(y, Labels)
        else Labels.unknown(wide, length)
        if y is None
        else as_labels(y, n, length, wide, scheme, name)
        for n, (y, length) in enumerate(zip(Y, lengths, strict=True))
    ]


def widened(topology: Topology, Y: Sequence[Any], scheme: Scheme, name: str = "Y") -> Topology:
    """The same levels without rules, and with all states that the labels name; the bottom persists if theirs does."""
    loose = loosened(topology)
    states: dict[str, set[Any]] = {level: set() for level in loose.levels}
    lasting = not topology.unit_bottom
    bottom = topology.levels[-1]
    for n, y in enumerate(Y):
        if y is None or isinstance(y, Labels):
            continue
        for level, column in by_level(y, topology.levels[1]).items():
            if level in states:  # the reader rejects others
                kind = "plain" if level == "root" else scheme_of(scheme, level)
                states[level] |= _names_in(column, kind, level, n, name)
                lasting |= level == bottom and (kind != "plain" or _has_long_segments(column))
    old = {level: set(names) for level, names in zip(loose.levels, loose.states, strict=True)}
    for level in loose.levels[1:]:
        check_distinct_texts(level, sorted([*old[level], *(states[level] - old[level])], key=str))
    new = {level: in_order(states[level] - old[level]) for level in loose.levels}
    named = {level: [*names, *new[level]] for level, names in zip(loose.levels[1:], loose.states[1:], strict=True)}
    classes = None if loose.states[0] == ("root",) else [*loose.states[0], *new["root"]]
    return Topology(named, root=classes, max_duration={bottom: None} if lasting else None)


def _names_in(column: Any, scheme: str, level: str, n: int, name: str) -> set[Any]:
    try:
        names = names_in_column(column, scheme)
    except (ValueError, TypeError) as error:
        raise LabelError(str(error), level=level).of_sequence(n, name) from None
    return {label for label in names if not is_unknown(label)}


def _has_long_segments(column: Any) -> bool:
    if isinstance(column, str) or len(column) == 0 or not is_segments(column):
        return False
    return any(len(item) == 3 and item[1] - item[0] > 1 for item in column)


def allowed_labels(
    labels: Sequence[Labels], topology: Topology, possible: Callable[[Labels, int], Labels | None]
) -> tuple[list[bool], list[Labels]]:
    """Which labels a model allows, and what ``possible`` makes of each; labels that it forbids become unknown."""
    found = [possible(y, n) for n, y in enumerate(labels)]
    known = [Labels.unknown(topology, y.length) if z is None else z for y, z in zip(labels, found, strict=True)]
    return [z is not None for z in found], known


def possible_labels(y: Labels, topology: Topology, n: int, name: str = "Y") -> Labels | None:
    """The labels over a topology; None if it lacks one of their states or forbids them."""
    if y.topology.levels != topology.levels:
        raise ValueError(f"{name}[{n}] has {y.topology}, but the model has {topology}")
    classes, known = topology.states[0], y.states[0] >= 0
    own = {y.topology.states[0][s] for s in y.states[0][known].tolist()}
    if ("root",) not in (classes, y.topology.states[0]) and not own <= set(classes):
        return None
    try:
        found = over([y], topology)[0]
        found.closed()
    except ValueError:
        return None
    return found
