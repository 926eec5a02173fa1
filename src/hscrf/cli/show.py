"""hscrf show: print what a model has learned."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hscrf.cli.options import Parser
from hscrf.cli.shell import UserError, whole
from hscrf.errors import several

if TYPE_CHECKING:
    from hscrf.estimator.contract import Labeller, Model, Trained
    from hscrf.io.recipe import Recipe
    from hscrf.topology import Topology

HELP = """\
Print what a model has learned: states and their children, strongest weights, durations, training.

  hscrf show m.hscrf
  hscrf show m.hscrf --top 20 --level chunk
  hscrf show m.hscrf --labels > labels.toml         # levels, labels and rules, to edit for --labels
  hscrf show m.hscrf --template > template.toml     # patterns of features, to edit for hscrf fit --template"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("model", help="a model file")
    parser.add_argument(
        "--top",
        type=whole(0),
        default=10,
        metavar="N",
        help="how many weights of each kind (default: %(default)s)",
    )
    parser.add_argument("--level", help="only this level")
    parser.add_argument(
        "--labels", action="store_true", help="print only levels, labels and rules, in the form that --labels reads"
    )
    parser.add_argument(
        "--template",
        action="store_true",
        help="print only the patterns of features, in the form that hscrf fit --template reads",
    )


def run(args: argparse.Namespace) -> int:
    from hscrf.cli.neural import is_tagger, show_tagger
    from hscrf.cli.recipe import load_model

    model: Any
    model, recipe = load_model(args.model)
    if is_tagger(args.model):
        show_tagger(args, model, recipe)
        return 0
    topology = model.topology_
    if args.labels or args.template:
        return print_files(args, topology, recipe)
    chosen = range(topology.depth) if args.level is None else [topology.level(args.level)]
    nonzero = int((model.coef_ != 0).sum())
    print(f"{args.model}: {type(model).__name__}, {model.coef_.size} weights, {nonzero} of them not zero")
    if recipe is not None:
        print(f"reads {recipe.format}: {describe_recipe(recipe)}")
    if hasattr(model, "c2"):
        print(f"penalties: {describe_penalties(model)}")
    if model.temperature_:
        print(f"temperatures: {describe_temperatures(model)}")
    for d in chosen:
        if topology.n_states[d] > 1:
            print_level(model, d)
        for title, rows in strongest(model, d, args.top).items():
            print(f"\n  {title} of level {topology.levels[d]}")
            for value, name, states in rows:
                print(f"  {value:9.4f}  {states}{'  ' + name if name else ''}")
    print_training(model)
    return 0


def print_files(args: argparse.Namespace, topology: Topology, recipe: Recipe | None) -> int:
    """Print the labels, or the patterns of features, for use with other commands."""
    from hscrf.io.labelfile import label_file_text
    from hscrf.io.patterns import template_text

    if args.labels:
        print(label_file_text(topology), end="")
    if args.template:
        if recipe is None or recipe.template is None:
            raise UserError(f"{args.model} has no template: it takes features as they are")
        print(template_text(recipe.template, recipe.features or ()), end="")
    return 0


def describe_recipe(recipe: Recipe) -> str:
    """The labels and features that a model reads from files."""
    from hscrf.io.doubts import shown_name

    unnamed = recipe.format == "columns" and all(map(str.isdecimal, recipe.features or ("given",)))
    names = [f"column {shown_name(name, recipe)}" if unnamed else name for name in recipe.features or ()]
    numbers = [name for name in recipe.features or () if name in (recipe.numeric or ())]
    made = "as they are"
    if recipe.template is not None:
        made = f"by a template of {len(recipe.template.features) + len(recipe.template.pairs)} patterns"
        made += " (columns are counted from 0 there)" * unnamed
    elif numbers:
        texts = len(numbers) < len(recipe.features or ())
        made = f"(numbers: {', '.join(numbers)})" if texts else "(numbers)"
    schemes = ", ".join(f"{level} ({scheme})" for level, scheme in recipe.scheme.items())
    return f"labels {schemes or ', '.join(recipe.levels)}; features {', '.join(names or ('given',))} {made}"


