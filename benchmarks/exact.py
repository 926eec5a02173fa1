"""Exactness: random models through the compiled core, the reference engine and an enumeration of all configurations.

    python benchmarks/exact.py --models N [--seconds S] [--first SEED]

prints a table in Markdown: for each depth the number of models and the largest differences between each two of the
three, of log Z, of posteriors and expected counts, and of the scores of the best and the 5 best configurations. Models
have depth 2 to 5, all mixes of unit, Markov and segmental levels, -inf, potentials up to about 1e4, and evidence in two
of three cases (``tests/exactness.py``). With --seconds the run ends early. The exit status is 1 if a difference is
above 1e-8; differences of log Z and scores above 1 are relative.
"""

import argparse
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from exactness import ask_engine, ask_enumeration, differences, draw_case

DEPTHS, MOST = (2, 3, 4, 5), 1e-8
WHO = ("compiled", "reference", "enumeration")


def main():
    parser = argparse.ArgumentParser(description="Compare core, reference and enumeration on random models.")
    parser.add_argument("--models", type=int, required=True, metavar="N", help="how many models")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="S", help="stop after this time")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed (default: %(default)s)")
    arguments = parser.parse_args()
    begin, done = time.monotonic(), dict.fromkeys(DEPTHS, 0)
    pairs = list(combinations(range(len(WHO)), 2))
    worst = {(depth, pair): np.zeros(3) for depth in DEPTHS for pair in pairs}
    for number in range(arguments.models):
        if time.monotonic() - begin > arguments.seconds:
            break
        depth, seed = DEPTHS[number % len(DEPTHS)], arguments.first + number // len(DEPTHS)
        case = draw_case(seed, depth)
        answers = [ask_engine("compiled", case), ask_engine("reference", case), ask_enumeration(case)]
        for one, other in pairs:
            found = differences(answers[one], answers[other])
            if not (found <= MOST).all():
                print(f"depth {depth}, seed {seed}: {WHO[one]} and {WHO[other]} differ by {found}", file=sys.stderr)
            worst[depth, (one, other)] = np.maximum(worst[depth, (one, other)], found)
        done[depth] += 1
    print("| depth | models | compared | log Z | posteriors and counts | best scores |\n|--:|--:|:--|--:|--:|--:|")
    for (depth, (one, other)), found in worst.items():
        cells = " | ".join(f"{value:.1e}" for value in found)
        print(f"| {depth} | {done[depth]} | {WHO[one]}, {WHO[other]} | {cells} |")
    print(f"\n{sum(done.values())} models in {time.monotonic() - begin:.0f} s.")
    return int(not all((found <= MOST).all() for found in worst.values()))


if __name__ == "__main__":
    sys.exit(main())
