"""A real browser on the studio's page, synchronised by events instead of waiting times."""

import os
import shutil

import pytest

try:
    from playwright.sync_api import Error as PlaywrightError
except ImportError:
    PlaywrightError = RuntimeError

GUTTER, EDGE = 104, 12  # pixels at the left and at the right of the tracks, as in page/layout.js
ROOM = {"width": 1280, "height": 800}
# Chromium otherwise loads two pages of its own for the popups of the address bar of each window: half of its time.
NO_POPUPS = "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup"


def find_browser():
    """Path of a Chromium on this machine; skips without one, or fails if one is required."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    missing = None if found else "no chromium on this machine (Debian: apt-get install chromium)"
    try:
        import playwright  # noqa: F401
    except ImportError:
        missing = "playwright is not installed (pip install 'hscrf[test]')"
    if missing and os.environ.get("HSCRF_BROWSER") == "required":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    return found


def start_browser(playwright, profile=None):
    """A browser without a window, whose profile outlives it if one is named; its sandbox needs an ordinary user."""
    arguments = [NO_POPUPS, *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [])]
    if profile is not None:
        return playwright.chromium.launch_persistent_context(profile, executable_path=find_browser(), args=arguments)
    return playwright.chromium.launch(executable_path=find_browser(), args=arguments)


def place_of(part):
    """An element and its box; asks again if the element is painted anew in between."""
    box = None
    while box is None:
        handle = part.element_handle()
        box = handle.bounding_box()
    return handle, box


def boxes_of(parts):
    """The boxes of elements, all at one moment."""
    return parts.evaluate_all("parts => parts.map((part) => part.getBoundingClientRect().toJSON())")


class Tab:
    """One tab with the studio in it, and what a person would do there."""

    def __init__(self, page):
        self.page = page
        self.errors = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self.hear)
        page.set_default_timeout(60_000)  # a busy machine is no failure

    def hear(self, message):
        """Record errors of the browser, except answers 409 about outdated alternatives."""
        if message.type == "error" and "/alternatives" not in message.location.get("url", ""):
            self.errors.append(message.text)

    def open(self, url):
        """Open the page; where there is a model, wait until its kernels are compiled and it answers."""
        self.page.goto(url)
        self.page.wait_for_selector("html[data-painted]")
        if self.ask("/api/project")["model"]:
            self.wait_text("#about", "doubt", timeout=180_000)
        return self

    @property
    def painted(self):
        """The sequence and the version on the screen."""
        sequence, version = self.page.get_attribute("html", "data-painted").split(":")
        return int(sequence), int(version)

    def wait_version(self, version, sequence=None):
        painted = f"{sequence or self.painted[0]}:{version}"
        self.page.wait_for_function("wanted => document.documentElement.dataset.painted === wanted", arg=painted)

    def wait_other(self, sequence):
        """Until another sequence is on the screen."""
        self.page.wait_for_function(
            "old => !document.documentElement.dataset.painted.startsWith(old)", arg=f"{sequence}:"
        )

    def wait_text(self, selector, text, timeout=None):
        holds = "([selector, text]) => document.querySelector(selector).textContent.includes(text)"
        self.page.wait_for_function(holds, arg=[selector, text], timeout=timeout)

    def wait_match(self, selector, pattern):
        """Wait until the text of an element matches a regular expression, in syntax common to Python and JavaScript."""
        holds = "([selector, pattern]) => new RegExp(pattern).test(document.querySelector(selector).textContent)"
        self.page.wait_for_function(holds, arg=[selector, pattern])

    def wait_focus(self, condition):
        """Until something holds of the element that has the focus, which is called ``it``."""
        self.page.wait_for_function(f"() => {{ const it = document.activeElement; return {condition}; }}")

    def saves(self, action, events=1):
        """Do it, and wait until as many more events are saved and painted."""
        _, version = self.painted
        action()
        self.wait_version(version + events)
        return self

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        return self

    def fix(self, *keys):
        """Press keys that end in one saved event."""
        return self.saves(lambda: self.press(*keys))

    def ask(self, path):
        return self.page.evaluate("path => fetch(path).then(answer => answer.json())", path)

    def view(self):
        return self.ask(f"/api/sequences/{self.painted[0]}")

    def text(self, selector):
        return self.page.inner_text(selector)

    @property
    def current(self):
        """The description of the selection, once the next frame has drawn it."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self.text("#current")

    def outline(self, level):
        """The segments of a level near the cursor, as a screen reader would read them."""
        self.page.wait_for_selector("#outline:not([aria-busy])", state="attached")
        return self.page.locator(f'#outline ol[aria-label="Segments of {level}"] button').all_inner_texts()

    def choose(self, level, step):
        """Put the cursor on a step by its track."""
        self.page.mouse.click(*self.point(level, step + 0.5))

    def point(self, level, border):
        """Where a border of a level is on the screen, while the whole time sequence is shown."""
        levels = [each["name"] for each in self.ask("/api/project")["levels"]]
        box = self.page.locator("#tracks").bounding_box()
        width = self.page.evaluate("document.getElementById('tracks').clientWidth")
        tall = 44 if box["height"] > 620 else 36
        x = box["x"] + GUTTER + border / self.view()["length"] * (width - GUTTER - EDGE)
        return x, box["y"] + 24 + levels.index(level) * (tall + 6) + tall / 2

    def drag(self, start, stop):
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move(*stop, steps=6)
        self.page.mouse.up()
