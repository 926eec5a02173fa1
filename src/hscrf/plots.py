"""Pictures of segmentations, models and results; every function draws into ``ax``, or a new figure, and returns it.

Colours run from dark to light and repeat with hatches, so that states stay apart in greyscale and for colour-blind
readers. Matplotlib is imported by the functions that draw: ``pip install 'hscrf[plots]'``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hscrf.features import ConstantBlock, DurationBlock
from hscrf.inference import Marginals
from hscrf.inference import marginals as posterior
from hscrf.labels import Labels
from hscrf.metrics import confusion
from hscrf.topology import Topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_confusion",
    "plot_durations",
    "plot_evidence_curve",
    "plot_segments",
    "plot_topology",
    "plot_training",
    "plot_transitions",
]

Floats = NDArray[np.float64]
Color = tuple[float, float, float]

SHADES = 6  # lightnesses that the eye tells apart; more states take hatches
HATCHES = ("", "////", "....", "xxxx", "----", "\\\\\\\\", "oo", "||||", "++", "**")
MAPS = ("viridis", "plasma", "cividis")  # one for each level in turn; all of even lightness
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKERS = "os^Dv*PX<>"
INK = "#222222"
FONT = 8  # points
UNWEIGHTED = 4.0  # edges of a topology, each of weight one, are as wide as if this were the strongest


# ------------------------------------------------------------------------------
# Segmentations


def plot_segments(
    labels: Labels | Sequence[Labels],
    prediction: Labels | Sequence[Labels] | None = None,
    marginals: Marginals | Sequence[Marginals] | None = None,
    evidence: Labels | Sequence[Labels | None] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw nested segmentations as stacked tracks, a track for each level, and the prediction below each.

    Several sequences, in lists of the same length, go below each other. With ``marginals`` the lowest track of a level
    is the paler the less probable its state is. ``evidence`` is marked below: a dot for a known state, a ring for a set
    of states, a bar where a segment is known to end. Steps where the prediction is not the truth are underlined.
    Names stand in the segments where they fit; a level with a state whose name fits nowhere gets a legend, below the
    axes: give figures of your own ``layout="constrained"`` to make room for it.
    """
    groups = _groups(labels, prediction, marginals, evidence)
    tracks = _tracks(groups)
    height = tracks[-1].y + 1 + 0.3 * (evidence is not None)
    own = ax is None
    ax = _axes(ax, (9.0, 0.9 + 0.38 * height))
    ax.set_xlim(0, max(group.labels.length for group in groups))
    ax.set_ylim(height, -0.1)
    ax.set_yticks([track.y + 0.5 for track in tracks], [track.name for track in tracks], fontsize=FONT)
    ax.tick_params(axis="y", length=0)
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.set_xlabel("time step")
    _whole_ticks(ax)
    _lay_out(ax)
    for track in tracks:
        _draw_track(ax, track)
    _segment_legend(ax, tracks, own)
    return ax


@dataclass(frozen=True)
class _Group:
    """One sequence and what is known of it."""

    labels: Labels
    prediction: Labels | None
    marginals: Marginals | None
    evidence: Labels | None


@dataclass(frozen=True)
class _Track:
    """One level of one sequence: its labels or their prediction, from y down to y + 1."""

    y: float
    name: str
    level: int
    labels: Labels
    truth: Labels | None = None  # what the labels should be, if they are a prediction
    marginals: Marginals | None = None
    evidence: Labels | None = None

    @property
    def topology(self) -> Topology:
        return self.labels.topology

    @property
    def runs(self) -> list[tuple[int, int, int]]:
        return _runs(self.labels, self.level)

    @property
    def veil(self) -> Floats:
        """How much white covers each step (T,): the more, the less probable its state is."""
        states = self.labels.states[self.level]
        if self.marginals is None:
            return np.zeros(len(states))
        shown = self.marginals.state[self.topology.levels[self.level]][np.arange(len(states)), states]
        return np.where(states >= 0, 0.85 * (1 - np.clip(shown, 0, 1)), 0.0)


def _groups(labels: Any, prediction: Any, marginals: Any, evidence: Any) -> list[_Group]:
    """What is given, one entry for each sequence."""
    single = isinstance(labels, Labels)
    truths = [labels] if single else list(labels)
    if not truths:
        raise ValueError("labels is empty; expected Labels or a list of them")
    columns = [truths]
    for name, given in (("prediction", prediction), ("marginals", marginals), ("evidence", evidence)):
        column = [None] * len(truths) if given is None else [given] if not isinstance(given, (list, tuple)) else given
        if len(column) != len(truths):
            raise ValueError(f"labels has {len(truths)} sequences but {name} has {len(column)}")
        columns.append(list(column))
    groups = [_Group(*row) for row in zip(*columns, strict=True)]
    for n, group in enumerate(groups):
        _check_group(n, group)
    return groups


