"""The known labels of one sequence, cell by cell: labels and boundaries of each level, and the event of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hscrf.arrays import Ints

UNKNOWN = -1


@dataclass(frozen=True)
class Level:
    """A level as people see it: its labels by name; of a unit level every step is a segment of its own."""

    name: str
    labels: tuple[str, ...]
    unit: bool = False

    def code(self, label: str) -> int:
        return self.labels.index(label)


@dataclass
class KnownCells:
    """One level of one sequence of T steps; border t lies before step t; 0 and T are not used."""

    label: Ints  # (T,) code of the label, -1 unknown
    label_by: Ints  # (T,) version of the event it comes from, 0 none
    accepted: Any  # (T,) whether that event accepted a suggestion
    border: Ints  # (T + 1,) 1 there is one, 0 there is none, -1 unknown
    border_by: Ints  # (T + 1,)

    @classmethod
    def blank(cls, length: int) -> KnownCells:
        def row(value: int, more: int = 0) -> Ints:
            return np.full(length + more, value, dtype=np.int32)

        return cls(row(UNKNOWN), row(0), np.zeros(length, dtype=bool), row(UNKNOWN, 1), row(0, 1))

    def copy(self) -> KnownCells:
        arrays = (self.label, self.label_by, self.accepted, self.border, self.border_by)
        return KnownCells(*(array.copy() for array in arrays))

    def put_label(self, start: int, stop: int, code: int, version: int, accepted: bool = False) -> None:
        """Label some steps; borders at their edges that two labels contradict are forgotten."""
        self.label[start:stop] = code
        self.label_by[start:stop] = version
        self.accepted[start:stop] = accepted
        self._open(start)
        self._open(stop)

    def put_border(self, start: int, stop: int, value: int, version: int) -> None:
        """Set the borders start .. stop - 1, those of the sequence left out."""
        start, stop = max(start, 1), min(stop, len(self.label))
        if start < stop:
            self.border[start:stop] = value
            self.border_by[start:stop] = version

    def put_segment(self, start: int, stop: int, code: int, version: int, unit: bool, accepted: bool = False) -> None:
        """Exactly this segment: its label, its two borders, none inside."""
        if not unit:
            self.put_borders(start, stop, version)
        self.put_label(start, stop, code, version, accepted)

    def put_borders(self, start: int, stop: int, version: int) -> None:
        """The borders of exactly one segment: one at each end, none inside."""
        self.put_border(start, start + 1, 1, version)
        self.put_border(stop, stop + 1, 1, version)
        self.put_border(start + 1, stop, 0, version)

    def forget(self, start: int, stop: int) -> None:
        """Forget the labels of some steps and the borders in them and at both edges."""
        self._forget_labels(slice(start, stop))
        self._forget_borders(slice(start, stop + 1))

    def forget_version(self, version: int) -> None:
        """Forget all that comes from one event."""
        self._forget_labels(self.label_by == version)
        self._forget_borders(self.border_by == version)

    def absorb(self, start: int, stop: int, label: int) -> None:
        """Forget the labels of some steps that differ from that of the segment that now covers them."""
        steps = slice(start, stop)
        self._forget_labels(np.flatnonzero((self.label[steps] != label) & (self.label[steps] != UNKNOWN)) + start)

    def run(self, t: int) -> int:
        """The end of the run of labels equal to that of step t; a known border ends it too."""
        other = (self.label[t + 1 :] != self.label[t]) | (self.border[t + 1 : -1] == 1)
        return t + 1 + (int(other.argmax()) if other.any() else len(other))

    def _open(self, at: int) -> None:
        """Forget that there is no border between two different labels."""
        if 0 < at < len(self.label) and self.border[at] == 0:
            one, other = self.label[at - 1], self.label[at]
            if UNKNOWN not in (one, other) and one != other:
                self._forget_borders(slice(at, at + 1))

    def _forget_labels(self, where: Any) -> None:
        self.label[where], self.label_by[where], self.accepted[where] = UNKNOWN, 0, False

    def _forget_borders(self, where: Any) -> None:
        self.border[where], self.border_by[where] = UNKNOWN, 0


@dataclass
class Knowledge:
    """All levels of one sequence, and the fixes that are in force: version -> (kind, body)."""

    levels: Sequence[Level]
    length: int
    cells: dict[str, KnownCells] = field(default_factory=dict)
    fixes: dict[int, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.cells:
            self.cells = {level.name: KnownCells.blank(self.length) for level in self.levels}

    def copy(self) -> Knowledge:
        cells = {name: cells.copy() for name, cells in self.cells.items()}
        return Knowledge(self.levels, self.length, cells, dict(self.fixes))

    def level(self, name: str) -> Level:
        return next(level for level in self.levels if level.name == name)

    @property
    def empty(self) -> bool:
        """Whether nothing is known."""
        return all((c.label == UNKNOWN).all() and (c.border == UNKNOWN).all() for c in self.cells.values())

    # -- events

    def apply(self, kind: str, body: Mapping[str, Any], version: int) -> None:
        """Add a checked event; a newer one wins over older ones of its level."""
        APPLY[kind](self, body, version)
        if kind != "release":
            self.fixes[version] = (kind, body)
        self.fixes = {v: fix for v, fix in self.fixes.items() if self._in_force(v)}

    def _in_force(self, version: int) -> bool:
        """Whether an event still determines any cell."""
        return any((c.label_by == version).any() or (c.border_by == version).any() for c in self.cells.values())

    def _label(self, body: Mapping[str, Any], version: int) -> None:
        code = self.level(body["level"]).code(body["label"])
        self.cells[body["level"]].put_label(body["start"], body["stop"], code, version)

    def _segment(self, body: Mapping[str, Any], version: int) -> None:
        level = self.level(body["level"])
        code = level.code(body["label"])
        self.cells[level.name].put_segment(body["start"], body["stop"], code, version, level.unit)

    def _boundary(self, body: Mapping[str, Any], version: int) -> None:
        cells, at, origin = self.cells[body["level"]], body["at"], body.get("from")
        if origin is None and body["on"]:
            cells.put_border(at, at + 1, 1, version)
        elif origin is None:  # the segment on the left goes on
            left = int(cells.label[at - 1])
            if left != UNKNOWN:
                cells.absorb(at, cells.run(at), left)
            cells.put_border(at, at + 1, 0, version)
        elif origin < at:  # the left segment grows
            cells.absorb(origin, at, int(cells.label[origin - 1]))
            cells.put_border(origin, at, 0, version)
            cells.put_border(at, at + 1, 1, version)
        else:  # the right segment grows
            cells.absorb(at, origin, int(cells.label[origin]))
            cells.put_border(at + 1, origin + 1, 0, version)
            cells.put_border(at, at + 1, 1, version)

    def _accept(self, body: Mapping[str, Any], version: int) -> None:
        for name, segments in body["segments"].items():
            level = self.level(name)
            for start, stop, label in segments:
                self.cells[name].put_segment(start, stop, level.code(label), version, level.unit, accepted=True)

    def _release(self, body: Mapping[str, Any], version: int) -> None:
        if "fix" in body:
            for cells in self.cells.values():
                cells.forget_version(body["fix"])
        else:
            cells, start, stop = self.cells[body["level"]], body["start"], body["stop"]
            moved = [v for v in np.unique(cells.border_by[start : stop + 1]) if self._is_boundary(int(v))]
            cells.forget(start, stop)
            for other in moved:  # a border that was moved belongs to two segments: it is released as a whole
                cells.forget_version(int(other))

    def _is_boundary(self, version: int) -> bool:
        return self.fixes.get(version, ("",))[0] == "boundary"

    def _import(self, body: Mapping[str, Any], version: int) -> None:
        for name, known in body["levels"].items():
            level = self.level(name)
            for start, stop, label in known.get("labels", ()):
                self.cells[name].put_label(start, stop, level.code(label), version)
            if level.unit:
                continue
            for at in known.get("on", ()):
                self.cells[name].put_border(at, at + 1, 1, version)
            for start, stop in known.get("off", ()):
                self.cells[name].put_border(start, stop, 0, version)


APPLY: dict[str, Callable[[Knowledge, Mapping[str, Any], int], None]] = {
    "label": Knowledge._label,
    "boundary": Knowledge._boundary,
    "segment": Knowledge._segment,
    "accept": Knowledge._accept,
    "release": Knowledge._release,
    "import": Knowledge._import,
}


def runs_of(values: Any, extra: Any = None) -> list[tuple[int, int, int]]:
    """Runs (start, stop, value) of equal values (T,); a run also ends before each step that ``extra`` marks.

    >>> runs_of(np.array([4, 4, 2]))
    [(0, 2, 4), (2, 3, 2)]
    """
    if not len(values):
        return []
    change = np.append(True, values[1:] != values[:-1])
    if extra is not None:
        change |= extra
    start = np.flatnonzero(change)
    stop = np.append(start[1:], len(values))
    return list(zip(start.tolist(), stop.tolist(), values[start].tolist(), strict=True))
