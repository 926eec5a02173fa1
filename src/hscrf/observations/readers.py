"""Read observations: feature dicts, strings, arrays, sparse matrices, tables, of ragged lengths or stacked."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.errors import ObservationError, a_type, several
from hscrf.observations.columns import INDICATOR, Table, is_missing
from hscrf.observations.packed import Sparse

KINDS = {
    "dicts": "feature dicts",
    "strings": "lists of feature strings",
    "dense": "numeric arrays",
    "table": "tables with text columns",
    "matrix": "sparse matrices",
}


def kind_of(X: Sequence[Any]) -> str:
    """The kind of observations, found from the first sequence: dicts, strings, dense (rows of columns), matrix."""
    check_several(X)
    if len(X) == 0:
        raise ValueError("X is empty, expected at least one sequence")
    if not all(lengths_of(X)):
        raise ValueError(f"X[{lengths_of(X).index(0)}] is empty, expected at least one time step")
    first = X[0]
    if hasattr(first, "tocsr"):
        return "matrix"
    if isinstance(first, (np.ndarray, Table)) or hasattr(first, "iloc"):
        return "dense"
    item = first[0]
    if isinstance(item, Mapping):
        return "dicts"
    if isinstance(item, str):
        raise ValueError(
            "X[0][0] is a string, expected a feature dict or a list of feature strings for each step: [X] if X is one "
            "sequence; hscrf.io.TokenFeatures().fit_transform(X) makes features from words"
        )
    if isinstance(item, np.ndarray):
        return "dense"
    if isinstance(item, Sequence) and not all(isinstance(cell, str) for cell in item):
        return "dense"
    if isinstance(item, Iterable):
        return "strings"
    raise ValueError(f"X[0][0] is {a_type(item)}, expected a feature dict, strings or numbers")


def check_several(X: Any) -> None:
    """Raise if X looks like one sequence where a list of sequences is expected."""
    if isinstance(X, Mapping) or not hasattr(X, "__len__"):
        raise ValueError(f"X is {a_type(X)}, expected a list of sequences")
    rows = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f"  # integers may be symbols
    if rows or hasattr(X, "columns") or hasattr(X, "tocsr"):
        shape = " by ".join(map(str, X.shape))
        told = "expected a list of sequences: [X] if it is one, or lengths= where several are stacked"
        raise ValueError(f"X is one table of {shape}, {told}")


def length_of(x: Any) -> int:
    """Return the number of steps of one sequence."""
    return int(x.shape[0]) if hasattr(x, "shape") else len(x)


def lengths_of(X: Sequence[Any]) -> list[int]:
    """The number of steps of each sequence."""
    if is_of_lists(X):
        return list(map(len, X))
    for n, x in enumerate(X):
        if isinstance(x, Mapping):
            raise ValueError(f"X[{n}] is {a_type(x)}, expected a sequence of steps; [X] if X is one sequence")
        if not hasattr(x, "shape") and not hasattr(x, "__len__"):
            raise ValueError(f"X[{n}] is {a_type(x)}, expected a sequence of steps")
    return list(map(length_of, X))


def is_of_lists(X: Iterable[Any]) -> bool:
    """Whether all items are lists or tuples, which built-in functions can process as a whole."""
    return set(map(type, X)) <= {list, tuple}


def offsets_of(X: Sequence[Any]) -> Ints:
    """Return the first step of each sequence in packed arrays, and the number of all steps."""
    return begins_of(lengths_of(X))


def begins_of(counts: Sequence[int] | Ints) -> Ints:
    """Offsets from counts: where each item begins, and where the last one ends."""
    begins = np.zeros(len(counts) + 1, dtype=np.int64)
    begins[1:] = counts
    np.add.accumulate(begins, out=begins)
    return begins


def stack_matrices(X: Sequence[Any]) -> Sparse:
    """Stack the rows of sparse matrices, one for each sequence."""
    from scipy.sparse import vstack

    for n, x in enumerate(X):
        if x.shape[1] != X[0].shape[1]:
            raise ValueError(f"X[{n}] has {several(x.shape[1], 'column')} but X[0] has {X[0].shape[1]}")
    matrix = vstack([x.tocsr() for x in X], format="csr")
    if not np.isfinite(matrix.data).all():
        step = int(np.searchsorted(matrix.indptr, np.flatnonzero(~np.isfinite(matrix.data))[0], side="right")) - 1
        n = int(np.searchsorted(offsets_of(X), step, side="right")) - 1
        raise ValueError(f"X[{n}] is not finite at step {step - offsets_of(X)[n]}, expected finite numbers")
    data = np.empty(0) if (matrix.data == 1).all() else matrix.data.astype(np.float64)
    return Sparse(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), data, matrix.shape[1])


def pack_items(
    X: Sequence[Any], kind: str, number: Callable[[str], int], packed: Any, refuse: bool = False
) -> tuple[NDArray[Any], Ints, Floats]:
    """Pack feature dicts or strings as they are read: a few bytes for each feature.

    Returns a number for each entry, kept in the array ``packed``, where each step begins, and the values. With
    ``refuse`` a value of a dict that is missing is an error.
    """
    if kind == "strings" and is_of_lists(X):
        steps = list(chain.from_iterable(X))
        if is_of_lists(steps):
            return pack_strings(X, steps, number, f"i{packed.itemsize}")
    values, counts = array("d"), array("q")
    for n, x in enumerate(X):
        names = read_dicts(x, n, counts, values, refuse) if kind == "dicts" else read_strings(x, n, counts)
        try:
            packed.extend(map(number, names))
        except TypeError:  # not hashable, so not a string
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

    ``dtype`` is a NumPy name such as "i8": filling an array of the equal type code "q" takes a quarter more time.
    """
    indptr = begins_of(list(map(len, steps)))
    try:
        numbers = np.fromiter(map(number, chain.from_iterable(steps)), dtype=dtype, count=int(indptr[-1]))
    except TypeError:  # not hashable, so not a string
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


