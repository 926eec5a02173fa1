"""The five lines of results in README.md: rows of the results page, between two comments of the README.

Two gains, a tie and a loss with complete labels and partial ones; the rows are named here, the numbers are those of the
studies. ``python experiments/report.py`` writes them.
"""

from __future__ import annotations

from pathlib import Path

import summary
from runner import ROOT, markdown
from summary import Studies

README = ROOT / "README.md"
COMPLETE, TENTH = "complete", "10% complete, top level of all"
CHOSEN = (  # labels and data of the rows
    (COMPLETE, "citations"),
    (COMPLETE, "author names"),
    (COMPLETE, "CAD-120"),
    (TENTH, "citations"),
    (TENTH, "author names"),
)
HEAD = ["labels", "data", "measured, in %", "`HSCRF()`", "best pipeline of CRFsuite chains", "points"]


def lines(found: Studies) -> str:
    """The table of the chosen rows; a row whose study was not run is missing."""
    rows = {(row[0], row[1]): row for row in summary.rows(found)}
    return markdown([HEAD, *(rows[key] for key in CHOSEN if key in rows)])


def written(text: str, table: str, name: str = "results") -> str:
    """The text of a page with this table between the two comments of that name."""
    first, last = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, found, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not (found and end):
        raise ValueError(f"there is no {first.strip()} and {last} around a table")
    return f"{before}{first}{table.strip(' ')}\n{last}{after}"


def write(found: Studies, path: Path = README) -> None:
    path.write_text(written(path.read_text(encoding="utf-8"), lines(found)), encoding="utf-8")
