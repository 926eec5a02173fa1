"""Fillers that remember: what `HSCRF(fillers="auto")` is worth, on folds of training data.

`O` erases what a chain knows: after `surname O` nothing tells what came before `O`. With `fillers="auto"` each `O` has
a hidden copy for each state that may be the last one before it under the same parent. Copies share the weights of
their steps; transitions after them have weights of their own. *Weights of their own* lets copies share nothing: `O` is
renamed by what came before it, in the training labels. All have the default features and penalties, and learn from
parts of the training data of three sets with fillers; the other parts judge them. The test data are not touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import sets
from hscrf import HSCRF, LBFGS
from nested import Columns, all_right, columns_of
from runner import Study, main

OFF, ON, APART = "no memory", "fillers remember", "weights of their own"
WAYS = (OFF, ON, APART)


def samples(study: Study) -> list[sets.Set]:
    """Parts of the training data to learn from, and others to judge by."""
    if study.variant == "smallest":
        return sets.imitation()[0].folds()
    sizes = study.pick(
        {},
        {"author names": 300, "citations": 200, "CoNLL-2000": 300},
        {"author names": None, "citations": 800, "CoNLL-2000": 1000},
    )
    loaded = (sets.LOADERS[name](study.data, most)[0] for name, most in sizes.items())
    return [fold for data in loaded for fold in data.folds(study.pick(2, 2, 3))]


def run(study: Study) -> None:
    right: dict[tuple[str, str], list[bool]] = {}
    for data in samples(study):
        for way in WAYS:
            found = measure(study, data, way)
            right.setdefault((data.name, way), []).extend(
                bool(some.all()) for some in all_right(data.test.columns, found)
            )
    write_tables(study, right)


def measure(study: Study, data: sets.Set, way: str) -> Columns:
    """Fit and judge one model."""
    keys = {"data": data.name, "way": way, "fold": data.place}
    train = renamed(data.train.columns, data.plain) if way == APART else data.train.columns
    Y = [dict(zip(train, some, strict=True)) for some in zip(*train.values(), strict=True)]
    scheme = {level: "bio" for level in data.levels if level not in data.plain}
    solver = LBFGS(max_iter=study.pick(5, 150, 300))
    model = HSCRF(fillers="auto" if way == ON else None, scheme=scheme, solver=solver)
    with study.timed(**keys):
        model.fit(data.train.X, Y)
    study.record("weights", model.coef_.size, **keys)
    found = plain_fillers(columns_of(model.predict(data.test.X), data.plain))
    for name, value in sets.measures(data, found).items():
        study.record("score", value, measure=name, **keys)
    return found


def renamed(columns: Columns, plain: Any) -> Columns:
    """The columns with each ``O`` named by the last state before it under the same parent."""
    found: Columns = {}
    above: list[list[str]] | None = None
    for level, column in columns.items():
        if level in plain:
            found[level] = column
        else:
            parents = above or [["I-"] * len(tags) for tags in column]
            found[level] = [renamed_row(tags, parent) for tags, parent in zip(column, parents, strict=True)]
        above = found[level]
    return found


def renamed_row(tags: list[str], parent: list[str]) -> list[str]:
    row: list[str] = []
    last = "none"
    for t, tag in enumerate(tags):
        if t and (parent[t][0] == "B" or (parent[t] == "O") != (parent[t - 1] == "O")):
            last = "none"
        if tag == "O":
            name = f"O after {last}"
            fresh = t == 0 or row[-1][2:] != name or parent[t][0] == "B"
            row.append(f"{'B' if fresh else 'I'}-{name}")
        else:
            last = tag.split("-", 1)[-1]
            row.append(tag)
    return row


def plain_fillers(columns: Columns) -> Columns:
    """The columns with every filler named ``O``."""
    return {
        level: [["O" if tag[2:].startswith("O after ") else tag for tag in tags] for tags in column]
        for level, column in columns.items()
    }


def write_tables(study: Study, right: dict[tuple[str, str], list[bool]]) -> None:
    from scipy import stats

    for name in dict.fromkeys(data for data, _ in right):
        study.heading(name)
        study.table(
            "score",
            rows="way",
            columns="measure",
            percent=True,
            caption=f"Held-out training data, {name}, in %.",
            data=name,
        )
        for way in WAYS[1:]:
            one, other = np.array(right[name, way]), np.array(right[name, OFF])
            first, second = int((one & ~other).sum()), int((other & ~one).sum())
            p = float(stats.binomtest(first, first + second).pvalue) if first + second else 1.0
            study.say(
                f"{name}, {way}: {first} sequences right only with it, {second} only without (McNemar, p = {p:.3g})."
            )
    study.heading("Cost")
    study.table("seconds", rows="way", columns="data", digits=1, caption="Seconds of a core to train.")
    study.table("weights", rows="way", columns="data", digits=0, caption="Weights.")


if __name__ == "__main__":
    main(run, __file__, __doc__)
