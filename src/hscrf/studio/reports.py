"""What was done so far: accepted sequences, their corrections, models and their quality, minutes of work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from hscrf.studio.evidence import known_segments
from hscrf.studio.queue import is_random

PAUSE = 300  # seconds without an event that count as work


def progress(studio: Any) -> dict[str, Any]:
    """Corrections of each accepted sequence in the order of acceptance, and the models with their quality."""
    rows: list[dict[str, Any]] = []
    for sheet in studio.desk.sheets.values():
        event = sheet.state.acceptance
        if event is not None:
            rows.append(
                {
                    "id": sheet.id,
                    "name": sheet.name,
                    "count": sheet.state.corrections,
                    "steps": sheet.length,
                    "model": event.model,
                    "chosen": chosen(sheet),
                    "agreed": event.body.get("agreed"),
                    "guess_of": event.body.get("guess_of"),
                    "at": event.at,
                }
            )
    rows.sort(key=lambda row: row["at"])
    models = [_model_row(entry, rows) for entry in studio.store.models()]
    return {
        "done": len(rows),
        "sequences": len(studio.desk.sheets),
        "segments": sum(_confirmed(sheet) for sheet in studio.desk.sheets.values()),
        "minutes": minutes_of(studio.store.event_times()),
        "corrections": rows,
        "models": models,
    }


def _confirmed(sheet: Any) -> int:
    """Segments of a sequence that a person has accepted or fixed, or that came with the data, at all levels."""
    with sheet.guard:
        knowledge = sheet.state.knowledge
        found = sum(label is not None for level in knowledge.levels for _, _, label in known_segments(knowledge, level))
        if sheet.suggestion is None:
            sheet.state.shed()
    return found


def _model_row(entry: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    honest = [
        row["agreed"]
        for row in rows
        if row["chosen"] == "random" and row["guess_of"] == entry["number"] and row["agreed"] is not None
    ]
    metrics = entry["metrics"]
    return {
        "number": entry["number"],
        "status": entry["status"],
        "sequences": metrics.get("sequences"),
        "loss": metrics.get("loss"),
        "seconds": metrics.get("seconds"),
        "at": entry["at"],
        "quality": sum(honest) / len(honest) if honest else None,
    }


def minutes_of(times: Sequence[str]) -> float:
    """Minutes of work: the time between two events, where it is no longer than a pause.

    >>> minutes_of(["2026-01-01T10:00:00.0Z", "2026-01-01T10:01:30.0Z", "2026-01-01T12:00:00.0Z"])
    1.5
    """
    moments = [datetime.strptime(each, "%Y-%m-%dT%H:%M:%S.%fZ") for each in times]
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(moments)]
    return round(sum(gap for gap in gaps if gap <= PAUSE) / 60, 1)


def chosen(sheet: Any) -> str:
    """Why a sequence that is done was chosen."""
    if sheet.state.acceptance is None:
        return "file"
    return "random" if is_random(sheet.name) else "doubt"
