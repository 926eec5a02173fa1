"""Posteriors of predicted segments against enumeration, and temperatures that calibrate probabilities."""

import json
import pickle

import numpy as np
import pytest

import enumeration as twin
import hscrf
from hscrf import HSCRF, ChainCRF, DynamicCRF, Labels, Topology, io, metrics, plots
from hscrf.datasets import make_nested
from hscrf.inference import Posterior
from hscrf.inference.segments import SegmentQueries, segment_probabilities
from hscrf.inference.temperatures import Temperature, tempered_states
from test_twin import draw

CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def asked_for(topology, d, chosen):
    sequence = np.zeros(len(chosen), dtype=np.int64)
    start, stop, state = np.array(chosen, dtype=np.int64).reshape(-1, 3).T
    return SegmentQueries(d, sequence, start, stop, np.eye(topology.n_states[d], dtype=bool)[state])


@pytest.mark.parametrize(("depth", "seed"), [(depth, seed) for depth in (2, 3, 4) for seed in range(24)])
def test_every_segment_by_enumeration(depth, seed):
    model, evidence, potentials, labels = draw(depth, seed)
    posterior = Posterior(potentials, labels)
    for d, table in enumerate(twin.segment_posteriors(model, evidence)):
        possible = [(i, i + length + 1, s) for i, length, s in np.argwhere(table > 0).tolist()]
        length = model.length
        chosen = [*possible[:25], (0, length, 0), (length - 1, length, 0)]
        expected = [table[i, j - i - 1, s] for i, j, s in chosen]
        queries = asked_for(potentials.topology, d, chosen)
        found = segment_probabilities(posterior.batch, posterior.values, queries, together=7)  # several batches
        np.testing.assert_allclose(found, expected, **CLOSE)


def test_several_states_are_added_up():
    model, evidence, potentials, labels = draw(3, 4)
    posterior = Posterior(potentials, labels)
    table = twin.segment_posteriors(model, evidence)[1]
    i, length, _ = np.argwhere(table > 0)[0].tolist()
    start, stop = np.array([i]), np.array([i + length + 1])
    every = SegmentQueries(1, np.zeros(1, dtype=np.int64), start, stop, np.ones((1, model.sizes[1]), dtype=bool))
    found = segment_probabilities(posterior.batch, posterior.values, every)
    np.testing.assert_allclose(found, [table[i, length].sum()], **CLOSE)


# ------------------------------------------------------------------------------
# Models


def small_model(kind, seed=0):
    inputs, labels = make_nested(8, (2, 3), length=(4, 6), separation=0.3, n_features=2, random_state=seed)
    if kind == "segmental":
        topology = Topology(labels[0].topology.to_dict()["levels"], max_duration={"level1": 6, "level2": 2})
        labels = [Labels(topology, y.states, y.ends) for y in labels]
        return HSCRF().fit(inputs, labels), inputs
    if kind == "dynamic":
        columns = [{level: y.column(level) for level in ("level1", "level2")} for y in labels]
        return DynamicCRF(combinations="all").fit(inputs, columns), inputs
    return HSCRF(c2=0.3).fit(inputs, labels), inputs


def enumerated(model, x, evidence=None):
    """All labellings of a sequence as the user sees them, with their probabilities."""
    (posterior,) = model.posterior([x], None if evidence is None else [evidence])
    found = posterior.k_best(200_000)
    weights = np.exp([y.score - posterior.log_partition for y in found])
    np.testing.assert_allclose(weights.sum(), 1, rtol=1e-9)
    return found, weights


def check_confidence(model, x, evidence=None):
    known = None if evidence is None else [evidence]
    (y,) = model.predict([x], evidence=known, confidence=True)
    assert y == model.predict([x], evidence=known)[0]
    everything, weights = enumerated(model, x, evidence)
    for level in ("level1", "level2"):
        segments, columns = [z.segments(level) for z in everything], [z.column(level) for z in everything]
        for segment in y.confidence(level):
            i, j, state = segment[:3]
            exact = sum(w for some, w in zip(segments, weights, strict=True) if (i, j, state) in some)
            right = [column[i:j].count(state) / (j - i) for column in columns]
            assert segment.probability == pytest.approx(exact, rel=1e-8, abs=1e-12)
            assert segment.label_probability == pytest.approx(weights @ np.array(right), rel=1e-8, abs=1e-12)
        assert [s[:3] for s in y.confidence(level)] == y.segments(level)


