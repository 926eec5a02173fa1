"""The recursion of a stream without segmental levels: one matrix over all stacks of states.

The results are those of :mod:`hscrf.streaming.recursion`, with fewer and larger operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hscrf.arrays import Floats
from hscrf.streaming.layout import Layout
from hscrf.streaming.terms import Terms

LARGEST = 128  # up to this number of stacks, a matrix over pairs is faster


@dataclass(frozen=True, eq=False)
class ChainRecord:
    """The results of one step: the best way into each entry, or the weights of all entries before each.

    Ways are numbered by the topmost level that begins, then by the entry before.
    """

    before: list[int] | None  # the best way into each entry; None at the first step
    weights: Floats | None  # (K, K) probability of the entry before, by columns


class ChainRecursion:
    """Log masses of all stacks of states, see :class:`hscrf.streaming.recursion.Recursion`."""

    def __init__(self, layout: Layout, best: bool) -> None:
        self.layout = layout
        self.best = best
        self.step = -1
        self.offset = 0.0
        self.masses: Floats = np.empty(0)
        self.terms: Terms | None = None
        self.columns = np.arange(layout.leaves)
        self._known: tuple[object, ...] = ()  # the parts of the current scores
        self._scores: Floats = np.empty(0)
        self._transitions: tuple[object, ...] = ()  # the parts of the current pairs
        self._pairs: Floats = np.empty(0)

    def push(self, terms: Terms) -> ChainRecord:
        """Add one step."""
        self.step += 1
        if self.terms is None:
            record, masses = ChainRecord(None, None), self._first(terms)
        else:
            record, masses = self._next(self._scores_of(self.terms, terms))
        if terms.token is not None:
            masses = masses + terms.token
        top = float(masses.max())
        if top > -np.inf:
            masses = masses - top
            self.offset += top
        self.masses, self.terms = masses, terms
        return record

    def _first(self, terms: Terms) -> Floats:
        first = terms.enter[0]
        return first + terms.start[0][self.layout.ancestor[0]] if 0 in terms.start else first

    def _next(self, scores: Floats) -> tuple[ChainRecord, Floats]:
        """The masses of all entries at a new step, without its tokens, from the scores (levels, K, K) of all ways."""
        ways = (scores + self.masses[:, None]).reshape(-1, self.columns.size)
        if self.best:
            before = ways.argmax(axis=0)
            return ChainRecord(before.tolist(), None), ways[before, self.columns]
        top = ways.max(axis=0)
        np.subtract(ways, np.where(top == -np.inf, 0.0, top), out=ways)
        np.exp(ways, out=ways)
        total = ways.sum(axis=0)
        ways /= np.where(total == 0, 1.0, total)
        return ChainRecord([], ways.reshape(scores.shape).sum(axis=0)), top + np.log(total)

    def _scores_of(self, former: Terms, terms: Terms) -> Floats:
        """Log scores of going from one stack to another, by the topmost level that begins, from the top down.

        (levels, K, K): the sum of what ends, of the pair of children, and of what starts. Unless the lowest level has
        one step a segment, nothing begins on the last ways: the stack goes on.
        """
        parts = (*former.stop.values(), *former.end.values(), *former.trans.values())
        parts = (*parts, *terms.start.values(), *terms.enter.values())
        if not _same(parts, self._known):
            ending, starting = self._borders(former, terms)
            scores = self._pairs_of(former) + ending[:, :, None]
            scores += starting[:, None, :]
            self._known, self._scores = parts, scores
        return self._scores

    def _borders(self, former: Terms, terms: Terms) -> Floats:
        """Scores of ends and of starts, if a level and all below it begin: (2, levels, K)."""
        layout = self.layout
        found = np.zeros((2, layout.bottom + (not layout.unit), layout.leaves))
        total: Any = 0.0  # of all levels from m on
        for m in range(layout.bottom, 0, -1):
            own = layout.ancestor[m]
            if m in former.stop:
                total = total + former.stop[m].take(own)
            found[0, m - 1] = total
            found[1, m - 1] = terms.enter[m] + terms.start[m].take(own) if m in terms.start else terms.enter[m]
            if m in former.end:
                total = total + former.end[m].take(own)
        return found

    def _pairs_of(self, former: Terms) -> Floats:
        """Transitions by complete stacks (levels, K, K); made anew only where they change in time."""
        layout, parts = self.layout, tuple(former.trans.values())
        if not _same(parts, self._transitions):
            going = np.full((layout.bottom + (not layout.unit), layout.leaves, layout.leaves), -np.inf)
            for m in range(1, layout.bottom + 1):
                nodes, own = layout.nodes[m], layout.ancestor[m]
                group = nodes.parent[own]
                place = own - nodes.first[group]
                table = former.trans[m][group[:, None], place[:, None], place]
                going[m - 1] = np.where(group[:, None] == group, table, -np.inf)
            if not layout.unit:
                np.fill_diagonal(going[-1], 0.0)
            self._transitions, self._pairs = parts, going
        return self._pairs

    # -- masses at the end

    def unfinished(self) -> Floats:
        """Log masses if the stream goes on."""
        return self.masses

    def finished(self) -> Floats:
        """Log masses if the sequence ends here: every segment does."""
        assert self.terms is not None
        layout, terms, found = self.layout, self.terms, self.masses
        for m in range(layout.bottom + 1):
            for part in (terms.stop, terms.end):
                if m in part:
                    found = found + part[m][layout.ancestor[m]]
        return found

    # -- tracing back

    def predecessor(self, record: ChainRecord, entry: int) -> tuple[int | None, int]:
        """The best entry at the step before, and the topmost level that begins at this step."""
        if record.before is None:
            return None, 0
        begun, before = divmod(record.before[entry], self.columns.size)
        return before, begun + 1

    def probabilities(self, records: Sequence[ChainRecord], masses: Sequence[Floats], ends: Floats) -> Iterator[Floats]:
        """Probabilities (leaves,) of the stacks, for the last step and then for those before it."""
        found = np.exp(ends - ends.max())
        found /= found.sum()
        for k in range(len(records) - 1, -1, -1):
            yield found
            weights = records[k].weights
            if weights is not None:
                found = weights @ found


def _same(parts: Sequence[object], others: Sequence[object]) -> bool:
    return len(parts) == len(others) and all(a is b for a, b in zip(parts, others, strict=True))
