"""Documents of a file as the sequences of a studio."""

from __future__ import annotations

from hscrf import io
from hscrf.cli.stray import UnknownLabels
from hscrf.io.axis import seconds_in
from hscrf.io.documents import Document
from hscrf.io.recipe import Recipe
from hscrf.io.texts import located
from hscrf.studio.data.sequences import InputSequence, uniquely_named
from hscrf.topology import Topology


def items_from(
    documents: list[Document], recipe: Recipe, topology: Topology, strict: bool = False
) -> list[InputSequence]:
    """Sequences with their observations and labels; ``strict`` refuses labels unknown to the model."""
    found, unknown = [], UnknownLabels(topology, recipe.scheme, strict)
    for document in documents:
        known = unknown.cleared(document)
        labels = io.to_labels(known, topology, recipe.scheme) if known.labels else None
        tokens = [dict(token) if isinstance(token, dict) else token for token in document.tokens]
        column = document.extra.get(recipe.time or "time")
        times = seconds_in(column) if column is not None and len(column) == len(tokens) else None
        text, offsets = located(tokens, document.extra) or (None, None)
        found.append(InputSequence(document.name, tokens, recipe.observe(document), labels, times, text, offsets))
    unknown.print_summary()
    return uniquely_named(found)
