"""Kill a studio with signal 9 a hundred times in the midst of work: is everything there that it acknowledged?

    python benchmarks/kills.py [KILLS] [SEED]

Real server processes on one database, a scripted person, training in the background. After each kill the database is
opened and compared with what the person was told: every acknowledged event once, versions without a gap.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from studio_kills import check, kill_once


def main() -> None:
    kills, seed = (int(sys.argv[k]) if len(sys.argv) > k else default for k, default in ((1, 100), (2, 0)))
    rng, acknowledged = random.Random(seed), {}
    kept = 0
    with tempfile.TemporaryDirectory() as name:
        for k in range(kills):
            kill_once(Path(name), rng, acknowledged, k, train_after=3)
            kept = check(Path(name), acknowledged)
            print(f"kill {k + 1}: {len(acknowledged)} events acknowledged, {kept} kept, none twice", flush=True)
    print(f"{kills} kills: {len(acknowledged)} events were acknowledged, {kept} are kept, 0 lost")


if __name__ == "__main__":
    main()
