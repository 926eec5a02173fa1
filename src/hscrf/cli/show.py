"""hscrf show."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hscrf.cli.options import Parser
from hscrf.cli.shell import whole
from hscrf.topology import UNLIMITED

if TYPE_CHECKING:
    from hscrf.cli.recipe import Recipe

HELP = """\
Print what a model has learned: states and who contains whom, strongest weights, durations, training.

  hscrf show m.hscrf
  hscrf show m.hscrf --top 20 --level chunk"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("model")
    parser.add_argument(
        "--top", type=whole(0), default=10, metavar="N", help="weights of each kind (default: %(default)s)"
    )
    parser.add_argument("--level", help="only this level")


def run(args: argparse.Namespace) -> int:
    from hscrf.cli.recipe import load_model

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
