"""Real processes and real signals: Ctrl-C keeps the model, a killed run can be resumed, a broken file is refused."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hscrf
from hscrf import HSCRF, LBFGS, SGD, Perceptron
from hscrf.datasets.nested import make_nested
from hscrf.errors import FileFormatError
from hscrf.files.container import read_container
from hscrf.objective.workers import result_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")

SOURCE = Path(__file__).resolve().parents[1] / "src"
CHILD = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background
import hscrf
from hscrf import LBFGS, SGD, Perceptron
from hscrf.datasets import make_nested

folder, solver, c2, n_jobs = sys.argv[1:]
X, Y = make_nested(40, (3, 4), length=(30, 60), separation=1.5, random_state=0)
model = hscrf.HSCRF(c2=float(c2), solver=eval(solver), n_jobs=int(n_jobs), random_state=0, verbose=2)
model.fit(X, Y, checkpoint=folder + "/run")
model.save(folder + "/model")
found = {"reason": model.stop_reason_, "converged": model.converged_, "n_iter": model.n_iter_, "loss": model.loss_,
         "columns": [y.column("level2") for y in model.predict(X)], "score": model.score(X, Y)}
print(json.dumps(found))
"""
ENDLESS = {
    "lbfgs": ("LBFGS(max_iter=10**6, tol=0, delta=0)", 1e-9),
    "sgd": ("SGD(epochs=10**6, rate=0.1, delta=0)", 1e-9),
    "perceptron": ("Perceptron(epochs=10**6)", 0.0),
}


@pytest.fixture(scope="module")
def data():
    return make_nested(40, (3, 4), length=(30, 60), separation=1.5, random_state=0)


def start(folder, solver, c2, n_jobs=1):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", CHILD, str(folder), solver, str(c2), str(n_jobs)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, text=True, preexec_fn=hear_signals, **pipes)


def hear_signals():
    """A child of a background job would ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_until(child, iteration, what):
    """Send a signal after some iterations; the output of the process, and its last loss."""
    loss = np.nan
    try:
        for line in child.stderr:
            if line.startswith("iteration "):
                loss = float(line.split("loss")[1].split()[0])
            if line.startswith(f"iteration {iteration} "):
                child.send_signal(what)
                break
        out, err = child.communicate(timeout=120)
        return out, err, loss
    finally:
        child.kill()


@pytest.mark.parametrize(("name", "n_jobs", "iteration"), [("lbfgs", 2, 12), ("sgd", 1, 2), ("perceptron", 2, 2)])
def test_ctrl_c_keeps_a_usable_model(tmp_path, data, name, n_jobs, iteration):
    X, Y = data
    solver, c2 = ENDLESS[name]
    out, err, loss = run_until(start(tmp_path, solver, c2, n_jobs), iteration, signal.SIGINT)
    assert "Traceback" not in err, err
    told = json.loads(out)
    assert told["reason"] == "interrupted"
    assert not told["converged"]
    assert iteration <= told["n_iter"] < 10**5
    assert told["score"] > 0.4
    model = hscrf.load(tmp_path / "model")
    assert [y.column("level2") for y in model.predict(X)] == told["columns"]
    assert model.stop_reason_ == "interrupted"
    header, arrays = read_container(tmp_path / "run")  # the last checkpoint has the weights of the model
    assert np.array_equal(arrays["weights"], model.coef_)
    assert len(header["history"]) == told["n_iter"]
    if name == "lbfgs":
        assert told["loss"] <= loss + 0.01
        resumed = HSCRF(c2=c2, solver=LBFGS(max_iter=5)).fit(X, Y, checkpoint=tmp_path / "run")
        assert resumed.loss_ < told["loss"]
        assert max(entry["loss"] for entry in resumed.history_) <= told["loss"]


def test_a_killed_run_goes_on_from_its_checkpoint(tmp_path, data):
    X, Y = data
    solver, c2 = ENDLESS["lbfgs"]
    child = start(tmp_path, solver, c2)
    out, _, loss = run_until(child, 15, signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    assert out == ""
    assert not (tmp_path / "model").exists()
    history = read_container(tmp_path / "run")[0]["history"]
    assert len(history) >= 10
    resumed = HSCRF(c2=c2, solver=LBFGS(max_iter=10)).fit(X, Y, checkpoint=tmp_path / "run")
    assert resumed.loss_ < min(loss, history[-1]["loss"])


@pytest.fixture(scope="module")
def finished(tmp_path_factory, data):
    """The folder of a short run: a checkpoint and a model."""
    folder = tmp_path_factory.mktemp("finished")
    HSCRF(c2=1.0, solver=LBFGS(max_iter=2)).fit(*data, checkpoint=folder / "run").save(folder / "model")
    return folder


@pytest.mark.parametrize("damage", ["truncated", "altered"])
def test_a_damaged_checkpoint_or_model_is_an_error_not_a_crash(tmp_path, data, finished, damage):
    for name in ("run", "model"):
        content = bytearray((finished / name).read_bytes())
        if damage == "altered":
            content[len(content) // 2] ^= 1
        (tmp_path / name).write_bytes(content[:-10] if damage == "truncated" else content)
    with pytest.raises(FileFormatError, match=re.escape(f"{tmp_path / 'run'} is {damage}")):
        HSCRF(c2=1.0, solver=LBFGS(max_iter=2)).fit(*data, checkpoint=tmp_path / "run")
    with pytest.raises(FileFormatError, match=f"model is {damage}"):
        hscrf.load(tmp_path / "model")


@pytest.mark.parametrize("solver", [SGD(epochs=2), Perceptron(epochs=2)], ids=["sgd", "perceptron"])
def test_every_solver_resumes(tmp_path, data, solver):
    X, Y = data[0][:10], data[1][:10]
    c2 = 0.0 if isinstance(solver, Perceptron) else 0.1
    first = HSCRF(c2=c2, solver=solver, random_state=0).fit(X, Y, checkpoint=tmp_path / "run")
    second = HSCRF(c2=c2, solver=solver, random_state=1).fit(X, Y, checkpoint=tmp_path / "run")
    assert [entry["iteration"] for entry in second.history_] == [3, 4]
    assert isinstance(solver, Perceptron) or second.loss_ < first.loss_


class Broken:
    """A future whose lock a signal has broken: Python raises a RuntimeError while it handles the interrupt."""

    def __init__(self, first):
        self.first = first

    def result(self):
        try:
            raise self.first
        except BaseException:
            raise RuntimeError("cannot release un-acquired lock")  # noqa: B904


def test_an_interrupt_between_locks_stays_an_interrupt():
    with pytest.raises(KeyboardInterrupt):
        result_of(Broken(KeyboardInterrupt()))
    with pytest.raises(RuntimeError, match="un-acquired"):
        result_of(Broken(ValueError("other")))
