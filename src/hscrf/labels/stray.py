"""Columns that are not what their scheme says: tags that continue nothing, prefixes that are not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hscrf.labels.labels import Labels
from hscrf.labels.reading import by_level, is_segments
from hscrf.labels.schemes import looks_like, scheme_of, tags_in

CONTINUES = {"bio": "I", "bioes": "IEL"}  # prefixes that stand within a segment


def is_stray(before: str | None, tag: str | None, within: str, t: int) -> bool:
    """Whether a label continues a segment that does not go on from the label before; unknown labels may fit."""
    if tag is None or tag[1:2] != "-" or tag[0] not in within:
        return False
    if t and before in (None, "?"):
        return False
    return before is None or before[:2] not in ("B-", "I-") or before[2:] != tag[2:]


def stray_tags(level: str, column: Any, scheme: str) -> Iterator[tuple[int, str]]:
    """Steps and descriptions of the labels of a column that continue nothing.

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


def stray_line(Y: Sequence[Any], scheme: Any) -> str:
    """One line about the stray tags of all sequences; nothing if there are none."""
    found = [
        f"Y[{n}] at step {t}: {told}"
        for n, y in enumerate(Y)
        if y is not None and not isinstance(y, Labels)
        for level, column in by_level(y).items()
        for t, told in stray_tags(level, column, scheme_of(scheme, level))
    ]
    return (found[0] + (f" ({len(found)} such labels)" if len(found) > 1 else "")) if found else ""


def unread_prefixes(Y: Sequence[Any], scheme: Any) -> dict[str, str]:
    """A label with a prefix, by level, where the scheme is plain and the labels look like BIO or BIOES.

    >>> unread_prefixes([{"phrase": ["B-NP", "I-NP"], "tag": ["D", "N"]}], "plain")
    {'phrase': 'B-NP'}
    """
    found = {}
    for level, tags in tags_in(Y).items():
        if scheme_of(scheme, level) == "plain" and looks_like(tags) != "plain":
            found[level] = min(tag for tag in tags if tag[:2] in ("B-", "I-"))
    return found


def unread_lines(Y: Sequence[Any], scheme: Any, option: str) -> list[str]:
    """A line for each level whose prefixes are not read; ``option`` is how the scheme was given."""
    return [
        f"level {level!r} has labels such as {tag}, which {option} takes for names of states, not for segments"
        for level, tag in unread_prefixes(Y, scheme).items()
    ]
