"""hscrf fit: train a model from a file."""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from hscrf.cli.features import add_feature_options, add_frame, check_feature_options, durations_of, wanted_features
from hscrf.cli.options import FILES, Parser, add_layout, given_topology, label_file_of, recipe_of
from hscrf.cli.shards import (
    SEEN,
    add_shards,
    check_shards,
    cluster_of,
    expanded_names,
    print_skipped,
    recipe_in,
    shards_of,
)
from hscrf.cli.shell import UserError, amount, counted, note, save_trained, source_of, typed, whole
from hscrf.errors import ObservationError, several

if TYPE_CHECKING:
    from hscrf.estimator.contract import Packed
    from hscrf.estimator.hscrf import HSCRF
    from hscrf.features.specifications import Specification
    from hscrf.io.documents import Document
    from hscrf.io.recipe import Recipe
    from hscrf.solvers.course import Solver
    from hscrf.topology import Topology

HELP = f"""\
Train a model from a file of labelled sequences.

Name the levels from top to bottom. In a column file they are the last columns, unless you give their numbers, counted
from 1; all other columns are features. Words are described by a template: the words around, conjunctions, affixes and
shapes. You can give your own template in TOML or in the notation of CRF++ and Wapiti: U01:%x[-1,0] for tokens,
B01:%x[0,0] for pairs of neighbouring labels of the lowest level, * for both. Labels may be missing (?): the model
learns from those that are there.

  hscrf fit train.txt -m m.hscrf --levels chunk=3,pos=2
  hscrf fit train.txt -m m.hscrf --columns word,pos,chunk --levels chunk,pos --template words.toml
  hscrf fit days.csv  -m m.hscrf --levels activity,action --durations activity=gamma
  hscrf fit train.txt -m m.safetensors --levels chunk,pos --encoder bilstm --dev dev.txt   # needs hscrf[torch]
  hscrf fit old.txt   -m m.hscrf --template template.crfpp --dev dev.txt
  hscrf fit 'data/*.jsonl.gz' -m m.hscrf --shards cache/   # data beyond memory; --dask ADDRESS for a cluster

Progress goes to standard error. Ctrl-C ends training, writes the best model so far and exits with code 130.

{FILES}"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("data", nargs="+", help="training files, or patterns such as 'data/*.txt'; - is standard input")
    parser.add_argument("-m", "--model", required=True, help="where to write the model")
    add_layout(parser)
    add_frame(parser)
    add_feature_options(parser)
    parser.add_argument("--c1", type=amount, default=0.0, metavar="X", help="L1 penalty (default: %(default)s)")
    parser.add_argument(
        "--c2",
        type=penalty,
        metavar="X",
        help="L2 penalty; auto: chosen on held-out folds (default: 0.1; the perceptron has none)",
    )
    parser.add_argument(
        "--solver", choices=("lbfgs", "sgd", "perceptron"), default="lbfgs", help="the optimiser (default: %(default)s)"
    )
    parser.add_argument(
        "--max-iter", type=whole(1), metavar="N", help="iterations of lbfgs, epochs of sgd and perceptron"
    )
    parser.add_argument(
        "-j",
        "--jobs",
        type=whole(1),
        default=1,
        metavar="N",
        help="threads, and processes that pack shards (default: %(default)s)",
    )
    parser.add_argument(
        "--transitions",
        choices=("all", "seen"),
        default="all",
        help="which transitions have a weight: all legal ones (default), or only those in the training data",
    )
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="file that training is saved to regularly, and resumed from if it exists"
    )
    parser.add_argument(
        "--dev", metavar="FILE", help="development data: stop when the accuracy on it no longer improves"
    )
    parser.add_argument(
        "--patience",
        type=whole(1),
        default=10,
        metavar="N",
        help="with --dev: iterations without improvement before stopping (default: %(default)s)",
    )
    parser.add_argument(
        "--encoder",
        choices=("bilstm", "tcn"),
        help="train a neural tagger (hscrf[torch]): a BiLSTM for words, a convolution and a BiLSTM for numbers",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: %(default)s)")
    parser.add_argument(
        "--progress",
        choices=("lines", "live", "none"),
        default="live",
        help="live: one line that is updated, in a log a few lines (default); lines: one per iteration; none: nothing",
    )
    add_shards(parser)


def files_of_fit(args: argparse.Namespace) -> list[str]:
    """The training files; sets ``data`` to the first of them."""
    args.files = args.data
    check_shards(args)
    paths = (
        expanded_names(args.data)
        if args.shards or len(args.data) > 1 or not os.path.exists(args.data[0])
        else args.data
    )
    args.data = paths[0]
    described = label_file_of(args)
    if described is not None:
        args.durations = {**described.durations, **args.durations}
    return paths


def run(args: argparse.Namespace) -> int:
    paths = files_of_fit(args)
    check_folder(args.model)
    if args.encoder:
        from hscrf.cli.neural import fit_neural

        return fit_neural(args, paths)
    check_feature_options(args)
    return fit_shards(args, paths) if args.shards else fit_files(args, paths)


def fit_shards(args: argparse.Namespace, paths: list[str]) -> int:
    """Train from data that need not fit in memory."""
    from hscrf.cli.recipe import save_model

    shards = shards_of(args, recipe_of(args), paths)
    recipe = recipe_in(shards)
    dev = shards_of(args, recipe, expanded_names([args.dev])) if args.dev else None
    model = large_model(args, recipe, **training_of(args))
    note(f"{several(len(paths), 'file')}; packing what is not packed in {args.shards}")
    with cluster_of(args.dask) as client:
        print_packed(shards.on_cluster(client).packed_for(model), recipe, paths[0])
        model.fit(shards, development=dev, patience=args.patience, checkpoint=args.checkpoint, client=client)
    print_skipped(shards)
    scheme: Any = model.scheme_  # by level
    written = replace(recipe, levels=model.topology_.levels[1:], scheme=dict(scheme))
    return finish(args, model, lambda: save_model(args.model, model, written))


def large_model(args: argparse.Namespace, recipe: Recipe, **training: Any) -> HSCRF:
    """An estimator that learns its topology as it packs."""
    from hscrf.cli.recipe import with_pairs
    from hscrf.estimator.specified import default_specifications
    from hscrf.topology import Topology

    if "none" in args.durations.values():
        raise UserError("--durations LEVEL=none is not for --shards: leave the level out")
    features = None
    if recipe.template is not None and recipe.template.pairs:
        limits = {level: 2 for level in args.max_duration if level not in args.durations}
        stub = Topology({level: ["one", "other"] for level in recipe.levels}, max_duration=limits or None)
        features = with_pairs(default_specifications(stub), recipe.template, stub)
    learned = {"durations": args.durations or None, "max_duration": args.max_duration or None}
    learned |= {"open_duration": False if args.closed_durations else "auto"}
    learned |= {"scheme": recipe_of(args).scheme or "auto", "children": args.children}
    return make_model(args, given_topology(args), features, **learned, **training)


def fit_files(args: argparse.Namespace, paths: list[str]) -> int:
    """Train from files in memory."""
    from hscrf.cli.recipe import learn_labels, save_model
    from hscrf.cli.stray import print_stray_tags
    from hscrf.estimator.checks import count_states, warn_of_typos
    from hscrf.labels.schemes import unread_lines

    recipe = recipe_of(args)
    documents = read_training(recipe, paths, args.template)
    recipe = recipe.resolved(documents, args.template)
    dev = list(recipe.read(args.dev)) if args.dev else []
    print_stray_tags([*documents, *dev], recipe.scheme)
    for line in unread_lines([document.labels for document in documents], recipe.scheme, "--scheme plain"):
        note(f"hscrf: {line}")
    durations, given, count = durations_of(args), given_topology(args), len(documents)
    rules = (recipe.scheme, durations, args.max_duration, args.children, given)
    topology, labels, unsure = learn_labels([*documents, *dev], *rules, may_open=not args.closed_durations)
    if given is None:
        warn_of_typos(topology, count_states(topology, labels[:count]))
    model = make_model(args, topology, wanted_features(args, topology, durations, recipe.template), **training_of(args))
    print_data(list(map(len, documents)), topology, documents, recipe)
    if unsure:
        note(describe_unsure(unsure))
    print_cost(args, topology, documents)
    try:
        model.fit(
            [recipe.observe(document) for document in documents],
            labels[:count],
            development=([list(recipe.observe(document)) for document in dev], labels[count:]) if dev else None,
            patience=args.patience,
            checkpoint=args.checkpoint,
        )
    except ObservationError as error:
        raise documents[error.sequence or 0].error_of(error) from None
    model.scheme_ = dict(recipe.scheme)  # the labels that fit was given have no tags
    return finish(args, model, lambda: save_model(args.model, model, recipe))


def print_cost(args: argparse.Namespace, topology: Topology, documents: Sequence[Document]) -> None:
    """Warn of expensive training, and say what is done next."""
    from hscrf.engine.cost import estimate

    foreseen = estimate(topology, list(map(len, documents)))
    line = foreseen.warning(learning=True, jobs=args.jobs, option="--max-duration {level}=STEPS")
    if line and args.progress != "live":  # the model reports it there
        note(line)
    if args.progress != "none":
        note("making features")


def read_training(recipe: Recipe, paths: Sequence[str], template: str | None) -> list[Document]:
    """The documents of all training files; all files have the columns of the first."""
    documents = list(counted(recipe.read(source_of(paths[0])), "reading"))
    others = recipe.for_others(documents, template)
    for path in paths[1:]:
        documents += counted(others.read(source_of(path)), "reading")
    return documents


def check_folder(path: str) -> None:
    """Raise if the model could not be written: before training rather than after it."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UserError(f"{path}: there is no folder {folder} to write the model to")
    if not os.access(folder, os.W_OK) or os.path.isdir(path):
        raise UserError(f"{path}: the model cannot be written there")


