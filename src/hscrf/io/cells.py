"""Cells of files as values: numbers, dates, missing values, and values as text."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np

from hscrf.observations.columns import is_missing, seconds_of

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})  # cells of numeric columns that mean missing


def is_empty_cell(cell: Any) -> bool:
    """Whether a cell of a numeric column means a missing number."""
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    return is_missing(cell)


THOUSANDS = re.compile(
    r"[-+]?[0-9]{1,3}((,[0-9]{3})+(\.[0-9]+)?|(\.[0-9]{3})+,[0-9]+|([ '\u00a0\u202f][0-9]{3})+([.,][0-9]+)?)"
)


def sign_hint(cell: Any, decimal: str) -> str:
    """A hint how to read a cell that is not a number with this decimal sign; empty if there is none."""
    other = "," if decimal == "." else "."
    if number_in(cell, other) is not None:
        return f"; --decimal {other} reads it"
    grouped = isinstance(cell, str) and THOUSANDS.fullmatch(cell.strip())
    return "; numbers have no signs between thousands" if grouped else ""


def number_in(cell: Any, decimal: str = ".") -> float | None:
    """The finite number in a cell; None if there is none."""
    if decimal != "." and isinstance(cell, str):
        cell = cell.replace(decimal, ".") if "." not in cell else "no number"
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return None
    return value if np.isfinite(value) else None


class Dated(float):
    """Seconds since 1970, and the date that was read."""

    text: str


DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d)?(\.\d{1,6})?(Z|[+-]\d\d:?\d\d)?)?")


def date_in(cell: Any) -> Dated | None:
    """The date, with or without a time, that a cell holds in the form of ISO 8601; None if it holds none.

    >>> date_in("1970-01-02"), date_in("1970-01-01 00:01:30.5"), date_in("1970-01-01T01:00Z"), date_in("1970")
    (86400.0, 90.5, 3600.0, None)
    """
    found = DATE.fullmatch(cell.strip()) if isinstance(cell, str) else None
    if found is None:
        return None
    day, clock, seconds, part, zone = found.groups(default="")
    zone = "+00:00" if zone in ("", "Z") else f"{zone[:3]}:{zone[-2:]}"
    text = f"{day}T{clock or '00:00'}{seconds or ':00'}{part.ljust(7, '0') if part else ''}{zone}"
    try:
        value = Dated(seconds_of(datetime.datetime.fromisoformat(text)))
    except ValueError:  # such as the 31st of June
        return None
    value.text = cell
    return value


def cell_text(cell: Any) -> str:
    """Return a cell as the text of a CSV file.

    Parameters
    ----------
    cell : object
        A string, number, date or missing value.

    Returns
    -------
    str
        Whole numbers have no decimal point. A missing value is empty.
    """
    if isinstance(cell, Dated):
        return cell.text
    if isinstance(cell, float):
        return "" if cell != cell else repr(float(cell)).removesuffix(".0")
    return "" if is_missing(cell) else str(cell)
