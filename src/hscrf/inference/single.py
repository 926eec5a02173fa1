"""The potentials and labels of one sequence as the engine takes them."""

from __future__ import annotations

import numpy as np

from hscrf.arrays import Floats
from hscrf.engine.evidence import Evidence, closed_evidence
from hscrf.engine.plan import Plan
from hscrf.labels.labels import Labels
from hscrf.potentials import Key, Potentials


def values_of(potentials: Potentials) -> dict[Key, Floats]:
    """The arrays by part and level index, as the engine takes them."""
    return {(part, potentials.topology.level(level)): values for part, level, values in potentials.parts()}


def plan_of(potentials: Potentials, evidence: Labels | None, explicit: tuple[int, ...] = ()) -> Plan:
    """Check the evidence against the potentials and lay them out."""
    topology = potentials.topology
    offsets = np.array([0, potentials.length], dtype=np.int64)
    known = None if evidence is None else evidence_of(potentials, evidence)
    shapes = {key: values.shape for key, values in values_of(potentials).items()}
    return Plan(topology, offsets, shapes, known, explicit)


def evidence_of(potentials: Potentials, labels: Labels) -> Evidence:
    """The closed labels of one sequence in the engine's form."""
    if not isinstance(labels, Labels):
        raise ValueError(f"evidence is a {type(labels).__name__}, expected Labels")
    if labels.topology != potentials.topology:
        raise ValueError(f"evidence has {labels.topology}, but the potentials have {potentials.topology}")
    if labels.length != potentials.length:
        raise ValueError(f"evidence has {labels.length} steps, but the potentials have {potentials.length}")
    return closed_evidence(labels)