@pytest.mark.parametrize("kind", ["markov", "segmental", "dynamic"])
def test_confidence_of_predictions_by_enumeration(kind):
    model, inputs = small_model(kind)
    check_confidence(model, inputs[0][:4])


@pytest.mark.parametrize("kind", ["markov", "segmental"])
def test_confidence_under_evidence(kind):
    model, inputs = small_model(kind)
    x = inputs[0][:4]
    state = model.topology_.states[1][1]
    known = Labels.from_columns(model.topology_, {"level1": ["?", state, "?", "?"]})
    check_confidence(model, x, known)


def test_known_segments_are_certain():
    model, inputs = small_model("markov")
    y = model.predict(inputs[:1])[0]
    (certain,) = model.predict(inputs[:1], evidence=[y], confidence=True)
    for level in ("level1", "level2"):
        np.testing.assert_allclose([s[3:] for s in certain.confidence(level)], 1.0, rtol=1e-9)


def test_confidence_is_the_same_for_all_sequences_at_once():
    model, inputs = small_model("markov")
    whole = model.predict(inputs, confidence=True)
    model.n_jobs = 2
    for x, y in zip(inputs, whole, strict=True):
        (alone,) = model.predict([x], confidence=True)
        np.testing.assert_allclose(
            [s[3:] for s in alone.confidence("level1")], [s[3:] for s in y.confidence("level1")], rtol=1e-12
        )


def test_labels_without_confidence_say_so():
    model, inputs = small_model("markov")
    (y,) = model.predict(inputs[:1])
    with pytest.raises(ValueError, match=r"no confidence; expected labels from predict\(X, confidence=True\)"):
        y.confidence("level1")
    (sure,) = model.predict(inputs[:1], confidence=True)
    again = pickle.loads(pickle.dumps(sure))
    assert again.confidence("level2") == sure.confidence("level2")
    with pytest.raises(ValueError, match="unknown level"):
        sure.confidence("level9")


# ------------------------------------------------------------------------------
# Temperatures


def overconfident(seed=0):
    """An overconfident model, and development data that show it."""
    inputs, labels = make_nested(40, (2, 3), separation=0.4, n_features=8, random_state=seed)
    return HSCRF(c2=1e-4).fit(inputs[:12], labels[:12]), inputs[12:], labels[12:]


def test_tempered_states_by_the_definition():
    table = np.random.default_rng(0).dirichlet(np.ones(4), size=6)
    table[0] = [1, 0, 0, 0]
    for temperature in (0.3, 1.0, 2.5):
        expected = table ** (1 / temperature)
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(tempered_states(table, temperature), expected, rtol=1e-12)


def test_temperatures_are_the_best_and_labels_stay():
    model, inputs, truth = overconfident()
    before, raw = model.predict(inputs), model.predict_marginals(inputs)
    sure = model.predict(inputs, confidence=True)
    model.calibrate(inputs, truth)
    assert model.predict(inputs) == before
    assert model.predict(inputs, loss="segment") is not None
    after = model.predict_marginals(inputs)
    for d, level in ((1, "level1"), (2, "level2")):
        state, segment = model.temperature_[level]
        assert state > 1

        def loss(t, level=level, d=d):
            tables = [tempered_states(m.state[level], t) for m in raw]
            return -np.mean(
                np.concatenate(
                    [np.log(p[np.arange(len(y)), y.states[d]] + 1e-300) for p, y in zip(tables, truth, strict=True)]
                )
            )

        grid = np.exp(np.linspace(np.log(0.2), np.log(10), 200))
        best = grid[np.argmin([loss(t) for t in grid])]
        assert state == pytest.approx(best, rel=0.03)
        np.testing.assert_allclose(after[0].state[level], tempered_states(raw[0].state[level], state), rtol=1e-12)
        cool = model.predict(inputs, confidence=True)
        for y, z in zip(sure, cool, strict=True):
            q = np.array([s.probability for s in y.confidence(level)]).clip(0, 1)
            warm = q ** (1 / segment) / (q ** (1 / segment) + (1 - q) ** (1 / segment))
            np.testing.assert_allclose([s.probability for s in z.confidence(level)], warm, rtol=1e-9, atol=1e-12)


