"""Suggestions are exact: they equal predict under the same evidence, alternatives equal posteriors of segments."""

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hscrf import HSCRF, InfeasibleError, Labels, Topology
from hscrf.datasets import make_activities
from hscrf.inference import Posterior
from hscrf.inference.conflicts import smallest_core
from hscrf.studio.data.conflicts import crossed, groups_of, knowledge_of
from hscrf.studio.data.database import Event
from hscrf.studio.data.events import State
from hscrf.studio.data.evidence import labels_of, levels_of
from hscrf.studio.data.problems import Invalid
from hscrf.studio.model.suggestions import Suggester, Suggestion, changed, overlaid, shown_segments, unmodelled
from hscrf.studio.work.queue import Candidate, is_random, ordered
from studio_fixtures import TOPOLOGY, sentences, small_model

LEVELS = levels_of(TOPOLOGY)
X, Y = sentences()


@pytest.fixture(scope="module")
def suggester():
    return Suggester(small_model(), X.__getitem__, LEVELS)


def state_of(n, *events):
    state = State(LEVELS, len(X[n]))
    for kind, body in events:
        state.apply(Event(state.version + 1, kind, state.check(kind, body)))
    return state


def fixed(level, start, stop, label, kind="label"):
    return kind, {"level": level, "start": start, "stop": stop, "label": label}


def test_a_suggestion_equals_predict_under_the_same_evidence(suggester):
    for n, x in enumerate(X):
        for event in (fixed("phrase", 0, 2, "O"), fixed("tag", 1, 2, "N"), fixed("phrase", 1, 3, "NP", "segment")):
            state = state_of(n, event)
            found = suggester.suggest(n, state.knowledge, 1)
            (labels,) = small_model().predict([x], evidence=[labels_of(state.knowledge, TOPOLOGY)])
            assert found.segments["phrase"] == [list(segment) for segment in labels.segments("phrase")]
            np.testing.assert_array_equal(found.labels.states, labels.states)
            np.testing.assert_array_equal(found.labels.ends, labels.ends)


MORE = Topology({"phrase": ["NP", "VP", "O", "PP"], "tag": ["D", "N", "V", "X", "P"]})


def test_labels_that_the_model_lacks_are_suggested_where_a_person_put_them_and_nowhere_else():
    levels = levels_of(MORE)
    wider = Suggester(small_model(), X.__getitem__, levels)
    for n, x in enumerate(X):
        state = State(levels, len(x))
        plain = wider.suggest(n, state.knowledge).segments
        assert plain == Suggester(small_model(), X.__getitem__, LEVELS).suggest(n, state.knowledge).segments
        for kind, body in (fixed("phrase", 0, 2, "PP"), fixed("tag", 0, 1, "P")):
            state.apply(Event(state.version + 1, kind, state.check(kind, body)))
            found = wider.suggest(n, state.knowledge, state.version)
            assert not found.conflict
            assert [0, 2, "PP"] in found.segments["phrase"]
            assert sum(label == "PP" for _, _, label in found.segments["phrase"]) == 1
        assert [0, 1, "P"] in found.segments["tag"]
        assert sum(label == "P" for _, _, label in found.segments["tag"]) == 1
        borders = {start for start, _, _ in found.segments["tag"]}
        assert {start for start, _, _ in found.segments["phrase"]} <= borders, "tags nest in phrases"
        window = wider.window(n, state.knowledge, (0, 2), found)
        assert window is not None
        assert window.segments == found.segments


def test_new_labels_have_no_alternatives_of_their_own_and_change_none():
    wider = Suggester(small_model(), X.__getitem__, levels_of(MORE))
    knowledge = State(levels_of(MORE), len(X[0])).knowledge
    found = wider.alternatives(0, knowledge, "phrase", 0, 2)
    narrow = Suggester(small_model(), X.__getitem__, LEVELS)
    former = narrow.alternatives(0, State(LEVELS, len(X[0])).knowledge, "phrase", 0, 2)
    assert found.keys() == former.keys()
    np.testing.assert_allclose(list(found.values()), list(former.values()), rtol=1e-9)


