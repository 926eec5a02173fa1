"""The choice of L2 penalties by what is held out.

All training sequences are held out once, fold by fold. The folds are fitted along a path of penalties from strong to
weak, each fit starting where the last one ended. The path leads to the penalty of the plain call, which suits most data
and is taken unless another is surely better: one on the way, or, from either end of the way, ones beyond it. Then each
group of weights, transitions and the features of each level, gets a factor if it is surely better with it. The measure
is the number of labels that are wrong where the most probable states are guessed, made smooth. The errors that a model
itself expects would fall as it gets more sure of itself, even if it is not more often right. A difference is sure if it
is larger than twice its standard error over the sequences.
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
WAY = (1.0, 0.32, 0.1)  # where the path begins, and how it leads to the penalty of the plain call
LIMITS = (1e-6, 1e6)  # of the overall penalty
SURE = 2.0  # standard errors of a difference
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


@dataclass(frozen=True)
class Trial:
    """An entry of the path, and what is known of it besides."""

    entry: dict[str, Any]
    errors: Floats  # of each sequence
    weights: list[Floats]  # of each fold

    def lead(self, other: Trial) -> float:
        """How surely it has fewer errors than another."""
        return lead_of(other.errors - self.errors)


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
        self.best = Trial({"c2": np.inf, "factors": {}}, np.full(n, np.inf), [self.start] * len(self.folds))

    def run(self) -> None:
        """Look for the overall penalty, then for the factor of each group; Ctrl-C ends the search where it is."""
        try:
            self.go()
            if self.best.entry["c2"] == WAY[0]:
                self.go_on(STEP)
            elif self.best.entry["c2"] == WAY[-1]:
                self.go_on(1 / STEP)
            for group in self.weighting.names:
                if self.weigh(group, rounded(STEP)) < -SURE:
                    self.weigh(group, rounded(1 / STEP))
            self.progress.close(f"the best is c2 {self.best.entry['c2']:.3g}{spoken(self.best.entry['factors'])}")
        except KeyboardInterrupt:
            self.progress.close("the search for c2 was interrupted")

    def go(self) -> None:
        """Go all the way to the plain penalty, and back to the best on the way if that is surely better."""
        way = []
        for c2 in WAY:
            self.best = self.attempt(c2, {})
            self.best.entry["better"] = True
            way.append(self.best)
        plain, fewest = self.best, min(way, key=lambda trial: trial.entry["errors"])
        self.best = fewest if fewest.lead(plain) > SURE else plain
        for trial in way:
            trial.entry.update(lead=trial.lead(plain), better=trial is self.best)

    def go_on(self, step: float) -> None:
        """Change the overall penalty step by step while it gets surely better."""
        while LIMITS[0] <= (c2 := rounded(self.best.entry["c2"] * step)) <= LIMITS[1]:
            if self.judge(self.attempt(c2, {})) <= SURE:
                break

    def weigh(self, group: str, factor: float) -> float:
        """Change the factor of a group; its lead."""
        return self.judge(self.attempt(self.best.entry["c2"], {**self.best.entry["factors"], group: factor}, group))

    def judge(self, trial: Trial) -> float:
        """Take what is surely better than the best so far; its lead."""
        lead = trial.lead(self.best)
        trial.entry.update(lead=lead, better=lead > SURE)
        if lead > SURE:
            self.best = trial
        return lead

    def attempt(self, c2: float, factors: dict[str, float], group: str | None = None) -> Trial:
        """Fit all folds with these penalties, from the best weights so far; the errors in what they hold out."""
        errors, weights, n_iter = np.zeros(self.objective.n_parts), [], 0
        penalties = self.weighting.each(self.c1, {}), self.weighting.each(c2, factors)
        for (rest, held_out), start in zip(self.folds, self.best.weights, strict=True):
            result = SOLVER.minimize(rest, start, *penalties)
            if result.reason == INTERRUPTED:
                raise KeyboardInterrupt
            weights.append(result.weights)
            n_iter += result.n_iter
            errors += held_out.soft_errors(result.weights)
        seconds = time.perf_counter() - self.began
        entry = {"c2": c2, "factors": factors, "group": group, "errors": float(errors.sum()), "lead": 0.0}
        self.path.append({**entry, "better": False, "n_iter": n_iter, "seconds": seconds})
        self.progress.write(f"c2 {c2:.3g}{spoken(factors)}  held-out errors {errors.sum():.1f}  {seconds:.1f} s")
        return Trial(self.path[-1], errors, weights)

    def first_weights(self) -> Floats:
        """Where a fit to all data may start: between the folds, or at one, for partial labels have several optima."""
        weights = self.best.weights
        return np.mean(weights, axis=0) if self.objective.is_complete else weights[0]


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
