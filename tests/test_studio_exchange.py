"""Files of other programs into a studio and out of it, over real HTTP and from the shell."""

import base64
import csv
import functools
import io
import json
import zipfile

import numpy as np
import pytest

from hscrf import Topology
from hscrf.cli.main import main
from hscrf.io import Labelled, Span, TimeAxis, place, read_annotations, read_eaf, read_label_config, write_eaf
from hscrf.io.foreign import MOST_BYTES
from hscrf.studio import serve
from studio_fixtures import Person, open_studio, sentences
from test_studio_cli import Command

TIMED = Topology({"part": ["low", "high"], "sound": ["hum", "beep"]}, max_duration={"sound": None})
LEVELS = {"part": ["low", "high"], "sound": ["hum", "beep"]}
SEGMENTS = {"part": [[0, 20, "low"], [20, 40, "high"]], "sound": [[0, 20, "hum"], [20, 40, "beep"]]}
FORMS = {"elan": "x.zip", "textgrid": "x.zip", "boris": "x.boris", "segments": "x.csv", "label-studio": "x.json"}


def series(folder, **options):
    X = [np.random.default_rng(n).normal(size=(40, 2)) for n in range(3)]
    session = serve(
        X, topology=TIMED, db=folder / "x.sqlite", port=0, names=["day 1", "day/2", "día"], **{"rate": 20, **options}
    )
    return session, Person(session.url)


