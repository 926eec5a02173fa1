"""Labels: the rules against enumeration, the closure's soundness, and round trips between all notations."""

import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hscrf.errors import InfeasibleError, LabelError
from hscrf.labels.labels import Labels
from hscrf.labels.packed import closed_labels
from hscrf.labels.reading import as_labels, is_segments, read_labels, read_many
from hscrf.topology import Topology

profile = settings(derandomize=True, max_examples=60, deadline=None)

UNIT = Topology(
    {"phrase": ["NP", "O"], "tag": ["N", "V", "J"]},
    children={"phrase": {"NP": ["N", "J"]}},
    successors={"phrase": {"O": ["NP"]}, "tag": {"V": ["N", "V"]}},
)
PERSISTING = Topology(
    {"phrase": ["NP", "O"], "tag": ["N", "V"]},
    children={"phrase": {"NP": ["N"]}},
    successors={"phrase": {"O": ["NP"]}, "tag": {"V": ["N"]}},
    min_duration={"phrase": {"NP": 2}},
    max_duration={"tag": {"N": 2}},
)
CLASSES = Topology({"tag": ["O", "V"]}, root=["even", "odd"], children={"root": {"odd": ["V"]}})
DEEP = Topology(
    {"field": ["a", "b"], "person": ["p", "O"], "name": ["x", "y"]},
    children={"field": {"a": ["p"]}, "person": {"p": ["x"]}},
    successors={"person": {"O": ["p"]}},
    max_duration={"name": None},
)
TOPOLOGIES = [UNIT, PERSISTING, CLASSES, DEEP]
FREE = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]}, max_duration={"phrase": 3, "tag": None})


# ------------------------------------------------------------------------------
# The twin: legal configurations derived from their definition, one segment at a time


def tilings(topology, d, start, stop, parent):
    """Every legal way to tile [start, stop) by segments of level d and below under a parent state."""

    def extend(at, last):
        if at == stop:
            yield []
            return
        for end, state in product(range(at + 1, stop + 1), range(topology.n_states[d])):
            legal = topology.children[d - 1][parent, state]
            legal &= last is None or topology.successors[d][last, state]
            legal &= topology.min_duration[d][state] <= end - at <= topology.max_duration[d][state]
            if legal:
                inner = tilings(topology, d + 1, at, end, state) if d + 1 < topology.depth else [[]]
                for below, rest in product(list(inner), list(extend(end, state))):
                    yield [(d, at, end, state), *below, *rest]

    yield from extend(start, None)


def configurations(topology, length):
    """All legal (states, ends), each (N, D, T)."""
    found = []
    for root in range(topology.n_states[0]):
        for tiling in tilings(topology, 1, 0, length, root):
            states = np.zeros((topology.depth, length), dtype=int)
            ends = np.zeros_like(states)
            for d, start, stop, state in [(0, 0, length, root), *tiling]:
                states[d, start:stop] = state
                ends[d, stop - 1] = 1
            found.append((states, ends))
    return np.array([s for s, _ in found]), np.array([e for _, e in found])


LEGAL = [(topology, *configurations(topology, length)) for topology in TOPOLOGIES for length in (1, 3)]
LEGAL.append((PERSISTING, *configurations(PERSISTING, 4)))


def agreeing(labels, states, ends):
    """Which configurations (N,) agree with partial labels."""
    fits = ((labels.states < 0) | (states == labels.states)).all(axis=(1, 2))
    fits &= ((labels.ends < 0) | (ends == labels.ends)).all(axis=(1, 2))
    for level, allowed in (labels.allowed or {}).items():
        fits &= allowed[np.arange(labels.length), states[:, labels.topology.level(level)]].all(axis=1)
    return fits


@st.composite
def complete(draw):
    """A legal complete labelling, drawn from the enumeration."""
    topology, states, ends = draw(st.sampled_from(LEGAL))
    n = draw(st.integers(0, len(states) - 1))
    return Labels(topology, states[n], ends[n])


