"""Packed sequences on disk between the two passes of packing: by names and states as they were known by then."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hscrf.arrays import Ints
from hscrf.estimator.frame import Part
from hscrf.labels.packed import pack_labels
from hscrf.observations.packed import Observations, Sparse
from hscrf.scale.shardfile import pack_sets, unpack_labels
from hscrf.topology import Topology


@dataclass(frozen=True)
class Piece:
    """A file of the spool."""

    path: str
    topology: Topology  # over which its labels were read

    def read(self, offset: int) -> tuple[Part, Ints, Ints]:
        """The sequences, the first of which has the number ``offset``, and the sources and places they come from."""
        with np.load(self.path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        offsets, topology = arrays["offsets"], self.topology
        sparse = None
        if "indptr" in arrays:
            sparse = Sparse(arrays["indptr"], arrays["indices"], arrays["data"], int(arrays["size"]))
        raw = [None] * (len(offsets) - 1)
        observations = Observations(offsets, sparse, arrays.get("dense"), raw)
        labels = [unpack_labels(arrays, topology, n) for n in range(len(offsets) - 1)]
        return Part(observations, labels, offset), arrays["source"], arrays["place"]


class Spool:
    """Pieces of shards in a folder, in their order."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.pieces: dict[int, list[Piece]] = {}  # by shard
        self.topologies: dict[str, Topology] = {}  # many pieces share one
        self.size = 0  # bytes

    def __len__(self) -> int:
        return len(self.pieces)

    def add(self, shard: int, part: Part, source: Sequence[int], place: Sequence[Any]) -> None:
        """Keep a part on disk."""
        known, observations = pack_labels(part.labels), part.observations
        arrays: dict[str, Any] = {"offsets": observations.offsets, "states": known.states, "ends": known.ends}
        arrays |= {"source": np.array(source, dtype=np.int32), "place": np.array(place, dtype=np.int64)}
        if isinstance(observations.sparse, Sparse):
            x = observations.sparse
            arrays |= {"indptr": x.indptr, "indices": x.indices, "data": x.data, "size": np.array(x.size)}
        if observations.dense is not None:
            arrays["dense"] = observations.dense
        topology = self._shared(part.labels[0].topology)
        arrays |= pack_sets(part.labels, topology, known.offsets)
        own = self.pieces.setdefault(shard, [])
        path = os.path.join(self.folder, f"spool-{shard:06d}-{len(own):04d}.npz")
        with open(path, "wb") as file:
            np.savez(file, **arrays)
        self.size += os.path.getsize(path)
        own.append(Piece(path, topology))

    def _shared(self, topology: Topology) -> Topology:
        key = json.dumps(topology.to_json())
        return self.topologies.setdefault(key, topology)

    def shards(self) -> Iterator[list[Piece]]:
        """The pieces of each shard; those of shards that are done are removed."""
        for k in sorted(self.pieces):
            yield self.pieces[k]
            self._remove(self.pieces[k])

    def clear(self) -> None:
        """Remove all."""
        for pieces in self.pieces.values():
            self._remove(pieces)
        self.pieces = {}

    def _remove(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if os.path.exists(piece.path):
                os.unlink(piece.path)
