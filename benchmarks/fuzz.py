"""Tens of thousands of damaged files of every family: what happens to somebody who opens them.

    python benchmarks/fuzz.py [--files 20000] [--families chain,shell] [--folder FOLDER]

prints one table in Markdown: for each family and kind of damage how many files were refused in one sentence, how many
gave a model that declined the input in one sentence, and how many predicted. Whatever else happens is a failure, listed
below the table, and makes the exit code 1: another exception, a warning, a crash of the interpreter, more than 30
seconds, or more memory than 256 MB for a file of a few kilobytes. A family and a number always give the same file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import strangers
from damage import KINDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=20_000, help="of all families together (default: %(default)s)")
    parser.add_argument("--families", default=",".join(strangers.FAMILIES), help="default: %(default)s")
    parser.add_argument("--folder", help="where the sound files are kept (default: a temporary folder)")
    args = parser.parse_args()
    families = args.families.split(",")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.folder or temporary)
        if not (folder / strangers.FAMILIES[-1]).exists():
            strangers.write_files(folder)
        outcomes = strangers.open_all(folder, -(-args.files // len(families)), families, progress)
    print_table({family: strangers.tally(found) for family, found in outcomes.items()})
    failures = [
        f"- {family} {number}, {strangers.kind_of(number)}: {text}"
        for family, found in outcomes.items()
        for number, text in found.items()
        if text not in strangers.GOOD
    ]
    print(f"\n{len(failures)} of {sum(map(len, outcomes.values()))} files failed", *failures, sep="\n")
    return 1 if failures else 0


def progress(done: int, total: int) -> None:
    if done % 1000 == 0 or done == total:
        print(f"{done} of {total} files", file=sys.stderr, flush=True)


def print_table(tallies: dict[str, dict[str, Counter[str]]]) -> None:
    """A row for each kind of damage, a column for each family: refused / declined / predicted, then failed."""
    families = list(tallies)
    print("refused / declined / predicted / failed\n")
    print("| damage |", " | ".join([*families, "all"]), "|")
    print("|---|" + "---|" * (len(families) + 1))
    for kind in [*KINDS, "all"]:
        counts = [
            sum(tallies[family].values(), Counter()) if kind == "all" else tallies[family][kind] for family in families
        ]
        print(f"| {kind} |", " | ".join(map(cell, [*counts, sum(counts, Counter())])), "|")


def cell(count: Counter[str]) -> str:
    return " / ".join(str(count[name]) for name in (*strangers.GOOD, "FAILED"))


if __name__ == "__main__":
    sys.exit(main())
