"""Accessibility of the studio's page, by axe-core in a real browser, in its main states and both themes."""

import os
import shutil
import subprocess

import numpy as np
import pytest

from browsing import ROOM, Tab
from test_audio import tone, write_wave

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf import Topology
from hscrf.studio import serve
from hscrf.studio.data.database import Database
from hscrf.studio.data.sequences import InputSequence
from studio_fixtures import TOPOLOGY, sentences, small_model

SERIES = Topology({"part": ["low", "high"], "sound": ["hum", "beep"]}, max_duration={"sound": None})

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
def tab(browser, tmp_path_factory):
    context = browser.new_context(viewport=ROOM)
    folder = tmp_path_factory.mktemp("studio")
    options = {"model": small_model(), "topology": TOPOLOGY, "port": 0, "kind": "text", "train_after": 1000}
    with serve(sentences()[0], db=folder / "labels.sqlite", **options) as session:
        yield Tab(context.new_page()).open(session.url)
    context.close()


def contradict(tab):
    """Two labels that cannot be true together: a D is no part of a VP."""
    tab.press("Home", "ArrowDown", "Home").fix("1")
    tab.press("ArrowUp").fix("2")
    tab.page.locator("#conflict").wait_for()


STATES = {
    "tracks": lambda tab: None,
    "guidelines": lambda tab: tab.press("r"),
    "list": lambda tab: tab.press("o"),
    "menu": lambda tab: tab.press("i"),
    "keys": lambda tab: tab.press("?"),
    "labels": lambda tab: tab.press("d"),
    "progress": lambda tab: tab.press("p"),
    "history": lambda tab: tab.press("h"),
    "note": lambda tab: tab.press("e"),
    "files": lambda tab: tab.page.click("#files"),
    "settings": lambda tab: tab.page.click("#settings"),
    "bulk": lambda tab: (tab.page.click("#more"), tab.page.get_by_role("menuitem", name="Accept many").click()),
    "narrow": lambda tab: tab.page.set_viewport_size({"width": 450, "height": 800}),
    "zoomed": lambda tab: tab.page.set_viewport_size({"width": 640, "height": 400}),
    "contradiction": contradict,
}
SHOWN = {"menu": "[role=menu]", "guidelines": "#guide:not([hidden])", "list": "#outline:focus-within"}
DIALOGS = ("keys", "labels", "progress", "history", "note", "files", "settings", "bulk")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(axe, tab, state, theme):
    if not tab.page.evaluate("() => 'axe' in window"):
        tab.page.evaluate(axe)
    tab.page.emulate_media(color_scheme=theme)
    tab.page.focus("#tracks")
    if state != "contradiction" or not tab.view()["conflict"]:
        STATES[state](tab)
    if state in SHOWN or state in DIALOGS:
        tab.page.wait_for_selector(SHOWN.get(state, "dialog[open]"))
    found = tab.page.evaluate(RUN)
    tab.page.set_viewport_size(ROOM)
    if state == "guidelines":
        tab.page.focus("#tracks")
        tab.press("r")
    elif state in SHOWN or state in DIALOGS:
        tab.press("Escape")
        tab.page.locator("dialog[open], [role=menu]").wait_for(state="detached")
    assert found == []


def violations(tab, axe, theme):
    """What axe finds on a page in a theme."""
    tab.page.evaluate(axe)
    tab.page.emulate_media(color_scheme=theme)
    return tab.page.evaluate(RUN)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_around_a_recording(axe, browser, tmp_path, theme):
    """The player, waveform and spectrogram, and the dialog of channels."""
    wave = write_wave(tmp_path / "day.wav", tone(200))
    options = {"topology": SERIES, "rate": 20, "media": [wave], "port": 0}
    with serve([np.zeros((20, 2)) + np.arange(20)[:, None]], db=tmp_path / "m.sqlite", **options) as session:
        tab = Tab(browser.new_page(viewport=ROOM)).open(session.url)
        tab.page.locator("#player").wait_for()
        tab.page.locator("#tracks[data-sound]").wait_for()
        assert violations(tab, axe, theme) == []
        tab.press("v")
        tab.page.locator("dialog[open]").wait_for()
        assert tab.page.evaluate(RUN) == []
        tab.page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_while_differences_are_settled(axe, browser, tmp_path, theme):
    topology = Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]})
    path = tmp_path / "both.sqlite"
    with Database(path) as store:
        store.set("topology", topology.to_json())
        n = store.add("text", 2, '["a", "dog"]', InputSequence("text", ["a", "dog"], None).sha256)
        rows = [["phrase", 0, 1, "NP", "VP"]]
        store.append(
            n, 0, "1", "differ", {"names": ["ann", "bob"], "rows": rows, "borders": [["phrase", 1, True, False]]}
        )
    with serve([["a", "dog"]], topology=topology, db=path, names=["text"], port=0) as session:
        tab = Tab(browser.new_page(viewport=ROOM)).open(session.url)
        tab.wait_text("#settle", "2 to settle")
        assert violations(tab, axe, theme) == []
        tab.page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_where_another_person_works(axe, browser, tmp_path, theme):
    with serve(sentences(1)[0], topology=TOPOLOGY, db=tmp_path / "r.sqlite", kind="text", port=0) as session:
        first, second = (browser.new_context(viewport=ROOM) for _ in range(2))
        address = session.invite("Bob")
        Tab(first.new_page()).open(session.url)
        tab = Tab(second.new_page()).open(address)
        tab.wait_text("#about", "read only")
        assert violations(tab, axe, theme) == []
        first.close()
        second.close()
        first.close()
        second.close()
