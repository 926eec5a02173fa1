"""Several people at once: each has an address and a name; a sequence that one has open is read-only for the others."""

import httpx
import pytest

from browsing import ROOM, Tab
from hscrf.studio.work.claims import LEAVE, Claims, Held
from studio_fixtures import Person, open_studio


@pytest.fixture
def pair(tmp_path):
    """A session, the person who started it, and Bob."""
    session, owner = open_studio(tmp_path)
    owner.post("/api/settings", {"annotator": "Ann"})
    bob = Person(session.invite("Bob"))
    yield session, owner, bob
    owner.close()
    bob.close()
    session.stop()


FIX = {"level": "phrase", "start": 0, "stop": 1, "label": "O"}


def test_each_person_works_under_the_name_of_their_address(pair):
    _session, owner, bob = pair
    owner.view(1)
    bob.view(2)
    owner.do(1, "label", **FIX)
    event = {"uid": "forged", "version": 0, "kind": "label", "body": FIX, "annotator": "Ann"}
    assert bob.post("/api/sequences/2/events", event).status_code == 200
    names = [
        person.get(f"/api/sequences/{n}/history").json()["events"][0]["annotator"]
        for person, n in ((owner, 1), (bob, 2))
    ]
    assert names == ["Ann", "Bob"], "a page cannot choose another name than that of its address"
    bob.post("/api/settings", {"annotator": "Ann"})
    assert bob.get("/api/project").json()["annotator"] == "Bob"
    assert owner.get("/api/project").json()["annotator"] == "Ann"


def test_a_sequence_that_one_has_open_is_read_only_for_the_other(pair):
    _session, owner, bob = pair
    assert owner.view(1)["held_by"] is None
    assert bob.view(1)["held_by"] == "Ann"
    refused = bob.send(1, 0, "label", FIX)
    assert refused.status_code == 423
    assert "Ann is working on this sequence" in refused.json()["error"]["message"]
    assert owner.do(1, "label", **FIX)["version"] == 1
    owner.view(2)
    assert bob.view(1)["held_by"] is None
    assert owner.view(1, 0)["held_by"] == "Bob"
    assert bob.send(1, 1, "label", FIX).status_code == 200
    assert owner.send(1, 2, "label", FIX).status_code == 423


def test_the_next_sequence_is_one_that_nobody_else_has_open(pair):
    _session, owner, bob = pair
    first = owner.get("/api/queue").json()["next"]
    owner.view(first)
    assert owner.get("/api/queue").json()["next"] == first
    assert bob.get("/api/queue").json()["next"] not in (None, first)


def test_a_retry_of_what_is_saved_is_answered_though_another_has_it_now(pair):
    _session, owner, bob = pair
    owner.view(1)
    assert owner.send(1, 0, "label", FIX, uid="once").status_code == 200
    owner.view(2)
    bob.view(1)
    again = owner.send(1, 0, "label", FIX, uid="once")
    assert (again.status_code, again.json()["version"]) == (200, 1)


def test_bulk_acceptance_and_imports_leave_alone_what_others_have_open(pair):
    _session, owner, bob = pair
    bob.view(3)
    ids = [row["id"] for row in owner.get("/api/bulk/preview", confidence=0.5).json()["sequences"]]
    assert 3 in ids
    answer = owner.post("/api/bulk/accept", {"confidence": 0.5, "sequences": ids}).json()
    assert answer["accepted"]
    assert 3 not in answer["accepted"]
    bob.view(answer["accepted"][0])
    undone = owner.post("/api/bulk/undo", {"batch": answer["batch"]}).json()
    assert undone["kept"] == answer["accepted"][:1]
    bob.view(3)
    region = {"from_name": "phrase", "value": {"start": 0, "end": 3, "labels": ["NP"]}}
    task = {"data": {"name": "sequence_0003"}, "annotations": [{"result": [region]}]}
    answer = owner.post("/api/import", {"format": "label-studio", "content": [task]}).json()
    assert (answer["sequences"], "Bob is working" in answer["refused"][0]["message"]) == (0, True)
    assert bob.post("/api/import", {"format": "label-studio", "content": [task]}).json()["sequences"] == 1
    assert bob.get("/api/sequences/3/history").json()["events"][-1]["annotator"] == "Bob"


