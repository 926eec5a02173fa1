"""All comparisons in one command: the tables of the performance page, made again on your machine.

    make compare [COMPARE="--torch --dynamax --output tables.md"]
    python benchmarks/compare.py [--quick] [--torch] [--dynamax] [--only NAME ...] [--output FILE] [--here]

It makes an environment of its own (``build/compare``), installs hscrf from this checkout with its compiled core,
CRFsuite and hmmlearn, and on demand PyTorch with pytorch-crf, torch-struct and flash-semicrf (``--torch``, a large
download) and dynamax with JAX (``--dynamax``). Then it runs the scripts of this folder. Systems take turns, on one
thread unless a table says otherwise; only ratios mean anything.

    hmms       benchmarks/hmms.py: hmmlearn and dynamax (--dynamax) on the grid of HiddenMarkovModels.jl's comparison
    families   benchmarks/families.py: CRFsuite, hmmlearn, product labels
    learning   benchmarks/learning.py: CRFsuite on CoNLL-2000 (downloaded if HSCRF_DATA does not have it)
    torch      benchmarks/neural.py: pytorch-crf, torch-struct and flash-semicrf, with --torch
    growth     benchmarks/engine.py: time and memory of hscrf alone as sequences grow

``--here`` uses the environment of this interpreter instead and installs nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
TORCH = ("torch==2.13.0", "safetensors>=0.4", "pytorch-crf")
WITHOUT_DEPENDENCIES = ("torch-struct", "flash-semicrf")  # they ask for more than the comparison needs
FETCH = "import os; from hscrf import datasets; datasets.fetch_conll2000(folder=os.environ['FOLDER'])"
FAILED = "The script ended with an error"
TITLES = {
    "hmms": "Hidden Markov models: 50 sequences x 100 steps, one thread, milliseconds",
    "families": "The family next to its peers, one thread, seconds",
    "learning": "Learning and tagging next to CRFsuite, CoNLL-2000",
    "torch": "Layers for PyTorch, one thread",
    "growth": "Growth with the length: time and memory of the engine, one thread",
}
NOTES = {  # below the titles
    "hmms": "*Forward* is the log-likelihood, *forward-backward* also gives the posteriors of all steps.",
    "families": "*Value and gradient* is one evaluation of the training loss. torch-struct is a library for GPUs.",
    "learning": """\
Both minimise the same loss by L-BFGS on the same features, and stop by the same rule. `hscrf 1` and `hscrf 2` have
one and two threads, CRFsuite one. *End to end* goes from features to the saved model, *set-up* is the part before the
first iteration. *MB* is the largest memory of the process, *own* that of training alone. The second table gives each
solver ten epochs, or fifty iterations. The third one is tagging, in bulk and a sentence at a time. In the last one
CRFsuite has a label for each combination of the levels, and hscrf a nested model.""",
    "growth": "T is the number of steps. `benchmarks/engine.py` prints more columns.",
}


def install(python: str, extra: list[str], folder: Path) -> str:
    """An environment with hscrf and its neighbours; its interpreter."""
    inside = folder / "bin" / "python"
    if not inside.exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
    command = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, f"{ROOT}[benchmarks,data]", *extra], check=True)
    for package in WITHOUT_DEPENDENCIES if TORCH[0] in extra else ():
        if subprocess.run([*command, "--no-deps", package], check=False).returncode:
            print(f"{package} is left out: it could not be installed", file=sys.stderr)
    return str(inside)


def run(python: str, *command: str) -> str:
    """What a script prints; it is shown as it comes. A script that fails leaves a line in its place."""
    print(f"$ python {' '.join(command)}", file=sys.stderr, flush=True)
    process = subprocess.Popen([python, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    lines = []
    for line in process.stdout or ():
        print(line, end="", flush=True)
        lines.append(line)
    if process.wait():
        lines.append(f"\n{FAILED} (exit code {process.returncode}).\n")
        print(lines[-1], flush=True)
    return "".join(lines)


def below(tables: str) -> str:
    """What a script prints, as part of a page: without its title, its headings one level lower."""
    lines = [line for line in tables.strip().splitlines() if not line.startswith("# ")]
    return "\n".join(f"#{line}" if line.startswith("## ") else line for line in lines).strip()


def narrow(tables: str, last: str = "peak (MB)") -> str:
    """Tables without the columns after the one named ``last``."""
    lines, width = [], 0
    for line in tables.splitlines():
        cells = line.strip("|").split("|") if line.startswith("|") else []
        width = 0 if not cells else width or [cell.strip() for cell in [*cells, last]].index(last) + 1
        lines.append(f"|{'|'.join(cells[:width])}|" if cells else line)
    return "\n".join(lines)


def machine() -> str:
    """Processor, cores, system."""
    model = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        found = [line for line in cpus.read_text().splitlines() if line.startswith("model name")]
        model = found[0].partition(":")[2].strip() if found else model
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def commit() -> str:
    """The commit of the checkout, with a plus if something has changed since."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + ("+" if git("status", "--porcelain", "-uno") else "")


