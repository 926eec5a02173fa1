"""A model of the shell in Python, and back."""

import contextlib
from pathlib import Path

import pytest

import hscrf
from hscrf import cli, io

LINES = ["the\tD\tB-NP", "cat\tN\tI-NP", "barks\tV\tB-VP", "", "a\tD\tB-NP", "dog\tN\tI-NP", ""] * 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a file of columns and a model of it."""
    folder = tmp_path_factory.mktemp("doors")
    (folder / "train.txt").write_text("\n".join(LINES) + "\n")
    fit = ["fit", folder / "train.txt", "-m", folder / "model", "--levels", "chunk=3,pos=2", "--progress", "none"]
    assert cli.main([*map(str, fit)]) == 0
    with (folder / "template.toml").open("w") as file, contextlib.redirect_stdout(file):
        assert cli.main(["show", str(folder / "model"), "--template"]) == 0
    return folder


def examples(folder):
    """The sequences of the file as a model of the shell describes them, and their labels."""
    documents = list(io.read_columns(folder / "train.txt", levels={"chunk": 2, "pos": 1}))
    template = io.TokenFeatures(folder / "template.toml").fit([["a"]])
    return template.transform([[word for (word,) in d.tokens] for d in documents]), [d.labels for d in documents]


def test_python_reads_the_tags_that_the_shell_read(folder):
    model = hscrf.load(folder / "model")
    X, Y = examples(folder)
    assert model.score(X, Y) == 1.0
    assert (model.log_likelihood(X, Y) > -1).all()
    told = model.predict(X[:1], evidence=[{"chunk": ["?", "B-NP", "?"]}])
    assert told[0].segments("chunk")[1][::2] == (1, "NP")
    assert model.calibrate(X, Y).temperature_["chunk"].segment < 1


def test_the_shell_reads_files_for_a_model_that_python_calibrated(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    model = hscrf.load("model")
    X, Y = examples(folder)
    model.calibrate(X, Y).save("calibrated")
    for name in ("model", "calibrated"):
        assert cli.main(["predict", "train.txt", "-m", name, "-t", "--scores"]) == 0
        Path(f"{name}.txt").write_text(capsys.readouterr().out)
    one, two = (
        io.read_columns(f"{name}.txt", levels={"chunk": 4}, unlabelled=True) for name in ("model", "calibrated")
    )
    assert [d.labels for d in one] == [d.labels for d in two]
    assert Path("model.txt").read_text() != Path("calibrated.txt").read_text()


def test_a_new_fit_forgets_how_files_were_read(folder, tmp_path, capsys):
    model = hscrf.load(folder / "model")
    X, Y = examples(folder)
    model.fit(X, Y).save(tmp_path / "own")
    assert cli.main(["predict", str(folder / "train.txt"), "-m", str(tmp_path / "own"), "-t"]) == 2
    assert "was not made by hscrf fit" in capsys.readouterr().err
