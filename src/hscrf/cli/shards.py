"""Options for data beyond memory that several commands share: shards, and clusters."""

from __future__ import annotations

import argparse
import contextlib
import glob
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from hscrf.cli.options import Parser, open_model
from hscrf.cli.shell import UserError, note

if TYPE_CHECKING:
    from hscrf.estimator.predictor import Predictor
    from hscrf.io.recipe import Recipe
    from hscrf.scale import Shards

SEEN = 100  # sequences for detecting the schemes of labels


def add_shards(parser: Parser, required: bool = False) -> None:
    """Add the options for the folder of shards and for the cluster."""
    group = parser.add_argument_group("data beyond memory")
    group.add_argument(
        "--shards",
        metavar="FOLDER",
        required=required,
        help="pack the data into shards in this folder; later commands reuse them",
    )
    group.add_argument("--skip-bad", action="store_true", help="with --shards: leave out bad sequences and count them")
    group.add_argument(
        "--dask", metavar="ADDRESS", help="with --shards: the address of a Dask scheduler, or a number of local workers"
    )


def check_shards(args: argparse.Namespace) -> None:
    """Refuse options of shards without --shards, and shards of standard input."""
    if not args.shards:
        for option in ("dask", "skip_bad"):
            if getattr(args, option, None):
                raise UserError(f"--{option.replace('_', '-')} works on shards: give --shards FOLDER too")
    elif "-" in args.files:
        raise UserError("--shards may read its files more than once: expected files, not standard input")


def expanded_names(given: list[str]) -> list[str]:
    """The files that names and patterns match; - is standard input."""
    from hscrf.scale.sources import paths_of

    if "-" in given or not any(glob.has_magic(name) for name in given):
        return given
    return paths_of(given)


def shards_of(args: argparse.Namespace, recipe: Recipe, paths: list[str], unlabelled: bool = False) -> Shards:
    """The shards of files that are read by a recipe; its schemes are the model's."""
    from hscrf.scale import Shards
    from hscrf.scale.sources import FileSource, sources_of

    errors = "skip" if args.skip_bad else "raise"
    if recipe.features is None:
        return Shards(sources_of(paths, recipe, args.template, unlabelled, args.skip_bad), args.shards, errors)
    known = replace(recipe, scheme={})
    return Shards([FileSource(path, known, unlabelled) for path in paths], args.shards, errors)


def recipe_in(shards: Shards) -> Recipe:
    """The recipe that reads the files of shards."""
    from hscrf.scale.sources import FileSource

    first = shards.sources[0]
    assert isinstance(first, FileSource)
    return first.recipe


def open_shards(args: argparse.Namespace, paths: list[str], unlabelled: bool) -> tuple[Predictor, Shards]:
    """A model, and shards of files in the format of its recipe."""
    from hscrf.estimator.predictor import Predictor

    model, recipe = open_model(args, paths[0])
    if not isinstance(model, Predictor):
        raise UserError(f"{args.model} holds a neural model, which reads files without --shards only")
    model.n_jobs = getattr(args, "jobs", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the file is read again later, with its warnings
        first = list(islice(recipe.read(paths[0], unlabelled=unlabelled), SEEN))
    recipe = recipe.settled(first, model.topology_)
    model.scheme_ = dict(recipe.scheme)
    return model, shards_of(args, replace(recipe, features=recipe.features or ()), paths, unlabelled)


def print_skipped(shards: Shards) -> None:
    """Print the number of sequences left out, and the problem of the first."""
    if shards.skipped:
        note(f"{shards.skipped} bad sequences were left out; the first: {shards.problems[0]}")


@contextlib.contextmanager
def cluster_of(address: str | None) -> Iterator[Any]:
    """The client of a cluster, or of as many local workers as a number says; None without an address."""
    if not address:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise UserError("--dask needs Dask: pip install 'hscrf[dask]'") from None
    options: dict[str, Any] = {"address": address}
    if address.isdigit():
        options = {"n_workers": int(address), "threads_per_worker": 1, "dashboard_address": ":0"}
    try:
        client = Client(**options)
    except (OSError, ValueError) as error:
        raise UserError(f"--dask {address}: there is no scheduler to connect to ({error})") from None
    with client:
        note(f"cluster: {client.dashboard_link}")
        yield client
