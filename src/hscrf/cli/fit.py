"""hscrf fit."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

from hscrf.cli.options import FILES, Parser, add_layout, recipe_of
from hscrf.cli.shell import UserError, complain, counted, note, pairs_of, source_of, whole

HELP = f"""\
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


def add_arguments(parser: Parser) -> None:
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


def run(args: argparse.Namespace) -> int:
    from hscrf.cli.recipe import learn_labels, save_model

    check_folder(args.model)
    recipe = recipe_of(args)
    documents = list(counted(recipe.read(source_of(args.data)), "reading"))
    recipe = recipe.resolved(documents, args.template)
    dev = list(recipe.read(args.dev)) if args.dev else []
    durations = durations_of(args)
    everyone = args.children == "all"
    topology, labels = learn_labels([*documents, *dev], recipe.scheme, durations, args.max_duration, everyone)
    model = make_model(args, topology, durations, recipe.template)
    steps = sum(map(len, documents))
    note(f"{len(documents)} sequences, {steps} steps, {' > '.join(describe_levels(topology))}")
    if not (everyone or all(y.is_complete for y in labels)):
        note("some labels are missing, so every state may contain every other")
    if args.progress != "none":
        note("making features; the first run on a machine also compiles, for up to a minute")
    known = labels[len(documents) :]
    model.fit(
        [recipe.observe(document) for document in documents],
        labels[: len(documents)],
        development=([list(recipe.observe(document)) for document in dev], known) if dev else None,
        patience=args.patience,
        checkpoint=args.checkpoint,
    )
    return finish(args, model, lambda: save_model(args.model, model, recipe))


def check_folder(path: str) -> None:
    """Complain before training rather than after it."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UserError(f"{path}: there is no folder {folder} to write the model to")
    if not os.access(folder, os.W_OK) or os.path.isdir(path):
        raise UserError(f"{path}: the model cannot be written there")


def finish(args: argparse.Namespace, model: Any, save: Callable[[], None]) -> int:
    """Write the model, unless Ctrl-C came before there was one."""
    interrupted = model.stop_reason_ == "interrupted"
    if interrupted and not model.n_iter_:
        return complain("interrupted before the first iteration: no model written", 130)
    save()
    if interrupted:
        return complain(f"interrupted: {args.model} holds the best of {model.n_iter_} iterations", 130)
    note(f"{args.model}: {model.coef_.size} weights, loss {model.loss_:.2f}, {model.stop_reason_}")
    return 0


def durations_of(args: argparse.Namespace) -> list[Any]:
    from hscrf.features.specifications import Duration

    return [Duration(level, kind) for level, kind in args.durations.items() if kind != "none"]


def make_model(args: argparse.Namespace, topology: Any, durations: Sequence[Any], template: Any) -> Any:
    """An estimator with the options' settings; durations replace those that limits bring by themselves."""
    from hscrf.cli.recipe import with_pairs
    from hscrf.estimator.hscrf import HSCRF
    from hscrf.features.specifications import Duration, default_specifications

    usual = default_specifications(topology)
    kept = [spec for spec in usual if not (isinstance(spec, Duration) and spec.level in args.durations)]
    c2 = args.c2 if args.c2 is not None else 0.0 if args.solver == "perceptron" else 1.0
    return HSCRF(
        topology,
        features=with_pairs([*kept, *durations], template, topology),
        c1=args.c1,
        c2=c2,
        solver=solver_of(args),
        min_count=args.min_count,
        transitions=args.transitions,
        n_jobs=args.jobs,
        random_state=args.seed,
        verbose={"lines": 2, "live": 1, "none": 0}[args.progress],
    )


def solver_of(args: argparse.Namespace) -> Any:
    from hscrf.solvers.lbfgs import LBFGS
    from hscrf.solvers.perceptron import Perceptron
    from hscrf.solvers.sgd import SGD

    if args.max_iter is None:
        return args.solver
    return {
        "lbfgs": lambda: LBFGS(max_iter=args.max_iter),
        "sgd": lambda: SGD(epochs=args.max_iter),
        "perceptron": lambda: Perceptron(epochs=args.max_iter),
    }[args.solver]()


def describe_levels(topology: Any) -> list[str]:
    """Levels below a dummy root with their numbers of states."""
    sizes = zip(topology.levels, topology.n_states, strict=True)
    return [f"{level} ({size})" for level, size in sizes if level != "root" or size > 1]
