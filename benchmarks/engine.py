"""What the engine costs: growth with the length, speed against dgemm and plain numpy, start-up; and before a change.

    python benchmarks/engine.py [--against COMMIT [--rounds N]] [--quick] [--only CASE ...] [--output FILE]

prints tables in Markdown. Times are seconds of the thread, the best of a few calls after one that is not
counted. Every row of growth runs in a process of its own; memory is the peak resident memory of that process after one
call of each verb, interpreter and potentials included.

With --against, the checkout of this file and another commit take turns on every verb, in new processes for each case
and round; both must find the same log Z and the same best scores. The other commit is the folder of a checkout in which
the core was built, or a name that git knows for a commit that has no core; what that needs must be installed here.
 Sequences of a batch have lengths from half to one and a half of T. Sampling draws and
k-best finds five configurations. k-best is written in Python: sequences above 2,000 steps, and all but four of a batch,
are left out. It is ``hscrf.k_best``, the other verbs are those of ``hscrf.engine.Batch``; decoding includes tracing
back. First calls are whole processes: seconds of the processor from their start to their end, the best of all turns.

A multiply-add is one product of a mass with a potential that is added to a sum (decoding: one sum that is compared).
The work of one time step of a Markov model is counted as the squared sizes of all sibling groups (the dense products of
`trans`); sums over `init` and `end`, tokens and scaling are overhead. Counts need the forward step again, its
transpose, and the pair posteriors: log Z counts once, log Z with counts three times. Under a segmental level the groups
below it are walked anew from every start, so their squared sizes count once for each admissible (start, length), the
segment itself once for each state, and segments of children once for each of their lengths; with all endings known
there is one run a segment, so they count once for each step.
dgemm is numpy's product of two 1024 x 1024 matrices on one thread in the same run.
The plain numpy recursion is the same forward pass over stacks, written with a vectorised log-sum-exp for each step.
"""

import argparse
import gc
import json
import platform
import resource
import sys
import time
from contextlib import ExitStack
from functools import lru_cache
from itertools import pairwise
from math import inf

import checkouts
import numpy as np
from checkouts import child

SHAPES = {  # states of the levels below the root, longest segments (0: a Markov level), title
    "chain": ((22,), (0,), "chain of 22 states"),
    "markov": ((3, 12), (0, 0), "Markov, 3 x 12 states"),
    "wide": ((4, 32), (0, 0), "Markov, 4 x 32 states"),
    "sentences": ((12, 44), (0, 0), "Markov, 12 x 44 states"),
    "segmental": ((3, 12), (100, 0), "segmental, L = 100, 3 x 12 states"),
    "short": ((5, 44), (10, 0), "segmental, L = 10, 5 x 44 states"),
    "two": ((5, 12), (100, 20), "two segmental levels, L = 100 over 20, 5 x 12 states"),
    "unlimited": ((3, 4), (inf, 0), "unlimited durations, 3 x 4 states"),
    "known": ((3, 4), (inf, 0), "unlimited durations, 3 x 4 states, all ends known"),
}
GROWTH = {  # lengths, expected power of T
    "markov": ([1_000, 10_000, 100_000, 1_000_000], 1),
    "wide": ([1_000, 10_000, 100_000], 1),
    "segmental": ([1_000, 2_000, 5_000, 10_000], 1),
    "unlimited": ([100, 200, 400, 800], 2),
    "known": ([1_000, 10_000, 100_000], 1),
}
CASES = [  # shape, T, number of sequences
    ("segmental", 1_000, 1),
    ("segmental", 10_000, 1),
    ("unlimited", 800, 1),
    ("known", 10_000, 1),
    ("two", 1_000, 1),
    ("chain", 25, 32),
    ("chain", 1_000, 1),
    ("markov", 50, 32),
    ("markov", 200, 32),
    ("wide", 200, 32),
    ("sentences", 24, 100),
    ("short", 2_000, 1),
    *(("markov", length, 1) for length in (50, 1_000, 100_000, 1_000_000)),
]
VERBS = {"log Z + counts": 3, "log Z": 1, "decode": 1, "k-best": 0, "sample": 0}  # passes that are counted as work
SHORT, LISTED, FEW, WANTED = 200, 2_000, 4, 5  # T of quick runs, T of k-best, sequences of both, configurations


