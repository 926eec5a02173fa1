"""Feature templates: the feature strings of a token of a column file.

A template is a list of features, and a feature is text with cells. As in CRF++ and Wapiti, ``U01:%x[-1,0]/%x[0,0]`` is
the first column of the token before and of the token itself. A small TOML file can also define the features::

    [word]                     # a column, by its name or its number (0 is the first)
    window = 2                 # the column of the tokens at -2, -1, 0, 1, 2
    conjunctions = 2           # runs of two neighbours around the token; 3: of two and of three
    prefixes = 4               # its first 1, 2, 3 and 4 characters
    suffixes = 4               # its last ones
    lower = true               # in small letters
    shape = true               # "McX-12" is "AaA-0"
    shapes = 2                 # the shapes of the tokens at -2, -1, 0, 1, 2, and of pairs of neighbours
    regex = { year = "^(19|20)[0-9]{2}$" }   # word.year=true where the column matches

    [lexicon.cities]           # words and phrases, one per line; cities=B where one begins, cities=I inside
    file = "cities.txt"        # in the folder of the template; or entries = ["New York", "Paris"]
    column = "word"
    lower = true               # compared in small letters
    window = 1                 # also for the neighbours

    [cluster.brown]            # word TAB cluster, one per line; or lines of Brown clusters: path TAB word TAB count
    file = "clusters.txt"
    column = "word"
    prefixes = [4, 6, 10]      # of the cluster's name, besides the whole

    [[join]]                   # any cells together: column[offset]
    cells = ["word[0]", "pos[-1]"]

    [[pair]]                   # the same for the labels of a token and of the one before it, as B01:%x[0,0] in CRF++
    cells = ["word[0]"]

``patterns = [...]`` lists features one by one as :mod:`hscrf.io.patterns` writes them; ``hscrf show --template`` prints
those of a model.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hscrf.errors import TemplateError
from hscrf.io.lexicons import read_clusters, read_lexicon
from hscrf.io.patterns import feature_from
from hscrf.io.templates import LOOKUPS, Columns, Feature, Template, TemplateCell


def read_template(path: str | os.PathLike[str], columns: Sequence[str], features: Sequence[str]) -> Template:
    """Read a template in TOML (a name that ends in .toml) or in the notation of CRF++ and Wapiti.

    ``columns`` are the names of all columns of the data in order, as CRF++ counts them; ``features`` are those without
    labels. Cells of the template count columns among the features.
    """
    known = named_columns(columns, features)
    with open(path, "rb") as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
        if os.fspath(path).endswith(".toml"):
            return from_settings(_parse_toml(text), known, os.path.dirname(os.fspath(path)))
        return _from_macros(text, known)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TemplateError(f"{os.fspath(path)}, line {line}: not valid UTF-8") from None
    except TemplateError as error:
        raise TemplateError(f"{os.fspath(path)}, {error}") from None


def named_columns(columns: Sequence[str], features: Sequence[str]) -> Columns:
    """Columns by their names and numbers, of which some are features."""
    places = {str(k): name for k, name in enumerate(columns)}
    return Columns({**places, **{name: name for name in columns}}, list(features))


def default_template(features: Sequence[str]) -> Template:
    """A template for words: all kinds of features of the first column, and windows over the others.

    >>> default_template(["word"]).apply([["The"], ["cat"]])[0][:6]
    ['word[-2]=_B-2', 'word[-1]=_B-1', 'word[0]=The', 'word[1]=cat', 'word[2]=_B+1', 'word[-1]|word[0]=_B-1|The']
    """
    first = {"window": 2, "conjunctions": 2, "prefixes": 4, "suffixes": 4, "lower": True, "shapes": 2}
    settings: dict[str, Any] = {name: {"window": 2, "conjunctions": 3} for name in features}
    settings[features[0]] = first
    return from_settings(settings, Columns({name: name for name in features}, list(features)))


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


MOST = 100  # tokens that a window reaches, or characters of an affix
_KEYS: dict[str, Any] = {
    "window": int,
    "conjunctions": int,
    "prefixes": int,
    "suffixes": int,
    "lower": bool,
    "shape": bool,
    "shapes": int,
    "regex": dict,
}


def from_settings(settings: Mapping[str, Any], columns: Columns, folder: str = "") -> Template:
    """The template that the tables of a TOML file describe; ``folder`` has its files of lexicons and clusters."""
    for kind in ("join", "pair", "patterns", "pairs"):
        if not isinstance(settings.get(kind, []), list):
            raise TemplateError(f"{kind} is {settings[kind]!r}, expected a list")
    found: list[Feature] = []
    joined = {kind: [_joined(kind, entry, columns) for entry in settings.get(kind, ())] for kind in ("join", "pair")}
    listed = {kind: [feature_from(text, columns) for text in settings.get(kind, ())] for kind in ("patterns", "pairs")}
    tables = {kind: _tables(kind, settings) for kind in LOOKUPS}
    for called, table in settings.items():
        if called not in {**joined, **listed, **tables}:
            _check_table(called, table)
            found += _column_features(called, columns.place(called), table)
    for kind, named in tables.items():
        for name, table in named.items():
            found += _lookup_features(kind, name, table, columns)
    found += [*listed["patterns"], *joined["join"]]
    if not found:
        raise TemplateError("the template has no features of tokens")
    lexicons = [read_lexicon(name, table, folder) for name, table in tables["lexicon"].items()]
    clusters = [read_clusters(name, table, folder) for name, table in tables["cluster"].items()]
    template = Template(tuple(found), (*joined["pair"], *listed["pairs"]), tuple(lexicons), tuple(clusters))
    try:
        template.check(len(columns.features))
    except ValueError as error:
        raise TemplateError(str(error)) from None
    return template


_LOOKUP_KEYS = {
    "lexicon": ("file", "entries", "column", "lower", "window"),
    "cluster": ("file", "entries", "column", "lower", "window", "prefixes"),
}


def _tables(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The tables [lexicon.NAME] or [cluster.NAME] by name."""
    found = settings.get(kind, {})
    if not isinstance(found, Mapping) or not all(isinstance(table, Mapping) for table in found.values()):
        raise TemplateError(f"{kind} is {found!r}, expected tables [{kind}.NAME]")
    for name, table in found.items():
        if not re.fullmatch(r"[^\s{}]+", name):
            raise TemplateError(f"[{kind}.{name!r}] has a name with spaces or braces, expected one word")
        for key in table:
            if key not in _LOOKUP_KEYS[kind]:
                raise TemplateError(f"[{kind}.{name}] has {key!r}, expected {', '.join(_LOOKUP_KEYS[kind])}")
    return dict(found)


