"""Praat TextGrids, both ways."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hscrf.errors import DataFileError
from hscrf.io.axis import TimeAxis
from hscrf.io.foreign import MOST_INTERVALS, decoded, stem_of
from hscrf.io.spans import Tiers
from hscrf.io.timelines import Interval, Timeline

_PART = re.compile(r'!.*|"(?P<text>[^"]*(?:""[^"]*)*)"|(?P<open>")|(?P<word>[^\s"]+)')  # ! begins a comment
_NUMBER = re.compile(r"[-+]?\d{1,40}(\.\d*)?([eE][-+]?\d{1,3})?%?")


class _Value(NamedTuple):
    value: str | float
    line: int


def write_textgrid(tiers: Tiers, steps: int, rate: float = 1.0, *, times: Sequence[float] | None = None) -> bytes:
    """Return a Praat TextGrid in its long text form: an interval tier for each entry, empty between segments.

    Parameters
    ----------
    tiers : mapping
        From the name of a tier to its half-open segments ``(start, stop, label)`` in steps, in order.
    steps : int
        Number of steps of the whole sequence.
    rate : float
        Steps per second.
    times : sequence of float, optional
        The time in seconds at which each step begins, instead of a rate.

    Returns
    -------
    bytes

    Examples
    --------
    >>> print(write_textgrid({"action": [(0, 20, "walk")]}, steps=50, rate=50).decode().splitlines()[4])
    xmax = 1
    """
    axis = TimeAxis(steps, rate, times)
    first, last = _seconds(axis, 0), _seconds(axis, steps)
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", f"xmin = {first}", f"xmax = {last}"]
    lines += ["tiers? <exists>", f"size = {len(tiers)}", "item []:"]
    for n, (name, segments) in enumerate(tiers.items(), start=1):
        intervals = _filled(segments, steps)
        lines += [f"    item [{n}]:", '        class = "IntervalTier"', f"        name = {_quoted(name)}"]
        lines += [f"        xmin = {first}", f"        xmax = {last}"]
        lines.append(f"        intervals: size = {len(intervals)}")
        for k, (start, stop, label) in enumerate(intervals, start=1):
            lines.append(f"        intervals [{k}]:")
            lines += [f"            xmin = {_seconds(axis, start)}", f"            xmax = {_seconds(axis, stop)}"]
            lines.append(f"            text = {_quoted(label)}")
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _filled(segments: Sequence[tuple[int, int, Any]], steps: int) -> list[tuple[int, int, Any]]:
    """The segments with empty ones between them: the intervals of a tier have no gaps."""
    found: list[tuple[int, int, Any]] = []
    last = 0
    for start, stop, label in [*segments, (steps, steps, "")]:
        if start > last:
            found.append((last, start, ""))
        if stop > start:
            found.append((start, stop, label))
        last = stop
    return found


def _seconds(axis: TimeAxis, border: int) -> str:
    return f"{axis.seconds(border):.10g}"


def _quoted(text: Any) -> str:
    """Text between double quotes, those within it doubled, on one line."""
    return '"' + " ".join(str(text).replace('"', '""').splitlines()) + '"'


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
    return Timeline(stem_of(file), found)


def _values(text: str, file: str) -> Iterator[_Value]:
    """Numbers, texts in quotes and flags; everything else is a comment."""
    place, line = 0, 1
    for part in _PART.finditer(text):
        line += text.count("\n", place, part.start())
        place = part.start()
        word = part["word"]
        if part["open"]:
            raise DataFileError(file, line, "a text has no closing quote: the file is cut off")
        if part["text"] is not None:
            yield _Value(part["text"].replace('""', '"'), line)
        elif word in ("<exists>", "<absent>"):
            yield _Value(word, line)
        elif word and _NUMBER.fullmatch(word):
            yield _Value(float(word.removesuffix("%")), line)


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
