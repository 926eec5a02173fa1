"""What people do with nested labels today: CRFsuite chains, one a level, in cascades, or of product labels.

Every system finds its L2 penalty by a held-out grid among its first training sequences, chain by chain. Each chain also
tries fillers that remember: O is written with the label that came last before it, so that the chain does not forget it.
The variant with fewer wrong labels is taken.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import pycrfsuite

from nested import Columns
from pipelines import joined, neighbours, window

GRID = (0.03, 0.1, 0.3, 1.0, 3.0)
MEMORY = "@"  # between O and what came before it


class Chain:
    """A linear-chain CRF of CRFsuite."""

    def __init__(self, max_iter: int, most: int, grid: Sequence[float] = GRID) -> None:
        self.max_iter, self.most, self.grid = max_iter, most, grid
        self.c2, self.memory = grid[0], False

    def fit(self, X: Sequence[Any], Y: Sequence[Sequence[str]]) -> Chain:
        """Choose penalty and memory on the first sequences, two thirds against one third; then learn from all."""
        some = min(len(X), self.most)
        cut = max(1, 2 * some // 3)
        wrong: dict[tuple[float, bool], int] = {}
        for c2 in self.grid if some > 1 else self.grid[:1]:
            wrong[c2, False] = self._errors(X[:some], Y[:some], cut, c2, False)
        best, _ = min(wrong, key=lambda key: wrong[key])
        if any("O" in tags for tags in Y):
            wrong[best, True] = self._errors(X[:some], Y[:some], cut, best, True)
        self.c2, self.memory = min(wrong, key=lambda key: wrong[key])
        self.tagger = self._tagger(X, Y, self.c2, self.memory)
        return self

    def predict(self, X: Sequence[Any]) -> list[list[str]]:
        return [forgotten(self.tagger.tag(x)) for x in X]

    def _errors(self, X: Sequence[Any], Y: Sequence[Sequence[str]], cut: int, c2: float, memory: bool) -> int:
        tagger = self._tagger(X[:cut], Y[:cut], c2, memory)
        pairs = ((forgotten(tagger.tag(x)), y) for x, y in zip(X[cut:], Y[cut:], strict=True))
        return sum(a != b for found, y in pairs for a, b in zip(found, y, strict=True))

    def _tagger(self, X: Sequence[Any], Y: Sequence[Sequence[str]], c2: float, memory: bool) -> Any:
        trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
        trainer.set_params({"c1": 0.0, "c2": c2, "max_iterations": self.max_iter})
        for x, y in zip(X, Y, strict=True):
            trainer.append(x, remembering(y) if memory else list(y))
        handle, path = tempfile.mkstemp(suffix=".crfsuite")
        os.close(handle)
        try:
            trainer.train(path)
            with open(path, "rb") as file:
                return Tagger(file.read())
        finally:
            os.remove(path)


class Tagger:
    """A trained model of CRFsuite, and the bytes that it reads, which must live as long."""

    def __init__(self, content: bytes) -> None:
        self.content, self.tagger = content, pycrfsuite.Tagger()
        self.tagger.open_inmemory(content)

    def tag(self, x: Any) -> list[str]:
        found: list[str] = self.tagger.tag(x)
        return found


def remembering(tags: Sequence[str]) -> list[str]:
    """O with the label that came last before it.

    >>> remembering(["O", "B-a", "I-a", "O", "O"])
    ['O@', 'B-a', 'I-a', 'O@a', 'O@a']
    """
    last, found = "", []
    for tag in tags:
        last = last if tag == "O" else tag.split("-", 1)[-1]
        found.append(f"O{MEMORY}{last}" if tag == "O" else tag)
    return found


def forgotten(tags: Sequence[str]) -> list[str]:
    """The inverse of ``remembering``."""
    return ["O" if tag.startswith(f"O{MEMORY}") else tag for tag in tags]


class Independent:
    """One chain for each level; they know nothing of each other."""

    def __init__(self, max_iter: int, most: int, grid: Sequence[float] = GRID) -> None:
        self.options = max_iter, most, grid
        self.chains: dict[str, Chain] = {}

    def fit(self, X: Sequence[Any], columns: Mapping[str, Sequence[Sequence[str]]]) -> Independent:
        self.chains = {level: Chain(*self.options).fit(X, column) for level, column in columns.items()}
        return self

    def predict(self, X: Sequence[Any]) -> Columns:
        return {level: chain.predict(X) for level, chain in self.chains.items()}


class Cascade(Independent):
    """A chain for each level, from the top or from the bottom; each sees the labels of those before it.

    The true ones in training, the predicted ones later.
    """

    def __init__(self, up: bool, max_iter: int, most: int, grid: Sequence[float] = GRID) -> None:
        super().__init__(max_iter, most, grid)
        self.up = up

    def fit(self, X: Sequence[Any], columns: Mapping[str, Sequence[Sequence[str]]]) -> Cascade:
        self.levels = list(columns)
        self.chains = {}
        for level in self.order:
            self.chains[level] = Chain(*self.options).fit(X, columns[level])
            X = with_column(X, columns[level], level)
        return self

    @property
    def order(self) -> list[str]:
        return self.levels[::-1] if self.up else self.levels

    def predict(self, X: Sequence[Any]) -> Columns:
        found: Columns = {}
        for level in self.order:
            found[level] = self.chains[level].predict(X)
            X = with_column(X, found[level], level)
        return {level: found[level] for level in self.levels}


class Product(Independent):
    """One chain whose labels are the combinations of all levels that occur."""

    def fit(self, X: Sequence[Any], columns: Mapping[str, Sequence[Sequence[str]]]) -> Product:
        self.levels = list(columns)
        self.chain = Chain(*self.options).fit(X, joined(columns))
        self.chains = {"product": self.chain}
        return self

    def predict(self, X: Sequence[Any]) -> Columns:
        rows = [[label.split("/") for label in labels] for labels in self.chain.predict(X)]
        return {level: [[row[k] for row in some] for some in rows] for k, level in enumerate(self.levels)}


def with_column(X: Sequence[Any], columns: Sequence[Sequence[str]], name: str) -> list[Any]:
    """Features of a label column added to those of each step: a window of five, and pairs of neighbours."""
    found = []
    for x, column in zip(X, columns, strict=True):
        added = [[*window(name, column, t, 2), *neighbours(name, column, t)] for t in range(len(column))]
        if isinstance(x[0], Mapping):
            found.append([{**step, **dict.fromkeys(more, 1.0)} for step, more in zip(x, added, strict=True)])
        else:
            found.append([[*step, *more] for step, more in zip(x, added, strict=True)])
    return found
