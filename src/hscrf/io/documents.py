"""One sequence of a file, with its line numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hscrf.errors import DataFileError, InfeasibleError, SequenceError


@dataclass(frozen=True)
class Document:
    """One sequence of a file.

    Parameters
    ----------
    tokens : list
        One entry for each step: a list of strings (the feature columns), a dict of features, a list of numbers, or a
        string.
    labels : dict from level to list, optional
        By level from top to bottom: one string for each step (``"?"`` if unknown), or half-open segments
        ``(start, stop, state)``. None if the file has no labels.
    extra : dict
        Other columns or keys: predictions, times and so on.
    name : str
        Name of the sequence, if the format has one.
    comments : tuple of str
        Comment lines.
    places : tuple of int
        The step that each comment precedes; empty if all precede the first step.
    separator : str
        Separator of the columns in the file.
    decimal : str
        Decimal sign of the numbers in the file.
    columns : tuple of str
        Names of all columns of the file, in order.
    lines : sequence of int
        Line number of each step, or one for all.
    file : str
        Name of the file.
    number : int, optional
        Index of the sequence in its file, from 0.

    Examples
    --------
    >>> Document([["the"], ["cat"]], {"tag": ["D", "?"]}).labels["tag"]
    ['D', '?']
    """

    tokens: list[Any]
    labels: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    comments: tuple[str, ...] = ()
    places: tuple[int, ...] = field(default=(), compare=False)
    separator: str = field(default="", compare=False)
    decimal: str = field(default=".", compare=False)
    columns: tuple[str, ...] = field(default=(), compare=False)
    lines: Sequence[int] = field(default=(0,), compare=False)
    file: str = field(default="", compare=False)
    number: int | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.tokens)

    def error(self, problem: str, step: int | None = None) -> DataFileError:
        """Return an error that names the file and the line of a step.

        Parameters
        ----------
        problem : str
            The message.
        step : int, optional
            Time step. Without one, the first line of the sequence is named.

        Returns
        -------
        DataFileError
        """
        line = self.lines[min(step or 0, len(self.lines) - 1)]
        return DataFileError(self.file, line, problem, sequence=self.number, step=step)

    def error_of(self, error: Exception) -> DataFileError:
        """Return an error about this sequence as one that names file and line.

        Parameters
        ----------
        error : Exception
            Its time step, if it has one, determines the line.

        Returns
        -------
        DataFileError
        """
        if not isinstance(error, SequenceError):
            return self.error(str(error))
        problem = error.problem
        if isinstance(error, InfeasibleError) and error.cells:  # its message counts steps
            problem += f" (steps are counted from 0 at line {self.lines[0]})"
        return self.error(problem, error.step)
