"""What a model trained from a file knows about files: its recipe, its topology, and the file that holds all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hscrf import io
from hscrf.errors import InfeasibleError
from hscrf.estimator.container import read_container, write_container
from hscrf.estimator.content import Field, naming
from hscrf.estimator.hscrf import HSCRF
from hscrf.families.loading import load
from hscrf.features.specifications import Duration, Specification, Token, Trans
from hscrf.io.documents import Document
from hscrf.io.recipe import Recipe
from hscrf.io.templates import PAIR, Template
from hscrf.labels.induction import LabelStatistics
from hscrf.labels.labels import Labels
from hscrf.labels.renumbering import over
from hscrf.topology import Topology


def learn_labels(
    documents: Sequence[Document],
    scheme: Mapping[str, str],
    durations: Sequence[Duration] = (),
    longest: Mapping[str, int] | None = None,
    any_child: bool = False,
) -> tuple[Topology, list[Labels]]:
    """The topology of the labels of all documents, and the labels over it.

    ``any_child``: every state may contain every other, not only those that it is seen with.
    """
    for document in documents:
        if document.labels is None:
            raise document.error("there are no labels to learn from")
    limited = {duration.level for duration in durations}
    statistics = LabelStatistics(None, scheme, limited)
    loose = statistics.collect([document.labels for document in documents])
    labels = [io.to_labels(document, loose, scheme) for document in documents]
    statistics.note(labels)
    arguments = statistics.topology().to_dict()
    if any_child:
        arguments["children"] = None
    for level, limit in (longest or {}).items():
        arguments["max_duration"][loose.levels[loose.level(level)]] = limit
    topology = Topology.from_dict(arguments)
    return topology, [_over(topology, *pair) for pair in zip(documents, labels, strict=True)]


def _over(topology: Topology, document: Document, labels: Labels) -> Labels:
    """The same labels over a topology with more rules."""
    moved = over([labels], topology)[0]
    try:
        moved.check()
    except InfeasibleError as error:
        raise document.error_of(error) from None
    return moved


def with_pairs(
    specifications: Sequence[Specification], template: Template | None, topology: Topology
) -> list[Specification]:
    """The specifications for a template, which may have features of label pairs.

    Only transitions of the lowest level take these, and tokens leave them out.
    """
    if template is None or not template.pairs:
        return list(specifications)
    apart = [replace(spec, without=PAIR) if isinstance(spec, Token) else spec for spec in specifications]
    return [*apart, Trans(topology.levels[-2], observed=True, only=PAIR)]


def save_model(path: str, model: HSCRF, recipe: Recipe) -> None:
    """Write a model together with its recipe into one file, which ``hscrf.load`` reads too."""
    header, arrays = model._content()
    write_container(path, {**header, "recipe": recipe.to_dict()}, arrays)


def load_model(path: str) -> tuple[Any, Recipe | None]:
    """A model, and its recipe if it was trained from a file."""
    model = load(path)
    entry = read_container(path)[0].get("recipe")
    if entry is None:
        return model, None
    with naming(path, "model"), Field(entry, "recipe").blamed():
        recipe = Recipe.from_dict(entry)
        recipe.check(model.topology_)
    return model, recipe
