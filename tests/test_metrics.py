"""Metrics: against plain implementations, conlleval's script rule by rule, identities, published numbers."""

import json
import math
from collections import Counter, defaultdict
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hscrf import metrics
from hscrf.labels.labels import Labels
from hscrf.topology import Topology

pytestmark = pytest.mark.filterwarnings("ignore:every segment of level")
profile = settings(derandomize=True, max_examples=40, deadline=None)

UNIT = Topology({"phrase": ["NP", "VP", "O"], "tag": ["N", "V"]})
PERSISTING = Topology({"phrase": ["O", "VP", "NP"], "tag": ["V", "N"]}, max_duration={"tag": None})
REORDERED = Topology({"phrase": ["NP", "VP", "O"], "tag": ["N", "V"]}, max_duration={"tag": None})
CLASSES = Topology({"tag": ["N", "V"]}, root=["even", "odd"])


@st.composite
def labels_of_length(draw, topology, length):
    """Random complete labels: random cuts that nest, one random state for each segment."""
    cuts = np.zeros((topology.depth, length), dtype=int)
    for d in range(1, topology.depth):
        cuts[d] = cuts[d - 1] | draw(st.lists(st.integers(0, 1), min_size=length, max_size=length))
    cuts[:, -1] = 1
    if topology.unit_bottom:
        cuts[-1] = 1
    states = np.zeros_like(cuts)
    for d in range(topology.depth):
        for t in range(length):
            new = t == 0 or cuts[d, t - 1]
            states[d, t] = draw(st.integers(0, topology.n_states[d] - 1)) if new else states[d, t - 1]
    return Labels(topology, states, cuts)


@st.composite
def data(draw):
    """Truths and guesses of up to four sequences, under topologies that list states in different orders."""
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    true, pred = draw(st.sampled_from([(UNIT, UNIT), (PERSISTING, PERSISTING), (REORDERED, PERSISTING)]))
    y_true = [draw(labels_of_length(true, length)) for length in lengths]
    # a guess at random is hardly ever right: mix in the truth
    y_pred = [
        one if pred is true and draw(st.booleans()) else draw(labels_of_length(pred, one.length)) for one in y_true
    ]
    return y_true, y_pred


# ------------------------------------------------------------------------------
# Twins


def segment_set(y, level, ignore):
    return {(n, *segment) for n, one in enumerate(y) for segment in one.segments(level) if segment[2] not in ignore}


def perl_end(before, tag, before_type, tag_type):
    """endOfChunk of the script, one line for each of its rules."""
    pairs = ["BB", "BO", "IB", "IO", "EE", "EI", "EO"]
    changed = before not in ("O", ".") and before_type != tag_type
    return before + tag in pairs or changed or before in ("[", "]")


def perl_start(before, tag, before_type, tag_type):
    """startOfChunk of the script."""
    pairs = ["BB", "IB", "OB", "OI", "EE", "EI", "OE"]
    changed = tag not in ("O", ".") and before_type != tag_type
    return before + tag in pairs or changed or tag in ("[", "]")


def perl_counts(y_true, y_pred):
    """The script's main loop: one pass over the tokens, a blank line counted as O after each sequence."""
    stream = []
    for one, other in zip(y_true, y_pred, strict=True):
        stream += [*zip(one, other, strict=True), ("O", "O")]
    found, guessed, correct = Counter(), Counter(), Counter()
    inside, before = False, (("O", ""), ("O", ""))
    for pair in stream:
        here = tuple((tag.partition("-")[0], tag.partition("-")[2]) for tag in pair)
        arguments = [(b[0], h[0], b[1], h[1]) for b, h in zip(before, here, strict=True)]
        ends = [perl_end(*argument) for argument in arguments]
        starts = [perl_start(*argument) for argument in arguments]
        if inside and all(ends) and before[0][1] == before[1][1]:
            inside = False
            correct[before[0][1]] += 1
        elif inside and (ends[0] != ends[1] or here[0][1] != here[1][1]):
            inside = False
        if all(starts) and here[0][1] == here[1][1]:
            inside = True
        found[here[0][1]] += starts[0]
        guessed[here[1][1]] += starts[1]
        before = here
    return +correct, +guessed, +found


