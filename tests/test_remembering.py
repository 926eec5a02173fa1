"""Fillers that remember, against an enumeration without copies that scores each labelling by its history."""

import dataclasses
import itertools
import json
import pickle
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import enumeration as twin
import hscrf
from fitting import loss_of
from hscrf.cli import main
from hscrf.fillers import Copy, copies_of, expanded, hidden, shown, usual_fillers
from hscrf.labels.packed import FillerNeighbours
from test_twin import to_labels, to_topology

CASES = [(depth, seed) for depth in (2, 3, 4) for seed in range(18)]
CLOSE = {"rtol": 1e-9, "atol": 1e-10}


# -- the twin: tables by what is remembered, walked through the segments of each labelling ----------------------------


def memory_after(state, remembered, fillers):
    """What a filler remembers that follows this state."""
    return remembered if state in fillers else state


def draw(depth, seed):
    """A random model with fillers; its scores depend on what they remember. Evidence for two seeds in three."""
    rng = np.random.default_rng([7, depth, seed])
    model = twin.random_model(rng, depth)
    levels = [d for d in range(1, depth) if model.sizes[d] > 1]
    if not levels:
        return None
    own = {d: rng.choice(model.sizes[d], size=rng.integers(1, model.sizes[d]), replace=False) for d in levels}
    fillers = {d: set(own[d].tolist()) for d in levels if rng.random() < 0.8 or d == levels[0]}
    blank = {part: {} for part in twin.PARTS}
    model = dataclasses.replace(model, **blank)
    tables = {}
    for d in range(1, depth):
        above, states = model.sizes[d - 1], model.sizes[d]
        tables[d] = {
            "token": rng.normal(size=(model.length, states, states + 1)),  # by state and memory, the last: none
            "start": rng.normal(size=(model.length, states, states + 1)),
            "init": rng.normal(size=(above, states)),
            "trans": rng.normal(size=(above, states, states + 1, states)),
            "end": rng.normal(size=(above, states, states + 1)),
        }
    whole = twin.table(model)
    scores = [score(model, tables, fillers, x, e) for x, e in zip(whole.states, whole.ends, strict=True)]
    model._table = whole._replace(log_scores=np.array(scores))
    evidence = twin.random_evidence(rng, model) if seed % 3 and len(scores) else None
    topology = to_topology(model)
    named = {topology.levels[d]: [topology.states[d][s] for s in sorted(own)] for d, own in fillers.items()}
    topology = topology.remembering(named)
    return model, evidence, potentials_of(topology, tables, model.length), to_labels(topology, evidence)


@cache
def first_case(depth, seed):
    """The first random model from a seed on that can have fillers and agrees with its evidence."""
    for number in itertools.count(seed, 999):  # divisible by three: with evidence as for the seed
        case = draw(depth, number)
        if case is not None and len(twin.consistent(case[0], case[1]).log_scores):
            return case


def score(model, tables, fillers, x, e):
    total = 0.0
    for d, table in tables.items():
        remembered, last, start = -1, None, 0
        for t in range(model.length):
            if e[d][t]:
                s, u = x[d - 1][t], x[d][t]
                if last is None:
                    remembered = -1
                    total += table["init"][s, u]
                else:
                    total += table["trans"][s, last, remembered, u]
                    remembered = memory_after(last, remembered, fillers.get(d, ()))
                kept = remembered if u in fillers.get(d, ()) else -1
                total += table["start"][start, u, kept] + table["token"][start : t + 1, u, kept].sum()
                last, remembered, start = u, kept, t + 1
                if e[d - 1][t]:
                    total += table["end"][s, u, kept]
                    last, remembered = None, -1
    return total


def potentials_of(topology, tables, length):
    """The same tables in the arrays of the engine: a place for each copy."""
    engine = expanded(topology)
    shape = [
        [(names_of(name)[0], names_of(name)[1], topology.states[d], own) for own, name in enumerate(engine.states[d])]
        for d in range(topology.depth)
    ]
    place = [
        [(known.index(state), known.index(after) if after is not None else -1) for state, after, known, _ in level]
        for level in shape
    ]
    parts = {part: {} for part in ("token", "start", "init", "trans", "end")}
    for d, table in tables.items():
        state, memory = np.array(place[d]).T
        parent = np.array(place[d - 1])[:, 0]
        level, above = topology.levels[d], topology.levels[d - 1]
        parts["token"][level] = table["token"][:, state, memory]
        parts["start"][level] = table["start"][:, state, memory]
        parts["init"][above] = table["init"][np.ix_(parent, state)][None]
        parts["trans"][above] = table["trans"][parent][:, state, memory][:, :, state][None]
        parts["end"][above] = table["end"][parent][:, state, memory][None]
    return hscrf.Potentials(topology, length, **parts)


