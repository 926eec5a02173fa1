"""Problems that two commits must solve with the same numbers: the engine, metrics, files and the command line.

``benchmarks/fits.py`` adds all that is trained, ``benchmarks/commits.py`` solves the problems with two checkouts and
compares. Only public names are used. A result is nested dicts and lists of arrays, numbers, texts and objects of the
package; :func:`solve` takes it apart.
"""

import functools
import io
import json
import re
import subprocess
import sys
import tempfile
import traceback
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas

import hscrf
from drawing import MIXES, draw_evidence, draw_model
from hscrf import LBFGS, metrics
from hscrf import io as files
from hscrf.datasets import make_activities, make_nested

PROBLEMS = {}  # name -> a function that solves it
FAILED = "failed"  # the place of a traceback


def problem(name, *arguments, **options):
    """Register a function, with its arguments, as a problem."""

    def register(function):
        PROBLEMS[name] = functools.partial(function, *arguments, **options)
        return function

    return register


# ---------------------------------------------------------------------------------------------------------- results


def values_of(result, place=""):
    """All numbers, arrays and texts of a nested result, each with its place in it."""
    result = opened(result)
    if isinstance(result, dict):
        for key, value in result.items():
            yield from values_of(value, f"{place}/{key}")
    elif isinstance(result, (list, tuple)) and not all(isinstance(value, (int, float, str)) for value in result):
        for k, value in enumerate(result):
            yield from values_of(value, f"{place}/{k}")
    else:
        yield place, np.asarray("None" if result is None else result)


def opened(result):
    """Objects of the package as dicts of what they hold."""
    if isinstance(result, hscrf.Labels):
        return {"states": result.states, "ends": result.ends, "score": result.score}
    if isinstance(result, hscrf.Potentials):
        return {f"{part} {level}": values for part, level, values in result.parts()}
    if isinstance(result, hscrf.Topology):
        return json.dumps(result.to_dict())
    if isinstance(result, hscrf.Marginals):
        segments = {level: result.segment(level) for level in result.counts.topology.levels}
        posterior = {"state": result.state, "ending": result.ending, "segment": segments, "counts": result.counts}
        return {"log_partition": result.log_partition, **posterior}
    if isinstance(result, metrics.Score):
        return result.to_dict()
    if isinstance(result, pandas.DataFrame):
        return {name: result[name].to_list() for name in result.columns}
    return result


def outcome(function, *arguments, **options):
    """The result, or the class of the error as Python knows it: messages may be reworded, and errors carry more."""
    try:
        return function(*arguments, **options)
    except (ValueError, TypeError) as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


def solve(words=()):
    """Solve the problems whose names contain one of the words, or all: a dict of ``problem|place`` -> array."""
    found = {}
    for name, function in PROBLEMS.items():
        if words and not any(word in name for word in words):
            continue
        try:
            result = dict(values_of(function()))
        except Exception:
            result = {FAILED: np.asarray(traceback.format_exc())}
        found |= {f"{name}|{place}": value for place, value in result.items()}
    return found


# ---------------------------------------------------------------------------------------------------- generated data


def hidden(truth, topology=None, share=0.7):
    """The labels with a share of their states and ends unknown; nothing is known of the second sequence."""
    rng = np.random.default_rng(1)
    known = []
    for y in truth:
        states = np.where(rng.random(y.states.shape) < share, -1, y.states)
        ends = np.where(rng.random(y.ends.shape) < share, -1, y.ends)
        known.append(hscrf.Labels(topology or y.topology, states, ends))
    return [known[0], None, *known[2:]]


def nested(**options):
    """Short sequences with two levels, the same at every call."""
    return make_nested(8, **{"sizes": (2, 3), "length": (6, 12), "n_features": 3, "random_state": 3, **options})


def as_strings(X):
    return [[[f"f{k}={round(value)}" for k, value in enumerate(row)] for row in x.tolist()] for x in X]


