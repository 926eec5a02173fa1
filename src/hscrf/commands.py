"""The commands behind the command line: fit, predict, score, show, plot, demo."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from hscrf._shell import Progress, UserError, complain, counted, names_in, note, pairs_of, reread, source_of, target_of
from hscrf.topology import UNLIMITED

if TYPE_CHECKING:
    from hscrf.io import Document
    from hscrf.labels import Labels
    from hscrf.recipe import Recipe

__all__ = ["DATA_PLOTS", "MODEL_PLOTS", "demo", "fit", "plot", "predict", "score", "show"]


# ------------------------------------------------------------------------------
# Options and files


def recipe_of(args: argparse.Namespace) -> Recipe:
    """The recipe that the options describe."""
    from hscrf.recipe import Recipe, format_of

    places = places_of(args.levels) if args.levels and "=" in args.levels else None
    form = args.format or format_of(args.data) or "columns"
    levels = tuple(places) if places else names_in(args.levels)
    if not levels and form == "columns":
        levels = ("label",)
    if not levels and form == "table":
        raise UserError("say which columns of the table are labels, from top to bottom: --levels NAME,NAME")
    return Recipe(
        format=form,
        levels=levels,
        places=places,
        names=names_in(args.columns) or None,
        features=names_in(args.features) or None,
        scheme=schemes_of(args.scheme, levels),
        separator={"tab": "\t", "comma": ",", "space": " "}.get(args.separator, args.separator),
        comment=args.comment,
        sequence=None if args.sequence == "none" else args.sequence or "sequence",
        time=args.time,
    )


def places_of(text: str, option: str = "--levels") -> dict[str, int]:
    """Columns, counted from 0, from chunk=3,pos=2."""
    try:
        return {name: place - 1 for name, place in pairs_of(int)(text).items()}
    except argparse.ArgumentTypeError as error:
        raise UserError(f"{option}: {error}; expected something like chunk=3,pos=2") from None


def schemes_of(text: str | None, levels: Sequence[str]) -> dict[str, str]:
    """Schemes by level from bio or chunk=bio,pos=plain."""
    schemes = dict.fromkeys(levels, text) if text and "=" not in text else pairs_of(str)(text) if text else {}
    for level, scheme in schemes.items():
        if level not in levels:
            raise UserError(f"--scheme speaks of level {level!r}, but --levels does not")
        if scheme not in ("plain", "bio", "bioes"):
            raise UserError(f"--scheme is {scheme!r}, expected plain, bio or bioes")
    return schemes


def open_model(path: str, data: str = "-", form: str | None = None) -> tuple[Any, Recipe]:
    """A model and the recipe for a data file; a model made in Python reads features as they are."""
    from hscrf.recipe import Recipe, format_of, load_model

    model, recipe = load_model(path)
    form = form or format_of(data)
    if recipe is None:
        if form not in ("jsonl", "crfsuite"):
            raise UserError(f"{path} was not made by hscrf fit, so it reads only features: jsonl or crfsuite")
        recipe = Recipe(levels=model.topology_.levels[1:])
    return model, replace(recipe, format=form or recipe.format)


# ------------------------------------------------------------------------------
# fit


def fit(args: argparse.Namespace) -> int:
    from hscrf.recipe import learn_labels, save_model

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
    from hscrf.features import Duration

    return [Duration(level, kind) for level, kind in args.durations.items() if kind != "none"]


def make_model(args: argparse.Namespace, topology: Any, durations: Sequence[Any], template: Any) -> Any:
    """An estimator with the options' settings; durations replace those that limits bring by themselves."""
    from hscrf.features import Duration, default_specifications
    from hscrf.recipe import model_class, pair_features

    usual = default_specifications(topology)
    kept = [spec for spec in usual if not (isinstance(spec, Duration) and spec.level in args.durations)]
    c2 = args.c2 if args.c2 is not None else 0.0 if args.solver == "perceptron" else 1.0
    return model_class(template)(
        topology,
        features=[*kept, *durations, *pair_features(template, topology)],
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
    from hscrf.solvers import LBFGS, SGD, Perceptron

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


# ------------------------------------------------------------------------------
# predict


def predict(args: argparse.Namespace) -> int:
    from hscrf.prediction import Prediction, batches

    model, recipe = open_model(args.model, args.data, args.format)
    model.n_jobs = args.jobs
    run = Prediction(args, model, recipe)
    documents = recipe.read(source_of(args.data), unlabelled=not args.evaluate)
    results = counted(chain.from_iterable(map(run.batch, batches(documents))), "predicting")
    with target_of(args.output) as target:
        recipe.write(target, results)
    if args.evaluate:
        note(run.report())
    elif run.complete:
        note("hscrf: the input was labelled throughout, so nothing was predicted; -t predicts afresh and compares")
    return 0


# ------------------------------------------------------------------------------
# score


def score(args: argparse.Namespace) -> int:
    from hscrf import metrics
    from hscrf.scoring import compare

    if args.model and (args.levels or args.columns):
        raise UserError("the model knows its columns: give either -m or --levels and --columns")
    recipe = open_model(args.model, args.data, args.format)[1] if args.model else recipe_of(args)
    places = None if args.predicted is None else predicted_places(args.predicted, recipe)
    source = reread(args.data) if places is not None and args.other is None else source_of(args.data)
    pair = compare(recipe, source, None if args.other is None else source_of(args.other), places)
    truth, guess = pair.labels()
    numbers = metrics.report(truth, guess, tolerance=args.tolerance, output_dict=True)
    text = metrics.report(truth, guess, tolerance=args.tolerance)
    if args.conlleval is not None:
        result = pair.conlleval(args.conlleval)
        numbers["conlleval"] = {**result.to_dict(), "accuracy": result.accuracy, "tokens": result.tokens}
        text = metrics.conlleval_text(result)
    if args.json:
        write_json(args.json, numbers)
    if args.json != "-":
        print(text)
    return 0


def predicted_places(text: str, recipe: Recipe) -> dict[str, Any]:
    """Where predicted labels are, by level."""
    given = text if "=" in text else f"{recipe.levels[0]}={text}"
    return dict(pairs_of(str)(given)) if recipe.format == "table" else dict(places_of(given, "--predicted"))


def write_json(path: str, content: Any) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


# ------------------------------------------------------------------------------
# show


def show(args: argparse.Namespace) -> int:
    from hscrf.recipe import load_model

    model, recipe = load_model(args.model)
    topology = model.topology_
    chosen = range(topology.depth) if args.level is None else [topology.level(args.level)]
    print(f"{args.model}: {type(model).__name__}, {model.coef_.size} weights, {np_count(model)} of them not zero")
    if recipe is not None:
        print(f"reads {recipe.format}: {describe_recipe(recipe)}")
    for d in chosen:
        if topology.n_states[d] > 1:
            print_level(model, d)
        for part, rows in strongest(model, d, args.top).items():
            print(f"\n  strongest {part} weights of level {topology.levels[d]}")
            for weight, name, states in rows:
                print(f"  {weight:9.4f}  {states}{'  ' + name if name else ''}")
    print_training(model)
    return 0


def np_count(model: Any) -> int:
    return int((model.coef_ != 0).sum())


def describe_recipe(recipe: Recipe) -> str:
    made = (
        "as they are"
        if recipe.template is None
        else f"by a template of {len(recipe.template.features) + len(recipe.template.pairs)}"
    )
    schemes = ", ".join(f"{level} ({scheme})" for level, scheme in recipe.scheme.items())
    return f"labels {schemes or ', '.join(recipe.levels)}; features {', '.join(recipe.features or ('given',))} {made}"


def print_level(model: Any, d: int) -> None:
    """States of a level, what they contain and how long they last."""
    topology = model.topology_
    print(f"\nlevel {topology.levels[d]}, {topology.n_states[d]} states")
    if d + 1 < topology.depth:
        for name, row in zip(topology.states[d], topology.children[d], strict=True):
            kids = [topology.states[d + 1][u] for u in row.nonzero()[0]]
            print(f"  {name}: {'everything' if row.all() and len(kids) > 8 else ' '.join(kids)}")
    else:
        print(f"  {' '.join(topology.states[d])}")
    if topology.has_limits(d):
        print("  durations: " + ", ".join(describe_durations(model, d)))


def describe_durations(model: Any, d: int) -> list[str]:
    """The range of durations of every state."""
    topology = model.topology_
    rows = zip(topology.states[d], topology.min_duration[d].tolist(), topology.max_duration[d].tolist(), strict=True)
    return [f"{name} {low} to {'any' if high == UNLIMITED else high}" for name, low, high in rows]


def strongest(model: Any, d: int, top: int) -> dict[str, list[tuple[float, str, str]]]:
    """The strongest weights of each part of a level: weight, feature, states."""
    import numpy as np

    found: dict[str, list[tuple[float, str, str]]] = {}
    for block, weights in model._weighted_blocks():
        part, level = block.key
        if level != d or not weights.size:
            continue
        places = block.describe(model.encoder_)
        for k in np.argsort(-np.abs(weights), kind="stable")[:top].tolist():
            name, place = places[k]
            states = block.locate(model.topology_, place)[2]
            found.setdefault(part, []).append((float(weights[k]), name, states))
    return found


def print_training(model: Any) -> None:
    """The course of training in at most ten lines."""
    state = "converged" if model.converged_ else "not converged"
    print(f"\ntraining: {model.n_iter_} iterations, loss {model.loss_:.2f}, {state}: {model.stop_reason_}")
    history = model.history_
    stride = max(1, -(-len(history) // 10))
    for entry in [*history[:-1:stride], *history[-1:]]:
        score = "" if entry["score"] is None else f"  dev {entry['score']:.4f}"
        line = f"  iteration {entry['iteration']:4d}  loss {entry['loss']:12.2f}  |g| {entry['gradient_norm']:.1e}"
        print(f"{line}  {entry['seconds']:.1f} s{score}")


# ------------------------------------------------------------------------------
# plot

MODEL_PLOTS = ("topology", "transitions", "durations", "training")
DATA_PLOTS = ("segments", "confusion", "evidence")


def plot(args: argparse.Namespace) -> int:
    need_matplotlib()
    from hscrf._files import MAGIC
    from hscrf.demo import save_figure

    with open(args.file, "rb") as file:
        is_model = file.read(len(MAGIC)) == MAGIC
    what = args.what or (MODEL_PLOTS if is_model else DATA_PLOTS)[0]
    if (what in MODEL_PLOTS) != is_model:
        kind = "model" if what in MODEL_PLOTS else "data file"
        raise UserError(f"--what {what} needs a {kind}, and {args.file} is none")
    with Progress("drawing"):
        axes = plot_model(args, what) if is_model else plot_data(args, what)
        save_figure(axes, args.output)
    note(f"{args.output} written")
    return 0


def need_matplotlib() -> None:
    try:
        import matplotlib
    except ImportError:
        raise UserError("pictures need matplotlib: pip install 'hscrf[plots]'") from None
    matplotlib.use("agg")


def plot_model(args: argparse.Namespace, what: str) -> Any:
    from hscrf import plots
    from hscrf.recipe import load_model

    model = load_model(args.file)[0]
    topology = model.topology_
    if what == "topology":
        return plots.plot_topology(model)
    if what == "training":
        return plots.plot_training(model)
    if what == "transitions":
        return plots.plot_transitions(model, args.level or topology.levels[-1])
    timed = [level for d, level in enumerate(topology.levels) if topology.has_limits(d)]
    if not timed and args.level is None:
        raise UserError("no level has durations: fit with --durations or --max-duration")
    return plots.plot_durations(model, args.level or timed[-1])


def plot_data(args: argparse.Namespace, what: str) -> Any:
    from hscrf import plots
    from hscrf.demo import FRACTIONS, evidence_curve
    from hscrf.scoring import truth_labels

    if not args.model:
        raise UserError("a data file needs the model that reads it: -m MODEL")
    model, recipe = open_model(args.model, args.file, args.format)
    documents = list(recipe.read(args.file, unlabelled=what == "segments"))
    if what == "segments":
        return plot_document(args, model, recipe, documents)
    if what == "confusion":
        found = model.predict([recipe.observe(document) for document in documents])
        return plots.plot_confusion(truth_labels(documents, recipe.scheme), found, args.level or recipe.levels[-1])
    possible = [document for document in documents if is_possible(document, model, recipe)]
    if len(possible) < len(documents):
        note(f"{len(documents) - len(possible)} of {len(documents)} sequences have labels that the model rules out")
    known = [known_labels(document, model, recipe) for document in possible]
    X = [recipe.observe(document) for document in possible]
    axes = plots.plot_evidence_curve(FRACTIONS, evidence_curve(model, X, known, FRACTIONS, 0))
    axes.set_ylabel("accuracy of the steps not given")
    return axes


def is_possible(document: Document, model: Any, recipe: Recipe) -> bool:
    """Whether the model can give a document its labels."""
    try:
        known_labels(document, model, recipe)
    except ValueError:
        return False
    return True


def known_labels(document: Document, model: Any, recipe: Recipe) -> Labels:
    from hscrf.io import to_labels

    return to_labels(document, model.topology_, recipe.scheme)


def plot_document(args: argparse.Namespace, model: Any, recipe: Recipe, documents: list[Document]) -> Any:
    """One sequence: truth above prediction if it is labelled, with what was known if only partly."""
    from hscrf import plots

    if not 1 <= args.sequence <= len(documents):
        raise UserError(f"--sequence is {args.sequence}, but {args.file} has {len(documents)} sequences")
    document = documents[args.sequence - 1]
    X = [recipe.observe(document)]
    labels = known_labels(document, model, recipe) if document.labels else None
    evidence = labels if labels is not None and not labels.is_complete else None
    given = None if evidence is None else [evidence]
    found, posterior = model.predict(X, evidence=given)[0], model.predict_marginals(X, evidence=given)[0]
    if labels is None or evidence is not None:
        return plots.plot_segments(found, marginals=posterior, evidence=evidence)
    return plots.plot_segments(labels, prediction=found, marginals=posterior)


def demo(args: argparse.Namespace) -> int:
    from hscrf.demo import run

    return run(args.output, args.seed, args.quick)
