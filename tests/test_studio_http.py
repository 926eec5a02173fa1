"""The studio over real HTTP: what a person does, and what nobody else may do."""

import http.client
import json
import socket
from urllib.parse import urlsplit

import httpx
import pytest

from hscrf.studio import serve
from hscrf.studio.data.locking import Locked
from studio_fixtures import TOPOLOGY, Person, open_studio, sentences, small_model


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    session, person = open_studio(tmp_path_factory.mktemp("studio"))
    yield session, person
    person.close()
    session.stop()


@pytest.fixture
def person(opened):
    return opened[1]


@pytest.fixture
def fresh(opened):
    """A sequence that is as it was at the beginning."""
    _session, person = opened
    version = person.view(1)["version"]
    while person.view(1)["can_undo"]:
        version = person.do(1, "undo")["version"]
    assert version >= 0
    return 1


def raw(base, request):
    """The status of an answer to bytes that no library would send."""
    parts = urlsplit(base)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as line:
        line.sendall(request)
        answer = http.client.HTTPResponse(line)
        answer.begin()
        content = answer.read()
    return answer.status, content


# -- what a person does


def test_fixing_one_label_changes_the_rest(person, fresh):
    before = person.view(fresh)
    assert before["segments"]["phrase"][0] == [0, 2, "NP"]
    after = person.do(fresh, "label", level="phrase", start=0, stop=1, label="O")
    assert after["segments"]["phrase"][0][2] == "O"
    assert after["by"]["phrase"][0] in ("fixed", "model")
    assert after["segments"]["tag"] != before["segments"]["tag"], "children follow"
    assert after["changed"]["phrase"]
    assert after["can_undo"]
    assert after["version"] == before["version"] + 1


def test_undo_and_redo(person, fresh):
    before = person.view(fresh)
    fixed = person.do(fresh, "label", level="phrase", start=0, stop=1, label="O")
    assert person.do(fresh, "undo")["segments"] == before["segments"]
    assert person.do(fresh, "redo")["segments"] == fixed["segments"]


def test_accept_makes_it_done_and_all_of_it_a_persons(person, fresh):
    view = person.accept(fresh)
    assert view["status"] == "done"
    assert {by for level in view["by"].values() for by in level} == {"accepted"}
    assert person.get("/api/queue").json()["done"] == 1
    (row,) = person.get("/api/progress").json()["corrections"]
    assert row["agreed"] == 1.0
    assert person.do(fresh, "undo")["status"] == "open"


def test_a_conflict_is_saved_and_can_be_released(person, fresh):
    person.do(fresh, "label", level="tag", start=0, stop=1, label="D")
    before = person.view(fresh)
    view = person.do(fresh, "label", level="phrase", start=0, stop=1, label="VP")
    assert view["segments"] == before["segments"]
    items = view["conflict"]["items"]
    assert [item["level"] for item in items] == ["tag", "phrase"]
    assert [item["new"] for item in items] == [False, True]
    after = person.do(fresh, "release", **items[0]["release"])
    assert after["conflict"] is None
    assert after["segments"]["phrase"][0][2] == "VP"


def test_borders(person, fresh):
    view = person.do(fresh, "boundary", level="phrase", at=1, on=True)
    assert view["segments"]["phrase"][0][1] == 1
    assert view["fixed_borders"]["phrase"]["on"] == [1]
    view = person.do(fresh, "boundary", level="phrase", at=2, on=True, **{"from": 1})
    assert view["fixed_borders"]["phrase"] == {"on": [2], "off": [[1, 2]]}
    assert view["segments"]["phrase"][0][:2] == [0, 2]


def test_alternatives(person, fresh):
    version = person.view(fresh)["version"]
    asked = {"level": "phrase", "start": 0, "stop": 2, "version": version}
    items = person.get(f"/api/sequences/{fresh}/alternatives", **asked).json()["items"]
    assert items[0]["label"] == "NP"
    assert sum(item["share"] for item in items) == pytest.approx(1.0)
    assert [item["p"] for item in items] == sorted((item["p"] for item in items), reverse=True)
    answer = person.get(f"/api/sequences/{fresh}/alternatives", **{**asked, "version": version + 5})
    assert answer.status_code == 409


def test_a_fix_is_shown_while_kernels_are_compiled(opened, person, fresh):
    tab = opened[0].studio.workspace
    tab.warm = False
    view = person.do(fresh, "label", level="phrase", start=0, stop=1, label="O")
    tab.warm = True
    assert not view["exact"]
    assert (view["segments"]["phrase"][0], view["by"]["phrase"][0]) == ([0, 1, "O"], "fixed")


