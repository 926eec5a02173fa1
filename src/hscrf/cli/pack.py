"""hscrf pack: prepare shards of data beyond memory."""

from __future__ import annotations

import argparse

from hscrf.cli.features import add_frame
from hscrf.cli.fit import files_of_fit, large_model, print_packed
from hscrf.cli.options import FILES, Parser, add_layout, recipe_of
from hscrf.cli.shards import add_shards, cluster_of, print_skipped, recipe_in, shards_of
from hscrf.cli.shell import note, whole
from hscrf.errors import several

HELP = f"""\
Pack files into shards; hscrf fit --shards with the same files and options then reuses them.

fit packs missing shards itself. Pack beforehand to use another machine or another time for it.

  hscrf pack 'data/*.jsonl.gz' --shards cache/ --levels chunk,pos -j 8
  hscrf fit  'data/*.jsonl.gz' --shards cache/ --levels chunk,pos -m m.hscrf

{FILES}"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("data", nargs="+", help="files, or patterns such as 'data/*.jsonl'")
    add_layout(parser)
    add_frame(parser)
    parser.add_argument("-j", "--jobs", type=whole(1), default=1, metavar="N", help="processes (default: %(default)s)")
    add_shards(parser, required=True)
    parser.set_defaults(verbose=1)


def run(args: argparse.Namespace) -> int:
    paths = files_of_fit(args)
    shards = shards_of(args, recipe_of(args), paths)
    recipe = recipe_in(shards)
    model = large_model(args, recipe, verbose=1, n_jobs=args.jobs)
    with cluster_of(args.dask) as client:
        print_packed(shards.on_cluster(client).packed_for(model), recipe, paths[0])
    print_skipped(shards)
    note(f"{args.shards}: {several(len(paths), 'file')} packed")
    return 0