def most_matches(one, other, tolerance):
    """The largest one-to-one matching, by trying all."""
    small, large = sorted((one, other), key=len)
    for size in range(len(small), 0, -1):
        for chosen in combinations(small, size):
            for partners in permutations(large, size):
                if all(abs(a - b) <= tolerance for a, b in zip(chosen, partners, strict=True)):
                    return size
    return 0


@profile
@given(data(), st.sampled_from([("O",), (), ("O", "NP")]), st.sampled_from(["phrase", "tag"]))
def test_segment_scores_count_sets_of_segments(pair, ignore, level):
    true, pred = (segment_set(y, level, ignore) for y in pair)
    scores = metrics.segment_scores(*pair, level, ignore=ignore)
    assert (scores.correct, scores.predicted, scores.support) == (len(true & pred), len(pred), len(true))
    for name, score in scores.per_label.items():
        counts = [sum(s[3] == name for s in side) for side in (true & pred, pred, true)]
        assert [score.correct, score.predicted, score.support] == counts
    assert set(scores.per_label) == {s[3] for s in true | pred}


@profile
@given(data())
def test_segment_scores_are_conllevals(pair):
    tags = [[one.column("phrase", scheme="bio") for one in y] for y in pair]
    ours, theirs = metrics.segment_scores(*pair, "phrase"), metrics.conlleval(*tags)
    assert ours.per_label == theirs.per_label
    assert (ours.precision, ours.recall, ours.f1) == (theirs.precision, theirs.recall, theirs.f1)


@profile
@given(data(), st.sampled_from(["bio", "bioes"]))
def test_conlleval_reads_every_scheme_alike(pair, scheme):
    plain = [[one.column("phrase", scheme="bio") for one in y] for y in pair]
    other = [[one.column("phrase", scheme=scheme) for one in y] for y in pair]
    assert metrics.conlleval(*plain).per_label == metrics.conlleval(*other).per_label


def tag_sequences(alphabet):
    tags = st.sampled_from(["O", *(f"{prefix}-{kind}" for prefix in alphabet for kind in ("x", "y-z"))])
    pairs = st.lists(st.tuples(tags, tags), max_size=9)
    return st.lists(pairs, max_size=4)


@settings(profile, max_examples=80)
@given(st.sampled_from(["BI", "IE", "I", "[]", "[.", "]."]).flatmap(tag_sequences))
def test_conlleval_follows_the_script_on_ill_formed_tags(pairs):
    y_true, y_pred = ([[tags[side] for tags in sequence] for sequence in pairs] for side in (0, 1))
    scores = metrics.conlleval(y_true, y_pred)
    correct, guessed, found = perl_counts(y_true, y_pred)
    assert set(scores.per_label) == guessed.keys() | found.keys()
    for kind, score in scores.per_label.items():
        assert (score.correct, score.predicted, score.support) == (correct[kind], guessed[kind], found[kind])


@profile
@given(data(), st.sampled_from(["phrase", "tag"]))
def test_step_measures(pair, level):
    columns = [[name for one in y for name in one.column(level)] for y in pair]
    right = [a == b for a, b in zip(*columns, strict=True)]
    assert metrics.accuracy(*pair, level) == pytest.approx(np.mean(right), rel=1e-12)
    assert metrics.accuracy(*pair)[level] == metrics.accuracy(*pair, level)
    matrix, names = metrics.confusion(*pair, level)
    cells = Counter(zip(*columns, strict=True))
    assert {(a, b): matrix[i, j] for i, a in enumerate(names) for j, b in enumerate(names) if matrix[i, j]} == cells
    both = [
        all(one.column(name)[t] == other.column(name)[t] for name in ("phrase", "tag"))
        for one, other in zip(*pair, strict=True)
        for t in range(one.length)
    ]
    assert metrics.joint_accuracy(*pair) == pytest.approx(np.mean(both), rel=1e-12)


