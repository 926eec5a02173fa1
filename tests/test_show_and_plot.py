"""What ``hscrf show`` and ``hscrf plot`` make of models of every family, fitted in Python and saved."""

import json
from pathlib import Path

import pytest

import hscrf
from comparing import texts_of
from hscrf import cli, plots

pytest.importorskip("matplotlib")

WORDS = [["the", "cat", "sees"], ["a", "dog", "is", "old"]] * 3
LABELS = {
    "phrase": [["NP", "NP", "VP"], ["NP", "NP", "VP", "NP"]] * 3,
    "tag": [["D", "N", "V"], ["D", "N", "V", "J"]] * 3,
}
LEVELS = {
    "HSCRF": ["phrase", "tag"],
    "ChainCRF": ["tag"],
    "SemiCRF": ["phrase"],
    "DynamicCRF": ["phrase", "tag"],
    "HHMM": ["phrase", "tag"],
}
COMBINATIONS = {"NP & D", "NP & N", "VP & V", "NP & J"}  # the states of the DynamicCRF
FAMILIES = sorted(LEVELS)


def fitted(name, X, Y):
    solver = hscrf.LBFGS(max_iter=5)
    topology = hscrf.Topology({"phrase": ["NP", "VP"], "tag": list("DNVJ")}, max_duration={"phrase": 4})
    if name == "HHMM":  # some tags are unknown, so that EM has something to do
        Y = [{**y, "tag": ["?", *y["tag"][1:]]} if n % 2 else y for n, y in enumerate(Y)]
        return hscrf.HHMM(random_state=0, max_iter=30, tol=0).fit(X, Y)
    options = {"HSCRF": {"topology": topology}, "SemiCRF": {"scheme": "plain"}}.get(name, {})
    return getattr(hscrf, name)(solver=solver, **options).fit(X, Y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model and a data file of every family, under the family's name."""
    place = tmp_path_factory.mktemp("families")
    for name, levels in LEVELS.items():
        X = WORDS if name == "HHMM" else [[[f"w={word}"] for word in words] for words in WORDS]
        Y = [{level: LABELS[level][n] for level in levels} for n in range(len(X))]
        fitted(name, X, Y).save(place / name)
        lines = [json.dumps({"tokens": x, "labels": y}) + "\n" for x, y in zip(X, Y, strict=True)]
        (place / f"{name}.jsonl").write_text("".join(lines))
    return place


@pytest.fixture
def call(folder, monkeypatch, capsys):
    """Run a command in that folder; what it printed."""

    def called(*words, code=0):
        assert cli.main([*words]) == code, capsys.readouterr().err
        return capsys.readouterr()

    monkeypatch.chdir(folder)
    return called


def states_of(level):
    return {label for column in LABELS[level] for label in column}


@pytest.mark.parametrize("name", FAMILIES)
def test_show(call, name):
    printed = call("show", name, "--top", "2").out
    assert printed.startswith(f"{name}: {name}, ")
    lowest = "combination" if name == "DynamicCRF" else LEVELS[name][-1]
    kind = "highest token probabilities" if name == "HHMM" else "strongest token weights"
    assert f"  {kind} of level {lowest}\n" in printed
    training = printed.partition("\ntraining: ")[2].splitlines()
    history = hscrf.load(name).history_
    assert min(len(history), 5) < len(training) <= 12
    key = "objective" if name == "HHMM" else "loss"
    assert training[-1].split()[:2] == ["iteration", str(history[-1]["iteration"])]
    assert f"  {key} {history[-1][key]:12.2f}" in training[-1]


def test_show_names_penalties_and_temperatures(call):
    assert "\npenalties: c1 0, c2 1\n" in call("show", "SemiCRF", "--top", "0").out
    assert "penalties" not in call("show", "HHMM", "--top", "0").out
    model = hscrf.load("SemiCRF")
    X = [[[f"w={word}"] for word in words] for words in WORDS]
    model.calibrate(X, [{"phrase": labels} for labels in LABELS["phrase"]]).save("warm")
    assert "temperatures" not in call("show", "SemiCRF", "--top", "0").out
    ((level, pair),) = model.temperature_.items()
    told = f"\ntemperatures: {level} {pair.state:.3g} (states), {pair.segment:.3g} (segments)\n"
    assert told in call("show", "warm", "--top", "0").out
    hscrf.ChainCRF(c1=0.5, c2="auto").fit(X, LABELS["tag"]).save("auto")
    assert f"\npenalties: c1 0.5, c2 {hscrf.load('auto').c2_:g}" in call("show", "auto", "--top", "0").out


def test_show_of_an_hhmm_lists_what_is_likely(call):
    rows = call("show", "HHMM", "--top", "1", "--level", "phrase").out.splitlines()
    value, *states = rows[rows.index("  highest init probabilities of level phrase") + 1].split()
    assert float(value) == pytest.approx(hscrf.load("HHMM").init_["phrase"].max(), abs=5e-5)
    assert states == ["VP", ">", "V"]


def test_show_of_an_hhmm_with_given_parameters(call):
    model = hscrf.load("HHMM")
    tables = (dict(table) for table in (model.init_, model.trans_, model.end_))
    hscrf.HHMM.from_parameters(model.topology_, *tables, model.emission_).save("given")
    assert call("show", "given").out.splitlines()[-1].endswith("not converged: the parameters were given")
    said = call("plot", "given", "--what", "training", "-o", "none.svg", code=2).err
    assert said == "hscrf: the history of the model is empty: the parameters were given\n"


@pytest.mark.parametrize("what", ["topology", "transitions", "training"])
@pytest.mark.parametrize("name", FAMILIES)
def test_pictures_of_models(call, name, what):
    assert call("plot", name, "--what", what, "-o", "picture.svg").err == "picture.svg written\n"
    states = {level: states_of(level) for level in LEVELS[name]}
    if name == "DynamicCRF":
        states = {"combination": COMBINATIONS}
    expected = {
        "topology": {*states, *set().union(*states.values())},
        "transitions": {"comes first", *[*states.values()][-1]},
        "training": {"iteration", "objective", "log-likelihood"} if name == "HHMM" else {"iteration", "loss"},
    }
    found = {text.replace("&amp;", "&") for text in texts_of("picture.svg")}
    assert expected[what] <= found


@pytest.mark.parametrize("what", ["segments", "confusion", "evidence"])
@pytest.mark.parametrize("name", FAMILIES)
def test_pictures_of_data(call, name, what):
    words = ["plot", f"{name}.jsonl", "-m", name, "--what", what, "-o", f"{what}.svg"]
    if name == "DynamicCRF":
        assert "DynamicCRF, whose levels do not nest" in call(*words, code=2).err
        assert not Path(f"{what}.svg").exists()
        return
    assert call(*words).err == f"{what}.svg written\n"
    expected = {
        "segments": {"time step", "predicted", *LEVELS[name]},
        "confusion": {"predicted", f"true {LEVELS[name][-1]}", *states_of(LEVELS[name][-1])},
        "evidence": {"share of labels given", "accuracy of the steps not given", *LEVELS[name]},
    }
    assert expected[what] <= texts_of(f"{what}.svg")
    Path(f"{what}.svg").unlink()


@pytest.mark.parametrize("name", FAMILIES)
def test_pictures_of_durations(call, name):
    words = ["plot", name, "--what", "durations", "-o", "picture.svg"]
    if name in ("HSCRF", "SemiCRF"):
        call(*words)
        assert {"length in steps", "phrase", "NP", "VP"} <= texts_of("picture.svg")
        assert call(*words, "--level", "root", code=2).err.startswith("hscrf: the model has no duration weights")
    else:
        assert call(*words, code=2).err.startswith("hscrf: the model has no durations: fit with --durations")


# -- what pictures say


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_legend_explains_widths_and_dashes_and_calls_no_negative_weight_favoured(folder):
    model = hscrf.load(folder / "HSCRF")
    texts = legend_of(hscrf.plots.plot_topology(model))
    assert texts[0] == "favoured: the wider, the larger the weight"
    assert "colour and dashes: lines of one parent" in texts
    below = legend_of(hscrf.plots.plot_topology(model, threshold=-100.0))
    assert below[0] == "weight above -100: the wider, the larger the weight"
    assert not any("favoured" in text for text in below)
    assert legend_of(hscrf.plots.plot_topology(hscrf.load(folder / "HHMM")))[0].startswith("probability above 0")
    assert legend_of(hscrf.plots.plot_transitions(model))[-1].startswith("follows, weight above 0")


def test_transitions_are_drawn_of_a_level_that_has_them(tmp_path):
    """Each tag is alone under its phrase, so that only phrases follow each other."""
    X, Y = [[["a"], ["b"], ["a"]]] * 4, [{"phrase": ["P", "Q", "P"], "tag": ["x", "y", "x"]}] * 4
    model = hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=10)).fit(X, Y)
    model.save(tmp_path / "m.hscrf")
    assert hscrf.plots.plot_transitions(model).get_legend() is not None
    assert cli.main(["plot", str(tmp_path / "m.hscrf"), "--what", "transitions", "-o", str(tmp_path / "t.png")]) == 0
    with pytest.raises(ValueError, match="no transition of any level"):
        hscrf.plots.plot_transitions(model, threshold=1e6)