@st.composite
def partial(draw):
    """Partial labels with sets: mostly cells of one legal configuration, sometimes spoiled."""
    topology, states, ends = draw(st.sampled_from(LEGAL))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, keep, spoil = rng.integers(len(states)), rng.uniform(), rng.choice([0, 0, 0.1])
    cells = []
    for truth, sizes in ((states[n], topology.n_states), (ends[n], (2,) * topology.depth)):
        noise = rng.integers(0, np.array(sizes)[:, None], size=truth.shape)
        told = np.where(rng.uniform(size=truth.shape) < spoil, noise, truth)
        cells.append(np.where(rng.uniform(size=truth.shape) < keep, told, -1))
    allowed = {}
    for d in np.flatnonzero(rng.uniform(size=topology.depth) < 0.5):
        sets = rng.uniform(size=(truth.shape[1], topology.n_states[d])) < 0.4
        sets[np.arange(len(sets)), states[n, d]] |= rng.uniform() > spoil
        allowed[topology.levels[d]] = sets
    return Labels(topology, *cells, allowed=allowed or None), states, ends


# ------------------------------------------------------------------------------
# Rules and closure against the twin


@pytest.mark.parametrize(("topology", "states", "ends"), LEGAL)
def test_check_accepts_every_legal_configuration(topology, states, ends):
    for x, e in zip(states[:400], ends[:400], strict=True):
        Labels(topology, x, e).check()


@pytest.mark.parametrize("topology", [UNIT, PERSISTING, CLASSES])
def test_check_refuses_every_other_configuration(topology):
    legal = {(x.tobytes(), e.tobytes()) for x, e in zip(*configurations(topology, 2), strict=True)}
    accepted = set()
    spaces = [product(range(size), repeat=2) for size in topology.n_states]
    for x, e in product(product(*spaces), product(product((0, 1), repeat=2), repeat=topology.depth)):
        labels = Labels(topology, x, e)
        try:
            labels.check()
        except InfeasibleError:
            continue
        accepted.add((labels.states.astype(int).tobytes(), labels.ends.astype(int).tobytes()))
    assert accepted == legal


@profile
@given(partial())
def test_closure_loses_no_legal_configuration(example):
    labels, states, ends = example
    fits = agreeing(labels, states, ends)
    try:
        closed = labels.closed()
    except InfeasibleError:
        assert not fits.any()
        return
    np.testing.assert_array_equal(agreeing(closed, states, ends), fits)


@profile
@given(partial())
def test_closure_adds_to_what_is_known_and_is_idempotent(example):
    labels, states, ends = example
    if not agreeing(labels, states, ends).any():
        return
    closed = labels.closed()
    assert ((labels.states < 0) | (closed.states == labels.states)).all()
    assert ((labels.ends < 0) | (closed.ends == labels.ends)).all()
    assert list(closed.allowed) == list(labels.topology.levels)
    assert closed.closed() == closed
    for d, allowed in enumerate(closed.allowed.values()):
        assert allowed.shape == (labels.length, labels.topology.n_states[d])
        single = allowed.sum(axis=1) == 1
        np.testing.assert_array_equal(closed.states[d], np.where(single, allowed.argmax(axis=1), -1))


@profile
@given(complete())
def test_closure_of_complete_labels_changes_nothing(labels):
    closed = labels.closed()
    np.testing.assert_array_equal(closed.states, labels.states)
    np.testing.assert_array_equal(closed.ends, labels.ends)


def test_closure_knows_the_rules_of_ends():
    unknown = np.full((3, 4), -1)
    ends = unknown.copy()
    ends[1, 1], ends[2, 0] = 1, 0
    closed = Labels(FREE, unknown, ends).closed()
    assert closed.ends.tolist() == [[0, 0, 0, 1], [0, 1, -1, 1], [0, 1, -1, 1]]
    assert Labels.unknown(UNIT, 2).closed().ends.tolist() == [[0, 1], [-1, 1], [1, 1]]


def test_closure_carries_states_along_segments_and_between_levels():
    states = np.full((3, 4), -1)
    states[2, 0], states[1, 3] = UNIT.state("tag", "V"), UNIT.state("phrase", "NP")
    ends = np.full((3, 4), -1)
    ends[1, :2] = 0
    closed = Labels(UNIT, states, ends).closed()
    assert closed.column("phrase") == ["O", "O", "O", "NP"]
    assert closed.ends[1].tolist() == [0, 0, 1, 1]
    assert closed.allowed["tag"][3].tolist() == [True, False, True]


def test_closure_keeps_sets_and_score():
    sets = {"tag": np.array([[True, True, False], [False, True, True]])}
    closed = Labels(UNIT, *[np.full((3, 2), -1)] * 2, sets, score=2.0).closed()
    np.testing.assert_array_equal(closed.allowed["tag"], sets["tag"])
    assert closed.score == 2.0


