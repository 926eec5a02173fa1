"""The family beside its neighbours, in one run: CRFsuite, PyTorch, hmmlearn, and product labels.

    python benchmarks/families.py [--quick] [--output FILE]

prints one table in Markdown: seconds of ours and of the other, and how many times faster ours is. Every number is the
least of a few repetitions on one thread, after one that is not counted. Rows whose neighbour is not
installed are left out with a line that says so. Data are generated but for the last row; only ratios mean anything.

- ChainCRF and CRFsuite: one L-BFGS iteration (value and gradient) of training, as the difference between runs of many
  and of few iterations divided by their number, so that reading the data does not count.
- SemiCRF and PyTorch: value and gradient of log Z with respect to all segment scores. PyTorch runs the textbook
  recursion on a padded batch, vectorised over sequences, lengths and labels, with a loop over time only, and
  ``backward``; sequences have equal lengths, which is its best case. torch-struct, which takes a score for every
  segment and pair of labels and needs memory for (L S)^2 numbers a step, runs on a smaller problem.
- HHMM with one level and hmmlearn, both of its implementations: log-likelihood, and one step of EM.
- HSCRF and ChainCRF on product labels (BIO chunk and tag), both ours, with the same features: value and gradient of a
  joint task, CoNLL-2000 if ``HSCRF_DATA`` names its folder.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
import warnings
from functools import partial

import numpy as np
from losses import objective_of

import hscrf
from hscrf.families.hhmm.em import Expectation
from hscrf.families.hhmm.emissions import Categorical, Gaussian
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import Workers

QUICK = {"sentences": 100, "length": 100, "hmm": (20, 200), "joint": 400, "repeat": 2}
FULL = {"sentences": 1000, "length": 400, "hmm": (100, 1000), "joint": 9000, "repeat": 5}


def least(work, repeat):
    """Seconds of the fastest run, the first left out."""
    return in_turns([work], repeat)[0]


def in_turns(works, repeat):
    """Seconds of the fastest run of each, the first left out; they take turns, so that a slow spell meets them all."""
    for work in works:
        work()
    seconds = [[] for _ in works]
    for _ in range(repeat):
        for work, times in zip(works, seconds, strict=True):
            begin = time.perf_counter()
            work()
            times.append(time.perf_counter() - begin)
    return [min(times) for times in seconds]


def missing(module):
    try:
        __import__(module)
    except ImportError:
        print(f"Left out: {module} is not installed.\n")
        return True
    return False


def make_tagged(rng, n, labels=22, words=3000, features=12):
    """Sentences with features like those of words, and labels that depend on them."""
    X, Y = [], []
    for _ in range(n):
        length = int(rng.integers(10, 40))
        y = np.cumsum(rng.integers(0, 3, length)) % labels
        ids = (y[:, None] * 7 + rng.zipf(1.3, (length, features)) % words) % words
        X.append([[f"f{k}={w}" for k, w in enumerate(row)] for row in ids.tolist()])
        Y.append([f"L{s}" for s in y.tolist()])
    return X, Y


# ------------------------------------------------------------------------------------------------ the rows


def chain_beside_crfsuite(rng, size):
    if missing("pycrfsuite"):
        return
    import pycrfsuite

    X, Y = make_tagged(rng, size["sentences"])
    objective = objective_of(hscrf.ChainCRF(transitions="seen"), X, Y)
    weights = 0.01 * rng.standard_normal(objective.size)
    ours = least(lambda: objective(weights), size["repeat"])
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)

    def train(iterations):
        trainer.set_params({"c2": 1.0, "max_iterations": iterations, "epsilon": 0.0, "delta": 0.0})
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            trainer.train(os.path.join(folder, "model"))
            return time.perf_counter() - begin, trainer.logparser.last_iteration["num"]

    train(2)
    rates = []
    for _ in range(max(2, size["repeat"] // 2)):
        (few, a), (many, b) = train(3), train(23)
        rates.append((many - few) / (b - a))
    steps = sum(map(len, X))
    yield f"ChainCRF, value and gradient: {len(X)} sentences, {steps} steps, 22 labels", ours, "CRFsuite", min(rates)


def torch_semi_markov(segment, trans):
    """Log Z (B,) of scores segment (B, T, L, S) by last step and length and trans (S, S), vectorised."""
    import torch

    B, T, L, S = segment.shape
    scores = segment.unbind(1)  # slices of one tensor would each pull back a gradient of its whole size
    alphas = [torch.zeros(B, S, dtype=segment.dtype)]  # entered: log mass of all that may come before a segment at t
    for j in range(T):
        # segments that end at j with lengths 1 .. L start at j, j - 1, ...
        longest = min(L, j + 1)
        before = torch.stack([alphas[j - k] for k in range(longest)], dim=1)
        ending = torch.logsumexp(before + scores[j][:, :longest], dim=1)
        alphas.append(torch.logsumexp(ending[:, :, None] + trans, dim=1))
        last = ending
    return torch.logsumexp(last, dim=1)


def semi_beside_torch(rng, size):
    if missing("torch"):
        return
    import torch

    from hscrf.engine import Batch

    torch.set_num_threads(1)
    B, T, L, S = 16, size["length"], 20, 12
    by_start = rng.standard_normal((B, T, L, S))
    trans = rng.standard_normal((S, S))
    topology = hscrf.Topology({"label": [f"s{k}" for k in range(S)]}, max_duration={"label": L})
    values = {("segment", 1): by_start.reshape(B * T, L, S), ("trans", 0): trans[None, None]}
    batch = Batch(topology, np.arange(B + 1) * T)
    by_end = np.zeros_like(by_start)
    for length in range(L):
        by_end[:, length:, length] = by_start[:, : T - length, length]
    segment = torch.tensor(by_end, requires_grad=True)
    table = torch.tensor(trans, requires_grad=True)

    def theirs():
        segment.grad = table.grad = None
        total = torch_semi_markov(segment, table).sum()
        total.backward()
        return float(total.detach())

    ours = batch.expectations(values)
    assert np.isclose(ours.log_z.sum(), theirs()), "the two disagree"
    assert np.allclose(ours.counts["trans", 0][0, 0], table.grad.numpy()), "the two disagree"
    mine, other = in_turns([lambda: batch.expectations(values), theirs], size["repeat"])
    yield f"SemiCRF, value and gradient: {B} x {T} steps, L = {L}, {S} labels", mine, "PyTorch", other


def semi_beside_torch_struct(rng, size):
    if missing("torch") or missing("torch_struct"):
        return
    import torch
    from torch_struct import SemiMarkovCRF

    from hscrf.engine import Batch

    torch.set_num_threads(1)
    B, T, L, S = 4, min(size["length"], 128), 8, 6
    segment, trans = rng.standard_normal((B, T, L, S)), rng.standard_normal((S, S))
    topology = hscrf.Topology({"label": [f"s{k}" for k in range(S)]}, max_duration={"label": L})
    init = np.logaddexp.reduce(trans, axis=0)  # torch-struct has a label before the first
    values = {("segment", 1): segment.reshape(B * T, L, S), ("trans", 0): trans[None, None]}
    values["init", 0] = init[None, None]
    batch = Batch(topology, np.arange(B + 1) * T)
    edges = np.full((B, T, L + 1, S, S), -1e9)  # start, length, label, label before
    for length in range(L):
        edges[:, : T - length, length + 1] = segment[:, : T - length, length, :, None] + trans.T
    scores = torch.tensor(edges, requires_grad=True)

    def theirs():
        scores.grad = None
        with warnings.catch_warnings():  # it declares no constraints
            warnings.simplefilter("ignore")
            total = SemiMarkovCRF(scores).partition
        total.sum().backward()
        return total.detach().numpy()

    assert np.allclose(batch.expectations(values).log_z, theirs()), "the two disagree"
    ours, other = least(lambda: batch.expectations(values), 5 * size["repeat"]), least(theirs, 2)
    yield f"SemiCRF, value and gradient: {B} x {T} steps, L = {L}, {S} labels", ours, "torch-struct", other


def hhmm_beside_hmmlearn(rng, size):
    if missing("hmmlearn"):
        return
    from hmmlearn import hmm

    n, length = size["hmm"]
    states, symbols = 8, 20
    topology = hscrf.Topology({"state": [f"s{k}" for k in range(states)]})
    init, trans = rng.dirichlet(np.ones(states), 1), rng.dirichlet(np.ones(states), (1, states))
    plain = {"n_iter": 1, "tol": -np.inf, "init_params": ""}
    for kind in ("categorical", "gaussian"):
        emission = (
            Categorical(tuple(range(symbols)), rng.dirichlet(np.ones(symbols), states))
            if kind == "categorical"
            else Gaussian(3 * rng.standard_normal((states, 4)), np.ones((states, 4)))
        )
        model = hscrf.HHMM.from_parameters(topology, {"root": init}, {"root": trans}, {}, emission, smoothing=0.0)
        X = [np.asarray(x) for x in model.generate(n, length, rng)[0]]
        flat = np.concatenate(X).reshape(n * length, -1)
        lengths = [length] * n
        rivals = {}
        for way in ("log", "scaling"):
            if kind == "categorical":
                rival = hmm.CategoricalHMM(states, implementation=way, n_features=symbols, **plain)
                rival.emissionprob_ = emission.probability
            else:
                rival = hmm.GaussianHMM(states, "diag", implementation=way, min_covar=0, covars_prior=0, **plain)
                rival.means_, rival.covars_ = emission.mean, emission.variance
            rival.startprob_, rival.transmat_ = init[0], trans[0]
            rivals[way] = rival
        assert np.isclose(model.log_likelihood(X).sum(), rivals["log"].score(flat, lengths)), "the two disagree"
        ours = least(lambda: model.log_likelihood(X), size["repeat"])  # noqa: B023
        expect = Expectation(Scorer(topology, model.blocks_), model.encoder_.pack(X), None, Workers())
        maximise = model._maximisation()
        step = least(lambda: maximise(expect(model.coef_)[1], model.coef_), size["repeat"])  # noqa: B023
        for way, rival in rivals.items():
            title = f"HHMM of one level, {kind}: {n} x {length} steps, {states} states"
            score = least(lambda: rival.score(flat, lengths), size["repeat"])  # noqa: B023
            yield f"{title}, log-likelihood", ours, f"hmmlearn ({way})", score
            saved = {name: value.copy() for name, value in vars(rival).items() if isinstance(value, np.ndarray)}

            def em(rival=rival, saved=saved):
                vars(rival).update({name: value.copy() for name, value in saved.items()})
                rival.fit(flat, lengths)  # noqa: B023

            yield f"{title}, EM step", step, f"hmmlearn ({way})", least(em, size["repeat"])


def joint_beside_product(rng, size):
    """Chunks and tags of CoNLL-2000 from words if the data are there, else generated phrases and tags."""
    folder = os.environ.get("HSCRF_DATA")
    X, upper, lower = real_phrases(folder, size["joint"]) if folder else made_phrases(rng, size["joint"] // 10)
    nested = [{"phrase": a, "tag": b} for a, b in zip(upper, lower, strict=True)]
    product = [[f"{a}/{b}" for a, b in zip(x, y, strict=True)] for x, y in zip(upper, lower, strict=True)]
    models = hscrf.HSCRF(scheme={"phrase": "bio"}), hscrf.ChainCRF()
    objectives = [objective_of(model, X, Y) for model, Y in zip(models, (nested, product), strict=True)]
    weights = [0.01 * rng.standard_normal(objective.size) for objective in objectives]
    works = [partial(objective, w) for objective, w in zip(objectives, weights, strict=True)]
    ours, theirs = in_turns(works, size["repeat"])
    title = f"HSCRF, joint ({'CoNLL-2000' if folder else 'generated'}), value and gradient: {sum(map(len, X))} steps"
    yield title, ours, f"ChainCRF on {len({y for labels in product for y in labels})} product labels", theirs


def real_phrases(folder, n):
    """Words, affixes and neighbours; BIO chunks; tags."""
    found = hscrf.datasets.load_conll2000(folder, "train")
    X = []
    for words in found.tokens[:n]:
        around = ["", *words, ""]
        X.append(
            [
                [f"w={w}", f"before={a}", f"after={b}", *(f"suffix={w[-k:]}" for k in (1, 2, 3)), f"first={w[:2]}"]
                for a, w, b in zip(around, words, around[2:], strict=False)
            ]
        )
    return X, found.columns["chunk"][:n], found.columns["pos"][:n]


def made_phrases(rng, n):
    """12 phrases over 44 tags, each phrase with 25 tags of its choice."""
    children = [sorted(rng.choice(44, 25, replace=False).tolist()) for _ in range(12)]
    X, upper, lower = [], [], []
    for _ in range(n):
        phrases, tags = [], []
        for _ in range(8):
            phrase, duration = int(rng.integers(12)), int(rng.integers(1, 5))
            phrases += [f"B-P{phrase}"] + [f"I-P{phrase}"] * (duration - 1)
            tags += [f"t{children[phrase][k]}" for k in rng.integers(0, 25, duration)]
        X.append([[f"w={tag}{rng.integers(9)}", f"before={a}"] for a, tag in zip(["", *tags], tags, strict=False)])
        upper.append(phrases)
        lower.append(tags)
    return X, upper, lower


ROWS = (chain_beside_crfsuite, semi_beside_torch, semi_beside_torch_struct, hhmm_beside_hmmlearn, joint_beside_product)


def ratio(value):
    """Times faster: one decimal, or three digits of large numbers."""
    return f"{value:.1f}" if value < 100 else f"{float(f'{value:.3g}'):,.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds")
    parser.add_argument("--output", help="also write the table to a file")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    lines = ["| ours | seconds | other | seconds | times faster |", "|---|---|---|---|---|"]
    for row in ROWS:
        for title, ours, other, theirs in row(np.random.default_rng(0), size):
            lines.append(f"| {title} | {ours:.4f} | {other} | {theirs:.4f} | {ratio(theirs / ours)} |")
            print(lines[-1], file=sys.stderr)
    lines.append(f"\nPython {platform.python_version()}, numpy {np.__version__}, one thread, {platform.machine()}.")
    print("\n".join(lines))
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
