"""One nested model behind the interface of the pipelines, and the scores that judge all of them alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import hscrf
from automatic import fit_automatic
from hscrf import datasets, metrics
from runner import Study

Columns = dict[str, list[list[str]]]


class Nested:
    """All levels at once: an HSCRF that finds its penalties among the first ``most`` sequences, or is given ``c2``.

    Levels are BIO columns but for those in ``plain``.
    """

    def __init__(
        self,
        features: Sequence[Any],
        max_iter: int = 1000,
        most: int | None = None,
        plain: Sequence[str] = (),
        c2: float | str = "auto",
    ) -> None:
        self.plain, self.most, self.c2 = plain, most, c2
        self.model = hscrf.HSCRF(features=features, solver=hscrf.LBFGS(max_iter=max_iter))

    def fit(self, X: Sequence[Any], columns: Mapping[str, Sequence[Sequence[str]]]) -> Nested:
        self.model.set_params(scheme={level: "bio" for level in columns if level not in self.plain})
        fit_automatic(self.model, X, rows(columns), self.most, c2=self.c2)
        return self

    @property
    def models(self) -> dict[str, hscrf.HSCRF]:
        return {"all levels": self.model}

    def predict(self, X: Sequence[Any], given: Mapping[str, Sequence[Sequence[str]]] | None = None) -> Columns:
        """The best labels; those of the levels ``given`` are evidence."""
        found = self.model.predict(X, evidence=rows(given) if given else None)
        return columns_of(found, self.plain)


def rows(columns: Mapping[str, Sequence[Sequence[str]]]) -> list[dict[str, Sequence[str]]]:
    """A dict from level to column for each sequence."""
    return [dict(zip(columns, some, strict=True)) for some in zip(*columns.values(), strict=True)]


def columns_of(labels: Sequence[hscrf.Labels], plain: Sequence[str] = ()) -> Columns:
    """Label columns of every level, BIO but for those in ``plain``."""
    levels = labels[0].topology.levels[1:]
    return {level: [y.column(level, "plain" if level in plain else "bio") for y in labels] for level in levels}


def made_up(n: int, sizes: Sequence[int], durations: Sequence[float], seed: int) -> tuple[list[list[str]], Columns]:
    """Generated words and nested columns: a word is the name of its lowest state and a digit, one in ten is noise."""
    random = np.random.default_rng(seed)
    _, Y = datasets.make_nested(n, sizes=sizes, length=(12, 20), durations=durations, random_state=seed)
    bottom, states = Y[0].topology.levels[-1], Y[0].topology.states[-1]
    words = [
        [
            f"{random.choice(states) if random.random() < 0.1 else state}{random.integers(3)}"
            for state in y.column(bottom)
        ]
        for y in Y
    ]
    return words, columns_of(Y, (bottom,) if durations[-1] == 1 else ())


# -- scores ----------------------------------------------------------------------------------------------------------


def judge(study: Study, truth: Columns, found: Columns, seen: Columns, plain: Sequence[str] = (), **keys: Any) -> None:
    """Record what is right: per level, at all levels, whole sequences; and broken nesting, judged by what was seen."""
    for level in truth:
        study.record("accuracy", level_accuracy(truth[level], found[level]), measure=f"{level} accuracy", **keys)
        if level not in plain:
            f1 = metrics.conlleval(truth[level], found[level]).f1
            study.record("accuracy", f1, measure=f"{level} F1", **keys)
    right = all_right(truth, found)
    study.record("accuracy", np.concatenate(right).mean(), measure="all levels right", **keys)
    study.record("accuracy", np.mean([some.all() for some in right]), measure="sequences right", **keys)
    study.record("violations", violations(found, seen), **keys)


def level_accuracy(truth: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> float:
    return float(np.mean([a == b for x, y in zip(truth, found, strict=True) for a, b in zip(x, y, strict=True)]))


def all_right(truth: Columns, found: Columns) -> list[Any]:
    """For each sequence, which steps are right at every level."""
    pairs = zip(steps(truth), steps(found), strict=True)
    return [np.array([a == b for a, b in zip(x, y, strict=True)]) for x, y in pairs]


def steps(columns: Columns) -> list[list[tuple[str, ...]]]:
    """The labels of all levels for each step of each sequence."""
    return [list(zip(*some, strict=True)) for some in zip(*columns.values(), strict=True)]


def violations(found: Columns, seen: Columns) -> int:
    """Steps that break the nesting: a child goes on where its parent starts, or sits where no such child was seen."""
    legal = {tuple(map(kind, step)) for some in steps(seen) for step in some}
    return sum(tuple(map(kind, step)) not in legal or crosses(step) for some in steps(found) for step in some)


def kind(tag: str) -> str:
    """The state that a BIO tag or a plain label names."""
    return tag[2:] if tag[:2] in ("B-", "I-") else tag


def crosses(step: Sequence[str]) -> bool:
    """A segment starts here, but one below goes on."""
    return any(upper[:2] == "B-" and lower[:2] == "I-" for upper, lower in pairwise(step))


def compare_sequences(truth: Columns, one: Columns, other: Columns) -> tuple[int, int, float]:
    """Sequences that only one system, only the other has right, and McNemar's exact two-sided p."""
    from scipy import stats

    a, b = ([bool(some.all()) for some in all_right(truth, found)] for found in (one, other))
    first = sum(x and not y for x, y in zip(a, b, strict=True))
    second = sum(y and not x for x, y in zip(a, b, strict=True))
    p = float(stats.binomtest(first, first + second).pvalue) if first + second else 1.0
    return first, second, p
