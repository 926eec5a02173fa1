"""The errors a caller may want to catch. Each says in data what its message says in words, and can be pickled."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

Self = TypeVar("Self", bound="SequenceError")


class Cell(NamedTuple):
    """One thing that labels tell of one level at one time step.

    >>> print(Cell("phrase", 3, "is 'NP'"))
    level 'phrase' is 'NP' at 3
    """

    level: str
    time: int
    known: str  # "is 'NP'", "ends", "goes on" or "is one of ['NP', 'VP']"

    def __str__(self) -> str:
        return f"level {self.level!r} {self.known} at {self.time}"


class SequenceError(ValueError):
    """Something is wrong with one sequence.

    ``problem`` is the message without the name of the sequence, ``sequence`` its number in the data, ``step`` the
    time step to look at; both are None where they are not known.
    """

    sequence: int | None = None
    step: int | None = None

    def __init__(self, problem: str = "") -> None:
        super().__init__(problem)
        self.problem = problem

    def of_sequence(self: Self, n: int, name: str = "Y") -> Self:
        """The same error with its sequence known, which the message names first.

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
        """Where in the sequence, for a problem that does not say so itself."""
        return ""


class InfeasibleError(SequenceError):
    """Labels that no segmentation can satisfy.

    ``cells`` are the labels that contradict each other or a rule, in the order in which the message names them; there
    are none if the labels are not to blame.

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
    """Labels that cannot be read: an unknown state, a prefix that the scheme does not have, columns of two lengths.

    >>> LabelError("unknown state 'X'", level="tag", step=4).of_sequence(2)
    LabelError("Y[2] at step 4: unknown state 'X'")
    """

    def __init__(self, problem: str = "", *, level: str | None = None, step: int | None = None) -> None:
        super().__init__(problem)
        self.level, self.step = level, step

    def _place(self) -> str:
        return "" if self.step is None else f" at step {self.step}"


class ObservationError(SequenceError):
    """An observation that is missing, or infinite; ``message`` names its place, ``problem`` does not."""

    def __init__(
        self, message: str = "", problem: str = "", *, sequence: int | None = None, step: int | None = None
    ) -> None:
        super().__init__(problem or message)
        self.args = (message,)
        self.sequence, self.step = sequence, step


class FileFormatError(ValueError):
    """A file is not what it should be: foreign, too new, truncated, altered, or nonsense."""


class DataFileError(ValueError):
    """A data file is not as it should be.

    ``line`` counts from 1, ``sequence`` and ``step`` from 0; these two are None where they are not known.

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
    """A template file is not as it should be."""


def several(count: int, what: str) -> str:
    """A number of things, for messages.

    >>> several(1, "step"), several(2, "step")
    ('1 step', '2 steps')
    """
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
