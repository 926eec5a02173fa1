"""Templates as text that can be edited and given back; lexicons, clusters and regular expressions; the transformer."""

import contextlib
import json
import random

import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import hscrf
from hscrf.cli.main import main
from hscrf.errors import TemplateError
from hscrf.io import TokenFeatures
from hscrf.io.labelfile import KNOWN, label_file_from
from hscrf.io.lexicons import Clusters, Lexicon
from hscrf.io.patterns import template_text
from hscrf.io.recipe import Recipe
from hscrf.io.template_files import default_template, from_settings, named_columns, read_template
from hscrf.io.templates import Template

X = [["Anna", "lives", "in", "New", "York", "City", "."], ["In", "1999", "Paris"]]


def test_the_default_patterns_read_back_as_the_same(tmp_path):
    for columns in (["word"], ["word", "pos"], ["0", "a[b]", "c{d}"]):
        template = default_template(columns)
        (tmp_path / "t.toml").write_text(template_text(template, columns), encoding="utf-8")
        assert read_template(tmp_path / "t.toml", columns, columns) == template


def test_macros_pairs_and_tables_read_back_as_the_same(tmp_path):
    (tmp_path / "t.crfpp").write_text(
        'U1:%x[-1,0]/%X[0,0]\nU2:{}%m[0,0,"^.{2}\\"?"]\nU3:%T[0,0,"^[A-Z]"]\nB1:%x[0,0]\n'
    )
    one = read_template(tmp_path / "t.crfpp", ["word"], ["word"])
    (tmp_path / "c.txt").write_text("cat\t0110\ndog\t0111\n")
    (tmp_path / "u.toml").write_text(
        '[word]\nregex = { year = "^[0-9]{4}$" }\n[lexicon.city]\nentries = ["New York"]\ncolumn = "word"\n'
        'lower = true\n[cluster.brown]\nfile = "c.txt"\ncolumn = "word"\nprefixes = [2]\nwindow = 1\n'
    )
    other = read_template(tmp_path / "u.toml", ["word"], ["word"])
    for template in (one, other):
        (tmp_path / "t.toml").write_text(template_text(template, ["word"]), encoding="utf-8")
        assert read_template(tmp_path / "t.toml", ["word"], ["word"]) == template
        assert Template.from_dict(json.loads(json.dumps(template.to_dict()))) == template
        assert Recipe.from_dict(json.loads(json.dumps(Recipe(template=template).to_dict()))).template == template


def test_phrases_mark_their_steps():
    lexicon = Lexicon("city", ("New York City", "York", "new york", "Paris"), lower=True)
    assert lexicon.marks(X[0]) == [None, None, None, "B", "I", "I", None]
    assert lexicon.marks(["York", "New", "York"]) == ["B", "B", "I"]
    assert Lexicon("city", ("New York",)).marks(["new", "York"]) == [None, None]


def test_clusters_of_both_kinds_of_files(tmp_path):
    (tmp_path / "brown.txt").write_text("0110\tcat\t7\n0111\tdog\t9\n")
    (tmp_path / "plain.txt").write_text("cat 0110\ndog 0111\n")
    for name in ("brown", "plain"):
        (tmp_path / "t.toml").write_text(f'[cluster.c]\nfile = "{name}.txt"\ncolumn = "word"\nprefixes = [3]\n')
        features = TokenFeatures(tmp_path / "t.toml").fit_transform([["cat", "dog", "cow"]])
        assert features == [[["c=0110", "c3=011"], ["c=0111", "c3=011"], []]]
    assert Clusters("c", ("Cat",), ("1",), lower=True).of("CAT") == "1"


def test_regular_expressions():
    features = TokenFeatures({"word": {"regex": {"year": "^[0-9]{4}$"}}}).fit_transform(X)
    assert [step[-1] for step in features[1]] == ["word.year=false", "word.year=true", "word.year=false"]


def test_patterns_in_python():
    features = TokenFeatures(["before={word[-1]:lower}", "{{{word[0]:suffix 2}}}", "up={word[0]:test ^[A-Z]}"])
    assert features.fit_transform([["Anna", "a"]]) == [
        [["before=_B-1", "{na}", "up=true"], ["before=anna", "up=false"]]
    ]
    again = TokenFeatures({"patterns": ["before={word[-1]:lower}"]}).fit([["a"]])
    assert 'patterns = [\n    "before={word[-1]:lower}",\n]' in again.patterns()


def test_columns_of_tokens():
    rows = [["Anna", "N"], ["sees", "V"]]
    dicts = [{"word": "Anna", "pos": "N"}, {"word": "sees", "pos": "V"}]
    template = ["{word[0]}", "{pos[-1]}"]
    expected = [[["Anna", "_B-1"], ["sees", "N"]]]
    assert TokenFeatures(template, columns=["word", "pos"]).fit_transform([rows]) == expected
    assert TokenFeatures(template).fit_transform([dicts]) == expected
    with pytest.raises(ValueError, match=r"X\[1\] has 1 cells at step 0, expected 2"):
        TokenFeatures(template, columns=["word", "pos"]).fit([rows]).transform([rows, ["a"]])


@pytest.mark.parametrize("call", [TokenFeatures().fit, TokenFeatures().fit([["a"]]).transform])
def test_text_is_no_list_of_tokens(call):
    with pytest.raises(ValueError, match=r"^X\[0\] is a string, expected a list of tokens; hscrf\.io\.read_text cuts"):
        call(["Anna sees"])