def run(capsys, *arguments):
    """Exit code and messages of a command."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    return code, capsys.readouterr().err


def send(person, name, content):
    return person.post("/api/import", {"file": name, "data": base64.b64encode(content).decode()})


@pytest.fixture
def timed(tmp_path):
    session, person = series(tmp_path)
    yield session, person
    person.close()
    session.stop()


UNEVEN = [0.1 * n + (0.033 if n > 25 else 0) for n in range(40)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", [{}, {"rate": None}, {"rate": None, "times": [UNEVEN, None, UNEVEN]}])
def test_what_a_studio_exports_another_one_imports(tmp_path, form, options):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    session, person = series(tmp_path / "a", **options)
    person.do(1, "accept", whole=True, segments=SEGMENTS)
    person.do(3, "segment", level="part", start=3, stop=9, label="high")
    content = person.get(f"/api/export/{form}").content
    person.close()
    session.stop()
    session, person = series(tmp_path / "b", **options)
    answer = send(person, FORMS[form], content).json()
    assert (answer["sequences"], answer["labels"], answer["refused"], answer["moved"]) == (2, 5, [], 0)
    assert person.view(1)["segments"] == SEGMENTS
    assert [3, 9, "high"] in person.view(3)["segments"]["part"]
    assert person.view(2)["version"] == 0
    assert person.do(1, "undo")["segments"]["part"] == [[0, 40, None]]
    assert send(person, FORMS[form], content).json()["sequences"] == 2
    assert person.view(1)["segments"] == SEGMENTS, "what was undone can be imported again"
    assert send(person, FORMS[form], content).json()["sequences"] == 2
    assert person.view(1)["version"] == 3, "the same file again changes nothing"
    person.close()
    session.stop()


def test_a_text_goes_out_and_in_again_by_its_words(tmp_path):
    session, person = open_studio(tmp_path, n=3, model=False)
    text = "  ".join(token[0] for token in sentences()[0][1])
    region = {"from_name": "x", "value": {"start": 0, "end": 3, "labels": ["O"]}}
    task = {"data": {"body": text}, "annotations": [{"result": [region]}]}
    answer = send(person, "tasks.json", json.dumps([task]).encode()).json()
    assert (answer["sequences"], answer["refused"]) == (1, [])
    assert person.view(2)["segments"]["phrase"][0] == [0, 1, "O"]
    person.close()
    session.stop()


def test_texts_are_read_once_for_all_tasks(tmp_path, monkeypatch):
    session, person = open_studio(tmp_path, n=8, model=False)
    asked = []
    real = session.studio.database.observations
    monkeypatch.setattr(session.studio.database, "observations", lambda n: asked.append(n) or real(n))
    tasks = [{"data": {"text": f"nobody wrote this {n}"}, "annotations": []} for n in range(50)]
    assert len(person.post("/api/import", {"format": "label-studio", "content": tasks}).json()["refused"]) == 50
    assert sorted(asked) == list(range(1, 9))
    person.close()
    session.stop()


def test_a_file_is_found_by_its_name_or_its_recording(timed, tmp_path):
    _session, person = timed
    content = write_eaf({"part": [(0, 10, "low")]}, rate=20)
    for name in ("day 1.eaf", "0001_day_1.eaf", "0099_día.eaf"):
        assert send(person, name, content).json()["sequences"] == 1, name
    answer = send(person, "day 9.eaf", content).json()
    assert "it is about 'day 9', which is no sequence here, such as 'day 1'" in answer["refused"][0]["message"]
    media = b'<MEDIA_DESCRIPTOR MEDIA_URL="file:///films/day 1.wav"/></HEADER>'
    linked = content.replace(b'TIME_UNITS="milliseconds" />', b'TIME_UNITS="milliseconds">' + media)
    assert send(person, "session.eaf", linked).json()["sequences"] == 1


BAD = [
    ("a.eaf", b'<!DOCTYPE a [<!ENTITY b "c">]><ANNOTATION_DOCUMENT/>', "line 1: the document has a DOCTYPE"),
    ("a.eaf", b"\xff\xfe\x00", "not valid XML"),
    ("a.TextGrid", b"nothing", "expected a TextGrid"),
    ("a.boris", b"{", "not valid JSON"),
    ("a.zip", b"PK", "not an archive"),
    ("../../etc/passwd", b"", "is not one of a known format"),
    ("a.csv", b"label,start,stop\nlow,0\n", "line 2: there are 2 columns"),
]


@pytest.mark.parametrize(("name", "content", "words"), BAD)
def test_hostile_files_are_refused_with_their_line(timed, name, content, words):
    answer = send(timed[1], name, content)
    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]
    assert "/etc" not in answer.json()["error"]["message"]


def archive(*entries):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as found:
        for name, content in entries:
            found.writestr(name, content)
    return target.getvalue()


def repeated(content, times):
    """An archive whose directory names its only file many times: a small file that unpacks to any size."""
    end = content.rindex(b"PK\x05\x06")
    start = content.index(b"PK\x01\x02")
    size = (end - start) * times
    count = times.to_bytes(2, "little")
    tail = content[end : end + 8] + count + count + size.to_bytes(4, "little") + content[end + 16 :]
    return content[:start] + content[start:end] * times + tail


def lying(content, size):
    """An archive whose directory says that its only file is small."""
    at = content.index(b"PK\x01\x02") + 24
    return content[:at] + size.to_bytes(4, "little") + content[at + 4 :]


@functools.cache
def large():
    return archive(("day 1.eaf", b"<" * (MOST_BYTES + 10)))


BOMBS = {
    "large": (large, "64000001 bytes"),
    "repeated": (lambda: repeated(large(), 40), "archive"),
    "lying": (lambda: lying(large(), 100), "archive"),
    "many": (lambda: archive(*((f"{n}.eaf", b"") for n in range(10_001))), "10001 files"),
    "nested": (lambda: archive(("a.zip", large())), ""),
    "deep": (lambda: archive(("day 1.boris", b"[" * 200_000), ("day 1.json", b"[" * 200_000)), "not valid JSON"),
    "upwards": (lambda: archive(("../../../etc/cron.d/day 1.eaf", b"<"), ("/day 1.eaf", b"<")), "day 1.eaf"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_in_archives_are_refused_and_the_server_goes_on(timed, name):
    """Small archives that unpack to more than may be read; nothing of them is stored."""
    make, words = BOMBS[name]
    content = make()
    assert len(content) < 1_500_000
    answer = send(timed[1], "labels.zip", content)
    assert answer.status_code in (200, 422)
    if answer.status_code == 200:
        assert answer.json()["sequences"] == 0
    assert words in answer.text
    assert "etc/cron" not in answer.text
    assert timed[1].view(1)["version"] == 0


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("day 1,0,10,part,low\nday 1,5,12,part,high", "line 3: 'high' overlaps 'low'"),
        ("day 1,0,41,part,low", "line 2: 'low' goes from 0 to 41, outside the sequence (40 steps)"),
        ("day 1,0.5,4,part,low", "line 2: steps are 0.5 to 4, expected whole numbers"),
        ("day 1,0,4,part,loud", "line 2: level 'part' has no label 'loud'"),
        ("day 1,0,4,parts,low\nx,0,1,part,low", "no sequence here"),
    ],
)
def test_rows_that_do_not_fit_are_refused_with_their_line(timed, rows, words):
    answer = send(timed[1], "x.csv", f"sequence,start,stop,level,label\n{rows}\n".encode()).json()
    assert words in " ".join(entry["message"] for entry in answer["refused"])


def test_requests_that_are_no_file(timed):
    person = timed[1]
    for body in ({"file": "a.eaf"}, {"file": 3, "data": ""}, {"file": "a.eaf", "data": "??"}, {"file": "", "data": ""}):
        assert person.post("/api/import", body).status_code == 422
    assert send(person, "a.eaf", b" " * 70_000_000).status_code in (413, 422)


def test_tiers_without_a_level_are_named_and_borders_off_the_grid_are_counted(timed):
    content = write_eaf({"part": [(0, 11, "low")], "comment": [(0, 3, "hello")]}, rate=23)
    answer = send(timed[1], "day 1.eaf", content).json()
    assert (answer["left_out"], answer["moved"]) == (["comment"], 1)


# -- times


def test_the_time_column_of_a_table_is_the_time_axis_of_exports(tmp_path, capsys):
    labels = tmp_path / "labels.toml"
    labels.write_text('lasting = ["sound"]\n[levels]\npart = ["low", "high"]\nsound = ["hum", "beep"]\n')
    data = tmp_path / "days.csv"
    rows = "".join(f"{name},{time},{n},{-n}\n" for name in "ab" for n, time in enumerate(UNEVEN))
    data.write_text("sequence,time,speed,turn\n" + rows)
    database = tmp_path / "x.sqlite"
    command = Command(data, "--labels", labels, "--db", database)
    person = Person(command.url)
    project = person.get("/api/project").json()
    assert (project["rate"], project["channels"]) == (None, ["speed", "turn"])
    assert person.get("/api/sequences/1/observations").json()["times"] == UNEVEN
    person.do(1, "accept", whole=True, segments=SEGMENTS)
    task = json.loads(person.get("/api/export/label-studio").content)[0]
    assert task["data"]["ts"]["time"] == pytest.approx(UNEVEN, rel=0, abs=1e-8)
    assert task["data"]["ts"]["speed"][:3] == [0, 1, 2]
    config = person.get("/api/export/label-config").content
    assert read_label_config(config) == LEVELS
    assert b'column="speed"' in config
    person.close()
    command.stop()
    for name in ("x.zip", "x.segments.csv", "x.boris", "x.textgrid.zip", "x.json", "x.xml"):
        code, said = run(capsys, "studio", "export", database, "-o", tmp_path / name)
        assert code == 0, said
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        found = read_eaf(archive.read(archive.namelist()[0]))
    stops = sorted({interval.stop for interval in found.intervals})
    assert stops == pytest.approx([2.0, UNEVEN[-1] + 0.1], rel=0, abs=2e-3)
    first = next(csv.DictReader(io.StringIO((tmp_path / "x.segments.csv").read_text())))
    assert (first["sequence"], first["stop"], first["stop_time"]) == ("a", "20", "2.0")
    series_of = json.loads((tmp_path / "x.json").read_text())[0]["data"]["ts"]
    assert "speed" in series_of, "the shell remembers the names of the channels"


def test_equal_steps_of_a_time_column_are_a_rate(tmp_path):
    session, person = series(tmp_path, rate=None, times=[[n / 25 for n in range(40)]] * 3)
    assert person.get("/api/project").json()["rate"] == 25
    person.close()
    session.stop()
    with pytest.raises(ValueError, match="times has 1 entries, but there are 3 sequences"):
        series(tmp_path, times=[UNEVEN])
    with pytest.raises(ValueError, match="there are 3 times, expected 40"):
        series(tmp_path, times=[[0, 1, 2], None, None])


def test_files_are_imported_from_the_shell(tmp_path, capsys):
    session, person = series(tmp_path)
    person.close()
    session.stop()
    day = Labelled("día", [0] * 40, [Span(0, 9, "part", "low")], ("part",))
    from hscrf.io import export

    export(tmp_path / "found.boris", [day], rate=20)
    (tmp_path / "día.eaf").write_bytes(write_eaf({"sound": [(0, 400, "hum")]}, rate=20))
    code, said = run(capsys, "studio", "import", tmp_path / "x.sqlite", tmp_path / "found.boris")
    assert (code, "1 labels in 1 sequences" in said) == (0, True), said
    code, said = run(capsys, "studio", "import", tmp_path / "x.sqlite", tmp_path / "día.eaf")
    assert code == 1
    assert "'hum' goes from 0 to 20, outside the sequence (0 to 2 s)" in said
    (tmp_path / "bad.eaf").write_bytes(b"<a>")
    code, said = run(capsys, "studio", "import", tmp_path / "x.sqlite", tmp_path / "bad.eaf")
    assert (code != 0, "bad.eaf, line 1" in said) == (True, True), said
    code, said = run(capsys, "studio", "export", tmp_path / "x.sqlite", "-o", tmp_path / "y.boris")
    _one, _two, three = read_annotations((tmp_path / "y.boris").read_bytes(), "y.boris")
    assert place(three, LEVELS, TimeAxis(40, 20)).spans == [Span(0, 9, "part", "low")]


def test_a_label_configuration_begins_a_project(tmp_path):
    (tmp_path / "config.xml").write_text(
        '<View><Labels name="field" toName="t"><Label value="author"/><Label value="title"/></Labels>'
        '<Text name="t" value="$text"/></View>'
    )
    (tmp_path / "words.txt").write_text("Ada\nLovelace\n\nNotes\n")
    command = Command(tmp_path / "words.txt", "--labels", tmp_path / "config.xml", "--db", tmp_path / "c.sqlite")
    person = Person(command.url)
    (level,) = person.get("/api/project").json()["levels"]
    assert (level["name"], level["labels"], level["unit"]) == ("field", ["author", "title"], False)
    person.close()
    command.stop()


# -- questions about all sequences are answered from memory


def test_labels_of_all_sequences_are_looked_up_once(tmp_path, monkeypatch):
    from hscrf.studio.data import events

    session, person = open_studio(tmp_path, n=8, model=False, labelled=4)
    first = person.get("/api/queue/having", level="phrase", label="NP").json()["ids"]
    assert first == [1, 2, 3, 4]
    made = []
    real = events.known_from
    monkeypatch.setattr(events, "known_from", lambda *given: made.append(1) or real(*given))
    assert person.get("/api/queue/having", level="phrase", label="NP").json()["ids"] == first
    assert made == []
    person.do(6, "label", level="phrase", start=0, stop=1, label="NP")
    assert person.get("/api/queue/having", level="phrase", label="NP").json()["ids"] == [*first, 6]
    person.do(6, "undo")
    assert person.get("/api/queue/having", level="phrase", label="NP").json()["ids"] == first
    person.close()
    session.stop()


def test_the_bulk_preview_decodes_each_sequence_once(tmp_path, monkeypatch):
    session, person = open_studio(tmp_path, n=8)
    suggester = session.studio.workspace.model_store.suggester
    before = person.get("/api/bulk/preview", confidence=0.5).json()["sequences"]
    assert before
    decoded = []
    real = suggester.suggest
    monkeypatch.setattr(suggester, "suggest", lambda *given, **more: decoded.append(given[0]) or real(*given, **more))
    assert person.get("/api/bulk/preview", confidence=0.5).json()["sequences"] == before
    assert decoded == []
    chosen = before[0]["id"]
    person.do(chosen, "label", level="phrase", start=0, stop=1, label="O")
    decoded.clear()
    person.get("/api/bulk/preview", confidence=0.5)
    assert set(decoded) <= {chosen}
    person.close()
    session.stop()
