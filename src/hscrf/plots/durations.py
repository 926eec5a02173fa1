"""How long the segments of each state last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hscrf.arrays import Floats
from hscrf.features.blocks import DurationBlock
from hscrf.plots.strengths import topology_of
from hscrf.plots.style import FONT, INK, axes_or_new, plain_text, state_style, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hscrf.estimator.contract import Labeller, Model

MOST_SEGMENTS = 200_000_000  # that are looked at for the lengths of one sequence
RARELY = 1e-4  # share of all segments below which lengths are not drawn


def plot_durations(model: Model, level: str | int, ax: Axes | None = None, X: Sequence[Any] | None = None) -> Axes:
    """Draw how long the segments of each state of a level last: a row for each state, scaled to its best length.

    Without observations the height is exp(weight) of the duration weights alone. The lengths of segments also depend on
    the other weights and on the length of the sequence. With sequences ``X`` the height is the expected number of
    segments of each length; this needs no duration weights.

    Parameters
    ----------
    model : fitted model
    level : str or int
        The level.
    ax : matplotlib Axes, optional
        Where to draw. None makes a new figure.
    X : list of sequences, optional
        Sequences whose expected lengths are drawn.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the model has no duration weights and there is no X, or a sequence is too long.
    """
    topology = topology_of(model)
    d = topology.level(level)
    scores = _duration_scores(model, d) if X is None else _expected_durations(model, topology.levels[d], X)
    names = topology.states[d]
    length = np.arange(1, len(scores) + 1)
    ax = axes_or_new(ax, (6.4, 0.9 + (0.34 if len(names) <= 12 else 0.22) * len(names)))
    for s, name in enumerate(names):
        legal = (length >= topology.min_duration[d][s]) & (length <= topology.longest_legal(d)[s])
        height = np.where(legal, np.exp(scores[:, s] - scores[legal, s].max(initial=-600.0)), 0.0)
        style = state_style(topology, d, s)
        base = len(names) - 1 - s
        ax.fill_between(length, base, base + 0.85 * height, facecolor=style["facecolor"], linewidth=0, label=f"_{name}")
        ax.plot(length, base + 0.85 * height, color=INK, linewidth=0.9, label=f"_{name}")
    ax.set_yticks(np.arange(len(names))[::-1] + 0.3, [plain_text(name) for name in names], fontsize=FONT)
    ax.set_axisbelow(True)
    ax.set(xlim=(1, max(len(scores), 2)), ylim=(-0.1, len(names)), xlabel="length in steps", ylabel=topology.levels[d])
    ax.set_title("weights of lengths" if X is None else "expected lengths", fontsize=FONT + 1)
    whole_ticks(ax)
    ax.grid(axis="x", color="0.9")
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _duration_scores(model: Model, d: int) -> Floats:
    """Log-potentials (L, S) of durations."""
    found = [
        block.basis @ weights.reshape(-1, block.states)
        for block, weights in model.weighted_blocks()
        if isinstance(block, DurationBlock) and block.key[1] == d
    ]
    if not found:
        level = model.topology_.levels[d]
        raise ValueError(f"the model has no duration weights at level {level!r}: fit it with Duration({level!r})")
    return np.asarray(sum(found), dtype=np.float64)


def _expected_durations(model: Labeller, level: str, X: Sequence[Any]) -> Floats:
    """Log of the expected number (L, S) of segments of each length, up to the longest that is to be expected."""
    topology = model.topology_
    d = topology.level(level)
    tables = []
    for one in model.posterior(X):
        steps = one.length
        longest = min(steps, int(topology.longest_legal(d).max()))
        if steps * longest * topology.n_states[d] > MOST_SEGMENTS:
            raise ValueError(
                f"a sequence of {steps} steps has too many segments of level {level!r}: expected shorter sequences, or "
                "a model with a longest duration"
            )
        tables.append(one.segment(level).sum(axis=0))
    counts = np.zeros((max(len(table) for table in tables), topology.n_states[d]))
    for table in tables:
        counts[: len(table)] += table
    seen = np.flatnonzero(counts.sum(axis=1) > RARELY * counts.sum())
    return np.log(np.maximum(counts[: seen[-1] + 1], 1e-300))