def _check_group(n: int, group: _Group) -> None:
    for name, other in (("labels", group.labels), ("prediction", group.prediction), ("evidence", group.evidence)):
        if other is None:
            continue
        if not isinstance(other, Labels):
            raise TypeError(f"{name}[{n}] is a {type(other).__name__}; expected Labels")
        if other.length != group.labels.length:
            raise ValueError(f"labels[{n}] has {group.labels.length} steps but {name}[{n}] has {other.length}")
        if other.topology.levels != group.labels.topology.levels:
            levels = " > ".join(group.labels.topology.levels)
            raise ValueError(f"{name}[{n}] has {other.topology}; expected the levels {levels}")
    if group.marginals is not None:
        _check_marginals(n, group.marginals, group.labels if group.prediction is None else group.prediction)


def _check_marginals(n: int, marginals: Marginals, labels: Labels) -> None:
    """They are to give a probability to every state that is drawn."""
    if not isinstance(marginals, Marginals):
        raise TypeError(f"marginals[{n}] is a {type(marginals).__name__}; expected Marginals")
    for d, level in enumerate(labels.topology.levels):
        given = marginals.state.get(level, np.empty(0))
        shape, expected = given.shape, (labels.length, labels.topology.n_states[d])
        if shape != expected:
            raise ValueError(f"marginals[{n}] of level {level!r} have shape {shape}; expected {expected}")


def _tracks(groups: Sequence[_Group]) -> list[_Track]:
    """All tracks from top to bottom; a dummy root is left out."""
    tracks: list[_Track] = []
    y = 0.0
    for group in groups:
        topology = group.labels.topology
        for d in range(topology.n_states[0] == 1, topology.depth):
            level = topology.levels[d]
            extra = (group.marginals, group.evidence)
            if group.prediction is None:
                tracks.append(_Track(y, level, d, group.labels, None, *extra))
                y += 1.35
            else:
                tracks.append(_Track(y, level, d, group.labels))
                tracks.append(_Track(y + 1.05, "predicted", d, group.prediction, group.labels, *extra))
                y += 2.6
        y += 0.5
    return tracks


def _runs(labels: Labels, d: int) -> list[tuple[int, int, int]]:
    """Start, stop and state of what is drawn as one piece: a segment, or equal neighbours of a unit bottom."""
    states, ends = labels.states[d], labels.ends[d]
    cut = states[:-1] != states[1:]
    if not (labels.topology.unit_bottom and d == labels.topology.depth - 1):
        cut = cut | ((ends[:-1] == 1) & (states[:-1] >= 0))
    stops = np.append(np.flatnonzero(cut) + 1, labels.length)
    starts = np.append(0, stops[:-1])
    return list(zip(starts.tolist(), stops.tolist(), states[starts].tolist(), strict=True))


def _draw_track(ax: Axes, track: _Track) -> None:
    spans: dict[int, list[tuple[int, int]]] = {}
    for start, stop, state in track.runs:
        spans.setdefault(state, []).append((start, stop - start))
    for state, pieces in sorted(spans.items()):
        _draw_state(ax, track, state, pieces)
    if track.marginals is not None:
        _shade(ax, track)
    _write_names(ax, track)
    _mark_evidence(ax, track)
    _mark_errors(ax, track)


def _draw_state(ax: Axes, track: _Track, state: int, pieces: list[tuple[int, int]]) -> None:
    where = (track.y, 1.0)
    if state < 0:
        ax.broken_barh(pieces, where, facecolor="none", edgecolor="0.6", linestyle=":", linewidth=0.8, label="_unknown")
        return
    style = _state_style(track.topology, track.level, state)
    name = track.topology.states[track.level][state]
    # two collections: hatches take the colour of edges, and edges are white
    ax.broken_barh(pieces, where, linewidth=0, label=f"_{name}", **style)
    ax.broken_barh(pieces, where, facecolor="none", edgecolor="white", linewidth=0.8, label="_edges", zorder=2.2)


def _shade(ax: Axes, track: _Track) -> None:
    """Lay white over the track, the denser the less probable the state that is shown."""
    veil = np.ones((1, track.labels.length, 4))
    veil[0, :, 3] = track.veil
    box = (0, track.labels.length, track.y + 1, track.y)
    image = ax.imshow(veil, extent=box, aspect="auto", interpolation="nearest", zorder=2.1, origin="upper")
    image.set_label("_shade")
    ax.set_xlim(ax.get_xlim())


