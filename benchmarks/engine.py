"""What the engine costs: growth with the length, speed against dgemm and plain numpy, start-up.

    python benchmarks/engine.py [--quick] [--output FILE]

prints a table in Markdown. Every case runs in its own process; memory is the peak resident memory of that process,
interpreter and potentials included. Times are the best of a few runs after one that compiles or loads the kernels.

A multiply-add is one product of a mass with a potential that is added to a sum. The work of one time step of a Markov
model is counted as the squared sizes of all sibling groups (the dense products of `trans`); sums over `init` and
`end`, tokens and scaling are overhead. Counts need the forward step again, its transpose, and the pair posteriors:
log Z counts once, log Z with counts three times. Under a segmental level the groups below it are walked anew from
every start, so their squared sizes count once for each admissible (start, length), and the segment itself once for each
state; with all endings known there is one run a segment, so they count once for each step.
dgemm is numpy's product of two 1024 x 1024 matrices on one thread in the same run.
The plain numpy recursion is the same forward pass over stacks, written with a vectorised log-sum-exp for each step.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

FULL = {
    "markov": [1_000, 10_000, 100_000, 1_000_000],
    "wide": [1_000, 10_000, 100_000],
    "segmental": [1_000, 2_000, 5_000, 10_000],
    "unlimited": [100, 200, 400, 800],
    "known": [1_000, 10_000, 100_000],
}
QUICK = {
    "markov": [1_000, 10_000],
    "wide": [1_000],
    "segmental": [1_000, 2_000],
    "unlimited": [100, 200],
    "known": [1_000, 4_000],
}
TITLES = {
    "markov": "Markov, D = 3, 3 x 12 states: linear in T, T = 1e6 within 2 GB",
    "wide": "Markov, D = 3, 4 x 32 states: groups wide enough for dense products",
    "segmental": "Segmental level of 3 states with at most L = 100 steps over 12 states: linear in T",
    "unlimited": "Unlimited durations, D = 3, 3 x 4 states: quadratic in T",
    "known": "Unlimited durations, D = 3, all ending indicators known: linear in T",
}
POWER = {"unlimited": 2}  # the expected growth, 1 elsewhere


# ------------------------------------------------------------------------------------------------ the models


def states_of(level, size):
    return [f"{level}{k}" for k in range(size)]


def make(case, length):
    """Potentials, evidence and the multiply-adds of one forward pass."""
    import hscrf

    rng = np.random.default_rng(0)
    upper, lower = {"wide": (4, 32), "unlimited": (3, 4), "known": (3, 4)}.get(case, (3, 12))
    levels = {"upper": states_of("u", upper), "lower": states_of("l", lower)}
    longest = {"segmental": 100}.get(case)
    topology = hscrf.Topology(levels, max_duration={"upper": longest} if longest else None)
    parts = {
        "token": {"lower": rng.standard_normal((length, lower))},
        "init": {"root": rng.standard_normal((1, 1, upper)), "upper": rng.standard_normal((1, upper, lower))},
        "trans": {
            "root": rng.standard_normal((1, 1, upper, upper)),
            "upper": rng.standard_normal((1, upper, lower, lower)),
        },
        "end": {"upper": rng.standard_normal((1, upper, lower))},
    }
    if case == "segmental":
        parts["duration"] = {"upper": rng.standard_normal((longest, upper))}
    if case in ("unlimited", "known"):  # a level with a duration part of length T has tables of segments
        parts["duration"] = {"upper": -0.01 * np.arange(length)[:, None] * np.ones(upper)}
    p = hscrf.Potentials(topology, length, **parts)
    evidence = None
    inner, outer = upper * lower**2, upper**2
    if case in ("markov", "wide"):
        work = length * (inner + outer)
    elif case == "known":
        ends = np.full((3, length), -1, dtype=np.int8)
        ends[1] = rng.random(length) < 0.1
        ends[1, -1] = 1
        evidence = hscrf.Labels(topology, np.full((3, length), -1), ends)
        work = length * inner + length * outer
    else:
        width = min(longest or length, length)
        segments = width * length - width * (width - 1) // 2
        work = segments * (inner + upper) + length * outer
    return p, evidence, work


# -------------------------------------------------------------------------------------------- one measurement


def seconds(function, budget=2.0):
    """Best time of a few calls, after one that is not counted."""
    function()
    best, spent = np.inf, 0.0
    while spent < budget:
        begin = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - begin)
        spent += max(best, 1e-3)
    return best


def peak_memory():
    """Peak resident memory of this process in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 / (1024 if sys.platform == "darwin" else 1)


def dgemm_rate(size=1024):
    """Multiply-adds per second of numpy's matrix product on one thread."""
    from hscrf.objective.blas import one_blas_thread

    a = np.random.default_rng(0).standard_normal((size, size))
    with one_blas_thread():
        return size**3 / seconds(lambda: a @ a, budget=1.0)


