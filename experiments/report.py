"""Write the results page and its notes from the JSON files of the studies: python experiments/report.py [--quick]."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import encoders
import headline
import summary
from hscrf.versions import PACKAGES
from runner import FULL, PAGE_FIGURES, QUICK, ROOT, markdown

ORDER = (
    "plain",
    "defaults",
    "stopping",
    "incomplete",
    "fillers",
    "partial",
    "penalties",
    "small",
    "borders",
    "indoor",
    "chunking",
    "joint",
    "citations",
    "hiding",
    "economy",
    "neural",
)
NOTES = "results-notes.md"
PAGE = f"""# Results

Is one model of all levels better than a chain for each level, or a pipeline of chains? Does the plain call,
`HSCRF().fit(X, Y)`, do well without tuning? What do partial labels and corrections gain? The table has one answer a
row; [the lab notes]({NOTES}) have all tables and set-ups. Both pages are written by
`python experiments/report.py` from the files in `experiments/results`.

"""
READING = """
`HSCRF()` is the plain call: nothing is chosen. *Best pipeline* is the best of CRFsuite chains on the same features: a
chain a level, cascades from the top and from the bottom, product labels. Their penalties come from a held-out grid, and
they may use fillers that remember (`experiments/plain.py`). It is chosen on the test data, which flatters it.
*Whole* sequences have every label and every border right; *steps* have the right state at all levels. p is McNemar's
exact test over whole sequences, or a sign test over sequences: which system has more steps right. In the lower rows
a share of the sequences has all labels and the others only the top level (`experiments/partial.py`, two draws);
there chains have the loss of CRFsuite and are trained by `ChainCRF`.

## What it says

- **Partial labels are where nested models pay.** Take complete labels for a tenth of the citations and the fields of
  all: then 59.4 % of the test citations are wholly right. A cascade whose top chain learns from everything has 51.5,
  the nested model without the partial labels 49.9. For author names the gain over the cascade is 2.3 points, which
  two draws cannot tell from chance (p = 0.14); with a quarter it is 4.2 (p = 0.0022).
  It costs time: the nested model learns from all sequences, the lower chains of a cascade from a tenth. One fit takes
  15 s for 1,448 citations, 16 times as long as the complete tenth alone.
- **Three nested levels**: with complete labels of the citations, the plain call is ahead of all pipelines (p < 0.01),
  in a fifth of their training time, which includes the search for penalties. In the kitchen it has 6.9 points more
  steps right than the best of them (p = 0.016).
- **Scores of a classifier help with sensors.** In the kitchen `StackedCRF()` has 94.0 % of the steps right.
- **Corrections count twice.** Every correction is evidence for the rest of its sequence. A *simulated* annotator enters
  the true label of the first wrong segment again and again. With each fix as evidence it enters 26 to 56 % fewer
  segments (`experiments/citations.py`, `experiments/economy.py`, older models). No person was measured.

*Looks at test data.* The rows of author names and citations are a fourth look at their test data, all other rows with
complete labels a third one. After the first look the template of words was given the shapes of the neighbours,
after the second the penalty of the bottom level changed, after the third that of first and last steps. All choices were
made on training folds. The numbers on this page are those of one more run, before which nothing was chosen.

## Where nested does not win

- **Two levels with complete labels**: a cascade from the bottom is as good in author names and in 1,000 sentences of
  CoNLL-2000 (24.3 against 23.4 % of the sentences; p = 0.19). If all 8,936 sentences are learned, it is better (45.2
  against 43.3 %; p = 0.012): its chunks see the tags that were found for the neighbouring words.
- **ECG**: the cascade from the bottom has more steps right (87.5 against 82.3 %; p = 0.4 over 99 records). Both find
  about the same share of segments (F1 87.7 and 86.8).
