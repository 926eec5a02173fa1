"""The estimator: learning, decoding, scikit-learn, files, and wrong input."""

import itertools
import json
import pickle
from collections import Counter

import joblib
import numpy as np
import pandas
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import hscrf
from fitting import loss_of
from hscrf import (
    HSCRF,
    LBFGS,
    SGD,
    Duration,
    End,
    InfeasibleError,
    Init,
    Labels,
    Perceptron,
    Segment,
    Start,
    Stop,
    Token,
    Topology,
    Trans,
    metrics,
)
from hscrf.datasets.activities import make_activities
from hscrf.datasets.nested import make_nested
from hscrf.errors import FileFormatError
from hscrf.files.container import read_container, write_container
from hscrf.objective.workers import CUTS, Workers, cut_chunks

SENTENCES = [
    "the old cat sees the dog",
    "the dog sleeps",
    "a dog sees old cat",
    "cat sleeps",
    "the cat sees a cat",
    "old dog sleeps",
]
TAGS = {"the": "D", "a": "D", "old": "J", "cat": "N", "dog": "N", "sees": "V", "sleeps": "V"}


def read(sentence):
    """Words as features, and their phrases and tags."""
    tags = [TAGS[word] for word in sentence.split()]
    return [[f"w={word}"] for word in sentence.split()], {
        "phrase": ["VP" if t == "V" else "NP" for t in tags],
        "tag": tags,
    }


X, Y = map(list, zip(*map(read, SENTENCES), strict=True))


@pytest.fixture(scope="module")
def model():
    return HSCRF().fit(X, Y)


def small_model(seed=0, features=None, length=5, **limits):
    """A fitted model whose posterior is far from certain, and new observations for it."""
    inputs, labels = make_nested(8, (2, 3), length=(4, 7), separation=0.3, n_features=2, random_state=seed)
    names = labels[0].topology.to_dict()["levels"]
    topology = Topology(names, **limits)
    labels = [Labels(topology, y.states, y.ends) for y in labels] if limits else labels
    fitted = HSCRF(features=features, random_state=0).fit(inputs, labels)
    return fitted, [x[:length] for x in inputs if len(x) >= length][:2]


# ------------------------------------------------------------------------------
# Learning


def test_learns_a_toy_grammar(model):
    assert model.converged_
    assert model.score(X, Y) == 1.0
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]
    assert len(model.history_) == model.n_iter_
    new, truth = read("a old dog sleeps")
    assert model.predict([new])[0].column("phrase") == truth["phrase"]
    assert model.topology_.to_dict()["children"] == {"phrase": {"NP": ["D", "J", "N"], "VP": ["V"]}}


def kinds_of(tables):
    names = [f"x{k}" for k in range(tables[0].shape[1])]
    yield "array", tables
    yield "lists", [table.tolist() for table in tables]
    yield "DataFrame", [pandas.DataFrame(table, columns=names) for table in tables]
    yield "sparse", [csr_matrix(table) for table in tables]
    yield "dicts", [[dict(zip(names, row, strict=True)) for row in table.tolist()] for table in tables]


def test_numbers_of_every_kind_are_learned():
    tables, labels = make_nested(30, (2, 3), separation=2.0, random_state=0)
    scores = {}
    for kind, inputs in kinds_of(tables):
        fitted = HSCRF(pairs="all", solver=LBFGS(max_iter=40)).fit(inputs[:20], labels[:20])
        scores[kind] = fitted.score(inputs[20:], labels[20:])
    blind = (
        HSCRF(features=[Trans("root"), Trans("level1")]).fit(tables[:20], labels[:20]).score(tables[20:], labels[20:])
    )
    assert min(scores.values()) > 0.85 > 0.5 > blind
    assert scores["array"] == scores["lists"] == scores["DataFrame"]


@pytest.mark.parametrize("unit", [1e-6, 1e4])
def test_the_unit_of_a_column_does_not_matter(unit):
    tables, labels = make_nested(12, (2, 3), separation=1.0, random_state=0)
    scale = np.array([unit, 1, 1, 1])
    plain = HSCRF().fit(tables, labels)
    scaled = HSCRF().fit([table * scale for table in tables], labels)
    assert scaled.predict([table * scale for table in tables]) == plain.predict(tables)
    raw = HSCRF(standardize=False, solver=LBFGS(max_iter=20)).fit([table * scale for table in tables], labels)
    assert raw.predict([table * scale for table in tables]) != plain.predict(tables)


def test_a_penalty_of_its_own(tmp_path):
    tables, labels = make_nested(12, (2, 3), separation=0.5, random_state=0)
    features = [Token("level2", penalty=4.0), Trans("root"), Trans("level1", penalty=0.5)]
    model = HSCRF(features=features, c2=0.7, solver=LBFGS(tol=1e-8, delta=0.0)).fit(tables, labels)
    loss, gradient = loss_of(model, tables, labels, None, Workers())[0](model.coef_)
    penalty = np.repeat([4.0, 1.0, 0.5], [block.size for block in model.blocks_])
    np.testing.assert_allclose(gradient, -2 * 0.7 * penalty * model.coef_, atol=1e-5)
    assert model.loss_ == pytest.approx(loss + 0.7 * (penalty * model.coef_**2).sum(), rel=1e-12)
    model.save(tmp_path / "m")
    assert hscrf.load(tmp_path / "m").fit(tables, labels).loss_ == model.loss_


def test_unseen_features_are_ignored(model):
    noisy = [[[*step, "w=unheard", "cap"] for step in x] for x in X]
    assert model.predict(noisy) == model.predict(X)
    np.testing.assert_array_equal(model.log_likelihood(noisy, Y), model.log_likelihood(X, Y))


def test_rare_features_are_left_out():
    assert set(HSCRF(min_count=4).fit(X, Y).encoder_.names) == {"w=the", "w=cat", "w=dog"}
    assert HSCRF(min_count=3).fit(X, Y).coef_.size < HSCRF().fit(X, Y).coef_.size


def test_pairs():
    seen, everything = HSCRF().fit(X, Y), HSCRF(pairs="all").fit(X, Y)
    table = seen.weights_
    assert table.columns.tolist() == ["level", "part", "feature", "states", "weight"]
    assert len(table) == seen.coef_.size < everything.coef_.size
    tokens = table[(table.level == "tag") & (table.part == "token")]
    assert set(zip(tokens.feature, tokens.states, strict=True)) == {(f"w={w}", tag) for w, tag in TAGS.items()}
    tokens = everything.weights_.query("level == 'tag' and part == 'token'")
    assert len(tokens) == 7 * 4
    assert table.query("part == 'trans' and states == 'NP > D > N'").weight.item() > 0
    assert table.query("part == 'trans' and states == 'NP > N > D'").weight.item() < 0  # never seen
    assert HSCRF(transitions="seen").fit(X, Y).weights_.query("states == 'NP > N > D'").empty