def test_labels_closed_together_are_those_closed_one_by_one():
    sets = {"tag": np.array([[True, True, False], [False, True, True]])}
    some = [
        Labels(UNIT, cells(UNIT, phrase={0: 0}, tag={2: 1}), cells(UNIT)),
        Labels(UNIT, *[np.full((3, 2), -1)] * 2, sets, score=2.0),
        Labels(UNIT, cells(UNIT, 4, tag={1: 2}), cells(UNIT, 4, phrase={0: 0})),
    ]
    for one, other in zip(closed_labels(some, range(3)), some, strict=True):
        expected = other.closed()
        assert one == expected
        assert one.score == expected.score
        assert not one.states.flags.writeable
        for level, allowed in one.allowed.items():
            np.testing.assert_array_equal(allowed, expected.allowed[level])
    wrong = Labels(UNIT, cells(UNIT, phrase={1: 0}, tag={1: 1}), cells(UNIT))
    with pytest.raises(InfeasibleError, match="is not a child of") as caught:
        closed_labels([*some, wrong], [5, 6, 7, 8])
    assert caught.value.sequence == 8


# ------------------------------------------------------------------------------
# Round trips


@profile
@given(complete())
def test_round_trip_through_segments(labels):
    segments = {level: labels.segments(level) for level in labels.topology.levels}
    assert Labels.from_segments(labels.topology, segments) == labels
    shuffled = {level: listed[::-1] for level, listed in segments.items()}
    assert Labels.from_segments(labels.topology, shuffled) == labels


@profile
@given(complete(), st.sampled_from(["bio", "bioes"]))
def test_round_trip_through_columns(labels, scheme):
    columns = {level: labels.column(level, scheme) for level in labels.topology.levels[1:]}
    columns["root"] = labels.column("root")[0]
    if labels.topology is not CLASSES:  # there O may follow O, which these schemes cannot tell
        assert Labels.from_columns(labels.topology, columns, scheme) == labels
    plain = {level: labels.column(level) for level in labels.topology.levels}
    again = Labels.from_columns(labels.topology, plain, boundaries="unknown")
    np.testing.assert_array_equal(again.states, labels.states)
    assert ((again.ends < 0) | (again.ends == labels.ends)).all()


@profile
@given(complete())
def test_round_trip_through_trees(labels):
    assert Labels.from_tree(labels.topology, labels.tree()) == labels


@profile
@given(partial())
def test_round_trip_through_pickle(example):
    labels = replace(example[0], score=1.5)
    again = pickle.loads(pickle.dumps(labels))
    assert again == labels
    assert again.score == 1.5
    assert not again.states.flags.writeable


# ------------------------------------------------------------------------------
# Notations


def test_segments_leave_gaps_unknown():
    labels = Labels.from_segments(UNIT, {"phrase": [(1, 3, "NP")]}, length=5)
    assert labels.states[1].tolist() == [-1, 0, 0, -1, -1]
    assert labels.ends[1].tolist() == [1, 0, 1, -1, -1]
    assert (labels.states[2] == -1).all()
    assert labels.states[0].tolist() == [0] * 5
    assert labels.ends[0].tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("root", ["odd", [(0, 2, "odd")]])
def test_root_class_by_name_or_as_a_segment(root):
    labels = Labels.from_segments(CLASSES, {"tag": [(0, 1, "V"), (1, 2, "V")], "root": root})
    assert labels.column("root") == ["odd", "odd"]
    assert labels.is_complete
    assert Labels.from_segments(CLASSES, {"tag": [(0, 1, "V")]}).column("root") == ["?"]


def test_root_column_as_one_name_or_as_a_list():
    one = Labels.from_columns(CLASSES, {"root": "odd", "tag": ["V", "V"]})
    assert Labels.from_columns(CLASSES, {"root": ["odd", "odd"], "tag": ["V", "V"]}) == one
    assert one.tree() == ("odd", ["V", "V"])
    assert Labels.from_columns(CLASSES, {"tag": ["V"]}).states[0].tolist() == [-1]