def test_an_exact_answer_is_made_once_however_often_it_is_asked_for(opened, person, fresh, monkeypatch):
    tab = opened[0].studio.workspace
    later, answers = [], []
    suggest = tab.model_store.suggester.suggest
    monkeypatch.setattr(tab.worker, "urgent", lambda key, task: later.append(task))
    monkeypatch.setattr(tab.model_store.suggester, "suggest", lambda *given: answers.append(1) or suggest(*given))
    monkeypatch.setattr(tab, "warm", False)
    person.do(fresh, "label", level="phrase", start=0, stop=1, label="O")
    assert not person.view(fresh)["exact"]
    assert len(later) >= 2
    for task in later:
        task()
    assert person.view(fresh)["exact"]
    assert len(answers) == 1


def test_a_retry_is_recognised(person, fresh):
    version = person.view(fresh)["version"]
    body = {"level": "tag", "start": 0, "stop": 1, "label": "D"}
    one = person.send(fresh, version, "label", body, uid="same")
    person.do(fresh, "label", level="tag", start=1, stop=2, label="N")
    two = person.send(fresh, version, "label", body, uid="same")
    assert (one.status_code, two.status_code) == (200, 200)
    assert two.json()["repeated"]
    assert two.json()["version"] == version + 2
    uids = person.get(f"/api/sequences/{fresh}/history").json()["events"]
    assert len(uids) == version + 2


def test_a_client_with_an_old_version_gets_the_present_state(person, fresh):
    version = person.view(fresh)["version"]
    person.do(fresh, "label", level="tag", start=0, stop=1, label="D")
    answer = person.send(fresh, version, "label", {"level": "tag", "start": 1, "stop": 2, "label": "N"})
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert error["kind"] == "version"
    assert error["sequence"]["version"] == version + 1


def test_what_makes_no_sense_is_named(person, fresh):
    answer = person.send(
        fresh, person.view(fresh)["version"], "label", {"level": "tag", "start": 0, "stop": 1, "label": "?"}
    )
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "label"
    answer = person.send(fresh, person.view(fresh)["version"], "undo", {})
    assert answer.json()["error"]["kind"] == "nothing"


def test_observations_are_kept_by_the_browser(person):
    one = person.get("/api/sequences/1/observations")
    assert one.json()["tokens"][0].startswith("w=")
    again = person.http.get("/api/sequences/1/observations", headers={"if-none-match": one.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_observations_are_immutable_only_under_an_address_that_names_database_and_content(person):
    project = person.get("/api/project").json()["id"]
    digest = next(item["digest"] for item in person.get("/api/queue").json()["items"] if item["id"] == 1)
    address = "/api/sequences/1/observations"
    assert "immutable" in person.get(address, project=project, digest=digest).headers["cache-control"]
    for query in ({}, {"digest": digest}, {"project": project}, {"project": project, "digest": "0" * 32}):
        assert person.get(address, **query).headers["cache-control"] == "no-cache", query
    assert person.get(address, project="0" * 32, digest=digest).status_code == 409


def test_requests_meant_for_another_database_are_refused(person, fresh):
    body = {"level": "tag", "start": 0, "stop": 1, "label": "D"}
    event = {"uid": "foreign", "version": person.view(fresh)["version"], "kind": "label", "body": body}
    headers = person.http.headers.copy()
    for named in ("0" * 32, None):
        del headers["x-studio-project"]
        if named is not None:
            headers["x-studio-project"] = named
        with httpx.Client(base_url=person.base, cookies=person.http.cookies, headers=headers) as other:
            for path, content in ((f"/api/sequences/{fresh}/events", event), ("/api/settings", {"annotator": "b"}),
                                  ("/api/training", {}), ("/api/import", {"format": "label-studio"})):  # fmt: skip
                answer = other.post(path, json=content)
                assert (answer.status_code, answer.json()["error"]["kind"]) == (409, "project"), path
            assert other.get("/api/queue").status_code == (200 if named is None else 409)
        headers["x-studio-project"] = ""
    assert "foreign" not in {
        event["version"] for event in person.get(f"/api/sequences/{fresh}/history").json()["events"]
    }
    assert person.view(fresh)["version"] == event["version"], "nothing was stored"


def test_news_of_another_tab(person, fresh):
    with person.http.stream("GET", "/api/news", timeout=30) as news:
        lines = news.iter_lines()
        assert "hello" in next(line for line in lines if line.startswith("event:"))
        other = httpx.Client(base_url=person.base, cookies=person.http.cookies, headers=person.http.headers)
        version = other.get(f"/api/sequences/{fresh}").json()["version"]
        event = {"uid": "tab", "version": version, "kind": "label",
                 "body": {"level": "tag", "start": 0, "stop": 1, "label": "D"}}  # fmt: skip
        assert other.post(f"/api/sequences/{fresh}/events", json=event).status_code == 200
        other.close()
        assert "saved" in next(line for line in lines if line.startswith("event:"))
        assert json.loads(next(lines)[5:])["uid"] == "tab"


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/api/bulk/accept", {"confidence": 2, "sequences": []}, "expected a number from 0.5 to 1"),
        ("/api/bulk/accept", {"confidence": True, "sequences": []}, "expected a number from 0.5 to 1"),
        ("/api/bulk/accept", {"confidence": 0.9, "sequences": "all"}, "sequences are missing"),
        ("/api/bulk/undo", {"batch": ""}, "expected the one that accepting answered"),
    ],
)
def test_wrong_requests_for_many_sequences_are_refused(person, path, body, words):
    answer = person.post(path, body)
    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]


