"""Files of labelled sequences: columns, JSON Lines, long tables and CRFsuite items.

Readers are iterators of :class:`Document`; each complains by a :class:`DataFileError` that names file and line. Writers
take documents from anywhere and give back what was read, plus whatever has been put into ``extra`` since.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from hscrf.labels import InfeasibleError, Labels, read_labels
from hscrf.labels import is_segments as some_segments
from hscrf.topology import Topology

__all__ = [
    "DataFileError",
    "Document",
    "column_names",
    "detect_scheme",
    "read_columns",
    "read_crfsuite",
    "read_jsonl",
    "read_table",
    "to_labels",
    "write_columns",
    "write_crfsuite",
    "write_jsonl",
    "write_table",
]

NUMERIC = 0.9  # a column of a table holds numbers if this share of its cells does; the others are errors then

Source = Any  # a path, or a stream of text or bytes
Scheme = str | Mapping[str, str]
Numbered = Iterator[tuple[int, str]]


class DataFileError(ValueError):
    """A data file is not as it should be; says where."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}, line {line}: {problem}")
        self.file, self.line, self.problem = file, line, problem


@dataclass(frozen=True)
class Document:
    """One sequence of a file.

    A token is a list of strings (the feature columns), a dict of features, a list of numbers, or a string. Labels of a
    level are one string per step, ``"?"`` where unknown, or half-open segments ``(start, stop, state)``.

    >>> Document([["the"], ["cat"]], {"tag": ["D", "?"]}).labels["tag"]
    ['D', '?']
    """

    tokens: list[Any]  # one per time step
    labels: dict[str, Any] | None = None  # by level, top to bottom; None if the file has none
    extra: dict[str, Any] = field(default_factory=dict)  # other columns or keys: predictions, times, ...
    name: str = ""  # of the sequence, where the format has one
    comments: tuple[str, ...] = ()
    columns: tuple[str, ...] = field(default=(), compare=False)  # names of all columns of the file, in its order
    lines: Sequence[int] = field(default=(0,), compare=False)  # where each time step stands
    file: str = field(default="", compare=False)

    def __len__(self) -> int:
        return len(self.tokens)

    def error(self, problem: str, step: int = 0) -> DataFileError:
        """An error at the line of a time step."""
        return DataFileError(self.file, self.lines[min(step, len(self.lines) - 1)], problem)

    def step_error(self, problem: str) -> DataFileError:
        """An error at the line of the step that the problem speaks of, "at 7" or "from 7"."""
        found = re.search(r" (?:at|from) (\d+)\b", problem)
        return self.error(
            f"{problem} (steps are counted from 0 at line {self.lines[0]})", int(found[1]) if found else 0
        )


# ------------------------------------------------------------------------------
# Lines


@contextmanager
def _reading(source: Source) -> Iterator[tuple[str, Numbered]]:
    """The name of a source and its numbered lines without their ends."""
    if hasattr(source, "read"):
        name = str(getattr(source, "name", "<stream>"))
        yield name, _lines(name, source)
    else:
        with open(source, "rb") as file:
            yield os.fspath(source), _lines(os.fspath(source), file)


def _lines(name: str, stream: Iterable[bytes | str]) -> Numbered:
    for number, line in enumerate(stream, start=1):
        try:
            text = line if isinstance(line, str) else line.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise DataFileError(name, number, f"byte {error.start + 1} is 0x{byte:02x}, expected UTF-8") from None
        yield number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n")


@contextmanager
def _writing(target: Source) -> Iterator[Any]:
    """A text stream to write to."""
    if hasattr(target, "write"):
        yield target
    else:
        with open(target, "w", encoding="utf-8", newline="\n") as file:
            yield file


def _empty(file: str) -> DataFileError:
    return DataFileError(file, 1, "the file is empty, expected at least one sequence")


# ------------------------------------------------------------------------------
# Columns


