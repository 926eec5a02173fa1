"""The course of training: loss and development score by iteration, held-out errors by penalty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hscrf.plots.style import INK, LINES, MAPS, MARKERS, axes_or_new, legend_below, line_style, plain_text, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hscrf.estimator.contract import Trained

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
        style: dict[str, Any] = {"linestyle": LINES[k % len(LINES)], "marker": MARKERS[k % len(MARKERS)]}
        style |= {"markersize": 4, "color": INK, "label": plain_text(group or "all")}
        lines += ax.plot(*zip(*sorted(points), strict=True), **style)
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
