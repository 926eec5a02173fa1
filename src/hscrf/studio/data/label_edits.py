"""Edits of labels: their effect on the hierarchy and on earlier labels, and their undoing.

A log of edits is kept in the database. Each entry has the number of the last event before it, so that older events are
read with the names of today. Events themselves are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hscrf.studio.data.problems import Invalid
from hscrf.topology import Topology

Change = Mapping[str, Any]  # {"do": "add", "level": ..., "label": ...} and other fields of the kind
Log = Sequence[Mapping[str, Any]]  # of {"edit": number, "kind": "do" or "undo", "at": event, "changes": [...]}
KINDS = ("add", "rename", "remove", "move", "look")
HUES = 9
LONGEST = 200  # characters of a name
WORDS = 2000  # characters of a description


def checked(changes: Any) -> list[dict[str, Any]]:
    """Changes with only what belongs to them; raises :class:`Invalid` where one cannot be read."""
    if not isinstance(changes, list) or not changes:
        raise Invalid("changes are missing, expected a list of at least one", "changes")
    return [_checked(change) for change in changes]


def _checked(change: Any) -> dict[str, Any]:
    kind = change.get("do") if isinstance(change, Mapping) else None
    if kind not in KINDS:
        raise Invalid(f"a change is {kind!r}, expected one of {', '.join(KINDS)}", "do")
    found = {"do": kind, "level": _name(change.get("level"), "level"), "label": _name(change.get("label"), "label")}
    if kind == "rename":
        found["to"] = _name(change.get("to"), "to")
    elif kind == "look":
        found["look"] = _look(change.get("look"))
    elif kind == "move" or (kind == "add" and "parents" in change):
        parents = change.get("parents")
        if not isinstance(parents, list) or not parents:
            raise Invalid(f"label {found['label']!r} would be allowed in no label of the level above", "parents")
        found["parents"] = [_name(parent, "parents") for parent in parents]
    return found


def _name(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST or not value.isprintable():
        raise Invalid(f"{field} is {value!r}, expected a name of 1 to {LONGEST} characters", field)
    return value.strip()


def _look(look: Any) -> dict[str, Any]:
    """Colour, description and key of a label; None takes one away."""
    checks: dict[str, Callable[[Any], bool]] = {
        "hue": lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v < HUES,
        "words": lambda v: isinstance(v, str) and len(v) <= WORDS,
        "key": lambda v: isinstance(v, str) and len(v) == 1 and v.isprintable() and not v.isspace(),
    }
    if not isinstance(look, Mapping) or not look or not set(look) <= set(checks):
        raise Invalid(f"look is {look!r}, expected some of {', '.join(checks)}", "look")
    for name, value in look.items():
        if value is not None and not checks[name](value):
            raise Invalid(f"{name} of a label is {value!r}, which it cannot be", name)
    return dict(look)


# -- the log


def active(log: Log) -> Iterator[Change]:
    """The changes that are in force, oldest first."""
    undone = {entry["edit"] for entry in log if entry["kind"] == "undo"}
    for entry in log:
        if entry["kind"] == "do" and entry["edit"] not in undone:
            yield from entry["changes"]


def last_edit(log: Log) -> Mapping[str, Any] | None:
    """The newest edit that is in force: the one that is undone next."""
    undone = {entry["edit"] for entry in log if entry["kind"] == "undo"}
    return next((entry for entry in reversed(log) if entry["kind"] == "do" and entry["edit"] not in undone), None)


def since(log: Log, event: int) -> Iterator[Change]:
    """The changes after an event, with undone edits inverted."""
    undone = {entry["edit"] for entry in log if entry["kind"] == "undo"}
    begun = {entry["edit"]: entry["at"] for entry in log if entry["kind"] == "do"}
    for entry in log:
        if event > entry["at"]:
            continue
        if entry["kind"] == "do" and entry["edit"] not in undone:
            yield from entry["changes"]
        elif entry["kind"] == "undo" and event > begun[entry["edit"]]:
            yield from map(_inverse, reversed(entry["changes"]))


def _inverse(change: Change) -> Change:
    if change["do"] == "rename":
        return {**change, "label": change["to"], "to": change["label"]}
    return {**change, "do": {"add": "remove", "remove": "add"}.get(change["do"], change["do"])}


def looks(log: Log) -> dict[str, dict[str, dict[str, Any]]]:
    """Colour, description and key of labels: level -> label -> what was given.

    >>> changes = [{"do": "look", "level": "tag", "label": "N", "look": {"hue": 3}},
    ...            {"do": "rename", "level": "tag", "label": "N", "to": "noun"}]
    >>> looks([{"edit": 1, "kind": "do", "at": 0, "changes": changes}])
    {'tag': {'noun': {'hue': 3}}}
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for change in active(log):
        rows = found.setdefault(change["level"], {})
        if change["do"] == "look":
            row = {**rows.get(change["label"], {}), **change["look"]}
            rows[change["label"]] = {name: value for name, value in row.items() if value not in (None, "")}
        elif change["do"] == "rename" and change["label"] in rows:
            rows[change["to"]] = rows.pop(change["label"])
        elif change["do"] == "remove":
            rows.pop(change["label"], None)
    return {level: {label: row for label, row in rows.items() if row} for level, rows in found.items() if any(rows)}


