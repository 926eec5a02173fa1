"""Example files in every format: generated sentences with tags and chunks, and days of activities."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

from hscrf import io
from hscrf.datasets.activities import make_activities
from hscrf.io.documents import Document

WORDS = {
    "DT": ["the", "a", "every", "this"],
    "JJ": ["old", "red", "quick", "small", "hungry"],
    "NN": ["cat", "dog", "house", "river", "teacher", "walk"],
    "NNS": ["cats", "dogs", "houses", "rivers", "walks"],
    "PRP": ["she", "he", "they"],
    "VBZ": ["sees", "has", "likes", "walks", "houses"],
    "VBD": ["saw", "had", "liked", "walked"],
    "MD": ["will", "may"],
    "VB": ["see", "have", "like", "walk", "house"],
    "IN": ["in", "near", "behind", "with"],
}
CHUNKS = {
    "NP": (["DT", "NN"], ["DT", "JJ", "NN"], ["NNS"], ["JJ", "NNS"], ["PRP"]),
    "VP": (["VBZ"], ["VBD"], ["MD", "VB"]),
    "PP": (["IN"],),
}
CLAUSES = (["NP", "VP"], ["NP", "VP", "NP"], ["NP", "VP", "NP", "PP", "NP"], ["NP", "PP", "NP", "VP"])
SIZES = {"train": 120, "test": 40}  # sentences
ABOUT = {
    "txt": "columns: word, tag (pos), chunk in BIO",
    "jsonl": "JSON Lines: the same sentences, chunks as segments",
    "crfsuite": "CRFsuite items: attributes of the same words, their tags",
    "csv": "a table: days in a kitchen, numbers and two levels",
}


def write_examples(folder: str, seed: int = 0) -> dict[str, str]:
    """Write train and test files in every format into a folder; what each ending is, by ending."""
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(seed)
    for part, size in SIZES.items():
        path = os.path.join(folder, part)
        sentences = [sentence(rng) for _ in range(size)]
        io.write_columns(f"{path}.txt", map(as_columns, sentences))
        io.write_jsonl(f"{path}.jsonl", [as_record(n, rows) for n, rows in enumerate(sentences)])
        io.write_crfsuite(f"{path}.crfsuite", map(as_items, sentences))
        days = make_activities(size // 4, random_state=seed + (part == "test"))
        io.write_table(f"{path}.csv", [as_day(n, x, y) for n, (x, y) in enumerate(zip(*days, strict=True))])
    return ABOUT


def sentence(rng: random.Random) -> list[tuple[str, str, str]]:
    """Rows of word, tag and chunk in BIO."""
    rows = []
    for chunk in rng.choice(CLAUSES):
        for k, tag in enumerate(rng.choice(CHUNKS[chunk])):
            rows.append((rng.choice(WORDS[tag]), tag, ("I-" if k else "B-") + chunk))
    return rows


def as_columns(rows: Sequence[tuple[str, str, str]]) -> Document:
    words, tags, chunks = map(list, zip(*rows, strict=True))
    return Document([[word] for word in words], {"pos": tags, "chunk": chunks})


def as_record(n: int, rows: Sequence[tuple[str, str, str]]) -> Document:
    words, tags, chunks = map(list, zip(*rows, strict=True))
    return Document(words, {"chunk": segments_of(chunks), "pos": tags}, name=f"sentence {n + 1}")


def as_items(rows: Sequence[tuple[str, str, str]]) -> Document:
    words = ["", *(word for word, _, _ in rows), ""]
    tokens = [{"w": words[t], "w[-1]": words[t - 1], "w[+1]": words[t + 1]} for t in range(1, len(words) - 1)]
    return Document(tokens, {"pos": [tag for _, tag, _ in rows]})


def as_day(n: int, x: Any, y: Any) -> Document:
    """Positions, velocities and speeds as numbers."""
    tokens = [[float(cell) for text in seen for cell in text.partition("=")[2].split(",")] for seen in x]
    labels = {level: y.column(level) for level in ("activity", "trajectory")}
    columns = ("sequence", "x", "y", "vx", "vy", "speed", *labels)
    return Document(tokens, labels, name=f"day {n + 1}", columns=columns)


def segments_of(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """The segments that B and I begin and continue."""
    starts = [t for t, tag in enumerate(tags) if tag.startswith("B-")]
    return [(i, j, tags[i][2:]) for i, j in zip(starts, [*starts[1:], len(tags)], strict=True)]
