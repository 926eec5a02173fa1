"""Walks: which rooms and files of the package a call passes, counted from traces of real calls.

    python benchmarks/walks.py [--files] [--only NAME]

Each walk is done twice, and the second time is traced, so that imports do not count. A file is passed if one of its
functions is called; a room is the folder or the module below ``hscrf`` that holds it. A file is re-entered if another
file calls it while a function of it is still running: a call-back, which a reader has to follow. A room is re-entered
if a file of another room does so. ``fit`` is divided where the solver begins: what comes after is its loop. The
compiled core is not traced. ``--files`` lists the files in the order in which they are passed first.
"""

import argparse
import contextlib
import io
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

import hscrf
from hscrf.cli.main import main as shell
from hscrf.datasets import make_activities

PACKAGE = Path(hscrf.__file__).parent
PREFIX = f"{PACKAGE}/"
UNNAMED = {"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>", "<module>"}  # part of the function around them


class Trace:
    """The files that calls pass while it is active, in all threads that begin after it was made."""

    def __init__(self):
        self.phases = {}  # name -> files in the order of their first call
        self.reentered = {}  # name of a phase -> pairs (file, file that calls back)
        self.phase = None
        self.until = {}  # (file's room, function) -> the phase that begins there
        threading.setprofile(self._see)

    def run(self, name, work, prepare=lambda: None, until=()):
        """Do some work on what was prepared, twice, and trace the second time.

        ``until`` are triples (room, function, phase): the phase begins where the function is called.
        """
        work(prepare())
        prepared = prepare()
        self.phase, self.until = name, {(room, function): phase for room, function, phase in until}
        sys.setprofile(self._see)
        try:
            work(prepared)
        finally:
            sys.setprofile(None)
            self.phase = None

    def _see(self, frame, event, argument):
        if self.phase is None or event != "call":
            return
        name, function = frame.f_code.co_filename, frame.f_code.co_name
        if not name.startswith(PREFIX) or function in UNNAMED:
            return
        file = name[len(PREFIX) :]
        self.phase = self.until.get((room_of(file), function), self.phase)
        self.phases.setdefault(self.phase, {}).setdefault(file, None)
        above = files_above(frame)
        caller = next(above, file)
        if caller != file and file in above:
            self.reentered.setdefault(self.phase, {}).setdefault((file, caller), None)

    def rooms_reentered(self, phase):
        """Rooms that another room called back: one of its files was re-entered."""
        pairs = self.reentered.get(phase, ())
        return sorted({room_of(file) for file, caller in pairs if room_of(file) != room_of(caller)})


def files_above(frame):
    """The files of the package that are busy above a frame, the nearest first."""
    frame = frame.f_back
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(PREFIX) and frame.f_code.co_name not in UNNAMED:
            yield name[len(PREFIX) :]
        frame = frame.f_back


def room_of(file):
    return file.split("/")[0].removesuffix(".py")


# -- the walks


def data(n=6):
    X, Y = make_activities(n, random_state=0)
    return X, [{level: y.column(level) for level in y.topology.levels[1:]} for y in Y]


def quick():
    return hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=3))


def fit(trace):
    X, Y = data()
    begins = [("solvers", "minimize", "fit(X, Y), the solver's loop")]
    trace.run("fit(X, Y), set-up", lambda model: model.fit(X, Y), quick, begins)


def predict(trace):
    X, Y = data()
    model = quick().fit(X, Y)
    evidence = [{"activity": [y["activity"][0], *["?"] * (len(x) - 1)]} for x, y in zip(X, Y, strict=True)]
    trace.run("predict(X, evidence)", lambda _: model.predict(X, evidence=evidence))


def marginals(trace):
    topology = hscrf.Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]})
    scores = np.random.default_rng(0).normal(size=(5, 3))

    def given():
        potentials = hscrf.Potentials(topology, 5, token={"tag": scores})
        return potentials, hscrf.Labels.from_columns(topology, {"tag": ["D", "?", "?", "?", "?"]})

    marginals = hscrf.marginals
    trace.run("marginals(potentials, evidence)", lambda pair: marginals(*pair), given)


