"""Labelled intervals that other programs wrote, and their places in a sequence of steps."""

from __future__ import annotations

import bisect
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hscrf.io.axis import TimeAxis
from hscrf.io.spans import Span

MODEL_TIER = " (model)"  # ends the names of tiers that hold predictions


class Interval(NamedTuple):
    """A labelled interval of a tier.

    Parameters
    ----------
    start, stop : float
        Half-open, in the unit of the timeline.
    tier : str
        Name of the tier.
    label : str
        Label of the interval.
    where : str
        Place of the interval in its file, for messages.
    """

    start: float
    stop: float
    tier: str
    label: str
    where: str


class PlaceError(ValueError):
    """An interval that does not fit into its sequence.

    Parameters
    ----------
    where : str
        Place of the interval in its file.
    problem : str
        The message without the place.
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}" if where else problem)
        self.where, self.problem = where, problem


@dataclass(frozen=True)
class Timeline:
    """The labelled intervals of one recording or text, as another program wrote them.

    Parameters
    ----------
    name : str
        Name of the sequence in the file, or the name of the file.
    intervals : list of Interval
        The intervals of all tiers.
    unit : {"seconds", "steps", "characters"}
        Unit of start and stop.
    text : str, optional
        The text whose characters are counted.
    names : tuple of str
        Other possible names of the sequence, such as that of a recording.
    times : list of float, optional
        Times of the samples, if the file has them. The stop of an interval is then the time of its last sample.
    texts : tuple of str
        All texts of the file that can identify the sequence.
    strict : bool
        Whether every tier must belong to a level. Otherwise other tiers are left out.
    """

    name: str
    intervals: list[Interval] = field(default_factory=list)
    unit: str = "seconds"
    text: str | None = None
    names: tuple[str, ...] = ()
    times: list[float] | None = None
    texts: tuple[str, ...] = ()
    strict: bool = False


class PlacedSpans(NamedTuple):
    """Intervals as segments of levels, the tiers that were left out, and how many borders were moved to a step."""

    spans: list[Span]
    left_out: list[str]
    moved: int


def squeezed(*parts: str) -> str:
    """Text without any white space."""
    return "".join("".join(parts).split())


def digest_of(*parts: str) -> str:
    """A digest of a text without its white space: equal for texts of the same words."""
    return hashlib.sha256(squeezed(*parts).encode("utf-8", "replace")).hexdigest()


def place(
    timeline: Timeline, levels: Mapping[str, Sequence[str]], axis: TimeAxis, words: Sequence[str] | None = None
) -> PlacedSpans:
    """Return the intervals of a timeline as segments in steps.

    Parameters
    ----------
    timeline : Timeline
    levels : mapping
        From the name of a level to its labels, from top to bottom.
    axis : TimeAxis
        Times of the steps of the sequence. A border between two steps is moved to the nearest one.
    words : sequence of str, optional
        Words of the sequence, if the timeline counts characters.

    Returns
    -------
    PlacedSpans
        Segments by level, then by start. A tier whose name is no level belongs to the only level that has its labels;
        if there is none it is left out.

    Raises
    ------
    PlaceError
        If a label is unknown, or an interval is outside the sequence, shorter than half a step, or overlaps another
        one of its level.

    Examples
    --------
    >>> one = Timeline("day", [Interval(0.0, 1.04, "action", "walk", "line 3")])
    >>> place(one, {"action": ["walk", "sit"]}, TimeAxis(20, rate=10)).spans
    [Span(start=0, stop=10, level='action', label='walk', confidence=None)]
    """
    if not timeline.intervals:
        return PlacedSpans([], [], 0)
    tiers, left_out = ({}, []) if timeline.strict else _levels_of_tiers(timeline.intervals, levels)
    offsets = _offsets(timeline, words) if timeline.unit == "characters" else None
    found: dict[str, list[tuple[int, int, Interval]]] = {level: [] for level in levels}
    moved = 0
    for interval in timeline.intervals:
        level = _level_of(interval, levels) if timeline.strict else tiers.get(interval.tier)
        if level is None:
            continue
        if interval.label not in levels[level]:
            raise PlaceError(interval.where, f"level {level!r} has no label {interval.label!r}")
        if not (math.isfinite(interval.start) and math.isfinite(interval.stop) and interval.start <= interval.stop):
            raise PlaceError(
                interval.where, f"the interval goes from {interval.start} to {interval.stop}, expected times in order"
            )
        start, stop, shifts = _steps(interval, timeline, axis, offsets)
        moved += shifts
        found[level].append((start, stop, interval))
    spans = []
    for level, several in found.items():
        last: tuple[int, int, Interval] | None = None
        for start, stop, interval in sorted(several, key=lambda one: (one[0], one[1])):
            if last is not None and start < last[1]:
                raise PlaceError(
                    interval.where,
                    f"{interval.label!r} overlaps {last[2].label!r} of the same level {level!r} ({last[2].where})",
                )
            last = (start, stop, interval)
            spans.append(Span(start, stop, level, interval.label))
    return PlacedSpans(spans, left_out, moved)


def _levels_of_tiers(
    intervals: Iterable[Interval], levels: Mapping[str, Sequence[str]]
) -> tuple[dict[str, str], list[str]]:
    """The level of each tier, and the tiers without one."""
    labels: dict[str, set[str]] = {}
    for interval in intervals:
        labels.setdefault(interval.tier, set()).add(interval.label)
    found, left_out = {}, []
    for tier, used in labels.items():
        having = [level for level, names in levels.items() if used <= set(names)]
        if tier in levels:
            found[tier] = tier
        elif not tier.endswith(MODEL_TIER) and len(having) == 1:
            found[tier] = having[0]
        else:
            left_out.append(tier)
    return found, left_out


def _level_of(interval: Interval, levels: Mapping[str, Sequence[str]]) -> str:
    """The level that an interval names; where it names none of them, the only one that has its label."""
    if interval.tier in levels:
        return interval.tier
    having = [level for level, names in levels.items() if interval.label in names]
    if len(having) != 1:
        known = "several levels have" if having else "no level has"
        raise PlaceError(interval.where, f"{interval.tier!r} is not a level, and {known} the label {interval.label!r}")
    return having[0]


def _steps(
    interval: Interval, timeline: Timeline, axis: TimeAxis, offsets: Sequence[int] | None
) -> tuple[int, int, int]:
    """First step, step after the last, and how many borders were moved."""
    if offsets is not None:  # from the word that holds the first character to the one that holds the last
        start = bisect.bisect_right(offsets, interval.start) - 1
        stop = bisect.bisect_left(offsets, interval.stop)
        if not 0 <= start < stop < len(offsets):
            raise _outside(interval, f"{offsets[-1] - 1} characters")
        return start, stop, 0
    if timeline.unit == "steps":
        start, stop = round(interval.start), round(interval.stop)
        if (start, stop) != (interval.start, interval.stop):
            raise PlaceError(
                interval.where, f"steps are {interval.start:g} to {interval.stop:g}, expected whole numbers"
            )
        if not 0 <= start < stop <= axis.steps:
            raise _outside(interval, f"{axis.steps} steps")
        return start, stop, 0
    if timeline.times is not None:
        if len(timeline.times) != axis.steps:
            raise PlaceError(
                interval.where, f"its series has {len(timeline.times)} samples, expected {axis.steps}: those here"
            )
        samples = TimeAxis(axis.steps, times=timeline.times)
        _check_inside(interval, samples)
        return _nearest(samples, interval.start), _nearest(samples, interval.stop) + 1, 0
    _check_inside(interval, axis)
    start, stop = axis.border(interval.start), axis.border(interval.stop)
    if start == stop:
        raise PlaceError(
            interval.where,
            f"{interval.label!r} from {interval.start:g} to {interval.stop:g} s is shorter than half a step",
        )
    pairs = ((start, interval.start), (stop, interval.stop))
    return start, stop, sum(abs(axis.seconds(k) - time) > 0.01 * axis.step_at(k) for k, time in pairs)


def _nearest(samples: TimeAxis, time: float) -> int:
    return min(samples.border(time), samples.steps - 1)


def _check_inside(interval: Interval, axis: TimeAxis) -> None:
    """A recording may be longer than its steps by less than one; no interval may be further outside."""
    first, last = axis.seconds(0), axis.seconds(axis.steps)
    if interval.start < first - axis.step_at(0) or interval.stop > last + axis.step_at(axis.steps):
        raise _outside(interval, f"{first:g} to {last:g} s")


def _outside(interval: Interval, extent: str) -> PlaceError:
    return PlaceError(
        interval.where,
        f"{interval.label!r} goes from {interval.start:g} to {interval.stop:g}, outside the sequence ({extent})",
    )


def _offsets(timeline: Timeline, words: Sequence[str] | None) -> list[int]:
    """Where each word begins in the text of a timeline; without one, in the words joined by spaces."""
    if words is None:
        raise PlaceError("", "the intervals count characters, but the sequence is not text")
    text = " ".join(words) if timeline.text is None else timeline.text
    return offsets_in(text, words)


def offsets_in(text: str, words: Sequence[str]) -> list[int]:
    """Where each word begins in a text of the same words with other spaces, and one after its end.

    >>> offsets_in("Hello,  world", ["Hello", ",", "world"])
    [0, 5, 8, 14]
    """
    places, end = [], 0
    for word in words:
        place = text.find(word, end) if " " not in word else end + len(text[end:]) - len(text[end:].lstrip())
        places.append(place if place >= 0 else end)
        end = places[-1] + len(word)
    return [*places, len(text) + 1]
