"""Durations, training, confusion, and accuracy as labels become known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hscrf.arrays import Floats
from hscrf.features.blocks import DurationBlock
from hscrf.labels.labels import Labels
from hscrf.metrics.measures import confusion
from hscrf.plots.strengths import topology_of
from hscrf.plots.style import (
    FONT,
    INK,
    LINES,
    MAPS,
    MARKERS,
    axes_or_new,
    legend_below,
    line_style,
    plain_text,
    state_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hscrf.estimator.contract import Labeller, Model, Trained

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


CURVES = {"loss": "loss", "objective": "objective", "log_likelihood": "log-likelihood"}  # key in a history: its name


def plot_training(model: Trained, ax: Axes | None = None) -> Axes:
    """Draw the loss of each iteration and, on a second axis to the right, the score on development data.

    An HHMM has no loss: its log-likelihood and its objective, which adds the prior, are drawn.

    Parameters
    ----------
    model : fitted model
        With ``history_``.
    ax : matplotlib Axes, optional
        Where to draw. None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the model has no history.
    """
    if not hasattr(model, "history_"):
        raise ValueError(f"the {type(model).__name__} has no history_; expected a fitted model")
    if not model.history_:
        raise ValueError(f"the history of the model is empty: {model.stop_reason_}")
    curves = {name: _curve(model.history_, key) for key, name in CURVES.items()}
    drawn = {name: curve for name, curve in curves.items() if curve}
    if not drawn:
        raise ValueError(f"the history of the model has none of {', '.join(CURVES)}, expected one of them")
    own = ax is None
    ax = axes_or_new(ax, (6.4, 4.0))
    lines: list[Any] = []
    for k, (name, curve) in enumerate(drawn.items()):
        lines += ax.plot(*zip(*curve, strict=True), linestyle=LINES[k], color=INK, label=name)
    ax.set(xlabel="iteration", ylabel=", ".join(drawn))
    whole_ticks(ax)
    ax.spines[["right", "top"]].set_visible(False)
    development = _curve(model.history_, "score")
    if development:
        lines += _draw_development(ax, development)
    if len(lines) > 1:
        legend_below(ax, [lines], own)
    return ax


def plot_penalties(model: Trained, ax: Axes | None = None) -> Axes:
    """Draw the number of wrong held-out labels along the path of ``c2="auto"``, with a dot at the chosen penalty.

    One line is the overall penalty; the others are penalties of groups of weights that were changed separately.

    Parameters
    ----------
    model : fitted model
        Fitted with ``c2="auto"``.
    ax : matplotlib Axes, optional
        Where to draw. None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the model was not fitted with ``c2="auto"``.
    """
    path = getattr(model, "penalties_", None)
    if not path:
        raise ValueError(f"the {type(model).__name__} has no path of penalties; expected one fitted with c2='auto'")
    own = ax is None
    ax = axes_or_new(ax, (6.4, 4.0))
    lines: list[Any] = []
    for k, (group, points) in enumerate(_penalty_lines(path).items()):
        style: dict[str, Any] = {
            "linestyle": LINES[k % len(LINES)],
            "marker": MARKERS[k % len(MARKERS)],
            "markersize": 4,
        }
        lines += ax.plot(*zip(*sorted(points), strict=True), color=INK, label=plain_text(group or "all"), **style)
    best = [entry for entry in path if entry["better"]][-1]
    ax.plot(best["c2"] * best["factors"].get(best["group"], 1.0), best["errors"], "o", color=INK, markersize=9)
    ax.set(xlabel="penalty", ylabel="held-out labels wrong", xscale="log")
    ax.spines[["right", "top"]].set_visible(False)
    if len(lines) > 1:
        legend_below(ax, [lines], own)
    return ax


def _penalty_lines(path: Sequence[Mapping[str, Any]]) -> dict[str | None, list[tuple[float, float]]]:
    """Penalty and errors of the entries that changed each group, and of the one they started from."""
    lines: dict[str | None, list[tuple[float, float]]] = {}
    best = path[0]
    for entry in path:
        group = entry["group"]
        first = [best] if group not in lines and entry is not path[0] else []
        for point in [*first, entry]:
            place = point["c2"] * point["factors"].get(group, 1.0), point["errors"]
            lines.setdefault(group, []).append(place)
        best = entry if entry["better"] else best
    return lines


def _curve(history: Sequence[Mapping[str, Any]], key: str) -> list[tuple[int, float]]:
    """Iteration and value of every entry that has the key."""
    return [
        (entry.get("iteration", n), entry[key])
        for n, entry in enumerate(history, start=1)
        if entry.get(key) is not None
    ]


def _draw_development(ax: Axes, curve: Sequence[tuple[int, float]]) -> list[Any]:
    """Draw the score on development data on an axis of its own, with a dot at the best; returns the lines."""
    right = ax.twinx()
    style = line_style(1, 3, MAPS[0])
    color = style["edgecolor"]
    lines = right.plot(*zip(*curve, strict=True), "--", color=color, label="development score")
    best = max(curve, key=lambda point: point[1])
    lines += right.plot(*best, "o", color=color, label=f"best: {best[1]:.3g} at {best[0]}")
    right.set_ylabel("development score")
    right.spines[["left", "top"]].set_visible(False)
    return lines


def plot_confusion(
    y_true: Sequence[Labels], y_pred: Sequence[Labels], level: str | int, ax: Axes | None = None
) -> Axes:
    """Draw how often each true state (row) was given each state (column): shares of the row, counts as numbers.

    States that occur on neither side are left out. Numbers are left out where there are more than sixteen states.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        The truth and the prediction, in any form that ``fit`` takes.
    level : str or int
        The level.
    ax : matplotlib Axes, optional
        Where to draw. None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If no step of the level is known in the truth.
    """
    counts, names = confusion(y_true, y_pred, level)
    used = np.flatnonzero(counts.sum(axis=0) + counts.sum(axis=1))
    if not used.size:
        raise ValueError(f"level {level!r} has no known step in y_true; expected at least one")
    counts, shown = counts[np.ix_(used, used)], [plain_text(names[s]) for s in used]
    side = 2.2 + 0.42 * used.size if used.size <= 16 else 2.2 + 0.19 * used.size
    ax = axes_or_new(ax, (side + 0.8, side))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = ax.imshow(shares, cmap="Greys", vmin=0, vmax=1)
    ax.set_xticks(np.arange(used.size), shown, rotation=90, fontsize=FONT)
    ax.set_yticks(np.arange(used.size), shown, fontsize=FONT)
    ax.set(xlabel="predicted", ylabel=f"true {level}" if isinstance(level, str) else "true")
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.7)
    bar.set_label("share of the true state's steps")
    if used.size <= 16:
        for (row, column), count in np.ndenumerate(counts):
            if count:
                ink = "white" if shares[row, column] > 0.5 else "black"
                ax.text(column, row, str(count), ha="center", va="center", fontsize=FONT - 1, color=ink)
    return ax


def plot_evidence_curve(
    fractions: ArrayLike, accuracies: ArrayLike | Mapping[str, ArrayLike], ax: Axes | None = None
) -> Axes:
    """Draw accuracy as a function of the share of labels given.

    Parameters
    ----------
    fractions : array-like of shape (F,)
        Shares of labels given.
    accuracies : array-like of shape (F,) or (F, R), or dict of str to array-like
        The accuracy at each fraction. R repeats are drawn as their mean and range. A dict holds several curves by name,
        such as levels or models.
    ax : matplotlib Axes, optional
        Where to draw. None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the numbers of fractions and accuracies differ.
    """
    share = np.asarray(fractions, dtype=np.float64)
    curves = accuracies if isinstance(accuracies, Mapping) else {"accuracy": accuracies}
    own = ax is None
    ax = axes_or_new(ax, (6.4, 4.0))
    for k, (name, values) in enumerate(curves.items()):
        repeats = np.asarray(values, dtype=np.float64)
        if repeats.ndim not in (1, 2) or len(repeats) != share.size:
            raise ValueError(
                f"accuracies of {name!r} have shape {repeats.shape}; expected ({share.size},) or rows of it"
            )
        repeats = repeats.reshape(share.size, -1)
        style = line_style(k, len(curves), MAPS[0])
        color, marker = style["edgecolor"], MARKERS[k % len(MARKERS)]
        ax.plot(
            share,
            repeats.mean(axis=1),
            linestyle=style["linestyle"],
            color=color,
            marker=marker,
            label=plain_text(name),
        )
        if repeats.shape[1] > 1:
            ax.fill_between(share, repeats.min(axis=1), repeats.max(axis=1), color=color, alpha=0.15, linewidth=0)
    ax.set(xlabel="share of labels given", ylabel="accuracy")
    ax.spines[["right", "top"]].set_visible(False)
    ax.grid(color="0.92")
    if isinstance(accuracies, Mapping):
        legend_below(ax, [ax.get_legend_handles_labels()[0]], own)
    return ax


def whole_ticks(ax: Axes) -> None:
    """Ticks of the x axis at whole numbers: there is no half step."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
