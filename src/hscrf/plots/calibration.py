"""Reliability diagrams: how often predictions are right against how probable they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hscrf.metrics.reliability import Calibration
from hscrf.plots.style import FONT, INK, LINES, MARKERS, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_calibration(curves: Calibration | Mapping[str, Calibration], ax: Axes | None = None) -> Axes:
    """Draw calibration curves as a reliability diagram: accuracy against mean probability of each bin.

    A calibrated model lies on the diagonal; below it, the model is overconfident. The area of a mark grows with the
    number of predictions in its bin. The legend has the expected calibration error of each curve.

    Parameters
    ----------
    curves : Calibration, or dict of str to Calibration
        From :func:`hscrf.metrics.calibration`, such as one for each level.
    ax : matplotlib Axes, optional
        Where to draw. None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If there are no curves.

    Examples
    --------
    >>> from hscrf import ChainCRF, metrics
    >>> X, Y = [[["a"], ["b"]], [["b"], ["a"]]], [["N", "V"], ["V", "N"]]
    >>> curve = metrics.calibration(Y, ChainCRF().fit(X, Y).predict_marginals(X))
    >>> plot_calibration({"tag": curve}).get_xlabel()
    'probability'
    """
    named = {"": curves} if isinstance(curves, Calibration) else dict(curves)
    if not named:
        raise ValueError("there are no curves to draw; expected at least one Calibration")
    ax = axes_or_new(ax, (4.6, 4.4))
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=0.9, linestyle=":", label="_diagonal")
    for k, (name, curve) in enumerate(named.items()):
        used = curve.counts > 0
        x, y = curve.confidence[used], curve.accuracy[used]
        told = f"{name}: error {curve.error:.3f}" if name else f"error {curve.error:.3f}"
        grey = str(0.6 * k / max(len(named), 1))
        ax.plot(x, y, color=grey, linestyle=LINES[k % len(LINES)], linewidth=1.1, label="_" + told)
        share = curve.counts[used] / max(curve.total, 1)
        ax.scatter(x, y, s=18 + 160 * share, color=grey, marker=MARKERS[k % len(MARKERS)], label=told, zorder=3)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability", ylabel="share that is right", aspect="equal")
    ax.set_axisbelow(True)
    ax.grid(color="0.92")
    ax.spines[["right", "top"]].set_visible(False)
    ax.legend(loc="upper left", fontsize=FONT, frameon=False, labelcolor=INK)
    return ax
