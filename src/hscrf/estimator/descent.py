"""The first weights, and the descent from them: L-BFGS on many weights and on partial labels.

Weights that have equal gradients in every iteration are one weight to L-BFGS (:mod:`hscrf.objective.ties`).

The loss of partial labels has several optima. From zero weights, the sequences with partial labels are first assigned
to arbitrary states, and it takes many iterations to bring these in line with the complete ones. So the complete
sequences alone are learned first: they cost little, and fix the meaning of the states.

With partial labels the loss also falls long after held-out quality has stopped rising. So the default solver ends
earlier there, at ``PARTIAL_DELTA``. If a level has no label at all, the rule of complete labels holds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Random, generator
from hscrf.estimator.weights import carry_over
from hscrf.features.blocks import Block
from hscrf.objective.sharded import ShardedLoss
from hscrf.objective.ties import Tied, tied_sets
from hscrf.observations.encoder import ObservationEncoder
from hscrf.solvers import LBFGS, Monitor, Penalty
from hscrf.solvers.course import INTERRUPTED, Result, Solver
from hscrf.topology import Topology

START = 100  # iterations on the complete sequences, at most
PARTIAL_DELTA = 1e-2  # delta of the default solver where labels of some sequences are not complete
MANY = 10_000  # weights


def first_weights(
    blocks: Sequence[Block],
    encoder: ObservationEncoder,
    topology: Topology,
    labelled: NDArray[np.bool_],
    former: dict[Any, float] | None,
    random_state: Any,
) -> Floats:
    """The weights that training starts from: former ones, zeros, or random ones if a level has no labels at all.

    From zeros, all states of a level without labels would stay equal.
    """
    if former is not None:
        carried = carry_over(former, blocks, encoder, topology)
        if any(former.values()) and not carried.any():
            warnings.warn("warm_start: no former weight fits the new features and states", stacklevel=5)
        return carried
    size = sum(block.size for block in blocks)
    if has_hidden_level(topology, labelled):
        return 0.1 * generator(random_state).normal(size=size)
    return np.zeros(size)


def has_hidden_level(topology: Topology, labelled: NDArray[np.bool_]) -> bool:
    """Whether a level with several states has no label at all."""
    return any(n > 1 and not labelled[d] for d, n in enumerate(topology.n_states))


def descend(
    solver: Solver,
    objective: ShardedLoss,
    weights: Floats,
    c1: Penalty,
    c2: Penalty,
    monitor: Monitor,
    random_state: Random = None,
    *,
    own_rule: bool = False,
    many: int = MANY,
) -> Result:
    """Minimise the penalised loss from some weights on; L-BFGS replaces zero weights by those of complete sequences.

    ``own_rule`` means that the ``delta`` of the solver holds for partial labels, too. From ``many`` weights on, equal
    ones are tied.
    """
    if not isinstance(solver, LBFGS):
        return solver.minimize(objective, weights, c1, c2, monitor, random_state)
    tied = ties_of(objective, weights) if weights.size >= many else None
    if tied is None:
        return descend_from_complete(solver, objective, weights, c1, c2, monitor, own_rule)
    c1, c2 = tied.penalty(c1, 1.0), tied.penalty(c2, 0.0)
    monitor = seeing_all(monitor, tied.whole)
    result = descend_from_complete(solver, tied, tied.joined(weights), c1, c2, monitor, own_rule)
    return replace(result, weights=tied.whole(result.weights))


def descend_from_complete(
    solver: LBFGS,
    objective: ShardedLoss | Tied,
    weights: Floats,
    c1: Penalty,
    c2: Penalty,
    monitor: Monitor,
    own_rule: bool,
) -> Result:
    """Minimise the loss; where some labels are complete and others are not, learn the complete ones first."""
    complete = objective.of_complete()
    if complete is not None and not weights.any():
        weights = learned_from(complete, weights, solver, c1, c2)
    if not own_rule and not objective.is_complete:
        solver = replace(solver, delta=PARTIAL_DELTA)
    return solver.minimize(objective, weights, c1, c2, monitor)


def ties_of(objective: ShardedLoss, weights: Floats) -> Tied | None:
    """The loss with one weight for each set of weights that stay equal; None if these weights differ within a set."""
    tied = Tied(objective, tied_sets(objective))
    same = tied.whole(tied.joined(weights))
    return tied if np.allclose(same, weights, rtol=1e-9, atol=1e-12) else None


def seeing_all(monitor: Monitor, whole: Callable[[Floats], Floats]) -> Monitor:
    """A monitor for a run over tied weights; it evaluates and saves the full weights."""
    evaluate, checkpoint = monitor.evaluate, monitor.checkpoint
    return replace(
        monitor,
        evaluate=None if evaluate is None else lambda weights: evaluate(whole(weights)),
        checkpoint=None if checkpoint is None else lambda weights, *rest: checkpoint(whole(weights), *rest),
    )


def learned_from(complete: ShardedLoss | Tied, weights: Floats, solver: LBFGS, c1: Penalty, c2: Penalty) -> Floats:
    """The weights learned from the complete sequences alone; weights without gradient there stay zero."""
    where = np.flatnonzero(complete(weights)[1])
    some = (complete if isinstance(complete, Tied) else Tied(complete, np.arange(complete.size))).some(where)
    c1, c2 = (np.broadcast_to(penalty, weights.shape)[where] for penalty in (c1, c2))
    few = replace(solver, max_iter=min(solver.max_iter, START))
    result = few.minimize(some, np.zeros(some.size), c1, c2)
    if result.reason == INTERRUPTED:
        raise KeyboardInterrupt
    found = np.zeros(weights.size)
    found[where] = result.weights
    return found
