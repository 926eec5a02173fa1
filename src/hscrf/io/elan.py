"""ELAN documents (.eaf), both ways."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from hscrf.io.axis import TimeAxis
from hscrf.io.cells import number_in
from hscrf.io.foreign import MOST_INTERVALS, XmlReader, legal, stem_of
from hscrf.io.spans import Tiers
from hscrf.io.timelines import Interval, Timeline

NAME_PROPERTY = "hscrf sequence"  # of the header: the name of the sequence


def write_eaf(
    tiers: Tiers,
    rate: float = 1.0,
    author: str = "",
    date: str = "1970-01-01T00:00:00",
    *,
    times: Sequence[float] | None = None,
    name: str = "",
) -> bytes:
    """Return an ELAN document (.eaf): a tier of time-aligned annotations for each entry.

    Parameters
    ----------
    tiers : mapping
        From the name of a tier to its half-open segments ``(start, stop, label)`` in steps.
    rate : float
        Steps per second.
    author, date : str
        As ELAN shows them. The date is in ISO format; without a time zone it is UTC.
    times : sequence of float, optional
        The time in seconds at which each step begins, instead of a rate.
    name : str
        Name of the sequence, stored in the header for :func:`read_eaf`.

    Returns
    -------
    bytes

    Examples
    --------
    >>> b'TIME_VALUE="400"' in write_eaf({"action": [(0, 20, "walk")]}, rate=50)
    True
    """
    borders = sorted({border for some in tiers.values() for start, stop, _ in some for border in (start, stop)})
    axis = TimeAxis(max(borders, default=0) if times is None else len(times), rate, times)
    root = xml.Element("ANNOTATION_DOCUMENT", AUTHOR=legal(author), FORMAT="3.0", VERSION="3.0")
    root.set("DATE", date[:19] + "+00:00")
    root.set("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance")
    root.set("xsi:noNamespaceSchemaLocation", "http://www.mpi.nl/tools/elan/EAFv3.0.xsd")
    header = xml.SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    if name:
        xml.SubElement(header, "PROPERTY", NAME=NAME_PROPERTY).text = legal(name)
    order = xml.SubElement(root, "TIME_ORDER")
    for k, border in enumerate(borders, start=1):
        time = str(round(axis.seconds(border) * 1000))
        xml.SubElement(order, "TIME_SLOT", TIME_SLOT_ID=f"ts{k}", TIME_VALUE=time)
    slot = {border: f"ts{k}" for k, border in enumerate(borders, start=1)}
    number = 0
    for title, some in tiers.items():
        tier = xml.SubElement(root, "TIER", LINGUISTIC_TYPE_REF="segments", TIER_ID=legal(title))
        for start, stop, label in some:
            number += 1
            place = {"TIME_SLOT_REF1": slot[start], "TIME_SLOT_REF2": slot[stop]}
            box = xml.SubElement(tier, "ANNOTATION")
            annotation = xml.SubElement(box, "ALIGNABLE_ANNOTATION", {"ANNOTATION_ID": f"a{number}", **place})
            xml.SubElement(annotation, "ANNOTATION_VALUE").text = legal(str(label))
    xml.SubElement(
        root, "LINGUISTIC_TYPE", GRAPHIC_REFERENCES="false", LINGUISTIC_TYPE_ID="segments", TIME_ALIGNABLE="true"
    )
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="utf-8")


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
    >>> read_eaf(write_eaf({"action": [(0, 20, "walk")]}, rate=50)).intervals[0][:4]
    (0.0, 0.4, 'action', 'walk')
    """
    reader = _Reader(file)
    reader.read(content)
    return reader.timeline()


class _Reader(XmlReader):
    """Collects the elements that are needed while a document is parsed."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.text: list[str] | None = None
        self.slots: dict[str, tuple[float | None, int]] = {}  # time and line of each, in the order of the document
        self.tier = ""
        self.now: dict[str, Any] = {}
        self.annotations: dict[str, dict[str, Any]] = {}
        self.unit, self.name = 0.001, ""
        self.names: list[str] = []
        self.property = ""

    def start(self, name: str, given: dict[str, str]) -> None:
        if len(self.open) == 1 and name != "ANNOTATION_DOCUMENT":
            raise self.error(f"the document is a <{name}>, expected an <ANNOTATION_DOCUMENT> of ELAN")
        if name == "HEADER":
            units = {"milliseconds": 0.001, "seconds": 1.0}
            said = given.get("TIME_UNITS", "milliseconds")
            if said not in units:
                raise self.error(f"TIME_UNITS are {said!r}, expected milliseconds or seconds")
            self.unit = units[said]
        elif name == "MEDIA_DESCRIPTOR":
            for key in ("RELATIVE_MEDIA_URL", "MEDIA_URL"):
                if given.get(key):
                    self.names.append(stem_of(unquote(given[key])))
        elif name == "PROPERTY":
            self.property, self.text = given.get("NAME", ""), []
        elif name == "TIME_SLOT":
            self.slots[self.attribute(given, "TIME_SLOT_ID")] = (self.time(given.get("TIME_VALUE")), self.line)
        elif name == "TIER":
            self.tier = self.attribute(given, "TIER_ID")
        elif name in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION"):
            self.now = {**given, "line": self.line, "tier": self.tier}
            if len(self.annotations) >= MOST_INTERVALS:
                raise self.error(f"there are more than {MOST_INTERVALS} annotations")
            self.annotations[self.attribute(given, "ANNOTATION_ID")] = self.now
        elif name == "ANNOTATION_VALUE":
            self.text = []

    def end(self, name: str) -> None:
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
            raise self.error(f"a <{self.open[-1][0]}> has no {key}")
        return given[key]

    def time(self, text: str | None) -> float | None:
        found = None if text is None else number_in(text)
        if text is not None and found is None:
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
        stem = stem_of(self.file)
        return Timeline(self.name or stem, found, names=(stem, *self.names))

    def times(self) -> dict[str, float]:
        """Times of all slots in seconds; slots without one lie evenly between their neighbours, as in ELAN."""
        found: dict[str, float] = {}
        last, waiting = 0.0, []
        for name, (value, _) in self.slots.items():
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
