"""Every form of labels gives the same model, the same predictions and the same scores."""

import enum

import numpy as np
import pandas
import pytest
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import hscrf
from hscrf import HHMM, HSCRF, LBFGS, ChainCRF, DynamicCRF, Labels, SemiCRF, Topology, learn_topology, metrics

SOLVER = LBFGS(max_iter=15)
X = [[["a"], ["b"], ["c"]], [["a"], ["b"]], [["c"], ["a"], ["b"], ["b"]]] * 2
Y = [
    {"phrase": ["P", "P", "Q"], "tag": ["x", "y", "z"]},
    {"phrase": ["P", "P"], "tag": ["x", "y"]},
    {"phrase": ["Q", "P", "P", "P"], "tag": ["z", "x", "y", "y"]},
] * 2


def long_table(Y):
    parts = [pandas.DataFrame(y).assign(sequence=f"s{9 - n}", time=range(len(y["tag"]))) for n, y in enumerate(Y)]
    table = pandas.concat(parts, ignore_index=True)
    order = [n for n in range(len(table)) if n % 2] + [n for n in range(len(table)) if n % 2 == 0]
    return table.iloc[sorted(order, key=lambda n: (table.sequence[n], -table.time[n]), reverse=True)]


def labels_of(Y):
    topology = learn_topology(Y)
    return [Labels.from_columns(topology, y) for y in Y]