@pytest.mark.parametrize("solver", [SGD(epochs=15), "perceptron"], ids=["sgd", "perceptron"])
def test_other_solvers_learn_too(solver):
    inputs, labels = make_nested(30, (2, 3), separation=2.0, random_state=0)
    fitted = HSCRF(c2=0.1, solver=solver, random_state=0).fit(inputs[:20], labels[:20])
    assert fitted.score(inputs[20:], labels[20:]) > 0.85


def test_l1_leaves_few_weights():
    dense, sparse = HSCRF(c2=0.1).fit(X, Y), HSCRF(c1=0.5, c2=0.1).fit(X, Y)
    assert np.count_nonzero(sparse.coef_) < 0.7 * np.count_nonzero(dense.coef_)
    assert sparse.score(X, Y) == 1.0


@pytest.mark.filterwarnings("ignore:1 sequence has a sample_weight of 0")
def test_sample_weights():
    own = [*(block("phrase") for block in (Token, Start, Stop)), "default"]  # mean lengths know no weights
    weighted = HSCRF(features=own, solver=LBFGS(tol=1e-8, delta=0)).fit(X, Y, sample_weight=[2, 1, 1, 0, 1, 1])
    repeated = HSCRF(features=own, pairs="all", solver=LBFGS(tol=1e-8, delta=0))
    which = [0, 0, 1, 2, 4, 5]
    repeated.fit([X[n] for n in which], [Y[n] for n in which])
    both = weighted.weights_.merge(repeated.weights_, on=["level", "part", "feature", "states"])
    assert len(both) == weighted.coef_.size
    all_pairs = clone(repeated).fit(X, Y, sample_weight=[2, 1, 1, 0, 1, 1])
    np.testing.assert_allclose(all_pairs.loss_, repeated.loss_, rtol=1e-8)
    np.testing.assert_allclose(all_pairs.coef_, repeated.coef_, atol=1e-5)


def test_label_columns_in_bio():
    bio = [
        {"phrase": Labels.from_columns(top, y).column("phrase", "bio"), "tag": y["tag"]} for y, top in with_topology()
    ]
    fitted = HSCRF(scheme={"phrase": "bio"}).fit(X, bio)
    assert fitted.score(X, bio) == 1.0
    assert fitted.predict(X)[0].segments("phrase") == [(0, 3, "NP"), (3, 4, "VP"), (4, 6, "NP")]


def with_topology():
    topology = Topology({"phrase": ["NP", "VP"], "tag": ["D", "J", "N", "V"]})
    return [(y, topology) for y in Y]


def test_one_level_of_labels_and_sequence_classes():
    chain = HSCRF().fit(X, [y["tag"] for y in Y])
    assert chain.topology_.levels == ("root", "label")
    assert chain.score(X, [y["tag"] for y in Y]) == 1.0
    mood = [{"root": "calm" if "V" in y["tag"][-1] else "busy", **y} for y in Y]
    classes = HSCRF(c2=0.01).fit(X, mood)
    assert classes.topology_.states[0] == ("busy", "calm")
    assert [y.column("root")[0] for y in classes.predict(X)] == [y["root"] for y in mood]


def test_segments_as_labels():
    inputs, labels = make_activities(6, n_activities=1, persisting=True, random_state=0)
    segments = [{level: y.segments(level) for level in ("activity", "trajectory")} for y in labels]
    families = [kind("activity") for kind in (Init, Trans, End)]
    features = [Token("trajectory"), Duration("activity"), Trans("root"), *families]
    fitted = HSCRF(features=features, c2=0.1, pairs="all", solver=LBFGS(max_iter=30)).fit(inputs, segments)
    longest = max(stop - start for y in labels for start, stop, _ in y.segments("activity"))
    assert fitted.topology_.max_duration[1].max() == longest
    assert not fitted.topology_.unit_bottom
    assert fitted.score(inputs, segments) > 0.95


# ------------------------------------------------------------------------------
# Partial labels


@pytest.fixture(scope="module")
def three_levels():
    inputs, labels = make_nested(
        60, (2, 3, 3), length=(40, 60), n_features=6, separation=1.5, durations=(18, 5, 1), random_state=0
    )
    full = HSCRF().fit(inputs[:30], labels[:30])
    return inputs, labels, full


def hidden(labels, share=0.0, level=None, seed=0):
    """Labels with cells forgotten at random, or everything of one level."""
    rng = np.random.default_rng(seed)
    forgotten = []
    for y in labels:
        states, ends = y.states.copy(), y.ends.copy()
        states[rng.random(states.shape) < share] = -1
        ends[rng.random(ends.shape) < share] = -1
        if level is not None:
            states[level] = ends[level] = -1
        forgotten.append(Labels(y.topology, states, ends))
    return forgotten


@pytest.mark.parametrize("seed", [0, 1])
def test_half_of_the_labels_are_nearly_as_good_as_all(three_levels, seed):
    inputs, labels, full = three_levels
    half = HSCRF().fit(inputs[:30], hidden(labels[:30], 0.5, seed=seed))
    all_known, half_known = (metrics.accuracy(labels[30:], m.predict(inputs[30:])) for m in (full, half))
    for level in ("level1", "level2", "level3"):
        assert all_known[level] > 0.9
        assert half_known[level] > all_known[level] - 0.03


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_level_without_labels(three_levels, level):
    inputs, labels, full = three_levels
    fitted = HSCRF(solver=LBFGS(max_iter=20), random_state=0).fit(inputs[:30], hidden(labels[:30], level=level))
    losses = [entry["loss"] for entry in fitted.history_]
    assert losses[-1] < 0.25 * losses[0]
    assert all(after <= before for before, after in itertools.pairwise(losses))
    all_known, others = (metrics.accuracy(labels[30:], m.predict(inputs[30:])) for m in (full, fitted))
    for other in {1, 2, 3} - {level}:
        assert others[f"level{other}"] > all_known[f"level{other}"] - 0.05


