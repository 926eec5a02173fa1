"""Observations of every kind are packed rightly, at once or by parts."""

import pickle
from itertools import pairwise

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix, csc_matrix, csr_matrix

from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.lookup import Lookup, hash_items, hash_names

WORDS = [[["w=a", "cap"], ["w=b"]], [["w=a"], [], ["w=c", "cap"]]]


def matrix_of(packed, columns):
    """The packed named features as a dense table (N, columns)."""
    x = packed.sparse
    data = x.data if x.data.size else np.ones(x.indices.size)
    return csr_matrix((data, x.indices, x.indptr), shape=(packed.steps, columns)).toarray()


def table_of(rows, names):
    """What it should be: a list of {name: value} of all steps as a dense table."""
    return np.array([[row.get(name, 0.0) for name in names] for row in rows])


def test_string_lists():
    encoder = ObservationEncoder()
    packed = encoder.fit_pack(WORDS)
    assert list(encoder.names) == ["w=a", "cap", "w=b", "w=c"]
    assert packed.offsets.tolist() == [0, 2, 5]
    assert packed.sparse.data.size == 0  # ones are not stored
    rows = [{name: 1 for name in step} for x in WORDS for step in x]
    np.testing.assert_array_equal(matrix_of(packed, 4), table_of(rows, encoder.names))


def test_dicts_hold_strings_numbers_and_bools():
    encoder = ObservationEncoder()
    packed = encoder.fit_pack(
        [[{"w": "a", "size": 2.5, "cap": True, "end": False, "gone": None}, {"size": np.int64(3)}]]
    )
    assert list(encoder.names) == ["w=a", "size", "cap", "gone is missing"]
    np.testing.assert_array_equal(matrix_of(packed, 4), [[1, 2.5, 1, 1], [0, 3, 0, 0]])


def test_dicts_and_strings_mean_the_same():
    dicts = [[dict.fromkeys(step, True) for step in x] for x in WORDS]
    strings, other = ObservationEncoder(), ObservationEncoder()
    one, two = strings.fit_pack(WORDS), other.fit_pack(dicts)
    np.testing.assert_array_equal(one.sparse.indices, two.sparse.indices)
    assert two.sparse.data.size == 0
    np.testing.assert_array_equal(other.pack(WORDS).sparse.indices, one.sparse.indices)  # train on one, predict other


def test_unseen_names_are_ignored():
    encoder = ObservationEncoder()
    encoder.fit_pack(WORDS)
    packed = encoder.pack([[["new", "w=c"], ["newer"]], [["cap", "new", "w=a"]]])
    np.testing.assert_array_equal(matrix_of(packed, 4), [[0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]])
    numbers = ObservationEncoder()
    numbers.fit_pack([[{"a": 2.0, "b": 1.0}]])
    packed = numbers.pack([[{"new": 7.0, "b": 5.0}, {"new": "x"}]])
    np.testing.assert_array_equal(matrix_of(packed, 2), [[0, 5], [0, 0]])


@pytest.mark.parametrize("X", [WORDS, [[dict.fromkeys(step, 2.0) for step in x] for x in WORDS]])
def test_rare_names_are_left_out(X):
    encoder = ObservationEncoder(min_count=2)
    packed = encoder.fit_pack(X)
    assert list(encoder.names) == ["w=a", "cap"]
    value = 1.0 if X is WORDS else 2.0
    expected = value * np.array([[1, 1], [0, 0], [1, 0], [0, 0], [0, 1]])
    np.testing.assert_array_equal(matrix_of(packed, 2), expected)
    np.testing.assert_array_equal(matrix_of(encoder.pack(X), 2), expected)


def test_rare_columns_of_a_matrix_are_left_out():
    rows = np.array([[1, 0, 3], [2, 0, 0], [0, 5, 1.5]])
    encoder = ObservationEncoder(min_count=2)
    packed = encoder.fit_pack([csr_matrix(rows)])
    np.testing.assert_array_equal(matrix_of(packed, 2), rows[:, [0, 2]])
    np.testing.assert_array_equal(matrix_of(encoder.pack([csr_matrix(rows)]), 2), rows[:, [0, 2]])


def test_no_features_at_all():
    encoder = ObservationEncoder(min_count=100)
    packed = encoder.fit_pack(WORDS)
    assert packed.sparse.size == 0
    assert packed.sparse.indptr.tolist() == [0] * 6
    assert encoder.pack([[["w=a"]]]).sparse.indices.size == 0


