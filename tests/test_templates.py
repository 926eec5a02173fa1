"""Templates: the features of tokens, in TOML and in the notation of CRF++ and Wapiti."""

import json
from pathlib import Path

import pytest

import hscrf
from hscrf import cli, io
from hscrf.cli.recipe import load_model
from hscrf.errors import TemplateError
from hscrf.io.template_files import default_template, read_template
from hscrf.io.templates import Template, TemplateCell, word_shape

ROWS = [["He", "PRP"], ["reckons", "VBZ"], ["the", "DT"]]
NAMES = ("word", "pos", "chunk")
FEATURES = ("word", "pos")


def template_of(tmp_path, text, name="template", columns=NAMES, features=FEATURES):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_template(path, columns, features)


def complaint(tmp_path, text, name="template"):
    with pytest.raises(TemplateError) as caught:
        template_of(tmp_path, text, name)
    return str(caught.value).removeprefix(f"{tmp_path}/")


class TestMacros:
    def test_the_example_of_the_crfpp_manual(self, tmp_path):
        """The table of expansions in CRF++'s documentation, for its current token "the"."""
        rows = [["He", "PRP"], ["reckons", "VBZ"], ["the", "DT"], ["current", "JJ"], ["account", "NN"]]
        text = (
            "# Unigram\nU0:%x[0,0]\nU1:%x[0,1]\nU2:%x[-1,0]\nU3:%x[-2,1]\nU4:%x[0,0]/%x[0,1]\nU5:ABC%x[0,1]123\n\nB\n"
        )
        found = template_of(tmp_path, text).apply(rows)[2]
        assert found == ["U0:the", "U1:DT", "U2:reckons", "U3:PRP", "U4:the/DT", "U5:ABCDT123"]

    @pytest.mark.parametrize("length", [1, 2, 5])
    def test_beyond_the_ends(self, length):
        template = Template(tuple((TemplateCell("x", offset, 0),) for offset in (-3, -1, 1, 3)))
        words = [[f"w{t}"] for t in range(length)]
        for t, found in enumerate(template.apply(words)):
            expected = []
            for offset in (-3, -1, 1, 3):
                k = t + offset
                expected.append(f"_B{k}" if k < 0 else f"_B+{k - length + 1}" if k >= length else f"w{k}")
            assert found == expected

    def test_wapiti(self, tmp_path):
        text = 'u:%X[0,0]\nuMat:%m[0,0,"[a-z]+$"]\nuTest:%t[0,0,"^[A-Z]"]\n'
        found = template_of(tmp_path, text).apply(ROWS)
        assert found[0] == ["u:he", "uMat:e", "uTest:true"]
        assert found[2] == ["u:the", "uMat:the", "uTest:false"]

    def test_pairs_of_labels_look_at_the_second(self, tmp_path):
        template = template_of(tmp_path, "U:%x[0,0]\nB\nB1:%x[-1,0]/%x[0,0]\n*2:%x[0,1]\n")
        assert template.apply(ROWS) == [
            ["U:He", "*2:PRP", "pair:B1:He/reckons", "pair:*2:VBZ"],
            ["U:reckons", "*2:VBZ", "pair:B1:reckons/the", "pair:*2:DT"],
            ["U:the", "*2:DT"],  # nothing follows
        ]

    def test_a_constant(self, tmp_path):
        assert template_of(tmp_path, "U\nU1:%x[0,0]").apply(ROWS)[0] == ["U", "U1:He"]

    def test_columns_are_counted_in_the_file(self, tmp_path):
        template = template_of(tmp_path, "U:%x[0,2]", columns=("tag", "word", "pos"), features=("word", "pos"))
        assert template.apply(ROWS)[0] == ["U:PRP"]

    BROKEN = (
        ("U:%x[0,0]\nU:%x[0,2]", "line 2: column '2' holds labels of level 'chunk', which a feature cannot see"),
        ("U:%x[0,9]", "line 1: there is no column '9', only word, pos, chunk"),
        ("X:%x[0,0]", "line 1: 'X:%x[0,0]' begins with 'X', expected U, B, * or #"),
        ("U:%x[0]", "line 1: 'U:%x[0]' is not understood, expected cells such as %x[-1,0]"),
        ("U:%m[0,0]", "line 1: %m[0,0] expects a pattern in double quotes"),
        ('U:%x[0,0,"a"]', 'line 1: %x[0,0,"a"] expects no pattern'),
        ('U:%m[0,0,"("]', "line 1: missing ), unterminated subpattern at position 0"),
        ("# nothing\nB\n", "line 1: the template has no features of tokens that look at a column"),
        (b"U:%x[0,0]\nU\xff", "line 2: not valid UTF-8"),
    )

    @pytest.mark.parametrize(("text", "message"), BROKEN, ids=range(len(BROKEN)))
    def test_broken(self, tmp_path, text, message):
        assert complaint(tmp_path, text) == f"template, {message}"


