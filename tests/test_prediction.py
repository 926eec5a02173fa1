"""Prediction: decoding, evidence, threads, posteriors, samples and scores."""

from collections import Counter

import numpy as np
import pytest

import hscrf
from hscrf import (
    HSCRF,
    Labels,
    Topology,
    metrics,
)
from hscrf.datasets.nested import make_nested
from toy import X, Y, hidden, read, small_data, small_model


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
def test_known_labels_are_kept(deep_model, loss):
    inputs, labels, full = deep_model
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


def test_evidence_of_other_kinds(toy_model):
    evidence = [None, {"tag": ["?", "J", "?"]}]
    free, known = toy_model.predict(X[:2]), toy_model.predict(X[:2], evidence=evidence)
    assert known[0] == free[0]
    assert known[1].column("tag")[1] == "J"
    segments = [{"tag": [(1, 2, "J")]}]  # says nothing about the rest of the sequence
    assert toy_model.predict(X[1:2], evidence=segments) == known[1:]
    allowed = np.ones((3, 4), dtype=bool)
    allowed[:, 2] = False  # no noun anywhere
    sets = Labels(toy_model.topology_, np.full((3, 3), -1), np.full((3, 3), -1), {"tag": allowed})
    assert "N" not in toy_model.predict(X[1:2], evidence=[sets])[0].column("tag")


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
def test_every_method_has_the_same_bits_on_any_number_of_threads(long_data, known):
    fitted, _ = small_model()
    inputs, labels = long_data
    evidence = hidden(labels, 0.5) if known else None
    one, other = (answers(fitted.set_params(n_jobs=n), inputs, evidence) for n in (1, 3))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_threads_are_used_by_every_method(long_data, monkeypatch):
    """Each chunk is answered on a thread of the pool, none on the caller's."""
    import threading

    from hscrf.estimator.scored import Scored

    fitted, _ = small_model()
    inputs, _ = long_data
    threads = []
    start = Scored.__init__
    monkeypatch.setattr(Scored, "__init__", lambda *a: (threads.append(threading.get_ident()), start(*a))[1])
    fitted.set_params(n_jobs=2)
    for ask in (fitted.predict, fitted.predict_marginals, fitted.entropy, fitted.sample, fitted.potentials):
        threads.clear()
        ask(inputs)
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


def test_score_is_joint_accuracy(deep_model):
    inputs, labels, full = deep_model
    found = full.predict(inputs[30:])
    right = np.concatenate([(y.states == z.states).all(axis=0) for y, z in zip(labels[30:], found, strict=True)])
    assert full.score(inputs[30:], labels[30:]) == pytest.approx(right.mean())


def test_a_nesting_never_seen_is_wrong_not_an_error(toy_model):
    new, truth = read("the cat sleeps")
    truth["tag"] = ["V", "N", "V"]  # no verb stood in a noun phrase
    assert toy_model.score([new], [truth]) == pytest.approx(2 / 3)


def test_short_sequences_of_lengths_met_before_have_the_same_labels(toy_model):
    """Plans of short batches are kept between calls; those of another model, or with evidence, are others."""
    other = HSCRF(c2=30.0).fit(X[::-1], Y[::-1])
    for _ in range(2):
        for n, x in enumerate(X):
            for one in (toy_model, other):
                whole, alone = one.predict(X)[n], one.predict([x])[0]
                assert alone == whole
                assert alone.score == pytest.approx(whole.score, rel=1e-12)
            known = [Y[n]]
            assert toy_model.predict([x], evidence=known)[0] == toy_model.predict(X, evidence=Y)[n]


def test_few_short_batches_are_kept():
    from hscrf.estimator import scored

    topology = Topology({"tag": ["a", "b"]})
    kept = [scored.batch_of(topology, np.array([0, n])) for n in range(1, scored.SHORT + 50)]
    assert len(scored._recent) == scored.RECENT
    assert scored.batch_of(topology, np.array([0, scored.SHORT])) is kept[scored.SHORT - 1]
    assert scored.batch_of(topology, np.array([0, scored.SHORT + 1])) is not kept[scored.SHORT]
    assert scored.batch_of(Topology({"tag": ["a", "b"]}), np.array([0, scored.SHORT])) is not kept[scored.SHORT - 1]
