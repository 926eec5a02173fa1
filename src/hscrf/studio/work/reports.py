"""What was done so far: accepted sequences, their corrections, models and their quality, minutes of work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from hscrf.studio.data.evidence import known_segments
from hscrf.studio.work.queue import is_random

PAUSE = 300  # seconds without an event that count as work


def progress(studio: Any) -> dict[str, Any]:
    """Corrections of each accepted sequence in the order of acceptance, and the models with their quality.

    Sequences that were accepted in bulk count as done only: their corrections are unknown.
    """
    rows: list[dict[str, Any]] = []
    accepted = [tracked for tracked in studio.workspace.sequences.values() if tracked.state.acceptance is not None]
    for tracked in accepted:
        event = tracked.state.acceptance
        if "batch" not in event.body:
            rows.append(
                {
                    "id": tracked.id,
                    "name": tracked.name,
                    "count": tracked.state.corrections,
                    "steps": tracked.length,
                    "model": event.model,
                    "chosen": chosen(tracked),
                    "agreed": event.body.get("agreed"),
                    "guess_of": event.body.get("guess_of"),
                    "at": event.at,
                }
            )
    rows.sort(key=lambda row: row["at"])
    models = [_model_row(entry, rows) for entry in studio.database.models()]
    return {
        "done": len(accepted),
        "sequences": len(studio.workspace.sequences),
        "segments": sum(_confirmed(tracked) for tracked in studio.workspace.sequences.values()),
        "minutes": minutes_of(studio.database.event_times()),
        "corrections": rows,
        "models": models,
    }


def _confirmed(tracked: Any) -> int:
    """Segments of a sequence that a person has accepted or fixed, or that came with the data, at all levels."""
    with tracked.guard:
        knowledge = tracked.state.knowledge
        found = sum(label is not None for level in knowledge.levels for _, _, label in known_segments(knowledge, level))
        if tracked.suggestion is None:
            tracked.state.drop_cells()
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


def chosen(tracked: Any) -> str:
    """Why a sequence that is done was chosen."""
    if tracked.state.acceptance is None:
        return "file"
    return "random" if is_random(tracked.name) else "doubt"
