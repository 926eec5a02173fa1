"""The content of a model's file, checked once, before there is a model.

The checks: the header has all fields, with the right types. Names are distinct. Arrays have the dtype and the rank of
their fields. Offsets and cells are in the range of what they index. Sizes agree with each other, with the observations
and with the topology. Weights are finite. The size of the file limits all allocations. So prediction only uses arrays
in range, also for a file from an untrusted source.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hscrf.arrays import Floats
from hscrf.errors import FileFormatError
from hscrf.features.blocks import Block
from hscrf.features.bounds import check_states
from hscrf.files.content import ContentError, Field, array_of, brief, hints_of
from hscrf.fillers import expanded
from hscrf.inference.temperatures import HIGHEST, LOWEST, Temperature
from hscrf.labels.columns import Scheme
from hscrf.observations.columns import INDICATOR
from hscrf.potentials import FAMILY
from hscrf.solvers.choice import CLASSES, SOLVERS
from hscrf.topology import Topology

LARGEST = 1e100  # the largest weight, mean or scale: products of a few of them are finite
TRIPLES = 1 << 26  # most triples of a parent, a child and the next child at a level
STACKS = 1 << 22  # most stacks of states of levels without durations, from top to bottom
SCHEMES = ("plain", "bio", "bioes", "auto")
CHOICES = {  # parameters that are one of some strings
    "pairs": ("seen", "all"),
    "transitions": ("seen", "all"),
    "children": ("auto", "seen", "all"),
    "missing": ("indicator", "refuse"),
    "combinations": ("seen", "all"),
    "emission": ("categorical", "gaussian"),
}
HISTORY = ("iteration", "loss", "gradient_norm", "seconds", "score", "log_likelihood", "objective")

OBSERVATIONS = ("dicts", "strings", "dense", "table", "matrix")  # kinds that a CRF learns from
PENALTIES = {"c2": float, "factors": Mapping[str, float], "errors": float, "better": bool, "group": str | None}


def check_kind(path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
    """Raise unless a file holds a model."""
    if header.get("kind") != "model":
        raise FileFormatError(f"{os.fspath(path)} is a {plain_name(header.get('kind', 'file'))}, expected a model")


def plain_name(value: Any) -> str:
    """A name in a file as it stands, anything else as a short representation."""
    return value if isinstance(value, str) and value.isidentifier() else brief(value)


# -- parameters


def read_parameters(given: Field, model: type[Any], features: Mapping[str, type]) -> dict[str, Any]:
    """The arguments of a model's constructor."""
    init: Any = model.__init__
    known = inspect.signature(init).parameters
    values = {}
    for name, item in given.items().items():
        if name not in known or name == "self":
            raise ContentError(f"{given.name} has a field {name!r}, which a {model.__name__} does not have")
        values[name] = _parameter(item, name, hints_of(init)[name], features)
    return values


def _parameter(item: Field, name: str, hint: Any, features: Mapping[str, type]) -> Any:
    if name == "features" and item.value is not None:
        return [entry.value if entry.value == "default" else entry.one_of(features) for entry in item.entries()]
    if name == "solver":
        return _solver(item)
    if name == "random_state":
        if not isinstance(item.value, int | None):
            raise item.wrong("an integer or null")
        return item.value
    if name == "scheme":
        return _scheme(item)
    value = item.read(hint)
    if name in CHOICES and value is not None:
        item.choice(*CHOICES[name])
    if name == "c2" and isinstance(value, str):
        item.choice("auto")
    if name == "n_jobs" and not (value == -1 or value >= 1):
        raise item.wrong("a number of threads, or -1")
    return value


def read_scheme(given: Field) -> Scheme:
    """The scheme among the arguments of a model's constructor, "plain" where it has none."""
    arguments = given.items()
    return _scheme(arguments["scheme"]) if "scheme" in arguments else "plain"


def _scheme(item: Field) -> Scheme:
    value: Any = item.read(str | Mapping[str, str])
    for scheme in item.items().values() if isinstance(value, Mapping) else [item]:
        scheme.choice(*SCHEMES)
    return value


def check_found_scheme(header: Field, asked: Any) -> None:
    """Raise a ``ContentError`` unless the file has the scheme that training found, where it was given as "auto"."""
    if asked == "auto" or (isinstance(asked, Mapping) and "auto" in asked.values()):
        for scheme in header["scheme"].items().values():
            scheme.choice("plain", "bio", "bioes")


