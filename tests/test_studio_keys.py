"""Keys that a person changes, and the tour, in a real browser."""

import os

import pytest

from browsing import ROOM, Desk, start_browser

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf import Topology
from hscrf.studio import serve

TOPOLOGY = Topology({"entity": ["person", "place", "O"], "part": ["name", "other"]})


@pytest.fixture(scope="module")
def browser(playwright):
    chromium = start_browser(playwright)
    yield chromium
    chromium.close()


@pytest.fixture
def desk(browser, tmp_path):
    context = browser.new_context(viewport=ROOM)
    texts = ["Ada met Mr. Babbage in London.", "She wrote.", "They went home."]
    with serve(texts, topology=TOPOLOGY, db=tmp_path / "notes.sqlite", port=0) as session:
        desk = Desk(context.new_page()).open(session.url)
        yield desk
        assert desk.errors == []
    context.close()


def change(desk, command, key):
    """Ask for another key in the dialog."""
    desk.page.click(f'.remap [data-command="{command}"]')
    desk.press(key)


def open_remap(desk):
    desk.page.click("#settings")
    desk.page.click("#change-keys")
    desk.wait_text("#dialog-title", "Change keys")


# -- keys


def test_a_command_gets_another_key(desk):
    open_remap(desk)
    change(desk, "undo", "j")
    desk.wait_text(".remap-said", '"undo" has the key j now')
    desk.press("Escape")
    desk.page.focus("#stage")
    desk.fix("1").fix("j")
    assert desk.view()["segments"]["entity"][0][2] is None
    desk.fix("1").press("z")
    assert desk.view()["segments"]["entity"][0][2] == "person", "the former key does nothing"
    assert "(j)" in desk.page.get_attribute("#undo", "title")
    assert "j" in desk.page.locator(".hints kbd").all_inner_texts()
    desk.press("?")
    assert "j undo" in " ".join(desk.text("dialog .sheet").split())
    desk.page.reload()
    desk.page.wait_for_selector("html[data-painted]")
    desk.page.focus("#stage")
    desk.fix("j")


def test_a_key_that_another_command_has_is_explained_and_may_be_taken(desk):
    open_remap(desk)
    change(desk, "note", "k")
    desk.wait_text(".remap-said", 'k belongs to "skip the sequence')
    desk.wait_text(".remap-said", "is left without a key")
    desk.press("Enter")  # the button that takes it has the focus
    desk.wait_text(".remap-said", '"write a note" has the key k now')
    assert desk.text('.remap [data-command="skip"]') == "no key"
    desk.page.click('.remap div:has([data-command="skip"]) button:last-child')
    desk.wait_text(".remap-said", "reset that first")
    desk.page.click("dialog >> text=Reset all keys")
    assert desk.text('.remap [data-command="skip"]') == "k"
    assert desk.text('.remap [data-command="note"]') == "e"


@pytest.mark.parametrize(
    ("key", "words"),
    [("3", "The digit 3 gives the label"), ("Tab", "Tab cannot be changed"), ("Control+r", "belongs to the browser")],
)
def test_keys_that_stay_are_explained(desk, key, words):
    open_remap(desk)
    change(desk, "note", key)
    desk.wait_text(".remap-said", words)
    assert desk.text('.remap [data-command="note"]') == "e"


def test_escape_leaves_a_key_and_a_label_keeps_its_own(desk):
    desk.press("d")
    desk.page.fill('[aria-label="key of place"]', "w")
    desk.page.click("dialog >> text=Check what it does")
    desk.page.click("dialog >> text=Apply")
    desk.wait_text("#message", "labels changed")
    open_remap(desk)
    change(desk, "note", "w")
    desk.wait_text(".remap-said", "w is the key of the label place of entity")
    change(desk, "note", "Escape")
    desk.wait_text(".remap-said", "Nothing was changed")
    assert desk.page.locator("dialog[open]").count() == 1
    change(desk, "flag", "w")
    assert desk.text('.remap [data-command="flag"]') == "x"


def test_a_key_of_a_command_is_no_label_key_until_it_is_changed(desk):
    open_remap(desk)
    change(desk, "flag", "j")
    desk.press("Escape", "d")
    desk.page.fill('[aria-label="key of place"]', "j")
    desk.page.click("dialog >> text=Check what it does")
    desk.wait_text(".edit-result", "give the command another key in Settings, Change keys")
    desk.page.fill('[aria-label="key of place"]', "x")
    desk.page.click("dialog >> text=Check what it does")
    desk.wait_text(".edit-result", "Only looks change")


# -- the tour


def test_the_tour_goes_with_the_work(desk):
    desk.page.click("#tour-start")
    desk.wait_text("#tour", "1 of 7")
    desk.press("Enter")
    desk.wait_text("#tour-title", "Drag over some words")
    found = [word.bounding_box() for word in desk.page.locator(".paper .wordline > span").all()]
    places = [(box["x"] + box["width"] / 2, box["y"] + 40) for box in found[:2]]
    desk.drag(*places)
    desk.wait_text("#tour-title", "Press 1")
    desk.fix("1")
    desk.wait_text("#tour-title", "Nothing can be lost")
    assert desk.view()["segments"]["entity"][0] == [0, 2, "person"]
    for _ in range(4):
        desk.page.click("#tour .main")
    desk.page.locator("#tour").wait_for(state="detached")
    assert desk.page.locator("#tour-invite").is_hidden()


def test_the_tour_is_left_at_any_moment_and_begun_again(desk):
    assert desk.page.locator("#tour-invite").is_visible()
    desk.page.click("#tour-start")
    desk.press("Enter", "Escape")
    desk.page.locator("#tour").wait_for(state="detached")
    assert desk.page.locator(".toured").count() == 0
    desk.wait_focus("it.id === 'stage'")
    desk.page.reload()
    desk.page.wait_for_selector("html[data-painted]")
    assert desk.page.locator("#tour-invite").is_hidden(), "it is offered once"
    desk.press("?")
    desk.page.click("#tour-again")
    desk.wait_text("#tour", "1 of 7")
    assert desk.page.locator("dialog[open]").count() == 0
    desk.page.focus("#stage")
    desk.press("Escape")
    desk.page.locator("#tour").wait_for(state="detached")


def test_the_tour_can_be_declined(desk):
    desk.page.click("#tour-never")
    assert desk.page.locator("#tour-invite").is_hidden()


@pytest.mark.parametrize("width", [900, 1920])
def test_every_step_of_the_tour_is_on_the_screen(desk, width):
    desk.page.set_viewport_size({"width": width, "height": 700})
    desk.page.click("#tour-start")
    for _ in range(7):
        box = desk.page.locator("#tour").bounding_box()
        assert box["x"] >= 0
        assert box["y"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= 700
        desk.page.click("#tour .main")
