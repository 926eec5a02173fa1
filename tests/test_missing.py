"""Missing numbers and columns of text in Python, files and shards."""

import datetime
import io
import json
from pathlib import Path

import numpy as np
import pandas
import pytest

import hscrf
from hscrf.cli.main import main
from hscrf.io import read_jsonl, read_table, write_jsonl, write_table
from hscrf.io.recipe import Recipe
from hscrf.observations.encoder import ObservationEncoder
from hscrf.scale import Shards

NAN = float("nan")


def make_sequences(n, seed=0, length=40):
    """Three columns of numbers, of large and different scale, and the labels that they tell."""
    random = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        states = random.integers(0, 3, size=length // 5).repeat(5)
        X.append(
            (random.normal(size=(length, 3)) + 2 * np.stack([states, -states, states % 2], axis=1)) * [1e3, 1, 1e-3]
        )
        Y.append([f"s{k}" for k in states])
    return X, Y


def with_holes(X, share, seed=1):
    random = np.random.default_rng(seed)
    return [np.where(random.uniform(size=x.shape) < share, np.nan, x) for x in X]


# ------------------------------------------------------------------------------
# The encoder


def test_a_missing_number_is_zero_next_to_its_indicator():
    X = [np.array([[1.0, 5.0], [NAN, 7.0]]), np.array([[3.0, 6.0]])]
    encoder = ObservationEncoder()
    packed = encoder.fit_pack(X)
    assert encoder.columns == ["x0", "x1", "x0 is missing"]
    spread = np.std([5.0, 7.0, 6.0])
    np.testing.assert_allclose(packed.dense, [[-1, -1 / spread, 0], [0, 1 / spread, 1], [1, 0, 0]])
    np.testing.assert_allclose(encoder.pack(X).dense, packed.dense)
    np.testing.assert_allclose(ObservationEncoder.restore(*encoder.state()).pack(X).dense, packed.dense)


def test_a_number_that_was_never_missing_in_training_contributes_nothing_and_is_warned_of():
    encoder = ObservationEncoder()
    encoder.fit_pack([np.array([[1.0, 5.0], [NAN, 7.0]])])
    with pytest.warns(UserWarning, match="numbers are missing in column 'x1', but none were missing in training"):
        packed = encoder.pack([np.array([[NAN, NAN]])])
    assert packed.dense.tolist() == [[0, 0, 1]]


def test_a_column_that_is_missing_throughout():
    packed = ObservationEncoder().fit_pack([np.array([[NAN, 1.0], [NAN, 2.0]])])
    assert packed.dense.tolist() == [[0, -1, 1], [0, 1, 1]]


def test_parts_with_holes_equal_one_pass():
    X = with_holes(make_sequences(6)[0], 0.3)
    X[0][:, 1] = np.nan  # nothing is known of a column in the first part
    whole, merged, running = ObservationEncoder(), ObservationEncoder(), ObservationEncoder()
    expected = whole.fit_pack(X).dense
    for begin in (0, 1, 4):
        part = X[begin : {0: 1, 1: 4, 4: 6}[begin]]
        other = ObservationEncoder()
        other.update(part)
        merged.merge(other)
        running.update(part)
    for encoder in (merged, running):
        encoder.settle()
        np.testing.assert_allclose(encoder.pack(X).dense, expected, rtol=1e-10, atol=1e-12)
        assert encoder.holes.tolist() == whole.holes.tolist()


def test_standardisation_ignores_what_is_missing():
    X, _ = make_sequences(3)
    rows = np.concatenate(with_holes(X, 0.4))
    encoder = ObservationEncoder()
    encoder.fit_pack([rows])
    np.testing.assert_allclose(encoder.mean[:3], np.nanmean(rows, axis=0))
    np.testing.assert_allclose(encoder.scale[:3], np.nanstd(rows, axis=0))


@pytest.mark.parametrize(
    "X",
    [
        [np.array([[1.0], [NAN]])],
        [[[1.0], [None]]],
        [pandas.DataFrame({"a": [1.0, None]})],
        [[{"a": 1.0}, {"a": None}]],
        [[{"a": 1.0}, {"a": NAN}]],
    ],
    ids=["array", "lists", "frame", "None in a dict", "NaN in a dict"],
)
def test_missing_numbers_can_be_refused(X):
    with pytest.raises(ValueError, match="missing='refuse'"):
        ObservationEncoder(missing="refuse").fit_pack(X)
    accepted = ObservationEncoder(missing="refuse")
    accepted.fit_pack([x[:1] for x in X])
    with pytest.raises(ValueError, match="missing='refuse'"):
        accepted.pack(X)
    with pytest.raises(ValueError, match="missing is 'no', expected 'indicator' or 'refuse'"):
        ObservationEncoder(missing="no")


def test_dicts_name_what_is_missing():
    encoder = ObservationEncoder()
    packed = encoder.fit_pack([[{"a": 2.0, "room": "hall"}, {"a": None, "room": "bath"}, {"a": NAN}]])
    assert list(encoder.names) == ["a", "room=hall", "a is missing", "room=bath"]
    assert packed.sparse.indices.tolist() == [0, 1, 2, 3, 2]


# ------------------------------------------------------------------------------
# Columns one by one


def frame_of(x, seed=0):
    random = np.random.default_rng(seed)
    rooms = random.choice(np.array(["hall", "bath", None], dtype=object), size=len(x))
    return pandas.DataFrame(
        {
            "a": x[:, 0],
            "room": rooms,
            "b": x[:, 1],
            "kind": pandas.Categorical(random.choice([1, 2], size=len(x))),
            "on": random.uniform(size=len(x)) < 0.5,
            "when": pandas.date_range("2026-01-01", periods=len(x), freq="min"),
            "zone": pandas.date_range("2026-01-01", periods=len(x), freq="min", tz="Europe/Berlin"),
            "count": pandas.array([1, None] * (len(x) // 2), dtype="Int64"),
            "day": [datetime.date(2026, 1, 1 + t % 2) for t in range(len(x))],
            "gap": pandas.to_timedelta(np.arange(len(x)), unit="s"),
        }
    )


def test_text_next_to_numbers_leaves_them_standardised():
    X, Y = make_sequences(8)
    frames = [frame_of(x) for x in X]
    encoder = ObservationEncoder()
    packed = encoder.fit_pack(frames)
    assert encoder.columns == ["a", "b", "on", "when", "zone", "count", "day", "gap", "count is missing"]
    assert set(encoder.names) == {"room=hall", "room=bath", "room is missing", "kind=1", "kind=2"}
    np.testing.assert_allclose(packed.dense[:, :4].mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(packed.dense[:, :4].std(axis=0), 1)
    model = hscrf.ChainCRF().fit(frames, Y)
    alone = hscrf.ChainCRF().fit([frame[["a", "b"]] for frame in frames], Y)
    new, truth = make_sequences(8, seed=5)
    assert (
        model.score([frame_of(x) for x in new], truth)
        > alone.score([frame_of(x)[["a", "b"]] for x in new], truth) - 0.03
        > 0.85
    )


def test_mixed_models_are_saved_and_loaded(tmp_path):
    X, Y = make_sequences(4)
    frames = [frame_of(x) for x in X]
    model = hscrf.HSCRF().fit(frames, Y)
    model.save(tmp_path / "m.hscrf")
    loaded = hscrf.load(tmp_path / "m.hscrf")
    assert [y.column() for y in loaded.predict(frames)] == [y.column() for y in model.predict(frames)]
    names = set(loaded.weights_["feature"])
    assert {"room=hall", "a", "count is missing", "constant"} <= names


def test_the_gradient_of_a_mixed_block():
    X, Y = make_sequences(2, length=10)
    model = hscrf.ChainCRF(solver=hscrf.LBFGS(max_iter=2)).fit([frame_of(x) for x in X], Y)
    block, observations = model.blocks_[0], model.encoder_.pack([frame_of(x) for x in X])
    random = np.random.default_rng(0)
    weights, counts = random.normal(size=block.size), random.normal(size=(observations.steps, 3))
    scores, gradient = np.zeros((observations.steps, 3)), np.zeros(block.size)
    block.add(weights, observations, scores)
    block.pull(counts, observations, gradient)
    np.testing.assert_allclose((scores * counts).sum(), gradient @ weights)


def test_shards_of_tables_give_the_same_bits():
    X, Y = make_sequences(6)
    frames = [frame_of(x).mask(np.random.default_rng(3).uniform(size=(40, 10)) < 0.1) for x in X]
    for frame in frames:
        frame["on"] = frame["on"].astype("boolean")
    lists = hscrf.ChainCRF().fit(frames, Y)
    shards = Shards.from_parts([lambda: (frames[:2], Y[:2]), lambda: (frames[2:], Y[2:])])
    np.testing.assert_array_equal(hscrf.ChainCRF().fit(shards).coef_, lists.coef_)


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (
            {"a": ["n/a"], "b": ["u"]},
            r"X\[0\] is 'n/a' at step 0 in column 'a', expected a number, as in the data before",
        ),
        ({"a": [1.0], "b": ["u"], "c": [1]}, "X has the column 'c', but the model was trained on"),
        ({"a": [1.0], "c": ["u"]}, r"X has the columns \['a', 'c'\], but the model was trained on \['a', 'b'\]"),
    ],
)
def test_other_columns_than_in_training(later, message):
    encoder = ObservationEncoder()
    encoder.fit_pack([pandas.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]})])
    with pytest.raises(ValueError, match=message):
        encoder.pack([pandas.DataFrame(later)])


