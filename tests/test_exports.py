"""Exports: every segment is in the other program's format, with times, offsets and confidence."""

import csv
import io
import json
import re
import xml.etree.ElementTree as xml
import zipfile

import pytest

import hscrf
from hscrf.cli.main import main
from hscrf.cli.recipe import load_model, save_model
from hscrf.inference.temperatures import Temperature
from hscrf.io import Labelled, Span, export, spans_of, write_eaf, write_textgrid

SENTENCES = "the D B-NP\ncat N I-NP\nsees V B-VP\n\na D B-NP\nold J I-NP\ndog N I-NP\nsleeps V B-VP\nhere R O\n\n"
WORDS = ["the", "old cat", "sleeps", '"here"']
PLAIN = Labelled(
    "a/b 1",
    WORDS,
    [Span(0, 2, "phrase", "NP", 0.75), Span(2, 3, "phrase", "V P"), Span(0, 1, "tag", "D"), Span(3, 4, "tag", 'R"')],
    ("phrase", "tag"),
)


def test_segments(tmp_path):
    (path,) = export(tmp_path / "x.segments.csv", [PLAIN, Labelled("", ["a"])], rate=4)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "x.segments.csv").read_text(encoding="utf-8"))))
    assert path.endswith("x.segments.csv")
    assert [(row["sequence"], int(row["start"]), int(row["stop"]), row["level"], row["label"]) for row in rows] == [
        ("a/b 1", *span[:4]) for span in PLAIN.spans
    ]
    assert [row["confidence"] for row in rows] == ["0.75", "", "", ""]
    assert (rows[0]["start_time"], rows[0]["stop_time"]) == ("0.0", "0.5")
    assert [row["text"] for row in rows] == [" ".join(WORDS[span.start : span.stop]) for span in PLAIN.spans]


def test_segments_have_the_words_of_the_original_text(tmp_path):
    notes = Labelled(
        "n", ["a", ",", "b"], [Span(0, 3, "x", "y")], ("x",), text="a,  b!", offsets=[(0, 1), (1, 2), (4, 5)]
    )
    days = [Labelled("d", tokens, [Span(0, 1, "x", "y")], ("x",)) for tokens in ([[0.5]], [{"speed": 1.0}])]
    cells = [Labelled("d", tokens, [Span(0, 1, "x", "y")], ("x",)) for tokens in ([["cat", "N"]], [{"word": "cat"}])]
    for sequences, texts in (
        ([notes], ["a,  b"]),
        (days, [None, None]),
        (cells, ["cat", "cat"]),
        ([days[0], notes], ["", "a,  b"]),
    ):
        export(tmp_path / "x.segments.csv", sequences)
        with open(tmp_path / "x.segments.csv", encoding="utf-8", newline="") as file:
            assert [row.get("text") for row in csv.DictReader(file)] == texts


