"""Convert labels to files of other programs, and find the sequences for labels from their files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hscrf.io.elan import write_eaf
from hscrf.io.exports import file_name
from hscrf.io.label_studio import write_label_config
from hscrf.io.spans import Labelled, Span, joined
from hscrf.io.timelines import MODEL_TIER, PlaceError, Timeline, digest_of, place
from hscrf.studio.data.knowledge import Level
from hscrf.studio.data.sequences import numeric_channels, shown
from hscrf.studio.exchange.records import MODEL, ExportRecord

# -- Label Studio: a from_name a level; text has character offsets, a series the times of its first and last sample


def label_studio_tasks(records: Iterable[ExportRecord], kind: str, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Tasks: people's segments are annotations, the model's are predictions."""
    return [_task(n, record, kind, columns) for n, record in enumerate(records, start=1)]


def label_config(levels: Sequence[Level], kind: str, channels: Sequence[str]) -> str:
    """The label configuration that such tasks need."""
    return write_label_config({level.name: level.labels for level in levels}, kind, channels)


def _task(n: int, record: ExportRecord, kind: str, columns: Sequence[str]) -> dict[str, Any]:
    said = [(level, segment) for level in record.levels for segment in record.segments(level)]
    data = _data(record, kind, columns)
    found: dict[str, Any] = {"id": n, "data": {"name": record.name, **data}}
    found["annotations"] = [{"result": [_region(record, data, *one) for one in said]}] if said else []
    guessed = [(level, segment) for level in record.levels for segment, whose in record.shown(level) if whose == MODEL]
    guesses = [_region(record, data, level, segment) for level, segment in guessed if segment[2] is not None]
    version = f"hscrf model {record.model}"
    found["predictions"] = [{"model_version": version, "result": guesses}] if guesses else []
    return found


def _data(record: ExportRecord, kind: str, columns: Sequence[str]) -> dict[str, Any]:
    """The text of a task, or its series: times in seconds where they are known, else numbers of steps."""
    if kind == "text":
        return {"text": written(record)[0]}
    steps = range(len(record.tokens))
    time = record.seconds or list(steps)
    channels = numeric_channels(record.tokens, columns)
    values = {name: [None if np.isnan(v) else round(float(v), 6) for v in row] for name, row in channels.items()}
    return {"ts": {**values, "time": time}}


def written(record: ExportRecord) -> tuple[str, list[tuple[int, int]]]:
    """The text of a sequence, and where each step begins and ends in it."""
    return record.text or joined(words_of(record.tokens))


def words_of(tokens: list[Any]) -> list[str]:
    """The words of a text as they are shown."""
    return list(shown(tokens, "text")["tokens"])


def _region(record: ExportRecord, data: Mapping[str, Any], level: Level, segment: Sequence[Any]) -> dict[str, Any]:
    start, stop, label = segment
    key = f"{level.name}/{start}/{stop}"
    found = {"id": hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:10], "from_name": level.name}
    if "text" in data:
        text, places = written(record)
        first, last = places[start][0], places[stop - 1][1]
        value = {"start": first, "end": last, "text": text[first:last], "labels": [label]}
        return {**found, "to_name": "text", "type": "labels", "value": value}
    time = data["ts"]["time"]
    value = {"start": time[start], "end": time[stop - 1], "instant": start == stop - 1, "timeserieslabels": [label]}
    return {**found, "to_name": "ts", "type": "timeserieslabels", "value": value}


# -- ELAN, Praat, BORIS, tables of segments


def labelled(record: ExportRecord) -> Labelled:
    """The labels of people for a sequence."""
    spans = [
        Span(*segment[:2], level.name, segment[2]) for level in record.levels for segment in record.segments(level)
    ]
    return Labelled(record.name, record.tokens, spans, tuple(level.name for level in record.levels), record.times)


