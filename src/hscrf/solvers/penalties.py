"""The choice of L2 penalties by held-out errors.

The training sequences are divided into folds; the sequences of a group (a person, a document) stay in one fold. Each
fold is held out once. The models of all folds are fitted to one penalty after the other, from strong to weak; each fit
starts at the weights of the one before. The path goes on to stronger or weaker penalties as long as the held-out errors
fall. The penalty with the fewest errors is taken, unless its lead over the plain penalty is within noise: 1.5 standard
errors over the groups. Then the transitions, and the features of each level, get a factor each. A factor is raised or
lowered as long as that gives a lead beyond noise.

The errors are those of the most probable states of steps and borders of segments, made smooth. The errors that a model
itself expects are of no use here: they fall when a model gets more confident, even if it is not right more often.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Ints, Random, generator
from hscrf.errors import several
from hscrf.solvers.course import INTERRUPTED, Penalty, Progress, Solver
from hscrf.solvers.lbfgs import LBFGS

TRANSITIONS = "transitions"  # the group of the weights of parents and their children
FOLDS, MORE_FOLDS = 2, 4  # folds of more than MANY groups, and of fewer
MANY = 100  # groups
STEP = math.sqrt(10.0)  # ratio of two neighbouring penalties, of all weights or of a group
WAY = (1.0, 0.32, 0.1)  # first penalties of the path
LIMITS = (0.01, 100.0)  # smallest and largest overall penalty
FARTHEST = 40.0  # the largest factor of a group, and one over the smallest
PATIENCE = 2  # steps without a better penalty that end the path
NOISE = 1.5  # standard errors that a lead must exceed
SOLVER = LBFGS(max_iter=100, period=5, delta=5e-4)  # fits the folds; a stricter stopping rule changes no decision


@dataclass(frozen=True)
class Weighting:
    """Which weights share a factor, and the relative strength of each penalty."""

    groups: Sequence[str]  # of each block
    sizes: Sequence[int]
    own: Sequence[float]  # factors in the specifications

    @property
    def names(self) -> list[str]:
        """The groups that have weights, transitions first; none if all weights are of one group."""
        found = dict.fromkeys(group for group, size in zip(self.groups, self.sizes, strict=True) if size)
        return sorted(found, key=lambda group: group != TRANSITIONS) if len(found) > 1 else []

    def each(self, amount: float, factors: Mapping[str, float]) -> Penalty:
        """The penalty of each weight; only the amount if all factors are one."""
        times = [own * factors.get(group, 1.0) for own, group in zip(self.own, self.groups, strict=True)]
        return amount if set(times) <= {1.0} else amount * np.repeat(times, self.sizes)


@dataclass(frozen=True)
class Trial:
    """An entry of the path, with its errors and weights."""

    entry: dict[str, Any]
    errors: Floats  # of each group of sequences
    weights: list[Floats]  # of each fold

    def lead(self, other: Trial) -> float:
        """The lead over another trial: the difference of errors in standard errors."""
        return lead_of(other.errors - self.errors)

    @property
    def total(self) -> float:
        """The errors of all groups."""
        return float(self.errors.sum())


@dataclass
class Search:
    """The path through penalties, and the weights of all folds at the best place of it."""

    objective: Any  # a ShardedLoss with an attribute for complete labels
    weighting: Weighting
    c1: float
    start: Floats  # weights, the same for all folds
    random_state: Random = None
    verbose: int = 0
    plain: float = 0.1  # the penalty to keep unless another is significantly better
    groups: Sequence[Any] | None = None  # group of each sequence; None: each sequence is a group
    solver: Solver | None = None  # of the folds; None: SOLVER

    def __post_init__(self) -> None:
        n = self.objective.n_parts
        self.group, count = group_numbers(self.groups, n)
        if count < 2:
            what = "sequences" if self.groups is None else "groups of sequences"
            raise ValueError(f"c2='auto' holds {what} out, but there is {count}; expected at least 2, or a number")
        random = generator(0 if self.random_state is None else self.random_state)
        fold = deal(np.bincount(self.group), FOLDS if count > MANY else min(MORE_FOLDS, count), random)[self.group]
        self.folds = self.objective.folds([np.flatnonzero(fold == k) for k in range(fold.max() + 1)])
        self.progress = Progress(self.verbose, None)
        self.began = time.perf_counter()
        self.path: list[dict[str, Any]] = []
        self.best = Trial({"c2": np.inf, "factors": {}}, np.full(count, np.inf), [self.start] * len(self.folds))
        self.reason = ""

    def run(self) -> None:
        """Search the overall penalty, then the factor of each group; Ctrl-C ends the search."""
        try:
            plain = self.walk()
            for group in self.weighting.names:
                if not self.weigh(group, STEP):
                    self.weigh(group, 1 / STEP)
            self.reason = reason_of(self.best, plain)
            self.progress.close(self.reason)
        except KeyboardInterrupt:
            self.progress.close("the search for c2 was interrupted")

    def walk(self) -> Trial:
        """Find the best overall penalty; return the trial of the plain one."""
        way = {}
        for c2 in dict.fromkeys((*WAY, self.plain)):
            way[c2] = self.best = self.attempt(c2, {})
            self.best.entry["better"] = True
        plain = way[self.plain]
        for step in (1 / STEP, STEP):
            self.go_on(way, step)
        fewest = min(way.values(), key=lambda trial: trial.total)
        self.best = fewest if fewest.lead(plain) > NOISE else plain
        for trial in way.values():
            trial.entry.update(lead=trial.lead(plain), better=trial is self.best)
        return plain

    def go_on(self, way: dict[float, Trial], step: float) -> None:
        """Extend the path beyond one end until some penalties in a row are no better than the best."""
        reached = min(way) if step < 1 else max(way)
        self.best = way[reached]
        since = 0 if way[reached].total <= min(trial.total for trial in way.values()) else PATIENCE
        while since < PATIENCE and LIMITS[0] <= (reached := two_digits(reached * step)) <= LIMITS[1]:
            fewest = min(trial.total for trial in way.values())
            way[reached] = self.best = self.attempt(reached, {})
            since = 0 if self.best.total < fewest else since + 1

    def weigh(self, group: str, step: float) -> bool:
        """Change the factor of a group while the lead exceeds noise; return whether it changed."""
        moved = False
        while 1 / FARTHEST < (factor := two_digits(self.best.entry["factors"].get(group, 1.0) * step)) < FARTHEST:
            trial = self.attempt(self.best.entry["c2"], {**self.best.entry["factors"], group: factor}, group)
            lead = trial.lead(self.best)
            trial.entry.update(lead=lead, better=lead > NOISE)
            if lead <= NOISE:
                break
            self.best, moved = trial, True
        return moved

    def attempt(self, c2: float, factors: dict[str, float], group: str | None = None) -> Trial:
        """Fit all folds with these penalties, from the best weights so far; the errors in what they hold out."""
        errors, weights, n_iter = np.zeros(self.objective.n_parts), [], 0
        penalties = self.weighting.each(self.c1, {}), self.weighting.each(c2, factors)
        for (rest, held_out), start in zip(self.folds, self.best.weights, strict=True):
            result = (self.solver or SOLVER).minimize(rest, start, *penalties)
            if result.reason == INTERRUPTED:
                raise KeyboardInterrupt
            weights.append(result.weights)
            n_iter += result.n_iter
            errors += held_out.soft_errors(result.weights)
        errors = np.bincount(self.group, errors).astype(np.float64)
        seconds = time.perf_counter() - self.began
        entry = {"c2": c2, "factors": factors, "group": group, "errors": float(errors.sum()), "lead": 0.0}
        self.path.append({**entry, "better": False, "n_iter": n_iter, "seconds": seconds})
        self.progress.write(f"c2 {c2:.3g}{factors_text(factors)}  held-out errors {errors.sum():.1f}  {seconds:.1f} s")
        return Trial(self.path[-1], errors, weights)

    def first_weights(self) -> Floats:
        """Weights to start a fit to all data: the mean over folds; those of one fold if labels are partial."""
        weights = self.best.weights
        return np.mean(weights, axis=0) if self.objective.is_complete else weights[0]


def chosen(path: Sequence[Mapping[str, Any]]) -> tuple[float, dict[str, float]]:
    """The penalty and the factors where a path ended."""
    best = [entry for entry in path if entry["better"]][-1]
    return best["c2"], dict(best["factors"])


def reason_of(best: Trial, plain: Trial) -> str:
    """Return one sentence: the choice, and its advantage over the plain penalty."""
    c2 = plain.entry["c2"]
    if best is plain:
        return f"c2 = {c2:g} was kept: no other penalty had fewer held-out errors beyond noise"
    fewer = 100 * (1 - best.total / plain.total)
    taken = f"c2 = {best.entry['c2']:g}{factors_text(best.entry['factors'])}"
    lead = f"{best.lead(plain):.1f} standard errors"
    return f"{taken} was chosen: {fewer:.1f} % fewer held-out errors than c2 = {c2:g} ({lead})"


def group_numbers(groups: Sequence[Any] | None, n: int) -> tuple[Ints, int]:
    """The number of the group of each of n sequences, and how many groups there are."""
    if groups is None:
        return np.arange(n), n
    if len(groups) != n:
        raise ValueError(f"groups has {len(groups)} entries for {several(n, 'sequence')}")
    numbers = {name: k for k, name in enumerate(dict.fromkeys(groups))}
    return np.array([numbers[name] for name in groups]), len(numbers)


def deal(sizes: Ints, folds: int, random: np.random.Generator) -> Ints:
    """A fold for each group: in random order, each goes to the fold with the fewest sequences so far."""
    found, filled = np.zeros(sizes.size, dtype=np.int64), np.zeros(folds)
    for k in random.permutation(sizes.size):
        found[k] = filled.argmin()
        filled[found[k]] += sizes[k]
    return found


def lead_of(gains: Floats) -> float:
    """The decrease of the errors of all groups, in standard errors of that sum; 0 if none changed."""
    chance = math.sqrt(gains @ gains)
    return float(gains.sum()) / chance if chance else 0.0


def two_digits(penalty: float) -> float:
    """Round to two digits, so that two steps are a power of ten."""
    return float(f"{penalty:.2g}")


def factors_text(factors: Mapping[str, float]) -> str:
    """Factors other than one, as text."""
    shown = [f"{group} x{factor:.3g}" for group, factor in factors.items() if factor != 1.0]
    return "".join(f", {words}" for words in shown)
