"""Models from files that only predict: the same answers as the classes that learn, without scikit-learn."""

import numpy as np
import pytest

import hscrf
from hscrf.cli.main import main
from hscrf.errors import FileFormatError
from hscrf.estimator.trained import predictor_of
from hscrf.files.container import read_container, write_container
from processes import run

X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=dogs"], ["w=bark"]]] * 3
TAGS = [["D", "N", "V"], ["N", "V"]] * 3
BOTH = [{"phrase": ["B-NP", "I-NP", "B-VP"], "tag": TAGS[0]}, {"phrase": ["B-NP", "B-VP"], "tag": TAGS[1]}] * 3
KNOWN = [{"phrase": ["?", "?", "B-VP"]}, None]


@pytest.fixture(
    params=[
        (lambda: hscrf.HSCRF().fit(X, BOTH), KNOWN),
        (lambda: hscrf.ChainCRF().fit(X, TAGS), [["?", "V", "?"], None]),
        (lambda: hscrf.SemiCRF().fit(X, [labels["phrase"] for labels in BOTH]), [["?", "?", "B-VP"], None]),
    ],
    ids=["HSCRF", "ChainCRF", "SemiCRF"],
)
def trained(request, tmp_path):
    """A model, evidence for it, and its file."""
    make, evidence = request.param
    model = make()
    model.save(tmp_path / "m.hscrf")
    return model, evidence, tmp_path / "m.hscrf"


def test_a_predictor_answers_as_the_model(trained):
    model, evidence, path = trained
    predictor = predictor_of(path, *read_container(path))
    assert predictor.predict(X[:2], evidence) == model.predict(X[:2], evidence)
    pairs = zip(predictor.predict_marginals(X), model.predict_marginals(X), strict=True)
    for mine, theirs in pairs:
        for level, table in theirs.state.items():
            np.testing.assert_array_equal(mine.state[level], table)


def test_other_families_need_their_class(tmp_path):
    hscrf.HHMM().fit([["a", "b"]] * 2, [["x", "y"]] * 2).save(tmp_path / "h.hscrf")
    assert predictor_of(tmp_path / "h.hscrf", *read_container(tmp_path / "h.hscrf")) is None


@pytest.mark.parametrize("change", ["asked", "found"])
def test_a_scheme_that_does_not_exist_is_refused(trained, change):
    path = trained[2]
    header, arrays = read_container(path)
    if change == "asked":
        header["parameters"]["scheme"] = "biology"
    else:
        header["parameters"]["scheme"], header["scheme"] = "auto", {"phrase": "biology"}
    write_container(path, header, arrays)
    with pytest.raises(FileFormatError, match="biology"):
        predictor_of(path, *read_container(path))


def test_prediction_in_the_shell_does_not_import_scikit_learn(tmp_path, capsys):
    lines = "the D B-NP\ncat N I-NP\nsleeps V B-VP\n\ndogs N B-NP\nbark V B-VP\n\n"
    (tmp_path / "train.txt").write_text(lines * 3)
    model, out = str(tmp_path / "m.hscrf"), str(tmp_path / "out.txt")
    assert main(["fit", str(tmp_path / "train.txt"), "-m", model, "--levels", "phrase=3,tag=2"]) == 0
    capsys.readouterr()
    arguments = ["predict", str(tmp_path / "train.txt"), "-t", "-m", model, "-o", out]
    heavy = {"sklearn", "pandas", "matplotlib"}
    code = f"import sys; from hscrf.cli.main import main; print(main({arguments!r}), *({heavy!r} & set(sys.modules)))"
    assert run(code)[-1:] == ["0"]
    assert (tmp_path / "out.txt").read_text().splitlines()[0] == "the D B-NP D B-NP"
