"""Files of labels: levels from top to bottom, the labels of each, and the rules of predictions, in TOML.

::

    lasting = ["action"]                   # bottom levels whose segments may have several steps

    [levels]                               # top to bottom
    activity = ["cooking", "eating"]
    action = ["walk", "sit", "stand"]

    [children.activity]                    # states that are not named may have every child
    eating = ["sit"]

    [successors.action]
    sit = ["stand"]

    [max_duration]                         # in steps, of a level or of single labels; also [min_duration]
    activity = 200

    [durations]                            # weights for lengths: gamma, bins or each
    activity = "gamma"

    [colours.activity]                     # for pictures
    cooking = "#d95f02"
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hscrf.fillers import expanded
from hscrf.io.colours import is_colour
from hscrf.io.label_studio import read_label_config
from hscrf.topology import UNLIMITED, Topology

RULES = ("children", "successors", "min_duration", "root", "fillers", "open_duration")
KNOWN = ("levels", *RULES, "max_duration", "lasting", "durations", "colours")


@dataclass(frozen=True)
class LabelFile:
    """The content of a file of labels."""

    topology: Topology
    durations: dict[str, str] = field(default_factory=dict)  # level -> kind of weights for lengths
    colours: dict[str, dict[str, str]] = field(default_factory=dict)  # level -> label -> colour

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels below the root, top to bottom."""
        return self.topology.levels[1:]


