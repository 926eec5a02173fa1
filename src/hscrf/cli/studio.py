"""hscrf studio: label sequences in a browser, with the model in the loop."""

from __future__ import annotations

import argparse
import os
import tempfile
import webbrowser
from functools import partial
from typing import TYPE_CHECKING

from hscrf.cli.options import FILES, Parser, add_layout, add_strict, open_model, recipe_of
from hscrf.cli.shell import UserError, note, number_above, source_of, whole
from hscrf.cli.studio_labels import EXPORTS, run_export, run_import

if TYPE_CHECKING:
    from hscrf.io.documents import Document
    from hscrf.io.recipe import Recipe
    from hscrf.studio.data.project import Project
    from hscrf.studio.server.studio import Studio

HELP = f"""\
Label sequences in a browser: fix a label, and the model predicts the others again.

A local page shows each sequence with the model's labels and their uncertainty. Each correction is saved at once and is
evidence for the other labels. New models are trained from all corrections in the background. Labels in the file are
kept. All work is stored in the database (--db); the same command continues it. Stop with Ctrl-C.

  hscrf studio data.jsonl -m model.hscrf --db labels.sqlite
  hscrf studio data.csv --labels labels.toml --db labels.sqlite     # no model yet
  hscrf studio export labels.sqlite -o out.jsonl --accepted-only    # or .csv, .txt, .segments.csv, .boris (BORIS),
                                      # .zip (ELAN), .TextGrid.zip (Praat), .json and .xml (Label Studio, its config)
  hscrf studio import labels.sqlite day_1.eaf day_2.TextGrid        # or .boris, .csv, .json, .zip: labels from there
  hscrf studio export labels.sqlite -o model.hscrf                  # the newest model
  hscrf studio notes.txt --labels labels.toml                       # plain text, one document per line (--format text)
  hscrf studio letters/ --labels labels.toml                        # a folder or several files: one document per file
  hscrf studio recordings/*.wav --labels labels.toml                # sound, 50 steps per second (--rate)
  hscrf studio data.csv -m model.hscrf --rate 25 --media films/     # films or sound next to the tracks
  hscrf studio agree ann.sqlite bob.sqlite                          # how well two people agree, level by level
  hscrf studio agree ann.sqlite bob.sqlite --db both.sqlite         # and settle their differences
  hscrf studio data.csv --labels labels.toml --annotator ann --annotator bob   # an address for each person
  hscrf studio --demo

--labels is for sequences without a model. The file names levels from top to bottom and the labels of each:
  [levels]
  activity = ["cooking", "eating"]
  action = ["walk", "sit", "stand"]
Levels at the bottom whose segments are longer than a step are named by a first line: lasting = ["action"]

{FILES}"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "data", nargs="*", help="the file to label, files of text, WAV files; or: export DATABASE; or: agree A B"
    )
    parser.add_argument("-m", "--model", help="a model that hscrf fit wrote")
    parser.add_argument("--db", metavar="FILE", help="database of all work (default: the data's name with .sqlite)")
    parser.add_argument("--port", type=whole(0), help="port of the page (default: the last one used; 0: any free port)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument("--rate", type=number_above(0), metavar="HZ", help="steps per second, for times in seconds")
    parser.add_argument(
        "--media", metavar="FOLDER", help="sound or film of each sequence: a file of the same name, whatever its ending"
    )
    parser.add_argument(
        "--tolerance", type=whole(0), default=2, metavar="STEPS", help="of equal borders (default: %(default)s)"
    )
    parser.add_argument(
        "--annotator",
        action="append",
        default=[],
        metavar="NAME",
        help="another person who labels at the same time, at an address of their own (may be repeated)",
    )
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
    parser.add_argument("-o", "--output", metavar="FILE", help="file of an export; its ending gives the format")
    parser.add_argument("--to", choices=tuple(dict.fromkeys(EXPORTS.values())), help="format of export")
    parser.add_argument("--accepted-only", action="store_true", help="export only sequences that were accepted whole")
    add_strict(parser)
    add_layout(parser)


def run(args: argparse.Namespace) -> int:
    if args.demo:
        return run_demo(args)
    if args.data[:1] == ["export"]:
        return run_export(args)
    if args.data[:1] == ["import"]:
        return run_import(args)
    if args.data[:1] == ["agree"]:
        return run_agree(args)
    from hscrf.cli.studio_text import is_text, name_of, text_project

    if args.model and args.labels:
        raise UserError("a model knows its labels: give -m or --labels, not both")
    recordings = bool(args.data) and all(name.lower().endswith(".wav") for name in args.data)
    if not recordings and is_text(args):
        database = args.db or name_of(args.data) + ".sqlite"
        return serve(args, [(with_media(args, text_project(args, database)), database)])
    if not recordings and len(args.data) != 1:
        raise UserError("give one file to label, or files of plain text or WAV, or: export DATABASE, or --demo")
    name = os.path.dirname(args.data[0]) or "recordings" if recordings else os.path.splitext(args.data[0])[0]
    database = args.db or name + ".sqlite"
    if not recordings:
        (args.data,) = args.data
    project = recorded(args, database) if recordings else project_of(args, database)
    return serve(args, [(with_media(args, project), database)])


def with_media(args: argparse.Namespace, project: Project) -> Project:
    """The project with its rate, and with the files of its sequences in a folder."""
    from dataclasses import replace

    from hscrf.studio.server.media import media_in

    if args.rate is not None:
        project = replace(project, rate=args.rate)
    if args.media is None:
        return project
    found = media_in(args.media, [item.name for item in project.items])
    if not found:
        raise UserError(
            f"{args.media} has no sound or film with the name of a sequence, such as {project.items[0].name}"
        )
    missing = len(project.items) - len(found)
    if missing:
        note(f"{missing} of {len(project.items)} sequences have no file in {args.media}")
    return replace(project, media={**project.media, **found})


def recorded(args: argparse.Namespace, database: str) -> Project:
    """WAV files, each a sequence of loudness in bands of frequency."""
    import numpy as np

    from hscrf.families.loading import load
    from hscrf.io.audio import read_audio
    from hscrf.io.labelfile import read_label_file
    from hscrf.studio.data.project import Project
    from hscrf.studio.data.sequences import InputSequence, uniquely_named

    if not args.model and not args.labels:
        raise UserError("recordings have no labels: give --labels, a file that names levels and labels, or a model")
    rate = args.rate or 50.0
    documents = [read_audio(path, rate) for path in args.data]
    model = load(args.model) if args.model else None
    items = uniquely_named(InputSequence(d.name, d.tokens, np.array(d.tokens)) for d in documents)
    return Project(
        items,
        read_label_file(args.labels).topology if model is None else model.topology_,
        model=model,
        kind="time",
        name=os.path.basename(database),
        train_after=args.train_after,
        column_names=documents[0].columns,
        rate=rate,
        media={item.name: os.path.abspath(path) for item, path in zip(items, args.data, strict=True)},
    )


def serve(args: argparse.Namespace, projects: list[tuple[Project, str]]) -> int:
    """Serve projects until Ctrl-C."""
    from hscrf.studio.server.serving import Server
    from hscrf.studio.server.studio import Studio

    servers: list[Server] = []
    try:
        for project, database in projects:
            studio = Studio(project, database)
            try:
                if project.demo:
                    train_first(studio)
                servers.append(Server(studio, args.port if not servers else 0))
            except BaseException:
                studio.close()
                raise
            servers[-1].on_new_address = partial(print_address, project.name)
            servers[-1].on_new_address_of = partial(print_address_of, project.name)
            print_address(project.name, servers[-1].url)
            for name in args.annotator:
                print_address_of(project.name, name, servers[-1].invite(name))
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


def train_first(studio: Studio) -> None:
    """Train the first model of a demonstration before its page opens, so that it has suggestions at once."""
    if studio.workspace.model_store.suggester is None and studio.trainer.labelled():
        note(f"{studio.project.name}: training a first model")
        studio.trainer.train()
        studio.trainer.wait()


def print_address(name: str, url: str) -> None:
    """Print the address of a project, which admits one browser."""
    print(f"{name}: {url}", flush=True)


def print_address_of(project: str, name: str, url: str) -> None:
    """Print the address of another person."""
    print(f"{project}, for {name}: {url}", flush=True)


def run_demo(args: argparse.Namespace) -> int:
    """Serve generated sequences; without --db nothing is kept."""
    from hscrf.studio.demonstration import DEMOS, demo

    which = DEMOS if args.demo == "both" else (args.demo,)
    with tempfile.TemporaryDirectory() as folder:
        base = args.db or os.path.join(folder, "demo.sqlite")
        root, ending = os.path.splitext(base)
        names = [base if len(which) == 1 else f"{root}-{name}{ending}" for name in which]
        return serve(args, [(demo(name), path) for name, path in zip(which, names, strict=True)])


def run_agree(args: argparse.Namespace) -> int:
    """Print the agreement of two people; with --db, make a database for settling their differences."""
    from hscrf.studio.data.evidence import levels_of
    from hscrf.studio.exchange.agreement import (
        agreement,
        annotations_of,
        common_annotations,
        common_settings,
        settle,
        settled_project,
        table_of,
    )

    if len(args.data) != 3:
        raise UserError("expected: hscrf studio agree A.sqlite B.sqlite [--db BOTH.sqlite]")
    (topology, one, first), (other_topology, other, second) = map(annotations_of, args.data[1:])
    names = (first, second) if first != second else (f"{first} (A)", f"{second} (B)")
    if topology.states != other_topology.states or topology.levels != other_topology.levels:
        raise UserError(f"{args.data[1]} and {args.data[2]} have different levels or labels: nothing can be compared")
    pairs = list(common_annotations(one, other))
    if not pairs:
        raise UserError("there is no sequence that both have labelled")
    print(table_of(agreement(one, other, levels_of(topology), args.tolerance), names, args.tolerance))
    if args.db is None:
        return 0
    if not os.path.exists(args.db):
        count = settle(args.db, topology, pairs, names, common_settings(*args.data[1:]))
        note(f"{args.db}: {count} differences to settle; sequences that have some come first (keys < and >)")
    return serve(args, [(with_media(args, settled_project(args.db, topology)), args.db)])


# -- projects from files


def project_of(args: argparse.Namespace, database: str) -> Project:
    """The project that the options describe: sequences of a file, and a model or initial labels."""
    return project_with_model(args, database) if args.model else project_without_model(args, database)


def project_with_model(args: argparse.Namespace, database: str) -> Project:
    """The sequences of a file with a model."""
    from hscrf.cli.recipe import save_model
    from hscrf.cli.studio_items import items_from
    from hscrf.cli.studio_text import text_project
    from hscrf.studio.data.project import Project, save_plainly

    model, recipe = open_model(args, args.data)
    if recipe.format == "text":
        args.data = [args.data]
        return text_project(args, database)
    documents = list(recipe.read(source_of(args.data), unlabelled=True))
    knows_files = recipe.features is not None
    return Project(
        items_from(documents, recipe, model.topology_, args.strict),
        model.topology_,
        model=model,
        column_names=columns_of(recipe, documents),
        kind=args.show,
        name=os.path.basename(database),
        train_after=args.train_after,
        save=(lambda path, new: save_model(path, new, recipe)) if knows_files else save_plainly,
    )


def project_without_model(args: argparse.Namespace, database: str) -> Project:
    """The sequences of a file without a model: labels come from --labels, or from the file itself."""
    from hscrf.cli.recipe import learn_labels, save_model, with_pairs
    from hscrf.cli.studio_items import items_from
    from hscrf.cli.studio_text import print_columns
    from hscrf.estimator.hscrf import HSCRF
    from hscrf.estimator.specified import default_specifications
    from hscrf.io.labelfile import read_label_file
    from hscrf.studio.data.project import Project

    topology = None if args.labels is None else read_label_file(args.labels).topology
    if topology is not None and not args.levels:
        args.levels = ",".join(topology.levels[1:])
    recipe = recipe_of(args)
    if topology is not None and recipe.levels != topology.levels[1:]:
        raise UserError(f"--levels are {', '.join(recipe.levels)}, but {args.labels} has {topology.levels[1:]}")
    documents = list(recipe.read(source_of(args.data), unlabelled=topology is not None))
    print_columns(args.data, recipe, documents)
    recipe = recipe.resolved(documents, args.template)
    if topology is None:
        topology, _, _ = learn_labels(documents, recipe.scheme)
    pairs = recipe.template is not None and recipe.template.pairs
    features = with_pairs(default_specifications(topology), recipe.template, topology) if pairs else None
    return Project(
        items_from(documents, recipe, topology, args.strict),
        topology,
        column_names=columns_of(recipe, documents),
        estimator=HSCRF(features=features),
        kind=args.show,
        name=os.path.basename(database),
        train_after=args.train_after,
        save=lambda path, new: save_model(path, new, recipe.with_levels(new.topology_.levels[1:])),
    )


def columns_of(recipe: Recipe, documents: list[Document]) -> tuple[str, ...]:
    """The names of the columns of a table or a column file; none where tokens are words or sets of features."""
    if recipe.format == "jsonl":
        return tuple(documents[0].columns)
    return tuple(recipe.features or ()) if recipe.format in ("columns", "table") else ()