@pytest.mark.parametrize("make", [csr_matrix, csc_matrix, coo_matrix])
def test_sparse_matrices(make):
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.5) for n in (3, 1, 5)]
    encoder = ObservationEncoder()
    packed = encoder.fit_pack([make(table) for table in tables])
    np.testing.assert_allclose(matrix_of(packed, 4), np.concatenate(tables), rtol=0, atol=0)
    assert packed.offsets.tolist() == [0, 3, 4, 9]


@pytest.mark.parametrize(
    "make",
    [np.asarray, np.ndarray.tolist, lambda x: pandas.DataFrame(x, columns=["a", "b"]), lambda x: x.astype(np.float32)],
    ids=["array", "lists", "DataFrame", "float32"],
)
def test_numeric_columns_are_standardised(make):
    rng = np.random.default_rng(0)
    tables = [5 + 100 * rng.normal(size=(n, 2)) for n in (3, 1, 5)]
    encoder = ObservationEncoder()
    packed = encoder.fit_pack([make(table) for table in tables])
    np.testing.assert_allclose(packed.dense.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(packed.dense.std(axis=0), 1, rtol=1e-6)
    rows = np.concatenate(tables)
    np.testing.assert_allclose(encoder.pack([make(tables[0])]).dense, (tables[0] - rows.mean(0)) / rows.std(0), 1e-4)


def test_numeric_columns_as_they_are():
    table = np.array([[1.0, 100], [3, 300]])
    np.testing.assert_array_equal(ObservationEncoder(standardize=False).fit_pack([table]).dense, table)


@pytest.mark.parametrize("scale", [1e-15, 1e-3, 1e9])
def test_the_unit_of_a_column_does_not_matter(scale):
    table = np.random.default_rng(0).normal(size=(20, 2))
    one, other = (ObservationEncoder().fit_pack([table * unit]).dense for unit in (1.0, [scale, 1.0]))
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 / 3])
def test_a_constant_column_says_nothing(value):
    packed = ObservationEncoder().fit_pack([np.full((30, 1), value)])
    np.testing.assert_allclose(packed.dense, 0.0, atol=1e-6)


def test_encoders_come_back_from_their_state():
    for X in (WORDS, [np.random.default_rng(0).normal(size=(4, 2))]):
        encoder = ObservationEncoder(min_count=2)
        encoder.fit_pack(X)
        again = ObservationEncoder.restore(*encoder.state())
        assert again.state()[0] == encoder.state()[0]
        for one, other in zip(vars(again.pack(X)).values(), vars(encoder.pack(X)).values(), strict=True):
            assert repr(one) == repr(other)


NAN = float("nan")
BAD = [
    ([], "X is empty, expected at least one sequence"),
    ([WORDS[0], []], r"X\[1\] is empty, expected at least one time step"),
    ([np.zeros((2, 3)), np.zeros((0, 3))], r"X\[1\] is empty"),
    ([["a", "b"]], r"X\[0\]\[0\] is a string, expected a feature dict or a list.*TokenFeatures"),
    ([[["a"], "bc"]], r"X\[0\]\[1\] is 'bc', expected a list of feature strings"),
    ([[["a"]], [["a"], {"b": 1}]], r"X\[1\]\[1\] is \{'b': 1\}, expected a list of feature strings"),
    ([[["a"], 3]], r"X\[0\]\[1\] is 3, expected a list of feature strings"),
    ([[["a"], ["b", 3]]], r"X\[0\]\[1\] holds the feature 3, expected a string"),
    ([[["a"]], [["a"], ["b", ["c"]]]], r"X\[1\]\[1\] holds the feature \['c'\], expected a string"),
    ([[{"a": 1}, "b"]], r"X\[0\]\[1\] is a str, expected a feature dict"),
    ([[{"a": 1}], [{}, ["b"]]], r"X\[1\]\[1\] is a list, expected a feature dict"),
    ([[{"a": 1}, {"a": np.inf}]], r"X\[0\]\[1\]\['a'\] is inf, expected a finite number, or None"),
    ([[{"a": 1}, {"a": [1, 2]}]], r"X\[0\]\[1\]\['a'\] is a list, expected a string, number or bool"),
    ([[3, 4]], r"X\[0\]\[0\] is an int, expected a feature dict, strings or numbers"),
    (
        [np.zeros((2, 2)), np.array([[0, 1], [2, -np.inf]])],
        r"X\[1\] is -inf at step 1 in column 'x1'",
    ),
    ([np.array([[np.inf]])], r"X\[0\] is inf at step 0 in column 'x0'"),
    ([np.zeros((2, 2)), np.zeros((2, 3))], r"X\[1\] has 3 columns but X\[0\] has 2"),
    ([np.zeros(3)], r"X\[0\] has 1 axes, expected 2"),
    ([csr_matrix(np.eye(2)), csr_matrix([[1, 0], [0, NAN]])], r"X\[1\] is not finite at step 1"),
    ([csr_matrix(np.eye(2)), csr_matrix(np.eye(3))], r"X\[1\] has 3 columns but X\[0\] has 2"),
    (
        [pandas.DataFrame({"a": [1.0], "b": [2.0]}), pandas.DataFrame({"b": [1.0], "a": [2.0]})],
        r"X\[1\] has the columns \['b', 'a'\] but X\[0\] has \['a', 'b'\]",
    ),
]


