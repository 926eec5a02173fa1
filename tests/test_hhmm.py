"""HHMM against hmmlearn with one level and against an enumeration with three; EM recovers the parameters."""

import numpy as np
import pytest
from sklearn.base import clone

import enumeration as twin
import hscrf
from hscrf.families.hhmm.emissions import Categorical, EmissionEncoder, Gaussian
from hscrf.families.hhmm.model import hhmm_potentials

CLOSE = {"rtol": 1e-8, "atol": 1e-10}


def rows(rng, *shape, zero=0.0):
    """Random probabilities along the last axis, some of them zero."""
    table = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    table[(rng.random(shape) < zero) & (table < table.max(axis=-1, keepdims=True))] = 0.0
    return table / table.sum(axis=-1, keepdims=True)


def one_level(rng, emission, states=3, zero=0.0, **arguments):
    """An ordinary HMM."""
    topology = hscrf.Topology({"state": [f"s{k}" for k in range(states)]})
    init, trans = rows(rng, 1, states), rows(rng, 1, states, states, zero=zero)
    arguments = {"smoothing": 0.0, **arguments}
    return hscrf.HHMM.from_parameters(topology, {"root": init}, {"root": trans}, {}, emission, **arguments)


def categorical(rng, states=3, symbols=4):
    return Categorical(tuple(range(symbols)), rows(rng, states, symbols))


def gaussian(rng, states=3, columns=2, offset=0.0):
    return Gaussian(offset + 3 * rng.standard_normal((states, columns)), rng.uniform(0.3, 2, (states, columns)))


@pytest.fixture
def hmm():
    return pytest.importorskip("hmmlearn.hmm", reason="hmmlearn, the reference, is not installed")


def as_hmmlearn(hmm, model, n_iter=0):
    """The same model in hmmlearn, without priors."""
    emission = model.emission_
    states = model.topology_.n_states[1]
    plain = {"n_iter": n_iter, "tol": -np.inf, "init_params": "", "startprob_prior": 1, "transmat_prior": 1}
    if isinstance(emission, Categorical):
        other = hmm.CategoricalHMM(states, emissionprob_prior=1, n_features=len(emission.symbols), **plain)
        other.emissionprob_ = emission.probability
    else:
        other = hmm.GaussianHMM(states, "diag", min_covar=0, means_weight=0, covars_prior=0, covars_weight=1, **plain)
        other.means_, other.covars_ = emission.mean, emission.variance
    other.startprob_, other.transmat_ = model.init_["root"][0], model.trans_["root"][0]
    return other


def stacked(X):
    """Sequences as hmmlearn takes them."""
    return np.concatenate([np.asarray(x).reshape(len(x), -1) for x in X]), [len(x) for x in X]


