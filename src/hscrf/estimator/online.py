"""Learning from one chunk of data after the other: ``partial_fit`` of the online solvers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hscrf import solvers
from hscrf.arrays import Floats
from hscrf.estimator.checks import check_lengths, check_steps, unchanged_on_failure
from hscrf.estimator.frame import data_of
from hscrf.objective.likelihood import Likelihood
from hscrf.objective.scorer import Scorer
from hscrf.objective.sharded import ShardedLoss
from hscrf.objective.workers import Workers
from hscrf.observations.readers import cut_apart

if TYPE_CHECKING:
    from hscrf.estimator.hscrf import HSCRF


def partial_fit(model: HSCRF, X: Any, Y: Any, sample_weight: Any, lengths: Any) -> None:
    """One epoch over a chunk, from where the last one ended; the first chunk fixes states, features and scales.

    The penalties c1 and c2 are those of all data so far. A chunk takes a share of them: its share of the sequences.
    """
    model._check_arguments()
    solver: Any = solvers.solver_of(model.solver)
    if not isinstance(solver, (solvers.SGD, solvers.Perceptron)):
        raise ValueError(f"solver is {model.solver!r}, but partial_fit goes on online: expected 'sgd' or 'perceptron'")
    if model.c2 == "auto":
        raise ValueError("c2 is 'auto', which needs all data at once: expected a number for partial_fit")
    X, Y = cut_apart(lengths, ("X", X), ("Y", Y))
    with unchanged_on_failure(model), Workers(model.n_jobs) as workers:
        state = getattr(model, "online_", None)
        objective: ShardedLoss
        if hasattr(model, "coef_"):
            objective, weights = _chunk(model, X, Y, sample_weight, workers), model.coef_
        else:
            packed, weights = model._learn(data_of(X, Y))
            objective = model._loss(packed, sample_weight, workers)
        weights = model._choose_penalties(objective, weights)  # only stores c2_: c2 is a number
        model.n_seen_ = getattr(model, "n_seen_", 0) + len(X)
        c1, c2 = (np.asarray(penalty) * (len(X) / model.n_seen_) for penalty in model._penalties())
        done = 0 if state is None else int(state["epoch"])
        monitor = solvers.Monitor(checkpoint=_unsaved, verbose=model.verbose, done=done, state=state)
        one = replace(solver, epochs=done + 1)
        result = one.minimize(objective, weights, _plain(c1), _plain(c2), monitor, model.random_state)
        if result.state is None:
            raise KeyboardInterrupt  # before the end of the first epoch
    model.online_, model.temperature_ = result.state, {}
    model.coef_, model.loss_, model.n_iter_ = result.weights, result.loss, done + result.n_iter
    model.history_ = [*(getattr(model, "history_", []) if state is not None else []), *result.history]
    model.converged_, model.stop_reason_, model.best_iter_ = False, "partial_fit may go on", None


def _unsaved(*_: Any) -> None:
    """Save nothing: the result holds the state of the solver."""


def _plain(penalty: Any) -> float | Floats:
    return float(penalty) if penalty.ndim == 0 else penalty


def _chunk(model: HSCRF, X: Any, Y: Any, sample_weight: Any, workers: Workers) -> Likelihood:
    """The loss of one more chunk in the frame of the first."""
    check_lengths(X, Y)
    observations = model.encoder_.pack(X).shared()
    labels = model.read_evidence(Y, observations, "Y") or []
    check_steps(observations, labels)
    costs = model._costs() if model.margin else None
    return Likelihood(Scorer(model.topology_, model.blocks_), observations, labels, sample_weight, workers, costs)