def test_a_bulk_acceptance_leaves_flagged_sequences_and_later_changes_alone(person):
    found = person.get("/api/bulk/preview", confidence=0.5).json()["sequences"]
    first, second = found[0]["id"], found[1]["id"]
    person.do(first, "mark", flag=True)
    before = person.get("/api/progress").json()
    done, looked_at = before["done"], before["corrections"]
    wanted = [entry["id"] for entry in found]
    answer = person.post("/api/bulk/accept", {"confidence": 0.5, "sequences": wanted}).json()
    assert sorted(answer["accepted"]) == sorted(set(wanted) - {first})
    assert person.view(first)["status"] != "done"
    assert person.view(second)["status"] == "done"
    progress = person.get("/api/progress").json()
    assert progress["done"] == done + len(answer["accepted"])
    assert progress["corrections"] == looked_at, (
        "nobody looked at these: they say nothing about the quality of the model"
    )
    person.do(second, "release", level="tag", start=0, stop=1)
    undone = person.post("/api/bulk/undo", {"batch": answer["batch"]}).json()
    assert undone["kept"] == [second]
    assert sorted(undone["undone"]) == sorted(set(answer["accepted"]) - {second})
    person.do(second, "undo")
    assert person.post("/api/bulk/undo", {"batch": answer["batch"]}).json()["undone"] == [second]
    person.do(first, "mark", flag=False)


@pytest.mark.parametrize("body", [{}, {"flag": 1}, {"note": "x" * 3000}, {"skip": "yes"}])
def test_marks_that_say_nothing_are_refused(person, fresh, body):
    assert person.send(fresh, person.view(fresh)["version"], "mark", body).status_code == 422


def test_settings_are_remembered(person):
    assert person.post("/api/settings", {"annotator": "ann", "train_after": 500}).json()["annotator"] == "ann"
    assert person.post("/api/settings", {"train_after": 0}).status_code == 422
    assert person.post("/api/settings", {"annotator": 7}).status_code == 422


# -- what nobody else may do


def test_strangers_stay_out(opened):
    session, person = opened
    used = session.url
    httpx.get(used)  # if nobody has used it yet
    stranger = httpx.Client(base_url=person.base)
    assert stranger.get(used).status_code == 401, "the token works once"
    for path in ("/api/project", "/api/queue", "/api/sequences/1", "/page/main.js", "/api/news", "/api/export/jsonl"):
        assert stranger.get(path).status_code == 401, path
    assert stranger.post("/api/training", json={}).status_code == 401
    assert stranger.get("/").status_code == 401
    assert stranger.get("/?token=guess").status_code == 401
    assert stranger.get(used).status_code == 401, "nor after a new one was made"
    stranger.cookies.set(session._server.keys.name, "guess")
    assert stranger.get("/api/project").status_code == 401
    stranger.close()


def test_the_cookie_is_strict_and_leaves_the_address(tmp_path):
    session = serve(sentences()[0][:2], model=small_model(), db=tmp_path / "a.sqlite", port=0)
    with httpx.Client() as browser:
        answer = browser.get(session.url)
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert answer.headers["location"] == "/"
    session.stop()


