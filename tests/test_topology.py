"""The state hierarchy: its fields, its checks, and round trips through JSON."""

import json
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hscrf.topology import UNLIMITED, Topology

LEVELS = {"phrase": ["NP", "O"], "tag": ["N", "V", "J"]}


@pytest.fixture
def topology():
    return Topology(
        LEVELS,
        children={"phrase": {"NP": ["N", "J"]}},
        successors={"phrase": {"O": ["NP"]}},
        min_duration={"phrase": {"NP": 2}},
        max_duration={"phrase": 15},
    )


@st.composite
def topologies(draw):
    """Random legal topologies: relations, root classes and limits, with either kind of bottom."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    levels = {f"level{d}": [f"s{d}{s}" for s in range(size)] for d, size in enumerate(sizes)}
    subsets = {name: st.lists(st.sampled_from(states), unique=True) for name, states in levels.items()}
    names = list(levels)
    children = {
        upper: {levels[upper][0]: levels[lower][:1] + draw(subsets[lower])}
        for upper, lower in pairwise(names)
        if len(levels[upper]) > 1 and draw(st.booleans())
    }
    successors = {name: {levels[name][-1]: draw(subsets[name])} for name in names if draw(st.booleans())}
    longest = {name: draw(st.none() | st.integers(1, 4)) for name in names if draw(st.booleans())}
    shortest = {name: {levels[name][0]: draw(st.integers(1, limit or 9))} for name, limit in longest.items()}
    root = draw(st.none() | st.just(["even", "odd"]))
    return Topology(levels, children, successors, root, shortest, longest)


def test_the_root_is_added_by_itself(topology):
    assert topology.levels == ("root", "phrase", "tag")
    assert topology.states == (("root",), ("NP", "O"), ("N", "V", "J"))
    assert (topology.depth, topology.n_states) == (3, (1, 2, 3))


def test_relations_are_full_except_in_named_rows(topology):
    np.testing.assert_array_equal(topology.children[0], [[True, True]])
    np.testing.assert_array_equal(topology.children[1], [[True, False, True], [True, True, True]])
    np.testing.assert_array_equal(topology.successors[0], [[False]])
    np.testing.assert_array_equal(topology.successors[1], [[True, True], [True, False]])
    assert topology.successors[2].all()


def test_durations_by_level_and_by_state(topology):
    assert topology.min_duration[1].tolist() == [2, 1]
    assert topology.max_duration[1].tolist() == [15, 15]
    assert topology.max_duration[0].tolist() == [UNLIMITED]
    assert topology.min_duration[2].tolist() == topology.max_duration[2].tolist() == [1, 1, 1]
    assert [topology.has_limits(d) for d in range(3)] == [False, True, False]


@pytest.mark.parametrize(
    ("limit", "unit", "limited", "maxima"),
    [
        ({}, True, False, [1, 1, 1]),
        ({"tag": 1}, True, False, [1, 1, 1]),
        ({"tag": None}, False, False, [UNLIMITED] * 3),
        ({"tag": 5}, False, True, [5, 5, 5]),
        ({"tag": {"V": 5}}, False, True, [UNLIMITED, 5, UNLIMITED]),
    ],
)
def test_the_bottom_persists_only_if_max_duration_names_it(limit, unit, limited, maxima):
    topology = Topology(LEVELS, max_duration=limit)
    assert (topology.unit_bottom, topology.has_limits(2)) == (unit, limited)
    assert topology.max_duration[2].tolist() == maxima


def test_root_classes_may_restrict_their_children():
    topology = Topology(LEVELS, root=["news", "mail"], children={"root": {"mail": ["O"]}})
    assert topology.children[0].tolist() == [[True, True], [False, True]]


def test_levels_and_states_by_name_and_index(topology):
    assert [topology.level(name) for name in ("root", "tag", 1, np.int64(2))] == [0, 2, 1, 2]
    assert topology.state("tag", "J") == topology.state(2, "J") == 2


def test_arrays_and_attributes_cannot_be_changed(topology):
    with pytest.raises(AttributeError):
        topology.levels = ()
    for name in ("children", "successors", "min_duration", "max_duration"):
        for array in getattr(topology, name):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0


def test_repr_is_short(topology):
    assert repr(topology) == "Topology(root 1 > phrase 2 > tag 3)"


@settings(derandomize=True, max_examples=60, deadline=None)
@given(topologies())
def test_round_trip_through_json_and_pickle(topology):
    again = Topology.from_dict(json.loads(json.dumps(topology.to_dict())))
    for other in (again, pickle.loads(pickle.dumps(topology))):
        assert other == topology
        assert hash(other) == hash(topology)
        assert other.unit_bottom == topology.unit_bottom
        assert not any(array.flags.writeable for array in other.max_duration)


@pytest.mark.parametrize(
    "other",
    [
        {"successors": {"phrase": {"O": ["NP"]}}},
        {"children": {"phrase": {"NP": ["N", "J"]}}},
        {"root": ["a"]},
        {"min_duration": {"phrase": 2}},
        {"max_duration": {"tag": None}},
    ],
)
def test_topologies_differ_by_content(other):
    assert Topology(LEVELS, **other) != Topology(LEVELS)
    assert Topology(LEVELS) != "Topology"


@pytest.mark.parametrize(
    ("levels", "arguments", "message"),
    [
        ({}, {}, "levels is empty; expected at least one level below the root"),
        (["tag"], {}, "levels is a list; expected a mapping"),
        ({"root": ["a"]}, {}, "'root', which is added by itself"),
        ({1: ["a"]}, {}, "level name 1 is an int; expected a string"),
        ({"tag": []}, {}, "level 'tag' is empty"),
        (LEVELS, {"root": []}, "level 'root' is empty"),
        ({"tag": "NV"}, {}, "level 'tag' is the string 'NV'; expected a list"),
        ({"tag": ["N", [3]]}, {}, r"level 'tag' has the state \[3\]; expected a string or another hashable"),
        ({"tag": ["N", -1]}, {}, "level 'tag' has a state -1, which means unknown"),
        ({"tag": ["N", float("nan")]}, {}, "level 'tag' has a state nan, which means unknown"),
        ({"tag": ["N", "N"]}, {}, "level 'tag' has the state 'N' twice"),
        ({"tag": ["N", "?"]}, {}, "state '\\?', which means unknown"),
        (
            LEVELS,
            {"children": {"phrases": {}}},
            "unknown level: 'phrases' .did you mean 'phrase'.*'root', 'phrase'",
        ),
        (LEVELS, {"children": {"phrase": {"VP": ["N"]}}}, "unknown state of level 'phrase': 'VP'.*'NP', 'O'"),
        (
            LEVELS,
            {"children": {"phrase": {"NP": ["NN"]}}},
            "unknown state of level 'tag': 'NN'.*did you mean 'N'",
        ),
        (LEVELS, {"children": {"phrase": {"NP": "N"}}}, "state 'NP' is given the string 'N'"),
        (LEVELS, {"children": {"phrase": ["NP"]}}, "level 'phrase' is given .*; expected a mapping"),
        (LEVELS, {"children": ["phrase"]}, "children is .*; expected a mapping"),
        (LEVELS, {"children": {"tag": {"N": []}}}, "children names 'tag', the bottom level"),
        (LEVELS, {"children": {"phrase": {"NP": []}}}, "state 'NP' of level 'phrase' has no child"),
        (LEVELS, {"children": {"root": {"root": ["NP"]}}}, "state 'O' of level 'phrase' has no parent"),
        (LEVELS, {"successors": {"root": {}}}, "successors names 'root', which nothing follows"),
        (LEVELS, {"successors": {"tag": {"N": ["X"]}}}, "unknown state of level 'tag': 'X'"),
        (LEVELS, {"max_duration": {"root": 3}}, "max_duration names 'root'"),
        (LEVELS, {"min_duration": {"root": 3}}, "min_duration names 'root'"),
        (
            LEVELS,
            {"max_duration": {"phrase": 0}},
            "max_duration of phrase 'NP' is 0; expected a positive integer",
        ),
        (LEVELS, {"max_duration": {"phrase": 2.5}}, "is 2.5; expected a positive integer"),
        (LEVELS, {"max_duration": {"phrase": True}}, "is True; expected a positive integer"),
        (LEVELS, {"min_duration": {"phrase": {"X": 1}}}, "unknown state of level 'phrase': 'X'"),
        (
            LEVELS,
            {"min_duration": {"tag": 2}},
            "by naming it in max_duration too, as in max_duration={'tag': None}",
        ),
        (
            LEVELS,
            {"min_duration": {"phrase": 4}, "max_duration": {"phrase": {"O": 3}}},
            "state 'O' of level 'phrase' has min_duration 4; expected at most its max_duration 3",
        ),
    ],
)
def test_errors_name_the_thing(levels, arguments, message):
    with pytest.raises(ValueError, match=message):
        Topology(levels, **arguments)


@pytest.mark.parametrize("name", ["word", 3, -1, None])
def test_unknown_levels_list_the_known_ones(topology, name):
    with pytest.raises(ValueError, match=f"unknown level: {name!r}; known are 'root', 'phrase', 'tag'"):
        topology.level(name)


@pytest.mark.parametrize("name", ["X", 0, ["N"]])
def test_unknown_states_list_the_known_ones(topology, name):
    with pytest.raises(ValueError, match=r"unknown state of level 'tag': .*; known are 'N', 'V', 'J'"):
        topology.state("tag", name)


def test_long_lists_of_states_are_cut():
    topology = Topology({"tag": [f"t{s}" for s in range(30)]})
    with pytest.raises(ValueError, match=r"and 10 more$"):
        topology.state("tag", "X")