def test_spacy(tmp_path):
    export(tmp_path / "x.jsonl", [PLAIN, PLAIN], "spacy")
    first, second = map(json.loads, (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines())
    assert first == second
    assert [first["text"][token["start"] : token["end"]] for token in first["tokens"]] == WORDS
    for level, spans in first["spans"].items():
        for entry, span in zip(spans, PLAIN.of_level(level), strict=True):
            assert first["text"][entry["start"] : entry["end"]] == " ".join(WORDS[span.start : span.stop])
            assert (entry["label"], entry["token_start"], entry["token_end"]) == (span.label, span.start, span.stop)
            assert entry.get("confidence") == span.confidence


def test_spacy_reads_it(tmp_path):
    spacy = pytest.importorskip("spacy")
    export(tmp_path / "x.spacy.jsonl", [PLAIN])
    doc = spacy.tokens.Doc(spacy.blank("en").vocab).from_json(json.loads((tmp_path / "x.spacy.jsonl").read_text()))
    assert [(span.start, span.end, span.label_) for span in doc.spans["phrase"]] == [(0, 2, "NP"), (2, 3, "V P")]


def test_brat(tmp_path):
    assert [path.rpartition("/")[2] for path in export(tmp_path / "x.ann", [PLAIN, PLAIN])] == ["x.ann", "x.txt"]
    text = (tmp_path / "x.txt").read_text(encoding="utf-8")
    lines = (tmp_path / "x.ann").read_text(encoding="utf-8").splitlines()
    entities = [line.split("\t") for line in lines if line.startswith("T")]
    assert [name for name, _, _ in entities] == [f"T{n}" for n in range(1, 9)]
    for _, place, quoted in entities:
        kind, start, stop = place.split(" ")
        assert re.fullmatch(r"[\w-]+", kind)
        assert text[int(start) : int(stop)] == quoted
    assert entities[1][1].startswith("phrase-V_P ")
    assert "#1\tAnnotatorNotes T1\tconfidence 0.75" in lines


def test_elan(tmp_path):
    export(tmp_path / "x.eaf", [PLAIN], rate=50)
    root = xml.parse(tmp_path / "x.eaf").getroot()
    slots = {slot.get("TIME_SLOT_ID"): int(slot.get("TIME_VALUE")) for slot in root.iter("TIME_SLOT")}
    found = {
        tier.get("TIER_ID"): [
            (slots[a.get("TIME_SLOT_REF1")], slots[a.get("TIME_SLOT_REF2")], a.find("ANNOTATION_VALUE").text)
            for a in tier.iter("ALIGNABLE_ANNOTATION")
        ]
        for tier in root.iter("TIER")
    }
    assert found == {"phrase": [(0, 40, "NP"), (40, 60, "V P")], "tag": [(0, 20, "D"), (60, 80, 'R"')]}
    assert b"\x00" not in write_eaf({"a\x00": [(0, 1, "\x00")]})


def intervals(text):
    """Tiers of a TextGrid in its long form."""
    found = {}
    for block in re.split(r"item \[\d+\]:", text)[1:]:
        name = re.search(r'name = "((?:[^"]|"")*)"', block)[1].replace('""', '"')
        rows = re.findall(r'intervals \[\d+\]:\s+xmin = (\S+)\s+xmax = (\S+)\s+text = "((?:[^"]|"")*)"', block)
        found[name] = [(float(a), float(b), label.replace('""', '"')) for a, b, label in rows]
    return found


def test_textgrid(tmp_path):
    export(tmp_path / "x.TextGrid", [PLAIN], rate=4)
    found = intervals((tmp_path / "x.TextGrid").read_text(encoding="utf-8"))
    assert found == {
        "phrase": [(0, 0.5, "NP"), (0.5, 0.75, "V P"), (0.75, 1, "")],
        "tag": [(0, 0.25, "D"), (0.25, 0.75, ""), (0.75, 1, 'R"')],
    }
    assert intervals(write_textgrid({"empty": []}, 3).decode()) == {"empty": [(0, 3, "")]}


@pytest.mark.parametrize("ending", [".eaf", ".TextGrid"])
def test_several_sequences_need_several_files(tmp_path, ending):
    with pytest.raises(ValueError, match="holds one sequence, but there are 2"):
        export(tmp_path / f"x{ending}", [PLAIN, PLAIN])
    export(tmp_path / f"x{ending}.zip", [PLAIN, PLAIN])
    with zipfile.ZipFile(tmp_path / f"x{ending}.zip") as archive:
        assert archive.namelist() == [f"0001_a_b_1{ending}", f"0002_a_b_1{ending}"]
    form = {".eaf": "elan", ".TextGrid": "textgrid"}[ending]
    assert len(export(f"{tmp_path}/folder/", [PLAIN, PLAIN], form)) == 2
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == [f"000{n}_a_b_1{ending}" for n in (1, 2)]


def test_what_export_refuses(tmp_path):
    with pytest.raises(ValueError, match="the export format is None"):
        export(tmp_path / "x.csv", [PLAIN])
    with pytest.raises(ValueError, match="rate is 0"):
        export(tmp_path / "x.eaf", [PLAIN], rate=0)
    assert not list(tmp_path.iterdir())


# -- from the shell


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    (folder / "train.txt").write_text(SENTENCES * 5)
    (folder / "new.txt").write_text(SENTENCES)
    arguments = ["--levels", "chunk=3,pos=2", "--progress", "none", "--max-iter", "30"]
    assert main(["fit", str(folder / "train.txt"), "-m", str(folder / "m.hscrf"), *arguments]) == 0
    return folder


def predicted(model, capsys, *arguments):
    capsys.readouterr()
    code = main(["predict", str(model / "new.txt"), "-t", "-m", str(model / "m.hscrf"), *arguments])
    return code, capsys.readouterr()


def test_the_shell_writes_what_python_writes(model, capsys, tmp_path):
    code, said = predicted(model, capsys, "--to", "segments")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(said.out)))
    documents = list(hscrf.io.read_columns(model / "new.txt", {"chunk": 2, "pos": 1}))
    _, recipe = load_model(str(model / "m.hscrf"))
    fitted = hscrf.load(model / "m.hscrf")
    observed = [recipe.observe(document) for document in documents]
    found = fitted.predict(observed, confidence=True)
    expected = [(str(n), span) for n, labels in enumerate(found, 1) for span in spans_of(labels)]
    assert [(row["sequence"], int(row["start"]), row["level"], row["label"]) for row in rows] == [
        (n, span.start, span.level, span.label) for n, span in expected
    ]
    assert [float(row["confidence"]) for row in rows] == pytest.approx([span.confidence for _, span in expected])
    for name in ("x.spacy.jsonl", "x.ann", "x.eaf.zip", "x.TextGrid.zip", "x.segments.csv"):
        assert predicted(model, capsys, "-o", str(tmp_path / name))[0] == 0
        assert (tmp_path / name).stat().st_size > 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "elan"], "writes files"),
        (["--rate", "5"], "--rate is for --to segments"),
        (["--to", "spacy", "--rate", "5"], "--rate is not for spacy"),
        (["--to", "segments", "--rate", "0"], "not a number greater than 0"),
        (["--to", "segments", "--k-best", "2"], "--k-best is not for --to segments"),
        (["-o", "x.eaf"], "holds one sequence, but there are 2"),
    ],
)
def test_mistakes(model, capsys, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        code, said = predicted(model, capsys, *arguments)
    except SystemExit as stop:
        code, said = stop.code, capsys.readouterr()
    assert code == 2
    assert message in said.err


def test_the_shell_gives_the_confidences_of_a_calibrated_model(model, capsys, tmp_path):
    fitted, recipe = load_model(str(model / "m.hscrf"))
    fitted.temperature_ = {"chunk": Temperature(2.0, 3.0), "pos": Temperature(0.5, 1.5)}
    save_model(str(tmp_path / "warm.hscrf"), fitted, recipe)
    documents = list(hscrf.io.read_columns(model / "new.txt", {"chunk": 2, "pos": 1}))
    labels = fitted.predict([recipe.observe(document) for document in documents], confidence=True)
    arguments = ["predict", str(model / "new.txt"), "-t", "-m", str(tmp_path / "warm.hscrf"), "--scores"]
    capsys.readouterr()
    assert main(arguments) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    columns = [hscrf.io.confidence_columns(y, ["pos", "chunk"]) for y in labels]
    for k, level in enumerate(["pos_confidence", "chunk_confidence"]):
        assert [row[-2 + k] for row in rows] == [cell for own in columns for cell in own[level]]
    assert main([*arguments, "--to", "jsonl"]) == 0
    found = [json.loads(line)["confidence"] for line in capsys.readouterr().out.splitlines()]
    assert found == [hscrf.io.confidence_records(y, ["chunk", "pos"]) for y in labels]


def test_scores(model, capsys):
    code, said = predicted(model, capsys, "--scores", "--k-best", "2")
    rows = [line.split() for line in said.out.splitlines() if line]
    assert code == 0
    assert {len(row) for row in rows} == {3 + 2 + 4 + 2 + 2}
    logs = [float(cell) for cell in rows[0][-4:-2]]
    assert 0 > logs[0] > logs[1]
    assert all(0 < float(cell) <= 1 for row in rows for cell in row[-2:])


def test_loss(model, capsys):
    for loss in ("step", "segment"):
        code, said = predicted(model, capsys, "--loss", loss)
        assert code == 0
        assert len(said.out.splitlines()) == SENTENCES.count("\n")
