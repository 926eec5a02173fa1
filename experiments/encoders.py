"""The tables of the study of neural encoders in docs/neural.md; ``python experiments/report.py`` writes them.

A layer that was not fitted with all seeds has dashes; differences are over the seeds that both layers have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import headline
from runner import ROOT, markdown, paired, table_cell
from summary import Studies

PAGE = ROOT / "docs" / "neural.md"
SEEDS = range(5)
MEASURES = {"citations": "sequences right", "author names": "sequences right", "ECG": "waves within 40 ms, F1"}
NESTED, OTHERS = "nested", ("product chain", "CRF a level", "softmax a level")
ALL, FEW, TOP = "all", "10 % of the sequences", "10 %, and the top level of the others"
LINEAR = {"citations": "whole", "author names": "whole"}  # sets, and what the study of HSCRF() calls the measure
PARTLY = ((NESTED, TOP), (NESTED, FEW), ("product chain", FEW))
HEAD = [*(f"seed {seed}" for seed in SEEDS), "mean ± deviation"]


def block(found: Studies) -> str:
    """The tables, as far as there are numbers."""
    records = [r for r in found["neural"]["records"] if r["name"] == "accuracy"]
    linear = {
        r["data"]: 100 * r["value"]
        for r in found["plain"]["records"]
        if r["name"] == "score" and r["system"] == "HSCRF()" and LINEAR.get(r["data"]) == r["measure"]
    }
    complete = [["set", "layer", *HEAD]]
    for name in MEASURES:
        for layer in (NESTED, *OTHERS):
            complete.append([name, layer, *seeds_of(records, name, layer, ALL)])
        if name in linear:
            complete.append([name, "`HSCRF()`, linear", *["–"] * len(SEEDS), f"{linear[name]:.1f}"])
    differences = [["set", *(f"nested − {other}" for other in OTHERS)]]
    for name in MEASURES:
        cells = [difference(records, name, (NESTED, ALL), (other, ALL)) for other in OTHERS]
        differences.append([name, *cells])
    partial = [["set", "layer", "labels", *HEAD]]
    for name in MEASURES:
        for layer, labels in PARTLY:
            partial.append([name, layer, labels, *seeds_of(records, name, layer, labels)])
    return "\n\n".join(
        [
            "Test sequences wholly right in %; of the ECG, F1 of waves whose first and last steps are within 40 ms:",
            table(complete, 2),
            "Differences in points over the same seeds; in brackets the seeds with nested ahead, p of a paired t-test:",
            table(differences, 1),
            "The same measure where most labels are missing:",
            table(partial, 3),
        ]
    )


def table(lines: Sequence[Sequence[str]], texts: int) -> str:
    """A table whose first columns are text; rows of nothing but dashes are left out."""
    head, *body = lines
    kept = [line for line in body if any(cell != "–" for cell in line[texts:])]
    if not kept:
        return "The fits of this table have not been run."
    first, rule, *rest = markdown([head, *kept]).split("\n")
    return "\n".join([first, "|---" * texts + rule[4 + 4 * (texts - 1) :], *rest])


def values_of(records: Sequence[Mapping[str, Any]], name: str, layer: str, labels: str) -> dict[int, float]:
    """The measure of a set by seed."""
    keys = {"set": name, "system": layer, "labels": labels, "measure": MEASURES[name]}
    return {r["seed"]: r["value"] for r in records if all(r[key] == value for key, value in keys.items())}


def seeds_of(records: Sequence[Mapping[str, Any]], name: str, layer: str, labels: str) -> list[str]:
    """A cell for each seed, and the mean."""
    found = values_of(records, name, layer, labels)
    cells = [f"{100 * found[seed]:.1f}" if seed in found else "–" for seed in SEEDS]
    return [*cells, table_cell(100 * np.array(list(found.values())), 1, True)]


def difference(records: Sequence[Mapping[str, Any]], name: str, one: tuple[str, str], other: tuple[str, str]) -> str:
    """How far one layer is ahead of another."""
    first, second = (values_of(records, name, *which) for which in (one, other))
    shared = [seed for seed in SEEDS if seed in first and seed in second]
    return str(paired([first[s] for s in shared], [second[s] for s in shared]))


def write(found: Studies, path: Path = PAGE) -> None:
    text = path.read_text(encoding="utf-8")
    path.write_text(headline.written(text, "\n" + block(found) + "\n", "layers"), encoding="utf-8")