@profile
@given(data(), st.sampled_from(["phrase", "tag"]))
def test_exact_match_compares_segments(pair, level):
    zipped = list(zip(*pair, strict=True))
    same = [one.segments(level) == other.segments(level) for one, other in zipped]
    assert metrics.exact_match(*pair, level) == np.mean(same)
    all_same = [all(a.segments(name) == b.segments(name) for name in ("phrase", "tag")) for a, b in zipped]
    assert metrics.exact_match(*pair) == np.mean(all_same)


@profile
@given(st.sets(st.integers(1, 11), max_size=5), st.sets(st.integers(1, 11), max_size=5), st.integers(0, 3))
def test_boundaries_are_matched_at_most_once_and_as_many_as_can_be(one, other, tolerance):
    topology = Topology({"phrase": ["a", "b"]}, max_duration={"phrase": None})

    def labels(borders):
        cuts = [0, *sorted(borders), 12]
        return Labels.from_segments(topology, {"phrase": [(i, j, "a") for i, j in pairwise(cuts)]})

    matched = most_matches(sorted(one), sorted(other), tolerance)
    expected = 2 * matched / (len(one) + len(other)) if one or other else 1.0
    ours = metrics.boundary_f1([labels(one)], [labels(other)], "phrase", tolerance=tolerance)
    assert ours == pytest.approx(expected, rel=1e-12)


# ------------------------------------------------------------------------------
# Identities


@profile
@given(data())
def test_a_perfect_prediction_has_one_everywhere(pair):
    truth = pair[0]
    assert metrics.accuracy(truth, truth) == {"phrase": 1.0, "tag": 1.0}
    assert metrics.joint_accuracy(truth, truth) == metrics.exact_match(truth, truth) == 1.0
    for level in ("phrase", "tag"):
        assert metrics.segment_scores(truth, truth, level, ignore=()).f1 == 1.0
        assert metrics.boundary_f1(truth, truth, level) == 1.0
        matrix, _ = metrics.confusion(truth, truth, level)
        assert np.trace(matrix) == matrix.sum() == sum(one.length for one in truth)


@profile
@given(data())
def test_swapping_truth_and_prediction_swaps_precision_and_recall(pair):
    one = metrics.segment_scores(*pair, "phrase")
    other = metrics.segment_scores(*pair[::-1], "phrase")
    assert (one.precision, one.recall, one.f1) == (other.recall, other.precision, other.f1)


def test_a_unit_level_counts_every_step():
    truth = [Labels.from_columns(UNIT, {"phrase": ["NP"] * 3, "tag": ["N", "N", "V"]})]
    guess = [Labels.from_columns(UNIT, {"phrase": ["NP"] * 3, "tag": ["N", "V", "V"]})]
    scores = metrics.segment_scores(truth, guess, "tag")
    assert (scores.correct, scores.predicted, scores.support) == (2, 3, 3)
    assert scores.f1 == metrics.accuracy(truth, guess, "tag") == pytest.approx(2 / 3)


