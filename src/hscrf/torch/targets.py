"""Labels of a batch: Labels, columns, segments or tensors of states, read once and closed once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hscrf.engine import Evidence
from hscrf.errors import InfeasibleError, SequenceError
from hscrf.labels.columns import ends_of_runs, open_runs
from hscrf.labels.given import given_labels, schemes_in
from hscrf.labels.labels import Labels
from hscrf.labels.many import read_many
from hscrf.labels.packed import Known, pack_labels
from hscrf.labels.rules import RULES_OF_MANY
from hscrf.labels.segments import blank
from hscrf.topology import Topology
from hscrf.torch.frame import Frame, host_array

MEMORY = 1 << 28  # bytes of closed labels that are kept


class ClosedLabels:
    """Closed labels by their content, so that each sequence is closed once and not in every epoch.

    The least recently used are dropped when they take more than ``memory`` bytes.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self.memory, self.used = memory, 0
        self.kept: OrderedDict[Any, tuple[Labels, int]] = OrderedDict()

    def close(self, labels: Labels) -> Labels:
        key = content_of(labels)
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key][0]
        closed = labels.closed()
        size = closed.states.nbytes + closed.ends.nbytes + sum(sets.nbytes for sets in (closed.allowed or {}).values())
        self.kept[key] = closed, size
        self.used += size
        while self.used > self.memory:
            self.used -= self.kept.popitem(last=False)[1][1]
        return closed

    def __deepcopy__(self, memo: Any) -> ClosedLabels:
        return ClosedLabels(self.memory)

    def __reduce__(self) -> tuple[Any, ...]:
        return ClosedLabels, (self.memory,)


def content_of(labels: Labels) -> tuple[Any, ...]:
    sets = () if not labels.allowed else tuple((level, table.tobytes()) for level, table in labels.allowed.items())
    return labels.length, labels.states.tobytes(), labels.ends.tobytes(), sets


class Target:
    """What is known of the sequences of a batch: the labels of each, and the same packed."""

    def __init__(self, topology: Topology, known: Known, given: Sequence[Labels] | None = None) -> None:
        self.topology, self.known, self.given = topology, known, given

    @property
    def is_complete(self) -> bool:
        return bool((self.known.states >= 0).all() and (self.known.ends >= 0).all())

    def labels(self, n: int) -> Labels:
        """The labels of one sequence."""
        if self.given is not None:
            return self.given[n]
        a, b = self.known.offsets[n : n + 2].tolist()
        return Labels._found(self.topology, self.known.states[:, a:b], self.known.ends[:, a:b])

    def evidence(self, closed: ClosedLabels, name: str) -> Evidence:
        """The labels in the engine's form; errors name the sequence."""
        found = []
        for n in range(self.known.offsets.size - 1):
            try:
                found.append(closed.close(self.labels(n)))
            except InfeasibleError as error:
                raise error.of_sequence(n, name) from None
        return Evidence.of(found)


def read_target(topology: Topology, frame: Frame, labels: Any, name: str = "labels") -> Target:
    """Labels of a batch from tensors of states by level, or from a list that holds the labels of each sequence."""
    if isinstance(labels, torch.Tensor) or (isinstance(labels, np.ndarray) and labels.ndim == 2):
        if topology.depth != 2:
            levels = ", ".join(map(repr, topology.levels[1:]))
            raise ValueError(f"{name} is one tensor, but the levels are {levels}; expected a dict of tensors by level")
        labels = {topology.levels[1]: labels}
    if isinstance(labels, Mapping):
        return _from_tensors(topology, frame, labels, name)
    if isinstance(labels, str | Labels) or not hasattr(labels, "__len__"):
        raise TypeError(f"{name} is a {type(labels).__name__}; expected a list of Labels or a dict of tensors by level")
    if len(labels) != frame.rows:
        raise ValueError(f"{name} has {len(labels)} sequences; expected {frame.rows}, as many as scores")
    return _from_list(topology, frame, labels, name)