def read_columns(
    source: Source,
    levels: Sequence[str] | Mapping[str, int] = (),
    names: Sequence[str] | None = None,
    *,
    separator: str | None = None,
    comment: str | None = None,
    scheme: Scheme | None = None,
    extra: Sequence[str] = (),
    unlabelled: bool = False,
    loose: bool = False,
) -> Iterator[Document]:
    """Read one token a line and its columns; a blank line ends a sequence.

    ``levels`` names the label columns from top to bottom, as a mapping with their places (0 is the first). ``names``
    are the names of all columns; without them the levels are the last columns, the others are called by their places.
    ``separator`` None is any run of spaces and tabs. Lines that begin with ``comment`` are kept apart. With a
    ``scheme`` (``"bio"``, ``"bioes"``) labels are checked as they are read. ``extra`` names columns after all others.
    ``unlabelled`` allows files without the label columns; with ``loose`` those of ``extra`` may be missing, and others,
    called by their places, may follow.

    >>> import io
    >>> file = io.StringIO("the D B-NP\\ncat N I-NP\\n\\nsleeps V B-VP\\n")
    >>> first, second = read_columns(file, levels={"phrase": 2, "tag": 1})
    >>> first.tokens, first.labels
    ([['the'], ['cat']], {'phrase': ['B-NP', 'I-NP'], 'tag': ['D', 'N']})
    """
    with _reading(source) as (file, lines):
        frame: _Frame | None = None
        for comments, rows, numbers in _blocks(lines, separator, comment):
            frame = frame or _frame(file, numbers[0], len(rows[0]), levels, names, extra, unlabelled, loose)
            document = frame.document(rows, numbers, comments)
            check_tags(document, scheme)
            yield document
        if frame is None:
            raise _empty(file)


def _blocks(
    lines: Numbered, separator: str | None, comment: str | None
) -> Iterator[tuple[list[str], list[list[str]], list[int]]]:
    """Comments, rows and line numbers of each block of lines."""
    comments: list[str] = []
    rows: list[list[str]] = []
    numbers: list[int] = []
    for number, line in lines:
        if comment and line.startswith(comment):
            comments.append(line)
        elif line.strip(" \t" if separator is None else " "):
            rows.append(_cells(line, separator))
            numbers.append(number)
        elif rows:
            yield comments, rows, numbers
            comments, rows, numbers = [], [], []
    if rows:
        yield comments, rows, numbers


def _cells(line: str, separator: str | None) -> list[str]:
    """The cells of a line; other white space than spaces and tabs belongs to them."""
    return line.split(separator) if separator else re.split("[ \t]+", line.strip(" \t"))


