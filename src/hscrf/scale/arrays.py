"""Observations and labels as named arrays, for files, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.labels.labels import Labels
from hscrf.observations.packed import Observations, Sparse, of_names
from hscrf.topology import Topology

Arrays = dict[str, NDArray[Any]]
OBSERVED = ("offsets", "indptr", "indices", "data", "dense")  # the arrays of observations


def observation_arrays(observations: Observations) -> Arrays:
    """Observations by steps."""
    found: Arrays = {"offsets": observations.offsets}
    if isinstance(observations.sparse, Sparse):
        x = observations.sparse
        found |= {"indptr": x.indptr, "indices": x.indices, "data": x.data}
    if observations.dense is not None:
        found["dense"] = observations.dense
    return found


def feature_count(observations: Observations) -> int:
    """The number of named features, 0 if there are none."""
    return observations.sparse.size if isinstance(observations.sparse, Sparse) else 0


def observations_in(arrays: Mapping[str, NDArray[Any]], features: int) -> Observations:
    """Observations from their arrays and number of features, the inverse of :func:`observation_arrays`."""
    sparse = None
    if "indptr" in arrays:
        sparse = Sparse(arrays["indptr"], arrays["indices"], arrays["data"], features)
    offsets = arrays["offsets"]
    return Observations(offsets, sparse, arrays.get("dense"), [None] * (len(offsets) - 1))


def joined_observations(parts: Sequence[Observations]) -> Observations:
    """Observations joined in their order."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    raw = [None] * len(lengths)
    columns = [part.dense for part in parts if part.dense is not None]
    dense = np.concatenate(columns) if columns else None
    if parts[0].sparse is None:
        return Observations(offsets, None, dense, raw)
    rows = [of_names(part) for part in parts]
    counts = np.concatenate([np.diff(x.indptr) for x in rows])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    valued = any(x.data.size for x in rows)
    data = np.concatenate([x.data if x.data.size else np.ones(x.indices.size) for x in rows]) if valued else np.empty(0)
    sparse = Sparse(indptr, np.concatenate([x.indices for x in rows]), data, rows[0].size)
    return Observations(offsets, sparse, dense, raw)


def allowed_arrays(labels: Sequence[Labels], topology: Topology, offsets: Ints) -> Arrays:
    """Which sequences have sets of allowed states (n,), and the sets (N, S) of each level that has any."""
    narrow = np.array([y.allowed is not None for y in labels])
    if not narrow.any():
        return {}
    found: Arrays = {"narrow": narrow}
    for d, level in enumerate(topology.levels):
        own = [(n, labels[n].allowed or {}) for n in np.flatnonzero(narrow).tolist()]
        if any(level in sets for _, sets in own):
            found[f"allowed{d}"] = np.ones((int(offsets[-1]), topology.n_states[d]), dtype=bool)
            for n, sets in own:
                if level in sets:
                    found[f"allowed{d}"][offsets[n] : offsets[n + 1]] = sets[level]
    return found


def labels_in(arrays: Mapping[str, NDArray[Any]], topology: Topology, n: int) -> Labels:
    """The labels of one sequence, from states, ends and offsets, and the arrays of :func:`allowed_arrays`."""
    begin, stop = arrays["offsets"][n : n + 2].tolist()
    states, ends = arrays["states"][:, begin:stop], arrays["ends"][:, begin:stop]
    if "narrow" not in arrays or not arrays["narrow"][n]:
        return Labels.unchecked(topology, states, ends)
    places = [(level, f"allowed{d}") for d, level in enumerate(topology.levels)]
    return Labels(topology, states, ends, {level: arrays[k][begin:stop] for level, k in places if k in arrays})
