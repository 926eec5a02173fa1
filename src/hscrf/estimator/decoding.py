"""Decoding for the most right steps or segments."""

from __future__ import annotations

from typing import Any

from hscrf.arrays import Floats
from hscrf.engine.plan import Plan


def expected_gain(plan: Plan, values: dict[Any, Floats], loss: str) -> tuple[Plan, dict[Any, Floats]]:
    """A plan whose best configuration has the most right steps, or segments, to be expected."""
    topology = plan.topology
    if loss == "step":
        found = plan.expectations(values)
        gains = {("token", d): found.state[d] for d in range(topology.depth)}
    else:
        unit = topology.depth - (1 if topology.unit_bottom else 0)
        every = Plan(topology, plan.offsets, plan.shapes, plan.evidence, explicit=range(unit))
        found = every.expectations(values)
        gains = {("segment", d): every.by_start(d, found.segments[d]) for d in range(unit)}
        if topology.unit_bottom:
            gains["token", unit] = found.state[unit]
    shapes = {key: table.shape for key, table in gains.items()}
    return Plan(topology, plan.offsets, shapes, plan.evidence), gains
