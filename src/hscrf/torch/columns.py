"""Observations by columns: words, dicts, lists of features, arrays and tables read the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


class Read:
    """One sequence by columns."""

    def __init__(self, length: int, width: int | None = None) -> None:
        self.length = length
        self.width = width  # of an array, whose columns have no names
        self.names: dict[str, list[str]] = {}
        self.bag: list[list[str]] = []
        self.numbers: dict[str, Any] = {}


def columns_of_sequence(x: Any, n: int) -> Read:
    """A sequence by columns, whatever it is."""
    check_is_sequence(x, n)
    if hasattr(x, "tocsr"):
        x = x.toarray()
    length = len(x)
    if length == 0:
        raise ValueError(f"X[{n}] is empty; expected at least one step")
    if hasattr(x, "columns") and hasattr(x, "iloc"):
        return _read_frame(x, length)
    if isinstance(x, np.ndarray) or _is_row(x[0]):
        return _read_array(x, n, length)
    first = x[0]
    if isinstance(first, str):
        return _read_words(x, n, length)
    if isinstance(first, Mapping):
        return _read_dicts(x, n, length)
    if isinstance(first, Sequence | set | frozenset):
        return _read_bags(x, n, length)
    raise ValueError(f"X[{n}][0] is a {type(first).__name__}; expected a word, a dict, a list of strings or numbers")


def check_is_sequence(x: Any, n: int) -> None:
    """Refuse sequence n if it is a string, a number, or something else without steps."""
    if isinstance(x, str) or not (hasattr(x, "__len__") or hasattr(x, "shape")):
        raise ValueError(f"X[{n}] is a {type(x).__name__}; expected a list of steps, an array or a table")


def _is_row(step: Any) -> bool:
    if isinstance(step, np.ndarray):
        return True
    return isinstance(step, list | tuple) and len(step) > 0 and not isinstance(step[0], str)


def _read_frame(x: Any, length: int) -> Read:
    read = Read(length)
    for column in x.columns:
        values = x[column].to_numpy()
        if values.dtype.kind in "biuf":
            read.numbers[str(column)] = values.astype(np.float64)
        else:
            read.names[str(column)] = ["" if value is None or value != value else str(value) for value in values]
    return read


def _read_array(x: Any, n: int, length: int) -> Read:
    try:
        table = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"X[{n}] is no table of numbers; expected rows of equal width") from None
    if table.ndim != 2:
        raise ValueError(f"X[{n}] has {table.ndim} axes; expected 2: (steps, features)")
    read = Read(length, table.shape[1])
    read.numbers = {f"x{k}": table[:, k] for k in range(table.shape[1])}
    return read


def _read_words(x: Sequence[Any], n: int, length: int) -> Read:
    read = Read(length)
    for t, word in enumerate(x):
        if not isinstance(word, str):
            raise ValueError(f"X[{n}][{t}] is a {type(word).__name__}; expected a string, as X[{n}][0] is")
    read.names["word"] = list(x)
    return read


def _read_dicts(x: Sequence[Any], n: int, length: int) -> Read:
    read = Read(length)
    for t, step in enumerate(x):
        if not isinstance(step, Mapping):
            raise ValueError(f"X[{n}][{t}] is a {type(step).__name__}; expected a dict, as X[{n}][0] is")
        for column, value in step.items():
            if isinstance(value, str) or value is None:
                read.names.setdefault(column, [""] * length)[t] = value or ""
            elif isinstance(value, int | float | np.number):
                read.numbers.setdefault(column, np.full(length, np.nan))[t] = float(value)
            else:
                kind = type(value).__name__
                raise ValueError(f"X[{n}][{t}][{column!r}] is a {kind}; expected a string or a number")
    return read


def _read_bags(x: Sequence[Any], n: int, length: int) -> Read:
    read = Read(length)
    for t, step in enumerate(x):
        if isinstance(step, str) or not all(isinstance(name, str) for name in step):
            raise ValueError(f"X[{n}][{t}] is not a list of strings; expected one, as X[{n}][0] is")
    read.bag = [list(step) for step in x]
    return read
