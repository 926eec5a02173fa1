"""Long durations: generated genes with exons and introns, trained with the exact long limit and with an open last bin.

    python benchmarks/genes.py [--genes N] [--iterations N] [--seed N] [--only open|exact]

makes genes of 800 steps (bases) and trains on them. Levels from top to bottom: region (gene or spacer, Markov), part
(exon, intron or spacer, with durations) and piece (donor, body and acceptor of an intron, with durations). Introns have
40 to 600 bases. The exact model has tables for every duration of training. The open one has explicit durations up to L
at the bottom, and a weight for each further step. Printed for each: the CPU time of an evaluation of loss and gradient
at the first and at the last weights; how many evaluations of sequences needed logarithms; the CPU time of the whole
training; the loss; and, on as many genes that were not trained on, the share of bases and of introns that are found,
and the CPU time of the prediction. An evaluation takes about 1 s a gene with the open model, 2 s with the exact one.
"""

import argparse
import time

import numpy as np
from losses import objective_of

import hscrf
from hscrf.engine.tally import COUNTER
from hscrf.objective.workers import Workers
from hscrf.solvers import LBFGS

STEPS = 800
MODELS = {"open": {}, "exact": {"open_duration": False}}
BASES = np.array(list("ACGT"))
COMPOSITION = {  # shares of A, C, G, T
    "space": [0.28, 0.22, 0.22, 0.28],
    "coding": [0.20, 0.30, 0.30, 0.20],
    "donor": [0.05, 0.05, 0.50, 0.40],
    "body": [0.32, 0.18, 0.18, 0.32],
    "acceptor": [0.40, 0.10, 0.45, 0.05],
}


def draw_gene(rng):
    """Segments (region, part, piece, length) of one gene of STEPS bases."""
    found, left = [], STEPS

    def put(region, part, piece, length):
        nonlocal left
        length = min(length, left)
        if length:
            found.append((region, part, piece, length))
        left -= length

    put("spacer", "spacer", "space", int(rng.integers(20, 80)))
    while left:
        put("gene", "exon", "coding", 3 * int(rng.gamma(4.0, 10.0)) + 9)
        if rng.random() < 0.15:
            break
        intron = int(np.exp(rng.uniform(np.log(40), np.log(600))))
        if left < intron + 9:
            break
        put("gene", "intron", "donor", 4)
        put("gene", "intron", "body", intron - 8)
        put("gene", "intron", "acceptor", 4)
    put("spacer", "spacer", "space", left)
    return found


def draw_data(genes, seed):
    """Observations and labels: the base of each step and its two neighbours."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(genes):
        segments = draw_gene(rng)
        pieces = [piece for *_, piece, length in segments for _ in range(length)]
        bases = [str(rng.choice(BASES, p=COMPOSITION[piece])) for piece in pieces]
        padded = ["-", *bases, "-"]
        X.append(
            [[f"b={b}", f"l={a}{b}", f"r={b}{c}"] for a, b, c in zip(padded, padded[1:], padded[2:], strict=False)]
        )
        Y.append({level: columns(segments, k) for k, level in enumerate(("region", "part", "piece"))})
    return X, Y


def columns(segments, k):
    """Segments (start, stop, label) of a level: neighbouring pieces of one part, or parts of one region, are one."""
    found, start = [], 0
    for *names, length in segments:
        name, above = names[k], names[:k]
        if found and found[-1][2] == name and found[-1][3] == above and k < 2:
            found[-1][1] = start + length
        else:
            found.append([start, start + length, name, above])
        start += length
    return [tuple(segment[:3]) for segment in found]


def train(X, Y, iterations, **options):
    """A fitted model, the times of an evaluation at the first and last weights, and the tally of all evaluations."""
    before = COUNTER.total
    model = hscrf.HSCRF(
        durations={"part": "gamma", "piece": "gamma"}, solver=LBFGS(max_iter=iterations, delta=0.0), **options
    )
    model.fit(X, Y)
    tally = COUNTER.total.since(before)
    with Workers() as workers:
        objective = objective_of(model, X, Y, workers)
        first, last = (timed(objective, weights) for weights in (np.zeros_like(model.coef_), model.coef_))
    return model, first, last, tally


def timed(objective, weights):
    """The lesser time of two evaluations."""
    seconds = []
    for _ in range(2):
        begin = time.process_time()
        objective(weights)
        seconds.append(time.process_time() - begin)
    return min(seconds)


def accuracy(model, X, Y):
    """The share of bases with the right piece, of introns found exactly, and the seconds of a prediction."""
    begin = time.process_time()
    found = model.predict(X)
    seconds = time.process_time() - begin
    right = total = hits = introns = 0
    for labels, y in zip(found, Y, strict=True):
        truth = [name for start, stop, name in y["piece"] for _ in range(stop - start)]
        right += sum(a == b for a, b in zip(labels.column("piece"), truth, strict=True))
        total += len(truth)
        wanted = {segment for segment in y["part"] if segment[2] == "intron"}
        hits, introns = hits + len(wanted & {*labels.segments("part")}), introns + len(wanted)
    return right / total, hits / introns, seconds


def main():
    parser = argparse.ArgumentParser(description="Durations of long segments: the exact limit and the open last bin.")
    parser.add_argument("--genes", type=int, default=20, help="to train on (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=50, help="of L-BFGS (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=MODELS, help="one of the two models")
    arguments = parser.parse_args()
    X, Y = draw_data(arguments.genes, arguments.seed)
    held_out = draw_data(arguments.genes, arguments.seed + 1)
    lengths = [stop - start for y in Y for start, stop, name in y["part"] if name == "intron"]
    print(f"{len(X)} genes, {len(lengths)} introns of {min(lengths)} to {max(lengths)} bases\n")
    print(
        "| durations | L of part, piece | first evaluation | last | ratio | in logarithms | training | loss |", end=""
    )
    print(" bases right | introns found | prediction |\n|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, options in MODELS.items():
        if arguments.only not in (None, name):
            continue
        begin = time.process_time()
        model, first, last, tally = train(X, Y, arguments.iterations, **options)
        spent = time.process_time() - begin
        limits = [model.topology_.max_duration[model.topology_.level(level)].max() for level in ("part", "piece")]
        bases, introns, seconds = accuracy(model, *held_out)
        cells = [name, f"{limits[0]}, {limits[1]}", f"{first:.2f} s", f"{last:.2f} s", f"{last / first:.2f}"]
        cells += [f"{tally.in_logarithms} of {tally.sequences}", f"{spent:.0f} s", f"{model.loss_:.1f}"]
        cells += [f"{bases:.3f}", f"{introns:.2f}", f"{seconds:.1f} s"]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