- **CAD-120**: 85 videos of four people, one activity each. A cascade from the top has more steps right (54.9 against
  49.8 %), and trees that label each step alone more than all systems (59.5). The nested model finds more segments: its
  F1 is 47.3, that of the cascade 41.8, that of the trees 36.0. On training folds the reason is known: nothing marks the
  borders of sub-activities, so features of first and last steps are fitted too closely ([how it was
  found](design-notes.md#borders-that-nothing-marks)). A nested model over the scores of these trees has 51.0 %
  of the steps right with the best labelling of each video, and 58.2 % if it is asked for the best steps
  (`loss="step"`). So most of the gap to the trees is due to what is asked for. [The design
  notes](design-notes.md#scores-of-a-classifier) say what else was tried on training folds.
- **Sequences whose order of labelling is chosen by uncertainty**: that saved the simulated annotator nothing against a
  random order.

## What made the numbers

The data sets are not part of the project: the environment variable `HSCRF_DATA` names their folder ([how](data.md)).
`make experiments FULL=1` runs everything again, `make experiments` a quick variant of each study. Quick variants learn
from a part of the training data of CoNLL-2000 and try fewer penalties for chains; test data are always complete.

"""
INTRODUCTION = """---
orphan: true
---

# Results: the notes

All tables and figures of the studies. [The results page](results.md) is shorter.

Each study says how its penalties were chosen. A ± is the standard deviation over seeds or folds.

## What the older studies say

*Hidden labels.* No way of hiding made legal data illegal. True evidence gained 3.0 points on average over the ways and
levels of the generated documents, and 2.7 of the citations, where it lowered no level. In the documents the lowest
level, whose names hardly depend on what lies above, changed by -0.1 to +0.1 points: evidence makes the true labels more
probable on average, not every tag of every test set more often right. With every run of O read as one segment ("fixed")
evidence cost 0.4 and 2.2 points on average, up to 22, and three of the ten ways were refused. A level with labels in
every fourth sequence only is learned less well, by up to 7 points in citations. This is one run with one seed.

*Label economy.* Decoding anew after each fix saved 28 % of the segments that a person has to enter in the kitchen, and
in citations 26 %. That the most uncertain sequence comes first saved nothing: with a random order it was 6 and 13 %
less. In the kitchen 95 % of held-out steps were right after 60 or 80 sequences. In citations 40 sequences
are not enough for 95 %, nor are several hundred: the same model with a fixed penalty, trained at once on the first 85,
250 and 500 citations, has 87.9, 90.9 and 92.6 % of the steps of the held-out ones right.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="pages of the quick variants, beside their files")
    quick = parser.parse_args().quick
    results, page = (QUICK, QUICK / "results.md") if quick else (FULL, ROOT / "docs" / "results.md")
    write_page(results, page, QUICK if quick else PAGE_FIGURES)
    if not quick:
        headline.write(studies(results))
        if "neural" in studies(results):
            encoders.write(studies(results))
    print(f"The page is {os.path.relpath(page)}, its notes are {os.path.relpath(page.parent / NOTES)}.")
    return 0


def write_page(results: Path, page: Path, figures: Path) -> None:
    """The page, and the notes of all studies that have a file."""
    found = sorted(studies(results).values(), key=lambda study: (place(study["study"]), study["study"]))
    where = os.path.relpath(figures, page.parent)
    table = summary.table(studies(results))
    page.write_text(PAGE + table + "\n" + READING + contents(found), encoding="utf-8")
    parts = [INTRODUCTION, *(section(study, where) for study in found)]
    (page.parent / NOTES).write_text("\n".join(parts), encoding="utf-8")


def studies(results: Path) -> dict[str, dict[str, Any]]:
    """The files of the studies, by the name of the study."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*.json"))]
    return {study["study"]: study for study in found}


def place(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)


def contents(found: list[dict[str, Any]]) -> str:
    """A table of the studies."""
    lines = [["study", "command", "penalties", "commit", "date", "minutes of one core"]]
    for s in found:
        penalties = '`c2="auto"`' if 'c2="auto"' in s["text"] else "by hand"
        lines.append([title(s), f"`{s['command']}`", penalties, s["commit"], s["date"], f"{s['seconds'] / 60:.1f}"])
    return markdown(lines) + "\n"


def section(study: dict[str, Any], figures: str) -> str:
    """Title, text and blocks of one study, and what made it."""
    text = study["text"].partition("\n")[2].strip()
    blocks = [block_text(block, figures) for block in study["blocks"]]
    return "\n\n".join([f"## {title(study)}", text, *blocks, origin(study)]) + "\n"


def title(study: dict[str, Any]) -> str:
    return str(study["text"]).partition("\n")[0].strip().rstrip(".")


def block_text(block: dict[str, str], figures: str) -> str:
    if block["kind"] == "heading":
        return f"### {block['text']}"
    if block["kind"] == "figure":
        return f"![{block['caption']}]({figures}/{block['text']})\n\n*{block['caption']}*"
    if block["kind"] == "table":
        return f"{block['caption']}\n\n{block['text']}" if block["caption"] else block["text"]
    return block["text"]


def origin(study: dict[str, Any]) -> str:
    used = {"python", "hscrf", *PACKAGES}  # a run of an earlier commit may have used others, see its file of results
    packages = ", ".join(f"{name} {number}" for name, number in study["versions"].items() if name in used)
    ended = (
        "" if study.get("finished", True) else "**The run was ended early; what it had not yet measured is missing.** "
    )
    return (
        f"{ended}*Made by `{study['command']}` at commit {study['commit']} on {study['date']} "
        f"in {study['seconds'] / 60:.1f} minutes of one core; {packages}.*"
    )


if __name__ == "__main__":
    raise SystemExit(main())
