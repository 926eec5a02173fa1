"""Two commits side by side: the same numbers, the same speed, the same start-up.

    python benchmarks/commits.py OLD NEW [--numbers] [--speed] [--startup] [--quick] [--rounds N] [--only WORD ...]

OLD and NEW are folders with a checkout of the project in which the core was built, or names that git knows for commits
that have no core; without a choice all three parts run.
The code that runs is that beside this file, in processes of their own that import the package of OLD or NEW. It uses
public names only. Tables are in Markdown.

--numbers: the problems of ``problems.py`` and ``fits.py`` on both. Arrays are compared on the scale of their largest
value and may differ by 1e-12 of it; texts, shapes and the places of infinities must be equal. The random streams of
``model.sample`` may change between commits: its rows compare how often each state and end was drawn, which may differ
by 5 standard deviations. The exit status is 1 if anything differs.

--speed: training and prediction (``engine.py --against`` compares the engine). The commits take turns, OLD, NEW, OLD,
NEW, after a run of each that is not counted. Seconds are the best of all rounds; the last column has the lowest and the
highest ratio of one round, which tells how noisy the machine was. With conll2000 in --data (default: $HSCRF_DATA),
``learning.py`` is among the pieces.

--startup: seconds of ``import hscrf``, of the first marginals and decoding, of importing every public name, and of
``python -m hscrf --help``, in the same way. A bare import may put off what the first call then pays: read the sum too.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import checkouts
import engine
import learning
import numpy as np

CLOSE = 1e-12  # largest relative difference of numbers
SIGMAS = 5.0  # largest difference of frequencies, in standard deviations
EVERYTHING = "import time; begin = time.perf_counter(); from hscrf import *; print(time.perf_counter() - begin)"


# ---------------------------------------------------------------------------------------------------- the same numbers


def compare_numbers(commits, words):
    """Solve the problems with both commits and print a row for each; whether all numbers agree."""
    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(lambda commit: solve(commit, words), commits)
    verdicts, faults = [], []
    print(engine.head(("problem", "values", "largest difference", "verdict")))
    for name in {**one, **other}:
        count, most, unit, places = verdict(name, one.get(name, {}), other.get(name, {}))
        verdicts.append("DIFFERENT" if places else "ok")
        print(engine.row((name, f"{count:,}", f"{most:.2g}{unit}", verdicts[-1])))
        faults += places
    print(f"\n{len(verdicts)} problems, {verdicts.count('DIFFERENT')} different.")
    print("\n".join(faults))
    return not faults


def solve(commit, words):
    """Results of the problems: by problem and place, arrays."""
    path = commit.kept / "numbers.npz"
    commit.run(__file__, "--worker", "numbers", path, *words)
    found = {}
    with np.load(path) as arrays:
        for key, values in arrays.items():
            name, place = key.split("|", 1)
            found.setdefault(name, {})[place] = values
    return found


def verdict(name, one, other):
    """Number of values, largest difference, its unit, and the places that differ by too much."""
    drawn = name.startswith("sample of ")
    measure, limit, unit = (sigmas, SIGMAS, " sigma") if drawn else (difference, CLOSE, "")
    found = {place: measure(one.get(place), other.get(place)) for place in {**one, **other}}
    faults = [f"- {name}, {place or 'result'}: differs by {found[place]:.3g}{unit}" for place in found]
    places = [fault for fault, far in zip(faults, found.values(), strict=True) if not far <= limit]
    for side, results in (("OLD", one), ("NEW", other)):
        if "failed" in results:
            places.append(f"- {name} failed in {side}: {str(results['failed']).strip().splitlines()[-1]}")
    return sum(values.size for values in one.values()), max(found.values()), unit, places[:8]


def difference(one, other):
    """Largest difference relative to the largest finite value; infinite if anything but numbers differs."""
    if one is None or other is None or one.shape != other.shape:
        return np.inf
    if not all(values.dtype.kind in "biuf" for values in (one, other)):
        return 0.0 if np.array_equal(one, other) else np.inf
    one, other = one.astype(float), other.astype(float)
    finite = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return np.inf
    scale = np.maximum(np.abs(one[finite]), np.abs(other[finite])).max(initial=0.0)
    return np.abs(one[finite] - other[finite]).max() / scale if scale else 0.0


def sigmas(one, other):
    """Largest difference of counts (values, ...) in standard deviations; shares are smoothed by one more of each."""
    if one is None or other is None or one.shape != other.shape:
        return np.inf
    draws = one.sum(axis=0)
    share = (one + other + 2) / (2 * draws + 4)
    return (np.abs(one - other) / np.sqrt(2 * draws * share * (1 - share))).max()


# ------------------------------------------------------------------------------------------------------ taking turns


def take_turns(commits, rounds, jobs):
    """Time both commits in turns and print a row for each piece; a job is (warm-up, job), functions of a commit."""
    print(engine.head(("piece", "OLD (s)", "NEW (s)", "NEW / OLD", "of one round")))
    for warm_up, job in jobs:
        for commit in commits:
            warm_up(commit)
        measured = [[job(commit) for commit in commits] for _ in range(rounds)]
        for piece in measured[0][0]:
            old, new = (np.array([turn[k][piece] for turn in measured]) for k in range(2))
            ratios = new / old
            seconds = (f"{old.min():.4g}", f"{new.min():.4g}", f"{new.min() / old.min():.3f}")
            print(engine.row((piece, *seconds, f"{ratios.min():.3f} to {ratios.max():.3f}")), flush=True)


def worker(*words):
    """A job that runs a worker of this file and reads the seconds it prints."""
    job = lambda commit: json.loads(commit.run(__file__, "--worker", *words))  # noqa: E731
    return job, job


def conll(task, data, quick):
    """A job that runs ``learning.py`` on one task; its warm-up is the quick version."""

    def run(commit, *options):
        printed = commit.run(learning.__file__, "--data", data, "--worker", task, "hscrf", "1", *options)
        found = json.loads(next(line for line in printed.splitlines() if line.startswith("RESULT "))[7:])
        names = {"iteration": "an iteration", "whole": "end to end"}
        return {f"CoNLL-2000 {task}: {title}": found[name] for name, title in names.items()}

    return lambda commit: run(commit, "--quick"), lambda commit: run(commit, *(["--quick"] if quick else []))


def speed_jobs(data, quick, words):
    """The jobs whose names contain one of the words, or all."""
    jobs = {"learning": worker("learning", "quick" if quick else "full")}
    if Path(data, "conll2000", "train.txt").exists():
        jobs |= {f"CoNLL-2000 {task}": conll(task, data, quick) for task in ("np", "chunks")}
    else:
        print("(no conll2000/train.txt in --data: its pieces are left out)\n")
    return [job for name, job in jobs.items() if not words or any(word in name for word in words)]


def start_up(commit):
    """Seconds of the first things a process does."""
    names = ("import hscrf", "first marginals", "first decode")
    found = dict(zip(names, map(float, commit.run("-c", engine.FIRST).split()), strict=True))
    found["import hscrf to first decode"] = sum(found.values())  # whatever is imported when
    found["from hscrf import *"] = float(commit.run("-c", EVERYTHING))
    begin = time.perf_counter()
    commit.run("-m", "hscrf", "--help")
    return {**found, "python -m hscrf --help": time.perf_counter() - begin}


# ----------------------------------------------------------------------------------------------------------- workers


def solve_problems(target, *words):
    import fits  # noqa: F401  the problems of training
    import problems

    np.savez_compressed(target, **problems.solve(words))


def time_learning(size):
    """Training and prediction of generated data: best of three runs."""
    runs = [learning_pieces(quick=size == "quick") for _ in range(3)]
    print(json.dumps({piece: min(run[piece] for run in runs) for piece in runs[0]}))


def learning_pieces(quick):
    import hscrf
    from hscrf.datasets import make_activities, make_nested

    X, Y = make_activities(30 if quick else 150, random_state=0)
    known = [hscrf.Labels(y.topology, np.where(y.states % 3, y.states, -1), np.full_like(y.ends, -1)) for y in Y]
    many, labels = make_nested(300 if quick else 3000, sizes=(3, 4), length=(5, 9), random_state=0)
    lasting, segments = make_nested(20 if quick else 100, sizes=(4,), durations=(6,), random_state=0)
    bio = [y.column("level1", "bio") for y in segments]
    descent, down = hscrf.LBFGS(max_iter=8), hscrf.SGD(epochs=3, rate=0.1, delta=0)
    model, set_up, iteration = timed_fit(hscrf.HSCRF(solver=descent), X, Y)
    times = {"HSCRF: set-up of fit": set_up, "HSCRF: an iteration": iteration}
    times["HSCRF: predict"] = once(lambda: model.predict(X))
    times["HSCRF: predict with evidence"] = once(lambda: model.predict(X, evidence=known))
    short, times["HSCRF, many short sequences: set-up of fit"], _ = timed_fit(hscrf.HSCRF(solver=descent), many, labels)
    times["HSCRF, many short sequences: predict"] = once(lambda: short.predict(many))
    times["HSCRF, many short sequences: predict_marginals"] = once(lambda: short.predict_marginals(many))
    times["HSCRF, partial labels: an iteration"] = timed_fit(hscrf.HSCRF(solver=descent), X, known)[2]
    times["SemiCRF: an iteration"] = timed_fit(hscrf.SemiCRF(solver=descent), lasting, bio)[2]
    times["HSCRF: an epoch of SGD"] = timed_fit(hscrf.HSCRF(solver=down, random_state=0), X, Y)[2]
    averaged = hscrf.HSCRF(solver=hscrf.Perceptron(epochs=3), random_state=0)
    times["HSCRF: an epoch of the perceptron"] = timed_fit(averaged, X, Y)[2]
    em = hscrf.HHMM(Y[0].topology, max_iter=4, tol=-np.inf, random_state=0)
    symbols = [[step[0] for step in x] for x in X]
    times["HHMM: four steps of EM"] = once(lambda: em.fit(symbols, known))
    return times


def timed_fit(model, X, Y):
    """The trained model, seconds outside the solver, and seconds of an iteration after the first."""
    whole = once(lambda: model.fit(X, Y))
    seconds = [entry["seconds"] for entry in model.history_]
    return model, whole - seconds[-1], (seconds[-1] - seconds[0]) / (len(seconds) - 1)


def once(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


WORKERS = {"numbers": solve_problems, "learning": time_learning}


def main():
    if sys.argv[1:2] == ["--worker"]:
        return WORKERS[sys.argv[2]](*sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW")
    for part in ("numbers", "speed", "startup"):
        parser.add_argument(f"--{part}", action="store_true", help=f"this part: {part}")
    parser.add_argument("--quick", action="store_true", help="small data for the speed of learning")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each commit (default: %(default)s)")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="WORD", help="problems and jobs whose names contain a word"
    )
    parser.add_argument("--data", default=os.environ.get("HSCRF_DATA", ""), help="folder that holds conll2000/")
    parser.add_argument("--keep", type=Path, help="folder for results (default: a temporary one)")
    args = parser.parse_args()
    everything = not (args.numbers or args.speed or args.startup)
    same = True
    with checkouts.both(args.old, args.new, args.keep) as commits:
        if args.numbers or everything:
            print("# The same numbers\n")
            same = compare_numbers(commits, args.only)
        if args.speed or everything:
            print("\n# The same speed\n")
            take_turns(commits, args.rounds, speed_jobs(args.data, args.quick, args.only))
        if args.startup or everything:
            print("\n# The same start-up\n")
            take_turns(commits, 2 * args.rounds, [(start_up, start_up)])
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
