"""hscrf studio on plain text: which files are text, and the project that they make."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hscrf.cli.options import open_model, recipe_of
from hscrf.cli.shell import UserError, note
from hscrf.errors import several
from hscrf.io.sniffing import suffix_of
from hscrf.io.texts import ENDINGS, is_surely_text, read_text

if TYPE_CHECKING:
    from hscrf.io.documents import Document
    from hscrf.io.recipe import Recipe
    from hscrf.studio.data.project import Project


def is_text(args: argparse.Namespace) -> bool:
    """Whether the data are plain text: by the option, or because no other format is possible."""
    if args.format is not None or not args.data:
        return args.format == "text"
    if any(os.path.isdir(path) for path in args.data):
        return True
    if any(suffix_of(path) not in ENDINGS for path in args.data):
        return False
    if len(args.data) > 1:
        doubtful = next((path for path in args.data if _has_columns(path)), None)
        if doubtful is not None:
            raise UserError(
                f"{doubtful} may be a column file: --format text reads each file as one document of plain text; "
                "columns are read from one file"
            )
        return True
    asked = args.columns or args.separator or args.comment or args.scheme or (args.levels and "=" in args.levels)
    return not asked and is_surely_text(args.data[0])


def _has_columns(path: str) -> bool:
    """Whether all lines of a file have as many words, and there are several lines."""
    with open(path, "rb") as file:
        widths = [len(line.split()) for line in file if line.strip()]
    return len(widths) > 1 and len(set(widths)) == 1


def print_columns(path: str, recipe: Recipe, documents: Sequence[Document]) -> None:
    """Print that a file without labels, which might be plain text, was read as columns."""
    if recipe.format == "columns" and documents[0].labels is None:
        columns = several(len(documents[0].columns), "column")
        note(
            f"{path}: columns, {several(len(documents), 'sequence')}, one step per line, {columns} without labels; "
            "--format text reads plain text, one document per line"
        )


def name_of(paths: Sequence[str]) -> str:
    """The name of the database of some files: that of the only file, or of their folder."""
    first = os.path.normpath(paths[0])
    if len(paths) == 1:
        return first if os.path.isdir(first) else os.path.splitext(first)[0]
    return os.path.join(os.path.dirname(first), "texts")


def text_project(args: argparse.Namespace, database: str) -> Project:
    """Plain texts, with a model or with initial labels."""
    from hscrf.cli.recipe import save_model
    from hscrf.io.labelfile import read_label_file
    from hscrf.studio.data.project import Project
    from hscrf.studio.data.sequences import numbered
    from hscrf.studio.data.texts import Texts

    if not args.model and not args.labels:
        raise UserError("plain text has no labels: give --labels, a file that names levels and labels, or a model")
    args.format = "text"
    args.tokens = tokens_in(database, args.tokens)
    paths, args.data = args.data, args.data[0]
    model = None
    if args.model:
        model, recipe = open_model(args, args.data)
        topology = model.topology_
    else:
        topology = read_label_file(args.labels).topology
        args.levels = args.levels or ",".join(topology.levels[1:])
        recipe = recipe_of(args)
    documents = read_documents(paths, recipe)
    if model is None:
        recipe = recipe.resolved(documents[:1], args.template)
    names = numbered(document.name for document in documents)
    rows = [(name, document.extra["text"]) for name, document in zip(names, documents, strict=True)]
    texts = Texts(rows, recipe.observe, recipe.tokens)

    def save(path: str, new: Any) -> None:
        save_model(path, new, replace(recipe, tokens=texts.tokens).with_levels(new.topology_.levels[1:]))

    return Project(
        texts.items(),
        topology,
        model=model,
        kind="text",
        name=os.path.basename(database),
        train_after=args.train_after,
        save=save,
        texts=texts,
    )


def read_documents(paths: Sequence[str], recipe: Recipe) -> list[Document]:
    """The documents of some paths; prints what was read."""
    many = len(paths) > 1 or os.path.isdir(paths[0])
    documents = list(read_text(paths if many else paths[0], recipe.tokens, recipe.by))
    by = recipe.by or ("file" if many else "line")
    count, steps = several(len(documents), "document"), sum(map(len, documents))
    note(
        f"{', '.join(paths[:3])}{', ...' * (len(paths) > 3)}: plain text, {count} (one document per {by}), "
        f"{steps} tokens ({recipe.tokens}); the tokens can be changed in Settings; other formats: --format"
    )
    return documents


def tokens_in(database: str, asked: str | None) -> str | None:
    """The way the texts of a database are cut; for a new one the option. None: as in the model, or into words."""
    from hscrf.studio.data.database import Database

    if not os.path.exists(database):
        return asked
    with Database(database, reading=True) as opened:
        cuts = opened.setting("cuts", [])
    now = str(cuts[-1]["tokens"]) if cuts else asked
    if asked not in (None, now):
        raise UserError(
            f"{database} has its texts cut into {now}: change that in Settings of the page, not by --tokens"
        )
    return now
