"""The directive ``commands``: the help of every command of ``hscrf``, taken from its parser."""

import contextlib
import io
import os

from docutils import nodes
from docutils.parsers.rst import Directive

COMMANDS = ["fit", "pack", "predict", "score", "show", "plot", "studio", "demo"]


def help_of(command):
    """What ``hscrf COMMAND --help`` prints in a terminal of 88 columns."""
    from hscrf.cli.main import build_parser

    printed = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "88"
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            build_parser().parse_args([command, "--help"])
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return printed.getvalue().rstrip()


class Commands(Directive):
    """A section for each command with its help."""

    def run(self):
        sections = []
        for command in COMMANDS:
            section = nodes.section(ids=[f"hscrf-{command}"], names=[f"hscrf {command}"])
            section += nodes.title(text=f"hscrf {command}")
            section += nodes.literal_block(text=help_of(command), language="text", classes=["commandhelp"])
            self.state.document.note_implicit_target(section)
            sections.append(section)
        return sections


def setup(app):
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
