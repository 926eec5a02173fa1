"""The hierarchy as rows of states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hscrf.plots.strengths import above, measure_of, strengths
from hscrf.plots.style import FONT, INK, MAPS, canvas, font_scale, line_style, plain_text, text_width
from hscrf.topology import Topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hscrf.estimator.contract import Model

GREY, THIN = "0.72", 0.4  # of edges that are allowed, but not favoured
FOOT = 18.0  # points below the rows for the legend
HANDLE = 40.0  # points of the line before each text of the legend, and of the spaces around it
UNWEIGHTED = 4.0  # edges of a topology, each of weight 1, are drawn as if this were the strongest weight


def plot_topology(model_or_topology: Model | Topology, threshold: float = 0.0, ax: Axes | None = None) -> Axes:
    """Draw the states of each level in a row, joined to their children; shared children have a heavy border.

    In a model the strongest init, trans or end weight joins a child to a parent (in an HHMM, the highest such
    probability). The wider the line, the larger that weight. A line is thin and grey if the weight is at most
    ``threshold``: the child is allowed but not favoured. The lines of a parent share colour and dashes. For a topology,
    all allowed children are joined. A dummy root is left out.

    Parameters
    ----------
    model_or_topology : fitted model or Topology
    threshold : float
        Weights above it are drawn as favoured.
    ax : matplotlib Axes, optional
        Where to draw. None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    topology, tables = strengths(model_or_topology)
    first = int(topology.n_states[0] == 1)
    shown = [above(table, threshold) for table in tables]
    legal = [child & ~keep for child, keep in zip(topology.children, shown, strict=False)]
    some = any(table.any() for table in legal[first:])
    orders = _row_orders(topology, shown, first)
    texts = _legend_texts(model_or_topology, threshold, some, max(topology.n_states[first:-1], default=1))
    layout = _rows_layout(topology, orders, first, list(texts.values()))
    ax = canvas(ax, layout.width, layout.height)
    scale = font_scale(ax, layout.width, layout.height)
    given = isinstance(model_or_topology, Topology)
    kept = [table[keep].max() for table, keep in zip(tables, shown, strict=True) if keep.any()]
    strongest = UNWEIGHTED if given else max([1e-9, *kept])
    if texts:
        _explain(ax, scale, texts)
    for d in range(first, topology.depth - 1):
        for s, u in np.argwhere(legal[d]).tolist():
            join(ax, layout.bottom(d, s), layout.top(d + 1, u), THIN * scale, {"edgecolor": GREY, "label": "_legal"})
        for s, u in np.argwhere(shown[d]).tolist():
            width = 0.5 + 2.5 * max(float(tables[d][s, u]), 0.0) / strongest
            style = line_style(s, topology.n_states[d], MAPS[d % len(MAPS)])
            join(ax, layout.bottom(d, s), layout.top(d + 1, u), width * scale, style)
    for d in range(first, topology.depth):
        parents = shown[d - 1].sum(axis=0) if d > first else np.zeros(topology.n_states[d])
        for s, name in enumerate(topology.states[d]):
            draw_box(ax, layout.boxes[d, s], name, layout.upright[d], 2.0 if parents[s] > 1 else 0.8, scale)
        ax.text(
            2, layout.boxes[d, orders[d][0]][1], topology.levels[d], fontsize=FONT * scale, va="center", style="italic"
        )
    return ax


def _row_orders(topology: Topology, shown: Sequence[NDArray[np.bool_]], first: int) -> dict[int, list[int]]:
    """The states of each level from left to right, near the middle of their parents."""
    orders = {first: list(range(topology.n_states[first]))}
    for d in range(first + 1, topology.depth):
        place = np.argsort(orders[d - 1])
        parents = [
            seen if seen.any() else may for seen, may in zip(shown[d - 1].T, topology.children[d - 1].T, strict=True)
        ]
        middle = [float(place[column].mean()) if column.any() else np.inf for column in parents]
        orders[d] = sorted(range(topology.n_states[d]), key=lambda s, middle=middle: (middle[s], s))  # type: ignore[misc]
    return orders


