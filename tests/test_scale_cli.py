"""The shell on data beyond memory: fit, pack, predict and score with --shards."""

import json

import pytest

import hscrf
from hscrf.cli import main, options, shards
from hscrf.io import recipe
from hscrf.scale import packing
from scale_fixtures import partly, sentences, write_jsonl

LEVELS = ["--levels", "phrase,tag"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, Y = sentences(60)
    (tmp_path / "data").mkdir()
    for k in range(3):
        write_jsonl(tmp_path / "data" / f"{k}.jsonl", X[20 * k : 20 * k + 20], Y[20 * k : 20 * k + 20])
    return tmp_path


def run(*arguments):
    assert main([*map(str, arguments), "--traceback"]) == 0


def fit(*more):
    run("fit", "data/*.jsonl", "-m", "m.hscrf", *LEVELS, "--max-iter", "5", "--progress", "none", *more)


def test_fit_with_shards_is_fit_in_memory(folder):
    fit("--shards", "cache")
    disk = hscrf.load("m.hscrf")
    fit()
    memory = hscrf.load("m.hscrf")
    assert disk.loss_ == memory.loss_
    assert (disk.coef_ == memory.coef_).all()


@pytest.mark.parametrize("options", [(), ("-j", "2")], ids=" ".join)
def test_pack_prepares_what_fit_finds(folder, monkeypatch, options):
    run("pack", "data/*.jsonl", "--shards", "cache", *options, *LEVELS)

    def again(packer):
        raise AssertionError("packed again")

    monkeypatch.setattr(packing.Packer, "run", again)
    fit("--shards", "cache")


def test_predict_and_score(folder, capsys):
    fit("--shards", "cache", "--dev", "data/0.jsonl")
    run("predict", "data/1.jsonl", "data/2.jsonl", "-m", "m.hscrf", "--shards", "cache", "-o", "out")
    lines = [json.loads(line) for path in sorted((folder / "out").iterdir()) for line in path.read_text().splitlines()]
    assert len(lines) == 40
    assert lines[0]["file"] == "data/1.jsonl"
    capsys.readouterr()
    run("score", "data/*.jsonl", "-m", "m.hscrf", "--shards", "cache", "--json", "-")
    numbers = json.loads(capsys.readouterr().out)
    X, Y = sentences(60)
    assert numbers["joint_accuracy"] == hscrf.load("m.hscrf").score(X, Y)


@pytest.mark.parametrize("hidden", [False, True])
def test_score_has_the_numbers_of_a_score_in_memory(folder, capsys, hidden):
    fit("--max-iter", "2")
    X, Y = sentences(40, seed=3)
    Y = partly(Y) if hidden else Y
    write_jsonl("test.jsonl", X, Y)
    run("score", "test.jsonl", "-m", "m.hscrf", "--shards", "cache", "--json", "-", "--tolerance", "1")
    found = json.loads(capsys.readouterr().out)
    label_apart(X)
    run("score", "test.jsonl", "out.jsonl", "-m", "m.hscrf", "--json", "-", "--tolerance", "1")
    assert found == json.loads(capsys.readouterr().out)
    assert 0 < found["levels"]["phrase"]["boundary_f1"] < 1
    assert 0 < found["levels"]["phrase"]["tag_accuracy"] < 1
    run("score", "test.jsonl", "out.jsonl", "-m", "m.hscrf")
    expected = capsys.readouterr().out
    run("score", "test.jsonl", "-m", "m.hscrf", "--shards", "cache")
    assert capsys.readouterr().out == expected


def test_score_of_tags_with_prefixes(folder, capsys):
    X, Y = sentences(40)
    bio = [
        ["O" if p == "PP" else f"{'I' if k and y[k - 1] == p else 'B'}-{p}" for k, p in enumerate(y)]
        for y in (labels["phrase"] for labels in Y)
    ]
    write_jsonl("a.jsonl", X, [{"phrase": y} for y in bio])
    run("fit", "a.jsonl", "-m", "m.hscrf", "--levels", "phrase", "--max-iter", "2", "--progress", "none")
    run("score", "a.jsonl", "-m", "m.hscrf", "--shards", "cache", "--json", "-")
    found = json.loads(capsys.readouterr().out)
    label_apart(X)
    run("score", "a.jsonl", "out.jsonl", "-m", "m.hscrf", "--json", "-")
    assert found == json.loads(capsys.readouterr().out)
    assert set(found["levels"]["phrase"]["per_label"]) == {"NP", "VP"}


def label_apart(X):
    """Label sequences that have no labels of their own, which the shell would keep."""
    with open("bare.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"tokens": x}) + "\n" for x in X)
    run("predict", "bare.jsonl", "-m", "m.hscrf", "-o", "out.jsonl")


def test_columns_with_a_template_of_pairs(folder):
    X, Y = sentences(30)
    with open("a.txt", "w", encoding="utf-8") as file:
        for x, y in zip(X, Y, strict=True):
            for s, tag in zip(x, y["tag"], strict=True):
                file.write(f"{s[0][2:]} {s[2]} {tag}\n")
            file.write("\n")
    (folder / "template").write_text("U00:%x[0,0]\nU01:%x[-1,1]\nB00:%x[0,1]\n")
    arguments = ["fit", "a.txt", "-m", "m.hscrf", "--levels", "tag", "--template", "template", "--max-iter", "4"]
    run(*arguments, "--progress", "none", "--shards", "cache")
    disk = hscrf.load("m.hscrf")
    run(*arguments, "--progress", "none")
    memory = hscrf.load("m.hscrf")
    assert (disk.coef_ == memory.coef_).all()
    run("predict", "a.txt", "-m", "m.hscrf", "-o", "labelled.txt")


def test_bad_sequences_are_skipped(folder, capsys):
    with open("data/1.jsonl", "a", encoding="utf-8") as file:
        file.write('{"tokens": ["a"], "labels": {"phrase": ["NP", "NP"], "tag": ["N"]}}\n')
    assert main(["fit", "data/*.jsonl", "-m", "m.hscrf", *LEVELS, "--shards", "cache"]) == 2
    assert "data/1.jsonl, line 21:" in capsys.readouterr().err
    fit("--shards", "cache", "--skip-bad")
    assert "1 bad sequences were left out; the first: data/1.jsonl, line 21" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "data/*.jsonl", "-m", "m", "--dask", "2"], "--dask works on shards"),
        (["fit", "data/*.jsonl", "-m", "m", "--skip-bad"], "--skip-bad works on shards"),
        (["fit", "-", "-m", "m", "--shards", "c"], "not standard input"),
        (["predict", "a", "b", "-m", "m"], "several need --shards"),
        (["predict", "a", "-m", "m", "--shards", "c"], "give a folder by -o"),
        (["predict", "a", "-m", "m", "--shards", "c", "-o", "d", "-t"], "-t is not for --shards"),
        (["score", "a", "--shards", "c"], "give the model with -m"),
        (["score", "a", "--shards", "c", "-m", "m", "--conlleval"], "--conlleval is not for --shards"),
        (["fit", "none/*.txt", "-m", "m"], "no file matches"),
    ],
)
def test_what_does_not_go_together_is_reported(folder, capsys, arguments, message):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_cluster(folder):
    distributed = pytest.importorskip("distributed")
    fit("--shards", "cache")
    disk = hscrf.load("m.hscrf")
    options = {"threads_per_worker": 1, "processes": False, "dashboard_address": ":0", "protocol": "tcp"}
    with distributed.LocalCluster(n_workers=1, **options) as cluster:
        fit("--shards", "cache", "--dask", cluster.scheduler_address)
    assert (hscrf.load("m.hscrf").coef_ == disk.coef_).all()


def test_formats_have_the_same_names_everywhere():
    assert options.FORMATS == recipe.FORMATS


def test_a_number_asks_for_local_workers(monkeypatch):
    distributed = pytest.importorskip("distributed")
    asked = []

    class Client:
        dashboard_link = "link"
        __enter__ = __exit__ = lambda *anything: None

        def __init__(self, **options):
            asked.append(options)

    monkeypatch.setattr(distributed, "Client", Client)
    with shards.cluster_of("3"):
        pass
    assert asked[0]["n_workers"] == 3
    assert asked[0]["threads_per_worker"] == 1