def test_plain_columns_join_runs_or_leave_them_open():
    column = ["NP", "NP", "?", "NP", "O", None]
    runs = Labels.from_columns(UNIT, {"phrase": column})
    assert runs.ends[1].tolist() == [0, -1, -1, 1, -1, 1]
    assert runs.column("phrase") == ["NP", "NP", "?", "NP", "O", "?"]
    assert runs.ends[2].tolist() == [1] * 6
    open_ = Labels.from_columns(UNIT, {"phrase": column}, boundaries="unknown")
    assert open_.ends[1].tolist() == [-1, -1, -1, 1, -1, 1]


@pytest.mark.parametrize(
    ("scheme", "column", "ends"),
    [
        ("bio", "B-NP I-NP B-NP O O I-NP", [0, 1, 1, 0, 1, 1]),  # an ill-formed I-NP starts a segment
        ("bio", "B-NP ? I-NP ? B-NP ?", [-1, -1, -1, 1, -1, 1]),
        ("bioes", "B-NP E-NP S-NP O O I-NP", [0, 1, 1, 0, 1, 1]),
        ("bioes", "B-NP L-NP U-NP O O I-NP", [0, 1, 1, 0, 1, 1]),
        ("bioes", "U-NP I-NP L-NP I-NP O O", [1, 0, 1, 1, 0, 1]),
        ("bioes", "I-NP E-NP I-NP ? S-NP ?", [0, 1, -1, 1, 1, 1]),
    ],
)
def test_prefixes_tell_where_segments_start_and_end(scheme, column, ends):
    labels = Labels.from_columns(FREE, {"phrase": column.split()}, scheme)
    assert labels.ends[1].tolist() == ends


def test_levels_are_cut_where_the_level_above_ends():
    columns = {"phrase": ["B-NP", "B-NP", "O"], "tag": ["N", "N", "N"]}
    labels = Labels.from_columns(FREE, columns, scheme={"phrase": "bio"})
    assert labels.ends[2].tolist() == [1, 1, 1]
    columns = {"field": ["a", "b", "b"], "name": ["x", "x", "x"]}
    assert Labels.from_columns(DEEP, columns).ends[1:].tolist() == [[1, 0, 1], [1, -1, 1], [1, -2, 1]]


def test_prefixes_may_not_go_on_where_the_level_above_ends():
    columns = {"field": ["a", "b", "b"], "name": ["B-x", "I-x", "B-x"]}
    with pytest.raises(InfeasibleError, match="level 'person' ends at 0, but 'name' goes on there"):
        Labels.from_columns(DEEP, columns, scheme={"name": "bio"})
    columns["name"] = ["O", "O", "B-x"]
    loose = Topology({"field": ["a", "b"], "name": ["O", "x"]}, max_duration={"name": None})
    assert Labels.from_columns(loose, columns, scheme={"name": "bio"}).ends[2].tolist() == [1, 1, 1]


def test_nothing_in_a_table_of_pandas_is_unknown():
    assert Labels.from_columns(UNIT, {"tag": ["N", float("nan")]}).column("tag") == ["N", "?"]


def test_a_unit_bottom_may_be_plain_under_any_scheme():
    labels = Labels.from_columns(UNIT, {"phrase": ["B-NP", "I-NP"], "tag": ["J", "N"]}, scheme="bio")
    assert labels.tree() == [("NP", ["J", "N"])]
    assert labels.column("tag", "bioes") == ["S-J", "S-N"]


def test_columns_in_every_scheme():
    segments = {"phrase": [(0, 3, "NP"), (3, 4, "NP"), (4, 6, "O")]}
    labels = Labels.from_segments(FREE, segments)
    assert labels.column("phrase") == ["NP"] * 4 + ["O"] * 2
    assert labels.column("phrase", "bio") == ["B-NP", "I-NP", "I-NP", "B-NP", "O", "O"]
    assert labels.column("phrase", "bioes") == ["B-NP", "I-NP", "E-NP", "S-NP", "O", "O"]
    assert labels.column("tag", "bio") == ["?"] * 6


def test_trees_name_bottom_durations():
    labels = Labels.from_tree(FREE, [("NP", [("N", 2), "V"]), ("O", [("N", 1)])])
    assert labels.segments("tag") == [(0, 2, "N"), (2, 3, "V"), (3, 4, "N")]
    assert labels.tree() == [("NP", [("N", 2), "V"]), ("O", ["N"])]


def test_segment_arrays_are_half_open():
    labels = Labels.from_tree(FREE, [("NP", [("N", 2), "V"]), ("O", ["N"])])
    start, stop, state = labels.segment_arrays(1)
    assert (start.tolist(), stop.tolist(), state.tolist()) == ([0, 3], [3, 4], [0, 1])


