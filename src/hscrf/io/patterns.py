"""Patterns: the text form of template features, which users can read and edit.

``"word[-1]|word[0]={word[-1]}|{word[0]}"`` is text with cells: ``{column[offset]}`` shows a column of the token at an
offset, ``{column[offset]:lens argument}`` a function of it. Braces in text are doubled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from hscrf.errors import TemplateError
from hscrf.io.templates import NAMED_LENSES, Columns, Feature, Template, TemplateCell

HEAD = """\
# Patterns of features, one per line: text with cells {column[offset]} or {column[offset]:lens argument}.
# Lenses: lower; shape; prefix N; suffix N; find REGEX, findlower REGEX: what it matches first; test REGEX: true or
# false; lexicon NAME: B or I where a phrase of [lexicon.NAME] begins or continues; cluster NAME or cluster NAME N: the
# cluster of [cluster.NAME], or its first N characters. A pattern whose cell shows nothing gives no feature.
"""
_CELL = re.compile(r"(.+?)\[([+-]?\d+)\](?::(.*))?", re.DOTALL)
_ODD = re.compile(r"[{}]|\[[+-]?\d+\]")  # a column whose name has this is written by its number


def pattern_text(feature: Feature, columns: Sequence[str]) -> str:
    """A feature as a pattern.

    >>> pattern_text(("end=", TemplateCell("suffix", 0, 0, "2")), ["word"])
    'end={word[0]:suffix 2}'
    """
    return "".join(_escaped(part) if isinstance(part, str) else _cell_text(part, columns) for part in feature)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _cell_text(cell: TemplateCell, columns: Sequence[str]) -> str:
    name = columns[cell.column]
    place = f"{cell.column if _ODD.search(name) else name}[{cell.offset}]"
    if cell.lens == "x":
        return f"{{{place}}}"
    lens = next(name for name, lens in NAMED_LENSES.items() if lens == cell.lens)
    argument = f" {_balanced(cell.argument)}" if cell.argument else ""
    return f"{{{place}:{lens}{argument}}}"


def _balanced(argument: str) -> str:
    """A regular expression for a pattern: unmatched braces get a backslash, which does not change the meaning."""
    try:
        if _end_of_cell(argument + "}", 0) == len(argument):
            return argument
    except TemplateError:
        pass
    return re.sub(r"(\\.)|([{}])", lambda m: m[1] or "\\" + m[2], argument)


def feature_from(pattern: Any, columns: Columns) -> Feature:
    """A pattern as a feature, the reverse of :func:`pattern_text`."""
    if not isinstance(pattern, str):
        raise TemplateError(f"patterns have {pattern!r}, expected text such as 'word[-1]={{word[-1]}}'")
    parts: list[str | TemplateCell] = [""]
    place = 0
    while place < len(pattern):
        two = pattern[place : place + 2]
        if two in ("{{", "}}") or pattern[place] not in "{}":
            parts[-1] += pattern[place]  # type: ignore[operator]
            place += 2 if two in ("{{", "}}") else 1
        elif pattern[place] == "{":
            end = _end_of_cell(pattern, place + 1)
            parts += [_cell_from(pattern[place + 1 : end], columns), ""]
            place = end + 1
        else:
            raise TemplateError(f"the pattern {pattern!r} has a single }}, expected }}}} for text")
    return tuple(part for part in parts if part != "")


def _end_of_cell(pattern: str, place: int) -> int:
    """The place of the brace that closes a cell; braces within it are balanced or escaped by a backslash."""
    depth = 0
    while place < len(pattern):
        if pattern[place] == "\\":
            place += 1
        elif pattern[place] == "{":
            depth += 1
        elif pattern[place] == "}":
            if not depth:
                return place
            depth -= 1
        place += 1
    raise TemplateError(f"the pattern {pattern!r} is not understood, expected cells such as {{word[-1]}}")


def _cell_from(text: str, columns: Columns) -> TemplateCell:
    match = _CELL.fullmatch(text)
    if match is None:
        raise TemplateError(f"the cell {{{text}}} is not understood, expected column[offset] as in {{word[-1]}}")
    column, offset, seen = match.groups()
    lens, _, argument = (seen or "").strip().partition(" ")
    if lens and lens not in NAMED_LENSES:
        raise TemplateError(f"{{{text}}} has the lens {lens!r}, expected {', '.join(NAMED_LENSES)}")
    return TemplateCell(NAMED_LENSES[lens] if lens else "x", int(offset), columns.place(column), argument.strip())


def template_text(template: Template, columns: Sequence[str]) -> str:
    """A template as a TOML file of patterns, which ``hscrf fit --template`` and ``TokenFeatures`` read again."""
    lines = [HEAD + "patterns = ["]
    lines += [f"    {_toml(pattern_text(feature, columns))}," for feature in template.features]
    lines.append("]")
    if template.pairs:  # of a token and the one before it
        lines += ["", "# the same for pairs of neighbouring labels of the lowest level", "pairs = ["]
        lines += [f"    {_toml(pattern_text(feature, columns))}," for feature in template.pairs]
        lines.append("]")
    for lexicon in template.lexicons:
        lines += ["", f"[lexicon.{_toml(lexicon.name)}]", f"lower = {_toml(lexicon.lower)}"]
        lines.append(f"entries = {_toml(list(lexicon.entries))}")
    for clusters in template.clusters:
        lines += ["", f"[cluster.{_toml(clusters.name)}]", f"lower = {_toml(clusters.lower)}"]
        lines += ["", f"[cluster.{_toml(clusters.name)}.entries]"]
        pairs = zip(clusters.words, clusters.clusters, strict=True)
        lines += [f"{_toml(word)} = {_toml(cluster)}" for word, cluster in pairs]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value of TOML: that of JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
