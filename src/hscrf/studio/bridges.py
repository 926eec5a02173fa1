"""Bridges to other tools: Label Studio's JSON both ways, ELAN's tiers out."""

from __future__ import annotations

import bisect
import hashlib
import json
import re
import xml.etree.ElementTree as xml
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from hscrf.studio.events import Invalid
from hscrf.studio.items import shown
from hscrf.studio.knowledge import Level
from hscrf.studio.records import MODEL, Record

STEP = 1000  # milliseconds of a time step in ELAN
ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML cannot hold

# -- Label Studio: a from_name a level; text has character offsets, time has steps with an inclusive end


def label_studio_tasks(records: Iterable[Record], kind: str) -> list[dict[str, Any]]:
    """Tasks: people's segments are annotations, the model's are predictions."""
    return [_task(n, record, kind) for n, record in enumerate(records, start=1)]


def _task(n: int, record: Record, kind: str) -> dict[str, Any]:
    said = [(level, segment) for level in record.levels for segment in record.segments(level)]
    found: dict[str, Any] = {"id": n, "data": {"name": record.name, **_data(record.tokens, kind)}}
    found["annotations"] = [{"result": [_region(record, kind, *one) for one in said]}] if said else []
    guessed = [(level, segment) for level in record.levels for segment, whose in record.shown(level) if whose == MODEL]
    guesses = [_region(record, kind, level, segment) for level, segment in guessed if segment[2] is not None]
    version = f"hscrf model {record.model}"
    found["predictions"] = [{"model_version": version, "result": guesses}] if guesses else []
    return found


def _data(tokens: list[Any], kind: str) -> dict[str, Any]:
    if kind == "text":
        return {"text": " ".join(words_of(tokens))}
    return {"ts": {"time": list(range(len(tokens)))}}


def words_of(tokens: list[Any]) -> list[str]:
    """The words of a text as they are shown."""
    return list(shown(tokens, "text")["tokens"])


def offsets_of(words: Sequence[str]) -> list[int]:
    """Where each word begins in the text of all, and one more: where one after the last would."""
    places = [0]
    for word in words:
        places.append(places[-1] + len(word) + 1)
    return places


def _region(record: Record, kind: str, level: Level, segment: Sequence[Any]) -> dict[str, Any]:
    start, stop, label = segment
    key = f"{level.name}/{start}/{stop}"
    found = {"id": hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:10], "from_name": level.name}
    if kind == "text":
        words = words_of(record.tokens)
        places = offsets_of(words)
        text = " ".join(words[start:stop])
        value = {"start": places[start], "end": places[stop] - 1, "text": text, "labels": [label]}
        return {**found, "to_name": "text", "type": "labels", "value": value}
    value = {"start": start, "end": stop - 1, "instant": False, "timeserieslabels": [label]}
    return {**found, "to_name": "ts", "type": "timeserieslabels", "value": value}


def read_task(
    task: Any, sheets: Mapping[str, Any], levels: Sequence[Level], studio: Any
) -> tuple[str, dict[str, Any], str]:
    """Name, body of an import event and uid from one task; :class:`Invalid` says what is wrong with it."""
    data = task.get("data") if isinstance(task, dict) else None
    name = data.get("name") if isinstance(data, dict) else None
    if not isinstance(name, str) or name not in sheets:
        raise Invalid(f"the task is about {name!r}, which is no sequence here", "name")
    sheet = sheets[name]
    tokens = json.loads(studio.store.observations(sheet.id))
    places = offsets_of(words_of(tokens)) if studio.kind == "text" else list(range(sheet.length + 1))
    found: dict[str, list[list[Any]]] = {level.name: [] for level in levels}
    for annotation in task.get("annotations") or []:
        for region in annotation.get("result") or [] if isinstance(annotation, dict) else []:
            level, segment = _read_region(region, levels, places, studio.kind)
            found[level.name].append(segment)
    body: dict[str, Any] = {"levels": {}}
    for level in levels:
        segments = sorted(found[level.name])
        if segments:
            body["levels"][level.name] = _known(level, segments, sheet.length)
    digest = hashlib.sha256(json.dumps([name, body], sort_keys=True).encode()).hexdigest()
    return name, body, f"label-studio-{digest[:40]}"