def test_doubt_is_one_minus_the_probability_of_what_is_shown(suggester):
    state = state_of(1, fixed("phrase", 0, 1, "O"))
    found = suggester.suggest(1, state.knowledge, 1)
    (marginals,) = small_model().predict_marginals([X[1]], evidence=[labels_of(state.knowledge, TOPOLOGY)])
    for d, level in enumerate(TOPOLOGY.levels[1:], start=1):
        sure = marginals.state[level][np.arange(len(X[1])), found.labels.states[d]]
        np.testing.assert_allclose(found.doubt[level], 255 * (1 - sure), atol=0.5 + 1e-9)
    (entropy,) = small_model().entropy([X[1]], evidence=[labels_of(state.knowledge, TOPOLOGY)])
    assert found.entropy == pytest.approx(entropy / len(X[1]), abs=1e-12)


def test_alternatives_are_differences_of_log_z(suggester):
    """They equal the posterior of the segment, which is computed in another way."""
    state = state_of(1, fixed("tag", 4, 5, "X"))
    evidence = labels_of(state.knowledge, TOPOLOGY)
    posterior = small_model().predict_marginals([X[1]], evidence=[evidence])[0].segment("phrase")
    for start in range(3):
        for stop in range(start + 1, 5):
            found = suggester.alternatives(1, state.knowledge, "phrase", start, stop)
            expected = posterior[start, stop - start - 1]
            np.testing.assert_allclose(np.exp(list(found.values())), expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("level", ["phrase", "tag"])
def test_alternatives_by_shared_passes_equal_those_of_a_pass_for_each_label(suggester, level):
    """Of segments with borders, of a step of a unit level, and of several steps, which share no passes."""
    state = state_of(1, fixed("tag", 4, 5, "X"), fixed("phrase", 0, 1, "NP"))
    suggester.shared = 1
    shared = {
        (i, j): suggester.alternatives(1, state.knowledge, level, i, j) for i in range(4) for j in range(i + 1, 5)
    }
    suggester.shared = 1000
    for (start, stop), found in shared.items():
        alone = suggester.alternatives(1, state.knowledge, level, start, stop)
        assert list(found) == list(alone)
        np.testing.assert_allclose(list(found.values()), list(alone.values()), rtol=1e-9, atol=1e-11)


def test_improbable_alternatives_have_a_pass_of_their_own(suggester):
    state = state_of(1)
    expected = suggester.alternatives(1, state.knowledge, "phrase", 0, 2)
    suggester.shared, suggester.small = 1, 0.5
    found = suggester.alternatives(1, state.knowledge, "phrase", 0, 2)
    np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-9)


def test_alternatives_do_not_count_the_fix_of_the_segment_itself(suggester):
    free, bound = state_of(1), state_of(1, fixed("phrase", 0, 2, "VP", "segment"))
    one = suggester.alternatives(1, free.knowledge, "phrase", 0, 2)
    other = suggester.alternatives(1, bound.knowledge, "phrase", 0, 2)
    np.testing.assert_allclose(list(one.values()), list(other.values()), rtol=1e-12)


def test_an_impossible_alternative_is_impossible(suggester):
    state = state_of(1, fixed("tag", 0, 1, "D"))
    assert suggester.alternatives(1, state.knowledge, "phrase", 0, 1)["VP"] == -np.inf


def test_a_conflict_names_a_smallest_set_and_leaves_the_newest_out(suggester):
    events = [fixed("tag", 3, 4, "N"), fixed("tag", 0, 1, "D"), fixed("phrase", 0, 1, "VP")]
    found = suggester.suggest(1, state_of(1, *events).knowledge, 3)
    assert [group.release for group in found.conflict] == [{"fix": 2}, {"fix": 3}]
    assert [group.words for group in found.conflict] == ["tag is 'D' in step 0", "phrase is 'VP' in step 0"]
    before = suggester.suggest(1, state_of(1, *events[:2]).knowledge, 2)
    assert found.segments == before.segments


def test_borders_in_a_conflict_are_named_by_the_step_after_them(suggester):
    moved = ("boundary", {"level": "phrase", "at": 3, "on": True, "from": 1})
    found = suggester.suggest(1, state_of(1, moved, fixed("tag", 0, 1, "D"), fixed("tag", 1, 3, "V")).knowledge, 3)
    assert found.conflict
    assert {group.words for group in found.conflict} <= {
        "phrase has a border before step 3 and none before steps 1 to 2",
        "tag is 'D' in step 0",
        "tag is 'V' in steps 1 to 2",
    }
    merged = ("boundary", {"level": "phrase", "at": 1, "on": False})
    found = suggester.suggest(1, state_of(1, merged, fixed("tag", 0, 1, "D"), fixed("tag", 1, 2, "V")).knowledge, 3)
    assert found.conflict[0].words == "phrase has no border before step 1"


