"""JSON Lines: one sequence per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from hscrf.errors import several
from hscrf.io.documents import Document
from hscrf.io.lines import Skip, Source, check_line, empty_file, reading, skipping, writing
from hscrf.io.tags import Scheme, check_tags


def read_jsonl(
    source: Source,
    levels: Sequence[str] | None = None,
    *,
    scheme: Scheme | None = None,
    unlabelled: bool = True,
    skip: Skip | None = None,
) -> Iterator[Document]:
    """Read one JSON object per line: ``{"tokens": [...], "labels": {level: ...}, "id": ...}``.

    Tokens are strings, lists of strings, dicts of features, or lists of numbers and strings. In these lists, null and
    NaN are missing values. ``"columns"`` may name the cells of lists. Labels of a level are one string per token (null
    or "?" if unknown) or segments [start, stop, state]. Other keys are kept in ``extra``.

    Parameters
    ----------
    source : path or stream
        The file, in text or bytes.
    levels : sequence of str, optional
        Levels from top to bottom. By default those of the file.
    scheme : {"plain", "bio", "bioes"}, or mapping from level to these, optional
        Checks the labels while they are read.
    unlabelled : bool
        Whether labels may be missing.
    skip : callable, optional
        Called with the error of each bad sequence, which is then left out. Without it, the error is raised.

    Yields
    ------
    Document

    Raises
    ------
    DataFileError
        If the file cannot be read; it names the line.

    Examples
    --------
    >>> import io
    >>> line = '{"tokens": ["the", "cat"], "labels": {"phrase": [[0, 2, "NP"]], "tag": ["D", null]}}'
    >>> next(read_jsonl(io.StringIO(line))).labels
    {'phrase': [(0, 2, 'NP')], 'tag': ['D', None]}
    """
    with reading(source, skip is not None) as (file, lines):
        number = n = 0
        for number, line in lines:
            if line.strip():
                n += 1
                with skipping(skip):
                    check_line(line, n - 1)
                    document = _json_document(n - 1, file, number, line, levels, unlabelled)
                    check_tags(document, scheme)
                    yield document
        if not number:
            raise empty_file(file)


def _json_document(
    n: int, file: str, number: int, line: str, levels: Sequence[str] | None, unlabelled: bool
) -> Document:
    """The sequence with number n, which stands on one line."""
    frame = Document([], lines=(number,), file=file, number=n)
    content = _parse_json(frame, line)
    if not isinstance(content, dict) or not isinstance(content.get("tokens"), list) or not content["tokens"]:
        raise frame.error('expected an object with a list "tokens" that is not empty')
    tokens, labels = content.pop("tokens"), content.pop("labels", None)
    name = content.pop("id") if isinstance(content.get("id"), str) else ""
    document = replace(frame, tokens=tokens, extra=content, name=name)
    _check_tokens(document)
    document = replace(document, columns=_json_columns(document))
    if labels is None and unlabelled:
        return document
    return replace(document, labels=_json_labels(document, labels, levels))


def _parse_json(frame: Document, line: str) -> Any:
    def refuse(constant: str) -> None:
        if constant != "NaN":  # which is missing
            raise ValueError(f"{constant} is not a finite number")

    try:
        return json.loads(line, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise frame.error(f"not valid JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError) as error:
        raise frame.error(f"not valid JSON: {error}") from None


def _check_tokens(document: Document) -> None:
    """Tokens are of one kind, and rows of numbers or strings are equally wide."""
    first = document.tokens[0]
    if not isinstance(first, (str, dict, list)):
        raise document.error(f"token 0 is {first!r}, expected a string, an object of features or a list")
    for t, token in enumerate(document.tokens):
        if type(token) is not type(first):
            raise document.error(f"token {t} is {token!r}, but token 0 is {first!r}: expected one kind", t)
        if isinstance(token, list) and not all_strings(token):
            if len(token) != len(first):
                raise document.error(f"token {t} has {several(len(token), 'cell')}, expected {len(first)}", t)
            for cell in token:
                if not isinstance(cell, str | int | float | None) or cell in (float("inf"), float("-inf")):
                    raise document.error(f"token {t} has the cell {cell!r}, expected a number, text or null", t)


def _json_columns(document: Document) -> tuple[str, ...]:
    """The names of the cells of rows, if "columns" has one for each; otherwise "columns" is an ordinary key."""
    names, first = document.extra.get("columns"), document.tokens[0]
    if not isinstance(names, list) or not isinstance(first, list) or not all(isinstance(name, str) for name in names):
        return ()
    return tuple(names) if len(set(names)) == len(names) == len(first) else ()


def all_strings(token: list[Any]) -> bool:
    """Return whether all cells of a token are strings."""
    return all(isinstance(cell, str) for cell in token)


def _json_labels(document: Document, labels: Any, levels: Sequence[str] | None) -> dict[str, Any]:
    if not isinstance(labels, dict) or not labels:
        raise document.error('expected "labels" with one entry for each level')
    for level in levels or ():
        if level not in labels and not set(labels) < set(levels or ()):
            raise document.error(f"level {level!r} has no labels, there are only {', '.join(labels)}")
    return {level: _json_level(document, level, labels.get(level)) for level in levels or labels}


def _json_level(document: Document, level: str, value: Any) -> Any:
    """Labels of one level: a column, segments, or the class of a root."""
    if isinstance(value, str) and level == "root":
        return value
    if value is None:
        return [None] * len(document)  # nothing is known
    if not isinstance(value, list):
        raise document.error(f"level {level!r} is {value!r}, expected a list of labels or segments")
    if not value or any(isinstance(item, list) for item in value):
        return _json_segments(document, level, value)
    if len(value) != len(document):
        raise document.error(f"level {level!r} has {several(len(value), 'label')} for {len(document)} tokens")
    for t, label in enumerate(value):
        if label is not None and not (isinstance(label, str) and label):
            raise document.error(f"level {level!r} has the label {label!r} at {t}, expected a string", t)
    return value


def _json_segments(document: Document, level: str, value: list[Any]) -> list[tuple[int, int, str]]:
    for item in value:
        whole = isinstance(item, list) and list(map(type, item)) == [int, int, str]
        if not (whole and 0 <= item[0] < item[1] <= len(document)):
            expected = f"[start, stop, state] with 0 <= start < stop <= {len(document)}"
            raise document.error(f"level {level!r} has the segment {json.dumps(item)}, expected {expected}")
    ordered = sorted(tuple(item) for item in value)
    for one, other in pairwise(ordered):
        if other[0] < one[1]:
            raise document.error(f"level {level!r}: the segments {list(one)} and {list(other)} overlap")
    return ordered


def write_jsonl(target: Source, documents: Iterable[Document]) -> None:
    """Write one JSON object per line, as :func:`read_jsonl` reads it.

    Parameters
    ----------
    target : path or stream
        The file.
    documents : iterable of Document
        The sequences.

    Examples
    --------
    >>> import sys
    >>> write_jsonl(sys.stdout, [Document(["the", "cat"], {"tag": ["D", "N"]}, name="a")])
    {"id": "a", "tokens": ["the", "cat"], "labels": {"tag": ["D", "N"]}}
    """
    with writing(target) as file:
        for document in documents:
            content: dict[str, Any] = {"id": document.name} if document.name else {}
            content["tokens"] = without_nan(document.tokens)
            if document.labels is not None:
                content["labels"] = document.labels
            file.write(json.dumps({**content, **document.extra}, ensure_ascii=False, default=_plain) + "\n")


def without_nan(tokens: Sequence[Any]) -> list[Any]:
    """Tokens as JSON can hold them: null where a number is missing.

    >>> without_nan([[0.5, float("nan")], [1.0, 2.0]])
    [[0.5, None], [1.0, 2.0]]
    """
    return [_known(token) for token in tokens]


def _known(token: Any) -> Any:
    if isinstance(token, dict):
        return {name: None if cell != cell else cell for name, cell in token.items()}
    return [None if cell != cell else cell for cell in token] if isinstance(token, (list, tuple)) else token


def _plain(value: Any) -> Any:
    """Lists and numbers that JSON can hold, from numpy's arrays and numbers."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot be written as JSON")