def test_an_address_works_once_and_guesses_do_not(pair):
    session, _owner, bob = pair
    url = session.invite("Cleo")
    first = Person(url)
    assert first.get("/api/project").json()["annotator"] == "Cleo"
    first.close()
    told = []
    session._server.on_new_address_of = lambda name, address: told.append((name, address))
    assert httpx.get(url).status_code == 401
    assert [name for name, _ in told] == ["Bob", "Cleo"]
    again = Person(dict(told)["Cleo"])
    assert again.get("/api/project").json()["annotator"] == "Cleo"
    again.close()
    assert bob.get("/api/project").status_code == 200, "who is in stays in"
    for name in ("", "x" * 201, "a\nb"):
        with pytest.raises(ValueError, match="expected a name"):
            session.invite(name)


def test_what_a_browser_held_is_free_some_seconds_after_it_left():
    now = [0.0]
    claims = Claims(lambda: now[0])
    claims.arrive("a", "Ann")
    claims.open(1, "a")
    now[0] = 1000.0
    with pytest.raises(Held, match="Ann is working"):
        claims.check(1, "b")
    claims.depart("a")
    now[0] += LEAVE - 1
    assert claims.holder(1, "b") == "Ann"
    now[0] += 2
    assert claims.holder(1, "b") is None


# -- in two browsers


def test_two_browsers_edit_different_sequences_and_the_second_only_reads(browser, tmp_path):
    session, person = open_studio(tmp_path)
    person.close()
    session._server.keys.renew()
    contexts = [browser.new_context(viewport=ROOM) for _ in range(2)]
    addresses = [session.url, session.invite("Bob")]
    ann, bob = (Tab(context.new_page()) for context in contexts)
    ann.open(addresses[0])
    first, _ = ann.painted
    bob.open(addresses[1])
    bob.page.evaluate(f"location.hash = '#{first}'")
    bob.page.wait_for_selector("#about[data-held]")
    assert "read only: the person who started the studio is working on it" in bob.text("#about")
    assert bob.page.is_disabled("#accept-all")
    bob.page.focus("#tracks")
    bob.press("1")
    bob.wait_text("#message", "read only")
    assert bob.view()["version"] == 0
    ann.page.focus("#tracks")
    ann.fix("1")
    bob.wait_version(1, first)  # the second sees what the first does
    other = next(n for n in range(1, 9) if n != first)
    ann.page.evaluate(f"location.hash = '#{other}'")
    ann.wait_other(first)
    bob.page.wait_for_selector("#about:not([data-held])")
    bob.page.focus("#tracks")
    bob.fix("2")
    ann.page.focus("#tracks")
    ann.fix("1")
    assert [event["annotator"] for event in bob.ask(f"/api/sequences/{first}/history")["events"]] == ["", "Bob"]
    assert ann.errors == bob.errors == []
    for context in contexts:
        context.close()
    session.stop()


def test_fixes_of_a_sequence_that_another_took_meanwhile_wait_and_others_go_on(browser, tmp_path):
    session, person = open_studio(tmp_path)
    bob = Person(session.invite("Bob"))
    session._server.keys.renew()
    context = browser.new_context(viewport=ROOM)
    ann = Tab(context.new_page()).open(session.url)
    first, _ = ann.painted
    other = next(n for n in range(1, 9) if n != first)
    session.studio.claims.open(other, next(iter(session._server.keys.people.values())).value)  # as if it had left
    assert bob.view(first)["held_by"] is None
    ann.page.focus("#tracks")
    ann.press("1")
    ann.wait_text("#saved", "NOT saved")
    assert "Bob is working" in ann.page.get_attribute("#saved", "title")
    ann.page.evaluate(f"location.hash = '#{other}'")
    ann.wait_other(first)
    ann.page.focus("#tracks")
    ann.press("2")
    person.wait(lambda project: person.view(other, 0)["version"] == 1)
    bob.view(next(n for n in range(1, 9) if n not in (first, other)))
    ann.wait_text("#saved", "all saved")
    assert bob.view(first, 0)["version"] == 1, "nothing is lost"
    context.close()
    person.close()
    bob.close()
    session.stop()
