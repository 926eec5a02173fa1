"""Pictures of every state of the studio's page: ``python benchmarks/studio_states.py FOLDER [--only text/keys ...]``.

Three databases (citations, days with channels, recordings with sound) are opened in a real browser. Each state is shown
in light and dark colours, in windows of 900, 1,280 and 1,920 pixels, and at 50 % and 200 % of the size of the page. The
plain states are also shown in grey and to three kinds of colour-blind eyes. Each state becomes one sheet. For
each picture the script also checks that the page does not scroll to the side, and that no text of a button is cut.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from hscrf import Labels, Topology
from hscrf.io.audio import band_energies
from hscrf.studio.data.project import Project
from hscrf.studio.data.sequences import InputSequence, tokens_of
from hscrf.studio.demonstration import demo
from hscrf.studio.server.serving import Server
from hscrf.studio.server.studio import Studio
from test_audio import tone, write_wave

ROOMS = {  # width and height of the window in pixels, size of the page
    "900": (900, 700, 1.0),
    "1280": (1280, 800, 1.0),
    "1920": (1920, 1080, 1.0),
    "1280 at 50 %": (1280, 800, 0.5),
    "1280 at 200 %": (1280, 800, 2.0),
}
THEMES = ("light", "dark")
EYES = ("achromatopsia", "deuteranopia", "protanopia", "tritanopia")
CUT = """() => [...document.querySelectorAll("button, h2, label")].filter((it) => {
  if (it.closest("#outline:not(:focus-within)")) return false;
  const { overflowX, textOverflow } = getComputedStyle(it);
  return it.clientWidth && it.scrollWidth > it.clientWidth + 1 && overflowX !== "auto" && textOverflow !== "ellipsis";
}).map((it) => it.id || it.textContent.slice(0, 30))"""


def keys(*names: str) -> Callable[[Page], None]:
    def press(page: Page) -> None:
        page.focus("#tracks")
        for name in names:
            page.keyboard.press(name)

    return press


def menu_item(name: str) -> Callable[[Page], None]:
    def click(page: Page) -> None:
        page.click("#more")
        page.get_by_role("menuitem", name=name).click()

    return click


def contradict(page: Page) -> None:
    """A part that its field cannot have, then the field."""
    page.focus("#tracks")
    for key in ("Home", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.keyboard.type("year")
    fixed(page, "Enter")
    page.keyboard.press("ArrowUp")
    fixed(page, "2")
    page.wait_for_selector("#conflict:not([hidden])")


def fixed(page: Page, key: str) -> None:
    before = page.get_attribute("html", "data-painted")
    page.keyboard.press(key)
    page.wait_for_function("before => document.documentElement.dataset.painted !== before", arg=before)


def fix(page: Page) -> None:
    page.focus("#tracks")
    page.keyboard.press("Home")
    fixed(page, "2")


def offline(page: Page) -> None:
    page.route("**/events", lambda route: route.abort())
    page.focus("#tracks")
    page.keyboard.press("Home")
    page.keyboard.press("2")
    page.wait_for_function("() => document.querySelector('#saved').textContent.includes('NOT')")


def filtered(page: Page) -> None:
    page.select_option("#filter", "doubtful")


def change_keys(page: Page) -> None:
    page.click("#settings")
    page.get_by_role("button", name="Change keys").click()


DIALOGS = {
    "keys": keys("?"),
    "labels": keys("d"),
    "progress": keys("p"),
    "history": keys("h"),
    "note": keys("e"),
    "files": lambda page: page.click("#files"),
    "settings": lambda page: page.click("#settings"),
    "change-keys": change_keys,
    "bulk": menu_item("Accept many"),
}
STATES: dict[str, dict[str, Callable[[Page], Any]]] = {
    "text": {
        "plain": lambda page: None,
        "menu": keys("i"),
        "guidelines": keys("r"),
        "list": keys("o"),
        "filtered": filtered,
        "offline": offline,
        **DIALOGS,
        "contradiction": contradict,
    },
    "days": {
        "plain": lambda page: None,
        "doubt": keys("n"),
        "zoomed": keys("n", "f"),
        "channels": keys("v"),
        "tour": lambda page: page.click("#tour-start"),
        "fixed": fix,
    },
    "sound": {
        "plain": lambda page: None,
        "zoomed": keys("+", "+", "+", "+"),
        "channels": keys("v"),
        "chosen": keys("Home", "Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight"),
        "files": lambda page: page.click("#files"),
    },
}


def start(which: str, folder: Path) -> Server:
    """A server on a demonstration, or on recordings of hums and beeps."""
    project = demo({"text": "citations"}.get(which, which)) if which != "sound" else recordings(folder)
    server = Server(Studio(project, str(folder / f"{which}.sqlite")), 0)
    server.start()
    return server


def recordings(folder: Path, count: int = 8) -> Project:
    """Recordings of quiet and song, the first half labelled."""
    topology = Topology(
        {"phase": ["quiet", "song"], "sound": ["hum", "beep"]},
        children={"phase": {"quiet": ["hum"], "song": ["hum", "beep"]}},
        max_duration={"sound": None},
    )
    rng, items, media = np.random.default_rng(0), [], {}
    for n in range(count):
        parts = [(name, int(rng.integers(8, 30))) for _ in range(3) for name in ("hum", "beep")]
        samples = np.concatenate([tone(150 if name == "hum" else 900, steps / 20) for name, steps in parts])
        wave = write_wave(folder / f"rec_{n:02d}.wav", samples + 0.05 * rng.normal(size=len(samples)))
        table, names = band_energies(samples, 8000, 20.0)
        tree = [(("song" if k else "quiet"), [part]) for k, part in enumerate(parts)]
        labels = Labels.from_tree(topology, tree) if n < count // 2 else None
        items.append(InputSequence(wave.stem, tokens_of(table), table, labels))
        media[wave.stem] = str(wave)
    return Project(items, topology, rate=20, media=media, column_names=tuple(names), name="recordings", kind="time")


def pictures(browser: Browser, which: str, states: dict[str, Callable[[Page], Any]], folder: Path) -> Iterator[str]:
    """Show every state everywhere; a sheet for each state, and a line for each complaint."""
    with tempfile.TemporaryDirectory() as work:
        server = start(which, Path(work))
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(server.url)
        page.wait_for_function("() => document.querySelector('#about')?.textContent.includes('doubt')")
        cookies, address = context.storage_state(), page.url.split("#")[0]
        for name, enter in states.items():
            shots = []
            for room, (width, height, scale) in ROOMS.items():
                options = {"viewport": {"width": int(width / scale), "height": int(height / scale)}}
                with_login = browser.new_context(storage_state=cookies, device_scale_factor=scale, **options)
                page = with_login.new_page()
                page.set_default_timeout(60_000)
                page.emulate_media(reduced_motion="reduce")
                page.goto(address)
                page.wait_for_function("() => document.querySelector('#about')?.textContent.includes('doubt')")
                if which == "sound":
                    page.wait_for_selector("#tracks[data-sound]")
                page.wait_for_function("() => document.querySelector('.label .share')?.textContent")
                enter(page)
                page.wait_for_timeout(400)  # dialogs and alternatives are there
                yield from (f"{which}/{name}, {room}: {words}" for words in complaints(page))
                for theme in THEMES:
                    page.emulate_media(color_scheme=theme)
                    page.wait_for_timeout(100)
                    shots.append((f"{room}, {theme}", page.screenshot()))
                if name == "plain" and room == "1280":
                    session = with_login.new_cdp_session(page)
                    page.emulate_media(color_scheme="light")
                    for eye in EYES:
                        session.send("Emulation.setEmulatedVisionDeficiency", {"type": eye})
                        shots.append((eye, page.screenshot()))
                if name in ("contradiction", "fixed"):
                    page.unroute_all()
                    page.keyboard.press("Escape")
                    while page.locator("#undo").is_enabled():
                        fixed(page, "z")
                with_login.close()
            sheet(shots, folder / f"{which}-{name}.png")
        server.stop()


def complaints(page: Page) -> Iterator[str]:
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        yield "the page scrolls to the side"
    for name in page.evaluate(CUT):
        yield f"cut: {name}"


def sheet(shots: list[tuple[str, bytes]], path: Path, columns: int = 2) -> None:
    """Pictures next to each other, light and dark, with their names."""
    rows = -(-len(shots) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(10 * columns, 6.4 * rows), squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, (name, picture) in zip(axes.flat, shots, strict=False):
        axis.imshow(plt.imread(io.BytesIO(picture)), interpolation="lanczos")
        axis.set_title(name)
    figure.tight_layout(pad=0.3)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[""], help="beginnings of names such as text/keys")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for which, states in STATES.items():
            wanted = {name: state for name, state in states.items() if f"{which}/{name}".startswith(tuple(args.only))}
            if wanted:
                for words in pictures(browser, which, wanted, args.folder):
                    print(words, flush=True)
        browser.close()


if __name__ == "__main__":
    main()
