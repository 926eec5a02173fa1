"""The file data of a model that was trained from a file: its recipe, its topology, and the model file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hscrf import io
from hscrf.errors import InfeasibleError
from hscrf.estimator.predictor import Predictor
from hscrf.estimator.trained import predictor_of
from hscrf.features.specifications import Duration, Specification, Start, Stop, Token, Trans
from hscrf.files.container import read_container
from hscrf.files.content import Field, naming
from hscrf.files.model import check_kind
from hscrf.io.documents import Document
from hscrf.io.recipe import Recipe
from hscrf.io.templates import PAIR, Template
from hscrf.labels.induction import LabelStatistics
from hscrf.labels.labels import Labels
from hscrf.labels.reading import over
from hscrf.topology import Topology

if TYPE_CHECKING:
    from hscrf.estimator.hscrf import HSCRF
    from hscrf.torch.tagger import Tagger

OF_STEPS = (Token, Start, Stop)


def learn_labels(
    documents: Sequence[Document],
    scheme: Mapping[str, str],
    durations: Sequence[Duration] = (),
    longest: Mapping[str, int] | None = None,
    children: str = "auto",
    given: Topology | None = None,
    may_open: bool = False,
) -> tuple[Topology, list[Labels], dict[str, list[str]]]:
    """The topology of the labels of all documents, the labels over it, and the states that may have any child.

    The last are, by level, the parents with too few known children; ``children`` is the rule of
    :class:`LabelStatistics`. A topology that is ``given`` is kept, with the longest durations added. ``may_open``
    opens the durations of levels with long segments, unless longest durations are given.
    """
    for document in documents:
        if document.labels is None:
            raise document.error("there are no labels to learn from")
    if given is not None:
        topology = given.limited(longest) if longest else given
        return topology, [io.to_labels(document, topology, scheme) for document in documents], {}
    limited = {duration.level for duration in durations}
    opened = limited if may_open and not longest else ()
    statistics = LabelStatistics(None, scheme, limited, children=children, opened=opened)
    loose = statistics.collect([document.labels for document in documents])
    labels = [io.to_labels(document, loose, scheme) for document in documents]
    statistics.note(labels)
    arguments = statistics.topology().to_dict()
    for level, limit in (longest or {}).items():
        arguments["max_duration"][loose.levels[loose.level(level)]] = limit
    topology = Topology.from_dict(arguments)
    moved = [_over(topology, *pair) for pair in zip(documents, labels, strict=True)]
    return topology, moved, statistics.open_parents()


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

    Transitions of the lowest level take the features of pairs; blocks of steps leave them out.
    """
    if template is None or not template.pairs:
        return list(specifications)
    without_pairs = [replace(spec, without=PAIR) if isinstance(spec, OF_STEPS) else spec for spec in specifications]
    return [*without_pairs, Trans(topology.levels[-2], observed=True, only=PAIR)]


def save_model(path: str, model: HSCRF, recipe: Recipe) -> None:
    """Write a model together with its recipe into one file, which ``hscrf.load`` reads too."""
    recipe.save_with(model, path)


def load_model(path: str, only_predicts: bool = False) -> tuple[Predictor | Tagger, Recipe | None]:
    """A model, and its recipe if it was trained from a file.

    With ``only_predicts`` it is a plain predictor if possible, which is much faster to import.
    """
    from hscrf.cli.neural import is_tagger, load_tagger

    if is_tagger(path):
        tagger, known = load_tagger(path)
        tagger.topology_ = named_by_text(tagger.topology_)
        return tagger, known
    header, arrays = read_container(path)
    check_kind(path, header)
    model = predictor_of(path, header, arrays) if only_predicts else None
    if model is None:
        from hscrf.families.loading import model_of

        model = model_of(path, header, arrays, {})
    model.topology_ = named_by_text(model.topology_)
    entry = header.get("recipe")
    if entry is None:
        return model, None
    with naming(path, "model"), Field(entry, "recipe").blamed():
        recipe = Recipe.from_dict(entry)
        recipe.check(model.topology_)
    return model, recipe


def named_by_text(topology: Topology) -> Topology:
    """The topology with text as the names of its states, as files have it; unchanged if two names would be the same.

    >>> named_by_text(Topology({"state": [0, 1]})).states
    (('root',), ('0', '1'))
    """
    names = tuple(tuple(map(str, states)) for states in topology.states)
    distinct = all(len(set(own)) == len(own) for own in names)
    return topology.with_fields(states=names) if distinct and names != topology.states else topology
