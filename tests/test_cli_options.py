"""Options of the shell: files of labels, features of first and last steps, penalties, margins, streams."""

import io
import subprocess
import sys

import pytest

import hscrf
from hscrf.cli import options
from hscrf.cli.main import main
from hscrf.cli.recipe import load_model
from hscrf.io import exports
from hscrf.io.labelfile import label_file_text, narrowed, read_label_file

SENTENCES = "the D B-NP\ncat N I-NP\nsees V B-VP\n\na D B-NP\nold J I-NP\ndog N I-NP\nsleeps V B-VP\nhere R O\n\n"
LABELS = """\
[levels]
chunk = ["NP", "VP", "O"]
pos = ["D", "N", "J", "V", "R", "X"]

[children.chunk]
NP = ["D", "N", "J"]
VP = ["V", "X"]

[max_duration]
chunk = 5

[durations]
chunk = "each"

[colours.chunk]
NP = "#d95f02"
"""
LAYOUT = ["--columns", "word,pos,chunk"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    (folder / "train.txt").write_text(SENTENCES * 4)
    (folder / "new.txt").write_text("the\nold\ndog\nsees\nhere\n\na\ncat\nsleeps\n\n")
    (folder / "labels.toml").write_text(LABELS)
    return folder


def fit(folder, name, *options):
    given = ["fit", str(folder / "train.txt"), "-m", str(folder / name), "--progress", "none", "--max-iter", "20"]
    assert main([*given, *LAYOUT, *options]) == 0
    return load_model(str(folder / name))[0]


@pytest.fixture(scope="module")
def plain(folder):
    return fit(folder, "plain.hscrf", "--levels", "chunk,pos")


def error(capsys, *arguments):
    """The message of a command that fails."""
    try:
        code = main(list(map(str, arguments)))
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr().err
    assert code == 2
    assert said.count("\n") == 1
    return said


# -- files of labels


def test_fit_takes_levels_states_and_rules_from_a_file(folder):
    model = fit(folder, "described.hscrf", "--labels", str(folder / "labels.toml"))
    topology = model.topology_
    assert topology.levels == ("root", "chunk", "pos")
    assert "X" in topology.states[2]
    assert topology.children[1][0].sum() == 3
    assert topology.max_duration[1].tolist() == [5, 5, 5]
    assert any(type(block).__name__ == "DurationBlock" and block.kind == "each" for block in model.blocks_)


def test_labels_that_the_file_does_not_have_are_an_error(folder, capsys):
    (folder / "short.toml").write_text('[levels]\nchunk = ["NP", "VP", "O"]\npos = ["D", "N", "V", "R"]\n')
    arguments = ["fit", folder / "train.txt", "-m", folder / "x.hscrf", *LAYOUT]
    assert "'J'" in error(capsys, *arguments, "--labels", folder / "short.toml")
    assert "top to bottom" in error(capsys, *arguments, "--labels", folder / "labels.toml", "--levels", "pos,chunk")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[levels", "bad.toml"),
        ('[level]\na = ["b"]', "has level, expected levels"),
        ("", "no table [levels]"),
        ('[levels]\na = ["b"]\n[durations]\na = "long"', "expected 'gamma'"),
        ('[levels]\na = ["b"]\n[colours.a]\nc = "red"', "unknown state"),
        ('[levels]\na = ["b"]\n[colours.a]\nb = "#12"', "expected a name of CSS such as 'teal', or #rrggbb"),
    ],
)
def test_bad_files_of_labels(folder, capsys, text, message):
    (folder / "bad.toml").write_text(text)
    said = error(capsys, "fit", folder / "train.txt", "-m", folder / "x.hscrf", "--labels", folder / "bad.toml")
    assert "bad.toml" in said
    assert message in said


def test_predictions_keep_the_rules_of_the_file(folder, plain, capsys):
    assert main(["show", str(folder / "plain.hscrf"), "--labels"]) == 0
    text = capsys.readouterr().out
    (folder / "shown.toml").write_text(text)
    assert read_label_file(folder / "shown.toml").topology == plain.topology_
    (folder / "rules.toml").write_text(text + "\n[max_duration]\nchunk = 1\n")
    arguments = ["predict", str(folder / "new.txt"), "-m", str(folder / "plain.hscrf")]
    assert main(arguments) == 0
    assert "I-NP" in capsys.readouterr().out
    assert main([*arguments, "--labels", str(folder / "rules.toml")]) == 0
    said = capsys.readouterr().out
    assert "I-NP" not in said
    assert len(said.splitlines()) == 10
    assert "only in the file" in error(capsys, *arguments, "--labels", folder / "labels.toml")


