"""The workspace: sequences, their labels and suggestions; every event is on disk before it is answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hscrf.studio.data.database import Behind, Database, Event
from hscrf.studio.data.events import State, known_from
from hscrf.studio.data.evidence import imported
from hscrf.studio.data.knowledge import Level
from hscrf.studio.data.label_edits import active, edited
from hscrf.studio.data.problems import Invalid
from hscrf.studio.data.project import Project
from hscrf.studio.data.sequences import InputSequence
from hscrf.studio.model.model_store import ModelStore
from hscrf.studio.model.suggestions import Suggester, Suggestion, changed, overlaid, unmodelled
from hscrf.studio.work.notifications import Notifications
from hscrf.studio.work.views import view
from hscrf.studio.work.worker import Worker
from hscrf.topology import Topology

OPEN = 50  # sequences whose cells and suggestion are kept
PATIENCE = 0.15  # seconds that the comparison of a model with an accepted sequence may take


@dataclass
class TrackedSequence:
    """One sequence of the workspace: its state, its lock and its current suggestion."""

    id: int
    name: str
    length: int
    sha256: str  # of its observations
    state: State
    guard: Any = field(default_factory=threading.RLock)
    suggestion: Suggestion | None = None
    model: int | None = None  # that suggested it
    used: float = 0.0
    least: tuple[int, int | None, float | None] = (-1, None, None)  # version, model, how sure its least sure segment is
    said: tuple[int, tuple[Level, ...], frozenset[tuple[str, str]]] = (-1, (), frozenset())  # labels, of a version


class Missing(LookupError):
    """There is no such sequence."""


class Workspace:
    """All that happens to sequences, apart from training and HTTP.

    ``post`` stores an event, then answers with the view under it. What is slow is answered for a window first and
    exactly later, by the worker; pages hear of it by the news.
    """

    def __init__(self, database: Database, project: Project, notifications: Notifications) -> None:
        self.database, self.project, self.notifications = database, project, notifications
        self.given_topology = project.topology  # without what people edited
        project.topology = edited(project.topology, active(database.label_edits()))
        self.levels = project.levels
        self.notices: list[dict[str, str]] = []
        self._settle_topology()
        self.seen = self._take_in()
        self.sequences = {
            row.id: TrackedSequence(row.id, row.name, row.length, row.sha256, self._replay(row.id, row.length))
            for row in database.sequences()
        }
        self.model_store = ModelStore(database, project, self.seen.__getitem__)
        self.model_store.open()
        self.notices += self.model_store.notices
        self.warm = self.model_store.suggester is None
        self.worker = Worker()
        self.model_changed: Callable[[], None] = lambda: None
        unseen = len(self.sequences) - len(self.seen)
        if unseen:
            words = f"{unseen} sequences of the database are not in the data that was given: nothing is suggested there"
            self.notices.append({"kind": "unseen", "message": words})
        if database.read_only:
            self.notices.append(
                {"kind": "read_only", "message": "the database may only be read: nothing will be saved"}
            )

    # -- beginning

    def _settle_topology(self) -> None:
        """Remember the levels; a database keeps those that it began with, in which labels may become more."""
        former = self.database.setting("topology")
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
                    f"{self.database.path} has labels that are not there any more: {', '.join(lost[:5])}; "
                    "give the labels it began with, or another database"
                )
        if not self.database.read_only and former != self.project.topology.to_json():
            self.database.set("topology", self.project.topology.to_json())

    def _take_in(self) -> dict[int, Any]:
        """Add new sequences; return the observations of each by its number."""
        known = {row.name: row for row in self.database.sequences()}
        fresh = [item for item in self.project.items if item.name not in known]
        for item in self.project.items:
            row = known.get(item.name)
            if row is not None and row.sha256 != item.sha256:
                raise ValueError(
                    f"sequence {item.name!r} is not what it was when {self.database.path} was made: its observations "
                    "differ; give another database, or another name"
                )
        if fresh and not self.database.read_only:
            self.database.add_all([(item.name, len(item.tokens), item.encoded, item.sha256) for item in fresh])
        numbers = {row.name: row.id for row in self.database.sequences()}
        for item in fresh:
            if item.labels is not None and item.name in numbers:
                body = imported(item.labels, self.levels)
                if body["levels"]:
                    n = numbers[item.name]
                    self.database.append(n, 0, f"import-{n}-{item.sha256[:16]}", "import", body)
        self._keep_texts(fresh, numbers)
        timed = [(numbers[item.name], item.times) for item in self.project.items if item.times and item.name in numbers]
        changed_times = [(n, times) for n, times in timed if self.database.times(n) != list(times)]
        if changed_times and not self.database.read_only:
            self.database.set_times(changed_times)
        return {numbers[item.name]: item.seen for item in self.project.items if item.name in numbers}

    def _keep_texts(self, fresh: Sequence[InputSequence], numbers: Mapping[str, int]) -> None:
        """Keep the texts of sequences that are new, and how they were cut."""
        database, texts = self.database, self.project.texts
        if database.read_only:
            return
        cut = [(numbers[i.name], i.text, i.offsets) for i in fresh if i.text is not None and i.offsets is not None]
        if cut:
            database.set_texts(cut)
        if texts is not None and database.setting("cuts") is None:
            database.set("cuts", [{"tokens": texts.tokens, "at": 0}])

    def recut(self, items: Sequence[InputSequence], tokens: str) -> None:
        """Take other tokens of the same texts: events are read on them, and everything is suggested anew."""
        numbers = {tracked.name: tracked.id for tracked in self.sequences.values()}
        rows = [(numbers[i.name], len(i.tokens), i.encoded, i.sha256, i.offsets or ()) for i in items]
        self.database.recut(rows, tokens)
        self.seen.clear()
        self.seen.update({numbers[item.name]: item.seen for item in items})
        self.model_store.relabel()
        lengths = {number: (length, sha256) for number, length, _, sha256, _ in rows}
        for tracked in self.sequences.values():
            if tracked.id in lengths:
                with tracked.guard:
                    tracked.length, tracked.sha256 = lengths[tracked.id]
                    tracked.state = self._replay(tracked.id, tracked.length)
                    tracked.suggestion, tracked.least, tracked.said = None, (-1, None, None), (-1, (), frozenset())

    def _replay(self, sequence: int, length: int) -> State:
        return State.replayed(self.levels, length, self.database.events(sequence))

    def relabel(self) -> None:
        """Read everything again after an edit of labels: levels, events, and what the models suggest."""
        self.project.topology = edited(self.given_topology, active(self.database.label_edits()))
        self.database.set("topology", self.project.topology.to_json())
        self.levels = self.project.levels
        self.model_store.relabel()
        for tracked in self.sequences.values():
            with tracked.guard:
                tracked.state = self._replay(tracked.id, tracked.length)
                tracked.suggestion = None

    def close(self) -> None:
        """Finish the task at hand and close the database."""
        self.worker.stop()
        self.database.close()

    # -- one sequence

    def tracked(self, sequence: int) -> TrackedSequence:
        """A sequence by its number."""
        found = self.sequences.get(sequence)
        if found is None:
            raise Missing(f"there is no sequence {sequence}")
        found.used = time.monotonic()
        return found

    def view(self, sequence: int, opened: bool = False) -> dict[str, Any]:
        """What the page shows of a sequence; opening one puts a waiting model into use."""
        tracked = self.tracked(sequence)
        if opened:
            self.take_over()
        with tracked.guard:
            self._suggest(tracked)
            return self._shown(tracked)

    def _shown(
        self, tracked: TrackedSequence, different: Mapping[str, list[list[int]]] | None = None
    ) -> dict[str, Any]:
        assert tracked.suggestion is not None
        return view(tracked.id, tracked.name, tracked.state, tracked.suggestion, tracked.model, different)

    def post(self, sequence: int, request: Mapping[str, Any]) -> dict[str, Any]:
        """Store an event and answer with the view under it; the same uid again changes nothing."""
        tracked = self.tracked(sequence)
        with tracked.guard:
            self._catch_up(tracked)
            former = self.database.find(request["uid"])
            if former is None:
                if request.get("length") not in (None, tracked.length):
                    raise Invalid("the text was cut into other tokens meanwhile: choose the steps again", kind="tokens")
                self._store(tracked, request)
            elif former[0] != sequence or former[1].kind != request["kind"]:
                raise Invalid(f"uid {request['uid']!r} belongs to another event", "uid")
            else:
                self._suggest(tracked)
                return {**self._shown(tracked), "repeated": True}
            before = tracked.suggestion
            self._suggest(tracked, fresh=True)
            assert tracked.suggestion is not None
            return self._shown(tracked, changed(before, tracked.suggestion))

    def _catch_up(self, tracked: TrackedSequence) -> None:
        """Replay a sequence from disk: a write that was reported as failed may be there."""
        if self.database.version(tracked.id) != tracked.state.version:
            tracked.state = self._replay(tracked.id, tracked.length)
            tracked.suggestion = None

    def _store(self, tracked: TrackedSequence, request: Mapping[str, Any]) -> None:
        """Check an event and put it on disk, then into the state."""
        body = {}
        if request["version"] == tracked.state.version:  # else the store refuses it
            body = tracked.state.check(request["kind"], request["body"])
            if body.get("whole"):
                body |= self._first_guess(tracked, body["segments"])
        model = tracked.model if self.model_store.suggester is not None else None
        annotator = request.get("annotator") or self.database.setting("annotator", "")
        event = self.database.append(
            tracked.id, request["version"], request["uid"], request["kind"], body, annotator, model
        )
        tracked.state.apply(event)
        self.notifications.send("saved", {"sequence": tracked.id, "version": event.version, "uid": event.uid})

    def take_import(self, sequence: int, body: Mapping[str, Any], uid: str, annotator: str = "") -> None:
        """Store labels that a person imported from a file of another program; pages show them at once.

        The same uid again changes nothing, unless what it stored was undone.
        """
        tracked = self.tracked(sequence)
        annotator = annotator or self.database.setting("annotator", "")
        with tracked.guard:
            self._catch_up(tracked)
            if any(event.uid == uid or event.uid.startswith(f"{uid}/") for event in tracked.state.in_force):
                return
            if self.database.find(uid) is not None:
                uid = f"{uid}/{tracked.state.version}"
            event = self.database.append(sequence, tracked.state.version, uid, "import", dict(body), annotator)
            if event.version == tracked.state.version + 1:
                tracked.state.apply(event)
            tracked.suggestion = None
        self.notifications.send("saved", {"sequence": tracked.id, "version": tracked.state.version, "uid": event.uid})

    def alternatives(self, sequence: int, level: str, start: int, stop: int) -> list[dict[str, Any]]:
        """The labels that a segment could have, the most probable first; raises if an event comes meanwhile.

        Events do not wait for alternatives.
        """
        tracked = self.tracked(sequence)
        with tracked.guard:
            tracked.state.check("release", {"level": level, "start": start, "stop": stop})
            suggester = self.suggester(sequence)
            knowledge, version = tracked.state.knowledge.copy(), tracked.state.version
        if suggester is None or not self.warm or level not in suggester.topology.levels:
            return [_unrated(label) for label in knowledge.level(level).labels]
        found = suggester.alternatives(
            sequence, knowledge, level, start, stop, wanted=lambda: tracked.state.version == version
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
        return self.model_store.suggester if sequence in self.seen else None

    def _suggest(self, tracked: TrackedSequence, fresh: bool = False) -> None:
        """Bring the suggestion of a sequence up to date, exactly or as well as can be at once."""
        suggester, number = self.suggester(tracked.id), self.model_store.number
        if tracked.suggestion is not None and not fresh and tracked.model == number and tracked.suggestion.exact:
            return
        knowledge, version = tracked.state.knowledge, tracked.state.version
        if suggester is None:
            tracked.suggestion, tracked.model = unmodelled(knowledge, self.project.topology, version), number
        elif self.warm and not suggester.is_slow(tracked.length):
            tracked.suggestion, tracked.model = suggester.suggest(tracked.id, knowledge, version), number
        else:
            former = tracked.suggestion if tracked.model == number else None
            tracked.suggestion, tracked.model = self._at_once(tracked, suggester, former), number
            self.worker.urgent(tracked.id, lambda: self._exactly(tracked, version))
        self._make_room()

    def least_sure(self, tracked: TrackedSequence) -> float | None:
        """How sure the least sure segment is; None where something contradicts itself or has no label.

        It is remembered for a version and a model.
        """
        suggester, number = self.suggester(tracked.id), self.model_store.number
        if suggester is None:
            return None
        with tracked.guard:
            version = tracked.state.version
            if tracked.least[:2] != (version, number):
                current = tracked.suggestion is not None and tracked.suggestion.exact and tracked.model == number
                found = tracked.suggestion if current else None
                found = found or suggester.suggest(tracked.id, tracked.state.knowledge, version)
                self.note_least(tracked, version, number, found)
            return tracked.least[2]

    def note_least(self, tracked: TrackedSequence, version: int, number: int | None, suggestion: Suggestion) -> None:
        """Remember how sure the least sure segment of a suggestion is."""
        unlabelled = any(label is None for segments in suggestion.segments.values() for _, _, label in segments)
        tracked.least = (version, number, None if suggestion.conflict or unlabelled else suggestion.least_sure())

    def given_labels_in(self, tracked: TrackedSequence) -> frozenset[tuple[str, str]]:
        """The levels and labels that a person or a file has given to a sequence; remembered for a version."""
        with tracked.guard:
            if tracked.said[:2] != (tracked.state.version, tuple(self.levels)):
                cells = tracked.state.knowledge.cells
                found = {
                    (level.name, level.labels[code])
                    for level in self.levels
                    for code in np.unique(cells[level.name].label).tolist()
                    if code >= 0
                }
                tracked.said = (tracked.state.version, tuple(self.levels), frozenset(found))
                if tracked.suggestion is None:
                    tracked.state.drop_cells()
            return tracked.said[2]

    def _at_once(self, tracked: TrackedSequence, suggester: Suggester, former: Suggestion | None) -> Suggestion:
        """What can be shown before the exact answer: that for a window, or the former one under the fixes."""
        knowledge = tracked.state.knowledge
        if former is None or former.labels is None:
            return replace(unmodelled(knowledge, self.project.topology, tracked.state.version), exact=False)
        found = suggester.window(tracked.id, knowledge, tracked.state.touched(), former) if self.warm else None
        return found or overlaid(former, knowledge)

    def _exactly(self, tracked: TrackedSequence, version: int) -> None:
        """Finish an answer that was for a window only."""
        suggester, number = self.suggester(tracked.id), self.model_store.number
        with tracked.guard:
            there = tracked.suggestion is not None and tracked.suggestion.exact and tracked.model == number
            if suggester is None or there or tracked.state.version != version:
                return
            knowledge = tracked.state.knowledge.copy()
        found = suggester.suggest(tracked.id, knowledge, version)
        with tracked.guard:
            if tracked.state.version != version or self.model_store.number != number:
                return
            tracked.suggestion, tracked.model = found, number
        message = {"sequence": tracked.id, "version": version, "model": number, "exact": True}
        self.notifications.send("suggestion", message)

    def _first_guess(self, tracked: TrackedSequence, segments: Mapping[str, list[list[Any]]]) -> dict[str, Any]:
        """The share of accepted steps that the model would have labelled right at all levels, without fixes."""
        suggester = self.suggester(tracked.id)
        if suggester is None or not self.warm or suggester.is_slow(tracked.length, limit=PATIENCE):
            return {}
        came = [event for event in tracked.state.in_force if event.kind == "import"]
        guess = suggester.suggest(tracked.id, known_from(self.levels, tracked.length, came)).segments
        right = np.ones(tracked.length, dtype=bool)
        for level, truth in segments.items():
            right &= _spread(truth, tracked.length) == _spread(guess[level], tracked.length)
        return {"agreed": round(float(right.mean()), 4), "guess_of": self.model_store.number}

    def take_over(self) -> None:
        """Let a model that waits, if there is one, answer from now on; ``model_changed`` is called then."""
        first = self.model_store.suggester is None
        if not self.model_store.take_over():
            return
        self.warm = True
        self.model_changed()
        for tracked in self.sequences.values() if first else ():
            if tracked.suggestion is not None:
                message = {
                    "sequence": tracked.id,
                    "version": tracked.state.version,
                    "model": self.model_store.number,
                    "exact": True,
                }
                self.notifications.send("suggestion", message)

    def _make_room(self) -> None:
        """Forget what can be made again of the sequences that were not used for longest."""
        full = [tracked for tracked in self.sequences.values() if tracked.suggestion is not None]
        if len(full) > 2 * OPEN:
            for tracked in sorted(full, key=lambda tracked: tracked.used)[:OPEN]:
                if tracked.guard.acquire(blocking=False):
                    tracked.suggestion = None
                    tracked.state.drop_cells()
                    tracked.guard.release()

    def history(self, sequence: int) -> list[dict[str, Any]]:
        """All events of a sequence, and whether each is in force."""
        tracked = self.tracked(sequence)
        in_force = {event.version for event in tracked.state.in_force}
        return [_told(event, in_force) for event in self.database.events(sequence)]


def _unrated(label: str) -> dict[str, Any]:
    """A label without a probability."""
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
