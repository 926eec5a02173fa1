"""Specifications and blocks as JSON and arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.features.blocks import Block, SegmentBlock


def dump_options(options: Any) -> dict[str, Any]:
    """A specification as JSON: its type and its fields, functions by name."""
    entry = {item.name: getattr(options, item.name) for item in fields(options)}
    for name, value in entry.items():
        if callable(value):
            entry[name] = {"function": getattr(value, "__name__", "function")}
    return {"type": type(options).__name__, **entry}


def load_options(entry: Mapping[str, Any], classes: Mapping[str, type], functions: Mapping[str, Any]) -> Any:
    values = {name: value for name, value in entry.items() if name != "type"}
    for name, value in values.items():
        if isinstance(value, Mapping):
            values[name] = find_function(value["function"], functions)
    return classes[entry["type"]](**values)


def dump_block(block: Block, name: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """A block as JSON; its arrays go into ``arrays`` under names of their own."""
    entry: dict[str, Any] = {"type": type(block).__name__}
    for item in fields(block):  # type: ignore[arg-type]
        value = getattr(block, item.name)
        if isinstance(value, Block):
            value = dump_block(value, f"{name}.{item.name}", arrays)
        elif isinstance(value, np.ndarray):
            arrays[f"{name}.{item.name}"] = value
            value = {"array": f"{name}.{item.name}"}
        elif callable(value):
            value = {"function": getattr(value, "__name__", "function")}
        entry[item.name] = value
    return entry


def load_block(entry: Mapping[str, Any], arrays: Mapping[str, Any], functions: Mapping[str, Any]) -> Block:
    cls = {c.__name__: c for c in Block.__subclasses__()}[entry["type"]]
    values: dict[str, Any] = {}
    for name, value in entry.items():
        if name == "type":
            continue
        if isinstance(value, Mapping) and "type" in value:
            value = load_block(value, arrays, functions)
        elif isinstance(value, Mapping) and "array" in value:
            value = np.array(arrays[value["array"]])
        elif isinstance(value, Mapping) and "function" in value:
            value = find_function(value["function"], functions)
        elif isinstance(value, list):
            value = tuple(value)
        values[name] = value
    return cls(**values)


def check_function_names(blocks: Sequence[Block]) -> None:
    """A file knows segment functions by their names, which must tell them apart."""
    functions: dict[str, Any] = {}
    for block in blocks:
        if isinstance(block, SegmentBlock):
            name = getattr(block.function, "__name__", "function")
            if functions.setdefault(name, block.function) != block.function:
                raise ValueError(f"two segment functions are both named {name!r}, expected a name for each")


def find_function(name: str, functions: Mapping[str, Any]) -> Any:
    if name not in functions:
        raise ValueError(
            f"the model uses the segment function {name!r}: give it as load(path, functions={{{name!r}: ...}})"
        )
    return functions[name]
