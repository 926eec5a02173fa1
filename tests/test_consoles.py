"""Documentation: commands of blocks ``console`` run, in the order of their page, on small files with these names."""

import re
import shlex
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from test_audio import tone, write_wave
from test_docs import PAGES, blocks, name

pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf import cli
from hscrf.io import write_textgrid
from studio_fixtures import Person

WITH_CONSOLES = [page for page in PAGES if any(kind == "console" for kind, _, _ in blocks(page))]
WORDS = "the cat sees\n\na dog sleeps\n\nthe dog barks\n"
LABELLED = "the D B-NP\ncat N I-NP\nsees V B-VP\n\na D B-NP\ndog N I-NP\nsleeps V B-VP\n\n"


def prompts(text):
    """The commands of a block ``console``, each with what it prints."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield shlex.split(command, comments=True), printed


def expanded(words, folder):
    """The words of a command as a shell gives them: with the files for ``*``."""
    for word in words:
        found = sorted(str(path.relative_to(folder)) for path in folder.glob(word)) if "*" in word else []
        yield from found or [word]


def write_files():
    """The files that the pages name."""
    for folder in ("recordings", "films", "letters"):
        Path(folder).mkdir()
    for n in range(1, 5):
        write_wave(Path(f"recordings/day_{n}.wav"), np.concatenate([tone(300), tone(2000)]))
    shutil.copy("recordings/day_1.wav", "films/day_1.wav")
    rows = [f"{day},{k % 7},{k % 3}" for day in ("day_1", "day_2") for k in range(20)]
    Path("days.csv").write_text("\n".join(["sequence,speed,light", *rows]) + "\n")
    Path("sentences.conll").write_text("\n".join(WORDS.split(" ")))
    for text in ("notes.txt", "one.txt", "letters/first.txt", "letters/second.txt"):
        Path(text).write_text(WORDS.replace("\n\n", ".\n"))
    Path("train.txt").write_text(LABELLED * 3)
    Path("new.conll").write_text("the\ndog\nsleeps\n")


def act(server):
    """What a person does in a page without a model: label and accept every sequence. Then a model is trained."""
    person = Person(server.url)
    if server.studio.workspace.model_store.suggester is None:
        for number, item in enumerate(server.studio.project.items, start=1):
            length = len(item.tokens)
            half = length // 2
            phase = [[0, half, "quiet"], [half, length, "song"]]
            sound = [[0, half, "hum"], [half, length, "beep"]]
            person.do(number, "accept", whole=True, segments={"phase": phase, "sound": sound})
    person.close()


def prepare(words):
    """Files that a command needs and that people made before: two databases, or labels from other programs."""
    if words[1:3] == ["studio", "agree"]:
        for database in words[3:5]:
            assert cli.main(["studio", "sentences.conll", "--labels", "labels.toml", "--db", database]) == 0
    if words[1:3] == ["studio", "import"]:
        with zipfile.ZipFile("labels.zip") as archive:
            first, *others = sorted(name for name in archive.namelist() if name.endswith(".eaf"))
            archive.extract(first)
            for one in others:
                archive.extract(one)
        segments = {"phase": [(0, 10, "quiet"), (10, 20, "song")], "sound": [(0, 10, "hum"), (10, 20, "beep")]}
        Path(words[5]).write_text(write_textgrid(segments, steps=20, rate=20))
        with zipfile.ZipFile(words[6], "w") as archive:
            for one in others[1:]:
                archive.write(one)


@pytest.mark.parametrize("page", WITH_CONSOLES, ids=name)
def test_commands_of_consoles_run(page, tmp_path, monkeypatch, capsys):
    from hscrf.studio.server.serving import Server

    served = []

    def run(server):
        """Serve until a person has done their work, instead of until Ctrl-C."""
        server.start()
        try:
            act(server)
            served.append(server.studio.project.name)
            server.studio.trainer.wait()
        finally:
            server.stop()

    monkeypatch.setattr(Server, "run", run)
    monkeypatch.setattr("webbrowser.open", lambda url: True)
    monkeypatch.chdir(tmp_path)
    write_files()
    assert cli.main(["fit", "train.txt", "-m", "chunks.hscrf", "--levels", "chunk=3,pos=2"]) == 0
    for kind, body, line in blocks(page):
        for words, printed in prompts(body) if kind == "console" else ():
            where = f"{name(page)}, line {line}: {shlex.join(words)}"
            if words[0] == "cat":
                Path(words[1]).write_text(printed)
                continue
            assert words[0] == "hscrf", where
            prepare(words)
            before = len(served)
            capsys.readouterr()
            code = cli.main(list(expanded(words[1:], tmp_path)))
            said = capsys.readouterr()
            assert code == 0, f"{where}: {said.err}"
            started = words[1] == "studio" and words[2] not in ("export", "import")
            assert (len(served) > before) == started, where
