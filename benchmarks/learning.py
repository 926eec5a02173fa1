"""Learning beside CRFsuite on CoNLL-2000: loss, F1, seconds per iteration, end to end, tagging speed, memory.

    python benchmarks/learning.py [--data FOLDER] [--quick] [--joint]

FOLDER holds ``conll2000/train.txt`` and ``test.txt`` (default: $HSCRF_DATA). Every system runs in a process of its own,
one after the other in the same run, on the same features: the usual 19 of words and part-of-speech tags. Both minimise
log-loss + c2 |w|^2, c2 = 1, by L-BFGS with 6 memories and stop by the same rule (improvement below 1e-5 in 10
iterations). Only ratios mean anything. ``--joint`` adds the joint model of 44 tags and 12 chunk types from words.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def sentences(folder, split, limit):
    """Sentences as lists of [word, tag, chunk]."""
    blocks = Path(folder, "conll2000", f"{split}.txt").read_text().strip().split("\n\n")
    return [[line.split() for line in block.splitlines()] for block in blocks[:limit]]


def window_features(sentence):
    """19 features a step: words and tags in a window of five, and their conjunctions."""
    words = ["_", "_", *(row[0] for row in sentence), "_", "_"]
    tags = ["_", "_", *(row[1] for row in sentence), "_", "_"]
    items = []
    for t in range(2, len(words) - 2):
        (a, b, w, c, d), (p, q, r, s, u) = words[t - 2 : t + 3], tags[t - 2 : t + 3]
        items.append(
            [f"w-2={a}", f"w-1={b}", f"w={w}", f"w+1={c}", f"w+2={d}", f"w-1,w={b}|{w}", f"w,w+1={w}|{c}"]
            + [f"p-2={p}", f"p-1={q}", f"p={r}", f"p+1={s}", f"p+2={u}", f"p-2,p-1={p}|{q}", f"p-1,p={q}|{r}"]
            + [f"p,p+1={r}|{s}", f"p+1,p+2={s}|{u}", f"p-2,p={p}|{q}|{r}", f"p-1,p+1={q}|{r}|{s}", f"p,p+2={r}|{s}|{u}"]
        )
    return items


def word_features(sentence):
    """Features of the words alone: neighbours, affixes, shape."""
    words = ["_", "_", *(row[0] for row in sentence), "_", "_"]
    items = []
    for t in range(2, len(words) - 2):
        w = words[t]
        shape = "".join("X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else c for c in w[:8])
        items.append(
            [f"w{k}={words[t + k]}" for k in (-2, -1, 0, 1, 2)]
            + [f"w-1,w={words[t - 1]}|{w}", f"w,w+1={w}|{words[t + 1]}", f"low={w.lower()}", f"shape={shape}"]
            + [f"pre{k}={w[:k]}" for k in (1, 2, 3)]
            + [f"suf{k}={w[-k:]}" for k in (1, 2, 3, 4)]
        )
    return items


def tags_of(sentence, task):
    """The chunk column, or only its noun phrases."""
    return [row[2] if task == "chunks" or row[2].endswith("-NP") else "O" for row in sentence]


def report(**numbers):
    numbers["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print("RESULT " + json.dumps(numbers))


def run_crfsuite(train, test, task):
    import pycrfsuite

    X, Y = [window_features(s) for s in train], [tags_of(s, task) for s in train]
    begin = time.perf_counter()
    stamps, losses = [], []

    class Trainer(pycrfsuite.Trainer):
        def on_iteration(self, log, info):
            stamps.append(time.perf_counter())
            losses.append(info["loss"])

    trainer = Trainer(verbose=True)
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.select("lbfgs")
    trainer.set_params({"c1": 0.0, "c2": 1.0, "max_iterations": 1000})
    path = Path(tempfile.mkdtemp(), "model")
    trainer.train(str(path))
    whole = time.perf_counter() - begin
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    Z = [window_features(s) for s in test]
    begin = time.perf_counter()
    found = [tagger.tag(z) for z in Z]
    tagging = time.perf_counter() - begin
    truth = [tags_of(s, task) for s in test]
    score = chunk_f1(truth, found)
    iteration = (stamps[-1] - stamps[0]) / (len(stamps) - 1)
    report(loss=losses[-1], f1=score, n_iter=len(stamps), iteration=iteration, whole=whole, tagging=tagging)


def run_hscrf(train, test, task, n_jobs):
    import hscrf

    warm_up(n_jobs)
    X, Y = [window_features(s) for s in train], [tags_of(s, task) for s in train]
    begin = time.perf_counter()
    model = hscrf.ChainCRF(transitions="seen", n_jobs=n_jobs).fit(X, Y)
    model.save(Path(tempfile.mkdtemp(), "model"))
    whole = time.perf_counter() - begin
    seconds = [entry["seconds"] for entry in model.history_]
    Z = [window_features(s) for s in test]
    model.predict(Z[:1])  # as CRFsuite opens its model: names are made ready to be looked up
    begin = time.perf_counter()
    found = [y.column("label") for y in model.predict(Z)]
    tagging = time.perf_counter() - begin
    score = chunk_f1([tags_of(s, task) for s in test], found)
    iteration = (seconds[-1] - seconds[0]) / (len(seconds) - 1)
    report(loss=model.loss_, f1=score, n_iter=model.n_iter_, iteration=iteration, whole=whole, tagging=tagging)


def warm_up(n_jobs):
    """Compile before anything is timed: compiled code is kept on disk between processes."""
    import hscrf

    X, Y = [[["a"], ["b"]]] * 4, [["x", "y"]] * 4
    hscrf.ChainCRF(n_jobs=n_jobs).fit(X, Y).predict(X)


def chunk_f1(truth, found):
    from hscrf import metrics

    return 100 * metrics.conlleval(truth, found).f1


def run_joint(train, test, n_jobs, max_iter):
    import hscrf
    from hscrf import metrics

    def labels(data):
        return [{"chunk": [row[2] for row in s], "tag": [row[1] for row in s]} for s in data]

    warm_up(n_jobs)
    model = hscrf.HSCRF(
        scheme={"chunk": "bio"}, c2=0.3, n_jobs=n_jobs, verbose=2, solver=hscrf.LBFGS(max_iter=max_iter)
    ).fit([word_features(s) for s in train], labels(train))
    seconds = [entry["seconds"] for entry in model.history_]
    begin = time.perf_counter()
    found = model.predict([word_features(s) for s in test])
    tagging = time.perf_counter() - begin
    chunks = [y.column("chunk", scheme="bio") for y in found]
    tags = [y.column("tag") for y in found]
    right = [
        (row[1] == tag, row[2] == chunk)
        for s, ts, cs in zip(test, tags, chunks, strict=True)
        for row, tag, chunk in zip(s, ts, cs, strict=True)
    ]
    report(
        iteration=(seconds[-1] - seconds[0]) / (len(seconds) - 1),
        n_iter=model.n_iter_,
        loss=model.loss_,
        tag_accuracy=100 * sum(a for a, _ in right) / len(right),
        chunk_f1=100 * metrics.conlleval([[row[2] for row in s] for s in test], chunks).f1,
        both_right=100 * sum(a and b for a, b in right) / len(right),
        tagging=tagging,
    )


def spawn(arguments, *worker):
    """Run one system in a process of its own and read its numbers."""
    command = [sys.executable, __file__, "--data", arguments.data, "--worker", *worker]
    command += ["--quick"] if arguments.quick else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT "))


def compare(arguments):
    print("| task | system | loss | F1 | iterations | s / iteration | ratio | end to end s | ratio | tokens / s | MB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    tokens = sum(map(len, sentences(arguments.data, "test", 300 if arguments.quick else None)))
    for task in ("np", "chunks"):
        base = None
        for system in ("crfsuite", "hscrf 1", "hscrf 2"):
            found = spawn(arguments, task, *system.split())
            base = base or found
            print(
                f"| {task} | {system} | {found['loss']:.2f} | {found['f1']:.2f} | {found['n_iter']} "
                f"| {found['iteration']:.3f} | {found['iteration'] / base['iteration']:.2f} | {found['whole']:.1f} "
                f"| {found['whole'] / base['whole']:.2f} | {tokens / found['tagging']:.0f} | {found['memory']:.0f} |",
                flush=True,
            )
    if arguments.joint:
        print("\njoint model of tags and chunks from words:", json.dumps(spawn(arguments, "joint", "hscrf", "2")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("HSCRF_DATA", ""), help="folder that holds conll2000/")
    parser.add_argument("--quick", action="store_true", help="1000 training sentences only")
    parser.add_argument("--joint", action="store_true", help="also train the joint model")
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not Path(arguments.data, "conll2000", "train.txt").exists():
        parser.error(f"{arguments.data or '.'} has no conll2000/train.txt: give --data or set HSCRF_DATA")
    if not arguments.worker:
        return compare(arguments)
    train = sentences(arguments.data, "train", 1000 if arguments.quick else None)
    test = sentences(arguments.data, "test", 300 if arguments.quick else None)
    task, system, *rest = arguments.worker
    if task == "joint":
        run_joint(train, test, int(rest[0]), 30 if arguments.quick else 150)
    elif system == "crfsuite":
        run_crfsuite(train, test, task)
    else:
        run_hscrf(train, test, task, int(rest[0]))


if __name__ == "__main__":
    main()
