"""Generated sequences to try the studio on: days in a kitchen and citations, half of them labelled."""

from __future__ import annotations

from typing import Any

import numpy as np

from hscrf.datasets import make_activities
from hscrf.estimator.hscrf import HSCRF
from hscrf.labels.labels import Labels
from hscrf.solvers.lbfgs import LBFGS
from hscrf.studio.items import Item, items_of
from hscrf.studio.project import Project
from hscrf.topology import Topology

DEMOS = ("days", "citations")
FIRST = ("Ada", "Alan", "Barbara", "Carl", "Donald", "Edsger", "Frances", "Grace", "Hedy", "John", "Kurt", "Leslie")
LAST = ("Allen", "Church", "Dijkstra", "Fermi", "Gauss", "Hamilton", "Hoare", "Hopper", "Knuth", "Lamport", "Turing")
TOPICS = ("sorting", "parsing", "segmentation", "inference", "recursion", "hashing", "types", "proofs", "labelling")
WAYS = ("fast", "exact", "simple", "structured", "nested", "hidden", "parallel", "lazy", "optimal", "robust")
LINKS = ("of", "for", "with", "and", "without")
PLACES = ("Journal", "Annals", "Proceedings", "Transactions", "Letters")
FIELDS = ("author", "title", "venue", "date")
PARTS = ("first", "last", "word", "name", "year", "pages", "mark")
CHILDREN = {
    "author": ["first", "last", "mark"],
    "title": ["word", "mark"],
    "venue": ["name", "word", "pages", "mark"],
    "date": ["year", "mark"],
}


def demo(which: str, seed: int = 0) -> Project:
    """A project of generated sequences whose first half is labelled."""
    if which == "days":
        X, Y = make_activities(60, random_state=seed)
        items = items_of(X, [f"day_{n:03d}" for n in range(1, 61)], halved(Y))
        return Project(
            items, Y[0].topology, estimator=HSCRF(c2=0.5, solver=LBFGS(max_iter=80)), name="kitchen days", demo=True
        )
    words, Y = make_citations(40, seed)
    found = [
        Item(f"citation_{n:03d}", tokens, seen_of(tokens), labels)
        for n, (tokens, labels) in enumerate(zip(words, halved(Y), strict=True), start=1)
    ]
    return Project(
        found, Y[0].topology, estimator=HSCRF(c2=0.5, solver=LBFGS(max_iter=80)), name="citations", demo=True
    )


def halved(Y: list[Labels]) -> list[Any]:
    """The labels of the first half."""
    return [y if n < len(Y) // 2 else None for n, y in enumerate(Y)]


def make_citations(n: int, seed: int = 0) -> tuple[list[list[str]], list[Labels]]:
    """Words of made-up citations, labelled by field and by part.

    >>> words, Y = make_citations(1)
    >>> print(*words[0])
    Grace Fermi , Ada Church , J. Hamilton . parallel labelling and hashing . Letters , 268 - 269 . 1986 .
    >>> [field for _, _, field in Y[0].segments("field")]
    ['author', 'author', 'author', 'title', 'venue', 'date']
    """
    random = np.random.default_rng(seed)
    topology = Topology({"field": list(FIELDS), "part": list(PARTS)}, children={"field": CHILDREN})
    found = [_citation(random) for _ in range(n)]
    words = [[word for _, part in tree for word, _ in part] for tree in found]
    trees = [[(field, [tag for _, tag in part]) for field, part in tree] for tree in found]
    return words, [Labels.from_tree(topology, tree) for tree in trees]


def _citation(random: np.random.Generator) -> list[tuple[str, list[tuple[str, str]]]]:
    """Fields of (word, part) pairs."""

    def pick(words: tuple[str, ...]) -> str:
        return str(random.choice(words))

    authors = int(random.integers(1, 4))
    tree = []
    for k in range(authors):
        first = pick(FIRST) if random.random() < 0.5 else pick(FIRST)[0] + "."
        mark = "." if k == authors - 1 else ","
        tree.append(("author", [(first, "first"), (pick(LAST), "last"), (mark, "mark")]))
    title = [pick(WAYS), pick(TOPICS)]
    if random.random() < 0.6:
        title += [pick(LINKS), pick(TOPICS)]
    tree.append(("title", [*((word, "word") for word in title), (".", "mark")]))
    venue = [(pick(PLACES), "name")]
    if random.random() < 0.7:
        venue += [(pick(TOPICS), "word")]
    page = int(random.integers(1, 400))
    venue += [(",", "mark"), (str(page), "pages"), ("-", "mark"), (str(page + int(random.integers(1, 40))), "pages")]
    tree.append(("venue", [*venue, (".", "mark")]))
    tree.append(("date", [(str(int(random.integers(1960, 2026))), "year"), (".", "mark")]))
    return tree


def seen_of(words: list[str]) -> list[list[str]]:
    """What a model sees of words: the word, its shape and its neighbours."""
    shapes = [_shape(word) for word in words]
    padded = ["^", *words, "$"]
    outline = ["^", *shapes, "$"]
    return [
        [f"w={padded[t]}", f"shape={outline[t]}", f"-1={padded[t - 1]}", f"+1={padded[t + 1]}",
         f"shape-1={outline[t - 1]}", f"shape+1={outline[t + 1]}"]
        for t in range(1, len(words) + 1)
    ]  # fmt: skip


def _shape(word: str) -> str:
    """Capitals, letters, digits and marks, without repetition."""
    kinds = ["A" if c.isupper() else "a" if c.isalpha() else "0" if c.isdigit() else c for c in word]
    return "".join(kind for k, kind in enumerate(kinds) if k == 0 or kinds[k - 1] != kind)
