"""Learning: toy grammars, partial labels, penalties, margins, topologies from weights, warm starts and messages."""

import itertools

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

import hscrf
from fitting import loss_of
from hscrf import (
    HSCRF,
    LBFGS,
    SGD,
    Duration,
    End,
    Init,
    Labels,
    Perceptron,
    Start,
    Stop,
    Token,
    Topology,
    Trans,
    metrics,
)
from hscrf.datasets.activities import make_activities
from hscrf.datasets.nested import make_nested
from hscrf.objective.workers import Workers
from toy import TAGS, X, Y, hidden, read, with_topology


def test_learns_a_toy_grammar(toy_model):
    assert toy_model.converged_
    assert toy_model.score(X, Y) == 1.0
    assert toy_model.history_[-1]["loss"] < toy_model.history_[0]["loss"]
    assert len(toy_model.history_) == toy_model.n_iter_
    new, truth = read("a old dog sleeps")
    assert toy_model.predict([new])[0].column("phrase") == truth["phrase"]
    assert toy_model.topology_.to_dict()["children"] == {"phrase": {"NP": ["D", "J", "N"], "VP": ["V"]}}


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


def test_unseen_features_are_ignored(toy_model):
    noisy = [[[*step, "w=unheard", "cap"] for step in x] for x in X]
    assert toy_model.predict(noisy) == toy_model.predict(X)
    np.testing.assert_array_equal(toy_model.log_likelihood(noisy, Y), toy_model.log_likelihood(X, Y))


def test_rare_features_are_left_out():
    assert set(HSCRF(min_count=4).fit(X, Y).encoder_.names) == {"w=the", "w=cat", "w=dog"}
    assert HSCRF(min_count=3).fit(X, Y).coef_.size < HSCRF().fit(X, Y).coef_.size


def test_pairs_of_words_and_tags_have_weights_where_they_were_seen():
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
def test_a_sample_weight_counts_like_repetitions():
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


@pytest.mark.parametrize("seed", [0, 1])
def test_half_of_the_labels_are_nearly_as_good_as_all(deep_model, seed):
    inputs, labels, full = deep_model
    half = HSCRF().fit(inputs[:30], hidden(labels[:30], 0.5, seed=seed))
    all_known, half_known = (metrics.accuracy(labels[30:], m.predict(inputs[30:])) for m in (full, half))
    for level in ("level1", "level2", "level3"):
        assert all_known[level] > 0.9
        assert half_known[level] > all_known[level] - 0.03


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_level_without_labels(deep_model, level):
    inputs, labels, full = deep_model
    fitted = HSCRF(solver=LBFGS(max_iter=20), random_state=0).fit(inputs[:30], hidden(labels[:30], level=level))
    losses = [entry["loss"] for entry in fitted.history_]
    assert losses[-1] < 0.25 * losses[0]
    assert all(after <= before for before, after in itertools.pairwise(losses))
    all_known, others = (metrics.accuracy(labels[30:], m.predict(inputs[30:])) for m in (full, fitted))
    for other in {1, 2, 3} - {level}:
        assert others[f"level{other}"] > all_known[f"level{other}"] - 0.05


def test_the_seed_decides_about_a_hidden_level(deep_model):
    inputs, labels, _ = deep_model
    some, solver = hidden(labels[:5], level=2), LBFGS(max_iter=3)
    one, same, other = (HSCRF(solver=solver, random_state=s).fit(inputs[:5], some).coef_ for s in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.allclose(one, other)


def test_columns_with_gaps_are_learned_from():
    gaps = [
        {"phrase": y["phrase"], "tag": ["?" if k % 3 == n % 3 else t for k, t in enumerate(y["tag"])]}
        for n, y in enumerate(Y)
    ]
    fitted = HSCRF().fit(X, gaps)
    assert fitted.score(X, Y) == 1.0


SOLVERS = {
    "lbfgs": (LBFGS(max_iter=4), 0.1),
    "sgd": (SGD(epochs=1, rate=0.05), 0.1),
    "perceptron": (Perceptron(epochs=2), 0.0),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_fits_have_the_same_bits_on_any_number_of_threads(long_data, name):
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


def test_the_threshold_of_a_learned_topology(toy_model):
    loose = toy_model.learned_topology(-1e9)
    assert loose.children[1].tolist() == toy_model.topology_.children[1].tolist()
    assert loose.successors[2].tolist() == [[True, True, True, False]] * 3 + [[False, False, False, True]]
    strict = toy_model.learned_topology(1e9)
    assert all(table.any(axis=1).all() and table.any(axis=0).all() for table in strict.children)
    assert not strict.successors[2].any()


def test_levels_without_weights_keep_their_topology():
    inputs = [np.random.default_rng(0).normal(size=(4, 2))]
    labels = [{"phrase": ["A", "A", "B", "B"], "tag": ["x"] * 4}]  # the only tag needs no weights
    found = HSCRF().fit(inputs, labels).learned_topology()
    assert found.successors[2].all()
    found = HSCRF(features=[Token("phrase")]).fit(inputs, labels).learned_topology()
    assert found == HSCRF().fit(inputs, labels).topology_


def test_warm_start(toy_model):
    again = HSCRF(warm_start=True).fit(X, Y)
    iterations = again.n_iter_
    again.fit(X, Y)
    assert again.n_iter_ < iterations
    cold = HSCRF().fit(X, Y)
    assert cold.fit(X, Y).n_iter_ == toy_model.n_iter_  # without warm_start a fit forgets


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


def test_a_fit_says_how_it_ended():
    fitted = HSCRF(solver=LBFGS(max_iter=2)).fit(X, Y)
    assert (fitted.converged_, fitted.n_iter_, fitted.stop_reason_) == (False, 2, "max_iter=2 iterations done")
    assert fitted.loss_ == fitted.history_[-1]["loss"]


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


def test_a_given_block_replaces_the_default_one():
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
    for labels, own in ((runs, [1]), (begun, [1, once, once])):
        for inputs in (steps, table):
            model = HSCRF(solver=few, standardize=False).fit(inputs, labels)
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
