"""Converters: the public originals of data sets become the files that the loaders read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from hscrf.files.replacing import replaced

CITATION_FILES = {"training.docs": "training.tsv", "dev.docs": "dev.tsv", "testing.docs": "testing.tsv"}
CITATION_LEVELS = 3  # deeper tags are dropped
TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)>")
TOKEN = re.compile(r"\w+|[^\w\s]")
ONE_IN = 5  # sequences of author names is to test

Rows = list[list[str]]


def convert_citations(originals: Path, folder: Path) -> None:
    """Write the UMass citations as columns: token and three levels in BIO notation."""
    for source, target in CITATION_FILES.items():
        lines = (originals / source).read_text(encoding="utf-8").split("\n")
        citations = [rows for line in lines if (rows := citation_rows(line))]
        with replaced(folder / target) as name:
            Path(name).write_text("".join(map(_columns, citations)), encoding="utf-8", newline="\n")


def citation_rows(line: str) -> Rows | None:
    """Rows of one citation with inline tags; None where the tags are not balanced.

    >>> citation_rows("<title> A <b> note </b> </title> <date> 2006 . </date>")[1:3]
    [['note', 'I-title', 'B-b', 'O'], ['2006', 'B-date', 'O', 'O']]
    >>> citation_rows("<title> A note") is None
    True
    """
    rows: Rows = []
    stack: list[str] = []  # open tags
    begun: list[bool] = []  # whether a token has been seen in each of them
    for word in line.split():
        tag = TAG.fullmatch(word)
        if tag is None:
            levels = [("I-" if seen else "B-") + name for name, seen in zip(stack, begun, strict=True)]
            rows.append([word, *(levels + ["O"] * CITATION_LEVELS)[:CITATION_LEVELS]])
            begun = [True] * len(stack)
        elif not tag[1]:
            stack, begun = [*stack, tag[2]], [*begun, False]
        elif not stack or stack[-1] != tag[2]:
            return None
        else:
            stack, begun = stack[:-1], begun[:-1]
    return None if stack else rows


def convert_author_names(originals: Path, folder: Path, names: Sequence[str], one_in: int = ONE_IN) -> None:
    """Write the author names of GROBID as columns: token, person and part in BIO notation.

    The sequences of all files, in the order of the files' names; a text that came before is left out. One in
    ``one_in`` is to test, chosen by a hash of its text.
    """
    seen: set[str] = set()
    parts: dict[str, list[str]] = {"train.tsv": [], "test.tsv": []}
    for name in sorted(names):
        for rows in author_rows((originals / name).read_bytes(), name):
            text = " ".join(row[0] for row in rows)
            if text not in seen:
                seen.add(text)
                number = int(hashlib.md5(text.encode("utf-8"), usedforsecurity=False).hexdigest(), 16)
                parts["train.tsv" if number % one_in else "test.tsv"].append(f"# source\t{name}\n{_columns(rows)}")
    for target, blocks in parts.items():
        with replaced(folder / target) as name:
            Path(name).write_text("".join(blocks), encoding="utf-8", newline="\n")


def author_rows(document: bytes, name: str) -> Iterator[Rows]:
    """Rows of each group of authors in a TEI document: token, person, part."""
    try:
        root = ElementTree.fromstring(document)
    except ElementTree.ParseError as error:
        raise ValueError(f"{name} is not XML: {error}") from None
    for author in root.iter():
        if _local(author) == "author":
            rows: Rows = []
            _add_rows(author, None, None, rows)
            if rows:
                yield rows


def _add_rows(element: ElementTree.Element, person: list[str] | None, part: list[str] | None, rows: Rows) -> None:
    """Append the tokens in an element; ``person`` and ``part`` hold the tag that the next token of each gets."""
    kind = _local(element)
    if kind == "persName":
        person = ["B-person"]
    elif kind not in ("author", "lb"):
        part = [f"B-{kind}"]
    _add_tokens(element.text, person, part, rows)
    for child in element:
        _add_rows(child, person, part, rows)
        _add_tokens(child.tail, person, part, rows)


def _add_tokens(text: str | None, person: list[str] | None, part: list[str] | None, rows: Rows) -> None:
    for token in TOKEN.findall(text or ""):
        rows.append([token, person[0] if person else "O", part[0] if part else "O"])
        for tag in (person, part):
            if tag:
                tag[0] = "I" + tag[0][1:]


def _local(element: ElementTree.Element) -> str:
    """The name of an element without its namespace; comments have none."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else "lb"


def _columns(rows: Rows) -> str:
    return "".join("\t".join(row) + "\n" for row in rows) + "\n"
