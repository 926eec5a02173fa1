"""Writes docs/performance.md from what benchmarks/compare.py measures: ``make performance``.

    python docs/performance.py [arguments of benchmarks/compare.py]
    python docs/performance.py --read tables.md      # tables that compare.py has written before

The tables name the commit, the machine and the command; nothing on the page is written by hand but its first lines.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
INTRODUCTION = """\
# Performance

How fast is hscrf compared with other libraries, at tasks that they share? All systems compute the same thing and take
turns on one machine; compare the ratios, not the times. `make performance` measures everything again and rewrites this
page; `make compare` installs the other libraries in an environment of its own and prints the tables.

Other pages have the growth with the size of the data: [memory and time of shards](scale.md#memory-and-time),
[streams](streams.md#what-it-costs), [the PyTorch layer](neural.md#speed).
"""


def measure(arguments):
    """The Markdown that compare.py writes."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "tables.md"
        command = [sys.executable, str(ROOT / "benchmarks" / "compare.py"), *arguments, "--output", str(output)]
        subprocess.run(command, cwd=ROOT, check=True)
        if not output.exists():  # --help
            sys.exit()
        return output.read_text(encoding="utf-8")


def page(tables):
    """The page: our introduction, then the tables without their title and without the path of the temporary file."""
    lines = tables.splitlines()
    kept = [line for line in lines if not line.startswith("# ")]
    for k, line in enumerate(kept):
        if line.startswith("Command:"):
            kept[k] = line.partition(" --output")[0].rstrip("`") + "`"
    return INTRODUCTION + "\n" + "\n".join(kept).strip() + "\n"


if __name__ == "__main__":
    given = sys.argv[1:2] == ["--read"]
    found = Path(sys.argv[2]).read_text(encoding="utf-8") if given else measure(sys.argv[1:])
    PAGE.write_text(page(found), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written")
