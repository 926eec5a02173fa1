"""The command line: its words, its arguments, its frame. The work is in :mod:`hscrf.commands`."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from hscrf import commands
from hscrf._shell import UserError, complain, describe, pairs_of, whole

__all__ = ["main"]

# ------------------------------------------------------------------------------
# Words

ABOUT = """\
Label sequences at several nested levels at once: fit, predict, score, look.

  hscrf fit train.txt -m model.hscrf --levels chunk=3,pos=2
  hscrf predict test.txt -m model.hscrf -t > out.txt
  hscrf score out.txt -m model.hscrf
  hscrf show model.hscrf
  hscrf plot test.txt -m model.hscrf -o first.png
  hscrf demo

Each command explains itself: hscrf fit --help. Results go to standard output, all else to standard error.
Exit codes: 0, 2 if something is wrong (one line says what), 130 after Ctrl-C, 141 if nobody reads the output."""

FILES = """\
files:
  columns   one token a line, a blank line between sequences (CoNLL, CRF++, Wapiti)
  jsonl     one JSON object a line: {"tokens": [...], "labels": {"chunk": [[0, 2, "NP"]], "pos": ["DT", "NN"]}}
  table     CSV with a header, or Parquet: a row per time step, a column that names the sequence, one column a level
  crfsuite  items: label TAB attribute:weight TAB ...
The format follows from the name (.jsonl .csv .tsv .parquet .crfsuite, else columns) or from --format; - is a pipe.
Labels are plain, BIO or BIOES; ? is unknown."""

FIT = f"""\
Train a model from a file of labelled sequences.

Levels are named from top to bottom. In a column file they are the last columns unless you say which, counted from 1;
all other columns are features. Words are described by a template: a window of two, conjunctions, affixes and shapes,
unless you bring your own in TOML or as CRF++ and Wapiti write it: U01:%x[-1,0] for tokens, B01:%x[0,0] for pairs of
labels of the lowest level, * for both. Labels may be missing (?): the model learns from what there is.

  hscrf fit train.txt -m m.hscrf --levels chunk=3,pos=2
  hscrf fit train.txt -m m.hscrf --columns word,pos,chunk --levels chunk,pos --template words.toml
  hscrf fit days.csv  -m m.hscrf --levels activity,action --durations activity=gamma
  hscrf fit old.txt   -m m.hscrf --template template.crfpp --dev dev.txt
  zcat big.jsonl.gz | hscrf fit - --format jsonl -m m.hscrf

A line per iteration goes to standard error. Ctrl-C ends training, writes the best model so far and exits with 130.

{FILES}"""

PREDICT = f"""\
Label a file. What the input labels already stays, ? is filled in around it; nothing needs to be labelled.

The output is the input with one column a level appended (JSON Lines: "prediction"; CRFsuite items: labels only).
With -t the labels are the truth instead: they are not used, and a report goes to standard error.

  hscrf predict new.txt -m m.hscrf > labelled.txt
  hscrf predict half.txt -m m.hscrf -o full.txt           # constrained decoding: half.txt has labels and ?
  hscrf predict test.txt -m m.hscrf -t -o out.txt         # compare with the labels of test.txt
  hscrf predict test.txt -m m.hscrf -t --given pos        # the same, but the pos column is known
  hscrf predict day.jsonl -m m.hscrf --marginals --samples 10 | jq .samples

{FILES}"""

SCORE = f"""\
Compare true and predicted labels: accuracy per step, precision, recall and F1 of segments, boundaries; for each level
and for all at once.

One file has both, as hscrf predict writes it; a model (-m) knows its columns, whatever else was appended to them.
Without a model the last two columns are truth and prediction, as conlleval has it; for two levels the last four.
Two files have the truth and the prediction, in the same columns or in those that hscrf predict appends.

  hscrf score out.txt -m m.hscrf --json scores.json
  hscrf score out.txt --conlleval
  hscrf score test.txt out.txt -m m.hscrf
  hscrf score test.txt other.txt --levels chunk=3,pos=2
  hscrf score out.txt --levels chunk=3 --predicted chunk=4
  hscrf score out.csv --levels activity,action

