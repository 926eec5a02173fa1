"""Plain texts in the studio: files in, tokens that can be changed, several sequences at once, from right to left."""

import json
import os
from itertools import pairwise

import pytest

from browsing import GUTTER, ROOM, Tab, boxes_of, place_of

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf import Topology
from hscrf.cli.main import main
from hscrf.io import read_jsonl
from hscrf.io.texts import located, tokenize
from hscrf.studio import serve
from studio_fixtures import Person, TrainingHere

TOPOLOGY = Topology({"entity": ["person", "place", "O"], "part": ["name", "other"]})
LABELS = '[levels]\nentity = ["person", "place", "O"]\npart = ["name", "other"]\n'
TEXTS = ["Ada met Mr. Babbage in London.", 'She wrote: "It works!"', "They went to Rome, then home.", "Done."]
HEBREW = ["שלום לכולם, דני גר בתל אביב.", "הוא נסע לירושלים."]


def open_texts(folder, texts=TEXTS, **options):
    names = [f"notes:{n + 1}" for n in range(len(texts))]
    return serve(texts, topology=TOPOLOGY, db=folder / "notes.sqlite", names=names, port=0, **options)


# -- files


@pytest.fixture
def labels(tmp_path):
    (tmp_path / "labels.toml").write_text(LABELS)
    return tmp_path / "labels.toml"


@pytest.fixture
def read(monkeypatch, capsys):
    """The project that the shell would serve, the lengths of its sequences, and what was said."""

    def read(*arguments):
        found = []
        monkeypatch.setattr("hscrf.cli.studio.serve", lambda args, projects: found.extend(projects) or 0)
        assert main(["studio", *map(str, arguments)]) == 0
        ((project, database),) = found
        return project, {item.name: len(item.tokens) for item in project.items}, capsys.readouterr().err, database

    return read


def test_a_file_with_a_document_a_line(tmp_path, labels, read):
    (tmp_path / "notes.txt").write_text("\n\n".join(TEXTS) + "\n")
    project, lengths, said, database = read(tmp_path / "notes.txt", "--labels", labels)
    assert lengths == {f"notes:{2 * n + 1}": len(tokenize(text)) for n, text in enumerate(TEXTS)}
    assert (project.kind, project.texts.tokens) == ("text", "words")
    assert "plain text, 4 documents (one document per line), 26 tokens (words)" in said
    assert database == str(tmp_path / "notes.sqlite")


@pytest.mark.parametrize("given", ["files", "folder"])
def test_several_files_and_a_folder_have_a_document_a_file(tmp_path, labels, given, read):
    folder = tmp_path / "letters"
    folder.mkdir()
    for n, text in enumerate(TEXTS[:2]):
        (folder / f"{n}.txt").write_text(text + "\nA second line, longer than the first one.\n")
    data = [folder] if given == "folder" else sorted(folder.iterdir())
    _, lengths, said, database = read(*data, "--labels", labels, "--tokens", "blanks")
    assert lengths == {"0": 14, "1": 12}
    assert "2 documents (one document per file), 26 tokens (blanks)" in said
    assert database == (f"{folder}.sqlite" if given == "folder" else str(folder / "texts.sqlite"))


