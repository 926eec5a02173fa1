"""What all studies share: options, folds, records of every number, tables, figures, paired tests, one JSON file.

A study is a script with a docstring (its first line is the title on the results page) and a function that fills a
:class:`Study`:

    def run(study):
        for seed in range(study.pick(smallest=1, quick=3, full=10)):
            study.record("accuracy", 0.91, system="HSCRF", level="activity", seed=seed)
        study.heading("Full labels")
        study.table("accuracy", rows="system", columns="level", percent=True, caption="Right steps in %.")
        study.figure("indoor-curve", axes, "Accuracy against known labels.")
        study.differences("accuracy", [("HSCRF", "flat CRF")], over="system", columns="level")
        study.say("Better than the flat CRF: " + str(study.compare("accuracy", "HSCRF", "flat CRF", "system")))

    if __name__ == "__main__":
        main(run, __file__, __doc__)

    python experiments/<study>.py [--quick | --full | --smallest] [--data DIR] [--out DIR] [--resume]

With ``--resume`` a study begins with the numbers that its file already holds; studies that ask ``study.select`` before
they measure something then leave it out.

The full variant writes ``experiments/results/<study>.json`` and figures for the site, which are kept under version
control; the others write to ``experiments/quick``. ``report.py`` makes the page from the JSON files.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "agg")

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FULL, QUICK = HERE / "results", HERE / "quick"
PAGE_FIGURES = ROOT / "docs" / "_results"
VARIANTS = ("smallest", "quick", "full")
PACKAGES = ("numpy", "scipy", "scikit-learn", "hscrf")


class Study:
    """The numbers of one study, and the blocks (headings, text, tables, figures) of its part of the page."""

    def __init__(self, name: str, text: str, variant: str = "quick", data: str | None = None, out: Any = None) -> None:
        self.name, self.text, self.variant, self.data = name, text, variant, data
        self.out = Path(out) if out else (FULL if variant == "full" else QUICK)
        self.figures = PAGE_FIGURES if variant == "full" and not out else self.out
        self.records: list[dict[str, Any]] = []
        self.blocks: list[dict[str, str]] = []
        self.begin, self.commit = time.perf_counter(), commit()
        self.spent = 0.0  # seconds of earlier runs that this one goes on with

    def pick(self, smallest: Any, quick: Any, full: Any) -> Any:
        """The setting of this variant."""
        return {"smallest": smallest, "quick": quick, "full": full}[self.variant]

    # -- numbers -----------------------------------------------------------------------------------------------------

    def record(self, name: str, value: float, **keys: Any) -> float:
        """Keep a number under its name and keys; say it on the terminal."""
        self.records.append({"name": name, **keys, "value": float(value)})
        where = " ".join(f"{key}={given}" for key, given in keys.items())
        print(f"[{time.perf_counter() - self.begin:6.0f} s] {name} {where}: {value:.4g}", flush=True)
        return float(value)

    @contextmanager
    def timed(self, name: str = "seconds", **keys: Any) -> Iterator[None]:
        """Record how many seconds of a core the block takes."""
        begin = time.process_time()
        yield
        self.record(name, time.process_time() - begin, **keys)

    def select(self, name: str, **keys: Any) -> list[dict[str, Any]]:
        """The records of this name that agree with the keys, in order."""
        return [r for r in self.records if r["name"] == name and all(r.get(k) == v for k, v in keys.items())]

    def values(self, name: str, **keys: Any) -> list[float]:
        return [record["value"] for record in self.select(name, **keys)]

    def mean(self, name: str, **keys: Any) -> float:
        return float(np.mean(self.values(name, **keys)))

    def compare(self, name: str, one: Any, other: Any, over: str, **keys: Any) -> Comparison:
        """Paired test of two values of the key ``over``; records are paired by all their other keys."""
        first, second = (
            {pair_key(r, over): r["value"] for r in self.select(name, **keys, **{over: which})}
            for which in (one, other)
        )
        shared = [key for key in first if key in second]
        return paired([first[key] for key in shared], [second[key] for key in shared])

    # -- the page ----------------------------------------------------------------------------------------------------

    def heading(self, text: str) -> None:
        """Begin a section; those before it are safe in the file, whatever happens."""
        if self.blocks:
            self.write(finished=False)
        self.blocks.append({"kind": "heading", "text": text})

    def say(self, text: str) -> None:
        """A paragraph of the page."""
        self.blocks.append({"kind": "text", "text": text})
        print(text, flush=True)

    def table(
        self,
        name: str,
        rows: str,
        columns: str,
        caption: str = "",
        percent: bool = False,
        digits: int = 1,
        spread: bool = True,
        **keys: Any,
    ) -> None:
        """A table of means over all other keys, with standard deviations if there are several numbers."""
        chosen = self.select(name, **keys)
        table = markdown_table(chosen, rows, columns, 100 if percent else 1, digits, spread)
        self.blocks.append({"kind": "table", "text": table, "caption": caption})
        print(caption, table, sep="\n", flush=True)

    def differences(
        self, name: str, pairs: Sequence[tuple[Any, Any]], over: str, columns: str, caption: str = "", **keys: Any
    ) -> None:
        """A table of paired tests: rows are pairs of values of ``over``, columns the values of another key."""
        names = list(dict.fromkeys(r[columns] for r in self.select(name, **keys)))
        lines = [["difference in points", *map(str, names)]]
        for one, other in pairs:
            cells = [self.compare(name, one, other, over, **keys, **{columns: column}) for column in names]
            lines.append([f"{one} − {other}", *map(str, cells)])
        self.lines(lines, caption)

    def lines(self, lines: Sequence[Sequence[str]], caption: str = "") -> None:
        """A table of given cells; the first line is the head."""
        self.blocks.append({"kind": "table", "text": markdown(lines), "caption": caption})
        print(caption, markdown(lines), sep="\n", flush=True)

    def figure(self, name: str, axes: Any, caption: str) -> None:
        """Save the figure of some axes as a small PNG."""
        import matplotlib.pyplot

        self.figures.mkdir(parents=True, exist_ok=True)
        drawn = axes.figure
        drawn.savefig(self.figures / f"{name}.png", dpi=90, bbox_inches="tight")
        matplotlib.pyplot.close(drawn)
        self.blocks.append({"kind": "figure", "text": f"{name}.png", "caption": caption})

    # -- the file ----------------------------------------------------------------------------------------------------

    def resume(self) -> None:
        """Take over the numbers of an earlier run, if there was one."""
        path = self.out / f"{self.name}.json"
        if path.is_file():
            content = json.loads(path.read_text(encoding="utf-8"))
            self.records, self.spent = content["records"], content["seconds"]

    def write(self, finished: bool = True) -> Path:
        """Write everything to one JSON file."""
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / f"{self.name}.json"
        content = {
            "study": self.name,
            "variant": self.variant,
            "command": f"python experiments/{self.name}.py --{self.variant}",
            "commit": self.commit,
            "versions": versions(),
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            "seconds": round(self.spent + sum(os.times()[:4]), 1),  # of processes, those that they started too
            "finished": finished,
            "text": self.text,
            "blocks": self.blocks,
            "records": [{**r, "value": tidy_number(r["value"])} for r in self.records],
        }
        lines = json.dumps({**content, "records": "RECORDS"}, indent=1)
        records = ",\n".join("  " + json.dumps(r) for r in content["records"])  # one line for each number
        path.write_text(lines.replace('"RECORDS"', f"[\n{records}\n ]") + "\n", encoding="utf-8")
        return path


def main(run: Callable[[Study], None], file: str, docstring: str | None, arguments: Sequence[str] | None = None) -> int:
    """Parse the options, run the study, write its JSON file."""
    text = docstring or ""
    parser = argparse.ArgumentParser(description=text.partition("\n")[0])
    which = parser.add_mutually_exclusive_group()
    for variant in VARIANTS:
        which.add_argument(f"--{variant}", dest="variant", action="store_const", const=variant)
    parser.add_argument("--data", help="folder of the data sets (default: $HSCRF_DATA)")
    parser.add_argument("--out", help="folder of the results (default: experiments/results, or experiments/quick)")
    parser.add_argument("--resume", action="store_true", help="keep the numbers that the file of results holds")
    parser.set_defaults(variant="quick")
    options = parser.parse_args(arguments)
    study = Study(Path(file).stem, text, options.variant, options.data or os.environ.get("HSCRF_DATA"), options.out)
    if options.resume:
        study.resume()
    try:
        run(study)
    except KeyboardInterrupt:
        print(f"Interrupted: the numbers so far are in {os.path.relpath(study.write(finished=False))}.")
        return 130
    print(f"Every number is in {os.path.relpath(study.write())}.")
    return 0


# -- folds ------------------------------------------------------------------------------------------------------


def folds(n: int, k: int, seed: int = 0) -> list[tuple[list[int], list[int]]]:
    """Indices of n things for k-fold cross-validation: (rest, fold) for each fold, drawn at random."""
    order = np.random.default_rng(seed).permutation(n)
    parts = [sorted(part.tolist()) for part in np.array_split(order, k)]
    return [(sorted(set(range(n)) - set(part)), part) for part in parts]


def group_folds(groups: Sequence[Any]) -> dict[Any, tuple[list[int], list[int]]]:
    """Leave one group out: group -> (indices of the rest, indices of the group)."""
    return {
        group: ([n for n, g in enumerate(groups) if g != group], [n for n, g in enumerate(groups) if g == group])
        for group in sorted(set(groups))
    }


def take(items: Sequence[Any], which: Sequence[int]) -> list[Any]:
    return [items[n] for n in which]


# -- paired tests --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """Mean difference of pairs (one - other), how often it is positive, and a two-sided p-value.

    As text: percentage points, and in brackets the wins of all pairs and p.
    """

    difference: float
    wins: int
    ties: int
    n: int
    p: float
    test: str

    @property
    def better(self) -> bool:
        """One is better than the other, and hardly by chance."""
        return self.difference > 0 and self.p < 0.05

    def __str__(self) -> str:
        if not self.n:
            return "–"
        p = "" if np.isnan(self.p) else f", p = {self.p:.3f}" if self.p >= 0.001 else ", p < 0.001"
        return f"{100 * self.difference:+.1f} ({self.wins} of {self.n}{p})"


def paired(one: Sequence[float], other: Sequence[float]) -> Comparison:
    """Wilcoxon's signed ranks for six pairs or more, the paired t-test for fewer."""
    from scipy import stats

    difference = np.asarray(one, dtype=float) - np.asarray(other, dtype=float)
    n, test, p = difference.size, "no test", float("nan")
    if n >= 2 and np.ptp(difference) == 0:
        test, p = "all alike", 1.0 if difference[0] == 0 else 0.0
    elif n >= 6:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy 1.10 warns of zeros, and takes what later versions take silently
            test, p = "Wilcoxon", float(stats.wilcoxon(difference).pvalue)
    elif n >= 2:
        test, p = "paired t", float(stats.ttest_1samp(difference, 0.0).pvalue)
    wins, ties = int((difference > 0).sum()), int((difference == 0).sum())
    return Comparison(float(difference.mean()) if n else 0.0, wins, ties, n, p, test)


