"""Export and import labels; every format distinguishes labels of people from those of the model."""

from __future__ import annotations

import io as streams
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hscrf import io
from hscrf.io.documents import Document
from hscrf.io.exports import file_name, segment_lines
from hscrf.io.timelines import MODEL_TIER
from hscrf.studio.data.problems import Invalid
from hscrf.studio.exchange.conversion import body_of, elan, label_config, label_studio_tasks, labelled, tiers_with_model
from hscrf.studio.exchange.records import ExportRecord, records_of
from hscrf.studio.work.claims import Held

TIME = "time"  # the column of times that readers of tables know
EXPORTS = (
    "jsonl", "columns", "csv", "segments", "label-studio", "label-config", "elan", "textgrid", "boris", "model"
)  # fmt: skip
SOURCES = {"eaf": "elan", "textgrid": "praat", "boris": "boris", "json": "label-studio", "csv": "table", "tsv": "table"}


@dataclass(frozen=True)
class Export:
    """A file to hand over."""

    name: str
    kind: str
    content: bytes


def export(studio: Any, form: str, accepted_only: bool = False) -> Export:
    """All sequences, or those that were accepted whole, in a format of :data:`EXPORTS`."""
    if form == "model":
        return _model(studio)
    records = records_of(studio, accepted_only)
    if form == "elan":
        return Export("labels-elan.zip", "application/zip", _zipped(records, ".eaf", elan))
    if form == "textgrid":
        return Export("labels-praat.zip", "application/zip", _zipped(records, ".TextGrid", _textgrid))
    if form == "boris":
        return Export("labels.boris", "application/json", io.write_boris(map(labelled, records), studio.rate))
    if form == "segments":
        rows = "".join(segment_lines(map(labelled, records), studio.rate))
        return Export("labels.segments.csv", "text/csv; charset=utf-8", rows.encode("utf-8", "replace"))
    if form == "label-config":
        config = label_config(studio.workspace.levels, studio.kind, studio.channels)
        return Export("label-config.xml", "application/xml", config.encode("utf-8", "replace"))
    if form == "label-studio":
        tasks = label_studio_tasks(records, studio.kind, studio.columns)
        text = json.dumps(tasks, ensure_ascii=False, indent=1)
        return Export("labels-label-studio.json", "application/json", text.encode("utf-8", "replace"))
    target = streams.StringIO()
    if form == "jsonl":
        io.write_jsonl(target, map(json_document, records))
        return Export("labels.jsonl", "application/x-ndjson", target.getvalue().encode("utf-8", "replace"))
    documents = column_documents(records)
    if form == "columns" and not has_numbers(studio):
        io.write_columns(target, map(_untimed, documents), separator="\t", header=True)
        return Export("labels.tsv", "text/tab-separated-values; charset=utf-8", target.getvalue().encode("utf-8"))
    if form == "columns":  # column files hold words; numbers are read as numbers only from tables
        io.write_table(target, documents, separator="\t")
        return Export("labels.tsv", "text/tab-separated-values; charset=utf-8", target.getvalue().encode("utf-8"))
    io.write_table(target, documents)
    return Export("labels.csv", "text/csv; charset=utf-8", target.getvalue().encode("utf-8"))


def has_numbers(studio: Any) -> bool:
    """Whether the steps of the sequences are numbers, or have some: by the first step of the first sequence."""
    first = next(iter(studio.workspace.sequences), None)
    token = None if first is None else json.loads(studio.database.observations(first))[0]
    cells = token.values() if isinstance(token, dict) else token if isinstance(token, list) else [token]
    return not all(isinstance(cell, str) for cell in cells)


def _model(studio: Any) -> Export:
    path = studio.workspace.model_store.newest_file()
    if path is None or not path.is_file():
        raise Invalid("there is no model yet", "format")
    return Export("model.hscrf", "application/octet-stream", path.read_bytes())


def json_document(record: ExportRecord) -> Document:
    """A line of JSON Lines: "labels" of people, "prediction" of the model given these, "by" the source of each part."""
    labels = {level.name: record.labels(level) for level in record.levels}
    extra: dict[str, Any] = {"status": record.state.status}
    if record.text is not None:
        extra |= {"text": record.text[0], "offsets": [list(place) for place in record.text[1]]}
    tokens = record.tokens
    if _is_table(tokens, record.columns):
        extra["columns"] = list(record.columns)
        tokens = [
            [token.get(name) for name in record.columns] if isinstance(token, dict) else token for token in tokens
        ]
    if record.seconds is not None:
        extra[TIME] = record.seconds
    if record.predicted:
        extra["prediction"] = {level.name: record.predicted.get(level.name) for level in record.levels}
        extra["by"] = {
            level.name: [[*segment[:2], whose] for segment, whose in record.shown(level)] for level in record.levels
        }
        extra["model"] = record.model
    else:
        extra["by"] = {level.name: _runs(record.by(level)) for level in record.levels}
    if record.annotators:
        extra["annotators"] = record.annotators
    borders = {level.name: _loose_borders(record, level) for level in record.levels if not level.unit}
    if any(borders.values()):
        extra["borders"] = {name: value for name, value in borders.items() if value}
    return Document(tokens, labels, extra, record.name)


def _loose_borders(record: ExportRecord, level: Any) -> dict[str, Any] | None:
    """Known boundaries that do not follow from known segments."""
    from hscrf.studio.work.views import borders

    known = borders(record.knowledge, level)
    told = isinstance(next(iter(record.labels(level)), []), list)
    return None if told or not any(known.values()) else known