# -- events


def translated(kind: str, body: dict[str, Any], event: int, log: Log) -> tuple[str, dict[str, Any]]:
    """An event, given by its number, in the names of today; where its label was removed, the cells are unknown.

    >>> change = {"do": "rename", "level": "tag", "label": "N", "to": "noun"}
    >>> log = [{"edit": 1, "kind": "do", "at": 7, "changes": [change]}]
    >>> translated("label", {"level": "tag", "start": 0, "stop": 2, "label": "N"}, 7, log)
    ('label', {'level': 'tag', 'start': 0, 'stop': 2, 'label': 'noun'})
    """
    for change in since(log, event):
        if change["do"] in ("rename", "remove"):
            to = change["to"] if change["do"] == "rename" else None
            kind, body = _renamed_in(kind, body, change["level"], change["label"], to)
    return kind, body


def _renamed_in(kind: str, body: dict[str, Any], level: str, label: str, to: str | None) -> tuple[str, dict[str, Any]]:
    """An event in which a label has another name, or none."""
    if kind in ("label", "segment") and (body["level"], body["label"]) == (level, label):
        if to is None:
            return "release", {key: body[key] for key in ("level", "start", "stop")}
        return kind, {**body, "label": to}
    if kind == "accept" and level in body["segments"]:
        rows = _rows(body["segments"][level], label, to)
        fewer = len(rows) < len(body["segments"][level])
        kept = {key: value for key, value in body.items() if not (fewer and key == "whole")}
        return kind, {**kept, "segments": {**body["segments"], level: rows}}
    if kind == "import" and level in body["levels"]:
        former = body["levels"][level].get("labels", [])
        rows = _rows(former, label, to)
        kept = {key: value for key, value in body.items() if not (len(rows) < len(former) and key == "complete")}
        return kind, {**kept, "levels": {**body["levels"], level: {**body["levels"][level], "labels": rows}}}
    if kind == "differ":
        names = {label: to}
        rows = [[lv, i, j, *(names.get(one, one) if lv == level else one for one in said)]
                for lv, i, j, *said in body["rows"]]  # fmt: skip
        return kind, {**body, "rows": [row for row in rows if None not in row]}
    return kind, body


def _rows(rows: Sequence[Sequence[Any]], label: str, to: str | None) -> list[list[Any]]:
    """Segments [start, stop, label] with another name, without those that have none."""
    return [[i, j, to if name == label else name] for i, j, name in rows if name != label or to is not None]


# -- the hierarchy


def edited(topology: Topology, changes: Iterator[Change] | Sequence[Change], strict: bool = False) -> Topology:
    """The hierarchy after some changes. What does not apply is left out, or raises :class:`Invalid` if ``strict``.

    >>> narrow = Topology({"phrase": ["NP", "VP"], "tag": ["N", "V"]}, children={"phrase": {"NP": ["N"]}})
    >>> moved = edited(narrow, [{"do": "rename", "level": "tag", "label": "N", "to": "noun"},
    ...                         {"do": "add", "level": "tag", "label": "D", "parents": ["NP"]}])
    >>> moved.states[2], moved.children[1].astype(int).tolist()
    (('noun', 'V', 'D'), [[1, 0, 1], [1, 1, 0]])
    """
    changes = list(changes)
    if not changes:
        return topology
    arguments = topology.to_dict()
    for change in changes:
        problem = _problem(arguments, change)
        if problem and strict:
            raise Invalid(problem, "label")
        if not problem:
            arguments = DO[change["do"]](arguments, change)
    try:
        return Topology(**arguments)
    except ValueError as error:
        raise Invalid(f"the labels cannot be changed like this: {error}", "changes") from None


