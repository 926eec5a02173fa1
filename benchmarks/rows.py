"""When runs should walk side by side: starts of a segmental level in rows, against each start alone.

    python benchmarks/rows.py [--rounds N] [--output FILE]

prints tables in Markdown. Models have three parents with segments of at most L steps; their children are single steps,
or segments of at most ten. For each number of children and each L the table has the time of log Z with counts when all
starts go alone, divided by that with 16 and with 32 of them side by side: above 1 rows are faster. The last column is
what ``engine.bundling`` chooses. All take turns in one process, in seconds of the processor; the best of each counts.
"""

import argparse
import platform
import time

import numpy as np
from engine import head, make, row, values_of

from hscrf.engine import Batch, bundling

PARENTS, LONGEST_CHILD = 3, 10
CHILDREN, LENGTHS = (4, 12, 20, 32, 44), (5, 10, 20, 40, 80)
CHOSEN = bundling.rows_for


def model(children, longest, segmental):
    """Potentials of a length that takes about as long for every model."""
    steps = 2e5 / (children * longest) if segmental else 2e6 / (children**2 * longest)
    limits = (longest, LONGEST_CHILD if segmental else 0)
    return make((PARENTS, children), int(np.clip(steps, 100, 2_000)), limits)


def planned(p, values, rows):
    """A batch whose starts go side by side in so many rows, or alone."""
    bundling.rows_for = lambda *_: rows
    batch = Batch(p.topology, np.array([0, p.length]))
    batch.expectations(values)
    return batch


def compare(children, longest, segmental, rounds):
    """Seconds with 0, 16 and 32 rows, and what the engine chooses."""
    p = model(children, longest, segmental)
    values = values_of(p)
    batches = [planned(p, values, rows) for rows in (0, 16, 32)]
    best = [np.inf] * len(batches)
    for _ in range(rounds):
        for k, batch in enumerate(batches):
            begin = time.thread_time()
            batch.expectations(values)
            best[k] = min(best[k], time.thread_time() - begin)
    return best, CHOSEN(batches[0].plan(values).layers[1].layer, longest, segmental)


def table(segmental, rounds):
    """One section in Markdown."""
    title = f"Children with segments of at most {LONGEST_CHILD} steps" if segmental else "Children of one step"
    lines = [f"## {title}", "", head(["children", "L", "16 rows", "32 rows", "chosen"], texts=0)]
    for children in CHILDREN:
        for longest in LENGTHS:
            (alone, *rows), chosen = compare(children, longest, segmental, rounds)
            ratios = [f"{alone / seconds:.2f}" for seconds in rows]
            lines.append(row([str(children), str(longest), *ratios, str(chosen or "alone")]))
    return "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(description="Compare starts in rows with starts alone.")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of each (default: 5)")
    parser.add_argument("--output", metavar="FILE", help="write the tables there too")
    arguments = parser.parse_args()
    machine = f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    text = f"# Starts side by side\n\nMade by `benchmarks/rows.py` on {machine}, one thread.\n"
    for segmental in (False, True):
        text += "\n" + table(segmental, arguments.rounds)
    print(text)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