def test_worked_example():
    """Truth [NP NP][NP][O][VP VP], guess [NP][NP NP][O][VP VP]: O and VP are right."""
    truth = [
        Labels.from_segments(
            PERSISTING,
            {
                "phrase": [(0, 2, "NP"), (2, 3, "NP"), (3, 4, "O"), (4, 6, "VP")],
                "tag": [(0, 2, "N"), (2, 3, "N"), (3, 4, "V"), (4, 6, "V")],
            },
        )
    ]
    guess = [
        Labels.from_segments(
            PERSISTING,
            {
                "phrase": [(0, 1, "NP"), (1, 3, "NP"), (3, 4, "O"), (4, 6, "VP")],
                "tag": [(0, 1, "N"), (1, 3, "N"), (3, 4, "V"), (4, 6, "V")],
            },
        )
    ]
    scores = metrics.segment_scores(truth, guess, "phrase")
    assert (scores.precision, scores.recall, scores.f1, scores.support) == (1 / 3, 1 / 3, 1 / 3, 3)
    assert scores.per_label == {"VP": metrics.Score(1, 1, 1), "NP": metrics.Score(0, 2, 2)}
    assert metrics.accuracy(truth, guess) == {"phrase": 1.0, "tag": 1.0}
    assert metrics.joint_accuracy(truth, guess) == 1.0
    assert metrics.exact_match(truth, guess) == 0.0
    # true boundaries 2, 3, 4; guessed 1, 3, 4
    assert metrics.boundary_f1(truth, guess, "phrase") == pytest.approx(2 / 3)
    assert metrics.boundary_f1(truth, guess, "phrase", tolerance=1) == 1.0


# ------------------------------------------------------------------------------
# Partial truth, other topologies, errors


def test_unknown_cells_are_left_out_of_step_measures():
    truth = [Labels.from_columns(UNIT, {"phrase": ["NP", "?", "O"], "tag": ["N", "N", "?"]})]
    guess = [Labels.from_columns(UNIT, {"phrase": ["NP", "VP", "NP"], "tag": ["N", "V", "V"]})]
    assert metrics.accuracy(truth, guess) == {"phrase": 0.5, "tag": 0.5}
    assert metrics.joint_accuracy(truth, guess) == 1.0
    assert metrics.confusion(truth, guess, "phrase")[0].sum() == 2
    with pytest.raises(ValueError, match=r"y_true\[0\]: level 'phrase' is unknown at 0"):
        metrics.segment_scores(truth, guess, "phrase")


def test_nothing_known_is_nan():
    unknown = [Labels.unknown(UNIT, 2)]
    guess = [Labels.from_columns(UNIT, {"phrase": ["NP", "VP"], "tag": ["N", "V"]})]
    assert math.isnan(metrics.accuracy(unknown, guess, "tag"))
    assert math.isnan(metrics.joint_accuracy([], []))
    assert math.isnan(metrics.exact_match([], []))
    assert metrics.report(unknown, guess, output_dict=True)["levels"]["tag"]["accuracy"] is None
    assert "phrase: accuracy - of 0 steps" in metrics.report(unknown, guess)


def test_a_flat_prediction_can_be_scored_at_its_own_level():
    flat = Topology({"tag": ["V", "X", "N"]})
    truth = [Labels.from_columns(UNIT, {"phrase": ["NP", "VP"], "tag": ["N", "V"]})]
    guess = [Labels.from_columns(flat, {"tag": ["N", "X"]})]
    assert metrics.accuracy(truth, guess, "tag") == 0.5
    assert metrics.confusion(truth, guess, "tag")[1] == ("N", "V", "X")
    with pytest.raises(ValueError, match=r"y_pred\[0\]: unknown level: 'phrase'"):
        metrics.accuracy(truth, guess)


def test_root_classes_are_a_level():
    truth = [Labels.from_columns(CLASSES, {"root": "even", "tag": ["N", "V"]})]
    guess = [Labels.from_columns(CLASSES, {"root": "odd", "tag": ["N", "V"]})]
    assert metrics.accuracy(truth, guess) == {"root": 0.0, "tag": 1.0}
    assert metrics.accuracy(truth, guess, 1) == 1.0


def complete(length):
    return Labels.from_columns(UNIT, {"phrase": ["NP"] * length, "tag": ["N"] * length})