def test_text_among_numbers_is_an_error_that_names_the_column():
    frame = pandas.DataFrame({"room": ["hall"] * 5, "a": [1.0, 2.0, "n/a", 3.0, 4.0]})
    with pytest.raises(
        ValueError, match=r"X\[0\] is 'n/a' at step 2 in column 'a', expected a number, as at most steps"
    ):
        ObservationEncoder().fit_pack([frame])
    with pytest.raises(ValueError, match=r"X\[0\] has a list in column 'a' at step 0, expected a number, text, a date"):
        ObservationEncoder().fit_pack([pandas.DataFrame({"a": [[1]], "b": ["x"]})])
    with pytest.raises(ValueError, match=r"X\[0\] has 3 columns at step 1 but 2 at step 0"):
        ObservationEncoder().fit_pack([[[1.0, "hall"], [1.0, "hall", "b"]]])


def test_numbers_among_text_and_decimal_commas_are_warned_of():
    with pytest.warns(UserWarning, match="column 'a' holds text and 1 numbers, which are treated as text too"):
        ObservationEncoder().fit_pack([pandas.DataFrame({"a": ["x", "y", 3]})])
    with pytest.warns(
        UserWarning, match="column 'a' holds text such as '0,5', which looks like a number with a decimal"
    ):
        ObservationEncoder().fit_pack([pandas.DataFrame({"a": ["0,5", "1,25", "3"]})])


