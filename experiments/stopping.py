"""When to stop: held-out quality along the path of L-BFGS.

Each model learns from a part of the *training* sequences of a data set and is judged on another part, after 10, 15, 22
and more iterations, until 500. L-BFGS ends when the loss improved by less than `delta` of itself over the last ten
iterations. The study reads off where each `delta` would have ended the run, and what the model was worth there, next
to the model of 500 iterations. The sets, folds and measures are those of the study of the defaults; test data are not
touched. Two settings converge slowly on purpose: ECG with one weak penalty for all weights, and kitchen the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import sets
from defaults import model, samples
from nested import columns_of
from runner import Study, main

LAST = 500
MARKS = (10, 15, 22, 33, 50, 75, 110, 165, 250, 370, LAST)
DELTAS = (1e-5, 1e-4, 3e-4, 1e-3, 2e-3, 5e-3, 1e-2)
PERIOD = 10
SLOW = {"ECG", "kitchen"}
EVEN: dict[str, Any] = {"upper": "one", "bottom": "one", "transitions": 1.0, "c2": 0.01}


def run(study: Study) -> None:
    for data in samples(study):
        measure(study, data, data.name, {})
        if data.name in SLOW and data.place in ("0", "1000"):
            measure(study, data, f"{data.name}, one weak penalty", EVEN)
        study.write(finished=False)
    write_tables(study)


def measure(study: Study, data: sets.Set, name: str, options: dict[str, Any]) -> None:
    if study.select("quality", data=name, fold=data.place):
        return
    last = study.pick(15, LAST, LAST)
    for mark in (mark for mark in MARKS if mark <= last):
        fitted = model(data, mark, **options).set_params(solver__delta=0.0, solver__tol=0.0)
        with study.timed(data=name, fold=data.place, iterations=mark):
            fitted.fit(data.train.X, data.train.rows)
        scores = sets.measures(data, columns_of(fitted.predict(data.test.X), data.plain))
        quality = sets.quality(data, scores)
        study.record("quality", quality, data=name, fold=data.place, iterations=mark)
    losses = [entry["loss"] for entry in fitted.history_]
    study.record("losses", losses[-1], data=name, fold=data.place, course=[float(f"{loss:.8g}") for loss in losses])


def end_of(losses: list[float], delta: float) -> int:
    """The iteration after which a run with this delta ends."""
    for n in range(PERIOD, len(losses)):
        if losses[n - PERIOD] - losses[n] <= delta * abs(losses[n]):
            return n + 1
    return len(losses)


def write_tables(study: Study) -> None:
    names = list(dict.fromkeys(r["data"] for r in study.select("quality")))
    iterations = [["data", *(f"{delta:g}" for delta in DELTAS)]]
    worth = [["data", *(f"{delta:g}" for delta in DELTAS), f"after {LAST}, in %"]]
    for name in names:
        ends: dict[float, list[int]] = {delta: [] for delta in DELTAS}
        lost: dict[float, list[float]] = {delta: [] for delta in DELTAS}
        final = []
        for record in study.select("losses", data=name):
            found = study.select("quality", data=name, fold=record["fold"])
            marks, quality = [r["iterations"] for r in found], [r["value"] for r in found]
            final.append(quality[-1])
            for delta in DELTAS:
                end = end_of(record["course"], delta)
                ends[delta].append(end)
                lost[delta].append(float(np.interp(np.log(end), np.log(marks), quality)) - quality[-1])
        iterations.append([name, *(f"{np.mean(ends[delta]):.0f}" for delta in DELTAS)])
        worth.append([name, *(f"{100 * np.mean(lost[delta]):+.2f}" for delta in DELTAS), f"{100 * np.mean(final):.1f}"])
    study.heading("Where a run ends")
    study.lines(iterations, f"Iterations until the loss improves by less than delta over {PERIOD} iterations.")
    study.heading("What it is worth there")
    study.lines(worth, f"Points of held-out quality gained or lost against {LAST} iterations.")


if __name__ == "__main__":
    raise SystemExit(main(run, __file__, __doc__))