{FILES}"""

SHOW = """\
Print what a model has learned: states and who contains whom, strongest weights, durations, training.

  hscrf show m.hscrf
  hscrf show m.hscrf --top 20 --level chunk"""

PLOT = """\
Draw a model or a file into a PNG, SVG or PDF (needs matplotlib: pip install 'hscrf[plots]').

  hscrf plot m.hscrf -o topology.svg                              # also --what transitions|durations|training
  hscrf plot days.csv -m m.hscrf -o day.png --sequence 3          # truth above prediction, certainty as shade
  hscrf plot days.csv -m m.hscrf -o c.png --what confusion --level action
  hscrf plot days.csv -m m.hscrf -o e.png --what evidence         # accuracy as labels become known"""

DEMO = """\
See it work on generated data.

Days of activities are generated; a hierarchical, a dynamic and a flat model are trained on them and compared, 20 % of
known labels change the decoding, and pictures are drawn. Takes about a minute.

  hscrf demo
  hscrf demo --quick -o pictures"""


# ------------------------------------------------------------------------------
# The frame: arguments, errors, pipes


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0, 2 after a user's error, 130 after Ctrl-C, 141 if nobody reads the output."""
    args = build_parser().parse_args(arguments)
    try:
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
        return complain(describe(error), 2)
    return code


def build_parser() -> Parser:
    from hscrf import __version__

    layout = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="hscrf", description=ABOUT, formatter_class=layout)
    parser.add_argument("--version", action="version", version=f"hscrf {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    for name, text, add, run in (
        ("fit", FIT, add_fit, commands.fit),
        ("predict", PREDICT, add_predict, commands.predict),
        ("score", SCORE, add_score, commands.score),
        ("show", SHOW, add_show, commands.show),
        ("plot", PLOT, add_plot, commands.plot),
        ("demo", DEMO, add_demo, commands.demo),
    ):
        first = re.split(r"[.:(]", text)[0].strip()
        command = subparsers.add_parser(name, help=first, description=text, formatter_class=layout)
        add(command)
        command.add_argument("--traceback", action="store_true", help="show where an error comes from")
        command.set_defaults(run=run)
    return parser


def add_fit(parser: Parser) -> None:
    parser.add_argument("data", help="the training file, - for standard input")
    parser.add_argument("-m", "--model", required=True, help="where to write the model")
    add_layout(parser)
    parser.add_argument(
        "--template", metavar="FILE", help="a template in TOML or of CRF++; 'none': columns as they are"
    )
    parser.add_argument("--c1", type=float, default=0.0, help="L1 penalty (default: %(default)s)")
    parser.add_argument("--c2", type=float, help="L2 penalty (default: 1, the perceptron has none)")
    parser.add_argument("--solver", choices=("lbfgs", "sgd", "perceptron"), default="lbfgs")
    parser.add_argument("--max-iter", type=whole(1), metavar="N", help="iterations, or epochs over the data")
    parser.add_argument("-j", "--jobs", type=whole(1), default=1, metavar="N", help="threads (default: %(default)s)")
    parser.add_argument("--min-count", type=whole(1), default=1, metavar="N", help="leave out features seen less often")
    parser.add_argument(
        "--durations", type=pairs_of(str), default={}, metavar="LEVEL=KIND", help="gamma, bins, each or none"
    )
    parser.add_argument("--max-duration", type=pairs_of(int), default={}, metavar="LEVEL=STEPS")
    parser.add_argument(
        "--children", choices=("seen", "all"), default="seen", help="which states may contain which (default: as seen)"
    )
    parser.add_argument(
        "--transitions",
        choices=("all", "seen"),
        default="all",
        help="first, neighbouring and last states with a weight: all that may be (default), or only those seen",
    )
    parser.add_argument("--checkpoint", metavar="FILE", help="written as training goes on; resumed from if it exists")
    parser.add_argument("--dev", metavar="FILE", help="stop early by the score on this file")
    parser.add_argument(
        "--patience", type=whole(1), default=10, metavar="N", help="iterations without a better dev score"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--progress", choices=("lines", "live", "none"), default="lines", help="a line per iteration (default), or one"
    )


