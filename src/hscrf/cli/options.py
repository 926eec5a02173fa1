"""Options that several commands have, and the recipe they describe."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from hscrf.cli.shell import UserError, names_in, pairs_of

if TYPE_CHECKING:
    from hscrf.cli.recipe import Recipe

FILES = """\
files:
  columns   one token a line, a blank line between sequences (CoNLL, CRF++, Wapiti)
  jsonl     one JSON object a line: {"tokens": [...], "labels": {"chunk": [[0, 2, "NP"]], "pos": ["DT", "NN"]}}
  table     CSV with a header, or Parquet: a row per time step, a column that names the sequence, one column a level
  crfsuite  items: label TAB attribute:weight TAB ...
The format follows from the name (.jsonl .csv .tsv .parquet .crfsuite, else columns) or from --format; - is a pipe.
Labels are plain, BIO or BIOES; ? is unknown."""


def add_layout(parser: Parser) -> None:
    group = parser.add_argument_group("what the columns are")
    group.add_argument("--format", choices=("columns", "jsonl", "table", "crfsuite"))
    group.add_argument(
        "--levels",
        metavar="NAMES",
        help="label columns from top to bottom: chunk,pos or chunk=3,pos=2 (counted from 1)",
    )
    group.add_argument("--columns", metavar="NAMES", help="names of all columns of a column file, in their order")
    group.add_argument("--features", metavar="NAMES", help="feature columns of a table (default: all others)")
    group.add_argument(
        "--scheme", help="plain, bio or bioes, or by level: chunk=bio,pos=plain (default: seen by itself)"
    )
    group.add_argument("--separator", help="between columns: tab, comma, any text (default: spaces and tabs)")
    group.add_argument("--comment", metavar="TEXT", help="lines that begin so are comments")
    group.add_argument(
        "--sequence", metavar="NAME", help="column of a table that names the sequence ('none': only one)"
    )
    group.add_argument("--time", metavar="NAME", help="column of a table that orders the steps (default: time)")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def recipe_of(args: argparse.Namespace) -> Recipe:
    """The recipe that the options describe."""
    from hscrf.cli.recipe import Recipe, format_of

    places = places_of(args.levels) if args.levels and "=" in args.levels else None
    form = args.format or format_of(args.data) or "columns"
    levels = tuple(places) if places else names_in(args.levels)
    if not levels and form == "columns":
        levels = ("label",)
    if not levels and form == "table":
        raise UserError("say which columns of the table are labels, from top to bottom: --levels NAME,NAME")
    return Recipe(
        format=form,
        levels=levels,
        places=places,
        names=names_in(args.columns) or None,
        features=names_in(args.features) or None,
        scheme=schemes_of(args.scheme, levels),
        separator={"tab": "\t", "comma": ",", "space": " "}.get(args.separator, args.separator),
        comment=args.comment,
        sequence=None if args.sequence == "none" else args.sequence or "sequence",
        time=args.time,
    )


def places_of(text: str, option: str = "--levels") -> dict[str, int]:
    """Columns, counted from 0, from chunk=3,pos=2."""
    try:
        return {name: place - 1 for name, place in pairs_of(int)(text).items()}
    except argparse.ArgumentTypeError as error:
        raise UserError(f"{option}: {error}; expected something like chunk=3,pos=2") from None


def schemes_of(text: str | None, levels: Sequence[str]) -> dict[str, str]:
    """Schemes by level from bio or chunk=bio,pos=plain."""
    schemes = dict.fromkeys(levels, text) if text and "=" not in text else pairs_of(str)(text) if text else {}
    for level, scheme in schemes.items():
        if level not in levels:
            raise UserError(f"--scheme speaks of level {level!r}, but --levels does not")
        if scheme not in ("plain", "bio", "bioes"):
            raise UserError(f"--scheme is {scheme!r}, expected plain, bio or bioes")
    return schemes


def open_model(path: str, data: str = "-", form: str | None = None) -> tuple[Any, Recipe]:
    """A model and the recipe for a data file; a model made in Python reads features as they are."""
    from hscrf.cli.recipe import Recipe, format_of, load_model

    model, recipe = load_model(path)
    form = form or format_of(data)
    if recipe is None:
        if form not in ("jsonl", "crfsuite"):
            raise UserError(f"{path} was not made by hscrf fit, so it reads only features: jsonl or crfsuite")
        recipe = Recipe(levels=model.topology_.levels[1:])
    return model, replace(recipe, format=form or recipe.format)