def _write_names(ax: Axes, track: _Track) -> None:
    box = ax.get_window_extent()
    points = 72 / ax.figure.dpi
    step = box.width * points / np.ptp(ax.get_xlim())
    if box.height * points / np.ptp(ax.get_ylim()) < FONT + 3:
        return
    names, veil = (*track.topology.states[track.level], "?"), track.veil
    for start, stop, state in track.runs:
        if 1.05 * _text_width(names[state]) + 6 <= (stop - start) * step:
            style = _state_style(track.topology, track.level, state) if state >= 0 else {"facecolor": (1.0, 1.0, 1.0)}
            background = _mix((1.0, 1.0, 1.0), style["facecolor"], float(veil[start:stop].mean()))
            _write(ax, (start + stop) / 2, track.y + 0.5, names[state], background, bool(style.get("hatch")))


def _write(ax: Axes, x: float, y: float, name: str, background: Color, hatched: bool) -> None:
    plate: dict[str, Any] | None = {"facecolor": background, "edgecolor": "none", "pad": 0.8} if hatched else None
    ink = _ink_on(background)
    ax.text(x, y, _plain(name), ha="center", va="center_baseline", fontsize=FONT, color=ink, bbox=plate, clip_on=True)


def _mark_evidence(ax: Axes, track: _Track) -> None:
    known = track.evidence
    if known is None:
        return
    d = track.level
    allowed = (known.allowed or {}).get(track.topology.levels[d], np.ones((known.length, 1), dtype=bool))
    unit = d == track.topology.depth - 1 and track.topology.unit_bottom
    states = np.flatnonzero(known.states[d] >= 0) + 0.5
    narrowed = np.flatnonzero(~allowed.all(axis=1) & (known.states[d] < 0)) + 0.5
    ends = np.flatnonzero((known.ends[d, :-1] == 1) & (not unit)) + 1
    for label, places, marker, size, fill in (
        ("_evidence", states, ".", 3.5, INK),
        ("_sets", narrowed, "o", 3.5, "none"),
        ("_ends", ends, "|", 5.0, INK),
    ):
        if places.size:
            look: dict[str, Any] = {"color": INK, "markersize": size, "markerfacecolor": fill, "markeredgewidth": 0.7}
            ax.plot(places, np.full(places.size, track.y + 1.16), marker, label=label, clip_on=False, **look)


def _mark_errors(ax: Axes, track: _Track) -> None:
    """A line between truth and prediction wherever they have different states."""
    if track.truth is None:
        return
    d = track.level
    true_names = np.array([*track.truth.topology.states[d], ""])
    names = np.array([*track.topology.states[d], ""])
    truth = true_names[track.truth.states[d]]
    wrong = (truth != names[track.labels.states[d]]) & (truth != "")
    edges = np.flatnonzero(np.diff(np.concatenate([[0], wrong.astype(int), [0]])))
    pieces = [(int(a), int(b - a)) for a, b in edges.reshape(-1, 2)]
    if pieces:
        ax.broken_barh(pieces, (track.y - 0.05, 0.13), facecolor="black", linewidth=0, label="_wrong", zorder=2.5)


