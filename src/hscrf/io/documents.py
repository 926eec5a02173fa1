"""One sequence of a file, and its lines there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hscrf.errors import DataFileError, InfeasibleError, SequenceError


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
    places: tuple[int, ...] = field(
        default=(), compare=False
    )  # the steps that comments stand before, if not all the 0th
    separator: str = field(default="", compare=False)  # of the columns of the file
    decimal: str = field(default=".", compare=False)  # the sign in its numbers
    columns: tuple[str, ...] = field(default=(), compare=False)  # names of all columns of the file, in its order
    lines: Sequence[int] = field(default=(0,), compare=False)  # line of each time step, or one for all
    file: str = field(default="", compare=False)
    number: int | None = field(default=None, compare=False)  # of the sequence in its file, from 0

    def __len__(self) -> int:
        return len(self.tokens)

    def error(self, problem: str, step: int | None = None) -> DataFileError:
        """An error at the line of a time step, or where the sequence begins."""
        line = self.lines[min(step or 0, len(self.lines) - 1)]
        return DataFileError(self.file, line, problem, sequence=self.number, step=step)

    def error_of(self, error: Exception) -> DataFileError:
        """The same problem as an error of this file, at the line of its step, or else where the sequence begins."""
        if not isinstance(error, SequenceError):
            return self.error(str(error))
        problem = error.problem
        if isinstance(error, InfeasibleError) and error.cells:  # its message counts steps
            problem += f" (steps are counted from 0 at line {self.lines[0]})"
        return self.error(problem, error.step)
