"""Kill a real server and a real browser with signal 9 at random moments of scripted work, and compare what the database
kept with what the person was told."""

import base64
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx

from browsing import PlaywrightError, start_browser
from hscrf.studio.data.database import Database
from hscrf.studio.data.events import State
from studio_fixtures import Person, small_model

TESTS = Path(__file__).resolve().parent


def start_server(folder, train_after=1000, *port):
    """A server process and its address."""
    if not (folder / "model.hscrf").exists():
        small_model().save(folder / "model.hscrf")
    path = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
    process = subprocess.Popen([sys.executable, str(TESTS / "studio_worker.py"), str(folder), str(train_after), *port],
                               env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True)  # fmt: skip
    return process, process.stdout.readline().strip()


def start(folder, train_after=1000):
    """A server process and a person who has logged in."""
    process, url = start_server(folder, train_after, "0")
    return process, Person(url, timeout=60)


def work(person, rng, acknowledged, round_number, begun):
    """Events, imports and acceptances in bulk until the server is gone; what it has answered.

    Keys of ``acknowledged`` are uids of events, batches, and levels with the segments that were imported.
    """
    with contextlib.suppress(httpx.HTTPError):
        for k in range(10_000):
            n = rng.randrange(1, 9)
            choice = rng.random()
            if choice < 0.1:
                import_once(person, rng, acknowledged, n)
                continue
            if choice < 0.15:
                bulk_once(person, rng, acknowledged)
                continue
            view = person.http.get(f"/api/sequences/{n}").json()
            kind, body = operation(rng, view)
            uid = f"r{round_number}-{k}"
            answer = person.send(n, view["version"], kind, body, uid=uid)
            if answer.status_code == 200:
                acknowledged[uid] = n
                begun.set()


def import_once(person, rng, acknowledged, n):
    """A table of one segment, in one request with another one that is refused."""
    label = rng.choice(["NP", "VP", "O"])
    rows = f"sequence,start,stop,level,label\nsequence_{n:04d},0,1,phrase,{label}\nnobody,0,1,phrase,NP\n"
    content = base64.b64encode(rows.encode()).decode()
    answer = person.post("/api/import", {"file": "x.csv", "data": content})
    if answer.status_code == 200 and answer.json()["sequences"]:
        acknowledged["import", n, label] = n


def bulk_once(person, rng, acknowledged):
    """Accept what the model is sure of; half of the time take it back."""
    ids = [row["id"] for row in person.get("/api/bulk/preview", confidence=0.5).json()["sequences"]]
    answer = person.post("/api/bulk/accept", {"confidence": 0.5, "sequences": ids}).json()
    for n in answer["accepted"]:
        acknowledged["batch", n, answer["batch"]] = n
    if rng.random() < 0.5:
        person.post("/api/bulk/undo", {"batch": answer["batch"]})


def operation(rng, view):
    """Something that a person could do."""
    choice = rng.random()
    if choice < 0.1:
        return "mark", {"flag": rng.random() < 0.5, "note": f"note {rng.random():.3f}"}
    if choice < 0.15 and view["can_undo"]:
        return "undo", {}
    if choice < 0.25 and view["can_redo"]:
        return "redo", {}
    if choice < 0.4 and None not in [label for _, _, label in view["segments"]["tag"]]:
        return "accept", {"whole": True, "segments": view["segments"]}
    start = rng.randrange(view["length"])
    label = rng.choice(["NP", "VP", "O"])
    return "label", {"level": "phrase", "start": start, "stop": start + 1, "label": label}


def kill_once(folder, rng, acknowledged, round_number, train_after=1000):
    """One life of a server: some work, then signal 9 at a random moment."""
    process, person = start(folder, train_after)
    try:
        begun = threading.Event()
        worker = threading.Thread(target=work, args=(person, rng, acknowledged, round_number, begun))
        worker.start()
        if rng.random() < 0.9:  # else while it is starting
            begun.wait(60)
        time.sleep(rng.uniform(0.0, 0.5))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        worker.join()
    finally:
        process.kill()
        process.stdout.close()
        person.close()


KEYS = ("s", "a", "1", "2", "3", "z", "Control+y", "A", "n", "u", "]", "ArrowRight", "ArrowRight", "ArrowDown", "Home")


