"""Plain text: tokens with their places, detection of text files, and exports that refer to the original text."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hscrf.cli.main import main
from hscrf.errors import DataFileError
from hscrf.io import Labelled, Span, export, read_jsonl, read_text, tokenize
from hscrf.io.texts import TOKENS, is_surely_text, located

SIGNS = st.text(
    st.sampled_from([*"ab1.,'’_ \n\t-!", "\u0301", "\u200d", "\u200f", "न", "ि", "中", "👩", "ש", "\r"]), max_size=15
)
SENTENCES = "the D B-NP\ncat N I-NP\nsees V B-VP\n. X O\n\na D B-NP\ndog N I-NP\nsleeps V B-VP\n. X O\n\n"
NOTES = "The cat sees  the dog.\n\nA dog sleeps, so the cat sleeps.\n"


def cut(text, tokens="words"):
    return [text[start:stop] for start, stop in tokenize(text, tokens)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't pay 1,000.50 now...", ["Don't", "pay", "1,000.50", "now", "..."]),
        ("x_1 (a-b)", ["x_1", "(", "a", "-", "b", ")"]),
        ("हिन्दी में, שלום!", ["हिन्दी", "में", ",", "שלום", "!"]),
        ("中文 abc", ["中", "文", "abc"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("'90s 'tis", ["'", "90s", "'", "tis"]),
        ("👩‍💻 ok", ["👩‍💻", "ok"]),
    ],
)
def test_words_numbers_and_signs(text, expected):
    assert cut(text) == expected
    assert "".join(cut(text)) == "".join(text.split())


@given(SIGNS)
def test_each_way_cuts_wherever_the_one_before_it_does(text):
    borders = {way: {at for place in tokenize(text, way) for at in place} for way in TOKENS}
    for way in TOKENS:
        assert "".join(cut(text, way)) == "".join(text.split())
    assert borders["blanks"] <= borders["words"] <= borders["characters"]


def test_an_unknown_way_is_refused():
    with pytest.raises(ValueError, match="tokens is 'letters', expected words, blanks, characters"):
        tokenize("a", "letters")


def test_a_document_a_line():
    first, second = read_text(io.BytesIO(b"\xef\xbb\xbf" + NOTES.encode()))
    assert first.tokens == ["The", "cat", "sees", "the", "dog", "."]
    assert (first.name, second.name, second.lines, second.number) == ("line 1", "line 3", (3,), 1)
    text, places = located(first.tokens, first.extra)
    assert [text[start:stop] for start, stop in places] == first.tokens
    assert text == "The cat sees  the dog."


def test_a_document_a_file_in_folders(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "b.txt").write_text("Two\r\nlines.", newline="")
    (tmp_path / "in" / "a.md").write_text("One.")
    (tmp_path / "other.csv").write_text("x")
    found = list(read_text(tmp_path))
    assert [document.name for document in found] == ["b", "in/a"]
    assert found[0].extra["text"] == "Two\r\nlines."
    assert found[0].lines == (1, 2, 2)
    assert [document.name for document in read_text([tmp_path / "b.txt"], documents="line")] == ["b:1", "b:2"]


def test_a_feature_that_is_not_text_is_named(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"good\nb\xffd\n")
    with pytest.raises(DataFileError, match=r"x.txt, line 2: byte 2 is 0xff, expected UTF-8"):
        list(read_text(tmp_path / "x.txt"))
    with pytest.raises(DataFileError, match=r"x.txt, line 2: byte 0xff"):
        list(read_text(tmp_path / "x.txt", documents="file"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataFileError, match="the folder has no file of text"):
        list(read_text(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("content", "surely"),
    [
        (NOTES, True),
        (SENTENCES, False),
        (SENTENCES + "damaged line of five words\n", False),
        ("one line of text\n", False),
        ("a b c\nd e f\n", False),
        ("a\tb c\nd e f g\n", False),
        ('{"tokens": ["a b c"]}\n{"tokens": ["a"]}\n', False),
        ("", False),
    ],
)
def test_a_file_that_may_have_columns_is_not_taken_for_text(tmp_path, content, surely):
    (tmp_path / "x.txt").write_text(content)
    assert is_surely_text(tmp_path / "x.txt") is surely


def test_offsets_of_another_text_are_not_believed():
    good = {"text": "ab c", "offsets": [[0, 2], [3, 4]]}
    assert located(["ab", "c"], good) == ("ab c", [(0, 2), (3, 4)])
    for wrong in ([[0, 2]], [[0, 2], [1, 4]], [[0, 2], [3, 9]], [[0, 2], ["3", 4]], None):
        assert located(["ab", "c"], {**good, "offsets": wrong}) is None


# -- exports


TEXT = "So  cats\n sleep ."
CUT = Labelled(
    "x",
    cut(TEXT),
    [Span(0, 2, "phrase", "NP"), Span(1, 3, "tag", "N")],
    ("phrase", "tag"),
    text=TEXT,
    offsets=tokenize(TEXT),
)


def test_spacy_has_the_original_text_and_tokens_for_wide_blanks(tmp_path):
    export(tmp_path / "x.spacy.jsonl", [CUT])
    found = json.loads((tmp_path / "x.spacy.jsonl").read_text())
    assert found["text"] == TEXT
    assert "".join(TEXT[t["start"] : t["end"]] for t in found["tokens"]).replace(" ", "") == TEXT.replace(" ", "")
    (span,) = found["spans"]["tag"]
    assert TEXT[span["start"] : span["end"]] == "cats\n sleep"
    own = found["tokens"][span["token_start"] : span["token_end"]]
    assert (own[0]["start"], own[-1]["end"]) == (span["start"], span["end"])


def test_spacy_reads_the_original_text(tmp_path):
    spacy = pytest.importorskip("spacy")
    export(tmp_path / "x.spacy.jsonl", [CUT])
    doc = spacy.tokens.Doc(spacy.blank("en").vocab).from_json(json.loads((tmp_path / "x.spacy.jsonl").read_text()))
    assert doc.text == TEXT
    assert [span.text for span in doc.spans["tag"]] == ["cats\n sleep"]


def test_brat_has_the_original_text_and_parts_at_the_ends_of_lines(tmp_path):
    export(tmp_path / "x.ann", [CUT, CUT])
    text = (tmp_path / "x.txt").read_text()
    assert text == f"{TEXT}\n" * 2
    for line in (tmp_path / "x.ann").read_text().splitlines():
        _, where, words = line.split("\t")
        parts = [tuple(map(int, part.split())) for part in where.partition(" ")[2].split(";")]
        assert " ".join(text[start:stop] for start, stop in parts) == words
        assert "\n" not in words


# -- the shell


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "train.txt").write_text(SENTENCES)
    path = str(folder / "m.hscrf")
    assert main(["fit", str(folder / "train.txt"), "-m", path, "--levels", "chunk=3,tag=2"]) == 0
    return path


def test_predict_reads_plain_text_and_keeps_the_offsets(tmp_path, model, capsys):
    (tmp_path / "notes.txt").write_text(NOTES)
    notes, out = str(tmp_path / "notes.txt"), tmp_path / "out.jsonl"
    assert main(["predict", notes, "-m", model, "--format", "text", "-o", str(out)]) == 0
    first, second = read_jsonl(out)
    assert located(first.tokens, first.extra)[0] == "The cat sees  the dog."
    assert first.extra["prediction"]["tag"][:2] == ["D", "N"]
    assert second.name == "notes:3"
    assert main(["predict", notes, "-m", model, "--format", "text", "--tokens", "blanks", "--to", "columns"]) == 0
    assert "dog.\t" in capsys.readouterr().out


def test_a_text_is_suggested_where_columns_fail_and_never_overwritten(tmp_path, model, capsys):
    (tmp_path / "notes.txt").write_text(NOTES)
    notes = str(tmp_path / "notes.txt")
    assert main(["predict", notes, "-m", model]) != 0
    assert "--format text would read the file" in capsys.readouterr().err
    assert main(["predict", notes, "-m", model, "--format", "text", "-o", str(tmp_path / "notes.ann")]) != 0
    assert "would write its text over" in capsys.readouterr().err
    assert (tmp_path / "notes.txt").read_text() == NOTES
    assert main(["fit", notes, "-m", str(tmp_path / "x"), "--format", "text"]) != 0
    assert "there are no labels to learn from" in capsys.readouterr().err


def test_a_text_that_passes_for_a_column_of_steps_is_reported(tmp_path, capsys):
    """A model of a file with tabs takes a line without tabs for one cell."""
    (tmp_path / "train.txt").write_text(SENTENCES.replace(" ", "\t"))
    (tmp_path / "notes.txt").write_text("the cat sees\nan old dog sleeps now\n")
    path, notes = str(tmp_path / "m.hscrf"), str(tmp_path / "notes.txt")
    tabs = ["--separator", "tab", "--levels", "chunk=3,tag=2"]
    assert main(["fit", str(tmp_path / "train.txt"), "-m", path, *tabs]) == 0
    capsys.readouterr()
    assert main(["predict", notes, "-m", path]) == 0
    assert "notes.txt, line 1: 'the cat sees' was read as one token; --format text reads" in capsys.readouterr().err
    assert main(["predict", notes, "-m", path, "--format", "text"]) == 0
    assert "one token" not in capsys.readouterr().err


def test_columns_between_blanks_that_pass_for_a_token_are_reported(tmp_path, capsys, monkeypatch):
    (tmp_path / "train.txt").write_text(SENTENCES.replace(" ", "\t"))
    path = str(tmp_path / "m.hscrf")
    tabs = ["--separator", "tab", "--levels", "chunk=3,tag=2"]
    assert main(["fit", str(tmp_path / "train.txt"), "-m", path, *tabs]) == 0
    for words, told in (([], True), (["--separator", "space"], False)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the ? ?\ncat ? ?\n\n")))
        capsys.readouterr()
        assert main(["predict", "-", "-m", path, *words]) == 0
        assert ("--separator space columns" in capsys.readouterr().err) == told