def test_the_seed_decides_about_a_hidden_level(three_levels):
    inputs, labels, _ = three_levels
    some, solver = hidden(labels[:5], level=2), LBFGS(max_iter=3)
    one, same, other = (HSCRF(solver=solver, random_state=s).fit(inputs[:5], some).coef_ for s in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.allclose(one, other)


def test_columns_with_gaps():
    gaps = [
        {"phrase": y["phrase"], "tag": ["?" if k % 3 == n % 3 else t for k, t in enumerate(y["tag"])]}
        for n, y in enumerate(Y)
    ]
    fitted = HSCRF().fit(X, gaps)
    assert fitted.score(X, Y) == 1.0


# ------------------------------------------------------------------------------
# Same bits


SOLVERS = {
    "lbfgs": (LBFGS(max_iter=4), 0.1),
    "sgd": (SGD(epochs=1, rate=0.05), 0.1),
    "perceptron": (Perceptron(epochs=2), 0.0),
}


@pytest.fixture(scope="module")
def long_data():
    """Four sequences, each of which fills more than half a chunk."""
    half = CUTS.chunk // 2
    inputs, labels = make_nested(4, (2, 3), length=(half + 1, half + 9), n_features=2, random_state=9)
    assert len(cut_chunks(np.array([y.length for y in labels]))) == 4
    return inputs, labels


@pytest.mark.parametrize("name", SOLVERS)
def test_same_bits(long_data, name):
    inputs, labels = long_data
    labels = labels[:2] + hidden(labels[2:], 0.3)
    solver, c2 = SOLVERS[name]
    fits = [HSCRF(c2=c2, solver=solver, random_state=3, n_jobs=n).fit(inputs, labels) for n in (1, 2, 1)]
    for fitted in fits[1:]:
        assert np.array_equal(fitted.coef_, fits[0].coef_)
        assert [entry["loss"] for entry in fitted.history_] == [entry["loss"] for entry in fits[0].history_]
    one, two = fits[:2]
    assert two.predict(inputs) == one.predict(inputs)
    assert np.array_equal(two.log_likelihood(inputs, labels), one.log_likelihood(inputs, labels))


# ------------------------------------------------------------------------------
# Decoding


def everything(p):
    """All labellings of a small model with their probabilities."""
    found = hscrf.k_best(p, 100_000)
    probability = np.exp([y.score - hscrf.log_partition(p) for y in found])
    np.testing.assert_allclose(probability.sum(), 1, rtol=1e-9)
    return found, probability


def events(y, loss):
    """What a decoder may get right: the state of each step, or each segment, of every level."""
    if loss == "step":
        return [(d, t, s) for d in range(y.topology.depth) for t, s in enumerate(y.states[d].tolist())]
    return [(level, *segment) for level in y.topology.levels for segment in y.segments(level)]


@pytest.mark.parametrize("loss", ["step", "segment"])
@pytest.mark.parametrize("limits", [{}, {"max_duration": {"level1": 7, "level2": 2}}], ids=["markov", "segmental"])
def test_decoding_for_a_loss_is_best_of_all(loss, limits):
    for seed in range(2):
        fitted, inputs = small_model(seed, length=3, **limits)
        for p, best in zip(fitted.potentials(inputs[:1]), fitted.predict(inputs[:1], loss=loss), strict=True):
            found, probability = everything(p)
            chance = Counter()
            for y, q in zip(found, probability.tolist(), strict=True):
                chance.update(dict.fromkeys(events(y, loss), q))
            gains = [sum(chance[event] for event in events(y, loss)) for y in found]
            assert sum(chance[event] for event in events(best, loss)) == pytest.approx(max(gains), rel=1e-9)
            assert best.score == pytest.approx(max(gains), rel=1e-9)


def test_decoding_by_steps_is_right_more_often_than_the_most_probable():
    fitted, inputs = small_model(1, length=6)
    gained = 0.0
    for posterior, step, sequence in zip(
        fitted.predict_marginals(inputs), fitted.predict(inputs, loss="step"), fitted.predict(inputs), strict=True
    ):
        for y, sign in ((step, 1), (sequence, -1)):
            y.check()
            gained += sign * sum(
                posterior.state[level][np.arange(y.length), y.states[d]].sum()
                for d, level in enumerate(y.topology.levels)
            )
    assert gained > 0


def test_predict_gives_the_most_probable():
    fitted, inputs = small_model()
    for p, y in zip(fitted.potentials(inputs), fitted.predict(inputs), strict=True):
        best = hscrf.decode(p)
        assert y == best
        assert y.score == pytest.approx(best.score)


@pytest.mark.parametrize("loss", ["sequence", "step", "segment"])
def test_what_is_known_stays(three_levels, loss):
    inputs, labels, full = three_levels
    evidence = hidden(labels[30:40], 0.8)
    plain, known = full.predict(inputs[30:40], loss=loss), full.predict(inputs[30:40], evidence=evidence, loss=loss)
    for y, found in zip(evidence, known, strict=True):
        found.check()
        assert (found.states[y.states >= 0] == y.states[y.states >= 0]).all()
        assert (found.ends[y.ends >= 0] == y.ends[y.ends >= 0]).all()
    if loss == "segment":
        better, worse = (metrics.segment_scores(labels[30:40], y, "level2").f1 for y in (known, plain))
    else:
        better, worse = (metrics.joint_accuracy(labels[30:40], y) for y in (known, plain))
    assert better > worse


def test_evidence_of_other_kinds(model):
    evidence = [None, {"tag": ["?", "J", "?"]}]
    free, known = model.predict(X[:2]), model.predict(X[:2], evidence=evidence)
    assert known[0] == free[0]
    assert known[1].column("tag")[1] == "J"
    segments = [{"tag": [(1, 2, "J")]}]  # says nothing about the rest of the sequence
    assert model.predict(X[1:2], evidence=segments) == known[1:]
    allowed = np.ones((3, 4), dtype=bool)
    allowed[:, 2] = False  # no noun anywhere
    sets = Labels(model.topology_, np.full((3, 3), -1), np.full((3, 3), -1), {"tag": allowed})
    assert "N" not in model.predict(X[1:2], evidence=[sets])[0].column("tag")


def test_many_chunks_are_put_together_in_order(long_data):
    fitted, _ = small_model()
    inputs, labels = long_data
    assert fitted.predict(inputs) == [fitted.predict([x])[0] for x in inputs]
    one_by_one = [fitted.log_likelihood([x], [y])[0] for x, y in zip(inputs, labels, strict=True)]
    np.testing.assert_allclose(fitted.log_likelihood(inputs, labels), one_by_one, rtol=1e-12)


def answers(fitted, inputs, evidence):
    """The results of all methods of a model for all sequences, as one list of arrays."""
    marginals = fitted.predict_marginals(inputs, evidence=evidence)
    draws = fitted.sample(inputs, 3, random_state=7, evidence=evidence)
    return [
        *(y.states for y in fitted.predict(inputs, evidence=evidence, loss="step")),
        *(table for m in marginals for table in (*m.state.values(), *m.ending.values())),
        *(table for m in marginals for _, _, table in m.counts.parts()),
        *(y.states for some in draws for y in some),
        np.array(fitted.entropy(inputs, evidence=evidence)),
    ]


@pytest.mark.parametrize("known", [False, True])
def test_every_door_has_the_same_bits_on_any_number_of_threads(long_data, known):
    fitted, _ = small_model()
    inputs, labels = long_data
    evidence = hidden(labels, 0.5) if known else None
    one, other = (answers(fitted.set_params(n_jobs=n), inputs, evidence) for n in (1, 3))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_threads_are_used_by_every_door(long_data, monkeypatch):
    """Each chunk is answered on a thread of the pool, none on the caller's."""
    import threading

    from hscrf.estimator.scored import Scored

    fitted, _ = small_model()
    inputs, _ = long_data
    threads = []
    start = Scored.__init__
    monkeypatch.setattr(Scored, "__init__", lambda *a: (threads.append(threading.get_ident()), start(*a))[1])
    fitted.set_params(n_jobs=2)
    for door in (fitted.predict, fitted.predict_marginals, fitted.entropy, fitted.sample, fitted.potentials):
        threads.clear()
        door(inputs)
        assert len(threads) > 3
        assert threading.get_ident() not in threads


def test_several_questions_about_a_sequence_need_one_encoding(monkeypatch):
    fitted, _ = small_model()
    inputs, labels = make_nested(2, (2, 3), length=(4, 9), n_features=2, random_state=9)
    evidence = hidden(labels, 0.5)
    calls = []
    pack = type(fitted.encoder_).pack
    monkeypatch.setattr(type(fitted.encoder_), "pack", lambda *a: (calls.append(1), pack(*a))[1])
    posterior = fitted.posterior(inputs, evidence=evidence)[1]
    found = posterior.decode(), posterior.marginals, posterior.entropy(), posterior.k_best(2)
    assert len(calls) == 1
    assert found[0] == fitted.predict(inputs, evidence=evidence)[1] == found[3][0]
    expected = fitted.predict_marginals(inputs, evidence=evidence)[1]
    for level, table in expected.state.items():
        np.testing.assert_allclose(found[1].state[level], table, rtol=1e-12, atol=1e-14)
    assert found[2] == pytest.approx(fitted.entropy(inputs, evidence=evidence)[1], rel=1e-12)


def test_log_likelihood():
    fitted, _ = small_model()
    inputs, labels = make_nested(5, (2, 3), length=(4, 9), n_features=2, random_state=9)
    partial = hidden(labels, 0.5)
    full, part = fitted.log_likelihood(inputs, labels), fitted.log_likelihood(inputs, partial)
    for n, p in enumerate(fitted.potentials(inputs)):
        z = hscrf.log_partition(p)
        assert full[n] == pytest.approx(hscrf.score(p, labels[n]) - z, rel=1e-9)
        assert part[n] == pytest.approx(hscrf.log_partition(p, partial[n]) - z, rel=1e-9)
    assert (full <= part).all()
    own = {**fitted.mean_lengths_, "bottom": 1.0, "transitions": 0.1}
    own["first and last"] = own["level1"] ** 1.5
    assert fitted.mean_lengths_["level1"] == np.mean(
        [b - a for y in small_data()[1] for a, b, _ in y.segments("level1")]
    )
    level = ["level1", "first and last", "first and last"]
    groups = ["transitions"] * 3 + level + ["transitions"] * 3 + ["bottom"]
    pairs = zip(groups, fitted.blocks_, strict=True)
    factors = np.concatenate([np.full(block.size, own[group]) for group, block in pairs])
    penalty = fitted.c2 * (factors * fitted.coef_**2).sum()
    assert fitted.loss_ == pytest.approx(-fitted.log_likelihood(*small_data()).sum() + penalty, rel=1e-9)


def small_data():
    return make_nested(8, (2, 3), length=(4, 7), separation=0.3, n_features=2, random_state=0)


def test_marginals_and_entropy():
    fitted, inputs = small_model(length=3)
    evidence = [None, Labels.from_columns(fitted.topology_, {"level1": ["?", "a1", "?"]})]
    for n, (p, free, known, entropy) in enumerate(
        zip(
            fitted.potentials(inputs),
            fitted.predict_marginals(inputs),
            fitted.predict_marginals(inputs, evidence=evidence),
            fitted.entropy(inputs),
            strict=True,
        )
    ):
        found, probability = everything(p)
        state = sum(q * np.eye(3)[y.states[2]] for q, y in zip(probability, found, strict=True))
        np.testing.assert_allclose(free.state["level2"], state, rtol=1e-8, atol=1e-12)
        assert entropy == pytest.approx(-(probability * np.log(probability)).sum(), rel=1e-8)
        if n == 1:
            assert known.state["level1"][1, 1] == pytest.approx(1.0)


def test_samples_respect_evidence_and_seed():
    fitted, inputs = small_model()
    evidence = hidden(fitted.predict(inputs), 0.6)
    draws = fitted.sample(inputs, 20, random_state=0, evidence=evidence)
    assert [len(some) for some in draws] == [20, 20]
    for y, some in zip(evidence, draws, strict=True):
        for drawn in some:
            drawn.check()
            assert (drawn.states[y.states >= 0] == y.states[y.states >= 0]).all()
            assert (drawn.ends[y.ends >= 0] == y.ends[y.ends >= 0]).all()
    assert draws == fitted.sample(inputs, 20, random_state=0, evidence=evidence)
    assert draws != fitted.sample(inputs, 20, random_state=1, evidence=evidence)


def test_score_is_joint_accuracy(three_levels):
    inputs, labels, full = three_levels
    found = full.predict(inputs[30:])
    right = np.concatenate([(y.states == z.states).all(axis=0) for y, z in zip(labels[30:], found, strict=True)])
    assert full.score(inputs[30:], labels[30:]) == pytest.approx(right.mean())


def test_a_nesting_never_seen_is_wrong_not_an_error(model):
    new, truth = read("the cat sleeps")
    truth["tag"] = ["V", "N", "V"]  # no verb stood in a noun phrase
    assert model.score([new], [truth]) == pytest.approx(2 / 3)


# ------------------------------------------------------------------------------
# Learned topology


def sparse_world(n, rng):
    """Two parents that share one of three children, each with transitions of its own."""
    ways = {"A": "xyxyxy", "B": "zyzyzy"}
    inputs, labels = [], []
    for _ in range(n):
        top, bottom = [], []
        first = int(rng.integers(2))
        for k in range(int(rng.integers(2, 8))):
            parent = "AB"[(first + k) % 2]
            length = int(rng.integers(2, 6))
            top += [parent] * length
            bottom += ways[parent][:length]
        inputs.append(np.arange(3) == np.array([["xyz".index(u) for u in bottom]]).T)
        inputs[-1] = inputs[-1] + 0.3 * rng.normal(size=inputs[-1].shape)
        labels.append({"parent": top, "child": bottom})
    return inputs, labels


def test_the_true_topology_is_learned_from_the_signs_of_the_weights():
    inputs, labels = sparse_world(30, np.random.default_rng(0))
    names = Topology({"parent": ["A", "B"], "child": ["x", "y", "z"]})
    found = HSCRF(names, pairs="all", c2=0.1).fit(inputs, labels).learned_topology()
    assert found.children[1].tolist() == [[True, True, False], [False, True, True]]
    follows = {(u, v) for u, v in np.argwhere(found.successors[2]).tolist()}
    assert follows == {(0, 1), (1, 0), (2, 1), (1, 2)}
    assert found.successors[1].tolist() == [[False, True], [True, False]]
    again = HSCRF(found).fit(inputs, labels)  # the truth is legal there
    assert again.score(inputs, labels) > 0.95


def test_the_threshold_of_a_learned_topology(model):
    loose = model.learned_topology(-1e9)
    assert loose.children[1].tolist() == model.topology_.children[1].tolist()
    assert loose.successors[2].tolist() == [[True, True, True, False]] * 3 + [[False, False, False, True]]
    strict = model.learned_topology(1e9)
    assert all(table.any(axis=1).all() and table.any(axis=0).all() for table in strict.children)
    assert not strict.successors[2].any()


def test_levels_without_weights_keep_their_topology():
    inputs = [np.random.default_rng(0).normal(size=(4, 2))]
    labels = [{"phrase": ["A", "A", "B", "B"], "tag": ["x"] * 4}]  # the only tag needs no weights
    found = HSCRF().fit(inputs, labels).learned_topology()
    assert found.successors[2].all()
    found = HSCRF(features=[Token("phrase")]).fit(inputs, labels).learned_topology()
    assert found == HSCRF().fit(inputs, labels).topology_


# ------------------------------------------------------------------------------
# scikit-learn


def test_parameters_and_clone():
    estimator = HSCRF(c2=0.3, solver=SGD(epochs=3), features=[Token("tag")], topology=with_topology()[0][1])
    again = clone(estimator)
    assert again.get_params() == estimator.get_params()
    assert again is not estimator
    assert clone(estimator.set_params(c2=7)).c2 == 7
    with pytest.raises(ValueError, match="Invalid parameter 'c3'"):
        estimator.set_params(c3=1)
    shown = " ".join(repr(HSCRF(c2=0.3, solver=SGD(epochs=3))).split())
    assert shown.startswith("HSCRF(c2=0.3, solver=SGD(epochs=3,")
    fitted = HSCRF(solver=LBFGS(max_iter=2)).fit(X, Y)
    assert not hasattr(clone(fitted), "coef_")
    assert fitted.get_params() == clone(fitted).get_params()  # fit left the arguments alone


def test_model_selection():
    solver = LBFGS(max_iter=20)
    search = GridSearchCV(HSCRF(solver=solver), {"c2": [0.1, 1e5]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"c2": 0.1}
    scores = cross_val_score(HSCRF(solver=solver), X, Y, cv=3)
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()
    inputs, labels = make_nested(9, (2, 2), separation=2.0, random_state=0)
    assert cross_val_score(HSCRF(solver=solver), inputs, labels, cv=3).mean() > 0.7


def add_lengths(sequences):
    return [[[*step, f"size={len(step[0])}"] for step in x] for x in sequences]


def test_pipeline():
    pipeline = make_pipeline(FunctionTransformer(add_lengths), HSCRF()).fit(X, Y)
    assert pipeline.score(X, Y) == 1.0
    assert "size=5" in pipeline[-1].encoder_.names
    assert pipeline.predict(X[:1])[0].column("tag") == Y[0]["tag"]
    search = GridSearchCV(make_pipeline(FunctionTransformer(add_lengths), HSCRF()), {"hscrf__min_count": [1, 2]}, cv=2)
    assert search.fit(X, Y).best_score_ > 0.5


@pytest.mark.parametrize("way", ["pickle", "joblib"])
def test_pickle_and_joblib(model, tmp_path, way):
    for one in (model, HSCRF(solver=LBFGS(max_iter=3), features=[Segment("tag", tag_length)]).fit(X, Y)):
        if way == "pickle":
            again = pickle.loads(pickle.dumps(one))
        else:
            joblib.dump(one, tmp_path / "model")
            again = joblib.load(tmp_path / "model")
        assert again.predict(X) == one.predict(X)
        assert np.array_equal(again.coef_, one.coef_)


def test_warm_start(model):
    again = HSCRF(warm_start=True).fit(X, Y)
    iterations = again.n_iter_
    again.fit(X, Y)
    assert again.n_iter_ < iterations
    cold = HSCRF().fit(X, Y)
    assert cold.fit(X, Y).n_iter_ == model.n_iter_  # without warm_start a fit forgets


def test_warm_start_goes_by_names():
    """A new word and a new tag shift every number; the weights follow their names."""
    fitted = HSCRF(warm_start=True, solver=LBFGS(max_iter=30)).fit(X, Y)
    before = fitted.weights_.set_index(["level", "part", "feature", "states"]).weight
    solver = LBFGS(max_iter=1, tol=1e9)  # the gradient is flat enough from the start: no step is taken
    more = [[["w=fast"], ["w=cat"]], *X], [{"phrase": ["AP", "NP"], "tag": ["A", "N"]}, *Y]
    after = fitted.set_params(solver=solver).fit(*more).weights_.set_index(before.index.names).weight
    assert len(after) > len(before)
    np.testing.assert_array_equal(after[before.index].to_numpy(), before.to_numpy())
    assert (after.drop(before.index) == 0).all()


def test_early_stopping_on_a_development_set():
    inputs, labels = make_nested(16, (3, 4), length=10, separation=0.5, random_state=1)
    development = inputs[8:], labels[8:]
    long = HSCRF(c2=1e-4).fit(inputs[:8], labels[:8])
    stopped = HSCRF(c2=1e-4).fit(inputs[:8], labels[:8], development=development, patience=4)
    assert "no improvement on the development set for 4 evaluations" in stopped.stop_reason_
    assert stopped.n_iter_ < long.n_iter_
    scores = [entry["score"] for entry in stopped.history_]
    assert stopped.score(*development) == max(scores) > long.score(*development)
    assert scores.index(max(scores)) == stopped.n_iter_ - 5


def test_silent_by_default(capfd):
    HSCRF(solver=LBFGS(max_iter=2)).fit(X, Y)
    HSCRF(solver=LBFGS(max_iter=2), verbose=1).fit(X, Y)  # no terminal here
    assert capfd.readouterr() == ("", "")
    HSCRF(solver=LBFGS(max_iter=2), verbose=2).fit(X, Y)
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("iteration 1  loss ")
    assert lines[-1] == "stopped: max_iter=2 iterations done"


def test_what_happened_is_told():
    fitted = HSCRF(solver=LBFGS(max_iter=2)).fit(X, Y)
    assert (fitted.converged_, fitted.n_iter_, fitted.stop_reason_) == (False, 2, "max_iter=2 iterations done")
    assert fitted.loss_ == fitted.history_[-1]["loss"]


# ------------------------------------------------------------------------------
# Files


def tag_length(z, start, stop):
    return [stop - start, len(z[start][0])]


def other_length(z, start, stop):
    return [float(stop - start > 1)]


ALL_BLOCKS = [
    Token("tag"),
    Token("phrase", average=True),
    Start("phrase"),
    Stop("phrase"),
    Duration("phrase", "gamma"),
    Duration("phrase", "bins"),
    Duration("phrase", "each"),
    Segment("phrase", tag_length),
    Segment("phrase", other_length),
    *(kind("phrase") for kind in (Init, Trans, End)),
    *(kind("root", observed=True) for kind in (Init, Trans, End)),
]
NUMBERS = [np.array([[len(step[0]), ord(step[0][2])] for step in x], dtype=float) for x in X]
FUNCTIONS = {"tag_length": tag_length, "other_length": other_length}


def count_length(z, start, stop):
    return [float(stop - start), float(np.sum(z[start]))]


@pytest.mark.parametrize("spec", [None, *ALL_BLOCKS, ALL_BLOCKS], ids=lambda spec: type(spec).__name__)
def test_models_come_back_from_files(tmp_path, spec):
    features = None if spec is None else [Token("tag"), *(spec if isinstance(spec, list) else [spec])]
    fitted = HSCRF(features=features, solver=LBFGS(max_iter=3), scheme={"tag": "plain"}).fit(X, Y)
    fitted.save(tmp_path / "m.hscrf")
    again = hscrf.load(tmp_path / "m.hscrf", functions=FUNCTIONS)
    assert np.array_equal(again.coef_, fitted.coef_)
    assert again.predict(X) == fitted.predict(X)
    assert np.array_equal(again.log_likelihood(X, Y), fitted.log_likelihood(X, Y))
    assert again.weights_.equals(fitted.weights_)
    assert again.topology_ == fitted.topology_
    assert (again.n_iter_, again.stop_reason_, again.history_) == (3, fitted.stop_reason_, fitted.history_)
    assert again.get_params() == fitted.get_params()
    assert np.array_equal(again.fit(X, Y).coef_, fitted.coef_)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() != b""
    assert hscrf.load(tmp_path / "again", FUNCTIONS).predict(X) == fitted.predict(X)


def test_numeric_models_come_back_from_files(tmp_path):
    for make in (np.asarray, csr_matrix, lambda x: pandas.DataFrame(x, columns=["length", "letter"])):
        inputs = [make(x) for x in NUMBERS]
        fitted = HSCRF(solver=LBFGS(max_iter=3), random_state=np.random.default_rng(0)).fit(inputs, Y)
        fitted.save(tmp_path / "m")
        again = hscrf.load(tmp_path / "m")
        assert np.array_equal(again.log_likelihood(inputs, Y), fitted.log_likelihood(inputs, Y))


def test_segment_functions_must_be_given(tmp_path):
    fitted = HSCRF(features=[Segment("phrase", tag_length)], solver=LBFGS(max_iter=1)).fit(X, Y)
    fitted.save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"uses the segment function 'tag_length': give it as load\(path, functions="):
        hscrf.load(tmp_path / "m")


def test_segment_functions_of_one_name_are_refused(tmp_path):
    features = [Segment("phrase", lambda z, start, stop: 1.0), Segment("phrase", lambda z, start, stop: stop - start)]
    fitted = HSCRF(features=features, solver=LBFGS(max_iter=1)).fit(X, Y)
    with pytest.raises(ValueError, match="two segment functions are both named '<lambda>'"):
        fitted.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_altered_models_are_refused(model, tmp_path):
    path = tmp_path / "m"
    model.save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        altered = bytearray(content)
        for k in rng.integers(len(content), size=rng.choice([1, 8])):
            altered[k] ^= int(rng.integers(1, 256))
        path.write_bytes(altered)
        with pytest.raises(FileFormatError):
            hscrf.load(path)
    for size in [0, 1, 15, *rng.integers(len(content), size=50)]:
        path.write_bytes(content[:size])
        with pytest.raises(FileFormatError):
            hscrf.load(path)


def test_foreign_files_are_refused(model, tmp_path):
    path = tmp_path / "m"
    path.write_bytes(pickle.dumps(model))
    with pytest.raises(FileFormatError, match="is not an hscrf file"):
        hscrf.load(path)
    with pytest.raises(FileNotFoundError):
        hscrf.load(tmp_path / "nothing")
    write_container(path, {"kind": "checkpoint"}, {})
    with pytest.raises(FileFormatError, match="is a checkpoint, expected a model"):
        hscrf.load(path)
    for header in ({"kind": "model"}, {"kind": "model", "class": "os.system"}):
        write_container(path, header, {})
        with pytest.raises(FileFormatError, match="expected one of HSCRF"):
            hscrf.load(path)


def test_models_with_missing_pieces_are_refused(model, tmp_path):
    path = tmp_path / "m"
    model.save(path)
    header, arrays = read_container(path)
    for key in header.keys() - {"kind", "class"}:
        write_container(path, {name: value for name, value in header.items() if name != key}, arrays)
        with pytest.raises(FileFormatError, match="is not a complete model"):
            hscrf.load(path)
    for key in arrays:
        write_container(path, header, {name: value for name, value in arrays.items() if name != key})
        with pytest.raises(FileFormatError, match="is not a complete model"):
            hscrf.load(path)
    write_container(path, header, {**arrays, "coef": arrays["coef"][:-1]})
    with pytest.raises(FileFormatError, match="weights, which do not fit its features"):
        hscrf.load(path)


def test_nothing_in_a_file_is_pickled(model, tmp_path):
    model.save(tmp_path / "m")
    header, arrays = read_container(tmp_path / "m")
    assert json.loads(json.dumps(header)) == header
    assert all(array.dtype != object for array in arrays.values())


# ------------------------------------------------------------------------------
# Checkpoints


def test_training_goes_on_from_a_checkpoint(tmp_path):
    path = tmp_path / "run"
    first = HSCRF(solver=LBFGS(max_iter=4)).fit(X, Y, checkpoint=path)
    header, arrays = read_container(path)
    assert np.array_equal(arrays["weights"], first.coef_)
    assert [entry["loss"] for entry in header["history"]] == [entry["loss"] for entry in first.history_]
    second = HSCRF(solver=LBFGS(max_iter=4)).fit(X, Y, checkpoint=path)
    assert second.loss_ < first.loss_
    assert max(entry["loss"] for entry in second.history_) <= first.loss_
    third = HSCRF().fit(X, Y, checkpoint=path)
    fresh = HSCRF().fit(X, Y)
    assert third.converged_
    assert third.n_iter_ < fresh.n_iter_
    assert third.loss_ == pytest.approx(fresh.loss_, rel=1e-4)


def test_corrupted_checkpoints_are_refused(tmp_path):
    path = tmp_path / "run"
    HSCRF(solver=LBFGS(max_iter=2)).fit(X, Y, checkpoint=path)
    content = path.read_bytes()
    for bad, message in (
        (content[:-5], "is truncated"),
        (content[:-40] + b"x" + content[-39:], "is altered"),
        (b"weights", "is not an hscrf file"),
    ):
        path.write_bytes(bad)
        with pytest.raises(FileFormatError, match=message):
            HSCRF().fit(X, Y, checkpoint=path)
        assert path.read_bytes() == bad  # it is the user's to remove


OTHERS = {
    "less data": (HSCRF(), X[:4], Y[:4]),
    "other words": (HSCRF(min_count=4), X, Y),
    "other penalty": (HSCRF(c2=0.5), X, Y),
    "other blocks": (HSCRF(features=[Stop("phrase")]), X, Y),
    "penalty of blocks": (HSCRF(features=[Start("phrase", penalty=np.int64(2))]), X, Y),
    "other labels": (HSCRF(), X, [{"phrase": y["tag"], "tag": y["phrase"]} for y in Y]),
    "other pairs": (HSCRF(), X, [{**y, "tag": [{"D": "J", "J": "D"}.get(t, t) for t in y["tag"]]} for y in Y]),
    "other topology": (HSCRF(Topology({"phrase": ["NP", "VP"], "tag": ["D", "J", "N", "V"]})), X, Y),
}


@pytest.mark.parametrize("case", OTHERS)
def test_checkpoints_of_another_model_are_refused(tmp_path, case):
    path = tmp_path / "run"
    other, inputs, labels = OTHERS[case]
    clone(other).set_params(solver=LBFGS(max_iter=1)).fit(inputs, labels, checkpoint=path)
    features = [Start("phrase")] if "blocks" in case else None
    with pytest.raises(ValueError, match="is not a checkpoint of this model on this data"):
        HSCRF(features=features).fit(X, Y, checkpoint=path)
    assert path.exists()


def test_a_model_is_no_checkpoint(model, tmp_path):
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        HSCRF().fit(X, Y, checkpoint=tmp_path / "m")


# ------------------------------------------------------------------------------
# Bad input


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
        r"Y\[1\]: tag 'V' at 1 is no child of phrase 'NP'",
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


def test_labels_never_seen_are_wrong_and_impossible(model):
    steps = sum(map(len, X))
    found = model.predict(X)
    assert model.score(X, [{level: y.column(level) for level in ("phrase", "tag")} for y in found]) == 1.0
    for n, t, tag in ((3, 1, "Z"), (1, 1, "V"), (0, 1, "D")):  # a state, a child, a succession
        changed = with_tag(n, t, tag)
        truth = [Y[k]["tag"][s] == y.column("tag")[s] for k, y in enumerate(found) for s in range(y.length)]
        assert model.score(X, changed) == pytest.approx((sum(truth) - 1) / steps)
        likelihood = model.log_likelihood(X, changed)
        assert not np.isnan(likelihood).any()
        others = np.arange(len(X)) != n
        np.testing.assert_array_equal(likelihood[others], model.log_likelihood(X, Y)[others])
    assert model.log_likelihood(X, with_tag(3, 1, "Z"))[3] == -np.inf
    assert model.log_likelihood(X, with_tag(1, 1, "V"))[1] == -np.inf


def test_labels_that_do_not_fit_the_sequences_cannot_be_scored(model):
    for verb in (model.score, model.log_likelihood):
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
        r"evidence\[1\]: tag 'N' at 1 is no child of phrase 'VP'",
    ),
    "empty sequence": ([X[0], []], None, ValueError, r"X\[1\] is empty"),
    "no sequence": ([], None, ValueError, "X is empty"),
    "strings for dicts": ([["the", "cat"]], None, ValueError, r"X\[0\]\[0\] is a string, expected"),
    "arrays": ([np.zeros((2, 2))], None, ValueError, "X holds numeric arrays, but the model was trained on lists"),
}