# ------------------------------------------------------------------------------
# A small frozen object


def test_arrays_are_copied_and_sealed():
    states, ends = np.zeros((3, 2), dtype=int), np.ones((3, 2), dtype=int)
    sets = np.ones((2, 3), dtype=bool)
    labels = Labels(UNIT, states, ends, {"tag": sets})
    states[:], sets[:] = 1, False
    assert (labels.states == 0).all()
    assert labels.allowed["tag"].all()
    assert (labels.states.dtype, labels.ends.dtype) == (np.int32, np.int8)
    for array in (labels.states, labels.ends, labels.allowed["tag"]):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_equality_is_by_content():
    one = Labels.unknown(UNIT, 2)
    sets = {"tag": np.ones((2, 3), dtype=bool)}
    assert one == replace(one, score=3.0)
    assert hash(one) == hash(Labels.unknown(UNIT, 2))
    assert one != Labels.unknown(UNIT, 3)
    assert one != Labels(UNIT, one.states, one.ends, sets)
    assert one != Labels.from_segments(UNIT, {}, length=2)
    assert one != "labels"


def test_length_completeness_and_repr():
    labels = Labels.from_tree(UNIT, [("NP", ["N", "J"])])
    assert len(labels) == labels.length == 2
    assert labels.is_complete
    assert not Labels.unknown(UNIT, 2).is_complete
    assert repr(replace(labels, score=-1.5)) == "Labels(2 steps, root > phrase > tag, complete, score -1.5)"


# ------------------------------------------------------------------------------
# Errors


def cells(topology, length=3, **known):
    """States or ends with some cells known, as in ``phrase={2: 1}``."""
    array = np.full((topology.depth, length), -1)
    for level, values in known.items():
        for t, value in values.items():
            array[topology.level(level), t] = value
    return array


BLANK = cells(UNIT)


@pytest.mark.parametrize(
    ("topology", "states", "ends", "message"),
    [
        (UNIT, BLANK, cells(UNIT, phrase={2: 0}), "level 'phrase' goes on at 2, but the sequence ends there"),
        (UNIT, BLANK, cells(UNIT, root={1: 1}), "level 'root' ends at 1, but the sequence ends at 2"),
        (FREE, BLANK, cells(FREE, phrase={1: 1}, tag={1: 0}), "'phrase' ends at 1, but 'tag' goes on there"),
        (UNIT, BLANK, cells(UNIT, tag={1: 0}), "level 'tag' goes on at 1, but its segments have length 1"),
        (
            UNIT,
            cells(UNIT, phrase={0: 0, 1: 1}),
            cells(UNIT, phrase={0: 0}),
            "level 'phrase' goes on at 0, but changes from 'NP' to 'O' at 1",
        ),
        (UNIT, cells(UNIT, phrase={1: 0}, tag={1: 1}), BLANK, "tag 'V' at 1 is not a child of phrase 'NP'"),
        (
            UNIT,
            cells(UNIT, phrase={0: 1, 1: 1}),
            cells(UNIT, root={0: 0}, phrase={0: 1}),
            "level 'phrase': 'O' at 1 may not follow 'O'",
        ),
        (
            PERSISTING,
            cells(PERSISTING, phrase={1: 0}),
            cells(PERSISTING, phrase={0: 1, 1: 1}),
            "phrase 'NP' from 1 to 2 lasts 1 step; expected at least 2",
        ),
        (
            PERSISTING,
            cells(PERSISTING, tag={1: 0}),
            cells(PERSISTING, tag={0: 0, 1: 0, 2: 1}),
            "tag 'N' from 0 to 3 lasts 3 steps; expected at most 2",
        ),
    ],
)
def test_broken_rules_are_named(topology, states, ends, message):
    labels = Labels(topology, states, ends)
    for method in (labels.check, labels.closed):
        with pytest.raises(InfeasibleError, match=message):
            method()


def test_ends_nest_across_an_unknown_level():
    labels = Labels(DEEP, cells(DEEP), cells(DEEP, field={1: 1}, name={1: 0}))
    with pytest.raises(InfeasibleError, match="level 'field' ends at 1, but 'name' goes on there"):
        labels.check()


