"""Partial labels: complete labels for a tenth of the sequences, the top level for the rest.

    python benchmarks/partial.py [--data FOLDER] [--sets citations,names] [--sizes 100,400] [--seed 0]

reads citations and author names from FOLDER (default: HSCRF_DATA), described as in ``experiments/sets.py``, and fits
the plain call to the tenth alone, to all sequences with all labels, and to the tenth and the top level of the rest.
Size 0 means all sequences. Prints one table in Markdown: seconds of one core for each fit, its iterations, and the
milliseconds of one evaluation of the sequences with partial labels, without and with their labels.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from hscrf import HSCRF
from hscrf.engine import Batch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "experiments"))
import sets
from partial import partly

LOADERS = {"citations": sets.citations, "names": sets.names}
COLUMNS = ("data", "sequences", "tenth s", "all s", "partial s", "iterations", "weights", "free ms", "bound ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", default=os.environ.get("HSCRF_DATA", "."), help="folder of data (default: HSCRF_DATA)"
    )
    parser.add_argument("--sets", default="citations,names", help="(default: %(default)s)")
    parser.add_argument("--sizes", default="100,400", help="numbers of sequences (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="which tenth is complete (default: %(default)s)")
    args = parser.parse_args()
    print("|", " | ".join(COLUMNS), "|")
    print("|---|" + "--:|" * (len(COLUMNS) - 1))
    for name in args.sets.split(","):
        for size in map(int, args.sizes.split(",")):
            data = LOADERS[name](args.data, size or None)[0]
            print("|", " | ".join(map(str, row_of(name, data, args.seed))), "|", flush=True)


def row_of(name: str, data: sets.Set, seed: int) -> list[Any]:
    """One line of the table."""
    n = len(data.train)
    few = np.sort(np.random.default_rng([seed, n]).permutation(n)[: round(0.1 * n)]).tolist()
    tenth = data.train.take(few)
    labels = [(tenth.X, tenth.rows), (data.train.X, data.train.rows), (data.train.X, partly(data, set(few)))]
    seconds, iterations = [], []
    for X, Y in labels:
        model, watch = HSCRF(), Watch()
        begin = time.process_time()
        with watch:
            model.fit(X, Y)
        seconds.append(f"{time.process_time() - begin:.2f}")
        iterations.append(str(model.n_iter_))
    return [name, n, *seconds, "/".join(iterations), model.coef_.size, watch.per_pass(False), watch.per_pass(True)]


class Watch:
    """Measures the engine's calls for the batches of sequences with partial labels, without and with their labels."""

    def __init__(self) -> None:
        self.spent: dict[tuple[bytes, bool], list[float]] = defaultdict(list)

    def __enter__(self) -> None:
        self.method = method = Batch.expectations
        spent = self.spent

        def timed(batch: Batch, *arguments: Any) -> Any:
            begin = time.thread_time()
            found = method(batch, *arguments)
            spent[batch.offsets.tobytes(), batch.evidence is not None].append(time.thread_time() - begin)
            return found

        Batch.expectations = timed  # type: ignore[method-assign, assignment]

    def __exit__(self, *failure: object) -> None:
        Batch.expectations = self.method  # type: ignore[method-assign]

    def per_pass(self, bound: bool) -> str:
        """Milliseconds, medians over evaluations, of all batches that have evidence."""
        batches = {lengths for lengths, has_evidence in self.spent if has_evidence}
        return f"{1e3 * sum(float(np.median(self.spent[lengths, bound])) for lengths in batches):.1f}"


if __name__ == "__main__":
    main()
