"""Takes the pictures of the studio: ``python docs/screenshots.py FOLDER``.

Needs a Chromium and Playwright. Where one is missing each picture says so instead: the site can be built anyway.
"""

import shutil
import sys
import tempfile
from pathlib import Path

LAPTOP, LARGE = (1280, 800), (2560, 1440)
PICTURES = {  # name: (demonstration, size, colours, what the person does, what the eye sees)
    "studio_time": ("days", LAPTOP, "light", ["n"], None),
    "studio_fixed": ("days", LAPTOP, "light", ["Home", "2"], None),
    "studio_dark": ("days", LAPTOP, "dark", ["ArrowDown", "n", "n"], None),
    "studio_large": ("days", LARGE, "light", ["n"], None),
    "studio_text": ("citations", LAPTOP, "light", ["ArrowDown", "n"], None),
    "studio_keys": ("days", LAPTOP, "light", ["?"], None),
    "studio_progress": ("days", LAPTOP, "light", ["A", "A", "A", "p"], None),
    "studio_list": ("citations", LAPTOP, "light", ["ArrowDown", "o"], None),
    "studio_conflict": ("citations", LAPTOP, "light", ["contradict"], None),
    "studio_deuteranopia": ("days", LAPTOP, "light", ["n"], "deuteranopia"),
    "studio_grey": ("days", LAPTOP, "light", ["n"], "achromatopsia"),
    "studio_sound": ("recordings", LAPTOP, "light", ["ArrowDown", "n", "ArrowRight"], None),
}


def find_browser():
    """Path of a Chromium, None where it or what drives it is missing."""
    try:
        import playwright, starlette, uvicorn  # noqa: E401, F401, I001
    except ImportError:
        return None
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def write_blanks(folder):
    """A picture that says why there is none."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    for name in PICTURES:
        figure = plt.figure(figsize=(6.4, 1))
        figure.text(0.5, 0.5, f"{name}: no browser where this site was built", ha="center", va="center")
        figure.savefig(folder / f"{name}.png")
        plt.close(figure)


def start(which, folder):
    """A server on a demonstration, or on recordings."""
    from hscrf.studio.demonstration import demo
    from hscrf.studio.server.serving import Server
    from hscrf.studio.server.studio import Studio

    project = recordings(folder) if which == "recordings" else demo(which)
    server = Server(Studio(project, str(folder / f"{which}.sqlite")), 0)
    server.start()
    return server


def recordings(folder, count=6, frequency=16_000, rate=20):
    """Recordings of hums, whistles and beeps; all but one are labelled."""
    import wave

    import numpy as np

    from hscrf import Labels, Topology
    from hscrf.io import read_audio
    from hscrf.studio.data.project import Project
    from hscrf.studio.data.sequences import InputSequence

    pitches = {"hum": (150, 150), "whistle": (900, 2500), "beep": (1500, 1500)}
    topology = Topology({"phase": ["quiet", "song"], "sound": list(pitches)}, max_duration={"sound": None})
    rng, items, media = np.random.default_rng(4), [], {}
    for n in range(count):
        parts = [(name, int(rng.integers(14, 50))) for _ in range(3) for name in ("hum", "whistle", "beep")]
        pieces = []
        for name, steps in parts:
            time = np.arange(steps * frequency // rate) / frequency
            low, high = pitches[name]
            pieces.append(0.4 * np.sin(2 * np.pi * (low * time + (high - low) * time**2 / (2 * time[-1]))))
        sound = np.concatenate(pieces) + 0.02 * rng.normal(size=sum(map(len, pieces)))
        path = folder / f"recording_{n}.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(frequency)
            file.writeframes((32_000 * sound).astype("<i2").tobytes())
        document = read_audio(path, rate)
        tree = []
        for name, steps in parts:
            phase = "quiet" if name == "hum" else "song"
            if not tree or tree[-1][0] != phase:
                tree.append((phase, []))
            tree[-1][1].append((name, steps))
        labels = Labels.from_tree(topology, tree) if n else None
        items.append(InputSequence(path.stem, document.tokens, np.array(document.tokens), labels))
        media[path.stem] = str(path)
    names = document.columns
    return Project(items, topology, column_names=names, kind="time", rate=rate, media=media, name="labels.sqlite")


def wait_for_model(page):
    """Until a model has been trained from the labelled half, and answers."""
    page.wait_for_selector("html[data-painted]")
    page.wait_for_function("() => !document.querySelector('#about').textContent.includes('no model')")


def contradict(page):
    """A part that its field cannot have, then the field."""
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("year")
    press(page, "Enter")
    page.keyboard.press("ArrowUp")
    press(page, "2")


def press(page, key):
    """Press a key; wait until what it changed is on the screen."""
    before = page.get_attribute("html", "data-painted")
    page.keyboard.press(key)
    if key in "123456789A" or key == "Enter":
        page.wait_for_function("before => document.documentElement.dataset.painted !== before", arg=before)


def take(browser, context, url, picture, path):
    _, (width, height), colours, hands, eyes = picture
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=colours, reduced_motion="reduce")
    page.goto(url)
    wait_for_model(page)
    if picture[0] == "recordings":
        page.wait_for_selector("#tracks[data-sound]")
    if eyes:
        context.new_cdp_session(page).send("Emulation.setEmulatedVisionDeficiency", {"type": eyes})
    for key in hands:
        contradict(page) if key == "contradict" else press(page, key)
    page.wait_for_timeout(1500)  # what flashes has faded, alternatives are there
    page.screenshot(path=path)
    page.close()


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    found = find_browser()
    if found is None:
        return write_blanks(folder)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for which in ("days", "citations", "recordings"):
            server = start(which, Path(work))
            context = browser.new_context()
            context.new_page().goto(server.url)
            for name, picture in PICTURES.items():
                if picture[0] == which:
                    take(browser, context, server.url.split("?")[0], picture, folder / f"{name}.png")
            context.close()
            server.stop()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
