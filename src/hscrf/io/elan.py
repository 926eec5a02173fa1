"""ELAN documents (.eaf) as timelines."""

from __future__ import annotations

import math
import os
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote
from xml.parsers import expat

from hscrf.errors import DataFileError
from hscrf.io.timelines import MOST_INTERVALS, Interval, Timeline, check_size

DEEPEST = 50  # nested elements
NAME_PROPERTY = "hscrf sequence"  # of the header: the name of the sequence


def read_eaf(content: bytes, file: str = "") -> Timeline:
    """Read an ELAN document.

    Annotations that refer to others (of symbolic tiers) have the times of those. Document type declarations, and with
    them all entities, are refused. An annotation without a value is a gap.

    Parameters
    ----------
    content : bytes
        Content of the file.
    file : str
        Name of the file, for errors; also the name of the sequence if the document has none.

    Returns
    -------
    Timeline

    Raises
    ------
    DataFileError
        If the document cannot be read; it names the line.

    Examples
    --------
    >>> from hscrf.io import write_eaf
    >>> read_eaf(write_eaf({"action": [(0, 20, "walk")]}, rate=50)).intervals[0][:4]
    (0.0, 0.4, 'action', 'walk')
    """
    check_size(content, file)
    reader = _Reader(file)
    reader.read(content)
    return reader.timeline()


class _Reader:
    """Collects the elements that are needed while a document is parsed."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.parser: Any = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.buffer_text = True
        self.open: list[str] = []
        self.text: list[str] | None = None
        self.slots: dict[str, tuple[float | None, int]] = {}
        self.order: list[str] = []
        self.tier = ""
        self.now: dict[str, Any] = {}
        self.annotations: dict[str, dict[str, Any]] = {}
        self.unit, self.name = 0.001, ""
        self.names: list[str] = []
        self.property = ""

    def error(self, problem: str, line: int | None = None) -> DataFileError:
        return DataFileError(self.file, line or self.parser.CurrentLineNumber, problem)

    def read(self, content: bytes) -> None:
        try:
            self.parser.Parse(content, True)
        except expat.ExpatError as error:
            raise self.error(f"not valid XML: {expat.ErrorString(error.code)}", error.lineno) from None
        except (LookupError, ValueError) as error:
            if isinstance(error, DataFileError):
                raise
            raise self.error(f"not valid XML: {error}") from None

    def doctype(self, *_: Any) -> None:
        raise self.error("the document has a DOCTYPE, expected none: entities are not read")

    def start(self, name: str, given: dict[str, str]) -> None:
        if not self.open and name != "ANNOTATION_DOCUMENT":
            raise self.error(f"the document is a <{name}>, expected an <ANNOTATION_DOCUMENT> of ELAN")
        self.open.append(name)
        if len(self.open) > DEEPEST:
            raise self.error(f"more than {DEEPEST} elements are nested")
        line = self.parser.CurrentLineNumber
        if name == "HEADER":
            units = {"milliseconds": 0.001, "seconds": 1.0}
            said = given.get("TIME_UNITS", "milliseconds")
            if said not in units:
                raise self.error(f"TIME_UNITS are {said!r}, expected milliseconds or seconds")
            self.unit = units[said]
        elif name == "MEDIA_DESCRIPTOR":
            for key in ("RELATIVE_MEDIA_URL", "MEDIA_URL"):
                if given.get(key):
                    self.names.append(PurePosixPath(unquote(given[key]).replace("\\", "/")).stem)
        elif name == "PROPERTY":
            self.property, self.text = given.get("NAME", ""), []
        elif name == "TIME_SLOT":
            self.slots[self.attribute(given, "TIME_SLOT_ID")] = (self.time(given.get("TIME_VALUE")), line)
            self.order.append(given["TIME_SLOT_ID"])
        elif name == "TIER":
            self.tier = self.attribute(given, "TIER_ID")
        elif name in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION"):
            self.now = {**given, "line": line, "tier": self.tier}
            if len(self.annotations) >= MOST_INTERVALS:
                raise self.error(f"there are more than {MOST_INTERVALS} annotations")
            self.annotations[self.attribute(given, "ANNOTATION_ID")] = self.now
        elif name == "ANNOTATION_VALUE":
            self.text = []

    def end(self, name: str) -> None:
        self.open.pop()
        if name == "ANNOTATION_VALUE" and self.text is not None:
            self.now["value"] = "".join(self.text).strip()
        elif name == "PROPERTY" and self.text is not None and self.property == NAME_PROPERTY:
            self.name = "".join(self.text)
        if name in ("ANNOTATION_VALUE", "PROPERTY"):
            self.text = None

    def characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)

    def attribute(self, given: dict[str, str], key: str) -> str:
        if key not in given:
            raise self.error(f"a <{self.open[-1]}> has no {key}")
        return given[key]

    def time(self, text: str | None) -> float | None:
        if text is None:
            return None
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            raise self.error(f"TIME_VALUE is {text[:40]!r}, expected a number")
        return found

    # -- after the last element

    def timeline(self) -> Timeline:
        known = self.times()
        found = []
        for annotation in self.annotations.values():
            value = annotation.get("value", "")
            if value:
                start, stop = self.extent(annotation, known)
                found.append(Interval(start, stop, annotation["tier"], value, f"line {annotation['line']}"))
        stem = os.path.splitext(os.path.basename(self.file))[0]
        return Timeline(self.name or stem, found, names=(stem, *self.names))

    def times(self) -> dict[str, float]:
        """Times of all slots in seconds; slots without one lie evenly between their neighbours, as in ELAN."""
        found: dict[str, float] = {}
        last, waiting = 0.0, []
        for name in self.order:
            value = self.slots[name][0]
            if value is None:
                waiting.append(name)
                continue
            for k, other in enumerate(waiting, start=1):
                found[other] = (last + (value - last) * k / (len(waiting) + 1)) * self.unit
            found[name] = value * self.unit
            last, waiting = value, []
        if waiting:
            raise self.error(f"TIME_SLOT {waiting[-1]!r} has no TIME_VALUE", self.slots[waiting[-1]][1])
        return found

    def extent(self, annotation: dict[str, Any], times: dict[str, float]) -> tuple[float, float]:
        """The times of an annotation, or of the one that it refers to in the end."""
        now, seen = annotation, set()
        while "TIME_SLOT_REF1" not in now:
            name = now.get("ANNOTATION_REF", "")
            if name in seen or name not in self.annotations:
                raise self.error(f"ANNOTATION_REF is {name!r}, expected another annotation", annotation["line"])
            seen.add(name)
            now = self.annotations[name]
        places = []
        for key in ("TIME_SLOT_REF1", "TIME_SLOT_REF2"):
            if now.get(key) not in times:
                raise self.error(f"{key} is {now.get(key)!r}, expected a TIME_SLOT", now["line"])
            places.append(round(times[now[key]], 9))
        return places[0], places[1]
