"""One order of summation: shards in a binary tree, whichever process sums its branches."""

import numpy as np
import pytest

from hscrf.objective.workers import TreeSum, Workers, subtrees
from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.packed import SHARD, shard_bounds
from hscrf.solvers.epochs import shuffled


def recursive(values):
    """The twin: a tree that is split at the largest power of two below its size."""
    if len(values) == 1:
        return values[0]
    half = 1 << ((len(values) - 1).bit_length() - 1)
    return recursive(values[:half]) + recursive(values[half:])


@pytest.mark.parametrize("n", range(1, 20))
@pytest.mark.parametrize("wanted", [1, 2, 3, 8])
def test_subtrees_give_the_bits_of_the_whole_tree(n, wanted):
    rng = np.random.default_rng(n)
    values = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-8, 8, size=(n, 3))
    tree = TreeSum()
    for begin, stop, height in subtrees(n, wanted):
        branch = TreeSum()
        for row in values[begin:stop]:
            branch.add(row[0], row.copy())
        tree.add(*branch.total(), height)
    number, vector = tree.total()
    expected = recursive(list(values))
    assert (vector == expected).all()
    assert number == expected[0]
    assert len(subtrees(n, wanted)) >= min(n, wanted)


def test_shards_are_cut_by_content():
    assert shard_bounds([4, 6, 1, 30, 2, 8, 1], most=10) == [(0, 2), (2, 3), (3, 4), (4, 6), (6, 7)]
    assert shard_bounds([3]) == [(0, 1)]


def test_threads_and_shards_give_the_same_bits(monkeypatch):
    rng = np.random.default_rng(0)
    items = [[rng.normal(size=4) for _ in range(n)] for n in (3, 20, 9, 1, 11)]

    def add(item, vector):
        vector += item
        return float(item.sum())

    found = []
    for jobs in (1, 2, 5):
        with Workers(jobs) as workers:
            found.append(workers.sum(add, items, 4))
    assert all(number == found[0][0] and (vector == found[0][1]).all() for number, vector in found)


def test_few_results_wait_to_be_taken():
    """Threads do not run far ahead of the caller: each result may be a vector of all weights."""
    begun = []
    with Workers(2) as workers:
        for k, _ in enumerate(workers.each(begun.append, range(1000))):
            assert len(begun) <= k + 12


def test_epochs_stay_within_a_shard():
    spans = [(0, 3), (3, 4), (4, 9)]
    order = shuffled(9, 1, 1, spans).tolist()
    assert sorted(order) == list(range(9))
    homes = [[begin <= n < stop for begin, stop in spans].index(True) for n in order]
    assert len({home for home in homes}) == sum(a != b for a, b in zip([None, *homes], homes, strict=False))


def test_numeric_columns_are_scaled_by_shards():
    """Means and scales in memory are those of shards that are merged in order."""
    rng = np.random.default_rng(2)
    X = [rng.normal(size=(SHARD // 2 + 1, 2)) * [1e3, 1.0] for _ in range(3)]
    whole, parts = ObservationEncoder(), ObservationEncoder()
    whole.fit_pack(X)
    bounds = shard_bounds(list(map(len, X)))
    assert len(bounds) == 3
    for begin, stop in bounds:
        parts.update(X[begin:stop])
    parts.settle()
    assert (whole.mean == parts.mean).all()
    assert (whole.scale == parts.scale).all()