def tiers_with_model(record: ExportRecord) -> dict[str, list[Any]]:
    """A tier a level for people, another for the model."""
    tiers: dict[str, list[Any]] = {level.name: list(record.segments(level)) for level in record.levels}
    for level in record.levels:
        guessed = [tuple(s) for s, whose in record.shown(level) if whose == MODEL and s[2] is not None]
        tiers[f"{level.name}{MODEL_TIER}"] = guessed
    return tiers


def elan(record: ExportRecord) -> bytes:
    """One sequence as an ELAN document."""
    author, date = ", ".join(record.annotators), record.state.at or "1970-01-01T00:00:00"
    return write_eaf(tiers_with_model(record), record.rate or 1.0, author, date, times=record.times, name=record.name)


# -- labels from files


class Places:
    """The sequences of a studio, found by the name, the recording or the text in a file."""

    def __init__(self, studio: Any) -> None:
        self.studio = studio
        sequences = studio.workspace.sequences.values()
        self.names = {tracked.name: tracked for tracked in sequences}
        media = studio.recordings
        self.files = {file_name(n, tracked.name): tracked for n, tracked in enumerate(sequences, start=1)}
        self.recordings = {_stem(media[tracked.name]): tracked for tracked in sequences if tracked.name in media}
        self._texts: dict[str, Any] | None = None

    @property
    def texts(self) -> dict[str, Any]:
        """Sequences by a digest of their words; made once: observations never change."""
        if self._texts is None:
            self._texts = {}
            for tracked in self.names.values():
                tokens = json.loads(self.studio.database.observations(tracked.id))
                self._texts.setdefault(digest_of(*words_of(tokens)), tracked)
        return self._texts

    def find(self, timeline: Timeline) -> Any:
        """The sequence of a timeline."""
        for name in (timeline.name, *timeline.names):
            unnumbered = re.sub(r"^\d{4}_", "", name)
            found = self.names.get(name) or self.files.get(name) or self.recordings.get(name)
            found = found or self.names.get(unnumbered)
            if name and found is not None:
                return found
        if self.studio.kind == "text":
            for text in timeline.texts:
                found = self.texts.get(digest_of(text))
                if found is not None:
                    return found
        also = ", and no sequence has its text" if self.studio.kind == "text" and timeline.texts else ""
        said = f"it is about {timeline.name!r}" if timeline.name else "it does not say what it is about"
        first = next(iter(self.names), "")
        raise PlaceError("", f"{said}, which is no sequence here, such as {first!r}{also}")


def _stem(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]


def body_of(timeline: Timeline, tracked: Any, studio: Any, source: str) -> tuple[dict[str, Any], str, int, list[str]]:
    """Body of an import event, its uid, how many borders were moved to a step, and the tiers that were left out."""
    levels = studio.workspace.levels
    words = None
    if timeline.unit == "characters":
        tokens = json.loads(studio.database.observations(tracked.id))
        words = words_of(tokens) if studio.kind == "text" else None
        wanted = digest_of(*words) if words is not None else ""
        text = next((text for text in timeline.texts if digest_of(text) == wanted), None)
        timeline = Timeline(timeline.name, timeline.intervals, timeline.unit, text, strict=timeline.strict)
    placed = place(timeline, {level.name: level.labels for level in levels}, studio.axis(tracked.id), words)
    body: dict[str, Any] = {"levels": {}, "source": source}
    for level in levels:
        segments = [[span.start, span.stop, span.label] for span in placed.spans if span.level == level.name]
        if segments:
            body["levels"][level.name] = _known(level, segments, tracked.length)
    digest = hashlib.sha256(json.dumps([tracked.name, body], sort_keys=True).encode()).hexdigest()
    return body, f"{source}-{digest[:40]}", placed.moved, placed.left_out


def _known(level: Level, segments: list[list[Any]], length: int) -> dict[str, Any]:
    """The known cells of segments: labels, boundaries at both ends, none inside."""
    found: dict[str, Any] = {"labels": segments}
    if not level.unit:
        found["on"] = sorted({place for i, j, _ in segments for place in (i, j) if 0 < place < length})
        found["off"] = [[i + 1, j] for i, j, _ in segments if j > i + 1]
    return found
