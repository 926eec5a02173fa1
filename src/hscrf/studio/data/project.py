"""What a studio works on: sequences, levels, the first model, and how new ones are made, kept and read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hscrf.estimator.hscrf import HSCRF
from hscrf.families.loading import load
from hscrf.io.documents import Document
from hscrf.io.recipe import Recipe
from hscrf.io.template_files import default_template
from hscrf.studio.data.database import Database
from hscrf.studio.data.evidence import levels_of
from hscrf.studio.data.knowledge import Level
from hscrf.studio.data.sequences import InputSequence, uniquely_named
from hscrf.studio.data.texts import Texts
from hscrf.topology import Topology


def save_plainly(path: str, model: Any) -> None:
    """Write a model without anything else."""
    model.save(path)


def save_with(recipe: Recipe, path: str, model: Any) -> None:
    """Write a model that may lack levels, together with how its features are made of words."""
    recipe.with_levels(model.topology_.levels[1:]).save_with(model, path)


def with_features(
    items: Sequence[InputSequence], topology: Topology
) -> tuple[list[InputSequence], Callable[[str, Any], None]]:
    """Sequences for a first model, and how it is saved: of plain words, features are made by the default template."""
    if not items or not all(isinstance(step, str) for item in items for step in item.tokens):
        return list(items), save_plainly
    recipe = Recipe("jsonl", topology.levels[1:], features=("token",), template=default_template(("token",)))
    seen = [replace(item, seen=recipe.observe(Document(item.tokens))) for item in items]
    return seen, partial(save_with, recipe)


def plain_texts(
    X: Sequence[Any], names: Sequence[str] | None, topology: Topology, path: str, known: bool
) -> tuple[list[InputSequence], Callable[[str, Any], None], Texts]:
    """Sequences of plain texts for a first model, how it is saved, and the texts; a database keeps how they are cut."""
    if known or not all(isinstance(x, str) for x in X):
        raise ValueError("X has plain texts: expected all of them to be texts, no model and no Y, which are of tokens")
    cuts = []
    if os.path.exists(path):
        with Database(path, reading=True) as database:
            cuts = database.setting("cuts", [])
    named = uniquely_named(
        InputSequence("" if names is None else str(names[n]), [], None, text=x) for n, x in enumerate(X)
    )
    rows = [(item.name, item.text or "") for item in named]
    for name, text in rows:
        if not text.strip():
            raise ValueError(f"the text {name!r} is empty, expected at least one word")
    return cut_texts(rows, topology, str(cuts[-1]["tokens"]) if cuts else "words")


def cut_texts(
    rows: Sequence[tuple[str, str]], topology: Topology, tokens: str
) -> tuple[list[InputSequence], Callable[[str, Any], None], Texts]:
    """Sequences of texts, given with their names, for a first model; how it is saved; and the texts."""
    recipe = Recipe("text", topology.levels[1:], features=("token",), suffix=".txt")
    recipe = replace(recipe, template=default_template(("token",)))
    texts = Texts(rows, recipe.observe, tokens)

    def save(to: str, model: Any) -> None:
        save_with(replace(recipe, tokens=texts.tokens), to, model)

    return texts.items(), save, texts


@dataclass
class Project:
    """What a studio works on.

    ``save`` writes a model file; the shell adds there how files are read. ``kind`` is how sequences are shown, "text"
    or "time"; None asks the data.
    """

    items: Sequence[InputSequence]
    topology: Topology
    model: Any = None
    estimator: Any = None  # what a first model is made from, without one
    kind: str | None = None
    name: str = ""
    train_after: int = 10
    save: Callable[[str, Any], None] = save_plainly
    load: Callable[[str], Any] = load
    demo: bool = False
    column_names: Sequence[str] = field(default=())  # where the data are a table, or rows of cells
    rate: float | None = None  # steps per second, if steps are equally spaced
    media: Mapping[str, str] = field(default_factory=dict)  # name of a sequence -> file with its sound or film
    texts: Texts | None = None  # plain texts, whose tokens can be changed

    @property
    def levels(self) -> list[Level]:
        return levels_of(self.topology)

    def first_estimator(self) -> Any:
        """An estimator that has learned nothing."""
        return HSCRF() if self.estimator is None else self.estimator
