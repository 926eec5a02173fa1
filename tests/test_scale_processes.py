"""Workers in separate processes: bad data are named, other versions are refused, and workers may die."""

import contextlib
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

import hscrf
from fitting import loss_of
from hscrf.errors import DataFileError, InfeasibleError
from hscrf.objective.workers import Workers
from hscrf.scale import Shards, cluster
from hscrf.scale.cluster import Patience
from processes import SOURCE, TESTS
from scale_fixtures import InMemory, from_parts, sentences, write_jsonl

distributed = pytest.importorskip("distributed")


class RealWorkers:
    """A scheduler in this process, and workers in processes of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.cluster = distributed.LocalCluster(
            n_workers=0, processes=False, protocol="tcp", dashboard_address=":0", silence_logs=50
        )
        self.client = distributed.Client(self.cluster)
        self.processes = []

    def start(self, nanny=False, folders=(SOURCE, TESTS)):
        """A worker that finds modules in these folders."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.cluster.scheduler_address]
        command += ["--nthreads", "1", "--nanny" if nanny else "--no-nanny", "--no-dashboard"]
        command += ["--local-directory", str(self.folder)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        self.processes.append(subprocess.Popen(command, env=environment, **quiet))

    def pids(self):
        """The processes of the workers by their addresses."""
        return self.client.run(os.getpid)

    def hit_one_that_evaluates(self, kind, pids):
        """Send a signal to a worker in the middle of an evaluation; the thread that waits for that."""

        def watch():
            while True:
                for address, keys in self.client.processing().items():
                    if address in pids and any("evaluate" in str(key) for key in keys):
                        os.kill(pids[address], kind)
                        return
                time.sleep(0.002)

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        return thread

    def driver(self, folder):
        """A process that fits until it is killed, once it is told to go on."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(TESTS)])}
        command = [sys.executable, "-c", DRIVER, str(folder), self.cluster.scheduler_address]
        return subprocess.Popen(command, env=environment, start_new_session=True)

    def end(self, process):
        """Kill a process, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=20)

    def wait_for(self, addresses):
        """Wait until these are the workers, and no others."""
        while set(self.client.scheduler_info()["workers"]) != set(addresses):
            time.sleep(0.05)

    def close(self):
        for process in self.processes:
            self.end(process)
        self.client.close()
        self.cluster.close()


DRIVER = """
import sys, pathlib, time
from distributed import Client
import hscrf
from scale_fixtures import from_parts, sentences
folder = pathlib.Path(sys.argv[1])
shards = from_parts(*sentences(60), cache=folder / "cache", key="sentences")
shards.pack(hscrf.HSCRF())
while not (folder / "go").exists():
    time.sleep(0.05)
with Client(sys.argv[2]) as client:
    solver = hscrf.LBFGS(max_iter=100_000, tol=0, delta=0)
    hscrf.HSCRF(c2=1e-9, solver=solver).fit(shards, client=client, checkpoint=folder / "run")
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Two workers that die when they are killed, and one that a nanny restarts."""
    workers = RealWorkers(tmp_path_factory.mktemp("workers"))
    try:
        for nanny in (False, False, True):
            workers.start(nanny)
        workers.client.wait_for_workers(3, timeout=120)
        yield workers
    finally:
        workers.close()


# -- bad sequences

ALTERNATING = hscrf.Topology({"tag": ["a", "b"]}, successors={"tag": {"a": ["b"], "b": ["a"]}})


def contradicting(n, bad):
    """Sequences whose states alternate; only inference finds that one of them, between its known ends, cannot."""
    Y = [{"tag": ["a", "?", "?", "b"]}] * n
    Y[bad] = {"tag": ["a", "?", "?", "a"]}
    return [[["x"], ["y"], ["z"], ["x"]]] * n, Y


def test_a_bad_sequence_in_a_file_is_named_by_the_worker_that_meets_it(real, tmp_path):
    X, Y = contradicting(120, bad=93)
    write_jsonl(tmp_path / "0.jsonl", X[:60], Y[:60])
    write_jsonl(tmp_path / "1.jsonl", X[60:], Y[60:])
    shards = Shards.from_files(tmp_path / "*.jsonl", ["tag"], template="none")
    with pytest.raises(DataFileError, match=r"1\.jsonl, line 34: no segmentation agrees .* 'a' at 3") as caught:
        hscrf.HSCRF(ALTERNATING).fit(shards, client=real.client)
    assert (caught.value.file, caught.value.line, caught.value.sequence) == (str(tmp_path / "1.jsonl"), 34, 33)


def test_a_bad_sequence_in_a_delayed_part_is_named_by_the_worker_that_meets_it(real):
    dask = pytest.importorskip("dask")
    X, Y = contradicting(120, bad=93)
    parts = [dask.delayed((X[a : a + 30], Y[a : a + 30])) for a in range(0, 120, 30)]
    with pytest.raises(InfeasibleError, match="part 3, sequence 3: no segmentation agrees") as caught:
        hscrf.HSCRF(ALTERNATING).fit(Shards.from_parts(parts), client=real.client)
    assert caught.value.sequence == 3


# -- versions

OTHERS = """
import sys
import numpy
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
numpy.__version__ += ".post1"
"""


