"""Two people: how well their labels of the same sequences agree, and one database in which differences are settled."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hscrf.arrays import Ints
from hscrf.studio.data.database import Database, Event
from hscrf.studio.data.events import State
from hscrf.studio.data.evidence import levels_of
from hscrf.studio.data.knowledge import UNKNOWN, KnownCells, Level, runs_of
from hscrf.studio.data.label_edits import looks
from hscrf.studio.data.project import Project, cut_texts, with_features
from hscrf.studio.data.sequences import InputSequence
from hscrf.studio.exchange.records import ExportRecord
from hscrf.topology import Topology


@dataclass
class Agreement:
    """How two people agree on one level.

    ``kappa`` is Cohen's, over the steps that both have labelled. Segments are exact: equal label and equal borders.
    Borders agree if they are at most ``tolerance`` steps apart; each counts once.
    """

    level: str
    sequences: int = 0
    steps: int = 0  # that both have labelled
    pairs: Counter[tuple[int, int]] = field(default_factory=Counter)
    segments: list[int] = field(default_factory=lambda: [0, 0, 0])  # common, of the first, of the second
    borders: list[int] = field(default_factory=lambda: [0, 0, 0])

    @property
    def share(self) -> float:
        """The share of steps with equal labels."""
        return sum(n for (a, b), n in self.pairs.items() if a == b) / self.steps if self.steps else float("nan")

    @property
    def kappa(self) -> float:
        """Agreement beyond chance: 1 is complete, 0 is that of two people who choose by their own frequencies."""
        if not self.steps:
            return float("nan")
        first: Counter[int] = Counter()
        second: Counter[int] = Counter()
        for (a, b), n in self.pairs.items():
            first[a] += n
            second[b] += n
        chance = sum(first[label] * second[label] for label in first) / self.steps**2
        return 1.0 if chance == 1 else (self.share - chance) / (1 - chance)

    @property
    def segment_f1(self) -> float:
        return _f1(self.segments)

    @property
    def border_f1(self) -> float:
        return _f1(self.borders)


def _f1(counts: Sequence[int]) -> float:
    common, first, second = counts
    return 2 * common / (first + second) if first + second else float("nan")


@dataclass(frozen=True)
class AnnotatedSequence:
    """The labels of one sequence in one database."""

    name: str
    length: int
    sha256: str
    observations: str
    state: State
    events: Sequence[Event] = ()
    times: Sequence[float] | None = None
    text: tuple[str, list[tuple[int, int]]] | None = None  # that its words were cut from, and their places there
    tokens: str | None = None  # how the text is cut

    @property
    def record(self) -> ExportRecord:
        return ExportRecord(self.name, [], self.state, {})


def annotations_of(path: str | os.PathLike[str]) -> tuple[Topology, dict[str, AnnotatedSequence], str]:
    """The topology of a database, its sequences by name, and who worked on it."""
    with Database(path, reading=True) as database:
        given = database.setting("topology")
        if given is None:
            raise ValueError(f"{os.fspath(path)} has no labels yet: open it in the studio first")
        topology = Topology.from_dict(given)
        levels = levels_of(topology)
        cuts = database.setting("cuts", [])
        tokens = str(cuts[-1]["tokens"]) if cuts else None
        found, people = {}, Counter[str]()
        for row in database.sequences():
            events = database.events(row.id)
            people.update(event.annotator for event in events if event.annotator)
            state = State.replayed(levels, row.length, events)
            seen, times, text = database.observations(row.id), database.times(row.id), database.text(row.id)
            found[row.name] = AnnotatedSequence(
                row.name, row.length, row.sha256, seen, state, events, times, text, tokens
            )
        name = people.most_common(1)[0][0] if people else os.path.splitext(os.path.basename(os.fspath(path)))[0]
    return topology, found, name


def common_annotations(
    one: dict[str, AnnotatedSequence], other: dict[str, AnnotatedSequence]
) -> Iterator[tuple[AnnotatedSequence, AnnotatedSequence]]:
    """The sequences that both databases have and both people have begun."""
    for name, first in one.items():
        second = other.get(name)
        if second is None or not first.state.in_force or not second.state.in_force:
            continue
        if first.sha256 != second.sha256:
            raise ValueError(f"sequence {name!r} is not the same in both databases: its observations differ")
        yield first, second


def agreement(
    one: dict[str, AnnotatedSequence], other: dict[str, AnnotatedSequence], levels: Sequence[Level], tolerance: int
) -> list[Agreement]:
    """How two people agree, level by level."""
    found = [Agreement(level.name) for level in levels]
    for first, second in common_annotations(one, other):
        for entry, level in zip(found, levels, strict=True):
            a, b = first.state.knowledge.cells[level.name], second.state.knowledge.cells[level.name]
            both = (a.label != UNKNOWN) & (b.label != UNKNOWN)
            if not both.any():
                continue
            entry.sequences += 1
            entry.steps += int(both.sum())
            entry.pairs.update(zip(a.label[both].tolist(), b.label[both].tolist(), strict=True))
            mine, theirs = set(first.record.segments(level)), set(second.record.segments(level))
            _add(entry.segments, len(mine & theirs), len(mine), len(theirs))
            here, there = borders_in(a, both), borders_in(b, both)
            _add(entry.borders, matched(here, there, tolerance), len(here), len(there))
    return found


def _add(counts: list[int], *more: int) -> None:
    counts[:] = [count + new for count, new in zip(counts, more, strict=True)]


def borders_in(cells: KnownCells, both: Any) -> Ints:
    """Places (n,) of borders between two steps that both people have labelled: known ones, and changes of the label."""
    change = (cells.label[1:] != cells.label[:-1]) | (cells.border[1:-1] == 1)
    return np.flatnonzero(change & both[1:] & both[:-1]) + 1


def matched(one: Ints, other: Ints, tolerance: int) -> int:
    """How many borders of two sorted lists can be paired, each once, at most ``tolerance`` steps apart.

    >>> matched(np.array([3, 10]), np.array([4, 5, 20]), tolerance=1)
    1
    """
    count = i = j = 0
    while i < len(one) and j < len(other):
        if abs(int(one[i]) - int(other[j])) <= tolerance:
            count, i, j = count + 1, i + 1, j + 1
        elif one[i] < other[j]:
            i += 1
        else:
            j += 1
    return count


# -- one database of both


@dataclass(frozen=True)
class Difference:
    """Steps of a level that two people have labelled differently, or a border that one has and the other has not.

    A border lies before ``start``; ``first`` and ``second`` say then whether each has it.
    """

    level: str
    start: int
    stop: int
    first: Any
    second: Any
    border: bool = False


def differences(first: AnnotatedSequence, second: AnnotatedSequence, levels: Sequence[Level]) -> list[Difference]:
    """Runs of steps with two different labels, cut where either label changes; then borders between equal labels."""
    found = []
    for level in levels:
        a, b = (work.state.knowledge.cells[level.name].label for work in (first, second))
        differ = (a != b) & (a != UNKNOWN) & (b != UNKNOWN)
        code = np.where(differ, a * (len(level.labels) + 1) + b, -1)
        for start, stop, value in runs_of(code):
            if value >= 0:
                found.append(Difference(level.name, start, stop, level.labels[a[start]], level.labels[b[start]]))
        found += [Difference(level.name, at, at + 1, one, not one, True) for at, one in _borders(first, second, level)]
    return found


def _borders(first: AnnotatedSequence, second: AnnotatedSequence, level: Level) -> list[tuple[int, bool]]:
    """Borders inside steps to which both gave one label, where one has two segments and the other has one."""
    if level.unit:
        return []
    a, b = (work.state.knowledge.cells[level.name] for work in (first, second))
    known = (a.label == b.label) & (a.label != UNKNOWN)
    inside = known[1:] & known[:-1] & (a.label[1:] == a.label[:-1])
    one, other = a.border[1:-1], b.border[1:-1]
    differ = inside & (one != other) & (one != UNKNOWN) & (other != UNKNOWN)
    return [(int(t) + 1, bool(one[t] == 1)) for t in np.flatnonzero(differ)]


def agreed(first: AnnotatedSequence, second: AnnotatedSequence, levels: Sequence[Level]) -> dict[str, Any]:
    """The body of an import event for labels that agree, or that only one person gave; complete if nothing is left."""
    found: dict[str, Any] = {}
    for level in levels:
        a, b = (work.state.knowledge.cells[level.name] for work in (first, second))
        label = np.where((a.label == b.label) | (b.label == UNKNOWN), a.label, UNKNOWN)
        label = np.where(a.label == UNKNOWN, b.label, label)
        entry: dict[str, Any] = {"labels": [[i, j, level.labels[s]] for i, j, s in runs_of(label) if s != UNKNOWN]}
        if not level.unit:
            border = np.where((a.border == b.border) | (b.border == UNKNOWN), a.border, UNKNOWN)
            border = np.where(a.border == UNKNOWN, b.border, border)[1:-1]
            entry["on"] = (np.flatnonzero(border == 1) + 1).tolist()
            entry["off"] = [[i + 1, j + 1] for i, j, value in runs_of(border) if value == 0]
        if any(entry.values()):
            found[level.name] = entry
    if all(_is_whole(first, second, level) for level in levels) and not differences(first, second, levels):
        return {"levels": found, "source": "agreement", "complete": True}
    return {"levels": found, "source": "agreement"}


def _is_whole(first: AnnotatedSequence, second: AnnotatedSequence, level: Level) -> bool:
    """Whether one or the other has labelled each step of a level."""
    a, b = (work.state.knowledge.cells[level.name].label for work in (first, second))
    return bool(((a != UNKNOWN) | (b != UNKNOWN)).all())


def settle(
    path: str,
    topology: Topology,
    pairs: Sequence[tuple[AnnotatedSequence, AnnotatedSequence]],
    names: tuple[str, str],
    settings: Mapping[str, Any] | None = None,
) -> int:
    """Write a new database: both histories, what both agree on, and the differences to settle; how many there are.

    The file gets its name only when it is complete. ``settings`` are those of :func:`common_settings`.
    """
    if os.path.exists(path):
        raise FileExistsError(17, "the database is there already: give another name", path)
    levels, count = levels_of(topology), 0
    part = f"{path}.part"
    for leftover in (part, f"{part}-wal", f"{part}-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(leftover)
    with Database(part) as database:
        database.set("topology", topology.to_json())
        for key, value in (settings or {}).items():
            database.set(key, value)
        tokens = [each.tokens for pair in pairs for each in pair if each.text is not None and each.tokens is not None]
        if tokens:
            database.set("cuts", [{"tokens": tokens[0], "at": 0}])
        for first, second in pairs:
            n = database.add(first.name, first.length, first.observations, first.sha256)
            version = 0
            if first.times is not None or second.times is not None:
                database.set_times([(n, first.times or second.times or ())])
            text = first.text or second.text
            if text is not None:
                database.set_texts([(n, *text)])
            for who, work in zip(names, (first, second), strict=True):
                for event, body in _history(work, who):
                    database.append(
                        n, version, f"{n}-{version}-{event.uid}"[:64], "history", body, event.annotator or who
                    )
                    version += 1
            body = agreed(first, second, levels)
            database.append(n, version, f"{n}-{version}-agreed", "import", body)
            found = differences(first, second, levels)
            if found:
                rows = [[d.level, d.start, d.stop, d.first, d.second] for d in found if not d.border]
                borders = [[d.level, d.start, d.first, d.second] for d in found if d.border]
                body = {"names": list(names), "rows": rows, "borders": borders}
                database.append(n, version + 1, f"{n}-differences", "differ", body)
                database.append(n, version + 2, f"{n}-flag", "mark", {"flag": True})
            count += len(found)
    os.replace(part, path)
    with contextlib.suppress(FileNotFoundError):
        os.remove(f"{part}.lock")
    return count


def _history(work: AnnotatedSequence, who: str) -> Iterator[tuple[Event, dict[str, Any]]]:
    """All events of a sequence in one database, as the new database keeps them, with what was undone."""
    in_force = {event.version for event in work.state.in_force}
    for event in work.events:
        if event.kind == "history":  # that database was made of two others
            yield event, dict(event.body)
            continue
        undone = event.kind not in ("undo", "redo", "mark", "differ") and event.version not in in_force
        body = {"by": event.annotator or who, "kind": event.kind, "body": event.body, "at": event.at}
        yield event, {**body, **({"undone": True} if undone else {})}


def common_settings(*paths: str | os.PathLike[str]) -> dict[str, Any]:
    """Settings for a database of two people: rate, guidelines, media, looks of labels; the first person's win."""
    found: dict[str, Any] = {}
    kept: dict[str, dict[str, Any]] = {}
    for path in reversed(paths):
        with Database(path, reading=True) as database:
            for key in ("rate", "guidelines", "shown"):
                value = database.setting(key)
                if value:
                    found[key] = value
            found["media"] = {**found.get("media", {}), **database.setting("media", {})}
            for level, rows in looks(database.label_edits()).items():
                kept[level] = {**kept.get(level, {}), **rows}
    changes = [
        {"do": "look", "level": level, "label": label, "look": look}
        for level, rows in kept.items()
        for label, look in rows.items()
    ]
    if changes:
        found["label_edits"] = [{"edit": 0, "kind": "do", "at": 0, "changes": changes}]
    return {key: value for key, value in found.items() if value}