def test_what_may_be_columns_is_read_as_columns_and_said(tmp_path, labels, read):
    (tmp_path / "words.txt").write_text("Ada\nmet\n\nShe\nwrote\n")
    _, lengths, said, _ = read(tmp_path / "words.txt", "--labels", labels)
    assert list(lengths.values()) == [2, 2]
    assert "words.txt: columns, 2 sequences, one step per line, 1 column without labels; --format text" in said
    _, lengths, _, _ = read(tmp_path / "words.txt", "--labels", labels, "--format", "text")
    assert list(lengths.values()) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.txt", "b.txt"], "a.txt may be a column file: --format text reads each file as one document"),
        (["empty"], "the folder has no file of text"),
        (["notes.txt"], "plain text has no labels: give --labels"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path, labels, arguments, words, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("the D\ncat N\n")
    (tmp_path / "notes.txt").write_text("\n".join(TEXTS))
    (tmp_path / "empty").mkdir()
    given = [] if arguments == ["notes.txt"] else ["--labels", "labels.toml"]
    assert main(["studio", *arguments, *given, "--no-browser"]) != 0
    assert words in capsys.readouterr().err


def test_a_model_of_texts_reads_texts(tmp_path, labels, read, monkeypatch):
    monkeypatch.setattr("hscrf.studio.work.trainer.TrainingRun", TrainingHere)
    with open_texts(tmp_path, train_after=1) as session:
        person = Person(session.url)
        cut(person, "blanks")
        segments = {"entity": [[0, 1, "person"], [1, 6, "O"]], "part": [[t, t + 1, "name"] for t in range(6)]}
        person.do(1, "accept", whole=True, segments=segments)
        person.wait(lambda project: project["model"] is not None)
        (tmp_path / "m.hscrf").write_bytes(person.get("/api/export/model").content)
        person.close()
    notes, out = tmp_path / "notes.txt", tmp_path / "out.jsonl"
    notes.write_text("\n".join(TEXTS))
    assert main(["predict", str(notes), "-m", str(tmp_path / "m.hscrf"), "-o", str(out)]) == 0
    found = [located(document.tokens, document.extra) for document in read_jsonl(out)]
    assert [text for text, _ in found] == TEXTS
    assert [places for _, places in found] == [tokenize(text, "blanks") for text in TEXTS]
    (tmp_path / "one.txt").write_text(TEXTS[0])
    project, _, said, _ = read(tmp_path / "one.txt", "-m", tmp_path / "m.hscrf")
    assert (project.texts.tokens, len(project.items[0].tokens)) == ("blanks", 6), said
    project, _, _, _ = read(out, "--labels", labels)
    assert (project.texts, project.items[2].text) == (None, TEXTS[2])


# -- tokens


@pytest.fixture
def person(tmp_path):
    with open_texts(tmp_path) as session:
        person = Person(session.url)
        yield person
        person.close()


def lengths(person):
    return [item["length"] for item in sorted(person.get("/api/queue").json()["items"], key=lambda item: item["id"])]


def cut(person, tokens):
    answer = person.post("/api/tokens", {"tokens": tokens})
    assert answer.status_code == 200, answer.text
    return answer.json()


def characters(person, sequence):
    """The labels of the lowest and the highest level, character by character."""
    view, text = person.view(sequence, 0), TEXTS[sequence - 1]
    way = person.get("/api/project").json()["tokens"]["now"]
    found = {}
    for level, segments in view["segments"].items():
        found[level] = [None] * len(text)
        places = tokenize(text, way)
        for start, stop, label in segments:
            for first, last in places[start:stop]:
                found[level][first:last] = [label] * (last - first)
    return found, view["status"]


def test_tokens_are_changed_and_changed_back(person):
    assert lengths(person) == [8, 8, 8, 2]
    person.do(1, "segment", level="entity", start=2, stop=5, label="person")  # Mr. Babbage
    person.do(3, "label", level="part", start=3, stop=4, label="name")  # Rome, before a comma
    before = [characters(person, n) for n in (1, 3)]
    told = person.get("/api/tokens", tokens="characters", sequence=4).json()
    assert told["possible"]
    assert told["sample"] == list("Done.")
    assert "2 sequences with labels keep them" in told["words"][1]
    project = cut(person, "characters")
    assert project["tokens"] == {**project["tokens"], "now": "characters", "former": "words"}
    assert lengths(person)[3] == 5
    assert [characters(person, n) for n in (1, 3)] == before
    assert person.view(1)["can_undo"]
    cut(person, "words")
    assert lengths(person) == [8, 8, 8, 2]
    assert [characters(person, n) for n in (1, 3)] == before
    assert person.do(1, "undo")["segments"]["entity"] == [[0, 8, None]]


def test_no_label_is_lost(person):
    person.do(3, "segment", level="entity", start=3, stop=4, label="place")  # Rome without its comma
    told = person.get("/api/tokens", tokens="blanks").json()
    assert not told["possible"]
    assert "in 1 sequence (notes:3) a label or a border lies inside" in told["words"][1]
    assert person.post("/api/tokens", {"tokens": "blanks"}).status_code == 422
    assert lengths(person) == [8, 8, 8, 2]
    person.do(3, "undo")
    person.do(4, "boundary", level="entity", at=1, on=True)  # before the full stop, without any label
    assert "in 1 sequence (notes:4)" in person.get("/api/tokens", tokens="blanks").json()["words"][1]
    person.do(4, "undo")
    cut(person, "blanks")
    assert lengths(person) == [6, 4, 6, 1]
    assert person.do(3, "redo")["segments"]["entity"][1][2] == "place", "what was undone takes all of the token"


def test_an_accepted_text_stays_accepted(person):
    length = person.view(4)["length"]
    whole = {"entity": [[0, length, "O"]], "part": [[0, 1, "other"], [1, 2, "other"]]}
    person.do(4, "accept", whole=True, segments=whole)
    for way in ("blanks", "characters", "words"):
        cut(person, way)
        assert characters(person, 4) == ({"entity": ["O"] * 5, "part": ["other"] * 5}, "done")


def test_a_change_made_on_other_tokens_is_refused(person):
    body = {"level": "entity", "start": 3, "stop": 4, "label": "place"}
    cut(person, "characters")
    event = {"uid": "late", "version": 0, "kind": "label", "body": body, "length": 8}
    answer = person.post("/api/sequences/3/events", event)
    assert answer.status_code == 422
    assert "cut into other tokens meanwhile" in answer.json()["error"]["message"]
    assert person.view(3)["version"] == 0


def test_tokens_survive_a_restart_and_exports_refer_to_the_text(tmp_path):
    with open_texts(tmp_path) as session:
        person = Person(session.url)
        cut(person, "blanks")
        person.do(1, "segment", level="entity", start=2, stop=4, label="person")
        person.close()
    with open_texts(tmp_path) as session:
        person = Person(session.url)
        assert lengths(person) == [6, 4, 6, 1]
        person.post("/api/training/stop", {})  # it began by itself: there are labels
        cut(person, "words")
        tasks = person.get("/api/export/label-studio").json()
        lines = [json.loads(line) for line in person.get("/api/export/jsonl").text.splitlines()]
        person.close()
    assert [task["data"]["text"] for task in tasks] == TEXTS
    (region,) = tasks[0]["annotations"][0]["result"]
    value = region["value"]
    assert TEXTS[0][value["start"] : value["end"]] == value["text"] == "Mr. Babbage"
    assert located(lines[0]["tokens"], lines[0])[0] == TEXTS[0]
    assert lines[0]["labels"]["entity"] == [[2, 5, "person"]]


def test_tokens_of_other_data_stay(tmp_path):
    with serve([["a", "b"]], topology=TOPOLOGY, db=tmp_path / "x.sqlite", port=0) as session:
        person = Person(session.url)
        assert person.get("/api/project").json()["tokens"] is None
        assert person.post("/api/tokens", {"tokens": "words"}).status_code == 422
        person.close()
    with pytest.raises(ValueError, match="X has plain texts"):
        serve(["a b", ["c"]], topology=TOPOLOGY, db=tmp_path / "y.sqlite")


# -- the page


@pytest.fixture
def new_tab(browser):
    tabs = []

    def open_desk(session, **options):
        tabs.append(Tab(browser.new_context(**{"viewport": ROOM, **options}).new_page()).open(session.url))
        return tabs[-1]

    yield open_desk
    errors = [error for tab in tabs for error in tab.errors]
    for tab in tabs:
        tab.page.context.close()
    assert errors == []


@pytest.fixture
def tab(tmp_path, new_tab):
    with open_texts(tmp_path) as session:
        yield new_tab(session)


def words(tab):
    return tab.page.locator(".paper .wordline > span").all_inner_texts()


def boxes(tab):
    """Where the words of the open text are on the screen, once they are painted."""
    words = tab.page.locator(".paper .wordline > span")
    words.first.wait_for()
    return boxes_of(words)


def track(tab, box, level=0):
    """The middle of the track below a word."""
    return box["x"] + box["width"] / 2, box["y"] + 26 + 3 + 25 * level + 11


def open_named(tab, name):
    tab.page.fill("#search", name)
    tab.page.locator(".entry", has_text=name).first.click()
    tab.wait_text("#title", name)
    tab.page.fill("#search", "")
    tab.page.focus("#tracks")


def test_a_drag_and_a_digit_label_words_of_a_plain_text(tab):
    open_named(tab, "notes:1")
    assert words(tab) == ["Ada", "met", "Mr", ".", "Babbage", "in", "London", "."]
    glued = tab.page.locator(".paper .wordline > .glued").all_inner_texts()
    assert glued == [".", "."]
    found = boxes(tab)
    tab.drag(track(tab, found[2]), track(tab, found[4]))
    tab.fix("1")
    assert [2, 5, "person"] in tab.view()["segments"]["entity"]


def test_tokens_are_seen_and_changed_in_the_settings(tab):
    open_named(tab, "notes:3")
    tab.page.click("#settings")
    tab.wait_text("#tokens-said", "26 tokens")
    tab.page.select_option("#tokens", "blanks")
    tab.wait_text("#tokens-said", "17 tokens (blanks only)")
    assert tab.page.locator("#tokens-sample span").all_inner_texts() == [
        "They",
        "went",
        "to",
        "Rome,",
        "then",
        "home.",
    ]
    tab.page.click("#cut")
    tab.page.locator("dialog[open]").wait_for(state="detached")
    tab.page.wait_for_function("() => document.querySelectorAll('.paper .wordline > span').length === 6")
    assert words(tab) == ["They", "went", "to", "Rome,", "then", "home."]
    tab.press("End").fix("1")
    tab.page.click("#settings")
    tab.page.click("#uncut")
    tab.page.wait_for_function("() => document.querySelectorAll('.paper .wordline > span').length === 8")
    assert tab.view()["segments"]["entity"][-1] == [0, 8, "person"]


def test_a_cut_that_would_lose_labels_is_explained(tab):
    open_named(tab, "notes:3")
    found = boxes(tab)
    tab.drag(track(tab, found[2]), track(tab, found[3]))
    tab.fix("2")
    tab.page.click("#settings")
    tab.page.select_option("#tokens", "blanks")
    tab.wait_text("#tokens-said", "would be lost")
    assert tab.page.locator("#cut").is_disabled()


def test_lines_of_a_file_stay_lines(tmp_path, new_tab):
    with open_texts(tmp_path, ["Dear Ada,\nI am well.\n\nYours"]) as session:
        tab = new_tab(session)
        lines = tab.page.locator(".paper .wordline").all_inner_texts()
        assert ["".join(line.split()) for line in lines] == ["DearAda,", "Iamwell.", "Yours"]


# -- several sequences at once


def panels(tab):
    return tab.page.locator(".neighbour b").all_inner_texts()


def test_other_sequences_are_around_the_open_one_and_open_by_click_and_key(tab):
    order = [item["name"] for item in tab.ask("/api/queue")["items"]]
    tab.page.wait_for_function("() => document.querySelectorAll('.neighbour').length === 3")
    assert tab.text("#title") == order[0]
    assert panels(tab) == order[1:]
    assert "not begun" in tab.page.locator(".neighbour").first.inner_text()
    panel = tab.page.locator(".neighbour", has_text=order[2])
    top = panel.bounding_box()["y"]
    panel.click()
    tab.wait_text("#title", order[2])
    tab.page.wait_for_function("() => document.querySelectorAll('.neighbour').length === 3")
    assert panels(tab) == [order[0], order[1], order[3]]
    assert abs(tab.page.locator(".paper").bounding_box()["y"] - top) < 40, "it stays where it was clicked"
    found = boxes(tab)
    tab.page.mouse.click(*track(tab, found[1]))
    tab.fix("1")
    tab.press("PageUp")
    tab.wait_text("#title", order[1])
    tab.page.wait_for_function(
        "name => document.querySelector('.neighbours:last-child')?.textContent.includes(name)", arg=order[2]
    )
    assert "begun" in tab.page.locator(".neighbour", has_text=order[2]).inner_text()
    tab.page.locator(".neighbour", has_text=order[0]).focus()
    tab.press("Enter")
    tab.wait_text("#title", order[0])


def test_a_click_opens_a_text_though_its_panel_is_painted_anew_meanwhile(tab):
    tab.page.wait_for_function("() => document.querySelectorAll('.neighbour').length === 3")
    panel = tab.page.locator(".neighbour").nth(1)
    handle, box = place_of(panel)
    name = handle.query_selector("b").inner_text()
    tab.page.mouse.move(box["x"] + 200, box["y"] + box["height"] / 2)
    tab.page.mouse.down()
    tab.page.emulate_media(color_scheme="dark")  # all panels are painted anew
    tab.page.wait_for_function("panel => !panel.isConnected", arg=handle)
    tab.page.mouse.up()
    tab.wait_text("#title", name)


def test_words_have_the_size_that_is_chosen(tab):
    before = boxes(tab)[0]
    tab.page.click("#settings")
    tab.page.select_option("#text-size", "very large")
    tab.page.select_option("#around", "no")
    tab.press("Escape")
    tab.page.wait_for_function("() => document.querySelectorAll('.neighbour').length === 0")
    tab.page.wait_for_function(
        "least => document.querySelector('.paper .wordline > span')?.getBoundingClientRect().width > least",
        arg=1.3 * before["width"],
    )
    after = boxes(tab)[0]
    assert after["width"] > 1.3 * before["width"]
    assert after["height"] > 1.4 * before["height"]
    tab.page.reload()
    tab.page.wait_for_selector("html[data-painted]")
    assert boxes(tab)[0]["width"] == after["width"]


# -- from right to left


@pytest.fixture
def hebrew(tmp_path, new_tab):
    with open_texts(tmp_path, HEBREW) as session:
        tab = new_tab(session)
        open_named(tab, "notes:1")
        yield tab


def test_words_run_from_right_to_left(hebrew):
    found = boxes(hebrew)
    assert len(found) == len(tokenize(HEBREW[0]))
    assert all(left["x"] < right["x"] for right, left in pairwise(found))
    tracks = hebrew.page.locator("#tracks").bounding_box()
    assert tracks["x"] + tracks["width"] - 40 < found[0]["x"] + found[0]["width"] <= tracks["x"] + tracks["width"]
    assert found[-1]["x"] > tracks["x"] + GUTTER


def test_the_pointer_and_the_arrows_follow(hebrew):
    found = boxes(hebrew)
    hebrew.drag(track(hebrew, found[3]), track(hebrew, found[5]))
    assert "steps 3 to 5" in hebrew.current
    hebrew.fix("1")
    assert [3, 6, "person"] in hebrew.view()["segments"]["entity"]
    border = found[3]["x"] + found[3]["width"]
    y = track(hebrew, found[3])[1]
    hebrew.saves(lambda: hebrew.drag((border, y), (found[2]["x"] + found[2]["width"], y)))
    assert [2, 6, "person"] in hebrew.view()["segments"]["entity"]
    hebrew.press("ArrowLeft")
    assert "steps 6 to" in hebrew.current
    hebrew.press("ArrowRight", "ArrowRight")
    assert "steps 0 to 1" in hebrew.current
    hebrew.press("Home", "Shift+ArrowLeft")
    assert "steps 0 to 1" in hebrew.current
    hebrew.press("Escape", "ArrowLeft").fix("]")
    assert hebrew.view()["segments"]["entity"][0][1] == 1, "a border to the right is one towards the beginning"
