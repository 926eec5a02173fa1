"""hscrf demo: a demonstration on generated data."""

from __future__ import annotations

import argparse
import os

from hscrf.cli.options import Parser

HELP = """\
Show a demonstration on generated data.

A hierarchical, a dynamic and a flat model are trained on days of activities and compared. Then some labels of the test
are given, which improves the prediction of the others. Pictures are drawn of all this. Takes about a minute.
With --write nothing is trained: small files for training and testing are written, in every format that hscrf reads.

  hscrf demo
  hscrf demo --quick -o pictures
  hscrf demo --write example"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "-o", "--output", default="hscrf-demo", metavar="FOLDER", help="for the pictures (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of random numbers (default: %(default)s)")
    parser.add_argument("--write", metavar="FOLDER", help="write example files there instead")
    parser.add_argument("--quick", action="store_true", help="fewer sequences")


def run(args: argparse.Namespace) -> int:
    if args.write:
        return write_demo(args.write, args.seed)
    from hscrf.cli.demonstration import demonstrate

    return demonstrate(args.output, args.seed, args.quick)


def write_demo(folder: str, seed: int) -> int:
    """Write example files and say what they are."""
    from hscrf.cli.examples import write_examples

    for ending, about in write_examples(folder, seed).items():
        print(f"{os.path.join(folder, 'train.' + ending)}, test.{ending}: {about}")
    return 0
