"""The k best configurations, lazily, from the tables of the best one (Huang and Chiang 2005, algorithm 3).

Every item of the walk back (see ``core/src/trace.h``) keeps a list of *losses*: how much worse its r-th best way is
than its best. The best needs no search, so only items near the k best paths are ever looked at.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hscrf import _core

ENDS, LIVES, STARTS, FRESH = 0, 1, 2, 3  # kinds of items: a node ends, lives, starts, or starts with its run


class PathEvent(NamedTuple):
    """A place in the walk back through the run (layer, s, i): an event of a node at time t."""

    layer: int
    s: int
    i: int
    kind: int
    node: int
    t: int


ROOT = PathEvent(-1, 0, 0, ENDS, 0, 0)  # the choice of the root's state


@dataclass
class Ways:
    """The ways that lead to an item, best first, as far as they have been computed."""

    steps: Sequence[float]  # loss of the first step of each candidate, best first
    where: Sequence[int]  # kind, node and time of each candidate, one after the other
    follow: int  # number of items that each candidate leads to
    losses: list[float] = field(default_factory=list)
    picks: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)  # candidate, and ranks of what follows
    heap: list[tuple[float, int, tuple[int, ...]]] = field(default_factory=list)
    seen: set[tuple[int, tuple[int, ...]]] = field(default_factory=set)
    then: dict[int, tuple[PathEvent, ...]] = field(
        default_factory=dict
    )  # the items that candidates lead to, once known

    def __post_init__(self) -> None:
        self.push(0)

    def push(self, c: int) -> None:
        """Put a candidate into the heap, if there is one. The next one follows when this one has been taken."""
        if c < len(self.steps):
            heappush(self.heap, (self.steps[c], c, (0,) * self.follow))


class KBest:
    """Iterate over (score, states, ends) of one sequence, best first.

    ``runs`` holds the tables of the sequence, ``segmental`` says which levels have a table of segments.
    """

    def __init__(self, runs: _core.Runs, segmental: Sequence[bool], length: int) -> None:
        self.made, self.length, self.depth = runs, length, len(segmental)
        tops = [d for d in range(self.depth - 1) if segmental[d]]
        self.layers = list(zip(tops, [*tops[1:], self.depth - 1], strict=True))  # levels: top and bottom
        self.runs: dict[tuple[int, int, int], _core.Run] = {}
        self.ways: dict[PathEvent, Ways] = {}

    def __iter__(self) -> Iterator[tuple[float, NDArray[np.int32], NDArray[np.int8]]]:
        best = max(self.made.roots())
        rank = 0
        while best > -np.inf and self._reach(ROOT, rank):
            yield best - self.ways[ROOT].losses[rank], *self._configuration(rank)
            rank += 1

    def _reach(self, item: PathEvent, rank: int) -> bool:
        """Find the ways of an item up to a rank; False if there are fewer. The walk is deep, so it does not recurse."""
        if self._has(item, rank):
            return True
        stack = [self._search(item, rank)]
        while stack:
            try:
                item_wanted, rank_wanted = next(stack[-1])
                stack.append(self._search(item_wanted, rank_wanted))
            except StopIteration:
                stack.pop()
        return self._has(item, rank)

    def _has(self, item: PathEvent, rank: int) -> bool:
        """Return whether the way of an item at this rank is known."""
        ways = self.ways.get(item)
        return ways is not None and len(ways.losses) > rank

    def _search(self, item: PathEvent, rank: int) -> Generator[tuple[PathEvent, int], None, None]:
        """Extend an item's list to a rank; first extend the items behind it as far as needed."""
        if item not in self.ways:
            self.ways[item] = self._ways(item)
        ways = self.ways[item]
        while len(ways.losses) <= rank:
            if ways.picks:
                yield from self._push_neighbours(item)
            if not ways.heap:
                return
            loss, c, ranks = heappop(ways.heap)
            ways.losses.append(loss)
            ways.picks.append((c, ranks))

    def _push_neighbours(self, item: PathEvent) -> Generator[tuple[PathEvent, int], None, None]:
        """Push what may follow the last way found: the next candidate, or the same with the next rank of one item."""
        ways = self.ways[item]
        c, ranks = ways.picks[-1]
        if not any(ranks):
            ways.push(c + 1)
        then = self._then(item, c)
        for k in range(len(then)):
            following = tuple(rank + (n == k) for n, rank in enumerate(ranks))
            if (c, following) in ways.seen:
                continue
            ways.seen.add((c, following))
            wanted = list(zip(then, following, strict=True))
            missing = [behind for behind in wanted if not self._has(*behind)]
            yield from missing
            if all(self._has(*behind) for behind in missing):
                losses = (self.ways[behind].losses[rank] for behind, rank in wanted)
                heappush(ways.heap, (ways.steps[c] + sum(losses), c, following))

    def _ways(self, item: PathEvent) -> Ways:
        """The ways of an item before any of them is computed."""
        if item == ROOT:
            scores = self.made.roots()
            order = sorted((s for s, score in enumerate(scores) if score > -np.inf), key=lambda s: -scores[s])
            return Ways([scores[order[0]] - scores[s] for s in order], [n for s in order for n in (ENDS, s, 0)], 1)
        if item.kind == FRESH:
            return Ways([0.0], [FRESH, 0, 0], 0)
        losses, where = self._run(item).incoming(item.kind, item.node, item.t)
        return Ways(losses, where, 2 if self._leads_below(item) else 1)

    def _run(self, item: PathEvent) -> _core.Run:
        """The run of an item."""
        key = item[:3]
        if key not in self.runs:
            self.runs[key] = self.made.run(*key)
        return self.runs[key]

    def _leads_below(self, item: PathEvent) -> bool:
        """Return whether this segment also leads into the layer below."""
        return item.kind == LIVES and item.layer + 1 < len(self.layers)

    def _then(self, item: PathEvent, c: int) -> tuple[PathEvent, ...]:
        """The items that a candidate leads to."""
        then = self.ways[item].then
        if c not in then:
            then[c] = self._find_then(item, c)
        return then[c]

    def _find_then(self, item: PathEvent, c: int) -> tuple[PathEvent, ...]:
        kind, node, t = self.ways[item].where[3 * c : 3 * c + 3]
        if item == ROOT:
            return (PathEvent(0, node, 0, ENDS, 0, self.length - 1),)
        if item.kind == FRESH:
            return ()
        then = PathEvent(item.layer, item.s, item.i, kind, node, t)
        if not self._leads_below(item):
            return (then,)
        return then, PathEvent(item.layer + 1, self._run(item).states_of(node)[-1], t, ENDS, 0, item.t)

    def _configuration(self, rank: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """Write out the way of the root of a given rank."""
        states = np.zeros((self.depth, self.length), dtype=np.int32)
        ends = np.zeros(states.shape, dtype=np.int8)
        ends[:, -1] = 1
        todo = [(ROOT, rank)]
        while todo:
            item, rank = todo.pop()
            if item.kind == FRESH:
                continue
            self._reach(item, rank)  # the best way may not have been computed yet
            c, ranks = self.ways[item].picks[rank]
            then = self._then(item, c)
            todo += zip(then, ranks, strict=True)
            if item == ROOT:
                states[0] = then[0].s
            else:
                self._write(item, then[0], states, ends)
        return states, ends

    def _write(self, item: PathEvent, then: PathEvent, states: Any, ends: Any) -> None:
        top, bottom = self.layers[item.layer]
        if item.kind == LIVES:
            for d, state in enumerate(self._run(item).states_of(item.node), top + 1):
                states[d, then.t : item.t + 1] = state
        elif item.kind == STARTS and then.kind == ENDS:
            level = top + self._run(item).level_of(item.node)
            ends[level : bottom + 1, then.t] = 1
        elif item.kind == ENDS and item.node == 0:
            ends[top + 1 : bottom + 1, item.t] = 1