def test_a_pipeline():
    Y = [{"name": ["B-P", "O", "O", "B-L", "I-L", "I-L", "O"]}, {"name": ["O", "O", "B-L"]}]
    model = make_pipeline(TokenFeatures(), hscrf.SemiCRF(max_duration=3))
    model.fit(X, [y["name"] for y in Y])
    assert clone(model).get_params()["tokenfeatures__template"] == "default"
    assert model.predict(X)[0].column(scheme="bio") == Y[0]["name"]
    lower = {"word": {"lower": True}}
    assert clone(TokenFeatures(lower)).template == lower


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (["{word}"], "is not understood"),
        (["{word[0]:upside}"], "has the lens 'upside'"),
        (["{pos[0]}"], "no column 'pos'"),
        (["{word[0]:lexicon city}"], "no lexicon or cluster 'city'"),
        (["{word[0]:prefix two}"], "template has"),
        ([7], "patterns have 7"),
        ([], "no features of tokens"),
        ({"lexicon": {"a b": {"entries": ["x"]}}}, "expected one word"),
        ({"lexicon": {"a": {"entry": ["x"]}}}, "has 'entry', expected file"),
        ({"lexicon": {"a": {"entries": [], "column": "word"}}}, "has no entry"),
        ({"lexicon": {"a": {"file": "nothing.txt", "column": "word"}}}, "nothing.txt"),
        ({"lexicon": {"a": {"column": "word"}}}, "neither file nor entries"),
        ({"cluster": {"a": {"entries": ["x"], "column": "word"}}}, "expected a table from word to cluster"),
        ({"cluster": {"a": {"entries": {"x": "1"}, "column": "word", "prefixes": [0]}}}, "expects window"),
        ({"word": {"regex": {"a": "("}}}, "template has"),
        ({"word": {"regex": "("}}, "expected a table of patterns"),
        (7, "template is 7"),
    ],
)
def test_mistakes(template, message):
    with pytest.raises((TemplateError, ValueError), match=message.replace("[", r"\[")):
        TokenFeatures(template).fit([["a"]])


def test_the_patterns_of_a_model_are_printed_and_given_back(tmp_path, capsys):
    sentences = "the D B-NP\ncat N I-NP\nsees V B-VP\n\na D B-NP\ndog N I-NP\nsleeps V B-VP\n\n"
    (tmp_path / "train.txt").write_text(sentences * 3)
    (tmp_path / "animals.txt").write_text("cat\ndog\n")
    (tmp_path / "t.toml").write_text('[0]\nlower = true\n[lexicon.animal]\nfile = "animals.txt"\ncolumn = "0"\n')
    options = ["--levels", "chunk=3,pos=2", "--progress", "none", "--max-iter", "5"]
    fit = ["fit", str(tmp_path / "train.txt"), *options]
    assert main([*fit, "-m", str(tmp_path / "a.hscrf"), "--template", str(tmp_path / "t.toml")]) == 0
    capsys.readouterr()
    assert main(["show", str(tmp_path / "a.hscrf"), "--template"]) == 0
    said = capsys.readouterr().out
    assert '"animal={0[0]:lexicon animal}"' in said
    (tmp_path / "again.toml").write_text(said)
    assert main([*fit, "-m", str(tmp_path / "b.hscrf"), "--template", str(tmp_path / "again.toml")]) == 0
    one, other = (hscrf.load(tmp_path / name) for name in ("a.hscrf", "b.hscrf"))
    assert list(one.encoder_.names) == list(other.encoder_.names)
    assert "animal=B" in one.encoder_.names
    assert main([*fit, "-m", str(tmp_path / "c.hscrf"), "--template", "none"]) == 0
    assert main(["show", str(tmp_path / "c.hscrf"), "--template"]) == 2


ODD = [3, -1, True, 1.5, None, "", "x", [], {}, ["x"], [1, 2], [["x"]], {"x": 1}, {"chunk": {"x": -2}}, 10**12, "?"]


def odd_value(rng, depth=0):
    if depth > 2 or rng.random() < 0.7:
        return rng.choice(ODD)
    if rng.random() < 0.5:
        return [odd_value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return {rng.choice(["chunk", "x", "file", "entries", "column"]): odd_value(rng, depth + 1) for _ in range(2)}


def test_odd_tables_are_errors_that_explain_themselves():
    rng = random.Random(0)
    columns, fine, tried = named_columns(["word"], ["word"]), 0, 0
    for _ in range(3000):
        keys = rng.sample(["word", "lexicon", "cluster", "patterns", "pairs", "join", "pair"], rng.randint(0, 4))
        template = {key: odd_value(rng) for key in keys}
        for kind, names in (("lexicon", ["entries", "column", "window"]), ("word", ["window", "lower", "regex"])):
            if rng.random() < 0.3:
                own = {name: odd_value(rng) for name in names}
                template[kind] = own if kind == "word" else {"x": own}
        labels = {key: odd_value(rng) for key in rng.sample(KNOWN, rng.randint(0, 5))} | {"levels": {"chunk": ["x"]}}
        for read in (lambda t=template: from_settings(t, columns), lambda t=labels: label_file_from(t)):
            tried += 1
            with contextlib.suppress(ValueError):
                read()
                fine += 1
    assert 0 < fine < tried
