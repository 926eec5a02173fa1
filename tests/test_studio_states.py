"""What the page shows in its states: nothing labelled, accepted, accepted in bulk, a first model, narrow windows."""

import json
import os
import threading

import pytest

from browsing import ROOM, Tab

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf import Topology
from hscrf.studio import serve
from hscrf.studio.model.suggestions import Suggester
from hscrf.studio.work.workspace import Workspace
from studio_fixtures import TOPOLOGY, sentences, small_model

WORDS = [["the", "cat", "sees", "the", "dog"], ["a", "dog", "sleeps"]]


@pytest.fixture
def page_on(browser, tmp_path):
    """Open a tab on sequences; at the end no script may have failed."""
    opened = []

    def start(X, room=ROOM, **options):
        session = serve(X, db=tmp_path / f"{len(opened)}.sqlite", port=0, **{"train_after": 1000, **options})
        context = browser.new_context(viewport=room)
        tab = Tab(context.new_page()).open(session.url)
        opened.append((session, context, tab))
        return tab

    yield start
    for session, context, _ in opened:
        context.close()
        session.stop()
    assert [error for _, _, tab in opened for error in tab.errors] == []


def texts(page_on, n=8, **options):
    return page_on(sentences(n)[0], model=small_model(), topology=TOPOLOGY, kind="text", **options)


# -- accepting


def test_accept_is_offered_only_where_there_is_something_to_accept(page_on):
    tab = texts(page_on)
    first = tab.painted[0]
    accept = tab.page.locator("#accept-all")
    enabled = accept.evaluate("it => getComputedStyle(it).backgroundColor")
    tab.press("A")
    tab.wait_other(first)
    tab.press("b")
    tab.wait_text("#about", "done ✓")
    assert accept.is_disabled()
    assert "accepted already" in accept.get_attribute("title")
    assert accept.evaluate("it => getComputedStyle(it).backgroundColor") != enabled, "it does not look enabled"
    tab.press("A")
    tab.wait_text("#message", "accepted already")
    tab.press("i")
    assert tab.page.get_by_role("menuitem", name="Accept the segment").get_attribute("aria-disabled") == "true"
    tab.press("Escape")
    tab.page.focus("#tracks")
    tab.fix("u")
    assert accept.is_enabled(), "what was released can be accepted again"


def test_an_empty_text_says_what_to_do_and_offers_nothing_to_accept(page_on):
    tab = page_on(WORDS, topology=Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]}))
    assert "Drag over steps" in tab.text("#empty")
    assert tab.page.locator("#accept-all").is_disabled()
    tab.press("i")
    assert tab.page.get_by_role("menuitem", name="Accept the segment").get_attribute("aria-disabled") == "true"
    tab.press("Escape")
    tab.page.focus("#tracks")
    tab.fix("1")
    assert tab.page.locator("#empty").is_hidden()


def accept_many(tab):
    tab.page.click("#more")
    tab.page.get_by_role("menuitem", name="Accept many sequences").click()
    tab.page.fill("#least", "0.5")
    tab.press("Tab")
    tab.page.locator(".bulk-list b").wait_for()
    tab.page.get_by_role("button", name="Accept them").click()
    tab.page.get_by_text("accepted.").wait_for()
    tab.press("Escape")
    return tab.ask("/api/queue")["done"]


def test_many_acceptances_are_taken_back_by_one_undo_after_the_dialog_is_closed(page_on):
    tab = texts(page_on)
    count = accept_many(tab)
    assert count > 1
    tab.page.focus("#tracks")
    assert f"{count} sequences" in tab.page.get_attribute("#undo", "title")
    tab.press("z")
    tab.wait_text("#message", f"{count} taken back")
    assert tab.ask("/api/queue")["done"] == 0
    assert accept_many(tab) == count
    tab.page.reload()  # nothing but the database remembers it
    tab.page.wait_for_selector("html[data-painted]")
    tab.page.click("#more")
    tab.page.get_by_role("menuitem", name=f"Undo accepting {count} sequences").click()
    tab.wait_text("#message", f"{count} taken back")
    assert tab.ask("/api/queue")["done"] == 0
    assert tab.ask("/api/project")["batch"] is None