FORMS = {
    "columns": lambda Y: Y,
    "arrays of columns": lambda Y: [{level: np.array(column) for level, column in y.items()} for y in Y],
    "series": lambda Y: [{level: pandas.Series(column, dtype=object) for level, column in y.items()} for y in Y],
    "frames": lambda Y: [pandas.DataFrame(y) for y in Y],
    "one table": long_table,
    "Labels": labels_of,
    "segments": lambda Y: [
        {**y, "phrase": labels.segments("phrase")} for y, labels in zip(Y, labels_of(Y), strict=True)
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same(form):
    given, plain = FORMS[form](Y), HSCRF(solver=SOLVER).fit(X, Y)
    model = HSCRF(solver=SOLVER).fit(X, given)
    assert model.topology_ == plain.topology_
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    found = plain.predict(X)
    assert model.predict(X, evidence=given) == plain.predict(X, evidence=Y) == labels_of(Y)
    assert plain.score(X, given) == plain.score(X, Y)
    np.testing.assert_array_equal(plain.log_likelihood(X, given), plain.log_likelihood(X, Y))
    assert metrics.accuracy(given, found) == metrics.accuracy(Y, found)
    assert metrics.report(given, found) == metrics.report(labels_of(Y), found)
    assert metrics.segment_scores(given, found, "phrase") == metrics.segment_scores(Y, found, "phrase")
    assert metrics.segment_scores(found, given, "phrase").recall == metrics.segment_scores(Y, found, "phrase").precision
    assert metrics.exact_match(given, found) == metrics.exact_match(Y, found)
    assert metrics.boundary_f1(given, found, "phrase") == metrics.boundary_f1(Y, found, "phrase")
    assert metrics.confusion(given, found, "tag")[0].tolist() == metrics.confusion(Y, found, "tag")[0].tolist()
    assert metrics.joint_accuracy(given, given) == 1.0
    assert metrics.conlleval(given, found, level="phrase") == metrics.conlleval(Y, found, level="phrase")
    assert metrics.conlleval(given, found, level="phrase").correct == metrics.segment_scores(Y, found, "phrase").correct


NUMBERS = {"P": 0, "Q": 1, "x": 10, "y": 20, "z": 30, "?": -1}


def numbered(Y):
    return [np.array([[NUMBERS[s] for s in y[level]] for level in ("phrase", "tag")]).T for y in Y]


def test_arrays_of_integers_come_back_as_integers(tmp_path):
    plain, model = HSCRF(solver=SOLVER).fit(X, Y), HSCRF(solver=SOLVER).fit(X, numbered(Y))
    assert model.topology_.levels[1:] == ("level1", "level2")
    assert model.topology_.states[1:] == ((0, 1), (10, 20, 30))
    found = model.predict(X)
    for one, other in zip(found, plain.predict(X), strict=True):
        assert one.column("level2") == [NUMBERS[tag] for tag in other.column("tag")]
        assert all(type(tag) is int for tag in one.column("level2"))
    np.testing.assert_allclose(model.log_likelihood(X, numbered(Y)), plain.log_likelihood(X, Y), rtol=1e-12)
    model.save(tmp_path / "m")
    again = hscrf.load(tmp_path / "m")
    assert again.topology_ == model.topology_
    assert again.predict(X) == found
    assert again.score(X, numbered(Y)) == model.score(X, numbered(Y))
    named = HSCRF(Topology({"phrase": [0, 1], "tag": [10, 20, 30]}), solver=SOLVER).fit(X, numbered(Y))
    assert named.predict(X)[0].column("tag") == found[0].column("level2")
    with pytest.raises(ValueError, match=r"Y\[0\]: an array has 1 column, expected one for each of 'phrase', 'tag'"):
        named.score(X, [y[:, :1] for y in numbered(Y)])


def test_minus_one_is_unknown_where_labels_are_integers():
    hidden = [{**y, "tag": ["?", *y["tag"][1:]]} for y in Y]
    one = HSCRF(learn_topology(Y), solver=SOLVER).fit(X, hidden)
    other = HSCRF(learn_topology(numbered(Y)), solver=SOLVER).fit(X, numbered(hidden))
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="has a state -1, which means unknown"):
        ChainCRF().fit([[["a"], ["b"]]], [["O", -1]])


@pytest.mark.parametrize("nothing", [None, float("nan"), np.nan, pandas.NA, "?"])
def test_every_sign_of_nothing_known(nothing):
    frames = [pandas.DataFrame({"tag": pandas.Series(["x", nothing], dtype=object)})] * 2
    model = HSCRF(solver=SOLVER).fit([[["a"], ["b"]]] * 2, [*frames[:1], {"tag": ["x", "y"]}])
    assert model.topology_.states[1] == ("x", "y")
    assert model.predict([[["a"], ["b"]]], evidence=frames[:1])[0].column("tag")[0] == "x"


def test_holes_in_a_column_of_integers():
    frames = [pandas.DataFrame({"tag": [3, None, 5]}), pandas.DataFrame({"tag": [3, 5, 5]})]
    assert frames[0].tag.dtype == float
    model = HSCRF(solver=SOLVER).fit([[["a"], ["b"], ["b"]]] * 2, frames)
    assert model.topology_.states[1] == (3, 5)
    assert all(type(state) is int for state in model.topology_.states[1])


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize("states", [(True, False), (1.5, 2.5), (Colour.RED, Colour.BLUE), (3, "three")])
def test_other_hashables_stay_what_they_are(states, tmp_path):
    one, other = states
    model = ChainCRF(solver=SOLVER).fit([[["a"], ["b"]]] * 3, [[one, other]] * 3)
    assert model.predict([[["a"], ["b"]]])[0].column("label") == [one, other]
    assert set(model.topology_.states[1]) == set(states)
    assert "RED" in str(model.weights_.states.tolist()) or one is not Colour.RED
    if one is Colour.RED:
        with pytest.raises(ValueError, match="a file can hold strings and numbers only"):
            model.save(tmp_path / "m")
    else:
        model.save(tmp_path / "m")
        assert hscrf.load(tmp_path / "m").predict([[["a"], ["b"]]])[0].column("label") == [one, other]


@pytest.mark.parametrize("model", [DynamicCRF(solver=SOLVER), HHMM(), HSCRF(solver=SOLVER)])
def test_integers_in_every_family(model, tmp_path):
    symbols = [[step[0] for step in x] for x in X] if isinstance(model, HHMM) else X
    model.fit(symbols, numbered(Y))
    assert model.predict(symbols)[1].column("level2") == [10, 20]
    assert model.score(symbols, numbered(Y)) == 1.0
    model.save(tmp_path / "m")
    assert hscrf.load(tmp_path / "m").predict(symbols) == model.predict(symbols)


def test_bio_is_recognised():
    tagged = [["B-P", "I-P", "O"], ["B-P", "B-P"], ["O", "B-P", "I-P", "B-P"]]
    one, other = (HSCRF(scheme=scheme, solver=SOLVER).fit(X[:3], tagged) for scheme in ("auto", "bio"))
    assert one.topology_ == other.topology_
    assert one.scheme_ == {"label": "bio"}
    np.testing.assert_array_equal(one.coef_, other.coef_)
    with pytest.warns(UserWarning, match="labels such as B-P"):
        plain = HSCRF(scheme="plain", solver=SOLVER).fit(X[:3], tagged)
    assert plain.topology_.states[1] == ("B-P", "I-P", "O")
    assert ChainCRF(solver=SOLVER).fit(X[:3], tagged).topology_.states[1] == ("B-P", "I-P", "O")
    found = one.predict(X[:3])
    assert metrics.segment_scores(tagged, found).support == 5
    assert metrics.segment_scores(tagged, tagged).f1 == 1.0


def test_a_recognised_scheme_is_kept_in_files(tmp_path):
    tagged = [["B-P", "I-P", "O"], ["B-P", "B-P"]]
    model = HSCRF(solver=SOLVER).fit(X[:2], tagged)
    model.save(tmp_path / "m")
    again = hscrf.load(tmp_path / "m")
    assert again.scheme_ == {"label": "bio"}
    assert again.get_params() == model.get_params()
    assert again.score(X[:2], tagged) == model.score(X[:2], tagged)


def test_topologies_from_labels():
    assert learn_topology(Y) == HSCRF(solver=SOLVER).fit(X, Y).topology_
    assert learn_topology([["B-x", "O"]], scheme="plain").states[1] == ("B-x", "O")
    assert learn_topology([["B-x", "O"]]).states[1] == ("O", "x")
    assert learn_topology(numbered(Y)).states[1] == (0, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pandas.DataFrame({"tag": ["x"]}), "Y is one table without a column 'sequence'"),
        ({"tag": ["x"]}, "Y is a dict, expected a list with the labels of each sequence"),
    ],
)
def test_x_that_is_not_a_list_of_sequences(given, message):
    with pytest.raises(ValueError, match=message):
        HSCRF().fit(X[:1], given)


