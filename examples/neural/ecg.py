"""A temporal convolution and a BiLSTM on electrocardiograms: beats, and the waves of each beat.

The records are those of LUDB, in the folder ``ludb`` of HSCRF_DATA. Steps before the first and after the last annotated
beat are unknown.

    HSCRF_DATA=... python examples/neural/ecg.py
"""

import os
from pathlib import Path

import numpy as np

from hscrf.torch import Tagger

STEPS = 500  # of 20 ms


def load(folder: Path, records: range) -> tuple[list[np.ndarray], list[dict[str, list[str]]]]:
    """Signals (500, 24), two samples of twelve leads a step, and BIO columns of beats and waves."""
    signals = np.load(folder / "signals_100hz.npz")
    columns = {n: {level: ["?"] * STEPS for level in ("beat", "wave")} for n in records}
    for line in (folder / "labels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        record, _, level, start, stop, label = line.split("\t")
        if int(record) in columns:
            for t in range(int(start), min(int(stop), STEPS)):
                columns[int(record)][level][t] = f"{'B' if t == int(start) else 'I'}-{label}"
    kept = [n for n in records if any(tag != "?" for tag in columns[n]["wave"])]
    X = [signals[f"r{n}"].astype(float) for n in kept]
    scaled = [np.arcsinh((x - np.median(x, axis=0)) / 200).reshape(STEPS, -1) for x in X]
    return scaled, [columns[n] for n in kept]


def main(folder: Path, records: int = 200, epochs: int = 40) -> float:
    train, test = (load(folder, range(first, records + 1, 2)) for first in (1, 2))
    model = Tagger("tcn", batch_size=8, epochs=epochs, random_state=0, verbose=1).fit(*train)
    return model.score(*test)


if __name__ == "__main__":
    if not os.environ.get("HSCRF_DATA"):
        raise SystemExit("set HSCRF_DATA to the folder that holds ludb")
    share = main(Path(os.environ["HSCRF_DATA"]) / "ludb")
    print(f"{100 * share:.1f} % of the steps of the test records have the right beat and the right wave")
