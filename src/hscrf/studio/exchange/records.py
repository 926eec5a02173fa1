"""The record of one sequence in an export: labels of people, predictions of the model, and authors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hscrf.io.axis import TimeAxis
from hscrf.studio.data.events import State
from hscrf.studio.data.knowledge import Knowledge, Level, runs_of
from hscrf.studio.work.views import origins

PERSON, FILE, MODEL = "person", "file", "model"


@dataclass(frozen=True)
class ExportRecord:
    """One sequence. ``predicted`` are the model's segments under what people said, by level; empty without a model."""

    name: str
    tokens: list[Any]
    state: State
    predicted: Mapping[str, list[list[Any]]]
    model: int | None = None
    times: Sequence[float] | None = None  # of the steps, in seconds
    rate: float | None = None  # steps per second
    text: tuple[str, list[tuple[int, int]]] | None = None  # that words were cut from, and their places there
    columns: Sequence[str] = ()  # names of the cells of tokens that are rows of a table

    @property
    def axis(self) -> TimeAxis:
        """The times of the steps; without times and rate, a step is a second."""
        return TimeAxis(len(self.tokens), self.rate, self.times)

    @property
    def seconds(self) -> list[float] | None:
        """The seconds at which its steps begin, where times or a rate are known."""
        if self.rate is None and self.times is None:
            return None
        axis = self.axis
        return [round(axis.seconds(step), 9) for step in range(len(self.tokens))]

    @property
    def levels(self) -> Sequence[Level]:
        return self.state.levels

    @property
    def knowledge(self) -> Knowledge:
        return self.state.knowledge

    @property
    def annotators(self) -> list[str]:
        """Who worked on it."""
        return sorted({event.annotator for event in self.state.in_force if event.annotator})

    def labels(self, level: Level) -> list[Any]:
        """The labels of people or files at a level: segments if all are known, else a tag for each step, or None."""
        if level.unit:
            return self.column(level)
        segments = self.segments(level)
        covered = sum(stop - start for start, stop, _ in segments)
        said = int((self.knowledge.cells[level.name].label >= 0).sum())
        return [list(segment) for segment in segments] if covered == said else self.known_tags(level)

    def column(self, level: Level) -> list[str | None]:
        """The labels of people or files for each step, None where unknown."""
        names = (*level.labels, None)
        return [names[code] for code in self.knowledge.cells[level.name].label.tolist()]

    def segments(self, level: Level) -> list[tuple[int, int, str]]:
        """The segments that are known to be exactly such; of a unit level, runs of equal labels."""
        cells = self.knowledge.cells[level.name]
        edge = cells.border.copy()
        edge[[0, -1]] = 1
        found = []
        for start, stop, code in runs_of(cells.label, edge[:-1] == 1):
            whole = level.unit or (edge[start] == 1 and edge[stop] == 1 and (edge[start + 1 : stop] == 0).all())
            if code >= 0 and whole:
                found.append((start, stop, level.labels[code]))
        return found

    def by(self, level: Level) -> list[str]:
        """The source of each predicted step: a person, a file or the model."""
        cells = self.knowledge.cells[level.name]
        files = [version for version, (kind, _) in self.knowledge.fixes.items() if kind == "import"]
        filed = np.isin(cells.label_by, files)
        return np.select([cells.label < 0, filed], [MODEL, FILE], PERSON).tolist()

    def shown(self, level: Level) -> list[tuple[list[Any], str]]:
        """Each predicted segment and its source: a person only where all its steps are theirs."""
        segments = self.predicted.get(level.name) or [[*s] for s in self.segments(level)]
        whose = {"accepted": PERSON, "fixed": PERSON, "file": FILE, "model": MODEL}
        if not self.predicted.get(level.name):
            return [(segment, self.by(level)[segment[0]]) for segment in segments]
        return [(s, whose[o]) for s, o in zip(segments, origins(self.knowledge, level, segments), strict=True)]

    def tags(self, level: Level) -> list[str]:
        """The labels of people or files as a column of a file: BIO where segments last, ``?`` where unknown."""
        column = self.column(level)
        if level.unit:
            return [label or "?" for label in column]
        border = self.knowledge.cells[level.name].border
        starts = [t == 0 or border[t] == 1 or column[t] != column[t - 1] for t in range(len(column))]
        return [_tag(label, first) for label, first in zip(column, starts, strict=True)]

    def known_tags(self, level: Level) -> list[str | None]:
        """The same tags, None where nothing is known."""
        return [None if tag == "?" else tag for tag in self.tags(level)]

    def predicted_tags(self, level: Level) -> list[str]:
        """The predictions of the model as a column of a file."""
        found = ["?"] * self.state.length
        for start, stop, label in self.predicted.get(level.name, ()):
            for t in range(start, stop):
                found[t] = (label or "?") if level.unit else _tag(label, t == start)
        return found


def _tag(label: str | None, first: bool) -> str:
    if label is None:
        return "?"
    return label if label == "O" else f"{'B' if first else 'I'}-{label}"


def records_of(studio: Any, accepted_only: bool = False) -> Iterator[ExportRecord]:
    """The sequences of a studio, or only those that were accepted whole."""
    workspace = studio.workspace
    for tracked in list(workspace.sequences.values()):
        if accepted_only and tracked.state.status != "done":
            continue
        tokens = json.loads(studio.database.observations(tracked.id))
        with tracked.guard:
            suggester = workspace.suggester(tracked.id)
            predicted: Mapping[str, list[list[Any]]] = {}
            if suggester is not None:
                predicted = suggester.suggest(tracked.id, tracked.state.knowledge).segments
            state = State.replayed(tracked.state.levels, tracked.length, studio.database.events(tracked.id))
        number = workspace.model_store.number if predicted else None
        times, text = studio.database.times(tracked.id), studio.database.text(tracked.id)
        yield ExportRecord(tracked.name, tokens, state, predicted, number, times, studio.rate, text, studio.columns)
