"""Documentation: every Python block runs, what it prints is what the page shows, examples draw, words are plain."""

import contextlib
import inspect
import io
import json
import os
import re
import runpy
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from processes import run_script
from torching import require_torch

matplotlib.use("Agg")

from matplotlib import pyplot

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
REAL = sorted((ROOT / "examples" / "real").glob("*.py"))
ON_REAL_DATA = {  # page or example -> folders of its data sets in HSCRF_DATA
    "README.md": ["author_names"],
    "docs/data.md": ["author_names", "ludb"],
    "docs/tutorial-text.md": ["author_names"],
    "docs/tutorial-studio.md": ["author_names"],
    "docs/tutorial-sensors.md": ["ludb"],
    "examples/real/author_names.py": ["author_names"],
    "examples/real/calibration.py": ["conll2000"],
    "examples/real/citations.py": ["umass_citation"],
    "examples/real/heart_beats.py": ["ludb"],
    "examples/real/partial_labels.py": ["author_names"],
}
FENCE = re.compile(r"^```(?P<kind>[^\n`]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)]*))?\)")


TOLERANCE = re.compile(r"<!-- tolerance: (?P<tolerance>[\d.]+) -->\n+\Z")
MEASURED = re.compile(r"\d+\.\d+%?|\d+%")


def blocks(page):
    """Kind, content and line of the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield match["kind"].strip(), match["body"], text.count("\n", 0, match.start()) + 2


def tolerances(page):
    """Line of a block -> the tolerance that a comment before it states."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        stated = TOLERANCE.search(text, 0, match.start())
        if stated:
            yield text.count("\n", 0, match.start()) + 2, float(stated["tolerance"])


def name(path):
    return path.relative_to(ROOT).as_posix()


def require_data(path):
    """Skip pages and examples on real data where HSCRF_DATA does not have it."""
    folder = Path(os.environ.get("HSCRF_DATA") or "none")
    missing = [data for data in ON_REAL_DATA.get(name(path), ()) if not (folder / data).is_dir()]
    if missing:
        pytest.skip(f"{name(path)} reads {missing[0]}, which HSCRF_DATA does not have")


def execute(source, page, line, space):
    """Run a block so that a traceback points into the page; return what it prints."""
    printed = io.StringIO()
    code = compile("\n" * (line - 1) + source, str(page), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, space)
    return printed.getvalue()


KINDS = {  # of fenced blocks -> what executes or reads them
    "python": "test_python_blocks_run_and_print_what_is_shown",
    "text": "test_python_blocks_run_and_print_what_is_shown: output, or the content of a file",
    "sh": "test_shell_commands_run",
    "toml": "test_shell_commands_run: files that the commands read",
    "console": "tests/test_studio_docs.py, in docs/studio.md",
    "docker": "test_the_container_serves_the_model: no container engine is needed",
    "{eval-rst}": "Sphinx",
    "{commands}": "docs/extensions/commands.py",
    "{glossary}": "Sphinx",
    "{toctree}": "Sphinx",
}
INDENTED = re.compile(r"(?<=\n\n) {4}(?![-*] |\d+\. )\S.*")
INSTALLS = re.compile(r"pip install '?(?:hscrf|\.)(?:\[(?P<extras>[\w,]+)\])?'?$")


def never_executed(text):
    """Blocks of a page that no test and no build executes: fences of other kinds, indented code, unknown commands."""
    for match in FENCE.finditer(text):
        if match["kind"].strip() not in KINDS:
            yield f"```{match['kind']}"
        for line in match["body"].splitlines() if match["kind"].strip() == "sh" else ():
            command = line.partition("  #")[0].strip()
            if not command.startswith("hscrf ") and not INSTALLS.match(command):
                yield command
    yield from (match[0].strip() for match in INDENTED.finditer(FENCE.sub("", text)))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_is_executed(page):
    text = page.read_text(encoding="utf-8")
    assert list(never_executed(text)) == []
    assert page.name == "studio.md" or "```console" not in text


def test_blocks_that_are_not_executed_are_found():
    text = "a\n\n```py\n1\n```\n\n    hscrf demo\n\n```sh\nmake tea\npip install 'hscrf[plots]'  # pictures\n```\n"
    assert list(never_executed(text)) == ["```py", "make tea", "hscrf demo"]


