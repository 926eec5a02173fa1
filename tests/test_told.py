"""Reports of what was read from tables, JSON Lines and shards: dates, decimal signs, columns, labels among features."""

import io
import json
from pathlib import Path

import numpy as np
import pandas
import pytest

import hscrf
from hscrf.io import read_table, write_table
from hscrf.observations.encoder import ObservationEncoder

QUICK = ["--max-iter", "2", "--progress", "none"]


def csv_of(columns, separator=","):
    """A table of columns, three sequences of equal length."""
    steps = len(next(iter(columns.values())))
    columns = {"sequence": [f"q{3 * t // steps}" for t in range(steps)], **columns}
    every = zip(*columns.values(), strict=True)
    rows = [[f'"{cell}"' if separator in str(cell) else str(cell) for cell in row] for row in every]
    return "\n".join(separator.join(row) for row in [list(columns), *rows]) + "\n"


STATES = ["A", "A", "B", "C", "C", "B"] * 20
NUMBERS = [f"{value:.3f}" for value in np.random.default_rng(0).normal(size=120)]


# ------------------------------------------------------------------------------
# Dates


def test_dates_of_a_table_are_numbers_and_are_written_as_they_were_read():
    text = "when,day,x,tag\n1970-01-01 00:01:30,1970-01-02,1,N\n,1970-01-03,2,V\n1970-01-01T01:00Z,1970-01-04,3,V\n"
    [one] = read_table(io.StringIO(text), ["tag"], sequence=None)
    np.testing.assert_array_equal(
        np.array(one.tokens), [[90, 86400, 1], [np.nan, 172800, 2], [3600, 259200, 3]]
    )  # the same as those of a DataFrame
    target = io.StringIO()
    write_table(target, [one], sequence=None)
    assert target.getvalue() == text


def test_dates_in_the_shell(shell):
    days = pandas.date_range("2024-01-01", periods=120, freq="h")
    Path("days.csv").write_text(csv_of({"when": days, "x": NUMBERS, "state": STATES}))
    code, _, told = shell("fit", "days.csv", "-m", "m", "--levels", "state", *QUICK)
    assert code == 0
    assert "columns: x (numbers, standardised); when (dates, standardised)\n" in told
    code, out, _ = shell("predict", "days.csv", "-m", "m", "-t")
    assert (code, out.splitlines()[1].split(",")[1]) == (0, "2024-01-01 00:00:00")
    Path("new.csv").write_text("sequence,when,x\na,yesterday,1\n")
    code, _, told = shell("predict", "new.csv", "-m", "m")
    assert (code, "column 'when' is 'yesterday', expected a date such as" in told) == (2, True)


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (["room", "a"], r"X has the columns \['room', 'a'\] in another order, but the model was trained on"),
        (["a"], "X lacks the column 'room', but the model was trained on"),
        (["b"], r"X has the columns \['b'\]|X has 1 column, but the model was trained on 2"),
    ],
)
def test_names_of_columns_are_compared_before_cells(later, message):
    table = pandas.DataFrame({"a": [1.0, 2.0], "room": ["hall", "bath"], "b": ["x", "y"]})
    encoder = ObservationEncoder()
    encoder.fit_pack([table[["a", "room"]]])
    with pytest.raises(ValueError, match=message):
        encoder.pack([table[later]])


# ------------------------------------------------------------------------------
# Numbers that are text


def test_signs_between_thousands_are_reported(shell):
    values = [f"{1000 * abs(float(x)) + 1000:,.2f}" for x in NUMBERS]
    Path("days.csv").write_text(csv_of({"x": values, "state": STATES}))
    told = shell("fit", "days.csv", "-m", "m", "--levels", "state", *QUICK)[2]
    assert f"column 'x' holds numbers such as '{values[0]}', with signs between thousands, treated as text" in told


def test_a_wrong_decimal_sign_is_reported(shell):
    commas = csv_of({"x": [x.replace(".", ",") for x in NUMBERS], "state": STATES}, ";")
    Path("commas.csv").write_text(commas)
    Path("points.csv").write_text(csv_of({"x": NUMBERS, "state": STATES}, ";"))
    options = ["--levels", "state", "--separator", ";", *QUICK]
    told = shell("fit", "commas.csv", "-m", "m", "--decimal", ".", *options)[2]
    assert "with a decimal comma, taken for words: --decimal , has numbers" in told
    for trained, other, sign in (("commas.csv", "points.csv", "."), ("points.csv", "commas.csv", ",")):
        assert shell("fit", trained, "-m", "m", *options)[0] == 0
        code, _, told = shell("predict", other, "-m", "m", "-t")
        assert (code, f"; --decimal {sign} reads it" in told) == (2, True)
        code, out, _ = shell("predict", other, "-m", "m", "-t", "--decimal", sign)
        assert code == 0
        Path("out.csv").write_text(out)  # in the sign that it was read with
        assert shell("score", "out.csv", "-m", "m", "--decimal", sign)[0] == 0
        assert out.splitlines()[1].split(";")[1] == Path(other).read_text().splitlines()[1].split(";")[1]


def test_commas_in_a_text_file_are_reported(shell):
    Path("train.txt").write_text("the,D\ncat,N\n\n" * 5)
    code, _, told = shell("fit", "train.txt", "-m", "m", "--levels", "tag", *QUICK)
    assert (code, "; --separator comma would read the file" in told) == (2, True)
    Path("train.txt").write_text("the old,D\na cat,N\n\n" * 5)
    told = shell("fit", "train.txt", "-m", "m", "--levels", "tag", *QUICK)[2]
    assert "level 'tag' has labels such as 'old,D': is the separator --separator comma?" in told


