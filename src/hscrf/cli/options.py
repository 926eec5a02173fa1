"""Options that several commands have, and the recipe that they describe."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from hscrf.cli.shell import UserError, names_in, pairs_in

if TYPE_CHECKING:
    from hscrf.estimator.predictor import Predictor
    from hscrf.io.labelfile import LabelFile
    from hscrf.io.recipe import Recipe
    from hscrf.topology import Topology
    from hscrf.torch.tagger import Tagger

FORMATS = ("columns", "jsonl", "table", "crfsuite", "text")
TOKENS = ("words", "blanks", "characters")  # as in io.texts
EXPORTS = ("segments", "spacy", "brat", "elan", "textgrid", "boris")  # as in io.exports, which the help need not load
ENDINGS = (".segments.csv", ".spacy.jsonl", ".ann", ".eaf", ".eaf.zip", ".textgrid", ".textgrid.zip", ".boris")
FILES = """\
file formats:
  columns   one token per line, a blank line between sequences (CoNLL, CRF++, Wapiti)
  jsonl     one JSON object per line: {"tokens": [...], "labels": {"chunk": [[0, 2, "NP"]], "pos": ["DT", "NN"]}}
  table     CSV with a header, or Parquet: a row per time step, a column for the sequence, a column per level
  crfsuite  items: label TAB attribute:weight TAB ...
  text      plain text without labels, one document per line, or a file (--documents); cut into words (--tokens)
