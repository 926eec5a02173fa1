"""hscrf plot: draw a model or a file."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from hscrf.cli.options import Parser, add_decimal, add_format, add_labels, add_strict, label_file_of, open_model
from hscrf.cli.shell import UserError, note, whole
from hscrf.errors import several
from hscrf.progress import Waiting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hscrf.estimator.contract import Labeller
    from hscrf.io.documents import Document
    from hscrf.io.recipe import Recipe
    from hscrf.labels.labels import Labels
    from hscrf.topology import Topology

HELP = """\
Draw a model or a file into a PNG, SVG or PDF (needs matplotlib: pip install 'hscrf[plots]').

  hscrf plot m.hscrf -o topology.svg                              # also --what transitions|durations|training
  hscrf plot days.csv -m m.hscrf -o d.png --what durations        # the lengths that the model expects in the data
  hscrf plot days.csv -m m.hscrf -o day.png --sequence 3          # truth above prediction; pale: uncertain
  hscrf plot days.csv -m m.hscrf -o c.png --what confusion --level action
  hscrf plot days.csv -m m.hscrf -o e.png --what evidence         # accuracy as labels become known"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", help="a model or a data file")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="a name that ends in .png, .svg or .pdf")
    parser.add_argument("-m", "--model", help="the model for a data file")
    pictures = tuple(dict.fromkeys((*MODEL_PLOTS, *DATA_PLOTS)))
    parser.add_argument(
        "--what", choices=pictures, help="the picture (default: topology of a model, segments of a data file)"
    )
    parser.add_argument("--level", help="the level to draw (default: the lowest that has such a picture)")
    parser.add_argument(
        "--sequence",
        type=whole(1),
        default=1,
        metavar="N",
        help="the sequence to draw, counted from 1 (default: %(default)s)",
    )
    add_format(parser)
    add_decimal(parser, "that of training")
    add_strict(parser)
    add_labels(parser, "colours of labels, and rules for predictions, in TOML (see hscrf studio --help)")


MODEL_PLOTS = ("topology", "transitions", "durations", "training")
DATA_PLOTS = ("segments", "confusion", "evidence", "durations")


def run(args: argparse.Namespace) -> int:
    need_matplotlib()
    check_picture(args.output)
    from hscrf.cli.pictures import save_figure
    from hscrf.files.container import MAGIC

    with open(args.file, "rb") as file:
        is_model = file.read(len(MAGIC)) == MAGIC
    what = args.what or (MODEL_PLOTS if is_model else DATA_PLOTS)[0]
    if what not in (MODEL_PLOTS if is_model else DATA_PLOTS):
        kind = "model" if what in MODEL_PLOTS else "data file"
        raise UserError(f"--what {what} needs a {kind}, but {args.file} is not one")
    from hscrf.plots import colours

    described = label_file_of(args)
    with Waiting("drawing"), colours({} if described is None else described.colours):
        axes = plot_model(args, what) if is_model else plot_data(args, what)
        save_figure(axes, args.output)
    note(f"{args.output} written")
    return 0


def need_matplotlib() -> None:
    """Raise if matplotlib is missing; otherwise choose its backend for files."""
    try:
        import matplotlib
    except ImportError:
        raise UserError("pictures need matplotlib: pip install 'hscrf[plots]'") from None
    matplotlib.use("agg")


def check_picture(path: str) -> None:
    """Raise before any computation if the ending of a name is not a format of pictures."""
    if os.path.splitext(path)[1].lower() not in (".png", ".svg", ".pdf"):
        raise UserError(f"-o {path}: the name of a picture ends in .png, .svg or .pdf")


def plot_model(args: argparse.Namespace, what: str) -> Axes:
    """The axes of a picture of a model."""
    from hscrf import plots
    from hscrf.cli.recipe import load_model

    model = load_model(args.file)[0]
    topology = model.topology_
    if what == "topology":
        return plots.plot_topology(model)
    if what == "training":
        return plots.plot_training(model)
    if what == "transitions":
        return plots.plot_transitions(model, args.level)
    timed = limited_levels(topology)
    if not timed and args.level is None:
        raise UserError(
            "the model has no durations: fit with --durations or --max-duration, or draw the lengths that it expects "
            "in data: hscrf plot DATA -m MODEL --what durations"
        )
    return plots.plot_durations(model, args.level or timed[-1])


