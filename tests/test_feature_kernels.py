"""Named features: the compiled kernels and their NumPy twins give the same numbers."""

from itertools import pairwise

import numpy as np
import pytest

from hscrf.features.segments import average_tokens, average_tokens_back
from hscrf.observations import packed, plain
from hscrf.observations.lookup import Lookup, hash_names
from hscrf.observations.packed import Sparse

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def draw_sparse(rng, steps=40, features=60, valued=False):
    """Rows of some features, also empty ones; a few features are frequent."""
    counts = rng.integers(0, 7, steps)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    often = rng.random(indptr[-1]) < 0.5
    indices = np.where(often, rng.integers(0, 5, often.size), rng.integers(0, features, often.size)).astype(np.int32)
    return Sparse(indptr, indices, rng.standard_normal(indices.size) if valued else np.empty(0), features)


def draw_pairs(rng, features, cells):
    """Each feature has some of the cells, each at most once; some have none."""
    met = rng.random((features, cells)) < 0.6
    met[::7] = False
    return np.concatenate([[0], np.cumsum(met.sum(axis=1))]), np.nonzero(met)[1].astype(np.int32)


@pytest.fixture(params=["core", "plain"])
def kernels(request, monkeypatch):
    """The compiled and the NumPy form of the function that sums weights."""
    chosen = request.getfixturevalue("core") if request.param == "core" else plain
    monkeypatch.setattr(packed, "kernels", chosen)
    return chosen


def dense(x):
    """The matrix (N, F) of a Sparse."""
    table = np.zeros((x.indptr.size - 1, x.size))
    rows = np.repeat(np.arange(x.indptr.size - 1), np.diff(x.indptr))
    np.add.at(table, (rows, x.indices), x.data if x.data.size else 1.0)
    return table


@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("cells", [1, 3, 4, 5, 8, 11, 70])
@pytest.mark.parametrize("form", ["rows", "divided", "few cells are met"])
def test_scores_and_gradients_are_products_of_matrices(kernels, valued, cells, form):
    rng = np.random.default_rng([cells, valued])
    x = draw_sparse(rng, valued=valued)
    pairs = draw_pairs(rng, x.size, cells)
    if form == "few cells are met":  # a table would be mostly zeros
        pairs = np.minimum(np.arange(x.size + 1), 30), np.zeros(30, dtype=np.int32)
    weights = rng.standard_normal(pairs[1].size)
    table = np.zeros((x.size, cells))
    features = np.repeat(np.arange(x.size), np.diff(pairs[0]))
    table[features, pairs[1]] = weights
    given = x if form == "rows" else x.divided()
    out = np.ones((x.indptr.size - 1, cells))
    given.add_scores(pairs, weights, out, 0.5)
    np.testing.assert_allclose(out, 1.0 + 0.5 * dense(x) @ table, **CLOSE)
    counts = rng.standard_normal(out.shape)
    counts[::3] = 0.0
    expected = (dense(x).T @ counts)[features, pairs[1]]
    gradient = np.ones(weights.size)
    given.pull_counts(pairs, counts, gradient, -2.0)
    np.testing.assert_allclose(gradient, 1.0 - 2.0 * expected, **CLOSE)
    if form == "rows":
        first, second = np.ones((2, weights.size))
        x.pull_twice(pairs, counts, first, 3.0, second, -1.0)
        np.testing.assert_allclose(first, 1.0 + 3.0 * expected, **CLOSE)
        np.testing.assert_allclose(second, 1.0 - expected, **CLOSE)


