"""Automatic penalties: `c2="auto"` against the best penalty by hand.

The same model of four data sets, with its default features: with a penalty from a grid (0.1 is that of the plain call);
with the one penalty that `c2="auto"` finds before it looks at groups of weights (*automatic, one*); and with all that
it finds, a factor for transitions and for the features of each level (*automatic*). *Best by hand* is the penalty of
the grid with the best mean on the *test* sequences: nobody could have known it, so it flatters the hand. Tests are
paired, over test sequences. CoNLL-2000 is here the first 250 training and 300 test sentences with all tags and chunk
types, citations the first 400 and all 362 test ones, the kitchen three generated data sets, CAD-120 its videos as they
are, each person left out in turn.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from hscrf import HSCRF
from hscrf.solvers.penalties import chosen
from runner import Study, main
from samples import Sample, right_steps, samples

ORDER = ("imitation", "kitchen", "citations", "CoNLL-2000", "CAD-120")
GRID = (3.0, 1.0, 0.3, 0.1, 0.03)
AUTO, ONE, BEST, PLAIN = "automatic", "automatic, one", "best by hand", "c2 = 0.1"


def run(study: Study) -> None:
    done: list[Sample] = []
    try:
        for sample in sorted(samples(study), key=lambda one: ORDER.index(one.name)):
            compare(study, sample)
            done.append(sample)
    finally:  # what a run that is ended early has measured
        whole = [(sample.name, sample.place) for sample in done]
        study.records = [r for r in study.records if (r["data"], r["place"]) in whole]
        for name in names_of(study):
            rename_best(study, name)
        write_tables(study)


def compare(study: Study, sample: Sample) -> None:
    """All ways on one sample."""
    for c2 in GRID[:: study.pick(3, 2, 1)]:
        measure(study, sample, f"c2 = {c2:g}", c2)
    found = measure(study, sample, AUTO, "auto")
    one, _ = chosen([entry for entry in found.penalties_ if entry["group"] is None])
    measure(study, sample, ONE, one)
    again(study, sample, found)


def measure(study: Study, sample: Sample, way: str, c2: Any) -> HSCRF:
    """Fit and judge one model: each test sequence is a record."""
    begin = time.process_time()
    model = HSCRF(c2=c2).fit(sample.X, sample.Y)
    keys = {"data": sample.name, "way": way, "place": sample.place}
    study.record("seconds", time.process_time() - begin, **keys)
    right = right_steps(model, sample.test_X, sample.test_Y)
    study.record("mean", float(np.nanmean(right)), **keys)
    for n, value in enumerate(right):
        if not np.isnan(value):
            study.records.append({"name": "right", **keys, "sequence": n, "value": value})
    if way == AUTO:
        print("   ", f"c2 {model.c2_:.3g}", {k: round(v, 3) for k, v in model.factors_.items()}, flush=True)
        study.record("chosen c2", model.c2_, **keys)
        for group, factor in model.factors_.items():
            study.record("chosen factor", factor, group=group, **keys)
    return model


def again(study: Study, sample: Sample, found: HSCRF) -> None:
    """How long one fit takes with the penalties that were found, from nothing."""
    model = HSCRF(c2=found.c2_)
    model._choose_penalties = lambda objective, weights, groups: given(model, found, weights)  # type: ignore[method-assign]
    begin = time.process_time()
    model.fit(sample.X, sample.Y)
    keys = {"data": sample.name, "place": sample.place}
    study.record("seconds", time.process_time() - begin, way="one fit with what was found", **keys)


def given(model: HSCRF, found: HSCRF, weights: Any) -> Any:
    model.c2_, model.factors_, model.penalties_, model.penalty_reason_ = found.c2_, found.factors_, [], ""
    return weights


def names_of(study: Study) -> list[str]:
    return list(dict.fromkeys(record["data"] for record in study.select("right")))


def rename_best(study: Study, name: str) -> None:
    """Copy the records of the best penalty of the grid."""
    ways = [f"c2 = {c2:g}" for c2 in GRID if study.select("right", data=name, way=f"c2 = {c2:g}")]
    best = max(ways, key=lambda way: study.mean("right", data=name, way=way))
    for record in [r for r in study.records if r.get("data") == name and r.get("way") == best]:
        study.records.append({**record, "way": BEST})


def write_tables(study: Study) -> None:
    study.heading("Right at all levels")
    caption = "Test steps right at all levels, in %, mean over sequences."
    study.table("right", "way", "data", caption, percent=True, spread=False)
    pairs = [(AUTO, BEST), (AUTO, PLAIN), (AUTO, ONE), (ONE, BEST)]
    study.differences("right", pairs, "way", "data", "Paired tests over test sequences.")
    caption = "Seconds of one core to learn, mean over samples."
    study.table("seconds", "way", "data", caption, digits=1, spread=False)
    lines = [["automatic, in fits", *names_of(study)]]
    for way in ("one fit with what was found", BEST):
        ratios = [
            study.mean("seconds", way=AUTO, data=d) / study.mean("seconds", way=way, data=d) for d in lines[0][1:]
        ]
        lines.append([way, *(f"{ratio:.1f}" for ratio in ratios)])
    study.lines(lines, "The time of the search and the fit after it, as a multiple of the time of one fit.")


if __name__ == "__main__":
    raise SystemExit(main(run, __file__, __doc__))
