"""The directive ``commands``: the help of every command of ``hscrf``, taken from its parser."""

import argparse
import re
import textwrap
from itertools import groupby

from docutils import nodes
from docutils.parsers.rst import Directive

COMMANDS = ["fit", "pack", "predict", "score", "show", "plot", "studio", "demo"]
LITERAL = re.compile(r"(--[a-z][\w-]*|(?<!\w)'[^']+'(?!\w))")


def parser_of(command):
    """The parser of one command."""
    from hscrf.cli.main import build_parser

    [choices] = [each for each in build_parser()._actions if isinstance(each, argparse._SubParsersAction)]
    return choices.choices[command]


def paragraph(content):
    """A paragraph with options and quoted words as code: typographic dashes and quotes would change them."""
    found = nodes.paragraph()
    for k, part in enumerate(LITERAL.split(content)):
        found += nodes.literal(text=part.strip("'")) if k % 2 else nodes.Text(part)
    return found


def text(content):
    """Paragraphs of a help text; what is indented there stays as it is."""
    for part in content.strip().split("\n\n"):
        for indented, lines in groupby(part.splitlines(), key=lambda line: line.startswith(" ")):
            if indented:
                yield nodes.literal_block(text=textwrap.dedent("\n".join(lines)), language="text")
            else:
                yield paragraph(" ".join(lines))


def options(group, formatter):
    """A list of the options of one group, with their help."""
    found = nodes.definition_list()
    for action in group._group_actions:
        if action.help == argparse.SUPPRESS:
            continue
        term = nodes.term()
        term += nodes.literal(text=formatter._format_action_invocation(action))
        meaning = nodes.definition()
        if action.help:
            meaning += paragraph(" ".join(formatter._expand_help(action).split()))
        entry = nodes.definition_list_item()
        entry += [term, meaning]
        found += entry
    return found


def section_of(command):
    """Usage, description and options of a command."""
    parser = parser_of(command)
    formatter = parser._get_formatter()
    section = nodes.section(ids=[f"hscrf-{command}"], names=[f"hscrf {command}"], classes=["commandhelp"])
    section += nodes.title(text=f"hscrf {command}")
    section += list(text(parser.description or ""))
    for group in parser._action_groups:
        found = options(group, formatter)
        if found.children:
            section += nodes.rubric(text=group.title)
            section += list(text(group.description or ""))
            section += found
    section += list(text(parser.epilog or ""))
    return section


class Commands(Directive):
    """A section for each command with its help."""

    def run(self):
        sections = [section_of(command) for command in COMMANDS]
        for section in sections:
            self.state.document.note_implicit_target(section)
        return sections


def setup(app):
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
