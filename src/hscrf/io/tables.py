"""Long tables: a row for each time step, CSV or Parquet."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from hscrf.errors import DataFileError
from hscrf.files.replacing import replaced
from hscrf.io.cells import Dated, cell_text, date_in, is_empty_cell, number_in, sign_hint
from hscrf.io.columns import check_column_names, is_ours, number_of
from hscrf.io.documents import Document
from hscrf.io.lines import Numbered, Skip, Source, empty_file, reading, skipping, writing
from hscrf.io.tags import Scheme, check_tags
from hscrf.observations.columns import is_decimal_comma
from hscrf.versions import pandas_for

BY_NAME = "sequence"  # default name of the column that names sequences
NUMERIC = 0.9  # a column holds numbers if this share of its known cells does; its other cells are errors
SEQUENCE_HINT = (
    " (blank lines can separate sequences; or --sequence NAME, in Python sequence=NAME, says which column names them; "
    "--sequence none: all rows are one)"
)


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
    skip: Skip | None = None,
    decimal: str | None = None,
    dates: Sequence[str] | None = None,
) -> Iterator[Document]:
    r"""Read a long table with one row for each step: a CSV file with a header, a Parquet file, or a DataFrame.

    If all features are numbers, a token is a list of them, else a dict. An empty label is unknown.

    Parameters
    ----------
    source : path, stream or DataFrame
        The table.
    levels : sequence of str
        Label columns from top to bottom.
    sequence : str, optional
        The column that names the sequence. Without a column ``sequence`` empty rows, or blank lines, are between
        sequences, and these are named 1, 2 and so on. None: all rows are one sequence.
    time : str, optional
        The column that orders the steps. By default a column ``time`` if there is one, else the order of the rows.
    features : sequence of str, optional
        Feature columns. By default all others, without those that predictions and the studio append to a level
        (``LEVEL_predicted``, ``LEVEL_by`` and so on).
    numeric : sequence of str, optional
        Features that are numbers. By default those with numbers in 9 of 10 cells that are not empty. An empty cell, NA
        or NaN is a missing value.
    separator : str
        Separator of a CSV file.
    scheme : {"plain", "bio", "bioes"}, or mapping from level to these, optional
        Checks the labels while they are read.
    extra : sequence of str
        Columns that are kept in ``extra``.
    unlabelled : bool
        Whether the table may lack the label columns.
    loose : bool
        Whether columns of ``extra`` and features may be missing.
    skip : callable, optional
        Called with the error of each bad sequence, which is then left out. Without it, the error is raised.
    decimal : {".", ","}, optional
        Decimal sign. By default it is detected.
    dates : sequence of str, optional
        Numeric columns with dates (ISO 8601), which become seconds since 1970.

    Yields
    ------
    Document

    Raises
    ------
    DataFileError
        If the table cannot be read; it names the line.

    Examples
    --------
    >>> import io
    >>> file = io.StringIO("sequence,time,x,tag\na,1,0.5,N\na,0,2,D\nb,0,1,\n")
    >>> [(d.name, d.tokens, d.labels) for d in read_table(file, levels=["tag"])]
    [('a', [[2.0], [0.5]], {'tag': ['D', 'N']}), ('b', [[1.0]], {'tag': ['?']})]
    """
    with _table(source, separator) as (file, header, rows):
        table = list(rows)
    if sequence == BY_NAME and sequence not in header:
        header, table = _by_empty_rows(header, table)
    table = [row for row in table if row[1]]
    if not table:
        raise empty_file(file)
    extra = [name for name in extra if not loose or name in header]
    plan = _table_plan(file, header, levels, sequence, time, features, extra, unlabelled, loose)
    places = [header.index(name) for name in plan.features]
    decimal = decimal or decimal_sign([row[k] for k in places for _, row in table])
    reads = [_cell_reader(header, table, name, numeric, dates, decimal) for name in plan.features]
    for n, (name, group) in enumerate(_groups(header, table, sequence).items()):
        with skipping(skip):
            document = plan.document(n, name, _in_time(header, group, plan.time), reads)
            check_tags(document, scheme)
            yield replace(document, decimal=decimal)


Row = tuple[int, Sequence[Any]]


@contextmanager
def _table(source: Source, separator: str) -> Iterator[tuple[str, list[str], Iterable[Row]]]:
    """Name, header and numbered rows of a CSV file, a Parquet file or a DataFrame."""
    if isinstance(source, (str, os.PathLike)) and os.fspath(source).endswith(".parquet"):
        name, source = os.fspath(source), _parquet(os.fspath(source))
    else:
        name = "DataFrame"
    if hasattr(source, "iloc"):
        rows = enumerate(source.itertuples(index=False, name=None), start=1)
        yield name, [str(column) for column in source.columns], rows
        return
    with reading(source) as (name, lines):
        records = _records(name, lines, separator)
        header = next((record for record in records if record[1]), None)
        if header is None:
            raise empty_file(name)
        yield name, list(header[1]), _even(name, header[1], records)


def _parquet(file: str) -> Any:
    """The DataFrame in a Parquet file."""
    pandas = pandas_for("Parquet")
    try:
        return pandas.read_parquet(file)
    except (FileNotFoundError, PermissionError, IsADirectoryError, ImportError):
        raise
    except Exception as error:  # another library reads it, with its own errors
        reason = str(error).split("\n")[0].rstrip(". ") or type(error).__name__
        raise DataFileError(file, 1, f"not a Parquet file that can be read: {reason}") from None


def _records(file: str, lines: Numbered, separator: str) -> Iterator[Row]:
    """Records of a CSV file with the number of the line on which each begins; a blank line is an empty one."""
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader((line + "\n" for _, line in lines), delimiter=separator, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataFileError(file, number, f"not valid CSV: {error}") from None
        yield number, record


def _even(file: str, header: Sequence[Any], records: Iterator[Row]) -> Iterator[Row]:
    for number, record in records:
        if record and len(record) != len(header):
            raise DataFileError(file, number, f"{number_of(len(record))}, expected {len(header)}")
        yield number, record


@dataclass(frozen=True)
class _TablePlan:
    """The roles of the columns of a table."""

    file: str
    header: list[str]
    features: list[str]
    levels: list[str] | None
    time: str | None
    extra: list[str]

    def document(self, n: int, name: str, rows: list[Row], reads: Sequence[Any]) -> Document:
        place = {column: k for k, column in enumerate(self.header)}
        values = {column: [row[place[column]] for _, row in rows] for column in self.header}
        lines = [number for number, _ in rows]
        frame = Document([], None, {}, name, columns=tuple(self.header), lines=lines, file=self.file, number=n)
        kinds = zip(self.features, reads, strict=True)
        cells = [[read(frame, t, cell) for t, cell in enumerate(values[column])] for column, read in kinds]
        steps = list(map(list, zip(*cells, strict=True))) if cells else [[] for _ in rows]
        if not all(isinstance(value, float) for step in steps for value in step):
            steps = [dict(zip(self.features, step, strict=True)) for step in steps]  # type: ignore[misc]
        labels = None if self.levels is None else {level: list(map(_label, values[level])) for level in self.levels}
        extra = {column: values[column] for column in self.extra}
        return replace(frame, tokens=steps, labels=labels, extra=extra)


def _table_plan(
    file: str,
    header: list[str],
    levels: Sequence[str],
    sequence: str | None,
    time: str | None,
    features: Sequence[str] | None,
    extra: Sequence[str],
    unlabelled: bool,
    loose: bool,
) -> _TablePlan:
    labelled = not (unlabelled and not set(levels) & set(header))
    time = time or ("time" if "time" in header and "time" not in (features or ()) else None)
    own = [*(levels if labelled else ()), *filter(None, [sequence, time]), *extra]
    try:
        check_column_names([*own, *(features or ())], header)
    except ValueError as error:
        hint = SEQUENCE_HINT if sequence == BY_NAME and sequence not in header else ""
        raise DataFileError(file, 1, f"{error}{hint}") from None
    used = list(features) if features is not None else [name for name in header if name not in own]
    if features is None:
        used = [name for name in used if not is_ours(name, levels)]
    if not (used or loose):
        raise DataFileError(file, 1, f"no column is left for features, only {', '.join(header)}")
    taken = {*used, *levels, sequence}
    rest = [name for name in header if name not in taken]
    return _TablePlan(file, header, used, list(levels) if labelled and levels else None, time, rest)


def decimal_sign(cells: Iterable[Any]) -> str:
    """The sign in numbers: a comma if some cells are numbers with a comma, and none has a point."""
    commas = False
    for cell in cells:
        if isinstance(cell, str):
            if "." in cell and number_in(cell) is not None:
                return "."
            commas = commas or is_decimal_comma(cell)
    return "," if commas else "."


def _cell_reader(
    header: list[str],
    table: list[Row],
    name: str,
    numeric: Sequence[str] | None,
    dates: Sequence[str] | None,
    decimal: str,
) -> Any:
    """A function of a sequence, a time step and a cell: its number if the column holds numbers, else its text."""
    k = header.index(name)
    known = [row[k] for _, row in table if not is_empty_cell(row[k])]
    least = NUMERIC * len(known)
    if numeric is not None:
        holds, dated = name in numeric, name in (dates or ())
    else:
        holds = sum(number_in(cell, decimal) is not None for cell in known) >= least
        dated = not holds and sum(date_in(cell) is not None for cell in known) >= least
    expected = "a date such as 2024-05-31 12:00" if dated else "a finite number"

    def read(frame: Document, t: int, cell: Any) -> Any:
        if not (holds or dated):
            return cell_text(cell)
        if is_empty_cell(cell):
            return math.nan
        value = date_in(cell) if dated else number_in(cell, decimal)
        if value is None:
            hint = "" if dated else sign_hint(cell, decimal)
            raise frame.error(f"column {name!r} is {cell!r}, expected {expected}, or nothing if it is missing{hint}", t)
        return value

    return read


def _label(cell: Any) -> str:
    """The label in a cell; missing is unknown."""
    return cell_text(cell) or "?"


def _groups(header: list[str], table: list[Row], sequence: str | None) -> dict[str, list[Row]]:
    """Rows by sequence, in the order in which sequences first appear."""
    if sequence is None:
        return {"": table}
    k = header.index(sequence)
    groups: dict[str, list[Row]] = {}
    for row in table:
        groups.setdefault(str(row[1][k]), []).append(row)
    return groups


def _by_empty_rows(header: list[str], table: list[Row]) -> tuple[list[str], list[Row]]:
    """The table with a column that numbers the sequences, if empty rows separate them; else the table unchanged."""
    numbered: list[Row] = []
    n, ended = 0, True
    for line, row in table:
        ends = all(isinstance(cell, str) and not cell.strip() for cell in row)
        if not ends:
            n += ended
            numbered.append((line, [*row, str(n)]))
        ended = ends
    return ([*header, BY_NAME], numbered) if n > 1 else (header, table)


def _in_time(header: list[str], rows: list[Row], time: str | None) -> list[Row]:
    """Rows in the order of the time column: by numbers if all cells are numbers, else by the cells themselves."""
    if time is None:
        return rows
    k = header.index(time)
    numbers = [number_in(row[k]) for _, row in rows]
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
    """Write a long table as CSV, or as Parquet if its name ends so. Columns keep their order; new ones follow.

    Numbers keep the decimal sign that they were read with.

    Parameters
    ----------
    target : path or stream
        The file.
    documents : iterable of Document
        The sequences.
    sequence : str, optional
        The column that names the sequence; None leaves it out.
    features : sequence of str, optional
        Column names for tokens that are lists of numbers and come from no table.
    separator : str
        Separator of a CSV file.

    Examples
    --------
    >>> import sys
    >>> write_table(sys.stdout, [Document([[0.5], [2.0]], {"tag": ["D", "N"]}, name="a")], features=["x"])
    sequence,x,tag
    a,0.5,D
    a,2,N
    """
    if isinstance(target, (str, os.PathLike)) and os.fspath(target).endswith(".parquet"):
        pandas = pandas_for("Parquet")
        tables = [pandas.DataFrame(_table_columns(document, sequence, features)) for document in documents]
        with replaced(target) as path:
            pandas.concat(tables, ignore_index=True).to_parquet(path, index=False)
        return
    with writing(target) as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        header: list[str] | None = None
        for document in documents:
            columns = _table_columns(document, sequence, features)
            if header is None:
                header = list(columns)
                writer.writerow(header)
            texts = ([_written(cell, document.decimal) for cell in columns[name]] for name in header)
            writer.writerows(zip(*texts, strict=True))


def _written(cell: Any, decimal: str) -> str:
    """A cell of a CSV file; a number has the decimal sign that it was read with."""
    number = isinstance(cell, float) and not isinstance(cell, Dated)
    return cell_text(cell).replace(".", decimal) if number else cell_text(cell)


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
