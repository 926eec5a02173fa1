"""The kinds of events, their validation, and the state that results from them; undo and redo are events too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hscrf.studio.data.database import Event
from hscrf.studio.data.knowledge import Knowledge, Level
from hscrf.studio.data.problems import Invalid

FIXES = ("label", "boundary", "segment")
KINDS = (*FIXES, "accept", "release", "undo", "redo", "mark")  # that a person may send; "import" comes from files
NOTE = 2000  # characters of a note


def came_with_data(event: Event) -> bool:
    """Whether an event holds the labels that the data came with; labels that a person imported have a source."""
    return event.kind == "import" and "source" not in event.body


@dataclass
class State:
    """A sequence as its events have left it.

    ``apply`` adds one event, in O(T) unless it is undo, which begins anew. Undo takes back the last event that is in
    force; labels that came with the data stay. A new event forgets what could be redone. The known cells are
    computed when needed.
    """

    levels: Sequence[Level]
    length: int
    version: int = 0
    in_force: list[Event] = field(default_factory=list)
    undone: list[Event] = field(default_factory=list)
    marks: dict[str, Any] = field(default_factory=dict)  # "flag", "skip" (true) and "note" (text) of the sequence
    differences: dict[str, Any] = field(
        default_factory=dict
    )  # "names" of two people, "rows" and "borders" they differ in
    at: str = ""  # of the last event
    _knowledge: Knowledge | None = None
    _unsettled: tuple[int, int] = (-1, 0)  # version, number of differences

    @classmethod
    def replayed(cls, levels: Sequence[Level], length: int, events: Iterable[Event]) -> State:
        """The state that events lead to, from the beginning."""
        state = cls(levels, length)
        for event in events:
            state.apply(event)
        return state

    @property
    def knowledge(self) -> Knowledge:
        """The known labels, cell by cell."""
        if self._knowledge is None:
            self._knowledge = known_from(self.levels, self.length, self.in_force)
        return self._knowledge

    def drop_cells(self) -> None:
        """Drop data that can be computed again."""
        self._knowledge = None

    @property
    def acceptance(self) -> Event | None:
        """The event that accepted the whole sequence, if nothing was changed since."""
        for event in reversed(self.in_force):
            if event.kind != "accept":
                return None
            if event.body.get("whole"):
                return event
        return None

    @property
    def status(self) -> str:
        """The status of the sequence in the queue."""
        if self.acceptance is not None or (self.in_force and self.in_force[-1].body.get("complete")):
            return "done"
        return "begun" if any(not came_with_data(event) for event in self.in_force) else "open"

    @property
    def corrections(self) -> int:
        """The fixes that are in force."""
        return sum(event.kind in FIXES for event in self.in_force)

    @property
    def can_undo(self) -> bool:
        return bool(self.in_force) and not came_with_data(self.in_force[-1])

    @property
    def can_redo(self) -> bool:
        return bool(self.undone)

    def apply(self, event: Event) -> None:
        """Add the next event, which was checked."""
        if event.version != self.version + 1:
            raise ValueError(f"event {event.version} follows version {self.version}, expected {self.version + 1}")
        if event.kind == "differ":
            self.differences = event.body
        elif event.kind == "history":
            pass  # what happened in another database: kept, and shown in the history
        elif event.kind == "mark":
            marks = {**self.marks, **event.body}
            self.marks = {name: value for name, value in marks.items() if value}
        elif event.kind == "undo":
            self.undone.append(self.in_force.pop())
            self.drop_cells()
        else:
            if event.kind != "redo":
                self.undone.clear()
            now = self.undone.pop() if event.kind == "redo" else event
            self.in_force.append(now)
            if self._knowledge is not None:
                self._knowledge.apply(now.kind, now.body, now.version)
        self.version, self.at = event.version, event.at

    def unsettled(self) -> list[dict[str, Any]]:
        """The steps and borders that two people labelled differently and that have not been labelled since."""
        found = []
        names = self.differences.get("names", ())
        for level, start, stop, first, second in self.differences.get("rows", ()):
            if (self.knowledge.cells[level].label[start:stop] < 0).any():
                said = dict(zip(names, (first, second), strict=True))
                found.append({"level": level, "start": start, "stop": stop, "border": False, "said": said})
        for level, at, first, second in self.differences.get("borders", ()):
            if self.knowledge.cells[level].border[at] < 0:
                said = dict(zip(names, (first, second), strict=True))
                found.append({"level": level, "start": at, "stop": at + 1, "border": True, "said": said})
        return found

    @property
    def unsettled_count(self) -> int:
        """How many differences are left to settle; remembered for a version."""
        if not self.differences:
            return 0
        if self._unsettled[0] != self.version:
            had = self._knowledge is not None
            self._unsettled = (self.version, len(self.unsettled()))
            if not had:
                self.drop_cells()
        return self._unsettled[1]

    def touched(self) -> tuple[int, int]:
        """The steps of the last change; all steps if unknown."""
        latest = [*self.in_force[-1:], *self.undone[-1:]]
        body = max(latest, key=lambda event: event.version).body if latest else {}
        return span_of(body) or (0, self.length)

    # -- checks

    def check(self, kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of an event with only what belongs to it; raises :class:`Invalid` if it is invalid here."""
        if kind not in KINDS:
            raise Invalid(f"kind is {kind!r}, expected one of {', '.join(KINDS)}", "kind")
        if kind == "undo" and not self.can_undo:
            raise Invalid("there is nothing to undo", kind="nothing")
        if kind == "redo" and not self.can_redo:
            raise Invalid("there is nothing to redo", kind="nothing")
        if kind in ("undo", "redo"):
            return {}
        if kind == "mark":
            return _check_marks(body)
        if kind == "accept":
            return self._check_accept(body)
        if kind == "release" and "fix" in body:
            return self._check_fix(body["fix"])
        level = self._level(body.get("level"))
        if kind == "boundary":
            return self._check_boundary(level, body)
        span = self._span(level, body)
        return span if kind == "release" else {**span, "label": self._label(level, body.get("label"))}

    def _level(self, name: Any) -> Level:
        for level in self.levels:
            if level.name == name:
                return level
        raise Invalid(f"level is {name!r}, expected {' or '.join(level.name for level in self.levels)}", "level")

    def _label(self, level: Level, label: Any) -> str:
        if not isinstance(label, str) or label not in level.labels:
            raise Invalid(f"level {level.name!r} has no label {label!r}", "label")
        return label

    def _span(self, level: Level, body: Mapping[str, Any]) -> dict[str, Any]:
        start, stop = body.get("start"), body.get("stop")
        if not (whole(start) and whole(stop) and 0 <= start < stop <= self.length):  # type: ignore[operator]
            raise Invalid(f"steps are {start!r} to {stop!r}, expected 0 <= start < stop <= {self.length}", "start")
        return {"level": level.name, "start": start, "stop": stop}

    def _check_boundary(self, level: Level, body: Mapping[str, Any]) -> dict[str, Any]:
        if level.unit:
            raise Invalid(f"every step of level {level.name!r} is a segment: label its steps instead", "level")
        at, on, origin = body.get("at"), body.get("on"), body.get("from")
        for name, place in (("at", at), ("from", origin)):
            if not (name == "from" and place is None) and not (whole(place) and 0 < place < self.length):  # type: ignore[operator]
                raise Invalid(f"border {name} is {place!r}, expected 1 to {self.length - 1}", name)
        if not isinstance(on, bool) or (origin is not None and not on):
            raise Invalid(f"on is {on!r}, expected true, or false where no border is moved", "on")
        found = {"level": level.name, "at": at, "on": on}
        return found if origin is None or origin == at else {**found, "from": origin}

    def _check_fix(self, version: Any) -> dict[str, Any]:
        if not whole(version) or version not in self.knowledge.fixes:
            raise Invalid(f"there is no fix {version!r} to release", "fix")
        return {"fix": version}

    def _check_accept(self, body: Mapping[str, Any]) -> dict[str, Any]:
        given, whole_sequence = body.get("segments"), body.get("whole") is True
        if not isinstance(given, Mapping) or not given:
            raise Invalid("segments are missing, expected lists of [start, stop, label] by level", "segments")
        if whole_sequence and set(given) != {level.name for level in self.levels}:
            raise Invalid("to accept a whole sequence, give the segments of all levels", "segments")
        levels = list(map(self._level, given))
        found = {level.name: self._segments(level, given[level.name], whole_sequence) for level in levels}
        together = {"batch": body["batch"]} if isinstance(body.get("batch"), str) else {}
        return {"segments": found, **({"whole": True} if whole_sequence else {}), **together}

    def _segments(self, level: Level, segments: Any, tiling: bool) -> list[list[Any]]:
        """Segments of one level in order; with ``tiling`` they leave no gap."""
        if not isinstance(segments, list) or not all(isinstance(s, list) and len(s) == 3 for s in segments):
            raise Invalid(f"segments of level {level.name!r} are not lists [start, stop, label]", "segments")
        last = 0
        for start, stop, label in segments:
            self._span(level, {"start": start, "stop": stop})
            self._label(level, label)
            if start < last or (tiling and start > last):
                raise Invalid(
                    f"segment {[start, stop, label]} of level {level.name!r} does not begin at {last}", "segments"
                )
            last = stop
        if tiling and last != self.length:
            raise Invalid(f"segments of level {level.name!r} end at {last}, expected {self.length}", "segments")
        return segments