def _lookup_features(kind: str, name: str, table: Mapping[str, Any], columns: Columns) -> Iterator[Feature]:
    """The features of a lexicon or of clusters; none without a column, because patterns may use them."""
    if "column" not in table:
        return
    column, window, sizes = columns.place(str(table["column"])), table.get("window", 0), table.get("prefixes", [])
    if (
        type(window) is not int
        or window < 0
        or not isinstance(sizes, list)
        or not all(type(size) is int and size > 0 for size in sizes)
    ):
        raise TemplateError(f"[{kind}.{name}] expects window = a number and prefixes = [numbers]")
    for offset in range(-window, window + 1):
        place = f"[{offset}]" if offset else ""
        yield (f"{name}{place}=", TemplateCell(kind, offset, column, name))
        for size in sizes:
            yield (f"{name}{size}{place}=", TemplateCell(kind, offset, column, f"{name} {size}"))


def _check_table(called: str, table: Any) -> None:
    if not isinstance(table, Mapping):
        raise TemplateError(f"{called} is {table!r}, expected a table [{called}] for a column")
    for key, value in table.items():
        if key not in _KEYS:
            raise TemplateError(f"[{called}] has {key!r}, expected {', '.join(_KEYS)}")
        if type(value) is not _KEYS[key] or (key != "regex" and not 0 <= float(value) <= MOST):
            expected = {bool: "true or false", dict: "a table of patterns"}.get(
                _KEYS[key], f"a number from 0 to {MOST}"
            )
            raise TemplateError(f"[{called}] {key} is {value!r}, expected {expected}")