def jsonl(tokens):
    parts = [slice(k, k + 40) for k in (0, 40, 80)]
    return "".join(json.dumps({"tokens": tokens[p], "labels": {"state": STATES[p]}}) + "\n" for p in parts)


@pytest.mark.parametrize(
    "token", [lambda x: {"x": x}, lambda x: [x, "a"], lambda x: x], ids=["dicts", "strings", "words"]
)
def test_decimal_commas_in_json_lines_are_reported(shell, token):
    Path("days.jsonl").write_text(jsonl([token(x.replace(".", ",")) for x in NUMBERS]))
    told = shell("fit", "days.jsonl", "-m", "m", "--template", "none", *QUICK)[2]
    assert "holds numbers such as '0,126', with a decimal comma, taken for words: JSON has numbers" in told


# ------------------------------------------------------------------------------
# Labels among the features


def test_labels_in_feature_dicts_are_warned_of(shell):
    tags = [f"{'BI'[t % 2]}-NP" for t in range(120)]
    tokens = [{"x": float(x), "chunk": tag, "room": "hall"} for x, tag in zip(NUMBERS, tags, strict=True)]
    tokens[3]["x"] = None
    tokens[5]["rare"] = True
    Path("days.jsonl").write_text(jsonl(tokens))
    for more in ([], ["--shards", "cache"]):
        told = shell("fit", "days.jsonl", "-m", "m", *QUICK, *more)[2]
        assert (
            "columns: feature dicts: x (numbers, as they are); chunk, room (text); 1 other name; 0.83 % missing in x"
            in told
        )
        assert "column 'chunk' looks like BIO labels, but is taken for a feature" in told


@pytest.mark.parametrize("steady", [True, False])
def test_a_time_that_is_a_feature_is_warned_of(shell, steady):
    times = [0.02 * (t % 60) for t in range(120)]  # of two sequences
    if not steady:
        times[70] = times[69]
    rows = [f"{'ab'[t // 60]},{times[t]:.2f},{x},{s}" for t, (x, s) in enumerate(zip(NUMBERS, STATES, strict=True))]
    Path("days.csv").write_text("\n".join(["sequence,t,x,state", *rows]) + "\n")
    told = shell("fit", "days.csv", "-m", "m", "--levels", "state", *QUICK)[2]
    assert ("column 't' rises at every step, but is taken for a feature: --time t if it is the time" in told) == steady
    assert "column 'x' rises" not in told
    assert "rises" not in shell("fit", "days.csv", "-m", "m", "--levels", "state", "--time", "t", *QUICK)[2]


def test_text_that_tells_the_label_is_warned_of(shell):
    codes = {"A": "G1", "B": "G2", "C": "G3"}
    Path("days.csv").write_text(csv_of({"x": NUMBERS, "code": [codes[s] for s in STATES], "state": STATES}))
    told = shell("fit", "days.csv", "-m", "m", "--levels", "state", *QUICK)[2]
    assert "column 'code' determines the label of level 'state' at every step, but is taken for a feature" in told
    assert "column 'x'" not in told


def test_labels_that_look_misspelt_are_reported(shell):
    Path("train.txt").write_text(
        "Ada B-forename\nLovelace B-surname\n\n" * 6 + "Alan B-forename\nTuring B-surename\n\n"
    )
    told = shell("fit", "train.txt", "-m", "m", "--levels", "part", *QUICK)[2]
    assert "level 'part' has the state 'surename' at one step only; is it 'surname'?" in told


# ------------------------------------------------------------------------------
# Shards


def test_shards_are_described_and_doubted_as_files_are(shell):
    values = [x.replace(".", ",") for x in NUMBERS]
    values[7] = ""
    Path("days.csv").write_text(csv_of({"x": values, "copy": STATES, "state": STATES}, ";"))
    options = ["days.csv", "--levels", "state", "--separator", ";"]
    for command in (["fit", "-m", "m", *QUICK], ["fit", "-m", "m", "--shards", "c", *QUICK], ["pack", "--shards", "d"]):
        code, _, told = shell(*command, *options)
        assert code == 0, told
        assert "3 sequences, 120 steps, state (3)\n" in told
        assert "columns: x (numbers with decimal commas, standardised); copy (text); 0.83 % missing in x\n" in told
        assert "hscrf: column 'copy' has the labels of level 'state', but is taken for a feature" in told


def test_doubtful_lines_of_shards_are_reported_once(shell):
    Path("train.tsv").write_text("# a title\nthe\tD\n#\tN\n\n" * 4)
    told = shell("fit", "train.tsv", "-m", "m", "--levels", "tag=2", "--comment", "#", "--shards", "c", *QUICK)[2]
    assert told.count("line 3: the line begins with '#'") == 1
    assert "1 file; packing" in told
    Path("train.tsv").write_text("the\tD\ncat\tN\n")
    told = shell("fit", "train.tsv", "-m", "m", "--levels", "tag=2", *QUICK)[2]
    assert "1 sequence, 2 steps" in told


def test_unknown_arguments_of_shards_are_named():
    with pytest.raises(TypeError, match="from_files takes no argument 'folder'; expected files, levels, template, "):
        hscrf.scale.Shards.from_files("x.txt", folder="c")
