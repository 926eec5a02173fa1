"""Shared parts of the stochastic solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from hscrf.arrays import Floats, Ints, Random, generator
from hscrf.solvers.course import INTERRUPTED, Objective, Penalty, Result, Run, check_finite
from hscrf.solvers.scaled_weights import ScaledWeights

Moves = Sequence[tuple[Floats, Sequence[float]]]


class MiniBatch(Protocol):
    """A few sequences, visited once in each epoch. Weights come as a vector and a factor for each group of them."""

    def __len__(self) -> int:
        """Number of sequences."""

    def loss(self, base: Floats, factors: Floats) -> tuple[float, Any]:
        """Return the loss, and the part of its gradient that ``move`` needs."""

    def mistakes(self, base: Floats, factors: Floats) -> tuple[float, Any]:
        """Return the margin of the best labels over the true ones, and the data for ``move``; None if no mistake."""

    def move(self, found: Any, moves: Moves) -> None:
        """Add the gradient to each vector, times a factor for each group."""


class PlainBatch:
    """A bundle of an objective that has no bundles of its own: every step changes all weights."""

    def __init__(self, objective: Objective, which: Ints, groups: Sequence[slice]) -> None:
        self.objective, self.which = objective, which
        self.sizes = [group.stop - group.start for group in groups]

    def __len__(self) -> int:
        return len(self.which)

    def loss(self, base: Floats, factors: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient."""
        return self.objective.part(base * np.repeat(factors, self.sizes), self.which)

    def mistakes(self, base: Floats, factors: Floats) -> tuple[float, Floats | None]:
        """Return the perceptron's loss and gradient; None as gradient if there is no mistake."""
        loss, gradient = self.objective.mistakes(base * np.repeat(factors, self.sizes), self.which)
        return loss, gradient if gradient.any() else None  # not loss > 0: wrong labels may tie with the true ones

    def move(self, found: Floats, moves: Moves) -> None:
        """Add the gradient to each vector, times the factors of its groups."""
        for vector, factors in moves:
            vector += np.repeat(factors, self.sizes) * found


def bundles_of(
    objective: Objective, order: Ints, size: int, c2: Penalty = 0.0
) -> tuple[Sequence[MiniBatch], Sequence[slice]]:
    """The data in bundles, and the groups of weights that have a penalty in common."""
    make = getattr(objective, "bundles", None)
    if make is not None:
        groups = objective.groups  # type: ignore[attr-defined]
        if np.ndim(c2) == 0 or all(np.ptp(np.asarray(c2)[group]) == 0 for group in groups if group.stop > group.start):
            return make(order, size), groups
    borders = [0, *(np.flatnonzero(np.diff(c2)) + 1).tolist(), objective.size] if np.ndim(c2) else [0, objective.size]
    groups = [slice(a, b) for a, b in pairwise(borders)]
    return [PlainBatch(objective, which, groups) for which in batches(order, size)], groups


def batch_size(batch: int | None, n: int, most: int) -> int:
    """The number of sequences in a batch; None makes about 250 batches of n sequences, none larger than ``most``."""
    return max(1, min(most, n // 250)) if batch is None else batch


def penalty_by_group(penalty: Penalty, groups: Sequence[slice]) -> Floats:
    """The penalty of each group."""
    if np.ndim(penalty) == 0:
        return np.full(len(groups), float(penalty))
    each = np.asarray(penalty)
    return np.array([each[group.start] if group.stop > group.start else 0.0 for group in groups])


class kept_on_interrupt:
    """Keeps the weights in the middle of an epoch when Ctrl-C comes."""

    def __init__(self, run: Run, weights: Callable[[], Floats]) -> None:
        self.run, self.weights = run, weights

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self.run.keep(self.weights(), self.run.loss)


def with_loss(result: Result, evaluate: Callable[[Floats], float]) -> Result:
    """The result with its exact loss, unless Ctrl-C interrupts the evaluation."""
    if result.reason == INTERRUPTED:
        return result
    try:
        return replace(result, loss=float(evaluate(result.weights)))
    except KeyboardInterrupt:
        return replace(result, reason=INTERRUPTED, converged=False)


def batches(order: Ints, size: int) -> Iterator[Ints]:
    """Yield pieces of an order, of at most ``size`` numbers."""
    for start in range(0, len(order), size):
        yield order[start : start + size]


def checked_loss(loss: float, where: str) -> float:
    """The loss of a bundle; raises where it is not finite."""
    return check_finite((loss, np.zeros(0)), where)[0] if not np.isfinite(loss) else float(loss)


# ------------------------------------------------------------------------------
# -- resuming after a kill


def seed_of(run: Run, options: Any, random_state: Random) -> int:
    """The seed of all randomness in a run; of a resumed run, the former one."""
    state = resumed_state(run, options)
    return int(generator(random_state).integers(2**63)) if state is None else int(state["seed"])


def shuffled(n: int, seed: int, epoch: int, spans: Sequence[tuple[int, int]] = ()) -> Ints:
    """An order of n things, another one for each epoch; epoch 0 deals sequences to bundles.

    Things that lie in spans come span by span, each shuffled.

    >>> shuffled(6, 0, 1, [(0, 2), (2, 6)]).tolist()
    [1, 0, 3, 4, 5, 2]
    """
    rng = np.random.default_rng([seed, epoch])
    if len(spans) < 2:
        return rng.permutation(n)
    order = [spans[k] for k in rng.permutation(len(spans))]
    return np.concatenate([begin + rng.permutation(stop - begin) for begin, stop in order])


def bundle_order(bundles: Sequence[MiniBatch], seed: int, epoch: int) -> Ints:
    """The order in which an epoch meets bundles: those of a shard one after the other."""
    return shuffled(len(bundles), seed, epoch, getattr(bundles, "spans", ()))


def resumed_state(run: Run, options: Any) -> Mapping[str, Any] | None:
    """The saved state of a run with the same solver and options, except the number of epochs."""
    state = run.monitor.state
    return state if state is not None and state.get("solver") == settings_without_epochs(options) else None


def settings_without_epochs(options: Any) -> dict[str, Any]:
    """A solver's type and options, without the number of epochs."""
    return {"type": type(options).__name__, **{k: v for k, v in asdict(options).items() if k != "epochs"}}


def state_of(options: Any, seed: int, moving: ScaledWeights, **numbers: float) -> dict[str, Any]:
    """The state that resumes a run at the end of an epoch, as without interruption."""
    arrays = {"base": moving.base.copy(), "summed": moving.summed.copy()}
    if moving.late is not None:
        arrays["late"] = moving.late.copy()
    return {"solver": settings_without_epochs(options), "seed": seed, "n": moving.n, **numbers, **arrays}


def restore(moving: ScaledWeights, state: Mapping[str, Any]) -> None:
    """Restore the state from ``state_of``."""
    moving.base, moving.summed, moving.n = state["base"].copy(), state["summed"].copy(), int(state["n"])
    if moving.late is not None:
        moving.late = state["late"].copy()