def names_of(name):
    return tuple(name) if isinstance(name, Copy) else (name, None)


@pytest.mark.parametrize(("depth", "seed"), CASES)
def test_all_answers_are_those_of_the_enumeration(depth, seed):
    model, evidence, p, labels = first_case(depth, seed)
    np.testing.assert_allclose(hscrf.log_partition(p, labels), twin.log_partition(model, evidence), **CLOSE)
    found = hscrf.marginals(p, labels)
    for d, level in enumerate(p.topology.levels):
        np.testing.assert_allclose(found.state[level], twin.state_marginals(model, evidence)[d], **CLOSE)
        np.testing.assert_allclose(found.ending[level], twin.ending_marginals(model, evidence)[d], **CLOSE)
        segments = found.segment(level)
        np.testing.assert_allclose(
            segments, twin.segment_posteriors(model, evidence)[d][:, : segments.shape[1]], **CLOSE
        )
    np.testing.assert_allclose(hscrf.entropy(p, labels), twin.entropy(model, evidence), rtol=1e-9, atol=1e-8)
    ranked = twin.ranked(model, evidence)
    best = hscrf.k_best(p, 30, labels)
    np.testing.assert_allclose([y.score for y in best], [c.log_score for c in ranked[:30]], rtol=1e-9, atol=1e-9)
    assert len({(y.states.tobytes(), y.ends.tobytes()) for y in best}) == len(best) == min(30, len(ranked))
    decoded = hscrf.decode(p, labels)
    np.testing.assert_allclose(decoded.score, ranked[0].log_score, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(hscrf.score(p, decoded), ranked[0].log_score, rtol=1e-9, atol=1e-9)
    for y in [*best, decoded, *hscrf.sample(p, 5, 0, labels)]:
        assert y.topology == p.topology
        y.check()


def test_samples_have_the_frequencies_of_the_enumeration():
    model, evidence, p, labels = draw(2, 4)
    possible, probability = twin._posterior(model, evidence)
    draws = 4000
    counts = {}
    for y in hscrf.sample(p, draws, 1, labels):
        key = y.states.astype(np.int8).tobytes(), y.ends.tobytes()
        counts[key] = counts.get(key, 0) + 1
    expected = {
        (x.astype(np.int8).tobytes(), e.astype(np.int8).tobytes()): q
        for x, e, q in zip(possible.states, possible.ends, probability, strict=True)
    }
    assert counts.keys() <= expected.keys()
    for key, q in expected.items():
        assert abs(counts.get(key, 0) / draws - q) < 5 * np.sqrt(q * (1 - q) / draws) + 1e-3


@pytest.mark.parametrize(("depth", "seed"), CASES)
def test_every_labelling_has_exactly_one_hidden_labelling(depth, seed):
    model, _, p, _ = first_case(depth, seed)
    engine, copies = expanded(p.topology), copies_of(p.topology)
    whole = twin.table(model)
    for x, e in list(zip(whole.states, whole.ends, strict=True))[:200]:
        states = hidden(p.topology, x.astype(np.int32), e.astype(np.int8), np.array([0, model.length]))
        assert (states >= 0).all()
        np.testing.assert_array_equal(shown(p.topology, states), x)
        hscrf.Labels(engine, states, e).check()  # the rules of the hidden states hold
        for d, later in copies.later.items():
            first = np.append(True, e[d - 1][:-1] == 1)
            assert not later[states[d][first]].any()


# -- models ----------------------------------------------------------------------------------------------------------


WORDS = ["a", "b", "c", ","]
TAGS = ["B-X", "I-X", "B-Y", "I-Y", "O"]


def bio(tags):
    """The same tags without an I that continues nothing."""
    last, found = "O", []
    for tag in tags:
        if tag[0] == "I" and last[1:] != tag[1:]:
            tag = "B" + tag[1:]
        found.append(tag)
        last = tag
    return found


@st.composite
def data(draw):
    """Sequences of words with BIO tags at two levels, the lower within the upper, some of them unknown."""
    n = draw(st.integers(2, 4))
    X, Y = [], []
    for _ in range(n):
        length = draw(st.integers(1, 7))
        words = draw(st.lists(st.sampled_from(WORDS), min_size=length, max_size=length))
        top = bio(draw(st.lists(st.sampled_from(["B-P", "I-P", "O"]), min_size=length, max_size=length)))
        low = bio(draw(st.lists(st.sampled_from(TAGS), min_size=length, max_size=length)))
        for t in range(length):  # a segment below ends with its parent
            if low[t][0] == "I" and (top[t][0] == "B" or (top[t] == "O") != (top[t - 1] == "O")):
                low[t] = "B" + low[t][1:]
        hide = draw(st.lists(st.booleans(), min_size=length, max_size=length))
        if draw(st.booleans()):
            low = ["?" if gone else tag for gone, tag in zip(hide, low, strict=True)]
            low = ["?" if t and low[t][0] == "I" and low[t - 1] == "?" else tag for t, tag in enumerate(low)]
        X.append([[f"w={word}"] for word in words])
        Y.append({"top": top, "low": low})
    every = {"top": ["B-P", "O", "O", "O", "O"], "low": ["B-X", "B-X", "O", "B-Y", "O"]}
    return [*X, [["w=a"], ["w=a"], ["w=,"], ["w=b"], ["w=,"]]], [*Y, every]


def all_fillers(Y):
    """Every "O" of the labels; "auto" takes only those for which memory pays."""
    return usual_fillers(hscrf.learn_topology(Y))


def leaks(value):
    """Whether a copy is anywhere in a value that a user sees."""
    if isinstance(value, Copy):
        return True
    if isinstance(value, dict):
        return any(map(leaks, value)) or any(map(leaks, value.values()))
    return isinstance(value, (list, tuple)) and any(map(leaks, value))


@pytest.mark.filterwarnings("ignore:loss='step' ignores where segments begin")
@settings(max_examples=20)
@given(data())
def test_no_copy_is_ever_seen(case):
    X, Y = case
    model = hscrf.HSCRF(fillers=all_fillers(Y), solver=hscrf.LBFGS(max_iter=4)).fit(X, Y)
    topology = model.topology_
    assert topology.filler_names == all_fillers(Y)
    sizes = dict(zip(topology.levels, topology.n_states, strict=True))
    posteriors = model.posterior(X, Y)
    predicted = [
        *model.predict(X),
        *model.predict(X, evidence=Y),
        *model.predict(X, loss="step"),
        *model.predict(X, loss="segment"),
        *(y for some in model.sample(X, 2, random_state=0) for y in some),
        *(y for p in posteriors for y in p.k_best(4)),
    ]
    for y in predicted:
        assert y.topology == topology
        assert not leaks([y.segments(level) for level in topology.levels[1:]])
        assert not leaks([y.column(level, "bio") for level in topology.levels[1:]])
        assert not leaks(y.tree())
        assert "Copy" not in f"{y!s} {y!r}"
    for marginals, labels in zip(model.predict_marginals(X, Y), Y, strict=True):
        for level, table in marginals.state.items():
            assert table.shape == (len(labels["top"]), sizes[level])
            np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-9)
            assert marginals.segment(level).shape[2] == sizes[level]
            assert not leaks(marginals.to_dicts(level))
    for p in posteriors:
        best = p.k_best(4)
        assert len(set(map(hash, best))) == len(best)
    assert not model.weights_.map(leaks).to_numpy().any()
    assert set(model.weights_["states"].str.split(" > ").explode()) <= {
        str(s) for names in topology.states for s in names
    }
    assert model.learned_topology().states == topology.states
    assert (model.log_likelihood(X, Y) <= 1e-9).all()
    assert 0 <= model.score(X, Y) <= 1
    assert not leaks(topology.to_dict())
    assert not leaks(model.topology_.states)


