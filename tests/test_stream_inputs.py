"""Inputs of a stream: rows with missing numbers and text, tables, and lines with comments and sequences."""

from pathlib import Path

import numpy as np
import pandas
import pytest

import hscrf

QUICK = ["--max-iter", "5", "--progress", "none"]


def tables(n=4, steps=12):
    """Tables with a hole in each column of numbers, and text; states that follow from both."""
    random = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(n):
        states = random.integers(2, size=steps)
        table = pandas.DataFrame({"a": states + random.normal(size=steps) / 3, "b": random.normal(size=steps)})
        table["room"] = [("hall", "bath")[s] if random.random() < 0.8 else "yard" for s in states]
        table.loc[random.integers(steps), "a"] = np.nan
        X.append(table)
        Y.append([f"s{s}" for s in states])
    return X, Y


@pytest.fixture(scope="module", params=[["a", "b"], ["a", "b", "room"], ["room"]])
def fitted(request):
    X, Y = tables()
    X = [x[request.param] for x in X]
    return hscrf.ChainCRF(solver=hscrf.LBFGS(max_iter=5)).fit(X, Y), X


def answers(steps):
    return [step.labels["label"] for step in steps]


@pytest.mark.filterwarnings("ignore:numbers are missing")
def test_rows_of_any_kind_are_pushed(fitted):
    model, X = fitted
    expected = model.predict(X[:1])[0].column()
    kinds = {
        "dict": [dict(row) for row in X[0].to_dict("records")],
        "series": [row for _, row in X[0].iterrows()],
        "frame": [X[0].iloc[t : t + 1] for t in range(len(X[0]))],
        "list": X[0].to_numpy().tolist(),
        "array": list(X[0].to_numpy()),
    }
    for rows in kinds.values():
        assert answers(model.stream(lag=50).run(rows)) == expected
    assert answers(model.stream(lag=50).run(X[0])) == expected
    assert answers(model.stream(lag=2).run(X[0])) == answers(model.stream(lag=2).run(kinds["dict"]))


def test_sparse_rows_are_run():
    sparse = pytest.importorskip("scipy.sparse")
    random = np.random.default_rng(0)
    X = [sparse.csr_matrix(random.integers(2, size=(6, 3)).astype(float)) for _ in range(4)]
    model = hscrf.ChainCRF().fit(X, [["x", "y"] * 3] * 4)
    assert answers(model.stream(lag=50).run(X[0])) == model.predict(X[:1])[0].column()


def test_rows_that_do_not_fit_are_refused():
    X, Y = tables()
    stream = hscrf.ChainCRF(solver=hscrf.LBFGS(max_iter=2)).fit(X, Y).stream()
    with pytest.raises(ValueError, match="no column 'room', expected a, b, room"):
        stream.push({"a": 1.0, "b": 2.0})
    with pytest.raises(ValueError, match="the column 'c', expected only a, b, room"):
        stream.push({"a": 1.0, "b": 2.0, "room": "hall", "c": 1})
    with pytest.raises(ValueError, match="has 2 cells, expected 3: a, b, room"):
        stream.push([1.0, 2.0])
    with pytest.raises(ValueError, match="a table of 12 rows, expected one: extend"):
        stream.push(X[0])
    with pytest.raises(ValueError, match="is 'hall', expected a row of a, b, room"):
        stream.push("hall")
    numbers = [x[["a", "b"]].to_numpy() for x in X]
    stream = hscrf.ChainCRF(solver=hscrf.LBFGS(max_iter=2)).fit(numbers, Y).stream(lag=0)
    with pytest.raises(ValueError, match="a table of 12 rows, expected one: extend"):
        stream.push(numbers[0])


# ------------------------------------------------------------------------------
# The shell


HASHES = "# a first title\nthe\tD\n# in between it\n#\tN\n\n# another one\n#1\tN\nfits\tV\n\n"


def test_comments_and_tokens_are_distinguished_as_by_predict(shell):
    Path("train.txt").write_text(HASHES * 5)
    assert shell("fit", "train.txt", "-m", "m", "--levels", "tag", "--comment", "#", *QUICK)[0] == 0
    Path("new.txt").write_text(HASHES.replace("\tN", "\t?").replace("\tD", "\t?").replace("\tV", "\t?"))
    _, whole, _ = shell("predict", "new.txt", "-m", "m")
    for lag in (0, 1, 50):
        code, out, told = shell("predict", "--stream", "--lag", lag, "-m", "m", text=Path("new.txt").read_text())
        assert code == 0
        if lag == 50:
            assert out == whole
        assert [line for line in out.splitlines() if line.startswith("# ")] == [
            "# a first title", "# in between it", "# another one"
        ]  # fmt: skip
        assert len([line for line in out.splitlines() if "\t" in line]) == 4
        assert "<stdin>, line 4: the line begins with '#'" in told


