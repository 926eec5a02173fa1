"""Two people: agreement against plain counting, and a database in which their differences are settled."""

import itertools
import json
import os
import shutil

import numpy as np
import pytest

from browsing import ROOM, Tab

if os.environ.get("HSCRF_BROWSER") != "required":
    pytest.importorskip("starlette", reason="the studio needs hscrf[studio]")

from hscrf import Topology
from hscrf.cli.main import main
from hscrf.studio import serve
from hscrf.studio.data import texts
from hscrf.studio.data.evidence import levels_of
from hscrf.studio.exchange.agreement import (
    agreement,
    annotations_of,
    common_annotations,
    common_settings,
    differences,
    matched,
    settle,
    settled_project,
)
from hscrf.studio.exchange.formats import export
from hscrf.studio.server.serving import Server
from hscrf.studio.server.studio import Studio
from studio_fixtures import Person
from test_studio_cli import Command

TOPOLOGY = Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]})
WORDS = [["the", "cat", "sees", "the", "dog"], ["a", "dog", "sleeps"]]
FIRST = [[0, 1, "D"], [1, 2, "N"], [2, 3, "V"], [3, 4, "D"], [4, 5, "N"]]
SHORT = {"phrase": [[0, 2, "NP"], [2, 3, "VP"]], "tag": FIRST[:3]}
ANN = {1: {"phrase": [[0, 2, "NP"], [2, 3, "VP"], [3, 5, "NP"]], "tag": FIRST}, 2: SHORT}
BOB = {1: {"phrase": [[0, 3, "NP"], [3, 5, "VP"]], "tag": [*FIRST[:2], [2, 3, "N"], *FIRST[3:]]}, 2: SHORT}


def work(path, said, name):
    """A database in which one person has accepted some labellings."""
    with serve(WORDS, topology=TOPOLOGY, db=path, port=0, train_after=1000) as session:
        person = Person(session.url)
        person.post("/api/settings", {"annotator": name})
        for n, segments in said.items():
            person.do(n, "accept", whole=True, segments=segments)
        person.close()
    return path


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    return work(folder / "a.sqlite", ANN, "ann"), work(folder / "b.sqlite", BOB, "bob")


def column(segments, length):
    found = [None] * length
    for start, stop, label in segments:
        found[start:stop] = [label] * (stop - start)
    return found


def test_agreement_equals_plain_counting(databases):
    (topology, one, first), (_, other, second) = map(annotations_of, databases)
    assert (first, second) == ("ann", "bob")
    for entry in agreement(one, other, levels_of(topology), tolerance=0):
        pairs = []
        for n in ANN:
            length = len(WORDS[n - 1])
            pairs += zip(column(ANN[n][entry.level], length), column(BOB[n][entry.level], length), strict=True)
        share = np.mean([a == b for a, b in pairs])
        labels = {label for pair in pairs for label in pair}
        chance = sum(np.mean([a == k for a, _ in pairs]) * np.mean([b == k for _, b in pairs]) for k in labels)
        np.testing.assert_allclose(entry.share, share, rtol=1e-12)
        np.testing.assert_allclose(entry.kappa, (share - chance) / (1 - chance), rtol=1e-12)
    phrase = agreement(one, other, levels_of(topology), tolerance=1)[0]
    assert phrase.segments == [2, 5, 4]
    assert phrase.borders == [2, 3, 2], "2 and 3 are a step apart"


def test_borders_are_paired_once():
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = (np.sort(rng.choice(12, size=rng.integers(0, 5), replace=False)) for _ in range(2))
        tolerance = int(rng.integers(0, 3))
        best = 0
        for size in range(min(len(a), len(b)) + 1):
            for some in itertools.combinations(a, size):
                for others in itertools.permutations(b, size):
                    if all(abs(x - y) <= tolerance for x, y in zip(some, others, strict=True)):
                        best = max(best, size)
        assert matched(a, b, tolerance) == best


def test_differences_are_runs_of_two_labels(databases):
    (topology, one, _), (_, other, _) = map(annotations_of, databases)
    found = differences(one["sequence_0001"], other["sequence_0001"], levels_of(topology))
    rows = [(d.level, d.start, d.stop, d.first, d.second) for d in found]
    assert rows == [("phrase", 2, 3, "VP", "NP"), ("phrase", 3, 5, "NP", "VP"), ("tag", 2, 3, "V", "N")]


