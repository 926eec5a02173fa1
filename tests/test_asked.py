"""Options, names of files, weights and unknown labels are respected, or refused before any work."""

import json
from pathlib import Path

import numpy as np
import pytest

import hscrf

QUICK = ["--max-iter", "2", "--progress", "none"]
WORDS = "the D B-NP\ncat N I-NP\nruns V B-VP\n\n"
NESTED = ["--levels", "chunk=3,pos=2"]


@pytest.fixture(autouse=True)
def training_file(tmp_path):
    (tmp_path / "train.txt").write_text(WORDS * 4)


def test_pictures_are_what_the_help_says(shell):
    pytest.importorskip("matplotlib")
    code, _, told = shell("plot", "train.txt", "-o", "a.gif")
    assert (code, told) == (2, "hscrf: -o a.gif: the name of a picture ends in .png, .svg or .pdf\n")


@pytest.mark.parametrize("margin", ["-1", "pos=-1", "nan", "inf", "x"])
def test_a_margin_is_refused_before_anything_is_read(shell, margin):
    code, out, told = shell("fit", "there is no such file", "-m", "m", *NESTED, "--margin", margin)
    assert (code, out) == (2, "")
    assert told.startswith("hscrf fit: argument --margin: ")


def test_options_of_levels_may_be_given_several_times(shell):
    more = ["--penalty", "chunk=3", "--penalty", "pos=.5", "--margin", "chunk=1", "--margin", "pos=2"]
    more += ["--max-duration", "chunk=5", "--max-duration", "pos=1"]
    assert shell("fit", "train.txt", "-m", "m", *NESTED, *QUICK, *more)[0] == 0
    model = hscrf.load("m")
    assert model.margin == {"chunk": 1.0, "pos": 2.0}
    assert {spec.level: spec.penalty for spec in model.features if isinstance(spec, hscrf.Token)} == {
        "chunk": 3.0, "pos": 0.5
    }  # fmt: skip
    code, _, told = shell("fit", "train.txt", "-m", "m", *NESTED, "--penalty", "chunk=3", "--penalty", "chunk=4")
    assert (code, "argument --penalty: names the level 'chunk' twice" in told) == (2, True)
    code, _, told = shell("fit", "train.txt", "-m", "m", *NESTED, "--margin", "3", "--margin", "chunk=4")
    assert (code, "argument --margin: expected it once, or LEVEL=VALUE each time" in told) == (2, True)


def test_states_of_another_type_are_no_mistakes_but_an_error():
    X = [[["a"], ["b"]]] * 3
    model = hscrf.ChainCRF().fit(X, [[1, 2]] * 3)
    assert model.score(X, [[1, 2]] * 3) == 1.0
    with pytest.raises(ValueError, match="the labels '1' and 1 are written alike"):
        model.score(X, [["1", "2"]] * 3)


def test_weights_of_zero_everywhere_are_refused():
    with pytest.raises(ValueError, match="sample_weight is 0 for every sequence, expected some weights above 0"):
        hscrf.ChainCRF().fit([[["a"], ["b"]]] * 2, [["x", "y"]] * 2, sample_weight=[0, 0])


@pytest.mark.parametrize("colour", ["notacolour", "#12345", "red blue"])
def test_colours_are_checked_when_they_are_read(shell, colour):
    text = f'[levels]\nchunk = ["NP", "VP"]\npos = ["D", "N", "V"]\n[colours.chunk]\nNP = "{colour}"\n'
    Path("labels.toml").write_text(text)
    code, _, told = shell("fit", "train.txt", "-m", "m", "--columns", "w,pos,chunk", "--labels", "labels.toml", *QUICK)
    assert (code, f"the colour of chunk NP is '{colour}', expected a name of CSS such as 'teal'" in told) == (2, True)
    Path("labels.toml").write_text(text.replace(colour, "teal"))
    assert shell("fit", "train.txt", "-m", "m", "--columns", "w,pos,chunk", "--labels", "labels.toml", *QUICK)[0] == 0


def test_strict_is_not_for_shards(shell):
    assert shell("fit", "train.txt", "-m", "m", *NESTED, *QUICK)[0] == 0
    code, _, told = shell("predict", "train.txt", "-m", "m", "--shards", "c", "-o", "out", "--strict")
    assert (code, "--strict is not for --shards" in told) == (2, True)