def measure(case, length):
    """One row of the table, as a dict; runs in a process of its own."""
    import hscrf

    small, evidence, _ = make(case, 20)
    for call in (hscrf.log_partition, hscrf.marginals, hscrf.decode):
        call(small, evidence)  # compile, or load what was compiled
    p, evidence, work = make(case, length)
    budget = 0.5 if length <= 10_000 else 0.1
    row = {
        "length": length,
        "work": work,
        "log_z": seconds(lambda: hscrf.log_partition(p, evidence), budget),
        "counts": seconds(lambda: hscrf.marginals(p, evidence), budget),
        "decode": seconds(lambda: hscrf.decode(p, evidence), budget),
        "memory": peak_memory(),
        "dgemm": dgemm_rate(),
        "numpy": None,
    }
    if case in ("markov", "wide"):
        some = min(length, 2_000)
        q = p if some == length else make(case, some)[0]
        plain = plain_log_partition(q)
        np.testing.assert_allclose(plain, hscrf.log_partition(q), rtol=1e-9)
        row["numpy"] = seconds(lambda: plain_log_partition(q), 0.5) / some * length
    return row


def log_sum(values, axis):
    top = values.max(axis=axis, keepdims=True)
    return np.log(np.exp(values - top).sum(axis=axis)) + np.squeeze(top, axis)


def plain_log_partition(p):
    """Log Z of a Markov level over a unit bottom: up, across and down for each step, in logarithms."""
    token, init, trans = p.token["lower"], p.init["upper"][0], p.trans["upper"][0]
    first, across, end = p.init["root"][0, 0], p.trans["root"][0, 0], p.end["upper"][0]
    f = first[:, None] + init + token[0]
    for t in range(1, p.length):
        ended = log_sum(f + end, axis=1)  # the upper state ends
        following = log_sum(ended[:, None] + across, axis=0)  # another one starts
        stays = log_sum(f[:, :, None] + trans, axis=1)  # or goes on with the next lower state
        f = np.logaddexp(following[:, None] + init, stays) + token[t]
    return float(log_sum(log_sum(f + end, axis=1), axis=0))


# ------------------------------------------------------------------------------------------------- start-up

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


def start_up():
    """Seconds of import, first marginals and first decode: in a new environment, then in a second process."""
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            run = child([sys.executable, "-c", FIRST], NUMBA_CACHE_DIR=cache)
            rows.append([float(number) for number in run.split()])
    return rows


def child(command, **environment):
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


# ------------------------------------------------------------------------------------------------- the table


def report(case, rows):
    """One section in Markdown."""
    power = POWER.get(case, 1)
    unit = "T" if power == 1 else f"T^{power}"
    head = ["T", "log Z (s)", "+ counts (s)", "decode (s)", f"counts / {unit} (us)", "peak (MB)"]
    head += ["log Z (G madd/s)", "counts (G madd/s)", "dgemm (G madd/s)", "share of dgemm", "times faster than numpy"]
    lines = [f"## {TITLES[case]}", "", "| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
    for row in rows:
        rate, counted = row["work"] / row["log_z"], 3 * row["work"] / row["counts"]
        cells = [
            f"{row['length']:,}",
            f"{row['log_z']:.4g}",
            f"{row['counts']:.4g}",
            f"{row['decode']:.4g}",
            f"{1e6 * row['counts'] / row['length'] ** power:.3g}",
            f"{row['memory']:.0f}",
            f"{rate / 1e9:.2f}",
            f"{counted / 1e9:.2f}",
            f"{row['dgemm'] / 1e9:.1f}",
            f"{rate / row['dgemm']:.0%}, {counted / row['dgemm']:.0%}",
            f"{row['numpy'] / row['log_z']:.0f}" if row["numpy"] else "",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    steps = [row["counts"] / row["length"] ** power for row in rows]
    lines += ["", f"Largest over smallest time / {unit}: {max(steps) / min(steps):.2f}.", ""]
    return "\n".join(lines)


def report_start_up(rows):
    lines = [
        "## Start-up",
        "",
        "| process | import (s) | first marginals (s) | first decode (s) |",
        "|:--|--:|--:|--:|",
    ]
    for name, row in zip(("new environment (compiles)", "second (cached)"), rows, strict=True):
        lines.append(f"| {name} | " + " | ".join(f"{number:.2f}" for number in row) + " |")
    return "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(description="Measure the engine.")
    parser.add_argument("--quick", action="store_true", help="short sequences only")
    parser.add_argument("--output", metavar="FILE", help="write the table there too")
    parser.add_argument("--only", choices=[*FULL, "start-up"], nargs="+", help="these sections only")
    parser.add_argument("--case", nargs=2, metavar=("CASE", "T"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measure(arguments.case[0], int(arguments.case[1]))))
        return
    machine = f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"
    sections = [f"# The engine\n\nMade by `benchmarks/engine.py` on {machine}, one thread.\n"]
    print(sections[0], flush=True)
    for case, lengths in (QUICK if arguments.quick else FULL).items():
        if arguments.only and case not in arguments.only:
            continue
        rows = [json.loads(child([sys.executable, __file__, "--case", case, str(length)])) for length in lengths]
        sections.append(report(case, rows))
        print(sections[-1], flush=True)
    if not arguments.only or "start-up" in arguments.only:
        sections.append(report_start_up(start_up()))
        print(sections[-1], flush=True)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write("\n".join(sections))


if __name__ == "__main__":
    main()
