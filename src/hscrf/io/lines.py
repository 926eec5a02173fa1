"""Lines of files and streams."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hscrf.errors import DataFileError
from hscrf.replacing import replaced

Source = Any  # a path, or a stream of text or bytes
Numbered = Iterator[tuple[int, str]]


@contextmanager
def reading(source: Source) -> Iterator[tuple[str, Numbered]]:
    """The name of a source and its numbered lines without their ends."""
    if hasattr(source, "read"):
        name = str(getattr(source, "name", "<stream>"))
        yield name, numbered_lines(name, source)
    else:
        with open(source, "rb") as file:
            yield os.fspath(source), numbered_lines(os.fspath(source), file)


def numbered_lines(name: str, stream: Iterable[bytes | str]) -> Numbered:
    for number, line in enumerate(stream, start=1):
        try:
            text = line if isinstance(line, str) else line.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise DataFileError(name, number, f"byte {error.start + 1} is 0x{byte:02x}, expected UTF-8") from None
        yield number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n")


@contextmanager
def writing(target: Source) -> Iterator[Any]:
    """A text stream to write to; a file is written whole or not at all."""
    if hasattr(target, "write"):
        yield target
    else:
        with replaced(target) as path, open(path, "w", encoding="utf-8", newline="\n") as file:
            yield file


def empty_file(file: str) -> DataFileError:
    return DataFileError(file, 1, "the file is empty, expected at least one sequence")


def blocks_of_lines(
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
            rows.append(cells_of(line, separator))
            numbers.append(number)
        elif rows:
            yield comments, rows, numbers
            comments, rows, numbers = [], [], []
    if rows:
        yield comments, rows, numbers


def cells_of(line: str, separator: str | None) -> list[str]:
    """The cells of a line; other white space than spaces and tabs belongs to them."""
    return line.split(separator) if separator else re.split("[ \t]+", line.strip(" \t"))


def number_in(cell: Any) -> float | None:
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return None
    return value if np.isfinite(value) else None


def cell_text(cell: Any) -> str:
    """A cell of a CSV file; whole numbers without a point."""
    return repr(cell).removesuffix(".0") if isinstance(cell, float) else str(cell)
