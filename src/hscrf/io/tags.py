"""Labels of documents: their schemes, and Labels made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from hscrf.io.documents import Document
from hscrf.labels.labels import Labels
from hscrf.labels.reading import is_segments, read_labels
from hscrf.topology import Topology

Scheme = str | Mapping[str, str]


_TAGS = {
    "bio": (re.compile(r"[BI]-.+|O|\?", re.DOTALL), "B-x, I-x, O or ?"),
    "bioes": (re.compile(r"[BIESLU]-.+|O|\?", re.DOTALL), "B-x, I-x, E-x, S-x, O or ?"),
}


def check_tags(document: Document, scheme: Scheme | None) -> None:
    """Raise if a label is empty or does not fit its scheme."""
    for level, column in (document.labels or {}).items():
        if isinstance(column, str) or is_segments(column):
            continue
        kind = scheme.get(level, "plain") if isinstance(scheme, Mapping) else scheme
        pattern, expected = _TAGS.get(kind or "plain", (re.compile(".+", re.DOTALL), "a label or ?"))
        for tag in dict.fromkeys(column):
            if tag is not None and not pattern.fullmatch(tag):
                problem = f"level {level!r} has the label {tag!r}, expected {expected}"
                raise document.error(problem, column.index(tag))


def with_checked_tags(documents: Iterable[Document], scheme: Scheme | None) -> Iterator[Document]:
    """Yield the same documents, and check the labels of each."""
    for document in documents:
        check_tags(document, scheme)
        yield document


def detect_scheme(documents: Iterable[Document], level: str) -> str:
    """Return the tagging scheme of a level. Labels B-x and I-x are BIO; with E-x or S-x they are BIOES.

    Parameters
    ----------
    documents : iterable of Document
        Labelled sequences.
    level : str
        Name of the level.

    Returns
    -------
    {"plain", "bio", "bioes"}

    Examples
    --------
    >>> detect_scheme([Document(["a"], {"phrase": ["B-NP"], "tag": ["N"]})], "phrase")
    'bio'
    """
    prefixes = set()
    for document in documents:
        column = (document.labels or {}).get(level, [])
        if not is_segments(column) and not isinstance(column, str):
            prefixes |= {tag[0] for tag in set(column) - {None} if re.match(r"[BIESLU]-.", tag)}
    if not prefixes & {"B", "I"}:
        return "plain"
    return "bio" if prefixes <= {"B", "I"} else "bioes"


def to_labels(document: Document, topology: Topology, scheme: Scheme = "plain") -> Labels:
    """Return the labels of a document over a topology. Levels without labels are unknown.

    Parameters
    ----------
    document : Document
        The sequence.
    topology : Topology
        Levels and states.
    scheme : {"plain", "bio", "bioes"}, or mapping from level to these
        How label columns are written.

    Returns
    -------
    Labels

    Raises
    ------
    DataFileError
        If the labels cannot be read; it names the line.

    Examples
    --------
    >>> topology = Topology({"phrase": ["NP"], "tag": ["D", "N"]})
    >>> document = Document(["the", "cat"], {"phrase": [(0, 2, "NP")], "tag": ["D", "?"]})
    >>> labels = to_labels(document, topology)
    >>> labels.segments("phrase"), labels.column("tag")
    ([(0, 2, 'NP')], ['D', '?'])
    """
    given = {level: value for level, value in (document.labels or {}).items() if len(value)}
    columns = {level: value for level, value in given.items() if not is_segments(value)}
    schemes = {level: scheme if isinstance(scheme, str) else scheme.get(level, "plain") for level in columns}
    try:
        return read_labels(topology, given, schemes, len(document))
    except ValueError as error:
        raise document.error_of(error) from None


def unknown_labels(document: Document, topology: Topology, scheme: Scheme = "plain") -> dict[str, dict[int, str]]:
    """The labels of a document whose states a topology does not have: by level and step.

    >>> topology = Topology({"tag": ["D", "N"]})
    >>> unknown_labels(Document(["the", "cat"], {"tag": ["D", "X"]}), topology)
    {'tag': {1: 'X'}}
    """
    found: dict[str, dict[int, str]] = {}
    for level, column in (document.labels or {}).items():
        if level not in topology.levels or isinstance(column, str):
            continue
        states = set(map(str, topology.states[topology.level(level)]))
        kind = scheme if isinstance(scheme, str) else scheme.get(level, "plain")
        if is_segments(column):
            own = {start: state for start, _, state in column if str(state) not in states}
        else:
            own = {t: tag for t, tag in enumerate(column) if tag not in (None, "?") and _state(tag, kind) not in states}
        if own:
            found[level] = own
    return found


def without_labels(document: Document, unknown: Mapping[str, Mapping[int, str]]) -> Document:
    """The document with the labels found by :func:`unknown_labels` replaced by ``?``; such segments are removed."""
    labels = dict(document.labels or {})
    for level, own in unknown.items():
        if is_segments(labels[level]):
            labels[level] = [segment for segment in labels[level] if segment[0] not in own]
        else:
            labels[level] = ["?" if t in own else tag for t, tag in enumerate(labels[level])]
    return replace(document, labels=labels)


def _state(tag: str, scheme: str) -> str:
    """The state that a tag names."""
    return tag[2:] if scheme != "plain" and re.match("[BIESLU]-", tag) else tag
