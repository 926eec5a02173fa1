"""Observations of every kind are packed rightly, and every block's ``pull`` is the transpose of its ``add``."""

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix, csc_matrix, csr_matrix

from hscrf import Duration, End, Init, Labels, Segment, Start, Stop, Token, Topology, Trans
from hscrf.features.fitting import fit_blocks
from hscrf.features.specifications import default_specifications
from hscrf.labels.packed import pack_labels
from hscrf.observations.encoder import Encoder
from hscrf.observations.lookup import Lookup
from hscrf.observations.packed import Sparse

WORDS = [[["w=a", "cap"], ["w=b"]], [["w=a"], [], ["w=c", "cap"]]]
TOPOLOGY = Topology({"b": ["A", "B"], "c": ["x", "y", "z"]}, max_duration={"b": 3})
LABELS = [
    Labels.from_columns(TOPOLOGY, {"b": ["A", "B"], "c": ["x", "y"]}),
    Labels.from_columns(TOPOLOGY, {"b": ["A", "A", "B"], "c": ["x", "z", "z"]}),
]


def matrix_of(seen, columns):
    """The packed named features as a dense table (N, columns)."""
    x = seen.sparse
    data = x.data if x.data.size else np.ones(x.indices.size)
    return csr_matrix((data, x.indices, x.indptr), shape=(seen.steps, columns)).toarray()


def table_of(rows, names):
    """What it should be: a list of {name: value} of all steps as a dense table."""
    return np.array([[row.get(name, 0.0) for name in names] for row in rows])


# ------------------------------------------------------------------------------
# The encoder


def test_string_lists():
    encoder = Encoder()
    seen = encoder.fit_pack(WORDS)
    assert list(encoder.names) == ["w=a", "cap", "w=b", "w=c"]
    assert seen.offsets.tolist() == [0, 2, 5]
    assert seen.sparse.data.size == 0  # ones are not stored
    rows = [{name: 1 for name in step} for x in WORDS for step in x]
    np.testing.assert_array_equal(matrix_of(seen, 4), table_of(rows, encoder.names))


def test_dicts_hold_strings_numbers_and_bools():
    encoder = Encoder()
    seen = encoder.fit_pack([[{"w": "a", "size": 2.5, "cap": True, "end": False, "gone": None}, {"size": np.int64(3)}]])
    assert list(encoder.names) == ["w=a", "size", "cap"]
    np.testing.assert_array_equal(matrix_of(seen, 3), [[1, 2.5, 1], [0, 3, 0]])


def test_dicts_and_strings_mean_the_same():
    dicts = [[dict.fromkeys(step, True) for step in x] for x in WORDS]
    strings, other = Encoder(), Encoder()
    one, two = strings.fit_pack(WORDS), other.fit_pack(dicts)
    np.testing.assert_array_equal(one.sparse.indices, two.sparse.indices)
    assert two.sparse.data.size == 0
    np.testing.assert_array_equal(other.pack(WORDS).sparse.indices, one.sparse.indices)  # train on one, predict other


def test_unseen_names_are_ignored():
    encoder = Encoder()
    encoder.fit_pack(WORDS)
    seen = encoder.pack([[["new", "w=c"], ["newer"]], [["cap", "new", "w=a"]]])
    np.testing.assert_array_equal(matrix_of(seen, 4), [[0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]])
    numbers = Encoder()
    numbers.fit_pack([[{"a": 2.0, "b": 1.0}]])
    seen = numbers.pack([[{"new": 7.0, "b": 5.0}, {"new": "x"}]])
    np.testing.assert_array_equal(matrix_of(seen, 2), [[0, 5], [0, 0]])


@pytest.mark.parametrize("X", [WORDS, [[dict.fromkeys(step, 2.0) for step in x] for x in WORDS]])
def test_rare_names_are_left_out(X):
    encoder = Encoder(min_count=2)
    seen = encoder.fit_pack(X)
    assert list(encoder.names) == ["w=a", "cap"]
    value = 1.0 if X is WORDS else 2.0
    expected = value * np.array([[1, 1], [0, 0], [1, 0], [0, 0], [0, 1]])
    np.testing.assert_array_equal(matrix_of(seen, 2), expected)
    np.testing.assert_array_equal(matrix_of(encoder.pack(X), 2), expected)


