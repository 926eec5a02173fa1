"""Streams: time of a step, memory, and agreement with ``predict``, for models with and without durations.

    python benchmarks/stream.py [--steps 20000] [--long 1000000] [--lag 20]

Time is that of one thread, in microseconds of the processor, the best of five parts of the stream: ``push`` encodes
and decodes an observation, ``extend`` encodes many at once. Memory is what Python holds after ten thousand steps and
after all of them (``--long``), in megabytes. Agreement is the share of steps whose labels at all levels are those of
``predict`` on the whole sequence; with a lag as long as the sequence it is 1.
"""

import argparse
import time
import tracemalloc

import numpy as np

import hscrf
from hscrf.datasets import make_activities

KINDS = {
    "Markov": {},
    "segmental, longest 80": {"max_duration": {"activity": 80}},
}


def models():
    """A fitted model, and one long sequence of what it was trained on, for each kind."""
    X, Y = make_activities(40, random_state=0)
    for name, options in KINDS.items():
        model = hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=30), **options)
        yield name, model.fit(X, Y), [step for x in X for step in x]


def repeated(x, steps):
    return (x * (steps // len(x) + 1))[:steps]


def parts_of(x, parts=5):
    size = len(x) // parts
    return [x[k * size : (k + 1) * size] for k in range(parts)]


def best_time(take, parts):
    """Microseconds of the processor for a step, the best of some parts."""
    found = []
    for part in parts:
        begin = time.process_time()
        take(part)
        found.append((time.process_time() - begin) / len(part) * 1e6)
    return min(found)


def push_all(stream):
    def take(part):
        for x in part:
            stream.push(x)

    return take


def agreement(model, x, lag):
    """Share of steps with the labels of ``predict``, the last ``lag`` steps included."""
    (labels,) = model.predict([x])
    levels = labels.topology.levels[1:]
    truth = list(zip(*(labels.column(level, scheme="plain") for level in levels), strict=True))
    found = [tuple(step.labels[level] for level in levels) for step in model.stream(lag).run(x)]
    return float(np.mean([a == b for a, b in zip(truth, found, strict=True)]))


def memory(stream, x, steps):
    """Megabytes held after ten thousand steps and after all."""
    tracemalloc.start()
    found = []
    for first in range(0, steps, 10_000):
        stream.extend(x[first % len(x) :][:10_000])
        if first == 0:
            found.append(tracemalloc.get_traced_memory()[0])
    found.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return [number / 1e6 for number in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000, help="that are timed (default: %(default)s)")
    parser.add_argument("--long", type=int, default=100_000, help="that memory is measured over")
    parser.add_argument("--lag", type=int, default=20)
    args = parser.parse_args()
    columns = f"{'states':>8}{'lag':>5}{'push':>8}{'extend':>8}{'marginals':>11}{'MB':>8}{'MB later':>10}"
    print(f"{'model':24}{columns}  agreement")
    for name, model, x in models():
        timed = parts_of(repeated(x, args.steps))
        stream = model.stream(args.lag)
        row = [best_time(push_all(stream), timed), best_time(stream.extend, timed)]
        row.append(best_time(model.stream(args.lag, marginals=True).extend, [part[:300] for part in timed]))
        held = memory(model.stream(args.lag), repeated(x, 100_000), args.long)
        short = repeated(x, 3000)
        shares = [agreement(model, short, lag) for lag in (0, args.lag, len(short))]
        text = ", ".join(f"{share:.4f} (lag {lag})" for share, lag in zip(shares, (0, args.lag, "all"), strict=True))
        numbers = "".join(f"{value:{width}.0f}" for value, width in zip(row, (8, 8, 11), strict=True))
        sizes = "".join(f"{value:{width}.2f}" for value, width in zip(held, (8, 10), strict=True))
        print(f"{name:24}{stream.layout.leaves:8}{args.lag:5}{numbers}{sizes}  {text}")


if __name__ == "__main__":
    main()