@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        ([complete(2)], [], "y_true has 1 sequence but y_pred has 0"),
        ([complete(2)] * 2, [complete(2), complete(3)], r"y_true\[1\] has 2 steps but y_pred\[1\] has 3"),
        ([complete(2)], [Labels.unknown(UNIT, 2)], r"y_pred\[0\]: level 'phrase' is unknown at 0"),
        ([complete(3), Labels.unknown(UNIT, 2)], [complete(3), complete(2)], r"y_true\[1\]: level 'phrase'"),
    ],
)
def test_errors_name_the_sequence(y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        metrics.segment_scores(y_true, y_pred, "phrase")


def test_errors_name_what_was_given():
    labels = complete(2)
    with pytest.raises(TypeError, match="y_true is one Labels; expected a list"):
        metrics.accuracy(labels, labels)
    with pytest.raises(ValueError, match=r"y_pred\[0\]: one list of labels for the levels 'phrase', 'tag'"):
        metrics.accuracy([labels], [["N", "N"]])
    with pytest.raises(ValueError, match="tolerance is -1"):
        metrics.boundary_f1([labels], [labels], "tag", tolerance=-1)
    with pytest.raises(ValueError, match="did you mean 'phrase'"):
        metrics.exact_match([labels], [labels], "phrases")
    with pytest.raises(ValueError, match=r"y_true\[0\] has 2 tags but y_pred\[0\] has 1"):
        metrics.conlleval([["O", "O"]], [["O"]])
    with pytest.raises(TypeError, match=r"y_true\[0\] is the string 'O'"):
        metrics.conlleval(["O"], ["O"])


# ------------------------------------------------------------------------------
# Report


@profile
@given(data())
def test_report_holds_the_functions_numbers(pair):
    numbers = json.loads(json.dumps(metrics.report(*pair, output_dict=True), allow_nan=False))
    assert numbers["joint_accuracy"] == metrics.joint_accuracy(*pair)
    assert numbers["exact_match"] == metrics.exact_match(*pair)
    level = numbers["levels"]["phrase"]
    scores = metrics.segment_scores(*pair, "phrase")
    assert level["accuracy"] == metrics.accuracy(*pair, "phrase")
    assert level["segments"] == scores.to_dict()
    assert level["boundary_f1"] in (None, metrics.boundary_f1(*pair, "phrase"))
    text = metrics.report(*pair, digits=4)
    assert f"phrase: accuracy {level['accuracy']:.4f}" in text
    assert all(name in text for name in scores.per_label)


def test_report_says_which_sequences_its_segments_are_from():
    gap = Labels.from_columns(UNIT, {"phrase": ["NP", "?"], "tag": ["N", "N"]})
    text = metrics.report([complete(2), gap], [complete(2), complete(2)])
    assert "as conlleval counts)\n(segments of the 1 of 2 sequences that are fully labelled)" in text
    assert text.endswith("all levels right: 1.000 of 3 steps, 1.000 of 1 sequence")


def test_report_shows_no_segments_where_no_sequence_is_fully_labelled():
    gap = Labels.from_columns(UNIT, {"phrase": ["NP", "?"], "tag": ["N", "N"]})
    text = metrics.report([gap], [complete(2)])
    phrase, tag = text.split("\n\ntag: ")
    assert phrase == "phrase: accuracy 1.000 of 1 step\n(no sequence is fully labelled: segments are not scored)"
    assert "segments are not scored" not in tag


# ------------------------------------------------------------------------------
# Levels whose segments matter


def test_a_plain_column_is_scored_by_segments_where_the_prediction_has_them():
    lasting = Topology({"action": ["a", "b"]}, max_duration={"action": 5})
    found = [Labels.from_segments(lasting, {"action": [(0, 2, "a"), (2, 5, "b")]})]
    columns = [["a", "a", "a", "b", "b"]]
    for truth in (columns, [{"action": columns[0]}]):
        assert metrics.segment_scores(truth, found, "action").support == 2
        assert metrics.segment_scores(found, truth, "action").predicted == 2
        assert metrics.boundary_f1(truth, found, "action", tolerance=1) == 1.0
        assert metrics.exact_match(truth, found) == 0.0


@profile
@given(data())
def test_the_report_has_both_accuracies(pair):
    truth, guess = pair
    numbers = metrics.report(truth, guess, output_dict=True)["levels"]["phrase"]
    tags = [[y.column("phrase", "bio") for y in side] for side in (truth, guess)]
    if numbers["tag_accuracy"] is not None:
        assert numbers["tag_accuracy"] == pytest.approx(metrics.conlleval(*tags).accuracy, rel=1e-12)
    assert numbers["accuracy"] == metrics.accuracy(truth, guess, "phrase")


def labels_over(lasting, columns):
    bottom = list(columns)[-1]
    states = {level: sorted(set(column)) for level, column in columns.items()}
    topology = Topology(states, max_duration={bottom: None} if lasting else None)
    return [Labels.from_columns(topology, columns)]


@pytest.mark.parametrize("swapped", [False, True])
def test_labels_with_a_unit_bottom_are_scored_by_segments_next_to_lasting_ones(swapped):
    truth, guess = list("aaabb"), list("aabbb")
    one, other = labels_over(swapped, {"tag": truth}), labels_over(not swapped, {"tag": guess})
    scores = metrics.segment_scores(one, other)
    assert (scores.support, scores.predicted, scores.correct) == (2, 2, 0)
    assert metrics.accuracy(one, other) == {"tag": 0.8}
    assert metrics.exact_match(labels_over(True, {"tag": truth}), labels_over(False, {"tag": truth})) == 1.0


def test_a_chain_is_scored_by_segments_at_a_level_that_is_nested_in_the_truth():
    phrases = ["NP", "NP", "VP"]
    truth = labels_over(False, {"phrase": phrases, "tag": ["D", "N", "V"]})
    guess = labels_over(False, {"phrase": phrases})
    assert metrics.segment_scores(truth, guess, "phrase").support == 2
    assert metrics.segment_scores(truth, guess, "phrase").f1 == 1.0


# ------------------------------------------------------------------------------
# Action segmentation


def runs_of(y, level, ignore):
    return [segment for segment in y.segments(level) if segment[2] not in ignore]


def overlap_twin(y_true, y_pred, level, overlap, ignore):
    """The loop that papers publish: true positives, false positives, false negatives over all sequences."""
    right = wrong = missed = 0
    for one, other in zip(y_true, y_pred, strict=True):
        true, hits = runs_of(one, level, ignore), set()
        for start, stop, label in runs_of(other, level, ignore):
            shares = []
            for i, j, name in true:
                common = len(set(range(start, stop)) & set(range(i, j)))
                either = len(set(range(start, stop)) | set(range(i, j)))
                shares.append(common / either if name == label else 0.0)
            best = max(range(len(shares)), key=lambda k: (shares[k], -k), default=None)
            if best is not None and shares[best] >= overlap and best not in hits:
                hits.add(best)
                right += 1
            else:
                wrong += 1
        missed += len(true) - len(hits)
    return 2 * right / (2 * right + wrong + missed) if right else 0.0


def edits(one, other):
    """Levenshtein's distance by its definition."""
    if not one or not other:
        return len(one) + len(other)
    same = edits(one[1:], other[1:]) + (one[0] != other[0])
    return min(same, edits(one[1:], other) + 1, edits(one, other[1:]) + 1)


def most_pairs(true, pred, tolerance):
    """The largest matching by trying every choice for the first true segment."""
    if not true:
        return 0
    (i, j, label), rest = true[0], true[1:]
    best = most_pairs(rest, pred, tolerance)
    for k, (start, stop, name) in enumerate(pred):
        if name == label and abs(start - i) <= tolerance and abs(stop - j) <= tolerance:
            best = max(best, 1 + most_pairs(rest, pred[:k] + pred[k + 1 :], tolerance))
    return best


@given(pair=data(), ignore=st.sampled_from([(), ("O",), ("NP", "V")]), overlap=st.sampled_from([0.1, 0.25, 0.5, 1.0]))
@profile
def test_overlaps_are_counted_as_papers_do(pair, ignore, overlap):
    for level in ("phrase", "tag"):
        found = metrics.overlap_scores(*pair, level, overlap, ignore)
        assert found.f1 == pytest.approx(overlap_twin(*pair, level, overlap, ignore), abs=1e-12)
        assert found.support == sum(len(runs_of(one, level, ignore)) for one in pair[0])
        exact = metrics.segment_scores(*pair, level, ignore)
        assert found.correct >= exact.correct
        if overlap == 1.0:
            assert found.per_label == exact.per_label


@given(pair=data(), ignore=st.sampled_from([(), ("O",), ("NP", "VP", "O")]))
@profile
def test_edit_score_is_the_mean_over_sequences(pair, ignore):
    expected = []
    for one, other in zip(*pair, strict=True):
        labels = [[label for *_, label in runs_of(y, "phrase", ignore)] for y in (one, other)]
        longest = max(map(len, labels))
        expected.append(1 - edits(labels[0][:6], labels[1][:6]) / longest if 0 < longest <= 6 else None)
    scores = metrics.edit_score(*pair, "phrase", ignore)
    if None not in expected:
        assert scores == pytest.approx(np.mean(expected), abs=1e-12)
    elif not any(runs_of(y, "phrase", ignore) for side in pair for y in side):
        assert scores == 1.0


@given(pair=data(), tolerance=st.integers(0, 3))
@profile
def test_segments_within_a_tolerance_are_matched_at_most_once_and_as_many_as_can_be(pair, tolerance):
    scores = metrics.segment_scores(*pair, "phrase", ignore=(), tolerance=tolerance)
    segments = [[runs_of(y, "phrase", ()) for y in side] for side in pair]
    assert scores.correct == sum(most_pairs(*both, tolerance) for both in zip(*segments, strict=True))
    assert scores.predicted == sum(map(len, segments[1]))
    if tolerance == 0:
        assert scores == metrics.segment_scores(*pair, "phrase", ignore=())


@given(pair=data())
@profile
def test_means_over_classes(pair):
    truth, guess = ([label for y in side for label in y.column("phrase")] for side in pair)
    right = defaultdict(list)
    for one, other in zip(truth, guess, strict=True):
        right[one].append(one == other)
    assert metrics.mean_class_accuracy(*pair, "phrase") == pytest.approx(np.mean([np.mean(v) for v in right.values()]))
    scores = metrics.segment_scores(*pair, "phrase", ignore=())
    ratios = [(s.precision, s.recall, s.f1) for s in scores.per_label.values()]
    assert (scores.macro_precision, scores.macro_recall, scores.macro_f1) == pytest.approx(np.mean(ratios, axis=0))


def test_measures_of_segments_warn_where_segments_are_single_steps():
    columns = [["N", "V", "N"], ["V", "V", "N"]]
    unit = [Labels.from_columns(UNIT, {"phrase": ["NP"] * 3, "tag": tags}) for tags in columns]
    with pytest.warns(UserWarning, match="every segment of level .tag. has one step"):
        scores = metrics.segment_scores(unit[:1], unit[1:], "tag")
    assert scores.f1 == metrics.accuracy(unit[:1], unit[1:], "tag")
    with pytest.warns(UserWarning, match="every segment of level .tag. has one step"):
        metrics.overlap_scores(unit[:1], unit[1:], "tag")
    assert "every segment has one step" in metrics.report(unit[:1], unit[1:])
    assert metrics.segment_scores(unit[:1], unit[1:], "phrase").f1 == 1.0


@pytest.mark.parametrize("overlap", [0, -0.5, 1.1])
def test_an_overlap_is_a_share(overlap):
    y = [Labels.from_columns(REORDERED, {"phrase": ["NP", "O"]})]
    with pytest.raises(ValueError, match=f"overlap is {overlap}; expected a share"):
        metrics.overlap_scores(y, y, "phrase", overlap)
