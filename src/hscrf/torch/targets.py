"""Labels of a batch: Labels, columns, segments or tensors of states, read once and closed once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hscrf.engine import Evidence
from hscrf.errors import InfeasibleError, SequenceError
from hscrf.fillers import expanded
from hscrf.labels.columns import blank, ends_of_runs, open_runs
from hscrf.labels.given import given_labels
from hscrf.labels.labels import Labels
from hscrf.labels.packed import PackedLabels, close_packed, pack_labels, pack_sets
from hscrf.labels.reading import read_many
from hscrf.labels.rules import check_packed
from hscrf.labels.schemes import schemes_in
from hscrf.potentials import PARTS
from hscrf.topology import Topology
from hscrf.torch.frame import PaddedBatch, host_array
from hscrf.torch.terms import Path

MEMORY = 1 << 26  # bytes of labels that are kept
Given = dict[int, tuple[NDArray[Any], NDArray[Any] | None]]  # by level index: states and ends (B, T)


class KeptTargets:
    """Labels of batches by their content, so that a batch that comes again is neither read nor closed again.

    The least recently used are dropped when they take more than ``memory`` bytes.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self.memory, self.used = memory, 0
        self.kept: OrderedDict[Any, Target] = OrderedDict()

    def get(self, key: Any, make: Callable[[], Target]) -> Target:
        """The labels with a content; those that are not kept are made."""
        found = self.kept.pop(key, None)
        if found is None:
            found = make()
            self.used += found.size
        self.kept[key] = found
        while self.used > self.memory:
            self.used -= self.kept.popitem(last=False)[1].size
        return found

    def __deepcopy__(self, memo: Any) -> KeptTargets:
        return KeptTargets(self.memory)

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptTargets, (self.memory,)


class Target:
    """The labels of the sequences of a batch, one by one and packed."""

    def __init__(self, topology: Topology, known: PackedLabels, given: Sequence[Labels] | None = None) -> None:
        self.topology, self.known, self.given = topology, known, given
        self._evidence: Evidence | None = None

    @property
    def size(self) -> int:
        """A bound on the bytes that these labels take with all that is derived from them."""
        depth, steps = self.known.states.shape
        return steps * (5 * depth + 3 * depth + sum(expanded(self.topology).n_states) + 24 * len(PARTS) * depth)

    @cached_property
    def is_complete(self) -> bool:
        return bool((self.known.states >= 0).all() and (self.known.ends >= 0).all())

    @cached_property
    def path(self) -> Path:
        """The score of complete labels."""
        return Path(expanded(self.topology), self.known.hidden(self.topology))

    def labels(self, n: int) -> Labels:
        """The labels of one sequence."""
        if self.given is not None:
            return self.given[n]
        a, b = self.known.offsets[n : n + 2].tolist()
        return Labels.unchecked(self.topology, self.known.states[:, a:b], self.known.ends[:, a:b])

    def evidence(self, name: str) -> Evidence:
        """The labels in the engine's form; errors name the sequence."""
        if self._evidence is None:
            try:
                sets = {} if self.given is None else pack_sets(self.given)
                self._evidence = Evidence.of_packed(self.topology, *close_packed(self.topology, self.known, sets))
            except InfeasibleError as error:
                raise self._first_error(error, Labels.closed, name) from None
        return self._evidence

    def check(self, name: str) -> None:
        """Raise if the labels break a rule of the hierarchy; the error names the sequence."""
        packed = Labels.unchecked(self.topology, self.known.states, self.known.ends)
        try:
            check_packed(packed)
        except SequenceError as error:
            raise self._first_error(error, Labels.check, name) from None

    def _first_error(self, error: SequenceError, ask: Callable[[Labels], object], name: str) -> SequenceError:
        """The error that the first wrong sequence has alone."""
        for n in range(self.known.offsets.size - 1):
            try:
                ask(self.labels(n))
            except SequenceError as own:
                return own.of_sequence(n, name)
        return error