def describe_penalties(model: Any) -> str:
    """The penalties of training; with c2="auto" those that were chosen."""
    from hscrf.solvers.penalties import factors_text

    chosen = getattr(model, "c2_", model.c2)
    return f"c1 {model.c1:g}, c2 {chosen:g}{factors_text(getattr(model, 'factors_', {}))}"


def describe_temperatures(model: Any) -> str:
    """The temperatures of the levels of a calibrated model."""
    pairs = model.temperature_.items()
    return "; ".join(f"{level} {pair.state:.3g} (states), {pair.segment:.3g} (segments)" for level, pair in pairs)


def print_level(model: Labeller, d: int) -> None:
    """Print the states of a level, their children and their durations."""
    topology = model.topology_
    print(f"\nlevel {topology.levels[d]}, {several(topology.n_states[d], 'state')}")
    if d + 1 < topology.depth:
        for name, row in zip(topology.states[d], topology.children[d], strict=True):
            below = [topology.states[d + 1][u] for u in row.nonzero()[0]]
            every = row.all() and len(below) > 8
            print(f"  {name}: {f'all states of {topology.levels[d + 1]}' if every else ' '.join(below)}")
    else:
        print(f"  {' '.join(topology.states[d])}")
    if topology.has_limits(d):
        print("  durations: " + ", ".join(describe_durations(model, d)))


def describe_durations(model: Labeller, d: int) -> list[str]:
    """The range of durations of every state."""
    from hscrf.topology import UNLIMITED

    topology = model.topology_
    limits = (topology.min_duration[d].tolist(), topology.max_duration[d].tolist(), topology.open_duration[d].tolist())
    return [
        f"{name} {low} to {'any' if high == UNLIMITED else high}{' and more' if more else ''}"
        for name, low, high, more in zip(topology.states[d], *limits, strict=True)
    ]


def strongest(model: Model, d: int, top: int) -> dict[str, list[tuple[float, str, str]]]:
    """By title, the strongest weights of each part of a level: value, feature, states.

    For an HHMM, the highest probabilities: its weights are their logarithms.
    """
    import numpy as np

    from hscrf.families.hhmm.emissions import MomentBlock
    from hscrf.families.hhmm.model import HHMM

    found: dict[str, list[tuple[float, str, str]]] = {}
    for block, weights in model.weighted_blocks():
        part, level = block.key
        if level != d or not weights.size:
            continue
        likely = isinstance(model, HHMM) and not isinstance(block, MomentBlock)
        title = f"highest {part} probabilities" if likely else f"strongest {part} weights"
        values = np.exp(weights) if likely else weights
        places = block.describe(model.encoder_)
        for k in np.argsort(-np.abs(values), kind="stable")[:top].tolist():
            name, place = places[k]
            states, after = block.locate(model.topology_, place)[2], block.remembered(model.topology_, place)
            if after is not None:
                states += f" (after {after})" if after else " (nothing before)"
            found.setdefault(title, []).append((float(values[k]), str(name), states))
    return found


FIELDS = {  # formats of the entries of the history
    "loss": "loss {:12.2f}",
    "log_likelihood": "log-likelihood {:12.2f}",
    "objective": "objective {:12.2f}",
    "gradient_norm": "|g| {:.1e}",
    "seconds": "{:.1f} s",
    "score": "dev {:.4f}",
}


def print_training(model: Trained) -> None:
    """Print the course of training in at most eleven lines."""
    state = "converged" if model.converged_ else "not converged"
    print(f"\ntraining: {model.n_iter_} iterations, loss {model.loss_:.2f}, {state}: {model.stop_reason_}")
    history = model.history_
    stride = max(1, -(-len(history) // 10))
    shown = [*range(0, len(history) - 1, stride), len(history) - 1] if history else []
    for n in shown:
        entry = history[n]
        fields = [text.format(entry[key]) for key, text in FIELDS.items() if entry.get(key) is not None]
        print("  ".join([f"  iteration {entry.get('iteration', n + 1):4d}", *fields]))