def test_the_rule_of_borders_is_reported_where_it_is_broken(lasting):
    upper, lower = lasting.levels
    state = State(lasting.levels, 400)
    for level, start, stop in ((lower, 0, 9), (upper, 2, 9)):
        kind, body = fixed(level.name, start, stop, level.labels[0], "segment")
        state.apply(Event(state.version + 1, kind, state.check(kind, body)))
    groups = unmodelled(state.knowledge, lasting.topology, 2).conflict
    assert crossed(state.knowledge, groups) == (
        f"where a segment of {upper.name} begins or ends, one of {lower.name} does, too"
    )
    assert crossed(state.knowledge, groups[:1]) == ""


def test_how_sure_a_segment_is_does_not_hang_on_the_place_of_its_borders():
    doubt = np.zeros(200, dtype=np.uint8)
    doubt[98:102] = 128
    segments = [[0, 100, "a"], [100, 200, "b"]]
    suggestion = Suggestion({"part": segments}, {"part": doubt}, None)
    assert suggestion.least_sure() == pytest.approx(1 - 2 * 128 / 255 / 100, rel=1e-12)
    doubt[:4] = 255
    suggestion.segments["part"] = [[0, 4, "c"], [4, 200, "a"]]
    assert suggestion.least_sure() == 0


def test_releasing_what_a_conflict_names_ends_it(suggester):
    segments = suggester.suggest(1, state_of(1).knowledge).segments
    state = state_of(1, ("accept", {"whole": True, "segments": segments}), fixed("phrase", 0, 2, "VP"))
    for _ in range(5):
        conflict = suggester.suggest(1, state.knowledge, 2).conflict
        if not conflict:
            break
        body = next(group.release for group in conflict if group.version == 1)
        state.apply(Event(state.version + 1, "release", state.check("release", body)))
    assert not conflict
    assert state.version == 3, "what was accepted under the new label is released at once"


