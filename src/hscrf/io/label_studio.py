"""Label Studio: tasks as timelines, and label configurations both ways."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hscrf.errors import DataFileError
from hscrf.io.foreign import XmlReader, decoded, is_number, legal, parsed_json, stem_of
from hscrf.io.timelines import Interval, PlaceError, Timeline

_CONTROLS = ("Labels", "TimeSeriesLabels", "HyperTextLabels", "ParagraphLabels")
_KINDS = ("labels", "timeserieslabels", "hypertextlabels", "paragraphlabels")
_PASSED = ("relation", "choices", "textarea", "rating", "number", "pairwise", "taxonomy", "datetime")


def write_label_config(levels: Mapping[str, Sequence[str]], kind: str, channels: Sequence[str] = ()) -> str:
    """Return a label configuration of Label Studio: a control for each level.

    Parameters
    ----------
    levels : mapping
        From the name of a level to its labels.
    kind : {"text", "time"}
        What the sequences are.
    channels : sequence of str
        The columns of a time series to draw.

    Returns
    -------
    str
        XML.

    Examples
    --------
    >>> print(write_label_config({"tag": ["N"]}, "text"))
    <View>
      <Labels name="tag" toName="text">
        <Label value="N" />
      </Labels>
      <Text name="text" value="$text" />
    </View>
    """
    root = xml.Element("View")
    control, shown = ("Labels", "text") if kind == "text" else ("TimeSeriesLabels", "ts")
    for level, labels in levels.items():
        element = xml.SubElement(root, control, name=legal(level), toName=shown)
        for label in labels:
            xml.SubElement(element, "Label", value=legal(str(label)))
    if kind == "text":
        xml.SubElement(root, "Text", name="text", value="$text")
    else:
        series = xml.SubElement(root, "TimeSeries", name="ts", value="$ts", valueType="json", timeColumn="time")
        for channel in channels:
            xml.SubElement(series, "Channel", column=legal(channel), legend=legal(channel))
    xml.indent(root)
    return xml.tostring(root, encoding="unicode")


def read_label_config(content: bytes, file: str = "") -> dict[str, list[str]]:
    """Read the levels and labels of a label configuration: each control for labels is a level, in their order.

    Parameters
    ----------
    content : bytes
        XML, as on the page "Labeling Interface" of a project.
    file : str
        Name of the file, for errors.

    Returns
    -------
    dict
        From the name of a control to its labels.

    Raises
    ------
    DataFileError
        If the file is not a label configuration; it names the line.

    Examples
    --------
    >>> read_label_config(b'<View><Labels name="tag" toName="t"><Label value="N"/><Label value="V"/></Labels></View>')
    {'tag': ['N', 'V']}
    """
    reader = _ConfigReader(file)
    reader.read(content)
    levels = {level: labels for level, labels in reader.found.items() if labels}
    if not levels:
        raise DataFileError(file, 1, f"there is no control with labels, expected <{'> or <'.join(_CONTROLS[:2])}>")
    return levels


class _ConfigReader(XmlReader):
    """Collects the labels of each control."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.found: dict[str, list[str]] = {}

    def start(self, name: str, given: dict[str, str]) -> None:
        if name in _CONTROLS:
            if not given.get("name") or given["name"] in self.found:
                raise self.error(f"a <{name}> has no name of its own")
            self.found[given["name"]] = []
        level = next((around["name"] for control, around in reversed(self.open) if control in _CONTROLS), None)
        if name == "Label" and level is not None:
            value = given.get("value", "")
            if not value or value in self.found[level]:
                raise self.error(f"a <Label> of {level!r} has no value of its own")
            self.found[level].append(value)


# -- tasks


def read_tasks(content: bytes, file: str = "") -> list[Any]:
    """The tasks of a JSON export, not yet checked; :func:`read_task` reads one."""
    found = parsed_json(decoded(content, file), file)
    if isinstance(found, dict) and "data" in found:
        return [found]
    if not isinstance(found, list):
        raise DataFileError(file, 1, "not a list of tasks, expected the JSON export of Label Studio")
    return found


