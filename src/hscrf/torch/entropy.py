"""The entropy of posteriors as an autograd function."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hscrf.arrays import Floats
from hscrf.torch.autograd import Evaluation, KeepsInputs, LastDerivative, derivative, with_signature
from hscrf.torch.terms import Partition, Values, has_time_axis
from hscrf.torch.transfer import begin_reading, to_tensors


class Entropy(KeepsInputs):
    """Entropy (n,) of each sequence: log Z minus the expected score.

    Its gradient is minus the second derivative of log Z applied to the values themselves.
    """

    @staticmethod
    @with_signature
    def forward(work: Evaluation, *values: Any) -> Any:
        partition, arrays = work.ratio.free, work.arrays(values)
        if work.check is not None:
            work.check(arrays)
        log_z, expected = expected_scores(partition, arrays)
        return torch.from_numpy(work.ratio.checked(log_z) - expected).to(work.device, work.dtype)

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        return None, *derivative(EntropyGradient, ctx.work, cotangent, *ctx.saved_tensors)


class EntropyGradient(LastDerivative):
    """The gradient of entropies times their cotangents (n,), for each value."""

    refusal = "a second derivative of an entropy was asked for; the first derivative is available"

    @staticmethod
    @with_signature
    def forward(work: Evaluation, cotangent: Any, *values: Any) -> Any:
        # where a value is -inf nothing happens, so the direction there does not matter
        directions = [torch.where(value > -np.inf, value, 0.0) for value in values]
        _, changes = work.second(begin_reading([cotangent])()[0], values, directions)
        return to_tensors([-change for change in changes], values)


def expected_scores(partition: Partition, values: Values) -> tuple[Floats, Floats]:
    """Log Z (n,) and the expected score (n,) of each sequence.

    Counts of shared tables are needed by sequence, so each sequence is a piece of its own.
    """
    found = partition.one_by_one().each(values)
    expected = np.zeros(len(found))
    for key, array in values.items():
        finite = np.where(array > -np.inf, array, 0.0)  # where a value is -inf nothing happens
        if has_time_axis(key, array.shape):
            scores = np.concatenate([own.counts[key] for own in found]) * finite
            expected += np.add.reduceat(scores.reshape(len(scores), -1).sum(axis=1), partition.offsets[:-1])
        else:
            expected += [own.counts[key].reshape(-1) @ finite.reshape(-1) for own in found]
    return np.concatenate([own.log_z for own in found]), expected
