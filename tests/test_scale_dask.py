"""Clusters give the bits of one process, also if workers fail."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import hscrf
from fitting import attempts
from hscrf.scale import Shards, cluster
from scale_fixtures import CASES, InMemory, from_parts, parts_of, sentences

distributed = pytest.importorskip("distributed")


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


@pytest.mark.parametrize(
    ("case", "workers"), [("nested", 1), ("chain", 2), ("nested", 2), ("segmental", 2), ("partial", 4)]
)
def test_a_cluster_gives_the_bits_of_memory(clients, case, workers):
    model, data = CASES[case]
    X, Y = data(*sentences(60))
    model = clone(model).set_params(solver=hscrf.LBFGS(max_iter=3))
    memory = clone(model).fit(InMemory(X, Y))
    far = clone(model).fit(from_parts(X, Y), client=clients(workers))
    assert memory.loss_ == far.loss_
    assert (memory.coef_ == far.coef_).all()


@pytest.mark.parametrize(
    "options",
    [{"c1": 0.5}, {"solver": hscrf.SGD(epochs=1), "random_state": 1}],
)
def test_solvers_on_a_cluster(clients, options):
    X, Y = sentences(12)
    model = hscrf.HSCRF(**{"solver": hscrf.LBFGS(max_iter=3), **options})
    memory = clone(model).fit(InMemory(X, Y))
    far = clone(model).fit(from_parts(X, Y), client=clients(2))
    assert (memory.coef_ == far.coef_).all()


def test_a_search_for_penalties_on_a_cluster(clients):
    X, Y = sentences(12)
    (memory,), (far,) = (attempts(data, 1.0) for data in (InMemory(X, Y), from_parts(X, Y).on_cluster(clients(2))))
    assert (memory.errors == far.errors).all()


def test_prediction_score_and_development_on_a_cluster(clients, tmp_path):
    X, Y = sentences(50)
    dev = sentences(20, seed=5)
    model = hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=6), c2=0.01)
    memory = clone(model).fit(InMemory(X, Y), development=dev)
    shards = from_parts(X, Y)
    far = clone(model).fit(shards, development=from_parts(*dev), client=clients(2))
    assert [entry["score"] for entry in far.history_] == [entry["score"] for entry in memory.history_]
    assert (far.coef_ == memory.coef_).all()
    assert far.score(shards, client=clients(2)) == memory.score(X, Y)
    here = far.predict(shards, folder=tmp_path / "here")
    there = far.predict(shards, folder=tmp_path / "there", client=clients(2))
    assert [Path(one).read_bytes() for one in here] == [Path(one).read_bytes() for one in there]


def test_bad_sequences_are_counted_on_a_cluster(clients):
    X, Y = sentences(30)
    Y[20] = {**Y[20], "tag": Y[20]["tag"][:-1]}
    shards = Shards.from_parts(parts_of(X, Y), errors="skip")
    hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=1)).fit(shards, client=clients(1))
    assert shards.skipped == 1
    assert "part 1, sequence 3" in shards.problems[0]


def test_the_last_worker_is_not_given_up(clients, capsys):
    """A worker that does not respond is waited for as long as there is no other."""
    far = cluster.Cluster(clients(1))
    far.frozen = -1.0
    far._look_after_workers()
    assert "no living workers" in capsys.readouterr().err
    assert len(far.workers()) == 1
    far.gone = -1.0
    with pytest.raises(cluster.ClusterError, match="can be resumed"):
        far._look_after_workers()


def test_a_wait_that_is_cancelled_is_repeated(clients):
    """The wait for a result may be cancelled just when the result arrives; distributed does not catch that."""
    far = cluster.Cluster(clients(1))
    task, waits = far.submit(sum, [3, 4]), []

    class Interrupted:
        status = "pending"

        def result(self, timeout):
            waits.append(timeout)
            if len(waits) == 1:
                raise UnboundLocalError("cannot access local variable 'result'")
            return task.result(timeout)

    assert far.result(Interrupted()) == 7
    assert len(waits) == 2


def unbound():
    raise UnboundLocalError("of the task itself")


def test_the_error_of_a_task_is_no_cancelled_wait(clients):
    far = cluster.Cluster(clients(1))
    with pytest.raises(UnboundLocalError, match="of the task itself"):
        far.result(far.submit(unbound))


@pytest.mark.parametrize("library", cluster.LIBRARIES)
def test_other_versions_are_refused_by_name(clients, monkeypatch, library):
    ours = cluster.versions()
    others = {**ours, library: "0.0.1"}
    monkeypatch.setattr(cluster.Cluster, "everywhere", lambda self, function, *arguments: {"tcp://far": others})
    with pytest.raises(cluster.ClusterError, match=rf"has {library} 0\.0\.1 \({ours[library]} here\)"):
        hscrf.HSCRF().fit(from_parts(*sentences(10)), client=clients(1))


def test_a_worker_that_joins_with_other_versions_is_refused():
    with pytest.raises(cluster.ClusterError, match="joined later has hscrf"):
        cluster.evaluate(0, 1, "", b"", np.zeros(0), "loss", 1, {**cluster.versions(), "hscrf": "9"})


def test_workers_must_see_the_shards(clients, monkeypatch):
    monkeypatch.setattr(cluster, "unseen", lambda paths: list(paths))
    with pytest.raises(cluster.ClusterError, match="on a disk that all workers share"):
        hscrf.HSCRF().fit(from_parts(*sentences(10)), client=clients(1))
