"""Shards on disk give the bits of lists in memory, and are found again."""

import numpy as np
import pytest
from sklearn.base import clone

import hscrf
from fitting import attempts, loss_of
from hscrf.objective.workers import Workers
from hscrf.scale.shardfile import ShardFile
from scale_fixtures import CASES, InMemory, from_parts, partly, sentences


@pytest.mark.parametrize("case", CASES)
def test_in_memory_and_on_disk_give_the_same_bits(case):
    model, data = CASES[case]
    X, Y = data(*sentences(80))
    model = clone(model).set_params(solver=hscrf.LBFGS(max_iter=8))
    memory = clone(model).fit(InMemory(X, Y))
    shards = from_parts(X, Y)
    disk = clone(model).fit(shards)
    assert memory.mean_lengths_ == disk.mean_lengths_
    again = clone(model).set_params(solver=hscrf.LBFGS(max_iter=1)).fit(shards)
    assert memory.mean_lengths_ == again.mean_lengths_, "they are packed now"
    assert memory.history_[-1]["loss"] == disk.history_[-1]["loss"]
    assert memory.loss_ == disk.loss_
    assert (memory.coef_ == disk.coef_).all()
    assert memory.topology_ == disk.topology_
    assert list(memory.encoder_.names) == list(disk.encoder_.names)
    assert [str(y) for y in memory.predict(X[:5])] == [str(y) for y in disk.predict(X[:5])]


@pytest.mark.parametrize(
    ("options", "case"),
    [
        ({"c1": 0.3}, "nested"),
        ({"margin": 0.7}, "partial"),
        ({"solver": hscrf.SGD(epochs=2, batch=3), "random_state": 3}, "partial"),
        ({"solver": hscrf.Perceptron(epochs=2), "random_state": 3}, "segmental"),
        ({"n_jobs": 3}, "partial"),
        ({"pairs": "all", "transitions": "seen"}, "chain"),
    ],
)
def test_every_solver_and_option_gives_the_same_bits(options, case, recwarn):
    model, data = CASES[case]
    X, Y = data(*sentences(50))
    model = clone(model).set_params(**{"solver": hscrf.LBFGS(max_iter=5), **options})
    weights = np.arange(len(X)) % 3 * 0.5
    memory = clone(model).fit(InMemory(X, Y), sample_weight=weights)
    shards = from_parts(X, Y)
    disk = clone(model).fit(shards, sample_weight=weights)
    assert memory.loss_ == disk.loss_
    assert (memory.coef_ == disk.coef_).all()


def test_a_search_for_penalties_gives_the_same_bits():
    X, Y = sentences(30)
    found = [attempts(data, 1.0, 0.1) for data in (InMemory(X, partly(Y)), from_parts(X, partly(Y)))]
    for memory, disk in zip(*found, strict=True):
        assert (memory.errors == disk.errors).all()
        for one, other in zip(memory.weights, disk.weights, strict=True):
            assert (one == other).all()


def test_development_shards_stop_as_lists_do():
    X, Y = sentences(60)
    dev = sentences(25, seed=9)
    model = hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=12), c2=0.01)
    memory = clone(model).fit(InMemory(X, Y), development=dev, patience=3)
    disk = clone(model).fit(from_parts(X, Y), development=from_parts(*dev), patience=3)
    assert [entry["score"] for entry in memory.history_] == [entry["score"] for entry in disk.history_]
    assert memory.best_iter_ == disk.best_iter_
    assert (memory.coef_ == disk.coef_).all()


def test_a_checkpoint_resumes(tmp_path):
    X, Y = sentences(60)
    model, file = hscrf.HSCRF(), tmp_path / "run"
    shards = from_parts(X, Y)
    first = clone(model).set_params(solver=hscrf.LBFGS(max_iter=4)).fit(shards, checkpoint=file)
    second = clone(model).set_params(solver=hscrf.LBFGS(max_iter=4)).fit(shards, checkpoint=file)
    assert second.history_[0]["iteration"] == 5
    assert second.loss_ < first.loss_
    with pytest.raises(ValueError, match="not a checkpoint of this model on this data"):
        clone(model).fit(from_parts(X[1:], Y[1:]), checkpoint=file)


def test_bundles_are_counted_without_reading_shards(monkeypatch):
    X, Y = sentences(70)
    loss, _ = loss_of(hscrf.HSCRF(), from_parts(X, partly(Y)), None, None, Workers())
    lists, _ = loss_of(hscrf.HSCRF(), InMemory(X, partly(Y)), None, None, Workers())
    order = np.random.default_rng(0).permutation(70)
    read = []
    rows = ShardFile.rows
    monkeypatch.setattr(ShardFile, "rows", lambda file: read.append(file.path) or rows(file))
    bundles = loss.bundles(order, 4)
    assert read == []
    assert len(loss.shards) > 2
    assert len(bundles) == len(lists.bundles(order, 4)) == sum(len(s.deal(own, 4)) for s, own in shares(loss, order))
    assert [b.which.tolist() for b in bundles] == [b.which.tolist() for b in lists.bundles(order, 4)]
    some = order[order % 5 > 0]  # which of them are complete is not known from their number
    assert len(loss.bundles(some, 4)) == sum(len(shard.deal(own, 4)) for shard, own in shares(loss, some))


def shares(loss, order):
    """Each shard, and the numbers that lie in it in their order."""
    return [(s, np.array([n for n in order if s.first <= n < s.first + len(s)])) for s in loss.shards]