def _solver(item: Field) -> Any:
    """A solver by its name, or with its options; of a class that is not ours, only the name of the class."""
    if isinstance(item.value, Mapping) and list(item.value) == ["other"]:
        return {"other": item["other"].read(str)}
    return item.choice(*SOLVERS) if isinstance(item.value, str) else item.one_of(CLASSES)


# -- topology


def read_topology(given: Field) -> Topology:
    """A topology whose tables, and those that the engine makes of it, fit in memory."""
    hints = {**hints_of(Topology.__init__), "names": Mapping[str, Sequence[Any]]}
    arguments = {}
    for name, item in given.items().items():
        if name not in hints:
            raise ContentError(f"{given.name} has a field {name!r}, which a Topology does not have")
        arguments[name] = item.read(hints[name])
    given["levels"]  # the required field
    with given.blamed():
        for level, states in {"root": arguments.get("root") or (), **arguments["levels"]}.items():
            check_states(f"level {level!r}", len(states))
        topology = Topology.from_dict(arguments)
        if topology.remembers:
            for level, row, names in zip(topology.levels, topology.fillers, topology.states, strict=True):
                check_states(f"level {level!r} with copies of its fillers", len(names) * (1 + int(row.sum())))
        check_tables(expanded(topology))
    return topology


def check_tables(topology: Topology) -> None:
    """Raise for a topology that is too large for inference."""
    stacks = np.ones(topology.n_states[0])
    for d, table in enumerate(topology.children):
        triples = (table.sum(axis=1, dtype=np.float64) ** 2).sum()
        stacks = stacks @ table
        if triples > TRIPLES or stacks.sum() > STACKS:
            raise ValueError(
                f"level {topology.levels[d + 1]!r} has {triples:.3g} triples of a parent and two children and "
                f"{stacks.sum():.3g} stacks of states, expected at most {TRIPLES} and {STACKS}"
            )
        if topology.has_limits(d + 1):
            stacks = np.ones(topology.n_states[d + 1])


# -- observations


def check_encoder(given: Field, kinds: Sequence[str]) -> tuple[int | None, int | None]:
    """Check the settings; return the numbers of named features and of numeric columns, None for an absent kind."""
    given["min_count"].read(float)
    given["standardize"].read(bool)
    kind = given["kind"].choice(*kinds)
    names, columns = given["names"], given["columns"].read(list[str])
    _check_names(names, kind)
    mean, scale = (array_of(given.arrays, name, np.float64) for name in ("mean", "scale"))
    for name, array in (("mean", mean), ("scale", scale)):
        if array.size != len(columns):
            raise ContentError(f"array {name!r} has {array.size} numbers for {len(columns)} columns")
        if not (np.abs(array) <= LARGEST).all():
            raise ContentError(f"array {name!r} has a number beyond {LARGEST:g}")
    if not (scale >= 1 / LARGEST).all():
        raise ContentError("array 'scale' has a number that is not positive")
    if (kind == "dense" and names.value) or (kind not in ("dense", "table") and columns):
        raise ContentError(f"{given.name} has {len(names.value)} names and {len(columns)} columns of kind {kind!r}")
    _check_given(given, kind, columns)
    return len(names.value) if kind != "dense" else None, len(columns) if kind in ("dense", "table") else None


def _check_given(given: Field, kind: str, columns: list[str]) -> None:
    """The columns of tables, those that hold text, and how often each of the others is missing; older files lack it."""
    fields = given.items()
    if "given" not in fields:
        if kind == "table":
            raise ContentError(f"{given.name} has no field 'given'", "complete")
        return
    given["missing"].choice("indicator", "refuse")
    names, texts = given["given"].read(list[str]), given["texts"].read(list[int])
    holes = given["holes"].read(list[int])
    if sorted(set(texts)) != texts or not all(0 <= k < len(names) for k in texts) or bool(texts) != (kind == "table"):
        raise given["texts"].wrong(f"places of text columns among {len(names)}, in order")
    numeric = [name for k, name in enumerate(names) if k not in texts]
    if given["steps"].read(int) < 0 or len(holes) != len(numeric) or min(holes, default=0) < 0:
        raise given["holes"].wrong(f"a count of steps for each of {len(numeric)} columns")
    if columns != numeric + [INDICATOR.format(name) for name, count in zip(numeric, holes, strict=True) if count]:
        raise given["columns"].wrong("the numeric columns, and the indicators of those that may be missing")


