"""The plain call: what a sequence is described with, and how strongly weights are held back.

Nobody knows beforehand what suits their data, so the plain `HSCRF()` should never be far from the best. Four data sets
are described in a handful of ways, each with a few penalties; a model learns from one half of the *training* sequences
and is judged on the other half, and the other way round. Test data have no part in it. The rows are *tokens* (the
features of every step at every level, and weights for first, neighbouring and last children), tokens with the features
of the first steps of segments, or of first and last ones, with gamma durations of the top level; and tokens, with and
without first and last steps, whose transitions are penalised less. Durations are slow, and have one penalty only.
*Behind the best* is how far a row is behind the best row of each data set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hscrf import HSCRF, LBFGS, End, Init, Start, Stop, Token, Trans
from runner import Study, main
from samples import Sample, right_steps, samples

SETTINGS: dict[str, dict[str, Any]] = {
    "tokens": {},
    "tokens, transitions × 0.3": {"transitions": 0.3},
    "tokens, transitions × 0.1": {"transitions": 0.1},
    "tokens, transitions × 0.03": {"transitions": 0.03},
    "and first steps": {"edges": (Start,)},
    "and first and last steps": {"edges": (Start, Stop)},
    "and first and last steps, transitions × 0.1": {"edges": (Start, Stop), "transitions": 0.1},
    "and durations at the top": {"durations": True},
}
PENALTIES = (1.0, 0.3, 0.1)


def model(
    levels: Sequence[str],
    unit: bool,
    longest: int,
    c2: float,
    max_iter: int,
    edges: Sequence[Any] = (),
    transitions: float = 1.0,
    durations: bool = False,
) -> HSCRF:
    """A model of some levels; a bottom of single steps has no first and last steps of its own."""
    lasting = levels[:-1] if unit else levels
    features: list[Any] = [Token(level) for level in levels]
    features += [block(level) for level in lasting for block in edges]
    parents = ["root", *levels[:-1]]
    features += [block(level, penalty=transitions) for level in parents for block in (Init, Trans, End)]
    own, limit = ({levels[0]: "gamma"}, {levels[0]: longest}) if durations else (None, None)
    return HSCRF(features=features, durations=own, max_duration=limit, c2=c2, solver=LBFGS(max_iter=max_iter))


def described(y: Any) -> tuple[list[str], bool]:
    """The levels of some labels, and whether the lowest has single steps."""
    if isinstance(y, Mapping):
        return list(y), not any(tag[:2] in ("B-", "I-") for tag in list(y.values())[-1])
    return list(y.topology.levels[1:]), y.topology.unit_bottom


def run(study: Study) -> None:
    chosen = samples(study, small=True)
    for sample in chosen:
        for k, half in enumerate(sample.halves()):
            measure(study, half, k)
    write_tables(study)


def measure(study: Study, sample: Sample, half: int) -> None:
    levels, unit = described(sample.Y[0])
    longest = max(map(len, sample.X))
    for setting, options in SETTINGS.items():
        for c2 in PENALTIES[: 1 if "durations" in options else study.pick(1, 2, None)]:  # durations are slow
            keys = {"data": sample.name, "setting": f"{setting}, c2 = {c2:g}", "fold": f"{sample.place}/{half}"}
            with study.timed(**keys):
                fitted = model(levels, unit, longest, c2, study.pick(5, 50, 150), **options)
                fitted.fit(sample.X, sample.Y)
            right = right_steps(fitted, sample.test_X, sample.test_Y)
            study.record("right", float(np.nanmean(right)), **keys)


def write_tables(study: Study) -> None:
    study.heading("Right at all levels")
    caption = "Steps of held-out training sequences that are right at all levels, in %, mean over sequences."
    study.table("right", "setting", "data", caption, percent=True, spread=False)
    names = list(dict.fromkeys(r["data"] for r in study.select("right")))
    settings = list(dict.fromkeys(r["setting"] for r in study.select("right")))
    means = np.array([[100 * study.mean("right", setting=s, data=d) for d in names] for s in settings])
    behind = means.max(axis=0) - means
    lines = [["setting", *names, "mean", "worst"]]
    for name, row in sorted(zip(settings, behind.tolist(), strict=True), key=lambda pair: float(np.mean(pair[1]))):
        lines.append([name, *(f"{gap:.1f}" for gap in (*row, np.mean(row), max(row)))])
    study.lines(lines, "Points behind the best row of each data set.")
    study.table("seconds", "setting", "data", "Seconds of a fit.", digits=1, spread=False)


if __name__ == "__main__":
    raise SystemExit(main(run, __file__, __doc__))