def _segment_legend(ax: Axes, tracks: Sequence[_Track], own: bool) -> None:
    """States of levels with names that were not written, and the marks that were used."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    written = {text.get_text() for text in ax.texts}
    groups: list[list[Any]] = []
    for d in sorted({track.level for track in tracks}):
        topology = next(track.topology for track in tracks if track.level == d)
        shown = sorted({state for track in tracks if track.level == d for _, _, state in track.runs if state >= 0})
        if any(_plain(topology.states[d][state]) not in written for state in shown):
            heading = Patch(facecolor="none", edgecolor="none", label=f"{topology.levels[d]}:")
            names = map(_plain, topology.states[d])
            patches = [Patch(label=name, **_state_style(topology, d, s)) for s, name in enumerate(names) if s in shown]
            groups.append([heading, *patches])
    used = {artist.get_label() for artist in (*ax.collections, *ax.lines, *ax.images)}
    marks = {
        "_wrong": Line2D([], [], color="black", linewidth=3, label="truth and prediction differ"),
        "_shade": Patch(facecolor="0.85", edgecolor="none", label="paler: less probable"),
        "_evidence": Line2D([], [], color=INK, marker=".", linestyle="", label="known state"),
        "_sets": Line2D(
            [], [], color=INK, marker="o", markerfacecolor="none", linestyle="", label="known set of states"
        ),
        "_ends": Line2D([], [], color=INK, marker="|", linestyle="", label="known end"),
        "_unknown": Patch(facecolor="none", edgecolor="0.6", linestyle=":", label="unknown"),
    }
    groups.append([handle for mark, handle in marks.items() if mark in used])
    if any(groups):
        _legend_below(ax, groups, own)


# ------------------------------------------------------------------------------
# What a model has learned


def plot_topology(model_or_topology: Any, threshold: float = 0.0, ax: Axes | None = None) -> Axes:
    """Draw the states of each level in a row and who has whom as a child; shared children have a heavy border.

    For a model a child is joined to a parent by its strongest init, trans or end weight there, in a width by that
    weight, unless it is at most ``threshold``: negative ones are left out. A topology shows what it allows. A
    dummy root is left out.
    """
    topology, tables = _strengths(model_or_topology)
    first = int(topology.n_states[0] == 1)
    shown = [_above(table, threshold) for table in tables]
    orders = _row_orders(topology, shown, first)
    layout = _rows_layout(topology, orders, first)
    ax = _canvas(ax, layout.width, layout.height)
    scale = _font_scale(ax, layout.width, layout.height)
    given = isinstance(model_or_topology, Topology)
    kept = [table[keep].max() for table, keep in zip(tables, shown, strict=True) if keep.any()]
    strongest = UNWEIGHTED if given else max([1e-9, *kept])
    for d in range(first, topology.depth - 1):
        for s, u in np.argwhere(shown[d]).tolist():
            width = 0.5 + 2.5 * max(float(tables[d][s, u]), 0.0) / strongest
            style = _line_style(s, topology.n_states[d], MAPS[d % len(MAPS)])
            _join(ax, layout.bottom(d, s), layout.top(d + 1, u), width * scale, style)
    for d in range(first, topology.depth):
        parents = shown[d - 1].sum(axis=0) if d > first else np.zeros(topology.n_states[d])
        for s, name in enumerate(topology.states[d]):
            _box(ax, layout.boxes[d, s], name, layout.upright[d], 2.0 if parents[s] > 1 else 0.8, scale)
        ax.text(
            2, layout.boxes[d, orders[d][0]][1], topology.levels[d], fontsize=FONT * scale, va="center", style="italic"
        )
    return ax


def _strengths(model_or_topology: Any) -> tuple[Topology, list[Floats]]:
    """The topology, and tables (S_d, S_{d+1}) of how strongly a parent has a child; -inf where it may not."""
    topology = _topology_of(model_or_topology)
    tables = []
    for d in range(topology.depth - 1):
        init, trans, end = _family_tables(model_or_topology, topology, d)
        tables.append(np.maximum.reduce([init, trans.max(axis=1), trans.max(axis=2), end]))
    return topology, tables


def _family_tables(model_or_topology: Any, topology: Topology, d: int) -> tuple[Floats, Floats, Floats]:
    """Weights of init (S, U), trans (S, U, U) and end (S, U) for parents at level d; -inf where there is none.

    What a topology allows has weight one; so has what a model's topology allows if the model has no such weights.
    """
    child = topology.children[d]
    follows = child[:, :, None] & child[:, None, :] & topology.successors[d + 1]
    weights = {} if isinstance(model_or_topology, Topology) else _family_weights(model_or_topology, d)
    if not weights:
        init, trans = np.where(child, 1.0, -np.inf), np.where(follows, 1.0, -np.inf)
        return init, trans, init
    none = np.full(child.shape, -np.inf)
    return weights.get("init", none), weights.get("trans", np.full(follows.shape, -np.inf)), weights.get("end", none)


def _topology_of(model: Any) -> Topology:
    if isinstance(model, Topology):
        return model
    if not hasattr(model, "topology_"):
        raise ValueError(f"the {type(model).__name__} has no topology_; expected a fitted model or a Topology")
    topology: Topology = model.topology_
    return topology


def _weighted_blocks(model: Any) -> list[tuple[Any, Floats]]:
    """The model's feature blocks, each with its weights."""
    _topology_of(model)
    bounds = np.cumsum([0, *(block.size for block in model.blocks_)]).tolist()
    return [(block, model.coef_[a:b]) for block, (a, b) in zip(model.blocks_, pairwise(bounds), strict=True)]


def _family_weights(model: Any, d: int) -> dict[str, Floats]:
    """Constant weights of init and end (S, U), trans (S, U, U), for parents at level d; -inf where there is none."""
    found: dict[str, Floats] = {}
    for block, weights in _weighted_blocks(model):
        if isinstance(block, ConstantBlock) and block.key[1] == d:
            table = np.full(int(np.prod(block.shape)), -np.inf)
            table[block.cells] = weights
            found[block.key[0]] = table.reshape(block.shape[1:])
    return found


