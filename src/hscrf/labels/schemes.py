"""How label columns are written, plain, BIO or BIOES: as asked for, or as their tags look."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hscrf.labels.labels import Labels
from hscrf.labels.reading import by_level, is_segments
from hscrf.names import unknown_name
from hscrf.topology import Topology


def schemes_in(Y: Sequence[Any], scheme: Any, topology: Topology | None = None) -> Any:
    """The scheme, with "auto" replaced by what the columns of each level look like.

    A level is in BIO if one of its labels is B-x or I-x, in BIOES if another is E-x or S-x; it is plain if the
    topology has its labels as states.

    >>> schemes_in([{"phrase": ["B-NP", "I-NP", "O"], "tag": ["D", "N", "V"]}], "auto")
    {'phrase': 'bio', 'tag': 'plain'}
    """
    asked = scheme if isinstance(scheme, Mapping) else None
    if asked:
        _check_levels(asked, Y, topology)
    if scheme != "auto" and (asked is None or "auto" not in asked.values()):
        return scheme
    tags = tags_in(Y, topology)
    if asked is not None:
        return {level: looks_like(tags.get(level, set())) if kind == "auto" else kind for level, kind in asked.items()}
    return {level: looks_like(found) for level, found in tags.items()}


def _check_levels(asked: Mapping[str, str], Y: Sequence[Any], topology: Topology | None) -> None:
    """Raise for a scheme of a level that is not there, as far as the levels are known."""
    known = () if topology is None else topology.levels
    for y in () if known else Y:
        if y is not None:
            known = y.topology.levels if isinstance(y, Labels) else ("root", *by_level(y))
            break
    for level in asked:
        if known and level not in known:
            raise ValueError(f"scheme names the {unknown_name('level', level, known)}")


def tags_in(Y: Iterable[Any], topology: Topology | None = None) -> dict[str, set[str]]:
    """The strings in the columns of each level that are no states of the topology."""
    only = None if topology is None else topology.levels[1]
    found: dict[str, set[str]] = {}
    for y in Y:
        if y is None or isinstance(y, Labels):
            continue
        given = by_level(y) if only is None or isinstance(y, Mapping) else {only: y}
        for level, column in given.items():
            if level != "root" and hasattr(column, "__len__"):
                tags = found.setdefault(level, set())
                if not isinstance(column, str) and not is_segments(column):
                    tags.update(tag for tag in column if isinstance(tag, str))
    for level, tags in found.items():
        if topology is not None and level in topology.levels:
            tags.difference_update(topology.states[topology.level(level)])
    return found


def looks_like(tags: set[str]) -> str:
    """The scheme that labels look as if they were in."""
    prefixes = {tag[0] for tag in tags if re.match(r"[BIESLU]-.", tag)}
    if not prefixes & {"B", "I"}:
        return "plain"
    return "bio" if prefixes <= {"B", "I"} else "bioes"


def scheme_of(scheme: Any, level: str) -> str:
    """The scheme of one level."""
    return scheme.get(level, "plain") if isinstance(scheme, Mapping) else scheme
