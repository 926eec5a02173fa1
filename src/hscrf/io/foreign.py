"""The content of files that other programs wrote: limits of size, text, numbers, CSV, JSON and XML."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any
from xml.parsers import expat

from hscrf.errors import DataFileError

MOST_BYTES = 64_000_000  # of a file
MOST_INTERVALS = 1_000_000  # of a file
DEEPEST = 50  # nested elements of XML
ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML cannot hold


def check_size(content: bytes, file: str, most: int = MOST_BYTES) -> None:
    """Refuse a file that is too large."""
    if len(content) > most:
        raise DataFileError(file, 1, f"the file has {len(content)} bytes, expected at most {most}")


def decoded(content: bytes, file: str) -> str:
    """The text of a file: UTF-8, or UTF-16 with a byte order mark."""
    check_size(content, file)
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"byte {error.start} is not {encoding.removesuffix('-sig').upper()}: save the file as UTF-8"
        raise DataFileError(file, line, problem) from None


def stem_of(path: str) -> str:
    r"""The name of a file without folders and ending, from a path of any system.

    >>> stem_of("films/day 1.mp4"), stem_of(r"C:\films\day.2.mp4")
    ('day 1', 'day.2')
    """
    return PurePosixPath(path.replace("\\", "/")).stem


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def csv_rows(text: str, head: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table, each with the number of its line; the head shows whether tab, ; or , separates cells."""
    separator = next((sign for sign in "\t;" if head.count(sign) > head.count(",")), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise DataFileError(file, reader.line_num, f"not valid CSV: {error}") from None


def parsed_json(text: str, file: str) -> Any:
    """The content of a JSON file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataFileError(file, error.lineno, f"not valid JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise DataFileError(file, 1, f"not valid JSON: {error}") from None


def legal(text: str) -> str:
    """Text without characters that XML cannot hold."""
    return ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)


class XmlReader:
    """Reads XML element by element. Document type declarations, and with them all entities, are refused.

    Subclasses say what happens at the start and end of an element and at text; ``open`` has the elements around it.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.open: list[tuple[str, dict[str, str]]] = []  # names and attributes
        self.parser: Any = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self._refuse

    @property
    def line(self) -> int:
        """The number of the line that is being read."""
        return int(self.parser.CurrentLineNumber)

    def error(self, problem: str, line: int | None = None) -> DataFileError:
        """An error at a line, by default the one that is being read."""
        return DataFileError(self.file, line or self.line, problem)

    def read(self, content: bytes) -> None:
        """Read a whole document."""
        check_size(content, self.file)
        try:
            self.parser.Parse(content, True)
        except DataFileError:
            raise
        except expat.ExpatError as error:
            raise self.error(f"not valid XML: {expat.ErrorString(error.code)}", error.lineno) from None
        except (LookupError, ValueError) as error:  # an unknown encoding
            raise self.error(f"not valid XML: {error}") from None

    def start(self, name: str, given: dict[str, str]) -> None:
        """An element with some attributes begins; it is the last of ``open``."""

    def end(self, name: str) -> None:
        """An element ends."""

    def characters(self, text: str) -> None:
        """Text inside an element."""

    def _start(self, name: str, given: dict[str, str]) -> None:
        if len(self.open) == DEEPEST:
            raise self.error(f"more than {DEEPEST} elements are nested")
        self.open.append((name, given))
        self.start(name, given)

    def _end(self, name: str) -> None:
        self.end(name)
        self.open.pop()

    def _refuse(self, *_: Any) -> None:
        raise self.error("the document has a DOCTYPE, expected none: entities are not read")
