"""Decode for the largest expected number of right steps or segments."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from hscrf.arrays import Floats
from hscrf.engine import Batch
from hscrf.fillers import masked, spread, summed
from hscrf.potentials import Key
from hscrf.topology import Topology

LOSSES = ("sequence", "step", "segment")


def check_loss(loss: str, topology: Topology, scheme: Any) -> None:
    """Raise for an unknown loss; warn of ``"step"`` where tags delimit segments."""
    if loss not in LOSSES:
        raise ValueError(f"loss is {loss!r}, expected 'sequence', 'step' or 'segment'")
    if loss != "step":
        return
    schemes = scheme if isinstance(scheme, Mapping) else dict.fromkeys(topology.levels[1:], scheme)
    delimited = [level for level, kind in schemes.items() if kind in ("bio", "bioes")]
    if delimited:
        warnings.warn(
            f"loss='step' ignores where segments begin, but level {delimited[0]!r} has tags that delimit them "
            f"({schemes[delimited[0]]}): expect fewer right segments and sequences; "
            "expected 'sequence' or 'segment'",
            stacklevel=3,
        )


def expected_gains(topology: Topology, batch: Batch, values: Mapping[Key, Floats], loss: str) -> dict[Key, Floats]:
    """Return potentials whose best configuration has the largest expected number of right steps, or segments.

    They are the posterior probabilities of states at steps, or of segments. Copies of a filler share its probability.
    """
    if loss == "step":
        found = batch.expectations(values)
        return masked(topology, {("token", d): _shared(topology, d, found.state[d]) for d in range(topology.depth)})
    unit = topology.depth - (1 if topology.unit_bottom else 0)
    found = batch.expectations(values, explicit=range(unit))
    gains = {("segment", d): _shared(topology, d, found.segments[d]) for d in range(unit)}
    if topology.unit_bottom:
        gains["token", unit] = _shared(topology, unit, found.state[unit])
    return masked(topology, gains)


def _shared(topology: Topology, d: int, posterior: Floats) -> Floats:
    """For each hidden state, the posterior of the public state that it stands for."""
    return spread(topology, "token", d, summed(topology, d, posterior))