def test_both_forms_divide_alike(core):
    x = draw_sparse(np.random.default_rng(0), valued=True)
    ours = x.divided()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "kernels", plain)
        theirs = x.divided()
    for name in ("names", "begin", "found", "rare", "rows", "data"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype
    assert ours.found.size > 0
    assert ours.rare.size > 0


NAMES = ["", "a", "word=the", "eight888", "sixteen_letters!", "größer", "x" * 23, "\0", "日本", "a\0", "eight88"]


def test_both_forms_hash_names_alike(core):
    names = [*NAMES, "a\nb", "\ud800", 3, None, ("a", 1), *("y" * n for n in range(7, 18))]
    ours, theirs = np.zeros((2, len(names)), dtype=np.uint64)
    core.hash_names(names, ours)
    plain.hash_names(names, theirs)
    np.testing.assert_array_equal(ours, theirs)
    assert len(set(ours.tolist())) == len(names)
    with pytest.raises(ValueError, match="not as many hashes as names"):
        core.hash_names(names[1:], ours)


@pytest.mark.parametrize("form", ["core", "plain"])
def test_strings_are_found_in_lists_of_any_length(form, request):
    find = (request.getfixturevalue("core") if form == "core" else plain).find_strings
    lookup = Lookup(hash_names(NAMES))
    X = [[NAMES, [], ("b", "a")], ([f"new {k}" for k in range(5000)], ["a"]), [["größer"] * 9000, [""]]]
    steps = [step for x in X for step in x]
    indptr, found = find(X, lookup.hashes, lookup.numbers)
    assert (indptr.dtype, found.dtype) == (np.int64, np.int32)
    rows = [found[a:b].tolist() for a, b in pairwise(indptr.tolist())]
    assert rows == [[NAMES.index(name) for name in step if name in NAMES] for step in steps]
    for other in ({}, [["a"]], [[{"a": 1}]], [[["a"]], "ab"]):
        assert find(other, lookup.hashes, lookup.numbers) is None
    with pytest.raises(TypeError):
        find([[[[]]]], lookup.hashes, lookup.numbers)


def test_both_forms_find_names_alike(core):
    rng = np.random.default_rng(1)
    names = rng.integers(0, 2**63, 500, dtype=np.uint64)
    names[:50] = names[50:100] + np.uint64(1 << 40)  # the same places of a table
    given = np.concatenate([names[::-1], rng.integers(0, 2**63, 200, dtype=np.uint64)])
    indptr, data = np.array([0, 0, 300, 700]), rng.standard_normal(700)
    found = []
    for form in (core, plain):
        hashes, numbers = np.zeros(1024, dtype=np.uint64), np.full(1024, -1, dtype=np.int32)
        form.store_names(names, hashes, numbers)
        begin, number, values = np.empty_like(indptr), np.empty(700, dtype=np.int32), np.empty(700)
        n = form.find_names(given, indptr, data, hashes, numbers, begin, number, values)
        found.append((n, begin.tolist(), number[:n].tolist(), values[:n].tolist()))
    assert found[0] == found[1]
    assert found[0][0] == 500
    assert found[0][2] == list(range(499, -1, -1))


def test_both_forms_mark_cells_alike(core):
    rng = np.random.default_rng(2)
    x = draw_sparse(rng)
    steps, cells = rng.integers(0, 40, 30), rng.integers(0, 3, 30)
    ours, theirs = np.zeros((2, x.size * 3), dtype=bool)
    core.mark_cells(x.indptr, x.indices, steps, cells, 3, ours)
    plain.mark_cells(x.indptr, x.indices, steps, cells, 3, theirs)
    np.testing.assert_array_equal(ours, theirs)
    assert 0 < ours.sum() < ours.size


@pytest.mark.parametrize(("steps", "longest"), [(7, 3), (3, 7), (1, 1)])
def test_averages_and_their_transpose(steps, longest):
    rng = np.random.default_rng(3)
    scores, weights = rng.standard_normal((steps, 2)), rng.standard_normal((steps, longest, 2))
    weights[np.add.outer(np.arange(steps), np.arange(longest)) >= steps] = 0.0  # past the end
    table = np.zeros((steps, longest, 2))
    average_tokens(scores, table)
    for i in range(steps):
        for k in range(min(longest, steps - i)):
            np.testing.assert_allclose(table[i, k], scores[i : i + k + 1].mean(axis=0), **CLOSE)
    back = np.zeros_like(scores)
    average_tokens_back(weights, back)
    assert (table * weights).sum() == pytest.approx((scores * back).sum(), rel=1e-12, abs=1e-12)


def test_the_core_refuses_features_that_do_not_fit(core):
    rng = np.random.default_rng(4)
    x, out = draw_sparse(rng), np.zeros((3, 2))
    pairs = draw_pairs(rng, x.size, 2)
    with pytest.raises(ValueError, match="another size"):
        core.score_rows(x.indptr, x.indices, x.data, *pairs, np.zeros(pairs[1].size), 1.0, out)
    with pytest.raises(ValueError, match="4 or 8"):
        core.spread_weights(x.indices[:0], *pairs, np.zeros(pairs[1].size), 1.0, np.zeros(0), 2, 3)
    with pytest.raises(TypeError):
        core.score_pairs(x.indices.astype(np.int64), x.indices, np.empty(0), np.zeros(3), 1.0, np.zeros(3))