def test_what_pages_install_exists():
    extras = set(PROJECT["project"]["optional-dependencies"])
    named = [
        extra
        for page in PAGES
        for match in re.finditer(r"pip install '?hscrf\[([\w,]+)\]", page.read_text(encoding="utf-8"))
        for extra in match[1].split(",")
    ]
    assert named
    assert set(named) <= extras


def tidy(text):
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def measured(text):
    """The numbers of a text that have a decimal point or a percent sign, as fractions."""
    return [float(found.rstrip("%")) / (100 if "%" in found else 1) for found in MEASURED.findall(text)]


def is_shown(printed, shown, tolerance):
    """Whether both texts are equal; measured numbers may differ by ``tolerance``, all else may not."""
    if not tolerance:
        return tidy(printed) == tidy(shown)
    return MEASURED.sub("#", tidy(printed)) == MEASURED.sub("#", tidy(shown)) and np.allclose(
        measured(printed), measured(shown), rtol=0, atol=tolerance + 1e-9
    )


def test_only_measured_numbers_may_differ_and_by_the_tolerance_only(tmp_path):
    assert is_shown("F1 0.848 of 12, 51%\n", "F1 0.85 of 12, 53%", 0.02)
    assert not is_shown("F1 0.848 of 12, 51%", "F1 0.85 of 12, 54%", 0.02)
    assert not is_shown("F1 0.848 of 12", "F1 0.85 of 13", 0.02)
    assert not is_shown("F1 0.848", "F1 0.85", 0)
    page = tmp_path / "page.md"
    page.write_text("```python\n1\n```\n\n<!-- tolerance: 0.02 -->\n\n```text\n1\n```\n\n```text\n1\n```\n")
    assert dict(tolerances(page)) == {8: 0.02}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_blocks_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    require_data(page)
    if page.stem == "neural":
        require_torch()
    monkeypatch.chdir(tmp_path)
    space, printed, stated = {"__name__": "__main__"}, None, dict(tolerances(page))
    for kind, body, line in blocks(page):
        if kind == "python":
            printed = execute(body, page, line, space)
        elif kind == "text" and printed is not None:
            tolerance = stated.get(line, 0)
            assert is_shown(printed, body, tolerance), (
                f"{name(page)}, line {line}: shown\n{body}\nprinted (tolerance {tolerance})\n{printed}"
            )
            printed = None
        else:
            printed = None
    pyplot.close("all")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_the_container_serves_the_model(tmp_path, monkeypatch):
    """The Dockerfile of docs/deployment.md: its last stage, in a folder instead of a container."""
    import httpx

    page = ROOT / "docs" / "deployment.md"
    found = list(blocks(page))
    [dockerfile] = [body for kind, body, _ in found if kind == "docker"]
    python = [body for kind, body, _ in found if kind == "python"]
    [app] = [body for body in python if "app = Starlette(" in body]
    monkeypatch.chdir(tmp_path)
    execute(python[0], page, 1, {})
    Path("app.py").write_text(app)
    last = re.sub(r"\\\n", " ", dockerfile).rpartition("\nFROM ")[2].splitlines()
    [copied] = [shlex.split(line)[1:-1] for line in last if line.startswith("COPY ") and "--from" not in line]
    assert all(Path(file).exists() for file in copied)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for line in last:
        if line.startswith("RUN python "):
            words = [sys.executable, *shlex.split(line)[2:]]
            assert "hscrf" in subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    [command] = [json.loads(line.removeprefix("CMD ")) for line in last if line.startswith("CMD ")]
    port = free_port()
    told = [{"0.0.0.0": "127.0.0.1", "8000": str(port)}.get(word, word) for word in command]
    server = subprocess.Popen([sys.executable, "-m", *told], env=environment, stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            if "Uvicorn running" in line:
                break
        answer = httpx.post(f"http://127.0.0.1:{port}/label", json=[["w=the"], ["w=cat"]])
    finally:
        server.terminate()
        server.communicate()
    assert answer.json()["phrase"] == [[0, 2, "NP"]]


SENTENCES = "the D B-NP\ncat N I-NP\nsees V B-VP\n\na D B-NP\nold J I-NP\ndog N I-NP\nsleeps V B-VP\n\n"


def redirected(words, sign):
    """A command without the redirection ``sign FILE``, and the file; None if there is none."""
    if sign not in words:
        return words, None
    place = words.index(sign)
    return words[:place] + words[place + 2 :], words[place + 1]


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
    Path("notes.txt").write_text("the cat sees\nan old dog sleeps\n")
    for kind, body, _ in blocks(page):
        if kind == "toml":
            Path("words.toml").write_text(body)
    for line, words in commands(page):
        words, target = redirected(words, ">")
        words, given = redirected(words, "<")
        with contextlib.ExitStack() as files:
            if given:
                monkeypatch.setattr("sys.stdin", files.enter_context(open(given)))
            code = cli.main(words)
        printed = capsys.readouterr()
        assert code == 0, f"{name(page)}, line {line}: {printed.err}"
        if target:
            Path(target).write_text(printed.out)


def anchors(page):
    """The names of a page's headings in links: lower case, without signs, blanks as hyphens."""
    headings = re.findall(r"^#+ +(.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_anchors_are_those_of_headings(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title\n\n## The `fit` of *two*, and more\n\n```python\n# a comment\n```\n")
    assert anchors(page) == {"a-title", "the-fit-of-two-and-more"}


@pytest.mark.parametrize("page", [*PAGES[1:], *sorted(ROOT.glob("[A-Z]*.md"))], ids=name)
def test_links_lead_somewhere(page):
    for match in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if match["path"].startswith("gallery/"):  # written when the site is built
            continue
        target = page.parent / match["path"] if match["path"] else page
        assert target.exists(), f"{name(page)} links to {match['path']}"
        if match["anchor"]:
            assert match["anchor"] in anchors(target), f"{name(page)} links to {match['path']}#{match['anchor']}"


@pytest.mark.parametrize("example", [*EXAMPLES, *REAL], ids=name)
def test_examples_run_and_draw(example, tmp_path, monkeypatch, capsys):
    require_data(example)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pyplot, "show", lambda: None)
    pyplot.close("all")
    runpy.run_path(str(example), run_name="__main__")
    assert re.search(r"\d", capsys.readouterr().out), "an example prints a result"
    assert pyplot.get_fignums(), "an example draws"
    assert not list(tmp_path.iterdir()), "an example leaves no files"
    pyplot.close("all")


