"""ChainCRF against CRFsuite on real data at the same weights, and with partial labels."""

import struct

import numpy as np
import pytest
from sklearn.base import clone

import hscrf
import hscrf.metrics
from hscrf.labels import Labels
from hscrf.objective.likelihood import Likelihood
from hscrf.objective.scorer import Scorer
from hscrf.solvers.lbfgs import LBFGS

C2 = 0.5


def word_features(words, pos):
    """Words around a step and its tag, as CRFsuite's users write them."""
    found = []
    for t in range(len(words)):
        item = ["bias", f"w={words[t]}", f"pos={pos[t]}", f"end={words[t][-2:]}"]
        item.append(f"before={words[t - 1]}" if t else "first")
        item.append(f"after={words[t + 1]}" if t + 1 < len(words) else "last")
        found.append(item)
    return found


@pytest.fixture(scope="module")
def sentences(data_folder):
    """The first sentences of a file that takes long to read as a whole."""
    blocks = (data_folder / "conll2000" / "train.txt").read_text(encoding="ascii").split("\n\n")[:300]
    rows = [zip(*map(str.split, block.splitlines()), strict=True) for block in blocks]
    return [(word_features(words, pos), list(tags)) for words, pos, tags in rows]


def binary_weights(path):
    """(type, source, target, weight) of every feature in a CRFsuite model, in full precision."""
    data = path.read_bytes()
    (begin,) = struct.unpack_from("<I", data, 28)
    assert data[begin : begin + 4] == b"FEAT"
    (count,) = struct.unpack_from("<I", data, begin + 8)
    return [struct.unpack_from("<IIId", data, begin + 12 + 20 * k) for k in range(count)]


@pytest.fixture(scope="module")
def crfsuite(sentences, tmp_path_factory):
    """A trained CRFsuite model: its tagger, its weights by name, and its final loss."""
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite, the reference, is not installed")
    path = tmp_path_factory.mktemp("crfsuite") / "model"
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for x, y in sentences:
        trainer.append(x, y)
    trainer.set_params({"c1": 0.0, "c2": C2, "max_iterations": 25})
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    labels = tagger.labels()
    names = list(dict.fromkeys(name for x, _ in sentences for item in x for name in item))
    weights = {}
    for kind, source, target, weight in binary_weights(path):
        source_name = names[source] if kind == 0 else labels[source]
        weights[kind, source_name, labels[target]] = weight
    info = tagger.info()  # rounded to six digits: tells whether names are in the order that we think
    for (name, label), weight in info.state_features.items():
        assert weights[0, name, label] == pytest.approx(weight, abs=1e-6)
    return tagger, weights, trainer.logparser.last_iteration["loss"]


@pytest.fixture(scope="module")
def model(sentences, crfsuite):
    """A ChainCRF with the same weights."""
    X, Y = map(list, zip(*sentences, strict=True))
    model = hscrf.ChainCRF(transitions="seen", c2=C2, solver=LBFGS(max_iter=1)).fit(X, Y)
    _, weights, _ = crfsuite
    table = model.weights_
    rows = zip(table["part"], table["feature"], table["states"], strict=True)
    model.coef_ = np.array(
        [
            weights.get((0, feature, states), 0.0)
            if part == "token"
            else weights.get((1, *states.split(" > ")[1:]), 0.0)
            for part, feature, states in rows
        ]
    )
    assert np.count_nonzero(model.coef_) == len(weights)
    return model


def test_loss_equals_crfsuite(sentences, crfsuite, model):
    X, Y = map(list, zip(*sentences, strict=True))
    _, weights, loss = crfsuite
    penalty = C2 * sum(weight**2 for weight in weights.values())
    assert -model.log_likelihood(X, Y).sum() + penalty == pytest.approx(loss, rel=1e-8)
    scorer = Scorer(model.topology_, model.blocks_)
    labels = [Labels.from_columns(model.topology_, {"label": y}) for y in Y]
    objective = Likelihood(scorer, model.encoder_.pack(X), labels)
    assert objective(model.coef_)[0] + penalty == pytest.approx(loss, rel=1e-8)


