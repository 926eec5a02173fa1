"""Labels that people edit: said before, done in one step, undone in one step, kept, and followed by the model."""

import os

import pytest

from browsing import ROOM, Tab

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf.studio import serve
from studio_fixtures import TOPOLOGY, open_studio, sentences, small_model


def said(person, *changes):
    answer = person.post("/api/labels/preview", {"changes": list(changes)})
    assert answer.status_code == 200, answer.text
    return answer.json()["words"]


def edit(person, *changes):
    answer = person.post("/api/labels", {"changes": list(changes)})
    assert answer.status_code == 200, answer.text
    return answer.json()


def names(project, level):
    return next(each["labels"] for each in project["levels"] if each["name"] == level)


def labels(view, level):
    return [label for _, _, label in view["segments"][level]]


RENAME = {"do": "rename", "level": "tag", "label": "N", "to": "noun"}
REMOVE = {"do": "remove", "level": "tag", "label": "N"}


def test_a_renamed_label_is_renamed_everywhere_and_back(tmp_path):
    session, person = open_studio(tmp_path)
    before = person.accept(1)
    assert "N" in labels(before, "tag")
    (words,) = said(person, RENAME)
    assert words.startswith(f"{labels(before, 'tag').count('N')} segment")
    project = edit(person, RENAME)
    assert "noun" in names(project, "tag")
    assert "N" not in names(project, "tag")
    after = person.view(1)
    assert labels(after, "tag") == ["noun" if label == "N" else label for label in labels(before, "tag")]
    assert after["status"] == "done"
    other = person.view(2)
    assert "noun" in labels(other, "tag"), "the model suggests it by its new name"
    assert "N" not in labels(other, "tag")
    person.do(2, "label", level="tag", start=0, stop=1, label="noun")
    assert "noun" in str(session.labels()[1])
    answer = person.post("/api/labels/undo", {})
    assert "N" in names(answer.json(), "tag")
    assert labels(person.view(1), "tag") == labels(before, "tag")
    assert labels(person.view(2), "tag")[0] == "N", "what was given under the new name"
    assert person.post("/api/labels/undo", {}).status_code == 422
    person.close()
    session.stop()


def test_a_removed_label_leaves_its_steps_open_until_it_is_undone(tmp_path):
    session, person = open_studio(tmp_path)
    before = person.accept(1)
    (words,) = said(person, REMOVE)
    assert "1 accepted sequence must be accepted again" in words
    edit(person, REMOVE)
    after = person.view(1)
    assert "N" not in labels(after, "tag")
    assert after["status"] == "begun"
    assert after["version"] == before["version"], "no event was added or changed"
    assert (
        person.send(1, after["version"], "label", {"level": "tag", "start": 0, "stop": 1, "label": "N"}).status_code
        == 422
    )
    person.post("/api/labels/undo", {})
    again = person.view(1)
    assert again["segments"] == before["segments"]
    assert again["status"] == "done"
    person.close()
    session.stop()


@pytest.mark.usefixtures("training_here")
def test_edits_are_kept_when_the_studio_is_opened_again_with_the_old_labels(tmp_path):
    session, person = open_studio(tmp_path)
    person.accept(1)
    add = {"do": "add", "level": "tag", "label": "P", "parents": ["NP"]}
    look = {"do": "look", "level": "tag", "label": "P", "look": {"hue": 4, "words": "a preposition", "key": "5"}}
    assert "Nothing that exists changes" in said(person, add)[0]
    edit(person, RENAME, add, look)
    person.close()
    session.stop()
    session, person = open_studio(tmp_path)
    project = person.get("/api/project").json()
    assert names(project, "tag") == ["D", "noun", "V", "X", "P"]
    assert project["looks"] == {"tag": {"P": look["look"]}}
    assert [parent for parent, inside in project["children"]["phrase"].items() if "P" in inside] == ["NP"]
    assert "noun" in labels(person.view(1), "tag")
    assert "noun" in labels(person.view(3), "tag"), "the model too"
    person.post("/api/training", {})
    trained = person.wait(lambda found: not found["training"]["running"] and found["training"].get("number") != 1)
    assert trained
    person.close()
    session.stop()


def test_a_move_says_what_it_contradicts(tmp_path):
    session, person = open_studio(tmp_path)
    person.accept(2)  # a VP with an N
    (words,) = said(person, {"do": "move", "level": "tag", "label": "N", "parents": ["NP"]})
    assert "1 segment in 1 sequence lie elsewhere" in words
    project = edit(person, {"do": "move", "level": "tag", "label": "N", "parents": ["NP"]})
    assert [parent for parent, inside in project["children"]["phrase"].items() if "N" in inside] == ["NP"]
    person.close()
    session.stop()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"do": "add", "level": "tag", "label": "N"}, "has a label 'N' already"),
        ({"do": "rename", "level": "tag", "label": "N", "to": "V"}, "has a label 'V' already"),
        ({"do": "remove", "level": "tag", "label": "Q"}, "has no label 'Q'"),
        ({"do": "add", "level": "clause", "label": "Q"}, "no level 'clause'"),
        ({"do": "move", "level": "tag", "label": "N", "parents": []}, "no label of the level above"),
        ({"do": "look", "level": "tag", "label": "N", "look": {"hue": 99}}, "hue"),
        ({"do": "fly", "level": "tag", "label": "N"}, "expected one of"),
    ],
)
def test_edits_that_cannot_be_are_refused(shared, change, words):
    answer = shared.post("/api/labels", {"changes": [change]})
    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    session, person = open_studio(tmp_path_factory.mktemp("labels"))
    yield person
    person.close()
    session.stop()


