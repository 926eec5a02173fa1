"""Borders that nothing marks: why a chain of BIO tags labels more steps of CAD-120 right than a model of segments.

Sub-activities of three of the four people, one level, no default penalties: every weight has `c2=1` times its factor.
A chain of tags like B-reach and I-reach gives probability to tag sequences that are no BIO, such as I-open after
I-reach. A model of segments does not; its tokens are the I- tags, tokens and first steps together are the B- tags. The
study goes from one to the other: the chain, the chain whose illegal successors are forbidden in training and later,
or only in one of them, stronger and weaker penalties of the successors, and segments with and without features of first
and last steps. Videos are held out by people (three folds) and at random (a third of the videos, three draws).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import sets
from hscrf import HSCRF, LBFGS, ChainCRF, Start, Stop, Token, Topology, Trans
from nested import all_right
from runner import Study, main

Tags = list[list[str]]
Fitted = Callable[[Sequence[Any]], Tags]


def chain(transitions: float = 1.0, learned: bool = False, decoded: bool | None = None) -> Callable[..., Fitted]:
    """A chain of tags; ``learned`` and ``decoded`` say whether illegal successors are forbidden there."""

    def fit(X: Sequence[Any], Y: Sequence[Sequence[str]]) -> Fitted:
        features = [Token("label"), Trans("root", penalty=transitions)]
        model = ChainCRF(tags_of(Y, learned), features=features).fit(X, Y)
        if decoded in (None, learned):
            return lambda new: [y.column("label") for y in model.predict(new)]
        other = ChainCRF(tags_of(Y, decoded), features=features, solver=LBFGS(max_iter=1)).fit(X, Y)
        other.coef_ = transferred(model, other)
        return lambda new: [y.column("label") for y in other.predict(new)]

    return fit


def segments(transitions: float = 1.0, edges: Sequence[Any] = (), penalty: float = 1.0) -> Callable[..., Fitted]:
    """A model of segments; ``penalty`` is that of first and last steps."""

    def fit(X: Sequence[Any], Y: Sequence[Sequence[str]]) -> Fitted:
        features = [Token("label"), Trans("root", penalty=transitions)]
        features += [block("label", penalty=penalty) for block in edges]
        model = HSCRF(features=features, c2=1.0, scheme="bio").fit(X, [{"label": tags} for tags in Y])
        return lambda new: [y.column("label", "bio") for y in model.predict(new)]

    return fit


def tags_of(Y: Sequence[Sequence[str]], legal: bool) -> Topology:
    """B- and I- of every label; if ``legal``, I- follows only tags of its label."""
    names = sorted({tag[2:] for tags in Y for tag in tags})
    tags = [prefix + name for name in names for prefix in ("B-", "I-")]
    after = {one: [tag for tag in tags if tag[0] == "B" or tag[2:] == one[2:]] for one in tags}
    return Topology({"label": tags}, successors={"label": after} if legal else None)


def transferred(one: ChainCRF, other: ChainCRF) -> Any:
    """The weights of one model in the order of another, by name; 0 where the first one has none."""
    tables = [model.weights_.astype({"feature": str}) for model in (one, other)]
    names = [zip(table["level"], table["part"], table["feature"], table["states"], strict=True) for table in tables]
    known = dict(zip(names[0], tables[0]["weight"], strict=True))
    return np.array([known.get(name, 0.0) for name in names[1]])


SYSTEMS = {
    "chain of BIO tags": chain(),
    "chain, successors × 10": chain(10.0),
    "chain, successors × 0.01": chain(0.01),
    "chain, learned free, decoded as BIO": chain(decoded=True),
    "chain, learned as BIO, decoded free": chain(learned=True, decoded=False),
    "chain, learned and decoded as BIO": chain(learned=True),
    "segments: tokens": segments(),
    "segments: tokens, successors × 10": segments(10.0),
    "segments: tokens, first steps": segments(edges=(Start,)),
    "segments: tokens, first steps × 10": segments(edges=(Start,), penalty=10.0),
    "segments: tokens, first steps × 30": segments(edges=(Start,), penalty=30.0),
    "segments: tokens, last steps": segments(edges=(Stop,)),
    "segments: tokens, first and last steps": segments(edges=(Start, Stop)),
}


def samples(study: Study) -> list[sets.Set]:
    """Videos of three people, held out by people and at random."""
    if study.variant == "smallest":
        return [replace(fold, name="imitation") for fold in sets.imitation()[0].folds()]
    data = sets.videos(study.data)[0]
    found = [replace(fold, name="held out by people") for fold in data.folds(3)]
    for seed in range(study.pick(0, 1, 3)):
        order = np.random.default_rng(seed).permutation(len(data.train)).tolist()
        cut = 2 * len(order) // 3
        parts = [data.train.take(sorted(some)) for some in (order[:cut], order[cut:])]
        found.append(replace(data, name="held out at random", train=parts[0], test=parts[1], place=f"{seed}"))
    return found


def run(study: Study) -> None:
    for data in samples(study):
        for system, fit in SYSTEMS.items():
            measure(study, data, system, fit)
        study.write(finished=False)
    study.heading("Steps and segments")
    for measure_, caption in (("steps", "Steps with the right label, in %."), ("F1", "F1 of segments, in %.")):
        study.table(measure_, "system", "data", caption, percent=True, spread=False)


def measure(study: Study, data: sets.Set, system: str, fit: Callable[..., Fitted]) -> None:
    keys = {"data": data.name, "system": system, "place": data.place}
    if study.select("steps", **keys):
        return
    level = data.levels[-1]
    truth = data.test.columns[level]
    found = fit(data.train.X, data.train.columns[level])(data.test.X)
    study.record("F1", sets.segment_f1(truth, found), **keys)
    right = all_right(sets.bare_columns({level: truth}), sets.bare_columns({level: found}))
    study.record("steps", float(np.concatenate(right).mean()), **keys)


if __name__ == "__main__":
    raise SystemExit(main(run, __file__, __doc__))