def _read_region(region: Any, levels: Sequence[Level], places: list[int], kind: str) -> tuple[Level, list[Any]]:
    value = region.get("value") if isinstance(region, dict) else None
    if not isinstance(value, dict):
        raise Invalid("a region has no value", "value")
    level = next((level for level in levels if level.name == region.get("from_name")), None)
    if level is None:
        raise Invalid(f"a region is of {region.get('from_name')!r}, which is no level here", "from_name")
    names = value.get("labels") or value.get("timeserieslabels")
    if not isinstance(names, list) or len(names) != 1 or names[0] not in level.labels:
        raise Invalid(f"a region of level {level.name!r} has the labels {names!r}, expected one of the level", "labels")
    start, end = value.get("start"), value.get("end")
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start <= end:
        raise Invalid(f"a region goes from {start!r} to {end!r}, expected whole numbers", "start")
    if kind == "text":  # any part of a word is the word
        first, last = bisect.bisect_right(places, start) - 1, bisect.bisect_left(places, end)
    else:
        first, last = start, end + 1
    if not 0 <= first < last < len(places):
        raise Invalid(f"a region goes from {start} to {end}, which is outside the sequence", "start")
    return level, [first, last, names[0]]


def _known(level: Level, segments: list[list[Any]], length: int) -> dict[str, Any]:
    """What segments say: labels, their borders, none inside."""
    for one, other in pairwise(segments):
        if other[0] < one[1]:
            raise Invalid(f"regions overlap at level {level.name!r}: {one} and {other}", "value")
    found: dict[str, Any] = {"labels": segments}
    if not level.unit:
        found["on"] = sorted({place for i, j, _ in segments for place in (i, j) if 0 < place < length})
        found["off"] = [[i + 1, j] for i, j, _ in segments if j > i + 1]
    return found


# -- ELAN: a tier a level for people, another for the model


def elan(record: Record) -> bytes:
    """One sequence as an ELAN document; a step lasts a second."""
    root = xml.Element("ANNOTATION_DOCUMENT", AUTHOR=_legal(", ".join(record.annotators)), FORMAT="3.0", VERSION="3.0")
    root.set("DATE", (record.state.at or "1970-01-01T00:00:00")[:19] + "+00:00")
    root.set("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance")
    root.set("xsi:noNamespaceSchemaLocation", "http://www.mpi.nl/tools/elan/EAFv3.0.xsd")
    xml.SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    tiers = [(level.name, record, level, False) for level in record.levels]
    tiers += [(f"{level.name} (model)", record, level, True) for level in record.levels]
    segments = {name: _tier_segments(record, level, model) for name, record, level, model in tiers}
    times = sorted({time for some in segments.values() for start, stop, _ in some for time in (start, stop)})
    order = xml.SubElement(root, "TIME_ORDER")
    for k, time in enumerate(times, start=1):
        xml.SubElement(order, "TIME_SLOT", TIME_SLOT_ID=f"ts{k}", TIME_VALUE=str(time * STEP))
    slot = {time: f"ts{k}" for k, time in enumerate(times, start=1)}
    number = 0
    for name, some in segments.items():
        tier = xml.SubElement(root, "TIER", LINGUISTIC_TYPE_REF="segments", TIER_ID=_legal(name))
        for start, stop, label in some:
            number += 1
            place = {"TIME_SLOT_REF1": slot[start], "TIME_SLOT_REF2": slot[stop]}
            box = xml.SubElement(tier, "ANNOTATION")
            annotation = xml.SubElement(box, "ALIGNABLE_ANNOTATION", {"ANNOTATION_ID": f"a{number}", **place})
            xml.SubElement(annotation, "ANNOTATION_VALUE").text = _legal(str(label))
    xml.SubElement(
        root, "LINGUISTIC_TYPE", GRAPHIC_REFERENCES="false", LINGUISTIC_TYPE_ID="segments", TIME_ALIGNABLE="true"
    )
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="utf-8")


def _tier_segments(record: Record, level: Level, model: bool) -> list[Any]:
    if not model:
        return [tuple(segment) for segment in record.segments(level)]
    return [tuple(s) for s, whose in record.shown(level) if whose == MODEL and s[2] is not None]


def _legal(text: str) -> str:
    """Text without what XML cannot hold."""
    return ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)