@pytest.mark.filterwarnings("ignore:all segments of level")
@settings(max_examples=15)
@given(data())
def test_no_copy_is_in_records_reports_and_files(case):
    X, Y = case
    model = hscrf.HSCRF(fillers=all_fillers(Y), solver=hscrf.LBFGS(max_iter=3)).fit(X, Y)
    levels = model.topology_.levels[1:]
    shown_states = {str(name) for names in model.topology_.states for name in names} | {"?"}
    predicted = model.predict(X, confidence=True)
    for y in predicted:
        assert {segment.state for level in levels for segment in y.confidence(level)} <= shown_states
        assert not leaks(hscrf.io.confidence_records(y, levels))
        assert not leaks(hscrf.io.confidence_columns(y, levels))
        frame = y.to_frame()
        assert {str(cell) for level in levels for cell in frame[level]} <= shown_states
        for d, sizes in enumerate(model.topology_.n_states):
            assert y.states[d].max() < sizes
    truth = [y.to_frame("bio").to_dict("list") for y in predicted]
    for stated in (hscrf.metrics.report(predicted, predicted), model.predict_marginals(X)[0].state):
        assert not leaks(stated)
        assert "Copy" not in str(stated)
    stream = model.stream(lag=2, marginals=True)
    for x in X:
        for step in stream.run(x):
            assert set(step.labels.values()) <= shown_states
            for level, probabilities in step.probabilities.items():
                assert len(probabilities) == len(model.topology_.states[model.topology_.level(level)])
    again = hscrf.HSCRF(fillers=None, solver=hscrf.LBFGS(max_iter=2)).fit(X, truth)
    assert set(map(str, again.topology_.states[-1])) <= shown_states
    assert b"Copy(" not in pickle.dumps(predicted)


