"""The one table of the results page: for each question HSCRF, what it is compared with, and the difference.

Every cell is computed from the records of the studies. A study that was not run has no rows. Data sets that the study
of the plain call has not measured come from older studies. At most ten rows are shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from runner import Study, markdown

PLAIN_CALL = "the plain call"
BY_STEPS = ("kitchen", "CAD-120", "ECG")  # borders are never exact there
HEAD = ["asked", "data", "measured, in %", "HSCRF", "beside it", "difference in points"]
Studies = Mapping[str, dict[str, Any]]


MOST = 10  # rows


def table(found: Studies) -> str:
    """The rows of all studies that were run."""
    makers = {
        "plain": [plain],
        "joint": [joint],
        "citations": [citations, fewer_labels, corrections],
        "indoor": [indoor],
        "economy": [economy],
    }
    rows: list[list[str]] = []
    for name, some in makers.items():
        for make in some if name in found else ():
            measured = {row[1] for row in rows if row[0] == PLAIN_CALL}
            rows += [
                row
                for row in make(opened(found[name]))
                if row[1] not in measured or make not in (joint, citations, indoor)
            ]
    return markdown([HEAD, *rows[:MOST]])


def opened(content: dict[str, Any]) -> Study:
    """A study as it was when it was written."""
    study = Study(content["study"], content["text"], content["variant"])
    study.records, study.blocks = content["records"], content["blocks"]
    return study


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def plain(study: Study) -> list[list[str]]:
    """`HSCRF()` against the best pipeline of each data set."""
    from plain import OWN, PLAIN, TREES, marks, sign_test

    rows = []
    for data in dict.fromkeys(record["data"] for record in study.select("marks", system=PLAIN)):
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
        difference = f"{100 * (ours - means[best]):+.1f} (p = {p:.2g})"
        what = ["whole sequences" if exact else "steps, all levels", percent(ours), f"{percent(means[best])} ({best})"]
        rows.append([PLAIN_CALL, data, *what, difference])
    return rows


def indoor(study: Study) -> list[list[str]]:
    """Activities and walks against a chain for each level."""
    rows, keys = [], {"data": "kitchen", "decoding": "best labelling"}
    for level in dict.fromkeys(r["level"] for r in study.select("full accuracy", **keys)):
        ours, theirs = (
            study.mean("full accuracy", system=system, level=level, **keys) for system in ("HSCRF", "flat CRF")
        )
        difference = study.compare("full accuracy", "HSCRF", "flat CRF", "system", level=level, **keys)
        what = [f"steps, {level}", percent(ours), f"{percent(theirs)} (a chain for each level)", str(difference)]
        rows.append(["durations and penalties by hand", "kitchen", *what])
    return rows


def joint(study: Study) -> list[list[str]]:
    return against(
        study,
        "tags and chunks at once",
        "CoNLL-2000",
        "sentences",
        ["cascade, chunks first"],
    )


def citations(study: Study) -> list[list[str]]:
    return against(
        study,
        "three levels at once",
        "citations",
        "citations",
        ["cascade down"],
    )


def against(study: Study, asked: str, data: str, things: str, others: list[str]) -> list[list[str]]:
    """Whole sequences right, with McNemar's p from the text of the study."""
    ours = study.mean("accuracy", system="HSCRF", measure="sequences right")
    rows = []
    for other in others:
        theirs = study.mean("accuracy", system=other, measure="sequences right")
        said = next((b["text"] for b in study.blocks if b["text"].startswith(f"Against {other}: ")), "")
        p = re.search(r"p = ([\d.e-]+\d)", said)
        difference = f"{100 * (ours - theirs):+.1f}" + (f" (p = {float(p[1]):.2g})" if p else "")
        rows.append([asked, data, f"whole {things}", percent(ours), f"{percent(theirs)} ({other})", difference])
    return rows


def fewer_labels(study: Study) -> list[list[str]]:
    share = study.select("economy")[0]["share"]
    keys = {"share": share, "measure": "sequences right"}
    ours = study.mean("economy", system="HSCRF, segments at random", **keys)
    theirs = study.mean("economy", system="product labels, whole citations", **keys)
    beside = f"{percent(theirs)} (product labels, {share} of the citations)"
    what = ["whole citations", percent(ours), beside, f"{100 * (ours - theirs):+.1f}"]
    return [[f"{share} of the segments labelled", "citations", *what]]


def corrections(study: Study) -> list[list[str]]:
    if not study.select("fixes"):  # the study was ended before
        return []
    fed, blind = (
        study.mean("fixes", mode=mode, measure="segments entered") for mode in ("every fix is evidence", "no feedback")
    )
    what = [
        "segments entered (a number)",
        f"{fed:.0f}",
        f"{blind:.0f} (no feedback)",
        f"{100 * (fed / blind - 1):.0f} %",
    ]
    return [["corrections by a simulated annotator", "citations", *what]]


def economy(study: Study) -> list[list[str]]:
    rows = []
    for task in dict.fromkeys(record["task"] for record in study.records):
        fed, blind = (last_corrections(study, task, way) for way in ("studio", "without feedback"))
        beside = f"{blind:.0f} (without feedback)"
        what = ["segments entered (a number)", f"{fed:.0f}", beside, f"{100 * (fed / blind - 1):.0f} %"]
        rows.append(["labelling from nothing, simulated annotator", task, *what])
    return rows


def last_corrections(study: Study, task: str, way: str) -> float:
    rows = study.select("right", task=task, way=way)
    seeds = sorted({row["seed"] for row in rows})
    return float(np.mean([max(row["corrections"] for row in rows if row["seed"] == seed) for seed in seeds]))