def _runs(whose: list[str]) -> list[list[Any]]:
    found: list[list[Any]] = []
    for t, name in enumerate(whose):
        if found and found[-1][2] == name:
            found[-1][1] = t + 1
        else:
            found.append([t, t + 1, name])
    return found


def column_documents(records: Iterable[ExportRecord]) -> Iterator[Document]:
    """For each level a column with labels of people, one with labels of the model, and one with the source.

    Steps whose seconds are known have them in a column of times, unless something else has its name.
    """
    for record in records:
        labels = {level.name: record.tags(level) for level in record.levels}
        extra: dict[str, Any] = {}
        for level in record.levels:
            extra[f"{level.name}_predicted"] = record.predicted_tags(level)
            extra[f"{level.name}_by"] = record.by(level)
        tokens, names = _rows(record.tokens, record.columns)
        times = {TIME: record.seconds} if record.seconds is not None and TIME not in (*names, *labels) else {}
        columns = ("sequence", *times, *names, *labels)
        yield Document(tokens, labels, {**times, **extra}, record.name, columns=columns)


def _untimed(document: Document) -> Document:
    """The document of a column file, which has neither a column of names nor one of times."""
    extra = {name: column for name, column in document.extra.items() if name != TIME}
    columns = tuple(name for name in document.columns if name not in ("sequence", TIME))
    return replace(document, extra=extra, columns=columns)


def _is_table(tokens: list[Any], columns: Sequence[str]) -> bool:
    """Whether each token is a row with a cell for each of the columns, by name or by place."""
    known = set(columns)
    return bool(columns) and all(
        known >= token.keys() if isinstance(token, dict) else isinstance(token, list) and len(token) == len(columns)
        for token in tokens
    )


def _rows(tokens: list[Any], given: Sequence[str] = ()) -> tuple[list[Any], list[str]]:
    """Tokens as rows of cells, and the names of their columns; ``given`` are those of the data."""
    first = tokens[0]
    if isinstance(first, dict):
        names = (
            list(given) if _is_table(tokens, given) else list(dict.fromkeys(key for token in tokens for key in token))
        )
        return [[io.cell_text(token.get(name)) for name in names] for token in tokens], names
    if isinstance(first, list):
        widest = max(map(len, tokens))
        rows = [[*(io.cell_text(cell) for cell in token), *[""] * (widest - len(token))] for token in tokens]
        return rows, list(given) if _is_table(tokens, given) else [f"x{k}" for k in range(1, widest + 1)]
    return [[io.cell_text(token)] for token in tokens], ["token"]


def _zipped(records: Iterable[ExportRecord], ending: str, make: Callable[[ExportRecord], bytes]) -> bytes:
    """A file for each sequence; names of files are numbers, since names of sequences may be anything."""
    target = streams.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for n, record in enumerate(records, start=1):
            archive.writestr(file_name(n, record.name) + ending, make(record))
    return target.getvalue()


def _textgrid(record: ExportRecord) -> bytes:
    return io.write_textgrid(tiers_with_model(record), len(record.tokens), record.rate or 1.0, times=record.times)


# -- files of other programs


def take_file(studio: Any, name: str, content: bytes, who: str = "", by: str = "") -> dict[str, Any]:
    """Import the labels of a file; sequences that do not fit are refused one by one, with their lines.

    ``who`` imports, ``by`` is the key under which they hold sequences: those that others hold are refused.
    """
    ending = os.path.splitext(name)[1].lower().lstrip(".")
    source = SOURCES.get(ending, ending)
    try:
        return take(studio, io.read_annotations(content, name), source, who, by)
    except io.DataFileError as error:
        raise Invalid(str(error), "content") from None


def take_tasks(studio: Any, content: Any, who: str = "", by: str = "") -> dict[str, Any]:
    """Take in tasks of Label Studio."""
    if not isinstance(content, list):
        raise Invalid("content is not a list of tasks", "content")

    def read() -> Iterator[Any]:
        for n, task in enumerate(content):
            try:
                yield io.read_task(task, n)
            except io.PlaceError as error:
                yield error

    return take(studio, read(), "label-studio", who, by)


def take(studio: Any, timelines: Iterable[Any], source: str, who: str = "", by: str = "") -> dict[str, Any]:
    """Store the labels of timelines; all that can be read are read before any is stored."""
    workspace = studio.workspace
    refused: list[dict[str, Any]] = []
    left_out: dict[str, None] = {}
    ready = []
    moved = 0
    for n, timeline in enumerate(timelines):
        try:
            if isinstance(timeline, Exception):
                raise timeline
            tracked = studio.places.find(timeline)
            body, uid, shifted, others = body_of(timeline, tracked, studio, source)
            studio.claims.check(tracked.id, by)
        except (io.PlaceError, io.DataFileError, Held) as error:
            name = getattr(timeline, "name", "")
            refused.append({"task": n, "name": name, "message": str(error)})
            continue
        left_out.update(dict.fromkeys(others))
        moved += shifted
        if body["levels"]:
            ready.append((tracked, body, uid))
    labels = 0
    for tracked, body, uid in ready:
        workspace.take_import(tracked.id, body, uid, who)
        labels += sum(len(entry["labels"]) for entry in body["levels"].values())
    if ready:
        studio.notifications.send("queue")
    return {
        "sequences": len(ready),
        "labels": labels,
        "refused": refused,
        "moved": moved,
        "left_out": [tier for tier in left_out if not tier.endswith(MODEL_TIER)],
    }
