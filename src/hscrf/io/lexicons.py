"""Lists of words and phrases, and clusters of words: lookup tables of feature templates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from hscrf.errors import TemplateError


class Lexicon(NamedTuple):
    """A list of words and phrases; the words of a phrase are separated by single spaces."""

    name: str
    entries: tuple[str, ...]
    lower: bool = False  # whether words are compared in small letters

    @property
    def longest(self) -> int:
        """The number of words of the longest phrase."""
        return max((entry.count(" ") + 1 for entry in self.entries), default=1)

    def marks(self, words: Sequence[str]) -> list[str | None]:
        """Mark each word: "B" where an entry begins, "I" inside one, None elsewhere.

        >>> Lexicon("cities", ("New York", "York", "Paris")).marks(["in", "New", "York", "City"])
        [None, 'B', 'I', None]
        """
        phrases, longest = _phrases(self)
        words = [word.lower() for word in words] if self.lower else words
        found: list[str | None] = [None] * len(words)
        end = 0  # end of the phrases found so far
        for t in range(len(words)):
            size = next((n for n in range(longest, 0, -1) if " ".join(words[t : t + n]) in phrases), 0)
            inside = t < end
            if inside or size:
                found[t] = "I" if inside else "B"
            end = max(end, t + size)
        return found


@lru_cache(maxsize=64)
def _phrases(lexicon: Lexicon) -> tuple[frozenset[str], int]:
    """The entries as they are compared, and the number of words of the longest."""
    entries = (entry.lower() for entry in lexicon.entries) if lexicon.lower else lexicon.entries
    return frozenset(entries), lexicon.longest


class Clusters(NamedTuple):
    """A cluster for each of some words: its name, such as a path of bits in a tree of clusters."""

    name: str
    words: tuple[str, ...]
    clusters: tuple[str, ...]  # one for each word
    lower: bool = False

    def of(self, word: str) -> str | None:
        """The cluster of a word; None if it has none.

        >>> Clusters("brown", ("cat", "dog"), ("0110", "0111")).of("dog")
        '0111'
        """
        return _table(self).get(word.lower() if self.lower else word)


@lru_cache(maxsize=64)
def _table(clusters: Clusters) -> dict[str, str]:
    pairs = zip(clusters.words, clusters.clusters, strict=True)
    return {word.lower() if clusters.lower else word: cluster for word, cluster in pairs}


def read_lexicon(name: str, table: Mapping[str, Any], folder: str) -> Lexicon:
    """A lexicon from a table of a template: its ``entries``, or a ``file`` with one entry per line."""
    entries = table["entries"] if "entries" in table else _lines(name, table, folder)
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise TemplateError(f"[lexicon.{name}] has entries {entries!r}, expected a list of words and phrases")
    kept = [" ".join(entry.split()) for entry in entries if entry.strip()]
    if not kept:
        raise TemplateError(f"[lexicon.{name}] has no entry, expected words or phrases")
    return Lexicon(name, tuple(dict.fromkeys(kept)), bool(table.get("lower", False)))


def read_clusters(name: str, table: Mapping[str, Any], folder: str) -> Clusters:
    """Clusters from a table of a template: ``entries`` from word to cluster, or a ``file`` of lines word TAB cluster.

    Files of Brown clusters (path TAB word TAB count) are known by their third column.
    """
    if "entries" in table:
        pairs = table["entries"]
        if not isinstance(pairs, Mapping):
            raise TemplateError(f"[cluster.{name}] has entries {pairs!r}, expected a table from word to cluster")
        found = {str(word): str(cluster) for word, cluster in pairs.items()}
    else:
        found = {}
        for number, line in enumerate(_lines(name, table, folder), start=1):
            cells = line.split("\t") if "\t" in line else line.split()
            if not line.strip():
                continue
            if len(cells) not in (2, 3):
                raise TemplateError(f"{table['file']}, line {number}: {line!r} is not a word and its cluster")
            word, cluster = (cells[1], cells[0]) if len(cells) == 3 else cells
            found[word] = cluster
    if not found:
        raise TemplateError(f"[cluster.{name}] has no word, expected lines word TAB cluster")
    return Clusters(name, tuple(found), tuple(found.values()), bool(table.get("lower", False)))


def _lines(name: str, table: Mapping[str, Any], folder: str) -> list[str]:
    """The lines of the file that a table names, which is in the folder of the template."""
    if not isinstance(table.get("file"), str):
        raise TemplateError(f"the table {name!r} names neither file nor entries, expected one of them")
    path = os.path.join(folder, table["file"])
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read().splitlines()
    except OSError as error:
        raise TemplateError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TemplateError(f"{path}: not valid UTF-8") from None
