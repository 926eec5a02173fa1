"""Plain text: one document for each line or file, cut into tokens with their places in the text."""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from hscrf.errors import DataFileError
from hscrf.io.compressed import open_compressed
from hscrf.io.documents import Document
from hscrf.io.lines import Skip, Source, check_line, empty_file, reading, skipping

TOKENS = ("words", "blanks", "characters")  # ways to cut a text; each cuts wherever the one before it does
DOCUMENTS = ("line", "file")
ENDINGS = (".txt", ".text", ".md")  # of files of plain text
SINGLE = ("CJK ", "HIRAGANA ", "KATAKANA ", "HALFWIDTH KATAKANA ")  # scripts without blanks: one character per token
INNER = frozenset("'’·׳״")  # between two letters, part of a word
POINTS = frozenset(".,")  # between two digits, part of a number

BLANK, LETTER, DIGIT, ONE, SIGN, JOINS = range(6)


def tokenize(text: str, tokens: str = "words") -> list[tuple[int, int]]:
    """Return where the tokens of a text begin and end, in characters.

    Every character that is not white space belongs to exactly one token. The three ways are nested: ``"words"`` divides
    the tokens of ``"blanks"``, and ``"characters"`` divides those of ``"words"``.

    Parameters
    ----------
    text : str
        The text.
    tokens : {"words", "blanks", "characters"}
        How the text is cut.

        - ``"words"``: a word is a run of letters, digits and underscores with their marks. It may have apostrophes
          between letters (``don't``), and points and commas between digits (``3.14``, ``1,000``). Each Chinese or
          Japanese character is a word. Any other sign is a token; a run of equal signs is one (``...``).
        - ``"blanks"``: everything between white space.
        - ``"characters"``: every character with its marks.

    Returns
    -------
    list of tuple of int
        Half-open places ``(start, stop)`` in the text.

    Raises
    ------
    ValueError
        If ``tokens`` is none of these.

    Examples
    --------
    >>> text = "Don't pay 3.50 now..."
    >>> [text[start:stop] for start, stop in tokenize(text)]
    ["Don't", 'pay', '3.50', 'now', '...']
    >>> [text[start:stop] for start, stop in tokenize(text, "blanks")]
    ["Don't", 'pay', '3.50', 'now...']
    """
    if tokens not in TOKENS:
        raise ValueError(f"tokens is {tokens!r}, expected {', '.join(TOKENS)}")
    found: list[tuple[int, int]] = []
    clusters = list(_clusters(text))
    for n, (start, stop, kind) in enumerate(clusters):
        if kind == BLANK:
            continue
        joined = n > 0 and clusters[n - 1][2] != BLANK and tokens != "characters"
        if joined and (tokens == "blanks" or _goes_on(text, clusters, n)):
            found[-1] = (found[-1][0], stop)
        else:
            found.append((start, stop))
    return found


def _clusters(text: str) -> Iterator[tuple[int, int, int]]:
    """Characters with the marks and joiners after them: start, stop, and the kind of the first that has one."""
    start, kind, open_ = 0, BLANK, False
    for at, sign in enumerate(text):
        own = sign_kind(sign)
        if at and (own == BLANK or kind == BLANK or not (own == JOINS or open_)):
            yield start, at, kind
            start, kind = at, own
        elif kind in (BLANK, JOINS):  # a mark without a character before it has the kind of the character after it
            kind = own
        open_ = sign == "\u200d" or kind == JOINS
    if text:
        yield start, len(text), kind


@lru_cache(maxsize=65536)
def sign_kind(sign: str) -> int:
    """The kind of a character for the tokeniser."""
    if sign.isspace():
        return BLANK
    category = unicodedata.category(sign)
    if category[0] == "M" or category == "Cf":
        return JOINS
    if category[0] == "L" and unicodedata.name(sign, "").startswith(SINGLE):
        return ONE
    if category[0] == "N":
        return DIGIT
    return LETTER if category[0] == "L" or sign == "_" else SIGN


def _goes_on(text: str, clusters: Sequence[tuple[int, int, int]], n: int) -> bool:
    """Whether a cluster belongs to the word of the one before it."""
    (left, end, before), (start, stop, kind) = clusters[n - 1], clusters[n]
    after = clusters[n + 1][2] if n + 1 < len(clusters) else BLANK
    if kind in (LETTER, DIGIT) and before in (LETTER, DIGIT):
        return True
    if kind == SIGN and text[start:stop] in INNER and before == LETTER and after == LETTER:
        return True
    if kind == SIGN and text[start:stop] in POINTS and before == DIGIT and after == DIGIT:
        return True
    if before == SIGN and n > 1:
        sign, earlier = text[left:end], clusters[n - 2][2]
        if (sign in INNER and earlier == kind == LETTER) or (sign in POINTS and earlier == kind == DIGIT):
            return True
    return kind == before == SIGN and text[start:stop] == text[left:end]


def text_document(text: str, tokens: str = "words", **more: Any) -> Document:
    """A text as a document: its tokens, and in ``extra`` the text and the places of the tokens in it."""
    places = tokenize(text, tokens)
    extra = {"text": text, "offsets": [list(place) for place in places]}
    return Document([text[start:stop] for start, stop in places], extra=extra, **more)


def located(tokens: Sequence[Any], extra: Mapping[str, Any]) -> tuple[str, list[tuple[int, int]]] | None:
    """The text of a document and the places of its tokens in it; None if there are none that fit the tokens.

    >>> located(["the", "cat"], {"text": "the  cat", "offsets": [[0, 3], [5, 8]]})
    ('the  cat', [(0, 3), (5, 8)])
    """
    text, places = extra.get("text"), extra.get("offsets")
    if not isinstance(text, str) or not isinstance(places, list) or len(places) != len(tokens):
        return None
    end, found = 0, []
    for place in places:
        if not isinstance(place, (list, tuple)) or [type(at) for at in place] != [int, int]:
            return None
        if not end <= place[0] < place[1] <= len(text):
            return None
        end = place[1]
        found.append((place[0], place[1]))
    return text, found