# ------------------------------------------------------------------------------
# Model selection


RARE = [{**y, "tag": ["x", "rare"]} if n == 4 else y for n, y in enumerate(Y)]  # in one fold only
SCORERS = [
    metrics.scorer("segment_f1", level="phrase"),
    metrics.scorer("segment_precision", level="tag"),
    metrics.scorer("segment_recall", level="tag"),
    metrics.scorer("boundary_f1", level="phrase", tolerance=1),
    metrics.scorer("accuracy", level="tag"),
    metrics.scorer("accuracy"),
    metrics.scorer("exact_match"),
    metrics.scorer("log_likelihood", floor=-3.0),
    None,
]


@pytest.mark.filterwarnings("error", "ignore:every segment of level 'tag' has one step")
@pytest.mark.parametrize("scoring", SCORERS, ids=lambda scoring: getattr(scoring, "measure", "score"))
@pytest.mark.parametrize("labels", [RARE, [pandas.DataFrame(y) for y in RARE]], ids=["columns", "frames"])
def test_cross_validation_with_a_label_that_a_fold_lacks(scoring, labels):
    scores = cross_val_score(HSCRF(solver=SOLVER), X, labels, cv=KFold(3), scoring=scoring, error_score="raise")
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("model", [ChainCRF(solver=SOLVER), SemiCRF(solver=SOLVER), DynamicCRF(solver=SOLVER)])
def test_families_are_cross_validated(model):
    labels = [y["tag"] for y in RARE]
    if isinstance(model, SemiCRF):
        labels = [[(t, t + 1, tag) for t, tag in enumerate(tags)] for tags in labels]
        labels[4] = [(0, 2, "x")]  # longer than the others
    if isinstance(model, DynamicCRF):
        labels = RARE
    for measure in ("accuracy", "log_likelihood"):
        scores = cross_val_score(model, X, labels, cv=KFold(3), scoring=metrics.scorer(measure), error_score="raise")
        assert np.isfinite(scores).all()


def test_grid_search_by_a_scorer():
    search = GridSearchCV(
        HSCRF(solver=SOLVER), {"c2": [0.1, 1e6]}, scoring=metrics.scorer("segment_f1", "phrase"), cv=3
    ).fit(X, Y)
    assert search.best_params_ == {"c2": 0.1}
    pipeline = make_pipeline(FunctionTransformer(lambda x: x), HSCRF(solver=SOLVER))
    search = GridSearchCV(pipeline, {"hscrf__c2": [0.1, 1e6]}, scoring=metrics.scorer("log_likelihood"), cv=3)
    assert search.fit(X, Y).best_params_ == {"hscrf__c2": 0.1}


