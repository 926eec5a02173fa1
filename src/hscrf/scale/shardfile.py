"""One shard as a file: its sequences by steps, and its chunks, ready for evaluation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.engine import Batch, Evidence
from hscrf.estimator.frame import Part
from hscrf.files.container import write_container
from hscrf.files.lazy import ALIGN, CHECKED_FILES, ContainerFile
from hscrf.fillers import masked
from hscrf.inference.posterior import Posterior
from hscrf.labels.labels import Labels
from hscrf.labels.packed import PackedLabels, closed_labels, pack_labels
from hscrf.objective.likelihood import cut_by_kind
from hscrf.objective.workers import CUTS, cut_chunks
from hscrf.observations.packed import Divided, Observations
from hscrf.potentials import Potentials
from hscrf.scale.arrays import Arrays, allowed_arrays, feature_count, labels_in, observation_arrays, observations_in
from hscrf.topology import Topology

DIVIDED = ("names", "begin", "found", "rare", "rows", "data")  # the arrays of divided features
ORDER = (  # of the arrays of a chunk, and of those by steps; then the sets of allowed states by level
    ("complete", "which", "offsets", *DIVIDED[:-1], "indptr", "indices", "data", "dense")
    + ("states", "ends", "may", "narrow")
)


# -- writing


def write_shard(
    path: str,
    part: Part,
    topology: Topology,
    source: Ints,
    place: Ints,
    infer: bool = False,
    chunk: int = CUTS.chunk,
) -> tuple[str, int]:
    """Write sequences in their final form, with their places; return the checksum and the number of chunks.

    With ``infer``, impossible partial labels are an error here instead of during evaluation. ``chunk`` is the number
    of steps of a chunk.
    """
    known, lengths = pack_labels(part.labels), np.diff(part.observations.offsets)
    complete = known.complete_sequences()
    partial = np.flatnonzero(~complete)
    closed = dict(
        zip(partial.tolist(), closed_labels([part.labels[n] for n in partial], partial + part.offset), strict=True)
    )
    if infer:
        check_possible(part, closed, topology)
    arrays: Arrays = {"source": source, "place": place, "complete": complete}
    arrays |= observation_arrays(part.observations) | {"states": known.states, "ends": known.ends}
    arrays |= allowed_arrays(part.labels, topology, known.offsets)
    chunks = cut_by_kind(lengths, complete, np.arange(len(lengths)), chunk)
    for k, which in enumerate(chunks):
        arrays |= _chunk(f"{k}.", part.observations, known, closed, complete, which, topology)
    header = {"kind": "shard", "features": feature_count(part.observations), "depth": topology.depth}
    return write_container(path, header, arrays, align=ALIGN), len(chunks)


def check_possible(part: Part, closed: Mapping[int, Labels], topology: Topology) -> None:
    """Raise for partial labels that contradict each other in a way that only inference finds."""
    numbers = np.array(list(closed), dtype=np.int64)
    lengths = np.array([closed[n].length for n in numbers.tolist()], dtype=np.int64)
    for some in cut_chunks(lengths):
        evidence = Evidence.of([closed[n] for n in numbers[some].tolist()])
        log_z = Batch(topology, np.append(0, np.cumsum(lengths[some])), evidence).log_partition(masked(topology, {}))
        for n in numbers[some][log_z == -np.inf].tolist():
            y = part.labels[n]
            raise Posterior(Potentials(topology, length=y.length), y).infeasible().of_sequence(n + part.offset)


def _chunk(
    prefix: str,
    observations: Observations,
    known: PackedLabels,
    closed: Mapping[int, Labels],
    complete: NDArray[np.bool_],
    which: Ints,
    topology: Topology,
) -> Arrays:
    """One chunk: its observations, divided, and its labels in the form of the engine."""
    taken = observations.take(which).divided()
    found: Arrays = {"which": which, "offsets": taken.offsets}
    if isinstance(taken.sparse, Divided):
        found |= {name: getattr(taken.sparse, name) for name in DIVIDED}
    if taken.dense is not None:
        found["dense"] = taken.dense
    if complete[which[0]]:
        own = known.take(which).hidden(topology)
        found |= {"states": own.states, "ends": own.ends}
    else:
        evidence = Evidence.of([closed[n] for n in which.tolist()])
        found["may"] = np.stack([evidence.may_end, evidence.may_go_on, evidence.may_follow])
        found |= {f"allowed{d}": sets for d, sets in enumerate(evidence.allowed) if sets is not None}
    return {prefix + name: array for name, array in found.items()}


# -- reading


class ShardRows(NamedTuple):
    """All sequences of a shard by steps."""

    observations: Observations
    known: PackedLabels
    complete: NDArray[np.bool_]
    arrays: Arrays

    def labels(self, n: int, topology: Topology) -> Labels:
        """The labels of one sequence."""
        return labels_in(self.arrays, topology, n)


@dataclass(frozen=True)
class ShardFile:
    """A shard on disk. It pickles as its name and its checksum, which is checked once in each process."""

    path: str
    digest: str
    first: int  # number of its first sequence
    count: int  # number of sequences
    steps: int
    chunks: int
    complete: int  # number of sequences with complete labels

    @property
    def file(self) -> ContainerFile:
        """The open container of the shard."""
        return CHECKED_FILES.open(self.path, self.digest)

    def chunk(self, k: int) -> tuple[Ints, Observations, Any]:
        """The numbers of the sequences of a chunk within the shard, their observations and their labels."""
        found = self._read(f"{k}.")
        offsets = found["offsets"]
        sparse = Divided(*(found[name] for name in DIVIDED)) if "names" in found else None
        observations = Observations(offsets, sparse, found.get("dense"), [None] * (len(offsets) - 1))
        if "may" not in found:
            return found["which"], observations, PackedLabels(found["states"], found["ends"], offsets)
        depth = found["may"].shape[1]
        allowed = tuple(found.get(f"allowed{d}") for d in range(depth))
        may_end, may_go_on, may_follow = found["may"]
        return found["which"], observations, Evidence(may_end, may_go_on, may_follow, allowed)

    def rows(self) -> ShardRows:
        """All sequences by steps."""
        found = self._read("")
        observations = observations_in(found, self.file.header["features"])
        known = PackedLabels(found["states"], found["ends"], found["offsets"])
        return ShardRows(observations, known, found["complete"], found)

    def places(self) -> tuple[Ints, Ints]:
        """The source (n,) of each sequence, and its place there (n, 2)."""
        found = self.file.read(["source", "place"])
        return found["source"], found["place"]

    def _read(self, prefix: str) -> Arrays:
        """The arrays of a chunk, or those by steps."""
        file = self.file
        names = [prefix + name for name in ORDER if prefix + name in file.table]
        names += [f"{prefix}allowed{d}" for d in range(file.header["depth"]) if f"{prefix}allowed{d}" in file.table]
        return {name.removeprefix(prefix): array for name, array in file.read(names).items()}


class RowsCache:
    """The rows of the shards that were used last: stochastic solvers stay in one shard."""

    def __init__(self, kept: int = 2) -> None:
        self.kept = kept
        self.rows: OrderedDict[str, ShardRows] = OrderedDict()
        self.lock = Lock()

    def of(self, shard: ShardFile) -> ShardRows:
        """Return the rows of a shard, from the cache if possible."""
        with self.lock:
            if shard.digest not in self.rows:
                self.rows[shard.digest] = shard.rows()
            self.rows.move_to_end(shard.digest)
            while len(self.rows) > self.kept:
                self.rows.popitem(last=False)
            return self.rows[shard.digest]
