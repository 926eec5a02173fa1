"""Detect the format of a data file from its content, and the options that would read it."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from hscrf.errors import DataFileError
from hscrf.io.columns import header_names
from hscrf.io.compressed import COMPRESSED, open_compressed
from hscrf.io.texts import is_surely_text

if TYPE_CHECKING:
    from hscrf.io.documents import Document
    from hscrf.io.recipe import Recipe

SUFFIXES = {  # of file names
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "table",
    ".tsv": "table",
    ".parquet": "table",
    ".crfsuite": "crfsuite",
}
SEPARATORS = {"tab": "\t", "comma": ",", "space": " "}  # by their names in options


def suffix_of(path: Any) -> str:
    """The end of a file's name from its last point on; nothing for a stream or standard input.

    For a compressed file, the suffix of its content.

    >>> suffix_of("day.csv"), suffix_of("train"), suffix_of("-"), suffix_of("day.jsonl.gz")
    ('.csv', '', '', '.jsonl')
    """
    if not isinstance(path, (str, os.PathLike)):
        return ""
    name, ending = os.path.splitext(os.fspath(path))
    return os.path.splitext(name)[1] if ending in COMPRESSED else ending


def format_of(path: str, header: Iterable[str] = ()) -> str | None:
    """The format of a file by the ending of its name; None if the ending is unknown.

    A ``.tsv`` may also hold columns: it is a table if its first line has one of the names in ``header``.

    >>> format_of("day.csv"), format_of("train.txt")
    ('table', None)
    """
    form = SUFFIXES.get(suffix_of(path))
    if suffix_of(path) == ".tsv":
        line = first_line(path)
        if header_names(line) is not None or not set(header) & set(line.split("\t")):
            return "columns"
    return form


def format_for(path: str, recipe: Recipe) -> str:
    """The format of a file for a model: that of training if the ending is the same, else by name and content."""
    if path == "-" or suffix_of(path) == recipe.suffix:
        return recipe.format
    header = [*recipe.levels, *(recipe.features or ()), *filter(None, [recipe.sequence])]
    named = format_of(path, header)
    if named is not None or recipe.format in ("columns", "crfsuite", "text"):
        return named or recipe.format
    line = first_line(path)
    if line.startswith("{"):
        return "jsonl"
    return "table" if set(header) & set(line.split(recipe.delimiter(path))) else "columns"


def first_line(path: str) -> str:
    """The first line of a file; empty if there is none, or it is not text."""
    try:
        with open_compressed(path) as file:
            return str(file.readline().decode("utf-8-sig")).rstrip("\r\n")
    except (OSError, EOFError, UnicodeDecodeError, ImportError):
        return ""


def hinted(documents: Iterator[Document], recipe: Recipe, unlabelled: bool = False) -> Iterator[Document]:
    """The same documents; an error about the columns of a file names the options that would read it.

    Plain text is named only if labels may be missing, because it has none.
    """
    try:
        yield from documents
    except DataFileError as error:
        known = os.path.exists(error.file) and recipe.format != "text"
        options = options_for(error.file, recipe, unlabelled) if known else ""
        if known and not options and unlabelled and is_surely_text(error.file):
            options = "--format text"
        if not options:
            raise
        problem = f"{error.problem}; {options} would read the file"
        raise DataFileError(error.file, error.line, problem, sequence=error.sequence, step=error.step) from None


def options_for(path: Any, recipe: Recipe, unlabelled: bool = True) -> str:
    """Options that read a file that a recipe cannot read; empty if there are none.

    With these options the file must have features and, unless ``unlabelled``, labels.
    """
    forms = _formats(path, first_line(path), recipe)
    signs = [sign for sign in ("\t", ",", ";", "|") if _some_line(path, lambda line, sign=sign: sign in line)]  # type: ignore[misc]
    for form, separator, comment in product(forms, (None, *signs), (None, "#", "# ")):
        other = recipe.as_format(form) if form != recipe.format else recipe
        other = replace(other, separator=separator or other.separator, comment=comment or other.comment)
        if other != recipe and _reads(other, path, unlabelled):
            return _typed(recipe, other)
    return ""


def _formats(path: Any, line: str, recipe: Recipe) -> list[str]:
    """The formats that a file may have."""
    if line.startswith("{"):
        return ["jsonl"]
    if recipe.format == "table":  # columns have blank lines
        return ["table", "columns"] if _some_line(path, lambda line: not line.strip()) else ["table"]
    return ["columns", "table"] if recipe.levels and recipe.places is None else ["columns"]


def _some_line(path: Any, holds: Callable[[str], bool]) -> bool:
    """Whether some line of a file has a property."""
    try:
        with open_compressed(path) as file:
            return any(holds(line.decode("utf-8")) for line in file)
    except (OSError, EOFError, UnicodeDecodeError, ImportError):
        return False


def _reads(recipe: Recipe, path: Any, unlabelled: bool) -> bool:
    """Whether a recipe reads all of a file, and finds features there."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return all(bool(document.tokens[0]) for document in recipe.documents(path, unlabelled=unlabelled))
    except (ValueError, OSError):
        return False


def _typed(recipe: Recipe, other: Recipe) -> str:
    """The options that change one recipe into another, as text for the shell."""
    called = {sign: name for name, sign in SEPARATORS.items()}
    given = (
        ("--format", recipe.format, other.format),
        ("--separator", recipe.separator, other.separator),
        ("--comment", recipe.comment, other.comment),
    )
    return " ".join(
        f"{option} {shlex.quote(called.get(new, new))}" for option, old, new in given if new is not None and new != old
    )
