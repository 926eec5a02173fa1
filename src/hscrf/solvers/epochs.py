"""What the solvers that take a few sequences at a time share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.solvers.course import INTERRUPTED, Result, Run


class Learner(Protocol):
    """Weights that change within an epoch."""

    @property
    def weights(self) -> Floats:
        """The answer so far."""


class kept_on_interrupt:
    """Keeps the weights in the middle of an epoch when Ctrl-C comes."""

    def __init__(self, run: Run, learner: Learner) -> None:
        self.run, self.learner = run, learner

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self.run.keep(self.learner.weights, self.run.loss)


def with_loss(result: Result, evaluate: Callable[[Floats], float]) -> Result:
    """The result with its exact loss, unless Ctrl-C ends the wait for it."""
    if result.reason == INTERRUPTED:
        return result
    try:
        return replace(result, loss=float(evaluate(result.weights)))
    except KeyboardInterrupt:
        return replace(result, reason=INTERRUPTED, converged=False)


def shuffled(objective: Any, rng: np.random.Generator) -> Ints:
    """All sequences in a random order; those of data that lie in spans come span by span, each shuffled.

    >>> class Data:
    ...     n_parts, spans = 6, [(0, 2), (2, 6)]
    >>> shuffled(Data(), np.random.default_rng(0)).tolist()
    [0, 1, 5, 4, 2, 3]
    """
    spans = getattr(objective, "spans", None) or [(0, objective.n_parts)]
    if len(spans) == 1:
        return rng.permutation(objective.n_parts)
    order = [spans[k] for k in rng.permutation(len(spans))]
    return np.concatenate([begin + rng.permutation(stop - begin) for begin, stop in order])


def batches(order: Ints, size: int) -> Iterator[Ints]:
    for start in range(0, len(order), size):
        yield order[start : start + size]
