"""What hscrf plot and hscrf demo share: accuracy as labels become known, and pictures in files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hscrf.files.replacing import replaced
from hscrf.labels.labels import Labels
from hscrf.metrics.measures import accuracy

if TYPE_CHECKING:
    from hscrf.estimator.contract import Labeller

FRACTIONS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8)


def revealed(labels: Labels, fraction: float, rng: np.random.Generator) -> Labels:
    """Only a fraction of the time steps, drawn at random, with their states and ends; the rest unknown."""
    hidden = np.ones(len(labels), dtype=bool)
    hidden[rng.permutation(len(labels))[: round(fraction * len(labels))]] = False
    states, ends = labels.states.copy(), labels.ends.copy()
    states[1:, hidden] = -1
    ends[1:, hidden] = -1
    return Labels(labels.topology, states, ends)


def evidence_curve(
    model: Labeller, X: Sequence[Any], labels: Sequence[Labels], fractions: Sequence[float], seed: int
) -> dict[str, list[float]]:
    """Accuracy of every level as labels become known, over the time steps that are still unknown."""
    curve: dict[str, list[float]] = {level: [] for level in model.topology_.levels[1:]}
    for fraction in fractions:
        rng = np.random.default_rng(seed)  # known labels stay known as the fraction grows
        given = [revealed(y, fraction, rng) for y in labels]
        found = model.predict(X, evidence=given)
        asked = [hide(y, known) for y, known in zip(labels, given, strict=True)]
        for level, values in curve.items():
            values.append(accuracy(asked, found, level))
    return curve


def hide(labels: Labels, known: Labels) -> Labels:
    """The labels without the states that are known."""
    states = np.where(known.states >= 0, -1, labels.states)
    return Labels(labels.topology, states, labels.ends)


def save_figure(axes: Any, path: str) -> None:
    """Write the figure of some axes to a file, whole or not at all, and close it."""
    import matplotlib.pyplot

    try:
        with replaced(path) as name:
            axes.figure.savefig(name, dpi=150)
    finally:
        matplotlib.pyplot.close(axes.figure)
