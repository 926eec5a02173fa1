"""The topology that labels need: parts of the data, merged in any order and grouping, equal one pass."""

import copy
import pickle
from collections import Counter
from functools import reduce
from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hscrf.errors import InfeasibleError, LabelError
from hscrf.labels.induction import LabelStatistics, encode_labels, loose_topology
from hscrf.labels.labels import Labels
from hscrf.labels.reading import over
from hscrf.topology import Topology

profile = settings(derandomize=True, max_examples=40, deadline=None)
PHRASES, TAGS = ["AP", "NP", "VP"], ["D", "J", "N", "V"]


# ------------------------------------------------------------------------------
# Data of every notation


def segments_of(rng, length, names):
    """Segments that tile a sequence."""
    cuts = [0, *np.flatnonzero(rng.uniform(size=length - 1) < 0.5) + 1, length]
    return [(int(i), int(j), str(rng.choice(names))) for i, j in pairwise(cuts)]


def column_of(segments, scheme):
    tags = []
    for start, stop, name in segments:
        first, rest = ("", "") if scheme == "plain" else ("B-", "I-")
        tags += [first + name] + [rest + name] * (stop - start - 1)
    return tags


def masked(rng, column, missing):
    return ["?" if rng.uniform() < missing else tag for tag in column]


def draw_sequence(rng, scheme, missing, segmented, classes):
    """Labels of one sequence as a dict, and its length."""
    length = int(rng.integers(1, 6))
    phrases = segments_of(rng, length, rng.choice(PHRASES, size=2))
    tags = [(t, t + 1, str(rng.choice(TAGS))) for t in range(length)]
    y = {}
    if rng.uniform() < segmented:
        y["phrase"] = [segment for segment in phrases if rng.uniform() >= missing]
    else:
        y["phrase"] = masked(rng, column_of(phrases, scheme), missing)
    if rng.uniform() < segmented / 3:
        y["tag"] = [segment for segment in tags if rng.uniform() >= missing]
    else:
        y["tag"] = masked(rng, column_of(tags, "plain"), missing)
    for level in ("phrase", "tag"):
        if rng.uniform() < missing / 2:
            del y[level]
    if y and not any(map(len, y.values())):
        y["tag"] = ["?"] * length
    if classes and rng.uniform() < 0.8:
        name = str(rng.choice(classes))
        y["root"] = name if rng.uniform() < 0.5 else masked(rng, [name] * length, missing)
    return y, length


