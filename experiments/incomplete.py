"""When to stop with partial labels: held-out quality for several stopping rules of L-BFGS.

Labels of the *training* sequences are hidden in four ways: the second half of each sequence, half of the segments of
each sequence, one level of each sequence, all but the top level of nine sequences in ten. The first three leave hardly
any sequence complete. A model with default features learns from what is left, and is judged on other training
sequences with all labels. `delta` ends a run when the loss improved by less than `delta` of itself over the last ten
iterations. The sets, folds and measures are those of the study of the defaults; test data are not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import sets
from defaults import samples
from hiding import Random, Tags, half_of_segments, level_of_sequence, only, second_half
from hscrf import HSCRF, LBFGS
from nested import columns_of
from runner import Study, main

DELTAS = (1e-3, 3e-3, 1e-2, 3e-2)
SHARE = 10  # in the last way every tenth sequence is complete


def missing(Y: Sequence[Tags], levels: Sequence[str]) -> list[Tags]:
    """Columns of question marks for the levels that sequences lack."""
    found = []
    for y in Y:
        length = len(next(iter(y.values())))
        found.append({level: y.get(level, ["?"] * length) for level in levels})
    return found


def tenth_complete(Y: Sequence[Tags], random: Random) -> list[Tags]:
    return [y if n % SHARE == 0 else only(0)(y, random) for n, y in enumerate(Y)]


def each(hide: Callable[[Tags, Random], Tags]) -> Callable[[Sequence[Tags], Random], list[Tags]]:
    return lambda Y, random: [hide(y, random) for y in Y]


WAYS: dict[str, Callable[[Sequence[Tags], Random], list[Tags]]] = {
    "second half": each(second_half),
    "half of the segments": each(half_of_segments),
    "one level of each sequence": each(level_of_sequence),
    "lower levels of nine in ten": tenth_complete,
}


def run(study: Study) -> None:
    for data in samples(study):
        for way in WAYS:
            for delta in DELTAS:
                measure(study, data, way, delta)
        study.write(finished=False)
    write_tables(study)


def measure(study: Study, data: sets.Set, way: str, delta: float) -> None:
    keys = {"data": data.name, "fold": data.place, "way": way, "delta": f"{delta:g}"}
    if study.select("quality", **keys):
        return
    labels = missing(WAYS[way](data.train.rows, np.random.default_rng(0)), data.levels)
    scheme = {level: "bio" for level in data.levels if level not in data.plain}
    model = HSCRF(scheme=scheme, solver=LBFGS(max_iter=study.pick(5, 300, 500), delta=delta))
    with study.timed(**keys):
        model.fit(data.train.X, labels)
    scores = sets.measures(data, columns_of(model.predict(data.test.X), data.plain))
    study.record("iterations", model.n_iter_, **keys)
    study.record("quality", sets.quality(data, scores), **keys)


def write_tables(study: Study) -> None:
    names = list(dict.fromkeys(r["data"] for r in study.select("quality")))
    study.heading("Quality")
    for way in WAYS:
        lines = [["delta", *names, "mean", "iterations", "seconds"]]
        for delta in DELTAS:
            keys = {"way": way, "delta": f"{delta:g}"}
            row = [100 * study.mean("quality", data=name, **keys) for name in names]
            spent = [study.mean(name, **keys) for name in ("iterations", "seconds")]
            lines.append([f"{delta:g}", *(f"{value:.1f}" for value in (*row, np.mean(row), *spent))])
        study.lines(lines, f"Hidden: {way}. Mean of whole sequences, segment F1 and steps, in %.")


if __name__ == "__main__":
    raise SystemExit(main(run, __file__, __doc__))
