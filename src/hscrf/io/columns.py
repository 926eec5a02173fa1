"""Column files: one token per line, a blank line between sequences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from hscrf.errors import DataFileError
from hscrf.io.comments import Comments
from hscrf.io.documents import Document
from hscrf.io.lines import (
    SequenceLines,
    Skip,
    Source,
    blanks,
    blocks_of_lines,
    check_line,
    empty_file,
    reading,
    skipping,
    split_cells,
    writing,
)
from hscrf.io.tags import Scheme, check_tags

OURS = re.compile(  # columns that hscrf appends
    "best[0-9]+_log_probability|(.*)_(predicted|by|probability|confidence|sample[0-9]+|best[0-9]+)", re.DOTALL
)
OUR_NUMBER = re.compile(r"-?[0-9]+\.[0-9]{6}")  # a probability, or its logarithm, as a prediction writes it
UNKNOWN = "if a level has no labels there, add a column of ?"
HEADER = "# columns:\t"  # begins a first line that names the columns, as the studio writes it


def read_columns(
    source: Source,
    levels: Sequence[str] | Mapping[str, int] = (),
    names: Sequence[str] | None = None,
    *,
    separator: str | None = None,
    comment: str | None = None,
    scheme: Scheme | None = None,
    extra: Sequence[str] = (),
    unlabelled: bool = False,
    loose: bool = False,
    skip: Skip | None = None,
) -> Iterator[Document]:
    r"""Read a file with one token in each line, in columns. A blank line ends a sequence.

    A first line ``# columns:`` names the columns, between tabs (as the studio writes it) or spaces. Columns of these
    names that the studio or a prediction appended to a level, such as ``LEVEL_predicted``, are never features.

    Parameters
    ----------
    source : path or stream
        The file, in text or bytes.
    levels : sequence of str, or mapping from str to int
        Names of the label columns from top to bottom, or their places (0 is the first).
    names : sequence of str, optional
        Names of all columns. Without them the levels are the last columns, and the places name the others.
    separator : str, optional
        By default any run of spaces and tabs.
    comment : str, optional
        Lines that begin with it are comments, which the documents keep. A line with the usual number of columns is a
        token, even if it begins with the same sign (see ``hscrf.io.comments``).
    scheme : {"plain", "bio", "bioes"}, or mapping from level to these, optional
        Checks the labels while they are read.
    extra : sequence of str
        Names of columns after all others or, if the first line names the columns, of any that are no features.
    unlabelled : bool
        Whether the file may lack the label columns.
    loose : bool
        Whether columns of ``extra`` may be missing, unnamed columns may follow, and all columns may be labels.
    skip : callable, optional
        Called with the error of each bad sequence, which is then left out. Without it, the error is raised.

    Yields
    ------
    Document

    Raises
    ------
    DataFileError
        If the file cannot be read; it names the line.

    Examples
    --------
    >>> import io
    >>> file = io.StringIO("the D B-NP\ncat N I-NP\n\nsleeps V B-VP\n")
    >>> first, second = read_columns(file, levels={"phrase": 2, "tag": 1})
    >>> first.tokens, first.labels
    ([['the'], ['cat']], {'phrase': ['B-NP', 'I-NP'], 'tag': ['D', 'N']})
    """
    with reading(source, skip is not None) as (file, lines):
        frame: ColumnFrame | None = None
        n = -1
        comments = Comments(comment, separator)
        first = next(lines, (0, ""))
        header = header_names(first[1])
        headed = header is not None
        marked = chain([(*first, True)] if headed else [], comments.marked(lines if headed else chain([first], lines)))
        if header is not None:
            frame = _headed_frame(file, header, levels, names, [] if loose else extra, unlabelled)
        for n, block in enumerate(blocks_of_lines(marked, separator, blanks(separator))):
            if not block.bad:
                frame = frame or _frame(file, block.numbers[0], block.rows[0], levels, names, extra, unlabelled, loose)
            with skipping(skip):
                check_line(block.bad, n)
                assert frame is not None
                document = frame.document(n, block)
                check_tags(document, scheme)
                yield document
        if n < 0:
            raise empty_file(file)
        comments.warn(file)


def header_names(line: str) -> list[str] | None:
    r"""The names in a first line ``# columns:``, separated by tabs or spaces; None if it is another line.

    >>> header_names("# columns:\tword\ttag"), header_names("# columns: word tag"), header_names("# a title")
    (['word', 'tag'], ['word', 'tag'], None)
    """
    if line.startswith(HEADER):
        return line.split("\t")[1:]
    if line.startswith(HEADER.rstrip()) and line[len(HEADER) - 1 :].strip():
        rest = line[len(HEADER) - 1 :]
        return rest.strip().split("\t") if "\t" in rest.strip() else rest.split()
    return None


def column_names(
    width: int, levels: Sequence[str] | Mapping[str, int], names: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the names of all columns of a file.

    Parameters
    ----------
    width : int
        Number of columns.
    levels : sequence of str, or mapping from str to int
        Label columns from top to bottom: the last ones, or with their places.
    names : sequence of str, optional
        Names of all columns. Without them, the places name the columns that are not levels.

    Returns
    -------
    tuple of str

    Raises
    ------
    ValueError
        If a level has no column, or two levels have the same one.

    Examples
    --------
    >>> column_names(4, ["phrase", "tag"]), column_names(3, {"phrase": 2, "tag": 1})
    (('0', '1', 'phrase', 'tag'), ('0', 'tag', 'phrase'))
    """
    if names is not None:
        check_column_names(levels, names)
        return tuple(names)
    places = dict(levels) if isinstance(levels, Mapping) else last_places(width, levels)
    for level, place in places.items():
        if not 0 <= place < width:
            raise ValueError(f"level {level!r} is column {place + 1}, but {number_of(width)}; {UNKNOWN}")
    if len(set(places.values())) < len(places):
        raise ValueError(f"two of the levels {', '.join(map(repr, places))} are the same column")
    by_place = {place: level for level, place in places.items()}
    return tuple(by_place.get(k, str(k)) for k in range(width))