def kill_in_browser(playwright, folder, rng, acknowledged, victims, train_after=1000):
    """One life of a page: keys are pressed at random, then server, browser or both are killed, and come back.

    The browser keeps its profile. What the page was told to be saved is added to ``acknowledged``; at the end nothing
    waits in the browser any more.
    """
    server, url = start_server(folder, train_after)
    room = open_profile(playwright, folder, acknowledged)
    try:
        page = look(room, server, url)
        timer = threading.Timer(rng.uniform(0.1, 1.5), kill_all, [victims, server, folder])
        timer.start()
        with contextlib.suppress(PlaywrightError):
            while timer.is_alive():
                page.keyboard.press(rng.choice(KEYS))
            for _ in range(5):  # the page goes on by itself for a while
                page.keyboard.press(rng.choice(KEYS))
        timer.join()
        if "browser" in victims:
            with contextlib.suppress(PlaywrightError):
                room.close()
            room = open_profile(playwright, folder, acknowledged)
        if "server" in victims:
            server.wait()
            server.stdout.close()
            server, url = start_server(folder, train_after)
        page = look(room, server, url)
        page.wait_for_function(
            "() => document.getElementById('saved').textContent.includes('all saved')", timeout=60_000
        )
        waiting = "Object.keys(localStorage).filter((key) => key.startsWith('hscrf-studio/')).length"
        page.wait_for_function(f"() => {waiting} === 0", timeout=60_000)
    finally:
        with contextlib.suppress(PlaywrightError):
            room.close()
        server.kill()
        server.wait()
        server.stdout.close()


def open_profile(playwright, folder, acknowledged):
    """A browser whose storage outlives it; what it is told to be saved is noted."""
    room = start_browser(playwright, profile=folder / "profile")

    def hear(response):
        if response.request.method == "POST" and response.status == 200 and response.url.endswith("/events"):
            acknowledged[response.request.post_data_json["uid"]] = int(response.url.split("/")[-2])

    room.on("response", hear)
    return room


def look(room, server, url):
    """A page that shows the studio; to a browser that has lost its cookie the server prints a new address."""
    page = room.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    page.set_default_timeout(60_000)
    if page.goto(url).status == 401:
        page.goto(server.stdout.readline().strip())
    page.wait_for_selector("html[data-painted]")
    return page


def kill_all(victims, server, folder):
    """Signal 9, at once, to the server, or to all processes of the browser that has its profile in the folder."""
    if "server" in victims:
        os.kill(server.pid, signal.SIGKILL)
    if "browser" in victims:
        for found in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if f"--user-data-dir={folder / 'profile'}".encode() in found.read_bytes().split(b"\0"):
                    os.kill(int(found.parent.name), signal.SIGKILL)


SETTLE = """
import sys
from hscrf.studio.exchange.agreement import annotations_of, common_annotations, settle
a, b, both = sys.argv[1:]
(topology, one, _), (_, other, _) = map(annotations_of, (a, b))
print("begun", flush=True)
settle(both, topology, list(common_annotations(one, other)), ("Ann", "Bob"))
print("done", flush=True)
"""


def kill_settling(folder, rng):
    """Kill the making of a database of two people, begin again until it is there; how many events it has.

    A database that has its name is whole, whenever the process was killed.
    """
    for name in ("ann", "bob"):
        with sqlite3.connect(folder / "labels.sqlite") as source, sqlite3.connect(folder / f"{name}.sqlite") as target:
            source.backup(target)
        source.close()
        target.close()
    counts = []
    for name, patience in (("whole", None), ("killed", rng.uniform(0, 0.3))):
        path = folder / f"{name}.sqlite"
        path.unlink(missing_ok=True)
        paths = [str(folder / f"{each}.sqlite") for each in ("ann", "bob", name)]
        while not path.exists():
            environment = {**os.environ, "PYTHONPATH": str(TESTS.parent / "src")}
            process = subprocess.Popen(
                [sys.executable, "-c", SETTLE, *paths], env=environment, stdout=subprocess.PIPE, text=True
            )
            assert process.stdout.readline() == "begun\n"
            if patience is not None:
                time.sleep(patience)
                process.kill()
                patience = None
            process.wait()
            process.stdout.close()
        with Database(path) as store:
            assert store._one("PRAGMA integrity_check") == "ok"
            counts.append(store.last_event())
    assert counts[0] == counts[1]
    return counts[0]


def check(folder, acknowledged):
    """Every acknowledged event is there once, versions have no gap, the states can be replayed; events kept."""
    from hscrf.studio.data.evidence import levels_of
    from studio_fixtures import TOPOLOGY

    kept = []
    with Database(folder / "labels.sqlite") as store:
        assert store._one("PRAGMA integrity_check") == "ok"
        for row in store.sequences():
            events = store.events(row.id)
            assert [event.version for event in events] == list(range(1, len(events) + 1))
            State.replayed(levels_of(TOPOLOGY), row.length, events)
            kept += [event.uid for event in events]
            there = {event.uid for event in events}
            there |= {("batch", row.id, event.body.get("batch")) for event in events}
            there |= {
                ("import", row.id, label)
                for event in events
                if event.kind == "import"
                for entry in event.body["levels"].values()
                for _, _, label in entry["labels"]
            }
            assert {key for key, n in acknowledged.items() if n == row.id} <= there
            batches = [event.body["batch"] for event in events if event.body.get("batch")]
            assert len(batches) == len(set(batches)), "a batch accepts a sequence once"
    assert len(kept) == len(set(kept))
    return len(kept)
