"""hscrf predict --stream: label lines of standard input as they arrive."""

from __future__ import annotations

import argparse
import csv
import sys
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Any, TextIO

from hscrf.cli.options import open_model
from hscrf.cli.recipe import load_model
from hscrf.cli.shell import UserError
from hscrf.errors import DataFileError
from hscrf.io.columns import HEADER, header_names, number_of
from hscrf.io.comments import Comments
from hscrf.io.documents import Document
from hscrf.io.lines import blanks, numbered_lines, separator_in, split_cells
from hscrf.io.recipe import Recipe
from hscrf.streaming import Stream
from hscrf.topology import Topology


def run_stream(args: argparse.Namespace) -> int:
    """Read lines of columns, write each with its labels as soon as they are known; a blank line ends a sequence."""
    refused = {"-t": args.evaluate, "--given": args.given, "--samples": args.samples, "--k-best": args.k_best}
    refused |= {"--to": args.to, "--shards": args.shards, "--loss": args.loss != "sequence", "--scores": args.scores}
    refused |= {"-o": args.output != "-", "--rate": args.rate}
    for option, value in refused.items():
        if value:
            raise UserError(f"{option} is not for --stream, which writes a labelled line for each line that it reads")
    if args.data not in (["-"], []):
        raise UserError("--stream reads standard input: expected no file, as in: hscrf predict --stream < new.txt")
    args.format = args.format or "columns"
    model, recipe = open_model(args, only_predicts=True)
    trained = load_model(args.model)[1] or recipe
    if recipe.format != "columns" or trained.format == "crfsuite":
        raise UserError("--stream reads columns, a line for each step: expected a model of columns or of a table")
    stream = model.stream(args.lag, marginals=args.marginals)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    lines = LineStream(recipe, stream, model.topology_, args.marginals, trained if trained.format == "table" else None)
    for text in lines.labelled(sys.stdin.buffer):
        write_now(sys.stdout, text)
    return 0


def write_now(target: TextIO, text: str) -> None:
    """Write and flush a line."""
    target.write(text + "\n")
    target.flush()