def test_allowed_sets_must_hold_the_state():
    sets = np.ones((3, 2), dtype=bool)
    sets[1, 0] = False
    with pytest.raises(InfeasibleError, match="level 'phrase' is 'NP' at 1, which is not allowed"):
        Labels(UNIT, cells(UNIT, phrase={1: 0}), BLANK, {"phrase": sets}).check()
    sets[2] = False
    with pytest.raises(InfeasibleError, match="level 'phrase' is allowed no state at 2"):
        Labels(UNIT, BLANK, BLANK, {"phrase": sets}).check()


def test_closure_names_what_was_asked():
    going_on = cells(UNIT, phrase={0: 0, 1: 0})
    with pytest.raises(
        InfeasibleError,
        match="no state of level 'phrase' is possible from 0 to 3, where it goes on; "
        "the labels are phrase 'NP' at 0, tag 'V' at 2",
    ):
        Labels(UNIT, cells(UNIT, phrase={0: 0}, tag={2: 1}), going_on).closed()
    sets = np.array([[False, True]] * 3)
    with pytest.raises(InfeasibleError, match=r"'root' is possible from 0 to 3.*the labels are root 'odd' at 0, tag"):
        Labels(CLASSES, cells(CLASSES, root={0: 1}), cells(CLASSES), {"tag": np.array([[True, False]] * 3)}).closed()
    assert Labels(CLASSES, cells(CLASSES, root={0: 1}), cells(CLASSES), {"tag": sets}).closed().is_complete


def test_closure_finds_what_follows_only_together():
    states = cells(UNIT, tag={0: 1, 1: 1})  # V under O only, O may not follow O
    with pytest.raises(InfeasibleError, match="level 'phrase': 'O' at 1 may not follow 'O'"):
        Labels(UNIT, states, cells(UNIT, phrase={0: 1})).closed()


@pytest.mark.parametrize(
    ("states", "ends", "allowed", "message"),
    [
        (np.zeros((2, 3), int), BLANK, None, r"states has shape \(2, 3\); expected \(3, T\)"),
        (BLANK, np.zeros(3, int), None, r"ends has shape \(3,\)"),
        (BLANK, np.zeros((3, 2), int), None, "states has 3 steps but ends has 2"),
        (np.zeros((3, 0), int), np.zeros((3, 0), int), None, "empty sequence"),
        (np.zeros((3, 3)), BLANK, None, "states has dtype float64; expected integers"),
        (cells(UNIT, tag={1: 3}), BLANK, None, "states of level 'tag' is 3 at 1; expected -1 to 2"),
        (cells(UNIT, tag={1: -2}), BLANK, None, "states of level 'tag' is -2 at 1"),
        (BLANK, cells(UNIT, phrase={0: 256}), None, "ends of level 'phrase' is 256 at 0; expected -2 to 1"),
        (
            BLANK,
            BLANK,
            {"tag": np.ones((3, 2), bool)},
            r"allowed\['tag'\] is bool \(3, 2\); expected bool \(3, 3\)",
        ),
        (BLANK, BLANK, {"tag": np.ones((3, 3), int)}, r"allowed\['tag'\] is int"),
        (BLANK, BLANK, {"tags": np.ones((3, 3), bool)}, "unknown level: 'tags'"),
    ],
)
def test_arrays_are_checked_at_the_border(states, ends, allowed, message):
    with pytest.raises(ValueError, match=message):
        Labels(UNIT, states, ends, allowed)


