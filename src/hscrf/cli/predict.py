"""hscrf predict: label a file."""

from __future__ import annotations

import argparse
from itertools import chain, islice

from hscrf.cli.large import add_shards, check_shards, cluster_of, files_in, open_shards, say_skipped
from hscrf.cli.options import FILES, FORMATS, Parser, add_format, open_model
from hscrf.cli.shell import UserError, counted, note, source_of, target_of, whole

SEEN = 100  # sequences that tell how labels are written

HELP = f"""\
Label a file. Labels that the input has are kept, and the others are predicted around them; it need not have any.

The output is the input with one column per level appended (JSON Lines: "prediction"; CRFsuite items: labels only).
--to jsonl, table, columns or crfsuite writes another format than that of the input. A file (-o) is written whole or not
at all. With -t the labels of the input are not used but compared with the prediction: a report goes to standard error.

  hscrf predict new.txt -m m.hscrf > labelled.txt
  hscrf predict half.txt -m m.hscrf -o full.txt           # constrained decoding: half.txt has labels and ?
  hscrf predict test.txt -m m.hscrf -t -o out.txt         # compare with the labels of test.txt
  hscrf predict test.txt -m m.hscrf -t --given pos        # the same, but the pos column is known
  hscrf predict new.txt -m m.hscrf --to jsonl -o new.jsonl
  hscrf predict 'data/*.txt' -m m.hscrf --shards cache/ -o out/   # data beyond memory: JSON Lines, a file a shard
  hscrf predict day.jsonl -m m.hscrf --marginals --samples 10 | jq .samples

{FILES}"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("data", nargs="*", default=["-"], help="the file to label, - for standard input (default)")
    parser.add_argument("-m", "--model", required=True, help="the model, as hscrf fit writes it")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="where to write (default: standard output)")
    parser.add_argument("-t", "--evaluate", action="store_true", help="compare with the labels of the input")
    parser.add_argument("--given", metavar="LEVELS", help="levels whose labels are kept (default: all, with -t: none)")
    parser.add_argument("--marginals", action="store_true", help="append the probability of each predicted label")
    parser.add_argument("--samples", type=whole(1), metavar="K", help="append K draws from the posterior")
    parser.add_argument("--k-best", type=whole(1), metavar="K", help="append the K best labellings")
    add_format(parser)
    parser.add_argument("--to", choices=FORMATS, metavar="FORMAT", help="of the output (default: that of the input)")
    parser.add_argument("-j", "--jobs", type=whole(1), default=1, metavar="N", help="threads (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers of --samples (default: %(default)s)")
    add_shards(parser)


def run(args: argparse.Namespace) -> int:
    from hscrf.cli.prediction import Prediction, batches
    from hscrf.cli.stray import StrayTags
    from hscrf.cli.writing import Output

    args.files = args.data
    check_shards(args)
    if args.shards:
        return predict_shards(args)
    if len(args.data) > 1:
        raise UserError("expected one file to label; several need --shards FOLDER, and -o for a folder")
    args.data = args.data[0]
    model, recipe = open_model(args, args.data)
    model.n_jobs = args.jobs
    read = recipe.read(source_of(args.data), unlabelled=not args.evaluate)
    first = list(islice(read, SEEN))
    recipe = recipe.settled(first, model.topology_)
    output = Output(recipe, model.topology_, args.to, args.data)
    prediction = Prediction(args, model, recipe, output)
    stray = StrayTags(recipe.scheme)
    documents = stray.watched(chain(first, read))
    results = counted(chain.from_iterable(map(prediction.batch, batches(documents))), "predicting")
    with target_of(args.output) as target:
        output.write(target, results)
    stray.say()
    if args.evaluate:
        note(prediction.report())
    elif prediction.complete:
        note("hscrf: every step of the input has its labels, so nothing was predicted; -t predicts anew and compares")
    return 0


def predict_shards(args: argparse.Namespace) -> int:
    """Label files that need not fit in memory; labels that they have are not used."""
    asked = {"-t": args.evaluate, "--given": args.given, "--marginals": args.marginals, "--to": args.to}
    asked |= {"--samples": args.samples, "--k-best": args.k_best}
    for option, value in asked.items():
        if value:
            raise UserError(f"{option} is not for --shards: hscrf predict reads a single file of any size without it")
    if args.output == "-":
        raise UserError("--shards writes a file for each shard: give a folder by -o")
    paths = files_in(args.files)
    model, shards = open_shards(args, paths, unlabelled=True)
    with cluster_of(args.dask) as client:
        found = model.predict(shards, folder=args.output, client=client)
    say_skipped(shards)
    note(f"{args.output}: {len(found)} files")
    return 0
