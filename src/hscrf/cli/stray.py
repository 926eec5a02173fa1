"""Labels that continue nothing: I-VP after B-NP is read as the beginning of a segment, and that is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hscrf.cli.shell import note
from hscrf.io.documents import Document
from hscrf.labels.reading import is_segments

CONTINUES = {"bio": "I", "bioes": "IEL"}  # prefixes that stand within a segment


class StrayTags:
    """Counts the labels that do not continue their segments, and remembers where the first one stands.

    >>> stray = StrayTags({"chunk": "bio"})
    >>> document = Document(["a", "b", "c"], {"chunk": ["B-NP", "I-VP", "I-VP"]}, lines=[7, 8, 9], file="train.txt")
    >>> _ = list(stray.watched([document]))
    >>> print(stray)
    train.txt, line 8: level 'chunk' has I-VP after B-NP, which begins a segment as B-VP would
    """

    def __init__(self, scheme: Mapping[str, str]) -> None:
        self.scheme = scheme
        self.count = 0
        self.first = ""

    def watched(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The same documents, looked at as they pass."""
        for document in documents:
            for level, column in (document.labels or {}).items():
                within = CONTINUES.get(self.scheme.get(level, "plain"))
                if within and not isinstance(column, str) and not is_segments(column):
                    self._look(document, level, column, within)
            yield document

    def _look(self, document: Document, level: str, column: list[Any], within: str) -> None:
        for t, (before, tag) in enumerate(zip([None, *column], column, strict=False)):
            if is_stray(before, tag, within, t):
                self.count += 1
                place = f"after {before}" if t else "at the beginning"
                whole = f"level {level!r} has {tag} {place}, which begins a segment as B-{tag[2:]} would"
                self.first = self.first or str(document.error(whole, t))

    def __str__(self) -> str:
        return self.first if self.count < 2 else f"{self.first} ({self.count} such labels)"

    def say(self) -> None:
        """One line, if there is anything to say."""
        if self.count:
            note(f"hscrf: {self}")


def is_stray(before: str | None, tag: str | None, within: str, t: int) -> bool:
    """Whether a label continues a segment that does not go on from the label before; unknown labels may fit."""
    if tag is None or tag[1:2] != "-" or tag[0] not in within:
        return False
    if t and before in (None, "?"):
        return False
    return before is None or before[:2] not in ("B-", "I-") or before[2:] != tag[2:]
