"""What a loss is made of: log Z of a packed batch under evidence or without any, and the score of complete labels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.engine import Batch, Evidence
from hscrf.labels.events import event_cells
from hscrf.labels.packed import PackedLabels
from hscrf.objective.margin import add_costs
from hscrf.potentials import FAMILY, Key
from hscrf.topology import Topology

Values = Mapping[Key, Floats]
WORK, SEQUENCES = 1 << 24, 8  # least steps times transitions, and least sequences, of a piece of a batch


class TermCounts(NamedTuple):
    """Log masses of the sequences, and counts, each sequence's times its weight."""

    log_z: Floats  # (n,)
    counts: dict[Key, Floats]  # of the shapes of the values
    state: list[Floats]  # per level (N, S); empty for labels that are known
    ending: list[Floats]  # per level (N,)


class Partition:
    """Log Z of each sequence of a packed batch, with or without evidence.

    The batch is cut into pieces of whole sequences that ``n_jobs`` threads work on. The cut depends on the lengths
    alone and the pieces are added in order, so results have the same bits for any number of threads.
    """

    def __init__(
        self,
        topology: Topology,
        offsets: Ints,
        evidence: Evidence | None = None,
        costs: Mapping[int, Floats] | None = None,
        n_jobs: int = 1,
        single: bool = False,
    ) -> None:
        self.topology, self.offsets, self.evidence, self.costs = topology, offsets, evidence, costs or {}
        self.n_jobs = n_jobs
        bounds = range(offsets.size) if single else sub_batch_bounds(offsets, transitions(topology))
        self.pieces = [SubBatch(self, a, b) for a, b in itertools.pairwise(bounds)]

    def one_by_one(self) -> Partition:
        """The same with a piece for each sequence."""
        return Partition(self.topology, self.offsets, self.evidence, self.costs, self.n_jobs, single=True)

    def log_z(self, values: Values) -> Floats:
        values = self._with_costs(values)
        return np.concatenate(list(self._map(lambda piece: piece.batch.log_partition(piece.values(values)))))

    def expectations(self, values: Values, weights: Floats | None = None) -> TermCounts:
        found = self.each(values, weights)
        if len(found) == 1:
            return found[0]
        counts = {
            key: np.concatenate(parts) if has_time_axis(key, values[key].shape) else sum(parts[1:], start=parts[0])
            for key, parts in ((key, [part.counts[key] for part in found]) for key in values)
        }
        levels = range(self.topology.depth)
        state = [np.concatenate([part.state[d] for part in found]) for d in levels]
        ending = [np.concatenate([part.ending[d] for part in found]) for d in levels]
        return TermCounts(np.concatenate([part.log_z for part in found]), counts, state, ending)

    def each(self, values: Values, weights: Floats | None = None) -> list[TermCounts]:
        """The expectations of each piece."""
        values = self._with_costs(values)
        return list(self._map(lambda piece: piece.expectations(values, weights)))

    def best(self, values: Values) -> tuple[Any, Any, Floats]:
        """States and ends (D, N) of the best configuration of each sequence, and its score (n,)."""
        found = list(self._map(lambda piece: piece.batch.best(piece.values(values))))
        states, ends, score = zip(*found, strict=True)
        return np.concatenate(states, axis=1), np.concatenate(ends, axis=1), np.concatenate(score)

    def draw(self, values: Values, draws: int, rng: np.random.Generator) -> tuple[Any, Any, Floats]:
        """States and ends (draws, D, N) of samples, and log Z (n,); each piece has a generator of its own."""
        chances = dict(zip(self.pieces, rng.spawn(len(self.pieces)), strict=True))
        found = list(self._map(lambda piece: piece.batch.draw(piece.values(values), draws, chances[piece])))
        states, ends, log_z = zip(*found, strict=True)
        return np.concatenate(states, axis=2), np.concatenate(ends, axis=2), np.concatenate(log_z)

    def _with_costs(self, values: Values) -> Values:
        if not self.costs:
            return values
        raised = dict(values)
        add_costs(raised, self.costs)
        return raised

    def _map(self, work: Callable[[SubBatch], Any]) -> Iterable[Any]:
        if self.n_jobs == 1 or len(self.pieces) == 1:
            return map(work, self.pieces)
        with ThreadPoolExecutor(self.n_jobs) as pool:
            return list(pool.map(work, self.pieces))


