"""Reading reports what it drops or changes: comments, separators, labels among features, options."""

import io
from pathlib import Path

import numpy as np
import pandas
import pytest

import hscrf
from hscrf.io import read_columns, read_table
from hscrf.scale import Shards

QUICK = ["--max-iter", "2", "--progress", "none"]


# ------------------------------------------------------------------------------
# 1. Comments


HASHES = "# first title\nthe\tD\nname\tN\n#\tN\n\n# another\n#1\tN\nfits\tV\n\n"


def test_tokens_that_begin_with_the_sign_are_no_comments():
    with pytest.warns(UserWarning, match=r"line 4: the line begins with '#', but has 2 columns .* \(2 such lines\)"):
        documents = list(read_columns(io.StringIO(HASHES), ["tag"], comment="#"))
    assert [[token[0] for token in document.tokens] for document in documents] == [["the", "name", "#"], ["#1", "fits"]]
    assert [document.comments for document in documents] == [("# first title",), ("# another",)]


def test_a_regular_line_that_is_dropped_is_warned_of():
    with pytest.warns(UserWarning, match="line 2: the line is a comment, though it has 2 columns as other lines"):
        documents = list(read_columns(io.StringIO("the\tD\n# title\tN\n"), ["tag"], comment="#"))
    assert len(documents[0]) == 1
    with pytest.warns(UserWarning, match="line 2: the line is a comment"):
        documents = list(read_columns(io.StringIO("the D\n# N\n"), ["tag"], comment="# "))
    assert len(documents[0]) == 1


def test_no_step_is_lost_between_reading_and_scoring(shell):
    Path("train.tsv").write_text(HASHES * 5)
    code, _, told = shell("fit", "train.tsv", "-m", "m", "--levels", "tag=2", *QUICK)
    assert code == 2
    assert "--comment '#' would read the file" in told
    assert shell("fit", "train.tsv", "-m", "m", "--levels", "tag=2", "--comment", "#", *QUICK)[0] == 0
    code, out, told = shell("predict", "train.tsv", "-m", "m", "-t")
    assert code == 0
    assert len([line for line in out.splitlines() if "\t" in line]) == 25
    Path("out.tsv").write_text(out)
    assert "25 steps" in shell("score", "out.tsv", "-m", "m")[1] + told


def test_a_comment_that_is_read_as_a_label_is_reported(shell):
    Path("train.txt").write_text("# source\ta.xml\nAnna\tN\tB-name\nsees\tV\tO\n\n" * 3)
    code, _, told = shell("fit", "train.txt", "-m", "m", "--levels", "name", *QUICK)
    assert (code, told.count("train.txt, line 1: level 'name' has the label 'a.xml'")) == (2, 1)
    assert "; --comment '#' would read the file" in told
    assert shell("fit", "train.txt", "-m", "m", "--levels", "name", "--comment", "#", *QUICK)[0] == 0


def test_options_that_leave_a_wrong_label_are_not_named(shell):
    Path("train.txt").write_text("Anna\tB-name\nsees\tverb\n\n" * 3)
    code, _, told = shell("fit", "train.txt", "-m", "m", "--levels", "name", *QUICK)
    assert (code, "has the label 'verb', expected B-x, I-x, O or ?" in told, "would read" in told) == (2, True, False)


# ------------------------------------------------------------------------------
# 5. Decimal commas and separators