@pytest.mark.parametrize(
    ("segments", "length", "message"),
    [
        ({}, None, "empty sequence"),
        ({"phrase": [(0, 2, "NP")]}, 0, "empty sequence"),
        (
            {"phrase": [(0, 2, "NP"), (1, 3, "O")]},
            None,
            r"'phrase': segment \(1, 3, 'O'\) overlaps \(0, 2, 'NP'\)",
        ),
        ({"phrase": [(2, 2, "NP")]}, 3, r"'phrase': segment \(2, 2, 'NP'\); expected 0 <= start < stop"),
        ({"phrase": [(-1, 2, "NP")]}, 3, r"segment \(-1, 2, 'NP'\)"),
        ({"phrase": [(0, 4, "NP")]}, 3, r"segment \(0, 4, 'NP'\); expected stop <= length 3"),
        ({"phrase": [(0, 2)]}, 3, r"'phrase': \(0, 2\) is not a segment; expected \(start, stop, state\)"),
        ({"phrase": [(0.5, 2, "NP")]}, 3, "is not a segment"),
        ({"phrase": "NP"}, 3, "'N' is not a segment"),
        ({"phrase": [(0, 2, "PP")]}, None, "unknown state of level 'phrase': 'PP'"),
        ({"chunk": []}, 3, "unknown level: 'chunk'"),
        ({"tag": [(0, 2, "N")]}, None, "'tag' goes on at 0, but its segments have length 1"),
        ({"root": [(0, 2, "root")]}, 3, "'root' ends at 1, but the sequence ends at 2"),
    ],
)
def test_bad_segments_are_named(segments, length, message):
    with pytest.raises(ValueError, match=message):
        Labels.from_segments(UNIT, segments, length)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({}, {}, "columns names no level below the root"),
        ({"root": "root"}, {}, "columns names no level below the root"),
        ({"tag": []}, {}, "empty sequence"),
        ({"tag": "NVN"}, {}, "column 'tag' is the string 'NVN'; expected a list"),
        ({"phrase": ["NP"], "tag": ["N", "V"]}, {}, "columns differ in length: 'phrase' has 1, 'tag' has 2"),
        ({"tag": ["X"]}, {}, "unknown state of level 'tag': 'X'"),
        (
            {"phrase": ["NP"]},
            {"scheme": "bio"},
            "column 'phrase' has the label 'NP'; expected B-x, I-x, O or",
        ),
        ({"phrase": ["E-NP"]}, {"scheme": "bio"}, "has the label 'E-NP'"),
        ({"phrase": ["-NP"]}, {"scheme": "bioes"}, "has the label '-NP'"),
        ({"phrase": ["NP"]}, {"scheme": "iob"}, "scheme is 'iob'; expected 'plain', 'bio' or 'bioes'"),
        ({"phrase": ["NP"]}, {"scheme": {"chunk": "bio"}}, "unknown level: 'chunk'"),
        ({"phrase": ["NP"]}, {"boundaries": "known"}, "boundaries is 'known'; expected 'runs', 'fixed' or 'unknown'"),
        ({"phrase": ["NP"], "tag": ["V"]}, {}, "tag 'V' at 0 is not a child of phrase 'NP'"),
    ],
)
def test_bad_columns_are_named(columns, options, message):
    with pytest.raises(ValueError, match=message):
        Labels.from_columns(UNIT, columns, **options)


def test_root_columns_do_not_change():
    with pytest.raises(InfeasibleError, match="'root' goes on at 0, but changes from 'odd' to 'even' at 1"):
        Labels.from_columns(CLASSES, {"root": ["odd", "even"], "tag": ["V", "V"]})


@pytest.mark.parametrize(
    ("topology", "tree", "message"),
    [
        (UNIT, [], r"tree has \[\] at level 'phrase'; expected a list of nodes"),
        (UNIT, [("NP", [])], r"tree has \[\] at level 'tag'"),
        (UNIT, ["NP"], r"node 'NP' at level 'phrase'; expected \(state, children\)"),
        (UNIT, [("NP", [("N", 1, 2)])], r"at level 'tag'; expected \(state, duration\)"),
        (UNIT, [("NP", [("N", 0)])], "tree gives tag 'N' the duration 0; expected a positive integer"),
        (UNIT, [("NP", [("N", 2)])], "'tag' goes on at 0, but its segments have length 1"),
        (UNIT, [("NP", "N")], "tree has 'N' at level 'tag'; expected a list of nodes"),
        (CLASSES, ["V"], "at level 'root'; expected .state, children"),
    ],
)
def test_bad_trees_are_named(topology, tree, message):
    with pytest.raises(ValueError, match=message):
        Labels.from_tree(topology, tree)


def test_views_need_what_they_show():
    labels = Labels.from_columns(UNIT, {"phrase": ["NP", "?", "NP"]})
    with pytest.raises(ValueError, match="level 'phrase' is unknown at 0; expected every state and end"):
        labels.segments("phrase")
    with pytest.raises(ValueError, match="level 'tag' is unknown at 0"):
        labels.tree()
    with pytest.raises(ValueError, match=r"level 'phrase' has an unknown border at 2; .* known ends for 'bio'"):
        labels.column("phrase", "bio")
    with pytest.raises(ValueError, match=r"has an unknown border at 0; .* known ends for 'bioes'"):
        labels.column("phrase", "bioes")
    with pytest.raises(ValueError, match="scheme is 'iob'"):
        labels.column("phrase", "iob")


