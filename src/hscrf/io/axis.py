"""Times of steps, from a rate or from a column of times."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from statistics import median


def check_rate(rate: float) -> float:
    """Return the number of steps per second; raise ValueError if it is not positive and finite."""
    if not rate > 0 or not math.isfinite(rate):
        raise ValueError(f"rate is {rate!r}, expected the number of steps per second, more than 0")
    return float(rate)


def check_times(times: Sequence[float]) -> list[float]:
    """Return times in seconds as floats; raise ValueError unless they are finite and increase."""
    found = [float(time) for time in times]
    for n, time in enumerate(found):
        if not math.isfinite(time):
            raise ValueError(f"the time of step {n} is {time!r}, expected a number of seconds")
    for n, (one, other) in enumerate(pairwise(found), start=1):
        if other <= one:
            raise ValueError(f"the time of step {n} is {other!r}, expected more than {one!r}, that of the step before")
    return found


@dataclass(frozen=True)
class TimeAxis:
    """The times of the boundaries of steps, in seconds.

    Parameters
    ----------
    steps : int
        Number of steps of the sequence.
    rate : float, optional
        Steps per second. Without rate and times, a step is a second.
    times : sequence of float, optional
        The time at which each step begins. The last step is as long as the median one.

    Examples
    --------
    >>> axis = TimeAxis(3, times=[0.0, 0.5, 2.0])
    >>> [axis.seconds(border) for border in range(4)], axis.border(0.6), axis.border(99)
    ([0.0, 0.5, 2.0, 3.0], 1, 3)
    """

    steps: int
    rate: float | None = None
    times: Sequence[float] | None = None
    borders: Sequence[float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.times is None:
            rate = check_rate(1.0 if self.rate is None else self.rate)
            borders = [step / rate for step in range(self.steps + 1)]
        else:
            if len(self.times) != self.steps:
                raise ValueError(f"there are {len(self.times)} times, expected {self.steps}: one for each step")
            borders = check_times(self.times)
            lengths = [other - one for one, other in pairwise(borders)]
            last = median(lengths) if lengths else 1 / check_rate(self.rate or 1.0)
            borders.append(borders[-1] + last)
        object.__setattr__(self, "borders", borders)

    def seconds(self, border: int) -> float:
        """Return the time of a boundary.

        Parameters
        ----------
        border : int
            0 is the start of the sequence, ``steps`` its end.

        Returns
        -------
        float
            Seconds.
        """
        return self.borders[border]

    def border(self, seconds: float) -> int:
        """Return the boundary that is nearest to a time.

        Parameters
        ----------
        seconds : float
            The time.

        Returns
        -------
        int
            0 to ``steps``.
        """
        k = bisect.bisect_left(self.borders, seconds)
        if k == 0 or (k < len(self.borders) and self.borders[k] - seconds <= seconds - self.borders[k - 1]):
            return k
        return k - 1

    def step_at(self, border: int) -> float:
        """Return the duration of the step that begins at a boundary.

        Parameters
        ----------
        border : int
            The end of the sequence means the last step.

        Returns
        -------
        float
            Seconds.
        """
        k = min(border, self.steps - 1)
        return self.borders[k + 1] - self.borders[k]


def rate_of(times: Sequence[float]) -> float | None:
    """Return the steps per second if times begin at 0 and are equally spaced (to 1 %), else None.

    >>> rate_of([0, 0.04, 0.08]), rate_of([0, 1, 3])
    (25.0, None)
    """
    lengths = [other - one for one, other in pairwise(times)]
    if not lengths or abs(times[0]) > 0.01 * lengths[0]:
        return None
    mean = (times[-1] - times[0]) / len(lengths)
    even = all(abs(length - mean) <= 0.01 * mean for length in lengths)
    return round(1 / mean, 6) if even else None


def seconds_in(cells: Sequence[object]) -> list[float] | None:
    """Return a column of times in seconds; dates count from the first one. None if the cells are not times.

    >>> seconds_in(["0", "0.5"]), seconds_in(["2024-01-01 10:00", "2024-01-01 10:01"]), seconds_in(["a", "b"])
    ([0.0, 0.5], [0.0, 60.0], None)
    """
    try:
        found = [float(str(cell)) for cell in cells]
    except ValueError:
        try:
            dates = [cell if isinstance(cell, datetime) else datetime.fromisoformat(str(cell)) for cell in cells]
            found = [(date - dates[0]).total_seconds() for date in dates]
        except (ValueError, TypeError):
            return None
    try:
        return check_times(found)
    except ValueError:
        return None