# -- the queue


def test_the_queue_is_filtered_by_doubt(page_on):
    tab = texts(page_on)
    rated = "async () => (await (await fetch('/api/queue')).json()).items.every(item => item.doubt !== null)"
    tab.page.wait_for_function(rated)
    doubts = {str(item["id"]): item["doubt"] for item in tab.ask("/api/queue")["items"]}
    assert tab.page.locator("#doubt").is_hidden()
    tab.page.select_option("#filter", "doubtful")
    tab.page.locator("#doubt").wait_for()
    limit = sorted(doubts.values())[len(doubts) // 3]
    tab.page.fill("#doubt", f"{limit:.6f}")
    for name, holds in (
        ("doubtful", lambda d: d >= float(f"{limit:.6f}")),
        ("sure", lambda d: d <= float(f"{limit:.6f}")),
    ):
        tab.page.select_option("#filter", name)
        wanted = {n for n, doubt in doubts.items() if holds(doubt)}
        shown = "() => [...document.querySelectorAll('.entry')].map(each => each.dataset.id).sort().join()"
        tab.page.wait_for_function(f"wanted => ({shown})() === wanted", arg=",".join(sorted(wanted)))
    tab.page.select_option("#filter", "all")
    assert tab.page.locator("#doubt").is_hidden()


def test_names_in_the_queue_are_not_cut_next_to_free_space(page_on):
    names = [f"recording_{n:02d}_kitchen" for n in range(len(WORDS))]
    tab = page_on(WORDS, topology=Topology({"phrase": ["NP", "VP"]}, max_duration={"phrase": None}), names=names)
    cut = "() => [...document.querySelectorAll('.entry .head')].map(each => each.scrollWidth - each.clientWidth)"
    assert tab.page.evaluate(cut) == [0, 0]


# -- models


def test_the_side_does_not_say_that_the_first_model_waits(page_on):
    X, Y = sentences(6)
    tab = page_on(X, Y=[*Y[:4], None, None], topology=TOPOLOGY, kind="text")
    tab.wait_text("#training", "model 1, trained on 4 sequences", timeout=90_000)
    tab.wait_text("#message", "model 1, trained on 4 sequences is ready")
    assert "takes over" not in tab.text("#training") + tab.text("#message")
    tab.wait_text("#about", "model 1")
    tab.page.click("#train")
    tab.wait_text("#training", "model 2, trained on 4 sequences: takes over with the next sequence", timeout=90_000)
    former, held = tab.ask("/api/project"), []
    assert former["waiting"]["number"] == 2
    tab.page.route("**/api/news", lambda route: held.append(route))
    tab.page.reload()
    tab.page.wait_for_selector("html[data-painted]")  # opening a sequence lets it take over
    tab.wait_match("#training", "model 2, trained on 4 sequences(?!: takes over)")
    greeting = f"event: hello\ndata: {json.dumps(former)}\n\n"  # made before, heard after
    held[0].fulfill(content_type="text/event-stream", body=greeting)
    tab.wait_text("#saved", "offline")  # it was heard, and the connection ended after it
    tab.wait_match("#training", "model 2, trained on 4 sequences(?!: takes over)")
    tab.page.unroute_all(behavior="ignoreErrors")


def test_an_exact_answer_that_is_reported_before_the_first_answer_arrives_is_shown(page_on, monkeypatch):
    tab, told = texts(page_on), threading.Event()
    post, exactly = Workspace.post, Workspace._exactly

    def answer_late(self, *arguments):
        found = post(self, *arguments)
        assert not found["exact"]
        assert told.wait(60)
        return found

    def tell(self, *arguments):
        exactly(self, *arguments)
        told.set()

    monkeypatch.setattr(Suggester, "is_slow", lambda self, length, limit=0: True)
    monkeypatch.setattr(Workspace, "post", answer_late)
    monkeypatch.setattr(Workspace, "_exactly", tell)
    tab.fix("Home", "2")
    tab.page.locator("#about:not(.computing)").wait_for()
    assert tab.view()["exact"]


# -- narrow windows and large zoom: 640 x 400 CSS pixels are 1280 x 800 at 200 %

BUTTONS = ("#undo", "#accept-all", "#more", "#files", "#settings", "#keys", "#train", "#search", "#filter", "#order")
COVERED = """names => names.filter((name) => {
  const it = document.querySelector(name);
  it.scrollIntoView({ block: "center" });
  const box = it.getBoundingClientRect();
  const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  return !top || !(it === top || it.contains(top));
})"""
APART = """() => {
  const parts = [".brand", ".find", "#queue", ".facts", ".top", "#overview", ".center", ".choices", ".foot"];
  const boxes = parts.map((name) => [name, document.querySelector(name).getBoundingClientRect()]);
  const found = [];
  boxes.forEach(([one, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
    const across = a.left < b.right - 1 && b.left < a.right - 1;
    if (across && a.top < b.bottom - 1 && b.top < a.bottom - 1) found.push(`${one} ${other}`);
  }));
  return found;
}"""


@pytest.mark.parametrize("room", [(640, 400), (450, 800), (320, 640), (900, 420), (900, 700), (1280, 800)])
def test_nothing_overlaps_and_everything_is_within_reach(page_on, room):
    width, height = room
    tab = texts(page_on, room={"width": width, "height": height}, Y=[*sentences(2)[1], *[None] * 6])
    assert tab.page.evaluate(APART) == []
    assert tab.page.evaluate(COVERED, list(BUTTONS)) == []
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width, "no scrolling to the side"
    tab.page.locator("#train").click()
    tab.wait_match("#training", "training model 2|model 2, trained")
    tab.page.locator("#settings").click()
    dialog = tab.page.locator("dialog[open]").bounding_box()
    assert dialog["x"] >= 0
    assert dialog["x"] + dialog["width"] <= width
    tab.press("Escape")


def test_a_narrow_page_goes_to_the_sequence_that_is_opened(page_on):
    tab = texts(page_on, room={"width": 640, "height": 400}, Y=[*sentences(2)[1], *[None] * 6])
    assert tab.page.locator("#tour-invite").is_visible()
    tab.page.evaluate("document.getElementById('training').textContent = 'model 1, trained on 20 sequences'")
    assert tab.page.locator("#training").bounding_box()["height"] < 60, "words of one line are not squeezed into many"
    first = tab.painted[0]
    tab.page.locator('.entry[aria-selected="false"]').first.click()
    tab.wait_other(first)
    assert tab.page.locator("#title").bounding_box()["y"] < 100


CUT = "names => names.filter((name) => ((it) => it.scrollWidth > it.clientWidth)(document.querySelector(name)))"


def test_words_of_unsaved_work_are_not_cut_next_to_free_space(page_on):
    tab = texts(page_on, room={"width": 1280, "height": 800})
    tab.page.route("**/events", lambda route: route.abort())
    tab.press("Home", "2")
    tab.wait_text("#saved", "NOT saved: 1 change kept in this browser")
    tab.wait_text("#message", "it is kept here and sent again")
    assert tab.page.evaluate(CUT, ["#saved", "#message"]) == []
    tab.page.unroute("**/events")
    tab.wait_text("#saved", "all saved")
    tab.errors.clear()  # the browser reports the request that did not get through


def test_the_title_of_a_small_dialog_is_next_to_its_button(page_on):
    tab = texts(page_on)
    tab.press("h")
    title, close = tab.page.locator("#dialog-title"), tab.page.get_by_role("button", name="Close")
    title.wait_for()
    right = title.evaluate(
        "it => { const r = new Range(); r.selectNodeContents(it); return r.getBoundingClientRect().right; }"
    )
    assert right <= close.bounding_box()["x"]