def limited_levels(topology: Topology) -> list[str]:
    """The levels whose durations are limited."""
    return [level for d, level in enumerate(topology.levels) if topology.has_limits(d)]


def lasting_level(topology: Topology) -> str:
    """The lowest level with durations, or else the lowest with segments of more than one step."""
    timed = limited_levels(topology)
    if timed:
        return timed[-1]
    levels: tuple[str, ...] = topology.levels[1:-1] if topology.unit_bottom else topology.levels[1:]
    if not levels:
        raise UserError("all segments of the model have one step: there are no lengths to draw")
    return levels[-1]


def plot_data(args: argparse.Namespace, what: str) -> Axes:
    """The axes of a picture of a data file and a model's predictions for it."""
    from hscrf import plots
    from hscrf.cli.comparison import truth_labels
    from hscrf.cli.pictures import FRACTIONS, evidence_curve

    if not args.model:
        raise UserError("a data file needs the model that reads it: -m MODEL")
    model, recipe = open_model(args, args.file)
    documents = list(recipe.read(args.file, unlabelled=what in ("segments", "durations")))
    recipe = recipe.settled(documents, model.topology_)
    if what == "segments":
        return plot_document(args, model, recipe, documents)
    if what == "durations":
        observed = [recipe.observe(document) for document in documents]
        return plots.plot_durations(model, args.level or lasting_level(model.topology_), X=observed)
    if what == "confusion":
        found = model.predict([recipe.observe(document) for document in documents])
        return plots.plot_confusion(
            truth_labels(documents, recipe.scheme, not model.topology_.unit_bottom),
            found,
            args.level or recipe.levels[-1],
        )
    possible = [document for document in documents if is_possible(document, model, recipe)]
    if not possible:
        raise UserError(f"the labels of all sequences of {args.file} are impossible for the model")
    if len(possible) < len(documents):
        left_out = f"{len(documents) - len(possible)} of {len(documents)} sequences"
        note(f"{left_out} are left out, because their labels are impossible for the model")
    known = [document_labels(document, model, recipe) for document in possible]
    X = [recipe.observe(document) for document in possible]
    axes = plots.plot_evidence_curve(FRACTIONS, evidence_curve(model, X, known, FRACTIONS, 0))
    axes.set_ylabel("accuracy of the steps not given")
    return axes


def is_possible(document: Document, model: Labeller, recipe: Recipe) -> bool:
    """Whether the model can give a document its labels."""
    try:
        document_labels(document, model, recipe)
    except ValueError:
        return False
    return True


def document_labels(document: Document, model: Labeller, recipe: Recipe) -> Labels:
    """The labels of a document over the model's topology."""
    from hscrf.io.tags import to_labels

    return to_labels(document, model.topology_, recipe.scheme)


def plot_document(args: argparse.Namespace, model: Labeller, recipe: Recipe, documents: list[Document]) -> Axes:
    """Draw one sequence: truth above prediction if it is fully labelled, else the prediction and the given labels."""
    from hscrf import plots
    from hscrf.cli.stray import UnknownLabels

    if not 1 <= args.sequence <= len(documents):
        raise UserError(f"--sequence is {args.sequence}, but {args.file} has {several(len(documents), 'sequence')}")
    document = documents[args.sequence - 1]
    X = [recipe.observe(document)]
    unknown = UnknownLabels(model.topology_, recipe.scheme, args.strict)
    labels = document_labels(unknown.cleared(document), model, recipe) if document.labels else None
    unknown.print_summary()
    evidence = labels if labels is not None and not labels.is_complete else None
    given = None if evidence is None else [evidence]
    found, posterior = model.predict(X, evidence=given)[0], model.predict_marginals(X, evidence=given)[0]
    if labels is None or evidence is not None:
        return plots.plot_segments(found, marginals=posterior, evidence=evidence)
    return plots.plot_segments(labels, prediction=found, marginals=posterior)