def test_the_impossible_counts_the_floor():
    model = HSCRF(solver=SOLVER).fit(X, Y)
    possible = model.log_likelihood(X, Y)
    found = metrics.scorer("log_likelihood", floor=-7.0)(model, X, RARE)
    steps = sum(map(len, X))
    assert found == pytest.approx((possible.sum() - possible[4] - 7.0 * 2) / steps, rel=1e-12)


def test_unknown_truth_is_left_out_by_scorers():
    model = HSCRF(solver=SOLVER).fit(X, Y)
    hidden = [Y[0], {**Y[1], "phrase": ["?", "?"]}, *Y[2:]]
    for measure in ("segment_f1", "boundary_f1", "exact_match", "accuracy"):
        assert metrics.scorer(measure, "phrase")(model, X, hidden) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measure": "f1"}, "measure is 'f1'; expected one of 'accuracy', 'exact_match', 'segment_f1'"),
        ({"measure": "boundary_f1", "tolerance": -1}, "tolerance is -1"),
        ({"measure": "log_likelihood", "level": "tag"}, "the log-likelihood is that of all levels"),
    ],
)
def test_scorers_that_do_not_exist(arguments, message):
    with pytest.raises(ValueError, match=message):
        metrics.scorer(**arguments)


def test_a_scorer_needs_its_level():
    model = HSCRF(solver=SOLVER).fit(X, Y)
    with pytest.raises(ValueError, match="level is None, but there are 'phrase', 'tag'"):
        metrics.scorer("segment_f1")(model, X, Y)


# ------------------------------------------------------------------------------
# Durations and features beside the default ones


def names_of(model):
    return [repr(spec) for spec in model.specifications()]


def test_durations_add_to_the_default_features(tmp_path):
    plain = HSCRF(solver=SOLVER).fit(X, Y)
    model = HSCRF(durations={"phrase": "bins", "tag": "gamma"}, solver=SOLVER).fit(X, Y)
    added = set(names_of(model)) - set(names_of(plain))
    lasting = {f"{block}('tag', penalty='size')" for block in ("Start", "Stop")}  # the bottom lasts, too
    assert added == {"Duration('phrase', kind='bins')", "Duration('tag')", *lasting}
    assert set(names_of(plain)) <= set(names_of(model))
    assert model.topology_.max_duration[1].tolist() == [3, 3]
    assert model.topology_.max_duration[2].tolist() == [2, 2, 2]  # the bottom lasts
    model.save(tmp_path / "m")
    again = hscrf.load(tmp_path / "m")
    assert again.get_params() == model.get_params()
    assert again.predict(X) == model.predict(X)


def test_limits_of_durations():
    model = HSCRF(durations={"phrase": "gamma"}, max_duration=4, solver=SOLVER).fit(X, Y)
    assert model.topology_.max_duration[1].tolist() == [4, 4]
    assert model.topology_.unit_bottom
    model = HSCRF(max_duration={"phrase": {"P": 3}}, solver=SOLVER).fit(X, Y)
    assert model.topology_.max_duration[1][0] == 3
    assert "Duration('phrase')" not in names_of(model)  # Q has no limit
    with pytest.raises(
        hscrf.InfeasibleError, match=r"Y\[2\]: phrase 'P' from 1 to 4 lasts 3 steps; expected at most 2"
    ):
        HSCRF(max_duration={"phrase": 2}).fit(X, Y)
    for arguments, message in (
        ({"durations": "gamma"}, "durations is 'gamma', expected a dict"),
        ({"durations": {"phrase": "poisson"}}, "kind is 'poisson', expected 'gamma'"),
        ({"durations": {"phrases": "gamma"}}, "unknown level: 'phrases'"),
        ({"max_duration": "9"}, "max_duration is '9', expected a number of steps"),
        ({"max_duration": {"phrases": 9}}, "unknown level: 'phrases'"),
    ):
        with pytest.raises(ValueError, match=message):
            HSCRF(**arguments).fit(X, Y)


