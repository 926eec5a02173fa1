"""The choice of L2 penalties by what is held out.

All training sequences are held out once, fold by fold. The folds are fitted along a path of penalties from strong to
weak, each fit starting where the last one ended. The path leads to the penalty of the plain call, which suits most
data: it ends before if that is surely worse, and goes beyond only while that is surely better. Then each group of
weights, transitions and the features of each level, gets a factor if it is surely better with it. The measure is the
number of labels that are wrong where the most probable states are guessed, made smooth. The errors that a model itself
expects would fall as it gets more sure of itself, even if it is not more often right. A difference is sure if it is
larger than its standard error over the sequences by a half.
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
STEP = math.sqrt(10.0)  # from one penalty to the next, of all weights or of a group
STRONG = 1.0  # where the path begins; it turns to even stronger ones if the next is worse
PLAIN = 0.1  # to which it leads
LIMITS = (1e-6, 1e6)  # of the overall penalty
SURE = 1.5  # standard errors of a difference
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
        self.best: dict[str, Any] = {"c2": np.inf, "factors": {}}  # entry
        self.errors: Floats | None = None  # of each sequence, with the best entry
        self.weights = [self.start] * len(self.folds)

    def run(self) -> None:
        """Look for the overall penalty, then for the factor of each group; Ctrl-C ends the search where it is."""
        try:
            self.attempt(STRONG, {})
            self.change(1 / STEP) or self.change(STEP)
            for group in self.weighting.names:
                if self.weigh(group, rounded(STEP)) < -SURE:
                    self.weigh(group, rounded(1 / STEP))
            self.progress.close(f"the best is c2 {self.best['c2']:.3g}{spoken(self.best['factors'])}")
        except KeyboardInterrupt:
            self.progress.close("the search for c2 was interrupted")

    def change(self, step: float) -> bool:
        """Change the overall penalty step by step while it gets better; whether it got better at all."""
        former = self.best
        while LIMITS[0] <= (c2 := rounded(self.best["c2"] * step)) <= LIMITS[1]:
            self.attempt(c2, {})
            if not self.path[-1]["better"]:
                break
        return self.best is not former

    def weigh(self, group: str, factor: float) -> float:
        """Change the factor of a group; its lead."""
        return self.attempt(self.best["c2"], {**self.best["factors"], group: factor}, group)

    def attempt(self, c2: float, factors: dict[str, float], group: str | None = None) -> float:
        """Fit all folds with these penalties; the lead of what they hold out over the best so far."""
        errors, weights, n_iter = np.zeros(self.objective.n_parts), [], 0
        penalties = self.weighting.each(self.c1, {}), self.weighting.each(c2, factors)
        for (rest, held_out), start in zip(self.folds, self.weights, strict=True):
            result = SOLVER.minimize(rest, start, *penalties)
            if result.reason == INTERRUPTED:
                raise KeyboardInterrupt
            weights.append(result.weights)
            n_iter += result.n_iter
            errors += held_out.soft_errors(result.weights)
        seconds = time.perf_counter() - self.began
        lead = 0.0 if self.errors is None else lead_of(self.errors - errors)
        better = lead > (-SURE if PLAIN <= c2 < self.best["c2"] else SURE)  # a tie leads to the plain penalty
        entry = {"c2": c2, "factors": factors, "group": group, "errors": float(errors.sum()), "lead": lead}
        self.path.append({**entry, "better": better, "n_iter": n_iter, "seconds": seconds})
        self.progress.write(f"c2 {c2:.3g}{spoken(factors)}  held-out errors {errors.sum():.1f}  {seconds:.1f} s")
        if better:
            self.best, self.errors, self.weights = self.path[-1], errors, weights
        return lead

    def first_weights(self) -> Floats:
        """Where a fit to all data may start: between the folds, or at one, for partial labels have several optima."""
        return np.mean(self.weights, axis=0) if self.objective.is_complete else self.weights[0]


def chosen(path: Sequence[Mapping[str, Any]]) -> tuple[float, dict[str, float]]:
    """The penalty and the factors where a path ended."""
    best = [entry for entry in path if entry["better"]][-1]
    return best["c2"], dict(best["factors"])


def lead_of(gains: Floats) -> float:
    """By how much the errors of sequences fell in all, in standard errors of that sum; 0 if none changed."""
    chance = math.sqrt(gains @ gains)
    return float(gains.sum()) / chance if chance else 0.0


def rounded(penalty: float) -> float:
    """Two digits of it, so that two steps are a power of ten."""
    return float(f"{penalty:.2g}")


def spoken(factors: Mapping[str, float]) -> str:
    """Factors other than one, as words of a line."""
    shown = [f"{group} x{factor:.3g}" for group, factor in factors.items() if factor != 1.0]
    return "".join(f", {words}" for words in shown)