def pair_key(record: Mapping[str, Any], over: str) -> tuple[Any, ...]:
    return tuple(sorted((k, str(v)) for k, v in record.items() if k not in (over, "value", "name")))


# -- tables --------------------------------------------------------------------------------------------------------


def markdown_table(
    records: Sequence[Mapping[str, Any]], rows: str, columns: str, scale: float, digits: int, spread: bool
) -> str:
    """Rows and columns in the order in which they first occur; a dash where there is nothing."""
    row_names = list(dict.fromkeys(r[rows] for r in records))
    column_names = list(dict.fromkeys(r[columns] for r in records))
    lines = [[rows, *map(str, column_names)]]
    for row in row_names:
        cells = [[r["value"] for r in records if r[rows] == row and r[columns] == c] for c in column_names]
        lines.append([str(row), *(table_cell(scale * np.array(cell), digits, spread) for cell in cells)])
    return markdown(lines)


def table_cell(values: Any, digits: int, spread: bool) -> str:
    if not values.size:
        return "–"
    mean = f"{values.mean():.{digits}f}"
    return f"{mean} ± {values.std(ddof=1):.{digits}f}" if spread and values.size > 1 else mean


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as a Markdown table; the first is the head, the first column is text. Numbers stand right."""
    head, *body = ("| " + " | ".join(line) + " |" for line in lines)
    columns = list(zip(*lines[1:], strict=True))[1:] or [()] * (len(lines[0]) - 1)
    numbers = [all(re.match(r"[-+−]?\d|–|$", cell) for cell in column) for column in columns]
    return "\n".join([head, "|---" + "".join("|--:" if right else "|---" for right in numbers) + "|", *body])


# -- where numbers come from ---------------------------------------------------------------------------------------


def commit() -> str:
    """The commit of the checkout, with a plus if files under version control were changed; else 'unknown'."""
    try:
        name = git("rev-parse", "--short=10", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "experiments/*.py")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + ("+" if changed else "")


def git(*words: str) -> str:
    run = subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True)
    return run.stdout.strip()


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def tidy_number(value: float) -> float:
    """Six significant digits: enough for every table, and the files stay small."""
    return float(f"{value:.6g}") if np.isfinite(value) else value


if __name__ == "__main__":
    sys.exit("runner.py is shared by the studies: run one of them, such as experiments/indoor.py")