@pytest.mark.parametrize("case", PREDICT)
def test_bad_requests(model, case):
    inputs, evidence, error, message = PREDICT[case]
    for verb in (model.predict, model.predict_marginals, model.sample, model.entropy):
        with pytest.raises(error, match=message):
            verb(inputs, evidence=evidence)


def test_evidence_that_only_inference_can_refute(model):
    inner = Labels(model.topology_, [[0] * 3, [-1] * 3, [-1] * 3], [[-1] * 3, [0, -1, -1], [-1] * 3])
    closure = Labels(model.topology_, [[0] * 3, [-1] * 3, [2, 3, -1]], inner.ends)  # N V under one phrase
    for loss in ("sequence", "step", "segment"):
        with pytest.raises(InfeasibleError, match=r"evidence\[1\]: no state of level 'phrase' is possible from 0 to 2"):
            model.predict(X[1:2] * 2, evidence=[None, closure], loss=loss)
    topology = Topology(GIVEN.to_dict()["levels"], min_duration={"phrase": 2})
    timed = HSCRF(topology, solver=LBFGS(max_iter=2)).fit(X[1:2], [Labels.unknown(topology, 3)])
    bad = Labels(topology, [[0] * 3, [0, -1, 1], [-1] * 3], np.full((3, 3), -1))
    for loss in ("sequence", "step", "segment"):
        with pytest.raises(InfeasibleError, match=r"evidence\[1\]: .* level 'phrase' is 'NP' at 0 and .*'VP' at 2"):
            timed.predict(X[1:2] * 2, evidence=[None, bad], loss=loss)
        with pytest.raises(InfeasibleError, match=r"X\[1\]: .* allow no configuration of 1 steps"):
            timed.predict([X[1], X[1][:1]], loss=loss)  # no phrase is so short