def test_a_worker_with_other_versions_is_refused(real, tmp_path):
    """It has another release of hscrf, and of numpy, which say so."""
    shutil.copytree(SOURCE / "hscrf", tmp_path / "hscrf", ignore=shutil.ignore_patterns("__pycache__"))
    init = tmp_path / "hscrf" / "__init__.py"
    init.write_text(
        init.read_text().replace(f'__version__ = "{hscrf.__version__}"', f'__version__ = "{hscrf.__version__}.post1"')
    )
    (tmp_path / "sitecustomize.py").write_text(OTHERS)
    before = set(real.pids())
    real.start(folders=[tmp_path, TESTS])
    real.client.wait_for_workers(4, timeout=120)
    (other,) = set(real.pids()) - before
    ours = cluster.versions()
    told = ", ".join(f"{name} {ours[name]}.post1 ({ours[name]} here)" for name in cluster.LIBRARIES)
    with pytest.raises(cluster.ClusterError) as caught:
        hscrf.HSCRF().fit(from_parts(*sentences(10)), client=real.client)
    assert str(caught.value) == f"worker {other} has {told}, expected the same versions everywhere"
    real.end(real.processes.pop())
    real.wait_for(before)


# -- memory


def new_pages(content, size):
    """Pages that an evaluation takes from the system; runs on a worker."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    cluster.evaluate(0, 1, "large", content, np.zeros(size), "loss", 1, cluster.versions())
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts pages as Linux does")
def test_a_worker_takes_no_new_pages_for_each_chunk(real, monkeypatch):
    """A nanny's environment makes the C library return every array to the system; our workers keep some memory."""
    rng = np.random.default_rng(0)
    X = [[[f"w{k}"] for k in rng.integers(30, size=500)] for _ in range(50)]
    Y = [[f"L{k}" for k in rng.integers(60, size=500)] for _ in X]
    shards = Shards.from_parts([lambda: (X, Y)])
    loss, weights = loss_of(hscrf.ChainCRF(), shards, None, None, Workers())
    content = pickle.dumps(loss)
    (nursed,) = (a for a, pid in real.pids().items() if pid not in [process.pid for process in real.processes])
    task = {"workers": [nursed], "pure": False}
    found = [real.client.submit(new_pages, content, weights.size, **task).result(timeout=120) for _ in range(3)]
    assert min(found) < 1000  # the scores alone of 25,000 steps and sixty labels are 2,900 pages


# -- signals


def test_workers_are_killed_frozen_and_restarted(real, tmp_path, capsys):
    """Workers are lost one after the other; the others give the same bits, and the last loss raises an error."""
    X, Y = sentences(150)
    model = hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=12))
    memory = clone(model).fit(InMemory(X, Y))
    shards = from_parts(X, Y, cache=tmp_path / "cache")
    pids = real.pids()
    mortal = {a: pid for a, pid in pids.items() if pid in [process.pid for process in real.processes]}
    driver = None
    try:
        for kind, chosen in ((signal.SIGKILL, mortal), (signal.SIGSTOP, mortal), (signal.SIGKILL, pids)):
            shards.patience = Patience(frozen=4.0 if kind == signal.SIGSTOP else 60.0)
            hit = real.hit_one_that_evaluates(kind, chosen)
            driver = driver or real.driver(tmp_path)  # it gets ready while others wait
            far = clone(model).fit(shards, client=real.client)
            hit.join(timeout=20)
            assert not hit.is_alive()
            assert far.loss_ == memory.loss_
            assert (far.coef_ == memory.coef_).all()
        assert "has not responded for 4 s: its tasks go to other workers" in capsys.readouterr().err
        real.client.wait_for_workers(1, timeout=60)
        (reborn,) = real.pids().values()
        assert reborn not in pids.values()
        kill_the_driver(tmp_path, real, driver)
        lose_all(tmp_path, real, capsys)
    finally:
        real.end(driver)


def kill_the_driver(folder, workers, driver):
    """The driver is killed once it has written a checkpoint, and training goes on from there in this process."""
    (folder / "go").touch()
    while not (folder / "run").exists():
        assert driver.poll() is None
        time.sleep(0.05)
    workers.end(driver)
    model = hscrf.HSCRF(c2=1e-9, solver=hscrf.LBFGS(max_iter=2))
    shards = from_parts(*sentences(60), cache=folder / "cache", key="sentences")
    model.fit(shards, client=workers.client, checkpoint=folder / "run")
    assert model.history_[0]["iteration"] > 10


def lose_all(folder, workers, capsys):
    """Without any worker training waits, says so, and ends; it is resumed without a cluster."""
    model = hscrf.HSCRF(c2=1e-9, solver=hscrf.LBFGS(max_iter=2))
    shards = from_parts(*sentences(60), cache=folder / "cache", key="sentences")
    shards.patience = Patience(gone=1.0)
    for process in workers.processes:
        workers.end(process)
    with pytest.raises(cluster.ClusterError, match="has had no workers for 1 s; training can be resumed"):
        model.fit(shards, client=workers.client, checkpoint=folder / "run")
    assert "the cluster has no workers: waiting up to 1 s" in capsys.readouterr().err
    assert model.fit(shards, checkpoint=folder / "run").history_[0]["iteration"] > 12
