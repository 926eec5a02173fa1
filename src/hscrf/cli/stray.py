"""Report labels that are read in another way than they are written: I-VP after B-NP, labels unknown to a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hscrf.cli.shell import note
from hscrf.io.documents import Document
from hscrf.io.tags import unknown_labels, without_labels
from hscrf.labels.schemes import stray_tags
from hscrf.topology import Topology


class OddLabels:
    """The number of labels that are read in another way, and a message about the first."""

    count = 0
    first = ""

    def add(self, count: int, message: str) -> None:
        """Count some labels; the message is about the first of them."""
        self.count += count
        self.first = self.first or message

    def __str__(self) -> str:
        return self.first if self.count < 2 else f"{self.first} ({self.count} such labels)"

    def print_summary(self) -> None:
        """Print one line, if any labels were counted."""
        if self.count:
            note(f"hscrf: {self}")


class StrayTags(OddLabels):
    """Count the labels that do not continue their segments, and keep the place of the first.

    >>> stray = StrayTags({"chunk": "bio"})
    >>> document = Document(["a", "b", "c"], {"chunk": ["B-NP", "I-VP", "I-VP"]}, lines=[7, 8, 9], file="train.txt")
    >>> _ = list(stray.watched([document]))
    >>> print(stray)
    train.txt, line 8: level 'chunk' has I-VP after B-NP, which begins a segment as B-VP would
    """

    def __init__(self, scheme: Mapping[str, str]) -> None:
        self.scheme = scheme

    def watched(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the same documents, and check each."""
        for document in documents:
            for level, column in (document.labels or {}).items():
                for t, told in stray_tags(level, column, self.scheme.get(level, "plain")):
                    self.add(1, str(document.error(told, t)))
            yield document


def print_stray_tags(documents: Iterable[Document], scheme: Mapping[str, str]) -> None:
    """Print one line if some labels of the documents do not continue their segments."""
    stray = StrayTags(scheme)
    for _ in stray.watched(documents):
        pass
    stray.print_summary()


class UnknownLabels(OddLabels):
    """Replace labels unknown to a model by ``"?"``, unless ``strict``, and count them.

    >>> unknown = UnknownLabels(Topology({"tag": ["D", "N"]}), {"tag": "plain"})
    >>> document = Document(["a", "b"], {"tag": ["D", "X"]}, lines=[7, 8], file="new.txt")
    >>> unknown.cleared(document).labels
    {'tag': ['D', '?']}
    >>> print(unknown)
    new.txt, line 8: level 'tag' has the label 'X', unknown to the model: it is read as ? (--strict refuses it)
    """

    def __init__(self, topology: Topology, scheme: Mapping[str, str], strict: bool = False) -> None:
        self.topology, self.scheme, self.strict = topology, scheme, strict

    def cleared(self, document: Document) -> Document:
        """The document without labels unknown to the model."""
        found = {} if self.strict else unknown_labels(document, self.topology, self.scheme)
        for level, own in found.items():
            t, label = next(iter(own.items()))
            told = f"level {level!r} has the label {label!r}, unknown to the model"
            self.add(len(own), str(document.error(f"{told}: it is read as ? (--strict refuses it)", t)))
        return without_labels(document, found) if found else document
