"""Labels of a sequence as tracks of segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hscrf.arrays import Floats
from hscrf.errors import a_type, several
from hscrf.inference.verbs import Marginals
from hscrf.labels.labels import Labels
from hscrf.plots.style import (
    FONT,
    INK,
    Color,
    axes_or_new,
    ink_on,
    lay_out,
    legend_below,
    mix,
    plain_text,
    state_style,
    text_width,
    whole_ticks,
)
from hscrf.topology import Topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_segments(
    labels: Labels | Sequence[Labels],
    prediction: Labels | Sequence[Labels] | None = None,
    marginals: Marginals | Sequence[Marginals] | None = None,
    evidence: Labels | Sequence[Labels | None] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw nested segmentations as stacked tracks, one track for each level, and the prediction below each.

    Several sequences, in lists of the same length, are drawn below each other. Steps where the prediction differs from
    the truth are underlined. Names are written in the segments where they fit. A level gets a legend below the axes if
    the name of a state fits nowhere; figures of your own need ``layout="constrained"`` to make room for it.

    Parameters
    ----------
    labels : Labels, or list of Labels
        The truth, or the only labels to draw.
    prediction : Labels or list of Labels, optional
        Drawn below the labels of each level.
    marginals : Marginals or list of Marginals, optional
        The lowest track of a level is the paler, the less probable its state is.
    evidence : Labels or list of Labels or None, optional
        Marked below: a dot for a known state, a ring for a set of states, a bar where a segment is known to end.
    ax : matplotlib Axes, optional
        Where to draw. None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    groups = _groups(labels, prediction, marginals, evidence)
    tracks = _tracks(groups)
    height = tracks[-1].y + 1 + 0.3 * (evidence is not None)
    own = ax is None
    ax = axes_or_new(ax, (9.0, 0.9 + 0.38 * height))
    ax.set_xlim(0, max(group.labels.length for group in groups))
    ax.set_ylim(height, -0.1)
    ax.set_yticks([track.y + 0.5 for track in tracks], [track.name for track in tracks], fontsize=FONT)
    ax.tick_params(axis="y", length=0)
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.set_xlabel("time step")
    whole_ticks(ax)
    lay_out(ax)
    for track in tracks:
        _draw_track(ax, track)
    _segment_legend(ax, tracks, own)
    return ax


@dataclass(frozen=True)
class _Group:
    """One sequence and its labels."""

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
    truth: Labels | None = None  # the true labels, if the labels are a prediction
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
    """The given labels, one entry for each sequence."""
    single = isinstance(labels, Labels)
    if not single and not isinstance(labels, Iterable):
        raise TypeError(f"labels is {a_type(labels)}; expected Labels or a list of them")
    truths = [labels] if single else list(labels)
    if not truths:
        raise ValueError("labels is empty; expected Labels or a list of them")
    columns = [truths]
    for name, given in (("prediction", prediction), ("marginals", marginals), ("evidence", evidence)):
        column = [None] * len(truths) if given is None else [given] if not isinstance(given, (list, tuple)) else given
        if len(column) != len(truths):
            raise ValueError(f"labels has {several(len(truths), 'sequence')} but {name} has {len(column)}")
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
            raise TypeError(f"{name}[{n}] is {a_type(other)}; expected Labels")
        if other.length != group.labels.length:
            raise ValueError(
                f"labels[{n}] has {several(group.labels.length, 'step')} but {name}[{n}] has {other.length}"
            )
        if other.topology.levels != group.labels.topology.levels:
            levels = " > ".join(group.labels.topology.levels)
            raise ValueError(f"{name}[{n}] has {other.topology}; expected the levels {levels}")
    if group.marginals is not None:
        _check_marginals(n, group.marginals, group.labels if group.prediction is None else group.prediction)


def _check_marginals(n: int, marginals: Marginals, labels: Labels) -> None:
    """Raise unless the marginals have a probability for every state that is drawn."""
    if not isinstance(marginals, Marginals):
        raise TypeError(f"marginals[{n}] is {a_type(marginals)}; expected Marginals")
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
    """Start, stop and state of the pieces to draw: segments, or equal neighbours of a unit bottom."""
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
    style = state_style(track.topology, track.level, state)
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
        if 1.05 * text_width(names[state]) + 6 <= (stop - start) * step:
            style = state_style(track.topology, track.level, state) if state >= 0 else {"facecolor": (1.0, 1.0, 1.0)}
            background = mix((1.0, 1.0, 1.0), style["facecolor"], float(veil[start:stop].mean()))
            _write(ax, (start + stop) / 2, track.y + 0.5, names[state], background, bool(style.get("hatch")))


def _write(ax: Axes, x: float, y: float, name: str, background: Color, hatched: bool) -> None:
    plate: dict[str, Any] | None = {"facecolor": background, "edgecolor": "none", "pad": 0.8} if hatched else None
    ink = ink_on(background)
    ax.text(
        x, y, plain_text(name), ha="center", va="center_baseline", fontsize=FONT, color=ink, bbox=plate, clip_on=True
    )


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
        if any(plain_text(topology.states[d][state]) not in written for state in shown):
            heading = Patch(facecolor="none", edgecolor="none", label=f"{topology.levels[d]}:")
            names = map(plain_text, topology.states[d])
            patches = [Patch(label=name, **state_style(topology, d, s)) for s, name in enumerate(names) if s in shown]
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
        legend_below(ax, groups, own)
