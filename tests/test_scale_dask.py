"""Clusters give the bits of one process, whatever happens to their workers."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import hscrf
from hscrf.errors import DataFileError, InfeasibleError
from hscrf.scale import Shards, cluster
from hscrf.scale import loss as evaluation
from processes import SOURCE, TESTS
from scale_fixtures import CASES, parts_of, sentences, short_search, small_shards, write_jsonl

distributed = pytest.importorskip("distributed")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    small_shards(monkeypatch)
    short_search(monkeypatch)


@pytest.fixture(scope="module")
def clients():
    """In-process clusters by their number of workers, made when first asked for."""
    made = {}

    def client(n):
        if n not in made:
            made[n] = distributed.Client(n_workers=n, threads_per_worker=1, processes=False, dashboard_address=":0")
        return made[n]

    yield client
    for one in made.values():
        one.close()
        one.cluster.close() if one.cluster is not None else None


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("case", ["chain", "nested", "segmental", "partial"])
def test_a_cluster_gives_the_bits_of_memory(clients, case, workers):
    model, data = CASES[case]
    X, Y = data(*sentences(60))
    model = clone(model).set_params(solver=hscrf.LBFGS(max_iter=3))
    memory = clone(model).fit(X, Y)
    far = clone(model).fit(Shards.from_parts(parts_of(X, Y)), client=clients(workers))
    assert memory.loss_ == far.loss_
    assert (memory.coef_ == far.coef_).all()


@pytest.mark.parametrize(
    "options",
    [{"c2": "auto", "random_state": 1}, {"c1": 0.5}, {"solver": hscrf.SGD(epochs=1), "random_state": 1}],
)
def test_solvers_on_a_cluster(clients, options):
    X, Y = sentences(40)
    model = hscrf.HSCRF(**{"solver": hscrf.LBFGS(max_iter=3), **options})
    memory = clone(model).fit(X, Y)
    far = clone(model).fit(Shards.from_parts(parts_of(X, Y)), client=clients(2))
    assert (memory.coef_ == far.coef_).all()


def test_prediction_score_and_development_on_a_cluster(clients, tmp_path):
    X, Y = sentences(50)
    dev = sentences(20, seed=5)
    model = hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=6), c2=0.01)
    memory = clone(model).fit(X, Y, development=dev)
    shards = Shards.from_parts(parts_of(X, Y))
    far = clone(model).fit(shards, development=Shards.from_parts(parts_of(*dev)), client=clients(2))
    assert [entry["score"] for entry in far.history_] == [entry["score"] for entry in memory.history_]
    assert (far.coef_ == memory.coef_).all()
    assert far.score(shards, client=clients(2)) == memory.score(X, Y)
    here = far.predict(shards, folder=tmp_path / "here")
    there = far.predict(shards, folder=tmp_path / "there", client=clients(2))
    assert [Path(one).read_bytes() for one in here] == [Path(one).read_bytes() for one in there]


def test_a_bad_sequence_is_named_from_whatever_worker(clients, tmp_path):
    """Labels that only the weights' forbidden transitions contradict are found by the worker that evaluates them."""
    topology = hscrf.Topology({"tag": ["a", "b"]}, successors={"tag": {"a": ["b"]}})
    X = [[["x"], ["y"], ["z"]]] * 40
    Y = [{"tag": ["a", "?", "b"]}] * 40
    Y[33] = {"tag": ["a", "?", "?"]}
    write_jsonl(tmp_path / "a.jsonl", X, Y)
    shards = Shards.from_files(tmp_path / "a.jsonl", ["tag"], template="none")
    model = hscrf.HSCRF(topology, solver=hscrf.LBFGS(max_iter=2))
    original = evaluation.StoredShard.chunk

    def chunk(shard, item):
        which, found = original(shard, item)
        if 33 in which:
            raise InfeasibleError("no configuration agrees with the labels").of_sequence(33)
        return which, found

    evaluation.StoredShard.chunk = chunk
    try:
        with pytest.raises(DataFileError, match=r"a\.jsonl, line 34: no configuration") as caught:
            model.fit(shards, client=clients(2))
        assert caught.value.sequence == 33
    finally:
        evaluation.StoredShard.chunk = original


def test_bad_sequences_are_counted_on_a_cluster(clients):
    X, Y = sentences(30)
    Y[20] = {**Y[20], "tag": Y[20]["tag"][:-1]}
    shards = Shards.from_parts(parts_of(X, Y), errors="skip")
    hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=1)).fit(shards, client=clients(1))
    assert shards.skipped == 1
    assert "part 1, sequence 3" in shards.problems[0]


def test_the_last_worker_is_not_given_up(clients, monkeypatch, capsys):
    """A worker that shows no sign of life is waited for as long as there is no other."""
    monkeypatch.setattr(cluster, "FROZEN", -1.0)
    far = cluster.Cluster(clients(1))
    far._look_after_workers()
    assert "no living workers" in capsys.readouterr().err
    assert len(far.workers()) == 1
    monkeypatch.setattr(cluster, "GONE", -1.0)
    with pytest.raises(cluster.ClusterError, match="can be resumed"):
        far._look_after_workers()


