"""Read observations in columns of numbers, which may be missing, and of text."""

from __future__ import annotations

import datetime
import numbers
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from hscrf.arrays import Floats
from hscrf.errors import ObservationError, several

INDICATOR = "{} is missing"  # the feature of a column without a value at a step
LARGEST = 1e100  # absolute value of a number: its square is finite
SHOWN = 6  # names in one line of a message
MOSTLY = 0.5  # a column is numeric if a larger share of its known cells is; text in it is an error
Column = Floats | list[Any]  # numbers with NaN where missing, or a list of text, numbers and None


class Table:
    """The steps of one sequence in named columns: arrays of numbers (NaN: missing) or lists of text (None: missing).

    >>> table = Table({"a": np.array([0.5, np.nan]), "room": ["hall", None]})
    >>> table.shape, table[0]
    ((2, 2), {'a': 0.5, 'room': 'hall'})
    """

    def __init__(self, cells: Mapping[str, Column]) -> None:
        self.cells = dict(cells)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.cells)

    @property
    def shape(self) -> tuple[int, int]:
        """Steps and columns."""
        return len(next(iter(self.cells.values()), ())), len(self.cells)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, t: int) -> dict[str, Any]:
        """A step as a feature dict."""
        return {name: c[t].item() if isinstance(c, np.ndarray) else c[t] for name, c in self.cells.items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[t] for t in range(len(self)))


class Rows(NamedTuple):
    """The steps of all sequences as one table."""

    columns: list[str]  # names of all columns
    texts: list[int]  # the columns that hold text
    numbers: Floats  # (N, F) the others; NaN where missing
    cells: list[list[str | None]]  # text of each of ``texts`` (N,); None where missing

    def names(self) -> list[list[str]]:
        """The features that text makes of each step."""
        made = [
            [f"{self.columns[k]}={cell}" if cell else INDICATOR.format(self.columns[k]) for cell in cells]
            for k, cells in zip(self.texts, self.cells, strict=True)
        ]
        return list(map(list, zip(*made, strict=True))) if made else [[] for _ in self.numbers]


def unnamed(size: int) -> list[str]:
    """Make names for columns without names."""
    return [f"x{k}" for k in range(size)]


def read_rows(X: Sequence[Any], texts: Collection[int] | None = None, refuse: bool = False) -> Rows:
    """All rows below each other. Errors name the sequence, the step and the column.

    ``texts`` are the columns that hold text; None means that they are detected. With ``refuse`` a missing number is an
    error.
    """
    columns: list[str] | None = None
    parts: list[Any] = []
    for n, x in enumerate(X):
        own = [str(name) for name in x.columns] if hasattr(x, "columns") else None
        columns = columns or own
        if columns and own and columns != own:
            raise ValueError(f"X[{n}] has the columns {own} but X[0] has {columns}")
        parts.append(read_sequence(x, n))
        if width_of(parts[-1]) != width_of(parts[0]):
            raise ValueError(f"X[{n}] has {several(width_of(parts[-1]), 'column')} but X[0] has {width_of(parts[0])}")
    names = columns or unnamed(width_of(parts[0]))
    if not texts and all(isinstance(part, np.ndarray) for part in parts):
        found = Rows(names, [], np.concatenate(parts), [])
    else:
        found = joined_columns(names, [[column_of(part, k) for part in parts] for k in range(len(names))], texts)
    check_finite_numbers(found, [length(part) for part in parts], refuse)
    return found


def width_of(part: Any) -> int:
    """Return the number of columns."""
    return int(part.shape[1]) if isinstance(part, np.ndarray) else len(part)


def length(part: Any) -> int:
    """Return the number of steps."""
    return len(part) if isinstance(part, np.ndarray) else len(part[0])


def column_of(part: Any, k: int) -> Column:
    """Return one column."""
    column: Column = part[:, k] if isinstance(part, np.ndarray) else part[k]
    return column


