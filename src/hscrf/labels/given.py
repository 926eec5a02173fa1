"""Convert labels of all kinds (tables, arrays, columns, segments) to the form that the reader takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hscrf.errors import LabelError, a_type, several
from hscrf.labels.labels import Labels
from hscrf.labels.reading import by_level, is_segments

SEQUENCE, TIME = "sequence", "time"  # columns of a long table that are not levels


def given_labels(Y: Any, levels: Sequence[str] = (), name: str = "Y") -> list[Any]:
    """Return the labels of each sequence as the reader takes them: Labels, a list, a dict by level, or None if unknown.

    A sequence may be Labels, a dict of columns or segments, or a DataFrame with a column for each level. A list, a 1-D
    array or a series is the column of the only level. A 2-D array (T, levels) has the columns ``levels`` from top to
    bottom. Y may be one DataFrame with a column "sequence". Then its sequences are in the order of their first rows,
    and steps are in the order of a column "time" if there is one. None, NaN and "?" are unknown, and -1 where all
    labels of a column are integers.

    >>> given_labels([np.array([[1, 4], [-1, 5]])], ["phrase", "tag"])
    [{'phrase': [1, '?'], 'tag': [4, 5]}]
    >>> import pandas
    >>> given_labels(pandas.DataFrame({"sequence": ["a", "a", "b"], "tag": ["N", None, "V"]}))
    [{'tag': ['N', '?']}, {'tag': ['V']}]
    """
    if _is_frame(Y):
        Y = _sequences(Y, name)
    if isinstance(Y, Labels | Mapping | str) or not hasattr(Y, "__len__"):
        raise ValueError(f"{name} is {a_type(Y)}, expected a list with the labels of each sequence")
    return [_one(y, n, levels, name) for n, y in enumerate(Y)]


def is_unknown(label: Any) -> bool:
    """Whether a label means unknown: None, ``"?"``, NaN.

    >>> [is_unknown(label) for label in (None, "?", float("nan"), "O", 0)]
    [True, True, True, False, False]
    """
    if label is None or (isinstance(label, str) and label == "?"):
        return True
    differs = label != label  # True for NaN; neither True nor False for pandas.NA
    return bool(differs) if isinstance(differs, bool | np.bool_) else True


def _is_frame(y: Any) -> bool:
    return hasattr(y, "columns") and hasattr(y, "iloc")


def _sequences(frame: Any, name: str) -> list[Any]:
    """The frames of each sequence of a long table."""
    if SEQUENCE not in frame.columns:
        problem = f"{name} is one table without a column {SEQUENCE!r}; expected one, or a list of tables"
        raise ValueError(problem)
    parts = [part for _, part in frame.groupby(SEQUENCE, sort=False)]
    if TIME in frame.columns:
        parts = [part.sort_values(TIME, kind="stable") for part in parts]
    return [part.drop(columns=[column for column in (SEQUENCE, TIME) if column in part.columns]) for part in parts]


def _one(y: Any, n: int, levels: Sequence[str], name: str) -> Any:
    """The labels of one sequence."""
    if y is None or isinstance(y, Labels):
        return y
    if _is_frame(y):
        return {str(level): _column(y[level]) for level in y.columns}
    if isinstance(y, np.ndarray) and y.ndim == 2:
        return dict(zip(_names(y, n, levels, name), map(_column, y.T), strict=True))
    if isinstance(y, Mapping):
        if y and all(column is None for column in y.values()):
            return None
        return {level: _of_level(column, level, n, name) for level, column in y.items()}
    if len(levels) > 1 and hasattr(y, "__len__"):
        known = ", ".join(map(repr, levels))
        raise LabelError(f"one list of labels for the levels {known}; expected a dict by level").of_sequence(n, name)
    return _column(y)


def _of_level(column: Any, level: Any, n: int, name: str) -> Any:
    """The labels of one level; None is an unknown level. Only a root may be one string, the class of the sequence."""
    if column is None:
        return []
    if isinstance(column, str) and level != "root":
        problem = f"level {level!r} is the string {column!r}; expected a list of labels"
        raise LabelError(problem, level=level).of_sequence(n, name)
    return _column(column)


def _names(y: Any, n: int, levels: Sequence[str], name: str) -> Sequence[str]:
    """Names of the columns of an array: those of the model, or level1, level2 and so on."""
    if not levels:
        return ["label"] if y.shape[1] == 1 else [f"level{k + 1}" for k in range(y.shape[1])]
    if len(levels) != y.shape[1]:
        known = ", ".join(map(repr, levels))
        raise LabelError(f"an array has {several(y.shape[1], 'column')}, expected one for each of {known}").of_sequence(
            n, name
        )
    return levels


def _column(column: Any) -> Any:
    """A column with ``"?"`` where it is unknown; segments, classes and other values stay as they are."""
    if isinstance(column, str) or not hasattr(column, "__len__"):
        return column
    labels = _plain_list(column)
    if is_segments(labels):
        return labels
    try:
        distinct = set(labels)
    except TypeError:
        return labels
    if "?" not in distinct and set(map(type, distinct)) == {str}:
        return labels
    unknown = {label for label in distinct if is_unknown(label)}
    if -1 in distinct and all(_is_integer(label) for label in distinct - unknown):
        unknown.add(-1)
    if not unknown - {"?"}:
        return labels
    return ["?" if label in unknown or is_unknown(label) else label for label in labels]


def _plain_list(column: Any) -> Any:
    """A list of Python objects; whole numbers that NaN made floats are integers again."""
    if isinstance(column, list | tuple):
        return column
    values = np.asarray(column)
    if values.dtype.kind == "f":
        known = values[~np.isnan(values)]
        if known.size < values.size and (known == np.round(known)).all():
            return ["?" if np.isnan(value) else int(value) for value in values.tolist()]
    return values.tolist()


def _is_integer(label: Any) -> bool:
    return isinstance(label, int | np.integer) and not isinstance(label, bool)


def steps_of(y: Any) -> int:
    """The number of steps that labels cover: the length of a column, or the stop of the last segment."""
    if isinstance(y, Labels):
        return y.length
    steps = 0
    for level, column in by_level(y).items():
        if level != "root" or not isinstance(column, str):
            steps = max(steps, max((item[1] for item in column), default=0) if is_segments(column) else len(column))
    return steps