def is_ours(name: str, levels: Sequence[str]) -> bool:
    """Whether a prediction or the studio has appended a column of that name for a level.

    >>> is_ours("tag_predicted", ["tag"]), is_ours("word_predicted", ["tag"]), is_ours("tag_best2", ["tag"])
    (True, False, True)
    >>> is_ours("tag_confidence", ["tag"]), is_ours("best1_log_probability", ["tag"])
    (True, True)
    """
    match = OURS.fullmatch(name)
    return match is not None and match[1] in (None, *levels)


def number_of(columns: int) -> str:
    """Return the number of columns as the beginning of a sentence."""
    return "there is 1 column" if columns == 1 else f"there are {columns} columns"


def last_places(width: int, levels: Sequence[str]) -> dict[str, int]:
    """Return the last columns as the places of the levels."""
    return {level: width - len(levels) + k for k, level in enumerate(levels)}


def check_column_names(levels: Iterable[str], names: Sequence[str]) -> None:
    """Raise an error for repeated names of columns, or levels without a column."""
    if len(set(names)) < len(names):
        raise ValueError(f"two of the columns {', '.join(names)} have the same name")
    for level in levels:
        if level not in names:
            raise ValueError(f"there is no column {level!r}, only {', '.join(names)}")


@dataclass(frozen=True)
class ColumnFrame:
    """The roles of the columns of a file."""

    file: str
    names: tuple[str, ...]  # of all columns in this file
    features: tuple[int, ...]
    levels: dict[str, int] | None
    extra: dict[str, int]

    def document(self, n: int, block: SequenceLines) -> Document:
        """Return the document of a block of lines."""
        rows, numbers = block.rows, block.numbers
        for t, (number, row) in enumerate(zip(numbers, rows, strict=True)):
            if len(row) != len(self.names):
                problem = f"{number_of(len(row))}, expected {len(self.names)}"
                raise DataFileError(self.file, number, problem, sequence=n, step=t)
        return Document(
            tokens=[[row[k] for k in self.features] for row in rows],
            labels=None if self.levels is None else pick_columns(rows, self.levels),
            extra=pick_columns(rows, self.extra),
            comments=tuple(text for _, text in block.comments),
            places=tuple(place for place, _ in block.comments),
            separator=block.separator,
            columns=self.names,
            lines=numbers,
            file=self.file,
            number=n,
        )