def test_an_example_runs_by_hand(tmp_path):
    assert "steps are right" in run_script([EXAMPLES[0]], tmp_path)


@pytest.mark.parametrize("example", [*EXAMPLES, *REAL], ids=name)
def test_examples_have_a_title_and_a_place_in_the_gallery(example):
    sys.path.insert(0, str(ROOT / "docs" / "extensions"))
    try:
        import ordering
    finally:
        sys.path.pop(0)
    title, underline, blank, *_ = example.read_text(encoding="utf-8").splitlines()[1:]
    assert len(title) == len(underline)
    assert (set(underline), blank) == ({"="}, "")
    assert example.stem in ordering.ORDER
    assert (example.stem in ordering.DATA) == (example.parent.name == "real")


def test_the_readme_is_short_and_its_links_work_elsewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    relative = [match["path"] for match in LINK.finditer(FENCE.sub("", text))]
    assert relative == [], "PyPI shows the README without the repository"
    here = re.findall(r"https://(?:github|raw\.githubusercontent)\.com/hscrf/hscrf/(?:blob/)?main/([^)\s]+)", text)
    assert here
    assert [path for path in here if not (ROOT / path).exists()] == []


def test_pictures_are_small():
    pictures = [path for path in (ROOT / "docs" / "images").iterdir() if path.is_file()]
    assert [path.name for path in pictures if path.stat().st_size > 120_000] == []


def words():
    """docs/words.py as a module."""
    return runpy.run_path(str(ROOT / "docs" / "words.py"))


def test_pages_have_no_banned_phrase_and_few_long_sentences():
    check = words()
    found, every, long = [], 0, 0
    for page in check["pages"]([ROOT / "README.md", ROOT / "docs"]):
        text = page.read_text(encoding="utf-8")
        found += [(page.name, line, phrase) for line, phrase in check["banned"](text)]
        sentences, lengthy = check["long_sentences"](check["prose"](text))
        every += len(sentences)
        long += len(lengthy)
    assert found == []
    assert long < 0.03 * every


def test_no_line_of_a_page_is_a_comment():
    """MyST leaves out lines that begin with a percent sign: a sentence on the site lacked its middle."""
    lines = [(name(page), line) for page in PAGES for line in FENCE.sub("", page.read_text("utf-8")).splitlines()]
    assert [(page, line) for page, line in lines if line.lstrip().startswith("%")] == []


