"""From specifications and training data to blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.features.blocks import AverageBlock, Block, ConstantBlock, DenseBlock, DurationBlock, PairBlock, SegmentBlock
from hscrf.features.events import Events, family_cells, family_events, own_events
from hscrf.features.specifications import PART, Duration, End, Init, Segment, Specification, Token, Trans
from hscrf.labels.packed import Known
from hscrf.observations.encoder import Encoder
from hscrf.observations.packed import Observations, Sparse, entries_of, of_names
from hscrf.potentials import Key
from hscrf.topology import UNLIMITED, Topology


def fit_blocks(
    specifications: Sequence[Specification],
    topology: Topology,
    encoder: Encoder,
    seen: Observations,
    known: Known,
    pairs: str = "seen",
    transitions: str = "all",
) -> list[Block]:
    """Blocks for the training data; ``"seen"`` gives a weight only to what occurs in it.

    ``pairs`` speaks of features and states, ``transitions`` of the constant init, trans and end weights.
    """
    for name, value in (("pairs", pairs), ("transitions", transitions)):
        if value not in ("seen", "all"):
            raise ValueError(f"{name} is {value!r}, expected 'seen' or 'all'")
    return [fit_block(spec, topology, encoder, seen, known, pairs, transitions) for spec in specifications]


def fit_block(
    spec: Specification,
    topology: Topology,
    encoder: Encoder,
    seen: Observations,
    known: Known,
    pairs: str,
    transitions: str,
) -> Block:
    d = topology.level(spec.level)
    states = topology.n_states[d]
    key = (PART[type(spec)], d)
    if isinstance(spec, (Init, Trans, End)):
        if d == topology.depth - 1:
            raise ValueError(f"{type(spec).__name__}({spec.level!r}) names the bottom, expected a parent's level")
        cells, shape = family_cells(topology, key)
        events = family_events(topology, known, key)
        if spec.observed:
            return observed_block(key, shape, cells, encoder, seen, events, pairs)
        if transitions == "seen" and known.complete(d, d + 1):
            cells = np.intersect1d(cells, events.cells)
        return ConstantBlock(key, (1, *shape), cells)
    if isinstance(spec, Duration):
        return DurationBlock(key, spec.kind, longest_of(topology, d, spec), states)
    if isinstance(spec, Segment):
        z = seen.raw[0]
        features = np.atleast_1d(np.asarray(spec.function(z, 0, 1), dtype=np.float64)).size
        return SegmentBlock(key, spec.function, features, longest_of(topology, d, spec), states)
    events = own_events(known, key)
    tokens = observed_block(key, (states,), np.arange(states), encoder, seen, events, pairs)
    if isinstance(spec, Token) and spec.average:
        return AverageBlock(tokens, longest_of(topology, d, spec))
    return tokens


def longest_of(topology: Topology, d: int, spec: Any) -> int:
    """The longest duration of a level, which its segment tables need."""
    if topology.unit_bottom and d == topology.depth - 1:
        return 1
    longest = int(topology.max_duration[d].max())
    if longest == UNLIMITED:
        level = topology.levels[d]
        raise ValueError(f"{spec} needs a longest duration, but level {level!r} has none: give max_duration")
    return longest


def observed_block(
    key: Key,
    shape: tuple[int, ...],
    cells: Ints,
    encoder: Encoder,
    seen: Observations,
    events: Events,
    pairs: str,
) -> PairBlock | DenseBlock:
    """A block for numeric columns, or for pairs of names and cells."""
    if seen.dense is not None:
        return DenseBlock(key, shape, cells, seen.dense.shape[1])
    x = of_names(seen)
    if pairs == "all":
        pair_at = np.arange(x.size + 1) * cells.size
        return PairBlock(key, shape, pair_at, np.tile(cells, x.size).astype(np.int32))
    return PairBlock(key, shape, *seen_pairs(x, cells, events, int(np.prod(shape))))


def seen_pairs(x: Sparse, cells: Ints, events: Events, width: int) -> tuple[Ints, NDArray[np.int32]]:
    """The pairs that occur together; a feature that meets only events of which not all is known has every cell."""
    entries, counts = entries_of(x, events.steps)
    found = np.unique(x.indices[entries].astype(np.int64) * width + np.repeat(events.cells, counts))
    lonely = np.zeros(x.size, dtype=bool)
    lonely[x.indices[entries_of(x, events.open)[0]]] = True
    lonely[found // width] = False
    if lonely.any():
        found = np.union1d(found, (np.flatnonzero(lonely)[:, None] * width + cells).ravel())
    pair_at = np.searchsorted(found, np.arange(x.size + 1) * width)
    return pair_at.astype(np.int64), (found % width).astype(np.int32)