def test_unknown_labels_are_drawn_as_unknown(shell):
    pytest.importorskip("matplotlib")
    assert shell("fit", "train.txt", "-m", "m", *NESTED, *QUICK)[0] == 0
    Path("new.txt").write_text("the D B-NP\ncat XX I-QP\n\n")
    code, _, told = shell("plot", "new.txt", "-m", "m", "-o", "a.png")
    assert code == 0
    assert "new.txt, line 2: level 'chunk' has the label 'I-QP', unknown to the model: it is read as ?" in told
    code, _, told = shell("plot", "new.txt", "-m", "m", "-o", "a.png", "--strict")
    assert (code, "'QP'" in told) == (2, True)


def test_states_that_follow_themselves_are_transitions():
    pytest.importorskip("matplotlib")
    X, Y = [[["a"]] * 6, [["b"]] * 6], [["x"] * 6, ["y"] * 6]
    model = hscrf.ChainCRF().fit(X, Y)
    assert hscrf.plots.plot_transitions(model).get_legend() is not None


def test_a_level_may_stand_after_a_colon():
    X, Y = [[["a"], ["b"]]] * 3, [{"day": ["p", "p"], "act": ["x", "y"]}] * 3
    model = hscrf.HSCRF().fit(X, Y)
    assert hscrf.metrics.scorer("accuracy:act")(model, X, Y) == 1.0
    with pytest.raises(ValueError, match="there are the levels 'act', after a colon, and 'day'; expected one"):
        hscrf.metrics.scorer("accuracy:act", "day")
    with pytest.raises(ValueError, match="zz"):
        hscrf.metrics.scorer("accuracy:zz")(model, X, Y)


def test_a_step_without_a_rate_is_a_second(shell):
    assert shell("fit", "train.txt", "-m", "m", *NESTED, *QUICK)[0] == 0
    Path("one.txt").write_text(WORDS)
    for name in ("a.eaf", "a.TextGrid"):
        assert "without --rate a step lasts one second" in shell("predict", "one.txt", "-m", "m", "-o", name)[2]
    assert "second" not in shell("predict", "one.txt", "-m", "m", "-o", "a.eaf", "--rate", "50")[2]


def test_the_ending_of_the_output_chooses_its_format(shell):
    Path("days.csv").write_text("sequence,a,state\n" + "q,1,x\nq,2,y\n" * 5)
    assert shell("fit", "days.csv", "-m", "m", "--levels", "state", *QUICK)[0] == 0
    assert shell("predict", "days.csv", "-m", "m", "-o", "o.jsonl")[0] == 0
    assert set(json.loads(Path("o.jsonl").read_text())) >= {"tokens", "prediction"}
    assert shell("predict", "o.jsonl", "-m", "m", "-o", "o.csv")[0] == 0
    assert Path("o.csv").read_text().startswith("sequence,a,state,")
    assert shell("predict", "days.csv", "-m", "m", "-o", "o.tsv")[0] == 0
    assert Path("o.tsv").read_text().startswith("sequence\ta\tstate\t")


@pytest.mark.parametrize("more", [[], ["--shards", "c"]])
def test_a_number_that_is_refused_has_its_place(shell, more):
    Path("days.csv").write_text("sequence,a,state\nq,1,x\nq,2,y\nq,,x\nq,1,y\n")
    code, _, told = shell("fit", "days.csv", "-m", "m", "--levels", "state", "--missing", "refuse", *QUICK, *more)
    line = 2 if more else 4
    assert code == 2
    assert f"days.csv, line {line}: column 'a' is missing at step 2, expected a number" in told
    Path("days.jsonl").write_text('{"tokens": [{"a": 1}, {"a": null}], "labels": {"state": ["x", "y"]}}\n')
    code, _, told = shell("fit", "days.jsonl", "-m", "m", "--missing", "refuse", *QUICK, *more)
    assert (code, "days.jsonl, line 1: 'a' at step 1 is missing, expected a value" in told) == (2, True)


def test_several_columns_are_named_as_several():
    X = [np.arange(8.0).reshape(4, 2)] * 2
    model = hscrf.ChainCRF().fit(X, [["x", "y"] * 2] * 2)
    with pytest.warns(UserWarning, match="columns 'x0', 'x1', but none were missing in training"):
        model.predict([np.full((2, 2), np.nan)])
    with pytest.warns(UserWarning, match="numbers are missing in column 'x1', but none were missing in training"):
        model.predict([np.array([[1.0, np.nan]])])
