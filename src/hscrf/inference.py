"""Exact inference: one packed engine behind the verbs log_partition, marginals, decode, k_best, sample, entropy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf._engine import LOG, MAX, Evidence, Key, Plan
from hscrf.labels import InfeasibleError, Labels
from hscrf.potentials import PARTS, Potentials

__all__ = ["Marginals", "decode", "entropy", "log_partition", "marginals", "sample", "score"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Marginals:
    """Posterior probabilities of one sequence."""

    log_partition: float
    state: dict[str, Floats]  # level -> (T, S): the level is in state s at t
    ending: dict[str, Floats]  # level -> (T,): a segment of the level has its last step at t
    counts: Potentials  # expected counts, shaped like the potentials: the gradient of log Z
    _potentials: Potentials = field(repr=False)
    _evidence: Labels | None = field(repr=False)

    def segment(self, level: str) -> Floats:
        """Posterior (T, L, S) that a segment of state s starts at t and has length l + 1.

        L is the longest segment that is admissible. Computed on demand for a level without durations: O(T^2 S).
        """
        d = self.counts.topology.level(level)
        plan = plan_of(self._potentials, self._evidence, explicit=(d,) if d else ())
        if d not in plan.tables:  # a bottom of unit length
            return self.state[self.counts.topology.levels[d]][:, None, :]
        return plan.by_start(d, plan.expectations(values_of(self._potentials)).segments[d])


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


def closed_evidence(labels: Labels) -> Evidence:
    closed = labels.closed()
    allowed = tuple(closed.allowed[level] for level in labels.topology.levels)  # type: ignore[index]
    sets = tuple(None if table.all() else table for table in allowed)
    return Evidence(closed.ends != 0, closed.ends != 1, sets)


def log_partition(potentials: Potentials, evidence: Labels | None = None) -> float:
    """Log of the total mass of all configurations that agree with the evidence.

    >>> from hscrf import Potentials, Topology
    >>> p = Potentials(Topology({"tag": ["N", "V"]}), 3)
    >>> round(np.exp(log_partition(p)))
    8
    """
    plan = plan_of(potentials, evidence)
    return feasible(float(plan.log_partition(values_of(potentials))[0]), potentials, evidence)


def marginals(potentials: Potentials, evidence: Labels | None = None) -> Marginals:
    """Posterior probabilities of states, endings and segments, and the expected counts.

    The counts are the gradient of :func:`log_partition` with respect to the potentials.
    """
    topology = potentials.topology
    result = plan_of(potentials, evidence).expectations(values_of(potentials))
    feasible(result.log_z[0], potentials, evidence)
    counts: dict[str, dict[str, Floats]] = {part: {} for part in PARTS}
    for (part, d), values in result.counts.items():
        counts[part][topology.levels[d]] = values
    return Marginals(
        float(result.log_z[0]),
        dict(zip(topology.levels, result.state, strict=True)),
        dict(zip(topology.levels, result.ending, strict=True)),
        Potentials(topology, potentials.length, **counts),
        potentials,
        evidence,
    )


def decode(potentials: Potentials, evidence: Labels | None = None) -> Labels:
    """The best configuration that agrees with the evidence; its log score is ``.score``.

    Ties are broken by a fixed rule, walking back from the last step: the state that comes first in the topology, then
    the shortest segment of the lowest level, and a boundary at as few levels as will do.
    """
    states, ends, best = plan_of(potentials, evidence).trace(MAX, values_of(potentials), 1, np.random.default_rng(0))
    feasible(best[0], potentials, evidence)
    return Labels(potentials.topology, states[0], ends[0], score=float(best[0]))


def sample(
    potentials: Potentials, n: int = 1, random_state: Any = None, evidence: Labels | None = None
) -> list[Labels]:
    """Draw n exact and independent samples from the posterior; random_state as for numpy's ``default_rng``."""
    rng = np.random.default_rng(random_state)
    states, ends, log_z = plan_of(potentials, evidence).trace(LOG, values_of(potentials), n, rng)
    feasible(log_z[0], potentials, evidence)
    return [Labels(potentials.topology, x, e) for x, e in zip(states, ends, strict=True)]


def entropy(potentials: Potentials, evidence: Labels | None = None) -> float:
    """Entropy, in nats, of the posterior over configurations: log Z minus the expected score."""
    posterior = marginals(potentials, evidence)
    expected = 0.0
    for part, level, values in potentials.parts():
        counts = posterior.counts[part][level]
        expected += float((counts[counts > 0] * values[counts > 0]).sum())
    return posterior.log_partition - expected


def score(potentials: Potentials, labels: Labels) -> float:
    """Log score of one complete configuration; -inf if a potential forbids it."""
    evidence_of(potentials, labels)
    topology = potentials.topology
    total = 0.0
    for d, level in enumerate(topology.levels):
        start, stop, state = labels.segment_arrays(d)
        last = stop - 1
        total += own_score(potentials, level, start, last, state)
        if d + 1 < topology.depth:
            total += family_score(potentials, labels, d, start, last, state)
    return total