@dataclass(frozen=True)
class _Rows:
    """Boxes (x, y, width, height) in points, by level and state, around their middles."""

    width: float
    height: float
    boxes: dict[tuple[int, int], tuple[float, float, float, float]]
    upright: dict[int, bool]

    def top(self, d: int, s: int) -> tuple[float, float]:
        x, y, _, height = self.boxes[d, s]
        return x, y + height / 2

    def bottom(self, d: int, s: int) -> tuple[float, float]:
        x, y, _, height = self.boxes[d, s]
        return x, y - height / 2


def _explain(ax: Axes, scale: float, texts: Mapping[str, str]) -> None:
    """A legend below the rows: what widths, thin grey lines and dashes mean."""
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"loc": "lower center", "frameon": False, "fontsize": FONT * scale, "borderaxespad": 0}
    lines = {
        "wide": Line2D([], [], color=INK, linewidth=2 * scale),
        "thin": Line2D([], [], color=GREY, linewidth=THIN * scale),
        "dashes": Line2D([], [], color=INK, linewidth=scale, linestyle="--"),
    }
    handles = [lines[name] for name in texts]
    for handle, text in zip(handles, texts.values(), strict=True):
        handle.set_label(text)
    ax.legend(handles=handles, ncols=len(handles), columnspacing=1.2, **look)


def _legend_texts(model: Model | Topology, threshold: float, some: bool, parents: int) -> dict[str, str]:
    """What the legend says: nothing that is not in the picture, and no weight is called favoured that is negative."""
    found = {}
    if not isinstance(model, Topology):
        what = measure_of(model)
        good = "favoured" if what == "weight" and threshold == 0 else f"{what} above {threshold:g}"
        found["wide"] = f"{good}: the wider, the larger the {what}"
        if some:
            found["thin"] = f"allowed, {what} of at most {threshold:g}"
    elif some:
        found["thin"] = "allowed"
    if parents > 1:
        found["dashes"] = "colour and dashes: lines of one parent"
    return found


def _rows_layout(topology: Topology, orders: Mapping[int, list[int]], first: int, legend: Sequence[str]) -> _Rows:
    """Rows of boxes above a legend in one line; names of a long row stand upright."""
    margin = max(text_width(topology.levels[d]) for d in range(first, topology.depth)) + 12
    lying = {d: sum(text_width(name) + 18 for name in topology.states[d]) for d in orders}
    upright = {d: width > 900 for d, width in lying.items()}
    widths = {d: topology.n_states[d] * (FONT + 12.0) if upright[d] else lying[d] for d in orders}
    inner = max(300.0, sum(text_width(text) + HANDLE for text in legend) - margin, *widths.values())
    tall = {d: max(map(text_width, topology.states[d])) + 8 if upright[d] else FONT + 8.0 for d in orders}
    gap = 70.0 + 0.08 * inner
    height = sum(tall.values()) + gap * (len(orders) - 1) + 8 + (FOOT if legend else 0.0)
    boxes, y = {}, height - 4
    for d, order in orders.items():
        x = margin
        spare = (inner - widths[d]) / len(order)
        for s in order:
            own = FONT + 6.0 if upright[d] else text_width(topology.states[d][s]) + 8
            slot = (FONT + 12.0 if upright[d] else own + 10) + spare
            boxes[d, s] = (x + slot / 2, y - tall[d] / 2, own, tall[d])
            x += slot
        y -= tall[d] + gap
    return _Rows(margin + inner, height, boxes, upright)


def draw_box(ax: Axes, box: tuple[float, ...], name: str, upright: bool, linewidth: float, scale: float) -> None:
    """Draw the box of a state with its name."""
    from matplotlib.patches import FancyBboxPatch

    x, y, width, height = box
    corner = (x - width / 2, y - height / 2)
    look: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=3", "facecolor": "white", "edgecolor": INK}
    ax.add_patch(FancyBboxPatch(corner, width, height, linewidth=linewidth * scale, zorder=3, label=name, **look))
    turn = 90 if upright else 0
    ax.text(x, y, plain_text(name), ha="center", va="center", rotation=turn, fontsize=FONT * scale, zorder=4)


def join(ax: Axes, start: tuple[float, float], stop: tuple[float, float], width: float, style: dict[str, Any]) -> None:
    """An edge from a parent down to a child, upright at both ends."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    middle = (start[1] + stop[1]) / 2
    path = Path([start, (start[0], middle), (stop[0], middle), stop], [1, 4, 4, 4])
    ax.add_patch(PathPatch(path, facecolor="none", linewidth=width, capstyle="butt", **{"label": "_edge", **style}))