def settled_project(path: str, topology: Topology) -> Project:
    """The sequences of a database of two people, without a model."""
    with Database(path, reading=True) as database:
        rows = [
            (row.name, json.loads(database.observations(row.id)), database.times(row.id))
            for row in database.sequences()
        ]
        texts = [(row.name, text[0]) for row in database.sequences() if (text := database.text(row.id)) is not None]
        shown, cuts = database.setting("shown", {}), database.setting("cuts", [])
    name, kind = os.path.basename(path), shown.get("kind")
    if rows and len(texts) == len(rows) and cuts:
        items, save, cut = cut_texts(texts, topology, str(cuts[-1]["tokens"]))
        return Project(items, topology, name=name, save=save, kind=kind, texts=cut)
    items = [InputSequence(name, tokens, tokens, times=times) for name, tokens, times in rows]
    items, save = with_features(items, topology)
    return Project(items, topology, name=name, save=save, kind=kind, column_names=shown.get("columns", ()))


def table_of(found: Sequence[Agreement], names: tuple[str, str], tolerance: int) -> str:
    """The agreement as text, a row a level."""
    head = ["level", "sequences", "steps", "equal", "kappa", "segment F1", f"border F1 (±{tolerance})"]
    rows = [
        [a.level, str(a.sequences), str(a.steps), *(f"{v:.3f}" for v in (a.share, a.kappa, a.segment_f1, a.border_f1))]
        for a in found
    ]
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in [head, *rows]
    ]
    return "\n".join([f"{names[0]} and {names[1]}", *lines])
