"""How well a model labels: which states it confuses, and its accuracy as labels become known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hscrf.labels.labels import Labels
from hscrf.metrics.measures import confusion
from hscrf.plots.style import FONT, MAPS, MARKERS, axes_or_new, legend_below, line_style, plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        look = {"linestyle": style["linestyle"], "color": color, "marker": marker}
        ax.plot(share, repeats.mean(axis=1), label=plain_text(name), **look)
        if repeats.shape[1] > 1:
            ax.fill_between(share, repeats.min(axis=1), repeats.max(axis=1), color=color, alpha=0.15, linewidth=0)
    ax.set(xlabel="share of labels given", ylabel="accuracy")
    ax.spines[["right", "top"]].set_visible(False)
    ax.grid(color="0.92")
    if isinstance(accuracies, Mapping):
        legend_below(ax, [ax.get_legend_handles_labels()[0]], own)
    return ax
