"""What the vector lanes are worth: the same kernels with them and with four scalars.

    python benchmarks/lanes.py [--quick] [--rounds N] [--output FILE]

prints a table in Markdown. `scalars.py` holds the functions of the lanes as four scalars each. They take the place of
the vectors before anything is compiled, so whatever the kernels do, both do the same. "Scalars" are compiled as the
kernels are: LLVM may make vectors of loops, but does not look for operations that could be packed. "Packed" are scalars
with LLVM's vectoriser of straight-line code (SLP), which does. The ratios are scalars / lanes and packed / lanes: above
1 the lanes are faster. All must find the same log Z and, of every array of counts, the same sum of squares.

Each system has processes of its own, and a folder of its own for compiled code. They take turns on every case, in new
processes in each round, and the best time of each counts, in seconds of the thread.

Every parent has the same number of children. Models: "Markov", three upper states over a unit bottom; "segmental",
the same with upper segments of at most L steps; "semi-Markov", one level of segments of at most 10 steps. Where
children are few the starts of segments walk side by side, as they do with L = 100; so do the 32 sequences, which have
lengths from half to one and a half of T.
"""

import argparse
import gc
import json
import platform
import sys
import tempfile
from contextlib import ExitStack
from functools import lru_cache
from math import inf
from pathlib import Path

import checkouts
import engine
import numpy as np

SYSTEMS = ("lanes", "scalars", "packed")
VERBS = ("log Z", "log Z + counts")
CHILDREN, SOME = (5, 12, 22, 44), (12, 22)
MODELS = {  # states above the children, longest segments (0: a Markov level), T, sequences, children
    "Markov": ((3,), (0, 0), 5_000, 1, CHILDREN),
    "segmental, L = 10": ((3,), (10, 0), 1_000, 1, CHILDREN),
    "semi-Markov": ((), (10,), 5_000, 1, CHILDREN),
    "segmental, L = 100": ((3,), (100, 0), 1_000, 1, (12,)),
    "Markov, 32 sequences": ((3,), (0, 0), 200, 32, (12,)),
}


# ---------------------------------------------------------------------------------------------- one measurement


@lru_cache(maxsize=1)
def verbs_of(kind, children):
    """The verbs on a case, functions of nothing: they find log Z and, if asked for, the arrays of counts."""
    from hscrf.engine import Batch

    above, limits, length, count, _ = MODELS[kind]
    offsets = np.concatenate([[0], np.cumsum(engine.lengths_of(length, count))])
    p = engine.make((*above, children), int(offsets[-1]), limits)
    batch, values = Batch(p.topology, offsets), engine.values_of(p)

    def log_z_and_counts():
        found = batch.expectations(values)
        return found.log_z, *found.counts.values()

    return dict(zip(VERBS, (lambda: (batch.log_partition(values),), log_z_and_counts), strict=True))


def answer(system):
    """Answer questions (case, verb, budget) on standard input by the best seconds, log Z and squared counts."""
    if system != "lanes":
        import scalars

        scalars.install()
        if system == "packed":
            scalars.let_llvm_pack()
    gc.disable()  # it would run at times that depend on other objects
    for line in sys.stdin:
        case, name, budget = json.loads(line)
        verb = verbs_of(*case)[name]
        log_z, *counts = verb()
        found = [*log_z.tolist(), *(float(np.vdot(array, array)) for array in counts)]
        gc.collect()
        print(json.dumps([engine.seconds(verb, budget, warm=False), found]), flush=True)


def take_turns(cases, rounds, budget):
    """The best seconds of each system for each case and verb."""
    best = {(case, verb): dict.fromkeys(SYSTEMS, inf) for case in cases for verb in VERBS}
    with tempfile.TemporaryDirectory() as kept:
        commits = {name: checkouts.Commit(checkouts.HERE.parent, Path(kept, name)) for name in SYSTEMS}
        for turn in range(rounds):
            with ExitStack() as stack:
                asked = {
                    name: stack.enter_context(commit.asked(__file__, "--answer", name))
                    for name, commit in commits.items()
                }
                for (case, verb), times in best.items():
                    found = {}
                    for name in SYSTEMS if turn % 2 == 0 else SYSTEMS[::-1]:
                        taken, found[name] = asked[name](case, verb, budget)
                        times[name] = min(times[name], taken)
                    for name in SYSTEMS[1:]:
                        np.testing.assert_allclose(found[name], found["lanes"], rtol=1e-9)
    return best


def report(best):
    """The table, line by line."""
    cells = ["model", "verb", "T", "children", "lanes (ms)", "scalars (ms)", "ratio", "packed (ms)", "ratio"]
    yield engine.head(cells, texts=2)
    for ((kind, children), verb), times in best.items():
        lanes, *others = (times[name] for name in SYSTEMS)
        cells = [kind, verb, f"{MODELS[kind][2]:,}", str(children), f"{1e3 * lanes:.2f}"]
        for taken in others:
            cells += [f"{1e3 * taken:.2f}", f"{taken / lanes:.2f}"]
        yield engine.row(cells)


def main():
    parser = argparse.ArgumentParser(description="Measure the vector lanes.")
    parser.add_argument("--quick", action="store_true", help="two numbers of children, one short turn each")
    parser.add_argument("--rounds", type=int, default=4, metavar="N", help="turns of each (default: %(default)s)")
    parser.add_argument("--output", metavar="FILE", help="write the table there too")
    parser.add_argument("--answer", choices=SYSTEMS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer:
        return answer(arguments.answer)
    cases = [(kind, n) for kind, (*_, sizes) in MODELS.items() for n in sizes if n in SOME or not arguments.quick]
    machine = f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    text = f"# The lanes\n\nMade by `benchmarks/lanes.py` on {machine}, one thread.\n\n"
    text += "\n".join(report(take_turns(cases, *(1, 0.1) if arguments.quick else (arguments.rounds, 0.3))))
    print(text)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
