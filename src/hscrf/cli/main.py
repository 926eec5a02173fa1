"""The command line: its parser, its errors and its exit codes."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence

from hscrf.cli import demo, fit, pack, plot, predict, score, show, studio
from hscrf.cli.options import Parser
from hscrf.cli.shell import UserError, complain, error_line, typed

ABOUT = """\
Label sequences at several nested levels at once.

  hscrf fit train.txt -m model.hscrf --levels chunk=3,pos=2
  hscrf pack 'data/*.jsonl' --shards cache/ --levels chunk,pos
  hscrf predict test.txt -m model.hscrf -t > out.txt
  hscrf score out.txt -m model.hscrf
  hscrf show model.hscrf
  hscrf plot test.txt -m model.hscrf -o first.png
  hscrf studio new.txt -m model.hscrf --db labels.sqlite
  hscrf demo

Every command has a help page: hscrf fit --help. Results go to standard output, messages to standard error.
Exit codes: 0; 2 after an error, which one line describes; 130 after Ctrl-C; 141 if the output was closed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, as ABOUT lists them."""
    args = build_parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = show_warning
            code: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at exit
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return complain("interrupted", 130)
    except Exception as error:
        if args.traceback or not isinstance(error, (UserError, ValueError, OSError, MemoryError, ImportError)):
            raise
        return complain(error_line(error), 2)
    return code


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    """Print a warning of the library as one line on standard error."""
    complain(typed(" ".join(str(message).split())), 0)


def build_parser() -> Parser:
    """The parser of all commands; each is a module with HELP, add_arguments and run."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="hscrf", description=ABOUT, formatter_class=layout)
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="show the versions in use and exit")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    for command in (fit, pack, predict, score, show, plot, studio, demo):
        about = re.split(r"[.:;(]", command.HELP)[0].strip()
        name = command.__name__.rpartition(".")[2]
        subparser = subparsers.add_parser(name, help=about, description=command.HELP, formatter_class=layout)
        command.add_arguments(subparser)
        subparser.add_argument("--traceback", action="store_true", help="show the traceback of an error")
        subparser.set_defaults(run=command.run)
    return parser


class ShowVersion(argparse.Action):
    """Print the version, and which core and instruction set are in use."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from hscrf import __version__
        from hscrf.native import describe_core

        print(f"hscrf {__version__}\n{describe_core()}")
        parser.exit()
