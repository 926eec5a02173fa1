"""hscrf studio export and import: labels and models out of a database, and labels into it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hscrf.cli.shell import UserError, note

if TYPE_CHECKING:
    from hscrf.studio.data.project import Project

EXPORTS = {
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".tsv": "columns",
    ".txt": "columns",
    ".conll": "columns",
    ".json": "label-studio",
    ".xml": "label-config",
    ".segments.csv": "segments",
    ".boris": "boris",
    ".textgrid.zip": "textgrid",
    ".zip": "elan",
    ".hscrf": "model",
}


def run_export(args: argparse.Namespace) -> int:
    """Write the labels of a database, or its newest model; a studio may be working on it."""
    from hscrf.files.replacing import replacing
    from hscrf.studio.exchange.formats import export, has_numbers
    from hscrf.studio.server.studio import Studio

    if len(args.data) != 2 or not args.output:
        raise UserError("expected: hscrf studio export DATABASE -o FILE")
    form = args.to or export_format(args.output)
    if form is None:
        raise UserError(f"the ending of {args.output!r} names no format: expected {', '.join(EXPORTS)}, or give --to")
    studio = Studio(stored_project(args.data[1], args.model, predict=form != "model"), args.data[1], reading=True)
    try:
        if form == "columns" and not args.output.lower().endswith(".tsv") and has_numbers(studio):
            raise UserError(
                f"{args.output}: column files hold words, but these are numbers: write .csv, .tsv or .jsonl"
            )
        found = export(studio, form, args.accepted_only)
    finally:
        studio.close()
    with replacing(args.output) as file:
        file.write(found.content)
    done = sum(tracked.state.status == "done" for tracked in studio.workspace.sequences.values())
    note(f"{args.output}: {form}, {done} of {len(studio.workspace.sequences)} sequences accepted whole")
    return 0


def export_format(path: str) -> str | None:
    """The format of the longest ending that a file's name has."""
    found = [ending for ending in EXPORTS if path.lower().endswith(ending)]
    return EXPORTS[max(found, key=len)] if found else None


def run_import(args: argparse.Namespace) -> int:
    """Import labels from files of other programs into a database."""
    from hscrf.studio.data.problems import Invalid
    from hscrf.studio.exchange.formats import take_file
    from hscrf.studio.server.studio import Studio

    if len(args.data) < 3:
        raise UserError("expected: hscrf studio import DATABASE FILE [FILE ...]")
    database = args.data[1]
    if not os.path.exists(database):
        raise UserError(f"{database}: there is no such database")
    studio = Studio(stored_project(database, None, predict=False), database)
    refused = 0
    try:
        for path in args.data[2:]:
            try:
                found = take_file(studio, os.path.basename(path), Path(path).read_bytes())
            except Invalid as error:
                raise UserError(str(error)) from None
            refused += len(found["refused"])
            for entry in found["refused"]:
                note(f"{path}: {entry['name'] and entry['name'] + ': '}{entry['message']}")
            note(f"{path}: {import_summary(found)}")
    finally:
        studio.close()
    return 1 if refused else 0


def import_summary(found: dict[str, Any]) -> str:
    """The result of an import as text."""
    words = f"{found['labels']} labels in {found['sequences']} sequences, {len(found['refused'])} refused"
    if found["moved"]:
        words += f"; {found['moved']} borders were moved to the nearest step"
    if found["left_out"]:
        words += f"; tiers without a level were left out: {', '.join(found['left_out'])}"
    return words


def stored_project(database: str, model_path: str | None, predict: bool) -> Project:
    """The sequences of a database, and a model if its file says how sequences are read."""
    import json

    from hscrf.cli.recipe import load_model
    from hscrf.io.documents import Document
    from hscrf.studio.data.database import Database
    from hscrf.studio.data.project import Project
    from hscrf.studio.data.sequences import InputSequence
    from hscrf.topology import Topology

    with Database(database, reading=True) as opened:
        topology = Topology.from_dict(opened.setting("topology"))
        rows = [(row.name, json.loads(opened.observations(row.id))) for row in opened.sequences()]
        files = [Path(opened.path + ".models") / entry["path"] for entry in opened.models()]
    path = model_path or next((str(file) for file in reversed(files) if file.is_file()), None)
    model, recipe = load_model(path) if path and predict else (None, None)
    if recipe is None:
        return Project([], topology)
    items = [InputSequence(name, tokens, recipe.observe(Document(tokens))) for name, tokens in rows]
    return Project(items, topology, model=model)