The ending of the file's name decides (.jsonl .csv .tsv .parquet .crfsuite, else columns; .tsv without a header is
columns), or --format; the file name - is standard input. A model stores how its training file was read: files with the
same ending need no options again. Labels are plain, BIO or BIOES; ? is unknown."""


def add_format(parser: Any) -> None:
    """Add the options for the format of a data file to a parser or to one of its groups."""
    parser.add_argument("--format", choices=FORMATS, help="format of the data (default: by the file's name)")
    parser.add_argument(
        "--separator", help="separator of columns: tab, comma, space or any text (default: spaces and tabs)"
    )
    parser.add_argument(
        "--comment",
        metavar="TEXT",
        help="lines that begin with TEXT are comments, unless they have as many columns as other lines; if TEXT ends "
        "in a space, as '# ' does, all lines that begin with it are comments",
    )
    parser.add_argument(
        "--tokens",
        choices=TOKENS,
        help="what a token of plain text is: a word or a sign (default), everything between blanks, or a character",
    )
    parser.add_argument(
        "--documents", choices=("line", "file"), help="what a document of plain text is (default: a line of one file)"
    )


def add_decimal(parser: Any, default: str) -> None:
    """Add the option for the decimal sign of numbers."""
    parser.add_argument(
        "--decimal",
        choices=(".", ","),
        metavar="SIGN",
        help=f"decimal sign of the numbers of a table, a point or a comma (default: {default})",
    )


def add_strict(parser: Any) -> None:
    """Add the option that refuses labels unknown to a model."""
    parser.add_argument(
        "--strict", action="store_true", help="refuse labels unknown to the model (default: read them as ?)"
    )


def add_layout(parser: Parser) -> None:
    """Add the options for the columns of a data file."""
    group = parser.add_argument_group("columns of the data")
    add_format(group)
    group.add_argument(
        "--levels",
        metavar="NAMES",
        help="label columns from top to bottom: chunk,pos or chunk=3,pos=2 (counted from 1)",
    )
    add_labels(
        group, "levels, their labels and rules, in TOML (see hscrf studio --help); --levels may then be left out"
    )
    group.add_argument("--columns", metavar="NAMES", help="names of all columns of a column file, in their order")
    group.add_argument("--features", metavar="NAMES", help="feature columns of a table (default: all others)")
    group.add_argument("--scheme", help="plain, bio or bioes, or by level: chunk=bio,pos=plain (default: detected)")
    group.add_argument(
        "--sequence",
        metavar="NAME",
        help="column of a table that names the sequence (default: sequence; 'none': all rows are one)",
    )
    group.add_argument("--time", metavar="NAME", help="column of a table that orders the steps (default: time)")
    add_decimal(group, "detected")


def add_labels(parser: Any, help: str) -> None:
    """Add the option that names a file of labels."""
    parser.add_argument("--labels", metavar="FILE", help=help)


def label_file_of(args: argparse.Namespace) -> LabelFile | None:
    """The file of labels that --labels names, read once; None without the option."""
    from hscrf.io.labelfile import read_label_file

    if not getattr(args, "labels", None):
        return None
    if not hasattr(args, "label_file"):
        args.label_file = read_label_file(args.labels)
    found: LabelFile = args.label_file
    return found


def given_topology(args: argparse.Namespace) -> Topology | None:
    """The topology of the file of labels; None without one."""
    described = label_file_of(args)
    return None if described is None else described.topology


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def recipe_of(args: argparse.Namespace) -> Recipe:
    """The recipe that the options describe."""
    from hscrf.io.recipe import Recipe
    from hscrf.io.sniffing import format_of, suffix_of

    places = column_places(args.levels, "--levels") if args.levels and "=" in args.levels else None
    levels = tuple(places) if places else names_in(args.levels)
    described = label_file_of(args)
    if described is not None:
        levels = levels or described.levels
        if levels != described.levels:
            raise UserError(
                f"--levels are {', '.join(levels)}, but {args.labels} has {', '.join(described.levels)}, top to bottom"
            )
    header = () if places or args.columns else (*levels, args.sequence or "sequence")
    form = args.format or format_of(args.data, header) or "columns"
    tabbed = form == "columns" and suffix_of(args.data) == ".tsv"
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
        scheme=schemes_from_option(args.scheme, levels),
        separator=separator_of(args.separator) or ("\t" if tabbed else None),
        comment=args.comment,
        sequence=None if args.sequence == "none" else args.sequence or "sequence",
        time=args.time,
        decimal=args.decimal,
        suffix=suffix_of(args.data),
        tokens=args.tokens or "words",
        by=args.documents,
    )


def column_places(text: str, option: str) -> dict[str, int]:
    """Columns, counted from 0, from chunk=3,pos=2, which counts from 1."""
    return {name: place - 1 for name, place in pairs_in(text, int, option).items()}


def schemes_from_option(text: str | None, levels: Sequence[str]) -> dict[str, str]:
    """Schemes by level from bio or chunk=bio,pos=plain."""
    if not text:
        return {}
    schemes = pairs_in(text, option="--scheme") if "=" in text else dict.fromkeys(levels, text)
    for level, scheme in schemes.items():
        if level not in levels:
            raise UserError(f"--scheme names the level {level!r}, which --levels does not")
        if scheme not in ("plain", "bio", "bioes"):
            raise UserError(f"--scheme is {scheme!r}, expected plain, bio or bioes")
    return schemes


def open_model(
    args: argparse.Namespace, data: str = "-", only_predicts: bool = False
) -> tuple[Predictor | Tagger, Recipe]:
    """A model and the recipe for a data file, as the options change it; models made in Python take given features."""
    from hscrf.cli.recipe import load_model
    from hscrf.io.recipe import Recipe
    from hscrf.io.sniffing import first_line, format_for, format_of

    path = args.model
    model, recipe = load_model(path, only_predicts)
    if type(model).__name__ == "DynamicCRF":  # by name: importing the class would import scikit-learn
        raise UserError(f"{path} holds a DynamicCRF, whose levels do not nest: read the data and predict in Python")
    keep_rules(args, model)
    if recipe is None:
        form = args.format or format_of(data)
        if form not in ("jsonl", "crfsuite"):
            raise UserError(
                f"{path} was not made by hscrf fit and has no columns: give it features, as jsonl or crfsuite"
            )
        return model, Recipe(form, levels=model.topology_.levels[1:])
    known = recipe.as_format(args.format or format_for(data, recipe))
    unnamed = recipe.format == "columns" and any(name.isdecimal() for name in known.cells)
    if known.format == "table" and unnamed and not {*known.cells} & {*first_line(data).split(known.delimiter(data))}:
        raise UserError(f"{data} is a table, but {path} was trained on columns without names: fit with --columns NAMES")
    separator = separator_of(args.separator) or known.separator
    if known.format == "columns" != recipe.format and separator is None:  # cells may have spaces
        separator = "\t" if "\t" in first_line(data) else None
    return model, replace(
        known,
        separator=separator,
        comment=args.comment or known.comment,
        decimal=getattr(args, "decimal", None) or known.decimal,
        tokens=args.tokens or known.tokens,
        by=args.documents or known.by,
    )


def keep_rules(args: argparse.Namespace, model: Predictor | Tagger) -> None:
    """Add the rules of the file of labels, if given, to those of a model."""
    from hscrf.io.labelfile import narrowed

    described = label_file_of(args)
    if described is not None:
        try:
            model.topology_ = narrowed(model.topology_, described.topology)
        except ValueError as error:
            raise UserError(f"{args.labels}: {error}") from None


def separator_of(text: str | None) -> str | None:
    """The separator with the given name."""
    from hscrf.io.sniffing import SEPARATORS

    return None if text is None else SEPARATORS.get(text, text)
