"""hscrf studio: label sequences in a browser, with the model in the loop."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import webbrowser
from functools import partial
from pathlib import Path
from typing import Any

from hscrf.cli.options import FILES, Parser, add_layout, open_model, recipe_of
from hscrf.cli.shell import UserError, note, source_of, whole

EXPORTS = {".jsonl": "jsonl", ".csv": "csv", ".json": "label-studio", ".zip": "elan", ".hscrf": "model"}
HELP = f"""\
Label sequences in a browser: fix one label, and the rest follows.

A local page shows each sequence with the model's labels and its doubts. Every correction is kept at once and is
evidence for the rest. New models are trained from all corrections in the background. Labels that the file has are
kept. All work is in the database (--db); the same command goes on with it. Stop with Ctrl-C.

  hscrf studio data.jsonl -m model.hscrf --db labels.sqlite
  hscrf studio data.csv --labels labels.toml --db labels.sqlite     # no model yet
  hscrf studio export labels.sqlite -o out.jsonl --accepted-only    # or .csv, .txt, .json (Label Studio), .zip (ELAN)
  hscrf studio export labels.sqlite -o model.hscrf                  # the newest model
  hscrf studio --demo

labels.toml names levels from top to bottom and the labels of each:
  [levels]
  activity = ["cooking", "eating"]
  action = ["walk", "sit", "stand"]
Levels at the bottom whose segments are longer than a step are named by a first line: lasting = ["action"]

{FILES}"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("data", nargs="*", help="the file to label; or: export DATABASE")
    parser.add_argument("-m", "--model", help="a model that hscrf fit wrote")
    parser.add_argument("--labels", metavar="FILE", help="levels and their labels (TOML), where there is no model")
    parser.add_argument("--db", metavar="FILE", help="keeps all work (default: the data's name with .sqlite)")
    parser.add_argument("--port", type=whole(0), help="default: that of the last time; 0: any")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument("--show", choices=("text", "time"), help="sequences as text or as time (default: by the data)")
    parser.add_argument(
        "--train-after",
        type=whole(1),
        default=10,
        metavar="N",
        help="train after N more accepted sequences (default: %(default)s)",
    )
    parser.add_argument("--template", help="features of words, as for hscrf fit, where there is no model")
    parser.add_argument(
        "--demo", nargs="?", const="both", choices=("both", "days", "citations"), help="generated days and citations"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="of export; its ending says the format")
    parser.add_argument("--to", choices=("jsonl", "columns", "csv", "label-studio", "elan"), help="format of export")
    parser.add_argument("--accepted-only", action="store_true", help="export only sequences that were accepted whole")
    add_layout(parser)


def run(args: argparse.Namespace) -> int:
    if args.demo:
        return run_demo(args)
    if args.data[:1] == ["export"]:
        return run_export(args)
    if len(args.data) != 1:
        raise UserError("give one file to label, or: export DATABASE, or --demo")
    (args.data,) = args.data
    if args.model and args.labels:
        raise UserError("a model knows its labels: give -m or --labels, not both")
    database = args.db or os.path.splitext(args.data)[0] + ".sqlite"
    return serve(args, [(project_of(args, database), database)])


def serve(args: argparse.Namespace, projects: list[tuple[Any, str]]) -> int:
    """Serve projects until Ctrl-C."""
    from hscrf.studio.serving import Server
    from hscrf.studio.studio import Studio

    servers: list[Any] = []
    try:
        for project, database in projects:
            studio = Studio(project, database)
            try:
                servers.append(Server(studio, args.port if not servers else 0))
            except BaseException:
                studio.close()
                raise
            servers[-1].tell = partial(tell, project.name)
            tell(project.name, servers[-1].url)
            note(f"work is kept in {database}; stop with Ctrl-C")
        for server in servers[1:]:
            server.start()
        if not args.no_browser:
            for server in servers:
                webbrowser.open(server.url)
        servers[0].run()
    finally:
        for server in servers[1:]:
            server.stop()
    return 0


def tell(name: str, url: str) -> None:
    """Print the address of a project; it lets one browser in."""
    print(f"{name}: {url}", flush=True)


def run_demo(args: argparse.Namespace) -> int:
    """Serve generated sequences; without --db they are gone afterwards."""
    from hscrf.studio.demonstration import DEMOS, demo

    which = DEMOS if args.demo == "both" else (args.demo,)
    with tempfile.TemporaryDirectory() as folder:
        base = args.db or os.path.join(folder, "demo.sqlite")
        root, ending = os.path.splitext(base)
        names = [base if len(which) == 1 else f"{root}-{name}{ending}" for name in which]
        return serve(args, [(demo(name), path) for name, path in zip(which, names, strict=True)])


# -- projects from files


def project_of(args: argparse.Namespace, database: str) -> Any:
    """What the options describe: sequences of a file, and a model or the labels to begin with."""
    return modelled(args, database) if args.model else cold(args, database)


