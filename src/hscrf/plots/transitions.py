"""The children of each parent on a circle, and arrows to those that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats
from hscrf.plots.strengths import above, family_tables, levels_with_transitions, measure_of, topology_of
from hscrf.plots.style import FONT, INK, MAPS, canvas, font_scale, line_style, plain_text, text_width
from hscrf.plots.topology import UNWEIGHTED
from hscrf.topology import Topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hscrf.estimator.contract import Model


def plot_transitions(
    model_or_topology: Model | Topology, level: str | int | None = None, threshold: float = 0.0, ax: Axes | None = None
) -> Axes:
    """Draw which state of a level follows which, in one circle for each parent; shared states are in several circles.

    The width of an arrow is its weight (in an HHMM, its probability). An arrow has the colour of the state that it
    leaves. Filled states may come first under the parent, square ones last. A ring marks states that may follow
    themselves, by a weight above the threshold or because a topology allows it.

    Parameters
    ----------
    model_or_topology : fitted model or Topology
    level : str, int or None
        The level. None means the lowest one with an arrow.
    threshold : float
        Arrows of at most this weight are left out, and states without any arrow too.
    ax : matplotlib Axes, optional
        Where to draw. None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If no weight exceeds the threshold, or the level is the root.
    """
    topology = topology_of(model_or_topology)
    if level is None:
        levels = levels_with_transitions(model_or_topology, threshold)
        if not levels:
            raise ValueError(f"no transition of any level has a weight above the threshold {threshold:g}")
        level = levels[-1]
    d = topology.level(level)
    if d == 0:
        raise ValueError("level is 'root', which nothing follows; expected a level below it")
    tables = family_tables(model_or_topology, topology, d - 1)
    circles = [_circle(topology, d, s, tables, threshold) for s in range(topology.n_states[d - 1])]
    circles = [circle for circle in circles if circle.order]
    if not circles:
        raise ValueError(f"no weight of level {topology.levels[d]!r} exceeds the threshold {threshold:g}")
    grid = _grid(circles)
    ax = canvas(ax, grid.width, grid.height)
    scale = font_scale(ax, grid.width, grid.height)
    told = None if isinstance(model_or_topology, Topology) else f"{measure_of(model_or_topology)} above {threshold:g}"
    strongest = UNWEIGHTED if told is None else max(1e-9, *(float(circle.trans.max()) for circle in circles))
    for circle, (centre, top) in zip(circles, grid.places, strict=True):
        _draw_arrows(ax, circle, centre, strongest, scale)
        _draw_nodes(ax, circle, centre, scale)
        ax.text(
            centre[0], top, plain_text(circle.title), ha="center", va="top", fontsize=(FONT + 1) * scale, weight="bold"
        )
    _circle_legend(ax, scale, told)
    return ax


@dataclass(frozen=True)
class _Circle:
    """The children of one parent, in the order in which they stand around it."""

    title: str
    names: tuple[str, ...]
    order: list[int]
    first: NDArray[np.bool_]  # (U,) may come first
    last: NDArray[np.bool_]  # (U,) may come last
    trans: Floats  # (U, U), -inf where there is no arrow

    @property
    def turned(self) -> bool:
        """Whether names are written along the radii."""
        return len(self.order) > 16

    @property
    def radius(self) -> float:
        """Points; wide enough that names do not touch."""
        step = 2 * np.pi / len(self.order)
        sparse = 5 <= len(self.order) <= 16
        apart = (FONT + 3) / (np.cos(step / 2) - np.cos(1.5 * step)) if sparse else 0
        return float(max(30, (FONT + 5) / step, apart))

    @property
    def width(self) -> float:
        return 2 * (self.radius + max(text_width(self.names[u]) for u in self.order) + 22)

    @property
    def height(self) -> float:
        """With room for the title."""
        return (self.width if self.turned else 2 * self.radius + 4 * FONT) + 4 * FONT

    def angle(self, u: int) -> float:
        """Where a child stands, clockwise from just right of the top."""
        return float(np.pi / 2 - (self.order.index(u) + 0.5) * 2 * np.pi / len(self.order))

    def spot(self, u: int, centre: tuple[float, float], beyond: float = 0.0) -> tuple[float, float]:
        angle, reach = self.angle(u), self.radius + beyond
        return centre[0] + reach * float(np.cos(angle)), centre[1] + reach * float(np.sin(angle))


def _circle(topology: Topology, d: int, s: int, tables: tuple[Floats, Floats, Floats], threshold: float) -> _Circle:
    init, trans, end = (table[s] for table in tables)
    arrows = above(trans, threshold)
    first, last = above(init, threshold), above(end, threshold)
    kept = np.where(arrows, trans, -np.inf)
    order = _walk(init, kept, first | last | arrows.any(axis=0) | arrows.any(axis=1))
    return _Circle(topology.states[d - 1][s] if d > 1 else "", topology.states[d], order, first, last, kept)


def _walk(init: Floats, trans: Floats, used: NDArray[np.bool_]) -> list[int]:
    """The used states in an order that follows the strongest arrows, from the strongest first child on."""
    order: list[int] = []
    left = used.copy()
    while left.any():
        onward = np.where(left, trans[order[-1]], -np.inf) if order else np.full(len(init), -np.inf)
        if np.isneginf(onward).all():
            onward = np.where(left, init, -np.inf)
        order.append(int(onward.argmax() if np.isfinite(onward).any() else left.argmax()))
        left[order[-1]] = False
    return order


@dataclass(frozen=True)
class _Grid:
    """Where circles stand, in points: the centre of each and the top of its title."""

    width: float
    height: float
    places: list[tuple[tuple[float, float], float]]


def _grid(circles: Sequence[_Circle]) -> _Grid:
    """Rows of three circles, of five if there are many; two lines are left for the legend."""
    columns = min(len(circles), 3 if len(circles) <= 9 else 5)
    rows = -(-len(circles) // columns)
    widths = [max(circle.width for circle in circles[k::columns]) for k in range(columns)]
    heights = [max(circle.height for circle in circles[k * columns : (k + 1) * columns]) for k in range(rows)]
    width, height = max(sum(widths), 390.0), sum(heights) + 34
    left = (width - sum(widths)) / 2
    places = []
    for k in range(len(circles)):
        row, column = divmod(k, columns)
        x = left + sum(widths[:column]) + widths[column] / 2
        top = height - sum(heights[:row])
        places.append(((x, top - heights[row] / 2 - FONT), top - 3))
    return _Grid(width, height, places)


def _draw_arrows(ax: Axes, circle: _Circle, centre: tuple[float, float], strongest: float, scale: float) -> None:
    from matplotlib.patches import FancyArrowPatch

    for u, v in np.argwhere(np.isfinite(circle.trans)).tolist():
        if u == v:
            continue
        width = (0.5 + 2.0 * max(circle.trans[u, v], 0.0) / strongest) * scale
        look: dict[str, Any] = {"color": line_style(u, len(circle.names), MAPS[0])["edgecolor"], "linewidth": width}
        look |= {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=0.18", "mutation_scale": 5 * scale + 2 * width}
        look |= {"shrinkA": 6 * scale, "shrinkB": 6 * scale, "label": "_arrow"}
        ax.add_patch(FancyArrowPatch(circle.spot(u, centre), circle.spot(v, centre), **look))


def _draw_nodes(ax: Axes, circle: _Circle, centre: tuple[float, float], scale: float) -> None:
    look: dict[str, Any] = {"color": INK, "markeredgewidth": 0.9 * scale, "linestyle": "", "zorder": 3}
    for u in circle.order:
        x, y = circle.spot(u, centre)
        marker, fill = "s" if circle.last[u] else "o", INK if circle.first[u] else "white"
        label = f"_{circle.names[u]}"
        ax.plot(x, y, marker=marker, markersize=5.5 * scale, markerfacecolor=fill, label=label, **look)
        if np.isfinite(circle.trans[u, u]):
            ax.plot(x, y, marker="o", markersize=11 * scale, markerfacecolor="none", label="_ring", **look)
        x, y = circle.spot(u, centre, beyond=9)
        ax.text(x, y, plain_text(circle.names[u]), fontsize=FONT * scale, **_alignment(circle, u))


def _alignment(circle: _Circle, u: int) -> dict[str, Any]:
    """How the name of a state is aligned next to its node."""
    angle = circle.angle(u)
    if abs(np.cos(angle)) < 1e-9 and not circle.turned:
        return {"ha": "center", "va": "top"}  # at the bottom, below its neighbours' names
    right = np.cos(angle) >= 0
    turn = np.degrees(angle) + (0 if right else 180) if circle.turned else 0
    return {"ha": "left" if right else "right", "va": "center", "rotation": turn, "rotation_mode": "anchor"}


def _circle_legend(ax: Axes, scale: float, weights: str | None) -> None:
    """What nodes and arrows mean; ``weights`` says which are drawn, None where they have none."""
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"color": INK, "linestyle": "", "markersize": 5.5 * scale}
    large = {**look, "markersize": 10 * scale}
    handles = [
        Line2D([], [], marker="o", label="comes first", **look),
        Line2D([], [], marker="s", markerfacecolor="white", label="comes last", **look),
        Line2D([], [], marker="o", markerfacecolor="white", label="neither", **look),
        Line2D([], [], marker="o", markerfacecolor="none", label="follows itself", **large),
    ]
    arrow = "follows" if weights is None else f"follows, {weights}: the wider, the larger"
    handles.append(Line2D([], [], color=INK, linewidth=1.5 * scale, marker=">", markersize=4 * scale, label=arrow))
    look = {"frameon": False, "fontsize": FONT * scale, "borderaxespad": 0.2, "columnspacing": 1.2}
    ax.legend(handles=handles, loc="lower center", ncols=3, **look)
