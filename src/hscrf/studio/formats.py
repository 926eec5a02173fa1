"""Labels out, and in again: every format says which labels are a person's and which the model's."""

from __future__ import annotations

import io as streams
import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hscrf import io
from hscrf.io.documents import Document
from hscrf.studio.bridges import elan, label_studio_tasks, read_task
from hscrf.studio.events import Invalid
from hscrf.studio.records import Record, records_of

EXPORTS = ("jsonl", "columns", "csv", "label-studio", "elan", "model")


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
        return Export("labels-elan.zip", "application/zip", _zipped(records))
    if form == "label-studio":
        text = json.dumps(label_studio_tasks(records, studio.kind), ensure_ascii=False, indent=1)
        return Export("labels-label-studio.json", "application/json", text.encode("utf-8", "replace"))
    target = streams.StringIO()
    if form == "jsonl":
        io.write_jsonl(target, map(json_document, records))
        return Export("labels.jsonl", "application/x-ndjson", target.getvalue().encode("utf-8", "replace"))
    documents = column_documents(records)
    if form == "columns":
        io.write_columns(target, documents, separator="\t")
        return Export("labels.tsv", "text/tab-separated-values; charset=utf-8", target.getvalue().encode("utf-8"))
    io.write_table(target, documents)
    return Export("labels.csv", "text/csv; charset=utf-8", target.getvalue().encode("utf-8"))


def _model(studio: Any) -> Export:
    path = studio.desk.shelf.newest_file()
    if path is None or not path.is_file():
        raise Invalid("there is no model yet", "format")
    return Export("model.hscrf", "application/octet-stream", path.read_bytes())


def json_document(record: Record) -> Document:
    """What JSON Lines say: "labels" are people's, "prediction" is the model's under them, "by" tells whose is what."""
    labels = {level.name: record.labels(level) for level in record.levels}
    extra: dict[str, Any] = {"status": record.state.status}
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
    return Document(record.tokens, labels, extra, record.name)


def _loose_borders(record: Record, level: Any) -> dict[str, Any] | None:
    """Borders that the labels do not tell, because they are not those of known segments."""
    from hscrf.studio.views import borders

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


def column_documents(records: Iterable[Record]) -> Iterator[Document]:
    """A column a level with what people said, one with the model's, and one that says whose the label is."""
    for record in records:
        labels = {level.name: record.tags(level) for level in record.levels}
        extra: dict[str, Any] = {}
        for level in record.levels:
            extra[f"{level.name}_predicted"] = record.predicted_tags(level)
            extra[f"{level.name}_by"] = record.by(level)
        tokens, names = _rows(record.tokens)
        yield Document(tokens, labels, extra, record.name, columns=(*names, *labels))


def _rows(tokens: list[Any]) -> tuple[list[Any], list[str]]:
    """Tokens as rows of cells, and the names of their columns."""
    first = tokens[0]
    if isinstance(first, dict):
        names = list(dict.fromkeys(key for token in tokens for key in token))
        return [[str(token.get(name, "")) for name in names] for token in tokens], names
    if isinstance(first, list):
        widest = max(map(len, tokens))
        rows = [[*(io.cell_text(cell) for cell in token), *[""] * (widest - len(token))] for token in tokens]
        return rows, [f"x{k}" for k in range(1, widest + 1)]
    return [[io.cell_text(token)] for token in tokens], ["token"]


def _zipped(records: Iterable[Record]) -> bytes:
    """An ELAN file for each sequence; names of files are numbers, since names of sequences may be anything."""
    target = streams.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for n, record in enumerate(records, start=1):
            safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in record.name)[:60]
            archive.writestr(f"{n:04d}_{safe}.eaf", elan(record))
    return target.getvalue()


def take(studio: Any, content: Any) -> dict[str, Any]:
    """Take in the annotations of Label Studio's JSON; what cannot be read is refused task by task."""
    if not isinstance(content, list):
        raise Invalid("content is no list of tasks", "content")
    desk = studio.desk
    names = {sheet.name: sheet for sheet in desk.sheets.values()}
    taken, labels, refused = 0, 0, []
    for n, task in enumerate(content):
        try:
            name, body, uid = read_task(task, names, desk.levels, studio)
        except Invalid as error:
            refused.append({"task": n, "message": str(error)})
            continue
        count = sum(len(entry["labels"]) for entry in body["levels"].values())
        if count:
            desk.take_import(names[name].id, body, uid)
            taken, labels = taken + 1, labels + count
    studio.news.tell("queue")
    return {"sequences": taken, "labels": labels, "refused": refused}
