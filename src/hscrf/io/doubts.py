"""What looks wrong in data that can be read: labels among the features, numbers that are taken for words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hscrf.io.documents import Document
from hscrf.io.lines import cell_text, number_in
from hscrf.io.recipe import Recipe
from hscrf.labels.reading import is_segments
from hscrf.observations.columns import is_decimal_comma

ALMOST = 0.9  # of the cells of a column
DISTINCT = 20  # numbers in a column that make it one of measurements, not of codes
TAG = re.compile(r"[BIESLU]-.+|O|\?", re.DOTALL)
SIGNS = {",": "comma", ";": "';'", "|": "'|'", "\t": "tab"}


def doubts(documents: Sequence[Document], recipe: Recipe) -> Iterator[str]:
    """A sentence for each column of a training file that looks like something else than it is taken for.

    >>> rows = Document([["the", "B-NP"], ["cat", "I-NP"]], {"tag": ["D", "N"]}, columns=("word", "chunk", "tag"))
    >>> print(*doubts([rows], Recipe(levels=("tag",)).resolved([rows], None)))
    column 'chunk' looks like BIO labels, but is taken for a feature: name it in --levels if it is a label
    """
    for name, cells in columns_of(documents, recipe).items():
        shown = shown_name(name, recipe)
        line = label_doubt(shown, cells, documents)
        if not line and name not in (recipe.numeric or ()):
            line = number_doubt(shown, cells, recipe)
        if line:
            yield line


def shown_name(name: str, recipe: Recipe) -> str:
    """What a column is called in messages: those of a column file without names are counted from 1, as in options."""
    return str(int(name) + 1) if recipe.format == "columns" and name.isdecimal() else name


def columns_of(documents: Sequence[Document], recipe: Recipe) -> dict[str, list[Any]]:
    """The cells of each feature column; none where tokens have no columns."""
    names = recipe.cells
    if not names or isinstance(documents[0].tokens[0], str):
        return {}
    found: dict[str, list[Any]] = {name: [] for name in names}
    for document in documents:
        for token in document.tokens:
            cells = [token.get(name) for name in names] if isinstance(token, Mapping) else token
            for name, cell in zip(names, cells, strict=False):
                found[name].append(cell)
    return found


def label_doubt(name: str, cells: Sequence[Any], documents: Sequence[Document]) -> str:
    """A sentence for a feature that looks like labels."""
    advice = "name it in --levels if it is a label"
    values = {cell for cell in cells if cell is not None and cell == cell and cell != ""}
    texts = {value for value in values if isinstance(value, str)}
    if texts and all(TAG.fullmatch(text) for text in texts) and texts - {"O", "?"}:
        return f"column {name!r} looks like BIO labels, but is taken for a feature: {advice}"
    for level in documents[0].labels or {}:
        columns = [(document.labels or {}).get(level) for document in documents]
        if any(column is None or isinstance(column, str) or is_segments(column) for column in columns):
            continue
        labels = [label for column in columns if column is not None for label in column]
        known = {str(label) for label in labels} - {"?", "None"}
        if len(known) > 1 and {cell_text(value) for value in values} == known:
            return f"column {name!r} has the labels of level {level!r}, but is taken for a feature: {advice}"
        if len(known) > 1 and not texts and tells(cells, labels):
            return f"column {name!r} tells the label of level {level!r} at every step, but is taken for a feature"
    return ""


def tells(cells: Sequence[Any], labels: Sequence[Any]) -> bool:
    """Whether each label has a value of its own in a column of numbers, as codes of labels have."""
    pairs = {(cell, label) for cell, label in zip(cells, labels, strict=True) if label not in ("?", None)}
    return len({cell for cell, _ in pairs}) == len({label for _, label in pairs}) == len(pairs)


def number_doubt(name: str, cells: Sequence[Any], recipe: Recipe) -> str:
    """A sentence for text that looks like numbers, or like several columns."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell]
    if not texts:
        return ""
    for sign, called in SIGNS.items():
        parts = [re.split(rf"\s*{re.escape(sign)}\s*", text.strip()) for text in texts]
        split = sum(len(part) > 1 and any(number_in(cell) is not None for cell in part) for part in parts)
        commas = sum(map(is_decimal_comma, texts))
        if split >= ALMOST * len(texts) and not (sign == "," and commas >= ALMOST * len(texts)):
            return f"column {name!r} has cells such as {texts[0]!r}: is the separator --separator {called}?"
    numbers = [text for text in texts if number_in(text) is not None or is_decimal_comma(text)]
    if len(numbers) >= ALMOST * len(texts) and len(set(numbers)) > DISTINCT:
        commas_told = ", with a decimal comma" if any(map(is_decimal_comma, numbers)) else ""
        form = "a table (--format table, with a header line)" if recipe.format == "columns" else "--template none"
        return f"column {name!r} holds numbers such as {numbers[0]!r}{commas_told}, taken for words: {form} has numbers"
    return ""
