"""Edits of a studio's labels: a preview says what an edit would do; it is done and undone as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hscrf.studio.data.label_edits import Change, checked, edited, last_edit, looks
from hscrf.studio.data.problems import Invalid


def preview(studio: Any, changes: Any) -> list[str]:
    """What an edit would do to the labels that exist, in sentences; raises :class:`Invalid` if it cannot be done."""
    wanted = checked(changes)
    _check(studio, wanted)
    return [sentence for change in wanted for sentence in _effect_of(studio, change)]


def apply(studio: Any, changes: Any) -> None:
    """Do an edit of labels: one step, whatever number of changes it has."""
    wanted = checked(changes)
    _check(studio, wanted)
    _idle(studio)
    studio.database.edit_labels(wanted)
    _told(studio)


def undo(studio: Any) -> None:
    """Take the last edit of labels back as a whole."""
    _idle(studio)
    if not studio.database.undo_label_edit():
        raise Invalid("there is no edit of labels to undo", kind="nothing")
    _told(studio)


def shown(studio: Any) -> dict[str, Any]:
    """Data for the page: how labels look, and which edit is undone next."""
    log = studio.database.label_edits()
    last = last_edit(log)
    return {
        "looks": looks(log),
        "last_edit": None if last is None else "; ".join(_words(change) for change in last["changes"][:3]),
    }


def _check(studio: Any, changes: list[dict[str, Any]]) -> None:
    if not all(isinstance(name, str) for names in studio.project.topology.states for name in names):
        raise Invalid("labels that are no text cannot be edited here", "label")
    edited(studio.project.topology, changes, strict=True)
    number = len(studio.database.label_edits())
    entry = {"edit": number, "kind": "do", "at": 0, "changes": changes}
    for level, rows in looks([*studio.database.label_edits(), entry]).items():
        keys = [row["key"] for row in rows.values() if "key" in row]
        if len(set(keys)) < len(keys):
            raise Invalid(f"two labels of level {level!r} have the same key", "key")


def _idle(studio: Any) -> None:
    if studio.trainer.state()["running"]:
        raise Invalid("a model is being trained with the labels as they are: wait for it, or stop it", kind="running")


def _told(studio: Any) -> None:
    studio.workspace.relabel()
    studio.notifications.send("labels")
    studio.workspace.worker.patient("doubts", studio._sweep)


def _words(change: Change) -> str:
    level, label = change["level"], change["label"]
    return {
        "add": f"{level}: {label} added",
        "rename": f"{level}: {label} renamed to {change.get('to')}",
        "remove": f"{level}: {label} removed",
        "move": f"{level}: {label} moved to {', '.join(change.get('parents', ()))}",
        "look": f"{level}: look of {label}",
    }[change["do"]]


def _effect_of(studio: Any, change: Change) -> list[str]:
    """What one change does."""
    level, label = change["level"], change["label"]
    if change["do"] == "look":
        return []
    if change["do"] == "add":
        return [
            f"{level} gets the label {label}. Nothing that exists changes; the model uses it after the next training."
        ]
    segments, sequences, whole = _counted(studio, level, label)
    amount = f"{_count(segments, 'segment')} in {_count(sequences, 'sequence')}"
    if change["do"] == "rename":
        return [f"{amount} of {level} named {label} are named {change['to']} from now on."]
    if change["do"] == "remove":
        again = f" {_count(whole, 'accepted sequence')} must be accepted again." if whole else ""
        return [f"{amount} of {level} lose the label {label}: their steps are unlabelled, or suggested anew.{again}"]
    wrong, where = _outside(studio, level, label, change["parents"])
    contradict = f"{_count(wrong, 'segment')} in {_count(where, 'sequence')} lie elsewhere and will contradict it."
    rest = contradict if wrong else "No label that exists contradicts it."
    return [f"{level} {label} is allowed in {', '.join(change['parents'])} alone. {rest} "
            "The model follows after the next training."]  # fmt: skip


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _counted(studio: Any, level: str, label: str) -> tuple[int, int, int]:
    """Segments that people or files gave a label, the sequences that have some, and those of them that are done."""
    segments = sequences = whole = 0
    for tracked in studio.workspace.sequences.values():
        with tracked.guard:
            is_it = _steps(tracked, level, label)
            done = tracked.state.status == "done"
        if is_it.any():
            segments += int(is_it[0]) + int((is_it[1:] & ~is_it[:-1]).sum())
            sequences += 1
            whole += done
    return segments, sequences, whole


def _steps(tracked: Any, level: str, label: str) -> Any:
    """Which steps people or files have given a label (T,)."""
    knowledge = tracked.state.knowledge
    found = knowledge.cells[level].label == knowledge.level(level).code(label)
    if tracked.suggestion is None:
        tracked.state.drop_cells()
    return found


def _outside(studio: Any, level: str, label: str, parents: Any) -> tuple[int, int]:
    """Segments of a label that lie in other parents than these, and the sequences that have some."""
    names = [each.name for each in studio.workspace.levels]
    above = names[names.index(level) - 1]
    segments = sequences = 0
    for tracked in studio.workspace.sequences.values():
        with tracked.guard:
            is_it = _steps(tracked, level, label)
            knowledge = tracked.state.knowledge
            allowed = [knowledge.level(above).code(parent) for parent in parents]
            over = knowledge.cells[above].label
            wrong = is_it & (over >= 0) & ~np.isin(over, allowed)
        if wrong.any():
            segments += int(wrong[0]) + int((wrong[1:] & ~wrong[:-1]).sum())
            sequences += 1
    return segments, sequences


def guidelines(studio: Any, given: Mapping[str, Any]) -> None:
    """Keep the text that says how to label."""
    text = given.get("guidelines")
    if not isinstance(text, str) or len(text) > 100_000:
        raise Invalid("guidelines are no text of at most 100,000 characters", "guidelines")
    studio.database.set("guidelines", text)