def test_bad_words(model):
    with pytest.raises(ValueError, match="loss is 'hamming', expected 'sequence', 'step' or 'segment'"):
        model.predict(X, loss="hamming")
    numeric = HSCRF(solver=LBFGS(max_iter=1)).fit(NUMBERS, Y)
    with pytest.raises(ValueError, match="X has 3 columns, but the model was trained on 2"):
        numeric.predict([np.zeros((2, 3))])
    with pytest.warns(UserWarning, match="numbers are missing in column 'x0', but none were missing in training"):
        numeric.predict([np.array([[0, 1], [np.nan, 1]])])


@pytest.mark.parametrize("verb", ["predict", "predict_marginals", "entropy", "sample", "potentials"])
def test_not_fitted(verb):
    with pytest.raises(NotFittedError, match="this HSCRF is not fitted yet: call fit first"):
        getattr(HSCRF(), verb)(X)


def test_not_fitted_either(tmp_path):
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
        ({}, [[["w"]]], [[("a", "b")]], r"\('a', 'b'\) is no segment \(start, stop, state\), and a state"),
        ({"topology": {"tag": ["a"]}}, [[["w"]]], [["a"]], "topology is a dict, expected a Topology or None"),
        ({"n_jobs": 0}, [[["w"]]], [["a"]], "n_jobs is 0, expected the number of threads, or -1 for one per core"),
    ],
)
def test_what_cannot_be_read_is_said(options, X, Y, message):
    with pytest.raises(ValueError, match=message):
        HSCRF(**options).fit(X, Y)