def test_a_browser_that_lost_its_cookie_gets_in_by_a_new_address(opened):
    session, person = opened
    told = []
    session._server.on_new_address = told.append
    browser = httpx.Client(base_url=person.base)
    for _ in range(2):
        assert browser.get("/").status_code == 401
    assert told in ([], [session.url]), "told once for each token, and only to whoever started the studio"
    assert browser.get(f"/?{session.url.partition('/?')[2]}").status_code == 303
    assert browser.get("/api/project").status_code == 200
    browser.close()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost:{port}.evil"]
)
def test_a_foreign_host_is_refused(person, host):
    port = urlsplit(person.base).port
    answer = person.http.get("/api/project", headers={"host": host.format(port=port)})
    assert answer.status_code == 403
    assert answer.json()["error"]["kind"] == "host"


def test_two_hosts_are_refused(person):
    port = urlsplit(person.base).port
    request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n".encode()
    assert raw(person.base, request)[0] in (400, 403)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1"])
def test_a_foreign_origin_is_refused(person, fresh, origin):
    version = person.view(fresh)["version"]
    event = {"uid": f"o-{origin}", "version": version, "kind": "label",
             "body": {"level": "tag", "start": 0, "stop": 1, "label": "D"}}  # fmt: skip
    answer = person.http.post(f"/api/sequences/{fresh}/events", json=event, headers={"origin": origin})
    assert answer.status_code == 403
    assert person.view(fresh)["version"] == version
    assert person.http.get("/api/project", headers={"origin": origin}).status_code == 403


def test_our_own_origin_is_welcome(person):
    assert person.http.get("/api/project", headers={"origin": person.base}).status_code == 200
    assert person.http.get("/api/project", headers={"sec-fetch-site": "cross-site"}).status_code == 403


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"uid": NaN}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"a=b", "application/x-www-form-urlencoded", 415),
        (b"{}", "", 415),
        (b" " * 4_000_001, "application/json", 413),
        (b'{"uid": "", "version": 0, "kind": "label", "body": {}}', "application/json", 400),
        (b'{"uid": "a\\nb", "version": 0, "kind": "label", "body": {}}', "application/json", 400),
        (b'{"uid": "a", "version": true, "kind": "label", "body": {}}', "application/json", 400),
        (b'{"uid": "a", "version": 1e99, "kind": "label", "body": {}}', "application/json", 400),
        (b'{"uid": "a", "version": 0, "kind": "label", "body": []}', "application/json", 400),
        (b'{"uid": "a", "version": 0, "kind": 3, "body": {}}', "application/json", 400),
    ],
)
def test_malformed_bodies_are_refused(person, fresh, content, kind, status):
    version = person.view(fresh)["version"]
    answer = person.http.post(f"/api/sequences/{fresh}/events", content=content, headers={"content-type": kind})
    assert answer.status_code == status
    assert "error" in answer.json()
    assert person.view(fresh)["version"] == version


def test_a_body_without_a_length_is_cut(person):
    def endless():
        for _ in range(100):
            yield b" " * 100_000

    headers = {"content-type": "application/json"}
    try:
        answer = person.http.post("/api/training", content=endless(), headers=headers)
    except httpx.TransportError:  # the server has hung up
        return
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "/page/../session.py",
        "/page/%2e%2e/session.py",
        "/page/..%2fsession.py",
        "/page//etc/passwd",
        "/page/..\\session.py",
        "/page/%00",
        "/page/",
        "/application.py",
        "/api/sequences/../project/../../etc",
        "/api/sequences/-1",
        "/api/sequences/1e3",
        "/api/sequences/99999999999999999999",
        "/api/export/..%2f..%2fetc%2fpasswd",
        "/api/export/pickle",
    ],
)
def test_odd_paths_lead_nowhere(person, path):
    cookie = "; ".join(f"{key}={value}" for key, value in person.http.cookies.items())
    port = urlsplit(person.base).port
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
    status, content = raw(person.base, request.encode())
    assert status in (400, 404, 405), content
    assert b"import" not in content


def test_methods_are_few(person):
    assert person.http.delete("/api/project").status_code == 405
    assert person.http.put("/api/sequences/1", json={}).status_code == 405
    assert person.http.request("TRACE", "/api/project").status_code == 405


def test_every_answer_forbids_foreign_script(person):
    for path in ("/api/project", "/", "/nothing", "/api/sequences/1/observations"):
        headers = person.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in person.get("/api/project").headers


def test_script_in_names_and_tokens_stays_text(tmp_path):
    evil = "<script>alert(1)</script>"
    X = [[[f"w={evil}"], ["w=cat"]]]
    session = serve(X, model=small_model(), db=tmp_path / "a.sqlite", names=[evil], port=0)
    person = Person(session.url).warm()
    answer = person.get("/api/sequences/1")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["name"] == evil
    export = person.get("/api/export/jsonl")
    assert "attachment" in export.headers["content-disposition"]
    assert evil not in export.headers["content-disposition"]
    person.close()
    session.stop()


