"""Kill a studio with signal 9 a hundred times in the midst of work: is everything there that it acknowledged?

    python benchmarks/kills.py [KILLS] [SEED]

Real server processes on one database, training in the background. In turn a script works over HTTP and its server is
killed, or keys are pressed in a real browser and the server, the browser or both are killed. After each kill the
database is opened and compared with what the person was told: every acknowledged event once, versions without a gap.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from playwright.sync_api import sync_playwright

from studio_kills import check, kill_in_browser, kill_once

VICTIMS = ("server", "browser", "server and browser")


def main() -> None:
    kills, seed = (int(sys.argv[k]) if len(sys.argv) > k else default for k, default in ((1, 100), (2, 0)))
    rng, acknowledged = random.Random(seed), {}
    kept, killed = 0, Counter()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        for k in range(kills):
            victims = "server" if k % 2 else rng.choice(VICTIMS)
            if k % 2:
                kill_once(Path(name), rng, acknowledged, k, train_after=3)
            else:
                kill_in_browser(playwright, Path(name), rng, acknowledged, victims, train_after=3)
            killed[victims] += 1
            kept = check(Path(name), acknowledged)
            print(
                f"kill {k + 1}, {victims}: {len(acknowledged)} events acknowledged, {kept} kept, none twice", flush=True
            )
    print(f"{kills} kills ({dict(killed)}): {len(acknowledged)} events were acknowledged, {kept} are kept, 0 lost")


if __name__ == "__main__":
    main()
