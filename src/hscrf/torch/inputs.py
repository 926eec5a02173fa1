"""Observations as tensors: vocabularies and scales learned from training data, and batches for a network."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import add
from typing import Any

import numpy as np
import torch

from hscrf.arrays import Floats
from hscrf.io.template_files import default_template
from hscrf.io.templates import word_shape
from hscrf.torch.columns import Read, columns_of_sequence
from hscrf.torch.modules import pad

PADDING, UNKNOWN = 0, 1  # the first two numbers of every vocabulary
TEXTS = ("word", "token", "text", "w", "form")  # names of columns that hold words
AFFIXES = (1, 2, 3, 4)  # characters at the beginning and at the end of a word that are read together
OFTEN = 2  # times that an affix or a shape must occur to be known
LONGEST = 24  # characters of a word that are read: the first and the last twelve


class Inputs:
    """Vocabularies and scales that turn observations into tensors.

    A step is a string (a word), a dict of strings and numbers, a list of strings (a bag of features), or a row of
    numbers. A sequence is a list of steps, an array (T, F), a sparse matrix or a table. Words are looked up in lower
    case with digits as 0; characters are unchanged. What a word begins and ends with, and its shape, are columns too
    (:func:`spelling`). Numbers are scaled to mean 0 and deviation 1 in the training data.
    A missing number (NaN or absent) is 0. A column with missing numbers in the training data gets a second column that
    marks them. Features with weights of their own are those of bags, and those that
    :func:`hscrf.io.template_files.default_template` finds in words and other names; they occur at least twice, and only
    the most frequent 20,000 are kept.

    Parameters
    ----------
    min_count : int
        Words that occur less often are unknown.

    Examples
    --------
    >>> inputs = Inputs().fit([["The", "cat"], ["A", "dog", "barks"]])
    >>> inputs.columns["word"], inputs.text
    (7, 'word')
    >>> batch = inputs.batch(inputs.encode([["The", "unseen"]]))
    >>> batch["names"][0, :, 0].tolist(), batch["characters"].shape
    ([6, 1], torch.Size([1, 2, 6]))
    """

    most_features = 20_000  # with weights of their own

    def __init__(self, min_count: int = 1) -> None:
        self.min_count = min_count
        self.names: dict[str, dict[str, int]] = {}  # by column: the number of each name
        self.alphabet: dict[str, int] = {}
        self.bag: dict[str, int] = {}
        self.features: dict[str, int] = {}  # those with weights of their own
        self.numbers: list[str] = []  # numeric columns
        self.mean = self.scale = np.zeros(0)
        self.missing: list[int] = []  # numeric columns that lack values in the training data
        self.text: str | None = None
        self.rare: Any = None  # bool tensor: which numbers are of words that occur once in the training data

    @property
    def columns(self) -> dict[str, int]:
        """Columns of names, with the sizes of their vocabularies."""
        return {column: len(numbers) + 2 for column, numbers in self.names.items()}

    @property
    def sizes(self) -> dict[str, Any]:
        """The arguments of :class:`hscrf.torch.ColumnEmbedding` that fit these inputs."""
        return {
            "columns": self.columns,
            "text": self.text,
            "characters": len(self.alphabet) + 2 if self.text is not None else 0,
            "bag": len(self.bag) + 2 if self.bag else 0,
            "numbers": len(self.numbers) + len(self.missing),
        }

    @property
    def n_features(self) -> int:
        """Number of features with weights of their own, padding included; 0 if there are none."""
        return len(self.features) + 2 if self.features else 0

    # -- learning

    def fit(self, X: Sequence[Any]) -> Inputs:
        """Learn vocabularies and scales.

        Parameters
        ----------
        X : list of sequences
            Training data.

        Returns
        -------
        Inputs
            This object.
        """
        counts: dict[str, Counter[str]] = {}
        bag: Counter[str] = Counter()
        read_all: list[Read] = []
        letters: set[str] = set()
        found: list[Floats] = []
        for n, x in enumerate(X):
            read = columns_of_sequence(x, n)
            if self.text is None and read.names:
                self.text = next((column for column in TEXTS if column in read.names), next(iter(read.names)))
            for column, values in self._lookups(read).items():
                counts.setdefault(column, Counter()).update(values)
            bag.update(name for step in read.bag for name in step)
            if read.width is not None and self.numbers and read.width != len(self.numbers):
                raise ValueError(f"X[{n}] has {read.width} columns; expected {len(self.numbers)}, as X[0] has")
            self.numbers += [column for column in read.numbers if column not in self.numbers]
            found.append(self._table(read, n))
            read_all.append(read)
            letters.update(*read.names.get(self.text or "", ()))
        derived = spelling(self.text or "", "")
        least = {column: max(OFTEN, self.min_count) if column in derived else self.min_count for column in counts}
        self.names = {column: numbered_names(count, least[column]) for column, count in counts.items()}
        self.bag, self.alphabet = numbered_names(bag, self.min_count), numbered_names(Counter(letters), 1)
        if self.text is not None:
            words = self.names[self.text]
            self._mark_rare([words[word] for word, count in counts[self.text].items() if count == 1 and word in words])
        table = np.concatenate(
            [np.pad(t, ((0, 0), (0, len(self.numbers) - t.shape[1])), constant_values=np.nan) for t in found]
        )
        self._fit_scales(table)
        self._fit_features(read_all)
        return self

    def _fit_features(self, read_all: Sequence[Read]) -> None:
        counts = Counter(name for read in read_all for step in self._features(read) for name in step)
        often = sorted((-count, name) for name, count in counts.items() if count >= OFTEN)
        self.features = in_order_of(sorted(name for _, name in often[: self.most_features]))

    def _features(self, read: Read) -> list[list[str]]:
        """The features of each step that a linear model would have."""
        found = [list(step) for step in read.bag] or [[] for _ in range(read.length)]
        if self.text is None:
            return found
        derived, nothing = spelling(self.text, ""), [""] * read.length
        columns = [self.text, *(name for name in self.names if name != self.text and name not in derived)]
        rows = list(zip(*(read.names.get(column, nothing) for column in columns), strict=True))
        return list(map(add, found, features_of_words(tuple(columns)).apply(rows)))

    def _mark_rare(self, numbers: Sequence[int]) -> None:
        self.rare = torch.zeros(self.columns[self.text or ""], dtype=torch.bool)
        self.rare[list(numbers)] = True

    def _lookups(self, read: Read) -> dict[str, Sequence[str]]:
        """What is looked up in the vocabulary of each column: names, and the spelling of words."""
        if self.text not in read.names:
            return dict(read.names)
        words = read.names[self.text]
        parts = [spelling(self.text, word) for word in words]
        derived = {column: [part[column] for part in parts] for column in parts[0]}
        return {**read.names, self.text: list(map(lookup_form, words)), **derived}

    def _fit_scales(self, table: Floats) -> None:
        known = ~np.isnan(table)
        count = np.maximum(known.sum(axis=0), 1)
        self.mean = np.where(known, table, 0.0).sum(axis=0) / count
        spread = np.sqrt((np.where(known, table - self.mean, 0.0) ** 2).sum(axis=0) / count)
        self.scale = np.where(spread > 0, spread, 1.0)
        self.missing = np.flatnonzero(~known.all(axis=0)).tolist()

    def _table(self, read: Read, n: int) -> Floats:
        """Numeric columns (T, F) in their order; unknown ones are left out."""
        if read.width is not None and read.width != len(self.numbers):
            raise ValueError(f"X[{n}] has {read.width} columns; expected {len(self.numbers)}, as in training")
        table = np.full((read.length, len(self.numbers)), np.nan)
        for k, column in enumerate(self.numbers):
            if column in read.numbers:
                table[:, k] = read.numbers[column]
        if np.isinf(table).any():
            t, k = map(int, np.argwhere(np.isinf(table))[0])
            raise ValueError(
                f"X[{n}] is {table[t, k]} at step {t}, column {self.numbers[k]!r}; expected a finite number"
            )
        return table

    # -- using

    def encode(self, X: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the tensors of each sequence.

        Parameters
        ----------
        X : list of sequences
            Data of the same kind as the training data.

        Returns
        -------
        list of dict of tensors
            One dict for each sequence.
        """
        return [self._encode(columns_of_sequence(x, n), n) for n, x in enumerate(X)]

    def _encode(self, read: Read, n: int) -> dict[str, Any]:
        found = {"length": torch.tensor(read.length)}
        derived = spelling(self.text or "", "")
        known = [*(column for column in self.names if column not in derived), *self.numbers]
        if not (read.bag and self.bag) and {*known}.isdisjoint({*read.names, *read.numbers}):
            expected = f"the columns {', '.join(map(repr, known[:5]))}" if known else "lists of strings"
            raise ValueError(f"X[{n}] has nothing that training had; expected {expected}")
        if self.names:
            values, nothing = self._lookups(read), [""] * read.length
            rows = [
                [numbers.get(value, UNKNOWN) for value in values.get(column, nothing)]
                for column, numbers in self.names.items()
            ]
            found["names"] = torch.tensor(rows).T
        if self.text is not None:
            found["characters"] = self._characters(read.names.get(self.text, [""] * read.length))
        if self.bag:
            steps = [[self.bag.get(name, UNKNOWN) for name in step] for step in read.bag or [[]] * read.length]
            found["bag"] = square(steps)
        if self.features:
            steps = [[self.features[name] for name in step if name in self.features] for step in self._features(read)]
            found["features"] = square(steps)
        if self.numbers:
            table = (self._table(read, n) - self.mean) / self.scale
            flags = np.isnan(table[:, self.missing])
            found["numbers"] = torch.from_numpy(np.hstack([np.nan_to_num(table), flags]).astype(np.float32))
        return found

    def _characters(self, words: Sequence[str]) -> Any:
        half = LONGEST // 2
        cut = [word if len(word) <= LONGEST else word[:half] + word[-half:] for word in words]
        return square([[self.alphabet.get(letter, UNKNOWN) for letter in word] for word in cut])

    def batch(self, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return padded tensors of several sequences.

        Parameters
        ----------
        items : sequence of dict
            Sequences from :meth:`encode`.

        Returns
        -------
        dict of tensors
            The tensors (B, T, ...) of all items; ``lengths`` (B,) are their numbers of steps.
        """
        found = {"lengths": torch.stack([item["length"] for item in items])}
        for key in items[0]:
            if key in ("characters", "bag", "features"):
                most = max(item[key].shape[1] for item in items)
                widened = [torch.nn.functional.pad(item[key], (0, most - item[key].shape[1])) for item in items]
                found[key] = pad(widened)
            elif key != "length":
                found[key] = pad([item[key] for item in items])
        return found

    def hide_rare(self, names: Any, share: float, generator: Any) -> Any:
        """Replace some of the words that occur once by the unknown word, so that it is trained too.

        Parameters
        ----------
        names : tensor (B, T, K)
            Numbers of names.
        share : float
            Share of the rare words to replace.
        generator : torch.Generator
            Source of randomness.

        Returns
        -------
        tensor (B, T, K)
        """
        if self.rare is None or self.text is None:
            return names
        k = list(self.names).index(self.text)
        rare = self.rare[names[..., k]]
        hidden = rare & (torch.rand(rare.shape, generator=generator) < share)
        names = names.clone()
        names[..., k][hidden] = UNKNOWN
        return names

    # -- files

    def to_json(self) -> dict[str, Any]:
        """Return the content for a JSON file, which :meth:`from_json` reads.

        Returns
        -------
        dict
        """
        return {
            "names": {column: list(numbers) for column, numbers in self.names.items()},
            "alphabet": list(self.alphabet),
            "bag": list(self.bag),
            "features": list(self.features),
            "numbers": self.numbers,
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "missing": self.missing,
            "text": self.text,
            "rare": [] if self.rare is None else self.rare.nonzero().flatten().tolist(),
            "min_count": self.min_count,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Inputs:
        """Return inputs with the content of :meth:`to_json`.

        Parameters
        ----------
        content : mapping
            From :meth:`to_json`.

        Returns
        -------
        Inputs
        """
        found = cls(content["min_count"])
        found.names = {column: in_order_of(names) for column, names in content["names"].items()}
        found.alphabet, found.bag = in_order_of(content["alphabet"]), in_order_of(content["bag"])
        found.features = in_order_of(content.get("features", ()))  # files of version 1 have none
        found.numbers, found.missing, found.text = content["numbers"], content["missing"], content["text"]
        found.mean, found.scale = np.array(content["mean"]), np.array(content["scale"])
        if found.text is not None:
            found._mark_rare(content["rare"])
        return found


def lookup_form(word: str) -> str:
    """A word as vocabularies hold it: in lower case, digits as 0.

    >>> lookup_form("B-52")
    'b-00'
    """
    return re.sub(r"\d", "0", word.lower())


features_of_words = lru_cache(default_template)  # columns of names -> template


@lru_cache(maxsize=1 << 16)
def spelling(column: str, word: str) -> dict[str, str]:
    """The first and last characters of a word in lower case, and its shape: names of columns, and values.

    >>> spelling("word", "Ulm")["word[:2]"], spelling("word", "Ulm")["word[-2:]"], spelling("word", "Ulm")["word shape"]
    ('ul', 'lm', 'Aaa')
    """
    form = lookup_form(word)
    found = {f"{column}[:{k}]": form[:k] for k in AFFIXES} | {f"{column}[-{k}:]": form[-k:] for k in AFFIXES}
    return found | {f"{column} shape": word_shape(word)}


def numbered_names(counts: Counter[str], least: int) -> dict[str, int]:
    """Names that occur often enough, numbered in the order of their spelling."""
    return in_order_of(sorted(name for name, count in counts.items() if count >= least))


def in_order_of(names: Sequence[str]) -> dict[str, int]:
    """Number names in their order, from 2 on."""
    return {name: k for k, name in enumerate(names, start=2)}


def square(rows: Sequence[Sequence[int]]) -> Any:
    """Lists of numbers as one tensor, with padding behind the shorter ones."""
    widest = max(1, max(map(len, rows)))
    return torch.tensor([[*row, *[PADDING] * (widest - len(row))] for row in rows])