def read_sequence(x: Any, n: int) -> Floats | list[Column]:
    """The numbers (T, F) of a sequence, or its columns one by one if there is text."""
    if isinstance(x, Table):
        columns: list[Column] = list(x.cells.values())
        numeric = all(isinstance(cells, np.ndarray) for cells in columns)
        return np.column_stack(columns) if numeric else columns
    if hasattr(x, "iloc"):
        columns = [read_series(x.iloc[:, k], str(name), n) for k, name in enumerate(x.columns)]
        numeric = all(isinstance(cells, np.ndarray) for cells in columns)
        return np.column_stack(columns) if numeric else columns
    try:
        rows = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        check_widths(x, n)
        return [read_cells([row[k] for row in x], f"x{k}", n) for k in range(len(x[0]))]
    if rows.ndim != 2:
        raise ValueError(f"X[{n}] has {rows.ndim} axes, expected 2: (steps, features)")
    return rows


def check_widths(x: Any, n: int) -> None:
    """Raise for the first item that is not a row, or whose number of columns differs from that of the first row."""
    for t, row in enumerate(x):
        if isinstance(row, (str, Mapping)) or not hasattr(row, "__len__"):
            raise ValueError(f"X[{n}][{t}] is {row!r}, expected a row of numbers or text")
        if len(row) != len(x[0]):
            raise ValueError(f"X[{n}] has {several(len(row), 'column')} at step {t} but {len(x[0])} at step 0")


def read_series(series: Any, name: str, n: int) -> Column:
    """A column of a DataFrame: numbers and bools; dates as seconds since 1970, spans of time as seconds; or text."""
    kind = getattr(series.dtype, "kind", "O")
    if kind in "biuf":
        values: Floats = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return values
    if kind == "M":
        return np.asarray((series - _epoch(series)).dt.total_seconds(), dtype=np.float64)
    if kind == "m":
        return np.asarray(series.dt.total_seconds(), dtype=np.float64)
    if hasattr(series, "cat"):
        return [None if is_missing(cell) else str(cell) for cell in series.tolist()]
    return read_cells(series.tolist(), name, n)


def _epoch(series: Any) -> Any:
    import pandas

    return pandas.Timestamp(0, tz=series.dt.tz)


def is_missing(cell: Any) -> bool:
    """Whether a cell has no value: None, NaN, or what pandas puts there."""
    return cell is None or (isinstance(cell, float) and cell != cell) or type(cell).__name__ in ("NAType", "NaTType")


def read_cells(values: Sequence[Any], name: str, n: int) -> Column:
    """Cells of any type: an array if all known ones are numbers, else a list of text, numbers and None."""
    cells = [_cell(value, name, n, t) for t, value in enumerate(values)]
    if any(isinstance(cell, str) for cell in cells):
        return cells
    return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)


def _cell(value: Any, name: str, n: int, t: int) -> str | float | None:
    if is_missing(value) or (isinstance(value, str) and not value):
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (numbers.Real, Decimal, np.bool_)):
        return float(value)
    if isinstance(value, (datetime.date, np.datetime64)):
        return seconds_of(value)
    kind = type(value).__name__
    raise ValueError(f"X[{n}] has a {kind} in column {name!r} at step {t}, expected a number, text, a date or None")