# ------------------------------------------------------------------------------------------------ the models


def make(sizes, length, limits):
    """Random potentials: tokens of the lowest level, tables constant in time, durations; limits as in ``SHAPES``."""
    import hscrf

    rng = np.random.default_rng(0)
    levels = {f"level{d}": [f"{d}.{k}" for k in range(size)] for d, size in enumerate(sizes, 1)}
    segmental = {level: n for level, n in zip(levels, limits, strict=True) if n}
    limited = {level: n for level, n in segmental.items() if n < inf}
    topology = hscrf.Topology(levels, max_duration=limited or None)
    groups = list(zip(topology.levels[:-1], (1, *sizes[:-1]), sizes, strict=True))
    durations = {level: rng.standard_normal((n, len(levels[level]))) for level, n in limited.items()}
    for level in segmental.keys() - limited.keys():
        durations[level] = -0.01 * np.arange(length)[:, None] * np.ones(len(levels[level]))
    return hscrf.Potentials(
        topology,
        length,
        token={topology.levels[-1]: rng.standard_normal((length, sizes[-1]))},
        init={level: rng.standard_normal((1, above, below)) for level, above, below in groups},
        trans={level: rng.standard_normal((1, above, below, below)) for level, above, below in groups},
        end={level: rng.standard_normal((1, above, below)) for level, above, below in groups[1:]},
        duration=durations,
    )


def values_of(p):
    """Potentials as the engine takes them."""
    return {(part, p.topology.level(level)): array for part, level, array in p.parts()}


def ends_of(case, topology, length):
    """What is known of a case, or None."""
    import hscrf

    if case != "known":
        return None
    ends = np.full((3, length), -1, dtype=np.int8)
    ends[1] = np.random.default_rng(0).random(length) < 0.1
    ends[1, -1] = 1
    return hscrf.Labels(topology, np.full((3, length), -1), ends)


def work_of(case, length):
    """The multiply-adds of one forward pass."""
    sizes, limits, _ = SHAPES[case]
    if len(sizes) == 1:
        return length * sizes[0] ** 2
    (upper, lower), (longest, child_longest) = sizes, limits
    inner, outer = upper * lower**2, length * upper**2
    if not longest or case == "known":
        return length * inner + outer
    lengths = np.arange(1, min(longest, length) + 1)
    of_children = upper * lower * np.minimum(lengths, child_longest)
    return int(((length + 1 - lengths) * (inner + upper + of_children)).sum()) + outer


# -------------------------------------------------------------------------------------------- one measurement


def seconds(function, budget=2.0, warm=True):
    """Least seconds of this thread of a few calls, after one that is not counted."""
    if warm:
        function()
    best, spent = np.inf, 0.0
    while spent < budget:
        begin = time.thread_time()
        function()
        taken = time.thread_time() - begin
        best, spent = min(best, taken), spent + max(taken, 1e-3)
    return best


def peak_memory():
    """Peak resident memory of this process in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 / (1024 if sys.platform == "darwin" else 1)


def dgemm_rate(size=1024, budget=1.0):
    """Multiply-adds per second of numpy's matrix product on one thread."""
    from hscrf.objective.workers import one_blas_thread

    a = np.random.default_rng(0).standard_normal((size, size))
    with one_blas_thread():
        return size**3 / seconds(lambda: a @ a, budget)


