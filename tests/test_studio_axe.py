"""Accessibility of the studio's page, by axe-core in a real browser, in its main states and both themes."""

import os
import shutil
import subprocess

import pytest

from browsing import ROOM, Desk, start_browser

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf.studio import serve
from studio_fixtures import TOPOLOGY, sentences, small_model

AXE = "axe-core@4"
RUN = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`);
}"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The text of axe-core, installed by npm into a folder of the test; skipped where that cannot be."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on this machine: axe-core cannot be installed")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder), AXE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not install axe-core within two minutes")
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if done.returncode or not script.exists():
        pytest.skip(f"npm could not install axe-core: {done.stderr.strip()[-200:]}")
    return script.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def desk(playwright, tmp_path_factory):
    browser = start_browser(playwright)
    folder = tmp_path_factory.mktemp("studio")
    options = {"model": small_model(), "topology": TOPOLOGY, "port": 0, "kind": "text", "train_after": 1000}
    with serve(sentences()[0], db=folder / "labels.sqlite", **options) as session:
        yield Desk(browser.new_context(viewport=ROOM).new_page()).open(session.url)
    browser.close()


def contradict(desk):
    """Two labels that cannot be true together: a D is no part of a VP."""
    desk.press("Home", "ArrowDown", "Home").fix("1")
    desk.press("ArrowUp").fix("2")
    desk.page.locator("#conflict").wait_for()


STATES = {
    "tracks": lambda desk: None,
    "guidelines": lambda desk: desk.press("r"),
    "list": lambda desk: desk.press("o"),
    "menu": lambda desk: desk.press("i"),
    "keys": lambda desk: desk.press("?"),
    "labels": lambda desk: desk.press("d"),
    "progress": lambda desk: desk.press("p"),
    "history": lambda desk: desk.press("h"),
    "note": lambda desk: desk.press("e"),
    "files": lambda desk: desk.page.click("#files"),
    "settings": lambda desk: desk.page.click("#settings"),
    "contradiction": contradict,
}
SHOWN = {"menu": "[role=menu]", "guidelines": "#guide:not([hidden])", "list": "#outline:focus-within"}
DIALOGS = ("keys", "labels", "progress", "history", "note", "files", "settings")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(axe, desk, state, theme):
    if not desk.page.evaluate("() => 'axe' in window"):
        desk.page.evaluate(axe)
    desk.page.emulate_media(color_scheme=theme)
    desk.page.focus("#stage")
    if state != "contradiction" or not desk.view()["conflict"]:
        STATES[state](desk)
    if state in SHOWN or state in DIALOGS:
        desk.page.wait_for_selector(SHOWN.get(state, "dialog[open]"))
    found = desk.page.evaluate(RUN)
    if state == "guidelines":
        desk.page.focus("#stage")
        desk.press("r")
    elif state in SHOWN or state in DIALOGS:
        desk.press("Escape")
        desk.page.locator("dialog[open], [role=menu]").wait_for(state="detached")
    assert found == []