def table(separator=",", decimal=".", label="state", rows=60):
    random = np.random.default_rng(0)
    lines = [separator.join(["sequence", "a", "b", label])]
    for t in range(rows):
        cells = [f"{value:.4f}".replace(".", decimal) for value in random.normal(size=2)]
        lines.append(separator.join([f"q{t // 20}", *cells, "xyz"[t // 5 % 3]]))
    return "\n".join(lines) + "\n"


def test_decimal_commas_are_numbers_and_are_reported(shell):
    Path("excel.csv").write_text(table(";", ","))
    code, _, told = shell("fit", "excel.csv", "-m", "m", "--levels", "state", *QUICK)
    assert code == 2
    assert "--separator ';' would read the file" in told
    code, _, told = shell("fit", "excel.csv", "-m", "m", "--levels", "state", "--separator", ";", *QUICK)
    assert code == 0
    assert "columns: a, b (numbers with decimal commas, standardised)\n" in told
    Path("plain.csv").write_text(table())
    assert shell("fit", "plain.csv", "-m", "p", "--levels", "state", *QUICK)[0] == 0
    np.testing.assert_array_equal(hscrf.load("m").coef_, hscrf.load("p").coef_)
    assert shell("predict", "excel.csv", "-m", "m", "-t", "-o", "out.csv")[0] == 0


def test_a_sign_can_be_given():
    [one] = read_table(io.StringIO('x,tag\n"1,5",N\n2.5,V\n'), ["tag"], sequence=None, decimal=",", numeric=None)
    assert one.tokens == [{"x": "1,5"}, {"x": "2.5"}]  # a point is no sign then
    [one] = read_table(io.StringIO('x,tag\n"1,5",N\n2,V\n'), ["tag"], sequence=None)
    assert one.tokens == [[1.5], [2.0]]
    assert one.decimal == ","


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (table(" ").split("\n", 1)[1], "column '2' holds numbers such as '0.1257', taken for words: a table"),
        (table(" ", ",").split("\n", 1)[1], "column '2' holds numbers such as '0,1257', with a decimal comma"),
        (table(", ").split("\n", 1)[1], "column '2' has cells such as '0.1257,': is the separator --separator comma?"),
    ],
    ids=["numbers", "decimal commas", "separator"],
)
def test_numbers_that_are_taken_for_words_are_reported(shell, text, told):
    Path("train.txt").write_text(text)
    code, _, err = shell("fit", "train.txt", "-m", "m", "--levels", "state=4", *QUICK)
    assert code == 0
    assert told in err


# ------------------------------------------------------------------------------
# 6. Labels among the features


WORDS = "the D B-NP\ncat N I-NP\nruns V B-VP\n\n"


def test_labels_that_are_features_are_warned_of(shell):
    Path("train.txt").write_text(WORDS * 4)
    code, _, told = shell("fit", "train.txt", "-m", "m", "--columns", "word,pos,chunk", "--levels", "pos", *QUICK)
    assert code == 0
    assert "column 'chunk' looks like BIO labels, but is taken for a feature: name it in --levels" in told
    Path("both.csv").write_text("sequence,w,copy,code,tag\n" + "a,the,D,0,D\na,cat,N,1,N\na,b-52,V,2,V\n" * 5)
    code, _, told = shell("fit", "both.csv", "-m", "m", "--levels", "tag", *QUICK)
    assert "column 'copy' has the labels of level 'tag', but is taken for a feature" in told
    assert "column 'code' determines the label of level 'tag' at every step, but is taken for a feature" in told
    assert "'w'" not in told


def test_words_are_no_labels(shell):
    Path("train.txt").write_text(WORDS.replace("cat", "B-52") * 4)
    assert "looks like" not in shell("fit", "train.txt", "-m", "m", "--levels", "chunk=3,pos=2", *QUICK)[2]


EXPORT = "sequence,word,tag,tag_predicted,tag_by\na,the,D,D,ana\na,cat,N,V,model\nb,the,?,D,model\nb,dog,?,N,model\n"


def test_what_the_studio_exports_never_becomes_a_feature(shell):
    Path("labels.csv").write_text(EXPORT)
    rows = ["\t".join(line.split(",")[1:]) for line in EXPORT.splitlines()]
    Path("labels.tsv").write_text("\n".join(["# columns:\t" + rows[0], *rows[1:3], "", *rows[3:], "", ""]))
    for name in ("labels.csv", "labels.tsv"):
        code, _, told = shell("fit", name, "-m", "m", "--levels", "tag", *QUICK)
        assert code == 0, told
        assert "columns: word (text, described by a template)\n" in told
        code, out, told = shell("predict", name, "-m", "m")
        assert code == 0, told
        assert out.count("ana") == 1  # what was there stays
        assert len(out.split("tag_predicted")) == 2


# ------------------------------------------------------------------------------
# 7. Said at once


def test_states_that_are_written_alike_are_refused():
    with pytest.raises(ValueError, match="the labels '1' and 1 are written alike: expected one type"):
        hscrf.HSCRF().fit([[["a"], ["b"]]] * 2, [[1, 2], ["1", 2]])


def test_labels_of_a_frame_with_holes_are_whole_numbers():
    frame = pandas.DataFrame({"sequence": ["a"] * 3, "x": [1.0, 2.0, 3.0], "tag": [1, None, 2]})
    [document] = read_table(frame, ["tag"])
    assert document.labels == {"tag": ["1", "?", "2"]}


def test_sequences_that_weigh_nothing_are_warned_of():
    with pytest.warns(UserWarning, match="1 sequence has a sample_weight of 0: nothing is added to the loss, but"):
        hscrf.ChainCRF().fit([[["a"], ["b"]]] * 2, [["x", "y"]] * 2, sample_weight=[1, 0])


@pytest.mark.parametrize(("option", "value"), [("--c2", "-1"), ("--c1", "-1"), ("--c2", "nan"), ("--c1", "inf")])
def test_a_negative_penalty_is_refused_before_anything_is_read(shell, option, value):
    code, _, told = shell("fit", "nothing.txt", "-m", "m", option, value)
    assert code == 2
    assert f"argument {option}: {value!r} is not a number of at least 0" in told


def test_a_negative_penalty_is_refused_before_features_are_made():
    with pytest.raises(ValueError, match="c2 is -1"):
        hscrf.HSCRF(c2=-1).fit([["no", "features"]], [["x"]])


def test_a_picture_of_another_kind_is_refused_at_once(shell):
    pytest.importorskip("matplotlib")
    Path("m").write_text("not read")
    code, _, told = shell("plot", "m", "-o", "a.xyz")
    assert (code, told) == (2, "hscrf: -o a.xyz: the name of a picture ends in .png, .svg or .pdf\n")


# ------------------------------------------------------------------------------
# 10. Unknown labels


def test_labels_that_a_model_does_not_know_are_unknown_unless_strict(shell):
    Path("train.txt").write_text(WORDS * 4)
    Path("new.txt").write_text("the D B-NP\ncat XX I-QP\nruns V B-VP\n\nthe YY ?\n\n")
    assert shell("fit", "train.txt", "-m", "m", "--levels", "chunk=3,pos=2", *QUICK)[0] == 0
    code, out, told = shell("predict", "new.txt", "-m", "m")
    assert code == 0
    assert told.count("unknown to the model") == 1
    assert "new.txt, line 2: level 'chunk' has the label 'I-QP'" in told
    assert "(3 such labels)" in told
    rows = [line.split() for line in out.splitlines() if line]
    assert [row[:3] for row in rows][1] == ["cat", "XX", "I-QP"]  # the input stays as it was
    assert [row[3] for row in rows][0::2] == ["D", "V"]
    code, _, told = shell("predict", "new.txt", "-m", "m", "--strict")
    assert code == 2
    assert "I-QP" in told or "QP" in told


# ------------------------------------------------------------------------------
# 12. Shards


def test_the_shell_and_python_share_what_they_packed(shell):
    Path("train.txt").write_text(WORDS * 4)
    layout = ["--levels", "chunk=3,pos=2", "--shards", "cache"]
    assert shell("pack", "train.txt", *layout)[0] == 0
    packed = sorted(Path("cache").iterdir())
    shards = Shards.from_files("train.txt", {"chunk": 2, "pos": 1}, cache="cache")
    model = hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=2)).fit(shards)
    assert sorted(Path("cache").iterdir()) == packed
    assert shell("fit", "train.txt", "-m", "m", *layout, *QUICK)[0] == 0
    assert sorted(Path("cache").iterdir()) == packed
    np.testing.assert_array_equal(hscrf.load("m").coef_, model.coef_)