def _problem(arguments: Mapping[str, Any], change: Change) -> str:
    """Why a change does not apply; empty if it does."""
    level, label, levels = change["level"], change["label"], arguments["levels"]
    if level not in levels:
        return f"there is no level {level!r}"
    new = {"add": label, "rename": change.get("to")}.get(change["do"])
    if change["do"] != "add" and label not in levels[level]:
        return f"level {level!r} has no label {label!r}"
    if new in levels[level]:
        return f"level {level!r} has a label {new!r} already"
    if any(label in names for names in arguments.get("fillers", {}).values()) and change["do"] in ("rename", "remove"):
        return f"label {label!r} is a filler of the hierarchy: its name cannot be changed here"
    if change["do"] == "remove" and len(levels[level]) == 1:
        return f"label {label!r} is the only one of level {level!r}"
    above = _above(arguments, level)
    unknown = [parent for parent in change.get("parents", ()) if parent not in levels.get(above, ())]
    if unknown:
        return f"level {level!r} has no parent {unknown[0]!r}"
    return ""


def _above(arguments: Mapping[str, Any], level: str) -> str:
    names = ["root", *arguments["levels"]]
    return names[names.index(level) - 1]


def _add(arguments: dict[str, Any], change: Change) -> dict[str, Any]:
    level, label = change["level"], change["label"]
    above = _above(arguments, level)
    levels = {**arguments["levels"], level: [*arguments["levels"][level], label]}
    children = _each(arguments["children"], above, lambda row: [*row, label])
    successors = _each(arguments["successors"], level, lambda row: [*row, label])
    found = {**arguments, "levels": levels, "children": children, "successors": successors}
    return _move(found, change) if "parents" in change else found


def _each(rules: Any, level: str, change: Callable[[list[str]], list[str]]) -> dict[str, Any]:
    """Rules {level: {state: allowed}} with the allowed states of one level changed."""
    found = {name: dict(rows) for name, rows in (rules or {}).items()}
    if level in found:
        found[level] = {state: change(list(row)) for state, row in found[level].items()}
    return found


def _move(arguments: dict[str, Any], change: Change) -> dict[str, Any]:
    level, label = change["level"], change["label"]
    above = _above(arguments, level)
    children = {name: dict(rows) for name, rows in (arguments["children"] or {}).items()}
    rows = children.get(above, {})
    children[above] = {}
    for state in arguments["levels"].get(above, []):
        allowed = [name for name in rows.get(state, arguments["levels"][level]) if name != label]
        children[above][state] = [*allowed, label] if state in change["parents"] else allowed
    return {**arguments, "children": children}


def _rename(arguments: dict[str, Any], change: Change) -> dict[str, Any]:
    return _mapped(arguments, change["level"], lambda name: change["to"] if name == change["label"] else name)


def _remove(arguments: dict[str, Any], change: Change) -> dict[str, Any]:
    return _mapped(arguments, change["level"], lambda name: None if name == change["label"] else name)


def _mapped(arguments: dict[str, Any], level: str, name: Callable[[str], str | None]) -> dict[str, Any]:
    """The arguments of a hierarchy in which the labels of a level have other names; those without one are left out."""

    def row(names: Sequence[str]) -> list[str]:
        return [new for new in map(name, names) if new is not None]

    def table(rows: Mapping[str, Any]) -> dict[str, Any]:
        return {new: value for new, value in ((name(old), value) for old, value in rows.items()) if new is not None}

    above = _above(arguments, level)
    children = _each(arguments["children"], above, row)
    if level in children:
        children[level] = table(children[level])
    successors = _each(arguments["successors"], level, row)
    if level in successors:
        successors[level] = table(successors[level])
    found = {**arguments, "children": children, "successors": successors}
    found["levels"] = {**arguments["levels"], level: row(arguments["levels"][level])}
    for limit in ("min_duration", "max_duration"):
        if isinstance((arguments[limit] or {}).get(level), Mapping):
            found[limit] = {**arguments[limit], level: table(arguments[limit][level])}
    if isinstance((arguments.get("open_duration") or {}).get(level), list):
        found["open_duration"] = {**arguments["open_duration"], level: row(arguments["open_duration"][level])}
    return found


DO: dict[str, Callable[[dict[str, Any], Change], dict[str, Any]]] = {
    "add": _add,
    "rename": _rename,
    "remove": _remove,
    "move": _move,
    "look": lambda arguments, change: arguments,
}
