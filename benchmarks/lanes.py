"""What the vector lanes are worth: the same kernels with them and with plain Numba loops.

    python benchmarks/lanes.py [--quick] [--output FILE]

prints a table in Markdown. `loops` below holds every function of the recursion that works on four numbers at once,
written as a loop that LLVM may vectorise by itself. A process of its own puts them in the place of the others before
anything is compiled, with a cache of its own. Both systems take turns, and the best time of each counts, in seconds of
the processor. The ratio is loops / lanes: above 1 the lanes are faster. Both must find the same log Z.

Every parent has the same number of children. Models: "Markov", three upper states over a unit bottom; "segmental",
the same with upper segments of at most 10 steps, so that runs are short; "semi-Markov", one level of segments of at
most 10 steps.
"""

import argparse
import json
import platform
import sys
import tempfile
from functools import partial

import engine
import numpy as np

CHILDREN = (5, 12, 22, 44)
LENGTH = {"Markov": 5_000, "segmental": 1_000, "semi-Markov": 5_000}
LONGEST, UPPER = 10, 3
SYSTEMS = ("lanes", "loops")


def make(kind, children):
    """Potentials of one model."""
    longest = {"segmental": LONGEST}.get(kind, 0)
    sizes, limits = ((children,), (LONGEST,)) if kind == "semi-Markov" else ((UPPER, children), (longest, 0))
    return engine.make(sizes, LENGTH[kind], limits)


# ------------------------------------------------------------------------------------------- without the lanes


def loops():
    """The functions that use the lanes, by name, as plain loops."""
    from hscrf.engine.kernels.arithmetic import HIGH, LINEAR, LOW, padded
    from hscrf.engine.kernels.compile import inlined, kernel, part, unsigned
    from hscrf.engine.kernels.layout import DOWN, DOWN_BAR, TOKENS, UP, UP_BAR

    @inlined
    def add_row(target, row, source, line, factor=1.0):
        for k in range(unsigned(target.shape[1])):
            target[row, k] += factor * source[line, k]

    @part
    def linear_init(pot, at, node, above, first, n):
        at, first = unsigned(at), unsigned(first)
        for v in range(unsigned(n)):
            node[DOWN, first + v] = above * pot[at + v]

    @part
    def linear_init_back(pot, grad, at, node, above, first, n):
        at, first, total = unsigned(at), unsigned(first), 0.0
        for v in range(unsigned(n)):
            pair = pot[at + v] * node[DOWN_BAR, first + v]
            grad[at + v] += above * pair
            total += pair
        return total

    @part
    def dense_end(mode, pot, at, node, first, n):
        at, first, total = unsigned(at), unsigned(first), 0.0
        for v in range(unsigned(n)):
            total += pot[at + v] * node[UP, first + v]
        return total

    @part
    def linear_end_back(pot, grad, at, node, bar, first, n):
        at, first = unsigned(at), unsigned(first)
        for v in range(unsigned(n)):
            pair = bar * pot[at + v]
            grad[at + v] += node[UP, first + v] * pair
            node[UP_BAR, first + v] += pair

    @part
    def dense_product(mode, pot, at, node, first, n):
        first, row = unsigned(first), unsigned(at)
        for u in range(unsigned(n)):
            value = node[UP, first + u]
            for v in range(unsigned(n)):
                node[DOWN, first + v] += value * pot[row + v]
            row += padded(n)

    @part
    def linear_product_back(pot, grad, at, node, first, n):
        first, row = unsigned(first), unsigned(at)
        for u in range(unsigned(n)):
            node[UP_BAR, first + u] = linear_init_back(pot, grad, row, node, node[UP, first + u], first, n)
            row += padded(n)

    @part
    def add_linear_segments(enter, step, child, base, weight, lags, node, first):
        first = unsigned(first)
        for lag in range(*lags):
            for k in range(unsigned(child.shape[1])):
                node[UP, first + k] += enter[step - lag, k] * child[base + lag, k] * weight[lag]

    @part
    def add_linear_segments_back(enter, enter_bar, step, child, child_post, base, weight, lags, node, first):
        first = unsigned(first)
        for lag in range(*lags):
            for k in range(unsigned(child.shape[1])):
                pair = child[base + lag, k] * weight[lag] * node[UP_BAR, first + k]
                enter_bar[step - lag, k] += pair
                child_post[base + lag, k] += enter[step - lag, k] * pair

    @inlined
    def rescale(work, leaf, n, step, scale):
        largest, smallest = 0.0, 1.0
        for k in range(unsigned(n)):
            value = work.node[UP, leaf + k]
            largest = max(largest, value)
            smallest = value if 0.0 < value < smallest else smallest
        work.gain[step] = 1.0
        work.scale[step + 1] = scale
        if largest > 0.0 and not LOW < largest < HIGH:
            gain = 1.0 / largest
            work.gain[step] = gain
            work.scale[step + 1] = scale + np.log(largest)
            for k in range(n):
                work.node[UP, leaf + k] *= gain
            smallest *= gain
        return smallest

    @inlined
    def enter_leaves(mode, work, leaf, n, step):
        low = 1.0
        for k in range(n):
            value = work.node[DOWN, leaf + k]
            work.enter[step, k] = value
            if mode is LINEAR:
                work.node[UP, leaf + k] = value * work.node[TOKENS, leaf + k]
                low = value if 0.0 < value < low else low
            else:
                work.node[UP, leaf + k] = value + work.node[TOKENS, leaf + k]
        return low

    @kernel
    def shift_rows(table, out, shift):
        lowest = 0.0
        for row in range(table.shape[0]):
            highest = -np.inf
            for k in range(unsigned(table.shape[1])):
                highest = max(highest, table[row, k])
            if highest == -np.inf:
                highest = 0.0
            shift[row] = highest
            for k in range(unsigned(table.shape[1])):
                value = table[row, k] - highest
                out[row, k] = value
                lowest = value if -np.inf < value < lowest else lowest
        return lowest

    return locals()