def add_layout(parser: Parser) -> None:
    group = parser.add_argument_group("what the columns are")
    group.add_argument("--format", choices=("columns", "jsonl", "table", "crfsuite"))
    group.add_argument(
        "--levels",
        metavar="NAMES",
        help="label columns from top to bottom: chunk,pos or chunk=3,pos=2 (counted from 1)",
    )
    group.add_argument("--columns", metavar="NAMES", help="names of all columns of a column file, in their order")
    group.add_argument("--features", metavar="NAMES", help="feature columns of a table (default: all others)")
    group.add_argument(
        "--scheme", help="plain, bio or bioes, or by level: chunk=bio,pos=plain (default: seen by itself)"
    )
    group.add_argument("--separator", help="between columns: tab, comma, any text (default: spaces and tabs)")
    group.add_argument("--comment", metavar="TEXT", help="lines that begin so are comments")
    group.add_argument(
        "--sequence", metavar="NAME", help="column of a table that names the sequence ('none': only one)"
    )
    group.add_argument("--time", metavar="NAME", help="column of a table that orders the steps (default: time)")


def add_predict(parser: Parser) -> None:
    parser.add_argument("data", nargs="?", default="-", help="the file to label, - for standard input (default)")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="default: standard output")
    parser.add_argument("-t", "--evaluate", action="store_true", help="labels of the input are the truth: report")
    parser.add_argument("--given", metavar="LEVELS", help="levels whose labels are kept (default: all, with -t: none)")
    parser.add_argument("--marginals", action="store_true", help="append the probability of each predicted state")
    parser.add_argument("--samples", type=whole(1), metavar="K", help="append K draws from the posterior")
    parser.add_argument("--k-best", type=whole(1), metavar="K", help="append the K best labellings")
    parser.add_argument("--format", choices=("columns", "jsonl", "table", "crfsuite"))
    parser.add_argument("-j", "--jobs", type=whole(1), default=1, metavar="N", help="threads (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of --samples")


def add_score(parser: Parser) -> None:
    parser.add_argument("data", nargs="?", default="-", help="a file with true and predicted labels, or only the true")
    parser.add_argument("other", nargs="?", metavar="predicted", help="a file with the predicted labels")
    parser.add_argument("-m", "--model", help="the model that knows the columns")
    parser.add_argument(
        "--predicted", metavar="LEVEL=COLUMN", help="where predicted labels are: chunk=4,pos=5; in a table chunk=NAME"
    )
    parser.add_argument("--json", metavar="FILE", help="write all numbers as JSON; -: to standard output, alone")
    parser.add_argument(
        "--conlleval", nargs="?", const="", metavar="LEVEL", help="in the words of the CoNLL script, for one level"
    )
    parser.add_argument("--tolerance", type=whole(0), default=0, metavar="STEPS", help="by which a boundary may be off")
    add_layout(parser)


def add_show(parser: Parser) -> None:
    parser.add_argument("model")
    parser.add_argument(
        "--top", type=whole(0), default=10, metavar="N", help="weights of each kind (default: %(default)s)"
    )
    parser.add_argument("--level", help="only this level")


def add_plot(parser: Parser) -> None:
    parser.add_argument("file", help="a model or a data file")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="a name that ends in .png, .svg or .pdf")
    parser.add_argument("-m", "--model", help="the model for a data file")
    pictures = (*commands.MODEL_PLOTS, *commands.DATA_PLOTS)
    parser.add_argument("--what", choices=pictures, help="default: topology, or segments")
    parser.add_argument("--level", help="default: the lowest that fits")
    parser.add_argument("--sequence", type=whole(1), default=1, metavar="N", help="which to draw, counted from 1")
    parser.add_argument("--format", choices=("columns", "jsonl", "table", "crfsuite"))


def add_demo(parser: Parser) -> None:
    parser.add_argument(
        "-o", "--output", default="hscrf-demo", metavar="FOLDER", help="for pictures (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a few sequences only")


if __name__ == "__main__":
    sys.exit(main())
