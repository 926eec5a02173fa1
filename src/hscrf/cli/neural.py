"""Neural models in the shell: hscrf fit --encoder, and functions that open and show such a model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hscrf.cli.options import given_topology, recipe_of
from hscrf.cli.shell import UserError, counted, note, save_trained, source_of, typed
from hscrf.errors import FileFormatError, several
from hscrf.io.documents import Document
from hscrf.io.recipe import Recipe

if TYPE_CHECKING:
    from hscrf.torch.tagger import Tagger

LINEAR: dict[str, Any] = {  # options that only linear models have, and their defaults
    "template": None,
    "c1": 0.0,
    "c2": None,
    "solver": "lbfgs",
    "transitions": "all",
    "checkpoint": None,
    "shards": None,
    "start": None,
    "stop": None,
    "penalty": {},
}
MARK = b'{"__metadata__":{'  # begins the header of a tagger's file, after its length


@dataclass(frozen=True)
class ColumnRecipe(Recipe):
    """A recipe whose observations are columns by name, not features of a template: an encoder reads words."""

    def observe(self, document: Document) -> Any:
        """The observations of a document: rows of numbers, or a dict of columns for each step."""
        found = super().observe(document)
        first = found[0]
        if isinstance(first, Mapping) or not isinstance(first, list) or not isinstance(first[0], str):
            return found
        names = self.features or ()
        return [{name: cell[len(name) + 1 :] for name, cell in zip(names, step, strict=True)} for step in found]

    @classmethod
    def of(cls, recipe: Recipe) -> ColumnRecipe:
        """A copy of another recipe with columns as observations."""
        return cls(**{item.name: getattr(recipe, item.name) for item in fields(recipe)})


def fit_neural(args: argparse.Namespace, paths: list[str]) -> int:
    """Train a tagger from files in memory."""
    from hscrf.cli.fit import describe_levels, durations_of, fillers_of
    from hscrf.cli.recipe import learn_labels
    from hscrf.cli.stray import print_stray_tags

    for option, usual in LINEAR.items():
        if getattr(args, option, usual) != usual:
            raise UserError(f"--{option} is not for --encoder: only models with linear features have it")
    for level, kind in args.durations.items():
        if kind not in ("each", "none"):
            raise UserError(
                f"--durations {level}={kind} is not for --encoder: its layer has a score for each duration; "
                f"expected {level}=each or {level}=none"
            )
    tagger = wing().Tagger
    recipe = recipe_of(args)
    documents = list(counted(chain.from_iterable(recipe.read(source_of(path)) for path in paths), "reading"))
    recipe = ColumnRecipe.of(recipe.resolved(documents, "none"))
    dev = list(recipe.read(args.dev)) if args.dev else []
    print_stray_tags([*documents, *dev], recipe.scheme)
    topology, labels, _ = learn_labels(
        [*documents, *dev], recipe.scheme, durations_of(args), args.max_duration, args.children, given_topology(args)
    )
    steps = sum(map(len, documents))
    note(f"{several(len(documents), 'sequence')}, {several(steps, 'step')}, {' > '.join(describe_levels(topology))}")
    model = tagger(
        args.encoder,
        topology=topology,
        durations=[level for level, kind in args.durations.items() if kind != "none"] or None,
        fillers=fillers_of(args),
        margin=args.margin,
        min_count=args.min_count,
        patience=args.patience,
        n_jobs=args.jobs,
        random_state=args.seed,
        verbose=int(args.progress != "none"),
        **({} if args.max_iter is None else {"epochs": args.max_iter}),
    )
    model.fit(
        [recipe.observe(document) for document in documents],
        labels[: len(documents)],
        development=([recipe.observe(document) for document in dev], labels[len(documents) :]) if dev else None,
    )
    return finish_tagger(args, model, recipe)


def finish_tagger(args: argparse.Namespace, model: Tagger, recipe: Recipe) -> int:
    """Write the model, unless Ctrl-C came before there was one, and print how training ended."""
    code = save_trained(model, args.model, lambda: wing().files.save(args.model, model, recipe.to_dict()), "epoch")
    if code:
        return code
    best = f"epoch {model.best_iter_} of {model.n_iter_} kept, " if model.best_iter_ else ""
    note(f"{args.model}: {count_weights(model)} weights, {best}loss {model.loss_:.4f}, {typed(model.stop_reason_)}")
    return 0


def wing() -> ModuleType:
    """The torch wing; an error says how to install it."""
    import hscrf.torch
    import hscrf.torch.files

    return hscrf.torch


def is_tagger(path: str) -> bool:
    """Whether a file begins like one that a tagger was saved to; PyTorch is not imported."""
    try:
        with open(path, "rb") as file:
            return file.read(8 + len(MARK))[8:] == MARK
    except OSError:
        return False  # the next reader reports the error


def load_tagger(path: str) -> tuple[Tagger, Recipe | None]:
    """A tagger, and its recipe if it was trained from a file."""
    model, entry = wing().files.load(path)
    if entry is None:
        return model, None
    try:
        recipe = ColumnRecipe.from_dict(entry)
        recipe.check(model.topology_)
    except (ValueError, TypeError, KeyError) as error:
        raise FileFormatError(f"{path} is damaged: its recipe says {error}") from None
    return model, recipe


def count_weights(model: Tagger) -> int:
    return sum(tensor.numel() for part in (model.network_, model.crf_) for tensor in part.parameters())


def show_tagger(args: argparse.Namespace, model: Tagger, recipe: Recipe | None) -> None:
    """Print the parts of a tagger and the strongest scores of its layer."""
    from hscrf.cli.show import describe_recipe, print_level, print_training

    topology = model.topology_
    print(f"{args.model}: Tagger, {count_weights(model)} weights")
    print(f"encoder: {', '.join(f'{name} {value}' for name, value in model.design_._asdict().items())}")
    if recipe is not None:
        print(f"reads {recipe.format}: {describe_recipe(recipe)}")
    print(f"vocabularies: {', '.join(f'{column} {size}' for column, size in model.inputs_.columns.items()) or 'none'}")
    print(f"features with weights of their own: {len(model.inputs_.features)}")
    print(f"numeric columns: {', '.join(model.inputs_.numbers) or 'none'}")
    for d in range(topology.depth) if args.level is None else [topology.level(args.level)]:
        if topology.n_states[d] > 1:
            print_level(model, d)
        for part in ("init", "trans", "end"):
            print_table(model, part, d, args.top)
    print_training(model)


def print_table(model: Tagger, part: str, d: int, top: int) -> None:
    """Print the strongest cells of a table of the layer that the topology allows."""
    import numpy as np

    from hscrf.fillers import child_name

    topology = model.topology_
    if f"{part}_{d}" not in model.crf_.tables or topology.n_states[d + 1] == 1:
        return
    table = model.crf_.tables[f"{part}_{d}"].detach().numpy()
    cells = [np.unravel_index(k, table.shape) for k in np.argsort(-np.abs(table), axis=None, kind="stable")]
    rows = []
    for cell in cells[: 20 * top]:
        parent, *children = map(int, cell)
        names = [child_name(topology, d + 1, child) for child in children]
        if all(topology.children[d][parent, topology.state(d + 1, name)] for name in names):
            rows.append(f"  {table[cell]:9.4f}  {' > '.join([str(topology.states[d][parent]), *names])}")
    if rows[:top]:
        print(f"\n  strongest {part} weights of level {topology.levels[d]}")
        print("\n".join(rows[:top]))
