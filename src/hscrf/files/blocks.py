"""Specifications, blocks and constructor arguments as JSON and arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hscrf.features.blocks import Block, SegmentBlock
from hscrf.files.content import Field, hints_of, unfolded
from hscrf.solvers.choice import dump_solver


def dump_options(options: Any) -> dict[str, Any]:
    """A specification as JSON: its type and its fields, functions by name."""
    entry = {item.name: getattr(options, item.name) for item in fields(options)}
    for name, value in entry.items():
        if callable(value):
            entry[name] = {"function": getattr(value, "__name__", "function")}
    return {"type": type(options).__name__, **entry}


def dump_block(block: Block, name: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """A block as JSON; its arrays go into ``arrays`` under names of their own."""
    entry: dict[str, Any] = {"type": type(block).__name__}
    for item in fields(block):  # type: ignore[arg-type]
        value = getattr(block, item.name)
        if isinstance(value, Block):
            value = dump_block(value, f"{name}.{item.name}", arrays)
        elif isinstance(value, np.ndarray):
            arrays[f"{name}.{item.name}"] = value.astype(declared_dtype(block, item.name), copy=False)
            value = {"array": f"{name}.{item.name}"}
        elif callable(value):
            value = {"function": getattr(value, "__name__", "function")}
        entry[item.name] = value
    return entry


def load_block(entry: Mapping[str, Any], arrays: Mapping[str, Any], functions: Mapping[str, Any]) -> Block:
    """The block that ``dump_block`` wrote; its arrays are those of the file, not copies."""
    block: Block = Field(entry, "block", arrays, functions).read(Block)
    return block


def declared_dtype(block: Block, name: str) -> np.dtype[Any]:
    """The dtype of an array of a block, the same on every machine."""
    cls: Any = type(block)
    return np.dtype(get_args(get_args(unfolded(hints_of(cls)[name]))[1])[0])


def check_function_names(blocks: Sequence[Block]) -> None:
    """A file stores the names of segment functions, so these must be distinct."""
    functions: dict[str, Any] = {}
    for block in blocks:
        if isinstance(block, SegmentBlock):
            name = getattr(block.function, "__name__", "function")
            if functions.setdefault(name, block.function) != block.function:
                raise ValueError(f"two segment functions are both named {name!r}, expected a name for each")


def saved_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that JSON can hold, except a given topology, which the file stores as the learned one."""
    kept = {**parameters, "topology": None}
    if kept.get("features") is not None:
        kept["features"] = [spec if isinstance(spec, str) else dump_options(spec) for spec in kept["features"]]
    if "solver" in kept:
        kept["solver"] = dump_solver(kept["solver"])
    if not isinstance(kept.get("random_state"), (int, type(None))):
        kept["random_state"] = None
    return kept
