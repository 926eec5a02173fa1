"""The k best configurations, lazily, from the tables of the best one (Huang and Chiang 2005, algorithm 3).

Every item of the walk back (see ``kernels.tracing.incoming``) keeps a list of *losses*: how much worse
its r-th best way is than its best. The best needs no search, so only items near the k best paths are ever looked at.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.engine.kernels.arithmetic import MAX
from hscrf.engine.kernels.layout import STATE, make_work
from hscrf.engine.kernels.runs import walk_forward
from hscrf.engine.kernels.tracing import ENDS, FRESH, LIVES, STARTS, level_of, list_incoming, write_states
from hscrf.engine.passes import ABSENT, NONE_LOSSY, inside, leaves_of, log_z_of, make_bundle, numbers_of
from hscrf.engine.plan import Plan
from hscrf.engine.space import fresh
from hscrf.potentials import Arrays


class Item(NamedTuple):
    """A place in the walk back through the run (layer, s, i): an event of a node at time t."""

    layer: int
    s: int
    i: int
    kind: int
    node: int
    t: int


ROOT = Item(-1, 0, 0, ENDS, 0, 0)  # the choice of the root's state


@dataclass
class Ways:
    """The ways that lead to an item, best first, as far as they have been asked for."""

    steps: Sequence[float] | Floats  # loss of the first step of each candidate, best first
    where: Sequence[Sequence[int]] | Ints  # (n, 3) kind, node and time of each candidate
    follow: int  # how many items each of them leads to
    losses: list[float] = field(default_factory=list)
    picks: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)  # candidate, and ranks of what follows
    heap: list[tuple[float, int, tuple[int, ...]]] = field(default_factory=list)
    seen: set[tuple[int, tuple[int, ...]]] = field(default_factory=set)
    then: dict[int, tuple[Item, ...]] = field(default_factory=dict)  # what candidates lead to, once it is known

    def __post_init__(self) -> None:
        self.push(0)

    def push(self, c: int) -> None:
        """Put a candidate into the heap, if there is one. The next one follows when this one has been taken."""
        if c < len(self.steps):
            heappush(self.heap, (float(self.steps[c]), c, (0,) * self.follow))


FEW = 64  # so many candidates are put in order sooner by Python than by NumPy


def in_order(weight: Floats, where: Ints) -> tuple[Any, Any]:
    """The losses of all candidates that are possible, best first, and where these lead."""
    if len(weight) > FEW:
        order = (-weight).argsort(kind="stable")
        steps = weight[order[0]] - weight[order]
        possible = order[: np.searchsorted(steps, np.inf)]
        return steps[: possible.size], where[possible]
    weights, places = weight.tolist(), where[: len(weight)].tolist()
    chosen = sorted((c for c, value in enumerate(weights) if value > -np.inf), key=weights.__getitem__, reverse=True)
    return [weights[chosen[0]] - weights[c] for c in chosen], [places[c] for c in chosen]


class KBest:
    """Iterate over (score, states, ends) of one sequence, best first."""

    def __init__(self, plan: Plan, values: Arrays) -> None:
        self.plan = plan
        self.tables, _ = inside(plan, MAX, values)
        none = np.zeros(1, dtype=bool)
        self.given = []  # what the kernels need of each layer
        for layer in plan.layers:
            numbers = numbers_of(plan, MAX, layer, values, none)
            leaves = leaves_of(plan, MAX, layer, numbers, self.tables.get(layer.bottom), ABSENT, none)
            self.given.append((MAX, layer.layer, numbers.values, *leaves))
        self.runs: dict[tuple[int, int, int], Any] = {}
        self.ways: dict[Item, Ways] = {}

    def __iter__(self) -> Iterator[tuple[float, Any, Any]]:
        best = float(log_z_of(self.plan, MAX, self.tables[0])[0])
        rank = 0
        while best > -np.inf and self._reach(ROOT, rank):
            yield best - self.ways[ROOT].losses[rank], *self._configuration(rank)
            rank += 1

    def _reach(self, item: Item, rank: int) -> bool:
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

    def _has(self, item: Item, rank: int) -> bool:
        """Is the way of an item of this rank known."""
        ways = self.ways.get(item)
        return ways is not None and len(ways.losses) > rank

    def _search(self, item: Item, rank: int) -> Generator[tuple[Item, int], None, None]:
        """Extend an item's list to a rank, asking for what is needed of the items behind it."""
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

    def _push_neighbours(self, item: Item) -> Generator[tuple[Item, int], None, None]:
        """After the last way found comes the next candidate, or what differs in the rank of one item behind it."""
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
                heappush(ways.heap, (float(ways.steps[c]) + sum(losses), c, following))

    def _ways(self, item: Item) -> Ways:
        """The ways of an item before any of them is asked for."""
        if item == ROOT:
            weight = self.tables[0][:, self.plan.root_columns[0]]
            where = np.repeat(np.arange(weight.size)[:, None], 3, axis=1)
        elif item.kind == FRESH:
            return Ways([0.0], [[FRESH, 0, 0]], 0)
        else:
            work, weight, where = self._run(item.layer, item.s, item.i)
            count = list_incoming(*self.given[item.layer], *item[1:], work, weight, where)
            weight = weight[:count]
        return Ways(*in_order(weight, where), 2 if self._leads_below(item) else 1)

    def _leads_below(self, item: Item) -> bool:
        """Is this a segment that leads into the layer below as well."""
        return item.kind == LIVES and item.layer + 1 < len(self.plan.layers)

    def _then(self, item: Item, c: int) -> tuple[Item, ...]:
        """What a candidate leads to."""
        then = self.ways[item].then
        if c not in then:
            then[c] = self._find_then(item, c)
        return then[c]

    def _find_then(self, item: Item, c: int) -> tuple[Item, ...]:
        kind, node, t = map(int, self.ways[item].where[c])
        if item == ROOT:
            return (self._segment(0, node, 0, self.plan.steps - 1),)
        if item.kind == FRESH:
            return ()
        then = Item(item.layer, item.s, item.i, kind, node, t)
        if not self._leads_below(item):
            return (then,)
        state = int(self.plan.layers[item.layer].layer.node[STATE, node])
        return then, self._segment(item.layer + 1, state, t, item.t)

    def _segment(self, layer: int, s: int, i: int, j: int) -> Item:
        """The item of a whole segment of a layer's top level."""
        return Item(layer, s, i, ENDS, int(self.plan.layers[layer].layer.level_at[s, 0]), j)

    def _run(self, layer: int, s: int, i: int) -> Any:
        """The forward pass of a run, and room for candidates."""
        if (layer, s, i) not in self.runs:
            own = self.plan.layers[layer]
            steps = int(own.layer.reach[i, s])
            work = make_work(own.sizes, 1, steps, self.given[layer][3].longest, False, True, False, fresh)
            walk_forward(*self.given[layer], i, s, steps, *make_bundle(), NONE_LOSSY, work)
            room = steps + work.nodes + 2
            self.runs[layer, s, i] = work, np.empty(room), np.empty((room, 3), dtype=np.int64)
        return self.runs[layer, s, i]

    def _configuration(self, rank: int) -> tuple[Any, Any]:
        """Write out the way of the root of a given rank."""
        states = np.zeros((self.plan.topology.depth, self.plan.steps), dtype=np.int32)
        ends = np.zeros(states.shape, dtype=np.int8)
        ends[:, -1] = 1
        todo = [(ROOT, rank)]
        while todo:
            item, rank = todo.pop()
            if item.kind == FRESH:
                continue
            self._reach(item, rank)  # a best way may not have been looked at yet
            c, ranks = self.ways[item].picks[rank]
            then = self._then(item, c)
            todo += zip(then, ranks, strict=True)
            if item == ROOT:
                states[0] = then[0].s
            else:
                self._write(item, then[0], states, ends)
        return states, ends

    def _write(self, item: Item, then: Item, states: Any, ends: Any) -> None:
        plan = self.plan.layers[item.layer]
        below = slice(plan.top + 1, plan.bottom + 1)
        if item.kind == LIVES:
            depth = plan.bottom - plan.top
            write_states(plan.layer, plan.top, depth, item.node, then.t, item.t, states)
        elif item.kind == STARTS and then.kind == ENDS:
            level = plan.top + level_of(plan.layer, item.s, item.node)
            ends[level : plan.bottom + 1, then.t] = 1
        elif item.kind == ENDS and item.node == plan.layer.level_at[item.s, 0]:
            ends[below, item.t] = 1