def modelled(args: argparse.Namespace, database: str) -> Any:
    """The sequences of a file with a model."""
    from hscrf.cli.recipe import save_model
    from hscrf.studio.project import Project, save_plainly

    model, recipe = open_model(args, args.data)
    documents = list(recipe.read(source_of(args.data), unlabelled=True))
    knows_files = recipe.features is not None
    return Project(
        items_from(documents, recipe, model.topology_),
        model.topology_,
        model=model,
        kind=args.show,
        name=os.path.basename(database),
        train_after=args.train_after,
        save=(lambda path, new: save_model(path, new, recipe)) if knows_files else save_plainly,
    )


def cold(args: argparse.Namespace, database: str) -> Any:
    """The sequences of a file without any model: labels come from --labels, or from the file itself."""
    from hscrf.cli.recipe import learn_labels, save_model, with_pairs
    from hscrf.estimator.hscrf import HSCRF
    from hscrf.features.specifications import default_specifications
    from hscrf.studio.project import Project

    topology = None if args.labels is None else read_labels_file(args.labels)
    if topology is not None and not args.levels:
        args.levels = ",".join(topology.levels[1:])
    recipe = recipe_of(args)
    if topology is not None and recipe.levels != topology.levels[1:]:
        raise UserError(f"--levels are {', '.join(recipe.levels)}, but {args.labels} has {topology.levels[1:]}")
    documents = list(recipe.read(source_of(args.data), unlabelled=topology is not None))
    recipe = recipe.resolved(documents, args.template)
    if topology is None:
        topology, _ = learn_labels(documents, recipe.scheme)
    features = with_pairs(default_specifications(topology), recipe.template, topology)
    return Project(
        items_from(documents, recipe, topology),
        topology,
        estimator=HSCRF(features=features),
        kind=args.show,
        name=os.path.basename(database),
        train_after=args.train_after,
        save=lambda path, new: save_model(path, new, recipe_for(recipe, new.topology_)),
    )


def recipe_for(recipe: Any, topology: Any) -> Any:
    """The recipe of a model that may lack levels."""
    from dataclasses import replace

    levels = topology.levels[1:]
    return replace(recipe, levels=levels, scheme={k: v for k, v in recipe.scheme.items() if k in levels})


def read_labels_file(path: str) -> Any:
    """The topology that a TOML file describes."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    from hscrf.studio.project import topology_from

    try:
        with open(path, "rb") as file:
            return topology_from(tomllib.load(file))
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


def items_from(documents: list[Any], recipe: Any, topology: Any) -> list[Any]:
    """Sequences with what a model sees of them and the labels they have."""
    from hscrf import io
    from hscrf.studio.items import Item, uniquely_named

    found = []
    for document in documents:
        labels = io.to_labels(document, topology, recipe.scheme) if document.labels else None
        tokens = [dict(token) if isinstance(token, dict) else token for token in document.tokens]
        found.append(Item(document.name, tokens, recipe.observe(document), labels))
    return uniquely_named(found)


# -- export


def run_export(args: argparse.Namespace) -> int:
    """Write the labels of a database, or its newest model; a studio may be working on it."""
    from hscrf.replacing import replacing
    from hscrf.studio.formats import export
    from hscrf.studio.studio import Studio

    if len(args.data) != 2 or not args.output:
        raise UserError("expected: hscrf studio export DATABASE -o FILE")
    form = args.to or EXPORTS.get(Path(args.output).suffix, "columns")
    studio = Studio(stored_project(args.data[1], args.model, predict=form != "model"), args.data[1], reading=True)
    try:
        found = export(studio, form, args.accepted_only)
    finally:
        studio.close()
    with replacing(args.output) as file:
        file.write(found.content)
    done = sum(sheet.state.status == "done" for sheet in studio.desk.sheets.values())
    note(f"{args.output}: {form}, {done} of {len(studio.desk.sheets)} sequences accepted whole")
    return 0


def stored_project(database: str, model_path: str | None, predict: bool) -> Any:
    """The sequences of a database; a model answers for them if its file says how sequences are read."""
    import json

    from hscrf.cli.recipe import load_model
    from hscrf.io.documents import Document
    from hscrf.studio.items import Item
    from hscrf.studio.project import Project
    from hscrf.studio.store import Store
    from hscrf.topology import Topology

    with Store(database, reading=True) as store:
        topology = Topology.from_dict(store.setting("topology"))
        rows = [(row.name, json.loads(store.observations(row.id))) for row in store.sequences()]
        files = [Path(store.path + ".models") / entry["path"] for entry in store.models()]
    path = model_path or next((str(file) for file in reversed(files) if file.is_file()), None)
    model, recipe = load_model(path) if path and predict else (None, None)
    if recipe is None:
        return Project([], topology)
    items = [Item(name, tokens, recipe.observe(Document(tokens))) for name, tokens in rows]
    return Project(items, topology, model=model)
