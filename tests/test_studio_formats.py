"""Exports say whose each label is; what goes out comes in again."""

import io
import json
import xml.etree.ElementTree as xml
import zipfile

import pytest

from hscrf.datasets import make_activities
from hscrf.io import read_columns, read_jsonl, read_table, to_labels
from hscrf.studio import serve
from hscrf.studio.data.sequences import shown, tokens_of
from hscrf.studio.demonstration import demo, make_citations
from studio_fixtures import TOPOLOGY, Person, open_studio, sentences, small_model


@pytest.fixture(scope="module")
def worked(tmp_path_factory):
    """Sequence 1 accepted, 2 with one fix, the others untouched."""
    session, person = open_studio(tmp_path_factory.mktemp("studio"), n=4)
    person.accept(1)
    person.do(2, "label", level="phrase", start=0, stop=1, label="O")
    yield session, person
    person.close()
    session.stop()


def exported(worked, form, accepted_only=0):
    answer = worked[1].get(f"/api/export/{form}", accepted_only=accepted_only)
    assert answer.status_code == 200
    return answer.content


def test_json_lines(worked):
    documents = list(read_jsonl(io.BytesIO(exported(worked, "jsonl"))))
    assert len(documents) == 4
    done, begun, untouched, _ = documents
    assert done.extra["status"] == "done"
    (accepted, *_) = sentences(4)[1]
    assert to_labels(done, TOPOLOGY).closed().tree() == accepted.tree()
    assert {whose for _, _, whose in done.extra["by"]["phrase"]} == {"person"}
    assert begun.labels["phrase"][:2] == ["O", None]
    assert {whose for _, _, whose in begun.extra["by"]["phrase"]} <= {"person", "model"}
    assert set(untouched.labels["tag"]) == {None}
    assert {whose for _, _, whose in untouched.extra["by"]["tag"]} == {"model"}
    assert untouched.extra["prediction"]["phrase"]


def test_accepted_only(worked):
    assert len(list(read_jsonl(io.BytesIO(exported(worked, "jsonl", 1))))) == 1


def test_columns(worked):
    text = io.BytesIO(exported(worked, "columns"))
    names = ["x1", "phrase", "tag", "phrase_predicted", "phrase_by", "tag_predicted", "tag_by"]
    documents = list(read_columns(text, ["phrase", "tag"], names[:3], extra=names[3:], separator="\t"))
    assert documents[0].labels["phrase"][:2] == ["B-NP", "I-NP"]
    assert set(documents[0].extra["phrase_by"]) == {"person"}
    assert documents[2].labels["tag"] == ["?"] * len(documents[2])
    assert set(documents[2].extra["tag_by"]) == {"model"}


def test_csv(worked):
    documents = list(read_table(io.BytesIO(exported(worked, "csv")), ["phrase", "tag"], features=["x1"],
                                extra=["phrase_predicted", "phrase_by"]))  # fmt: skip
    assert [document.name for document in documents] == [f"sequence_{n:04d}" for n in range(1, 5)]
    assert documents[0].labels["phrase"][:2] == ["B-NP", "I-NP"]


def test_elan_is_valid_xml_with_tiers_of_people_and_model(worked):
    with zipfile.ZipFile(io.BytesIO(exported(worked, "elan"))) as archive:
        names = archive.namelist()
        trees = [xml.fromstring(archive.read(name)) for name in names]
    assert len(names) == 4
    tiers = {tier.get("TIER_ID"): tier for tier in trees[0].iter("TIER")}
    assert list(tiers) == ["phrase", "tag", "phrase (model)", "tag (model)"]
    values = [value.text for value in tiers["phrase"].iter("ANNOTATION_VALUE")]
    assert values == [label for _, _, label in sentences(1)[1][0].segments("phrase")]
    assert not list(tiers["phrase (model)"])
    slots = {slot.get("TIME_SLOT_ID"): int(slot.get("TIME_VALUE")) for slot in trees[0].iter("TIME_SLOT")}
    first = next(tiers["phrase"].iter("ALIGNABLE_ANNOTATION"))
    assert slots[first.get("TIME_SLOT_REF2")] == 2000
    assert list({t.get("TIER_ID"): t for t in trees[2].iter("TIER")}["tag (model)"])


def test_label_studio_both_ways(worked, tmp_path):
    tasks = json.loads(exported(worked, "label-studio"))
    assert tasks[0]["data"]["text"].startswith("w=")
    assert tasks[0]["annotations"]
    assert not tasks[0]["predictions"]
    assert not tasks[2]["annotations"]
    assert tasks[2]["predictions"][0]["model_version"] == "hscrf model 1"
    region = tasks[0]["annotations"][0]["result"][0]
    text = tasks[0]["data"]["text"]
    assert text[region["value"]["start"] : region["value"]["end"]] == region["value"]["text"]
    session, person = open_studio(tmp_path, n=4)
    answer = person.post("/api/import", {"format": "label-studio", "content": tasks}).json()
    assert answer == {"sequences": 1, "labels": 7, "refused": [], "moved": 0, "left_out": []}
    again = json.loads(person.get("/api/export/label-studio").content)
    assert again[0]["annotations"] == tasks[0]["annotations"]
    assert person.view(1)["by"]["phrase"] == ["file"] * 3
    repeated = person.post("/api/import", {"format": "label-studio", "content": tasks}).json()
    assert repeated["sequences"] == 1
    assert person.view(1)["version"] == 1, "the same file again changes nothing"
    person.close()
    session.stop()