def test_files_keep_temperatures_and_another_fit_forgets_them(tmp_path):
    model, inputs, truth = overconfident()
    model.calibrate(inputs, truth).save(tmp_path / "m")
    again = hscrf.load(tmp_path / "m")
    assert again.temperature_ == model.temperature_
    assert isinstance(again.temperature_["level1"], Temperature)
    one, other = (m.predict(inputs[:2], confidence=True)[1].confidence("level1") for m in (model, again))
    assert one == other
    model.fit(inputs[:5], truth[:5])
    assert model.temperature_ == {}


def test_damaged_temperatures_are_refused(tmp_path):
    from hscrf.errors import FileFormatError
    from hscrf.files.container import read_container, write_container

    model, inputs, truth = overconfident()
    model.calibrate(inputs, truth).save(tmp_path / "m")
    header, arrays = read_container(tmp_path / "m")
    for bad, message in (
        ({"level1": [-1.0, 1.0]}, r"temperature.level1 is a list of 2, expected two numbers from 0.025 to 40"),
        ({"level1": [1.0]}, r"temperature.level1 is a list of 1, expected two numbers"),
        ({"nowhere": [1.0, 1.0]}, r"temperature names the level 'nowhere'"),
    ):
        write_container(tmp_path / "bad", {**json.loads(json.dumps(header)), "temperature": bad}, arrays)
        with pytest.raises(FileFormatError, match=message):
            hscrf.load(tmp_path / "bad")


def test_partial_labels_calibrate_what_is_known():
    model, inputs, truth = overconfident()
    partial = [Labels.from_columns(y.topology, {"level1": y.column("level1")}) for y in truth]
    model.calibrate(inputs, partial)
    assert model.temperature_["level1"].state > 1
    assert model.temperature_["level2"] == (1.0, 1.0)


def with_unknown_edges(truth, at_front):
    """The labels with the first and last steps unknown: states and ends, or only the ends."""
    found = []
    for y, n in zip(truth, at_front, strict=True):
        states, ends = y.states.copy(), y.ends.copy()
        states[1:, :n], ends[1:, :n] = -1, -1
        ends[1:, -n - 1 :] = -1
        found.append(Labels(y.topology, states, ends))
    return found


def test_segments_count_that_the_truth_knows():
    model, inputs, truth = overconfident()
    found = model.predict(inputs, confidence=True)
    edges = [n % 3 + 1 for n in range(len(truth))]
    partial = with_unknown_edges(truth, edges)
    for level in ("level1", "level2"):
        chance, right = [], []
        for y, z, n in zip(truth, found, edges, strict=True):
            for segment in z.confidence(level):
                if n < segment.start and segment.stop < y.length - n:
                    chance.append(segment.probability)
                    right.append(segment[:3] in y.segments(level))
        curve = metrics.calibration(partial, found, level)
        assert 0 < curve.total == len(chance)
        assert curve.mean_accuracy == pytest.approx(np.mean(right))
        assert curve.error == pytest.approx(ece_twin(chance, right, 10), abs=1e-12)
    assert model.calibrate(inputs, partial).temperature_["level1"].segment > 1


@pytest.mark.parametrize("lasts", [False, True])
def test_segments_of_the_truth_are_read_as_the_model_has_them(lasts):
    """Labels over a topology whose segments have single steps, for a model with longer ones; and the reverse."""
    bottoms = [Topology({"part": ["a", "b"]}, max_duration=limit) for limit in ({"part": 1}, {"part": None})]
    X = [[[name] for name in "aabbbaab"], [[name] for name in "bbabaaaa"]] * 4
    own, other = ([Labels.from_columns(topology, {"part": [s for (s,) in x]}) for x in X] for topology in bottoms)
    if lasts:
        own, other = other, own
    model = HSCRF(own[0].topology).fit(X, own)
    found = model.predict(X, confidence=True)
    assert metrics.calibration(other, found, "part").mean_accuracy == 1.0
    assert model.calibrate(X, other).temperature_ == model.calibrate(X, own).temperature_


