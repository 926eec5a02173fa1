"""The studio in a real browser: what a person sees and does, with a real server behind it."""

import json
import os
import re
import time

import pytest

from browsing import ROOM, Tab, place_of

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf import HSCRF, Topology
from hscrf.datasets import make_activities, make_nested
from hscrf.studio import Session, serve
from hscrf.studio.data.database import NotSaved
from hscrf.studio.data.project import Project
from hscrf.studio.data.sequences import items_of
from hscrf.studio.server.serving import Server
from hscrf.studio.server.studio import Studio


@pytest.fixture(scope="session")
def days():
    """Days in a kitchen to label, and a small model of them."""
    X, Y = make_activities(14, random_state=0)
    return X[8:], HSCRF().fit(X[:8], Y[:8])


@pytest.fixture
def context(browser):
    context = browser.new_context(viewport=ROOM)
    yield context
    context.close()


HASTY = """
  const later = window.setTimeout;
  window.setTimeout = (act, wait, ...more) => later(act, wait === 3000 || wait === 4000 ? wait / 10 : wait, ...more);
"""


@pytest.fixture
def hasty(context):
    """What did not get through is tried again after a tenth of the time."""
    context.add_init_script(HASTY)


@pytest.fixture
def new_tab(context):
    """Open tabs on a session; at the end, no script may have failed in any of them."""
    tabs = []

    def open_tab(session, path=None):
        tab = Tab(context.new_page())
        tabs.append(tab)
        return tab.open(session.url if path is None else session.url.split("?")[0] + path)

    yield open_tab
    assert [error for tab in tabs for error in tab.errors] == []


@pytest.fixture
def session(days, tmp_path):
    X, model = days
    with serve(X, model=model, db=tmp_path / "days.sqlite", names=[f"day_{n}" for n in range(len(X))]) as session:
        yield session


@pytest.fixture
def tab(session, new_tab):
    return new_tab(session)


@pytest.fixture(scope="session")
def watched(browser, days, tmp_path_factory):
    """One tab for the tests that only look."""
    X, model = days
    names = [f"day_{n}" for n in range(len(X))]
    context = browser.new_context(viewport=ROOM)
    with serve(X, model=model, db=tmp_path_factory.mktemp("watched") / "days.sqlite", names=names) as session:
        tab = Tab(context.new_page()).open(session.url)
        yield tab
        assert tab.errors == []
    context.close()


def labels_of(view, level):
    return [label for _, _, label in view["segments"][level]]


def of_another_label(view, level, labels):
    """The digit of a label that the level's first segment does not have."""
    return str(next(i for i, label in enumerate(labels, 1) if label != view["segments"][level][0][2]))


def test_the_rest_follows_a_fixed_label(tab):
    before = tab.view()
    labels = tab.ask("/api/project")["levels"][0]["labels"]
    digit = of_another_label(before, "activity", labels)
    tab.choose("activity", 0)
    tab.fix(digit)
    after = tab.view()
    wanted = labels[int(digit) - 1]
    start, stop, _ = before["segments"]["activity"][0]
    covered = [label for a, b, label in after["segments"]["activity"] if a < stop and b > start]
    assert set(covered) == {wanted}
    assert wanted in tab.current
    assert "fixed by hand" in tab.current
    assert any(fix["label"] == wanted for fix in after["fixes"])
    assert after["segments"]["trajectory"] != before["segments"]["trajectory"]
    assert re.search(r"saved · \d+ segments? changed", tab.text("#message"))
    shown = tab.outline("trajectory")
    assert [text.split(": ")[1].split(",")[0] for text in shown] == labels_of(after, "trajectory")


def test_a_boundary_is_dragged_and_with_shift_steps_are_chosen(tab):
    tab.choose("activity", 3)
    tab.fix(",", ".", "s")
    border = tab.view()["segments"]["activity"][0][1]
    assert border == 3  # where the cursor was
    tab.saves(lambda: tab.drag(tab.point("activity", border), tab.point("activity", border + 4)))
    view = tab.view()
    assert border + 4 in view["fixed_borders"]["activity"]["on"]
    assert view["segments"]["activity"][0][1] == border + 4
    tab.page.keyboard.down("Shift")
    tab.drag(tab.point("activity", border + 4), tab.point("activity", border + 7))
    tab.page.keyboard.up("Shift")
    assert f"steps {border + 4} to {border + 6}" in tab.current
    tab.saves(lambda: tab.drag(tab.point("activity", border + 4), tab.point("activity", 0)))
    after = tab.view()["segments"]["activity"]
    assert after[0] == [0, *view["segments"]["activity"][1][1:]], "a border that reaches the next one leaves no segment"


def test_a_range_that_is_dragged_becomes_one_segment(tab):
    labels = tab.ask("/api/project")["levels"][0]["labels"]
    tab.drag(tab.point("activity", 5.5), tab.point("activity", 9.5))
    assert "steps 5 to 9" in tab.current
    tab.fix("1")
    assert [5, 10, labels[0]] in tab.view()["segments"]["activity"]


def test_drags_begin_and_end_at_borders_that_they_miss_by_a_few_pixels(new_tab, tmp_path):
    """Segments are labelled one after the other, level by level: nothing is left between them or contradicts.

    What follows from the labels below, here a song where the beep is, is labelled like steps without a label.
    """
    children = {"phase": {"quiet": ["hum"], "song": ["hum", "beep"]}}
    names = {"phase": ["quiet", "song"], "sound": ["hum", "beep"]}
    topology = Topology(names, children=children, max_duration={"sound": None})
    with serve([[[float(t)] for t in range(400)]], topology=topology, db=tmp_path / "c.sqlite", port=0) as session:
        tab = new_tab(session)

        def drag(level, start, stop, *misses):
            (left, y), (right, _) = tab.point(level, start), tab.point(level, stop)
            tab.drag((left + misses[0], y), (right + misses[1], y))

        for start, stop, digit, misses in ((0, 80, "1", (-6, 0)), (80, 200, "2", (-4, 0)), (200, 400, "1", (4, 8))):
            drag("sound", start, stop, *misses)
            tab.fix(digit)
        view = tab.view()
        assert view["segments"]["sound"] == [[0, 80, "hum"], [80, 200, "beep"], [200, 400, "hum"]]
        assert [80, 200, "song"] in view["segments"]["phase"]
        for start, stop, digit, misses in ((0, 80, "1", (3, -5)), (80, 400, "2", (-3, -5))):
            drag("phase", start, stop, *misses)
            tab.fix(digit)
        view = tab.view()
        assert (view["segments"]["phase"], view["conflict"]) == ([[0, 80, "quiet"], [80, 400, "song"]], None)
        tab.saves(lambda: drag("sound", 80, 120, 0, 0))
        view = tab.view()
        assert view["segments"]["sound"][:3] == [[0, 80, "hum"], [80, 120, None], [120, 200, "beep"]]
        assert view["conflict"] is None