def measure(case, length):
    """One row of growth, as a dict; runs in a process of its own."""
    import hscrf

    sizes, limits, _ = SHAPES[case]
    p = make(sizes, length, limits)
    evidence = ends_of(case, p.topology, length)
    verbs = {"log_z": hscrf.log_partition, "counts": hscrf.marginals, "decode": hscrf.decode}
    for verb in verbs.values():
        verb(p, evidence)  # memory is measured after one call of each
    row = {"length": length, "memory": peak_memory(), "dgemm": dgemm_rate(), "numpy": None}
    budget = 0.5 if length <= 100_000 else 3.0  # the system may take long to find the memory
    row |= {name: seconds(lambda verb=verb: verb(p, evidence), budget, warm=False) for name, verb in verbs.items()}
    if case in ("markov", "wide"):
        some = min(length, 2_000)
        q = p if some == length else make(sizes, some, limits)
        plain = plain_log_partition(q)
        np.testing.assert_allclose(plain, hscrf.log_partition(q), rtol=1e-9)
        row["numpy"] = seconds(lambda: plain_log_partition(q), 0.5) / some * length
    return row


def log_sum(values, axis):
    top = values.max(axis=axis, keepdims=True)
    return np.log(np.exp(values - top).sum(axis=axis)) + np.squeeze(top, axis)


def plain_log_partition(p):
    """Log Z of a Markov level over a unit bottom: up, across and down for each step, in logarithms."""
    token, init, trans = p.token["level2"], p.init["level1"][0], p.trans["level1"][0]
    first, across, end = p.init["root"][0, 0], p.trans["root"][0, 0], p.end["level1"][0]
    f = first[:, None] + init + token[0]
    for t in range(1, p.length):
        ended = log_sum(f + end, axis=1)  # the upper state ends
        following = log_sum(ended[:, None] + across, axis=0)  # another one starts
        stays = log_sum(f[:, :, None] + trans, axis=1)  # or goes on with the next lower state
        f = np.logaddexp(following[:, None] + init, stays) + token[t]
    return float(log_sum(log_sum(f + end, axis=1), axis=0))


# ------------------------------------------------------------------------------------------- growth and start-up

FIRST = """
import time; begin = time.perf_counter()
import hscrf
imported = time.perf_counter()
topology = hscrf.Topology({"upper": ["a", "b"], "lower": ["x", "y"]})
p = hscrf.Potentials(topology, 10)
hscrf.marginals(p)
summed = time.perf_counter()
hscrf.decode(p)
print(imported - begin, summed - imported, time.perf_counter() - summed)
"""


def row(cells):
    return "| " + " | ".join(cells) + " |"


def head(cells, texts=1):
    """The head of a table in Markdown; the first columns are texts."""
    return row(cells) + "\n" + "|" + ":--|" * texts + "--:|" * (len(cells) - texts)


def report(case, rows, power):
    """A section about the growth of a case, line by line."""
    unit = "T" if power == 1 else f"T^{power}"
    cells = ["T", "log Z (s)", "+ counts (s)", "decode (s)", f"counts / {unit} (us)", "peak (MB)"]
    cells += ["log Z (G madd/s)", "counts (G madd/s)", "dgemm (G madd/s)", "share of dgemm", "times faster than numpy"]
    title = SHAPES[case][2]
    yield f"## {title[0].upper()}{title[1:]}: {'linear' if power == 1 else 'quadratic'} in T\n\n{head(cells, texts=0)}"
    for found in rows:
        work = work_of(case, found["length"])
        rate, counted = work / found["log_z"], 3 * work / found["counts"]
        yield row([
            f"{found['length']:,}",
            *(f"{found[what]:.4g}" for what in ("log_z", "counts", "decode")),
            f"{1e6 * found['counts'] / found['length'] ** power:.3g}",
            f"{found['memory']:.0f}",
            *(f"{number / 1e9:.2f}" for number in (rate, counted, found["dgemm"])),
            f"{rate / found['dgemm']:.0%}, {counted / found['dgemm']:.0%}",
            f"{found['numpy'] / found['log_z']:.0f}" if found["numpy"] else "",
        ])  # fmt: skip
    steps = [found["counts"] / found["length"] ** power for found in rows]
    yield f"\nLargest over smallest time / {unit}: {max(steps) / min(steps):.2f}.\n"


def start_up():
    """Import, first marginals and first decode of a new process, line by line."""
    yield "## Start-up\n\n" + head(["import (s)", "first marginals (s)", "first decode (s)"], texts=0)
    yield row([f"{float(number):.2f}" for number in child([sys.executable, "-c", FIRST]).split()])


