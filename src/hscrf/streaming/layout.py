"""The stacks of states that a stream can be in, and the ages of its unfinished segments, as indices of arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.potentials import Key
from hscrf.topology import UNLIMITED, Topology


@dataclass(frozen=True, eq=False)
class Nodes:
    """All stacks of states from the root down to one level; the children of a stack are consecutive."""

    state: Ints  # (n,) state of the level
    parent: Ints  # (n,) number of the stack above
    above: Ints  # (n,) state of the level above
    first: Ints  # (stacks above,) first child of each
    count: Ints  # (stacks above,) number of its children
    members: Ints  # (stacks above, k) numbers of the children, padded by the first
    real: NDArray[np.bool_]  # (stacks above, k) False in the padding
    place: Ints  # (n,) where a node is in ``members``, counted along rows


def nodes_below(topology: Topology, d: int, above: Ints) -> Nodes:
    """The stacks down to level d + 1, from the states of level d of all stacks down to there."""
    children = [np.flatnonzero(topology.children[d][s]) for s in above]
    counts = np.array([len(own) for own in children])
    first = np.cumsum(counts) - counts
    parent = np.repeat(np.arange(above.size), counts)
    offset = np.arange(counts.max())
    real = offset < counts[:, None]
    return Nodes(
        state=np.concatenate(children),
        parent=parent,
        above=above[parent],
        first=first,
        count=counts,
        members=np.where(real, first[:, None] + offset, first[:, None]),
        real=real,
        place=np.flatnonzero(real.ravel()),
    )


@dataclass(frozen=True, eq=False)
class Ages:
    """The lengths that segments of one level may have, and the axis of arrays that distinguishes their ages.

    A segment that began at step t has the place ``t % size`` on the axis, so that no entry moves when it continues.
    States without a longest duration, and those whose longest duration is open, stay in one more place, the last, once
    they are older than ``size``. An open one scores its longest explicit duration when it moves there, and ``tail`` at
    each step.
    """

    size: int
    older: bool
    close: Floats  # (size, S) log score of ending at age a + 1, -inf where that is impossible
    total: Floats  # (size, S) log of the sum over all lengths of at least a + 1
    best: Floats  # (size, S) the best of these
    close_older: Floats  # (S,)
    total_older: Floats  # (S,) log of the sum over all lengths that are still to come
    growing: Floats  # (S,) score of the step at which a segment becomes older than ``size``
    tail: Floats  # (S,) score of each step after that

    @property
    def places(self) -> int:
        """The number of places on the axis of ages."""
        return self.size + self.older


LASTING = 1000  # cap on the mean number of steps that an open segment may still last


def ages_of(topology: Topology, d: int, table: Floats | None, limit: int | None, tail: Floats | None = None) -> Ages:
    """The ages of a level with a table (L, S) of durations, or with limits; ``limit`` is that of averaged features.

    ``tail`` (S,) is the score of each step beyond the longest explicit duration of open states.
    """
    shortest, longest = topology.min_duration[d], topology.max_duration[d].copy()
    if limit is not None and topology.open_duration[d].any():
        level = topology.levels[d]
        raise ValueError(f"level {level!r} has open durations, over which a stream cannot average features")
    for bound in (None if table is None else len(table), limit):
        if bound is not None:
            longest = np.minimum(longest, bound)
    opened, none = topology.open_duration[d], np.zeros(longest.size)
    if opened.any():
        return _open_ages(opened, shortest, longest, table, none if tail is None else tail)
    older = bool((longest == UNLIMITED).any())
    size = int(np.where(longest == UNLIMITED, shortest, longest).max())
    length = np.arange(1, size + 1)[:, None]
    allowed = (shortest <= length) & (length <= longest)
    close = np.where(allowed, 0.0 if table is None else table[:size], -np.inf)
    best = np.maximum.accumulate(close[::-1], axis=0)[::-1]
    with np.errstate(divide="ignore"):
        total = np.logaddexp.accumulate(close[::-1], axis=0)[::-1]
    if older:  # lengths cannot be summed: the level counts as one without durations
        best = total = np.where(length <= longest, 0.0, -np.inf)
    close_older = np.where(longest == UNLIMITED, 0.0, -np.inf)
    return Ages(size, older, close, total, best, close_older, close_older, none, none)


def _open_ages(opened: NDArray[np.bool_], shortest: Ints, longest: Ints, table: Floats | None, tail: Floats) -> Ages:
    """The ages of a level with open states."""
    unlimited = longest == UNLIMITED
    size = int(np.where(unlimited, shortest, np.where(opened, np.maximum(shortest, longest), longest)).max())
    length = np.arange(1, size + 1)[:, None]
    explicit = np.where(opened, np.minimum(length, longest), length)
    allowed = (shortest <= length) & (explicit <= longest)
    beyond = length - explicit
    scores = np.zeros_like(beyond, dtype=np.float64)
    np.multiply(beyond, tail, where=beyond > 0, out=scores)
    if table is not None:
        scores += table[np.minimum(explicit, len(table)) - 1, np.arange(longest.size)]
    growing = np.where(opened, scores[-1], 0.0)
    close = np.where(allowed, scores, -np.inf)
    close_older = np.where(opened | unlimited, 0.0, -np.inf)
    tail = np.where(opened, tail, 0.0)
    to_come = -np.log1p(-np.exp(np.minimum(tail, np.log1p(-1 / LASTING))))  # of a geometric series
    total_older = np.where(opened, to_come, close_older)
    last = np.where(opened, growing + tail, close_older)
    total = np.logaddexp.accumulate(np.vstack([last + total_older, close[::-1]]), axis=0)[:0:-1]
    best = np.maximum.accumulate(np.vstack([last, close[::-1]]), axis=0)[:0:-1]
    best[:, unlimited] = total[:, unlimited] = 0.0  # lengths cannot be summed: as if they had no durations
    return Ages(size, True, close, total, best, close_older, total_older, growing, tail)


class Layout:
    """The layout of a stream's arrays: an axis for each segmental level, the last axis for the stacks.

    Levels are those of the topology: 0 is the root, ``bottom`` the lowest. ``nodes[m]`` are the stacks down to level m
    (none for the root), ``ancestor[m]`` gives the stack down to level m of each complete one.
    """

    def __init__(
        self,
        topology: Topology,
        durations: dict[int, Floats],
        limits: dict[int, int],
        keys: Collection[Key] = (),
        tails: Mapping[int, Floats] | None = None,
    ) -> None:
        for part, d in keys:
            if d == 0 and part in ("duration", "segment", "average"):
                raise ValueError("a stream has no length yet, so its model cannot score the length of the root")
        self.topology = topology
        self.bottom = topology.depth - 1
        self.unit = topology.unit_bottom
        self.roots = np.arange(topology.n_states[0])
        self.nodes: dict[int, Nodes] = {}
        above = self.roots
        for d in range(self.bottom):
            self.nodes[d + 1] = nodes_below(topology, d, above)
            above = self.nodes[d + 1].state
        self.leaves = above.size
        self.ancestor = {self.bottom: np.arange(self.leaves)}
        for m in range(self.bottom, 0, -1):
            self.ancestor[m - 1] = self.nodes[m].parent[self.ancestor[m]]
        self.states = np.stack(
            [self.ancestor[0], *(self.nodes[m].state[self.ancestor[m]] for m in range(1, self.bottom + 1))]
        )
        self.first_leaf = {m: np.searchsorted(self.ancestor[m], np.arange(self.count(m))) for m in self.ancestor}
        self.ages = {
            d: ages_of(topology, d, durations.get(d), limits.get(d), (tails or {}).get(d))
            for d in range(1, self.bottom + 1)
            if d in durations or d in limits or topology.has_limits(d)
        }
        self.axes = {d: k for k, d in enumerate(self.ages)}
        self.shape = (*(ages.places for ages in self.ages.values()), self.leaves)

    def count(self, m: int) -> int:
        """Number of stacks down to level m."""
        return self.roots.size if m == 0 else self.nodes[m].state.size

    def axes_above(self, m: int) -> int:
        """Number of segmental levels above level m."""
        return sum(d < m for d in self.ages)

    def older(self, d: int, m: int) -> tuple[Floats, Floats]:
        """Scores of stacks down to level m when a segment of level d outgrows all places, and at each later step."""
        state = self.states[d][self.first_leaf[min(m, self.bottom)]]
        return self.ages[d].growing[state], self.ages[d].tail[state]

    def begun(self, m: int, step: int) -> tuple[int | slice, ...]:
        """Index of the entries in which level m and all below it have begun at a step."""
        return tuple(slice(None) if d < m else step % ages.size for d, ages in self.ages.items())
