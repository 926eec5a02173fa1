"""The documents tell the truth: every Python block runs, what it prints is what the page shows, examples draw."""

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest

from torching import require_torch

matplotlib.use("Agg")

from matplotlib import pyplot

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FENCE = re.compile(r"^```(?P<kind>[^\n`]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:)(?P<path>[^)#\s]+)(?:#[^)]*)?\)")


def blocks(page):
    """Kind, content and line of the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield match["kind"].strip(), match["body"], text.count("\n", 0, match.start()) + 2


def name(path):
    return path.relative_to(ROOT).as_posix()


def execute(source, page, line, space):
    """Run a block so that a traceback points into the page; return what it prints."""
    printed = io.StringIO()
    code = compile("\n" * (line - 1) + source, str(page), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, space)
    return printed.getvalue()


def tidy(text):
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_blocks_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    if page.stem == "neural":
        require_torch()
    monkeypatch.chdir(tmp_path)
    space, printed = {"__name__": "__main__"}, None
    for kind, body, line in blocks(page):
        if kind == "python":
            printed = execute(body, page, line, space)
        elif kind == "text" and printed is not None:
            assert tidy(printed) == tidy(body), f"{name(page)}, line {line}"
            printed = None
        else:
            printed = None
    pyplot.close("all")


SENTENCES = "the D B-NP\ncat N I-NP\nsees V B-VP\n\na D B-NP\nold J I-NP\ndog N I-NP\nsleeps V B-VP\n\n"


def commands(page):
    """The hscrf commands of a page's shell blocks, each with its line; the demo has a test of its own."""
    for kind, body, first in blocks(page):
        for line, text in enumerate(body.splitlines() if kind == "sh" else (), start=first):
            words = shlex.split(text, comments=True)
            if words[:1] == ["hscrf"] and words[1:] != ["demo"]:
                yield line, words[1:]


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))], ids=name)
def test_shell_commands_run(page, tmp_path, monkeypatch, capsys):
    from hscrf import cli

    if page.stem == "neural":
        require_torch()
    monkeypatch.chdir(tmp_path)
    for file in ("train.txt", "test.txt"):
        Path(file).write_text(SENTENCES)
    for kind, body, _ in blocks(page):
        if kind == "toml":
            Path("words.toml").write_text(body)
    for line, words in commands(page):
        target = words[words.index(">") + 1] if ">" in words else None
        code = cli.main(words[: words.index(">")] if target else words)
        printed = capsys.readouterr()
        assert code == 0, f"{name(page)}, line {line}: {printed.err}"
        if target:
            Path(target).write_text(printed.out)


@pytest.mark.parametrize("page", [*PAGES[1:], *sorted(ROOT.glob("[A-Z]*.md"))], ids=name)
def test_links_lead_somewhere(page):
    for match in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        target = match["path"]
        made = target.startswith("gallery/")  # written when the site is built
        assert made or (page.parent / target).exists(), f"{name(page)} links to {target}"


def run_in_a_process(example, folder):
    """What an example prints if it is started by hand."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "Agg"}
    command = [sys.executable, "-W", "error", str(example), str(folder)]
    run = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def run_here(monkeypatch, capsys):
    """The same without the time that a process needs to start; warnings are errors here too."""

    def run(example, folder):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", [str(example), str(folder)])
        runpy.run_path(str(example), run_name="__main__")
        return capsys.readouterr().out

    yield run
    pyplot.close("all")


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_examples_run_and_draw(example, tmp_path, run_here):
    run = run_in_a_process if example == EXAMPLES[0] else run_here
    printed = run(example, tmp_path)
    assert re.search(r"\d", printed), "an example prints a result"
    drawn = {match for match in re.findall(r'"(\w+\.png)"', example.read_text(encoding="utf-8"))}
    assert {path.name for path in tmp_path.glob("*.png")} == drawn


def test_the_readme_is_short_and_its_picture_small():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
    pictures = [path for path in (ROOT / "docs" / "images").iterdir() if path.is_file()]
    assert [path.name for path in pictures] == ["segments.png"]
    assert pictures[0].stat().st_size < 100_000


def test_every_public_name_is_in_the_reference():
    import hscrf

    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [public for public in hscrf.__all__ if not re.search(rf"\b{public}\b", reference)] == []
