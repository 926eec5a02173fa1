"""Accepting many sequences at once: those with a confident model at every step; one undo for all."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from hscrf.studio.desk import Desk, Sheet
from hscrf.studio.events import Invalid
from hscrf.studio.store import Behind


def sure_ones(desk: Desk, confidence: Any, among: Collection[int] | None = None) -> list[tuple[Sheet, float]]:
    """The sequences that wait and whose least probable step has at least this probability, the surest first.

    Sequences that contradict themselves, lack a label, were skipped or flagged are left out: a person looks at them.
    What a model has said of a version of a sequence is remembered, so that each is decoded once.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0.5 <= confidence <= 1:
        raise Invalid(f"confidence is {confidence!r}, expected a number from 0.5 to 1", "confidence")
    found = []
    suggester = desk.shelf.suggester
    if suggester is None or not set(suggester.topology.levels[1:]) >= {level.name for level in desk.levels}:
        return []
    for sheet in list(desk.sheets.values()) if among is None else [desk.sheet(n) for n in among if n in desk.sheets]:
        if sheet.id not in desk.seen or sheet.state.status == "done" or sheet.state.marks.keys() & {"skip", "flag"}:
            continue
        least = desk.least_sure(sheet)
        if least is not None and least >= confidence:
            found.append((sheet, least))
    return sorted(found, key=lambda entry: -entry[1])


def preview(desk: Desk, confidence: Any) -> list[dict[str, Any]]:
    """What would be accepted: each sequence with the probability of its least sure step."""
    return [
        {"id": sheet.id, "name": sheet.name, "length": sheet.length, "confidence": round(least, 4)}
        for sheet, least in sure_ones(desk, confidence)
    ]


def accept_all(
    desk: Desk, confidence: Any, wanted: Any, annotator: str, left_alone: Collection[int] = ()
) -> dict[str, Any]:
    """Accept those of the wanted sequences that are still as sure; all have one batch, by which they are taken back.

    ``left_alone`` are sequences that other people are working on.
    """
    if not isinstance(wanted, list) or not all(isinstance(n, int) for n in wanted):
        raise Invalid("sequences are missing, expected the numbers that the preview showed", "sequences")
    batch, accepted = uuid.uuid4().hex, []
    for sheet, _ in sure_ones(desk, confidence, [n for n in wanted if n not in left_alone]):
        suggester = desk.suggester(sheet.id)
        assert suggester is not None
        with sheet.guard:
            suggestion = suggester.suggest(sheet.id, sheet.state.knowledge, sheet.state.version)
            body = {"whole": True, "batch": batch, "segments": suggestion.segments}
            if _post(desk, sheet, "accept", body, annotator):
                accepted.append(sheet.id)
    return {"batch": batch, "accepted": accepted}


def last_batch(desk: Desk) -> dict[str, Any] | None:
    """The newest batch that can be taken back, and in how many sequences; None if there is none."""
    newest, counts = ("", ""), dict[str, int]()
    for sheet in list(desk.sheets.values()):
        event = sheet.state.in_force[-1] if sheet.state.in_force else None
        batch = None if event is None else event.body.get("batch")
        if event is not None and batch:
            counts[batch] = counts.get(batch, 0) + 1
            newest = max(newest, (event.at, batch))
    return {"batch": newest[1], "count": counts[newest[1]]} if counts else None


def take_back(desk: Desk, batch: Any, annotator: str, left_alone: Collection[int] = ()) -> dict[str, Any]:
    """Undo the acceptance of a batch in all sequences in which nothing has happened since, and nobody else works."""
    if not isinstance(batch, str) or not batch:
        raise Invalid(f"batch is {batch!r}, expected the one that accepting answered", "batch")
    undone: list[int] = []
    kept: list[int] = []
    for sheet in list(desk.sheets.values()):
        if any(event.body.get("batch") == batch for event in sheet.state.in_force):
            last = sheet.state.in_force[-1].body.get("batch") == batch and sheet.id not in left_alone
            (undone if last and _post(desk, sheet, "undo", {}, annotator) else kept).append(sheet.id)
    return {"undone": undone, "kept": kept}


def _post(desk: Desk, sheet: Sheet, kind: str, body: Mapping[str, Any], annotator: str) -> bool:
    """Store one event; whether it was, since another page may have been quicker."""
    event = {"uid": uuid.uuid4().hex, "version": sheet.state.version, "kind": kind, "body": body}
    try:
        desk.post(sheet.id, {**event, "annotator": annotator})
    except Behind:
        return False
    return True
