"""Arguments of the layer's calls, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hscrf.arrays import Floats
from hscrf.torch.frame import host_array


def checked_batch_weights(sample_weight: Any, rows: int) -> Floats | None:
    """A weight for each sequence, or None."""
    if sample_weight is None:
        return None
    weights = host_array(sample_weight, "sample_weight")
    if weights.dtype.kind not in "biuf":
        raise TypeError(f"sample_weight has type {weights.dtype}; expected numbers, a weight for each sequence")
    weights = weights.astype(np.float64)
    if weights.shape != (rows,):
        raise ValueError(f"sample_weight has shape {weights.shape}; expected ({rows},), a weight for each sequence")
    bad = np.flatnonzero(~np.isfinite(weights))
    if bad.size:
        raise ValueError(f"sample_weight[{bad[0]}] is {weights[bad[0]]}; expected a finite number")
    return weights


def checked_margin(margin: Any) -> Any:
    """Costs of wrong states: one for all levels, or by level."""
    for name, cost in margin.items() if isinstance(margin, Mapping) else [("margin", margin)]:
        if isinstance(cost, bool) or not isinstance(cost, int | float | np.number) or not 0 <= cost < np.inf:
            what = "margin" if name == "margin" else f"margin[{name!r}]"
            raise ValueError(f"{what} is {cost!r}; expected a finite number of at least 0")
    return margin


def check_count(name: str, count: Any) -> None:
    """Raise unless an option is a positive integer."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"{name} is {count!r}; expected a positive integer")