def test_rows_of_numbers_and_text_are_a_table():
    encoder = ObservationEncoder()
    encoder.fit_pack([[["hall", 1.0], ["bath", None]]])
    assert (encoder.kind, list(encoder.names), encoder.columns) == (
        "table",
        ["x0=hall", "x0=bath"],
        ["x1", "x1 is missing"],
    )


def test_hidden_markov_models_expect_numbers_everywhere():
    with pytest.raises(ValueError, match=r"X\[0\] is missing at step 1 in column 'x0'"):
        hscrf.HHMM(hscrf.Topology({"s": ["a", "b"]})).fit([np.array([[1.0], [NAN], [2.0]])])


# ------------------------------------------------------------------------------
# Files


def write_csv(path, X, Y, share, text=True, decimal=".", separator=","):
    """A table with empty cells."""
    random = np.random.default_rng(7)
    lines = [separator.join(["sequence", "a", "b", "c", *(["room"] if text else []), "state"])]
    for n, (x, y) in enumerate(zip(X, Y, strict=True)):
        for row, label in zip(x, y, strict=True):
            cells = ["" if random.uniform() < share else f"{cell:.6g}".replace(".", decimal) for cell in row]
            room = [str(random.choice(["hall", "bath"]))] if text else []
            lines.append(separator.join([f"q{n}", *cells, *room, label]))
    Path(path).write_text("\n".join(lines) + "\n")


def test_an_empty_cell_is_missing_however_many_there_are():
    for share in (1, 5, 9):
        rows = "\n".join(["a,,N"] * share + ["a,2,V"] * (10 - share))
        documents = list(read_table(io.StringIO(f"sequence,x,tag\n{rows}\n"), ["tag"]))
        values = [token[0] for token in documents[0].tokens]
        assert sum(value != value for value in values) == share
        assert sum(value == 2.0 for value in values) == 10 - share


