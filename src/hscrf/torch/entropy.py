"""The entropy of posteriors as a function that autograd knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hscrf.torch.autograd import Work
from hscrf.torch.terms import Partition, is_timed
from hscrf.torch.transfer import begin_reading, to_tensors


class Entropy(torch.autograd.Function):
    """Entropy (n,) of each sequence: log Z minus the expected score.

    Its gradient is minus the second derivative of log Z applied to the values themselves. The partition has a piece
    for each sequence: the expected score of shared tables is that of one sequence at a time.
    """

    @staticmethod
    def forward(work: Work, *values: Any) -> Any:
        partition, arrays = work.ratio.free, work.arrays(values)
        if work.check is not None:
            work.check(arrays)
        work.ratio.checked(partition.log_z(arrays))
        return torch.from_numpy(entropies(partition, arrays)).to(work.device, work.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.work, *values = inputs
        ctx.save_for_backward(*values)

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        return None, *EntropyGradient.apply(ctx.work, cotangent, *ctx.saved_tensors)


class EntropyGradient(torch.autograd.Function):
    """The gradient of entropies times their cotangents (n,), for each value."""

    @staticmethod
    def forward(work: Work, cotangent: Any, *values: Any) -> Any:
        # where a value is -inf nothing happens, so the direction there does not matter
        directions = [torch.where(value > -np.inf, value, 0.0) for value in values]
        _, changes = work.second(begin_reading([cotangent])()[0], values, directions)
        return to_tensors([-change for change in changes], values)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        raise RuntimeError("a second derivative of an entropy was asked for; the first derivative is available")


def entropies(partition: Partition, arrays: Any) -> Any:
    """Entropy (n,) of each sequence."""
    found = partition.each(arrays)
    result = np.zeros(len(found))
    for n, (piece, own) in enumerate(zip(partition.pieces, found, strict=True)):
        expected = 0.0
        for key, counts in own.counts.items():
            values = arrays[key][piece.steps] if is_timed(key, arrays[key].shape) else arrays[key]
            there = counts > 0
            expected += float((counts[there] * values[there]).sum())
        result[n] = own.log_z[0] - expected
    return result
