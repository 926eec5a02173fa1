"""Column files as people have them: predictions that come back, missing levels, empty rows, comments."""

import io
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import pytest

from hscrf.errors import DataFileError
from hscrf.io import read_columns, read_crfsuite, write_columns

LISTS = (
    "Li\tB-person\tB-surname\nWei\tI-person\tB-forename\n\nAna\tB-person\tB-forename\nLopez\tI-person\tB-surname\n\n"
)
WORDS = "Li\nWei\n\nAna\nLopez\n\n"
LEVELS = ["person", "part"]
DOCS = Path(__file__).resolve().parents[1] / "docs"
QUICK = ["--max-iter", "5", "--progress", "none"]


@pytest.fixture
def names(shell):
    """A shell in a folder with a model of author names and its files."""
    Path("truth.txt").write_text(LISTS)
    Path("train.txt").write_text(LISTS * 5)
    Path("words.txt").write_text(WORDS)
    assert shell("fit", "train.txt", "-m", "m", "--levels", "person,part", *QUICK)[0] == 0
    return shell


# ------------------------------------------------------------------------------
# 1. Predictions that come back


@pytest.mark.parametrize(
    "options",
    [["--scores"], ["--marginals"], ["--marginals", "--scores"], ["--k-best", "2"], ["--scores", "--k-best", "2"]],
    ids=" ".join,
)
def test_a_prediction_of_words_is_scored_whatever_was_appended(names, options):
    Path("out.txt").write_text(names("predict", "words.txt", "-m", "m", *options)[1])
    expected = names("predict", "truth.txt", "-m", "m", "-t")[2]
    code, out, told = names("score", "truth.txt", "out.txt", "-m", "m")
    assert (code, told) == (0, "")
    assert out.strip() in expected


def test_confidences_are_passed_over_where_the_prediction_is_wrong(names):
    lines = ["Li\tB-person\tB-forename\t0.900000\t0.700000", "Wei\tI-person\tB-forename\t0.900000\t0.800000"]
    Path("out.txt").write_text("\n".join([*lines, "", ""]))
    Path("truth.txt").write_text("".join(LISTS.partition("\n\n")[:2]))
    code, out, told = names("score", "truth.txt", "out.txt", "-m", "m")
    assert (code, told, "part: accuracy 0.500 of 2 steps" in out) == (0, "", True)


def test_samples_that_stand_where_predictions_stand_are_reported(names):
    Path("out.txt").write_text(
        "Li\tO\tO\tB-person\tB-surname\nWei\tO\tO\tI-person\tO\n\nAna\tO\tO\tO\tO\nL\tO\tO\tO\tO\n"
    )
    code, _, told = names("score", "truth.txt", "out.txt", "-m", "m")
    assert (code, told.count("out.txt, line 1: level 'person' has 'O', but truth.txt has 'B-person'")) == (0, 1)
    assert "the columns after the labels were compared: --predicted names others" in told
    code, _, told = names("score", "truth.txt", "out.txt", "-m", "m", "--predicted", "person=2,part=3")
    assert (code, told) == (0, "")


@pytest.mark.parametrize("extra", [[], ["person_confidence", "part_confidence"]])
def test_confidences_in_a_file_with_named_columns_are_no_features(extra):
    document = next(read_columns(io.StringIO(LISTS), LEVELS))
    document.extra.update({f"{level}_confidence": ["0.9", "0.8"] for level in LEVELS})
    document.extra["best1_log_probability"] = ["-0.1", "-0.1"]
    file = io.StringIO()
    write_columns(file, [document], header=True)
    (back,) = read_columns(io.StringIO(file.getvalue()), LEVELS, extra=extra)
    assert back.tokens == [["Li"], ["Wei"]]
    assert (back.labels, back.extra) == (document.labels, document.extra)


def test_a_prediction_with_named_columns_and_without_labels_has_no_features_but_the_words():
    text = "# columns:\tword\tperson_predicted\tperson_confidence\nLi\tB-person\t0.9\n"
    (document,) = read_columns(io.StringIO(text), ["person"], unlabelled=True)
    assert (document.tokens, document.labels) == ([["Li"]], None)


def test_a_column_named_in_extra_is_no_feature():
    text = "# columns:\tword\tnote\tperson\nLi\tx\tB-person\n"
    (document,) = read_columns(io.StringIO(text), ["person"], extra=["note"])
    assert (document.tokens, document.extra) == ([["Li"]], {"note": ["x"]})
    with pytest.raises(DataFileError, match="there is no column 'remark'"):
        list(read_columns(io.StringIO(text), ["person"], extra=["remark"]))


# ------------------------------------------------------------------------------
# 2. Missing columns


NO_WORD = "line 1: there is no column but the labels person, part, expected a feature column; if a level has no labels"


def test_a_file_without_a_column_for_the_word_is_refused(names):
    Path("persons.txt").write_text("Li\tB-person\nWei\tI-person\n\n")
    with pytest.raises(DataFileError, match=f"{NO_WORD} there, add a column of [?]$"):
        list(read_columns("persons.txt", LEVELS))
    code, _, told = names("fit", "train.txt", "persons.txt", "-m", "m", "--levels", "person,part", *QUICK)
    assert (code, NO_WORD in told) == (2, True)