def finish(args: argparse.Namespace, model: HSCRF, save: Callable[[], None]) -> int:
    """Write the model, unless Ctrl-C came before there was one, and print how training ended."""
    code = save_trained(model, args.model, save, "iteration")
    if code:
        return code
    if model.best_iter_ is not None:
        note(describe_best(model))
    if getattr(model, "penalty_reason_", ""):
        note(typed(model.penalty_reason_))
    note(f"{args.model}: {model.coef_.size} weights, loss {model.loss_:.2f}, {typed(model.stop_reason_)}")
    return 0


def describe_best(model: HSCRF) -> str:
    """Which iteration was kept for its score on the development data."""
    scores = {entry["iteration"]: entry["score"] for entry in model.history_}
    share = f"{100 * scores[model.best_iter_]:.2f} % of the steps of --dev are right at every level"
    return f"kept iteration {model.best_iter_} of {max(scores)}: {share}"


def penalty(text: str) -> float | str:
    """A number of at least 0, or the word auto."""
    return text if text == "auto" else amount(text)


def make_model(
    args: argparse.Namespace, topology: Topology | None, features: Sequence[Specification] | None, **settings: Any
) -> HSCRF:
    """An estimator with the settings of the options."""
    from hscrf.estimator.hscrf import HSCRF

    settings["fillers"] = fillers_of(args)
    return HSCRF(topology, features=features, min_count=args.min_count, missing=args.missing, **settings)


