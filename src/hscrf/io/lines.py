"""Lines of files and streams."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hscrf.errors import DataFileError
from hscrf.files.replacing import replaced
from hscrf.io.compressed import open_compressed, whole_stream
from hscrf.observations.columns import is_missing as no_value
from hscrf.observations.columns import seconds_of

Source = Any  # a path, or a stream of text or bytes
Numbered = Iterator[tuple[int, str]]
Marked = Iterable[tuple[int, str, bool]]


@contextmanager
def reading(source: Source, lenient: bool = False) -> Iterator[tuple[str, Numbered]]:
    """The name of a source and its numbered lines without their ends.

    A line that is not UTF-8 is an error or, with ``lenient``, a :class:`BadLine` for :func:`check_line`.
    """
    if hasattr(source, "read"):
        name = str(getattr(source, "name", "<stream>"))
        yield name, numbered_lines(name, source, lenient)
    else:
        with open_compressed(source) as file:
            yield os.fspath(source), numbered_lines(os.fspath(source), file, lenient)


Skip = Callable[[DataFileError], object]  # called with the error of each bad sequence that is left out


@contextmanager
def skipping(skip: Skip | None) -> Iterator[None]:
    """Leave out unreadable parts, if a function receives their errors."""
    try:
        yield
    except DataFileError as error:
        if skip is None:
            raise
        skip(error)


class BadLine(str):
    """A line that is not UTF-8, as far as it can be read."""

    error: DataFileError


def numbered_lines(name: str, stream: Iterable[bytes | str], lenient: bool = False) -> Numbered:
    """Yield the lines of a stream with their numbers, decoded from UTF-8."""
    for number, line in enumerate(whole_stream(name, stream), start=1):
        try:
            text = line if isinstance(line, str) else line.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            problem = DataFileError(name, number, f"byte {error.start + 1} is 0x{byte:02x}, expected UTF-8")
            if not lenient:
                raise problem from None
            bad = BadLine(error.object.decode("utf-8", "replace").rstrip("\r\n"))
            bad.error = problem
            yield number, bad
            continue
        yield number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n")


def check_line(line: str, sequence: int) -> None:
    """Raise for a line that is not UTF-8, which belongs to the sequence with that number."""
    if isinstance(line, BadLine):
        line.error.sequence = sequence
        raise line.error


@contextmanager
def writing(target: Source) -> Iterator[Any]:
    """A text stream to write to; a file is written whole or not at all."""
    if hasattr(target, "write"):
        yield target
    else:
        with replaced(target) as path, open(path, "w", encoding="utf-8", newline="\n") as file:
            yield file


def empty_file(file: str) -> DataFileError:
    """Return the error for an empty file."""
    return DataFileError(file, 1, "the file is empty, expected at least one sequence")


@dataclass
class SequenceLines:
    """The lines of one sequence."""

    comments: list[tuple[int, str]] = field(default_factory=list)  # each with the row that it stands before
    rows: list[list[str]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)  # of the rows' lines
    separator: str = ""  # that joins the rows again
    bad: str = ""  # its first line that is not UTF-8


def blocks_of_lines(lines: Marked, separator: str | None) -> Iterator[SequenceLines]:
    """The blocks of lines between blank ones; comments at the end of a file belong to the last.

    ``lines`` are numbers, lines, and whether each is a comment.
    """
    done, block = None, SequenceLines()
    for number, line, is_comment in lines:
        if isinstance(line, BadLine):
            block.bad = block.bad or line
        if is_comment:
            block.comments.append((len(block.rows), line))
        elif line.strip(" \t" if separator is None else " "):
            block.separator = block.separator or separator or ("\t" if "\t" in line.strip() else " ")
            block.rows.append(split_cells(line, separator))
            block.numbers.append(number)
        elif block.rows:
            if done is not None:
                yield done
            done, block = block, SequenceLines()
    if done is not None and not block.rows:
        done.comments += [(len(done.rows) + 1, line) for _, line in block.comments]
    yield from (one for one in (done, block) if one is not None and one.rows)


def split_cells(line: str, separator: str | None) -> list[str]:
    """The cells of a line; other white space than spaces and tabs belongs to them."""
    return line.split(separator) if separator else re.split("[ \t]+", line.strip(" \t"))


MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})  # cells of numeric columns that mean missing


def is_empty_cell(cell: Any) -> bool:
    """Whether a cell of a numeric column means a missing number."""
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    return no_value(cell)


THOUSANDS = re.compile(
    r"[-+]?[0-9]{1,3}((,[0-9]{3})+(\.[0-9]+)?|(\.[0-9]{3})+,[0-9]+|([ '\u00a0\u202f][0-9]{3})+([.,][0-9]+)?)"
)


def sign_hint(cell: Any, decimal: str) -> str:
    """A hint how to read a cell that is not a number with this decimal sign; empty if there is none."""
    other = "," if decimal == "." else "."
    if number_in(cell, other) is not None:
        return f"; --decimal {other} reads it"
    grouped = isinstance(cell, str) and THOUSANDS.fullmatch(cell.strip())
    return "; numbers have no signs between thousands" if grouped else ""


def number_in(cell: Any, decimal: str = ".") -> float | None:
    """The finite number in a cell; None if there is none."""
    if decimal != "." and isinstance(cell, str):
        cell = cell.replace(decimal, ".") if "." not in cell else "no number"
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return None
    return value if np.isfinite(value) else None


class Dated(float):
    """Seconds since 1970, and the date that was read."""

    text: str


DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d)?(\.\d{1,6})?(Z|[+-]\d\d:?\d\d)?)?")


def date_in(cell: Any) -> Dated | None:
    """The date, with or without a time, that a cell holds in the form of ISO 8601; None if it holds none.

    >>> date_in("1970-01-02"), date_in("1970-01-01 00:01:30.5"), date_in("1970-01-01T01:00Z"), date_in("1970")
    (86400.0, 90.5, 3600.0, None)
    """
    found = DATE.fullmatch(cell.strip()) if isinstance(cell, str) else None
    if found is None:
        return None
    day, clock, seconds, part, zone = found.groups(default="")
    zone = "+00:00" if zone in ("", "Z") else f"{zone[:3]}:{zone[-2:]}"
    text = f"{day}T{clock or '00:00'}{seconds or ':00'}{part.ljust(7, '0') if part else ''}{zone}"
    try:
        value = Dated(seconds_of(datetime.datetime.fromisoformat(text)))
    except ValueError:  # such as the 31st of June
        return None
    value.text = cell
    return value


def cell_text(cell: Any) -> str:
    """Return a cell as the text of a CSV file.

    Parameters
    ----------
    cell : object
        A string, number, date or missing value.

    Returns
    -------
    str
        Whole numbers have no decimal point. A missing value is empty.
    """
    if isinstance(cell, Dated):
        return cell.text
    if isinstance(cell, float):
        return "" if cell != cell else repr(float(cell)).removesuffix(".0")
    return "" if no_value(cell) else str(cell)