@pytest.mark.parametrize(
    "options", [("--levels", "person=2,part=3"), ("--levels", "person,part", "--columns", "word,person,part")]
)
def test_a_file_without_labels_of_a_level_goes_into_training_with_a_column_of_unknown_labels(names, options):
    lines = ["Li\tB-person", "Wei\tI-person", ""]
    Path("persons.txt").write_text("\n".join([*lines, ""]))
    code, _, told = names("fit", "train.txt", "persons.txt", "-m", "m", *options, *QUICK)
    assert (code, "persons.txt, line 1: " in told) == (2, True)
    assert "there are 2 columns" in told
    assert "; if a level has no labels there, add a column of ?" in told
    Path("persons.txt").write_text("\n".join([*(line and f"{line}\t?" for line in lines), ""]))
    assert names("fit", "train.txt", "persons.txt", "-m", "m", *options, *QUICK)[0] == 0


@pytest.mark.skipif(not (shutil.which("sh") and shutil.which("awk")), reason="there is no awk")
def test_the_awk_lines_of_the_pages_write_unknown_labels(names):
    def run(page):
        line = re.search("`(awk [^`]*)`", (DOCS / page).read_text(encoding="utf-8"))[1]
        subprocess.run(["sh", "-c", line], check=True)

    Path("persons.txt").write_text("# title\r\nLi\tB-person\r\n\r\nWei\tB-person\r\n", newline="")
    run("partial.md")
    assert Path("filled.txt").read_text() == "# title\nLi\tB-person\t?\n\nWei\tB-person\t?\n"
    Path("out.txt").write_text("# title\nLi\tB-person\tB-surname\t1.000000\t0.899999\nWei\tO\tO\t0.5\t0.900000\n\n")
    run("shell.md")
    assert Path("known.txt").read_text() == "# title\nLi\tB-person\t?\nWei\t?\tO\n\n"


def test_files_of_nothing_but_labels_are_compared(names):
    Path("one.txt").write_text("B-person\nI-person\n\n")
    code, out, _ = names("score", "one.txt", "one.txt")
    assert (code, "2 steps" in out) == (0, True)
    Path("both.txt").write_text("B-person B-person\nI-person I-person\n\n")
    code, out, _ = names("score", "both.txt")
    assert (code, "2 steps" in out) == (0, True)


# ------------------------------------------------------------------------------
# 3. Empty rows, separators, comments


@pytest.mark.parametrize("separator", ["\t", ",", ";"])
def test_an_empty_row_of_a_spreadsheet_ends_a_sequence(separator):
    text = "\r\n".join(separator.join(row) for row in (["Li", "B"], ["", ""], ["Ana", "B"], [" ", ""], ["Wei", "?"]))
    documents = list(read_columns(io.StringIO(text, newline=""), ["person"], separator=separator))
    assert [document.tokens for document in documents] == [[["Li"]], [["Ana"]], [["Wei"]]]


def test_an_item_without_attributes_is_a_step():
    (document,) = read_crfsuite(io.StringIO("N\ta\n\t\nN\tb\n"))
    assert document.labels == {"label": ["N", "?", "N"]}


def test_an_empty_row_ends_a_sequence_of_a_stream(names):
    Path("train.tsv").write_text(LISTS * 5)
    assert names("fit", "train.tsv", "-m", "m", "--levels", "person,part", *QUICK)[0] == 0
    out = [
        names("predict", "--stream", "-m", "m", text=text)[1]
        for text in ("Li\nWei\n\nAna\nLopez\n", "Li\nWei\n\t\t\nAna\nLopez\n")
    ]
    assert out[0] == out[1] != ""


@pytest.mark.parametrize("separator", ["\t", " "], ids=["tab", "space"])
def test_predictions_of_words_alone_are_separated_as_the_training_file(names, separator):
    Path("train.txt").write_text(LISTS.replace("\t", separator) * 5)
    assert names("fit", "train.txt", "-m", "m", "--levels", "person,part", *QUICK)[0] == 0
    commented = "# new lists\nLi\nWei\n\n"
    Path("new.txt").write_text(commented)
    _, out, _ = names("predict", "new.txt", "-m", "m", "--comment", "#")
    assert out.splitlines()[:2] == ["# new lists", separator.join(["Li", "B-person", "B-surname"])]
    assert names("predict", "--stream", "-m", "m", "--comment", "#", text=commented)[1] == out


def test_a_title_of_as_many_words_as_there_are_columns_is_a_comment_where_tabs_separate_them(names):
    Path("new.txt").write_text("# new lists\n" + WORDS)
    Path("out.txt").write_text(names("predict", "new.txt", "-m", "m", "--comment", "#")[1])
    code, _, told = names("score", "truth.txt", "out.txt", "-m", "m", "--comment", "#")
    assert (code, told) == (0, "")


def test_a_title_in_a_file_of_one_column_is_a_comment_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        documents = list(read_columns(io.StringIO("# new lists\nLi\nWei\n"), comment="#", separator="\t"))
    assert [(document.comments, document.tokens) for document in documents] == [(("# new lists",), [["Li"], ["Wei"]])]