def _from_list(topology: Topology, frame: Frame, labels: Sequence[Any], name: str) -> Target:
    if not all(isinstance(y, Labels) for y in labels):
        labels = _read(topology, frame, labels, name)
    for n, (y, length) in enumerate(zip(labels, frame.lengths.tolist(), strict=True)):
        if y.topology is not topology and y.topology != topology:
            raise ValueError(f"{name}[{n}] has {y.topology} with other states or rules than the layer's {topology}")
        if y.length != length:
            raise ValueError(f"{name}[{n}] has {y.length} steps; expected {length}, as many as the mask keeps")
    known = pack_labels(labels)
    _check_rules(Target(topology, known, labels), name)
    return Target(topology, known, labels)


def _read(topology: Topology, frame: Frame, labels: Sequence[Any], name: str) -> list[Labels]:
    """Labels from columns, segments, Labels or None (nothing known), in any mix."""
    given = given_labels(labels, topology.levels[1:], name)
    lengths = frame.lengths.tolist()
    known = [Labels.unknown(topology, n) if y is None else y for y, n in zip(given, lengths, strict=True)]
    return read_many(known, lengths, topology, schemes_in(known, "auto", topology), name)


def _from_tensors(topology: Topology, frame: Frame, labels: Mapping[str, Any], name: str) -> Target:
    """States by level (B, T), negative where unknown; or a pair of states and ends.

    Equal states in a row are one segment under one parent, as in a plain column.
    """
    states, ends = blank(topology, frame.steps)
    last = frame.offsets[1:] - 1
    ends[0], ends[0, last] = 0, 1
    states[0] = 0 if topology.n_states[0] == 1 else -1
    given = {topology.level(level): tensors for level, tensors in labels.items()}
    if not given:
        raise ValueError(f"{name} is an empty dict; expected tensors by level")
    for d in range(topology.depth):
        if d in given:
            what = f"{name}[{topology.levels[d]!r}]"
            row, stops = given[d] if isinstance(given[d], tuple) else (given[d], None)
            states[d] = _cells(frame, row, what, topology.n_states[d], of_root=d == 0)
            if d == 0:
                continue
            if stops is not None:
                ends[d] = _cells(frame, stops, f"ends of {what}", 2)
            else:
                ends[d] = ends_of_runs(states[d])
                ends[d, last] = np.where(states[d, last] >= 0, 1, -1)
                open_runs(ends[d], ends[d] == 0, ends[d - 1])
        if d > 0:
            ends[d][(ends[d - 1] == 1) & (ends[d] < 0)] = 1
    if topology.unit_bottom and not isinstance(given.get(topology.depth - 1), tuple):
        ends[-1] = 1
    found = Target(topology, Known(states, ends, frame.offsets))
    if has_rules(topology) or any(isinstance(tensors, tuple) for tensors in given.values()):
        _check_rules(found, name)
    return found


@lru_cache(maxsize=64)
def has_rules(topology: Topology) -> bool:
    """Whether a topology forbids children, successors or durations; ends that were read from states always nest."""
    free = all(table.all() for table in (*topology.children, *topology.successors[1:]))
    return not free or any(map(topology.has_limits, range(1, topology.depth)))


def _cells(frame: Frame, tensor: Any, what: str, size: int, of_root: bool = False) -> NDArray[Any]:
    """Packed integers below a size, -1 for all that are negative."""
    array = host_array(tensor, what)
    if of_root and array.shape == (frame.rows,):  # a class for each sequence
        array = np.repeat(array[:, None], frame.width, axis=1)
    if array.shape != (frame.rows, frame.width):
        raise ValueError(f"{what} has shape {array.shape}; expected {(frame.rows, frame.width)}, as scores have")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what} has type {array.dtype}; expected integers, negative where unknown")
    packed = array.reshape(-1) if frame.cells is None else array.reshape(-1)[frame.cells]
    if packed.max() >= size:
        row, step = frame.place(int((packed >= size).argmax()))
        raise ValueError(f"{what} is {array[row, step]} in sequence {row} at step {step}; expected less than {size}")
    return np.maximum(packed, -1)


def _check_rules(target: Target, name: str) -> None:
    """Raise if labels break a rule of the hierarchy; the error names the sequence."""
    packed = Labels._found(target.topology, target.known.states, target.known.ends)
    try:
        for rule in RULES_OF_MANY:
            rule(packed)
        return
    except SequenceError as error:
        reason = error
    for n in range(target.known.offsets.size - 1):
        try:
            target.labels(n).check()
        except SequenceError as error:
            raise error.of_sequence(n, name) from None
    raise reason