class LineStream:
    """Label lines as they are read, one sequence after the other."""

    def __init__(
        self,
        recipe: Recipe,
        stream: Stream,
        topology: Topology,
        probabilities: bool = False,
        table: Recipe | None = None,
    ) -> None:
        self.table = table  # how the table of training was read, if it was one
        self.recipe, self.stream, self.topology, self.probabilities = recipe, stream, topology, probabilities
        self.reach = 0 if recipe.template is None else recipe.template.reach
        self.bare = tuple(name for name in recipe.names or recipe.features or () if name not in recipe.levels)
        self.separator = recipe.separator
        self.header: list[str] | None = None  # names of the columns, if the first line has them
        self.sequence: str | None = None  # the name of the present sequence, if a column names them
        self.done: set[str] = set()  # names of finished sequences
        self._begin()

    def _begin(self) -> None:
        self.waiting: deque[tuple[str, bool]] = deque()  # lines that are not written yet; False: comments
        self.rows: deque[Any] = deque(maxlen=1 + 2 * self.reach)  # the last tokens, which a template reads
        self.numbers: deque[int] = deque(maxlen=self.rows.maxlen)  # the lines of these tokens
        self.read = self.pushed = 0  # steps of the sequence
        self.former: dict[str, Any] = {}  # the last labels that were written

    def labelled(self, source: Any) -> Iterator[str]:
        """The lines of the output; comments stay where they stand."""
        lines = numbered_lines("<stdin>", source)
        number, first = next(lines, (0, ""))
        names = header_names(first)
        if names is not None:
            self.header = names
            yield HEADER + "\t".join([*names, *self._names()])
        elif number:
            self._look_at(first)
            lines = chain([(number, first)], lines)
        comments = Comments(self.recipe.comment, self.separator)
        for number, line, is_comment in comments.marked(lines):
            if is_comment:
                self.waiting.append((line, False))
                yield from self._comments()
            elif self.header is not None and number == 1:
                yield (self.separator or " ").join([line, *self._names()])
            elif line.strip(blanks(self.separator)):
                yield from self._line(number, line)
            elif self.read:
                yield from self._end()
                yield ""
        yield from self._end()
        comments.warn("<stdin>")

    def _look_at(self, line: str) -> None:
        """Detect the separator of a table, and whether the first line names the columns."""
        if self.table is not None and self.separator is None:
            signs = [self.table.separator, "\t", ";", "" if self.recipe.decimal == "," else ","]
            self.separator = next((sign for sign in signs if sign and sign in line), None)
        cells = self._cells_of(1, line)
        if self.bare and set(self.bare) <= set(cells):
            self.header = cells

    def _cells_of(self, number: int, line: str) -> list[str]:
        """The cells of a line; those of a table may be in quotes."""
        if self.table is None or self.separator is None or len(self.separator) > 1:
            return split_cells(line, self.separator)
        try:
            return next(csv.reader([line], delimiter=self.separator, strict=True))
        except csv.Error as error:
            raise DataFileError("<stdin>", number, f"not valid CSV: {error}") from None

    def _names(self) -> list[str]:
        """Names of the columns that are appended."""
        levels = self.recipe.label_order
        names = [f"{level}_predicted" for level in levels]
        return names + [f"{level}_probability" for level in levels] if self.probabilities else names

    def _line(self, number: int, line: str) -> Iterator[str]:
        """Read a line; yield the earlier line whose labels are known now."""
        cells = self._cells_of(number, line)
        features = self._features(number, cells)
        yield from self._next_sequence(number, cells)
        self.rows.append(features)
        self.numbers.append(number)
        self.waiting.append((line, True))
        self.read += 1
        if self.read > self.reach:
            yield from self._written([self.stream.push(self._observation(self.read - 1 - self.reach))])

    def _next_sequence(self, number: int, cells: list[str]) -> Iterator[str]:
        """End the sequence before if a column of a table names another one."""
        if self.table is None or self.header is None or self.recipe.sequence not in self.header:
            return
        name = cells[self.header.index(self.recipe.sequence)]
        if name != self.sequence:
            if name in self.done:
                told = f"sequence {name!r} goes on after another one has begun, expected its lines in a row"
                raise DataFileError("<stdin>", number, told)
            yield from self._end()
            self.sequence = name
            self.done.add(name)

    def _end(self) -> Iterator[str]:
        """Write the rest of a sequence."""
        while self.pushed < self.read:
            yield from self._written([self.stream.push(self._observation(self.pushed))])
        yield from self._written(self.stream.flush())
        yield from self._comments()
        self._begin()

    def _features(self, number: int, cells: list[str]) -> list[str]:
        """The feature columns of a line; the columns of labels may be there, but are not used."""
        names = self.recipe.names or (*self.bare, *self.recipe.levels)
        possible = (self.header,) if self.header is not None else (names, self.bare)
        for known in possible:
            if len(known) == len(cells):
                found = dict(zip(known, cells, strict=True))
                return [found[name] for name in self.bare]
        problem = f"{number_of(len(cells))}, expected {len(possible[-1])} ({', '.join(possible[-1])})"
        raise DataFileError("<stdin>", number, problem)

    def _observation(self, t: int) -> Any:
        """The observation of step t, whose surrounding rows are known."""
        first = self.read - len(self.rows)  # the step of the first row that is kept
        document = Document(list(self.rows), file="<stdin>", number=0, lines=tuple(self.numbers))
        self.pushed = t + 1
        if self.recipe.template is None:
            return list(self.recipe.observe(document))[t - first]
        # a template takes the ends of its rows as those of the sequence: only true ends are within its reach
        return self.recipe.template.apply([list(map(str, row)) for row in self.rows])[t - first]

    def _written(self, steps: list[Any]) -> Iterator[str]:
        for step in steps:
            if step is not None:
                line = self.waiting.popleft()[0]
                between = separator_in(line, self.separator) or self.recipe.joint
                yield between.join([line, *map(self._quoted, self._cells(step))])
                yield from self._comments()

    def _comments(self) -> Iterator[str]:
        """Write the comments that no line precedes."""
        while self.waiting and not self.waiting[0][1]:
            yield self.waiting.popleft()[0]

    def _quoted(self, cell: str) -> str:
        """A label as a cell of a table."""
        odd = self.table is not None and ((self.separator or " ") in cell or '"' in cell)
        return '"' + cell.replace('"', '""') + '"' if odd else cell

    def _cells(self, step: Any) -> list[str]:
        """The columns of a step; a segment also starts where the label differs from the one written before."""
        fresh = not self.former
        tags: dict[str, str] = {}
        sure: dict[str, str] = {}
        for level in self.recipe.levels:
            label = step.labels[level]
            fresh = fresh or step.starts[level] or label != self.former[level]
            prefix = ("B-" if fresh else "I-") if self._has_prefix(level) and label != "O" else ""
            tags[level] = f"{prefix}{label}"
            if self.probabilities:
                d = self.topology.level(level)
                sure[level] = f"{step.probabilities[level][self.topology.states[d].index(label)]:.6f}"
        self.former = step.labels
        return [columns[level] for columns in (tags, sure) if columns for level in self.recipe.label_order]

    def _has_prefix(self, level: str) -> bool:
        """Whether a level is written in BIO; of BIOES too, since the end of a segment may not be known."""
        return self.recipe.scheme.get(level, "plain") != "plain"