def test_titles_with_as_many_columns_as_tokens_have_a_hint(shell):
    Path("train.txt").write_text("".join(f"# s{n}\nthe D\ncat N\n\n" for n in range(4)))
    told = shell("fit", "train.txt", "-m", "m", "--levels", "tag", "--comment", "#", *QUICK)[2]
    assert "so it is not a comment: --comment '# ' would make it one (4 such lines)" in told
    told = shell("fit", "train.txt", "-m", "m", "--levels", "tag", *QUICK)[2]
    assert "train.txt, line 1: every sequence begins with a token '#'; if that is a comment: --comment '# '" in told
    assert "8 steps" in shell("fit", "train.txt", "-m", "m", "--levels", "tag", "--comment", "# ", *QUICK)[2]


def mixed(rows=40):
    random = np.random.default_rng(1)
    lines = ["sequence,time,a,b,room,state"]
    for t in range(rows):
        a, b = (f"{value:.3f}" for value in random.normal(size=2) + (t // 5 % 2))
        room = ("hall", '"a, b"')[t // 5 % 2]
        lines.append(f"q{t // 10},{t % 10},{'' if t % 7 == 3 else a},{b},{room},{'xy'[t // 5 % 2]}")
    return "\n".join(lines) + "\n"


def test_a_table_with_text_and_holes_is_streamed(shell):
    Path("days.csv").write_text(mixed())
    assert shell("fit", "days.csv", "-m", "m", "--levels", "state", *QUICK)[0] == 0
    _, whole, _ = shell("predict", "days.csv", "-m", "m", "-t")
    code, out, told = shell("predict", "--stream", "--lag", "50", "-m", "m", text=mixed())
    assert (code, told) == (0, "")
    assert [line.rsplit(",", 1)[1] for line in out.splitlines()] == [
        line.rsplit(",", 1)[1] for line in whole.splitlines()
    ]  # each sequence by itself
    bare = "\n".join(",".join(line.split(",")[2:-1]) for line in mixed().splitlines()[1:] if '"' not in line)
    code, out, _ = shell("predict", "--stream", "--lag", "1", "-m", "m", text=bare)
    assert code == 0
    assert len(out.splitlines()) == len(bare.splitlines())


def test_lines_of_a_sequence_stand_together(shell):
    Path("days.csv").write_text(mixed())
    assert shell("fit", "days.csv", "-m", "m", "--levels", "state", *QUICK)[0] == 0
    lines = mixed().splitlines()
    code, _, told = shell("predict", "--stream", "-m", "m", text="\n".join([*lines[:15], lines[3]]))
    assert code == 2
    assert "<stdin>, line 16: sequence 'q0' goes on after another one has begun, expected its lines in a row" in told


def test_decimal_commas_are_streamed(shell):
    text = "sequence;a;b;state\n" + "".join(f"q;{t % 4},5;{t % 3},25;{'xy'[t % 4 > 1]}\n" for t in range(24))
    Path("days.csv").write_text(text)
    assert shell("fit", "days.csv", "-m", "m", "--levels", "state", "--separator", ";", *QUICK)[0] == 0
    _, whole, _ = shell("predict", "days.csv", "-m", "m", "-t")
    assert shell("predict", "--stream", "--lag", "50", "-m", "m", text=text)[:2] == (0, whole)
    code, out, _ = shell("predict", "--stream", "--lag", "0", "-m", "m", text="0,5;1,25\n3,5;0,25\n")
    assert (code, len(out.splitlines())) == (0, 2)


@pytest.mark.parametrize("between", ["\t", " "])
def test_a_line_that_names_the_columns(shell, between):
    rows = "".join(between.join(row) + "\n" for row in ["theD", "catN"] for row in [(row[:-1], row[-1])])
    text = "# columns:" + between + between.join(["word", "tag"]) + "\n" + (rows + "\n") * 4
    Path("train.txt").write_text(text)
    code, _, told = shell("fit", "train.txt", "-m", "m", "--levels", "tag", *QUICK)
    assert (code, "8 steps" in told, "columns: word (text" in told) == (0, True, True)
    _, whole, _ = shell("predict", "train.txt", "-m", "m", "-t")
    assert shell("predict", "--stream", "--lag", "50", "-m", "m", text=text)[:2] == (0, whole)
