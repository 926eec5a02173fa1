"""Tens of thousands of damaged inputs of every format: data files, streams, imports, observations in Python.

    python benchmarks/inputs.py [--inputs 20000] [--formats csv,frames]

damages sound inputs (bytes, lines, cells, separators, encodings, lengths, types) and gives them to a model and to what
``fit`` does before it learns; label files, templates, lexicons, clusters, Parquet, models and shards to commands of the
shell, in this process; files of ELAN, Praat, BORIS and Label Studio to the import; lines to a stream. Prints one table
in Markdown: for each format how many were refused in one sentence, and of how many all steps came out that went in.
Whatever else happens is a failure, listed below the table, and makes the exit code 1: another exception, a warning
of NumPy, more than 30 seconds, or steps that were lost.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from spoiled import FORMATS, Bench


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=20_000, help="of all formats together (default: %(default)s)")
    parser.add_argument("--formats", default=",".join(FORMATS), help="default: %(default)s")
    args = parser.parse_args()
    names, bench, failures = args.formats.split(","), Bench(), []
    print("| format | refused | read whole | failed |\n|---|--:|--:|--:|")
    total: Counter[str] = Counter()
    for name in names:
        count: Counter[str] = Counter()
        for number in range(-(-args.inputs // len(names))):
            found = bench.outcome(name, number)
            count[found if found in ("refused", "read") else "failed"] += 1
            if found not in ("refused", "read"):
                failures.append(f"- {name} {number}: {found}")
        total += count
        print(f"| {name} | {count['refused']} | {count['read']} | {count['failed']} |", flush=True)
    print(f"| all | {total['refused']} | {total['read']} | {total['failed']} |")
    print(f"\n{len(failures)} of {sum(total.values())} inputs failed", *failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