def as_columns(Y, **schemes):
    """Labels as a dict of columns for each sequence."""
    return [{level: y.column(level, schemes.get(level, "plain")) for level in y.topology.levels[1:]} for y in Y]


def gappy(column, every=3):
    """A column with every third label unknown."""
    return ["?" if t % every == 1 else tag for t, tag in enumerate(column)]


# ------------------------------------------------------------------------------------------------------------ engine


for kinds in MIXES:

    @problem(f"engine: {' > '.join(kinds)}", kinds)
    def engine(kinds):
        """All verbs on random potentials: free, with evidence, of two classes, with -inf, of wide range."""
        variants = {"plain": {}, "classes": {"classes": 2, "constant": True}, "sparse": {"sparse": True, "longest": 4}}
        variants |= {"forbidden": {"forbidden": 0.05}, "wide": {"scale": 50.0}, "one step": {"length": 1}}
        found = {}
        for name, options in variants.items():
            rng = np.random.default_rng(11)
            p = draw_model(rng, kinds, **{"length": 9, "size": 3, **options})
            found[name] = outcome(inferred, p)
            if isinstance(found[name], dict):
                found[f"{name} evidence"] = inferred(p, draw_evidence(rng, p, 0.15))
        return found


def inferred(p, evidence=None):
    """Every verb of the engine."""
    best = hscrf.k_best(p, 6, evidence)
    drawn = hscrf.sample(p, 12, 5, evidence)
    log_z = hscrf.log_partition(p, evidence)
    scores = [hscrf.score(p, labels) for labels in (*best, *drawn)]
    found = {"log_partition": log_z, "decode": hscrf.decode(p, evidence), "k_best": best, "sample": drawn}
    found |= {"marginals": hscrf.marginals(p, evidence), "score": scores}
    return {**found, "entropy": [hscrf.entropy(p, evidence), log_z]}


# ---------------------------------------------------------------------------------- metrics, files, the command line


@problem("metrics")
def measures():
    X, Y = nested()
    guess = hscrf.HSCRF(solver=LBFGS(max_iter=2)).fit(as_strings(X)[:3], Y[:3]).predict(as_strings(X))
    tags = [[y.column("level1", "bio") for y in some] for some in (Y, guess)]
    found = {"report": metrics.report(Y, guess, output_dict=True), "text": metrics.report(Y, guess, tolerance=1)}
    found |= {"boundary_f1": metrics.boundary_f1(Y, guess, "level1"), "conlleval": metrics.conlleval(*tags)}
    found |= {"text of conlleval": metrics.conlleval_text(metrics.conlleval(*tags))}
    known = [y or hscrf.Labels.unknown(Y[1].topology, Y[1].length) for y in hidden(Y)]
    return {
        **found,
        "partial": metrics.report(known, guess, output_dict=True),
        "accuracy": metrics.accuracy(known, guess),
    }


@problem("datasets")
def datasets():
    return {"nested": nested(sizes=(2, 2, 3)), "activities": make_activities(5, persisting=True, random_state=1)[1]}


def documents(form="columns"):
    """Sentences of words, tags and BIO chunks, as the files hold them."""
    X, Y = nested(length=(8, 14))
    words = [[row[:2] for row in x] for x in as_strings(X)]
    columns = [
        {"chunk": y.column("level1", "bio") if form == "columns" else y.segments("level1"), "tag": y.column("level2")}
        for y in Y
    ]
    return [files.Document(x, y, name=str(n)) for n, (x, y) in enumerate(zip(words, columns, strict=True))]