def whole(value: Any) -> bool:
    """Whether a value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def known_from(levels: Sequence[Level], length: int, events: Iterable[Event]) -> Knowledge:
    """The known cells of the events in force."""
    found = Knowledge(levels, length)
    for event in events:
        found.apply(event.kind, event.body, event.version)
    return found


def span_of(body: Mapping[str, Any]) -> tuple[int, int] | None:
    """The steps that the body of an event concerns, None for all."""
    if "start" in body:
        return body["start"], body["stop"]
    if "at" in body:
        places = sorted((body["at"], body.get("from", body["at"])))
        return places[0] - 1, places[1] + 1
    return None


def _check_marks(body: Mapping[str, Any]) -> dict[str, Any]:
    """Marks of a sequence: a flag, that it is skipped, a note; labels and undo are not concerned."""
    found: dict[str, Any] = {}
    for name in ("flag", "skip"):
        if name in body:
            if not isinstance(body[name], bool):
                raise Invalid(f"{name} is {body[name]!r}, expected true or false", name)
            found[name] = body[name]
    if "note" in body:
        note = body["note"]
        if not isinstance(note, str) or len(note) > NOTE:
            raise Invalid(f"note is not a text of at most {NOTE} characters", "note")
        found["note"] = note.strip()
    if not found:
        raise Invalid("a mark has nothing to say, expected flag, skip or note", "flag")
    return found