def test_a_dynamic_model_is_calibrated_by_level():
    model, inputs = small_model("dynamic")
    flipped = [{level: y.column(level)[::-1] for level in ("level1", "level2")} for y in model.predict(inputs)]
    model.calibrate(inputs, flipped)
    assert set(model.temperature_) == {"level1", "level2"}
    assert max(t.state for t in model.temperature_.values()) > 1
    np.testing.assert_allclose(model.predict_marginals(inputs)[0].state["level1"].sum(axis=1), 1)
    runs = [Labels.from_columns(model.levels_, y) for y in flipped]  # of several steps, unlike those of the model
    assert any(len(y.segments("level1")) < y.length for y in runs)
    expected = model.temperature_
    assert model.calibrate(inputs, runs).temperature_ == expected


# ------------------------------------------------------------------------------
# Decoding by steps


def test_steps_warn_where_tags_delimit_segments():
    X = [[["a"], ["b"], ["c"]]] * 2
    model = HSCRF().fit(X, [{"phrase": ["B-NP", "B-NP", "O"], "tag": ["D", "N", "V"]}] * 2)
    with pytest.warns(UserWarning, match="loss='step' ignores where segments begin, but level 'phrase' has tags"):
        model.predict(X, loss="step")
    model.predict(X, loss="segment")
    plain = ChainCRF().fit(X, [["x", "y", "y"]] * 2)
    assert len(plain.predict(X, loss="step")) == 2


# ------------------------------------------------------------------------------
# Calibration curves, files


def ece_twin(chance, right, bins):
    """The expected calibration error by its definition."""
    total = 0.0
    for k in range(bins):
        own = [
            (p, r)
            for p, r in zip(chance, right, strict=True)
            if k / bins <= p < (k + 1) / bins or (p == 1 and k == bins - 1)
        ]
        if own:
            total += abs(sum(p for p, _ in own) - sum(r for _, r in own))
    return total / len(chance)


@pytest.mark.parametrize("bins", [1, 7, 10])
def test_calibration_of_steps_by_the_definition(bins):
    model, inputs, truth = overconfident()
    marginals = model.predict_marginals(inputs)
    partial = [Labels.from_columns(y.topology, {"level2": ["?", *y.column("level2")[1:]]}) for y in truth]
    for level, given in (("level1", truth), ("level2", partial)):
        names = model.topology_.states[model.topology_.level(level)]
        chance, right = [], []
        for y, m in zip(given, marginals, strict=True):
            for t, name in enumerate(y.column(level)):
                if name != "?":
                    chance.append(m.state[level][t].max())
                    right.append(names[m.state[level][t].argmax()] == name)
        curve = metrics.calibration(given, marginals, level, bins)
        assert curve.total == len(chance)
        assert curve.error == pytest.approx(ece_twin(chance, right, bins), abs=1e-12)
        assert curve.mean_accuracy == pytest.approx(np.mean(right))
        assert curve.mean_confidence == pytest.approx(np.mean(chance))
    columns = [{"level1": y.column("level1"), "level2": y.column("level2")} for y in truth]
    assert metrics.expected_calibration_error(columns, marginals, "level1", bins) == pytest.approx(
        metrics.calibration(truth, marginals, "level1", bins).error
    )


def test_calibration_of_segments_counts_segments_of_the_truth():
    model, inputs, truth = overconfident()
    found = model.predict(inputs, confidence=True)
    curve = metrics.calibration(truth, found, "level1")
    scores = metrics.segment_scores(truth, found, "level1", ignore=())
    assert curve.total == scores.predicted
    assert curve.mean_accuracy == pytest.approx(scores.precision)
    chance = [s.probability for y in found for s in y.confidence("level1")]
    right = [s[:3] in y.segments("level1") for y, z in zip(truth, found, strict=True) for s in z.confidence("level1")]
    assert curve.error == pytest.approx(ece_twin(chance, right, 10), abs=1e-12)
    state = truth[0].topology.states[1][0]
    rest = metrics.calibration(truth, found, "level1", ignore=[state])
    assert rest.total == sum(s.state != state for y in found for s in y.confidence("level1"))