def read_text(
    source: Source | Sequence[Source], tokens: str = "words", documents: str | None = None, *, skip: Skip | None = None
) -> Iterator[Document]:
    r"""Read plain text in UTF-8: one document for each line, or for each file.

    Parameters
    ----------
    source : path, stream, or list of paths
        One file, or a folder or several files, each of which is a document. From a folder, all files that end in
        ``.txt``, ``.text`` or ``.md`` are read, also those in its folders.
    tokens : {"words", "blanks", "characters"}
        How the text is cut, see :func:`tokenize`.
    documents : {"line", "file"}, optional
        What a document is. By default a line for one file, and a file for several. Lines without tokens are left out.
    skip : callable, optional
        Called with the error of each line that is not UTF-8, which is then left out. Without it, the error is raised.

    Yields
    ------
    Document
        Its tokens are strings. ``extra`` has ``"text"`` and ``"offsets"``, the places of the tokens in it, for exports.
        The name is that of the file, with the number of the line if a line is a document.

    Raises
    ------
    DataFileError
        If a file is not UTF-8 or has no token; it names the line.

    Examples
    --------
    >>> import io
    >>> first, second = read_text(io.StringIO("Hello,  world!\n\nBye.\n"))
    >>> first.tokens, first.extra["offsets"]
    (['Hello', ',', 'world', '!'], [[0, 5], [5, 6], [8, 13], [13, 14]])
    """
    if documents not in (None, *DOCUMENTS):
        raise ValueError(f"documents is {documents!r}, expected {' or '.join(DOCUMENTS)}")
    several = isinstance(source, (list, tuple)) or (isinstance(source, (str, os.PathLike)) and os.path.isdir(source))
    files = text_files(source if isinstance(source, (list, tuple)) else [source]) if several else [(source, "")]
    whole = (documents or ("file" if several else "line")) == "file"
    found = chain.from_iterable(
        [_of_file(path, name, tokens)] if whole else _of_lines(path, name, tokens, skip) for path, name in files
    )
    for number, document in enumerate(found):
        yield replace(document, number=number)


def text_files(paths: Sequence[Any]) -> list[tuple[Any, str]]:
    """The files of plain text that paths name, folders unfolded, each with the name of its document."""
    found: list[tuple[Any, str]] = []
    for path in paths:
        if not os.path.isdir(path):
            found.append((path, Path(path).stem))
            continue
        inside = sorted(
            file
            for file in Path(path).rglob("*")
            if file.suffix.lower() in ENDINGS and file.is_file() and not file.name.startswith(".")
        )
        if not inside:
            raise DataFileError(os.fspath(path), 1, f"the folder has no file of text ({', '.join(ENDINGS)})")
        found += [(file, file.relative_to(path).with_suffix("").as_posix()) for file in inside]
    return found


def _of_lines(source: Source, name: str, tokens: str, skip: Skip | None) -> Iterator[Document]:
    """One document per line."""
    with reading(source, skip is not None) as (file, lines):
        stem = name or ("" if hasattr(source, "read") else Path(file).stem)
        n = 0
        for number, line in lines:
            with skipping(skip):
                check_line(line, n)
                called = f"{stem}:{number}" if stem else f"line {number}"
                document = text_document(line, tokens, name=called, lines=(number,), file=file)
                if document.tokens:
                    n += 1
                    yield document
        if not n:
            raise empty_file(file)


def _of_file(source: Source, name: str, tokens: str) -> Document:
    """A whole file."""
    if hasattr(source, "read"):
        file, content = str(getattr(source, "name", "<stream>")), source.read()
    else:
        file = os.fspath(source)
        with open_compressed(source) as stream:
            content = stream.read()
    if isinstance(content, bytes):
        try:
            content = content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            problem = f"byte 0x{content[error.start]:02x} at {error.start + 1} of the file, expected UTF-8"
            raise DataFileError(file, line, problem) from None
    text = str(content).removeprefix("\ufeff")
    stem = name or ("" if hasattr(source, "read") else Path(file).stem)
    document = text_document(text, tokens, name=stem, file=file)
    if not document.tokens:
        raise DataFileError(file, 1, "the file has no text, expected at least one word")
    lines, number, last = [], 1, 0
    for start, _ in document.extra["offsets"]:
        number += text.count("\n", last, start)
        last = start
        lines.append(number)
    return replace(document, lines=tuple(lines))


def is_surely_text(path: Any) -> bool:
    r"""Whether a file cannot be a column file: most lines differ in the number of words, and none has a tab.

    A column file has as many cells on each line; a damaged one has a few lines with another number. A file with one
    line, or with equally many words on more than half of its lines, can be either.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("The cat sat.\nIt was a mat.\n")
    >>> _ = (folder / "b.txt").write_text("the D\ncat N\nsat V\n")
    >>> is_surely_text(folder / "a.txt"), is_surely_text(folder / "b.txt")
    (True, False)
    """
    counts: Counter[int] = Counter()
    try:
        with open_compressed(path) as file:
            for line in file:
                text = line.decode("utf-8-sig")
                if "\t" in text or text.startswith(("{", "[")):
                    return False
                if text.strip():
                    counts[len(text.split())] += 1
    except (OSError, EOFError, UnicodeDecodeError, ImportError):
        return False
    return len(counts) > 1 and 2 * max(counts.values()) <= counts.total()
