"""The commands on the page about the studio are executed in their order, and print what the page shows."""

import glob
import re
import shlex
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf import Labels
from hscrf.cli.main import main
from hscrf.io import Document, write_jsonl, write_table
from hscrf.io.labelfile import read_label_file
from hscrf.studio.server.serving import Server
from studio_fixtures import Person
from test_audio import tone, write_wave
from test_docs import FENCE

PAGE = Path(__file__).resolve().parents[1] / "docs" / "studio.md"
PARTS = [("quiet", "hum", 12), ("song", "hum", 8), ("song", "beep", 20)]  # phase, sound, steps of a recording
PITCH = {"hum": 150, "beep": 1500}
STEPS = sum(steps for _, _, steps in PARTS)


def commands():
    """The commands of the page with the lines that they print."""
    for match in FENCE.finditer(PAGE.read_text(encoding="utf-8")):
        if match["kind"] == "console":
            for entry in re.split(r"^\$ ", match["body"], flags=re.MULTILINE)[1:]:
                command, *printed = entry.splitlines()
                yield command.partition(" #")[0].strip(), printed


def expected(line):
    """A line of the page as a pattern: any port, and anything for three dots."""
    return re.sub(r":\d{4,5}/", r":\\d+/", ".*".join(map(re.escape, line.split("..."))).replace(r"\-", "-"))


def labelled(topology):
    return Labels.from_tree(topology, [("quiet", [("hum", 12)]), ("song", [("hum", 8), ("beep", 20)])])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the page names."""
    folder = tmp_path_factory.mktemp("walk")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (label_file,) = (printed for command, printed in commands() if command == "cat labels.toml")
        Path("labels.toml").write_text("\n".join(label_file) + "\n")
        topology = read_label_file("labels.toml").topology
        rng = np.random.default_rng(0)
        for name in ("recordings", "films", "letters"):
            Path(name).mkdir()
        samples = np.concatenate([tone(PITCH[sound], steps / 20) for _, sound, steps in PARTS])
        for n in range(1, 7):
            write_wave(Path("recordings") / f"day_{n}.wav", samples + 0.02 * rng.normal(size=len(samples)))
        days = [Document([{"loud": float(v)} for v in rng.normal(size=STEPS)], name=f"day_{n}") for n in range(3)]
        write_table("days.csv", days)
        write_wave(Path("films") / "day_1.wav", samples)
        words = [["la", "low", "high"][int(k)] for k in rng.integers(0, 3, STEPS)]
        for name in ("sentences.conll", "new.conll"):
            Path(name).write_text("\n".join(words) + "\n\n" + "\n".join(words[::-1]) + "\n")
        lines = [" ".join(["la"] * count) for count in (7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20)]
        Path("notes.txt").write_text("\n".join(lines) + "\n")
        Path("one.txt").write_text("\n".join(lines))
        for n, line in enumerate(lines):
            (Path("letters") / f"{n}.txt").write_text(line)
        known = {level: labelled(topology).column(level, scheme="bio") for level in ("phase", "sound")}
        write_jsonl("known.jsonl", [Document(words, known)])
        assert main(["fit", "known.jsonl", "-m", "chunks.hscrf", "--progress", "none"]) == 0
    return folder


@pytest.fixture
def visited(monkeypatch):
    """Servers do not wait for Ctrl-C: a person comes, labels all sequences if a model shall be trained, and goes."""
    seen = []

    def run(server):
        server.start()
        person = Person(server.url).warm()
        project, queue = (person.get(f"/api/{what}").json() for what in ("project", "queue"))
        seen.append((project, queue))
        if server.studio.train_after < 10:
            segments = {level: [list(s) for s in labelled(server.studio.project.topology).segments(level)]
                        for level in ("phase", "sound")}  # fmt: skip
            for item in queue["items"]:
                person.do(item["id"], "accept", whole=True, segments=segments)
            person.wait(lambda project: project["waiting"] or project["model"])
        person.close()
        server.stop()

    monkeypatch.setattr(Server, "run", run)
    monkeypatch.setattr("webbrowser.open", lambda url: True)
    return seen


def labels_of_other_programs():
    """What the import reads, made from what the walk has exported."""
    assert main(["studio", "export", "labels.sqlite", "-o", "more.zip"]) == 0
    assert main(["studio", "export", "labels.sqlite", "-o", "all.TextGrid.zip"]) == 0
    for archive, name in (("more.zip", "day_1.eaf"), ("all.TextGrid.zip", "day_2.TextGrid")):
        with zipfile.ZipFile(archive) as file:
            Path(name).write_bytes(file.read(next(each for each in file.namelist() if each.endswith(name))))


def two_databases():
    """Two people who labelled the same recordings."""
    for name in ("ann", "bob"):
        files = sorted(glob.glob("recordings/*.wav"))
        options = ["--labels", "labels.toml", "--rate", "20", "--train-after", "6", "--db", f"{name}.sqlite"]
        assert main(["studio", *files, *options]) == 0


def test_commands_of_the_page_work_in_their_order(folder, visited, training_here, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    for command, printed in commands():
        program, *arguments = (name for word in shlex.split(command) for name in sorted(glob.glob(word)) or [word])
        if program == "cat":
            continue
        if arguments[1] == "import":
            labels_of_other_programs()
        if arguments[1] == "agree":
            two_databases()
        capsys.readouterr()
        visited.clear()
        assert main(arguments + (["--progress", "none"] if arguments[0] == "fit" else [])) == 0, command
        streams = capsys.readouterr()
        for line in printed:
            assert re.search(f"^{expected(line)}$", streams.out + streams.err, re.MULTILINE), (command, streams)
        assert len(visited) == (arguments[0] == "studio" and arguments[1] not in ("export", "import")), command
        assert all(queue["items"] for _, queue in visited), f"{command}: there is nothing to label"