def test_known_labels_stay_and_sets_narrow():
    X = [[["w=a"], ["w=,"], ["w=b"], ["w=,"], ["w=a"]]] * 2
    Y = [["B-X", "O", "B-Y", "O", "B-X"], ["B-Y", "O", "B-X", "O", "O"]]
    model = hscrf.HSCRF(fillers={"label": "O"}).fit(X, Y)
    topology = model.topology_
    found = model.predict(X[:1], evidence=[["O", "?", "?", "O", "O"]])[0]
    assert [found.column()[t] for t in (0, 3, 4)] == ["O", "O", "O"]
    allowed = np.ones((5, topology.n_states[1]), dtype=bool)
    allowed[2] = False
    allowed[2, [topology.state(1, "O"), topology.state(1, "Y")]] = True
    narrow = hscrf.Labels(topology, [[0] * 5, [-1] * 5], [[0, 0, 0, 0, 1], [-1] * 5], {"label": allowed})
    marginals = model.predict_marginals(X[:1], [narrow])[0]
    assert marginals.state["label"][2, topology.state(1, "X")] == 0
    assert marginals.state["label"][2].sum() == pytest.approx(1)


def second_order_data(n=60, seed=0):
    """After a comma the class goes on as before it: only a filler that remembers can know."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        state = rng.choice(["X", "Y"])
        X.append([[f"w={state}"], ["w=,"], ["w=z"]])
        Y.append([f"B-{state}", "O", f"B-{state}"])
    return X, Y


def test_a_filler_remembers_what_came_before():
    X, Y = second_order_data()
    plain, remembering = (hscrf.HSCRF(fillers=how).fit(X, Y) for how in (None, "auto"))
    assert sum(y.column("label", "bio") == t for y, t in zip(remembering.predict(X), Y, strict=True)) == len(X)
    assert sum(y.column("label", "bio") == t for y, t in zip(plain.predict(X), Y, strict=True)) < len(X)
    after = remembering.weights_.query("part == 'trans' and states == 'root > O > X'").set_index("after")["weight"]
    assert after["X"] > after["Y"]


def test_fillers_remember_only_where_that_says_something():
    """A filler that tells what comes next, and one whose neighbours are independent of each other."""
    rng = np.random.default_rng(0)
    X, Y = second_order_data(200)
    loose = [[f"B-{rng.choice(['X', 'Y'])}", "O", f"B-{rng.choice(['X', 'Y'])}"] for _ in X]
    assert hscrf.HSCRF().fit(X, Y).topology_.filler_names == {"label": ["O"]}
    assert not hscrf.HSCRF().fit(X, loose).topology_.remembers
    both = [{"phrase": ["B-P"] + ["I-P"] * 2, "told": y, "loose": other} for y, other in zip(Y, loose, strict=True)]
    assert hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=1)).fit(X, both).topology_.filler_names == {"told": ["O"]}


def test_neighbours_of_fillers_are_counted_under_one_parent_where_they_are_known():
    topology = hscrf.Topology({"top": ["P", "Q", "O"], "low": ["x", "y", "O"]}, max_duration={"low": None})
    tops = [["B-P", "I-P", "I-P", "B-Q", "I-Q"], ["B-P", "I-P", "I-P", "?", "?"], ["O", "O", "O", "B-Q", "I-Q"]]
    lows = [["B-x", "O", "O", "O", "B-y"], ["O", "B-y", "O", "?", "O"], ["B-x", "O", "B-y", "B-y", "O"]]
    labels = [
        hscrf.Labels.from_columns(topology, {"top": top, "low": low}, scheme="bio")
        for top, low in zip(tops, lows, strict=True)
    ]
    found = FillerNeighbours()
    found.update(labels)
    assert found.counts["low"] == {
        ("O", "P", "x", None): 1,  # the run of O is cut where P ends
        ("O", "Q", None, "y"): 1,
        ("O", "P", None, "y"): 1,  # the others of this sequence have unknown neighbours
        ("O", "O", "x", "y"): 1,
        ("O", "Q", "y", None): 1,
    }
    assert found.counts["top"] == {("O", "root", None, "Q"): 1}
    parts = FillerNeighbours()
    for y in labels:
        part = FillerNeighbours()
        part.update([y])
        parts.merge(part)
    assert (parts.counts, parts.runs) == (found.counts, found.runs)


@pytest.mark.parametrize("margin", [0.0, 0.7])
def test_the_gradient_is_that_of_the_loss(margin):
    X, Y = second_order_data(4)
    Y = [Y[0], ["O", "?", "B-X"], ["?", "O", "?"], Y[3]]
    model = hscrf.HSCRF(
        fillers={"label": "O"},
        margin=margin,
        features=[hscrf.Token("label"), hscrf.Start("label"), hscrf.Trans("root"), hscrf.End("root")],
    )
    from hscrf.objective.workers import Workers

    with Workers(1) as workers:
        objective, weights = loss_of(model, X, Y, None, workers)
        weights = np.random.default_rng(0).normal(size=weights.size)
        _, gradient = objective(weights)
        for k in range(weights.size):
            step = np.zeros_like(weights)
            step[k] = 1e-5
            slope = (objective(weights + step)[0] - objective(weights - step)[0]) / 2e-5
            assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_a_model_that_remembers_is_saved_loaded_and_pickled(tmp_path):
    X, Y = second_order_data(20)
    model = hscrf.HSCRF(fillers={"label": "O"}).fit(X, Y)
    model.save(tmp_path / "m.hscrf")
    loaded = hscrf.load(tmp_path / "m.hscrf")
    assert loaded.topology_ == model.topology_
    assert loaded.topology_.remembers
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        assert other.predict(X) == model.predict(X)
        np.testing.assert_array_equal(other.coef_, model.coef_)
    again = loaded.set_params(warm_start=True).fit(X, Y)
    assert again.n_iter_ < model.n_iter_


@pytest.mark.parametrize("observed", [False, True])
def test_a_stream_gives_what_predict_gives(observed):
    rng = np.random.default_rng(0)
    X = [[[f"w={rng.choice(WORDS)}"] for _ in range(9)] for _ in range(8)]
    Y = [bio(rng.choice(TAGS, size=9).tolist()) for _ in X]
    parts = [hscrf.Token("label"), hscrf.Start("label"), hscrf.Trans("root"), hscrf.Init("root", observed=observed)]
    model = hscrf.HSCRF(fillers={"label": "O"}, features=parts).fit(X, Y)
    stream = model.stream(lag=20, marginals=True)
    for x, labels, marginals in zip(X, model.predict(X), model.predict_marginals(X), strict=True):
        steps = list(stream.run(x))
        assert [step.labels["label"] for step in steps] == labels.column("label")
        np.testing.assert_allclose(steps[-1].probabilities["label"], marginals.state["label"][-1], rtol=1e-8)


def test_integer_states_may_be_fillers(tmp_path):
    X = [[["w=a"], ["w=,"], ["w=b"]]] * 3
    model = hscrf.HSCRF(fillers={"label": 0}).fit(X, [[1, 0, 2], [2, 0, 1], [1, 0, 1]])
    assert model.topology_.filler_names == {"label": [0]}
    model.save(tmp_path / "m.hscrf")
    assert hscrf.load(tmp_path / "m.hscrf").topology_ == model.topology_


def test_fillers_are_off_by_one_argument_and_given_by_the_topology():
    X, Y = second_order_data(6)
    assert not hscrf.HSCRF(fillers=None).fit(X, Y).topology_.remembers
    topology = hscrf.learn_topology(Y).remembering({"label": "O"})
    assert hscrf.HSCRF(topology, fillers="auto").fit(X, Y).topology_.filler_names == {"label": ["O"]}
    assert not hscrf.HSCRF(topology, fillers=None).fit(X, Y).topology_.remembers


@pytest.mark.parametrize(
    ("fillers", "message"),
    [
        ({"label": "P"}, "unknown state of level 'label': 'P'"),
        ({"root": "root"}, "fillers names 'root', which has no siblings"),
        ({"tag": "O"}, "unknown level: 'tag'"),
        ({"label": ["X", "O"]}, "all states of level 'label' are fillers"),
    ],
)
def test_wrong_fillers_are_an_error(fillers, message):
    with pytest.raises(ValueError, match=message):
        hscrf.Topology({"label": ["X", "O"]}, fillers=fillers)


def test_contradictory_evidence_names_what_is_shown():
    X, Y = second_order_data(6)
    topology = hscrf.learn_topology(Y)
    arguments = {**topology.to_dict(), "successors": {"label": {"O": ["X"], "X": ["O"]}}}
    model = hscrf.HSCRF(hscrf.Topology.from_dict(arguments), fillers={"label": "O"}).fit(
        [X[0][:1]] * 2, [["B-X"], ["O"]]
    )
    with pytest.raises(hscrf.InfeasibleError) as caught:
        model.predict([X[0]], evidence=[["B-X", "?", "B-Y"]])
    assert "Copy" not in str(caught.value)
    assert "after" not in str(caught.value)


def test_predicted_labels_teach_a_model_without_memory():
    X = [[["w=X"], ["w=,"], ["w=z"]], [["w=Y"], ["w=,"], ["w=z"]]]
    first = hscrf.HSCRF().fit(X, [["B-X", "O", "B-X"], ["B-Y", "O", "B-Y"]])
    assert first.topology_.remembers
    second = hscrf.HSCRF(first.topology_, fillers=None).fit(X, first.predict(X))
    assert not second.topology_.remembers
    assert second.predict(X)[0].column("label")[:2] == ["X", "O"]


def test_no_copy_is_written_by_the_shell(tmp_path, capsys):
    """Predictions in all formats, probabilities, shards, weights and pictures."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(12):
        low = [["X", "a"], ["Y", "b"]][rng.integers(2)]  # the same after a comma, so that it is worth remembering
        for t in range(4):
            lines += [f"{low[1]} {'B' if t % 2 == 0 else 'I'}-P B-{low[0]}", f", {'I-P' if t % 2 == 0 else 'O'} O"]
        lines.append("")
    (tmp_path / "train.txt").write_text("\n".join(lines), encoding="utf-8")
    train, model, shards = (str(tmp_path / name) for name in ("train.txt", "m.hscrf", "shards"))
    fit = ["fit", train, "-m", model, "--levels", "top=2,low=3", "--max-iter", "5", "--shards", shards]
    assert main(fit) == 0
    assert hscrf.load(model).topology_.filler_names == {"low": ["O"]}
    capsys.readouterr()
    for kind in ("columns", "jsonl", "table", "segments", "spacy", "brat"):
        extra = ["--marginals", "--k-best", "3", "--samples", "2"] if kind == "jsonl" else []
        assert main(["predict", train, "-m", model, "--to", kind, "-o", str(tmp_path / f"out-{kind}"), *extra]) == 0
    written = [path.read_text(encoding="utf-8") for path in tmp_path.glob("out-*") if path.is_file()]
    assert len(written) >= 6
    assert not any("Copy" in text for text in written)
    for line in (tmp_path / "out-jsonl").read_text(encoding="utf-8").splitlines():
        for segments in json.loads(line)["prediction"].values():
            assert {some[2] if isinstance(some, list) else some for some in segments} <= {"P", "X", "Y", "O"}
    for picture, level in (("topology", []), ("transitions", ["--level", "low"])):
        svg = tmp_path / f"{picture}.svg"
        assert main(["plot", model, "-o", str(svg), "--what", picture, *level]) == 0
        assert "Copy" not in svg.read_text(encoding="utf-8")
    assert main(["show", model]) == 0
    assert main(["score", str(tmp_path / "out-columns"), "-m", model]) == 0
    assert "Copy" not in capsys.readouterr().out