def own_score(p: Potentials, level: str, start: Any, last: Any, state: Any) -> float:
    """Score of the segments of a level by themselves: the paper's persistence."""
    length = last - start
    total = 0.0
    if level in p.token:
        total += sum(p.token[level][i : j + 1, s].sum() for i, j, s in zip(start, last, state, strict=True))
    if level in p.start:
        total += p.start[level][start, state].sum()
    if level in p.stop:
        total += p.stop[level][last, state].sum()
    for table, index in ((p.duration, (length, state)), (p.segment, (start, length, state))):
        if level in table:
            longest = table[level].shape[-2]
            if (length >= longest).any():
                return -np.inf
            total += table[level][index].sum()
    return float(total)


def family_score(p: Potentials, labels: Labels, d: int, start: Any, last: Any, state: Any) -> float:
    """Score of a level's parents and their children: init, trans and end."""
    level = p.topology.levels[d]
    first, stop, child = labels.segment_arrays(d + 1)
    total = 0.0
    for part, times, kids in (
        (p.init, start, child[np.searchsorted(first, start)]),
        (p.end, last, child[np.searchsorted(stop, last + 1)]),
    ):
        if level in part:
            table = part[level]
            total += table[times if len(table) > 1 else np.zeros_like(times), state, kids].sum()
    if level in p.trans:
        table = p.trans[level]
        inner = np.flatnonzero(~np.isin(stop[:-1], last + 1))  # a child ends, its parent goes on
        parent = labels.states[d, first[inner]]
        when = stop[inner] - 1 if len(table) > 1 else np.zeros_like(inner)
        total += table[when, parent, child[inner], child[inner + 1]].sum()
    return float(total)


def k_best(potentials: Potentials, k: int, evidence: Labels | None = None) -> list[Labels]:
    """The k best configurations in order of their score, fewer if there are not so many.

    Lazy: after one pass as in :func:`decode`, the work grows with k and the length, not with the model.
    """
    from itertools import islice

    from hscrf._kbest import KBest

    best = [
        Labels(potentials.topology, states, ends, score=score)
        for score, states, ends in islice(KBest(plan_of(potentials, evidence), values_of(potentials)), k)
    ]
    if not best:
        feasible(-np.inf, potentials, evidence)
    return best


def feasible(value: float, potentials: Potentials, evidence: Labels | None) -> float:
    """Return a log mass, or raise and say which labels leave nothing possible."""
    if value > -np.inf:
        return value
    if evidence is None or not is_possible(potentials, None):
        what = f"{potentials.length} steps" + ("" if evidence is None else ", whatever the evidence")
        raise InfeasibleError(f"the potentials and the topology allow no configuration of {what}")
    core = conflict(potentials, evidence)
    raise InfeasibleError(f"no segmentation agrees with the evidence: {' and '.join(core)}")


def is_possible(potentials: Potentials, evidence: Labels | None) -> bool:
    try:
        return plan_of(potentials, evidence).log_partition(values_of(potentials))[0] > -np.inf
    except InfeasibleError:
        return False


def conflict(potentials: Potentials, evidence: Labels) -> list[str]:
    """A smallest set of labels that contradict each other: none of them can be left out.

    Labels are tried in the order of time; halving finds each member in O(log n) inferences.
    """
    cells = known_cells(evidence)
    core: list[Any] = []
    low, high = 0, len(cells)
    while high > 0:
        # the shortest prefix that, with the core, is impossible; its last label belongs to the core
        low = 0
        while low < high:
            middle = (low + high) // 2
            if is_possible(potentials, only(evidence, cells[:middle] + core)):
                low = middle + 1
            else:
                high = middle
        if low == 0:
            break
        core.append(cells[low - 1])
        high = low - 1
    return [describe(evidence, cell) for cell in reversed(core)]


Cell = tuple[int, str, int]  # time, "state", "end" or "set", level


def known_cells(labels: Labels) -> list[Cell]:
    """Every known state, ending indicator and set of allowed states, in the order of time."""
    cells: list[Cell] = []
    for d, level in enumerate(labels.topology.levels):
        cells += [(int(t), "state", d) for t in np.flatnonzero(labels.states[d] >= 0)]
        cells += [(int(t), "end", d) for t in np.flatnonzero(labels.ends[d] >= 0)]
        if labels.allowed and level in labels.allowed:
            cells += [(int(t), "set", d) for t in np.flatnonzero(~labels.allowed[level].all(axis=1))]
    return sorted(cells)


def only(labels: Labels, cells: list[Cell]) -> Labels:
    """The labels with nothing but some cells known."""
    states = np.full_like(labels.states, -1)
    ends = np.full_like(labels.ends, -1)
    allowed = {level: np.ones_like(sets) for level, sets in (labels.allowed or {}).items()}
    for t, kind, d in cells:
        if kind == "state":
            states[d, t] = labels.states[d, t]
        elif kind == "end":
            ends[d, t] = labels.ends[d, t]
        else:
            level = labels.topology.levels[d]
            allowed[level][t] = labels.allowed[level][t]  # type: ignore[index]
    return Labels(labels.topology, states, ends, allowed or None)


def describe(labels: Labels, cell: Cell) -> str:
    t, kind, d = cell
    level, names = labels.topology.levels[d], labels.topology.states[d]
    if kind == "state":
        return f"level {level!r} is {names[labels.states[d, t]]!r} at {t}"
    if kind == "end":
        return f"level {level!r} {'ends' if labels.ends[d, t] else 'goes on'} at {t}"
    kept = [names[s] for s in np.flatnonzero(labels.allowed[level][t])]  # type: ignore[index]
    return f"level {level!r} is one of {kept} at {t}"
