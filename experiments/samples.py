"""Four data sets as the plain call meets them: features of each step, labels of each level, and what is left to test.

CoNLL-2000 (chunks and tags of a part of its sentences), UMass citations (a part of them), the generated kitchen and
CAD-120 as it is. Sequences are judged by the share of their steps that are right at all levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from citations import LEVELS
from hscrf import HSCRF, datasets, metrics
from indoor import kitchen
from joint import described
from nested import made_up, rows
from pipelines import citation_features
from runner import Study, group_folds, take


@dataclass(frozen=True)
class Sample:
    """Sequences to learn from and sequences to test."""

    name: str
    X: list[Any]
    Y: list[Any]
    test_X: list[Any]
    test_Y: list[Any]
    subjects: Sequence[str] = ()  # whom the training sequences show, if that is known
    place: str = ""  # among samples of one name

    def halves(self) -> list[Sample]:
        """Learn from one half of the training sequences and test on the other; of different people where possible."""
        n = len(self.X)
        parts = [part for _, part in group_folds(self.subjects).values()] if self.subjects else []
        first = sorted(parts[0]) if parts else np.random.default_rng(0).permutation(n)[: n // 2].tolist()
        second = sorted(set(range(n)) - set(first))
        return [self.of(*pair) for pair in ((first, second), (second, first))]

    def of(self, learn: Sequence[int], test: Sequence[int], place: str | None = None) -> Sample:
        """Some of the training sequences, and others to test."""
        parts = [take(given, which) for which in (learn, test) for given in (self.X, self.Y)]
        people = take(self.subjects, learn) if self.subjects else ()
        return Sample(self.name, *parts, people, self.place if place is None else place)


def samples(study: Study, small: bool = False) -> list[Sample]:
    """All of them, a part of each if small; those of a kind have one name."""
    if study.variant == "smallest":
        return [imitation()]
    found = [conll(study, small), citations(study)]
    for seed in range(study.pick(1, 1, 3)):
        task = kitchen(seed, 90)
        found.append(Sample("kitchen", task.X[:45], task.Y[:45], task.X[45:], task.Y[45:], place=str(seed)))
    return [*found, *videos(study)[: 2 if small else None]]


def videos(study: Study) -> list[Sample]:
    """CAD-120: one person is left to test."""
    data = datasets.load_cad120(study.data)
    outer = group_folds(data.subjects)
    everything = Sample("CAD-120", data.tokens, data.Y, [], [], data.subjects)
    return [everything.of(*fold, place=name) for name, fold in list(outer.items())[: study.pick(1, 1, None)]]


def imitation() -> Sample:
    words, columns = made_up(24, (2, 3), (3, 1), 0)
    X, Y = [[[word] for word in some] for some in words], rows(columns)
    return Sample("imitation", X[:16], Y[:16], X[16:], Y[16:])


def conll(study: Study, small: bool) -> Sample:
    """Chunks and tags of the first sentences, described as in the study of both."""
    parts = []
    for split, n in (("train", study.pick(0, 300, 600 if small else 250)), ("test", study.pick(0, 200, 300))):
        found = datasets.load_conll2000(study.data, split)
        parts.append((found.tokens[:n], {level: found.columns[level][:n] for level in ("chunk", "pos")}))
    (X, Y), (test_X, test_Y) = described(*parts)
    return Sample("CoNLL-2000", X, rows(Y), test_X, rows(test_Y))


def citations(study: Study) -> Sample:
    """The first citations."""
    parts: list[Any] = []
    for split, n in (("train", study.pick(0, 150, 400)), ("test", study.pick(0, 150, None))):
        found = datasets.load_citations(study.data, split)
        columns = {level: found.columns[level][:n] for level in LEVELS}
        parts += [[citation_features(words) for words in found.tokens[:n]], rows(columns)]
    return Sample("citations", *parts)


def right_steps(model: HSCRF, X: Sequence[Any], Y: Sequence[Any]) -> list[float]:
    """The share of the steps of each sequence that are right at all levels."""
    return [metrics.joint_accuracy([y], [guess]) for y, guess in zip(Y, model.predict(X), strict=True)]
