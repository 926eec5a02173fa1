"""hscrf demo: a demonstration on generated data."""

from __future__ import annotations

import argparse

from hscrf.cli.options import Parser

HELP = """\
Show a demonstration on generated data.

A hierarchical, a dynamic and a flat model are trained on days of activities and compared. Then some labels of the test
are given, which improves the prediction of the others. Pictures are drawn of all this. Takes about a minute.

  hscrf demo
  hscrf demo --quick -o pictures"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "-o", "--output", default="hscrf-demo", metavar="FOLDER", help="for the pictures (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of random numbers (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer sequences")


def run(args: argparse.Namespace) -> int:
    from hscrf.cli.demonstration import demonstrate

    return demonstrate(args.output, args.seed, args.quick)