MOVED = """async () => {
  const { Actions } = await import('/page/actions.js');
  const shown = { model: 1, fixed_borders: { phase: { on: [80], off: [] } } };
  const state = { levels: ['phase', 'sound'], level: () => ({ unit: false }), shown };
  const actions = new Actions(state, () => {}, () => {}, async () => {});
  const limits = { low: 0, high: 200, left: 'hum', label: 'beep' };
  return [actions.moved('sound', 80, 40, limits), actions.moved('phase', 80, 40, limits)];
}"""


def test_a_border_below_a_fixed_one_splits_instead_of_moving(watched):
    below, itself = watched.page.evaluate(MOVED)
    assert below == ["boundary", {"level": "sound", "at": 40, "on": True}]
    assert itself == ["boundary", {"level": "phase", "at": 40, "on": True, "from": 80}]


def test_a_border_next_to_unlabelled_steps_is_moved_back_or_with_shift(new_tab, tmp_path):
    topology = Topology({"sound": ["hum", "beep"]}, max_duration={"sound": None})
    with serve([[[float(t)] for t in range(100)]], topology=topology, db=tmp_path / "c.sqlite", port=0) as session:
        tab = new_tab(session)
        tab.drag(tab.point("sound", 0), tab.point("sound", 50))
        tab.fix("1")
        (x, y), (back, _), (on, _) = (tab.point("sound", step) for step in (50, 40, 60))
        tab.saves(lambda: tab.drag((x - 2, y), (back, y)))
        assert tab.view()["segments"]["sound"] == [[0, 40, "hum"], [40, 100, None]]
        tab.page.keyboard.down("Shift")
        tab.saves(lambda: tab.drag((back - 2, y), (on, y)))
        tab.page.keyboard.up("Shift")
        assert tab.view()["segments"]["sound"] == [[0, 60, "hum"], [60, 100, None]]


def test_words_about_what_is_under_the_pointer_follow_a_fix(tab):
    label = tab.view()["segments"]["activity"][0][2]
    labels = tab.ask("/api/project")["levels"][0]["labels"]
    tab.choose("activity", 0)
    tab.wait_text("#readout", f"activity: {label} (suggested")
    other = next(each for each in labels if each != label)
    tab.fix(str(labels.index(other) + 1))
    tab.wait_text("#readout", f"activity: {other} (")
    tab.fix("z")
    tab.wait_text("#readout", f"activity: {label} (suggested")


