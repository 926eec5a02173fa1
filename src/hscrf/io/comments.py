"""Distinguish comments in column files from tokens that begin with the same sign."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from hscrf.io.lines import Numbered, split_cells


class Comments:
    """Decide which lines are comments.

    A line that begins with the sign is a comment if its number of columns is not the regular one, that of the first
    line without the sign. It is also a comment if a blank follows the sign and blanks do not separate columns. With a
    sign that ends in a blank, such as ``"# "``, every line that begins with it is a comment. ``warn`` warns of lines
    that could be either; in a file of one column, a sign, a blank and a text are always one.

    >>> comments = Comments("#")
    >>> lines = enumerate(["# a title", "the D", "# N", "", "#end"], start=1)
    >>> [line for _, line, is_comment in comments.marked(lines) if is_comment]
    ['# a title', '#end']
    """

    def __init__(self, sign: str | None, separator: str | None = None) -> None:
        self.sign, self.separator = sign, separator
        self.width: int | None = None  # of a regular line
        self.dropped: list[int] = []  # numbers of lines that are comments, but have the regular number of columns
        self.kept: list[int] = []  # numbers of lines that begin with the sign, but are not comments
        self.apart = True  # whether a blank follows the sign in all of these

    def marked(self, lines: Numbered) -> Iterator[tuple[int, str, bool]]:
        """The same lines, and whether each is a comment."""
        held: list[tuple[int, str]] = []  # until there is a regular line
        for number, line in lines:
            if self.sign and self.width is None:
                held.append((number, line))
                if not line.strip() or line.startswith(self.sign):
                    continue
                self.separator = self.separator or ("\t" if "\t" in line.strip() else None)
                self.width = len(split_cells(line, self.separator))
                yield from ((n, text, self.is_comment(n, text)) for n, text in held)
                held = []
            else:
                yield number, line, self.is_comment(number, line)
        yield from ((n, text, self.is_comment(n, text)) for n, text in held)

    def is_comment(self, number: int, line: str) -> bool:
        """Whether a line is a comment; lines that could also be tokens are recorded."""
        if not self.sign or not line.startswith(self.sign):
            return False
        if len(split_cells(line, self.separator)) != self.width:
            return True
        apart = self.separator is not None and " " not in self.separator and line[len(self.sign) :].startswith(" ")
        found = apart or self.sign.endswith(" ")
        if found and self.width == 1:  # a sign and a text in a file of single words
            return True
        (self.dropped if found else self.kept).append(number)
        self.apart &= found or line.startswith(f"{self.sign} ")
        return found

    def warn(self, file: str) -> None:
        """Warn of the lines that could be comments or tokens."""
        width = f"{self.width} column{'s' * (self.width != 1)} as other lines"
        hint = f": --comment '{self.sign} ' would make it one" * self.apart
        for numbers, told in (
            (self.dropped, f"is a comment, though it has {width}"),
            (self.kept, f"begins with {self.sign!r}, but has {width}, so it is not a comment{hint}"),
        ):
            if numbers:
                more = f" ({len(numbers)} such lines)" if len(numbers) > 1 else ""
                warnings.warn(f"{file}, line {numbers[0]}: the line {told}{more}", stacklevel=3)