class TestToml:
    TEXT = """
        [word]
        window = 1
        conjunctions = 2
        prefixes = 2
        suffixes = 3
        lower = true
        shape = true
        [1]
        window = 0
        [[join]]
        cells = ["word[0]", "pos[-1]"]
        [[pair]]
        cells = ["pos[0]"]
    """

    def test_everything(self, tmp_path):
        assert template_of(tmp_path, self.TEXT, "t.toml").apply(ROWS)[0] == [
            "word[-1]=_B-1",
            "word[0]=He",
            "word[1]=reckons",
            "word[-1]|word[0]=_B-1|He",
            "word[0]|word[1]=He|reckons",
            "word.prefix1=H",
            "word.prefix2=He",
            "word.suffix1=e",
            "word.suffix2=He",  # of three there is none
            "word.lower=he",
            "word.shape=Aa",
            "1[0]=PRP",
            "word[0]|pos[-1]=He|_B-1",
            "pair:pos[0]=VBZ",
        ]

    def test_shapes_of_neighbours(self, tmp_path):
        assert template_of(tmp_path, "[word]\nshapes = 1", "t.toml").apply(ROWS)[0] == [
            "word[0]=He",
            "word.shape[-1]=_B-1",
            "word.shape[0]=Aa",
            "word.shape[1]=aa",
            "word.shape[-1]|word.shape[0]=_B-1|Aa",
            "word.shape[0]|word.shape[1]=Aa|aa",
        ]

    BROKEN = (
        ("[word", "not valid TOML: "),
        ("[lemma]\nwindow = 1", "there is no column 'lemma', only word, pos, chunk"),
        ("[chunk]\nwindow = 1", "column 'chunk' holds labels of level 'chunk', which a feature cannot see"),
        ("[word]\nwindows = 1", "[word] has 'windows', expected window, conjunctions, prefixes"),
        ("[word]\nwindow = -1", "[word] window is -1, expected a number from 0 to 100"),
        ("[word]\nshape = 1", "[word] shape is 1, expected true or false"),
        ("word = 1", "word is 1, expected a table [word] for a column"),
        ("[[join]]\ncells = ['word']", "[[join]] has the cell 'word', expected column[offset] as in word[-1]"),
        ("[[pair]]\ncells = []", "[[pair]] expects cells"),
        ("[[pair]]\ncells = ['word[0]']", "the template has no features of tokens"),
        ("", "the template has no features of tokens"),
    )

    @pytest.mark.parametrize(("text", "message"), BROKEN, ids=range(len(BROKEN)))
    def test_broken(self, tmp_path, text, message):
        assert complaint(tmp_path, text, "t.toml").startswith(f"t.toml, {message}")


def test_default_template_looks_at_every_column():
    found = default_template(FEATURES).apply(ROWS)
    assert "word.suffix3=ons" in found[1]
    assert "pos[-1]|pos[0]|pos[1]=PRP|VBZ|DT" in found[1]
    assert default_template(FEATURES).width == 2


def test_templates_survive_json(tmp_path):
    template = template_of(tmp_path, 'U0:%x[-1,0]/%x[0,1]\nU1:%m[0,0,"a+"]\nB1:%x[0,1]')
    again = Template.from_dict(json.loads(json.dumps(template.to_dict())))
    assert again == template
    assert again.apply(ROWS) == template.apply(ROWS)


@pytest.mark.parametrize(
    ("word", "shape"), [("McDonald's", "AaAaa'a"), ("2026-11-16", "00-00-00"), ("ÉtÉ", "AaA"), ("x_y", "a_a"), ("", "")]
)
def test_word_shape(word, shape):
    assert word_shape(word) == shape


def test_features_of_label_pairs_survive_a_refit(tmp_path, monkeypatch):
    """A model trained from the shell, loaded and fitted again, has the same weights: tokens see no pair features."""
    monkeypatch.chdir(tmp_path)
    rows = ["the D", "old J", "cat N", "sleeps V"]
    Path("train.txt").write_text("\n".join([*rows, "", *rows[::-1], "", *rows[1:], ""]) + "\n")
    Path("crfpp").write_text("U0:%x[0,0]\nU1:%x[-1,0]\nB1:%x[0,0]\nB\n")
    options = ["--template", "crfpp", "--progress", "none", "--max-iter", "3"]
    assert cli.main(["fit", "train.txt", "-m", "model", *options]) == 0
    model, recipe = load_model("model")
    names = ["level", "part", "feature", "states"]
    expected = model.weights_[names]
    documents = list(recipe.read("train.txt"))
    labels = [io.to_labels(document, model.topology_, recipe.scheme) for document in documents]
    model.fit([recipe.observe(document) for document in documents], labels)
    assert type(model) is hscrf.HSCRF
    assert model.weights_[names].equals(expected)
    assert set(expected.query("part == 'token'")["feature"].str[:2]) == {"U0", "U1"}
    assert set(expected.query("part == 'trans' and feature != ''")["feature"].str[:5]) == {"pair:"}
