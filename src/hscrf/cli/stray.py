"""Labels that continue nothing: I-VP after B-NP is read as the beginning of a segment, and that is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hscrf.cli.shell import note
from hscrf.io.documents import Document
from hscrf.labels.stray import stray_tags


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
                for t, told in stray_tags(level, column, self.scheme.get(level, "plain")):
                    self.count += 1
                    self.first = self.first or str(document.error(told, t))
            yield document

    def __str__(self) -> str:
        return self.first if self.count < 2 else f"{self.first} ({self.count} such labels)"

    def say(self) -> None:
        """One line, if there is anything to say."""
        if self.count:
            note(f"hscrf: {self}")
