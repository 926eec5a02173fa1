"""Wrong use: an error or a warning names the thing, what it is, and what was expected."""

import re
import sys
import warnings

import numpy as np
import pytest

from hscrf import (
    HHMM,
    HSCRF,
    LBFGS,
    ChainCRF,
    DynamicCRF,
    Potentials,
    SemiCRF,
    Token,
    Topology,
    k_best,
    marginals,
    sample,
)
from hscrf.errors import LabelError

ROWS = [np.arange(12.0).reshape(6, 2)] * 3
NESTED = [{"act": list("aaabbb"), "step": list("xxyzzx")}] * 3
TAGGED = [{"act": ["B-a", "I-a", "I-a", "B-b", "I-b", "I-b"], "step": list("xxyzzx")}] * 3
STATES = Topology({"state": range(2)})
POTENTIALS = Potentials(STATES, 3)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("max_iter", "5", "max_iter is '5', expected a whole number of at least 0"),
        ("tol", "1", "tol is '1', expected a number"),
        ("smoothing", "x", "smoothing is 'x', expected a number of at least 0"),
        ("min_variance", None, "min_variance is None, expected a number"),
        ("root_ends", 3, "root_ends is 3, expected True or False"),
        ("n_jobs", "2", "n_jobs is '2', expected the number of threads, or -1 for one per core"),
        ("random_state", "s", "random_state is 's', expected a whole number, a generator or None"),
        ("scheme", 3, "scheme is 3, expected a name or a dict by level"),
        ("n_components", 2.5, "n_components is 2.5, expected the number of states"),
        ("n_components", 2, "there are both n_components and a topology, expected one of them"),
    ],
)
def test_options_of_an_hhmm_are_checked(option, value, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        HHMM(STATES, **{option: value}).fit(ROWS)


def test_a_topology_of_a_wrong_type_is_reported():
    with pytest.raises(ValueError, match="topology is a dict, expected a Topology or None"):
        HHMM({"state": 3}).fit(ROWS)


@pytest.mark.parametrize("family", [HSCRF, SemiCRF, DynamicCRF, ChainCRF])
def test_options_of_all_families_are_checked(family):
    with pytest.raises(ValueError, match="c2 is '1', expected a number of at least 0"):
        family(c2="1").fit(ROWS, NESTED)
    with pytest.raises(ValueError, match="random_state is 's'"):
        family(random_state="s").fit(ROWS, NESTED)


def test_a_switch_of_a_chain_is_checked():
    with pytest.raises(ValueError, match="edges is 'no', expected True or False"):
        ChainCRF(edges="no").fit(ROWS, [y["step"] for y in NESTED])


def test_labels_of_a_dynamic_crf_that_cannot_be_read():
    model = DynamicCRF().fit(ROWS, NESTED)
    with pytest.raises(LabelError) as error:
        model.predict(ROWS[:1], evidence=[{"act": list("aaqbbb")}])
    assert str(error.value) == "evidence[0] at step 2: unknown state of level 'act': 'q'; known are 'a', 'b'"
    assert (error.value.sequence, error.value.step, error.value.level) == (0, 2, "act")
    with pytest.raises(LabelError, match=r"evidence\[0\]: unknown level: 'acts' \(did you mean 'act'\?\)"):
        model.predict(ROWS[:1], evidence=[{"acts": list("aaabbb")}])
    with pytest.raises(LabelError, match=r"Y\[1\]: levels differ in length"):
        DynamicCRF().fit(ROWS, [NESTED[0], {"act": ["a"], "step": ["x", "y"]}, NESTED[0]])


@pytest.mark.parametrize(
    "fit", [lambda X: HSCRF().fit(X, NESTED[:1]), lambda X: HHMM(STATES).fit(X), lambda X: HSCRF().fit(X, NESTED * 2)]
)
def test_one_table_is_no_list_of_sequences(fit):
    with pytest.raises(ValueError, match=r"X is one table of 6 by 2, expected a list of sequences: \[X\] if it is one"):
        fit(ROWS[0])


@pytest.mark.parametrize("fit", [True, False])
def test_a_dict_is_neither_a_sequence_nor_a_list_of_them(fit):
    model = ChainCRF().fit([[{"w": "a"}, {"w": "b"}]] * 2, [["N", "V"]] * 2)
    call = (lambda X: ChainCRF().fit(X, [["N"]])) if fit else model.predict
    told = "X[0] is a dict, expected a sequence of steps; [X] if X is one sequence"
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        call([{"w": "a"}])
    with pytest.raises(ValueError, match=r"^X is a dict, expected a list of sequences$"):
        call({"w": ["a", "b"]})


def test_what_needs_pandas_says_so(monkeypatch, tmp_path):
    from hscrf.io import read_table

    model = ChainCRF().fit([[["a"], ["b"]]] * 2, [["N", "V"]] * 2)
    monkeypatch.setitem(sys.modules, "pandas", None)
    needs = (
        ("the table of weights_", lambda: model.weights_),
        ("a DataFrame of labels", lambda: model.predict([[["a"]]])[0].to_frame()),
        ("Parquet", lambda: next(read_table(tmp_path / "x.parquet"))),
    )
    for what, call in needs:
        with pytest.raises(ImportError, match=rf"^{what} needs pandas: pip install 'hscrf\[tables\]'$"):
            call()


def test_names_can_be_completed_without_pandas(monkeypatch):
    model = ChainCRF().fit([[["a"], ["b"]]] * 2, [["N", "V"]] * 2)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert {"predict", "weights_", "topology_"} <= set(dir(model))


def test_rows_of_two_lengths():
    with pytest.raises(ValueError, match=r"^X\[0\] has 1 column at step 1 but 2 at step 0$"):
        HSCRF().fit([[[1, 2], [3]]], [["a", "b"]])


def test_development_data_are_a_pair():
    with pytest.raises(ValueError, match=r"development is a list, expected a pair \(X, Y\)"):
        HSCRF().fit(ROWS, NESTED, development=ROWS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": "a"}, "patience is 'a', expected a whole number of at least 1"),
        ({"callback": 3}, "callback is 3, expected a function of an entry of the history"),
        ({"sample_weight": ["a"] * 3}, "sample_weight is ['a', 'a', 'a'], expected a number for each sequence"),
    ],
)
def test_arguments_of_fit_are_checked(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        HSCRF().fit(ROWS, NESTED, **options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: HSCRF(features=Token("act")).fit(ROWS, NESTED), "expected a list such as [Token('act')]"),
        (lambda: HSCRF(children="none").fit(ROWS, NESTED), "children is 'none', expected 'auto', 'seen' or 'all'"),
        (lambda: HSCRF().fit(ROWS, NESTED).score(ROWS), "Y is None, expected a list with the labels of each sequence"),
        (lambda: HSCRF().fit(3, NESTED), "X is an int, expected a list of sequences"),
        (lambda: HSCRF().sample(10), "X is an int, expected a list of sequences"),
        (lambda: marginals(3), "potentials is an int, expected Potentials"),
        (lambda: LBFGS(max_iter="a"), "LBFGS: max_iter is 'a', expected at least 1"),
        (lambda: sample(POTENTIALS, -1), "n is -1, expected a whole number of at least 0"),
        (lambda: HSCRF().fit(ROWS, NESTED).sample(ROWS, n="a"), "n is 'a', expected a whole number of at least 0"),
        (lambda: k_best(POTENTIALS, 0), "k is 0, expected a whole number of at least 1"),
    ],
)
def test_values_of_a_wrong_type_are_named(wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        wrong()


def test_posteriors_and_marginals_are_shown_in_a_line():
    (posterior,) = HSCRF().fit(ROWS, NESTED).posterior(ROWS[:1], evidence=NESTED[:1])
    assert repr(posterior) == "Posterior(6 steps, root > act > step, with evidence)"
    assert re.fullmatch(r"Marginals\(6 steps, root > act > step, log_partition [\d.]+\)", repr(posterior.marginals))


# -- schemes


def test_a_wrong_scheme_is_not_blamed_on_a_sequence():
    with pytest.raises(ValueError, match=r"^scheme is 'boi'; expected 'auto', 'plain', 'bio' or 'bioes'$"):
        HSCRF(scheme="boi").fit(ROWS, NESTED)
    with pytest.raises(ValueError, match=r"^scheme names the unknown level: 'acts' \(did you mean 'act'\?\)"):
        HSCRF(scheme={"acts": "bio"}).fit(ROWS, NESTED)


@pytest.mark.parametrize("scheme", ["plain", {"act": "plain", "step": "plain"}, {"step": "plain"}])
def test_a_plain_scheme_for_tags_is_reported(scheme):
    line = "level 'act' has labels such as B-a, which scheme='plain' reads as names of states, not as segments"
    with pytest.warns(UserWarning, match=line):
        HSCRF(scheme=scheme).fit(ROWS, TAGGED)


@pytest.mark.parametrize("model", [HSCRF(), HSCRF(scheme={"act": "bio"}), DynamicCRF()])
def test_tags_that_are_read_or_meant_as_states_need_no_word(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(ROWS, TAGGED)


def test_a_tag_that_continues_nothing_is_reported():
    tags = ["B-NP", "I-VP", "I-VP", "O", "I-NP", "I-NP"]
    line = "Y[0] at step 1: level 'label' has I-VP after B-NP, which begins a segment as B-VP would (4 such labels)"
    with pytest.warns(UserWarning, match=re.escape(line)):
        model = HSCRF().fit(ROWS[:2], [tags, tags])
    assert model.topology_.states[1] == ("NP", "O", "VP")


# -- tuples


@pytest.mark.parametrize("state", [("a", 1), ["a", 1]])
def test_a_tuple_is_no_state(state):
    kind = type(state).__name__
    with pytest.raises(LabelError, match=rf"is not a segment \(start, stop, state\), and a state is never a {kind}"):
        HSCRF().fit(ROWS, [{"act": [state] * 6}] * 3)