def test_text_of_a_topology_reads_as_the_same(tmp_path):
    topology = hscrf.Topology(
        {"a b": ["x", 'y"'], "c": ["u", "v"]},
        children={"a b": {"x": ["u"]}},
        successors={"c": {"u": ["v"]}},
        root=["one", "two"],
        min_duration={"a b": {"x": 2}},
        max_duration={"a b": {"x": 9}, "c": {"u": 3}},
    )
    for one in (topology, hscrf.Topology({"c": ["u"]}, max_duration={"c": None}), hscrf.Topology({"c": ["u"]})):
        (tmp_path / "t.toml").write_text(label_file_text(one), encoding="utf-8")
        assert read_label_file(tmp_path / "t.toml").topology == one


def test_narrowed_keeps_both_rules():
    levels = {"a": ["x", "y"], "b": ["u", "v"]}
    one = hscrf.Topology(levels, children={"a": {"x": ["u"]}}, max_duration={"a": {"x": 5}})
    other = hscrf.Topology({"a": ["y", "x"], "b": ["u", "v"]}, successors={"a": {"x": ["y"]}}, max_duration={"a": 7})
    both = narrowed(one, other)
    assert both.children[1].tolist() == one.children[1].tolist()
    assert both.successors[1].tolist() == [[False, True], [True, True]]
    assert both.max_duration[1].tolist() == [5, 7]


# -- features and penalties


def parts_of(model):
    return {(part, model.topology_.levels[d]) for part, d in (block.key for block in model.blocks_)}


def test_start_and_stop_choose_levels(folder, plain):
    assert {("start", "chunk"), ("stop", "chunk")} <= parts_of(plain)
    without = fit(folder, "a.hscrf", "--levels", "chunk,pos", "--start", "none", "--stop", "none")
    assert not {part for part, _ in parts_of(without)} & {"start", "stop"}
    other = fit(folder, "b.hscrf", "--levels", "chunk,pos", "--start", "pos", "--stop", "chunk,pos")
    assert {("start", "pos"), ("stop", "chunk"), ("stop", "pos")} <= parts_of(other)
    assert ("start", "chunk") not in parts_of(other)


def size_of(model, part, level):
    """The sum of squares of the weights of a part."""
    d = model.topology_.level(level)
    return sum(float(w @ w) for block, w in model.weighted_blocks() if block.key == (part, d))


def test_penalties_of_levels(folder, plain):
    strong = fit(folder, "c.hscrf", "--levels", "chunk,pos", "--penalty", "pos=50")
    assert size_of(strong, "token", "pos") < 0.5 * size_of(plain, "token", "pos")
    strong = fit(folder, "d.hscrf", "--levels", "chunk,pos", "--penalty", "transitions=500")
    assert size_of(strong, "trans", "chunk") < 0.5 * size_of(plain, "trans", "chunk")


