"""L-BFGS on many weights and on partial labels: in fewer dimensions, and from a better start.

The loss of partial labels has several optima. From zero weights, the sequences with partial labels are first explained
by whatever states fit, and it takes many iterations to bring these in line with the complete ones. So a few iterations
on the complete sequences alone come first: they cost little, and say what the states mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Ints, Random
from hscrf.objective.sharded import ShardedLoss
from hscrf.objective.ties import Tied, tied_sets
from hscrf.solvers import LBFGS, Monitor, Penalty
from hscrf.solvers.course import INTERRUPTED, Result, Solver

START = 30  # iterations on the complete sequences: more do not shorten what follows
MANY = 10_000  # weights from which on equal ones are taken as one


def descend(
    solver: Solver,
    objective: ShardedLoss,
    weights: Floats,
    c1: Penalty,
    c2: Penalty,
    monitor: Monitor,
    random_state: Random = None,
) -> Result:
    """Minimise the penalised loss from some weights on; L-BFGS replaces zero weights by those of complete sequences."""
    if not isinstance(solver, LBFGS):
        return solver.minimize(objective, weights, c1, c2, monitor, random_state)
    tied = ties_of(objective, weights) if weights.size >= MANY else None
    if tied is None:
        weights = start_at_complete(objective, weights, solver, c1, c2)
        return solver.minimize(objective, weights, c1, c2, monitor)
    loss: Any = tied
    c1, c2 = tied.penalty(c1, 1.0), tied.penalty(c2, 0.0)
    first = start_at_complete(loss, tied.joined(weights), solver, c1, c2)
    result = solver.minimize(loss, first, c1, c2, seeing_all(monitor, tied.whole))
    return replace(result, weights=tied.whole(result.weights))


def ties_of(objective: ShardedLoss, weights: Floats) -> Tied | None:
    """The loss of weights of which equal ones are one; None if these weights differ where they should be equal."""
    tied = Tied(objective, tied_sets(objective))
    same = tied.whole(tied.joined(weights))
    return tied if np.allclose(same, weights, rtol=1e-9, atol=1e-12) else None


def seeing_all(monitor: Monitor, whole: Callable[[Floats], Floats]) -> Monitor:
    """A monitor of a run of fewer weights that evaluates and saves all of them."""
    evaluate, checkpoint = monitor.evaluate, monitor.checkpoint
    return replace(
        monitor,
        evaluate=None if evaluate is None else lambda weights: evaluate(whole(weights)),
        checkpoint=None if checkpoint is None else lambda weights, *rest: checkpoint(whole(weights), *rest),
    )


class SomeWeights:
    """A loss as a function of some of the weights; all others are zero."""

    def __init__(self, objective: Any, where: Ints) -> None:
        self.objective, self.where = objective, where
        self.size = where.size

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        loss, gradient = self.objective(self.whole(weights))
        return loss, gradient[self.where]

    def whole(self, weights: Floats) -> Floats:
        """The vector of all weights."""
        found = np.zeros(self.objective.size)
        found[self.where] = weights
        return found


def start_at_complete(objective: Any, weights: Floats, solver: LBFGS, c1: Penalty, c2: Penalty) -> Floats:
    """The weights to start from: those given, unless they are zero and some labels are complete and others are not.

    Only weights that the complete sequences have a say in are learned here: the others stay zero.
    """
    complete = None if weights.any() else objective.of_complete()
    if complete is None:
        return weights
    some: Any = SomeWeights(complete, np.flatnonzero(complete(weights)[1]))
    c1, c2 = (np.broadcast_to(penalty, weights.shape)[some.where] for penalty in (c1, c2))
    few = replace(solver, max_iter=min(solver.max_iter, START))
    result = few.minimize(some, np.zeros(some.size), c1, c2)
    if result.reason == INTERRUPTED:
        raise KeyboardInterrupt
    return some.whole(result.weights)
