"""The choice of L2 penalties by held-out likelihood.

All training sequences are held out once, fold by fold. The folds are fitted along a path of penalties from strong to
weak, each fit starting where the last one ended, until the likelihood of what is held out falls. Then a factor is
sought in the same way for each group of weights: transitions, and the features of each level. Likelihoods are those of
the weights times their best factor.
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
GAIN = 1e-3  # of the held-out log-likelihood, by which a factor must improve it
TEMPERS = (0.7, 1.4)  # steps of the factor that weights are tried with on what is held out
SOLVER = LBFGS(max_iter=300, period=5, delta=5e-4)  # of the folds: what it leaves undone shows in no decision


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
        self.best: dict[str, Any] = {"log_likelihood": -np.inf, "c2": STRONG, "factors": {}}  # entry
        self.weights = [self.start] * len(self.folds)  # of the best entry

    def run(self) -> None:
        """Look for the overall penalty, then for the factor of each group; Ctrl-C ends the search where it is."""
        try:
            self.attempt(STRONG, {})
            self.change(1 / STEP) or self.change(STEP)
            for group in self.weighting.names:
                self.weigh(group, STEP if self.is_overfitted(group) else 1 / STEP)
            self.progress.close(f"the best is c2 {self.best['c2']:.3g}{spoken(self.best['factors'])}")
        except KeyboardInterrupt:
            self.progress.close("the search for c2 was interrupted")

    def change(self, step: float) -> bool:
        """Change the overall penalty step by step until it gets worse; whether it got better at all."""
        moved, c2 = False, self.best["c2"] * step
        while LIMITS[0] <= c2 <= LIMITS[1] and self.attempt(c2, {}):
            moved, c2 = True, c2 * step
        return moved

    def weigh(self, group: str, step: float) -> bool:
        """Change the factor of a group, by a step and then by two at a time, until it gets worse."""
        moved, factor = False, step
        while 1 / MOST <= factor <= MOST and self.attempt(
            self.best["c2"], {**self.best["factors"], group: factor}, group
        ):
            moved, factor = True, factor * step**2
        return moved

    def is_overfitted(self, group: str) -> bool:
        """Would smaller weights of a group make what is held out more probable: the slope along these weights."""
        own = np.repeat([name == group for name in self.weighting.groups], self.weighting.sizes)
        pull = [held_out(w)[1][own] @ w[own] for (_, held_out), w in zip(self.folds, self.weights, strict=True)]
        return sum(pull) > 0

    def attempt(self, c2: float, factors: dict[str, float], group: str | None = None) -> bool:
        """Fit all folds with these penalties; is what they hold out more probable than with the best so far."""
        total, weights, n_iter = 0.0, [], 0
        penalties = self.weighting.each(self.c1, {}), self.weighting.each(c2, factors)
        for (rest, held_out), start in zip(self.folds, self.weights, strict=True):
            result = SOLVER.minimize(rest, start, *penalties)
            if result.reason == INTERRUPTED:
                raise KeyboardInterrupt
            weights.append(result.weights)
            n_iter += result.n_iter
            total += tempered(held_out, result.weights)
        former, seconds = self.best["log_likelihood"], time.perf_counter() - self.began
        better = total > former + (GAIN * abs(former) if group else 0.0)
        entry = {"c2": c2, "factors": factors, "group": group, "log_likelihood": total, "better": better}
        self.path.append({**entry, "n_iter": n_iter, "seconds": seconds})
        self.progress.write(f"c2 {c2:.3g}{spoken(factors)}  held-out log-likelihood {total:.2f}  {seconds:.1f} s")
        if better:
            self.best, self.weights = self.path[-1], weights
        return better

    def first_weights(self) -> Floats:
        """Where a fit to all data may start: between the folds, or at one, for partial labels have several optima."""
        return np.mean(self.weights, axis=0) if self.objective.is_complete else self.weights[0]


def tempered(held_out: Any, weights: Floats) -> float:
    """The held-out log-likelihood of the weights times whatever factor makes it highest.

    Too much confidence, bred by steps that repeat each other, changes no decoding: it is not held against a penalty.
    """
    best = held_out.log_likelihood(weights)
    for step in TEMPERS:
        factor = step
        while 1 / MOST <= factor <= MOST and (found := held_out.log_likelihood(factor * weights)) > best:
            best, factor = found, factor * step
        if factor != step:
            break
    return best


def chosen(path: Sequence[Mapping[str, Any]]) -> tuple[float, dict[str, float]]:
    """The penalty and the factors where a path ended."""
    best = [entry for entry in path if entry["better"]][-1]
    return best["c2"], dict(best["factors"])


def spoken(factors: Mapping[str, float]) -> str:
    """Factors other than one, as words of a line."""
    shown = [f"{group} x{factor:.3g}" for group, factor in factors.items() if factor != 1.0]
    return "".join(f", {words}" for words in shown)
