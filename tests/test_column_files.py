"""Column files as people have them: predictions that come back, missing levels, empty rows, comments."""

import io
from pathlib import Path

import pytest

from hscrf.io import read_columns

LISTS = "Li\tB-person\tB-surname\nWei\tI-person\tB-forename\n\nAna\tB-person\tB-forename\nLopez\tI-person\tB-surname\n\n"
WORDS = "Li\nWei\n\nAna\nLopez\n\n"
LEVELS = ["person", "part"]
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


def test_samples_that_stand_where_predictions_stand_are_reported(names):
    Path("out.txt").write_text("Li\tO\tO\tB-person\tB-surname\nWei\tO\tO\tI-person\tO\n\nAna\tO\tO\tO\tO\nL\tO\tO\tO\tO\n")
    code, _, told = names("score", "truth.txt", "out.txt", "-m", "m")
    assert (code, told.count("out.txt, line 1: level 'person' has 'O', but truth.txt has 'B-person'")) == (0, 1)
    assert "the columns after the labels were compared: --predicted names others" in told
    code, _, told = names("score", "truth.txt", "out.txt", "-m", "m", "--predicted", "person=2,part=3")
    assert (code, told) == (0, "")
