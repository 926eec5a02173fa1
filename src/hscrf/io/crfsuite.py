"""CRFsuite's items: label and attributes, one token per line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from hscrf.io.cells import cell_text, number_in
from hscrf.io.documents import Document
from hscrf.io.lines import Skip, Source, blocks_of_lines, check_line, empty_file, reading, skipping, writing
from hscrf.io.tags import Scheme, check_tags


def read_crfsuite(
    source: Source, level: str = "label", *, scheme: Scheme | None = None, skip: Skip | None = None
) -> Iterator[Document]:
    r"""Read items of CRFsuite: lines ``label TAB attribute[:weight] TAB ...``. A blank line ends a sequence.

    The escapes ``\:`` and ``\\`` stand for a colon and a backslash.

    Parameters
    ----------
    source : path or stream
        The file, in text or bytes.
    level : str
        Name of the only level.
    scheme : {"plain", "bio", "bioes"}, or mapping from level to these, optional
        Checks the labels while they are read.
    skip : callable, optional
        Called with the error of each bad sequence, which is then left out. Without it, the error is raised.

    Yields
    ------
    Document
        Its tokens are dicts from attribute to weight.

    Raises
    ------
    DataFileError
        If the file cannot be read; it names the line.

    Examples
    --------
    >>> import io
    >>> next(read_crfsuite(io.StringIO("N\tw=a\\:b\tlength:3\n"))).tokens
    [{'w=a:b': 1.0, 'length': 3.0}]
    """
    with reading(source, skip is not None) as (file, lines):
        n = -1
        for n, block in enumerate(blocks_of_lines(((n, line, False) for n, line in lines), "\t", blank=" ")):
            rows, numbers = block.rows, block.numbers
            labels = {level: [row[0] or "?" for row in rows]}
            frame = Document([], labels, lines=numbers, file=file, number=n)
            with skipping(skip):
                check_line(block.bad, n)
                document = replace(frame, tokens=[_item(frame, t, row[1:]) for t, row in enumerate(rows)])
                check_tags(document, scheme)
                yield document
        if n < 0:
            raise empty_file(file)


_ATTRIBUTE = re.compile(r"((?:[^:\\]|\\.)*)(?::(.*))?", re.DOTALL)


def _item(frame: Document, t: int, fields: list[str]) -> dict[str, float]:
    """Attributes and weights of a time step; those that stand twice are summed."""
    item: dict[str, float] = {}
    for text in filter(None, fields):
        match = _ATTRIBUTE.fullmatch(text)
        weight = number_in(match[2]) if match and match[2] is not None else 1.0
        if match is None or weight is None:
            raise frame.error(f"the attribute {text!r} is not name or name:weight", t)
        name = re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)
        item[name] = item.get(name, 0.0) + weight
    return item


def write_crfsuite(target: Source, documents: Iterable[Document]) -> None:
    r"""Write items of CRFsuite that :func:`read_crfsuite` reads.

    Parameters
    ----------
    target : path or stream
        The file.
    documents : iterable of Document
        Sequences with one level.

    Examples
    --------
    >>> import io
    >>> file = io.StringIO()
    >>> write_crfsuite(file, [Document([{"w=a:b": 1.0, "n": 2.0}], {"tag": ["N"]})])
    >>> file.getvalue() == "N\tw=a\\:b\tn:2\n\n"
    True
    """
    with writing(target) as file:
        for document in documents:
            labels = list((document.labels or {"": ["?"] * len(document)}).values())
            if len(labels) != 1:
                raise ValueError(f"CRFsuite items have one label, but there are {len(labels)} levels")
            for label, token in zip(labels[0], document.tokens, strict=True):
                file.write("\t".join([label, *map(_attribute, *named_features(token))]) + "\n")
            file.write("\n")


def named_features(token: Any) -> tuple[list[str], list[float]]:
    """Names and weights of the features of a token."""
    if isinstance(token, Mapping):
        names = [f"{name}={value}" if isinstance(value, str) else name for name, value in token.items()]
        return names, [1.0 if isinstance(value, str) else float(value) for value in token.values()]
    return ([token] if isinstance(token, str) else list(token)), [1.0] * len(token)


def _attribute(name: str, weight: float) -> str:
    if not name or any(letter in name for letter in "\t\n\r"):
        raise ValueError(f"the attribute {name!r} cannot be written as a CRFsuite item")
    escaped = name.replace("\\", "\\\\").replace(":", "\\:")
    return escaped if weight == 1 else f"{escaped}:{cell_text(weight)}"
