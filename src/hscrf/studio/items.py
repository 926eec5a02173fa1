"""Sequences as they come in: what is kept of them, and what a person is shown, words or signals."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hscrf.labels.labels import Labels

COMMON = 0.9  # share of the steps that must have a number for it to be a channel
MOST_CHANNELS = 16


@dataclass(frozen=True)
class Item:
    """One sequence: its name, its tokens as JSON holds them, what a model sees of it, and what is known of it."""

    name: str
    tokens: list[Any]
    seen: Any
    labels: Labels | None = None

    @property
    def text(self) -> str:
        """The tokens as JSON."""
        return json.dumps(self.tokens, default=_plain)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("ascii")).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return str(value)


def items_of(X: Iterable[Any], names: Sequence[str] | None = None, labels: Sequence[Any] | None = None) -> list[Item]:
    """Sequences as ``fit`` takes them; without names they are numbered."""
    found = []
    for n, x in enumerate(X):
        name = str(names[n]) if names is not None else f"sequence_{n + 1:04d}"
        found.append(Item(name, tokens_of(x), x, None if labels is None else labels[n]))
    return uniquely_named(found)


def uniquely_named(items: Iterable[Item]) -> list[Item]:
    """The same items; names that occur again are numbered."""
    seen: dict[str, int] = {}
    found = []
    for n, item in enumerate(items):
        name = (item.name or f"sequence_{n + 1:04d}").encode("utf-8", "replace").decode()
        seen[name] = seen.get(name, 0) + 1
        found.append(replace(item, name=name if seen[name] == 1 else f"{name} ({seen[name]})"))
    return found


def tokens_of(x: Any) -> list[Any]:
    """What was observed of one sequence, step by step, as JSON holds it.

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


# -- what is shown


def shown(tokens: list[Any], kind: str | None = None) -> dict[str, Any]:
    """What the page draws: words, or channels of numbers, or both.

    >>> shown(["the", "cat"])
    {'kind': 'text', 'length': 2, 'tokens': ['the', 'cat'], 'channels': []}
    >>> found = shown([["pos=4,1", "speed=2"], ["pos=4,2", "speed=1"]])
    >>> found["kind"], [channel["name"] for channel in found["channels"]], found["tokens"][0]
    ('time', ['pos 1', 'pos 2', 'speed'], 'pos=4,1  speed=2')
    """
    numbers = [_numbers(token) for token in tokens]
    channels = _channels(numbers)
    kind = kind or _kind(tokens[0], bool(channels))
    if kind == "text":
        return {"kind": kind, "length": len(tokens), "tokens": [_word(token) for token in tokens], "channels": []}
    words = None if _all_numbers(tokens[0]) else [_features(token) for token in tokens]
    return {"kind": kind, "length": len(tokens), "tokens": words, "channels": [_encoded(*c) for c in channels.items()]}


def _kind(token: Any, numeric: bool) -> str:
    """Words in a row are text; numbers and features are time."""
    if isinstance(token, str):
        return "text"
    if isinstance(token, list) and token and all(isinstance(cell, str) for cell in token):
        return "time" if all("=" in cell for cell in token) and numeric else "text"
    return "time"


def _all_numbers(token: Any) -> bool:
    cells = token.values() if isinstance(token, Mapping) else token if isinstance(token, list) else [token]
    return all(isinstance(cell, (int, float)) for cell in cells)


def _numbers(token: Any) -> dict[str, float]:
    """The numbers in a token, by name: cells of a row, values of a dict, features such as speed=2 or pos=4,1."""
    if isinstance(token, Mapping):
        return {str(k): float(v) for k, v in token.items() if isinstance(v, (int, float))}
    if isinstance(token, (int, float)):
        return {"1": float(token)}
    found: dict[str, float] = {}
    for n, cell in enumerate(token if isinstance(token, list) else [], start=1):
        if isinstance(cell, (int, float)):
            found[str(n)] = float(cell)
        elif isinstance(cell, str) and "=" in cell:
            name, _, value = cell.partition("=")
            parts = [_number(part) for part in value.split(",")]
            if None not in parts:
                keys = [name] if len(parts) == 1 else [f"{name} {k}" for k in range(1, len(parts) + 1)]
                found.update(zip(keys, map(float, filter(lambda p: p is not None, parts)), strict=True))  # type: ignore[arg-type]
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _channels(numbers: list[dict[str, float]]) -> dict[str, Any]:
    """The numbers that most steps have, by name (T,), NaN where missing."""
    names = dict.fromkeys(name for step in numbers for name in step)
    found: dict[str, Any] = {}
    for name in names:
        row = np.array([step.get(name, np.nan) for step in numbers], dtype="<f4")
        if (~np.isnan(row)).mean() >= COMMON and len(found) < MOST_CHANNELS:
            found[name] = row
    return found


def _encoded(name: str, row: Any) -> dict[str, Any]:
    finite = row[np.isfinite(row)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return {"name": name, "min": low, "max": high, "values": base64.b64encode(row.tobytes()).decode("ascii")}


def _word(token: Any) -> str:
    """A token as text: the first of its columns, a word among its features, or all of them."""
    if isinstance(token, list) and token:
        return str(token[0])
    if isinstance(token, Mapping) and token:
        return str(next((token[key] for key in ("word", "token", "w", "text") if key in token), _features(token)))
    return str(token)


def _features(token: Any) -> str:
    """All that is known of a token in a line."""
    if isinstance(token, Mapping):
        return "  ".join(f"{key}={value}" for key, value in token.items())
    return "  ".join(map(str, token)) if isinstance(token, list) else str(token)
