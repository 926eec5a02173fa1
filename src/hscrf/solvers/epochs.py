"""What learners that take a few sequences at a time share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hscrf.arrays import Floats
from hscrf.solvers.course import INTERRUPTED, Integers, Random, Result, Run

if TYPE_CHECKING:
    from hscrf.solvers.perceptron import Corrections
    from hscrf.solvers.sgd import Stochastic


class kept_on_interrupt:
    """Keeps the weights in the middle of an epoch when Ctrl-C comes."""

    def __init__(self, run: Run, moving: Stochastic | Corrections) -> None:
        self.run, self.moving = run, moving

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self.run.keep(self.moving.weights, self.run.loss)


def with_loss(result: Result, evaluate: Callable[[Floats], float]) -> Result:
    """The result with its exact loss, unless Ctrl-C says not to wait for it."""
    if result.reason == INTERRUPTED:
        return result
    try:
        return replace(result, loss=float(evaluate(result.weights)))
    except KeyboardInterrupt:
        return replace(result, reason=INTERRUPTED, converged=False)


def batches(order: Integers, size: int) -> Iterator[Integers]:
    for start in range(0, len(order), size):
        yield order[start : start + size]


def generator(random_state: Random) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)