@pytest.mark.parametrize("kind", [categorical, gaussian])
@pytest.mark.parametrize("seed", range(3))
def test_one_level_equals_hmmlearn(hmm, kind, seed):
    rng = np.random.default_rng(seed)
    model = one_level(rng, kind(rng), zero=0.2)
    X, _ = model.generate(4, 25, rng)
    other = as_hmmlearn(hmm, model)
    found = model.log_likelihood(X)
    labels, posteriors = model.predict(X), model.predict_marginals(X)
    for n, x in enumerate(X):
        z = stacked([x])[0]
        assert found[n] == pytest.approx(other.score(z), rel=1e-9)
        score, path = other.decode(z)
        assert labels[n].score == pytest.approx(score, rel=1e-9)
        theirs = hscrf.Labels.from_columns(model.topology_, {"state": [f"s{k}" for k in path]})
        assert hscrf.score(hhmm_potentials(model, x), theirs) == pytest.approx(labels[n].score, rel=1e-12)
        if kind is gaussian:  # symbols can be equal, and two paths equally good
            assert labels[n].states[1].tolist() == path.tolist()
        np.testing.assert_allclose(posteriors[n].state["state"], other.predict_proba(z), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", [categorical, gaussian])
@pytest.mark.parametrize("steps", [1, 5])
def test_em_steps_equal_hmmlearn(hmm, kind, steps):
    rng = np.random.default_rng(10 + steps)
    truth, start = one_level(rng, kind(rng)), one_level(rng, kind(rng), max_iter=steps, tol=-np.inf)
    X, _ = truth.generate(5, 40, rng)
    other = as_hmmlearn(hmm, start, n_iter=steps)
    other.fit(*stacked(X))
    model = start.set_params(warm_start=True).fit(X)
    assert model.n_iter_ == steps
    np.testing.assert_allclose(model.init_["root"][0], other.startprob_, **CLOSE)
    np.testing.assert_allclose(model.trans_["root"][0], other.transmat_, **CLOSE)
    if kind is categorical:
        np.testing.assert_allclose(model.emission_.probability, other.emissionprob_, **CLOSE)
    else:
        np.testing.assert_allclose(model.emission_.mean, other.means_, **CLOSE)
        variance = np.array([np.diag(table) for table in other.covars_])
        np.testing.assert_allclose(model.emission_.variance, variance, rtol=1e-7)
    history = [step["log_likelihood"] for step in model.history_[:-1]]
    np.testing.assert_allclose(history, list(other.monitor_.history), rtol=1e-9)


def three_levels(rng, kind=categorical, root_ends=False, **arguments):
    """Two phrases over three tags, sparse in children and successors."""
    topology = hscrf.Topology(
        {"phrase": ["P", "Q"], "tag": ["x", "y", "z"]},
        children={"phrase": {"P": ["x", "y"]}},
        successors={"tag": {"z": ["x", "y"]}},
    )
    init = {"root": rows(rng, 1, 2), "phrase": rows(rng, 2, 3) * topology.children[1]}
    init["phrase"] /= init["phrase"].sum(axis=-1, keepdims=True)
    events = {"root": rows(rng, 1, 2, 3), "phrase": rows(rng, 2, 3, 4)}
    events["root"][..., -1] *= 0.25 * root_ends
    events["phrase"][..., :-1] *= (
        topology.children[1][:, :, None] & topology.children[1][:, None] & topology.successors[2]
    )
    for table in events.values():
        table /= table.sum(axis=-1, keepdims=True)
    events["phrase"][0, 2] = 0.0  # P has no z
    trans = {level: table[..., :-1] for level, table in events.items()}
    end = {level: table[..., -1] for level, table in events.items() if root_ends or level != "root"}
    return hscrf.HHMM.from_parameters(topology, init, trans, end, kind(rng), **{"smoothing": 0.0, **arguments})


def as_twin(model, x):
    """The model as plain tables of logarithms, for the enumeration."""
    topology = model.topology_
    emission = model.emission_
    if isinstance(emission, Categorical):
        token = emission.probability[:, list(map(emission.symbols.index, x))].T
    else:
        away = (np.asarray(x)[:, None] - emission.mean) ** 2 / emission.variance
        token = np.exp(-0.5 * (away + np.log(2 * np.pi * emission.variance)).sum(axis=-1))
    with np.errstate(divide="ignore"):
        parts = {
            part: {topology.level(level): np.log(table)[None] for level, table in tables.items()}
            for part, tables in (("init", model.init_), ("trans", model.trans_), ("end", model.end_))
        }
        return twin.Model(
            len(x),
            list(topology.n_states),
            list(topology.children),
            list(topology.successors),
            [np.ones(size, int) for size in topology.n_states],
            [*(np.full(size, twin.NO_LIMIT) for size in topology.n_states[:-1]), np.ones(topology.n_states[-1], int)],
            token={topology.depth - 1: np.log(token)},
            **parts,
        )


@pytest.mark.parametrize("kind", [categorical, gaussian])
@pytest.mark.parametrize("root_ends", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_three_levels_equal_enumeration(seed, root_ends, kind):
    rng = np.random.default_rng(seed)
    model = three_levels(rng, kind, root_ends)
    x = rng.integers(0, 4, 5).tolist() if kind is categorical else 2 * rng.standard_normal((5, 2))
    listed = as_twin(model, x)
    assert model.log_likelihood([x])[0] == pytest.approx(twin.log_partition(listed), rel=1e-9)
    assert hscrf.log_partition(hhmm_potentials(model, x)) == pytest.approx(twin.log_partition(listed), rel=1e-9)
    assert model.predict([x])[0].score == pytest.approx(twin.best_score(listed), rel=1e-9)
    posterior, expected = model.predict_marginals([x])[0], twin.state_marginals(listed)
    for d, level in enumerate(model.topology_.levels):
        np.testing.assert_allclose(posterior.state[level], expected[d], **CLOSE)
    known = {"phrase": ["?", "Q", "?", "?", "?"]}
    states = np.full((3, 5), -1)
    states[1, 1] = 1
    joint = twin.log_partition(listed, twin.Evidence(states))
    assert model.log_likelihood([x], [known])[0] == pytest.approx(joint, rel=1e-9)


def test_probabilities_of_all_sequences_sum_to_one():
    """With root_ends the model is a distribution over sequences of all lengths."""
    rng = np.random.default_rng(5)
    model = three_levels(rng, root_ends=True)
    lengths = np.array([len(y) for y in model.generate(2000, random_state=0)[1]])
    silent = model.potentials([[99] * 6])  # an unknown symbol is a step without observation
    share = [np.exp(hscrf.log_partition(model.potentials([[99] * n])[0])) for n in range(1, 7)]
    assert silent[0].length == 6
    for n, p in enumerate(share, start=1):
        assert (lengths == n).mean() == pytest.approx(p, abs=4 * np.sqrt(p / 2000) + 1e-3)


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("kind", [categorical, gaussian])
@pytest.mark.parametrize("known", [0.0, 0.3])
def test_em_never_lowers_the_likelihood(kind, known, smoothing):
    rng = np.random.default_rng(7)
    truth = three_levels(rng, kind)
    X, Y = truth.generate(20, 15, rng)
    partial = None
    if known:
        partial = [
            hscrf.Labels(
                y.topology, np.where(rng.random(y.states.shape) < known, y.states, -1), np.full_like(y.ends, -1)
            )
            for y in Y
        ]
    model = hscrf.HHMM(truth.topology_, smoothing=smoothing, max_iter=40, tol=-np.inf, random_state=0)
    model.fit(X, partial)
    climb = np.array([step["objective"] for step in model.history_])
    assert len(climb) == 41
    assert (np.diff(climb) >= -1e-9 * np.abs(climb[1:])).all()
    assert climb[-1] - climb[0] > 1
    total = model.log_likelihood(X, partial).sum()
    assert total == pytest.approx(model.history_[-1]["log_likelihood"], rel=1e-10)
    if not smoothing:
        assert total == pytest.approx(climb[-1], rel=1e-10)


def distances(model, truth):
    """Largest difference of each table of probabilities."""
    found = {}
    for part in ("init_", "trans_", "end_"):
        for level, table in getattr(truth, part).items():
            found[part, level] = np.abs(getattr(model, part)[level] - table).max()
    return found


def test_complete_labels_recover_the_parameters():
    rng = np.random.default_rng(11)
    truth = three_levels(rng, root_ends=True)
    X, Y = truth.generate(800, random_state=rng)
    model = hscrf.HHMM(truth.topology_, root_ends=True, smoothing=0.0).fit(X, Y)
    assert model.n_iter_ == 1
    assert max(distances(model, truth).values()) < 0.05
    order = [model.emission_.symbols.index(symbol) for symbol in truth.emission_.symbols]
    np.testing.assert_allclose(model.emission_.probability[:, order], truth.emission_.probability, atol=0.02)
    assert model.log_likelihood(X, Y).sum() >= truth.log_likelihood(X, Y).sum()


def well_separated(rng):
    """Gaussian emissions far from each other, three levels."""
    return three_levels(rng, lambda rng: Gaussian(np.array([[0.0], [6.0], [12.0]]), np.ones((3, 1))), root_ends=True)


def test_em_recovers_the_parameters_from_partial_labels():
    """With half of the states and no end known, EM recovers the parameters."""
    rng = np.random.default_rng(13)
    truth = well_separated(rng)
    X, Y = truth.generate(500, random_state=rng)
    partial = [
        hscrf.Labels(y.topology, np.where(rng.random(y.states.shape) < 0.5, y.states, -1), np.full_like(y.ends, -1))
        for y in Y
    ]
    model = hscrf.HHMM(truth.topology_, root_ends=True, smoothing=0.0, random_state=0).fit(X, partial)
    assert max(distances(model, truth).values()) < 0.1
    np.testing.assert_allclose(model.emission_.mean, truth.emission_.mean, atol=0.1)
    assert model.log_likelihood(X, partial).sum() >= truth.log_likelihood(X, partial).sum() - 1


def test_em_without_labels_reaches_the_likelihood_of_the_truth():
    """States may be exchanged and more than one model may be as likely, so it is the likelihood that is compared."""
    rng = np.random.default_rng(17)
    truth = well_separated(rng)
    X, _ = truth.generate(600, random_state=rng)
    tries = [
        hscrf.HHMM(truth.topology_, root_ends=True, smoothing=0.0, max_iter=300, random_state=seed).fit(X)
        for seed in range(3)
    ]
    best = max(tries, key=lambda model: model.history_[-1]["log_likelihood"])
    gap = truth.log_likelihood(X).sum() - best.log_likelihood(X).sum()
    assert gap < 0.01 * sum(map(len, X))


def test_classes_of_sequences():
    rng = np.random.default_rng(19)
    topology = hscrf.Topology({"tag": ["x", "y"]}, root=["A", "B"])
    truth = hscrf.HHMM.from_parameters(
        topology,
        {"root": [[1, 0], [0, 1]]},
        {"root": [[[0.9, 0.1], [0.5, 0.5]], [[0.5, 0.5], [0.1, 0.9]]]},
        {},
        Categorical(("a", "b"), np.array([[0.9, 0.1], [0.1, 0.9]])),
        root=[0.25, 0.75],
    )
    X, Y = truth.generate(800, 6, rng)
    assert np.mean([y.states[0, 0] for y in Y]) == pytest.approx(0.75, abs=0.04)
    model = hscrf.HHMM(topology, smoothing=0.0).fit(X, Y)
    np.testing.assert_allclose(model.root_, truth.root_, atol=0.04)
    np.testing.assert_allclose(model.trans_["root"], truth.trans_["root"], atol=0.05)
    classes = [{"root": topology.states[0][y.states[0, 0]], "tag": ["?"] * 6} for y in Y]
    hidden = hscrf.HHMM(topology, smoothing=0.0, random_state=0).fit(X, classes)
    np.testing.assert_allclose(hidden.root_, model.root_, rtol=1e-12)
    assert hidden.log_likelihood(X, classes).sum() > truth.log_likelihood(X, classes).sum()  # it fits the sample better


@pytest.mark.parametrize("kind", [categorical, gaussian])
def test_round_trip_clone_and_table(kind, tmp_path):
    rng = np.random.default_rng(23)
    truth = three_levels(rng, kind)
    X, Y = truth.generate(5, 8, rng)
    model = hscrf.HHMM(truth.topology_, n_jobs=2, random_state=0).fit(X, Y)
    model.save(tmp_path / "m")
    loaded = hscrf.load(tmp_path / "m")
    assert type(loaded) is hscrf.HHMM
    np.testing.assert_array_equal(loaded.log_likelihood(X), model.log_likelihood(X))
    assert loaded.predict(X) == model.predict(X)
    assert loaded.generate(1, 5, 0)[1] == model.generate(1, 5, 0)[1]
    assert clone(model).get_params() == model.get_params()
    assert {"init", "trans", "end", "token"} == set(model.weights_["part"])
    assert model.weights_.query("level == 'root' and part == 'init'")["weight"].map(np.exp).sum() == pytest.approx(1)
    assert 0 <= model.score(X, Y) <= 1


def test_symbols_may_be_integers_strings_or_lists_of_one():
    topology = hscrf.Topology({"tag": ["x", "y"]})
    for X in ([np.array([0, 1, 1])], [np.array([[0], [1], [1]])], [["a", "b", "b"]], [[["a"], ["b"], ["b"]]]):
        model = hscrf.HHMM(topology, emission="categorical", random_state=0).fit(X)
        assert len(model.emission_.symbols) == 2
        np.testing.assert_allclose(model.emission_.probability.sum(axis=1), 1)
    assert hscrf.HHMM(topology, random_state=0).fit([["a", "b"]]).predict([["a", "new"]])[0].length == 2


@pytest.mark.parametrize("far", [0, 10**9], ids=["in a row", "far apart"])
@pytest.mark.parametrize("kind", ["int8", "uint8", "int64", "uint64"])
def test_integer_symbols_of_any_kind_are_found(kind, far):
    signed = kind[0] == "i"
    encoder = EmissionEncoder()
    encoder.names = {symbol: k for k, symbol in enumerate([7, 3, 100, *[-2] * signed, *[far] * bool(far)])}
    given = [3, 0, 7, 127, 100, 3, 6, *[-2, -3, -128] * signed]
    symbols = np.array(20 * given, dtype=kind)  # so many that a table is made of those in a row
    expected = [encoder.names.get(symbol, -1) for symbol in symbols.tolist()]
    assert encoder._codes(symbols).tolist() == expected
    assert encoder._codes(symbols).dtype == np.int32
    for first, second in ((np.iinfo(kind).min, 1), (np.iinfo(kind).max, -1)):  # at either end of what the kind holds
        encoder.names = {first: 0, first + second: 1}
        found = encoder._codes(np.array([first + second, 5, first, 100], dtype=kind))
        assert found.tolist() == [1, -1, 0, -1]


def test_means_far_from_zero_keep_their_digits(hmm):
    rng = np.random.default_rng(29)
    emission = gaussian(rng)
    far = Gaussian(emission.mean + 1e6, emission.variance)
    model, start = one_level(rng, far), one_level(rng, far, warm_start=True, max_iter=3, tol=-np.inf)
    X, _ = model.generate(3, 30, rng)
    assert model.log_likelihood(X).sum() == pytest.approx(as_hmmlearn(hmm, model).score(*stacked(X)), rel=1e-7)
    start.fit(X)
    assert (np.diff([step["log_likelihood"] for step in start.history_]) > 0).all()


def test_errors_name_the_thing():
    topology = hscrf.Topology({"tag": ["x", "y"]})
    with pytest.raises(ValueError, match="give a topology"):
        hscrf.HHMM().fit([["a"]])
    with pytest.raises(ValueError, match="limited durations"):
        hscrf.HHMM(hscrf.Topology({"a": ["x"], "b": ["y"]}, max_duration={"a": 3})).fit([["s"]])
    with pytest.raises(ValueError, match="persists"):
        hscrf.HHMM(hscrf.Topology({"a": ["x"]}, max_duration={"a": None})).fit([["s"]])
    with pytest.raises(ValueError, match="emission is 'poisson'"):
        hscrf.HHMM(topology, emission="poisson").fit([["s"]])
    with pytest.raises(ValueError, match=r"X\[0\]\[1\] is 0.5, expected one symbol"):
        hscrf.HHMM(topology, emission="categorical").fit([["s", 0.5]])
    bad = {"root": [[[0.9, 0.9], [0.5, 0.5]]]}
    with pytest.raises(ValueError, match=r"trans\['root'\] and end\['root'\] sums to"):
        hscrf.HHMM.from_parameters(topology, {"root": [[1, 0]]}, bad, {}, Categorical(("a",), np.ones((2, 1))))
    with pytest.raises(ValueError, match=r"init\['root'\] has shape"):
        hscrf.HHMM.from_parameters(topology, {}, {}, {}, Categorical(("a",), np.ones((2, 1))))
    model = hscrf.HHMM(topology, random_state=0).fit([["a", "b"]])
    with pytest.raises(ValueError, match="give a length"):
        model.generate(1)


def test_smoothing_is_no_debt():
    with pytest.raises(ValueError, match="smoothing is -1, expected a number of at least 0"):
        hscrf.HHMM(smoothing=-1).fit([["a", "b"]], [["x", "y"]])