def test_tags_and_marginals_equal_crfsuite(sentences, crfsuite, model):
    tagger, _, _ = crfsuite
    X = [x for x, _ in sentences[:60]]
    states = model.topology_.states[1]
    tagged, found = model.predict(X), model.predict_marginals(X)
    for x, labels, posterior in zip(X, tagged, found, strict=True):
        tagger.set(x)
        assert labels.column("label") == tagger.tag()
        expected = [[tagger.marginal(state, t) for state in states] for t in range(len(x))]
        np.testing.assert_allclose(posterior.state["label"], expected, rtol=1e-7, atol=1e-9)
        assert np.exp(labels.score - posterior.log_partition) == pytest.approx(tagger.probability(tagger.tag()))


def test_training_reaches_a_loss_no_worse_than_crfsuite(sentences, crfsuite):
    X, Y = map(list, zip(*sentences[:300], strict=True))
    model = hscrf.ChainCRF(transitions="seen", c2=C2, solver=LBFGS(max_iter=100)).fit(X, Y)
    assert model.loss_ <= crfsuite[2] * (1 + 1e-9)  # CRFsuite was stopped after 25 iterations


X = [[["w=the"], ["w=old"], ["w=cat"], ["w=sleeps"]], [["w=the"], ["w=cat"], ["w=sleeps"]]]
Y = [["D", "J", "N", "V"], ["D", "N", "V"]]


def test_partial_labels_and_evidence():
    """The paper's PO-CRF: a sum over missing labels, with known labels fixed."""
    model = hscrf.ChainCRF(c2=0.1).fit([*X, X[1]], [*Y, ["?", "N", "?"]])
    assert model.predict(X)[0].column("label") == Y[0]
    known = model.predict(X, evidence=[["?", "?", "V", "?"], None])
    assert known[0].column("label")[2] == "V"
    partial = model.log_likelihood(X[:1], [["D", "?", "N", "V"]])[0]
    states = model.topology_.states[1]
    whole = [model.log_likelihood(X[:1], [["D", s, "N", "V"]])[0] for s in states]
    assert partial == pytest.approx(np.logaddexp.reduce(whole))


def test_edges_add_the_first_and_the_last_label():
    plain, edged = hscrf.ChainCRF().fit(X, Y), hscrf.ChainCRF(edges=True).fit(X, Y)
    assert set(plain.weights_["part"]) == {"token", "trans"}
    assert set(edged.weights_["part"]) == {"token", "trans", "init", "end"}


def test_round_trip_and_clone(tmp_path):
    model = hscrf.ChainCRF(edges=True, c2=0.1).fit(X, Y)
    model.save(tmp_path / "m")
    loaded = hscrf.load(tmp_path / "m")
    assert type(loaded) is hscrf.ChainCRF
    assert loaded.edges is True
    assert [y.column("label") for y in loaded.predict(X)] == [y.column("label") for y in model.predict(X)]
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert clone(model).get_params() == model.get_params()
    assert model.score(X, Y) == 1.0


def test_a_hierarchy_is_no_chain():
    with pytest.raises(ValueError, match="is not a chain"):
        hscrf.ChainCRF().fit(X[:1], [{"a": Y[0], "b": Y[0]}])


def test_metrics_read_tags_as_the_states_they_are():
    """Also if the truth has a tag that training did not have."""
    X = [[["a"], ["b"], ["c"], ["a"]]] * 6
    model = hscrf.ChainCRF().fit(X, [["B-X", "I-X", "O", "B-X"]] * 6)
    truth = [["B-X", "I-X", "O", "B-X"]] * 5 + [["B-X", "I-X", "I-X", "B-Y"]]
    found = model.predict(X)
    assert hscrf.metrics.accuracy(truth, found) == {"label": pytest.approx(22 / 24, rel=1e-12)}
    assert hscrf.metrics.exact_match(truth, found) == pytest.approx(5 / 6, rel=1e-12)
    assert model.score(X, truth) == pytest.approx(22 / 24, rel=1e-12)


def test_a_solver_object_without_a_delta_stops_by_the_rule_of_the_model():
    X, Y = [[["a"], ["b"], ["a"]], [["b"], ["c"], ["b"]]] * 4, [["N", "V", "N"], ["V", "N", "V"]] * 4
    default, same = (hscrf.ChainCRF(c2=0.01, solver=solver).fit(X, Y) for solver in ("lbfgs", LBFGS(max_iter=999)))
    np.testing.assert_array_equal(same.coef_, default.coef_)
    assert hscrf.ChainCRF(c2=0.01, solver=LBFGS(period=1, delta=0.5)).fit(X, Y).n_iter_ < default.n_iter_
