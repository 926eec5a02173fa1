"""Pair true and predicted labels, from one file or from two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hscrf import metrics
from hscrf.cli.shell import UserError, counted, note
from hscrf.errors import several
from hscrf.io.documents import Document
from hscrf.io.recipe import PREDICTED, Recipe
from hscrf.io.tags import detect_scheme, to_labels
from hscrf.labels.induction import loose_topology
from hscrf.labels.labels import Labels
from hscrf.labels.reading import is_segments


@dataclass(frozen=True)
class Comparison:
    """The same sequences with their true and with their predicted labels."""

    levels: tuple[str, ...]
    scheme: Mapping[str, str]
    truth: list[Document]
    guess: list[Document]
    lasting: bool = False  # segments of the lowest level are compared even if its labels are a plain column

    def labels(self) -> tuple[list[Labels], list[Labels]]:
        """True and predicted labels over the states of both."""
        both = truth_labels([*self.truth, *self.guess], self.scheme, self.lasting)
        return both[: len(self.truth)], both[len(self.truth) :]

    def conlleval(self, level: str) -> metrics.ConllScores:
        """The scores of conlleval for a level, by default the first with B and I tags."""
        marked = [name for name in self.levels if self.scheme.get(name, "plain") != "plain"]
        level = level or (marked or self.levels)[0]
        if level not in self.levels:
            raise UserError(f"--conlleval has {level!r}, but the levels are {', '.join(self.levels)}")
        columns = [[document.labels[level] for document in side] for side in (self.truth, self.guess)]  # type: ignore[index]
        if any(is_segments(column) for side in columns for column in side):
            columns = [[labels.column(level, "bio") for labels in side] for side in self.labels()]
        return metrics.conlleval(*columns)


def truth_labels(documents: Sequence[Document], scheme: Mapping[str, str], lasting: bool = False) -> list[Labels]:
    """Labels over all states of the documents; ``lasting``: segments of the bottom may have several steps."""
    topology = loose_topology([document.labels for document in documents], scheme, lasting)
    return [to_labels(document, topology, scheme) for document in documents]


def compare(
    recipe: Recipe,
    source: Any,
    other: Any = None,
    places: Mapping[str, Any] | None = None,
    lasting: bool = False,
) -> Comparison:
    """Read the truth from a source, and predictions from the same or from another.

    ``places`` gives the column of the predictions of each level: a number from 0, or the name of a table's column.
    Without it, predictions are in the columns that ``hscrf predict`` writes or, in another source, in its label
    columns. With ``lasting``, equal labels in a row are one segment at the lowest level too.
    """
    own = recipe.written() if other is None else recipe
    extra = () if places is not None else recipe.predicted
    loose = places is not None or other is not None or recipe.names is not None or recipe.format == "table"
    truth = list(counted(own.read(source, extra=extra, loose=loose), "reading"))
    levels = recipe.levels or tuple(truth[0].labels or ())
    if places is not None:
        guess = read_elsewhere(recipe, source if other is None else other, places)
    elif other is not None:
        if recipe.format == "columns":  # predicted columns follow those of the truth
            recipe = replace(recipe, names=truth[0].columns, levels=levels, places=None)
            extra = recipe.predicted
        rest = list(counted(recipe.read(other, extra=extra, unlabelled=True, loose=True), "reading"))
        if recipe.format == "columns":
            note_other_labels(truth, rest, levels)
        guess = [predicted(document, levels, document.labels) for document in rest]
    else:
        guess = [predicted(document, levels) for document in truth]
    check_pairs(truth, guess)
    seen = {level: recipe.scheme.get(level) or detect_scheme([*truth, *guess], level) for level in levels}
    return Comparison(levels, seen, truth, guess, lasting)


def read_elsewhere(recipe: Recipe, source: Any, places: Mapping[str, Any]) -> list[Document]:
    """Documents whose labels are in other columns than those of the recipe."""
    if set(places) != set(recipe.levels):
        raise UserError(f"--predicted names {', '.join(places)}, but the levels are {', '.join(recipe.levels)}")
    if recipe.format == "columns":
        return list(replace(recipe, names=None, places=places).read(source))
    if recipe.format != "table":
        raise UserError(f"--predicted is for column files and tables, not for {recipe.format}")
    columns = {level: str(places[level]) for level in recipe.levels}
    scheme = {columns[level]: kind for level, kind in recipe.scheme.items()}
    moved = replace(recipe, levels=tuple(columns.values()), features=None, numeric=None, scheme=scheme)
    documents = moved.read(source)
    return [replace(d, labels={level: (d.labels or {})[name] for level, name in columns.items()}) for d in documents]


def predicted(document: Document, levels: Sequence[str], otherwise: Mapping[str, Any] | None = None) -> Document:
    """The document with its predictions as labels."""
    found = document.extra.get("prediction")
    if not isinstance(found, dict):
        found = {level: document.extra.get(PREDICTED.format(level)) for level in levels}
    if any(found.get(level) is None for level in levels):
        if otherwise is None:
            raise document.error("some level has no predicted labels: hscrf predict writes them")
        found = otherwise
    return replace(document, labels={level: found[level] for level in levels})


def note_other_labels(truth: Sequence[Document], rest: Sequence[Document], levels: Sequence[str]) -> None:
    """Say so if a file has other true labels than the truth: these may be its predictions, and samples the rest."""
    for one, other in zip(truth, rest, strict=False):
        for level in [level for level in levels if PREDICTED.format(level) in other.extra]:
            own, given = ((document.labels or {}).get(level, ()) for document in (one, other))
            for t, (label, copied) in enumerate(zip(own, given, strict=False)):
                if copied not in ("?", label):
                    told = f"level {level!r} has {copied!r}, but {one.file} has {label!r}; the columns after the labels"
                    note(f"hscrf: {other.error(f'{told} were compared: --predicted names others', t)}")
                    return


def check_pairs(truth: Sequence[Document], guess: Sequence[Document]) -> None:
    """Both sides have the same sequences, of the same lengths."""
    for n, (one, other) in enumerate(zip(truth, guess, strict=False), start=1):
        if one.name != other.name:
            raise other.error(f"sequence {n} is {other.name!r}, but {one.file} has {one.name!r} there")
        if len(one) != len(other):
            raise other.error(
                f"sequence {n} has {several(len(other), 'step')}, but {len(one)} from line {one.lines[0]} of {one.file}"
            )
    if len(truth) != len(guess):
        raise UserError(f"{truth[0].file} has {several(len(truth), 'sequence')}, but {guess[0].file} has {len(guess)}")