def test_time_series_both_ways_to_label_studio(tmp_path):
    days, truth = make_activities(3, random_state=0)
    session = serve(days, topology=truth[0].topology, db=tmp_path / "a.sqlite", port=0)
    person = Person(session.url)
    segments = {level: [list(s) for s in truth[0].segments(level)] for level in ("activity", "trajectory")}
    person.do(1, "accept", whole=True, segments=segments)
    tasks = json.loads(person.get("/api/export/label-studio", accepted_only=1).content)
    value = tasks[0]["annotations"][0]["result"][0]["value"]
    assert (value["start"], value["end"]) == (segments["activity"][0][0], segments["activity"][0][1] - 1)
    tasks[0]["data"]["name"] = "sequence_0002"
    assert "series has" in person.post("/api/import", {"format": "label-studio", "content": tasks}).text
    tasks[0]["data"]["ts"] = {"time": list(range(len(days[1])))}
    tasks[0]["annotations"][0]["result"] = tasks[0]["annotations"][0]["result"][:1]
    assert person.post("/api/import", {"format": "label-studio", "content": tasks}).json()["sequences"] == 1
    assert person.view(2)["segments"]["activity"][0] == segments["activity"][0]
    person.close()
    session.stop()


def region(level, start, end, label):
    return {"from_name": level, "value": {"start": start, "end": end, "labels": [label]}}


@pytest.mark.parametrize(
    ("regions", "message"),
    [
        ([region("phrase", 0, 12, "NP"), region("phrase", 6, 13, "VP")], "overlap"),
        ([region("clause", 0, 3, "XX")], "no level has the label 'XX'"),
        ([region("phrase", 0, 3, "XX")], "task 0, region 0: level 'phrase' has no label 'XX'"),
        ([region("phrase", 0, 10_000, "NP")], "outside"),
        ([region("phrase", "0", 3, "NP")], "whole numbers"),
        ([{"from_name": "phrase"}], "no value"),
        (["text"], "no value"),
    ],
)
def test_regions_that_do_not_fit_are_refused_with_a_message(worked, regions, message):
    task = {"data": {"name": "sequence_0003"}, "annotations": [{"result": regions}]}
    answer = worked[1].post("/api/import", {"format": "label-studio", "content": [task]}).json()
    assert answer["sequences"] == 0
    assert message in answer["refused"][0]["message"]


def test_an_ordinary_export_is_matched_by_its_text_and_its_labels(tmp_path):
    session, person = open_studio(tmp_path, model=False)
    words = ["".join(token).removeprefix("w=") for token in sentences()[0][1]]
    text = "  ".join(f"w={word}" for word in words) + " "  # two spaces between words, where we would write one
    end = len(f"w={words[0]}  w={words[1]}")
    ordinary = {
        "id": 17,
        "data": {"text": text, "source": "a file"},
        "annotations": [
            {"was_cancelled": True, "result": [region("phrase", 0, 3, "O")]},
            {
                "result": [
                    {"type": "relation", "from_id": "a", "to_id": "b"},
                    {"from_name": "label", "type": "labels", "value": {"start": 1, "end": end, "labels": ["NP"]}},
                ]
            },
        ],
    }
    answer = person.post("/api/import", {"format": "label-studio", "content": [ordinary]}).json()
    assert (answer["sequences"], answer["refused"]) == (1, [])
    view = person.view(2)
    assert view["segments"]["phrase"][0] == [0, 2, "NP"]
    assert (view["status"], view["can_undo"]) == ("begun", True)
    assert person.do(2, "undo")["segments"]["phrase"][0][2] is None
    person.close()
    session.stop()


def test_a_large_file_is_imported(worked):
    filler = "x" * 5_000_000
    task = {
        "data": {"name": "sequence_0003", "filler": filler},
        "annotations": [{"result": [region("phrase", 0, 3, "NP")]}],
    }
    answer = worked[1].post("/api/import", {"format": "label-studio", "content": [task]})
    assert answer.json()["sequences"] == 1
    assert worked[1].post("/api/settings", {"annotator": filler}).status_code == 413


def test_an_unknown_sequence_or_format_is_refused(worked):
    person = worked[1]
    answer = person.post("/api/import", {"format": "label-studio", "content": [{"data": {"name": "x"}}, 3]}).json()
    assert [entry["task"] for entry in answer["refused"]] == [0, 1]
    assert person.post("/api/import", {"format": "pickle", "content": []}).status_code == 422
    assert person.post("/api/import", {"format": "label-studio", "content": {}}).status_code == 422


def test_the_newest_model_is_a_file(worked, tmp_path):
    import hscrf

    path = tmp_path / "m.hscrf"
    path.write_bytes(exported(worked, "model"))
    assert hscrf.load(path).topology_ == small_model().topology_


# -- what is shown


def test_numbers_are_channels_and_words_are_text():
    import numpy as np

    assert shown(tokens_of(np.ones((3, 2))))["kind"] == "time"
    assert [c["name"] for c in shown([{"x": 1.0, "word": "a"}, {"x": 2.0, "word": "b"}])["channels"]] == ["x"]
    assert shown([["The", "DT"], ["cat", "NN"]])["tokens"] == ["The", "cat"]
    assert shown([["a=1"], ["b=2"]], "text")["kind"] == "text"


def test_a_missing_number_is_not_a_number():
    import base64

    import numpy as np

    found = shown([{"x": float(n)} for n in range(20)] + [{}])
    values = np.frombuffer(base64.b64decode(found["channels"][0]["values"]), dtype="<f4")
    assert np.isnan(values[-1])
    assert found["channels"][0]["max"] == 19


def test_the_demo_is_half_labelled():
    for name in ("days", "citations"):
        project = demo(name)
        known = [item.labels is not None for item in project.items]
        assert sum(known) == len(known) // 2
    words, labels = make_citations(5, seed=3)
    assert all(len(w) == len(y) for w, y in zip(words, labels, strict=True))
