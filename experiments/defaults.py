"""The plain call: features and penalties that suit most data.

Users do not know in advance what suits their data, so the plain `HSCRF()` should come close to the best. Six data sets
are described in a handful of ways. A model learns from one part of the *training* sequences and is judged on another,
and the other way round; people are never on both sides. Test data have no part in it, but for CAD-120, which has four
people and no others: there each of three people is judged once. The kitchen is generated, from seeds that no other
study uses. A setting is judged by borders: the mean of whole sequences, F1 of segments over all levels that have any,
and steps that are right at all levels. Where borders are never exact (ECG, kitchen, CAD-120) whole sequences are left
out, steps are right by their states, and borders of an ECG may be off by 40 ms. Every set weighs the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import sets
from hscrf import HSCRF, LBFGS, End, Init, Start, Stop, Token, Trans
from nested import columns_of
from runner import Study, main

DEFAULT = "default"


def like_tokens(block: type[Any]) -> type[Any]:
    """First or last steps with the penalty of tokens, though a segment has only one of each."""

    class LikeTokens(block):  # type: ignore[misc]
        def penalty_factor(self, *known: Any) -> float:
            return Token(self.level, penalty=self.penalty).penalty_factor(*known)

    return LikeTokens


SETTINGS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "no first and last steps": {"edges": ()},
    "no last steps": {"edges": (Start,)},
    "first and last steps like tokens": {"edges": (like_tokens(Start), like_tokens(Stop))},
    "length at the bottom, too": {"bottom": "length"},
    "size at all levels": {"upper": "size"},
    "one penalty for all": {"upper": "one", "bottom": "one"},
    "first and last steps × 1": {"edge_penalty": 1.0},
    "no first and last steps, one penalty": {"edges": (), "upper": "one", "bottom": "one"},
    "fillers without memory": {"fillers": None},
    "transitions × 1": {"transitions": 1.0},
    "transitions × 0.3": {"transitions": 0.3},
    "transitions × 0.03": {"transitions": 0.03},
    "c2 = 0.03": {"c2": 0.03},
    "c2 = 0.3": {"c2": 0.3},
    "c2 = 1": {"c2": 1.0},
}


def model(
    data: sets.Set,
    max_iter: int,
    edges: tuple[Any, ...] = (Start, Stop),
    upper: str = "length",
    bottom: str = "size",
    edge_penalty: float | None = None,
    transitions: float = 0.1,
    c2: float = 0.1,
    **options: Any,
) -> HSCRF:
    """The default with something changed; penalties of the bottom and of the levels above follow their segments."""
    features: list[Any] = []
    for level in data.levels:
        own: Any = bottom if level == data.levels[-1] else upper
        own = 1.0 if own == "one" or (own == "length" and level in data.plain) else own
        features.append(Token(level, penalty=own))
        if level not in data.plain:
            features += [block(level, penalty=own if edge_penalty is None else edge_penalty) for block in edges]
    for level in ("root", *data.levels[:-1]):
        features += [block(level, penalty=transitions) for block in (Init, Trans, End)]
    scheme = {level: "bio" for level in data.levels if level not in data.plain}
    return HSCRF(features=features, c2=c2, scheme=scheme, solver=LBFGS(max_iter=max_iter), **options)


def samples(study: Study) -> list[sets.Set]:
    """Parts of the training data of all sets to learn from, and others to judge by."""
    if study.variant == "smallest":
        return sets.imitation()[0].folds()
    sizes = study.pick(
        {},
        {"CoNLL-2000": 300, "citations": 200, "author names": 300, "ECG": 30},
        {"CoNLL-2000": 1000, "citations": 600, "author names": 600, "ECG": 60},
    )
    found = [fold for name, load in sets.LOADERS.items() for fold in load(study.data, sizes[name])[0].folds()]
    found += sets.meals(range(1000, 1000 + study.pick(1, 2, 4)))
    return found + sets.videos(study.data)[0].folds(3)


def run(study: Study) -> None:
    for data in samples(study):
        for setting, options in SETTINGS.items():
            measure(study, data, setting, options)
        study.write(finished=False)
    write_tables(study)


def measure(study: Study, data: sets.Set, setting: str, options: dict[str, Any]) -> None:
    keys = {"data": data.name, "setting": setting, "fold": data.place}
    if study.select("quality", **keys):
        return
    fitted = model(data, study.pick(5, 150, 300), **options)
    with study.timed(**keys):
        fitted.fit(data.train.X, data.train.rows)
    scores = sets.measures(data, columns_of(fitted.predict(data.test.X), data.plain))
    for name, value in scores.items():
        study.record("score", value, measure=name, **keys)
    study.record("iterations", fitted.n_iter_, **keys)
    study.record("quality", sets.quality(data, scores), **keys)


def write_tables(study: Study) -> None:
    study.heading("Quality")
    caption = "Held-out training sequences: mean of whole sequences, segment F1 and steps, in %."
    study.table("quality", "setting", "data", caption, percent=True, spread=False)
    names = list(dict.fromkeys(r["data"] for r in study.select("quality")))
    means = np.array([[100 * study.mean("quality", setting=s, data=d) for d in names] for s in SETTINGS])
    lines = [["setting", *names, "mean", "worst"]]
    behind = means.max(axis=0) - means
    for name, row in sorted(zip(SETTINGS, behind.tolist(), strict=True), key=lambda pair: float(np.mean(pair[1]))):
        lines.append([name, *(f"{gap:.1f}" for gap in (*row, np.mean(row), max(row)))])
    study.lines(lines, "Points behind the best setting of each data set.")
    lines = [["taken away or changed", *names, "mean"]]
    for name, row in zip(SETTINGS, (means - means[0]).tolist(), strict=True):
        if name != DEFAULT:
            lines.append([name, *(f"{gap:+.1f}" for gap in (*row, np.mean(row)))])
    study.lines(lines, "Points gained or lost against the default.")
    study.table("seconds", "setting", "data", "Seconds of a fit.", digits=1, spread=False)


if __name__ == "__main__":
    raise SystemExit(main(run, __file__, __doc__))
