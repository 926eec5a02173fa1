"""Penalties chosen on held-out data: the path has the right errors, and its best entry is chosen."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import hscrf
from fitting import loss_of
from hscrf import HSCRF, LBFGS, datasets, plots
from hscrf.cli import main
from hscrf.objective.sharded import ShardedLoss
from hscrf.solvers import penalties
from hscrf.solvers.course import Result


@pytest.fixture(scope="module")
def data():
    X, Y = datasets.make_nested(24, sizes=(2, 4), random_state=3)
    return X, [{level: y.column(level) for level in y.topology.levels[1:]} for y in Y]


@pytest.fixture(scope="module")
def model(data):
    return HSCRF(c2="auto", random_state=1).fit(*data)


def test_the_path_has_the_plain_penalty_and_every_group(model):
    overall = [entry for entry in model.penalties_ if entry["group"] is None]
    assert [entry["c2"] for entry in overall[:3]] == list(penalties.WAY)
    (plain,) = [entry for entry in overall if entry["c2"] == HSCRF().c2]
    assert plain["lead"] == 0
    for entry in overall:
        assert (entry["lead"] > 0) == (entry["errors"] < plain["errors"])
    assert [entry["c2"] for entry in overall if entry["better"]][-1] == model.c2_
    for group in ("transitions", *model.topology_.levels[1:]):
        factors = [entry["factors"][group] for entry in model.penalties_ if entry["group"] == group]
        assert max(factors) > 1, "up"
        assert min(factors) < 1 or factors[0] == model.factors_.get(group, 0) or len(factors) > 1, "and down"
    assert model.penalty_reason_.startswith(f"c2 = {model.c2_:g}")


class Invented:
    """Stands for folds, their losses and the solver: the weights are the penalties, and errors are made of them."""

    n_parts, is_complete = 16, True

    def __init__(self, errors):
        self.errors = errors

    def folds(self, parts):
        return [(self, Held(self.errors, part)) for part in parts]

    @staticmethod
    def minimize(objective, start, c1, c2):
        return Result(np.broadcast_to(c2, 2), 0.0, True, 1, "", [], None)


class Held:
    def __init__(self, errors, part):
        self.errors, self.part = errors, part

    def soft_errors(self, weights):
        found = np.zeros(Invented.n_parts)
        found[self.part] = self.errors(*weights)[self.part]
        return found


SAME = np.ones(Invented.n_parts)
MIXED = np.resize([1.0, -1.0], Invented.n_parts)  # large for each sequence, nothing in all
FEW = np.resize([1.0, -0.6, 0.0, 0.0], Invented.n_parts)  # a lead of 0.7: within noise
MOST = np.resize([1.0, -0.1, 0.0, 0.0], Invented.n_parts)  # a lead of 1.8: beyond it
DOWN = [1, 0.32, 0.1]
ON = [*DOWN, 0.032, 0.01]
BOTH = [*ON, 3.2, 10]


@pytest.mark.parametrize(
    ("errors", "path", "c2", "factors"),
    [
        (lambda a, b: 9 * SAME, BOTH, 0.1, {}),
        (lambda a, b: 9 * SAME + np.log(a) * MIXED, BOTH, 0.1, {}),
        (lambda a, b: 9 * SAME - np.log(a) * FEW, [*DOWN, 3.2, 10, 32, 100], 0.1, {}),
        (lambda a, b: 9 * SAME + np.log(a) * FEW, ON, 0.1, {}),
        (lambda a, b: 9 * SAME - np.log(a) * MOST, [*DOWN, 3.2, 10, 32, 100], 100, {"transitions": 32}),
        (lambda a, b: 9 * SAME + np.log(a) * MOST, ON, 0.01, {"transitions": 0.032}),
        (lambda a, b: 9 * SAME + abs(np.log(a / 0.32)) * SAME, DOWN, 0.32, {}),
        (lambda a, b: 9 * SAME + abs(np.log(a / 3.2)) * SAME, [*DOWN, 3.2, 10, 32], 3.2, {}),
        (lambda a, b: 9 * SAME + abs(np.log(a / b) - np.log(10)) * SAME, BOTH, 0.1, {"transitions": 10}),
        (
            lambda a, b: 9 * SAME + abs(np.log(a / b) + np.log(100)) * SAME,
            BOTH,
            0.1,
            {"transitions": 0.032, "tag": 3.2},
        ),
    ],
    ids=["equal", "mixed", "perhaps strong", "perhaps weak", "strong", "weak", "between", "beyond", "up", "down"],
)
def test_what_is_better_beyond_noise_leads_away_from_the_plain_penalty(errors, path, c2, factors):
    weighting = penalties.Weighting(["transitions", "tag"], [1, 1], [1.0, 1.0])
    search = penalties.Search(Invented(errors), weighting, 0.0, np.zeros(2), solver=Invented)
    search.run()
    assert [entry["c2"] for entry in search.path if entry["group"] is None] == path
    assert penalties.chosen(search.path) == (c2, factors)
    assert search.reason.startswith(f"c2 = {c2:g}")
    assert ("was kept" in search.reason) == ((c2, factors) == (0.1, {}))


def test_the_plain_penalty_of_a_family_is_kept():
    weighting = penalties.Weighting(["tag"], [2], [1.0])
    search = penalties.Search(Invented(lambda a, b: 9 * SAME), weighting, 0.0, np.zeros(2), plain=1.0, solver=Invented)
    search.run()
    assert penalties.chosen(search.path) == (1.0, {})


def test_the_reason_says_by_how_much():
    weighting = penalties.Weighting(["tag"], [2], [1.0])
    search = penalties.Search(
        Invented(lambda a, b: (8 if a == 1.0 else 10) * SAME), weighting, 0.0, np.zeros(2), solver=Invented
    )
    search.run()
    assert search.reason == "c2 = 1 was chosen: 20.0 % fewer held-out errors than c2 = 0.1 (4.0 standard errors)"


def test_groups_are_held_out_together():
    held = []

    class Noted(Invented):
        def folds(self, parts):
            held.extend(map(list, parts))
            return super().folds(parts)

    names = list("abcdabcdeeeeabcd")
    weighting = penalties.Weighting(["tag"], [2], [1.0])
    search = penalties.Search(Noted(lambda a, b: 9 * SAME), weighting, 0.0, np.zeros(2), groups=names, solver=Invented)
    assert sorted(n for part in held for n in part) == list(range(16))
    assert len(held) == penalties.MORE_FOLDS
    for part in held:
        assert {names[n] for n in part}.isdisjoint({names[n] for other in held if other is not part for n in other})
    search.run()
    assert search.best.errors.tolist() == [27.0, 27.0, 27.0, 27.0, 36.0], "errors are counted by group"


@pytest.mark.parametrize(
    ("options", "groups", "message"),
    [
        ({"c2": 0.1}, ["a", "b"], r"groups are given for the folds of c2='auto', but c2 is 0.1"),
        ({"c2": "auto"}, ["a"], "groups has 1 entries for 2 sequences"),
        ({"c2": "auto"}, ["a", "a"], "c2='auto' holds groups of sequences out, but there is 1"),
    ],
)
def test_bad_groups(options, groups, message):
    with pytest.raises(ValueError, match=message):
        HSCRF(**options).fit([[["a"], ["b"]]] * 2, [{"tag": ["x", "y"]}] * 2, groups=groups)


def test_fit_hands_the_groups_on(data):
    X, Y = data
    people = [f"person {n % 3}" for n in range(len(X))]
    fitted = HSCRF(c2="auto", solver=LBFGS(max_iter=2)).fit(X, Y, groups=people)
    alone = HSCRF(c2="auto", solver=LBFGS(max_iter=2)).fit(X, Y)
    assert fitted.penalties_[0]["errors"] != alone.penalties_[0]["errors"]


def test_a_lead_is_counted_in_standard_errors():
    gains = np.random.default_rng(0).normal(0.1, 1.0, size=4000)
    usual = gains.mean() / (gains.std(ddof=1) / np.sqrt(gains.size))
    np.testing.assert_allclose(penalties.lead_of(gains), usual, rtol=0.01)
    assert penalties.lead_of(np.zeros(3)) == 0.0


def test_what_is_chosen_is_what_is_used(data, model):
    """The weights minimise the loss with these penalties: its gradient is zero."""
    each = []
    for spec, block in zip(model.specifications(), model.blocks_, strict=True):
        own = spec.penalty_factor(model.topology_, model.mean_lengths_, model.sizes_)
        group = "transitions" if type(spec).__name__ in ("Init", "Trans", "End") else spec.level
        each += [model.c2_ * model.factors_.get(group, 1.0) * own] * block.size
    fixed = HSCRF(c2=1.0, solver=LBFGS(max_iter=1))
    with hscrf.objective.workers.Workers() as workers:
        objective, _ = loss_of(fixed, *data, None, workers)
        loss, gradient = objective(model.coef_)
    np.testing.assert_allclose(model.loss_, loss + (np.array(each) * model.coef_**2).sum(), rtol=1e-9)
    pull = np.abs(gradient + 2 * np.array(each) * model.coef_).max()
    assert pull < 0.02 * np.abs(objective(np.zeros(objective.size))[1]).max()


@pytest.mark.parametrize("hidden", [False, True])
def test_errors_are_those_of_models_of_the_other_folds(data, hidden):
    """The fourth powers of posteriors of wrong states, by models that are fitted by hand to the rest of each fold."""
    X, Y = data
    topology = hscrf.learn_topology(Y)
    if hidden:
        top, bottom = Y[0]
        Y = [{top: y[top], bottom: ["?", *y[bottom][1:]]} if n % 2 else y for n, y in enumerate(Y)]
    options = {"pairs": "all", "standardize": False}
    weights = np.arange(len(X)) % 3 + 0.5
    path = HSCRF(topology, c2="auto", random_state=5, **options).fit(X, Y, sample_weight=weights).penalties_
    folds = penalties.deal(np.ones(len(X)), penalties.MORE_FOLDS, np.random.default_rng(5))
    total = 0.0
    for k in range(penalties.MORE_FOLDS):
        held_out, rest = np.flatnonzero(folds == k), np.flatnonzero(folds != k)
        fitted = HSCRF(topology, c2=penalties.WAY[0], **options)
        fitted.fit([X[n] for n in rest], [Y[n] for n in rest], sample_weight=weights[rest])
        for n, found in zip(held_out, fitted.predict_marginals([X[n] for n in held_out]), strict=True):
            for level, column in Y[n].items():
                names = topology.states[topology.level(level)]
                steps = [(t, names.index(name)) for t, name in enumerate(column) if name != "?"]
                powers = found.state[level] ** 4
                total += weights[n] * sum(1 - powers[t, s] / powers[t].sum() for t, s in steps)
            ends, on = found.ending["level1"] ** 4, (1 - found.ending["level1"]) ** 4
            borders = hscrf.Labels.from_columns(topology, Y[n]).ends[1]
            total += weights[n] * (1 - np.where(borders == 1, ends, on) / (ends + on)).sum()
    np.testing.assert_allclose(path[0]["errors"], total, rtol=0.01)


def test_a_seed_decides_and_threads_do_not(data, model):
    again = HSCRF(c2="auto", random_state=1, n_jobs=2).fit(*data)
    assert np.array_equal(again.coef_, model.coef_)
    other = HSCRF(c2="auto", random_state=2).fit(*data)
    held_out = [entry["errors"] for entry in (model.penalties_[0], other.penalties_[0])]
    assert held_out[0] != held_out[1]


@pytest.mark.parametrize("family", [hscrf.ChainCRF, hscrf.SemiCRF, hscrf.DynamicCRF])
def test_every_family(family, data):
    X, Y = data
    levels = list(Y[0])
    labels = Y if family is hscrf.DynamicCRF else [y[levels[-1]] for y in Y]
    fitted = family(c2="auto", **({"scheme": "plain"} if family is hscrf.SemiCRF else {})).fit(X, labels)
    assert fitted.c2_ > 0
    assert set(fitted.factors_) <= {"transitions", "label", *levels}
    assert fitted.score(X, labels) > 0.5


def test_partial_labels_and_sample_weights(data):
    X, Y = data
    top, bottom = Y[0]
    some = [
        {top: y[top], bottom: ["?" if (t + n) % 3 else s for t, s in enumerate(y[bottom])]} for n, y in enumerate(Y)
    ]
    weights = np.arange(len(X)) % 2 + 0.5
    fitted = HSCRF(c2="auto", random_state=0, solver=LBFGS(max_iter=30)).fit(X, some, sample_weight=weights)
    doubled = HSCRF(c2="auto", random_state=0, solver=LBFGS(max_iter=30)).fit(X, some, sample_weight=2 * weights)
    assert doubled.penalties_[0]["errors"] != fitted.penalties_[0]["errors"]
    assert fitted.score(X, Y) > 0.5


def test_clones_pipelines_and_files(data, model, tmp_path):
    X, Y = data
    assert clone(model).c2 == "auto"
    pipeline = make_pipeline(FunctionTransformer(), HSCRF(c2="auto", random_state=1)).fit(X, Y)
    assert np.array_equal(pipeline[-1].coef_, model.coef_)
    model.save(tmp_path / "model")
    again = hscrf.load(tmp_path / "model")
    assert again.c2 == "auto"
    assert (again.c2_, again.factors_, again.penalties_) == (model.c2_, model.factors_, model.penalties_)


def test_a_number_is_taken_as_it_is(data):
    fitted = HSCRF(c2=0.7, solver=LBFGS(max_iter=2)).fit(*data)
    assert (fitted.c2_, fitted.factors_, fitted.penalties_) == (0.7, {}, [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"c2": "best"}, "c2 is 'best', expected a number of at least 0, or 'auto'"),
        ({"c2": "auto", "solver": "perceptron"}, "c2 is 'auto', but the perceptron has no penalties"),
        ({"c2": "auto"}, "c2='auto' holds sequences out, but there is 1"),
    ],
)
def test_what_cannot_be_chosen(options, message):
    with pytest.raises(ValueError, match=message):
        HSCRF(**options).fit([[["a"], ["b"]]], [{"tag": ["x", "y"]}])


def test_an_interrupt_ends_the_search_and_the_fit_goes_on(data, monkeypatch):
    calls = []

    def interrupted(held_out, weights, original=ShardedLoss.soft_errors):
        calls.append(1)
        if len(calls) > 2 * penalties.MORE_FOLDS:
            raise KeyboardInterrupt
        return original(held_out, weights)

    monkeypatch.setattr(ShardedLoss, "soft_errors", interrupted)
    fitted = HSCRF(c2="auto").fit(*data)
    assert len(fitted.penalties_) == 2
    assert fitted.converged_


def test_the_search_is_shown(data, capsys):
    HSCRF(c2="auto", verbose=2, solver=LBFGS(max_iter=2)).fit(*data)
    shown = capsys.readouterr().err.splitlines()
    assert shown[0].startswith("c2 1  held-out errors ")
    assert any("held-out errors" in line and line.startswith("stopped: c2 = ") for line in shown)


def test_the_shell_has_it_too(data, tmp_path, monkeypatch):
    X, Y = data
    steps = [zip(x, *y.values(), strict=True) for x, y in zip(X, Y, strict=True)]
    blocks = ["\n".join(f"{names[0]:.0f}\t{a}\t{b}" for names, a, b in rows) for rows in steps]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text("\n\n".join(blocks) + "\n")
    levels = ["--levels", "top=2,low=3"]
    assert main(["fit", "train.txt", *levels, "-m", "model", "--c2", "auto", "--progress", "none"]) in (0, None)
    assert hscrf.load(tmp_path / "model").c2_ > 0


def test_the_picture_has_a_line_for_each_group(model):
    ax = plots.plot_penalties(model)
    *lines, dot = ax.lines
    assert [line.get_label() for line in lines] == ["all", "transitions", *model.topology_.levels[1:]]
    points = [(entry["c2"], entry["errors"]) for entry in model.penalties_ if entry["group"] is None]
    assert sorted(points) == list(map(tuple, lines[0].get_xydata().tolist()))
    best = [entry for entry in model.penalties_ if entry["better"]][-1]
    assert dot.get_ydata()[0] == best["errors"]
    plt.close(ax.figure)
    with pytest.raises(ValueError, match="c2='auto'"):
        plots.plot_penalties(HSCRF())
