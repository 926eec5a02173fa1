"""Data beyond memory: time and memory by size, against memory, against threads, and what a cluster costs.

    python benchmarks/scale.py sizes   [--steps 0.2 2 20] [--limit 1.5] [--jobs 1]   a table by millions of steps
    python benchmarks/scale.py memory  [--steps 0.2 2] [--jobs 1]                    on disk against in memory
    python benchmarks/scale.py cluster [--steps 4] [--workers 2]                     worker processes against threads
    python benchmarks/scale.py packing [--steps 2] [--workers 2] [--template]        several processes against one
    python benchmarks/scale.py overhead [--weights 0.5 5] [--workers 2]              of a cluster, per evaluation

Common options: --data FOLDER (holds ``conll2000/train.txt``; default: $HSCRF_DATA, else sentences are generated),
--cache FOLDER (where shards are packed; default: a temporary one), --evaluations N.

The data are CoNLL-2000 repeated, with the 19 usual features of words and tags, for a chain of 22 labels. Every row is
measured in a process of its own. ``sizes`` runs under a hard limit of data memory (``ulimit -d``, in GB) from the
first line on: packing, vocabulary, weights and training all have to fit. Then one process evaluates all sizes in turn.
``cluster`` and the last table of ``memory`` measure both sides in turn, too. Seconds of CPU are those of all threads
and workers; on a machine with other work to do, look at these. Memory is the largest resident set.

``packing`` packs JSON Lines of feature strings, or with ``--template`` column files whose words the default template
describes, by one process and by several in turn. The *critical path* is the CPU time of the process that calls, plus
in each of the two passes that of the process that worked longest: the wall time on a machine with nothing else to do.
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
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from losses import objective_of

sys.path.insert(0, str(Path(__file__).resolve().parent))
MILLION = 1e6


# -- data


def sentences(folder):
    """Feature strings and labels of each sentence: CoNLL-2000, or generated ones of like kind."""
    if folder:
        from learning import sentences as read
        from learning import window_features

        found = read(folder, "train", None)
        return [window_features(s) for s in found], [[row[2] for row in s] for s in found]
    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(8900):
        words = rng.zipf(1.3, size=24) % 20_000
        X.append([[f"{k}={words[t - k]}" for k in range(19)] for t in range(24)])
        Y.append([f"L{w % 22}" for w in words])
    return X, Y


def repeated(folder, steps):
    """Parts that give the sentences again and again, until there are so many steps; all share their strings."""
    X, Y = sentences(folder)
    lengths = np.cumsum([len(x) for x in X])
    parts = []
    while steps > 0:
        n = int(np.searchsorted(lengths, min(steps, lengths[-1]))) + 1
        parts.append(lambda n=n: (X[:n], Y[:n]))
        steps -= lengths[min(n, len(X)) - 1]
    return parts


def shards_of(args, steps):
    """Shards with this number of steps, packed once for all rows that need them."""
    from hscrf.scale import Shards

    key = f"{'conll' if args.data else 'generated'}-{steps}"
    return Shards.from_parts(repeated(args.data, steps), cache=args.cache, key=key)


# -- measurements


@contextmanager
def timed(row, name):
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    row[f"{name} s"], row[f"{name} cpu s"] = time.perf_counter() - wall, time.process_time() - cpu


def evaluations(row, objective, args):
    """Time some evaluations at other weights each time; the first one, which checks files, is apart."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(args.evaluations + 1, 1)) * 0.01 * rng.normal(size=objective.size)
    with timed(row, "first"):
        objective(weights[0])
    each = []
    for w in weights[1:]:
        wall, cpu = time.perf_counter(), time.process_time()
        loss, gradient = objective(w)
        each.append((time.perf_counter() - wall, time.process_time() - cpu))
    row["evaluation s"], row["evaluation cpu s"] = np.min(each, axis=0).tolist()
    row["loss"], row["gradient"] = loss, float(np.abs(gradient).sum())