@pytest.mark.parametrize(("X", "message"), BAD)
def test_bad_observations(X, message):
    with pytest.raises(ValueError, match=message):
        ObservationEncoder().fit_pack(X)


@pytest.mark.parametrize(
    ("X", "new", "message"),
    [
        (WORDS, [np.zeros((2, 2))], "X holds numeric arrays, but the model was trained on lists of feature strings"),
        ([np.zeros((2, 2))], WORDS, "X holds lists of feature strings, but the model was trained on numeric arrays"),
        ([np.zeros((2, 2))], [np.zeros((2, 3))], "X has 3 columns, but the model was trained on 2"),
        ([csr_matrix(np.eye(3))], [csr_matrix(np.eye(2))], "X has 2 columns, but the model was trained on at least 3"),
        (
            [pandas.DataFrame({"a": [1.0], "b": [2.0]})],
            [pandas.DataFrame({"b": [1.0], "a": [2.0]})],
            r"X has the columns \['b', 'a'\] in another order, but the model was trained on \['a', 'b'\]",
        ),
    ],
)
def test_other_observations_than_in_training(X, new, message):
    encoder = ObservationEncoder()
    encoder.fit_pack(X)
    with pytest.raises(ValueError, match=message):
        encoder.pack(new)


def test_arrays_and_data_frames_may_stand_for_each_other():
    table = np.random.default_rng(0).normal(size=(4, 2))
    frame = pandas.DataFrame(table, columns=["a", "b"])
    for X, new in (([table], [frame]), ([frame], [table])):
        encoder = ObservationEncoder()
        np.testing.assert_array_equal(encoder.fit_pack(X).dense, encoder.pack(new).dense)


# ------------------------------------------------------------------------------
# Learning by parts


def table(rng, rows):
    return (1e6 + 100 * rng.normal(size=(rows, 3))) * (1, 1e-9, 0.1)


def words(rng, rows):
    return [[f"w={k}" for k in rng.integers(0, 60, size=rng.integers(0, 5))] for _ in range(rows)]


MAKERS = {
    "strings": words,
    "dicts": lambda rng, rows: [{name: float(rng.integers(1, 4)) for name in step} for step in words(rng, rows)],
    "arrays": table,
    "frames": lambda rng, rows: pandas.DataFrame(table(rng, rows), columns=["a", "b", "c"]),
    "matrices": lambda rng, rows: csr_matrix(rng.integers(1, 5, size=(rows, 80)) * (rng.random((rows, 80)) < 0.03)),
}
CUTS = [0, 3, 4, 11, 20, 25]  # five parts
SETTINGS = {"plain": (1, False), "usual": (1, True), "rare": (3, True)}


def data_of(kind):
    rng = np.random.default_rng(0)
    return [MAKERS[kind](rng, rows) for rows in rng.integers(1, 9, size=CUTS[-1])]


def parts_of(X):
    return [X[a:b] for a, b in pairwise(CUTS)]


def learned(X, settings):
    encoder = ObservationEncoder(*settings)
    encoder.update(X)
    return encoder


