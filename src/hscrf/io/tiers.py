"""Segments on a time axis: ELAN documents and Praat TextGrids."""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from collections.abc import Mapping, Sequence
from typing import Any

from hscrf.io.axis import TimeAxis, check_rate
from hscrf.io.elan import NAME_PROPERTY
from hscrf.io.spans import Labelled

ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML cannot hold
Tiers = Mapping[str, Sequence[tuple[int, int, Any]]]  # name -> half-open segments in steps


def tiers_of(sequence: Labelled) -> dict[str, list[tuple[int, int, Any]]]:
    """A tier for each level."""
    return {
        level: [(span.start, span.stop, span.label) for span in sequence.of_level(level)] for level in sequence.levels
    }


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
    rate = check_rate(rate)
    axis = None if times is None else TimeAxis(len(times), rate, times)
    root = xml.Element("ANNOTATION_DOCUMENT", AUTHOR=legal(author), FORMAT="3.0", VERSION="3.0")
    root.set("DATE", date[:19] + "+00:00")
    root.set("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance")
    root.set("xsi:noNamespaceSchemaLocation", "http://www.mpi.nl/tools/elan/EAFv3.0.xsd")
    header = xml.SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    if name:
        xml.SubElement(header, "PROPERTY", NAME=NAME_PROPERTY).text = legal(name)
    borders = sorted({time for some in tiers.values() for start, stop, _ in some for time in (start, stop)})
    order = xml.SubElement(root, "TIME_ORDER")
    for k, border in enumerate(borders, start=1):
        time = round(border * 1000 / rate) if axis is None else round(axis.seconds(border) * 1000)
        xml.SubElement(order, "TIME_SLOT", TIME_SLOT_ID=f"ts{k}", TIME_VALUE=str(time))
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


def legal(text: str) -> str:
    """Text without characters that XML cannot hold."""
    return ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)


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
