"""Wrong data, labels, evidence and arguments of an estimator: the error names what is wrong, and where."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hscrf
from hscrf import (
    HSCRF,
    LBFGS,
    InfeasibleError,
    Labels,
    Token,
    Topology,
)
from toy import NUMBERS, X, Y, with_topology

GIVEN = Topology(
    {"phrase": ["NP", "VP"], "tag": ["D", "J", "N", "V"]},
    children={"phrase": {"NP": ["D", "J", "N"]}},
    successors={"tag": {"D": ["J", "N"]}},
)


def with_tag(n, t, tag):
    """The labels with one tag changed."""
    changed = [{level: list(column) for level, column in y.items()} for y in Y]
    changed[n]["tag"][t] = tag
    return changed


def without_step(n):
    return [{level: column[: len(column) - (k == n)] for level, column in y.items()} for k, y in enumerate(Y)]


def broken_nesting(n):
    labels = [Labels.from_columns(GIVEN, y) for y in Y]
    topology = Topology(GIVEN.to_dict()["levels"], max_duration={"tag": None})
    labels = [Labels(topology, y.states, y.ends) for y in labels]
    ends = labels[n].ends.copy()
    ends[2, 0], ends[1, 0] = 0, 1
    labels[n] = Labels(topology, labels[n].states, ends)
    return labels


FIT = {
    "negative penalty": (
        HSCRF(features=[Token("tag", penalty=-1.0)]),
        X,
        Y,
        ValueError,
        "penalty is -1.0, expected a f",
    ),
    "no penalty": (
        HSCRF(features=[Token("tag", penalty="10")]),
        X,
        Y,
        ValueError,
        r"features\[0\]: penalty is '10', exp",
    ),
    "fewer labels": (HSCRF(), X, Y[:4], ValueError, "X has 6 sequences but Y has 4"),
    "shorter labels": (HSCRF(), X, without_step(2), ValueError, r"X\[2\] has 5 steps but Y\[2\] has 4"),
    "ragged columns": (
        HSCRF(),
        X[:1],
        [{**Y[0], "tag": ["N"]}],
        ValueError,
        r"Y\[0\]: columns differ in length: 'phrase'",
    ),
    "no data": (HSCRF(), [], [], ValueError, "X is empty"),
    "empty sequence": (HSCRF(), [*X, []], [*Y, {"phrase": [], "tag": []}], ValueError, r"X\[6\] is empty"),
    "empty labels": (HSCRF(GIVEN), X[:1], [{"phrase": [], "tag": []}], ValueError, r"Y\[0\]: .*empty"),
    "unknown label": (
        HSCRF(GIVEN),
        X,
        with_tag(3, 1, "Z"),
        ValueError,
        r"Y\[3\] at step 1: unknown state of level 'tag': 'Z'",
    ),
    "forbidden child": (
        HSCRF(GIVEN),
        X,
        with_tag(1, 1, "V"),
        InfeasibleError,
        r"Y\[1\]: tag 'V' at 1 is not a child of phrase 'NP'",
    ),
    "forbidden successor": (
        HSCRF(GIVEN),
        X,
        with_tag(0, 1, "D"),
        InfeasibleError,
        r"Y\[0\]: level 'tag': 'D' at 1 may not follow 'D'",
    ),
    "forbidden duration": (
        HSCRF(Topology(GIVEN.to_dict()["levels"], max_duration={"phrase": 2})),
        X,
        Y,
        InfeasibleError,
        r"Y\[0\]: phrase 'NP' from 0 to 3 lasts 3 steps; expected at most 2",
    ),
    "broken nesting": (
        HSCRF(),
        X,
        broken_nesting(4),
        InfeasibleError,
        r"Y\[4\]: level 'phrase' ends at 0, but 'tag' goes on there",
    ),
    "broken partial nesting": (
        HSCRF(),
        X,
        [Labels(y.topology, np.where(np.arange(y.length) == 1, -1, y.states), y.ends) for y in broken_nesting(4)],
        InfeasibleError,
        r"Y\[4\]: level 'phrase' ends at 0, but 'tag' goes on there",
    ),
    "other topologies": (
        HSCRF(),
        X[:2],
        [Labels.from_columns(GIVEN, Y[0]), Labels.from_columns(with_topology()[0][1], Y[1])],
        ValueError,
        r"Y\[1\] has .* with other states or rules",
    ),
    "another level": (HSCRF(), X[:2], [Y[0], {**Y[1], "word": ["a"] * 3}], ValueError, r"Y\[1\] has a level 'word'"),
    "a level without labels": (
        HSCRF(),
        X[:1],
        [{**Y[0], "tag": ["?"] * 6}],
        ValueError,
        "level 'tag' has no known label",
    ),
    "NaN in arrays": (
        HSCRF(missing="refuse"),
        [np.full((6, 1), np.nan)],
        Y[:1],
        ValueError,
        r"X\[0\] is missing at step 0 in column 'x0'",
    ),
    "NaN in dicts": (
        HSCRF(missing="refuse"),
        [[{"a": np.nan}] * 6],
        Y[:1],
        ValueError,
        r"X\[0\]\[0\]\['a'\] is missing",
    ),
    "solver": (HSCRF(solver="adam"), X, Y, ValueError, "solver is 'adam', expected 'lbfgs', 'sgd', 'perceptron'"),
    "pairs": (HSCRF(pairs="none"), X, Y, ValueError, "pairs is 'none', expected 'seen' or 'all'"),
    "scheme": (HSCRF(scheme="iob"), X, Y, ValueError, "scheme is 'iob'"),
    "penalty": (HSCRF(c2=-1), X, Y, ValueError, "c2 is -1, expected"),
    "level of a block": (HSCRF(features=[Token("word")]), X, Y, ValueError, "unknown level: 'word'"),
    "not a block": (
        HSCRF(features=["token"]),
        X,
        Y,
        ValueError,
        r"features\[0\] is 'token', expected one of Token, Start",
    ),
}


@pytest.mark.parametrize("case", FIT)
def test_bad_training_data(case):
    estimator, inputs, labels, error, message = FIT[case]
    with pytest.raises(error, match=message):
        clone(estimator).fit(inputs, labels)


def test_contradictions_between_partial_labels_are_named():
    topology = Topology(GIVEN.to_dict()["levels"], min_duration={"phrase": 2})
    good = Labels.unknown(topology, 3)
    bad = Labels(topology, [[0] * 3, [0, -1, 1], [-1] * 3], np.full((3, 3), -1))
    with pytest.raises(InfeasibleError, match=r"Y\[1\]: .*level 'phrase' is 'NP' at 0 and level 'phrase' is 'VP' at 2"):
        HSCRF().fit([X[1], X[1]], [good, bad])


def test_a_failed_fit_leaves_the_model_alone():
    fitted = HSCRF(solver=LBFGS(max_iter=5)).fit(X, Y)
    before = fitted.predict(X)
    for estimator, inputs, labels, error, _ in FIT.values():
        if estimator.solver == "lbfgs":
            with pytest.raises(error):
                clone(estimator).fit(inputs, labels)
    with pytest.raises(ValueError, match="solver is 'adam'"):
        fitted.set_params(solver="adam").fit(X[:2], Y[:2])
    with pytest.raises(ValueError, match="X has 2 sequences"):
        fitted.fit(X[:2], Y[:1])
    with pytest.raises(ValueError, match="unknown level"):
        fitted.set_params(solver="lbfgs").fit(X[:2], Y[:2], development=(X[:1], [{"tags": ["Z"] * 6}]))
    assert fitted.predict(X) == before


def test_labels_never_seen_are_wrong_and_impossible(toy_model):
    steps = sum(map(len, X))
    found = toy_model.predict(X)
    assert toy_model.score(X, [{level: y.column(level) for level in ("phrase", "tag")} for y in found]) == 1.0
    for n, t, tag in ((3, 1, "Z"), (1, 1, "V"), (0, 1, "D")):  # a state, a child, a succession
        changed = with_tag(n, t, tag)
        truth = [Y[k]["tag"][s] == y.column("tag")[s] for k, y in enumerate(found) for s in range(y.length)]
        assert toy_model.score(X, changed) == pytest.approx((sum(truth) - 1) / steps)
        likelihood = toy_model.log_likelihood(X, changed)
        assert not np.isnan(likelihood).any()
        others = np.arange(len(X)) != n
        np.testing.assert_array_equal(likelihood[others], toy_model.log_likelihood(X, Y)[others])
    assert toy_model.log_likelihood(X, with_tag(3, 1, "Z"))[3] == -np.inf
    assert toy_model.log_likelihood(X, with_tag(1, 1, "V"))[1] == -np.inf


def test_labels_that_do_not_fit_the_sequences_cannot_be_scored(toy_model):
    for verb in (toy_model.score, toy_model.log_likelihood):
        with pytest.raises(ValueError, match=r"X\[2\] has 5 steps but Y\[2\] has 4"):
            verb(X, without_step(2))
        with pytest.raises(ValueError, match="X has 6 sequences but Y has 4"):
            verb(X, Y[:4])


PREDICT = {
    "number of sequences": (X, [None], ValueError, "X has 6 sequences but evidence has 1"),
    "length": (X[:2], [None, {"tag": ["N"]}], ValueError, r"X\[1\] has 3 steps but evidence\[1\] has 1"),
    "unknown label": (X[:1], [{"tag": ["?", "Z"] + ["?"] * 4}], ValueError, r"evidence\[0\] at step 1: unknown state"),
    "contradiction": (
        X[:2],
        [None, {"phrase": ["?", "VP", "?"], "tag": ["?", "N", "?"]}],
        InfeasibleError,
        r"evidence\[1\]: tag 'N' at 1 is not a child of phrase 'VP'",
    ),
    "empty sequence": ([X[0], []], None, ValueError, r"X\[1\] is empty"),
    "no sequence": ([], None, ValueError, "X is empty"),
    "strings for dicts": ([["the", "cat"]], None, ValueError, r"X\[0\]\[0\] is a string, expected"),
    "arrays": ([np.zeros((2, 2))], None, ValueError, "X holds numeric arrays, but the model was trained on lists"),
}


@pytest.mark.parametrize("case", PREDICT)
def test_bad_requests(toy_model, case):
    inputs, evidence, error, message = PREDICT[case]
    for verb in (toy_model.predict, toy_model.predict_marginals, toy_model.sample, toy_model.entropy):
        with pytest.raises(error, match=message):
            verb(inputs, evidence=evidence)


def test_evidence_that_only_inference_can_refute(toy_model):
    inner = Labels(toy_model.topology_, [[0] * 3, [-1] * 3, [-1] * 3], [[-1] * 3, [0, -1, -1], [-1] * 3])
    closure = Labels(toy_model.topology_, [[0] * 3, [-1] * 3, [2, 3, -1]], inner.ends)  # N V under one phrase
    for loss in ("sequence", "step", "segment"):
        with pytest.raises(InfeasibleError, match=r"evidence\[1\]: no state of level 'phrase' is possible from 0 to 2"):
            toy_model.predict(X[1:2] * 2, evidence=[None, closure], loss=loss)
    topology = Topology(GIVEN.to_dict()["levels"], min_duration={"phrase": 2})
    timed = HSCRF(topology, solver=LBFGS(max_iter=2)).fit(X[1:2], [Labels.unknown(topology, 3)])
    bad = Labels(topology, [[0] * 3, [0, -1, 1], [-1] * 3], np.full((3, 3), -1))
    for loss in ("sequence", "step", "segment"):
        with pytest.raises(InfeasibleError, match=r"evidence\[1\]: .* level 'phrase' is 'NP' at 0 and .*'VP' at 2"):
            timed.predict(X[1:2] * 2, evidence=[None, bad], loss=loss)
        with pytest.raises(InfeasibleError, match=r"X\[1\]: .* allow no configuration of 1 steps"):
            timed.predict([X[1], X[1][:1]], loss=loss)  # no phrase is so short


def test_wrong_arguments_and_columns_of_predict(toy_model):
    with pytest.raises(ValueError, match="loss is 'hamming', expected 'sequence', 'step' or 'segment'"):
        toy_model.predict(X, loss="hamming")
    numeric = HSCRF(solver=LBFGS(max_iter=1)).fit(NUMBERS, Y)
    with pytest.raises(ValueError, match="X has 3 columns, but the model was trained on 2"):
        numeric.predict([np.zeros((2, 3))])
    with pytest.warns(UserWarning, match="numbers are missing in column 'x0', but none were missing in training"):
        numeric.predict([np.array([[0, 1], [np.nan, 1]])])


@pytest.mark.parametrize("verb", ["predict", "predict_marginals", "entropy", "sample", "potentials"])
def test_answers_need_a_fit(verb):
    with pytest.raises(NotFittedError, match="this HSCRF is not fitted yet: call fit first"):
        getattr(HSCRF(), verb)(X)


def test_other_methods_need_a_fit(tmp_path):
    for verb in (
        lambda m: m.score(X, Y),
        lambda m: m.log_likelihood(X, Y),
        lambda m: m.save(tmp_path / "m"),
        lambda m: m.weights_,
        lambda m: m.learned_topology(),
    ):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            verb(HSCRF())


@pytest.mark.parametrize(
    ("options", "X", "Y", "message"),
    [
        ({}, iter([]), [["a"]], "X is a list_iterator, expected a list of sequences"),
        ({}, [[["w"]]], iter([]), "Y is a list_iterator, expected a list with the labels of each sequence"),
        ({}, [[["w"]]], [[("a", "b")]], r"\('a', 'b'\) is not a segment \(start, stop, state\), and a state"),
        ({"topology": {"tag": ["a"]}}, [[["w"]]], [["a"]], "topology is a dict, expected a Topology or None"),
        ({"n_jobs": 0}, [[["w"]]], [["a"]], "n_jobs is 0, expected the number of threads, or -1 for one per core"),
    ],
)
def test_what_cannot_be_read_is_reported(options, X, Y, message):
    with pytest.raises(ValueError, match=message):
        HSCRF(**options).fit(X, Y)


def test_margins_that_are_none():
    with pytest.raises(ValueError, match=r"margin\['tag'\] is -1, expected a finite number of at least 0"):
        hscrf.HSCRF(margin={"tag": -1}).fit([[["a"]]], [{"tag": ["x"]}])
    with pytest.raises(ValueError, match="phrase"):
        hscrf.HSCRF(margin={"phrase": 1}).fit([[["a"]]], [{"tag": ["x"]}])


@pytest.mark.parametrize("penalty", ["long", -1, np.inf, None])
def test_a_penalty_is_a_number_or_the_mean_length(penalty):
    with pytest.raises(ValueError, match=r"features\[0\]: penalty is .*, expected a finite number .* or 'size'"):
        HSCRF(features=[Token("phrase", penalty=penalty)]).fit(X, Y)