def run_shell(*words):
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        code = shell([str(word) for word in words])
    assert code == 0, words


def shell_fit(trace):
    with tempfile.TemporaryDirectory() as folder:
        table, model = write_table(Path(folder))
        trace.run("hscrf fit data.txt -m model", lambda _: run_shell(*fit_words(table, model)))


def shell_plot(trace):
    with tempfile.TemporaryDirectory() as folder:
        table, model = write_table(Path(folder))
        run_shell(*fit_words(table, model))
        words = "plot", table, "-m", model, "-o", Path(folder, "day.png")
        trace.run("hscrf plot data.txt -m model -o day.png", lambda _: run_shell(*words))


def write_table(folder):
    X, Y = data()
    table = folder / "data.txt"
    with table.open("w", encoding="utf-8") as file:
        for x, y in zip(X, Y, strict=True):
            for words, *labels in zip(x, *y.values(), strict=True):
                print(words[0], *labels, sep="\t", file=file)
            print(file=file)
    return table, folder / "model"


def fit_words(table, model):
    return "fit", table, "-m", model, "--levels", "activity=2,trajectory=3", "--max-iter", "3", "--progress", "none"


def fit_shards(trace):
    from distributed import Client

    from hscrf.scale import Shards

    X, Y = data()
    here = {"processes": False, "n_workers": 1, "dashboard_address": None}
    with tempfile.TemporaryDirectory() as folder, Client(**here) as client:
        folders = iter(range(2))

        def given():
            return quick(), Shards.from_parts([lambda: (X, Y)], cache=f"{folder}/{next(folders)}")

        begins = [("solvers", "minimize", "fit(shards, client), the solver's loop")]
        trace.run("fit(shards, client), set-up", lambda pair: pair[0].fit(pair[1], client=client), given, begins)


def studio_fix(trace):
    import httpx

    from hscrf.studio import serve

    X, Y = data(3)
    model = quick().fit(X, Y)
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(X, model=model, db=f"{folder}/labels.sqlite", port=0) as session,
    ):
        parts = urlsplit(session.url)
        with httpx.Client(base_url=f"{parts.scheme}://{parts.netloc}", timeout=60) as browser:
            browser.get(f"/?{parts.query}")
            browser.headers["x-studio-project"] = browser.get("/api/project").json()["id"]
            steps = iter(range(100))

            def fix(_):
                k = next(steps)
                version = browser.get("/api/sequences/1", params={"open": 1}).json()["version"]
                body = {"level": "activity", "start": k, "stop": k + 1, "label": Y[0]["activity"][k]}
                event = {"uid": f"fix-{k}", "version": version, "kind": "label", "body": body}
                answer = browser.post("/api/sequences/1/events", json=event)
                assert answer.status_code == 200, answer.text

            trace.run("a fix in the studio", fix)


WALKS = {
    "fit": fit,
    "predict": predict,
    "marginals": marginals,
    "shell-fit": shell_fit,
    "shell-plot": shell_plot,
    "shards": fit_shards,
    "studio": studio_fix,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="list the files of each walk")
    parser.add_argument("--only", choices=WALKS, help="one walk")
    args = parser.parse_args()
    trace = Trace()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, walk in WALKS.items():
            if args.only in (None, name):
                walk(trace)
    print("| walk | rooms | files | files re-entered | rooms re-entered |\n|---|--:|--:|--:|---|")
    for name, files in trace.phases.items():
        back = {file for file, _ in trace.reentered.get(name, ())}
        rooms = ", ".join(trace.rooms_reentered(name)) or "none"
        print(f"| `{name}` | {len({room_of(file) for file in files})} | {len(files)} | {len(back)} | {rooms} |")
    for name, files in trace.phases.items() if args.files else ():
        print(f"\n{name}:\n  " + "\n  ".join(files))
        for file, caller in trace.reentered.get(name, ()):
            print(f"  {file} is re-entered from {caller}")


if __name__ == "__main__":
    main()
