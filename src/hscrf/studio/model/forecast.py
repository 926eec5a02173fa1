"""Estimate how long training will take: from its iterations so far or, before the first, from the cost of inference."""

from __future__ import annotations

import math
from typing import Any

from hscrf.engine.cost import estimate, time_in_words
from hscrf.solvers.lbfgs import DELTA
from hscrf.topology import Topology

TYPICAL = 40  # iterations that are assumed while nothing better is known


class Forecast:
    """A guess of the seconds that are left of a run of training.

    A run of L-BFGS ends when its loss has improved by less than a share ``delta`` over ``period`` iterations. That
    improvement shrinks roughly by a constant factor in every period, so its end is extrapolated. Other solvers have a
    fixed number of epochs.

    Parameters
    ----------
    solver : object
        With ``max_iter``, ``period`` and ``delta``, or with ``epochs``; None: no guess is made.
    topology : Topology
    lengths : sequence of int
        Of the sequences that are learned from.
    """

    def __init__(self, solver: Any, topology: Topology, lengths: Any) -> None:
        self.solver = solver
        self.expected = estimate(topology, lengths).seconds(learning=True)  # of an iteration
        self.losses: list[float] = []
        self.iteration = 0
        self.times: tuple[float, float] | None = None  # of the first and the last iteration
        self.first = 0

    def note(self, iteration: int, loss: float | None, now: float) -> None:
        """An iteration ended at ``now``, in seconds of a clock."""
        self.iteration = iteration
        self.losses.append(math.nan if loss is None else loss)
        if self.times is None:
            self.times, self.first = (now, now), iteration
        self.times = (self.times[0], now)

    @property
    def pace(self) -> float:
        """Seconds of an iteration."""
        if self.times is None or self.iteration == self.first:
            return self.expected
        return (self.times[1] - self.times[0]) / (self.iteration - self.first)

    @property
    def iterations(self) -> float | None:
        """How many iterations are left; None where nothing is known of the solver."""
        most = getattr(self.solver, "epochs", None) or getattr(self.solver, "max_iter", None)
        if most is None:
            return None
        left = max(0.0, float(most - self.iteration))
        if getattr(self.solver, "epochs", None) is not None:
            return left
        return min(left, self._extrapolated())

    def _extrapolated(self) -> float:
        """Iterations until the improvement over a period is below the share that ends the run."""
        period, delta = getattr(self.solver, "period", 10), getattr(self.solver, "delta", None)
        losses = self.losses
        typical = max(float(period), TYPICAL - float(self.iteration))
        if len(losses) <= 2 * period:
            return typical
        before, now = losses[-1 - 2 * period] - losses[-1 - period], losses[-1 - period] - losses[-1]
        end = (DELTA if delta is None else delta) * abs(losses[-1])
        if not 0 < now < 0.999 * before or not end > 0:
            return typical
        return max(0.0, period * math.log(now / end) / math.log(before / now))

    def seconds(self, now: float) -> float | None:
        """The seconds that are left at ``now``; None where nothing is known, or a first iteration ends at once."""
        left = self.iterations
        if left is None or (self.times is None and self.expected < 1):
            return None
        since = now - self.times[1] if self.times is not None else 0.0
        return max(0.0, left * self.pace - since)

    def words(self, now: float) -> str:
        """The guess in words; "" where there is none."""
        left = self.seconds(now)
        if left is None:
            return ""
        return f"about {time_in_words(left)}{'' if self.times is None else ' left'}"
