"""Every block scores what its specification says, and its ``pull`` is the transpose of its ``add``."""

import pickle
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fitting import fit_blocks
from hscrf import (
    HSCRF,
    LBFGS,
    SGD,
    Duration,
    End,
    Init,
    Labels,
    Perceptron,
    Segment,
    Start,
    Stop,
    Token,
    Topology,
    Trans,
)
from hscrf.arrays import distinct
from hscrf.estimator.specified import default_specifications
from hscrf.features import occurrences
from hscrf.features.blocks import Block
from hscrf.features.occurrences import Occurrences
from hscrf.labels.packed import pack_labels
from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.packed import Sparse

WORDS = [[["w=a", "cap"], ["w=b"]], [["w=a"], [], ["w=c", "cap"]]]
TOPOLOGY = Topology({"b": ["A", "B"], "c": ["x", "y", "z"]}, max_duration={"b": 3})
LABELS = [
    Labels.from_columns(TOPOLOGY, {"b": ["A", "B"], "c": ["x", "y"]}),
    Labels.from_columns(TOPOLOGY, {"b": ["A", "A", "B"], "c": ["x", "z", "z"]}),
]


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
    encoder = ObservationEncoder()
    packed = encoder.fit_pack(X)
    return fit_blocks([spec], topology, encoder, packed, pack_labels(labels), pairs, transitions)[0], encoder, packed


WIDE = 200  # cells, of which a feature has few


