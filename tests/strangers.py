"""Small files of every family, and what happens to somebody who opens damaged copies of them.

Run as a program, ``strangers.py FOLDER FIRST LAST FAMILY...``, it opens the damaged files of these numbers one after
the other, those of all families in turn, and prints a line of JSON before and after each, so that a crash of the
interpreter can be seen from outside.
"""

import json
import linecache
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import hscrf
from damage import KINDS, damaged
from hscrf.cli import main
from hscrf.cli.shell import UserError
from hscrf.errors import FileFormatError
from hscrf.solvers import LBFGS, SGD

ROOM = 256 << 20  # bytes that a file of a few kilobytes may ask for
PATIENCE = 30  # seconds for one file, after which the process ends itself
WORDS = [["w=the", "cap"], ["w=cat"], ["w=sees"], ["w=the"], ["w=dog", "odd"], ["w=barks"]]
PHRASES = ["NP", "NP", "VP", "NP", "NP", "VP"]
TAGS = ["D", "N", "V", "D", "N", "V"]
STRINGS = [WORDS, WORDS[:3], WORDS[3:], WORDS[:2]]
ITEMS = [[{"w": word[0], "size": 0.5 * k} for k, word in enumerate(x)] for x in STRINGS]
NESTED = [{"phrase": PHRASES[: len(x)], "tag": TAGS[: len(x)]} for x in STRINGS]
FLAT = [TAGS[: len(x)] for x in STRINGS]
CHUNKS = [["B-NP", "I-NP", "B-VP", "B-NP", "I-NP", "O"][: len(x)] for x in STRINGS]
ROWS = [np.sin(np.arange(2.0 * len(x))).reshape(-1, 2) for x in STRINGS]
SYMBOLS = [["a", "b", 7, "a", "c", 7][: len(x)] for x in STRINGS]
TEXT = "the D B-NP\ncat N I-NP\nsees V B-VP\n\nthe D B-NP\ndog N I-NP\nbarks V B-VP\n\n"


def length(z, start, stop):
    return [float(stop - start), 1.0]


def string_model():
    features = [hscrf.Token("phrase"), hscrf.Token("tag"), hscrf.Trans("phrase", observed=True), hscrf.Init("root")]
    return hscrf.HSCRF(features=features, solver=LBFGS(max_iter=3), scheme={"phrase": "plain"}).fit(STRINGS, NESTED)


def dict_model():
    limits = {"phrase": {"NP": 3, "VP": 2}}
    levels = {"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]}
    topology = hscrf.Topology(levels, children={"phrase": {"VP": ["V"]}}, max_duration=limits)
    return hscrf.HSCRF(topology, solver=SGD(epochs=2), random_state=3, pairs="all").fit(ITEMS, NESTED)


def dense_model():
    features = [hscrf.Token("phrase", average=True), hscrf.Token("tag"), hscrf.Start("phrase"), hscrf.Stop("phrase")]
    features += [hscrf.Duration("phrase", kind) for kind in ("gamma", "bins", "each")]
    features += [hscrf.Segment("phrase", length), hscrf.Trans("phrase"), hscrf.End("root", observed=True)]
    return hscrf.HSCRF(features=features, solver=LBFGS(max_iter=3)).fit(ROWS, NESTED)


def chain_model():
    return hscrf.ChainCRF(edges=True, c1=0.1, solver=LBFGS(max_iter=3), min_count=2).fit(STRINGS, FLAT)


def semi_model():
    return hscrf.SemiCRF(max_duration=3, solver="perceptron").fit(ITEMS, CHUNKS)


def dynamic_model():
    return hscrf.DynamicCRF(solver=LBFGS(max_iter=3)).fit(STRINGS, NESTED)


def symbol_model():
    root = hscrf.Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]}, root=["one", "two"])
    return hscrf.HHMM(root, smoothing=0.0, max_iter=3, random_state=0, root_ends=True).fit(SYMBOLS, NESTED)


def gaussian_model():
    return hscrf.HHMM(max_iter=2, random_state=0, emission="gaussian").fit(ROWS, NESTED)


MODELS = {
    "strings": (string_model, STRINGS),
    "dicts": (dict_model, ITEMS),
    "dense": (dense_model, ROWS),
    "chain": (chain_model, STRINGS),
    "semi": (semi_model, ITEMS),
    "dynamic": (dynamic_model, STRINGS),
    "hhmm symbols": (symbol_model, SYMBOLS),
    "hhmm gaussian": (gaussian_model, ROWS),
}
FAMILIES = (*MODELS, "shell", "checkpoint")


