"""The one table of the results page: for each question HSCRF, what it is compared with, and the difference.

Every cell is computed from the records of the studies. A study that was not run has no rows. It has at most ten rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runner import Study, markdown

BY_STEPS = ("kitchen", "CAD-120", "ECG")  # borders are never exact there
HEAD = ["labels", "data", "measured, in %", "HSCRF()", "best pipeline", "difference in points"]
Studies = Mapping[str, dict[str, Any]]
MOST = 10  # rows


def p_value(p: float) -> str:
    """A p-value in words: two digits, or that it is tiny.

    >>> p_value(0.0072), p_value(1.2e-12)
    ('p = 0.0072', 'p < 0.001')
    """
    return f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"


def table(found: Studies) -> str:
    """The first rows of the studies that were run."""
    return markdown([HEAD, *rows(found)[:MOST]])


def rows(found: Studies) -> list[list[str]]:
    """The rows of the studies that were run."""
    makers = {"plain": plain, "partial": partial}
    return [row for name, make in makers.items() if name in found for row in make(opened(found[name]))]


def opened(content: dict[str, Any]) -> Study:
    """A study as it was when it was written."""
    study = Study(content["study"], content["text"], content["variant"])
    study.records, study.blocks = content["records"], content["blocks"]
    return study


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def plain(study: Study) -> list[list[str]]:
    """`HSCRF()` against the best pipeline of each data set."""
    from plain import EVERY, OWN, PLAIN, SENTENCES, TREES, UP, marks, sign_test

    rows = []
    for data in dict.fromkeys(record["data"] for record in study.select("marks", system=PLAIN)):
        if data == SENTENCES and study.select("marks", data=EVERY, system=UP):
            continue
        whole, steps = marks(study, data, PLAIN)
        exact = data not in BY_STEPS
        measure = "whole" if exact else "states"
        others = [r["system"] for r in study.select("marks", data=data)]
        pipelines = [name for name in dict.fromkeys(others) if name not in (*OWN, TREES)]
        complete = [name for name in pipelines if len(marks(study, data, name)[0]) == len(whole)]
        if not complete:
            continue
        means = {name: study.mean("score", data=data, system=name, measure=measure) for name in complete}
        best = max(means, key=lambda name: means[name])
        ours = study.mean("score", data=data, system=PLAIN, measure=measure)
        _, _, p = sign_test(*((whole, marks(study, data, best)[0]) if exact else (steps, marks(study, data, best)[1])))
        difference = f"{100 * (ours - means[best]):+.1f} ({p_value(p)})"
        what = ["whole sequences" if exact else "steps, all levels", percent(ours), f"{percent(means[best])} ({best})"]
        rows.append(["complete", data, *what, difference])
    return rows


def partial(study: Study) -> list[list[str]]:
    """Complete labels of a few sequences and the top level of all, against what a cascade makes of them."""
    from partial import CASCADE, NESTED, PRODUCT

    rows = []
    for data in dict.fromkeys(record["data"] for record in study.select("score")):
        for share in dict.fromkeys(record["complete"] for record in study.select("score", data=data)):
            keys = {"data": data, "complete": share, "measure": "whole"}
            means = {name: study.mean("score", system=name, **keys) for name in (CASCADE, PRODUCT)}
            best = max(means, key=lambda name: means[name])
            ours = study.mean("score", system=NESTED, **keys)
            said = next(
                (
                    b["text"]
                    for b in study.blocks
                    if b["text"].startswith(f"{data}, {share} complete, against {best}: ")
                ),
                "",
            )
            p = re.search(r"p = ([\d.e-]+\d)", said)
            difference = f"{100 * (ours - means[best]):+.1f}" + (f" ({p_value(float(p[1]))})" if p else "")
            what = ["whole sequences", percent(ours), f"{percent(means[best])} ({best})", difference]
            rows.append([f"{share} complete, top level of all", data, *what])
    return rows