# -- in a browser


@pytest.fixture
def tab(browser, tmp_path):
    options = {"model": small_model(), "topology": TOPOLOGY, "port": 0, "kind": "text", "train_after": 1000}
    session = serve(sentences()[0], db=tmp_path / "labels.sqlite", **options)
    context = browser.new_context(viewport=ROOM)
    tab = Tab(context.new_page()).open(session.url)
    yield tab
    assert tab.errors == []
    context.close()
    session.stop()


def field(tab, name):
    return tab.page.get_by_label(name, exact=True)


def test_labels_are_edited_in_the_page_and_undone_as_one_step(tab):
    before = tab.view()["segments"]
    tab.page.focus("#tracks")
    tab.press("d")
    field(tab, "name of N").fill("noun")
    field(tab, "description of N").fill("names a thing")
    field(tab, "key of N").fill("j")
    field(tab, "colour of N").select_option("pink")
    field(tab, "name of new label of tag").fill("P")
    apply = tab.page.get_by_role("button", name="Apply")
    assert apply.is_disabled(), "what it does is said before"
    tab.page.get_by_role("button", name="Check what it does").click()
    tab.page.get_by_text("named N are named noun from now on").wait_for()
    apply.click()
    tab.wait_text("#message", "labels changed")
    tab.page.locator('.label[data-label="NP"]').wait_for()
    tab.press("ArrowDown")
    button = tab.page.locator('.label[data-label="noun"]')
    button.wait_for()
    assert button.locator("kbd").inner_text() == "j"
    assert "names a thing" in button.get_attribute("title")
    pink = "getComputedStyle(document.body).getPropertyValue('--label-4')"
    assert tab.page.evaluate(pink), "one of the colours that colour-blind people tell apart"
    swatch = """() => document.querySelector('.label[data-label="noun"] .swatch')"""  # it is drawn anew by each answer
    tab.page.wait_for_function(f"() => getComputedStyle(({swatch})()).backgroundColor === 'rgb(255, 170, 187)'")
    tab.fix("j")
    assert tab.view()["segments"]["tag"][0][2] == "noun"
    tab.fix("z")
    tab.press("d")
    tab.page.get_by_role("button", name="Undo: tag: N renamed to noun").click()
    tab.wait_text("#message", "undone")
    tab.page.locator('.label[data-label="N"]').wait_for()
    assert tab.view()["segments"] == before


def test_a_key_of_a_command_is_not_given_to_a_label(tab):
    tab.page.focus("#tracks")
    tab.press("d")
    field(tab, "key of N").fill("a")
    tab.page.get_by_role("button", name="Check what it does").click()
    tab.page.get_by_text("the key a belongs to a command").wait_for()
    assert tab.page.get_by_role("button", name="Apply").is_disabled()


def test_guidelines_are_written_once_and_shown_next_to_the_work(tab):
    tab.page.focus("#tracks")
    wide = tab.page.locator("#tracks").bounding_box()["width"]
    tab.press("d")
    tab.page.fill("#guide-text", "Marks belong to the phrase before them.")
    tab.page.get_by_role("button", name="Save guidelines").click()
    tab.page.get_by_text("guidelines saved").wait_for()
    tab.press("Escape")
    tab.press("r")
    tab.wait_text("#guide", "Marks belong to the phrase before them.")
    assert tab.page.locator("#tracks").bounding_box()["width"] < wide - 200, "next to the tracks, not over them"
    tab.press("r")
    tab.page.locator("#guide").wait_for(state="hidden")


def test_children_take_shades_of_their_parents(tab):
    swatch = (
        "(label) => getComputedStyle(document.querySelector(`.label[data-label='${label}'] .swatch`)).backgroundColor"
    )
    tab.page.locator('.label[data-label="NP"]').wait_for()
    parents = [tab.page.evaluate(swatch, label) for label in ("NP", "VP", "O")]
    tab.page.focus("#tracks")
    tab.press("ArrowDown")
    tab.page.locator('.label[data-label="D"]').wait_for()
    children = [tab.page.evaluate(swatch, label) for label in ("D", "V", "X")]
    assert len({*parents, *children}) == 6, "no colour twice"
    mixed = "(hue) => { const i = document.body.appendChild(document.createElement('i')); i.style.color = hue;"
    mixed += " const found = getComputedStyle(i).color; i.remove(); return found; }"
    for hue, child in enumerate(children):
        share = f"color-mix(in srgb, var(--label-{hue}) 70%, var(--ground))"
        assert child == tab.page.evaluate(mixed, share), "a shade of the parent"