@pytest.mark.parametrize("states", [3, 8, 12, 30, WIDE])
@pytest.mark.parametrize("valued", [False, True], ids=["names", "numbers"])
def test_divided_features_give_the_same_as_rows(states, valued):
    """Features of few and of many entries, with one state or with all of them."""
    rng = np.random.default_rng(states)
    features, steps = 12, 50
    there = rng.random((steps, features)) < np.linspace(0.02, 0.9, features)
    data = rng.normal(size=there.sum()) if valued else np.empty(0)
    indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    rows = Sparse(indptr, np.nonzero(there)[1].astype(np.int32), data, features)
    share = [0.0, 0.01, 0.02, 0.03] if states == WIDE else [0.0, 0.1, 0.6, 1.0]
    paired = rng.random((features, states)) < np.tile(share, 3)[:, None]
    pair_at = np.concatenate([[0], np.cumsum(paired.sum(axis=1))])
    cells = np.nonzero(paired)[1].astype(np.int32)
    weights, counts = rng.normal(size=cells.size), rng.normal(size=(steps, states))
    values = np.zeros(there.shape)
    values[there] = data if valued else 1.0
    table = np.zeros(paired.shape)
    table[paired] = weights
    for pulled in (counts, np.where(np.arange(steps)[:, None] == steps // 2, counts, 0.0)):
        first, second = np.zeros((2, cells.size))
        rows.pull_twice((pair_at, cells), pulled, first, 2.0, second, -0.5)
        np.testing.assert_allclose(first, 2.0 * (values.T @ pulled)[paired], rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(second, -0.5 * (values.T @ pulled)[paired], rtol=1e-11, atol=1e-12)
    spread_out = Sparse(indptr, rows.indices * 1000, data, 1000 * features).divided()  # far more features than entries
    few_of_many = replace(spread_out, names=spread_out.names // 1000, rare=spread_out.rare // 1000)
    for packed in (rows, rows.divided(), few_of_many, pickle.loads(pickle.dumps(rows.divided()))):
        scores, gradient = np.zeros((steps, states)), np.zeros(cells.size)
        packed.add_scores((pair_at, cells), weights, scores)
        packed.pull_counts((pair_at, cells), counts, gradient)
        np.testing.assert_allclose(scores, values @ table, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(gradient, (values.T @ counts)[paired], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("pairs", ["seen", "all"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", SPECIFICATIONS, ids=lambda spec: str(spec).split(" at ")[0])
def test_pull_is_the_transpose_of_add(spec, kind, pairs):
    block, encoder, packed = fit_one(spec, KINDS[kind], pairs)
    rng = np.random.default_rng(0)
    for which in ([0, 1], [1], [1, 0]):  # both sequences, the second alone, the second before the first
        part = packed.take(which)
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
        block.add(weights, part.divided(), again)
        block.pull(counts, part.divided(), gradient_again)
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
    block, encoder, packed = fit_one(spec)
    weights = np.arange(1.0, block.size + 1)
    scores = np.zeros((5, *block.shape))
    block.add(weights, packed, scores)
    table = {name: weights[k] for k, name in enumerate(block.describe(encoder))}
    steps = [(z, t) for z in WORDS for t in range(len(z))]
    for row, (z, t) in zip(scores, steps, strict=True):
        for s, score in enumerate(row):
            assert score == sum(table[name, (s,)] for name in expected(z, t))


def test_averages_are_over_the_segment():
    X = KINDS["dense"]
    average, _, packed = fit_one(Token("b", average=True), X)
    token, _, _ = fit_one(Token("b"), X)
    w = np.random.default_rng(0).normal(size=token.size)
    per_step, per_segment = np.zeros((5, 2)), np.zeros((5, 3, 2))
    token.add(w, packed, per_step)
    average.add(w, packed, per_segment)
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

    block, _, packed = fit_one(Segment("b", spy))
    asked.clear()
    for _ in range(2):  # once for each segment, however often it is used
        block.add(np.zeros(block.size), packed, np.zeros((5, 3, 2)))
    first, second = (tuple(map(tuple, z)) for z in WORDS)
    segments = [(first, 0, 1), (first, 0, 2), (first, 1, 2)]
    segments += [(second, i, j) for i in range(3) for j in range(i + 1, 4)]
    assert asked == segments


def test_one_segment_function_may_serve_two_levels():
    topology = Topology({"b": ["A", "B"], "c": ["x", "y", "z"]}, max_duration={"b": 3, "c": 2})
    labels = [Labels.from_columns(topology, {"b": y.column("b"), "c": y.column("c")}) for y in LABELS]
    encoder = ObservationEncoder()
    packed = encoder.fit_pack(WORDS)
    both = [Segment("b", length_only), Segment("c", length_only)]
    for block in fit_blocks(both, topology, encoder, packed, pack_labels(labels)):
        out = np.zeros((5, *block.shape))
        block.add(np.ones(block.size), packed, out)
        np.testing.assert_array_equal(out[2, :, 0], 1 + np.arange(block.longest))


def test_bad_segment_functions_are_named():
    def moody(z, start, stop):
        return [1.0] * (1 + (stop - start > 1))

    def broken(z, start, stop):
        return np.nan

    for function, message in ((moody, r"moody\(z, 0, 2\) is \[1.0, 1.0\], expected 1 finite"), (broken, "broken.*nan")):
        block, _, packed = fit_one(Segment("b", function))
        with pytest.raises(ValueError, match=message):
            block.add(np.zeros(block.size), packed, np.zeros((5, 3, 2)))


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


def test_names_without_any_label_keep_the_pairs_that_nesting_allows():
    nested = Topology({"b": ["A", "B"], "c": ["x", "y", "z"]}, children={"b": {"A": ["x", "y"], "B": ["z"]}})
    X = [[["w=a"], ["w=b"]], [["w=c"], ["w=d"]], [["w=d"], ["w=a"]]]
    Y = [{"b": ["A", "B"], "c": ["x", "z"]}, {"b": ["A", "B"], "c": ["?", "?"]}, {"b": ["A", "?"], "c": ["?", "?"]}]
    model = HSCRF(nested, features=[Token("c"), Start("c")]).fit(X, Y)
    table = model.weights_
    for part in ("token", "start"):
        found = table[table["part"] == part].groupby("feature")["states"].apply(set).to_dict()
        assert found == {"w=a": {"x"}, "w=b": {"z"}, "w=c": {"x", "y"}, "w=d": {"x", "y", "z"}}


def test_a_sequence_begins_something_even_if_no_end_is_known():
    states_only = [Labels(TOPOLOGY, y.states, np.full_like(y.ends, -1)) for y in LABELS]
    block, encoder, _ = fit_one(Init("b", observed=True), pairs="seen", labels=states_only)
    found = block.describe(encoder)
    assert [place for name, place in found if name == "w=a"] == [(0, 0)]
    assert len([place for name, place in found if name == "w=c"]) == 2 * 3  # never at a known beginning


PARTIAL = [
    LABELS[0],
    Labels.from_columns(TOPOLOGY, {"b": ["A", "?", "B"], "c": ["x", "z", "?"]}),
    Labels.unknown(TOPOLOGY, 1),
    Labels.from_columns(TOPOLOGY, {"b": ["B", "B"], "c": ["?", "y"]}),
    LABELS[1],
]
PARTS = [WORDS[0], WORDS[1], [["w=d", "cap"]], [["w=e"], ["w=a"]], [["w=b"], ["w=f", "cap"], []]]
RECORDED = [*SPECIFICATIONS, Token("b", only="w="), Trans("b", observed=True, without="w=", penalty=2.0)]


def frame_of(encoder, X, labels, transitions="seen"):
    frame = Occurrences(TOPOLOGY, encoder, RECORDED, transitions=transitions)
    if X:
        frame.update(encoder.pack(X), pack_labels(labels))
    return frame


def assert_same_fields(one, other):
    """All that two records or blocks hold is equal, arrays to the bit."""
    assert type(one) is type(other)
    assert vars(one).keys() == vars(other).keys()
    for name, value in vars(one).items():
        theirs = vars(other)[name]
        if isinstance(value, Block):
            assert_same_fields(value, theirs)
        elif isinstance(value, np.ndarray):
            assert value.dtype == theirs.dtype
            np.testing.assert_array_equal(value, theirs)
        else:
            assert value == theirs


@pytest.mark.parametrize("values", [[], [4], [2, 2], [5, 1, 5, 3, 1, 1], [1, 4, 9, 0, 4, 10]])
def test_distinct_values_are_those_of_numpy(values):
    given = np.array(values, dtype=np.int64)
    np.testing.assert_array_equal(distinct(given), np.unique(given))
    first, second = (np.unique(part) for part in np.array_split(given, 2))
    np.testing.assert_array_equal(occurrences.union(first, second), np.union1d(first, second))


@pytest.mark.parametrize("labels", [PARTIAL, [labels.closed() for labels in PARTIAL]], ids=["partial", "closed"])
def test_occurrences_of_five_parts_equal_those_of_one_pass(labels):
    encoder = ObservationEncoder()
    encoder.fit_pack(PARTS)
    whole, updated = frame_of(encoder, PARTS, labels), frame_of(encoder, [], [])
    for x, y in zip(PARTS, labels, strict=True):
        updated.update(encoder.pack([x]), pack_labels([y]))
    assert updated.records.keys() == whole.records.keys()
    for spec in RECORDED:
        if spec in whole.records:
            assert_same_fields(updated.records[spec], whole.records[spec])
        assert_same_fields(spec.fit(updated), spec.fit(whole))
    assert len(whole.records) == len(RECORDED) - 3  # durations need to know nothing


def test_complete_parts_and_one_without_labels_leave_every_transition():
    encoder = ObservationEncoder()
    encoder.fit_pack(PARTS)
    frame = frame_of(encoder, PARTS[:1], LABELS[:1])
    few = Trans("b").fit(frame).size
    frame.update(encoder.pack(PARTS[2:3]), pack_labels(PARTIAL[2:3]))
    assert few < Trans("b").fit(frame).size == 2 * 3 * 3


@pytest.mark.parametrize("pairs", ["seen", "all"])
@pytest.mark.parametrize("make", [Token, Start, Stop, *(partial(c, observed=True) for c in (Init, Trans, End))])
def test_features_are_chosen_by_how_their_names_begin(make, pairs):
    def weights(**choice):
        block, encoder, packed = fit_one(make("b", **choice), pairs=pairs, labels=LABELS)
        scores = np.zeros((packed.steps, *block.shape))
        block.add(np.ones(block.size), packed, scores)  # all arrays fit together
        return block.describe(encoder)

    every = weights()
    assert weights(only="w=") == [(name, place) for name, place in every if name.startswith("w=")]
    assert weights(without="w=") == [(name, place) for name, place in every if not name.startswith("w=")]
    assert weights(only="w=", without="w=a") == [(name, place) for name, place in every if name in ("w=b", "w=c")]
    assert weights(only="none") == []


def test_chosen_features_must_have_names():
    with pytest.raises(ValueError, match=r"Token\('b', only='w='\) chooses among named features, but X holds numeric"):
        fit_one(Token("b", only="w="), KINDS["dense"])
    with pytest.raises(
        ValueError, match=r"Trans\('b', without='w='\) has no features to choose from, expected observed"
    ):
        Trans("b", without="w=")


def test_specifications_read_as_they_are_written():
    for text in ("Token('b')", "Token('b', average=True)", "Trans('root', penalty=2.0, only='w', observed=True)"):
        assert repr(eval(text)) == text
    assert repr(Segment("b", length_only)).startswith("Segment('b', <function length_only")


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("solver", [SGD(epochs=4, batch=2), Perceptron(epochs=2), LBFGS(max_iter=3)], ids=repr)
def test_a_segment_is_asked_about_once_in_training(solver, n_jobs):
    asked = Counter()

    def spy(z, start, stop):
        asked[id(z), start, stop] += 1
        return float(stop - start)

    X = [list(x) for x in PARTS * 3]
    labels = [labels.closed() for labels in PARTIAL] * 3
    HSCRF(TOPOLOGY, features=[Token("b"), Segment("b", spy)], solver=solver, n_jobs=n_jobs).fit(X, labels)
    assert asked.pop((id(X[0]), 0, 1)) == 2  # to learn how many values there are, and for the table
    assert set(asked.values()) == {1}
    assert len(asked) + 1 == sum(3 * n - 3 if n > 2 else n * (n + 1) // 2 for n in map(len, X))


def test_taken_observations_have_the_rows_of_the_segment_table():
    block, encoder, packed = fit_one(Segment("b", mean_and_length))
    for which in ([0, 1], [1], [1, 0]):
        alone = encoder.pack([WORDS[n] for n in which])
        np.testing.assert_array_equal(block.table(packed.take(which)), block.table(alone))
    assert np.shares_memory(block.table(packed.take([1])), block.table(packed))
    assert not encoder.pack(WORDS).take([1]).origin  # predictions keep no table beyond their chunk


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
    rare, often = ([block(level, penalty=0.1) for block in (Init, Trans, End)] for level in "ab")
    lasting = [block("b", penalty="length") for block in (Token, Start, Stop)]
    assert default_specifications(topology) == [*rare, *lasting, Duration("b"), *often, Token("c", penalty="size")]
    semi = [Init("root"), Trans("root"), End("root"), *lasting]
    assert default_specifications(Topology({"b": ["A", "B"]}, max_duration={"b": None})) == semi
    nested = default_specifications(Topology({"b": ["A", "B"], "c": ["x", "y"]}, max_duration={"c": None}))
    assert nested[-3:] == [block("c", penalty="size") for block in (Token, Start, Stop)]
    classes = default_specifications(Topology({"b": ["A"], "c": ["x", "y"]}, root=["one", "other"]))
    assert classes[0] == Token("root", penalty="length"), "its first and last steps are those of the sequence"
    assert not any(isinstance(spec, Start | Stop) for spec in classes)
    chain = [Init("root"), Trans("root"), End("root"), Token("b")]  # penalties of CRFsuite
    assert default_specifications(Topology({"b": ["A", "B"]})) == chain
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


@pytest.mark.parametrize("chosen", [[True] * 6, [True, False] * 3])
def test_pairs_are_found_by_a_table_or_by_sorting(chosen):
    """Which feature meets which state does not depend on how it is found out."""
    encoder = ObservationEncoder()
    observations = encoder.fit_pack([[["a", "b"], ["c", "b"], ["d"]], [["e", "a"], ["f", "f"]]])
    topology = Topology({"tag": ["N", "V"]})
    labels = [Labels.from_columns(topology, {"tag": column}) for column in (["N", "V", "N"], ["V", "?"])]
    found = []
    for small in (1 << 20, -1):
        cells = occurrences.FeatureCells(topology, ("token", 1), np.arange(2), 2, np.array(chosen), largest_table=small)
        cells.update(observations, pack_labels(labels))
        found.append(cells.found.tolist())
    everything = [0, 1, 2, 3, 5, 6, 9]  # a N, a V, b N, b V, c V, d N, e V
    assert found == [[pair for pair in everything if chosen[pair // 2]]] * 2
