"""hscrf predict: label a file."""

from __future__ import annotations

import argparse
from itertools import chain, islice

from hscrf.cli.options import (
    ENDINGS,
    EXPORTS,
    FILES,
    FORMATS,
    Parser,
    add_decimal,
    add_format,
    add_labels,
    add_strict,
    open_model,
)
from hscrf.cli.shards import SEEN, add_shards, check_shards, cluster_of, expanded_names, open_shards, print_skipped
from hscrf.cli.shell import UserError, counted, note, number_above, source_of, target_of, whole

HELP = f"""\
Label a file. Labels in the input are kept, and the others are predicted consistently with them.

The output is the input with one column per level appended (JSON Lines: "prediction"; CRFsuite items: labels only).
More columns follow in this order, whatever the order of the options: --marginals, --samples, --k-best, with --scores
the log probabilities of these, then the confidences of --scores; each has a column per level, in the order of the
label columns. In column files several blank lines become one, and lines end in LF.
--to jsonl, table, columns or crfsuite, or the ending of -o (.jsonl .csv .parquet), writes another format. A file (-o)
is written whole or not at all. With -t the labels of the input are not used, but compared with the prediction in a
report on standard error.

  hscrf predict new.txt -m m.hscrf > labelled.txt
  hscrf predict half.txt -m m.hscrf -o full.txt           # constrained decoding: half.txt has labels and ?
  hscrf predict test.txt -m m.hscrf -t -o out.txt         # compare with the labels of test.txt
  hscrf predict test.txt -m m.hscrf -t --given pos        # the same, but the pos column is known
  hscrf predict new.txt -m m.hscrf --to jsonl -o new.jsonl
  hscrf predict notes.txt -m m.hscrf --format text -o out.ann   # plain text, one document per line; for brat
  hscrf predict 'data/*.txt' -m m.hscrf --shards cache/ -o out/   # data beyond memory: JSON Lines, one file per shard
  hscrf predict day.jsonl -m m.hscrf --marginals --samples 10 | jq .samples
  hscrf predict day.csv -m m.hscrf -o day.TextGrid --rate 50      # for Praat, 50 steps per second; .eaf for ELAN
  sensor | hscrf predict --stream --lag 20 -m m.hscrf             # each line is labelled 20 lines later

Programs that take segments: --to segments (CSV: start, stop, level, label, confidence), spacy (JSON Lines for
spacy.tokens.Doc.from_json), brat (.ann and .txt), elan (.eaf), textgrid (Praat), boris. The ending of -o also says it:
%s.
ELAN and TextGrid hold one sequence per file: give a folder or a .zip for several.

{FILES}""".replace("%s", " ".join(ENDINGS))


def add_arguments(parser: Parser) -> None:
    parser.add_argument("data", nargs="*", default=["-"], help="the file to label, - for standard input (default)")
    parser.add_argument("-m", "--model", required=True, help="the model, as hscrf fit writes it")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="where to write (default: standard output)")
    parser.add_argument("-t", "--evaluate", action="store_true", help="compare with the labels of the input")
    parser.add_argument("--given", metavar="LEVELS", help="levels whose labels are kept (default: all, with -t: none)")
    parser.add_argument("--marginals", action="store_true", help="append the probability of each predicted label")
    parser.add_argument("--samples", type=whole(1), metavar="K", help="append K draws from the posterior")
    parser.add_argument("--k-best", type=whole(1), metavar="K", help="append the K best labellings")
    parser.add_argument(
        "--scores",
        action="store_true",
        help="append the confidence of each predicted segment, and with --k-best the log probability of each labelling",
    )
    parser.add_argument(
        "--loss",
        choices=("sequence", "step", "segment"),
        default="sequence",
        help="predict the most probable labelling (default), or the one with the most expected right steps or segments",
    )
    add_strict(parser)
    add_format(parser)
    add_decimal(parser, "that of training")
    add_labels(parser, "more rules for predictions in TOML, as hscrf show --labels prints them")
    parser.add_argument(
        "--to",
        choices=(*(form for form in FORMATS if form != "text"), *EXPORTS),
        metavar="FORMAT",
        help="format of the output (default: that of the input; for plain text, JSON Lines)",
    )
    parser.add_argument(
        "--rate",
        type=number_above(0),
        metavar="HZ",
        help="steps per second, for times in segments, elan, textgrid, boris",
    )
    parser.add_argument("--stream", action="store_true", help="label standard input line by line, as lines arrive")
    parser.add_argument(
        "--lag",
        type=whole(0),
        metavar="STEPS",
        help="with --stream: by how many steps labels are delayed (default: 20)",
    )
    parser.add_argument("-j", "--jobs", type=whole(1), default=1, metavar="N", help="threads (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of --samples (default: %(default)s)")
    add_shards(parser)