def test_two_servers_on_one_database(opened):
    session, _ = opened
    with pytest.raises(Locked, match="another process"):
        serve(sentences()[0], model=small_model(), db=session.studio.database.path, port=0)


def test_another_topology_than_the_databases_is_refused(tmp_path):
    from hscrf import Topology

    session, person = open_studio(tmp_path, n=2)
    person.close()
    session.stop()
    other = Topology({"phrase": ["NP"], "tag": ["D"]})
    with pytest.raises(ValueError, match="labels that are not there any more"):
        serve(sentences(2)[0], topology=other, db=tmp_path / "labels.sqlite", port=0)
    with pytest.raises(ValueError, match="observations differ"):
        serve([[["w=x"]]], topology=TOPOLOGY, db=tmp_path / "labels.sqlite", port=0)


def test_a_full_disk_is_reported_and_nothing_is_lost(tmp_path):
    session, person = open_studio(tmp_path, n=2)
    store = session.studio.database
    store._connection.execute(f"PRAGMA max_page_count={store._one('PRAGMA page_count')}").fetchone()
    body = {"level": "tag", "start": 0, "stop": 1, "label": "D"}
    answers = [person.send(1, person.view(1)["version"], "label", body, uid="a" * 40 + str(k)) for k in range(60)]
    refused = [answer for answer in answers if answer.status_code == 503]
    assert refused
    assert refused[0].json()["error"]["reason"] == "full"
    store._connection.execute("PRAGMA max_page_count=1000000").fetchone()
    assert person.send(1, person.view(1)["version"], "label", body, uid="after").status_code == 200
    assert person.view(1)["version"] == sum(answer.status_code == 200 for answer in answers) + 1
    person.close()
    session.stop()


def test_a_clock_that_goes_back_is_reported(tmp_path):
    session, person = open_studio(tmp_path, n=2)
    session.studio.database.clock_back = 3600.0
    assert [n["kind"] for n in person.get("/api/project").json()["notices"]] == ["clock"]
    person.close()
    session.stop()


def test_work_goes_on_where_it_stopped(tmp_path):
    session, person = open_studio(tmp_path, n=3)
    person.do(1, "label", level="phrase", start=0, stop=1, label="O")
    view = person.view(1)
    port = urlsplit(person.base).port
    person.close()
    session.stop()
    session, person = open_studio(tmp_path, n=3)
    again = person.view(1)
    for key in ("segments", "version", "by", "fixes", "can_undo", "model"):
        assert again[key] == view[key], key
    assert urlsplit(person.base).port > 0 < port
    assert person.do(1, "undo")["status"] == "open"
    assert session.labels()[1] is None
    person.close()
    session.stop()


def test_the_port_of_the_last_time_is_taken_again(tmp_path):
    session = serve(sentences(2)[0], model=small_model(), db=tmp_path / "a.sqlite")
    url = session.url.partition("?")[0]
    session.stop()
    session = serve(sentences(2)[0], model=small_model(), db=tmp_path / "a.sqlite")
    assert session.url.partition("?")[0] == url
    session.stop()


def test_a_write_that_failed_too_late_is_recognised(tmp_path):
    """The disk has an event that was answered as not saved: the retry finds it, and work goes on."""
    session, person = open_studio(tmp_path, n=2)
    body = {"level": "tag", "start": 0, "stop": 1, "label": "D"}
    session.studio.database.append(1, 0, "late", "label", body)
    answer = person.send(1, 0, "label", body, uid="late").json()
    assert answer["repeated"]
    assert answer["version"] == 1
    assert answer["fixes"][0]["label"] == "D"
    person.close()
    session.stop()


def test_a_sequence_that_the_data_no_longer_has_can_still_be_seen(tmp_path):
    session, person = open_studio(tmp_path, n=3)
    person.do(3, "label", level="phrase", start=0, stop=1, label="O")
    person.close()
    session.stop()
    session, person = open_studio(tmp_path, n=2)
    assert [notice["kind"] for notice in person.get("/api/project").json()["notices"]] == ["unseen"]
    view = person.view(3)
    assert view["segments"]["phrase"][:2] == [[0, 1, "O"], [1, view["length"], None]]
    assert person.do(3, "undo")["status"] == "open"
    assert person.get("/api/export/jsonl").status_code == 200
    person.close()
    session.stop()
