"""hscrf studio from the shell: serve a file, stop with Ctrl-C, export."""

import json
import os
import signal
import subprocess
import sys

import pytest

from hscrf.cli.main import main
from hscrf.io import Document, write_jsonl, write_table
from hscrf.io.labelfile import read_label_file
from processes import SOURCE
from studio_fixtures import Person, sentences

LABELS = '[levels]\nphrase = ["NP", "VP", "O"]\ntag = ["D", "N", "V", "X"]\n\n[children.phrase]\nNP = ["D", "N"]\n'


def words(n):
    return [[step[0][2:] for step in x] for x in sentences(n)[0]]


class Command:
    """hscrf studio in a process of its own."""

    def __init__(self, *arguments):
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        command = [sys.executable, "-m", "hscrf", "studio", *map(str, arguments), "--no-browser", "--port", "0"]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().strip().partition(": ")[2]

    def stop(self):
        """Ctrl-C; the exit code and what was said."""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


@pytest.mark.parametrize("options", [(), ("--columns", "word")], ids=["plain", "named"])
def test_a_file_of_one_word_a_line_is_labelled_trained_on_and_predicted(tmp_path, options, capsys):
    (tmp_path / "labels.toml").write_text(LABELS)
    data, db = tmp_path / "words.txt", tmp_path / "x.sqlite"
    data.write_text("\n\n".join("\n".join(sentence) for sentence in words(4)) + "\n")
    command = Command(data, "--labels", tmp_path / "labels.toml", "--db", db, "--train-after", "1", *options)
    person = Person(command.url)
    truth = sentences(4)[1][0]
    segments = {level: [list(s) for s in truth.segments(level)] for level in ("phrase", "tag")}
    person.do(1, "accept", whole=True, segments=segments)
    person.wait(lambda project: project["model"] is not None)
    person.close()
    code, said = command.stop()
    assert code == 0, said
    model, out = str(tmp_path / "m.hscrf"), tmp_path / "out.txt"
    assert main(["studio", "export", str(db), "-o", model]) == 0
    assert main(["predict", str(data), "-m", model, "-o", str(out)]) == 0
    first = [line.split() for line in out.read_text().splitlines()[: len(words(1)[0])]]
    assert [row[0] for row in first] == words(1)[0]
    assert [row[-1] for row in first] == truth.column("tag")


def test_the_demonstration_opens_on_a_sequence_with_suggestions(tmp_path):
    command = Command("--demo", "citations", "--db", tmp_path / "d.sqlite")
    person = Person(command.url).warm()
    project, queue = person.get("/api/project").json(), person.get("/api/queue").json()
    assert project["model"]["words"] == "model 1, trained on 20 sequences"
    view = person.view(queue["next"])
    assert (view["status"], view["model"]) == ("open", 1)
    assert all(label is not None for segments in view["segments"].values() for _, _, label in segments)
    person.close()
    code, said = command.stop()
    assert code == 0, said


def test_from_a_raw_file_to_labels_without_a_model(tmp_path, capsys):
    (tmp_path / "labels.toml").write_text(LABELS)
    data, db = tmp_path / "data.jsonl", tmp_path / "x.sqlite"
    write_jsonl(data, [Document(tokens, name=f"s{n}") for n, tokens in enumerate(words(4))])
    command = Command(data, "--labels", tmp_path / "labels.toml", "--db", db)
    person = Person(command.url)
    project = person.get("/api/project").json()
    assert [level["name"] for level in project["levels"]] == ["phrase", "tag"]
    assert project["kind"] == "text"
    truth = sentences(4)[1][0]
    segments = {level: [list(s) for s in truth.segments(level)] for level in ("phrase", "tag")}
    person.do(1, "accept", whole=True, segments=segments)
    person.do(2, "label", level="tag", start=0, stop=1, label="D")
    out = tmp_path / "live.jsonl"
    assert main(["studio", "export", str(db), "-o", str(out)]) == 0, "while the server works"
    person.close()
    code, said = command.stop()
    assert code == 0, said
    assert "Traceback" not in said
    for name in ("out.jsonl", "out.csv", "out.txt", "out.json", "out.zip"):
        assert main(["studio", "export", str(db), "-o", str(tmp_path / name), "--accepted-only"]) == 0
        assert (tmp_path / name).stat().st_size > 0
    (line,) = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(line)["labels"]["phrase"] == segments["phrase"]
    assert len(out.read_text().splitlines()) == 4
    assert "1 of 4 sequences accepted" in capsys.readouterr().err
    assert main(["fit", str(tmp_path / "out.jsonl"), "-m", str(tmp_path / "m.hscrf"), "--progress", "none"]) == 0


def test_a_model_and_a_file_with_some_labels(tmp_path):
    data = tmp_path / "train.csv"
    documents = []
    for n, (tokens, labels) in enumerate(zip(words(6), sentences(6)[1], strict=True)):
        columns = {"phrase": labels.column("phrase", scheme="bio"), "tag": labels.column("tag")}
        rows = [{"word": word} for word in tokens]
        documents.append(Document(rows, columns, name=f"s{n}"))
    write_table(data, documents)
    assert (
        main(["fit", str(data), "-m", str(tmp_path / "m.hscrf"), "--levels", "phrase,tag", "--progress", "none"]) == 0
    )
    new = tmp_path / "new.csv"
    write_table(new, [Document(d.tokens, None, name=d.name) for d in documents[:3]])
    command = Command(new, "-m", tmp_path / "m.hscrf", "--db", tmp_path / "x.sqlite")
    person = Person(command.url).warm()
    view = person.view(1)
    assert view["segments"]["phrase"][0] == [0, 2, "NP"]
    person.accept(1)
    person.close()
    assert command.stop()[0] == 0
    assert main(["studio", "export", str(tmp_path / "x.sqlite"), "-o", str(tmp_path / "out.jsonl")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines[1]["prediction"]["phrase"], "the model answers for what nobody has labelled"
    assert lines[1]["by"]["tag"][0][2] == "model"
    assert main(["studio", "export", str(tmp_path / "x.sqlite"), "-o", str(tmp_path / "again.hscrf")]) == 0
    assert main(["predict", str(new), "-m", str(tmp_path / "again.hscrf"), "-o", str(tmp_path / "p.csv")]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one file to label"),
        (["a.csv", "b.csv"], "give one file to label"),
        (["a.txt", "-m", "m.hscrf", "--labels", "l.toml"], "not both"),
        (["export"], "expected: hscrf studio export"),
        (["export", "nothing.sqlite", "-o", "out.jsonl"], "no such database"),
        (["export", "nothing.sqlite", "-o", "out.eaf"], "the ending of 'out.eaf' names no format"),
        (["a.txt", "--labels", "nothing.toml"], "nothing.toml"),
    ],
)
def test_mistakes_are_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["studio", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_file_of_labels(tmp_path):
    path = tmp_path / "labels.toml"
    path.write_text('lasting = ["walk"]\n[levels]\nmeal = ["lunch"]\nwalk = ["in", "out"]\n')
    assert not read_label_file(path).topology.unit_bottom
    for text, message in (("[levels", "labels.toml"), ("[level]\na = 1", "expected"), ("", "no table")):
        path.write_text(text)
        with pytest.raises(Exception, match=message):
            read_label_file(path)


def test_nothing_of_the_web_is_loaded_by_the_library():
    from processes import run

    found = run("import hscrf, sys; from hscrf.cli.main import build_parser; build_parser(); "
                "print(*sorted({'starlette', 'uvicorn', 'sqlite3'} & set(sys.modules)))")  # fmt: skip
    assert found == []
