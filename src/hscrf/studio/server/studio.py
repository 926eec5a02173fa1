"""A studio: workspace, queue and training in the background, and the answers to the routes."""

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
from hscrf.studio.data import texts
from hscrf.studio.data.database import Database, NotSaved
from hscrf.studio.data.problems import Invalid
from hscrf.studio.data.project import Project
from hscrf.studio.data.sequences import LAYOUT, shown
from hscrf.studio.exchange.conversion import Places
from hscrf.studio.server.media import kind_of
from hscrf.studio.work import bulk, label_set, reports
from hscrf.studio.work.claims import Claims
from hscrf.studio.work.notifications import Notifications
from hscrf.studio.work.queue import Candidate, is_random, ordered
from hscrf.studio.work.trainer import ModelTrainer, Running, count_of, warm_up
from hscrf.studio.work.workspace import Missing, Workspace

SWEEP = 0.5  # seconds of computing doubts between updates of the queue
WARMING = "preparing the model; labelling works, suggestions follow"
WARMED = "ready"


class Studio:
    """Everything behind the page; its methods answer the routes.

    Training runs in a process of its own and ends in a model that waits until a person opens the next sequence. If the
    process dies, the page shows a message and all else continues.
    """

    def __init__(self, project: Project, path: str, reading: bool = False) -> None:
        self.project, self.notifications = project, Notifications()
        self.database = Database(path, reading)
        try:
            self.workspace = Workspace(self.database, project, self.notifications)
        except BaseException:
            self.database.close()
            raise
        self.trainer = ModelTrainer(self.workspace, self.notifications, project)
        self._doubts = self.database.remembered()
        self._why: dict[int, str] = {}  # sequence -> the reason for its place in the queue
        self.claims = Claims()
        self.workspace.model_changed = lambda: self.workspace.worker.patient("doubts", self._sweep)
        self.train_after = int(self.database.setting("train_after", project.train_after))
        self.columns: list[str] = []  # names of the columns of the data, where they have some
        self.kind, self.channels = self._first_look()
        self.rate = self._settle_rate()
        self.recordings = self._settle_media()

    def axis(self, sequence: int) -> TimeAxis:
        """The times of the steps of a sequence: its own, or by the rate; without both a step is a second."""
        return TimeAxis(self.workspace.tracked(sequence).length, self.rate, self.database.times(sequence))

    def _settle_rate(self) -> float | None:
        """Steps per second: the given rate, else the one that all times show, else the stored one."""
        given = self.project.rate
        if given is None and self.project.items:
            rates = {rate_of(item.times) if item.times else None for item in self.project.items}
            given = rates.pop() if len(rates) == 1 else None
        if given is not None and not self.database.read_only:
            self.database.set("rate", given)
        return given if given is not None else self.database.setting("rate")

    def _settle_media(self) -> dict[str, str]:
        """The files with sound or film by the names of sequences: those given now or before."""
        remembered = {name: path for name, path in self.database.setting("media", {}).items() if kind_of(path)}
        found = {**remembered, **self.project.media}
        if found != remembered and not self.database.read_only:
            self.database.set("media", found)
        return found

    def media(self, sequence: int) -> str:
        """The file with the sound or the film of a sequence."""
        name = self.workspace.tracked(sequence).name
        path = self.recordings.get(name)
        if path is None:
            raise Missing(f"there is no sound or film of {name}")
        if not os.path.isfile(path):
            raise Missing(f"the file of {name} is not there any more: {os.path.basename(path)}")
        return path

    def start(self) -> None:
        """Start the background work: warm up, doubts for the queue, a first model if the data have labels."""
        self.workspace.worker.patient("warm", self._warm)
        if self.workspace.model_store.suggester is None and not self.database.read_only and self.trainer.labelled():
            self.workspace.worker.urgent("train", self._train_if_possible)

    def close(self) -> None:
        """Stop training and close the database; everything acknowledged is on disk already."""
        self.notifications.send("stopping")
        self.trainer.stop()
        self.workspace.close()
        self.notifications.close()

    def _first_look(self) -> tuple[str, list[str]]:
        """How sequences are shown, and the names of their channels; without data, as the database remembers them."""
        project, database = self.project, self.database
        remembered = database.setting("shown", {})
        columns = list(project.column_names or remembered.get("columns", ()))
        kind = project.kind or (None if project.items else remembered.get("kind"))
        if project.items:
            tokens = project.items[0].tokens
        elif self.workspace.sequences:
            tokens = json.loads(database.observations(next(iter(self.workspace.sequences))))
        else:
            return kind or "text", []
        found = shown(tokens, kind, columns)
        now = {"kind": found["kind"], "columns": columns}
        if project.items and not database.read_only and now != remembered:
            database.set("shown", now)
        self.columns = columns
        return found["kind"], [channel["name"] for channel in found["channels"]]

    # -- in the background

    def _warm(self) -> None:
        """Compute one answer in advance, so that the first request is fast."""
        workspace = self.workspace
        if workspace.model_store.suggester is not None and workspace.seen:
            self.notifications.send("warming", {"done": False, "words": WARMING})
            warm_up(workspace.model_store.suggester, workspace)
        workspace.warm = True
        self.notifications.send("warming", {"done": True, "words": WARMED})
        workspace.worker.patient("doubts", self._sweep)

    def _sweep(self) -> bool:
        """Compute some of the doubts that the queue lacks; whether there are more."""
        workspace, begin = self.workspace, time.monotonic()
        suggester, number = workspace.model_store.suggester, workspace.model_store.number
        if suggester is None or number is None:
            return False
        lacking = [
            tracked
            for tracked in workspace.sequences.values()
            if tracked.id in workspace.seen
            and tracked.state.status != "done"
            and self._doubts.get(tracked.id, (0, 0))[:2] != (tracked.state.version, number)
        ]
        rows: list[Any] = []
        for tracked in lacking:
            with tracked.guard:
                knowledge, version = tracked.state.knowledge.copy(), tracked.state.version
                if tracked.suggestion is None:
                    tracked.state.drop_cells()
            found = suggester.suggest(tracked.id, knowledge, version)
            self.workspace.note_least(tracked, version, number, found)
            rows.append((tracked.id, version, number, found.entropy, found.profile()))
            if time.monotonic() - begin > SWEEP:
                break
        self._doubts.update({row[0]: row[1:] for row in rows})
        if rows:
            with contextlib.suppress(NotSaved):  # a cache: it is made again
                self.database.remember(rows)
            self.notifications.send("queue")
        return len(rows) < len(lacking)

    def forget_doubts(self) -> None:
        """Compute the doubts of all sequences again: their tokens have changed."""
        self._doubts.clear()
        self.workspace.worker.patient("doubts", self._sweep)

    # -- answers to the page

    def view(self, sequence: int, opened: bool) -> dict[str, Any]:
        """The view of a sequence; opening one puts a waiting model into use."""
        return self.workspace.view(sequence, opened)

    def post(self, sequence: int, request: Mapping[str, Any]) -> dict[str, Any]:
        """Store an event; after enough accepted sequences a new model is trained."""
        found = self.workspace.post(sequence, request)
        tracked = self.workspace.tracked(sequence)
        found["queued"] = self._queued(tracked, self._chosen_as(tracked), found["status"])
        if request["kind"] == "accept" and found["status"] == "done" and not found.get("repeated"):
            self._maybe_train()
        return found

    def accept_all(self, given: Mapping[str, Any], name: str = "", key: str = "") -> dict[str, Any]:
        """Accept the sequences in which the model is confident; training starts if it is due."""
        annotator = name or self.database.setting("annotator", "")
        others = self.claims.held_by_others(key)
        found = bulk.accept_all(self.workspace, given.get("confidence"), given.get("sequences"), annotator, others)
        if found["accepted"]:
            self._maybe_train()
        return found

    def _maybe_train(self) -> None:
        last = self.database.models()[-1:]
        upto = last[0]["events_upto"] if last else 0
        if self.database.accepted_since(upto) >= self.train_after and not self.trainer.state()["running"]:
            self.workspace.worker.urgent("train", self._train_if_possible)

    def _train_if_possible(self) -> None:
        try:
            self.trainer.train()
        except Running:
            pass
        except (Invalid, OSError) as error:
            self.trainer.failed(f"training could not begin: {error}")

    @cached_property
    def places(self) -> Places:
        """Finds the sequences that labels of files belong to; made once, since sequences do not change meanwhile."""
        return Places(self)

    def project_view(self, name: str = "") -> dict[str, Any]:
        """What the page shows around the sequences, to the person of this name."""
        workspace, topology = self.workspace, self.project.topology
        suggester = workspace.model_store.suggester
        model = None
        if suggester is not None:
            model = {
                **self._model_view(workspace.model_store.number),
                "status": "ready" if workspace.warm else "warming",
            }
        had = () if suggester is None else suggester.topology.levels
        states = [tracked.state for tracked in workspace.sequences.values()]
        relations = topology.to_dict()["children"] or {}
        return {
            "id": self.database.identity,
            "name": self.project.name,
            "levels": [
                {"name": level.name, "labels": list(level.labels), "unit": level.unit, "labelled": level.name in had}
                for level in workspace.levels
            ],
            "children": {
                level: {str(k): list(map(str, v)) for k, v in relation.items()} for level, relation in relations.items()
            },
            "kind": self.kind,
            "tokens": texts.shown(self),
            "rate": self.rate,
            "channels": self.channels,
            "annotator": name or self.database.setting("annotator", ""),
            "invited": bool(name),
            "guidelines": self.database.setting("guidelines", ""),
            **label_set.shown(self),
            "model": model,
            "waiting": None
            if workspace.model_store.waiting is None
            else self._model_view(workspace.model_store.waiting[0]),
            "batch": bulk.last_batch(workspace),
            "training": self.trainer.state(),
            "warming": {"done": workspace.warm, "words": WARMED if workspace.warm else WARMING},
            "counts": {
                "sequences": len(states),
                "done": sum(state.status == "done" for state in states),
                "corrections": sum(state.corrections for state in states),
            },
            "train_after": self.train_after,
            "news": self.notifications.number,
            "notices": self._notices(),
            "demo": self.project.demo,
        }

    def _model_view(self, number: int | None) -> dict[str, Any]:
        """A model in words."""
        entry = next((m for m in self.database.models() if m["number"] == number), {})
        metrics = entry.get("metrics") or {}
        how = f"trained on {count_of(metrics)}" if metrics.get("sequences") else "as given"
        return {"number": number, "events_upto": entry.get("events_upto", 0), "words": f"model {number}, {how}"}

    def _notices(self) -> list[dict[str, str]]:
        back = self.database.clock_back
        if back < 1:
            return list(self.workspace.notices)
        words = (
            f"the clock of this machine went back by {back:.0f} s; the order of all work is kept, only times are late"
        )
        return [*self.workspace.notices, {"kind": "clock", "message": words}]

    def queue(self, key: str = "") -> dict[str, Any]:
        """All sequences in working order, accepted ones last; the next one is not open in another browser.

        Sequences with differences of two people to settle come first.
        """
        sequences = self.workspace.sequences
        status = {n: tracked.state.status for n, tracked in sequences.items()}
        skipped = [
            tracked for n, tracked in sequences.items() if status[n] != "done" and tracked.state.marks.get("skip")
        ]
        rest = [s for n, s in sequences.items() if status[n] != "done" and not s.state.marks.get("skip")]
        differing = sorted((s for s in rest if s.state.unsettled_count), key=lambda s: s.id)
        waiting = [self._candidate(s) for s in rest if not s.state.unsettled_count]
        done = sorted((s for n, s in sequences.items() if status[n] == "done"), key=lambda s: s.state.at, reverse=True)
        worked = [tracked for tracked in done if tracked.state.acceptance is not None]
        random = sum(is_random(tracked.name) for tracked in worked)
        order = ordered(waiting, {"random": random, "other": len(worked) - random})
        rows = [(tracked, "differ") for tracked in differing]
        rows += [(sequences[candidate.id], why) for candidate, why in order] + [
            (tracked, "skipped") for tracked in skipped
        ]
        rows += [(tracked, reports.chosen(tracked)) for tracked in done]
        self._why = {tracked.id: why for tracked, why in rows}
        others = self.claims.held_by_others(key)
        begun = [tracked.id for tracked in differing]
        begun += [candidate.id for candidate, _ in order if status[candidate.id] == "begun"]
        return {
            "total": len(sequences),
            "done": len(done),
            "next": next((n for n in [*begun, *(candidate.id for candidate, _ in order)] if n not in others), None),
            "order": [tracked.id for tracked, _ in rows],
            "items": [self._queued(tracked, why, status[tracked.id]) for tracked, why in rows],
        }

    def _chosen_as(self, tracked: Any) -> str:
        """Why a sequence is in the queue, as of the last request for it."""
        return self._why.get(tracked.id) or reports.chosen(tracked)

    def _candidate(self, tracked: Any) -> Candidate:
        known = self._doubts.get(tracked.id)
        if known is None or self.workspace.model_store.suggester is None:
            return Candidate(tracked.id, tracked.name)
        return Candidate(tracked.id, tracked.name, known[2], known[3])

    def _queued(self, tracked: Any, why: str, status: str) -> dict[str, Any]:
        known = self._doubts.get(tracked.id)
        state = tracked.state
        return {
            "id": tracked.id,
            "name": tracked.name,
            "length": tracked.length,
            "status": status,
            "version": state.version,
            "doubt": None if known is None else known[2],
            "chosen": why,
            "corrections": state.corrections,
            "unsettled": state.unsettled_count,
            "model": None if known is None else known[1],
            "digest": self.digest(tracked.id),
            "media": kind_of(self.recordings.get(tracked.name, "")),
            "at": state.at,
            "marks": state.marks,
        }

    def having(self, level: str, label: str) -> list[int]:
        """The sequences that have a label: given by a person or a file, or suggested by the model."""
        names = [each for each in self.workspace.levels if each.name == level and label in each.labels]
        if not names:
            raise Invalid(f"level {level!r} has no label {label!r}", "label")
        column = self._profile_column(level, label)
        found = []
        for tracked in self.workspace.sequences.values():
            profile = self._doubts.get(tracked.id, (0, 0, None, []))[3]
            suggested = column is not None and column < len(profile) and profile[column] > 0
            if suggested or (level, label) in self.workspace.given_labels_in(tracked):
                found.append(tracked.id)
        return found

    def _profile_column(self, level: str, label: str) -> int | None:
        """The position of a label in the profiles of sequences."""
        suggester = self.workspace.model_store.suggester
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
        seen = f"{LAYOUT} {self.project.kind} {','.join(self.columns)} {self.workspace.tracked(sequence).sha256}"
        return hashlib.sha256(seen.encode()).hexdigest()[:32]

    def progress(self) -> dict[str, Any]:
        """Corrections of each accepted sequence in the order of acceptance, and the models with their quality."""
        return reports.progress(self)

    def settings(self, given: Mapping[str, Any]) -> None:
        """Remember who works here, and after how many accepted sequences a model is trained."""
        if "annotator" in given:
            name = given["annotator"]
            if not isinstance(name, str) or len(name) > 200 or not name.isprintable():
                raise Invalid("annotator is not a name of at most 200 characters", "annotator")
            self.database.set("annotator", name)
        if "guidelines" in given:
            label_set.guidelines(self, given)
        if "train_after" in given:
            count = given["train_after"]
            if not isinstance(count, int) or isinstance(count, bool) or count < 1:
                raise Invalid(f"train_after is {count!r}, expected a whole number of at least 1", "train_after")
            self.train_after = count
            self.database.set("train_after", count)
