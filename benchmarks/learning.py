"""Learning beside CRFsuite on CoNLL-2000: iterations, time to quality, nested models, tagging, memory.

    python benchmarks/learning.py [--data FOLDER] [--quick] [--table NAME ...]

FOLDER holds ``conll2000/train.txt`` and ``test.txt`` (default: $HSCRF_DATA). Every system runs in a process of its own,
taking turns in the same run, on the same features. Seconds are those of a core, as the threads' own clocks count them,
so that they mean something on a busy machine too: of the main thread, and of the busiest of the others. Only ratios
mean anything. The tables:

    iterations   both minimise log-loss + c2 |w|^2, c2 = 1, by L-BFGS with 6 memories and stop by the same rule
                 (improvement below 1e-5 in 10 iterations), on the usual 19 features of words and part-of-speech tags;
                 set-up is what comes before the first iteration, and MB the peak until the model is saved: of the
                 process, and of training alone, without packages and the lists of features
    quality      from raw features to a model file, ten epochs or fifty iterations, and the F1 of all chunks
    tagging      features as strings: tokens per second in bulk, milliseconds for a sentence at a time
    joint        44 tags and 12 chunk types from words: online against L-BFGS
    product      a few iterations of nested models, and of CRFsuite with a label for each combination: tags and chunks
                 of CoNLL-2000, and three levels of umass_citation in the same folder
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace


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
    print("RESULT " + json.dumps(numbers))


def peak():
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def thread_seconds():
    """Seconds of a core of this thread and of the busiest of the others: what a clock shows on an idle machine."""
    others = [thread.ident for thread in threading.enumerate() if thread is not threading.current_thread()]
    clocks = [time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in others]
    return time.thread_time() + max(clocks, default=0.0)


def model_path():
    return str(Path(tempfile.mkdtemp(), "model"))


def trained_crfsuite(X, Y, algorithm, path, **options):
    """Train CRFsuite; the losses of its iterations, and the seconds of a core when they were done."""
    import pycrfsuite

    course = []

    class Trainer(pycrfsuite.Trainer):
        def on_iteration(self, log, info):
            course.append((info["loss"], thread_seconds()))

    trainer = Trainer(verbose=algorithm == "lbfgs")
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.select(algorithm)
    trainer.set_params(options)
    trainer.train(path)
    return course


def tagger_of(path):
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    return tagger


# ------------------------------------------------------------------------------
# Iterations


def run_crfsuite(train, test, task):
    X, Y = [window_features(s) for s in train], [tags_of(s, task) for s in train]
    path, before, begin = model_path(), peak(), thread_seconds()
    course = trained_crfsuite(X, Y, "lbfgs", path, c1=0.0, c2=1.0, max_iterations=1000)
    whole, memory = thread_seconds() - begin, peak()
    tagger = tagger_of(path)
    found = [tagger.tag(window_features(s)) for s in test]
    iteration = (course[-1][1] - course[0][1]) / (len(course) - 1)
    report(
        loss=course[-1][0],
        f1=chunk_f1([tags_of(s, task) for s in test], found),
        n_iter=len(course),
        iteration=iteration,
        setup=course[0][1] - begin - iteration,
        whole=whole,
        memory=memory,
        own=memory - before,
    )


def run_hscrf(train, test, task, n_jobs):
    import hscrf

    class Timed(hscrf.LBFGS):
        """Notes what the clocks say before and after: later the threads and their clocks are gone."""

        def minimize(self, *given):
            marks.append(thread_seconds())
            result = super().minimize(*given)
            marks.append(thread_seconds())
            marks.append(time.thread_time())
            return result

    marks = []
    warm_up(n_jobs)
    X, Y = [window_features(s) for s in train], [tags_of(s, task) for s in train]
    before, begin = peak(), thread_seconds()
    model = hscrf.ChainCRF(transitions="seen", n_jobs=n_jobs, solver=Timed()).fit(X, Y)
    model.solver = "lbfgs"
    model.save(model_path())
    first, last, main = marks
    whole, memory = last - begin + time.thread_time() - main, peak()
    found = [y.column("label") for y in model.predict([window_features(s) for s in test])]
    report(
        loss=model.loss_,
        f1=chunk_f1([tags_of(s, task) for s in test], found),
        n_iter=model.n_iter_,
        iteration=(last - first) / model.n_iter_,
        setup=first - begin,
        whole=whole,
        memory=memory,
        own=memory - before,
    )


def print_iterations(arguments):
    print(
        "| task | system | loss | F1 | iterations | s / iteration | ratio | end to end s | ratio | set-up | MB | own |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for task in ("np", "chunks"):
        base = None
        for system in ("crfsuite", "hscrf 1", "hscrf 2"):
            found = spawn(arguments, task, *system.split())
            base = base or found
            print(
                f"| {task} | {system} | {found['loss']:.2f} | {found['f1']:.2f} | {found['n_iter']} "
                f"| {found['iteration']:.3f} | {found['iteration'] / base['iteration']:.2f} | {found['whole']:.1f} "
                f"| {found['whole'] / base['whole']:.2f} | {found['setup']:.1f} | {found['memory']:.0f} "
                f"| {found['own']:.0f} |",
                flush=True,
            )


# ------------------------------------------------------------------------------
# Time to quality

PAIRS = {"ap": "Perceptron(epochs=10)", "l2sgd": "SGD(epochs=10)", "lbfgs": "LBFGS(max_iter=50)"}  # CRFsuite's, ours


def run_quality(train, test, system, solver):
    """Seconds of a core from raw features to a model file, and F1."""
    X, Y = [window_features(s) for s in train], [tags_of(s, "chunks") for s in train]
    Z, path = [window_features(s) for s in test], model_path()
    if system == "crfsuite":
        options = {"max_iterations": 50 if solver == "lbfgs" else 10, **({} if solver == "ap" else {"c2": 1.0})}
        begin = time.process_time()
        trained_crfsuite(X, Y, solver, path, **options)
        seconds = time.process_time() - begin
        found = list(map(tagger_of(path).tag, Z))
    else:
        import hscrf

        chosen = eval(f"hscrf.{solver}", {"hscrf": hscrf})
        warm_up(1, chosen)
        begin = time.process_time()
        model = hscrf.ChainCRF(transitions="seen", solver=chosen, random_state=0).fit(X, Y)
        model.save(path)
        seconds = time.process_time() - begin
        found = [y.column("label") for y in model.predict(Z)]
    report(seconds=seconds, f1=chunk_f1([tags_of(s, "chunks") for s in test], found))


def print_quality(arguments):
    print("\n| system | solver | s of a core | ratio | F1 |\n|---|---|--:|--:|--:|")
    for other, own in PAIRS.items():
        base = None
        for system, solver in (("crfsuite", other), ("hscrf", own)):
            found = spawn(arguments, "quality", system, solver)
            base = base or found
            ratio = found["seconds"] / base["seconds"]
            print(f"| {system} | {solver} | {found['seconds']:.1f} | {ratio:.2f} | {found['f1']:.2f} |", flush=True)


# ------------------------------------------------------------------------------
# Tagging


def run_tagging(train, test):
    """The best of five turns of each system, with the same weights' shapes: one epoch of the perceptron."""
    import hscrf

    X, Y = [window_features(s) for s in train], [tags_of(s, "chunks") for s in train]
    path = model_path()
    trained_crfsuite(X, Y, "ap", path, max_iterations=1)
    tagger = tagger_of(path)
    model = hscrf.ChainCRF(transitions="seen", solver=hscrf.Perceptron(epochs=1), random_state=0).fit(X, Y)
    Z = [window_features(s) for s in test]
    ways = {
        ("crfsuite", "bulk"): lambda: [tagger.tag(z) for z in Z],
        ("hscrf", "bulk"): lambda: [y.column("label") for y in model.predict(Z)],
        ("crfsuite", "single"): lambda: [tagger.tag(z) for z in Z],
        ("hscrf", "single"): lambda: [model.predict([z])[0].column("label") for z in Z],
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(5):
        for name, way in ways.items():
            begin = time.process_time()
            way()
            best[name] = min(best[name], time.process_time() - begin)
    report(**{" ".join(name): seconds for name, seconds in best.items()}, tokens=sum(map(len, Z)), sentences=len(Z))


def print_tagging(arguments):
    found = spawn(arguments, "tagging", "both")
    print("\n| system | tokens / s in bulk | ratio | ms a sentence |\n|---|--:|--:|--:|")
    for system in ("crfsuite", "hscrf"):
        bulk, single = found[f"{system} bulk"], 1000 * found[f"{system} single"] / found["sentences"]
        ratio = found["crfsuite bulk"] / bulk
        print(f"| {system} | {found['tokens'] / bulk:.0f} | {ratio:.2f} | {single:.3f} |", flush=True)


def warm_up(n_jobs, solver="lbfgs"):
    """Load everything before anything is timed."""
    import hscrf

    X, Y = [[["a"], ["b"]]] * 4, [["x", "y"]] * 4
    hscrf.ChainCRF(n_jobs=n_jobs, solver=solver).fit(X, Y).predict(X)


def chunk_f1(truth, found):
    from hscrf import metrics

    return 100 * metrics.conlleval(truth, found).f1


# ------------------------------------------------------------------------------
# Nested models

JOINT = ("SGD(epochs=5)", "Perceptron(epochs=5)", "LBFGS()")
ITERATIONS = 6  # of product labels, which take long


def run_joint(train, test, solver):
    """The nested model of chunks and tags: seconds of a core, and steps with both labels right."""
    import hscrf

    chosen = eval(f"hscrf.{solver}", {"hscrf": hscrf})

    def labels(data):
        return [{"chunk": [row[2] for row in s], "tag": [row[1] for row in s]} for s in data]

    def model():
        return hscrf.HSCRF(scheme={"chunk": "bio"}, c2=0.3, solver=chosen, random_state=0)

    X, Y = [word_features(s) for s in train], labels(train)
    model().fit(X[:20], Y[:20])
    begin = time.process_time()
    joint = model().fit(X, Y)
    seconds = time.process_time() - begin
    found = joint.predict([word_features(s) for s in test])
    pairs = [zip(y.column("tag"), y.column("chunk", scheme="bio"), strict=True) for y in found]
    report(seconds=seconds, n_iter=joint.n_iter_, both=both_right(test, pairs))


def both_right(test, found):
    """Percentage of the steps whose tag and chunk are both right."""
    right = [
        (row[1], row[2]) == pair
        for s, pairs in zip(test, found, strict=True)
        for row, pair in zip(s, pairs, strict=True)
    ]
    return 100 * sum(right) / len(right)


def print_joint(arguments):
    print("\n| solver | s of a core | epochs, iterations | both right |\n|---|--:|--:|--:|")
    for solver in JOINT:
        found = spawn(arguments, "joint", "hscrf", solver)
        print(f"| {solver} | {found['seconds']:.1f} | {found['n_iter']} | {found['both']:.2f} |", flush=True)


def nested_data(arguments, train, task):
    """Features of the words, and the columns of all levels."""
    if task == "conll":
        columns = [{"chunk": [row[2] for row in s], "tag": [row[1] for row in s]} for s in train]
        return [word_features(s) for s in train], columns
    from hscrf import datasets

    found = datasets.load_citations(arguments.data)
    n = 300 if arguments.quick else None
    names = list(found.columns)
    columns = [dict(zip(names, some, strict=True)) for some in zip(*found.columns.values(), strict=True)][:n]
    return [word_features([[word] for word in words]) for words in found.tokens[:n]], columns


def run_product(arguments, train, task, system):
    """Seconds of a core for an iteration, and the number of labels."""
    X, columns = nested_data(arguments, train, task)
    if system == "crfsuite":
        Y = [[" ".join(labels) for labels in zip(*column.values(), strict=True)] for column in columns]
        course = trained_crfsuite(X, Y, "lbfgs", model_path(), c2=0.3, max_iterations=ITERATIONS)
        times = [seconds for _, seconds in course]
        return report(labels=len({label for y in Y for label in y}), iteration=mean_difference(times))
    import hscrf
    from hscrf.solvers import course

    course.time = SimpleNamespace(perf_counter=thread_seconds)  # what the history counts
    solver = hscrf.LBFGS(max_iter=ITERATIONS, delta=0.0)
    model = hscrf.HSCRF(c2=0.3, solver=solver)
    model.fit(X[:20], columns[:20])
    times = [entry["seconds"] for entry in model.fit(X, columns).history_]
    return report(labels=sum(model.topology_.n_states[1:]), iteration=mean_difference(times))


def mean_difference(times):
    """Between one iteration and the next; the first tries several lengths of a step."""
    return (times[-1] - times[0]) / (len(times) - 1)


def print_product(arguments):
    print("\n| task | system | labels | s / iteration | times faster |\n|---|---|--:|--:|--:|")
    for task in ("conll", "citations"):
        base = None
        for system in ("crfsuite", "hscrf"):
            found = spawn(arguments, "product", task, system)
            base = base or found
            ratio = base["iteration"] / found["iteration"]
            print(f"| {task} | {system} | {found['labels']} | {found['iteration']:.3f} | {ratio:.1f} |", flush=True)


# ------------------------------------------------------------------------------


def spawn(arguments, *worker):
    """Run one system in a process of its own and read its numbers."""
    command = [sys.executable, __file__, "--data", arguments.data, "--worker", *worker]
    command += ["--quick"] if arguments.quick else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT "))


TABLES = {
    "iterations": print_iterations,
    "quality": print_quality,
    "tagging": print_tagging,
    "joint": print_joint,
    "product": print_product,
}


def work(arguments, train, test):
    """One system on one task, in this process."""
    task, system, *rest = arguments.worker
    if task == "joint":
        run_joint(train, test, *rest)
    elif task == "product":
        run_product(arguments, train, system, *rest)
    elif task == "quality":
        run_quality(train, test, system, *rest)
    elif task == "tagging":
        run_tagging(train, test)
    elif system == "crfsuite":
        run_crfsuite(train, test, task)
    else:
        run_hscrf(train, test, task, int(rest[0]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("HSCRF_DATA", ""), help="folder that holds conll2000/")
    parser.add_argument("--quick", action="store_true", help="1000 training sentences only")
    parser.add_argument("--table", nargs="+", choices=TABLES, default=list(TABLES), help="all if none is named")
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not Path(arguments.data, "conll2000", "train.txt").exists():
        parser.error(f"{arguments.data or '.'} has no conll2000/train.txt: give --data or set HSCRF_DATA")
    if arguments.worker:
        train = sentences(arguments.data, "train", 1000 if arguments.quick else None)
        return work(arguments, train, sentences(arguments.data, "test", 300 if arguments.quick else None))
    for table in arguments.table:
        TABLES[table](arguments)


if __name__ == "__main__":
    main()
