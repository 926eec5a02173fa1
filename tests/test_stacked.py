"""Sequences that come in one stack with their lengths, as hmmlearn takes them."""

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_matrix

from hscrf import HHMM, HSCRF, DynamicCRF, Topology, load
from hscrf.observations.readers import cut_apart

RNG = np.random.default_rng(0)
LENGTHS = [4, 6, 5]
STACK = np.concatenate([RNG.normal(3 * (k % 2), 1, (5, 2)) for k in range(3)])
LIST = [STACK[:4], STACK[4:10], STACK[10:]]
LABELS = list("aaaaabbbbbaaaaa")
NESTED = {"act": LABELS, "step": list("xxxyyzzzzzxxyyx")}
APART = [{level: column[i:j] for level, column in NESTED.items()} for i, j in ((0, 4), (4, 10), (10, 15))]


def test_an_hhmm_takes_a_stack():
    one, other = (HHMM(n_components=2, random_state=0, max_iter=5) for _ in range(2))
    one.fit(STACK, lengths=LENGTHS)
    other.fit(LIST)
    assert np.array_equal(one.coef_, other.coef_)
    assert one.predict(STACK, lengths=LENGTHS) == other.predict(LIST)
    assert one.score(STACK, lengths=LENGTHS) == other.score(LIST)
    assert one.score(STACK, LABELS_OF_STATES, lengths=np.array(LENGTHS)) == other.score(LIST, SPLIT_STATES)
    found = one.predict_marginals(STACK, lengths=LENGTHS)[1].state["state"]
    assert np.array_equal(found, other.predict_marginals(LIST)[1].state["state"])


LABELS_OF_STATES = [0] * 5 + [1] * 5 + [0] * 5
SPLIT_STATES = [LABELS_OF_STATES[:4], LABELS_OF_STATES[4:10], LABELS_OF_STATES[10:]]


def test_the_number_of_components_is_a_topology(tmp_path):
    model = HHMM(n_components=3, random_state=0, max_iter=2).fit(LIST)
    assert model.topology_ == Topology({"state": range(3)})
    assert model.classes_ == [0, 1, 2]
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.n_components == 3
    assert again.predict(LIST) == model.predict(LIST)
    again.set_params(max_iter=1).fit(LIST)


@pytest.mark.parametrize("family", [HSCRF, DynamicCRF])
@pytest.mark.parametrize("labels", [NESTED, pandas.DataFrame(NESTED), APART])
def test_crfs_take_a_stack(family, labels):
    one = family().fit(STACK, labels, lengths=LENGTHS)
    other = family().fit(LIST, APART)
    assert np.array_equal(one.coef_, other.coef_)
    known = {"act": ["a"] + ["?"] * 14}
    split = [{"act": known["act"][i:j]} for i, j in ((0, 4), (4, 10), (10, 15))]
    assert one.predict(STACK, evidence=known, lengths=LENGTHS) == other.predict(LIST, evidence=split)
    assert one.score(STACK, labels, lengths=LENGTHS) == other.score(LIST, APART)
    assert np.array_equal(one.log_likelihood(STACK, labels, lengths=LENGTHS), other.log_likelihood(LIST, APART))
    found = one.predict_marginals(STACK, lengths=LENGTHS)[2].state["act"]
    assert np.array_equal(found, other.predict_marginals(LIST)[2].state["act"])


@pytest.mark.parametrize("stack", [STACK, STACK.tolist(), pandas.DataFrame(STACK), csr_matrix(STACK)])
def test_whatever_can_be_cut(stack):
    (pieces,) = cut_apart(LENGTHS, ("X", stack))
    shown = [piece.toarray() if hasattr(piece, "toarray") else np.asarray(piece) for piece in pieces]
    assert all(np.array_equal(piece, x) for piece, x in zip(shown, LIST, strict=True))


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([4, 6], "X has 15 steps, but the lengths sum to 10"),
        ([4, 6, 5, 0], "lengths is .4, 6, 5, 0., expected the number of steps of each sequence"),
        (15, "lengths is 15, expected"),
        ([7.5, 7.5], "lengths is .7.5, 7.5., expected"),
        ([], "lengths is .., expected"),
    ],
)
def test_lengths_that_do_not_fit(lengths, message):
    with pytest.raises(ValueError, match=message):
        HHMM(n_components=2).fit(STACK, lengths=lengths)
