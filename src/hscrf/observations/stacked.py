"""Sequences that come below each other in one table, as hmmlearn takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hscrf.errors import several
from hscrf.observations.readers import length_of


def cut_apart(lengths: Any, *stacks: tuple[str, Any]) -> list[Any]:
    """The sequences in each stack, a pair of a name for errors and a value; the values themselves without lengths.

    A stack is an array, a sparse matrix, a DataFrame, a list, or a dict of them. A stack of None stays None, and one
    with an item for each length is a list of sequences already.

    >>> cut_apart([2, 1], ("X", np.array([[1], [2], [3]])), ("Y", ["a", "a", "b"]))[1]
    [['a', 'a'], ['b']]
    """
    if lengths is None:
        return [value for _, value in stacks]
    borders = [0, *np.cumsum(_checked(lengths)).tolist()]
    return [None if value is None else _pieces(value, name, borders) for name, value in stacks]


def _checked(lengths: Any) -> Any:
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or not sizes.size or sizes.min() < 1:
        raise ValueError(f"lengths is {lengths!r}, expected the number of steps of each sequence")
    return sizes


def _pieces(value: Any, name: str, borders: Sequence[int]) -> list[Any]:
    if isinstance(value, Mapping):
        columns = {key: _pieces(column, f"{name}[{key!r}]", borders) for key, column in value.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if not hasattr(value, "__len__") and not hasattr(value, "shape"):
        raise ValueError(f"{name} is a {type(value).__name__}, expected a stack of {borders[-1]} steps")
    steps = length_of(value)
    if steps == len(borders) - 1 and steps != borders[-1]:
        return list(value)
    if steps != borders[-1]:
        raise ValueError(f"{name} has {several(steps, 'step')}, but the lengths sum to {borders[-1]}")
    rows = getattr(value, "iloc", value.tocsr() if hasattr(value, "tocsr") else value)
    return [rows[begin:stop] for begin, stop in pairwise(borders)]
