"""hscrf demo: a demonstration on generated data."""

from __future__ import annotations

import argparse
import os

from hscrf.cli.options import Parser

HELP = """\
Show a demonstration on generated data.

Trains a hierarchical, a dynamic and a flat model on days of activities and compares them. Then fixes some labels of the
test data, which improves the prediction of the others. Draws pictures of the results. Takes about a minute.
--write trains nothing: it writes small files for training and testing in every format that hscrf reads.

  hscrf demo
  hscrf demo --quick -o pictures
  hscrf demo --write example"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "-o", "--output", default="hscrf-demo", metavar="FOLDER", help="folder for the pictures (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: %(default)s)")
    parser.add_argument("--write", metavar="FOLDER", help="write example files there instead")
    parser.add_argument("--quick", action="store_true", help="fewer sequences")


def run(args: argparse.Namespace) -> int:
    if args.write:
        return write_demo(args.write, args.seed)
    from hscrf.cli.demonstration import demonstrate

    return demonstrate(args.output, args.seed, args.quick)


def write_demo(folder: str, seed: int) -> int:
    """Write example files and print a line about each."""
    from hscrf.cli.examples import write_examples

    for ending, about in write_examples(folder, seed).items():
        print(f"{os.path.join(folder, 'train.' + ending)}, test.{ending}: {about}")
    return 0