def commands(options: argparse.Namespace) -> dict[str, list[str]]:
    """The script of each table, with its arguments."""
    quick = ["--quick"] if options.quick else []
    tables = ["iterations", "quality", "tagging", "product"]
    return {
        "hmms": ["benchmarks/hmms.py", *quick],
        "families": ["benchmarks/families.py", *quick],
        "learning": ["benchmarks/learning.py", *quick, "--table", *tables],
        "torch": ["benchmarks/neural.py", *(["--rounds", "3"] if options.quick else [])],
        "growth": ["benchmarks/engine.py", *quick, "--only", "markov", "segmental", "known", "start-up"],
    }


def conll2000(python: str) -> str:
    """The folder with CoNLL-2000, downloaded if need be; "" where that is not possible."""
    given = os.environ.get("HSCRF_DATA", "")
    if given and Path(given, "conll2000", "train.txt").is_file():
        return given
    folder = str(ROOT / "build" / "data")
    done = subprocess.run(
        [python, "-c", FETCH], env={**os.environ, "FOLDER": folder}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"learning is left out: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    return "" if done.returncode else folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes and few repetitions")
    parser.add_argument("--torch", action="store_true", help="PyTorch and pytorch-crf too")
    parser.add_argument("--dynamax", action="store_true", help="dynamax and JAX too")
    parser.add_argument("--only", nargs="+", choices=list(TITLES), default=list(TITLES), help="tables (default: all)")
    parser.add_argument("--output", type=Path, help="also write the tables to a Markdown file")
    parser.add_argument("--environment", type=Path, default=ROOT / "build" / "compare", help="where to install")
    parser.add_argument("--here", action="store_true", help="use this interpreter's environment, install nothing")
    options = parser.parse_args()
    extra = [*(TORCH if options.torch else ()), *(["dynamax"] if options.dynamax else ())]
    python = sys.executable if options.here else install(sys.executable, extra, options.environment)
    wanted = [name for name in options.only if name != "torch" or options.torch or options.here]
    data = conll2000(python) if "learning" in wanted else ""
    if "learning" in wanted and not data:
        wanted.remove("learning")
    parts = [
        f"Commit {commit()}; {machine()}.",
        f"Command: `python benchmarks/compare.py {' '.join(sys.argv[1:])}`".rstrip(" `") + "`",
        "```text\n"
        + subprocess.run(
            [python, "-c", "import hscrf; hscrf.show_versions()"], capture_output=True, text=True, check=True
        ).stdout.strip()
        + "\n```",
    ]
    failed = []
    for name in wanted:
        command = commands(options)[name]
        if name == "learning":
            command += ["--data", data]
        print(f"\n## {TITLES[name]}\n", flush=True)
        note = f"{NOTES[name]}\n\n" if name in NOTES else ""
        tables = below(run(python, *command))
        parts.append(f"## {TITLES[name]}\n\n{note}{narrow(tables) if name == 'growth' else tables}")
        failed += [name] if FAILED in parts[-1] else []
        if options.output:  # what is there stays if a later table is interrupted
            options.output.write_text("# Comparisons\n\n" + "\n\n".join(parts) + "\n", encoding="utf-8")
    if failed:
        sys.exit(f"without a complete table: {', '.join(failed)}")


if __name__ == "__main__":
    main()
