"""hscrf demo."""

from __future__ import annotations

import argparse

from hscrf.cli.options import Parser

HELP = """\
See it work on generated data.

Days of activities are generated; a hierarchical, a dynamic and a flat model are trained on them and compared, 20 % of
known labels change the decoding, and pictures are drawn. Takes about a minute.

  hscrf demo
  hscrf demo --quick -o pictures"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "-o", "--output", default="hscrf-demo", metavar="FOLDER", help="for pictures (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a few sequences only")


def run(args: argparse.Namespace) -> int:
    from hscrf.cli.demonstration import run

    return run(args.output, args.seed, args.quick)
