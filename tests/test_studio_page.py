"""The studio's page as files: modules without a build step, nothing inline, nothing from outside, text only as text."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "src" / "hscrf" / "studio" / "page"
MODULES = sorted(PAGE.glob("*.js"))
LONGEST = 350  # lines of a module
STRICT = ["--noEmit", "--allowJs", "--checkJs", "--strict", "--noImplicitAny", "false", "--target", "es2022"]
STRICT += ["--module", "es2022", "--moduleResolution", "bundler", "--lib", "dom,dom.iterable,es2022"]


def source(path):
    return path.read_text(encoding="utf-8")


class Tags(HTMLParser):
    """Tags with their attributes, and the text inside scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.inline = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] in ("script", "style"):
            self.inline.append(data.strip())


INDEX = Tags(source(PAGE / "index.html"))


def test_nothing_is_inline():
    assert not any(INDEX.inline)
    attributes = {name for _, found in INDEX.tags for name in found}
    assert not {name for name in attributes if name == "style" or name.startswith("on")}


def test_everything_comes_from_the_page_itself():
    links = [found[name] for _, found in INDEX.tags for name in ("src", "href") if name in found]
    assert all(link.startswith("#") or (PAGE / link.removeprefix("/page/")).is_file() for link in links)
    for path in [*MODULES, PAGE / "style.css", PAGE / "index.html"]:
        found = set(re.findall(r"https?://[^\s\"'`)]+", source(path)))
        assert found <= {"http://www.w3.org/2000/svg"}, path.name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_module_is_small_and_handles_text_as_text(path):
    text = source(path)
    assert text.startswith("//"), "begins with one thought in words"
    assert text.count("\n") <= LONGEST
    for name in re.findall(r'from "\./([^"]+)"', text):
        assert (PAGE / name).is_file(), name
    unsafe = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.setAttribute\(\"style\""
    assert not re.search(unsafe, text)


def test_every_element_that_a_module_asks_for_is_there():
    ids = {found["id"] for _, found in INDEX.tags if "id" in found}
    asked = {name for path in MODULES for name in re.findall(r'byId\("([^"]+)"\)', source(path))}
    assert asked <= ids


def test_every_colour_is_in_both_themes():
    text = source(PAGE / "style.css")
    names = set(re.findall(r"(--[\w-]+): light-dark\(#[0-9a-f]{6}, #[0-9a-f]{6}\);", text))
    assert names == set(re.findall(r"(--[\w-]+):", text))
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= names
    assert set(re.findall(r"#[0-9a-f]{3,8}\b", text.partition("* {")[2])) == set(), "no colour apart from these"


def test_types_agree():
    """TypeScript reads the comments; nothing is compiled."""
    tsc = shutil.which("tsc")
    if tsc is None:
        pytest.skip("no tsc on this machine (npm install -g typescript)")
    found = subprocess.run([tsc, *STRICT, str(PAGE / "main.js")], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
