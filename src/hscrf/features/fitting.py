"""From specifications and training data to blocks."""

from __future__ import annotations

from collections.abc import Sequence

from hscrf.features.blocks import Block
from hscrf.features.occurrences import Occurrences
from hscrf.features.specifications import Specification
from hscrf.labels.packed import Known
from hscrf.observations.encoder import Encoder
from hscrf.observations.packed import Observations
from hscrf.topology import Topology


def fit_blocks(
    specifications: Sequence[Specification],
    topology: Topology,
    encoder: Encoder,
    observations: Observations,
    known: Known,
    pairs: str = "seen",
    transitions: str = "all",
) -> list[Block]:
    """A block for each specification, fitted to training data at once; see :class:`Occurrences`."""
    frame = Occurrences(topology, encoder, specifications, pairs, transitions)
    frame.update(observations, known)
    return [spec.fit(frame) for spec in specifications]