def test_rare_columns_of_a_matrix_are_left_out():
    rows = np.array([[1, 0, 3], [2, 0, 0], [0, 5, 1.5]])
    encoder = Encoder(min_count=2)
    seen = encoder.fit_pack([csr_matrix(rows)])
    np.testing.assert_array_equal(matrix_of(seen, 2), rows[:, [0, 2]])
    np.testing.assert_array_equal(matrix_of(encoder.pack([csr_matrix(rows)]), 2), rows[:, [0, 2]])


def test_no_features_at_all():
    encoder = Encoder(min_count=100)
    seen = encoder.fit_pack(WORDS)
    assert seen.sparse.size == 0
    assert seen.sparse.indptr.tolist() == [0] * 6
    assert encoder.pack([[["w=a"]]]).sparse.indices.size == 0


@pytest.mark.parametrize("make", [csr_matrix, csc_matrix, coo_matrix])
def test_sparse_matrices(make):
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.5) for n in (3, 1, 5)]
    encoder = Encoder()
    seen = encoder.fit_pack([make(table) for table in tables])
    np.testing.assert_allclose(matrix_of(seen, 4), np.concatenate(tables), rtol=0, atol=0)
    assert seen.offsets.tolist() == [0, 3, 4, 9]


@pytest.mark.parametrize(
    "make",
    [np.asarray, np.ndarray.tolist, lambda x: pandas.DataFrame(x, columns=["a", "b"]), lambda x: x.astype(np.float32)],
    ids=["array", "lists", "DataFrame", "float32"],
)
def test_numeric_columns_are_standardised(make):
    rng = np.random.default_rng(0)
    tables = [5 + 100 * rng.normal(size=(n, 2)) for n in (3, 1, 5)]
    encoder = Encoder()
    seen = encoder.fit_pack([make(table) for table in tables])
    np.testing.assert_allclose(seen.dense.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(seen.dense.std(axis=0), 1, rtol=1e-6)
    rows = np.concatenate(tables)
    np.testing.assert_allclose(encoder.pack([make(tables[0])]).dense, (tables[0] - rows.mean(0)) / rows.std(0), 1e-4)


def test_numeric_columns_as_they_are():
    table = np.array([[1.0, 100], [3, 300]])
    np.testing.assert_array_equal(Encoder(standardize=False).fit_pack([table]).dense, table)


@pytest.mark.parametrize("scale", [1e-15, 1e-3, 1e9])
def test_the_unit_of_a_column_does_not_matter(scale):
    table = np.random.default_rng(0).normal(size=(20, 2))
    one, other = (Encoder().fit_pack([table * unit]).dense for unit in (1.0, [scale, 1.0]))
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 / 3])
def test_a_constant_column_says_nothing(value):
    seen = Encoder().fit_pack([np.full((30, 1), value)])
    np.testing.assert_allclose(seen.dense, 0.0, atol=1e-6)


def test_encoders_come_back_from_their_state():
    for X in (WORDS, [np.random.default_rng(0).normal(size=(4, 2))]):
        encoder = Encoder(min_count=2)
        encoder.fit_pack(X)
        again = Encoder.restore(*encoder.state())
        assert again.state()[0] == encoder.state()[0]
        for one, other in zip(vars(again.pack(X)).values(), vars(encoder.pack(X)).values(), strict=True):
            assert repr(one) == repr(other)


