"""Decoding for the most right steps or segments."""

from __future__ import annotations

from collections.abc import Mapping

from hscrf.arrays import Floats
from hscrf.engine import Batch
from hscrf.potentials import Key


def expected_gains(batch: Batch, values: Mapping[Key, Floats], loss: str) -> dict[Key, Floats]:
    """Potentials under which the best configuration has the most right steps, or segments, to be expected.

    They are the posterior probabilities of states at steps, or of segments.
    """
    topology = batch.topology
    if loss == "step":
        found = batch.expectations(values)
        return {("token", d): found.state[d] for d in range(topology.depth)}
    unit = topology.depth - (1 if topology.unit_bottom else 0)
    found = batch.expectations(values, explicit=range(unit))
    plan = batch.plan(values, explicit=range(unit))
    gains = {("segment", d): plan.by_start(d, found.segments[d]) for d in range(unit)}
    if topology.unit_bottom:
        gains["token", unit] = found.state[unit]
    return gains
