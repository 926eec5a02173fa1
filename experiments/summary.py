"""The one table of the results page: for each question HSCRF, what it is compared with, and the difference.

Every cell is computed from the records of the studies. A study that was not run has no rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from runner import Study, markdown

HEAD = ["asked", "data", "measured, in %", "HSCRF", "beside it", "difference in points"]
Studies = Mapping[str, dict[str, Any]]


def table(found: Studies) -> str:
    """All rows of all studies that were run."""
    makers = {
        "indoor": [indoor],
        "chunking": [chunking],
        "joint": [joint],
        "citations": [citations, fewer_labels, corrections],
        "hiding": [hiding],
        "economy": [economy],
        "penalties": [penalties],
    }
    rows = [row for name, some in makers.items() if name in found for make in some for row in make(opened(found[name]))]
    return markdown([HEAD, *rows])


def opened(content: dict[str, Any]) -> Study:
    """A study as it was when it was written."""
    study = Study(content["study"], content["text"], content["variant"])
    study.records, study.blocks = content["records"], content["blocks"]
    return study


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def indoor(study: Study) -> list[list[str]]:
    """Both levels against the flat chains."""
    rows = []
    names = {"kitchen": "kitchen (generated)", "CAD-120, hidden names": "", "CAD-120, plain names": ""}
    for data, shown in names.items():
        keys = {"data": data, "decoding": "best labelling"}
        for level in dict.fromkeys(r["level"] for r in study.select("full accuracy", **keys)):
            ours, theirs = (
                study.mean("full accuracy", system=system, level=level, **keys) for system in ("HSCRF", "flat CRF")
            )
            difference = study.compare("full accuracy", "HSCRF", "flat CRF", "system", level=level, **keys)
            what = [f"steps, {level}", percent(ours), f"{percent(theirs)} (a chain for each level)", str(difference)]
            rows.append(["the paper's indoor activities", shown or data, *what])
    return rows


def chunking(study: Study) -> list[list[str]]:
    sizes = sorted({record["size"] for record in study.select("NP F1")})
    rows = []
    for size in (sizes[0], sizes[-1]):
        keys = {"method": "L-BFGS", "size": size}
        ours, theirs = (study.mean("NP F1", system=system, **keys) for system in ("HSCRF+POS", "SCRF"))
        found = study.compare("NP F1", "HSCRF+POS", "SCRF", "system", **keys)
        beside = f"{percent(theirs)} (a chain that reads the tags)"
        what = ["F1 of phrases, tags given", percent(ours), beside, str(found)]
        rows.append(["the paper's noun phrases", f"CoNLL-2000, {size:,} sentences", *what])
    return rows


def joint(study: Study) -> list[list[str]]:
    return against(
        study,
        "tags and chunks at once",
        "CoNLL-2000",
        "sentences",
        ["independent", "cascade, tags first", "cascade, chunks first"],
    )


def citations(study: Study) -> list[list[str]]:
    return against(
        study,
        "three levels at once",
        "citations",
        "citations",
        ["independent", "cascade down", "cascade up", "product labels"],
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
    return [["corrections by hand", "citations", *what]]


def hiding(study: Study) -> list[list[str]]:
    """The mean over ways and levels."""
    rows = []
    for data in dict.fromkeys(record["data"] for record in study.select("evidence")):
        told = {key_of(r): r["value"] for r in study.select("evidence", data=data, reading="open")}
        none = {key_of(r): r["value"] for r in study.select("evidence", data=data, reading="none")}
        shared = [key for key in told if key in none]
        ours, theirs = (float(np.mean([some[key] for key in shared])) for some in (told, none))
        what = ["hidden tags", percent(ours), f"{percent(theirs)} (told nothing)", f"{100 * (ours - theirs):+.1f}"]
        rows.append(["evidence at prediction", data if data != "documents" else "documents (generated)", *what])
    return rows


def key_of(record: dict[str, Any]) -> tuple[str, str]:
    return record["way"], record["level"]


def economy(study: Study) -> list[list[str]]:
    rows = []
    for task in dict.fromkeys(record["task"] for record in study.records):
        fed, blind = (last_corrections(study, task, way) for way in ("studio", "without feedback"))
        beside = f"{blind:.0f} (without feedback)"
        what = ["segments entered (a number)", f"{fed:.0f}", beside, f"{100 * (fed / blind - 1):.0f} %"]
        rows.append(["labelling from nothing", task, *what])
    return rows


def last_corrections(study: Study, task: str, way: str) -> float:
    rows = study.select("right", task=task, way=way)
    seeds = sorted({row["seed"] for row in rows})
    return float(np.mean([max(row["corrections"] for row in rows if row["seed"] == seed) for seed in seeds]))


def penalties(study: Study) -> list[list[str]]:
    rows = []
    for data in dict.fromkeys(record["data"] for record in study.select("right")):
        ours, theirs = (study.mean("right", data=data, way=way) for way in ("automatic", "best by hand"))
        found = study.compare("right", "automatic", "best by hand", "way", data=data)
        beside = f"{percent(theirs)} (the best of a grid, by the test data)"
        rows.append(['`c2="auto"`', data, "steps, all levels", percent(ours), beside, str(found)])
    return rows