def column_names(
    width: int, levels: Sequence[str] | Mapping[str, int], names: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Names of all columns of a file: those given, else those of the levels and numbers.

    >>> column_names(4, ["phrase", "tag"]), column_names(3, {"phrase": 2, "tag": 1})
    (('0', '1', 'phrase', 'tag'), ('0', 'tag', 'phrase'))
    """
    if names is not None:
        _check_names(levels, names)
        return tuple(names)
    places = dict(levels) if isinstance(levels, Mapping) else _last_places(width, levels)
    for level, place in places.items():
        if not 0 <= place < width:
            raise ValueError(f"level {level!r} is column {place + 1}, but there are {width} columns")
    if len(set(places.values())) < len(places):
        raise ValueError(f"two of the levels {', '.join(map(repr, places))} are the same column")
    by_place = {place: level for level, place in places.items()}
    return tuple(by_place.get(k, str(k)) for k in range(width))


def _last_places(width: int, levels: Sequence[str]) -> dict[str, int]:
    return {level: width - len(levels) + k for k, level in enumerate(levels)}


def _check_names(levels: Iterable[str], names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"two of the columns {', '.join(names)} have the same name")
    for level in levels:
        if level not in names:
            raise ValueError(f"there is no column {level!r}, only {', '.join(names)}")


@dataclass(frozen=True)
class _Frame:
    """Which columns of a file are what."""

    file: str
    names: tuple[str, ...]  # of all columns in this file
    features: tuple[int, ...]
    levels: dict[str, int] | None
    extra: dict[str, int]

    def document(self, rows: list[list[str]], numbers: list[int], comments: list[str]) -> Document:
        for number, row in zip(numbers, rows, strict=True):
            if len(row) != len(self.names):
                raise DataFileError(self.file, number, f"there are {len(row)} columns, expected {len(self.names)}")
        return Document(
            tokens=[[row[k] for k in self.features] for row in rows],
            labels=None if self.levels is None else _pick(rows, self.levels),
            extra=_pick(rows, self.extra),
            comments=tuple(comments),
            columns=self.names,
            lines=numbers,
            file=self.file,
        )


def _pick(rows: list[list[str]], places: Mapping[str, int]) -> dict[str, list[str]]:
    return {name: [row[k] for row in rows] for name, k in places.items()}


def _frame(
    file: str,
    number: int,
    width: int,
    levels: Sequence[str] | Mapping[str, int],
    names: Sequence[str] | None,
    extra: Sequence[str],
    unlabelled: bool,
    loose: bool,
) -> _Frame:
    """The columns of a file, found from the width of its first row."""
    if loose and names is not None:
        extra = _loose_columns(width - len(names), extra)
    least = len(levels) + len(extra)
    if width < least and names is None and not isinstance(levels, Mapping):
        raise DataFileError(file, number, f"there are {width} columns, expected at least {least}")
    try:
        known = column_names(width - len(extra), levels, names)
    except ValueError as error:
        raise DataFileError(file, number, str(error)) from None
    bare = tuple(name for name in known if name not in levels)
    labelled = not (unlabelled and width == len(bare) + len(extra))
    used = (*(known if labelled else bare), *extra)
    if width != len(used):
        raise DataFileError(file, number, f"there are {width} columns, expected {len(used)} ({', '.join(used)})")
    place = {name: k for k, name in enumerate(used)}
    own = {level: place[level] for level in levels} if labelled and levels else None
    return _Frame(file, used, tuple(place[name] for name in bare), own, {name: place[name] for name in extra})


def _loose_columns(count: int, extra: Sequence[str]) -> list[str]:
    """Names of the columns beyond those that must be there: all of ``extra`` and numbers, or none."""
    return [] if count <= 0 or count < len(extra) else [*extra, *map(str, range(count - len(extra)))]


def write_columns(target: Source, documents: Iterable[Document], separator: str | None = None) -> None:
    """Write what :func:`read_columns` reads: the columns in the order they came, then those of ``extra``.

    >>> write_columns(sys.stdout, [Document([["the"], ["cat"]], {"tag": ["D", "N"]})])
    the D
    cat N
    <BLANKLINE>
    """
    with _writing(target) as file:
        for document in documents:
            for comment in document.comments:
                file.write(comment + "\n")
            for row in zip(*_all_columns(document).values(), strict=True):
                file.write(_line(row, separator) + "\n")
            file.write("\n")


def _all_columns(document: Document) -> dict[str, list[str]]:
    """Every column by name, in the order of the file, new ones last."""
    tokens = [[token] if isinstance(token, str) else token for token in document.tokens]
    given = {**(document.labels or {}), **document.extra}
    features = [name for name in document.columns if name not in given]
    if not document.columns:
        features = [str(k) for k in range(len(tokens[0]))]
    columns = {name: [token[k] for token in tokens] for k, name in enumerate(features)} | given
    order = [*document.columns, *(name for name in columns if name not in document.columns)]
    return {name: columns[name] for name in order}


def _line(row: Sequence[str], separator: str | None) -> str:
    """A row as a line that reads back as the same row."""
    line = (separator or " ").join(row)
    blank = not line.strip(" \t" if separator is None else " ")
    if blank or "\n" in line or "\r" in line or _cells(line, separator) != list(row):
        raise ValueError(f"the row {list(row)} cannot be written with the separator {separator or ' '!r}")
    return line


# ------------------------------------------------------------------------------
# JSON Lines


def read_jsonl(
    source: Source, levels: Sequence[str] | None = None, *, scheme: Scheme | None = None, unlabelled: bool = True
) -> Iterator[Document]:
    """Read one JSON object a line: ``{"tokens": [...], "labels": {level: ...}, "id": ...}``.

    Tokens are strings, lists of strings, dicts of features or lists of numbers. Labels of a level are one string per
    token (null or "?" unknown) or segments [start, stop, state]. Other keys are kept in ``extra``.

    >>> import io
    >>> line = '{"tokens": ["the", "cat"], "labels": {"phrase": [[0, 2, "NP"]], "tag": ["D", null]}}'
    >>> next(read_jsonl(io.StringIO(line))).labels
    {'phrase': [(0, 2, 'NP')], 'tag': ['D', None]}
    """
    with _reading(source) as (file, lines):
        number = 0
        for number, line in lines:
            if line.strip():
                document = _json_document(file, number, line, levels, unlabelled)
                check_tags(document, scheme)
                yield document
        if not number:
            raise _empty(file)


def _json_document(file: str, number: int, line: str, levels: Sequence[str] | None, unlabelled: bool) -> Document:
    content = _parse_json(file, number, line)
    if not isinstance(content, dict) or not isinstance(content.get("tokens"), list) or not content["tokens"]:
        raise DataFileError(file, number, 'expected an object with a list "tokens" that is not empty')
    tokens, labels = content.pop("tokens"), content.pop("labels", None)
    name = content.pop("id") if isinstance(content.get("id"), str) else ""
    document = Document(tokens, None, content, name, lines=(number,), file=file)
    _check_tokens(document)
    if labels is None and unlabelled:
        return document
    return Document(tokens, _json_labels(document, labels, levels), content, name, lines=(number,), file=file)


def _parse_json(file: str, number: int, line: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no finite number")

    try:
        return json.loads(line, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise DataFileError(file, number, f"not valid JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError) as error:
        raise DataFileError(file, number, f"not valid JSON: {error}") from None


def _check_tokens(document: Document) -> None:
    """Tokens are of one kind, and rows of numbers or strings are equally wide."""
    first = document.tokens[0]
    if not isinstance(first, (str, dict, list)):
        raise document.error(f"token 0 is {first!r}, expected a string, an object of features or a list")
    for t, token in enumerate(document.tokens):
        if type(token) is not type(first):
            raise document.error(f"token {t} is {token!r}, but token 0 is {first!r}: expected one kind")
        if isinstance(token, list) and len(token) != len(first) and not _all_strings(token):
            raise document.error(f"token {t} has {len(token)} numbers, expected {len(first)}")


def _all_strings(token: list[Any]) -> bool:
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
        raise document.error(f"level {level!r} has {len(value)} labels for {len(document)} tokens")
    for t, label in enumerate(value):
        if label is not None and not (isinstance(label, str) and label):
            raise document.error(f"level {level!r} has the label {label!r} at {t}, expected a string")
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
    """Write one object a line, as :func:`read_jsonl` reads it.

    >>> write_jsonl(sys.stdout, [Document(["the", "cat"], {"tag": ["D", "N"]}, name="a")])
    {"id": "a", "tokens": ["the", "cat"], "labels": {"tag": ["D", "N"]}}
    """
    with _writing(target) as file:
        for document in documents:
            content: dict[str, Any] = {"id": document.name} if document.name else {}
            content["tokens"] = document.tokens
            if document.labels is not None:
                content["labels"] = document.labels
            file.write(json.dumps({**content, **document.extra}, ensure_ascii=False, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    """What JSON knows for numpy's arrays and numbers."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot be written as JSON")


# ------------------------------------------------------------------------------
# Long tables


def read_table(
    source: Source,
    levels: Sequence[str] = (),
    *,
    sequence: str | None = "sequence",
    time: str | None = None,
    features: Sequence[str] | None = None,
    numeric: Sequence[str] | None = None,
    separator: str = ",",
    scheme: Scheme | None = None,
    extra: Sequence[str] = (),
    unlabelled: bool = False,
    loose: bool = False,
) -> Iterator[Document]:
    """Read a long table with one row per time step: a CSV file with a header, a Parquet file, or a DataFrame.

    ``sequence`` names the column that tells sequences apart (None: all is one), ``time`` the one that orders their
    steps (without it a column ``time`` if there is one, else the order of the rows). ``features`` are by default all
    other columns but levels and ``extra``; those in ``numeric`` hold numbers, by default those with nothing else. If
    all do, a token is a list of numbers, else a dict. An empty label is unknown. With ``loose`` columns of ``extra``
    may be missing.

    >>> import io
    >>> file = io.StringIO("sequence,time,x,tag\\na,1,0.5,N\\na,0,2,D\\nb,0,1,\\n")
    >>> [(d.name, d.tokens, d.labels) for d in read_table(file, levels=["tag"])]
    [('a', [[2.0], [0.5]], {'tag': ['D', 'N']}), ('b', [[1.0]], {'tag': ['?']})]
    """
    with _table(source, separator) as (file, header, rows):
        table = list(rows)
    if not table:
        raise _empty(file)
    extra = [name for name in extra if not loose or name in header]
    plan = _table_plan(file, header, levels, sequence, time, features, extra, unlabelled)
    reads = [_cell_reader(file, header, table, name, numeric) for name in plan.features]
    for name, group in _groups(header, table, sequence).items():
        document = plan.document(name, _in_time(header, group, plan.time), reads)
        check_tags(document, scheme)
        yield document


Row = tuple[int, Sequence[Any]]


@contextmanager
def _table(source: Source, separator: str) -> Iterator[tuple[str, list[str], Iterable[Row]]]:
    """Name, header and numbered rows of a CSV file, a Parquet file or a DataFrame."""
    if isinstance(source, (str, os.PathLike)) and os.fspath(source).endswith(".parquet"):
        import pandas

        name, source = os.fspath(source), pandas.read_parquet(source)
    else:
        name = "DataFrame"
    if hasattr(source, "iloc"):
        rows = enumerate(source.itertuples(index=False, name=None), start=1)
        yield name, [str(column) for column in source.columns], rows
        return
    with _reading(source) as (name, lines):
        records = _records(name, lines, separator)
        header = next(records, None)
        if header is None:
            raise _empty(name)
        yield name, list(header[1]), _even(name, header[1], records)


def _records(file: str, lines: Numbered, separator: str) -> Iterator[Row]:
    """Records of a CSV file with the number of the line on which each begins."""
    csv.field_size_limit(sys.maxsize if sys.maxsize < 2**31 else 2**31 - 1)
    reader = csv.reader((line + "\n" for _, line in lines), delimiter=separator, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataFileError(file, number, f"not valid CSV: {error}") from None
        if record:
            yield number, record


def _even(file: str, header: Sequence[Any], records: Iterator[Row]) -> Iterator[Row]:
    for number, record in records:
        if len(record) != len(header):
            raise DataFileError(file, number, f"there are {len(record)} columns, expected {len(header)}")
        yield number, record


@dataclass(frozen=True)
class _TablePlan:
    """Which columns of a table are what."""

    file: str
    header: list[str]
    features: list[str]
    levels: list[str] | None
    time: str | None
    extra: list[str]

    def document(self, name: str, rows: list[Row], reads: Sequence[Any]) -> Document:
        place = {column: k for k, column in enumerate(self.header)}
        values = {column: [row[place[column]] for _, row in rows] for column in self.header}
        lines = [number for number, _ in rows]
        kinds = zip(self.features, reads, strict=True)
        cells = [[read(*cell) for cell in zip(values[column], lines, strict=True)] for column, read in kinds]
        steps = list(map(list, zip(*cells, strict=True)))
        if not all(isinstance(value, float) for step in steps for value in step):
            steps = [dict(zip(self.features, step, strict=True)) for step in steps]  # type: ignore[misc]
        labels = None if self.levels is None else {level: list(map(_label, values[level])) for level in self.levels}
        extra = {column: values[column] for column in self.extra}
        return Document(steps, labels, extra, name, columns=tuple(self.header), lines=lines, file=self.file)


def _table_plan(
    file: str,
    header: list[str],
    levels: Sequence[str],
    sequence: str | None,
    time: str | None,
    features: Sequence[str] | None,
    extra: Sequence[str],
    unlabelled: bool,
) -> _TablePlan:
    labelled = not (unlabelled and not set(levels) & set(header))
    time = time or ("time" if "time" in header and "time" not in (features or ()) else None)
    own = [*(levels if labelled else ()), *filter(None, [sequence, time]), *extra]
    try:
        _check_names([*own, *(features or ())], header)
    except ValueError as error:
        known = sequence in header or sequence is None
        hint = "" if known else " (option sequence says which column names the sequence)"
        raise DataFileError(file, 1, f"{error}{hint}") from None
    used = list(features) if features is not None else [name for name in header if name not in own]
    if not used:
        raise DataFileError(file, 1, f"no column is left for features, only {', '.join(header)}")
    taken = {*used, *levels, sequence}
    rest = [name for name in header if name not in taken]
    return _TablePlan(file, header, used, list(levels) if labelled and levels else None, time, rest)


def _cell_reader(file: str, header: list[str], table: list[Row], name: str, numeric: Sequence[str] | None) -> Any:
    """A function of a cell and its line: its number if the column holds numbers, else its text."""
    k = header.index(name)
    numbers = sum(_number(row[k]) is not None for _, row in table)
    holds = name in numeric if numeric is not None else numbers >= NUMERIC * len(table)

    def read(cell: Any, line: int) -> Any:
        value = _number(cell) if holds else str(cell)
        if value is None:
            raise DataFileError(file, line, f"column {name!r} is {cell!r}, expected a finite number")
        return value

    return read


def _number(cell: Any) -> float | None:
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return None
    return value if np.isfinite(value) else None


def _label(cell: Any) -> str:
    """The label in a cell; missing is unknown."""
    missing = cell is None or cell == "" or cell != cell
    return "?" if missing else str(cell)


def _groups(header: list[str], table: list[Row], sequence: str | None) -> dict[str, list[Row]]:
    """Rows by sequence, in the order in which sequences first appear."""
    if sequence is None:
        return {"": table}
    k = header.index(sequence)
    groups: dict[str, list[Row]] = {}
    for row in table:
        groups.setdefault(str(row[1][k]), []).append(row)
    return groups


def _in_time(header: list[str], rows: list[Row], time: str | None) -> list[Row]:
    """Rows in the order of the time column: as numbers if they all are, else as they compare."""
    if time is None:
        return rows
    k = header.index(time)
    numbers = [_number(row[k]) for _, row in rows]
    keys: list[Any] = [row[k] for _, row in rows] if None in numbers else numbers
    return [rows[n] for n in sorted(range(len(rows)), key=keys.__getitem__)]


def write_table(
    target: Source,
    documents: Iterable[Document],
    *,
    sequence: str | None = "sequence",
    features: Sequence[str] | None = None,
    separator: str = ",",
) -> None:
    """Write a long table, CSV or (by its name) Parquet: the columns in the order they came, then new ones.

    ``features`` names the columns of tokens that are lists of numbers and came from no table.

    >>> write_table(sys.stdout, [Document([[0.5], [2.0]], {"tag": ["D", "N"]}, name="a")], features=["x"])
    sequence,x,tag
    a,0.5,D
    a,2,N
    """
    if isinstance(target, (str, os.PathLike)) and os.fspath(target).endswith(".parquet"):
        import pandas

        tables = [pandas.DataFrame(_table_columns(document, sequence, features)) for document in documents]
        pandas.concat(tables, ignore_index=True).to_parquet(target, index=False)
        return
    with _writing(target) as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        header: list[str] | None = None
        for document in documents:
            columns = _table_columns(document, sequence, features)
            if header is None:
                header = list(columns)
                writer.writerow(header)
            writer.writerows(zip(*([_text(cell) for cell in columns[name]] for name in header), strict=True))


def _table_columns(document: Document, sequence: str | None, features: Sequence[str] | None) -> dict[str, list[Any]]:
    given = {**(document.labels or {}), **document.extra}
    if sequence is not None:
        given = {sequence: [document.name] * len(document), **given}
    names = features or [name for name in document.columns if name not in given]
    if isinstance(document.tokens[0], Mapping):
        names = list(document.tokens[0])
    tokens = [[t[name] for name in names] if isinstance(t, Mapping) else t for t in document.tokens]
    columns = dict(zip(names, map(list, zip(*tokens, strict=True)), strict=True))
    order = document.columns or (*([sequence] if sequence else []), *names)
    every = {**columns, **given}
    return {name: every[name] for name in [*order, *(name for name in every if name not in order)]}


def _text(cell: Any) -> str:
    """A cell of a CSV file; whole numbers without a point."""
    return repr(cell).removesuffix(".0") if isinstance(cell, float) else str(cell)


# ------------------------------------------------------------------------------
# CRFsuite items


def read_crfsuite(source: Source, level: str = "label", *, scheme: Scheme | None = None) -> Iterator[Document]:
    r"""Read items ``label TAB attribute[:weight] TAB ...``; ``\:`` and ``\\`` escape, a blank line ends a sequence.

    >>> import io
    >>> next(read_crfsuite(io.StringIO("N\tw=a\\:b\tlength:3\n"))).tokens
    [{'w=a:b': 1.0, 'length': 3.0}]
    """
    with _reading(source) as (file, lines):
        found = False
        for _, rows, numbers in _blocks(lines, "\t", None):
            found = True
            labels = {level: [row[0] or "?" for row in rows]}
            tokens = [_item(file, number, row[1:]) for number, row in zip(numbers, rows, strict=True)]
            document = Document(tokens, labels, lines=numbers, file=file)
            check_tags(document, scheme)
            yield document
        if not found:
            raise _empty(file)


_ATTRIBUTE = re.compile(r"((?:[^:\\]|\\.)*)(?::(.*))?", re.DOTALL)


def _item(file: str, number: int, fields: list[str]) -> dict[str, float]:
    """Attributes and weights; those that stand twice are summed."""
    item: dict[str, float] = {}
    for text in filter(None, fields):
        match = _ATTRIBUTE.fullmatch(text)
        weight = _number(match[2]) if match and match[2] is not None else 1.0
        if match is None or weight is None:
            raise DataFileError(file, number, f"the attribute {text!r} is not name or name:weight")
        name = re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)
        item[name] = item.get(name, 0.0) + weight
    return item


def write_crfsuite(target: Source, documents: Iterable[Document]) -> None:
    r"""Write items as :func:`read_crfsuite` reads them; the label is that of the only level.

    >>> import io
    >>> file = io.StringIO()
    >>> write_crfsuite(file, [Document([{"w=a:b": 1.0, "n": 2.0}], {"tag": ["N"]})])
    >>> file.getvalue() == "N\tw=a\\:b\tn:2\n\n"
    True
    """
    with _writing(target) as file:
        for document in documents:
            labels = list((document.labels or {"": ["?"] * len(document)}).values())
            if len(labels) != 1:
                raise ValueError(f"CRFsuite items have one label, but there are {len(labels)} levels")
            for label, token in zip(labels[0], document.tokens, strict=True):
                file.write("\t".join([label, *map(_attribute, *_named(token))]) + "\n")
            file.write("\n")


def _named(token: Any) -> tuple[list[str], list[float]]:
    """Names and weights of the features of a token."""
    if isinstance(token, Mapping):
        return [n if not isinstance(v, str) else f"{n}={v}" for n, v in token.items()], [
            1.0 if isinstance(v, str) else float(v) for v in token.values()
        ]
    return ([token] if isinstance(token, str) else list(token)), [1.0] * len(token)


def _attribute(name: str, weight: float) -> str:
    if not name or any(letter in name for letter in "\t\n\r"):
        raise ValueError(f"the attribute {name!r} cannot be written as a CRFsuite item")
    escaped = name.replace("\\", "\\\\").replace(":", "\\:")
    return escaped if weight == 1 else f"{escaped}:{_text(weight)}"


# ------------------------------------------------------------------------------
# Labels

_TAGS = {
    "bio": (re.compile(r"[BI]-.+|O|\?", re.DOTALL), "B-x, I-x, O or ?"),
    "bioes": (re.compile(r"[BIESLU]-.+|O|\?", re.DOTALL), "B-x, I-x, E-x, S-x, O or ?"),
}


def check_tags(document: Document, scheme: Scheme | None) -> None:
    """Labels are not empty and fit their scheme."""
    for level, column in (document.labels or {}).items():
        if isinstance(column, str) or is_segments(column):
            continue
        kind = scheme.get(level, "plain") if isinstance(scheme, Mapping) else scheme
        pattern, expected = _TAGS.get(kind or "plain", (re.compile(".+", re.DOTALL), "a label or ?"))
        for tag in set(column) - {None}:
            if not pattern.fullmatch(tag):
                problem = f"level {level!r} has the label {tag!r}, expected {expected}"
                raise document.error(problem, column.index(tag))


def is_segments(column: Any) -> bool:
    """Whether labels of a level are segments, perhaps none, not one label per step."""
    return len(column) == 0 or some_segments(column)


def detect_scheme(documents: Iterable[Document], level: str) -> str:
    """The scheme that the labels of a level look like: one B-x or I-x says BIO, one E-x or S-x besides says BIOES.

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
    """The labels of a document over a topology; levels it does not have are unknown.

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
    except InfeasibleError as error:
        raise document.step_error(str(error)) from None
    except ValueError as error:
        raise document.error(str(error), _bad_step(topology, columns, schemes)) from None


def _bad_step(topology: Topology, columns: Mapping[str, Any], schemes: Mapping[str, str]) -> int:
    """The first step whose label makes no sense by itself."""
    for level, column in columns.items():
        for t, tag in enumerate([column] if isinstance(column, str) else column):
            try:
                Labels.from_columns(topology, {level: [tag]}, scheme={level: schemes[level]})
            except ValueError:
                return t
    return 0
