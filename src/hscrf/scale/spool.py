"""Packed sequences on disk between the two passes of packing: with provisional numbers of names and states."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.estimator.frame import Part
from hscrf.labels.packed import pack_labels
from hscrf.observations.packed import Observations, Sparse
from hscrf.scale.arrays import allowed_arrays, feature_count, labels_in, observation_arrays, observations_in
from hscrf.topology import Topology


class PlacedPart(NamedTuple):
    """Sequences, and for each the number of its source (n,) and its place there (n, 2)."""

    part: Part
    source: Ints
    place: Ints

    def without(self, n: int) -> PlacedPart:
        """The same without one sequence."""
        kept = np.flatnonzero(np.arange(len(self.part.labels)) != n)
        part = self.part
        rest = Part(part.observations.take(kept), [part.labels[k] for k in kept.tolist()], part.offset)
        return PlacedPart(rest, self.source[kept], self.place[kept])


@dataclass(frozen=True)
class SpoolFile:
    """A file of the spool."""

    path: str
    topology: Topology  # over which its labels were read
    count: int  # of its sequences

    def read(self, begin: int, stop: int) -> PlacedPart:
        """Some of the sequences, with the sources and places they come from."""
        arrays = self._arrays()
        observations = observations_in(arrays, int(arrays["features"]))
        labels = [labels_in(arrays, self.topology, n) for n in range(begin, stop)]
        if stop - begin < self.count:
            observations = observations.take(np.arange(begin, stop))
        part = Part(without_ones(observations), labels, 0)
        return PlacedPart(part, arrays["source"][begin:stop], arrays["place"][begin:stop])

    def columns(self, begin: int, stop: int) -> NDArray[np.float64]:
        """The numeric columns (N, F) of some of the sequences, as they were given."""
        arrays = self._arrays("offsets", "dense")
        first, last = arrays["offsets"][[begin, stop]].tolist()
        found: NDArray[np.float64] = arrays["dense"][first:last]
        return found

    def _arrays(self, *names: str) -> dict[str, NDArray[Any]]:
        with np.load(self.path, allow_pickle=False) as found:
            return {name: found[name] for name in names or found.files}


def without_ones(observations: Observations) -> Observations:
    """Observations without stored values if all are one, as if these sequences had been packed alone."""
    x = observations.sparse
    if isinstance(x, Sparse) and x.data.size and (x.data == 1).all():
        return Observations(
            observations.offsets,
            Sparse(x.indptr, x.indices, np.empty(0), x.size),
            observations.dense,
            observations.raw,
        )
    return observations


class Spool:
    """The pieces of one stretch of sources in a folder, in their order."""

    def __init__(self, folder: str, stretch: int) -> None:
        self.folder, self.stretch = folder, stretch
        self.pieces: list[SpoolFile] = []
        self.topologies: dict[str, Topology] = {}  # many pieces share one

    def add(self, part: Part, source: Sequence[int], place: Sequence[Any]) -> None:
        """Write a part to disk."""
        known, observations = pack_labels(part.labels), part.observations
        topology = self._shared(part.labels[0].topology)
        arrays: Any = observation_arrays(observations) | {"states": known.states, "ends": known.ends}
        arrays |= {"source": np.array(source, dtype=np.int32), "place": np.array(place, dtype=np.int64)}
        arrays |= {"features": np.array(feature_count(observations))}
        arrays |= allowed_arrays(part.labels, topology, known.offsets)
        path = os.path.join(self.folder, f"spool-{self.stretch:06d}-{len(self.pieces):06d}.npz")
        with open(path, "wb") as file:
            np.savez(file, **arrays)
        self.pieces.append(SpoolFile(path, topology, len(part.labels)))

    def _shared(self, topology: Topology) -> Topology:
        key = json.dumps(topology.to_json())
        return self.topologies.setdefault(key, topology)


def remove(pieces: Iterable[SpoolFile]) -> None:
    """Remove the files of pieces."""
    for piece in pieces:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(piece.path)
