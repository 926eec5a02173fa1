"""The choice of L2 penalties by what is held out.

All training sequences are held out once, fold by fold. The folds are fitted along a path of penalties from strong to
weak, each fit starting where the last one ended, as long as it pays. Then a factor is sought in the same way for each
group of weights: transitions, and the features of each level. The measure is the number of labels that are expected to
be wrong, the sum of the posteriors of wrong states. It is as smooth as the likelihood, but asks only for what decoding
is judged by: where the steps of long segments resemble each other, the most probable penalties are not the most
accurate ones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Random, generator
from hscrf.solvers import LBFGS, Penalty
from hscrf.solvers.course import INTERRUPTED, Progress

TRANSITIONS = "transitions"  # the group of the weights of parents and their children
FOLDS = 2
STEP = math.sqrt(10.0)  # from one penalty to the next
STRONG = STEP  # where the path begins; it turns to even stronger ones if the next is worse
LIMITS = (1e-6, 1e6)  # of the overall penalty
MOST = 100.0  # a factor, and its inverse
GAIN = 0.02  # of the expected errors, which a change must take away: less is chance, and strong penalties learn faster
FACTOR = 10.0  # from one factor to the next
SOLVER = LBFGS(max_iter=100, period=5, delta=5e-4)  # of the folds: what it leaves undone shows in no decision


@dataclass(frozen=True)
class Weighting:
    """Which weights share a factor, and how strongly each is penalised beside the others."""

    groups: Sequence[str]  # of each block
    sizes: Sequence[int]
    own: Sequence[float]  # factors that the specifications ask for

    @property
    def names(self) -> list[str]:
        """The groups that have weights, transitions first; none if all weights are of one group."""
        found = dict.fromkeys(group for group, size in zip(self.groups, self.sizes, strict=True) if size)
        return sorted(found, key=lambda group: group != TRANSITIONS) if len(found) > 1 else []

    def each(self, amount: float, factors: Mapping[str, float]) -> Penalty:
        """The penalty of each weight; the amount itself where no factor differs from one."""
        times = [own * factors.get(group, 1.0) for own, group in zip(self.own, self.groups, strict=True)]
        return amount if set(times) <= {1.0} else amount * np.repeat(times, self.sizes)


@dataclass
class Search:
    """The path through penalties, and the weights of all folds at the best place of it."""

    objective: Any  # a ShardedLoss that knows whether its labels are complete
    weighting: Weighting
    c1: float
    start: Floats  # weights, the same for all folds
    random_state: Random = None
    verbose: int = 0

    def __post_init__(self) -> None:
        n = self.objective.n_parts
        if n < 2:
            raise ValueError(f"c2='auto' holds sequences out, but there is {n}; expected at least 2, or a number")
        order = generator(0 if self.random_state is None else self.random_state).permutation(n)
        self.folds = self.objective.folds([order[k::FOLDS] for k in range(min(FOLDS, n))])
        self.progress = Progress(self.verbose, None)
        self.began = time.perf_counter()
        self.path: list[dict[str, Any]] = []
        self.best: dict[str, Any] = {"errors": np.inf, "c2": STRONG, "factors": {}}  # entry
        self.weights = [self.start] * len(self.folds)  # of the best entry

    def run(self) -> None:
        """Look for the overall penalty, then for the factor of each group; Ctrl-C ends the search where it is."""
        try:
            self.attempt(STRONG, {})
            self.change(1 / STEP) or self.change(STEP)
            for group in self.weighting.names:
                step = 1 / FACTOR if group == TRANSITIONS else FACTOR  # what most data ask for
                self.weigh(group, step) or self.weigh(group, 1 / step)
            self.progress.close(f"the best is c2 {self.best['c2']:.3g}{spoken(self.best['factors'])}")
        except KeyboardInterrupt:
            self.progress.close("the search for c2 was interrupted")

    def change(self, step: float) -> bool:
        """Change the overall penalty step by step while it gets better; whether it got better at all."""
        moved, c2 = False, self.best["c2"] * step
        while LIMITS[0] <= c2 <= LIMITS[1] and self.attempt(c2, {}):
            moved, c2 = True, c2 * step
        return moved

    def weigh(self, group: str, step: float) -> bool:
        """Change the factor of a group step by step while it gets better; whether it got better at all."""
        moved, factor = False, step
        while 1 / MOST <= factor <= MOST and self.attempt(
            self.best["c2"], {**self.best["factors"], group: factor}, group
        ):
            moved, factor = True, factor * step
        return moved

    def attempt(self, c2: float, factors: dict[str, float], group: str | None = None) -> bool:
        """Fit all folds with these penalties; does what they hold out have fewer errors than with the best so far."""
        total, weights, n_iter = 0.0, [], 0
        penalties = self.weighting.each(self.c1, {}), self.weighting.each(c2, factors)
        for (rest, held_out), start in zip(self.folds, self.weights, strict=True):
            result = SOLVER.minimize(rest, start, *penalties)
            if result.reason == INTERRUPTED:
                raise KeyboardInterrupt
            weights.append(result.weights)
            n_iter += result.n_iter
            total += held_out.expected_errors(result.weights)
        seconds = time.perf_counter() - self.began
        better = total < (1 - GAIN) * self.best["errors"]
        entry = {"c2": c2, "factors": factors, "group": group, "errors": total, "better": better}
        self.path.append({**entry, "n_iter": n_iter, "seconds": seconds})
        self.progress.write(f"c2 {c2:.3g}{spoken(factors)}  expected errors {total:.1f}  {seconds:.1f} s")
        if better:
            self.best, self.weights = self.path[-1], weights
        return better

    def first_weights(self) -> Floats:
        """Where a fit to all data may start: between the folds, or at one, for partial labels have several optima."""
        return np.mean(self.weights, axis=0) if self.objective.is_complete else self.weights[0]


def chosen(path: Sequence[Mapping[str, Any]]) -> tuple[float, dict[str, float]]:
    """The penalty and the factors where a path ended."""
    best = [entry for entry in path if entry["better"]][-1]
    return best["c2"], dict(best["factors"])


def spoken(factors: Mapping[str, float]) -> str:
    """Factors other than one, as words of a line."""
    shown = [f"{group} x{factor:.3g}" for group, factor in factors.items() if factor != 1.0]
    return "".join(f", {words}" for words in shown)
