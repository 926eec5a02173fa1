"""Accessibility of texts, of changed keys and of the tour, by axe-core in a real browser, in both themes."""

import os

import pytest

from browsing import ROOM, Tab

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf.studio import serve
from test_studio_axe import RUN
from test_studio_axe import axe as axe
from test_studio_text import HEBREW, TEXTS, TOPOLOGY


@pytest.fixture(scope="module")
def tab(browser, tmp_path_factory):
    context = browser.new_context(viewport=ROOM)
    folder = tmp_path_factory.mktemp("studio")
    with serve([*TEXTS, *HEBREW], topology=TOPOLOGY, db=folder / "labels.sqlite", port=0) as session:
        yield Tab(context.new_page()).open(session.url)
    context.close()


def change_tokens(tab):
    tab.page.click("#settings")
    tab.page.select_option("#tokens", "characters")
    tab.wait_text("#tokens-said", "single characters")


def change_keys(tab):
    tab.page.click("#settings")
    tab.page.click("#change-keys")
    tab.page.click('.remap [data-command="note"]')
    tab.press("k")
    tab.wait_text(".remap-said", "belongs to")


def take_tour(tab, steps):
    tab.press("?")
    tab.page.click("#tour-again")
    for _ in range(steps):
        tab.press("Enter")
    tab.wait_text("#tour", f"{steps + 1} of 7")


STATES = {
    "sequences": lambda tab: tab.page.wait_for_selector(".neighbour"),
    "tokens": change_tokens,
    "keys": change_keys,
    "tour": lambda tab: take_tour(tab, 1),
    "last step": lambda tab: take_tour(tab, 6),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(axe, tab, state, theme):
    if not tab.page.evaluate("() => 'axe' in window"):
        tab.page.evaluate(axe)
    tab.page.emulate_media(color_scheme=theme)
    tab.page.focus("#tracks")
    STATES[state](tab)
    found = tab.page.evaluate(RUN)
    tab.press("Escape")
    tab.page.locator("dialog[open], #tour").wait_for(state="detached")
    assert found == []