def measure(args):
    """One row, in this process."""
    if args.limit:
        limit = int(args.limit * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    import hscrf
    from hscrf.objective.workers import Workers

    row = {"steps": args.steps, "where": args.where}
    model = hscrf.ChainCRF(n_jobs=args.jobs)
    with Workers(args.jobs) as workers, clients(args) as client:
        if args.where == "memory":
            X, Y = zip(*(part() for part in repeated(args.data, args.steps)), strict=True)
            with timed(row, "set up"):
                lists = [x for part in X for x in part], [y for part in Y for y in part]
                objective = objective_of(model, *lists, workers)
        else:
            shards = shards_of(args, args.steps)
            with timed(row, "pack"):
                shards.pack(model)
            with timed(row, "set up"):
                objective = objective_of(model, shards, None, workers, client)
            row["bytes a step"] = sum(os.path.getsize(s.file.path) for s in objective.shards) / args.steps
            row["shards"] = len(objective.shards)
        row["weights"] = objective.size
        evaluations(row, objective, args)
        if args.fit:
            del objective
            with timed(row, "fit"):
                model.set_params(solver=hscrf.LBFGS(max_iter=args.fit)).fit(shards)
    row["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return row


@contextmanager
def clients(args):
    """A cluster of so many worker processes of one thread each; None without workers."""
    if not args.workers:
        yield None
        return
    from distributed import Client

    with Client(n_workers=args.workers, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


def measure_turns(args):
    """All sizes in turn, in one process: seconds of CPU of an evaluation of each."""
    import hscrf
    from hscrf.objective.workers import Workers

    with Workers(args.jobs) as workers:
        model = hscrf.ChainCRF(n_jobs=args.jobs)
        sizes = {steps: objective_of(model, shards_of(args, steps), None, workers) for steps in args.turns}
        found = {steps: [] for steps in sizes}
        for _ in range(args.evaluations + 1):
            for steps, objective in sizes.items():
                weights = 0.01 * np.random.default_rng(1).normal(size=objective.size)
                cpu = time.process_time()
                objective(weights)
                found[steps].append(time.process_time() - cpu)
    return {steps: min(each[1:]) for steps, each in found.items()}


def measure_pair(args):
    """In memory and on disk in turn, in one process: both meet the same neighbours on a busy machine."""
    import hscrf
    from hscrf.objective.workers import Workers

    row = {"steps": args.steps}
    with Workers(args.jobs) as workers:
        model = hscrf.ChainCRF(n_jobs=args.jobs)
        disk = objective_of(model, shards_of(args, args.steps), None, workers)
        X, Y = zip(*(part() for part in repeated(args.data, args.steps)), strict=True)
        lists = [x for part in X for x in part], [y for part in Y for y in part]
        memory = objective_of(hscrf.ChainCRF(n_jobs=args.jobs), *lists, workers)
        weights = 0.05 * np.random.default_rng(1).normal(size=disk.size)
        assert memory(weights)[0] == disk(weights)[0], "the same bits"
        found = {"memory": [], "disk": []}
        for _ in range(args.evaluations):
            for name, objective in (("memory", memory), ("disk", disk)):
                wall, cpu = time.perf_counter(), time.process_time()
                objective(weights)
                found[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    for name, each in found.items():
        row[f"{name} s"], row[f"{name} cpu s"] = np.min(each, axis=0).tolist()
    row["speed"], row["cpu speed"] = row["memory s"] / row["disk s"], row["memory cpu s"] / row["disk cpu s"]
    return row


def measure_cluster(args):
    """Threads of this process and worker processes in turn: both meet the same neighbours on a busy machine."""
    import hscrf
    from hscrf.objective.workers import Workers

    row = {"steps": args.steps}
    shards = shards_of(args, args.steps)
    with Workers(args.workers) as threads, Workers(1) as one, clients(args) as client:
        here = objective_of(hscrf.ChainCRF(), shards, None, threads)
        there = objective_of(hscrf.ChainCRF(), shards, None, one, client)
        row["weights"] = here.size
        weights = 0.05 * np.random.default_rng(1).normal(size=here.size)
        one, other = here(weights), there(weights)
        assert one[0] == other[0], "the same bits"
        assert (one[1] == other[1]).all(), "the same bits"

        def cpu():
            return time.process_time() + sum(client.run(time.process_time).values())

        found = {"threads": [], "workers": []}
        for _ in range(args.evaluations):
            for name, objective in (("threads", here), ("workers", there)):
                wall, work = time.perf_counter(), cpu()
                objective(weights)
                found[name].append((time.perf_counter() - wall, cpu() - work))
    for name, each in found.items():
        row[f"{name} s"], row[f"{name} cpu s"] = np.min(each, axis=0).tolist()
    row["speed"], row["cpu speed"] = row["threads s"] / row["workers s"], row["threads cpu s"] / row["workers cpu s"]
    return row


def measure_overhead(args):
    """Few steps and many weights: what an evaluation on a cluster costs beside the work."""
    import hscrf
    from hscrf.objective.workers import Cuts, Workers
    from hscrf.scale import Shards
    from hscrf.scale.sizes import Sizes

    labels = [f"L{k}" for k in range(22)]
    names = int(args.weights * MILLION / len(labels))
    steps = names // 20
    X = [[[f"f{20 * t + k}" for k in range(20)] for t in range(a, min(a + 25, steps))] for a in range(0, steps, 25)]
    Y = [[labels[t % 22] for t in range(len(x))] for x in X]
    row = {"weights": args.weights, "workers": args.workers, "steps": steps}
    shards = Shards.from_parts([lambda: (X, Y)], cache=args.cache, key=f"overhead-{args.weights}")
    shards.sizes = Sizes(Cuts(shard=steps // 4 + 25))  # four shards: two tasks for each of two workers
    with Workers(1) as workers, clients(args) as client:
        objective = objective_of(hscrf.ChainCRF(pairs="all"), shards, None, workers, client)
        row["exact weights"] = objective.size
        evaluations(row, objective, args)
    return row


def measure_packing(args):
    """One process and several in turn, on the same files."""
    import hscrf
    from hscrf.scale import Shards
    from hscrf.scale.sizes import Sizes
    from hscrf.scale.tasks import TaskRunner

    row = {"steps": args.steps, "processes": args.workers}
    watched = TaskRunner.map

    def timed_map(self, function, tasks, folder, *arguments):
        spent = {}
        for process, seconds, result in watched(self, clocked, tasks, folder, function, *arguments):
            spent[process] = spent.get(process, 0.0) + seconds
            yield result
        longest.append(max(spent.values()))
        others.append(sum(seconds for process, seconds in spent.items() if process != os.getpid()))
        own.append(spent.get(os.getpid(), 0.0))

    TaskRunner.map = timed_map
    digests = []
    with tempfile.TemporaryDirectory() as folder:
        layout = written(args, folder)
        shards = Shards.from_files(f"{folder}/*.*", **layout)
        hscrf.ChainCRF(n_jobs=args.workers)
        for turn in range(args.evaluations + 1):
            for jobs in (1, args.workers):
                longest, others, own = [], [], []
                shards = Shards.from_files(f"{folder}/*.*", **layout)
                shards.sizes = Sizes(reading=1)  # few steps are packed by several processes, too
                wall, cpu = time.perf_counter(), time.process_time()
                packed = shards.packed_for(hscrf.ChainCRF(n_jobs=jobs, min_count=2))
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                digests.append([file.digest for file in packed.files])
                found = {"s": wall, "cpu s": cpu + sum(others), "critical path s": cpu - sum(own) + sum(longest)}
                for name, seconds in found.items() if turn else ():  # the first turn starts the processes
                    row[f"{jobs}: {name}"] = min(seconds, row.get(f"{jobs}: {name}", np.inf))
    assert all(digest == digests[0] for digest in digests), "the same bits"
    for name in ("s", "critical path s"):
        row[f"speed by {name[:-2] or 'wall'}"] = row[f"1: {name}"] / row[f"{args.workers}: {name}"]
    return row


def clocked(task, function, *arguments):
    """The process that does a task, its CPU seconds, and the result."""
    cpu = time.process_time()
    result = function(task, *arguments)
    return os.getpid(), time.process_time() - cpu, result


def written(args, folder, files=8):
    """Write files with this number of steps; return the arguments that read them."""
    X, Y = sentences(args.data)
    most = args.steps / files
    for k in range(files):
        n, done = k * len(X) // files, 0
        name = f"{folder}/{k}.{'txt' if args.template else 'jsonl'}"
        with open(name, "w", encoding="utf-8") as file:
            while done < most:
                x, y = X[n % len(X)], Y[n % len(X)]
                if args.template:
                    file.writelines(f"{s[2].partition('=')[2]} {label}\n" for s, label in zip(x, y, strict=True))
                    file.write("\n")
                else:
                    file.write(json.dumps({"tokens": x, "labels": {"label": y}}) + "\n")
                n, done = n + 1, done + len(x)
    if args.template:
        return {"levels": ["label"], "columns": ["word", "label"], "template": "default"}
    return {"levels": ["label"], "template": "none"}


def apart(args, **options):
    """A row that another process measures."""
    given = {**vars(args), **options, "what": "row"}
    command = [sys.executable, __file__, "row", json.dumps({k: v for k, v in given.items() if k != "run"})]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"a process failed with code {done.returncode}: {options}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


def table(rows, columns):
    rows = [row for row in rows if row]
    cells = [columns] + [[_cell(row.get(name, "")) for name in columns] for row in rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(columns))]
    for row in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def _cell(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# -- commands


def sizes(args):
    rows = []
    for steps in args.steps:
        row = apart(args, steps=int(steps * MILLION), where="disk", function="measure", workers=0, fit=args.fit)
        if row:
            row["ns a step"] = 1e9 * row["evaluation s"] / row["steps"]
            row["cpu ns a step"] = 1e9 * row["evaluation cpu s"] / row["steps"]
            row["pack k steps/s"] = row["steps"] / max(row["pack s"], 1e-3) / 1e3
        rows.append(row)
    names = ["steps", "shards", "weights", "bytes a step", "pack s", "pack cpu s", "set up s", "evaluation s"]
    table(rows, [*names, "ns a step", "cpu ns a step", "fit s", "peak MB"])
    turns = [int(steps * MILLION) for steps in args.steps]
    found = apart(args, turns=turns, function="measure_turns", limit=0)
    print("\nin turn, in one process")
    ns = {int(steps): 1e9 * seconds / int(steps) for steps, seconds in (found or {}).items()}
    table([{"steps": steps, "cpu ns a step": value} for steps, value in ns.items()], ["steps", "cpu ns a step"])


def memory(args):
    rows = []
    for steps in args.steps:
        pair = [
            apart(args, steps=int(steps * MILLION), where=where, function="measure", workers=0, fit=0, limit=0)
            for where in ("memory", "disk")
        ]
        if all(pair):
            assert pair[0]["loss"] == pair[1]["loss"], "the same bits"
            assert pair[0]["gradient"] == pair[1]["gradient"], "the same bits"
        rows += pair
    table(rows, ["steps", "where", "set up s", "evaluation s", "evaluation cpu s", "peak MB"])
    pairs = [apart(args, steps=int(steps * MILLION), function="measure_pair", workers=0) for steps in args.steps]
    table(pairs, ["steps", "memory s", "disk s", "speed", "memory cpu s", "disk cpu s", "cpu speed"])


def cluster(args):
    rows = [apart(args, steps=int(steps * MILLION), function="measure_cluster") for steps in args.steps]
    names = ["threads s", "workers s", "speed", "threads cpu s", "workers cpu s", "cpu speed"]
    table(rows, ["steps", "weights", *names])


def packing(args):
    rows = [apart(args, steps=int(steps * MILLION), function="measure_packing") for steps in args.steps]
    jobs = [f"{n}: {name}" for name in ("s", "cpu s", "critical path s") for n in (1, args.workers)]
    table(rows, ["steps", *jobs, "speed by wall", "speed by critical path"])


def overhead(args):
    rows = []
    for weights in args.weights:
        here = apart(args, weights=weights, workers=0, function="measure_overhead")
        far = apart(args, weights=weights, workers=args.workers, function="measure_overhead")
        if here and far:
            far["overhead s"] = far["evaluation s"] - here["evaluation s"]
        rows += [here, far]
    table(rows, ["exact weights", "workers", "steps", "evaluation s", "overhead s"])


def main():
    if sys.argv[1:2] == ["row"]:
        args = argparse.Namespace(**json.loads(sys.argv[2]))
        print(json.dumps(globals()[args.function](args)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("sizes", "memory", "cluster", "packing", "overhead"))
    parser.add_argument("--steps", type=float, nargs="+", help="millions of them")
    parser.add_argument("--weights", type=float, nargs="+", default=[0.5, 5.0], help="millions of them")
    parser.add_argument("--limit", type=float, default=1.5, help="GB of data memory, for sizes; 0: none")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--evaluations", type=int, default=3)
    parser.add_argument("--fit", type=int, default=0, help="iterations of a whole fit, for sizes")
    parser.add_argument("--data", default=os.environ.get("HSCRF_DATA"))
    parser.add_argument("--template", action="store_true", help="for packing: words, which a template describes")
    parser.add_argument("--cache")
    args = parser.parse_args()
    args.steps = args.steps or {
        "sizes": [0.2, 2.0, 20.0],
        "memory": [0.2, 2.0],
        "cluster": [4.0],
        "packing": [2.0],
    }.get(args.what)
    with tempfile.TemporaryDirectory() as folder:
        args.cache = args.cache or folder
        globals()[args.what](args)


if __name__ == "__main__":
    main()
