"""Kill a real server with signal 9 at random moments of scripted work, and compare what it kept with what it said."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx

from hscrf.studio.events import State
from hscrf.studio.store import Store
from studio_fixtures import Person, small_model

TESTS = Path(__file__).resolve().parent


def start(folder, train_after=1000):
    """A server process and a person who has logged in."""
    if not (folder / "model.hscrf").exists():
        small_model().save(folder / "model.hscrf")
    path = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
    process = subprocess.Popen([sys.executable, str(TESTS / "studio_worker.py"), str(folder), str(train_after)],
                               env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True)  # fmt: skip
    return process, Person(process.stdout.readline().strip(), timeout=60)


def work(person, rng, acknowledged, round_number, begun):
    """Events on random sequences until the server is gone; the uids of those it has answered."""
    with contextlib.suppress(httpx.HTTPError):
        for k in range(10_000):
            n = rng.randrange(1, 9)
            view = person.http.get(f"/api/sequences/{n}").json()
            kind, body = operation(rng, view)
            uid = f"r{round_number}-{k}"
            answer = person.send(n, view["version"], kind, body, uid=uid)
            if answer.status_code == 200:
                acknowledged[uid] = n
                begun.set()


def operation(rng, view):
    """Something that a person could do."""
    choice = rng.random()
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


def check(folder, acknowledged):
    """Every acknowledged event is there once, versions have no gap, the states can be replayed; events kept."""
    from hscrf.studio.evidence import levels_of
    from studio_fixtures import TOPOLOGY

    kept = []
    with Store(folder / "labels.sqlite") as store:
        assert store._one("PRAGMA integrity_check") == "ok"
        for row in store.sequences():
            events = store.events(row.id)
            assert [event.version for event in events] == list(range(1, len(events) + 1))
            State.replayed(levels_of(TOPOLOGY), row.length, events)
            kept += [event.uid for event in events]
            assert {uid for uid, n in acknowledged.items() if n == row.id} <= {event.uid for event in events}
    assert len(kept) == len(set(kept))
    return len(kept)
