"""The engine behind autograd: log masses forward, expected counts backward, then differences of counts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from hscrf.arrays import Floats
from hscrf.potentials import Key
from hscrf.torch.terms import Ratio, by_key, has_time_axis
from hscrf.torch.transfer import Reader, begin_reading, to_tensors

REACH = 0.02  # the largest change of the score of a sequence in the differences that give second derivatives
STENCIL = ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0))  # a first derivative, times 12 steps, exact to the fourth order


class Evaluation:
    """One evaluation of a loss: its terms, the keys of its values, and the counts that forward leaves for backward.

    ``weights`` are those that the caller will sum the losses with, if they are known: if backward finds the same ones,
    it needs no second pass. None stands for equal weights. ``reader`` waits for a copy of the values that was started
    already.
    """

    def __init__(
        self,
        ratio: Ratio,
        keys: Sequence[Key],
        values: Sequence[Any],
        weights: Floats | None = None,
        check: Callable[[dict[Key, Floats]], None] | None = None,
        reader: Reader | None = None,
    ) -> None:
        self.ratio, self.keys, self.weights, self.check = ratio, tuple(keys), weights, check
        self.learns = torch.is_grad_enabled() and any(value.requires_grad for value in values)
        self.dtype = result_dtype(values)
        self.device = next((value.device for value in values if value.device.type != "cpu"), torch.device("cpu"))
        self.counts: dict[Key, Floats] | None = None
        self.last: dict[Key, Floats] = {}  # the values that were read last
        self._reader = reader

    def arrays(self, values: Sequence[Any]) -> dict[Key, Floats]:
        """The values by part and level, as the engine takes them."""
        reader, self._reader = self._reader or begin_reading(values), None
        self.last = by_key(self.keys, reader())
        return self.last

    def run(self, values: Sequence[Any]) -> Floats:
        arrays = self.arrays(values)
        if self.check is not None:
            self.check(arrays)
        if self.learns:
            found, self.counts = self.ratio.expectations(arrays, self.weights)
        else:
            found = self.ratio.log_z(arrays)
        self.last = {}
        return found

    def gradient(self, cotangent: Floats, values: Sequence[Any], tolerance: float) -> list[Floats]:
        """The gradient of the sum of losses times their cotangents (n,), for each value."""
        if not np.isfinite(cotangent).all():  # as a gradient scaler expects after an overflow
            return [np.full(tuple(value.shape), np.nan) for value in values]
        factor = proportion(cotangent, self.weights, tolerance)
        if self.counts is None or factor is None:
            _, counts = self.ratio.expectations(self.arrays(values), cotangent)
            return [counts[key] for key in self.keys]
        return [factor * self.counts[key] for key in self.keys]

    def second(
        self, cotangent: Floats, values: Sequence[Any], directions: Sequence[Any]
    ) -> tuple[Floats, list[Floats]]:
        """Derivatives of the losses (n,), and of the gradient of their weighted sum, in a direction."""
        arrays, direction = self.arrays(values), by_key(self.keys, begin_reading(directions)())
        largest = self._largest_change(direction)
        along, changes = np.zeros(cotangent.size), {key: np.zeros(array.shape) for key, array in arrays.items()}
        if largest > 0.0 and np.isfinite(largest):
            step = REACH / largest
            for times, factor in STENCIL:
                moved = {key: array + times * step * direction[key] for key, array in arrays.items()}
                losses, counts = self.ratio.expectations(moved, cotangent)
                along += factor / (12 * step) * losses
                for key, change in changes.items():
                    change += factor / (12 * step) * counts[key]
        elif largest > 0.0:
            along[:] = np.nan
            changes = {key: np.full_like(change, np.nan) for key, change in changes.items()}
        return along, [changes[key] for key in self.keys]

    def _largest_change(self, direction: Mapping[Key, Floats]) -> float:
        """A bound on how much a direction changes the score of any configuration of any sequence."""
        offsets = self.ratio.free.offsets
        each, shared = np.zeros(offsets[-1]), 0.0  # at each step
        for key, array in direction.items():
            sizes = np.abs(array)
            if has_time_axis(key, array.shape):
                each += sizes.reshape(each.size, -1).max(axis=1)
            else:
                shared += float(sizes.max(initial=0.0))
        return float((np.add.reduceat(each, offsets[:-1]) + shared * np.diff(offsets)).max())


def with_signature(forward: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with its signature at hand: ``torch.autograd.Function.apply`` asks for it in every call."""
    forward.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    return forward


class KeepsInputs(torch.autograd.Function):
    """A function of an evaluation and tensors, which backward needs again."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.work, *tensors = inputs
        ctx.save_for_backward(*tensors)


class LastDerivative(torch.autograd.Function):
    """A function that has no derivative of its own; subclasses say which one was asked for."""

    refusal: str

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @classmethod
    def backward(cls, ctx: Any, *cotangents: Any) -> Any:
        raise RuntimeError(cls.refusal)


def derivative(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    """Apply a function inside of a backward pass, recorded only where a further derivative may be asked for."""
    return function.apply(*arguments) if torch.is_grad_enabled() else function.forward(*arguments)


class LogMass(KeepsInputs):
    """The log masses (n,) of sequences from the values of all parts."""

    @staticmethod
    @with_signature
    def forward(work: Evaluation, *values: Any) -> Any:
        return torch.from_numpy(work.run(values)).to(work.device, work.dtype)

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        return None, *derivative(ExpectedCounts, ctx.work, cotangent, *ctx.saved_tensors)


class ExpectedCounts(KeepsInputs):
    """The gradient of log masses times their cotangents (n,), for each value."""

    @staticmethod
    @with_signature
    def forward(work: Evaluation, cotangent: Any, *values: Any) -> Any:
        tolerance = 4 * torch.finfo(cotangent.dtype).eps
        weights = begin_reading([cotangent])()[0]
        return to_tensors(work.gradient(weights, values, tolerance), values)

    @staticmethod
    def backward(ctx: Any, *directions: Any) -> Any:
        return None, *SecondDerivative.apply(ctx.work, len(directions), *directions, *ctx.saved_tensors)


class SecondDerivative(LastDerivative):
    """How expected counts change in a direction: differences of the counts at four points."""

    refusal = "a third derivative of a CRF was asked for; first and second derivatives are available"

    @staticmethod
    @with_signature
    def forward(work: Evaluation, count: int, *tensors: Any) -> Any:
        directions, cotangent, values = tensors[:count], tensors[count], tensors[count + 1 :]
        along, changes = work.second(begin_reading([cotangent])()[0], values, directions)
        return to_tensors([along, *changes], [cotangent, *values])


def proportion(cotangent: Floats, weights: Floats | None, tolerance: float) -> float | None:
    """The factor by which a cotangent (n,) differs from the weights; None if there is no such factor."""
    if weights is None:
        weights = np.ones(cotangent.size)
    pivot = int(np.abs(weights).argmax())
    if weights[pivot] == 0.0:
        return None
    factor = float(cotangent[pivot] / weights[pivot])
    close = np.abs(cotangent - factor * weights) <= tolerance * np.abs(factor * weights)
    return factor if close.all() else None


def result_dtype(values: Sequence[Any]) -> Any:
    """The precision of log masses: that of the values, and at least float32."""
    wide = any(value.dtype == torch.float64 for value in values)
    return torch.float64 if wide else torch.float32
