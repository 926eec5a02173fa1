"""Sensors with holes: how accuracy falls as more and more cells of a table of measurements are missing.

    python benchmarks/missing.py [--data FOLDER] [--records 100] [--seeds 3]

reads the ECG records of LUDB from ``FOLDER/ludb`` (default: HSCRF_DATA), 12 leads at 50 steps a second, and labels
beats and waves. Each step has the voltages of all leads now and 60 and 120 ms before and after. Cells are missing in
training and in new records alike: each by itself, or a lead for half a second at a time. Odd records train, even
ones test. Prints one table in Markdown: the share of steps with the right label, and the number of weights.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf import HSCRF, LBFGS

SHARES = (0.0, 0.01, 0.1, 0.5)
LAGS = (-6, -3, 0, 3, 6)  # steps of 20 ms
BURST = 25  # steps
LEVELS = ("beat", "wave")
Floats = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("HSCRF_DATA", "."), help="holds ludb (default: HSCRF_DATA)")
    parser.add_argument("--records", type=int, default=100, help="of each half at most (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="draws of what is missing (default: %(default)s)")
    args = parser.parse_args()
    halves = [read_half(Path(args.data) / "ludb", odd, args.records) for odd in (1, 0)]
    print("| missing |", " | ".join(f"{level}, {kind}" for kind in HOLES for level in LEVELS), "| weights |")
    print("|--:|" + "--:|" * (len(HOLES) * len(LEVELS) + 1))
    for share in SHARES:
        cells, sizes = [], set()
        for kind in HOLES:
            found = [judged(halves, kind, share, seed) for seed in range(args.seeds if share else 1)]
            sizes |= {size for _, size in found}
            cells += [f"{100 * np.mean([right[level] for right, _ in found]):.1f}" for level in LEVELS]
        print(f"| {100 * share:g} % |", " | ".join(cells), "|", ", ".join(map(str, sorted(sizes))), "|", flush=True)


def read_half(folder: Path, odd: int, most: int) -> tuple[list[Floats], list[dict[str, list[str]]]]:
    """Voltages (T, 12) of the labelled part of each record, and the labels of its steps."""
    with open(folder / "labels.tsv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    signals = np.load(folder / "signals_100hz.npz")
    X, Y = [], []
    for record in [name for name in dict.fromkeys(row["record"] for row in rows) if int(name) % 2 == odd][:most]:
        own = [row for row in rows if row["record"] == record]
        first, last = min(int(row["start"]) for row in own), max(int(row["stop"]) for row in own)
        steps = signals[f"r{record}"].astype(float).reshape(-1, 2, 12).mean(axis=1)
        columns = {level: ["?"] * len(steps) for level in LEVELS}
        for row in own:
            start, stop = int(row["start"]), int(row["stop"])
            columns[row["level"]][start:stop] = [row["label"]] * (stop - start)
        X.append(steps[first:last])
        Y.append({level: column[first:last] for level, column in columns.items()})
    return X, Y


def judged(halves: Sequence[Any], kind: str, share: float, seed: int) -> tuple[dict[str, float], int]:
    """The share of right labels by level of a model that learned, and was asked, with holes; its weights."""
    random = np.random.default_rng(seed)
    (X, Y), (new, truth) = [([lagged(HOLES[kind](x, share, random)) for x in half], labels) for half, labels in halves]
    model = HSCRF(solver=LBFGS(max_iter=100), n_jobs=2).fit(X, Y)
    guesses = model.predict(new)
    right = {}
    for level in LEVELS:
        pairs = [
            pair
            for y, guess in zip(truth, guesses, strict=True)
            for pair in zip(y[level], guess.column(level), strict=True)
        ]
        right[level] = float(np.mean([one == other for one, other in pairs if one != "?"]))
    return right, model.coef_.size


def cells_missing(x: Floats, share: float, random: np.random.Generator) -> Floats:
    """Each cell missing by itself."""
    return np.where(random.uniform(size=x.shape) < share, np.nan, x)


def bursts_missing(x: Floats, share: float, random: np.random.Generator) -> Floats:
    """Each lead missing for half a second at a time."""
    slots = random.uniform(size=(-(-len(x) // BURST), x.shape[1])) < share
    return np.where(np.repeat(slots, BURST, axis=0)[: len(x)], np.nan, x)


def lagged(x: Floats) -> Floats:
    """The voltages now, before and after, side by side; missing beyond the ends."""
    wide = np.full((len(x) + 2 * max(LAGS), x.shape[1]), np.nan)
    wide[max(LAGS) : -max(LAGS)] = x
    return np.hstack([wide[max(LAGS) + lag : max(LAGS) + lag + len(x)] for lag in LAGS])


HOLES = {"cells": cells_missing, "leads": bursts_missing}

if __name__ == "__main__":
    main()