def test_margin(folder, plain):
    wide = fit(folder, "e.hscrf", "--levels", "chunk,pos", "--margin", "2")
    assert wide.margin == 2
    assert size_of(wide, "token", "pos") > size_of(plain, "token", "pos")
    assert fit(folder, "f.hscrf", "--levels", "chunk,pos", "--margin", "chunk=1,pos=0.5").margin == {
        "chunk": 1.0,
        "pos": 0.5,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--start", "word"], "--start names the level 'word'"),
        (["--penalty", "x=1"], "--penalty names the level 'x'"),
        (["--penalty", "pos=-1"], "is not a number of at least 0"),
        (["--penalty", "pos"], "is not LEVEL=NUMBER"),
        (["--margin", "much"], "is not a number"),
        (["--start", "pos", "--shards", "cache"], "--start is not for --shards"),
    ],
)
def test_mistakes(folder, capsys, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["fit", folder / "train.txt", "-m", tmp_path / "x.hscrf", *LAYOUT, "--levels", "chunk,pos"]
    said = error(capsys, *arguments, "--progress", "none", *options)
    assert message in said


def test_a_table_for_a_model_of_columns_without_names(folder, capsys):
    options = ["--levels", "chunk=3,pos=2", "--progress", "none", "--max-iter", "1"]
    assert main(["fit", str(folder / "train.txt"), "-m", str(folder / "bare.hscrf"), *options]) == 0
    (folder / "new.csv").write_text("sequence,word\na,the\n")
    capsys.readouterr()
    said = error(capsys, "predict", folder / "new.csv", "-m", folder / "bare.hscrf")
    assert "new.csv is a table, but" in said
    assert "was trained on columns without names: fit with --columns NAMES" in said


def test_a_table_with_one_feature_is_predicted(folder, capsys):
    (folder / "one.csv").write_text("sequence,word,tag\na,the old,D\na,cat,N\n")
    options = ["--levels", "tag", "--progress", "none", "--max-iter", "1"]
    assert main(["fit", str(folder / "one.csv"), "-m", str(folder / "one.hscrf"), *options]) == 0
    (folder / "bare.csv").write_text("sequence,word\na,the old\na,cat\n")
    assert main(["predict", str(folder / "bare.csv"), "-m", str(folder / "one.hscrf")]) == 0
    assert "read as one token" not in capsys.readouterr().err


def test_columns_that_are_compared_by_default_are_named_where_they_do_not_fit(folder, capsys):
    said = error(capsys, "score", folder / "train.txt")  # the tag and the chunk
    assert said.endswith("; the last two columns were compared, --model or --levels names others\n")
    assert "last two" not in error(capsys, "score", folder / "train.txt", "--levels", "chunk")


# -- streams


def streamed(folder, monkeypatch, capsys, text, *options):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    capsys.readouterr()
    code = main(["predict", "--stream", "-m", str(folder / "plain.hscrf"), *options])
    return code, capsys.readouterr()


def test_a_stream_with_a_long_lag_is_predict(folder, plain, monkeypatch, capsys):
    text = (folder / "new.txt").read_text()
    assert main(["predict", str(folder / "new.txt"), "-m", str(folder / "plain.hscrf")]) == 0
    whole = capsys.readouterr().out
    assert streamed(folder, monkeypatch, capsys, text, "--lag", "50") == (0, (whole, ""))
    code, said = streamed(folder, monkeypatch, capsys, text, "--lag", "1", "--marginals")
    rows = [line.split() for line in said.out.splitlines()]
    assert code == 0
    assert [row[:1] for row in rows] == [line.split()[:1] for line in text.splitlines()]
    assert {len(row) for row in rows if row} == {5}
    assert all(0 < float(cell) <= 1 for row in rows for cell in row[3:])


def test_labels_of_the_input_are_not_used(folder, plain, monkeypatch, capsys):
    _, bare = streamed(folder, monkeypatch, capsys, "the\ncat\n", "--lag", "0")
    _, labelled = streamed(folder, monkeypatch, capsys, "the V O\ncat V O\n", "--lag", "0")
    assert [line.split()[-2:] for line in bare.out.splitlines()] == [
        line.split()[-2:] for line in labelled.out.splitlines()
    ]


def test_lines_come_out_while_others_are_awaited(folder, plain):
    command = [sys.executable, "-m", "hscrf", "predict", "--stream", "--lag", "1", "-m", str(folder / "plain.hscrf")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for word in ("the", "old", "dog", "sees"):  # the template looks two words ahead
            process.stdin.write(word + "\n")
        process.stdin.flush()
        assert process.stdout.readline().split()[0] == "the"
        rest, _ = process.communicate("here\n", timeout=60)
    assert [line.split()[0] for line in rest.splitlines()] == ["old", "dog", "sees", "here"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stream", "-t"], "-t is not for --stream"),
        (["--stream", "new.txt"], "reads standard input"),
        (["--lag", "3"], "--lag is for --stream"),
        (["--stream", "--to", "jsonl"], "--to is not for --stream"),
    ],
)
def test_what_a_stream_refuses(folder, plain, capsys, options, message):
    assert message in error(capsys, "predict", "-m", folder / "plain.hscrf", *options)


def test_a_line_with_too_many_columns(folder, plain, monkeypatch, capsys):
    code, said = streamed(folder, monkeypatch, capsys, "the\ncat N\n", "--lag", "0")
    assert code == 2
    assert "line 2: there are 2 columns, expected 1 (word)" in said.err


def test_a_stream_of_numbers(tmp_path, monkeypatch, capsys):
    """A model of a table labels lines of numbers, with a first line of names or without."""
    rng = hscrf.arrays.generator(0)
    rows = [(n, *rng.normal(size=2).round(3)) for n in range(60)]
    lines = [f"{n // 10},{a},{b},{'up' if a > 0 else 'down'}" for n, a, b in rows]
    (tmp_path / "days.csv").write_text("sequence,a,b,act\n" + "\n".join(lines) + "\n")
    fit = ["fit", str(tmp_path / "days.csv"), "-m", str(tmp_path / "plain.hscrf"), "--levels", "act"]
    assert main([*fit, "--progress", "none", "--max-iter", "30"]) == 0
    text = "".join(f"{a},{b}\n" for _, a, b in rows[:6])
    code, said = streamed(tmp_path, monkeypatch, capsys, text, "--lag", "1")
    assert code == 0, said.err
    assert [line.split(",")[2] for line in said.out.splitlines()] == ["up" if a > 0 else "down" for _, a, _ in rows[:6]]
    code, named = streamed(
        tmp_path, monkeypatch, capsys, "b,time,a\n" + "".join(f"{b},0,{a}\n" for _, a, b in rows[:6])
    )
    assert code == 0, named.err
    assert named.out.splitlines()[0] == "b,time,a,act_predicted"
    assert [line.split(",")[-1] for line in named.out.splitlines()[1:]] == [
        line.split(",")[-1] for line in said.out.splitlines()
    ]
    code, said = streamed(tmp_path, monkeypatch, capsys, "1,x\n")
    assert code == 2
    assert "<stdin>, line 1: column 'b' is 'x', expected a finite number" in said.err


def test_the_help_names_the_formats_that_are_written():
    assert options.EXPORTS == exports.EXPORTS
    assert tuple(exports.ENDINGS) == options.ENDINGS
