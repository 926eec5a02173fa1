"""The desk: sequences, what is known of them, what is suggested, and every event on disk before it is answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hscrf.studio.events import Invalid, State, known_from
from hscrf.studio.evidence import imported
from hscrf.studio.items import Item
from hscrf.studio.knowledge import Level
from hscrf.studio.label_edits import active, edited
from hscrf.studio.news import News
from hscrf.studio.project import Project
from hscrf.studio.shelf import Shelf
from hscrf.studio.store import Behind, Event, Store
from hscrf.studio.suggestions import BYTE, Suggester, Suggestion, changed, overlaid, unmodelled
from hscrf.studio.views import view
from hscrf.studio.worker import Worker
from hscrf.topology import Topology

OPEN = 50  # sequences whose cells and suggestion are kept


@dataclass
class Sheet:
    """One sequence on the desk."""

    id: int
    name: str
    length: int
    sha256: str  # of its observations
    state: State
    guard: Any = field(default_factory=threading.RLock)
    suggestion: Suggestion | None = None
    model: int | None = None  # that suggested it
    used: float = 0.0
    least: tuple[int, int | None, float | None] = (-1, None, None)  # version, model, probability of its least sure step
    said: tuple[int, tuple[Level, ...], frozenset[tuple[str, str]]] = (-1, (), frozenset())  # what it has, of a version


class Missing(LookupError):
    """There is no such sequence."""


class Desk:
    """All that happens to sequences, apart from training and HTTP.

    ``post`` stores an event, then answers with the view under it. What is slow is answered for a window first and
    exactly later, by the worker; pages hear of it by the news.
    """

    def __init__(self, store: Store, project: Project, news: News) -> None:
        self.store, self.project, self.news = store, project, news
        self.given_topology = project.topology  # without what people edited
        project.topology = edited(project.topology, active(store.label_edits()))
        self.levels = project.levels
        self.notices: list[dict[str, str]] = []
        self._settle_topology()
        self.seen = self._take_in()
        self.sheets = {
            row.id: Sheet(row.id, row.name, row.length, row.sha256, self._replay(row.id, row.length))
            for row in store.sequences()
        }
        self.shelf = Shelf(store, project, self.seen.__getitem__)
        self.shelf.open()
        self.notices += self.shelf.notices
        self.warm = self.shelf.suggester is None
        self.worker = Worker()
        self.model_changed: Callable[[], None] = lambda: None
        unseen = len(self.sheets) - len(self.seen)
        if unseen:
            words = f"{unseen} sequences of the database are not in the data that was given: nothing is suggested there"
            self.notices.append({"kind": "unseen", "message": words})
        if store.read_only:
            self.notices.append(
                {"kind": "read_only", "message": "the database may only be read: nothing will be saved"}
            )

    # -- beginning

    def _settle_topology(self) -> None:
        """Remember the levels; a database keeps those that it began with, in which labels may become more."""
        former = self.store.setting("topology")
        if former is not None:
            before = Topology.from_dict(former)
            lost = [
                f"{level} {label!r}"
                for level, labels in zip(before.levels[1:], before.states[1:], strict=True)
                for label in labels
                if level not in self.project.topology.levels
                or label not in self.project.topology.states[self.project.topology.level(level)]
            ]
            if lost:
                raise ValueError(
                    f"{self.store.path} has labels that are not there any more: {', '.join(lost[:5])}; "
                    "give the labels it began with, or another database"
                )
        if not self.store.read_only and former != self.project.topology.to_json():
            self.store.set("topology", self.project.topology.to_json())

    def _take_in(self) -> dict[int, Any]:
        """Add the sequences that are new; what a model sees of each by its number."""
        known = {row.name: row for row in self.store.sequences()}
        fresh = [item for item in self.project.items if item.name not in known]
        for item in self.project.items:
            row = known.get(item.name)
            if row is not None and row.sha256 != item.sha256:
                raise ValueError(
                    f"sequence {item.name!r} is not what it was when {self.store.path} was made: its observations "
                    "differ; give another database, or another name"
                )
        if fresh and not self.store.read_only:
            self.store.add_all([(item.name, len(item.tokens), item.encoded, item.sha256) for item in fresh])
        numbers = {row.name: row.id for row in self.store.sequences()}
        for item in fresh:
            if item.labels is not None and item.name in numbers:
                body = imported(item.labels, self.levels)
                if body["levels"]:
                    n = numbers[item.name]
                    self.store.append(n, 0, f"import-{n}-{item.sha256[:16]}", "import", body)
        self._keep_texts(fresh, numbers)
        timed = [(numbers[item.name], item.times) for item in self.project.items if item.times and item.name in numbers]
        changed_times = [(n, times) for n, times in timed if self.store.times(n) != list(times)]
        if changed_times and not self.store.read_only:
            self.store.set_times(changed_times)
        return {numbers[item.name]: item.seen for item in self.project.items if item.name in numbers}

    def _keep_texts(self, fresh: Sequence[Item], numbers: Mapping[str, int]) -> None:
        """Keep the texts of sequences that are new, and how they were cut."""
        store, texts = self.store, self.project.texts
        if store.read_only:
            return
        cut = [(numbers[i.name], i.text, i.offsets) for i in fresh if i.text is not None and i.offsets is not None]
        if cut:
            store.set_texts(cut)
        if texts is not None and store.setting("cuts") is None:
            store.set("cuts", [{"tokens": texts.tokens, "at": 0}])

    def recut(self, items: Sequence[Item], tokens: str) -> None:
        """Take other tokens of the same texts: events are read on them, and everything is suggested anew."""
        numbers = {sheet.name: sheet.id for sheet in self.sheets.values()}
        rows = [(numbers[i.name], len(i.tokens), i.encoded, i.sha256, i.offsets or ()) for i in items]
        self.store.recut(rows, tokens)
        self.seen.clear()
        self.seen.update({numbers[item.name]: item.seen for item in items})
        self.shelf.relabel()
        lengths = {number: (length, sha256) for number, length, _, sha256, _ in rows}
        for sheet in self.sheets.values():
            if sheet.id in lengths:
                with sheet.guard:
                    sheet.length, sheet.sha256 = lengths[sheet.id]
                    sheet.state = self._replay(sheet.id, sheet.length)
                    sheet.suggestion, sheet.least, sheet.said = None, (-1, None, None), (-1, (), frozenset())

    def _replay(self, sequence: int, length: int) -> State:
        return State.replayed(self.levels, length, self.store.events(sequence))

    def relabel(self) -> None:
        """Read everything again after an edit of labels: levels, events, and what the models suggest."""
        self.project.topology = edited(self.given_topology, active(self.store.label_edits()))
        self.store.set("topology", self.project.topology.to_json())
        self.levels = self.project.levels
        self.shelf.relabel()
        for sheet in self.sheets.values():
            with sheet.guard:
                sheet.state = self._replay(sheet.id, sheet.length)
                sheet.suggestion = None

    def close(self) -> None:
        """Finish the task at hand and close the database."""
        self.worker.stop()
        self.store.close()

    # -- one sequence

    def sheet(self, sequence: int) -> Sheet:
        """A sequence by its number."""
        found = self.sheets.get(sequence)
        if found is None:
            raise Missing(f"there is no sequence {sequence}")
        found.used = time.monotonic()
        return found

    def view(self, sequence: int, opened: bool = False) -> dict[str, Any]:
        """What the page shows of a sequence; a waiting model takes over when one is opened."""
        sheet = self.sheet(sequence)
        if opened:
            self.take_over()
        with sheet.guard:
            self._suggest(sheet)
            return self._shown(sheet)

    def _shown(self, sheet: Sheet, different: Mapping[str, list[list[int]]] | None = None) -> dict[str, Any]:
        assert sheet.suggestion is not None
        return view(sheet.id, sheet.name, sheet.state, sheet.suggestion, sheet.model, different)

    def post(self, sequence: int, request: Mapping[str, Any]) -> dict[str, Any]:
        """Store an event and answer with the view under it; the same uid again changes nothing."""
        sheet = self.sheet(sequence)
        with sheet.guard:
            self._catch_up(sheet)
            former = self.store.find(request["uid"])
            if former is None:
                if request.get("length") not in (None, sheet.length):
                    raise Invalid("the text was cut into other tokens meanwhile: choose the steps again", kind="tokens")
                self._store(sheet, request)
            elif former[0] != sequence or former[1].kind != request["kind"]:
                raise Invalid(f"uid {request['uid']!r} belongs to another event", "uid")
            else:
                self._suggest(sheet)
                return {**self._shown(sheet), "repeated": True}
            before = sheet.suggestion
            self._suggest(sheet, fresh=True)
            assert sheet.suggestion is not None
            return self._shown(sheet, changed(before, sheet.suggestion))

    def _catch_up(self, sheet: Sheet) -> None:
        """Replay a sequence that the disk knows more of: a write that was said to have failed may be there."""
        if self.store.version(sheet.id) != sheet.state.version:
            sheet.state = self._replay(sheet.id, sheet.length)
            sheet.suggestion = None

    def _store(self, sheet: Sheet, request: Mapping[str, Any]) -> None:
        """Check an event and put it on disk, then into the state."""
        body = {}
        if request["version"] == sheet.state.version:  # else the store refuses it
            body = sheet.state.check(request["kind"], request["body"])
            if body.get("whole"):
                body |= self._first_guess(sheet, body["segments"])
        model = sheet.model if self.shelf.suggester is not None else None
        annotator = request.get("annotator") or self.store.setting("annotator", "")
        event = self.store.append(sheet.id, request["version"], request["uid"], request["kind"], body, annotator, model)
        sheet.state.apply(event)
        self.news.tell("saved", {"sequence": sheet.id, "version": event.version, "uid": event.uid})

    def take_import(self, sequence: int, body: Mapping[str, Any], uid: str, annotator: str = "") -> None:
        """Store labels that a person imported from a file of another program; pages show them at once.

        The same uid again changes nothing, unless what it stored was undone.
        """
        sheet = self.sheet(sequence)
        annotator = annotator or self.store.setting("annotator", "")
        with sheet.guard:
            self._catch_up(sheet)
            if any(event.uid == uid or event.uid.startswith(f"{uid}/") for event in sheet.state.in_force):
                return
            if self.store.find(uid) is not None:
                uid = f"{uid}/{sheet.state.version}"
            event = self.store.append(sequence, sheet.state.version, uid, "import", dict(body), annotator)
            if event.version == sheet.state.version + 1:
                sheet.state.apply(event)
            sheet.suggestion = None
        self.news.tell("saved", {"sequence": sheet.id, "version": sheet.state.version, "uid": event.uid})

    def alternatives(self, sequence: int, level: str, start: int, stop: int) -> list[dict[str, Any]]:
        """The labels that a segment could have, the most probable first; raises if an event comes meanwhile.

        Nobody waits for them: an event does not wait until they are there.
        """
        sheet = self.sheet(sequence)
        with sheet.guard:
            sheet.state.check("release", {"level": level, "start": start, "stop": stop})
            suggester = self.suggester(sequence)
            knowledge, version = sheet.state.knowledge.copy(), sheet.state.version
        if suggester is None or not self.warm or level not in suggester.topology.levels:
            return [_unrated(label) for label in knowledge.level(level).labels]
        found = suggester.alternatives(
            sequence, knowledge, level, start, stop, wanted=lambda: sheet.state.version == version
        )
        if found is None:
            raise Behind(f"version {version} is not the newest any more")
        top = max(found.values())
        weight = {label: np.exp(value - top) if value > -np.inf else 0.0 for label, value in found.items()}
        total = sum(weight.values())
        items: list[dict[str, Any]] = [
            {
                "label": label,
                "p": float(np.exp(value)),
                "share": float(weight[label] / total) if total else 0.0,
                "log_p": float(value) if value > -np.inf else None,
                "possible": bool(value > -np.inf),
            }
            for label, value in found.items()
        ]
        items.sort(key=lambda item: -item["p"])
        return items + [_unrated(label) for label in suggester.new.get(level, ())]

    # -- suggestions

    def suggester(self, sequence: int) -> Suggester | None:
        """What suggests labels of a sequence: the model, if it can see the sequence."""
        return self.shelf.suggester if sequence in self.seen else None

    def _suggest(self, sheet: Sheet, fresh: bool = False) -> None:
        """Bring the suggestion of a sequence up to date, exactly or as well as can be at once."""
        suggester, number = self.suggester(sheet.id), self.shelf.number
        if sheet.suggestion is not None and not fresh and sheet.model == number and sheet.suggestion.exact:
            return
        knowledge, version = sheet.state.knowledge, sheet.state.version
        if suggester is None:
            sheet.suggestion, sheet.model = unmodelled(knowledge, self.project.topology, version), number
        elif self.warm and not suggester.is_slow(sheet.length):
            sheet.suggestion, sheet.model = suggester.suggest(sheet.id, knowledge, version), number
        else:
            former = sheet.suggestion if sheet.model == number else None
            sheet.suggestion, sheet.model = self._at_once(sheet, suggester, former), number
            self.worker.urgent(sheet.id, lambda: self._exactly(sheet, version))
        self._make_room()

    def least_sure(self, sheet: Sheet) -> float | None:
        """The probability of the least sure step; None where something contradicts itself or has no label.

        It is remembered for a version and a model.
        """
        suggester, number = self.suggester(sheet.id), self.shelf.number
        if suggester is None:
            return None
        with sheet.guard:
            version = sheet.state.version
            if sheet.least[:2] != (version, number):
                current = sheet.suggestion is not None and sheet.suggestion.exact and sheet.model == number
                found = sheet.suggestion if current else None
                found = found or suggester.suggest(sheet.id, sheet.state.knowledge, version)
                self.note_least(sheet, version, number, found)
            return sheet.least[2]

    def note_least(self, sheet: Sheet, version: int, number: int | None, suggestion: Suggestion) -> None:
        """Remember how sure the least sure step of a suggestion is."""
        unlabelled = any(label is None for segments in suggestion.segments.values() for _, _, label in segments)
        least = 1 - max((float(np.max(row)) for row in suggestion.doubt.values()), default=BYTE) / BYTE
        sheet.least = (version, number, None if suggestion.conflict or unlabelled else least)

    def said_in(self, sheet: Sheet) -> frozenset[tuple[str, str]]:
        """The levels and labels that a person or a file has given to a sequence; remembered for a version."""
        with sheet.guard:
            if sheet.said[:2] != (sheet.state.version, tuple(self.levels)):
                cells = sheet.state.knowledge.cells
                found = {
                    (level.name, level.labels[code])
                    for level in self.levels
                    for code in np.unique(cells[level.name].label).tolist()
                    if code >= 0
                }
                sheet.said = (sheet.state.version, tuple(self.levels), frozenset(found))
                if sheet.suggestion is None:
                    sheet.state.shed()
            return sheet.said[2]

    def _at_once(self, sheet: Sheet, suggester: Suggester, former: Suggestion | None) -> Suggestion:
        """What can be shown before the exact answer: that for a window, or the former one under the fixes."""
        knowledge = sheet.state.knowledge
        if former is None or former.labels is None:
            return replace(unmodelled(knowledge, self.project.topology, sheet.state.version), exact=False)
        found = suggester.window(sheet.id, knowledge, sheet.state.touched(), former) if self.warm else None
        return found or overlaid(former, knowledge)

    def _exactly(self, sheet: Sheet, version: int) -> None:
        """Finish an answer that was for a window only."""
        suggester, number = self.suggester(sheet.id), self.shelf.number
        with sheet.guard:
            there = sheet.suggestion is not None and sheet.suggestion.exact and sheet.model == number
            if suggester is None or there or sheet.state.version != version:
                return
            knowledge = sheet.state.knowledge.copy()
        found = suggester.suggest(sheet.id, knowledge, version)
        with sheet.guard:
            if sheet.state.version != version or self.shelf.number != number:
                return
            sheet.suggestion, sheet.model = found, number
        news = {"sequence": sheet.id, "version": version, "model": number, "exact": True}
        self.news.tell("suggestion", news)

    def _first_guess(self, sheet: Sheet, segments: Mapping[str, list[list[Any]]]) -> dict[str, Any]:
        """How much of what is accepted the model would have said by itself: the share of steps right at all levels."""
        suggester = self.suggester(sheet.id)
        if suggester is None or not self.warm or suggester.is_slow(sheet.length):
            return {}
        came = [event for event in sheet.state.in_force if event.kind == "import"]
        guess = suggester.suggest(sheet.id, known_from(self.levels, sheet.length, came)).segments
        right = np.ones(sheet.length, dtype=bool)
        for level, truth in segments.items():
            right &= _spread(truth, sheet.length) == _spread(guess[level], sheet.length)
        return {"agreed": round(float(right.mean()), 4), "guess_of": self.shelf.number}

    def take_over(self) -> None:
        """Let a model that waits, if there is one, answer from now on; ``model_changed`` is called then."""
        first = self.shelf.suggester is None
        if not self.shelf.take_over():
            return
        self.warm = True
        self.model_changed()
        for sheet in self.sheets.values() if first else ():
            if sheet.suggestion is not None:
                news = {"sequence": sheet.id, "version": sheet.state.version, "model": self.shelf.number, "exact": True}
                self.news.tell("suggestion", news)

    def _make_room(self) -> None:
        """Forget what can be made again of the sequences that were not used for longest."""
        full = [sheet for sheet in self.sheets.values() if sheet.suggestion is not None]
        if len(full) > 2 * OPEN:
            for sheet in sorted(full, key=lambda sheet: sheet.used)[:OPEN]:
                if sheet.guard.acquire(blocking=False):
                    sheet.suggestion = None
                    sheet.state.shed()
                    sheet.guard.release()

    def history(self, sequence: int) -> list[dict[str, Any]]:
        """All events of a sequence, and whether each is in force."""
        sheet = self.sheet(sequence)
        in_force = {event.version for event in sheet.state.in_force}
        return [_told(event, in_force) for event in self.store.events(sequence)]


def _unrated(label: str) -> dict[str, Any]:
    """A label of which no model says how likely it is."""
    return {"label": label, "p": None, "share": None, "log_p": None, "possible": True}


def _told(event: Event, in_force: set[int]) -> dict[str, Any]:
    counted = event.kind not in ("undo", "redo", "mark", "differ", "history")
    undone = bool(event.body.get("undone")) if event.kind == "history" else counted and event.version not in in_force
    names = ("version", "kind", "body", "annotator", "model", "at")
    return {**{name: getattr(event, name) for name in names}, "undone": undone}


def _spread(segments: list[list[Any]], length: int) -> Any:
    """The label of every step (T,), and where segments begin, so that borders count too."""
    found = np.empty(length, dtype=object)
    for start, stop, label in segments:
        found[start:stop] = label
    return found
