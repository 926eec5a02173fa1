"""Warn of readable but suspicious data: labels among the features, numbers that are read as words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from hscrf.io.cells import THOUSANDS, cell_text, is_empty_cell, number_in
from hscrf.io.documents import Document
from hscrf.io.recipe import Recipe
from hscrf.labels.reading import is_segments
from hscrf.observations.columns import is_decimal_comma

ALMOST = 0.9  # of the cells of a column
DISTINCT = 20  # a column with at least this many different numbers holds measurements, not codes
OFTEN = 20  # a match with the labels is no coincidence if there are at least this many steps per different text
AGAIN = 4  # the same for numbers
PREFIX = re.compile("[BIESLU]-")
TAG = re.compile(r"[BIESLU]-.+|O|\?", re.DOTALL)
SIGNS = {",": "comma", ";": "';'", "|": "'|'", "\t": "tab"}


def doubts(documents: Sequence[Document], recipe: Recipe) -> Iterator[str]:
    """Return a message for each column of a training file that is probably used in the wrong role.

    >>> rows = Document([["the", "B-NP"], ["cat", "I-NP"]], {"tag": ["D", "N"]}, columns=("word", "chunk", "tag"))
    >>> print(*doubts([rows], Recipe(levels=("tag",)).resolved([rows], None)))
    column 'chunk' looks like BIO labels, but is taken for a feature: name it in --levels if it is a label
    """
    if recipe.format == "columns":
        yield from line_doubts(documents, recipe)
    for name, cells in feature_columns(documents, recipe).items():
        shown = "tokens" if name == "token" else f"column {shown_name(name, recipe)!r}"
        line = label_doubt(shown, cells, documents)
        if not line and name not in (recipe.numeric or ()):
            line = number_doubt(shown, cells, recipe)
        if not line and recipe.format == "table" and recipe.time is None and rises(cells, documents):
            line = f"{shown} rises at every step, but is taken for a feature: --time {name} if it is the time"
        if line:
            yield line


def line_doubts(documents: Sequence[Document], recipe: Recipe) -> Iterator[str]:
    """Warnings about lines of a column file that are read as steps or as two columns, but may be something else."""
    first = [document.tokens[0][0] for document in documents if document.tokens[0]]
    if recipe.comment is None and len(first) > 1 and all(cell == "#" for cell in first):
        told = "every sequence begins with a token '#'; if that is a comment: --comment '# '"
        yield str(documents[0].error(told))
    for level in recipe.levels:
        labels = [
            label for labels in label_columns_of(documents, level) for label in labels if label not in ("?", None)
        ]
        for sign, called in SIGNS.items():
            if labels and sum(sign in label for label in labels) >= ALMOST * len(labels):
                yield f"level {level!r} has labels such as {labels[0]!r}: is the separator --separator {called}?"
                break


def whole_line_doubt(documents: Sequence[Document], recipe: Recipe) -> str:
    """A message if lines without labels, each read as one token, are probably text, or columns between blanks.

    >>> line = Document([["the cat sees"]], file="a.txt", lines=[1])
    >>> print(whole_line_doubt([line], Recipe(separator=",")))
    a.txt, line 1: 'the cat sees' was read as one token; --format text reads text, --separator space columns
    """
    if recipe.format != "columns":
        return ""
    tokens = [(document, t) for document in documents for t, token in enumerate(document.tokens) if len(token) == 1]
    odd = [(document, t) for document, t in tokens if not document.labels and " " in document.tokens[t][0].strip()]
    if not odd or 2 * len(odd) < len(tokens):
        return ""
    document, t = odd[0]
    told = f"{document.tokens[t][0]!r} was read as one token; --format text reads text, --separator space columns"
    return str(document.error(told, t))


def shown_name(name: str, recipe: Recipe) -> str:
    """The name of a column in messages; columns of a column file without names are counted from 1, as in options."""
    return str(int(name) + 1) if recipe.format == "columns" and name.isdecimal() else name


def feature_columns(documents: Sequence[Document], recipe: Recipe) -> dict[str, list[Any]]:
    """The cells of each feature column.

    Those of feature dicts are the names that nearly all steps have. Lists of strings have columns if all are equally
    long; plain words are one column, ``token``.
    """
    tokens = [token for document in documents for token in document.tokens]
    if isinstance(tokens[0], str):
        return {"token": tokens}
    if not recipe.cells and isinstance(tokens[0], Mapping):
        count = Counter(name for token in tokens for name in token)
        names = tuple(name for name, steps in count.items() if steps >= ALMOST * len(tokens))
    else:
        names = recipe.cells or tuple(map(str, range(len(tokens[0]))))
        if not recipe.cells and any(len(token) != len(names) for token in tokens):
            return {}
    found: dict[str, list[Any]] = {name: [] for name in names}
    for token in tokens:
        cells = [token.get(name) for name in names] if isinstance(token, Mapping) else token
        for name, cell in zip(names, cells, strict=False):
            found[name].append(cell)
    return found


def label_columns_of(documents: Sequence[Document], level: str) -> list[Sequence[Any]]:
    """The columns of a level; none if it has segments, or some sequence does not have it."""
    columns = [(document.labels or {}).get(level) for document in documents]
    if any(column is None or isinstance(column, str) or is_segments(column) for column in columns):
        return []
    return [column for column in columns if column is not None]


def label_doubt(name: str, cells: Sequence[Any], documents: Sequence[Document]) -> str:
    """Return a message for a feature that looks like labels."""
    advice = "name it in --levels if it is a label"
    values = {cell for cell in cells if isinstance(cell, Hashable) and not is_empty_cell(cell)}
    texts = {value for value in values if isinstance(value, str)}
    if texts and all(TAG.fullmatch(text) for text in texts) and texts - {"O", "?"}:
        return f"{name} looks like BIO labels, but is taken for a feature: {advice}"
    for level in documents[0].labels or {}:
        labels = [label for column in label_columns_of(documents, level) for label in column]
        known = {str(label) for label in labels} - {"?", "None"}
        if len(known) > 1 and {cell_text(value) for value in values} == known:
            return f"{name} has the labels of level {level!r}, but is taken for a feature: {advice}"
        often = len(cells) >= (OFTEN if texts else AGAIN) * len(values)
        if len(known) > 1 and often and determines(cells, labels):
            return f"{name} determines the label of level {level!r} at every step, but is taken for a feature"
    return ""


def determines(cells: Sequence[Any], labels: Sequence[Any]) -> bool:
    """Whether the values of a column and the labels determine each other, as a code of labels does."""
    pairs = {
        (cell if isinstance(cell, Hashable) else None, PREFIX.sub("", str(label)))
        for cell, label in zip(cells, labels, strict=True)
        if label not in ("?", None) and not is_empty_cell(cell)
    }
    return len({cell for cell, _ in pairs}) == len({label for _, label in pairs}) == len(pairs) > 1


def rises(cells: Sequence[Any], documents: Sequence[Document]) -> bool:
    """Whether numbers grow at every step of every sequence, as times do."""
    ends = set(accumulate(len(document.tokens) for document in documents))
    steps = [t for t in range(1, len(cells)) if t not in ends]
    if len(steps) < OFTEN or not all(isinstance(cell, float) for cell in cells):
        return False
    return all(cells[t - 1] < cells[t] for t in steps)


def number_doubt(name: str, cells: Sequence[Any], recipe: Recipe) -> str:
    """Return a message for text that looks like numbers, or like several columns."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell]
    if not texts:
        return ""
    grouped = [text for text in texts if THOUSANDS.fullmatch(text.strip())]
    plain = [text for text in texts if number_in(text) is not None or is_decimal_comma(text)]
    if grouped and len({*grouped, *plain}) > 1 and len([*grouped, *plain]) >= ALMOST * len(texts):
        signed = next((text for text in grouped if not is_decimal_comma(text)), "")
        if signed:
            told = f"{name} holds numbers such as {signed!r}, with signs between thousands, treated as text"
            return f"{told}: write them without these signs"
    commas = [text for text in plain if is_decimal_comma(text)]
    for sign, called in SIGNS.items():
        parts = [re.split(rf"\s*{re.escape(sign)}\s*", text.strip()) for text in texts]
        split = sum(len(part) > 1 and any(number_in(cell) is not None for cell in part) for part in parts)
        if split >= ALMOST * len(texts) and not (sign == "," and len(commas) >= ALMOST * len(texts)):
            return f"{name} has cells such as {texts[0]!r}: is the separator --separator {called}?"
    if len(plain) >= ALMOST * len(texts) and (commas or len(set(plain)) > DISTINCT):
        with_comma = ", with a decimal comma" if commas else ""
        return (
            f"{name} holds numbers such as {plain[0]!r}{with_comma}, taken for words: {_advice(recipe, bool(commas))}"
        )
    return ""


def _advice(recipe: Recipe, commas: bool) -> str:
    """How to turn the text into numbers."""
    if recipe.format == "columns":
        return "a table (--format table, with a header line) has numbers"
    if recipe.format == "jsonl":
        return "JSON has numbers without quotes, with a point"
    if not commas:
        return "--template none has numbers"
    return "other columns have a point: expected one sign" if recipe.numeric else "--decimal , has numbers"
