"""Feature templates: the strings that describe a token, made of text and cells.

:mod:`hscrf.io.template_files` reads templates from files, :mod:`hscrf.io.patterns` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hscrf.errors import TemplateError
from hscrf.files.content import Field
from hscrf.io.lexicons import Clusters, Lexicon


class TemplateCell(NamedTuple):
    """A column of the token at an offset, seen through a lens: a key of LENSES, with its argument."""

    lens: str
    offset: int
    column: int
    argument: str = ""


Feature = tuple[str | TemplateCell, ...]
Seen = dict[tuple[str, int, str], list[Any]]  # texts of cells, by lens, column and argument
FARTHEST = 1 << 16  # longest distance of a cell from its token
PAIR = "pair:"  # begins the features of pairs of labels


@dataclass(frozen=True)
class Template:
    """Features made of text and cells: of tokens, and of pairs of neighbouring labels.

    >>> template = Template((("w=", TemplateCell("x", -1, 0)), ("end=", TemplateCell("suffix", 0, 0, "2"))))
    >>> template.apply([["the"], ["cat"]])
    [['w=_B-1', 'end=he'], ['w=the', 'end=at']]
    """

    features: tuple[Feature, ...]
    pairs: tuple[Feature, ...] = ()
    lexicons: tuple[Lexicon, ...] = ()
    clusters: tuple[Clusters, ...] = ()

    def apply(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """The feature strings of each token; a row holds the columns of one token.

        The features of a pair of labels describe the second token. They are stored with the first token, after the
        prefix PAIR, because a transition begins there.
        """
        seen: Seen = {}
        here = self._made(self.features, rows, seen)
        ahead = [*self._made(self.pairs, rows, seen)[1:], []] if self.pairs else [[]] * len(rows)
        return [[*texts, *(PAIR + text for text in later)] for texts, later in zip(here, ahead, strict=True)]

    def _made(self, features: Sequence[Feature], rows: Sequence[Sequence[str]], seen: Seen) -> list[list[str]]:
        """The strings of some features for each token."""
        columns = [self._strings(feature, rows, seen) for feature in features]
        return [[text for text in texts if text is not None] for texts in zip(*columns, strict=True)]

    def _strings(self, feature: Feature, rows: Sequence[Sequence[str]], seen: Seen) -> list[str | None]:
        """One feature of every token; None where a cell is empty, such as an affix that is longer than the word."""
        parts: list[Sequence[str | None]] = []
        for part in feature:
            parts.append([part] * len(rows) if isinstance(part, str) else self._shifted(part, rows, seen))
        return [None if None in texts else "".join(texts) for texts in zip(*parts, strict=True)]

    def _shifted(self, cell: TemplateCell, rows: Sequence[Sequence[str]], seen: Seen) -> list[str | None]:
        """The text of a cell at every token; beyond the ends _B-1, _B-2, ... and _B+1, _B+2, ... as in CRF++."""
        key = (cell.lens, cell.column, cell.argument)
        if key not in seen:
            seen[key] = self._shown(cell, [row[cell.column] for row in rows])
        values, n = seen[key], len(rows)
        before = [f"_B{k}" for k in range(cell.offset, 0)][:n]
        after = [f"_B+{k}" for k in range(1, cell.offset + 1)][-n:]
        return [*before, *values[max(cell.offset, 0) : max(n + min(cell.offset, 0), 0)], *after]

    def _shown(self, cell: TemplateCell, column: list[str]) -> list[Any]:
        """The text of a cell for each token of a column."""
        name, size = lookup_of(cell.argument)
        if cell.lens == "lexicon":
            return self._named(self.lexicons, name).marks(column)
        if cell.lens == "cluster":
            clusters = self._named(self.clusters, name)
            return [None if (path := clusters.of(word)) is None else path[:size] for word in column]
        return list(map(LENSES[cell.lens](cell.argument), column))

    def _named(self, tables: Sequence[Any], name: str) -> Any:
        """The lexicon or the clusters of a name."""
        for table in tables:
            if table.name == name:
                return table
        raise TemplateError(f"there is no lexicon or cluster {name!r}, expected a table of that name")

    @property
    def cells(self) -> list[TemplateCell]:
        """All cells of all features."""
        return [part for f in (*self.features, *self.pairs) for part in f if isinstance(part, TemplateCell)]

    @property
    def reach(self) -> int:
        """The longest distance from a token to a token that its features read."""
        ahead = {id(cell) for f in self.pairs for cell in f}  # these belong to the token after
        found = [0]
        for cell in self.cells:
            size = 0
            if cell.lens == "lexicon":
                size = self._named(self.lexicons, lookup_of(cell.argument)[0]).longest - 1
            found.append(abs(cell.offset) + 2 * size + (id(cell) in ahead))
        return max(found)

    @property
    def width(self) -> int:
        """The number of columns that a row must have at least."""
        return 1 + max((cell.column for cell in self.cells), default=-1)

    def to_dict(self) -> dict[str, Any]:
        """The template as JSON."""
        found = {"features": _to_lists(self.features), "pairs": _to_lists(self.pairs)}
        tables = {"lexicons": self.lexicons, "clusters": self.clusters}
        return {**found, **{name: [list(table) for table in own] for name, own in tables.items() if own}}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Template:
        """The template that :meth:`to_dict` wrote."""
        template: Template = Field(entry, "template").record(cls)
        return template

    def check(self, columns: int) -> None:
        """Raise a ``ValueError`` unless every cell can be seen in rows of that number of columns."""
        for cell in self.cells:
            if (
                cell.lens not in {*LENSES, *LOOKUPS}
                or not 0 <= cell.column < columns
                or not -FARTHEST <= cell.offset <= FARTHEST
            ):
                raise ValueError(f"template has {cell}, which shows nothing in rows of {columns} columns")
            try:
                self._shown(cell, [])
            except (ValueError, re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"template has {cell}: {error}") from None


def _to_lists(features: Sequence[Feature]) -> list[Any]:
    return [[part if isinstance(part, str) else list(part) for part in feature] for feature in features]


_SHAPES = ((re.compile(r"[^\W\d_]"), lambda m: "A" if m[0].isupper() else "a"), (re.compile(r"\d"), lambda m: "0"))


def word_shape(text: str) -> str:
    """Letters as A or a, digits as 0, at most two alike in a row.

    >>> word_shape("McDonald's"), word_shape("1,000.50")
    ("AaAaa'a", '0,00.00')
    """
    for pattern, replace in _SHAPES:
        text = pattern.sub(replace, text)
    return re.sub(r"(.)\1{2,}", r"\1\1", text)


def _affix(part: Callable[[str, int], str]) -> Callable[[str], Callable[[str], str | None]]:
    def lens(argument: str) -> Callable[[str], str | None]:
        size = int(argument)
        return lambda text: part(text, size) if len(text) >= size else None

    return lens


def _matched(argument: str) -> Callable[[str], str]:
    pattern = re.compile(argument)
    return lambda text: found[0] if (found := pattern.search(text)) else ""


def _lowered(look: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: look(text).lower()


def _tested(argument: str) -> Callable[[str], str]:
    pattern = re.compile(argument)
    return lambda text: "true" if pattern.search(text) else "false"


LENSES: dict[str, Callable[[str], Callable[[str], Any]]] = {
    "x": lambda _: str,
    "X": lambda _: str.lower,
    "m": _matched,
    "M": lambda argument: _lowered(_matched(argument)),
    "t": _tested,
    "T": _tested,
    "prefix": _affix(lambda text, size: text[:size]),
    "suffix": _affix(lambda text, size: text[-size:]),
    "shape": lambda _: word_shape,
}
LOOKUPS = ("lexicon", "cluster")  # lenses that look into the tables of a template
NAMED_LENSES = {"lower": "X", "find": "m", "findlower": "M", "test": "t"}  # name in patterns -> lens
NAMED_LENSES |= {name: name for name in ("shape", "prefix", "suffix", *LOOKUPS)} | {"testlower": "T"}


def lookup_of(argument: str) -> tuple[str, int | None]:
    """The name of a table, and the number of characters taken of its entries: all, or the number after the name.

    >>> lookup_of("brown 4"), lookup_of("brown")
    (('brown', 4), ('brown', None))
    """
    name, _, size = argument.partition(" ")
    return name, int(size) if size else None


@dataclass(frozen=True)
class Columns:
    """Columns by their names in templates."""

    names: Mapping[str, str]  # name or number -> name
    features: list[str]

    def place(self, called: str) -> int:
        """The place of a column among the features."""
        if called not in self.names:
            raise TemplateError(f"there is no column {called!r}, only {', '.join(dict.fromkeys(self.names.values()))}")
        name = self.names[called]
        if name not in self.features:
            raise TemplateError(f"column {called!r} holds labels of level {name!r}, which a feature cannot see")
        return self.features.index(name)