def test_the_table_is_printed_and_mistakes_are_one_sentence(databases, tmp_path, capsys):
    a, b = map(str, databases)
    assert main(["studio", "agree", a, b]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "ann and bob"
    assert printed[2].split()[:3] == ["phrase", "2", "8"]
    assert main(["studio", "agree", a]) == 2
    other = tmp_path / "other.sqlite"
    with serve(WORDS, topology=Topology({"phrase": ["X"], "tag": ["Y"]}), db=other, port=0):
        pass
    assert main(["studio", "agree", a, str(other)]) == 2
    assert main(["studio", "agree", a, str(tmp_path / "none.sqlite")]) != 0
    assert "Traceback" not in capsys.readouterr().err


def test_differences_are_settled_by_keys_and_both_histories_are_kept(browser, databases, tmp_path):
    both = tmp_path / "both.sqlite"
    command = Command("agree", *databases, "--db", both)
    while not command.url.startswith("http"):  # after the table
        command.url = command.process.stdout.readline().strip().partition(": ")[2]
    tab = Tab(browser.new_context(viewport=ROOM).new_page()).open(command.url)
    tab.wait_text("#title", "sequence_0001")
    tab.wait_text("#settle", "3 to settle")
    assert "step 2" in tab.current, "the first difference is chosen"
    for key in ("<", ">", "<"):
        tab.fix("Shift+Comma" if key == "<" else "Shift+Period")
    tab.page.locator("#settle").wait_for(state="hidden")
    segments = tab.view()["segments"]
    assert column(segments["phrase"], 5) == ["NP", "NP", "VP", "VP", "VP"], "ann's third step, bob's last two"
    assert segments["tag"][2] == [2, 3, "V"]
    tab.press("h")
    tab.page.wait_for_selector(".history")
    history = tab.text("#dialog")
    assert "ann" in history
    assert "bob" in history
    assert history.count("accepted as a whole") == 2
    tab.page.context.close()
    code, said = command.stop()
    assert code == 0, said


def recorded(folder, name, segments, hue, undone=()):
    """A database of one person with times, a recording, guidelines and a colour; what is in ``undone`` was undone."""
    wave = folder / "day.wav"
    wave.write_bytes(b"RIFF")
    X = [np.zeros((6, 1)), np.ones((6, 1))]
    options = {"times": [[5, 6, 8, 9, 12, 13]] * 2, "media": [wave, None], "names": ["day", "night"], "kind": "time"}
    topology = Topology({"phase": ["a", "b"], "act": ["p", "q"]}, max_duration={"act": None})
    with serve(X, topology=topology, db=folder / f"{name}.sqlite", port=0, **options) as session:
        person = Person(session.url)
        person.post("/api/settings", {"annotator": name, "guidelines": f"how {name} labels"})
        change = {"do": "look", "level": "phase", "label": "a", "look": {"hue": hue}}
        assert person.post("/api/labels", {"changes": [change]}).status_code == 200
        for label in undone:
            person.do(1, "label", level="act", start=0, stop=1, label=label)
            person.do(1, "undo")
        for n, said in segments.items():
            person.do(n, "accept", whole=True, segments=said)
        person.close()
    return folder / f"{name}.sqlite"


BOTH = {"phase": [[0, 6, "a"]], "act": [[0, 3, "p"], [3, 6, "p"]]}
MERGED = {"phase": [[0, 6, "a"]], "act": [[0, 6, "p"]]}


@pytest.fixture(scope="module")
def settled(tmp_path_factory):
    """The database of two people who differ in a border between equal labels, and agree on the other sequence."""
    folder = tmp_path_factory.mktemp("settled")
    one = recorded(folder, "ann", {1: BOTH, 2: MERGED}, 4, undone=("q",))
    other = recorded(folder, "bob", {1: MERGED, 2: MERGED}, 6)
    (topology, first, _), (_, second, _) = map(annotations_of, (one, other))
    path = folder / "both.sqlite"
    count = settle(
        str(path), topology, list(common_annotations(first, second)), ("ann", "bob"), common_settings(one, other)
    )
    assert count == 1
    return path


@pytest.fixture
def settling(settled, tmp_path):
    """A studio on a copy of it, as ``hscrf studio agree --db`` opens it, and its address."""
    path = shutil.copy(settled, tmp_path / "both.sqlite")
    studio = Studio(settled_project(str(path), annotations_of(path)[0]), str(path))
    server = Server(studio, 0)
    server.start()
    yield server
    server.stop()


def test_what_both_agree_on_is_done_and_differences_come_first(settling):
    person = Person(settling.url)
    queue = person.get("/api/queue").json()
    assert [(row["name"], row["status"], row["unsettled"]) for row in queue["items"]] == [
        ("day", "begun", 1),
        ("night", "done", 0),
    ]
    assert (queue["next"], queue["done"]) == (1, 1)
    person.close()


def test_rate_times_guidelines_colours_and_recordings_are_kept(settling):
    person = Person(settling.url)
    project = person.get("/api/project").json()
    assert project["guidelines"] == "how ann labels"
    assert project["looks"] == {"phase": {"a": {"hue": 4}}}
    assert person.get("/api/sequences/1/observations").json()["times"] == [5, 6, 8, 9, 12, 13]
    assert person.get("/api/queue").json()["items"][0]["media"] == "audio"
    assert person.get("/api/sequences/1/media").content == b"RIFF"
    person.close()


def test_a_border_between_equal_labels_is_settled_by_a_key_and_undone_work_is_in_the_history(browser, settling):
    tab = Tab(browser.new_context(viewport=ROOM).new_page()).open(settling.url)
    tab.wait_text("#settle", "border before step 3")
    tab.wait_text("#settle", "1 to settle")
    assert tab.text("#queue-order") == "differences first"
    assert "≠ 1" in tab.text(".entry >> nth=0")
    tab.fix("Shift+Period")  # bob has one segment
    tab.page.locator("#settle").wait_for(state="hidden")
    assert tab.view()["segments"]["act"] == [[0, 6, "p"]]
    tab.press("h")
    tab.page.wait_for_selector(".history")
    undone = [row.inner_text() for row in tab.page.locator(".history .undone").all()]
    assert undone == ["act: q in step 0"]
    assert tab.text(".history").count("undo") == 1
    tab.press("Escape")
    assert tab.errors == []
    tab.page.context.close()


# -- plain texts

TEXTS = ["Ada  met Mr. Babbage.", 'She wrote: "It works!"']
ENTITIES = Topology({"entity": ["person", "O"], "part": ["name", "other"]})


def read_text(path, name, person_of_each):
    """A database of plain texts in which one person has labelled a token of each."""
    with serve(TEXTS, topology=ENTITIES, db=path, names=["a", "b"], port=0, train_after=1000) as session:
        person = Person(session.url)
        person.post("/api/settings", {"annotator": name})
        for n, label in enumerate(person_of_each, start=1):
            person.do(n, "label", level="entity", start=0, stop=1, label=label)
        person.close()
    return path


@pytest.fixture
def settled_texts(tmp_path):
    one = read_text(tmp_path / "one.sqlite", "ann", ["person", "person"])
    other = read_text(tmp_path / "other.sqlite", "bob", ["person", "O"])
    (topology, first, _), (_, second, _) = map(annotations_of, (one, other))
    path = str(tmp_path / "both.sqlite")
    pairs = list(common_annotations(first, second))
    assert settle(path, topology, pairs, ("ann", "bob"), common_settings(one, other)) == 1
    studio = Studio(settled_project(path, topology), path)
    yield studio
    studio.close()


def test_the_original_texts_are_kept(settled_texts):
    """Their blanks and signs are in exports, and their tokens can be changed with the differences in place."""
    studio = settled_texts
    found = {row.name: studio.database.text(row.id) for row in studio.database.sequences()}
    assert {name: text for name, (text, _) in found.items()} == dict(zip("ab", TEXTS, strict=True))
    lines = map(json.loads, export(studio, "jsonl").content.splitlines())
    assert [line["text"] for line in lines] == TEXTS
    assert texts.shown(studio)["now"] == "words"
    before = studio.workspace.tracked(2).state.unsettled()
    texts.apply(studio, "characters")
    (after,) = studio.workspace.tracked(2).state.unsettled()
    assert [(d["start"], d["stop"]) for d in before] == [(0, 1)]
    assert (after["start"], after["stop"], after["said"]) == (0, 3, before[0]["said"]), "She is three characters"
