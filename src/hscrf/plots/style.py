"""Colours, lines, type and axes that all pictures share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hscrf.topology import Topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Color = tuple[float, float, float]
SHADES = 6  # lightnesses that the eye can distinguish; more states take hatches
HATCHES = ("", "////", "....", "xxxx", "----", "\\\\\\\\", "oo", "||||", "++", "**")
MAPS = ("viridis", "plasma", "cividis")  # one for each level in turn; all of even lightness
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKERS = "os^Dv*PX<>"
INK = "#222222"
FONT = 8  # points


_chosen: ContextVar[Mapping[str, Mapping[Any, str]] | None] = ContextVar("colours of states", default=None)


@contextmanager
def colours(chosen: Mapping[str, Mapping[Any, str]]) -> Iterator[None]:
    """Draw some states in chosen colours inside a ``with`` block; other states keep theirs.

    Parameters
    ----------
    chosen : dict of str to dict
        Colours by level and label, as names or ``#rrggbb``.

    Returns
    -------
    context manager

    Examples
    --------
    >>> from hscrf import Topology
    >>> topology = Topology({"meal": ["lunch", "tea"]})
    >>> with colours({"meal": {"tea": "#ff0000"}}):
    ...     state_style(topology, 1, 1)["facecolor"]
    (1.0, 0.0, 0.0)
    """
    token = _chosen.set(chosen)
    try:
        yield
    finally:
        _chosen.reset(token)


def state_style(topology: Topology, d: int, s: int) -> dict[str, Any]:
    """Colour and hatch of a state; no other state of the level has both, up to sixty."""
    shades = min(topology.n_states[d], SHADES)
    color = shade_of(MAPS[(d - 1) % len(MAPS)], s % shades, shades)
    hatch = HATCHES[s // shades % len(HATCHES)]
    chosen = (_chosen.get() or {}).get(topology.levels[d], {}).get(topology.states[d][s])
    if chosen is not None:
        from matplotlib.colors import to_rgb

        color, hatch = to_rgb(chosen), ""
    white, black = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)
    edge = mix(black if ink_on(color) == "black" else white, color, 0.6)
    return {"facecolor": color, "hatch": hatch or None, "edgecolor": edge}


def mix(one: Color, other: Color, share: float) -> Color:
    """The first colour's share laid over the other."""
    red, green, blue = (share * a + (1 - share) * b for a, b in zip(one, other, strict=True))
    return red, green, blue


@lru_cache(maxsize=256)
def shade_of(name: str, k: int, n: int, lightest: float = 0.97) -> Color:
    """The k-th of n colours of a map from dark to light."""
    from matplotlib import colormaps

    red, green, blue, _ = colormaps[name](0.12 + (lightest - 0.12) * (k / (n - 1) if n > 1 else 0.6))
    return float(red), float(green), float(blue)


def line_style(k: int, n: int, name: str) -> dict[str, Any]:
    """Colour and dashes of the k-th of n lines; none is too pale for white paper."""
    shades = min(n, len(LINES))
    return {"edgecolor": shade_of(name, k % shades, shades, 0.72), "linestyle": LINES[k % len(LINES)]}


def ink_on(background: Color) -> str:
    """Black or white, whichever is readable on a background."""
    red, green, blue = background
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def plain_text(name: object) -> str:
    """A name that Matplotlib neither reads as mathematics nor hides from legends."""
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


@lru_cache(maxsize=4096)
def text_width(name: object) -> float:
    """Points that a name takes in the size of the pictures' font."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), plain_text(name), size=FONT).get_extents().width) if str(name).strip() else 0.0


def pyplot() -> ModuleType:
    """Import matplotlib's pyplot."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'hscrf[plots]'") from error
    return pyplot


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes given, or those of a new figure of a size in inches."""
    if ax is not None:
        return ax
    new: Axes = pyplot().subplots(figsize=size, layout="constrained")[1]
    return new


def canvas(ax: Axes | None, width: float, height: float) -> Axes:
    """Axes without ticks whose units are points, at least in a figure of their own."""
    if ax is None:
        figure = pyplot().figure(figsize=(width / 72, height / 72))
        ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    ax.axis("off")
    return ax


def font_scale(ax: Axes, width: float, height: float) -> float:
    """How much smaller than planned the axes are."""
    box, points = ax.get_window_extent(), 72 / ax.figure.dpi
    return float(min(1.0, box.width * points / width, box.height * points / height))


def whole_ticks(ax: Axes) -> None:
    """Ticks of the x axis at whole numbers: there is no half step."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def lay_out(ax: Axes) -> None:
    """Let the figure find its place for the axes, so that widths can be measured."""
    ax.figure.canvas.figure.draw_without_rendering()


def legend_below(ax: Axes, groups: Sequence[Sequence[Any]], own: bool) -> None:
    """A legend below the axes in columns; every group begins a new one. A figure of our own grows by its height."""
    from matplotlib.patches import Patch
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.figure
    groups = [group for group in groups if group]
    widths = [max(text_width(handle.get_label()) for handle in group) + 46 for group in groups]
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
