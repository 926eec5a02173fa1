"""The view of a sequence that the page gets."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hscrf.studio.data.conflicts import Group, crossed
from hscrf.studio.data.events import State
from hscrf.studio.data.knowledge import Knowledge, Level, runs_of
from hscrf.studio.model.suggestions import Suggestion

ORIGINS = np.array(["accepted", "file", "fixed", "model"], dtype=object)


def view(
    id: int,
    name: str,
    state: State,
    suggestion: Suggestion,
    model: int | None,
    changed: Mapping[str, list[list[int]]] | None = None,
) -> dict[str, Any]:
    """All that the page shows of a sequence."""
    knowledge = state.knowledge
    return {
        "id": id,
        "name": name,
        "length": state.length,
        "status": state.status,
        "version": state.version,
        "model": model,
        "exact": suggestion.exact,
        "window": suggestion.window,
        "saved_at": state.at or None,
        "segments": suggestion.segments,
        "by": {level.name: origins(knowledge, level, suggestion.segments[level.name]) for level in state.levels},
        "fixed_borders": {level.name: borders(knowledge, level) for level in state.levels},
        "fixes": fixes(knowledge),
        "doubt": {level: base64.b64encode(row.tobytes()).decode("ascii") for level, row in suggestion.doubt.items()},
        "entropy": suggestion.entropy,
        "changed": changed or {level.name: [] for level in state.levels},
        "conflict": conflict(knowledge, suggestion.conflict, state.version) if suggestion.conflict else None,
        "marks": state.marks,
        "unsettled": state.unsettled(),
        "can_undo": state.can_undo,
        "can_redo": state.can_redo,
        "took_ms": round(1000 * suggestion.seconds, 2),
    }


def origins(knowledge: Knowledge, level: Level, segments: Sequence[Sequence[Any]]) -> list[str]:
    """Where each segment comes from: "accepted", "fixed", "file" or "model"."""
    cells = knowledge.cells[level.name]
    if not segments:
        return []
    starts = np.array([segment[0] for segment in segments])
    code = {label: k for k, label in enumerate(level.labels)}
    shown = np.repeat([code.get(segment[2], -1) for segment in segments], np.diff(np.append(starts, knowledge.length)))
    known = (cells.label == shown) & (cells.label >= 0)
    filed = [version for version, (kind, _) in knowledge.fixes.items() if kind == "import"]
    whole = np.logical_and.reduceat(known, starts)
    file = whole & np.logical_and.reduceat(np.isin(cells.label_by, filed), starts)
    accepted = whole & np.logical_and.reduceat(cells.accepted, starts)
    if not level.unit:
        edge = cells.border.copy()
        edge[[0, -1]] = 1
        stops = np.append(starts[1:], knowledge.length)
        accepted &= (edge[starts] == 1) & (edge[stops] == 1)
    return ORIGINS[np.select([accepted, file, whole], [0, 1, 2], 3)].tolist()


def borders(knowledge: Knowledge, level: Level) -> dict[str, Any]:
    """The borders of a level that are fixed."""
    row = knowledge.cells[level.name].border
    off = [[i, j] for i, j, value in runs_of(row) if value == 0]
    return {"on": np.flatnonzero(row == 1).tolist(), "off": off}


def fixes(knowledge: Knowledge) -> list[dict[str, Any]]:
    """What is in force, oldest first."""
    found = []
    for version in sorted(knowledge.fixes):
        kind, body = knowledge.fixes[version]
        entry: dict[str, Any] = {"fix": version, "kind": kind, "by": "file" if kind == "import" else "person"}
        if kind == "accept":
            entry |= {"whole": bool(body.get("whole")), "count": sum(map(len, body["segments"].values()))}
        elif kind == "boundary":
            entry |= _boundary(body)
        elif kind != "import":
            entry |= {key: body[key] for key in ("level", "start", "stop", "label")}
        found.append(entry)
    return found


def _boundary(body: Mapping[str, Any]) -> dict[str, Any]:
    at, origin = body["at"], body.get("from", body["at"])
    off = [] if origin == at else [[origin, at] if origin < at else [at + 1, origin + 1]]
    return {"level": body["level"], "on": [at] if body["on"] else [], "off": off if body["on"] else [[at, at + 1]]}


def conflict(knowledge: Knowledge, groups: Sequence[Group], newest: int) -> dict[str, Any]:
    """Fixes that contradict each other, the rule that their borders break, and how to release each."""
    said = " and ".join(group.words for group in groups)
    items = [
        {
            "level": group.level,
            "start": group.start,
            "stop": group.stop,
            "what": group.words,
            "fix": group.version,
            "new": group.version == newest,
            "release": group.release,
        }
        for group in groups
    ]
    return {"message": f"these cannot all be: {said}", "rule": crossed(knowledge, groups), "items": items}