def read_target(kept: KeptTargets, topology: Topology, frame: PaddedBatch, labels: Any, name: str = "labels") -> Target:
    """Labels of a batch from tensors of states by level, or from a list that holds the labels of each sequence."""
    if isinstance(labels, torch.Tensor) or (isinstance(labels, np.ndarray) and labels.ndim == 2):
        if topology.depth != 2:
            levels = ", ".join(map(repr, topology.levels[1:]))
            raise ValueError(f"{name} is one tensor, but the levels are {levels}; expected a dict of tensors by level")
        labels = {topology.levels[1]: labels}
    if isinstance(labels, Mapping):
        return _kept_tensors(kept, topology, frame, labels, name)
    if isinstance(labels, str | Labels) or not hasattr(labels, "__len__"):
        raise TypeError(f"{name} is a {type(labels).__name__}; expected a list of Labels or a dict of tensors by level")
    if len(labels) != frame.rows:
        raise ValueError(f"{name} has {len(labels)} sequences; expected {frame.rows}, as many as scores")
    return _from_list(kept, topology, frame, labels, name)


def _from_list(kept: KeptTargets, topology: Topology, frame: PaddedBatch, labels: Sequence[Any], name: str) -> Target:
    if not all(isinstance(y, Labels) for y in labels):
        labels = _read(topology, frame, labels, name)
    for n, (y, length) in enumerate(zip(labels, frame.lengths.tolist(), strict=True)):
        if y.topology is not topology and y.topology != topology:
            raise ValueError(f"{name}[{n}] has {y.topology} with other states or rules than the layer's {topology}")
        if y.length != length:
            raise ValueError(f"{name}[{n}] has {y.length} steps; expected {length}, as many as the mask keeps")
    known = pack_labels(labels)

    def make() -> Target:
        found = Target(topology, known, labels)
        found.check(name)
        return found

    sets = [(n, level, own.tobytes()) for n, y in enumerate(labels) for level, own in (y.allowed or {}).items()]
    return kept.get((frame.content, known.states.tobytes(), known.ends.tobytes(), *sets), make)


def _read(topology: Topology, frame: PaddedBatch, labels: Sequence[Any], name: str) -> list[Labels]:
    """Labels from columns, segments, Labels or None (nothing known), in any mix."""
    given = given_labels(labels, topology.levels[1:], name)
    lengths = frame.lengths.tolist()
    known = [Labels.unknown(topology, n) if y is None else y for y, n in zip(given, lengths, strict=True)]
    return read_many(known, lengths, topology, schemes_in(known, "auto", topology), name)


def _kept_tensors(
    kept: KeptTargets, topology: Topology, frame: PaddedBatch, labels: Mapping[str, Any], name: str
) -> Target:
    given: Given = {}
    for level, tensors in labels.items():
        d = topology.level(level)
        what = f"{name}[{topology.levels[d]!r}]"
        if isinstance(tensors, tuple) and len(tensors) != 2:
            raise ValueError(f"{what} is a tuple of {len(tensors)}; expected a pair of states and ends")
        row, stops = tensors if isinstance(tensors, tuple) else (tensors, None)
        given[d] = host_array(row, what), None if stops is None else host_array(stops, f"ends of {what}")
    if not given:
        raise ValueError(f"{name} is an empty dict; expected tensors by level")
    arrays = [(d, *map(_content, pair)) for d, pair in given.items()]
    return kept.get((frame.content, *arrays), lambda: _from_tensors(topology, frame, given, name))


def _content(array: NDArray[Any] | None) -> Any:
    return None if array is None else (array.dtype.char, array.shape, array.tobytes())


def _from_tensors(topology: Topology, frame: PaddedBatch, given: Given, name: str) -> Target:
    """States by level (B, T), negative where unknown; or a pair of states and ends.

    Equal states in a row are one segment under one parent, as in a plain column.
    """
    states, ends = blank(topology, frame.steps)
    last = frame.offsets[1:] - 1
    ends[0], ends[0, last] = 0, 1
    states[0] = 0 if topology.n_states[0] == 1 else -1
    for d in range(topology.depth):
        if d in given:
            what = f"{name}[{topology.levels[d]!r}]"
            row, stops = given[d]
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
    if topology.unit_bottom and given.get(topology.depth - 1, (None, None))[1] is None:
        ends[-1] = 1
    found = Target(topology, PackedLabels(states, ends, frame.offsets))
    if has_rules(topology) or any(stops is not None for _, stops in given.values()):
        found.check(name)
    return found


@lru_cache(maxsize=64)
def has_rules(topology: Topology) -> bool:
    """Whether a topology forbids children, successors or durations; ends that were read from states always nest."""
    free = all(table.all() for table in (*topology.children, *topology.successors[1:]))
    return not free or any(map(topology.has_limits, range(1, topology.depth)))


def _cells(frame: PaddedBatch, array: NDArray[Any], what: str, size: int, of_root: bool = False) -> NDArray[Any]:
    """Packed integers below a size, -1 for all that are negative."""
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