def pick_columns(rows: list[list[str]], places: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the columns at these places by name."""
    return {name: [row[k] for row in rows] for name, k in places.items()}


def _frame(
    file: str,
    number: int,
    row: Sequence[str],
    levels: Sequence[str] | Mapping[str, int],
    names: Sequence[str] | None,
    extra: Sequence[str],
    unlabelled: bool,
    loose: bool,
) -> ColumnFrame:
    """The columns of a file, found from its first row."""
    width = len(row)
    if loose and names is not None:
        extra = _loose_columns(row, len(names), extra)
    if unlabelled and _has_no_labels(width - len(extra), levels, names):
        levels = ()
    least = len(levels) + len(extra)
    if width < least and names is None and not isinstance(levels, Mapping):
        raise DataFileError(file, number, f"{number_of(width)}, expected at least {least}")
    try:
        known = column_names(width - len(extra), levels, names)
    except ValueError as error:
        raise DataFileError(file, number, str(error)) from None
    bare = tuple(name for name in known if name not in levels)
    if not (bare or extra or loose or names is not None or isinstance(levels, Mapping)):
        told = f"there is no column but the labels {', '.join(known)}, expected a feature column"
        raise DataFileError(file, number, f"{told}; {UNKNOWN}" if len(known) > 1 else told)
    labelled = not (unlabelled and width == len(bare) + len(extra))
    used = (*(known if labelled else bare), *extra)
    if width != len(used):
        called = [f"column {k + 1}" if name == str(k) else name for k, name in enumerate(used)]
        told = f"{number_of(width)}, expected {len(used)} ({', '.join(called)})"
        some = labelled and len(bare) < width < len(known)  # but not all label columns
        raise DataFileError(file, number, f"{told}; {UNKNOWN}" if some else told)
    place = {name: k for k, name in enumerate(used)}
    own = {level: place[level] for level in levels} if labelled and levels else None
    return ColumnFrame(file, used, tuple(place[name] for name in bare), own, {name: place[name] for name in extra})


def _has_no_labels(width: int, levels: Sequence[str] | Mapping[str, int], names: Sequence[str] | None) -> bool:
    """Whether all columns are features: none has the name of a level, or there are too few columns for labels."""
    if names is not None:
        return not set(levels) & set(names)
    return not isinstance(levels, Mapping) and width <= len(levels)


def _headed_frame(
    file: str,
    header: list[str],
    levels: Sequence[str] | Mapping[str, int],
    names: Sequence[str] | None,
    extra: Sequence[str],
    unlabelled: bool,
) -> ColumnFrame:
    """The columns of a file whose first line names them."""
    others = [name for name in header if name in extra or is_ours(name, [*header, *levels])]
    if isinstance(levels, Mapping):
        header = [next((level for level, k in levels.items() if k == place), name) for place, name in enumerate(header)]
    labelled = bool(levels) and not (unlabelled and not set(levels) & set(header))
    features = [name for name in names or header if name not in levels and name not in others]
    try:
        check_column_names([*(levels if labelled else ()), *features, *extra], header)
    except ValueError as error:
        raise DataFileError(file, 1, str(error)) from None
    place = {name: k for k, name in enumerate(header)}
    own = {level: place[level] for level in levels} if labelled else None
    rest = [name for name in header if name not in features and name not in (own or ())]
    return ColumnFrame(file, tuple(header), tuple(place[name] for name in features), own, {k: place[k] for k in rest})


def _loose_columns(row: Sequence[str], first: int, extra: Sequence[str]) -> list[str]:
    """Names of the columns from the place ``first``: ``extra``, then places.

    Only places if numbers of a prediction are there: the file had no labels, and its predictions are in their columns.
    """
    rest = row[first:]
    if len(rest) < len(extra):
        return []
    known = [] if any(OUR_NUMBER.fullmatch(cell) for cell in rest[: len(extra)]) else extra
    return [*known, *map(str, range(first + len(known), len(row)))]


def write_columns(
    target: Source, documents: Iterable[Document], separator: str | None = None, header: bool = False
) -> None:
    """Write documents as a column file that :func:`read_columns` reads.

    Columns keep their order; those of ``extra`` follow. Comments keep their places.

    Parameters
    ----------
    target : path or stream
        The file.
    documents : iterable of Document
        The sequences.
    separator : str, optional
        By default the one that each sequence was read with, else a space.
    header : bool
        Whether the first line names the columns. A header that was read is rewritten with the current columns.

    Examples
    --------
    >>> import sys
    >>> write_columns(sys.stdout, [Document([["the"], ["cat"]], {"tag": ["D", "N"]})])
    the D
    cat N
    <BLANKLINE>
    """
    with writing(target) as file:
        for document in documents:
            between = separator or document.separator or None
            columns = all_columns(document)
            named = HEADER + "\t".join(columns)
            rows = [_line(row, between) for row in zip(*columns.values(), strict=True)]
            comments = _by_place(document)
            comments = {
                t: [text if header_names(text) is None else named for text in own] for t, own in comments.items()
            }
            if header and named not in comments.get(0, ()):
                file.write(f"{named}\n")
            header = False
            for t, row in enumerate([*rows, ""]):
                file.write("".join(f"{line}\n" for line in [*comments.get(t, ()), row]))
            file.write("".join(f"{line}\n" for line in comments.get(len(rows) + 1, ())))


def _by_place(document: Document) -> dict[int, list[str]]:
    """Comments by the step that follows them; the last two entries follow the last step and its blank line."""
    found: dict[int, list[str]] = {}
    places = document.places or (0,) * len(document.comments)
    for place, comment in zip(places, document.comments, strict=True):
        found.setdefault(place, []).append(comment)
    return found


def all_columns(document: Document) -> dict[str, list[str]]:
    """Every column by name, in the order of the file, new ones last."""
    tokens = [[token] if isinstance(token, str) else token for token in document.tokens]
    given = {**(document.labels or {}), **document.extra}
    features = [name for name in document.columns if name not in given]
    if not document.columns:
        features = [str(k) for k in range(len(tokens[0]))]
    columns = {name: [token[k] for token in tokens] for k, name in enumerate(features)} | given
    order = [*document.columns, *(name for name in columns if name not in document.columns)]
    return {name: columns[name] for name in order}


def _line(row: Sequence[str], separator: str | None) -> str:
    """A row as a line that reads back as the same row."""
    line = (separator or " ").join(row)
    if not line.strip(blanks(separator)) or "\n" in line or "\r" in line or split_cells(line, separator) != list(row):
        raise ValueError(f"the row {list(row)} cannot be written with the separator {separator or ' '!r}")
    return line
