"""Temperatures calibrate the probabilities of a model: a share p of the predictions with probability p is right.

A temperature belongs to a level and changes only the probabilities that are reported, never the joint distribution,
the potentials or the labels that are decoded. The probabilities p of the states of a step become
p ** (1 / temperature), divided by their sum. The probability q that a segment exists becomes
q ** (1 / temperature) / (q ** (1 / temperature) + (1 - q) ** (1 / temperature)). A temperature above 1 makes a model
less confident, one below 1 more confident, and 1 changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats
from hscrf.inference.posterior import Marginals
from hscrf.inference.segments import attached
from hscrf.labels.labels import Labels
from hscrf.labels.scoring import with_lasting_bottom
from hscrf.labels.shown import shown_levels

LOWEST, HIGHEST = 0.05, 20.0  # temperatures that are tried
TINY = 1e-300


class Temperature(NamedTuple):
    """Temperatures of one level: of the states of steps, and of whether a predicted segment exists."""

    state: float = 1.0
    segment: float = 1.0


def tempered_states(table: Floats, temperature: float) -> Floats:
    """Probabilities (T, S) of states at a temperature.

    >>> tempered_states(np.array([[0.9, 0.1]]), 2.0).round(3).tolist()
    [[0.75, 0.25]]
    """
    if temperature == 1.0:
        return table
    logs = np.log(table, out=np.full(table.shape, -np.inf), where=table > 0) / temperature
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def tempered_events(chance: Floats, temperature: float) -> Floats:
    """Probabilities (n,) of events, which happen or not, at a temperature."""
    return tempered_states(np.stack([chance, 1 - chance], axis=1), temperature)[:, 0]


def tempered_marginals(found: Marginals, temperature: Mapping[str, Temperature]) -> Marginals:
    """The marginals with the states of each level at its temperature; endings and segments stay."""
    warm = {level: t.state for level, t in temperature.items() if t.state != 1.0 and level in found.state}
    state = {level: tempered_states(found.state[level], t) for level, t in warm.items()}
    return replace(found, state={**found.state, **state}) if warm else found


def tempered_labels(labels: Labels, temperature: Mapping[str, Temperature], steps: Marginals | None) -> Labels:
    """The labels with confidences at the temperatures of their levels; ``steps`` are tempered marginals."""
    if not temperature or labels.posterior is None or steps is None:
        return labels
    found = {}
    for level, rows in labels.posterior.items():
        d = labels.topology.level(level)
        start, stop, _ = labels.segment_arrays(d)
        right = steps.state[level][np.arange(labels.length), labels.states[d]]
        mean = np.add.reduceat(right, start) / (stop - start)
        exact = tempered_events(rows[:, 0], temperature.get(level, Temperature()).segment)
        found[level] = np.stack([exact, mean], axis=1)
    return attached(labels, found)


def best_temperature(loss: Callable[[float], float]) -> float:
    """The temperature with the least loss; 1 unless another is better."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda x: loss(float(np.exp(x))), bounds=(np.log(LOWEST), np.log(HIGHEST)), method="bounded"
    )
    best = float(np.exp(found.x))
    return best if loss(best) < loss(1.0) else 1.0


def fitted_temperatures(
    truth: Sequence[Labels], found: Sequence[Labels], marginals: Sequence[Marginals]
) -> dict[str, Temperature]:
    """Return the temperatures under which the truth is most probable, by level.

    For states the loss is the mean of -log p of the true states of known steps. For segments it is the mean of -log q
    of whether a predicted segment is right, over segments that the truth decides. States that the model does not have,
    or that it gives probability 0, are left out.
    """
    temperature = {}
    for d in shown_levels(found[0].topology):
        level = found[0].topology.levels[d]
        tables, chances, rights = [], [], []
        for y, guess, posterior in zip(truth, found, marginals, strict=True):
            tables.append(_true_first(y, guess, posterior.state[level], level))
            if guess.posterior is not None:
                decided, right = judged_segments(y, guess, level)
                rights.append(right[decided])
                chances.append(guess.posterior[level][decided, 0])
        temperature[level] = Temperature(_of_states(np.concatenate(tables)), _of_events(chances, rights))
    return temperature


def _true_first(truth: Labels, guess: Labels, table: Floats, level: str) -> Floats:
    """Probabilities (known steps, S), the true state first."""
    own, other = guess.topology, truth.topology
    names = {name: k for k, name in enumerate(own.states[own.level(level)])}
    codes = np.array([*(names.get(name, -1) for name in other.states[other.level(level)]), -1])
    true = codes[truth.states[other.level(level)]]
    known = np.flatnonzero(true >= 0)
    rows = table[known].copy()
    at = np.arange(known.size)
    rows[at, true[known]], rows[:, 0] = rows[:, 0].copy(), rows[at, true[known]].copy()
    return rows[rows[:, 0] > TINY]


def _of_states(rows: Floats) -> float:
    if not len(rows):
        return 1.0
    logs = np.log(np.maximum(rows, TINY))

    def loss(temperature: float) -> float:
        scaled = logs / temperature
        top = scaled.max(axis=1)
        return float((top + np.log(np.exp(scaled - top[:, None]).sum(axis=1)) - scaled[:, 0]).mean())

    return best_temperature(loss)


def _of_events(chances: Sequence[Floats], rights: Sequence[NDArray[np.bool_]]) -> float:
    if not chances:
        return 1.0
    chance, right = np.concatenate(chances), np.concatenate(rights)
    both = np.stack([np.where(right, chance, 1 - chance), np.where(right, 1 - chance, chance)], axis=1)
    return _of_states(np.maximum(both, 1e-12))


def judged_segments(truth: Labels, guess: Labels, level: str | int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether the truth decides each predicted segment of a level, and whether it has this segment.

    It decides a segment if it knows the states of its steps, their ends, and the end of the step before it. If only
    one side has segments longer than a step, the truth is cut as the prediction is: into steps, or into runs.
    """
    d, own = truth.topology.level(level), guess.topology.level(level)
    start, stop, states = guess.segment_arrays(own)
    ends = np.append(truth.ends[d, :-1], 1)
    if _has_single_steps(truth, d) != _has_single_steps(guess, own):
        ends = np.ones_like(ends) if _has_single_steps(guess, own) else with_lasting_bottom(truth).ends[d]
    before = np.append(1, ends)[start]
    unknown = np.append(0, np.cumsum((truth.states[d] < 0) | (ends == -1)))
    decided = (unknown[start] == unknown[stop]) & (before != -1)
    inside = np.append(0, np.cumsum(ends == 1))
    whole = (before == 1) & (ends[stop - 1] == 1) & (inside[start] == inside[stop - 1])
    names, true_names = guess.topology.states[own], truth.topology.states[d]
    same = [true_names[a] == names[b] for a, b in zip(truth.states[d, start].tolist(), states.tolist(), strict=True)]
    return decided, decided & whole & np.array(same, dtype=bool)


def _has_single_steps(labels: Labels, d: int) -> bool:
    """Whether all segments of a level have one step, by the topology."""
    return labels.topology.unit_bottom and d == labels.topology.depth - 1