def tables(quick, chosen):
    """Growth of each case, and start-up."""
    for case, (lengths, power) in GROWTH.items():
        if chosen(case):
            some = lengths[:2] if quick else lengths
            rows = [json.loads(child([sys.executable, __file__, "--case", case, str(length)])) for length in some]
            yield from report(case, rows, power)
    if chosen("start-up"):
        yield from start_up()


# -------------------------------------------------------------------------------------------- against a commit

FIT = """
import numpy as np, time, hscrf
rng = np.random.default_rng(0)
X = [[[f"w={rng.integers(5)}"] for _ in range(20)] for _ in range(10)]
Y = [{"upper": ["p"] * 10 + ["q"] * 10, "lower": ["x", "y"] * 10} for _ in range(10)]
hscrf.HSCRF(DURATIONS).fit(X, Y).predict(X)
print(time.process_time())
"""
FIRST_CALLS = {
    "marginals": FIRST.split("summed")[0] + "print(time.process_time())",
    "fit and predict, nested Markov": FIT.replace("DURATIONS", ""),
    "fit and predict, with durations": FIT.replace("DURATIONS", "durations={'upper': 'gamma'}"),
}


def lengths_of(length, count):
    """The lengths of the sequences of a case."""
    return np.random.default_rng(0).integers(length // 2, length + length // 2, count) if count > 1 else [length]


@lru_cache(maxsize=1)
def verbs_of(case, length, count):
    """The verbs on a case, functions of nothing: they find the log Z or the best scores of its sequences."""
    import hscrf
    from hscrf.engine import Batch, Evidence

    sizes, limits, _ = SHAPES[case]
    offsets = np.concatenate([[0], np.cumsum(lengths_of(length, count))])
    p = make(sizes, int(offsets[-1]), limits)
    values = values_of(p)
    known = ends_of(case, p.topology, length)
    batch = Batch(p.topology, offsets, known and Evidence.of([known.closed()]))

    def k_best():
        return [[y.score for y in hscrf.k_best(one, WANTED, known)] for one in separate(p, offsets[: FEW + 1])]

    return {
        "log Z + counts": lambda: batch.expectations(values).log_z,
        "log Z": lambda: batch.log_partition(values),
        "decode": lambda: batch.best(values)[2],
        "k-best": k_best,
        "sample": lambda: batch.draw(values, WANTED, np.random.default_rng(0))[2],
    }


def separate(p, offsets):
    """The potentials of each sequence."""
    import hscrf

    tables = {part: p[part] for part in ("init", "trans", "end", "duration")}
    ((bottom, token),) = p.token.items()
    for begin, end in pairwise(offsets):
        yield hscrf.Potentials(p.topology, int(end - begin), token={bottom: token[begin:end]}, **tables)


def answer():
    """Answer questions (case, verb, budget) on standard input by the best seconds and what is found."""
    gc.disable()  # it would run at times that depend on other objects
    for line in sys.stdin:
        case, name, budget = json.loads(line)
        verb = verbs_of(*case)[name]
        found = np.ravel(verb()).tolist()
        gc.collect()
        print(json.dumps([seconds(verb, budget, warm=False), found]), flush=True)


def best_of_turns(commits, case, rounds, budget):
    """The best seconds of the old and of the new commit for each verb on a case."""
    verbs = [verb for verb in VERBS if verb != "k-best" or case[1] <= LISTED]
    best = {verb: [inf, inf] for verb in verbs}
    for turn in range(rounds):
        with ExitStack() as stack:  # new processes: how memory falls to them is a part of chance
            asked = [stack.enter_context(commit.asked(__file__, "--answer")) for commit in commits]
            for verb in verbs:
                found = [None, None]
                for k in (0, 1) if turn % 2 == 0 else (1, 0):
                    taken, found[k] = asked[k](case, verb, budget)
                    best[verb][k] = min(best[verb][k], taken)
                np.testing.assert_allclose(*found, rtol=1e-9)
    return best


def against(commit, quick, chosen, rounds):
    """The two commits side by side: speed, decoding beside log Z, memory, the first call."""
    rounds, budget = (1, 0.02) if quick else (rounds, 0.5)
    cases = [(case, min(T, SHORT), min(n, FEW)) if quick else (case, T, n) for case, T, n in CASES if chosen(case)]
    with checkouts.both(commit, checkouts.HERE.parent) as commits:
        yield from speed(commits, dict.fromkeys(cases), rounds, budget)
        if chosen("memory"):
            yield from memory(commits, SHORT if quick else 1_000_000)
        if chosen("first-call"):
            yield from first_calls(commits, list(FIRST_CALLS)[: 1 if quick else None], rounds)


def speed(commits, cases, rounds, budget):
    """All verbs on all cases."""
    cells = ["case", "verb", "old (ms)", "new (ms)", "times faster", "G madd/s", "dgemm (G madd/s)", "share of dgemm"]
    yield "## Speed\n\n" + head(cells, texts=2)
    ratios = []
    for case, length, count in cases:
        title = f"{SHAPES[case][2]}, T = {length:,}" + (f", {count} sequences" if count > 1 else "")
        work = sum(work_of(case, int(n)) for n in lengths_of(length, count))
        dgemm = dgemm_rate(budget=budget)
        best = best_of_turns(commits, (case, length, count), rounds, budget)
        for verb, (old, new) in best.items():
            rate = VERBS[verb] * work / new
            of_dgemm = [f"{rate / 1e9:.2f}", f"{dgemm / 1e9:.1f}", f"{rate / dgemm:.1%}"] if rate else [""] * 3
            yield row([title, verb, f"{1e3 * old:.4g}", f"{1e3 * new:.4g}", f"{old / new:.2f}", *of_dgemm])
        ratios.append([title, *(f"{best['decode'][k] / best['log Z'][k]:.2f}" for k in (0, 1))])
    yield "\n## Decoding, tracing back included, beside log Z\n\n" + head(["case", "old", "new"])
    yield from map(row, ratios)


def memory(commits, length):
    """Peak memory of one sequence through log Z, counts and decoding."""
    yield f"\n## Peak memory, {SHAPES['markov'][2]}, T = {length:,}\n\n" + head(["old (MB)", "new (MB)"], texts=0)
    yield row([f"{json.loads(one.run(__file__, '--case', 'markov', length))['memory']:.0f}" for one in commits])


def first_calls(commits, names, rounds):
    """Seconds of the processor of whole processes; the best of all turns."""
    yield "\n## First call of a process\n\n" + head(["call", "old (s)", "new (s)", "times faster"])
    for name in names:
        turns = [[float(one.run("-c", FIRST_CALLS[name])) for one in commits] for _ in range(rounds)]
        old, new = np.min(turns, axis=0)
        yield row([name, f"{old:.2f}", f"{new:.2f}", f"{old / new:.2f}"])


def main():
    parser = argparse.ArgumentParser(description="Measure the engine.")
    parser.add_argument("--against", metavar="COMMIT", help="compare this checkout with another commit")
    parser.add_argument("--quick", action="store_true", help="short sequences only")
    parser.add_argument(
        "--rounds", type=int, default=4, metavar="N", help="turns of each commit (default: %(default)s)"
    )
    parser.add_argument("--output", metavar="FILE", help="write the tables there too")
    sections = [*SHAPES, "start-up", "memory", "first-call"]
    parser.add_argument("--only", choices=sections, nargs="+", default=sections, help="these cases and sections only")
    parser.add_argument("--case", nargs=2, metavar=("CASE", "T"), help=argparse.SUPPRESS)
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer:
        return answer()
    if arguments.case:
        return print(json.dumps(measure(arguments.case[0], int(arguments.case[1]))))
    machine = f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    lines = [f"# The engine\n\nMade by `benchmarks/engine.py` on {machine}, one thread.\n"]
    print(lines[0], flush=True)
    chosen = arguments.only.__contains__
    made = tables(arguments.quick, chosen)
    if arguments.against:
        made = against(arguments.against, arguments.quick, chosen, arguments.rounds)
    for line in made:
        print(line, flush=True)
        lines.append(line)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
