"""Kill a studio with signal 9 many times in the midst of work: is everything there that it acknowledged?

    python benchmarks/kills.py [--kills 200] [--jobs 4] [--seed 0] [--minutes M]

Real server processes on one database, training in the background. In turn a script works over HTTP and its server is
killed, or keys are pressed in a real browser and the server, the browser or both are killed. The script labels, marks,
accepts in bulk, undoes and imports files. After each kill the database is opened and compared with what the person was
told: every acknowledged event, batch and import once, versions without a gap. After every tenth kill the making of a
database of two people (``hscrf studio agree``) is killed too. Jobs are processes, each with a database and a browser of
its own: most of the time of a kill is spent on starting servers, so that a few of them fill two cores.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from playwright.sync_api import sync_playwright

from studio_kills import check, kill_in_browser, kill_once, kill_settling

VICTIMS = ("server", "browser", "server and browser")


def life(job: int, kills: int, seed: int, minutes: float) -> tuple[Counter[str], int, int]:
    """Kill one database many times; kinds of kills, how much was acknowledged, and how many events were kept."""
    rng, acknowledged = random.Random(f"{seed}-{job}"), {}
    kept, killed, begin = 0, Counter(), time.monotonic()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        for k in range(kills):
            if time.monotonic() - begin > 60 * minutes:
                break
            victims = "server" if k % 2 else rng.choice(VICTIMS)
            if k % 2:
                kill_once(Path(name), rng, acknowledged, k, train_after=3)
            else:
                kill_in_browser(playwright, Path(name), rng, acknowledged, victims, train_after=3)
            killed[victims] += 1
            kept = check(Path(name), acknowledged)
            if k % 10 == 9:
                kill_settling(Path(name), rng)
                killed["agreement"] += 1
            said = f"{len(acknowledged)} events acknowledged, {kept} kept, none twice"
            print(f"job {job}, kill {k + 1}, {victims}: {said}", flush=True)
    return killed, len(acknowledged), kept


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill a studio during work and look for lost events.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=4, help="processes, each with a database of its own")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    args = parser.parse_args()
    shares = [len(range(job, args.kills, args.jobs)) for job in range(args.jobs)]
    begin = time.monotonic()
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn")) as pool:
        lives = [pool.submit(life, job, kills, args.seed, args.minutes) for job, kills in enumerate(shares)]
        found = [one.result() for one in lives]
    killed = sum((kinds for kinds, _, _ in found), Counter())
    acknowledged, kept = (sum(row[k] for row in found) for k in (1, 2))
    said = f"{acknowledged} events, batches and imports were acknowledged, {kept} events are kept, 0 lost"
    print(f"{killed.total()} kills ({dict(killed)}) in {time.monotonic() - begin:.0f} s: {said}")


if __name__ == "__main__":
    main()