def run(args: argparse.Namespace) -> int:
    from hscrf.cli.streaming import run_stream

    if args.lag is not None and not args.stream:
        raise UserError("--lag is for --stream: labels are delayed by this number of steps")
    args.lag = 20 if args.lag is None else args.lag
    if args.stream:
        return run_stream(args)
    args.files = args.data
    check_shards(args)
    if args.shards:
        return predict_shards(args)
    if len(args.data) > 1:
        raise UserError("expected one file to label; several need --shards FOLDER, and -o for a folder")
    args.data = args.data[0]
    return predict_file(args)


def predict_file(args: argparse.Namespace) -> int:
    """Label a file, or standard input, whose documents are read batch by batch."""
    from hscrf.cli.exporting import export_of
    from hscrf.cli.prediction import Prediction, document_batches
    from hscrf.cli.stray import StrayTags
    from hscrf.cli.writing import Output
    from hscrf.io.doubts import whole_line_doubt

    model, recipe = open_model(args, args.data, only_predicts=True)
    model.n_jobs = args.jobs
    read = recipe.read(source_of(args.data), unlabelled=not args.evaluate)
    first = list(islice(read, SEEN))
    recipe = recipe.settled(first, model.topology_)
    exported = export_of(args)
    to = "jsonl" if exported else args.to or named_format(args.output, args.data, recipe.format)
    output = Output(recipe, model.topology_, to, args.data)
    prediction = Prediction(args, model, recipe, output)
    stray = StrayTags(recipe.scheme)
    documents = stray.watched(chain(first, read))
    results = counted(chain.from_iterable(map(prediction.batch, document_batches(documents))), "predicting")
    if exported:
        exported.write(results)
    else:
        with target_of(args.output) as target:
            output.write(target, results)
    stray.print_summary()
    prediction.unknown.print_summary()
    if doubt := whole_line_doubt(first, recipe):
        note(f"hscrf: {doubt}")
    if args.evaluate:
        note(prediction.report())
    elif prediction.complete:
        note(
            "hscrf: every step of the input has labels, so nothing was predicted; "
            "-t predicts all and compares; ? marks a label to predict"
        )
    return 0


def named_format(output: str, source: str, form: str) -> str | None:
    """The format named by the ending of the output; None if it is that of the input.

    >>> named_format("o.jsonl", "x.csv", "table"), named_format("o.csv", "x.csv", "table")
    ('jsonl', None)
    """
    from hscrf.io.sniffing import SUFFIXES, suffix_of

    ending = suffix_of(output)
    tabs = ending == ".tsv" and form in ("columns", "table")  # both may be separated by tabs
    named = SUFFIXES.get(ending)
    return None if tabs or named == form or ending == suffix_of(source) else named


def predict_shards(args: argparse.Namespace) -> int:
    """Label files that need not fit in memory; labels that they have are not used."""
    asked = {"-t": args.evaluate, "--given": args.given, "--marginals": args.marginals, "--to": args.to}
    asked |= {"--samples": args.samples, "--k-best": args.k_best, "--scores": args.scores, "--rate": args.rate}
    asked |= {"--loss": args.loss != "sequence", "--strict": args.strict}
    for option, value in asked.items():
        if value:
            raise UserError(f"{option} is not for --shards: hscrf predict reads a single file of any size without it")
    if args.output == "-":
        raise UserError("--shards writes a file for each shard: give a folder by -o")
    paths = expanded_names(args.files)
    model, shards = open_shards(args, paths, unlabelled=True)
    with cluster_of(args.dask) as client:
        found = model.predict(shards, folder=args.output, client=client)
    print_skipped(shards)
    note(f"{args.output}: {len(found)} files")
    return 0