def _above(table: Floats, threshold: float) -> NDArray[np.bool_]:
    return np.isfinite(table) & (table > threshold)


def _row_orders(topology: Topology, shown: Sequence[NDArray[np.bool_]], first: int) -> dict[int, list[int]]:
    """The states of each level from left to right, near the middle of their parents."""
    orders = {first: list(range(topology.n_states[first]))}
    for d in range(first + 1, topology.depth):
        place = np.argsort(orders[d - 1])
        middle = [float(place[column].mean()) if column.any() else np.inf for column in shown[d - 1].T]
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


def _rows_layout(topology: Topology, orders: Mapping[int, list[int]], first: int) -> _Rows:
    """Rows of boxes; names of a long row stand upright."""
    margin = max(_text_width(topology.levels[d]) for d in range(first, topology.depth)) + 12
    lying = {d: sum(_text_width(name) + 18 for name in topology.states[d]) for d in orders}
    upright = {d: width > 900 for d, width in lying.items()}
    widths = {d: topology.n_states[d] * (FONT + 12.0) if upright[d] else lying[d] for d in orders}
    inner = max(300.0, *widths.values())
    tall = {d: max(map(_text_width, topology.states[d])) + 8 if upright[d] else FONT + 8.0 for d in orders}
    gap = 70.0 + 0.08 * inner
    height = sum(tall.values()) + gap * (len(orders) - 1) + 8
    boxes, y = {}, height - 4
    for d, order in orders.items():
        x = margin
        spare = (inner - widths[d]) / len(order)
        for s in order:
            own = FONT + 6.0 if upright[d] else _text_width(topology.states[d][s]) + 8
            slot = (FONT + 12.0 if upright[d] else own + 10) + spare
            boxes[d, s] = (x + slot / 2, y - tall[d] / 2, own, tall[d])
            x += slot
        y -= tall[d] + gap
    return _Rows(margin + inner, height, boxes, upright)