@problem("files: columns", "columns")
@problem("files: JSON Lines", "jsonl")
@problem("files: tables", "table")
@problem("files: CRFsuite items", "crfsuite")
def round_trips(form):
    options = {"columns": {"levels": ["chunk", "tag"]}, "table": {"levels": ["chunk", "tag"]}}.get(form, {})
    given = documents(form if form == "jsonl" else "columns")
    if form == "table":
        given = [replace(d, tokens=[{"word": w, "shape": s} for w, s in d.tokens]) for d in given]
    if form == "crfsuite":
        given = [
            files.Document([dict.fromkeys(token, 1.0) for token in d.tokens], {"tag": d.labels["tag"]}) for d in given
        ]
    target = io.StringIO()
    getattr(files, f"write_{form}")(target, given)
    again = list(getattr(files, f"read_{form}")(io.StringIO(target.getvalue()), **options))
    return {
        "text": target.getvalue(),
        "tokens": str([d.tokens for d in again]),
        "labels": str([d.labels for d in again]),
    }


COMMANDS = {
    "columns": [
        "fit train.columns -m model --levels chunk,tag --max-iter 5 --progress none",
        "predict train.columns -m model -t -o out.columns",
        "predict half.columns -m model --marginals --k-best 3",
        "predict train.columns -m model -t --given tag",
        "score out.columns -m model --json -",
        "score out.columns -m model --conlleval chunk",
        "score train.columns out.columns -m model --tolerance 1",
        "fit train.columns -m sgd --levels chunk,tag --durations chunk=bins --solver sgd --max-iter 2 --progress none",
        "predict train.columns -m sgd -t",
    ],
    "jsonl": [
        "fit train.jsonl -m model --levels chunk,tag --c1 0.2 --max-iter 5 --progress none",
        "predict train.jsonl -m model -t -o out.jsonl",
        "predict half.jsonl -m model --marginals --k-best 3",
        "score out.jsonl -m model",
    ],
}


@problem("command line: columns", "columns")
@problem("command line: JSON Lines", "jsonl")
def command_line(form):
    """What the commands print, the weights they leave behind, and the numbers on standard error."""
    write, given = getattr(files, f"write_{form}"), documents(form)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder, f"train.{form}"), given)
        half = [files.Document(d.tokens, {**d.labels, "tag": gappy(d.labels["tag"], 2)}, name=d.name) for d in given]
        write(Path(folder, f"half.{form}"), half)
        for words in COMMANDS[form]:
            command = [sys.executable, "-m", "hscrf", *words.split()]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            lines = done.stdout.splitlines()
            output = [json.loads(line) for line in lines] if form == "jsonl" and "score" not in words else lines
            told = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", done.stderr)]
            found[words] = {"exit": done.returncode, "output": output, "numbers told": told}
        for path in sorted(Path(folder).glob("out.*")):
            found[path.name] = path.read_text(encoding="utf-8")
        found["coef"] = hscrf.load(Path(folder, "model")).coef_
    if any(one["exit"] for one in found.values() if isinstance(one, dict)):
        raise RuntimeError(f"a command failed: {found}")
    return found


@problem("what is refused, and by which error")
def refused():
    X, Y = nested()
    X, topology = as_strings(X), Y[0].topology
    model = hscrf.HSCRF(solver=LBFGS(max_iter=2)).fit(X, as_columns(Y))
    p = hscrf.Potentials(topology, 2, token={"level2": np.full((2, 3), -np.inf)})
    torn = [{"level1": [(0, 3, "a0")], "level2": [(2, 5, "b1")]}]
    attempts = {
        "impossible": (hscrf.log_partition, p),
        "impossible to decode": (hscrf.decode, p),
        "not nested": (model.predict, X[:1], torn),
        "unknown state": (model.predict, X[:1], [{"level2": ["c"] * len(X[0])}]),
        "too few labels": (model.fit, X, as_columns(Y)[1:]),
        "an empty sequence": (model.predict, [[]]),
        "no features": (model.predict, [["a", "b"]]),
        "unknown loss": (model.predict, X, None, "half"),
        "unknown level": (topology.level, "level9"),
        "unknown model": (hscrf.load, __file__),
    }
    return {name: outcome(*attempt) for name, attempt in attempts.items()}