def test_labels_that_pandas_lacks_are_unknown():
    Y = [["a", "b"], pandas.Series(["a", None]).to_numpy(dtype=object), ["b", float("nan")]]
    assert HSCRF(n_jobs=-1).fit([[["w"], ["v"]]] * 3, Y).topology_.states[1] == ("a", "b")


def test_segments_of_one_level_and_a_column_of_another():
    X = [[["w=the"], ["w=cat"], ["w=sees"]]] * 2
    mixed = {"phrase": [(0, 2, "NP"), (2, 3, "VP")], "tag": ["D", "N", "V"]}
    columns = {"phrase": ["NP", "NP", "VP"], "tag": ["D", "N", "V"]}
    one, other = (HSCRF().fit(X, [y, y]) for y in (mixed, columns))
    assert one.topology_ == other.topology_
    assert one.loss_ == other.loss_
    with pytest.raises(ValueError, match=r"Y\[1\]: level 'tag' has 2 labels for 3 steps"):
        HSCRF().fit(X, [mixed, {**mixed, "tag": ["D", "N"]}])


@pytest.mark.parametrize("margin", [1.0, {"phrase": 0.5, "tag": 2.0}])
@pytest.mark.parametrize("family", [hscrf.HSCRF, hscrf.DynamicCRF])
def test_margin_holds_other_labels_at_a_distance(family, margin, tmp_path):
    """The loss has a margin, prediction has none, and files and clones keep it."""
    X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=cat"], ["w=the"]]]
    Y = [{"phrase": ["NP", "NP", "VP"], "tag": ["D", "N", "V"]}, {"phrase": ["NP", "NP"], "tag": ["N", "D"]}]
    plain = family(c2=0.5).fit(X, Y)
    model = family(c2=0.5, margin=margin).fit(X, Y)
    assert model.loss_ > plain.loss_
    assert model.log_likelihood(X, Y).sum() > plain.log_likelihood(X, Y).sum()
    model.save(tmp_path / "model")
    again = hscrf.load(tmp_path / "model")
    assert again.margin == clone(model).margin == margin
    assert again.predict(X) == model.predict(X)