@st.composite
def data(draw):
    """Arguments of LabelStatistics, labels, lengths."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scheme = {"phrase": draw(st.sampled_from(["plain", "bio"]))}
    limited = draw(st.sampled_from([(), ("phrase",), ("tag",), ("phrase", "tag")]))
    missing, segmented = draw(st.sampled_from([0, 0, 0.1, 0.5])), draw(st.sampled_from([0, 0, 0.3]))
    classes = draw(st.sampled_from([[], [], ["odd"], ["odd", "even"], ["root"], ["root", "odd"]]))
    sequences = draw(st.one_of(st.integers(1, 12), st.integers(30, 60)))
    drawn = [draw_sequence(rng, scheme["phrase"], missing, segmented, classes) for _ in range(sequences)]
    frame = {"given": None, "scheme": scheme, "limited": limited, "levels": ("phrase", "tag")}
    frame["children"] = draw(st.sampled_from(["auto", "auto", "seen", "all"]))
    return frame, [y for y, _ in drawn], [length for _, length in drawn]


def noted(frame, Y, lengths, offset=0):
    statistics = LabelStatistics(**frame)
    return statistics, statistics.update(Y, lengths, offset)


def parts_of(frame, Y, lengths, cuts):
    """Statistics and labels of each part on its own."""
    bounds = [0, *sorted(cuts), len(Y)]
    return [noted(frame, Y[a:b], lengths[a:b], a) for a, b in pairwise(bounds)]


def merged(statistics):
    return reduce(LabelStatistics.merge, map(copy.deepcopy, statistics))


def outcome(statistics):
    """The topology, or why there is none."""
    try:
        return statistics.topology()
    except ValueError as error:
        return str(error)


# ------------------------------------------------------------------------------
# Parts and the whole


@profile
@given(data(), st.data())
def test_five_merged_parts_equal_one_pass(example, choice):
    frame, Y, lengths = example
    one, _ = noted(frame, Y, lengths)
    cuts = choice.draw(st.lists(st.integers(0, len(Y)), min_size=4, max_size=4))
    parts = [statistics for statistics, _ in parts_of(frame, Y, lengths, cuts)]
    for order in (parts, parts[::-1], choice.draw(st.permutations(parts))):
        assert vars(merged(order)) == vars(one)
    running, bounds = LabelStatistics(**frame), [0, *sorted(cuts), len(Y)]
    for a, b in reversed(list(pairwise(bounds))):
        running.update(Y[a:b], lengths[a:b], a)
    assert vars(running) == vars(one)
    assert outcome(merged(parts)) == outcome(one)


@profile
@given(data(), st.data())
def test_merging_is_associative_and_pickles(example, choice):
    frame, Y, lengths = example
    cuts = choice.draw(st.lists(st.integers(0, len(Y)), min_size=2, max_size=2))
    a, b, c = (pickle.loads(pickle.dumps(part)) for part, _ in parts_of(frame, Y, lengths, cuts))
    right = copy.deepcopy(a).merge(copy.deepcopy(b).merge(c))
    assert copy.deepcopy(a).merge(b).merge(c) == right
    assert vars(c) == vars(pickle.loads(pickle.dumps(c)))


@profile
@given(data(), st.data())
def test_labels_of_parts_over_the_whole_equal_labels_read_at_once(example, choice):
    frame, Y, lengths = example
    cuts = choice.draw(st.lists(st.integers(0, len(Y)), min_size=4, max_size=4))
    parts = parts_of(frame, Y, lengths, cuts)
    topology = outcome(merged(statistics for statistics, _ in parts))
    if isinstance(topology, str):
        return
    at_once = read_at_once(frame, Y, lengths, topology)
    assert [y for _, labels in parts for y in over(labels, topology)] == at_once
    running = LabelStatistics(**frame)
    bounds = [0, *sorted(cuts), len(Y)]
    labels = [running.update(Y[a:b], lengths[a:b], a) for a, b in pairwise(bounds)]
    assert running.topology() == topology
    assert [y for part in labels for y in over(part, topology)] == at_once


def read_at_once(frame, Y, lengths, topology):
    """Labels read over the states of all the data, then put over a topology with the same states."""
    arguments = topology.to_dict()
    persists = frame["scheme"].get("tag", "plain") != "plain" or "tag" in frame["limited"]
    persists |= any(len(y.get("tag", ())) and isinstance(y["tag"][0], tuple) for y in Y)
    loose = Topology(arguments["levels"], root=arguments["root"], max_duration={"tag": None} if persists else None)
    given = LabelStatistics(loose, frame["scheme"]).update(Y, lengths)
    return [Labels(topology, y.states, y.ends) for y in given]


# ------------------------------------------------------------------------------
# The topology, derived from its definition


@profile
@given(data())
def test_the_topology_holds_what_the_labels_show(example):
    frame, Y, lengths = example
    statistics, _ = noted(frame, Y, lengths)
    topology = outcome(statistics)
    if isinstance(topology, str):
        assert "has no known label" in topology
        return
    labels = read_at_once(frame, Y, lengths, topology)
    names = [{name for y in labels for name in y.column(level)} - {"?"} for level in topology.levels]
    assert [list(states) for states in topology.states[1:]] == [sorted(found) for found in names[1:]]
    for d in range(topology.depth - 1):
        columns = [list(zip(y.column(d), y.column(d + 1), strict=True)) for y in labels]
        for s, parent in enumerate(topology.states[d]):
            allowed = {topology.states[d + 1][u] for u in np.flatnonzero(topology.children[d][s])}
            assert allowed == expected_children(parent, columns, topology.states[d + 1], frame.get("children", "auto"))
    for level in frame["limited"]:
        d = topology.level(level)
        if all((y.ends[d] != -1).all() for y in labels):  # an open run counts as one segment
            ends = [np.append(-1, np.flatnonzero(y.ends[d] == 1)) for y in labels]
            longest = max(int(np.diff(row).max()) for row in ends)
            assert set(topology.max_duration[d].tolist()) == {longest}
        else:
            assert not topology.has_limits(d)


def expected_children(parent, columns, names, rule):
    """The children of a parent, derived from the pairs of labels at each step, sequence by sequence."""
    runs = [pair for column in columns for pair, _ in groupby(column) if "?" not in pair]
    missing = any("?" in pair for column in columns for pair in column)
    mine = Counter(child for one, child in runs if one == parent)
    groups = [Counter(runs), mine]  # the level as a whole, or else the parent alone
    shown = any(
        sum(group.values()) >= 20 and sum(n == 1 for n in group.values()) <= sum(group.values()) / 20
        for group in groups
    )
    if rule == "all" or not mine or (rule == "auto" and missing and not shown):
        return set(names)
    return {*mine, *(set(names) - {child for _, child in runs})}


def test_a_level_that_shows_enough_decides_for_its_rare_parents():
    """Labels are missing: without enough runs in the level, only parents with enough of their own are restricted."""
    known = [{"phrase": ["NP", "NP", "VP"], "tag": ["D", "N", "V"]}] * 10
    rare = [{"phrase": ["PP"], "tag": ["P"]}] * 2
    partial = [{"phrase": ["NP", "?"], "tag": ["?", "N"]}]

    def children(Y):
        statistics = LabelStatistics()
        statistics.update(Y, [len(y["tag"]) for y in Y])
        topology = statistics.topology()
        kids = {
            parent: "".join(topology.states[2][u] for u in np.flatnonzero(topology.children[1][s]))
            for s, parent in enumerate(topology.states[1])
        }
        return kids, statistics.open_parents()

    assert children([*known, *rare, *partial]) == ({"NP": "DN", "PP": "P", "VP": "V"}, {})
    few = [*known[:5], *rare, *partial]
    assert children(few) == (dict.fromkeys(["NP", "PP", "VP"], "DNPV"), {"phrase": ["NP", "PP", "VP"]})
    odd = [{"phrase": ["PP"] * 3, "tag": ["P", "D", "V"]}]  # three kinds that occur once, of 35 runs
    assert children([*known, *odd, *partial]) == ({"NP": "DN", "PP": "DNPV", "VP": "DNPV"}, {"phrase": ["PP", "VP"]})


FLAT = [["D", "N"], ["V", "?", "N"]]


def test_a_list_is_the_only_level():
    topology, labels = encode_labels(FLAT, [2, 3], None, "plain")
    assert topology == Topology({"label": ["D", "N", "V"]})
    assert [y.column("label") for y in labels] == FLAT


def test_a_list_of_segments_persists():
    topology, labels = encode_labels([[(0, 2, "NP"), (2, 3, "O")]], [3], None, "plain")
    assert not topology.unit_bottom
    assert labels[0].segments("label") == [(0, 2, "NP"), (2, 3, "O")]


def test_no_segments_do_not_make_the_bottom_persist():
    Y = [{"phrase": ["NP"], "tag": ["N"]}, {"phrase": ["NP", "NP"], "tag": []}]
    topology, labels = encode_labels(Y, [1, 2], None, "plain")
    assert topology.unit_bottom
    assert labels[1].column("tag") == ["?", "?"]


def test_a_bottom_that_turns_out_to_persist():
    """Equal tags of the first part are one segment because the second part has longer segments."""
    first, second = LabelStatistics(), LabelStatistics()
    early = first.update([{"phrase": ["NP", "NP", "VP"], "tag": ["N", "N", "N"]}], [3])
    assert early[0].ends[2].tolist() == [1, 1, 1]
    second.update([{"phrase": ["NP", "NP"], "tag": [(0, 2, "N")]}], [2])
    topology = first.merge(second).topology()
    assert over(early, topology)[0].segments("tag") == [(0, 2, "N"), (2, 3, "N")]


@pytest.mark.parametrize("late", [None, "odd", "even"])
def test_the_class_of_a_sequence_that_names_none(late):
    Y = [
        {"root": "odd", "tag": ["N"]},
        {"tag": ["V"]},
        {"tag": ["V"]} if late is None else {"root": late, "tag": ["V"]},
    ]
    first, second = LabelStatistics(), LabelStatistics()
    labels = [*first.update(Y[:2], [1, 1]), *second.update(Y[2:], [1])]
    topology = first.merge(second).topology()
    found = [y.column("root") for y in over(labels, topology)]
    assert found == [["odd"], ["?" if late == "even" else "odd"], [late or "odd"]]
    assert found == [y.column("root") for y in encode_labels(Y, [1] * 3, None, "plain")[1]]


def test_the_longest_segment_does_not_depend_on_the_sequence_before():
    Y, lengths = [{"label": [(0, 1, "A")]}, {"label": [(0, 4, "B")]}], [3, 4]
    one = LabelStatistics(limited=["label"])
    one.update(Y, lengths)
    assert max(one.durations["label"]) == 4
    assert one.unmeasured == {"label"}
    assert not one.topology().has_limits(1)


# ------------------------------------------------------------------------------
# A topology that is given

GIVEN = Topology({"phrase": ["VP", "NP"], "tag": ["N", "V"]}, children={"phrase": {"NP": ["N"]}})
COLUMNS = {"phrase": ["NP", "VP"], "tag": ["N", "V"]}


@pytest.mark.parametrize("Y", [[COLUMNS] * 2, [Labels.from_columns(GIVEN, COLUMNS), COLUMNS]])
def test_a_given_topology_stays(Y):
    statistics = LabelStatistics(None if isinstance(Y[0], Labels) else GIVEN)
    labels = statistics.update(Y, [2, 2])
    assert statistics.topology() is GIVEN
    assert labels == [Labels.from_columns(GIVEN, COLUMNS)] * 2
    assert statistics.states == {}
    assert copy.deepcopy(statistics).merge(LabelStatistics()).topology() == GIVEN
    assert LabelStatistics().merge(statistics).topology() == GIVEN


# ------------------------------------------------------------------------------
# Errors


@pytest.mark.parametrize(
    ("Y", "error", "message"),
    [
        (
            [COLUMNS, {**COLUMNS, "word": ["a"] * 2}],
            ValueError,
            r"Y\[8\] has a level 'word', but Y\[7\] has only .*, None where",
        ),
        ([COLUMNS, {"tag": ["N"], "phrase": ["NP", "VP"]}], LabelError, r"Y\[8\]: columns differ in length"),
        ([COLUMNS, {"phrase": [(0, 1)]}], LabelError, r"Y\[8\]: \(0, 1\) is not a segment"),
        ([COLUMNS, {"tag": []}], LabelError, r"Y\[8\]: the labels of all levels are empty"),
        ([COLUMNS, Labels.from_columns(GIVEN, COLUMNS)], ValueError, r"Y\[8\] has Topology.*, but Y\[7\] has none"),
        ([{}], LabelError, r"Y\[7\]: there is no level below the root"),
        (
            [{"root": ["odd", "even"], "tag": ["N", "V"]}],
            InfeasibleError,
            r"Y\[7\]: level 'root' goes on at 0, but changes from 'odd' to 'even' at 1",
        ),
    ],
)
def test_sequences_are_numbered_on(Y, error, message):
    with pytest.raises(error, match=message) as caught:
        LabelStatistics().update(Y, [2] * len(Y), offset=7)
    if error is not ValueError:
        assert caught.value.sequence == 6 + len(Y)


def test_nothing_is_known_of_states_without_labels():
    with pytest.raises(ValueError, match="there are no labels, so the states are unknown"):
        LabelStatistics().topology()
    statistics = LabelStatistics()
    assert statistics.update([], []) == []
    statistics.update([{"phrase": ["NP"], "tag": ["?"]}], [1])
    for verb in (statistics.topology, lambda: loose_topology([{"phrase": ["NP"], "tag": ["?"]}], "plain")):
        with pytest.raises(ValueError, match="level 'tag' has no known label, so its states are unknown"):
            verb()


def test_limited_levels_exist():
    with pytest.raises(ValueError, match="unknown level: 'word'"):
        LabelStatistics(limited=["word"]).update([COLUMNS], [2])
    statistics = LabelStatistics(limited=[1])
    statistics.update([{"phrase": ["NP", "NP", "VP"], "tag": ["N"] * 3}], [3])
    assert statistics.topology().max_duration[1].tolist() == [2, 2]


def filled(Y, **frame):
    statistics = LabelStatistics(**frame)
    statistics.update(Y, [2] * len(Y))
    return statistics


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (filled([COLUMNS]), filled([COLUMNS], scheme={"tag": "plain"}), "another scheme"),
        (filled([COLUMNS]), filled([COLUMNS], limited=["phrase"]), "other limited levels"),
        (filled([COLUMNS]), filled([COLUMNS], children="all"), "children cannot"),
        (filled([COLUMNS]), filled([{"tag": ["N", "V"]}]), r"levels \('phrase', 'tag'\) and \('tag',\)"),
        (filled([COLUMNS]), filled([COLUMNS], given=GIVEN), "only some have one"),
        (filled([COLUMNS], given=Topology(GIVEN.to_dict()["levels"])), filled([COLUMNS], given=GIVEN), "different"),
    ],
)
def test_parts_that_do_not_belong_together(one, other, message):
    with pytest.raises(ValueError, match=message):
        copy.deepcopy(one).merge(other)


def test_labels_do_not_lose_states():
    labels = LabelStatistics().update([COLUMNS], [2])
    with pytest.raises(ValueError, match="has no state 'VP' of level 'phrase', which the labels have"):
        over(labels, Topology({"phrase": ["NP"], "tag": ["N", "V"]}))
    with pytest.raises(ValueError, match="which has other levels"):
        over(labels, Topology({"tag": ["N", "V"]}))