def write_files(folder):
    """A sound file of every family."""
    folder = Path(folder)
    for family, (make, _) in MODELS.items():
        make().save(folder / family)
    (folder / "train.txt").write_text(TEXT, encoding="utf-8")
    (folder / "template").write_text('U0:%x[0,0]\nU1:%x[-1,0]\nU2:%m[0,0,"^."]\nB1:%x[0,0]\n', encoding="utf-8")
    options = ["--levels", "phrase=3,tag=2", "--template", str(folder / "template")]
    assert main(["fit", str(folder / "train.txt"), "-m", str(folder / "shell"), *options]) == 0
    resumed(folder / "checkpoint")


def resumed(path):
    return hscrf.HSCRF(solver=LBFGS(max_iter=1)).fit(STRINGS, NESTED, checkpoint=path)


def use(family, path):
    """Open a file and predict with what is in it."""
    if family == "checkpoint":
        return resumed(path).predict(STRINGS)
    if family == "shell":
        text = str(path.parent / "train.txt")
        arguments = ["predict", text, "-t", "-m", str(path), "-o", os.devnull, "--traceback", "--marginals"]
        with open(os.devnull, "w") as nowhere:
            former, sys.stderr = sys.stderr, nowhere
            try:
                assert main(arguments) == 0
            finally:
                sys.stderr = former
        return []
    model = hscrf.load(path, functions={"length": length})
    found = model.predict(MODELS[family][1])
    model.predict_marginals(MODELS[family][1])
    return found


def outcome(family, path):
    """The outcome of opening a file: refused, declined, predicted, or a failure."""
    try:
        found = use(family, path)
    except FileFormatError as error:
        return "refused" if str(path) in str(error) and "\n" not in str(error) else f"FileFormatError: {error}"
    except UserError as error:  # the one line that a command says
        return "declined" if str(path) in str(error) else describe(error)
    except ValueError as error:
        return "declined" if is_raised_by_us(error) else describe(error)
    except (Exception, SystemExit) as error:
        return describe(error)
    return "predicted" if all(isinstance(labels, hscrf.Labels) for labels in found) else f"found {found}"


def is_raised_by_us(error):
    """Whether a raise statement in the package raised the error, not a library."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    package = os.path.dirname(hscrf.__file__)
    return last.filename.startswith(package) and (linecache.getline(last.filename, last.lineno).strip()).startswith(
        "raise"
    )


def describe(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {os.path.basename(last.filename)}:{last.lineno}: {str(error)[:200]}"


def kind_of(number):
    return list(KINDS)[number % len(KINDS)]


def draw(sound, family, number):
    """The damaged file of a number: always the same."""
    rng = np.random.default_rng([FAMILIES.index(family), number])
    return damaged(sound, kind_of(number), rng)


def work(folder, first, last, families):
    """Open damaged files one after the other, with little room for more memory."""
    path, sound = Path(folder) / "damaged", {name: (Path(folder) / name).read_bytes() for name in families}
    warnings.simplefilter("error")
    for family in families:
        path.write_bytes(sound[family])
        found = outcome(family, path)
        if found != "predicted":
            raise RuntimeError(f"the sound file of {family}: {found}")
    limit_memory(ROOM)
    for number in range(first, last):
        family, own = families[number % len(families)], number // len(families)
        path.write_bytes(draw(sound[family], family, own))
        print(json.dumps([number, family, own, None]), flush=True)
        signal.alarm(PATIENCE)
        found = outcome(family, path)
        signal.alarm(0)
        print(json.dumps([number, family, own, found]), flush=True)


def limit_memory(room):
    """Let the process have so many bytes more than now."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))


def open_all(folder, last, families=FAMILIES, told=None):
    """By family and number, the outcome of each damaged file; a process that dies is started anew behind its file."""
    outcomes = {family: {} for family in families}
    first, last = 0, last * len(families)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # the same package as here
    while first < last:
        command = [sys.executable, __file__, str(folder), str(first), str(last), *families]
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment) as run,
        ):
            for line in run.stdout:
                number, family, own, found = json.loads(line)
                outcomes[family][own] = found or "the process ended"
                first = number + 1
                if told and found:
                    told(first, last)
            code = run.wait()
            errors.seek(0)
            said = errors.read().strip()[-500:]
        if code > 0:
            raise RuntimeError(said)
        if code < 0:
            outcomes[family][own] = f"the process ended by {signal.Signals(-code).name}: {said}"
    return outcomes


def tally(outcomes):
    """How often each kind of damage had each outcome."""
    table = {kind: Counter() for kind in KINDS}
    for number, found in outcomes.items():
        table[kind_of(number)][found if found in GOOD else "FAILED"] += 1
    return table


GOOD = ("refused", "declined", "predicted")

if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