def test_packing_again_says_which_settings_differ(shell, capsys):
    Path("train.csv").write_text(table())
    layout = ["--levels", "state", "--shards", "cache"]
    assert shell("pack", "train.csv", *layout)[0] == 0
    again = shell("pack", "train.csv", *layout, "--min-count", "2")[2]
    assert "cache has these sources, but packed with another min_count: packing them again" in again
    assert "packing them again" not in shell("pack", "train.csv", *layout, "--min-count", "2")[2]


def test_tables_are_shared_too(shell):
    Path("train.csv").write_text(table())
    assert shell("pack", "train.csv", "--levels", "state", "--shards", "cache")[0] == 0
    packed = sorted(Path("cache").iterdir())
    hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=2)).fit(Shards.from_files("train.csv", ["state"], cache="cache"))
    assert sorted(Path("cache").iterdir()) == packed


# ------------------------------------------------------------------------------
# What was read


def test_fit_says_what_it_read(shell):
    Path("train.txt").write_text(WORDS * 4)
    told = shell("fit", "train.txt", "-m", "m", "--columns", "word,pos,chunk", "--levels", "chunk", *QUICK)[2]
    assert "4 sequences, 12 steps, chunk (2)\ncolumns: word, pos (text, described by a template)\n" in told
    told = shell("fit", "train.txt", "-m", "m", "--levels", "chunk=3,pos=2", "--shards", "c", *QUICK)[2]
    assert "4 sequences, 12 steps, chunk (2) > pos (3)\ncolumns: " in told
    assert "columns: 1 (text, described by a template)\n" in told


def test_columns_of_further_files_hold_what_those_of_the_first_hold(shell):
    Path("a.csv").write_text("sequence,x,room,tag\na,1,007,N\na,2,hall,V\n")
    Path("b.csv").write_text("sequence,x,room,tag\nb,1,007,N\nb,2,008,V\n")
    assert shell("fit", "a.csv", "b.csv", "-m", "m", "--levels", "tag", *QUICK)[0] == 0
    assert set(hscrf.load("m").encoder_.names) == {"room=007", "room=hall", "room=008"}
    Path("b.csv").write_text("sequence,x,room,tag\nb,one,hall,N\n")
    code, _, told = shell("fit", "a.csv", "b.csv", "-m", "m", "--levels", "tag", *QUICK)
    assert (code, told) == (
        2,
        "hscrf: b.csv, line 2: column 'x' is 'one', expected a finite number, or nothing if it is missing\n",
    )
