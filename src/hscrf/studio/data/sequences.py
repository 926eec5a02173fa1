"""Input sequences: their stored form, and the words or signals that the page shows."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hscrf.io.axis import TimeAxis
from hscrf.io.jsonl import without_nan
from hscrf.io.spans import features_of, word_of
from hscrf.labels.labels import Labels

COMMON = 0.9  # share of the steps that must have a number for it to be a channel
MOST_CHANNELS = 16
LAYOUT = 1  # version of the result of ``shown``, which browsers cache: increase it with each change


@dataclass(frozen=True)
class InputSequence:
    """One sequence: its name, its tokens as JSON, its observations, and its known labels.

    ``times`` are the seconds at which its steps begin, where the data have them. ``text`` is what words were cut from,
    and ``offsets`` are their places there.
    """

    name: str
    tokens: list[Any]
    seen: Any
    labels: Labels | None = None
    times: Sequence[float] | None = None
    text: str | None = None
    offsets: Sequence[tuple[int, int]] | None = None

    @property
    def encoded(self) -> str:
        """The tokens as JSON."""
        return json.dumps(without_nan(self.tokens), default=_plain)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.encoded.encode("ascii")).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return str(value)


def items_of(
    X: Iterable[Any],
    names: Sequence[str] | None = None,
    labels: Sequence[Any] | None = None,
    times: Sequence[Any] | None = None,
) -> list[InputSequence]:
    """Sequences as ``fit`` takes them; without names they are numbered."""
    found = []
    for n, x in enumerate(X):
        name = str(names[n]) if names is not None else f"sequence_{n + 1:04d}"
        tokens = tokens_of(x)
        axis = None if times is None or times[n] is None else TimeAxis(len(tokens), times=list(times[n]))
        found.append(
            InputSequence(name, tokens, x, None if labels is None else labels[n], None if axis is None else axis.times)
        )
    return uniquely_named(found)


def uniquely_named(items: Iterable[InputSequence]) -> list[InputSequence]:
    """The same items; names that occur again are numbered."""
    several = list(items)
    names = [item.name or f"sequence_{n + 1:04d}" for n, item in enumerate(several)]
    distinct = numbered(name.encode("utf-8", "replace").decode() for name in names)
    return [replace(item, name=name) for item, name in zip(several, distinct, strict=True)]


def numbered(names: Iterable[str]) -> list[str]:
    """The same names, numbered where they occur again.

    >>> numbered(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def tokens_of(x: Any) -> list[Any]:
    """The observations of one sequence, step by step, as JSON.

    >>> tokens_of(np.array([[1.0, 2.0]])), tokens_of(["the", "cat"])
    ([[1.0, 2.0]], ['the', 'cat'])
    """
    if hasattr(x, "to_dict") and hasattr(x, "columns"):  # a DataFrame
        return list(x.to_dict("records"))
    if hasattr(x, "toarray"):
        return list(x.toarray().tolist())
    if isinstance(x, np.ndarray):
        return list(x.tolist())
    return [dict(step) if isinstance(step, Mapping) else _plain_step(step) for step in x]


def _plain_step(step: Any) -> Any:
    if isinstance(step, (str, int, float)):
        return step
    return [cell.item() if isinstance(cell, np.generic) else cell for cell in step]


# -- views


def shown(tokens: list[Any], kind: str | None = None, names: Sequence[str] = ()) -> dict[str, Any]:
    """The view of a sequence: words, or channels of numbers, or both; ``names`` are those of the columns of numbers.

    >>> shown(["the", "cat"])
    {'kind': 'text', 'length': 2, 'tokens': ['the', 'cat'], 'channels': []}
    >>> found = shown([["pos=4,1", "speed=2"], ["pos=4,2", "speed=1"]])
    >>> found["kind"], [channel["name"] for channel in found["channels"]], found["tokens"][0]
    ('time', ['pos 1', 'pos 2', 'speed'], 'pos=4,1  speed=2')
    """
    channels = numeric_channels(tokens, names)
    kind = kind or _kind(tokens[0], bool(channels))
    if kind == "text":
        return {"kind": kind, "length": len(tokens), "tokens": [word_of(token) for token in tokens], "channels": []}
    words = None if _all_numbers(tokens[0]) else [features_of(token) for token in tokens]
    return {"kind": kind, "length": len(tokens), "tokens": words, "channels": [_encoded(*c) for c in channels.items()]}


def gaps(text: str, offsets: Sequence[Sequence[int]]) -> list[int]:
    r"""The separator before each word of a text: 0 none, 1 a blank, 2 the end of a line.

    >>> gaps("Hi, you\nthere", [[0, 2], [2, 3], [4, 7], [8, 13]])
    [1, 0, 1, 2]
    """
    found, end = [1], offsets[0][1]
    for start, stop in offsets[1:]:
        between = text[end:start]
        found.append(2 if "\n" in between or "\r" in between else 1 if between else 0)
        end = stop
    return found


def numeric_channels(tokens: list[Any], names: Sequence[str] = ()) -> dict[str, Any]:
    """The numbers of a sequence by name (T,), NaN where one is missing."""
    return _channels([_numbers(token, names) for token in tokens])


def _kind(token: Any, numeric: bool) -> str:
    """Words in a row are text; numbers and features are time."""
    if isinstance(token, str):
        return "text"
    if isinstance(token, list) and token and all(isinstance(cell, str) for cell in token):
        return "time" if all("=" in cell for cell in token) and numeric else "text"
    return "time"


def _all_numbers(token: Any) -> bool:
    cells = token.values() if isinstance(token, Mapping) else token if isinstance(token, list) else [token]
    return all(isinstance(cell, int | float | None) for cell in cells)


def _numbers(token: Any, names: Sequence[str] = ()) -> dict[str, float]:
    """The numbers in a token, by name: cells of a row, values of a dict, features such as speed=2 or pos=4,1."""
    if isinstance(token, Mapping):
        return {str(k): _float(v) for k, v in token.items() if isinstance(v, int | float | None)}
    if isinstance(token, (int, float)):
        return {"1": float(token)}
    found: dict[str, float] = {}
    for n, cell in enumerate(token if isinstance(token, list) else [], start=1):
        if isinstance(cell, int | float | None):
            found[names[n - 1] if n <= len(names) else str(n)] = _float(cell)
        elif isinstance(cell, str) and "=" in cell:
            name, _, value = cell.partition("=")
            parts = [_number(part) for part in value.split(",")]
            if None not in parts:
                keys = [name] if len(parts) == 1 else [f"{name} {k}" for k in range(1, len(parts) + 1)]
                found.update(zip(keys, map(float, filter(lambda p: p is not None, parts)), strict=True))  # type: ignore[arg-type]
    return found


def _float(cell: float | None) -> float:
    """A number; NaN where it is missing."""
    return math.nan if cell is None else float(cell)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _channels(numbers: list[dict[str, float]]) -> dict[str, Any]:
    """The numbers that most steps have a place for, by name (T,), NaN where missing."""
    names = dict.fromkeys(name for step in numbers for name in step)
    found: dict[str, Any] = {}
    for name in names:
        row = np.array([step.get(name, np.nan) for step in numbers], dtype="<f4")
        common = sum(name in step for step in numbers) >= COMMON * len(numbers)
        if common and not np.isnan(row).all() and len(found) < MOST_CHANNELS:
            found[name] = row
    return found


def _encoded(name: str, row: Any) -> dict[str, Any]:
    finite = row[np.isfinite(row)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return {"name": name, "min": low, "max": high, "values": base64.b64encode(row.tobytes()).decode("ascii")}
