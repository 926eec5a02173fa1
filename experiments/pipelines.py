"""What people do today with nested labels: pipelines of linear chains, and the features all systems share.

The chains are those of the library: they have the loss of CRFsuite's, and find their penalties as nested models do.
Every system has ``fit(X, columns)``, ``predict(X)`` and ``models``. X holds lists of feature strings for each step,
columns are a dict from level, top to bottom, to the label column (BIO or plain) of each sequence.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from automatic import fit_automatic
from hscrf import LBFGS, ChainCRF

Columns = dict[str, list[list[str]]]
Items = list[list[list[str]]]

# -- features --------------------------------------------------------------------------------------------------------


def shape(word: str) -> str:
    """McX-12 is XxX-00."""
    return "".join("X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else c for c in word[:8])


def brief_shape(word: str) -> str:
    """McX-12 is XxX-0."""
    return "".join(kind for kind, _ in groupby(shape(word)))


def window(name: str, column: Sequence[str], t: int, reach: int) -> list[str]:
    """A column around step t: ``name-1=...`` and so on, ``_`` outside."""
    return [f"{name}{k:+d}={column[t + k] if 0 <= t + k < len(column) else '_'}" for k in range(-reach, reach + 1)]


def neighbours(name: str, column: Sequence[str], t: int) -> list[str]:
    """Step t of a column together with the one before, and with the one after."""
    before, after = (column[k] if 0 <= k < len(column) else "_" for k in (t - 1, t + 1))
    return [f"{name}-1,0={before}|{column[t]}", f"{name}0,+1={column[t]}|{after}"]


def affixes(word: str, longest: int) -> list[str]:
    lengths = range(1, longest + 1)
    return [f"pre={word[:k]}" for k in lengths] + [f"suf={word[-k:]}" for k in lengths]


def word_features(words: Sequence[str]) -> list[list[str]]:
    """A sentence: words in a window of five, pairs of neighbours, affixes, shape."""
    return [
        [*window("w", words, t, 2), *neighbours("w", words, t), f"low={w.lower()}", f"shape={shape(w)}", *affixes(w, 4)]
        for t, w in enumerate(words)
    ]


class Lexicon:
    """The usual tag of a word in training, else of words that end alike; a training word is not counted for itself."""

    def __init__(self, words: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> None:
        self.tables: list[dict[Any, Counter[str]]] = [defaultdict(Counter) for _ in range(3)]
        for sentence, column in zip(words, tags, strict=True):
            for word, tag in zip(sentence, column, strict=True):
                for table, key in zip(self.tables, looks(word), strict=True):
                    table[key][tag] += 1

    def usual(self, word: str, own: str | None = None) -> str:
        for table, key in zip(self.tables, looks(word), strict=True):
            counts = [(n - (tag == own), tag) for tag, n in table.get(key, {}).items()]
            if counts and max(counts)[0] > 0:
                return max(counts)[1]
        return "?"

    def features(self, words: Sequence[str], tags: Sequence[str] | None = None) -> list[list[str]]:
        """Usual tags around each word of a sentence; with its true tags if it is one of the training sentences."""
        usual = [self.usual(word, own) for word, own in zip(words, tags or [None] * len(words), strict=True)]
        return [
            [*window("u", usual, t, 2), *neighbours("u", usual, t), *runs("u", usual, t)] for t in range(len(words))
        ]


def looks(word: str) -> tuple[Any, ...]:
    """What words of one kind share, from fine to coarse."""
    form = word[:1].isupper(), any(c.isdigit() for c in word)
    return word.lower(), (word[-3:].lower(), *form), (word[-1:].lower(), *form)


def runs(name: str, column: Sequence[str], t: int) -> list[str]:
    """The three steps around t together, the two before, the two after."""
    cells = ["_", "_", *column, "_", "_"][t : t + 5]
    return [f"{name}{k:+d}..={'|'.join(cells[k + 2 : k + 2 + n])}" for k, n in ((-2, 2), (-1, 3), (1, 2))]


def citation_features(words: Sequence[str]) -> list[list[str]]:
    """A citation: words and shapes in a window of five, neighbours, affixes, how far from the start."""
    low, shapes = [w.lower() for w in words], [brief_shape(w) for w in words]
    return [
        [*window("w", low, t, 2), *neighbours("w", low, t), *window("s", shapes, t, 2), *neighbours("s", shapes, t)]
        + [f"shape={shape(w)}", *affixes(w, 3), f"step={min(t, 5)}", f"part={5 * t // len(words)}"]
        for t, w in enumerate(words)
    ]


def with_column(X: Items, columns: Sequence[Sequence[str]], name: str) -> Items:
    """Features of a label column added to those of each step: its window, its neighbours, itself with the word."""
    return [
        [
            [*item, *window(name, column, t, 2), *neighbours(name, column, t), f"{name}+w={column[t]}|{item[2]}"]
            for t, item in enumerate(x)
        ]
        for x, column in zip(X, columns, strict=True)
    ]


# -- one chain -------------------------------------------------------------------------------------------------------


class Chain:
    """A chain CRF that finds its penalties among the first ``most`` sequences, unless ``c2`` is a number."""

    def __init__(self, max_iter: int, most: int | None = None, c2: float | str = "auto") -> None:
        self.model, self.most, self.c2 = ChainCRF(solver=LBFGS(max_iter=max_iter)), most, c2

    def fit(self, X: Items, Y: Sequence[Sequence[str]]) -> Chain:
        fit_automatic(self.model, X, Y, self.most, c2=self.c2)
        return self

    def predict(self, X: Items) -> list[list[str]]:
        return [y.column("label") for y in self.model.predict(X)]


# -- pipelines -------------------------------------------------------------------------------------------------------


class Independent:
    """One chain for each level; they know nothing of each other."""

    def __init__(self, max_iter: int = 1000, most: int | None = None, c2: float | str = "auto") -> None:
        self.options = max_iter, most, c2

    def fit(self, X: Items, columns: Mapping[str, Sequence[Sequence[str]]]) -> Independent:
        self.chains = {level: Chain(*self.options).fit(X, column) for level, column in columns.items()}
        return self

    @property
    def models(self) -> dict[str, ChainCRF]:
        return {level: chain.model for level, chain in self.chains.items()}

    def predict(self, X: Items) -> Columns:
        return {level: chain.predict(X) for level, chain in self.chains.items()}


class Cascade(Independent):
    """A chain for each level in the order given; each sees the labels of those before it.

    The true ones in training, the predicted (or ``given``) ones later.
    """

    def __init__(
        self, order: Sequence[str], max_iter: int = 1000, most: int | None = None, c2: float | str = "auto"
    ) -> None:
        super().__init__(max_iter, most, c2)
        self.order = order

    def fit(self, X: Items, columns: Mapping[str, Sequence[Sequence[str]]]) -> Cascade:
        self.levels, self.chains = list(columns), {}
        for level in self.order:
            self.chains[level] = Chain(*self.options).fit(X, columns[level])
            X = with_column(X, columns[level], level)
        return self

    def predict(self, X: Items, given: Mapping[str, list[list[str]]] | None = None) -> Columns:
        found: Columns = dict(given or {})
        for level in self.order:
            if level not in found:
                found[level] = self.chains[level].predict(X)
            X = with_column(X, found[level], level)
        return {level: found[level] for level in self.levels}


class Product:
    """One chain whose labels are the combinations of all levels that occur."""

    def __init__(self, max_iter: int = 1000, most: int | None = None, c2: float | str = "auto") -> None:
        self.chain = Chain(max_iter, most, c2)

    def fit(self, X: Items, columns: Mapping[str, Sequence[Sequence[str]]]) -> Product:
        self.levels = list(columns)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "level 'label' has the state")  # rare labels that look like others
            self.chain.fit(X, joined(columns))
        return self

    @property
    def models(self) -> dict[str, ChainCRF]:
        return {"/".join(self.levels): self.chain.model}

    def predict(self, X: Items) -> Columns:
        rows = [[label.split("/") for label in labels] for labels in self.chain.predict(X)]
        return {level: [[row[k] for row in some] for some in rows] for k, level in enumerate(self.levels)}


def joined(columns: Mapping[str, Sequence[Sequence[str]]]) -> list[list[str]]:
    """Product labels: the labels of all levels of a step as one."""
    return [["/".join(step) for step in zip(*some, strict=True)] for some in zip(*columns.values(), strict=True)]