def _check_names(names: Field, kind: str) -> None:
    """Raise unless names are distinct strings; symbols may be integers, columns of a matrix are numbers in order."""
    types = (str, int) if kind == "symbols" else (str,)
    for entry in names.entries() if not set(map(type, names.read(list[Any]))) <= set(types) else ():
        if type(entry.value) not in types:
            raise entry.wrong("a string or an integer" if kind == "symbols" else "a string")
    if len(set(names.value)) < len(names.value):
        raise ContentError(f"{names.name} has the same name twice")
    if kind == "matrix":
        numbers = [int(name) if name.isdecimal() and len(name) < 10 else -1 for name in names.value]
        if list(map(str, numbers)) != names.value or any(a >= b for a, b in pairwise(numbers)):
            raise ContentError(f"{names.name} has names that are not numbers of columns in order")


# -- weights


def check_blocks(
    given: Field, topology: Topology, names: int | None, columns: int | None, impossible: bool = False
) -> list[Block]:
    """The blocks, each of which fits, and which together have the weights of the file.

    ``impossible``: tables of logarithms of probabilities may hold -inf.
    """
    blocks: list[Block] = []
    for entry in given.entries():
        block = entry.read(Block)
        with entry.blamed():
            block.check(topology, names, columns)
            if not block.timed and block.key[0] not in (*FAMILY, "duration", "tail"):
                raise ValueError(f"key is of the part {block.key[0]!r}, which varies in time")
        blocks.append(block)
    weights = array_of(given.arrays, "coef", np.float64)
    if weights.size != sum(block.size for block in blocks):
        raise ContentError(f"the model has {weights.size} weights, which do not fit its features")
    check_weights("coef", weights, impossible)
    return blocks


def check_weights(name: str, weights: Floats, impossible: bool = False) -> None:
    """Raise for a weight that is not finite, or too large."""
    sound = np.abs(weights) <= LARGEST
    if impossible:
        sound |= weights == -np.inf
    if not sound.all():
        k = int(sound.argmin())
        raise ContentError(f"array {name!r} has the weight {weights[k]} at {k}, expected a finite number")


# -- training


def check_training(given: Field) -> None:
    """Raise unless the description of training is sound."""
    if not isinstance(given["loss"].value, int | float):
        raise given["loss"].wrong("a number")
    given["converged"].read(bool)
    given["n_iter"].read(int)
    given["stop_reason"].read(str)
    check_history(given["history"])
    if "penalties" in given.items():
        check_penalty_path(given["penalties"])
    if "penalty_reason" in given.items():
        given["penalty_reason"].read(str)
    for name in ("mean_lengths", "sizes"):
        if name in given.items():
            given[name].read(Mapping[str, float])


def check_penalty_path(given: Field) -> None:
    """Raise unless the path of penalties is sound."""
    for entry in given.entries():
        for name, hint in PENALTIES.items():
            entry[name].read(hint)
    if given.value and not any(entry["better"] for entry in given.value):
        raise given.wrong("a path with a choice")


def check_history(given: Field) -> None:
    """Raise an error unless the entries of a history have the right types."""
    for entry in given.entries():
        for name, item in entry.items().items():
            if name in HISTORY and not isinstance(item.value, int | float | None):
                raise item.wrong("a number or null")


def read_temperatures(given: Field, levels: Sequence[str]) -> dict[str, Temperature]:
    """Temperatures from a file: two positive numbers for a level."""
    found = {}
    for level, item in given.items().items():
        if level not in levels:
            raise ContentError(f"{given.name} names the level {level!r}, expected one of {', '.join(levels)}")
        pair = item.read(list[float])
        if len(pair) != 2 or not all(LOWEST / 2 <= value <= 2 * HIGHEST for value in pair):
            raise item.wrong(f"two numbers from {LOWEST / 2:g} to {2 * HIGHEST:g}")
        found[level] = Temperature(*pair)
    return found


def check_model(header: Field, kinds: Sequence[str], impossible: bool = False) -> tuple[Topology, list[Block]]:
    """Raise a ``ContentError`` unless the file holds a sound model; its topology and its blocks."""
    topology = read_topology(header["topology"])
    header["topology_given"].read(bool)
    names, columns = check_encoder(header["encoder"], kinds)
    blocks = check_blocks(header["blocks"], topology, names, columns, impossible)
    check_training(header["training"])
    if "temperature" in header.items():
        levels = read_topology(header["levels"]) if "levels" in header.items() else topology
        read_temperatures(header["temperature"], levels.levels)
    return topology, blocks
