"""hscrf score: compare true and predicted labels."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from hscrf.cli.options import FILES, Parser, add_layout, column_places, open_model, recipe_of
from hscrf.cli.shards import add_shards, check_shards, cluster_of, expanded_names, open_shards, print_skipped
from hscrf.cli.shell import UserError, pairs_in, reread, source_of, whole
from hscrf.errors import DataFileError
from hscrf.files.replacing import replaced

if TYPE_CHECKING:
    from hscrf.io.recipe import Recipe

HELP = f"""\
Compare true and predicted labels: accuracy per step; precision, recall and F1 of segments; F1 of boundaries. For each
level, and for all levels together.

A level with durations, segments or BIO labels in the model is compared by segments, even if its labels in the file are
a plain column.

One file has the true and the predicted labels, as hscrf predict writes them. A model (-m) knows the names of the
columns; without a model the last two columns are truth and prediction, as in conlleval (the last four for two levels).
Of two files, the first has the truth and the second the prediction, in the same columns or in those that hscrf predict
appends. Confidences, probabilities and other labellings after these are passed over; for --samples of a file without
labels, --predicted names the columns.

  hscrf score out.txt -m m.hscrf --json scores.json
  hscrf score out.txt --conlleval
  hscrf score test.txt out.txt -m m.hscrf
  hscrf score test.txt other.txt --levels chunk=3,pos=2
  hscrf score out.txt --levels chunk=3 --predicted chunk=4
  hscrf score out.csv --levels activity,action
  hscrf score 'test/*.jsonl' -m m.hscrf --shards cache/   # data beyond memory: labels them and compares

{FILES}"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("data", nargs="?", default="-", help="true and predicted labels, or only the true ones")
    parser.add_argument("other", nargs="?", metavar="predicted", help="a file with the predicted labels")
    parser.add_argument("-m", "--model", help="the model with the names of the columns")
    parser.add_argument(
        "--predicted",
        metavar="LEVEL=COLUMN",
        help="columns of the predicted labels: chunk=4,pos=5; in a table chunk=NAME",
    )
    parser.add_argument(
        "--json", metavar="FILE", help="write all numbers as JSON; -: to standard output, without the report"
    )
    parser.add_argument(
        "--conlleval",
        nargs="?",
        const="",
        metavar="LEVEL",
        help="print as the CoNLL script conlleval does, for one level",
    )
    parser.add_argument(
        "--tolerance",
        type=whole(0),
        default=0,
        metavar="STEPS",
        help="how far a predicted boundary may be from a true one (default: %(default)s)",
    )
    add_layout(parser)
    add_shards(parser)


def run(args: argparse.Namespace) -> int:
    args.files = [args.data] if args.other is None else [args.data, args.other]
    check_shards(args)
    return score_shards(args) if args.shards else score_files(args)


def score_shards(args: argparse.Namespace) -> int:
    """Label files that need not fit in memory, and compare."""
    from hscrf.metrics.reports import report_text
    from hscrf.scale.labelling import Labelling

    if not args.model:
        raise UserError("--shards labels the files and compares the labels: give the model with -m")
    if args.conlleval is not None:
        raise UserError("--conlleval is not for --shards: label the files by hscrf predict first")
    model, shards = open_shards(args, expanded_names(args.files), unlabelled=False)
    with cluster_of(args.dask) as client:
        numbers, sequences = Labelling(shards.on_cluster(client), model).report(args.tolerance)
    print_skipped(shards)
    if args.json:
        write_json(args.json, numbers)
    if args.json != "-":
        print(report_text(numbers, sequences))
    return 0


def score_files(args: argparse.Namespace) -> int:
    """Compare the labels of one file or of two."""
    from hscrf import metrics
    from hscrf.cli.comparison import compare
    from hscrf.cli.stray import print_stray_tags
    from hscrf.metrics.reports import report_text

    if args.model and (args.levels or args.columns):
        raise UserError("a model has its own columns: give either -m or --levels and --columns")
    model, recipe = open_model(args, args.data, only_predicts=True) if args.model else (None, recipe_of(args))
    lasting = model is not None and not model.topology_.unit_bottom
    places = None if args.predicted is None else predicted_places(args.predicted, recipe)
    source = reread(args.data) if places is not None and args.other is None else source_of(args.data)
    pair = compare(recipe, source, None if args.other is None else source_of(args.other), places, lasting)
    print_stray_tags(pair.truth, pair.scheme)
    try:
        labels = pair.labels()
    except DataFileError as error:
        if args.model or args.levels:
            raise
        told = f"{error.problem}; the last two columns were compared, --model or --levels names others"
        raise DataFileError(error.file, error.line, told) from None
    numbers = metrics.report(*labels, tolerance=args.tolerance, output_dict=True)
    text = report_text(numbers, len(pair.truth))
    if args.conlleval is not None:
        result = pair.conlleval(args.conlleval)
        numbers["conlleval"] = {**result.to_dict(), "accuracy": result.accuracy, "tokens": result.tokens}
        text = metrics.conlleval_text(result)
    if args.json:
        write_json(args.json, numbers)
    if args.json != "-":
        print(text)
    return 0


def predicted_places(text: str, recipe: Recipe) -> dict[str, Any]:
    """Where predicted labels are, by level."""
    given = text if "=" in text else f"{recipe.levels[0]}={text}"
    return pairs_in(given, option="--predicted") if recipe.format == "table" else column_places(given, "--predicted")


def write_json(path: str, content: Any) -> None:
    """Write JSON to a file, or to standard output for -."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        with replaced(path) as name, open(name, "w", encoding="utf-8") as file:
            file.write(text)