def assert_same(one, other):
    """Field by field: names in order, counts, and means and scales up to rounding."""
    assert list(one.names.items()) == list(other.names.items())
    assert (one.kind, one.columns, one.settled) == (other.kind, other.columns, other.settled)
    np.testing.assert_array_equal(one.counts, other.counts)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-12)
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-12)
    assert (one.moments is None) == (other.moments is None)
    if one.moments is not None:
        np.testing.assert_array_equal(one.moments.count, other.moments.count)
        np.testing.assert_allclose(one.moments.mean, other.moments.mean, rtol=1e-12)
        np.testing.assert_allclose(np.sqrt(one.moments.variance), np.sqrt(other.moments.variance), rtol=1e-12)
        np.testing.assert_array_equal(one.moments.largest, other.moments.largest)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("kind", MAKERS)
def test_five_merged_parts_equal_one_pass(kind, settings):
    X = data_of(kind)
    whole, merged = learned(X, settings), ObservationEncoder(*settings)
    for part in parts_of(X):
        merged.merge(pickle.loads(pickle.dumps(learned(part, settings))))  # as if learned in another process
    assert_same(merged, whole)
    assert whole.counts.size == len(whole.names)
    whole.settle()
    merged.settle()
    assert_same(merged, whole)
    once = ObservationEncoder(*settings)
    once.fit_pack(X)
    assert_same(whole, once)
    assert once.counts.size == 0
    assert once.moments is None


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("kind", MAKERS)
def test_parts_that_were_packed_while_learning_are_settled(kind, settings):
    X = data_of(kind)
    encoder, once = ObservationEncoder(*settings), ObservationEncoder(*settings)
    packed = [encoder.update(part) for part in parts_of(X)]
    whole = once.fit_pack(X)
    for part, (a, b) in zip(encoder.settle(*packed), pairwise(CUTS), strict=True):
        expected = whole.take(range(a, b))
        np.testing.assert_array_equal(part.offsets, expected.offsets)
        if part.dense is not None:
            np.testing.assert_allclose(part.dense, expected.dense, rtol=1e-9, atol=1e-9)
        else:
            assert part.sparse.size == len(once.names)
            np.testing.assert_array_equal(part.sparse.indices, expected.sparse.indices)
            np.testing.assert_array_equal(matrix_of(part, len(once.names)), matrix_of(expected, len(once.names)))


def test_what_was_learned_before_stays_when_a_part_is_bad():
    encoder = learned(WORDS, (1, True))
    for bad in ([[["new", 3]]], [[["new"], {"a": 1}]], [[{"a": 1}]], [np.zeros((2, 2))]):
        with pytest.raises(ValueError, match=r"X holds|X\[0\]"):
            encoder.update(bad)
    assert_same(encoder, learned(WORDS, (1, True)))


@pytest.mark.parametrize(
    ("X", "later", "message"),
    [
        (WORDS, [[{"a": 1}]], "X holds feature dicts, but earlier parts hold lists of feature strings"),
        ([np.zeros((2, 2))], WORDS, "X holds lists of feature strings, but earlier parts hold numeric arrays"),
        ([np.zeros((2, 2))], [np.zeros((2, 3))], "X has 3 columns, but earlier parts have 2"),
        ([csr_matrix(np.eye(3))], [csr_matrix(np.eye(2))], "X has 2 columns, but earlier parts have 3"),
        (
            [pandas.DataFrame({"a": [1.0], "b": [2.0]})],
            [pandas.DataFrame({"b": [1.0], "a": [2.0]})],
            r"X has the columns \['b', 'a'\] in another order, but earlier parts have \['a', 'b'\]",
        ),
    ],
)
def test_parts_must_agree(X, later, message):
    with pytest.raises(ValueError, match=message):
        learned(X, (1, True)).update(later)
    with pytest.raises(ValueError, match=message):
        learned(X, (1, True)).merge(learned(later, (1, True)))


def test_an_encoder_learns_until_it_is_settled():
    encoder = ObservationEncoder()
    encoder.fit_pack(WORDS)
    for settled in (encoder, ObservationEncoder.restore(*encoder.state()), pickle.loads(pickle.dumps(encoder))):
        assert settled.settled
        assert settled.counts.size == 0
        assert settled.counts.base is None  # no part of all counts, which would stay
        with pytest.raises(ValueError, match="the encoder is settled, expected one that still learns"):
            settled.update(WORDS)
        with pytest.raises(ValueError, match="the encoder is settled, expected one that still learns"):
            learned(WORDS, (1, True)).merge(settled)
    with pytest.raises(ValueError, match="the encoder is settled or has learned nothing"):
        ObservationEncoder().settle()
    with pytest.raises(ValueError, match="differ in min_count, standardize or missing"):
        learned(WORDS, (1, True)).merge(learned(WORDS, (2, True)))


