"""Names of levels and states: which are allowed, their order, and the errors for unknown names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

State = Any  # a name: a string, or another hashable such as an integer


def unknown_name(kind: str, name: object, known: Sequence[State]) -> str:
    """The message for an unknown name: the known name closest to it, and all known names."""
    words = [word for word in known if isinstance(word, str)]
    close = get_close_matches(name, words, n=1) if isinstance(name, str) else []
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    rest = f" and {len(known) - 20} more" if len(known) > 20 else ""
    return f"unknown {kind}: {name!r}{hint}; known are {', '.join(map(repr, known[:20]))}{rest}"


def in_order(names: Iterable[State]) -> list[State]:
    """Names of states in their order; those that cannot be compared are put together by type.

    >>> in_order({3, 1, 2}), in_order({"b", 2, "a"})
    ([1, 2, 3], [2, 'a', 'b'])
    """
    found = list(names)
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda name: (type(name).__name__, repr(name)))


def checked_state_names(level: str, states: Iterable[State]) -> tuple[State, ...]:
    """Check and freeze the state names of one level."""
    if isinstance(states, str):
        raise ValueError(f"level {level!r} is the string {states!r}; expected a list of state names")
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in states)
    if not names:
        raise ValueError(f"level {level!r} is empty; expected at least one state")
    for name in names:
        if not _has_hash(name):
            raise ValueError(f"level {level!r} has the state {name!r}; expected a string or another hashable")
        if name is None or name == "?" or name != name or (name == -1 and not isinstance(name, str)):
            raise ValueError(f"level {level!r} has a state {name!r}, which means unknown; expected another name")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"level {level!r} has the state {twice!r} twice; expected distinct states")
    return names


def _has_hash(name: object) -> bool:
    try:
        hash(name)
    except TypeError:
        return False
    return True
