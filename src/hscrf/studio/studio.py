"""A studio: the desk, the queue, training in the background, and what all of it looks like from outside."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from hscrf.io.axis import TimeAxis, rate_of
from hscrf.studio import bulk, label_set, reports, texts
from hscrf.studio.bridges import Places
from hscrf.studio.claims import Claims
from hscrf.studio.desk import Desk, Missing
from hscrf.studio.events import Invalid
from hscrf.studio.items import LAYOUT, shown
from hscrf.studio.media import kind_of
from hscrf.studio.news import News
from hscrf.studio.project import Project
from hscrf.studio.queue import Candidate, is_random, ordered
from hscrf.studio.school import Running, School, count_of, warm_up
from hscrf.studio.store import NotSaved, Store

SWEEP = 0.5  # seconds of doubts that are computed before the queue is told
WARMING = "preparing the model; labelling works, suggestions follow"
WARMED = "ready"


class Studio:
    """Everything behind the page; its methods answer the routes.

    Training runs in a process of its own and ends in a model that waits until a person opens the next sequence. If the
    process dies, the page is told and all else goes on.
    """

    def __init__(self, project: Project, path: str, reading: bool = False) -> None:
        self.project, self.news = project, News()
        self.store = Store(path, reading)
        try:
            self.desk = Desk(self.store, project, self.news)
        except BaseException:
            self.store.close()
            raise
        self.school = School(self.desk, self.news, project)
        self._doubts = self.store.remembered()
        self._why: dict[int, str] = {}  # sequence -> why the queue has it
        self.claims = Claims()
        self.desk.model_changed = lambda: self.desk.worker.patient("doubts", self._sweep)
        self.train_after = int(self.store.setting("train_after", project.train_after))
        self.columns: list[str] = []  # names of the columns of the data, where they have some
        self.kind, self.channels = self._first_look()
        self.rate = self._settle_rate()
        self.recordings = self._settle_media()

    def axis(self, sequence: int) -> TimeAxis:
        """The times of the steps of a sequence: its own, or by the rate; without both a step is a second."""
        return TimeAxis(self.desk.sheet(sequence).length, self.rate, self.store.times(sequence))

    def _settle_rate(self) -> float | None:
        """Steps a second: what is given or what all times have in common, which is remembered, or what is."""
        given = self.project.rate
        if given is None and self.project.items:
            rates = {rate_of(item.times) if item.times else None for item in self.project.items}
            given = rates.pop() if len(rates) == 1 else None
        if given is not None and not self.store.read_only:
            self.store.set("rate", given)
        return given if given is not None else self.store.setting("rate")

    def _settle_media(self) -> dict[str, str]:
        """The files with sound or film by the names of sequences: those given now or before."""
        remembered = {name: path for name, path in self.store.setting("media", {}).items() if kind_of(path)}
        found = {**remembered, **self.project.media}
        if found != remembered and not self.store.read_only:
            self.store.set("media", found)
        return found

    def media(self, sequence: int) -> str:
        """The file with the sound or the film of a sequence."""
        name = self.desk.sheet(sequence).name
        path = self.recordings.get(name)
        if path is None:
            raise Missing(f"there is no sound or film of {name}")
        if not os.path.isfile(path):
            raise Missing(f"the file of {name} is not there any more: {os.path.basename(path)}")
        return path

    def start(self) -> None:
        """Begin what happens in the background: warm up, doubts for the queue, a first model if labels came along."""
        self.desk.worker.patient("warm", self._warm)
        if self.desk.shelf.suggester is None and not self.store.read_only and self.school.labelled():
            self.desk.worker.urgent("train", self._train_if_possible)

    def close(self) -> None:
        """Stop training and close the database; everything acknowledged is on disk already."""
        self.news.tell("stopping")
        self.school.stop()
        self.desk.close()
        self.news.close()

    def _first_look(self) -> tuple[str, list[str]]:
        """How sequences are shown, and the names of their channels; without data, as the database remembers them."""
        project, store = self.project, self.store
        remembered = store.setting("shown", {})
        columns = list(project.column_names or remembered.get("columns", ()))
        kind = project.kind or (None if project.items else remembered.get("kind"))
        if project.items:
            tokens = project.items[0].tokens
        elif self.desk.sheets:
            tokens = json.loads(store.observations(next(iter(self.desk.sheets))))
        else:
            return kind or "text", []
        found = shown(tokens, kind, columns)
        now = {"kind": found["kind"], "columns": columns}
        if project.items and not store.read_only and now != remembered:
            store.set("shown", now)
        self.columns = columns
        return found["kind"], [channel["name"] for channel in found["channels"]]

    # -- in the background

    def _warm(self) -> None:
        """Answer one sequence before a person asks for one."""
        desk = self.desk
        if desk.shelf.suggester is not None and desk.seen:
            self.news.tell("warming", {"done": False, "words": WARMING})
            warm_up(desk.shelf.suggester, desk)
        desk.warm = True
        self.news.tell("warming", {"done": True, "words": WARMED})
        desk.worker.patient("doubts", self._sweep)

    def _sweep(self) -> bool:
        """Compute some of the doubts that the queue lacks; whether there are more."""
        desk, begin = self.desk, time.monotonic()
        suggester, number = desk.shelf.suggester, desk.shelf.number
        if suggester is None or number is None:
            return False
        lacking = [
            sheet
            for sheet in desk.sheets.values()
            if sheet.id in desk.seen
            and sheet.state.status != "done"
            and self._doubts.get(sheet.id, (0, 0))[:2] != (sheet.state.version, number)
        ]
        rows: list[Any] = []
        for sheet in lacking:
            with sheet.guard:
                knowledge, version = sheet.state.knowledge.copy(), sheet.state.version
                if sheet.suggestion is None:
                    sheet.state.shed()
            found = suggester.suggest(sheet.id, knowledge, version)
            self.desk.note_least(sheet, version, number, found)
            rows.append((sheet.id, version, number, found.entropy, found.profile()))
            if time.monotonic() - begin > SWEEP:
                break
        self._doubts.update({row[0]: row[1:] for row in rows})
        if rows:
            with contextlib.suppress(NotSaved):  # a cache: it is made again
                self.store.remember(rows)
            self.news.tell("queue")
        return len(rows) < len(lacking)

    def forget_doubts(self) -> None:
        """Compute the doubts of all sequences again: their tokens have changed."""
        self._doubts.clear()
        self.desk.worker.patient("doubts", self._sweep)

    # -- what the page asks

    def view(self, sequence: int, opened: bool) -> dict[str, Any]:
        """A sequence; a model that waits takes over when one is opened."""
        return self.desk.view(sequence, opened)

    def post(self, sequence: int, request: Mapping[str, Any]) -> dict[str, Any]:
        """Store an event; after enough accepted sequences a new model is trained."""
        found = self.desk.post(sequence, request)
        sheet = self.desk.sheet(sequence)
        found["queued"] = self._queued(sheet, self._chosen_as(sheet), found["status"])
        if request["kind"] == "accept" and found["status"] == "done" and not found.get("repeated"):
            self._maybe_train()
        return found

    def accept_all(self, given: Mapping[str, Any], name: str = "", key: str = "") -> dict[str, Any]:
        """Accept the sequences in which the model is confident; training starts if it is due."""
        annotator = name or self.store.setting("annotator", "")
        others = self.claims.held_by_others(key)
        found = bulk.accept_all(self.desk, given.get("confidence"), given.get("sequences"), annotator, others)
        if found["accepted"]:
            self._maybe_train()
        return found

    def _maybe_train(self) -> None:
        last = self.store.models()[-1:]
        upto = last[0]["events_upto"] if last else 0
        if self.store.accepted_since(upto) >= self.train_after and not self.school.state()["running"]:
            self.desk.worker.urgent("train", self._train_if_possible)

    def _train_if_possible(self) -> None:
        try:
            self.school.train()
        except Running:
            pass
        except (Invalid, OSError) as error:
            self.school.failed(f"training could not begin: {error}")

    @cached_property
    def places(self) -> Places:
        """Where the labels of files belong; sequences are the same as long as a studio is open."""
        return Places(self)

    def project_view(self, name: str = "") -> dict[str, Any]:
        """What the page shows around the sequences, to the person of this name."""
        desk, topology = self.desk, self.project.topology
        suggester = desk.shelf.suggester
        model = None
        if suggester is not None:
            model = {**self._model_view(desk.shelf.number), "status": "ready" if desk.warm else "warming"}
        had = () if suggester is None else suggester.topology.levels
        states = [sheet.state for sheet in desk.sheets.values()]
        relations = topology.to_dict()["children"] or {}
        return {
            "id": self.store.identity,
            "name": self.project.name,
            "levels": [
                {"name": level.name, "labels": list(level.labels), "unit": level.unit, "labelled": level.name in had}
                for level in desk.levels
            ],
            "children": {
                level: {str(k): list(map(str, v)) for k, v in relation.items()} for level, relation in relations.items()
            },
            "kind": self.kind,
            "tokens": texts.shown(self),
            "rate": self.rate,
            "channels": self.channels,
            "annotator": name or self.store.setting("annotator", ""),
            "invited": bool(name),
            "guidelines": self.store.setting("guidelines", ""),
            **label_set.shown(self),
            "model": model,
            "waiting": None if desk.shelf.waiting is None else self._model_view(desk.shelf.waiting[0]),
            "batch": bulk.last_batch(desk),
            "training": self.school.state(),
            "warming": {"done": desk.warm, "words": WARMED if desk.warm else WARMING},
            "counts": {
                "sequences": len(states),
                "done": sum(state.status == "done" for state in states),
                "corrections": sum(state.corrections for state in states),
            },
            "train_after": self.train_after,
            "news": self.news.number,
            "notices": self._notices(),
            "demo": self.project.demo,
        }

    def _model_view(self, number: int | None) -> dict[str, Any]:
        """A model in words."""
        entry = next((m for m in self.store.models() if m["number"] == number), {})
        metrics = entry.get("metrics") or {}
        how = f"trained on {count_of(metrics)}" if metrics.get("sequences") else "as given"
        return {"number": number, "events_upto": entry.get("events_upto", 0), "words": f"model {number}, {how}"}

    def _notices(self) -> list[dict[str, str]]:
        back = self.store.clock_back
        if back < 1:
            return list(self.desk.notices)
        words = (
            f"the clock of this machine went back by {back:.0f} s; the order of all work is kept, only times are late"
        )
        return [*self.desk.notices, {"kind": "clock", "message": words}]

    def queue(self, key: str = "") -> dict[str, Any]:
        """All sequences in working order, those that are done last; the next one is one that nobody else has open.

        Sequences with differences of two people to settle come first.
        """
        sheets = self.desk.sheets
        status = {n: sheet.state.status for n, sheet in sheets.items()}
        skipped = [sheet for n, sheet in sheets.items() if status[n] != "done" and sheet.state.marks.get("skip")]
        rest = [s for n, s in sheets.items() if status[n] != "done" and not s.state.marks.get("skip")]
        differing = sorted((s for s in rest if s.state.unsettled_count), key=lambda s: s.id)
        waiting = [self._candidate(s) for s in rest if not s.state.unsettled_count]
        done = sorted((s for n, s in sheets.items() if status[n] == "done"), key=lambda s: s.state.at, reverse=True)
        worked = [sheet for sheet in done if sheet.state.acceptance is not None]
        random = sum(is_random(sheet.name) for sheet in worked)
        order = ordered(waiting, {"random": random, "other": len(worked) - random})
        rows = [(sheet, "differ") for sheet in differing]
        rows += [(sheets[candidate.id], why) for candidate, why in order] + [(sheet, "skipped") for sheet in skipped]
        rows += [(sheet, reports.chosen(sheet)) for sheet in done]
        self._why = {sheet.id: why for sheet, why in rows}
        others = self.claims.held_by_others(key)
        begun = [sheet.id for sheet in differing]
        begun += [candidate.id for candidate, _ in order if status[candidate.id] == "begun"]
        return {
            "total": len(sheets),
            "done": len(done),
            "next": next((n for n in [*begun, *(candidate.id for candidate, _ in order)] if n not in others), None),
            "order": [sheet.id for sheet, _ in rows],
            "items": [self._queued(sheet, why, status[sheet.id]) for sheet, why in rows],
        }

    def _chosen_as(self, sheet: Any) -> str:
        """Why the queue, as it was last asked for, has a sequence."""
        return self._why.get(sheet.id) or reports.chosen(sheet)

    def _candidate(self, sheet: Any) -> Candidate:
        known = self._doubts.get(sheet.id)
        if known is None or self.desk.shelf.suggester is None:
            return Candidate(sheet.id, sheet.name)
        return Candidate(sheet.id, sheet.name, known[2], known[3])

    def _queued(self, sheet: Any, why: str, status: str) -> dict[str, Any]:
        known = self._doubts.get(sheet.id)
        state = sheet.state
        return {
            "id": sheet.id,
            "name": sheet.name,
            "length": sheet.length,
            "status": status,
            "version": state.version,
            "doubt": None if known is None else known[2],
            "chosen": why,
            "corrections": state.corrections,
            "unsettled": state.unsettled_count,
            "model": None if known is None else known[1],
            "digest": self.digest(sheet.id),
            "media": kind_of(self.recordings.get(sheet.name, "")),
            "at": state.at,
            "marks": state.marks,
        }

    def having(self, level: str, label: str) -> list[int]:
        """The sequences in which a label stands: as a person or a file said, or as the model suggests."""
        names = [each for each in self.desk.levels if each.name == level and label in each.labels]
        if not names:
            raise Invalid(f"level {level!r} has no label {label!r}", "label")
        column = self._profile_column(level, label)
        found = []
        for sheet in self.desk.sheets.values():
            profile = self._doubts.get(sheet.id, (0, 0, None, []))[3]
            suggested = column is not None and column < len(profile) and profile[column] > 0
            if suggested or (level, label) in self.desk.said_in(sheet):
                found.append(sheet.id)
        return found

    def _profile_column(self, level: str, label: str) -> int | None:
        """Where a label stands in the profiles that the model makes of sequences."""
        suggester = self.desk.shelf.suggester
        if suggester is None:
            return None
        topology = suggester.topology
        names = [
            (name, str(state))
            for name, states in zip(topology.levels[1:], topology.states[1:], strict=True)
            for state in states
        ]
        return names.index((level, label)) if (level, label) in names else None

    def digest(self, sequence: int) -> str:
        """A digest of what the page is shown of the observations of a sequence: it depends on how they are shown."""
        seen = f"{LAYOUT} {self.project.kind} {','.join(self.columns)} {self.desk.sheet(sequence).sha256}"
        return hashlib.sha256(seen.encode()).hexdigest()[:32]

    def progress(self) -> dict[str, Any]:
        """Corrections of each accepted sequence in the order of acceptance, and the models with their quality."""
        return reports.progress(self)

    def settings(self, given: Mapping[str, Any]) -> None:
        """Remember who works here, and after how many accepted sequences a model is trained."""
        if "annotator" in given:
            name = given["annotator"]
            if not isinstance(name, str) or len(name) > 200 or not name.isprintable():
                raise Invalid("annotator is no name of at most 200 characters", "annotator")
            self.store.set("annotator", name)
        if "guidelines" in given:
            label_set.guidelines(self, given)
        if "train_after" in given:
            count = given["train_after"]
            if not isinstance(count, int) or isinstance(count, bool) or count < 1:
                raise Invalid(f"train_after is {count!r}, expected a whole number of at least 1", "train_after")
            self.train_after = count
            self.store.set("train_after", count)