def test_split_merge_accept_undo_redo(tab):
    start = tab.view()["segments"]["activity"]
    tab.fix("s")
    split = tab.view()["segments"]["activity"]
    assert split[0][:2] == [0, start[0][1] // 2]  # both parts are read anew
    tab.fix("M")
    assert tab.view()["segments"]["activity"] == start
    tab.fix("z")
    assert tab.view()["segments"]["activity"] == split
    tab.fix("Control+y")
    assert tab.view()["segments"]["activity"] == start
    tab.press("Home").fix("a")
    assert tab.view()["by"]["activity"][0] == "accepted"
    tab.fix("u")
    tab.fix("Control+z")
    assert tab.view()["by"]["activity"][0] == "accepted"
    assert tab.page.locator("#undo").is_enabled()


def test_borders_move_by_keys_in_one_event(tab):
    tab.fix("s")
    at = tab.view()["segments"]["activity"][1][0]
    tab.fix("]", "]", "Control+ArrowLeft", "Control+ArrowRight")
    assert tab.view()["segments"]["activity"][0][1] == at + 2
    assert tab.painted[1] == 2


@pytest.mark.parametrize("from_the_left", [False, True])
def test_a_moved_border_is_released_as_a_whole(tab, from_the_left):
    before = tab.view()["segments"]
    tab.press("Home", "ArrowRight").fix("]", "]")
    assert tab.view()["segments"] != before
    if from_the_left:
        tab.choose("activity", 0)
    tab.fix("u")
    assert tab.view()["fixes"] == []
    assert tab.view()["segments"] == before


def test_a_whole_sequence_by_keyboard_alone(tab):
    first = tab.painted[0]
    name = tab.text("#title")
    levels = tab.ask("/api/project")["levels"]
    tab.press("n", "ArrowDown")
    assert tab.current.startswith(levels[1]["name"])
    tab.press("ArrowUp", "Home").fix("2")
    assert levels[0]["labels"][1] in tab.current
    tab.press("ArrowDown", "Enter").page.keyboard.type(levels[1]["labels"][3][:-1])
    tab.fix("Enter")
    assert levels[1]["labels"][3] in labels_of(tab.view(), levels[1]["name"])
    tab.fix("z")
    tab.press("A")
    tab.wait_other(first)
    done = next(item for item in tab.ask("/api/queue")["items"] if item["id"] == first)
    assert (done["status"], done["name"]) == ("done", name)
    tab.wait_text("#done", "1 of 6 done")
    tab.press("p")
    tab.page.wait_for_selector(".chart circle")
    assert "1 of 6 sequences accepted" in tab.text("#dialog")
    progress = tab.ask("/api/progress")
    segments = sum(map(len, tab.ask(f"/api/sequences/{first}")["segments"].values()))
    assert progress["segments"] == segments
    assert f"{segments} labelled segments · {progress['minutes']} minutes of work" in tab.text("#totals")
    charts = [title.text_content() for title in tab.page.locator("#dialog svg > title").all()]
    assert "Agreement of model and person on 1 accepted sequences" in charts
    tab.press("Escape")
    tab.press("b")
    tab.wait_text("#title", name)
    tab.press("q", "Home", "ArrowDown", "Enter")
    tab.wait_other(first)


RED = """([x, y, size]) => {
  const canvas = document.querySelectorAll("#tracks canvas")[1];
  const box = canvas.getBoundingClientRect();
  const scale = canvas.width / box.width;
  const area = [x - box.left, y - box.top - 30, size, size].map((each) => each * scale);
  const { data } = canvas.getContext("2d").getImageData(...area);
  let red = 0;
  for (let i = 0; i < data.length; i += 4) red += data[i] > 140 && data[i + 1] < 80 && data[i + 2] < 80;
  return red / (data.length / 4);
}"""


def test_a_contradiction_is_shown_and_released(tab):
    project = tab.ask("/api/project")
    activity, walk = (level["name"] for level in project["levels"])
    children = project["children"][activity]
    parent = next(label for label in children if set(children[label]) != set(project["levels"][1]["labels"]))
    foreign = next(label for label in project["levels"][1]["labels"] if label not in children[parent])
    tab.choose(walk, 1)
    tab.press("Enter").page.keyboard.type(foreign)
    tab.fix("Enter")
    tab.press("ArrowUp", "Home")
    before = tab.view()["segments"]
    tab.fix(str(project["levels"][0]["labels"].index(parent) + 1))
    assert tab.page.locator("#conflict").is_visible()
    assert tab.view()["segments"] == before
    assert foreign in tab.text("#conflict")
    for item in tab.view()["conflict"]["items"]:
        red = tab.page.evaluate(RED, [*tab.point(item["level"], item["start"]), 15])
        assert red > 0.1, f"{item['what']} is marked in the tracks"
    tab.press("A")
    tab.wait_text("#message", "release one")
    tab.press("c")
    tab.wait_focus("it.textContent.includes('Release')")
    tab.fix("Enter")
    assert tab.page.locator("#conflict").is_hidden()
    assert parent in labels_of(tab.view(), activity)


def test_a_key_that_is_held_accepts_one_sequence(tab):
    first = tab.painted[0]
    tab.page.keyboard.down("Shift")
    tab.page.keyboard.down("A")
    tab.wait_other(first)
    for _ in range(5):
        tab.page.keyboard.down("A")  # what a browser sends while the key is held
    tab.page.keyboard.up("A")
    tab.page.keyboard.up("Shift")
    tab.fix("s")
    assert tab.ask("/api/queue")["done"] == 1


def test_a_fix_changes_its_row_of_the_queue_without_asking_for_all_of_them(tab):
    rated = "() => [...document.querySelectorAll('.entry .number')].every(each => each.textContent !== '–')"
    tab.page.wait_for_function(rated)  # doubts come in the background, and with them the queue
    tab.page.wait_for_timeout(600)
    asked = []
    tab.page.on("request", lambda request: asked.append(request.url) if "/api/queue" in request.url else None)
    tab.fix("s")
    row = tab.page.locator(f"#entry-{tab.painted[0]}")
    row.get_by_text("…").wait_for()
    assert "1 corrections" in row.get_attribute("title")
    tab.fix("z")
    assert asked == []


def test_imported_labels_are_shown_at_once_and_undone(tab, session):
    name, length = tab.view()["name"], tab.view()["length"]
    label = next(label for _, _, label in tab.view()["segments"]["activity"])
    other = next(state for state in session.model.topology_.states[1] if state != label)
    value = {"start": 0, "end": length - 1, "timeserieslabels": [other]}
    task = {"data": {"name": name}, "annotations": [{"result": [{"from_name": "activity", "value": value}]}]}
    tab.page.click("#files")
    content = json.dumps([task]).encode()
    tab.page.set_input_files("#import", {"name": "tasks.json", "mimeType": "application/json", "buffer": content})
    tab.page.get_by_text("1 labels in 1 sequences").wait_for()
    tab.press("Escape")
    tab.wait_version(1)
    assert tab.view()["segments"]["activity"] == [[0, length, other]]
    tab.fix("z")
    assert tab.view()["segments"]["activity"] != [[0, length, other]]


def test_the_queue_is_searched_filtered_and_sorted(tab):
    names = [item["name"] for item in tab.ask("/api/queue")["items"]]
    rows = tab.page.locator(".entry .name")
    tab.page.fill("#search", names[2])
    tab.page.wait_for_function("() => document.querySelectorAll('.entry').length === 1")
    assert rows.all_inner_texts() == [names[2]]
    tab.page.fill("#search", "")
    order_by_name(tab, names)
    label = tab.view()["segments"]["activity"][0][2]
    tab.page.select_option("#filter", label=label)
    having = tab.ask(f"/api/queue/having?level=activity&label={label}")["ids"]
    tab.page.wait_for_function("count => document.querySelectorAll('.entry').length === count", arg=len(having))
    assert tab.painted[0] in having
    tab.page.select_option("#filter", "flagged")
    tab.page.wait_for_function("() => document.querySelectorAll('.entry').length === 0")


def order_by_name(tab, names):
    """Put the queue in an order that does not change while the model is at work."""
    tab.page.select_option("#order", "name")
    tab.page.wait_for_function(
        "names => [...document.querySelectorAll('.entry .name')].map((e) => e.innerText).join() === names.join()",
        arg=sorted(names),
    )


def press_through_a_repaint(tab, part, repaint):
    """Press a part of the page with the pointer, paint it anew, and release the pointer."""
    handle, box = place_of(part)
    tab.page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
    tab.page.mouse.down()
    repaint()
    tab.page.wait_for_function("part => !part.isConnected", arg=handle)
    tab.page.mouse.up()


def test_a_click_opens_its_row_though_the_queue_is_painted_anew_meanwhile(tab):
    order_by_name(tab, tab.page.locator(".entry .name").all_inner_texts())
    first, row = tab.painted[0], tab.page.locator('.entry[aria-selected="false"]').first
    wanted = row.get_attribute("data-id")
    press_through_a_repaint(tab, row, lambda: tab.page.dispatch_event("#search", "input"))
    tab.wait_other(first)
    assert tab.painted[0] == int(wanted)


def test_a_click_opens_its_row_though_another_row_is_under_the_pointer_now(tab):
    first, rows = tab.painted[0], tab.page.locator(".entry")
    shown = [int(row) for row in rows.evaluate_all("rows => rows.map((row) => row.dataset.id)")]
    names = {item["id"]: item["name"] for item in tab.ask("/api/queue")["items"]}
    by_name = sorted(shown, key=names.get)
    place = next(k for k, (now, then) in enumerate(zip(shown, by_name, strict=True)) if now not in (first, then))
    press_through_a_repaint(tab, rows.nth(place), lambda: tab.page.select_option("#order", "name"))
    tab.wait_other(first)
    assert tab.painted[0] == shown[place]


def test_a_click_gives_its_label_though_the_labels_are_painted_anew_meanwhile(tab):
    button = tab.page.locator(".label:not(.now)").nth(1)
    label = button.get_attribute("data-label")
    again = lambda: tab.page.dispatch_event("#typed", "input")  # noqa: E731
    tab.saves(lambda: press_through_a_repaint(tab, button, again))
    assert label in labels_of(tab.view(), "activity")


def test_a_press_that_leaves_its_row_or_its_label_does_nothing(tab):
    """The pointer goes down on one row and up on another; the same with labels. Then a label is really chosen."""
    order_by_name(tab, tab.page.locator(".entry .name").all_inner_texts())
    first, rows, labels = tab.painted[0], tab.page.locator(".entry"), tab.page.locator(".label")
    for one, other in ((rows.nth(2), rows.nth(4)), (labels.nth(1), labels.nth(0))):
        (_, start), (_, stop) = place_of(one), place_of(other)
        tab.drag((start["x"] + 20, start["y"] + 8), (stop["x"] + 20, stop["y"] + 8))
    tab.saves(lambda: tab.page.locator(".label:not(.now)").first.click())
    assert tab.painted == (first, 1)


def test_flags_notes_and_skipped_sequences_are_kept_and_shown(tab):
    first = tab.painted[0]
    tab.page.focus("#tracks")
    tab.fix("x")
    tab.page.locator(f"#entry-{first} .sign", has_text="⚑").wait_for()
    tab.press("e")
    tab.page.fill("#note", "the sensor was loose")
    tab.saves(lambda: tab.page.get_by_role("button", name="Save").click())
    assert tab.view()["marks"] == {"flag": True, "note": "the sensor was loose"}
    tab.page.locator(f'#entry-{first}[title*="the sensor was loose"]').wait_for()
    tab.press("k")
    tab.wait_other(first)
    queue = tab.ask("/api/queue")
    assert queue["order"][-1] == first, "it waits at the end"
    assert queue["next"] != first
    tab.press("h")
    tab.page.get_by_text("Nothing has happened yet").wait_for()
    second = tab.painted[0]
    tab.press("Escape", "b")
    tab.wait_other(second)
    tab.press("h")
    tab.page.wait_for_selector(".history")
    text = tab.text("#dialog")
    for words in ("flagged", "note: the sensor was loose", "skipped"):
        assert words in text
    tab.press("Escape")
    assert not tab.view()["can_undo"], "marks are not undone with labels"


def test_the_menu_does_what_the_keys_do(tab):
    tab.page.mouse.click(*tab.point("activity", 3.5), button="right")
    menu = tab.page.get_by_role("menu")
    tab.saves(lambda: menu.get_by_role("menuitem", name="Split before the cursor").click())
    assert menu.count() == 0
    tab.page.click("#more")
    tab.press("ArrowDown", "Escape")
    assert menu.count() == 0
    tab.wait_focus("it.id === 'more'")
    tab.press("i")
    menu.get_by_role("menuitem", name="Release what is fixed here").wait_for()
    tab.press("Escape")
    tab.page.focus("#tracks")
    tab.fix("z")


def test_many_sequences_are_accepted_and_taken_back_as_one(tab):
    flagged = tab.painted[0]
    tab.fix("x").press("PageDown")
    tab.wait_other(flagged)
    tab.page.click("#more")
    tab.page.get_by_role("menuitem", name="Accept many sequences").click()
    tab.page.fill("#least", "0.5")
    tab.page.keyboard.press("Tab")
    found = tab.ask("/api/bulk/preview?confidence=0.5")["sequences"]
    assert found
    assert flagged not in [each["id"] for each in found]
    tab.page.get_by_text(f"{len(found)} sequence", exact=False).wait_for()
    tab.page.get_by_role("button", name="Accept them").click()
    tab.page.get_by_text("accepted.").wait_for()
    assert tab.ask("/api/queue")["done"] == len(found)
    for sequence in (each["id"] for each in found):  # what waits is open now, not what is done
        tab.wait_other(sequence)
    tab.page.get_by_role("button", name="Undo all of it").click()
    tab.page.get_by_text(f"{len(found)} taken back").wait_for()
    assert tab.ask("/api/queue")["done"] == 0
    tab.press("Escape")


def test_the_queue_is_shown_in_its_order(session, new_tab):
    rated = "async () => (await (await fetch('/api/queue')).json()).items.every(item => item.doubt !== null)"
    new_tab(session).page.wait_for_function(rated)  # the order depends on doubts that are computed in the background
    tab = new_tab(session, "")
    queue = tab.ask("/api/queue")
    shown = [int(row.get_attribute("data-id")) for row in tab.page.locator(".entry").all()]
    assert shown == queue["order"]
    assert tab.painted[0] == queue["next"]
    assert tab.page.locator('.entry[aria-selected="true"]').get_attribute("data-id") == str(queue["next"])
    tab.press("PageDown")
    tab.wait_other(queue["next"])
    assert tab.painted[0] == queue["order"][1]
    assert "nats a step" in tab.page.locator(".entry").first.get_attribute("title")


def test_a_new_model_takes_over_with_the_next_sequence(tab):
    first, _ = tab.painted
    old = tab.view()["model"]
    tab.press("A")
    tab.wait_other(first)
    tab.press("t")
    tab.wait_text("#training", "training")
    tab.wait_text("#training", "takes over", timeout=90_000)
    assert f"model {old} " in tab.text("#about")
    second, _ = tab.painted
    tab.press("PageDown")
    tab.wait_other(second)
    tab.wait_text("#about", f"model {old + 1} ")
    tab.wait_text("#message", "has taken over")


def test_two_tabs_see_each_other(session, new_tab):
    here = new_tab(session)
    there = new_tab(session, f"#{here.painted[0]}")
    here.fix("s")
    there.wait_version(1)
    there.fix("z")
    here.wait_version(2)
    assert here.outline("activity") == there.outline("activity")


def test_seven_tabs_share_the_six_connections_of_one_browser(session, new_tab):
    tabs = [new_tab(session) for _ in range(7)]
    tabs[-1].fix("s")
    for tab in tabs:
        tab.wait_version(1)
    tabs[0].page.close()  # the one that listened for all
    tabs[3].fix("z")
    tabs[-1].wait_version(2)


DEAF = "navigator.locks.request = () => new Promise(() => {}); BroadcastChannel.prototype.addEventListener = () => {};"


def test_a_tab_that_is_behind_applies_its_fix_again(session, new_tab):
    here = new_tab(session)
    there = new_tab(session)
    there.page.add_init_script(DEAF)
    there.page.reload()
    there.page.wait_for_selector("html[data-painted]")
    here.fix("s")
    there.press("End").saves(lambda: there.press("s"), events=2)
    there.wait_text("#message", "saved")
    assert len(there.view()["fixed_borders"]["activity"]["on"]) == 2
    here.wait_version(2)
    here.fix("a")
    there.press("z")
    there.wait_text("#message", "another window")
    assert there.view()["version"] == 3
    there.errors.clear()  # the browser complains of 409


def test_offline_and_back(tab):
    tab.page.context.set_offline(True)
    tab.press("s")
    tab.wait_text("#saved", "NOT saved: 1 change")
    tab.press("a")
    tab.wait_text("#saved", "NOT saved: 2 changes")
    assert "accepted" in tab.outline("activity")[1]
    tab.page.context.set_offline(False)
    tab.wait_version(2)
    tab.wait_text("#saved", "all saved")
    view = tab.view()
    assert "accepted" in view["by"]["activity"]
    assert view["version"] == 2
    tab.errors.clear()  # the browser complains of the network


def test_a_fix_that_never_arrived_is_sent_after_a_reload(hasty, tab):
    """The second fix reaches the server, but its answer is lost: it must not be stored twice."""
    tab.page.route("**/events", lambda route: route.abort())
    tab.press("s")
    tab.wait_text("#saved", "NOT saved")
    tab.page.unroute("**/events")

    def lose_answer(route):
        route.fetch()
        route.abort()

    tab.page.route("**/events", lose_answer, times=1)
    tab.page.on("dialog", lambda dialog: dialog.accept())
    tab.page.reload()
    tab.page.wait_for_selector("html[data-painted]")
    tab.wait_version(1)
    tab.wait_text("#saved", "all saved")
    events = tab.ask(f"/api/sequences/{tab.painted[0]}/history")["events"]
    assert [event["kind"] for event in events] == ["boundary"]
    assert tab.page.evaluate("Object.keys(localStorage).filter(key => key.includes('/')).length") == 0
    tab.errors.clear()


def test_work_goes_on_when_the_server_comes_back(hasty, days, new_tab, tmp_path):
    X, model = days
    with serve(X, model=model, db=tmp_path / "again.sqlite") as session:
        tab = new_tab(session)
    tab.press("s")
    tab.wait_text("#saved", "NOT saved: 1 change")
    with serve(X, model=model, db=tmp_path / "again.sqlite") as session:
        tab.wait_text("#message", "Open the address")
        other = new_tab(session, None)
        other.wait_text("#saved", "all saved")
        tab.wait_text("#saved", "all saved")
        sequence = tab.painted[0]
        events = tab.ask(f"/api/sequences/{sequence}/history")["events"]
        assert [event["kind"] for event in events] == ["boundary"]
    tab.errors.clear()  # the browser complains of the server that was away


def test_two_databases_that_follow_each_other_on_one_port_do_not_mix(hasty, days, new_tab, tmp_path):
    X, model = days
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
    one, other = tmp_path / "one" / "labels.sqlite", tmp_path / "other" / "labels.sqlite"  # of the same name
    with serve(X[:3], model=model, db=one) as session:
        tab = new_tab(session)
        port = session._server.port
        words = tab.text("#title"), tab.ask("/api/sequences/1/observations")
    tab.press("s")  # the server of the first database is gone: the fix stays in the browser
    tab.wait_text("#saved", "NOT saved: 1 change")
    with serve(X[3:], model=model, db=other, port=port) as session:
        second = new_tab(session)
        second.wait_text("#notices", "1 change of another database")
        assert second.text("#saved").startswith("● all saved")
        tab.wait_text("#notices", "1 change of another database")  # the old page began again, with this database
        assert all(not second.ask(f"/api/sequences/{n}/history")["events"] for n in (1, 2, 3)), "nothing came here"
        seen = "id => fetch(`/api/sequences/${id}/observations`).then(answer => answer.json())"
        assert second.page.evaluate(seen, 1) != words[1], "these are the observations of the second database"
        second.fix("s")
    with serve(X[:3], model=model, db=one, port=port) as session:
        back = new_tab(session)
        back.wait_text("#saved", "all saved")
        kinds = [[event["kind"] for event in back.ask(f"/api/sequences/{n}/history")["events"]] for n in (1, 2, 3)]
        assert sorted(kinds) == [[], [], ["boundary"]], "the first fix came to the first database, once"
    for page in (tab, second, back):
        page.errors.clear()  # the browser complains of servers that were away


@pytest.mark.usefixtures("training_here")
def test_a_label_that_is_newer_than_the_model_is_shown_accepted_and_learned(days, new_tab, tmp_path):
    X, model = days
    states = {level: [*model.topology_.states[d]] for d, level in enumerate(model.topology_.levels) if d}
    states["activity"].append("wash_up")
    with serve(X, model=model, topology=Topology(states), db=tmp_path / "new.sqlite", train_after=1) as session:
        tab = new_tab(session)
        sequence = tab.painted[0]
        tab.press("Home", "l")
        tab.page.keyboard.type("wash_up")
        tab.fix("Enter")
        first = tab.view()["segments"]["activity"][0]
        assert first[2] == "wash_up"
        assert "wash_up" in tab.outline("activity")[0]
        tab.press("Escape", "A")
        tab.wait_other(sequence)
        assert tab.ask(f"/api/sequences/{sequence}")["segments"]["activity"][0] == first, "what was accepted"
        tab.wait_text("#training", "model 2, trained on 1 sequence")
        waiting = session.studio.workspace.model_store.waiting  # until the next sequence is opened
        learned = session.model if waiting is None else waiting[1].model
        assert "wash_up" in learned.topology_.states[1]


def test_a_full_disk_is_reported_and_the_fix_is_kept_until_there_is_room(hasty, tab, session, monkeypatch):
    def full(*_, **__):
        raise NotSaved("full", "NOT saved: the disk is full")  # as the store says it

    with monkeypatch.context() as disk:
        disk.setattr(session.studio.database, "append", full)
        tab.press("s")
        tab.wait_text("#message", "not saved: the disk is full")
        assert tab.text("#message").lower().count("saved") == 1, "said once"
        tab.wait_text("#saved", "NOT saved: 1 change")
        assert len(tab.outline("activity")) == len(tab.view()["segments"]["activity"]) + 1, "drawn all the same"
    tab.wait_version(1)
    tab.wait_text("#saved", "all saved")
    tab.wait_text("#message", "saved")
    tab.errors.clear()  # the browser complains of 503


def test_a_database_that_may_only_be_read_and_a_clock_that_went_back_are_reported(days, new_tab, tmp_path):
    X, model = days
    path = str(tmp_path / "frozen.sqlite")
    with serve(X, model=model, db=path) as session:
        session.studio.database.set("filler", 1)
    studio = Studio(Project(items_of(X), model.topology_, model=model), path, reading=True)
    studio.database.clock_back = 3600.0
    server = Server(studio, 0)
    server.start()
    with Session(server) as session:
        tab = new_tab(session)
        tab.wait_text("#notices", "the database may only be read: nothing will be saved")
        tab.wait_text("#notices", "clock of this machine went back by 3600 s")
        tab.press("s")
        tab.wait_text("#message", "not saved: ")
        tab.wait_text("#saved", "NOT saved: 1 change")
        tab.page.evaluate("localStorage.clear()")
    tab.errors.clear()


def test_digits_of_many_labels_follow_their_likelihood(tab):
    tab.press("Home", "ArrowDown", "2")  # quicker than the answer that says which label is second
    tab.wait_version(1)
    first = tab.view()["segments"]["trajectory"][0]
    tab.fix("z")
    start, stop, _ = tab.view()["segments"]["trajectory"][0]
    query = f"level=trajectory&start={start}&stop={stop}&version=2"
    second = tab.ask(f"/api/sequences/{tab.painted[0]}/alternatives?{query}")["items"][1]
    assert first[2] == second["label"]


def test_a_reload_in_mid_work_shows_the_same(tab):
    first = tab.painted[0]
    tab.press("PageDown")
    tab.wait_other(first)
    sequence = tab.painted[0]
    tab.fix("s")
    shown = tab.outline("activity")
    tab.page.reload()
    tab.page.wait_for_selector("html[data-painted]")
    assert tab.painted == (sequence, 1)
    assert tab.outline("activity") == shown
    tab.fix("z")


def test_a_thousand_sequences_wait_in_the_queue(new_tab, tmp_path):
    X = [[["w=a"], ["w=b"]]] * 1000
    topology = Topology({"part": ["x", "y"], "tag": ["a", "b"]})
    with serve(X, topology=topology, db=tmp_path / "many.sqlite") as session:
        tab = new_tab(session)
        assert tab.text("#done") == "0 of 1000 done"
        assert tab.page.locator(".entry").count() < 60
        tab.press("q", "End", "Enter")
        tab.wait_other(tab.ask("/api/queue")["order"][0])
        assert tab.painted[0] == tab.ask("/api/queue")["order"][-1]
        assert tab.page.locator('.entry[aria-selected="true"]').is_visible()


PAN = """async () => {
  const tracks = document.getElementById("tracks");
  const box = tracks.getBoundingClientRect();
  const times = [];
  let last = performance.now();
  for (let i = 0; i < 60; i++) {
    const at = { clientX: box.left + 500, clientY: box.top + 100, bubbles: true, cancelable: true };
    const how = i % 6 ? { deltaX: i < 30 ? 60 : -60 } : { deltaY: i < 30 ? -40 : 40, ctrlKey: true };
    tracks.dispatchEvent(new WheelEvent("wheel", { ...how, ...at }));
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - last);
    last = performance.now();
  }
  return times.sort((a, b) => a - b);
}"""


def test_a_view_that_is_older_than_the_news_is_asked_for_again(tab, session):
    """The model was ready, and said so, while the first view was still on its way."""

    def answer_late(route):
        found = route.fetch()
        time.sleep(0.5)  # by then the page has heard the server's greeting
        route.fulfill(response=found, json={**found.json(), "exact": False, "entropy": None})

    page = tab.page.context.new_page()
    page.route("**/api/sequences/*?open=1", answer_late)
    assert "doubt" in Tab(page).open(session.url).text("#about")


def test_ten_thousand_steps_pan_and_zoom(new_tab, tmp_path, capsys):
    X, Y = make_nested(3, sizes=(3, 4), length=200, n_features=6, random_state=3)
    model = HSCRF().fit(X, Y)
    long, _ = make_nested(1, sizes=(3, 4), length=10_000, n_features=6, random_state=3)
    with serve(long, model=model, db=tmp_path / "long.sqlite") as session:
        tab = new_tab(session)
        assert "10,000 steps" in tab.text("#about")
        tab.press("+", "+", "+", "+")
        assert int(tab.page.get_attribute("#overview", "aria-valuenow")) >= 0
        times = tab.page.evaluate(PAN)
        with capsys.disabled():
            mean = sum(times) / len(times)
            print(f"\n  10,000 steps, 6 channels: {1000 / mean:.0f} frames/s, p95 {times[57]:.0f} ms a frame")
        tab.press("End").fix("a")
        assert "9999" in tab.page.get_attribute("#overview", "aria-valuetext")
        assert tab.page.locator("#outline button").count() < 200


def test_script_in_names_labels_and_tokens_stays_text(new_tab, tmp_path):
    bad = "<img src=x onerror=window.hit=1>"
    topology = Topology(
        {"kind": [bad, "b<script>window.hit=1</script>"], "part": ["'\"><svg onload=window.hit=1>", "y"]}
    )
    X = [[[f"{bad}"], ["<script>window.hit=1</script>"], ["w"]]]
    with serve(X, topology=topology, db=tmp_path / "bad.sqlite", names=[bad], kind="text") as session:
        tab = new_tab(session)
        assert tab.text("#title") == bad
        assert bad in tab.text(".wordline")
        assert "unlabelled" in tab.current
        assert "no label yet" not in tab.current, "said once"
        assert tab.text("#queue-order") == "in the given order"
        tab.fix("1")
        assert bad in tab.current
        tab.press("p", "Escape", "?", "Escape")
        assert tab.page.evaluate("window.hit") is None
        assert tab.page.locator("main img, main svg").count() == 0


def test_text_wraps_and_its_bars_are_worked_with(new_tab, tmp_path):
    text = "Smith , J. and Doe , A. ( 2004 ) . The structure of long sequences in models . Journal of Tests 12 : 3 ."
    words = text.split()
    topology = Topology({"field": ["author", "title", "journal"], "part": ["name", "word", "mark"]})
    with serve([[[w] for w in words * 3]], topology=topology, db=tmp_path / "text.sqlite", kind="text") as session:
        tab = new_tab(session)
        lines = tab.page.locator(".wordline")
        assert lines.count() > 2
        assert " ".join(lines.first.locator("span").all_inner_texts()).startswith("Smith , J. and")
        spans = lines.first.locator("span")
        first, last = spans.nth(0).bounding_box(), spans.nth(6).bounding_box()
        row = first["y"] + 26 + 3 + 11
        tab.drag((first["x"] + 3, row), (last["x"] + 3, row))
        tab.fix("1")
        assert tab.view()["segments"]["field"][0] == [0, 7, "author"]
        edge = last["x"] + last["width"]
        wanted = spans.nth(9).bounding_box()
        # from the labelled word the border moves; from the next word a drag chooses words
        tab.saves(lambda: tab.drag((edge - 2, row), (wanted["x"] + wanted["width"] - 2, row)))
        assert tab.view()["segments"]["field"][0][:2] == [0, 10]
        after = spans.nth(12).bounding_box()
        tab.drag((wanted["x"] + wanted["width"] + 2, row), (after["x"] + 3, row))
        tab.fix("2")
        assert tab.view()["segments"]["field"][:2] == [[0, 10, "author"], [10, 13, "title"]]


def test_roles_names_and_order_of_focus(tab):
    tree = tab.page.locator("body").aria_snapshot()
    for wanted in (
        'listbox "Queue"',
        'option "day_',
        'scrollbar "Part of the sequence on the screen"',
        'application "Tracks of day_',
        'region "Segments as a list"',
        'list "Segments of activity"',
        'region "Labels for the chosen segment"',
        'textbox "Type the beginning of a label',
        'button "Undo"',
        "status",
    ):
        assert wanted in tree, wanted
    tab.fix("s")
    tab.outline("activity")
    separator = tab.page.locator('#outline [role="separator"]').first
    at = int(separator.get_attribute("aria-valuenow"))
    assert int(separator.get_attribute("aria-valuemin")) <= at <= int(separator.get_attribute("aria-valuemax"))
    tab.press("o")
    tab.wait_focus("it.getAttribute('aria-current') === 'true'")
    assert tab.page.locator("#outline").bounding_box()["width"] > 200
    tab.press("ArrowLeft", "ArrowRight")
    tab.outline("activity")
    tab.wait_focus("it.getAttribute('aria-current') === 'true'")
    tab.press("Shift+Tab")
    tab.wait_focus("it.getAttribute('role') === 'separator'")
    tab.fix("ArrowRight")
    assert tab.view()["segments"]["activity"][0][1] == at + 1
    order = ["queue", "undo", "accept-all", "overview", "tracks", "typed"]
    tab.page.evaluate("document.activeElement.blur()")
    tab.page.keyboard.press("Escape")
    tab.page.focus("#queue")
    seen = []
    for _ in range(20):
        seen.append(tab.page.evaluate("document.activeElement.id"))
        tab.press("Tab")
    assert [name for name in seen if name in order] == order


def test_news_for_ears_and_every_number_explained(watched):
    assert watched.page.get_attribute("#spoken", "aria-live") == "polite"
    watched.press("ArrowDown", "ArrowRight")
    watched.wait_match("#spoken", r"^trajectory: \w+, steps? \d+.*, suggested, doubt \S+ %")
    for selector in ("#about", "#saved", "#done", "#training", "#spark", ".entry", ".label", "#current span[title]"):
        assert watched.page.locator(selector).first.get_attribute("title"), selector
    watched.page.mouse.move(*watched.point("activity", 3.5))
    watched.wait_match("#readout", r"step 3 .*activity: \w+ \(suggested, \S+ % sure\)")


def test_the_list_of_keys_shows_every_key(watched):
    watched.press("?")
    listed = watched.text("#dialog")
    for words in (
        "undo",
        "most doubtful segment",
        "accept the sequence",
        "split before the cursor",
        "suggested by the model",
    ):
        assert words in listed
    watched.press("Escape")
    watched.page.locator("#dialog").wait_for(state="hidden")


def test_files_and_settings(tab):
    tab.fix("a")
    tab.page.click("#files")
    with tab.page.expect_download() as download:
        tab.page.click('[data-format="jsonl"]')
    assert download.value.suggested_filename.endswith(".jsonl")
    with tab.page.expect_download() as download:
        tab.page.click('[data-format="label-studio"]')
    tab.page.set_input_files("#import", download.value.path())
    tab.wait_text("#dialog [role=status]", "labels in")
    tab.press("Escape")
    tab.page.click("#settings")
    tab.page.fill("#annotator", "grete")
    tab.page.select_option("#theme", "dark")
    assert tab.page.evaluate("document.documentElement.dataset.theme") == "dark"
    tab.page.get_by_role("button", name="Save").click()
    tab.wait_text("#message", "settings saved")
    assert tab.ask("/api/project")["annotator"] == "grete"


OUTLINE = """([x, y, width]) => {
  const canvas = document.querySelector("#tracks canvas");
  const box = canvas.getBoundingClientRect();
  const scale = canvas.width / box.width;
  const pen = canvas.getContext("2d");
  const row = pen.getImageData(scale * (x - box.left), scale * (y - box.top), scale * width, 1).data;
  let dark = 0;
  for (let i = 0; i < row.length; i += 4) dark += row[i] + row[i + 1] + row[i + 2] < 330;
  return dark / (row.length / 4);
}"""


def test_accepted_and_suggested_differ_without_colour(tab):
    start, stop, _ = tab.view()["segments"]["activity"][0]
    (left, middle), (right, _) = tab.point("activity", start), tab.point("activity", stop)
    edge = [left + 8, middle - 18, min(right - left, 200) - 16]
    assert 0.3 < tab.page.evaluate(OUTLINE, edge) < 0.8  # dashes
    tab.press("Home").fix("a")
    assert tab.page.evaluate(OUTLINE, edge) > 0.95  # one line


GLOW = """() => {
  const canvas = document.querySelector(".glow");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.some((value, i) => i % 4 === 3 && value > 0);
}"""


INKED = """([canvas, x, y]) => {
  const element = document.querySelector(canvas);
  const box = element.getBoundingClientRect();
  const scale = element.width / box.width;
  const [left, top] = [scale * (x - box.left - 4), scale * (y - box.top)];
  const { data } = element.getContext("2d").getImageData(left, top, 8 * scale, 1);
  return data.some((value, i) => i % 4 === 3 && value > 0);
}"""


BRIGHTNESS = """async (count) => {
  const { drawBars } = await import("/page/bars.js");
  const brightness = (segments) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1290, height: 20 });
    const pen = canvas.getContext("2d");
    const view = { segments: { a: segments }, by: { a: segments.map(() => "accepted") }, fixed_borders: {}, fixes: [] };
    const steps = segments.at(-1)[1];
    const line = { start: 0, stop: steps, x: (step) => (step * 1290) / steps, step: (x) => (x * steps) / 1290 };
    drawBars(pen, view, { name: "a", labels: ["alpha"] }, line, 0, 20, 0, 1290);
    const row = pen.getImageData(0, 10, 1290, 1).data;
    return row.reduce((sum, value, i) => sum + (i % 4 < 3 ? value : 0), 0);
  };
  return brightness(Array.from({ length: count }, (_, t) => [t, t + 1, "alpha"])) / brightness([[0, 1, "alpha"]]);
}"""


@pytest.mark.parametrize("count", [200, 300, 400, 516])
def test_many_accepted_segments_keep_their_hue(watched, count):
    """A bar of outlines alone would be black: the brightness of many segments next to that of one."""
    assert watched.page.evaluate(BRIGHTNESS, count) > 0.7


def first_change(before, view):
    """The steps from the first to the last segment that is not as it was."""
    after = [tuple(segment) for segment in view["segments"]["trajectory"]]
    other = [segment for segment in before if tuple(segment) not in after]
    return (other[0][0], other[-1][1]) if other else None


def test_what_the_last_fix_changed_lights_up(tab):
    labels = tab.ask("/api/project")["levels"][0]["labels"]
    assert not tab.page.evaluate(GLOW)
    tab.choose("activity", 0)
    before = tab.view()["segments"]["trajectory"]
    tab.fix(of_another_label(tab.view(), "activity", labels))
    assert tab.page.evaluate(GLOW)
    first, last = first_change(before, tab.view())
    old = next(start for start, _, _ in before if first < start < last)
    assert tab.page.evaluate(INKED, [".glow", *tab.point("trajectory", old)]), "the border that was there before"


NAMES = """async () => {
  const { drawBars } = await import("/page/bars.js");
  const written = [];
  const base = document.createElement("canvas").getContext("2d");
  const fillText = base.fillText;
  base.fillText = (text, ...rest) => (written.push(text), fillText.call(base, text, ...rest));
  const segments = [[0, 20, "alpha"], [20, 40, "beta"], [40, 140, "gamma"], [140, 142, "delta"]];
  const view = { segments: { a: segments }, by: { a: segments.map(() => "model") }, fixed_borders: {}, fixes: [] };
  const line = { start: 0, stop: 142, x: (step) => step, step: (x) => x };
  base.font = "13px sans-serif";
  drawBars(base, view, { name: "a", labels: ["alpha", "beta", "gamma", "delta"] }, line, 0, 20, 0, 142);
  return written;
}"""


def test_a_narrow_segment_shows_the_beginning_of_its_name(watched):
    """Not its hue alone: the outline says already that it is suggested."""
    first, second, *rest = watched.page.evaluate(NAMES)
    assert (first[0], second[0]) == ("a", "b")
    assert rest == ["?", "gamma"]


def test_no_peak_is_lost_by_downsampling(watched):
    found = watched.page.evaluate("""async () => {
      const { Pyramid } = await import("/page/signals.js");
      const values = Float32Array.from({ length: 5000 }, (_, i) => Math.sin(i * i));
      values[1234] = 50;
      values[77] = NaN;
      const pyramid = new Pyramid(values);
      const wrong = [];
      for (const [start, stop] of [[0, 5000], [1234, 1235], [1200, 1300], [3, 4000], [77, 78]]) {
        const out = [0, 0];
        pyramid.range(start, stop, out);
        const inside = values.slice(start, stop).filter((value) => !Number.isNaN(value));
        const [low, high] = [Math.min(...inside), Math.max(...inside)];
        if (out[0] > low || out[1] < high) wrong.push([start, stop, out, low, high]);
      }
      return wrong;
    }""")
    assert found == []


PROVISIONAL = """async () => {
  const { provisional } = await import("/page/provisional.js");
  const view = { segments: { a: [[0, 4, "x"], [4, 9, "y"]] }, by: { a: ["model", "model"] }, changed: {} };
  const track = (kind, body) => {
    const after = provisional(view, { kind, body: { level: "a", ...body } });
    return after.segments.a.map((segment, i) => [...segment, after.by.a[i]].join(" "));
  };
  return {
    label: track("label", { start: 2, stop: 6, label: "z" }),
    split: track("boundary", { at: 2, on: true }),
    merge: track("boundary", { at: 4, on: false }),
    drag: track("boundary", { at: 6, on: true, from: 4 }),
    accept: track("accept", { segments: { a: [[4, 9, "y"]] } }),
    kept: view.segments.a.length,
  };
}"""


def test_a_fix_is_shown_before_the_server_answers(watched):
    assert watched.page.evaluate(PROVISIONAL) == {
        "label": ["0 2 x model", "2 6 z fixed", "6 9 y model"],
        "split": ["0 2 x model", "2 4 x model", "4 9 y model"],
        "merge": ["0 9 x model"],
        "drag": ["0 6 x model", "6 9 y model"],
        "accept": ["0 4 x model", "4 9 y accepted"],
        "kept": 2,
    }


def luminance(colour):
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


TEXT = [("ink", "ground"), ("ink", "raised"), ("ink", "hover"), ("quiet", "ground"), ("quiet", "raised")]
TEXT += [
    ("good", "ground"),
    ("danger", "ground"),
    ("danger", "danger-ground"),
    ("ink", "danger-ground"),
    ("focus-ink", "focus"),
]
TEXT += [("label-ink", f"label-{hue}") for hue in (*range(9), "none")] + [("quiet", "hover"), ("focus", "ground")]
MARKS = [("strong", "ground"), ("focus", "ground"), ("focus", "raised"), ("doubt-ink", "ground"), ("signal", "raised")]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_is_wcag_aa(watched, theme):
    watched.page.emulate_media(color_scheme=theme)
    names = sorted({name for pair in TEXT + MARKS for name in pair})
    read = """names => {
      const probe = document.body.appendChild(document.createElement("i"));
      const read = (name) => ((probe.style.color = `var(--${name})`), getComputedStyle(probe).color);
      const found = names.map(read);
      probe.remove();
      return found;
    }"""
    colours = dict(zip(names, watched.page.evaluate(read, names), strict=True))
    forced = "theme => { document.documentElement.dataset.theme = theme }"
    watched.page.emulate_media(color_scheme="light" if theme == "dark" else "dark")
    watched.page.evaluate(forced, theme)
    assert dict(zip(names, watched.page.evaluate(read, names), strict=True)) == colours
    watched.page.evaluate("delete document.documentElement.dataset.theme")
    watched.page.emulate_media(color_scheme="light")
    weak = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in TEXT}
    assert {pair: value for pair, value in weak.items() if value < 4.5} == {}
    faint = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in MARKS}
    assert {pair: value for pair, value in faint.items() if value < 3} == {}