class SubBatch:
    """The sequences first .. stop - 1 of a partition, as a batch of their own."""

    def __init__(self, whole: Partition, first: int, stop: int) -> None:
        self.sequences = slice(first, stop)
        self.steps = slice(int(whole.offsets[first]), int(whole.offsets[stop]))
        self.whole = whole.offsets.size - 1 == stop - first
        evidence = whole.evidence
        if evidence is not None and not self.whole:
            evidence = evidence.take(np.arange(self.steps.start, self.steps.stop))
        self.batch = Batch(whole.topology, whole.offsets[first : stop + 1] - whole.offsets[first], evidence)

    def values(self, values: Values) -> Values:
        if self.whole:
            return values
        return {key: array[self.steps] if has_time_axis(key, array.shape) else array for key, array in values.items()}

    def expectations(self, values: Values, weights: Floats | None) -> TermCounts:
        own = None if weights is None else weights[self.sequences]
        found = self.batch.expectations(self.values(values), own)
        return TermCounts(found.log_z, {key: found.counts[key] for key in values}, found.state, found.ending)


def sub_batch_bounds(offsets: Ints, each: int) -> list[int]:
    """Where pieces begin, and where the last ends; a step costs ``each`` operations."""
    bounds = [0]
    if each * offsets[-1] > WORK:
        for n, step in enumerate(offsets[1:-1].tolist(), start=1):
            if n - bounds[-1] >= SEQUENCES and each * (step - offsets[bounds[-1]]) >= WORK:
                bounds.append(n)
    return [*bounds, offsets.size - 1]


@lru_cache(maxsize=64)
def transitions(topology: Topology) -> int:
    """How many transitions between children there are under all parents."""
    return sum(int(table.sum(axis=1).astype(np.int64) @ table.sum(axis=1)) for table in topology.children)


def has_time_axis(key: Key, shape: tuple[int, ...]) -> bool:
    """Whether an array has a row for each step; others are shared by all steps of all sequences."""
    return key[0] not in ("duration", "tail") and (key[0] not in FAMILY or shape[0] > 1)


def by_key(keys: Sequence[Key], arrays: Sequence[Floats]) -> dict[Key, Floats]:
    """Arrays by part and level as the engine takes them: tables of a layer without a time axis have one of length 1."""
    return {
        key: array[None] if key[0] in FAMILY and array.ndim == (3 if key[0] == "trans" else 2) else array
        for key, array in zip(keys, arrays, strict=True)
    }


class PathCells(NamedTuple):
    """Which cells of the arrays complete labels use."""

    cells: dict[Key, Ints]  # by key: flat indices into its array
    sequences: dict[Key, Ints]  # by key: the sequence that each cell belongs to
    sequence: Ints  # those of all keys