def read_label_file(path: str | os.PathLike[str]) -> LabelFile:
    """Read a file of labels in TOML, or a label configuration of Label Studio (.xml); errors name the file.

    All levels of a label configuration have segments that last.

    Parameters
    ----------
    path : path

    Returns
    -------
    LabelFile

    Raises
    ------
    ValueError
        If the file is not valid TOML, has an unknown table, or its rules contradict each other.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    with open(path, "rb") as file:
        if os.fspath(path).lower().endswith(".xml"):
            levels = read_label_config(file.read(), os.fspath(path))
            return label_file_from({"levels": levels, "lasting": list(levels)[-1:]})
        try:
            return label_file_from(tomllib.load(file))
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None


def label_file_from(table: Mapping[str, Any]) -> LabelFile:
    """The content of a file of labels, from its tables.

    >>> found = label_file_from({"levels": {"meal": ["lunch"], "walk": ["in", "out"]}, "lasting": ["walk"]})
    >>> found.levels, found.topology.unit_bottom
    (('meal', 'walk'), False)
    """
    table = {"colours" if name == "colors" else name: value for name, value in table.items()}
    stray = set(table) - set(KNOWN)
    if stray:
        raise ValueError(f"the file of labels has {', '.join(sorted(stray))}, expected {', '.join(KNOWN)}")
    if not isinstance(table.get("levels"), Mapping) or not table["levels"]:
        raise ValueError("the file of labels has no table [levels], expected the labels of each level, top to bottom")
    for name in ("durations", "colours", "max_duration"):
        if not isinstance(table.get(name, {}), Mapping):
            raise ValueError(f"the file of labels has {name} = {table[name]!r}, expected a table [{name}]")
    for name in ("lasting", "root"):
        if not _is_names(table.get(name, [])):
            raise ValueError(f"the file of labels has {name} = {table[name]!r}, expected a list of names")
    longest = {**dict.fromkeys(table.get("lasting", ())), **table.get("max_duration", {})}
    rest = {name: table[name] for name in RULES if name in table}
    try:
        topology = Topology(table["levels"], max_duration=longest, **rest)
    except (TypeError, AttributeError) as error:  # a value of another kind than TOML's tables of labels have
        raise ValueError(f"the rules of the file of labels are not understood: {error}") from None
    durations, colours = dict(table.get("durations", {})), dict(table.get("colours", {}))
    for level, kind in durations.items():
        topology.level(level)
        if kind not in ("gamma", "bins", "each"):
            raise ValueError(f"durations of {level} are {kind!r}, expected 'gamma', 'bins' or 'each'")
    for level, own in colours.items():
        if not isinstance(own, Mapping):
            raise ValueError(f"colours of {level} are {own!r}, expected a table [colours.{level}]")
        for label, colour in own.items():
            topology.state(level, label)
            if not is_colour(str(colour)):
                expected = "expected a name of CSS such as 'teal', or #rrggbb"
                raise ValueError(f"the colour of {level} {label} is {colour!r}, {expected}")
    return LabelFile(topology, durations, {level: dict(own) for level, own in colours.items()})


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def label_file_text(topology: Topology, colours: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """A topology as a file of labels, which :func:`read_label_file` reads.

    >>> print(label_file_text(Topology({"tag": ["N", "V"]}, max_duration={"tag": {"N": 3}})))
    [levels]
    tag = ["N", "V"]
    <BLANKLINE>
    [max_duration.tag]
    N = 3
    <BLANKLINE>
    """
    table = topology.to_dict()
    limits = {level: limit for level, limit in table["max_duration"].items() if limit is not None}
    lasting = [level for level, limit in table["max_duration"].items() if limit is None]
    if not topology.unit_bottom and isinstance(limits.get(topology.levels[-1]), dict):
        lasting = []  # its limits show it
    lines = [f"lasting = {_value(lasting)}", ""] if lasting else []
    if table["root"]:
        lines += [f"root = {_value(table['root'])}", ""]
    lines += ["[levels]", *(f"{_key(level)} = {_value(names)}" for level, names in table["levels"].items()), ""]
    parts = {"children": table["children"], "successors": table["successors"], "min_duration": table["min_duration"]}
    for name, own in {**parts, "max_duration": limits, "colours": colours or {}}.items():
        for level, rows in own.items():
            lines += [f"[{name}.{_key(level)}]", *(f"{_key(s)} = {_value(v)}" for s, v in rows.items()), ""]
    for name in ("fillers", "open_duration"):
        if table.get(name):
            lines += [f"[{name}]", *(f"{_key(level)} = {_value(own)}" for level, own in table[name].items()), ""]
    return "\n".join(lines)


def _key(name: Any) -> str:
    """A key of TOML, in quotes if need be."""
    return str(name) if re.fullmatch(r"[A-Za-z0-9_-]+", str(name)) else json.dumps(str(name), ensure_ascii=False)


def _value(value: Any) -> str:
    """A value of TOML: JSON writes strings, whole numbers and lists of them in the same way."""
    return json.dumps(value, ensure_ascii=False)


def narrowed(topology: Topology, rules: Topology) -> Topology:
    """The topology of a model with more rules about the same levels and labels.

    Raises
    ------
    ValueError
        If levels or labels differ, or if the rules of both together allow nothing.
    """
    if rules.levels != topology.levels:
        ours = ", ".join(topology.levels[1:])
        raise ValueError(f"the file of labels has the levels {', '.join(rules.levels[1:])}, but the model has {ours}")
    for level, mine, others in zip(topology.levels, topology.states, rules.states, strict=True):
        odd = set(mine) ^ set(others)
        if odd and level != "root":
            where = "the model" if odd & set(mine) else "the file of labels"
            raise ValueError(f"level {level!r} has the label {min(map(str, odd))!r} only in {where}")
    arguments, others_arguments = topology.to_dict(), rules.to_dict()
    for d in topology.open_levels:
        if rules.max_duration[d].min() < UNLIMITED:
            raise ValueError(f"level {topology.levels[d]!r} has open durations in the model: expected no max_duration")
    for name in ("children", "successors"):
        for level, rows in others_arguments[name].items():
            own = arguments[name].setdefault(level, {})
            for state, allowed in rows.items():
                own[state] = [other for other in own.get(state, allowed) if other in allowed]
    for name, choose in (("min_duration", max), ("max_duration", min)):
        for level, rows in _limits(others_arguments[name], rules).items():
            own = _limits({level: arguments[name].get(level)}, topology)[level]
            arguments[name][level] = {
                state: choose((n for n in (own.get(state), rows.get(state)) if n is not None), default=None)
                for state in topology.states[topology.level(level)]
            }
    found = Topology.from_dict(arguments)
    if topology.remembers and expanded(found).states != expanded(topology).states:
        raise ValueError(
            "the fillers of the model remember which states came before them: its children and successors cannot be "
            "changed for these states"
        )
    return found


def _limits(limits: Mapping[str, Any], topology: Topology) -> dict[str, dict[Any, int | None]]:
    """Limits by level and state."""
    found: dict[str, dict[Any, int | None]] = {}
    for level, limit in limits.items():
        states = topology.states[topology.level(level)]
        found[level] = dict(limit) if isinstance(limit, Mapping) else dict.fromkeys(states, limit)
    return found
