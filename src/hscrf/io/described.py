"""What was read, in a few words: what each column was taken for, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hscrf.io.documents import Document
from hscrf.io.doubts import columns_of, shown_name
from hscrf.io.lines import is_missing, number_in
from hscrf.io.recipe import Recipe
from hscrf.observations.columns import listed, percent


def describe_features(documents: Sequence[Document], recipe: Recipe) -> str:
    """What the features of a training file were taken for.

    >>> rows = Document([{"a": 0.5, "room": "hall"}, {"a": float("nan"), "room": "bath"}], {"tag": ["D", "N"]},
    ...                 columns=("a", "room", "tag"))
    >>> describe_features([rows], Recipe("table", ("tag",)).resolved([rows], None))
    'a numbers, standardised; room text; 50 % missing in a'
    """
    token = documents[0].tokens[0]
    words = " described by a template" if recipe.template is not None else ""
    if isinstance(token, str):
        return f"tokens text{',' * bool(words)}{words}"
    columns = columns_of(documents, recipe)
    if not columns:
        return "feature dicts" if isinstance(token, Mapping) else "feature strings"
    if recipe.template is not None:
        return f"{listed([shown_name(name, recipe) for name in columns])} text, described by a template"
    numeric = [name for name in columns if name in (recipe.numeric or ())]
    texts = [name for name in columns if name not in numeric]
    commas = " with decimal commas" if recipe.decimal == "," else ""
    told = [f"{listed(numeric)} numbers{commas}, standardised"] if numeric else []
    told += [f"{listed(texts)} text"] if texts else []
    told += [f"{share} of {name} are numbers" for name in texts if (share := numbers_in(columns[name]))]
    return "; ".join([*told, *missing_in({name: columns[name] for name in numeric})])


def numbers_in(cells: Sequence[object]) -> str:
    """The share of cells of a text column that are numbers, if it is large."""
    share = sum(number_in(cell) is not None for cell in cells) / len(cells)
    return f"{100 * share:.0f} %" if share >= 0.5 else ""


def missing_in(columns: Mapping[str, Sequence[object]]) -> list[str]:
    """The shares of missing cells, in groups of equal ones."""
    groups: dict[str, list[str]] = {}
    for name, cells in columns.items():
        count = sum(map(is_missing, cells))
        if count:
            groups.setdefault(percent(count / len(columns[name])), []).append(name)
    return [f"{share} missing in {listed(names)}" for share, names in groups.items()]