def _box(ax: Axes, box: tuple[float, ...], name: str, upright: bool, linewidth: float, scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y, width, height = box
    corner = (x - width / 2, y - height / 2)
    look: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=3", "facecolor": "white", "edgecolor": INK}
    ax.add_patch(FancyBboxPatch(corner, width, height, linewidth=linewidth * scale, zorder=3, label=name, **look))
    turn = 90 if upright else 0
    ax.text(x, y, _plain(name), ha="center", va="center", rotation=turn, fontsize=FONT * scale, zorder=4)


def _join(ax: Axes, start: tuple[float, float], stop: tuple[float, float], width: float, style: dict[str, Any]) -> None:
    """An edge from a parent down to a child, upright at both ends."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    middle = (start[1] + stop[1]) / 2
    path = Path([start, (start[0], middle), (stop[0], middle), stop], [1, 4, 4, 4])
    ax.add_patch(PathPatch(path, facecolor="none", linewidth=width, capstyle="butt", label="_edge", **style))


def plot_transitions(model_or_topology: Any, level: str | int, threshold: float = 0.0, ax: Axes | None = None) -> Axes:
    """Draw which state of a level follows which, in a circle for each parent; shared states are in several circles.

    Arrows are as wide as their weights; those of at most ``threshold`` are left out, and so are states that then have
    none. Filled states come first under the parent, square ones last; a ring marks those that follow themselves: by a
    weight above the threshold, or because a topology allows it.
    """
    topology = _topology_of(model_or_topology)
    d = topology.level(level)
    if d == 0:
        raise ValueError("level is 'root', which nothing follows; expected a level below it")
    tables = _family_tables(model_or_topology, topology, d - 1)
    circles = [_circle(topology, d, s, tables, threshold) for s in range(topology.n_states[d - 1])]
    circles = [circle for circle in circles if circle.order]
    if not circles:
        raise ValueError(f"no weight of level {topology.levels[d]!r} exceeds the threshold {threshold:g}")
    grid = _grid(circles)
    ax = _canvas(ax, grid.width, grid.height)
    scale = _font_scale(ax, grid.width, grid.height)
    given = isinstance(model_or_topology, Topology)
    strongest = UNWEIGHTED if given else max(1e-9, *(float(circle.trans.max()) for circle in circles))
    for circle, (centre, top) in zip(circles, grid.places, strict=True):
        _draw_arrows(ax, circle, centre, strongest, scale)
        _draw_nodes(ax, circle, centre, scale)
        ax.text(centre[0], top, _plain(circle.title), ha="center", va="top", fontsize=(FONT + 1) * scale, weight="bold")
    _circle_legend(ax, scale)
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
        return 2 * (self.radius + max(_text_width(self.names[u]) for u in self.order) + 22)

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
    arrows = _above(trans, threshold)
    first, last = _above(init, threshold), _above(end, threshold)
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
    """Rows of three circles, of five if there are many; a line is left for the legend."""
    columns = min(len(circles), 3 if len(circles) <= 9 else 5)
    rows = -(-len(circles) // columns)
    widths = [max(circle.width for circle in circles[k::columns]) for k in range(columns)]
    heights = [max(circle.height for circle in circles[k * columns : (k + 1) * columns]) for k in range(rows)]
    width, height = max(sum(widths), 390.0), sum(heights) + 22
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
        look: dict[str, Any] = {"color": _line_style(u, len(circle.names), MAPS[0])["edgecolor"], "linewidth": width}
        look |= {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=0.18", "mutation_scale": 5 * scale + 2 * width}
        look |= {"shrinkA": 6 * scale, "shrinkB": 6 * scale, "label": "_arrow"}
        ax.add_patch(FancyArrowPatch(circle.spot(u, centre), circle.spot(v, centre), **look))


def _draw_nodes(ax: Axes, circle: _Circle, centre: tuple[float, float], scale: float) -> None:
    look: dict[str, Any] = {"color": INK, "markeredgewidth": 0.9 * scale, "linestyle": "", "zorder": 3}
    for u in circle.order:
        x, y = circle.spot(u, centre)
        marker, fill = "s" if circle.last[u] else "o", INK if circle.first[u] else "white"
        label = "_" + circle.names[u]
        ax.plot(x, y, marker=marker, markersize=5.5 * scale, markerfacecolor=fill, label=label, **look)
        if np.isfinite(circle.trans[u, u]):
            ax.plot(x, y, marker="o", markersize=11 * scale, markerfacecolor="none", label="_ring", **look)
        x, y = circle.spot(u, centre, beyond=9)
        ax.text(x, y, _plain(circle.names[u]), fontsize=FONT * scale, **_alignment(circle, u))


def _alignment(circle: _Circle, u: int) -> dict[str, Any]:
    """How the name of a state is set beside its node."""
    angle = circle.angle(u)
    if abs(np.cos(angle)) < 1e-9 and not circle.turned:
        return {"ha": "center", "va": "top"}  # at the bottom, below its neighbours' names
    right = np.cos(angle) >= 0
    turn = np.degrees(angle) + (0 if right else 180) if circle.turned else 0
    return {"ha": "left" if right else "right", "va": "center", "rotation": turn, "rotation_mode": "anchor"}


def _whole_ticks(ax: Axes) -> None:
    """There is no half step."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _circle_legend(ax: Axes, scale: float) -> None:
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"color": INK, "linestyle": "", "markersize": 5.5 * scale}
    large = {**look, "markersize": 10 * scale}
    handles = [
        Line2D([], [], marker="o", label="comes first", **look),
        Line2D([], [], marker="s", markerfacecolor="white", label="comes last", **look),
        Line2D([], [], marker="o", markerfacecolor="white", label="neither", **look),
        Line2D([], [], marker="o", markerfacecolor="none", label="follows itself", **large),
    ]
    look = {"frameon": False, "fontsize": FONT * scale, "borderaxespad": 0.2, "columnspacing": 1.2}
    ax.legend(handles=handles, loc="lower center", ncols=4, **look)


def plot_durations(model: Any, level: str | int, ax: Axes | None = None, X: Sequence[Any] | None = None) -> Axes:
    """Draw how long the segments of each state of a level last: a row for each state, its best length at the top.

    Without observations the height is exp(weight) of the duration weights alone. What a step of a state scores by
    itself, and the room that is left for other segments, shift lengths too: with sequences ``X`` the height is the
    number of segments of each length that the model expects in them.
    """
    topology = _topology_of(model)
    d = topology.level(level)
    scores = _duration_scores(model, d) if X is None else _expected_durations(model, topology.levels[d], X)
    names = topology.states[d]
    length = np.arange(1, len(scores) + 1)
    ax = _axes(ax, (6.4, 0.9 + (0.34 if len(names) <= 12 else 0.22) * len(names)))
    for s, name in enumerate(names):
        legal = (length >= topology.min_duration[d][s]) & (length <= topology.max_duration[d][s])
        height = np.where(legal, np.exp(scores[:, s] - scores[legal, s].max()), 0.0)
        style = _state_style(topology, d, s)
        base = len(names) - 1 - s
        ax.fill_between(length, base, base + 0.85 * height, facecolor=style["facecolor"], linewidth=0, label="_" + name)
        ax.plot(length, base + 0.85 * height, color=INK, linewidth=0.9, label="_" + name)
    ax.set_yticks(np.arange(len(names))[::-1] + 0.3, [_plain(name) for name in names], fontsize=FONT)
    ax.set_axisbelow(True)
    ax.set(xlim=(1, max(len(scores), 2)), ylim=(-0.1, len(names)), xlabel="length in steps", ylabel=topology.levels[d])
    _whole_ticks(ax)
    ax.grid(axis="x", color="0.9")
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _duration_scores(model: Any, d: int) -> Floats:
    """Log-potentials (L, S) of durations."""
    found = [
        block.basis @ weights.reshape(-1, block.states)
        for block, weights in _weighted_blocks(model)
        if isinstance(block, DurationBlock) and block.key[1] == d
    ]
    if not found:
        level = model.topology_.levels[d]
        raise ValueError(f"the model has no duration weights at level {level!r}: fit it with Duration({level!r})")
    return np.asarray(sum(found), dtype=np.float64)


