"""What users observe: feature dicts, strings, arrays, sparse matrices, tables, of ragged lengths."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.observations.packed import Sparse

KINDS = {
    "dicts": "feature dicts",
    "strings": "lists of feature strings",
    "dense": "numeric arrays",
    "matrix": "sparse matrices",
}


def kind_of(X: Sequence[Any]) -> str:
    """What the observations are: dicts, strings, dense or matrix; checked on the first non-empty sequence."""
    if not hasattr(X, "__len__"):
        raise ValueError(f"X is a {type(X).__name__}, expected a list of sequences")
    check_several(X)
    if len(X) == 0:
        raise ValueError("X is empty, expected at least one sequence")
    if not all(lengths_of(X)):
        raise ValueError(f"X[{lengths_of(X).index(0)}] is empty, expected at least one time step")
    first = X[0]
    if hasattr(first, "tocsr"):
        return "matrix"
    if isinstance(first, np.ndarray) or hasattr(first, "iloc"):
        return "dense"
    item = first[0]
    if isinstance(item, Mapping):
        return "dicts"
    if isinstance(item, str):
        raise ValueError("X[0][0] is a string, expected a feature dict or a list of feature strings for each step")
    if isinstance(item, np.ndarray) or (isinstance(item, Sequence) and len(item) and not isinstance(item[0], str)):
        return "dense"
    if isinstance(item, Iterable):
        return "strings"
    raise ValueError(f"X[0][0] is a {type(item).__name__}, expected a feature dict, strings or numbers")


def check_several(X: Any) -> None:
    """Raise for one sequence where a list of sequences is expected, as far as it can be told."""
    rows = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f"  # integers may be symbols
    if rows or hasattr(X, "columns") or hasattr(X, "tocsr"):
        shape = " by ".join(map(str, X.shape))
        told = "expected a list of sequences: [X] if it is one, or lengths= where several are stacked"
        raise ValueError(f"X is one table of {shape}, {told}")


def length_of(x: Any) -> int:
    return int(x.shape[0]) if hasattr(x, "shape") else len(x)


def lengths_of(X: Sequence[Any]) -> list[int]:
    """The number of steps of each sequence."""
    return list(map(len if is_of_lists(X) else length_of, X))


def is_of_lists(X: Iterable[Any]) -> bool:
    """Whether all items are lists or tuples, which whole functions of Python's own may read without a look at each."""
    return set(map(type, X)) <= {list, tuple}


def offsets_of(X: Sequence[Any]) -> Ints:
    return begins_of(lengths_of(X))


def begins_of(counts: Sequence[int] | Ints) -> Ints:
    """Where each of some things begins that have these counts, and where the last ends."""
    begins = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=begins[1:])
    return begins


def stack_dense(X: Sequence[Any]) -> tuple[Floats, list[str]]:
    """All rows below each other, and column names; NaN and wrong widths are named with their sequence."""
    columns = [str(name) for name in X[0].columns] if hasattr(X[0], "columns") else None
    arrays: list[Floats] = []
    for n, x in enumerate(X):
        try:
            rows = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError) as error:
            check_widths(x, n)
            raise ValueError(
                f"X[{n}] is no table of numbers ({error}): text belongs in feature dicts or strings"
            ) from None
        if rows.ndim != 2:
            raise ValueError(f"X[{n}] has {rows.ndim} axes, expected 2: (steps, features)")
        if arrays and rows.shape[1] != arrays[0].shape[1]:
            raise ValueError(f"X[{n}] has {rows.shape[1]} columns but X[0] has {arrays[0].shape[1]}")
        if columns and hasattr(x, "columns") and columns != [str(name) for name in x.columns]:
            raise ValueError(f"X[{n}] has the columns {[str(name) for name in x.columns]} but X[0] has {columns}")
        bad = np.argwhere(~np.isfinite(rows))
        if bad.size:
            t, k = map(int, bad[0])
            raise ValueError(f"X[{n}] is {rows[t, k]} at step {t}, column {k}, expected a finite number")
        arrays.append(rows)
    return np.concatenate(arrays), columns or unnamed(arrays[0].shape[1])


def check_widths(x: Any, n: int) -> None:
    """Raise for the first row that has more or fewer columns than the first."""
    widths = [len(row) if hasattr(row, "__len__") else 0 for row in x]
    for t, width in enumerate(widths):
        if width != widths[0]:
            raise ValueError(f"X[{n}] has {width} columns at step {t} but {widths[0]} at step 0")


def unnamed(size: int) -> list[str]:
    """Names of columns that have none."""
    return [f"x{k}" for k in range(size)]


