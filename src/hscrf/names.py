"""Names of levels and states: which are allowed, their order, and the errors for unknown names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np

State = Any  # a name: a string, or another hashable such as an integer


@dataclass(frozen=True)
class Hierarchy:
    """The names of levels, ``"root"`` first, and of the states of each level, with their indices.

    Attributes
    ----------
    levels : tuple of str
    states : tuple of tuple of states
    """

    levels: tuple[str, ...]
    states: tuple[tuple[State, ...], ...]

    @property
    def depth(self) -> int:
        """Number of levels, the root included."""
        return len(self.levels)

    @cached_property
    def n_states(self) -> tuple[int, ...]:
        """Number of states of each level."""
        return tuple(map(len, self.states))

    @cached_property
    def _numbers(self) -> tuple[dict[State, int], ...]:
        """The index of each state, by level."""
        return tuple({name: s for s, name in enumerate(states)} for states in self.states)

    def level(self, name: str | int) -> int:
        """Return the index of a level given by name or index."""
        if isinstance(name, str) and name in self.levels:
            return self.levels.index(name)
        if isinstance(name, (int, np.integer)) and 0 <= name < self.depth:
            return int(name)
        raise ValueError(unknown_name("level", name, self.levels))

    def state(self, level: str | int, name: State) -> int:
        """Return the index of a state within its level."""
        d = self.level(level)
        try:
            return self._numbers[d][name]
        except (KeyError, TypeError):
            kind = f"state of level {self.levels[d]!r}"
            raise ValueError(unknown_name(kind, name, self.states[d])) from None


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