@pytest.mark.parametrize("cell", ["NA", "NaN", "null", "None", "n/a", " "])
def test_what_else_is_missing_in_a_column_of_numbers(cell):
    documents = list(read_table(io.StringIO(f"sequence,x,tag\na,{cell},N\na,2,V\n"), ["tag"]))
    assert [str(token) for token in documents[0].tokens] == ["[nan]", "[2.0]"]


def test_holes_are_written_as_they_were_read(tmp_path):
    text = "sequence,x,room,tag\na,0.5,hall,N\na,,,V\n"
    documents = list(read_table(io.StringIO(text), ["tag"]))
    back = io.StringIO()
    write_table(back, documents)
    assert back.getvalue() == text
    lines = io.StringIO()
    write_jsonl(lines, documents)
    assert json.loads(lines.getvalue())["tokens"] == [{"x": 0.5, "room": "hall"}, {"x": None, "room": ""}]
    write_table(tmp_path / "t.parquet", documents)
    again = list(read_table(tmp_path / "t.parquet", ["tag"]))
    assert str(again[0].tokens) == str(documents[0].tokens)


def test_json_lines_have_null_and_text_next_to_numbers():
    lines = '{"tokens": [[1.5, "hall"], [null, "bath"], [NaN, null]], "labels": {"tag": ["N", "V", "N"]}}\n'
    documents = list(read_jsonl(io.StringIO(lines)))
    recipe = Recipe("jsonl", ("tag",)).resolved(documents, None)
    table = recipe.observe(documents[0])
    encoder = ObservationEncoder()
    encoder.fit_pack([table])
    assert (encoder.columns, list(encoder.names)) == (["0", "0 is missing"], ["1=hall", "1=bath", "1 is missing"])


@pytest.mark.parametrize("text", [False, True], ids=["numbers", "numbers and text"])
def test_the_shell_learns_from_tables_with_holes(tmp_path, monkeypatch, capsys, text):
    monkeypatch.chdir(tmp_path)
    (X, Y), (new, truth) = make_sequences(12), make_sequences(6, seed=3)
    write_csv("train.csv", X, Y, 0.1, text)
    write_csv("new.csv", new, truth, 0.1, text)
    assert main(["fit", "train.csv", "-m", "m", "--levels", "state"]) == 0
    told = capsys.readouterr().err
    room = "; room (text)" if text else ""
    assert "12 sequences, 480 steps, state (3)\n" in told
    assert f"columns: a, b, c (numbers, standardised){room}; " in told
    assert "% missing in " in told
    model = hscrf.load("m")
    assert model.coef_.size < 60
    assert main(["predict", "new.csv", "-m", "m", "-t", "-o", "out.csv"]) == 0
    out, given = pandas.read_csv("out.csv"), pandas.read_csv("new.csv")
    assert (out["state"] == out["state_predicted"]).mean() > 0.9
    pandas.testing.assert_frame_equal(out[given.columns], given)
    assert main(["predict", "new.csv", "-m", "m", "-t", "--to", "jsonl", "-o", "out.jsonl"]) == 0
    assert main(["predict", "out.jsonl", "-m", "m", "-t", "-o", "again.jsonl"]) == 0
    first, second = (
        [json.loads(line)["prediction"] for line in Path(name).read_text().splitlines()]
        for name in ("out.jsonl", "again.jsonl")
    )
    assert first == second
    Path("folder").mkdir()
    assert main(["fit", "train.csv", "-m", "s", "--levels", "state", "--shards", "folder"]) == 0
    np.testing.assert_array_equal(hscrf.load("s").coef_, model.coef_)
    capsys.readouterr()
    assert main(["fit", "train.csv", "-m", "r", "--levels", "state", "--missing", "refuse"]) == 2
    assert "is missing" in capsys.readouterr().err


def test_accuracy_falls_gently():
    """Accuracy falls slowly: without half of the cells it loses far less than half."""
    (X, Y), (new, truth) = make_sequences(20), make_sequences(10, seed=2)
    found = {
        share: hscrf.ChainCRF().fit(with_holes(X, share), Y).score(with_holes(new, share, seed=4), truth)
        for share in (0, 0.01, 0.1, 0.5)
    }
    if found[0.5] > found[0.1]:
        raise AssertionError(found)
    assert found[0] - found[0.01] < 0.02
    assert found[0] - found[0.1] < 0.06
    assert found[0.5] > 0.6
