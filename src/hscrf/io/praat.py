"""Praat TextGrids as timelines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from hscrf.errors import DataFileError
from hscrf.io.timelines import MOST_INTERVALS, Interval, Timeline, decoded

_WORD = re.compile(r"\S+")
_NUMBER = re.compile(r"[-+]?\d{1,40}(\.\d*)?([eE][-+]?\d{1,3})?%?")


class _Value(NamedTuple):
    value: str | float
    line: int


def read_textgrid(content: bytes, file: str = "") -> Timeline:
    """Read a Praat TextGrid in its long or its short text form, UTF-8 or UTF-16.

    Intervals without a text are gaps. Tiers of points are left out.

    Parameters
    ----------
    content : bytes
        Content of the file.
    file : str
        Name of the file, for errors; also the name of the sequence.

    Returns
    -------
    Timeline

    Raises
    ------
    DataFileError
        If the file cannot be read; it names the line.

    Examples
    --------
    >>> from hscrf.io import write_textgrid
    >>> read_textgrid(write_textgrid({"action": [(0, 20, "walk")]}, steps=50, rate=50)).intervals[0][:4]
    (0.0, 0.4, 'action', 'walk')
    """
    if content.startswith(b"ooBinaryFile"):
        raise DataFileError(file, 1, "it is a binary TextGrid: save it as a text file in Praat")
    text = decoded(content, file)
    if "ooTextFile" not in text[:200]:
        raise DataFileError(file, 1, "the file does not begin with 'ooTextFile', expected a TextGrid of Praat")
    values = _Values(_values(text, file), file)
    if values.text("the file type") != "ooTextFile" or values.text("the class") != "TextGrid":
        raise values.error("the file holds another object of Praat, expected a TextGrid")
    values.number("xmin")
    values.number("xmax")
    found: list[Interval] = []
    for _ in range(values.count("tiers") if values.flag() else 0):
        kind, name = values.text("the class of a tier"), values.text("the name of a tier")
        values.number("xmin")
        values.number("xmax")
        if kind not in ("IntervalTier", "TextTier"):
            raise values.error(f"the class of a tier is {kind!r}, expected IntervalTier or TextTier")
        for _ in range(values.count("intervals")):
            start = values.number("a time")
            line = values.line
            stop = values.number("xmax") if kind == "IntervalTier" else start
            label = values.text("the text of an interval").strip()
            if label and kind == "IntervalTier":
                found.append(Interval(start, stop, name, label, f"line {line}"))
    return Timeline(os.path.splitext(os.path.basename(file))[0], found)


def _values(text: str, file: str) -> Iterator[_Value]:
    """Numbers, texts in quotes and flags; everything else is a comment."""
    place, line, end = 0, 1, len(text)
    while place < end:
        if text[place] == "\n":
            line, place = line + 1, place + 1
        elif text[place].isspace():
            place += 1
        elif text[place] == "!":
            following = text.find("\n", place)
            place = end if following < 0 else following
        elif text[place] == '"':
            begin, parts = line, []
            place += 1
            while True:
                closing = text.find('"', place)
                if closing < 0:
                    raise DataFileError(file, begin, "a text has no closing quote: the file is cut off")
                parts.append(text[place:closing])
                place = closing + 1
                if text[place : place + 1] != '"':
                    break
                parts.append('"')
                place += 1
            found = "".join(parts)
            line += found.count("\n")
            yield _Value(found, begin)
        else:
            match = _WORD.match(text, place)
            assert match is not None
            word = match[0].partition('"')[0] or match[0]
            place += len(word)
            if _NUMBER.fullmatch(word):
                yield _Value(float(word.removesuffix("%")), line)
            elif word in ("<exists>", "<absent>"):
                yield _Value(word, line)


class _Values:
    """The values of a file, one after the other, each of the kind that is expected."""

    def __init__(self, values: Iterator[_Value], file: str) -> None:
        self.values, self.file, self.line = values, file, 1

    def error(self, problem: str) -> DataFileError:
        return DataFileError(self.file, self.line, problem)

    def _next(self, what: str) -> str | float:
        found = next(self.values, None)
        if found is None:
            raise self.error(f"the file ends before {what}: it is cut off")
        self.line = found.line
        return found.value

    def text(self, what: str) -> str:
        found = self._next(what)
        if not isinstance(found, str):
            raise self.error(f"{what} is {found:g}, expected a text in quotes")
        return found

    def number(self, what: str) -> float:
        found = self._next(what)
        if isinstance(found, str):
            raise self.error(f"{what} is {found[:40]!r}, expected a number")
        return found

    def count(self, what: str) -> int:
        found = self.number(f"the number of {what}")
        if not 0 <= found <= MOST_INTERVALS or found != int(found):
            raise self.error(f"the number of {what} is {found:g}, expected a whole number up to {MOST_INTERVALS}")
        return int(found)

    def flag(self) -> bool:
        found = self._next("the flag of the tiers")
        if found not in ("<exists>", "<absent>"):
            raise self.error(f"the flag of the tiers is {found!r}, expected <exists> or <absent>")
        return found == "<exists>"