def test_margins_that_are_none():
    with pytest.raises(ValueError, match=r"margin\['tag'\] is -1, expected a finite number of at least 0"):
        hscrf.HSCRF(margin={"tag": -1}).fit([[["a"]]], [{"tag": ["x"]}])
    with pytest.raises(ValueError, match="phrase"):
        hscrf.HSCRF(margin={"phrase": 1}).fit([[["a"]]], [{"tag": ["x"]}])


def test_short_sequences_of_lengths_met_before_have_the_same_labels(model):
    """Plans of short batches are kept between calls; those of another model, or with evidence, are others."""
    other = HSCRF(c2=30.0).fit(X[::-1], Y[::-1])
    for _ in range(2):
        for n, x in enumerate(X):
            for one in (model, other):
                whole, alone = one.predict(X)[n], one.predict([x])[0]
                assert alone == whole
                assert alone.score == pytest.approx(whole.score, rel=1e-12)
            known = [Y[n]]
            assert model.predict([x], evidence=known)[0] == model.predict(X, evidence=Y)[n]


def test_few_short_batches_are_kept():
    from hscrf.estimator import scored

    topology = Topology({"tag": ["a", "b"]})
    kept = [scored.batch_of(topology, np.array([0, n])) for n in range(1, scored.SHORT + 50)]
    assert len(scored._recent) == scored.RECENT
    assert scored.batch_of(topology, np.array([0, scored.SHORT])) is kept[scored.SHORT - 1]
    assert scored.batch_of(topology, np.array([0, scored.SHORT + 1])) is not kept[scored.SHORT]
    assert scored.batch_of(Topology({"tag": ["a", "b"]}), np.array([0, scored.SHORT])) is not kept[scored.SHORT - 1]