@pytest.mark.parametrize(
    "model",
    [
        HSCRF(durations={"tag": "each"}, max_duration=10**9, solver=SOLVER),
        HSCRF(Topology({"tag": ["x", "y", "z"]}, max_duration={"tag": 10**9}), solver=SOLVER),
        SemiCRF(scheme="plain", max_duration=10**9, solver=SOLVER),
    ],
)
def test_a_limit_beyond_the_longest_sequence_is_cut_to_it(model):
    labels = [{"tag": y["tag"]} for y in Y]
    model.fit(X, [y["tag"] for y in labels] if isinstance(model, SemiCRF) else labels)
    assert set(model.topology_.max_duration[1].tolist()) == {4}
    known = model.predict(X)
    assert model.predict(X, evidence=known) == known
    if model.topology is not None:  # evidence over the topology that was given
        mine = [Labels.from_columns(model.topology, y) for y in labels]
        assert [y.column("tag") for y in model.predict(X, evidence=mine)] == [y["tag"] for y in labels]


def test_the_word_default_extends_the_features(tmp_path):
    plain = HSCRF(solver=SOLVER).fit(X, Y)
    start = hscrf.Start("phrase")
    assert names_of(HSCRF(features=[start], solver=SOLVER).fit(X, Y)) == ["Start('phrase')"]
    model = HSCRF(features=[start, "default"], solver=SOLVER).fit(X, Y)
    assert names_of(model) == ["Start('phrase')", *(n for n in names_of(plain) if not n.startswith("Start('phrase'"))]
    model.save(tmp_path / "m")
    assert hscrf.load(tmp_path / "m").get_params() == model.get_params()
    each = hscrf.Duration("phrase", "each")
    assert "Duration('phrase')" not in names_of(HSCRF(features=["default", each], solver=SOLVER).fit(X, Y))
    chain = ChainCRF(features=["default", hscrf.Init("root")], solver=SOLVER).fit(X, [y["tag"] for y in Y])
    assert names_of(chain) == ["Token('label')", "Trans('root')", "Init('root')"]
    with pytest.raises(ValueError, match=r"features is the string 'default', expected a list such as \['default'\]"):
        HSCRF(features="default").fit(X, Y)


# ------------------------------------------------------------------------------
# What comes back


def test_one_level_needs_no_name():
    tags = [y["tag"] for y in Y]
    model = ChainCRF(solver=SOLVER).fit(X, tags)
    (found,) = model.predict(X[:1])
    assert found.column() == list(found) == found.column("label") == tags[0]
    assert found.segments() == [(0, 1, "x"), (1, 2, "y"), (2, 3, "z")]
    assert str(found) == "label  x y z"
    assert model.classes_ == ["x", "y", "z"]
    (marginals,) = model.predict_marginals(X[:1])
    steps = marginals.to_dicts()
    assert [max(step, key=step.get) for step in steps] == tags[0]
    np.testing.assert_allclose([list(step.values()) for step in steps], marginals.state["label"], rtol=1e-15)


def test_several_levels():
    model = HSCRF(solver=SOLVER).fit(X, Y)
    (found,) = model.predict(X[:1])
    assert list(found) == [("P", "x"), ("P", "y"), ("Q", "z")]
    assert str(found) == "phrase  P 0-2, Q 2-3\ntag     x y z"
    pandas.testing.assert_frame_equal(found.to_frame(), pandas.DataFrame(Y[0]).rename_axis("step"))
    assert found.to_frame("bio").phrase.tolist() == ["B-P", "I-P", "B-Q"]
    assert not hasattr(model, "classes_")
    for ask in (found.column, found.segments, model.predict_marginals(X[:1])[0].to_dicts):
        with pytest.raises(ValueError, match="there are the levels 'phrase', 'tag'; expected the name of one"):
            ask()
    assert set(model.predict_marginals(X[:1])[0].to_dicts("phrase")[0]) == {"P", "Q"}
    dynamic = DynamicCRF(solver=SOLVER).fit(X, Y)
    assert set(dynamic.predict_marginals(X[:1])[0].to_dicts("tag")[0]) == {"x", "y", "z"}
    long = Labels.from_columns(model.topology_, {"tag": ["x", "?"] * 30})
    assert str(long).splitlines()[1].endswith("x ? ... (40 more)")


# ------------------------------------------------------------------------------
# Silent mistakes speak


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"c2": "1"}, "c2 is '1', expected a number of at least 0"),
        ({"c1": None}, "c1 is None, expected a number"),
        ({"min_count": "2"}, "min_count is '2', expected a number"),
        ({"n_jobs": "2"}, "n_jobs is '2', expected the number of threads"),
        ({"warm_start": "no"}, "warm_start is 'no', expected True or False"),
        ({"standardize": 2}, "standardize is 2, expected True or False"),
        ({"scheme": 3}, "scheme is 3, expected a name or a dict by level"),
        ({"scheme": "BIO2"}, "scheme is 'BIO2'"),
        ({"scheme": {"phrases": "bio"}}, "unknown level: 'phrases' .did you mean 'phrase'"),
    ],
)
@pytest.mark.parametrize("form", ["columns", "Labels"])
def test_options_of_a_wrong_kind(options, message, form):
    with pytest.raises(ValueError, match=message):
        HSCRF(**options).fit(X, FORMS[form](Y))