spans = st.tuples(st.integers(0, 4), st.integers(1, 5)).filter(lambda span: span[0] < span[1])
fixes = st.lists(
    st.one_of(
        st.builds(lambda s, n: fixed("phrase", *s, n), spans, st.sampled_from(["NP", "VP", "O"])),
        st.builds(lambda s, n: fixed("phrase", *s, n, "segment"), spans, st.sampled_from(["NP", "VP", "O"])),
        st.builds(lambda s, n: fixed("tag", *s, n), spans, st.sampled_from(["D", "N", "V", "X"])),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60)
@given(fixes)
def test_conflicts_are_minimal_and_real(events):
    suggester = Suggester(small_model(), X.__getitem__, LEVELS)
    state = State(LEVELS, len(X[1]))
    for kind, body in events:
        state.apply(Event(state.version + 1, kind, state.check(kind, body)))
    potentials, knowledge = suggester.potentials(1), state.knowledge
    if suggester.possible(potentials, knowledge):
        assert not suggester.suggest(1, knowledge, state.version).conflict
        return
    groups = groups_of(knowledge, state.version)
    core = smallest_core(groups, lambda some: suggester.possible(potentials, knowledge_of(knowledge, some)))
    assert not suggester.possible(potentials, knowledge_of(knowledge, core))
    for group in core:
        rest = [other for other in core if other is not group]
        assert suggester.possible(potentials, knowledge_of(knowledge, rest))
    with pytest.raises(InfeasibleError):
        small_model().predict([X[1]], evidence=[labels_of(knowledge, TOPOLOGY)])


def test_runs_of_a_unit_level_end_with_their_parents():
    days, labels = make_activities(2, random_state=0)
    segments = shown_segments(labels[0], 2)
    parents = {stop for _, stop, _ in labels[0].segments("activity")}
    assert parents <= {stop for _, stop, _ in segments}
    assert segments[0][0] == 0
    assert segments[-1][1] == len(days[0])
    assert all(one[1] == other[0] for one, other in itertools.pairwise(segments))


def test_changes_are_ranges_of_steps(suggester):
    before = suggester.suggest(0, state_of(0).knowledge)
    after = suggester.suggest(0, state_of(0, fixed("phrase", 0, 2, "O")).knowledge, 1)
    assert changed(before, after)["phrase"][0][0] == 0
    assert changed(before, before) == {"phrase": [], "tag": []}


def test_a_window_pins_what_is_far_and_keeps_the_fixes(lasting):
    suggester, levels = lasting, lasting.levels
    state = State(levels, 400)
    before = suggester.suggest(0, state.knowledge)
    old = next(label for start, stop, label in before.segments["activity"] if start <= 200 < stop)
    new = next(label for label in levels[0].labels if label != old)
    state.apply(Event(1, "label", state.check(*fixed("activity", 200, 204, new))))
    quick = suggester.window(0, state.knowledge, state.touched(), before)
    assert not quick.exact
    assert quick.window == (140, 264)
    np.testing.assert_array_equal(quick.labels.states[:, :140], before.labels.states[:, :140])
    np.testing.assert_array_equal(quick.labels.states[:, 264:], before.labels.states[:, 264:])
    assert set(quick.labels.column("activity")[200:204]) == {new}
    whole = pinned_everywhere(suggester, state, before, quick.window)
    np.testing.assert_array_equal(quick.labels.states, whole.decode().states)
    np.testing.assert_array_equal(quick.labels.ends, whole.decode().ends)
    for level in levels:
        d = suggester.topology.level(level.name)
        sure = whole.marginals.state[level.name][np.arange(400), quick.labels.states[d]]
        np.testing.assert_allclose(quick.doubt[level.name][140:264], (255 * (1 - sure))[140:264], atol=0.5 + 1e-6)


@pytest.fixture(scope="module")
def lasting():
    """A suggester of a long sequence whose segments last at both levels."""
    days, labels = make_activities(12, random_state=0, persisting=True)
    model = HSCRF(c2=0.5, durations={"trajectory": "gamma"}, max_duration={"trajectory": 30}).fit(days, labels)
    long = [step for day in days for step in day][:400]
    return Suggester(model, lambda n: long, levels_of(model.topology_))


@pytest.fixture(scope="module")
def narrow(lasting):
    """The same with small windows."""
    found = Suggester(lasting.model, lasting.observe, lasting.levels)
    found.margin = 6
    return found


@pytest.mark.parametrize("touched", [(0, 1), (399, 400), *((t, t + 3) for t in range(20, 380, 24))])
def test_a_part_by_itself_is_decoded_as_in_the_whole(narrow, touched):
    state = State(narrow.levels, 400)
    before = narrow.suggest(0, state.knowledge)
    old = next(label for start, stop, label in before.segments["activity"] if start <= touched[0] < stop)
    new = next(label for label in narrow.levels[0].labels if label != old)
    state.apply(Event(1, "label", state.check(*fixed("activity", *touched, new))))
    quick = narrow.window(0, state.knowledge, state.touched(), before)
    whole = pinned_everywhere(narrow, state, before, (max(touched[0] - 6, 0), min(touched[1] + 6, 400)))
    try:
        expected = whole.decode()
    except InfeasibleError:
        assert quick is None
        return
    np.testing.assert_array_equal(quick.labels.states, expected.states)
    np.testing.assert_array_equal(quick.labels.ends, expected.ends)


def pinned_everywhere(suggester, state, before, window):
    """The posterior of the whole sequence, with the former labels known outside a window."""
    start, stop = window
    known = labels_of(state.knowledge, suggester.topology)
    states, ends = before.labels.states.copy(), before.labels.ends.copy()
    states[:, start:stop] = known.states[:, start:stop]
    ends[:, max(start - 1, 0) : stop] = known.ends[:, max(start - 1, 0) : stop]
    return Posterior(suggester.potentials(0), Labels(suggester.topology, states, ends))


def test_one_answer_does_not_wait_for_another(suggester):
    """Answers for the queue are made in one thread while a person waits for another one."""
    begun, go_on, late = threading.Event(), threading.Event(), []

    class Slow(Posterior):
        def _expect(self):
            begun.set()
            late.append(not go_on.wait(20))
            return super()._expect()

    potentials = suggester.potentials(0)
    thread = threading.Thread(target=lambda: Slow(potentials).marginals)
    thread.start()
    begun.wait(20)
    assert Posterior(potentials).marginals.log_partition > -np.inf
    go_on.set()
    thread.join()
    assert late == [False]


def test_alternatives_of_yesterday_are_not_finished(suggester):
    asked = iter([True, False])
    state = state_of(1)
    assert suggester.alternatives(1, state.knowledge, "phrase", 0, 2, wanted=lambda: next(asked)) is None
    assert next(asked, None) is None, "asked before each pass"


def shown(suggester, n, *events):
    """The former suggestion of a sequence with events drawn over it."""
    found = overlaid(suggester.suggest(n, state_of(n).knowledge), state_of(n, *events).knowledge)
    return found.segments["phrase"]


def test_a_fix_is_drawn_over_the_former_suggestion_until_the_model_has_answered(suggester):
    former = suggester.suggest(1, state_of(1).knowledge).segments["phrase"]
    assert former == [[0, 2, "NP"], [2, 4, "VP"], [4, 5, "O"]]
    assert shown(suggester, 1, fixed("phrase", 1, 3, "O")) == [[0, 1, "NP"], [1, 3, "O"], [3, 4, "VP"], [4, 5, "O"]]
    border = {"level": "phrase", "at": 2, "on": False}
    assert shown(suggester, 1, ("boundary", border)) == [[0, 4, "NP"], [4, 5, "O"]]
    moved = {"level": "phrase", "at": 3, "on": True, "from": 2}
    assert shown(suggester, 1, ("boundary", moved)) == [[0, 3, "NP"], [3, 4, "VP"], [4, 5, "O"]]
    split = {"level": "phrase", "at": 3, "on": True}
    assert shown(suggester, 1, ("boundary", split))[1:3] == [[2, 3, "VP"], [3, 4, "VP"]]


def test_without_a_model_a_label_spreads_as_far_as_it_must():
    border = {"level": "phrase", "at": 2, "on": False}
    state = state_of(1, fixed("tag", 0, 1, "D"), fixed("phrase", 1, 2, "NP"), ("boundary", border))
    found = unmodelled(state.knowledge, TOPOLOGY, 3)
    assert found.segments["phrase"] == [[0, 3, "NP"], [3, 5, None]], "only a noun phrase has a determiner"
    assert found.segments["tag"] == [[0, 1, "D"], [1, 5, None]]
    assert found.doubt["phrase"].tolist() == [0, 0, 0, 255, 255]


@given(st.lists(st.integers(1, 19)), st.lists(st.integers(1, 19)), st.data())
def test_changes_are_all_segments_that_were_not_there(one, other, data):
    def segments(borders):
        edges = sorted({0, 20, *borders})
        return [[i, j, data.draw(st.sampled_from("xy"))] for i, j in itertools.pairwise(edges)]

    before, after = (Suggestion({"a": segments(borders)}, {}, None) for borders in (one, other))
    steps = {t for i, j in changed(before, after)["a"] for t in range(i, j)}
    old = before.segments["a"]
    assert steps == {t for segment in after.segments["a"] if segment not in old for t in range(*segment[:2])}


def test_a_slow_model_is_known_by_its_cost():
    suggester = Suggester(small_model(), X.__getitem__, LEVELS)
    assert not suggester.is_slow(100)
    assert suggester.is_slow(1_000_000)
    assert not suggester.is_slow(1_000_000, limit=600)


# -- the queue


def test_the_most_doubtful_comes_first():
    waiting = [Candidate(n, f"s{n}", doubt=n / 10) for n in range(5)]
    assert next(c.id for c, why in ordered(waiting, {}) if why == "doubt") == max(
        c.id for c in waiting if not is_random(c.name)
    )


def test_every_tenth_place_is_random_and_random_ones_are_taken_nowhere_else():
    waiting = [Candidate(n, f"day_{n}", doubt=float(n)) for n in range(1000)]
    order = ordered(waiting, {})
    assert sorted(c.id for c, _ in order) == list(range(1000))
    head = [why for _, why in order[:500]]
    assert head.count("random") == 50
    assert all(is_random(c.name) == (why == "random") for c, why in order)


def test_twins_of_an_earlier_choice_wait():
    waiting = [Candidate(1, "s1", 1.0, [1, 0]), Candidate(2, "s2", 0.9, [1, 0]), Candidate(3, "s3", 0.8, [0, 1])]
    assert not any(is_random(c.name) for c in waiting)
    assert [c.id for c, _ in ordered(waiting, {})] == [1, 3, 2]


def test_without_a_model_the_file_gives_the_order():
    waiting = [Candidate(n, f"s{n}") for n in range(1, 6)]
    assert next((c.id, why) for c, why in ordered(waiting, {}) if why != "random")[1] == "file"


def test_an_unknown_level_is_refused():
    with pytest.raises(Invalid):
        state_of(0, fixed("nothing", 0, 1, "NP"))


def test_what_was_measured_counts_more_than_what_was_guessed(suggester):
    other = Suggester(small_model(), X.__getitem__, LEVELS)
    other._measured = (1000, 1.0)
    assert other.is_slow(1000)
    assert not other.is_slow(10)