def _column_features(name: str, column: int, table: Mapping[str, Any]) -> Iterator[Feature]:
    """The features of the table of a column."""
    window, shapes = table.get("window", 0), table.get("shapes", 0)
    for offset in range(-window, window + 1):
        yield _conjunction(name, column, [offset])
    for size in range(2, table.get("conjunctions", 0) + 1):
        for start in range(1 - size, 1):
            yield _conjunction(name, column, range(start, start + size))
    for kind in ("prefix", "suffix"):
        for size in range(1, table.get(kind + "es", 0) + 1):
            yield (f"{name}.{kind}{size}=", TemplateCell(kind, 0, column, str(size)))
    if table.get("lower"):
        yield (f"{name}.lower=", TemplateCell("X", 0, column))
    if table.get("shape"):
        yield (f"{name}.shape=", TemplateCell("shape", 0, column))
    for offset in range(-shapes, shapes + 1) if shapes else ():
        yield _named([(f"{name}.shape", column, offset)], "shape")
    for offset in (-1, 0) if shapes else ():
        yield _named([(f"{name}.shape", column, offset + k) for k in (0, 1)], "shape")
    for called, pattern in table.get("regex", {}).items():
        yield (f"{name}.{called}=", TemplateCell("t", 0, column, str(pattern)))


def _conjunction(name: str, column: int, offsets: Sequence[int]) -> Feature:
    return _named([(name, column, offset) for offset in offsets])


def _named(cells: Sequence[tuple[str, int, int]], kind: str = "x") -> Feature:
    """A feature ``a[0]|b[1]=...|...`` of cells (name, column, offset) of one kind."""
    parts: list[str | TemplateCell] = ["|".join(f"{name}[{offset}]" for name, _, offset in cells) + "="]
    for k, (_, column, offset) in enumerate(cells):
        parts += ["|"] * (k > 0) + [TemplateCell(kind, offset, column)]
    return tuple(parts)


def _joined(kind: str, entry: Any, columns: Columns) -> Feature:
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


def _from_macros(text: str, columns: Columns) -> Template:
    """U is for tokens, B for pairs of labels, * for both. B alone is ignored: label pairs always have weights."""
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
        if line[0] in "bB*" and any(isinstance(part, TemplateCell) for part in feature):
            pairs.append(feature)
    if not any(isinstance(part, TemplateCell) for feature in features for part in feature):
        raise TemplateError("line 1: the template has no features of tokens that look at a column")
    return Template(tuple(features), tuple(pairs))


def _macro_line(line: str, columns: Columns) -> Feature:
    """The text and cells of a line such as U01:%x[-1,0]/%x[0,0]."""
    if line[0] not in "uUbB*":
        raise TemplateError(f"{line!r} begins with {line[0]!r}, expected U, B, * or #")
    parts: list[str | TemplateCell] = []
    position = 0
    for match in _MACRO.finditer(line):
        parts += [line[position : match.start()], _macro(match, columns)]
        position = match.end()
    if "%" in line[position:] or any(isinstance(part, str) and "%" in part for part in parts):
        raise TemplateError(f"{line!r} is not understood, expected cells such as %x[-1,0]")
    return tuple(part for part in [*parts, line[position:]] if part != "")


def _macro(match: re.Match[str], columns: Columns) -> TemplateCell:
    lens, offset, column, argument = match.groups()
    if (argument is None) != (lens in "xX"):
        expected = "no pattern" if lens in "xX" else "a pattern in double quotes"
        raise TemplateError(f"{match[0]} expects {expected}")
    pattern = (argument or "").replace('\\"', '"')
    re.compile(pattern)
    return TemplateCell(lens, int(offset), columns.place(column), pattern)