REPLACED = {  # file of the kernels -> names
    "arithmetic": ["add_row"],
    "exponentials": ["shift_rows"],
    "groups": ["linear_init", "linear_init_back", "dense_end", "linear_end_back", "dense_product"]
    + ["linear_product_back"],
    "segmental": ["add_linear_segments", "add_linear_segments_back"],
    "steps": ["rescale", "enter_leaves"],
}


def leave_the_lanes():
    """Put the loops in the place of the functions that use lanes, wherever the package has imported them."""
    import hscrf.engine.plan  # noqa: F401

    plain = loops()
    modules = [module for name, module in sys.modules.items() if name.startswith("hscrf.")]
    for file, names in REPLACED.items():
        for name in names:
            function = getattr(sys.modules[f"hscrf.engine.kernels.{file}"], name)
            for module in modules:
                if vars(module).get(name) is function:
                    setattr(module, name, plain[name])


# -------------------------------------------------------------------------------------------- the measurement


def measure(system, cases):
    """Seconds and log Z of every case; in a process of its own."""
    import hscrf

    if system == "loops":
        leave_the_lanes()
    rows = []
    for kind, children in cases:
        p = make(kind, children)
        log_z, counts = (engine.seconds(partial(verb, p), 0.3) for verb in (hscrf.log_partition, hscrf.marginals))
        rows.append({"log_z": log_z, "counts": counts, "value": hscrf.log_partition(p)})
    return rows


def take_turns(cases, rounds):
    """The best seconds of each system for each case."""
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds):
            for system in SYSTEMS if turn % 2 == 0 else SYSTEMS[::-1]:
                command = [sys.executable, __file__, "--case", system, json.dumps(cases)]
                rows = json.loads(engine.child(command, NUMBA_CACHE_DIR=f"{folder}/{system}"))
                for case, row in zip(cases, rows, strict=True):
                    for what in ("log_z", "counts"):
                        key = (*case, what, system)
                        best[key] = min(best.get(key, np.inf), row[what])
                    best[(*case, "value", system)] = row["value"]
    for case in cases:
        np.testing.assert_allclose(*(best[(*case, "value", system)] for system in SYSTEMS), rtol=1e-9)
    return best


def report(cases, best):
    head = ["model", "T", "children", "log Z, lanes (ms)", "loops (ms)", "ratio"]
    head += ["log Z and counts, lanes (ms)", "loops (ms)", "ratio"]
    lines = [engine.head(head)]
    for case in cases:
        cells = [case[0], f"{LENGTH[case[0]]:,}", str(case[1])]
        for what in ("log_z", "counts"):
            fast, plain = (best[(*case, what, system)] for system in SYSTEMS)
            cells += [f"{1e3 * fast:.2f}", f"{1e3 * plain:.2f}", f"{plain / fast:.2f}"]
        lines.append(engine.row(cells))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="Measure the vector lanes.")
    parser.add_argument("--quick", action="store_true", help="two sizes, one turn each")
    parser.add_argument("--output", metavar="FILE", help="write the table there too")
    parser.add_argument("--case", nargs=2, metavar=("SYSTEM", "CASES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measure(arguments.case[0], json.loads(arguments.case[1]))))
        return
    cases = [(kind, children) for kind in LENGTH for children in (CHILDREN[1:3] if arguments.quick else CHILDREN)]
    machine = f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    text = f"# The lanes\n\nMade by `benchmarks/lanes.py` on {machine}, one thread.\n\n"
    text += report(cases, take_turns(cases, 1 if arguments.quick else 4))
    print(text)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