def seconds_of(value: Any) -> float:
    """Seconds from the beginning of 1970 to a date; one without a time zone is in UTC."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    aware: datetime.datetime = value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)
    return aware.timestamp()


def joined_columns(names: list[str], by_column: Sequence[Sequence[Column]], texts: Collection[int] | None) -> Rows:
    """Columns of all sequences, each of which holds text or numbers throughout."""
    found = []
    for k, parts in enumerate(by_column):
        told = any(not isinstance(part, np.ndarray) for part in parts)
        if (told and texts is None and _is_text(names[k], parts)) or (texts is not None and k in texts):
            found.append(k)
        elif told:
            _refuse_text(names[k], parts, known=texts is not None)
    numeric = [k for k in range(len(names)) if k not in found]
    steps = sum(map(len, by_column[0]))
    numbers_ = [np.concatenate([np.asarray(part, dtype=np.float64) for part in by_column[k]]) for k in numeric]
    cells = [[_text(cell) for part in by_column[k] for cell in _listed(part)] for k in found]
    return Rows(names, found, np.column_stack(numbers_) if numbers_ else np.empty((steps, 0)), cells)


def _listed(part: Column) -> list[Any]:
    return part.tolist() if isinstance(part, np.ndarray) else part


def _text(cell: Any) -> str | None:
    """Text; whole numbers without a point."""
    if cell is None or cell != cell:
        return None
    return cell if isinstance(cell, str) else repr(cell).removesuffix(".0")


def _is_text(name: str, parts: Sequence[Column]) -> bool:
    """Whether a column with some text is a text column; numbers in it cause a warning."""
    cells = [cell for part in parts for cell in _listed(part) if cell is not None and cell == cell]
    count = sum(not isinstance(cell, str) for cell in cells)
    if count > MOSTLY * len(cells):
        return False
    if count:
        warnings.warn(f"column {name!r} holds text and {count} numbers, which are treated as text too", stacklevel=6)
    commas = [cell for cell in cells if isinstance(cell, str) and is_decimal_comma(cell)]
    if len(commas) > MOSTLY * len(cells):
        told = f"column {name!r} holds text such as {commas[0]!r}, which looks like a number with a decimal comma"
        warnings.warn(f"{told}: convert it to numbers; it is treated as text", stacklevel=6)
    return True


def is_decimal_comma(cell: str) -> bool:
    """Whether text is a number with a comma in the place of the point.

    >>> is_decimal_comma("-0,25"), is_decimal_comma("1,5e-3"), is_decimal_comma("12"), is_decimal_comma("a,b")
    (True, True, False, False)
    """
    if cell.count(",") != 1 or "." in cell or "_" in cell:
        return False
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def _refuse_text(name: str, parts: Sequence[Column], known: bool) -> None:
    """Raise for the first text in a column of numbers; ``known``: it held numbers before these sequences."""
    others = "in the data before" if known else "at most steps"
    for n, part in enumerate(parts):
        for t, cell in enumerate(_listed(part)):
            if isinstance(cell, str):
                expected = f"expected a number, as {others} (None or NaN where it is missing)"
                raise ValueError(f"X[{n}] is {cell!r} at step {t} in column {name!r}, {expected}")


def check_finite_numbers(rows: Rows, lengths: Sequence[int], refuse: bool) -> None:
    """Raise for infinite numbers and, with ``refuse``, for missing ones."""
    values = rows.numbers
    bad = ~(np.abs(values) <= LARGEST) if refuse else np.abs(values) > LARGEST
    if not bad.any():
        return
    row, k = map(int, np.argwhere(bad)[0])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n = int(np.searchsorted(offsets, row, side="right")) - 1
    name = [name for c, name in enumerate(rows.columns) if c not in rows.texts][k]
    value, t = values[row, k], int(row - offsets[n])
    expected = "a finite number, or NaN where it is missing"
    if np.isnan(value):
        value, expected = "missing", "a number (missing='refuse')"
    elif np.isfinite(value):
        expected = f"a number between -{LARGEST:g} and {LARGEST:g}"
    message = f"X[{n}] is {value} at step {t} in column {name!r}, expected {expected}"
    raise ObservationError(message, f"column {name!r} is {value} at step {t}, expected {expected}", sequence=n, step=t)


def percent(share: float) -> str:
    """A share in percent, to two digits.

    >>> percent(0.02), percent(0.5), percent(0.0004)
    ('2 %', '50 %', '0.04 %')
    """
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def shortened_list(names: Sequence[str]) -> str:
    """Names in a row; of many the first, the last and how many there are."""
    if len(names) <= SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:2])}, ..., {names[-1]} ({several(len(names), 'column')})"
