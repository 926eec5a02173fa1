"""Six data sets as a new user would bring them: features of each step, a label column for each level.

Words are described by the template that `hscrf fit` takes by default, so "the plain call" means what a new user gets.
Every set has training sequences, test sequences, and the groups (people, documents) that folds must not cut. Columns
are BIO tags but for levels in ``plain``. ``most`` cuts the training data down to their beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hscrf import datasets, metrics
from hscrf.io.template_files import default_template
from indoor import kitchen, window
from nested import Columns, all_right, columns_of, made_up
from runner import take

WAVE_TOLERANCE = 2  # steps of 20 ms by which a border of an ECG may be off
LEADS = (1, 7, 10)  # II, V2 and V5 of the twelve
NEAR = range(-10, 11, 2)  # steps around the one that is described


@dataclass(frozen=True)
class Data:
    """Sequences, their features and labels."""

    X: list[Any]
    columns: Columns  # level, from top to bottom -> a column for each sequence
    groups: list[str]  # whom a sequence belongs to

    def __len__(self) -> int:
        return len(self.X)

    def take(self, which: Sequence[int]) -> Data:
        columns = {level: take(column, which) for level, column in self.columns.items()}
        return Data(take(self.X, which), columns, take(self.groups, which))

    @property
    def rows(self) -> list[dict[str, list[str]]]:
        """A dict from level to column for each sequence, as ``HSCRF.fit`` takes it."""
        return [dict(zip(self.columns, some, strict=True)) for some in zip(*self.columns.values(), strict=True)]


@dataclass(frozen=True)
class Set:
    """A data set: what to learn from, what to test, and how it is judged."""

    name: str
    train: Data
    test: Data
    plain: tuple[str, ...] = ()  # levels of single steps
    exact: bool = True  # whether borders are exact, so that whole sequences may be right
    tolerance: int = 0  # steps by which a border may be off
    place: str = ""  # among sets of one name: a seed, a person

    def folds(self, k: int = 2, seed: int = 0) -> list[Set]:
        """Parts of the training data to learn from and others to judge by; no group is on both sides."""
        groups = sorted(set(self.train.groups))
        order = np.random.default_rng(seed).permutation(len(groups))
        found = []
        for n in range(min(k, len(groups))):
            held = {groups[g] for g in order[n::k]}
            inside = [group in held for group in self.train.groups]
            parts = [[m for m, here in enumerate(inside) if here is side] for side in (False, True)]
            found.append(replace(self, train=self.train.take(parts[0]), test=self.train.take(parts[1]), place=f"{n}"))
        return found

    @property
    def levels(self) -> list[str]:
        return list(self.train.columns)


# -- the sets ---------------------------------------------------------------------------------------------------------


def words(tokens: Sequence[Sequence[str]]) -> list[list[list[str]]]:
    """The features that `hscrf fit` makes of words."""
    template = default_template(["word"])
    return [template.apply([[word] for word in some]) for some in tokens]


def numbered(n: int) -> list[str]:
    """A group for each sequence."""
    return [f"{k:06d}" for k in range(n)]


def conll(folder: str | None, most: int | None) -> list[Set]:
    """CoNLL-2000: chunk > part of speech, both from the words alone."""
    parts = []
    for split, n in (("train", most), ("test", None)):
        found = datasets.load_conll2000(folder, split)
        columns = {level: found.columns[level][:n] for level in ("chunk", "pos")}
        parts.append(Data(words(found.tokens[:n]), columns, numbered(len(found.tokens[:n]))))
    return [Set("CoNLL-2000", *parts, plain=("pos",))]


def citations(folder: str | None, most: int | None) -> list[Set]:
    """UMass citations: field > part > name."""
    parts = []
    for split, n in (("train", most), ("test", None)):
        found = datasets.load_citations(folder, split)
        columns = {level: found.columns[level][:n] for level in ("field", "part", "name")}
        parts.append(Data(words(found.tokens[:n]), columns, numbered(len(found.tokens[:n]))))
    return [Set("citations", *parts)]


def names(folder: str | None, most: int | None) -> list[Set]:
    """Author names of GROBID: person > part."""
    parts = []
    for split, n in (("train", most), ("test", None)):
        found = datasets.load_author_names(folder, split)
        columns = {level: found.columns[level][:n] for level in ("person", "part")}
        parts.append(Data(words(found.tokens[:n]), columns, numbered(len(found.tokens[:n]))))
    return [Set("author names", *parts)]


def waves(folder: str | None, most: int | None) -> list[Set]:
    """ECG of LUDB: kind of beat > wave, in steps of 20 ms, from the first annotated beat on; odd records train."""
    sides = [datasets.load_ecg(folder, split) for split in ("train", "test")]
    raw = [[described_signal(volts) for volts in side.tokens[:n]] for side, n in zip(sides, (most, None), strict=True)]
    stacked = np.concatenate(raw[0])
    mean, scale = stacked.mean(axis=0), stacked.std(axis=0) + 1e-9
    parts = [beats(side, described, mean, scale) for side, described in zip(sides, raw, strict=True)]
    return [Set("ECG", *parts, exact=False, tolerance=WAVE_TOLERANCE)]


def described_signal(volts: Any) -> Any:
    """For each step of 20 ms: three leads without their drift, how steep all leads are, and its neighbours (T, F)."""
    volts = volts - np.median(volts, axis=0)
    slope = np.log1p(np.abs(np.gradient(volts, axis=0)).sum(axis=1, keepdims=True))
    own = np.concatenate([volts[:, LEADS], slope], axis=1)
    padded = np.pad(own, ((-NEAR[0], NEAR[-1]), (0, 0)), mode="edge")
    return np.concatenate([padded[k - NEAR[0] : k - NEAR[0] + len(own)] for k in NEAR], axis=1)


def beats(side: datasets.Dataset, raw: Sequence[Any], mean: Any, scale: Any) -> Data:
    """Features and columns of some records; a feature is split into what it is above and below its mean."""
    X, columns = [], {"beat": [], "wave": []}  # type: list[Any], Columns
    for n, described in enumerate(raw):
        known = [t for t, tag in enumerate(side.columns["beat"][n]) if tag != "?"]
        begin, end = known[0], known[-1] + 1
        values = np.round((described[begin:end] - mean) / scale, 3)
        X.append([{f"{k}{'+' if v > 0 else '-'}": abs(v) for k, v in enumerate(row) if v} for row in values.tolist()])
        for level, column in columns.items():
            column.append(side.columns[level][n][begin:end])
    return Data(X, columns, side.names[: len(raw)])


def meals(seeds: Sequence[int]) -> list[Set]:
    """The generated kitchen: activity > walk; every seed is a new data set of 45 days to learn from and 45 to test."""
    found = []
    for seed in seeds:
        task = kitchen(seed, 90)
        every = Data(task.X, columns_of(task.Y), numbered(90))
        parts = [every.take(range(45)), every.take(range(45, 90))]
        found.append(Set("kitchen", *parts, exact=False, place=str(seed)))
    return found


def videos(folder: str | None, people: int | None = None) -> list[Set]:
    """CAD-120: activity > sub-activity; one of four people is left to test. Relations within four steps are seen."""
    data = datasets.load_cad120(folder)
    assert data.subjects is not None
    known = [n for n, y in enumerate(data.Y) if y.is_complete]  # four videos have steps without a label
    every = Data([window(x, 4) for x in data.tokens], columns_of_videos(data), list(data.subjects))
    found = []
    for person in sorted(set(data.subjects))[:people]:
        inside = [n for n in known if data.subjects[n] == person]
        parts = [every.take([n for n in known if data.subjects[n] != person]), every.take(inside)]
        found.append(Set("CAD-120", *parts, exact=False, place=person))
    return found


def columns_of_videos(data: datasets.Dataset) -> Columns:
    """BIO columns; unknown steps have a question mark."""
    complete = [y.is_complete for y in data.Y]
    empty: list[str] = []
    return {
        level: [y.column(level, "bio") if known else empty for y, known in zip(data.Y, complete, strict=True)]
        for level in ("activity", "subactivity")
    }


def imitation() -> list[Set]:
    """A small generated set, for tests without data."""
    some, columns = made_up(24, (2, 3), (3, 2), 0)
    every = Data([[[word] for word in words] for words in some], columns, numbered(24))
    return [Set("imitation", every.take(range(16)), every.take(range(16, 24)))]


LOADERS: dict[str, Callable[..., list[Set]]] = {
    "CoNLL-2000": conll,
    "citations": citations,
    "author names": names,
    "ECG": waves,
}

# -- how a set is judged ----------------------------------------------------------------------------------------------


def measures(data: Set, found: Columns) -> dict[str, float]:
    """What is right in the test sequences: whole sequences, segments (F1) of each level, steps at all levels."""
    truth = data.test.columns
    right = all_right(truth, found)
    scores = {"whole": float(np.mean([some.all() for some in right])), "steps": float(np.concatenate(right).mean())}
    scores["states"] = float(np.concatenate(all_right(bare_columns(truth), bare_columns(found))).mean())
    for level in truth:
        if level not in data.plain:
            scores[f"{level} F1"] = segment_f1(truth[level], found[level], data.tolerance)
    return scores


def bare_columns(columns: Columns) -> Columns:
    """Columns without the prefixes of BIO: states, no borders."""
    return {level: [[tag.split("-", 1)[-1] for tag in tags] for tags in some] for level, some in columns.items()}


def quality(data: Set, scores: Mapping[str, float]) -> float:
    """One number by which settings are chosen: the mean of whole sequences, segment F1 and steps.

    Where borders are never exact (signals, videos) whole sequences do not count, and steps are right by their states.
    """
    f1 = float(np.mean([value for name, value in scores.items() if name.endswith(" F1")]))
    return float(np.mean([scores["whole"], f1, scores["steps"]] if data.exact else [f1, scores["states"]]))


def segment_f1(truth: Sequence[Sequence[str]], found: Sequence[Sequence[str]], tolerance: int = 0) -> float:
    """F1 of segments with the right label and both borders within some steps; each is matched once, in order."""
    if not tolerance:
        return float(metrics.conlleval(truth, found).f1)
    right = total = guessed = 0
    for one, other in zip(truth, found, strict=True):
        ours, theirs = spans_of(one), spans_of(other)
        total, guessed, used = total + len(ours), guessed + len(theirs), 0
        for start, stop, label in ours:
            for k in range(used, len(theirs)):
                near = abs(theirs[k][0] - start) <= tolerance and abs(theirs[k][1] - stop) <= tolerance
                if near and theirs[k][2] == label:
                    right, used = right + 1, k + 1
                    break
    return 2 * right / (total + guessed) if total + guessed else 1.0


def spans_of(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Half-open segments of a BIO column without O."""
    found: list[tuple[int, int, str]] = []
    for t, tag in enumerate(tags):
        prefix, _, label = tag.partition("-")
        if tag == "O":
            continue
        if prefix == "I" and found and found[-1][1] == t and found[-1][2] == label:
            found[-1] = (found[-1][0], t + 1, label)
        else:
            found.append((t, t + 1, label))
    return found