def test_lengths_are_drawn_from_data_without_any_duration_weights(tmp_path, capsys):
    text = "the D B-NP\ncat N I-NP\nsees V B-VP\n\n" * 4
    (tmp_path / "d.txt").write_text(text)
    (tmp_path / "colours.toml").write_text(
        '[levels]\nchunk = ["NP", "VP"]\npos = ["D", "N", "V"]\n[colours.chunk]\nNP = "#ff0000"\n'
    )
    options = ["--levels", "chunk=3,pos=2", "--progress", "none", "--max-iter", "5"]
    assert cli.main(["fit", str(tmp_path / "d.txt"), "-m", str(tmp_path / "m"), *options]) == 0
    draw = ["plot", str(tmp_path / "d.txt"), "-m", str(tmp_path / "m"), "-o", str(tmp_path / "d.png")]
    assert cli.main([*draw, "--what", "durations", "--labels", str(tmp_path / "colours.toml")]) == 0
    from matplotlib import image

    red = (image.imread(tmp_path / "d.png")[:, :, :3] == [1, 0, 0]).all(axis=2)
    assert red.sum() > 100
    assert cli.main(["plot", str(tmp_path / "m"), "-o", str(tmp_path / "e.png"), "--what", "durations"]) == 2
    assert "hscrf plot DATA -m MODEL --what durations" in capsys.readouterr().err


