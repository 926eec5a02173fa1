"""The schemes of label columns (plain, BIO, BIOES): given or detected from their tags; and tags that do not fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hscrf.hierarchy import unknown_name
from hscrf.labels.columns import Scheme
from hscrf.labels.labels import Labels
from hscrf.labels.reading import by_level, is_segments
from hscrf.topology import Topology

CONTINUES = {"bio": "I", "bioes": "IEL"}  # prefixes that stand within a segment


def schemes_in(Y: Sequence[Any], scheme: Scheme, topology: Topology | None = None) -> Scheme:
    """Return the scheme, with "auto" replaced by the scheme that the columns of each level show.

    A level is in BIO if one of its labels is B-x or I-x, and in BIOES if another is E-x or S-x. It is plain if the
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
    """The strings in the columns of each level that are not states of the topology; none if its states are tags.

    Levels without any column, such as those of segments, are left out.
    """
    only = "label" if topology is None else topology.levels[1]
    found: dict[str, set[str]] = {}
    for y in Y:
        if y is None or isinstance(y, Labels):
            continue
        for level, column in by_level(y, only).items():
            if level == "root" or isinstance(column, str) or not hasattr(column, "__len__") or is_segments(column):
                continue
            found.setdefault(level, set()).update(tag for tag in column if isinstance(tag, str))
    for level, tags in found.items():
        if topology is not None and level in topology.levels:
            states = {state for state in topology.states[topology.level(level)] if isinstance(state, str)}
            if looks_like(states) == "plain":
                tags -= states
            else:  # the states are tags themselves, as in a chain
                tags.clear()
    return found


def looks_like(tags: set[str]) -> str:
    """The scheme that the prefixes of the labels suggest."""
    prefixes = {tag[0] for tag in tags if re.match(r"[BIESLU]-.", tag)}
    if not prefixes & {"B", "I"}:
        return "plain"
    return "bio" if prefixes <= {"B", "I"} else "bioes"


def schemes_to_read(Y: Sequence[Any], scheme: Scheme, topology: Topology) -> Scheme:
    """The scheme of a model, with the schemes that the tags of Y show for levels without columns in training.

    >>> topology = Topology({"phrase": ["NP"], "tag": ["D", "N"]})
    >>> schemes_to_read([{"phrase": ["B-NP", "I-NP"]}], {"tag": "plain"}, topology)
    {'tag': 'plain', 'phrase': 'bio'}
    """
    if isinstance(scheme, str) or all(level in scheme for level in topology.levels[1:]):
        return scheme
    found = {level: looks_like(tags) for level, tags in tags_in(Y, topology).items() if level in topology.levels}
    return {**scheme, **{level: kind for level, kind in found.items() if level not in scheme}}


def scheme_of(scheme: Scheme, level: str) -> str:
    """The scheme of one level."""
    return scheme.get(level, "plain") if isinstance(scheme, Mapping) else scheme


# -- warnings: tags that continue no segment, prefixes that are not read


def is_stray(before: str | None, tag: str | None, within: str, t: int) -> bool:
    """Whether a label continues a segment that the label before does not belong to; unknown labels may fit."""
    if tag is None or tag[1:2] != "-" or tag[0] not in within:
        return False
    if t and before in (None, "?"):
        return False
    return before is None or before[:2] not in ("B-", "I-") or before[2:] != tag[2:]


def stray_tags(level: str, column: Any, scheme: str) -> Iterator[tuple[int, str]]:
    """Steps and descriptions of the labels of a column that continue no segment.

    >>> list(stray_tags("chunk", ["B-NP", "I-VP", "I-VP"], "bio"))
    [(1, "level 'chunk' has I-VP after B-NP, which begins a segment as B-VP would")]
    """
    within = CONTINUES.get(scheme)
    if not within or isinstance(column, str) or is_segments(column):
        return
    for t, (before, tag) in enumerate(zip([None, *column], column, strict=False)):
        if is_stray(before, tag, within, t):
            place = f"after {before}" if t else "at the beginning"
            yield t, f"level {level!r} has {tag} {place}, which begins a segment as B-{tag[2:]} would"


def stray_line(Y: Sequence[Any], scheme: Scheme) -> str:
    """One line about the stray tags of all sequences; nothing if there are none."""
    found = [
        f"Y[{n}] at step {t}: {told}"
        for n, y in enumerate(Y)
        if y is not None and not isinstance(y, Labels)
        for level, column in by_level(y).items()
        for t, told in stray_tags(level, column, scheme_of(scheme, level))
    ]
    return (found[0] + (f" ({len(found)} such labels)" if len(found) > 1 else "")) if found else ""


def unread_prefixes(Y: Sequence[Any], scheme: Scheme) -> dict[str, str]:
    """A label with a prefix, by level, where the scheme is plain and the labels look like BIO or BIOES.

    >>> unread_prefixes([{"phrase": ["B-NP", "I-NP"], "tag": ["D", "N"]}], "plain")
    {'phrase': 'B-NP'}
    """
    found = {}
    for level, tags in tags_in(Y).items():
        if scheme_of(scheme, level) == "plain" and looks_like(tags) != "plain":
            found[level] = min(tag for tag in tags if tag[:2] in ("B-", "I-"))
    return found


def unread_lines(Y: Sequence[Any], scheme: Scheme, option: str) -> list[str]:
    """A line for each level whose prefixes are not read; ``option`` is how the scheme was given."""
    return [
        f"level {level!r} has labels such as {tag}, which {option} reads as names of states, not as segments"
        for level, tag in unread_prefixes(Y, scheme).items()
    ]