NAN = float("nan")
BAD = [
    ([], "X is empty, expected at least one sequence"),
    ([WORDS[0], []], r"X\[1\] is empty, expected at least one time step"),
    ([np.zeros((2, 3)), np.zeros((0, 3))], r"X\[1\] is empty"),
    ([["a", "b"]], r"X\[0\]\[0\] is a string, expected a feature dict or a list"),
    ([[["a"], "bc"]], r"X\[0\]\[1\] is 'bc', expected a list of feature strings"),
    ([[["a"]], [["a"], {"b": 1}]], r"X\[1\]\[1\] is \{'b': 1\}, expected a list of feature strings"),
    ([[["a"], 3]], r"X\[0\]\[1\] is 3, expected a list of feature strings"),
    ([[["a"], ["b", 3]]], r"X\[0\]\[1\] holds the feature 3, expected a string"),
    ([[["a"]], [["a"], ["b", ["c"]]]], r"X\[1\]\[1\] holds the feature \['c'\], expected a string"),
    ([[{"a": 1}, "b"]], r"X\[0\]\[1\] is a str, expected a feature dict"),
    ([[{"a": 1}], [{}, ["b"]]], r"X\[1\]\[1\] is a list, expected a feature dict"),
    ([[{"a": 1}, {"a": NAN}]], r"X\[0\]\[1\]\['a'\] is nan, expected a finite number"),
    ([[{"a": 1}, {"a": [1, 2]}]], r"X\[0\]\[1\]\['a'\] is a list, expected a string, number or bool"),
    ([[3, 4]], r"X\[0\]\[0\] is a int, expected a feature dict, strings or numbers"),
    ([np.zeros((2, 2)), np.array([[0, 1], [2, NAN]])], r"X\[1\] is nan at step 1, column 1, expected a finite number"),
    ([np.array([[np.inf]])], r"X\[0\] is inf at step 0, column 0"),
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
        Encoder().fit_pack(X)


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
            r"X has the columns \['b', 'a'\], but the model was trained on \['a', 'b'\]",
        ),
    ],
)
def test_other_observations_than_in_training(X, new, message):
    encoder = Encoder()
    encoder.fit_pack(X)
    with pytest.raises(ValueError, match=message):
        encoder.pack(new)


def test_arrays_and_data_frames_may_stand_for_each_other():
    table = np.random.default_rng(0).normal(size=(4, 2))
    frame = pandas.DataFrame(table, columns=["a", "b"])
    for X, new in (([table], [frame]), ([frame], [table])):
        encoder = Encoder()
        np.testing.assert_array_equal(encoder.fit_pack(X).dense, encoder.pack(new).dense)


# ------------------------------------------------------------------------------
# Blocks


def mean_and_length(z, start, stop):
    return [np.mean([len(z[t]) for t in range(start, stop)]), stop - start]


def length_only(z, start, stop):
    return float(stop - start)


SPECIFICATIONS = [
    Token("root"),
    Token("c"),
    Token("b", average=True),
    Token("c", average=True),
    Start("b"),
    Stop("b"),
    Duration("b", "gamma"),
    Duration("b", "bins"),
    Duration("b", "each"),
    Segment("b", mean_and_length),
    Segment("b", length_only),
    Init("root"),
    Trans("b"),
    End("b"),
    Init("b", observed=True),
    Trans("root", observed=True),
    End("root", observed=True),
]
KINDS = {
    "strings": WORDS,
    "numbers": [[dict.fromkeys(step, len(step) - 0.5) for step in x] for x in WORDS],
    "dense": [np.random.default_rng(n).normal(size=(n, 3)) for n in (2, 3)],
}


def fit_one(spec, X=WORDS, pairs="all", labels=LABELS, topology=TOPOLOGY, transitions="all"):
    encoder = Encoder()
    seen = encoder.fit_pack(X)
    return fit_blocks([spec], topology, encoder, seen, pack_labels(labels), pairs, transitions)[0], encoder, seen


