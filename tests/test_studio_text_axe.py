"""Accessibility of texts, of changed keys and of the tour, by axe-core in a real browser, in both themes."""

import os

import pytest

from browsing import ROOM, Desk, start_browser

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf.studio import serve
from test_studio_axe import RUN
from test_studio_axe import axe as axe
from test_studio_text import HEBREW, TEXTS, TOPOLOGY


@pytest.fixture(scope="module")
def desk(playwright, tmp_path_factory):
    browser = start_browser(playwright)
    folder = tmp_path_factory.mktemp("studio")
    with serve([*TEXTS, *HEBREW], topology=TOPOLOGY, db=folder / "labels.sqlite", port=0) as session:
        yield Desk(browser.new_context(viewport=ROOM).new_page()).open(session.url)
    browser.close()


def change_tokens(desk):
    desk.page.click("#settings")
    desk.page.select_option("#tokens", "characters")
    desk.wait_text("#tokens-said", "single characters")


def change_keys(desk):
    desk.page.click("#settings")
    desk.page.click("#change-keys")
    desk.page.click('.remap [data-command="note"]')
    desk.press("k")
    desk.wait_text(".remap-said", "belongs to")


def take_tour(desk, steps):
    desk.press("?")
    desk.page.click("#tour-again")
    for _ in range(steps):
        desk.press("Enter")
    desk.wait_text("#tour", f"{steps + 1} of 7")


STATES = {
    "sequences": lambda desk: desk.page.wait_for_selector(".neighbour"),
    "tokens": change_tokens,
    "keys": change_keys,
    "tour": lambda desk: take_tour(desk, 1),
    "last step": lambda desk: take_tour(desk, 6),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(axe, desk, state, theme):
    if not desk.page.evaluate("() => 'axe' in window"):
        desk.page.evaluate(axe)
    desk.page.emulate_media(color_scheme=theme)
    desk.page.focus("#stage")
    STATES[state](desk)
    found = desk.page.evaluate(RUN)
    desk.press("Escape")
    desk.page.locator("dialog[open], #tour").wait_for(state="detached")
    assert found == []