def test_a_plain_column_is_cut_where_segments_above_it_end():
    topology = Topology({"phrase": ["NP", "VP"], "tag": ["N", "V"]}, max_duration={"tag": None})
    given = {"phrase": [(0, 2, "NP"), (2, 4, "VP")], "tag": ["N", "N", "N", "V"]}
    labels = read_labels(topology, given, "plain", 4)
    assert labels.segments("tag") == [(0, 2, "N"), (2, 3, "N"), (3, 4, "V")]
    with pytest.raises(InfeasibleError, match=r"level 'phrase' ends at 1, but 'tag' goes on there"):
        read_labels(topology, {**given, "tag": ["B-N", "I-N", "I-N", "B-V"]}, {"tag": "bio"}, 4)
    deeper = Topology({"phrase": ["NP", "VP"], "part": ["m"], "tag": ["N", "V"]}, max_duration={"tag": None})
    assert read_labels(deeper, given, "plain", 4).ends[3].tolist() == [-2, 1, 1, 1]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([(0, 2, "NP")], True),
        ([[0, 2, "NP"]], True),
        (((0, 2, "NP"),), True),
        (["NP", "VP"], False),
        ([None], False),
        (np.array(["NP"]), False),
        ("NP", False),
        ("", False),
        ([], True),
        ((), True),
    ],
)
def test_what_segments_are(column, expected):
    assert is_segments(column) is expected


def test_no_segments_say_nothing_of_their_level():
    for columns in ({"phrase": [], "tag": ["N", "V"]}, {"phrase": [], "tag": [(0, 1, "N"), (1, 2, "V")]}):
        labels = as_labels(columns, 0, 2, UNIT, "plain")
        assert labels.column("phrase") == ["?", "?"]
        assert labels.column("tag") == ["N", "V"]
    for columns in ({"phrase": [], "tag": []}, {"tag": []}):
        with pytest.raises(LabelError, match=r"^Y\[3\]: the labels of all levels are empty"):
            as_labels(columns, 3, 2, UNIT, "plain")
    assert as_labels({}, 0, 2, UNIT, "plain") == Labels.from_segments(UNIT, {}, 2)


def test_segments_and_the_class_of_the_root():
    labels = read_labels(CLASSES, {"root": "odd", "tag": [(0, 1, "V")]}, "plain", 2)
    assert labels.column("root") == ["odd", "odd"]
    assert labels.column("tag") == ["V", "?"]
    assert read_labels(CLASSES, {"root": "odd"}, "plain", 2).column("root") == ["odd", "odd"]


COLUMNS = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["B-x", "I-x", "B-y", "I-y", "O", "?"]), st.sampled_from(["a", "b", "O", None]))
    ),
    min_size=1,
    max_size=4,
)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(
    rows=COLUMNS, levels=st.sampled_from([("top", "low"), ("low", "top"), ("low",), ("top",)]), lasting=st.booleans()
)
def test_many_sequences_are_read_as_one_by_one(rows, levels, lasting):
    """Whatever the columns, the same labels or the same error."""
    topology = Topology({"top": ["x", "y", "O"], "low": ["a", "b", "O"]}, max_duration={"low": 2} if lasting else None)
    Y = [{level: [row[level == "low"] for row in y] for level in levels} for y in rows]
    lengths = [max(len(y), 1) for y in rows]
    scheme = {"top": "bio"}

    def outcome(read):
        try:
            return [(y.states.tolist(), y.ends.tolist()) for y in read()]
        except ValueError as error:
            return str(error)

    one_by_one = outcome(lambda: [as_labels(y, n + 5, lengths[n], topology, scheme) for n, y in enumerate(Y)])
    assert outcome(lambda: read_many(Y, lengths, topology, scheme, offset=5)) == one_by_one


def test_columns_are_read_at_once_and_errors_name_the_step():
    topology = Topology({"tag": ["N", "V"]})
    first, second = read_many([["N", "V"], ["V"]], [2, 1], topology, "plain")
    assert first.states.base is second.states.base  # parts of one array
    with pytest.raises(LabelError, match=r"Y\[1\].*'Q'") as caught:
        read_many([["N", "V"], ["V", "Q"]], [2, 2], topology, "plain")
    assert (caught.value.sequence, caught.value.step) == (1, 1)
