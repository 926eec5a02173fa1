"""One sequence of a file, and where it stands there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hscrf.errors import DataFileError


@dataclass(frozen=True)
class Document:
    """One sequence of a file.

    A token is a list of strings (the feature columns), a dict of features, a list of numbers, or a string. Labels of a
    level are one string per step, ``"?"`` where unknown, or half-open segments ``(start, stop, state)``.

    >>> Document([["the"], ["cat"]], {"tag": ["D", "?"]}).labels["tag"]
    ['D', '?']
    """

    tokens: list[Any]  # one per time step
    labels: dict[str, Any] | None = None  # by level, top to bottom; None if the file has none
    extra: dict[str, Any] = field(default_factory=dict)  # other columns or keys: predictions, times, ...
    name: str = ""  # of the sequence, where the format has one
    comments: tuple[str, ...] = ()
    columns: tuple[str, ...] = field(default=(), compare=False)  # names of all columns of the file, in its order
    lines: Sequence[int] = field(default=(0,), compare=False)  # where each time step stands
    file: str = field(default="", compare=False)

    def __len__(self) -> int:
        return len(self.tokens)

    def error(self, problem: str, step: int = 0) -> DataFileError:
        """An error at the line of a time step."""
        return DataFileError(self.file, self.lines[min(step, len(self.lines) - 1)], problem)

    def step_error(self, problem: str) -> DataFileError:
        """An error at the line of the step that the problem speaks of, "at 7" or "from 7"."""
        found = re.search(r" (?:at|from) (\d+)\b", problem)
        return self.error(
            f"{problem} (steps are counted from 0 at line {self.lines[0]})", int(found[1]) if found else 0
        )