@pytest.mark.parametrize("library", cluster.LIBRARIES)
def test_other_versions_are_refused_by_name(clients, monkeypatch, library):
    ours = cluster.versions()
    others = {**ours, library: "0.0.1"}
    monkeypatch.setattr(cluster.Cluster, "everywhere", lambda self, function, *arguments: {"tcp://far": others})
    with pytest.raises(cluster.ClusterError, match=rf"has {library} 0\.0\.1, but here it is {ours[library]}"):
        hscrf.HSCRF().fit(Shards.from_parts(parts_of(*sentences(10))), client=clients(1))


def test_a_worker_that_joins_with_other_versions_is_refused():
    with pytest.raises(cluster.ClusterError, match="joined later has hscrf"):
        cluster.evaluate(0, 1, "", b"", np.zeros(0), "loss", 1, {**cluster.versions(), "hscrf": "9"})


def test_workers_must_see_the_shards(clients, monkeypatch):
    monkeypatch.setattr(cluster, "unseen", lambda paths: list(paths))
    with pytest.raises(cluster.ClusterError, match="on a disk that all workers share"):
        hscrf.HSCRF().fit(Shards.from_parts(parts_of(*sentences(10))), client=clients(1))


# -- real processes and real signals


class RealWorkers:
    """A scheduler in this process, and workers in processes of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.cluster = distributed.LocalCluster(
            n_workers=0, processes=False, protocol="tcp", dashboard_address=":0", silence_logs=50
        )
        self.client = distributed.Client(self.cluster)
        self.processes = []

    def start(self, nanny=False):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(TESTS)])}
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

    def close(self):
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=20)
        self.client.close()
        self.cluster.close()


DRIVER = """
import sys, pathlib
from distributed import Client
import hscrf
from hscrf.observations import cutting
from hscrf.scale import Shards
from scale_fixtures import parts_of, sentences
cutting.SHARD = 150
folder = pathlib.Path(sys.argv[1])
shards = Shards.from_parts(parts_of(*sentences(60)), cache=folder / "cache", key="sentences")
with Client(sys.argv[2]) as client:
    solver = hscrf.LBFGS(max_iter=100_000, tol=0, delta=0)
    hscrf.HSCRF(c2=1e-9, solver=solver).fit(shards, client=client, checkpoint=folder / "run")
"""


def test_workers_are_killed_frozen_and_restarted(tmp_path, monkeypatch, capsys):
    """One after the other is lost; what is left gives the same bits, and in the end one sentence."""
    X, Y = sentences(150)
    model = hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=12))
    memory = clone(model).fit(X, Y)
    shards = Shards.from_parts(parts_of(X, Y), cache=tmp_path / "cache")
    workers = RealWorkers(tmp_path)
    try:
        for nanny in (False, False, True):
            workers.start(nanny)
        workers.client.wait_for_workers(3, timeout=120)
        pids = workers.pids()
        mortal = {a: pid for a, pid in pids.items() if pid in [process.pid for process in workers.processes]}
        for signals, chosen in ((signal.SIGKILL, mortal), (signal.SIGSTOP, mortal), (signal.SIGKILL, pids)):
            monkeypatch.setattr(cluster, "FROZEN", 6.0 if signals == signal.SIGSTOP else 60.0)
            hit = workers.hit_one_that_evaluates(signals, chosen)
            far = clone(model).fit(shards, client=workers.client)
            hit.join(timeout=20)
            assert not hit.is_alive()
            assert far.loss_ == memory.loss_
            assert (far.coef_ == memory.coef_).all()
        assert "has shown no sign of life for 6 s: others take its work" in capsys.readouterr().err
        workers.client.wait_for_workers(1, timeout=60)
        (reborn,) = workers.pids().values()
        assert reborn not in pids.values()
        kill_the_driver(tmp_path, workers)
        lose_all(tmp_path, workers, monkeypatch, capsys)
    finally:
        workers.close()


def kill_the_driver(folder, workers):
    """The driver is killed once it has written a checkpoint, and training goes on from there in this process."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(TESTS)])}
    command = [sys.executable, "-c", DRIVER, str(folder), workers.cluster.scheduler_address]
    driver = subprocess.Popen(command, env=environment)
    while not (folder / "run").exists():
        assert driver.poll() is None
        time.sleep(0.05)
    driver.kill()
    driver.wait(timeout=20)
    model = hscrf.HSCRF(c2=1e-9, solver=hscrf.LBFGS(max_iter=2))
    shards = Shards.from_parts(parts_of(*sentences(60)), cache=folder / "cache", key="sentences")
    model.fit(shards, client=workers.client, checkpoint=folder / "run")
    assert model.history_[0]["iteration"] > 10


def lose_all(folder, workers, monkeypatch, capsys):
    """Without any worker training waits, says so, and ends; it is resumed without a cluster."""
    monkeypatch.setattr(cluster, "GONE", 2.0)
    model = hscrf.HSCRF(c2=1e-9, solver=hscrf.LBFGS(max_iter=2))
    shards = Shards.from_parts(parts_of(*sentences(60)), cache=folder / "cache", key="sentences")
    for process in workers.processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with pytest.raises(cluster.ClusterError, match="has had no workers for 2 s; training can be resumed"):
        model.fit(shards, client=workers.client, checkpoint=folder / "run")
    assert "the cluster has no workers: waiting up to 2 s" in capsys.readouterr().err
    assert model.fit(shards, checkpoint=folder / "run").history_[0]["iteration"] > 12