def stack_matrices(X: Sequence[Any]) -> Sparse:
    from scipy.sparse import vstack

    for n, x in enumerate(X):
        if x.shape[1] != X[0].shape[1]:
            raise ValueError(f"X[{n}] has {x.shape[1]} columns but X[0] has {X[0].shape[1]}")
    matrix = vstack([x.tocsr() for x in X], format="csr")
    if not np.isfinite(matrix.data).all():
        step = int(np.searchsorted(matrix.indptr, np.flatnonzero(~np.isfinite(matrix.data))[0], side="right")) - 1
        n = int(np.searchsorted(offsets_of(X), step, side="right")) - 1
        raise ValueError(f"X[{n}] is not finite at step {step - offsets_of(X)[n]}, expected finite numbers")
    data = np.empty(0) if (matrix.data == 1).all() else matrix.data.astype(np.float64)
    return Sparse(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), data, matrix.shape[1])


def pack_items(
    X: Sequence[Any], kind: str, number: Callable[[str], int], packed: Any
) -> tuple[NDArray[Any], Ints, Floats]:
    """Pack feature dicts or strings as they are read: a few bytes a feature, whatever the dicts weigh.

    Returns a number for each entry, kept in the array ``packed``, where each step begins, and the values.
    """
    if kind == "strings" and is_of_lists(X):
        steps = list(chain.from_iterable(X))
        if is_of_lists(steps):
            return pack_strings(X, steps, number, f"i{packed.itemsize}")
    values, counts = array("d"), array("q")
    for n, x in enumerate(X):
        names = read_dicts(x, n, counts, values) if kind == "dicts" else read_strings(x, n, counts)
        try:
            packed.extend(map(number, names))
        except TypeError:  # not hashable, so no string
            check_strings(x, n)
            raise
    data = np.frombuffer(values, dtype=np.float64) if len(values) else np.empty(0)
    if (data == 1).all():
        data = np.empty(0)
    indptr = begins_of(np.frombuffer(counts, dtype=np.int64))
    return np.frombuffer(packed, dtype=packed.typecode) if len(packed) else np.empty(0, packed.typecode), indptr, data


def pack_strings(
    X: Sequence[Any], steps: Sequence[Any], number: Callable[[str], int], dtype: str
) -> tuple[NDArray[Any], Ints, Floats]:
    """``pack_items`` for strings in lists of lists, all in one go.

    ``dtype`` is one of numpy's own: it fills an array of "q", the same to all appearances, a quarter more slowly.
    """
    indptr = begins_of(list(map(len, steps)))
    try:
        numbers = np.fromiter(map(number, chain.from_iterable(steps)), dtype=dtype, count=int(indptr[-1]))
    except TypeError:  # not hashable, so no string
        for n, x in enumerate(X):
            check_strings(x, n)
        raise
    return numbers, indptr, np.empty(0)


def read_strings(x: Sequence[Any], n: int, counts: Any) -> Iterable[str]:
    """Names of the features of one sequence; their numbers by step appended."""
    if not set(map(type, x)) <= {list, tuple}:
        for t, item in enumerate(x):
            if isinstance(item, (str, Mapping)) or not isinstance(item, Iterable):
                raise ValueError(f"X[{n}][{t}] is {item!r}, expected a list of feature strings")
        x = [list(item) for item in x]
    counts.extend(map(len, x))
    return chain.from_iterable(x)


def read_dicts(x: Sequence[Any], n: int, counts: Any, values: Any) -> Iterable[str]:
    names: list[str] = []
    for t, item in enumerate(x):
        before = len(names)
        names += read_dict(item, n, t, values)
        counts.append(len(names) - before)
    return names


def check_names(X: Sequence[Any], names: Mapping[Any, int]) -> None:
    """Raise for a feature that is not a string, and say where it is."""
    if not set(map(type, names)) <= {str}:
        for n, x in enumerate(X):
            check_strings(x, n)


def check_strings(x: Sequence[Any], n: int) -> None:
    for t, item in enumerate(x):
        for name in item:
            if not isinstance(name, str):
                raise ValueError(f"X[{n}][{t}] holds the feature {name!r}, expected a string")


def read_dict(item: Any, n: int, t: int, values: Any) -> list[str]:
    """Names of the features of one step, their values appended: a string is part of the name, False is absent."""
    if not isinstance(item, Mapping):
        raise ValueError(f"X[{n}][{t}] is a {type(item).__name__}, expected a feature dict as in X[0][0]")
    names = []
    for name, value in item.items():
        if isinstance(value, str):
            names.append(f"{name}={value}")
            values.append(1.0)
        elif value is not False and value is not None:
            try:
                amount = float(value)
            except (TypeError, ValueError):
                kind = type(value).__name__
                raise ValueError(f"X[{n}][{t}][{name!r}] is a {kind}, expected a string, number or bool") from None
            if not np.isfinite(amount):
                raise ValueError(f"X[{n}][{t}][{name!r}] is {amount}, expected a finite number")
            names.append(name)
            values.append(amount)
    return names
