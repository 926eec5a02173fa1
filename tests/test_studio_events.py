"""Events, their replay, undo and redo; what each kind of fix makes known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hscrf import Topology
from hscrf.studio.data.database import Event
from hscrf.studio.data.events import State
from hscrf.studio.data.evidence import imported, labels_of, levels_of, without_levels
from hscrf.studio.data.problems import Invalid
from hscrf.studio.work.views import origins

TOPOLOGY = Topology({"phrase": ["NP", "VP", "O"], "tag": ["D", "N"]})
LEVELS = levels_of(TOPOLOGY)
LENGTH = 7


def state_of(*events, length=LENGTH):
    state = State(LEVELS, length)
    for kind, body in events:
        add(state, kind, body)
    return state


def add(state, kind, body):
    state.apply(Event(state.version + 1, kind, state.check(kind, body)))


def label(level, start, stop, name):
    return "label", {"level": level, "start": start, "stop": stop, "label": name}


def segment(level, start, stop, name):
    return "segment", {"level": level, "start": start, "stop": stop, "label": name}


def border(at, on=True, **more):
    return "boundary", {"level": "phrase", "at": at, "on": on, **more}


def row(state, level="phrase"):
    """Labels as letters and borders as marks."""
    cells = state.knowledge.cells[level]
    names = [*state.knowledge.level(level).labels, "?"]
    marks = {1: "|", 0: "-", -1: " "}
    inner = [marks[int(b)] for b in cells.border[1:-1]] + [""]
    return "".join(names[c][0] + mark for c, mark in zip(cells.label.tolist(), inner, strict=True))


def test_a_label_says_nothing_about_borders():
    assert row(state_of(label("phrase", 1, 3, "NP"))) == "? N N ? ? ? ?"


def test_a_segment_is_its_label_its_borders_and_nothing_inside():
    assert row(state_of(segment("phrase", 1, 4, "NP"))) == "?|N-N-N|? ? ?"


def test_steps_of_a_unit_level_have_no_borders_to_fix():
    assert row(state_of(segment("tag", 1, 3, "D")), "tag") == "? D D ? ? ? ?"
    with pytest.raises(Invalid, match="every step"):
        state_of(("boundary", {"level": "tag", "at": 2, "on": True}))


def test_split_and_merge():
    assert row(state_of(border(2))) == "? ?|? ? ? ? ?"
    assert row(state_of(border(2, on=False))) == "? ?-? ? ? ? ?"


def test_a_merge_keeps_the_label_on_the_left():
    events = [segment("phrase", 0, 2, "NP"), segment("phrase", 2, 4, "VP"), border(2, on=False)]
    assert row(state_of(*events)) == "N-N-?-?|? ? ?"


@pytest.mark.parametrize("steps", [(0, 4), (4, 6)], ids=["the segment that grew", "the one that shrank"])
def test_releasing_either_segment_releases_a_moved_border_as_a_whole(steps):
    state = state_of(border(2), ("boundary", {"level": "phrase", "at": 4, "on": True, "from": 2}))
    assert row(state) == "? ?-?-?|? ? ?"
    add(state, "release", {"level": "phrase", "start": steps[0], "stop": steps[1]})
    assert row(state) == "? ? ? ? ? ? ?"


def test_a_border_moves_to_the_right_and_the_left_segment_grows():
    events = [
        segment("phrase", 0, 2, "NP"),
        segment("phrase", 2, 6, "VP"),
        ("boundary", {"level": "phrase", "at": 4, "on": True, "from": 2}),
    ]
    assert row(state_of(*events)) == "N-N-?-?|V-V|?"


def test_a_border_moves_to_the_left_and_the_right_segment_grows():
    events = [
        segment("phrase", 0, 4, "NP"),
        segment("phrase", 4, 6, "VP"),
        ("boundary", {"level": "phrase", "at": 2, "on": True, "from": 4}),
    ]
    assert row(state_of(*events)) == "N-N|?-?-V-V|?"


def test_a_newer_label_wins_and_opens_the_borders_it_contradicts():
    assert row(state_of(segment("phrase", 0, 4, "NP"), label("phrase", 2, 4, "VP"))) == "N-N V-V|? ? ?"


def test_releasing_a_fix_leaves_the_others():
    events = [label("phrase", 0, 2, "NP"), segment("phrase", 3, 5, "VP"), ("release", {"fix": 2})]
    assert row(state_of(*events)) == "N N ? ? ? ? ?"
    assert row(state_of(*events[:2], ("release", {"level": "phrase", "start": 0, "stop": 1}))) == "? N ?|V-V|? ?"


def test_accepting_all_makes_it_done_until_something_changes():
    segments = {"phrase": [[0, 3, "NP"], [3, 7, "O"]], "tag": [[0, 7, "N"]]}
    state = state_of(("accept", {"whole": True, "segments": segments}))
    assert state.status == "done"
    assert labels_of(state.knowledge, TOPOLOGY).is_complete
    add(state, *label("phrase", 0, 3, "VP"))
    assert state.status == "begun"
    add(state, "undo", {})
    assert state.status == "done"


def test_undo_leaves_what_came_with_the_file():
    state = State(LEVELS, LENGTH)
    state.apply(Event(1, "import", {"levels": {"tag": {"labels": [[0, 2, "D"]]}}}))
    with pytest.raises(Invalid, match="nothing to undo"):
        state.check("undo", {})


def test_a_new_event_forgets_what_could_be_redone():
    state = state_of(label("tag", 0, 1, "D"), ("undo", {}), label("tag", 1, 2, "N"))
    with pytest.raises(Invalid, match="nothing to redo"):
        state.check("redo", {})


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("label", {"level": "phrase", "start": 0, "stop": 2, "label": "XX"}),
        ("label", {"level": "nothing", "start": 0, "stop": 2, "label": "NP"}),
        ("label", {"level": "phrase", "start": 2, "stop": 2, "label": "NP"}),
        ("label", {"level": "phrase", "start": 0, "stop": 8, "label": "NP"}),
        ("label", {"level": "phrase", "start": True, "stop": 2, "label": "NP"}),
        ("label", {"level": ["phrase"], "start": 0, "stop": 2, "label": "NP"}),
        ("boundary", {"level": "phrase", "at": 0, "on": True}),
        ("boundary", {"level": "phrase", "at": 7, "on": True}),
        ("boundary", {"level": "phrase", "at": 3, "on": "yes"}),
        ("boundary", {"level": "phrase", "at": 3, "on": False, "from": 2}),
        ("accept", {"segments": {}}),
        ("accept", {"segments": {"phrase": [[0, 3, None]]}}),
        ("accept", {"whole": True, "segments": {"phrase": [[0, 7, "NP"]]}}),
        ("accept", {"whole": True, "segments": {"phrase": [[0, 6, "NP"]], "tag": [[0, 7, "N"]]}}),
        ("accept", {"segments": {"phrase": [[0, 4, "NP"], [3, 7, "O"]]}}),
        ("accept", {"segments": {"phrase": [["0", 4, "NP"]]}}),
        ("release", {"fix": 9}),
        ("release", {}),
        ("import", {"levels": {}}),
        ("undo", {}),
        ("nonsense", {}),
    ],
)
def test_what_makes_no_sense_is_refused(kind, body):
    with pytest.raises(Invalid):
        State(LEVELS, LENGTH).check(kind, body)


def test_labels_come_in_and_go_out_unchanged():
    labels = labels_of(state_of(segment("phrase", 1, 4, "NP"), label("tag", 0, 3, "D")).knowledge, TOPOLOGY)
    state = State(LEVELS, LENGTH)
    state.apply(Event(1, "import", imported(labels, LEVELS)))
    assert labels_of(state.knowledge, TOPOLOGY) == labels


def test_a_topology_without_a_level_allows_what_the_whole_allows():
    three = Topology(
        {"a": ["x", "y"], "b": ["m", "n"], "c": ["p", "q"]}, children={"a": {"x": ["m"]}, "b": {"m": ["p"]}}
    )
    assert without_levels(three, ["a"]).levels == ("root", "b", "c")
    assert without_levels(three, []) is three


steps = st.integers(0, LENGTH)
names = st.sampled_from(["NP", "VP", "O"])
some_events = st.lists(
    st.one_of(
        st.builds(lambda a, b, n: label("phrase", *sorted((a, b)), n), steps, steps, names),
        st.builds(lambda a, b, n: label("tag", *sorted((a, b)), n), steps, steps, st.sampled_from(["D", "N"])),
        st.builds(lambda a, b, n: segment("phrase", *sorted((a, b)), n), steps, steps, names),
        st.builds(lambda a, on: border(a, on=on), steps, st.booleans()),
        st.builds(lambda a, b: ("boundary", {"level": "phrase", "at": a, "on": True, "from": b}), steps, steps),
        st.builds(lambda a, b, n: ("accept", {"segments": {"phrase": [[*sorted((a, b)), n]]}}), steps, steps, names),
        st.builds(lambda v: ("release", {"fix": v}), st.integers(1, 12)),
        st.builds(lambda a, b: ("release", {"level": "phrase", "start": a, "stop": b}), steps, steps),
        st.just(("undo", {})),
        st.just(("redo", {})),
    ),
    max_size=25,
)


def same(one, other):
    for name in one.cells:
        for field in ("label", "label_by", "accepted", "border", "border_by"):
            np.testing.assert_array_equal(getattr(one.cells[name], field), getattr(other.cells[name], field))
    assert one.fixes == other.fixes


@given(some_events)
def test_replay_equals_the_state_that_grew(events):
    state, stored = State(LEVELS, LENGTH), []
    assert state.knowledge.empty
    for kind, body in events:
        try:
            checked = state.check(kind, body)
        except Invalid:
            continue
        stored.append(Event(state.version + 1, kind, checked))
        state.apply(stored[-1])
    again = State.replayed(LEVELS, LENGTH, stored)
    same(state.knowledge, again.knowledge)
    assert (state.status, state.can_undo, state.can_redo, state.corrections) == (
        again.status, again.can_undo, again.can_redo, again.corrections)  # fmt: skip


@given(some_events)
def test_undo_takes_back_exactly_one_event_and_redo_brings_it_again(events):
    state = State(LEVELS, LENGTH)
    for kind, body in events:
        try:
            checked = state.check(kind, body)
        except Invalid:
            continue
        if kind in ("undo", "redo"):
            continue
        before = state.knowledge.copy()
        state.apply(Event(state.version + 1, kind, checked))
        after = state.knowledge.copy()
        add(state, "undo", {})
        same(state.knowledge, before)
        add(state, "redo", {})
        same(state.knowledge, after)


@given(some_events)
def test_nothing_known_of_one_level_contradicts_itself(events):
    """The newest fix wins at its level: no border is absent between two different labels."""
    state = State(LEVELS, LENGTH)
    for kind, body in events:
        try:
            add(state, kind, body)
        except Invalid:
            continue
        cells = state.knowledge.cells["phrase"]
        one, other = cells.label[:-1], cells.label[1:]
        assert not ((cells.border[1:-1] == 0) & (one >= 0) & (other >= 0) & (one != other)).any()


def test_a_part_of_what_was_accepted_is_not_accepted_itself():
    state = State(LEVELS, 4)
    body = state.check("accept", {"segments": {"phrase": [[0, 2, "NP"]]}})
    state.apply(Event(1, "accept", body))
    (phrase, _) = LEVELS
    assert origins(state.knowledge, phrase, [[0, 2, "NP"], [2, 4, "O"]]) == ["accepted", "model"]
    assert origins(state.knowledge, phrase, [[0, 1, "NP"], [1, 2, "NP"], [2, 4, "O"]]) == ["fixed", "fixed", "model"]
