"""Feature templates: which strings a token of a column file is described by.

A template is a list of features, and a feature is text with cells in it: ``U01:%x[-1,0]/%x[0,0]`` is the first column
of the token before and of the token itself, as CRF++ and Wapiti write it. A small TOML file says the same in words::

    [word]                     # a column, by its name or its number (0 is the first)
    window = 2                 # the column of the tokens at -2, -1, 0, 1, 2
    conjunctions = 2           # runs of two neighbours around the token; 3: of two and of three
    prefixes = 4               # its first 1, 2, 3 and 4 characters
    suffixes = 4               # its last ones
    lower = true               # in small letters
    shape = true               # "McX-12" is "AaA-0"

    [[join]]                   # any cells together: column[offset]
    cells = ["word[0]", "pos[-1]"]

    [[pair]]                   # the same for the labels of a token and of the one before it, as B01:%x[0,0] in CRF++
    cells = ["word[0]"]
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hscrf.errors import TemplateError
from hscrf.estimator.content import Field


class Cell(NamedTuple):
    """A column of the token at an offset, seen through a lens: a key of LENSES, with its argument."""

    lens: str
    offset: int
    column: int
    argument: str = ""


Feature = tuple["str | Cell", ...]
FARTHEST = 1 << 16  # steps from a token to a cell
PAIR = "pair:"  # begins the features of pairs of labels


@dataclass(frozen=True)
class Template:
    """Features made of text and cells: of tokens, and of pairs of neighbouring labels.

    >>> template = Template((("w=", Cell("x", -1, 0)), ("end=", Cell("suffix", 0, 0, "2"))))
    >>> template.apply([["the"], ["cat"]])
    [['w=_B-1', 'end=he'], ['w=the', 'end=at']]
    """

    features: tuple[Feature, ...]
    pairs: tuple[Feature, ...] = ()

    def apply(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """The feature strings of each token; a row holds the columns of one token.

        Those of a pair of labels look at the second token and stand, behind PAIR, with the first: where a transition
        begins.
        """
        seen: dict[tuple[str, int, str], list[str]] = {}
        here = self._made(self.features, rows, seen)
        ahead = [*self._made(self.pairs, rows, seen)[1:], []] if self.pairs else [[]] * len(rows)
        return [[*texts, *(PAIR + text for text in later)] for texts, later in zip(here, ahead, strict=True)]

    def _made(
        self, features: Sequence[Feature], rows: Sequence[Sequence[str]], seen: dict[tuple[str, int, str], list[str]]
    ) -> list[list[str]]:
        """The strings of some features for each token."""
        columns = [self._strings(feature, rows, seen) for feature in features]
        return [[text for text in texts if text is not None] for texts in zip(*columns, strict=True)]

    def _strings(
        self, feature: Feature, rows: Sequence[Sequence[str]], seen: dict[tuple[str, int, str], list[str]]
    ) -> list[str | None]:
        """One feature of every token; None where an affix is longer than its word."""
        parts: list[Sequence[str | None]] = []
        for part in feature:
            parts.append([part] * len(rows) if isinstance(part, str) else _shifted(part, rows, seen))
        return [None if None in texts else "".join(texts) for texts in zip(*parts, strict=True)]

    @property
    def width(self) -> int:
        """The number of columns that a row must have at least."""
        every = (*self.features, *self.pairs)
        return 1 + max((part.column for f in every for part in f if isinstance(part, Cell)), default=-1)

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {"features": _to_lists(self.features), "pairs": _to_lists(self.pairs)}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Template:
        """The template that :meth:`to_dict` wrote."""
        template: Template = Field(entry, "template").record(cls)
        return template

    def check(self, columns: int) -> None:
        """Raise a ``ValueError`` unless every cell can be seen in rows of that number of columns."""
        for cell in (part for f in (*self.features, *self.pairs) for part in f if isinstance(part, Cell)):
            if cell.lens not in LENSES or not 0 <= cell.column < columns or not -FARTHEST <= cell.offset <= FARTHEST:
                raise ValueError(f"template has {cell}, which shows nothing in rows of {columns} columns")
            try:
                LENSES[cell.lens](cell.argument)
            except (ValueError, re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"template has {cell}: {error}") from None


def _to_lists(features: Sequence[Feature]) -> list[Any]:
    return [[part if isinstance(part, str) else list(part) for part in feature] for feature in features]


def _shifted(
    cell: Cell, rows: Sequence[Sequence[str]], seen: dict[tuple[str, int, str], list[Any]]
) -> list[str | None]:
    """What a cell shows at every token; beyond the ends _B-1, _B-2, ... and _B+1, _B+2, ... as in CRF++."""
    key = (cell.lens, cell.column, cell.argument)
    if key not in seen:
        look = LENSES[cell.lens](cell.argument)
        seen[key] = [look(row[cell.column]) for row in rows]
    values, n = seen[key], len(rows)
    before = [f"_B{k}" for k in range(cell.offset, 0)][:n]
    after = [f"_B+{k}" for k in range(1, cell.offset + 1)][-n:]
    return [*before, *values[max(cell.offset, 0) : max(n + min(cell.offset, 0), 0)], *after]


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


def read_template(path: str | os.PathLike[str], columns: Sequence[str], features: Sequence[str]) -> Template:
    """Read a template in TOML (a name that ends in .toml) or in the words of CRF++ and Wapiti.

    ``columns`` are the names of all columns of the data in their order, as CRF++ counts them; ``features`` those that
    are no labels. Cells of the template count columns among the features.
    """
    places = {str(k): name for k, name in enumerate(columns)}
    known = _Columns({**places, **{name: name for name in columns}}, list(features))
    with open(path, "rb") as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
        if os.fspath(path).endswith(".toml"):
            return _from_settings(_parse_toml(text), known)
        return _from_macros(text, known)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TemplateError(f"{os.fspath(path)}, line {line}: not valid UTF-8") from None
    except TemplateError as error:
        raise TemplateError(f"{os.fspath(path)}, {error}") from None


def default_template(features: Sequence[str]) -> Template:
    """A good template for words and their company: the first column in full, the others in a window.

    >>> default_template(["word"]).apply([["The"], ["cat"]])[0][:6]
    ['word[-2]=_B-2', 'word[-1]=_B-1', 'word[0]=The', 'word[1]=cat', 'word[2]=_B+1', 'word[-1]|word[0]=_B-1|The']
    """
    first = {"window": 2, "conjunctions": 2, "prefixes": 4, "suffixes": 4, "lower": True, "shape": True}
    settings: dict[str, Any] = {name: {"window": 2, "conjunctions": 3} for name in features}
    settings[features[0]] = first
    return _from_settings(settings, _Columns({name: name for name in features}, list(features)))


@dataclass(frozen=True)
class _Columns:
    """Columns by what a template may call them."""

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


def _parse_toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        settings: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TemplateError(f"not valid TOML: {error}") from None
    return settings


_KEYS: dict[str, Any] = {
    "window": int,
    "conjunctions": int,
    "prefixes": int,
    "suffixes": int,
    "lower": bool,
    "shape": bool,
}


def _from_settings(settings: Mapping[str, Any], columns: _Columns) -> Template:
    found: list[Feature] = []
    joined = {kind: [_joined(kind, entry, columns) for entry in settings.get(kind, ())] for kind in ("join", "pair")}
    for called, table in settings.items():
        if called not in joined:
            _check_table(called, table)
            found += _column_features(called, columns.place(called), table)
    found += joined["join"]
    if not found:
        raise TemplateError("the template has no features of tokens")
    return Template(tuple(found), tuple(joined["pair"]))


def _check_table(called: str, table: Any) -> None:
    if not isinstance(table, Mapping):
        raise TemplateError(f"{called} is {table!r}, expected a table [{called}] for a column")
    for key, value in table.items():
        if key not in _KEYS:
            raise TemplateError(f"[{called}] has {key!r}, expected {', '.join(_KEYS)}")
        if type(value) is not _KEYS[key] or float(value) < 0:
            expected = "true or false" if _KEYS[key] is bool else "a number of at least 0"
            raise TemplateError(f"[{called}] {key} is {value!r}, expected {expected}")


def _column_features(name: str, column: int, table: Mapping[str, Any]) -> Iterator[Feature]:
    """The features that a table of a column asks for."""
    window = table.get("window", 0)
    for offset in range(-window, window + 1):
        yield _conjunction(name, column, [offset])
    for size in range(2, table.get("conjunctions", 0) + 1):
        for start in range(1 - size, 1):
            yield _conjunction(name, column, range(start, start + size))
    for kind in ("prefix", "suffix"):
        for size in range(1, table.get(kind + "es", 0) + 1):
            yield (f"{name}.{kind}{size}=", Cell(kind, 0, column, str(size)))
    if table.get("lower"):
        yield (f"{name}.lower=", Cell("X", 0, column))
    if table.get("shape"):
        yield (f"{name}.shape=", Cell("shape", 0, column))


def _conjunction(name: str, column: int, offsets: Sequence[int]) -> Feature:
    return _named([(name, column, offset) for offset in offsets])


def _named(cells: Sequence[tuple[str, int, int]]) -> Feature:
    """A feature ``a[0]|b[1]=...|...`` of cells (name, column, offset)."""
    parts: list[str | Cell] = ["|".join(f"{name}[{offset}]" for name, _, offset in cells) + "="]
    for k, (_, column, offset) in enumerate(cells):
        parts += ["|"] * (k > 0) + [Cell("x", offset, column)]
    return tuple(parts)


def _joined(kind: str, entry: Any, columns: _Columns) -> Feature:
    cells = entry.get("cells") if isinstance(entry, Mapping) else None
    if not isinstance(cells, list) or not cells:
        raise TemplateError(f'[[{kind}]] expects cells = ["column[offset]", ...]')
    parsed = []
    for cell in cells:
        match = re.fullmatch(r"(.+)\[([+-]?\d+)\]", str(cell))
        if not match:
            raise TemplateError(f"[[{kind}]] has the cell {cell!r}, expected column[offset] as in word[-1]")
        parsed.append((match[1], columns.place(match[1]), int(match[2])))
    return _named(parsed)


_MACRO = re.compile(r'%([xXmMtT])\[\s*([+-]?\d+)\s*,\s*(\d+)\s*(?:,\s*"((?:[^"\\]|\\.)*)"\s*)?\]')


def _from_macros(text: str, columns: _Columns) -> Template:
    """U is for tokens, B for pairs of labels, * for both; B alone needs no saying, label pairs always have weights."""
    features: list[Feature] = []
    pairs: list[Feature] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        try:
            feature = _macro_line(line, columns)
        except (TemplateError, re.error) as error:
            raise TemplateError(f"line {number}: {error}") from None
        if line[0] in "uU*":
            features.append(feature)
        if line[0] in "bB*" and any(isinstance(part, Cell) for part in feature):
            pairs.append(feature)
    if not any(isinstance(part, Cell) for feature in features for part in feature):
        raise TemplateError("line 1: the template has no features of tokens that look at a column")
    return Template(tuple(features), tuple(pairs))


def _macro_line(line: str, columns: _Columns) -> Feature:
    """The text and cells of a line such as U01:%x[-1,0]/%x[0,0]."""
    if line[0] not in "uUbB*":
        raise TemplateError(f"{line!r} begins with {line[0]!r}, expected U, B, * or #")
    parts: list[str | Cell] = []
    position = 0
    for match in _MACRO.finditer(line):
        parts += [line[position : match.start()], _macro(match, columns)]
        position = match.end()
    if "%" in line[position:] or any(isinstance(part, str) and "%" in part for part in parts):
        raise TemplateError(f"{line!r} is not understood, expected cells such as %x[-1,0]")
    return tuple(part for part in [*parts, line[position:]] if part != "")


def _macro(match: re.Match[str], columns: _Columns) -> Cell:
    lens, offset, column, argument = match.groups()
    if (argument is None) != (lens in "xX"):
        expected = "no pattern" if lens in "xX" else "a pattern in double quotes"
        raise TemplateError(f"{match[0]} expects {expected}")
    pattern = (argument or "").replace('\\"', '"')
    re.compile(pattern)
    return Cell(lens, int(offset), columns.place(column), pattern)
