"""Add the posterior probabilities of predicted segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats
from hscrf.fillers import spread
from hscrf.inference import Posterior
from hscrf.inference.segments import SegmentQueries, attached, segment_probabilities
from hscrf.labels.labels import Labels
from hscrf.labels.shown import shown_levels
from hscrf.topology import Topology

if TYPE_CHECKING:
    from hscrf.estimator.scored import Scored

HiddenStates = Callable[[int], tuple[int, NDArray[np.bool_]]]


def hidden_states(topology: Topology, d: int) -> tuple[int, NDArray[np.bool_]]:
    """The level of a model behind the predicted level d, and for each state of d a mask of that level's states."""
    own: Any = np.eye(topology.n_states[d], dtype=bool)
    return d, spread(topology, "token", d, own).astype(bool)


def with_confidence(hidden: HiddenStates, scored: Scored | Posterior, labels: Sequence[Labels]) -> list[Labels]:
    """The labels of a chunk, with the posterior probabilities of their segments.

    ``hidden(d)`` returns the level of the model behind level d of the labels, and for each state of d a mask of that
    level's states.
    """
    if not labels:
        return []
    topology = labels[0].topology
    tables: list[dict[str, Floats]] = [{} for _ in labels]
    states = scored.batch.expectations(scored.values).state
    for d in shown_levels(topology):
        level = topology.levels[d]
        inner, masks = hidden(d)
        queries = segment_queries(labels, d, inner, masks)
        exact = segment_probabilities(scored.batch, scored.values, queries)
        own = np.concatenate([y.states[d] for y in labels])
        right = (states[inner] * masks[own]).sum(axis=1)  # of the predicted state of each step
        begins = scored.offsets[queries.sequence] + queries.start
        mean = np.clip(np.add.reduceat(right, begins) / (queries.stop - queries.start), 0.0, 1.0)
        cuts = np.searchsorted(queries.sequence, np.arange(1, len(labels)))
        for table, rows in zip(tables, np.split(np.stack([exact, mean], axis=1), cuts), strict=True):
            table[level] = rows
    return [attached(y, table) for y, table in zip(labels, tables, strict=True)]


def segment_queries(labels: Sequence[Labels], d: int, inner: int, masks: NDArray[np.bool_]) -> SegmentQueries:
    """All segments of level d of some sequences; ``inner`` and ``masks`` are what ``hidden(d)`` returned."""
    parts = [y.segment_arrays(d) for y in labels]
    start, stop, state = (np.concatenate(arrays).astype(np.int64) for arrays in zip(*parts, strict=True))
    sequence = np.repeat(np.arange(len(labels)), [part[0].size for part in parts])
    return SegmentQueries(inner, sequence, start, stop, masks[state])
