"""Errors have sequence, step and cells as attributes, and can be pickled."""

import copy
import io
import pickle

import numpy as np
import pytest

import hscrf
from hscrf import HSCRF, SemiCRF, Topology
from hscrf.errors import Cell, DataFileError, InfeasibleError, LabelError, SequenceError
from hscrf.io import Document, read_columns, read_crfsuite, read_jsonl, read_table, to_labels
from hscrf.labels.labels import Labels

CELLS = (Cell("phrase", 7, "ends"), Cell("tag", 7, "goes on"))
ERRORS = [
    InfeasibleError("level 'phrase' ends at 7", cells=CELLS),
    InfeasibleError("nothing is possible"),
    LabelError("unknown state", level="tag", step=3),
    LabelError("columns differ"),
]


def content(error):
    return type(error), str(error), vars(error)


# ------------------------------------------------------------------------------
# The classes


@pytest.mark.parametrize("error", [*ERRORS, *(error.of_sequence(5, "evidence") for error in ERRORS)])
@pytest.mark.parametrize("passage", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_come_through_pickle_whole(error, passage):
    assert content(passage(error)) == content(error)


@pytest.mark.parametrize("known", [{}, {"sequence": 2, "step": 5}])
def test_errors_of_files_come_through_pickle_whole(known):
    error = DataFileError("a.txt", 7, "no label", **known)
    again = pickle.loads(pickle.dumps(error))
    assert content(again) == content(error)
    assert str(again) == "a.txt, line 7: no label"
    assert (again.file, again.line, again.problem) == ("a.txt", 7, "no label")
    assert (again.sequence, again.step) == (known.get("sequence"), known.get("step"))


@pytest.mark.parametrize("error", ERRORS)
def test_a_sequence_is_named_once(error):
    """A caller that knows the number in the whole data may rename what was numbered within a part."""
    assert error.sequence is None
    part = error.of_sequence(2)
    whole = part.of_sequence(102, "evidence")
    assert (part.sequence, whole.sequence) == (2, 102)
    assert str(whole) == str(part).replace("Y[2]", "evidence[102]")
    assert whole.problem == str(error)
    assert content(error.of_sequence(102, "evidence")) == content(whole)


def test_messages_begin_with_the_sequence():
    infeasible, _, label, columns = ERRORS
    assert str(infeasible.of_sequence(3)) == "Y[3]: level 'phrase' ends at 7"
    assert str(label.of_sequence(3, "evidence")) == "evidence[3] at step 3: unknown state"
    assert str(columns.of_sequence(0)) == "Y[0]: columns differ"


def test_the_first_cell_tells_the_step():
    assert [error.step for error in ERRORS] == [7, None, 3, None]
    assert issubclass(InfeasibleError, SequenceError)
    assert issubclass(LabelError, SequenceError)
    assert issubclass(SequenceError, ValueError)


# ------------------------------------------------------------------------------
# Cells of every rule

LEVELS = {"phrase": ["NP", "VP"], "tag": ["N", "V"]}
RULED = Topology(
    LEVELS,
    children={"phrase": {"NP": ["N"]}},
    successors={"phrase": {"VP": ["NP"]}},
    max_duration={"phrase": 2, "tag": None},
)
UNIT = Topology(LEVELS)
NEVER = np.array([[True, True], [False, False], [True, True]])
ONLY_V = np.array([[False, True]] * 3)


def labels(topology=RULED, states=None, ends=None, allowed=None):
    """Labels of three steps with a few known cells: {(level, time): value}."""
    x, e = (np.full((topology.depth, 3), -1) for _ in range(2))
    for cells, array in ((states, x), (ends, e)):
        for (level, t), value in (cells or {}).items():
            d = topology.level(level)
            array[d, t] = topology.state(d, value) if isinstance(value, str) else value
    return Labels(topology, x, e, allowed)


BROKEN = {
    "last step": (labels(ends={("tag", 2): 0}), ["level 'tag' goes on at 2"]),
    "root": (labels(ends={("root", 1): 1}), ["level 'root' ends at 1"]),
    "nesting": (
        labels(ends={("phrase", 1): 1, ("tag", 1): 0}),
        ["level 'phrase' ends at 1", "level 'tag' goes on at 1"],
    ),
    "unit bottom": (labels(UNIT, ends={("tag", 0): 0}), ["level 'tag' goes on at 0"]),
    "one state": (
        labels(states={("tag", 0): "N", ("tag", 1): "V"}, ends={("tag", 0): 0}),
        ["level 'tag' goes on at 0", "level 'tag' is 'N' at 0", "level 'tag' is 'V' at 1"],
    ),
    "children": (
        labels(states={("phrase", 1): "NP", ("tag", 1): "V"}),
        ["level 'tag' is 'V' at 1", "level 'phrase' is 'NP' at 1"],
    ),
    "successors": (
        labels(states={("phrase", 0): "VP", ("phrase", 1): "VP"}, ends={("root", 0): 0, ("phrase", 0): 1}),
        [
            "level 'phrase' is 'VP' at 1",
            "level 'phrase' is 'VP' at 0",
            "level 'phrase' ends at 0",
            "level 'root' goes on at 0",
        ],
    ),
    "durations": (
        labels(states={("phrase", 1): "NP"}, ends={("phrase", 0): 0, ("phrase", 1): 0, ("phrase", 2): 1}),
        [
            "level 'phrase' is 'NP' at 1",
            "level 'phrase' goes on at 0",
            "level 'phrase' goes on at 1",
            "level 'phrase' ends at 2",
        ],
    ),
    "empty set": (labels(allowed={"phrase": NEVER}), ["level 'phrase' is one of [] at 1"]),
    "another set": (
        labels(states={("tag", 2): "N"}, allowed={"tag": ONLY_V}),
        ["level 'tag' is 'N' at 2", "level 'tag' is one of ['V'] at 2"],
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_every_rule_names_its_cells(case):
    broken, cells = BROKEN[case]
    with pytest.raises(InfeasibleError) as caught:
        broken.check()
    assert list(map(str, caught.value.cells)) == cells
    assert caught.value.step == caught.value.cells[0].time


def test_the_closure_names_its_cells():
    asked = labels(states={("phrase", 0): "NP"}, ends={("phrase", 0): 0, ("phrase", 1): 0}, allowed={"tag": ONLY_V})
    with pytest.raises(InfeasibleError, match="no state of level 'phrase' is possible from 0 to 3") as caught:
        asked.closed()
    assert caught.value.cells == (Cell("phrase", 0, "is 'NP'"), Cell("tag", 0, "is one of ['V']"))


def test_prefixes_name_their_cells():
    columns = {"phrase": ["NP", "VP"], "tag": ["B-N", "I-N"]}
    with pytest.raises(InfeasibleError) as caught:
        Labels.from_columns(RULED, columns, scheme={"tag": "bio"})
    assert caught.value.cells == (Cell("phrase", 0, "ends"), Cell("tag", 0, "goes on"))


def test_inference_names_its_cells():
    evidence = labels(Topology(LEVELS, min_duration={"phrase": 2}), {("phrase", 0): "NP", ("phrase", 2): "VP"})
    with pytest.raises(InfeasibleError) as caught:
        hscrf.decode(hscrf.Potentials(evidence.topology, 3), evidence)
    assert caught.value.cells == (Cell("phrase", 0, "is 'NP'"), Cell("phrase", 2, "is 'VP'"))
    assert caught.value.sequence is None


# ------------------------------------------------------------------------------
# Sequences and steps

X = [[["a"], ["b"], ["a"]]] * 3
GOOD = {"phrase": ["NP", "VP", "VP"], "tag": ["N", "V", "N"]}


@pytest.mark.parametrize(
    ("bad", "level", "step"),
    [
        ({**GOOD, "tag": ["N", "V", "Z"]}, "tag", 2),
        ({"tag": ["N", "Z", "N"], "phrase": ["NP", "VP", "XP"]}, "phrase", 2),  # the level above is read first
        ({**GOOD, "tag": ["N", ["V"], "N"]}, "tag", 1),
        ({**GOOD, "phrase": [(0, 1, "NP"), (1, 3, "XP")]}, "phrase", 1),
        ({**GOOD, "tag": ["N"]}, None, None),
    ],
    ids=["unknown", "two", "list", "segment", "length"],
)
def test_labels_that_cannot_be_read_tell_where(bad, level, step):
    with pytest.raises(LabelError, match=r"^Y\[1\]") as caught:
        HSCRF(UNIT).fit(X, [GOOD, bad, GOOD])
    assert (caught.value.sequence, caught.value.level, caught.value.step) == (1, level, step)
    assert (f" at step {step}:" in str(caught.value)) == (step is not None)


@pytest.mark.parametrize(("bad", "step"), [("I_N", 1), (5, 1), (["B-N"], 1)])
def test_prefixes_that_cannot_be_read_tell_where(bad, step):
    with pytest.raises(LabelError, match="column 'tag' has the label") as caught:
        Labels.from_columns(RULED, {"tag": ["B-N", bad, bad]}, scheme="bio")
    assert (caught.value.level, caught.value.step) == ("tag", step)


def test_contradictions_tell_their_sequence():
    model = HSCRF(Topology(LEVELS, children={"phrase": {"NP": ["N"]}})).fit(X[:1], [GOOD])
    bad = {"phrase": ["NP", "?", "?"], "tag": ["V", "?", "?"]}
    for verb in (model.predict, model.predict_marginals):
        with pytest.raises(InfeasibleError, match=r"^evidence\[2\]: tag 'V' at 0 is not a child") as caught:
            verb(X, evidence=[None, None, bad])
        assert (caught.value.sequence, caught.value.cells[1].level) == (2, "phrase")
    with pytest.raises(InfeasibleError, match=r"^Y\[0\]: label 'NP' from 0 to 3 lasts 3 steps") as caught:
        SemiCRF(max_duration=2).fit(X[:1], [["B-NP", "I-NP", "I-NP"]])
    assert (caught.value.sequence, caught.value.step) == (0, 0)


# ------------------------------------------------------------------------------
# Files


def complaint(read, text, **options):
    with pytest.raises(DataFileError) as caught:
        list(read(io.StringIO(text), **options))
    return caught.value.line, caught.value.sequence, caught.value.step


@pytest.mark.parametrize(
    ("read", "text", "options", "where"),
    [
        (read_columns, "a N\n\nb N\nc\n", {"levels": ["tag"]}, (4, 1, 1)),
        (read_columns, "a B-N\nb N\n", {"levels": ["tag"], "scheme": "bio"}, (2, 0, 1)),
        (read_columns, "a N\nb V\nc J\nd A\n", {"levels": ["tag"], "scheme": "bio"}, (1, 0, 0)),
        (read_columns, "", {}, (1, None, None)),
        (read_jsonl, '{"tokens": ["a"]}\n\n{"tokens": []}\n', {}, (3, 1, None)),
        (read_jsonl, '{"tokens": ["a", 1]}\n', {}, (1, 0, 1)),
        (read_jsonl, '{"tokens": ["a"]}\n{"tok', {}, (2, 1, None)),
        (read_jsonl, '{"tokens": ["a", "b"], "labels": {"t": ["N", 1]}}', {}, (1, 0, 1)),
        (read_crfsuite, "N\ta\n\nN\ta\nN\ta:b\n", {}, (4, 1, 1)),
        (read_table, "sequence,x\na,1\nb,2\nb,?\n", {"numeric": ["x"]}, (4, 1, 1)),
        (read_table, "sequence,x\na,1\nb\n", {}, (3, None, None)),
    ],
)
def test_readers_tell_line_sequence_and_step(read, text, options, where):
    assert complaint(read, text, **options) == where


@pytest.mark.parametrize(
    ("given", "where", "message"),
    [
        ({"tag": ["N", "V", "X"]}, (9, 4, 2), "unknown state of level 'tag': 'X'; known are 'N', 'V'"),
        (
            {"phrase": ["VP", "NP", "NP"], "tag": ["N", "N", "V"]},
            (9, 4, 2),
            "tag 'V' at 2 is not a child of phrase 'NP'",
        ),
        ({"tag": ["N", "V"], "phrase": ["NP"] * 3}, (5, 4, None), "columns differ in length: 'tag' has 2"),
    ],
    ids=["label", "contradiction", "length"],
)
def test_documents_put_errors_into_their_lines(given, where, message):
    document = Document(list("abc"), given, lines=[5, 6, 9], file="f", number=4)
    with pytest.raises(DataFileError) as caught:
        to_labels(document, RULED)
    error = caught.value
    assert (error.line, error.sequence, error.step) == where
    assert error.problem.startswith(message)
    assert ("steps are counted from 0 at line 5" in error.problem) == ("not a child" in message)