def test_a_block_of_ones_own_replaces_the_default_one():
    model = HSCRF(features=[Token("phrase", penalty=7), Start("phrase", only="w="), "default"]).fit(X, Y)
    found = [
        spec for spec in model.specifications() if spec.level == "phrase" and not isinstance(spec, Init | Trans | End)
    ]
    length = {"penalty": "length"}
    assert found == [
        Token("phrase", penalty=7),
        Start("phrase", only="w="),
        Start("phrase", **length),
        Stop("phrase", **length),
    ]
    assert model._penalty_factors()[:2] == [7.0, 1.0]


def test_the_penalty_of_the_bottom_follows_the_size_of_summed_features():
    """The same from the definition: squares of the sums of each segment, of runs where the bottom has single steps."""
    random = np.random.default_rng(0)
    table = [random.integers(0, 4, size=(6, 3)).astype(float) for _ in range(2)]
    steps = [[{f"c{k}": v for k, v in enumerate(row)} for row in x.tolist()] for x in table]
    borders = [[(0, 4), (4, 6)], [(0, 1), (1, 3), (3, 6)]]
    tags = [["x", "x", "x", "x", "y", "y"], ["y", "x", "x", "y", "y", "y"]]
    runs = [{"phrase": ["p"] * 6, "tag": row} for row in tags]
    begun = []
    for own, row in zip(borders, tags, strict=True):
        begins = {start for start, _ in own}
        begun.append({"phrase": ["p"] * 6, "tag": [f"{'B' if t in begins else 'I'}-{s}" for t, s in enumerate(row)]})
    squares = [(x[a:b].sum(axis=0) ** 2).sum() for x, own in zip(table, borders, strict=True) for a, b in own]
    expected = float(f"{np.mean(squares) / 20:.3g}")
    assert expected > 1
    few = LBFGS(max_iter=1)
    once = (12 / 5) ** 0.5  # five segments of twelve steps: a segment has one first and one last step
    for Y, own in ((runs, [1]), (begun, [1, once, once])):
        for X in (steps, table):
            model = HSCRF(solver=few, standardize=False).fit(X, Y)
            assert model.sizes_ == {"tag": expected}
            assert model._penalty_factors()[-len(own) :] == pytest.approx([expected * factor for factor in own])
    options = {"solver": few, "standardize": False}
    alone = HSCRF(**options).fit(steps[:1], runs[:1])
    partial = [runs[0], {**runs[1], "tag": ["?"] * 6}]
    assert HSCRF(**options).fit(steps, partial).sizes_ == alone.sizes_, "unknown steps do not count"
    assert HSCRF(**options).fit([[["w"]] * 6], runs[:1]).sizes_ == {"tag": 1.0}, "the smallest"
    scored = [[{**step, "score:tag=x": -9.0} for step in x] for x in steps]
    added = ["default", hscrf.features.Score("tag")]
    assert HSCRF(**options, features=added).fit(scored, runs).sizes_ == {"tag": expected}, "scores do not count"


@pytest.mark.parametrize("penalty", ["long", -1, np.inf, None])
def test_a_penalty_is_a_number_or_the_mean_length(penalty):
    with pytest.raises(ValueError, match=r"features\[0\]: penalty is .*, expected a finite number .* or 'size'"):
        HSCRF(features=[Token("phrase", penalty=penalty)]).fit(X, Y)


def test_mean_lengths_are_in_the_file_and_older_files_have_none(tmp_path):
    model = HSCRF(features=[Token("phrase", penalty="length"), "default"]).fit(X, Y)
    header, arrays = model.content()
    write_container(tmp_path / "new", header, arrays)
    loaded = hscrf.load(tmp_path / "new")
    assert loaded.mean_lengths_ == model.mean_lengths_
    assert loaded.sizes_ == model.sizes_ == {"tag": 1.0}
    assert loaded.features == model.features
    del header["training"]["mean_lengths"], header["training"]["sizes"]
    write_container(tmp_path / "old", header, arrays)
    older = hscrf.load(tmp_path / "old")
    assert not hasattr(older, "mean_lengths_")
    assert older.predict(X) == model.predict(X)
