"""The forward recursion of a stream, step by step; the cost of a step does not depend on earlier steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hscrf.arrays import Floats
from hscrf.streaming.layout import Layout
from hscrf.streaming.terms import Terms


@dataclass(frozen=True, eq=False)
class StepRecord:
    """The results of one step, kept until they are older than the lag.

    ``up[m]`` are masses of stacks down to level m that have not ended at the last step. ``closed[m]`` are those of
    stacks whose level m ends there, ``across[m]`` those of stacks that start a sibling at this step.
    """

    step: int
    up: dict[int, Floats]
    closed: dict[int, Floats]
    across: dict[int, Floats]  # ages as they were before this step
    ages: dict[int, Floats]  # (places, nodes) the score of ending at each age
    former: Terms | None  # of the last step; None at the first
    terms: Terms
    entered: Floats  # masses of all entries without the tokens of this step


class Recursion:
    """Log masses of all unfinished labellings after the steps so far.

    An entry is a complete stack of states together with the ages of its segmental levels. Its mass is the sum
    (``best``: the maximum) of exp(score) over all labellings of the steps so far that end in it. The score includes
    tokens, starts and first children of all segments. Finished segments also have stops, lengths and last children.
    """

    def __init__(self, layout: Layout, best: bool) -> None:
        self.layout = layout
        self.best = best
        self.step = -1
        self.offset = 0.0  # the log factor taken off the masses
        self.masses: Floats = np.empty(0)
        self.terms: Terms | None = None
        self.sums: dict[int, Floats] = {}  # (size, S) of the averaged token scores, by the place of the age

    def push(self, terms: Terms) -> StepRecord:
        """Add one more step."""
        self.step += 1
        record = self._first(terms) if self.terms is None else self._next(terms)
        masses = record.entered if terms.token is None else record.entered + terms.token
        top = masses.max()
        if top > -np.inf:
            masses = masses - top
            self.offset += float(top)
        self.masses, self.terms = masses, terms
        self._add_averages(terms)
        return record

    def _first(self, terms: Terms) -> StepRecord:
        layout = self.layout
        entered = np.full(layout.shape, -np.inf)
        first = terms.enter[0]
        if 0 in terms.start:
            first = first + terms.start[0][layout.ancestor[0]]
        entered[layout.begun(0, 0)] = first
        return StepRecord(0, {}, {}, {}, {}, None, terms, entered)

    def _next(self, terms: Terms) -> StepRecord:
        layout, former = self.layout, self.terms
        assert former is not None
        ages = {d: self.age_rows(d, "close") for d in layout.ages}
        up, closed, across = {layout.bottom: self.masses}, {}, {}
        for m in range(layout.bottom, 0, -1):
            closed[m] = self._close(m, up[m], ages, former)
            if m > 1:
                ended = closed[m] + former.end[m] if m in former.end else closed[m]
                up[m - 1] = self._reduce_children(m, ended)
            across[m] = self._across(m, closed[m], former, terms)
        entered = self._entered(across, terms)
        return StepRecord(self.step, up, closed, across, ages, former, terms, entered)

    def _close(self, m: int, masses: Floats, ages: dict[int, Floats], former: Terms) -> Floats:
        """Masses of stacks whose level m ends at the last step."""
        if m in ages:
            masses = self._reduce(masses + ages[m], -2)
        return masses + former.stop[m] if m in former.stop else masses

    def _across(self, m: int, closed: Floats, former: Terms, terms: Terms) -> Floats:
        """Masses of stacks whose level m starts a sibling of the segment that ended."""
        nodes = self.layout.nodes[m]
        pairs = closed[..., nodes.members][..., None] + former.trans[m]
        found = self._reduce(pairs, -2)
        found = found.reshape(*found.shape[:-2], -1)
        if nodes.place.size < found.shape[-1]:
            found = found[..., nodes.place]
        return found + terms.start[m] if m in terms.start else found

    def _entered(self, across: dict[int, Floats], terms: Terms) -> Floats:
        """Masses of all entries at the new step, without its tokens."""
        layout = self.layout
        found = np.full(layout.shape, -np.inf) if layout.unit else self.expired(self.masses, layout.bottom + 1)
        for m in range(layout.bottom, 0, -1):
            new = self.expired(across[m], m)[..., layout.ancestor[m]] + terms.enter[m]
            index = layout.begun(m, self.step)
            if m in layout.ages or (m == layout.bottom and layout.unit):
                found[index] = new
            else:
                found[index] = self._add(found[index], new)
        return found

    def expired(self, masses: Floats, m: int) -> Floats:
        """A copy in which the places of segments that begin now are free, on the axes of all levels above m."""
        found = masses.copy()
        for d, axis in self.layout.axes.items():
            if d < m:
                ages, places = self.layout.ages[d], np.moveaxis(found, axis, 0)
                now = self.step % ages.size
                if ages.older:
                    growing, tail = self.layout.older(d, m)
                    places[-1] = self._add(places[-1], places[now] + growing) + tail
                places[now] = -np.inf
        return found

    def age_rows(self, d: int, what: str) -> Floats:
        """The scores that the ages of level d add to its stacks (places, nodes), from one row of its table."""
        ages, state = self.layout.ages[d], self.layout.nodes[d].state
        last = self.step - 1 if what == "close" else self.step
        age = (last - np.arange(ages.size)) % ages.size
        rows = getattr(ages, what)[age]
        if d in self.sums:
            rows = rows + self.sums[d] / (age + 1)[:, None]
        if ages.older:
            older = ages.total_older if what == "total" else ages.close_older
            rows = np.concatenate([rows, older[None]])
        return rows[:, state]

    def _add_averages(self, terms: Terms) -> None:
        """Add the averaged scores of a step to all segments that are unfinished."""
        for d, scores in terms.average.items():
            ages = self.layout.ages[d]
            if d not in self.sums:
                self.sums[d] = np.zeros((ages.size, scores.size))
            self.sums[d][self.step % ages.size] = 0.0
            self.sums[d] += scores

    # -- masses at the end

    def unfinished(self) -> Floats:
        """Log masses if the stream goes on: segments may still have every length that their ages allow."""
        found = self.masses
        for d, axis in self.layout.axes.items():
            found = found + self._on_axis(self.age_rows(d, "best" if self.best else "total"), d, axis)
        return found

    def finished(self) -> Floats:
        """Log masses if the sequence ends here: every segment does."""
        assert self.terms is not None
        layout, terms, found = self.layout, self.terms, self.masses
        self.step += 1  # ages are those of the step before
        for d, axis in layout.axes.items():
            found = found + self._on_axis(self.age_rows(d, "close"), d, axis)
        self.step -= 1
        for m in range(1, layout.bottom + 1):
            for part in (terms.stop, terms.end):
                if m in part:
                    found = found + part[m][layout.ancestor[m]]
        return found + terms.stop[0][layout.ancestor[0]] if 0 in terms.stop else found

    def _on_axis(self, rows: Floats, d: int, axis: int) -> Floats:
        """Rows (places, nodes of level d) as they are added to masses of complete stacks."""
        behind = len(self.layout.ages) - 1 - axis
        table = rows[:, self.layout.ancestor[d]]
        return table.reshape(table.shape[0], *[1] * behind, table.shape[1])

    # -- sums or maxima

    def _reduce(self, masses: Floats, axis: int) -> Floats:
        top = masses.max(axis=axis)
        return top if self.best else log_sum(masses, top, axis)

    def _reduce_children(self, m: int, masses: Floats) -> Floats:
        nodes = self.layout.nodes[m]
        top = np.maximum.reduceat(masses, nodes.first, axis=-1)
        if self.best:
            return top
        safe = np.where(top == -np.inf, 0.0, top)
        return np.log(np.add.reduceat(np.exp(masses - safe[..., nodes.parent]), nodes.first, axis=-1)) + safe

    def _add(self, one: Floats, other: Floats) -> Floats:
        return np.maximum(one, other) if self.best else np.logaddexp(one, other)


def log_sum(masses: Floats, top: Floats, axis: int) -> Floats:
    """Log of the sum of exponentials along an axis, whose maxima are ``top``."""
    safe = np.where(top == -np.inf, 0.0, top)
    return np.log(np.exp(masses - np.expand_dims(safe, axis)).sum(axis=axis)) + safe
