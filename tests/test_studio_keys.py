"""Keys that a person changes, and the tour, in a real browser."""

import os

import pytest

from browsing import ROOM, Tab, boxes_of

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf import Topology
from hscrf.studio import serve

TOPOLOGY = Topology({"entity": ["person", "place", "O"], "part": ["name", "other"]})


@pytest.fixture
def tab(browser, tmp_path):
    context = browser.new_context(viewport=ROOM)
    texts = ["Ada met Mr. Babbage in London.", "She wrote.", "They went home."]
    with serve(texts, topology=TOPOLOGY, db=tmp_path / "notes.sqlite", port=0) as session:
        tab = Tab(context.new_page()).open(session.url)
        yield tab
        assert tab.errors == []
    context.close()


def change(tab, command, key):
    """Ask for another key in the dialog."""
    tab.page.click(f'.remap [data-command="{command}"]')
    tab.press(key)


def open_remap(tab):
    tab.page.click("#settings")
    tab.page.click("#change-keys")
    tab.wait_text("#dialog-title", "Change keys")


# -- keys


def test_a_command_gets_another_key(tab):
    open_remap(tab)
    change(tab, "undo", "j")
    tab.wait_text(".remap-said", '"undo" has the key j now')
    tab.press("Escape")
    tab.page.focus("#tracks")
    tab.fix("1").fix("j")
    assert tab.view()["segments"]["entity"][0][2] is None
    tab.fix("1").press("z")
    assert tab.view()["segments"]["entity"][0][2] == "person", "the former key does nothing"
    assert "(j)" in tab.page.get_attribute("#undo", "title")
    assert "j" in tab.page.locator(".hints kbd").all_inner_texts()
    tab.press("?")
    assert "j undo" in " ".join(tab.text("dialog .keylist").split())
    tab.page.reload()
    tab.page.wait_for_selector("html[data-painted]")
    tab.page.focus("#tracks")
    tab.fix("j")


def test_a_key_that_another_command_has_is_explained_and_may_be_taken(tab):
    open_remap(tab)
    change(tab, "note", "k")
    tab.wait_text(".remap-said", 'k belongs to "skip the sequence')
    tab.wait_text(".remap-said", "is left without a key")
    tab.press("Enter")  # the button that takes it has the focus
    tab.wait_text(".remap-said", '"write a note" has the key k now')
    assert tab.text('.remap [data-command="skip"]') == "no key"
    tab.page.click('.remap div:has([data-command="skip"]) button:last-child')
    tab.wait_text(".remap-said", "reset that first")
    tab.page.click("dialog >> text=Reset all keys")
    assert tab.text('.remap [data-command="skip"]') == "k"
    assert tab.text('.remap [data-command="note"]') == "e"


@pytest.mark.parametrize(
    ("key", "words"),
    [("3", "The digit 3 gives the label"), ("Tab", "Tab cannot be changed"), ("Control+r", "belongs to the browser")],
)
def test_keys_that_stay_are_explained(tab, key, words):
    open_remap(tab)
    change(tab, "note", key)
    tab.wait_text(".remap-said", words)
    assert tab.text('.remap [data-command="note"]') == "e"


def test_escape_leaves_a_key_and_a_label_keeps_its_own(tab):
    tab.press("d")
    tab.page.fill('[aria-label="key of place"]', "w")
    tab.page.click("dialog >> text=Check what it does")
    tab.page.click("dialog >> text=Apply")
    tab.wait_text("#message", "labels changed")
    open_remap(tab)
    change(tab, "note", "w")
    tab.wait_text(".remap-said", "w is the key of the label place of entity")
    change(tab, "note", "Escape")
    tab.wait_text(".remap-said", "Nothing was changed")
    assert tab.page.locator("dialog[open]").count() == 1
    change(tab, "flag", "w")
    assert tab.text('.remap [data-command="flag"]') == "x"


def test_a_key_of_a_command_is_no_label_key_until_it_is_changed(tab):
    open_remap(tab)
    change(tab, "flag", "j")
    tab.press("Escape", "d")
    tab.page.fill('[aria-label="key of place"]', "j")
    tab.page.click("dialog >> text=Check what it does")
    tab.wait_text(".edit-result", "give the command another key in Settings, Change keys")
    tab.page.fill('[aria-label="key of place"]', "x")
    tab.page.click("dialog >> text=Check what it does")
    tab.wait_text(".edit-result", "Only looks change")


# -- the tour


def test_the_tour_goes_with_the_work(tab):
    tab.page.click("#tour-start")
    tab.wait_text("#tour", "1 of 7")
    tab.press("Enter")
    tab.wait_text("#tour-title", "Drag over some words")
    found = boxes_of(tab.page.locator(".paper .wordline > span"))
    places = [(box["x"] + box["width"] / 2, box["y"] + 40) for box in found[:2]]
    tab.drag(*places)
    tab.wait_text("#tour-title", "Press 1")
    tab.fix("1")
    tab.wait_text("#tour-title", "Nothing can be lost")
    assert tab.view()["segments"]["entity"][0] == [0, 2, "person"]
    for _ in range(4):
        tab.page.click("#tour .main")
    tab.page.locator("#tour").wait_for(state="detached")
    assert tab.page.locator("#tour-invite").is_hidden()


def test_the_tour_is_left_at_any_moment_and_begun_again(tab):
    assert tab.page.locator("#tour-invite").is_visible()
    tab.page.click("#tour-start")
    tab.press("Enter", "Escape")
    tab.page.locator("#tour").wait_for(state="detached")
    assert tab.page.locator(".toured").count() == 0
    tab.wait_focus("it.id === 'tracks'")
    tab.page.reload()
    tab.page.wait_for_selector("html[data-painted]")
    assert tab.page.locator("#tour-invite").is_hidden(), "it is offered once"
    tab.press("?")
    tab.page.click("#tour-again")
    tab.wait_text("#tour", "1 of 7")
    assert tab.page.locator("dialog[open]").count() == 0
    tab.page.focus("#tracks")
    tab.press("Escape")
    tab.page.locator("#tour").wait_for(state="detached")


def test_the_tour_can_be_declined(tab):
    tab.page.click("#tour-never")
    assert tab.page.locator("#tour-invite").is_hidden()


@pytest.mark.parametrize("width", [900, 1920])
def test_every_step_of_the_tour_is_on_the_screen(tab, width):
    tab.page.set_viewport_size({"width": width, "height": 700})
    tab.page.click("#tour-start")
    for _ in range(7):
        box = tab.page.locator("#tour").bounding_box()
        assert box["x"] >= 0
        assert box["y"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= 700
        tab.page.click("#tour .main")