class Path:
    """The score of complete labels of each sequence: a sum of cells of the values."""

    def __init__(self, topology: Topology, known: PackedLabels) -> None:
        self.topology, self.known = topology, known
        self.sequence_of = np.repeat(np.arange(known.offsets.size - 1), np.diff(known.offsets))
        self._kept: dict[Any, PathCells] = {}

    def cells(self, values: Values) -> PathCells:
        """The cells of the arrays that the labels use; found once for all values of these shapes."""
        shapes = {key: array.shape for key, array in values.items()}
        kept = tuple(shapes.items())
        if kept not in self._kept:
            self._kept[kept] = self._find_cells(shapes)
        return self._kept[kept]

    def _find_cells(self, shapes: Mapping[Key, tuple[int, ...]]) -> PathCells:
        cells, sequences = {}, {}
        for key, shape in shapes.items():
            if key[0] in ("duration", "segment"):
                self._check_durations(key, shape)
            deciding = (key, ("duration", key[1]), ("segment", key[1]))  # where durations are open, these set the limit
            own = {other: shapes[other] for other in deciding if other in shapes}
            cells[key], steps = event_cells(self.topology, own, self.known, key)
            sequences[key] = self.sequence_of[steps]
        return PathCells(cells, sequences, np.concatenate(list(sequences.values())))

    def _check_durations(self, key: Key, shape: tuple[int, ...]) -> None:
        """Raise if a segment is longer than the table of scores."""
        part, d = key
        stop = np.flatnonzero(self.known.ends[d] == 1) + 1
        lengths = np.diff(stop, prepend=0)
        longest = shape[0] if part == "duration" else shape[1]
        states = self.known.states[d][stop - 1]
        too_long = (lengths > longest) & (states >= 0) & ~self.topology.open_duration[d][states]
        if too_long.any():
            k = int(too_long.argmax())
            n = int(self.sequence_of[stop[k] - 1])
            begin = int(stop[k] - lengths[k] - self.known.offsets[n])
            level = self.topology.levels[d]
            problem = f"level {level!r} has a segment of {lengths[k]} steps from {begin}, but {part} ends at {longest}"
            raise Impossible(n, problem)

    def log_z(self, values: Values) -> Floats:
        found = self.cells(values)
        scores = np.concatenate([array.reshape(-1)[found.cells[key]] for key, array in values.items()])
        return np.bincount(found.sequence, scores, self.known.offsets.size - 1).astype(np.float64, copy=False)

    def subtract_counts(self, counts: dict[Key, Floats], weights: Floats | None) -> None:
        """Subtract the counts of the labels, each sequence's times its weight."""
        found = self.cells(counts)
        for key, array in counts.items():
            amounts = None if weights is None else weights[found.sequences[key]]
            flat = array.reshape(-1)
            if has_time_axis(key, array.shape):
                flat[found.cells[key]] -= 1.0 if amounts is None else amounts
            else:
                flat -= np.bincount(found.cells[key], amounts, flat.size)


class Ratio:
    """Log Z of a partition, minus the log mass of labels if there are any: a loss of each sequence."""

    def __init__(self, free: Partition, labels: Partition | Path | None = None) -> None:
        self.free, self.labels = free, labels

    def log_z(self, values: Values) -> Floats:
        found = self.free.log_z(values)
        return self.checked(found) if self.labels is None else found - self.checked(self.labels.log_z(values))

    def expectations(self, values: Values, weights: Floats | None) -> tuple[Floats, dict[Key, Floats]]:
        """The loss of each sequence, and the gradient of their weighted sum."""
        log_z, counts, *_ = self.free.expectations(values, weights)
        if self.labels is None:
            return self.checked(log_z), counts
        if isinstance(self.labels, Path):
            mass = self.checked(self.labels.log_z(values))
            counts = {key: np.ascontiguousarray(array) for key, array in counts.items()}
            self.labels.subtract_counts(counts, weights)
            return log_z - mass, counts
        known = self.labels.expectations(values, weights)
        return log_z - self.checked(known.log_z), {key: counts[key] - known.counts[key] for key in counts}

    def checked(self, mass: Floats) -> Floats:
        impossible = np.flatnonzero(mass == -np.inf)
        if impossible.size:
            raise Impossible(int(impossible[0]))
        return mass


class Impossible(Exception):
    """No configuration of a sequence agrees with its labels; the caller explains the cause."""

    def __init__(self, sequence: int, problem: str = "") -> None:
        super().__init__(sequence, problem)
        self.sequence, self.problem = sequence, problem
