"""Generated sequences to try the studio on: days in a kitchen and citations, half of them labelled."""

from __future__ import annotations

from typing import Any

import numpy as np

from hscrf.datasets import make_activities
from hscrf.estimator.hscrf import HSCRF
from hscrf.labels.labels import Labels
from hscrf.solvers.lbfgs import LBFGS
from hscrf.studio.data.project import Project
from hscrf.studio.data.sequences import InputSequence, items_of
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
        InputSequence(f"citation_{n:03d}", tokens, seen_of(tokens), labels)
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
    Allen , Ada robust types with robust types ? In Journal , 45 - 67 , 1993 .
    >>> [field for _, _, field in Y[0].segments("field")]
    ['author', 'title', 'venue', 'date']
    """
    topology = Topology({"field": list(FIELDS), "part": list(PARTS)}, children={"field": CHILDREN})
    writer = CitationWriter(np.random.default_rng(seed))
    found = [writer.citation() for _ in range(n)]
    words = [[word for _, part in tree for word, _ in part] for tree in found]
    trees = [[(field, [tag for _, tag in part]) for field, part in tree] for tree in found]
    return words, [Labels.from_tree(topology, tree) for tree in trees]


Part = list[tuple[str, str]]  # of (word, label of the part) pairs


class CitationWriter:
    """Someone who writes citations, never in the same way."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def pick(self, words: tuple[str, ...]) -> str:
        return str(self.random.choice(words))

    def maybe(self, share: float, word: str, part: str = "mark") -> Part:
        return [(word, part)] if self.chance(share) else []

    def citation(self) -> list[tuple[str, Part]]:
        """Fields and their parts; the date stands before the title or at the end."""
        early = self.chance(0.3)
        year = (str(int(self.random.integers(1960, 2026))), "year")
        authors, title, venue = self.authors(early), self.title(), self.venue(early)
        if early:
            date = [("(", "mark"), year, (")", "mark"), *self.maybe(0.5, ".")]
            return [*authors, ("date", date), ("title", title), ("venue", venue)]
        return [*authors, ("title", title), ("venue", venue), ("date", [year, *self.maybe(0.7, ".")])]

    def authors(self, early: bool) -> list[tuple[str, Part]]:
        """One to three people, all with their last names first or none."""
        count, turned = int(self.random.integers(1, 4)), self.chance(0.4)
        found = []
        for left in reversed(range(count)):
            first = [(self.pick(FIRST), "first")]
            if self.chance(0.6):
                first = [(self.pick(FIRST)[0] + ".", "first")] * (1 + self.chance(0.2))
            last = (self.pick(LAST), "last")
            name = [last, (",", "mark"), *first] if turned else [*first, last]
            mark = "." if not left else "and" if left == 1 and self.chance(0.5) else ","
            found.append(("author", name + self.maybe(1 if left else 0 if early else 0.7, mark)))
        return found

    def title(self) -> Part:
        """What was found, and of what; a theorem may have a name, which is no author."""
        words = [*([self.pick(LAST)] if self.chance(0.15) else []), self.pick(WAYS), self.pick(TOPICS)]
        if self.chance(0.7):
            words += [self.pick(LINKS), self.pick(LAST if self.chance(0.3) else WAYS), self.pick(TOPICS)]
        if self.chance(0.4):
            words = [word.capitalize() for word in words]
        mark = "?" if self.chance(0.1) else "," if self.chance(0.3) else "."
        return [*((word, "word") for word in words), *self.maybe(0.85, mark)]

    def venue(self, early: bool) -> Part:
        """A journal of something, and pages."""
        found = [*self.maybe(0.3, "In", "word"), (self.pick(PLACES), "name")]
        if self.chance(0.7):
            found += [("of", "word"), *self.maybe(0.4, self.pick(WAYS).capitalize(), "word")]
            found += [(self.pick(LAST if self.chance(0.2) else TOPICS).capitalize(), "word")]
        page = int(self.random.integers(1, 2000))
        if self.chance(0.8):
            found += [(",", "mark"), (str(page), "pages")]
            if self.chance(0.7):
                found += [("-", "mark"), (str(page + int(self.random.integers(1, 40))), "pages")]
        return found + self.maybe(0.5 if early else 1, "." if early else ",")


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
