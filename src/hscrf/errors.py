"""Exceptions that a caller may catch. Their attributes hold the data of the message, and they can be pickled."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

Self = TypeVar("Self", bound="SequenceError")


class Cell(NamedTuple):
    """One known fact about one level at one time step.

    Parameters
    ----------
    level : str
        Name of the level.
    time : int
        Time step, from 0.
    known : str
        What the labels say there: ``"is 'NP'"``, ``"ends"``, ``"goes on"`` or ``"is one of ['NP', 'VP']"``.

    Examples
    --------
    >>> print(Cell("phrase", 3, "is 'NP'"))
    level 'phrase' is 'NP' at 3
    """

    level: str
    time: int
    known: str

    def __str__(self) -> str:
        return f"level {self.level!r} {self.known} at {self.time}"


class SequenceError(ValueError):
    """An error about one sequence.

    Parameters
    ----------
    problem : str
        The message without the name of the sequence.

    Attributes
    ----------
    sequence : int or None
        Index of the sequence in the data; None if unknown.
    step : int or None
        Time step of the problem; None if unknown.
    """

    sequence: int | None = None
    step: int | None = None

    def __init__(self, problem: str = "") -> None:
        super().__init__(problem)
        self.problem = problem

    def of_sequence(self: Self, n: int, name: str = "Y") -> Self:
        """Return the same error with the index of its sequence. The message begins with that index.

        Parameters
        ----------
        n : int
            Index of the sequence.
        name : str
            Name of the argument that holds the sequence.

        Returns
        -------
        SequenceError
            A new error of the same class.

        Examples
        --------
        >>> SequenceError("the labels are empty").of_sequence(3)
        SequenceError('Y[3]: the labels are empty')
        """
        # not copy(self): where Dask is imported, copies of an error share their attributes
        found = type(self).__new__(type(self), *self.args)
        found.__dict__.update(self.__dict__)
        found.sequence = n
        found.args = (f"{name}[{n}]{self._place()}: {self.problem}",)
        return found

    def _place(self) -> str:
        """The place inside the sequence, for a message that does not name it."""
        return ""


class InfeasibleError(SequenceError):
    """Labels that no segmentation can satisfy.

    Parameters
    ----------
    problem : str
        The message without the name of the sequence.
    cells : iterable of Cell
        Labels that contradict each other or a rule, in the order of the message. Empty if the labels are not the cause.

    Examples
    --------
    >>> cells = [Cell("phrase", 7, "ends"), Cell("tag", 7, "goes on")]
    >>> error = InfeasibleError("level 'phrase' ends at 7, but 'tag' goes on there", cells=cells).of_sequence(2)
    >>> error.sequence, error.step, error.cells[1].level
    (2, 7, 'tag')
    >>> print(error)
    Y[2]: level 'phrase' ends at 7, but 'tag' goes on there
    """

    def __init__(self, problem: str = "", *, cells: Any = ()) -> None:
        super().__init__(problem)
        self.cells: tuple[Cell, ...] = tuple(cells)
        self.step = self.cells[0].time if self.cells else None


class LabelError(SequenceError):
    """Labels that cannot be read: an unknown state, an unknown prefix, or columns of different lengths.

    Parameters
    ----------
    problem : str
        The message without the name of the sequence.
    level : str, optional
        Name of the level.
    step : int, optional
        Time step of the problem.

    Examples
    --------
    >>> LabelError("unknown state 'X'", level="tag", step=4).of_sequence(2)
    LabelError("Y[2] at step 4: unknown state 'X'")
    """

    def __init__(self, problem: str = "", *, level: str | None = None, step: int | None = None) -> None:
        super().__init__(problem)
        self.level, self.step = level, step

    def _place(self) -> str:
        return "" if self.step is None else f" at step {self.step}"


class ObservationError(SequenceError):
    """An observation that is missing or infinite.

    Parameters
    ----------
    message : str
        The message with the place of the observation.
    problem : str
        The message without the place.
    sequence, step : int, optional
        Index of the sequence and time step.
    """

    def __init__(
        self, message: str = "", problem: str = "", *, sequence: int | None = None, step: int | None = None
    ) -> None:
        super().__init__(problem or message)
        self.args = (message,)
        self.sequence, self.step = sequence, step


class FileFormatError(ValueError):
    """A model file or shard that cannot be used: another format, a newer version, truncated or altered."""


class DataFileError(ValueError):
    """A data file with an error in one line.

    Parameters
    ----------
    file : str
        Name of the file.
    line : int
        Number of the line, from 1.
    problem : str
        The message without file and line.
    sequence, step : int, optional
        Index of the sequence and time step, from 0; None if unknown.

    Examples
    --------
    >>> error = DataFileError("a.txt", 7, "unknown label 'X'", sequence=1, step=2)
    >>> print(error)
    a.txt, line 7: unknown label 'X'
    >>> error.line, error.sequence, error.step
    (7, 1, 2)
    """

    def __init__(
        self, file: str, line: int, problem: str, *, sequence: int | None = None, step: int | None = None
    ) -> None:
        super().__init__(f"{file}, line {line}: {problem}")
        self.file, self.line, self.problem = file, line, problem
        self.sequence, self.step = sequence, step

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.file, self.line, self.problem), self.__dict__


class TemplateError(ValueError):
    """A template file that cannot be read."""


def several(count: int, what: str) -> str:
    """Return a number and its noun, in the singular or plural, for messages.

    >>> several(1, "step"), several(2, "step")
    ('1 step', '2 steps')
    """
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def a_type(value: object) -> str:
    """Return the type of a value with its article, for messages; None is None.

    >>> a_type(3), a_type({}), a_type(None)
    ('an int', 'a dict', 'None')
    """
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"