def fillers_of(args: argparse.Namespace) -> str | None:
    """The fillers of a model for --fillers."""
    return None if args.fillers == "none" else "auto"


def training_of(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of an estimator that packed data do not depend on."""
    return {
        "c1": args.c1,
        "c2": c2_of(args),
        "margin": args.margin,
        "solver": solver_from_options(args),
        "transitions": args.transitions,
        "n_jobs": args.jobs,
        "random_state": args.seed,
        "verbose": {"lines": 2, "live": 1, "none": 0}[args.progress],
    }


def c2_of(args: argparse.Namespace) -> float | str:
    """The given L2 penalty, or the default of the solver."""
    if args.c2 is not None:
        return args.c2
    return 0.0 if args.solver == "perceptron" else 0.1


def solver_from_options(args: argparse.Namespace) -> str | Solver:
    """The solver by its name, or with the given number of iterations."""
    from hscrf.solvers.choice import SOLVERS

    if args.max_iter is None:
        return args.solver
    option = "max_iter" if args.solver == "lbfgs" else "epochs"
    return SOLVERS[args.solver](**{option: args.max_iter})


def print_packed(packed: Packed, recipe: Recipe, path: str) -> None:
    """Describe the shards, and warn of doubts about the first sequences."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # problems of lines were reported during packing
        documents = recipe.documents(path, skip=lambda error: None)
        first = list(islice((document for document in documents if document.labels is not None), SEEN))
    assert packed.frame.topology is not None
    missing = packed.frame.encoder.missing_shares()
    print_data(packed.lengths.tolist(), packed.frame.topology, first, recipe, missing)


def print_data(
    lengths: Sequence[int],
    topology: Topology,
    documents: Sequence[Document],
    recipe: Recipe,
    missing: Sequence[str] | None = None,
) -> None:
    """Describe sequences of some lengths; their columns, and doubts about these, as the documents show them."""
    from hscrf.io.described import describe_features
    from hscrf.io.doubts import doubts

    levels = " > ".join(describe_levels(topology))
    note(f"{several(len(lengths), 'sequence')}, {several(sum(lengths), 'step')}, {levels}")
    if documents:
        note(f"columns: {describe_features(documents, recipe, missing)}")
        for line in doubts(documents, recipe):
            note(f"hscrf: {line}")


def describe_unsure(parents: Mapping[str, Sequence[str]]) -> str:
    """A line about the states that may have any child, because labels are missing.

    >>> describe_unsure({"chunk": ["NP"]})
    'too few labels are known for the children of chunk NP: any child is allowed (--children seen or all changes that)'
    """
    shown = [f"{level} {', '.join(names[:5])}{', ...' * (len(names) > 5)}" for level, names in parents.items()]
    told = f"too few labels are known for the children of {'; '.join(shown)}: any child is allowed"
    return f"{told} (--children seen or all changes that)"


def describe_levels(topology: Topology) -> list[str]:
    """The levels with their numbers of states, without a dummy root."""
    sizes = zip(topology.levels, topology.n_states, strict=True)
    return [f"{level} ({size})" for level, size in sizes if level != "root" or size > 1]
