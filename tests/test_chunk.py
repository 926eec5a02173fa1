"""A chunk is independent: it can be pickled, and gives the same bits in another process."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hscrf
from fitting import loss_of
from hscrf.objective.workers import Workers

SOURCE = Path(__file__).resolve().parents[1] / "src"

ELSEWHERE = """
import pickle, sys
chunk, weights = pickle.load(open(sys.argv[1], "rb"))
pickle.dump((chunk.evaluate(weights), chunk.mistakes(weights)), open(sys.argv[2], "wb"))
"""


def objective_of(model, X, Y, sample_weight=None):
    objective, _ = loss_of(model, X, Y, sample_weight, Workers())
    return objective, np.random.default_rng(0).normal(size=objective.size)


def partly(labels):
    """Every third state and end of all levels below the root unknown."""
    hidden = []
    for y in labels:
        states, ends = y.states.copy(), y.ends.copy()
        states[1:, ::3] = -1
        ends[1:, ::3] = -1
        hidden.append(hscrf.Labels(y.topology, states, ends))
    return hidden


MODELS = {
    "nested": hscrf.HSCRF(),
    "durations": hscrf.HSCRF(
        features=[hscrf.Token("a"), hscrf.Token("b"), hscrf.Duration("a"), hscrf.Trans("root"), hscrf.Trans("a")]
    ),
}


def data(kind):
    X, Y = hscrf.datasets.make_nested(12, (2, 3), length=(4, 20), random_state=1)
    topology = Y[0].topology
    if kind == "durations":
        named = topology.to_dict()
        named["levels"] = dict(zip("ab", named["levels"].values(), strict=True))
        topology = hscrf.Topology(named["levels"], max_duration={"a": 20})
        Y = [hscrf.Labels(topology, y.states, y.ends) for y in Y]
    return X, Y


@pytest.mark.parametrize("labels", ["full", "partial"])
@pytest.mark.parametrize("kind", MODELS)
def test_the_same_bits_in_another_process(tmp_path, kind, labels):
    X, Y = data(kind)
    weight = np.linspace(0.5, 2.0, len(X))
    objective, weights = objective_of(MODELS[kind], X, Y if labels == "full" else partly(Y), weight)
    (_, chunk), *_ = objective.chunks
    (tmp_path / "chunk").write_bytes(pickle.dumps((chunk, weights)))
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    arguments = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "chunk"), str(tmp_path / "answer")]
    run = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    (loss, gradient), mistakes = pickle.loads((tmp_path / "answer").read_bytes())
    expected = chunk.evaluate(weights)
    assert loss == expected[0]
    assert np.array_equal(gradient, expected[1])
    assert np.array_equal(mistakes[1], chunk.mistakes(weights)[1])


@pytest.mark.parametrize("labels", ["full", "partial"])
def test_weights_of_sequences_add_up(labels):
    """The loss of a chunk is linear in the weights of its sequences."""
    X, Y = data("nested")
    Y = Y if labels == "full" else partly(Y)
    model = MODELS["nested"]
    weight = np.random.default_rng(2).uniform(0, 3, len(X))
    weight[3] = 0.0
    objective, w = objective_of(model, X, Y, weight)
    losses, gradients = zip(*(objective.part(w, [n]) for n in range(len(X))), strict=True)
    whole = objective(w)
    assert whole[0] == pytest.approx(sum(losses), rel=1e-12)
    np.testing.assert_allclose(whole[1], sum(gradients), rtol=1e-10, atol=1e-11)
    plain, _ = objective_of(model, X, Y)
    each = [plain.part(w, [n])[0] for n in range(len(X))]
    assert whole[0] == pytest.approx(float(weight @ each), rel=1e-12)


def test_many_weights_need_no_more_chunks():
    """Sequences of unequal weights are evaluated together."""
    X, Y = data("nested")
    assert len(objective_of(MODELS["nested"], X, Y, np.arange(1.0, 13.0))[0].chunks) == 1


def test_impossible_labels_are_named_by_their_number():
    topology = hscrf.Topology({"tag": ["N", "V"]}, successors={"tag": {"N": ["V"]}})
    X = [[["w"]] * 3] * 2
    states = [[0, 0, 0], [0, -1, 0]]  # N ? N is possible; with "?" narrowed to N it is not
    good = hscrf.Labels(topology, states, [[0, 0, 1], [1, 1, 1]])
    only = np.array([[True, True], [True, False], [True, True]])
    bad = hscrf.Labels(topology, states, [[0, 0, 1], [1, 1, 1]], {"tag": only})
    with pytest.raises(hscrf.InfeasibleError, match=r"^Y\[1\]: ") as caught:
        hscrf.HSCRF(topology).fit(X, [good, bad])
    assert caught.value.sequence == 1


def test_a_pickled_chunk_is_small():
    """It holds packed observations, and the user's only if a block reads them."""

    class Heavy(list):
        def __reduce__(self):
            raise AssertionError("what the user gave was pickled")

    X, Y = data("nested")
    objective, weights = objective_of(MODELS["nested"], [Heavy(x) for x in X], Y)
    (_, chunk), *_ = objective.chunks
    expected = chunk.evaluate(weights)
    again = pickle.loads(pickle.dumps(chunk))
    assert np.array_equal(again.evaluate(weights)[1], expected[1])
