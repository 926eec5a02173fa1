"""Describe data that were read: the type of each column, and the share of missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hscrf.errors import several
from hscrf.io.cells import is_empty_cell, number_in
from hscrf.io.documents import Document
from hscrf.io.doubts import feature_columns, shown_name
from hscrf.io.recipe import Recipe
from hscrf.observations.columns import percent, shortened_list


def describe_features(documents: Sequence[Document], recipe: Recipe, missing: Sequence[str] | None = None) -> str:
    """Describe the types of the features of a training file.

    ``missing`` are sentences about missing numbers, where the documents are only the first of many.

    >>> rows = Document([{"a": 0.5, "room": "hall"}, {"a": float("nan"), "room": "bath"}], {"tag": ["D", "N"]},
    ...                 columns=("a", "room", "tag"))
    >>> describe_features([rows], Recipe("table", ("tag",)).resolved([rows], None))
    'a (numbers, standardised); room (text); 50 % missing in a'
    """
    token = documents[0].tokens[0]
    if isinstance(token, str):
        return f"tokens (text{', described by a template' * (recipe.template is not None)})"
    columns = feature_columns(documents, recipe)
    if recipe.template is not None:
        return f"{shortened_list([shown_name(name, recipe) for name in columns])} (text, described by a template)"
    if not recipe.cells:
        return describe_dicts(columns, documents) if isinstance(token, Mapping) else "feature strings"
    numeric = [name for name in columns if name in (recipe.numeric or ()) and name not in recipe.dates]
    texts = [name for name in columns if name not in (recipe.numeric or ())]
    commas = " with decimal commas" if recipe.decimal == "," else ""
    told = [f"{shortened_list(numeric)} (numbers{commas}, standardised)"] if numeric else []
    told += [f"{shortened_list(recipe.dates)} (dates, standardised)"] if recipe.dates else []
    told += [f"{shortened_list(texts)} (text)"] if texts else []
    told += [f"{share} of {name} are numbers" for name in texts if (share := numbers_in(columns[name]))]
    known = {name: columns[name] for name in columns if name in (recipe.numeric or ())}
    return "; ".join([*told, *(missing_in(known) if missing is None else missing)])


def describe_dicts(columns: Mapping[str, Sequence[object]], documents: Sequence[Document]) -> str:
    """Describe feature dicts: the names that nearly all steps have, by the type of their values.

    >>> some = [Document([{"a": 0.5, "room": "hall"}, {"a": None, "room": "bath", "first": True}])]
    >>> describe_dicts({"a": [0.5, None], "room": ["hall", "bath"]}, some)
    'feature dicts: a (numbers, as they are); room (text); 1 other name; 50 % missing in a'
    """
    texts = [name for name, cells in columns.items() if any(isinstance(cell, str) for cell in cells)]
    numeric = [name for name in columns if name not in texts]
    others = {name for document in documents for token in document.tokens for name in token} - set(columns)
    told = [f"{shortened_list(numeric)} (numbers, as they are)"] if numeric else []
    told += [f"{shortened_list(texts)} (text)"] if texts else []
    told += [several(len(others), "other name" if columns else "name")] if others else []
    return "feature dicts: " + "; ".join([*told, *missing_in({name: columns[name] for name in numeric})])


def numbers_in(cells: Sequence[object]) -> str:
    """The share of cells of a text column that are numbers, if it is large."""
    share = sum(number_in(cell) is not None for cell in cells) / len(cells)
    return f"{100 * share:.0f} %" if share >= 0.5 else ""


def missing_in(columns: Mapping[str, Sequence[object]]) -> list[str]:
    """The shares of missing cells, in groups of equal ones."""
    groups: dict[str, list[str]] = {}
    for name, cells in columns.items():
        count = sum(map(is_empty_cell, cells))
        if count:
            groups.setdefault(percent(count / len(columns[name])), []).append(name)
    return [f"{share} missing in {shortened_list(names)}" for share, names in groups.items()]