def _expected_durations(model: Any, level: str, X: Sequence[Any]) -> Floats:
    """Log of the expected number (L, S) of segments of each length."""
    _duration_scores(model, model.topology_.level(level))
    counts = sum(np.asarray(posterior(p).counts.duration[level]) for p in model.potentials(X))
    return np.log(np.maximum(counts, 1e-300))


def plot_training(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the loss of each iteration and, on a second axis to the right, the score on development data."""
    if not hasattr(model, "history_"):
        raise ValueError(f"the {type(model).__name__} has no history_; expected a fitted model")
    if not model.history_:
        raise ValueError("the history of the model is empty: training stopped before its first iteration")
    own = ax is None
    ax = _axes(ax, (6.4, 4.0))
    iteration = [entry["iteration"] for entry in model.history_]
    ax.plot(iteration, [entry["loss"] for entry in model.history_], color=INK, label="loss")
    ax.set(xlabel="iteration", ylabel="loss")
    ax.spines[["right", "top"]].set_visible(False)
    judged = [(entry["iteration"], entry["score"]) for entry in model.history_ if entry.get("score") is not None]
    if judged:
        _draw_scores(ax, judged, own)
    return ax


def _draw_scores(ax: Axes, judged: Sequence[tuple[int, float]], own: bool) -> None:
    right = ax.twinx()
    style = _line_style(1, 3, MAPS[0])
    color = style["edgecolor"]
    right.plot(*zip(*judged, strict=True), "--", color=color, label="development score")
    best = max(judged, key=lambda pair: pair[1])
    right.plot(*best, "o", color=color, label=f"best: {best[1]:.3g} at {best[0]}")
    right.set_ylabel("development score")
    right.spines[["left", "top"]].set_visible(False)
    handles = [*ax.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    _legend_below(ax, [handles], own)


# ------------------------------------------------------------------------------
# How right predictions are


def plot_confusion(
    y_true: Sequence[Labels], y_pred: Sequence[Labels], level: str | int, ax: Axes | None = None
) -> Axes:
    """Draw how often each true state (row) was given each state (column): shares of the row, counts as numbers.

    States that occur on neither side are left out; numbers too, where there are more than sixteen states.
    """
    counts, names = confusion(y_true, y_pred, level)
    used = np.flatnonzero(counts.sum(axis=0) + counts.sum(axis=1))
    if not used.size:
        raise ValueError(f"level {level!r} has no known step in y_true; expected at least one")
    counts, shown = counts[np.ix_(used, used)], [_plain(names[s]) for s in used]
    side = 2.2 + 0.42 * used.size if used.size <= 16 else 2.2 + 0.19 * used.size
    ax = _axes(ax, (side + 0.8, side))
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

    ``accuracies`` are numbers for each fraction (F,), repeats (F, R) that are drawn as their mean and range, or a dict
    of such by name, as of levels or models.
    """
    share = np.asarray(fractions, dtype=np.float64)
    curves = accuracies if isinstance(accuracies, Mapping) else {"accuracy": accuracies}
    own = ax is None
    ax = _axes(ax, (6.4, 4.0))
    for k, (name, values) in enumerate(curves.items()):
        repeats = np.asarray(values, dtype=np.float64)
        if repeats.ndim not in (1, 2) or len(repeats) != share.size:
            raise ValueError(
                f"accuracies of {name!r} have shape {repeats.shape}; expected ({share.size},) or rows of it"
            )
        repeats = repeats.reshape(share.size, -1)
        style = _line_style(k, len(curves), MAPS[0])
        color, marker = style["edgecolor"], MARKERS[k % len(MARKERS)]
        ax.plot(
            share, repeats.mean(axis=1), linestyle=style["linestyle"], color=color, marker=marker, label=_plain(name)
        )
        if repeats.shape[1] > 1:
            ax.fill_between(share, repeats.min(axis=1), repeats.max(axis=1), color=color, alpha=0.15, linewidth=0)
    ax.set(xlabel="share of labels given", ylabel="accuracy")
    ax.spines[["right", "top"]].set_visible(False)
    ax.grid(color="0.92")
    if isinstance(accuracies, Mapping):
        _legend_below(ax, [ax.get_legend_handles_labels()[0]], own)
    return ax


# ------------------------------------------------------------------------------
# Colours, text and room


def _state_style(topology: Topology, d: int, s: int) -> dict[str, Any]:
    """Colour and hatch of a state; no other state of the level has both, up to sixty."""
    shades = min(topology.n_states[d], SHADES)
    color = _shade_of(MAPS[(d - 1) % len(MAPS)], s % shades, shades)
    hatch = HATCHES[s // shades % len(HATCHES)]
    white, black = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)
    edge = _mix(black if _ink_on(color) == "black" else white, color, 0.6)
    return {"facecolor": color, "hatch": hatch or None, "edgecolor": edge}


def _mix(one: Color, other: Color, share: float) -> Color:
    """The first colour's share laid over the other."""
    red, green, blue = (share * a + (1 - share) * b for a, b in zip(one, other, strict=True))
    return red, green, blue


@lru_cache(maxsize=256)
def _shade_of(name: str, k: int, n: int, lightest: float = 0.97) -> Color:
    """The k-th of n colours of a map from dark to light."""
    from matplotlib import colormaps

    red, green, blue, _ = colormaps[name](0.12 + (lightest - 0.12) * (k / (n - 1) if n > 1 else 0.6))
    return float(red), float(green), float(blue)


def _line_style(k: int, n: int, name: str) -> dict[str, Any]:
    """Colour and dashes of the k-th of n lines; none is too pale for white paper."""
    shades = min(n, len(LINES))
    return {"edgecolor": _shade_of(name, k % shades, shades, 0.72), "linestyle": LINES[k % len(LINES)]}


def _ink_on(background: Color) -> str:
    red, green, blue = background
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def _plain(name: str) -> str:
    """A name as it stands: neither mathematics nor hidden from legends."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


@lru_cache(maxsize=4096)
def _text_width(name: str) -> float:
    """Points that a name takes in the size of the pictures' font."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), _plain(name), size=FONT).get_extents().width) if name.strip() else 0.0


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'hscrf[plots]'") from error
    return pyplot


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes given, or those of a new figure of a size in inches."""
    if ax is not None:
        return ax
    new: Axes = _pyplot().subplots(figsize=size, layout="constrained")[1]
    return new


def _canvas(ax: Axes | None, width: float, height: float) -> Axes:
    """Axes without ticks whose units are points, at least in a figure of their own."""
    if ax is None:
        figure = _pyplot().figure(figsize=(width / 72, height / 72))
        ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    ax.axis("off")
    return ax


def _font_scale(ax: Axes, width: float, height: float) -> float:
    """How much smaller than planned the axes are."""
    box, points = ax.get_window_extent(), 72 / ax.figure.dpi
    return float(min(1.0, box.width * points / width, box.height * points / height))


def _lay_out(ax: Axes) -> None:
    """Let the figure find its place for the axes, so that widths can be measured."""
    ax.figure.canvas.figure.draw_without_rendering()


def _legend_below(ax: Axes, groups: Sequence[Sequence[Any]], own: bool) -> None:
    """A legend below the axes in columns; every group begins a new one. A figure of our own grows by its height."""
    from matplotlib.patches import Patch
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.figure
    groups = [group for group in groups if group]
    widths = [max(_text_width(handle.get_label()) for handle in group) + 46 for group in groups]
    room = max(ax.get_window_extent().width * 72 / figure.dpi, sum(widths))
    sizes = [len(group) for group in groups]
    rows = next(n for n in range(1, 1000) if sum(-(-k // n) * w for k, w in zip(sizes, widths, strict=True)) <= room)
    handles: list[Any] = []
    for group in groups:
        blanks = [Patch(facecolor="none", edgecolor="none", label=" ") for _ in range(-len(group) % rows)]
        handles += [*group, *blanks]
    if own:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + 0.19 * rows)
    below = ax.transAxes + ScaledTranslation(0, -34 / 72, figure.dpi_scale_trans)
    look: dict[str, Any] = {
        "loc": "upper center",
        "frameon": False,
        "fontsize": FONT,
        "borderaxespad": 0,
        "handleheight": 1.1,
    }
    ax.legend(handles=handles, ncols=len(handles) // rows, bbox_to_anchor=(0.5, 0), bbox_transform=below, **look)