@pytest.mark.parametrize("typo", ["persn", "Person", "person "])
def test_a_state_that_looks_like_a_typo(typo):
    labels = [["person", "person", "place"]] * 5
    with pytest.warns(UserWarning, match=f"level 'label' has the state '{typo}' at one step only; is it 'person'?"):
        ChainCRF(solver=SOLVER).fit([[["a"], ["b"], ["c"]]] * 6, [*labels, [typo, "person", "place"]])
    ChainCRF(solver=SOLVER).fit([[["a"], ["b"], ["c"]]] * 6, [["state1", "state1", "x"]] * 5 + [["state2", "x", "x"]])
    ChainCRF(solver=SOLVER).fit([[["a"], ["b"], ["c"]]] * 6, [["B-INTJ", "O", "O"]] * 5 + [["B-INTJ", "I-INTJ", "O"]])


def test_a_warm_start_that_cannot_be_used():
    model = HSCRF(warm_start=True, solver=SOLVER).fit(X, Y)
    with pytest.warns(UserWarning, match="warm_start: no former weight fits"):
        model.fit([[["new"], ["words"]]] * 2, [{"other": ["k", "l"]}] * 2)


def test_an_hhmm_scores_observations_alone():
    symbols = [[step[0] for step in x] for x in X]
    model = HHMM(Topology({"state": range(2)}), random_state=0, max_iter=3).fit(symbols)
    assert model.score(symbols) == pytest.approx(model.log_likelihood(symbols).sum(), rel=1e-12)
    assert set(model.predict(symbols)[0].column()) <= {0, 1}


def test_none_for_the_labels_of_a_level_means_that_they_are_unknown():
    question_marks = [{"phrase": ["?"] * len(y["tag"]), "tag": y["tag"]} for y in Y[:3]]
    nothing = [{"phrase": None, "tag": y["tag"]} for y in Y[:3]]
    model, same = (HSCRF(solver=SOLVER).fit(X, [*some, *Y[3:]]) for some in (question_marks, nothing))
    assert same.topology_ == model.topology_
    np.testing.assert_array_equal(same.coef_, model.coef_)
    none = {"phrase": None, "tag": None}
    assert model.predict(X, evidence=[*nothing, none, none, none]) == model.predict(X, evidence=[*nothing, *[None] * 3])


def test_a_string_for_a_column_is_refused():
    with pytest.raises(ValueError, match=r"Y\[1\]: level 'tag' is the string 'xy'; expected a list of labels"):
        HSCRF(solver=SOLVER).fit(X[:2], [Y[0], {"phrase": ["P", "P"], "tag": "xy"}])


def test_tags_are_read_by_models_that_learned_from_labels_without_tags():
    """The training labels are Labels or segments: the tags of new labels show their scheme."""
    tags = [
        {"phrase": ["B-P", "I-P", "B-Q"], "tag": ["x", "y", "z"]},
        {"phrase": ["B-P", "B-P"], "tag": ["x", "y"]},
        {"phrase": ["B-Q", "B-P", "I-P", "I-P"], "tag": ["z", "x", "y", "y"]},
    ] * 2
    model = HSCRF(solver=SOLVER).fit(X, tags)
    scheme = {"phrase": "bio", "tag": "plain"}
    as_labels = [Labels.from_columns(model.topology_, y, scheme=scheme) for y in tags]
    as_segments = [{level: y.segments(level) for level in scheme} for y in as_labels]
    for given in (as_labels, as_segments):
        same = HSCRF(solver=SOLVER).fit(X, given)
        np.testing.assert_array_equal(same.log_likelihood(X, tags), same.log_likelihood(X, as_labels))
        assert same.score(X, tags) == same.score(X, as_labels) > 0.9
        told = [{"phrase": ["?", "B-P", "?"]}, None, None]
        assert same.predict(X[:3], evidence=told)[0].segments("phrase")[1][0] == 1
    assert model.found_scheme() == scheme