def test_learning_anew_forgets():
    encoder = ObservationEncoder()
    encoder.fit_pack([[["other"]]])
    encoder.pack([[["other"]]])
    encoder.fit_pack(WORDS)
    assert list(encoder.names) == ["w=a", "cap", "w=b", "w=c"]
    assert encoder.pack([[["other", "w=c"]]]).sparse.indices.tolist() == [3]


# ------------------------------------------------------------------------------
# What is taken from packed observations


@pytest.mark.parametrize("which", [[0, 2, 1, 3], [3], [1, 2], [3, 2, 1, 0], [0, 3]])
@pytest.mark.parametrize("kind", ["dicts", "arrays"])
def test_sequences_are_taken_in_the_order_asked_for(kind, which):
    X = data_of(kind)[:4]
    encoder = ObservationEncoder()
    found = encoder.fit_pack(X).take(which)
    expected = encoder.pack([X[n] for n in which])
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    if kind == "arrays":
        np.testing.assert_array_equal(found.dense, expected.dense)
    else:
        size = len(encoder.names)
        np.testing.assert_array_equal(matrix_of(found, size), matrix_of(expected, size))


def test_pickled_observations_stand_alone():
    whole = ObservationEncoder().fit_pack(data_of("strings") * 100)
    part = pickle.loads(pickle.dumps(whole.take([7])))
    assert part.origin is None
    assert len(pickle.dumps(part)) < 10_000
    np.testing.assert_array_equal(part.sparse.indices, whole.take([7]).sparse.indices)


# ------------------------------------------------------------------------------
# Names by their hashes


@given(st.lists(st.integers(0, 40), unique=True), st.lists(st.integers(0, 40)), st.sampled_from([1, 64]))
def test_names_are_found_as_in_a_dict(known, asked, step):
    """Multiples of 64 share few slots of the table."""
    names = {step * value: k for k, value in enumerate(known)}
    hashes = np.array([step * value for value in asked], dtype=np.uint64)
    indptr = np.append(np.arange(0, len(hashes), 7), len(hashes))
    found = Lookup(np.array(list(names), dtype=np.uint64))._find(hashes, indptr, np.empty(0))
    rows = [hashes[a:b].tolist() for a, b in pairwise(indptr.tolist())]
    assert [found.indices[a:b].tolist() for a, b in pairwise(found.indptr.tolist())] == [
        [names[h] for h in row if h in names] for row in rows
    ]


NAMES = st.text(st.sampled_from("ab\n\0\té\ud800𝔸"), max_size=20)


@given(st.lists(st.lists(st.lists(NAMES, max_size=4), min_size=1, max_size=4), min_size=1, max_size=3))
def test_equal_names_and_no_others_have_equal_hashes(X):
    """Of any length and any letters."""
    hashes, indptr, _ = hash_items(X, "strings")
    steps = [step for x in X for step in x]
    names = [name for step in steps for name in step]
    assert np.diff(indptr).tolist() == list(map(len, steps))
    by_name = dict(zip(names, hashes.tolist(), strict=True))
    assert hashes.tolist() == [by_name[name] for name in names] == hash_names(names).tolist()
    assert len(set(by_name.values())) == len(by_name)


@pytest.mark.parametrize("kind", ["strings", "dicts"])
def test_names_of_many_steps_are_found_piece_by_piece(kind):
    steps = [[f"w={k % 90}", f"v={k % 7}"] if k % 5 else [] for k in range(3000)]
    encoder = ObservationEncoder()
    encoder.fit_pack([steps[:20]])
    given = steps if kind == "strings" else [dict.fromkeys(step, 1.0) for step in steps]
    found = encoder.pack([given[1:10], given[10:]]).sparse
    known = [[encoder.names[name] for name in step if name in encoder.names] for step in steps[1:]]
    assert [found.indices[a:b].tolist() for a, b in pairwise(found.indptr.tolist())] == known


def test_features_that_are_no_strings_are_unknown_names():
    encoder = ObservationEncoder()
    encoder.fit_pack([[["a"], ["b"]]])
    packed = encoder.pack([[["a", 3], [None, "b"]]])
    assert packed.sparse.indices.tolist() == [0, 1]
    assert packed.sparse.indptr.tolist() == [0, 1, 2]
