"""Fixes that contradict each other: a smallest set of them, each of which can be released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hscrf.inference.conflicts import smallest_core
from hscrf.studio.data.events import span_of
from hscrf.studio.data.knowledge import Knowledge, KnownCells, runs_of


@dataclass(frozen=True)
class Group:
    """Cells of one level that come from one event and are released together."""

    version: int
    level: str
    start: int
    stop: int
    labels: Any  # (n,) steps with labels of the event
    borders: Any  # (m,) boundaries of the event
    release: dict[str, Any]
    words: str


def groups_of(knowledge: Knowledge, newest: int) -> list[Group]:
    """All known labels in groups, oldest first; accepted and imported labels form a group for each segment."""
    found = []
    focus = span_of(knowledge.fixes.get(newest, ("", {}))[1]) or (0, 0)
    for version in sorted(knowledge.fixes):
        kind = knowledge.fixes[version][0]
        for level in knowledge.levels:
            cells = knowledge.cells[level.name]
            labels, borders = np.flatnonzero(cells.label_by == version), np.flatnonzero(cells.border_by == version)
            if not labels.size and not borders.size:
                continue
            parts = [(labels, borders)]
            if kind in ("accept", "import"):
                parts = _parts(cells, labels, borders, focus)
            found += [_group(knowledge, version, level.name, *part, several=len(parts) > 1) for part in parts]
    return found


def _parts(cells: KnownCells, labels: Any, borders: Any, focus: tuple[int, int]) -> list[tuple[Any, Any]]:
    """Cells of one event and level: those in the steps of the newest fix, and the other segments one by one."""
    start, stop = focus
    mine = np.full(len(cells.label), -1)
    mine[labels] = cells.label[labels]
    breaks = cells.border[:-1] == 1
    breaks[[place for place in focus if place < len(breaks)]] = True
    parts = [(_within(labels, start, stop), _within(borders, start, stop + 1))] if start < stop else []
    for i, j, _ in runs_of(mine, breaks):
        if not (start <= i < stop):
            outer = borders[(borders < start) | (borders > stop)] if start < stop else borders
            parts.append((_within(labels, i, j), _within(outer, i, j)))
    return [part for part in parts if part[0].size or part[1].size]


def _within(places: Any, start: int, stop: int) -> Any:
    return places[(places >= start) & (places < stop)]


def _group(knowledge: Knowledge, version: int, name: str, labels: Any, borders: Any, several: bool) -> Group:
    start = int(min([*labels[:1], *borders[:1]]))
    stop = int(max([*(labels[-1:] + 1), *borders[-1:]]))
    stop = max(stop, start + 1)
    release = {"level": name, "start": start, "stop": stop} if several else {"fix": version}
    words = _words(knowledge, name, labels, borders, start, stop)
    return Group(version, name, start, stop, labels, borders, release, words)


def _words(knowledge: Knowledge, name: str, labels: Any, borders: Any, start: int, stop: int) -> str:
    """The description of a group for the page."""
    cells, level = knowledge.cells[name], knowledge.level(name)
    said = list(dict.fromkeys(level.labels[code] for code in cells.label[labels]))
    if said:
        shown = " or ".join(map(repr, said[:3])) + (" ..." if len(said) > 3 else "")
        return f"{name} is {shown} in {_steps(start, stop)}"
    on, off = borders[cells.border[borders] == 1], borders[cells.border[borders] == 0]
    if on.size and off.size:  # a border that was moved
        between = _steps(int(off[0]), int(off[-1]) + 1)
        return f"{name} has a border before step {int(on[0])} and none before {between}"
    if on.size:
        return f"{name} has a border before step {int(on[0])}"
    return f"{name} has no border before {_steps(int(borders[0]), int(borders[-1]) + 1)}"


def _steps(start: int, stop: int) -> str:
    """Steps in words; both ends belong to them."""
    return f"step {start}" if stop == start + 1 else f"steps {start} to {stop - 1}"


def crossed(knowledge: Knowledge, groups: Sequence[Group]) -> str:
    """The rule that two levels break whose borders do not fit together; empty if they contradict otherwise."""
    order = [level.name for level in knowledge.levels]
    for upper in groups:
        for lower in groups:
            above, below = knowledge.cells[upper.level].border, knowledge.cells[lower.level].border
            on, off = upper.borders[above[upper.borders] == 1], lower.borders[below[lower.borders] == 0]
            if order.index(upper.level) < order.index(lower.level) and np.intersect1d(on, off).size:
                return f"where a segment of {upper.level} begins or ends, one of {lower.level} does, too"
    return ""


def knowledge_of(knowledge: Knowledge, groups: Sequence[Group]) -> Knowledge:
    """The knowledge of some groups."""
    found = Knowledge(knowledge.levels, knowledge.length)
    for group in groups:
        source, target = knowledge.cells[group.level], found.cells[group.level]
        target.label[group.labels] = source.label[group.labels]
        target.border[group.borders] = source.border[group.borders]
    return found


def feasible(knowledge: Knowledge, newest: int, possible: Callable[[Knowledge], bool]) -> tuple[Knowledge, list[Group]]:
    """The knowledge without cells that contradict older ones, and the first smallest contradicting set, if any.

    Of each contradicting set the newest member is left out, until something is possible.
    """
    if possible(knowledge):
        return knowledge, []
    groups = groups_of(knowledge, newest)
    first: list[Group] = []
    while groups and not possible(knowledge_of(knowledge, groups)):
        core = smallest_core(groups, lambda some: possible(knowledge_of(knowledge, some)))
        if not core:
            return Knowledge(knowledge.levels, knowledge.length), first
        first = first or core
        groups = [group for group in groups if group is not core[-1]]
    return knowledge_of(knowledge, groups), first
