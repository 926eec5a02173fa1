"""The errors a caller may want to catch."""

from __future__ import annotations


class InfeasibleError(ValueError):
    """Labels that no segmentation can satisfy."""

    def __init__(self, message: str, *, sequence: int | None = None) -> None:
        super().__init__(message)
        self.sequence = sequence

    def of_sequence(self, n: int, name: str = "Y") -> InfeasibleError:
        """The same error of a sequence with a number."""
        return InfeasibleError(f"{name}[{n}]: {self}", sequence=n)


class FileFormatError(ValueError):
    """A file is not what it should be: foreign, too new, truncated, altered, or nonsense."""


class DataFileError(ValueError):
    """A data file is not as it should be; says where."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}, line {line}: {problem}")
        self.file, self.line, self.problem = file, line, problem


class TemplateError(ValueError):
    """A template file is not as it should be."""
