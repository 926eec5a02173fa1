"""The model store of a database: its model files, the model in use, and the model that is used next."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hscrf.studio.data.database import Database, NotSaved
from hscrf.studio.data.label_edits import Log, since
from hscrf.studio.data.project import Project
from hscrf.studio.model.suggestions import Suggester


class ModelStore:
    """Model files in a folder next to the database: numbered, never overwritten.

    The model that was given has a number too. A database that is opened again uses its newest model, unless a different
    model is given.
    """

    def __init__(self, database: Database, project: Project, observe: Callable[[int], Any]) -> None:
        self.database, self.project, self.observe = database, project, observe
        self.folder = Path(database.path + ".models")
        self.number: int | None = None
        self.suggester: Suggester | None = None
        self.waiting: tuple[int, Suggester] | None = None
        self.notices: list[dict[str, str]] = []

    def open(self) -> None:
        """Choose the first model in use."""
        self._sweep()
        known = self.database.models()
        given = None if self.project.model is None else self._given(known)
        for entry in reversed(known if given is None or given["number"] in {m["number"] for m in known} else []):
            model = self._read(entry)
            if model is not None:
                self._take(entry["number"], model)
                return
        if given is not None:
            self._take(given["number"], self.project.model)

    def _given(self, known: list[dict[str, Any]]) -> dict[str, Any]:
        """The entry of the model that was given, a new one if its content is new."""
        if self.database.read_only:
            return {"number": max((m["number"] for m in known), default=0) + 1}
        path = self.draft()
        self.project.save(path, self.project.model)
        digest = digest_of(path)
        for entry in known:
            if entry["sha256"] == digest:
                os.unlink(path)
                return entry
        number = self.keep(path, 0, {"given": True})
        return {"number": number}

    def _read(self, entry: dict[str, Any]) -> Any:
        """A model from its file; None, and a notice, if the file has changed."""
        path = self.folder / entry["path"]
        try:
            if digest_of(path) != entry["sha256"]:
                raise ValueError(f"{path} was changed")
            model = self.project.load(str(path))
            if not set(model.topology_.levels) <= {"root", *self.project.topology.levels}:
                raise ValueError(f"{path} has other levels than the database")
            return model
        except (OSError, ValueError) as error:
            self.notices.append({"kind": "model", "message": f"model {entry['number']} cannot be used: {error}"})
            return None

    def _take(self, number: int, model: Any) -> None:
        made = {entry["number"]: entry["metrics"].get("edits", 0) for entry in self.database.models()}
        self.number, self.suggester = number, self.suggester_for(model, made.get(number))

    def given(self) -> Any:
        """The last model that was given: new ones are learned around its weights. None if all were trained here."""
        if self.project.model is not None:
            return self.project.model
        entries = [entry for entry in self.database.models() if entry["metrics"].get("given")]
        return self._read(entries[-1]) if entries else None

    def suggester_for(self, model: Any, edits: int | None = None) -> Suggester:
        """The suggester of a model that was made after a number of edits of labels; None means all."""
        log = self.database.label_edits()
        later = [] if edits is None else list(since(_renumbered(log), edits))
        return Suggester(model, self.observe, self.project.levels, later)

    def relabel(self) -> None:
        """Let the models that are open follow an edit of labels."""
        made = {entry["number"]: entry["metrics"].get("edits", 0) for entry in self.database.models()}
        if self.suggester is not None and self.number is not None:
            self.suggester = self.suggester_for(self.suggester.model, made.get(self.number, 0))
        if self.waiting is not None:
            number, suggester = self.waiting
            self.waiting = (number, self.suggester_for(suggester.model, made.get(number, 0)))

    # -- new models

    def draft(self) -> str:
        """A name for a model file that is being made."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise NotSaved("disk", f"no model can be kept in {self.folder.name}: {error.strerror}") from None
        return str(self.folder / f"draft-{os.getpid()}-{len(self.database.models()) + 1}.hscrf")

    def keep(self, draft: str, events_upto: int, metrics: dict[str, Any]) -> int:
        """Give a finished file its number."""
        number = len(self.database.models()) + 1
        name = f"model-{number:04d}.hscrf"
        os.replace(draft, self.folder / name)
        made = {**metrics, "edits": len(self.database.label_edits())}
        return self.database.add_model(name, digest_of(self.folder / name), events_upto, made, "ready")

    def take_over(self) -> bool:
        """Put the waiting model into use; return whether there was one."""
        waiting, self.waiting = self.waiting, None
        if waiting is None:
            return False
        self.number, self.suggester = waiting
        return True

    def newest_file(self) -> Path | None:
        """The file of the newest model."""
        entries = self.database.models()
        return self.folder / entries[-1]["path"] if entries else None

    def _sweep(self) -> None:
        """Remove files left by processes that died."""
        if not self.database.read_only:
            for path in [*self.folder.glob("draft-*"), *self.folder.glob(".hscrf-*")]:
                with contextlib.suppress(OSError):
                    path.unlink()


def _renumbered(log: Log) -> Log:
    """The log of edits with places in the log instead of events."""
    return [{**entry, "at": place} for place, entry in enumerate(log)]


def digest_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