@pytest.mark.parametrize("states", [3, 8, 30])
@pytest.mark.parametrize("valued", [False, True], ids=["names", "numbers"])
def test_rows_and_columns_give_the_same(states, valued):
    """Features of few and of many entries, with one state or with all of them."""
    rng = np.random.default_rng(states)
    features, steps = 12, 50
    there = rng.random((steps, features)) < np.linspace(0.02, 0.9, features)
    data = rng.normal(size=there.sum()) if valued else np.empty(0)
    indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    rows = Sparse(indptr, np.nonzero(there)[1].astype(np.int32), data, features)
    paired = rng.random((features, states)) < np.tile([0.0, 0.1, 0.6, 1.0], 3)[:, None]
    pair_at = np.concatenate([[0], np.cumsum(paired.sum(axis=1))])
    cells = np.nonzero(paired)[1].astype(np.int32)
    weights, counts = rng.normal(size=cells.size), rng.normal(size=(steps, states))
    values = np.zeros(there.shape)
    values[there] = data if valued else 1.0
    table = np.zeros(paired.shape)
    table[paired] = weights
    for seen in (rows, rows.by_columns()):
        scores, gradient = np.zeros((steps, states)), np.zeros(cells.size)
        seen.add_scores(pair_at, cells, weights, scores)
        seen.pull_counts(pair_at, cells, counts, gradient)
        np.testing.assert_allclose(scores, values @ table, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(gradient, (values.T @ counts)[paired], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("pairs", ["seen", "all"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", SPECIFICATIONS, ids=lambda spec: str(spec).split(" at ")[0])
def test_pull_is_the_transpose_of_add(spec, kind, pairs):
    block, encoder, seen = fit_one(spec, KINDS[kind], pairs)
    rng = np.random.default_rng(0)
    for which in ([0, 1], [1], [1, 0]):  # both sequences, the second alone, the second before the first
        part = seen.take(which)
        weights = rng.normal(size=block.size)
        scores = np.zeros((part.steps, *block.shape) if block.timed else block.shape)
        block.add(weights, part, scores)
        counts = rng.normal(size=scores.shape)
        if block.key[0] == "segment":  # segments that leave their sequence are never asked for
            left = np.concatenate([np.arange(n, 0, -1) for n in np.diff(part.offsets)])
            counts *= (left[:, None] > np.arange(block.shape[0]))[:, :, None]
        gradient = np.zeros(block.size)
        block.pull(counts, part, gradient)
        np.testing.assert_allclose((scores * counts).sum(), weights @ gradient, rtol=1e-11)
        again, gradient_again = np.zeros_like(scores), np.zeros_like(gradient)
        block.add(weights, part.by_columns(), again)
        block.pull(counts, part.by_columns(), gradient_again)
        np.testing.assert_allclose(again, scores, rtol=1e-12)
        np.testing.assert_allclose(gradient_again, gradient, rtol=1e-12)
    names = block.describe(encoder)
    assert len(names) == block.size == len(set(names))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (Token("c"), lambda z, t: z[t]),
        (Start("b"), lambda z, t: z[t]),
    ],
)
def test_scores_are_sums_of_weights(spec, expected):
    block, encoder, seen = fit_one(spec)
    weights = np.arange(1.0, block.size + 1)
    scores = np.zeros((5, *block.shape))
    block.add(weights, seen, scores)
    table = {name: weights[k] for k, name in enumerate(block.describe(encoder))}
    steps = [(z, t) for z in WORDS for t in range(len(z))]
    for row, (z, t) in zip(scores, steps, strict=True):
        for s, score in enumerate(row):
            assert score == sum(table[name, (s,)] for name in expected(z, t))


def test_averages_are_over_the_segment():
    X = KINDS["dense"]
    average, _, seen = fit_one(Token("b", average=True), X)
    token, _, _ = fit_one(Token("b"), X)
    w = np.random.default_rng(0).normal(size=token.size)
    per_step, per_segment = np.zeros((5, 2)), np.zeros((5, 3, 2))
    token.add(w, seen, per_step)
    average.add(w, seen, per_segment)
    for start, stop in ((0, 1), (0, 2), (2, 4), (2, 5), (4, 5)):
        np.testing.assert_allclose(per_segment[start, stop - start - 1], per_step[start:stop].mean(axis=0), rtol=1e-12)


def test_durations():
    gamma, bins, each = (fit_one(Duration("b", kind))[0].basis for kind in ("gamma", "bins", "each"))
    np.testing.assert_allclose(gamma, [[0, 1 / 3], [np.log(2), 2 / 3], [np.log(3), 1]])
    np.testing.assert_array_equal(bins, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(each, np.eye(3))
    topology = Topology({"b": ["A"], "c": ["x"]}, max_duration={"b": 9})
    labels = [Labels.from_columns(topology, {"b": ["A"] * n, "c": ["x"] * n}) for n in (2, 3)]
    block, encoder, _ = fit_one(Duration("b", "bins"), topology=topology, labels=labels)
    assert block.basis.argmax(axis=1).tolist() == [0, 1, 2, 2, 3, 3, 3, 3, 4]
    assert [name for name, _ in block.describe(encoder)][2:4] == ["length 3 to 4", "length 5 to 8"]


def test_segment_functions_see_what_the_user_gave():
    asked = []

    def spy(z, start, stop):
        asked.append((tuple(map(tuple, z)), start, stop))
        return 0.0

    block, _, seen = fit_one(Segment("b", spy))
    asked.clear()
    for _ in range(2):  # once for each segment, however often it is used
        block.add(np.zeros(block.size), seen, np.zeros((5, 3, 2)))
    first, second = (tuple(map(tuple, z)) for z in WORDS)
    segments = [(first, 0, 1), (first, 0, 2), (first, 1, 2)]
    segments += [(second, i, j) for i in range(3) for j in range(i + 1, 4)]
    assert asked == segments


def test_one_segment_function_may_serve_two_levels():
    topology = Topology({"b": ["A", "B"], "c": ["x", "y", "z"]}, max_duration={"b": 3, "c": 2})
    labels = [Labels.from_columns(topology, {"b": y.column("b"), "c": y.column("c")}) for y in LABELS]
    encoder = Encoder()
    seen = encoder.fit_pack(WORDS)
    both = [Segment("b", length_only), Segment("c", length_only)]
    for block in fit_blocks(both, topology, encoder, seen, pack_labels(labels)):
        out = np.zeros((5, *block.shape))
        block.add(np.ones(block.size), seen, out)
        np.testing.assert_array_equal(out[2, :, 0], 1 + np.arange(block.longest))


def test_bad_segment_functions_are_named():
    def moody(z, start, stop):
        return [1.0] * (1 + (stop - start > 1))

    def broken(z, start, stop):
        return np.nan

    for function, message in ((moody, r"moody\(z, 0, 2\) is \[1.0, 1.0\], expected 1 finite"), (broken, "broken.*nan")):
        block, _, seen = fit_one(Segment("b", function))
        with pytest.raises(ValueError, match=message):
            block.add(np.zeros(block.size), seen, np.zeros((5, 3, 2)))


def test_only_pairs_that_occur_have_weights():
    def pairs_of(spec, pairs, labels=LABELS):
        block, encoder, _ = fit_one(spec, pairs=pairs, labels=labels, transitions=pairs)
        return {(name, *place) for name, place in block.describe(encoder)}

    assert pairs_of(Token("b"), "seen") == {("w=a", 0), ("cap", 0), ("w=b", 1), ("w=c", 1), ("cap", 1)}
    assert len(pairs_of(Token("b"), "all")) == 4 * 2
    assert pairs_of(Start("b"), "seen") == pairs_of(Token("b"), "seen")
    assert pairs_of(Stop("b"), "seen") == pairs_of(Token("b"), "seen")
    one = [Labels.from_columns(TOPOLOGY, {"b": ["A"] * n, "c": ["x"] * n}) for n in (2, 3)]
    assert pairs_of(Stop("b"), "seen", one) == {("w=b", 0), ("w=c", 0), ("cap", 0)}  # w=a ends nothing
    hidden = [Labels.from_columns(TOPOLOGY, {"b": ["?", "A"]}), one[1]]
    assert pairs_of(Stop("b"), "seen", hidden) == {("w=a", 0), ("w=a", 1), ("w=b", 0), ("w=c", 0), ("cap", 0)}
    assert pairs_of(Init("b"), "seen") == {("", 0, 0), ("", 1, 1), ("", 1, 2)}
    assert pairs_of(Trans("b"), "seen") == {("", 0, 0, 2)}
    assert pairs_of(Trans("root"), "seen") == {("", 0, 0, 1)}
    assert pairs_of(End("b"), "seen") == {("", 0, 0), ("", 0, 2), ("", 1, 1), ("", 1, 2)}
    assert len(pairs_of(Trans("b"), "all")) == 2 * 3 * 3


def test_names_without_any_label_keep_all_pairs():
    partial = [Labels.from_columns(TOPOLOGY, {"b": ["A", "?"]}), Labels.from_columns(TOPOLOGY, {"b": ["A", "B", "?"]})]
    block, encoder, _ = fit_one(Token("b"), pairs="seen", labels=partial)
    found = {(name, *place) for name, place in block.describe(encoder)}
    assert found == {("w=a", 0), ("cap", 0), ("w=b", 0), ("w=b", 1), ("w=c", 0), ("w=c", 1)}
    block, _, _ = fit_one(Trans("b"), transitions="seen", labels=partial)
    assert block.size == 2 * 3 * 3  # what is hidden may be anything


def test_a_sequence_begins_something_even_if_no_end_is_known():
    states_only = [Labels(TOPOLOGY, y.states, np.full_like(y.ends, -1)) for y in LABELS]
    block, encoder, _ = fit_one(Init("b", observed=True), pairs="seen", labels=states_only)
    found = block.describe(encoder)
    assert [place for name, place in found if name == "w=a"] == [(0, 0)]
    assert len([place for name, place in found if name == "w=c"]) == 2 * 3  # never at a known beginning


def test_what_the_topology_forbids_has_no_weight():
    topology = Topology(
        {"b": ["A", "B"], "c": ["x", "y", "z"]},
        children={"b": {"A": ["x", "z"]}},
        successors={"c": {"z": ["y", "z"]}},
    )
    labels = [Labels.unknown(topology, n) for n in (2, 3)]
    assert fit_one(Init("b"), topology=topology, labels=labels)[0].size == 2 + 3
    assert fit_one(Trans("b"), topology=topology, labels=labels)[0].size == (4 - 1) + (9 - 1)


def test_defaults():
    topology = Topology({"a": ["only"], "b": ["A", "B"], "c": ["x", "y"]}, max_duration={"b": 4})
    expected = [Init("a"), Trans("a"), End("a"), Token("b"), Duration("b"), Init("b"), Trans("b"), End("b"), Token("c")]
    assert default_specifications(topology) == expected
    for limits in ({"min_duration": {"b": 2}}, {"max_duration": {"b": {"A": 3}}}):  # no longest duration
        open_ended = Topology({"b": ["A", "B"], "c": ["x", "y"]}, **limits)
        assert Duration("b") not in default_specifications(open_ended)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (Token("d"), "unknown level: 'd'"),
        (Init("c"), r"Init\('c'\) names the bottom, expected a parent's level"),
        (Duration("root"), "needs a longest duration, but level 'root' has none"),
    ],
)
def test_bad_specifications(spec, message):
    with pytest.raises(ValueError, match=message):
        fit_one(spec)


def test_bad_words():
    with pytest.raises(ValueError, match="Duration kind is 'normal', expected 'gamma', 'bins' or 'each'"):
        Duration("b", "normal")
    with pytest.raises(ValueError, match="pairs is 'some', expected 'seen' or 'all'"):
        fit_one(Token("b"), pairs="some")
    with pytest.raises(ValueError, match="transitions is 'few', expected 'seen' or 'all'"):
        fit_one(Token("b"), transitions="few")
    unlimited = Topology({"b": ["A", "B"], "c": ["x", "y", "z"]})
    with pytest.raises(ValueError, match=r"Token\(.*average=True.*\) needs a longest duration, but level 'b' has none"):
        fit_one(Token("b", average=True), topology=unlimited)


@given(st.lists(st.integers(0, 40), unique=True), st.lists(st.integers(0, 40)), st.sampled_from([1, 64]))
def test_names_are_found_as_in_a_dict(known, asked, step):
    """Small integers are their own hashes: multiples of 64 want the same few slots."""
    names = {step * value: k for k, value in enumerate(known)}
    hashes = np.array([step * value for value in asked], dtype=np.int64)
    assert Lookup(names).find(hashes).tolist() == [names.get(h, len(names)) for h in hashes.tolist()]