def test_banned_phrases_and_long_sentences_are_found():
    check = words()
    assert list(check["banned"]("One.\nNobody stands beside\nit.")) == [(2, "Nobody"), (2, "beside")]
    assert list(check["banned"]("```\nbeside\n```\n")) == []
    every, long = check["long_sentences"](check["prose"]("Short. " + "Word " * 31 + "end.\n\n| a | table |\n"))
    assert (len(every), len(long)) == (2, 1)


def test_parameters_of_a_docstring_are_no_sentence():
    text = "Return it.\n\nParameters\n----------\n" + "".join(f"a{k} : int\n    the number k\n" for k in "bcdefghijk")
    check = words()
    assert check["long_sentences"](check["prose"](text))[1]
    assert not check["long_sentences"](check["description"](text))[1]
    long = "a : int\n    " + "Word " * 31 + "end.\n"
    assert len(check["long_sentences"](check["description"](long))[1]) == 1


def test_docstrings_are_examined():
    def documented(a: int) -> int:
        """Return it.

        Parameters
        ----------
        a : int

        Returns
        -------
        int
        """
        return a

    def undocumented(a: int) -> int:
        """Return it."""
        return a

    class Group:
        @classmethod
        def make(cls):
            """Return it."""

        @property
        def size(self):
            pass

        def _own(self):
            pass

    Group.__module__ = "hscrf.nothing"
    check = words()
    assert check["lacks"](documented) == []
    assert check["lacks"](undocumented) == ["Parameters", "Returns"]
    assert dict(check["members"]("Group", Group)) == {
        "Group.make": vars(Group)["make"].__func__,
        "Group.size": Group.size,
    }
    assert check["lacks"](Group.size) == ["a docstring"]
    names = dict(check["public_objects"]())
    assert {"hscrf.HSCRF.fit", "hscrf.HHMM.from_parameters", "hscrf.ChainCRF.weights_"} <= {*names}
    assert "hscrf.HSCRF.new_frame" not in names  # of the contract, which the reference leaves out


def test_public_docstrings_have_their_sections_and_plain_words():
    check = words()
    things = check["examined"]()
    assert {name: check["lacks"](thing) for name, thing in things if check["lacks"](thing)} == {}
    texts = [inspect.getdoc(thing) or "" for _, thing in things]
    assert [phrase for text in texts for _, phrase in check["banned"](text)] == []
    counts = [[len(some) for some in check["long_sentences"](check["description"](text))] for text in texts]
    assert sum(long for _, long in counts) < 0.03 * sum(every for every, _ in counts)


def test_source_files_have_no_banned_phrase():
    check = words()
    files = sorted((ROOT / "src" / "hscrf").rglob("*.py"))
    found = [(file.name, *place) for file in files for place in check["banned"](file.read_text(encoding="utf-8"))]
    assert len(files) > 100
    assert found == []


def test_every_public_name_is_in_the_reference():
    import hscrf

    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [public for public in hscrf.__all__ if not re.search(rf"\b{public}\b", reference)] == []


def test_the_performance_page_is_what_its_script_writes():
    script = runpy.run_path(str(ROOT / "docs" / "performance.py"))
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    introduction, tables = script["INTRODUCTION"], text.removeprefix(script["INTRODUCTION"])
    assert tables != text, "the introduction stands in docs/performance.py"
    assert re.match(r"\nCommit \w{7,40}\+?; .+ cores, .+\.\n\nCommand: `python benchmarks/compare\.py.*`\n", tables)
    assert script["page"]("# Comparisons\n" + tables) == text
    assert script["page"]("Command: `python benchmarks/compare.py --quick --output x.md`") == (
        introduction + "\nCommand: `python benchmarks/compare.py --quick`\n"
    )


def test_tables_of_other_scripts_become_sections():
    script = runpy.run_path(str(ROOT / "benchmarks" / "compare.py"))
    assert script["below"]("# The engine\n\n## Start-up\n\n| a |\n") == "### Start-up\n\n| a |"
    assert script["narrow"]("| T | s | more |\n|--:|--:|--:|\n| 1 | 2 | 3 |\n\n| a |\n", "s") == (
        "| T | s |\n|--:|--:|\n| 1 | 2 |\n\n| a |"
    )