def read_dicts(x: Sequence[Any], n: int, counts: Any, values: Any, refuse: bool) -> Iterable[str]:
    """Return the names in the feature dicts of one sequence; append their counts by step, and their values."""
    names: list[str] = []
    for t, item in enumerate(x):
        before = len(names)
        names += read_dict(item, n, t, values, refuse)
        counts.append(len(names) - before)
    return names


def check_names(X: Sequence[Any], names: Mapping[Any, int]) -> None:
    """Raise an error that locates the first feature that is not a string."""
    if not set(map(type, names)) <= {str}:
        for n, x in enumerate(X):
            check_strings(x, n)


def check_strings(x: Sequence[Any], n: int) -> None:
    """Raise for the first feature of a sequence that is not a string."""
    for t, item in enumerate(x):
        for name in item:
            if not isinstance(name, str):
                raise ValueError(f"X[{n}][{t}] holds the feature {name!r}, expected a string")


def read_dict(item: Any, n: int, t: int, values: Any, refuse: bool) -> list[str]:
    """Names of the features of one step, their values appended: a string is part of the name, False is absent.

    None and NaN are missing values and have an indicator.
    """
    if not isinstance(item, Mapping):
        raise ValueError(f"X[{n}][{t}] is {a_type(item)}, expected a feature dict as in X[0][0]")
    names = []
    for name, value in item.items():
        if isinstance(value, str):
            names.append(f"{name}={value}")
            values.append(1.0)
        elif value is not False:
            names.append(name)
            try:
                amount = float("nan") if is_missing(value) else float(value)
            except (TypeError, ValueError):
                problem = f"X[{n}][{t}][{name!r}] is {a_type(value)}, expected a string, number or bool"
                raise ValueError(problem) from None
            if amount != amount:
                if refuse:
                    told = "is missing, expected a value (missing='refuse')"
                    message, problem = f"X[{n}][{t}][{name!r}] {told}", f"{name!r} at step {t} {told}"
                    raise ObservationError(message, problem, sequence=n, step=t)
                names[-1], amount = INDICATOR.format(name), 1.0
            elif not np.isfinite(amount):
                raise ValueError(f"X[{n}][{t}][{name!r}] is {amount}, expected a finite number, or None if missing")
            values.append(amount)
    return names


# -- sequences stacked in one table, as in hmmlearn


def cut_apart(lengths: Any, *stacks: tuple[str, Any]) -> list[Any]:
    """The sequences in each stack, a pair of a name for errors and a value; the values themselves without lengths.

    A stack is an array, a sparse matrix, a DataFrame, a list, or a dict of them. A stack of None stays None, and one
    with an item for each length is a list of sequences already.

    >>> cut_apart([2, 1], ("X", np.array([[1], [2], [3]])), ("Y", ["a", "a", "b"]))[1]
    [['a', 'a'], ['b']]
    """
    if lengths is None:
        return [value for _, value in stacks]
    borders = [0, *np.cumsum(_checked_lengths(lengths)).tolist()]
    return [None if value is None else _pieces(value, name, borders) for name, value in stacks]


def _checked_lengths(lengths: Any) -> NDArray[Any]:
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or not sizes.size or sizes.min() < 1:
        raise ValueError(f"lengths is {lengths!r}, expected the number of steps of each sequence")
    return sizes


def _pieces(value: Any, name: str, borders: Sequence[int]) -> list[Any]:
    if isinstance(value, Mapping):
        columns = {key: _pieces(column, f"{name}[{key!r}]", borders) for key, column in value.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if not hasattr(value, "__len__") and not hasattr(value, "shape"):
        raise ValueError(f"{name} is {a_type(value)}, expected a stack of {borders[-1]} steps")
    steps = length_of(value)
    if steps == len(borders) - 1 and steps != borders[-1]:
        return list(value)
    if steps != borders[-1]:
        raise ValueError(f"{name} has {several(steps, 'step')}, but the lengths sum to {borders[-1]}")
    rows = getattr(value, "iloc", value.tocsr() if hasattr(value, "tocsr") else value)
    return [rows[begin:stop] for begin, stop in pairwise(borders)]
