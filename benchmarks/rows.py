"""When runs should walk side by side: starts of a segmental level, and sequences of a batch, in rows or each alone.

    python benchmarks/rows.py [--rounds N] [--output FILE]

prints tables in Markdown. Models have three parents. Starts: parents with segments of at most L steps; their children
are single steps, or segments of at most ten. Sequences: no segments, some sequences of about T steps. The tables have
the time of log Z with counts when all runs go alone, divided by that with so many of them side by side: above 1 rows
are faster. The last column is what ``engine.bundling`` chooses. The last table is about small models, by the
multiply-adds of all their runs: rows need kernels of their own, which take seconds to compile, so they should save
something. All take turns in one process, in seconds of the processor; the best of each counts.
"""

import argparse
import platform
from contextlib import nullcontext
from unittest.mock import patch

import numpy as np
from engine import head, lengths_of, make, row, seconds, values_of

from hscrf.engine import Batch, bundling

PARENTS, LONGEST_CHILD = 3, 10
CHILDREN, LENGTHS = (4, 12, 20, 32, 44), (5, 10, 20, 40, 80)
SEQUENCES, STEPS = (4, 8, 16, 32), (20, 200, 2_000)
SMALL = tuple(2**k for k in range(12, 22))  # multiply-adds


def planned(p, offsets, **settings):
    """A verb of a batch that is planned with some settings of ``engine.bundling``, and the rows of its bundles."""
    batch, values = Batch(p.topology, offsets), values_of(p)
    with patch.multiple(bundling, **settings) if settings else nullcontext():
        layers = batch.plan(values).layers
    rows = max(layer.bundling.rows if layer.bundling else 0 for layer in layers)
    return lambda: batch.expectations(values), rows


def best_of_turns(p, offsets, settings, rounds):
    """The best seconds with each of the settings."""
    calls = [planned(p, offsets, **{"WORTH": 0, **one})[0] for one in settings]
    for call in calls:
        call()
    return np.min([[seconds(call, 0.01, warm=False) for call in calls] for _ in range(rounds)], axis=0)


def chosen(p, offsets):
    """The rows that the engine chooses."""
    return str(planned(p, offsets)[1] or "alone")


def compare(p, offsets, *settings, rounds):
    """Seconds with the first settings divided by those with each of the others, and what the engine chooses."""
    best = best_of_turns(p, offsets, settings, rounds)
    return [*(f"{best[0] / taken:.2f}" for taken in best[1:]), chosen(p, offsets)]


def starts(segmental, rounds):
    """A table about starts, line by line."""
    yield f"## Starts, children {f'of at most {LONGEST_CHILD} steps' if segmental else 'of one step'}\n"
    yield head(["children", "L", "16 rows", "32 rows", "chosen"], texts=0)
    settings = [{"rows_for": lambda *_, rows=rows: rows} for rows in (0, 16, 32)]
    for children in CHILDREN:
        for longest in LENGTHS:  # about as long for every model
            steps = 2e5 / (children * longest) if segmental else 2e6 / (children**2 * longest)
            steps, limits = int(np.clip(steps, 100, 2_000)), (longest, LONGEST_CHILD if segmental else 0)
            p = make((PARENTS, children), steps, limits)
            found = compare(p, np.array([0, steps]), *settings, rounds=rounds)
            yield row([str(children), str(longest), *found])


def sequences(rounds):
    """A table about sequences, line by line."""
    yield "## Sequences\n\n" + head(["children", "sequences", "T", "16 rows", "32 rows", "chosen"], texts=0)
    for children in CHILDREN:
        for count in SEQUENCES:
            settings = [
                {"ROOM": 0},
                *({"ROOM": np.inf, "CACHED": np.inf, "FULL": np.inf, "MANY": rows} for rows in (16, 32)),
            ]
            for steps in STEPS:
                offsets = np.concatenate([[0], np.cumsum(lengths_of(steps, count))])
                p = make((PARENTS, children), int(offsets[-1]), (0, 0))
                yield row([str(children), str(count), f"{steps:,}", *compare(p, offsets, *settings, rounds=rounds)])


def small(rounds):
    """A table about small models, line by line: one segmental sequence, and sixteen sequences without durations."""
    cells = ["multiply-adds", "starts alone (ms)", "in rows (ms)", "chosen"]
    yield "## Small models\n\n" + head([*cells, "sequences alone (ms)", "in rows (ms)", "chosen"], texts=0)
    children, longest, count = 4, 20, 16
    for work in SMALL:
        steps = max(longest, round(work / (PARENTS * children**2 * longest)))
        p, offsets = make((PARENTS, children), steps, (longest, 0)), np.array([0, steps])
        best = best_of_turns(p, offsets, [{"rows_for": lambda *_: 0}, {"rows_for": lambda *_: 16}], rounds)
        found = [*(f"{1e3 * taken:.2f}" for taken in best), chosen(p, offsets)]
        each = max(1, round(work / (count * (PARENTS * children**2 + PARENTS**2))))
        p, offsets = make((PARENTS, children), each * count, (0, 0)), each * np.arange(count + 1)
        best = best_of_turns(p, offsets, [{"ROOM": 0}, {}], rounds)
        yield row([f"{work:,}", *found, *(f"{1e3 * taken:.2f}" for taken in best), chosen(p, offsets)])


def main():
    parser = argparse.ArgumentParser(description="Compare runs in rows with runs alone.")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of each (default: 5)")
    parser.add_argument("--output", metavar="FILE", help="write the tables there too")
    arguments = parser.parse_args()
    machine = f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    lines = [f"# Runs side by side\n\nMade by `benchmarks/rows.py` on {machine}, one thread.\n"]
    print(lines[0])
    rounds = arguments.rounds
    for table in (starts(False, rounds), starts(True, rounds), sequences(rounds), small(rounds)):
        for line in table:
            print(line, flush=True)
            lines.append(line)
        print()
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
