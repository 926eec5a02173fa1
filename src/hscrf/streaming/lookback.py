"""Trace back over the last steps of a stream: the best labelling, and the probabilities of states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from hscrf.arrays import Floats
from hscrf.streaming.recursion import Recursion, StepRecord, log_sum


class Entry(NamedTuple):
    """A place among the masses: where the ages are on their axes, and the number of the stack."""

    places: tuple[int, ...]
    leaf: int


class SegmentalRecursion(Recursion):
    """The recursion, with tracing back."""

    # -- the best labelling

    def predecessor(self, record: StepRecord, number: int) -> tuple[int | None, int]:
        """The best entry at the step before, and the topmost level that begins at this step.

        Entries are numbered as in the flattened array. At the first step there is none before, and all levels begin.
        Where no level begins, the level is bottom + 1.
        """
        if record.former is None:
            return None, 0
        *axes, last = map(int, np.unravel_index(number, self.layout.shape))
        places, leaf, begun = self._before(record, Entry(tuple(axes), last))
        return int(np.ravel_multi_index((*places, leaf), self.layout.shape)), begun

    def _before(self, record: StepRecord, entry: Entry) -> tuple[tuple[int, ...], int, int]:
        """Places, stack and topmost level that begins."""
        layout = self.layout
        assert record.former is not None
        begun, places = self._begun(record, entry)
        if begun > layout.bottom:
            return places, entry.leaf, begun
        nodes = layout.nodes[begun]
        v = int(layout.ancestor[begun][entry.leaf])
        group = int(nodes.parent[v])
        scores = record.closed[begun][places][nodes.members[group]]
        scores = scores + record.former.trans[begun][group, :, v - int(nodes.first[group])]
        u = int(nodes.members[group, scores.argmax()])
        for m in range(begun, layout.bottom + 1):
            if m > begun:
                nodes = layout.nodes[m]
                own = slice(int(nodes.first[u]), int(nodes.first[u] + nodes.count[u]))
                scores = record.closed[m][places][own]
                if m in record.former.end:
                    scores = scores + record.former.end[m][own]
                u = own.start + int(scores.argmax())
            if m in layout.ages:
                places = (*places, int((record.up[m][places][:, u] + record.ages[m][:, u]).argmax()))
        return places, u, begun

    def _begun(self, record: StepRecord, entry: Entry) -> tuple[int, tuple[int, ...]]:
        """The topmost level that begins on the best way into an entry, and where the ages above it were before.

        The ages show which levels have begun, but Markov levels have none: for them the best way decides.
        """
        layout = self.layout
        ages = layout.ages.items()
        new = [place == record.step % own.size for (_, own), place in zip(ages, entry.places, strict=True)]
        best, found = -np.inf, (layout.bottom + 1, entry.places)
        for m in range(1, layout.bottom + 2 - layout.unit):
            k = layout.axes_above(m)
            if any(new[:k]) or not all(new[k:]):
                continue
            for places in product(*(self._places_before(record.step, d, entry.places) for d in layout.ages if d < m)):
                if m > layout.bottom:
                    value = record.up[layout.bottom][places][entry.leaf]
                else:
                    value = record.across[m][places][layout.ancestor[m][entry.leaf]] + record.terms.enter[m][entry.leaf]
                value += self._grown(entry, places, m)
                if value > best:
                    best, found = float(value), (m, places)
        return found

    def _grown(self, entry: Entry, places: tuple[int, ...], m: int) -> float:
        """Scores of segments of levels above m that outgrow all places of their axes."""
        layout = self.layout
        total = 0.0
        for d, axis in layout.axes.items():
            ages, state = layout.ages[d], layout.states[d][entry.leaf]
            if d < m and ages.older and entry.places[axis] == ages.size:
                total += float(ages.tail[state]) + (0.0 if places[axis] == ages.size else float(ages.growing[state]))
        return total

    def _places_before(self, step: int, d: int, places: tuple[int, ...]) -> tuple[int, ...]:
        """Where the age of level d may have been at the step before."""
        ages, place = self.layout.ages[d], places[self.layout.axes[d]]
        return (place, step % ages.size) if ages.older and place == ages.size else (place,)

    # -- probabilities

    def probabilities(self, records: Sequence[StepRecord], masses: Sequence[Floats], ends: Floats) -> Iterator[Floats]:
        """Probabilities (leaves,) of the stacks, for the last step and then for those before it.

        ``ends`` are log masses of the entries at the last step, including whether the sequence goes on or ends.
        """
        after = np.where(ends > -np.inf, ends - np.where(ends > -np.inf, masses[-1], 0.0), -np.inf)
        for k in range(len(records) - 1, -1, -1):
            total = masses[k] + after
            weight = np.exp(total - total.max())
            yield (weight / weight.sum()).reshape(-1, self.layout.leaves).sum(axis=0)
            if k:
                after = self.step_back(records[k], after)

    def step_back(self, record: StepRecord, after: Floats) -> Floats:
        """The backward masses of the step before, from those of the step of a record.

        Both are log sums over all ways on from each entry. Added to the masses of the same step they give the
        probabilities of its entries, up to a constant.
        """
        layout = self.layout
        assert record.former is not None
        if record.terms.token is not None:
            after = after + record.terms.token
        after = after - after.max()
        above: Floats | None = None  # of the level above
        for m in range(1, layout.bottom + 1):
            nodes = layout.nodes[m]
            start = after[layout.begun(m, record.step)] + record.terms.enter[m]
            start = self._moved(record.step, self._sum_below(m, start), m)
            if m in record.terms.start:
                start = start + record.terms.start[m]
            pairs = start[..., nodes.members][..., None, :] + record.former.trans[m]
            ending = log_sum(pairs, pairs.max(axis=-1), -1)
            ending = ending.reshape(*ending.shape[:-2], -1)[..., nodes.place]
            if above is not None:
                upper = above[..., nodes.parent]
                ending = np.logaddexp(ending, upper + record.former.end[m] if m in record.former.end else upper)
            if m in record.former.stop:
                ending = ending + record.former.stop[m]
            above = ending[..., None, :] + record.ages[m] if m in layout.ages else ending
        assert above is not None
        return above if layout.unit else np.logaddexp(above, self._moved(record.step, after, layout.bottom + 1))

    def _sum_below(self, m: int, values: Floats) -> Floats:
        """Log sums over the complete stacks below each stack down to level m."""
        if m == self.layout.bottom:
            return values
        first = self.layout.first_leaf[m]
        top = np.maximum.reduceat(values, first, axis=-1)
        safe = np.where(top == -np.inf, 0.0, top)
        return np.log(np.add.reduceat(np.exp(values - safe[..., self.layout.ancestor[m]]), first, axis=-1)) + safe

    def _moved(self, step: int, values: Floats, m: int) -> Floats:
        """The same by the places of ages at the step before; segments too old to continue have mass zero."""
        layout = self.layout
        found = values
        for d, axis in layout.axes.items():
            if d < m:
                ages, found = layout.ages[d], found.copy()
                places = np.moveaxis(found, axis, 0)
                places[step % ages.size] = -np.inf
                if ages.older:
                    growing, tail = layout.older(d, m)
                    places[ages.size] += tail
                    places[step % ages.size] = places[ages.size] + growing
        return found