def read_task(task: Any, number: int = 0) -> Timeline:
    """Return the regions of one task of Label Studio as a timeline.

    Cancelled annotations, relations, choices and other regions without labels are left out. Regions of a text are in
    characters, those of a recording in seconds; those of a series have the times of their first and last sample.

    Parameters
    ----------
    task : object
        A task of the JSON export.
    number : int
        Index of the task in its file, for errors.

    Returns
    -------
    Timeline
        Its name is ``data.name``; ``texts`` are all texts of ``data``.

    Raises
    ------
    PlaceError
        If a region cannot be read; it names the task and the region.

    Examples
    --------
    >>> region = {"from_name": "tag", "value": {"start": 0, "end": 3, "labels": ["D"]}}
    >>> read_task({"data": {"text": "the cat"}, "annotations": [{"result": [region]}]}).intervals[0][:4]
    (0, 3, 'tag', 'D')
    """
    data = task.get("data") if isinstance(task, dict) else None
    if not isinstance(data, dict):
        raise PlaceError(f"task {number}", "the task has no data, expected a name or a text")
    texts = tuple(value for value in data.values() if isinstance(value, str))
    names = tuple(stem_of(text.partition("?")[0]) for text in texts if len(text) < 300 and "." in text)
    found, units = [], set()
    for k, region in enumerate(_regions(task)):
        interval, unit = _interval(region, f"task {number}, region {k}")
        found.append(interval)
        units.add(unit)
    if len(units) > 1:
        raise PlaceError(f"task {number}", f"its regions have {' and '.join(sorted(units))}, expected one of them")
    unit = units.pop() if units else "characters"
    times = _times(data, number) if unit == "samples" else None
    if unit == "samples":
        unit = "steps" if times is None else "seconds"
        if times is None:  # without times, the last sample is counted by its number
            found = [interval._replace(stop=interval.stop + 1) for interval in found]
    name = data.get("name")
    return Timeline(
        name if isinstance(name, str) else "", found, unit, names=names, times=times, texts=texts, strict=True
    )


def _regions(task: Mapping[str, Any]) -> Iterator[Any]:
    annotations = task.get("annotations") or []
    for annotation in annotations if isinstance(annotations, list) else []:
        if isinstance(annotation, dict) and not annotation.get("was_cancelled"):
            result = annotation.get("result") or []
            for region in result if isinstance(result, list) else []:
                if not isinstance(region, dict) or region.get("type") not in _PASSED:
                    yield region


def _interval(region: Any, where: str) -> tuple[Interval, str]:
    """One region, and what its start and stop count."""
    value = region.get("value") if isinstance(region, dict) else None
    if not isinstance(value, dict):
        raise PlaceError(where, "the region has no value")
    names = next((value[kind] for kind in _KINDS if value.get(kind)), None)
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        raise PlaceError(where, f"the region has the labels {names!r}, expected one")
    start, stop = value.get("start"), value.get("end")
    if value.get("timeserieslabels"):
        unit = "samples"
    else:
        sound = "channel" in value or "original_length" in region or region.get("to_name") == "audio"
        unit = "seconds" if sound or isinstance(start, float) or isinstance(stop, float) else "characters"
    for place in (start, stop):
        if not is_number(place) or (unit == "characters" and not isinstance(place, int)):
            expected = "whole numbers" if unit == "characters" else "numbers"
            raise PlaceError(where, f"the region goes from {start!r} to {stop!r}, expected {expected} in order")
    return Interval(start, stop, str(region.get("from_name") or ""), names[0], where), unit  # type: ignore[arg-type]


def _times(data: Mapping[str, Any], number: int) -> list[float] | None:
    """The times of the samples of a task's series, if they are in the file."""
    for series in data.values():
        times = series.get("time") if isinstance(series, dict) else None
        if isinstance(times, list) and times:
            if not all(map(is_number, times)):
                raise PlaceError(f"task {number}", "the times of its series are not numbers")
            return [float(time) for time in times]
    return None