def test_expected_lengths_are_those_of_the_posterior():
    X, Y = [[["a"], ["b"], ["a"]]] * 4, [{"phrase": ["P", "P", "Q"], "tag": ["x", "y", "x"]}] * 4
    model = hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=10)).fit(X, Y)
    ax = hscrf.plots.plot_durations(model, "phrase", X=X[:1])
    expected = model.posterior(X[:1])[0].segment("phrase").sum(axis=0)[:, 0]
    height = ax.lines[0].get_ydata() - 1
    assert height / 0.85 == pytest.approx((expected / expected.max())[: len(height)])


def test_states_that_are_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    hscrf.HHMM(n_components=2, random_state=0, max_iter=5).fit([["a", "b", "b", "a"]] * 2).save("hmm")
    Y = [{"part": [1, 1, 2], "step": [3, 4, 5]}] * 3
    model = hscrf.HSCRF(durations={"part": "gamma"}, max_duration=3).fit([[["a"], ["b"], ["c"]]] * 3, Y)
    model.save("model")
    labels = {"part": ["1", "?", "2"]}
    Path("x.jsonl").write_text(json.dumps({"tokens": [["a"], ["b"], ["c"]], "labels": labels}) + "\n")
    Path("h.jsonl").write_text(json.dumps({"tokens": ["a", "b"], "labels": {"state": ["0", None]}}) + "\n")
    for words in (
        "show hmm",
        "show model",
        "predict h.jsonl -m hmm",
        "predict x.jsonl -m model --to columns",
        "plot x.jsonl -m model -o s.svg",
        *(f"plot model --what {what} -o {what}.svg" for what in ("topology", "transitions", "durations")),
    ):
        assert cli.main(words.split()) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "level state, 2 states\n  0 1\n" in said
    assert "B-1" in said
    assert {"1", "2"} <= texts_of("topology.svg")
    plots.plot_segments(model.predict([[["a"], ["b"], ["c"]]])[0])
    plots.plot_transitions(model, "step")
