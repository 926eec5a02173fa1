"""Lines of files and streams."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hscrf.errors import DataFileError
from hscrf.files.replacing import replaced
from hscrf.io.compressed import open_compressed, whole_stream

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


def blocks_of_lines(lines: Marked, separator: str | None, blank: str) -> Iterator[SequenceLines]:
    """The blocks of lines between blank ones; comments at the end of a file belong to the last.

    ``lines`` are numbers, lines, and whether each is a comment; ``blank``: the signs of a blank line.
    """
    done, block = None, SequenceLines()
    for number, line, is_comment in lines:
        if isinstance(line, BadLine):
            block.bad = block.bad or line
        if is_comment:
            block.comments.append((len(block.rows), line))
        elif line.strip(blank):
            block.separator = block.separator or separator_in(line, separator)
            block.rows.append(split_cells(line, separator))
            block.numbers.append(number)
        elif block.rows:
            if done is not None:
                yield done
            done, block = block, SequenceLines()
    if done is not None and not block.rows:
        done.comments += [(len(done.rows) + 1, line) for _, line in block.comments]
    yield from (one for one in (done, block) if one is not None and one.rows)


def blanks(separator: str | None) -> str:
    """The signs that a blank line may have: spaces, and separators, because spreadsheets write an empty row so."""
    if separator is None:
        return " \t"
    return f" {separator}" if len(separator) == 1 else " "


def separator_in(line: str, separator: str | None = None) -> str:
    """The separator to write a line again with: the given one, else that of the line; empty for a single column."""
    return separator or next((sign for sign in "\t " if sign in line.strip()), "")


def split_cells(line: str, separator: str | None) -> list[str]:
    """The cells of a line; other white space than spaces and tabs belongs to them."""
    return line.split(separator) if separator else re.split("[ \t]+", line.strip(" \t"))
