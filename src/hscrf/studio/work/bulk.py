"""Accepting many sequences at once: those with a confident model in every segment; one undo for all."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from hscrf.studio.data.database import Behind
from hscrf.studio.data.problems import Invalid
from hscrf.studio.work.workspace import TrackedSequence, Workspace


def sure_ones(
    workspace: Workspace, confidence: Any, among: Collection[int] | None = None
) -> list[tuple[TrackedSequence, float]]:
    """The sequences that wait and whose least sure segment has at least this probability, the surest first.

    Sequences that contradict themselves, lack a label, were skipped or flagged are left out: a person looks at them.
    What a model has said of a version of a sequence is remembered, so that each is decoded once.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0.5 <= confidence <= 1:
        raise Invalid(f"confidence is {confidence!r}, expected a number from 0.5 to 1", "confidence")
    found = []
    suggester = workspace.model_store.suggester
    if suggester is None or not set(suggester.topology.levels[1:]) >= {level.name for level in workspace.levels}:
        return []
    for tracked in (
        list(workspace.sequences.values())
        if among is None
        else [workspace.tracked(n) for n in among if n in workspace.sequences]
    ):
        if (
            tracked.id not in workspace.seen
            or tracked.state.status == "done"
            or tracked.state.marks.keys() & {"skip", "flag"}
        ):
            continue
        least = workspace.least_sure(tracked)
        if least is not None and least >= confidence:
            found.append((tracked, least))
    return sorted(found, key=lambda entry: -entry[1])


def preview(workspace: Workspace, confidence: Any) -> list[dict[str, Any]]:
    """What would be accepted: each sequence with the mean probability over the steps of its least sure segment."""
    return [
        {"id": tracked.id, "name": tracked.name, "length": tracked.length, "confidence": round(least, 4)}
        for tracked, least in sure_ones(workspace, confidence)
    ]


def accept_all(
    workspace: Workspace, confidence: Any, wanted: Any, annotator: str, left_alone: Collection[int] = ()
) -> dict[str, Any]:
    """Accept those of the wanted sequences that are still as sure; all have one batch, by which they are taken back.

    ``left_alone`` are sequences that other people are working on.
    """
    if not isinstance(wanted, list) or not all(isinstance(n, int) for n in wanted):
        raise Invalid("sequences are missing, expected the numbers that the preview showed", "sequences")
    batch, accepted = uuid.uuid4().hex, []
    for tracked, _ in sure_ones(workspace, confidence, [n for n in wanted if n not in left_alone]):
        suggester = workspace.suggester(tracked.id)
        assert suggester is not None
        with tracked.guard:
            suggestion = suggester.suggest(tracked.id, tracked.state.knowledge, tracked.state.version)
            body = {"whole": True, "batch": batch, "segments": suggestion.segments}
            if _post(workspace, tracked, "accept", body, annotator):
                accepted.append(tracked.id)
    return {"batch": batch, "accepted": accepted}


def last_batch(workspace: Workspace) -> dict[str, Any] | None:
    """The newest batch that can be taken back, and in how many sequences; None if there is none."""
    newest, counts = ("", ""), dict[str, int]()
    for tracked in list(workspace.sequences.values()):
        event = tracked.state.in_force[-1] if tracked.state.in_force else None
        batch = None if event is None else event.body.get("batch")
        if event is not None and batch:
            counts[batch] = counts.get(batch, 0) + 1
            newest = max(newest, (event.at, batch))
    return {"batch": newest[1], "count": counts[newest[1]]} if counts else None


def take_back(workspace: Workspace, batch: Any, annotator: str, left_alone: Collection[int] = ()) -> dict[str, Any]:
    """Undo the acceptance of a batch in all sequences that have not changed since and that no other person holds."""
    if not isinstance(batch, str) or not batch:
        raise Invalid(f"batch is {batch!r}, expected the one that accepting answered", "batch")
    undone: list[int] = []
    kept: list[int] = []
    for tracked in list(workspace.sequences.values()):
        if any(event.body.get("batch") == batch for event in tracked.state.in_force):
            last = tracked.state.in_force[-1].body.get("batch") == batch and tracked.id not in left_alone
            (undone if last and _post(workspace, tracked, "undo", {}, annotator) else kept).append(tracked.id)
    return {"undone": undone, "kept": kept}


def _post(workspace: Workspace, tracked: TrackedSequence, kind: str, body: Mapping[str, Any], annotator: str) -> bool:
    """Store one event; whether it was, since another page may have been quicker."""
    event = {"uid": uuid.uuid4().hex, "version": tracked.state.version, "kind": kind, "body": body}
    try:
        workspace.post(tracked.id, {**event, "annotator": annotator})
    except Behind:
        return False
    return True