def test_temperatures_lower_the_calibration_error():
    model, inputs, truth = overconfident()
    before = metrics.expected_calibration_error(truth, model.predict_marginals(inputs), "level2")
    after = metrics.expected_calibration_error(
        truth, model.calibrate(inputs, truth).predict_marginals(inputs), "level2"
    )
    assert after < before


def test_wrong_arguments_of_calibration():
    model, inputs, truth = overconfident()
    marginals = model.predict_marginals(inputs[:2])
    with pytest.raises(ValueError, match="y_true has 1 sequence but predicted has 2"):
        metrics.calibration(truth[:1], marginals, "level1")
    with pytest.raises(ValueError, match="level is None, but there are 'level1', 'level2'"):
        metrics.calibration(truth[:2], marginals)
    with pytest.raises(ValueError, match="bins is 0, expected a whole number"):
        metrics.calibration(truth[:2], marginals, "level1", bins=0)
    with pytest.raises(ValueError, match="no confidence; expected labels from predict"):
        metrics.calibration(truth[:2], model.predict(inputs[:2]), "level1")
    with pytest.raises(ValueError, match=r"predicted\[0\] is a str; expected Marginals"):
        metrics.calibration(truth[:1], ["x"], "level1")


def test_reliability_diagram():
    import matplotlib

    matplotlib.use("agg")
    model, inputs, truth = overconfident()
    marginals = model.predict_marginals(inputs)
    curves = {level: metrics.calibration(truth, marginals, level) for level in ("level1", "level2")}
    ax = plots.plot_calibration(curves)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [f"{level}: error {curve.error:.3f}" for level, curve in curves.items()]
    assert plots.plot_calibration(curves["level1"]).get_legend() is not None
    with pytest.raises(ValueError, match="there are no curves"):
        plots.plot_calibration({})
    matplotlib.pyplot.close("all")


def test_files_have_the_probability_of_each_segment():
    model, inputs = small_model("markov")
    (y,) = model.predict(inputs[:1], confidence=True)
    columns, records = (write(y, ["level1", "level2"]) for write in (io.confidence_columns, io.confidence_records))
    for level in ("level1", "level2"):
        for segment, record in zip(y.confidence(level), records[level], strict=True):
            assert (record["start"], record["stop"], record["state"]) == segment[:3]
            assert record["probability"] == pytest.approx(segment.probability, abs=1e-6)
            assert record["label_probability"] == pytest.approx(segment.label_probability, abs=1e-6)
            cells = columns[f"{level}_confidence"][segment.start : segment.stop]
            assert {float(cell) for cell in cells} == {round(segment.probability, 6)}
    assert json.loads(json.dumps(records)) == records


def test_confidence_adds_up_the_hidden_copies_of_a_filler():
    """Fillers that remember have several hidden states; the user sees one."""
    X = [[[letter] for letter in word] for word in ("abcab", "babca", "cabab")]
    Y = [{"phrase": ["B-P", "O", "O", "B-Q", "O"], "tag": list("xyzxy")}] * 3
    model = HSCRF(c2=1.0, fillers={"phrase": "O"}).fit(X, Y)
    assert model.topology_.remembers
    (posterior,) = model.posterior(X[:1])
    table = posterior.segment("phrase")
    (y,) = model.predict(X[:1], confidence=True)
    names = model.topology_.states[1]
    for segment in y.confidence("phrase"):
        exact = table[segment.start, segment.stop - segment.start - 1, names.index(segment.state)]
        assert segment.probability == pytest.approx(exact, rel=1e-8)


def test_more_learning_removes_temperatures():
    X, Y = [[["a"], ["b"]], [["b"], ["a"]]] * 4, [["N", "V"], ["V", "N"]] * 4
    model = ChainCRF(solver="sgd", random_state=0).partial_fit(X, Y)
    assert model.calibrate(X, Y).temperature_
    assert not model.partial_fit(X, Y).temperature_
