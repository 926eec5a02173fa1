"""Scores of an encoder: one tensor whose columns are parts and levels, or a dict of tensors by part and level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from hscrf.arrays import Floats
from hscrf.fillers import child_name
from hscrf.hierarchy import unknown_name
from hscrf.potentials import FAMILY, OWN, PARTS, Key
from hscrf.topology import UNLIMITED, Topology
from hscrf.torch.copies import hidden_children
from hscrf.torch.frame import PaddedBatch, check_has_values, padded_batch
from hscrf.torch.transfer import Reader

COLUMNS = ("token", "start", "stop")  # the parts that a tensor of scores may hold
Parts = Sequence[str] | Mapping[str, Iterable[str]]


def score_columns(topology: Topology, parts: Parts) -> dict[Key, slice]:
    """Which columns of a tensor of scores belong to which part and level: level by level, parts in their order."""
    if isinstance(parts, str):
        raise ValueError(f"parts is the string {parts!r}; expected a tuple such as ({parts!r},)")
    if not isinstance(parts, Iterable):
        raise TypeError(f"parts is {parts!r}; expected a tuple with some of 'token', 'start', 'stop'")
    for part in parts:
        if part not in COLUMNS:
            raise ValueError(f"parts has {unknown_name('part', part, COLUMNS)}")
    if not len(parts):
        raise ValueError("parts is empty; expected one or more of 'token', 'start', 'stop'")
    if isinstance(parts, Mapping):
        asked = {(part, topology.level(level)) for part, levels in parts.items() for level in _listed(part, levels)}
    else:
        asked = {(part, d) for part in parts for d in _levels_with(topology, part)}
    found, begin = {}, 0
    for d in range(topology.depth):
        for part in COLUMNS:
            if (part, d) in asked:
                found[part, d] = slice(begin, begin + topology.n_states[d])
                begin += topology.n_states[d]
    return found


def _listed(part: str, levels: Iterable[str]) -> Iterable[str]:
    if isinstance(levels, str):
        raise ValueError(f"parts[{part!r}] is the string {levels!r}; expected a list of levels such as [{levels!r}]")
    return levels


def _levels_with(topology: Topology, part: str) -> list[int]:
    """Levels that have a part by default: borders of a root, and of segments of one step, would repeat its tokens."""
    if part == "token":
        return [d for d in range(topology.depth) if d > 0 or topology.n_states[0] > 1]
    return list(range(1, topology.depth - topology.unit_bottom))


def longest_durations(topology: Topology, durations: Any) -> dict[int, int]:
    """The size of the table of durations of each level that has one."""
    if durations is None:
        return {}
    if isinstance(durations, str):
        raise ValueError(f"durations is the string {durations!r}; expected a list of levels or a dict")
    if not isinstance(durations, Iterable):
        raise TypeError(f"durations is {durations!r}; expected a list of levels or a dict")
    given = durations if isinstance(durations, Mapping) else dict.fromkeys(durations)
    found = {}
    for level, longest in given.items():
        d = topology.level(level)
        name = f"durations[{topology.levels[d]!r}]"
        if d == 0 or (d == topology.depth - 1 and topology.unit_bottom):
            whole = "spans the sequence" if d == 0 else "has segments of one step; name it in max_duration"
            raise ValueError(f"durations names {topology.levels[d]!r}, which {whole}")
        if longest is None:
            longest = int(topology.max_duration[d].max())
            if longest == UNLIMITED:
                raise ValueError(f"{name} has no limit; expected a number of steps, or max_duration in the topology")
        if isinstance(longest, bool) or not isinstance(longest, int | np.integer) or longest < 1:
            raise ValueError(f"{name} is {longest!r}; expected a positive number of steps")
        found[d] = int(longest)
    return found


class Scores:
    """What an encoder gave for a batch, packed: tensors by part and level, and the frame of the batch.

    ``reader`` waits for a copy of the tensors to the host that was started already, if any was.
    """

    def __init__(self, frame: PaddedBatch, values: dict[Key, Any], reader: Reader | None = None) -> None:
        self.frame, self.values, self.reader = frame, values, reader

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(self.values)

    @property
    def tensors(self) -> tuple[Any, ...]:
        return tuple(self.values.values())


def read_scores(
    topology: Topology, columns: Mapping[Key, slice], scores: Any, mask: Any = None, lengths: Any = None
) -> Scores:
    """Packed values from a tensor (B, T, size) or from a dict by part and level."""
    if isinstance(scores, Mapping):
        return _from_dict(topology, scores, mask, lengths)
    size = max((part.stop for part in columns.values()), default=0)
    _check_tensor(scores, "scores")
    if scores.ndim != 3 or scores.shape[2] != size:
        hint = "; add a batch axis by scores[None]" if scores.ndim == 2 and scores.shape[1] == size else ""
        raise ValueError(f"scores has shape {tuple(scores.shape)}; expected (B, T, {size}){hint}")
    _check_not_empty(scores, "scores")
    frame = padded_batch(scores.shape[0], scores.shape[1], mask, lengths)
    packed = frame.pack(scores)
    if len(columns) == 1:
        return Scores(frame, dict.fromkeys(columns, packed))
    parts = packed.split([part.stop - part.start for part in columns.values()], dim=1)
    return Scores(frame, dict(zip(columns, parts, strict=True)))


def _from_dict(topology: Topology, scores: Mapping[str, Any], mask: Any, lengths: Any) -> Scores:
    given: dict[Key, Any] = {}
    for part, levels in scores.items():
        if part not in PARTS:
            raise ValueError(f"scores has {unknown_name('part', part, PARTS)}")
        if not isinstance(levels, Mapping):
            raise ValueError(f"scores[{part!r}] is a {type(levels).__name__}; expected a dict by level")
        for level, tensor in levels.items():
            d = topology.level(level)
            _check_tensor(tensor, f"scores[{part!r}][{topology.levels[d]!r}]")
            given[part, d] = tensor
    batch = _batch_axes(topology, given)
    frame = padded_batch(*batch, mask, lengths)
    return Scores(frame, {key: _packed(topology, frame, key, tensor) for key, tensor in given.items()})


def _batch_axes(topology: Topology, given: Mapping[Key, Any]) -> tuple[int, int]:
    """B and T, which the first part with a time axis has."""
    for (part, d), tensor in given.items():
        if part in OWN and part not in ("duration", "tail") and tensor.ndim >= 3:
            _check_not_empty(tensor, _name(topology, (part, d)))
            return int(tensor.shape[0]), int(tensor.shape[1])
    raise ValueError("scores has no part (B, T, S); expected token, start, stop or segment of at least one level")


def _packed(topology: Topology, frame: PaddedBatch, key: Key, tensor: Any) -> Any:
    """One part as the engine takes it: (N, ...), or a table that all steps share."""
    part, d = key
    sizes = topology.n_states
    if part in FAMILY and d == topology.depth - 1:
        raise ValueError(f"{_name(topology, key)} names the bottom level; {part} is indexed by the parent's level")
    inner = {"trans": (*sizes[d : d + 2], *sizes[d + 1 : d + 2])}.get(
        part, sizes[d : d + 2 if part in FAMILY else d + 1]
    )
    shape, padded = tuple(tensor.shape), (frame.rows, frame.width)
    if part == "duration":
        if len(shape) != 2 or shape[1:] != inner or not shape[0]:
            raise _wrong_shape(topology, key, shape, f"(L, {sizes[d]})")
        return tensor
    if part == "tail":
        if d not in topology.open_levels:
            raise ValueError(f"{_name(topology, key)} is given, but open_duration does not name the level")
        if shape != inner:
            raise _wrong_shape(topology, key, shape, str(inner))
        return tensor
    if part in FAMILY and shape in (inner, (1, *inner)):
        return hidden_children(topology, key, tensor.reshape(1, *inner))
    if part == "segment":
        if len(shape) != 4 or shape[:2] != padded or not shape[2] or shape[3:] != inner:
            raise _wrong_shape(topology, key, shape, f"({frame.rows}, {frame.width}, L, {sizes[d]})")
    elif shape != (*padded, *inner):
        also = f" or {inner}" if part in FAMILY else ""
        raise _wrong_shape(topology, key, shape, f"{(*padded, *inner)}{also}")
    return hidden_children(topology, key, frame.pack(tensor))


def _name(topology: Topology, key: Key) -> str:
    return f"scores[{key[0]!r}][{topology.levels[key[1]]!r}]"


def _wrong_shape(topology: Topology, key: Key, shape: tuple[int, ...], expected: str) -> ValueError:
    return ValueError(f"{_name(topology, key)} has shape {shape}; expected {expected}")


def _check_tensor(tensor: Any, name: str) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} is a {type(tensor).__name__}; expected a tensor of floats")
    if not tensor.is_floating_point():
        raise TypeError(f"{name} has type {tensor.dtype}; expected floats")
    check_has_values(tensor, name)


def _check_not_empty(tensor: Any, name: str) -> None:
    if 0 in tensor.shape[:2]:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; expected at least one sequence and one step")


def check_numbers(topology: Topology, frame: PaddedBatch, arrays: Mapping[Key, Floats]) -> None:
    """Raise if a value is NaN or +inf, and say which part of which step it is."""
    for key, array in arrays.items():
        if array.size and not array.max() < np.inf:
            index = tuple(int(k) for k in np.argwhere(~(array < np.inf))[0])
            raise ValueError(f"{_where(topology, frame, key, array.shape, index)}, expected a finite number or -inf")


def _where(topology: Topology, frame: PaddedBatch, key: Key, shape: tuple[int, ...], index: tuple[int, ...]) -> str:
    part, d = key
    level, value = topology.levels[d], "NaN or infinite"
    if part in FAMILY and shape[0] == 1:
        return f"the table {part} of level {level!r} is {value} at {list(index[1:])}"
    if part in ("duration", "tail"):
        return f"the table {part} of level {level!r} is {value} at {list(index)}"
    row, step = frame.place(index[0])
    state = child_name(topology, d, index[-1]) if part not in FAMILY else list(index[1:])
    return f"scores: {part} of level {level!r} is {value} for {state!r} in sequence {row} at step {step}"
